//! Sequence numbers: 32 bits that wrap (RFC 9293 section 3.4).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;

use super::{Function, Kind};

/// How far `a` is after `b`: -2^31 to 2^31 - 1.
fn difference(a: i64, b: i64) -> i64 {
    i64::from((a as u32).wrapping_sub(b as u32).cast_signed())
}

/// Whether `value` is in the half-open range from `low` to `high`, which may wrap.
fn between(value: i64, low: i64, high: i64) -> bool {
    let after_low = (value as u32).wrapping_sub(low as u32);
    after_low < (high as u32).wrapping_sub(low as u32)
}

pub(super) fn seq_diff() -> Function {
    Function::new(
        "seq_diff",
        &[("a", Kind::Whole), ("b", Kind::Whole)],
        DataType::Int64,
        "How many bytes sequence number a is after b, modulo 2^32: negative if it is before (RFC 9293 section 3.4).",
        |arguments| {
            let [a, b] = [0, 1].map(|place| arguments[place].as_primitive::<Int64Type>());
            let rows = a.iter().zip(b).map(|(a, b)| Some(difference(a?, b?)));
            Ok(Arc::new(rows.collect::<Int64Array>()) as ArrayRef)
        },
    )
}

pub(super) fn seq_between() -> Function {
    Function::new(
        "seq_between",
        &[("value", Kind::Whole), ("low", Kind::Whole), ("high", Kind::Whole)],
        DataType::Boolean,
        "Whether a sequence number is low or after it, and before high, modulo 2^32; low = high is the empty range.",
        |arguments| -> Result<ArrayRef> {
            let [value, low, high] = [0, 1, 2].map(|place| arguments[place].as_primitive::<Int64Type>());
            let rows = value.iter().zip(low).zip(high);
            let rows = rows.map(|((value, low), high)| Some(between(value?, low?, high?)));
            Ok(Arc::new(rows.collect::<BooleanArray>()))
        },
    )
}
