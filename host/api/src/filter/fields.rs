//! Fields of messages by path; the tables are made from the protos by build.rs.

use std::collections::BTreeMap;

use weir_messages::Timestamp;
use weir_messages::v1::FindingValue;
use weir_messages::v1::finding_value::Value as Held;

/// A message that filters can be about.
pub trait Fields {
    /// Its fields.
    const SCHEMA: &'static [Field];

    /// Whether `test` holds for a value at the end of `path`. A field that is not set has no
    /// value, a list has one for each item, and an empty path is the message itself.
    fn visit(&self, path: &[Step], test: &mut dyn FnMut(Value<'_>) -> bool) -> bool;

    /// Whether `test` holds for any text in the message, however deep.
    fn texts(&self, test: &mut dyn FnMut(&str) -> bool) -> bool;
}

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    /// Name in the proto.
    pub name: &'static str,
    /// Name in JSON.
    pub json: &'static str,
    /// Field number.
    pub tag: i32,
    /// What it holds.
    pub kind: Kind,
    /// Whether it is a list.
    pub repeated: bool,
    /// The only texts that it can hold, if its comment in the proto lists them.
    pub values: &'static [&'static str],
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text.
    Text,
    /// True or false.
    Bool,
    /// An unsigned integer.
    Integer,
    /// A floating-point number.
    Number,
    /// A point in time.
    Time,
    /// A message with these fields.
    Message(&'static [Field]),
    /// Numbers, texts and lists of numbers by name.
    Map,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Field number.
    Field(i32),
    /// Name in a map.
    Key(String),
}

/// A value at the end of a path.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Text.
    Text(&'a str),
    /// True or false.
    Bool(bool),
    /// An unsigned integer.
    Integer(u64),
    /// A floating-point number.
    Number(f64),
    /// A point in time.
    Time(Timestamp),
    /// A message or map that is there.
    Message,
}

/// [`Fields::visit`] for a map.
fn map(values: &BTreeMap<String, FindingValue>, path: &[Step], test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
    let Some(Step::Key(key)) = path.first() else {
        return !values.is_empty() && test(Value::Message);
    };
    match values.get(key).and_then(|value| value.value.as_ref()) {
        None => false,
        Some(Held::Number(number)) => test(Value::Number(*number)),
        Some(Held::Text(text)) => test(Value::Text(text)),
        Some(Held::Numbers(list)) => list.values.iter().any(|number| test(Value::Number(*number))),
    }
}

/// [`Fields::texts`] for a map.
fn map_texts(values: &BTreeMap<String, FindingValue>, test: &mut dyn FnMut(&str) -> bool) -> bool {
    values
        .values()
        .any(|value| matches!(&value.value, Some(Held::Text(text)) if test(text)))
}

#[allow(clippy::all)]
mod generated {
    use super::{Field, Fields, Kind, Step, Value, map, map_texts};

    include!(concat!(env!("OUT_DIR"), "/fields.rs"));
}
