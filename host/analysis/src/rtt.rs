//! Round trips of one direction: exact while they are few, a histogram after that.

/// Samples kept in the flow itself.
const INLINE: usize = 1;
/// Samples kept exactly in all.
const EXACT: usize = 32;
/// Buckets of an octave: a bucket is 4.4 % wide, its middle at most 2.2 % from any sample in it.
const PER_OCTAVE: f32 = 16.0;
/// The histogram begins at 2⁻²⁰ s (about 1 µs); 512 buckets of 1/16 octave reach 2¹² s.
const FIRST_OCTAVE: f32 = -20.0;
const BUCKETS: usize = 512;
/// Unit of `INTERVAL.rtt_min`, s.
const INTERVAL_UNIT: f64 = 1024e-9;

/// Longest round trip, ns (`docs/src/flow-engine.md` 4.6).
pub(crate) const LONGEST: u64 = 1 << 39;

/// Samples of one direction. Seconds are `f32`: 24 bits, better than 1 ns up to 16 ms and 6 × 10⁻⁸
/// of the value beyond.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrips {
    few: [f32; INLINE],
    more: Option<Box<More>>,
    count: u32,
}

/// What directions with more than a few samples have.
#[derive(Clone, Debug)]
struct More {
    /// All samples up to [`EXACT`], then none.
    exact: Vec<f32>,
    histogram: Vec<u32>,
    /// Smallest sample, s; NaN before there is one.
    min: f32,
    /// Smallest by INTERVAL, s; NaN when there is none below the samples.
    floor: f32,
}

impl Default for More {
    fn default() -> Self {
        Self {
            exact: Vec::new(),
            histogram: Vec::new(),
            min: f32::NAN,
            floor: f32::NAN,
        }
    }
}

impl Default for RoundTrips {
    fn default() -> Self {
        Self {
            few: [f32::NAN; INLINE],
            more: None,
            count: 0,
        }
    }
}

/// What is reported of the samples, s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Summary {
    pub min: Option<f64>,
    pub median: Option<f64>,
    pub p95: Option<f64>,
    pub samples: u64,
}

impl RoundTrips {
    /// A sample of an RTT record, ns. The engine makes none of [`LONGEST`] and more.
    pub fn sample(&mut self, ns: u64) {
        if ns >= LONGEST {
            return;
        }
        let seconds = (ns as f64 / 1e9) as f32;
        let n = self.count as usize;
        self.count = self.count.saturating_add(1);
        if n < INLINE {
            self.few[n] = seconds;
            return;
        }
        let more = self.more.get_or_insert_default();
        if n == INLINE {
            more.exact.reserve_exact(EXACT / 4);
            more.exact.extend(self.few);
            more.min = self.few[0];
        }
        more.min = more.min.min(seconds);
        if n < EXACT {
            more.exact.push(seconds);
            return;
        }
        if more.histogram.is_empty() {
            more.histogram = vec![0; BUCKETS];
            for s in std::mem::take(&mut more.exact) {
                more.histogram[bucket(s)] += 1;
            }
        }
        let count = &mut more.histogram[bucket(seconds)];
        *count = count.saturating_add(1);
    }

    /// The smallest sample of an interval in its units; it may be one that got no RTT record. The
    /// unit is cut off, so it counts only when it is below the smallest sample by a whole unit.
    pub fn interval_min(&mut self, units: u32) {
        let value = (f64::from(units) * INTERVAL_UNIT) as f32;
        let above = f64::from(units + 1) * INTERVAL_UNIT;
        if self.min().is_none_or(|min| above <= min) {
            self.more.get_or_insert_default().floor = value;
        }
    }

    /// Smallest round trip, s.
    pub fn min(&self) -> Option<f64> {
        // min ignores NaN, which stands for no sample.
        let mut min = self.few[0];
        if let Some(more) = &self.more {
            min = min.min(more.min).min(more.floor);
        }
        (!min.is_nan()).then(|| f64::from(min))
    }

    /// Min, nearest-rank median and 95th percentile.
    pub fn summary(&self) -> Summary {
        let samples = u64::from(self.count);
        let (median, p95) = match &self.more {
            Some(more) if !more.histogram.is_empty() => {
                (more.bucket_rank(rank(samples, 50)), more.bucket_rank(rank(samples, 95)))
            }
            more => {
                let mut exact = [0f32; EXACT];
                let all = more.as_ref().map(|more| &more.exact[..]).filter(|all| !all.is_empty());
                let from = all.unwrap_or(&self.few);
                let n = (self.count as usize).min(from.len());
                exact[..n].copy_from_slice(&from[..n]);
                exact[..n].sort_unstable_by(f32::total_cmp);
                let at = |p| (n > 0).then(|| f64::from(exact[rank(samples, p) as usize]));
                (at(50), at(95))
            }
        };
        Summary {
            min: self.min(),
            median,
            p95,
            samples,
        }
    }
}

impl More {
    /// Middle of the bucket that holds the sample of this rank.
    fn bucket_rank(&self, rank: u64) -> Option<f64> {
        let mut below = 0u64;
        let at = self.histogram.iter().position(|count| {
            below += u64::from(*count);
            below > rank
        })?;
        let octave = FIRST_OCTAVE + (at as f32 + 0.5) / PER_OCTAVE;
        // The smallest sample is known exactly.
        Some(f64::from(octave.exp2()).max(f64::from(self.min)))
    }
}

/// Nearest rank from 0 (the sample at or above which `percent` of the samples end).
fn rank(samples: u64, percent: u64) -> u64 {
    (samples * percent).div_ceil(100).saturating_sub(1)
}

fn bucket(seconds: f32) -> usize {
    // A float to usize cast saturates, also below 0.
    (((seconds.log2() - FIRST_OCTAVE) * PER_OCTAVE) as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_exact() {
        let mut r = RoundTrips::default();
        assert_eq!(r.summary(), Summary::default());
        r.sample(152_000);
        let s = r.summary();
        assert!((s.min.unwrap_or(0.0) - 0.000_152).abs() < 1e-9);
        for i in 1..=20u64 {
            r.sample(i * 1_000_000);
        }
        let s = r.summary();
        assert_eq!(s.samples, 21);
        assert!((s.median.unwrap_or(0.0) - 0.010).abs() < 1e-8, "{s:?}");
        assert!((s.p95.unwrap_or(0.0) - 0.019).abs() < 1e-8, "{s:?}");
    }

    #[test]
    fn many_samples_are_within_the_stated_error() {
        let mut r = RoundTrips::default();
        for i in 1..=10_000u64 {
            r.sample(i * 10_000);
        }
        let s = r.summary();
        assert!((s.median.unwrap_or(0.0) / 0.05 - 1.0).abs() < 0.022, "{s:?}");
        assert!((s.p95.unwrap_or(0.0) / 0.095 - 1.0).abs() < 0.022, "{s:?}");
        assert!((s.min.unwrap_or(0.0) - 1e-5).abs() < 1e-9);
    }

    #[test]
    fn the_interval_minimum_counts_only_when_it_is_lower() {
        let mut r = RoundTrips::default();
        r.sample(152_000);
        r.interval_min(148); // 151.552 us: the same sample, cut
        assert!((r.min().unwrap_or(0.0) - 0.000_152).abs() < 1e-9);
        r.interval_min(100);
        assert!((r.min().unwrap_or(0.0) - 102.4e-6).abs() < 1e-9);
    }

    #[test]
    fn extremes_do_not_panic() {
        let mut r = RoundTrips::default();
        for _ in 0..100 {
            r.sample(0);
            r.sample(u64::MAX);
            r.sample(LONGEST - 1);
        }
        assert!(r.summary().median.is_some());
    }
}
