//! Bursts: what a sender sends between its pauses, and whether they are alike.

use weir_record::Block;

use super::path::Path;
use super::sample::SPACED;
use super::trips::FLAT;
use crate::slow_start::SlowStart;

/// Bursts compared; and after a loss, when a congestion window may grow by a segment in two round trips only (RFC 9438 4.3).
const BURSTS: usize = 4;
const BURSTS_AFTER_LOSS: usize = 2 * BURSTS;
/// A sender that waits for its buffer sends once in a round trip, or each time that a third of it is free (as Linux
/// wakes its application); what pauses more often paces.
pub(super) const PIECES: u64 = 3;
/// Segments that such a sender sends at once, at most.
const PACED: u32 = 4;
/// Share of the window that a burst has whose last segment its edge may have cut.
const NEARLY: f64 = 0.75;

/// The end of a block, for what comes after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockTail {
    pub last: u64,
    /// It ended with PSH, or with less than a segment before a second of silence: the sender had no more.
    pub pushed: bool,
    /// Full segments only: the application did not stop there, its buffer did.
    pub whole: bool,
    /// Highest ACK that had passed the tap.
    pub acked: Option<u32>,
    /// End of its sequence space.
    pub end: u32,
    /// It used up the window that its sender had surely heard of.
    pub at_edge: bool,
    /// And any that it can have heard of, to the last segment.
    pub fills_any: bool,
    /// To the byte, with less than a segment: its sender had more.
    pub is_cut: bool,
    /// To the last byte, and that window was below a segment.
    pub fills_small: bool,
    /// How far its segments stood apart, ns. None: it was one.
    pub apart: Option<u64>,
}

impl BlockTail {
    /// How far a slow link before the tap made its segments stand apart, ns; 0: none did.
    pub fn spacing(&self) -> u64 {
        self.apart.filter(|ns| *ns >= SPACED).unwrap_or(0)
    }

    /// Its segments came one right behind the other: none of them waited in a queue before the tap, where its sender had heard less.
    pub fn came_at_once(&self) -> bool {
        self.apart.is_some_and(|ns| ns < SPACED)
    }
}

/// What was sent between pauses after full segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bursts {
    /// Since the last pause, and when it ended.
    pub bytes: u32,
    pub since: u64,
    /// Blocks in it; 2: as many or more.
    blocks: u32,
    /// Longest gap within, and when it ended.
    longest: u64,
    longest_at: u64,
    /// Its beginning is not known: it lies within a block.
    cut: bool,
    /// Blocks in it that ended with less than a segment: what the application wrote at once.
    pub writes: u32,
    /// The last ACK and the window in bytes when it began, if known.
    window: Option<(u32, u32)>,
    /// Between those before, the newest first; 0: none.
    before: [u32; BURSTS_AFTER_LOSS],
    pub slow_start: SlowStart,
    /// The burst before was a whole congestion window, as slow start tells.
    pub fills: bool,
    /// A pause was surely that of a full send buffer.
    pub proven: bool,
}

impl Bursts {
    /// With what there is of it already, in who knows how many blocks.
    pub fn begin(since: u64, bytes: u32) -> Self {
        Self {
            bytes,
            since,
            blocks: if bytes > 0 { 2 } else { 0 },
            ..Self::default()
        }
    }

    /// A block of the burst. `acked`: the highest ACK that had passed the tap; `window`: the receiver's last, in bytes.
    pub fn add(&mut self, b: &Block, acked: u32, window: Option<u32>, path: &Path) {
        if self.bytes == 0 && !self.cut {
            self.window = window.map(|window| (acked, window));
        }
        self.bytes = self.bytes.saturating_add(b.bytes);
        self.blocks = (self.blocks + 1).min(2);
        if b.last.saturating_sub(b.first) >= path.round_trip() / 2 {
            // Two flights, the first of which ended without PSH: the sender had more.
            self.restart(b.last);
            self.cut = true;
            self.window = window.map(|window| (acked, window));
        }
    }

    /// Something else than the sender ended the burst.
    pub fn restart(&mut self, since: u64) {
        *self = Self {
            slow_start: self.slow_start,
            proven: self.proven,
            ..Self::begin(since, 0)
        };
    }

    /// A gap within the burst, up to `time`; `trip`: a round trip as it is now.
    pub fn gap(&mut self, gap: u64, time: u64, trip: u64) {
        if gap >= self.longest(time, trip) {
            (self.longest, self.longest_at) = (gap, time);
        }
    }

    /// The longest gap within the burst in the last round trip: the one before is that of the pause before.
    pub fn longest(&self, time: u64, trip: u64) -> u64 {
        let is_recent = time.saturating_sub(self.longest_at) <= trip;
        if is_recent { self.longest } else { 0 }
    }

    /// A pause. Whether the burst was like the one before it and has not grown over the last ones: a send buffer has one
    /// size, a congestion window grows by a segment in each round trip (RFC 5681 3.1), or in two after a loss. `next`: the
    /// next burst begins.
    pub fn end(&mut self, next: u64, segment: u32, lost: bool) -> bool {
        let burst = self.bytes;
        let last = f64::from(self.before[0]);
        let compared = &self.before[..if lost { BURSTS_AFTER_LOSS } else { BURSTS }];
        let oldest = compared[compared.len() - 1];
        let steady = oldest > 0 && burst <= oldest.saturating_add(segment);
        let near = f64::from(burst) * FLAT >= last && (steady || !lost && compared.iter().any(|b| burst <= *b));
        let like = near && !self.cut && f64::from(burst) <= last * FLAT;
        let mut before = self.before;
        before.rotate_right(1);
        before[0] = if self.cut { 0 } else { burst };
        *self = Self {
            before,
            slow_start: self.slow_start,
            fills: self.fills,
            proven: self.proven,
            ..Self::begin(next, 0)
        };
        like
    }

    /// Bytes of the burst before; 0: not known.
    pub const fn last(&self) -> u32 {
        self.before[0]
    }

    /// Whether the burst is no more than what a sender that paces sends at once: some segments, or one piece as large as it makes them
    /// (Linux: `tcp_tso_autosize`).
    pub const fn is_few(&self, path: &Path) -> bool {
        !self.cut && (self.bytes <= PACED * path.payload || self.blocks == 1)
    }

    /// Whether the burst, which ends in `tail` and is followed by another at `next`, was what one round trip had in flight.
    pub fn is_flight(&self, tail: &BlockTail, next: u64, path: &Path) -> bool {
        let trip = path.round_trip();
        !self.cut
            && tail.last.saturating_sub(self.since) < trip / PIECES
            && next.saturating_sub(self.since) >= trip - trip / 8
    }

    /// Whether the burst used up the window of the receiver as it was when it began, and its sender can have heard of no
    /// other before it ended.
    pub fn filled(&self, tail: &BlockTail, path: &Path) -> bool {
        self.window.is_some_and(|(ack, window)| {
            let left = ack.wrapping_add(window).wrapping_sub(tail.end);
            let same = tail.acked == Some(ack) || tail.last.saturating_sub(self.since) < path.other;
            window > 0 && left < path.three(window) && same
        })
    }

    /// Whether the burst was most of the window as the tap knew it when it began. Where it ends with less than a segment, although more
    /// followed, an edge has cut it that was not known here: no congestion window cuts segments.
    pub fn nearly_filled(&self) -> bool {
        self.window
            .is_some_and(|(_, window)| f64::from(self.bytes) >= NEARLY * f64::from(window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these bursts, in segments, were like those before them.
    fn like(bursts: impl IntoIterator<Item = u32>, lost: bool) -> Vec<bool> {
        let mut b = Bursts::begin(0, 0);
        let mut end = |segments: u32| {
            b.bytes = 1000 * segments;
            b.end(0, 1000, lost)
        };
        bursts.into_iter().map(&mut end).collect()
    }

    /// After a loss a congestion window may grow by a segment in two round trips, and in steps of two segments.
    #[test]
    fn a_window_that_grows_slowly_after_a_loss_is_no_buffer() {
        let slowly = || (0..20).map(|n| 10 + n / 4 * 2);
        assert!(!like(slowly(), true).contains(&true));
        assert!(like(slowly(), false).contains(&true));
        let same = like([12; 12], true);
        assert_eq!(same.iter().position(|like| *like), Some(8));
    }
}
