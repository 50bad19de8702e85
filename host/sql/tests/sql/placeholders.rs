//! Parameters written as `?`.

use weir_sql::placeholders::numbered;

#[test]
fn question_marks_become_numbers() {
    assert_eq!(
        numbered("SELECT ? + ?, 'a?''b' -- ?\nFROM t"),
        "SELECT $1 + $2, 'a?''b' -- ?\nFROM t"
    );
    assert_eq!(
        numbered("SELECT \"a?\" FROM t WHERE x=?"),
        "SELECT \"a?\" FROM t WHERE x=$1"
    );
    let unchanged = "SELECT $1, '?'";
    assert_eq!(numbered(unchanged), unchanged);
    assert_eq!(numbered("SELECT 'open"), "SELECT 'open");
}
