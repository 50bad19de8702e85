//! Losses, as far as gaps and repeats tell of them: how long a recovery took, and whether anything new was there to send
//! with it.

use weir_record::Block;

use super::Transfer;
use super::bursts::BlockTail;
use super::charges::Cause;
use super::distant::Echo;
use super::edges::Edge;
use super::path::{Path, ROOM};
use super::sample::Sample;
use crate::losses::TIMEOUT_FLOOR;

/// In a recovery the congestion window is half of what was in flight or more (RFC 5681 3.2). It has room for new segments if this many
/// were in flight, of which no more than a quarter was sent again.
const MANY_IN_FLIGHT: u32 = 8;
const FEW_AGAIN: u32 = 4;

/// Round trips of silence that no queue makes of a path without one.
const SILENT_TRIPS: u64 = 4;

/// What was sent again since the last block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeats {
    /// The first time.
    first: u64,
    count: u32,
    /// Bytes in flight then.
    flight: u32,
}

impl Repeats {
    /// Segments in flight at the first.
    fn segments(&self, path: &Path) -> u32 {
        self.flight / path.payload.max(1)
    }
}

/// ACKs that tell of something behind a gap and would have let something new go, beyond those that must not: so many are no chance.
const SURELY: u32 = 6;
/// Who goes on before this part of what was in flight has left, does not wait for half of it.
const EARLY: u32 = 4;

/// What a sender answers in a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    /// ACKs since the last block that told of something behind a gap, and when they were enough for something new.
    told: u32,
    enough: Option<u64>,
    /// Something new was sent in this recovery.
    goes_on: bool,
    /// This sender begins with that before half of what was in flight has left.
    early: bool,
}

impl Answers {
    /// Whether more such ACKs have come than any congestion control leaves unanswered: each second one lets a segment go, new or again
    /// (RFC 6937; BBR lets one go for each), where nothing new has gone yet and it is not known otherwise after half of what was
    /// in flight (RFC 6582).
    fn are_enough(&self, repeats: Option<Repeats>, path: &Path) -> bool {
        let halved = if self.goes_on || self.early {
            Some(0)
        } else {
            // The third duplicate ACK begins it (RFC 5681 3.2).
            repeats.map(|repeats| repeats.segments(path) / 2 + 3)
        };
        let again = repeats.map_or(0, |repeats| repeats.count.saturating_mul(2));
        halved.is_some_and(|halved| self.told >= again.saturating_add(halved).saturating_add(SURELY))
    }
}

impl Transfer {
    /// The receiver told of something behind a gap. (Without SACK the engine tells of the third duplicate ACK alone.)
    pub fn heard_of_gap(&mut self, time: u64, path: &Path) {
        self.answers.told = self.answers.told.saturating_add(1);
        let are_enough = self.answers.are_enough(self.repeats, path);
        self.answers.enough = self.answers.enough.or(Some(time)).filter(|_| are_enough);
        self.gap(time, path);
    }

    /// Whether the sender had nothing to answer with between the block that ended in `tail` and the next one, which began later than an answer
    /// would have.
    pub(super) fn had_no_answer(&self, tail: BlockTail, next: &Block, path: &Path) -> bool {
        let answer = |enough: u64| enough.saturating_add(path.other).saturating_add(path.slack());
        let is_recovery = self.repeats.is_some() || next.first < self.recovering;
        is_recovery
            && path.other > 0
            && tail.whole
            && !tail.at_edge
            && self.window_has_room(tail, path) == Some(true)
            && next.bytes > path.segment
            && self.answers.are_enough(self.repeats, path)
            && self.answers.enough.is_some_and(|enough| answer(enough) < next.first)
    }

    /// A block of new data.
    pub(super) fn sent_new(&mut self, b: &Block, path: &Path) {
        let trip = path.round_trip();
        if let Some(again) = self.repeats {
            // What a repeat after a timeout lets go comes a round trip later.
            let is_answer = b.first.saturating_sub(again.first) < trip - trip / 4;
            let Answers { told, goes_on, .. } = self.answers;
            self.answers.early |= is_answer && !goes_on && told > 0 && told < again.segments(path) / EARLY;
        }
        let is_behind = self.again.is_some_and(|again| b.first > again);
        self.answers = Answers {
            told: 0,
            enough: None,
            goes_on: self.answers.goes_on || is_behind && b.first < self.recovering,
            ..self.answers
        };
        self.repeats = None;
    }

    /// Whether the receiver's newest window has more room behind the end of a block than any sender leaves. None: it is not known.
    fn window_has_room(&self, tail: BlockTail, path: &Path) -> Option<bool> {
        let room = |edge: &Edge| i64::from(edge.left(tail.end)) >= i64::from(ROOM * path.segment);
        self.edges.last().map(room)
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
        self.note_flight(path);
        if let Some(tail) = self.tail.filter(|tail| tail.pushed && tail.whole && !tail.at_edge)
            && self.had_room(&tail, self.bursts.is_flight(&tail, time, path), path)
        {
            self.had_room = true;
        }
        if time >= self.recovering {
            self.answers.goes_on = false;
        }
        // The repeat is on its way until its ACK has come back.
        let to = time.saturating_add(path.round_trip());
        self.recovering = self.recovering.max(to);
        self.acks_since_loss = 0;
        self.pieces.forget();
        self.span(from, to, Cause::Recovery, path);
    }

    /// The ACK of the last sample tells of a mark, for which the sender makes its congestion window smaller as for a loss (RFC 3168 6.1.2).
    pub fn marked(&mut self, path: &Path) {
        self.marked_acks = self.marked_acks.saturating_add(1);
        self.note_flight(path);
        self.acks_since_loss = 0;
        self.pieces.forget();
    }

    /// As much as is in flight now was too much.
    fn note_flight(&mut self, path: &Path) {
        self.grown(path);
        // Of the first flight there is no sample.
        let in_flight = self.samples.last().map_or(path.segment, |last| last.flight_max);
        self.loss_flight = self.loss_flight.max(in_flight).max(self.flight_since).max(self.peak);
    }

    /// What had arrived, as the tap knows, was sent again at `time`: of no ACK behind `una` had its sender heard. If by that ACK the window ends
    /// at `end`, of what has been sent, it has stood there since it sent anything before.
    pub fn again_unheard(&mut self, time: u64, una: u32, end: u32, path: &Path) {
        let sent = self.tail.map(|tail| tail.last).max(self.again);
        if let Some(since) = sent.filter(|_| self.edges.is_reached_from(una, end, path)) {
            self.span(since, time, Cause::ReceiverWindow, path);
        }
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
            .last()
            .map_or(stood.is_some(), |edge| edge.is_reached(end, path));
        if let Some(since) = stood.or(sent.filter(|_| is_full)) {
            self.window_pause(since, time, end, path);
        }
        self.stands = is_full.then_some((time, end));
    }

    /// Whether the recovery between the block that ended in `tail` and the next one shows that nothing was left to send: for a round trip
    /// after the first repeat nothing new went, although both windows had room. (What ended just before the repeat may be what
    /// the congestion window let go with it. And less than a segment is the end of the transfer.)
    pub(super) fn had_nothing_new(&self, tail: BlockTail, next: &Block, path: &Path) -> bool {
        let trip = path.round_trip();
        let has_room = !tail.at_edge && self.window_has_room(tail, path).unwrap_or(true);
        self.repeats.is_some_and(|again| {
            tail.whole
                && has_room
                && again.flight
                    >= FEW_AGAIN
                        .saturating_mul(again.count)
                        .max(MANY_IN_FLIGHT)
                        .saturating_mul(path.segment)
                && (trip / 4..=trip + trip / 2).contains(&again.first.saturating_sub(tail.last))
                && next.first.saturating_sub(again.first) >= trip - trip / 4
                && next.bytes > path.segment
        })
    }
}

/// Times up to `to` in which everything was acknowledged and nothing was sent for many round trips, and longer than a timer: from an ACK to the
/// very next segment, which is timed, or ends the transfer at `end`. Neither the link nor a window keeps it so long: the application may, or it
/// was lost before the tap and its repeat looks like the first copy. Unless data tells that it was on its way.
pub(super) fn silences(samples: &[Sample], echoes: &[Echo], to: u64, end: Option<u32>, path: &Path) -> Vec<(u64, u64)> {
    let trips = path.round_trip().saturating_mul(SILENT_TRIPS);
    let least = trips.saturating_add(TIMEOUT_FLOOR);
    let is_known = path.other > 0 && path.base.is_some();
    let silence = |(i, s): (usize, &Sample)| {
        let (next, behind) = match samples.get(i + 1) {
            Some(next) => (next.sent(), next.end),
            None => (to, end?),
        };
        let is_next = (1..=path.payload).contains(&behind.wrapping_sub(s.ack));
        let is_silent = s.flight == 0
            && is_next
            && next.saturating_sub(s.time) >= least
            && !echoes.iter().any(|echo| echo.covers(s.time, next));
        is_silent.then_some((s.time, next))
    };
    let silences = samples.iter().enumerate().filter(|_| is_known);
    silences.filter_map(silence).collect()
}

#[cfg(test)]
mod tests {
    use weir_record::BlockEnd;

    use super::*;
    use crate::limits::SoFar;
    use crate::limits::tests::{MS, TAP_BETWEEN, block, rtt};

    #[test]
    fn a_loss_in_the_first_flight_counts() {
        let mut t = Transfer::default();
        t.flight(10_000);
        t.loss(Some(MS), 100 * MS, &TAP_BETWEEN);
        assert_eq!(t.loss_flight, 10_000);
    }

    /// All of 3,000 bytes was acknowledged at 180 ms; the rest came so many ms after the start. Full segments of 1,000 bytes, a round trip of 100 ms.
    #[test]
    fn a_silence_of_many_round_trips_is_nobodys_limit() {
        let unknown = |last: u64, acked: u32, bytes: u32| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.sample(180 * MS, &rtt(60 * MS, acked, 3000 - acked), None, &path);
            let b = block(100 * MS, last * MS, 0, bytes);
            t.block(BlockEnd::Push as u8, &b, None, None, &path);
            let charged = t.settle(100 * MS, last * MS, u64::MAX, &path);
            assert_eq!(charged.doubtful, charged.by.of(Cause::Unknown));
            assert!(charged.doubtful == 0 || charged.queueing < 100 * MS, "{charged:?}");
            charged.by.of(Cause::Unknown) / MS
        };
        assert_eq!(unknown(800, 3000, 3600), 620);
        // A queue may make as much; something was on its way; more than the very next segment was sent.
        assert_eq!(unknown(600, 3000, 3600), 0);
        assert_eq!(unknown(800, 2000, 3600), 0);
        assert_eq!(unknown(800, 3000, 4600), 0);
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

    /// A recovery of 20 segments in flight.
    #[derive(Clone, Copy)]
    struct Silent {
        /// ACKs that told of something behind the gap, and when.
        told: u32,
        heard: u64,
        /// Repeats behind the last of them, besides the first.
        again: u32,
        /// The sender is known to begin with something new before half has left.
        early: bool,
        window: Option<u32>,
        /// Bytes of the block that came a round trip later.
        next: u32,
    }

    impl Silent {
        /// How long it was the send buffer's, ms.
        fn charged(self) -> u64 {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let (end, next) = (91 * MS, 91 * MS + path.round_trip());
            t.answers.early = self.early;
            t.saw(0, 0, self.window);
            t.block(BlockEnd::Push as u8, &block(90 * MS, end, 0, 20_000), None, None, &path);
            t.again(end + 10 * MS, 20_000, 20_000, &path);
            t.loss(Some(10 * MS), end + 10 * MS, &path);
            (0..self.told).for_each(|_| t.heard_of_gap(end + self.heard, &path));
            (0..self.again).for_each(|_| t.again(end + 60 * MS, 20_000, 20_000, &path));
            let before = SoFar {
                first: 90 * MS,
                last: end + 10 * MS,
                bytes: 20_000,
            };
            let b = block(next, next, 20_000, self.next);
            t.block(BlockEnd::Push as u8, &b, Some(before), None, &path);
            t.settle(90 * MS, next, next, &path).by.of(Cause::SendBuffer) / MS
        }
    }

    #[test]
    fn acks_of_a_recovery_that_nothing_answers_show_that_nothing_is_left() {
        // Half of what was in flight and three, two for the repeat, and six.
        let late = Silent {
            told: 21,
            heard: 20 * MS,
            again: 0,
            early: false,
            window: Some(60_000),
            next: 9000,
        };
        let early = Silent {
            told: 8,
            early: true,
            ..late
        };
        let silent = TAP_BETWEEN.round_trip() / MS;
        assert_eq!(late.charged(), silent);
        assert_eq!(early.charged(), silent);
        assert_eq!(Silent { told: 20, ..late }.charged(), 0);
        assert_eq!(Silent { told: 7, ..early }.charged(), 0);
        let again = Silent { again: 1, ..early };
        assert_eq!(again.charged(), 0, "the next repeat took two");
        assert_eq!(Silent { told: 10, ..again }.charged(), silent);
        // An answer is on its way for 40 ms, and may be a quarter of a round trip late.
        let slow = Silent { heard: 36 * MS, ..late };
        assert_eq!(slow.charged(), 0);
        let full = Silent {
            window: Some(22_000),
            ..late
        };
        assert_eq!(full.charged(), 0);
        assert_eq!(Silent { window: None, ..late }.charged(), 0);
        let end = Silent { next: 500, ..late };
        assert_eq!(end.charged(), 0, "a rest that Nagle's algorithm may hold");
    }

    #[test]
    fn who_goes_on_before_half_has_left_does_not_wait_for_it() {
        // A quarter; none; a timeout; a second time.
        for (told, repeat, goes_on, early) in [
            (4, 10, false, true),
            (5, 10, false, false),
            (0, 10, false, false),
            (4, -60, false, false),
            (4, 10, true, false),
        ] {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let repeat = (200 * MS).wrapping_add_signed(repeat * MS as i64);
            t.block(
                BlockEnd::Push as u8,
                &block(90 * MS, 91 * MS, 0, 20_000),
                None,
                None,
                &path,
            );
            t.answers.goes_on = goes_on;
            t.again(repeat, 20_000, 20_000, &path);
            (0..told).for_each(|_| t.heard_of_gap(repeat, &path));
            t.sent_new(&block(221 * MS, 221 * MS, 20_000, 2_000), &path);
            assert_eq!((t.answers.early, t.answers.told), (early, 0), "{told} {repeat}");
        }
    }
}
