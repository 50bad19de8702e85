//! When a slow link before the tap was busy, as what came from one server over all its connections shows (`docs/src/limits.md`).

use weir_record::Block;

/// Runs that are kept of a server, the newest.
const RUNS: usize = 8;
/// The link was busy in a run if what came takes so much of it, percent: pauses of less than a segment are not seen. What takes more came over a
/// faster one, from senders that paced.
const BUSY: std::ops::RangeInclusive<u64> = 80..=120;
/// Blocks that tell how fast the link is, the newest; and which of them does: the fastest of them have jitter, and within most there may be
/// segments of others.
const BLOCKS: usize = 16;
const QUARTER: usize = 4;
/// Bytes, for what they take.
const UNIT: u64 = 1_000;
/// Bytes of a frame beside its payload: Ethernet, IPv4, TCP with timestamps.
const HEADERS: u32 = 14 + 20 + 32;

/// Bytes of frames.
const fn frames(bytes: u32, packets: u16) -> u32 {
    bytes.saturating_add((packets as u32).saturating_mul(HEADERS))
}

/// Bytes of a block's frames that were seen.
fn seen(block: &Block) -> u32 {
    let most = u32::from(block.packets).saturating_mul(block.max_segment.into());
    frames(block.bytes.min(most), block.packets)
}

/// A busy period: a time in which one segment came behind the other.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    since: u64,
    until: u64,
    bytes: u64,
}

impl Run {
    fn join(self, other: Self) -> Self {
        Self {
            since: self.since.min(other.since),
            until: self.until.max(other.until),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// A slow link and the last times in which something came over it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// What [`UNIT`] bytes took there, ns, in the last blocks, of which so many have come, and in the block that tells.
    paces: [u32; BLOCKS],
    blocks: usize,
    pace: u32,
    /// The fastest blocks tell the same pace, as nothing comes faster over a link. Senders that pace have many.
    is_steady: bool,
    /// They do not, although there are enough of them.
    has_jitter: bool,
    /// Bytes of a full segment's frame.
    segment: u32,
    runs: Vec<Run>,
}

impl Link {
    /// It spaced this block.
    pub fn spaced(&mut self, block: &Block) {
        self.segment = self.segment.max(frames(block.max_segment.into(), 1));
        self.paces[self.blocks % BLOCKS] = pace(block);
        self.blocks += 1;
        let mut paces = self.paces;
        let known = &mut paces[..self.blocks.min(BLOCKS)];
        known.sort_unstable();
        let quarter = known.len() / QUARTER;
        let [fastest, fast, middle] = [quarter / 2, quarter, known.len() / 2].map(|i| known[i]);
        self.is_steady = quarter > 0 && u64::from(fastest) * 10 >= u64::from(fast) * 9;
        self.has_jitter = quarter > 0 && !self.is_steady;
        self.pace = if self.has_jitter { middle } else { fast };
    }

    /// What the first segment of a block took there, ns. `None`: it seems that it came another way, or the pace is not known well.
    pub fn on_wire(&self, block: &Block) -> Option<u64> {
        let first = block.bytes.min(block.max_segment.into());
        let behind = frames(block.bytes - first, block.packets.saturating_sub(1));
        let passage = block.last.saturating_sub(block.first);
        let is_slow = passage.saturating_mul(100) >= self.time(behind.into()).saturating_mul(*BUSY.start());
        (self.is_steady && is_slow).then(|| self.time(frames(first, 1).into()))
    }

    /// A block came.
    pub fn passed(&mut self, block: &Block) {
        self.add(Run {
            since: block.first,
            until: block.last,
            bytes: seen(block).into(),
        });
    }

    /// A segment of so many bytes came again, which no block has.
    pub fn repeated(&mut self, time: u64, bytes: u32) {
        self.add(Run {
            since: time,
            until: time,
            bytes: frames(bytes, 1).into(),
        });
    }

    fn add(&mut self, mut run: Run) {
        let pause = self.pause();
        // Blocks are told when they end: what began earlier may join others.
        self.runs.retain(|other| {
            let reaches = |a: &Run, b: &Run| b.since <= a.until.saturating_add(pause);
            let touches = reaches(&run, other) && reaches(other, &run);
            if touches {
                run = run.join(*other);
            }
            !touches
        });
        if self.runs.len() == RUNS {
            self.runs.remove(0);
        }
        self.runs.push(run);
    }

    /// Since when the link had been busy when a segment came at a time; `None`: it came behind no other.
    pub fn busy_since(&self, at: u64) -> Option<u64> {
        let behind = |run: &&Run| run.since < at && at <= run.until.saturating_add(self.pause());
        let run = self.runs.iter().find(behind)?;
        // The first segment took as long as the others.
        let since = run.since.saturating_sub(self.time(self.segment.into()));
        let percent = self.time(run.bytes).saturating_mul(100) / run.until.saturating_sub(since).max(1);
        BUSY.contains(&percent).then_some(since)
    }

    /// What so many bytes take, ns.
    fn time(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.pace.into()) / UNIT
    }

    /// The next segment came behind the one before if there was no longer pause between them: a segment and a half, with jitter two.
    fn pause(&self) -> u64 {
        let halves = if self.has_jitter { 4 } else { 3 };
        self.time(u64::from(self.segment) * halves / 2)
    }
}

/// What [`UNIT`] bytes of the segments of a block behind its first one took, ns.
fn pace(block: &Block) -> u32 {
    let bytes = block.bytes.saturating_sub(block.max_segment.into());
    let bytes = frames(bytes, block.packets.saturating_sub(1)).max(1);
    let passage = block.last.saturating_sub(block.first);
    u32::try_from(passage.saturating_mul(UNIT) / u64::from(bytes)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 934 bytes, in frames of 1,000, which take 100 ns.
    fn block((first, last, packets): (u64, u64, u16)) -> Block {
        Block {
            first,
            last,
            seq: 0,
            bytes: 934 * u32::from(packets),
            ack: 0,
            flight: 0,
            packets,
            max_segment: 934,
            window: 0,
            ttl: 64,
            known: 3,
        }
    }

    /// It spaced one.
    fn spaced(block: &Block) -> Link {
        let mut link = Link::default();
        link.spaced(block);
        link
    }

    fn link(blocks: &[(u64, u64, u16)]) -> Link {
        let mut link = spaced(&block((0, 100, 2)));
        blocks.iter().for_each(|of| link.passed(&block(*of)));
        link
    }

    #[test]
    fn what_comes_one_behind_the_other_is_one_run() {
        let mut link = link(&[(1000, 1300, 4), (1420, 1620, 3)]);
        let since = |link: &Link, at: [u64; 4]| at.map(|at| link.busy_since(at));
        // The first segment took 100 ns as well.
        let run = Some(900);
        assert_eq!(since(&link, [1000, 1001, 1770, 1771]), [None, run, run, None]);
        // A pause.
        link.passed(&block((2000, 2300, 4)));
        assert_eq!(since(&link, [1990, 2000, 2100, 2451]), [None, None, Some(1900), None]);
        // What went between both is told last.
        link.passed(&block((1700, 1900, 3)));
        assert_eq!(since(&link, [1000, 1001, 2100, 2451]), [None, run, run, None]);
    }

    /// What came again is in no block.
    #[test]
    fn repeats_keep_a_link_busy() {
        let mut link = link(&[(1000, 1300, 4), (1600, 1900, 4)]);
        assert_eq!(link.busy_since(1850), Some(1500));
        link.repeated(1400, 934);
        link.repeated(1500, 934);
        assert_eq!(link.busy_since(1850), Some(900));
    }

    /// A response too short to tell took its time on a link that others have told of.
    #[test]
    fn a_single_segment_passed_the_link_as_well() {
        let single = |bytes: u32| Block {
            bytes,
            ..block((1000, 1000, 1))
        };
        let mut link = link(&[]);
        for known in 1..QUARTER {
            assert_eq!(link.on_wire(&single(434)), None, "{known} blocks");
            link.spaced(&block((0, 100, 2)));
        }
        assert_eq!(
            [434, 934].map(|bytes| link.on_wire(&single(bytes))),
            [Some(50), Some(100)]
        );
        // Of two, the second is short; and it came as fast as over no slow link.
        let two = |last: u64| Block {
            bytes: 934 + 134,
            ..block((1000, last, 2))
        };
        assert_eq!([1020, 1010].map(|last| link.on_wire(&two(last))), [Some(100), None]);
        // Senders that pace send at many paces.
        for apart in [50, 70, 90, 60] {
            link.spaced(&block((0, apart, 2)));
        }
        assert_eq!(link.on_wire(&single(934)), None);
    }

    #[test]
    fn a_link_with_pauses_is_not_busy() {
        // Several flights in one block.
        assert_eq!(link(&[(1000, 2300, 12)]).busy_since(1500), Some(900));
        assert_eq!(link(&[(1000, 2300, 8)]).busy_since(1500), None);
        // More than goes over it: senders that pace.
        assert_eq!(link(&[(1000, 2300, 14), (1000, 1900, 4)]).busy_since(1500), None);
        // A short segment takes less; and one that was faster may have been by jitter.
        let mut link = link(&[(1000, 2300, 12)]);
        link.spaced(&block((0, 200, 2)));
        let short = Block {
            bytes: 934 + 434,
            ..block((0, 50, 2))
        };
        link.spaced(&short);
        link.spaced(&block((0, 50, 2)));
        assert_eq!(link.busy_since(1500), Some(900));
        link.spaced(&block((0, 50, 2)));
        link.spaced(&block((0, 50, 2)));
        assert_eq!(link.busy_since(1500), None);
    }

    /// Blocks of two segments 100 ns apart, give or take 30 of jitter, and a run with a pause of a segment and three quarters.
    #[test]
    fn jitter_makes_pauses_seem_longer_and_blocks_faster() {
        let jitter = |apart: &[u64]| {
            let mut link = link(&[]);
            apart.iter().for_each(|ns| link.spaced(&block((0, *ns, 2))));
            for run in [(1000, 1970, 11), (2145, 2500, 5), (2600, 2700, 2)] {
                link.passed(&block(run));
            }
            link.busy_since(2650)
        };
        assert_eq!(jitter(&[100, 100, 100, 100, 100, 100]), Some(2045));
        assert_eq!(jitter(&[75, 90, 100, 100, 115, 130]), Some(900));
    }

    /// The first that came over it were short segments: the next ones, one behind the other, take longer.
    #[test]
    fn the_longest_segment_tells_of_a_pause() {
        let mut link = spaced(&Block {
            max_segment: 134,
            bytes: 268,
            ..block((0, 20, 2))
        });
        for first in [1000, 1200, 1400] {
            let b = block((first, first + 100, 2));
            link.spaced(&b);
            link.passed(&b);
        }
        assert_eq!(link.busy_since(1450), Some(900));
    }

    #[test]
    fn the_newest_runs_are_kept() {
        let blocks: Vec<_> = (0..=RUNS as u64).map(|n| (1000 * n, 1000 * n + 300, 4)).collect();
        let mut link = link(&blocks);
        assert_eq!([200, 1200].map(|at| link.busy_since(at)), [None, Some(900)]);
        link.passed(&block((0, u64::MAX, u16::MAX)));
        assert_eq!(link.busy_since(u64::MAX), None);
    }
}
