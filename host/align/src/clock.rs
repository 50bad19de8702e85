//! Two clocks against each other, from packets that both taps saw.
//!
//! No packet leaves before it arrives: the difference of its two stamps (clock of `to` minus clock of `from`) is at
//! least the offset of the clocks when it went forward, at most the offset when it went backward. Every line that lies
//! below all forward differences and above all backward ones is a possible history of the two clocks; the truth is
//! one of them as long as the clocks run evenly. The line with the most room between both clouds is taken (its ends
//! rest on the hulls of Moon, Skelly, Towsley 1999), the interval is what all possible lines reach. Where no line is
//! possible, or the floors of both directions jump by the same amount in opposite senses, a clock was set or changed
//! its pace, and a new piece begins (after Zhang, Liu, Xia 2002, who find such points in one direction's hull).
//!
//! Stamps in steps may be wrong by a step: lines that cross the clouds by no more than the steps of both taps are possible, too.
//!
//! Memory is bounded: of each block of packets the fastest one of either direction is kept, and blocks are joined in
//! pairs when there are many. Constraints left out make the interval wider, never wrong.

use crate::link::{Link, passages};

/// Differences in a block before it is full, at first.
const BLOCK: u32 = 24;
/// Blocks kept; then two and two are joined.
const MAX_BLOCKS: usize = 4096;
/// Faster drift than this is no clock's: 1,000 ppm. In ns per s.
pub(crate) const MAX_SLOPE: f64 = 1_000_000.0;
/// A line with more than this part of it is no clock's, either.
const NO_CLOCK: f64 = 0.99;
/// Steps of the searches over slopes: the golden section cut so often is below 10⁻¹² of the range.
const STEPS: usize = 64;
/// Of a drift of 1,000 ppm, a century is a nanosecond after six.
const BACK_STEPS: usize = 7;
/// Blocks on each side of a jump that are compared.
const NEIGHBOURS: usize = 8;
/// Blocks that a drift is told from.
const ENOUGH: usize = 8;
/// Room that no drift is believed for is at least the resolution of common stamps and at most this, ns.
const RESOLUTION: f64 = 1_000.0;
const MOST_NOISE: f64 = 20_000.0;
/// Round trips of so many steps of the stamps are longer than these can hide.
const MANY_STEPS: f64 = 8.0;
/// Jumps below this are not looked for, ns.
const SMALLEST_JUMP: f64 = 100_000.0;
/// Blocks that a wander is told from; the part of the smallest round trip that it is worth; and how often the median step between
/// neighbours is in it. Of numbers by chance that is less than four times.
const WANDER_BLOCKS: usize = 16;
const WANDER_LEAST: f64 = 0.2;
const WANDER_SMOOTH: f64 = 8.0;

/// A time, s after the base, and a difference, ns above the base.
type Point = (f64, f64);

/// Fastest packets of a stretch of time.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    start: f64,
    end: f64,
    count: u32,
    /// Smallest forward difference: the offset is at most that.
    above: Option<Point>,
    /// Largest backward difference: the offset is at least that.
    below: Option<Point>,
}

impl Block {
    fn add(&mut self, point: Point, backward: bool) {
        if self.count == 0 {
            (self.start, self.end) = (point.0, point.0);
        }
        self.start = self.start.min(point.0);
        self.end = self.end.max(point.0);
        self.count += 1;
        if backward {
            if self.below.is_none_or(|kept| point.1 > kept.1) {
                self.below = Some(point);
            }
        } else if self.above.is_none_or(|kept| point.1 < kept.1) {
            self.above = Some(point);
        }
    }

    fn join(&mut self, later: &Block) {
        self.end = self.end.max(later.end);
        self.count = self.count.saturating_add(later.count);
        if let Some(point) = later.above
            && self.above.is_none_or(|kept| point.1 < kept.1)
        {
            self.above = Some(point);
        }
        if let Some(point) = later.below
            && self.below.is_none_or(|kept| point.1 > kept.1)
        {
            self.below = Some(point);
        }
    }
}

/// Collects differences, in about the order of time.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    base_time: u64,
    base: i64,
    blocks: Vec<Block>,
    block_size: u32,
    /// Slowest links forward and backward.
    links: [Link; 2],
}

impl Clock {
    /// Nothing known.
    pub fn new() -> Self {
        Self {
            base_time: 0,
            base: 0,
            blocks: Vec::new(),
            block_size: BLOCK,
            links: [Link::new(), Link::new()],
        }
    }

    /// A packet that passed `from` at `time` (its clock), with the stamp of `to` minus that of `from`.
    pub fn add(&mut self, time: u64, difference: i64, backward: bool) {
        if self.blocks.is_empty() {
            (self.base_time, self.base) = (time, difference);
        }
        let point = (
            time.wrapping_sub(self.base_time) as i64 as f64 / 1e9,
            difference.wrapping_sub(self.base) as f64,
        );
        let size = self.block_size;
        // A block of one direction only says nothing of the other: it may grow.
        let full = |block: &Block| {
            block.count >= size && ((block.above.is_some() && block.below.is_some()) || block.count >= 16 * size)
        };
        if self.blocks.last().is_none_or(full) {
            if self.blocks.len() == MAX_BLOCKS {
                self.blocks = self
                    .blocks
                    .chunks(2)
                    .map(|two| {
                        let mut block = two[0];
                        for later in &two[1..] {
                            block.join(later);
                        }
                        block
                    })
                    .collect();
                self.block_size *= 2;
            }
            self.blocks.push(Block::default());
        }
        if let Some(block) = self.blocks.last_mut() {
            block.add(point, backward);
        }
    }

    /// A frame of `wire` bytes passed `from` and `to` at these times.
    pub fn passed(&mut self, [from, to]: [u64; 2], wire: u16, backward: bool) {
        let (sent, seen) = if backward { (to, from) } else { (from, to) };
        self.links[usize::from(backward)].add(sent, seen, wire);
    }

    /// The pieces in which the clocks ran evenly; the steps of the stamps of both taps together are `coarse` ns.
    pub fn fit(&self, coarse: u64) -> Fit {
        let steps = Steps::of(&self.blocks, coarse as f64);
        let mut parts = Vec::new();
        cut(&self.blocks, steps, &mut parts);
        let passages = passages(&self.links);
        let last = parts.len() - 1;
        let piece = |(k, part): (usize, &[Block])| {
            let mut piece = Piece::of(part, steps)?.without(passages);
            piece.leave_cuts(part, [k > 0, k < last]);
            Some(piece)
        };
        let pieces = parts.into_iter().enumerate().filter_map(piece).collect();
        Fit {
            base_time: self.base_time,
            base: self.base,
            pieces,
        }
    }
}

/// Steps of the stamps of both taps together, ns.
#[derive(Clone, Copy, Debug)]
struct Steps {
    coarse: f64,
    /// How far a line may cross a cloud before it is impossible.
    slack: f64,
}

impl Steps {
    /// Round trips that are many steps leave room, whatever the steps are: a line that crosses a cloud there is of a clock that was set.
    fn of(blocks: &[Block], coarse: f64) -> Self {
        let quick = round_trip(&floors(blocks, trend(blocks)));
        let is_near = quick <= MANY_STEPS * coarse || quick.is_infinite();
        Self {
            coarse,
            slack: if is_near { coarse } else { 0.0 },
        }
    }
}

/// Parts of blocks in which the clocks ran evenly. The blocks at a cut, one or two, may hold packets of both sides of it, and are left
/// out.
fn cut<'a>(blocks: &'a [Block], steps: Steps, parts: &mut Vec<&'a [Block]>) {
    if blocks.len() < 2 {
        parts.push(blocks);
        return;
    }
    let jump = [1, 2].into_iter().find_map(|mixed| {
        let k = jump(blocks, mixed, steps.coarse)?;
        Some((k, k + mixed))
    });
    let Some((k, rest)) = jump.or_else(|| impossible(blocks, steps.slack).map(|k| (k, k + 1))) else {
        parts.push(blocks);
        return;
    };
    cut(&blocks[..k], steps, parts);
    let rest = if rest < blocks.len() { rest } else { k };
    cut(&blocks[rest..], steps, parts);
}

/// If no line is possible: the cut after which both neighbourhoods have most room.
fn impossible(blocks: &[Block], slack: f64) -> Option<usize> {
    let possible = |part: &[Block]| Bounds::of(part, slack).widest().is_none_or(|(_, room)| room >= 0.0);
    if possible(blocks) {
        return None;
    }
    // The longest possible beginning; more blocks never make more possible.
    let (mut good, mut bad) = (1, blocks.len());
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if possible(&blocks[..middle]) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    let room = |part: &[Block]| Bounds::of(part, slack).widest().map_or(f64::INFINITY, |(_, room)| room);
    let score = |k: usize| {
        let before = room(&blocks[k.saturating_sub(NEIGHBOURS)..k]);
        // The block at the cut may hold packets of both sides.
        let after = room(&blocks[(k + 1).min(blocks.len())..(k + 1 + NEIGHBOURS).min(blocks.len())]);
        before.min(after)
    };
    (good.saturating_sub(NEIGHBOURS).max(1)..=good).max_by(|&a, &b| score(a).total_cmp(&score(b)).then(a.cmp(&b)))
}

/// Fastest packet of a block forward and backward, above a line.
type Floors = (Option<f64>, Option<f64>);

fn floors(blocks: &[Block], slope: f64) -> Vec<Floors> {
    blocks
        .iter()
        .map(|block| {
            (
                block.above.map(|(t, d)| d - slope * t),
                block.below.map(|(t, d)| slope * t - d),
            )
        })
        .collect()
}

/// What the floors of neighbouring blocks differ by: the median.
fn spread(floors: &[Floors]) -> f64 {
    let steps = |pick: fn(&Floors) -> Option<f64>| {
        let known: Vec<f64> = floors.iter().filter_map(pick).collect();
        known.windows(2).map(|two| (two[1] - two[0]).abs()).collect::<Vec<_>>()
    };
    let mut all = steps(|f| f.0);
    all.extend(steps(|f| f.1));
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

/// Drift that most of the blocks show, whatever steps lie between: the median over neighbourhoods.
fn trend(blocks: &[Block]) -> f64 {
    let mut slopes: Vec<f64> = blocks
        .windows(NEIGHBOURS + 1)
        .flat_map(|w| {
            let (first, last) = (&w[0], &w[NEIGHBOURS]);
            [(first.above, last.above), (first.below, last.below)]
        })
        .filter_map(|(first, last)| {
            let (first, last) = (first?, last?);
            (last.0 > first.0).then(|| (last.1 - first.1) / (last.0 - first.0))
        })
        .collect();
    slopes.sort_by(f64::total_cmp);
    let median = slopes.get(slopes.len() / 2).copied().unwrap_or(0.0);
    median.clamp(-MAX_SLOPE, MAX_SLOPE)
}

/// The smallest round trip, as a tenth of the blocks show it at least: one with packets of both sides of a step has a smaller one.
fn round_trip(floors: &[Floors]) -> f64 {
    let mut all: Vec<f64> = floors.iter().filter_map(|floor| Some(floor.0? + floor.1?)).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 10).copied().unwrap_or(f64::INFINITY)
}

/// The clocks wander against a line: blocks without a queue, as their round trips are near the smallest, lie apart from each other by a
/// good part of it, and hardly so from their neighbours. What lies apart by chance does so from its neighbours, too.
fn wander(floors: &[Floors], coarse: f64) -> Option<Wander> {
    let known = floors.iter().filter_map(|floor| Some((floor.0?, floor.1?)));
    let round_trip = known.clone().map(|(a, b)| a + b).fold(f64::INFINITY, f64::min);
    let middles: Vec<f64> = known
        .filter(|(a, b)| a + b <= round_trip * (1.0 + WANDER_LEAST) + 2.0 * coarse)
        .map(|(a, b)| (a - b) / 2.0)
        .collect();
    let mut steps: Vec<f64> = middles.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
    steps.sort_by(f64::total_cmp);
    let (low, high) = middles
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), m| {
            (low.min(*m), high.max(*m))
        });
    let range = high - low;
    let is_apart = range > WANDER_LEAST * round_trip + 4.0 * coarse;
    let is_smooth = steps
        .get(steps.len() / 2)
        .is_some_and(|step| WANDER_SMOOTH * step <= range);
    (middles.len() >= WANDER_BLOCKS && is_apart && is_smooth).then_some(Wander { range, round_trip })
}

/// A step: the floors of both directions move by the same amount, in opposite senses, at once; before and after it, the round trip is
/// the smallest. Queues fill and drain by and by, and make it longer. So many blocks may be `mixed`, with packets of both sides: two,
/// where what was on its way is in both.
fn jump(blocks: &[Block], mixed: usize, coarse: f64) -> Option<usize> {
    let slope = trend(blocks);
    let floors = floors(blocks, slope);
    let lowest = |part: &[Floors]| {
        let of = |pick: fn(&Floors) -> Option<f64>| {
            let known: Vec<f64> = part.iter().filter_map(pick).collect();
            (known.len() >= 3).then(|| known.into_iter().fold(f64::INFINITY, f64::min))
        };
        Some((of(|f| f.0)?, of(|f| f.1)?))
    };
    let spread = spread(&floors);
    let threshold = SMALLEST_JUMP.max(4.0 * spread).max(2.0 * coarse);
    let mut best: Option<(f64, usize)> = None;
    let quick = round_trip(&floors);
    let moved = |k: usize| {
        let before = lowest(&floors[k.saturating_sub(NEIGHBOURS)..k])?;
        let after = lowest(&floors[k + mixed..(k + mixed + NEIGHBOURS).min(floors.len())])?;
        let longer = (before.0 + before.1).max(after.0 + after.1) - quick;
        Some((after.0 - before.0, after.1 - before.1, longer))
    };
    let next = |k: usize| {
        let ((a, b), (c, d)) = (floors[k - 1], floors[k + mixed]);
        Some((c? - a?, d? - b?))
    };
    for k in 1..blocks.len().saturating_sub(mixed) {
        let (Some((up, down, longer)), Some(next)) = (moved(k), next(k)) else {
            continue;
        };
        let size = up.abs().min(down.abs());
        let opposite = up.signum() != down.signum() && (up + down).abs() <= 0.25 * size;
        // Packets of both sides make a round trip shorter than any.
        let is_mixed = |at: usize| {
            let (up, down) = floors[at];
            up.zip(down).is_some_and(|(up, down)| up + down <= quick - 0.5 * size)
        };
        let at_once = (next.0 * up.signum()).min(next.1 * down.signum()) >= 0.75 * size;
        if opposite
            && at_once
            && (mixed == 1 || (k..k + mixed).any(is_mixed))
            && longer <= 0.25 * size
            && size > threshold
            && best.is_none_or(|(other, _)| size > other)
        {
            best = Some((size, k));
        }
    }
    best.map(|(_, k)| k)
}

/// Forward and backward points of a piece.
struct Bounds {
    above: Vec<Point>,
    below: Vec<Point>,
    /// What stamps may be wrong by, ns.
    coarse: f64,
}

impl Bounds {
    /// Only points of the hulls can bound a line.
    fn of(blocks: &[Block], coarse: f64) -> Self {
        Self {
            coarse,
            above: hull(blocks.iter().filter_map(|b| b.above), 1.0),
            below: hull(blocks.iter().filter_map(|b| b.below), -1.0),
        }
    }

    /// Largest intercept at time `t` of a line with this slope below the forward points.
    fn ceiling(&self, slope: f64, t: f64) -> f64 {
        self.above
            .iter()
            .map(|p| p.1 - slope * (p.0 - t) + self.coarse)
            .fold(f64::INFINITY, f64::min)
    }

    /// Smallest intercept at time `t` of a line with this slope above the backward points.
    fn floor(&self, slope: f64, t: f64) -> f64 {
        self.below
            .iter()
            .map(|p| p.1 - slope * (p.0 - t) - self.coarse)
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// Room between both clouds for lines of this slope; below 0 none is possible. Concave.
    fn room(&self, slope: f64) -> f64 {
        self.ceiling(slope, 0.0) - self.floor(slope, 0.0)
    }

    /// The slope with most room, and the room; of equal ones that next to 0. `None` without both directions.
    fn widest(&self) -> Option<(f64, f64)> {
        if self.above.is_empty() || self.below.is_empty() {
            return None;
        }
        let room = |slope| self.room(slope);
        let top = peak(-MAX_SLOPE, MAX_SLOPE, room);
        let most = room(top);
        // Within a thousandth of a nanosecond it is a plateau.
        let (low, high) = level(-MAX_SLOPE, top, MAX_SLOPE, most - 1e-3, room);
        let slope = 0f64.clamp(low, high);
        Some((slope, room(slope)))
    }
}

/// Lower hull (`sign` 1) or upper hull (-1) of points.
fn hull(points: impl Iterator<Item = Point>, sign: f64) -> Vec<Point> {
    let mut sorted: Vec<Point> = points.collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then((sign * a.1).total_cmp(&(sign * b.1))));
    sorted.dedup_by_key(|p| p.0);
    let mut out: Vec<Point> = Vec::new();
    for c in sorted {
        while let [.., a, b] = out[..] {
            let turn = (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0);
            if sign * turn > 0.0 {
                break;
            }
            out.pop();
        }
        out.push(c);
    }
    out
}

/// Where a concave function is largest.
fn peak(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..2 * STEPS {
        let third = (high - low) / 3.0;
        let (a, b) = (low + third, high - third);
        if f(a) < f(b) {
            low = a;
        } else {
            high = b;
        }
    }
    low.midpoint(high)
}

/// The stretch around `top` where a concave function is at least `value`.
fn level(low: f64, top: f64, high: f64, value: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let edge = |mut outside: f64, mut inside: f64| {
        if f(outside) >= value {
            return outside;
        }
        for _ in 0..STEPS {
            let middle = inside.midpoint(outside);
            if f(middle) >= value {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        inside
    };
    (edge(low, top), edge(high, top))
}

/// What clocks do that do not run evenly, and do not jump, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wander {
    /// By how much the offset leaves a line, to both sides together.
    range: f64,
    /// The smallest round trip of a block, which no clock is in.
    round_trip: f64,
}

/// A stretch of time in which one line holds. Times in s after the base, differences in ns above the base.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    start: f64,
    end: f64,
    /// The line at the start.
    offset: f64,
    /// ns per s.
    slope: f64,
    /// Whole width of the interval of possible offsets at the start.
    width: f64,
    /// Whole width of the slopes that leave nearly as much room.
    slope_width: f64,
    /// A packet of its time is on its side of all cuts.
    is_certain: bool,
    /// Room between both clouds: the smallest round trip.
    round_trip: f64,
    /// The same within blocks, see [`round_trip`].
    local: f64,
    wander: Option<Wander>,
}

impl Piece {
    fn of(blocks: &[Block], Steps { coarse, slack }: Steps) -> Option<Self> {
        let bounds = Bounds::of(blocks, coarse);
        let start = blocks.first()?.start;
        let end = blocks.iter().fold(start, |end, b| end.max(b.end));
        let (best, room) = bounds.widest()?;
        if room < 2.0 * (coarse - slack) {
            return None; // a block at a cut
        }
        let f = |slope| bounds.room(slope);
        // No drift is believed that noise explains as well.
        let noise = if blocks.len() < ENOUGH {
            room
        } else {
            let least = RESOLUTION.max(coarse / 2.0);
            (spread(&floors(blocks, best)) / 2.0)
                .clamp(least, MOST_NOISE.max(least))
                .min(room)
        };
        // What is as steep as can be is no clock's: delays make it look so, or stamps that are late by more than the round trip.
        let is_steep = best.abs() > NO_CLOCK * MAX_SLOPE;
        if is_steep && f(0.0) < 0.0 {
            return None;
        }
        let slope = if is_steep || f(0.0) >= room - noise { 0.0 } else { best };
        let (low, high) = level(-MAX_SLOPE, slope, MAX_SLOPE, 0.0, f);
        let highest = peak(low, high, |s| bounds.ceiling(s, start));
        let lowest = peak(low, high, |s| -bounds.floor(s, start));
        let top = bounds.ceiling(highest, start);
        let bottom = bounds.floor(lowest, start);
        let floors = floors(blocks, slope);
        let local = round_trip(&floors);
        let wander = wander(&floors, coarse);
        let round_trip = (room - 2.0 * coarse).max(0.0);
        // A clock whose drift changes, and stamps that are late at times, leave less room than the round trips within a block: the
        // truth is as far beyond a line that keeps off both clouds by half of the room as packets of one direction may take of these.
        let local = if local.is_finite() {
            local.max(round_trip)
        } else {
            round_trip
        };
        let least = local - round_trip / 2.0;
        // Five percent less room, and what the resolution of stamps hides.
        let enough = room - 0.05 * round_trip - coarse.max(2.0 * RESOLUTION);
        let (slow, fast) = level(-MAX_SLOPE, slope, MAX_SLOPE, enough, f);
        let offset = bounds.ceiling(slope, start).midpoint(bounds.floor(slope, start));
        Some(Self {
            start,
            end,
            offset,
            slope,
            // Symmetric around the line, so that the stated interval holds all that is possible.
            width: 2.0 * (top - offset).max(offset - bottom).max(least),
            slope_width: fast - slow,
            is_certain: true,
            round_trip,
            local,
            wander,
        })
    }

    /// A block beside a cut may hold packets of the other side that bound no line: the piece says nothing of their time.
    fn leave_cuts(&mut self, blocks: &[Block], [before, behind]: [bool; 2]) {
        let from = usize::from(before);
        let kept = blocks.len().saturating_sub(from + usize::from(behind));
        if kept == 0 {
            self.is_certain = !(before || behind);
            return;
        }
        let kept = &blocks[from..from + kept];
        let start = kept[0].start;
        self.offset += self.slope * (start - self.start);
        (self.start, self.end) = (start, kept.iter().fold(start, |end, b| end.max(b.end)));
    }

    /// The fastest packets of each direction needed so long for the slowest link of it, ns. The truth is still where it can be without that.
    fn without(mut self, [forward, backward]: [f64; 2]) -> Self {
        if forward + backward <= self.round_trip {
            let later = (backward - forward) / 2.0;
            self.offset += later;
            self.width += 2.0 * later.abs();
        }
        self
    }
}

/// The clocks' history.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    base_time: u64,
    base: i64,
    pieces: Vec<Piece>,
}

/// One piece in plain units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    /// Clock of `from`, ns.
    pub start: u64,
    /// Clock of `from`, ns.
    pub end: u64,
    /// At the start, s.
    pub offset: f64,
    /// Whole width of the interval around it, s.
    pub width: f64,
    /// Parts in 10⁶.
    pub skew_ppm: f64,
    /// Whole width of the slopes that fit about as well.
    pub skew_width_ppm: f64,
    /// Smallest round trip, s.
    pub round_trip: f64,
    /// The same where packets of both directions are near in time, whatever the clocks do in the long run, s.
    pub local: f64,
    /// By how much the offset leaves the line, to both sides together, s: delays of one direction are not known; 0: it does not.
    pub wander: f64,
}

impl Fit {
    /// Nothing is known of the clocks: no packets in both directions.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// In how many pieces the clocks ran evenly.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Clock of `to` minus clock of `from` at `time` of `from`, ns. Outside of all pieces the nearest one goes on.
    pub fn offset(&self, time: u64) -> Option<i64> {
        self.nearest(time).map(|(_, offset)| offset)
    }

    /// A time of `to` on the clock of `from`; `None`: nothing is known. Each step leaves of what the last one was off what the
    /// drift makes of it: clocks that are decades apart need several.
    pub fn before(&self, time: u64) -> Option<u64> {
        let mut before = time.wrapping_add_signed(-self.base);
        for _ in 0..BACK_STEPS {
            before = time.wrapping_add_signed(-self.offset(before)?);
        }
        Some(before)
    }

    /// The smallest round trip that any line leaves, ns; 0: not known.
    pub fn least_round_trip(&self) -> u64 {
        let least = self.pieces.iter().map(|p| p.round_trip).reduce(f64::min);
        least.unwrap_or(0.0) as u64
    }

    /// The offset, where a piece says it: between two of them a clock was set, who knows when.
    pub fn certain_offset(&self, time: u64) -> Option<i64> {
        let is_inside = |p: &Piece, t: f64| p.is_certain && (p.start..=p.end).contains(&t);
        let (piece, offset) = self.nearest(time)?;
        is_inside(piece, self.after_base(time)).then_some(offset)
    }

    /// s after the base.
    fn after_base(&self, time: u64) -> f64 {
        time.wrapping_sub(self.base_time) as i64 as f64 / 1e9
    }

    /// The nearest piece, and what it says.
    fn nearest(&self, time: u64) -> Option<(&Piece, i64)> {
        let t = self.after_base(time);
        let distance = |p: &Piece| (p.start - t).max(t - p.end).max(0.0);
        let piece = self.pieces.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let above = piece.offset + piece.slope * (t - piece.start);
        Some((piece, self.base.wrapping_add(above.round() as i64)))
    }

    /// The pieces in plain units.
    pub fn stretches(&self) -> Vec<Stretch> {
        let time = |t: f64| self.base_time.wrapping_add_signed((t * 1e9).round() as i64);
        self.pieces
            .iter()
            .map(|p| Stretch {
                start: time(p.start),
                end: time(p.end),
                // Two steps, so that no nanosecond of a large offset is lost before the division.
                offset: self.base.wrapping_add(p.offset.round() as i64) as f64 / 1e9,
                width: p.width / 1e9,
                skew_ppm: p.slope / 1e3,
                skew_width_ppm: p.slope_width / 1e3,
                round_trip: p.wander.map_or(p.round_trip, |wander| wander.round_trip) / 1e9,
                local: p.local / 1e9,
                wander: p.wander.map_or(0.0, |wander| wander.range) / 1e9,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift64*: equal seeds, equal numbers.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn between(&mut self, low: f64, high: f64) -> f64 {
            low + (high - low) * self.next()
        }

        /// Queueing: mostly little, sometimes much.
        fn queue(&mut self, mean: f64) -> f64 {
            -mean * (1.0 - self.next()).ln()
        }
    }

    const START: u64 = 1_700_000_037_000_000_000;

    /// A leg: smallest delays, queueing, ns.
    #[derive(Clone, Copy)]
    struct Path {
        forward: f64,
        backward: f64,
        queue: f64,
    }

    /// `packets` over `seconds`, both directions in random order, against the offset that `truth` has at a time (s).
    fn run(
        random: &mut Random,
        packets: u32,
        seconds: f64,
        path: impl Fn(f64) -> Path,
        truth: impl Fn(f64) -> f64,
    ) -> Fit {
        let mut clock = Clock::new();
        for k in 0..packets {
            let t = seconds * (f64::from(k) + random.next()) / f64::from(packets);
            let path = path(t);
            let backward = random.next() < 0.4;
            let queue = random.queue(path.queue);
            let apparent = if backward {
                -path.backward - queue
            } else {
                path.forward + queue
            };
            clock.add(START + (t * 1e9) as u64, (truth(t) + apparent).round() as i64, backward);
        }
        clock.fit(0)
    }

    /// Stamps of both taps are late by more than the way between them takes: pieces of lines could be laid through them, each at the end of
    /// what clocks do.
    #[test]
    fn stamps_that_are_late_by_more_than_the_round_trip_have_no_clock() {
        for seed in 1..=8 {
            let mut random = Random(0x5eed + seed);
            let mut clock = Clock::new();
            for k in 0..8_000 {
                let t = f64::from(k) * 3e-3;
                let (late_from, late_to) = (random.queue(50e3), random.queue(100e3));
                let backward = random.next() < 0.5;
                let delay = if backward { -5e3 } else { 5e3 };
                clock.add(START + (t * 1e9) as u64, (delay + late_to - late_from) as i64, backward);
            }
            for stretch in clock.fit(0).stretches() {
                assert!(stretch.skew_ppm.abs() < 900.0, "{stretch:?}");
                assert!(stretch.offset.abs() <= stretch.width / 2.0, "{stretch:?}");
            }
        }
    }

    fn offset_at(fit: &Fit, t: f64) -> f64 {
        fit.offset(START + (t * 1e9) as u64).expect("pieces") as f64
    }

    const EVEN: Path = Path {
        forward: 10e6,
        backward: 10e6,
        queue: 300e3,
    };

    /// Within what is common for clocks that are set by the network: parts in a million, but by and by.
    #[test]
    fn clocks_that_wander_are_told_and_others_are_not() {
        let wander = |path: Path, packets: u32, swing: f64| {
            let truth = |t: f64| swing * (t / 1200.0).sin();
            let fit = run(&mut Random(7), packets, 7200.0, |_| path, truth);
            let stretches = fit.stretches();
            let largest = stretches.iter().map(|s| s.wander * 1e9).fold(0.0, f64::max);
            (
                largest,
                stretches.iter().map(|s| s.round_trip * 1e9).fold(f64::MAX, f64::min),
            )
        };
        for swing in [3e6, 5e6] {
            let (range, round_trip) = wander(EVEN, 10_000, swing);
            assert!(range > swing && range < 2.5 * swing, "{swing}: {range}");
            assert!((19.9e6..20.3e6).contains(&round_trip), "{swing}: {round_trip}");
        }
        assert_eq!(wander(EVEN, 10_000, 0.0).0, 0.0);
        let jitter = Path { queue: 8e6, ..EVEN };
        assert_eq!(wander(jitter, 100_000, 0.0).0, 0.0);
        // A queue that stands for half of the time, in one direction.
        let queue = |t: f64| Path {
            forward: 10e6 + 20e6 * (t / 1200.0).sin().max(0.0),
            ..EVEN
        };
        let fit = run(&mut Random(8), 10_000, 7200.0, queue, |_| 0.0);
        assert!(fit.stretches().iter().all(|s| s.wander == 0.0));
    }

    #[test]
    fn the_truth_is_within_the_stated_width() {
        for seed in 1..=60 {
            let mut random = Random(seed);
            let offset = random.between(-1e13, 1e13).round();
            let ppm = random.between(-200.0, 200.0);
            let path = Path {
                forward: random.between(1e4, 3e7),
                backward: random.between(1e4, 3e7),
                queue: random.between(1e3, 2e6),
            };
            let packets = random.between(20.0, 4000.0) as u32;
            let seconds = random.between(0.5, 300.0);
            let truth = |t: f64| offset + t * ppm * 1e3;
            let fit = run(&mut random, packets, seconds, |_| path, truth);
            let stretches = fit.stretches();
            assert_eq!(stretches.len(), 1, "seed {seed}: no clock was set");
            let s = stretches[0];
            let t = (s.start - START) as f64 / 1e9;
            let error = (s.offset * 1e9 - truth(t)).abs();
            assert!(error <= 0.5e9 * s.width + 1.0, "seed {seed}: {error} ns, {s:?}");
            assert!(
                s.round_trip * 1e9 >= path.forward + path.backward - 1.0,
                "seed {seed}: {s:?}"
            );
        }
    }

    /// Packets in bursts that keep their order behind jitter of several shapes: few are near the least delay, and in the last
    /// shape none is.
    #[test]
    fn whatever_the_jitter_the_truth_is_within_the_stated_width() {
        for seed in 1..=120 {
            let mut random = Random(seed);
            let (most, ppm) = (random.between(1e5, 8e6), random.between(-120.0, 120.0));
            let share_back = random.between(0.1, 0.5);
            let jitter = |random: &mut Random| {
                let mut uniform = || random.next();
                most * match seed % 4 {
                    0 => uniform(),
                    1 if uniform() < 0.3 => 0.05 * uniform(),
                    1 => 0.7 + 0.3 * uniform(),
                    2 => -(1.0 - uniform()).ln() / 2.0,
                    _ => (0..4).map(|_| uniform()).sum::<f64>() / 4.0,
                }
            };
            let (mut clock, mut out, mut t) = (Clock::new(), [0.0f64; 2], 0.0);
            for k in 0..3000 {
                t += if k % 10 == 0 { random.between(0.0, 0.04) } else { 2e-5 };
                let backward = random.next() < share_back;
                let last = &mut out[usize::from(backward)];
                *last = last.max(1e9 * t + 10e6 + jitter(&mut random));
                let delay = *last - 1e9 * t;
                let apparent = if backward { -delay } else { delay };
                let difference = (t * ppm * 1e3 + apparent).round() as i64;
                clock.add(START + (t * 1e9) as u64, difference, backward);
            }
            for s in clock.fit(0).stretches() {
                let truth = (s.start - START) as f64 / 1e9 * ppm * 1e3;
                let error = (s.offset * 1e9 - truth).abs();
                assert!(error <= 0.5e9 * s.width + 1.0, "seed {seed}: {error} ns, {s:?}");
            }
        }
    }

    #[test]
    fn the_middle_is_right_on_an_even_path() {
        for (seed, ppm) in [(1, 0.0), (2, 43.0), (3, -120.0)] {
            let mut random = Random(seed);
            let truth = |t: f64| -17.3e9 + t * ppm * 1e3;
            let fit = run(&mut random, 5000, 60.0, |_| EVEN, truth);
            for t in [1.0, 30.0, 59.0] {
                let error = (offset_at(&fit, t) - truth(t)).abs();
                assert!(error < 20e3, "{ppm} ppm at {t} s: {error} ns");
            }
            assert!((fit.stretches()[0].skew_ppm - ppm).abs() < 0.5, "{:?}", fit.stretches());
        }
    }

    /// A drift that turns around leaves one line, if its height is the round trip.
    #[test]
    fn a_drift_that_changes_is_within_the_stated_width() {
        let path = Path {
            forward: 500e3,
            backward: 500e3,
            queue: 5e3,
        };
        for height in [0.3e6, 0.6e6, 0.9e6, 0.99e6, 1.2e6, 3e6] {
            let truth = |t: f64| height * (1.0 - (t - 600.0).abs() / 600.0);
            let fit = run(&mut Random(5), 20_000, 1200.0, |_| path, truth);
            for s in fit.stretches() {
                let error = (s.offset * 1e9 - truth((s.start - START) as f64 / 1e9)).abs();
                assert!(error <= 0.5e9 * s.width + 1.0, "{height}: {error} ns, {s:?}");
            }
        }
    }

    /// Some packets, or three times a few, have stamps up to 5 ms late: in less than a tenth of the blocks.
    #[test]
    fn stamps_that_are_late_at_times_are_within_the_stated_width() {
        for (seed, burst) in [(1, false), (2, false), (3, true), (4, true)] {
            let (mut random, mut clock) = (Random(seed), Clock::new());
            for k in 0..2000u64 {
                let (time, backward) = (START + k * 10_000_000, k % 2 == 1);
                let is_late = if burst { k % 500 > 495 } else { random.next() < 0.003 };
                let late = if is_late { random.between(3e6, 5e6) } else { 0.0 };
                let delay = 2e6 + random.queue(5e3);
                let apparent = if backward { -delay } else { delay };
                clock.add(time + late as u64, (7e9 + apparent - late) as i64, backward);
            }
            let s = clock.fit(0).stretches()[0];
            let error = (s.offset * 1e9 - 7e9).abs();
            assert!(error <= 0.5e9 * s.width, "{seed}: {error} ns, {s:?}");
        }
    }

    #[test]
    fn a_clock_that_is_set_begins_a_new_piece() {
        // Far beyond the round trip, around it, and below it, where lines stay possible.
        for (seed, step) in [(1, 3e9), (2, -3e9), (3, 25e6), (4, -15e6), (5, 5e6), (6, -1e6)] {
            let mut random = Random(seed);
            let truth = |t: f64| {
                if t < 20.0 {
                    1e9 + t * 30e3
                } else {
                    1e9 + t * 30e3 + step
                }
            };
            let fit = run(&mut random, 6000, 60.0, |_| EVEN, truth);
            let stretches = fit.stretches();
            assert_eq!(stretches.len(), 2, "{step}: {stretches:?}");
            let begin = (stretches[1].start - START) as f64 / 1e9;
            assert!((begin - 20.0).abs() < 1.0, "{step}: at {begin} s");
            for t in [2.0, 18.0, 22.0, 58.0] {
                let error = (offset_at(&fit, t) - truth(t)).abs();
                assert!(error < 100e3, "{step} at {t} s: {error} ns");
            }
        }
    }

    #[test]
    fn another_route_is_no_clock_that_was_set() {
        let mut random = Random(9);
        let path = |t: f64| Path {
            forward: if t < 30.0 { 10e6 } else { 18e6 },
            ..EVEN
        };
        let fit = run(&mut random, 6000, 60.0, path, |_| 5e9);
        assert_eq!(fit.stretches().len(), 1, "{:?}", fit.stretches());
    }

    /// Both directions wait, each in a queue of its own that fills and drains.
    #[test]
    fn queues_are_no_clock_that_was_set() {
        for seed in 1..=20 {
            let mut random = Random(seed);
            let (up, down) = (random.between(0.7, 2.0), random.between(0.7, 2.0));
            let filled = |t: f64, period: f64| {
                let phase = (t / period).fract();
                60e6 * if phase < 0.5 { phase } else { 1.0 - phase }
            };
            let path = |t: f64| Path {
                forward: 10e6 + filled(t, up),
                backward: 10e6 + filled(t, down),
                queue: 300e3,
            };
            let fit = run(&mut random, 10_000, 10.0, path, |_| 5e9);
            assert_eq!(fit.stretches().len(), 1, "seed {seed}: {:?}", fit.stretches());
        }
    }

    /// One queue drains at once when the other fills.
    #[test]
    fn a_queue_that_changes_its_direction_is_no_clock_that_was_set() {
        let mut random = Random(3);
        let path = |t: f64| {
            let phase = t.fract();
            Path {
                forward: if phase < 0.7 { 10e6 } else { 40e6 },
                backward: if (0.4..0.7).contains(&phase) { 40e6 } else { 10e6 },
                queue: 300e3,
            }
        };
        let fit = run(&mut random, 10_000, 10.0, path, |_| 5e9);
        assert_eq!(fit.stretches().len(), 1, "{:?}", fit.stretches());
    }

    #[test]
    fn there_and_back_is_the_same_time_however_far_the_clocks_are_apart() {
        for (seed, offset, ppm) in [(1, -1.8e18, -50.0), (2, 1.5e17, 900.0), (3, 0.0, -900.0)] {
            let mut random = Random(seed);
            let fit = run(&mut random, 3000, 100.0, |_| EVEN, |t| offset + t * ppm * 1e3);
            for t in [0, 50, 100] {
                let time = START + t * 1_000_000_000;
                let there = time.wrapping_add_signed(fit.offset(time).expect("pieces"));
                let back = fit.before(there).expect("pieces");
                assert!(back.abs_diff(time) <= 1, "{offset} at {t} s: {}", back.abs_diff(time));
            }
        }
    }

    #[test]
    fn many_packets_need_no_more_memory() {
        let mut random = Random(4);
        let mut clock = Clock::new();
        for k in 0..400_000u64 {
            let backward = k % 3 == 0;
            let delay = 10e6 + random.queue(300e3);
            let difference = if backward { 7e9 - delay } else { 7e9 + delay };
            clock.add(START + k * 100_000, difference as i64, backward);
        }
        assert!(clock.blocks.len() <= MAX_BLOCKS);
        assert!((offset_at(&clock.fit(0), 20.0) - 7e9).abs() < 5e3);
    }

    /// 10 ms there and back, and forward a link that takes `each` ns for a byte: bursts of a small packet and ten large ones, and an
    /// answer to each. Offset and width at the middle.
    fn over_a_slow_link(each: u64, bucket: bool) -> (f64, f64) {
        let (mut clock, truth) = (Clock::new(), 3_000_000_000i64);
        let there = |time: u64| time.wrapping_add_signed(truth);
        for burst in 0..50u64 {
            let (start, mut free) = (START + burst * 200_000_000, 0);
            for k in 0..11 {
                let sent = start + k * 12_000;
                let wire = if k == 0 { 66 } else { 1514 };
                free = sent.max(free) + if bucket && k < 4 { 100 } else { wire * each };
                let seen = there(free + 10_000_000);
                clock.add(sent, seen.wrapping_sub(sent) as i64, false);
                clock.passed([sent, seen], wire as u16, false);
                let answered = free + 10_050_000;
                let back = answered + 10_000_000;
                clock.add(back, there(answered).wrapping_sub(back) as i64, true);
                clock.passed([back, there(answered)], 66, true);
            }
        }
        let fit = clock.fit(0);
        let middle = START + 25 * 200_000_000;
        let offset = fit.offset(middle).expect("both directions") - truth;
        (offset as f64, fit.stretches()[0].width * 1e9)
    }

    #[test]
    fn a_slow_link_in_one_direction_moves_nothing() {
        for (each, bucket) in [(0, false), (1000, false), (4000, false), (4000, true)] {
            let (error, width) = over_a_slow_link(each, bucket);
            assert!(error.abs() < 2_000.0, "{each} {bucket}: {error} ns");
            assert!((20e6..=21e6).contains(&width), "{width}");
        }
    }
}
