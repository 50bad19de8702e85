//! `RTT_SHIFT`: the base of the round trips between the tap and a host changed at one moment.
//!
//! An ACK that may have been held back tells nothing: a request that fits into a segment is acknowledged with its
//! response, or by a timer. What setups tell and what data tells must not contradict each other.
//!
//! Memory: 16 bytes a second and side for each of [`pairs::MOST`] pairs, 1 MB each when it has all of its bins, and half
//! of that for the turns.

use std::ops::AddAssign;

use weir_analysis::{Acknowledged, Group, finding as make, seconds};
use weir_messages::v1::Finding;

use crate::backlog::Transaction;
use crate::bins::Bins;
use crate::detector::Detector;
use crate::names::{chance, count};
use crate::pairs::{self, Pairs};
use crate::rank::median;
use crate::routes::Route;
use crate::timeline::Timeline;

/// Width of a slice, ns: its smallest round trip stands for the base.
const WIDTH: u64 = 1_000_000_000;
/// Samples that a slice needs, so that a queue is not its base.
const SAMPLES: u32 = 5;
/// Slices on each side of a change.
const LEAST: usize = 8;
/// Largest chance of a change without one (Pettitt's test).
const CHANCE: f64 = 1e-4;
/// Smallest change: of the base, and s.
const SHARE: f64 = 0.1;
const SMALLEST: f64 = 100e-6;
/// Change over the spread (10 to 90 %) on either side: a drift is no step.
const STEP: f64 = 3.0;
/// Slices on each side of a change with which the other samples say something of it, and the share of it that they must
/// show.
const OTHERS: usize = 3;
const SHOWN: f64 = 0.5;

/// Round trips of a slice.
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    /// Smallest, µs.
    min: u32,
    samples: u32,
}

impl AddAssign for Slice {
    fn add_assign(&mut self, other: Self) {
        if self.samples == 0 || other.samples > 0 && other.min < self.min {
            self.min = other.min;
        }
        self.samples = self.samples.saturating_add(other.samples);
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RttShift {
    pairs: Pairs,
    series: Vec<[Series; 2]>,
    /// Turns (setups, requests) of each pair: each takes a round trip or more.
    turns: Vec<Bins<u32>>,
}

impl RttShift {
    /// What all other pairs than these have in common is no path.
    fn path(&mut self, route: &mut Route) -> Option<usize> {
        let number = route.path.get_or(|| {
            let number = self.pairs.number(route.client, route.server);
            if number < pairs::MOST && number >= self.series.len() {
                self.series.push(Default::default());
                self.turns.push(Bins::new(WIDTH));
            }
            number
        });
        (number < pairs::MOST).then_some(number)
    }
}

/// Round trips between the tap and one host, for the traffic with another.
#[derive(Debug)]
struct Series {
    /// Of SYNs and SYN-ACKs.
    setups: Bins<Slice>,
    data: Bins<Slice>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            setups: Bins::new(WIDTH),
            data: Bins::new(WIDTH),
        }
    }
}

impl Series {
    /// Its change, and what the samples are that tell of it.
    fn step(&self) -> Option<(Step, &'static str)> {
        let of = |own: &Bins<Slice>, other: &Bins<Slice>| step(own).filter(|step| !step.is_contradicted(other));
        let setups = of(&self.setups, &self.data).map(|step| (step, "setups"));
        setups.or_else(|| of(&self.data, &self.setups).map(|step| (step, "ACKs that nothing held back")))
    }
}

/// A step.
struct Step {
    /// First slice after it, ns.
    at: u64,
    /// Medians, s.
    before: f64,
    after: f64,
    /// Samples that told of it.
    samples: [u64; 2],
    chance: f64,
    start: u64,
    end: u64,
}

impl Step {
    /// Samples of another kind passed before and after it, and show less than half of it.
    fn is_contradicted(&self, others: &Bins<Slice>) -> bool {
        let mut sides = [Vec::new(), Vec::new()];
        for (time, slice) in (others.start()..).step_by(others.width() as usize).zip(others.iter()) {
            if slice.samples > 0 {
                sides[usize::from(time >= self.at)].push(f64::from(slice.min) / 1e6);
            }
        }
        let [Some(before), Some(after)] = sides.map(|side| median(&side).filter(|_| side.len() >= OTHERS)) else {
            return false;
        };
        let shift = self.after - self.before;
        (after - before) * shift.signum() < SHOWN * shift.abs()
    }
}

impl Detector for RttShift {
    #[inline]
    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        if let Some(number) = self.path(route) {
            *self.turns[number].at(transaction.facts.request_time) += 1;
        }
    }

    #[inline]
    fn acknowledged(&mut self, ack: &Acknowledged, route: &mut Route) {
        if !ack.is_prompt {
            return;
        }
        let Some(number) = self.path(route) else { return };
        let series = &mut self.series[number][usize::from(ack.by_server)];
        let series = if ack.is_data {
            &mut series.data
        } else {
            &mut series.setups
        };
        *series.at(ack.time) += Slice {
            min: u32::try_from(ack.rtt / 1000).unwrap_or(u32::MAX),
            samples: 1,
        };
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        for (number, sides) in self.series.iter().enumerate() {
            for (side, series) in sides.iter().enumerate() {
                let step = series.step();
                out.extend(step.map(|(step, samples)| self.finding(number, side, &step, samples)));
            }
        }
    }
}

/// The most likely change of a series, if it is one (Pettitt 1979).
fn step(series: &Bins<Slice>) -> Option<Step> {
    let slices: Vec<(usize, Slice)> = series
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, slice)| slice.samples >= SAMPLES)
        .collect();
    let n = slices.len();
    if n < 2 * LEAST {
        return None;
    }
    // Ranks from 1, ties share theirs: U(t) = 2 Σ rank − t (n + 1).
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|i| slices[*i].1.min);
    let mut ranks = vec![0.0; n];
    let mut at = 0;
    for same in order.chunk_by(|a, b| slices[*a].1.min == slices[*b].1.min) {
        for i in same {
            ranks[*i] = at as f64 + (same.len() as f64 + 1.0) / 2.0;
        }
        at += same.len();
    }
    let (mut sum, mut k, mut best) = (0.0, 0.0, (0.0, 0));
    for (i, rank) in ranks.iter().enumerate() {
        sum += rank;
        let (before, after) = (i + 1, n - i - 1);
        let u: f64 = (2.0 * sum - before as f64 * (n + 1) as f64).abs();
        if before >= LEAST && after >= LEAST {
            k = f64::max(k, u);
            // The largest U is a little beside the step; its distance from chance, as Mann and Whitney's, is not.
            let z = u / ((before * after) as f64).sqrt();
            if z > best.0 {
                best = (z, before);
            }
        }
    }
    let split = best.1;
    let m = n as f64;
    let chance = 2.0 * (-6.0 * k * k / (m.powi(3) + m.powi(2))).exp();
    if chance > CHANCE {
        return None;
    }
    let (first, second) = slices.split_at(split);
    let values = |part: &[(usize, Slice)]| {
        let mut values: Vec<f64> = part.iter().map(|(_, s)| f64::from(s.min) / 1e6).collect();
        values.sort_by(f64::total_cmp);
        let spread = values[values.len() * 9 / 10] - values[values.len() / 10];
        (median(&values).unwrap_or(0.0), spread)
    };
    let samples = |part: &[(usize, Slice)]| part.iter().map(|(_, s)| u64::from(s.samples)).sum();
    let ((before, spread), (after, other)) = (values(first), values(second));
    let shift = (after - before).abs();
    let is_step = shift >= STEP * spread.max(other) && shift >= SMALLEST.max(SHARE * before.min(after));
    let time = |i: usize| series.start() + i as u64 * series.width();
    is_step.then(|| Step {
        at: time(second[0].0),
        before,
        after,
        samples: [samples(first), samples(second)],
        chance,
        start: series.start(),
        end: time(slices[n - 1].0 + 1),
    })
}

impl RttShift {
    fn finding(&self, number: usize, side: usize, step: &Step, samples: &str) -> Finding {
        let (client, server) = self.pairs.names(number);
        let (host, other) = if side == 0 { (client, server) } else { (server, client) };
        let shift = step.after - step.before;
        let turns = &self.turns[number];
        let turns: u64 = (turns.start()..)
            .step_by(turns.width() as usize)
            .zip(turns.iter())
            .filter(|(time, _)| *time >= step.at)
            .map(|(_, n)| u64::from(*n))
            .sum();
        let cost = shift * turns as f64;
        let evidence = vec![
            format!(
                "the smallest round trip of each second between the tap and {host} is {:.2} ms before and {:.2} ms after (medians of {} and {} {samples}, for the traffic with {other})",
                step.before * 1e3,
                step.after * 1e3,
                count(step.samples[0]),
                count(step.samples[1])
            ),
            format!(
                "it changed {:.0} s after the start, to the second, and stayed; chance of that by accident: {}",
                seconds(step.at.saturating_sub(step.start)),
                chance(step.chance)
            ),
            format!(
                "each turn takes {:.2} ms {} since then: {:.3} s in all for {} setups and requests, if each takes one round trip",
                shift.abs() * 1e3,
                if shift > 0.0 { "more" } else { "less" },
                cost.abs(),
                count(turns)
            ),
            "it may also be a queue that never empties: see whether throughput rose at that moment; or a host that answers later (a virtual machine moved)"
                .to_owned(),
            format!("next: routes to {host} and changes in the network at that moment; TTL of its packets before and after"),
        ];
        let mut values = vec![
            ("fromSeconds", step.before),
            ("toSeconds", step.after),
            ("shiftSeconds", shift),
        ];
        if shift > 0.0 {
            values.push(("costSeconds", cost));
        }
        let mut finding = make(
            "RTT_SHIFT",
            if shift > 0.0 { "WARNING" } else { "INFO" },
            (1.0 - step.chance).min(0.95),
            format!(
                "Round trips to {host} went from {:.2} to {:.2} ms",
                step.before * 1e3,
                step.after * 1e3
            ),
            evidence,
            &Group::range(step.at, step.end),
            &values,
        );
        finding.who = format!("{} to {host}", self.pairs.who(number));
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use weir_analysis::Ends;

    fn series(rtt: impl Fn(u64, &mut Random) -> u64) -> Bins<Slice> {
        let mut bins = Bins::new(WIDTH);
        let mut random = Random::new(7);
        for i in 0..60 * 20u64 {
            let min = rtt(i / 20, &mut random) as u32;
            *bins.at(i * WIDTH / 20) += Slice { min, samples: 1 };
        }
        bins
    }

    /// Requests of one segment are acknowledged with their responses, which get slower; their setups say that the way
    /// does not.
    #[test]
    fn what_setups_contradict_is_no_step() {
        let told = |setups: fn(u64) -> u64| {
            let mut shift = RttShift::default();
            for i in 0..60 * 20u64 {
                let late = if i < 41 * 20 { 0 } else { 20_000_000 };
                for (is_data, rtt) in [(true, 10_000_000 + late), (false, setups(late))] {
                    let ack = Acknowledged {
                        id: weir_record::FlowId(1),
                        ends: Ends::default(),
                        by_server: true,
                        time: i * WIDTH / 20,
                        rtt,
                        is_data,
                        is_prompt: true,
                        is_one_left: false,
                    };
                    shift.acknowledged(&ack, &mut Route::new(&ack.ends, 0));
                }
            }
            let mut out = Vec::new();
            shift.findings(&Timeline::default(), &mut out);
            out.len()
        };
        assert_eq!(told(|_| 10_000_000), 0);
        assert_eq!(told(|late| 10_000_000 + late), 1);
    }

    #[test]
    fn what_is_told_is_the_median_of_an_even_number_of_slices_too() {
        let found = step(&series(|s, _| if s < 40 { 10_000 } else { 20_000 } + 100 * (s % 2))).expect("a step");
        assert!((found.before - 0.010_05).abs() < 1e-9, "{}", found.before);
        assert!((found.after - 0.020_05).abs() < 1e-9, "{}", found.after);
    }

    #[test]
    fn a_step_is_found_and_a_drift_or_noise_is_none() {
        let noise = |random: &mut Random| random.below(3000) as u64;
        let found = step(&series(|s, r| if s < 41 { 10_000 } else { 12_000 } + noise(r))).expect("a step");
        assert_eq!(found.at, 41 * WIDTH);
        assert!((found.after - found.before - 0.002).abs() < 0.0002);
        assert!(step(&series(|_, r| 10_000 + noise(r))).is_none());
        assert!(step(&series(|s, r| 10_000 + 200 * s + noise(r))).is_none(), "a drift");
        // A queue for half of the time that empties now and then.
        assert!(step(&series(|s, r| 10_000 + if s > 30 { r.below(20_000) as u64 } else { 0 })).is_none());
    }
}
