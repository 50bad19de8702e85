//! Losses, as far as gaps and repeats tell of them: how long a recovery took, and whether anything new was there to send
//! with it.

use weir_record::Block;

use super::Transfer;
use super::bursts::BlockTail;
use super::charges::Cause;
use super::edges::Edge;
use super::path::{Path, ROOM};

/// In a recovery the congestion window is half of what was in flight or more (RFC 5681 3.2). It has room for new segments if this many
/// were in flight, of which no more than a quarter was sent again.
const MANY_IN_FLIGHT: u32 = 8;
const FEW_AGAIN: u32 = 4;

/// What was sent again since the last block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeats {
    /// The first time.
    first: u64,
    count: u32,
    /// Bytes in flight then.
    flight: u32,
}

/// ACKs beyond that from which on it is sure that there was nothing to let go.
const SURELY: u32 = 6;

impl Transfer {
    /// The receiver told of something behind a gap: one segment less is in flight.
    pub fn told(&mut self, time: u64, path: &Path) {
        self.told = self.told.saturating_add(1);
        if !self.has_to_answer(path) {
            self.silent = None;
        } else if self.silent.is_none() {
            self.silent = Some(time);
        }
        self.gap(time, path);
    }

    /// Whether more left the network since the last block than any congestion control leaves unanswered: in a recovery each
    /// second ACK lets a segment go (RFC 6937, and BBR one for each), where nothing new has gone yet after half of what was in
    /// flight (RFC 6582).
    fn has_to_answer(&self, path: &Path) -> bool {
        let again = self.repeats.map_or(0, |repeats| repeats.count);
        let flight = self.repeats.map_or(self.flight_since, |repeats| repeats.flight);
        let halved = if self.goes_on || self.answers {
            0
        } else {
            flight / path.payload.max(1) / 2 + 3
        };
        self.told >= (2 * again).saturating_add(halved).saturating_add(SURELY)
    }

    /// Whether the sender had nothing to answer with between the block that ended in `tail` and the one that began at `next`.
    pub(super) fn had_nothing_to_answer(&self, tail: BlockTail, next: u64, path: &Path) -> bool {
        let room = |edge: &Edge| i64::from(edge.left(tail.end)) >= i64::from(ROOM * path.segment);
        let heard = |silent: u64| silent.saturating_add(path.other) < next;
        tail.whole && !tail.at_edge && self.edges.last().is_none_or(room) && self.silent.is_some_and(heard)
    }

    /// A block of new data: whether the sender answers ACKs of a recovery from the first on.
    pub(super) fn answered(&mut self, b: &Block, path: &Path) {
        if let Some(again) = self.repeats {
            self.answers |= self.told < again.flight / path.payload.max(1) / 4;
        }
        self.goes_on |= self.repeats.is_some() || b.first < self.recovering;
        self.told = 0;
        self.silent = None;
        self.repeats = None;
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
        if time >= self.recovering {
            self.goes_on = false;
        }
        // The repeat is on its way until its ACK has come back.
        let to = time.saturating_add(path.round_trip());
        self.recovering = self.recovering.max(to);
        self.acks_since_loss = 0;
        self.pieces.forget();
        self.span(from, to, Cause::Recovery, path);
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
        let room = |edge: &Edge| i64::from(edge.left(tail.end)) >= i64::from(ROOM * path.segment);
        let is_window_open = !tail.at_edge && self.edges.last().is_none_or(room);
        self.repeats.is_some_and(|again| {
            tail.whole
                && is_window_open
                && again.flight >= (FEW_AGAIN * again.count).max(MANY_IN_FLIGHT) * path.segment
                && (trip / 4..=trip + trip / 2).contains(&again.first.saturating_sub(tail.last))
                && next.first.saturating_sub(again.first) >= trip - trip / 4
                && next.bytes > path.segment
        })
    }
}

#[cfg(test)]
mod tests {
    use weir_record::BlockEnd;

    use super::*;
    use crate::limits::SoFar;
    use crate::limits::tests::{MS, TAP_BETWEEN, block};

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

    /// Of 20 segments one was lost; its repeat went, then nothing while so many ACKs told of what had arrived behind it. `answers`: so many
    /// had been enough for something new before.
    #[test]
    fn acks_of_a_recovery_that_nothing_answers_show_that_nothing_is_left() {
        let (end, trip) = (91 * MS, 100 * MS);
        let next = end + trip;
        let charged = |told: u32, heard: u64, window: u32, answers: bool| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.answers = answers;
            t.saw(0, 0, Some(window));
            let first = block(90 * MS, end, 0, 20_000);
            t.block(BlockEnd::Push as u8, &first, None, None, &path);
            t.again(end + 10 * MS, 20_000, 20_000, &path);
            t.loss(Some(10 * MS), end + 10 * MS, &path);
            for _ in 0..told {
                t.told(heard, &path);
            }
            let before = SoFar {
                first: 90 * MS,
                last: end + 10 * MS,
                bytes: 20_000,
            };
            t.block(
                BlockEnd::Push as u8,
                &block(next, next, 20_000, 9000),
                Some(before),
                None,
                &path,
            );
            t.settle(90 * MS, next, next, &path).by.of(Cause::SendBuffer)
        };
        let heard = end + 20 * MS;
        // Half of what was in flight and three, two for the repeat, and six.
        assert_eq!(charged(21, heard, 60_000, false), next - end);
        assert_eq!(charged(20, heard, 60_000, false), 0);
        assert_eq!(charged(8, heard, 60_000, true), next - end);
        assert_eq!(charged(7, heard, 60_000, true), 0);
        // They let the next block go; the receiver's window was full.
        assert_eq!(charged(21, next - MS, 60_000, false), 0);
        assert_eq!(charged(21, heard, 22_000, false), 0);
    }

    #[test]
    fn who_goes_on_before_half_has_left_answers_each_second_ack() {
        for (told, answers) in [(4, true), (5, false)] {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.block(BlockEnd::Push as u8, &block(0, MS, 0, 20_000), None, None, &path);
            t.again(10 * MS, 20_000, 20_000, &path);
            (0..told).for_each(|_| t.told(20 * MS, &path));
            t.answered(&block(21 * MS, 21 * MS, 20_000, 2_000), &path);
            assert_eq!((t.answers, t.goes_on, t.told), (answers, true, 0));
        }
    }
}
