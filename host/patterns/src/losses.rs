//! What was lost when and where, by pairs of hosts; what `periodic_loss`, `slow_setup`, `loss` and `syn_loss` look at.
//!
//! Memory: the newest [`LOSSES`] losses, needless repeats and segments that the capture missed (6 MB), the newest [`SETUPS`] setups
//! (2 MB), [`pairs::MOST`] pairs with a series of 8 bytes each 20 ms (from 22 minutes on no more: 0.5 MB each).

use std::collections::{HashMap, HashSet};
use std::ops::AddAssign;

use weir_analysis::{
    Cause, Class, DataBlock, Ended, Ends, Group, Opened, Outcome, Place, TransactionKind, Verdict, count, lasting,
    seconds, sign,
};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::accept_queue::AcceptQueue;
use crate::backlog::Transaction;
use crate::bins::Bins;
use crate::detector::Detector;
use crate::names::connections;
use crate::newest::Newest;
use crate::pairs::{self, Pairs};
use crate::period::{self, Exposure, Period};
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
/// After so long another segment that is lost is of another recovery, ns: recoveries are told apart by sequence numbers, which
/// come again.
const PAUSE: u64 = 1_000_000_000;
/// Pairs, those with most losses first, in which a period is looked for.
const LOOKED_AT: usize = 8;

/// Repairs one by one from which on that is worth a word.
const STEPS: u64 = 5;

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

/// From the first loss of a recovery to its last repeat.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    first: u64,
    last: u64,
    /// Of the loss that came last.
    seq: u32,
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

/// The period that the losses of some pairs have.
#[derive(Clone, Debug)]
pub(crate) struct Periodic {
    pub period: Period,
    /// In the order of losses; empty: all.
    pub pairs: Vec<usize>,
    /// On this side of the tap only, where the other side has losses of its own.
    side: Option<Side>,
}

impl Periodic {
    /// Of all pairs, on both sides.
    #[cfg(test)]
    pub const fn of_all(period: Period) -> Self {
        Self {
            period,
            pairs: Vec::new(),
            side: None,
        }
    }

    pub fn has(&self, pair: u16) -> bool {
        self.pairs.is_empty() || self.pairs.contains(&usize::from(pair))
    }

    /// One of its losses. Those without a place are, too, when they are in the part that is lossy.
    pub fn has_loss(&self, loss: &Loss) -> bool {
        let here = match self.side {
            None => true,
            Some(side) => loss.side == side || loss.side == Side::Unknown && self.period.is_inside(loss.at),
        };
        here && self.has(loss.pair)
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

    /// Losses that nothing tells from the capture's own: it misses as many as often.
    fn is_by_capture(&self, found: &Periodic) -> bool {
        let is_inside = |time: u64| found.period.is_inside(time);
        let lost = self.losses.iter().filter(|l| found.has_loss(l) && is_inside(l.at));
        self.missed(found).0 > lost.map(Loss::at_least_one).sum()
    }

    /// Segments that the capture missed, of these pairs: in the lossy part, and all.
    pub fn missed(&self, found: &Periodic) -> (u64, u64) {
        let (mut inside, mut all) = (0, 0);
        for (time, _, segments) in self.missed.iter().filter(|(_, pair, _)| found.has(*pair)) {
            all += u64::from(*segments);
            inside += u64::from(if found.period.is_inside(*time) { *segments } else { 0 });
        }
        (inside, all)
    }

    /// Losses of these pairs on this side, each recovery once.
    fn times(&self, has: impl Fn(usize) -> bool, side: Option<Side>) -> Vec<u64> {
        let of_them =
            |loss: &&Loss| loss.first && has(usize::from(loss.pair)) && side.is_none_or(|side| loss.side == side);
        self.losses.iter().filter(of_them).map(|loss| loss.at).collect()
    }

    fn period_of(&self, has: impl Fn(usize) -> bool, side: Option<Side>) -> Option<Period> {
        let times = self.times(&has, side);
        if times.len() < period::LEAST {
            return None;
        }
        period::find(&times, &self.exposure(has, [1.0; 2])?)
    }

    /// Other pairs whose losses are too few to show the period by themselves, but keep to it. More than one period found leaves open whose.
    fn join(&self, found: &mut [Periodic]) {
        let [found] = found else { return };
        if found.pairs.is_empty() {
            return;
        }
        for number in 0..self.by_pair.len() {
            let fits = || {
                let exposure = self.exposure(|other| other == number, [1.0; 2])?;
                Some(
                    found
                        .period
                        .fits(&self.times(|other| other == number, found.side), &exposure),
                )
            };
            if !found.pairs.contains(&number) && fits() == Some(true) {
                found.pairs.push(number);
            }
        }
    }

    /// Patterns in time, each of a pair or of several with the same period.
    fn periodic(&self) -> Vec<Periodic> {
        let mut counts = [[0usize; 3]; pairs::MOST + 1];
        for loss in self.losses.iter().filter(|loss| loss.first) {
            counts[usize::from(loss.pair)][loss.side as usize] += 1;
        }
        let all = |number: &usize| counts[*number].iter().sum::<usize>();
        let mut most: Vec<usize> = (0..counts.len()).filter(|number| all(number) > 0).collect();
        most.sort_by_key(|number| std::cmp::Reverse(all(number)));
        let mut found: Vec<Periodic> = Vec::new();
        for number in most.iter().copied().take(LOOKED_AT) {
            // Two sides with losses have two causes.
            let of_side = |side: Side| counts[number][side as usize] >= period::LEAST;
            let sides: &[Option<Side>] = if of_side(Side::Client) && of_side(Side::Server) {
                &[Some(Side::Client), Some(Side::Server)]
            } else {
                &[None]
            };
            for side in sides {
                let Some(period) = self.period_of(|other| other == number, *side) else {
                    continue;
                };
                let same = |known: &&mut Periodic| known.period.is_like(&period) && known.side == *side;
                match found.iter_mut().find(same) {
                    Some(known) => {
                        known.pairs.push(number);
                        if period.chance < known.period.chance && !known.period.is_sure() {
                            known.period = period;
                        }
                    }
                    None => found.push(Periodic {
                        period,
                        pairs: vec![number],
                        side: *side,
                    }),
                }
            }
        }
        // Too few in each, enough in all; or more than are told apart.
        let is_sure = found.iter().any(|found| found.period.is_sure());
        let is_wide = !is_sure || found.iter().any(|found| found.pairs.contains(&pairs::MOST));
        if is_wide
            && most.len() > 1
            && let Some(period) = self.period_of(|_| true, None)
            && (period.is_sure() || found.is_empty())
        {
            found.retain(|known| !known.period.is_like(&period));
            found.push(Periodic {
                period,
                pairs: vec![],
                side: None,
            });
        }
        self.join(&mut found);
        found.retain(|found| !self.is_by_capture(found));
        found
    }

    /// Client and server of a pattern, as text.
    pub fn names(&self, found: &Periodic) -> (String, String) {
        match found.pairs.first() {
            Some(pair) => self.pairs.names(*pair),
            None => self.pairs.common(),
        }
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

/// What some losses have in common.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Of the connections.
    pub group: Group,
    /// Packets that came again, or bytes that never did, by client and server, the senders.
    pub by_sender: [u64; 2],
    /// Data segments: those that count as lost, and one of each packet of which it is not known whether it was.
    pub segments: [u64; 2],
    /// Where these were lost: client's side, server's side, not known.
    pub sides: [u64; 3],
    /// By sender and side (client's, server's).
    pub ways: [[u64; 2]; 2],
    /// Recoveries, and those before which a queue stood: of a flight that is too large for it, a round trip tells of its first segment alone.
    begun: u64,
    in_queue: u64,
    /// Packets that a recovery without SACK repaired one by one.
    steps: u64,
    /// Recoveries of which it is known how long they took, and how long all of them did, ns.
    recoveries: u64,
    wait: u64,
}

impl Sums {
    pub fn of<'a>(losses: impl Iterator<Item = &'a Loss>) -> Self {
        let mut sums = Self::default();
        let mut ids = HashSet::new();
        let mut recoveries: HashMap<(FlowId, bool, u32), Recovery> = HashMap::new();
        let mut span: Option<(u64, u64)> = None;
        let mut losses: Vec<&Loss> = losses.collect();
        losses.sort_by_key(|loss| loss.at);
        for loss in losses {
            let sender = usize::from(loss.from_server);
            let segments = loss.at_least_one();
            sums.by_sender[sender] += 1;
            sums.begun += u64::from(loss.first);
            sums.in_queue += u64::from(loss.first && loss.in_queue);
            sums.steps += u64::from(loss.is_step);
            sums.segments[sender] += segments;
            sums.sides[loss.side as usize] += segments;
            if loss.side != Side::Unknown {
                sums.ways[sender][loss.side as usize] += segments;
            }
            if loss.episode > 0 {
                let key = (loss.id, loss.from_server, loss.episode);
                let new = Recovery {
                    first: loss.at,
                    last: loss.again,
                    seq: loss.seq,
                };
                let recovery = recoveries.entry(key).or_insert(new);
                // What is lost again and again is waited for all the time.
                if loss.seq != recovery.seq && loss.at.saturating_sub(recovery.last) > PAUSE {
                    sums.waited_for(*recovery);
                    *recovery = new;
                }
                recovery.last = recovery.last.max(loss.again);
                recovery.seq = loss.seq;
            }
            let (first, last) = span.unwrap_or((loss.at, loss.at));
            span = Some((first.min(loss.at), last.max(loss.at)));
            if ids.insert(loss.id) {
                sums.group.include(loss.id, loss.at, loss.at);
            }
        }
        if let Some((first, last)) = span {
            sums.group.extend(first, last);
        }
        for recovery in recoveries.into_values() {
            sums.waited_for(recovery);
        }
        sums
    }

    fn waited_for(&mut self, Recovery { first, last, .. }: Recovery) {
        self.recoveries += u64::from(last > first);
        self.wait += last - first;
    }

    /// How long all of it was waited for, if that is known, s.
    pub fn cost(&self) -> Option<f64> {
        (self.recoveries > 0).then(|| seconds(self.wait))
    }

    /// The same, in a sentence.
    pub fn waited(&self) -> String {
        self.cost().map_or_else(
            || "how long it took until what was lost came again is not known, as the round trip is not".to_owned(),
            |cost| {
                format!(
                    "from a loss to the last repeat of its recovery it took {} on average: {} of waiting in {}",
                    lasting(cost / self.recoveries as f64),
                    lasting(cost),
                    connections(self.group.count())
                )
            },
        )
    }

    /// Whether most were lost in a queue, in a sentence.
    pub fn queue(&self) -> Option<String> {
        (self.in_queue > 0 && 2 * self.in_queue >= self.begun).then(|| {
            format!(
                "{} of {} recoveries began while packets waited in a queue behind the tap, as the round trips before them tell: what a full queue drops is lost so",
                count(self.in_queue),
                count(self.begun)
            )
        })
    }

    /// Whether most were repaired one by one, in a sentence.
    pub fn steps(&self) -> Option<String> {
        (self.steps >= STEPS && 2 * self.steps >= self.total()).then(|| {
            format!(
                "{} of them were repaired one by one, a round trip each, as a sender does that hears of no SACK blocks (RFC 6582)",
                count(self.steps)
            )
        })
    }

    /// Packets.
    pub const fn total(&self) -> u64 {
        self.by_sender[0] + self.by_sender[1]
    }

    /// Data segments.
    pub const fn all_segments(&self) -> u64 {
        self.segments[0] + self.segments[1]
    }

    /// The part of the way where to look for them.
    pub fn way(&self, client: &str, server: &str) -> String {
        match self.sides {
            [n, 0, 0] if n > 0 => format!("between the tap and {client}"),
            [0, n, 0] if n > 0 => format!("between the tap and {server}"),
            _ => format!("between {client} and {server}"),
        }
    }

    /// Where they happened, in a sentence.
    pub fn place(&self, client: &str, server: &str) -> String {
        let [at_client, at_server, unknown] = self.sides;
        let known = at_client + at_server;
        let way = |side: usize| {
            let (to, from) = if side == 0 {
                (self.ways[1][0], self.ways[0][0])
            } else {
                (self.ways[0][1], self.ways[1][1])
            };
            format!("{} on the way to it, {} on the way back", count(to), count(from))
        };
        let rest = match unknown {
            0 => String::new(),
            n => format!("; of {} more the place is not known", count(n)),
        };
        let all = |n: u64| match n {
            1 => "the loss occurred".to_owned(),
            n => format!("all {} losses occurred", count(n)),
        };
        if known == 0 {
            return format!("the place is not known of any of the {} losses", count(unknown));
        }
        if at_client == 0 {
            return format!("{} between the tap and {server}: {}{rest}", all(known), way(1));
        }
        if at_server == 0 {
            return format!("{} between the tap and {client}: {}{rest}", all(known), way(0));
        }
        format!(
            "{} of {} losses occurred between the tap and {server} ({}), {} between the tap and {client} ({}){rest}",
            count(at_server),
            count(known),
            way(1),
            count(at_client),
            way(0)
        )
    }
}

/// A share as per cent, with the digits that it needs.
pub(crate) fn percent(share: f64) -> String {
    match share {
        s if s >= 0.0995 => format!("{:.0} %", s * 100.0),
        s if s >= 0.00995 => format!("{:.1} %", s * 100.0),
        s if s >= 0.000_995 => format!("{:.2} %", s * 100.0),
        0.0 => "0 %".to_owned(),
        s => format!("{:.4} %", s * 100.0),
    }
}

/// A chance in words: as the largest power of ten above it.
pub(crate) fn chance(p: f64) -> String {
    let exponent = p.max(1e-99).log10().ceil() as i32;
    if exponent >= -3 {
        format!("less than {:.3}", p.max(0.001))
    } else {
        format!("less than 1 in 10^{}", -exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::random::Random;
    use weir_analysis::Evidence;

    const START: u64 = 1_700_000_000_000_000_000;

    /// Of a segment of the server that was lost at `lost_at`.
    fn verdict(connection: u64, lost_at: u64, class: Class, place: Place) -> Verdict {
        Verdict {
            from_server: true,
            length: 1000,
            class,
            place,
            episode: 1,
            begins: true,
            counted: u32::from(place == Place::BeforeTap || place == Place::BehindTap || class == Class::Missed),
            ..fixtures::verdict(connection, lost_at, lost_at + 200_000_000)
        }
    }

    #[test]
    fn where_to_look_stands_by_itself() {
        let way = |sides| {
            let sums = Sums {
                sides,
                ..Sums::default()
            };
            sums.way("C", "S")
        };
        assert_eq!(way([3, 0, 0]), "between the tap and C");
        assert_eq!(way([0, 3, 0]), "between the tap and S");
        assert_eq!(way([3, 3, 0]), "between C and S");
        // What is not known where may be on either side.
        assert_eq!(way([0, 3, 1]), "between C and S");
    }

    /// A hundred clients of one server for two minutes; each third second, one of 49 segments becomes `what`.
    fn watch(what: &[(Class, Place)]) -> Vec<Finding> {
        watch_when(what, |ms| ms / 1000 % 3 == 0 && ms % 49 == 7)
    }

    /// `what` becomes of the segments of these ms.
    fn watch_when(what: &[(Class, Place)], when: impl Fn(u64) -> bool) -> Vec<Finding> {
        let mut losses = Losses::default();
        for i in 0..120_000u64 {
            let time = START + i * 1_000_000;
            let ends = Ends {
                client: u128::from(i % 100 + 1).to_be_bytes(),
                server: 7u128.to_be_bytes(),
                ..Ends::default()
            };
            let block = DataBlock {
                id: FlowId(i % 100),
                ends,
                from_server: true,
                first: time,
                last: time,
                bytes: 1000,
                packets: 1,
                flight: 1000,
            };
            losses.block(&block, &mut Route::new(&ends, 0));
            if !when(i) {
                continue;
            }
            for (class, place) in what {
                let verdict = verdict(i % 100, time, *class, *place);
                losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
            }
        }
        let mut out = Vec::new();
        losses.findings(&Timeline::default(), &mut out);
        out
    }

    #[test]
    fn a_few_losses_of_each_of_many_clients_show_a_period_together() {
        let found = watch(&[(Class::Retransmission, Place::BeforeTap)]);
        let [finding] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(finding.kind, "PERIODIC_LOSS");
        assert_eq!(finding.who, "many clients > ::7");
        assert!(finding.title.contains("1.00 s of every 3.00 s"), "{}", finding.title);
        let place =
            |line: &String| line.starts_with("all ") && line.contains("losses occurred between the tap and ::7");
        assert!(finding.evidence.iter().any(place), "{finding:#?}");
    }

    /// Too few to show it by themselves, too regular for chance: not losses "at random" beside the rhythm of the others.
    #[test]
    fn pairs_that_keep_to_the_period_of_another_have_it() {
        let lost = [(Class::Retransmission, Place::BeforeTap)];
        // One client loses a segment each 0.2 s of the lossy second, two others one in each third of them, and a fourth in the second behind.
        let found = watch_when(&lost, |ms| match ms % 100 {
            7 => ms / 1000 % 3 == 0 && ms / 100 % 2 == 0,
            8 | 9 => ms / 1000 % 9 == 0 && ms / 100 % 10 == ms / 9000 * 7 % 9,
            10 => ms / 1000 % 9 == 1 && ms / 100 % 10 == ms / 9000 * 7 % 9,
            _ => false,
        });
        let told: Vec<_> = found.iter().map(|finding| (&*finding.kind, &*finding.title)).collect();
        let [("PERIODIC_LOSS", title), ("LOSS", other)] = told[..] else {
            panic!("{told:?}")
        };
        assert!(
            title.ends_with("between ::8 and ::7 and 2 more pairs of hosts"),
            "{title}"
        );
        assert!(other.contains("between ::b and ::7"), "{other}");
    }

    /// Two losses in 3.5 s of each of eleven periods: a rhythm that is likely, and losses that are sure.
    #[test]
    fn a_likely_rhythm_is_told_beside_the_losses() {
        let lost = [(Class::Retransmission, Place::BeforeTap)];
        let mut random = Random::new(3);
        let times: Vec<u64> = (0..22).map(|i| i / 2 * 11_000 + random.below(3_500) as u64).collect();
        let found = watch_when(&lost, |ms| times.contains(&ms));
        let of = |kind: &str| found.iter().filter(|finding| finding.kind == kind).collect::<Vec<_>>();
        let [period] = of("PERIODIC_LOSS")[..] else {
            panic!("{found:#?}")
        };
        assert_eq!(period.confidence, 0.6, "{period:#?}");
        assert!(period.title.contains("of every 11.02 s"), "{}", period.title);
        assert!(!of("LOSS").is_empty(), "{found:#?}");
    }

    /// Half a second, twice as long each time, and 0.1 s of two segments that came again at once.
    #[test]
    fn what_is_lost_again_is_waited_for_until_its_last_repeat() {
        let mut losses = Losses::default();
        let ends = Ends::default();
        let ms = |ms: u64| START + ms * 1_000_000;
        let repeats = [
            (0, 500, 1, 7),
            (500, 1500, 1, 7),
            // That it waited is not known of a repeat after so long.
            (3500, 3500, 1, 7),
            (9000, 9100, 2, 8),
            (9000, 9100, 2, 9),
        ];
        for (lost_at, time, episode, seq) in repeats {
            let verdict = Verdict {
                time: ms(time),
                episode,
                seq,
                ..verdict(0, ms(lost_at), Class::Retransmission, Place::BehindTap)
            };
            losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
        }
        let sums = Sums::of(losses.losses.iter());
        assert_eq!(sums.cost(), Some(3.6));
        assert_eq!(
            sums.waited(),
            "from a loss to the last repeat of its recovery it took 1.80 s on average: 3.60 s of waiting in 1 connection"
        );
    }

    /// After 2³¹ bytes the numbers tell the recovery of before.
    #[test]
    fn time_between_recoveries_is_no_waiting() {
        let mut losses = Losses::default();
        let ends = Ends::default();
        for n in 0..3 {
            let at = START + u64::from(n) * 40_000_000_000;
            let verdict = Verdict {
                seq: n * 1000,
                ..verdict(0, at, Class::Retransmission, Place::BehindTap)
            };
            losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
        }
        // Each came 0.2 s before its repeat.
        assert_eq!(Sums::of(losses.losses.iter()).cost(), Some(0.6));
    }

    #[test]
    fn a_wait_that_is_not_known_is_no_wait_of_zero() {
        let mut losses = Losses::default();
        let ends = Ends::default();
        let verdict = Verdict {
            time: START,
            ..verdict(0, START, Class::Retransmission, Place::BehindTap)
        };
        losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
        let mut out = Vec::new();
        losses.findings(&Timeline::default(), &mut out);
        let [finding] = &out[..] else { panic!("{out:#?}") };
        assert!(!finding.values.contains_key("costSeconds"), "{finding:#?}");
        assert!(
            finding.evidence.iter().any(|line| line.contains("is not known")),
            "{finding:#?}"
        );
        assert!(
            !finding.evidence.iter().any(|line| line.contains("0.00")),
            "{finding:#?}"
        );
    }

    /// Blocks count what is in sequence. 25 of 1,000 are lost, 400 come late.
    #[test]
    fn late_segments_were_sent_as_well() {
        let (mut losses, mut timeline) = (Losses::default(), Timeline::default());
        let ends = Ends::default();
        let mut route = Route::new(&ends, 0);
        let block = DataBlock {
            id: FlowId(0),
            ends,
            from_server: true,
            first: START,
            last: START,
            bytes: 1_000_000,
            packets: 575,
            flight: 0,
        };
        losses.block(&block, &mut route);
        timeline.block(&block);
        for i in 0..425 {
            let (class, place) = match i {
                0..25 => (Class::Retransmission, Place::BehindTap),
                25..325 => (Class::Reordered, Place::Nowhere),
                _ => (Class::CaptureOrder, Place::Nowhere),
            };
            let verdict = verdict(0, START + i * 1_000_000, class, place);
            losses.segment(&verdict, &ends, &mut route);
            timeline.segment(&verdict, &mut route);
        }
        let mut out = Vec::new();
        losses.findings(&timeline, &mut out);
        let loss = out.iter().find(|finding| finding.kind == "LOSS");
        let told = loss.is_some_and(|loss| loss.evidence[0].starts_with("25 of 1,000 data segments were lost (2.5 %)"));
        assert!(told, "{out:#?}");
        let reordering = out.iter().find(|finding| finding.kind == "REORDERING");
        let told = reordering.is_some_and(|found| found.evidence[0].starts_with("300 data segments were overtaken"));
        assert!(told, "{out:#?}");
        assert_eq!(timeline.bins().iter().map(|bin| bin.segments[1]).sum::<u32>(), 975);
        // Where the stamps say so, the file alone has them late.
        for (clamped, is_told) in [(299, true), (300, false)] {
            timeline.set_clamped(clamped);
            out.clear();
            losses.findings(&timeline, &mut out);
            assert_eq!(out.iter().any(|finding| finding.kind == "REORDERING"), is_told);
        }
    }

    /// A packet of a capture that joined segments is several; what never came was lost nobody knows where; a repeat may be a copy.
    #[test]
    fn findings_count_segments() {
        let (mut losses, ends) = (Losses::default(), Ends::default());
        let told = [
            (3, Class::Retransmission, Place::BehindTap),
            (1, Class::Retransmission, Place::BeforeTap),
            (2000, Class::Lost, Place::Unknown),
            (0, Class::Retransmission, Place::Unknown),
        ];
        for (n, (counted, class, place)) in (0..).zip(told) {
            let verdict = Verdict {
                counted,
                ..verdict(0, START + n * 1_000_000, class, place)
            };
            losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
        }
        let mut out = Vec::new();
        losses.findings(&Timeline::default(), &mut out);
        let [finding] = &out[..] else { panic!("{out:#?}") };
        let evidence = [
            "4 data segments were lost: 0 of the client, 4 of the server; they came again in 2 of 2 data packets (100 %): client to server 0 of 0, server to client 2 of 2",
            "2,000 more never came again, nor did an ACK of them",
            "1 more segments were sent again, and nothing tells",
        ];
        for (line, begin) in [(0, evidence[0]), (3, evidence[1]), (4, evidence[2])] {
            assert!(finding.evidence[line].starts_with(begin), "{finding:#?}");
        }
        assert_eq!(number(finding, "lost"), 4.0);
        assert_eq!(
            [number(finding, "lostClientSide"), number(finding, "lostServerSide")],
            [3.0, 1.0]
        );
    }

    fn number(finding: &Finding, key: &str) -> f64 {
        match finding.values[key].value {
            Some(weir_messages::v1::finding_value::Value::Number(number)) => number,
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn last_segments_count_where_ip_ids_tell_of_them() {
        let mut losses = Losses::default();
        let ends = Ends::default();
        let pair = losses.pair(&mut Route::new(&ends, 0)).1;
        (pair.segments, pair.messages) = ([0, 100], [25, 25]);
        let shown = |losses: &Losses| losses.shown(|_| true, &[[0, 0], [1, 3]]);
        assert_eq!(shown(&losses), [1.0, 0.75]);
        let verdict = Verdict {
            evidence: Evidence::NONE.with(sign::IDS_SKIPPED),
            ..verdict(0, START, Class::Retransmission, Place::BeforeTap)
        };
        losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
        assert_eq!(shown(&losses), [1.0, 1.0]);
    }

    #[test]
    fn what_the_capture_misses_is_no_loss_and_casts_doubt_on_losses() {
        let missed = (Class::Missed, Place::Capture);
        assert!(watch(&[missed]).is_empty());
        let found = watch(&[missed, missed, (Class::Retransmission, Place::BeforeTap)]);
        assert!(found.iter().all(|finding| finding.kind == "LOSS"), "{found:#?}");
    }
}
