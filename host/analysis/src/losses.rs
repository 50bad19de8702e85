//! Segments that came twice, late or never: what happened to them, and where
//! (`docs/src/losses.md`). One tap, one direction at a time.
//!
//! The engine reports each jump (GAP), each segment below the next expected (BELOW) and each new
//! SACK state; this module keeps the bounded history that tells them apart. Where the evidence does
//! not decide, the answer is unknown.

use weir_record::{Event, EventMore, what};

use crate::seq::{Range, at_or_before, before, earlier, later};

/// Open gaps kept per direction; when there are more, the oldest is given up as unknown.
const GAPS: usize = 32;
/// SACK ranges kept per direction.
const RANGES: usize = 8;
/// Repeats kept per direction, for D-SACKs that come later.
const REPEATS: usize = 16;
/// Reordering is over within 3 ms when no round trip is known (Wireshark's rule for out-of-order
/// segments, user's guide 7.5), and within the round trip when that is shorter: a retransmission
/// needs at least one.
const REORDERING: u64 = 3_000_000;
/// A retransmission that follows a duplicate ACK within 20 ms answers it (Wireshark, the same).
const PROMPT: u64 = 20_000_000;
/// Retransmission timers: never below 100 ms (Tstat's floor), 500 ms before a round trip is known.
const TIMEOUT_FLOOR: u64 = 100_000_000;
const TIMEOUT_UNKNOWN: u64 = 500_000_000;
/// Unit of `EVENT.since_data`, ns.
const SINCE_UNIT: u64 = 64;
/// Sequence numbers this far apart have nothing to do with each other (`docs/src/flow-engine.md`
/// 4.5).
const FAR: u32 = 1 << 30;
/// TCP flag FIN in `EVENT.tcp_flags`, RST, ACK.
const FIN: u8 = 0x01;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Fast,
    Timeout,
    Spurious,
    Unknown,
}

/// Counters of one direction; segments unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub retransmitted: u64,
    /// Of them, those with payload.
    pub retransmitted_data: u64,
    pub retransmitted_bytes: u64,
    pub fast: u64,
    pub timeout: u64,
    pub spurious: u64,
    pub unknown: u64,
    pub out_of_order: u64,
    pub duplicates: u64,
    pub lost_upstream: u64,
    pub lost_downstream: u64,
    pub lost_unknown: u64,
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
    /// The receiver acknowledged it: its bytes were delivered and not captured.
    delivered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Repeat {
    range: Range,
    cause: Cause,
    lost: u32,
}

/// What the classification needs to know of the flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Round trip over the whole path, ns.
    pub rtt: Option<u64>,
    /// Bytes of a full segment.
    pub segment: u32,
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
}

/// History of one direction: what its sender sent and what its receiver said of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    pub counts: Counts,
    gaps: Vec<Gap>,
    sacked: Vec<Range>,
    repeats: Vec<Repeat>,
    /// Highest ACK of the receiver that a record told.
    acked: Option<u32>,
    /// Time of the receiver's last duplicate-ACK or SACK evidence.
    evidence: u64,
    last_repeat: u64,
    last_cause: Option<Cause>,
    /// Byte of the last window probe.
    probe: Option<u32>,
    fin_seen: bool,
}

impl Losses {
    /// For reuse: empty, with its memory.
    pub fn clear(&mut self) {
        self.gaps.clear();
        self.sacked.clear();
        self.repeats.clear();
        *self = Self {
            gaps: std::mem::take(&mut self.gaps),
            sacked: std::mem::take(&mut self.sacked),
            repeats: std::mem::take(&mut self.repeats),
            ..Self::default()
        };
    }

    /// The receiver acknowledged everything before `ack`.
    pub fn acknowledge(&mut self, ack: u32, path: Path) {
        if self.acked.is_some_and(|known| at_or_before(ack, known)) {
            return;
        }
        self.acked = Some(ack);
        self.sacked.retain(|r| before(ack, r.to));
        for i in 0..self.gaps.len() {
            let gap = self.gaps[i];
            if gap.delivered || !before(gap.range.from, ack) {
                continue;
            }
            let to = earlier(gap.range.to, ack);
            let delivered = Range {
                from: gap.range.from,
                to,
            };
            self.counts.missed += path.segments(delivered.len());
            self.gaps[i] = Gap {
                range: delivered,
                delivered: true,
                ..gap
            };
            if before(to, gap.range.to) {
                self.keep_gap(
                    Gap {
                        range: Range {
                            from: to,
                            to: gap.range.to,
                        },
                        ..gap
                    },
                    path,
                );
            }
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
            self.acknowledge(e.acked, path);
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
                    delivered: false,
                },
                path,
            );
        }
        if e.what & (what::PROBE | what::BELOW) == what::PROBE {
            self.probe = Some(e.seq);
        }
        let segment = (e.what & what::BELOW != 0).then(|| self.below(e, time, path));
        if e.tcp_flags & FIN != 0 {
            self.fin_seen = true;
        }
        segment
    }

    /// The receiver's EVENT: SACK blocks and duplicate ACKs about this direction.
    pub fn heard(&mut self, e: &Event, more: Option<&EventMore>, time: u64, path: Path) {
        let unused = what::WILD_ACK | what::SYN_OTHER;
        if e.what & unused != 0 || e.tcp_flags & RST != 0 {
            return;
        }
        if e.what & (what::SACK | what::DUP_ACK) != 0 {
            self.evidence = time;
        }
        if let Some(more) = more.filter(|_| e.what & what::SACK != 0) {
            self.sack(e, more);
        }
        if e.tcp_flags & ACK != 0 {
            self.acknowledge(e.ack, path);
        }
    }

    fn sack(&mut self, e: &Event, more: &EventMore) {
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

    /// D-SACK overrides every other evidence: a repeat was unnecessary (RFC 3708).
    fn arrived_twice(&mut self, twice: Range) {
        let found = self
            .repeats
            .iter_mut()
            .find(|r| r.cause != Cause::Spurious && r.range.overlap(twice) > 0);
        let Some(repeat) = found else { return };
        let counts = &mut self.counts;
        let was = match repeat.cause {
            Cause::Fast => &mut counts.fast,
            Cause::Timeout => &mut counts.timeout,
            Cause::Unknown | Cause::Spurious => &mut counts.unknown,
        };
        *was = was.saturating_sub(1);
        counts.spurious += 1;
        counts.lost_downstream = counts.lost_downstream.saturating_sub(u64::from(repeat.lost));
        repeat.cause = Cause::Spurious;
        repeat.lost = 0;
    }

    /// The precedence follows Wireshark: keep-alive, spurious, fast, out of order, the rest.
    fn below(&mut self, e: &Event, time: u64, path: Path) -> Segment {
        let stop = e.seq.wrapping_add(e.length);
        let old = Range {
            from: e.seq,
            to: earlier(stop, e.expected),
        };
        let fin = e.tcp_flags & FIN != 0;
        if e.length > 0 && e.what & what::PARTIAL == 0 {
            self.counts.repeated_segments += 1;
        }
        // A probe's byte may not have been taken; the sender goes on from it (RFC 9293 3.8.6.1).
        let from_probe = old.len() == 1 && self.probe == Some(e.seq);
        if e.what & (what::COPY | what::PROBE) != 0 || from_probe {
            return Segment::Harmless;
        }
        if e.length <= 1 && !fin && e.seq == e.expected.wrapping_sub(1) {
            // RFC 9293 3.8.4: SEG.SEQ = SND.NXT − 1, with 0 or 1 byte of garbage. A byte that is
            // not acknowledged yet is a real one that is sent again. After a FIN, next − 1 is the
            // FIN itself.
            let acked = e.what & what::ACKED_UNKNOWN == 0 && e.acked == e.expected;
            if acked && !self.fin_seen {
                self.counts.keep_alives += 1;
                return Segment::Harmless;
            }
        }
        if old.len() >= FAR || e.length == 0 && !fin {
            return Segment::Harmless; // an ACK without payload is never a retransmission
        }

        let (unseen, delivered, first) = self.take_from_gaps(old, path);
        if delivered > 0 && unseen == 0 {
            let at = first.map_or(time, |gap| gap.time);
            if time.saturating_sub(at) <= path.reordering() {
                // The capture wrote data behind its ACK: neither lost nor sent again.
                self.counts.missed = self.counts.missed.saturating_sub(1);
                return Segment::Harmless;
            }
        }
        if unseen > 0
            && let Some(gap) = first
            && self.is_reordered(&gap, e, time, path)
        {
            self.counts.out_of_order += 1;
            return Segment::Harmless;
        }

        let seen = old.len().saturating_sub(unseen).saturating_sub(delivered);
        let fin_repeat = e.what & what::FIN_REPEAT != 0;
        if old.len() == 0 && !fin_repeat {
            return Segment::Harmless; // a FIN below the expected that was never seen
        }
        self.counts.retransmitted += 1;
        self.counts.retransmitted_data += u64::from(e.length > 0);
        self.counts.retransmitted_bytes += u64::from(old.len());
        let end = if fin_repeat { e.expected } else { old.to };
        let cause = if unseen > 0 {
            self.cause(e, old, time, path)
        } else if e.what & what::ACKED_UNKNOWN == 0 && at_or_before(end, e.acked)
            || self.sacked.iter().any(|r| r.covers(old) && old.len() > 0)
        {
            Cause::Spurious
        } else {
            self.cause(e, old, time, path)
        };
        let lost = path.segments(if unseen > 0 { unseen } else { seen });
        let mut lost_below = 0;
        if unseen > 0 {
            self.counts.lost_upstream += lost;
        } else if matches!(cause, Cause::Fast | Cause::Timeout) {
            self.counts.lost_downstream += lost;
            lost_below = lost as u32;
        }
        *match cause {
            Cause::Fast => &mut self.counts.fast,
            Cause::Timeout => &mut self.counts.timeout,
            Cause::Spurious => &mut self.counts.spurious,
            Cause::Unknown => &mut self.counts.unknown,
        } += 1;
        self.last_repeat = time;
        self.last_cause = Some(cause);
        if self.repeats.len() == REPEATS {
            self.repeats.remove(0);
        }
        self.repeats.push(Repeat {
            range: old,
            cause,
            lost: lost_below,
        });
        if unseen > 0 { Segment::Fill } else { Segment::Repeat }
    }

    /// Whether a segment that fills a gap was overtaken rather than lost.
    fn is_reordered(&self, gap: &Gap, e: &Event, time: u64, path: Path) -> bool {
        // RFC 7323 4.1: TSval never goes back at the sender; a later one was sent later.
        if gap.tsval != 0 && e.tsval != 0 && gap.tsval != e.tsval {
            return before(e.tsval, gap.tsval);
        }
        time.saturating_sub(gap.time) <= path.reordering()
    }

    /// Why a segment that was needed was sent again.
    fn cause(&self, e: &Event, old: Range, time: u64, path: Path) -> Cause {
        let since = if e.what & what::IDLE_BEFORE != 0 {
            u64::MAX
        } else {
            u64::from(e.since_data) * SINCE_UNIT
        };
        let rtt = path.rtt.unwrap_or(0);
        // RFC 5681 3.2 asks for three duplicate ACKs; stacks with early retransmit or RACK (RFC
        // 8985) are content with a SACK hole, and Wireshark with two.
        let hole = old.len() > 0 && self.sacked.iter().any(|r| at_or_before(old.to, r.from));
        let chain = e.dup_acks >= 2 && e.what & what::ACKED_UNKNOWN == 0 && e.seq == e.acked;
        let asked = chain || hole;
        let prompt = self.evidence != 0 && time.saturating_sub(self.evidence) <= PROMPT.max(rtt);
        if asked && (prompt || since < path.timeout()) {
            return Cause::Fast;
        }
        // Tstat's batch rule: closer than a round trip to an anomalous predecessor, same cause.
        let near = time.saturating_sub(self.last_repeat) <= rtt.max(REORDERING);
        if let Some(cause @ (Cause::Fast | Cause::Timeout)) = self.last_cause.filter(|_| near) {
            return cause;
        }
        if since >= path.timeout() {
            Cause::Timeout
        } else {
            Cause::Unknown
        }
    }

    /// Remove `range` from the gaps. Returns bytes that were open, bytes that were delivered
    /// already, and the oldest gap that it touched.
    fn take_from_gaps(&mut self, range: Range, path: Path) -> (u32, u32, Option<Gap>) {
        let (mut open, mut delivered) = (0u32, 0u32);
        let mut first: Option<Gap> = None;
        // Downwards: what is put back stands behind and is not looked at again.
        for i in (0..self.gaps.len()).rev() {
            let gap = self.gaps[i];
            let common = gap.range.overlap(range);
            if common == 0 {
                continue;
            }
            if first.is_none_or(|first| gap.time <= first.time) {
                first = Some(gap);
            }
            if gap.delivered {
                delivered = delivered.saturating_add(common);
                continue;
            }
            open = open.saturating_add(common);
            self.gaps.swap_remove(i);
            let left = Range {
                from: gap.range.from,
                to: earlier(gap.range.to, range.from),
            };
            let right = Range {
                from: later(gap.range.from, range.to),
                to: gap.range.to,
            };
            for rest in [left, right] {
                if rest.len() > 0 && self.gaps.len() < GAPS {
                    self.gaps.push(Gap { range: rest, ..gap });
                } else {
                    self.counts.lost_unknown += path.segments(rest.len());
                }
            }
        }
        (open, delivered, first)
    }

    /// A gap in the sequence; the part that is acknowledged already was delivered.
    fn new_gap(&mut self, gap: Gap, path: Path) {
        let Some(acked) = self.acked.filter(|acked| before(gap.range.from, *acked)) else {
            return self.keep_gap(gap, path);
        };
        let at = earlier(acked, gap.range.to);
        let range = Range {
            from: gap.range.from,
            to: at,
        };
        self.counts.missed += path.segments(range.len());
        self.keep_gap(
            Gap {
                range,
                delivered: true,
                ..gap
            },
            path,
        );
        self.keep_gap(
            Gap {
                range: Range {
                    from: at,
                    to: gap.range.to,
                },
                ..gap
            },
            path,
        );
    }

    fn keep_gap(&mut self, gap: Gap, path: Path) {
        // The engine makes no gap of 2³⁰ and more.
        if gap.range.len() == 0 || gap.range.len() >= FAR {
            return;
        }
        if self.gaps.len() >= GAPS {
            let oldest = self.gaps.iter().position(|g| g.delivered).unwrap_or(0);
            let given_up = self.gaps.remove(oldest);
            if !given_up.delivered {
                self.counts.lost_unknown += path.segments(given_up.range.len());
            }
        }
        self.gaps.push(gap);
    }

    /// The flow ended with this next expected sequence number: gaps that were neither filled nor
    /// acknowledged were lost, nobody knows where; what was acknowledged beyond it was delivered
    /// and not captured.
    pub fn close(&mut self, next: Option<u32>, path: Path) {
        for gap in self.gaps.iter().filter(|g| !g.delivered) {
            self.counts.lost_unknown += path.segments(gap.range.len());
        }
        self.gaps.clear();
        if let (Some(next), Some(acked)) = (next, self.acked) {
            let unseen = Range { from: next, to: acked }.len();
            if unseen < FAR {
                self.counts.missed += path.segments(unseen);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path {
        rtt: None,
        segment: 1460,
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
            ttl: 64,
            tcp_flags: ACK,
        }
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
        for i in 0..100 {
            losses.sent(&event(what::GAP, i * 3000 + 1500, i * 3000, 1500), u64::from(i), PATH);
        }
        assert_eq!(losses.gaps.len(), GAPS);
        losses.close(None, PATH);
        assert_eq!(losses.counts.lost_unknown, 200, "1,500 bytes are two segments");
    }
}
