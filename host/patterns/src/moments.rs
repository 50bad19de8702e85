//! Whether something happened at a moment, for long times and little memory: bits.

use std::collections::VecDeque;

/// Kinds of bits that share one clock.
pub(crate) const LAYERS: usize = 9;
/// A slot is 2^20 ns, about 1 ms, until there are too many.
const SHIFT: u32 = 20;
/// Words of 64 slots at most: 524,288 slots, 550 s of 1 ms.
const WORDS: usize = 8192;
const BITS: u64 = u64::BITS as u64;

/// Bits of slots of time, in [`LAYERS`] layers. When there are too many slots, neighbours become one.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    shift: u32,
    /// Number of the first word.
    first: u64,
    words: VecDeque<[u64; LAYERS]>,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            shift: SHIFT,
            first: 0,
            words: VecDeque::new(),
        }
    }
}

impl Moments {
    /// Width of a slot, ns.
    pub const fn width(&self) -> u64 {
        1 << self.shift
    }

    /// Where the slot of that number begins, TAI ns.
    pub const fn time(&self, slot: usize) -> u64 {
        (self.first * BITS + slot as u64) << self.shift
    }

    /// The slot of a time (TAI ns), if there is one.
    pub fn slot(&self, time: u64) -> Option<usize> {
        let slot = (time >> self.shift).checked_sub(self.first * BITS)? as usize;
        (slot < self.slots()).then_some(slot)
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.words.len() * BITS as usize
    }

    /// The words of a layer, from slot 0 on.
    pub fn layer(&self, layer: usize) -> impl ExactSizeIterator<Item = u64> {
        self.words.iter().map(move |word| word[layer])
    }

    /// Whether a slot's bit is set.
    pub fn is_set(&self, layer: usize, slot: usize) -> bool {
        self.words
            .get(slot / u64::BITS as usize)
            .is_some_and(|word| word[layer] >> (slot % u64::BITS as usize) & 1 == 1)
    }

    /// It happened at `time` (TAI ns).
    pub fn set(&mut self, layer: usize, time: u64) {
        let number = self.word(time);
        let bit = 1 << (time >> self.shift & (BITS - 1));
        self.words[number][layer] |= bit;
    }

    /// It went on from `from` to `to` (TAI ns) in `layer`; where it did so already, in the layer after it.
    pub fn fill(&mut self, layer: usize, from: u64, to: u64) {
        let last = self.word(to);
        let first = self.word(from);
        let last = last.max(self.word(to)); // the first may have moved
        for number in first..=last {
            let word = &mut self.words[number];
            let mut mask = u64::MAX;
            if number == first {
                mask &= u64::MAX << (from >> self.shift & (BITS - 1));
            }
            if number == last {
                mask &= u64::MAX >> (BITS - 1 - (to >> self.shift & (BITS - 1)));
            }
            word[layer + 1] |= word[layer] & mask;
            word[layer] |= mask;
        }
    }

    /// The word of a time, made if need be.
    #[inline]
    fn word(&mut self, time: u64) -> usize {
        let number = (time >> self.shift >> BITS.trailing_zeros()).wrapping_sub(self.first);
        if number < self.words.len() as u64 {
            return number as usize;
        }
        self.reach(time)
    }

    /// A word that is not there yet.
    #[cold]
    #[inline(never)]
    fn reach(&mut self, time: u64) -> usize {
        if self.words.is_empty() {
            self.first = time >> self.shift >> BITS.trailing_zeros();
            self.words.push_back([0; LAYERS]);
        }
        loop {
            let number = time >> self.shift >> BITS.trailing_zeros();
            let last = self.first + self.words.len() as u64 - 1;
            let (from, to) = (number.min(self.first), number.max(last));
            if to - from < WORDS as u64 {
                while self.first > number {
                    self.words.push_front([0; LAYERS]);
                    self.first -= 1;
                }
                while self.words.len() as u64 <= number - self.first {
                    self.words.push_back([0; LAYERS]);
                }
                return (number - self.first) as usize;
            }
            self.halve();
        }
    }

    /// Two slots become one.
    fn halve(&mut self) {
        let mut halved = VecDeque::with_capacity(self.words.len() / 2 + 1);
        for (i, word) in self.words.iter().enumerate() {
            let number = self.first + i as u64;
            if halved.is_empty() || number.is_multiple_of(2) {
                halved.push_back([0; LAYERS]);
            }
            if let Some(last) = halved.back_mut() {
                for (sum, bits) in last.iter_mut().zip(word) {
                    *sum |= pairs(*bits) << (number % 2 * (BITS / 2));
                }
            }
        }
        self.words = halved;
        self.first /= 2;
        self.shift += 1;
    }
}

/// Each pair of bits as one bit: set if either is.
const fn pairs(bits: u64) -> u64 {
    let mut x = (bits | bits >> 1) & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0x0000_0000_ffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Against a set of slots, whatever the order and the span.
        #[test]
        fn moments_are_kept(
            start in 0..u64::MAX / 4,
            times in prop::collection::vec(prop_oneof![0..10_000_000_000u64, 0..(1u64 << 43)], 1..60),
            ranges in prop::collection::vec((0..10_000_000_000u64, 0..2_000_000_000u64), 0..20),
        ) {
            let mut moments = Moments::default();
            for time in &times {
                moments.set(0, start + time);
            }
            for (from, length) in &ranges {
                moments.fill(1, start + from, start + from + length);
            }
            let base = moments.first * BITS;
            let slot = |time: u64| ((start + time) / moments.width() - base) as usize;
            let expected: BTreeSet<usize> = times.iter().map(|time| slot(*time)).collect();
            let slots = moments.words.len() * 64;
            prop_assert!(moments.words.len() <= WORDS);
            let told: BTreeSet<usize> = (0..slots).filter(|s| moments.is_set(0, *s)).collect();
            prop_assert_eq!(told, expected);
            let mut counts = vec![0; slots];
            for (from, length) in &ranges {
                counts[slot(*from)..=slot(from + length)].iter_mut().for_each(|n| *n += 1);
            }
            for (s, count) in counts.iter().enumerate() {
                prop_assert_eq!(moments.is_set(1, s), *count >= 1);
                // A wider slot can take two ranges that follow each other for one at a time.
                if moments.shift == SHIFT {
                    prop_assert_eq!(moments.is_set(2, s), *count >= 2);
                }
            }
        }
    }
}
