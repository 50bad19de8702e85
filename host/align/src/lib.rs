//! Two and more captures of one path, from their records: which packet is which, how the clocks ran against each
//! other, what each leg between two taps delayed and lost, what a capture itself missed, and whose time it was.
//!
//! Records in (those of a flow engine that writes PACKET records), messages out; no I/O. [`Aligner::next_tap`] says which
//! capture to read on, so that all of them are at about the same time. A packet stays in its tap's window until every
//! tap is well past it. A window holds [`WINDOW`] packets; with the work on it that is about 110 MB a tap, however
//! long the captures are. Rules and bounds: `docs/src/taps.md`.
#![forbid(unsafe_code)]

mod clock;
mod delays;
mod ends;
mod link;
mod pair;
mod report;
mod sightings;
mod tap;
mod verdict;

use std::cmp::Ordering;

use weir_analysis::pie::Trace;
use weir_messages::v1;
use weir_record::{Record, tcp_flag};

use clock::Fit;
use delays::Delays;
use pair::{Fate, Matches, Pair, Side, Trust};
use sightings::Seen;
pub use sightings::{Between, Elsewhere, Pass, Passage, Sighting, Sightings};
use tap::{Grouped, Map, Offer, Place, Tap, TapFlow, map};
use verdict::{Court, Judgement, Ruling, Tally};

/// Packets that wait at each tap before the oldest are judged.
pub const WINDOW: usize = 1 << 20;
/// Most captures that can be compared: each pair of them has a bit in a packet's digest.
pub const MAX_TAPS: usize = 6;
/// Packets are judged this long after every tap has passed them, or after a quarter of the window.
const MARGIN: u64 = 10_000_000_000;

/// What several captures of a path say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alignment {
    /// Taps in the order of the path, the client first.
    pub taps: Vec<v1::Tap>,
    /// Between neighbours.
    pub legs: Vec<v1::Leg>,
    /// Measured, the article's arithmetic, and one tap's estimate.
    pub pies: Vec<v1::Pie>,
    /// Index of the capture (as given) nearest to the client.
    pub nearest_client: usize,
    /// Connections that lost SYNs or SYN-ACKs between the first tap of the path and the last, by their ids at the first: those of the legs, and
    /// what no leg can tell, because a tap between them has not all that passed.
    pub lost_setups: Vec<v1::LostSetup>,
    /// Packet by packet, if [`Aligner::keep_sightings`] asked for it.
    pub sightings: Sightings,
}

/// Two neighbouring captures have no packet in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NothingInCommon {
    /// Name of the one.
    pub one: String,
    /// Its TCP connections.
    pub one_connections: u64,
    /// Name of the other.
    pub other: String,
    /// Its TCP connections.
    pub other_connections: u64,
    /// Of more than two captures, that which has none in common with any, while others have.
    pub apart: Option<String>,
}

impl std::fmt::Display for NothingInCommon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            one,
            one_connections,
            other,
            other_connections,
            apart,
        } = self;
        if let Some(apart) = apart {
            return write!(
                f,
                "{apart} has no packet in common with any other capture, while others have: was it taken on this path at this \
                 time? Compare the others without it"
            );
        }
        let without = [(one, one_connections), (other, other_connections)];
        if let Some((name, _)) = without.into_iter().find(|(_, connections)| **connections == 0) {
            return write!(
                f,
                "{name} has no TCP connection, and nothing else is compared: without one there is no packet in common"
            );
        }
        write!(
            f,
            "{one} ({one_connections} TCP connections) and {other} ({other_connections}) have no packet in common: \
             were they taken on one path at one time? Analyse each alone to see what is in it; pieces of one trace are put together first (mergecap)"
        )
    }
}

impl std::error::Error for NothingInCommon {}

/// Time of connections, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    total: u64,
    /// Client and server, each by the tap beside it.
    measured: [u64; 2],
    /// How far these may be wrong.
    unsure: u64,
    /// Client and server by the tap nearest to the client alone.
    one_tap: [u64; 2],
    uncertain: u64,
    /// Connections that are in none of these: one of the taps saw one direction, or not the whole time.
    left_out: u64,
}

/// Connections of a leg of which it is told that they lost SYNs or SYN-ACKs.
const LOST_SETUPS: usize = 1 << 16;
/// Two taps do not tell of the same time of a connection where its duration differs by so much, ns, and by a tenth.
const OTHER_TIME: u64 = 1_000_000_000;

/// What was found between two taps so far.
#[derive(Debug)]
pub(crate) struct Findings {
    tally: Tally,
    /// Something came through from `a`, and from `b`.
    came: [bool; 2],
    /// Passing `a` first, and `b` first.
    delays: [Delays; 2],
    /// Connections whose addresses, and whose sequence numbers differ between the taps.
    translated: u64,
    rewritten: u64,
    /// Connections by what the SYN, and the SYN-ACK, offered before and after the leg, where it differs.
    scales: [Map<[u8; 2], u64>; 2],
    segments: [Map<[u16; 2], u64>; 2],
    /// Packets that are cut or joined differently at the taps.
    pieces: u64,
    /// Connections by what they tell of the places of `a` and `b`, client's side first.
    places: Map<[Place; 2], u64>,
    /// Connections that lost SYNs or SYN-ACKs here, by their id at the tap nearest to the client; at most [`LOST_SETUPS`].
    lost_setups: Map<u64, LostSetup>,
}

/// SYNs and SYN-ACKs of a connection that a leg lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LostSetup {
    syns: u32,
    syn_acks: u32,
    /// When the first of these SYNs was sent, by the clock of the tap nearest to the client, ns.
    first_syn: Option<u64>,
}

impl Findings {
    /// What the SYN (side 0) or SYN-ACK of a connection offered before the leg and after it.
    fn offered(&mut self, side: usize, [before, after]: [Offer; 2]) {
        if before.scale != after.scale {
            *self.scales[side].entry([before.scale, after.scale]).or_default() += 1;
        }
        if before.mss != after.mss {
            *self.segments[side].entry([before.mss, after.mss]).or_default() += 1;
        }
    }
}

/// Compares captures.
#[derive(Debug)]
pub struct Aligner {
    taps: Vec<Tap>,
    /// All pairs of taps.
    pairs: Vec<Pair>,
    found: Vec<Findings>,
    /// Taps along the path, the client first, once packets have matched.
    order: Option<Vec<usize>>,
    fits: Vec<Fit>,
    /// What bounds the clocks of a pair and has a delay.
    least: Vec<Trust>,
    /// The article's view of the first and of the last tap, of connections that both have.
    traces: [Trace; 2],
    shares: Shares,
    only_here: Vec<u64>,
    window: usize,
    sightings: Option<Seen>,
}

impl Aligner {
    /// Compare captures of these names, at most [`MAX_TAPS`].
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self::with_window(names, WINDOW)
    }

    /// With smaller windows than [`WINDOW`].
    pub fn with_window(names: impl IntoIterator<Item = String>, window: usize) -> Self {
        let taps: Vec<Tap> = names.into_iter().take(MAX_TAPS).map(Tap::new).collect();
        let mut pairs = Vec::new();
        for a in 0..taps.len() {
            for b in a + 1..taps.len() {
                pairs.push(Pair::new(a, b, 1 << pairs.len()));
            }
        }
        let found = pairs
            .iter()
            .map(|_| Findings {
                tally: Tally::default(),
                came: [false; 2],
                delays: [Delays::new(), Delays::new()],
                translated: 0,
                rewritten: 0,
                scales: [map(), map()],
                segments: [map(), map()],
                pieces: 0,
                places: map(),
                lost_setups: map(),
            })
            .collect();
        Self {
            fits: pairs.iter().map(|pair: &Pair| pair.clock.fit(0)).collect(),
            least: vec![Trust::Alone; pairs.len()],
            only_here: vec![0; taps.len()],
            taps,
            pairs,
            found,
            order: None,
            traces: [Trace::default(); 2],
            shares: Shares::default(),
            window,
            sightings: None,
        }
    }

    /// Keep what became of each packet between the first tap of the path and the last, and when taps between them saw
    /// it: 16 bytes each.
    #[must_use]
    pub fn keep_sightings(mut self) -> Self {
        self.sightings = Some(Seen::default());
        self
    }

    /// The capture to read on; `None` when all have ended.
    pub fn next_tap(&mut self) -> Option<usize> {
        loop {
            let open: Vec<usize> = (0..self.taps.len()).filter(|&tap| !self.taps[tap].ended).collect();
            let behind = *open.iter().min_by_key(|&&tap| self.progress(tap))?;
            if self.taps[behind].window.len() < self.window {
                return Some(behind);
            }
            // Before the clocks are known, times of different taps cannot be compared: fill all windows.
            let known = self.fits.iter().any(|fit| !fit.is_empty());
            if let Some(&other) = open
                .iter()
                .find(|&&tap| !known && self.taps[tap].window.len() < self.window)
            {
                return Some(other);
            }
            self.step(Some(behind));
            if self.taps[behind].window.len() >= self.window {
                self.give_up(behind);
            }
        }
    }

    /// Records of a capture, in order.
    pub fn push(&mut self, tap: usize, records: &[Record]) {
        if let Some(tap) = self.taps.get_mut(tap) {
            tap.push(records);
        }
    }

    /// A capture has ended.
    pub fn end(&mut self, tap: usize) {
        if let Some(tap) = self.taps.get_mut(tap) {
            tap.end();
        }
    }

    /// All captures have ended: the answer.
    pub fn finish(mut self) -> Result<Alignment, NothingInCommon> {
        for tap in &mut self.taps {
            tap.end();
        }
        self.step(None);
        let sightings = self.take_sightings();
        report::report(&self, sightings)
    }

    /// What a tap has in common with another one.
    fn side<'m>(&self, tap: usize, other: usize, matches: &'m [Matches]) -> &'m Side {
        let k = self.pair_of(tap, other);
        if self.pairs[k].a == tap {
            &matches[k].a
        } else {
            &matches[k].b
        }
    }

    /// Pair of two taps.
    fn pair_of(&self, one: usize, other: usize) -> usize {
        let (a, b) = (one.min(other), one.max(other));
        self.pairs
            .iter()
            .position(|pair| (pair.a, pair.b) == (a, b))
            .unwrap_or_default()
    }

    /// Time of a tap on the clock of the reference tap, as far as it is known.
    fn reference_time(&self, tap: usize, time: u64) -> u64 {
        let reference = self.order.as_ref().map_or(0, |order| order[0]);
        if tap == reference {
            return time;
        }
        let fit = &self.fits[self.pair_of(tap, reference)];
        if tap < reference {
            // The fit is by this tap's clock.
            return time.wrapping_add_signed(fit.offset(time).unwrap_or(0));
        }
        fit.before(time).unwrap_or(time)
    }

    fn progress(&self, tap: usize) -> u64 {
        self.reference_time(tap, self.taps[tap].last)
    }

    /// Match what is in the windows and judge what every tap is well past, because a window is full or (`None`) all have
    /// ended.
    fn step(&mut self, full: Option<usize>) {
        for tap in &mut self.taps {
            tap.remove_copies();
        }
        let groups: Vec<Grouped> = self.taps.iter().map(Tap::by_flow).collect();
        let mut matches: Vec<Matches> = Vec::with_capacity(self.pairs.len());
        for pair in &mut self.pairs {
            let (a, b) = (&self.taps[pair.a], &self.taps[pair.b]);
            pair.join_flows(a, b);
            matches.push(pair.compare(a, &groups[pair.a], b, &groups[pair.b]));
        }
        for (k, pair) in self.pairs.iter().enumerate() {
            let coarse = pair.coarse(&self.taps);
            let fit = |least: Trust| {
                let mut clock = pair.clock.clone();
                feed(&mut clock, pair, &self.taps, &matches[k], least, &mut |_| true);
                clock.fit(coarse)
            };
            (self.fits[k], self.least[k]) = (fit(Trust::Alone), Trust::Alone);
            // Where captures begin and end apart, the same number of packets may be others: they count if they fit.
            if matches[k].trust.contains(&Trust::Counted) {
                let more = fit(Trust::Counted);
                if self.fits[k].is_empty() || more.pieces() <= self.fits[k].pieces() {
                    (self.fits[k], self.least[k]) = (more, Trust::Counted);
                }
            }
            // Of a few packets, one capture may have all of a direction twice.
            if self.fits[k].is_empty() && matches[k].trust.contains(&Trust::First) {
                (self.fits[k], self.least[k]) = (fit(Trust::First), Trust::First);
            }
        }
        if self.order.is_none() {
            self.order = self.find_order();
        }
        let ripe = self.ripe(full);
        for (k, pair) in self.pairs.iter_mut().enumerate() {
            let mut clock = std::mem::replace(&mut pair.clock, clock::Clock::new());
            feed(&mut clock, pair, &self.taps, &matches[k], self.least[k], &mut |first| {
                ripe[first.0][first.1]
            });
            pair.clock = clock;
        }
        if let Some(order) = self.order.clone() {
            self.judge(&order, &groups, &matches, &ripe);
            self.trace(&order, &ripe);
        }
        self.mark_done(&matches, &ripe);
        for (tap, ripe) in self.taps.iter_mut().zip(&ripe) {
            tap.retain(|at| !ripe[at]);
        }
        self.forget_flows(full.is_none());
    }

    /// Which packets every tap is well past, so that the full window becomes emptier; all of them at the end.
    fn ripe(&self, full: Option<usize>) -> Vec<Vec<bool>> {
        let margin = |tap: &Tap| {
            let span = tap
                .window
                .first()
                .map_or(0, |first| tap.last.saturating_sub(first.time));
            MARGIN.min(span / 4)
        };
        // Before anything is in two of them, their clocks may be hours apart: only what has no room leaves.
        let leaves = |tap: usize| self.order.is_some() || full == Some(tap);
        let horizon = (0..self.taps.len())
            .filter(|&tap| !self.taps[tap].ended)
            .map(|tap| self.progress(tap).saturating_sub(margin(&self.taps[tap])))
            .min();
        (0..self.taps.len())
            .map(|tap| {
                let window = &self.taps[tap].window;
                match horizon.filter(|_| full.is_some()) {
                    None => vec![true; window.len()],
                    Some(horizon) => window
                        .iter()
                        .map(|p| leaves(tap) && self.reference_time(tap, p.time) < horizon)
                        .collect(),
                }
            })
            .collect()
    }

    /// Taps along the path: each is nearer to the client than how many others? As given where nothing tells, because
    /// packets of one direction only are in both.
    fn find_order(&self) -> Option<Vec<usize>> {
        let matched = |pair: &Pair| pair.flows.values().any(|flow| flow.matched > 0);
        if !self.pairs.iter().any(matched) {
            return None;
        }
        let nearer = |tap: usize| {
            self.pairs
                .iter()
                .filter(|pair| pair.votes != [0; 2])
                .filter(|pair| (pair.a == tap && pair.a_first()) || (pair.b == tap && !pair.a_first()))
                .count()
        };
        let mut order: Vec<usize> = (0..self.taps.len()).collect();
        order.sort_by_key(|&tap| std::cmp::Reverse(nearer(tap)));
        Some(order)
    }

    /// Legs: what is between neighbours.
    fn judge(&mut self, order: &[usize], groups: &[Grouped], matches: &[Matches], ripe: &[Vec<bool>]) {
        let mut legs = Vec::new();
        for (near, two) in order.windows(2).enumerate() {
            let k = self.pair_of(two[0], two[1]);
            // A packet that a tap beyond the other one has did not get lost on the way.
            let mut beyond = [&order[near + 2..], &order[..near]];
            if self.pairs[k].a != two[0] {
                beyond.reverse();
            }
            self.measure(k, &matches[k], &ripe[self.pairs[k].a], &ripe[self.pairs[k].b]);
            let Judgement { tally, came, rulings } = self.rule(k, beyond, groups, matches, ripe);
            self.found[k].tally.add(&tally);
            self.found[k].came = came;
            self.note_lost_setups(k, order[0], &rulings);
            if order.len() == 2 {
                self.sight(k, two[0], &matches[k], ripe, &rulings);
            }
            legs.push(rulings);
        }
        if let [first, _, .., last] = *order {
            let k = self.pair_of(first, last);
            self.measure(k, &matches[k], &ripe[self.pairs[k].a], &ripe[self.pairs[k].b]);
            let Judgement { came, rulings, .. } = self.rule(k, [&[], &[]], groups, matches, ripe);
            self.found[k].came = came;
            self.note_lost_setups(k, first, &rulings);
            if self.sightings.is_none() {
                return;
            }
            self.sight(k, first, &matches[k], ripe, &rulings);
            self.sight_inside(order, matches, ripe, &legs);
            for (place, &tap) in order.iter().enumerate().take(order.len() - 1).skip(1) {
                for teller in (0..place).chain([order.len() - 1]) {
                    self.sight_between([teller, tap], matches, ripe, order);
                }
            }
        }
    }

    /// Which connections lost SYNs or SYN-ACKs between the taps of a pair, by their ids at the tap `nearest` to the client.
    fn note_lost_setups(&mut self, k: usize, nearest: usize, rulings: &[Ruling]) {
        let taps = [self.pairs[k].a, self.pairs[k].b];
        for ruling in rulings.iter().filter(|ruling| ruling.passage == Passage::Lost) {
            let tap = taps[ruling.which];
            let p = self.taps[tap].window[ruling.at as usize];
            let Some(id) = (p.flags & tcp_flag::SYN != 0)
                .then(|| self.flow_at(tap, p.flow, nearest))
                .flatten()
                .map(|flow| flow.id)
            else {
                continue;
            };
            let time = self.reference_time(tap, p.time);
            let lost = &mut self.found[k].lost_setups;
            if lost.len() >= LOST_SETUPS && !lost.contains_key(&id) {
                continue;
            }
            let lost = lost.entry(id).or_default();
            if p.flags & tcp_flag::ACK != 0 {
                lost.syn_acks += 1;
            } else {
                lost.syns += 1;
                lost.first_syn = Some(lost.first_syn.map_or(time, |first| first.min(time)));
            }
        }
    }

    /// A flow of a tap as another tap has it.
    fn flow_at(&self, tap: usize, place: u32, other: usize) -> Option<&TapFlow> {
        let place = match tap.cmp(&other) {
            Ordering::Equal => place,
            Ordering::Less => self.pairs[self.pair_of(tap, other)].flows.get(&place)?.b,
            Ordering::Greater => self.pairs[self.pair_of(tap, other)].a_of(place)?,
        };
        self.taps[other].flows[place as usize].as_ref()
    }

    /// Packets that only one tap of a pair has; `beyond`: the taps beyond the other one, as `a` and `b` see it.
    fn rule(
        &self,
        k: usize,
        beyond: [&[usize]; 2],
        groups: &[Grouped],
        matches: &[Matches],
        ripe: &[Vec<bool>],
    ) -> Judgement {
        let pair = &self.pairs[k];
        let seen_beyond = |which: usize, at: usize| {
            let tap = if which == 0 { pair.a } else { pair.b };
            beyond[which]
                .iter()
                .any(|&other| self.side(tap, other, matches).is_in_both(at))
        };
        let court = Court {
            pair,
            a: &self.taps[pair.a],
            b: &self.taps[pair.b],
            groups: [&groups[pair.a], &groups[pair.b]],
            matches: &matches[k],
            fit: &self.fits[k],
            ripe: [&ripe[pair.a], &ripe[pair.b]],
            came: self.found[k].came,
            apart: self.fits[k]
                .is_empty()
                .then(|| matches[k].apart(&self.taps[pair.a], &self.taps[pair.b])),
            is_cut: self.found[k].pieces > 0 || matches[k].a.fate.contains(&Fate::Pieces),
            longest: [0, 1].map(|from| self.found[k].delays[from].most()),
            tap_beyond: beyond.map(|beyond| !beyond.is_empty()),
            seen_beyond: &seen_beyond,
        };
        court.judge()
    }

    /// Delays of matched packets.
    fn measure(&mut self, k: usize, matches: &Matches, ripe_a: &[bool], ripe_b: &[bool]) {
        let (pair, found, fit, least) = (&self.pairs[k], &mut self.found[k], &self.fits[k], self.least[k]);
        let (a, b) = (&self.taps[pair.a], &self.taps[pair.b]);
        let coarse = pair.coarse(&self.taps).cast_signed();
        let mut measured = |at_a: usize, at_b: usize, pieces: bool| {
            let (x, y) = (&a.window[at_a], &b.window[at_b]);
            let Some(flow) = pair.flows.get(&x.flow) else { return };
            let backward = !pair.a_upstream(flow, x.side());
            let upstream_is_ripe = if backward { ripe_b[at_b] } else { ripe_a[at_a] };
            if !upstream_is_ripe || (x.done | y.done) & pair.bit != 0 {
                return;
            }
            found.tally.matched += 1;
            let upstream = if backward { y } else { x };
            found.tally.copies[usize::from(backward)].arrived +=
                u64::from(upstream.is_copy() && upstream.is_alone_of_its_kind());
            found.pieces += u64::from(pieces);
            if matches.trust[at_a] < least || !a.believable(at_a) || !b.believable(at_b) {
                return;
            }
            let Some(offset) = fit.certain_offset(x.time) else {
                return;
            };
            let apparent = (y.time.wrapping_sub(x.time) as i64).wrapping_sub(offset);
            let delay = if backward { -apparent } else { apparent };
            // No packet arrives before it was sent: what looks so is the step of the stamps.
            let delay = if (-coarse..0).contains(&delay) { 0 } else { delay };
            found.delays[usize::from(backward)].add(delay);
        };
        for (at, partner) in matches.a.in_both() {
            measured(at, partner, matches.a.fate[at] == Fate::Pieces);
        }
    }

    /// The article's deltas: frames of connections that both ends of the path saw.
    fn trace(&mut self, order: &[usize], ripe: &[Vec<bool>]) {
        let (Some(&first), Some(&last)) = (order.first(), order.last()) else {
            return;
        };
        let pair = &self.pairs[self.pair_of(first, last)];
        for (trace, tap) in self.traces.iter_mut().zip([first, last]) {
            let shared: Vec<bool> = {
                let mut shared = vec![false; self.taps[tap].flows.len()];
                for flow in pair.flows.values() {
                    shared[if tap == pair.a { flow.a } else { flow.b } as usize] = flow.matched > 0;
                }
                shared
            };
            for (at, p) in self.taps[tap].window.iter().enumerate() {
                if ripe[tap][at] && shared[p.flow as usize] {
                    trace.frame(p.time, p.side() == 1);
                }
            }
        }
    }

    /// A matched packet is accounted for when its first sighting is ripe, with its partner and all copies, which may stay
    /// longer for other pairs.
    fn mark_done(&mut self, matches: &[Matches], ripe: &[Vec<bool>]) {
        for (pair, matches) in self.pairs.iter().zip(matches) {
            // Once from each side: a copy has a partner that has another one.
            for (own, other, side) in [(pair.a, pair.b, &matches.a), (pair.b, pair.a, &matches.b)] {
                for (at, (&partner, &fate)) in side.partner.iter().zip(&side.fate).enumerate() {
                    if partner == tap::NONE {
                        continue;
                    }
                    let partner = partner as usize;
                    let at_a = if own == pair.a { at } else { partner };
                    let p = &self.taps[pair.a].window[at_a];
                    let Some(flow) = pair.flows.get(&p.flow) else { continue };
                    let own_upstream = pair.a_upstream(flow, p.side()) == (own == pair.a);
                    let due = if own_upstream {
                        ripe[own][at]
                    } else {
                        ripe[other][partner]
                    };
                    if due {
                        self.taps[own].window[at].done |= pair.bit;
                        if fate != Fate::Copy {
                            self.taps[other].window[partner].done |= pair.bit;
                        }
                    }
                }
            }
        }
    }

    /// Forget flows that are over at every tap that has them, and keep what they add to the answer.
    fn forget_flows(&mut self, last: bool) {
        let mut over: Vec<Vec<bool>> = self.taps.iter().map(Tap::over).collect();
        if last {
            for (over, tap) in over.iter_mut().zip(&self.taps) {
                for (over, flow) in over.iter_mut().zip(&tap.flows) {
                    *over = flow.is_some();
                }
            }
        }
        // A flow stays as long as one of its partners does.
        loop {
            let mut changed = false;
            for pair in &self.pairs {
                for flow in pair.flows.values() {
                    let (a, b) = (over[pair.a][flow.a as usize], over[pair.b][flow.b as usize]);
                    if a != b {
                        over[pair.a][flow.a as usize] = false;
                        over[pair.b][flow.b as usize] = false;
                        changed = true;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        let nearest = self.order.as_ref().and_then(|order| order.first().copied());
        let whole_path = self.whole_path();
        for k in 0..self.pairs.len() {
            let (a, b) = (self.pairs[k].a, self.pairs[k].b);
            let mut places: Vec<u32> = self.pairs[k].flows.keys().copied().collect();
            places.retain(|&place| over[a][place as usize]);
            places.sort_unstable();
            for place in places {
                let Some(flow) = self.pairs[k].part(place) else {
                    continue;
                };
                if flow.matched == 0 {
                    continue;
                }
                let near_a = self.pairs[k].client_likely_near_a(&flow);
                let (Some(at_a), Some(at_b)) = (
                    self.taps[a].flows[flow.a as usize].as_ref(),
                    self.taps[b].flows[flow.b as usize].as_ref(),
                ) else {
                    continue;
                };
                let found = &mut self.found[k];
                let places = [at_a.place, at_b.place.flipped(flow.flipped)];
                *found
                    .places
                    .entry(places.map(|place| place.flipped(near_a != self.pairs[k].a_first())))
                    .or_default() += 1;
                let ends_at_b = match flow.flipped {
                    false => (at_b.client, at_b.server),
                    true => (at_b.server, at_b.client),
                };
                found.translated += u64::from((at_a.client, at_a.server) != ends_at_b);
                found.rewritten += u64::from(flow.rewritten());
                for side in 0..2 {
                    let offers = (at_a.offers[side], at_b.offers[side ^ usize::from(flow.flipped)]);
                    let is_whole = !at_a.cut[side] && !at_b.cut[side ^ usize::from(flow.flipped)];
                    if let (Some(a), Some(b)) = offers
                        && is_whole
                    {
                        found.offered(side, if (side == 0) == near_a { [a, b] } else { [b, a] });
                    }
                }
                if whole_path == Some(k) {
                    let roles = |flipped: bool| if flipped { [1, 0] } else { [0, 1] };
                    let (near, far) = if near_a {
                        ((&at_a.ends, roles(false)), (&at_b.ends, roles(flow.flipped)))
                    } else {
                        ((&at_b.ends, roles(flow.flipped)), (&at_a.ends, roles(false)))
                    };
                    let (tap, first) = if near_a { (a, 0) } else { (b, 1) };
                    let begins = near.0.first().filter(|begins| {
                        let id = nearest.map(|nearest| if nearest == a { at_a.id } else { at_b.id });
                        id.and_then(|id| self.first_lost_syn(id))
                            .is_some_and(|lost| self.reference_time(tap, *begins) + OTHER_TIME > lost)
                    });
                    let waited = begins
                        .zip(flow.first)
                        .map(|(begins, both)| both[first].saturating_sub(begins));
                    self.shares.add(near, far, waited.unwrap_or(0));
                }
                for (tap, place) in [(a, flow.a), (b, flow.b)] {
                    if let Some(flow) = &mut self.taps[tap].flows[place as usize] {
                        flow.shared = true;
                    }
                }
            }
        }
        for (tap, over) in over.iter().enumerate() {
            for place in (0..over.len()).filter(|&place| over[place]) {
                if let Some(flow) = self.taps[tap].remove(place as u32)
                    && !flow.shared
                {
                    self.only_here[tap] += 1;
                }
            }
        }
    }

    /// Pair of the outermost taps.
    fn whole_path(&self) -> Option<usize> {
        let order = self.order.as_ref()?;
        Some(self.pair_of(*order.first()?, *order.last()?))
    }

    /// When the first SYN of a connection that was lost between some taps was sent, by the clock of the tap nearest to the client, ns; the id is of that tap.
    fn first_lost_syn(&self, id: u64) -> Option<u64> {
        let lost = self.found.iter().filter_map(|found| found.lost_setups.get(&id));
        lost.filter_map(|lost| lost.first_syn).min()
    }

    /// No room and nothing ripe: the captures do not cover one time, or one of them is far ahead.
    fn give_up(&mut self, tap: usize) {
        let tap = &mut self.taps[tap];
        let half = tap.window.len() / 2;
        tap.given_up += half as u64;
        tap.retain(|at| at >= half);
    }
}

/// Differences of matched packets to a clock, in the order of time, of those that are trusted; `wanted` is asked about the first sighting.
fn feed(
    clock: &mut clock::Clock,
    pair: &Pair,
    taps: &[Tap],
    matches: &Matches,
    least: Trust,
    wanted: &mut dyn FnMut((usize, usize)) -> bool,
) {
    let (a, b) = (&taps[pair.a], &taps[pair.b]);
    for (at, partner) in matches.a.in_both() {
        if matches.trust[at] < least {
            continue;
        }
        let (x, y) = (&a.window[at], &b.window[partner]);
        let Some(flow) = pair.flows.get(&x.flow) else { continue };
        // A packet whose way is not known would bound the offset from the wrong side.
        let Some(near_a) = pair.client_near_a(flow) else {
            continue;
        };
        let backward = near_a != (x.side() == 0);
        let first = if backward { (pair.b, partner) } else { (pair.a, at) };
        if (x.done | y.done) & pair.bit != 0 || !wanted(first) {
            continue;
        }
        if a.believable(at) && b.believable(partner) {
            clock.add(x.time, y.time.wrapping_sub(x.time) as i64, backward);
            if matches.a.fate[at] == Fate::Matched && x.wire == y.wire {
                clock.passed([x.time, y.time], x.wire, backward);
            }
        }
    }
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.matched += other.matched;
        for k in 0..2 {
            self.only[k] += other.only[k];
            self.arrived[k] += other.arrived[k];
            self.lost[k] += other.lost[k];
            self.duplicated[k] += other.duplicated[k];
            self.missed[k] += other.missed[k];
            self.copies[k].arrived += other.copies[k].arrived;
            self.copies[k].gone += other.copies[k].gone;
        }
        self.undecided += other.undecided;
        self.outside += other.outside;
    }
}

impl Shares {
    /// A connection that both ends of the path saw: the tap near its client and the one near its server, each with
    /// the client's and the server's number there; and how long the client tried, ns, until a SYN reached the far tap.
    fn add(&mut self, near: (&ends::Ends, [usize; 2]), far: (&ends::Ends, [usize; 2]), waited: u64) {
        let ((near, [client, server]), (far, [_, server_there])) = (near, far);
        let durations = [near.duration().saturating_sub(waited), far.duration()];
        let differ = durations[0].abs_diff(durations[1]);
        let is_other_time = differ > OTHER_TIME && differ > durations[0].max(durations[1]) / 10;
        if is_other_time || [near, far].iter().any(|ends| ends.untimed || !ends.is_two_sided()) {
            self.left_out += 1;
            return;
        }
        // The first and the last packet take a way each between the taps.
        let ways = 2 * near.round_trip(client).unwrap_or(0);
        let (here, there) = (near.charges(), far.charges());
        self.total += here.whole;
        self.measured[0] += here.beside[client];
        self.measured[1] += there.beside[server_there];
        self.unsure += here.unseen + there.unseen + differ.saturating_sub(ways);
        self.unsure += here.unclear[client] + there.unclear[server_there];
        self.one_tap[0] += here.beside[client];
        self.one_tap[1] += here.across[server];
        self.uncertain += here.uncertain[server] + here.unseen;
    }
}
