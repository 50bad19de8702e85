//! Recoveries: which retransmissions belong together, and what ACKs tell of them on the way.

use weir_record::Event;

use super::Losses;
use super::entry::{Entry, tally};
use super::event::is_first;
use super::path::{Path, REORDERING};
use crate::seq::{Range, at_or_before, before, later};
use crate::verdict::{Cause, Class, Place, sign};

/// One segment in so many that had arrived can be anywhere in the flight.
const FEW: u32 = 16;
/// `EVENT.dup_acks` counts no further.
const DUP_ACKS_MOST: u8 = 63;

/// All that was in flight when a recovery began was lost, but for the few segments that made duplicate ACKs: the ACKs since then never
/// went beyond what was sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct FromScratch {
    /// End of what was sent again.
    to: u32,
    /// Where as many segments begin as made duplicate ACKs.
    arrived: u32,
    /// An ACK has answered some of it.
    answered: bool,
}

impl Losses {
    /// A recovery is in progress, and this was sent before it began.
    pub(super) fn is_recovering(&self, seq: u32) -> bool {
        self.recover.is_some_and(|recover| before(seq, recover))
    }

    pub(super) fn begin_episode(&mut self, entry: &mut Entry, expected: u32) {
        if !self.is_recovering(entry.range.from) {
            self.counts.episodes += 1;
            self.recover = Some(expected);
            entry.begins = true;
        }
        entry.episode = self.counts.episodes as u32;
    }

    pub(super) fn sent_again(&mut self, mut entry: Entry, path: Path) {
        self.counts.retransmitted += 1;
        self.counts.retransmitted_data += u64::from(entry.length > 0);
        self.counts.retransmitted_bytes += u64::from(entry.length);
        let expected = entry.range.from;
        self.begin_episode(&mut entry, expected);
        self.note_repeat(&entry);
        self.fin_lost |= entry.place == Place::BeforeTap && entry.length == 0;
        tally(&mut self.counts, &entry, true);
        self.keep(entry, path);
    }

    /// What the next repeats of a recovery are judged by.
    pub(super) fn note_repeat(&mut self, entry: &Entry) {
        self.last_repeat = entry.time;
        self.last_cause = Some(entry.cause);
        if entry.begins {
            self.told_by = None;
        }
        if matches!(entry.cause, Cause::Fast | Cause::Timeout) {
            self.told_by = Some(entry.cause);
        }
    }

    /// RFC 6582 3.2: in a recovery, the ACK that answers a retransmission and stops below what had been sent asks for what it
    /// stops at. With SACK it asks for more than that, and at once.
    pub(super) fn is_partly_acknowledged(&self, e: &Event, time: u64, path: Path) -> bool {
        let answered = self.open.last().is_some_and(|last| before(last.range.from, e.acked));
        let rtt = path.rtt.unwrap_or(0);
        let recent = time.saturating_sub(self.last_repeat) <= 2 * rtt.max(REORDERING);
        is_first(e) && self.is_recovering(e.seq) && answered && (recent || !path.sack)
    }

    /// Follows the recovery of a receiver that cannot name what it has. What comes above a loss makes a duplicate ACK
    /// (RFC 5681 4.2): so many had arrived, the last ones of the flight where ACKs go on step by step up to them.
    pub(super) fn follow(&mut self, entry: &mut Entry, e: &Event, path: Path) {
        let begins = !self.is_recovering(entry.range.from);
        // The first ACK of a recovery may let new data out (RFC 5682 2.1), which then makes duplicate ACKs.
        let new = self
            .recover
            .filter(|_| !begins)
            .map_or(0, |recover| e.expected.wrapping_sub(recover));
        let is_told = u32::from(e.dup_acks) > path.segments(new);
        let in_flight = path.segments(e.expected.wrapping_sub(e.seq));
        let scratch = FromScratch {
            to: entry.range.to,
            arrived: e.expected.wrapping_sub(u32::from(e.dup_acks) * path.segment),
            answered: false,
        };
        self.count_answers(entry, e, path);
        if path.sack || self.unanswered == Some(0) {
            self.from_scratch = None;
        } else if begins {
            let starts = match entry.cause {
                // What was new just before hides a timer.
                Cause::Timeout | Cause::Unknown => !is_told && !entry.evidence.has(sign::BATCH),
                Cause::Fast => e.dup_acks < DUP_ACKS_MOST && u32::from(e.dup_acks) * FEW <= in_flight,
                _ => false,
            };
            self.from_scratch = (starts && is_first(e)).then_some(scratch);
        } else if is_told {
            self.from_scratch = None;
        } else if self.from_scratch.is_none() && entry.evidence.has(sign::TIMER) && is_first(e) {
            // A timer within it sends all again, too. What had arrived ends it.
            let arrived = self.recover.unwrap_or(e.expected);
            self.from_scratch = Some(FromScratch { arrived, ..scratch });
        } else if let Some(scratch) = &mut self.from_scratch {
            if before(scratch.to, entry.range.from) {
                self.from_scratch = None;
                return;
            }
            scratch.to = later(scratch.to, entry.range.to);
            if scratch.answered && entry.place == Place::Unknown && at_or_before(entry.range.to, scratch.arrived) {
                entry.place = Place::BehindTap;
                entry.evidence = entry.evidence.with(sign::PARTIAL_ACK);
            }
        }
    }

    /// Without SACK: each segment that arrives above a loss makes a duplicate ACK (RFC 5681 4.2). Those that passed the tap and made none were lost
    /// behind it; when as many have been found, the rest had arrived, and what comes again of it is needless.
    fn count_answers(&mut self, entry: &mut Entry, e: &Event, path: Path) {
        let begins = !self.is_recovering(entry.range.from);
        if path.sack || begins {
            self.unanswered = None;
        }
        if path.sack {
            return;
        }
        let episode = self.counts.episodes as u32;
        let mut repeats = self.open.iter().filter(|o| o.class == Class::Retransmission);
        let is_alone = begins
            || repeats
                .clone()
                .all(|o| o.episode != episode || o.range.from == entry.range.from);
        if is_first(e) && is_alone {
            let above = Range {
                from: entry.range.to,
                to: e.expected,
            };
            let unseen: u32 = self.gaps.iter().map(|gap| gap.range.overlap(above)).sum();
            let passed = path.segments(above.len().saturating_sub(unseen));
            let told = u32::from(e.dup_acks);
            // Answers to what came again before would be among them.
            let is_quiet = entry.time.saturating_sub(self.last_repeat) > 2 * path.rtt.unwrap_or(0);
            let is_counted = is_quiet && (1..u32::from(DUP_ACKS_MOST)).contains(&told);
            self.unanswered = passed.checked_sub(told).filter(|_| is_counted);
        } else if entry.evidence.has(sign::SEEN) && repeats.all(|o| o.range.overlap(entry.range) == 0) {
            // Of segments that are not full, more passed than their bytes tell.
            let is_full = e.length >= path.segment || self.recover == Some(entry.range.to);
            if is_first(e) {
                self.unanswered = self.unanswered.and_then(|count| count.checked_sub(1));
            } else if self.unanswered == Some(0) && is_full && !entry.place.is_spurious() {
                entry.place = Place::Nowhere;
                entry.evidence = entry.evidence.with(sign::ALL_ANSWERED);
            }
        }
    }

    /// An ACK beyond what was sent again: the receiver had some of the rest, and with it perhaps some of what was sent
    /// again beyond the ACK before.
    pub(super) fn acknowledged_beyond(&mut self, before_this: u32, ack: u32) {
        let Some(scratch) = &mut self.from_scratch else { return };
        let all_again = self.recover.is_none_or(|recover| at_or_before(recover, scratch.to));
        if at_or_before(ack, scratch.to) || all_again {
            scratch.answered = true;
        } else {
            self.end_from_scratch(before_this);
        }
    }

    /// Not all of the flight was lost: of what was sent again beyond the ACK before this one, nothing tells any more.
    pub(super) fn end_from_scratch(&mut self, before_this: u32) {
        if self.from_scratch.take().is_none() {
            return;
        }
        for i in 0..self.open.len() {
            let entry = self.open[i];
            if entry.place == Place::BehindTap
                && entry.evidence.has(sign::PARTIAL_ACK)
                && before(before_this, entry.range.from)
            {
                self.change(i, Place::Unknown, sign::BATCH);
                let evidence = &mut self.open[i].evidence;
                *evidence = evidence.without(sign::PARTIAL_ACK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::tests::{SOON, again, places, places_each};

    const TIMER: u64 = 300_000_000;

    /// A timer's recovery without SACK that goes on step by step: nothing of the flight had arrived.
    #[test]
    fn a_flight_of_which_nothing_is_heard_was_lost() {
        let steps = [
            again(0, 0, 0, 20, TIMER),
            again(1, 1, 0, 20, SOON),
            again(2, 1, 0, 20, SOON),
            again(3, 3, 0, 20, SOON),
            again(4, 3, 0, 20, SOON),
            again(5, 3, 0, 20, SOON),
        ];
        assert_eq!(places(&steps, 6), [Place::BehindTap; 6]);
        // What was new when the recovery had begun makes duplicate ACKs (RFC 5682).
        let steps = [
            again(0, 0, 0, 20, TIMER),
            again(1, 1, 2, 22, SOON),
            again(2, 1, 2, 22, SOON),
        ];
        assert_eq!(places(&steps, 3), [Place::BehindTap; 3]);
    }

    /// A timer runs out within a recovery that duplicate ACKs began, and ACKs go on step by step.
    #[test]
    fn a_timer_within_a_recovery_sends_all_again() {
        const APART: u64 = 15_000_000;
        let steps = [
            again(0, 0, 40, 64, SOON),
            again(1, 1, 0, 64, SOON),
            again(2, 2, 0, 64, TIMER),
            again(3, 3, 0, 64, SOON),
            again(4, 3, 0, 64, SOON),
            again(5, 5, 0, 64, SOON),
            again(6, 5, 0, 64, SOON),
        ];
        assert_eq!(places_each(&steps, 7, APART), [Place::BehindTap; 7]);
        // The end goes beyond what was sent again: the last one may have arrived.
        let [.., before, last] = places_each(&steps, 64, APART)[..] else {
            panic!()
        };
        assert_eq!((before, last), (Place::BehindTap, Place::Unknown));
    }

    /// A blackout that the last of the flight outlasted: their duplicate ACKs began the recovery.
    #[test]
    fn a_flight_of_which_the_end_is_heard_was_lost_up_to_there() {
        let lost = |heard: u8| {
            let mut steps = vec![again(0, 0, heard, 64, SOON)];
            steps.extend((1..64).map(|n| again(n, n, 0, 64, SOON)));
            // Of each pair the ACK stops at the first.
            for pair in steps[1..].chunks_mut(2) {
                let acked = pair[0].acked;
                pair.iter_mut().for_each(|e| e.acked = acked);
            }
            let places = places(&steps, 64);
            let lost = places.iter().take_while(|place| **place == Place::BehindTap);
            (lost.count(), places[1])
        };
        assert_eq!(lost(4), (60, Place::BehindTap));
        // More than one in 16 may have been anywhere.
        assert_eq!(lost(5).0, 2);
    }

    /// A duplicate ACK too much, or an ACK that goes further than what was sent again: some of it had arrived.
    #[test]
    fn a_flight_of_which_something_is_heard_may_have_arrived() {
        let steps = [
            again(0, 0, 1, 20, TIMER),
            again(1, 1, 0, 20, SOON),
            again(2, 1, 0, 20, SOON),
        ];
        assert_eq!(places(&steps, 3)[2], Place::Unknown);
        let steps = [
            again(0, 0, 0, 20, TIMER),
            again(1, 1, 0, 20, SOON),
            again(2, 1, 2, 21, SOON),
        ];
        assert_eq!(places(&steps, 3)[2], Place::Unknown);
        let steps = [
            again(0, 0, 0, 20, TIMER),
            again(1, 1, 0, 20, SOON),
            again(2, 1, 0, 20, SOON),
            again(9, 9, 0, 20, SOON),
            again(10, 9, 0, 20, SOON),
        ];
        let places = places(&steps, 11);
        assert_eq!(places[..2], [Place::BehindTap; 2], "the ACK stopped at the second");
        assert_eq!([places[2], places[4]], [Place::Unknown; 2]);
    }

    /// Twenty segments of which the first is lost: the others make a duplicate ACK each.
    #[test]
    fn what_was_answered_had_arrived() {
        let placed = |told: u8, then: &[Event]| {
            let steps: Vec<_> = [again(0, 0, told, 20, TIMER)].iter().chain(then).copied().collect();
            places(&steps, 20)[1..].to_vec()
        };
        let next = again(1, 0, 19, 20, SOON);
        assert_eq!(placed(19, &[next]), [Place::Nowhere]);
        // One was not answered: it, or its answer, was lost.
        assert_eq!(placed(18, &[next]), [Place::Unknown]);
        // It is found where an ACK stops.
        let found = [again(7, 7, 0, 20, SOON), again(8, 7, 0, 20, SOON)];
        assert_eq!(placed(18, &found), [Place::BehindTap, Place::Nowhere]);
        assert_eq!(placed(17, &found), [Place::BehindTap, Place::Unknown]);
        // Of smaller ones there were more.
        let small = Event { length: 400, ..next };
        assert_eq!(placed(19, &[small]), [Place::Unknown]);
    }
}
