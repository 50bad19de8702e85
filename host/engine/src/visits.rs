//! The scan visits (specification section 1), without making those that can do nothing.
//!
//! A calendar of 65,536 buckets of 4.2 ms; a flow that is due later than the calendar reaches is
//! looked at once on the way and put in again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// log2 of the indices that one scan period looks at.
const SCAN: u64 = 1 << 18;
/// log2 of the ns between visits.
const VISIT_SHIFT: u32 = 10;
const BUCKET_SHIFT: u32 = 12;
const BUCKETS: u64 = 1 << 16;

/// ns of two scan periods: how long a released index rests.
pub(crate) const REST_NS: u64 = (2 * SCAN) << VISIT_SHIFT;

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

/// Which flow is visited when. A bucket that waits holds indices alone; their flows tell the visits when it comes up.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// (visit, index) of the current bucket, last first.
    due: Vec<(u64, u32)>,
    /// What was put into the current bucket since.
    late: BinaryHeap<Reverse<(u64, u32)>>,
    buckets: Vec<Vec<u32>>,
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
            self.buckets[(bucket % BUCKETS) as usize].push(index);
            self.waiting += 1;
        }
        visit
    }

    /// The next visit at a time of at most `time`; `visits_of` tells all that a flow has in the calendar and still
    /// needs.
    #[inline]
    pub fn pop(&mut self, time: u64, visits_of: impl Fn(u32) -> [u64; 2]) -> Option<(u64, u32)> {
        let limit = time >> VISIT_SHIFT;
        loop {
            let due = self.due.last().copied();
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
            self.come_up(&visits_of);
        }
    }

    /// The current bucket is due.
    fn come_up(&mut self, visits_of: impl Fn(u32) -> [u64; 2]) {
        // Taken, not drained: a bucket that was full once would keep its memory for good.
        let bucket = std::mem::take(&mut self.buckets[(self.current % BUCKETS) as usize]);
        self.waiting -= bucket.len();
        for index in bucket {
            let visits = visits_of(index).into_iter();
            let mine = visits.filter(|visit| visit >> BUCKET_SHIFT == self.current);
            self.due.extend(mine.map(|visit| (visit, index)));
        }
        self.due.sort_unstable_by(|a, b| b.cmp(a));
    }
}
