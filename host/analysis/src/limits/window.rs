//! The time in which the receiver's window kept the sender, and in which it surely had room.

use weir_record::Block;

use super::bursts::BlockTail;
use super::charges::Cause;
use super::path::{Path, SLACK};
use super::spans::{Span, closed_cause};
use super::{SoFar, Transfer};
use crate::seq::before;

impl Transfer {
    /// The receiver's window as the tap knew it at a time.
    pub fn saw(&mut self, time: u64, ack: u32, window: Option<u32>) {
        self.edges.saw(time, ack, window);
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

    /// Whether a segment that passed the tap at `time` and ends at `end` left no room in the window that its sender had
    /// heard of: the ACK before it by the round trip from the tap to the sender and back. None: not known.
    pub(super) fn at_edge(&self, time: u64, end: u32, path: &Path) -> Option<bool> {
        let heard = time.saturating_sub(path.other);
        let last = self.samples.iter().rev().find(|s| s.time <= heard)?;
        // An older one may not be the last that the sender had heard.
        if heard - last.time > (path.round_trip() / 10).max(SLACK) {
            return None;
        }
        let window = last.window?;
        let left = last.ack.wrapping_add(window).wrapping_sub(end) as i32;
        let room = path.three(window);
        if i64::from(left) >= i64::from(room) {
            return Some(false);
        }
        // Where the ACKs of a flight come at once, that sample and what the sender had heard may be a flight apart.
        let most = self.edges.heard(time, path).map_or(left, |edge| edge.left(end));
        (i64::from(most) < i64::from(2 * room)).then_some(true)
    }

    /// Whether the window's edge cut the last segment of a block that ends with less than a full one, behind half a window or more of full ones. What an
    /// application writes ends there by chance only; pieces of which a window is a multiple do more often, but are shorter.
    pub(super) fn is_cut(&self, b: &Block, end: u32, before: Option<SoFar>, window: Option<u32>, path: &Path) -> bool {
        let sent = before.map_or(0, |before| before.bytes).saturating_add(b.bytes.into());
        let whole = self.small_write.map_or(sent, |small| end.wrapping_sub(small).into());
        let is_at_edge = || self.edges.is_at_one(b.last, end, path) || self.edges.is_between_two(b.last, end, path);
        window.is_some_and(|window| whole >= u64::from(window / 2)) && is_at_edge()
    }

    /// Whether the receiver's window was small while the block was sent.
    pub(super) fn was_small(&self, b: &Block) -> bool {
        let small = |s: &Span| s.cause == Cause::SmallWindow && s.from < b.last && s.to > b.first;
        self.closed.is_some_and(|(since, zero)| !zero && since < b.last) || self.spans.iter().any(small)
    }

    /// The sender stood at the edge of the window.
    pub(super) fn stood(&mut self, from: u64, to: u64) {
        let from = self.samples.last().map_or(0, |s| s.time).max(from);
        self.tally.edge_ns = self.tally.edge_ns.saturating_add(to.saturating_sub(from));
    }

    /// The sender has sent nothing since the last block.
    pub(super) fn stood_since_block(&mut self, to: u64, path: &Path) {
        let Some(tail) = self.tail.filter(|tail| tail.at_edge) else {
            return;
        };
        let to = self
            .edges
            .opened(tail.last, tail.end, path)
            .map_or(to, |opened| opened.min(to));
        self.stood(tail.last, to);
        if tail.last < self.recovering {
            // The lost segment keeps the edge where it is; its repeat was no block.
            let from = self.samples.last().map_or(0, |s| s.time).max(tail.last);
            self.window_pause(from, to, tail.end, path);
        }
    }

    /// The sender has sent up to `end`. If that is the end of the last block, nothing since then, although the window had room.
    pub(super) fn had_room_since_block(&mut self, to: u64, end: u32, path: &Path) {
        let is_silent = |tail: &BlockTail| tail.came_at_once() && tail.end == end;
        let Some(tail) = self.tail.filter(is_silent) else {
            return;
        };
        if let Some(heard) = self.edges.has_room_since(tail.end, path) {
            let from = self.samples.last().map_or(0, |s| s.time).max(tail.last).max(heard);
            self.tally.room_ns = self.tally.room_ns.saturating_add(to.saturating_sub(from));
        }
    }

    /// New data went behind the edge at which something was sent again: the sender stood there until the repeat was acknowledged.
    pub(super) fn stood_since_repeat(&mut self, b: &Block, end: u32, path: &Path) {
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

    /// The receiver's window kept the sender at `end` from `from` until it heard that the window had opened or that all had arrived; then it
    /// had nothing to send. (A window that was small then has spans of its own.)
    pub(super) fn window_pause(&mut self, from: u64, next: u64, end: u32, path: &Path) {
        let acknowledged = self.all_acknowledged(from, next, path).unwrap_or(next);
        let to = self
            .edges
            .opened(from, end, path)
            .map_or(acknowledged, |opened| opened.min(acknowledged));
        if from < to {
            self.span(from, to, Cause::ReceiverWindow, path);
        }
        self.idle(acknowledged, next, path);
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{BlockEnd, Rtt};

    use super::*;
    use crate::limits::SoFar;
    use crate::limits::bursts::Bursts;
    use crate::limits::tests::{MS, TAP_AT_RECEIVER, TAP_BETWEEN, block, rtt};

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
                tcp_flags: 0,
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
            assert_eq!(t.tally.edge_ns, stood, "{bytes}");
        }
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

    /// The window of 10,000 was used up at 98 ms, and all of it was acknowledged at 160 ms; but its first segment is sent again at 400 ms: no ACK
    /// has come to its sender. Or the last, which tells of none.
    #[test]
    fn a_window_stays_full_for_who_has_heard_of_no_ack() {
        let waited = |una: u32, bytes: u32| {
            let mut t = Transfer::default();
            t.saw(60 * MS, 0, Some(10_000));
            let b = block(90 * MS, 98 * MS, 0, bytes);
            t.block(BlockEnd::Push as u8, &b, None, Some(10_000), &TAP_BETWEEN);
            t.saw(160 * MS, bytes, Some(10_000));
            t.again_unheard(400 * MS, una, bytes, &TAP_BETWEEN);
            t.loss(Some(302 * MS), 400 * MS, &TAP_BETWEEN);
            let by = t.settle(90 * MS, 400 * MS, 400 * MS, &TAP_BETWEEN).by;
            (by.of(Cause::ReceiverWindow) / MS, by.of(Cause::Recovery) / MS)
        };
        assert_eq!(waited(0, 10_000), (302, 0));
        assert_eq!(waited(9_000, 10_000).0, 0);
        assert_eq!(waited(0, 6_000).0, 0);
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

    /// The window is used up at 90 ms. The ACK that makes room passes the tap at 100 ms and its sender hears of it at 140 ms; its next block
    /// begins at 200 ms, or had begun when another ACK came at 180 ms.
    #[test]
    fn a_window_has_room_from_when_its_sender_hears_of_it_until_it_sends() {
        for (next, more, room) in [(200 * MS, 0, 60 * MS), (170 * MS, 2000, 0)] {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.saw(0, 0, Some(10_000));
            let two = |first, seq| Block {
                packets: 2,
                ..block(first, first + 10_000, seq, 10_000)
            };
            t.block(BlockEnd::Push as u8, &two(90 * MS, 0), None, None, &path);
            t.saw(100 * MS, 10_000, Some(10_000));
            t.sample(180 * MS, &rtt(60 * MS, 10_000, more), Some(10_000), &path);
            let so_far = SoFar {
                first: 90 * MS,
                last: 90 * MS + 10_000,
                bytes: 10_000,
            };
            t.block(
                BlockEnd::Push as u8,
                &two(next, 10_000),
                Some(so_far),
                Some(10_000),
                &path,
            );
            assert_eq!(t.samples[0].tally.room_ns + t.tally.room_ns, room);
        }
    }

    /// Timestamps take 12 of each segment's 1,012 bytes.
    #[test]
    fn what_leaves_room_for_three_segments_ends_at_no_edge() {
        let path = Path {
            segment: 1012,
            ..TAP_BETWEEN
        };
        for (left, at_edge) in [(3000, false), (2999, true)] {
            let mut t = Transfer::default();
            t.sample(50 * MS, &rtt(60 * MS, 0, 0), Some(40_000), &path);
            assert_eq!(t.at_edge(90 * MS, 40_000 - left, &path), Some(at_edge));
            let tail = BlockTail {
                last: 10 * MS,
                pushed: true,
                whole: true,
                acked: Some(0),
                end: 40_000 - left,
                at_edge: false,
                fills_any: false,
                is_cut: false,
                fills_small: false,
                apart: Some(0),
            };
            let mut burst = Bursts::begin(0, 0);
            burst.add(&block(0, 10 * MS, 0, tail.end), 0, Some(40_000), &path);
            assert_eq!(burst.filled(&tail, &path), at_edge);
        }
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
        assert_eq!(t.samples[0].tally.edge_ns, 49 * MS);
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
