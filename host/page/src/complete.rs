//! `/complete`: what may stand at a place of a filter.

use std::collections::HashMap;

use serde_json::{Value, json};
use weir_api::filter::{Filter, MAX_BYTES};
use weir_messages::v1;

use crate::dataset::Dataset;
use crate::error::Refused;
use crate::fields::{Cell, Column, Holds};
use crate::params::Params;
use crate::reply::Reply;
use crate::tables::{TABLES, Table};

/// Most proposals.
const MOST: usize = 50;
/// Rows whose values are counted.
const LOOKED_AT: usize = 50_000;
const OPERATORS: [(&str, &str); 7] = [
    ("=", "is; * stands for anything"),
    ("!=", "is not"),
    ("<", "below"),
    ("<=", "not above"),
    (">", "above"),
    (">=", "not below"),
    (":", "holds, or is set with *"),
];

/// A piece of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Operator,
    Other,
}

/// The pieces before the cursor, and the word that is being written.
fn tokens(before: &str) -> (Vec<Token<'_>>, usize) {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '*' | '-' | '"' | '/' | '%');
    let mut all = Vec::new();
    let mut rest = before;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return (all, before.len());
        };
        let length = if first == '"' {
            // Up to the quote that ends it.
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            match end {
                Some(end) => end + 2,
                None => return (all, before.len() - rest.len()),
            }
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            rest.find(|c: char| !matches!(c, '=' | '!' | '<' | '>' | ':'))
                .unwrap_or(rest.len())
                .max(first.len_utf8())
        };
        let (token, behind) = rest.split_at(length);
        if behind.is_empty() && is_word(first) {
            return (all, before.len() - token.len());
        }
        all.push(match first {
            '=' | '!' | '<' | '>' | ':' => Token::Operator,
            _ if is_word(first) => Token::Word(token),
            _ => Token::Other,
        });
        rest = behind;
    }
}

/// The route.
pub fn get(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let table = params.word("table", TABLES)?;
    let filter = params.text("filter").unwrap_or_default();
    let cursor = params.number("cursor", filter.len(), 0, MAX_BYTES)?.min(filter.len());
    params.end()?;
    let Some(before) = filter.get(..cursor) else {
        return Err(Refused::invalid("cursor: stands within a character"));
    };
    let (before, from) = tokens(before);
    let written = filter[from..cursor].trim_start_matches('"').to_lowercase();
    let column = |word: &str| {
        let path: String = word.replace(['.', '_'], "").to_lowercase();
        let columns = table.columns().iter();
        columns
            .clone()
            .find(|column| column.path == word || column.path.replace(['.', '_'], "") == path)
    };
    let items: Vec<Value> = match before.as_slice() {
        [.., Token::Word(word), Token::Operator] => {
            column(word).map_or_else(Vec::new, |column| values(data, table, column, &written))
        }
        [.., Token::Word(word)] if written.is_empty() && column(word).is_some() => OPERATORS
            .iter()
            .map(|(text, note)| json!({ "text": text, "kind": "operator", "note": note }))
            .collect(),
        before => {
            let fields = table.columns().iter().filter(|column| column.path.contains(&written));
            let words = ["AND", "OR", "NOT"].into_iter().filter(|word| match before.last() {
                // What begins is no AND.
                None => *word == "NOT",
                Some(_) => word.to_lowercase().starts_with(&written),
            });
            let mut fields: Vec<&Column> = fields.collect();
            fields.sort_by_key(|column| !column.path.starts_with(&written));
            fields
                .into_iter()
                .map(|column| json!({ "text": column.path, "kind": "field", "note": note(column) }))
                .take(MOST)
                .chain(words.map(|word| json!({ "text": word, "kind": "word", "note": "" })))
                .collect()
        }
    };
    let mut out = json!({ "from": from, "to": cursor, "items": items });
    let wrong = match table {
        Table::Connections => Filter::<v1::Connection>::parse(&filter).err(),
        Table::Transactions => Filter::<v1::Transaction>::parse(&filter).err(),
        Table::Segments => Filter::<v1::Segment>::parse(&filter).err(),
    };
    if let Some(error) = wrong {
        out["error"] = json!({ "message": error.to_string(), "at": error.position });
    }
    Ok(Reply::json(&out))
}

fn note(column: &Column) -> String {
    match column.unit() {
        "" => column.holds.name().to_owned(),
        unit => format!("{}, {unit}", column.holds.name()),
    }
}

/// Its most frequent values.
fn values(data: &Dataset, table: Table, column: &Column, written: &str) -> Vec<Value> {
    let Ok(rows) = table.select(data, "") else {
        return Vec::new();
    };
    // Spread over the capture when there are many: only their frequency is wanted.
    let step = rows.len().div_ceil(LOOKED_AT).max(1);
    let mut counts: HashMap<String, u64> = HashMap::new();
    for row in rows.iter().step_by(step) {
        let text = match table.cell(data, *row, column) {
            Some(Cell::Text(text)) => text,
            Some(Cell::Integer(number)) => number.to_string(),
            Some(Cell::Bool(flag)) => flag.to_string(),
            Some(Cell::Number(_) | Cell::Time(_)) | None => continue,
        };
        if text.to_lowercase().contains(written) {
            *counts.entry(text).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let quoted = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match column.holds == Holds::Text && !text.chars().all(plain) {
            true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            false => text.to_owned(),
        }
    };
    counts
        .into_iter()
        .take(MOST)
        .map(|(text, count)| {
            let note = match step {
                1 => count.to_string(),
                _ => format!("about {}", count * step as u64),
            };
            json!({ "text": quoted(&text), "kind": "value", "note": note })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_is_found() {
        for (text, count, from) in [
            ("", 0, 0),
            ("cli", 0, 0),
            ("client.address ", 1, 15),
            ("client.address = ", 2, 17),
            ("client.address = 10.", 2, 17),
            ("client.address = \"10.0", 2, 17),
            ("a = \"x y\" AND (b", 5, 15),
            ("a<=1", 2, 3),
        ] {
            let (all, at) = tokens(text);
            assert_eq!((all.len(), at), (count, from), "{text}");
        }
    }
}
