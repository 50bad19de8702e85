//! Packets that only one tap of a leg has: lost on the leg, missed by a capture, copied, or outside of what it covers.

use crate::Passage;
use crate::clock::Fit;
use crate::pair::{Fate, FlowPair, Hole, Matches, Pair, Side};
use crate::tap::{Digest, Grouped, LATE, Map, Tap, map};
use weir_record::tcp_flag;

/// A capture that proves to have missed a packet may have missed ACKs around it, ns.
const AROUND_MISSED: u64 = 1_000_000_000;
/// Packets before the other capture's first that still count as the same beginning.
const SAME_BEGINNING: usize = 16;
/// Timestamps take so many bytes of a segment.
const STAMPS: u32 = 12;
/// An ACK may be stamped before the data that it acknowledges, ns.
const DISORDER: u64 = 1_000_000;

/// Counts of one leg; index 0: forward, 1: backward, by the pair's order (first `a`, then `b`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub matched: u64,
    /// Packets that only `a` has, and only `b`.
    pub only: [u64; 2],
    /// Those that came through and those that did not, in packets as the wire had them.
    pub arrived: [u64; 2],
    pub lost: [u64; 2],
    pub duplicated: [u64; 2],
    /// Missed by the capture of `a`, and of `b`.
    pub missed: [u64; 2],
    pub undecided: u64,
    pub outside: u64,
    /// Of packets that the upstream capture has twice; see [`Self::settled`].
    pub copies: [Copies; 2],
}

/// Packets that a capture has twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copies {
    /// Copies that came through.
    pub arrived: u64,
    /// Of a packet and its copy the one that did not.
    pub gone: u64,
}

impl Tally {
    /// With the copies that did not come through: a network that makes copies loses few of them, those of a capture never were there.
    pub fn settled(&self) -> Self {
        let mut settled = *self;
        for (copies, lost) in self.copies.iter().zip(&mut settled.lost) {
            let of_network = copies.arrived > 2 * copies.gone;
            *if of_network { lost } else { &mut settled.undecided } += copies.gone;
        }
        settled
    }
}

/// What became of a packet that only one of two taps has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ruling {
    /// 0: tap `a` has it, 1: `b`.
    pub which: usize,
    /// Its place in that tap's window.
    pub at: u32,
    pub passage: Passage,
}

/// What was judged at once.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub tally: Tally,
    /// See [`Court::came`].
    pub came: [bool; 2],
    pub rulings: Vec<Ruling>,
}

impl Judgement {
    fn rule(&mut self, which: usize, at: u32, passage: Passage) {
        self.rulings.push(Ruling { which, at, passage });
    }
}

/// Everything that a judgement needs.
pub(crate) struct Court<'a> {
    pub pair: &'a Pair,
    pub a: &'a Tap,
    pub b: &'a Tap,
    pub groups: [&'a Grouped; 2],
    pub matches: &'a Matches,
    pub fit: &'a Fit,
    /// Packets whose time has come, of `a` and of `b`.
    pub ripe: [&'a [bool]; 2],
    /// The longest delays of packets from `a`, and from `b`, ns; 0: not known.
    pub longest: [u64; 2],
    /// Something came through from `a`, and from `b`, before: without that, the other capture has nothing of this direction, and
    /// tells nothing of it.
    pub came: [bool; 2],
    /// The clock of `b` less that of `a` and a delay, ns, where there is no fit.
    pub apart: Option<i64>,
    /// Some segments are cut or joined between the taps. Where none is, a link passes large ones as they are (that of a virtual machine
    /// does).
    pub is_cut: bool,
    /// Whether there is a tap beyond the other one, as tap 0 (`a`) or 1 (`b`) sees it.
    pub tap_beyond: [bool; 2],
    /// Whether a packet of tap 0 (`a`) or 1 (`b`) was seen by a tap beyond the other one.
    pub seen_beyond: &'a dyn Fn(usize, usize) -> bool,
}

/// Times of packets from one tap that came through: of the last one there, and of the first one at the other.
#[derive(Clone, Copy, Debug)]
struct Through {
    last_sent: u64,
    first_seen: u64,
}

/// One direction of a flow.
struct Direction<'a> {
    flow: &'a FlowPair,
    /// 0 if `a` is upstream, else 1.
    up: usize,
    /// Side of the sender, as each tap names it.
    sender: [usize; 2],
    /// Packets of the sender, and of the receiver, at both taps.
    packets: [Vec<u32>; 2],
    answers: [Vec<u32>; 2],
    /// Largest payload so far at both taps.
    largest: [u32; 2],
    /// The receiver's MSS, as the sender knows it; 0: not known.
    mss: u32,
    /// See [`Court::is_cut`].
    is_cut: bool,
}

impl Direction<'_> {
    /// How many segments so many bytes of a packet were, going by the largest that a tap has of this direction, and by what fits the MSS, as
    /// both taps may have joined them: one packet before segmentation offload is several after it.
    fn segments(&self, which: usize, bytes: u32, p: &Digest) -> u64 {
        let stamps = if p.timestamps() { STAMPS } else { 0 };
        let fits = if self.is_cut {
            self.mss.saturating_sub(stamps)
        } else {
            0
        };
        match [self.largest[which], fits].into_iter().filter(|size| *size > 0).min() {
            None => 1,
            Some(size) => u64::from(bytes.div_ceil(size).max(1)),
        }
    }

    /// The same of a whole packet: what fits the receiver's MSS is not cut, however little the tap has seen so far.
    fn segments_of(&self, which: usize, p: &Digest) -> u64 {
        if p.len <= self.mss {
            1
        } else {
            self.segments(which, p.len, p)
        }
    }
}

impl Court<'_> {
    fn tap(&self, which: usize) -> &Tap {
        if which == 0 { self.a } else { self.b }
    }

    const fn side(&self, which: usize) -> &Side {
        if which == 0 { &self.matches.a } else { &self.matches.b }
    }

    fn fate(&self, which: usize, at: u32) -> Fate {
        self.side(which).fate[at as usize]
    }

    fn is_in_both(&self, which: usize, at: u32) -> bool {
        self.side(which).is_in_both(at as usize)
    }

    fn partner(&self, which: usize, at: u32) -> usize {
        self.side(which).partner[at as usize] as usize
    }

    fn waits(&self, which: usize, at: u32) -> bool {
        let digest = &self.tap(which).window[at as usize];
        self.ripe[which][at as usize] && digest.done & self.pair.bit == 0
    }

    /// A time of one tap on the clock of the other.
    fn other_clock(&self, which: usize, time: u64) -> u64 {
        let apart = self.apart.unwrap_or(0);
        if which == 0 {
            time.wrapping_add_signed(self.fit.offset(time).unwrap_or(apart))
        } else {
            let before = self.fit.before(time);
            before.unwrap_or_else(|| time.wrapping_add_signed(-apart))
        }
    }

    /// Judge all that is ripe.
    pub fn judge(&self) -> Judgement {
        let mut out = Judgement::default();
        let mut flows: Vec<&FlowPair> = self.pair.flows.values().collect();
        flows.sort_unstable_by_key(|flow| flow.a);
        let through = self.through();
        out.came = [0, 1].map(|up: usize| self.came[up] || through[up].last_sent > 0);
        // Both directions without a fit: what is taken for one packet is two, or the taps are not of one path. One without
        // anything that tells which tap is first: it may be lost behind the one, or missed by the other.
        let has_order = self.pair.votes != [0; 2];
        let tells = out
            .came
            .map(|came| came && !(self.apart.is_some() && (out.came == [true; 2] || !has_order)));
        // Times at which each capture proved to miss packets; pure ACKs wait for them.
        let mut missed = [Vec::new(), Vec::new()];
        let mut acks: Vec<(usize, u32, u64)> = Vec::new();
        for flow in flows {
            for side in 0..2 {
                let direction = self.direction(flow, side);
                self.upstream(&direction, (&through, tells), &mut out, &mut missed, &mut acks);
                self.downstream(&direction, (&through, tells), &mut out, &mut missed);
            }
        }
        self.never_arrived(&through, &mut out);
        for times in &mut missed {
            times.sort_unstable();
        }
        for (up, at, time) in acks {
            let down = 1 - up;
            let from = missed[down].partition_point(|&m| m < time.saturating_sub(AROUND_MISSED));
            if missed[down].get(from).is_some_and(|&m| m <= time + AROUND_MISSED) {
                out.tally.undecided += 1;
                out.rule(up, at, Passage::Undecided);
            } else {
                out.tally.lost[up] += 1;
                out.rule(up, at, Passage::Lost);
            }
        }
        out
    }

    /// What came through from `a`, and from `b`.
    fn through(&self) -> [Through; 2] {
        let mut through = [Through {
            last_sent: 0,
            first_seen: u64::MAX,
        }; 2];
        for (at, partner) in self.matches.a.in_both() {
            let p = &self.a.window[at];
            let Some(flow) = self.pair.flows.get(&p.flow) else {
                continue;
            };
            let there = self.b.window[partner].time;
            let up = usize::from(!self.pair.a_upstream(flow, p.side()));
            let (sent, seen) = if up == 0 { (p.time, there) } else { (there, p.time) };
            through[up].last_sent = through[up].last_sent.max(sent);
            through[up].first_seen = through[up].first_seen.min(seen);
        }
        through
    }

    /// Whether a packet that tap `up` has of `time`, which is `there` on the clock of the other tap, may have arrived there when that capture was over.
    fn may_come_after_end(&self, up: usize, (time, there): (u64, u64), through: &[Through; 2]) -> bool {
        let last = self.tap(1 - up).last;
        there > last || time > through[up].last_sent && there.saturating_add(self.longest[up]) > last
    }

    /// Whether a packet that the other tap has of `time`, which is `there` on the clock of tap `up`, may have passed that before its capture began.
    fn may_have_left_before_beginning(&self, up: usize, (time, there): (u64, u64), through: &[Through; 2]) -> bool {
        let before = |first: u64| {
            there < first || time < through[up].first_seen && there.saturating_sub(self.longest[up]) < first
        };
        self.tap(up).first.is_none_or(before)
    }

    /// Connections that only one tap has, of hosts whose other connections both have, and that nobody at the far side
    /// answered: their packets went in and did not come out. Answered ones took another way.
    fn never_arrived(&self, through: &[Through; 2], out: &mut Judgement) {
        let hosts = |which: usize, place: u32| {
            let flow = self.tap(which).flows[place as usize].as_ref()?;
            Some((flow.client.0, flow.server.0))
        };
        for (which, joined) in [
            (0, self.pair.flows.values().map(|f| f.a).collect::<Vec<u32>>()),
            (1, self.pair.flows.values().map(|f| f.b).collect()),
        ] {
            let mut known: Map<_, bool> = map();
            for flow in self.pair.flows.values() {
                let place = if which == 0 { flow.a } else { flow.b };
                // Whether its client is on this tap's side of the leg.
                let near_a = self.pair.client_likely_near_a(flow);
                known.extend(hosts(which, place).map(|hosts| (hosts, near_a == (which == 0))));
            }
            let mut is_joined = vec![false; self.tap(which).flows.len()];
            for place in joined {
                is_joined[place as usize] = true;
            }
            for place in (0..is_joined.len() as u32).filter(|&place| !is_joined[place as usize]) {
                let Some(&near) = hosts(which, place).and_then(|hosts| known.get(&hosts)) else {
                    continue;
                };
                let Some(flow) = self.tap(which).flows[place as usize].as_ref() else {
                    continue;
                };
                let other = self.tap(1 - which);
                // An answer that the other capture has not been read up to may be to a SYN that it will have.
                let answered = flow
                    .answered
                    .is_some_and(|time| other.ended || self.other_clock(which, time) <= other.last);
                // Only clients on this side, and only while nobody answered.
                if !near || answered {
                    continue;
                }
                for &at in self.groups[which].of(place) {
                    if self.waits(which, at) {
                        let time = self.tap(which).window[at as usize].time;
                        let there = self.other_clock(which, time);
                        let ends = self.may_come_after_end(which, (time, there), through);
                        out.tally.only[which] += 1;
                        if other.first.is_some_and(|first| first <= there) && !ends {
                            out.tally.lost[which] += 1;
                            out.rule(which, at, Passage::Lost);
                        } else {
                            out.tally.outside += 1;
                            out.rule(which, at, Passage::Outside);
                        }
                    }
                }
            }
        }
    }

    fn direction<'f>(&self, flow: &'f FlowPair, side: usize) -> Direction<'f> {
        let up = usize::from(!self.pair.a_upstream(flow, side));
        let sender = [side, side ^ usize::from(flow.flipped)];
        let of = |which: usize, side: usize| {
            let place = if which == 0 { flow.a } else { flow.b };
            let window = &self.tap(which).window;
            let group = self.groups[which].of(place).iter().copied();
            group
                .filter(|&at| window[at as usize].side() == side)
                .collect::<Vec<u32>>()
        };
        let packets = [of(0, sender[0]), of(1, sender[1])];
        let at_taps = [0, 1].map(|which: usize| {
            let place = if which == 0 { flow.a } else { flow.b };
            self.tap(which).flows[place as usize].as_ref()
        });
        let largest = [0, 1].map(|which: usize| at_taps[which].map_or(0, |flow| flow.largest[sender[which]]));
        Direction {
            flow,
            up,
            sender,
            packets,
            largest,
            is_cut: self.is_cut,
            mss: at_taps[up].map_or(0, |flow| u32::from(flow.mss[1 - sender[up]])),
            answers: [of(0, 1 - sender[0]), of(1, 1 - sender[1])],
        }
    }

    fn is_of(&self, d: &Direction<'_>, which: usize, at: u32) -> bool {
        let p = &self.tap(which).window[at as usize];
        p.flow == [d.flow.a, d.flow.b][which] && p.side() == d.sender[which]
    }

    /// Packets that went in and did not come out.
    fn upstream(
        &self,
        d: &Direction<'_>,
        (through, tells): (&[Through; 2], [bool; 2]),
        out: &mut Judgement,
        missed: &mut [Vec<u64>; 2],
        acks: &mut Vec<(usize, u32, u64)>,
    ) {
        let (up, down) = (d.up, 1 - d.up);
        let window = &self.tap(up).window;
        let due = d.packets[up].iter().filter(|&&at| self.waits(up, at));
        let arrived = due.filter(|&&at| self.is_in_both(up, at));
        let arrived = arrived.map(|&at| d.segments_of(down, &window[at as usize]));
        let arrived: u64 = arrived.sum();
        let alone: Vec<u32> = d.packets[up]
            .iter()
            .copied()
            .filter(|&at| self.waits(up, at) && !self.is_in_both(up, at))
            .collect();
        let holes: Vec<&Hole> = self.matches.holes[up]
            .iter()
            .filter(|hole| self.is_of(d, up, hole.at) && self.waits(up, hole.at))
            .collect();
        let lacking = |hole: &&Hole| d.segments(down, hole.to.wrapping_sub(hole.from), &window[hole.at as usize]);
        out.tally.arrived[up] += arrived.saturating_sub(holes.iter().map(lacking).sum());
        if alone.is_empty() && holes.is_empty() {
            return;
        }
        let evidence = Evidence::collect(self, d);
        // Transmissions that a tap beyond has seen arrived, whenever they are judged: no other one of these bytes needs to have.
        let arrived = d.packets[up]
            .iter()
            .filter(|&&at| !self.is_in_both(up, at) && (self.seen_beyond)(up, at as usize));
        let range_of = |p: &Digest| (evidence.distance(up, p.seq), evidence.distance(up, p.end()));
        let mut claims: Vec<(i64, i64)> = arrived.map(|&at| range_of(&window[at as usize])).collect();
        // The latest first: of several transmissions it is the last that arrived.
        for &at in alone.iter().rev() {
            let p = &window[at as usize];
            out.tally.only[up] += 1;
            let there = self.other_clock(up, p.time);
            let takes_room = p.end() != p.seq;
            let range = range_of(p);
            let segments = d.segments_of(down, p);
            if !tells[up] {
                out.tally.undecided += 1;
                out.rule(up, at, Passage::Undecided);
            } else if self.before_beginning(up, d, at, there) || self.may_come_after_end(up, (p.time, there), through) {
                out.tally.outside += 1;
                out.rule(up, at, Passage::Outside);
            } else if (self.seen_beyond)(up, at as usize) {
                out.tally.missed[down] += 1;
                out.rule(up, at, Passage::Missed);
                missed[down].push(there);
            } else if self.is_too_much(d, at) {
                out.tally.copies[up].gone += segments;
                out.rule(up, at, Passage::Undecided);
            } else if !takes_room && !self.tap_beyond[up] {
                acks.push((up, at, there));
            } else if takes_room && evidence.delivered_unseen(range, there, &mut claims) {
                out.tally.missed[down] += segments;
                out.rule(up, at, Passage::Missed);
                missed[down].push(there);
            } else {
                out.tally.lost[up] += if takes_room { segments } else { 1 };
                out.rule(up, at, Passage::Lost);
            }
        }
        for hole in holes {
            let large = &window[hole.at as usize];
            let segments = lacking(&hole);
            let there = self.other_clock(up, large.time);
            let range = (evidence.distance(up, hole.from), evidence.distance(up, hole.to));
            if !tells[up] {
                out.tally.undecided += segments;
            } else if evidence.delivered_unseen(range, there, &mut claims) {
                out.tally.missed[down] += segments;
                missed[down].push(there);
            } else {
                out.tally.lost[up] += segments;
            }
        }
    }

    /// Of a packet and its copy at the upstream tap one may have come through: this is the other, which the capture, or the network,
    /// had too much.
    fn is_too_much(&self, d: &Direction<'_>, at: u32) -> bool {
        let window = &self.tap(d.up).window;
        let p = &window[at as usize];
        let latest = LATE[LATE.len() - 1];
        let place = d.packets[d.up].partition_point(|&k| k < at);
        let other = if p.is_copy() {
            let before = d.packets[d.up][..place].iter().rev().map(|&k| &window[k as usize]);
            let mut near = before.take_while(|q| q.time.saturating_add(latest) >= p.time);
            near.find(|q| q.is_copy_of(p))
        } else {
            let behind = d.packets[d.up][place..]
                .iter()
                .skip(1)
                .map(|&k| (k, &window[k as usize]));
            let mut near = behind.take_while(|(_, q)| q.time <= p.time.saturating_add(latest));
            near.find(|(k, q)| q.is_copy() && q.is_copy_of(p) && self.is_in_both(d.up, *k))
                .map(|(_, q)| q)
        };
        other.is_some_and(|q| {
            let is_of_capture =
                self.tap(d.up).is_mirrored() || !p.is_alone_of_its_kind() && self.tap(d.up).has_copies();
            p.ip_id != 0 || is_of_capture || self.is_too_soon(p, p.time.abs_diff(q.time))
        })
    }

    /// Nobody sends this packet again, with all as it was, so soon, ns: a SYN is repeated by a timer, data no sooner than its receiver can have
    /// asked for it. ACKs and RSTs may be alike.
    fn is_too_soon(&self, p: &Digest, after: u64) -> bool {
        if p.flags & tcp_flag::SYN != 0 {
            return true;
        }
        p.end() != p.seq && after < self.fit.least_round_trip()
    }

    /// The downstream capture began later. Two captures that begin together differ by what was lost at their very
    /// beginning: then a packet that was sent again counts.
    fn before_beginning(&self, up: usize, d: &Direction<'_>, at: u32, there: u64) -> bool {
        let (tap, other) = (self.tap(up), self.tap(1 - up));
        let Some(first) = other.first else { return true };
        if there >= first {
            return false;
        }
        let p = &tap.window[at as usize];
        let earlier = tap.window.iter().take(SAME_BEGINNING + 1);
        let many = earlier.filter(|p| self.other_clock(up, p.time) < first).count() > SAME_BEGINNING;
        let again = d.packets[up].iter().any(|&k| {
            let q = &tap.window[k as usize];
            k > at && q.seq == p.seq && q.end() != q.seq
        });
        many || !again
    }

    /// Packets that came out and did not go in.
    fn downstream(
        &self,
        d: &Direction<'_>,
        (through, tells): (&[Through; 2], [bool; 2]),
        out: &mut Judgement,
        missed: &mut [Vec<u64>; 2],
    ) {
        let (up, down) = (d.up, 1 - d.up);
        let window = &self.tap(down).window;
        for &at in &d.packets[down] {
            let fate = self.fate(down, at);
            let due = if fate == Fate::Copy {
                // With the packet that it is a copy of.
                self.ripe[up][self.partner(down, at)] && window[at as usize].done & self.pair.bit == 0
            } else {
                self.waits(down, at)
            };
            if !due {
                continue;
            }
            if fate == Fate::Copy {
                out.tally.only[down] += 1;
                out.tally.duplicated[up] += 1;
                out.rule(down, at, Passage::Copied);
            } else if fate == Fate::Alone {
                out.tally.only[down] += 1;
                if (self.seen_beyond)(down, at as usize) {
                    continue; // The leg before has counted it.
                }
                let time = window[at as usize].time;
                let there = self.other_clock(down, time);
                if !tells[up] {
                    out.tally.undecided += 1;
                    out.rule(down, at, Passage::Undecided);
                } else if self.may_have_left_before_beginning(up, (time, there), through) || there > self.tap(up).last {
                    out.tally.outside += 1;
                    out.rule(down, at, Passage::Outside);
                } else {
                    out.tally.missed[up] += 1;
                    out.rule(down, at, Passage::Missed);
                    missed[up].push(there);
                }
            }
        }
        for hole in &self.matches.holes[down] {
            if self.is_of(d, down, hole.at) && self.waits(down, hole.at) {
                let large = &window[hole.at as usize];
                let segments = d.segments(up, hole.to.wrapping_sub(hole.from), large);
                if !tells[up] {
                    out.tally.undecided += segments;
                    continue;
                }
                out.tally.missed[up] += segments;
                missed[up].push(self.other_clock(down, large.time));
            }
        }
    }
}

/// What is known of a direction: its data at the downstream tap and the receiver's acknowledgments at both. Sequence numbers are
/// distances from a base there.
struct Evidence {
    base: u32,
    /// What to add to a sequence number of each tap to have that of the downstream one.
    shift: [u32; 2],
    /// From, to, time; ascending.
    data: Vec<(i64, i64, u64)>,
    longest: i64,
    /// Highest acknowledgment so far, time; both ascending.
    acked: Vec<(i64, u64)>,
    /// All before it has been seen and has left the window.
    removed_to: Option<i64>,
}

impl Evidence {
    fn collect(court: &Court<'_>, d: &Direction<'_>) -> Self {
        let (up, down) = (d.up, 1 - d.up);
        let delta = d.flow.delta(d.sender[0]);
        let mut shift = [0; 2];
        shift[up] = if up == 0 { delta } else { delta.wrapping_neg() };
        let tap = court.tap(down);
        let first = d.packets[up]
            .first()
            .map_or(0, |&at| court.tap(up).window[at as usize].seq);
        let base = first.wrapping_add(shift[up]);
        let distance = |seq: u32| i64::from(seq.wrapping_sub(base).cast_signed());
        let mut data: Vec<_> = d.packets[down]
            .iter()
            .map(|&at| &tap.window[at as usize])
            .filter(|p: &&Digest| p.end() != p.seq)
            .map(|p| (distance(p.seq), distance(p.end()), p.time))
            .collect();
        data.sort_unstable();
        let longest = data.iter().map(|p| p.1 - p.0).max().unwrap_or(0);
        // What the upstream tap has of them passed the downstream one, whether that has it or not. As far as that has been read: it
        // may have the data, too. A clock that was set does not tell what was before what.
        let is_even = court.fit.pieces() == 1 && court.a.clamped + court.b.clamped == 0;
        let mut answers: Vec<(u64, i64)> = Vec::new();
        for (which, answers_here) in d.answers.iter().enumerate() {
            let from = court.tap(which);
            for &at in answers_here {
                let p = &from.window[at as usize];
                let time = if which == up {
                    court.other_clock(up, p.time)
                } else {
                    p.time
                };
                let is_known = which == down || is_even && time <= tap.last;
                if p.flags & tcp_flag::ACK != 0 && p.flags & tcp_flag::RST == 0 && is_known {
                    answers.push((time, distance(p.ack.wrapping_add(shift[which]))));
                }
            }
        }
        answers.sort_unstable();
        let mut acked: Vec<(i64, u64)> = Vec::new();
        for (time, ack) in answers {
            if acked.last().is_none_or(|&(highest, _)| ack > highest) {
                acked.push((ack, time));
            }
        }
        let place = if down == 0 { d.flow.a } else { d.flow.b };
        let removed_to = tap.flows[place as usize]
            .as_ref()
            .and_then(|flow| flow.removed_to[d.sender[down]])
            .map(distance);
        Self {
            base,
            shift,
            data,
            longest,
            acked,
            removed_to,
        }
    }

    fn distance(&self, which: usize, seq: u32) -> i64 {
        i64::from(
            seq.wrapping_add(self.shift[which])
                .wrapping_sub(self.base)
                .cast_signed(),
        )
    }

    /// Whether the receiver acknowledged these bytes before the downstream tap had seen any copy of them, and this is
    /// the transmission that brought them. `sent` is its time on the downstream clock.
    fn delivered_unseen(&self, range: (i64, i64), sent: u64, claims: &mut Vec<(i64, i64)>) -> bool {
        let reached = self.acked.partition_point(|&(ack, _)| ack < range.1);
        let Some(&(_, time)) = self.acked.get(reached) else {
            return false;
        };
        if time.saturating_add(DISORDER) < sent || self.removed_to.is_some_and(|to| to >= range.1) {
            return false;
        }
        let mut covered = range.0;
        let begin = self.data.partition_point(|p| p.0 < range.0 - self.longest);
        for &(from, to, at) in self.data[begin..].iter().take_while(|p| p.0 < range.1) {
            if at <= time.saturating_add(DISORDER) && from <= covered {
                covered = covered.max(to);
            }
        }
        let claimed = claims.iter().any(|c| c.0 < range.1 && range.0 < c.1);
        if covered >= range.1 || claimed {
            return false;
        }
        claims.push(range);
        true
    }
}
