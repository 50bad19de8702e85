//! Sums per slice of time that stay bounded: when there are too many bins, neighbours become one.

use std::collections::VecDeque;
use std::ops::AddAssign;

/// Bins of a series at most; 7 minutes are bins of 10 ms.
pub const MOST: usize = 1 << 16;

/// Sums of `T` in bins of equal width. Bins begin at multiples of their width (TAI ns).
#[derive(Clone, Debug)]
pub struct Bins<T> {
    width: u64,
    /// Bins at most.
    most: usize,
    /// Number of the first bin: its time divided by the width.
    first: u64,
    bins: VecDeque<T>,
}

impl<T: Clone + Default + AddAssign> Bins<T> {
    /// No bins yet; they are `width` ns wide until there are too many.
    ///
    /// # Panics
    /// If `width` is 0.
    pub const fn new(width: u64) -> Self {
        Self::bounded(width, MOST)
    }

    /// The same for at most `most` bins.
    ///
    /// # Panics
    /// If one of them is 0.
    pub const fn bounded(width: u64, most: usize) -> Self {
        assert!(width > 0 && most > 0);
        Self {
            width,
            most,
            first: 0,
            bins: VecDeque::new(),
        }
    }

    /// ns.
    pub const fn width(&self) -> u64 {
        self.width
    }

    /// Where the first bin begins, TAI ns.
    pub const fn start(&self) -> u64 {
        self.first * self.width
    }

    /// The bins, from `start` on, none left out.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        self.bins.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.bins.len()
    }

    /// None yet.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// No bins any more, with their memory; they are `width` ns wide again.
    pub fn clear(&mut self, width: u64) {
        self.width = width;
        self.first = 0;
        self.bins.clear();
    }

    /// The bin of a time (TAI ns).
    #[inline]
    pub fn at(&mut self, time: u64) -> &mut T {
        let mut number = (time / self.width).wrapping_sub(self.first);
        if number >= self.bins.len() as u64 {
            number = self.reach(time);
        }
        &mut self.bins[number as usize]
    }

    /// The place of a time that has no bin yet.
    #[cold]
    #[inline(never)]
    fn reach(&mut self, time: u64) -> u64 {
        if self.bins.is_empty() {
            self.first = time / self.width;
            self.bins.push_back(T::default());
        }
        loop {
            let number = time / self.width;
            let (from, to) = (number.min(self.first), number.max(self.last()));
            if to - from < self.most as u64 {
                break;
            }
            self.halve();
        }
        let number = time / self.width;
        while number < self.first {
            self.bins.push_front(T::default());
            self.first -= 1;
        }
        while number > self.last() {
            self.bins.push_back(T::default());
        }
        number - self.first
    }

    /// The same sums in fewer bins of (about) the width asked for: a multiple of the width by a whole number.
    #[must_use]
    pub fn coarser(&self, width: u64) -> Self {
        let factor = (width / self.width).max(1);
        let mut out = Self::bounded(self.width * factor, self.most);
        for (i, bin) in self.bins.iter().enumerate() {
            *out.at((self.first + i as u64) * self.width) += bin.clone();
        }
        out
    }

    /// A part of the sums.
    #[must_use]
    pub fn map<U>(&self, part: impl Fn(&T) -> U) -> Bins<U> {
        Bins {
            width: self.width,
            most: self.most,
            first: self.first,
            bins: self.bins.iter().map(part).collect(),
        }
    }

    /// Add the sums of another series.
    pub fn merge(&mut self, other: &Self) {
        while self.width < other.width && !self.bins.is_empty() {
            self.halve();
        }
        if self.bins.is_empty() {
            *self = other.clone();
            return;
        }
        for (i, bin) in other.bins.iter().enumerate() {
            *self.at((other.first + i as u64) * other.width) += bin.clone();
        }
    }

    fn last(&self) -> u64 {
        self.first + self.bins.len() as u64 - 1
    }

    fn halve(&mut self) {
        *self = self.coarser(self.width * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Nothing is lost, whatever the order and the span.
        #[test]
        fn sums_stay(times in prop::collection::vec(0..u64::MAX / 4, 1..100), near in prop::collection::vec(0..10_000_000u64, 0..100)) {
            let mut bins = Bins::new(10);
            for time in times.iter().chain(&near) {
                *bins.at(*time) += 1u32;
            }
            prop_assert_eq!(bins.iter().sum::<u32>() as usize, times.len() + near.len());
            prop_assert!(bins.len() <= MOST);
        }
    }

    proptest! {
        /// Of series whose widths are the same number doubled.
        #[test]
        fn merged_is_as_if_one_series_had_it_all(a in prop::collection::vec(0..100_000u64, 0..50), b in prop::collection::vec(0..1_000u64, 0..50)) {
            let series = |times: &mut dyn Iterator<Item = &u64>| {
                let mut bins: Bins<u32> = Bins::bounded(10, 64);
                times.for_each(|time| *bins.at(*time) += 1u32);
                bins
            };
            let mut merged = series(&mut a.iter());
            merged.merge(&series(&mut b.iter()));
            let all = series(&mut a.iter().chain(&b));
            prop_assert_eq!(merged.width(), all.width());
            prop_assert_eq!(merged.iter().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_time_finds_its_bin_after_bins_became_wider() {
        let mut bins = Bins::new(1);
        *bins.at(1000) += 1u32;
        *bins.at(1000 + 3 * MOST as u64) += 1;
        assert_eq!(bins.width(), 4);
        assert_eq!(bins.start(), 1000);
        *bins.at(1003) += 1;
        assert_eq!(bins.iter().next(), Some(&2));
    }

    #[test]
    fn cleared_bins_begin_anew() {
        let mut bins: Bins<u32> = Bins::bounded(10, 2);
        *bins.at(0) += 1;
        *bins.at(100) += 1;
        bins.clear(10);
        assert_eq!((bins.width(), bins.len()), (10, 0));
        *bins.at(55) += 1;
        assert_eq!((bins.start(), bins.len()), (50, 1));
    }
}
