//! A tier and the one behind it, by their times alone: hosts that serve on one side and ask on the other.
//!
//! A request of the front tier that makes its calls one after the other has at most one under way, so the calls under
//! way explain as many requests as there are of them, and no more than there are requests. Between them and their
//! difference every instant of the front tier's time is split: with a call under way, or without one (its own work, or
//! a wait for a connection to the tier behind). Calls side by side would explain less than they seem to.

use crate::capacity::Unit;
use crate::services::{Load, Service, Services};
use crate::steps::{Level, Steps, levels};

/// Fewer calls, or front requests, are no tier.
const LEAST: u64 = 30;

/// A service and one that its host asks, and the others that it asks.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'a> {
    pub front: &'a Service,
    pub back: &'a Service,
    pub others: Vec<&'a Service>,
}

/// Both in one slice of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Both {
    /// TAI ns.
    pub start: u64,
    /// Requests in progress in front, and those without the first of their response, mean.
    pub front: f64,
    pub waiting: f64,
    /// Calls in progress behind, mean, and to the others.
    pub back: f64,
    pub elsewhere: f64,
    /// Connections behind that somebody holds, mean.
    pub connections: f64,
    /// Requests of the front done.
    pub done: u32,
    /// Calls begun.
    pub begun: u32,
}

/// What the calls say of the front tier's time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Explained {
    /// Requests answered in front, and calls begun behind.
    pub requests: u64,
    pub calls: u64,
    /// Time of the requests in front, ns.
    pub front_ns: f64,
    /// Of it, time with a call under way.
    pub explained_ns: f64,
    /// Calls that began while nothing was in progress in front.
    pub alone: u64,
}

/// All pairs with enough to tell of.
pub(crate) fn pairs(services: &Services) -> Vec<Pair<'_>> {
    let mut out = Vec::new();
    for front in services.iter() {
        for back in services.behind(front) {
            let answered = |service: &Service| {
                service
                    .load
                    .iter()
                    .map(|load| u64::from(load.progress.down))
                    .sum::<u64>()
            };
            if answered(front) >= LEAST && answered(back) >= LEAST {
                let others = services.asked_by(front).filter(|other| other.key != back.key);
                out.push(Pair {
                    front,
                    back,
                    others: others.collect(),
                });
            }
        }
    }
    out
}

/// Calls of a service in slices of time.
struct Calls {
    start: u64,
    width: u64,
    slices: Vec<Under>,
}

/// In one slice: calls under way and connections that somebody holds, mean; calls begun.
#[derive(Clone, Copy, Debug, Default)]
struct Under {
    way: f64,
    held: f64,
    begun: u32,
}

impl Calls {
    fn of(service: &Service, width: u64) -> Self {
        let load = service.load.coarser(width);
        let unit = Unit::of(service);
        let slices = levels(&load, |load| calls(unit, load))
            .zip(levels(&load, |load| load.held))
            .zip(levels(&load, |load| load.setups))
            .zip(load.iter())
            .map(|(((under_way, held), setups), load)| {
                // A connection that is being set up is a call under way, too.
                let setups = match unit {
                    Unit::Visit => 0.0,
                    Unit::Request => setups.mean,
                };
                Under {
                    way: under_way.mean + setups,
                    held: held.mean,
                    begun: calls(unit, load).up,
                }
            })
            .collect();
        Self {
            start: load.start(),
            width: load.width(),
            slices,
        }
    }

    fn at(&self, time: u64) -> Under {
        let number = time.checked_sub(self.start).map(|since| (since / self.width) as usize);
        number.and_then(|n| self.slices.get(n)).copied().unwrap_or_default()
    }
}

/// How calls show.
const fn calls(unit: Unit, load: &Load) -> Steps {
    match unit {
        Unit::Visit => load.connections,
        Unit::Request => load.progress,
    }
}

impl Pair<'_> {
    /// How a call shows: as a connection where each carries one, else as a request.
    pub fn unit(&self) -> Unit {
        Unit::of(self.back)
    }

    /// Calls begun.
    pub fn calls(&self) -> u64 {
        let unit = self.unit();
        self.back.load.iter().map(|load| u64::from(calls(unit, load).up)).sum()
    }

    /// Both in slices of about `width` ns, with the width.
    pub fn slices(&self, width: u64) -> (Vec<Both>, u64) {
        let all = [self.front, self.back].into_iter().chain(self.others.iter().copied());
        let least = all.map(|service| service.load.width()).max().unwrap_or(0);
        // The slices of all are of one width times a power of two.
        let front = self.front.load.coarser(width.max(least));
        let width = front.width();
        let back = Calls::of(self.back, width);
        let others: Vec<Calls> = self.others.iter().map(|other| Calls::of(other, width)).collect();
        let both = |((level, waiting), load): ((Level, Level), &Load)| {
            let behind = back.at(level.start);
            Both {
                start: level.start,
                front: level.mean,
                waiting: waiting.mean,
                back: behind.way,
                elsewhere: others.iter().map(|calls| calls.at(level.start).way).sum(),
                connections: behind.held,
                done: load.progress.down,
                begun: behind.begun,
            }
        };
        let slices = levels(&front, |load| load.progress)
            .zip(levels(&front, |load| load.waiting))
            .zip(front.iter())
            .map(both)
            .collect();
        (slices, width)
    }

    /// How much of the front tier's time the calls explain.
    pub fn explained(&self) -> Explained {
        let (slices, width) = self.slices(0);
        let width = width as f64;
        let mut out = Explained::default();
        for slice in &slices {
            out.requests += u64::from(slice.done);
            out.calls += u64::from(slice.begun);
            out.front_ns += slice.front * width;
            out.explained_ns += slice.back.min(slice.front) * width;
            if slice.front == 0.0 {
                out.alone += u64::from(slice.begun);
            }
        }
        let begun = self.calls();
        // Before the first request in front and after the last.
        out.alone += begun.saturating_sub(out.calls);
        out.calls = begun;
        out
    }
}
