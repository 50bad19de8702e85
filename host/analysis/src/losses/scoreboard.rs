//! The scoreboard (RFC 6675 4): what the receiver has above its highest ACK, as its SACK blocks tell.

use crate::seq::{Range, at_or_before, before, earlier, later};

/// SACK ranges kept per direction.
const RANGES: usize = 16;

/// The last ranges that were told, the newest at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard(Vec<Range>);

impl Scoreboard {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// What ends before `ack` is of no use any more.
    pub fn acknowledge(&mut self, ack: u32) {
        self.0.retain(|r| before(ack, r.to));
    }

    /// Joined with those that it touches.
    pub fn add(&mut self, range: Range) {
        let mut merged = range;
        self.0.retain(|old| {
            let apart = before(merged.to, old.from) || before(old.to, merged.from);
            if !apart {
                merged = Range {
                    from: earlier(merged.from, old.from),
                    to: later(merged.to, old.to),
                };
            }
            apart
        });
        if self.0.len() == RANGES {
            self.0.remove(0);
        }
        self.0.push(merged);
    }

    /// One of the ranges has all of it.
    pub fn covers(&self, range: Range) -> bool {
        self.0.iter().any(|old| old.covers(range))
    }

    /// One of the ranges has some of it.
    pub fn overlaps(&self, range: Range) -> bool {
        self.0.iter().any(|old| old.overlap(range) > 0)
    }

    /// Bytes of the largest SACK block above a range if that is smaller than a `segment` of it; else 0.
    pub fn smaller_beyond(&self, range: Range, segment: u32) -> u32 {
        let beyond = self.0.iter().filter(|r| at_or_before(range.to, r.from));
        let largest = beyond.map(|r| r.len()).max();
        largest.filter(|bytes| *bytes < segment.min(range.len())).unwrap_or(0)
    }

    /// SACK blocks above a range leave it out, and none has some of it.
    pub fn is_open_hole(&self, range: Range) -> bool {
        self.is_hole(range) && !self.overlaps(range)
    }

    /// SACK blocks above a range leave it out.
    pub fn is_hole(&self, range: Range) -> bool {
        range.len() > 0 && self.0.iter().any(|r| at_or_before(range.to, r.from))
    }
}
