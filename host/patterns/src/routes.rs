//! Who talks: client, server and port, with their numbers in the tables of the detectors. A fact is looked up once here,
//! not once in every table.
//!
//! Memory: [`ROUTES`] of 64 bytes, 1 MB (others of the same place push them out, and are looked up in the tables
//! again).

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use weir_analysis::Ends;

use crate::hosts::Found;
use crate::names::Address;

/// Routes that are known, two in each place.
const ROUTES: usize = 1 << 14;

/// A number that a table gives once and for all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(u16);

impl Default for Number {
    fn default() -> Self {
        Self(u16::MAX)
    }
}

impl Number {
    /// The number, which the table is asked for if it is not known.
    #[inline]
    pub fn get_or(&mut self, ask: impl FnOnce() -> usize) -> usize {
        if self.0 == u16::MAX {
            self.0 = now(ask) as u16;
        }
        usize::from(self.0)
    }
}

/// Out of the way of what is asked again and again.
#[cold]
#[inline(never)]
fn now(ask: impl FnOnce() -> usize) -> usize {
    ask()
}

/// A server and its port, as numbers that are hashed and compared at once.
pub(crate) type ServiceKey = (u128, u16);

/// The key of a service.
pub(crate) const fn key(server: Address, port: u16) -> ServiceKey {
    (u128::from_ne_bytes(server), port)
}

/// A client and what it asks, and the numbers of both, or of the client, the server or the service alone, in tables.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Route {
    pub client: Address,
    pub server: Address,
    pub port: u16,
    /// A hash of client and server.
    pub pair: u64,
    /// Of `losses`.
    pub loss: Number,
    /// Of `rtt_shift`.
    pub path: Number,
    /// Of `connection_per_transaction`.
    pub exchange: Number,
    /// Of `responses`.
    pub answer: Number,
    /// Of `calls`.
    pub call: Number,
    /// Of `ports`.
    pub ports: Number,
    /// Of `services`, where it can change.
    pub place: u16,
    /// Of `sleep`.
    pub hosts: Found,
}

impl Route {
    /// Of which nothing is known yet; `pair` is the hash of its hosts.
    pub fn new(ends: &Ends, pair: u64) -> Self {
        Self {
            client: ends.client,
            server: ends.server,
            port: ends.server_port,
            pair,
            loss: Number::default(),
            path: Number::default(),
            exchange: Number::default(),
            answer: Number::default(),
            call: Number::default(),
            ports: Number::default(),
            place: u16::MAX,
            hosts: Found::default(),
        }
    }

    fn is_of(&self, ends: &Ends) -> bool {
        self.client == ends.client && self.server == ends.server && self.port == ends.server_port
    }

    /// The address of the client (0) or the server.
    pub const fn host(&self, side: usize) -> Address {
        if side == 0 { self.client } else { self.server }
    }
}

/// Where the route of a connection is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteKey {
    /// A hash of client and server.
    pub pair: u64,
    port: u16,
}

impl RouteKey {
    #[inline]
    pub fn of(ends: &Ends) -> Self {
        // As numbers they are hashed at once.
        let hosts = (u128::from_ne_bytes(ends.client), u128::from_ne_bytes(ends.server));
        Self {
            pair: FixedState::default().hash_one(hosts),
            port: ends.server_port,
        }
    }

    const fn place(self) -> usize {
        (self.pair ^ self.port as u64) as usize % (ROUTES / 2)
    }
}

/// The routes of facts.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The newest of each place comes first.
    places: Vec<[Route; 2]>,
}

impl Routes {
    /// The route of a connection, whose key is `key`.
    #[inline]
    pub fn of(&mut self, key: RouteKey, ends: &Ends) -> &mut Route {
        if self.places.is_empty() {
            self.fill();
        }
        let place = &mut self.places[key.place()];
        if !place[0].is_of(ends) {
            place.swap(0, 1);
            if !place[0].is_of(ends) {
                place[0] = Route::new(ends, key.pair);
            }
        }
        &mut place[0]
    }

    /// Something of it, for which it comes into the cache.
    #[inline]
    pub fn warm(&self, key: RouteKey) -> u64 {
        self.places.get(key.place()).map_or(0, |place| place[0].pair)
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self) {
        let nobody = Ends::default();
        let route = Route::new(&nobody, RouteKey::of(&nobody).pair);
        self.places.resize(ROUTES / 2, [route.clone(), route]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Routes {
        pub fn look_up(&mut self, ends: &Ends) -> &mut Route {
            self.of(RouteKey::of(ends), ends)
        }
    }

    #[test]
    fn a_route_keeps_its_numbers_until_another_takes_its_place() {
        assert_eq!(size_of::<Route>(), 64);
        let ends = |client: u128| Ends {
            client: client.to_be_bytes(),
            server_port: 80,
            ..Ends::default()
        };
        let mut routes = Routes::default();
        assert_eq!(routes.look_up(&ends(1)).loss.get_or(|| 7), 7);
        assert_eq!(routes.look_up(&ends(1)).loss.get_or(|| unreachable!()), 7);
        assert_eq!(routes.look_up(&Ends::default()).loss.get_or(|| 8), 8);
        for client in 0..1 << 20 {
            let ends = ends(client);
            let route = routes.look_up(&ends);
            assert!(route.is_of(&ends));
        }
        assert_eq!(routes.look_up(&ends(1)).loss.get_or(|| 9), 9);
    }
}
