//! Columns of a message: every field that is a number, a text, a time or a list of texts, with its names joined.

use std::sync::OnceLock;

use weir_api::filter::{Field, Fields, Kind, Step, Value};

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
    /// Names joined with `_`.
    pub name: String,
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
        if self.holds == Holds::Time || self.name.contains("limit_seconds") {
            return "s";
        }
        let found = ENDINGS.iter().find(|(ending, _)| self.name.ends_with(ending));
        found.map_or("", |(_, unit)| unit)
    }
}

/// Columns of a message, made once.
pub fn columns<T: Fields>(known: &'static OnceLock<Vec<Column>>) -> &'static [Column] {
    known.get_or_init(|| {
        let mut all = Vec::new();
        walk(T::SCHEMA, &[], &[], &mut all);
        all
    })
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
            name: names.join("_"),
            path: names.join("."),
            holds,
            steps,
        });
    }
}
