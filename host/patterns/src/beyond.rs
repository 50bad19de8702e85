//! The knee of a service whose load lies beyond it: a level that the work done a second does not leave, and the time
//! that a unit of work takes while there are workers to spare.
//!
//! When a load begins, or comes back after a pause, the first units of work find few others and take as long as they
//! do below the knee, even if all of the load that follows lies beyond it. Rate times that time is the knee (Little's
//! law). Only units within a short time of those beyond the knee count, so that slow changes of the service are none.

use weir_analysis::seconds;

use crate::capacity::{Ceiling, FLAT, MORE, PAST, RESAMPLES, SEED, Slice, Unit, growth, is_flat, known, middle_95};
use crate::random::Random;
use crate::rank::median;
use crate::services::Service;
use crate::steps::levels;

/// Units that found few others: so many at least, this share of the knee at most.
const FEW: u32 = 20;
pub(crate) const SPARE: f64 = 0.8;
/// They are no more than so long away from units beyond the knee, s or times of a unit.
const NEAR: f64 = 5.0;
const NEAR_TIMES: f64 = 10.0;
/// Those that found less than half of it take as long as the others, by this factor.
const EVEN: f64 = 1.25;
/// Units beyond the knee take longer at least by this factor.
const LONGER: f64 = 1.2;
/// Sizes of the requests of both: if they differ more, they are other requests.
const ALIKE: f64 = 1.33;
/// Both halves of the time beyond the knee have the same rate within this factor.
const STEADY: f64 = 1.2;
/// Smallest knee: those that units find are whole numbers.
pub(crate) const SMALLEST: f64 = 8.0;
/// Slices beyond the knee at least.
pub(crate) const ABOVE: usize = 8;
/// Levels beyond the knee differ by this factor: else how the rate grows between them is not known.
pub(crate) const LEVELS: f64 = 1.3;
/// Confidence where it is not known.
const UNKNOWN: f64 = 0.8;
/// The interval may be so wide, against the knee.
const WIDEST: f64 = 0.5;
/// Rounds until knee, rate and time of a unit agree.
const ROUNDS: usize = 8;

/// The ceiling, and what it rests on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beyond {
    pub ceiling: Ceiling,
    /// Units that found few others.
    pub units: u32,
    /// 95 % interval of the knee.
    pub interval: (f64, f64),
    /// Least number in progress beyond it.
    pub least: f64,
    pub confidence: f64,
}

/// Units that began in the same short time.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// s since the first.
    time: f64,
    /// Most in progress then.
    found: f64,
    units: u32,
    /// Mean, s.
    stay: f64,
    /// Bytes of the requests.
    asked: u64,
}

/// See the module.
pub(crate) fn beyond(service: &Service, unit: Unit, slices: &[Slice]) -> Option<Beyond> {
    let all = begun(service, unit);
    let busy: Vec<f64> = slices.iter().map(|slice| slice.progress).collect();
    let middle = median(&busy)?;
    let mut rate = median_rate(slices.iter().filter(|slice| slice.progress >= middle))?;
    // From those that found fewest on.
    let mut time = shortest(&all)?;
    let mut few = Vec::new();
    for _ in 0..ROUNDS {
        let knee = rate * time;
        few = spare(&all, knee, time);
        if few.iter().map(|begun| begun.units).sum::<u32>() < FEW {
            return None;
        }
        time = usual(&few)?;
        rate = median_rate(slices.iter().filter(|slice| slice.progress > PAST * rate * time))?;
    }
    let ceiling = Ceiling {
        knee: rate * time,
        rate,
        time,
    };
    let past: Vec<&Slice> = slices.iter().filter(|s| s.progress > PAST * ceiling.knee).collect();
    let (least, most) = range(&past)?;
    if ceiling.knee < SMALLEST
        || past.len() < ABOVE
        || most < MORE * ceiling.knee
        || !is_steady(&past)
        || !is_even(&few, &ceiling)
    {
        return None;
    }
    let late: Vec<Begun> = all.iter().filter(|b| b.found > PAST * ceiling.knee).copied().collect();
    let size = |of: &[Begun]| {
        of.iter().map(|b| b.asked as f64).sum::<f64>() / of.iter().map(|b| f64::from(b.units)).sum::<f64>()
    };
    let is_alike = unit == Unit::Visit || within(size(&few) / size(&late), ALIKE);
    if !is_alike || middle_stay(&late)? < LONGER * time {
        return None;
    }
    let is_spread = most > LEVELS * least;
    let growth = growth(&past);
    if is_spread && growth.0 >= FLAT {
        return None;
    }
    let is_known = is_spread && is_flat(growth);
    let knees = resampled(&past, &few);
    let (low, high) = middle_95(&knees);
    if high - low > WIDEST * ceiling.knee {
        return None;
    }
    // Beyond the knee in all likelihood, not just by its uncertainty.
    let past = knees.iter().filter(|knee| most >= MORE * **knee).count() as f64 / knees.len() as f64;
    let held = past.min(known(&knees, &ceiling));
    Some(Beyond {
        ceiling,
        units: few.iter().map(|begun| begun.units).sum(),
        interval: (low, high),
        least,
        confidence: if is_known { held } else { UNKNOWN * held },
    })
}

/// Least and most in progress, a tenth of the slices on either side apart.
pub(crate) fn range(slices: &[&Slice]) -> Option<(f64, f64)> {
    let mut busy: Vec<f64> = slices.iter().map(|slice| slice.progress).collect();
    busy.sort_unstable_by(f64::total_cmp);
    Some((*busy.get(busy.len() / 10)?, *busy.get(busy.len() * 9 / 10)?))
}

fn begun(service: &Service, unit: Unit) -> Vec<Begun> {
    let steps = |load: &crate::services::Load| unit.steps(load);
    let mut before = 0;
    let mut all = Vec::new();
    for (level, load) in levels(&service.load, steps).zip(service.load.iter()) {
        let (stay, units) = (unit.stay(load), steps(load).up);
        if units > 0 {
            all.push(Begun {
                time: seconds(level.start - service.load.start()),
                found: before.max(level.last) as f64,
                units,
                stay: seconds(stay) / f64::from(units),
                asked: load.asked,
            });
        }
        before = level.last;
    }
    all
}

/// How long the first [`FEW`] take of those that found fewest.
fn shortest(all: &[Begun]) -> Option<f64> {
    let mut sorted = all.to_vec();
    sorted.sort_by(|a, b| a.found.total_cmp(&b.found));
    let mut units = 0;
    let first = sorted.iter().position(|begun| {
        units += begun.units;
        units >= FEW
    })?;
    middle_stay(&sorted[..=first])
}

/// Those with workers to spare, not long before or after others without.
fn spare(all: &[Begun], knee: f64, time: f64) -> Vec<Begun> {
    let past: Vec<f64> = all.iter().filter(|b| b.found > PAST * knee).map(|b| b.time).collect();
    let near = NEAR.max(NEAR_TIMES * time);
    let is_near = |at: f64| {
        let next = past.partition_point(|time| *time < at);
        let around = &past[next.saturating_sub(1)..past.len().min(next + 1)];
        around.iter().any(|time| (time - at).abs() <= near)
    };
    all.iter()
        .filter(|begun| begun.found <= SPARE * knee && is_near(begun.time))
        .copied()
        .collect()
}

/// Median of the stays of those times that units found few others, each of which has its own: the host may sleep in
/// one of them.
fn usual(few: &[Begun]) -> Option<f64> {
    let times = few.chunk_by(|a, b| b.time - a.time <= NEAR);
    let each = times.filter_map(|few| {
        let units = few.iter().map(|begun| begun.units).sum();
        Some((middle_stay(few)?, units))
    });
    weighted(each.collect())
}

/// Median of the stays, by units.
fn middle_stay(of: &[Begun]) -> Option<f64> {
    weighted(of.iter().map(|begun| (begun.stay, begun.units)).collect())
}

/// The (lower) median of values that count so many times.
fn weighted(mut of: Vec<(f64, u32)>) -> Option<f64> {
    of.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: u32 = of.iter().map(|(_, times)| times).sum();
    let mut before = 0;
    let middle = of.iter().find(|(_, times)| {
        before += times;
        2 * before >= all
    })?;
    Some(middle.0)
}

pub(crate) fn median_rate<'a>(slices: impl Iterator<Item = &'a Slice>) -> Option<f64> {
    median(&slices.map(|slice| slice.rate).collect::<Vec<f64>>())
}

fn within(ratio: f64, factor: f64) -> bool {
    (1.0 / factor..=factor).contains(&ratio)
}

/// The rate is no matter of time.
pub(crate) fn is_steady(past: &[&Slice]) -> bool {
    let (first, second) = past.split_at(past.len() / 2);
    let of = |half: &[&Slice]| median_rate(half.iter().copied());
    of(first).zip(of(second)).is_some_and(|(a, b)| within(a / b, STEADY))
}

/// While there are workers to spare, it does not matter how many are busy.
fn is_even(few: &[Begun], ceiling: &Ceiling) -> bool {
    let (less, more): (Vec<Begun>, Vec<Begun>) = few.iter().partition(|b| b.found < SPARE / 2.0 * ceiling.knee);
    let both = middle_stay(&less).zip(middle_stay(&more));
    both.is_some_and(|(less, more)| within(more / less, EVEN))
}

/// Knees of samples drawn again from both, sorted.
fn resampled(past: &[&Slice], few: &[Begun]) -> Vec<f64> {
    let mut random = Random::new(SEED);
    let mut knees: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let rates: Vec<f64> = past.iter().map(|_| past[random.below(past.len())].rate).collect();
            let mut stays: Vec<Begun> = few.iter().map(|_| few[random.below(few.len())]).collect();
            stays.sort_by(|a, b| a.time.total_cmp(&b.time));
            Some(median(&rates)? * usual(&stays)?)
        })
        .collect();
    knees.sort_unstable_by(f64::total_cmp);
    knees
}
