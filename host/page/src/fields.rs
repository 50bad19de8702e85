//! Columns of a message: every field that is a number, a text, a time or a list of texts. The store's tables define what they
//! are called, what they mean and in which order they stand.

use std::sync::OnceLock;

use weir_api::filter::{Field, Fields, Kind, Step, Value};
use weir_store::tables;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Text,
    /// A connection's number: text, as it is in JSON.
    Id,
    Time,
    Count,
    Number,
    Bool,
}

impl Holds {
    /// Name in the interface.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Id => "id",
            Self::Time => "time",
            Self::Count => "count",
            Self::Number => "number",
            Self::Bool => "bool",
        }
    }
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// As in the store's table.
    pub name: String,
    /// What it is; empty if the store's table has it in another form.
    pub doc: &'static str,
    /// Names joined with `.`: as in filters.
    pub path: String,
    pub holds: Holds,
    steps: Vec<Step>,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    Time(weir_messages::Timestamp),
    Integer(u64),
    Number(f64),
    Bool(bool),
}

impl Column {
    /// Its value in a message; lists are joined.
    pub fn cell<T: Fields>(&self, message: &T) -> Option<Cell> {
        let mut cell = None;
        message.visit(&self.steps, &mut |value| {
            let add = |before: Option<Cell>, text: &str| match before {
                Some(Cell::Text(before)) => Cell::Text(before + ", " + text),
                _ => Cell::Text(text.to_owned()),
            };
            cell = match value {
                // Texts that are not known are empty.
                Value::Text("") => cell.take(),
                Value::Text(text) => Some(add(cell.take(), text)),
                Value::Integer(number) if self.holds == Holds::Text => Some(add(cell.take(), &number.to_string())),
                Value::Integer(number) => Some(Cell::Integer(number)),
                Value::Number(number) => Some(Cell::Number(number)),
                Value::Bool(flag) => Some(Cell::Bool(flag)),
                Value::Time(time) => Some(Cell::Time(time)),
                Value::Message => cell.take(),
            };
            false
        });
        cell
    }

    /// What its numbers are.
    pub fn unit(&self) -> &'static str {
        const ENDINGS: [(&str, &str); 9] = [
            ("bits_per_second", "bit/s"),
            ("_seconds", "s"),
            ("_bytes", "B"),
            ("max_in_flight", "B"),
            ("min_window", "B"),
            ("max_window", "B"),
            ("_share", "share"),
            ("confidence", "share"),
            ("light_kilometres", "km"),
        ];
        if self.holds == Holds::Time {
            return "s";
        }
        let found = ENDINGS.iter().find(|(ending, _)| self.name.ends_with(ending));
        found.map_or("", |(_, unit)| unit)
    }
}

/// Columns of a message whose rows a table of the store holds, too; made once.
pub fn columns<T: Fields>(known: &'static OnceLock<Vec<Column>>, table: tables::Table) -> &'static [Column] {
    known.get_or_init(|| {
        let mut all = Vec::new();
        walk(T::SCHEMA, &[], &[], &mut all);
        let stored = table.columns();
        let place = |column: &Column| stored.iter().position(|stored| stored.name == column.name);
        for column in &mut all {
            column.doc = place(column).map_or("", |place| stored[place].doc);
        }
        all.sort_by_key(|column| place(column).unwrap_or(usize::MAX));
        all
    })
}

/// A field's name in the store's tables, from the names on its path.
fn stored_name(names: &[&str]) -> String {
    match names {
        [side, "limit_seconds", what] => format!("{side}_limit_{what}_seconds"),
        [side, "ceilings", what] => format!("{side}_ceiling_{what}"),
        ["setup", "client_options", what] => format!("setup_client_{what}"),
        ["setup", "server_options", what] => format!("setup_server_{what}"),
        _ => names.join("_"),
    }
}

fn walk(fields: &[Field], names: &[&str], steps: &[Step], out: &mut Vec<Column>) {
    for field in fields {
        let mut names = names.to_vec();
        names.push(field.name);
        let mut steps = steps.to_vec();
        steps.push(Step::Field(field.tag));
        let is_id = matches!(field.name, "id" | "connection_id") && names.len() == 1;
        let holds = match field.kind {
            Kind::Message(inner) if !field.repeated => {
                walk(inner, &names, &steps, out);
                continue;
            }
            Kind::Text => Holds::Text,
            Kind::Integer if field.repeated => Holds::Text,
            Kind::Integer if is_id => Holds::Id,
            Kind::Integer => Holds::Count,
            Kind::Number if !field.repeated => Holds::Number,
            Kind::Bool if !field.repeated => Holds::Bool,
            Kind::Time if !field.repeated => Holds::Time,
            _ => continue,
        };
        out.push(Column {
            name: stored_name(&names),
            doc: "",
            path: names.join("."),
            holds,
            steps,
        });
    }
}

#[cfg(test)]
mod tests {
    use weir_messages::v1;

    use super::*;

    /// What one of both lacks, by the names of the store.
    fn apart<T: Fields>(table: tables::Table) -> (Vec<&'static str>, Vec<String>) {
        let known = Box::leak(Box::default());
        let columns = columns::<T>(known, table);
        let stored = table.columns().iter().map(|column| column.name);
        let only_stored = stored.filter(|name| columns.iter().all(|column| column.name != *name));
        let only_here = columns.iter().filter(|column| column.doc.is_empty());
        (
            only_stored.collect(),
            only_here.map(|column| column.name.clone()).collect(),
        )
    }

    #[test]
    fn columns_are_those_of_the_store() {
        const ENDS: [&str; 4] = ["client_address", "client_port", "server_address", "server_port"];
        let (stored, here) = apart::<v1::Connection>(tables::Table::Connections);
        assert_eq!(stored, ["tap", "outer_vlan", "inner_vlan"]);
        // The kilometres are the round trip in other words; what is stored is over, and waits for nothing.
        let sides = ["client_to_server", "server_to_client"].map(|side| format!("{side}_ceiling_light_kilometres"));
        let others = ["vlans", "waiting_since"].map(str::to_owned);
        assert_eq!(here, [&sides[..], &others].concat());
        let (stored, here) = apart::<v1::Transaction>(tables::Table::Transactions);
        assert_eq!(stored, [&["tap"][..], &ENDS].concat());
        assert_eq!(here, [""; 0]);
        let (stored, here) = apart::<v1::Segment>(tables::Table::Segments);
        assert_eq!(stored, [&["tap"][..], &ENDS, &["lost_time", "handshake"]].concat());
        assert_eq!(here, [""; 0]);
    }
}
