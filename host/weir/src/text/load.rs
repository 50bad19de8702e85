//! Load over time as tables: phases, and the time line when it was asked for.

use std::io::{self, Write};

use weir_messages::Timestamp;
use weir_messages::v1::{Phase, PhaseService, Summary, Tier, TimePercentiles, TimeSlice};

use super::{end, heading, table};
use crate::format::{bytes, count, seconds};

/// Print what there is of it.
pub fn print(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let start = summary.start.as_ref();
    if summary.phases.len() > 1 {
        print_phases(&summary.phases, start, out)?;
    }
    if !summary.tiers.is_empty() {
        print_tiers(&summary.tiers, out)?;
    }
    if !summary.timeline.is_empty() {
        print_timeline(&summary.timeline, start, out)?;
    }
    Ok(())
}

/// Seconds since the first packet; the first slice begins before it.
fn since(start: Option<&Timestamp>, time: Option<&Timestamp>) -> String {
    let ns = |time: Option<&Timestamp>| time.map_or(0, |time| time.unix_nanos());
    format!("{:.3}", (ns(time) - ns(start)).max(0) as f64 / 1e9)
}

fn times(of: Option<&TimePercentiles>) -> [String; 3] {
    of.map_or_else(Default::default, |of| {
        [of.p50_seconds, of.p95_seconds, of.max_seconds].map(seconds)
    })
}

fn print_phases(phases: &[Phase], start: Option<&Timestamp>, out: &mut dyn Write) -> io::Result<()> {
    heading(
        out,
        "Phases",
        "times with about as many connections open; at once: means; response: last request packet to last response packet",
    )?;
    let headers = [
        "from s",
        "to s",
        "service",
        "connections",
        "at once",
        "in progress",
        "conn/s",
        "trans/s",
        "lost",
        "SYNs again",
        "response p50",
        "p95",
        "max",
    ];
    let mut rows = table(&headers, &[0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    for phase in phases {
        let (from, to) = (since(start, phase.start.as_ref()), since(start, phase.end.as_ref()));
        let mut edges = [from, to];
        for service in &phase.services {
            rows.add_row(edges.into_iter().chain(cells(service)));
            edges = Default::default();
        }
    }
    writeln!(out, "{rows}")
}

fn print_tiers(tiers: &[Tier], out: &mut dyn Write) -> io::Result<()> {
    heading(
        out,
        "Tiers",
        "services whose host asks another; explained: a call is under way; decided: of which request a call is",
    )?;
    let headers = [
        "front",
        "back",
        "requests",
        "calls",
        "calls each",
        "request time",
        "explained",
        "",
        "calls alone",
        "decided",
        "ambiguous",
    ];
    let mut rows = table(&headers, &[2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for tier in tiers {
        rows.add_row(vec![
            end(&tier.front),
            end(&tier.back),
            count(tier.requests),
            count(tier.calls),
            format!("{:.1}", tier.calls_per_request),
            seconds(tier.request_seconds),
            seconds(tier.explained_seconds),
            format!(
                "{:.1} %{}",
                100.0 * tier.explained_share,
                if tier.calls_side_by_side { " (side by side)" } else { "" }
            ),
            count(tier.calls_alone),
            count(tier.calls_decided),
            count(tier.calls_ambiguous),
        ]);
    }
    writeln!(out, "{rows}")
}

fn cells(service: &PhaseService) -> Vec<String> {
    let mut cells = vec![
        end(&service.server),
        count(service.connections),
        format!("{:.1}", service.concurrent_connections),
        format!("{:.1}", service.transactions_in_progress),
        format!("{:.1}", service.connections_per_second),
        format!("{:.1}", service.transactions_per_second),
        count(service.lost_segments),
        count(service.repeated_setup_packets),
    ];
    cells.extend(times(service.response.as_ref()));
    cells
}

/// Slices; their times are seconds since `start`.
pub fn print_timeline(slices: &[TimeSlice], start: Option<&Timestamp>, out: &mut dyn Write) -> io::Result<()> {
    let width = slices.iter().map(|slice| slice.seconds).fold(0.0, f64::max);
    let note = format!(
        "slices of {}, of the first and the last what the input has of them; connections and transactions at once are means",
        seconds(width)
    );
    heading(out, "Time line", &note)?;
    let headers = [
        "s",
        "connections",
        "in progress",
        "opened",
        "responses",
        "client",
        "server",
        "lost",
        "SYNs again",
        "setup p50",
        "p95",
        "max",
        "response p50",
        "p95",
        "max",
    ];
    let right: Vec<usize> = (0..headers.len()).collect();
    let mut rows = table(&headers, &right);
    for slice in slices {
        let mut cells = vec![
            since(start, slice.start.as_ref()),
            format!("{:.1}", slice.concurrent_connections),
            format!("{:.1}", slice.transactions_in_progress),
            count(slice.connections_opened),
            count(slice.responses),
            bytes(slice.client_bytes),
            bytes(slice.server_bytes),
            count(slice.client_lost + slice.server_lost),
            count(slice.repeated_syns + slice.repeated_syn_acks),
        ];
        cells.extend(times(slice.setup.as_ref()));
        cells.extend(times(slice.response.as_ref()));
        rows.add_row(cells);
    }
    writeln!(out, "{rows}")
}
