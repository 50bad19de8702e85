//! Samples: what each round trip tells, and the blocks since the one before.

use weir_record::Block;

use super::Transfer;
use super::path::{Path, SLACK, is_prompt};
use super::trips::QUEUE;

/// ns between segments; 1,500 bytes at 120 Mbit/s.
pub(super) const SPACED: u64 = 100_000;

/// Timed segments on either side that show how fast a link is.
const AROUND: usize = 2;

/// One round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub time: u64,
    /// ns.
    pub rtt: u64,
    pub ack: u32,
    /// End of the timed segment.
    pub end: u32,
    /// Bytes in flight behind the tap after the ACK, and at most since the sample before.
    pub flight: u32,
    pub flight_max: u32,
    /// Window in bytes, if known.
    pub window: Option<u32>,
    /// The one under which the timed segment was sent.
    pub window_before: Option<u32>,
    /// Whether the timed segment went to the edge of the window that its sender knew of, if that is known.
    pub at_edge: Option<bool>,
    /// Since the sample before.
    pub tally: Tally,
}

impl Transfer {
    /// Whether the newest round trip to the receiver stands above the smallest as those of a queue do (see [`super::trips`]).
    pub fn queue_stands(&self, smallest: u64) -> bool {
        let newest = self.samples.last();
        newest.is_some_and(|sample| sample.rtt as f64 > smallest as f64 * QUEUE + SLACK as f64)
    }
}

impl Sample {
    /// When the timed segment passed the tap.
    pub const fn sent(&self) -> u64 {
        self.time.saturating_sub(self.rtt)
    }

    /// Whether its receiver acknowledged it at once.
    pub fn is_prompt(&self, path: &Path) -> bool {
        is_prompt(self.rtt, self.flight, self.ack == self.end, path.payload, path.base)
    }

    /// Whether its sender had just heard this ACK when it sent what passed the tap at `next`.
    pub fn lets_go(&self, next: u64, path: &Path) -> bool {
        next.abs_diff(self.time.saturating_add(path.other)) <= path.jitter()
    }
}

/// What the blocks from one sample to the next tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Time in which the sender had surely used up the window that it had heard of, and in which it surely had not, ns.
    pub edge_ns: u64,
    pub room_ns: u64,
    /// Bytes of blocks that took half a round trip at most: they tell when what was in them passed.
    pub within: u64,
    /// Bytes that a slow link before the tap spaced, less those that none did.
    pub spaced: i64,
    /// What passed that link one behind the other.
    pub passed: Passage,
    /// Time in which a slow link was busy with this and with what others sent, ns.
    pub busy_ns: u64,
    /// Bytes of blocks with PSH behind less than a full segment, where the application had written no more, less those
    /// of others.
    pub partial: i64,
}

impl Tally {
    pub const fn join(&mut self, other: &Self) {
        self.edge_ns = self.edge_ns.saturating_add(other.edge_ns);
        self.room_ns = self.room_ns.saturating_add(other.room_ns);
        self.within = self.within.saturating_add(other.within);
        self.spaced = self.spaced.saturating_add(other.spaced);
        self.passed.join(other.passed);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.partial = self.partial.saturating_add(other.partial);
    }
}

/// What passed a link before the tap without a pause, and how long it took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passage {
    bytes: u64,
    pub ns: u64,
}

impl Passage {
    /// What passed behind a timed segment, up to a later one.
    pub fn between(before: &Sample, last: &Sample) -> Option<Self> {
        let bytes = u64::from(last.end.wrapping_sub(before.end));
        let ns = last.sent().checked_sub(before.sent()).filter(|ns| *ns > 0)?;
        (1..1 << 31).contains(&bytes).then_some(Self { bytes, ns })
    }

    pub const fn join(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
    }

    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// Bytes/s; 0 of nothing.
    pub fn rate(self) -> f64 {
        self.bytes as f64 / self.ns.max(1) as f64 * 1e9
    }
}

/// What passed from each timed segment to the next, where a slow link spaced it; a pause is as long there as its neighbours show. What takes more
/// than half a round trip may be two flights.
pub(super) fn passages(samples: &[Sample], path: &Path) -> Vec<Option<Passage>> {
    let passed =
        |two: &[Sample]| Passage::between(&two[0], &two[1]).filter(|passage| passage.ns <= path.round_trip() / 2);
    let all: Vec<Option<Passage>> = std::iter::once(None).chain(samples.windows(2).map(passed)).collect();
    let usual = |i: usize| {
        let around = &all[i.saturating_sub(AROUND)..(i + AROUND + 1).min(all.len())];
        let mut rates: Vec<f64> = around.iter().flatten().map(|passage| passage.rate()).collect();
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let spaced = |(i, own): (usize, &Option<Passage>)| {
        let own = (*own)?;
        let usual = usual(i);
        let ns = |bytes: f64| (bytes / usual * 1e9) as u64;
        (ns(path.payload.into()) >= SPACED).then_some(Passage {
            ns: own.ns.min(ns(own.bytes as f64)),
            ..own
        })
    };
    all.iter().enumerate().map(spaced).collect()
}

/// What passed a slow link before the tap in its last block, behind the first segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace(Passage);

impl Pace {
    /// How long a slow link before the tap was busy with a block of full segments: from segment to segment; one by itself
    /// took it as long as those before.
    pub fn passage(&mut self, b: &Block, is_full: bool) -> Passage {
        if is_spaced(b) && is_full {
            let behind_first = u64::from(b.bytes) * u64::from(b.packets - 1) / u64::from(b.packets);
            self.0 = Passage {
                bytes: behind_first,
                ns: b.last.saturating_sub(b.first),
            };
        } else if b.packets > 1 || !is_full {
            self.0 = Passage::default();
        }
        let bytes = u64::from(b.bytes);
        let ns = u128::from(bytes) * u128::from(self.0.ns);
        ns.checked_div(u128::from(self.0.bytes))
            .map_or_else(Passage::default, |ns| Passage { bytes, ns: ns as u64 })
    }
}

/// Full segments that stand apart: they come from a slow link before the tap, and may have waited in its queue.
pub(crate) fn is_spaced(b: &Block) -> bool {
    apart(b).is_some_and(|ns| ns >= SPACED)
}

/// How far the segments of a block stand apart, ns, on average. `None`: there is one.
pub(crate) fn apart(b: &Block) -> Option<u64> {
    let passage = b.last.saturating_sub(b.first);
    passage.checked_div(u64::from(b.packets.saturating_sub(1)))
}
