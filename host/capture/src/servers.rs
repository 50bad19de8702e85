//! Which ends of a capture's connections answer others: for connections that were open before the capture began, where
//! the higher port is not always the client's (a service on port 50051, clients from 32768 on).

use std::collections::{HashMap, HashSet};

use weir_engine::meta::{Class, End};
use weir_engine::{Meta, Servers};
use weir_record::{EPHEMERAL, tcp_flag};

/// An end with so many others is a server; a client's port seldom has two at a time.
const OTHERS: usize = 3;
/// Ends that are remembered at most.
const MOST: usize = 1 << 14;

/// Ends of connections. Memory: up to 16,384 of either kind, 5 MB.
#[derive(Default)]
pub(crate) struct Ends {
    /// They sent a SYN-ACK.
    answered: HashSet<End>,
    /// By ends: whom they exchanged packets with, where both ports may be a client's.
    others: HashMap<End, [Option<End>; OTHERS]>,
    /// There was a connection whose ports do not tell its server, nor anything before it.
    pub is_doubtful: bool,
}

impl Ends {
    pub fn packet(&mut self, meta: &Meta) {
        if meta.class != Class::Tcp || meta.flags & tcp_flag::RST != 0 {
            return;
        }
        let (source, destination) = match meta.from_low {
            true => (meta.key.low, meta.key.high),
            false => (meta.key.high, meta.key.low),
        };
        match (meta.flags & tcp_flag::SYN != 0, meta.flags & tcp_flag::ACK != 0) {
            (true, true) => {
                if self.answered.len() < MOST {
                    self.answered.insert(source);
                }
            }
            (true, false) => {}
            (false, _) if source.port.min(destination.port) >= EPHEMERAL => {
                self.is_doubtful |= !self.answered.contains(&source) && !self.answered.contains(&destination);
                self.meet(source, destination);
                self.meet(destination, source);
            }
            (false, _) => {}
        }
    }

    fn meet(&mut self, end: End, other: End) {
        if self.others.len() >= MOST && !self.others.contains_key(&end) {
            return;
        }
        let others = self.others.entry(end).or_default();
        if let Some(place) = others.iter_mut().find(|place| place.is_none_or(|known| known == other)) {
            *place = Some(other);
        }
    }

    /// Those that are servers.
    pub fn servers(self) -> Servers {
        let shared = self
            .others
            .into_iter()
            .filter(|(_, others)| others[OTHERS - 1].is_some());
        self.answered.into_iter().chain(shared.map(|(end, _)| end)).collect()
    }
}
