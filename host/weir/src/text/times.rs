//! Whose time it was, what cost most, and the figures over all connections.

use std::io::{self, Write};

use weir_analysis::pie::is_unknown;
use weir_messages::v1::{Bottleneck, Diagnosis, Summary, TimeShares};

use super::{DIM, heading, optional, table};
use crate::format::{Clock, count, seconds};

/// Transactions in progress at once on average, from which on shares of their time need a word.
const PARALLEL: f64 = 1.2;

/// Bottlenecks shown.
const MOST_BOTTLENECKS: usize = 5;

/// Whose time it was and what cost most, over everything and in the range that was marked.
pub(super) fn print(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let note = |total| {
        let unsure = match summary.delays_uncertain_seconds {
            unsure if unsure > 0.0 => format!(", client and server ± {}", seconds(unsure)),
            _ => String::new(),
        };
        format!("{} in setups and transactions{unsure}", seconds(total))
    };
    print_delays("Whose time", note, summary.delays, out)?;
    if is_unknown(summary) {
        writeln!(
            out,
            "  {DIM}whose time {} transactions were is not known, which is most of them: one direction is not in the capture{DIM:#}",
            count(summary.untimed_transactions),
        )?;
    }
    let total = summary.delays.map_or(0.0, |shares| shares.total_seconds);
    // The wait for an answer that never came may go on behind the capture.
    let all = summary.transactions as f64;
    let at_once = (total / summary.duration_seconds.max(1e-9)).min(all);
    if at_once >= PARALLEL {
        writeln!(
            out,
            "  {DIM}{at_once:.1} transactions were in progress at once on average: these are shares of their sum, not of a user's wait{DIM:#}"
        )?;
    }
    print_diagnosis(&summary.bottlenecks, &summary.diagnosis, out)?;
    print_marked(summary, out)
}

/// Whose time it was.
fn print_delays(
    title: &str,
    note: impl Fn(f64) -> String,
    shares: Option<TimeShares>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(shares) = shares.filter(|shares| shares.total_seconds > 0.0) else {
        return Ok(());
    };
    heading(out, title, &note(shares.total_seconds))?;
    let parts = [
        ("user think", Some(shares.user_think_seconds)),
        ("client processing", Some(shares.client_processing_seconds)),
        ("server processing", Some(shares.server_processing_seconds)),
        ("latency", shares.latency_seconds),
        ("bandwidth", Some(shares.bandwidth_seconds)),
        ("congestion", Some(shares.congestion_seconds)),
        ("protocol", Some(shares.protocol_seconds)),
    ];
    for (name, part) in parts {
        let share = part.unwrap_or(0.0) / shares.total_seconds;
        let bar = "█".repeat((share.clamp(0.0, 1.0) * 40.0).round() as usize);
        writeln!(out, "  {name:18} {:>10} {:5.1} % {bar}", optional(part), 100.0 * share)?;
    }
    Ok(())
}

/// The range that was marked.
fn print_marked(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let Some(m) = &summary.marked else { return Ok(()) };
    let clock = Clock::of_times([summary.start, m.start, m.end].into_iter().flatten());
    let edge = |time: &Option<_>| time.as_ref().map_or_else(|| "…".to_owned(), |time| clock.time(time));
    let title = format!("Marked: {} to {}", edge(&m.start), edge(&m.end));
    let crossing = match m.crossing {
        0 => String::new(),
        n => format!("; {} began before and reach into it", count(n)),
    };
    if m.transactions == 0 {
        return heading(out, &title, &format!("no transaction begins in it{crossing}"));
    }
    let note = |total| {
        format!(
            "{} in {} setups and transactions{crossing}",
            seconds(total),
            count(m.transactions)
        )
    };
    print_delays(&title, note, m.shares, out)?;
    print_diagnosis(&m.bottlenecks, &m.diagnosis, out)
}

/// What cost most, and what crosses a threshold; the other categories are in the JSON.
fn print_diagnosis(bottlenecks: &[Bottleneck], diagnosis: &[Diagnosis], out: &mut dyn Write) -> io::Result<()> {
    if bottlenecks.is_empty() {
        return Ok(());
    }
    heading(
        out,
        "Bottlenecks",
        "the most that each costs; thresholds in the manual (Diagnosis)",
    )?;
    for (i, b) in bottlenecks.iter().take(MOST_BOTTLENECKS).enumerate() {
        writeln!(
            out,
            "  {}. {:18} {:>10} {:5.1} %  {}",
            i + 1,
            b.name.to_lowercase().replace('_', " "),
            seconds(b.seconds),
            100.0 * b.share,
            b.remedy
        )?;
    }
    for d in diagnosis.iter().filter(|d| d.verdict != "NO_BOTTLENECK") {
        writeln!(
            out,
            "  {:22} {:.1} % of {} ({}: from {} %)",
            d.category.to_lowercase().replace('_', " "),
            100.0 * d.value,
            d.of.trim_start_matches("share of "),
            d.verdict.to_lowercase().replace('_', " "),
            100.0
                * if d.verdict == "BOTTLENECK" {
                    d.bottleneck
                } else {
                    d.potential
                }
        )?;
    }
    Ok(())
}

/// Operations, the longest first.
pub(super) fn print_operations(summary: &Summary, rows: usize, out: &mut dyn Write) -> io::Result<()> {
    if summary.operations.is_empty() {
        return Ok(());
    }
    let left_out = summary.operations_left_out;
    let all = summary.operations.len() as u64 + left_out;
    let mut longest: Vec<_> = summary.operations.iter().collect();
    longest.sort_by(|a, b| b.duration_seconds.total_cmp(&a.duration_seconds));
    let note = format!("{} of {all}, longest first", longest.len().min(rows));
    heading(out, "Operations", &note)?;
    let mut table = table(
        &[
            "start",
            "client",
            "server",
            "transactions",
            "duration",
            "think",
            "client",
            "server",
            "latency",
            "bandwidth",
            "congestion",
            "protocol",
            "parallel",
        ],
        &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    );
    let clock = Clock::of(summary);
    for o in longest.into_iter().take(rows) {
        let s = o.shares.unwrap_or_default();
        table.add_row(vec![
            clock.known(o.start.as_ref()),
            o.client_address.clone(),
            o.server_address.clone(),
            count(o.transactions),
            seconds(o.duration_seconds),
            seconds(s.user_think_seconds),
            seconds(s.client_processing_seconds),
            seconds(s.server_processing_seconds),
            optional(s.latency_seconds),
            seconds(s.bandwidth_seconds),
            seconds(s.congestion_seconds),
            seconds(s.protocol_seconds),
            seconds(o.parallel_seconds),
        ]);
    }
    writeln!(out, "{table}")
}

/// The statistics table.
pub(super) fn print_statistics(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    if summary.statistics.is_empty() {
        return Ok(());
    }
    heading(out, "Statistics", "over all connections")?;
    let mut table = table(&["", "unit", "total", "client", "server"], &[2, 3, 4]);
    let figure = |value: Option<f64>, unit: &str| match value {
        None => "·".to_owned(),
        Some(value) if unit.is_empty() || unit == "bytes" => count(value.round() as u64),
        Some(value) => format!("{value:.6}"),
    };
    for s in &summary.statistics {
        table.add_row(vec![
            s.name.clone(),
            s.unit.clone(),
            figure(s.total, &s.unit),
            figure(s.client, &s.unit),
            figure(s.server, &s.unit),
        ]);
    }
    writeln!(out, "{table}")
}
