//! Why a segment was sent again, and where the copy before it, or the answer to that, was lost: as far as it is known
//! when the segment comes.

use weir_record::{Event, what};

use super::entry::Entry;
use super::event::{is_asked_twice, since_data};
use super::path::{Path, REORDERING};
use super::{FAR, Losses};
use crate::seq::at_or_before;
use crate::verdict::{Cause, Evidence, Place, sign};

/// A retransmission that follows a duplicate ACK within 20 ms answers it (Wireshark, user's guide 7.5).
const PROMPT: u64 = 20_000_000;
/// Segments behind the newest one among which its neighbours' copies come.
const NEAR: u32 = 3;

impl Losses {
    /// Cause and place of a retransmission, as far as they are known when it comes.
    pub(super) fn explain(&self, entry: &mut Entry, e: &Event, unseen: u32, path: Path) {
        let (cause, signs) = self.cause(e, entry, path);
        entry.cause = cause;
        let acked = e.what & what::ACKED_UNKNOWN == 0 && at_or_before(entry.range.to, e.acked);
        let sacked = entry.range.len() > 0 && self.sacked.covers(entry.range);
        let mut evidence = entry
            .evidence
            .with_if(sign::UNSEEN, unseen > 0)
            .with_if(sign::SEEN, unseen == 0)
            .with_if(sign::QUEUE_STOOD, path.queue);
        for s in signs.signs() {
            evidence = evidence.with(s);
        }
        let waited = cause.is_timer();
        // Without SACK, a timer's recovery sends again what was received, too; and nobody tells of
        // a FIN that came twice.
        let timer = cause == Cause::Timeout && e.length > 0 && (path.sack || !signs.has(sign::BATCH));
        let asked = [sign::SACK_HOLE, sign::DUPLICATE_ACKS, sign::PARTIAL_ACK]
            .into_iter()
            .any(|sign| evidence.has(sign));
        // So near to what was new a moment ago, it may be a copy that nobody asked for.
        let distance = e.expected.wrapping_sub(entry.range.to);
        let near = path.segments(distance) <= NEAR && self.follows_new(e, entry.time);
        let soon = since_data(e) < path.rtt.unwrap_or(REORDERING);
        let unasked = evidence.has(sign::NOBODY_ASKED);
        let doubtful = near && soon && unseen == 0 && !asked && !timer;
        evidence = evidence.with_if(sign::NOBODY_ASKED, doubtful);
        entry.place = if unseen > 0 {
            Place::BeforeTap
        } else if acked {
            evidence = evidence.with(sign::ACKED);
            if !waited || signs.has(sign::BATCH) {
                Place::Nowhere
            } else if self.met_its_ack(entry, e, path) {
                evidence = evidence.with(sign::SOON);
                Place::Nowhere
            } else {
                // The ACK passed the tap, and yet the timer ran out.
                evidence = evidence.with(sign::ACK_WAS_DUE);
                Place::AckBehindTap
            }
        } else if sacked {
            evidence = evidence.with(sign::SACKED);
            Place::Nowhere
        } else if path.reset {
            // Whoever has reset the connection needs nothing any more; the sender has not heard of it.
            evidence = evidence.with(sign::RESET);
            if waited { Place::AckBehindTap } else { Place::Nowhere }
        } else if asked || timer && !unasked && (path.sack || Self::is_more_outstanding(entry, e, path)) {
            Place::BehindTap
        } else {
            Place::Unknown
        };
        entry.evidence = evidence.with_if(sign::NO_ACK, waited && unseen == 0 && !acked);
    }

    /// The first ACK of a repeat passed the tap so shortly before it that the sender had not got it.
    fn met_its_ack(&self, entry: &Entry, e: &Event, path: Path) -> bool {
        let whole = path.whole.filter(|_| e.acked == e.expected);
        let first = self.acked_first.or(whole).filter(|_| entry.range.to == e.acked);
        first.is_some_and(|first| path.crosses(entry.time.saturating_sub(first)))
    }

    /// Why a segment was sent again.
    fn cause(&self, e: &Event, entry: &Entry, path: Path) -> (Cause, Evidence) {
        let (old, time) = (entry.range, entry.time);
        let since = since_data(e);
        let rtt = path.rtt.unwrap_or(0);
        // RFC 5681 3.2 asks for three duplicate ACKs; stacks with early retransmit or RACK (RFC
        // 8985) are content with a SACK hole, and Wireshark with two.
        let hole = self.sacked.is_hole(old) || entry.evidence.has(sign::SACK_HOLE);
        let chain = is_asked_twice(e);
        let partial = self.is_partly_acknowledged(e, time, path);
        let asked = Evidence::NONE
            .with_if(sign::SACK_HOLE, hole)
            .with_if(sign::DUPLICATE_ACKS, chain)
            .with_if(sign::PARTIAL_ACK, partial);
        let prompt = self.evidence != 0 && time.saturating_sub(self.evidence) <= PROMPT.max(rtt);
        if (hole || chain) && (prompt || since < path.timeout()) {
            return (Cause::Fast, asked);
        }
        if e.length == 0 && e.what & what::ACKS_MORE != 0 {
            // Stacks of BSD and of Windows put their FIN on the ACK of the other's, too, when both close at once.
            return (Cause::Unknown, Evidence::NONE.with(sign::NOBODY_ASKED));
        }
        // Tstat's batch rule: closer than a round trip to an anomalous predecessor, same cause.
        let near = time.saturating_sub(self.last_repeat) <= rtt.max(REORDERING);
        if let Some(cause @ (Cause::Fast | Cause::Timeout)) = self.last_cause.filter(|_| near) {
            return (cause, asked.with(sign::BATCH));
        }
        if since >= path.timeout() {
            (Cause::Timeout, asked.with(sign::TIMER))
        } else if let (true, Some(cause)) = (partial, self.told_by) {
            // A partial ACK goes on with what began the recovery (RFC 6582 3.2; after a timer from the first segment on, RFC 5681 3.1).
            (cause, asked.with_if(sign::BATCH, cause == Cause::Timeout))
        } else if old.to == e.expected && path.is_probe_time(since) {
            (Cause::TailProbe, asked.with(sign::TAIL))
        } else {
            (Cause::Unknown, asked)
        }
    }

    /// More was in flight than one ACK answers: no single lost ACK explains a timeout.
    fn is_more_outstanding(entry: &Entry, e: &Event, path: Path) -> bool {
        let outstanding = e.expected.wrapping_sub(entry.range.from);
        path.segments(outstanding) > 2 && outstanding < FAR
    }

    /// The last time of which a record tells at which a timer of the sender began anew (RFC 6298 5.3, 5.5), TAI ns; 0: none.
    fn timer_began(&self) -> u64 {
        let acked = self.acked_first.unwrap_or(0);
        self.last_repeat.max(self.evidence).max(acked)
    }

    /// About when the copy before a repeat passed the tap.
    pub(super) fn first_copy(&self, entry: &Entry, e: &Event, path: Path) -> u64 {
        let waited = entry.cause.is_timer();
        // What a recovery without SACK repairs step by step had been sent before it began (RFC 6582 3.2).
        let is_step = entry.evidence.has(sign::PARTIAL_ACK) && self.is_recovering(entry.range.from);
        let follows = entry.evidence.has(sign::BATCH) || is_step;
        match self.open.last().filter(|_| follows) {
            Some(before_this) => before_this.lost_at,
            // The timer ran from the last packet: RFC 6298 5.
            None if waited && since_data(e) != u64::MAX => entry.time.saturating_sub(since_data(e)),
            // A second ago or more: from the last repeat, or from what was heard of the receiver last, at the latest.
            None if waited && self.timer_began() > 0 => self.timer_began(),
            // What asks for it comes a round trip after what was sent behind it.
            None => entry.time.saturating_sub(path.rtt.unwrap_or(0)),
        }
    }
}
