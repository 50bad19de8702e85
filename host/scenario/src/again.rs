//! What of a stream was sent again or came late: the truth by which verdicts on single segments are judged.

use crate::packet::Segment;
use crate::truth::How;

/// Ranges of sequence numbers, in order and apart from each other.
#[derive(Debug, Default, Clone)]
struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    fn of(segment: &Segment) -> Ranges {
        Ranges(vec![(segment.seq, segment.seq + segment.space())])
    }

    fn add(&mut self, segment: &Segment) {
        let (mut from, mut to) = (segment.seq, segment.seq + segment.space());
        self.0.retain(|&(left, right)| {
            let touches = left <= to && right >= from;
            if touches {
                from = from.min(left);
                to = to.max(right);
            }
            !touches
        });
        let place = self.0.partition_point(|&(left, _)| left < from);
        self.0.insert(place, (from, to));
    }

    fn remove(&mut self, from: u64, to: u64) {
        let parts = self.0.iter().flat_map(|&(left, right)| {
            let before = (left, right.min(from));
            let behind = (left.max(to), right);
            [before, behind]
        });
        self.0 = parts.filter(|&(left, right)| left < right).collect();
    }

    fn covers(&self, segment: &Segment) -> bool {
        let (from, to) = (segment.seq, segment.seq + segment.space());
        self.0.iter().any(|&(left, right)| left <= from && to <= right)
    }

    fn end(&self) -> u64 {
        self.0.last().map_or(0, |&(_, right)| right)
    }
}

/// A segment that was sent again, until it is known whether it was needed.
#[derive(Debug)]
struct Open<Line> {
    order: u32,
    /// Of its bytes, those that no copy sent before it has brought.
    missing: Ranges,
    /// Segments sent before it that are still under way.
    older: u32,
    /// What is to be written of it, when it has arrived or was lost.
    line: Option<Line>,
}

/// One direction of a connection. `Line` is what is written of a segment.
#[derive(Debug)]
pub(crate) struct Stream<Line> {
    /// Segments with sequence space so far, and those of them under way.
    order: u32,
    flying: u32,
    sent: u64,
    delivered: Ranges,
    /// What each tap has seen.
    seen: Vec<Ranges>,
    open: Vec<Open<Line>>,
}

/// The place of a segment in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    order: u32,
    /// Some of it had been sent before.
    pub(crate) again: bool,
}

impl<Line> Stream<Line> {
    pub(crate) fn new(taps: usize) -> Stream<Line> {
        Stream {
            order: 0,
            flying: 0,
            sent: 0,
            delivered: Ranges::default(),
            seen: vec![Ranges::default(); taps],
            open: Vec::new(),
        }
    }

    /// A segment sets out; none for one without sequence space.
    pub(crate) fn send(&mut self, segment: &Segment) -> Option<Turn> {
        if segment.space() == 0 {
            return None;
        }
        self.order += 1;
        let again = segment.seq < self.sent;
        self.sent = self.sent.max(segment.seq + segment.space());
        if again {
            let mut missing = Ranges::of(segment);
            for &(from, to) in &self.delivered.0 {
                missing.remove(from, to);
            }
            self.open.push(Open {
                order: self.order,
                missing,
                older: self.flying,
                line: None,
            });
        }
        self.flying += 1;
        Some(Turn {
            order: self.order,
            again,
        })
    }

    /// A tap writes a segment that has sequence space.
    pub(crate) fn pass(&mut self, tap: usize, segment: &Segment) -> How {
        let seen = &mut self.seen[tap];
        let how = if segment.seq >= seen.end() {
            How::New
        } else if seen.covers(segment) {
            How::Repeat
        } else {
            How::Fill
        };
        seen.add(segment);
        how
    }

    /// A segment has arrived, or was lost; what was sent again has a line. Lines that are settled by it go to `write`, with whether it was spurious:
    /// copies sent before it brought all of it.
    pub(crate) fn end(
        &mut self,
        turn: Turn,
        segment: &Segment,
        arrived: bool,
        line: Option<Line>,
        mut write: impl FnMut(Line, bool),
    ) {
        self.flying -= 1;
        if arrived {
            self.delivered.add(segment);
        }
        for open in self.open.iter_mut().filter(|open| open.order > turn.order) {
            open.older -= 1;
            if arrived {
                open.missing.remove(segment.seq, segment.seq + segment.space());
            }
        }
        if turn.again {
            if let Some(open) = self.open.iter_mut().find(|open| open.order == turn.order) {
                open.line = line;
            }
        } else if let Some(line) = line {
            write(line, false);
        }
        self.open.retain_mut(|open| {
            let settled = open.older == 0 && open.line.is_some();
            if settled && let Some(line) = open.line.take() {
                write(line, open.missing.0.is_empty());
            }
            !settled
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::packet::flag;

    fn segment(seq: u64, len: u32) -> Segment {
        Segment {
            seq,
            len,
            flags: flag::ACK,
            ..Segment::default()
        }
    }

    /// The first copy is late, not lost: its repeat is spurious, whichever arrives first.
    #[test]
    fn a_repeat_is_spurious_when_an_older_copy_arrives() {
        for original_first in [true, false] {
            let mut stream = Stream::new(0);
            let data = segment(1, 100);
            let turns = [0, 1].map(|_| stream.send(&data).unwrap());
            assert_eq!(turns.map(|turn| turn.again), [false, true]);
            let order = if original_first { [0, 1] } else { [1, 0] };
            let mut told = Vec::new();
            for place in order {
                stream.end(turns[place], &data, true, Some(place), |line, spurious| {
                    told.push((line, spurious))
                });
            }
            told.sort_unstable();
            assert_eq!(told, [(0, false), (1, true)]);
        }
    }

    #[test]
    fn a_repeat_of_what_was_lost_is_needed() {
        let mut stream = Stream::new(1);
        let data = segment(1, 100);
        let first = stream.send(&data).unwrap();
        let mut told = Vec::new();
        stream.end(first, &data, false, Some(0), |line, spurious| {
            told.push((line, spurious))
        });
        let second = stream.send(&data).unwrap();
        let third = stream.send(&segment(51, 50)).unwrap();
        stream.end(second, &data, true, Some(1), |line, spurious| {
            told.push((line, spurious))
        });
        stream.end(third, &segment(51, 50), true, Some(2), |line, spurious| {
            told.push((line, spurious))
        });
        assert_eq!(told, [(0, false), (1, false), (2, true)]);
    }

    #[test]
    fn a_tap_sees_fills_and_repeats() {
        let mut stream = Stream::<()>::new(1);
        let mut pass = |seq| stream.pass(0, &segment(seq, 10));
        assert_eq!(
            [1, 21, 11, 11, 31].map(&mut pass),
            [How::New, How::New, How::Fill, How::Repeat, How::New]
        );
    }
}
