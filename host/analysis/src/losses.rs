//! Segments that came twice, late or never: what happened to them, and where
//! (`docs/src/losses.md`). One tap, one direction at a time.
//!
//! The engine reports each jump (GAP), each segment below the next expected (BELOW) and each new
//! SACK state; this module keeps the bounded history that tells them apart. A verdict stays open
//! for what the receiver says afterwards, until its place in the history is needed or the flow
//! ends. Where the evidence does not decide, the answer is unknown.

use weir_record::{Event, EventMore, IdStep, what};

use crate::ids::Counted;
use crate::seq::{Range, at_or_before, before, earlier, later};
use crate::verdict::{Cause, Class, Evidence, Place, Sign, sign};

/// Open gaps kept per direction; when there are more, the oldest is given up as unknown.
const GAPS: usize = 128;
/// SACK ranges kept per direction.
const RANGES: usize = 16;
/// Verdicts kept open per direction, for D-SACKs and late originals.
const OPEN: usize = 64;
/// Reordering is over within 3 ms when no round trip is known (Wireshark's rule for out-of-order
/// segments, user's guide 7.5).
const REORDERING: u64 = 3_000_000;
/// A retransmission that follows a duplicate ACK within 20 ms answers it (Wireshark, the same).
const PROMPT: u64 = 20_000_000;
/// Retransmission timers: never below 100 ms (Tstat's floor), 500 ms before a round trip is known.
const TIMEOUT_FLOOR: u64 = 100_000_000;
const TIMEOUT_UNKNOWN: u64 = 500_000_000;
/// Unit of `EVENT.since_data`, ns.
const SINCE_UNIT: u64 = 64;
/// Copies from which on a direction may be mirrored as a whole.
const MIRRORED: u64 = 8;
/// Segments behind the newest one among which its neighbours' copies come.
const NEAR: u64 = 3;
/// A timer hardly ever runs out within this time of new data, ns.
const COINCIDENCE: u64 = 1_000_000;
/// IP ids at most this far apart are those of one counter: of ids by chance, 1 in 128 are as near.
const NEAR_ID: u16 = 256;
/// Intervals begin on this grid, ns.
const INTERVAL_GRID: u64 = 10_000_000;
/// Among more packets of the receiver, a missing id need not be that of the ACK.
const FEW: i32 = 4;
/// Sequence numbers this far apart have nothing to do with each other (`docs/src/flow-engine.md`
/// 4.5).
const FAR: u32 = 1 << 30;
/// Timers that ran out in vain until the end of a connection: its receiver was gone, or cut off.
const SILENT: usize = 3;
/// ns; a full segment at 12 Mbit/s.
const SLOW_LINK: u64 = 1_000_000;
/// TCP flag FIN in `EVENT.tcp_flags`, RST, ACK.
const FIN: u8 = 0x01;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Counters of one direction; segments unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub retransmitted: u64,
    /// Of them, those with payload.
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
    pub sack_states: u64,
    pub keep_alives: u64,
    /// Third duplicate ACKs.
    pub duplicate_triples: u64,
    pub window_full: u64,
    /// Data segments without new bytes.
    pub repeated_segments: u64,
}

/// What a segment below the next expected was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// No retransmission: copy, keep-alive, probe, reordered.
    Harmless,
    /// A retransmission of bytes that the tap had seen.
    Repeat,
    /// A retransmission that brought bytes the tap had not seen.
    Fill,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    range: Range,
    time: u64,
    tsval: u32,
    /// Since the data before the segment that made it, ns.
    since: u64,
    /// The receiver acknowledged it: its bytes were delivered and not captured.
    delivered: bool,
    ip_id: u16,
    /// A FIN alone made it, so its bytes are in no block.
    blockless: bool,
}

/// Data that came into a gap before a FIN: the engine makes no block of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    pub seq: u32,
    pub bytes: u32,
    /// Nothing is missing behind it.
    pub is_last: bool,
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
    tsval: u32,
    ip_id: u16,
    /// Segments that were lost if the place says so.
    lost: u32,
    /// The receiver's IP ids before it, and when the answer to it had come.
    ids: Counted,
    answered: Option<Counted>,
}

/// All that was in flight when a timer ran out was lost: nothing of it made a duplicate ACK, and the ACKs since then never
/// went beyond what was sent again.
#[derive(Clone, Copy, Debug)]
struct FromScratch {
    /// End of what was sent again.
    to: u32,
    /// An ACK has answered some of it.
    answered: bool,
}

/// What the classification needs to know of the flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Round trip over the whole path, ns.
    pub rtt: Option<u64>,
    /// Smallest round trip between the tap and the receiver, ns, from enough samples.
    pub far: Option<u64>,
    /// Bytes of a full segment.
    pub segment: u32,
    /// Both sides use SACK, so the receiver reports what comes twice (RFC 2883).
    pub sack: bool,
    /// The receiver has sent a RST.
    pub reset: bool,
    /// IP id of the sender's first FIN.
    pub fin: Option<u16>,
}

impl Path {
    fn segments(self, bytes: u32) -> u64 {
        u64::from(bytes.div_ceil(self.segment.max(1)))
    }

    fn reordering(self) -> u64 {
        self.rtt.map_or(REORDERING, |rtt| rtt.min(REORDERING))
    }

    /// RTO*: one round trip and at least 100 ms or half of it: below what stacks use (RFC 6298
    /// 2.4: 1 s; in practice 200 ms and more), above a tail-loss probe's two round trips on long
    /// paths (RFC 8985 7.2).
    fn timeout(self) -> u64 {
        self.rtt.map_or(TIMEOUT_UNKNOWN, |rtt| rtt + TIMEOUT_FLOOR.max(rtt / 2))
    }

    /// An answer of the receiver takes this long, ns: a tenth less than the smallest round trip, which may not quite be
    /// the smallest. With SACK a D-SACK tells more, and it is a millisecond less at least, which long segments take on
    /// slow links and short ones do not.
    fn soonest(self) -> Option<u64> {
        let least = if self.sack { SLOW_LINK } else { 0 };
        self.far.map(|far| far.saturating_sub(least.max(far / 10)))
    }

    /// Whether a timer of the sender can have run out in this time: a probe timer is the shortest.
    fn is_probe_time(self, since: u64) -> bool {
        // RFC 8985 7.2: PTO = 2 SRTT; the round trip known here may be above the sender's.
        self.rtt.is_some_and(|rtt| since >= rtt + rtt / 2)
    }
}

/// History of one direction: what its sender sent and what its receiver said of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    pub counts: Counts,
    gaps: Vec<Gap>,
    sacked: Vec<Range>,
    /// Verdicts that can still change, oldest first.
    open: Vec<Entry>,
    /// Verdicts that are final; whoever wants them takes them.
    pub done: Vec<Entry>,
    /// Highest ACK of the receiver that a record told.
    acked: Option<u32>,
    /// Time of the receiver's last duplicate-ACK or SACK evidence.
    evidence: u64,
    /// Number and IP id of the last segment that a record told, and whether another one had the
    /// same id: some hosts send the same in every packet (RFC 6864).
    last_id: (u32, u16),
    constant_id: bool,
    /// TSval and IP id of the packet made last of those that a record told, and when it passed.
    newest: Option<((u32, u16), u64)>,
    /// What came twice at the receiver and once at the tap, and repeats of holes that came twice.
    network_copies: u32,
    fills_twice: u32,
    /// First byte and IP id of a segment when it was new, as its copy told last.
    numbered: Option<(u32, u16)>,
    /// Time of the last segment below the expected, and of the last out of sequence.
    last_below: u64,
    last_disorder: u64,
    last_repeat: u64,
    last_cause: Option<Cause>,
    /// What was sent when the recovery in progress began (RFC 6582 3.2).
    recover: Option<u32>,
    /// A timer's recovery without SACK in which the receiver has shown nothing but what was sent again.
    from_scratch: Option<FromScratch>,
    /// Byte of the last window probe.
    probe: Option<u32>,
    /// The receiver has sent SACK blocks, whatever was seen of the handshake.
    sack_seen: bool,
    /// Data that a block has to be made of.
    pub late: Option<Late>,
    /// IP ids of the receiver so far.
    pub answers: Counted,
    /// Retransmissions in sequence if the sender's ids count its packets.
    skipped: Vec<Entry>,
}

impl Losses {
    /// For reuse: empty, with its memory.
    pub fn clear(&mut self) {
        self.gaps.clear();
        self.sacked.clear();
        self.open.clear();
        self.done.clear();
        *self = Self {
            gaps: std::mem::take(&mut self.gaps),
            sacked: std::mem::take(&mut self.sacked),
            open: std::mem::take(&mut self.open),
            done: std::mem::take(&mut self.done),
            ..Self::default()
        };
    }

    /// The receiver acknowledged everything before `ack`, at `time` at the latest.
    pub fn acknowledge(&mut self, ack: u32, time: u64, path: Path) {
        let path = self.with_sack(path);
        if self.acked.is_some_and(|known| at_or_before(ack, known)) {
            return;
        }
        let before_this = self.acked.replace(ack);
        self.sacked.retain(|r| before(ack, r.to));
        let was_needless = self.acknowledged_too_soon(before_this, ack, time, path);
        self.stops_at(ack);
        if let Some(known) = before_this {
            self.acknowledged_beyond(known, ack, was_needless);
        }
        for i in (0..self.gaps.len()).rev() {
            let arrived = Range {
                from: self.gaps[i].range.from,
                to: ack,
            };
            if before(arrived.from, ack) {
                self.gap_arrived(i, arrived, path);
            }
        }
    }

    /// What of gap `i` the receiver has got, and nothing of it came by since, the capture missed.
    fn gap_arrived(&mut self, i: usize, arrived: Range, path: Path) {
        let gap = self.gaps[i];
        if !gap.delivered && gap.range.overlap(arrived) > 0 {
            self.gaps.swap_remove(i);
            self.keep_arrived(gap, arrived, path);
        }
    }

    /// Keeps a gap of which this has arrived, as pieces.
    fn keep_arrived(&mut self, gap: Gap, arrived: Range, path: Path) {
        let range = Range {
            from: later(gap.range.from, arrived.from),
            to: earlier(gap.range.to, arrived.to),
        };
        self.counts.missed += path.segments(range.len());
        let delivered = true;
        self.keep_gap(
            Gap {
                range,
                delivered,
                ..gap
            },
            path,
        );
        for rest in gap.range.without(range) {
            self.keep_gap(Gap { range: rest, ..gap }, path);
        }
    }

    fn with_sack(&self, path: Path) -> Path {
        Path {
            sack: path.sack || self.sack_seen,
            ..path
        }
    }

    /// The ACK of a first copy comes while the repeat is still on its way (the Eifel detection of
    /// RFC 3522 by time instead of timestamps; Jaiswal et al. 2003): nothing was lost. (Where an ACK had stopped before it, the
    /// receiver had no first copy, and the round trip is shorter than any that was seen: a queue that is always there shrank.)
    fn acknowledged_too_soon(&mut self, before_this: Option<u32>, ack: u32, time: u64, path: Path) -> bool {
        let Some(soonest) = path.soonest() else { return false };
        let mut found = false;
        for i in 0..self.open.len() {
            let entry = self.open[i];
            let is_repeat = entry.class == Class::Retransmission && entry.evidence.has(sign::SEEN);
            let is_new = before_this.is_none_or(|known| before(known, entry.range.to));
            if is_repeat
                && is_new
                && !entry.place.is_spurious()
                && !entry.evidence.has(sign::PARTIAL_ACK)
                && at_or_before(entry.range.to, ack)
                && time.saturating_sub(entry.time) < soonest
            {
                self.change(i, Place::Nowhere, sign::ACKED_TOO_SOON);
                found = true;
            }
        }
        found
    }

    /// An ACK beyond what was sent again: the receiver had some of the rest, and with it perhaps some of what was sent
    /// again beyond the ACK before.
    fn acknowledged_beyond(&mut self, before_this: u32, ack: u32, was_needless: bool) {
        let Some(scratch) = &mut self.from_scratch else { return };
        let all_again = self.recover.is_none_or(|recover| at_or_before(recover, scratch.to));
        if !was_needless && (at_or_before(ack, scratch.to) || all_again) {
            scratch.answered = true;
            return;
        }
        self.from_scratch = None;
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

    /// Follows a timer's recovery of a receiver that cannot name what it has. What comes above a loss makes a duplicate ACK
    /// (RFC 5681 4.2); where none came, and ACKs go on step by step, it got nothing of the flight.
    fn follow(&mut self, entry: &mut Entry, e: &Event, path: Path) {
        let begins = !self.is_recovering(entry.range.from);
        let timer = entry.cause == Cause::Timeout && !entry.evidence.has(sign::BATCH);
        // The first ACK of a recovery may let new data out (RFC 5682 2.1), which then makes duplicate ACKs.
        let new = self
            .recover
            .filter(|_| !begins)
            .map_or(0, |recover| e.expected.wrapping_sub(recover));
        if path.sack || u64::from(e.dup_acks) > path.segments(new) {
            self.from_scratch = None;
        } else if begins {
            let to = entry.range.to;
            self.from_scratch = (timer && is_first(e)).then_some(FromScratch { to, answered: false });
        } else if let Some(scratch) = &mut self.from_scratch {
            if before(scratch.to, entry.range.from) {
                self.from_scratch = None;
                return;
            }
            scratch.to = later(scratch.to, entry.range.to);
            if scratch.answered && entry.place == Place::Unknown {
                entry.place = Place::BehindTap;
                entry.evidence = entry.evidence.with(sign::PARTIAL_ACK);
            }
        }
    }

    /// The ACK that a fill brought stops where a later repeat begins: the receiver had nothing of it (RFC 6582 3.2).
    /// Of a mirror's copy, ACKs say nothing.
    fn stops_at(&mut self, ack: u32) {
        let stopped = |e: &Entry| {
            e.class == Class::Retransmission
                && e.place == Place::Unknown
                && e.range.from == ack
                && self.counts.mirror_copies < MIRRORED
        };
        if let Some(i) = self.open.iter().position(stopped) {
            self.change(i, Place::BehindTap, sign::PARTIAL_ACK);
        }
    }

    /// EVENT of this direction's sender: GAP, BELOW, COPY, FIN. Returns what a BELOW segment was.
    pub fn sent(&mut self, e: &Event, time: u64, path: Path) -> Option<Segment> {
        if e.what & what::COPY != 0 {
            self.counts.duplicates += 1;
        }
        if e.what & what::WILD != 0 {
            return None;
        }
        if e.what & what::ACKED_UNKNOWN == 0 {
            self.acknowledge(e.acked, time, path);
        }
        if e.what & what::GAP != 0 {
            let range = Range {
                from: e.expected,
                to: e.seq,
            };
            self.new_gap(
                Gap {
                    range,
                    time,
                    tsval: e.tsval,
                    since: since_data(e),
                    delivered: false,
                    ip_id: e.ip_id,
                    blockless: e.length == 0,
                },
                path,
            );
        }
        self.constant_id |= self.last_id.1 == e.ip_id && self.last_id.0 != e.seq;
        self.last_id = (e.seq, e.ip_id);
        if e.what & (what::PROBE | what::BELOW) == what::PROBE {
            self.probe = Some(e.seq);
        }
        if e.what & (what::GAP | what::BELOW) != 0 {
            self.last_disorder = time;
        }
        let segment = (e.what & what::BELOW != 0).then(|| self.below(e, time, path));
        let made = (e.tsval, e.ip_id);
        if self
            .newest
            .is_none_or(|(newest, _)| is_older(newest, made).is_some_and(|(older, _)| older))
        {
            self.newest = Some((made, time));
        }
        if segment.is_some() && e.length > 0 {
            self.last_below = time;
        }
        segment
    }

    /// A segment in sequence, some time after the data before it, and before it the sender used IP ids that the tap did
    /// not see. If those count the packets of the connection, and as it acknowledges nothing new, the packets were this
    /// segment, lost before the tap. Returns whether that is known.
    /// `receiver`: what the other side sent. Where that came out of sequence, its receiver may have sent ACKs that
    /// acknowledge nothing new; and where the capture misses packets, ids tell nothing.
    pub fn skipped(&mut self, e: &Event, time: u64, receiver: &Self, by_connection: bool, path: Path) -> bool {
        let received = e.what & what::ACKED_UNKNOWN == 0 && before(e.seq, e.acked);
        if e.what & (what::ACKS_MORE | what::COPY | what::PROBE) != 0 || received {
            return false;
        }
        let since = since_data(e);
        let waited_from = time.saturating_sub(since);
        let missed = self.counts.missed + receiver.counts.missed;
        if receiver.last_disorder > waited_from || missed > 0 {
            return false;
        }
        let (cause, sign) = if since >= path.timeout() {
            (Cause::Timeout, sign::TIMER)
        } else if path.is_probe_time(since) {
            (Cause::TailProbe, sign::TAIL)
        } else {
            return false;
        };
        let entry = Entry {
            range: Range {
                from: e.seq,
                to: e.seq.wrapping_add(e.length).wrapping_add(u32::from(e.tcp_flags & FIN)),
            },
            time,
            lost_at: if waited_from == 0 { time } else { waited_from },
            length: e.length,
            class: Class::Retransmission,
            cause,
            place: Place::BeforeTap,
            evidence: Evidence::NONE.with(sign::UNSEEN).with(sign::IDS_SKIPPED).with(sign),
            episode: 0,
            begins: false,
            smaller_arrived: 0,
            tsval: e.tsval,
            ip_id: e.ip_id,
            lost: u32::from(e.id_step.saturating_sub(1)),
            ids: self.answers,
            answered: None,
        };
        if by_connection {
            self.sent_again(entry, path);
        } else if self.skipped.len() < OPEN {
            self.skipped.push(entry);
        }
        by_connection
    }

    fn sent_again(&mut self, mut entry: Entry, path: Path) {
        self.counts.retransmitted += 1;
        self.counts.retransmitted_data += u64::from(entry.length > 0);
        self.counts.retransmitted_bytes += u64::from(entry.length);
        let expected = entry.range.from;
        self.begin_episode(&mut entry, expected);
        self.last_repeat = entry.time;
        self.last_cause = Some(entry.cause);
        tally(&mut self.counts, &entry, true);
        self.keep(entry, path);
    }

    /// An interval of the receiver that began at `start` and was over at `time`, with its IP ids so far. `whole`: as for
    /// [`Self::settle_ids`].
    pub fn answered(&mut self, start: u64, time: u64, ids: Counted, by_connection: bool, whole: bool) {
        for entry in &mut self.open {
            if time <= entry.time {
                entry.ids = ids;
            } else if entry.answered.is_none() && entry.time < start.saturating_add(INTERVAL_GRID) {
                entry.answered = Some(ids);
            }
        }
        if by_connection {
            self.settle_answers(whole);
        }
    }

    /// What begins at `at` was not seen; and whether its receiver has it all the same.
    pub fn unseen(&self, at: u32) -> Option<bool> {
        let gap = self.gaps.iter().find(|gap| gap.range.from == at)?;
        Some(gap.delivered)
    }

    /// None of the data that this side sent is missing.
    pub const fn is_whole(&self) -> bool {
        self.gaps.is_empty() && self.counts.missed == 0 && self.counts.lost_upstream == 0
    }

    /// The flow is over: what IP ids tell if those of sender and receiver count the packets of the connection. `whole`: no
    /// data of the receiver is missing, whose ids would be missing as well.
    pub fn settle_ids(&mut self, sender: bool, receiver: bool, whole: bool, path: Path) {
        let skipped = std::mem::take(&mut self.skipped);
        if sender && self.counts.missed == 0 {
            for entry in skipped {
                self.sent_again(entry, path);
            }
        }
        if receiver {
            self.settle_answers(whole);
        }
    }

    /// A timer ran out, and whether the segment or its ACK was lost is not known. A receiver that got the segment sent an
    /// ACK; so if none of its ids is missing, it got nothing.
    fn settle_answers(&mut self, whole: bool) {
        let in_doubt = |e: &Entry| {
            let timer = e.evidence.has(sign::TIMER) && !e.evidence.has(sign::BATCH);
            e.class == Class::Retransmission && e.place == Place::Unknown && timer
        };
        for i in 0..self.open.len() {
            let entry = self.open[i];
            let answered = entry.answered.filter(|_| in_doubt(&entry));
            let Some(step) = answered.and_then(|answered| answered.since(&entry.ids)) else {
                continue;
            };
            let alike = |e: &&Entry| in_doubt(e) && e.ids == entry.ids && e.answered == entry.answered;
            let doubts = self.open.iter().filter(alike).count();
            if step.missing == 0 {
                self.change(i, Place::BehindTap, sign::NO_ID_MISSING);
            } else if whole && doubts == 1 && step.missing == 1 && step.packets <= FEW {
                self.change(i, Place::AckBeforeTap, sign::IDS_SKIPPED);
            }
        }
    }

    /// A block of this direction ended at `to`: what is missing before is in it.
    pub fn block(&mut self, to: u32) {
        for gap in &mut self.gaps {
            gap.blockless &= before(to, gap.range.to);
        }
    }

    /// The receiver's EVENT: SACK blocks and duplicate ACKs about this direction.
    pub fn heard(&mut self, e: &Event, more: Option<&EventMore>, time: u64, path: Path) {
        let unused = what::WILD_ACK | what::SYN_OTHER;
        if e.what & unused != 0 || e.tcp_flags & RST != 0 {
            return;
        }
        // A D-SACK alone asks for nothing.
        let asks = e.what & what::SACK != 0 && more.is_some_and(|more| says_hole(e, more));
        if asks || e.what & (what::DUP_ACK | what::DSACK) == what::DUP_ACK {
            self.evidence = time;
        }
        if let Some(more) = more.filter(|_| e.what & what::SACK != 0) {
            self.sack_seen = true;
            self.sack(e, more, time, path);
        }
        if e.tcp_flags & ACK != 0 {
            self.acknowledge(e.ack, time, path);
        }
    }

    fn sack(&mut self, e: &Event, more: &EventMore, time: u64, path: Path) {
        let blocks = [
            (more.left0, more.right0),
            (more.left1, more.right1),
            (more.left2, more.right2),
            (more.left3, more.right3),
        ];
        let blocks = &blocks[..usize::from(more.sack_count.min(4))];
        let mut new = blocks.iter().map(|&(from, to)| Range { from, to });
        if e.what & what::DSACK != 0 {
            // RFC 2883 4: the first block names a segment that arrived twice.
            if let Some(twice) = new.next() {
                self.arrived_twice(twice);
            }
        }
        for range in new {
            if range.len() == 0 || !before(e.ack, range.to) {
                continue;
            }
            self.arrived(range, time, path);
            for i in (0..self.gaps.len()).rev() {
                self.gap_arrived(i, range, path);
            }
            let mut merged = range;
            self.sacked.retain(|old| {
                let apart = before(merged.to, old.from) || before(old.to, merged.from);
                if !apart {
                    merged = Range {
                        from: earlier(merged.from, old.from),
                        to: later(merged.to, old.to),
                    };
                }
                apart
            });
            if self.sacked.len() == RANGES {
                self.sacked.remove(0);
            }
            self.sacked.push(merged);
        }
    }

    /// A SACK block covers what was sent again and was not covered before (RFC 2018 4: the block
    /// tells of data received): the first copy was lost.
    fn arrived(&mut self, range: Range, time: u64, path: Path) {
        if self.sacked.iter().any(|old| old.covers(range)) {
            return;
        }
        let soonest = path.far.map_or(0, |far| far - far / 10);
        for i in 0..self.open.len() {
            let entry = self.open[i];
            let is_repeat = entry.class == Class::Retransmission && entry.evidence.has(sign::SEEN);
            let is_news = range.covers(entry.range) && !self.sacked.iter().any(|old| old.overlap(entry.range) > 0);
            let doubtful = entry.evidence.has(sign::NOBODY_ASKED);
            if is_repeat
                && is_news
                && !doubtful
                && !entry.place.is_spurious()
                && !entry.evidence.has(sign::SACKED_AFTER)
            {
                // Sooner it may be of the first copy; then a D-SACK follows.
                if time.saturating_sub(entry.time) >= soonest {
                    self.change(i, Place::BehindTap, sign::SACKED_AFTER);
                }
            }
        }
    }

    /// D-SACK overrides every other evidence: a repeat was unnecessary (RFC 3708). But what filled a hole in SACK can
    /// come twice, too, where the network makes copies: its own copy, or copies of what was sent once, show it.
    fn arrived_twice(&mut self, twice: Range) {
        let named = |e: &Entry| !e.evidence.has(sign::DSACKED) && e.range.overlap(twice) > 0;
        // The last one of several is what came too much; a copy only if nothing was sent again.
        let found = |class| self.open.iter().rposition(|e| e.class == class && named(e));
        let (repeat, copy) = (found(Class::Retransmission), found(Class::Copy));
        let filled = |i: usize| {
            let evidence = self.open[i].evidence;
            evidence.has(sign::SACK_HOLE) && !evidence.has(sign::ACKED_TOO_SOON)
        };
        let copy_of_repeat = |i| copy > Some(i) && self.counts.mirror_copies < MIRRORED;
        self.fills_twice += u32::from(repeat.is_some_and(filled));
        // A network copies what is sent once far more often than what is sent again.
        let copies = self.network_copies > 2 * self.fills_twice;
        let of_network = |i: usize| filled(i) && (copies || copy_of_repeat(i));
        match (repeat.filter(|&i| !of_network(i)), copy) {
            (Some(i), _) => {
                let entry = self.open[i];
                let waited = entry.cause.is_timer();
                let place = if entry.place.is_spurious() {
                    entry.place
                } else if entry.evidence.has(sign::UNSEEN) {
                    // The receiver got a first copy that never passed the tap.
                    Place::Capture
                } else if waited {
                    Place::AckBeforeTap
                } else {
                    Place::Nowhere
                };
                self.change(i, place, sign::DSACKED);
            }
            (None, Some(i)) => self.change(i, Place::Nowhere, sign::DSACKED),
            // One byte is a probe's.
            (None, None) => self.network_copies += u32::from(twice.len() > 1),
        }
    }

    /// The precedence follows Wireshark: keep-alive, spurious, fast, out of order, the rest.
    fn below(&mut self, e: &Event, time: u64, path: Path) -> Segment {
        let path = self.with_sack(path);
        let fin = e.tcp_flags & FIN != 0;
        let fin_repeat = e.what & what::FIN_REPEAT != 0;
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
            range: old,
            time,
            lost_at: time,
            length: e.length,
            class: Class::Retransmission,
            cause: Cause::Unknown,
            place: Place::Unknown,
            evidence: Evidence::NONE,
            episode: 0,
            begins: false,
            smaller_arrived: 0,
            tsval: e.tsval,
            ip_id: e.ip_id,
            lost: 0,
            ids: self.answers,
            answered: None,
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
        let same_fin = fin_repeat && path.fin == Some(e.ip_id);
        if e.ip_id != 0 && !self.constant_id && (same_fin || self.open.iter().any(same)) {
            self.counts.duplicates += 1;
            entry.evidence = entry.evidence.with(sign::SAME_IP_ID);
            return self.copy(entry, path);
        }
        // A probe's byte may not have been taken; the sender goes on from it (RFC 9293 3.8.6.1).
        let from_probe = data.len() == 1 && self.probe == Some(e.seq);
        if e.what & what::PROBE != 0 || from_probe {
            return self.harmless(entry, Class::WindowProbe);
        }
        if e.length <= 1 && !fin && e.seq == e.expected.wrapping_sub(1) {
            // RFC 9293 3.8.4: SEG.SEQ = SND.NXT − 1, with 0 or 1 byte of garbage. A byte that is
            // not acknowledged yet is a real one that is sent again. After a FIN, next − 1 is the
            // FIN itself.
            let acked = e.what & what::ACKED_UNKNOWN == 0 && e.acked == e.expected;
            if acked && path.fin.is_none() {
                self.counts.keep_alives += 1;
                return self.harmless(entry, Class::KeepAlive);
            }
        }
        if data.len() >= FAR || e.length == 0 && !fin {
            return Segment::Harmless; // an ACK without payload is never a retransmission
        }

        let since_gap = |gap: Option<Gap>| time.saturating_sub(gap.map_or(time, |gap| gap.time));
        let (delivered, first) = self.delivered(data);
        if delivered == data.len() && delivered > 0 && since_gap(first) <= path.reordering() {
            // The capture wrote data behind its ACK: neither lost nor sent again.
            self.take_delivered(data);
            self.counts.missed = self.counts.missed.saturating_sub(1);
            return self.harmless(entry, Class::CaptureOrder);
        }
        let (unseen, gap) = self.take_from_gaps(data, path);
        if let Some(gap) = gap {
            self.late = gap.blockless.then(|| Late {
                seq: later(data.from, gap.range.from),
                bytes: gap.range.overlap(data),
                is_last: at_or_before(gap.range.to, data.to),
            });
            let (reordered, signs) = reordering(&gap, e, time, path);
            entry.evidence = signs;
            if reordered {
                self.counts.out_of_order += 1;
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
        if unseen == 0 && delivered == 0 && numbered() {
            self.counts.duplicates += 1;
            entry.evidence = entry.evidence.with(sign::SAME_IP_ID);
            return self.copy(entry, path);
        }
        if unseen == 0 && delivered == 0 && self.nobody_asked(e, old, time, path) {
            entry.evidence = entry.evidence.with(sign::NOBODY_ASKED);
            if !self.is_made_anew(e, old) {
                self.counts.duplicates += 1;
                return self.copy(entry, path);
            }
        }

        self.counts.retransmitted += 1;
        self.counts.retransmitted_data += u64::from(e.length > 0);
        self.counts.retransmitted_bytes += u64::from(data.len());
        let seen = data.len().saturating_sub(unseen).saturating_sub(delivered);
        entry.lost = path.segments(if unseen > 0 { unseen } else { seen }) as u32;
        self.explain(&mut entry, e, unseen, path);
        entry.smaller_arrived = self.smaller_beyond(old);
        entry.lost_at = gap.map_or_else(|| self.first_copy(&entry, e, path), |gap| gap.time);
        self.follow(&mut entry, e, path);
        self.begin_episode(&mut entry, e.expected);
        self.last_repeat = time;
        self.last_cause = Some(entry.cause);
        tally(&mut self.counts, &entry, true);
        self.keep(entry, path);
        if unseen > 0 { Segment::Fill } else { Segment::Repeat }
    }

    /// Cause and place of a retransmission, as far as they are known when it comes.
    fn explain(&self, entry: &mut Entry, e: &Event, unseen: u32, path: Path) {
        let (cause, signs) = self.cause(e, entry.range, entry.time, path);
        entry.cause = cause;
        let acked = e.what & what::ACKED_UNKNOWN == 0 && at_or_before(entry.range.to, e.acked);
        let sacked = entry.range.len() > 0 && self.sacked.iter().any(|r| r.covers(entry.range));
        let mut evidence = entry
            .evidence
            .with_if(sign::UNSEEN, unseen > 0)
            .with_if(sign::SEEN, unseen == 0);
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
        let doubtful = near && soon && unseen == 0 && !asked && !timer;
        evidence = evidence.with_if(sign::NOBODY_ASKED, doubtful);
        entry.place = if unseen > 0 {
            Place::BeforeTap
        } else if acked {
            evidence = evidence.with(sign::ACKED);
            if waited && !signs.has(sign::BATCH) {
                // The ACK passed the tap, and yet the timer ran out.
                evidence = evidence.with(sign::ACK_WAS_DUE);
                Place::AckBehindTap
            } else {
                Place::Nowhere
            }
        } else if sacked {
            evidence = evidence.with(sign::SACKED);
            Place::Nowhere
        } else if path.reset {
            // Whoever has reset the connection needs nothing any more; the sender has not heard of it.
            evidence = evidence.with(sign::RESET);
            if waited { Place::AckBehindTap } else { Place::Nowhere }
        } else if asked || timer && (path.sack || Self::is_more_outstanding(entry, e, path)) {
            Place::BehindTap
        } else {
            Place::Unknown
        };
        entry.evidence = evidence.with_if(sign::NO_ACK, waited && unseen == 0 && !acked);
    }

    /// About when the copy before a repeat passed the tap.
    fn first_copy(&self, entry: &Entry, e: &Event, path: Path) -> u64 {
        let waited = entry.cause.is_timer();
        match self.open.last().filter(|_| entry.evidence.has(sign::BATCH)) {
            Some(before_this) => before_this.lost_at,
            // The timer ran from the last packet: RFC 6298 5.
            None if waited && since_data(e) != u64::MAX => entry.time.saturating_sub(since_data(e)),
            // What asks for it comes a round trip after what was sent behind it.
            None => entry.time.saturating_sub(path.rtt.unwrap_or(0)),
        }
    }

    /// More was in flight than one ACK answers: no single lost ACK explains a timeout.
    fn is_more_outstanding(entry: &Entry, e: &Event, path: Path) -> bool {
        let outstanding = e.expected.wrapping_sub(entry.range.from);
        path.segments(outstanding) > 2 && outstanding < FAR
    }

    /// A segment that came after its repeat, by TSval or IP id: that repeat was not needed. Returns what tells.
    fn late_original(&mut self, late: &Entry) -> Option<Sign> {
        let overtaken = |e: &Entry| {
            e.class == Class::Retransmission
                && e.range.overlap(late.range) > 0
                && is_older((late.tsval, late.ip_id), (e.tsval, e.ip_id)).is_some_and(|(older, _)| older)
        };
        let i = self.open.iter().rposition(overtaken)?;
        let repeat = self.open[i];
        let place = match repeat.place {
            place @ (Place::AckBeforeTap | Place::AckBehindTap) => place,
            _ => Place::Nowhere,
        };
        self.change(i, place, sign::ORIGINAL_CAME);
        is_older((late.tsval, late.ip_id), (repeat.tsval, repeat.ip_id)).map(|(_, sign)| sign)
    }

    /// The segment before this one brought the same bytes in sequence, and this one was made before a packet that had passed
    /// when that one came: what came in sequence was the repeat, and this is its original. Returns what tells.
    fn follows_its_repeat(&self, e: &Event, old: Range, time: u64) -> Option<Sign> {
        let ((tsval, id), passed) = self.newest?;
        let before_that = passed < time.saturating_sub(since_data(e));
        if !before_that || e.length == 0 || old.to != e.expected || !self.follows_new(e, time) {
            return None;
        }
        let (older, sign) = is_older((e.tsval, e.ip_id), (tsval, id))?;
        older.then_some(sign)
    }

    /// A repeat without a reason: no ACK or SACK asked for it, the sender was not waiting, and no
    /// timer's recovery is under way, which sends everything again. Senders do not do that; networks
    /// and mirror ports do.
    fn nobody_asked(&self, e: &Event, old: Range, time: u64, path: Path) -> bool {
        // Not even a probe timer is as short as a round trip (RFC 8985 7.2).
        let wait = path.rtt.unwrap_or(REORDERING);
        let quiet = |then: u64| then == 0 || time.saturating_sub(then) > wait + wait / 2;
        // Senders that resend what is acknowledged already do it for reasons of their own.
        let waits_for_ack = e.what & what::ACKED_UNKNOWN == 0 && before(e.acked, old.to);
        if !waits_for_ack || since_data(e) >= wait || e.length == 0 {
            return false;
        }
        if is_asked_twice(e) || self.is_hole(old) || !path.sack && self.is_partly_acknowledged(e, time, path) {
            return false;
        }
        // A timer's recovery sends everything again.
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
        // Where nearly everything comes twice, what SACK did not ask for is a copy in a recovery, too.
        let mirrored = self.counts.duplicates >= MIRRORED && self.counts.duplicates > 4 * self.counts.retransmitted;
        mirrored && path.sack
    }

    /// The IP id is one that the sender used when this was new: counted from such an id, there is one for each segment
    /// between them and for each that was sent again meanwhile; what is sent again now gets a later one.
    fn numbered_as_new(&self, e: &Event, path: Path) -> bool {
        let Some((seq, id)) = self
            .numbered
            .filter(|_| e.ip_id != 0 && e.length > 0 && !self.constant_id)
        else {
            return false;
        };
        let bytes = e.seq.wrapping_sub(seq) as i32;
        let segments = path.segments(bytes.unsigned_abs()) as i64 * i64::from(bytes.signum());
        let later = e.ip_id.wrapping_sub(id) as i16;
        let meanwhile = |o: &&Entry| {
            o.class == Class::Retransmission
                && o.place != Place::Unknown
                && (1..later).contains(&(o.ip_id.wrapping_sub(id) as i16))
        };
        let again = self.open.iter().filter(meanwhile).count() as i64;
        later.unsigned_abs() <= NEAR_ID && i64::from(later) <= segments + again
    }

    /// The IP id is below one that had passed: what is sent again gets a later one. By chance one id in 256 is: not where a
    /// timer may have run out, or recovers, or something asked for it.
    fn was_made_before(&self, e: &Event, old: Range, time: u64, path: Path) -> bool {
        let recovers = self.is_recovering(e.seq) && self.last_cause.is_some_and(Cause::is_timer);
        let waited = since_data(e) >= path.timeout() || recovers;
        let asked = self.is_hole(old) || is_asked_twice(e) || self.is_partly_acknowledged(e, time, path);
        e.id_step == IdStep::Overtaken as u8 && !self.constant_id && !waited && !asked
    }

    /// RFC 6582 3.2: in a recovery, the ACK that answers a retransmission and stops below what had been sent asks for what it
    /// stops at. With SACK it asks for more than that, and at once.
    fn is_partly_acknowledged(&self, e: &Event, time: u64, path: Path) -> bool {
        let answered = self.open.last().is_some_and(|last| before(last.range.from, e.acked));
        let rtt = path.rtt.unwrap_or(0);
        let recent = time.saturating_sub(self.last_repeat) <= 2 * rtt.max(REORDERING);
        is_first(e) && self.is_recovering(e.seq) && answered && (recent || !path.sack)
    }

    /// A recovery is in progress, and this was sent before it began.
    fn is_recovering(&self, seq: u32) -> bool {
        self.recover.is_some_and(|recover| before(seq, recover))
    }

    /// No copy: those bring nothing new, and have the id of what they are copies of.
    fn is_made_anew(&self, e: &Event, old: Range) -> bool {
        let made_later = |o: &Entry| {
            let ids = is_older((0, o.ip_id), (0, e.ip_id));
            o.range.overlap(old) > 0 && ids.is_some_and(|(older, _)| older)
        };
        e.what & what::PARTIAL != 0 || self.open.iter().any(made_later)
    }

    /// The data segment before this one was none below the expected.
    fn follows_new(&self, e: &Event, time: u64) -> bool {
        time.saturating_sub(since_data(e)) > self.last_below + 2 * SINCE_UNIT
    }

    /// Bytes of the largest SACK block above a range if it is smaller than that; else 0.
    fn smaller_beyond(&self, range: Range) -> u32 {
        let beyond = self.sacked.iter().filter(|r| at_or_before(range.to, r.from));
        let largest = beyond.map(|r| r.len()).max();
        largest.filter(|bytes| *bytes < range.len()).unwrap_or(0)
    }

    /// SACK blocks above a range leave it out.
    fn is_hole(&self, range: Range) -> bool {
        range.len() > 0 && self.sacked.iter().any(|r| at_or_before(range.to, r.from))
    }

    fn begin_episode(&mut self, entry: &mut Entry, expected: u32) {
        if !self.is_recovering(entry.range.from) {
            self.counts.episodes += 1;
            self.recover = Some(expected);
            entry.begins = true;
        }
        entry.episode = self.counts.episodes as u32;
    }

    /// Why a segment was sent again.
    fn cause(&self, e: &Event, old: Range, time: u64, path: Path) -> (Cause, Evidence) {
        let since = since_data(e);
        let rtt = path.rtt.unwrap_or(0);
        // RFC 5681 3.2 asks for three duplicate ACKs; stacks with early retransmit or RACK (RFC
        // 8985) are content with a SACK hole, and Wireshark with two.
        let hole = self.is_hole(old);
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
        // Tstat's batch rule: closer than a round trip to an anomalous predecessor, same cause.
        let near = time.saturating_sub(self.last_repeat) <= rtt.max(REORDERING);
        if let Some(cause @ (Cause::Fast | Cause::Timeout)) = self.last_cause.filter(|_| near) {
            return (cause, asked.with(sign::BATCH));
        }
        if since >= path.timeout() {
            (Cause::Timeout, asked.with(sign::TIMER))
        } else if partial {
            (Cause::Fast, asked)
        } else if old.to == e.expected && path.is_probe_time(since) {
            (Cause::TailProbe, asked.with(sign::TAIL))
        } else {
            (Cause::Unknown, asked)
        }
    }

    /// A copy stays open for the D-SACK that tells the network's from the mirror's.
    fn copy(&mut self, mut entry: Entry, path: Path) -> Segment {
        entry.class = Class::Copy;
        entry.place = Place::Capture;
        let again = |e: &Entry| e.class == Class::Retransmission && e.range.overlap(entry.range) > 0;
        if entry.length > 0 && entry.evidence.has(sign::SAME_IP_ID) && !self.open.iter().any(again) {
            self.numbered = Some((entry.range.from, entry.ip_id));
        }
        self.counts.mirror_copies += 1;
        self.keep(entry, path);
        Segment::Harmless
    }

    fn harmless(&mut self, mut entry: Entry, class: Class) -> Segment {
        entry.class = class;
        entry.place = Place::Nowhere;
        self.done.push(entry);
        Segment::Harmless
    }

    fn keep(&mut self, entry: Entry, path: Path) {
        if self.open.len() == OPEN {
            self.settle(0, path);
            let oldest = self.open.remove(0);
            self.done.push(oldest);
        }
        self.open.push(entry);
    }

    /// The last word on an open verdict: no D-SACK came for it.
    fn settle(&mut self, i: usize, path: Path) {
        let entry = self.open[i];
        let acked = self.acked.is_some_and(|ack| at_or_before(entry.range.to, ack));
        let silent = path.sack && acked && entry.length > 0 && !entry.evidence.has(sign::DSACKED);
        // What left a hole in SACK, and came without a D-SACK, was lost after all: the queue behind the tap had shrunk.
        let too_soon = entry.evidence.has(sign::SACK_HOLE) && entry.evidence.has(sign::ACKED_TOO_SOON);
        let open = matches!(entry.place, Place::Unknown | Place::BehindTap) || too_soon;
        let repeat = entry.class == Class::Retransmission && open;
        // A mirror's copy brings no D-SACK either.
        let waited = entry.cause.is_timer();
        let copy = entry.place == Place::Unknown && !waited && self.counts.mirror_copies >= MIRRORED;
        let doubtful = copy || entry.evidence.has(sign::NOBODY_ASKED);
        // Two D-SACKs of the same bytes look like one; then a repeat of them says nothing of the repeats before it.
        let doubtful = doubtful
            || self.open[i + 1..].iter().any(|later| {
                later.class == Class::Retransmission
                    && later.evidence.has(sign::DSACKED)
                    && later.range.overlap(entry.range) > 0
            });
        if silent && repeat && !doubtful {
            self.change(i, Place::BehindTap, sign::NO_DSACK);
            let evidence = &mut self.open[i].evidence;
            *evidence = evidence.without(sign::ACKED_TOO_SOON);
        }
    }

    /// Another place for an open verdict.
    fn change(&mut self, i: usize, place: Place, sign: Sign) {
        let Some(entry) = self.open.get_mut(i) else { return };
        tally(&mut self.counts, entry, false);
        entry.place = place;
        entry.evidence = entry.evidence.with(sign);
        tally(&mut self.counts, entry, true);
    }

    /// Bytes of `range` in gaps that were delivered, and the oldest of these gaps.
    fn delivered(&self, range: Range) -> (u32, Option<Gap>) {
        let touched = || self.gaps.iter().filter(|g| g.delivered && g.range.overlap(range) > 0);
        let bytes = touched().map(|g| g.range.overlap(range)).fold(0, u32::saturating_add);
        (bytes, touched().min_by_key(|g| g.time).copied())
    }

    /// Remove `range` from the gaps that were not delivered. Returns its bytes in them and the
    /// oldest of them.
    fn take_from_gaps(&mut self, range: Range, path: Path) -> (u32, Option<Gap>) {
        let mut open = 0u32;
        let mut first: Option<Gap> = None;
        // Downwards: what is put back stands behind and is not looked at again.
        for i in (0..self.gaps.len()).rev() {
            let gap = self.gaps[i];
            let common = gap.range.overlap(range);
            if common == 0 || gap.delivered {
                continue;
            }
            if first.is_none_or(|first| gap.time <= first.time) {
                first = Some(gap);
            }
            open = open.saturating_add(common);
            for rest in self.cut_gap(i, range) {
                if rest.len() > 0 && self.gaps.len() < GAPS {
                    self.gaps.push(Gap { range: rest, ..gap });
                } else {
                    self.counts.lost_unknown += path.segments(rest.len());
                }
            }
        }
        (open, first)
    }

    /// Remove `range` from the delivered gaps.
    fn take_delivered(&mut self, range: Range) {
        for i in (0..self.gaps.len()).rev() {
            let gap = self.gaps[i];
            if gap.delivered && gap.range.overlap(range) > 0 {
                for rest in self.cut_gap(i, range) {
                    if rest.len() > 0 && self.gaps.len() < GAPS {
                        self.gaps.push(Gap { range: rest, ..gap });
                    }
                }
            }
        }
    }

    /// Take gap `i` out; returns what is left of it on both sides of `range`.
    fn cut_gap(&mut self, i: usize, range: Range) -> [Range; 2] {
        self.gaps.swap_remove(i).range.without(range)
    }

    /// A gap in the sequence; the part that is acknowledged already was delivered.
    fn new_gap(&mut self, gap: Gap, path: Path) {
        let Some(acked) = self.acked.filter(|acked| before(gap.range.from, *acked)) else {
            return self.keep_gap(gap, path);
        };
        let from = gap.range.from;
        self.keep_arrived(gap, Range { from, to: acked }, path);
    }

    fn keep_gap(&mut self, gap: Gap, path: Path) {
        // The engine makes no gap of 2³⁰ and more.
        if gap.range.len() == 0 || gap.range.len() >= FAR {
            return;
        }
        if self.gaps.len() >= GAPS {
            let oldest = self.gaps.iter().position(|g| g.delivered).unwrap_or(0);
            let given_up = self.gaps.remove(oldest);
            self.give_up(&given_up, path);
        }
        self.gaps.push(gap);
    }

    /// A gap that nothing will fill any more.
    fn give_up(&mut self, gap: &Gap, path: Path) {
        let (class, place, signs) = if gap.delivered {
            (Class::Missed, Place::Capture, Evidence::NONE.with(sign::ACKED_UNSEEN))
        } else {
            self.counts.lost_unknown += path.segments(gap.range.len());
            (Class::Lost, Place::Unknown, Evidence::NONE.with(sign::OPEN_GAP))
        };
        self.never_seen(gap.range, gap.time, class, place, signs);
    }

    fn never_seen(&mut self, range: Range, time: u64, class: Class, place: Place, evidence: Evidence) {
        self.done.push(Entry {
            range,
            time,
            lost_at: time,
            length: range.len(),
            class,
            cause: Cause::Unknown,
            place,
            evidence,
            episode: 0,
            begins: false,
            smaller_arrived: 0,
            tsval: 0,
            ip_id: 0,
            lost: 0,
            ids: Counted::default(),
            answered: None,
        });
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
        if let (Some(next), Some(acked)) = (next, self.acked) {
            let unseen = Range { from: next, to: acked };
            if unseen.len() > 0 && unseen.len() < FAR {
                self.counts.missed += path.segments(unseen.len());
                let signs = Evidence::NONE.with(sign::ACKED_UNSEEN);
                self.never_seen(unseen, time, Class::Missed, Place::Capture, signs);
            }
        }
        for i in 0..self.open.len() {
            self.settle(i, path);
        }
        self.done.append(&mut self.open);
    }
}

/// The first that is not acknowledged.
fn is_first(e: &Event) -> bool {
    e.what & what::ACKED_UNKNOWN == 0 && e.seq == e.acked
}

/// Two duplicate ACKs at least stand where it begins.
fn is_asked_twice(e: &Event) -> bool {
    e.dup_acks >= 2 && is_first(e)
}

/// A SACK block above the ACK leaves a hole.
fn says_hole(e: &Event, more: &EventMore) -> bool {
    let skipped = usize::from(e.what & what::DSACK != 0);
    let ends = [more.right0, more.right1, more.right2, more.right3];
    let ends = &ends[..usize::from(more.sack_count.min(4))];
    ends.iter().skip(skipped).any(|right| before(e.ack, *right))
}

fn since_data(e: &Event) -> u64 {
    if e.what & what::IDLE_BEFORE != 0 {
        u64::MAX
    } else {
        u64::from(e.since_data) * SINCE_UNIT
    }
}

/// Whether the one of two packets, as TSval and IP id, was made before the other; and what tells.
fn is_older(one: (u32, u16), other: (u32, u16)) -> Option<(bool, Sign)> {
    let ((tsval, id), (other_tsval, other_id)) = (one, other);
    // RFC 7323 4.1: TSval never goes back at the sender; a later one was sent later.
    if tsval != 0 && other_tsval != 0 && tsval != other_tsval {
        let older = before(tsval, other_tsval);
        let sign = if older { sign::OLDER_TSVAL } else { sign::NEWER_TSVAL };
        return Some((older, sign));
    }
    // Most hosts count their packets in the id, for all or each of their peers; where they do not (RFC 6864 lets them),
    // ids are 0 or far apart.
    let step = id.wrapping_sub(other_id) as i16;
    let counted = id != 0 && other_id != 0 && step != 0 && step.unsigned_abs() <= NEAR_ID;
    let sign = if step < 0 { sign::OLDER_ID } else { sign::NEWER_ID };
    counted.then_some((step < 0, sign))
}

/// Whether a segment that fills a gap was overtaken rather than lost.
fn reordering(gap: &Gap, e: &Event, time: u64, path: Path) -> (bool, Evidence) {
    let late = time.saturating_sub(gap.time);
    if let Some((older, sign)) = is_older((e.tsval, e.ip_id), (gap.tsval, gap.ip_id)) {
        // By chance an id can be a little lower: not from when a timer can have sent it again.
        if sign != sign::OLDER_ID || late < path.timeout() {
            return (older, Evidence::NONE.with(sign));
        }
    }
    // What asks for the fill travels from the tap to the receiver, to the sender and back: a fill
    // that comes sooner was not asked for (Tstat), unless a timer ran already when the gap showed.
    let asked_for = path.rtt.map_or(REORDERING, |rtt| rtt - rtt / 10);
    // An equal TSval rules that timer out; after a second of silence none of before runs; and it
    // would have to run out just then.
    let no_timer = gap.tsval != 0 && e.tsval != 0 || gap.since < TIMEOUT_FLOOR || gap.since == u64::MAX;
    let soon = late <= path.reordering() || late < asked_for && (no_timer || late < asked_for / 2);
    (soon, Evidence::NONE.with_if(sign::SOON, soon))
}

/// Enter a verdict into the counters that depend on cause and place, or take it out.
fn tally(counts: &mut Counts, entry: &Entry, enter: bool) {
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
        Place::BeforeTap => by(&mut counts.lost_upstream, entry.lost),
        Place::BehindTap => by(&mut counts.lost_downstream, entry.lost),
        Place::AckBeforeTap | Place::AckBehindTap => by(&mut counts.lost_acks, 1),
        Place::Capture => by(&mut counts.missed, entry.lost),
        Place::Nowhere | Place::Unknown => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path {
        rtt: None,
        far: None,
        segment: 1460,
        sack: true,
        reset: false,
        fin: None,
    };

    fn event(what: u32, seq: u32, expected: u32, length: u32) -> Event {
        Event {
            what: what | what::ACKED_UNKNOWN,
            seq,
            length,
            expected,
            acked: 0,
            ack: 0,
            tsval: 0,
            since_data: 0,
            window: 0,
            ip_id: 0,
            dup_acks: 0,
            id_step: 0,
            ttl: 64,
            tcp_flags: ACK,
        }
    }

    /// Segments of 1,000 bytes from 0 on, sent again in a recovery without SACK that began when 20 of them were out; `acked` has
    /// been acknowledged, with so many duplicate ACKs since.
    fn again(from: u32, acked: u32, dup_acks: u8, expected: u32, since: u64) -> Event {
        Event {
            what: what::BELOW,
            acked: acked * 1000,
            dup_acks,
            since_data: (since / SINCE_UNIT) as u32,
            ..event(0, from * 1000, expected * 1000, 1000)
        }
    }

    fn places(repeats: &[Event], acked: u32) -> Vec<Place> {
        places_each(repeats, acked, 5_000_000)
    }

    /// One each `step` ns; the smallest round trip that was seen is 10 ms, half of it behind the tap.
    fn places_each(repeats: &[Event], acked: u32, step: u64) -> Vec<Place> {
        let path = Path {
            rtt: Some(10_000_000),
            far: Some(5_000_000),
            segment: 1000,
            sack: false,
            ..PATH
        };
        let mut losses = Losses::default();
        let time = |i: usize| 1_000_000_000 + i as u64 * step;
        for (i, repeat) in repeats.iter().enumerate() {
            losses.sent(repeat, time(i), path);
        }
        losses.acknowledge(acked * 1000, time(repeats.len()), path);
        losses.close(None, time(repeats.len()), path);
        losses.done.iter().map(|entry| entry.place).collect()
    }

    const TIMER: u64 = 300_000_000;
    const SOON: u64 = 1_000;

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

    /// Through a queue an answer takes ten times the smallest round trip, and when that is gone less than it.
    #[test]
    fn what_an_ack_stops_at_was_lost_however_long_that_took() {
        let holes = [again(0, 0, 5, 20, SOON), again(7, 7, 0, 22, SOON)];
        assert_eq!(places_each(&holes, 8, 120_000_000), [Place::BehindTap; 2]);
        assert_eq!(places_each(&holes, 8, 4_000_000)[1], Place::BehindTap);
        let elsewhere = [again(0, 0, 5, 20, SOON), again(9, 7, 0, 22, SOON)];
        assert_ne!(places_each(&elsewhere, 10, 120_000_000)[1], Place::BehindTap);
    }

    /// Ranges of half the sequence space have no order: such records, which no engine writes, once
    /// made the search for filled gaps go round for ever.
    #[test]
    fn ranges_that_no_engine_writes_are_left_out() {
        let mut losses = Losses::default();
        losses.sent(&event(what::GAP, 0x7fff_0000, 5, 10), 1, PATH);
        assert!(losses.gaps.is_empty());
        losses.sent(&event(what::GAP, 1005, 5, 10), 2, PATH);
        let far = event(what::BELOW, 0x9000_0000, 0x0fff_0000, u32::MAX);
        assert_eq!(losses.sent(&far, 3, PATH), Some(Segment::Harmless));
    }

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
