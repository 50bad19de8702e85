//! IP ids that the tap did not see: those of segments that were lost before it, and of their receiver's answers.

use weir_record::{Event, FINE_INTERVAL_NS, IdStep, tcp_flag, what};

use super::entry::{Entry, tally};
use super::event::since_data;
use super::path::Path;
use super::{Again, Hidden, Losses, OPEN};
use crate::ids::{Counted, Counting};
use crate::seq::{Range, at_or_before, before};
use crate::shares::USUAL_TIMER;
use crate::verdict::{Cause, Class, Evidence, Place, sign};

/// Among more packets of the receiver, a missing id need not be that of the ACK.
const FEW: i32 = 4;
/// How late a host's timers may be, ns (two ticks at 100 Hz).
const TICKS: u64 = 20_000_000;

/// What is known of IP ids that were skipped before a segment in sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkippedIds {
    /// They count the packets of the connection.
    pub by_connection: bool,
    /// Its sender had it queued when the segment before it passed, and nothing kept it back since: all was acknowledged.
    pub queued: bool,
}

impl SkippedIds {
    /// Whether what was skipped was the segment itself, which its sender sent again after `since` ns, whatever else the ids count.
    fn show_loss(self, since: u64, path: Path) -> bool {
        self.by_connection || self.queued && path.rtt.is_some_and(|rtt| is_timed_out(since, rtt))
    }
}

/// Whether a retransmission timer, on a path of so long a round trip, had sent what comes after `since` ns. An application that keeps less than a
/// segment back (TCP_CORK of Linux) does so for as long as the timer takes alone, without the round trip.
pub const fn is_timed_out(since: u64, rtt: u64) -> bool {
    since >= USUAL_TIMER + if rtt > TICKS { rtt } else { TICKS }
}

impl Losses {
    /// A segment in sequence, some time after the data before it, and before it the sender used IP ids that the tap did
    /// not see. If those count the packets of the connection, or it was queued, and as it acknowledges nothing new, the packets were this
    /// segment, lost before the tap. Returns whether that is known.
    /// `receiver`: what the other side sent, and whether it is mirrored. Where that came out of sequence, or a network made copies of it, its
    /// receiver may have sent ACKs that acknowledge nothing new; and where the capture misses packets, ids tell nothing.
    pub fn skipped(
        &mut self,
        e: &Event,
        time: u64,
        (receiver, mirrored): (&Self, bool),
        known: SkippedIds,
        path: Path,
    ) -> bool {
        let received = e.what & what::ACKED_UNKNOWN == 0 && before(e.seq, e.acked);
        if e.what & (what::COPY | what::PROBE) != 0 || received {
            return false;
        }
        let data = time.saturating_sub(since_data(e));
        let missed = self.counts.missed + receiver.counts.missed;
        let disordered = receiver.last_disorder > data && !receiver.has_answered_disorder(path);
        if disordered || missed > 0 {
            return false;
        }
        // The packet that it heard of last was made before those that the tap did not see.
        let waited_from = data.max(receiver.last_heard);
        let since = if waited_from == 0 {
            u64::MAX
        } else {
            time.saturating_sub(waited_from)
        };
        let is_sure = known.show_loss(since, path);
        let copied = receiver.last_copy > waited_from && !mirrored;
        if e.what & what::ACKS_MORE != 0 || copied {
            // Or an ACK without data.
            if since >= path.timeout() {
                self.hidden = Some(Hidden {
                    from: e.seq,
                    known: waited_from,
                    again: if is_sure { Again::Maybe } else { Again::IfCounted },
                });
            }
            return false;
        }
        let (cause, sign) = if since >= path.timeout() {
            (Cause::Timeout, sign::TIMER)
        } else if path.is_probe_time(since) {
            (Cause::TailProbe, sign::TAIL)
        } else {
            return false;
        };
        let range = Range {
            from: e.seq,
            to: e
                .seq
                .wrapping_add(e.length)
                .wrapping_add(u32::from(e.tcp_flags & tcp_flag::FIN)),
        };
        let entry = Entry {
            lost_at: if waited_from == 0 { time } else { waited_from },
            cause,
            place: Place::BeforeTap,
            evidence: Evidence::NONE
                .with(sign::UNSEEN)
                .with(sign::IDS_SKIPPED)
                .with(sign)
                .with_if(sign::QUEUED, is_sure && !known.by_connection),
            tsval: e.tsval,
            ip_id: e.ip_id,
            lost: u32::from(e.id_step.saturating_sub(1)),
            ids: self.answers,
            ..Entry::new(Class::Retransmission, range, e.length, time)
        };
        self.hidden = Some(Hidden {
            from: e.seq,
            known: waited_from,
            again: if is_sure { Again::Yes } else { Again::IfCounted },
        });
        if is_sure {
            self.sent_again(entry, path);
        } else if self.skipped.len() < OPEN {
            self.skipped.push(entry);
        }
        is_sure
    }

    /// The receiver of this direction, on whose own `path` a record with its ACK of all that was sent passed when an answer to the last of what came
    /// out of sequence was due: it has no more to say of that.
    fn has_answered_disorder(&self, path: Path) -> bool {
        let since = self.acked_time.checked_sub(self.last_disorder);
        let is_due = since.is_some_and(|since| path.near.is_some() && !path.crosses(since));
        is_due && self.acked.is_some_and(|acked| at_or_before(self.disorder_end, acked))
    }

    /// An interval of the receiver that began at `start` and was over at `time`, with its IP ids so far. `whole`: as for
    /// [`Self::settle_ids`].
    pub fn answered(&mut self, start: u64, time: u64, ids: Counted, by_connection: bool, whole: bool) {
        for entry in &mut self.open {
            if time <= entry.time {
                entry.ids = ids;
            } else if entry.answered.is_none() && entry.time < start.saturating_add(FINE_INTERVAL_NS) {
                entry.answered = Some(ids);
            }
        }
        if by_connection {
            self.settle_answers(whole);
        }
    }

    /// The flow is over: what IP ids tell if those of sender and receiver count the packets of the connection. `whole`: no
    /// data of the receiver is missing, whose ids would be missing as well.
    pub fn settle_ids(&mut self, sender: Counting, receiver: bool, whole: bool, path: Path) {
        let skipped = std::mem::take(&mut self.skipped);
        if sender == Counting::ByConnection && self.counts.missed == 0 {
            for entry in skipped {
                self.sent_again(entry, path);
            }
        }
        if matches!(sender, Counting::Uneven | Counting::More) {
            self.take_back_queued();
        }
        if receiver {
            self.settle_answers(whole);
        }
    }

    /// What was skipped were the ids of others: nothing shows that it was sent again.
    fn take_back_queued(&mut self) {
        let counts = &mut self.counts;
        self.open.retain(|entry| {
            let is_queued = entry.evidence.has(sign::QUEUED);
            if is_queued {
                tally(counts, entry, false);
                counts.retransmitted -= 1;
                counts.retransmitted_data -= u64::from(entry.length > 0);
                counts.retransmitted_bytes -= u64::from(entry.length);
                counts.episodes -= u64::from(entry.begins);
            }
            !is_queued
        });
    }

    /// A timer ran out, and whether the segment or its ACK was lost is not known. A receiver that got the segment sent an
    /// ACK; so if none of its ids is missing, it got nothing. With SACK, a D-SACK tells that it had; where two ids are missing, both were lost.
    fn settle_answers(&mut self, whole: bool) {
        let asked = [
            sign::SACK_HOLE,
            sign::DUPLICATE_ACKS,
            sign::PARTIAL_ACK,
            sign::SACKED_AFTER,
            sign::BATCH,
        ];
        let in_doubt = |e: &Entry| {
            let timer = (e.evidence.has(sign::TIMER) || e.evidence.has(sign::TAIL))
                && !asked.iter().any(|s| e.evidence.has(*s));
            e.class == Class::Retransmission && matches!(e.place, Place::Unknown | Place::BehindTap) && timer
        };
        for i in 0..self.open.len() {
            let entry = self.open[i];
            // The ACK that told of it first follows one that the tap did not see.
            let skipped = |step: &u8| whole && (2..IdStep::Overtaken as u8).contains(step);
            if entry.told_step.filter(skipped).is_some() {
                self.open[i].told_step = None;
                self.change(i, Place::AckBeforeTap, sign::IDS_SKIPPED);
            }
            let answered = entry.answered.filter(|_| in_doubt(&entry));
            let Some(step) = answered.and_then(|answered| answered.since(&entry.ids)) else {
                continue;
            };
            let alike = |e: &&Entry| in_doubt(e) && e.ids == entry.ids && e.answered == entry.answered;
            let doubts = self.open.iter().filter(alike).count();
            let few = step.packets <= FEW && doubts == 1;
            match (entry.place, step.missing) {
                (_, 0) => self.change(i, Place::BehindTap, sign::NO_ID_MISSING),
                (Place::Unknown, 1) if few && whole => self.change(i, Place::AckBeforeTap, sign::IDS_SKIPPED),
                (Place::BehindTap, 2..) if few => self.change(i, Place::AckBeforeTap, sign::IDS_SKIPPED),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::tests::{PATH, event};
    use weir_record::SINCE_DATA_NS;

    fn counted(by_connection: bool) -> SkippedIds {
        SkippedIds {
            by_connection,
            queued: false,
        }
    }

    /// A response a second after the data before it, and IP ids are missing: it had been sent before, or an ACK that it makes up for.
    #[test]
    fn what_skipped_ids_tell_of_a_response() {
        let came_again = |what: u32, by_connection: bool| {
            let mut losses = Losses::default();
            let e = Event {
                since_data: (1_000_000_000 / SINCE_DATA_NS) as u32,
                id_step: 2,
                ..event(what::IDS_SKIPPED | what, 1000, 1000, 100)
            };
            let time = 5_000_000_000;
            losses.skipped(&e, time, (&Losses::default(), false), counted(by_connection), PATH);
            losses.came_again(1000, time)
        };
        assert_eq!(came_again(0, true), Again::Yes);
        assert_eq!(came_again(what::ACKS_MORE, true), Again::Maybe);
        assert_eq!(
            [0, what::ACKS_MORE].map(|what| came_again(what, false)),
            [Again::IfCounted; 2]
        );
    }

    /// What a mirror adds reached nobody; a copy that a network made, or a segment out of sequence, may have been answered with an ACK that
    /// acknowledges nothing new, and was lost.
    #[test]
    fn a_mirror_does_not_hide_that_a_response_had_been_sent_before() {
        let time = 5_000_000_000;
        let came_again = |what: u32, times: u32, segments: u32| {
            let mut request = Losses::default();
            for i in 0..times {
                let copy = Event {
                    ip_id: 7,
                    ..event(what, 100 * i, 100 * i + 100, 100)
                };
                request.sent(&copy, time - 100_000_000, PATH);
            }
            let e = Event {
                since_data: (1_000_000_000 / SINCE_DATA_NS) as u32,
                id_step: 2,
                ..event(what::IDS_SKIPPED, 1000, 1000, 100)
            };
            let mut losses = Losses::default();
            losses.skipped(&e, time, (&request, request.is_mirrored(segments)), counted(true), PATH);
            losses.came_again(1000, time)
        };
        let copy = what::BELOW | what::COPY;
        assert_eq!(came_again(copy, 8, 8), Again::Yes, "all of it came twice");
        assert_eq!(came_again(copy, 8, 16), Again::Maybe);
        assert_eq!(came_again(copy, 7, 7), Again::Maybe, "too few to tell");
        assert_eq!(came_again(what::BELOW, 1, 1), Again::No, "sent again");
    }

    /// A segment of the other side comes late, 500 ms before a response with a missing id; an ACK of `acked` of 2,000 bytes that were sent, which had an
    /// EVENT, passes `after` ms later.
    #[test]
    fn what_was_answered_does_not_hide_that_a_response_had_been_sent_before() {
        const MS: u64 = 1_000_000;
        let time = 5_000 * MS;
        let came_again = |acked: u32, after: u64| {
            let path = Path {
                near: Some(10 * MS),
                rtt: Some(20 * MS),
                ..PATH
            };
            let mut request = Losses::default();
            request.sent(&event(what::GAP, 1000, 0, 1000), time - 510 * MS, path);
            request.sent(&event(what::BELOW, 0, 2000, 1000), time - 500 * MS, path);
            let ack = Event {
                what: what::ACKS_MORE | what::ACKS_REPEAT,
                ack: acked,
                ..event(0, 0, 0, 0)
            };
            request.heard(&ack, None, time - (500 - after) * MS, path);
            let e = Event {
                since_data: (1_000 * MS / SINCE_DATA_NS) as u32,
                id_step: 2,
                ..event(what::IDS_SKIPPED, 1000, 1000, 100)
            };
            let mut losses = Losses::default();
            losses.skipped(&e, time, (&request, false), counted(true), path);
            losses.came_again(1000, time)
        };
        assert_eq!(came_again(2000, 10), Again::Yes);
        assert_eq!(came_again(1000, 10), Again::No, "it may have more to say");
        assert_eq!(came_again(2000, 5), Again::No, "it may not have had it");
        assert_eq!(came_again(2000, 490), Again::No, "no timer ran out since");
    }
}
