//! Buckets of a logarithm, found without one.

use std::array;

/// Buckets of an octave at most.
const STEPS: usize = 32;
/// A slot is of numbers with the same so many bits after the first: at most one bucket begins within it.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// The first bit of a number that is shifted to the left as far as it goes.
const TOP: u64 = 1 << (u64::BITS - 1);

/// Buckets of equal width on a logarithmic scale. All octaves are alike: 400 bytes.
#[derive(Debug)]
pub(crate) struct Scale {
    /// Where buckets begin, as numbers shifted to the left as far as they go; and one that none reaches.
    begins: [u64; STEPS + 1],
    /// How many of these are not above the first number of a slot.
    below: [u8; SLOTS],
    /// Buckets of an octave.
    steps: u32,
    /// Those before the first, from 1 ns on.
    before: u32,
    last: u32,
}

impl Scale {
    /// So many buckets, `steps` of an octave, of which the first begins at `shortest` ns.
    pub fn new(shortest: f64, steps: u8, buckets: u16) -> Self {
        let octave = |ns: f64| ns.log2().floor();
        let shifted = |ns: f64| (ns / octave(ns).exp2() * TOP as f64) as u64;
        let mut begins = [u64::MAX; STEPS + 1];
        for (step, begin) in (0..steps).zip(&mut begins) {
            *begin = shifted(shortest * (f64::from(step) / f64::from(steps)).exp2());
        }
        begins.sort_unstable();
        let below = |least: u64| begins.partition_point(|begin| *begin <= least);
        Self {
            below: array::from_fn(|slot| below(TOP | (slot as u64) << (u64::BITS - 1 - BITS)) as u8),
            before: octave(shortest) as u32 * u32::from(steps) + below(shifted(shortest)) as u32,
            steps: steps.into(),
            last: u32::from(buckets) - 1,
            begins,
        }
    }

    /// The bucket of a duration, ns; shorter and longer ones are in the first and the last.
    #[inline]
    pub fn bucket(&self, ns: u64) -> usize {
        let octave = ns.max(1).ilog2();
        let shifted = ns << (u64::BITS - 1 - octave);
        let slot = (shifted >> (u64::BITS - 1 - BITS)) as usize % SLOTS;
        let below = self.below[slot];
        let begun = u32::from(below) + u32::from(shifted >= self.begins[usize::from(below) % (STEPS + 1)]);
        (octave * self.steps + begun).saturating_sub(self.before).min(self.last) as usize
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// For each bound of two buckets: neither falls, so that they are the same everywhere.
    pub fn is_the_same(scale: &Scale, bucket: impl Fn(u64) -> usize) {
        let (mut low, mut buckets) = (0, 0);
        while bucket(u64::MAX) > bucket(low) {
            let (here, mut high) = (bucket(low), u64::MAX);
            while high - low > 1 {
                let middle = low.midpoint(high);
                *(if bucket(middle) > here { &mut high } else { &mut low }) = middle;
            }
            assert_eq!((scale.bucket(low), scale.bucket(high)), (here, bucket(high)), "{low}");
            low = high;
            buckets += 1;
        }
        assert_eq!(buckets, scale.last);
    }
}
