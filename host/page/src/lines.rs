//! What happened when: sorted moments and running sums, so that any pixel column is two searches.

use weir_patterns::{Loss, loss};

use crate::dataset::Dataset;
use crate::span::Span;

/// Moments with weights.
#[derive(Debug, Default)]
pub struct Weighted {
    times: Vec<u64>,
    /// Sums up to and without the moment of the same place; one more for the end.
    sums: Vec<u64>,
}

impl Weighted {
    fn new(mut items: Vec<(u64, u64)>) -> Self {
        if !items.is_sorted_by_key(|(time, _)| *time) {
            items.sort_unstable();
        }
        let mut sums = Vec::with_capacity(items.len() + 1);
        let mut sum = 0;
        sums.push(0);
        for (_, weight) in &items {
            sum += weight;
            sums.push(sum);
        }
        Self {
            times: items.into_iter().map(|(time, _)| time).collect(),
            sums,
        }
    }

    /// Sum of the weights in a range.
    pub fn sum(&self, span: Span) -> u64 {
        let part = span.part(&self.times, |time| *time);
        self.sums[part.end] - self.sums[part.start]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }
}

/// Moments in order.
#[derive(Debug, Default)]
pub struct Moments(Vec<u64>);

impl Moments {
    fn new(mut times: Vec<u64>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// How many are in a range.
    pub fn count(&self, span: Span) -> u32 {
        span.part(&self.0, |time| *time).len() as u32
    }
}

/// How many of something there were at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    pub min: u32,
    pub max: u32,
    pub mean: f64,
}

/// Things that begin and end; each is there at both moments.
#[derive(Debug, Default)]
pub struct Spells {
    begins: Vec<u64>,
    ends: Vec<u64>,
}

impl Spells {
    fn new(spells: impl Iterator<Item = (u64, u64)>) -> Self {
        let (mut begins, mut ends): (Vec<u64>, Vec<u64>) = spells.unzip();
        begins.sort_unstable();
        ends.sort_unstable();
        Self { begins, ends }
    }

    /// How many there were in a range.
    pub fn level(&self, span: Span) -> Level {
        let begins = &self.begins[span.part(&self.begins, |time| *time)];
        let ends = &self.ends[span.part(&self.ends, |time| *time)];
        let begun = self.begins.partition_point(|time| *time < span.from);
        let ended = self.ends.partition_point(|time| *time < span.from);
        let mut now = (begun - ended) as i64;
        let (mut min, mut max, mut area, mut since) = (i64::MAX, now, 0u128, span.from);
        let (mut b, mut e) = (0, 0);
        loop {
            let next = match (begins.get(b), ends.get(e)) {
                (Some(begin), Some(end)) if begin <= end => (*begin, 1),
                (Some(begin), None) => (*begin, 1),
                (_, Some(end)) => (*end, -1),
                (None, None) => break,
            };
            let (time, step) = next;
            if time > since {
                // What lasted no time was no smallest.
                min = min.min(now);
                area += (time - since) as u128 * now.max(0) as u128;
                since = time;
            }
            now += step;
            if step > 0 {
                b += 1;
            } else {
                e += 1;
            }
            max = max.max(now);
        }
        min = min.min(now);
        area += (span.to - since) as u128 * now.max(0) as u128;
        Level {
            min: min.max(0) as u32,
            max: max.max(0) as u32,
            mean: area as f64 / (span.to - span.from) as f64,
        }
    }
}

/// Everything over time. Sides: 0 the client.
#[derive(Debug, Default)]
pub struct Lines {
    pub connections: Spells,
    pub in_progress: Spells,
    pub opened: Moments,
    pub closed: Moments,
    pub failed: Moments,
    pub requests: Moments,
    pub responses: Moments,
    /// Data segments and their payload; none: neither packets nor blocks are kept.
    pub traffic: Option<[(Weighted, Weighted); 2]>,
    /// Data segments that were sent again.
    pub retransmitted: [Moments; 2],
    /// Data segments.
    pub lost: [Weighted; 2],
    /// SYNs, SYN-ACKs.
    pub repeats: [Moments; 2],
    /// Data segments.
    pub missed: Weighted,
}

impl Lines {
    /// Of the connections that `has` takes, by row; none: the connection is not kept.
    pub fn of(data: &Dataset, has: impl Fn(Option<u32>) -> bool) -> Self {
        let lives = || {
            let rows = (0u32..).zip(&data.lives);
            rows.filter(|(row, _)| has(Some(*row))).map(|(_, life)| life)
        };
        let requests = || {
            let all = data.exchanges.iter().filter(|t| !t.is_setup);
            all.filter(|t| has(t.connection))
        };
        let ended = || requests().filter_map(|t| Some((t.begin, t.end?)));
        let waiting = data.waiting.iter().filter(|request| has(request.connection));
        let waiting = waiting.map(|request| (request.begin, data.end()));
        let mut retransmitted = [Vec::new(), Vec::new()];
        let mut lost = [Vec::new(), Vec::new()];
        let mut repeats = [Vec::new(), Vec::new()];
        let mut missed = Vec::new();
        for verdict in &data.verdicts {
            if !has(data.row(verdict.connection.0)) {
                continue;
            }
            let side = usize::from(verdict.from_server);
            let at = data.since_tai(verdict.lost_at);
            match loss(verdict) {
                Some(Loss::Setup) => repeats[side].push(data.since_tai(verdict.time)),
                Some(Loss::Data(segments)) => lost[side].push((at, u64::from(segments))),
                Some(Loss::Capture(segments)) => missed.push((at, u64::from(segments))),
                Some(Loss::Doubtful) | None => {}
            }
            if verdict.is_data_again() {
                retransmitted[side].push(data.since_tai(verdict.time));
            }
        }
        Self {
            connections: Spells::new(lives().map(|life| (life.first, if life.open { data.end() } else { life.last }))),
            in_progress: Spells::new(ended().chain(waiting)),
            opened: Moments::new(lives().map(|life| life.first).collect()),
            closed: Moments::new(lives().filter(|life| !life.open).map(|life| life.last).collect()),
            failed: Moments::new(lives().filter(|life| life.failed).map(|life| life.first).collect()),
            requests: Moments::new(requests().map(|t| t.begin).collect()),
            responses: Moments::new(ended().map(|(_, end)| end).collect()),
            traffic: traffic(data, &has),
            retransmitted: retransmitted.map(Moments::new),
            lost: lost.map(Weighted::new),
            repeats: repeats.map(Moments::new),
            missed: Weighted::new(missed),
        }
    }
}

/// Data segments, from the packets where all are kept, or else from the blocks.
fn traffic(data: &Dataset, has: &impl Fn(Option<u32>) -> bool) -> Option<[(Weighted, Weighted); 2]> {
    let mut segments = [Vec::new(), Vec::new()];
    let mut bytes = [Vec::new(), Vec::new()];
    if let Some(packets) = data.all_packets() {
        let chosen: Vec<bool> = packets.ids.iter().map(|id| has(data.row(*id))).collect();
        let all = packets.all.iter().filter(|p| p.length > 0);
        for packet in all.filter(|p| chosen[p.flow as usize]) {
            segments[packet.side()].push((packet.time, 1));
            bytes[packet.side()].push((packet.time, u64::from(packet.length)));
        }
    } else if !data.blocks.is_empty() {
        for block in data.blocks.iter().filter(|block| has(data.row(block.id.0))) {
            let (side, at) = (usize::from(block.from_server), data.since_tai(block.first));
            segments[side].push((at, u64::from(block.packets)));
            bytes[side].push((at, u64::from(block.bytes)));
        }
        let late = data.verdicts.iter().filter(|verdict| verdict.is_late());
        for verdict in late.filter(|verdict| has(data.row(verdict.connection.0))) {
            segments[usize::from(verdict.from_server)].push((data.since_tai(verdict.time), 1));
        }
    } else {
        return None;
    }
    let [segments0, segments1] = segments.map(Weighted::new);
    let [bytes0, bytes1] = bytes.map(Weighted::new);
    Some([(segments0, bytes0), (segments1, bytes1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_looking_at_each_moment() {
        let spells = [(0, 4), (2, 2), (3, 9), (4, 6), (20, 21)];
        let all = Spells::new(spells.into_iter());
        for from in 0..25 {
            for to in from + 1..26 {
                let level = all.level(Span { from, to });
                // Open from its begin up to its end; at the end itself it is still there.
                let between = |t: u64| spells.iter().filter(|(b, e)| *b <= t && t < *e).count() as u32;
                let at = |t: u64| spells.iter().filter(|(b, e)| *b <= t && t <= *e).count() as u32;
                let max = (from..to).map(at).max();
                let min = (from..to).map(between).min();
                let area: u32 = (from..to).map(between).sum();
                assert_eq!((Some(level.max), Some(level.min)), (max, min), "{from} to {to}");
                assert!((level.mean - f64::from(area) / (to - from) as f64).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn sums_of_parts_are_the_whole() {
        let line = Weighted::new((0..100).map(|n| (n * n % 37, n)).collect());
        let columns = Span { from: 0, to: 40 }.columns(7);
        let sum: u64 = (0..7)
            .map(|c| {
                line.sum(Span {
                    from: columns.edge(c),
                    to: columns.edge(c + 1),
                })
            })
            .sum();
        assert_eq!((sum, line.total()), (4950, 4950));
    }
}
