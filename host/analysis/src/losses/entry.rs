//! Verdicts without their flow, and the counters that they are entered into.

use crate::ids::Counted;
use crate::seq::Range;
use crate::verdict::{Cause, Class, Evidence, Place, sign};

/// Counters of one direction; segments unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub retransmitted: u64,
    /// Of them, those with payload that the server had not refused on the SYN.
    pub retransmitted_data: u64,
    pub retransmitted_bytes: u64,
    pub fast: u64,
    pub timeout: u64,
    pub tail_probe: u64,
    pub spurious: u64,
    pub unknown: u64,
    /// Recoveries: retransmissions that belong together are one.
    pub episodes: u64,
    pub out_of_order: u64,
    pub duplicates: u64,
    /// Of them, those that the receiver did not get: made by the capture.
    pub mirror_copies: u64,
    pub lost_upstream: u64,
    pub lost_downstream: u64,
    pub lost_unknown: u64,
    /// ACKs of this direction's data that were lost, as repeats show.
    pub lost_acks: u64,
    pub missed: u64,
    /// The most that the capture missed at once.
    pub missed_at_once: u32,
    pub sack_states: u64,
    pub keep_alives: u64,
    /// Third duplicate ACKs.
    pub duplicate_triples: u64,
    pub window_full: u64,
    /// Data segments without new bytes.
    pub repeated_segments: u64,
}

/// A verdict without its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub range: Range,
    pub time: u64,
    /// See [`crate::Verdict::lost_at`].
    pub lost_at: u64,
    pub length: u32,
    pub class: Class,
    pub cause: Cause,
    pub place: Place,
    pub evidence: Evidence,
    pub episode: u32,
    pub begins: bool,
    /// See [`crate::Verdict::smaller_arrived`].
    pub smaller_arrived: u32,
    pub(super) tsval: u32,
    pub(super) ip_id: u16,
    /// The next new byte when it passed.
    pub(super) expected: u32,
    /// Data segments that were lost, or missed by the capture, if class and place say so: see [`Self::counted`].
    pub(super) lost: u32,
    /// The receiver's IP ids before it, and when the answer to it had come.
    pub(super) ids: Counted,
    pub(super) answered: Option<Counted>,
    /// The receiver asked for it until it came.
    pub(super) hole_stood: bool,
    /// When the receiver first told that it has it, TAI ns; 0: not yet.
    pub(super) told_at: u64,
    /// A timer sent it, and the ACK that first told that the receiver has it told that it came twice, too: that ACK's
    /// `EVENT.id_step`, until it is known whether one before it was lost.
    pub(super) told_step: Option<u8>,
}

impl Counts {
    /// Data segments without new bytes that were sent: what the capture alone made is left out.
    pub const fn sent_without_new(&self) -> u64 {
        self.repeated_segments.saturating_sub(self.mirror_copies)
    }
}

impl Entry {
    /// Nothing is known of it but what it is: a segment of so many bytes that passed the tap at `time`.
    pub(super) fn new(class: Class, range: Range, length: u32, time: u64) -> Self {
        Self {
            range,
            time,
            lost_at: time,
            length,
            class,
            cause: Cause::Unknown,
            place: Place::Unknown,
            evidence: Evidence::NONE,
            episode: 0,
            begins: false,
            smaller_arrived: 0,
            tsval: 0,
            ip_id: 0,
            expected: range.to,
            lost: 0,
            ids: Counted::default(),
            answered: None,
            hole_stood: false,
            told_at: 0,
            told_step: None,
        }
    }

    /// Data segments that count as lost, or as missed by the capture, where its place says: the definition of these counts. A repeat whose
    /// place is not known counts as neither, for it may be a copy, or its ACK was lost or late; nor does a FIN.
    pub(crate) const fn counted(&self) -> u32 {
        match (self.class, self.place) {
            (Class::Retransmission, Place::BeforeTap | Place::BehindTap | Place::Capture)
            | (Class::Lost | Class::Missed, _)
                if self.length > 0 =>
            {
                self.lost
            }
            _ => 0,
        }
    }

    /// Something of it, or its ACK, may have been lost in the network.
    pub(crate) const fn is_lost(&self) -> bool {
        match self.class {
            Class::Lost => true,
            Class::Retransmission => !self.place.is_spurious(),
            _ => false,
        }
    }

    /// A needless repeat passed before the ACK of the first copy: that, or this ACK, had been on its way for longer than the sender waits.
    pub(super) const fn answer_was_late(&self) -> bool {
        let is_of_first = self.evidence.has(sign::ACKED_TOO_SOON) || self.evidence.has(sign::OLDER_ECHO);
        matches!((self.class, self.place), (Class::Retransmission, Place::Nowhere))
            && is_of_first
            && self.told_at > self.time
    }

    /// The receiver tells that it has it.
    pub(super) const fn tell(&mut self, time: u64) {
        if self.told_at == 0 {
            self.told_at = time;
        }
    }
}

/// Enter a verdict into the counters that depend on cause and place, or take it out.
pub(super) fn tally(counts: &mut Counts, entry: &Entry, enter: bool) {
    let by = |counter: &mut u64, n: u32| {
        *counter = if enter {
            *counter + u64::from(n)
        } else {
            counter.saturating_sub(u64::from(n))
        };
    };
    if entry.class == Class::Copy {
        if entry.place == Place::Capture {
            by(&mut counts.mirror_copies, 1);
        }
        return;
    }
    let kind = match entry.cause {
        _ if entry.place.is_spurious() => &mut counts.spurious,
        Cause::Fast => &mut counts.fast,
        Cause::Timeout => &mut counts.timeout,
        Cause::TailProbe => &mut counts.tail_probe,
        Cause::Unknown => &mut counts.unknown,
    };
    by(kind, 1);
    match entry.place {
        Place::BeforeTap => by(&mut counts.lost_upstream, entry.counted()),
        Place::BehindTap => by(&mut counts.lost_downstream, entry.counted()),
        Place::AckBeforeTap | Place::AckBehindTap => by(&mut counts.lost_acks, 1),
        Place::Capture => by(&mut counts.missed, entry.counted()),
        Place::Nowhere | Place::Unknown => {}
    }
}
