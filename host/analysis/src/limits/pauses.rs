//! The time between two blocks: whether the application, the send buffer, Nagle's algorithm or a window made the sender
//! pause, or it only paced.

use weir_record::Block;

use super::bursts::{BlockTail, PIECES};
use super::charges::Cause;
use super::path::{DELAYED_ACK, DELAYED_ACK_MOST, Path, SHORTEST_PAUSE, SLACK, is_delayed};
use super::sample::{Sample, is_spaced};
use super::spans::{Span, Sure};
use super::{CONTEXT, SoFar, Transfer};
use crate::seq::{at_or_before, before};
use crate::shares::USER_THINK;
use crate::writes::Writes;

/// Segments of others between two of them on a slow link.
const OTHERS: u64 = 8;
/// Beside two round trips, how long a sender waits for the ACK of one segment before it sends another (RFC 8985 7.2), ns.
const PROBE: u64 = 200_000_000;
/// A round trip that is longer by an eighth, within these, ns, can end slow start (RFC 9406 4.2).
const LEAST_LATER: u64 = 4_000_000;
const MOST_LATER: u64 = 16_000_000;

impl Transfer {
    /// What was written may have come to its end at the last block, whatever was sent again since then.
    pub(super) fn written(&mut self, b: &Block, is_full: bool, before: Option<SoFar>, path: &Path) {
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
                // What Nagle's algorithm kept back had been written, and what no ACK let go had not.
                let is_held = self.spans.ends_with(b.first, Cause::Nagle) || self.went_unasked(&tail, b, path);
                if is_pause
                    && !is_held
                    && (self
                        .writes
                        .pause(tail.end, path.window, self.loss_flight == 0 && self.sender_bytes > 0)
                        || self.had_nothing_new(tail, b, path)
                        || self.had_no_answer(tail, b, path)
                        || self.had_room)
                {
                    let to = self.all_acknowledged(from, b.first, path).unwrap_or(b.first);
                    self.known_span(from, to, (Cause::SendBuffer, Sure::Dry), path);
                }
            }
        }
        self.writes.block(b, is_full.then(|| path.unit(b)), gap);
        // What stands apart may be two pieces, the first of which was one segment without PSH.
        let is_piece = is_full && !is_spaced(b) && path.payload > 0 && b.bytes.is_multiple_of(path.payload);
        let piece = if is_piece { b.bytes } else { 0 };
        self.pieces
            .piece(piece, path.payload, (b.first, b.last), path.round_trip());
        self.sent_new(b, path);
        self.had_room = false;
    }

    /// The time between two blocks of a transfer.
    pub(super) fn pause(&mut self, tail: BlockTail, b: &Block, path: &Path) {
        if self.waited_for_window(&tail, b, path) {
            return;
        }
        let gap = b.first.saturating_sub(tail.last);
        let now = self.trip_now(path);
        if !tail.pushed || gap < path.least_pause() {
            self.bursts.gap(gap, b.first, now);
            return;
        }
        if tail.at_edge || self.bursts.filled(&tail, path) {
            return self.ended_at_edge(&tail, b.first, path);
        }
        if self.had_no_space(&tail, b, path) {
            self.sender_bytes = self.sender_bytes.max(self.bursts.bytes);
            self.bursts.restart(b.first);
            self.known_span(tail.last, b.first, (Cause::SendBuffer, Sure::Yes), path);
            return;
        }
        let trigger = self.trigger(tail.last, b.first, path);
        let small = !path.is_full(b) && b.bytes < path.payload;
        let unasked = self.went_unasked(&tail, b, path);
        let cause = match trigger.filter(|_| small) {
            Some(ack) if is_delayed(ack.rtt, ack.flight, path) => self.held_back(ack, path),
            Some(ack) if b.packets == 1 && self.lets_go_small(&ack, b.first, path) => self.held_back(ack, path),
            _ if !(tail.whole || self.clocked(&tail, b.first, path))
                || gap > now.saturating_add(DELAYED_ACK_MOST)
                || unasked =>
            {
                let is_doubtful = unasked || small && self.may_have_waited(&tail, b, path);
                return self.had_nothing(&tail, b, is_doubtful, path);
            }
            _ if self.is_paced(&tail, b, now, path) => return self.bursts.gap(gap, b.first, now),
            _ => return self.had_sent_all(&tail, b, path),
        };
        self.bursts.restart(b.first);
        self.span(tail.last, b.first, cause, path);
    }

    /// Whether the receiver's window kept the sender from `tail` on: it was full, or too small for a segment.
    fn waited_for_window(&mut self, tail: &BlockTail, b: &Block, path: &Path) -> bool {
        let gap = b.first.saturating_sub(tail.last);
        if tail.fills_any && tail.last >= self.recovering {
            self.edges.went_on(tail.last, tail.end, b.first, path);
        }
        let is_late = || {
            let heard = self.edges.has_room_since(tail.end, path);
            heard.is_none_or(|heard| b.first <= heard.saturating_add(path.late()))
        };
        // There was more to send as soon as it heard of room.
        let is_cut = tail.is_cut && gap >= SHORTEST_PAUSE && is_late();
        if is_cut || self.full.is_some_and(|full| full <= tail.last) && gap >= SHORTEST_PAUSE {
            self.full = None;
            if gap >= path.round_trip() / 8 {
                self.filled_window(tail, b.first, path);
            }
            if is_cut {
                self.span(tail.last, b.first, Cause::ReceiverWindow, path);
            } else {
                self.window_pause(tail.last, b.first, tail.end, path);
            }
            return true;
        }
        if tail.fills_small && gap >= path.least_pause() {
            // Nor does its ACK let a segment go: a sender may wait for a timer then (RFC 1122 4.2.3.4).
            self.bursts.restart(b.first);
            self.span(tail.last, b.first, Cause::SmallWindow, path);
            return true;
        }
        false
    }

    /// The application wrote nothing behind `tail`; with doubt, something else may have kept what it wrote.
    fn had_nothing(&mut self, tail: &BlockTail, b: &Block, is_doubtful: bool, path: &Path) {
        let gap = b.first.saturating_sub(tail.last);
        self.bursts.restart(b.first);
        let to = self.all_acknowledged(tail.last, b.first, path).unwrap_or(b.first);
        if is_doubtful || path.may_be_unasked(gap) {
            self.pending.doubtful = self.pending.doubtful.saturating_add(gap);
        }
        self.pending.longest = self.pending.longest.max(gap);
        if gap > USER_THINK {
            self.pending.quiet = self.pending.quiet.saturating_add(gap);
        }
        self.span(tail.last, to, Cause::Application, path);
        self.idle(to, b.first, path);
    }

    /// Whether the sender, or who shares a busy link with it, spaces what it sends; a round trip takes `now`, ns.
    fn is_paced(&self, tail: &BlockTail, b: &Block, now: u64, path: &Path) -> bool {
        let gap = b.first.saturating_sub(tail.last);
        let cycle = b.first.saturating_sub(self.bursts.since);
        let is_part = || {
            let of_flight = |flight| gap < now / 2 && u64::from(self.bursts.bytes) * (PIECES + 1) < u64::from(flight);
            gap < tail.spacing().saturating_mul(OTHERS)
                || self.edges.in_flight(tail.last, tail.end, path).is_some_and(of_flight)
        };
        // Who shares a busy link waits for that, whatever else would hold it.
        let shares_link = self.busy_since.is_some_and(|since| since <= tail.last);
        shares_link
            || cycle < path.round_trip() / PIECES
            || gap < self.bursts.longest(b.first, now).saturating_mul(2)
            || self.bursts.is_few(path) && is_part()
    }

    /// The sender had sent what it may: a congestion window, or a buffer, as later flights tell.
    fn had_sent_all(&mut self, tail: &BlockTail, b: &Block, path: &Path) {
        let (gap, trip) = (b.first.saturating_sub(tail.last), path.round_trip());
        let burst = self.bursts.bytes;
        let is_flight = self.bursts.is_flight(tail, b.first, path);
        if is_flight && !tail.whole && self.bursts.nearly_filled() {
            return self.ended_at_edge(tail, b.first, path);
        }
        let fills = is_flight && self.loss_flight == 0 && self.bursts.slow_start.fills(burst, path.payload);
        let filled = std::mem::replace(&mut self.bursts.fills, fills);
        if fills {
            self.pieces.filled(burst, path.payload, trip);
        }
        let held = self.held(tail, is_flight, path);
        let had_room = self.had_room(tail, is_flight, path);
        if had_room {
            self.bursts.slow_start.was_held();
        }
        if is_flight && self.loss_flight == 0 && burst.saturating_add(path.segment) < self.bursts.last() {
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
            if !filled {
                self.spans.prove_last();
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
            cause: Cause::SendBuffer,
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

    /// All was acknowledged, and the sender knew: it had nothing to send.
    pub(super) fn idle(&mut self, from: u64, to: u64, path: &Path) {
        let to = self.sent_by(to);
        if from < to {
            self.known_span(from, to, (Cause::Application, Sure::Yes), path);
        }
    }

    /// Whether the ACK of a segment of the flight that ends in `tail` let the next one begin at `next`: the congestion window or the buffer
    /// was full, although the last segment was not. (An application does not hear of ACKs.)
    fn clocked(&self, tail: &BlockTail, next: u64, path: &Path) -> bool {
        self.bursts.is_flight(tail, next, path) && self.of_burst(tail).any(|ack| ack.lets_go(next, path))
    }

    /// Samples of segments of the burst that ends in `tail`, the newest first.
    fn of_burst(&self, tail: &BlockTail) -> impl DoubleEndedIterator<Item = &Sample> {
        let burst = self.bursts.since..=tail.last;
        let newest = self.samples.iter().rev().take(CONTEXT);
        newest.filter(move |sample| burst.contains(&sample.sent()))
    }

    /// One round trip over the whole path as it is now, ns.
    fn trip_now(&self, path: &Path) -> u64 {
        let timed = self.samples.last().map_or(0, |s| s.rtt.saturating_add(path.other));
        timed.max(path.round_trip())
    }

    /// Whether no ACK let `b` go behind full segments: none has come since the last of them was sent, longer ago than a round trip, and of it
    /// alone none is due (RFC 1122 4.2.3.2). What paces itself goes sooner, a full buffer has room for nothing then, and no timer is as short.
    fn went_unasked(&self, tail: &BlockTail, b: &Block, path: &Path) -> bool {
        let in_flight = b.flight.wrapping_sub(b.bytes);
        let acked = b.seq.wrapping_sub(in_flight);
        let is_lossy = tail.last < self.recovering || self.signs.is_some_and(|(_, last)| last >= tail.last);
        let gap = b.first.saturating_sub(tail.last);
        let is_one = tail.end == b.seq && (1..=path.payload).contains(&in_flight) && tail.acked == Some(acked);
        let is_between = || (self.trip_now(path).saturating_add(path.jitter())..PROBE).contains(&gap);
        tail.whole && is_one && path.other > 0 && !is_lossy && is_between()
    }

    /// Whether the buffer took no more than what was written in the burst that ends in `tail`: several pieces, the last of them less than
    /// whole segments, and `b` was written when the first of them had been acknowledged, but not yet the last. (An application does not hear
    /// of ACKs.)
    fn had_no_space(&self, tail: &BlockTail, b: &Block, path: &Path) -> bool {
        let Some(first) = self.of_burst(tail).next_back() else {
            return false;
        };
        let heard = first.time.saturating_add(path.other);
        let jitter = path.jitter();
        // What had not even passed the tap its sender had not heard; what may have is known by time alone.
        let acked = b.seq.wrapping_add(b.bytes).wrapping_sub(b.flight);
        let last = tail.last.saturating_add(first.rtt).saturating_add(path.other);
        let is_open = before(acked, tail.end) || path.other >= SLACK && b.first <= last;
        // A full congestion window sends as soon as an ACK comes.
        let fills = self.bursts.slow_start.fills(self.bursts.bytes, path.payload);
        let earliest = if fills {
            heard.saturating_add(jitter + 1)
        } else {
            heard.saturating_sub(jitter)
        };
        let is_spread = self.bursts.writes > 1 && tail.last.saturating_sub(self.bursts.since) >= SLACK;
        !tail.whole && is_spread && self.bursts.is_flight(tail, b.first, path) && b.first >= earliest && is_open
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
        let trip = path.round_trip();
        let late = path
            .base
            .unwrap_or(0)
            .saturating_add((trip / 8).clamp(LEAST_LATER, MOST_LATER));
        let fastest = self.of_burst(tail).map(|s| s.rtt).min();
        if self.loss_flight > 0 || !is_flight {
            self.bursts.slow_start.skip();
            return false;
        }
        let held = self.bursts.slow_start.flight(self.bursts.bytes);
        held && fastest.is_none_or(|rtt| rtt < late)
    }

    /// Whether the congestion window had room for more behind `tail`, as the pieces before it tell.
    pub(super) fn had_room(&self, tail: &BlockTail, is_flight: bool, path: &Path) -> bool {
        let flight = if is_flight {
            let behind_tap = tail.acked.map_or(0, |acked| tail.end.wrapping_sub(acked));
            Some(self.bursts.bytes.max(behind_tap))
        } else {
            self.edges.in_flight(tail.last, tail.end, path)
        };
        tail.last >= self.recovering
            && flight.is_some_and(|flight| self.pieces.held(flight, path.payload, path.round_trip()))
    }

    /// Whether the burst in hand shows that slow start has not ended before it.
    pub(super) fn grown(&mut self, path: &Path) {
        if self.loss_flight == 0 && self.bursts.slow_start.grows(self.bursts.bytes, path.segment) {
            self.prove();
        }
    }

    /// Pauses that were the send buffer's if slow start went on were.
    fn prove(&mut self) {
        self.bursts.proven |= self.spans.prove();
    }

    /// When the sender had heard that all had arrived, if it still waited then. None, too, where it is not known how far away it is.
    pub(super) fn all_acknowledged(&self, from: u64, next: u64, path: &Path) -> Option<u64> {
        if path.other == 0 {
            return None;
        }
        let next = self.sent_by(next);
        let slack = path.slack();
        let last = self.samples.iter().rev().take(4).find(|s| s.time >= from)?;
        let heard = self.edges.heard_by(last.time, path);
        (last.flight == 0 && heard.saturating_add(slack) < next).then_some(heard)
    }

    /// What came at `next` may have been sent at any time since a slow link before the tap had been busy.
    fn sent_by(&self, next: u64) -> u64 {
        self.busy_since.map_or(next, |since| next.min(since))
    }

    /// The ACK that let the sender go on at `next`, if one did.
    fn trigger(&self, after: u64, next: u64, path: &Path) -> Option<Sample> {
        let slack = path.slack();
        // Sooner than the way to the sender and back takes, no ACK made it send.
        let least = if path.exact {
            path.other.saturating_sub(path.jitter())
        } else {
            0
        };
        let near = |s: &&Sample| {
            s.time >= after && s.time <= next && (least..=path.other.saturating_add(slack)).contains(&(next - s.time))
        };
        self.samples.iter().rev().take(4).find(near).copied()
    }

    /// `b` may have waited for an ACK of what ends in `tail`: one that was delayed, of which no record tells when it passed, or which came late to
    /// the sender; or for the timer of one that was lost.
    fn may_have_waited(&self, tail: &BlockTail, b: &Block, path: &Path) -> bool {
        let acked = b.seq.wrapping_add(b.bytes).wrapping_sub(b.flight);
        let gap = b.first.saturating_sub(tail.last);
        let trip = path.round_trip();
        let told = self.samples.last().filter(|ack| at_or_before(tail.end, ack.ack));
        let is_heard = told.is_some_and(|ack| {
            let heard = ack.time.saturating_add(path.other).saturating_add(path.late());
            !is_delayed(ack.rtt, ack.flight, path) || b.first > heard
        });
        let waited =
            acked == tail.end && (DELAYED_ACK..trip.saturating_add(DELAYED_ACK_MOST)).contains(&gap) && !is_heard;
        // A probe comes no later than the timer of a retransmission would (RFC 8985 7.2): one round trip and as
        // long, or four times what round trips differ by (RFC 6298 2.3).
        let timed = self
            .samples
            .iter()
            .rev()
            .take(CONTEXT)
            .map(|ack| ack.rtt.saturating_add(path.other));
        let longest = timed.max().unwrap_or(0).max(trip);
        let least = PROBE.saturating_add(trip);
        let most = PROBE
            .max(longest)
            .saturating_add(2 * longest)
            .saturating_add(path.late());
        waited || !tail.whole && (least.saturating_sub(path.jitter())..=most).contains(&gap)
    }

    /// A block whose last segment waited for an ACK (RFC 896), which its receiver delayed.
    pub(super) fn small_tail(&mut self, b: &Block, path: &Path) {
        if b.last.saturating_sub(b.first) < DELAYED_ACK {
            return;
        }
        if let Some(ack) = self.trigger(b.first, b.last, path) {
            if is_delayed(ack.rtt, ack.flight, path) {
                // Nagle's algorithm holds no full segment back: with those, the congestion window had no room for it.
                let let_go = b.seq.wrapping_add(b.bytes).wrapping_sub(ack.ack);
                let cause = match (let_go > path.payload, self.loss_flight) {
                    (true, 0) => Cause::SlowStart,
                    (true, _) => Cause::CongestionWindow,
                    (false, _) => self.held_back(ack, path),
                };
                self.span(ack.sent(), b.last, cause, path);
            }
        } else if let Some(before) = self.before_untold(b, path) {
            let cause = self.held_back(before, path);
            self.span(before.time, b.last, cause, path);
        }
    }

    /// The last ACK before one of which no record tells, for which the last segment of `b` waited: less than two full segments were in
    /// flight behind it, which their receiver did not acknowledge at once, and all of `b` but that segment. (Their sender had more: the block
    /// went on without PSH.)
    fn before_untold(&self, b: &Block, path: &Path) -> Option<Sample> {
        let before = *self.samples.last()?;
        let rest = b.seq.wrapping_add(b.bytes).wrapping_sub(b.flight);
        let is_all = before.ack.wrapping_add(before.flight) == rest && b.flight < path.payload;
        let is_odd = (1..2 * path.payload).contains(&before.flight);
        let late = b.last.saturating_sub(before.time.saturating_add(path.round_trip()));
        let is_within = (b.first..=b.last).contains(&before.time);
        (is_all && is_odd && is_within && (DELAYED_ACK..DELAYED_ACK_MOST).contains(&late)).then_some(before)
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
}

#[cfg(test)]
mod tests {
    use weir_record::{BlockEnd, Rtt};

    use super::*;
    use crate::limits::tests::{MS, TAP_AT_RECEIVER, TAP_BETWEEN, block, rtt};

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

    /// A sender with Nagle's algorithm writes less than a segment in each round trip: so much goes when the last such piece is acknowledged. Its
    /// congestion window may have been one segment after a loss.
    #[test]
    fn less_than_a_segment_waits_for_the_ack_of_the_last_such_piece() {
        let waits_for = |(heard, exact): (u64, bool), bytes: u32, acked: u32, lost: bool| {
            let path = Path { exact, ..TAP_BETWEEN };
            let mut t = Transfer::default();
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
                t.sample(first + heard * MS, &rtt(heard * MS, b.seq + acked, 0), None, &path);
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
        let waits = |bytes: u32, acked: u32, lost: bool| waits_for((60, true), bytes, acked, lost);
        assert_eq!(waits(400, 400, false), [Cause::Nagle]);
        // A delayed ACK passed the tap too late to have let the next go, if the way to its sender is as long as it seems.
        assert_ne!(waits_for((90, true), 400, 400, false), [Cause::Nagle]);
        assert_eq!(waits_for((90, false), 400, 400, false), [Cause::Nagle]);
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

    /// An ACK that opens a window of 40,500 bytes passes the tap 2 ms before the second block, and comes to the sender 10 ms late.
    #[test]
    fn what_a_window_has_cut_waits_for_it() {
        let path = Path {
            base: Some(2 * MS),
            other: 2 * MS,
            ..TAP_BETWEEN
        };
        let pause = |pieces: &[u32], acked: u32, next: u64| {
            let mut t = Transfer::default();
            let window = Some(40_500);
            let send = |t: &mut Transfer, time: u64, (seq, bytes): (u32, u32), acked: u32| {
                let b = Block {
                    packets: bytes.div_ceil(1000) as u16,
                    flight: seq + bytes - acked,
                    ..block(time, time, seq, bytes)
                };
                let so_far = SoFar {
                    first: 0,
                    last: t.tail.map_or(0, |tail| tail.last),
                    bytes: seq.into(),
                };
                t.block(BlockEnd::Push as u8, &b, (seq > 0).then_some(so_far), window, &path);
            };
            let [first @ .., last] = pieces else { return None };
            let mut sent = 0;
            for bytes in first {
                send(&mut t, MS, (sent, *bytes), 0);
                sent += bytes;
            }
            t.saw(5 * MS, acked, window);
            send(&mut t, 7 * MS, (sent, *last), acked);
            send(&mut t, next * MS, (sent + last, 1000), acked);
            let last = t.spans.iter().find(|span| span.to > 7 * MS);
            last.map(|span| (span.cause, span.to / MS))
        };
        let [window, application] = [Cause::ReceiverWindow, Cause::Application].map(|cause| Some((cause, 17)));
        assert_eq!(pause(&[30_000, 10_500], 20_000, 17), window);
        // It was not cut; no ACK is so late; what was written was such pieces.
        assert_eq!(pause(&[30_000, 10_400], 20_000, 17), application);
        assert_eq!(pause(&[30_000, 10_500], 20_000, 117), Some((Cause::Application, 117)));
        assert_eq!(pause(&[25_400, 15_100], 20_000, 17), application);
        // By the edge of an ACK that no record told of, between one of nothing and one of 20,000.
        assert_eq!(pause(&[30_000, 20_500], 20_000, 17), window);
        assert_eq!(pause(&[30_000, 20_400], 20_000, 17), application);
        // What it has cut before was no piece that was written.
        assert_eq!(pause(&[30_000, 10_500, 10_300], 20_300, 17), window);
        assert_eq!(pause(&[30_000, 10_400, 10_400], 20_300, 17), application);
    }

    /// The card cuts what was captured as one packet into five segments, the last of which is half full, or into four full ones.
    #[test]
    fn what_ends_with_less_than_a_segment_of_a_card_was_all() {
        let pause = |bytes: u32| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let packet = |time: u64, seq: u32| Block {
                packets: 1,
                max_segment: bytes as u16,
                ..block(time, time, seq, bytes)
            };
            t.block(BlockEnd::Push as u8, &packet(0, 0), None, None, &path);
            let so_far = SoFar {
                first: 0,
                last: 0,
                bytes: bytes.into(),
            };
            t.block(
                BlockEnd::Push as u8,
                &packet(250 * MS, bytes),
                Some(so_far),
                None,
                &path,
            );
            t.spans.iter().map(|span| span.cause).collect::<Vec<_>>()
        };
        assert_eq!(pause(4500), [Cause::Application]);
        assert_eq!(pause(4000), [Cause::SendBuffer]);
    }

    /// Full segments 640 ms behind others, of which the ACK before told a round trip of so many ms behind the tap, and 40 beyond.
    #[test]
    fn an_ack_may_be_late_by_a_queue() {
        let pause = |round_trip: u64| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let (before, after) = (
                block(500 * MS, 501 * MS, 4000, 4000),
                block(1141 * MS, 1142 * MS, 8000, 4000),
            );
            t.block(BlockEnd::Push as u8, &before, None, None, &path);
            t.sample(501 * MS, &rtt(round_trip * MS, 4000, 4000), None, &path);
            let so_far = SoFar {
                first: 0,
                last: before.last,
                bytes: 8000,
            };
            t.block(BlockEnd::Push as u8, &after, Some(so_far), None, &path);
            t.spans.iter().map(|span| span.cause).collect::<Vec<_>>()
        };
        assert_eq!(pause(60), [Cause::Application]);
        assert_eq!(pause(300), [Cause::SendBuffer]);
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

    /// Behind so many segments, of which that many have been acknowledged since, one more goes after `gap`.
    #[test]
    fn a_full_buffer_lets_nothing_go_before_an_ack() {
        let pause = |segments: u32, acked: u32, gap: u64| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let first = Block {
                packets: segments as u16,
                flight: 1_000 * segments,
                ..block(0, 0, 0, 1_000 * segments)
            };
            t.block(BlockEnd::Push as u8, &first, None, None, &path);
            let so_far = SoFar {
                first: 0,
                last: 0,
                bytes: first.bytes.into(),
            };
            let next = Block {
                packets: 1,
                flight: first.bytes + 1_000 - 1_000 * acked,
                ..block(gap, gap, first.bytes, 1_000)
            };
            t.block(BlockEnd::Push as u8, &next, Some(so_far), None, &path);
            t.spans
                .iter()
                .map(|span| span.cause)
                .max_by_key(|cause| *cause == Cause::SendBuffer)
        };
        let trip = TAP_BETWEEN.round_trip();
        assert_eq!(pause(1, 0, trip + 3 * MS), Some(Cause::Application));
        // An ACK came; sooner it may have paced itself, and later a timer may have run out; of two segments an ACK was due.
        assert_eq!(pause(1, 1, trip + 3 * MS), Some(Cause::SendBuffer));
        assert_eq!(pause(1, 0, trip), Some(Cause::SendBuffer));
        assert_eq!(pause(1, 0, 2 * trip), Some(Cause::SendBuffer));
        assert_eq!(pause(2, 0, trip + 3 * MS), Some(Cause::SendBuffer));
    }

    /// Two pieces 4 ms apart, whose first ACK the sender hears after 100 ms, and the next at `next`, when all up to `acked` had passed the tap.
    #[test]
    fn what_is_written_when_an_ack_made_room_had_waited_for_it() {
        let pause = |pieces: [u32; 2], next: u64, acked: u32| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let (mut so_far, mut seq) = (None, 0);
            for (time, bytes) in [(0, pieces[0]), (4 * MS, pieces[1]), (next, 4_500)] {
                if time == next {
                    t.sample(60 * MS, &rtt(60 * MS, 1_000, 0), None, &path);
                }
                let b = Block {
                    flight: seq + bytes - if time == next { acked } else { 0 },
                    packets: 5,
                    ..block(time, time, seq, bytes)
                };
                t.block(BlockEnd::Push as u8, &b, so_far, None, &path);
                seq += bytes;
                so_far = Some(SoFar {
                    first: 0,
                    last: time,
                    bytes: seq.into(),
                });
            }
            t.spans.iter().next_back().map(|s| (s.cause, s.sure))
        };
        let buffer = Some((Cause::SendBuffer, Sure::Yes));
        assert_eq!(pause([4_500, 4_500], 103 * MS, 9_000), buffer);
        // At once, the congestion window could have been full as well.
        assert_ne!(pause([4_500, 4_500], 100 * MS, 9_000), buffer);
        // One of them was all that was written, or all had arrived, as far as is known.
        let application = Some((Cause::Application, Sure::ByTrips));
        assert_eq!(pause([5_000, 4_500], 103 * MS, 9_000), application);
        assert_eq!(pause([4_500, 4_500], 110 * MS, 9_000), application);
        assert_eq!(pause([4_500, 4_500], 110 * MS, 8_000), buffer);
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
                tcp_flags: 0,
            };
            t.sample(60 * MS, &first, Some(40_000), &path);
            let before = SoFar {
                bytes: u64::from(900 + second),
                ..so_far
            };
            let b = block(next, next, 900 + second, 1000);
            t.block(BlockEnd::Push as u8, &b, Some(before), Some(40_000), &path);
            t.spans.iter().next_back().map(|s| s.cause)
        };
        assert_eq!(pause(100 * MS + MS, 900), Some(Cause::SendBuffer));
        assert_eq!(pause(104 * MS, 900), Some(Cause::Application));
        assert_eq!(pause(90 * MS, 900), Some(Cause::Application));
        assert_eq!(pause(100 * MS + MS, 20_600), Some(Cause::SendBuffer));
        assert_eq!(pause(100 * MS + MS, 32_600), Some(Cause::ReceiverWindow));
    }

    /// A piece of so many segments each 40 ms, `apart`, while a round trip over the path takes `now`: how many pauses of a send buffer there
    /// are once the path is full. `busy`: a slow link before the tap has been, since then.
    fn pieces(segments: u16, apart: u64, now: u64, busy: Option<u64>) -> usize {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        let (mut so_far, bytes) = (None, 1_000 * u32::from(segments));
        for piece in 0..20u32 {
            let time = u64::from(piece) * 40 * MS;
            let acked = bytes
                * (u64::from(piece) * 40 * MS)
                    .saturating_sub(now - path.other)
                    .div_ceil(40 * MS) as u32;
            t.sample(time, &rtt(now - path.other, acked, 2 * bytes), Some(400_000), &path);
            let b = Block {
                flight: bytes * (piece + 1) - acked,
                packets: segments,
                ..block(time, time + apart, bytes * piece, bytes)
            };
            t.waited_since(&b, busy, so_far);
            t.block(BlockEnd::Push as u8, &b, so_far, Some(400_000), &path);
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

    /// While a queue stands, most is in flight beside the piece; and between what a slow link spaced, others' segments went.
    #[test]
    fn a_paced_sender_does_not_wait_for_its_buffer() {
        for segments in [2, 10] {
            assert!(pieces(segments, 10_000, 100 * MS, None) > 0);
            assert_eq!(pieces(segments, 10_000, 400 * MS, None), 0);
        }
        assert_eq!(pieces(2, 10 * MS, 100 * MS, None), 0);
    }

    #[test]
    fn who_shares_a_busy_link_waits_for_that() {
        assert!(pieces(10, 10_000, 100 * MS, Some(800 * MS)) > 0);
        assert_eq!(pieces(10, 10_000, 100 * MS, Some(0)), 0);
    }
}
