//! Packet by packet: when the tap nearest to the server saw what the one nearest to the client saw, and what became of
//! the others.

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

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sightings {
    /// By number.
    pub near: Vec<Sighting>,
    /// By connection, then by time.
    pub far: Vec<Elsewhere>,
}

/// With the times of the other tap's own clock, in the order of judgement.
#[derive(Debug, Default)]
pub(crate) struct Seen(Sightings);

impl Aligner {
    /// What is ripe between the outer taps; `near`: the one nearest to the client.
    pub(crate) fn sight(&mut self, k: usize, near: usize, matches: &Matches, ripe: &[Vec<bool>], rulings: &[Ruling]) {
        let Some(Seen(seen)) = &mut self.sightings else { return };
        let pair = &self.pairs[k];
        let far = pair.a + pair.b - near;
        let near_is_a = near == pair.a;
        let side = if near_is_a { &matches.a } else { &matches.b };
        for (at, &fate) in side.fate.iter().enumerate() {
            if !matches!(fate, Fate::Matched | Fate::Pieces) {
                continue;
            }
            let partner = side.partner[at] as usize;
            let (x, y) = (&self.taps[near].window[at], &self.taps[far].window[partner]);
            let of_a = if near_is_a { x } else { y };
            let Some(flow) = pair.flows.get(&of_a.flow) else {
                continue;
            };
            let near_first = pair.a_upstream(flow, of_a.side()) == near_is_a;
            let due = if near_first { ripe[near][at] } else { ripe[far][partner] };
            if due && (x.done | y.done) & pair.bit == 0 {
                seen.near.push(Sighting {
                    number: x.number,
                    passage: Passage::Both,
                    time: y.time,
                });
            }
        }
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
    }

    /// All of them, by the clock of the tap nearest to the client; none where the clocks cannot be compared.
    pub(crate) fn take_sightings(&mut self) -> Sightings {
        let (Some(Seen(mut seen)), Some([near, .., far])) = (self.sightings.take(), self.order.as_deref()) else {
            return Sightings::default();
        };
        if self.fits[self.pair_of(*near, *far)].is_empty() {
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
        seen
    }
}
