//! FRONTEND_QUEUEING: requests that wait in a front tier before it asks the tier behind.
//!
//! Of a front request's time until its response begins, what no call under way explains is the front tier's own work or
//! a wait (`tiers`). Its own work is what is left in the time with least of it; more than that is waiting. What the
//! response takes on its way to the client is the network's. Times in which the application stopped, or one that it asks,
//! are left out: nobody is in line for a connection then.
//!
//! Works on the slices of the services; no memory of its own.

use weir_analysis::{Group, address, count, decimal, finding, lasting, seconds, several};
use weir_messages::v1::Finding;

use crate::names::about;
use crate::sleep::ApplicationSleep;
use crate::stops::Stops;
use crate::tiers::{Both, Pair, pairs};
use crate::timeline::Timeline;

/// Windows are compared: long enough for several requests, ns.
const WINDOW: u64 = 5_000_000_000;
/// A window needs so many answered requests for its share to count, and this share of the most: where hardly any end,
/// those count that began before it.
const REQUESTS: f64 = 5.0;
const OF_MOST: f64 = 0.1;
/// A window has waiting when a request's time without a call exceeds its own time by this factor.
const MORE: f64 = 1.5;
/// Waiting is worth a finding from this share of the front tier's time, and this time, on, s.
const SHARE: f64 = 0.05;
const LEAST: f64 = 5.0;
/// In a window with waiting, the share of the time that must be waiting, and how many requests stand in line.
const HERE: f64 = 0.2;
const LINE: f64 = 1.0;

/// A window of time, as if what stopped in it had gone on as in the rest of it.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    /// Requests answered, and their mean numbers: in progress, without the first of their response, with a call.
    done: f64,
    front: f64,
    waiting: f64,
    back: f64,
    seconds: f64,
}

impl Window {
    /// None if nothing is left of it, or nothing was in progress.
    fn of(slices: &[Both], width: u64, stops: &Stops) -> Option<Self> {
        let is_awake = |slice: &&Both| !stops.touch(&(slice.start..slice.start + width));
        let awake: Vec<&Both> = slices.iter().filter(is_awake).collect();
        let mean = |value: fn(&Both) -> f64| awake.iter().map(|slice| value(slice)).sum::<f64>() / awake.len() as f64;
        let window = Self {
            start: awake.first()?.start,
            done: mean(|slice| f64::from(slice.done)) * slices.len() as f64,
            front: mean(|slice| slice.front),
            waiting: mean(|slice| slice.waiting),
            back: mean(|slice| slice.back + slice.elsewhere),
            seconds: seconds(slices.len() as u64 * width),
        };
        (window.front > 0.0).then_some(window)
    }

    const fn without_call(&self) -> f64 {
        (self.waiting - self.back).max(0.0) * self.seconds
    }
}

/// Waits of front tiers.
pub(crate) fn findings(timeline: &Timeline, sleep: &ApplicationSleep, out: &mut Vec<Finding>) {
    for of_front in pairs(timeline.services()).chunk_by(|a, b| a.front.key == b.front.key) {
        // All that it asks explain its time; named is the one that it asks most.
        let most = of_front.iter().max_by_key(|pair| pair.calls());
        out.extend(most.and_then(|pair| look(pair, &Stops::of(sleep, pair.front.key.0))));
    }
}

fn look(pair: &Pair<'_>, stops: &Stops) -> Option<Finding> {
    let (slices, width) = pair.slices(0);
    let windows: Vec<Window> = slices
        .chunks((WINDOW / width).max(1) as usize)
        .filter_map(|slices| Window::of(slices, width, stops))
        .collect();
    let most = windows.iter().map(|window| window.done).fold(0.0, f64::max);
    let mut each: Vec<f64> = windows
        .iter()
        .filter(|window| window.done >= REQUESTS.max(OF_MOST * most))
        .map(|window| window.without_call() / window.done)
        .collect();
    if each.len() < 4 {
        return None;
    }
    each.sort_unstable_by(f64::total_cmp);
    let own = each[0];
    let wait = |window: &Window| {
        let wait = window.without_call() - own * window.done;
        let more = window.without_call() > MORE * own * window.done;
        if more && wait > HERE * window.front * window.seconds && wait > LINE * window.seconds {
            wait
        } else {
            0.0
        }
    };
    let waiting: Vec<(&Window, f64)> = windows
        .iter()
        .map(|w| (w, wait(w)))
        .filter(|(_, wait)| *wait > 0.0)
        .collect();
    let total: f64 = waiting.iter().map(|(_, wait)| wait).sum();
    let all: f64 = windows.iter().map(|window| window.front * window.seconds).sum();
    if total < LEAST || total < SHARE * all {
        return None;
    }
    let (worst, wait) = waiting.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let queue = wait / worst.seconds;
    let requests: f64 = waiting.iter().map(|(window, _)| window.done).sum();
    let (first, last) = (waiting.first()?.0, waiting.last()?.0);
    let (front, mut back) = (pair.front.name(), pair.back.name());
    let who = format!("{front} > {back}");
    if !pair.others.is_empty() {
        back += &format!(" or {} more", pair.others.len());
    }
    let host = address(pair.front.key.0);
    let epoch = timeline_start(&windows);
    let evidence = vec![
        format!(
            "most at {:.0} s into the load of {front}: {} in progress there, but {} at once to {back}: {} in line",
            seconds(worst.start - epoch),
            several(worst.front.round() as u64, "request", "requests"),
            several(worst.back.round() as u64, "call", "calls"),
            several(queue.round() as u64, "request stands", "requests stand")
        ),
        format!(
            "{} s of waiting in all, {:.0} % of the time that requests were in progress there; about {:.2} s for each of the {} answered in those times",
            decimal(total, 0),
            100.0 * total / all,
            total / requests.max(1.0),
            count(requests as u64)
        ),
        format!(
            "in the quietest time, a request there has {} without a call to {back}: that is its own work, and not counted",
            lasting(own)
        ),
        format!("it may also be the own work of {host} that takes longer under load: from outside both look the same"),
        format!(
            "next: see how many connections to {back} the application on {host} may open at once, and how fast it opens more"
        ),
    ];
    let finding = finding(
        "FRONTEND_QUEUEING",
        "WARNING",
        0.8,
        format!("Requests wait {} s in {front} before it asks {back}", decimal(total, 0)),
        evidence,
        &Group::range(first.start, last.start + width.max(WINDOW)),
        &[
            ("seconds", total),
            ("costSeconds", total),
            ("share", total / all),
            ("perRequestSeconds", total / requests.max(1.0)),
            ("mostWaiting", queue),
            ("ownSeconds", own),
        ],
    );
    Some(about(who, finding))
}

fn timeline_start(windows: &[Window]) -> u64 {
    windows.first().map_or(0, |window| window.start)
}
