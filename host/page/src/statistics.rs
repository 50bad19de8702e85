//! `/statistics` and `/histogram`: how long it took, exact over all rows of a range.

use serde_json::{Value, json};

use crate::batch;
use crate::dataset::{Dataset, Exchange};
use crate::error::Refused;
use crate::groups::{CHART_WORDS, position};
use crate::marks::{self, SHORTEST, VALUES};
use crate::params::Params;
use crate::reply::Reply;

/// A group, gathered in one pass.
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
    fn add(&mut self, exchange: &Exchange) {
        self.count += 1;
        self.losses += u64::from(exchange.losses);
        self.request_bytes += exchange.request_bytes;
        self.response_bytes += exchange.response_bytes;
        if let Some(place) = position(exchange.index) {
            self.positions[place] += 1;
        }
        for ((_, what), times) in VALUES.iter().zip(&mut self.times) {
            times.extend(exchange.value(*what));
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
    let span = params.span(data.whole())?;
    let filter = params.text("filter").unwrap_or_default();
    let by = params.word("by", CHART_WORDS)?;
    let limit = params.number("limit", 50usize, 1, 1000)?;
    params.end()?;
    let rows = data.select_transactions(&filter)?;
    let grouping = data.groups.by(data, by);
    // Place of each group that the range has.
    let mut places: Vec<Option<u32>> = vec![None; grouping.names.len()];
    let mut groups: Vec<(&str, Group)> = Vec::new();
    for row in &rows[span.part(&rows, |row| data.exchanges[*row as usize].begin)] {
        let number = grouping.of[*row as usize] as usize;
        let place = *places[number].get_or_insert_with(|| {
            groups.push((&grouping.names[number], Group::default()));
            groups.len() as u32 - 1
        });
        groups[place as usize].1.add(&data.exchanges[*row as usize]);
    }
    groups.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(b.0)));
    let left_out = groups.len().saturating_sub(limit);
    groups.truncate(limit);
    let groups: Vec<Value> = groups.into_iter().map(|(name, group)| group.json(name)).collect();
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
    let mut all = vec![0; points.names.len() * bins];
    for point in &points.points {
        let bin = (((on(point.value) - low) / step) as usize).min(bins - 1);
        all[usize::from(point.kind) * bins + bin] += 1;
    }
    let counts: Vec<(usize, u32)> = (0..).zip(all).filter(|(_, count)| *count > 0).collect();
    let edge = |bin: usize| (low + bin as f64 * step).exp();
    let columns = batch::Columns::default()
        .u8("kind", counts.iter().map(|(place, _)| (place / bins) as u8).collect())
        .f64("low", counts.iter().map(|(place, _)| edge(place % bins)).collect())
        .f64("high", counts.iter().map(|(place, _)| edge(place % bins + 1)).collect())
        .u32("count", counts.iter().map(|(_, count)| *count).collect())
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
