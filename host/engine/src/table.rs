//! Which flow has a key: a hash table of indices, in which a look-up meets one cache line.
//!
//! Open addressing with linear probing; what is taken out leaves no mark, what follows moves up.

/// Entry of the table: part of the key's hash, which spares a look at most other flows, and the index plus 1; 0: free.
type Slot = u64;

const FREE: Slot = 0;
/// Slots of the first table; always a power of two.
const LEAST: usize = 1 << 10;

const fn slot(hash: u32, index: u32) -> Slot {
    (hash as u64) << u32::BITS | (index as u64 + 1)
}

#[inline]
const fn hash(slot: Slot) -> u32 {
    (slot >> u32::BITS) as u32
}

#[inline]
const fn index(slot: Slot) -> u32 {
    (slot as u32).wrapping_sub(1)
}

/// Indices by the hashes of their keys; the keys are elsewhere.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    used: usize,
}

impl Table {
    pub fn new() -> Self {
        Self {
            slots: vec![FREE; LEAST],
            used: 0,
        }
    }

    /// Entries.
    pub const fn len(&self) -> usize {
        self.used
    }

    pub fn clear(&mut self) {
        self.slots.fill(FREE);
        self.used = 0;
    }

    /// The index with this hash that `is_it`.
    #[inline]
    pub fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                return None;
            }
            if self::hash(slot) == hash && is_it(index(slot)) {
                return Some(index(slot));
            }
            at = self.after(at);
        }
    }

    /// Put in an index that is not there.
    pub fn insert(&mut self, hash: u32, index: u32) {
        // Three quarters full: there is always a free slot, where a search ends.
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.grow();
        }
        self.used += 1;
        self.put(slot(hash, index));
    }

    /// Take an index out, if it is there.
    pub fn remove(&mut self, hash: u32, index: u32) {
        let mut at = self.home(hash);
        while self.slots[at] != slot(hash, index) {
            if self.slots[at] == FREE {
                return;
            }
            at = self.after(at);
        }
        self.used -= 1;
        // Each that follows goes to the free slot if a search for it passes there.
        let (mut free, mut next) = (at, at);
        loop {
            next = self.after(next);
            let slot = self.slots[next];
            if slot == FREE {
                break;
            }
            if self.distance(self.home(self::hash(slot)), next) >= self.distance(free, next) {
                self.slots[free] = slot;
                free = next;
            }
        }
        self.slots[free] = FREE;
    }

    fn put(&mut self, slot: Slot) {
        let mut at = self.home(hash(slot));
        while self.slots[at] != FREE {
            at = self.after(at);
        }
        self.slots[at] = slot;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![FREE; 2 * self.slots.len()];
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot != FREE {
                self.put(slot);
            }
        }
    }

    /// Where the search for a hash begins.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// As a map of the standard library, with hashes of which many are alike or neighbours.
    #[test]
    fn finds_what_is_in() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut table, mut map) = (Table::new(), HashMap::new());
        for _ in 0..100_000 {
            let index = random(3000) as u32;
            match map.remove(&index) {
                Some(hash) => table.remove(hash, index),
                None => {
                    // Also at the end, where the search goes on at the beginning.
                    let hash = (random(400) as u32).wrapping_sub(200).wrapping_mul(3);
                    map.insert(index, hash);
                    table.insert(hash, index);
                }
            }
            let other = random(3000) as u32;
            let hash = map.get(&other).copied().unwrap_or(7);
            let found = table.find(hash, |index| index == other);
            assert_eq!(found.is_some(), map.contains_key(&other));
            assert_eq!(table.len(), map.len());
        }
        table.clear();
        assert!(map.iter().all(|(_, hash)| table.find(*hash, |_| true).is_none()));
    }
}
