//! Round trips of one direction: exact while they are few, a histogram after that.

/// Samples that most connections do not exceed.
const FEW: usize = 8;
/// Samples kept exactly.
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
    /// Infinite before there is one.
    first: f32,
    count: u32,
    more: Option<Box<More>>,
}

/// What directions with more than one sample have.
#[derive(Clone, Debug)]
struct More {
    samples: Samples,
    /// Smallest sample, s; infinite before there is one.
    min: f32,
    /// Smallest by INTERVAL, s; infinite when there is none below the samples.
    floor: f32,
}

/// All samples; as many of them are valid as were counted.
#[derive(Clone, Debug)]
enum Samples {
    Few([f32; FEW]),
    Many(Box<[f32; EXACT]>),
    Histogram(Box<[u32; BUCKETS]>),
}

impl Default for More {
    fn default() -> Self {
        Self {
            samples: Samples::Few([f32::NAN; FEW]),
            min: f32::INFINITY,
            floor: f32::INFINITY,
        }
    }
}

impl Default for RoundTrips {
    fn default() -> Self {
        Self {
            first: f32::INFINITY,
            count: 0,
            more: None,
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
        if n == 0 {
            self.first = seconds;
            return;
        }
        let first = self.first;
        let more = self.more.get_or_insert_default();
        if n == 1 {
            more.add(0, first);
        }
        more.add(n, seconds);
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

    /// Samples so far.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Brings the samples into the cache.
    pub fn warm(&self) -> u32 {
        self.more.as_ref().map_or(0, |more| more.min.to_bits())
    }

    /// Smallest round trip, s.
    #[inline]
    pub fn min(&self) -> Option<f64> {
        // None is NaN: a comparison instead of `f32::min` is one instruction.
        let least = |a: f32, b: f32| if b < a { b } else { a };
        let min = match &self.more {
            Some(more) => least(least(self.first, more.min), more.floor),
            None => self.first,
        };
        (min != f32::INFINITY).then(|| f64::from(min))
    }

    /// How many samples there are.
    pub const fn samples(&self) -> u32 {
        self.count
    }

    /// Min, nearest-rank median and 95th percentile.
    pub fn summary(&self) -> Summary {
        let samples = u64::from(self.count);
        let (median, p95) = match self.more.as_deref() {
            Some(more) if samples > EXACT as u64 => {
                (more.bucket_rank(rank(samples, 50)), more.bucket_rank(rank(samples, 95)))
            }
            more => {
                let first = [self.first];
                let all = more.filter(|_| samples > 1).map_or(&first[..], More::exact);
                let n = (samples as usize).min(all.len());
                let mut exact = [0f32; EXACT];
                exact[..n].copy_from_slice(&all[..n]);
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
    /// Sample number `n`, from 0.
    fn add(&mut self, n: usize, seconds: f32) {
        self.min = self.min.min(seconds);
        if n == FEW {
            let mut many = Box::new([0.0; EXACT]);
            many[..FEW].copy_from_slice(self.exact());
            self.samples = Samples::Many(many);
        } else if n == EXACT {
            let mut histogram = Box::new([0; BUCKETS]);
            for sample in self.exact() {
                histogram[bucket(*sample)] += 1;
            }
            self.samples = Samples::Histogram(histogram);
        }
        match &mut self.samples {
            Samples::Few(exact) => exact[n] = seconds,
            Samples::Many(exact) => exact[n] = seconds,
            Samples::Histogram(counts) => {
                let count = &mut counts[bucket(seconds)];
                *count = count.saturating_add(1);
            }
        }
    }

    /// The samples themselves, while they are few.
    fn exact(&self) -> &[f32] {
        match &self.samples {
            Samples::Few(exact) => exact,
            Samples::Many(exact) => &exact[..],
            Samples::Histogram(_) => &[],
        }
    }

    /// Middle of the bucket that holds the sample of this rank.
    fn bucket_rank(&self, rank: u64) -> Option<f64> {
        let Samples::Histogram(counts) = &self.samples else {
            return None;
        };
        let mut below = 0u64;
        let at = counts.iter().position(|count| {
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
