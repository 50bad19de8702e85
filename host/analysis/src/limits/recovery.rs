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

impl Transfer {
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
}
