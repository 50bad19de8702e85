//! Packet by packet: when the tap nearest to the server saw what the one nearest to the client saw, and what became of
//! the others; of more than two taps, when those between them saw it.

use std::collections::BTreeMap;

use crate::pair::{Fate, Matches};
use crate::verdict::Ruling;
use crate::{Aligner, tap};

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

/// A packet that only the tap nearest to the server has, of a connection that both have, in the terms of the other tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
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
    /// What became of it.
    pub passage: Passage,
}

/// When a tap between the outer two saw a packet, by the clock of the tap nearest to the client, TAI ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Of the frame at the outer tap, from 1.
    pub number: u32,
    /// At this tap.
    pub time: u64,
}

/// What a tap between the outer two saw of their packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// Of those of the tap nearest to the client, by number.
    pub near: Vec<Pass>,
    /// Of those that of the outer two only the tap nearest to the server has, by number there.
    pub far: Vec<Pass>,
}

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
        let near_is_a = near == pair.a;
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
            let place = if near_is_a { pair.a_of(p.flow) } else { Some(p.flow) };
            let Some(flow) = place.and_then(|place| pair.flows.get(&place)) else {
                continue;
            };
            let place = if near_is_a { flow.a } else { flow.b };
            let Some(connection) = &self.taps[near].flows[place as usize] else {
                continue;
            };
            let side_of_a = p.side() ^ usize::from(near_is_a && flow.flipped);
            let to_near = |number: u32, side: usize| match near_is_a {
                true => number.wrapping_sub(flow.delta(side)),
                false => number.wrapping_add(flow.delta(side)),
            };
            seen.far.push(Elsewhere {
                connection: connection.id,
                time: p.time,
                number: p.number,
                seq: to_near(p.seq, side_of_a),
                ack: match p.flags & tap::flag::ACK {
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
                passage: ruling.passage,
            });
        }
        self.sightings = Some(seen);
    }

    /// What is ripe of an outer tap and one between them.
    pub(crate) fn sight_between(
        &mut self,
        [outer, tap]: [usize; 2],
        matches: &[Matches],
        ripe: &[Vec<bool>],
        order: &[usize],
    ) {
        let Some(mut seen) = self.sightings.take() else { return };
        let [near, .., far] = *order else { return };
        let between = seen.between.entry(tap).or_default();
        let passes = if outer == near {
            &mut between.near
        } else {
            &mut between.far
        };
        let whole = &self.pairs[self.pair_of(near, far)];
        let of_whole = &matches[self.pair_of(near, far)];
        let of_far = if whole.a == far { &of_whole.a } else { &of_whole.b };
        let k = self.pair_of(outer, tap);
        for (at, partner) in self.both(k, outer, &matches[k], ripe) {
            let p = &self.taps[outer].window[at];
            if outer == near || (of_far.fate[at] == Fate::Alone && p.done & whole.bit == 0) {
                passes.push(Pass {
                    number: p.number,
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
        let fates = side.fate.iter().zip(&side.partner).enumerate();
        let matched = fates.filter(|(_, (fate, _))| matches!(fate, Fate::Matched | Fate::Pieces));
        matched.filter_map(move |(at, (_, &partner))| {
            let partner = partner as usize;
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
        for packet in &mut seen.far {
            packet.time = self.reference_time(*far, packet.time);
        }
        seen.near.sort_unstable_by_key(|sighting| sighting.number);
        seen.far.sort_by_key(|packet| (packet.connection, packet.time));
        let between = middle.iter().map(|&tap| {
            let mut between = seen.between.remove(&tap).filter(|_| is_known(tap)).unwrap_or_default();
            for passes in [&mut between.near, &mut between.far] {
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
