//! The answer as tables for people: findings first, then what they rest on.
//!
//! Keeps at most the rows that it will print, so that memory does not grow with the capture.

mod connections;
mod dialogues;
pub mod findings;
mod limits;
pub mod load;
mod losses;
pub mod taps;
mod times;
mod transactions;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use anstyle::Style;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use weir_analysis::{Ends, Sink, Verdict, connections, several};
use weir_api::filter::Order;
use weir_messages::v1::{Analysis, Connection, Finding, Segment, Summary};

use crate::format::{self, Clock, count, length, seconds, untracked};

const BOLD: Style = Style::new().bold();
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
        findings::print(&self.findings, note, out)?;
        load::print(summary, out)?;
        times::print(summary, out)?;
        times::print_operations(summary, self.rows, out)?;
        connections::print_setups(&summary.signatures, self.rows, out)?;
        dialogues::print(summary, self.rows, out)?;
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
        connections::print(&shown, &note, clock, out)?;
        losses::print(&shown, out)?;
        limits::print(&shown, out)?;
        if let Some(mut segments) = self.segments.take() {
            segments.sort_by_key(|s| s.time);
            let segments: Vec<Segment> = segments.iter().map(Verdict::message).collect();
            losses::print_segments(&segments, &count(segments.len() as u64), &self.ends, clock, out)?;
        }
        transactions::print(&summary.signatures, self.rows, out)?;
        times::print_statistics(summary, out)?;
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

/// What a query returned of `all` that match, as tables.
pub fn print_answer(answer: &Analysis, all: u64, out: &mut dyn Write) -> io::Result<()> {
    let note = |shown: usize| match shown as u64 {
        shown if shown < all => format!("{} of {}; --limit shows more", count(shown), count(all)),
        shown => count(shown),
    };
    if let Some(summary) = &answer.summary {
        times::print(summary, out)?;
        times::print_statistics(summary, out)?;
        connections::print_setups(&summary.signatures, usize::MAX, out)?;
        transactions::print(&summary.signatures, usize::MAX, out)?;
        print_untracked(summary, out)?;
    }
    if !answer.findings.is_empty() {
        findings::print(&answer.findings, &note(answer.findings.len()), out)?;
    }
    if !answer.connections.is_empty() {
        let clock = Clock::of_times(answer.connections.iter().filter_map(|c| c.first_packet_time));
        connections::print(&answer.connections, &note(answer.connections.len()), clock, out)?;
        losses::print(&answer.connections, out)?;
        limits::print(&answer.connections, out)?;
    }
    if !answer.transactions.is_empty() {
        transactions::print_each(&answer.transactions, &note(answer.transactions.len()), out)?;
    }
    if !answer.segments.is_empty() {
        let clock = Clock::of_times(answer.segments.iter().filter_map(|s| s.time));
        losses::print_segments(
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
