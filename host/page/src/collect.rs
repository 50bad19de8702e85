//! What a capture's analysis finds, kept for the page.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_align::Sightings;
use weir_analysis::{Connection, DataBlock, Ends, Sink, Transaction, Verdict};
use weir_messages::v1;
use weir_record::{FlowId, Kind, Record};

use crate::dataset::Dataset;
use crate::packets::Gather;
use crate::span::utc;

/// How much is kept. A connection takes about 2.5 kB, a transaction 450 bytes, a verdict 70, a block 80, a packet 50.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections.
    pub connections: usize,
    /// Transactions.
    pub transactions: usize,
    /// Verdicts on segments.
    pub verdicts: usize,
    /// Data blocks.
    pub blocks: usize,
    /// Packets.
    pub packets: usize,
}

impl Limits {
    /// Of a live stream. A copy is made of what is shown: of packets about 120 MB in all when full, of blocks 180.
    #[must_use]
    pub fn live() -> Self {
        Self {
            blocks: 1_000_000,
            packets: 1_000_000,
            ..Self::default()
        }
    }
}

impl Default for Limits {
    /// About 4.5 GB when all are full.
    fn default() -> Self {
        Self {
            connections: 1_000_000,
            transactions: 2_000_000,
            verdicts: 1_000_000,
            blocks: 4_000_000,
            packets: 8_000_000,
        }
    }
}

/// What of one kind was found and is not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// How many.
    pub count: u64,
    /// First and last moment of them, UTC ns since 1970.
    pub span: Option<(i64, i64)>,
}

impl Missing {
    /// So many that were there up to a moment (UTC ns since 1970) and from the begin on, if any.
    pub const fn until(count: u64, until: i64) -> Self {
        let span = if count > 0 { Some((i64::MIN, until)) } else { None };
        Self { count, span }
    }

    /// One more, from a moment to another, TAI ns.
    pub fn add(&mut self, from: u64, to: u64) {
        let (from, to) = (utc(from), utc(to));
        self.count += 1;
        self.span = Some(self.span.map_or((from, to), |(a, b)| (a.min(from), b.max(to))));
    }
}

/// What was found and is not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Connections.
    pub connections: Missing,
    /// Transactions.
    pub transactions: Missing,
    /// Verdicts on segments.
    pub verdicts: Missing,
    /// Data blocks.
    pub blocks: Missing,
    /// Packets.
    pub packets: u64,
}

/// Several captures of one path.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// Where each was taken.
    pub taps: Vec<v1::Tap>,
    /// What lies between them.
    pub legs: Vec<v1::Leg>,
    /// Whose time it was.
    pub pies: Vec<v1::Pie>,
    /// Packet by packet.
    pub sightings: Sightings,
}

/// Everything that a [`Dataset`] is made of, in any order.
#[derive(Debug, Default)]
pub struct Parts {
    /// Connections.
    pub connections: Vec<Arc<v1::Connection>>,
    /// Transactions.
    pub transactions: Vec<Arc<v1::Transaction>>,
    /// Verdicts on segments.
    pub verdicts: Vec<Verdict>,
    /// Data blocks.
    pub blocks: Vec<DataBlock>,
    /// Packets, if they are kept.
    pub packets: Option<Gather>,
    /// Findings.
    pub findings: Vec<v1::Finding>,
    /// The whole in figures.
    pub summary: v1::Summary,
    /// Taps, if there are several.
    pub path: Path,
    /// Connections with a request that has no response yet, and its first packet, TAI ns.
    pub waiting: Vec<(FlowId, u64)>,
    /// When a stream that goes on began, TAI ns.
    pub begin: Option<u64>,
    /// The time of a stream that goes on, whatever it brings, TAI ns; else 0.
    pub now: u64,
    /// What is not in it.
    pub dropped: Dropped,
    /// Connections and transactions are all kept from here on, UTC ns since 1970; none: from the begin on, or not to the end.
    pub kept_since: Option<i64>,
}

/// Keeps the first of everything, up to the limits.
#[derive(Debug)]
pub struct Collector {
    limits: Limits,
    parts: Parts,
    packets: Gather,
}

impl Collector {
    /// Nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            parts: Parts::default(),
            packets: Gather::first_of(limits.packets),
        }
    }

    /// Records as they go into the analysis.
    pub fn records(&mut self, records: &[Record]) {
        records.iter().for_each(|record| self.packets.record(record));
    }

    /// Connections so far, for what others know of them.
    pub fn connections_mut(&mut self) -> impl Iterator<Item = &mut v1::Connection> {
        self.parts.connections.iter_mut().map(Arc::make_mut)
    }

    /// All of it.
    pub fn finish(self, summary: v1::Summary, path: Path) -> Dataset {
        let Self { mut parts, packets, .. } = self;
        parts.dropped.packets = packets.dropped;
        Dataset::new(Parts {
            summary,
            path,
            packets: Some(packets),
            ..parts
        })
    }
}

/// Keep it, or count it: it was there from a moment to another, TAI ns.
fn keep<T>(list: &mut Vec<T>, most: usize, dropped: &mut Missing, (from, to): (u64, u64), item: impl FnOnce() -> T) {
    if list.len() < most {
        list.push(item());
    } else {
        dropped.add(from, to);
    }
}

impl Sink for Collector {
    fn connection(&mut self, connection: &Connection<'_>) {
        let Parts {
            connections, dropped, ..
        } = &mut self.parts;
        let (most, missing) = (self.limits.connections, &mut dropped.connections);
        keep(connections, most, missing, connection.span(), || {
            Arc::new(connection.message())
        });
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        let Parts {
            transactions, dropped, ..
        } = &mut self.parts;
        let facts = transaction.facts();
        let end = facts
            .request_time
            .saturating_add(facts.request + facts.end.unwrap_or(0));
        let (most, missing) = (self.limits.transactions, &mut dropped.transactions);
        keep(transactions, most, missing, (facts.request_time, end), || {
            Arc::new(transaction.message())
        });
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.parts.findings.push(finding);
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        let Parts { verdicts, dropped, .. } = &mut self.parts;
        let (most, missing) = (self.limits.verdicts, &mut dropped.verdicts);
        keep(verdicts, most, missing, moments(verdict), || *verdict);
    }

    fn block(&mut self, block: &DataBlock) {
        let Parts { blocks, dropped, .. } = &mut self.parts;
        let (most, missing) = (self.limits.blocks, &mut dropped.blocks);
        keep(blocks, most, missing, (block.first, block.last), || *block);
    }
}

/// When something was lost and came again, TAI ns.
fn moments(verdict: &Verdict) -> (u64, u64) {
    (verdict.lost_at.min(verdict.time), verdict.time)
}

/// What a live stream's facts do not hold: the last verdicts, blocks and packets.
#[derive(Debug)]
pub struct Recent {
    limits: Limits,
    verdicts: VecDeque<Verdict>,
    blocks: VecDeque<DataBlock>,
    packets: Option<Gather>,
    waiting: Vec<(FlowId, u64)>,
    begin: Option<u64>,
    now: u64,
    dropped: Dropped,
}

impl Recent {
    /// Nothing yet. `digests`: the engine is to write PACKET records.
    pub fn new(limits: Limits, digests: bool) -> Self {
        Self {
            limits,
            verdicts: VecDeque::new(),
            blocks: VecDeque::new(),
            packets: digests.then(|| Gather::last_of(limits.packets)),
            waiting: Vec::new(),
            begin: None,
            now: 0,
            dropped: Dropped::default(),
        }
    }

    /// Records as they go into the analysis. A card may send PACKET records that nobody here asked for.
    pub fn records(&mut self, records: &[Record]) {
        if self.begin.is_none() {
            // The summary's start is that of connections that are over: it would move.
            self.begin = records.iter().map(Record::time).filter(|time| *time > 0).min();
        }
        if self.packets.is_none() && records.iter().any(|record| record.kind() == Some(Kind::Packet)) {
            self.packets = Some(Gather::last_of(self.limits.packets));
        }
        if let Some(packets) = &mut self.packets {
            records.iter().for_each(|record| packets.record(record));
        }
    }

    /// A verdict.
    pub fn verdict(&mut self, verdict: &Verdict) {
        self.verdicts.push_back(*verdict);
        if self.verdicts.len() > self.limits.verdicts
            && let Some(oldest) = self.verdicts.pop_front()
        {
            let (from, to) = moments(&oldest);
            self.dropped.verdicts.add(from, to);
        }
    }

    /// A block.
    pub fn block(&mut self, block: &DataBlock) {
        self.blocks.push_back(*block);
        if self.blocks.len() > self.limits.blocks
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.dropped.blocks.add(oldest.first, oldest.last);
        }
    }

    /// It is `now` (TAI ns), and these connections have a request without a response, with its first packet, TAI ns.
    pub fn set_now(&mut self, now: u64, waiting: Vec<(FlowId, u64)>) {
        self.now = now;
        self.waiting = waiting;
    }

    /// How much has come so far, and what time it is, TAI ns.
    pub fn seen(&self) -> (u64, u64) {
        let packets = self.packets.as_ref().map_or(0, Gather::seen);
        let lists = (self.verdicts.len() + self.blocks.len()) as u64;
        let count = lists + self.dropped.verdicts.count + self.dropped.blocks.count + packets;
        (count, self.now)
    }

    /// A copy of them; the rest of the parts is empty.
    pub fn parts(&self) -> Parts {
        Parts {
            verdicts: self.verdicts.iter().copied().collect(),
            blocks: self.blocks.iter().copied().collect(),
            packets: self.packets.clone(),
            waiting: self.waiting.clone(),
            begin: self.begin,
            now: self.now,
            dropped: Dropped {
                packets: self.packets.as_ref().map_or(0, |packets| packets.dropped),
                ..self.dropped
            },
            ..Parts::default()
        }
    }
}
