//! What happened when, over all connections.

use std::ops::{AddAssign, Range};

use weir_analysis::{
    Acknowledged, Class, CloseKind, DataBlock, Ended, Finished, Opened, Place, TransactionKind, Verdict, sign,
};

use crate::backlog::Transaction;
use crate::bins::Bins;
use crate::routes::Route;
use crate::services::{Answers, Services};
use crate::steps::Steps;

/// ns; 7 minutes fit.
const WIDTH: u64 = 10_000_000;
/// Percentiles of a stream without end are those of slices of so many ns.
const LIVE: u64 = 1_000_000_000;

/// Sums of one slice of time. Directions: 0 from the client, 1 from the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Connections whose first packet passed.
    pub opened: u32,
    /// Connections that ended: their last packet passed.
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
    /// Segments with new data: of blocks that began here, and late ones, which blocks do not count.
    pub segments: [u32; 2],
    /// Their payload.
    pub bytes: [u64; 2],
    /// Data blocks begun.
    pub blocks: [u32; 2],
    /// Data segments lost (see [`Loss::Data`]), by where: before the tap.
    pub lost_before: [u32; 2],
    /// Behind it.
    pub lost_behind: [u32; 2],
    /// Not known where.
    pub lost_unknown: [u32; 2],
    /// Data segments that came again, and nothing tells whether they, or their ACKs, were lost.
    pub doubtful: u32,
    /// Data segments that came again.
    pub again: u32,
    /// SYNs (0) and SYN-ACKs (1) that came again.
    pub syn_repeats: [u32; 2],
    /// ACKs of data that gave a round trip, by who sent them.
    pub acks: [u32; 2],
    /// Data segments that were delivered and are not in the capture.
    pub missed: u32,
    /// Connections, from their first packet to their last, or to the end of the input where they were open then; those
    /// that were open already begin with the time line.
    pub connections: Steps,
    /// Requests in progress, from their first packet to the last of the response, where it ended.
    pub progress: Steps,
}

impl Bin {
    /// Data segments of a side that the network lost, wherever.
    pub fn lost(&self, side: usize) -> u64 {
        let places = [self.lost_before, self.lost_behind, self.lost_unknown];
        places.iter().map(|lost| u64::from(lost[side & 1])).sum()
    }
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
            for (mine, others) in [
                (&mut self.lost_before, other.lost_before),
                (&mut self.lost_behind, other.lost_behind),
                (&mut self.lost_unknown, other.lost_unknown),
            ] {
                mine[side] = mine[side].saturating_add(others[side]);
            }
            self.syn_repeats[side] += other.syn_repeats[side];
            self.acks[side] += other.acks[side];
        }
        self.again += other.again;
        self.doubtful += other.doubtful;
        self.missed = self.missed.saturating_add(other.missed);
        self.connections += other.connections;
        self.progress += other.progress;
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
    services: Services,
    /// Connections whose end was not told yet.
    open: u32,
    /// Frames whose time ran backwards, as far as it is known.
    clamped: u64,
    /// Percentiles need the times themselves: kept when they are asked for.
    answers: Option<Bins<Answers>>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            bins: Bins::new(WIDTH),
            start: 0,
            end: 0,
            before: Bin::default(),
            services: Services::default(),
            open: 0,
            clamped: 0,
            answers: None,
        }
    }
}

impl Timeline {
    /// What happens from `start` (TAI ns) on, when `open` connections are open; with percentiles.
    pub fn live(start: u64, open: u32) -> Self {
        let mut live = Self {
            start,
            open,
            answers: Some(Bins::new(LIVE)),
            ..Self::default()
        };
        if open > 0 {
            let connections = &mut live.at(start).connections;
            (0..open).for_each(|_| connections.begin(start));
        }
        live
    }

    /// With percentiles, for slices of `width` ns.
    pub fn resolved(width: u64) -> Self {
        Self {
            bins: Bins::new(width.min(WIDTH)),
            answers: Some(Bins::new(width)),
            ..Self::default()
        }
    }

    /// Setup and response times, if they were asked for.
    pub const fn answers(&self) -> Option<&Bins<Answers>> {
        self.answers.as_ref()
    }

    /// Load of each service.
    pub const fn services(&self) -> &Services {
        &self.services
    }

    /// Connections whose end was not told yet.
    pub(crate) const fn open(&self) -> u32 {
        self.open
    }

    /// Frames whose time ran backwards.
    pub(crate) const fn clamped(&self) -> u64 {
        self.clamped
    }

    pub(crate) const fn set_clamped(&mut self, frames: u64) {
        self.clamped = frames;
    }

    /// The slices.
    pub const fn bins(&self) -> &Bins<Bin> {
        &self.bins
    }

    /// What happened before is left out, TAI ns.
    pub(crate) const fn begins(&self) -> u64 {
        self.start
    }

    /// First and last moment, TAI ns.
    pub const fn span(&self) -> (u64, u64) {
        (self.bins.start(), self.end)
    }

    #[inline]
    fn at(&mut self, time: u64) -> &mut Bin {
        if time < self.start {
            return &mut self.before;
        }
        self.end = self.end.max(time);
        self.bins.at(time)
    }

    pub(crate) fn opened(&mut self, opened: &Opened, route: &mut Route) {
        self.at(opened.time).opened += 1;
        let from = opened.time.max(self.start);
        self.at(from).connections.begin(from);
        self.open += 1;
        self.services.opened(opened, route, self.start);
    }

    pub(crate) fn connection(&mut self, connection: &Ended, route: &mut Route) {
        let (first, until) = (connection.span.0, connection.until);
        let start = self.start;
        self.at(until).closed += u32::from(connection.closing != CloseKind::Open);
        let until = until.max(start);
        self.at(until).connections.end(until);
        self.open = self.open.saturating_sub(1);
        self.services.connection(connection, route, start, first >= start);
    }

    pub(crate) fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let facts = transaction.facts;
        let stay = stay(facts);
        let is_setup = facts.kind == TransactionKind::Setup;
        let (is_answered, start) = (stay.is_some(), self.start);
        if !is_setup {
            let bin = self.at(facts.request_time);
            bin.requests += 1;
            if is_answered && facts.request_time >= start {
                bin.progress.begin(facts.request_time);
            }
        }
        let Some(stay) = stay else { return };
        let end = facts.end.unwrap_or(0);
        if is_setup {
            let bin = self.at(stay.end);
            bin.setups += 1;
            bin.setup_ns += end;
        } else {
            if stay.start < start && stay.end >= start {
                self.at(start).progress.begin(start);
            }
            let bin = self.at(stay.end);
            bin.responses += 1;
            bin.response_ns += end;
            bin.progress.end(stay.end);
        }
        if let Some(answers) = self.answers.as_mut().filter(|_| stay.end >= self.start) {
            let answers = answers.at(stay.end);
            let times = if is_setup {
                &mut answers.setup
            } else {
                &mut answers.response
            };
            times.add(end);
        }
        self.services.transaction(facts, &stay, route, self.start);
    }

    #[inline]
    pub(crate) fn block(&mut self, block: &DataBlock) {
        let side = usize::from(block.from_server);
        self.end = self.end.max(block.last);
        let bin = self.at(block.first);
        bin.blocks[side] += 1;
        bin.segments[side] += u32::from(block.packets);
        bin.bytes[side] += u64::from(block.bytes);
    }

    #[inline]
    pub(crate) fn acknowledged(&mut self, ack: &Acknowledged) {
        if ack.is_data {
            self.at(ack.time).acks[usize::from(ack.by_server)] += 1;
        }
    }

    pub(crate) fn segment(&mut self, verdict: &Verdict, route: &mut Route) {
        let side = usize::from(verdict.from_server);
        let bin = self.at(verdict.lost_at);
        let add = |sum: &mut u32, segments: u32| *sum = sum.saturating_add(segments);
        match loss(verdict) {
            Some(Loss::Setup) => bin.syn_repeats[side] += 1,
            Some(Loss::Data(segments)) => match verdict.place {
                Place::BeforeTap => add(&mut bin.lost_before[side], segments),
                Place::BehindTap => add(&mut bin.lost_behind[side], segments),
                _ => add(&mut bin.lost_unknown[side], segments),
            },
            Some(Loss::Capture(segments)) => add(&mut bin.missed, segments),
            Some(Loss::Doubtful) => bin.doubtful += 1,
            None => {}
        }
        if verdict.is_data_again() {
            self.at(verdict.time).again += 1;
        }
        if verdict.is_late() {
            self.at(verdict.time).segments[side] += 1;
        }
        self.services.segment(verdict, route, self.start);
    }
}

/// What a verdict tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A SYN or SYN-ACK, or its answer, was lost: it came again.
    Setup,
    /// So many data segments that the network lost: `lostUpstream`, `lostDownstream` and `lostUnknown` of the connection.
    Data(u32),
    /// So many data segments that the capture missed, which is no loss of the network: `missedByCapture` of the connection.
    Capture(u32),
    /// A data segment came again, and nothing tells whether it, or its ACK, was lost: it counts as neither.
    Doubtful,
}

/// The loss that a verdict tells of.
pub const fn loss(verdict: &Verdict) -> Option<Loss> {
    let repeated = matches!(verdict.class, Class::Retransmission | Class::Lost);
    match (verdict.place, verdict.counted) {
        _ if verdict.handshake => {
            if repeated {
                Some(Loss::Setup)
            } else {
                None
            }
        }
        (Place::Capture, 1..) => Some(Loss::Capture(verdict.counted)),
        (_, 1..) => Some(Loss::Data(verdict.counted)),
        // A FIN; or what was sent to a host that is gone.
        _ if verdict.length == 0 || verdict.evidence.has(sign::SILENCE) => None,
        (Place::Unknown, 0) if repeated => Some(Loss::Doubtful),
        _ => None,
    }
}

/// From the first packet of the request (the first SYN of a setup) to the last of the response, TAI ns; none if the
/// response did not end.
pub(crate) fn stay(facts: &Finished) -> Option<Range<u64>> {
    let end = facts.response.and(facts.end)?;
    let asked = match facts.kind {
        TransactionKind::Setup => facts.request_time,
        _ => facts.request_time.saturating_add(facts.request),
    };
    Some(facts.request_time..asked.saturating_add(end))
}
