//! How long something took, many times: a histogram of fine logarithmic buckets.

use std::sync::LazyLock;

use crate::scale::Scale;

/// Buckets of an octave: a bucket is 2.2 % wide.
pub(crate) const PER_OCTAVE: f64 = 32.0;
/// The first begins at 2^-14 s (61 µs); 20 octaves reach 64 s.
const FIRST_OCTAVE: f64 = -14.0;
const BUCKETS: usize = 640;

static SCALE: LazyLock<Scale> =
    LazyLock::new(|| Scale::new(FIRST_OCTAVE.exp2() * 1e9, PER_OCTAVE as u8, BUCKETS as u16));

/// Durations by bucket; shorter and longer ones are in the first and the last.
#[derive(Clone, Debug)]
pub(crate) struct Durations {
    counts: Box<[u32; BUCKETS]>,
    count: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            count: 0,
        }
    }
}

/// Durations that stand out of what lies around them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Peak {
    /// Middle, s.
    pub seconds: f64,
    /// How many.
    pub count: u64,
    /// How many of them would be there without the peak.
    pub around: f64,
}

impl std::ops::AddAssign<&Self> for Durations {
    fn add_assign(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *own = own.saturating_add(*more);
        }
        self.count += other.count;
    }
}

impl Durations {
    /// Another, ns.
    pub fn add(&mut self, ns: u64) {
        let bucket = SCALE.bucket(ns);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.count += 1;
    }

    /// How many.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// s at or below which a share of them lies; at most 1.1 % off.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += u64::from(*count);
            below >= rank
        })?;
        Some(middle(at as f64 + 0.5))
    }

    /// How many lie between two (s), by whole buckets.
    pub fn between(&self, from: f64, to: f64) -> u64 {
        let range = bucket(from)..=bucket(to);
        self.counts[range].iter().map(|count| u64::from(*count)).sum()
    }

    /// Two buckets (4.4 %) in which there are `least` or more, four times as many as in the busier of the quarter
    /// octaves below and above, and six standard deviations more.
    pub fn peaks(&self, least: u64) -> Vec<Peak> {
        let sum = |from: usize, to: usize| -> u64 {
            let range = from.min(BUCKETS)..to.min(BUCKETS);
            self.counts[range].iter().map(|count| u64::from(*count)).sum()
        };
        let mut peaks: Vec<(usize, Peak)> = Vec::new();
        for (at, pair) in (SIDE + GAP..).zip(self.counts[SIDE + GAP..BUCKETS - 1].windows(2)) {
            let count = u64::from(pair[0]) + u64::from(pair[1]);
            if count < least {
                continue;
            }
            let below = sum(at - GAP - SIDE, at - GAP);
            let above = sum(at + 2 + GAP, at + 2 + GAP + SIDE);
            let around = below.max(above) as f64 * 2.0 / SIDE as f64;
            let is_peak = count as f64 >= 4.0 * around && count as f64 - around >= 6.0 * (around + 1.0).sqrt();
            if !is_peak {
                continue;
            }
            let (first, second) = (f64::from(self.counts[at]), f64::from(self.counts[at + 1]));
            let place = at as f64 + (first * 0.5 + second * 1.5) / (first + second);
            let peak = Peak {
                seconds: middle(place),
                count,
                around,
            };
            match peaks.last_mut() {
                // Of windows that overlap, or lie on one's slope, the highest.
                Some((last, old)) if at - *last <= 2 + GAP => {
                    if count > old.count {
                        (*last, *old) = (at, peak);
                    }
                }
                _ => peaks.push((at, peak)),
            }
        }
        peaks.into_iter().map(|(_, peak)| peak).collect()
    }
}

/// Buckets between a peak and what is compared, and how many are.
const GAP: usize = 2;
const SIDE: usize = 8;

/// The bucket of a duration, s.
fn bucket(seconds: f64) -> usize {
    let octave = seconds.log2() - FIRST_OCTAVE;
    // A float to usize cast saturates, also below 0.
    ((octave * PER_OCTAVE) as usize).min(BUCKETS - 1)
}

/// s at a place in the buckets.
fn middle(place: f64) -> f64 {
    (FIRST_OCTAVE + place / PER_OCTAVE).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_a_logarithm() {
        crate::scale::tests::is_the_same(&SCALE, |ns| bucket(ns as f64 / 1e9));
    }

    #[test]
    fn quantiles_are_near_and_peaks_stand_out() {
        let mut durations = Durations::default();
        // 1 to 101 ms evenly, and a hundred of 300 ms.
        for i in 0..10_000 {
            durations.add(1_000_000 + i * 10_000);
        }
        assert!(
            durations.peaks(10).is_empty(),
            "an even spread has no peak: {:?}",
            durations.peaks(10)
        );
        for i in 0..100 {
            durations.add(300_000_000 + i * 30_000);
        }
        let median = durations.quantile(0.5).expect("some");
        assert!((median / 0.0515 - 1.0).abs() < 0.02, "{median}");
        assert_eq!((durations.between(0.2, 0.4), durations.between(0.2, 0.25)), (100, 0));
        let peaks = durations.peaks(10);
        assert_eq!(peaks.len(), 1, "{peaks:?}");
        assert!(
            (peaks[0].seconds / 0.3015 - 1.0).abs() < 0.015 && peaks[0].count == 100,
            "{peaks:?}"
        );
    }
}
