//! Something for each busy host: a table of bounded size that strangers cannot fill.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::routes::Route;

/// Hosts at most.
pub(crate) const HOSTS: usize = 32;

/// What is known of a host.
#[derive(Clone, Debug)]
struct Host<T> {
    address: [u8; 16],
    /// Facts since the hand passed: the right to stay.
    credit: u8,
    facts: T,
}

/// Where the two hosts of a route were found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// After so many changes of the table.
    changes: u32,
    /// Numbers of client and server, [`HOSTS`] if one has no place.
    numbers: [u8; 2],
}

impl Default for Found {
    fn default() -> Self {
        Self {
            changes: 0,
            numbers: [HOSTS as u8; 2],
        }
    }
}

/// Facts about hosts without a place for which the hand moves once: where thousands of hosts share the few places, each
/// would push out another.
const PATIENCE: u32 = 16;

/// Hosts by address. When the table is full, a hand goes round (second chance): a new host takes the place of one
/// without a fact since the hand passed last; else it finds no place, and the fact about it is left out. Busy hosts
/// stay, however many strangers pass.
#[derive(Clone, Debug)]
pub(crate) struct Hosts<T> {
    hosts: Vec<Host<T>>,
    /// By address as one number, which is hashed and compared at once.
    numbers: HashMap<u128, u8, FixedState>,
    /// How often hosts got a place: what was found before may be elsewhere.
    changes: u32,
    hand: usize,
    strangers: u32,
}

impl<T> Default for Hosts<T> {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            numbers: HashMap::with_hasher(FixedState::with_seed(0x7765_6972)),
            changes: 0,
            hand: 0,
            strangers: 0,
        }
    }
}

impl<T: Default> Hosts<T> {
    /// Number of the client (0) or the server of a route, if it has a place; a fact about it.
    #[inline]
    pub fn number(&mut self, route: &mut Route, side: usize) -> Option<usize> {
        if route.hosts.changes != self.changes {
            route.hosts = self.find(route);
        }
        let number = usize::from(route.hosts.numbers[side]);
        if let Some(host) = self.hosts.get_mut(number) {
            host.credit = host.credit.saturating_add(1);
            return Some(number);
        }
        if self.hosts.len() == HOSTS {
            self.strangers = (self.strangers + 1) % PATIENCE;
            if self.strangers != 0 {
                return None;
            }
        }
        self.place(route.host(side))
    }

    #[inline(never)]
    fn find(&self, route: &Route) -> Found {
        let number = |address| {
            let number = self.numbers.get(&u128::from_ne_bytes(address));
            number.copied().unwrap_or(HOSTS as u8)
        };
        Found {
            changes: self.changes,
            numbers: [number(route.client), number(route.server)],
        }
    }

    /// A place for a host without one, if there is one.
    #[cold]
    #[inline(never)]
    fn place(&mut self, address: [u8; 16]) -> Option<usize> {
        let host = Host {
            address,
            credit: 1,
            facts: T::default(),
        };
        if self.hosts.len() < HOSTS {
            self.numbers
                .insert(u128::from_ne_bytes(address), self.hosts.len() as u8);
            self.changes = self.changes.wrapping_add(1);
            self.hosts.push(host);
            return Some(self.hosts.len() - 1);
        }
        let number = self.hand;
        self.hand = (self.hand + 1) % HOSTS;
        let old = &mut self.hosts[number];
        if old.credit > 0 {
            old.credit /= 2;
            return None;
        }
        self.numbers.remove(&u128::from_ne_bytes(old.address));
        self.numbers.insert(u128::from_ne_bytes(address), number as u8);
        self.changes = self.changes.wrapping_add(1);
        *old = host;
        Some(number)
    }

    /// Facts of the client (0) or the server of a route, if it has a place.
    #[inline]
    pub fn at(&mut self, route: &mut Route, side: usize) -> Option<&mut T> {
        let number = self.number(route, side)?;
        Some(&mut self.hosts[number].facts)
    }

    /// Facts of a host by its number.
    pub fn facts(&mut self, number: usize) -> &mut T {
        &mut self.hosts[number].facts
    }

    /// All, with their addresses.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ([u8; 16], &T)> {
        self.hosts.iter().map(|host| (host.address, &host.facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Routes;
    use weir_analysis::Ends;

    #[test]
    fn busy_hosts_stay_and_strangers_pass() {
        let mut hosts = Hosts::<u32>::default();
        let mut routes = Routes::default();
        let address = |n: u32| {
            let mut address = [0; 16];
            address[..4].copy_from_slice(&n.to_le_bytes());
            address
        };
        let ends = |server| Ends {
            server,
            ..Ends::default()
        };
        for round in 0..10_000 {
            for busy in 0..4 {
                let route = routes.look_up(&ends(address(busy)));
                *hosts.at(route, 1).expect("busy") += 1;
            }
            if let Some(stranger) = hosts.at(routes.look_up(&ends(address(1000 + round))), 1) {
                *stranger += 1;
            }
        }
        assert_eq!(hosts.iter().len(), HOSTS);
        for (at, count) in hosts.iter() {
            assert_eq!(
                *count == 10_000,
                (0..4).any(|busy| address(busy) == at),
                "{at:?} {count}"
            );
        }
    }
}
