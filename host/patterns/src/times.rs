//! Durations as a histogram that is small while they are few.

use std::ops::AddAssign;
use std::sync::LazyLock;

use weir_messages::v1;

use crate::scale::Scale;

/// Buckets of an octave: a bucket is 4.4 % wide, its middle at most 2.2 % from any duration in it.
const PER_OCTAVE: f64 = 16.0;
const OCTAVE: u16 = PER_OCTAVE as u16;
/// ns; shorter ones share the first bucket.
const SHORTEST: f64 = 1000.0;
/// 2³² µs, more than an hour.
const BUCKETS: u16 = 512;

static SCALE: LazyLock<Scale> = LazyLock::new(|| Scale::new(SHORTEST, PER_OCTAVE as u8, BUCKETS));

/// Counts of durations in buckets of a logarithm: 4 bytes for each of the octaves from the lowest to the highest that was
/// needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The lowest, where an octave begins.
    first: u16,
    counts: Vec<u32>,
    longest: u64,
}

impl Times {
    /// Another one, ns.
    pub fn add(&mut self, ns: u64) {
        self.put(SCALE.bucket(ns) as u16, 1);
        self.longest = self.longest.max(ns);
    }

    #[inline]
    fn put(&mut self, bucket: u16, count: u32) {
        let place = usize::from(bucket.wrapping_sub(self.first));
        if place < self.counts.len() {
            self.counts[place] += count;
        } else {
            self.reach(bucket);
            self.counts[usize::from(bucket - self.first)] += count;
        }
    }

    /// Have the octave of a bucket, too.
    #[cold]
    #[inline(never)]
    fn reach(&mut self, bucket: u16) {
        let begin = bucket - bucket % OCTAVE;
        if self.counts.is_empty() {
            self.first = begin;
        }
        if begin < self.first {
            let more = usize::from(self.first - begin);
            self.counts.splice(..0, std::iter::repeat_n(0, more));
            self.first = begin;
        }
        let octaves = usize::from(begin - self.first + OCTAVE);
        if octaves > self.counts.len() {
            self.counts.resize(octaves, 0);
        }
    }

    /// Buckets and what is in them, ascending.
    fn buckets(&self) -> impl Iterator<Item = (u16, u32)> {
        (self.first..).zip(self.counts.iter().copied())
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The longest, ns: exact.
    pub const fn longest(&self) -> u64 {
        self.longest
    }

    /// The one that a share `q` of them does not exceed (nearest rank), ns, within 2.2 %.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (q * self.count() as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let (bucket, _) = self.buckets().find(|&(_, count)| {
            sum += u64::from(count);
            sum >= rank
        })?;
        let middle = SHORTEST * ((f64::from(bucket) + 0.5) / PER_OCTAVE).exp2();
        Some((middle as u64).min(self.longest))
    }

    /// The message; `None` without a duration.
    pub fn message(&self) -> Option<v1::TimePercentiles> {
        let seconds = |q| weir_analysis::seconds(self.quantile(q).unwrap_or(0));
        (self.longest > 0 || !self.counts.is_empty()).then(|| v1::TimePercentiles {
            count: self.count(),
            p50_seconds: seconds(0.5),
            p90_seconds: seconds(0.9),
            p95_seconds: seconds(0.95),
            p99_seconds: seconds(0.99),
            max_seconds: weir_analysis::seconds(self.longest),
        })
    }
}

impl AddAssign for Times {
    fn add_assign(&mut self, other: Self) {
        for (bucket, count) in other.buckets().filter(|&(_, count)| count > 0) {
            self.put(bucket, count);
        }
        self.longest = self.longest.max(other.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_near_the_exact_ones(mut all in prop::collection::vec(1_000..3_000_000_000_000u64, 1..300), q in 0.01..1.0f64) {
            let mut halves = [Times::default(), Times::default()];
            for (i, &ns) in all.iter().enumerate() {
                halves[i % 2].add(ns);
            }
            let [mut times, other] = halves;
            times += other;
            all.sort_unstable();
            let rank = (q * all.len() as f64).ceil().max(1.0) as usize;
            let exact = all[rank - 1] as f64;
            let near = times.quantile(q).unwrap_or(0) as f64;
            prop_assert!((near / exact - 1.0).abs() < 0.023, "{near} for {exact}");
            prop_assert_eq!(times.count(), all.len() as u64);
            prop_assert_eq!(times.longest(), all[all.len() - 1]);
        }
    }

    #[test]
    fn buckets_are_those_of_a_logarithm() {
        crate::scale::tests::is_the_same(&SCALE, |ns| {
            let place = (ns as f64 / SHORTEST).max(1.0).log2() * PER_OCTAVE;
            (place as usize).min(usize::from(BUCKETS) - 1)
        });
    }

    #[test]
    fn none_has_no_quantile() {
        assert_eq!(Times::default().quantile(0.5), None);
        assert_eq!(Times::default().message(), None);
    }
}
