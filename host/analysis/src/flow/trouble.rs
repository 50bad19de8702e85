//! Losses, closed windows and IP ids of flows in trouble.

use weir_record::{
    Block, BlockEnd, Event, EventMore, FINE_INTERVAL_NS, INTERVAL_NS, Interval, NO_SCALE, Record, tcp_flag, what,
};

use super::{Flow, Pool};
use crate::handshake::Handshake;
use crate::ids::{Counted, Counting, Step};
use crate::losses::{Again, Counts, Entry, Losses, Path, Segment, SkippedIds, since_data};
use crate::queues::ENOUGH_SAMPLES;
use crate::seq::at_or_before;
use crate::turns::Unseen;
use crate::verdict::{Class, Verdict, sign};
use crate::windows::Closed;

/// Largest window (RFC 7323 2.3), bytes.
const MOST_WINDOW: u32 = 1 << 30;

/// State that only flows in trouble have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub losses: [Losses; 2],
    pub closed: [Closed; 2],
    pub zero_windows: [u32; 2],
    pub small_windows: [u32; 2],
    /// When the client's FIN came again first, TAI ns; 0: it did not.
    pub(super) fin_repeat: u64,
    /// ACKs of what had not been seen.
    pub early_acks: u32,
    pub handshake: Handshake,
    /// Smallest round trip to the server of any connection, when something was in trouble last, ns.
    pub to_server: Option<u64>,
    /// When the last packet of each side passed, since the trouble began, TAI ns; 0: none.
    pub(super) heard: [u64; 2],
    /// IP ids of each side since the trouble began.
    pub(super) ids: [Counted; 2],
    /// The latest SYN that was repeated had no window scale although the first had one.
    pub scale_dropped: bool,
    /// Repeats of each side's data behind which nothing of the other side was heard until the end.
    pub in_vain: [u64; 2],
}

impl Trouble {
    pub(super) fn clear(&mut self) {
        let [mut a, mut b] = std::mem::take(&mut self.losses);
        let mut handshake = std::mem::take(&mut self.handshake);
        a.clear();
        b.clear();
        handshake.clear();
        *self = Self {
            losses: [a, b],
            handshake,
            ..Self::default()
        };
    }

    /// See [`Flow::interval_ids`].
    #[inline(never)]
    fn interval_ids(&mut self, s: usize, r: &Record, packets: u32, by_connection: bool) -> Option<Step> {
        let (i, time) = (Interval::decode(r), r.time());
        if packets > 0 {
            let last = i
                .start
                .saturating_add(if i.fine != 0 { FINE_INTERVAL_NS } else { INTERVAL_NS });
            self.heard[s] = self.heard[s].max(last.min(time));
        }
        let whole = self.losses[s].is_whole();
        let step = self.ids[s].interval(i.ip_id, packets, self.losses[s].counts.duplicates);
        self.losses[1 - s].answered(i.start, time, self.ids[s], by_connection, whole);
        step
    }
}

impl Flow {
    /// IP ids of an INTERVAL of `side`: what was not seen of them since the interval before, if ids tell. To be called
    /// before the totals move.
    #[inline]
    pub fn interval_ids(&mut self, side: usize, r: &Record, by_connection: impl FnOnce() -> bool) -> Option<Step> {
        let s = side & 1;
        let i = Interval::decode(r);
        let packets = i.packets.wrapping_sub(self.directions[s].packets as u32);
        let sent_fin = self.sent_fin(s);
        match self.extras.trouble_mut() {
            Some(trouble) => trouble.interval_ids(s, r, packets, by_connection()),
            None if sent_fin => None,
            None => {
                let before = std::mem::replace(&mut self.ids[s], i.ip_id);
                Step::new(before, i.ip_id, packets.into())
            }
        }
    }

    /// Whether an id of this side, or its FIN, is known (the SYN-ACK of Linux has none).
    pub fn has_ids(&self, side: usize) -> bool {
        self.newest_id(side) != 0 || self.sent_fin(side)
    }

    /// The newest IP id of this side that a record told; 0: none, or it numbers none.
    pub(super) fn newest_id(&self, side: usize) -> u16 {
        let s = side & 1;
        let counted = self.extras.trouble().map(|trouble| trouble.ids[s].newest());
        counted.filter(|id| *id != 0).unwrap_or(self.ids[s])
    }

    fn newest_ids(&self) -> [u16; 2] {
        [0, 1].map(|s| if self.sent_fin(s) { 0 } else { self.ids[s] })
    }

    /// A segment in sequence before which IP ids of its sender were skipped, of a host that counts by connection or of which
    /// that is not known yet. Returns whether it shows a loss.
    pub fn skipped(&mut self, side: usize, e: &Event, time: u64, counting: Counting, pool: &mut Pool) -> bool {
        let s = side & 1;
        let path = self.path(s);
        let ids = self.newest_ids();
        let goes_on = |passed| self.turn.as_ref().is_some_and(|turn| turn.goes_on(s, e.seq, passed));
        let is_next = e.what & what::PUSH != 0 && e.what & what::ACKED_UNKNOWN == 0 && e.acked == e.seq;
        let queued = is_next && counting != Counting::Uneven && goes_on(time.saturating_sub(since_data(e)));
        let trouble = self.extras.make_trouble(ids, pool);
        let known = SkippedIds {
            by_connection: counting == Counting::ByConnection,
            queued: queued && !trouble.closed[1 - s].is_closed(),
        };
        let [first, second] = &mut trouble.losses;
        let (own, other) = if s == 0 { (first, second) } else { (second, first) };
        let mirrored = other.is_mirrored(self.directions[1 - s].data_segments);
        let lost = own.skipped(e, time, (other, mirrored), known, path);
        if lost && let Some(turn) = &mut self.turn {
            turn.loss(time);
        }
        lost
    }

    /// What the classification of segments from `side` needs to know.
    pub fn path(&self, side: usize) -> Path {
        // The handshake's may have waited in a queue. What timers are held against may be too long.
        let sum = || Some(self.at_most(0)? + self.at_most(1)?);
        let rtt = [self.setup.path_rtt(), sum()].into_iter().flatten().min();
        let sack = |side| self.setup.options(side).is_some_and(|o| o.sack);
        let trip = self.trip(side);
        let sender = 1 - (side & 1);
        let near = self.trip(sender);
        let others = self.extras.trouble().and_then(|trouble| trouble.to_server);
        let shared = others.and_then(|others| Some(others + self.at_most(1)?));
        let others = others.filter(|_| side & 1 == 0);
        Path {
            rtt,
            least: rtt.map(|rtt| shared.map_or(rtt, |shared| rtt.min(shared))),
            far: trip.filter(|_| self.rtt.samples(side) >= ENOUGH_SAMPLES),
            near: near.filter(|_| self.setup.has_timed(sender) || self.rtt.samples(sender) >= ENOUGH_SAMPLES),
            whole: self.rtt.all_acknowledged(side),
            others: others.map(|others| trip.map_or(others, |own| own.min(others))),
            timed: trip.filter(|_| self.setup.has_timed(side)),
            segment: self.setup.payload(),
            sack: sack(0) && sack(1),
            reach: self.reach(side),
            queue: trip.is_some_and(|trip| self.queue_stands(side, trip)),
            reset: self.sent_rst(1 - (side & 1)),
            fin: self.sent_fin(side).then(|| (self.ids[side & 1], self.fin_time(side))),
        }
    }

    fn queue_stands(&self, side: usize, smallest: u64) -> bool {
        let limits = self.extras.limits();
        limits.is_some_and(|limits| limits.sides[side & 1].queue_stands(smallest))
    }

    /// How far from its ACK the receiver of a side's data can have some of it: what arrived fitted its window, and was sent. Twice that, for
    /// the capture may have missed half.
    fn reach(&self, side: usize) -> u32 {
        let receiver = 1 - (side & 1);
        let window = match self.setup.scale(receiver) {
            Some(_) => self.largest_window(receiver),
            None => MOST_WINDOW,
        };
        let sent = u32::try_from(self.directions[side & 1].payload).unwrap_or(u32::MAX);
        window.max(sent).saturating_mul(2).min(MOST_WINDOW)
    }

    /// What `block` of `side` begins with was not seen; and whether its receiver has it all the same.
    pub fn unseen(&self, side: usize, block: &Block) -> Option<bool> {
        self.extras.trouble()?.losses[side & 1].unseen(block.seq)
    }

    /// Data of `side` behind `ack` was not seen: what is in flight there may have come long after what was acknowledged.
    pub fn is_at_gap(&self, side: usize, ack: u32) -> bool {
        let trouble = self.extras.trouble();
        trouble.is_some_and(|trouble| trouble.losses[side & 1].unseen(ack).is_some())
    }

    /// Whether what begins at `seq` and passed at `time` was sent again, and lost before the tap the first time.
    pub fn came_again(&self, side: usize, seq: u32, time: u64) -> Again {
        let trouble = self.extras.trouble();
        trouble.map_or(Again::No, |t| t.losses[side & 1].came_again(seq, time))
    }

    /// Whether it was late before the tap.
    pub(super) fn was_late(&self, side: usize, seq: u32, time: u64) -> bool {
        let trouble = self.extras.trouble();
        trouble.is_some_and(|t| t.losses[side & 1].was_late(seq, time))
    }

    /// An EVENT that is more than the first FIN or a RST. Returns whether a segment was lost.
    pub fn trouble(&mut self, side: usize, e: &Event, more: Option<&EventMore>, time: u64, pool: &mut Pool) -> bool {
        let s = side & 1;
        if e.what & what::SACK != 0 {
            // No interval has told of it yet, and much may have come since the handshake.
            self.windows[s].interval(e.window, e.window);
        }
        let (path, other_path) = (self.path(s), self.path(1 - s));
        let first_scale = self.setup.options(0).and_then(|o| o.scale);
        let (opened, pending) = (self.first, !self.setup.is_done());
        let ids = self.newest_ids();
        let trouble = self.extras.make_trouble(ids, pool);
        let mut lost = false;
        trouble.heard[s] = trouble.heard[s].max(time);
        if pending && s == 1 && e.what & what::WILD_ACK != 0 {
            trouble.handshake.challenge();
        }
        if pending && s == 1 && e.what & what::ACKS_REPEAT != 0 && e.tcp_flags & tcp_flag::SYN != 0 {
            trouble.handshake.echoes(e);
        }
        if e.what & (what::SYN_REPEAT | what::SYN_ACK_REPEAT) != 0 {
            if !pending {
                trouble.handshake.without_trouble(&self.setup, opened);
            }
            let class = trouble.handshake.repeat(s, e, more, time, opened, !pending);
            if class != Class::Copy {
                if !pending {
                    self.setup.late_repeat(s);
                }
                let answer = usize::from(e.what & what::SYN_ACK_REPEAT != 0);
                let counts = &mut trouble.losses[s].counts;
                counts.retransmitted += 1;
                counts.retransmitted_bytes += u64::from(e.length);
                if pending && answer == 0 && s == 0 {
                    self.setup.syn_repeat(time, opened);
                }
                if answer == 0 && more.is_some_and(|m| m.scale == NO_SCALE) {
                    trouble.scale_dropped |= first_scale.is_some() || pending;
                }
            }
            if class == Class::Copy {
                trouble.losses[s].counts.duplicates += 1;
            }
            return false;
        }
        let [first, second] = &mut trouble.losses;
        let (own, other) = if s == 0 { (first, second) } else { (second, first) };
        own.answers = trouble.ids[1 - s];
        let segment = own.sent(e, time, path);
        other.heard(e, more, time, other_path);
        own.counts.sack_states += u64::from(e.what & what::SACK != 0);
        own.counts.duplicate_triples += u64::from(e.what & what::DUP_ACK != 0);
        own.counts.window_full += u64::from(e.what & what::WINDOW_FULL != 0);
        if matches!(segment, Some(Segment::Fill | Segment::Repeat)) {
            lost = true;
            if e.what & what::FIN_REPEAT != 0 && s == 0 && trouble.fin_repeat == 0 {
                trouble.fin_repeat = time;
            }
        }
        if e.what & what::ZERO_WINDOW != 0 {
            trouble.zero_windows[s] = trouble.zero_windows[s].saturating_add(1);
            trouble.closed[s].begin(time, true);
        } else if e.what & what::SMALL_WINDOW != 0 {
            trouble.small_windows[s] = trouble.small_windows[s].saturating_add(1);
            trouble.closed[s].begin(time, false);
        } else if e.what & what::WINDOW_OPEN != 0 {
            trouble.closed[s].end(time);
        }
        let turn = self.turn.get_or_insert_with(|| pool.turn());
        if lost {
            turn.loss(time);
        }
        if segment == Some(Segment::Refused) {
            turn.asked_anew(time);
        }
        if segment == Some(Segment::Fill) && e.what & what::PUSH != 0 {
            turn.push_at(s, e.seq.wrapping_add(e.length));
        }
        if e.what & what::ACK_UNSEEN != 0 {
            trouble.early_acks = trouble.early_acks.saturating_add(1);
        }
        if e.what & what::ACK_UNSEEN != 0 && s == 1 {
            let is_own = e.what & (what::GAP | what::BELOW | what::WILD) != 0;
            turn.acked_unseen(Unseen {
                time,
                from: (!is_own).then_some(e.expected),
                to: e.ack,
            });
        }
        if e.what & what::PROBE != 0 {
            turn.probe(s, e.seq);
            trouble.closed[1 - s].ask();
        }
        lost
    }

    /// The block that the engine did not make of the EVENT's data, because a FIN had come before it.
    pub fn late_block(&mut self, side: usize, e: &Event, time: u64) -> Option<(BlockEnd, Block)> {
        let late = self.extras.trouble_mut()?.losses[side & 1].late.take()?;
        let end = match (e.what & what::PUSH != 0, late.is_last) {
            (true, _) => BlockEnd::Push,
            (false, true) => BlockEnd::Fin,
            (false, false) => BlockEnd::Limit, // it goes on in the next
        };
        let block = Block {
            first: time,
            last: time,
            seq: late.seq,
            bytes: late.bytes,
            ack: e.ack,
            flight: 0,
            packets: 1,
            max_segment: e.length.min(u32::from(u16::MAX)) as u16,
            window: 0,
            ttl: e.ttl,
            known: u8::from(e.tcp_flags & tcp_flag::ACK != 0),
        };
        Some((end, block))
    }

    /// The receiver of `side`'s data is known to have acknowledged up to `ack`.
    pub fn acknowledge(&mut self, side: usize, ack: u32, time: u64) {
        self.tell_losses(side, |losses, path| losses.acknowledge(ack, time, path));
    }

    /// The same of an ACK that passed at `time`.
    pub fn acknowledged(&mut self, side: usize, ack: u32, time: u64) {
        self.tell_losses(side, |losses, path| losses.acknowledged(ack, None, time, path));
    }

    /// Something that matters only where there is trouble.
    fn tell_losses(&mut self, side: usize, tell: impl FnOnce(&mut Losses, Path)) {
        if self.extras.trouble().is_some() {
            let path = self.path(side);
            if let Some(trouble) = self.extras.trouble_mut() {
                tell(&mut trouble.losses[side & 1], path);
            }
        }
    }

    /// Counters of a direction's segments; zeros for a flow without trouble.
    pub fn counts(&self, side: usize) -> Counts {
        self.extras
            .trouble()
            .map_or_else(Counts::default, |t| t.losses[side & 1].counts)
    }

    /// Data packets of a side, repeats included; what the capture alone made is left out.
    pub fn data_packets(&self, side: usize) -> u64 {
        let counts = self.counts(side);
        let data = u64::from(self.directions[side & 1].data_segments) + counts.sent_without_new();
        // A retransmission that also brought new bytes is in the blocks already.
        data.max(counts.retransmitted_data)
    }

    /// A verdict is final.
    pub fn count_in_vain(&mut self, verdict: &Verdict) {
        let is_one = verdict.evidence.has(sign::SILENCE) && verdict.length > 0;
        if let Some(trouble) = self.extras.trouble_mut().filter(|_| is_one) {
            trouble.in_vain[usize::from(verdict.from_server)] += 1;
        }
    }

    /// Take out the verdicts on segments that are final.
    pub fn verdicts(&mut self) -> impl Iterator<Item = Verdict> + '_ {
        let (connection, segment) = (self.id, self.setup.payload());
        let (losses, errors) = self.extras.losses_mut().unzip();
        let errors = errors.flatten();
        losses
            .into_iter()
            .flatten()
            .enumerate()
            .flat_map(move |(side, losses)| {
                let acked = losses.acked();
                let is_too_large = move |entry: &Entry| {
                    entry.is_lost() && errors.is_some_and(|e| e.is_too_large(side, entry.range, segment))
                };
                losses.done.drain(..).map(move |entry| Verdict {
                    connection,
                    from_server: side == 1,
                    time: entry.time,
                    lost_at: entry.lost_at,
                    seq: entry.range.from,
                    length: entry.length,
                    class: entry.class,
                    cause: entry.cause,
                    place: entry.place,
                    evidence: entry.evidence.with_if(sign::TOO_LARGE, is_too_large(&entry)),
                    episode: entry.episode,
                    begins: entry.begins,
                    handshake: false,
                    smaller_arrived: entry.smaller_arrived,
                    arrived: acked.is_some_and(|acked| at_or_before(entry.range.to, acked)),
                    counted: entry.counted(),
                })
            })
    }

    /// The flow closed with these next expected sequence numbers, where known: settle what stayed
    /// open.
    /// `counting`: what the IP ids of either side do.
    pub fn settle(&mut self, next: [Option<u32>; 2], acknowledged: [bool; 2], counting: [Counting; 2]) {
        let (paths, last) = ([self.path(0), self.path(1)], self.last);
        let Some(trouble) = self.extras.trouble_mut() else {
            return;
        };
        let whole = [0, 1].map(|s| trouble.losses[s].is_whole());
        for (s, path) in paths.into_iter().enumerate() {
            trouble.closed[s].close(last);
            let losses = &mut trouble.losses[s];
            // Of a side that was never seen, silence says nothing.
            if self.directions[1 - s].packets > 0 {
                losses.mark_silence(trouble.heard[1 - s]);
            }
            if let Some(next) = next[s].filter(|_| acknowledged[s]) {
                losses.acknowledge(next, last, path);
            }
            losses.settle_ids(
                counting[s],
                counting[1 - s] == Counting::ByConnection,
                whole[1 - s],
                path,
            );
            losses.close(next[s], last, path);
        }
    }
}
