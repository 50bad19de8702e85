//! How much there may be to plan in a query.

use super::empty;

/// So many lines that each name the line before twice: 2^lines tables.
fn doubled(lines: usize) -> String {
    let lines = (1..=lines).map(|line| format!("a{line} AS (SELECT a.x FROM a{0} a, A{0} b)", line - 1));
    let lines: Vec<_> = std::iter::once("a0 AS (SELECT 1 AS x)".to_owned())
        .chain(lines)
        .collect();
    format!("WITH {} SELECT x FROM a{}", lines.join(", "), lines.len() - 1)
}

/// A WITH in a WITH, so many.
fn nested(levels: usize) -> String {
    (0..levels).fold("SELECT 1 AS x".to_owned(), |query, level| {
        format!("WITH a{level} AS ({query}) SELECT x FROM a{level}")
    })
}

/// The answer has so many columns.
fn wide(columns: usize) -> String {
    let columns: Vec<_> = (0..columns).map(|number| format!("id AS c{number}")).collect();
    format!("SELECT {} FROM connections", columns.join(", "))
}

/// A list of so many of something.
fn many(count: usize, each: impl Fn(usize) -> String, between: &str) -> String {
    (0..count).map(each).collect::<Vec<_>>().join(between)
}

#[tokio::test]
async fn what_is_too_much_is_refused_before_it_is_planned() {
    let (_folder, engine) = empty();
    let tables = "more than 250 tables, where each name of a WITH counts as what stands behind it";
    let columns = "more than 2000 columns in one SELECT";
    let stars = many(13, |number| format!("connections c{number}"), ", ");
    let row = many(2001, |number| number.to_string(), ", ");
    for (sql, says) in [
        (doubled(8), tables),
        (format!("EXPLAIN {}", doubled(8)), tables),
        (format!("SELECT count(*) FROM ({})", doubled(8)), tables),
        (
            many(251, |_| "SELECT id FROM connections".to_owned(), " UNION ALL "),
            tables,
        ),
        (
            format!("SELECT 1 FROM {}", many(251, |number| format!("ports p{number}"), ", ")),
            tables,
        ),
        (nested(9), "more than 8 WITH inside one another"),
        (wide(2001), columns),
        (format!("SELECT * FROM {stars}"), columns),
        (format!("SELECT * FROM (SELECT 1) CROSS JOIN (VALUES ({row}))"), columns),
        (
            format!(
                "WITH a AS (({}) UNION ({})) SELECT a.*, 1 FROM a",
                wide(2000),
                wide(2000)
            ),
            columns,
        ),
    ] {
        let beginning: String = sql.chars().take(60).collect();
        match engine.plan(&sql).await {
            Ok(_) => panic!("{beginning}: planned"),
            Err(error) => assert!(error.to_string().contains(says), "{beginning}: {error}"),
        }
    }
}

#[tokio::test]
async fn what_analysts_ask_is_not_too_much() {
    let (_folder, engine) = empty();
    let every = many(100, |_| "SELECT * FROM connections".to_owned(), " UNION ALL ");
    let chain = many(
        20,
        |number| {
            format!(
                "a{} AS (SELECT * FROM {})",
                number + 1,
                if number == 0 {
                    "ports".into()
                } else {
                    format!("a{number}")
                }
            )
        },
        ", ",
    );
    for sql in [
        doubled(6),
        nested(8),
        wide(2000),
        format!("WITH every AS ({every}) SELECT * FROM every"),
        format!("WITH {chain} SELECT * FROM a20"),
        "SELECT c.*, t.*, s.* FROM connections c JOIN transactions t ON c.id = t.connection_id JOIN segments s ON c.id = \
         s.connection_id"
            .to_owned(),
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT * FROM t".to_owned(),
    ] {
        let beginning: String = sql.chars().take(60).collect();
        if let Err(error) = engine.plan(&sql).await {
            panic!("{beginning}: {error}");
        }
    }
}

#[tokio::test]
async fn lists_are_flat_and_operators_are_not() {
    let (_folder, engine) = empty();
    let ids = many(5000, |id| id.to_string(), ", ");
    let list = format!("SELECT count(*) FROM connections WHERE id IN ({ids}) -- 1 + 1");
    assert!(engine.plan(&list).await.is_ok());
    for between in [" + ", " OR 1 = "] {
        let deep = format!("SELECT {}", many(1002, |number| number.to_string(), between));
        match engine.plan(&deep).await {
            Ok(_) => panic!("{between}: planned"),
            Err(error) => assert!(
                error.to_string().contains("operators and brackets, and may have 1000"),
                "{error}"
            ),
        }
    }
}
