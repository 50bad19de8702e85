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
//! Memory is bounded: of each block of packets the fastest one of either direction is kept, and blocks are joined in
//! pairs when there are many. Constraints left out make the interval wider, never wrong.

/// Differences in a block before it is full, at first.
const BLOCK: u32 = 24;
/// Blocks kept; then two and two are joined.
const MAX_BLOCKS: usize = 4096;
/// Faster drift than this is no clock's: 1,000 ppm. In ns per s.
const MAX_SLOPE: f64 = 1_000_000.0;
/// Steps of the searches over slopes: the golden section cut so often is below 10⁻¹² of the range.
const STEPS: usize = 64;
/// Blocks on each side of a jump that are compared.
const NEIGHBOURS: usize = 8;
/// Blocks that a drift is told from.
const ENOUGH: usize = 4;
/// Room that no drift is believed for is at least the resolution of common stamps and at most this, ns.
const RESOLUTION: f64 = 1_000.0;
const MOST_NOISE: f64 = 20_000.0;
/// Jumps below this are not looked for, ns.
const SMALLEST_JUMP: f64 = 100_000.0;

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
}

impl Clock {
    /// Nothing known.
    pub fn new() -> Self {
        Self {
            base_time: 0,
            base: 0,
            blocks: Vec::new(),
            block_size: BLOCK,
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

    /// The pieces in which the clocks ran evenly.
    pub fn fit(&self) -> Fit {
        let mut cuts = Vec::new();
        cut(&self.blocks, 0, &mut cuts);
        let mut pieces = Vec::new();
        let mut from = 0;
        for to in cuts.iter().copied().chain([self.blocks.len()]) {
            let mut part = &self.blocks[from..to];
            // The blocks at a cut may hold packets of both sides of it.
            if from > 0 && part.len() > 3 {
                part = &part[1..];
            }
            if to < self.blocks.len() && part.len() > 3 {
                part = &part[..part.len() - 1];
            }
            pieces.extend(Piece::of(part));
            from = to;
        }
        Fit {
            base_time: self.base_time,
            base: self.base,
            pieces,
        }
    }
}

/// Find where the blocks fall apart, ascending; `at` is the index of the first.
fn cut(blocks: &[Block], at: usize, cuts: &mut Vec<usize>) {
    if blocks.len() < 2 {
        return;
    }
    let Some(k) = impossible(blocks).or_else(|| jump(blocks)) else {
        return;
    };
    cut(&blocks[..k], at, cuts);
    cuts.push(at + k);
    cut(&blocks[k..], at + k, cuts);
}

/// If no line is possible: the cut after which both neighbourhoods have most room.
fn impossible(blocks: &[Block]) -> Option<usize> {
    let possible = |part: &[Block]| Bounds::of(part).widest().is_none_or(|(_, room)| room >= 0.0);
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
    let room = |part: &[Block]| Bounds::of(part).widest().map_or(f64::INFINITY, |(_, room)| room);
    let score = |k: usize| {
        let before = room(&blocks[k.saturating_sub(NEIGHBOURS)..k]);
        let after = room(&blocks[k..(k + NEIGHBOURS).min(blocks.len())]);
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

/// A step that leaves a line possible: both floors move by the same amount, in opposite senses.
fn jump(blocks: &[Block]) -> Option<usize> {
    let bounds = Bounds::of(blocks);
    let (slope, _) = bounds.widest()?;
    let floors = floors(blocks, slope);
    let lowest = |part: &[Floors]| {
        let of = |pick: fn(&Floors) -> Option<f64>| {
            let known: Vec<f64> = part.iter().filter_map(pick).collect();
            (known.len() >= 3).then(|| known.into_iter().fold(f64::INFINITY, f64::min))
        };
        Some((of(|f| f.0)?, of(|f| f.1)?))
    };
    let spread = spread(&floors);
    let threshold = SMALLEST_JUMP.max(4.0 * spread);
    let mut best: Option<(f64, usize)> = None;
    for k in 1..blocks.len() {
        let before = lowest(&floors[k.saturating_sub(NEIGHBOURS)..k]);
        let after = lowest(&floors[k..(k + NEIGHBOURS).min(floors.len())]);
        let (Some(before), Some(after)) = (before, after) else {
            continue;
        };
        let (up, down) = (after.0 - before.0, after.1 - before.1);
        let size = up.abs().min(down.abs());
        let opposite = up.signum() != down.signum() && (up + down).abs() <= 0.25 * size;
        if opposite && size > threshold && best.is_none_or(|(other, _)| size > other) {
            best = Some((size, k));
        }
    }
    best.map(|(_, k)| k)
}

/// Forward and backward points of a piece.
struct Bounds {
    above: Vec<Point>,
    below: Vec<Point>,
}

impl Bounds {
    /// Only points of the hulls can bound a line.
    fn of(blocks: &[Block]) -> Self {
        Self {
            above: hull(blocks.iter().filter_map(|b| b.above), 1.0),
            below: hull(blocks.iter().filter_map(|b| b.below), -1.0),
        }
    }

    /// Largest intercept at time `t` of a line with this slope below the forward points.
    fn ceiling(&self, slope: f64, t: f64) -> f64 {
        self.above
            .iter()
            .map(|p| p.1 - slope * (p.0 - t))
            .fold(f64::INFINITY, f64::min)
    }

    /// Smallest intercept at time `t` of a line with this slope above the backward points.
    fn floor(&self, slope: f64, t: f64) -> f64 {
        self.below
            .iter()
            .map(|p| p.1 - slope * (p.0 - t))
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
    /// Room between both clouds: the smallest round trip.
    room: f64,
}

impl Piece {
    fn of(blocks: &[Block]) -> Option<Self> {
        let bounds = Bounds::of(blocks);
        let start = blocks.first()?.start;
        let end = blocks.iter().fold(start, |end, b| end.max(b.end));
        let (best, room) = bounds.widest()?;
        if room < 0.0 {
            return None; // a block at a cut
        }
        let f = |slope| bounds.room(slope);
        // No drift is believed that noise explains as well.
        let noise = if blocks.len() < ENOUGH {
            room
        } else {
            (spread(&floors(blocks, best)) / 2.0)
                .clamp(RESOLUTION, MOST_NOISE)
                .min(room)
        };
        let slope = if f(0.0) >= room - noise { 0.0 } else { best };
        let (low, high) = level(-MAX_SLOPE, slope, MAX_SLOPE, 0.0, f);
        let highest = peak(low, high, |s| bounds.ceiling(s, start));
        let lowest = peak(low, high, |s| -bounds.floor(s, start));
        let top = bounds.ceiling(highest, start);
        let bottom = bounds.floor(lowest, start);
        // Five percent less room, and what the resolution of stamps hides.
        let (slow, fast) = level(-MAX_SLOPE, slope, MAX_SLOPE, 0.95 * room - 2_000.0, f);
        let offset = bounds.ceiling(slope, start).midpoint(bounds.floor(slope, start));
        Some(Self {
            start,
            end,
            offset,
            slope,
            // Symmetric around the line, so that the stated interval holds all that is possible.
            width: 2.0 * (top - offset).max(offset - bottom),
            slope_width: fast - slow,
            room,
        })
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
}

impl Fit {
    /// Nothing is known of the clocks: no packets in both directions.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Clock of `to` minus clock of `from` at `time` of `from`, ns. Outside of all pieces the nearest one goes on.
    pub fn offset(&self, time: u64) -> Option<i64> {
        let t = time.wrapping_sub(self.base_time) as i64 as f64 / 1e9;
        let distance = |p: &Piece| (p.start - t).max(t - p.end).max(0.0);
        let piece = self.pieces.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let above = piece.offset + piece.slope * (t - piece.start);
        Some(self.base.wrapping_add(above.round() as i64))
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
                round_trip: p.room / 1e9,
            })
            .collect()
    }
}
