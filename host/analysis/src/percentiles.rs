//! Percentiles of times: a histogram that is as large as the times differ.

use weir_messages::v1;

/// Bits of an `f32` below those that name a bucket: 5 of the mantissa are left, so an octave has 32 buckets, and the
/// middle of one is at most 1.6 % from any time in it.
const SHIFT: u32 = 18;
/// Times from which on percentiles mean something.
const LEAST: u64 = 10;

/// Times by bucket, in order. Memory: 8 bytes for each bucket that is not empty, 640 of them from 1 µs to 1 s.
#[derive(Clone, Debug, Default)]
pub(crate) struct Percentiles {
    buckets: Vec<(u16, u32)>,
    count: u64,
    /// s.
    max: f64,
}

impl Percentiles {
    /// Another time, s.
    pub fn add(&mut self, seconds: f64) {
        let bucket = ((seconds as f32).to_bits() >> SHIFT) as u16;
        match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(1),
            Err(at) => self.buckets.insert(at, (bucket, 1)),
        }
        self.count += 1;
        self.max = self.max.max(seconds);
    }

    /// The message, if there are enough.
    pub fn message(&self) -> Option<v1::ResponseTimes> {
        (self.count >= LEAST).then(|| v1::ResponseTimes {
            count: self.count,
            p50_seconds: self.rank(50),
            p90_seconds: self.rank(90),
            p95_seconds: self.rank(95),
            p99_seconds: self.rank(99),
            max_seconds: self.max,
            buckets: self
                .buckets
                .iter()
                .map(|(bucket, count)| v1::TimeBucket {
                    from_seconds: lower(*bucket),
                    to_seconds: lower(bucket + 1),
                    count: u64::from(*count),
                })
                .collect(),
        })
    }

    /// Nearest rank: the middle of its bucket, s.
    fn rank(&self, percent: u64) -> f64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut below = 0;
        let at = self.buckets.iter().find(|(_, count)| {
            below += u64::from(*count);
            below >= rank
        });
        at.map_or(self.max, |(bucket, _)| {
            ((lower(*bucket) + lower(bucket + 1)) / 2.0).min(self.max)
        })
    }
}

/// Where a bucket begins, s.
fn lower(bucket: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bucket) << SHIFT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the sorted times.
        #[test]
        fn ranks_are_near(times in prop::collection::vec(1e-6..100f64, 10..300)) {
            let mut percentiles = Percentiles::default();
            times.iter().for_each(|time| percentiles.add(*time));
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            let message = percentiles.message().expect("ten or more");
            let told = [(50, message.p50_seconds), (90, message.p90_seconds), (95, message.p95_seconds), (99, message.p99_seconds)];
            for (percent, told) in told {
                let exact = sorted[(sorted.len() * percent).div_ceil(100) - 1];
                prop_assert!((told / exact - 1.0).abs() < 0.0162, "{percent}: {told} for {exact}");
            }
            prop_assert_eq!(message.max_seconds, sorted[sorted.len() - 1]);
            prop_assert_eq!(message.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), times.len() as u64);
            let inside = |bucket: &v1::TimeBucket| {
                let range = bucket.from_seconds..bucket.to_seconds;
                times.iter().filter(|time| range.contains(&f64::from(**time as f32))).count() as u64
            };
            prop_assert!(message.buckets.iter().all(|bucket| inside(bucket) == bucket.count));
        }
    }

    #[test]
    fn few_times_have_no_percentiles() {
        let mut percentiles = Percentiles::default();
        for _ in 1..LEAST {
            percentiles.add(0.0);
        }
        assert!(percentiles.message().is_none());
        percentiles.add(0.0);
        assert_eq!(
            percentiles.message().map(|m| (m.p99_seconds, m.buckets.len())),
            Some((0.0, 1))
        );
    }
}
