//! Whom a flow connects, and the places of tables of hosts.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::quality::FixedState;

/// Where a flow goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    pub client_addr: [u8; 16],
    pub server_addr: [u8; 16],
    pub vlans: u32,
    pub tunnel_id: u32,
    pub tunnel_kind: u8,
}

/// A host: the address alone can be in several networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Host {
    address: [u8; 16],
    vlans: u32,
    tunnel: u32,
}

/// One host, as it sends to another. Most are IPv4 without tags and tunnels, which are short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Plain { from: [u8; 4], to: [u8; 4] },
    Full(Box<(Host, [u8; 16])>),
}

impl Pair {
    fn new(from: Host, to: [u8; 16]) -> Self {
        let is_plain = from.vlans == 0 && from.tunnel == 0;
        match (v4(from.address), v4(to)) {
            (Some(from), Some(to)) if is_plain => Self::Plain { from, to },
            _ => Self::Full(Box::new((from, to))),
        }
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::Plain {
            from: [0; 4],
            to: [0; 4],
        }
    }
}

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Plain { from, to } => {
                let from = Host {
                    address: mapped(*from),
                    ..Host::default()
                };
                (from, mapped(*to)).hash(state);
            }
            Self::Full(pair) => pair.hash(state),
        }
    }
}

/// Places of a table of servers or pairs of hosts.
pub(crate) const PLACES: usize = 1024;

/// Where one stands in such a table, the same in every run, once it was looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TablePlace(u16);

impl Default for TablePlace {
    fn default() -> Self {
        Self(u16::MAX)
    }
}

impl TablePlace {
    #[inline]
    pub fn of<T: Hash>(&mut self, whom: T) -> Placed<T> {
        if self.0 == u16::MAX {
            self.0 = (FixedState::default().hash_one(&whom) as usize % PLACES) as u16;
        }
        Placed {
            place: self.0.into(),
            whom,
        }
    }
}

/// With the place in a table of [`PLACES`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<T> {
    pub place: usize,
    pub whom: T,
}

#[cfg(test)]
impl<T: Hash> From<T> for Placed<T> {
    fn from(whom: T) -> Self {
        TablePlace::default().of(whom)
    }
}

impl Route {
    pub const fn host(&self, side: usize) -> Host {
        Host {
            address: if side == 0 { self.client_addr } else { self.server_addr },
            vlans: self.vlans,
            tunnel: self.tunnel_id,
        }
    }
}

/// A route in the memory that it needs: most are IPv4 without tags and tunnels. With the ports, which have room there.
#[derive(Clone, Debug)]
pub(crate) enum StoredRoute {
    Plain {
        ports: [u16; 2],
        client: [u8; 4],
        server: [u8; 4],
    },
    Full {
        ports: [u16; 2],
        route: Box<Route>,
    },
}

/// `::ffff:a.b.c.d` is this, then the address. Taken as numbers: the standard library's way goes byte by byte, for each
/// record.
const V4_MAPPED: u128 = 0xffff << 32;

fn v4(addr: [u8; 16]) -> Option<[u8; 4]> {
    let addr = u128::from_be_bytes(addr);
    ((addr ^ V4_MAPPED) >> 32 == 0).then(|| (addr as u32).to_be_bytes())
}

#[inline]
fn mapped(v4: [u8; 4]) -> [u8; 16] {
    (V4_MAPPED | u128::from(u32::from_be_bytes(v4))).to_be_bytes()
}

impl StoredRoute {
    pub fn new(route: Route, ports: [u16; 2]) -> Self {
        let plain = route.vlans == 0 && route.tunnel_id == 0 && route.tunnel_kind == 0;
        match (v4(route.client_addr), v4(route.server_addr)) {
            (Some(client), Some(server)) if plain => Self::Plain { ports, client, server },
            _ => Self::Full {
                ports,
                route: Box::new(route),
            },
        }
    }

    #[inline]
    pub const fn ports(&self) -> [u16; 2] {
        match self {
            Self::Plain { ports, .. } | Self::Full { ports, .. } => *ports,
        }
    }

    /// `side` as it sends to the other.
    #[inline]
    pub fn pair(&self, side: usize) -> Pair {
        match self {
            Self::Plain { client, server, .. } => {
                let (from, to) = if side == 0 {
                    (*client, *server)
                } else {
                    (*server, *client)
                };
                Pair::Plain { from, to }
            }
            Self::Full { route, .. } => {
                let to = if side == 0 {
                    route.server_addr
                } else {
                    route.client_addr
                };
                Pair::new(route.host(side), to)
            }
        }
    }

    #[inline]
    pub fn get(&self) -> Route {
        match self {
            Self::Plain { client, server, .. } => Route {
                client_addr: mapped(*client),
                server_addr: mapped(*server),
                ..Route::default()
            },
            Self::Full { route, .. } => **route,
        }
    }
}
