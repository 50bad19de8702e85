//! The queue of what is to happen: by time, and at the same time in the order in which it was asked for.

use crate::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

struct Entry<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    /// Reversed: the heap gives its greatest, we want the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Events in the order of time.
pub(crate) struct Events<E> {
    heap: BinaryHeap<Entry<E>>,
    asked: u64,
}

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Events {
            heap: BinaryHeap::new(),
            asked: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Time, event: E) {
        self.heap.push(Entry {
            at,
            order: self.asked,
            event,
        });
        self.asked += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::Events;

    #[test]
    fn earliest_first_and_then_in_the_order_asked() {
        let mut events = Events::new();
        for (at, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            events.push(at, name);
        }
        let order: String = std::iter::from_fn(|| events.pop()).map(|(_, name)| name).collect();
        assert_eq!(order, "abcd");
    }
}
