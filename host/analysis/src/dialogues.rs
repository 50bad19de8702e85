//! Numbers for who talks to which service, so that sums of each can be found without hashing addresses.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Dialogues that get a number of their own; 3 MB.
const MOST: usize = 1 << 16;
/// The number of all others.
pub(crate) const OTHERS: u32 = u32::MAX;

/// Client, server and the server's port.
type Key = ([u8; 16], [u8; 16], u16);

/// The first [`MOST`] dialogues.
#[derive(Clone, Debug)]
pub(crate) struct Dialogues(HashMap<Key, u32, FixedState>);

impl Default for Dialogues {
    fn default() -> Self {
        Self(HashMap::with_hasher(FixedState::with_seed(0x7765_6972)))
    }
}

impl Dialogues {
    /// The number of a dialogue: counted from 0, or [`OTHERS`].
    pub fn number(&mut self, key: Key) -> u32 {
        let next = self.0.len();
        if next < MOST {
            return *self.0.entry(key).or_insert(next as u32);
        }
        self.0.get(&key).copied().unwrap_or(OTHERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_end() {
        let key = |n: usize| ((n as u128).to_be_bytes(), [0; 16], 443);
        let mut dialogues = Dialogues::default();
        for n in 0..MOST + 2 {
            let number = if n < MOST { n as u32 } else { OTHERS };
            assert_eq!(dialogues.number(key(n)), number);
        }
        assert_eq!(dialogues.number(key(7)), 7);
    }
}
