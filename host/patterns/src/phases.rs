//! Phases of load: times in which about as many connections were open.
//!
//! The level is that of the services whose clients are no servers themselves, so that a tier that follows does not blur
//! it. Levels are compared by their logarithm, and cut where that explains them best (optimal partitioning: Jackson et
//! al. 2005, "An algorithm for optimal partitioning of data on an interval"), at a price for each cut that is what chance
//! explains as well, by how much the levels scatter.

use crate::bins::Bins;
use crate::rank::median;
use crate::services::{Answers, Load, Service, Services};
use crate::steps::{Level, Steps, levels};

/// Slices that are looked at: at least so many if they are no shorter than those of the services, at most twice that.
const SLICES: u64 = 256;
/// Added to a level before its logarithm is taken: chance moves the logarithm of `x + 5` by 0.22 at most, whatever the
/// level of a Poisson process is.
const SOFT: f64 = 5.0;
/// Blocks of slices by whose means it is seen how much levels scatter: steps from one load to the next are in a few of
/// them only.
const BLOCKS: usize = 32;
/// Standard deviation of a normal law over the median distance from its mean.
const SIGMA: f64 = 1.4826;
/// What a cut must explain, in variances times the logarithm of the number of slices: the best of all places for one
/// explains 2 by chance (Yao 1988, "Estimating the number of change-points via Schwarz' criterion").
const CHANCE: f64 = 4.0;
/// And of the number of slices, at least and at most.
const LEAST_PRICE: f64 = 0.005;
const MOST_PRICE: f64 = 0.03;
/// No level lasts for less than this share of the slices.
const SHORTEST: f64 = 0.025;
/// Levels that differ by less are one.
const RATIO: f64 = 1.25;
/// A step on the way from one level to the next is no level of its own if it is shorter than this share of the longer
/// of its neighbours, and a level below both is a pause.
const STEP: f64 = 0.25;
/// A level is left when so much of the way to the next is done.
const LEAVES: f64 = 0.02;
/// Below this share of the highest level nothing is going on.
const IDLE: f64 = 0.05;
/// Fewer connections at once are no load.
const LEAST: f64 = 1.0;

/// A time with about the same load.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// TAI ns; the level begins to leave that of the time before here.
    pub start: u64,
    /// TAI ns.
    pub end: u64,
    /// Median of the connections open at once.
    pub connections: f64,
}

/// What a service had to do in a phase, or all that is asked for.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Sums of the load.
    pub load: Load,
    /// Means over the phase.
    pub connections: f64,
    /// See `connections`.
    pub progress: f64,
    /// Times of setups and responses that ended in it.
    pub answers: Answers,
}

impl Work {
    /// Of a service between two times, by whole slices.
    pub fn of(service: &Service, start: u64, end: u64) -> Self {
        let mut work = Self::default();
        let inside = |from: u64, width: u64| from + width / 2 >= start && from + width / 2 < end;
        let width = service.load.width();
        let mut slices = 0;
        let mut both = (0.0, 0.0);
        let connections = levels(&service.load, |load| load.connections);
        let progress = levels(&service.load, |load| load.progress);
        for ((bin, connections), progress) in service.load.iter().zip(connections).zip(progress) {
            if inside(connections.start, width) {
                work.load += *bin;
                both = (both.0 + connections.mean, both.1 + progress.mean);
                slices += 1;
            }
        }
        let slices = (slices.max((end - start) / width)).max(1) as f64;
        (work.connections, work.progress) = (both.0 / slices, both.1 / slices);
        let width = service.answers.width();
        for (i, bin) in service.answers.iter().enumerate() {
            if inside(service.answers.start() + i as u64 * width, width) {
                work.answers += bin.clone();
            }
        }
        work
    }
}

/// Connections of all services whose clients are no servers, in slices of one width.
fn outer_connections(services: &Services) -> Option<Bins<Steps>> {
    let outer = || services.iter().filter(|service| services.is_outer(service));
    let any = outer().next().is_some();
    let those: Vec<&Service> = services.iter().filter(|s| !any || services.is_outer(s)).collect();
    let width = those.iter().map(|service| service.load.width()).max()?;
    let mut sum = Bins::new(width);
    for service in those {
        let times = (service.load.start()..).step_by(service.load.width() as usize);
        for (time, bin) in times.zip(service.load.iter()) {
            *sum.at(time) += bin.connections;
        }
    }
    Some(sum)
}

/// The phases, in the order of time.
pub fn phases(services: &Services) -> Vec<Phase> {
    let Some(bins) = outer_connections(services) else {
        return Vec::new();
    };
    let fine: Vec<Level> = levels(&bins, |steps: &Steps| *steps).collect();
    let factor = (bins.len() as u64 / SLICES).max(1);
    let coarse = bins.coarser(bins.width() * factor);
    let means: Vec<f64> = levels(&coarse, |steps: &Steps| *steps)
        .map(|level| level.mean)
        .collect();
    let begun: f64 = bins.iter().map(|steps| f64::from(steps.up)).sum();
    let stay = means.iter().sum::<f64>() / begun.max(1.0);
    let mut parts = join(partition(&means, price(&means, stay)));
    smooth(&mut parts);
    let highest = parts.iter().map(|part| part.level).fold(0.0, f64::max);
    let idle = (IDLE * highest).max(LEAST);
    let time = |slice: usize| coarse.start() + slice as u64 * coarse.width();
    let levels_of = |from: u64, to: u64| {
        let inside = fine.iter().filter(move |level| level.start >= from && level.start < to);
        inside.map(|level| level.mean).collect::<Vec<f64>>()
    };
    let last = fine.last().map_or(0, |level| level.start + bins.width());
    let mut out: Vec<Phase> = Vec::new();
    let is_load = |(i, part): &(usize, &Part)| part.level >= idle && !is_pause(&parts, *i);
    for (i, part) in parts.iter().enumerate().filter(is_load) {
        let before = i.checked_sub(1).and_then(|i| parts.get(i));
        let after = parts.get(i + 1);
        let (from, to) = (time(part.from), time(part.to).min(last));
        // Where the level crosses the middle, between the slices that are surely of one phase.
        let start = match before {
            Some(before) => crossing(
                &fine,
                time(before.to).saturating_sub(coarse.width()),
                from + coarse.width(),
                before.level,
                part.level,
            ),
            None => crossing(&fine, 0, from + coarse.width(), 0.0, part.level),
        };
        let end = match after {
            Some(after) => crossing(
                &fine,
                to.saturating_sub(coarse.width()),
                time(after.from) + coarse.width(),
                part.level,
                after.level,
            ),
            None => crossing(&fine, to.saturating_sub(coarse.width()), last, part.level, 0.0),
        };
        out.push(Phase {
            start: start.unwrap_or(from),
            end: end.unwrap_or(to),
            connections: median(&levels_of(from, to)).unwrap_or(0.0),
        });
    }
    out
}

/// Where the level leaves `before` on its way to `after`: back from the first slice between two times that is beyond the
/// middle, to the last that is still near `before`.
fn crossing(fine: &[Level], from: u64, to: u64, before: f64, after: f64) -> Option<u64> {
    let way = |level: &Level| (level.mean - before) / (after - before);
    let inside = |level: &&Level| level.start >= from && level.start <= to;
    let beyond = fine.iter().position(|level| inside(&level) && way(level) > 0.5)?;
    let left = |level: &Level| (level.last as f64 - before) / (after - before);
    let near = fine[..beyond].iter().rposition(|level| left(level) < LEAVES);
    Some(fine[near.map_or(0, |near| near + 1)].start)
}

/// Slices `from..to` with one level.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    from: usize,
    to: usize,
    level: f64,
}

impl Part {
    const fn len(&self) -> usize {
        self.to - self.from
    }
}

fn logarithm(level: f64) -> f64 {
    (level.max(0.0) + SOFT).ln()
}

/// What a cut must explain of the logarithms of levels of things that stay for so many slices on average.
fn price(means: &[f64], stay: f64) -> f64 {
    let n = means.len() as f64;
    let length = (means.len() / BLOCKS).max(1);
    let blocks = means.chunks_exact(length).map(|block| {
        let sum: f64 = block.iter().map(|mean| logarithm(*mean)).sum();
        sum / length as f64
    });
    let blocks: Vec<f64> = blocks.collect();
    let steps: Vec<f64> = blocks.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let step = SIGMA * median(&steps).unwrap_or(0.0);
    let length = length as f64;
    // Of a slice, if each were by itself. What stays for longer than a block is in the next as well, so that their
    // difference is too small.
    let variance = length * step * step / 2.0 * (2.0 * (stay / length).powi(2)).max(1.0);
    (CHANCE * variance * n.max(1.0).ln()).clamp(LEAST_PRICE * n, MOST_PRICE * n)
}

/// The cuts that explain the logarithms of the levels best.
fn partition(means: &[f64], price: f64) -> Vec<Part> {
    let n = means.len();
    let shortest = ((SHORTEST * n as f64) as usize).max(1);
    // Sums of the values, their squares, and the levels themselves.
    let mut sums = vec![(0.0, 0.0, 0.0)];
    for &mean in means {
        let y = logarithm(mean);
        let &(a, b, c) = &sums[sums.len() - 1];
        sums.push((a + y, b + y * y, c + mean));
    }
    let cost = |from: usize, to: usize| {
        let sum = sums[to].0 - sums[from].0;
        sums[to].1 - sums[from].1 - sum * sum / (to - from) as f64
    };
    let mut best = vec![(0.0, 0); n + 1];
    for to in 1..=n {
        let tries = (0..=to.saturating_sub(shortest)).map(|from| (best[from].0 + cost(from, to) + price, from));
        best[to] = tries.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    }
    let mut parts = Vec::new();
    let mut to = n;
    while to > 0 {
        let from = best[to].1;
        let level = (sums[to].2 - sums[from].2) / (to - from) as f64;
        parts.push(Part { from, to, level });
        to = from;
    }
    parts.reverse();
    parts
}

/// Neighbours that hardly differ become one.
fn join(parts: Vec<Part>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    for part in parts {
        match out.last_mut() {
            Some(last) if last.level.max(part.level) < RATIO * last.level.min(part.level) => {
                let (a, b) = (last.len() as f64, part.len() as f64);
                last.level = (last.level * a + part.level * b) / (a + b);
                last.to = part.to;
            }
            _ => out.push(part),
        }
    }
    out
}

/// Takes out the steps on the way from one level to another.
fn smooth(parts: &mut Vec<Part>) {
    loop {
        let step = (0..parts.len()).find(|&i| {
            let nothing = Part {
                from: 0,
                to: 0,
                level: 0.0,
            };
            let before = i.checked_sub(1).map_or(nothing, |i| parts[i]);
            let after = parts.get(i + 1).copied().unwrap_or(nothing);
            let (low, high) = (before.level.min(after.level), before.level.max(after.level));
            let longer = before.len().max(after.len()) as f64;
            let between = low < parts[i].level && parts[i].level < high;
            between && (parts[i].len() as f64) < STEP * longer
        });
        let Some(step) = step else { return };
        parts.remove(step);
    }
}

/// Whether one load ends and the next begins in a part: it is lower than both, and short.
fn is_pause(parts: &[Part], number: usize) -> bool {
    let (before, after) = (number.checked_sub(1).and_then(|i| parts.get(i)), parts.get(number + 1));
    before.zip(after).is_some_and(|(before, after)| {
        let longer = before.len().max(after.len()) as f64;
        let part = &parts[number];
        part.level < before.level.min(after.level) && (part.len() as f64) < STEP * longer
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn cut(levels: &[(usize, f64)]) -> Vec<Part> {
        let means: Vec<f64> = levels.iter().flat_map(|&(n, level)| vec![level; n]).collect();
        of(&means, 1.0)
    }

    /// Levels of things that stay for so many slices.
    fn of(means: &[f64], stay: f64) -> Vec<Part> {
        let mut parts = join(partition(means, price(means, stay)));
        smooth(&mut parts);
        parts
    }

    #[test]
    fn steps_count_beside_larger_ones_and_small_ones_where_the_levels_hardly_scatter() {
        let mut random = Random::new(21);
        for (length, levels) in [(60, &[10.0, 20.0, 40.0, 80.0, 160.0][..]), (87, &[20.0, 30.0, 40.0])] {
            let means: Vec<f64> = levels
                .iter()
                .flat_map(|level| vec![*level; length])
                .map(|level| level * (0.95 + random.below(100) as f64 / 1e3))
                .collect();
            let ends: Vec<usize> = of(&means, 1.0).iter().map(|part| part.to).collect();
            let expected: Vec<usize> = (1..=levels.len()).map(|i| i * length).collect();
            assert_eq!(ends, expected);
        }
    }

    /// Twenty at once by chance, each for 35 of 300 slices.
    #[test]
    fn what_wanders_by_chance_is_one_phase() {
        let mut random = Random::new(22);
        let mut cut = 0;
        for _ in 0..20 {
            let mut begun = [0.0; 335];
            for _ in 0..20 * 335 / 35 {
                begun[random.below(335)] += 1.0;
            }
            let means: Vec<f64> = (35..335).map(|i| begun[i - 35..i].iter().sum()).collect();
            cut += usize::from(of(&means, 35.0).len() > 1);
        }
        assert!(cut <= 2, "{cut}");
    }

    #[test]
    fn levels_are_cut_where_they_change() {
        let parts = cut(&[(4, 0.0), (76, 25.0), (12, 0.0), (80, 50.0)]);
        let ends: Vec<usize> = parts.iter().map(|part| part.to).collect();
        assert_eq!(ends, [4, 80, 92, 172]);
    }

    #[test]
    fn where_one_load_ends_and_the_next_begins_is_a_pause() {
        for (length, expected) in [(8, true), (40, false)] {
            let parts = cut(&[(76, 25.0), (length, 12.0), (80, 50.0)]);
            assert_eq!(parts.len(), 3, "{parts:?}");
            let pauses: Vec<bool> = (0..3).map(|i| is_pause(&parts, i)).collect();
            assert_eq!(pauses, [false, expected, false]);
        }
    }

    #[test]
    fn a_ramp_belongs_to_no_phase_of_its_own() {
        let ramp: Vec<(usize, f64)> = (1..10).map(|i| (1, f64::from(i) * 10.0)).collect();
        let parts = cut(&[&[(60, 0.0)], ramp.as_slice(), &[(100, 100.0)]].concat());
        assert_eq!(parts.len(), 2, "{parts:?}");
    }

    #[test]
    fn an_even_load_is_one_phase() {
        let wave: Vec<(usize, f64)> = (0..300).map(|i| (1, 30.0 + 4.0 * f64::from(i % 7) - 12.0)).collect();
        assert_eq!(cut(&wave).len(), 1);
        assert!(cut(&[]).is_empty());
    }
}
