//! A tier and the one behind it, by their times alone: hosts that serve on one side and ask on the other.
//!
//! A request of the front tier that makes its calls one after the other has at most one under way, so the calls under
//! way explain as many requests as there are of them, and no more than there are requests. Between them and their
//! difference every instant of the front tier's time is split: with a call under way, or without one (its own work, or
//! a wait for a connection to the tier behind). Calls side by side would explain less than they seem to.

use crate::bins::Bins;
use crate::capacity::Unit;
use crate::services::{Load, Service, Services};
use crate::steps::{Level, levels};

/// Fewer calls, or front requests, are no tier.
const LEAST: u64 = 30;

/// A service and one that its host asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    pub front: &'a Service,
    pub back: &'a Service,
}

/// Both in one slice of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Both {
    /// TAI ns.
    pub start: u64,
    /// Requests in progress in front, and those without the first of their response, mean.
    pub front: f64,
    pub waiting: f64,
    /// Calls in progress behind, mean.
    pub back: f64,
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
            let pair = Pair { front, back };
            let answered = |service: &Service| {
                service
                    .load
                    .iter()
                    .map(|load| u64::from(load.progress.down))
                    .sum::<u64>()
            };
            if answered(front) >= LEAST && answered(back) >= LEAST {
                out.push(pair);
            }
        }
    }
    out
}

impl Pair<'_> {
    /// How a call shows: as a connection where each carries one, else as a request.
    pub fn unit(&self) -> Unit {
        Unit::of(self.back)
    }

    /// Both in slices of about `width` ns, with the width.
    pub fn slices(&self, width: u64) -> (Vec<Both>, u64) {
        let unit = self.unit();
        let width = width.max(self.front.load.width()).max(self.back.load.width());
        let (front, back) = (self.front.load.coarser(width), self.back.load.coarser(width));
        let width = front.width().max(back.width());
        let (front, back) = (front.coarser(width), back.coarser(width));
        let calls = |load: &Load| match unit {
            Unit::Visit => load.connections,
            Unit::Request => load.progress,
        };
        let behind: Vec<_> = levels(&back, calls)
            .zip(levels(&back, |load| load.held))
            .zip(levels(&back, |load| load.visits))
            .zip(back.iter())
            .map(|(((calls, held), visits), load)| {
                // A connection that is being set up is a call under way, too.
                let setups = match unit {
                    Unit::Visit => 0.0,
                    Unit::Request => held.mean - visits.mean,
                };
                (calls.mean + setups, held.mean, load)
            })
            .collect();
        let at = |start: u64| behind.get((start.checked_sub(back.start())? / width) as usize);
        let both = |((level, waiting), load): ((Level, Level), &Load)| {
            let behind = at(level.start);
            Both {
                start: level.start,
                front: level.mean,
                waiting: waiting.mean,
                back: behind.map_or(0.0, |(calls, ..)| *calls),
                connections: behind.map_or(0.0, |(_, connections, _)| *connections),
                done: load.progress.down,
                begun: behind.map_or(0, |(.., load)| calls(load).up),
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
        let begun: u64 = calls_begun(&self.back.load, self.unit());
        // Before the first request in front and after the last.
        out.alone += begun.saturating_sub(out.calls);
        out.calls = begun;
        out
    }
}

fn calls_begun(load: &Bins<Load>, unit: Unit) -> u64 {
    let begun = |load: &Load| match unit {
        Unit::Visit => load.connections.up,
        Unit::Request => load.progress.up,
    };
    load.iter().map(|load| u64::from(begun(load))).sum()
}
