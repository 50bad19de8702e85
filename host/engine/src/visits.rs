//! The scan visits (specification section 1), without making those that can do nothing.
//!
//! A calendar of 16,384 buckets of 4.2 ms, 69 s in all; a flow that is due later than the calendar reaches is
//! looked at once on the way and put in again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// log2 of the indices that one scan period looks at.
const SCAN: u64 = 1 << 18;
/// log2 of the ns between visits.
const VISIT_SHIFT: u32 = 10;
const BUCKET_SHIFT: u32 = 12;
/// Visits of a bucket.
const BUCKET: u64 = 1 << BUCKET_SHIFT;
const BUCKETS: u64 = 1 << 14;

/// ns of two scan periods: how long a released index rests.
const REST_NS: u64 = (2 * SCAN) << VISIT_SHIFT;

/// Whether an index that was released at `then` has rested: the list of free indices keeps 54 bits of time.
pub(crate) fn has_rested(then: u64, now: u64) -> bool {
    now.wrapping_sub(then) & ((1 << 54) - 1) >= REST_NS
}

/// First visit to `index` at or after `time`.
#[inline]
pub(crate) const fn visit_at(index: u32, time: u64) -> u64 {
    let first = time.div_ceil(1 << VISIT_SHIFT);
    first + ((index as u64).wrapping_sub(first) & (SCAN - 1))
}

/// TAI ns of a visit.
#[inline]
pub(crate) const fn visit_time(visit: u64) -> u64 {
    visit << VISIT_SHIFT
}

/// An index as a bucket holds it, in the order of visits: the low bits, which tell the visit, before the high ones.
type Entry = u32;

const fn entry(index: u32) -> Entry {
    index.rotate_right(BUCKET_SHIFT)
}

/// Which flow is visited when. A bucket holds indices alone: a bucket is shorter than a scan period, so an index has at most
/// one visit in it, which its low bits tell.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// Of the current bucket, last first.
    due: Vec<Entry>,
    /// What was put into the current bucket since.
    late: BinaryHeap<Reverse<(u64, u32)>>,
    buckets: Vec<Vec<Entry>>,
    /// Bucket number whose entries are in `due`, as are all before it.
    current: u64,
    waiting: usize,
}

impl Calendar {
    pub fn new() -> Self {
        Self {
            due: Vec::new(),
            late: BinaryHeap::new(),
            buckets: vec![Vec::new(); BUCKETS as usize],
            current: 0,
            waiting: 0,
        }
    }

    /// Put in; returns the visit at which the flow will come up (earlier than asked when the
    /// calendar does not reach so far).
    pub fn insert(&mut self, visit: u64, index: u32) -> u64 {
        let reach = (self.current + BUCKETS - 1) << BUCKET_SHIFT;
        let visit = if visit < reach {
            visit
        } else {
            // The last visit to this index within reach.
            reach - 1 - ((reach - 1).wrapping_sub(u64::from(index)) & (SCAN - 1))
        };
        let bucket = visit >> BUCKET_SHIFT;
        if bucket <= self.current {
            self.late.push(Reverse((visit, index)));
        } else {
            self.buckets[(bucket % BUCKETS) as usize].push(entry(index));
            self.waiting += 1;
        }
        visit
    }

    /// The next visit at a time of at most `time`. The flow may need it no more.
    #[inline]
    pub fn pop(&mut self, time: u64) -> Option<(u64, u32)> {
        let limit = time >> VISIT_SHIFT;
        loop {
            let due = self.due.last().map(|&entry| self.of_bucket(entry));
            let late = self.late.peek().map(|entry| entry.0);
            let is_late = due.is_none() || late.is_some_and(|late| Some(late) < due);
            if let Some(first) = if is_late { late } else { due } {
                if first.0 > limit {
                    return None;
                }
                if is_late {
                    self.late.pop();
                } else {
                    self.due.pop();
                }
                return Some(first);
            }
            let target = limit >> BUCKET_SHIFT;
            if self.current >= target {
                return None;
            }
            if self.waiting == 0 {
                self.current = target;
                return None;
            }
            self.current += 1;
            self.come_up();
        }
    }

    /// Indices of the current bucket whose visits are at a time of at most `time`.
    pub fn due(&self, time: u64) -> impl Iterator<Item = u32> {
        let limit = time >> VISIT_SHIFT;
        let due = self.due.iter().rev().map(|&entry| self.of_bucket(entry));
        due.take_while(move |(visit, _)| *visit <= limit)
            .map(|(_, index)| index)
    }

    /// Visit and index of an entry of `due`.
    #[inline]
    fn of_bucket(&self, entry: Entry) -> (u64, u32) {
        let index = entry.rotate_left(BUCKET_SHIFT);
        (self.current << BUCKET_SHIFT | u64::from(index) & (BUCKET - 1), index)
    }

    /// Before this time [`Self::pop`] has nothing to do, but for what is put in from now on.
    pub fn next(&self) -> u64 {
        let due = self.due.last().map(|&entry| self.of_bucket(entry).0);
        let late = self.late.peek().map(|entry| entry.0.0);
        let waiting = (self.waiting > 0).then_some((self.current + 1) << BUCKET_SHIFT);
        let next = [due, late, waiting].into_iter().flatten().min();
        next.map_or(u64::MAX, visit_time)
    }

    /// The current bucket is due.
    fn come_up(&mut self) {
        // Taken, not drained: a bucket that was full once would keep its memory for good.
        self.due = std::mem::take(&mut self.buckets[(self.current % BUCKETS) as usize]);
        self.waiting -= self.due.len();
        self.due.sort_unstable_by(|a, b| b.cmp(a));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows that move their visits to and fro, as the tracker does, are visited when they shall be, and in order.
    #[test]
    fn every_visit_comes_up() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut calendar = Calendar::new();
        let mut visits = [u64::MAX; 50];
        let (mut now, mut last, mut seen) = (1u64 << 40, (0, 0), 0);
        for _ in 0..20_000 {
            let index = random(50) as u32;
            let wanted = visit_at(index, now + 1 + random(400_000_000_000));
            let slot = &mut visits[index as usize];
            if *slot == u64::MAX || wanted < *slot {
                *slot = calendar.insert(wanted, index);
                assert!(*slot <= wanted);
            }
            now += random(200_000_000);
            while let Some((visit, index)) = calendar.pop(now) {
                if visits[index as usize] == visit {
                    assert!((visit, index) > last);
                    last = (visit, index);
                    visits[index as usize] = u64::MAX;
                    seen += 1;
                }
            }
            assert!(
                visits
                    .iter()
                    .all(|visit| visit_time(*visit) > now || *visit == u64::MAX)
            );
        }
        assert!(seen > 1000, "{seen}");
    }

    #[test]
    fn an_index_rests_for_two_periods_as_54_bits_tell() {
        let released = 1_700_000_000_000_000_000;
        assert!(!has_rested(released, released + REST_NS - 1));
        assert!(has_rested(released, released + REST_NS));
        assert!(has_rested(released, released + (1 << 54) - 1));
        assert!(!has_rested(released, released + (1 << 54)));
        assert!(!has_rested(released, released + (1 << 54) + REST_NS - 1));
        assert!(has_rested(released, released + (1 << 54) + REST_NS));
    }
}
