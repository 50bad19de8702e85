//! Segments that came twice, late or never: what happened to them, and where
//! (`docs/src/losses.md`). One tap, one direction at a time.
//!
//! The engine reports each jump (GAP), each segment below the next expected (BELOW) and each new
//! SACK state; this module keeps the bounded history that tells them apart. A verdict stays open
//! for what the receiver says afterwards, until its place in the history is needed or the flow
//! ends. Where the evidence does not decide, the answer is unknown.

mod acks;
mod below;
mod cause;
mod entry;
mod event;
mod gaps;
mod missing_ids;
mod order;
mod path;
mod recovery;
mod scoreboard;
mod settle;
#[cfg(test)]
mod tests;

use weir_record::{Event, SINCE_DATA_NS, what};

use crate::ids::Counted;
use crate::seq::{Range, before, later};
use crate::shares::USUAL_TIMER;
use crate::verdict::{Cause, Class, Place, sign};
pub(crate) use below::Segment;
pub(crate) use entry::{Counts, Entry};
use event::is_ahead;
pub(crate) use event::{has_new_id, since_data};
use gaps::{Gap, Late};
pub(crate) use missing_ids::SkippedIds;
pub use missing_ids::is_timed_out;
use order::is_older;
pub(crate) use path::Path;
use path::REORDERING;
pub(crate) use path::TIMEOUT_FLOOR;
use recovery::FromScratch;
use scoreboard::Scoreboard;

/// Verdicts kept open per direction, for D-SACKs and late originals.
const OPEN: usize = 64;
/// Copies from which on a direction may be mirrored as a whole.
const MIRRORED: u64 = 8;
/// Sequence numbers this far apart have nothing to do with each other (`docs/src/flow-engine.md`
/// 4.5).
const FAR: u32 = 1 << 30;

/// History of one direction: what its sender sent and what its receiver said of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    pub counts: Counts,
    gaps: Vec<Gap>,
    sacked: Scoreboard,
    /// Verdicts that can still change, oldest first.
    open: Vec<Entry>,
    /// Verdicts that are final; whoever wants them takes them.
    pub done: Vec<Entry>,
    /// Highest ACK of the receiver that a record told.
    acked: Option<u32>,
    /// When it was heard last.
    acked_time: u64,
    /// When it passed first, where a record tells.
    acked_first: Option<u64>,
    /// It did for the ACK of what had arrived behind a hole, too: that is sent when the hole is filled (RFC 5681 4.2).
    fills_hole: bool,
    /// Time of the receiver's last duplicate-ACK or SACK evidence.
    evidence: u64,
    /// The ACK that it stood at.
    hole: Option<u32>,
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
    /// What came late last, with TSval and IP id.
    originals: Vec<(Range, (u32, u16))>,
    /// Time of the last segment below the expected, and of the last out of sequence.
    last_below: u64,
    /// Time of the last segment with bytes of a gap.
    last_fill: u64,
    last_disorder: u64,
    /// All that had been sent then.
    disorder_end: u32,
    last_copy: u64,
    last_repeat: u64,
    /// When the FIN, but for its first time, passed last.
    last_fin: u64,
    /// Time of the receiver's last EVENT.
    last_heard: u64,
    last_cause: Option<Cause>,
    /// Duplicate ACKs, SACK or a timer: what the recovery in progress was told by last.
    told_by: Option<Cause>,
    /// What was sent when the recovery in progress began (RFC 6582 3.2).
    recover: Option<u32>,
    /// Segments above its first loss that passed the tap, made no duplicate ACK and were not found lost since; without SACK, if they can be counted.
    unanswered: Option<u32>,
    /// A timer's recovery without SACK in which the receiver has shown nothing but what was sent again.
    from_scratch: Option<FromScratch>,
    /// Byte of the last window probe.
    probe: Option<u32>,
    /// First byte of data that came on the SYN and did not come again.
    on_syn: Option<u32>,
    /// What the receiver's SACK blocks were about, whatever was seen of the handshake.
    blocks: Blocks,
    /// It has sent a D-SACK.
    tells_twice: bool,
    hidden: Option<Hidden>,
    /// Data that a block has to be made of.
    pub late: Option<Late>,
    /// Where the first data begins that came behind its FIN, and when that passed, TAI ns.
    pub behind_fin: Option<(u32, u64)>,
    /// IP ids of the receiver so far.
    pub answers: Counted,
    /// Retransmissions in sequence if the sender's ids count its packets.
    skipped: Vec<Entry>,
    /// A FIN alone was lost before the tap: no data, but it had an IP id.
    fin_lost: bool,
}

/// What SACK blocks are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Blocks {
    /// None came.
    #[default]
    Nothing,
    /// What was sent.
    Data,
    /// Nothing that was sent: a device in the path shifts the sequence numbers, and not those in the option.
    Elsewhere,
}

/// Data that had been sent and not been seen: a packet without data was behind it, or IP ids were skipped before it.
#[derive(Clone, Copy, Debug)]
struct Hidden {
    /// First byte.
    from: u32,
    /// When it had been sent, TAI ns.
    known: u64,
    /// How sure that is.
    again: Again,
}

/// Whether something had been sent before, the surer the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Again {
    No,
    /// If the sender's IP ids count the packets of each connection, of which nothing is known yet.
    IfCounted,
    /// Or something else was lost before it.
    Maybe,
    Yes,
}

/// Times of the last of what came again or late in a stretch, TAI ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repeats {
    /// The receiver had no copy before it.
    pub needed: Option<u64>,
    /// Whether it had one is not known.
    pub doubtful: Option<u64>,
    /// Bytes of a gap passed the tap then.
    pub filled: Option<u64>,
    /// The ACK of a first copy, which came when the sender had not waited for it any longer.
    pub late_ack: Option<u64>,
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

    fn with_sack(&self, path: Path) -> Path {
        Path {
            sack: match self.blocks {
                Blocks::Nothing => path.sack,
                Blocks::Data => true,
                Blocks::Elsewhere => false,
            },
            ..path
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
                    delivered: None,
                    lacked: None,
                    ip_id: e.ip_id,
                    blockless: e.length == 0,
                },
                path,
            );
        }
        if is_ahead(e) {
            self.hidden = Some(Hidden {
                from: e.expected,
                known: time,
                again: Again::Yes,
            });
        }
        self.constant_id |= self.last_id.1 == e.ip_id && self.last_id.0 != e.seq;
        self.last_id = (e.seq, e.ip_id);
        if e.what & (what::PROBE | what::BELOW) == what::PROBE {
            self.probe = Some(e.seq);
        }
        if e.what & what::SYN_DATA != 0 {
            self.on_syn = Some(e.seq.wrapping_add(1));
        }
        let segment = (e.what & what::BELOW != 0).then(|| self.below(e, time, path));
        match segment {
            Some(Segment::Copy) => self.last_copy = time,
            _ if e.what & (what::GAP | what::BELOW) != 0 => {
                self.last_disorder = time;
                self.disorder_end = later(e.expected, e.seq.wrapping_add(e.length));
            }
            _ => {}
        }
        let made = (e.sent().unwrap_or(0), e.ip_id);
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

    /// When data came again or late for the last time between `after` and `until` that the receiver needed, and that it may have needed.
    pub fn repeats(&self, after: u64, until: u64) -> Repeats {
        let mut repeats = Repeats {
            filled: Some(self.last_fill).filter(|time| after < *time && *time < until),
            ..Repeats::default()
        };
        let within = |e: &&Entry| e.length > 0 && after < e.time && e.time < until;
        for entry in self.open.iter().chain(&self.done).filter(within) {
            if entry.answer_was_late() && entry.told_at < until {
                repeats.late_ack = repeats.late_ack.max(Some(entry.told_at));
            }
            let last = match (entry.class, entry.place) {
                (Class::Retransmission, Place::BeforeTap | Place::BehindTap) => &mut repeats.needed,
                // The first copy came later still.
                (Class::Retransmission, Place::Nowhere) if entry.evidence.has(sign::UNSEEN) => &mut repeats.needed,
                (Class::Retransmission, Place::Unknown) | (Class::Reordered, _) => &mut repeats.doubtful,
                _ => continue,
            };
            *last = (*last).max(Some(entry.time));
        }
        repeats
    }

    /// Highest ACK of the receiver that a record told.
    pub const fn acked(&self) -> Option<u32> {
        self.acked
    }

    /// The flow is over, and its receiver waited in vain: it told of a hole, to the end of which it never came.
    pub fn never_came(&self) -> bool {
        let Some(acked) = self.acked else { return false };
        let lacked =
            |range: Range| !before(range.from, acked) && (self.sacked.is_hole(range) || self.hole == Some(acked));
        let mut lost = self.done.iter().filter(|entry| entry.is_lost());
        lost.any(|entry| lacked(entry.range))
    }

    /// When the ACK of all before `end` passed, if what it answers filled a hole: no timer of its receiver is in that.
    pub fn whole_at(&self, end: u32) -> Option<u64> {
        self.acked_first.filter(|_| self.fills_hole && self.acked == Some(end))
    }

    /// Whether what begins at `at` and passed the tap at `time` had been sent before, and was lost before the tap, and nothing else tells when.
    pub fn came_again(&self, at: u32, time: u64) -> Again {
        if self.behind_fin.is_some_and(|(from, _)| from == at) {
            return Again::No;
        }
        let again = |hidden: &Hidden| hidden.from == at && time.saturating_sub(hidden.known) > REORDERING;
        self.hidden.filter(again).map_or(Again::No, |hidden| hidden.again)
    }

    /// Whether what begins at `at` and passed the tap at `time` came again, needlessly, sooner than a timer has it sent: the first copy was late.
    /// Then how long it had been on its way is not known.
    pub fn was_late(&self, at: u32, time: u64) -> bool {
        let is_soon = |e: &Entry| time < e.time && e.time - time < USUAL_TIMER;
        let is_needless = |e: &Entry| match (e.class, e.cause) {
            (Class::Copy, _) => e.evidence.has(sign::DSACKED) && !e.evidence.has(sign::SAME_IP_ID),
            (Class::Retransmission, Cause::Unknown) => e.place == Place::Nowhere,
            _ => false,
        };
        let mut entries = self.open.iter().chain(&self.done);
        entries.any(|e| e.length > 0 && e.range.from == at && is_soon(e) && is_needless(e))
    }

    /// Whether the capture alone has what this side sent twice: most of its segments, of which so many brought new bytes.
    pub fn is_mirrored(&self, segments: u32) -> bool {
        let copies = self.counts.mirror_copies;
        copies >= MIRRORED && 2 * copies > segments.into()
    }

    /// Nothing that this side sent is missing.
    pub const fn is_whole(&self) -> bool {
        self.gaps.is_empty() && self.counts.missed == 0 && self.counts.lost_upstream == 0 && !self.fin_lost
    }

    /// The data segment before this one was none below the expected.
    fn follows_new(&self, e: &Event, time: u64) -> bool {
        time.saturating_sub(since_data(e)) > self.last_below + 2 * SINCE_DATA_NS
    }
}
