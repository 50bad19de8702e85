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
const INDEX_BITS: u32 = 24;

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

/// (visit, index) pairs in order. A pair waits as the part of its visit below the bucket, then its index.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// What was in the current bucket, last first.
    due: Vec<u64>,
    /// What was put into the current bucket since.
    late: BinaryHeap<Reverse<u64>>,
    buckets: Vec<Vec<u64>>,
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
            visit.max(self.current << BUCKET_SHIFT) // what is due already comes next
        } else {
            // The last visit to this index within reach.
            reach - 1 - ((reach - 1).wrapping_sub(u64::from(index)) & (SCAN - 1))
        };
        let bucket = visit >> BUCKET_SHIFT;
        let entry = (visit % (1 << BUCKET_SHIFT)) << INDEX_BITS | u64::from(index);
        if bucket == self.current {
            self.late.push(Reverse(entry));
        } else {
            self.buckets[(bucket % BUCKETS) as usize].push(entry);
            self.waiting += 1;
        }
        visit
    }

    /// The next entry with a time of at most `time`.
    #[inline]
    pub fn pop(&mut self, time: u64) -> Option<(u64, u32)> {
        let limit = time >> VISIT_SHIFT;
        loop {
            let due = self.due.last().copied().unwrap_or(u64::MAX);
            let late = self.late.peek().map_or(u64::MAX, |entry| entry.0);
            let first = due.min(late);
            if first != u64::MAX {
                let visit = self.current << BUCKET_SHIFT | first >> INDEX_BITS;
                if visit > limit {
                    return None;
                }
                if due <= late {
                    self.due.pop();
                } else {
                    self.late.pop();
                }
                return Some((visit, (first % (1 << INDEX_BITS)) as u32));
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
            // Taken, not drained: a bucket that was full once would keep its memory for good.
            self.due = std::mem::take(&mut self.buckets[(self.current % BUCKETS) as usize]);
            self.waiting -= self.due.len();
            self.due.sort_unstable_by_key(|entry| Reverse(*entry));
        }
    }
}
