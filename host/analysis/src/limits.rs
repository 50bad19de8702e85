//! What limited each transfer (`docs/src/limits.md`): every instant between the first and the last data packet of a
//! request or a response is charged to exactly one cause.
//!
//! Nothing is decided while records come in: samples and spans are noted, and charged when the transfer is over (or
//! when there are many of them), because what a pause was is known only when it ends.

use std::collections::VecDeque;

use weir_record::{Block, BlockEnd, Rtt};

use crate::pieces::Pieces;
use crate::seq::{at_or_before, before};
use crate::silly::{Heard, Silly};
use crate::slow_start::SlowStart;
use crate::writes::Writes;

/// Causes, in the order of [`Charges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The sending application had nothing to send.
    Application,
    /// The sender's buffer was full of unacknowledged data.
    SendBuffer,
    /// Nagle's algorithm waited for an ACK.
    Nagle,
    /// The congestion window was growing from its start.
    SlowStart,
    /// The congestion window was below what an earlier loss had cut it from, or growing by and by.
    CongestionWindow,
    /// A lost segment was being recovered.
    Recovery,
    /// The receiver's window was used up.
    ReceiverWindow,
    /// The receiver's window was below one segment.
    SmallWindow,
    /// The receiver's window was 0.
    ZeroWindow,
    /// The link was busy.
    Bandwidth,
    Unknown,
}

impl Cause {
    pub const COUNT: usize = Self::Unknown as usize + 1;
}

/// ns by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charges([u64; Cause::COUNT]);

impl Charges {
    pub fn add(&mut self, cause: Cause, ns: u64) {
        let sum = &mut self.0[cause as usize];
        *sum = sum.saturating_add(ns);
    }

    pub fn join(&mut self, other: &Self) {
        for (sum, ns) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(ns);
        }
    }

    pub const fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The receiver's window in all its forms.
    pub const fn receiver(&self) -> u64 {
        self.of(Cause::ReceiverWindow).saturating_add(self.closed())
    }

    /// The receiver's window closed or below one segment.
    pub const fn closed(&self) -> u64 {
        self.of(Cause::SmallWindow).saturating_add(self.of(Cause::ZeroWindow))
    }

    /// The sender's own limits.
    pub const fn sender(&self) -> u64 {
        self.of(Cause::SendBuffer).saturating_add(self.of(Cause::Nagle))
    }

    /// The congestion window in all its forms.
    pub const fn congestion(&self) -> u64 {
        self.of(Cause::SlowStart)
            .saturating_add(self.of(Cause::CongestionWindow))
            .saturating_add(self.of(Cause::Recovery))
    }
}

/// What the path and the peers tell of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    /// Bytes of a full segment, with its options; and of the data in it.
    pub segment: u32,
    pub payload: u32,
    /// Smallest round trip from the tap to the receiver and back, ns.
    pub base: Option<u64>,
    /// Smallest round trip from the tap to the sender and back, ns; 0: not known.
    pub other: u64,
    /// Bytes of the receiver's largest window; 0: not known.
    pub window: u32,
    /// Bytes a second, when the user said so.
    pub link: Option<f64>,
}

impl Path {
    /// One round trip over the whole path, ns.
    fn round_trip(&self) -> u64 {
        self.base.unwrap_or(0).saturating_add(self.other)
    }

    /// Whether a transfer of this length is one flight, which takes as long as the link needs.
    pub fn is_one_flight(&self, ns: u64) -> bool {
        ns <= self.round_trip().max(SLACK)
    }

    /// Bytes below which a window has no room.
    /// `exact`: what is in flight is known, not only its average.
    fn room(&self, window: u32, exact: bool) -> u32 {
        // A small window seldom has room for three: what is in flight is most of it, or waits for a delayed ACK.
        let is_small = window <= 2 * ROOM * self.payload;
        let room = (ROOM * self.payload).min(if is_small { window / 4 * 3 } else { window / 4 });
        if exact { room } else { room.max(window / 10) }
    }

    /// A gap between blocks from which on the sender paused, ns.
    fn least_pause(&self) -> u64 {
        SHORTEST_PAUSE.max(self.round_trip() / 8)
    }

    /// Whether the largest segment of the block is full, but for options: where both sides use timestamps, those of SACK alone are not known.
    fn is_full(&self, b: &Block) -> bool {
        let most = u32::from(b.max_segment);
        // The way may be too narrow for what the handshake agreed on: then all of several are as large.
        let alike = b.packets > 1 && b.bytes == u32::from(b.packets) * most;
        if self.payload == self.segment || alike {
            most > 0 && most + OPTIONS >= self.segment
        } else {
            most >= self.payload || SACK.contains(&(self.payload - most))
        }
    }

    /// How far a packet may be from where it is expected, ns.
    fn slack(&self) -> u64 {
        (self.round_trip() / 4).max(SLACK)
    }
}

/// Timing of hosts is not better than this, ns.
pub(crate) const SLACK: u64 = 1_000_000;
/// A pause shorter than this is none, ns.
pub(crate) const SHORTEST_PAUSE: u64 = 200_000;
/// An ACK that comes this much later than the fastest was delayed by its receiver (RFC 1122 4.2.3.2 allows 500 ms;
/// in practice 25, 40, 100 or 200 ms).
pub(crate) const DELAYED_ACK: u64 = 20_000_000;
pub(crate) const DELAYED_ACK_MOST: u64 = 500_000_000;
/// Samples or spans at which a transfer is charged up to the last of them.
const MANY: usize = 192;
/// Samples kept then, for comparison.
const CONTEXT: usize = 8;
/// Bursts compared; and after a loss, when a congestion window may grow by a segment in two round trips only (RFC 9438 4.3).
const BURSTS: usize = 4;
const BURSTS_AFTER_LOSS: usize = 2 * BURSTS;
/// Edges of the receiver's window remembered.
const EDGES: usize = 64;
/// A sender that waits for its buffer sends once in a round trip, or each time that a third of it is free (as Linux
/// wakes its application); what pauses more often paces.
const PIECES: u64 = 3;
/// Segments that such a sender sends at once, at most.
const PACED: u32 = 4;
/// Segments of others between two of them on a slow link.
const OTHERS: u64 = 8;
/// A round trip that is longer by an eighth, within these, ns, can end slow start (RFC 9406 4.2).
const LEAST_LATER: u64 = 4_000_000;
const MOST_LATER: u64 = 16_000_000;
/// The receiver's window counts as used up when less than this many segments would fit (Siekkinen et al.).
const ROOM: u32 = 3;
/// Bytes that options take from a full segment, at most (RFC 9293 3.1).
const OPTIONS: u32 = 40;
/// Bytes that timestamps take from it (RFC 7323 appendix A).
pub(crate) const TIMESTAMPS: u32 = 12;
/// And one to three SACK blocks (RFC 2018 3).
const SACK: [u32; 3] = [12, 20, 28];
/// Growth from one round trip to the next that only a congestion window shows.
const GROWTH: f64 = 1.2;
/// Round trips from which on it can be told that none is there.
const FLAT_TRIPS: usize = 3;
/// Differences up to this are none.
const FLAT: f64 = 1.15;
/// Round trips above the smallest by this factor are queueing.
const QUEUE: f64 = 1.25;
/// Share of the best rate that a transfer has of a link with a queue when another one is there.
const SHARED: f64 = 0.4;
/// Share of the link's rate at which it is busy.
const BUSY: f64 = 0.9;
/// A link's rate, with what others send on it, differs by so much from one round trip to the next.
const STEADY: f64 = 1.5;
/// In a recovery the congestion window is half of what was in flight or more (RFC 5681 3.2). It has room for new segments if this many
/// were in flight, of which no more than a quarter was sent again.
const MANY_IN_FLIGHT: u32 = 8;
const FEW_AGAIN: u32 = 4;
/// Share of the window that a burst has whose last segment its edge may have cut.
const NEARLY: f64 = 0.75;
/// Share of the bytes in flight that a burst has behind the tap at once.
const MOST: f64 = 0.6;

/// One round trip.
#[derive(Clone, Copy, Debug)]
struct Sample {
    time: u64,
    /// ns.
    rtt: u64,
    ack: u32,
    /// End of the timed segment.
    end: u32,
    /// Bytes in flight behind the tap after the ACK, and at most since the sample before.
    flight: u32,
    flight_max: u32,
    /// Window in bytes, if known.
    window: Option<u32>,
    /// The one under which the timed segment was sent.
    window_before: Option<u32>,
    /// Whether the timed segment went to the edge of the window that its sender knew of, if that is known.
    at_edge: Option<bool>,
    /// Time since the sample before in which the sender surely stood there, and in which it surely did not, ns.
    edge_ns: u64,
    room_ns: u64,
    /// Bytes since the sample before that a slow link before the tap spaced, less those that none did.
    spaced: i64,
    /// What passed that link one behind the other.
    passed: Passage,
    /// The same of blocks with PSH behind less than a full segment: there the application had written no more.
    partial: i64,
}

impl Sample {
    /// Whether its sender had just heard this ACK when it sent what passed the tap at `next`.
    fn lets_go(&self, next: u64, path: &Path) -> bool {
        let jitter = SHORTEST_PAUSE + path.round_trip() / 64;
        next.abs_diff(self.time.saturating_add(path.other)) <= jitter
    }
}

/// What passed a link before the tap without a pause, and how long it took.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    bytes: u64,
    ns: u64,
}

impl Passage {
    const fn join(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
    }

    /// Bytes/s; 0 of nothing.
    fn rate(self) -> f64 {
        self.bytes as f64 / self.ns.max(1) as f64 * 1e9
    }
}

#[derive(Clone, Copy, Debug)]
struct Span {
    from: u64,
    to: u64,
    cause: Cause,
    /// Of a full send buffer, and of the application.
    sure: Sure,
    /// Bytes of the flight before it; 0: not one flight.
    flight: u32,
}

/// How a pause is known to be that of a full send buffer, or of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sure {
    /// By what the trips around it look like.
    ByTrips,
    /// It is, if slow start turns out to have gone on.
    IfGrows,
    /// By the pauses themselves, whatever the trips around look like.
    Yes,
    /// Nothing that was written was left to send, whatever was sent again.
    Dry,
}

/// ns between segments; 1,500 bytes at 120 Mbit/s.
const SPACED: u64 = 100_000;

/// What outranks what when spans overlap.
const fn rank(span: &Span) -> u8 {
    match span.cause {
        Cause::SendBuffer if matches!(span.sure, Sure::Dry) => 6,
        Cause::ZeroWindow => 9,
        Cause::SmallWindow => 8,
        Cause::Recovery => 5,
        Cause::Nagle | Cause::CongestionWindow => 4,
        Cause::ReceiverWindow => 7,
        Cause::Application => 3,
        Cause::SendBuffer => 2,
        _ => 1,
    }
}

/// The end of a block, for what comes after it.
#[derive(Clone, Copy, Debug)]
struct BlockTail {
    last: u64,
    /// It ended with PSH: the sender had no more.
    pushed: bool,
    /// Full segments only: the application did not stop there, its buffer did.
    whole: bool,
    /// Highest ACK that had passed the tap.
    acked: Option<u32>,
    /// End of its sequence space.
    end: u32,
    /// It used up the window that its sender had heard of.
    at_edge: bool,
    /// It surely left room in it.
    has_room: bool,
    /// How far its segments stood apart, if a slow link before the tap made them; else 0, ns.
    apart: u64,
}

/// What was sent again since the last block.
#[derive(Clone, Copy, Debug)]
struct Repeats {
    /// The first time.
    first: u64,
    count: u32,
    /// Bytes in flight then.
    flight: u32,
}

/// The end of the receiver's window in the sequence space, as the tap saw it.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// First and last time that it was seen there.
    from: u64,
    to: u64,
    at: u32,
    window: u32,
}

impl Edge {
    /// Bytes of room behind `end`.
    fn left(&self, end: u32) -> i32 {
        self.at.wrapping_sub(end) as i32
    }

    /// Whether a sender stands at it that has sent up to `end`.
    fn is_reached(&self, end: u32, path: &Path) -> bool {
        let room = path.room(self.window, true).max(path.payload);
        i64::from(self.left(end)) < i64::from(room)
    }
}

/// A transfer up to a block: its first and last packet and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoFar {
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
}

/// What a transfer was limited by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Charged {
    pub by: Charges,
    /// Time that packets waited in queues, ns.
    pub queueing: u64,
}

impl Charged {
    /// A transfer that was one flight.
    pub fn one_flight(ns: u64) -> Self {
        let mut one = Self::default();
        one.by.add(Cause::Bandwidth, ns);
        one
    }
}

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfer {
    samples: Vec<Sample>,
    spans: Vec<Span>,
    tail: Option<BlockTail>,
    edges: VecDeque<Edge>,
    /// Time since the last sample in which the sender had surely used up the window that it had heard of, and in which it surely had
    /// not, ns.
    edge_ns: u64,
    room_ns: u64,
    /// Bytes since then that a slow link before the tap spaced, less those that none did.
    spaced: i64,
    /// What passed that link since then one behind the other; and its last block behind the first segment.
    passed: Passage,
    pace: Passage,
    /// The same of blocks with PSH behind less than a full segment.
    partial: i64,
    bursts: Bursts,
    writes: Writes,
    pieces: Pieces,
    /// End of the last piece below a segment.
    small: Option<u32>,
    /// Something was lost behind the last block, and the congestion window had room for more than that.
    had_room: bool,
    /// The receiver's windows.
    pub silly: Silly,
    /// Of the transfer in progress: where its charges begin and end.
    charged: Option<(u64, u64)>,
    pending: Charged,
    /// Window closed (true) or small (false) since.
    closed: Option<(u64, bool)>,
    /// When the window was full last.
    full: Option<u64>,
    /// Since when nothing new was sent there, as what is sent again tells, and where it was.
    stands: Option<(u64, u32)>,
    /// When something was sent again last.
    again: Option<u64>,
    repeats: Option<Repeats>,
    /// Up to where trips that are over have been measured.
    measured: Option<u32>,
    flight_since: u32,
    rate_max: f64,
    /// Most bytes in flight at a loss.
    loss_flight: u32,
    /// When the last loss is recovered.
    recovering: u64,
    /// First and last sign of a loss or of reordering, until something is sent again.
    signs: Option<(u64, u64)>,
    /// Round trips since the last loss.
    acks_since_loss: u32,
    /// Bytes in flight when the send buffer, and when the receiver's window, was the limit.
    pub sender_bytes: u32,
    pub receiver_bytes: u32,
    /// Most bytes in flight over the whole path.
    pub peak: u32,
    /// Best rate over a round trip while a queue stood, bytes/s.
    pub link_rate: f64,
    pub total: Charged,
    /// ns by which charges did not add up to their transfers before they were made to; 0 unless records were lost.
    pub unbalanced: u64,
    pub delayed_acks: u32,
    pub acks: u32,
    pub nagle: u32,
}

/// What was sent between pauses after full segments.
#[derive(Clone, Copy, Debug, Default)]
struct Bursts {
    /// Since the last pause, and when it ended.
    bytes: u32,
    since: u64,
    /// Longest gap within, and when it ended.
    longest: u64,
    longest_at: u64,
    /// Its beginning is not known: it lies within a block.
    cut: bool,
    /// The last ACK and the window in bytes when it began, if known.
    window: Option<(u32, u32)>,
    /// Between those before, the newest first; 0: none.
    before: [u32; BURSTS_AFTER_LOSS],
    slow_start: SlowStart,
    /// The burst before was a whole congestion window, as slow start tells.
    fills: bool,
    /// A pause was surely that of a full send buffer.
    proven: bool,
}

impl Bursts {
    fn begin(since: u64) -> Self {
        Self {
            since,
            ..Self::default()
        }
    }

    /// Something else than the sender ended the burst.
    fn restart(&mut self, since: u64) {
        *self = Self {
            slow_start: self.slow_start,
            proven: self.proven,
            ..Self::begin(since)
        };
    }

    /// A gap within the burst, up to `time`; `trip`: a round trip as it is now.
    fn gap(&mut self, gap: u64, time: u64, trip: u64) {
        if gap >= self.longest(time, trip) {
            (self.longest, self.longest_at) = (gap, time);
        }
    }

    /// The longest gap within the burst in the last round trip: the one before is that of the pause before.
    fn longest(&self, time: u64, trip: u64) -> u64 {
        let is_recent = time.saturating_sub(self.longest_at) <= trip;
        if is_recent { self.longest } else { 0 }
    }

    /// A pause. Whether the burst was like the one before it and has not grown over the last ones: a send buffer has one
    /// size, a congestion window grows by a segment in each round trip (RFC 5681 3.1), or in two after a loss. `next`: the
    /// next burst begins.
    fn end(&mut self, next: u64, segment: u32, lost: bool) -> bool {
        let burst = self.bytes;
        let last = f64::from(self.before[0]);
        let compared = &self.before[..if lost { BURSTS_AFTER_LOSS } else { BURSTS }];
        let oldest = compared[compared.len() - 1];
        let steady = oldest > 0 && burst <= oldest.saturating_add(segment);
        let near = f64::from(burst) * FLAT >= last && (steady || !lost && compared.iter().any(|b| burst <= *b));
        let like = near && !self.cut && f64::from(burst) <= last * FLAT;
        let mut before = self.before;
        before.rotate_right(1);
        before[0] = if self.cut { 0 } else { burst };
        *self = Self {
            before,
            slow_start: self.slow_start,
            fills: self.fills,
            proven: self.proven,
            ..Self::begin(next)
        };
        like
    }

    /// Whether the burst, which ends in `tail` and is followed by another at `next`, was what one round trip had in flight.
    fn is_flight(&self, tail: &BlockTail, next: u64, path: &Path) -> bool {
        let trip = path.round_trip();
        !self.cut
            && tail.last.saturating_sub(self.since) < trip / PIECES
            && next.saturating_sub(self.since) >= trip - trip / 8
    }

    /// Whether the burst used up the window of the receiver as it was when it began, and its sender can have heard of no
    /// other before it ended.
    fn filled(&self, tail: &BlockTail, path: &Path) -> bool {
        self.window.is_some_and(|(ack, window)| {
            let left = ack.wrapping_add(window).wrapping_sub(tail.end);
            let same = tail.acked == Some(ack) || tail.last.saturating_sub(self.since) < path.other;
            window > 0 && left < ROOM * path.segment && same
        })
    }

    /// Whether the burst was most of the window as the tap knew it when it began. Where it ends with less than a segment, although more
    /// followed, an edge has cut it that was not known here: no congestion window cuts segments.
    fn nearly_filled(&self) -> bool {
        self.window
            .is_some_and(|(_, window)| f64::from(self.bytes) >= NEARLY * f64::from(window))
    }
}

/// Both directions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub sides: [Transfer; 2],
}

impl Limits {
    /// For reuse: empty, with its memory.
    pub fn clear(&mut self) {
        for side in &mut self.sides {
            side.samples.clear();
            side.spans.clear();
            side.edges.clear();
            *side = Transfer {
                samples: std::mem::take(&mut side.samples),
                spans: std::mem::take(&mut side.spans),
                edges: std::mem::take(&mut side.edges),
                ..Transfer::default()
            };
        }
    }
}

impl Transfer {
    /// A round trip. `window` is the receiver's, in bytes.
    pub fn sample(&mut self, time: u64, r: &Rtt, window: Option<u32>, path: &Path) {
        if self.samples.len() >= MANY {
            self.charge_some(path);
        }
        self.acks = self.acks.saturating_add(1);
        self.acks_since_loss = self.acks_since_loss.saturating_add(1);
        if is_delayed(r.rtt, r.flight, path) {
            self.delayed_acks = self.delayed_acks.saturating_add(1);
        }
        let sent = time.saturating_sub(r.rtt);
        let at_edge = self.at_edge(sent, r.seq_end, path);
        let window_before = self.heard(sent, path).map(|edge| edge.window);
        self.saw(time, r.ack, window);
        self.stood_since_block(time, path);
        self.had_room_since_block(time);
        if let Some(window) = window {
            let binds = at_edge == Some(true) || window.saturating_sub(r.flight) < path.segment;
            let heard = Heard {
                time,
                sent,
                ack: r.ack,
                window,
                binds,
            };
            self.silly.heard(heard, path.segment, path.window);
        }
        self.samples.push(Sample {
            time,
            rtt: r.rtt,
            ack: r.ack,
            end: r.seq_end,
            flight: r.flight,
            flight_max: self.flight_since.max(r.flight),
            window,
            window_before,
            at_edge,
            edge_ns: std::mem::take(&mut self.edge_ns),
            room_ns: std::mem::take(&mut self.room_ns),
            spaced: std::mem::take(&mut self.spaced),
            passed: std::mem::take(&mut self.passed),
            partial: std::mem::take(&mut self.partial),
        });
        self.flight_since = r.flight;
    }

    /// Whether a segment that passed the tap at `time` and ends at `end` left no room in the window that its sender had
    /// heard of: the ACK before it by the round trip from the tap to the sender and back. None: not known.
    fn at_edge(&self, time: u64, end: u32, path: &Path) -> Option<bool> {
        let heard = time.saturating_sub(path.other);
        let last = self.samples.iter().rev().find(|s| s.time <= heard)?;
        // An older one may not be the last that the sender had heard.
        if heard - last.time > (path.round_trip() / 10).max(SLACK) {
            return None;
        }
        let window = last.window?;
        let left = last.ack.wrapping_add(window).wrapping_sub(end) as i32;
        let room = ROOM * path.segment;
        if i64::from(left) >= i64::from(room) {
            return Some(false);
        }
        // Where the ACKs of a flight come at once, that sample and what the sender had heard may be a flight apart.
        let most = self.heard(time, path).map_or(left, |edge| edge.left(end));
        (i64::from(most) < i64::from(2 * room)).then_some(true)
    }

    /// The receiver's window as the tap knew it at a time.
    pub fn saw(&mut self, time: u64, ack: u32, window: Option<u32>) {
        let Some(window) = window else { return };
        let at = ack.wrapping_add(window);
        match self.edges.back_mut() {
            Some(last) if last.at == at => last.to = last.to.max(time),
            Some(last) if time < last.to => {}
            _ => {
                if self.edges.len() == EDGES {
                    self.edges.pop_front();
                }
                self.edges.push_back(Edge {
                    from: time,
                    to: time,
                    at,
                    window,
                });
            }
        }
    }

    /// The furthest edge that the sender can have heard of when it sent what passed the tap at `time`: of no later ACK than the one before by
    /// the round trip from the tap to the sender and back, whose edge was no further than the next that is known.
    fn heard(&self, time: u64, path: &Path) -> Option<&Edge> {
        let heard = time.saturating_sub(path.other);
        self.edges.iter().find(|edge| edge.to >= heard)
    }

    /// When the sender, which has sent up to `end`, heard of room behind it, at `since` or later.
    fn opened(&self, since: u64, end: u32, path: &Path) -> Option<u64> {
        let heard = |edge: &Edge| edge.from.saturating_add(path.other);
        let opens = |edge: &&Edge| heard(edge) > since && !edge.is_reached(end, path);
        self.edges.iter().find(opens).map(heard)
    }

    /// Whether the window surely ended within the block when its first segment was sent, and had room for less than three more.
    fn is_cut(&self, b: &Block, end: u32, path: &Path) -> bool {
        b.bytes <= (ROOM + 1) * path.segment && self.heard(b.first, path).is_some_and(|edge| edge.left(end) < 0)
    }

    /// The sender stood at the edge of the window.
    fn stood(&mut self, from: u64, to: u64) {
        let from = self.samples.last().map_or(0, |s| s.time).max(from);
        self.edge_ns = self.edge_ns.saturating_add(to.saturating_sub(from));
    }

    /// The sender has sent nothing since the last block.
    fn stood_since_block(&mut self, to: u64, path: &Path) {
        let Some(tail) = self.tail.filter(|tail| tail.at_edge) else {
            return;
        };
        let to = self
            .opened(tail.last, tail.end, path)
            .map_or(to, |opened| opened.min(to));
        self.stood(tail.last, to);
        if tail.last < self.recovering {
            // The lost segment keeps the edge where it is; its repeat was no block.
            let from = self.samples.last().map_or(0, |s| s.time).max(tail.last);
            self.window_pause(from, to, tail.end, path);
        }
    }

    /// The sender has sent nothing since the last block, although the window had room.
    fn had_room_since_block(&mut self, to: u64) {
        if let Some(tail) = self.tail.filter(|tail| tail.has_room) {
            let from = self.samples.last().map_or(0, |s| s.time).max(tail.last);
            self.room_ns = self.room_ns.saturating_add(to.saturating_sub(from));
        }
    }

    /// Bytes in flight behind the tap at some time since the last sample.
    pub fn flight(&mut self, bytes: u32) {
        self.flight_since = self.flight_since.max(bytes);
    }

    /// A block ended.
    /// `before`: what there is before it in this transfer.
    /// `window`: the receiver's last, in bytes.
    pub fn block(&mut self, code: u8, b: &Block, before: Option<SoFar>, window: Option<u32>, path: &Path) {
        self.flight(b.flight);
        self.stood_since_block(b.first, path);
        self.had_room_since_block(b.first);
        let full = u32::from(b.max_segment);
        let is_full = path.is_full(b);
        let noted = self
            .tail
            .filter(|tail| before.is_some_and(|before| before.last == tail.last));
        let tail = noted.or_else(|| {
            let SoFar { first, last, bytes } = before?;
            self.bursts = Bursts::begin(first);
            self.bursts.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            Some(BlockTail {
                last,
                pushed: true,
                whole: are_whole(bytes, path.segment) || is_full && bytes.is_multiple_of(u64::from(full)),
                acked: None,
                end: b.seq,
                at_edge: false,
                has_room: false,
                apart: 0,
            })
        });
        match tail {
            Some(tail) => self.pause(tail, b, path),
            None => self.bursts = Bursts::begin(b.first),
        }
        self.written(b, is_full, before, path);
        let end = b.seq.wrapping_add(b.bytes);
        self.stood_since_repeat(b, end, path);
        let acked = end.wrapping_sub(b.flight);
        let pushed = BlockEnd::from_u8(code) == Some(BlockEnd::Push);
        if pushed {
            // What other blocks tell is later than their end.
            self.saw(b.last, acked, window);
        }
        let edge = self.heard(b.last, path).filter(|_| pushed);
        let at_edge = edge.is_some_and(|edge| edge.is_reached(end, path));
        // What stands apart may have waited in a queue before the tap, and its sender had heard less.
        let apart = apart(b);
        let has_room = apart.is_some_and(|ns| ns < SPACED) && edge.is_some_and(|edge| !edge.is_reached(end, path));
        if self.is_cut(b, end, path) {
            self.stood(b.first, b.last);
        }
        if self.bursts.bytes == 0 && !self.bursts.cut {
            self.bursts.window = window.map(|window| (acked, window));
        }
        self.bursts.bytes = self.bursts.bytes.saturating_add(b.bytes);
        if b.last.saturating_sub(b.first) >= path.round_trip() / 2 {
            // Two flights, the first of which ended without PSH: the sender had more.
            self.bursts.restart(b.last);
            self.bursts.cut = true;
            self.bursts.window = window.map(|window| (acked, window));
        }
        if let Some(full) = self.full.filter(|full| full.saturating_add(path.slack()) < b.last) {
            // In the middle of a block: for as long as an ACK takes.
            let to = full.saturating_add(path.round_trip()).min(b.last);
            self.span(full, to, Cause::ReceiverWindow, path);
            self.full = None;
        }
        let bytes = i64::from(b.bytes);
        self.spaced = self.spaced.saturating_add(if is_spaced(b) { bytes } else { -bytes });
        let passage = self.passage(b, is_full);
        self.passed.join(passage);
        let whole = is_full && b.bytes.is_multiple_of(full);
        self.partial = self
            .partial
            .saturating_add(if pushed && !whole { bytes } else { -bytes });
        if !whole && b.packets > 1 {
            self.small_tail(b, path);
        }
        if !whole {
            self.small = Some(end);
        }
        if !is_full && self.was_small(b) {
            // What goes without PSH or FIN has more behind it.
            let end = matches!(BlockEnd::from_u8(code), Some(BlockEnd::Push | BlockEnd::Fin));
            let pieces = u32::from(b.packets).saturating_sub(u32::from(end));
            self.silly.pieces = self.silly.pieces.saturating_add(pieces);
        }
        self.tail = Some(BlockTail {
            last: b.last,
            pushed,
            whole,
            acked: Some(acked),
            end,
            at_edge,
            has_room,
            apart: apart.filter(|ns| *ns >= SPACED).unwrap_or(0),
        });
    }

    /// What was written may have come to its end at the last block, whatever was sent again since then.
    fn written(&mut self, b: &Block, is_full: bool, before: Option<SoFar>, path: &Path) {
        let from = before.map_or(b.first, |before| self.tail.map_or(before.last, |tail| tail.last));
        let gap = b.first.saturating_sub(from);
        match (before, self.tail) {
            (None, _) => self.writes = Writes::begin(b.seq, 0),
            (Some(before), None) => {
                let sent = u32::try_from(before.bytes).unwrap_or(u32::MAX);
                self.writes = Writes::begin(b.seq.wrapping_sub(sent), sent);
            }
            (Some(_), Some(tail)) => {
                let is_pause = tail.pushed && tail.end == b.seq && gap >= path.least_pause();
                if is_pause
                    && (self
                        .writes
                        .pause(tail.end, path.window, self.loss_flight == 0 && self.sender_bytes > 0)
                        || self.had_nothing_new(tail, b, path)
                        || self.had_room)
                {
                    let span = Span {
                        from,
                        to: self.all_acknowledged(from, b.first, path).unwrap_or(b.first),
                        cause: Cause::SendBuffer,
                        sure: Sure::Dry,
                        flight: 0,
                    };
                    self.push(span, path);
                }
            }
        }
        self.writes.block(b, is_full, gap);
        // What stands apart may be two pieces, the first of which was one segment without PSH.
        let is_piece = is_full && !is_spaced(b) && path.payload > 0 && b.bytes.is_multiple_of(path.payload);
        let piece = if is_piece { b.bytes } else { 0 };
        self.pieces
            .piece(piece, path.payload, (b.first, b.last), path.round_trip());
        self.repeats = None;
        self.had_room = false;
    }

    /// How long a slow link before the tap was busy with a block of full segments: from segment to segment; one by itself
    /// took it as long as those before.
    fn passage(&mut self, b: &Block, is_full: bool) -> Passage {
        if is_spaced(b) && is_full {
            let behind_first = u64::from(b.bytes) * u64::from(b.packets - 1) / u64::from(b.packets);
            self.pace = Passage {
                bytes: behind_first,
                ns: b.last.saturating_sub(b.first),
            };
        } else if b.packets > 1 || !is_full {
            self.pace = Passage::default();
        }
        let bytes = u64::from(b.bytes);
        let ns = u128::from(bytes) * u128::from(self.pace.ns);
        ns.checked_div(u128::from(self.pace.bytes))
            .map_or_else(Passage::default, |ns| Passage { bytes, ns: ns as u64 })
    }

    /// Whether the recovery between the block that ended in `tail` and the next one shows that nothing was left to send: for a round trip
    /// after the first repeat nothing new went, although both windows had room. (What ended just before the repeat may be what
    /// the congestion window let go with it. And less than a segment is the end of the transfer.)
    fn had_nothing_new(&self, tail: BlockTail, next: &Block, path: &Path) -> bool {
        let trip = path.round_trip();
        let room = |edge: &Edge| i64::from(edge.at.wrapping_sub(tail.end) as i32) >= i64::from(ROOM * path.segment);
        let is_window_open = !tail.at_edge && self.edges.back().is_none_or(room);
        self.repeats.is_some_and(|again| {
            tail.whole
                && is_window_open
                && again.flight >= (FEW_AGAIN * again.count).max(MANY_IN_FLIGHT) * path.segment
                && (trip / 4..=trip + trip / 2).contains(&again.first.saturating_sub(tail.last))
                && next.first.saturating_sub(again.first) >= trip - trip / 4
                && next.bytes > path.segment
        })
    }

    /// Whether the receiver's window was small while the block was sent.
    fn was_small(&self, b: &Block) -> bool {
        let small = |s: &Span| s.cause == Cause::SmallWindow && s.from < b.last && s.to > b.first;
        self.closed.is_some_and(|(since, zero)| !zero && since < b.last) || self.spans.iter().any(small)
    }

    /// The time between two blocks of a transfer.
    fn pause(&mut self, tail: BlockTail, b: &Block, path: &Path) {
        let gap = b.first.saturating_sub(tail.last);
        if self.full.is_some_and(|full| full <= tail.last) && gap >= SHORTEST_PAUSE {
            self.full = None;
            if gap >= path.round_trip() / 8 {
                self.filled_window(&tail, b.first, path);
            }
            self.window_pause(tail.last, b.first, tail.end, path);
            return;
        }
        let timed = self.samples.last().map_or(0, |s| s.rtt.saturating_add(path.other));
        let now = timed.max(path.round_trip());
        if !tail.pushed || gap < path.least_pause() {
            self.bursts.gap(gap, b.first, now);
            return;
        }
        if tail.at_edge || self.bursts.filled(&tail, path) {
            return self.ended_at_edge(&tail, b.first, path);
        }
        let trigger = self.trigger(tail.last, b.first, path);
        let small = !path.is_full(b) && b.bytes < path.payload;
        let cause = match trigger.filter(|_| small) {
            Some(ack) if is_delayed(ack.rtt, ack.flight, path) => self.held_back(ack, path),
            Some(ack) if b.packets == 1 && self.lets_go_small(&ack, b.first, path) => self.held_back(ack, path),
            _ if !(tail.whole || self.clocked(&tail, b.first, path))
                || gap > path.round_trip().saturating_add(DELAYED_ACK_MOST) =>
            {
                Cause::Application
            }
            _ => Cause::SendBuffer,
        };
        if cause == Cause::Application {
            self.bursts.restart(b.first);
            let to = self.all_acknowledged(tail.last, b.first, path).unwrap_or(b.first);
            self.span(tail.last, to, cause, path);
            self.idle(to, b.first, path);
            return;
        }
        if cause != Cause::SendBuffer {
            self.bursts.restart(b.first);
            self.span(tail.last, b.first, cause, path);
            return;
        }
        let trip = path.round_trip();
        let cycle = b.first.saturating_sub(self.bursts.since);
        let is_part = || {
            let of_flight = |flight| gap < now / 2 && u64::from(self.bursts.bytes) * (PIECES + 1) < u64::from(flight);
            gap < tail.apart.saturating_mul(OTHERS) || self.in_flight(&tail, path).is_some_and(of_flight)
        };
        let is_few = !self.bursts.cut && self.bursts.bytes <= PACED * path.payload;
        if cycle < trip / PIECES || gap < self.bursts.longest(b.first, now).saturating_mul(2) || is_few && is_part() {
            // Paced.
            self.bursts.gap(gap, b.first, now);
            return;
        }
        let burst = self.bursts.bytes;
        let is_flight = self.bursts.is_flight(&tail, b.first, path);
        if is_flight && !tail.whole && self.bursts.nearly_filled() {
            return self.ended_at_edge(&tail, b.first, path);
        }
        let fills = is_flight && self.loss_flight == 0 && self.bursts.slow_start.fills(burst, path.payload);
        let filled = std::mem::replace(&mut self.bursts.fills, fills);
        if fills {
            self.pieces.filled(burst, path.payload, trip);
        }
        let held = self.held(&tail, is_flight, path);
        let had_room = self.had_room(&tail, is_flight, path);
        if had_room {
            self.bursts.slow_start.was_held();
        }
        if is_flight && self.loss_flight == 0 && burst.saturating_add(path.segment) < self.bursts.before[0] {
            // The one before left nothing in the buffer: it would be here.
            self.prove();
        }
        // No ACK is under way for longer; what takes longer waited in a queue before the tap.
        let longest = trip.saturating_add(trip / 2);
        let like =
            self.bursts.end(b.first, path.segment, self.loss_flight > 0) && gap <= longest && burst >= self.loss_flight;
        if like || had_room {
            self.sender_bytes = self.sender_bytes.max(burst);
        }
        if like {
            if let Some(last) = self.spans.iter_mut().rev().find(|s| s.cause == Cause::SendBuffer)
                && !filled
            {
                last.sure = last.sure.max(Sure::Yes);
            }
            self.prove();
        }
        let from = tail.last;
        let idle = self.all_acknowledged(from, b.first, path).filter(|_| !is_spaced(b));
        let to = idle.unwrap_or(b.first);
        let sure = match (like || had_room, held) {
            (true, _) => Sure::Yes,
            (false, true) if self.bursts.proven => Sure::Yes,
            (false, true) => Sure::IfGrows,
            (false, false) => Sure::ByTrips,
        };
        let span = Span {
            from,
            to,
            cause,
            sure,
            flight: if is_flight { burst } else { 0 },
        };
        self.push(span, path);
        self.idle(to, b.first, path);
    }

    /// The burst that ends in `tail` was ended by the receiver's window.
    fn filled_window(&mut self, tail: &BlockTail, next: u64, path: &Path) {
        if self.loss_flight == 0 && self.bursts.is_flight(tail, next, path) {
            self.bursts.slow_start.filled_window(self.bursts.bytes);
        }
        self.bursts.restart(next);
    }

    /// The same, and it kept the sender from `tail` on.
    fn ended_at_edge(&mut self, tail: &BlockTail, next: u64, path: &Path) {
        self.filled_window(tail, next, path);
        self.window_pause(tail.last, next, tail.end, path);
    }

    /// The receiver's window kept the sender at `end` from `from` until it heard that the window had opened or that all had arrived; then it
    /// had nothing to send. (A window that was small then has spans of its own.)
    fn window_pause(&mut self, from: u64, next: u64, end: u32, path: &Path) {
        let acknowledged = self.all_acknowledged(from, next, path).unwrap_or(next);
        let to = self
            .opened(from, end, path)
            .map_or(acknowledged, |opened| opened.min(acknowledged));
        if from < to {
            self.span(from, to, Cause::ReceiverWindow, path);
        }
        self.idle(acknowledged, next, path);
    }

    /// All was acknowledged, and the sender knew: it had nothing to send.
    fn idle(&mut self, from: u64, to: u64, path: &Path) {
        if from < to {
            let span = Span {
                from,
                to,
                cause: Cause::Application,
                sure: Sure::Yes,
                flight: 0,
            };
            self.push(span, path);
        }
    }

    /// Whether the ACK of a segment of the flight that ends in `tail` let the next one begin at `next`: the congestion window or the buffer
    /// was full, although the last segment was not. (An application does not hear of ACKs.)
    fn clocked(&self, tail: &BlockTail, next: u64, path: &Path) -> bool {
        let flight = self.bursts.since..=tail.last;
        let lets_go = |ack: &Sample| flight.contains(&ack.time.saturating_sub(ack.rtt)) && ack.lets_go(next, path);
        self.bursts.is_flight(tail, next, path) && self.samples.iter().rev().take(CONTEXT).any(lets_go)
    }

    /// Whether this ACK is the first of the last piece below a segment, and let what begins at `next` go: a sender with Nagle's
    /// algorithm has one such piece in flight (Linux: `tcp_minshall_check`; RFC 896 lets it wait for all).
    fn lets_go_small(&self, ack: &Sample, next: u64, path: &Path) -> bool {
        let Some(small) = self.small else { return false };
        let is_earlier = |other: &&Sample| other.time < ack.time;
        let earlier = self.samples.iter().rev().find(is_earlier);
        let is_first = earlier.is_none_or(|earlier| before(earlier.ack, small));
        is_first && at_or_before(small, ack.ack) && ack.lets_go(next, path)
    }

    /// Whether the burst that ends in `tail` was smaller than a congestion window in slow start would have let it be.
    /// It counts if it was short, so that all of it was one flight, and if it did not make the round trip longer, which
    /// can end slow start (RFC 9406 4.2).
    fn held(&mut self, tail: &BlockTail, is_flight: bool, path: &Path) -> bool {
        self.grown(path);
        let since = self.bursts.since;
        let trip = path.round_trip();
        let late = path
            .base
            .unwrap_or(0)
            .saturating_add((trip / 8).clamp(LEAST_LATER, MOST_LATER));
        let within = |s: &&Sample| (since..=tail.last).contains(&s.time.saturating_sub(s.rtt));
        let fastest = self
            .samples
            .iter()
            .rev()
            .take(CONTEXT)
            .filter(within)
            .map(|s| s.rtt)
            .min();
        if self.loss_flight > 0 || !is_flight {
            self.bursts.slow_start.skip();
            return false;
        }
        let held = self.bursts.slow_start.flight(self.bursts.bytes);
        held && fastest.is_none_or(|rtt| rtt < late)
    }

    /// Whether the congestion window had room for more behind `tail`, as the pieces before it tell.
    fn had_room(&self, tail: &BlockTail, is_flight: bool, path: &Path) -> bool {
        let flight = if is_flight {
            let behind_tap = tail.acked.map_or(0, |acked| tail.end.wrapping_sub(acked));
            Some(self.bursts.bytes.max(behind_tap))
        } else {
            self.in_flight(tail, path)
        };
        tail.last >= self.recovering
            && flight.is_some_and(|flight| self.pieces.held(flight, path.payload, path.round_trip()))
    }

    /// Bytes that the sender had not heard to have arrived when it sent the end of `tail`.
    fn in_flight(&self, tail: &BlockTail, path: &Path) -> Option<u32> {
        let heard = tail.last.saturating_sub(path.other);
        let edge = self.edges.iter().rev().find(|edge| edge.from <= heard);
        edge.map(|edge| tail.end.wrapping_sub(edge.at.wrapping_sub(edge.window)))
    }

    /// Whether the burst in hand shows that slow start has not ended before it.
    fn grown(&mut self, path: &Path) {
        if self.loss_flight == 0 && self.bursts.slow_start.grows(self.bursts.bytes, path.segment) {
            self.prove();
        }
    }

    /// Pauses that were the send buffer's if slow start went on were.
    fn prove(&mut self) {
        for span in self.spans.iter_mut().filter(|s| s.sure == Sure::IfGrows) {
            span.sure = Sure::Yes;
            self.bursts.proven = true;
        }
    }

    /// When the sender had heard that all had arrived, if it still waited then. None, too, where it is not known how far away it is.
    fn all_acknowledged(&self, from: u64, next: u64, path: &Path) -> Option<u64> {
        if path.other == 0 {
            return None;
        }
        let slack = path.slack();
        let last = self.samples.iter().rev().take(4).find(|s| s.time >= from)?;
        let heard = last.time.saturating_add(path.other);
        (last.flight == 0 && heard.saturating_add(slack) < next).then_some(heard)
    }

    /// The ACK that let the sender go on at `next`, if one did.
    fn trigger(&self, after: u64, next: u64, path: &Path) -> Option<Sample> {
        let slack = path.slack();
        let near = |s: &&Sample| s.time >= after && s.time <= next && next - s.time <= path.other.saturating_add(slack);
        self.samples.iter().rev().take(4).find(near).copied()
    }

    /// A block whose last segment waited for an ACK (RFC 896), which its receiver delayed.
    fn small_tail(&mut self, b: &Block, path: &Path) {
        if b.last.saturating_sub(b.first) < DELAYED_ACK {
            return;
        }
        let Some(ack) = self.trigger(b.first, b.last, path) else {
            return;
        };
        if is_delayed(ack.rtt, ack.flight, path) {
            let cause = self.held_back(ack, path);
            self.span(ack.time.saturating_sub(ack.rtt), b.last, cause, path);
        }
    }

    /// What made less than a segment wait for an ACK: Nagle's algorithm, or the congestion window, which begins with
    /// one segment after a timeout and grows by one with each ACK (RFC 5681 3.1).
    fn held_back(&mut self, ack: Sample, path: &Path) -> Cause {
        let in_flight = ack.flight_max.div_ceil(path.segment.max(1));
        let since = ack.time.saturating_sub(2 * path.round_trip());
        let has_gap = self.signs.is_some_and(|(_, last)| last >= since);
        if has_gap || self.loss_flight > 0 && self.acks_since_loss <= in_flight.max(1) {
            return Cause::CongestionWindow;
        }
        self.nagle = self.nagle.saturating_add(1);
        Cause::Nagle
    }

    /// A gap, or what tells of one: a loss, if something is sent again within two round trips, or when a timer
    /// has run out since; reordering otherwise.
    pub fn gap(&mut self, time: u64, path: &Path) {
        if time < self.recovering {
            return self.loss(Some(0), time, path);
        }
        let first = self
            .signs
            .filter(|(_, last)| time.saturating_sub(*last) < 2 * path.round_trip());
        self.signs = Some((first.map_or(time, |(first, _)| first), time));
    }

    /// Something was sent again at `time`, after a silence of the sender (`None`: a long one).
    pub fn loss(&mut self, silent: Option<u64>, time: u64, path: &Path) {
        let last = self.samples.last().map(|s| s.time).max(self.tail.map(|tail| tail.last));
        let from = silent.map_or(last.unwrap_or(time), |silent| time.saturating_sub(silent));
        let signs = self.signs.take();
        let from = signs
            .filter(|(_, last)| from.saturating_sub(*last) < 2 * path.round_trip())
            .map_or(from, |(first, _)| from.min(first));
        self.grown(path);
        // Of the first flight there is no sample.
        let in_flight = self.samples.last().map_or(path.segment, |last| last.flight_max);
        self.loss_flight = self.loss_flight.max(in_flight).max(self.flight_since).max(self.peak);
        if let Some(tail) = self.tail.filter(|tail| tail.pushed && tail.whole && !tail.at_edge)
            && self.had_room(&tail, self.bursts.is_flight(&tail, time, path), path)
        {
            self.had_room = true;
        }
        // The repeat is on its way until its ACK has come back.
        let to = time.saturating_add(path.round_trip());
        self.recovering = self.recovering.max(to);
        self.acks_since_loss = 0;
        self.pieces.forget();
        self.span(from, to, Cause::Recovery, path);
    }

    /// The receiver's window became 0 (`zero`) or small.
    pub fn close(&mut self, time: u64, zero: bool, path: &Path) {
        self.open(time, path);
        self.closed = Some((time, zero));
    }

    /// The receiver's window opened. Data can follow when that has reached the sender and come back.
    pub fn open(&mut self, time: u64, path: &Path) {
        if let Some((since, zero)) = self.closed.take() {
            self.span(since, time.saturating_add(path.other), closed_cause(zero), path);
        }
    }

    /// The receiver's window was full: nothing more until it moves on. `end`: of what has been sent.
    pub fn full(&mut self, time: u64, flight: u32, end: u32) {
        self.flight(flight);
        self.receiver_bytes = flight;
        self.full = Some(time);
        self.stands = Some((time, end));
    }

    /// Something was sent again; `end`: of what has been sent. If that is where the window ends, the sender has stood there since anything was
    /// sent before.
    /// `flight`: bytes not acknowledged.
    pub fn again(&mut self, time: u64, end: u32, flight: u32, path: &Path) {
        if self.tail.is_some_and(|tail| tail.end == end) {
            let first = Repeats {
                first: time,
                count: 0,
                flight,
            };
            let repeats = self.repeats.get_or_insert(first);
            repeats.count = repeats.count.saturating_add(1);
        }
        let stood = self.stands.take().filter(|(_, at)| *at == end).map(|(since, _)| since);
        let sent = self.tail.map(|tail| tail.last).max(self.again);
        self.again = Some(time);
        let is_full = self
            .edges
            .back()
            .map_or(stood.is_some(), |edge| edge.is_reached(end, path));
        if let Some(since) = stood.or(sent.filter(|_| is_full)) {
            self.window_pause(since, time, end, path);
        }
        self.stands = is_full.then_some((time, end));
    }

    /// New data went behind the edge at which something was sent again: the sender stood there until the repeat was acknowledged.
    fn stood_since_repeat(&mut self, b: &Block, end: u32, path: &Path) {
        let Some((since, at)) = self.stands.filter(|(_, at)| before(*at, end)) else {
            return;
        };
        self.stands = None;
        let next = if since < b.first { b.first } else { b.last };
        let to = next.min(since.saturating_add(path.round_trip()));
        if since < to {
            self.window_pause(since, to, at, path);
        }
    }

    fn span(&mut self, from: u64, to: u64, cause: Cause, path: &Path) {
        let span = Span {
            from,
            to,
            cause,
            sure: Sure::ByTrips,
            flight: 0,
        };
        self.push(span, path);
    }

    fn push(&mut self, span: Span, path: &Path) {
        let Span {
            from, to, cause, sure, ..
        } = span;
        // What is surely the application's stays apart from what a full window can outrank.
        let same = |s: &&mut Span| {
            s.cause == cause
                && (s.sure == sure || cause != Cause::Application && s.sure < Sure::Dry && sure < Sure::Dry)
        };
        if let Some(last) = self.spans.iter_mut().rev().take(3).find(same)
            && from <= last.to
            && last.from <= to
        {
            last.from = last.from.min(from);
            last.to = last.to.max(to);
            last.sure = last.sure.max(sure);
            return;
        }
        if self.spans.len() >= MANY {
            self.charge_some(path);
        }
        self.spans.push(span);
    }

    /// Charge the transfer in progress up to its last sample.
    fn charge_some(&mut self, path: &Path) {
        let Some(last) = self.samples.last().map(|s| s.time) else {
            self.spans.remove(0);
            return;
        };
        let first = self.samples[0].time.saturating_sub(self.samples[0].rtt);
        let (start, from) = self.charged.unwrap_or((first, first));
        if last > from {
            self.charge(from, last, path);
            self.charged = Some((start, last));
        }
        let drop = self.samples.len().saturating_sub(CONTEXT);
        self.measured = self.samples.drain(..drop).next_back().map(|s| s.end).or(self.measured);
        self.spans.retain(|s| s.to > last);
        if self.spans.len() >= MANY {
            self.spans.remove(0);
        }
    }

    /// What is charged so far, with the transfer in progress.
    pub fn so_far(&self) -> Charges {
        let mut sum = self.total.by;
        sum.join(&self.pending.by);
        sum
    }

    /// The transfer from its first to its last data packet is over; what was noted before `next` belongs to it.
    /// The charges add up to `to − from`.
    pub fn settle(&mut self, from: u64, to: u64, next: u64, path: &Path) -> Charged {
        self.grown(path);
        let (start, charged) = self.charged.take().unwrap_or((from, from));
        if from < start {
            self.charge(from, start.min(to), path);
        }
        if charged < to {
            self.charge(charged.max(from), to, path);
        }
        let mut done = std::mem::take(&mut self.pending);
        let total = to.saturating_sub(from);
        self.unbalanced = self.unbalanced.saturating_add(done.by.sum().abs_diff(total));
        balance(&mut done.by, total);
        done.queueing = done.queueing.min(done.by.sum());
        self.total.by.join(&done.by);
        self.total.queueing = self.total.queueing.saturating_add(done.queueing);
        self.forget(next);
        done
    }

    /// What was noted before `next`.
    fn forget(&mut self, next: u64) {
        if let Some(last) = self.samples.iter().rev().find(|s| s.time.saturating_sub(s.rtt) < next) {
            self.measured = Some(last.ack);
        }
        self.samples.retain(|s| s.time.saturating_sub(s.rtt) >= next);
        self.spans.retain(|s| s.to > next);
        self.tail = None;
        self.small = None;
        self.repeats = None;
        self.had_room = false;
        self.again = None;
        self.edge_ns = 0;
        self.room_ns = 0;
        self.spaced = 0;
        self.passed = Passage::default();
        self.pace = Passage::default();
        self.partial = 0;
        self.rate_max = 0.0;
    }

    /// Charge `from` to `to`.
    fn charge(&mut self, from: u64, to: u64, path: &Path) {
        let mut spans = std::mem::take(&mut self.spans);
        if let Some((since, zero)) = self.closed
            && since < to
        {
            spans.push(Span {
                from: since,
                to,
                cause: closed_cause(zero),
                sure: Sure::ByTrips,
                flight: 0,
            });
        }
        let samples = std::mem::take(&mut self.samples);
        let trips = self.trips(&samples, &spans, path);
        let mut at = from;
        let mut before = None;
        for (i, trip) in trips.iter().enumerate() {
            if trip.to <= at {
                continue;
            }
            let end = trip.to.min(to);
            if end <= at {
                break;
            }
            let mut own = self.classify(&trips, i, path);
            if matches!(own.0, Cause::SlowStart | Cause::CongestionWindow)
                && let Some(rate) = busy_link(&trips, i, path)
            {
                own.0 = Cause::Bandwidth;
                self.link_rate = self.link_rate.max(rate);
            }
            if own.0 == Cause::ReceiverWindow && i > 0 && trips[i - 1].window == trip.window {
                self.silly.freeze(trip.bytes, trip.window.unwrap_or(0), end - at);
            }
            before = Some(own);
            let edge = beside_window(at, trip.edge_ns, &spans).min(end);
            self.paint(at, edge, (Cause::ReceiverWindow, false), &spans);
            // What the window let pass then, the sender held back itself.
            let room = if own.0 == Cause::ReceiverWindow && !trip.at_edge {
                trip.room_ns
            } else {
                0
            };
            let paced = beside_window(edge, room, &spans).min(end);
            self.paint(edge, paced, (Cause::CongestionWindow, false), &spans);
            self.paint(paced, end, own, &spans);
            if let Some(base) = path.base {
                let above = trip.rtt.saturating_sub(base) as f64 / trip.rtt.saturating_add(path.other).max(1) as f64;
                let waited = (above * (end - at) as f64) as u64;
                self.pending.queueing = self.pending.queueing.saturating_add(waited);
            }
            at = end;
        }
        if at < to {
            // Behind the last ACK: as before it. Without any, one flight, as fast as the link let it pass; or
            // something that nothing tells.
            let alone = if path.is_one_flight(to - at) {
                Cause::Bandwidth
            } else {
                Cause::Unknown
            };
            self.paint(at, to, before.unwrap_or((alone, false)), &spans);
        }
        if self.closed.is_some_and(|(since, _)| since < to) {
            spans.pop();
        }
        self.spans = spans;
        self.samples = samples;
    }

    /// The samples in pieces of a round trip or more.
    fn trips(&mut self, samples: &[Sample], spans: &[Span], path: &Path) -> Vec<Trip> {
        let mut trips: Vec<Trip> = Vec::new();
        let Some(first) = samples.first() else { return trips };
        let start = first.time.saturating_sub(first.rtt.saturating_add(path.other));
        // Of the piece in hand: its beginning, the end of the segment that was timed there, its round trips with data behind them,
        // most in flight.
        // What came before the transfer may have been acknowledged without a sample.
        let begun = self.writes.begun_at();
        let measured = self
            .measured
            .map(|end| begun.filter(|at| before(end, *at)).unwrap_or(end));
        let (mut since, mut timed) = (start, measured);
        let (mut sum, mut count, mut flight_max) = (0u64, 0u64, 0);
        // Of its timed segments: those at the edge of the window less those that were not.
        let mut edge = 0i32;
        let (mut edge_ns, mut room_ns) = (0u64, 0u64);
        let (mut spaced, mut passed, mut partial) = (0i64, Passage::default(), 0i64);
        for (i, s) in samples.iter().enumerate() {
            flight_max = flight_max.max(s.flight_max);
            edge += match s.at_edge {
                Some(true) => 1,
                Some(false) => -1,
                None => 0,
            };
            edge_ns = edge_ns.saturating_add(s.edge_ns);
            room_ns = room_ns.saturating_add(s.room_ns);
            spaced = spaced.saturating_add(s.spaced);
            passed.join(s.passed);
            partial = partial.saturating_add(s.partial);
            if s.flight > 0 {
                sum = sum.saturating_add(s.rtt);
                count += 1;
            }
            let is_last = i + 1 == samples.len();
            if s.time.saturating_sub(since) < path.round_trip().max(SLACK) && !is_last {
                continue;
            }
            let in_spans = |causes: &[Cause]| {
                spans
                    .iter()
                    .filter(|span| causes.contains(&span.cause))
                    .map(|span| span.to.min(s.time).saturating_sub(span.from.max(since)))
                    .fold(0, u64::saturating_add)
            };
            let idle = in_spans(&[Cause::Application, Cause::ZeroWindow]);
            let paused = in_spans(&[Cause::Application]) > 0;
            let is_buffer = |span: &Span| {
                span.cause == Cause::SendBuffer && span.sure >= Sure::Yes && span.from < s.time && span.to > since
            };
            let buffered = spans.iter().any(is_buffer);
            let silent = in_spans(&[Cause::SendBuffer]) as f64 / s.time.saturating_sub(since).max(1) as f64;
            let ns = s.time.saturating_sub(since).saturating_sub(idle).max(1);
            // A pause of the application, too, leaves room.
            let room = room_ns.saturating_sub(in_spans(&[Cause::Application]));
            let bytes = timed.filter(|at| !before(s.end, *at)).map(|at| s.end.wrapping_sub(at));
            let flown = spans.iter().find(|span| {
                let over = span.to.min(s.time).saturating_sub(span.from.max(since));
                span.flight > 0 && 2 * over > s.time.saturating_sub(since)
            });
            let rtt = sum.checked_div(count).unwrap_or(s.rtt);
            let short = ns < path.round_trip() / 2;
            let previous = trips.last().filter(|_| short).copied();
            let rate = match (previous, bytes) {
                // The end of it: too short to tell.
                (Some(previous), _) => previous.rate,
                (None, Some(bytes)) => f64::from(bytes) / ns as f64 * 1e9,
                (None, None) => f64::from(flight_max) / rtt.saturating_add(path.other).max(1) as f64 * 1e9,
            };
            // What is in flight over the whole path: rate × round trip (Little).
            let flight = rate * (path.round_trip().max(rtt.saturating_add(path.other))) as f64 / 1e9;
            let gross = bytes.map_or(flight, |bytes| {
                let whole = s.time.saturating_sub(since).max(path.round_trip()).max(1);
                f64::from(bytes) / whole as f64 * path.round_trip().max(rtt.saturating_add(path.other)) as f64
            });
            // Acknowledgments come in bursts as well, and a trip can hold those of two: the flight is known better.
            let (flight, gross) =
                flown.map_or((flight, gross), |span| (f64::from(span.flight), f64::from(span.flight)));
            trips.push(Trip {
                to: s.time,
                rtt,
                rate,
                flight,
                gross,
                flight_max,
                queued: count > 0,
                silent,
                buffered,
                paused,
                window: s.window,
                held_by: s.window.max(s.window_before.filter(|_| s.window.is_some())),
                at_edge: edge > 0,
                edge_ns: edge_ns.saturating_sub(in_spans(&[Cause::ReceiverWindow])),
                room_ns: room,
                paced: 2 * room > ns,
                spaced: spaced > 0,
                passed,
                ns: s.time.saturating_sub(since),
                partial: partial > 0,
                bytes: bytes.unwrap_or(0),
                exact: flown.is_some(),
                short: previous.is_some(),
            });
            (since, timed) = (s.time, Some(s.end));
            (sum, count, flight_max, edge, edge_ns, room_ns) = (0, 0, 0, 0, 0, 0);
            (spaced, passed, partial) = (0, Passage::default(), 0);
        }
        for t in &trips {
            self.peak = self.peak.max(t.flight as u32).max(t.flight_max);
        }
        // One piece can hold a burst; the middle one of three does not.
        for three in trips.windows(3) {
            let [a, b, c] = [three[0].rate, three[1].rate, three[2].rate];
            self.rate_max = self.rate_max.max(a.max(b).min(a.min(b).max(c)));
        }
        trips
    }

    /// What limited trip `i`, spans apart; and whether it was as all trips around it, so that pauses after full
    /// segments are those of a full send buffer.
    fn classify(&mut self, trips: &[Trip], i: usize, path: &Path) -> (Cause, bool) {
        let t = &trips[i];
        // No more can be in flight than the window allows: where it seems so, the round trip is not the smallest one.
        if let Some(window) = t.held_by
            && let most = f64::from(window) * FLAT
            && let gross = smoothed(trips, i, most)
            && (t.at_edge || gross + f64::from(path.room(window, t.exact)) >= f64::from(window) && gross <= most)
        {
            self.receiver_bytes = window;
            return (Cause::ReceiverWindow, false);
        }
        if t.short && i > 0 {
            let before = self.classify(trips, i - 1, path);
            if before.0 != Cause::ReceiverWindow {
                return before;
            }
        }
        let base = path.base.unwrap_or(t.rtt) as f64;
        let queued = t.queued && t.rtt as f64 > base * QUEUE + SLACK as f64;
        if queued && self.rate_max > 0.0 && t.rate >= SHARED * self.rate_max {
            self.link_rate = self.link_rate.max(self.rate_max);
            return (Cause::Bandwidth, false);
        }
        if path.link.is_some_and(|link| t.rate >= BUSY * link) {
            return (Cause::Bandwidth, false);
        }
        let growing = if self.loss_flight == 0 {
            Cause::SlowStart
        } else {
            Cause::CongestionWindow
        };
        if f64::from(self.loss_flight) > t.flight {
            return (growing, false);
        }
        // Never as much in flight before: only a growing congestion window shows that.
        let before = trips[..i].iter().map(|t| t.flight).fold(0.0, f64::max);
        let after = trips.get(i + 1).map_or(0.0, |t| t.flight);
        let whole = trips.iter().filter(|t| !t.short).count();
        if i == 0 || whole < FLAT_TRIPS || t.flight.max(after) >= before * GROWTH {
            return (growing, false);
        }
        let far = |j: usize| trips.get(j).map_or(t.flight, |t| t.flight);
        if far(i + CONTEXT) > far(i.saturating_sub(CONTEXT)) * FLAT {
            return (Cause::CongestionWindow, false);
        }
        if t.buffered {
            return (Cause::CongestionWindow, false);
        }
        let around = &trips[i.saturating_sub(2)..(i + 3).min(trips.len())];
        let most = around.iter().map(|t| t.flight).fold(0.0, f64::max);
        let least = around.iter().map(|t| t.flight).fold(f64::INFINITY, f64::min);
        if most > least * FLAT * FLAT {
            // Segments that stand apart alike left a link that had no pause; how many of others went between them varies.
            let cause = match (t.spaced, t.paced) {
                (true, _) => Cause::Bandwidth,
                (false, true) => Cause::CongestionWindow,
                (false, false) => Cause::Unknown,
            };
            return (cause, false);
        }
        // Flat. With pauses: those are the send buffer's (after full segments) or the application's, and between them data
        // goes as fast as the sender's congestion control lets it. In bursts: most of the bytes behind the tap at once. Even arrival: the
        // bytes behind the tap are those of their share of the round trip.
        if t.silent > 0.0 || t.paused {
            return (Cause::CongestionWindow, true);
        }
        let even = t.rate * t.rtt as f64 / 1e9;
        let flight_max = f64::from(t.flight_max);
        let at_once = flight_max > even * QUEUE && flight_max > t.flight * MOST;
        if at_once {
            self.sender_bytes = self.sender_bytes.max(most as u32).max(t.flight_max);
            (Cause::SendBuffer, true)
        } else if t.partial && !t.spaced {
            (Cause::Application, false)
        } else if t.flight < f64::from(ROOM * path.payload) && !t.spaced {
            // Whoever waits for a link has more on its way.
            (Cause::Unknown, false)
        } else {
            self.link_rate = self.link_rate.max(t.rate);
            (Cause::Bandwidth, true)
        }
    }

    /// Charge `from` to `to` to `cause`, but for what spans cover.
    fn paint(&mut self, from: u64, to: u64, (cause, flat): (Cause, bool), spans: &[Span]) {
        if from >= to {
            return;
        }
        let outranked = |s: &Span| match s.cause {
            Cause::SendBuffer => !flat && (s.sure < Sure::Yes || cause == Cause::ReceiverWindow),
            // What looks like the end of a message is the end of the window.
            Cause::Application => s.sure < Sure::Yes && cause == Cause::ReceiverWindow,
            _ => false,
        };
        let covers = |s: &&Span| s.from < to && s.to > from && !outranked(s);
        if !spans.iter().any(|s| covers(&s)) {
            self.pending.by.add(cause, to - from);
            return;
        }
        let mut cuts: Vec<u64> = spans
            .iter()
            .filter(covers)
            .flat_map(|s| [s.from.max(from), s.to.min(to)])
            .chain([from, to])
            .collect();
        cuts.sort_unstable();
        for piece in cuts.windows(2) {
            let (a, b) = (piece[0], piece[1]);
            let over = spans
                .iter()
                .filter(covers)
                .filter(|s| s.from <= a && s.to >= b)
                .max_by_key(|s| rank(s))
                .map(|s| s.cause);
            self.pending.by.add(over.unwrap_or(cause), b - a);
        }
    }
}

/// A piece of a transfer, a round trip or more long.
#[derive(Clone, Copy, Debug)]
struct Trip {
    to: u64,
    /// Mean round trip behind the tap, ns.
    rtt: u64,
    /// Bytes/s acknowledged.
    rate: f64,
    /// Bytes in flight over the whole path, on average while the application had some.
    flight: f64,
    /// The same with its pauses.
    gross: f64,
    /// Bytes in flight behind the tap, at most.
    flight_max: u32,
    /// The round trips are those of a transfer under way, not of its end.
    queued: bool,
    /// Share of it between a full segment with PSH and the next segment.
    silent: f64,
    /// The send buffer is known to have paused in it: between such pauses data goes as fast as the sender's congestion
    /// control lets it.
    buffered: bool,
    /// The application paused in it.
    paused: bool,
    /// Receiver's window in bytes, if known.
    window: Option<u32>,
    /// That, or the one under which the last timed segment was sent, if larger. (The ACK may come before the receiver has read
    /// what it acknowledges.)
    held_by: Option<u32>,
    /// Most timed segments went to the edge of the window.
    at_edge: bool,
    /// Time in which the sender surely stood there, pauses with spans of their own apart, ns.
    edge_ns: u64,
    /// Time in which the window surely had room and the sender sent nothing, ns.
    room_ns: u64,
    /// That was most of it.
    paced: bool,
    /// Most of it came from a slow link before the tap, segment behind segment.
    spaced: bool,
    /// What passed that link one behind the other.
    passed: Passage,
    /// All of it, ns.
    ns: u64,
    /// Most of it went in pieces behind which the application had written no more.
    partial: bool,
    /// Bytes from timed segment to timed segment, where known.
    bytes: u32,
    /// What is in flight is that of a flight.
    exact: bool,
    /// The end of the transfer: too short to tell of itself.
    short: bool,
}

/// Bytes in flight in trip `i`; or, if it or a neighbour under the same window seems to have had more than `most`, which the window does
/// not allow, in it and half of each neighbour: some of what was acknowledged in one was sent in another.
fn smoothed(trips: &[Trip], i: usize, most: f64) -> f64 {
    let around = i.saturating_sub(1)..(i + 2).min(trips.len());
    let alike = || around.clone().filter(|j| trips[*j].held_by == trips[i].held_by);
    if alike().all(|j| trips[j].gross <= most) {
        return trips[i].gross;
    }
    let (mut sum, mut weight) = (0.0, 0.0);
    for j in alike() {
        let ns = trips[j].ns as f64 * if j == i { 1.0 } else { 0.5 };
        sum += trips[j].gross * ns;
        weight += ns;
    }
    sum / f64::max(weight, 1.0)
}

/// The rate in bytes/s of a slow link before the tap, if it had no pause in trip `i` and its neighbours (a block may end in
/// another than it began), and was as fast in all of them: a sender that paces in slow start gets faster.
fn busy_link(trips: &[Trip], i: usize, path: &Path) -> Option<f64> {
    let around = &trips[i.saturating_sub(1)..(i + 2).min(trips.len())];
    let mut passed = Passage::default();
    around.iter().for_each(|trip| passed.join(trip.passed));
    let ns: u64 = around.iter().map(|trip| trip.ns).fold(0, u64::saturating_add);
    let rates = || around.iter().filter(|trip| !trip.short).map(|trip| trip.passed.rate());
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let whole = trips.iter().filter(|trip| !trip.short).count();
    let has_more = whole >= FLAT_TRIPS && trips[i].flight >= f64::from(ROOM * path.payload);
    (trips[i].spaced && has_more && most <= STEADY * least && passed.ns as f64 >= BUSY * ns as f64)
        .then(|| passed.rate())
}

/// Full segments that stand apart: they come from a slow link before the tap, and may have waited in its queue.
fn is_spaced(b: &Block) -> bool {
    apart(b).is_some_and(|ns| ns >= SPACED)
}

/// How far the segments of a block stand apart, ns, on average. `None`: there is one.
pub(crate) fn apart(b: &Block) -> Option<u64> {
    let passage = b.last.saturating_sub(b.first);
    passage.checked_div(u64::from(b.packets.saturating_sub(1)))
}

/// The end of so many ns from `from` on, beside those that spans of the receiver's window cover.
fn beside_window(from: u64, ns: u64, spans: &[Span]) -> u64 {
    let mut end = from.saturating_add(ns);
    if ns == 0 {
        return end;
    }
    for span in spans.iter().filter(|s| s.cause == Cause::ReceiverWindow) {
        if span.from < end {
            end = end.saturating_add(span.to.saturating_sub(span.from.max(from)));
        }
    }
    end
}

const fn closed_cause(zero: bool) -> Cause {
    if zero { Cause::ZeroWindow } else { Cause::SmallWindow }
}

/// Bytes that make full segments, with timestamps or without.
fn are_whole(bytes: u64, segment: u32) -> bool {
    let full = |size: u32| size > 0 && bytes.is_multiple_of(u64::from(size));
    full(segment) || full(segment.saturating_sub(TIMESTAMPS))
}

/// Nothing was in flight any more, and the ACK was later than the path explains.
pub(crate) fn is_delayed(rtt: u64, flight: u32, path: &Path) -> bool {
    let late = rtt.saturating_sub(path.base.unwrap_or(rtt));
    flight == 0 && (DELAYED_ACK..DELAYED_ACK_MOST).contains(&late)
}

/// Make the charges add up to `total`. They do, unless a record was lost.
fn balance(charges: &mut Charges, total: u64) {
    let sum = charges.sum();
    if sum < total {
        charges.add(Cause::Unknown, total - sum);
    }
    let mut over = sum.saturating_sub(total);
    for ns in charges.0.iter_mut().rev() {
        let less = over.min(*ns);
        *ns -= less;
        over -= less;
    }
    debug_assert_eq!(charges.sum(), total);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TAP_AT_RECEIVER: Path = Path {
        segment: 1000,
        payload: 1000,
        base: Some(100_000),
        other: 80 * MS,
        window: 40_000,
        link: None,
    };

    fn block(first: u64, last: u64, seq: u32, bytes: u32) -> Block {
        Block {
            first,
            last,
            seq,
            bytes,
            ack: 0,
            flight: 0,
            packets: 10,
            max_segment: 1000,
            window: 0,
            ttl: 64,
            known: 3,
        }
    }

    /// Which of these bursts, in segments, were like those before them.
    fn like(bursts: impl IntoIterator<Item = u32>, lost: bool) -> Vec<bool> {
        let mut b = Bursts::begin(0);
        let mut end = |segments: u32| {
            b.bytes = 1000 * segments;
            b.end(0, 1000, lost)
        };
        bursts.into_iter().map(&mut end).collect()
    }

    /// After a loss a congestion window may grow by a segment in two round trips, and in steps of two segments.
    #[test]
    fn a_window_that_grows_slowly_after_a_loss_is_no_buffer() {
        let slowly = || (0..20).map(|n| 10 + n / 4 * 2);
        assert!(!like(slowly(), true).contains(&true));
        assert!(like(slowly(), false).contains(&true));
        let same = like([12; 12], true);
        assert_eq!(same.iter().position(|like| *like), Some(8));
    }

    #[test]
    fn a_loss_in_the_first_flight_counts() {
        let mut t = Transfer::default();
        t.flight(10_000);
        t.loss(Some(MS), 100 * MS, &TAP_BETWEEN);
        assert_eq!(t.loss_flight, 10_000);
    }

    /// A gap, and the segment that was overtaken: nothing was recovered. The same, and the segment is sent again: all of the
    /// time from the gap on.
    #[test]
    fn reordering_is_no_recovery() {
        let trip = TAP_BETWEEN.round_trip();
        let recovered = |again: Option<u64>| {
            let mut t = Transfer::default();
            t.gap(500 * MS, &TAP_BETWEEN);
            t.gap(500 * MS + trip / 2, &TAP_BETWEEN);
            if let Some(again) = again {
                t.loss(Some(0), 500 * MS + again, &TAP_BETWEEN);
            }
            let charged = t.settle(400 * MS, 2000 * MS, 2000 * MS, &TAP_BETWEEN).by;
            charged.of(Cause::Recovery)
        };
        assert_eq!(recovered(None), 0);
        assert_eq!(recovered(Some(trip)), 2 * trip);
        assert_eq!(recovered(Some(4 * trip)), trip, "the gap had been closed");
    }

    #[test]
    fn time_at_the_edge_is_beside_the_pauses_there() {
        let span = |from, to, cause| Span {
            from,
            to,
            cause,
            sure: Sure::Yes,
            flight: 0,
        };
        let spans = [
            span(10, 30, Cause::ReceiverWindow),
            span(35, 50, Cause::Application),
            span(60, 100, Cause::ReceiverWindow),
        ];
        assert_eq!(beside_window(0, 0, &spans), 0);
        assert_eq!(beside_window(0, 10, &spans), 10);
        assert_eq!(beside_window(0, 40, &spans), 60);
        assert_eq!(beside_window(0, 50, &spans), 110);
        assert_eq!(beside_window(20, 30, &spans), 60);
    }

    /// A flight of 15 segments ends without PSH, and the next one, of 20, fills the window: its sender paused for that.
    #[test]
    fn a_block_that_takes_half_a_round_trip_holds_two_bursts() {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        let mut so_far = SoFar {
            first: 0,
            last: 0,
            bytes: 0,
        };
        // After each the window is as large as what is yet to come of its flight.
        for (first, last, seq, bytes, window) in [
            (0, MS, 0, 10_000, 15_000),
            (81 * MS, 162 * MS, 10_000, 20_000, 15_000),
            (162 * MS + 100_000, 163 * MS, 30_000, 15_000, 40_000),
            (243 * MS, 244 * MS, 45_000, 10_000, 30_000),
        ] {
            let b = block(first, last, seq, bytes);
            let before = (so_far.bytes > 0).then_some(so_far);
            t.block(BlockEnd::Push as u8, &b, before, Some(window), &path);
            so_far.last = last;
            so_far.bytes += u64::from(bytes);
        }
        let pauses: Vec<_> = t.spans.iter().map(|s| (s.from / MS, s.to / MS, s.cause)).collect();
        assert_eq!(pauses[1..], [(163, 243, Cause::ReceiverWindow)], "{pauses:?}");
    }

    const TAP_BETWEEN: Path = Path {
        segment: 1000,
        payload: 1000,
        base: Some(60 * MS),
        other: 40 * MS,
        window: 40_000,
        link: None,
    };

    /// Pushed pieces of 2,000 bytes each 2 ms from `first` on, and one of 1,500: 75 ms, while ACKs of the first passed from 60 ms on. Then
    /// the next at `next`.
    fn paced(first: u32, next: u64, window: u32) -> Vec<(u64, u64, Cause)> {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        let mut so_far = SoFar {
            first: 0,
            last: 0,
            bytes: 0,
        };
        let mut send = |t: &mut Transfer, time: u64, seq: u32, bytes: u32, acked: u32| {
            let b = Block {
                flight: seq + bytes - acked,
                ..block(time, time, seq, bytes)
            };
            let before = (so_far.bytes > 0).then_some(so_far);
            t.block(BlockEnd::Push as u8, &b, before, Some(window), &path);
            so_far.last = time;
            so_far.bytes += u64::from(bytes);
        };
        let acked = |time: u64| {
            if time >= 60 * MS {
                (time - 60 * MS) as u32 / MS as u32 / 2 * 2000 + 2000
            } else {
                0
            }
        };
        for piece in 0..first {
            let time = u64::from(piece) * 2 * MS;
            send(&mut t, time, piece * 2000, 2000, acked(time));
        }
        let last = u64::from(first) * 2 * MS;
        send(&mut t, last, first * 2000, 1500, acked(last));
        send(&mut t, next, first * 2000 + 1500, 2000, acked(next));
        t.spans.iter().map(|s| (s.from / MS, s.to / MS, s.cause)).collect()
    }

    /// Flights of such pieces, in segments, a round trip apart, of which `lost` is sent again: the pauses after them, and the send buffer.
    fn flights(flights: &[Vec<u32>], lost: usize) -> (Vec<Sure>, u32) {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        let (mut so_far, mut seq) = (None, 0u32);
        let trip = path.round_trip();
        for (i, pieces) in flights.iter().enumerate() {
            let first = i as u64 * trip;
            for (n, segments) in pieces.iter().enumerate() {
                let last = first + n as u64 * 10_000;
                let b = Block {
                    packets: *segments as u16,
                    ..block(last, last, seq, segments * 1000)
                };
                t.block(BlockEnd::Push as u8, &b, so_far, None, &path);
                seq = seq.wrapping_add(b.bytes);
                so_far = Some(SoFar {
                    first: 0,
                    last,
                    bytes: u64::from(seq),
                });
            }
            if i == lost {
                t.loss(Some(0), first + trip - 1, &path);
            }
        }
        let pauses = t.spans.iter().filter(|s| s.cause == Cause::SendBuffer);
        (pauses.map(|s| s.sure).collect(), t.sender_bytes)
    }

    /// Pieces of four segments are those of a congestion window of 204: 90 were all that the sender had.
    #[test]
    fn a_flight_that_its_pieces_make_small_is_the_buffers() {
        let with = |last: Vec<u32>| {
            let slow_start = [vec![2; 5], vec![2; 10], vec![2; 20], vec![2; 40]];
            let (pauses, buffer) = flights(&[&slow_start[..], &[last, vec![2; 40]]].concat(), 9);
            (pauses.last().copied(), buffer)
        };
        assert_eq!(with(vec![4; 22]), (Some(Sure::Yes), 88_000));
        assert_eq!(with(vec![2; 44]), (Some(Sure::IfGrows), 0));
        assert_eq!(with(vec![4; 52]), (Some(Sure::ByTrips), 0));
    }

    /// When it is sent again, nothing new is there to send with it.
    #[test]
    fn what_is_sent_again_behind_such_a_flight_is_not_what_keeps_the_sender() {
        let with = |piece: u32| {
            let slow_start = [vec![2; 5], vec![2; 10], vec![2; 20], vec![2; 40]];
            let last = vec![piece; 80 / piece as usize];
            flights(&[&slow_start[..], &[last, vec![2; 40]]].concat(), 4)
                .0
                .contains(&Sure::Dry)
        };
        assert!(with(4));
        assert!(!with(2));
    }

    /// 40 segments, then 40 again: the second time they were all there was. The first time slow start allowed no more.
    #[test]
    fn a_flight_of_slow_start_is_not_the_buffers_because_the_next_is_like_it() {
        let (sure, _) = flights(&[vec![2; 5], vec![2; 10], vec![2; 20], vec![2; 20], vec![2; 20]], 9);
        assert_eq!(sure, [Sure::ByTrips, Sure::ByTrips, Sure::ByTrips, Sure::Yes]);
    }

    /// Slow start allowed 80; 60 were sent, then 50 without a loss: after 60 nothing was left, or it would have been sent with these.
    #[test]
    fn a_smaller_flight_shows_that_the_one_before_was_all_there_was() {
        let after_60 = |next: Vec<u32>| {
            let slow_start = [vec![2; 5], vec![2; 10], vec![2; 20]];
            flights(&[&slow_start[..], &[vec![2; 30], next, vec![2; 40]]].concat(), 9).0[3]
        };
        assert_eq!(after_60(vec![2; 25]), Sure::Yes);
        assert_eq!(after_60(vec![2; 35]), Sure::IfGrows);
    }

    /// All was acknowledged after 1 ms, and the next data came after 100 ms. How far away the sender is was not measured, or is 1 ms.
    #[test]
    fn nobody_is_idle_who_is_not_known_to_have_heard() {
        let is_idle = |other: u64| {
            let (mut t, path) = (
                Transfer::default(),
                Path {
                    other,
                    ..TAP_AT_RECEIVER
                },
            );
            t.block(BlockEnd::Push as u8, &block(0, 10_000, 0, 10_000), None, None, &path);
            t.sample(MS, &rtt(MS, 10_000, 0), None, &path);
            let so_far = SoFar {
                first: 0,
                last: 10_000,
                bytes: 10_000,
            };
            let next = block(100 * MS, 100 * MS + 10_000, 10_000, 10_000);
            t.block(BlockEnd::Push as u8, &next, Some(so_far), None, &path);
            t.spans.iter().any(|span| span.cause == Cause::Application)
        };
        assert!(is_idle(MS));
        assert!(!is_idle(0));
    }

    #[test]
    fn with_timestamps_a_segment_is_full_but_for_sack() {
        let is_full = |payload: u32, most: u16| {
            let path = Path {
                segment: 1460,
                payload,
                ..TAP_BETWEEN
            };
            path.is_full(&Block {
                max_segment: most,
                ..block(0, 0, 0, 1460)
            })
        };
        assert_eq!(
            [1500, 1448, 1442, 1436, 1428, 0].map(|most| is_full(1448, most)),
            [true, true, false, true, true, false]
        );
        // A tunnel takes some of it from each.
        let several = Block {
            packets: 3,
            max_segment: 1442,
            ..block(0, 0, 0, 3 * 1442)
        };
        let path = Path {
            segment: 1460,
            payload: 1448,
            ..TAP_BETWEEN
        };
        assert!(path.is_full(&several));
        // Of a sender whose handshake was not seen they are not known.
        assert_eq!(
            [1500, 1448, 1442, 1419, 0].map(|most| is_full(1460, most)),
            [true, true, true, false, false]
        );
    }

    /// A sender with Nagle's algorithm writes less than a segment in each round trip: so much goes when the last such piece is acknowledged. Its
    /// congestion window may have been one segment after a loss.
    #[test]
    fn less_than_a_segment_waits_for_the_ack_of_the_last_such_piece() {
        let waits = |bytes: u32, acked: u32, lost: bool| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let mut so_far = None;
            for message in 0..3u32 {
                let first = u64::from(message) * path.round_trip();
                let b = Block {
                    packets: 1,
                    max_segment: bytes as u16,
                    ..block(first, first, bytes * message, bytes)
                };
                t.block(BlockEnd::Push as u8, &b, so_far, None, &path);
                if lost && message == 0 {
                    t.loss(None, first + MS, &path);
                }
                t.sample(first + 60 * MS, &rtt(60 * MS, b.seq + acked, 0), None, &path);
                so_far = Some(SoFar {
                    first: 0,
                    last: b.last,
                    bytes: u64::from(b.seq + b.bytes),
                });
            }
            let mut causes: Vec<_> = t.spans.iter().map(|span| span.cause).collect();
            causes.dedup();
            causes
        };
        assert_eq!(waits(400, 400, false), [Cause::Nagle]);
        assert_eq!(waits(1000, 1000, false), [Cause::SendBuffer]);
        assert_eq!(waits(400, 300, false), [Cause::SendBuffer]);
        assert!(waits(400, 400, true).contains(&Cause::CongestionWindow));
    }

    /// What follows whole segments is no small piece that waited for another, nor is a whole segment one because it has timestamps.
    #[test]
    fn whole_segments_do_not_wait_for_small_ones() {
        let path = Path {
            segment: 1012,
            ..TAP_BETWEEN
        };
        let trip = path.round_trip();
        let flight = |first: u64, seq: u32, packets: u16, bytes: u32| Block {
            packets,
            max_segment: if packets == 1 { bytes as u16 } else { 1000 },
            ..block(first, first + 1000, seq, bytes)
        };
        for (before, last) in [(400, 1000), (10_000, 400)] {
            let mut t = Transfer::default();
            let packets = (before / 1000).max(1) as u16;
            t.block(BlockEnd::Push as u8, &flight(0, 0, packets, before), None, None, &path);
            t.sample(60 * MS, &rtt(60 * MS, before, 0), None, &path);
            let so_far = SoFar {
                first: 0,
                last: 1000,
                bytes: before.into(),
            };
            t.block(
                BlockEnd::Push as u8,
                &flight(trip, before, 1, last),
                Some(so_far),
                None,
                &path,
            );
            assert!(t.spans.iter().all(|span| span.cause != Cause::Nagle), "{last}");
        }
    }

    /// Two segments in each round trip, of windows of so many: three of four and more would have been free.
    #[test]
    fn two_segments_use_up_a_small_window() {
        let window = |segments: u32| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            // The ACKs that tell of the edge are not the last that the sender has heard.
            let trip = path.round_trip() + 20 * MS;
            t.measured = Some(0);
            for n in 1..10u32 {
                let acked = rtt(60 * MS, 2_000 * n, 1_000);
                t.sample(u64::from(n) * trip, &acked, Some(1_000 * segments), &path);
            }
            let by = t.settle(0, 9 * trip, 9 * trip + MS, &path).by;
            by.receiver() > 5 * trip
        };
        assert_eq!([3, 4, 8, 20].map(window), [true, true, false, false]);
    }

    /// Messages of 10 segments and a half, each when the one before was acknowledged, or 5 ms later.
    #[test]
    fn an_application_does_not_hear_of_acks() {
        let waits = |late: u64| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let mut so_far = None;
            for message in 0..3u32 {
                let first = u64::from(message) * (path.round_trip() + late);
                let b = Block {
                    packets: 11,
                    ..block(first, first + 10_000, 10_500 * message, 10_500)
                };
                t.block(BlockEnd::Push as u8, &b, so_far, None, &path);
                t.sample(first + 60 * MS, &rtt(60 * MS, b.seq + b.bytes, 0), None, &path);
                so_far = Some(SoFar {
                    first: 0,
                    last: b.last,
                    bytes: u64::from(b.seq + b.bytes),
                });
            }
            t.spans.iter().map(|span| span.cause).collect::<Vec<_>>()
        };
        assert_eq!(waits(0), [Cause::SendBuffer; 2]);
        assert_eq!(waits(5 * MS), [Cause::Application; 2]);
    }

    /// The ACKs that had passed the tap had not reached the sender when its flight filled the window with a small segment.
    #[test]
    fn a_window_is_full_for_who_has_not_heard_of_more() {
        assert_eq!(paced(38, 100 * MS, 78_000), [(76, 100, Cause::ReceiverWindow)]);
        // With room for five more it was the application.
        assert_eq!(paced(38, 100 * MS, 83_000), [(76, 100, Cause::Application)]);
        // An ACK that had reached it made room as well.
        assert_eq!(paced(51, 130 * MS, 104_000), [(102, 130, Cause::Application)]);
    }

    /// A reader who is late in turns: each piece of a flight goes to the edge of a window that is 20,000 bytes in one round trip and
    /// 40,000 in the next. The timed segments are the first of their pieces.
    #[test]
    fn a_sender_stands_at_the_edge_of_a_window_that_changes() {
        let mut t = Transfer::default();
        let path = Path {
            other: 81 * MS,
            ..TAP_AT_RECEIVER
        };
        let (mut so_far, mut seq, mut last) = (None, 0u32, 0);
        for piece in 0..180u32 {
            let size = |piece: u32| if (piece / 9).is_multiple_of(2) { 2000 } else { 4000 };
            let window: u32 = (piece..piece + 9).map(size).sum();
            let time = u64::from(piece) * 9 * MS;
            let b = Block {
                flight: size(piece),
                ..block(time, time, seq, size(piece))
            };
            t.block(BlockEnd::Push as u8, &b, so_far, Some(window), &path);
            let first = Rtt {
                rtt: 100_000,
                seq_end: seq + 1000,
                ack: seq + 1000,
                flight: size(piece) - 1000,
                window: 0,
            };
            t.sample(time + 100_000, &first, Some(window - 1000), &path);
            (seq, last) = (seq + size(piece), time);
            so_far = Some(SoFar {
                first: 0,
                last,
                bytes: seq.into(),
            });
        }
        let charged = t.settle(0, last, last, &path);
        let share = charged.by.of(Cause::ReceiverWindow) as f64 / last as f64;
        assert!(share > 0.9, "{share}");
    }

    /// The sender had heard of a window of 2,500 bytes when it began a block, and of a larger one before its end.
    #[test]
    fn a_window_that_ends_within_a_small_block_held_it() {
        for (bytes, stood) in [(2000, 0), (4000, 8 * MS), (5000, 0)] {
            let mut t = Transfer::default();
            t.saw(60 * MS, 0, Some(2500));
            t.block(
                BlockEnd::Push as u8,
                &block(90 * MS, 98 * MS, 0, bytes),
                None,
                None,
                &TAP_BETWEEN,
            );
            assert_eq!(t.edge_ns, stood, "{bytes}");
        }
    }

    /// A window that was full in each round trip is not what an application waited for after all had been acknowledged.
    #[test]
    fn what_follows_the_last_ack_is_the_applications() {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        let (mut so_far, mut seq, mut time) = (None, 0u32, 0);
        for flight in 0..20 {
            time += if flight == 10 { 400 * MS } else { 81 * MS };
            let b = Block {
                flight: 20_000,
                ..block(time, time, seq, 20_000)
            };
            t.block(BlockEnd::Push as u8, &b, so_far, Some(20_000), &path);
            seq += 20_000;
            let all = Rtt {
                rtt: 100_000,
                seq_end: seq,
                ack: seq,
                flight: 0,
                window: 0,
            };
            t.sample(time + 100_000, &all, Some(20_000), &path);
            so_far = Some(SoFar {
                first: 81 * MS,
                last: time,
                bytes: seq.into(),
            });
        }
        let by = t.settle(81 * MS, time, time, &path).by;
        assert_eq!(by.of(Cause::Application) / MS, 400 - 81);
    }

    /// All was acknowledged and the next flight came late: its sender had nothing to send, or it waited in the queue of the slow link
    /// that its segments show.
    #[test]
    fn a_flight_from_a_slow_link_may_have_waited_there() {
        let application = |apart: u64| {
            let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
            let passage = 9 * apart;
            t.block(
                BlockEnd::Push as u8,
                &block(81 * MS, 81 * MS + passage, 0, 10_000),
                None,
                None,
                &path,
            );
            let all = rtt(100_000, 10_000, 0);
            t.sample(81 * MS + passage + 100_000, &all, None, &path);
            let so_far = SoFar {
                first: 81 * MS,
                last: 81 * MS + passage,
                bytes: 10_000,
            };
            let next = block(400 * MS, 400 * MS + passage, 10_000, 10_000);
            t.block(BlockEnd::Push as u8, &next, Some(so_far), None, &path);
            let by = t.settle(81 * MS, 400 * MS + passage, 500 * MS, &path).by;
            by.of(Cause::Application) / MS
        };
        assert_eq!(application(10_000), 400 - 81 - 1 - TAP_AT_RECEIVER.round_trip() / MS);
        assert_eq!(application(200_000), 0);
    }

    /// Timestamps take 12 of each segment's 1,012 bytes: three fit, or a byte less.
    #[test]
    fn a_window_with_room_for_three_segments_is_not_used_up() {
        let path = Path {
            segment: 1012,
            ..TAP_BETWEEN
        };
        let edge = Edge {
            from: 0,
            to: 0,
            at: 40_000,
            window: 40_000,
        };
        assert!(!edge.is_reached(37_000, &path));
        assert!(edge.is_reached(37_001, &path));
    }

    /// The edge was reached at 98 ms, one of the segments was lost, and its repeat is the last packet before the next block.
    #[test]
    fn a_window_that_a_lost_segment_keeps_full_held_its_sender() {
        let mut t = Transfer::default();
        let (edge, repeat, next) = (98 * MS, 150 * MS, 190 * MS);
        t.saw(60 * MS, 0, Some(10_000));
        t.block(
            BlockEnd::Push as u8,
            &block(90 * MS, edge, 0, 9000),
            None,
            None,
            &TAP_BETWEEN,
        );
        t.loss(Some(repeat - edge), repeat, &TAP_BETWEEN);
        let before = SoFar {
            first: 90 * MS,
            last: repeat,
            bytes: 10_000,
        };
        let b = block(next, next, 9000, 1000);
        t.block(BlockEnd::Push as u8, &b, Some(before), None, &TAP_BETWEEN);
        let by = t.settle(90 * MS, next, next, &TAP_BETWEEN).by;
        assert_eq!(by.of(Cause::ReceiverWindow), next - edge, "{by:?}");
        assert_eq!(by.of(Cause::Recovery), 0);
    }

    /// The last of ten segments went alone, with PSH: nothing was left but to send a lost one again.
    #[test]
    fn a_sender_that_has_run_dry_waits_for_its_buffer_while_a_loss_is_recovered() {
        let (dry, repeat, next) = (91 * MS, 150 * MS, 190 * MS);
        for (last, held) in [(1, next - dry), (2, 0)] {
            let mut t = Transfer::default();
            let (mut so_far, mut seq) = (None, 0);
            for (time, segments) in [(90 * MS, 9), (dry, last), (next, 2)] {
                if time == next {
                    t.loss(Some(repeat - dry), repeat, &TAP_BETWEEN);
                }
                let b = Block {
                    packets: segments as u16,
                    ..block(time, time, seq, 1000 * segments)
                };
                t.block(BlockEnd::Push as u8, &b, so_far, None, &TAP_BETWEEN);
                seq += 1000 * segments;
                so_far = Some(SoFar {
                    first: 90 * MS,
                    last: if time == dry { repeat } else { time },
                    bytes: seq.into(),
                });
            }
            let by = t.settle(90 * MS, next, next, &TAP_BETWEEN).by;
            assert_eq!(by.of(Cause::SendBuffer), held, "{by:?}");
        }
    }

    /// Of 20 segments one was lost, and after its repeat nothing new went for a round trip.
    #[test]
    fn a_sender_that_sends_nothing_new_in_a_recovery_has_nothing_to_send() {
        let (end, trip) = (91 * MS, 100 * MS);
        let charged = |repeat: u64, repeats: u32, flight, window, next: u64, bytes| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.saw(0, 0, Some(window));
            let first = block(90 * MS, end, 0, 20_000);
            t.block(BlockEnd::Push as u8, &first, None, None, &path);
            for _ in 0..repeats {
                t.again(repeat, 20_000, flight, &path);
                t.loss(Some(repeat - end), repeat, &path);
            }
            let before = SoFar {
                first: 90 * MS,
                last: repeat,
                bytes: 20_000,
            };
            let b = block(next, next, 20_000, bytes);
            t.block(BlockEnd::Push as u8, &b, Some(before), None, &path);
            t.settle(90 * MS, next, next, &path).by.of(Cause::SendBuffer)
        };
        let (repeat, next) = (end + trip, end + 2 * trip);
        assert_eq!(charged(repeat, 1, 20_000, 60_000, next, 9000), next - end);
        // Right behind the last block; after a timeout; too many; too few in flight; a full window; too soon; the end.
        assert_eq!(charged(end + MS, 1, 20_000, 60_000, next, 9000), 0);
        assert_eq!(charged(end + 2 * trip, 1, 20_000, 60_000, next + trip, 9000), 0);
        assert_eq!(charged(repeat, 6, 20_000, 60_000, next, 9000), 0);
        assert_eq!(charged(repeat, 1, 7000, 60_000, next, 9000), 0);
        assert_eq!(charged(repeat, 1, 20_000, 22_000, next, 9000), 0);
        assert_eq!(charged(repeat, 1, 20_000, 60_000, repeat + trip / 2, 9000), 0);
        assert_eq!(charged(repeat, 1, 20_000, 60_000, next, 500), 0);
    }

    /// Flights of 10, 20, 31 and 53 segments; of the last one a segment was lost: slow start had gone on before that.
    #[test]
    fn a_flight_with_a_loss_tells_of_those_before_it() {
        let mut t = Transfer::default();
        let (mut so_far, mut seq, mut last) = (None, 0, 0);
        for (flight, segments) in (0u64..).zip([10u32, 20, 31, 53]) {
            let first = flight * 100 * MS;
            last = first + MS;
            let b = block(first, last, seq, 1000 * segments);
            t.block(BlockEnd::Push as u8, &b, so_far, None, &TAP_BETWEEN);
            seq += 1000 * segments;
            so_far = Some(SoFar {
                first: 0,
                last,
                bytes: seq.into(),
            });
        }
        t.loss(Some(0), last, &TAP_BETWEEN);
        let sure: Vec<_> = t
            .spans
            .iter()
            .filter(|s| s.sure == Sure::Yes)
            .map(|s| s.from / MS)
            .collect();
        assert_eq!(sure, [201]);
    }

    /// What ends with less than a segment, and the next when the ACK of its first had come; or later. If it was most of the receiver's
    /// window, that cut it.
    #[test]
    fn a_flight_that_ends_small_may_have_filled_the_congestion_window() {
        let pause = |next: u64, second: u32| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let so_far = SoFar {
                first: 0,
                last: 0,
                bytes: 0,
            };
            t.block(BlockEnd::Push as u8, &block(0, 0, 0, 900), None, Some(40_000), &path);
            let before = SoFar { bytes: 900, ..so_far };
            t.block(
                BlockEnd::Push as u8,
                &block(0, 0, 900, second),
                Some(before),
                Some(40_000),
                &path,
            );
            let first = Rtt {
                rtt: 60 * MS,
                seq_end: 900,
                ack: 900,
                flight: 900,
                window: 40_000,
            };
            t.sample(60 * MS, &first, Some(40_000), &path);
            let before = SoFar {
                bytes: u64::from(900 + second),
                ..so_far
            };
            let b = block(next, next, 900 + second, 1000);
            t.block(BlockEnd::Push as u8, &b, Some(before), Some(40_000), &path);
            t.spans.last().map(|s| s.cause)
        };
        assert_eq!(pause(100 * MS + MS, 900), Some(Cause::SendBuffer));
        assert_eq!(pause(104 * MS, 900), Some(Cause::Application));
        assert_eq!(pause(90 * MS, 900), Some(Cause::Application));
        assert_eq!(pause(100 * MS + MS, 20_600), Some(Cause::SendBuffer));
        assert_eq!(pause(100 * MS + MS, 32_600), Some(Cause::ReceiverWindow));
    }

    fn rtt(rtt: u64, ack: u32, flight: u32) -> Rtt {
        Rtt {
            rtt,
            seq_end: ack,
            ack,
            flight,
            window: 0,
        }
    }

    /// Flights of so many segments beside the receiver, a round trip apart, and the last ACK a millisecond later.
    fn beside_receiver(flights: &[u32]) -> Charges {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        let trip = path.round_trip() + MS;
        let (mut time, mut begin) = (1000 * MS, 0);
        t.measured = Some(1_000u32.wrapping_sub(1_000 * flights[0]));
        for flight in flights {
            let timed = rtt(100_000, begin + 1_000, 1_000 * (flight - 1));
            t.sample(time, &timed, Some(400_000), &path);
            time += trip;
            begin += 1_000 * flight;
        }
        let end = time - trip + MS;
        t.sample(end, &rtt(100_000, begin, 0), Some(400_000), &path);
        t.settle(1000 * MS, end, time, &path).by
    }

    /// A receiver takes one segment, in each round trip.
    #[test]
    fn who_has_less_than_three_segments_in_flight_waits_for_no_link() {
        for (bytes, is_known) in [(200, false), (5_000, true)] {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.measured = Some(0);
            for n in 1..10u32 {
                t.sample(
                    u64::from(n) * 101 * MS,
                    &rtt(60 * MS, bytes * n, 0),
                    Some(400_000),
                    &path,
                );
            }
            let by = t.settle(0, 900 * MS, 910 * MS, &path).by;
            let [busy, unknown] = [Cause::Bandwidth, Cause::Unknown].map(|cause| by.of(cause) > 300 * MS);
            assert_eq!((busy, unknown), (is_known, !is_known), "{bytes}");
        }
    }

    #[test]
    fn two_round_trips_alike_show_no_buffer() {
        assert_eq!(beside_receiver(&[10; 2]).of(Cause::SendBuffer), 0);
        assert!(beside_receiver(&[10; 8]).of(Cause::SendBuffer) > 0);
    }

    #[test]
    fn what_is_too_short_to_tell_is_as_what_was_before() {
        let by = beside_receiver(&[10, 20, 40, 80]);
        assert_eq!(by.of(Cause::SlowStart), by.sum());
    }

    /// A window of 6 segments is used up in each round trip, beside the receiver. The segments that are timed are the first and the last of
    /// their flights in turns: 11 segments from one to the next in a round trip, then 7 in two.
    #[test]
    fn a_window_is_full_although_more_seems_to_be_in_flight_and_then_less() {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        let trip = path.round_trip();
        t.measured = Some(0);
        for twice in 0..6u32 {
            let (flight, end) = (u64::from(twice) * 3 * trip, 18_000 * twice);
            for (time, end) in [(flight, end + 1_000), (flight + trip + 3 * MS, end + 12_000)] {
                t.sample(time + 100_000, &rtt(100_000, end, 1_000), Some(6_000), &path);
            }
        }
        let to = 16 * trip;
        let by = t.settle(0, to, to, &path).by;
        assert!(by.of(Cause::ReceiverWindow) > to - 2 * trip, "{by:?}");
    }

    /// A reader opens a window of 24 segments each 100 ms. Its sender paces two segments each 2 ms until it has used that up; what comes
    /// from a slow link may have waited there.
    #[test]
    fn a_window_holds_nobody_while_it_has_room() {
        let held = |apart: u64| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.measured = Some(0);
            let mut so_far = None;
            for cycle in 0..8 {
                let begin = u64::from(cycle) * 100 * MS;
                for piece in 0..12 {
                    let time = begin + u64::from(piece) * 2 * MS;
                    let b = Block {
                        flight: 2_000 * (piece + 1),
                        packets: 2,
                        ..block(time, time + apart, 24_000 * cycle + 2_000 * piece, 2_000)
                    };
                    t.block(BlockEnd::Push as u8, &b, so_far, Some(24_000), &path);
                    so_far = Some(SoFar {
                        first: 0,
                        last: time + apart,
                        bytes: u64::from(b.seq + b.bytes),
                    });
                }
                let read = Rtt {
                    ack: 24_000 * (cycle + 1),
                    ..rtt(60 * MS, 24_000 * cycle + 1_000, 0)
                };
                t.sample(begin + 60 * MS, &read, Some(24_000), &path);
            }
            t.settle(0, 760 * MS, 800 * MS, &path).by.of(Cause::ReceiverWindow) / MS
        };
        let (paced, waited) = (held(10_000), held(MS));
        assert!(waited - paced > 100, "{paced} {waited}");
        assert!(paced > 500, "{paced}");
    }

    /// Trips of 10 and 20 segments in turns, which nothing explains; but segments that a slow link before the tap spaced show that it was
    /// busy, and a window with room that the sender held back itself.
    #[test]
    fn what_goes_up_and_down_is_unknown_but_for_a_slow_link_and_a_paced_sender() {
        let charged = |apart: u64, window: Option<u32>| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.measured = Some(0);
            let (mut so_far, mut seq) = (None, 0);
            for trip in 0..12 {
                let begin = trip * 100 * MS;
                let pieces = [5, 10][trip as usize % 2];
                for piece in 0..pieces {
                    let time = begin + piece * 90 * MS / pieces;
                    let b = Block {
                        flight: 4_000,
                        packets: 2,
                        ..block(time, time + apart, seq, 2_000)
                    };
                    t.block(BlockEnd::Limit as u8, &b, so_far, None, &path);
                    if window.is_some() {
                        t.tail = t.tail.map(|tail| BlockTail { has_room: true, ..tail });
                    }
                    seq += b.bytes;
                    so_far = Some(SoFar {
                        first: 0,
                        last: time + apart,
                        bytes: u64::from(seq),
                    });
                }
                t.sample(begin + 95 * MS, &rtt(60 * MS, seq, 4_000), window, &path);
            }
            let by = t.settle(0, 1_195 * MS, 1_200 * MS, &path).by;
            [Cause::Unknown, Cause::Bandwidth, Cause::CongestionWindow].map(|cause| by.of(cause) > 300 * MS)
        };
        assert_eq!(charged(10_000, None), [true, false, false]);
        assert_eq!(charged(MS, None), [false, true, false]);
        assert_eq!(charged(10_000, Some(400_000)), [false, false, true]);
    }

    /// Pieces of 10 segments from a link before the tap, in round trips of 100 ms after a loss: without a pause, with pauses half of
    /// the time, and twice as fast each time, as a sender does that paces in slow start.
    #[test]
    fn a_slow_link_without_a_pause_is_busy_whatever_the_congestion_window_does() {
        let busy = |spacing: fn(u32) -> u64, share: u64| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            (t.measured, t.loss_flight) = (Some(0), 1_000_000);
            let (mut so_far, mut seq) = (None, 0);
            for trip in 0..5u32 {
                let (begin, apart) = (u64::from(trip) * 100 * MS, spacing(trip));
                let pieces = 10 * MS / apart;
                for piece in 0..pieces {
                    let first = begin + piece * 10 * apart;
                    let last = first + 9 * apart * share / 2;
                    let b = Block {
                        flight: 10_000,
                        ..block(first, last, seq, 10_000)
                    };
                    t.block(BlockEnd::Limit as u8, &b, so_far, None, &path);
                    seq += b.bytes;
                    so_far = Some(SoFar {
                        first: 0,
                        last,
                        bytes: u64::from(seq),
                    });
                }
                t.sample(begin + 100 * MS - 1, &rtt(60 * MS, seq, 10_000), None, &path);
            }
            let by = t.settle(0, 499 * MS, 500 * MS, &path).by;
            (by.of(Cause::Bandwidth) / MS, by.of(Cause::CongestionWindow) / MS)
        };
        assert_eq!(busy(|_| MS, 2), (499, 0));
        assert_eq!(busy(|_| MS, 1), (0, 499));
        assert_eq!(busy(|trip| (4 * MS) >> trip, 2), (0, 499));
    }

    /// Two segments each 40 ms, `apart`, while a round trip over the path takes `now`: how many pauses of a send buffer there are once the
    /// path is full.
    fn pieces_of_two(apart: u64, now: u64) -> usize {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        let mut so_far = None;
        for piece in 0..20u32 {
            let time = u64::from(piece) * 40 * MS;
            let acked = 2_000
                * (u64::from(piece) * 40 * MS)
                    .saturating_sub(now - path.other)
                    .div_ceil(40 * MS) as u32;
            t.sample(time, &rtt(now - path.other, acked, 4_000), Some(40_000), &path);
            let b = Block {
                flight: 2_000 * (piece + 1) - acked,
                packets: 2,
                ..block(time, time + apart, 2_000 * piece, 2_000)
            };
            t.block(BlockEnd::Push as u8, &b, so_far, Some(40_000), &path);
            so_far = Some(SoFar {
                first: 0,
                last: time + apart,
                bytes: u64::from(b.seq + b.bytes),
            });
        }
        let late = |s: &&Span| s.cause == Cause::SendBuffer && s.from > now;
        t.spans.iter().filter(late).count()
    }

    /// Pauses of 30 ms after pieces each 2 ms, in a transfer that began with pieces each 15 ms.
    #[test]
    fn gaps_of_long_ago_tell_nothing_of_pauses() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        let begin = (0..7).map(|n| n * 15);
        let cycles = (1..6).flat_map(|cycle| (0..41).map(move |n| cycle * 110 + n * 2));
        let mut so_far = None;
        for (n, ms) in begin.chain(cycles).enumerate() {
            let b = block(ms * MS, ms * MS + 10_000, 2_000 * n as u32, 2_000);
            t.block(BlockEnd::Push as u8, &b, so_far, None, &path);
            so_far = Some(SoFar {
                first: 0,
                last: b.last,
                bytes: u64::from(b.seq + b.bytes),
            });
        }
        let pauses = t
            .spans
            .iter()
            .filter(|s| s.cause == Cause::SendBuffer && s.from > 100 * MS);
        assert_eq!(pauses.count(), 4);
    }

    /// While a queue stands, most is in flight beside the two segments; and between what a slow link spaced, others' segments went.
    #[test]
    fn a_paced_sender_does_not_wait_for_its_buffer() {
        assert!(pieces_of_two(10_000, 100 * MS) > 0);
        assert_eq!(pieces_of_two(10_000, 400 * MS), 0);
        assert_eq!(pieces_of_two(10 * MS, 100 * MS), 0);
    }

    /// Beside the receiver all ACKs of a flight come within a millisecond, and only some of them are in samples.
    #[test]
    fn an_edge_that_moved_on_may_have_been_heard_of() {
        for (window, at_edge) in [(40_000, None), (14_000, Some(true))] {
            let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
            t.sample(100_000, &rtt(100_000, 1000, 9000), Some(19_000), &path);
            t.sample(MS, &rtt(100_000, 10_000, 0), Some(window), &path);
            assert_eq!(t.at_edge(80 * MS + 500_000, 20_000, &path), at_edge);
        }
    }

    /// The ACK of a whole flight came before its receiver had read it.
    #[test]
    fn a_flight_was_held_by_the_window_it_was_sent_under() {
        for (before, held) in [(80_000, false), (42_000, true)] {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.measured = Some(0);
            t.sample(160 * MS, &rtt(60 * MS, 10_000, 0), Some(before), &path);
            t.sample(260 * MS, &rtt(60 * MS, 50_000, 0), Some(42_000), &path);
            let by = t.settle(160 * MS, 260 * MS, 260 * MS, &path).by;
            assert_eq!(by.of(Cause::ReceiverWindow) > 0, held, "{before}");
        }
    }

    /// 20,000 bytes in flight, and then the 15,000 that were left: the last ACK tells of both, but the segment that was timed is the first
    /// of those 15,000.
    #[test]
    fn a_trip_holds_no_more_than_what_was_sent_in_it() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.measured = Some(0);
        let window = Some(35_000);
        t.sample(160 * MS, &rtt(60 * MS, 1_000, 9_000), window, &path);
        t.sample(260 * MS, &rtt(60 * MS, 11_000, 19_000), window, &path);
        let last = Rtt {
            ack: 45_000,
            ..rtt(60 * MS, 31_000, 0)
        };
        t.sample(360 * MS, &last, window, &path);
        let by = t.settle(100 * MS, 301 * MS, 361 * MS, &path).by;
        assert_eq!(by.of(Cause::ReceiverWindow), 0);
        assert_eq!(t.peak, 20_000);
    }

    /// The end of the transfer before was sent again, so that no sample tells of its ACK.
    #[test]
    fn a_transfer_was_not_acknowledged_before_it_began() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.measured = Some(0);
        t.block(
            BlockEnd::Push as u8,
            &block(100 * MS, 101 * MS, 300_000, 10_000),
            None,
            None,
            &path,
        );
        t.sample(160 * MS, &rtt(60 * MS, 310_000, 0), None, &path);
        t.settle(100 * MS, 160 * MS, 160 * MS, &path);
        assert_eq!(t.peak, 10_000);
    }

    #[test]
    fn a_transfer_of_many_samples_is_measured_from_the_last_that_was_dropped() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.measured = Some(0);
        for n in 1..500 {
            t.sample(u64::from(n) * 100 * MS, &rtt(60 * MS, n * 10_000, 0), None, &path);
        }
        t.settle(0, 50_000 * MS, 50_000 * MS, &path);
        assert_eq!(t.peak, 10_000);
    }

    /// One lost segment is sent again in each round trip, and the first new one at 400 ms.
    #[test]
    fn a_window_that_stays_full_from_repeat_to_repeat_held_its_sender() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.full(10 * MS, 40_000, 50_000);
        for (time, end) in [
            (100, 50_000),
            (200, 50_000),
            (300, 50_000),
            (400, 51_000),
            (500, 51_000),
        ] {
            t.again(time * MS, end, 40_000, &path);
            t.loss(None, time * MS, &path);
        }
        let by = t.settle(10 * MS, 500 * MS, 500 * MS, &path).by;
        assert_eq!(by.of(Cause::ReceiverWindow), 290 * MS);
        assert_eq!(by.of(Cause::Recovery), 200 * MS);
    }

    /// 24,000 bytes: behind the first repeat there was room for four more segments, behind the next for two. Then nothing went for long.
    #[test]
    fn a_window_holds_its_sender_from_one_repeat_to_the_next_and_until_that_is_acknowledged() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.saw(0, 0, Some(24_000));
        let first = block(90 * MS, 91 * MS, 0, 20_000);
        t.block(BlockEnd::Limit as u8, &first, None, None, &path);
        t.again(190 * MS, 20_000, 20_000, &path);
        t.again(290 * MS, 22_000, 22_000, &path);
        let before = SoFar {
            first: 90 * MS,
            last: 290 * MS,
            bytes: 22_000,
        };
        let next = block(900 * MS, 900 * MS, 22_000, 9000);
        t.block(BlockEnd::Push as u8, &next, Some(before), None, &path);
        let by = t.settle(90 * MS, 900 * MS, 900 * MS, &path).by;
        assert_eq!(by.of(Cause::ReceiverWindow), 200 * MS);
    }

    /// The sender hears at 140 ms of a window that opened.
    #[test]
    fn a_sender_stands_at_an_edge_until_it_hears_of_the_next() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.saw(60 * MS, 0, Some(20_000));
        let full = block(90 * MS, 91 * MS, 0, 20_000);
        t.block(BlockEnd::Push as u8, &full, None, None, &path);
        t.saw(100 * MS, 1000, Some(40_000));
        t.sample(200 * MS, &rtt(60 * MS, 20_000, 0), None, &path);
        assert_eq!(t.samples[0].edge_ns, 49 * MS);
    }

    /// It opened, for who hears of it 40 ms later, and still nothing new was sent.
    #[test]
    fn a_window_that_opened_held_its_sender_until_then() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.full(10 * MS, 40_000, 50_000);
        t.again(100 * MS, 50_000, 40_000, &path);
        t.saw(120 * MS, 20_000, Some(40_000));
        t.again(200 * MS, 50_000, 30_000, &path);
        t.again(300 * MS, 50_000, 30_000, &path);
        let by = t.settle(10 * MS, 300 * MS, 300 * MS, &path).by;
        assert_eq!(by.of(Cause::ReceiverWindow), 150 * MS);
    }
}
