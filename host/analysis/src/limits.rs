//! What limited each transfer (`docs/src/limits.md`): every instant between the first and the last data packet of a
//! request or a response is charged to exactly one cause.
//!
//! Nothing is decided while records come in: samples and spans are noted, and charged when the transfer is over (or
//! when there are many of them), because what a pause was is known only when it ends.

mod bursts;
mod charges;
mod cut;
mod distant;
mod edges;
mod late;
mod path;
mod pauses;
mod recovery;
mod sample;
mod spans;
mod tail;
#[cfg(test)]
mod tests;
mod trips;
mod window;

use weir_record::{Block, BlockEnd, Rtt};

use crate::pieces::Pieces;
use crate::silly::{Heard, Silly};
use crate::writes::Writes;
use bursts::{BlockTail, Bursts};
use charges::balance;
pub(crate) use charges::{Cause, Charged, Charges};
use cut::Cut;
use distant::Echo;
use edges::{Edge, Edges};
pub(crate) use path::{DELAYED_ACK, DELAYED_ACK_MOST, Path, SHORTEST_PAUSE, SLACK, TIMESTAMPS, is_prompt};
use path::{are_whole, is_delayed};
use recovery::{Answers, Repeats, silences};
use sample::{Pace, Passage, Sample, Tally};
pub(crate) use sample::{apart, is_spaced};
use spans::{Span, Spans, Sure, closed_cause};
use tail::{Drain, Passed};
pub(crate) use tail::{Flown, Tail};
use trips::{STEADY, Trip, busy_link, is_link_busy, shares_busy_link};

/// Samples or spans at which a transfer is charged up to the last of them, if these are some round trips.
const MANY: usize = 192;
/// So many, and samples at which it is charged all the same.
const SOME_TRIPS: u64 = 3;
const MOST: usize = 4 * MANY;
/// Segments from which on data that is acknowledged is a transfer, when no block of it has ended.
pub(crate) const GOES_ON: u32 = 8;
/// Trips kept then, for comparison, and samples at least.
const CONTEXT: usize = 8;
/// What is sent right behind an ACK is so by chance once in so many times, in a pause this much longer than that takes.
const CHANCE: u64 = 16;

/// A transfer up to a block: its first and last packet and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoFar {
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
}

/// Both directions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub sides: [Transfer; 2],
    /// Smallest round trip from the tap to the server and back that any connection had over the same slow link, ns.
    pub to_server: Option<u64>,
}

impl Limits {
    /// For reuse: empty, with its memory.
    pub fn clear(&mut self) {
        self.to_server = None;
        for side in &mut self.sides {
            side.samples.clear();
            side.spans.clear();
            side.edges.clear();
            side.echoes.clear();
            *side = Transfer {
                samples: std::mem::take(&mut side.samples),
                spans: std::mem::take(&mut side.spans),
                edges: std::mem::take(&mut side.edges),
                echoes: std::mem::take(&mut side.echoes),
                ..Transfer::default()
            };
        }
    }
}

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfer {
    samples: Vec<Sample>,
    /// The last trips that have been charged, and where they end: the time, and the end of the segment that was timed last.
    history: Vec<Trip>,
    cut_at: Option<(u64, Option<u32>)>,
    spans: Spans,
    tail: Option<BlockTail>,
    edges: Edges,
    /// Of the receiver's ACKs, in order.
    echoes: Vec<Echo>,
    cut: Cut,
    /// Since when a slow link before the tap had been busy when the last block came behind others.
    busy_since: Option<u64>,
    /// Since the last sample.
    tally: Tally,
    pace: Pace,
    bursts: Bursts,
    writes: Writes,
    pieces: Pieces,
    /// End of the last piece below a segment, and of the last that no window's edge had cut.
    small: Option<u32>,
    small_write: Option<u32>,
    /// The last block was alone on its way, and as long as the field of the window that its sender had heard of, and so were others
    /// before it: the last packet before the first of them.
    unscaled: Option<u64>,
    /// Such blocks behind another, under a window with a scale.
    pub unscaled_pieces: u32,
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
    answers: Answers,
    /// Up to where trips that are over have been measured: the end of a timed segment, or the last ACK of the transfer before.
    measured: Option<u32>,
    /// Most bytes in flight since the last sample.
    flight_since: u32,
    rate_max: f64,
    /// The best of all transfers where nothing was repaired.
    rate_best: f64,
    /// Most bytes in flight at a loss, or when a mark was heard of.
    loss_flight: u32,
    /// When the last loss is recovered.
    recovering: u64,
    /// First and last sign of a loss or of reordering, until something is sent again.
    signs: Option<(u64, u64)>,
    /// Round trips since the last loss.
    acks_since_loss: u32,
    /// What a link behind the tap takes.
    passed: Passed,
    drain: Drain,
    /// Bytes in flight when the send buffer, and when the receiver's window, was the limit.
    pub sender_bytes: u32,
    pub receiver_bytes: u32,
    /// Most bytes in flight over the whole path.
    pub peak: u32,
    /// Best rate over a round trip while a link was busy, bytes/s.
    link_rate: f64,
    pub total: Charged,
    /// Of transfers that are over: their bytes, and how much longer than past the tap each was under way for its sender, ns.
    carried: u64,
    behind: u64,
    /// ns by which charges did not add up to their transfers before they were made to; 0 unless records were lost.
    pub unbalanced: u64,
    pub delayed_acks: u32,
    /// Round trips whose ACK told of a mark (RFC 3168).
    pub marked_acks: u32,
    pub acks: u32,
    pub nagle: u32,
}

impl Transfer {
    /// A round trip. `window` is the receiver's, in bytes.
    pub fn sample(&mut self, time: u64, r: &Rtt, window: Option<u32>, path: &Path) {
        if self.samples.len() >= MANY && self.are_enough(time, path) {
            self.charge_some(path);
        }
        self.acks = self.acks.saturating_add(1);
        self.acks_since_loss = self.acks_since_loss.saturating_add(1);
        if is_delayed(r.rtt, r.flight, path) {
            self.delayed_acks = self.delayed_acks.saturating_add(1);
        }
        self.passed.sample(r, path);
        let sent = time.saturating_sub(r.rtt);
        let at_edge = self.at_edge(sent, r.seq_end, path);
        let window_before = self.edges.heard(sent, path).map(|edge| edge.window);
        self.edges.saw(time, r.ack, window);
        self.stood_since_block(time, path);
        self.had_room_since_block(time, r.ack.wrapping_add(r.flight), path);
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
            tally: std::mem::take(&mut self.tally),
        });
        self.drain.sample(&self.samples, path.base);
        self.flight_since = r.flight;
    }

    /// What passed behind the second last timed segment, up to the last, as a block would tell it; and whether it was as fast as what passed
    /// before it: no pause was in either.
    pub fn piece(&self, payload: u32) -> Option<(Block, bool)> {
        let [.., first, before, last] = self.samples.as_slice() else {
            return None;
        };
        let new = Passage::between(before, last)?;
        let is_even = |old: Passage| old.rate().max(new.rate()) <= STEADY * old.rate().min(new.rate());
        let bytes = last.end.wrapping_sub(before.end);
        let block = Block {
            first: before.sent(),
            last: last.sent(),
            seq: before.end,
            bytes,
            ack: 0,
            flight: 0,
            packets: u16::try_from(bytes.div_ceil(payload.max(1))).ok()?,
            max_segment: u16::try_from(payload).ok()?,
            window: 0,
            ttl: 0,
            known: 0,
        };
        Some((block, Passage::between(first, before).is_some_and(is_even)))
    }

    /// Whether the samples that have not been charged are those of some round trips, or too many.
    fn are_enough(&self, time: u64, path: &Path) -> bool {
        let since = self.cut_at.map_or_else(|| self.samples[0].time, |(since, _)| since);
        let new = self.samples.len() - self.samples.partition_point(|s| s.time <= since);
        let is_long = time.saturating_sub(since) >= SOME_TRIPS * path.round_trip();
        new >= MANY && is_long || self.samples.len() >= MOST
    }

    /// Nothing was noted of this direction until `b`, but the last ACK is known: all that was in flight was acknowledged at `time`, and the
    /// segment that it timed took `rtt`, if that is known, too. It counts if less than a segment can have waited for it: the rest of what
    /// is so short is judged without.
    pub fn heard_before(
        &mut self,
        (time, rtt): (u64, Option<u64>),
        b: &Block,
        before: Option<SoFar>,
        window: Option<u32>,
        path: &Path,
    ) {
        let rest = b.bytes % path.unit(b).max(1);
        let is_small = !path.is_full(b) && b.bytes < path.payload;
        let (first, last, next, ack) = match before {
            Some(before) if is_small && (before.last..=b.first).contains(&time) => {
                (before.first, before.last, b.first, b.seq)
            }
            _ if rest > 0 && b.packets > 1 && (b.first..=b.last).contains(&time) => {
                // Of two segments it was the first.
                let last = if b.packets == 2 { b.first } else { time };
                (b.first, last, b.last, b.seq.wrapping_add(b.bytes - rest))
            }
            _ => return,
        };
        let sent = time.saturating_sub(rtt.unwrap_or(0)).clamp(first, last);
        let is_trigger = next.saturating_sub(time) <= path.other.saturating_add(path.slack());
        if !is_trigger || next.saturating_sub(sent) < CHANCE * path.jitter() {
            return; // it let nothing go, or some ACK is as near to whatever comes
        }
        let all = Rtt {
            rtt: time - sent,
            seq_end: ack,
            ack,
            flight: 0,
            window: 0,
            tcp_flags: 0,
        };
        self.sample(time, &all, window, path);
    }

    /// Bytes of data in a segment, where its sender makes smaller ones than a full one, `payload`.
    pub fn cut(&self, payload: u32) -> u32 {
        self.cut.payload(payload)
    }

    /// What `b`, behind what there is `before` it, tells of that. `window`: the receiver's last, in bytes or as it stood in its field.
    pub fn learn_cut(&mut self, b: &Block, before: Option<SoFar>, window: u32, payload: u32) {
        if self
            .cut
            .block(b, before.map_or(0, |before| before.bytes), window, payload)
            && self.was_small(b)
        {
            self.cut = Cut::default();
        }
    }

    /// Bytes in flight behind the tap at some time since the last sample.
    pub fn flight(&mut self, bytes: u32) {
        self.flight_since = self.flight_since.max(bytes);
    }

    /// The next block may have waited behind what others sent, over a slow link that had been `busy` since then.
    pub fn waited_since(&mut self, b: &Block, busy: Option<u64>, before: Option<SoFar>) {
        self.busy_since = busy;
        if let Some(since) = busy {
            let from = before.map_or(since, |before| before.last.max(since));
            self.tally.busy_ns = self.tally.busy_ns.saturating_add(b.last.saturating_sub(from));
        }
    }

    /// A block ended.
    /// `before`: what there is before it in this transfer.
    /// `window`: the receiver's last, in bytes.
    pub fn block(&mut self, code: u8, b: &Block, before: Option<SoFar>, window: Option<u32>, path: &Path) {
        self.flight(b.flight);
        self.stood_since_block(b.first, path);
        self.had_room_since_block(b.first, b.seq, path);
        let full = path.unit(b);
        let is_full = path.is_full(b);
        let noted = self
            .tail
            .filter(|tail| before.is_some_and(|before| before.last == tail.last));
        let tail = noted.or_else(|| {
            let SoFar { first, last, bytes } = before?;
            let whole = are_whole(bytes, path.segment) || is_full && bytes.is_multiple_of(u64::from(full));
            self.bursts = Bursts::begin(first, u32::try_from(bytes).unwrap_or(u32::MAX));
            self.bursts.writes = u32::from(!whole);
            self.small = (!whole).then_some(b.seq);
            self.small_write = self.small;
            Some(BlockTail {
                last,
                pushed: true,
                whole,
                acked: None,
                end: b.seq,
                at_edge: false,
                fills_any: false,
                is_cut: false,
                fills_small: false,
                apart: None,
            })
        });
        match tail {
            Some(tail) => self.pause(tail, b, path),
            None => self.bursts = Bursts::begin(b.first, 0),
        }
        let end = b.seq.wrapping_add(b.bytes);
        let acked = end.wrapping_sub(b.flight);
        let pushed = BlockEnd::from_u8(code) == Some(BlockEnd::Push);
        self.written(b, is_full, before, path);
        self.stood_since_repeat(b, end, path);
        if pushed {
            // What other blocks tell is later than their end.
            self.edges.saw(b.last, acked, window);
        }
        let whole = is_full && b.bytes.is_multiple_of(full);
        let is_reached = |edge: &Edge| edge.is_reached(end, path);
        let at_edge = pushed && self.edges.heard(b.last, path).is_some_and(is_reached);
        let fills_any = at_edge && self.edges.are_filled(b.last, end, path);
        let is_cut = pushed && !whole && self.is_cut(b, end, before, window, path);
        if self.edges.cuts(b, end, path) {
            self.stood(b.first, b.last);
        }
        self.bursts.add(b, acked, window, path);
        if let Some(full) = self.full.filter(|full| full.saturating_add(path.slack()) < b.last) {
            // In the middle of a block: for as long as an ACK takes.
            let to = full.saturating_add(path.round_trip()).min(b.last);
            self.span(full, to, Cause::ReceiverWindow, path);
            self.full = None;
        }
        let bytes = i64::from(b.bytes);
        if b.last.saturating_sub(b.first) <= path.round_trip() / 2 {
            self.tally.within = self.tally.within.saturating_add(u64::from(b.bytes));
        }
        self.tally.spaced = self
            .tally
            .spaced
            .saturating_add(if is_spaced(b) { bytes } else { -bytes });
        self.tally.passed.join(self.pace.passage(b, is_full));
        self.tally.partial = self
            .tally
            .partial
            .saturating_add(if pushed && !whole { bytes } else { -bytes });
        if !whole && b.packets > 1 {
            self.small_tail(b, path);
        }
        if !whole {
            self.bursts.writes = self.bursts.writes.saturating_add(u32::from(pushed));
            self.small = Some(end);
            if !is_cut {
                self.small_write = self.small;
            }
        }
        if !is_full && self.was_small(b) {
            // What goes without PSH or FIN has more behind it.
            let end = matches!(BlockEnd::from_u8(code), Some(BlockEnd::Push | BlockEnd::Fin));
            let pieces = u32::from(b.packets).saturating_sub(u32::from(end));
            self.silly.pieces = self.silly.pieces.saturating_add(pieces);
        }
        // Who sends less than a segment and then nothing for a second had no more, with PSH or without.
        let is_idle = BlockEnd::from_u8(code) == Some(BlockEnd::Idle) && !whole;
        self.tail = Some(BlockTail {
            last: b.last,
            pushed: pushed || is_idle,
            whole,
            acked: Some(acked),
            end,
            at_edge,
            fills_any,
            is_cut,
            fills_small: window.is_some_and(|window| (window == b.bytes || window == b.flight) && window < path.mss),
            apart: apart(b),
        });
    }

    /// A block that is (`fills`) as long as the field of the window, and so alone on its way behind what ended at `before`; its scale is
    /// `shift`. Returns whether that field was the window for its sender: where the window has a scale, a piece may be as long; two of
    /// them one behind the other are no chance, their sender does not know of the scale.
    pub fn fills_field(&mut self, b: &Block, before: Option<u64>, fills: bool, shift: Option<u8>, path: &Path) -> bool {
        let alone = before.filter(|_| fills && b.flight <= b.bytes);
        let since = alone.map(|before| self.unscaled.unwrap_or(before));
        let again = self.unscaled.is_some() && alone.is_some();
        self.unscaled = since;
        match (shift, since) {
            (None, _) => return fills,
            (Some(1..), Some(since)) if again => {
                self.unscaled_pieces += 1;
                self.span(since, b.first, Cause::SmallWindow, path);
            }
            _ => {}
        }
        again
    }

    fn span(&mut self, from: u64, to: u64, cause: Cause, path: &Path) {
        self.known_span(from, to, (cause, Sure::ByTrips), path);
    }

    fn known_span(&mut self, from: u64, to: u64, (cause, sure): (Cause, Sure), path: &Path) {
        let span = Span {
            from,
            to,
            cause,
            sure,
            flight: 0,
        };
        self.push(span, path);
    }

    fn push(&mut self, span: Span, path: &Path) {
        if self.spans.extend(&span) {
            return;
        }
        if self.spans.are_many() {
            self.charge_some(path);
        }
        self.spans.push(span);
    }

    /// Charge the transfer in progress up to its last sample.
    fn charge_some(&mut self, path: &Path) {
        let Some((last, end)) = self.samples.last().map(|s| (s.time, s.end)) else {
            self.spans.drop_first();
            return;
        };
        let first = self.samples[0].sent();
        let (start, from) = self.charged.unwrap_or((first, first));
        if last > from {
            self.history = self.charge(from, last, path);
            self.history.retain(Trip::is_whole);
            self.history.drain(..self.history.len().saturating_sub(CONTEXT));
            self.cut_at = Some((last, Some(end)));
            self.charged = Some((start, last));
        }
        // The sender has not yet heard of what came in the last round trip.
        let heard = last.saturating_sub(path.round_trip() / 4 * 5);
        let drop = self.samples.partition_point(|s| s.time < heard);
        let most = self.samples.len().saturating_sub(CONTEXT);
        self.samples.drain(..drop.clamp(most.min(self.samples.len() / 2), most));
        self.spans.keep_after(last);
        self.echoes.retain(|echo| echo.to > last);
        if self.spans.are_many() {
            self.spans.drop_first();
        }
    }

    /// Rate of the link that was seen busy, bytes/s: not less than what passed at another time.
    pub fn link(&self) -> Option<f64> {
        (self.link_rate > 0.0).then(|| self.link_rate.max(self.rate_best))
    }

    /// What is charged so far, with the transfer in progress.
    pub fn so_far(&self) -> Charges {
        let mut sum = self.total.by;
        sum.join(&self.pending.by);
        sum
    }

    /// Of a transfer that is over: its bytes, and how much longer than past the tap it was under way for its sender, ns.
    pub const fn carried(&mut self, bytes: u64, behind: u64) {
        if bytes == 0 {
            return;
        }
        self.carried = self.carried.saturating_add(bytes);
        self.behind = self.behind.saturating_add(behind);
    }

    /// The rate of transfers that are over, at their sender from the first packet of each to the ACK of its last, bytes/s. Not known
    /// where its application had nothing to send for most of that time: how long each piece was under way is not.
    pub fn rate(&self) -> Option<f64> {
        let (application, under_way) = (self.total.by.of(Cause::Application), self.total.under_way());
        let ns = under_way.saturating_add(self.behind);
        (ns > 0 && application <= ns).then(|| self.carried as f64 / ns as f64 * 1e9)
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
        done.queued_window = done.queued_window.min(done.by.of(Cause::ReceiverWindow));
        done.queued_buffer = done.queued_buffer.min(done.by.of(Cause::SendBuffer));
        let application = done.by.of(Cause::Application);
        done.doubtful = done.doubtful.min(application + done.by.of(Cause::Unknown));
        done.quiet = done.quiet.min(application);
        done.longest = done.longest.min(application);
        self.total.join(&done);
        self.forget(next);
        done
    }

    /// What was noted before `next`.
    fn forget(&mut self, next: u64) {
        if let Some(last) = self.samples.iter().rev().find(|s| s.sent() < next) {
            self.measured = Some(last.ack);
        }
        self.samples.retain(|s| s.sent() >= next);
        self.history.clear();
        self.cut_at = None;
        self.spans.keep_after(next);
        self.echoes.retain(|echo| echo.to > next);
        self.tail = None;
        (self.small, self.small_write) = (None, None);
        self.repeats = None;
        self.had_room = false;
        self.busy_since = None;
        self.again = None;
        self.full = self.full.filter(|full| *full >= next);
        self.stands = self.stands.filter(|(since, _)| *since >= next);
        self.tally = Tally::default();
        self.pace = Pace::default();
        self.rate_max = 0.0;
    }

    /// Charge `from` to `to`. Returns the trips that tell of it.
    fn charge(&mut self, from: u64, to: u64, path: &Path) -> Vec<Trip> {
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
        for echo in &self.echoes {
            if let Some(sent) = echo.sent_by(&samples, path) {
                spans.had_been_sent(sent, echo.to);
            }
        }
        let trips = self.trips(&samples, &spans, path);
        let marked = spans.len();
        let end = self.tail.filter(|tail| tail.last == to).map(|tail| tail.end);
        let silences = silences(&samples, &self.echoes, to, end, path);
        for &(since, until) in &silences {
            let mut unexplained = Charges::default();
            spans.paint(
                since.max(from),
                until.min(to),
                (Cause::Unknown, false),
                &mut unexplained,
            );
            self.pending.doubtful = self.pending.doubtful.saturating_add(unexplained.of(Cause::Unknown));
            spans.push(Span {
                from: since,
                to: until,
                cause: Cause::Unknown,
                sure: Sure::ByTrips,
                flight: 0,
            });
        }
        let mut at = from;
        let mut before = None;
        // Where all was acknowledged each time nothing was noted; what came before the first round trips is told by them, if it is short.
        let begin = trips.first().map_or(from, |trip| trip.to.saturating_sub(trip.ns));
        if begin < to && begin.saturating_sub(from) > CONTEXT as u64 * path.round_trip().max(SLACK) {
            spans.paint(from, begin, (Cause::Unknown, false), &mut self.pending.by);
            at = begin;
        }
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
            if own.0 == Cause::Unknown && shares_busy_link(&trips, i) {
                own.0 = Cause::Bandwidth;
            }
            if own.0 == Cause::ReceiverWindow && i > 0 && trips[i - 1].window == trip.window {
                self.silly.freeze(trip.bytes, trip.window.unwrap_or(0), end - at);
            }
            if own.0 == Cause::ReceiverWindow {
                self.receiver_bytes = trip.held_by.unwrap_or(self.receiver_bytes);
            }
            before = Some(own);
            let mut by = Charges::default();
            let edge = spans.beside_window(at, trip.edge_ns).min(end);
            spans.paint(at, edge, (Cause::ReceiverWindow, false), &mut by);
            // What the window let pass then, the sender held back itself.
            let room = if own.0 == Cause::ReceiverWindow {
                trip.room_ns
            } else {
                0
            };
            let paced = spans.beside_window(edge, room).min(end);
            spans.paint(edge, paced, (Cause::CongestionWindow, false), &mut by);
            spans.paint(paced, end, own, &mut by);
            if trip.window.is_some_and(|window| window < path.mss) {
                by.rename(Cause::ReceiverWindow, Cause::SmallWindow);
            }
            let silent = |(since, until): &(u64, u64)| end.min(*until).saturating_sub(at.max(*since));
            let silent = silences.iter().map(silent).sum::<u64>().min(by.of(Cause::Unknown));
            let queueing = trip.queueing(&by, silent, path);
            let mut charged = Charged {
                by,
                queueing,
                ..Charged::default()
            };
            if is_link_busy(&trips, i, path) {
                charged.queued_window = by.of(Cause::ReceiverWindow);
                charged.queued_buffer = by.of(Cause::SendBuffer);
                self.link_rate = self.link_rate.max(trip.rate.min(self.rate_max));
            }
            self.pending.join(&charged);
            at = end;
        }
        if at < to {
            // Behind the last ACK: as before it. Without any, one flight, or something that nothing tells.
            let alone = if path.is_one_flight(to - at) {
                path.one_flight()
            } else {
                Cause::Unknown
            };
            spans.paint(at, to, before.unwrap_or((alone, false)), &mut self.pending.by);
        }
        spans.truncate(marked);
        if self.closed.is_some_and(|(since, _)| since < to) {
            spans.pop();
        }
        self.spans = spans;
        self.samples = samples;
        trips
    }
}
