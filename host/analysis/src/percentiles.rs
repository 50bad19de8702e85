//! Percentiles of times: histograms that are as large as the times differ.

use weir_messages::v1;

/// Bits of an `f32` below those that name a bucket: 5 of the mantissa are left, so an octave has 32 buckets, and the
/// middle of one is at most 1.6 % from any time in it.
const SHIFT: u32 = 18;
/// Bits that name a bucket: the sign is never set.
const BUCKET_BITS: u32 = 31 - SHIFT;
/// Times from which on percentiles mean something.
const LEAST: u64 = 10;

/// Times entered one by one before they are counted, at least.
const FRESH: usize = 1 << 15;
/// Digits by which they are sorted.
const DIGIT_BITS: u32 = 11;
const DIGITS: u32 = u32::BITS.div_ceil(DIGIT_BITS);

/// Row and bucket in one number, so that they are in order and small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u32);

impl Key {
    fn new(row: u32, seconds: f64) -> Self {
        Self(row << BUCKET_BITS | (seconds as f32).to_bits() >> SHIFT)
    }

    const fn row(self) -> u32 {
        self.0 >> BUCKET_BITS
    }

    const fn bucket(self) -> u32 {
        self.0 & ((1 << BUCKET_BITS) - 1)
    }
}

/// How often a time came up in a row of the table.
#[derive(Clone, Copy, Debug)]
struct Count {
    key: Key,
    count: u32,
}

/// Times of all rows by bucket. A time is only written down at first: to look for its bucket each time would wait for
/// memory that is seldom near. Memory: 8 bytes for each bucket of a row that is not empty, 640 of them from 1 µs to 1 s,
/// and half of that for what is not counted yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Percentiles {
    /// In order of row and bucket.
    counts: Vec<Count>,
    /// Each time that is not counted yet, and room to sort them.
    fresh: Vec<Key>,
    sorted: Vec<Key>,
}

impl Percentiles {
    /// Another time of a row (fewer than 2¹⁹), s.
    pub fn add(&mut self, row: u32, seconds: f64) {
        self.fresh.push(Key::new(row, seconds));
        if self.fresh.len() >= FRESH.max(self.counts.len() / 2) {
            self.settle();
        }
    }

    /// Count what was written down.
    pub fn settle(&mut self) {
        self.sort();
        let old = std::mem::take(&mut self.counts);
        let mut old = old.into_iter().peekable();
        let mut counts: Vec<Count> = Vec::with_capacity(old.len() + old.len() / 8);
        for same in self.fresh.chunk_by(|a, b| a == b) {
            let key = same[0];
            while let Some(count) = old.next_if(|count| count.key < key) {
                counts.push(count);
            }
            let known = old.next_if(|count| count.key == key).map_or(0, |count| count.count);
            let more = u32::try_from(same.len()).unwrap_or(u32::MAX);
            let count = known.saturating_add(more);
            counts.push(Count { key, count });
        }
        counts.extend(old);
        self.counts = counts;
        self.fresh.clear();
    }

    /// Sort what was written down: by the lowest digits first, which takes a tenth of what comparing takes.
    fn sort(&mut self) {
        self.sorted.resize(self.fresh.len(), Key(0));
        for digit in 0..DIGITS {
            let of = |key: Key| (key.0 >> (digit * DIGIT_BITS)) as usize % (1 << DIGIT_BITS);
            let mut places = [0; 1 << DIGIT_BITS];
            for key in &self.fresh {
                places[of(*key)] += 1;
            }
            let mut before = 0;
            for place in &mut places {
                before += std::mem::replace(place, before);
            }
            for key in &self.fresh {
                let place = &mut places[of(*key)];
                self.sorted[*place] = *key;
                *place += 1;
            }
            std::mem::swap(&mut self.fresh, &mut self.sorted);
        }
    }

    /// The message of a row whose longest time was `max` s, if there are enough. What is not counted yet is left out.
    pub fn message(&self, row: u32, max: f64) -> Option<v1::ResponseTimes> {
        let from = self.counts.partition_point(|count| count.key.row() < row);
        let length = self.counts[from..].partition_point(|count| count.key.row() == row);
        let counts = &self.counts[from..from + length];
        let count = counts.iter().map(|count| u64::from(count.count)).sum();
        let rank = |percent| rank(counts, count, percent, max);
        (count >= LEAST).then(|| v1::ResponseTimes {
            count,
            p50_seconds: rank(50),
            p90_seconds: rank(90),
            p95_seconds: rank(95),
            p99_seconds: rank(99),
            max_seconds: max,
            buckets: counts
                .iter()
                .map(|count| v1::TimeBucket {
                    from_seconds: lower(count.key.bucket()),
                    to_seconds: lower(count.key.bucket() + 1),
                    count: u64::from(count.count),
                })
                .collect(),
        })
    }
}

/// Nearest rank of `all`: the middle of its bucket, s.
fn rank(counts: &[Count], all: u64, percent: u64, max: f64) -> f64 {
    let rank = (all * percent).div_ceil(100).max(1);
    let mut below = 0;
    let at = counts.iter().find(|count| {
        below += u64::from(count.count);
        below >= rank
    });
    at.map_or(max, |count| {
        ((lower(count.key.bucket()) + lower(count.key.bucket() + 1)) / 2.0).min(max)
    })
}

/// Where a bucket begins, s.
fn lower(bucket: u32) -> f64 {
    f64::from(f32::from_bits(bucket << SHIFT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the sorted times, of two rows that were counted in between.
        #[test]
        fn ranks_are_near(times in prop::collection::vec(1e-6..100f64, 10..300), other in prop::collection::vec(1e-6..100f64, 0..50), settled in 0..300usize) {
            let mut percentiles = Percentiles::default();
            for i in 0..times.len().max(other.len()) {
                times.get(i).into_iter().for_each(|time| percentiles.add(7, *time));
                other.get(i).into_iter().for_each(|time| percentiles.add(8, *time));
                if i % 300 == settled {
                    percentiles.settle();
                }
            }
            percentiles.settle();
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            let max = sorted[sorted.len() - 1];
            let message = percentiles.message(7, max).expect("ten or more");
            let told = [(50, message.p50_seconds), (90, message.p90_seconds), (95, message.p95_seconds), (99, message.p99_seconds)];
            for (percent, told) in told {
                let exact = sorted[(sorted.len() * percent).div_ceil(100) - 1];
                prop_assert!((told / exact - 1.0).abs() < 0.0162, "{percent}: {told} for {exact}");
            }
            prop_assert_eq!(message.max_seconds, max);
            prop_assert_eq!(message.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), times.len() as u64);
            let inside = |bucket: &v1::TimeBucket| {
                let range = bucket.from_seconds..bucket.to_seconds;
                times.iter().filter(|time| range.contains(&f64::from(**time as f32))).count() as u64
            };
            prop_assert!(message.buckets.iter().all(|bucket| inside(bucket) == bucket.count));
            prop_assert_eq!(percentiles.message(8, 100.0).is_some(), other.len() as u64 >= LEAST);
        }
    }

    #[test]
    fn few_times_have_no_percentiles() {
        let mut percentiles = Percentiles::default();
        for _ in 1..LEAST {
            percentiles.add(0, 0.0);
        }
        percentiles.settle();
        assert!(percentiles.message(0, 0.0).is_none());
        percentiles.add(0, 0.0);
        percentiles.settle();
        assert_eq!(
            percentiles.message(0, 0.0).map(|m| (m.p99_seconds, m.buckets.len())),
            Some((0.0, 1))
        );
    }
}
