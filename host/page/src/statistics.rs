//! `/statistics` and `/histogram`: how long it took, exact over all rows of a range.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use weir_messages::v1::Transaction;

use crate::batch;
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::groups::{CHART_WORDS, name, position};
use crate::marks::{self, VALUES, value};
use crate::params::Params;
use crate::reply::Reply;

/// Shortest time told apart in a histogram, s.
const SHORTEST: f64 = 1e-9;

/// A group, gathered in one pass: each transaction is far from the next in memory.
#[derive(Debug, Default)]
struct Group {
    count: u64,
    losses: u64,
    request_bytes: u64,
    response_bytes: u64,
    positions: [u64; 4],
    /// By the place in `VALUES`.
    times: [Vec<f64>; VALUES.len()],
}

impl Group {
    fn add(&mut self, transaction: &Transaction) {
        self.count += 1;
        self.losses += u64::from(transaction.losses);
        self.request_bytes += transaction.request_bytes;
        self.response_bytes += transaction.response_bytes;
        if let Some(place) = position(transaction) {
            self.positions[place] += 1;
        }
        for ((_, what), times) in VALUES.iter().zip(&mut self.times) {
            times.extend(value(transaction, *what));
        }
    }

    fn json(self, name: &str) -> Value {
        let mean = |sum: u64| sum as f64 / self.count as f64;
        let mut group = json!({
            "name": name,
            "count": self.count,
            "losses": self.losses,
            "requestBytesMean": mean(self.request_bytes),
            "responseBytesMean": mean(self.response_bytes),
            "positions": self.positions,
        });
        for ((word, _), values) in VALUES.iter().zip(self.times) {
            group[*word] = times(values);
        }
        group
    }
}

/// `/statistics`.
pub fn get(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let span = params.span(data.end())?;
    let filter = params.text("filter").unwrap_or_default();
    let by = params.word("by", CHART_WORDS)?;
    let limit = params.number("limit", 50usize, 1, 1000)?;
    params.end()?;
    let rows = data.select_transactions(&filter)?;
    let mut groups: HashMap<Cow<'_, str>, Group> = HashMap::new();
    for row in &rows[span.part(&rows, |row| data.exchanges[*row as usize].begin)] {
        let group = groups.entry(name(data, *row as usize, by)).or_default();
        group.add(&data.transactions[*row as usize]);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(&b.0)));
    let left_out = groups.len().saturating_sub(limit);
    groups.truncate(limit);
    let groups: Vec<Value> = groups.into_iter().map(|(name, group)| group.json(&name)).collect();
    Ok(Reply::json(&json!({ "groups": groups, "leftOut": left_out })))
}

/// Percentiles by nearest rank; null of nothing.
fn times(mut values: Vec<f64>) -> Value {
    const RANKS: [(&str, f64); 6] = [
        ("min", 0.0),
        ("p50", 0.5),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("max", 1.0),
    ];
    if values.is_empty() {
        return Value::Null;
    }
    let count = values.len();
    let mut out = json!({ "count": count, "mean": values.iter().sum::<f64>() / count as f64 });
    // Each rank parts what lies above it from what is below: no need to sort all.
    let mut before = 0;
    for (name, share) in RANKS {
        let place = ((share * count as f64).ceil() as usize).clamp(1, count) - 1;
        let (_, value, _) = values[before..].select_nth_unstable_by(place - before, f64::total_cmp);
        out[name] = json!(*value);
        before = place;
    }
    out
}

/// `/histogram`.
pub fn histogram(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let bins = params.number("bins", 100usize, 10, 400)?;
    let of_setups = params.word("table", &[("transactions", false), ("connections", true)])?;
    let (points, _) = match of_setups {
        true => marks::setups(data, &mut params)?,
        false => marks::transactions(data, &mut params)?,
    };
    params.end()?;
    let on = |value: f64| value.max(SHORTEST).ln();
    let values = || points.points.iter().map(|point| point.value);
    let low = on(values().reduce(f64::min).unwrap_or(1.0));
    let high = on(values().reduce(f64::max).unwrap_or(1.0));
    // One value alone has a bin of its own.
    let step = if high > low { (high - low) / bins as f64 } else { 1.0 };
    let mut counts: BTreeMap<(u8, usize), u32> = BTreeMap::new();
    for point in &points.points {
        let bin = (((on(point.value) - low) / step) as usize).min(bins - 1);
        *counts.entry((point.kind, bin)).or_default() += 1;
    }
    let edge = |bin: usize| (low + bin as f64 * step).exp();
    let columns = batch::Columns::default()
        .u8("kind", counts.keys().map(|(kind, _)| *kind).collect())
        .f64("low", counts.keys().map(|(_, bin)| edge(*bin)).collect())
        .f64("high", counts.keys().map(|(_, bin)| edge(bin + 1)).collect())
        .u32("count", counts.values().copied().collect())
        .says("kinds", points.kinds())
        .says("rows", points.rows())
        .says("without_value", points.without_value);
    Reply::columns(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let all = times((1..=200).rev().map(f64::from).collect());
        assert_eq!(all["p50"], 100.0);
        assert_eq!(all["p90"], 180.0);
        assert_eq!(all["p99"], 198.0);
        assert_eq!(
            (&all["min"], &all["max"], &all["mean"]),
            (&json!(1.0), &json!(200.0), &json!(100.5))
        );
        assert_eq!(times(vec![3.0])["p99"], 3.0);
        assert_eq!(times(Vec::new()), Value::Null);
    }
}
