//! Two taps: which flow of one is which flow of the other, and which packet which.

use std::cmp::{Ordering, Reverse};
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use weir_record::tcp_flag;

use crate::clock::{Clock, MAX_SLOPE};
use crate::tap::{Digest, End, Grouped, Map, NONE, Tap, TapFlow, map};

/// Flags that say what a packet is; boxes that merge segments may change PSH, routers the ECN flags.
const IDENTITY: u8 = tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST | tcp_flag::ACK;
/// Copies that follow each other by less are copies made by the network, ns.
const COPY: u64 = 3_000_000;
/// Hosts whose side of the leg is kept.
const HOSTS: usize = 1 << 16;
/// A header field says the same at both taps in so many of twenty packets: it is trusted to tell repeats apart.
const TRUSTED_OF_20: u64 = 19;

/// Packets that two flows with other addresses have in common are no coincidence, if so many are; and of so many it is looked for, or up to
/// twice as many.
const COMMON: u64 = 3;
const KEYS: usize = 1 << 16;

/// What became of a packet in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Only in this capture.
    #[default]
    Alone,
    /// In both.
    Matched,
    /// Its bytes are in packets of other sizes in the other capture; the partner is the first of them.
    Pieces,
    /// A further copy of a packet that is in both; the partner is the other capture's first.
    Copy,
}

/// How sure it is that two packets are the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trust {
    /// There are several alike, not as many at one tap as at the other: it may be another one of them.
    Guess,
    /// The first of several copies, not as many at one tap as at the other: right if the capture upstream missed none.
    First,
    /// There are several alike, as many at both taps.
    Counted,
    /// No other is like it.
    #[default]
    Alone,
}

/// Partner of each packet of a window, or [`NONE`], and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub partner: Vec<u32>,
    pub fate: Vec<Fate>,
}

impl Side {
    fn new(len: usize) -> Self {
        Self {
            partner: vec![NONE; len],
            fate: vec![Fate::Alone; len],
        }
    }

    /// Whether a packet is in both captures.
    pub fn is_in_both(&self, at: usize) -> bool {
        matches!(self.fate[at], Fate::Matched | Fate::Pieces)
    }

    /// Packets that are in both captures, with their partners.
    pub fn in_both(&self) -> impl Iterator<Item = (usize, usize)> {
        let partners = self.partner.iter().enumerate();
        let partners = partners.map(|(at, &partner)| (at, partner as usize));
        partners.filter(|&(at, _)| self.is_in_both(at))
    }

    /// A further copy of the packet whose partner at the other tap this is.
    fn copy(&mut self, at: u32, original: Option<u32>) {
        if let Some(original) = original {
            self.fate[at as usize] = Fate::Copy;
            self.partner[at as usize] = original;
        }
    }
}

/// Part of a large segment that did not come out at the other tap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    /// Place of the large segment in its window.
    pub at: u32,
    /// Sequence numbers, as at the tap of the large segment.
    pub from: u32,
    pub to: u32,
}

/// The TSvals of the first SYNs are so far apart that they are of two connections, not of a SYN that was sent again: eight
/// seconds in units of 1 ms, the most frequent; a fourth SYN comes after seven.
fn is_later(x: &TapFlow, y: &TapFlow) -> bool {
    const MOST: u32 = 1 << 13;
    match (x.syn_mark, y.syn_mark) {
        (Some((one, _)), Some((other, _))) if one != 0 && other != 0 => {
            (one.wrapping_sub(other) as i32).unsigned_abs() > MOST
        }
        _ => false,
    }
}

/// One comparison of two windows.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    pub a: Side,
    pub b: Side,
    /// Of packets of `a` that are in both.
    pub trust: Vec<Trust>,
    /// Holes in large segments of `a` and of `b`.
    pub holes: [Vec<Hole>; 2],
}

impl Matches {
    /// The clock of `b` less that of `a`, ns, as far as matched packets tell it without a round trip: the median of the
    /// differences, with a delay; 0 of none.
    pub fn apart(&self, a: &Tap, b: &Tap) -> i64 {
        let difference = |(x, y): (usize, usize)| b.window[y].time.wrapping_sub(a.window[x].time) as i64;
        let mut differences: Vec<i64> = self.a.in_both().map(difference).collect();
        let middle = differences.len() / 2;
        match differences.is_empty() {
            true => 0,
            false => *differences.select_nth_unstable(middle).1,
        }
    }
}

/// How often a header field was the same at both taps.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    equal: u64,
    different: u64,
}

impl Tally {
    fn add(&mut self, equal: bool) {
        *(if equal { &mut self.equal } else { &mut self.different }) += 1;
    }

    fn trusted(self) -> bool {
        self.equal > 0 && self.equal * (20 - TRUSTED_OF_20) >= self.different * TRUSTED_OF_20
    }
}

/// What a box between the taps leaves as it is.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    ip_ids: Tally,
    stamps: Tally,
    windows: Tally,
    sacks: Tally,
}

/// A flow that both taps saw.
#[derive(Clone, Debug)]
pub(crate) struct FlowPair {
    pub a: u32,
    pub b: u32,
    /// One tap takes for the client what the other takes for the server.
    pub flipped: bool,
    /// Sequence numbers at `b` minus those at `a`, by the side as `a` names it.
    delta: [u32; 2],
    /// Client and server as `a` names them.
    hosts: [[u8; 16]; 2],
    /// The client is on `a`'s side of the leg, as its own packets show; `None`: they do not.
    client_near_a: Option<bool>,
    /// What its packets seem to show, within the steps of the stamps, has been counted.
    is_counted: bool,
    pub matched: u64,
    /// Times at `a` and at `b` of the first packet that both have.
    pub first: Option<[u64; 2]>,
}

impl FlowPair {
    /// Sequence numbers of a side (as `a` names it) at `b` minus those at `a`.
    pub fn delta(&self, side: usize) -> u32 {
        self.delta[side]
    }

    /// A box between the taps rewrites sequence numbers.
    pub fn rewritten(&self) -> bool {
        self.delta != [0, 0]
    }
}

/// Two taps and what they have in common.
#[derive(Debug)]
pub(crate) struct Pair {
    /// Taps, the one with the smaller number first.
    pub a: usize,
    pub b: usize,
    /// This pair's bit in [`Digest::done`].
    pub bit: u16,
    pub flows: Map<u32, FlowPair>,
    /// Place in `b` to place in `a`.
    reverse: Map<u32, u32>,
    kept: Kept,
    /// Flows of which both taps saw both SYNs, by their initial sequence numbers.
    beginnings: Tally,
    pub clock: Clock,
    /// Some packet was in both.
    pub has_common: bool,
    /// Matched packets of flows whose client is on `a`'s side, and on `b`'s.
    pub votes: [u64; 2],
    /// By host: what shows it on `a`'s side, and on `b`'s, in ns of round trips. At most [`HOSTS`].
    hosts: Map<[u8; 16], [u64; 2]>,
}

impl Pair {
    pub fn new(a: usize, b: usize, bit: u16) -> Self {
        Self {
            a,
            b,
            bit,
            flows: map(),
            reverse: map(),
            kept: Kept::default(),
            beginnings: Tally::default(),
            clock: Clock::new(),
            has_common: false,
            votes: [0; 2],
            hosts: map(),
        }
    }

    /// Steps of the stamps of both taps together, ns.
    pub fn coarse(&self, taps: &[Tap]) -> u64 {
        taps[self.a].coarse() + taps[self.b].coarse()
    }

    /// Most clients are on `a`'s side.
    pub fn a_first(&self) -> bool {
        self.votes[0] >= self.votes[1]
    }

    /// The client of a flow is on `a`'s side of the leg. Where its own packets do not show it, as without an answer,
    /// other flows of its hosts do; `None`: nothing does.
    pub fn client_near_a(&self, flow: &FlowPair) -> Option<bool> {
        flow.client_near_a.or_else(|| {
            let [client, server] = flow
                .hosts
                .map(|host| self.hosts.get(&host).copied().unwrap_or_default());
            let (near_a, near_b) = (client[0] + server[1], client[1] + server[0]);
            (near_a != near_b).then_some(near_a > near_b)
        })
    }

    /// The same, or where most clients are.
    pub fn client_likely_near_a(&self, flow: &FlowPair) -> bool {
        self.client_near_a(flow).unwrap_or(self.a_first())
    }

    /// Whether packets of a side (as `a` names it) pass `a` before `b`.
    pub fn a_upstream(&self, flow: &FlowPair, side: usize) -> bool {
        self.client_likely_near_a(flow) == (side == 0)
    }

    fn join(&mut self, a: u32, b: u32, flows: (&TapFlow, &TapFlow), flipped: bool) {
        let delta = [0, 1].map(
            |side: usize| match (flows.0.isn[side], flows.1.isn[side ^ usize::from(flipped)]) {
                (Some(a), Some(b)) => b.wrapping_sub(a),
                _ => 0,
            },
        );
        if let ([Some(_), Some(_)], [Some(_), Some(_)]) = (flows.0.isn, flows.1.isn) {
            self.beginnings.add(delta == [0, 0]);
        }
        self.reverse.insert(b, a);
        self.flows.insert(
            a,
            FlowPair {
                a,
                b,
                flipped,
                delta,
                hosts: [flows.0.client.0, flows.0.server.0],
                client_near_a: None,
                is_counted: false,
                matched: 0,
                first: None,
            },
        );
    }

    /// Place in `a` of a flow of `b`.
    pub fn a_of(&self, b: u32) -> Option<u32> {
        self.reverse.get(&b).copied()
    }

    /// Forget a flow; the places are of tap `a`.
    pub fn part(&mut self, a: u32) -> Option<FlowPair> {
        let flow = self.flows.remove(&a)?;
        self.reverse.remove(&flow.b);
        Some(flow)
    }

    /// Find partners for flows that have none.
    pub fn join_flows(&mut self, a: &Tap, b: &Tap) {
        let mut open_a = open(a, |place| self.flows.contains_key(&place));
        let mut open_b = open(b, |place| self.reverse.contains_key(&place));
        if open_a.is_empty() || open_b.is_empty() {
            return;
        }
        // The same addresses and ports, and the same beginning.
        let same = |x: &TapFlow, y: &TapFlow| begins_alike(x, y)?.then(|| is_flipped(x, y));
        self.join_by(a, b, &mut open_a, &mut open_b, |f| Some(ends(f)), same);
        // Other addresses, the same beginning: address translation.
        let by_both = |f: &TapFlow| Some((f.isn[0]?, f.isn[1]?));
        self.join_by(a, b, &mut open_a, &mut open_b, by_both, |_, _| Some(false));
        // Both: the SYN's timestamp and IP id, which neither changes. Where sequence numbers come through as they were, they tell
        // others apart from here on.
        let is_kept = self.beginnings.equal > 0;
        let is_other = |x: &TapFlow, y: &TapFlow| is_kept && begins_alike(x, y) == Some(false);
        let same_roles = |x: &TapFlow, y: &TapFlow| (!is_other(x, y)).then_some(false);
        let by_mark = |f: &TapFlow| f.syn_mark.filter(|mark| mark.0 != 0 && mark.1 != 0);
        self.join_by(a, b, &mut open_a, &mut open_b, by_mark, same_roles);
        // IPv6 has no IP id: the timestamp with the sizes of requests and responses, if no other flow has both.
        let by_stamp = |f: &TapFlow| {
            let stamp = f.syn_mark.map(|mark| mark.0).filter(|stamp| *stamp != 0)?;
            Some((stamp, f.ends.fingerprint()?))
        };
        let alone = unique(a, &open_a, b, &open_b, by_stamp);
        self.join_by(a, b, &mut open_a, &mut open_b, alone, same_roles);
        // The same addresses and ports, the beginning not seen by both, and sequence numbers that meet.
        let meet = |x: &TapFlow, y: &TapFlow| (begins_alike(x, y).is_none() && meet(x, y)).then(|| is_flipped(x, y));
        self.join_by(a, b, &mut open_a, &mut open_b, |f| Some(ends(f)), meet);
        self.join_by_packets(a, b, &mut open_a, &mut open_b);
        // The same addresses and ports, another beginning: a box that rewrites sequence numbers.
        let is_rewritten = self.beginnings.different > 0;
        let rewritten = |x: &TapFlow, y: &TapFlow| {
            let is_known = is_rewritten && !is_later(x, y) || has_syn_of(x, y);
            (!is_kept && x.client == y.client && is_known).then_some(false)
        };
        self.join_by(a, b, &mut open_a, &mut open_b, |f| Some(ends(f)), rewritten);
        let may_be = |x: &TapFlow, y: &TapFlow| (!is_other(x, y) && !denies(x, y)).then_some(false);
        let by_port = |f: &TapFlow| Some((f.isn[0]?, f.server.1));
        self.join_by(a, b, &mut open_a, &mut open_b, by_port, may_be);
        // Sizes of requests and responses, if no other flow has them.
        let alone = unique(a, &open_a, b, &open_b, |f: &TapFlow| f.ends.fingerprint());
        // Without a SYN each tap takes one end for the client as the ports have it, which are others at the other tap.
        let by_opener = |x: &TapFlow, y: &TapFlow| may_be(x, y).map(|_| x.ends.opener() != y.ends.opener());
        self.join_by(a, b, &mut open_a, &mut open_b, alone, by_opener);
    }

    /// Join flows of other addresses whose beginning not both taps saw, by packets that both have: sequence and acknowledgment number together
    /// are of one connection alone.
    fn join_by_packets(&mut self, a: &Tap, b: &Tap, open_a: &mut Vec<u32>, open_b: &mut Vec<u32>) {
        let open = |tap: &Tap, places: &[u32]| {
            let mut open = vec![false; tap.flows.len()];
            places.iter().for_each(|&place| open[place as usize] = true);
            open
        };
        let (mut is_open_a, mut is_open_b) = (open(a, open_a), open(b, open_b));
        let of = |tap: &Tap, is_open: &[bool]| tap.window.iter().filter(|p| is_open[p.flow as usize]).count();
        // Of many packets some are enough, the same ones at both taps.
        let part = (of(a, &is_open_a).max(of(b, &is_open_b)) / KEYS).next_power_of_two() as u64;
        let key = |p: &Digest| {
            let is_plain = p.flags & (IDENTITY ^ tcp_flag::FIN) == tcp_flag::ACK;
            let key = (p.seq, p.ack);
            (is_plain && FixedState::default().hash_one(key) % part == 0).then_some(key)
        };
        // The flow of `b`, and the side; `None`: of more than one.
        let mut known: Map<(u32, u32), Option<(u32, usize)>> = map();
        for p in b.window.iter().filter(|p| is_open_b[p.flow as usize]) {
            if let Some(key) = key(p) {
                let of = Some((p.flow, p.side()));
                let kept = known.entry(key).or_insert(of);
                *kept = kept.filter(|_| *kept == of);
            }
        }
        let mut common: Map<(u32, u32, bool), u64> = map();
        for p in a.window.iter().filter(|p| is_open_a[p.flow as usize]) {
            // Each once: it may be sent again.
            if let Some((other, side)) = key(p).and_then(|key| known.remove(&key)).flatten() {
                *common.entry((p.flow, other, side != p.side())).or_default() += 1;
            }
        }
        let mut common: Vec<_> = common.into_iter().filter(|&(_, count)| count >= COMMON).collect();
        common.sort_unstable_by_key(|&(flows, count)| (Reverse(count), flows));
        for ((place_a, place_b, flipped), _) in common {
            if let (Some(x), Some(y)) = (flow(a, place_a), flow(b, place_b))
                && begins_alike(x, y).is_none()
                && is_open_a[place_a as usize]
                && is_open_b[place_b as usize]
            {
                (is_open_a[place_a as usize], is_open_b[place_b as usize]) = (false, false);
                self.join(place_a, place_b, (x, y), flipped);
            }
        }
        open_a.retain(|&place| is_open_a[place as usize]);
        open_b.retain(|&place| is_open_b[place as usize]);
    }

    /// Join flows with equal keys, in the order of time, where `fits` says how.
    fn join_by<K: std::hash::Hash + Eq>(
        &mut self,
        a: &Tap,
        b: &Tap,
        open_a: &mut Vec<u32>,
        open_b: &mut Vec<u32>,
        key: impl Fn(&TapFlow) -> Option<K>,
        fits: impl Fn(&TapFlow, &TapFlow) -> Option<bool>,
    ) {
        let mut waiting: Map<K, Vec<u32>> = map();
        for &place in open_b.iter() {
            if let Some(key) = flow(b, place).and_then(&key) {
                waiting.entry(key).or_default().push(place);
            }
        }
        let mut taken: Map<u32, ()> = map();
        open_a.retain(|&place_a| {
            let Some(flow_a) = flow(a, place_a) else { return false };
            let Some(candidates) = key(flow_a).and_then(|key| waiting.get_mut(&key)) else {
                return true;
            };
            for at in 0..candidates.len() {
                let place_b = candidates[at];
                if let Some(flow_b) = flow(b, place_b)
                    && let Some(flipped) = fits(flow_a, flow_b)
                {
                    candidates.remove(at);
                    taken.insert(place_b, ());
                    self.join(place_a, place_b, (flow_a, flow_b), flipped);
                    return false;
                }
            }
            true
        });
        open_b.retain(|place| !taken.contains_key(place));
    }

    /// Compare the windows of both taps.
    pub fn compare(&mut self, a: &Tap, groups_a: &Grouped, b: &Tap, groups_b: &Grouped) -> Matches {
        let mut matches = Matches {
            a: Side::new(a.window.len()),
            b: Side::new(b.window.len()),
            trust: vec![Trust::default(); a.window.len()],
            holes: [Vec::new(), Vec::new()],
        };
        let mut places: Vec<u32> = self.flows.keys().copied().collect();
        places.sort_unstable();
        for learn in [true, false] {
            for &place in &places {
                let Some(flow) = self.flows.get(&place).cloned() else {
                    continue;
                };
                for side in 0..2 {
                    let of = |window: &[Digest], group: &[u32], side: usize| {
                        group
                            .iter()
                            .copied()
                            .filter(|&at| {
                                window[at as usize].side() == side && window[at as usize].done & self.bit == 0
                            })
                            .collect::<Vec<_>>()
                    };
                    let other = side ^ usize::from(flow.flipped);
                    let compared = Compared {
                        a: &a.window,
                        b: &b.window,
                        xs: of(&a.window, groups_a.of(flow.a), side),
                        ys: of(&b.window, groups_b.of(flow.b), other),
                        seq: flow.delta[side],
                        ack: flow.delta[1 - side],
                    };
                    if learn {
                        compared.learn(&mut self.kept);
                    } else {
                        compared.packets(&self.kept, &mut matches);
                        compared.pieces(self.kept.stamps.trusted(), &mut matches);
                    }
                }
                if !learn {
                    self.place_client(place, a, groups_a.of(flow.a), b, &matches);
                }
            }
        }
        let mut votes = [0; 2];
        for flow in self.flows.values() {
            if let Some(near_a) = self.client_near_a(flow) {
                votes[usize::from(!near_a)] += flow.matched;
            }
        }
        self.votes = match votes {
            [0, 0] => self.by_ttl(a, b),
            votes => votes,
        };
        matches
    }

    /// For want of round trips: each router takes one from the TTL.
    fn by_ttl(&self, a: &Tap, b: &Tap) -> [u64; 2] {
        let mut votes = [0; 2];
        for flow in self.flows.values() {
            let (Some(x), Some(y)) = (&a.flows[flow.a as usize], &b.flows[flow.b as usize]) else {
                continue;
            };
            let [to_server, to_client] = [0, 1].map(|side: usize| {
                let (x, y) = (x.place.ttls[side], y.place.ttls[side ^ usize::from(flow.flipped)]);
                if x == 0 || y == 0 { Ordering::Equal } else { x.cmp(&y) }
            });
            match to_server.then(to_client.reverse()) {
                Ordering::Greater => votes[0] += 1,
                Ordering::Less => votes[1] += 1,
                Ordering::Equal => {}
            }
        }
        votes
    }

    /// On which side of the leg is the client? Whatever the clocks say, a packet and its answer cross the leg and come
    /// back: the sum of both differences is a round trip, and its sign tells who is first. What the steps of the stamps may have made of it
    /// counts for its hosts together.
    fn place_client(&mut self, place: u32, a: &Tap, group: &[u32], b: &Tap, matches: &Matches) {
        let mut last: [Option<(u64, i64)>; 2] = [None; 2];
        let mut turn = None;
        let (mut near, mut perhaps, mut matched, mut first) = ([0u64; 2], 0i64, 0, None);
        let coarse = a.coarse() + b.coarse();
        // The best that there is of both sides.
        let best = [0, 1].map(|side: usize| {
            let of_side = group.iter().map(|&at| at as usize);
            let of_side = of_side.filter(|&at| matches.a.is_in_both(at) && a.window[at].side() == side);
            of_side.map(|at| matches.trust[at]).max().unwrap_or(Trust::Guess)
        });
        let least = best[0].min(best[1]).max(Trust::First);
        for &at in group {
            let at = at as usize;
            if !matches.a.is_in_both(at) {
                continue;
            }
            matched += 1;
            let other = b.window[matches.a.partner[at] as usize].time;
            let time = a.window[at].time;
            first.get_or_insert([time, other]);
            if matches.trust[at] < least {
                continue;
            }
            let side = a.window[at].side();
            last[side] = Some((time, other.wrapping_sub(time) as i64));
            // Neighbours in time, so that a clock that was set in between spoils one comparison; and a difference that
            // no drift makes in between.
            if turn != Some(side)
                && let [Some((asked, client)), Some((answered, server))] = last
                && client.abs_diff(server) as f64 > asked.abs_diff(answered) as f64 * (MAX_SLOPE / 1e9)
            {
                if client.abs_diff(server) > coarse {
                    near[usize::from(client < server)] += 1;
                } else {
                    // Their sum: steps take as much from some as they add to others, though not to as many.
                    perhaps += client - server;
                }
            }
            turn = Some(side);
        }
        let Some(flow) = self.flows.get_mut(&place) else { return };
        flow.matched += matched;
        flow.first = flow.first.or(first);
        self.has_common |= matched > 0;
        let is_clear = near[0] != near[1];
        let sign = if is_clear {
            near[0].cmp(&near[1])
        } else {
            perhaps.cmp(&0)
        };
        if sign.is_ne() && flow.client_near_a.is_none() && (is_clear || !flow.is_counted) {
            let is_near_a = sign.is_gt();
            flow.client_near_a = is_clear.then_some(is_near_a);
            flow.is_counted = true;
            // What it weighs: a round trip that is clear, as a step.
            let weight = if is_clear {
                coarse.max(1)
            } else {
                perhaps.unsigned_abs()
            };
            for (host, on_a) in flow.hosts.into_iter().zip([is_near_a, !is_near_a]) {
                if self.hosts.len() < HOSTS || self.hosts.contains_key(&host) {
                    self.hosts.entry(host).or_default()[usize::from(!on_a)] += weight;
                }
            }
        }
    }
}

fn flow(tap: &Tap, place: u32) -> Option<&TapFlow> {
    tap.flows.get(place as usize)?.as_ref()
}

/// Flows without a partner, in the order of time.
fn open(tap: &Tap, has_partner: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut open: Vec<(u64, u32)> = (0..tap.flows.len() as u32)
        .filter(|&place| !has_partner(place))
        .filter_map(|place| flow(tap, place).map(|flow| (flow.first, place)))
        .collect();
    open.sort_unstable();
    open.into_iter().map(|(_, place)| place).collect()
}

/// A key of flows, of those that one flow of each tap alone has.
fn unique<K: std::hash::Hash + Eq, F: Fn(&TapFlow) -> Option<K>>(
    a: &Tap,
    open_a: &[u32],
    b: &Tap,
    open_b: &[u32],
    key: F,
) -> impl Fn(&TapFlow) -> Option<K> + use<K, F> {
    let count = |tap: &Tap, places: &[u32]| {
        let mut count: Map<K, u32> = map();
        for key in places.iter().filter_map(|&place| key(flow(tap, place)?)) {
            *count.entry(key).or_default() += 1;
        }
        count
    };
    let (once_a, once_b) = (count(a, open_a), count(b, open_b));
    move |f| key(f).filter(|key| once_a.get(key) == Some(&1) && once_b.get(key) == Some(&1))
}

fn ends(flow: &TapFlow) -> (End, End) {
    (flow.client.min(flow.server), flow.client.max(flow.server))
}

/// The roles are exchanged.
fn is_flipped(a: &TapFlow, b: &TapFlow) -> bool {
    a.client == b.server
}

/// Whether the initial sequence numbers that both know are the same; `None`: they know none.
fn begins_alike(a: &TapFlow, b: &TapFlow) -> Option<bool> {
    let flipped = is_flipped(a, b);
    let both = [0, 1].map(|side: usize| a.isn[side].zip(b.isn[side ^ usize::from(flipped)]));
    let known = both.into_iter().flatten();
    known.map(|(x, y)| x == y).reduce(|one, other| one && other)
}

/// Sequence numbers of each side that both have meet: taps that see one connection at one time see about the same ones.
fn meet(a: &TapFlow, b: &TapFlow) -> bool {
    let flipped = is_flipped(a, b);
    let both = [0, 1].map(|side: usize| a.seen[side].zip(b.seen[side ^ usize::from(flipped)]));
    let is_until = |from: u32, to: u32| to.wrapping_sub(from).cast_signed() >= 0;
    let known = both.into_iter().flatten();
    let met = known.map(|(x, y)| is_until(x[0], y[1]) && is_until(y[0], x[1]));
    met.reduce(|one, other| one && other).unwrap_or(false)
}

/// Their first SYNs have the same IP id, and are not of different times.
fn has_syn_of(x: &TapFlow, y: &TapFlow) -> bool {
    x.syn_mark
        .zip(y.syn_mark)
        .is_some_and(|(one, other)| one.1 != 0 && one.1 == other.1 && !is_later(x, y))
}

/// Their first SYNs tell that these are two connections: by time, or else by IP id.
fn denies(x: &TapFlow, y: &TapFlow) -> bool {
    match (x.syn_mark, y.syn_mark) {
        (Some((one, _)), Some((other, _))) if one != 0 && other != 0 => is_later(x, y),
        (Some((_, one)), Some((_, other))) => one != 0 && other != 0 && one != other,
        _ => false,
    }
}

/// One direction of one flow at both taps.
struct Compared<'a> {
    a: &'a [Digest],
    b: &'a [Digest],
    /// Places of its packets.
    xs: Vec<u32>,
    ys: Vec<u32>,
    /// What `b` adds to sequence and acknowledgment numbers.
    seq: u32,
    ack: u32,
}

/// What a packet is, apart from which transmission of it.
type Identity = (u64, u64);

fn identity(p: &Digest, seq: u32, ack: u32) -> Identity {
    let ack = if p.flags & tcp_flag::ACK != 0 {
        p.ack.wrapping_add(ack)
    } else {
        0
    };
    (
        u64::from(p.seq.wrapping_add(seq)) << 32 | u64::from(ack),
        u64::from(p.len) << 8 | u64::from(p.flags & IDENTITY),
    )
}

impl Compared<'_> {
    /// Groups of packets with one identity at both taps.
    fn groups(&self, mut each: impl FnMut(&[(Identity, u32)], &[(Identity, u32)])) {
        let mut xs: Vec<_> = self
            .xs
            .iter()
            .map(|&x| (identity(&self.a[x as usize], self.seq, self.ack), x))
            .collect();
        let mut ys: Vec<_> = self
            .ys
            .iter()
            .map(|&y| (identity(&self.b[y as usize], 0, 0), y))
            .collect();
        xs.sort_unstable();
        ys.sort_unstable();
        common(&xs, &ys, |xs, ys| each(xs, ys));
    }

    /// What comes through as it was?
    fn learn(&self, kept: &mut Kept) {
        self.groups(|xs, ys| {
            if let ([(_, x)], [(_, y)]) = (xs, ys) {
                let (x, y) = (&self.a[*x as usize], &self.b[*y as usize]);
                if x.ip_id != 0 || y.ip_id != 0 {
                    kept.ip_ids.add(x.ip_id == y.ip_id);
                }
                if x.timestamps() && y.timestamps() {
                    kept.stamps.add(x.tsval == y.tsval);
                }
                kept.windows.add(x.window == y.window);
                if x.sack != 0 || y.sack != 0 {
                    kept.sacks.add(x.sack == y.sack);
                }
            }
        });
    }

    /// Match packets that are the same in every respect that can be trusted.
    fn packets(&self, kept: &Kept, matches: &mut Matches) {
        let (ids, stamps) = (kept.ip_ids.trusted(), kept.stamps.trusted());
        let (windows, sacks) = (kept.windows.trusted(), kept.sacks.trusted());
        let said = |p: &Digest| (if windows { p.window } else { 0 }, if sacks { p.sack } else { 0 });
        let (mut gx, mut gy) = (Vec::new(), Vec::new());
        let (mut rest_x, mut rest_y) = (Vec::new(), Vec::new());
        self.groups(|xs, ys| {
            // A capture may have cut them off.
            let all_stamped = |group: &[(_, u32)], window: &[Digest]| {
                let mut packets = group.iter().map(|&(_, at)| &window[at as usize]);
                packets.all(Digest::timestamps)
            };
            let stamps = stamps && all_stamped(xs, self.a) && all_stamped(ys, self.b);
            let transmission = |p: &Digest| (if ids { p.ip_id } else { 0 }, if stamps { p.tsval } else { 0 });
            keyed(xs.iter().map(|&(_, x)| x), self.a, transmission, &mut gx);
            keyed(ys.iter().map(|&(_, y)| y), self.b, transmission, &mut gy);
            common(&gx, &gy, |xs, ys| {
                if xs[0].0.0 != 0 {
                    // Copies of one packet, the first of which went ahead.
                    self.copies(xs, ys, matches);
                } else if xs.len() == 1 && ys.len() == 1 {
                    matched(matches, xs[0].1, ys[0].1, Trust::Alone);
                } else {
                    keyed(xs.iter().map(|&(_, x)| x), self.a, said, &mut rest_x);
                    keyed(ys.iter().map(|&(_, y)| y), self.b, said, &mut rest_y);
                    common(&rest_x, &rest_y, |xs, ys| last_of(xs, ys, matches));
                    rest_x.retain(|(_, x)| matches.a.fate[*x as usize] == Fate::Alone);
                    rest_y.retain(|(_, y)| matches.b.fate[*y as usize] == Fate::Alone);
                    // What a box has changed on the way.
                    rest_x.sort_unstable_by_key(|(_, x)| *x);
                    rest_y.sort_unstable_by_key(|(_, y)| *y);
                    let n = rest_x.len().min(rest_y.len());
                    let of_x = rest_x.drain(rest_x.len() - n..);
                    for ((_, x), (_, y)) in of_x.zip(rest_y.drain(rest_y.len() - n..)) {
                        matched(matches, x, y, Trust::Guess);
                    }
                    let at_once = |group: &[(_, u32)], window: &[Digest], at: u32| {
                        let near = |other: u32| {
                            other != at && window[other as usize].time.abs_diff(window[at as usize].time) < COPY
                        };
                        group.iter().any(|&(_, other)| near(other))
                    };
                    let (first_x, first_y) = (first_matched(xs, &matches.a), first_matched(ys, &matches.b));
                    for &(_, x) in &rest_x {
                        if at_once(xs, self.a, x) {
                            matches.a.copy(x, first_x);
                        }
                    }
                    for &(_, y) in &rest_y {
                        if at_once(ys, self.b, y) {
                            matches.b.copy(y, first_y);
                        }
                    }
                }
            });
        });
    }

    /// Match packets with one IP id. The first at the one tap came from the first at the other, or from a later copy; a later one
    /// may be a copy of any that went before it.
    fn copies<K>(&self, xs: &[(K, u32)], ys: &[(K, u32)], matches: &mut Matches) {
        let mut trust = if xs.len() == ys.len() {
            Trust::Alone
        } else {
            Trust::First
        };
        for ((_, x), (_, y)) in xs.iter().zip(ys) {
            matched(matches, *x, *y, trust);
            trust = Trust::Guess;
        }
        let n = xs.len().min(ys.len());
        for (_, x) in &xs[n..] {
            matches.a.copy(*x, Some(ys[0].1));
        }
        for (_, y) in &ys[n..] {
            matches.b.copy(*y, Some(xs[0].1));
        }
    }

    /// Match what is left by byte range: one large segment at one tap is several at the other (segmentation offload).
    fn pieces(&self, stamps: bool, matches: &mut Matches) {
        let Some(&first) = self.xs.first() else { return };
        // Sequence numbers as distances from the first packet's.
        let base = self.a[first as usize].seq.wrapping_add(self.seq);
        let range = |p: &Digest, seq: u32| {
            let from = i64::from(p.seq.wrapping_add(seq).wrapping_sub(base).cast_signed());
            (from, from + i64::from(p.len))
        };
        let left = |places: &[u32], window: &[Digest], side: &Side, seq: u32| {
            let mut left: Vec<(i64, i64, u32)> = places
                .iter()
                .filter(|&&at| side.fate[at as usize] == Fate::Alone && window[at as usize].len > 0)
                .map(|&at| {
                    let (from, to) = range(&window[at as usize], seq);
                    (from, to, at)
                })
                .collect();
            left.sort_unstable_by_key(|&(from, to, at)| (from, Reverse(to), at));
            left
        };
        let xs = left(&self.xs, self.a, &matches.a, self.seq);
        let ys = left(&self.ys, self.b, &matches.b, 0);
        if xs.is_empty() || ys.is_empty() {
            return;
        }
        let same = |x: u32, y: u32| {
            let (x, y) = (&self.a[x as usize], &self.b[y as usize]);
            // What joins segments of two ticks writes the timestamp of one of them.
            let is_near = x.len != y.len && x.tsval.wrapping_sub(y.tsval).cast_signed().unsigned_abs() <= 1;
            !stamps || x.tsval == y.tsval || is_near || !x.timestamps() || !y.timestamps()
        };
        let mut overlaps = overlaps(&xs, &ys, same);
        overlaps.sort_unstable();
        let (twice_x, twice_y) = (sent_twice(&xs), sent_twice(&ys));
        for &(x, y) in &overlaps {
            pieces_of(x, y, &mut matches.a);
            pieces_of(y, x, &mut matches.b);
            if twice_x.contains_key(&x) || twice_y.contains_key(&y) {
                matches.trust[x as usize] = Trust::Guess;
            }
        }
        holes(&xs, &ys, self.a, overlaps.iter().copied(), &mut matches.holes[0]);
        let mut turned: Vec<_> = overlaps.iter().map(|&(x, y)| (y, x)).collect();
        turned.sort_unstable();
        holes(&ys, &xs, self.b, turned.into_iter(), &mut matches.holes[1]);
    }
}

/// Places of packets with what tells them apart, ascending.
fn keyed<K: Ord>(
    places: impl Iterator<Item = u32>,
    window: &[Digest],
    key: impl Fn(&Digest) -> K,
    out: &mut Vec<(K, u32)>,
) {
    out.clear();
    out.extend(places.map(|at| (key(&window[at as usize]), at)));
    out.sort_unstable();
}

/// Groups with one key on both sides, which ascend.
fn common<K: Ord + Copy>(mut xs: &[(K, u32)], mut ys: &[(K, u32)], mut each: impl FnMut(&[(K, u32)], &[(K, u32)])) {
    while let (Some(&(x, _)), Some(&(y, _))) = (xs.first(), ys.first()) {
        match x.cmp(&y) {
            Ordering::Less => xs = &xs[1..],
            Ordering::Greater => ys = &ys[1..],
            Ordering::Equal => {
                let n = xs.partition_point(|(key, _)| *key == x);
                let m = ys.partition_point(|(key, _)| *key == x);
                each(&xs[..n], &ys[..m]);
                (xs, ys) = (&xs[n..], &ys[m..]);
            }
        }
    }
}

fn matched(matches: &mut Matches, x: u32, y: u32, trust: Trust) {
    matches.a.partner[x as usize] = y;
    matches.b.partner[y as usize] = x;
    matches.a.fate[x as usize] = Fate::Matched;
    matches.b.fate[y as usize] = Fate::Matched;
    matches.trust[x as usize] = trust;
}

/// Match packets that nothing but their order tells apart: they may be retransmissions, and the last one arrived: after it there was no
/// need for another. Any of repeated ACKs may be the one that is lacking.
fn last_of<K>(xs: &[(K, u32)], ys: &[(K, u32)], matches: &mut Matches) {
    let trust = match (xs.len(), ys.len()) {
        (1, 1) => Trust::Alone,
        (n, m) if n == m => Trust::Counted,
        _ => Trust::Guess,
    };
    for ((_, x), (_, y)) in xs.iter().rev().zip(ys.iter().rev()) {
        matched(matches, *x, *y, trust);
    }
}

/// Partner of the first one that has one.
fn first_matched<K>(group: &[(K, u32)], side: &Side) -> Option<u32> {
    let mut fates = group.iter().map(|&(_, at)| at as usize);
    let first = fates.find(|&at| side.fate[at] == Fate::Matched)?;
    Some(side.partner[first])
}

/// From and to, as distances, and the place in the window.
type Range = (i64, i64, u32);

/// Places whose bytes others have, too: which of them came through is not known. `ranges` ascend.
fn sent_twice(ranges: &[Range]) -> Map<u32, ()> {
    let mut twice = map();
    let mut furthest: Option<Range> = None;
    for &range in ranges {
        if let Some((_, to, at)) = furthest
            && range.0 < to
        {
            twice.insert(at, ());
            twice.insert(range.2, ());
        }
        if furthest.is_none_or(|before| range.1 > before.1) {
            furthest = Some(range);
        }
    }
    twice
}

/// Which ranges carry the same bytes: pairs of places. Each byte came through once: with the latest of `xs` and of `ys` that
/// have it, as an earlier one was lost. A packet that brought some of its bytes brought all.
fn overlaps(xs: &[Range], ys: &[Range], same: impl Fn(u32, u32) -> bool) -> Vec<(u32, u32)> {
    let longest = ys.iter().map(|y| y.1 - y.0).max().unwrap_or(0);
    let mut taken: Vec<Vec<(i64, i64)>> = vec![Vec::new(); ys.len()];
    let mut latest_first: Vec<&Range> = xs.iter().collect();
    latest_first.sort_unstable_by_key(|x| Reverse(x.2));
    let mut out = Vec::new();
    for x in latest_first {
        let begin = ys.partition_point(|y| y.0 < x.0 - longest);
        let end = ys.partition_point(|y| y.0 < x.1);
        let mut candidates: Vec<usize> = (begin..end).collect();
        candidates.sort_unstable_by_key(|&k| Reverse(ys[k].2));
        let mut taken_of_x: Vec<(i64, i64)> = Vec::new();
        for k in candidates {
            let y = &ys[k];
            let common = (x.0.max(y.0), x.1.min(y.1));
            if common.0 < common.1 && same(x.2, y.2) && has_rest(common, taken_of_x.iter().chain(&taken[k])) {
                taken_of_x.push(common);
                taken[k].push(common);
                out.push((x.2, y.2));
            }
        }
    }
    out
}

/// Whether something of a range is in none of the parts.
fn has_rest<'a>(range: (i64, i64), parts: impl Iterator<Item = &'a (i64, i64)>) -> bool {
    let mut parts: Vec<(i64, i64)> = parts.copied().collect();
    parts.sort_unstable();
    let mut covered = range.0;
    for (from, to) in parts {
        if from > covered {
            break;
        }
        covered = covered.max(to);
    }
    covered < range.1
}

/// Note that `at` goes on in `other`; pairs come in ascending order, so the first partner is the earliest.
fn pieces_of(at: u32, other: u32, side: &mut Side) {
    let at = at as usize;
    if side.fate[at] == Fate::Alone {
        side.fate[at] = Fate::Pieces;
        side.partner[at] = other;
    }
}

/// Bytes of `large` that none of its partners among `small` has. `pairs` ascend.
fn holes(
    large: &[Range],
    small: &[Range],
    window: &[Digest],
    pairs: impl Iterator<Item = (u32, u32)>,
    out: &mut Vec<Hole>,
) {
    let place = |ranges: &[Range]| {
        let mut by_place: Map<u32, (i64, i64)> = map();
        by_place.extend(ranges.iter().map(|&(from, to, at)| (at, (from, to))));
        by_place
    };
    let (large, small) = (place(large), place(small));
    let mut parts: Map<u32, Vec<(i64, i64)>> = map();
    for (at, other) in pairs {
        parts.entry(at).or_default().push(small[&other]);
    }
    let mut ats: Vec<u32> = parts.keys().copied().collect();
    ats.sort_unstable();
    for at in ats {
        let (from, to) = large[&at];
        let parts = &mut parts.get_mut(&at).map(std::mem::take).unwrap_or_default();
        parts.sort_unstable();
        let mut covered = from;
        for &(start, end) in parts.iter().chain([&(to, to)]) {
            if start > covered {
                let seq = |distance: i64| window[at as usize].seq.wrapping_add((distance - from) as u32);
                out.push(Hole {
                    at,
                    from: seq(covered),
                    to: seq(start),
                });
            }
            covered = covered.max(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_of_a_joined_segment_came_with_the_latest_that_has_it() {
        let large = [(0, 3000, 0)];
        // The second was lost, and sent again behind the others.
        let small = [(0, 1000, 0), (1000, 2000, 1), (1000, 2000, 3), (2000, 3000, 2)];
        let expected = [(0, 3), (0, 2), (0, 0)];
        assert_eq!(overlaps(&large, &small, |_, _| true), expected);
        let turned = expected.map(|(x, y)| (y, x));
        assert_eq!(overlaps(&small, &large, |_, _| true), turned);
        // Cut elsewhere when it was sent again: what is in no other came with the first.
        let small = [(0, 2000, 0), (1000, 3000, 1)];
        assert_eq!(overlaps(&large, &small, |_, _| true), [(0, 1), (0, 0)]);
    }
}
