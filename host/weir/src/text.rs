//! The answer as tables for people: findings first, then what they rest on.
//!
//! Keeps at most the rows that it will print, so that memory does not grow with the capture.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use weir_align::Alignment;
use weir_analysis::pie::is_unknown;
use weir_analysis::{Class, Ends, Sink, Verdict, connections, several};
use weir_api::filter::Order;
use weir_messages::v1::{
    Analysis, Bottleneck, Connection, Diagnosis, Direction, Finding, FindingChange, Leg, Pie, Segment,
    SignatureStatistics, Summary, TimeShares, Transaction,
};

use crate::format::{self, Clock, bytes, count, length, seconds, untracked};
use crate::{text_dialogues, text_load};

const BOLD: Style = Style::new().bold();
/// Directions whose data was under way for less are not worth a row, s.
const SHORT_TRANSFERS: f64 = 0.01;
/// Transactions in progress at once on average, from which on shares of their time need a word.
const PARALLEL: f64 = 1.2;
/// Bottlenecks shown.
const MOST_BOTTLENECKS: usize = 5;
const DIM: Style = Style::new().dimmed();

/// Collects what the text report shows.
pub struct Collector {
    rows: usize,
    first: Vec<Connection>,
    /// The connections with most trouble, most first.
    troubled: Vec<(u64, Connection)>,
    /// The order that was asked for, and the first connections in it.
    ordered: Option<(Order<Connection>, Vec<Connection>)>,
    connections: u64,
    outcomes: BTreeMap<&'static str, u64>,
    closes: BTreeMap<&'static str, u64>,
    findings: Vec<Finding>,
    /// Kept only when they are wanted.
    segments: Option<Vec<Verdict>>,
    /// Ends of the connections that have segments to tell of.
    ends: HashMap<u64, (String, String)>,
}

impl Collector {
    /// Keep `rows` rows of each table, and all segments when they are wanted.
    pub fn new(rows: usize, segments: bool) -> Self {
        Self {
            rows,
            ordered: None,
            segments: segments.then(Vec::new),
            ends: HashMap::new(),
            first: Vec::new(),
            troubled: Vec::new(),
            connections: 0,
            outcomes: BTreeMap::new(),
            closes: BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    /// Show the first connections in this order, if it is one.
    pub fn ordered(mut self, order: Order<Connection>) -> Self {
        self.ordered = (!order.is_empty()).then(|| (order, Vec::new()));
        self
    }
}

/// What the tables of large captures are sorted by.
fn trouble(connection: &weir_analysis::Connection<'_>) -> u64 {
    connection.trouble() + 10 * u64::from(connection.failed())
}

impl Sink for Collector {
    fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
        self.connections += 1;
        if let Some(outcome) = connection.outcome() {
            *self.outcomes.entry(outcome).or_default() += 1;
        }
        *self.closes.entry(connection.close_kind()).or_default() += 1;
        if self.segments.is_some() && connection.has_trouble() {
            let message = connection.message();
            self.ends
                .insert(message.id, (end(&message.client), end(&message.server)));
        }
        if let Some((order, first)) = &mut self.ordered {
            let message = connection.message();
            let at = first.partition_point(|other| order.compare(other, &message).is_le());
            if at < self.rows {
                first.truncate(self.rows - 1);
                first.insert(at, message);
            }
            return;
        }
        let score = trouble(connection);
        let least = self.troubled.last().map_or(0, |(least, _)| *least);
        if score > 0 && (self.troubled.len() < self.rows || score > least) {
            let at = self.troubled.partition_point(|(other, _)| *other >= score);
            self.troubled.insert(at, (score, connection.message()));
            self.troubled.truncate(self.rows);
        }
        if self.first.len() < self.rows {
            self.first.push(connection.message());
        }
    }

    fn transaction(&mut self, _: &weir_analysis::Transaction<'_>) {}

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        if let Some(segments) = &mut self.segments {
            segments.push(*verdict);
        }
    }
}

/// A table with these columns to the right.
pub fn table(headers: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(
        headers
            .iter()
            .map(|h| Cell::new(h).add_attribute(comfy_table::Attribute::Underlined)),
    );
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A title above a table.
pub fn heading(out: &mut dyn Write, title: &str, note: &str) -> io::Result<()> {
    writeln!(out, "\n{BOLD}{title}{BOLD:#} {DIM}{note}{DIM:#}")
}

impl Collector {
    /// Print the report about `name`.
    pub fn print(mut self, name: &str, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
        self.header(name, summary, out)?;
        let note = if self.findings.is_empty() { "none" } else { "" };
        print_findings(&self.findings, note, out)?;
        text_load::print(summary, out)?;
        print_times(summary, out)?;
        print_operations(summary, self.rows, out)?;
        print_setups(&summary.signatures, self.rows, out)?;
        text_dialogues::print(summary, self.rows, out)?;
        let all = self.connections <= self.rows as u64;
        let (shown, which) = match self.ordered.take() {
            Some((_, first)) => (first, "the first in this order"),
            None => {
                let mut shown: Vec<Connection> = if all || self.troubled.is_empty() {
                    std::mem::take(&mut self.first)
                } else {
                    let troubled = std::mem::take(&mut self.troubled).into_iter();
                    troubled.map(|(_, connection)| connection).collect()
                };
                shown.sort_by_key(|c| c.first_packet_time.map(|t| (t.seconds, t.nanos)));
                (shown, "those with most trouble")
            }
        };
        let note = if all {
            count(self.connections)
        } else {
            let (shown, all) = (count(shown.len() as u64), count(self.connections));
            format!("{shown} of {all}, {which}; --rows shows more")
        };
        let clock = Clock::of(summary);
        print_connections(&shown, &note, clock, out)?;
        print_losses(&shown, out)?;
        print_limits(&shown, out)?;
        if let Some(mut segments) = self.segments.take() {
            segments.sort_by_key(|s| s.time);
            let segments: Vec<Segment> = segments.iter().map(Verdict::message).collect();
            print_segments(&segments, &count(segments.len() as u64), &self.ends, clock, out)?;
        }
        print_transactions(&summary.signatures, self.rows, out)?;
        print_statistics(summary, out)?;
        print_untracked(summary, out)
    }

    fn header(&self, name: &str, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{BOLD}{name}{BOLD:#}")?;
        writeln!(
            out,
            "  {} ({} TCP){}{}",
            several(summary.packets, "packet", "packets"),
            count(summary.tcp_packets),
            length(summary),
            summary
                .start
                .as_ref()
                .map_or_else(String::new, |t| format!(", from {t}"))
        )?;
        let list = |map: &BTreeMap<&str, u64>| {
            map.iter()
                .map(|(name, n)| format!("{} {name}", count(*n)))
                .collect::<Vec<_>>()
                .join(", ")
        };
        write!(out, "  {}", connections(summary.connections))?;
        // An empty capture has neither.
        if !self.outcomes.is_empty() {
            write!(out, ": setup {}", list(&self.outcomes))?;
        }
        writeln!(out)?;
        if !self.closes.is_empty() {
            writeln!(out, "  closed by: {}", list(&self.closes))?;
        }
        writeln!(
            out,
            "  {}",
            several(summary.transactions, "transaction", "transactions")
        )?;
        if let Some(rate) = &summary.retransmission_rate {
            writeln!(
                out,
                "  {:.3} % of {} data packets retransmitted",
                100.0 * rate.total,
                count(rate.data_packets)
            )?;
        }
        if summary.capture_loss > 0 {
            writeln!(
                out,
                "  {} missed by the capture itself",
                several(summary.capture_loss, "packet", "packets")
            )?;
        }
        Ok(())
    }
}

/// The findings in the order of the report: most serious first.
fn print_findings(findings: &[Finding], note: &str, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "Findings", note)?;
    for finding in weir_report::ranked(findings) {
        let color = match finding.severity.as_str() {
            "CRITICAL" => AnsiColor::Red,
            "WARNING" => AnsiColor::Yellow,
            _ => AnsiColor::Cyan,
        };
        let style = Style::new().bold().fg_color(Some(color.into()));
        writeln!(
            out,
            "  {style}{}{style:#} {} {DIM}({}, confidence {:.0} %){DIM:#}",
            finding.severity,
            finding.title,
            finding.kind,
            100.0 * finding.confidence
        )?;
        for line in &finding.evidence {
            writeln!(out, "      {line}")?;
        }
    }
    Ok(())
}

/// A finding opened, changed or closed, in a line.
pub fn finding_change(change: &FindingChange) -> String {
    let time = change.time.map_or_else(String::new, |time| time.to_string());
    let what = change.kind().as_str_name().trim_start_matches("KIND_");
    let id = change.id;
    let Some(finding) = &change.finding else {
        return format!("{time} {what:7} finding {id}");
    };
    let Finding {
        severity,
        kind,
        title,
        who,
        ..
    } = finding;
    let who = if who.is_empty() {
        String::new()
    } else {
        format!(" [{who}]")
    };
    format!("{time} {what:7} finding {id}: {severity} {kind}{who}: {title}")
}

fn print_setups(signatures: &[SignatureStatistics], rows: usize, out: &mut dyn Write) -> io::Result<()> {
    let setups: Vec<_> = signatures
        .iter()
        .filter(|s| s.signature.starts_with("Open Conn"))
        .collect();
    if setups.is_empty() {
        return Ok(());
    }
    heading(
        out,
        "Connection setups",
        "response = last SYN to answer, end = first SYN to the end",
    )?;
    let mut table = table(
        &[
            "count",
            "response min",
            "average",
            "max",
            "end average",
            "max",
            "description",
        ],
        &[0, 1, 2, 3, 4, 5],
    );
    for s in setups.iter().take(rows) {
        table.add_row(vec![
            count(s.count),
            optional(s.server_seconds_min),
            optional(s.server_seconds_average),
            optional(s.server_seconds_max),
            optional(s.end_seconds_average),
            optional(s.end_seconds_max),
            s.signature.clone(),
        ]);
    }
    writeln!(out, "{table}")
}

/// A count, if there is any.
pub fn some(n: u64) -> String {
    if n == 0 { "·".into() } else { count(n) }
}

/// Seconds, where they are known.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), seconds)
}

/// Address and port, where they are known.
pub fn end(endpoint: &Option<weir_messages::v1::Endpoint>) -> String {
    endpoint.as_ref().map_or_else(String::new, format::endpoint)
}

fn rtt(direction: &Option<Direction>) -> String {
    let rtt = direction.as_ref().and_then(|d| d.rtt.as_ref());
    match rtt {
        Some(rtt) if rtt.samples > 0 => format!("{} / {}", optional(rtt.min_seconds), optional(rtt.median_seconds)),
        _ => "-".into(),
    }
}

fn kilobits(direction: &Direction) -> String {
    let rate = direction.payload_bits_per_second;
    rate.map_or_else(|| "-".into(), |rate| count((rate / 1e3).round() as u64))
}

fn print_connections(shown: &[Connection], note: &str, clock: Clock, out: &mut dyn Write) -> io::Result<()> {
    if shown.is_empty() {
        return Ok(());
    }
    heading(out, "Connections", note)?;
    let mut table = table(
        &[
            "start",
            "client",
            "server",
            "setup",
            "closed",
            "duration",
            "turns",
            "packets →",
            "←",
            "bytes →",
            "←",
            "kbit/s →",
            "←",
            "sent again →",
            "←",
            "SACKs →",
            "←",
            "RTT server min / median",
            "RTT client",
        ],
        &[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18],
    );
    for c in shown {
        let (to_server, to_client) = (
            c.client_to_server.unwrap_or_default(),
            c.server_to_client.unwrap_or_default(),
        );
        table.add_row(vec![
            clock.known(c.first_packet_time.as_ref()),
            end(&c.client),
            end(&c.server),
            c.setup.as_ref().map_or_else(String::new, |s| s.outcome.clone()),
            c.close.as_ref().map_or_else(String::new, |s| s.kind.clone()),
            seconds(c.duration_seconds),
            count(u64::from(c.turns)),
            count(to_server.packets),
            count(to_client.packets),
            bytes(to_server.payload_bytes),
            bytes(to_client.payload_bytes),
            kilobits(&to_server),
            kilobits(&to_client),
            some(to_server.retransmitted_packets),
            some(to_client.retransmitted_packets),
            some(to_server.sack_blocks),
            some(to_client.sack_blocks),
            rtt(&c.client_to_server),
            rtt(&c.server_to_client),
        ]);
    }
    writeln!(out, "{table}")
}

fn print_losses(shown: &[Connection], out: &mut dyn Write) -> io::Result<()> {
    let mut table = table(
        &[
            "from",
            "to",
            "packets",
            "retransmitted",
            "fast",
            "timeout",
            "tail probe",
            "spurious",
            "unknown",
            "episodes",
            "reordered",
            "copies",
            "lost before tap",
            "after tap",
            "not known",
            "ACKs",
            "missed by capture",
            "zero windows",
        ],
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17],
    );
    let mut any = false;
    for c in shown {
        for (d, from, to) in [
            (&c.client_to_server, &c.client, &c.server),
            (&c.server_to_client, &c.server, &c.client),
        ] {
            let Some(d) = d else { continue };
            let figures = [
                d.retransmitted_packets,
                d.fast_retransmissions,
                d.timeout_retransmissions,
                d.tail_loss_probes,
                d.spurious_retransmissions,
                d.unknown_retransmissions,
                d.retransmission_episodes,
                d.out_of_order,
                d.network_duplicates,
                d.lost_upstream,
                d.lost_downstream,
                d.lost_unknown,
                d.lost_acks,
                d.missed_by_capture,
                d.zero_windows,
            ];
            if figures.iter().all(|&n| n == 0) {
                continue;
            }
            any = true;
            let mut row = vec![end(from), end(to), count(d.packets)];
            row.extend(figures.iter().map(|&n| some(n)));
            table.add_row(row);
        }
    }
    if any {
        heading(
            out,
            "Losses and repeats",
            "segments, by direction; 'before tap' is the sender's side",
        )?;
        writeln!(out, "{table}")?;
    }
    Ok(())
}

fn print_segments(
    segments: &[Segment],
    note: &str,
    ends: &HashMap<u64, (String, String)>,
    clock: Clock,
    out: &mut dyn Write,
) -> io::Result<()> {
    heading(out, "Segments that came twice, late or never", note)?;
    let mut table = table(
        &[
            "time", "from", "to", "seq", "bytes", "what", "why", "lost", "sure", "episode", "evidence",
        ],
        &[3, 4, 8, 9],
    );
    for s in segments {
        // Who has the connection's id alone says that.
        let unknown = || {
            (
                format!("{} client", s.connection_id),
                format!("{} server", s.connection_id),
            )
        };
        let (client, server) = ends.get(&s.connection_id).cloned().unwrap_or_else(unknown);
        let (from, to) = if s.from_server {
            (server, client)
        } else {
            (client, server)
        };
        let sent_again = s.class == Class::Retransmission.name();
        table.add_row(vec![
            clock.known(s.time.as_ref()),
            from,
            to,
            s.seq.to_string(),
            s.length.to_string(),
            s.class.clone(),
            if sent_again { s.cause.clone() } else { String::new() },
            s.place.clone(),
            format!("{:.0} %", 100.0 * s.confidence),
            if sent_again {
                s.episode.to_string()
            } else {
                String::new()
            },
            s.evidence.join(" "),
        ]);
    }
    writeln!(out, "{table}")
}

/// Whose time it was and what cost most, over everything and in the range that was marked.
fn print_times(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
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

/// The statistics table.
fn print_statistics(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
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

/// Operations, the longest first.
fn print_operations(summary: &Summary, rows: usize, out: &mut dyn Write) -> io::Result<()> {
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

/// What limited the directions that were under way for long.
fn print_limits(shown: &[Connection], out: &mut dyn Write) -> io::Result<()> {
    let mut table = table(
        &[
            "from",
            "to",
            "bytes",
            "application",
            "sender",
            "receiver's window",
            "congestion window",
            "bandwidth",
            "unknown",
            "Mbit/s",
            "ceilings: window",
            "sender",
            "loss",
            "link",
        ],
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
    );
    let mut any = false;
    for c in shown {
        for (d, from, to) in [
            (&c.client_to_server, &c.client, &c.server),
            (&c.server_to_client, &c.server, &c.client),
        ] {
            let Some((d, l)) = d.as_ref().and_then(|d| Some((d, d.limit_seconds?))) else {
                continue;
            };
            let network = [l.sender, l.receiver_window, l.congestion, l.bandwidth, l.unknown];
            if network.iter().sum::<f64>() < SHORT_TRANSFERS {
                continue;
            }
            any = true;
            let mut row = vec![end(from), end(to), bytes(d.payload_bytes), seconds(l.application)];
            row.extend(network.iter().map(|&s| if s == 0.0 { "·".into() } else { seconds(s) }));
            let c = d.ceilings.unwrap_or_default();
            let rates = [
                c.measured_bits_per_second,
                c.receiver_window_bits_per_second,
                c.sender_bits_per_second,
                c.loss_bits_per_second,
                c.link_bits_per_second,
            ];
            row.extend(rates.map(|rate| rate.map_or_else(|| "·".into(), |rate| format!("{:.3}", rate / 1e6))));
            table.add_row(row);
        }
    }
    if any {
        heading(
            out,
            "What limited transfers",
            "time of data under way, and of an application with nothing to send",
        )?;
        writeln!(out, "{table}")?;
    }
    Ok(())
}

fn print_transactions(signatures: &[SignatureStatistics], rows: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut data: Vec<_> = signatures
        .iter()
        .filter(|s| !s.signature.starts_with("Open Conn"))
        .collect();
    if data.is_empty() {
        return Ok(());
    }
    data.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.signature.cmp(&b.signature)));
    let note = format!(
        "{} of {} signatures, most frequent first",
        data.len().min(rows),
        data.len()
    );
    heading(out, "Transactions", &note)?;
    let mut table = table(
        &[
            "count",
            "1st / 2nd / 3rd / later",
            "client average",
            "request",
            "server min",
            "average",
            "max",
            "response",
            "end average",
            "max",
            "losses",
            "signature",
        ],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    );
    for s in data.iter().take(rows) {
        let positions: Vec<_> = s.positions.iter().map(|&n| some(n)).collect();
        table.add_row(vec![
            count(s.count),
            positions.join(" / "),
            optional(s.client_average_seconds),
            bytes(s.request_bytes_average.round() as u64),
            optional(s.server_seconds_min),
            optional(s.server_seconds_average),
            optional(s.server_seconds_max),
            bytes(s.response_bytes_average.round() as u64),
            optional(s.end_seconds_average),
            optional(s.end_seconds_max),
            some(s.losses),
            s.signature.clone(),
        ]);
    }
    writeln!(out, "{table}")
}

fn print_untracked(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    if let Some(list) = untracked(summary) {
        heading(out, "Not in any flow", &list)?;
    }
    if summary.clamped_times > 0 {
        heading(
            out,
            "Times out of order",
            &format!(
                "in {}, which took the time of the packet before",
                several(summary.clamped_times, "packet", "packets")
            ),
        )?;
    }
    Ok(())
}

fn print_each_transaction(transactions: &[Transaction], note: &str, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "Transactions", note)?;
    let mut table = table(
        &[
            "start",
            "connection",
            "#",
            "request",
            "response",
            "request time",
            "server",
            "response time",
            "losses",
            "signature",
        ],
        &[2, 3, 4, 5, 6, 7, 8],
    );
    let clock = Clock::of_times(transactions.iter().filter_map(|t| t.request_time));
    for t in transactions {
        table.add_row(vec![
            clock.known(t.request_time.as_ref()),
            t.connection_id.to_string(),
            t.index.to_string(),
            bytes(t.request_bytes),
            bytes(t.response_bytes),
            seconds(t.request_seconds),
            optional(t.server_seconds),
            optional(t.response_seconds),
            t.losses.to_string(),
            t.signature.clone(),
        ]);
    }
    writeln!(out, "{table}")
}

/// What a query returned of `all` that match, as tables.
pub fn print_answer(answer: &Analysis, all: u64, out: &mut dyn Write) -> io::Result<()> {
    let note = |shown: usize| match shown as u64 {
        shown if shown < all => format!("{} of {}; --limit shows more", count(shown), count(all)),
        shown => count(shown),
    };
    if let Some(summary) = &answer.summary {
        print_times(summary, out)?;
        print_statistics(summary, out)?;
        print_setups(&summary.signatures, usize::MAX, out)?;
        print_transactions(&summary.signatures, usize::MAX, out)?;
        print_untracked(summary, out)?;
    }
    if !answer.findings.is_empty() {
        print_findings(&answer.findings, &note(answer.findings.len()), out)?;
    }
    if !answer.connections.is_empty() {
        let clock = Clock::of_times(answer.connections.iter().filter_map(|c| c.first_packet_time));
        print_connections(&answer.connections, &note(answer.connections.len()), clock, out)?;
        print_losses(&answer.connections, out)?;
        print_limits(&answer.connections, out)?;
    }
    if !answer.transactions.is_empty() {
        print_each_transaction(&answer.transactions, &note(answer.transactions.len()), out)?;
    }
    if !answer.segments.is_empty() {
        let clock = Clock::of_times(answer.segments.iter().filter_map(|s| s.time));
        print_segments(
            &answer.segments,
            &note(answer.segments.len()),
            &HashMap::new(),
            clock,
            out,
        )?;
    }
    let empty = Analysis::default();
    if *answer == empty {
        writeln!(out, "nothing matches")?;
    }
    Ok(())
}

/// The path with its taps and legs, then the figures of each.
pub fn print_alignment(alignment: &Alignment, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "Path", "client on the left")?;
    let names: Vec<String> = alignment.taps.iter().map(|tap| file_name(&tap.file)).collect();
    write!(out, "  client ──")?;
    for (k, name) in names.iter().enumerate() {
        if k > 0 {
            write!(out, "── leg {k} ──")?;
        }
        write!(out, "[{name}]")?;
    }
    writeln!(out, "── server")?;
    for (k, leg) in alignment.legs.iter().enumerate() {
        print_leg(k + 1, leg, out)?;
    }
    heading(
        out,
        "Taps",
        "TTL and MAC: of packets from the client's and the server's side",
    )?;
    let mut table = table(
        &[
            "tap",
            "packets",
            "connections",
            "only here",
            "missed by capture",
            "TTL",
            "MAC",
        ],
        &[1, 2, 3, 4],
    );
    for (name, tap) in names.iter().zip(&alignment.taps) {
        let ttl = |ttl: Option<u32>| ttl.map_or_else(|| "-".to_owned(), |ttl| ttl.to_string());
        let macs = if tap.mac_client_side.is_empty() && tap.mac_server_side.is_empty() {
            "-".to_owned()
        } else {
            format!("{}, {}", tap.mac_client_side, tap.mac_server_side)
        };
        table.add_row(vec![
            name.clone(),
            count(tap.packets),
            count(tap.connections),
            count(tap.connections_only_here),
            count(tap.missed_by_capture),
            format!("{}, {}", ttl(tap.ttl_client_side), ttl(tap.ttl_server_side)),
            macs,
        ]);
    }
    writeln!(out, "{table}")?;
    for (name, tap) in names.iter().zip(&alignment.taps) {
        if tap.given_up > 0 {
            writeln!(
                out,
                "  {name}: {} packets were given up: the matching window was full",
                count(tap.given_up)
            )?;
        }
    }
    print_pies(&alignment.pies, out)
}

fn file_name(path: &str) -> String {
    std::path::Path::new(path)
        .file_name()
        .map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn print_leg(number: usize, leg: &Leg, out: &mut dyn Write) -> io::Result<()> {
    let note = format!("{} to {}", file_name(&leg.from), file_name(&leg.to));
    heading(out, &format!("Leg {number}"), &note)?;
    let directions = [
        (
            "→",
            &leg.delay_forward,
            [leg.arrived_forward, leg.lost_forward],
            leg.duplicated_forward,
        ),
        (
            "←",
            &leg.delay_backward,
            [leg.arrived_backward, leg.lost_backward],
            leg.duplicated_backward,
        ),
    ];
    for (arrow, delay, [arrived, lost], duplicated) in directions {
        write!(out, "  {arrow} ")?;
        match delay {
            Some(d) => write!(
                out,
                "delay {} min, {} median, {} p95, {} max",
                seconds(d.min_seconds),
                seconds(d.median_seconds),
                seconds(d.p95_seconds),
                seconds(d.max_seconds)
            )?,
            None => write!(out, "no delay to tell")?,
        }
        let sent = arrived + lost;
        let share = 100.0 * lost as f64 / sent.max(1) as f64;
        write!(out, "; lost {} of {} ({share:.2} %)", count(lost), count(sent))?;
        if duplicated > 0 {
            write!(out, "; {} came twice", count(duplicated))?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "  {} packets in both, {} only in {}, {} only in {}; {} undecided, {} while one capture was not running",
        count(leg.matched),
        count(leg.only_from),
        file_name(&leg.from),
        count(leg.only_to),
        file_name(&leg.to),
        count(leg.undecided),
        count(leg.outside)
    )?;
    let clock = Clock::of_times(leg.clock.iter().filter_map(|piece| piece.start));
    for (k, piece) in leg.clock.iter().enumerate() {
        let since = match (&piece.start, k) {
            (Some(start), 1..) => format!("from {} on: ", clock.time(start)),
            _ => String::new(),
        };
        writeln!(
            out,
            "  clock of {} {since}{:+.6} s ± {}, drifting by {:+.2} ppm",
            file_name(&leg.to),
            piece.offset_seconds,
            seconds(piece.offset_width_seconds / 2.0),
            piece.skew_ppm
        )?;
    }
    for line in &leg.placement {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// The pies as text.
pub fn print_pies(pies: &[Pie], out: &mut dyn Write) -> io::Result<()> {
    for pie in pies {
        heading(
            out,
            &format!("{} pie", pie.method.to_lowercase().replace('_', " ")),
            &match pie.uncertainty_seconds {
                Some(uncertainty) if uncertainty > 0.0 => {
                    format!("of {}, ± {}", seconds(pie.total_seconds), seconds(uncertainty))
                }
                _ => format!("of {}", seconds(pie.total_seconds)),
            },
        )?;
        let parts = [
            ("client", pie.client_seconds),
            ("network", pie.network_seconds),
            ("server", pie.server_seconds),
        ];
        for (name, value) in parts {
            let share = if pie.total_seconds > 0.0 {
                value / pie.total_seconds
            } else {
                0.0
            };
            let bar = "█".repeat((share.clamp(0.0, 1.0) * 40.0).round() as usize);
            writeln!(out, "  {name:8} {value:10.6} s {:5.1} % {bar}", 100.0 * share)?;
        }
    }
    Ok(())
}
