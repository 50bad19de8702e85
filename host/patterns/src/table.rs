//! A map of bounded size.

use std::hash::Hash;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// At most `MOST` entries. When it is full, a new key makes those that are not worth keeping go, once for so many new
/// keys, so that strangers cost little; without room they are left out.
#[derive(Debug)]
pub(crate) struct Table<K, V, const MOST: usize> {
    entries: HashMap<K, V, FixedState>,
    strangers: usize,
}

impl<K, V, const MOST: usize> Default for Table<K, V, MOST> {
    fn default() -> Self {
        Self {
            entries: HashMap::default(),
            strangers: 0,
        }
    }
}

impl<K: Eq + Hash, V, const MOST: usize> Table<K, V, MOST> {
    /// What is known of a key.
    pub fn get(&mut self, key: &K) -> Option<&mut V> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries.get_mut(key)
    }

    /// The same, to look at.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    /// What is known of a key, or its first, if there is room.
    pub fn place(
        &mut self,
        key: K,
        first: impl FnOnce() -> V,
        is_worth_keeping: impl Fn(&V) -> bool,
    ) -> Option<&mut V> {
        if self.entries.len() >= MOST && !self.entries.contains_key(&key) {
            if self.strangers.is_multiple_of(MOST) {
                self.entries.retain(|_, value| is_worth_keeping(value));
            }
            self.strangers += 1;
            if self.entries.len() >= MOST {
                return None;
            }
        }
        Some(self.entries.entry(key).or_insert_with(first))
    }

    /// Take one out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries.remove(key)
    }

    /// All, in the order of keys.
    pub fn sorted(&self) -> Vec<(&K, &V)>
    where
        K: Ord,
    {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_find_room_where_others_are_worth_little() {
        let mut table: Table<u32, u32, 4> = Table::default();
        let mut count = |key: u32| {
            let value = table.place(key, || 0, |count| *count > 1);
            value.map(|count| {
                *count += 1;
                *count
            })
        };
        let came = [1, 1, 2, 2, 3, 4, 5, 6].map(&mut count);
        assert_eq!(came.map(|count| count.is_some()), [true; 8]);
        // 1 and 2 stayed, 3 and 4 went; with four that are worth it nobody finds room.
        assert_eq!([1, 2, 5, 5, 6, 6].map(&mut count), [3, 3, 2, 3, 2, 3].map(Some));
        assert_eq!([7, 8, 9, 10, 11].map(&mut count), [None; 5]);
        assert_eq!(count(1), Some(4));
        assert_eq!(table.sorted().len(), 4);
    }
}
