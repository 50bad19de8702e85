//! What a segment below the next expected is: a probe, late, a copy or a retransmission.

use weir_record::{Event, SINCE_DATA_NS, tcp_flag, what};

use super::entry::{Entry, tally};
use super::event::{has_new_id, is_asked_twice, is_first, since_data};
use super::gaps::{Gap, Late, reordering};
use super::path::{Path, REORDERING, SHORTEST_TIMER};
use super::{FAR, Losses, MIRRORED};
use crate::seq::{Range, at_or_before, before, earlier, later};
use crate::verdict::{Class, Evidence, Place, sign};

/// A timer hardly ever runs out within this time of new data, ns.
const COINCIDENCE: u64 = 1_000_000;
/// No connection has to be idle as short as this for a keep-alive, ns (RFC 9293 3.8.4: two hours; the least that Linux takes is 1 s).
const KEEP_ALIVE_LEAST: u64 = 500_000_000;

/// What a segment below the next expected brought.
#[derive(Clone, Copy, Debug)]
struct Brought {
    data: Range,
    /// Bytes of it that the tap had not seen, and that a receiver had acknowledged before they passed.
    unseen: u32,
    delivered: u32,
    /// The oldest gap that it filled.
    gap: Option<Gap>,
}

/// What a segment below the next expected was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// No retransmission: keep-alive, probe, reordered.
    Harmless,
    /// Nor is this one: the capture has it twice, or the network made it.
    Copy,
    /// A retransmission of bytes that the tap had seen.
    Repeat,
    /// A retransmission that brought bytes the tap had not seen.
    Fill,
    /// What came on the SYN, which the server took without it (RFC 7413 4.2): nothing was lost.
    Refused,
}

impl Losses {
    /// The precedence follows Wireshark: keep-alive, spurious, fast, out of order, the rest.
    pub(super) fn below(&mut self, e: &Event, time: u64, path: Path) -> Segment {
        let path = self.with_sack(path);
        let fin = e.tcp_flags & tcp_flag::FIN != 0;
        let fin_repeat = e.what & what::FIN_REPEAT != 0;
        let since_fin = if fin_repeat {
            self.fin_again(time, path)
        } else {
            u64::MAX
        };
        // A FIN alone may come long after the last data, and again at once.
        let fin_alone = Event {
            what: e.what & !what::IDLE_BEFORE,
            since_data: u32::try_from(since_data(e).min(since_fin) / SINCE_DATA_NS).unwrap_or(u32::MAX),
            ..*e
        };
        let e = if e.length == 0 && since_fin < since_data(e) {
            &fin_alone
        } else {
            e
        };
        let data = Range {
            from: e.seq,
            to: earlier(e.seq.wrapping_add(e.length), e.expected),
        };
        // With the FIN's own number.
        let old = Range {
            from: e.seq,
            to: if fin_repeat { e.expected } else { data.to },
        };
        let mut entry = Entry {
            tsval: e.tsval,
            ip_id: e.ip_id,
            expected: e.expected,
            ids: self.answers,
            ..Entry::new(Class::Retransmission, old, e.length, time)
        };
        if e.length > 0 && e.what & what::PARTIAL == 0 {
            self.counts.repeated_segments += 1;
        }
        if e.what & what::COPY != 0 {
            // A mirror's work unless the receiver says that it got it, too.
            entry.evidence = entry.evidence.with(sign::SAME_IP_ID);
            return self.copy(entry, path);
        }
        let same = |o: &Entry| o.range == old && o.ip_id == e.ip_id && o.tsval == e.tsval;
        let same_fin = fin_repeat && path.fin.is_some_and(|(id, _)| id == e.ip_id);
        if e.ip_id != 0 && !self.constant_id && (same_fin || self.open.iter().any(same)) {
            self.counts.duplicates += 1;
            entry.evidence = entry.evidence.with(sign::SAME_IP_ID);
            return self.copy(entry, path);
        }
        if let Some(class) = self.probe_or_keep_alive(e, data, path) {
            return self.harmless(entry, class);
        }
        if data.len() >= FAR || e.length == 0 && !fin {
            return Segment::Harmless; // an ACK without payload is never a retransmission
        }

        let since_gap = |gap: Option<Gap>| time.saturating_sub(gap.map_or(time, |gap| gap.time));
        let reopened = self.reopen(data, time, path);
        let (delivered, first) = self.delivered(data);
        if delivered == data.len() && delivered > 0 && since_gap(first) <= path.reordering() {
            // The capture wrote data behind its ACK: neither lost nor sent again.
            self.take_delivered(data, path);
            return self.harmless(entry, Class::CaptureOrder);
        }
        let (unseen, gap) = self.take_from_gaps(data, path);
        if unseen > 0 {
            self.last_fill = time;
        }
        if let Some(gap) = gap {
            self.late = gap.blockless.then(|| Late {
                seq: later(data.from, gap.range.from),
                bytes: gap.range.overlap(data),
                is_last: at_or_before(gap.range.to, data.to),
            });
            if let Some(late) = &self.late {
                self.behind_fin.get_or_insert((late.seq, gap.time));
            }
            let (reordered, signs) = reordering(&gap, e, time, path);
            entry.evidence = signs.with_if(sign::SACK_HOLE, reopened);
            if reordered {
                self.counts.out_of_order += 1;
                self.note_original(&entry);
                return self.harmless(entry, Class::Reordered);
            }
        }
        if data.len() == 0 && !fin_repeat {
            return Segment::Harmless; // a FIN below the expected that was never seen
        }
        if unseen == 0
            && let Some(sign) = self.late_original(&entry)
        {
            self.counts.out_of_order += 1;
            entry.evidence = entry.evidence.with(sign);
            return self.harmless(entry, Class::Reordered);
        }
        if unseen == 0
            && delivered == 0
            && let Some(sign) = self.follows_its_repeat(e, old, time)
        {
            self.skipped.retain(|repeat| repeat.range.overlap(old) == 0);
            self.sent_again(
                Entry {
                    time: time - since_data(e),
                    place: Place::Nowhere,
                    evidence: Evidence::NONE.with(sign::ORIGINAL_CAME),
                    ..entry
                },
                path,
            );
            self.counts.out_of_order += 1;
            entry.evidence = entry.evidence.with(sign);
            return self.harmless(entry, Class::Reordered);
        }
        let numbered = || self.numbered_as_new(e, path) || self.was_made_before(e, old, time, path);
        if unseen == 0 && delivered == 0 && !self.is_made_anew(e, old) && numbered() {
            self.counts.duplicates += 1;
            entry.evidence = entry.evidence.with(sign::SAME_IP_ID);
            return self.copy(entry, path);
        }
        if unseen == 0 && delivered == 0 && self.nobody_asked(e, old, (time, since_fin), path) {
            entry.evidence = entry.evidence.with(sign::NOBODY_ASKED);
            if !self.is_made_anew(e, old) {
                self.counts.duplicates += 1;
                return self.copy(entry, path);
            }
        }
        let brought = Brought {
            data,
            unseen,
            delivered,
            gap,
        };
        self.retransmission(entry, e, brought, path)
    }

    /// What asks only whether the other side is there.
    fn probe_or_keep_alive(&mut self, e: &Event, data: Range, path: Path) -> Option<Class> {
        // A probe's byte may not have been taken; the sender goes on from it (RFC 9293 3.8.6.1).
        let from_probe = data.len() == 1 && self.probe == Some(e.seq);
        if e.what & what::PROBE != 0 || from_probe {
            return Some(Class::WindowProbe);
        }
        // RFC 9293 3.8.4: SEG.SEQ = SND.NXT − 1, with 0 or 1 byte of garbage. A byte that is
        // not acknowledged yet, or not long after data, is a real one that is sent again. After
        // a FIN, next − 1 is the FIN itself.
        let fin = e.tcp_flags & tcp_flag::FIN != 0;
        let is_before = e.length <= 1 && !fin && e.seq == e.expected.wrapping_sub(1);
        let acked = e.what & what::ACKED_UNKNOWN == 0 && e.acked == e.expected;
        let again = e.length == 1 && since_data(e) < KEEP_ALIVE_LEAST;
        if !is_before || !acked || again || path.fin.is_some() {
            return None;
        }
        self.counts.keep_alives += 1;
        Some(Class::KeepAlive)
    }

    /// Nothing else explains it.
    fn retransmission(&mut self, mut entry: Entry, e: &Event, brought: Brought, path: Path) -> Segment {
        let Brought {
            data,
            unseen,
            delivered,
            gap,
        } = brought;
        let old = entry.range;
        self.counts.retransmitted += 1;
        let refused = self.on_syn.take() == Some(e.seq) && is_first(e);
        self.counts.retransmitted_data += u64::from(e.length > 0 && !refused);
        self.counts.retransmitted_bytes += u64::from(data.len());
        let seen = data.len().saturating_sub(unseen).saturating_sub(delivered);
        entry.lost = path.segments(if unseen > 0 { unseen } else { seen });
        if refused {
            entry.place = Place::Nowhere;
            entry.evidence = entry.evidence.with(sign::SEEN).with(sign::SYN_DATA);
        } else {
            self.explain(&mut entry, e, unseen, path);
        }
        entry.smaller_arrived = self.sacked.smaller_beyond(old, old.len());
        entry.lost_at = gap.map_or_else(|| self.first_copy(&entry, e, path), |gap| gap.time);
        self.follow(&mut entry, e, path);
        self.begin_episode(&mut entry, e.expected);
        self.note_repeat(&entry);
        tally(&mut self.counts, &entry, true);
        self.keep(entry, path);
        match unseen {
            _ if refused => Segment::Refused,
            0 => Segment::Repeat,
            _ => Segment::Fill,
        }
    }

    /// A copy stays open for the D-SACK that tells the network's from the mirror's.
    fn copy(&mut self, mut entry: Entry, path: Path) -> Segment {
        entry.class = Class::Copy;
        entry.place = Place::Capture;
        let again = |e: &Entry| e.class == Class::Retransmission && e.range.overlap(entry.range) > 0;
        // In a recovery it may be one of a repeat that is no longer open.
        let is_new = !self.is_recovering(entry.range.from) && !self.open.iter().any(again);
        if entry.length > 0 && entry.evidence.has(sign::SAME_IP_ID) && is_new {
            self.numbered = Some((entry.range.from, entry.ip_id));
        }
        self.counts.mirror_copies += 1;
        self.keep(entry, path);
        Segment::Copy
    }

    /// How long ago the FIN that comes again passed last, ns.
    fn fin_again(&mut self, time: u64, path: Path) -> u64 {
        let first = path.fin.map_or(0, |(_, time)| time);
        let last = std::mem::replace(&mut self.last_fin, time).max(first);
        if last == 0 { u64::MAX } else { time.saturating_sub(last) }
    }

    fn harmless(&mut self, mut entry: Entry, class: Class) -> Segment {
        entry.class = class;
        entry.place = Place::Nowhere;
        self.done.push(entry);
        Segment::Harmless
    }

    /// A repeat without a reason: no ACK or SACK asked for it, the sender was not waiting, and no
    /// timer's recovery is under way, which sends everything again. Senders do not do that; networks
    /// and mirror ports do.
    fn nobody_asked(&self, e: &Event, old: Range, (time, since_fin): (u64, u64), path: Path) -> bool {
        // Not even a probe timer is as short as a round trip (RFC 8985 7.2).
        let wait = path.rtt.unwrap_or(REORDERING);
        let quiet = |then: u64| then == 0 || time.saturating_sub(then) > wait + wait / 2;
        // Senders that resend what is acknowledged already do it for reasons of their own.
        let waits_for_ack = e.what & what::ACKED_UNKNOWN == 0 && before(e.acked, old.to);
        if !waits_for_ack || e.length > 0 && since_data(e) >= wait {
            return false;
        }
        if is_asked_twice(e) || self.sacked.is_hole(old) || !path.sack && self.is_partly_acknowledged(e, time, path) {
            return false;
        }
        if e.length == 0 {
            // Some stacks send their FIN again on an ACK that tells more, or as the answer to the other's FIN.
            let is_other = |(id, _)| id != e.ip_id && !self.constant_id;
            let is_new = e.what & (what::ACKS_MORE | what::SACK) != 0 || path.fin.is_some_and(is_other);
            let answers = self.last_heard > time.saturating_sub(since_fin);
            return !is_new && !answers && since_fin < SHORTEST_TIMER;
        }
        // Such a recovery sends everything again.
        if self.from_scratch.is_some() && self.is_recovering(e.seq) {
            return false;
        }
        // The segment before this one was sent for the first time, and this is the same.
        let newest = old.to == e.expected && self.follows_new(e, time);
        if newest {
            return true;
        }
        if quiet(self.last_repeat) && quiet(self.evidence) {
            // A timer sends the first that is not acknowledged, and may run out just behind new data.
            let timer = e.seq == e.acked && since_data(e) >= COINCIDENCE;
            return e.dup_acks < 2 && !timer;
        }
        // Where nearly everything comes twice, what SACK did not ask for is a copy in a recovery, too, unless its id is a new one.
        let mirrored = self.counts.duplicates >= MIRRORED && self.counts.duplicates > 4 * self.counts.retransmitted;
        mirrored && path.sack && !has_new_id(e)
    }
}
