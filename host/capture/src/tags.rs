//! Whether the two directions of a capture's connections carry different tags (VLAN ids, VNI): on links between routers and
//! in overlays with a VNI for each way they do, and with tags in the key each connection would be two halves.

use std::collections::HashMap;
use weir_record::tcp_flag;

use weir_engine::Meta;
use weir_engine::meta::{Class, End};

/// Connections that are remembered at most, and different tags of a direction.
const MOST: usize = 1 << 14;
const TAGS: usize = 4;
/// So many with different tags for one with the same.
const CLEARLY: u64 = 4;
/// What one side acknowledges is this close to what the other sent: they are of one connection, bytes.
const NEAR: u32 = 1 << 24;

/// VLAN ids and VNI.
type Ids = (u32, u32);

/// Connections by the tags of their directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    /// Both directions have the same tags.
    pub alike: u64,
    /// Each direction has its own.
    pub different: u64,
}

impl Directions {
    /// Whether tags are not part of what makes a connection there.
    pub fn differ(self) -> bool {
        self.different > 0 && self.different >= CLEARLY * self.alike
    }
}

/// One direction of a connection: its different tags, as many as were seen first, and where its data is.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    tags: [Option<Ids>; TAGS],
    next: u32,
}

/// A connection, of which something was sent and acknowledged (`is_answered`).
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sides: [Side; 2],
    is_answered: bool,
}

/// Connections and their tags. Memory: up to 16,384 connections, 4 MB.
#[derive(Default)]
pub(crate) struct Tags {
    /// By ends.
    connections: HashMap<[End; 2], Seen>,
    /// Whether a packet had any.
    pub any: bool,
}

impl Tags {
    pub fn packet(&mut self, meta: &Meta) {
        if meta.class != Class::Tcp || meta.flags & tcp_flag::RST != 0 {
            return;
        }
        self.any |= meta.key.vlans != 0 || meta.key.overlay != 0;
        let ends = [meta.key.low, meta.key.high];
        if self.connections.len() >= MOST && !self.connections.contains_key(&ends) {
            return;
        }
        let seen = self.connections.entry(ends).or_default();
        let (from, to) = if meta.from_low { (0, 1) } else { (1, 0) };
        let other = seen.sides[to];
        seen.is_answered |= other.tags[0].is_some() && meta.flags & tcp_flag::ACK != 0 && is_near(other.next, meta.ack);
        let side = &mut seen.sides[from];
        let tags = Some((meta.key.vlans, meta.key.overlay));
        if let Some(place) = side.tags.iter_mut().find(|place| place.is_none() || **place == tags) {
            *place = tags;
        }
        let takes = meta.payload + u32::from(meta.flags & tcp_flag::SYN != 0);
        side.next = meta.seq.wrapping_add(takes);
    }

    pub fn directions(&self) -> Directions {
        let mut found = Directions::default();
        for seen in self.connections.values().filter(|seen| seen.is_answered) {
            let [one, other] = &seen.sides;
            let alike = one.tags.iter().flatten().any(|tags| other.tags.contains(&Some(*tags)));
            *(if alike { &mut found.alike } else { &mut found.different }) += 1;
        }
        found
    }
}

fn is_near(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).min(b.wrapping_sub(a)) < NEAR
}
