//! `weir query "SELECT ..."`: becomes the SQL engine, which is a program of its own so that measuring needs none of it.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use weir_command::Failure;

use crate::program::Program;

/// The program of `make sql`.
const SQL: Program = Program {
    name: "weir-sql",
    variable: "WEIR_SQL",
    make: "make sql",
};

/// What SQL begins with: what reads, and what would write, so that the engine says that nothing can be changed.
const WORDS: [&str; 14] = [
    "SELECT", "WITH", "EXPLAIN", "SHOW", "DESCRIBE", "ALTER", "COPY", "CREATE", "DELETE", "DROP", "INSERT", "SET",
    "TRUNCATE", "UPDATE",
];

/// Whether these arguments of weir are a query in SQL.
pub fn is_meant(arguments: &[OsString]) -> bool {
    let [_, command, rest @ ..] = arguments else {
        return false;
    };
    let mut before = OsStr::new("");
    command == "query"
        && rest.iter().any(|argument| {
            let condition = before == "--filter";
            before = argument;
            !condition && is_sql(argument)
        })
}

/// Whether a store is asked, but not in SQL.
pub fn is_missing(arguments: &[OsString]) -> bool {
    let [_, command, rest @ ..] = arguments else {
        return false;
    };
    let is_store = |argument: &OsString| argument == "--store" || argument.as_encoded_bytes().starts_with(b"--store=");
    command == "query" && rest.iter().any(is_store) && !is_meant(arguments)
}

fn is_sql(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    let text = without_begin(&text);
    let word = text.split_whitespace().next().unwrap_or_default();
    // One word alone is no query, but may be a value of an option.
    word.len() < text.trim().len() && WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Without comments and parentheses at the begin.
fn without_begin(text: &str) -> &str {
    let text = text.trim_start();
    let rest = if let Some(comment) = text.strip_prefix("--") {
        comment.split_once('\n')
    } else if let Some(comment) = text.strip_prefix("/*") {
        comment.split_once("*/")
    } else {
        text.strip_prefix('(').map(|rest| ("", rest))
    };
    rest.map_or(text, |(_, rest)| without_begin(rest))
}

/// Run the query; this only returns when the program cannot be started.
pub fn run(arguments: Vec<OsString>) -> Result<ExitCode, Failure> {
    SQL.run(arguments.into_iter().skip(1).map(no_option))
}

/// A query that begins with a comment looks like an option, but for a space.
fn no_option(argument: OsString) -> OsString {
    match argument.as_encoded_bytes().starts_with(b"--") && is_sql(&argument) {
        true => [OsStr::new(" "), &argument].into_iter().collect(),
        false => argument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(arguments: &[&str]) -> bool {
        let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
        is_meant(&arguments)
    }

    #[test]
    fn what_is_sql() {
        assert!(meant(&["weir", "query", "SELECT 1"]));
        assert!(meant(&["weir", "query", "drop table connections"]));
        assert!(meant(&[
            "weir",
            "query",
            "--store",
            "s",
            " with t as (SELECT 1)\nSELECT * FROM t",
            "-f",
            "csv"
        ]));
        assert!(meant(&["weir", "query", "show tables", "--store", "s"]));
        assert!(meant(&["weir", "query", "--store", "s", "(SELECT 1) UNION (SELECT 2)"]));
        assert!(meant(&["weir", "query", "-- all\n/* of\nthem */ ( (select 1))"]));
        assert!(!meant(&["weir", "query", "--store", "s", "-- SELECT 1"]));
        assert_eq!(no_option("-- all\nSELECT 1".into()), " -- all\nSELECT 1");
        assert_eq!(no_option("--store".into()), "--store");
        assert!(!meant(&["weir", "query", "--", "(", "/* SELECT 1"]));
        assert!(!meant(&["weir", "query", "connections", "--filter", "select = 1"]));
        assert!(!meant(&["weir", "query", "findings"]));
        assert!(!meant(&["weir", "analyze", "select it.pcap"]));
        assert!(!meant(&["weir", "query"]) && !meant(&["weir"]));
        let missing = |arguments: &[&str]| is_missing(&arguments.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(missing(&["weir", "query", "--store", "s"]) && missing(&["weir", "query", "--store=s", "SELEC 1"]));
        assert!(
            !missing(&["weir", "query", "--store", "s", "SELECT 1"]) && !missing(&["weir", "serve", "--store", "s"])
        );
    }
}
