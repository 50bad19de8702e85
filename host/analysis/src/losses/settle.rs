//! Verdicts from when they are open until they are final.

use super::entry::{Entry, tally};
use super::path::Path;
use super::{Losses, MIRRORED, OPEN};
use crate::seq::at_or_before;
use crate::verdict::{Class, Evidence, Place, Sign, sign};

/// Timers that ran out in vain until the end of a connection: its receiver was gone, or cut off.
const SILENT: usize = 3;

impl Losses {
    pub(super) fn keep(&mut self, entry: Entry, path: Path) {
        if self.open.len() == OPEN {
            self.settle(0, path);
            let oldest = self.open.remove(0);
            self.done.push(oldest);
        }
        self.open.push(entry);
    }

    /// Another place for an open verdict.
    pub(super) fn change(&mut self, i: usize, place: Place, sign: Sign) {
        let Some(entry) = self.open.get_mut(i) else { return };
        tally(&mut self.counts, entry, false);
        entry.place = place;
        entry.evidence = entry.evidence.with(sign);
        tally(&mut self.counts, entry, true);
    }

    /// The last word on an open verdict: no D-SACK came for it.
    fn settle(&mut self, i: usize, path: Path) {
        let entry = self.open[i];
        let acked = self.acked.is_some_and(|ack| at_or_before(entry.range.to, ack));
        let silent = path.sack && acked && entry.length > 0 && !entry.evidence.has(sign::DSACKED);
        // What left a hole in SACK, and came without a D-SACK, was lost after all: the queue behind the tap had shrunk.
        let answered = entry.told_at.checked_sub(entry.time);
        let shrunk = answered
            .zip(path.soonest_by_far(&entry))
            .is_none_or(|(after, least)| after >= least);
        let too_soon = entry.evidence.has(sign::SACK_HOLE) && entry.evidence.has(sign::ACKED_TOO_SOON) && shrunk;
        let open = matches!(entry.place, Place::Unknown | Place::BehindTap) || too_soon;
        let repeat = entry.class == Class::Retransmission && open;
        // A mirror's copy brings no D-SACK either.
        let waited = entry.cause.is_timer();
        let copy = entry.place == Place::Unknown && !waited && self.counts.mirror_copies >= MIRRORED;
        let doubtful = copy || entry.evidence.has(sign::NOBODY_ASKED);
        // Two D-SACKs of the same bytes look like one; then a repeat of them says nothing of the repeats before it.
        let two_came = self.open[i + 1..].iter().any(|later| {
            later.class == Class::Retransmission
                && later.evidence.has(sign::DSACKED)
                && later.range.overlap(entry.range) > 0
        });
        let told = [
            sign::SACK_HOLE,
            sign::DUPLICATE_ACKS,
            sign::PARTIAL_ACK,
            sign::SACKED_AFTER,
            sign::NO_ID_MISSING,
        ];
        let is_timers = entry.place == Place::BehindTap && entry.evidence.has(sign::TIMER);
        if two_came && is_timers && !told.iter().any(|sign| entry.evidence.has(*sign)) {
            // They were this and a later one, or the first copy and either. The timer alone tells of no loss then.
            self.change(i, Place::Unknown, sign::TIMER);
        }
        let doubtful = doubtful || two_came;
        if silent && repeat && !doubtful {
            self.change(i, Place::BehindTap, sign::NO_DSACK);
            let evidence = &mut self.open[i].evidence;
            *evidence = evidence.without(sign::ACKED_TOO_SOON);
        }
    }

    /// The flow is over, and the last packet of the receiver passed at `heard`: what timers sent again behind it in vain tells
    /// of no loss of its own. The receiver, or the way to it or from it, was gone.
    pub fn mark_silence(&mut self, heard: u64) {
        let in_vain = |e: &Entry| e.class == Class::Retransmission && e.cause.is_timer() && e.time > heard;
        let timers = |e: &&Entry| in_vain(e) && !e.evidence.has(sign::BATCH);
        if self.open.iter().filter(timers).count() < SILENT {
            return;
        }
        for i in 0..self.open.len() {
            let is_unneeded = self.open[i].place.is_spurious() || self.open[i].evidence.has(sign::UNSEEN);
            if in_vain(&self.open[i]) && !is_unneeded {
                self.change(i, Place::Unknown, sign::SILENCE);
            }
        }
    }

    /// The flow ended at `time` with this next expected sequence number: gaps that were neither
    /// filled nor acknowledged were lost, nobody knows where; what was acknowledged beyond it was
    /// delivered and not captured.
    pub fn close(&mut self, next: Option<u32>, time: u64, path: Path) {
        let path = self.with_sack(path);
        for gap in std::mem::take(&mut self.gaps) {
            self.give_up(&gap, path);
        }
        if let Some(unseen) = self.unseen_end(next) {
            let segments = path.segments(unseen.len());
            self.counts.missed += u64::from(segments);
            let signs = Evidence::NONE.with(sign::ACKED_UNSEEN);
            self.never_seen(unseen, time, segments, Class::Missed, signs);
        }
        for i in 0..self.open.len() {
            self.settle(i, path);
        }
        self.done.append(&mut self.open);
    }
}
