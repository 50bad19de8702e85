//! Round trips of both directions of a flow: exact while they are few, a histogram after that.

use crate::seq::before;
use weir_record::INTERVAL_RTT_NS;

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
const INTERVAL_UNIT: f64 = INTERVAL_RTT_NS as f64 * 1e-9;

/// Round trips are shorter, ns. The engine's are below half of it, the time limit (`docs/src/flow-engine.md` 4.6).
pub(crate) const LONGEST: u64 = 1 << 39;

/// Samples of either direction. Seconds are `f32`: 24 bits, better than 1 ns up to 16 ms and 6 × 10⁻⁸
/// of the value beyond.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrips {
    /// Smallest so far; infinite before there is one.
    min: [f32; 2],
    /// From the second sample of a direction on; until then `min` is the only one.
    more: Option<Box<[More; 2]>>,
}

/// What directions have of which one has more than one sample.
#[derive(Clone, Debug)]
struct More {
    samples: Samples,
    count: u32,
    /// When the last sample of data ended, as [`short`] has it, until a block tells whether data of the receiver ended it; 0: it did, or a
    /// timer may have.
    unsure: u32,
    /// That sample, and the sum of those that ended so and by no data, s, and how many.
    pending: f32,
    at_once: (f32, u32),
    /// When the last sample ended after which nothing was in flight, TAI ns, until a block of the receiver comes; 0: none did.
    whole: u64,
    /// The same, whatever came then.
    all: u64,
    /// Of the block of data that has not ended.
    open: Option<Open>,
    /// Smallest sample, s; infinite before there is one. An INTERVAL may have told a smaller one.
    min: f32,
}

/// A block that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// The ACK of the first sample in it, and when that came, TAI ns.
    pub ack: u32,
    pub since: u64,
    /// What passed since then has been told piece by piece.
    pub told: bool,
}

/// All samples; as many of them are valid as were counted.
#[derive(Clone, Debug)]
enum Samples {
    Few([f32; FEW]),
    Many(Box<[f32; EXACT]>),
    Histogram(Box<[u32; BUCKETS]>),
}

/// What is known of the round trip between the tap and a side, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    pub least: u64,
    pub most: u64,
}

impl Trip {
    /// No answer comes so soon.
    pub const fn is_too_soon(self, wait: u64) -> bool {
        wait < self.least - self.least / 5
    }
}

impl Default for RoundTrips {
    fn default() -> Self {
        Self {
            min: [f32::INFINITY; 2],
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
    #[inline]
    pub fn sample(&mut self, side: usize, ns: u64) {
        if ns >= LONGEST {
            return;
        }
        let seconds = (ns as f64 / 1e9) as f32;
        let min = &mut self.min[side & 1];
        if self.more.is_none() && *min == f32::INFINITY {
            *min = seconds;
        } else {
            self.make_more()[side & 1].add(seconds);
            let min = &mut self.min[side & 1];
            *min = least(*min, seconds);
        }
    }

    /// The sample just made is one of data, and ended at `time`. `soon`: no timer of an ACK was in it; `whole`: nothing was in flight then.
    #[inline]
    pub fn of_data(&mut self, side: usize, (time, ns): (u64, u64), soon: bool, whole: bool) {
        let more = &mut self.make_more()[side & 1];
        more.was_bare();
        if soon {
            (more.unsure, more.pending) = (short(time), (ns as f64 / 1e9) as f32);
        }
        more.whole = if whole { time } else { 0 };
        more.all = more.whole;
    }

    /// A block of the receiver of `side`'s data began to pass at `time`. A response is sent when its application has it: a sample
    /// that it ended is longer than the path's round trip. One that ended before it was not ended by data. Returns when an ACK of all
    /// data passed by itself since the block before.
    #[inline]
    pub fn response(&mut self, side: usize, time: u64) -> Option<u64> {
        let more = &mut self.more.as_mut()?[side & 1];
        if more.unsure != 0 && !before(more.unsure, short(time)) {
            more.unsure = 0;
        }
        more.was_bare();
        let whole = std::mem::take(&mut more.whole);
        (whole != 0 && whole < time).then_some(whole)
    }

    /// Data of `side` was acknowledged up to `ack`: the block that it is of, while samples of it are kept.
    pub fn in_block(&mut self, side: usize, ack: u32, time: u64) -> Option<&mut Open> {
        let first = Open {
            ack,
            since: time,
            told: false,
        };
        let more = self.more.as_mut()?;
        Some(more[side & 1].open.get_or_insert(first))
    }

    /// A block of `side` has ended.
    #[inline]
    pub fn block(&mut self, side: usize) -> Option<Open> {
        self.more.as_mut()?[side & 1].open.take()
    }

    /// When the last ACK of data of `side` came, if nothing was in flight then, and its round trip, ns, while samples are few.
    pub fn last_whole(&self, side: usize) -> Option<(u64, Option<u64>)> {
        let more = &self.more.as_ref()?[side & 1];
        let last = (more.count as usize).checked_sub(1).and_then(|n| more.exact().get(n));
        let rtt = last.map(|seconds| (f64::from(*seconds) * 1e9) as u64);
        (more.whole != 0).then_some((more.whole, rtt))
    }

    /// When the last data of `side` was acknowledged by an ACK that left nothing in flight.
    pub fn all_acknowledged(&self, side: usize) -> Option<u64> {
        let all = self.more.as_ref()?[side & 1].all;
        (all != 0).then_some(all)
    }

    /// No more blocks will come.
    pub fn close(&mut self) {
        for more in self.more.iter_mut().flat_map(|more| more.iter_mut()) {
            more.was_bare();
        }
    }

    /// Whether ACKs that were no responses have timed data.
    #[inline]
    pub fn is_bare(&self, side: usize) -> bool {
        self.more.as_ref().is_some_and(|more| more[side & 1].at_once.1 > 0)
    }

    /// By how much the round trips that neither an application nor a timer of its receiver was in were longer than the smallest, on average, s.
    pub fn longer(&self, side: usize) -> Option<f64> {
        let (sum, count) = self.more.as_ref()?[side & 1].at_once;
        let mean = (count > 0).then(|| f64::from(sum) / f64::from(count))?;
        Some((mean - self.min(side)?).max(0.0))
    }

    /// The smallest sample of an interval in its units; it may be one that got no RTT record. The
    /// unit is cut off, so it counts only when it is below the smallest sample by a whole unit.
    pub fn interval_min(&mut self, side: usize, units: u32) {
        let above = f64::from(units + 1) * INTERVAL_UNIT;
        if self.min(side).is_none_or(|min| above <= min) {
            self.make_more();
            self.min[side & 1] = (f64::from(units) * INTERVAL_UNIT) as f32;
        }
    }

    fn make_more(&mut self) -> &mut [More; 2] {
        self.more.get_or_insert_with(|| Box::new(self.min.map(More::new)))
    }

    /// Smallest round trip, s.
    #[inline]
    pub fn min(&self, side: usize) -> Option<f64> {
        let min = self.min[side & 1];
        (min != f32::INFINITY).then(|| f64::from(min))
    }

    /// Brings the samples into the cache.
    pub fn warm(&self) -> u64 {
        let [one, other] = self
            .more
            .as_deref()
            .map_or([0; 2], |more| [more[0].count, more[1].count]);
        u64::from(one ^ other)
    }

    /// How many samples there are.
    pub fn samples(&self, side: usize) -> u32 {
        match &self.more {
            Some(more) => more[side & 1].count,
            None => u32::from(self.min[side & 1] != f32::INFINITY),
        }
    }

    /// Min, nearest-rank median and 95th percentile.
    pub fn summary(&self, side: usize) -> Summary {
        let samples = u64::from(self.samples(side));
        let (median, p95) = match self.more.as_deref().map(|more| &more[side & 1]) {
            Some(more) if samples > EXACT as u64 => {
                (more.bucket_rank(rank(samples, 50)), more.bucket_rank(rank(samples, 95)))
            }
            more => {
                let all = more.map_or(&self.min[side & 1..=side & 1], More::exact);
                let n = (samples as usize).min(all.len());
                let mut exact = [0f32; EXACT];
                exact[..n].copy_from_slice(&all[..n]);
                exact[..n].sort_unstable_by(f32::total_cmp);
                let at = |p| (n > 0).then(|| f64::from(exact[rank(samples, p) as usize]));
                (at(50), at(95))
            }
        };
        Summary {
            min: self.min(side),
            median,
            p95,
            samples,
        }
    }
}

/// A time in µs (nearly), of which the difference tells for half an hour what came first; never 0.
const fn short(time: u64) -> u32 {
    (time >> 10) as u32 | 1
}

/// None is NaN: a comparison instead of `f32::min` is one instruction.
fn least(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

impl More {
    /// With the only sample, or infinite.
    fn new(first: f32) -> Self {
        let mut samples = [f32::NAN; FEW];
        samples[0] = first;
        Self {
            samples: Samples::Few(samples),
            count: u32::from(first != f32::INFINITY),
            unsure: 0,
            pending: 0.0,
            at_once: (0.0, 0),
            whole: 0,
            all: 0,
            open: None,
            min: first,
        }
    }

    /// No data ended the sample in question.
    fn was_bare(&mut self) {
        if std::mem::take(&mut self.unsure) != 0 {
            let (sum, count) = &mut self.at_once;
            (*sum, *count) = (*sum + self.pending, count.saturating_add(1));
        }
    }

    fn add(&mut self, seconds: f32) {
        let n = self.count as usize;
        self.count = self.count.saturating_add(1);
        self.min = least(self.min, seconds);
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
        assert_eq!(r.summary(1), Summary::default());
        r.sample(1, 152_000);
        let s = r.summary(1);
        assert!((s.min.unwrap_or(0.0) - 0.000_152).abs() < 1e-9);
        for i in 1..=20u64 {
            r.sample(1, i * 1_000_000);
        }
        let s = r.summary(1);
        assert_eq!(s.samples, 21);
        assert!((s.median.unwrap_or(0.0) - 0.010).abs() < 1e-8, "{s:?}");
        assert!((s.p95.unwrap_or(0.0) - 0.019).abs() < 1e-8, "{s:?}");
        assert_eq!(r.summary(0), Summary::default());
    }

    /// A request that comes 5 ms later than its client's ACK could is its application's time, and an ACK that a timer let go is the timer's.
    #[test]
    fn only_acks_at_once_tell_how_much_longer_the_path_was() {
        const MS: u64 = 1_000_000;
        let mut r = RoundTrips::default();
        let mut sample = |time: u64, trip: u64, soon: bool, asked: bool| {
            r.sample(1, trip * MS);
            r.of_data(1, (time * MS, trip * MS), soon, true);
            r.response(1, (if asked { time } else { time + 1 }) * MS);
        };
        sample(10, 2, true, false);
        sample(20, 7, true, true);
        sample(30, 42, false, false);
        sample(40, 4, true, false);
        let longer = r.longer(1).unwrap_or(0.0);
        assert!((longer - 0.001).abs() < 1e-8, "{longer}");
        assert_eq!(r.longer(0), None);
    }

    #[test]
    fn many_samples_are_within_the_stated_error() {
        let mut r = RoundTrips::default();
        for i in 1..=10_000u64 {
            r.sample(1, i * 10_000);
        }
        let s = r.summary(1);
        assert!((s.median.unwrap_or(0.0) / 0.05 - 1.0).abs() < 0.022, "{s:?}");
        assert!((s.p95.unwrap_or(0.0) / 0.095 - 1.0).abs() < 0.022, "{s:?}");
        assert!((s.min.unwrap_or(0.0) - 1e-5).abs() < 1e-9);
    }

    #[test]
    fn the_interval_minimum_counts_only_when_it_is_lower() {
        let mut r = RoundTrips::default();
        r.sample(1, 152_000);
        r.interval_min(1, 148); // 151.552 us: the same sample, cut
        assert!((r.min(1).unwrap_or(0.0) - 0.000_152).abs() < 1e-9);
        r.interval_min(1, 100);
        assert!((r.min(1).unwrap_or(0.0) - 102.4e-6).abs() < 1e-9);
        let s = r.summary(1);
        assert!(
            s.samples == 1 && (s.median.unwrap_or(0.0) - 0.000_152).abs() < 1e-9,
            "{s:?}"
        );
        // Without a sample there is nothing but the minimum.
        r.interval_min(0, 100);
        assert_eq!((r.samples(0), r.summary(0).median), (0, None));
        r.sample(0, 200_000);
        assert!(r.summary(0).min < r.summary(0).median);
    }

    #[test]
    fn extremes_do_not_panic() {
        let mut r = RoundTrips::default();
        for _ in 0..100 {
            r.sample(1, 0);
            r.sample(1, u64::MAX);
            r.sample(1, LONGEST - 1);
        }
        assert!(r.summary(1).median.is_some());
    }
}
