//! Packet by packet: when the tap nearest to the server saw what the one nearest to the client saw, and what became of
//! the others; of more than two taps, when those between them saw it, and what only these saw.

use std::collections::BTreeMap;
use weir_record::tcp_flag;

use crate::pair::{Fate, Matches};
use crate::tap::{Digest, Map};
use crate::verdict::Ruling;
use crate::{Aligner, MAX_TAPS, tap};

/// Where a packet is, of the tap nearest to the client and the one nearest to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// At both.
    Both,
    /// Lost between them.
    Lost,
    /// It passed the other one, whose capture does not have it.
    Missed,
    /// A copy that was made between them.
    Copied,
    /// Lost or missed.
    Undecided,
    /// The other capture does not cover its time.
    Outside,
}

/// A packet of the tap nearest to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Of its frame, from 1.
    pub number: u32,
    /// What became of it.
    pub passage: Passage,
    /// When the other tap saw it, by the clock of the tap nearest to the client, TAI ns; 0 if it did not.
    pub time: u64,
}

/// A packet that the tap nearest to the client does not have, of a connection that it has, in its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Whose frame this is, as a place in the path: the tap nearest to the server; where that does not have it either,
    /// the first one between them that does.
    pub tap: usize,
    /// Id of the connection.
    pub connection: u64,
    /// By the clock of the tap nearest to the client, TAI ns.
    pub time: u64,
    /// Of its frame in its own capture, from 1.
    pub number: u32,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Payload.
    pub length: u32,
    /// As on the wire.
    pub window: u16,
    /// Bytes of the frame.
    pub wire: u16,
    /// IP id.
    pub ip_id: u16,
    /// TCP flags.
    pub flags: u8,
    /// TTL at its own tap.
    pub ttl: u8,
    /// The server sent it.
    pub from_server: bool,
    /// What became of it; of one that neither outer tap has: behind the last tap that saw it.
    pub passage: Passage,
}

/// When a tap between the outer two saw a packet that has its frame from another one, by the clock of the tap nearest to
/// the client, TAI ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Of its frame, from 1.
    pub number: u32,
    /// At this tap.
    pub time: u64,
}

/// What a tap between the outer two saw of the packets of others: of the tap nearest to the client (0), and of those
/// [`Elsewhere`], by the place of the tap whose frames they are; each by number.
pub type Between = [Vec<Pass>; MAX_TAPS];

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sightings {
    /// By number.
    pub near: Vec<Sighting>,
    /// By connection, then by time.
    pub far: Vec<Elsewhere>,
    /// Of each tap between the two, in the order of the path.
    pub between: Vec<Between>,
}

/// With the times of the other taps' own clocks, in the order of judgement.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    near: Vec<Sighting>,
    far: Vec<Elsewhere>,
    /// By tap.
    between: BTreeMap<usize, Between>,
}

impl Aligner {
    /// What is ripe between the outer taps; `near`: the one nearest to the client.
    pub(crate) fn sight(&mut self, k: usize, near: usize, matches: &Matches, ripe: &[Vec<bool>], rulings: &[Ruling]) {
        let Some(mut seen) = self.sightings.take() else { return };
        let pair = &self.pairs[k];
        let far = pair.a + pair.b - near;
        let place = self.place_of(far);
        seen.near
            .extend(self.both(k, near, matches, ripe).map(|(at, partner)| Sighting {
                number: self.taps[near].window[at].number,
                passage: Passage::Both,
                time: self.taps[far].window[partner].time,
            }));
        for ruling in rulings {
            let here = if ruling.which == 0 { pair.a } else { pair.b };
            let p = &self.taps[here].window[ruling.at as usize];
            if here == near {
                seen.near.push(Sighting {
                    number: p.number,
                    passage: ruling.passage,
                    time: 0,
                });
                continue;
            }
            seen.far.extend(self.elsewhere(k, near, p).map(|packet| Elsewhere {
                tap: place,
                passage: ruling.passage,
                ..packet
            }));
        }
        self.sightings = Some(seen);
    }

    /// A packet of the other tap of a pair in the terms of `near`, if that has its connection.
    fn elsewhere(&self, k: usize, near: usize, p: &Digest) -> Option<Elsewhere> {
        let pair = &self.pairs[k];
        let near_is_a = near == pair.a;
        let place = if near_is_a { pair.a_of(p.flow)? } else { p.flow };
        let flow = pair.flows.get(&place)?;
        let place = if near_is_a { flow.a } else { flow.b };
        let connection = self.taps[near].flows[place as usize].as_ref()?;
        let side_of_a = p.side() ^ usize::from(near_is_a && flow.flipped);
        let to_near = |number: u32, side: usize| match near_is_a {
            true => number.wrapping_sub(flow.delta(side)),
            false => number.wrapping_add(flow.delta(side)),
        };
        Some(Elsewhere {
            tap: 0,
            connection: connection.id,
            time: p.time,
            number: p.number,
            seq: to_near(p.seq, side_of_a),
            ack: match p.flags & tcp_flag::ACK {
                0 => 0,
                _ => to_near(p.ack, 1 - side_of_a),
            },
            length: p.len,
            window: p.window,
            wire: p.wire,
            ip_id: p.ip_id,
            flags: p.flags,
            ttl: p.ttl,
            from_server: p.side() ^ usize::from(flow.flipped) == 1,
            passage: Passage::Undecided,
        })
    }

    fn place_of(&self, tap: usize) -> usize {
        let order = self.order.iter().flatten();
        order.take_while(|other| **other != tap).count()
    }

    /// Whether the frame that tells of a packet is the one of the tap at this place of the path ([`Elsewhere::tap`]).
    fn tells(&self, order: &[usize], place: usize, at: usize, matches: &[Matches]) -> bool {
        let (tap, last) = (order[place], order.len() - 1);
        let alone = |other: usize| {
            let bit = self.pairs[self.pair_of(tap, other)].bit;
            let fate = self.side(tap, other, matches).fate[at];
            matches!(fate, Fate::Alone | Fate::Copy) && self.taps[tap].window[at].done & bit == 0
        };
        match place {
            0 => true,
            _ if place == last => alone(order[0]),
            _ => alone(order[last]) && order[..place].iter().all(|&other| alone(other)),
        }
    }

    /// What is ripe at the taps between the outer two, and at neither of these; `legs`: what was ruled on each leg.
    pub(crate) fn sight_inside(
        &mut self,
        order: &[usize],
        matches: &[Matches],
        ripe: &[Vec<bool>],
        legs: &[Vec<Ruling>],
    ) {
        let Some(mut seen) = self.sightings.take() else { return };
        let mut ruled: Map<(usize, u32), [Option<Passage>; MAX_TAPS]> = tap::map();
        for (leg, rulings) in legs.iter().enumerate() {
            let pair = &self.pairs[self.pair_of(order[leg], order[leg + 1])];
            for ruling in rulings {
                let tap = if ruling.which == 0 { pair.a } else { pair.b };
                ruled.entry((tap, ruling.at)).or_default()[leg] = Some(ruling.passage);
            }
        }
        for (place, &tap) in order.iter().enumerate().take(order.len() - 1).skip(1) {
            let k = self.pair_of(order[0], tap);
            for (at, p) in self.taps[tap].window.iter().enumerate() {
                if !ripe[tap][at] || !self.tells(order, place, at, matches) {
                    continue;
                }
                let Some(packet) = self.elsewhere(k, order[0], p) else {
                    continue;
                };
                let partner = |&other: &usize| {
                    let side = self.side(tap, other, matches);
                    side.is_in_both(at).then(|| (other, side.partner[at]))
                };
                let behind = order[place + 1..].iter().rev().find_map(partner);
                let last = behind.filter(|_| !packet.from_server).unwrap_or((tap, at as u32));
                let leg = self.place_of(last.0) - usize::from(packet.from_server);
                let passage = ruled.get(&last).and_then(|passages| passages[leg]);
                seen.far.push(Elsewhere {
                    tap: place,
                    passage: passage.unwrap_or(Passage::Undecided),
                    ..packet
                });
            }
        }
        self.sightings = Some(seen);
    }

    /// What is ripe of a tap between the outer two and another one, which tells of it.
    pub(crate) fn sight_between(
        &mut self,
        [place, tap]: [usize; 2],
        matches: &[Matches],
        ripe: &[Vec<bool>],
        order: &[usize],
    ) {
        let Some(mut seen) = self.sightings.take() else { return };
        let teller = order[place];
        let passes = &mut seen.between.entry(tap).or_default()[place];
        let k = self.pair_of(teller, tap);
        for (at, partner) in self.both(k, teller, &matches[k], ripe) {
            if self.tells(order, place, at, matches) {
                passes.push(Pass {
                    number: self.taps[teller].window[at].number,
                    time: self.taps[tap].window[partner].time,
                });
            }
        }
        self.sightings = Some(seen);
    }

    /// Packets that are ripe, and in both taps of a pair: their places at `tap` and at the other one.
    fn both<'a>(
        &'a self,
        k: usize,
        tap: usize,
        matches: &'a Matches,
        ripe: &'a [Vec<bool>],
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let pair = &self.pairs[k];
        let other = pair.a + pair.b - tap;
        let is_a = tap == pair.a;
        let side = if is_a { &matches.a } else { &matches.b };
        side.in_both().filter_map(move |(at, partner)| {
            let (x, y) = (&self.taps[tap].window[at], &self.taps[other].window[partner]);
            let of_a = if is_a { x } else { y };
            let flow = pair.flows.get(&of_a.flow)?;
            let first = pair.a_upstream(flow, of_a.side()) == is_a;
            let due = if first { ripe[tap][at] } else { ripe[other][partner] };
            (due && (x.done | y.done) & pair.bit == 0).then_some((at, partner))
        })
    }

    /// All of them, by the clock of the tap nearest to the client; none where the clocks cannot be compared.
    pub(crate) fn take_sightings(&mut self) -> Sightings {
        let (Some(mut seen), Some([near, middle @ .., far])) = (self.sightings.take(), self.order.as_deref()) else {
            return Sightings::default();
        };
        let is_known = |tap: usize| !self.fits[self.pair_of(*near, tap)].is_empty();
        if !is_known(*far) {
            return Sightings::default();
        }
        for sighting in seen.near.iter_mut().filter(|sighting| sighting.time > 0) {
            sighting.time = self.reference_time(*far, sighting.time);
        }
        let taps = |place: usize| if place > middle.len() { *far } else { middle[place - 1] };
        seen.far.retain(|packet| is_known(taps(packet.tap)));
        for packet in &mut seen.far {
            packet.time = self.reference_time(taps(packet.tap), packet.time);
        }
        seen.near.sort_unstable_by_key(|sighting| sighting.number);
        seen.far.sort_by_key(|packet| (packet.connection, packet.time));
        let between = middle.iter().map(|&tap| {
            let mut between = seen.between.remove(&tap).filter(|_| is_known(tap)).unwrap_or_default();
            for passes in &mut between {
                for pass in passes.iter_mut() {
                    pass.time = self.reference_time(tap, pass.time);
                }
                passes.sort_unstable_by_key(|pass| pass.number);
            }
            between
        });
        let between = between.collect();
        Sightings {
            near: seen.near,
            far: seen.far,
            between,
        }
    }
}
