//! CAPACITY_CEILING: more requests in progress, and no more answers a second.
//!
//! A service that does `C` units of work a second at most, each of which takes `R` when there is time to spare, does
//! `min(N / R, C)` with `N` in progress (asymptotic bounds: Denning and Buzen 1978, "The Operational Analysis of
//! Queueing Network Models", section 5); the knee is at `C · R`. The gradual bend is the Universal Scalability Law
//! (Gunther 2007, "Guerrilla Capacity Planning", chapter 4), told beside it. Where the rate grows on with the number
//! in progress there is no knee, and nothing is said. Of a load that lies beyond it, `beyond` tells the knee.
//!
//! Works on the slices of the services; no memory of its own.

use weir_analysis::{Group, count, decimal, finding, lasting, seconds, several};
use weir_messages::v1::Finding;

use crate::beyond::{self, LEVELS, SMALLEST, SPARE, beyond, is_steady, median_rate, range};
use crate::names::about;
use crate::random::Random;
use crate::rank::median;
use crate::services::Service;
use crate::sleep::ApplicationSleep;
use crate::steps::{Level, Steps, levels};
use crate::stops::Stops;
use crate::timeline::Timeline;

/// Units of work in a slice on average: their number is then known to 10 %.
const UNITS: f64 = 100.0;
/// Where all of the load lies beyond the knee, its rate is a median of all: they are known to 20 %.
const FEWER_UNITS: f64 = 25.0;
/// A slice is so long at least, and there are so many of them at least, ns.
const SHORTEST: u64 = 1_000_000_000;
const SLICES: u64 = 20;
/// Slices are put together by levels of the number in progress that grow by this factor; a level needs so many slices.
const LEVEL: f64 = 1.12;
const LEVEL_SLICES: usize = 2;
/// Slices needed with clearly less work than the ceiling, and with clearly more in progress than the knee.
const BELOW: usize = 4;
const ABOVE: usize = 5;
/// Less work: this share of the ceiling.
const LESS: f64 = 0.75;
/// A slice below the knee that has no level with others counts if its rate is within this share of the line.
const ALONG: f64 = 0.25;
/// Confidence at most where such slices were needed: resamples draw the same ones each time.
const ALONE: f64 = 0.7;
/// A slice has settled if its number in progress differs from that of the slice before by this share at most, or by so
/// many standard deviations of a Poisson number. What begins in one slice ends in the next: elsewhere the rate is that of
/// another number in progress.
const SETTLED: f64 = 0.25;
const SETTLED_SIGMAS: f64 = 3.0;
/// A limit below one at once is none; it is known to 10 %.
const ONE: f64 = 0.9;
/// More in progress: at least one level reaches this multiple of the knee, and slices count from `PAST` on.
pub(crate) const MORE: f64 = 1.3;
pub(crate) const PAST: f64 = 1.1;
/// Growth of the rate with the number in progress, as an exponent: 1 without a limit, 0 at the ceiling.
pub(crate) const FLAT: f64 = 0.25;
/// The exponent's standard errors that must fit below `BENT`.
const SIGMAS: f64 = 2.0;
const BENT: f64 = 0.5;
/// Far off: so many times the median distance from the line (three standard deviations, if it were chance).
const FAR_OFF: f64 = 4.45;
/// Of what waits beyond the knee, this share waits for the first of a response: else the network is slow, not the
/// service.
const UNANSWERED: f64 = 0.5;
/// So few at once vary by chance, and with them what is slow for another reason: the confidence at most with a knee below.
const FEW: f64 = 5.0;
const FEW_AT_MOST: f64 = 0.6;
/// The knee is known if a resample's is within this share of it.
const KNOWN: f64 = 0.1;
/// Of what is in progress more, this share came; and the confidence where nothing below the knee was seen.
const CAME: f64 = 0.67;
const AT_MOST: f64 = 0.7;
/// Resamples for the interval.
pub(crate) const RESAMPLES: usize = 200;
pub(crate) const SEED: u64 = 2015;
/// Answered requests of a connection, on average, up to which a connection is the unit of work if all are alike.
const VISIT_MOST: f64 = 8.0;
const VISIT_LEAST: f64 = 1.5;
/// Alike: standard deviation over mean.
const ALIKE: f64 = 0.25;

/// What a service does one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Requests.
    Request,
    /// Connections, all with about the same few requests.
    Visit,
}

impl Unit {
    /// Of a service.
    pub fn of(service: &Service) -> Self {
        Self::of_answered(service.answered)
    }

    /// By connections with an answered request, and the sum and the sum of squares of their answered requests.
    pub fn of_answered(answered: [u64; 3]) -> Self {
        let [count, sum, squares] = answered.map(|n| n as f64);
        if count == 0.0 {
            return Self::Request;
        }
        let mean = sum / count;
        let deviation = (squares / count - mean * mean).max(0.0).sqrt();
        if (VISIT_LEAST..=VISIT_MOST).contains(&mean) && deviation < ALIKE * mean {
            Self::Visit
        } else {
            Self::Request
        }
    }

    /// Those in progress.
    pub const fn steps(self, load: &crate::services::Load) -> Steps {
        match self {
            Self::Request => load.progress,
            Self::Visit => load.visits,
        }
    }

    /// Time that those stay which begin there, ns.
    pub const fn stay(self, load: &crate::services::Load) -> u64 {
        match self {
            Self::Request => load.staying,
            Self::Visit => load.visiting,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Request => "requests",
            Self::Visit => "connections",
        }
    }
}

/// Mean number in progress and units done a second, in one slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub progress: f64,
    pub rate: f64,
    /// Requests that wait for the first of their response, mean.
    waiting: f64,
}

/// A ceiling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ceiling {
    /// In progress from which on it holds.
    pub knee: f64,
    /// Units a second.
    pub rate: f64,
    /// A unit's time below the knee, s.
    pub time: f64,
}

impl Ceiling {
    /// Slices with more in progress than at the knee.
    fn past<'a>(&self, slices: &'a [Slice]) -> Vec<&'a Slice> {
        slices.iter().filter(|s| s.progress > PAST * self.knee).collect()
    }

    /// The load went on to grow.
    fn is_passed(&self, slices: &[Slice]) -> bool {
        let highest = steps(slices).last().map_or(0.0, |step| step.progress);
        self.past(slices).len() >= ABOVE && highest >= MORE * self.knee
    }

    /// So it did in some of them, as far as these tell.
    fn is_passed_in(&self, some: &[Slice], all: &[Slice]) -> bool {
        let (past, expected) = (self.past(some), self.past(all).len() * some.len() / all.len().max(1));
        let mut highest: Vec<f64> = some.iter().map(|s| s.progress).collect();
        highest.sort_unstable_by(|a, b| b.total_cmp(a));
        past.len() >= ABOVE.min(expected / 2)
            && highest
                .get(LEVEL_SLICES - 1)
                .is_none_or(|high| *high >= MORE * self.knee)
            && !grows(growth(&past))
    }
}

/// Ceilings of services.
pub(crate) fn findings(timeline: &Timeline, sleep: &ApplicationSleep, out: &mut Vec<Finding>) {
    let services = timeline.services();
    let found: Vec<(&Service, Finding)> = services
        .iter()
        .filter_map(|service| Some((service, look(service, sleep, timeline)?)))
        .collect();
    for (service, finding) in &found {
        // What waits for the tier behind has the ceiling of the tier behind.
        let mut behind = services.asked_by(service);
        if behind.any(|back| found.iter().any(|(other, _)| other.key == back.key)) {
            continue;
        }
        let mut finding = finding.clone();
        for (front, _) in &found {
            if services.asked_by(front).any(|back| back.key == service.key) {
                finding.evidence.insert(
                    finding.evidence.len() - 2,
                    format!("{} answers no more either: it waits for this one", front.name()),
                );
            }
        }
        out.push(finding);
    }
}

fn look(service: &Service, sleep: &ApplicationSleep, timeline: &Timeline) -> Option<Finding> {
    let unit = Unit::of(service);
    let seen = slices(service, unit, UNITS);
    let seen = |alone: bool| {
        let (slices, width) = seen.as_ref()?;
        Some((ceiling(slices, alone)?, None, slices.clone(), *width))
    };
    let beyond = || {
        let (slices, width) = slices(service, unit, FEWER_UNITS)?;
        let beyond = beyond(service, unit, &slices)?;
        Some((beyond.ceiling, Some(beyond), slices, width))
    };
    let by_levels = seen(false).or_else(beyond);
    let alone = by_levels.is_none();
    let Some((ceiling, beyond, slices, width)) = by_levels.or_else(|| seen(true)) else {
        return at_most(service, unit);
    };
    let (low, high, held) = match &beyond {
        Some(beyond) => (beyond.interval.0, beyond.interval.1, beyond.confidence),
        None => interval(&slices, &ceiling, alone),
    };
    let held = if alone { held.min(ALONE) } else { held };
    let past = ceiling.past(&slices);
    let more: f64 = past.iter().map(|s| s.progress - ceiling.knee).sum();
    if past.iter().map(|s| s.waiting).sum::<f64>() < UNANSWERED * more {
        return None;
    }
    // Where an application stops or packets are lost, more is in progress and no more is done, whatever could be.
    if beyond.is_none() {
        let stops = Stops::of(sleep, service.key.0).and_losses(timeline);
        let rest = slices_of(service, unit, width, &stops);
        if !ceiling.is_passed_in(&rest, &slices) {
            return None;
        }
    }
    let is_few = ceiling.knee < FEW;
    let waited = more * seconds(width);
    let most = slices.iter().map(|s| s.progress).fold(0.0, f64::max);
    let name = unit.name();
    let start = service.load.start();
    let rests_on = match &beyond {
        None => format!(
            "{}: {name} done a second grow with those in progress up to {} at once, and stay at {} a second with up to {} at once",
            service.name(),
            decimal(ceiling.knee, 0),
            decimal(ceiling.rate, 0),
            decimal(most, 0)
        ),
        Some(beyond) => format!(
            "{}: {} {name} are done a second, whether {} or {} are in progress. The {} that found less than {:.0} % of the knee took {} each (median), {} a second × {} = {} at once",
            service.name(),
            decimal(ceiling.rate, 0),
            decimal(beyond.least, 0),
            decimal(most, 0),
            count(beyond.units.into()),
            100.0 * SPARE,
            lasting(ceiling.time),
            decimal(ceiling.rate, 0),
            lasting(ceiling.time),
            decimal(ceiling.knee, 0)
        ),
    };
    let mut evidence = vec![
        rests_on,
        format!(
            "95 % interval of the knee: {} to {} in progress; {:.0} s were spent beyond it",
            decimal(low, 0),
            decimal(high, 0),
            past.len() as f64 * seconds(width)
        ),
        format!(
            "with time to spare one takes {}, at {} in progress {} (Little's law): waiting in line cost {} s in all",
            lasting(ceiling.time),
            decimal(most, 0),
            lasting(most / ceiling.rate),
            decimal(waited, 0)
        ),
    ];
    match &beyond {
        None => {
            let (sigma, kappa) = universal(&slices, ceiling.time);
            evidence.push(format!(
                "Universal Scalability Law: contention {sigma:.4}, coherency {kappa:.6}"
            ));
        }
        Some(_) => evidence.push(format!(
            "it may also be more: if those that found few others were quicker {name} than the rest, the knee is as much higher"
        )),
    }
    evidence.extend([
        "it may also be a limit on the way: a load balancer, or the clients' own limit of connections".to_owned(),
        format!(
            "next: look on {} for limits of threads, connections and processors",
            weir_analysis::address(service.key.0)
        ),
    ]);
    if is_few {
        evidence.insert(
            evidence.len() - 2,
            "it may also be a load that comes at one rate: of so few at once there are more whenever answers are slow for another reason".to_owned(),
        );
    }
    if unit == Unit::Visit {
        evidence.insert(
            1,
            format!(
                "a unit of work is a whole connection here: each has about {}",
                several(
                    (service.answered[1] as f64 / service.answered[0].max(1) as f64).round() as u64,
                    "request",
                    "requests"
                )
            ),
        );
    }
    let finding = finding(
        "CAPACITY_CEILING",
        "WARNING",
        (0.95 * held).min(if is_few { FEW_AT_MOST } else { 1.0 }),
        format!(
            "{} does {} {name} a second and no more",
            service.name(),
            decimal(ceiling.rate, 0)
        ),
        evidence,
        &Group::range(start, start + service.load.len() as u64 * service.load.width()),
        &[
            ("inProgress", ceiling.knee),
            ("inProgressLow", low),
            ("inProgressHigh", high),
            ("perSecond", ceiling.rate),
            ("baseSeconds", ceiling.time),
            ("costSeconds", waited),
        ],
    );
    Some(about(service.name(), finding))
}

/// A service of which no load below the knee was seen: all that can be told is that it does no more. Its load grew, or
/// the rate would be that of what came, and the rate did not.
fn at_most(service: &Service, unit: Unit) -> Option<Finding> {
    let (slices, width) = slices(service, unit, FEWER_UNITS)?;
    let all: Vec<&Slice> = slices.iter().collect();
    let (least, most) = range(&all)?;
    let rate = median_rate(slices.iter())?;
    let more: f64 = slices.iter().map(|slice| (slice.progress - least).max(0.0)).sum();
    let is_level = least >= SMALLEST
        && most > LEVELS * least
        && all.len() >= beyond::ABOVE
        && slices.iter().map(|slice| slice.waiting).sum::<f64>() >= UNANSWERED * more
        && is_steady(&all)
        && is_flat(growth(&all));
    if !is_level || !has_grown(service, unit, width, rate * seconds(width), least) {
        return None;
    }
    let name = unit.name();
    let start = service.load.start();
    let finding = finding(
        "CAPACITY_CEILING",
        "WARNING",
        AT_MOST,
        format!(
            "{} does {} {name} a second and no more, all the time",
            service.name(),
            decimal(rate, 0)
        ),
        vec![
            format!(
                "{}: {} {name} are done a second, whether {} or {} are in progress, and more in progress was more that came: its limit is {} at once at most. How far below that it lies is not known, as there was no time with fewer",
                service.name(),
                decimal(rate, 0),
                decimal(least, 0),
                decimal(most, 0),
                decimal(least, 0)
            ),
            format!(
                "one takes {} with {} in progress and {} with {} (Little's law)",
                lasting(least / rate),
                decimal(least, 0),
                lasting(most / rate),
                decimal(most, 0)
            ),
            "it may also be a limit on the way: a load balancer, or the clients' own limit of connections".to_owned(),
            format!(
                "next: capture from before the load on, or with less of it; look on {} for limits of threads, connections and processors",
                weir_analysis::address(service.key.0)
            ),
        ],
        &Group::range(start, start + service.load.len() as u64 * service.load.width()),
        &[("inProgressHigh", least), ("perSecond", rate)],
    );
    Some(about(service.name(), finding))
}

/// Whether the load grew where more came to be in progress: more began than usual (`usual` of a slice), not fewer ended.
fn has_grown(service: &Service, unit: Unit, width: u64, usual: f64, least: f64) -> bool {
    let bins = service.load.coarser(width);
    let (mut before, mut grown, mut came) = (0.0, 0.0, 0.0);
    for (level, load) in levels(&bins, |load| unit.steps(load)).zip(bins.iter()) {
        let steps = unit.steps(load);
        let rise = steps.change() as f64;
        if before >= SPARE * least && rise > SETTLED * before {
            grown += rise;
            came += f64::from(steps.up) - usual;
        }
        before = level.last as f64;
    }
    grown > 0.0 && came >= CAME * grown
}

/// The service in slices that are long enough, with their width in ns; none if there is too little.
fn slices(service: &Service, unit: Unit, units: f64) -> Option<(Vec<Slice>, u64)> {
    let steps = |load: &crate::services::Load| unit.steps(load);
    let done: u64 = service.load.iter().map(|load| u64::from(steps(load).down)).sum();
    let busy = service.load.iter().filter(|load| steps(load).down > 0).count() as u64 * service.load.width();
    if done == 0 {
        return None;
    }
    // By Little's law; those that came together end together, and a slice is not to tell them apart.
    let time =
        levels(&service.load, steps).map(|level| level.mean).sum::<f64>() * service.load.width() as f64 / done as f64;
    let width = ((busy as f64 * units / done as f64) as u64)
        .max(time as u64)
        .max(SHORTEST);
    if busy < SLICES * width {
        return None;
    }
    // Bins are a whole number of the service's.
    let width = width.next_multiple_of(service.load.width());
    Some((slices_of(service, unit, width, &Stops::default()), width))
}

/// Slices of this width that have settled, without the stops in them; those are left out of which that is more than three quarters.
fn slices_of(service: &Service, unit: Unit, width: u64, stops: &Stops) -> Vec<Slice> {
    let bin = service.load.width();
    let progress = levels(&service.load, |load| unit.steps(load));
    let waiting = levels(&service.load, |load| load.waiting);
    let bins: Vec<(Level, Level, u32)> = progress
        .zip(waiting)
        .zip(service.load.iter())
        .map(|((progress, waiting), load)| (progress, waiting, unit.steps(load).down))
        .collect();
    let slice = |bins: &[(Level, Level, u32)]| {
        let is_awake = |(level, ..): &&(Level, Level, u32)| !stops.touch(&(level.start..level.start + bin));
        let awake: Vec<_> = bins.iter().filter(is_awake).collect();
        let time = width - (bins.len() - awake.len()) as u64 * bin;
        let share = bin as f64 / time as f64;
        (4 * time >= width).then(|| Slice {
            progress: awake.iter().map(|(progress, ..)| progress.mean * share).sum(),
            rate: awake.iter().map(|(.., done)| f64::from(*done)).sum::<f64>() / seconds(time),
            waiting: awake.iter().map(|(_, waiting, _)| waiting.mean * share).sum(),
        })
    };
    let all: Vec<Slice> = bins
        .chunk_by(|a, b| a.0.start / width == b.0.start / width)
        .filter_map(slice)
        .collect();
    let settled = all.windows(2).filter(|pair| is_settled(pair[0], pair[1]));
    settled.map(|pair| pair[1]).filter(|slice| slice.rate > 0.0).collect()
}

fn is_settled(before: Slice, slice: Slice) -> bool {
    let usual = (SETTLED * slice.progress).max(SETTLED_SIGMAS * slice.progress.sqrt());
    slice.progress > 0.0 && (slice.progress - before.progress).abs() <= usual
}

/// Slices with about the same number in progress: medians, because slices in which an application sleeps lie far off.
#[derive(Clone, Copy, Debug)]
struct Step {
    progress: f64,
    rate: f64,
    slices: usize,
}

fn sorted(slices: &[Slice]) -> Vec<Slice> {
    let mut sorted = slices.to_vec();
    sorted.sort_unstable_by(|a, b| a.progress.total_cmp(&b.progress));
    sorted
}

/// Of one level.
fn together(a: &Slice, b: &Slice) -> bool {
    let level = |slice: &Slice| (slice.progress.ln() / LEVEL.ln()).floor();
    level(a) == level(b)
}

fn steps(slices: &[Slice]) -> Vec<Step> {
    sorted(slices)
        .chunk_by(together)
        .filter(|level| level.len() >= LEVEL_SLICES)
        .map(|level| {
            let of = |value: fn(&Slice) -> f64| median(&level.iter().map(value).collect::<Vec<f64>>()).unwrap_or(0.0);
            Step {
                progress: of(|slice| slice.progress),
                rate: of(|slice| slice.rate),
                slices: level.len(),
            }
        })
        .collect()
}

/// The bounds that fit best, relative errors squared.
fn bounds(steps: &[Step]) -> Option<Ceiling> {
    let fit = |split: usize| {
        let (below, above) = steps.split_at(split);
        let sum =
            |of: &[Step], value: fn(&Step) -> f64| of.iter().map(|step| value(step) * step.slices as f64).sum::<f64>();
        // Little's law.
        let time = sum(below, |step| step.progress) / sum(below, |step| step.rate);
        let rate = sum(above, |step| step.rate) / sum(above, |_| 1.0);
        let error = |step: &Step| {
            let expected = (step.progress / time).min(rate);
            (step.rate / expected - 1.0).powi(2) * step.slices as f64
        };
        let cost: f64 = steps.iter().map(error).sum();
        let ceiling = Ceiling {
            knee: rate * time,
            rate,
            time,
        };
        (cost, ceiling)
    };
    let fits = (1..steps.len()).map(fit);
    fits.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, ceiling)| ceiling)
}

/// The ceiling, if there is one; `alone`: below the knee slices count that have no level with others.
fn ceiling(slices: &[Slice], alone: bool) -> Option<Ceiling> {
    let steps = steps(slices);
    let ceiling = bounds(&steps)?;
    let below: usize = steps
        .iter()
        .filter(|step| step.rate < LESS * ceiling.rate && step.progress < ceiling.knee)
        .map(|step| step.slices)
        .sum();
    // A load that grows quickly has a slice of each level.
    let along = slices.iter().filter(|slice| {
        slice.rate < LESS * ceiling.rate
            && slice.progress < ceiling.knee
            && (slice.rate * ceiling.time / slice.progress - 1.0).abs() <= ALONG
    });
    let below = if alone { along.count().max(below) } else { below };
    let is_there = ceiling.knee >= ONE && below >= BELOW && ceiling.is_passed(slices);
    (is_there && is_flat(growth(&ceiling.past(slices)))).then_some(ceiling)
}

/// By the exponent of the growth and its standard error.
pub(crate) fn is_flat((exponent, error): (f64, f64)) -> bool {
    exponent < FLAT && exponent + SIGMAS * error < BENT
}

fn grows((exponent, error): (f64, f64)) -> bool {
    exponent - SIGMAS * error > FLAT
}

/// Exponent with which the rate grows with the number in progress, and its standard error: the slope of the
/// logarithms. Slices far off the line are left out: an application slept in them.
pub(crate) fn growth(slices: &[&Slice]) -> (f64, f64) {
    let mut points: Vec<(f64, f64)> = slices.iter().map(|s| (s.progress.ln(), s.rate.ln())).collect();
    let line = Line::through(&points);
    let off = |point: &(f64, f64)| (point.1 - line.at(point.0)).abs();
    let usual = median(&points.iter().map(off).collect::<Vec<f64>>()).unwrap_or(0.0);
    points.retain(|point| off(point) <= FAR_OFF * usual);
    let line = Line::through(&points);
    let n = points.len() as f64;
    let left: f64 = points.iter().map(|point| (point.1 - line.at(point.0)).powi(2)).sum();
    if line.spread <= 0.0 || n < 3.0 {
        return (0.0, f64::INFINITY);
    }
    (line.slope, (left / (n - 2.0) / line.spread).sqrt())
}

/// A line by least squares.
struct Line {
    middle: (f64, f64),
    slope: f64,
    /// Squares of the distances from the middle along x.
    spread: f64,
}

impl Line {
    fn through(points: &[(f64, f64)]) -> Self {
        let n = points.len() as f64;
        let sum = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
        let middle = (sum.0 / n, sum.1 / n);
        let (mut xx, mut xy) = (0.0, 0.0);
        for (x, y) in points {
            xx += (x - middle.0).powi(2);
            xy += (x - middle.0) * (y - middle.1);
        }
        Self {
            middle,
            slope: if xx > 0.0 { xy / xx } else { 0.0 },
            spread: xx,
        }
    }

    fn at(&self, x: f64) -> f64 {
        self.middle.1 + self.slope * (x - self.middle.0)
    }
}

/// 95 % interval of the knee, and the share of resamples that show it. Slices are drawn again with a fixed seed,
/// each for one of its level: the levels of the load are given, only the answers are chance (stratified bootstrap:
/// Davison and Hinkley 1997, "Bootstrap Methods and their Application", 3.2).
fn interval(slices: &[Slice], told: &Ceiling, alone: bool) -> (f64, f64, f64) {
    let mut random = Random::new(SEED);
    let sorted = sorted(slices);
    let mut knees = Vec::new();
    for _ in 0..RESAMPLES {
        let mut drawn = Vec::with_capacity(sorted.len());
        for level in sorted.chunk_by(together) {
            for _ in level {
                drawn.push(level[random.below(level.len())]);
            }
        }
        knees.extend(ceiling(&drawn, alone).map(|ceiling| ceiling.knee));
    }
    knees.sort_unstable_by(f64::total_cmp);
    let (low, high) = middle_95(&knees);
    (low, high, known(&knees, told))
}

/// The share of resamples that show the knee: those whose own is near it.
pub(crate) fn known(knees: &[f64], told: &Ceiling) -> f64 {
    let near = knees.iter().filter(|knee| (*knee / told.knee - 1.0).abs() <= KNOWN);
    near.count() as f64 / RESAMPLES as f64
}

/// Where the middle 95 % of sorted values begin and end.
pub(crate) fn middle_95(sorted: &[f64]) -> (f64, f64) {
    let at = |q: f64| {
        let place = (q * sorted.len() as f64) as usize;
        sorted
            .get(place.min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0.0)
    };
    (at(0.025), at(0.975))
}

/// Contention and coherency of the Universal Scalability Law, `X(N) = N / R / (1 + σ(N − 1) + κN(N − 1))`: linear in
/// both once `R` is known (Gunther's quadratic regression), and neither below 0.
fn universal(slices: &[Slice], time: f64) -> (f64, f64) {
    let points: Vec<(f64, f64)> = steps(slices)
        .iter()
        .filter(|step| step.progress > 1.0)
        .map(|step| {
            (
                step.progress,
                (step.progress / (step.rate * time) - 1.0) / (step.progress - 1.0),
            )
        })
        .collect();
    let n = points.len() as f64;
    if n < 2.0 {
        return (0.0, 0.0);
    }
    let mean = points
        .iter()
        .fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / n, sum.1 + p.1 / n));
    let (mut xx, mut xy) = (0.0, 0.0);
    for (x, y) in &points {
        xx += (x - mean.0).powi(2);
        xy += (x - mean.0) * (y - mean.1);
    }
    let kappa = if xx > 0.0 { (xy / xx).max(0.0) } else { 0.0 };
    ((mean.1 - kappa * mean.0).max(0.0), kappa)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(progress: f64, rate: f64) -> Slice {
        Slice {
            progress,
            rate,
            waiting: progress,
        }
    }

    /// Noise of 10 % that repeats.
    fn noise(i: u32) -> f64 {
        1.0 + 0.1 * (f64::from(i.wrapping_mul(2_654_435_761) % 1000) / 500.0 - 1.0)
    }

    #[test]
    fn a_knee_is_where_the_bounds_meet() {
        let slices: Vec<Slice> = (1..=120)
            .map(|i| {
                let progress = f64::from(i);
                at(progress, (progress / 0.2).min(200.0) * noise(i))
            })
            .collect();
        let ceiling = ceiling(&slices, false).unwrap_or_else(|| panic!("no ceiling"));
        assert!((ceiling.knee / 40.0 - 1.0).abs() < 0.05, "{ceiling:?}");
        assert!((ceiling.rate / 200.0 - 1.0).abs() < 0.05, "{ceiling:?}");
        let (low, high, held) = interval(&slices, &ceiling, false);
        assert!(
            low < 40.0 && 40.0 < high && high - low < 10.0 && held > 0.9,
            "{low} {high} {held}"
        );
    }

    /// Fourteen more in each slice: those below the knee are on levels of their own.
    #[test]
    fn a_load_that_grows_quickly_shows_its_knee() {
        let slices: Vec<Slice> = (1..=36u32)
            .map(|i| {
                let progress = f64::from(14 * i);
                at(progress, (progress / 0.95).min(250.0) * (0.9 + 0.1 * noise(i)))
            })
            .collect();
        assert_eq!(ceiling(&slices, false), None);
        let ceiling = ceiling(&slices, true).unwrap_or_else(|| panic!("no ceiling"));
        assert!((ceiling.knee / 237.5 - 1.0).abs() < 0.05, "{ceiling:?}");
    }

    #[test]
    fn slices_far_off_hide_no_knee() {
        let slices: Vec<Slice> = (1..=120)
            .map(|i| {
                let asleep = if i % 12 == 0 { 0.2 } else { 1.0 };
                at(f64::from(i), (f64::from(i) / 0.2).min(200.0) * noise(i) * asleep)
            })
            .collect();
        let ceiling = ceiling(&slices, false).unwrap_or_else(|| panic!("no ceiling"));
        assert!((ceiling.knee / 40.0 - 1.0).abs() < 0.05, "{ceiling:?}");
    }

    #[test]
    fn a_rate_that_grows_has_no_knee() {
        let linear: Vec<Slice> = (1..=120)
            .map(|i| at(f64::from(i), f64::from(i) / 0.2 * noise(i)))
            .collect();
        assert_eq!(ceiling(&linear, false), None);
        let slower: Vec<Slice> = (1..=120)
            .map(|i| at(f64::from(i), f64::from(i).powf(0.7) * noise(i)))
            .collect();
        assert_eq!(ceiling(&slower, false), None);
    }

    #[test]
    fn an_even_load_with_uneven_times_has_no_knee() {
        let slices: Vec<Slice> = (1..=200)
            .map(|i| at(30.0 * noise(i).powi(5), 50.0 * noise(i * 7)))
            .collect();
        assert_eq!(ceiling(&slices, false), None);
    }

    #[test]
    fn the_universal_law_is_found_again() {
        let (sigma, kappa) = (0.03, 0.0004);
        let law = |n: f64| n / 0.5 / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
        let slices: Vec<Slice> = (2..=200).map(|i| at(f64::from(i), law(f64::from(i)))).collect();
        let (a, b) = universal(&slices, 0.5);
        assert!(
            (a / sigma - 1.0).abs() < 0.05 && (b / kappa - 1.0).abs() < 0.05,
            "{a} {b}"
        );
    }
}
