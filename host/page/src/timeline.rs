//! `/timeline`: what happened in each pixel column.

use crate::batch;
use crate::collect::Dropped;
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::lines::{Level, Lines, Moments, Spells, Weighted};
use crate::params::{Params, shown};
use crate::reply::Reply;
use crate::span::{Columns, Span, seconds};

/// Most pixel columns.
pub const WIDTH: usize = 4096;
/// Pixel columns unless told.
pub const USUAL: usize = 1024;

/// The route.
pub fn get(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let span = params.span(data.whole())?;
    let width = params.number("width", USUAL, 1, WIDTH)?;
    let filter = params.text("filter").unwrap_or_default();
    let names = params.list("columns");
    params.end()?;
    let lines = data.lines(&filter)?;
    let columns = span.columns(width);
    let slices: Vec<Option<Span>> = (0..width)
        .map(|column| Span::new(columns.edge(column), columns.edge(column + 1)))
        .collect();
    let Dropped {
        connections,
        transactions,
        verdicts,
        blocks,
        ..
    } = &data.dropped;
    let [connections, transactions, verdicts, blocks] = [connections, transactions, verdicts, blocks].map(|missing| {
        let gap = data.gap(missing);
        // What a filter tells of a connection that is not kept is not known, either.
        let of_connections = data.gap(connections).filter(|_| !filter.is_empty());
        let is_known = |column| {
            let gaps = [gap, of_connections];
            !gaps.iter().flatten().any(|gap| overlaps(&columns, column, *gap))
        };
        (0..width).map(is_known).collect::<Vec<bool>>()
    });
    let of_packets = data.all_packets().is_some();
    let traffic: Vec<bool> = blocks.iter().map(|known| *known || of_packets).collect();
    let count = |moments: &Moments, known: &[bool]| -> Vec<Option<u32>> {
        let of = |slice: &Option<Span>| slice.map_or(0, |slice| moments.count(slice));
        where_known(slices.iter().map(of), known)
    };
    let sum = |line: &Weighted| -> Vec<Option<u32>> {
        let of = |slice: &Option<Span>| slice.map_or(0, |slice| line.sum(slice));
        let sums = slices.iter().map(of);
        where_known(sums.map(|sum| u32::try_from(sum).unwrap_or(u32::MAX)), &verdicts)
    };
    let mut out = batch::Columns::default().f64(
        "time",
        (0..width)
            .map(|column| seconds(span.from) + column as f64 * (seconds(span.to) - seconds(span.from)) / width as f64)
            .collect(),
    );
    for (name, spells, known) in [
        ("connections", &lines.connections, &connections),
        ("in_progress", &lines.in_progress, &transactions),
    ] {
        let levels: Vec<Level> = (0..width).map(|column| level(spells, &columns, column)).collect();
        let (min, max) = (
            levels.iter().map(|level| level.min),
            levels.iter().map(|level| level.max),
        );
        let mean = where_known(levels.iter().map(|level| level.mean), known);
        out = out
            .u32_or_null(&format!("{name}_min"), where_known(min, known))
            .u32_or_null(&format!("{name}_max"), where_known(max, known))
            .f64_or_null(&format!("{name}_mean"), mean);
    }
    let sums = |side: usize, bytes: bool| -> Vec<Option<f64>> {
        let line = lines.traffic.as_ref().map(|traffic| {
            let (segments, payload) = &traffic[side];
            if bytes { payload } else { segments }
        });
        let of = |slice: &Option<Span>| line.map(|line| slice.map_or(0.0, |slice| line.sum(slice) as f64));
        let sums = slices.iter().map(of).zip(&traffic);
        sums.map(|(sum, known)| sum.filter(|_| *known)).collect()
    };
    let whole = |values: Vec<Option<f64>>| values.into_iter().map(|value| value.map(|v| v as u32)).collect();
    let lossy = lossy(&lines, &slices);
    let known = verdicts
        .iter()
        .zip(&traffic)
        .map(|(verdicts, traffic)| *verdicts && *traffic);
    let lossy = lossy
        .into_iter()
        .zip(known)
        .map(|(lossy, known)| lossy.filter(|_| known));
    out = out
        .u32_or_null("opened", count(&lines.opened, &connections))
        .u32_or_null("closed", count(&lines.closed, &connections))
        .u32_or_null("failed", count(&lines.failed, &connections))
        .u32_or_null("requests", count(&lines.requests, &transactions))
        .u32_or_null("responses", count(&lines.responses, &transactions))
        .u32_or_null("client_packets", whole(sums(0, false)))
        .u32_or_null("server_packets", whole(sums(1, false)))
        .f64_or_null("client_bytes", sums(0, true))
        .f64_or_null("server_bytes", sums(1, true))
        .u32_or_null("client_retransmitted", count(&lines.retransmitted[0], &verdicts))
        .u32_or_null("server_retransmitted", count(&lines.retransmitted[1], &verdicts))
        .u32_or_null("client_lost", sum(&lines.lost[0]))
        .u32_or_null("server_lost", sum(&lines.lost[1]))
        .u32_or_null("syn_repeats", count(&lines.repeats[0], &verdicts))
        .u32_or_null("syn_ack_repeats", count(&lines.repeats[1], &verdicts))
        .u32_or_null("missed_by_capture", sum(&lines.missed))
        .bool_or_null("lossy", lossy.collect());
    if let Some(names) = names {
        out = out
            .only(&names)
            .map_err(|name| Refused::invalid(format_args!("columns: there is no column {}", shown(&name))))?;
    }
    Reply::columns(out.says("width", width))
}

/// What is known.
fn where_known<T>(values: impl Iterator<Item = T>, known: &[bool]) -> Vec<Option<T>> {
    values.zip(known).map(|(value, known)| known.then_some(value)).collect()
}

/// Whether a column has some of a range.
fn overlaps(columns: &Columns, column: usize, gap: Span) -> bool {
    columns.edge(column) < gap.to && columns.edge(column + 1).max(columns.edge(column) + 1) > gap.from
}

/// A column that is shorter than a ns has what was there at its begin.
fn level(spells: &Spells, columns: &Columns, column: usize) -> Level {
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
