//! How many of something there are, from when each begins and ends: a sweep line in slices of time.

use std::ops::AddAssign;

use crate::bins::Bins;

/// Beginnings and ends within one slice of time. The level and its mean are exact for any width of the slices, and sums
/// of neighbours lose nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Began here.
    pub up: u32,
    /// Ended here.
    pub down: u32,
    /// Times of the ends less times of the beginnings, modulo 2⁶⁴, TAI ns.
    moments: u64,
}

impl Steps {
    /// One begins at `time` (TAI ns).
    pub const fn begin(&mut self, time: u64) {
        self.up += 1;
        self.moments = self.moments.wrapping_sub(time);
    }

    /// One ends.
    pub const fn end(&mut self, time: u64) {
        self.down += 1;
        self.moments = self.moments.wrapping_add(time);
    }

    /// More at the end of the slice than at its start.
    pub const fn change(&self) -> i64 {
        self.up as i64 - self.down as i64
    }

    /// Time that those which began in the slice spent in it, less what those that ended in it did not, ns. `end` is
    /// the end of the slice.
    const fn within(&self, end: u64) -> i64 {
        // Each beginning counts end − t, each end −(end − t). The sum fits; its parts need not.
        (self.change() as u64).wrapping_mul(end).wrapping_add(self.moments) as i64
    }
}

impl AddAssign for Steps {
    fn add_assign(&mut self, other: Self) {
        self.up += other.up;
        self.down += other.down;
        self.moments = self.moments.wrapping_add(other.moments);
    }
}

/// The level in one slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Where the slice begins, TAI ns.
    pub start: u64,
    /// Exact mean over the slice.
    pub mean: f64,
    /// At its end.
    pub last: i64,
}

/// Levels of all slices, from a series of anything that has steps.
pub fn levels<T: Clone + Default + AddAssign>(
    bins: &Bins<T>,
    steps: impl Fn(&T) -> Steps,
) -> impl Iterator<Item = Level> {
    let (width, mut start) = (bins.width(), bins.start());
    let mut level = 0;
    bins.iter().map(move |bin| {
        let (from, steps) = (start, steps(bin));
        start += width;
        let area = level * width as i64 + steps.within(start);
        level += steps.change();
        Level {
            start: from,
            mean: area as f64 / width as f64,
            last: level,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDTH: u64 = 1000;
    /// Times since 1970 as they are, in ns.
    const EPOCH: u64 = 1_800_000_000_000_000_000;

    proptest! {
        /// Little's law, which is an identity here: the time under the curve is the sum of all stays, slice by slice.
        #[test]
        fn the_area_is_the_sum_of_stays(stays in prop::collection::vec((0..50_000u64, 0..20_000u64), 1..60), factor in 1..7u64) {
            let mut bins: Bins<Steps> = Bins::new(WIDTH);
            for &(begin, stay) in &stays {
                bins.at(EPOCH + begin).begin(EPOCH + begin);
                let end = EPOCH + begin + stay;
                bins.at(end).end(end);
            }
            let bins = bins.coarser(WIDTH * factor);
            let width = bins.width();
            for level in levels(&bins, |steps: &Steps| *steps) {
                let (from, to) = (level.start, level.start + width);
                let inside = |&(begin, stay): &(u64, u64)| {
                    let (begin, end) = (EPOCH + begin, EPOCH + begin + stay);
                    end.min(to).saturating_sub(begin.max(from))
                };
                let area: u64 = stays.iter().map(inside).sum();
                prop_assert!((level.mean - area as f64 / width as f64).abs() < 1e-9);
                let there = stays.iter().filter(|(begin, stay)| {
                    EPOCH + begin < to && EPOCH + begin + stay >= to
                });
                prop_assert_eq!(level.last, there.count() as i64);
            }
        }
    }
}
