//! `/timeline`: what happened in each pixel column.

use crate::batch;
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::lines::{Level, Lines, Moments, Spells, Weighted};
use crate::params::{Params, shown};
use crate::reply::Reply;
use crate::span::{Span, seconds};

/// Most pixel columns.
pub const WIDTH: usize = 4096;
/// Pixel columns unless told.
pub const USUAL: usize = 1024;

/// The route.
pub fn get(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let span = params.span(data.end())?;
    let width = params.number("width", USUAL, 1, WIDTH)?;
    let filter = params.text("filter").unwrap_or_default();
    let names = params.list("columns");
    params.end()?;
    let lines = data.lines(&filter)?;
    let columns = span.columns(width);
    let slices: Vec<Option<Span>> = (0..width)
        .map(|column| Span::new(columns.edge(column), columns.edge(column + 1)))
        .collect();
    let count = |moments: &Moments| -> Vec<u32> {
        let of = |slice: &Option<Span>| slice.map_or(0, |slice| moments.count(slice));
        slices.iter().map(of).collect()
    };
    let sum = |line: &Weighted| -> Vec<u32> {
        let of = |slice: &Option<Span>| slice.map_or(0, |slice| line.sum(slice));
        slices
            .iter()
            .map(of)
            .map(|sum| u32::try_from(sum).unwrap_or(u32::MAX))
            .collect()
    };
    let mut out = batch::Columns::default().f64(
        "time",
        (0..width)
            .map(|column| seconds(span.from) + column as f64 * (seconds(span.to) - seconds(span.from)) / width as f64)
            .collect(),
    );
    for (name, spells) in [("connections", &lines.connections), ("in_progress", &lines.in_progress)] {
        let levels: Vec<Level> = (0..width).map(|column| level(spells, &columns, column)).collect();
        out = out
            .u32(&format!("{name}_min"), levels.iter().map(|level| level.min).collect())
            .u32(&format!("{name}_max"), levels.iter().map(|level| level.max).collect())
            .f64(&format!("{name}_mean"), levels.iter().map(|level| level.mean).collect());
    }
    let sums = |side: usize, bytes: bool| -> Vec<Option<f64>> {
        let line = lines.traffic.as_ref().map(|traffic| {
            let (segments, payload) = &traffic[side];
            if bytes { payload } else { segments }
        });
        let of = |slice: &Option<Span>| line.map(|line| slice.map_or(0.0, |slice| line.sum(slice) as f64));
        slices.iter().map(of).collect()
    };
    let whole = |values: Vec<Option<f64>>| values.into_iter().map(|value| value.map(|v| v as u32)).collect();
    let lossy = lossy(&lines, &slices);
    out = out
        .u32("opened", count(&lines.opened))
        .u32("closed", count(&lines.closed))
        .u32("failed", count(&lines.failed))
        .u32("requests", count(&lines.requests))
        .u32("responses", count(&lines.responses))
        .u32_or_null("client_packets", whole(sums(0, false)))
        .u32_or_null("server_packets", whole(sums(1, false)))
        .f64_or_null("client_bytes", sums(0, true))
        .f64_or_null("server_bytes", sums(1, true))
        .u32("client_retransmitted", count(&lines.retransmitted[0]))
        .u32("server_retransmitted", count(&lines.retransmitted[1]))
        .u32("client_lost", sum(&lines.lost[0]))
        .u32("server_lost", sum(&lines.lost[1]))
        .u32("syn_repeats", count(&lines.repeats[0]))
        .u32("syn_ack_repeats", count(&lines.repeats[1]))
        .u32("missed_by_capture", sum(&lines.missed))
        .bool_or_null("lossy", lossy);
    if let Some(names) = names {
        out = out
            .only(&names)
            .map_err(|name| Refused::invalid(format_args!("columns: there is no column {}", shown(&name))))?;
    }
    Reply::columns(out.says("width", width))
}

/// A column that is shorter than a ns has what was there at its begin.
fn level(spells: &Spells, columns: &crate::span::Columns, column: usize) -> Level {
    let from = columns.edge(column).min(columns.span.to - 1);
    let to = columns.edge(column + 1).max(from + 1);
    spells.level(Span { from, to })
}

/// Whether a larger share of the data segments was lost than over all; not known where nothing tells what was sent.
fn lossy(lines: &Lines, slices: &[Option<Span>]) -> Vec<Option<bool>> {
    let Some(traffic) = &lines.traffic else {
        return vec![None; slices.len()];
    };
    let sent = traffic[0].0.total() + traffic[1].0.total();
    let lost = lines.lost[0].total() + lines.lost[1].total();
    let usual = lost as f64 / sent.max(1) as f64;
    let is_lossy = |slice: &Option<Span>| {
        let Some(slice) = *slice else { return false };
        let lost = lines.lost[0].sum(slice) + lines.lost[1].sum(slice);
        let sent = traffic[0].0.sum(slice) + traffic[1].0.sum(slice);
        lost > 0 && lost as f64 > usual * sent as f64
    };
    slices.iter().map(|slice| Some(is_lossy(slice))).collect()
}
