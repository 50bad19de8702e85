//! State per flow, addressed by the flow's context index.

mod account;
mod ends;
mod extras;
mod handshake;
mod transfers;
mod trips;
mod trouble;
mod waits;

use weir_record::{ClientHow, EPHEMERAL, FlowId, Kind, Open, OpenMore, PROTOCOL_TCP, width};

use crate::route::{Host, Pair, Placed, Route, StoredRoute, TablePlace};
use crate::rtt::RoundTrips;
use crate::setup::SetupState;
use crate::sink::Ends;
use crate::turns::Turn;
use crate::twins::First;
use crate::windows::Windows;
pub(crate) use ends::FirstEnd;
use extras::Extras;
pub(crate) use extras::Pool;
pub(crate) use trips::nanoseconds;
pub(crate) use waits::Asked;

/// Address and port.
pub(crate) type Service = ([u8; 16], u16);

/// Totals of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    pub packets: u64,
    pub payload: u64,
    /// Segments that brought new bytes (from BLOCK).
    pub data_segments: u32,
    pub flight_max: u32,
}

impl Direction {
    /// Running totals of a record, modulo their widths. A value behind the last one is an old
    /// record.
    pub fn totals(&mut self, packets: u32, payload: u64) {
        self.packets = advance(self.packets, u64::from(packets), width::PACKETS);
        self.payload = advance(self.payload, payload, width::PAYLOAD);
    }
}

/// `total` moved on to the value whose low `bits` are those of `counter`, if that is less than half
/// the range away.
fn advance(total: u64, counter: u64, bits: u32) -> u64 {
    let more = counter.wrapping_sub(total) & ((1 << bits) - 1);
    if more < 1 << (bits - 1) {
        total.saturating_add(more)
    } else {
        total
    }
}

/// A flow of the table: three cache lines, of which most records need only the first or two.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub id: FlowId,
    /// Newest record, TAI ns.
    pub last: u64,
    route: StoredRoute,
    pub extras: Extras,
    pub rtt: RoundTrips,
    /// [`FIN`] and [`RST`] of either side, [`IS_TCP`], and what came first.
    bits: u8,
    /// `ClientHow`, 0 = unknown.
    pub how: u8,
    /// Places in the tables of servers and of pairs of hosts, each way, once they were looked up.
    places: [TablePlace; 3],

    pub turn: Option<Box<Turn>>,
    pub directions: [Direction; 2],
    /// Advertised by each side.
    pub windows: [Windows; 2],

    /// First packet, TAI ns.
    pub first: u64,
    /// First FIN or RST.
    pub end_time: u64,
    /// The FIN that was not that one: of the other side, or behind a RST (the client's, if there is one).
    fin_time: u64,
    fin_ack: u32,
    /// IP id of each side's first FIN; before that, the newest that INTERVAL told, or 0.
    ids: [u16; 2],
    pub setup: SetupState,
}

/// Bits of a flow: the client sent FIN or RST (as in CLOSE); the server's stand one higher.
const FIN: u8 = 1 << 0;
const RST: u8 = 1 << 2;
const IS_TCP: u8 = 1 << 4;
/// Of the first FIN or RST: it was a RST, and the server sent it.
const FIRST_IS_RST: u8 = 1 << 5;
const FIRST_IS_SERVERS: u8 = 1 << 6;
/// The capture has the connection more than once.
const IS_TWIN: u8 = 1 << 7;
/// Any FIN or RST.
const ENDS: u8 = FIN | FIN << 1 | RST | RST << 1;

impl Flow {
    pub fn open(id: FlowId, time: u64, how: u8, open: &Open) -> Self {
        Self {
            id,
            first: time,
            last: time,
            route: StoredRoute::new(
                Route {
                    client_addr: open.client_addr,
                    server_addr: open.server_addr,
                    vlans: open.vlans,
                    ..Route::default()
                },
                [open.client_port, open.server_port],
            ),
            extras: Extras::default(),
            rtt: RoundTrips::default(),
            bits: if open.protocol == PROTOCOL_TCP { IS_TCP } else { 0 },
            how,
            places: [TablePlace::default(); 3],
            turn: None,
            directions: [Direction::default(), Direction::default()],
            windows: [Windows::default(); 2],
            end_time: 0,
            fin_time: 0,
            fin_ack: 0,
            ids: [0; 2],
            setup: SetupState::default(),
        }
    }

    pub fn open_more(&mut self, more: &OpenMore) {
        if more.tunnel_kind != 0 || more.tunnel_id != 0 {
            let route = Route {
                tunnel_kind: more.tunnel_kind,
                tunnel_id: more.tunnel_id,
                ..self.route()
            };
            self.route = StoredRoute::new(route, self.route.ports());
        }
    }

    /// What its first packet was.
    pub fn first_packet(&self, more: &OpenMore) -> First {
        First {
            ends: self.ends(),
            tags: (self.route().vlans, more.tunnel_kind, more.tunnel_id),
            seq: more.first_seq,
            ack: more.first_ack,
        }
    }

    /// The capture has the connection with other tags, too.
    pub const fn set_twin(&mut self) {
        self.bits |= IS_TWIN;
    }

    /// See [`Self::set_twin`].
    pub const fn is_twin(&self) -> bool {
        self.bits & IS_TWIN != 0
    }

    /// One load from each cache line that a record of this kind needs.
    #[inline]
    pub const fn warm(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Rtt => self.id.0,
            Kind::Setup => self.id.0 ^ self.first,
            Kind::Block => self.id.0 ^ self.directions[0].packets,
            _ => self.id.0 ^ self.directions[0].packets ^ self.first,
        }
    }

    /// The same of what it points to.
    #[inline]
    pub fn warm_beyond(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Rtt => self.rtt.warm(),
            Kind::Setup | Kind::Interval => 0,
            _ => self.turn.as_ref().map_or(0, |turn| turn.warm()),
        }
    }

    #[inline]
    pub fn route(&self) -> Route {
        self.route.get()
    }

    #[inline]
    pub fn ends(&self) -> Ends {
        let route = self.route();
        let [client_port, server_port] = self.route.ports();
        Ends {
            client: route.client_addr,
            server: route.server_addr,
            client_port,
            server_port,
        }
    }

    /// The server's end.
    pub fn service(&self) -> Service {
        let [_, port] = self.route.ports();
        (self.route().server_addr, port)
    }

    /// Whether nothing but a guess tells which end is the client: the higher of two ports that may both be a client's, or who
    /// sent the first packet seen.
    pub fn is_client_guessed(&self) -> bool {
        match ClientHow::from_u8(self.how) {
            Some(ClientHow::Port) => self.route.ports()[1] >= EPHEMERAL,
            Some(ClientHow::First) => true,
            _ => false,
        }
    }

    /// The server, among all servers.
    #[inline]
    pub fn server(&mut self) -> Placed<Host> {
        let server = self.route().host(1);
        self.places[2].of(server)
    }

    /// The client's host, among all of clients.
    pub fn client(&self) -> Placed<Host> {
        TablePlace::default().of(self.route().host(0))
    }

    /// `side` as it sends to the other, among all pairs.
    #[inline]
    pub fn pair(&mut self, side: usize) -> Placed<Pair> {
        let pair = self.route.pair(side);
        self.places[side & 1].of(pair)
    }

    pub const fn is_tcp(&self) -> bool {
        self.bits & IS_TCP != 0
    }

    /// Of a flow that is over: packets of one direction alone were captured.
    pub fn is_one_sided(&self) -> bool {
        self.directions.iter().any(|direction| direction.packets == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_small() {
        assert!(size_of::<Option<Flow>>() <= 192, "{}", size_of::<Option<Flow>>());
    }

    #[test]
    fn totals_wrap_and_ignore_old_records() {
        let mut d = Direction::default();
        let whole = 1 << width::PAYLOAD;
        d.totals(u32::MAX, whole - 1);
        assert_eq!((d.packets, d.payload), (0, 0), "half the range away is an old record");
        for quarter in 1..=4u64 {
            d.totals((quarter << 30) as u32, quarter * whole / 4 % whole);
        }
        d.totals(7, 7);
        d.totals(5, 5);
        assert_eq!((d.packets, d.payload), ((1 << 32) + 7, whole + 7));
    }
}
