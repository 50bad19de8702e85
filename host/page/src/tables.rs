//! Tables: connections, transactions, verdicts on segments; filtered, sorted, a part of the rows.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use serde_json::json;
use weir_api::filter::text_order;
use weir_messages::v1;
use weir_store::tables::Table as Stored;

use crate::batch;
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::fields::{Cell, Column, Holds, columns};
use crate::params::{Params, shown};
use crate::reply::Reply;
use crate::span::Span;

/// Most rows of an answer.
pub const ROWS: usize = 10_000;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Connections,
    Transactions,
    Segments,
}

/// Words of the parameter `table`.
pub const TABLES: &[(&str, Table)] = &[
    ("connections", Table::Connections),
    ("transactions", Table::Transactions),
    ("segments", Table::Segments),
];

impl Table {
    /// Its columns, without `row`.
    pub fn columns(self) -> &'static [Column] {
        static CONNECTIONS: OnceLock<Vec<Column>> = OnceLock::new();
        static TRANSACTIONS: OnceLock<Vec<Column>> = OnceLock::new();
        static SEGMENTS: OnceLock<Vec<Column>> = OnceLock::new();
        match self {
            Self::Connections => columns::<v1::Connection>(&CONNECTIONS, Stored::Connections),
            Self::Transactions => columns::<v1::Transaction>(&TRANSACTIONS, Stored::Transactions),
            Self::Segments => columns::<v1::Segment>(&SEGMENTS, Stored::Segments),
        }
    }

    fn column(self, name: &str) -> Result<&'static Column, Refused> {
        self.columns().iter().find(|column| column.name == name).ok_or_else(|| {
            let at = format_args!("there is no column {}; /columns lists them", shown(name)).to_string();
            Refused::invalid(at)
        })
    }

    /// Rows that pass a filter, by time.
    pub fn select(self, data: &Dataset, filter: &str) -> Result<Arc<Vec<u32>>, Refused> {
        match self {
            Self::Connections => data.select_connections(filter),
            Self::Transactions => data.select_transactions(filter),
            Self::Segments => data.select_verdicts(filter),
        }
    }

    /// First and last moment of a row, ns.
    fn life(self, data: &Dataset, row: u32) -> (u64, u64) {
        match self {
            Self::Connections => {
                let life = data.lives[row as usize];
                (life.first, life.last)
            }
            Self::Transactions => {
                let t = data.exchanges[row as usize];
                (t.begin, t.end.unwrap_or(t.begin))
            }
            Self::Segments => {
                let at = data.since_tai(data.verdicts[row as usize].time);
                (at, at)
            }
        }
    }

    /// Value of a column.
    pub fn cell(self, data: &Dataset, row: u32, column: &Column) -> Option<Cell> {
        match self {
            Self::Connections => column.cell(data.connections[row as usize].as_ref()),
            Self::Transactions => column.cell(data.transactions[row as usize].as_ref()),
            Self::Segments => column.cell(&data.verdicts[row as usize].message()),
        }
    }
}

/// Which rows of a table, in which order.
#[derive(Debug)]
pub struct Query {
    table: Table,
    filter: String,
    span: Span,
    overlap: bool,
    sort: String,
}

impl Query {
    /// From the parameters of a request.
    pub fn take(data: &Dataset, table: Table, params: &mut Params) -> Result<Self, Refused> {
        Ok(Self {
            table,
            filter: params.text("filter").unwrap_or_default(),
            span: params.span(data.whole())?,
            overlap: params.word("touch", &[("begin", false), ("overlap", true)])?,
            sort: params.text("sort").unwrap_or_default(),
        })
    }

    /// Rows that lie at least partly in the range.
    #[must_use]
    pub fn overlapping(self) -> Self {
        Self { overlap: true, ..self }
    }

    /// The range of time.
    pub const fn span(&self) -> Span {
        self.span
    }

    /// The rows.
    pub fn rows(&self, data: &Dataset) -> Result<Arc<Vec<u32>>, Refused> {
        let Self {
            table,
            filter,
            span,
            overlap,
            sort,
        } = self;
        let table = *table;
        let all = table.select(data, filter)?;
        // What began before, and is kept, is there, too.
        let whole = span.from <= data.whole().from && span.to >= data.end();
        if whole && sort.is_empty() {
            return Ok(all);
        }
        let order = order(table, sort)?;
        let key = format!("{table:?} {span:?} {overlap} {sort:?} {filter}");
        data.selection("q", &key, || {
            let touches = |row: &u32| {
                let (first, last) = table.life(data, *row);
                match overlap {
                    _ if whole => true,
                    true => first < span.to && last >= span.from,
                    false => span.holds(first),
                }
            };
            let mut rows: Vec<u32> = all.iter().copied().filter(touches).collect();
            for (column, falling) in order.into_iter().rev() {
                sort_by(data, table, &mut rows, column, falling);
            }
            Ok(rows)
        })
    }
}

/// Columns to sort by, the most important first, and whether they fall.
fn order(table: Table, sort: &str) -> Result<Vec<(&'static Column, bool)>, Refused> {
    let names = sort.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let (name, falling) = match name.strip_prefix('-') {
                Some(name) => (name, true),
                None => (name, false),
            };
            let column = table
                .column(name)
                .map_err(|error| Refused::invalid(format_args!("sort: {error}")))?;
            Ok((column, falling))
        })
        .collect()
}

/// A value to sort by.
#[derive(Clone, Copy, PartialEq)]
enum Key {
    Whole(u64),
    Number(f64),
}

impl Key {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one.cmp(other),
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            // A column has one kind.
            _ => Ordering::Equal,
        }
    }
}

fn sort_by(data: &Dataset, table: Table, rows: &mut [u32], column: &Column, falling: bool) {
    let cells: Vec<Option<Cell>> = rows.iter().map(|row| table.cell(data, *row, column)).collect();
    let texts = cells.iter().filter_map(|cell| match cell {
        Some(Cell::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    let rank = ranks(texts);
    let key = |cell: &Option<Cell>| {
        Some(match cell.as_ref()? {
            Cell::Text(text) => Key::Whole(rank[text.as_str()]),
            Cell::Time(time) => Key::Whole((time.unix_nanos() as u64) ^ (1 << 63)),
            Cell::Integer(number) => Key::Whole(*number),
            Cell::Number(number) => Key::Number(*number),
            Cell::Bool(flag) => Key::Whole(u64::from(*flag)),
        })
    };
    let mut keyed: Vec<(Option<Key>, u32)> = cells.iter().map(key).zip(rows.iter().copied()).collect();
    keyed.sort_by(|(one, _), (other, _)| match (one, other) {
        (Some(one), Some(other)) if falling => other.compare(one),
        (Some(one), Some(other)) => one.compare(other),
        // Nothing is known: last either way.
        (one, other) => one.is_none().cmp(&other.is_none()),
    });
    for (slot, (_, row)) in rows.iter_mut().zip(keyed) {
        *slot = row;
    }
}

/// Places of texts in their order, that of lists.
fn ranks<'a>(texts: impl Iterator<Item = &'a str>) -> HashMap<&'a str, u64> {
    let texts: HashSet<&str> = texts.collect();
    let mut texts: Vec<&str> = texts.into_iter().collect();
    texts.sort_by_cached_key(|text| text_order(text));
    texts.into_iter().zip(0..).collect()
}

/// `/connections`, `/transactions`, `/segments`.
pub fn page(data: &Dataset, table: Table, mut params: Params) -> Result<Reply, Refused> {
    let query = Query::take(data, table, &mut params)?;
    let offset = params.number("offset", 0usize, 0, u32::MAX as usize)?;
    let limit = params.number("limit", 100usize, 0, ROWS)?;
    let names = params.list("columns");
    let as_json = params.word("format", &[("arrow", false), ("json", true)])?;
    params.end()?;
    let rows = query.rows(data)?;
    let end = rows.len().min(offset.saturating_add(limit));
    let total = rows.len();
    let part = rows.get(offset..end).unwrap_or_default();
    if as_json {
        let rows: Vec<_> = part.iter().map(|row| json_row(data, table, *row)).collect();
        return Ok(Reply::json(&json!({ "total": total, "offset": offset, "rows": rows })));
    }
    let names = names.unwrap_or_else(|| {
        let all = table.columns().iter().map(|column| column.name.clone());
        std::iter::once("row".to_owned()).chain(all).collect()
    });
    let mut out = batch::Columns::default();
    for name in &names {
        out = if name == "row" {
            out.u32("row", part.to_vec())
        } else {
            let column = table
                .column(name)
                .map_err(|error| Refused::invalid(format_args!("columns: {error}")))?;
            add(data, table, part, column, out)
        };
    }
    Reply::columns(out.says("total", total).says("offset", offset))
}

fn json_row(data: &Dataset, table: Table, row: u32) -> serde_json::Value {
    let place = row as usize;
    match table {
        Table::Connections => json!({ "row": row, "connection": *data.connections[place] }),
        Table::Transactions => json!({ "row": row, "transaction": *data.transactions[place] }),
        Table::Segments => json!({ "row": row, "segment": data.verdicts[place].message() }),
    }
}

/// A column of some rows.
fn add(data: &Dataset, table: Table, rows: &[u32], column: &Column, out: batch::Columns) -> batch::Columns {
    let cells: Vec<Option<Cell>> = rows.iter().map(|row| table.cell(data, *row, column)).collect();
    let number = |cell: &Option<Cell>| match cell.as_ref()? {
        Cell::Integer(number) => Some(*number as f64),
        Cell::Number(number) => Some(*number),
        Cell::Time(time) => Some(data.moment(time)),
        Cell::Text(_) | Cell::Bool(_) => None,
    };
    match column.holds {
        Holds::Text => out.words(
            &column.name,
            cells.iter().map(|cell| match cell {
                Some(Cell::Text(text)) => Some(text.as_str()),
                _ => None,
            }),
        ),
        Holds::Id => {
            let text = |cell: &Option<Cell>| match cell {
                Some(Cell::Integer(id)) => Some(id.to_string()),
                _ => None,
            };
            out.text(&column.name, cells.iter().map(text).collect())
        }
        Holds::Bool => {
            let flag = |cell: &Option<Cell>| match cell {
                Some(Cell::Bool(flag)) => Some(*flag),
                _ => None,
            };
            out.bool_or_null(&column.name, cells.iter().map(flag).collect())
        }
        Holds::Time | Holds::Count | Holds::Number => out.f64_or_null(&column.name, cells.iter().map(number).collect()),
    }
}

/// `/columns`.
pub fn list(mut params: Params) -> Result<Reply, Refused> {
    let table = params.word("table", TABLES)?;
    params.end()?;
    let columns: Vec<_> = table
        .columns()
        .iter()
        .map(|column| {
            let Column { name, path, doc, .. } = column;
            json!({ "name": name, "path": path, "type": column.holds.name(), "unit": column.unit(), "doc": doc })
        })
        .collect();
    Ok(Reply::json(&json!({ "columns": columns })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_sort_as_numbers() {
        let texts = [
            "OK",
            "fe80::1",
            "10.0.0.10",
            "2001:db8::9",
            "10.0.0.9",
            "2001:db8::10",
            "10.0.0.10",
            "IGNORED",
        ];
        let ranks = ranks(texts.into_iter());
        let mut sorted: Vec<&str> = ranks.keys().copied().collect();
        sorted.sort_by_key(|text| ranks[text]);
        let addresses = ["10.0.0.9", "10.0.0.10", "2001:db8::9", "2001:db8::10", "fe80::1"];
        assert_eq!(sorted, [&addresses[..], &["IGNORED", "OK"]].concat());
    }
}
