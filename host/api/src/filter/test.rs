//! Comparisons of one value.

use std::cmp::Ordering;

use weir_messages::Timestamp;

use super::fields::Value;
use super::lexer::Operator;
use super::pattern::{Pattern, holds};

/// What a restriction asks of a value.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// There is a value, and if it is a text it is not empty.
    Present,
    /// Order relative to a number.
    Number(Operator, Number),
    /// Order relative to a time.
    Time(Operator, Timestamp),
    /// Equal to this truth.
    Bool(bool),
    /// The text matches (or does not).
    Matches(Pattern, bool),
    /// Order of texts, by bytes.
    Text(Operator, String),
    /// The text holds this one.
    Holds(String),
    /// A value whose type is only known when seen: the first for numbers, the second for texts.
    Either(Option<Box<Test>>, Box<Test>),
}

/// A number as written: integers are compared exactly.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

impl Test {
    pub fn passes(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Present, Value::Text(text)) => !text.is_empty(),
            (Self::Present, _) => true,
            (Self::Number(operator, number), Value::Integer(value)) => holds_for(
                *operator,
                match number {
                    Number::Integer(number) => Some(i128::from(value).cmp(number)),
                    Number::Float(number) => (value as f64).partial_cmp(number),
                },
            ),
            (Self::Number(operator, number), Value::Number(value)) => {
                let number = match number {
                    Number::Integer(number) => *number as f64,
                    Number::Float(number) => *number,
                };
                holds_for(*operator, value.partial_cmp(&number))
            }
            (Self::Time(operator, time), Value::Time(value)) => holds_for(*operator, Some(value.cmp(time))),
            (Self::Bool(wanted), Value::Bool(value)) => value == *wanted,
            (Self::Matches(pattern, wanted), Value::Text(text)) => pattern.matches(text) == *wanted,
            (Self::Text(operator, wanted), Value::Text(text)) => holds_for(*operator, Some(text.cmp(wanted.as_str()))),
            (Self::Holds(part), Value::Text(text)) => holds(text, part),
            (Self::Either(number, _), Value::Number(_)) => number.as_ref().is_some_and(|test| test.passes(value)),
            (Self::Either(_, text), Value::Text(_)) => text.passes(value),
            _ => false,
        }
    }
}

/// Numbers that cannot be ordered (not a number) are only unequal.
fn holds_for(operator: Operator, order: Option<Ordering>) -> bool {
    match operator {
        Operator::Equal | Operator::Has => order == Some(Ordering::Equal),
        Operator::NotEqual => order != Some(Ordering::Equal),
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}
