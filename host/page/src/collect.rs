//! What a capture's analysis finds, kept for the page.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_align::Sightings;
use weir_analysis::{Connection, DataBlock, Ends, Sink, Transaction, Verdict};
use weir_messages::v1;
use weir_record::{Kind, Record};

use crate::dataset::Dataset;
use crate::packets::Gather;

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
    /// Of a live stream. A copy is made of what is shown: of packets about 120 MB in all when full.
    #[must_use]
    pub fn live() -> Self {
        Self {
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

/// What was found and is not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Connections.
    pub connections: u64,
    /// Transactions.
    pub transactions: u64,
    /// Verdicts on segments.
    pub verdicts: u64,
    /// Data blocks.
    pub blocks: u64,
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
    /// What is not in it.
    pub dropped: Dropped,
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

/// Keep it, or count it.
fn keep<T>(list: &mut Vec<T>, most: usize, dropped: &mut u64, item: impl FnOnce() -> T) {
    if list.len() < most {
        list.push(item());
    } else {
        *dropped += 1;
    }
}

impl Sink for Collector {
    fn connection(&mut self, connection: &Connection<'_>) {
        let Parts {
            connections, dropped, ..
        } = &mut self.parts;
        keep(connections, self.limits.connections, &mut dropped.connections, || {
            Arc::new(connection.message())
        });
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        let Parts {
            transactions, dropped, ..
        } = &mut self.parts;
        keep(
            transactions,
            self.limits.transactions,
            &mut dropped.transactions,
            || Arc::new(transaction.message()),
        );
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.parts.findings.push(finding);
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        let Parts { verdicts, dropped, .. } = &mut self.parts;
        keep(verdicts, self.limits.verdicts, &mut dropped.verdicts, || *verdict);
    }

    fn block(&mut self, block: &DataBlock) {
        let Parts { blocks, dropped, .. } = &mut self.parts;
        keep(blocks, self.limits.blocks, &mut dropped.blocks, || *block);
    }
}

/// What a live stream's facts do not hold: the last verdicts, blocks and packets.
#[derive(Debug)]
pub struct Recent {
    limits: Limits,
    verdicts: VecDeque<Verdict>,
    blocks: VecDeque<DataBlock>,
    packets: Option<Gather>,
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
            dropped: Dropped::default(),
        }
    }

    /// Records as they go into the analysis. A card may send PACKET records that nobody here asked for.
    pub fn records(&mut self, records: &[Record]) {
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
        if self.verdicts.len() > self.limits.verdicts {
            self.verdicts.pop_front();
            self.dropped.verdicts += 1;
        }
    }

    /// A block.
    pub fn block(&mut self, block: &DataBlock) {
        self.blocks.push_back(*block);
        if self.blocks.len() > self.limits.blocks {
            self.blocks.pop_front();
            self.dropped.blocks += 1;
        }
    }

    /// A copy of them; the rest of the parts is empty.
    pub fn parts(&self) -> Parts {
        Parts {
            verdicts: self.verdicts.iter().copied().collect(),
            blocks: self.blocks.iter().copied().collect(),
            packets: self.packets.clone(),
            dropped: Dropped {
                packets: self.packets.as_ref().map_or(0, |packets| packets.dropped),
                ..self.dropped
            },
            ..Parts::default()
        }
    }
}
