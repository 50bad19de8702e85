//! The edges of the receiver's window in the sequence space, and which of them the sender had heard of.

use std::collections::VecDeque;

use weir_record::Block;

use super::late::Late;
use super::path::{Path, ROOM};

/// A segment that is larger than this part of a window tells little of whether that is full.
const FEW: u32 = 8;
/// Edges remembered.
const EDGES: usize = 256;

/// The end of the receiver's window in the sequence space, as the tap saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// First and last time that it was seen there.
    from: u64,
    to: u64,
    at: u32,
    pub window: u32,
}

impl Edge {
    /// Bytes of room behind `end`.
    pub fn left(&self, end: u32) -> i32 {
        self.at.wrapping_sub(end) as i32
    }

    /// Whether not even one more segment fits behind `end`.
    fn is_filled(&self, end: u32, path: &Path) -> bool {
        i64::from(self.left(end)) < i64::from(path.payload.min(self.window / FEW))
    }

    /// Whether a sender stands at it that has sent up to `end`.
    pub fn is_reached(&self, end: u32, path: &Path) -> bool {
        let room = path.room(self.window, true).max(path.payload);
        i64::from(self.left(end)) < i64::from(room)
    }
}

/// The last edges of one receiver, the newest at the end, and how late its sender hears of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Edges {
    seen: VecDeque<Edge>,
    late: Late,
}

impl Edges {
    pub fn clear(&mut self) {
        self.seen.clear();
        self.late = Late::default();
    }

    /// The receiver's window as the tap knew it at a time.
    pub fn saw(&mut self, time: u64, ack: u32, window: Option<u32>) {
        let Some(window) = window else { return };
        let at = ack.wrapping_add(window);
        match self.seen.back_mut() {
            Some(last) if last.at == at => last.to = last.to.max(time),
            Some(last) if time < last.to => {}
            _ => {
                if self.seen.len() == EDGES {
                    self.seen.pop_front();
                }
                self.seen.push_back(Edge {
                    from: time,
                    to: time,
                    at,
                    window,
                });
            }
        }
    }

    /// The furthest edge that the sender surely had heard of when it sent what passed the tap at `time`: of the ACK before that by the round
    /// trip from the tap to the sender and back, and by what ACKs are late, whose edge was no further than the next that is known.
    pub fn heard(&self, time: u64, path: &Path) -> Option<&Edge> {
        self.heard_soon(time.saturating_sub(self.late.most(path.round_trip())), path)
    }

    /// The same of the ACKs that come as fast as any: it can have heard of no edge that is further.
    fn heard_soon(&self, time: u64, path: &Path) -> Option<&Edge> {
        let heard = time.saturating_sub(path.other);
        self.seen.iter().find(|edge| edge.to >= heard)
    }

    /// Whether what passed the tap at `time` and ends at `end` has filled any window that its sender can have heard of.
    pub fn are_filled(&self, time: u64, end: u32, path: &Path) -> bool {
        self.heard_soon(time, path)
            .is_some_and(|edge| edge.is_filled(end, path))
    }

    /// When the sender has heard of what passed the tap at `time`, however late.
    pub fn heard_by(&self, time: u64, path: &Path) -> u64 {
        time.saturating_add(self.delay(path))
    }

    /// How long it takes until its sender has heard of what passed the tap, however late, ns.
    fn delay(&self, path: &Path) -> u64 {
        path.other.saturating_add(self.late.most(path.round_trip()))
    }

    /// The sender, which had stood at the edge `end` since `since`, went on at `next`, as far as an ACK can be late.
    pub fn went_on(&mut self, since: u64, end: u32, next: u64, path: &Path) {
        let soon = |edge: &Edge| edge.from.saturating_add(path.other);
        let opens = |edge: &&Edge| soon(edge) > since && !edge.is_reached(end, path);
        if let Some(edge) = self.seen.iter().find(opens) {
            let ns = next.saturating_sub(soon(edge));
            if ns <= path.late() {
                self.late.add(ns);
            }
        }
    }

    /// Whether what passed the tap at `time` ends where the window did, to the byte, and its sender need not have heard of a larger one.
    pub fn is_at_one(&self, time: u64, end: u32, path: &Path) -> bool {
        let heard = time.saturating_sub(path.round_trip().saturating_add(path.late()));
        let not_heard = |edge: &&Edge| edge.left(end) > 0 && edge.from >= heard;
        let last = self.seen.iter().rev().find(|edge| !not_heard(edge));
        last.is_some_and(|edge| edge.left(end) == 0)
    }

    /// Whether `end` is where the window ended of an ACK that no record tells of, to the byte: whole segments from the edge before or behind it, of
    /// a window that stayed. What was cut there may wait for the card (Linux: `tcp_small_queue_check`) and go a round trip later.
    pub fn is_between_two(&self, time: u64, end: u32, path: &Path) -> bool {
        let since = time.saturating_sub(path.round_trip().saturating_mul(2).saturating_add(path.late()));
        let is_whole = |edge: &Edge| edge.left(end).unsigned_abs().is_multiple_of(path.payload);
        let before = self.seen.iter().rposition(|edge| edge.left(end) < 0);
        let around = before.and_then(|i| Some((self.seen.get(i)?, self.seen.get(i + 1)?)));
        path.payload > 0
            && around.is_some_and(|(before, next)| {
                next.window == before.window && next.from >= since && (is_whole(before) || is_whole(next))
            })
    }

    /// When the sender, which has sent up to `end`, heard of room behind it, at `since` or later.
    pub fn opened(&self, since: u64, end: u32, path: &Path) -> Option<u64> {
        let delay = self.delay(path);
        let heard = |edge: &Edge| edge.from.saturating_add(delay);
        let opens = |edge: &&Edge| heard(edge) > since && !edge.is_reached(end, path);
        self.seen.iter().find(opens).map(heard)
    }

    /// Since when the sender, which has sent up to `end`, had surely heard of room behind it. None: it may not have.
    pub fn has_room_since(&self, end: u32, path: &Path) -> Option<u64> {
        let with_room = self.seen.iter().rev().take_while(|edge| !edge.is_reached(end, path));
        with_room.last().map(|edge| self.heard_by(edge.from, path))
    }

    /// Whether the window surely ended within the block when its first segment was sent, and had room for less than three more.
    pub fn cuts(&self, b: &Block, end: u32, path: &Path) -> bool {
        b.bytes <= (ROOM + 1) * path.segment && self.heard(b.first, path).is_some_and(|edge| edge.left(end) < 0)
    }

    /// Whether a sender stands at the edge that has sent up to `end` and has heard of no ACK behind `una`.
    pub fn is_reached_from(&self, una: u32, end: u32, path: &Path) -> bool {
        self.seen.back().is_some_and(|newest| {
            let at = una.wrapping_add(newest.window);
            let edge = Edge { at, ..*newest };
            edge.left(end) >= 0 && edge.is_reached(end, path)
        })
    }

    /// The newest.
    pub fn last(&self) -> Option<&Edge> {
        self.seen.back()
    }

    /// Bytes that the sender had not heard to have arrived when it sent what ends at `end` and passed the tap at `time`.
    pub fn in_flight(&self, time: u64, end: u32, path: &Path) -> Option<u32> {
        let heard = time.saturating_sub(path.other);
        let edge = self.seen.iter().rev().find(|edge| edge.from <= heard);
        edge.map(|edge| end.wrapping_sub(edge.at.wrapping_sub(edge.window)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::tests::TAP_BETWEEN;

    /// The window ended at 40,000, and at 43,000 from 100 ms on; of that its sender hears within 150 ms.
    #[test]
    fn a_sender_may_be_late_to_hear_of_an_edge() {
        let mut edges = Edges::default();
        edges.saw(60_000_000, 0, Some(40_000));
        edges.saw(100_000_000, 3000, Some(40_000));
        let at_one = |ms: u64, end: u32| edges.is_at_one(ms * 1_000_000, end, &TAP_BETWEEN);
        assert!(at_one(110, 40_000) && at_one(110, 43_000) && at_one(250, 40_000));
        assert!(!at_one(110, 39_999) && !at_one(260, 40_000));
    }

    /// ACKs of every second segment, of which the third was not told; before that the window was another.
    #[test]
    fn an_edge_that_was_not_told_lies_between_two() {
        let mut edges = Edges::default();
        for (ms, ack, window) in [
            (10, 0, 39_000),
            (20, 1300, 40_000),
            (30, 3300, 40_000),
            (50, 7300, 40_000),
        ] {
            edges.saw(ms * 1_000_000, ack, Some(window));
        }
        let between = |ms: u64, end: u32| edges.is_between_two(ms * 1_000_000, end, &TAP_BETWEEN);
        assert!(between(60, 45_300) && between(60, 46_300));
        assert!(!between(60, 45_299) && !between(60, 40_300) && !between(60, 48_300) && !between(1060, 45_300));
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
}
