//! What was lost when and where, by pairs of hosts; what `periodic_loss`, `slow_setup`, `loss` and `syn_loss` look at.
//!
//! Memory: the newest [`LOSSES`] losses, needless repeats and segments that the capture missed (6 MB), the newest [`SETUPS`] setups
//! (2 MB), [`crate::pairs::MOST`] pairs with a series of 8 bytes each 20 ms (from 22 minutes on no more: 0.5 MB each).

mod periods;
mod sums;
#[cfg(test)]
mod tests;

use std::ops::AddAssign;

use weir_analysis::{Cause, Class, DataBlock, Ended, Ends, Opened, Outcome, Place, TransactionKind, Verdict, sign};
use weir_messages::v1::Finding;
use weir_record::FlowId;

pub(crate) use self::periods::Periodic;
pub(crate) use self::sums::Sums;
use crate::accept_queue::AcceptQueue;
use crate::backlog::Transaction;
use crate::bins::Bins;
use crate::detector::Detector;
use crate::newest::Newest;
use crate::pairs::Pairs;
use crate::period::Exposure;
use crate::routes::Route;
use crate::syn_loss::SynLoss;
use crate::timeline::Timeline;
use crate::{loss, needless, periodic_loss, slow_setup, syn_loss};

/// Losses kept.
const LOSSES: usize = 1 << 16;
/// Setups kept.
const SETUPS: usize = 1 << 17;
/// Width of the series of segments sent, ns.
const WIDTH: u64 = 20_000_000;
/// What evidence says where [`Losses::shown`] leaves segments out.
pub(crate) const HIDDEN: &str = "of what is lost before the tap, the last segment of a request or response leaves no gap: it counts neither as lost nor as sent, so more is lost than the count, at the same rate";

/// On which side of the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Between the client and the tap.
    Client,
    /// Between the tap and the server.
    Server,
    Unknown,
}

impl Side {
    /// Where data of this sender was lost.
    pub const fn of(place: Place, from_server: bool) -> Self {
        match (place, from_server) {
            (Place::BeforeTap, false) | (Place::BehindTap, true) => Self::Client,
            (Place::BeforeTap, true) | (Place::BehindTap, false) => Self::Server,
            // The ACK went the other way.
            (Place::AckBeforeTap, false) | (Place::AckBehindTap, true) => Self::Server,
            (Place::AckBeforeTap, true) | (Place::AckBehindTap, false) => Self::Client,
            _ => Self::Unknown,
        }
    }
}

/// Data that was lost: a packet that came again, or bytes that never came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// TAI ns.
    pub at: u64,
    /// When it was sent again, TAI ns; `at` where it is not known how long that took.
    pub again: u64,
    pub id: FlowId,
    pub pair: u16,
    pub from_server: bool,
    pub side: Side,
    /// Data segments that count as lost; 0: it came again, and nothing tells whether it, or its ACK, was lost.
    pub segments: u32,
    /// The first of its recovery: an episode is one event.
    pub first: bool,
    /// Number of its recovery in its direction; 0: it never came again.
    pub episode: u32,
    pub seq: u32,
    /// A queue stood behind the tap, where it was lost.
    pub in_queue: bool,
    /// An ACK that stops at it asked for it, and nothing told of what came behind it: a recovery without SACK.
    pub is_step: bool,
    /// Bytes of the largest piece behind it that had arrived, if that is smaller; else 0.
    pub smaller: u32,
}

impl Loss {
    /// Data segments of it; one where it is not known whether it was lost.
    fn at_least_one(&self) -> u64 {
        u64::from(self.segments.max(1))
    }
}

/// A data segment that came again although it was not lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needless {
    /// When it came again, TAI ns.
    pub at: u64,
    pub id: FlowId,
    pub pair: u16,
    pub from_server: bool,
    /// The retransmission timer, or the probe timer, sent it.
    pub by_timer: bool,
}

/// A handshake in which nothing was lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CleanSetup {
    /// First SYN, TAI ns.
    pub at: u64,
    /// First SYN to its end, µs.
    pub micros: u32,
    pub pair: u16,
}

/// Data segments sent, by client and server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent([u32; 2]);

impl Sent {
    const fn add(&mut self, side: usize, packets: u32) {
        self.0[side] = self.0[side].saturating_add(packets);
    }
}

impl AddAssign for Sent {
    fn add_assign(&mut self, other: Self) {
        for side in 0..2 {
            self.add(side, other.0[side]);
        }
    }
}

/// What is known of one pair of hosts.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    sent: Bins<Sent>,
    /// Data segments, by client and server.
    pub segments: [u64; 2],
    /// Messages (requests, responses): so many segments were the last before the other side's turn.
    messages: [u64; 2],
    /// IP ids told of last segments lost before the tap, of client and server.
    ends_told: [bool; 2],
    /// ACKs lost, by side: client's, server's.
    pub acks: [u64; 2],
    /// Data segments that later ones overtook before the tap, by client and server.
    pub overtaken: [u64; 2],
    /// Data segments that came again.
    pub repeats: u64,
}

impl Pair {
    /// A long block is spread evenly over its time.
    fn spread(&mut self, side: usize, packets: u32, first: u64, length: u64) {
        let pieces = (length / self.sent.width() + 1).min(u64::from(packets.max(1))) as u32;
        for piece in 0..pieces {
            let time = first + length * u64::from(piece) / u64::from(pieces);
            let share = packets / pieces + u32::from(piece < packets % pieces);
            self.sent.at(time).add(side, share);
        }
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self {
            sent: Bins::new(WIDTH),
            segments: [0; 2],
            messages: [0; 2],
            ends_told: [false; 2],
            acks: [0; 2],
            overtaken: [0; 2],
            repeats: 0,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub pairs: Pairs,
    pub by_pair: Vec<Pair>,
    pub losses: Newest<Loss, LOSSES>,
    pub needless: Newest<Needless, LOSSES>,
    /// Delivered, but not in the capture: time, pair and data segments.
    missed: Newest<(u64, u16, u32), LOSSES>,
    pub setups: Newest<CleanSetup, SETUPS>,
    pub syn_loss: SynLoss,
    pub accept_queue: AcceptQueue,
    span: Option<(u64, u64)>,
}

impl Losses {
    /// Tells of connections that are not over.
    pub fn live() -> Self {
        Self {
            syn_loss: SynLoss::live(),
            ..Self::default()
        }
    }

    fn pair(&mut self, route: &mut Route) -> (u16, &mut Pair) {
        let number = route.loss.get_or(|| {
            let number = self.pairs.number(route.client, route.server);
            if self.by_pair.len() <= number {
                self.by_pair.resize_with(number + 1, Pair::default);
            }
            number
        });
        // At most `pairs::MOST`.
        (number as u16, &mut self.by_pair[number])
    }

    /// It was sent like those that blocks count.
    fn late(&mut self, verdict: &Verdict, route: &mut Route) {
        let side = usize::from(verdict.from_server);
        let (_, pair) = self.pair(route);
        pair.overtaken[side] += u64::from(verdict.class == Class::Reordered);
        pair.segments[side] += 1;
        pair.sent.at(verdict.time).add(side, 1);
    }

    fn repeat(&mut self, verdict: &Verdict, route: &mut Route) {
        let (number, pair) = self.pair(route);
        pair.repeats += 1;
        if verdict.place.is_spurious() && verdict.place != Place::Capture {
            let needless = Needless {
                at: verdict.time,
                id: verdict.connection,
                pair: number,
                from_server: verdict.from_server,
                by_timer: matches!(verdict.cause, Cause::Timeout | Cause::TailProbe),
            };
            self.needless.push(needless);
        }
    }

    fn extend(&mut self, first: u64, last: u64) {
        let (start, end) = self.span.unwrap_or((first, last));
        self.span = Some((start.min(first), end.max(last)));
    }

    /// First packet of a connection or of data, and last data, TAI ns.
    pub const fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// Of each sender's data segments, the share whose loss shows. The last of a message leaves no gap if it is lost
    /// before the tap: what comes later, in its place, looks like the first. It counts neither as lost nor as sent
    /// where most losses (`ways` of [`Sums`]) are before the tap, and IP ids do not tell of it.
    pub fn shown(&self, has: impl Fn(usize) -> bool, ways: &[[u64; 2]; 2]) -> [f64; 2] {
        let of_them = || self.by_pair.iter().enumerate().filter(|(number, _)| has(*number));
        [0, 1].map(|sender| {
            let told = of_them().any(|(_, pair)| pair.ends_told[sender]);
            if told || ways[sender][sender] <= ways[sender][1 - sender] {
                return 1.0;
            }
            let sum = |of: fn(&Pair) -> [u64; 2]| of_them().map(|(_, pair)| of(pair)[sender]).sum::<u64>() as f64;
            let (segments, messages) = (sum(|pair| pair.segments), sum(|pair| pair.messages));
            1.0 - messages.min(segments) / segments.max(1.0)
        })
    }

    /// Segments sent by the pairs of a pattern, of which these shares by client and server count.
    pub fn exposure(&self, has: impl Fn(usize) -> bool, shares: [f64; 2]) -> Option<Exposure> {
        let (start, end) = self.span?;
        let of_them = || self.by_pair.iter().enumerate().filter(|(number, _)| has(*number));
        let width = of_them().map(|(_, pair)| pair.sent.width()).max()?;
        let mut exposure = Exposure::new(start, end, width);
        for (_, pair) in of_them() {
            let width = pair.sent.width();
            for (i, sent) in pair.sent.iter().enumerate() {
                let time = pair.sent.start() + i as u64 * width + width / 2;
                exposure.add(
                    time.clamp(start, end),
                    (0..2).map(|i| f64::from(sent.0[i]) * shares[i]).sum(),
                );
            }
        }
        Some(exposure)
    }
}

impl Detector for Losses {
    fn opened(&mut self, opened: &Opened, _: &mut Route) {
        self.extend(opened.time, opened.time);
    }

    fn connection(&mut self, connection: &Ended, route: &mut Route) {
        let (pair, _) = self.pair(route);
        self.syn_loss.connection(connection, pair);
        self.accept_queue.connection(connection, route);
        let once = connection.setup == Some(Outcome::Ok) && connection.syns == (1, 1);
        let Some(ns) = connection.setup_ns.filter(|_| once) else {
            return;
        };
        self.setups.push(CleanSetup {
            at: connection.span.0,
            micros: u32::try_from(ns / 1000).unwrap_or(u32::MAX),
            pair,
        });
    }

    #[inline]
    fn block(&mut self, block: &DataBlock, route: &mut Route) {
        let side = usize::from(block.from_server);
        let (_, pair) = self.pair(route);
        let packets = u32::from(block.packets);
        pair.segments[side] += u64::from(packets);
        let length = block.last.saturating_sub(block.first);
        if length < pair.sent.width() {
            pair.sent.at(block.first).add(side, packets);
        } else {
            pair.spread(side, packets, block.first, length);
        }
        self.extend(block.first, block.last);
    }

    #[inline]
    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let facts = transaction.facts;
        if facts.kind != TransactionKind::Setup {
            let (_, pair) = self.pair(route);
            pair.messages[0] += 1;
            pair.messages[1] += u64::from(facts.server.is_some());
            self.accept_queue.transaction(transaction);
        } else if self.syn_loss.is_live() {
            let (pair, _) = self.pair(route);
            self.syn_loss.set_up(transaction.id, facts, pair);
        }
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends, route: &mut Route) {
        self.syn_loss.segment(verdict);
        self.accept_queue.segment(verdict);
        // Neither SYNs nor FINs are data.
        if verdict.length == 0 || verdict.handshake {
            return;
        }
        match verdict.class {
            _ if verdict.is_late() => self.late(verdict, route),
            Class::Retransmission => self.repeat(verdict, route),
            Class::Lost | Class::Missed => {}
            _ => return,
        }
        // What is sent to a host that is gone, or is too large for the path, says nothing of the network's losses.
        if verdict.evidence.has(sign::SILENCE) || verdict.evidence.has(sign::TOO_LARGE) {
            return;
        }
        let side = Side::of(verdict.place, verdict.from_server);
        let (number, pair) = self.pair(route);
        let is_end = verdict.place == Place::BeforeTap && verdict.evidence.has(sign::IDS_SKIPPED);
        pair.ends_told[usize::from(verdict.from_server)] |= is_end;
        match verdict.place {
            Place::Capture => self.missed.push((verdict.lost_at, number, verdict.counted)),
            Place::AckBeforeTap | Place::AckBehindTap => {
                pair.acks[usize::from(side == Side::Server)] += 1;
            }
            // All of it is among what the capture missed.
            Place::BeforeTap | Place::BehindTap if verdict.counted == 0 => {}
            Place::BeforeTap | Place::BehindTap | Place::Unknown => self.losses.push(Loss {
                at: verdict.lost_at,
                again: verdict.time.max(verdict.lost_at),
                id: verdict.connection,
                pair: number,
                from_server: verdict.from_server,
                side,
                segments: verdict.counted,
                first: verdict.begins || verdict.class == Class::Lost,
                episode: verdict.episode,
                seq: verdict.seq,
                in_queue: verdict.place == Place::BehindTap && verdict.evidence.has(sign::QUEUE_STOOD),
                is_step: verdict.evidence.has(sign::PARTIAL_ACK) && !verdict.evidence.has(sign::SACK_HOLE),
                smaller: verdict.smaller_arrived,
            }),
            Place::Nowhere => {}
        }
    }

    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
        let (periodic, likely): (Vec<_>, Vec<_>) =
            self.periodic().into_iter().partition(|found| found.period.is_sure());
        for found in &periodic {
            out.push(periodic_loss::finding(self, found));
            out.extend(slow_setup::finding(self, found));
        }
        out.extend(likely.iter().map(|found| periodic_loss::finding(self, found)));
        let first = self.accept_queue.findings(out);
        loss::findings(self, &periodic, &likely, &first, out);
        needless::findings(self, timeline.clamped(), out);
        syn_loss::findings(self, &periodic, timeline, out);
    }
}
