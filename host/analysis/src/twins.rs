//! Connections that are in a capture more than once, each time with other tags: a mirror port copies both sides of a
//! router, or of the end of a tunnel.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::sink::Ends;

/// Connections that are remembered: copies come one right after the other.
const RECENT: usize = 512;

/// The connections that were opened last.
#[derive(Debug, Default)]
pub(crate) struct Twins {
    /// By a hash of their ends.
    recent: Vec<First>,
}

/// A connection's first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct First {
    pub ends: Ends,
    /// VLAN ids; kind and id of the tunnel.
    pub tags: (u32, u8, u32),
    pub seq: u32,
    pub ack: u32,
}

impl Twins {
    /// Whether the same packet under other tags opened another connection.
    pub fn is_one(&mut self, first: First) -> bool {
        if self.recent.is_empty() {
            self.recent = vec![First::default(); RECENT];
        }
        let place = FixedState::default().hash_one(first.ends) as usize % RECENT;
        let other = std::mem::replace(&mut self.recent[place], first);
        let tags = first.tags;
        other.tags != tags && First { tags, ..other } == first
    }
}
