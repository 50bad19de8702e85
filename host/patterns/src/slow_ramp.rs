//! SLOW_RAMP: the load on a front tier jumps, and its connections to the tier behind grow by a few a second.
//!
//! In each phase of load the connections behind are laid against a straight line, from the first seconds to where they
//! have done nine tenths of their growth. Meanwhile requests in front exceed the calls under way: somebody waits for
//! the connections that are not there yet.
//!
//! Works on the slices of the services; no memory of its own.

use weir_analysis::{Group, address, decimal, finding, seconds};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::about;
use crate::phases::phases;
use crate::tiers::{Both, Pair, pairs};
use crate::timeline::Timeline;

/// ns.
const SLICE: u64 = 1_000_000_000;
/// What there is at once is there after so many slices; growth begins behind them.
const AT_ONCE: usize = 2;
/// A ramp takes so many slices at least...
const SLICES: usize = 5;
/// ...and adds so many connections, and this share of the highest number.
const CONNECTIONS: f64 = 4.0;
const SHARE: f64 = 0.2;
/// Growth is looked at up to this share of it.
const MOST_OF_IT: f64 = 0.9;
/// Straight: share of the variance that a line explains. Noise of a random walk seldom does (0.95 once in 100 walks
/// of 20 steps).
const STRAIGHT: f64 = 0.95;
/// Requests in front over calls under way.
const WAITING: f64 = 1.2;
/// The front tier is there at once: this share of its level in the phase, before growth begins.
const JUMP: f64 = 0.7;

/// Slow ramps.
#[derive(Debug, Default)]
pub(crate) struct SlowRamp;

/// Connections that grow.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    start: u64,
    end: u64,
    from: f64,
    to: f64,
    per_second: f64,
    /// Requests in front meanwhile.
    front: f64,
    /// Connections that were still to come, times time, s.
    missing: f64,
}

impl Detector for SlowRamp {
    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
        let services = timeline.services();
        let pairs = pairs(services);
        if pairs.is_empty() {
            return;
        }
        let phases = phases(services);
        for pair in &pairs {
            let (slices, width) = pair.slices(SLICE);
            let ramps: Vec<Ramp> = phases
                .iter()
                .filter_map(|phase| {
                    let from = slices.partition_point(|slice| slice.start + width / 2 < phase.start);
                    let to = slices.partition_point(|slice| slice.start + width <= phase.end);
                    ramp(slices.get(from..to)?, width)
                })
                .collect();
            out.extend(tell(pair, &ramps));
        }
    }
}

/// The ramp of a phase, if there is one.
fn ramp(phase: &[Both], width: u64) -> Option<Ramp> {
    let growing = phase.get(AT_ONCE..)?;
    let first = growing.first()?.connections;
    let highest = growing.iter().map(|slice| slice.connections).fold(0.0, f64::max);
    let growth = highest - first;
    let until = growing
        .iter()
        .position(|slice| slice.connections >= first + MOST_OF_IT * growth)?;
    let line = &growing[..=until];
    if line.len() < SLICES || growth < CONNECTIONS || growth < SHARE * highest {
        return None;
    }
    let mean = |value: fn(&Both) -> f64, of: &[Both]| of.iter().map(value).sum::<f64>() / of.len() as f64;
    let front = mean(|slice| slice.front, line);
    let level = mean(|slice| slice.front, phase);
    let jumped = phase[..=AT_ONCE].iter().any(|slice| slice.front >= JUMP * level);
    if !jumped || front < WAITING * mean(|slice| slice.back + slice.elsewhere, line) {
        return None;
    }
    let (slope, explained) = straight(line);
    (explained >= STRAIGHT && slope > 0.0).then(|| Ramp {
        start: line[0].start,
        end: line[until].start + width,
        from: first,
        to: line[until].connections,
        per_second: slope / seconds(width),
        front,
        missing: line.iter().map(|slice| highest - slice.connections).sum::<f64>() * seconds(width),
    })
}

/// Slope a slice of the connections, and the share of their variance that it explains.
fn straight(line: &[Both]) -> (f64, f64) {
    let n = line.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = line.iter().map(|slice| slice.connections).sum::<f64>() / n;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (i, slice) in line.iter().enumerate() {
        let (x, y) = (i as f64 - middle, slice.connections - mean);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    if xx <= 0.0 || yy <= 0.0 {
        return (0.0, 0.0);
    }
    (xy / xx, xy * xy / (xx * yy))
}

fn tell(pair: &Pair<'_>, ramps: &[Ramp]) -> Option<Finding> {
    let longest = ramps.iter().max_by_key(|ramp| ramp.end - ramp.start)?;
    let (front, back) = (pair.front.name(), pair.back.name());
    let missing: f64 = ramps.iter().map(|ramp| ramp.missing).sum();
    let mut evidence: Vec<String> = ramps
        .iter()
        .map(|ramp| {
            format!(
                "{} requests at once in {front}; connections to {back} grow from {} to {} in {:.0} s: {:.2} a second",
                decimal(ramp.front, 0),
                decimal(ramp.from, 0),
                decimal(ramp.to, 0),
                seconds(ramp.end - ramp.start),
                ramp.per_second
            )
        })
        .collect();
    let host = address(pair.front.key.0);
    evidence.extend([
        format!(
            "connections that were still to come would have worked for {} s in those times",
            decimal(missing, 0)
        ),
        format!("it may also be {back} that accepts connections slowly: compare the times of the setups"),
        format!("next: let the pool on {host} open connections as they are needed, or begin with more"),
    ]);
    let last = ramps.last()?;
    let finding = finding(
        "SLOW_RAMP",
        "WARNING",
        0.9,
        format!("Connections to {back} grow by {:.1} a second only", longest.per_second),
        evidence,
        &Group::range(ramps.first()?.start, last.end),
        &[
            ("perSecond", longest.per_second),
            ("seconds", seconds(longest.end - longest.start)),
            ("costSeconds", missing),
        ],
    );
    Some(about(format!("{front} > {back}"), finding))
}
