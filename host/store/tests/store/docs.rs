//! `docs/src/tables.md` is what the columns' definitions say.

use std::fmt::Write as _;
use std::path::PathBuf;

use arrow::datatypes::DataType;
use weir_store::tables::Table;

/// Set to write the page instead of checking it.
const RENEW: &str = "WEIR_RENEW";

#[test]
fn page_is_fresh() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/tables.md");
    let page = page();
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "{} is not what the tables are: renew it with {RENEW}=1 cargo test -p weir-store page_is_fresh",
        path.display()
    );
}

fn page() -> String {
    let mut page = String::from(
        "# Tables\n\n\
         What the analysis finds, as columns: the same in the [store](store.md), in SQL and behind the analyst's page. \
         Times are UTC with nanoseconds, durations seconds, names those of the JSON output, flattened. **NULL means: not \
         known, or without meaning for this row; it is never 0.** A type with a question mark may be NULL. In the \
         files of the store `tap` is in the path, not in the file.\n\n\
         This page is made from the definitions in `host/store/src/tables`.\n",
    );
    for table in Table::ALL {
        let (name, doc, time) = (table.name(), table.doc(), table.time_column());
        write!(page, "\n## {name}\n\n{doc} Its hour and its order: `{time}`.\n\n").unwrap();
        page.push_str("| column | type | |\n|---|---|---|\n");
        for column in table.columns() {
            let kind = type_name(&column.data_type);
            let unknown = if column.nullable { " ?" } else { "" };
            writeln!(page, "| `{}` | {kind}{unknown} | {} |", column.name, column.doc).unwrap();
        }
    }
    page
}

/// An Arrow type in a word.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(_, of) => format!("{of} (dictionary)"),
        DataType::Timestamp(..) => "Timestamp(ns, UTC)".into(),
        DataType::List(field) => format!("List of {}", field.data_type()),
        DataType::Map(..) => "Map of Utf8 to Float64".into(),
        other => other.to_string(),
    }
}
