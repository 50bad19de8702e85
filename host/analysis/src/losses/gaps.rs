//! Gaps in the sequence, and what became of them: filled, acknowledged all the same, or given up.

use weir_record::Event;

use super::entry::Entry;
use super::order::is_older;
use super::path::{Path, REORDERING, TIMEOUT_FLOOR};
use super::{FAR, Losses};
use crate::seq::{Range, before, earlier, later};
use crate::verdict::{Class, Evidence, Place, sign};

/// Open gaps kept per direction; when there are more, one that was delivered is given up, or else the first of the list.
const GAPS: usize = 128;

#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub range: Range,
    pub time: u64,
    pub tsval: u32,
    /// Since the data before the segment that made it, ns.
    pub since: u64,
    /// The receiver acknowledged it: its bytes were delivered and not captured. They are counted as missed, as so many segments.
    pub delivered: Option<u32>,
    /// SACK blocks left it as a hole: until then at least the receiver lacked it, TAI ns.
    pub lacked: Option<u64>,
    pub ip_id: u16,
    /// A FIN alone made it, so its bytes are in no block.
    pub blockless: bool,
}

/// Data that came into a gap before a FIN: the engine makes no block of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    pub seq: u32,
    pub bytes: u32,
    /// Nothing is missing behind it.
    pub is_last: bool,
}

impl Losses {
    /// What begins at `at` was not seen; and whether its receiver has it all the same.
    pub fn unseen(&self, at: u32) -> Option<bool> {
        let gap = self.gaps.iter().find(|gap| gap.range.from == at)?;
        Some(gap.delivered.is_some())
    }

    /// Whether the receiver has more than a FIN behind `at` that was not seen. `next`: next expected at the end of the flow.
    pub fn missed_behind(&self, at: u32, next: Option<u32>) -> bool {
        let end = self.unseen_end(next);
        self.unseen(at) == Some(true) || end.is_some_and(|end| end.from == at && end.len() > 1)
    }

    /// The flow is settled, and this direction's data ended at `end`: its last bytes, if the receiver has them and the capture missed them.
    pub fn missed_end(&self, end: u32) -> Option<Range> {
        let is_last = |e: &&Entry| e.class == Class::Missed && e.range.to == end;
        self.done.iter().find(is_last).map(|e| e.range)
    }

    /// What the receiver acknowledged beyond the `next` expected at the end of the flow.
    pub(super) fn unseen_end(&self, next: Option<u32>) -> Option<Range> {
        let (next, acked) = next.zip(self.acked)?;
        let unseen = Range { from: next, to: acked };
        (unseen.len() > 0 && unseen.len() < FAR).then_some(unseen)
    }

    /// A block of this direction ended at `to`: what is missing before is in it.
    pub fn block(&mut self, to: u32) {
        for gap in &mut self.gaps {
            gap.blockless &= before(to, gap.range.to);
        }
    }

    /// A gap in the sequence; the part that is acknowledged already was delivered.
    pub(super) fn new_gap(&mut self, gap: Gap, path: Path) {
        let Some(acked) = self.acked.filter(|acked| before(gap.range.from, *acked)) else {
            // Its SACK blocks may have been stamped before the segment that made it.
            let lacked = self.sacked.is_open_hole(gap.range).then_some(self.evidence);
            return self.keep_gap(Gap { lacked, ..gap }, path);
        };
        let from = gap.range.from;
        self.keep_arrived(gap, Range { from, to: acked }, path);
    }

    /// What of gap `i` the receiver has got, and nothing of it came by since, the capture missed. `told`: when the receiver told it, if that is known.
    pub(super) fn gap_arrived(&mut self, i: usize, arrived: Range, told: Option<u64>, path: Path) {
        let gap = self.gaps[i];
        if gap.delivered.is_none() && gap.range.overlap(arrived) > 0 {
            self.gaps.swap_remove(i);
            let lacked = gap.lacked.map(|asked| told.unwrap_or(asked));
            self.keep_arrived(Gap { lacked, ..gap }, arrived, path);
        }
    }

    /// What SACK left as a hole comes right behind the ACK of it. Its receiver lacked it then, so the capture missed nothing: where each direction
    /// has a clock of its own, the ACK may be stamped before what it answers. Longer after it, this may be one more repeat.
    /// That part of a gap is open again; returns whether there is any.
    pub(super) fn reopen(&mut self, range: Range, time: u64, path: Path) -> bool {
        let is_answered = |gap: &&Gap| {
            let lacked = gap
                .lacked
                .is_some_and(|then| time.saturating_sub(then) <= path.reordering());
            lacked && gap.delivered.is_some() && gap.range.overlap(range) > 0
        };
        let mut reopened = false;
        while let Some(&gap) = self.gaps.iter().find(is_answered) {
            let part = Range {
                from: later(gap.range.from, range.from),
                to: earlier(gap.range.to, range.to),
            };
            self.take_delivered(part, path);
            let open = Gap {
                range: part,
                delivered: None,
                ..gap
            };
            self.put_back(open, path);
            reopened = true;
        }
        reopened
    }

    /// Keeps a gap of which this has arrived, as pieces.
    fn keep_arrived(&mut self, gap: Gap, arrived: Range, path: Path) {
        let range = Range {
            from: later(gap.range.from, arrived.from),
            to: earlier(gap.range.to, arrived.to),
        };
        let arrived = self.missed(Gap { range, ..gap }, path);
        self.keep_gap(arrived, path);
        for rest in gap.range.without(range) {
            self.keep_gap(Gap { range: rest, ..gap }, path);
        }
    }

    fn keep_gap(&mut self, gap: Gap, path: Path) {
        // The engine makes no gap of 2³⁰ and more.
        if gap.range.len() == 0 || gap.range.len() >= FAR {
            return;
        }
        if self.gaps.len() >= GAPS {
            let oldest = self.gaps.iter().position(|g| g.delivered.is_some()).unwrap_or(0);
            let given_up = self.gaps.remove(oldest);
            self.give_up(&given_up, path);
        }
        self.gaps.push(gap);
    }

    /// Bytes of `range` in gaps that were delivered, and the oldest of these gaps.
    pub(super) fn delivered(&self, range: Range) -> (u32, Option<Gap>) {
        let touched = || {
            self.gaps
                .iter()
                .filter(|g| g.delivered.is_some() && g.range.overlap(range) > 0)
        };
        let bytes = touched().map(|g| g.range.overlap(range)).fold(0, u32::saturating_add);
        (bytes, touched().min_by_key(|g| g.time).copied())
    }

    /// Remove `range` from the gaps that were not delivered. Returns its bytes in them and the
    /// oldest of them.
    pub(super) fn take_from_gaps(&mut self, range: Range, path: Path) -> (u32, Option<Gap>) {
        let mut open = 0u32;
        let mut first: Option<Gap> = None;
        // Downwards: what is put back stands behind and is not looked at again.
        for i in (0..self.gaps.len()).rev() {
            let gap = self.gaps[i];
            let common = gap.range.overlap(range);
            if common == 0 || gap.delivered.is_some() {
                continue;
            }
            if first.is_none_or(|first| gap.time <= first.time) {
                first = Some(gap);
            }
            open = open.saturating_add(common);
            for rest in self.cut_gap(i, range) {
                self.put_back(Gap { range: rest, ..gap }, path);
            }
        }
        (open, first)
    }

    /// Remove `range` from the delivered gaps: the capture has not missed it.
    pub(super) fn take_delivered(&mut self, range: Range, path: Path) {
        for i in (0..self.gaps.len()).rev() {
            let gap = self.gaps[i];
            if let Some(counted) = gap.delivered.filter(|_| gap.range.overlap(range) > 0) {
                self.counts.missed = self.counts.missed.saturating_sub(u64::from(counted));
                for rest in self.cut_gap(i, range).into_iter().filter(|rest| rest.len() > 0) {
                    let rest = self.missed(Gap { range: rest, ..gap }, path);
                    self.put_back(rest, path);
                }
            }
        }
    }

    /// The gap as one that the capture missed: counted.
    fn missed(&mut self, gap: Gap, path: Path) -> Gap {
        let segments = path.segments(gap.range.len());
        self.counts.missed += u64::from(segments);
        self.counts.missed_at_once = self.counts.missed_at_once.max(segments);
        Gap {
            delivered: Some(segments),
            ..gap
        }
    }

    /// What is left of a gap; where there is no room for it, nothing will be known of it.
    fn put_back(&mut self, gap: Gap, path: Path) {
        if gap.range.len() == 0 {
            return;
        }
        if self.gaps.len() < GAPS {
            self.gaps.push(gap);
        } else {
            self.give_up(&gap, path);
        }
    }

    /// Take gap `i` out; returns what is left of it on both sides of `range`.
    fn cut_gap(&mut self, i: usize, range: Range) -> [Range; 2] {
        self.gaps.swap_remove(i).range.without(range)
    }

    /// A gap that nothing will fill any more.
    pub(super) fn give_up(&mut self, gap: &Gap, path: Path) {
        let Some(segments) = gap.delivered else {
            let segments = path.segments(gap.range.len());
            self.counts.lost_unknown += u64::from(segments);
            let signs = Evidence::NONE.with(sign::OPEN_GAP);
            self.never_seen(gap.range, gap.time, segments, Class::Lost, signs);
            let beyond = self.sacked.smaller_beyond(gap.range, path.segment);
            if let Some(entry) = self.done.last_mut() {
                entry.smaller_arrived = beyond;
            }
            return;
        };
        let signs = Evidence::NONE.with(sign::ACKED_UNSEEN);
        self.never_seen(gap.range, gap.time, segments, Class::Missed, signs);
    }

    /// So many segments that were [`Class::Missed`] or [`Class::Lost`], and counted.
    pub(super) fn never_seen(&mut self, range: Range, time: u64, segments: u32, class: Class, evidence: Evidence) {
        let place = match class {
            Class::Missed => Place::Capture,
            _ => Place::Unknown,
        };
        self.done.push(Entry {
            place,
            evidence,
            lost: segments,
            ..Entry::new(class, range, range.len(), time)
        });
    }
}

/// Whether a segment that fills a gap was overtaken rather than lost.
pub(super) fn reordering(gap: &Gap, e: &Event, time: u64, path: Path) -> (bool, Evidence) {
    let late = time.saturating_sub(gap.time);
    if let Some((older, sign)) = is_older((e.tsval, e.ip_id), (gap.tsval, gap.ip_id)) {
        // By chance an id can be a little lower: not from when a timer can have sent it again.
        if sign != sign::OLDER_ID || late < path.timeout() {
            return (older, Evidence::NONE.with(sign));
        }
    }
    // What asks for the fill travels from the tap to the receiver, to the sender and back: a fill
    // that comes sooner was not asked for (Tstat), unless a timer ran already when the gap showed.
    let asked_for = path.least.map_or(REORDERING, |rtt| rtt - rtt / 10);
    // An equal TSval rules that timer out; after a second of silence none of before runs; and it
    // would have to run out just then.
    let no_timer = gap.tsval != 0 && e.tsval != 0 || gap.since < TIMEOUT_FLOOR || gap.since == u64::MAX;
    let soon = late <= path.reordering() || late < asked_for && (no_timer || late < asked_for / 2);
    (soon, Evidence::NONE.with_if(sign::SOON, soon))
}

#[cfg(test)]
mod tests {
    use weir_record::what;

    use super::*;
    use crate::losses::tests::{PATH, event};

    /// More gaps than are kept: the oldest are given up as lost somewhere.
    #[test]
    fn gaps_are_bounded() {
        let mut losses = Losses::default();
        let made = 3 * GAPS as u32;
        for i in 0..made {
            losses.sent(&event(what::GAP, i * 3000 + 1500, i * 3000, 1500), u64::from(i), PATH);
        }
        assert_eq!(losses.gaps.len(), GAPS);
        losses.close(None, 200, PATH);
        assert_eq!(
            losses.counts.lost_unknown,
            2 * u64::from(made),
            "1,500 bytes are two segments"
        );
    }
}
