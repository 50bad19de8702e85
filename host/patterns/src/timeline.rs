//! What happened when, over all connections.

use std::ops::AddAssign;

use weir_analysis::{
    Acknowledged, Class, Connection, DataBlock, Ends, Opened, Place, Transaction, TransactionKind, Verdict,
};

use crate::bins::Bins;

/// ns; 7 minutes fit.
const WIDTH: u64 = 10_000_000;

/// Sums of one slice of time. Directions: 0 from the client, 1 from the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Connections whose first packet passed.
    pub opened: u32,
    /// Connections whose last packet passed.
    pub closed: u32,
    /// Requests begun.
    pub requests: u32,
    /// Responses ended.
    pub responses: u32,
    /// Sum of the times from the end of the request to the end of the response, ns, where the response ended.
    pub response_ns: u64,
    /// Setups ended well, and the sum of their times, ns.
    pub setups: u32,
    /// See `setups`.
    pub setup_ns: u64,
    /// Segments with new data, of blocks that began here.
    pub segments: [u32; 2],
    /// Their payload.
    pub bytes: [u64; 2],
    /// Data blocks begun.
    pub blocks: [u32; 2],
    /// Data segments lost, by where: before the tap.
    pub lost_before: [u32; 2],
    /// Behind it.
    pub lost_behind: [u32; 2],
    /// Not known where.
    pub lost_unknown: [u32; 2],
    /// SYNs (0) and SYN-ACKs (1) that came again.
    pub syn_repeats: [u32; 2],
    /// ACKs of data that gave a round trip, by who sent them.
    pub acks: [u32; 2],
    /// Delivered, but not in the capture.
    pub missed: u32,
}

impl AddAssign for Bin {
    fn add_assign(&mut self, other: Self) {
        self.opened += other.opened;
        self.closed += other.closed;
        self.requests += other.requests;
        self.responses += other.responses;
        self.response_ns += other.response_ns;
        self.setups += other.setups;
        self.setup_ns += other.setup_ns;
        for side in 0..2 {
            self.segments[side] += other.segments[side];
            self.bytes[side] += other.bytes[side];
            self.blocks[side] += other.blocks[side];
            self.lost_before[side] += other.lost_before[side];
            self.lost_behind[side] += other.lost_behind[side];
            self.lost_unknown[side] += other.lost_unknown[side];
            self.syn_repeats[side] += other.syn_repeats[side];
            self.acks[side] += other.acks[side];
        }
        self.missed += other.missed;
    }
}

/// The whole input in slices of time.
#[derive(Clone, Debug)]
pub struct Timeline {
    bins: Bins<Bin>,
    start: u64,
    end: u64,
    /// Sums of what happened before the start: facts are told when they are over.
    before: Bin,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            bins: Bins::new(WIDTH),
            start: 0,
            end: 0,
            before: Bin::default(),
        }
    }
}

impl Timeline {
    /// What happens from `start` (TAI ns) on.
    pub fn since(start: u64) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// The slices.
    pub const fn bins(&self) -> &Bins<Bin> {
        &self.bins
    }

    /// First and last moment, TAI ns.
    pub const fn span(&self) -> (u64, u64) {
        (self.bins.start(), self.end)
    }

    fn at(&mut self, time: u64) -> &mut Bin {
        if time < self.start {
            return &mut self.before;
        }
        self.end = self.end.max(time);
        self.bins.at(time)
    }

    pub(crate) fn opened(&mut self, opened: &Opened) {
        self.at(opened.time).opened += 1;
    }

    pub(crate) fn connection(&mut self, connection: &Connection<'_>) {
        self.at(connection.span().1).closed += 1;
    }

    pub(crate) fn transaction(&mut self, transaction: &Transaction<'_>) {
        let facts = transaction.facts();
        let begin = facts.request_time;
        let end = facts.end.unwrap_or(0);
        if facts.kind == TransactionKind::Setup {
            let bin = self.at(begin.saturating_add(end));
            bin.setups += 1;
            bin.setup_ns += end;
            return;
        }
        self.at(begin).requests += 1;
        if facts.response.is_some() {
            let bin = self.at(begin.saturating_add(facts.request).saturating_add(end));
            bin.responses += 1;
            bin.response_ns += end;
        }
    }

    pub(crate) fn block(&mut self, block: &DataBlock) {
        let side = usize::from(block.from_server);
        self.end = self.end.max(block.last);
        let bin = self.at(block.first);
        bin.blocks[side] += 1;
        bin.segments[side] += u32::from(block.packets);
        bin.bytes[side] += u64::from(block.bytes);
    }

    pub(crate) fn acknowledged(&mut self, ack: &Acknowledged) {
        if ack.is_data {
            self.at(ack.time).acks[usize::from(ack.by_server)] += 1;
        }
    }

    pub(crate) fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        let side = usize::from(verdict.from_server);
        let bin = self.at(verdict.lost_at);
        let is_loss = matches!(verdict.class, Class::Retransmission | Class::Lost);
        if is_loss && verdict.handshake {
            bin.syn_repeats[side] += 1;
            return;
        }
        match verdict.place {
            Place::BeforeTap => bin.lost_before[side] += 1,
            Place::BehindTap => bin.lost_behind[side] += 1,
            Place::Capture => bin.missed += 1,
            Place::Unknown if is_loss => bin.lost_unknown[side] += 1,
            _ => {}
        }
    }
}
