//! The order of lists, as AIP-132 writes it: `server.port, duration_seconds desc`.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::net::IpAddr;

use super::fields::{Fields, Kind, Step, Value};
use super::target::{Target, names};
use super::{FilterError, MAX_BYTES};

/// Most fields in one order.
const MAX_KEYS: usize = 10;

/// An order of messages of type `T`. An empty one has all equal.
///
/// ```
/// use weir_api::filter::Order;
/// use weir_messages::v1::Transaction;
///
/// let order = Order::parse("responseBytes desc")?;
/// let [small, large] = [1, 2].map(|response_bytes| Transaction { response_bytes, ..Transaction::default() });
/// assert!(order.compare(&large, &small).is_lt());
/// # Ok::<(), weir_api::filter::FilterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Order<T> {
    keys: Vec<Key>,
    about: PhantomData<fn(&T)>,
}

#[derive(Clone, Debug)]
struct Key {
    path: Vec<Step>,
    descending: bool,
}

impl<T: Fields> Order<T> {
    /// Read an order; errors say where and what was expected.
    pub fn parse(order: &str) -> Result<Self, FilterError> {
        let error = |at: usize, found: &str, expected: String| FilterError::new(order, at, found, expected);
        if order.len() > MAX_BYTES {
            return Err(error(0, order, format!("at most {MAX_BYTES} bytes")));
        }
        let mut keys = Vec::new();
        let mut at = 0;
        for part in order.split(',').filter(|_| !order.trim().is_empty()) {
            let start = at + part.len() - part.trim_start().len();
            at += part.len() + 1;
            let words: Vec<&str> = part.split_whitespace().collect();
            let (dotted, descending) = match words[..] {
                [dotted] | [dotted, "asc"] => (dotted, false),
                [dotted, "desc"] => (dotted, true),
                [] => return Err(error(start.min(order.len()), ",", "a field between commas".into())),
                _ => return Err(error(start, part.trim(), "FIELD, FIELD asc or FIELD desc".into())),
            };
            if keys.len() == MAX_KEYS {
                return Err(error(start, dotted, format!("at most {MAX_KEYS} fields")));
            }
            let Target {
                path,
                kind,
                repeated,
                name,
                in_map,
                ..
            } = Target::find(T::SCHEMA, dotted).map_err(|expected| error(start, dotted, expected))?;
            let expected = match kind {
                _ if repeated => format!("one value: {name} is a list"),
                Kind::Message(schema) => format!("a field of {name}: {}", names(schema)),
                Kind::Map if !in_map => format!("{name}.NAME"),
                _ => {
                    keys.push(Key { path, descending });
                    continue;
                }
            };
            return Err(error(start, dotted, expected));
        }
        Ok(Self {
            keys,
            about: PhantomData,
        })
    }

    /// Whether all messages are equal.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Which message comes first. One without a value comes last, in either direction; addresses are ordered as numbers.
    pub fn compare(&self, a: &T, b: &T) -> Ordering {
        for Key { path, descending } in &self.keys {
            let mut ordering = None;
            let mut is_in_a = false;
            with_value(a, path, &mut |a| {
                is_in_a = true;
                with_value(b, path, &mut |b| ordering = Some(compare(a, b)));
            });
            let ordering = match ordering {
                Some(ordering) if *descending => ordering.reverse(),
                Some(ordering) => ordering,
                None if is_in_a => Ordering::Less,
                None => {
                    let mut is_in_b = false;
                    with_value(b, path, &mut |_| is_in_b = true);
                    is_in_b.cmp(&false)
                }
            };
            if ordering.is_ne() {
                return ordering;
            }
        }
        Ordering::Equal
    }

    /// The values that a message is ordered by, as a text to compare.
    pub(crate) fn values(&self, message: &T) -> String {
        let mut all = String::new();
        for key in &self.keys {
            with_value(message, &key.path, &mut |value| {
                let _ = write!(all, "{value:?}");
            });
            all.push('\n');
        }
        all
    }
}

/// The first value at the end of a path, if there is one.
fn with_value<T: Fields>(message: &T, path: &[Step], then: &mut dyn FnMut(Value<'_>)) {
    message.visit(path, &mut |value| {
        let is_there = !matches!(value, Value::Text(""));
        if is_there {
            then(value);
        }
        is_there
    });
}

/// What texts are ordered by: addresses as numbers, then all others by their bytes.
pub fn text_order(text: &str) -> Result<IpAddr, &str> {
    text.parse().map_err(|_| text)
}

/// Values of one field; in a map a name may stand for a number here and for a text there.
fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => text_order(a).cmp(&text_order(b)),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(&b),
        (Value::Integer(a), Value::Integer(b)) => a.cmp(&b),
        (Value::Number(a), Value::Number(b)) => a.total_cmp(&b),
        (Value::Time(a), Value::Time(b)) => a.cmp(&b),
        (Value::Number(_), _) => Ordering::Less,
        (_, Value::Number(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}
