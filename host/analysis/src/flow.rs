//! State per flow, addressed by the flow's context index.

use std::cmp::Ordering;

use weir_record::{
    Block, BlockEnd, ClientHow, CloseCause, EPHEMERAL, Event, EventMore, FINE_INTERVAL_NS, FlowId, INTERVAL_NS,
    Interval, Kind, NO_SCALE, Open, OpenMore, PROTOCOL_TCP, Record, Rtt, SINCE_DATA_NS, Setup, tcp_flag, what, width,
};

use crate::ceilings::filled_window;
use crate::closing::{Kind as CloseKind, closing};
use crate::given::Given;
use crate::handshake::{Handshake, Known, explain_late_answer, is_answer_late, server_waited};
use crate::icmp::Errors;
use crate::ids::{Counted, Counting, Step};
use crate::limits::{self, Charged, DELAYED_ACK_MOST, Flown, Limits, SoFar, Tail};
use crate::losses::{Again, Counts, Losses, Path, Segment, SkippedIds, since_data};
use crate::queues::{ENOUGH_SAMPLES, SharedLink, Wait};
use crate::resets::{self, Reset};
use crate::route::{Host, Pair, Placed, Route, StoredRoute, TablePlace};
use crate::rtt::{RoundTrips, Trip};
use crate::seq::at_or_before;
use crate::setup::{FIRST_TIMEOUT, Outcome, SetupState};
use crate::shares::{self, Measure, Recovery, Tails, TimeShares};
use crate::sink::Ends;
use crate::turns::{ClientFin, Finished, Left, Responses, Rest, Turn, Unseen};
use crate::twins::First;
use crate::verdict::{Class, Evidence, Place, Verdict, sign};
use crate::windows::{Closed, Windows};

/// Which packet closed the connection first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstEnd {
    None,
    Fin(u8),
    Rst(u8),
}

/// A request that has no response yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Its packets so far, TAI ns.
    pub first: u64,
    pub last: u64,
    /// Against the last that was answered on the connection.
    pub length: Ordering,
    /// How many were.
    pub answered: u32,
}

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

/// State that only flows in trouble have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub losses: [Losses; 2],
    pub closed: [Closed; 2],
    pub zero_windows: [u32; 2],
    pub small_windows: [u32; 2],
    fin_repeat: u64,
    /// ACKs of what had not been seen.
    pub early_acks: u32,
    pub handshake: Handshake,
    /// Smallest round trip to the server of any connection, when something was in trouble last, ns.
    pub to_server: Option<u64>,
    /// When the last packet of each side passed, since the trouble began, TAI ns; 0: none.
    heard: [u64; 2],
    /// IP ids of each side since the trouble began.
    ids: [Counted; 2],
    /// The latest SYN that was repeated had no window scale although the first had one.
    pub scale_dropped: bool,
    /// Repeats of each side's data behind which nothing of the other side was heard until the end.
    pub in_vain: [u64; 2],
}

impl Trouble {
    fn clear(&mut self) {
        let [mut a, mut b] = std::mem::take(&mut self.losses);
        let mut handshake = std::mem::take(&mut self.handshake);
        a.clear();
        b.clear();
        handshake.clear();
        *self = Self {
            losses: [a, b],
            handshake,
            ..Self::default()
        };
    }

    /// See [`Flow::interval_ids`].
    #[inline(never)]
    fn interval_ids(&mut self, s: usize, r: &Record, packets: u32, by_connection: bool) -> Option<Step> {
        let (i, time) = (Interval::decode(r), r.time());
        if packets > 0 {
            let last = i
                .start
                .saturating_add(if i.fine != 0 { FINE_INTERVAL_NS } else { INTERVAL_NS });
            self.heard[s] = self.heard[s].max(last.min(time));
        }
        let whole = self.losses[s].is_whole();
        let step = self.ids[s].interval(i.ip_id, packets, self.losses[s].counts.duplicates);
        self.losses[1 - s].answered(i.start, time, self.ids[s], by_connection, whole);
        step
    }
}

/// Segments in flight, or round trips of a direction, from which on a transfer is watched.
const FLIGHT: u32 = 4;
const TRIPS: u32 = 6;
/// Largest MSS that a network carries (jumbo frames); that of a loopback interface is seven times as large.
const JUMBO: u32 = 9_216;
const MILLISECOND: u64 = 1_000_000;
/// A connection on which nothing passes for so long, ns, rests.
const REST: u64 = 1_000_000_000;
/// Largest window (RFC 7323 2.3), bytes.
const MOST_WINDOW: u32 = 1 << 30;

/// s of a round trip to ns.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    // As `round`, which is a call.
    (seconds * 1e9 + 0.5) as u64
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

/// What only some flows have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras(Option<Box<Extra>>);

#[derive(Clone, Debug, Default)]
struct Extra {
    trouble: Option<Box<Trouble>>,
    /// From the first transfer on that takes more than a flight.
    limits: Option<Box<Limits>>,
    /// Of a connection that was set up.
    reset: Option<Box<Reset>>,
    errors: Option<Box<Errors>>,
}

impl Extras {
    #[inline]
    pub fn trouble(&self) -> Option<&Trouble> {
        self.0.as_ref()?.trouble.as_deref()
    }

    #[inline]
    pub fn trouble_mut(&mut self) -> Option<&mut Trouble> {
        self.0.as_mut()?.trouble.as_deref_mut()
    }

    #[inline]
    pub fn limits(&self) -> Option<&Limits> {
        self.0.as_ref()?.limits.as_deref()
    }

    #[inline]
    pub fn limits_mut(&mut self) -> Option<&mut Limits> {
        self.0.as_mut()?.limits.as_deref_mut()
    }

    #[inline]
    pub fn reset(&self) -> Option<&Reset> {
        self.0.as_ref()?.reset.as_deref()
    }

    pub fn errors(&self) -> Option<&Errors> {
        self.0.as_ref()?.errors.as_deref()
    }

    /// A packet of `side` that is no RST passed at `time`.
    #[inline]
    pub fn sent(&mut self, side: usize, time: u64) {
        if let Some(reset) = self.0.as_mut().and_then(|extra| extra.reset.as_mut()) {
            reset.sent(side & 1, time);
        }
    }

    /// `ids`: the newest of either side, or 0.
    fn make_trouble(&mut self, ids: [u16; 2], pool: &mut Pool) -> &mut Trouble {
        let extra = self.0.get_or_insert_default();
        extra.trouble.get_or_insert_with(|| pool.trouble(ids))
    }

    fn make_limits(&mut self, pool: &mut Pool) -> &mut Limits {
        let extra = self.0.get_or_insert_default();
        extra.limits.get_or_insert_with(|| pool.limits())
    }
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

    /// IP ids of an INTERVAL of `side`: what was not seen of them since the interval before, if ids tell. To be called
    /// before the totals move.
    #[inline]
    pub fn interval_ids(&mut self, side: usize, r: &Record, by_connection: impl FnOnce() -> bool) -> Option<Step> {
        let s = side & 1;
        let i = Interval::decode(r);
        let packets = i.packets.wrapping_sub(self.directions[s].packets as u32);
        let sent_fin = self.sent_fin(s);
        match self.extras.trouble_mut() {
            Some(trouble) => trouble.interval_ids(s, r, packets, by_connection()),
            None if sent_fin => None,
            None => {
                let before = std::mem::replace(&mut self.ids[s], i.ip_id);
                Step::new(before, i.ip_id, packets.into())
            }
        }
    }

    /// Whether an id of this side, or its FIN, is known (the SYN-ACK of Linux has none).
    pub fn has_ids(&self, side: usize) -> bool {
        self.newest_id(side) != 0 || self.sent_fin(side)
    }

    /// The newest IP id of this side that a record told; 0: none, or it numbers none.
    fn newest_id(&self, side: usize) -> u16 {
        let s = side & 1;
        let counted = self.extras.trouble().map(|trouble| trouble.ids[s].newest());
        counted.filter(|id| *id != 0).unwrap_or(self.ids[s])
    }

    fn newest_ids(&self) -> [u16; 2] {
        [0, 1].map(|s| if self.sent_fin(s) { 0 } else { self.ids[s] })
    }

    /// A segment in sequence before which IP ids of its sender were skipped, of a host that counts by connection or of which
    /// that is not known yet. Returns whether it shows a loss.
    pub fn skipped(&mut self, side: usize, e: &Event, time: u64, counting: Counting, pool: &mut Pool) -> bool {
        let s = side & 1;
        let path = self.path(s);
        let ids = self.newest_ids();
        let goes_on = |passed| self.turn.as_ref().is_some_and(|turn| turn.goes_on(s, e.seq, passed));
        let is_next = e.what & what::PUSH != 0 && e.what & what::ACKED_UNKNOWN == 0 && e.acked == e.seq;
        let queued = is_next && counting != Counting::Uneven && goes_on(time.saturating_sub(since_data(e)));
        let trouble = self.extras.make_trouble(ids, pool);
        let known = SkippedIds {
            by_connection: counting == Counting::ByConnection,
            queued: queued && !trouble.closed[1 - s].is_closed(),
        };
        let [first, second] = &mut trouble.losses;
        let (own, other) = if s == 0 { (first, second) } else { (second, first) };
        let mirrored = other.is_mirrored(self.directions[1 - s].data_segments);
        let lost = own.skipped(e, time, (other, mirrored), known, path);
        if lost && let Some(turn) = &mut self.turn {
            turn.loss(time);
        }
        lost
    }

    pub const fn is_tcp(&self) -> bool {
        self.bits & IS_TCP != 0
    }

    /// What the classification of segments from `side` needs to know.
    pub fn path(&self, side: usize) -> Path {
        // The handshake's may have waited in a queue. What timers are held against may be too long.
        let sum = || Some(self.at_most(0)? + self.at_most(1)?);
        let rtt = [self.setup.path_rtt(), sum()].into_iter().flatten().min();
        let sack = |side| self.setup.options(side).is_some_and(|o| o.sack);
        let trip = self.trip(side);
        let sender = 1 - (side & 1);
        let near = self.trip(sender);
        let others = self.extras.trouble().and_then(|trouble| trouble.to_server);
        let shared = others.and_then(|others| Some(others + self.at_most(1)?));
        let others = others.filter(|_| side & 1 == 0);
        Path {
            rtt,
            least: rtt.map(|rtt| shared.map_or(rtt, |shared| rtt.min(shared))),
            far: trip.filter(|_| self.rtt.samples(side) >= ENOUGH_SAMPLES),
            near: near.filter(|_| self.setup.has_timed(sender) || self.rtt.samples(sender) >= ENOUGH_SAMPLES),
            whole: self.rtt.all_acknowledged(side),
            others: others.map(|others| trip.map_or(others, |own| own.min(others))),
            timed: trip.filter(|_| self.setup.has_timed(side)),
            segment: self.setup.payload(),
            sack: sack(0) && sack(1),
            reach: self.reach(side),
            queue: trip.is_some_and(|trip| self.queue_stands(side, trip)),
            reset: self.sent_rst(1 - (side & 1)),
            fin: self.sent_fin(side).then(|| (self.ids[side & 1], self.fin_time(side))),
        }
    }

    fn queue_stands(&self, side: usize, smallest: u64) -> bool {
        let limits = self.extras.limits();
        limits.is_some_and(|limits| limits.sides[side & 1].queue_stands(smallest))
    }

    /// What `block` of `side` begins with was not seen; and whether its receiver has it all the same.
    pub fn unseen(&self, side: usize, block: &Block) -> Option<bool> {
        self.extras.trouble()?.losses[side & 1].unseen(block.seq)
    }

    /// Data of `side` behind `ack` was not seen: what is in flight there may have come long after what was acknowledged.
    pub fn is_at_gap(&self, side: usize, ack: u32) -> bool {
        let trouble = self.extras.trouble();
        trouble.is_some_and(|trouble| trouble.losses[side & 1].unseen(ack).is_some())
    }

    /// A block of `side` is told of; `before`: the newest packet that a record had told of. Where it is the first of what nobody answers, how long
    /// the connection had rested before it is kept.
    pub fn rested(&mut self, side: usize, block: &Block, before: u64) {
        let (side, ns) = (side & 1, block.first.saturating_sub(before));
        let is_kept = |flow: &Self| {
            flow.rest()
                .is_some_and(|rest| rest.side == side && !flow.has_heard(rest))
        };
        if ns < REST || is_kept(self) {
            return;
        }
        let rest = Rest {
            side,
            at: block.first,
            ns,
            samples: self.rtt.samples(side),
        };
        if let Some(turn) = &mut self.turn {
            turn.set_rest(rest);
        }
    }

    fn rest(&self) -> Option<Rest> {
        self.turn.as_ref()?.rest()
    }

    /// Anything of the other side that a record tells came behind the rest.
    fn has_heard(&self, rest: Rest) -> bool {
        let other = 1 - rest.side;
        let event = self
            .extras
            .trouble()
            .is_some_and(|trouble| trouble.heard[other] > rest.at);
        let data = || {
            self.turn
                .as_ref()
                .is_some_and(|turn| turn.has_sent_since(other, rest.at))
        };
        event || self.rtt.samples(rest.side) > rest.samples || data()
    }

    /// How long nothing had passed before data of `side`, ns, since which nothing of the other side was heard.
    pub fn rest_before_silence(&self, side: usize) -> Option<u64> {
        let rest = self.rest().filter(|rest| rest.side == side & 1)?;
        (!self.has_heard(rest)).then_some(rest.ns)
    }

    /// Whether what begins at `seq` and passed at `time` was sent again, and lost before the tap the first time.
    pub fn came_again(&self, side: usize, seq: u32, time: u64) -> Again {
        let trouble = self.extras.trouble();
        trouble.map_or(Again::No, |t| t.losses[side & 1].came_again(seq, time))
    }

    /// Whether it was late before the tap.
    fn was_late(&self, side: usize, seq: u32, time: u64) -> bool {
        let trouble = self.extras.trouble();
        trouble.is_some_and(|t| t.losses[side & 1].was_late(seq, time))
    }

    pub fn client_fin(&self) -> ClientFin {
        // Most have none yet, and the rest of it is further away.
        if !self.sent_fin(0) {
            return ClientFin::default();
        }
        ClientFin {
            time: self.fin_time(0),
            ack: self.fin_ack,
            repeat: self.extras.trouble().map_or(0, |t| t.fin_repeat),
        }
    }

    /// The client's FIN came again after `time`: what is acknowledged with it may answer that (Karn, RFC 6298 3).
    pub fn fin_came_again(&self, side: usize, time: u64) -> bool {
        let repeat = self.extras.trouble().map_or(0, |t| t.fin_repeat);
        side & 1 == 0 && repeat > time
    }

    pub const fn sent_fin(&self, side: usize) -> bool {
        self.bits & FIN << (side & 1) != 0
    }

    /// The server has not ended its side, and nobody has reset the connection.
    const fn may_answer(&self) -> bool {
        self.bits & (FIN << 1 | RST | RST << 1) == 0
    }

    /// When this side's first FIN passed; 0: it did not, or that is not known.
    pub const fn fin_time(&self, side: usize) -> u64 {
        match self.first_end() {
            FirstEnd::Fin(first) if first as usize == side & 1 => self.end_time,
            FirstEnd::Rst(_) if side & 1 == 1 && self.sent_fin(0) => 0,
            _ if self.sent_fin(side) => self.fin_time,
            _ => 0,
        }
    }

    pub const fn sent_rst(&self, side: usize) -> bool {
        self.bits & RST << (side & 1) != 0
    }

    /// FINs and RSTs that CLOSE knows of; their time is not known when no EVENT told it.
    pub fn close_bits(&mut self, bits: u16) {
        let ends = bits as u8 & ENDS;
        for (kind, side) in [(FIN, 0), (FIN, 1), (RST, 0), (RST, 1)] {
            if ends & kind << side != 0 {
                self.add_end(kind, side);
            }
        }
    }

    /// `side` sent a FIN or RST. Returns whether it is the first of all.
    fn add_end(&mut self, kind: u8, side: usize) -> bool {
        let is_first = self.bits & ENDS == 0;
        if is_first {
            self.bits |= if kind == RST { FIRST_IS_RST } else { 0 };
            self.bits |= if side == 1 { FIRST_IS_SERVERS } else { 0 };
        }
        self.bits |= kind << side;
        is_first
    }

    /// Which packet closed the connection first.
    pub const fn first_end(&self) -> FirstEnd {
        let side = (self.bits & FIRST_IS_SERVERS != 0) as u8;
        if self.bits & ENDS == 0 {
            FirstEnd::None
        } else if self.bits & FIRST_IS_RST != 0 {
            FirstEnd::Rst(side)
        } else {
            FirstEnd::Fin(side)
        }
    }

    /// Counters of a direction's segments; zeros for a flow without trouble.
    pub fn counts(&self, side: usize) -> Counts {
        self.extras
            .trouble()
            .map_or_else(Counts::default, |t| t.losses[side & 1].counts)
    }

    /// Data packets of a side, repeats included; what the capture alone made is left out.
    pub fn data_packets(&self, side: usize) -> u64 {
        let counts = self.counts(side);
        let data = u64::from(self.directions[side & 1].data_segments) + counts.sent_without_new();
        // A retransmission that also brought new bytes is in the blocks already.
        data.max(counts.retransmitted_data)
    }

    /// FIN and RST of an EVENT. Their order is that of the records.
    pub fn ending(&mut self, side: usize, e: &Event, time: u64) {
        let s = side & 1;
        if e.what & what::FIN != 0 && e.what & what::WILD == 0 {
            self.ids[s] = e.ip_id;
            if let Some((turn, tsval)) = self.turn.as_mut().zip(e.sent()).filter(|_| s == 0) {
                turn.set_stamp(tsval, time);
            }
            let is_again = self.fin_time(s) != 0;
            if s == 0 && !is_again {
                self.fin_ack = e.ack;
            }
            if self.add_end(FIN, s) {
                self.end_time = time;
            } else if !is_again && (s == 0 || self.fin_time == 0) {
                self.fin_time = time;
            }
        }
        if e.what & what::RST != 0 && e.what & what::WILD == 0 && self.add_end(RST, s) {
            self.end_time = time;
        }
    }

    /// An ICMP error about a packet of `side`.
    #[cold]
    pub fn refused(&mut self, side: usize, is_v6: bool, e: &Event, time: u64) {
        let errors = &mut self.extras.0.get_or_insert_default().errors;
        errors
            .get_or_insert_with(|| Box::new(Errors::new(side & 1, is_v6, e, time)))
            .add(side & 1, e, time);
    }

    /// A RST of a connection that was set up.
    pub fn reset(&mut self, side: usize, e: &Event, time: u64) {
        if self.extras.reset().is_some() || !self.setup.is_done() || e.what & what::WILD != 0 {
            return;
        }
        let turn = self.turn.as_ref().filter(|_| side & 1 == 1);
        let asked = turn.and_then(|turn| {
            let shaken = || Some(self.first.saturating_add(self.setup.end_ns()?));
            Some(resets::Asked {
                request: turn.waits_since()?,
                end: turn.request_end()?,
                before: turn.previous().or_else(shaken)?,
            })
        });
        let reset = Reset::new(side & 1, e, time, asked, self.by_samples(0));
        self.extras.0.get_or_insert_default().reset = Some(Box::new(reset));
    }

    /// An EVENT that is more than the first FIN or a RST. Returns whether a segment was lost.
    pub fn trouble(&mut self, side: usize, e: &Event, more: Option<&EventMore>, time: u64, pool: &mut Pool) -> bool {
        let s = side & 1;
        if e.what & what::SACK != 0 {
            // No interval has told of it yet, and much may have come since the handshake.
            self.windows[s].interval(e.window, e.window);
        }
        let (path, other_path) = (self.path(s), self.path(1 - s));
        let first_scale = self.setup.options(0).and_then(|o| o.scale);
        let (opened, pending) = (self.first, !self.setup.is_done());
        let ids = self.newest_ids();
        let trouble = self.extras.make_trouble(ids, pool);
        let mut lost = false;
        trouble.heard[s] = trouble.heard[s].max(time);
        if pending && s == 1 && e.what & what::WILD_ACK != 0 {
            trouble.handshake.challenge();
        }
        if pending && s == 1 && e.what & what::ACKS_REPEAT != 0 && e.tcp_flags & tcp_flag::SYN != 0 {
            trouble.handshake.echoes(e);
        }
        if e.what & (what::SYN_REPEAT | what::SYN_ACK_REPEAT) != 0 {
            if !pending {
                trouble.handshake.without_trouble(&self.setup, opened);
            }
            let class = trouble.handshake.repeat(s, e, more, time, opened, !pending);
            if class != Class::Copy {
                if !pending {
                    self.setup.late_repeat(s);
                }
                let answer = usize::from(e.what & what::SYN_ACK_REPEAT != 0);
                let counts = &mut trouble.losses[s].counts;
                counts.retransmitted += 1;
                counts.retransmitted_bytes += u64::from(e.length);
                if pending && answer == 0 && s == 0 {
                    self.setup.syn_repeat(time, opened);
                }
                if answer == 0 && more.is_some_and(|m| m.scale == NO_SCALE) {
                    trouble.scale_dropped |= first_scale.is_some() || pending;
                }
            }
            if class == Class::Copy {
                trouble.losses[s].counts.duplicates += 1;
            }
            return false;
        }
        let [first, second] = &mut trouble.losses;
        let (own, other) = if s == 0 { (first, second) } else { (second, first) };
        own.answers = trouble.ids[1 - s];
        let segment = own.sent(e, time, path);
        other.heard(e, more, time, other_path);
        own.counts.sack_states += u64::from(e.what & what::SACK != 0);
        own.counts.duplicate_triples += u64::from(e.what & what::DUP_ACK != 0);
        own.counts.window_full += u64::from(e.what & what::WINDOW_FULL != 0);
        if matches!(segment, Some(Segment::Fill | Segment::Repeat)) {
            lost = true;
            if e.what & what::FIN_REPEAT != 0 && s == 0 && trouble.fin_repeat == 0 {
                trouble.fin_repeat = time;
            }
        }
        if e.what & what::ZERO_WINDOW != 0 {
            trouble.zero_windows[s] = trouble.zero_windows[s].saturating_add(1);
            trouble.closed[s].begin(time, true);
        } else if e.what & what::SMALL_WINDOW != 0 {
            trouble.small_windows[s] = trouble.small_windows[s].saturating_add(1);
            trouble.closed[s].begin(time, false);
        } else if e.what & what::WINDOW_OPEN != 0 {
            trouble.closed[s].end(time);
        }
        let turn = self.turn.get_or_insert_with(|| pool.turn());
        if lost {
            turn.loss(time);
        }
        if segment == Some(Segment::Refused) {
            turn.asked_anew(time);
        }
        if segment == Some(Segment::Fill) && e.what & what::PUSH != 0 {
            turn.push_at(s, e.seq.wrapping_add(e.length));
        }
        if e.what & what::ACK_UNSEEN != 0 {
            trouble.early_acks = trouble.early_acks.saturating_add(1);
        }
        if e.what & what::ACK_UNSEEN != 0 && s == 1 {
            let is_own = e.what & (what::GAP | what::BELOW | what::WILD) != 0;
            turn.acked_unseen(Unseen {
                time,
                from: (!is_own).then_some(e.expected),
                to: e.ack,
            });
        }
        if e.what & what::PROBE != 0 {
            turn.probe(s, e.seq);
            trouble.closed[1 - s].ask();
        }
        lost
    }

    /// The block that the engine did not make of the EVENT's data, because a FIN had come before it.
    pub fn late_block(&mut self, side: usize, e: &Event, time: u64) -> Option<(BlockEnd, Block)> {
        let late = self.extras.trouble_mut()?.losses[side & 1].late.take()?;
        let end = match (e.what & what::PUSH != 0, late.is_last) {
            (true, _) => BlockEnd::Push,
            (false, true) => BlockEnd::Fin,
            (false, false) => BlockEnd::Limit, // it goes on in the next
        };
        let block = Block {
            first: time,
            last: time,
            seq: late.seq,
            bytes: late.bytes,
            ack: e.ack,
            flight: 0,
            packets: 1,
            max_segment: e.length.min(u32::from(u16::MAX)) as u16,
            window: 0,
            ttl: e.ttl,
            known: u8::from(e.tcp_flags & tcp_flag::ACK != 0),
        };
        Some((end, block))
    }

    /// How far from its ACK the receiver of a side's data can have some of it: what arrived fitted its window, and was sent. Twice that, for
    /// the capture may have missed half.
    fn reach(&self, side: usize) -> u32 {
        let receiver = 1 - (side & 1);
        let window = match self.setup.scale(receiver) {
            Some(_) => self.largest_window(receiver),
            None => MOST_WINDOW,
        };
        let sent = u32::try_from(self.directions[side & 1].payload).unwrap_or(u32::MAX);
        window.max(sent).saturating_mul(2).min(MOST_WINDOW)
    }

    /// Largest window that a side advertised in bytes, in its SYN or later; 0: not known.
    fn largest_window(&self, side: usize) -> u32 {
        let Some(shift) = self.setup.scale(side) else { return 0 };
        let later = self.windows[side].bytes(shift).map_or(0, |(_, most)| most);
        u32::try_from(later)
            .unwrap_or(u32::MAX)
            .max(self.setup.first_window(side))
    }

    /// What the path tells of transfers of `side`.
    pub fn limit_path(&self, side: usize, given: Given) -> limits::Path {
        let window = self.largest_window(1 - (side & 1));
        // Half the largest window that was offered is as good as a segment (RFC 1122 4.2.3.4), and Linux sends no larger ones: on a
        // loopback interface a window has hardly room for one.
        let most = if window > 0 { window / 2 } else { u32::MAX };
        let [base, other] = [side, 1 - (side & 1)].map(|side| self.smallest_trip(side));
        let full = self.setup.payload();
        let payload = self
            .extras
            .limits()
            .map_or(full, |limits| limits.sides[side & 1].cut(full));
        limits::Path {
            segment: (self.setup.segment() - (full - payload)).min(most),
            payload: payload.min(most),
            mss: if self.setup.segment() <= JUMBO {
                self.setup.segment()
            } else {
                0
            },
            base: base.or_else(|| given.rest(other)),
            other: other.or_else(|| given.rest(base)).unwrap_or(0),
            exact: self.setup.outcome == Outcome::Ok,
            window,
            inferred: filled_window(self, 1 - (side & 1)),
            link: given.link,
            from_server: side & 1 == 1,
            told: self.setup.agreed_mss().is_some(),
        }
    }

    /// Smallest round trip between the tap and the receiver of a side's data, or more, ns. To a server behind a slow link all that this
    /// connection has seen may have waited in its queue; then it is that of others.
    fn smallest_trip(&self, side: usize) -> Option<u64> {
        let likely = || self.extras.trouble()?.handshake.likely(side & 1, &self.setup);
        let own = self.at_most(side).or_else(likely)?;
        let others = self.extras.limits().and_then(|limits| limits.to_server);
        let waited = |others: &u64| side & 1 == 0 && own > others.saturating_add(limits::SLACK);
        Some(others.filter(waited).unwrap_or(own))
    }

    /// What transactions are measured with.
    pub fn measure(&self, given: Given) -> Measure {
        Measure {
            segment: self.setup.segment(),
            ..self.trips(given)
        }
    }

    /// Where nothing of its own tells the round trip to the server (a handshake with repeats, and responses that ended all others), what
    /// others had, ns.
    fn others_trip(&self) -> Option<u64> {
        let others = self.extras.trouble()?.to_server?;
        Some(self.at_most(0).map_or(others, |most| most.min(others)))
    }

    fn trips(&self, given: Given) -> Measure {
        let [to_server, to_client] = [self.trip(0).or_else(|| self.others_trip()), self.trip(1)];
        // No sample is shorter than the path, whoever ended it.
        let rest = |side: usize, seen| {
            let rest = given.rest(seen)?;
            Some(self.at_most(side).map_or(rest, |most| most.min(rest)))
        };
        Measure {
            to_client: to_client.or_else(|| rest(1, to_server)),
            to_server: to_server.or_else(|| rest(0, to_client)),
            given,
            ..Measure::default()
        }
    }

    /// Whether the round trip to the receiver of `side`'s data is not known: of what was given neither, where a sample was shorter.
    fn is_unsure(&self, side: usize, m: &Measure) -> bool {
        let trip = [m.to_server, m.to_client][side & 1];
        let is_sample = || self.trip(side).is_none() && self.at_most(side) == trip;
        trip.is_none() || m.given.trip.is_some() && is_sample()
    }

    /// What is acknowledged at once came late: a slow link, or a queue, may be behind the tap.
    fn waited(&self, side: usize, rtt: &Rtt) -> bool {
        let least = self.at_most(side);
        let is_late = least.is_some_and(|least| rtt.rtt > least.saturating_add(limits::SLACK));
        is_late && limits::is_prompt(rtt.rtt, rtt.flight, rtt.ack == rtt.seq_end, self.setup.payload(), least)
    }

    /// A round trip of `side`'s data that is part of a transfer; `goes_on`: of a long one, of which no block tells yet.
    pub fn limit_sample(&mut self, side: usize, time: u64, rtt: &Rtt, goes_on: bool, given: Given, pool: &mut Pool) {
        let s = side & 1;
        let segment = self.setup.segment();
        // Most transfers are one flight, and come over no slow link.
        let is_short = || rtt.flight < FLIGHT * segment && self.rtt.samples(s) < TRIPS;
        if self.extras.limits().is_none() && !goes_on && is_short() && !self.waited(s, rtt) {
            return;
        }
        let path = self.limit_path(s, given);
        let scale = self.setup.scale(1 - s);
        let window = scale.map(|shift| u32::from(rtt.window) << shift);
        let is_marked = rtt.tcp_flags & tcp_flag::ECE != 0 && self.setup.has_ecn();
        let transfer = &mut self.extras.make_limits(pool).sides[s];
        transfer.sample(time, rtt, window, &path);
        if is_marked {
            transfer.marked(&path);
        }
    }

    /// What passed of `side`'s data between the last two segments that were timed, and whether it was as fast as before.
    pub fn piece(&self, side: usize) -> Option<(Block, bool)> {
        self.extras.limits()?.sides[side & 1].piece(self.setup.payload())
    }

    /// A block of `side`; `before`: what there is before it in the same transfer, and what is known of a slow link that it came over.
    pub fn limit_block(
        &mut self,
        side: usize,
        code: u8,
        b: &Block,
        (tail, shared): (Option<SoFar>, Option<SharedLink>),
        given: Given,
        pool: &mut Pool,
    ) {
        let s = side & 1;
        let slow = b.last.saturating_sub(b.first) > limits::SLACK
            || tail.is_some_and(|tail| b.first.saturating_sub(tail.last) > limits::SHORTEST_PAUSE);
        let is_first = self.extras.limits().is_none();
        if is_first && !slow {
            return;
        }
        // Nothing was noted of it when it came: of most transfers it is the end.
        let heard = if is_first { self.rtt.last_whole(s) } else { None };
        if let Some(shared) = shared {
            self.extras.make_limits(pool).to_server = Some(shared.least);
        }
        let scale = self.setup.scale(1 - s);
        if b.known & 2 != 0 {
            let window = u32::from(b.window) << scale.unwrap_or(0);
            let payload = self.setup.payload();
            self.extras.make_limits(pool).sides[s].learn_cut(b, tail, window, payload);
        }
        let path = self.limit_path(s, given);
        // A block as long as the unscaled window was cut by it.
        let fills = u32::from(b.window) == b.bytes && b.bytes < path.payload;
        let transfer = &mut self.extras.make_limits(pool).sides[s];
        let unscaled = transfer.fills_field(b, tail.map(|tail| tail.last), fills, scale, &path);
        let scale = if unscaled { Some(0) } else { scale }.filter(|_| b.known & 2 != 0);
        let window = scale.map(|shift| u32::from(b.window) << shift);
        transfer.waited_since(b, shared.and_then(|shared| shared.busy_since), tail);
        if let Some(ack) = heard {
            transfer.heard_before(ack, b, tail, window, &path);
        }
        transfer.block(code, b, tail, window, &path);
    }

    /// An EVENT: windows and losses. `lost`: a segment of `side` was sent again.
    pub fn limit_event(&mut self, side: usize, e: &Event, lost: bool, time: u64, given: Given, pool: &mut Pool) {
        let s = side & 1;
        let window = what::ZERO_WINDOW | what::SMALL_WINDOW | what::WINDOW_OPEN;
        let heard = what::DUP_ACK | what::SACK;
        let of_interest = window | heard | what::WINDOW_FULL | what::GAP;
        if self.setup.is_done() && (lost || e.what & of_interest != 0) && e.what & what::WILD == 0 {
            let (own, other) = (self.limit_path(s, given), self.limit_path(1 - s, given));
            let limits = self.extras.make_limits(pool);
            let [first, second] = &mut limits.sides;
            let (sent, received) = if s == 0 { (first, second) } else { (second, first) };
            let window = self.setup.scale(s).map(|shift| u32::from(e.window) << shift);
            // Small by its MSS, a window may hold nobody back all the same.
            let is_zero = e.what & what::ZERO_WINDOW != 0;
            let is_small = e.what & what::SMALL_WINDOW != 0 && window.is_none_or(|window| window < other.segment);
            if is_zero || is_small {
                received.close(time, is_zero, &other);
            } else if e.what & (what::SMALL_WINDOW | what::WINDOW_OPEN) != 0 {
                received.open(time, &other);
            }
            if e.what & heard != 0 && e.what & what::DSACK == 0 {
                received.saw(time, e.ack, window);
                received.heard_of_gap(time, &other);
            }
            if e.what & what::WINDOW_FULL != 0 {
                let flight = e.seq.wrapping_add(e.length).wrapping_sub(e.acked);
                sent.full(time, flight, e.seq.wrapping_add(e.length));
            }
            if lost {
                sent.again(time, e.expected, e.expected.wrapping_sub(e.acked), &own);
                let silent = (e.what & what::IDLE_BEFORE == 0).then(|| u64::from(e.since_data) * SINCE_DATA_NS);
                sent.loss(silent, time, &own);
            } else if e.what & what::GAP != 0 {
                sent.gap(time, &own);
            }
        }
    }

    /// A transaction is over: charge its transfers and say whose time it was. `next`: the first packet of the next one.
    pub fn account(&mut self, done: &mut Finished, next: u64, given: Given, pool: &mut Pool) -> TimeShares {
        // Without a link, segments are not asked for, which are further away.
        let m = if given.link.is_none() {
            self.trips(given)
        } else {
            self.measure(given)
        };
        if let Some(gap) = done.server.filter(|_| self.is_unsure(0, &m)) {
            // The way to the server and back is in it, as long as the shortest sample at most.
            let most = self.at_most(0).map_or(gap, |most| most.min(gap));
            done.wait = Some(Wait::or(done.wait, 0, most));
        }
        let answered = done.response.is_some();
        // What crosses is charged to the response, and a response ends where the next request begins.
        let request_end = done.request_time.saturating_add(done.request);
        let request_end = if answered {
            request_end.min(done.response_time.max(done.request_time))
        } else {
            request_end
        };
        let response_end = done.response_time.saturating_add(done.response.unwrap_or(0));
        let response_end = response_end.min(next).max(done.response_time);
        let asked = (done.request_time, request_end);
        let [mut request_tail, mut tail] = [Tail::default(); 2];
        if answered {
            request_tail = self.tail(0, asked, done, done.response_time, &m, given);
            tail = self.tail(
                1,
                (done.response_time, response_end),
                done,
                next.min(self.last),
                &m,
                given,
            );
        }
        let mut request = self.transfer(0, (done.request_time, request_end), next, given, pool);
        let mut response = self.transfer(1, (done.response_time, response_end), next, given, pool);
        if done.missed.is_some() {
            // All that it took may have been the client's.
            done.wait = Some(Wait::or(done.wait, 0, u64::MAX));
        }
        let since_previous = done.client.or(done.missed.filter(|gap| *gap > 0));
        let before = since_previous.or_else(|| self.since_setup(done));
        let (recovered, filled, doubtful) = self.recovery(done, (request_end, response_end), next, &m);
        // Who asks next had to wait for what came again, or for nothing.
        tail.uncertain = tail.uncertain.max(doubtful);
        if next == u64::MAX {
            let (s, from, charged) = match answered {
                true => (1, response_end, &mut response),
                false => (0, request_end, &mut request),
            };
            if let Some(stall) = self.stall(s, from.saturating_add(recovered[1]), pool) {
                charged.get_or_insert_default().join(&stall);
            }
        }
        // Where its end came again, whether it arrived is not known.
        done.unanswered = done.unanswered.filter(|_| recovered[1] == 0);
        done.paused_us = match &request {
            Some(charged) if !done.overlapped => u32::try_from(charged.longest / 1_000).unwrap_or(u32::MAX),
            _ => 0,
        };
        let inferred = [self.inferred(0, request.as_ref()), self.inferred(1, response.as_ref())];
        let under_way = |charged: &Option<Charged>| charged.as_ref().map_or(0, Charged::under_way);
        let late = tail.late;
        let tail = tail.behind(under_way(&response));
        let left = Left {
            recovered: recovered[1],
            filled: filled[1],
            tail,
        };
        let left = self.turn.as_mut().map_or(left, |turn| turn.leave(left));
        let again = match before.and(done.request_start()) {
            Some(at) if self.was_late(0, at, done.request_time) => Again::Maybe,
            Some(at) => self.came_again(0, at, done.request_time),
            None => Again::No,
        };
        let was_late = |_: &u64| self.was_late(1, done.response_start(), done.response_time);
        if let Some(gap) = done.server.filter(was_late) {
            done.wait = Some(Wait::or(done.wait, m.to_server.unwrap_or(0), gap));
        }
        let recovery = Recovery {
            asked_again: again == Again::Yes,
            answer: self.behind_fin(done),
            request: recovered[0],
            end: recovered[1],
            before: left.recovered,
        };
        let mut tails = Tails {
            request: request_tail.behind(under_way(&request)),
            // Who asked before all of it had come did not wait for it.
            before: if done.overlapped { Tail::default() } else { left.tail },
        };
        if tails.request.uncertain > 0 {
            done.wait = Some(Wait::or(done.wait, m.to_server.unwrap_or(0), tails.request.uncertain));
        }
        if let (Some(own), Some(wait)) = (m.to_server, done.wait) {
            tails.request = tails.request.queued(wait, own);
        }
        // Who did not wait for the response waited in no queue with it. Where the bandwidth is given, the bytes tell when its end came.
        let by_bytes = given.link.is_some() && tails.before.late > 0;
        let client_wait = done.client_wait.filter(|_| !done.overlapped && !by_bytes);
        if let (Some(own), Some(wait)) = (m.to_client, client_wait) {
            tails.before = tails.before.queued(wait, own);
        }
        if let Some(limits) = self.extras.limits_mut() {
            let [sent, received] = &mut limits.sides;
            let trip = m.round_trip().unwrap_or(0);
            // The request was there when it was answered.
            let most = done.server.unwrap_or(0).saturating_sub(m.to_server.unwrap_or(0));
            sent.carried(done.request_bytes, trip.saturating_add(tails.request.late.min(most)));
            received.carried(done.response_bytes, trip.saturating_add(late));
        }
        if let Some(gap) = before.filter(|_| done.was_asked()) {
            let gap = gap.saturating_sub(left.recovered);
            // The way to the client and back is in it, where it is not known.
            let most = self.at_most(1).map_or(gap, |most| most.min(gap));
            let unknown = if self.is_unsure(1, &m) { most } else { 0 };
            let again = if again <= Again::IfCounted { 0 } else { gap };
            let queue = client_wait.map_or(0, |wait| wait.uncertain.into());
            let uncertain = tails.before.uncertain.max(unknown).max(again).max(queue);
            done.client_uncertain = Some(uncertain).filter(|ns| *ns > 0);
        }
        let doubtful = |charged: &Option<Charged>| charged.as_ref().map_or(0, |charged| charged.doubtful);
        if doubtful(&response) > 0 {
            done.wait = Some(Wait::and(done.wait, m.to_server.unwrap_or(0), doubtful(&response)));
        }
        if doubtful(&request) > 0 {
            let other = done.client_uncertain.unwrap_or(0);
            done.client_uncertain = Some(other.saturating_add(doubtful(&request)));
        }
        let time = if next == u64::MAX && self.is_one_sided() {
            // What was seen of one side alone is no gap between anything.
            (done.wait, done.client_uncertain) = (None, None);
            TimeShares::unknown()
        } else {
            TimeShares::transaction(done, before, request.as_ref(), response.as_ref(), &recovery, &tails, &m)
        };
        done.inferred = time.receiver.min(inferred[0].saturating_add(inferred[1]));
        done.go_on(left.filled, filled[0], filled[1]);
        if let Some(turn) = &mut self.turn {
            turn.account(&time);
        }
        time
    }

    /// Of a flow that is over: packets of one direction alone were captured.
    pub fn is_one_sided(&self) -> bool {
        self.directions.iter().any(|direction| direction.packets == 0)
    }

    /// See [`Finished::inferred`]: without the handshake no other window is known than the one that is filled.
    fn inferred(&self, side: usize, charged: Option<&Charged>) -> u64 {
        match charged {
            Some(charged) if self.setup.scale(1 - (side & 1)).is_none() => charged
                .window()
                .saturating_add(charged.by.of(limits::Cause::SmallWindow)),
            _ => 0,
        }
    }

    /// The waits for what was sent again, or late, behind the last blocks of a request and a response, which ended at `asked` and `answered`;
    /// and until what filled a gap there; and behind the response's, what may have been such a wait. Behind the request's that makes the server's time uncertain.
    fn recovery(
        &self,
        done: &mut Finished,
        (asked, answered): (u64, u64),
        next: u64,
        m: &Measure,
    ) -> ([u64; 2], [u64; 2], u64) {
        let Some(trouble) = self.extras.trouble() else {
            return Default::default();
        };
        let since = |from: u64, time: Option<u64>| time.map_or(0, |time| time - from);
        let ends = done.ends;
        // How late an ACK came, beside the way there and back.
        let beyond = |from: u64, acked: Option<u64>, trip: Option<u64>| {
            let wait = acked
                .zip(trip)
                .map(|(acked, trip)| acked.saturating_sub(trip.saturating_add(from)));
            wait.unwrap_or(0)
        };
        let late = |s: usize, from: u64, until: u64, trip: Option<u64>| {
            let whole = trouble.losses[s].whole_at(ends[s]).filter(|acked| *acked < until);
            beyond(from, whole, trip)
        };
        let [mut request, mut filled] = [0; 2];
        let (from, tail) = if done.response.is_some() {
            let repeats = trouble.losses[0].repeats(asked, done.response_time);
            (request, filled) = (since(asked, repeats.needed), since(asked, repeats.filled));
            // What waited in a queue was not late.
            if done.wait.is_none_or(|wait| !wait.is_queue) {
                request = request.max(late(0, asked, done.response_time, m.to_server));
            }
            // On which way it was late is not known.
            let held = beyond(asked, repeats.late_ack, m.to_server);
            request = request.max(held);
            let doubt = since(asked, repeats.doubtful).max(held);
            if doubt > 0 {
                done.wait = Some(Wait::or(done.wait, self.server_rtt().unwrap_or(0), doubt));
            }
            (answered, trouble.losses[1].repeats(answered, next))
        } else {
            (asked, trouble.losses[0].repeats(asked, next))
        };
        // At the end nothing else came, whether it was needed or not.
        let waited = tail.needed.max(tail.doubtful.filter(|_| next == u64::MAX));
        let response = done.response.map_or(0, |_| late(1, answered, next, m.to_client));
        // At the end nobody goes on.
        let heard = tail.late_ack.filter(|_| done.response.is_some() && next != u64::MAX);
        let held = beyond(answered, heard, m.to_client);
        let doubtful = since(from, tail.doubtful).max(held);
        // What never came was waited for until one side gave up.
        let s = usize::from(done.response.is_some());
        let lacked = if trouble.losses[s].never_came() {
            done.gave_up.saturating_sub(from)
        } else {
            0
        };
        (
            [request, since(from, waited).max(response).max(lacked).max(held)],
            [filled, since(from, tail.filled)],
            doubtful,
        )
    }

    /// How long the response had been sent already when the first of it passed, ns: the server's FIN had passed before.
    fn behind_fin(&self, done: &Finished) -> u64 {
        let behind = self.extras.trouble().and_then(|trouble| trouble.losses[1].behind_fin);
        let fin = behind.filter(|(at, _)| *at == done.response_start() && done.response.is_some());
        fin.map_or(0, |(_, fin)| done.response_time.saturating_sub(fin))
    }

    /// How late the end of a transfer came, which its receiver answered at `until`.
    fn tail(
        &self,
        s: usize,
        (first, last): (u64, u64),
        done: &Finished,
        until: u64,
        m: &Measure,
        given: Given,
    ) -> Tail {
        let trip = [m.to_server, m.to_client][s & 1];
        let transfer = self.extras.limits().map(|limits| &limits.sides[s & 1]);
        let (Some(trip), false) = (trip, transfer.is_none() && given.link.is_none()) else {
            return Tail::default();
        };
        let flown = Flown {
            first,
            last,
            bytes: [done.request_bytes, done.response_bytes][s & 1],
            end: done.ends[s & 1],
            until,
        };
        Tail::new(transfer, &flown, trip, &self.limit_path(s, given))
    }

    /// First packet of the response in progress, TAI ns.
    pub fn response_begin(&self) -> Option<u64> {
        self.turn.as_ref()?.response_begin()
    }

    /// The server was heard, and nothing that it said was missed.
    fn hears_server(&self) -> bool {
        self.directions[1].packets > 0 && self.counts(1).missed == 0
    }

    /// First packet of a request that has no response yet and may get one, TAI ns.
    pub fn waits_since(&self) -> Option<u64> {
        self.turn.as_ref()?.waits_since().filter(|_| self.may_answer())
    }

    /// Such a request, where nothing says that it did not arrive or that the response was missed.
    pub fn asked(&self) -> Option<Asked> {
        let turn = self.turn.as_ref()?;
        let first = self.waits_since().filter(|_| self.hears_server())?;
        let last = turn.unanswered()?;
        let came_again = self.extras.trouble().is_some_and(|trouble| {
            let repeats = trouble.losses[0].repeats(last, u64::MAX);
            repeats.needed.or(repeats.doubtful).is_some()
        });
        (!came_again).then(|| Asked {
            first,
            last,
            length: turn.against_answered(turn.request_bytes()),
            answered: turn.shares().answered,
        })
    }

    /// How long an answer to the last request was due, ns, that never came. `None`: less than `least`, or it may have come where the capture
    /// missed it.
    pub fn unanswered(&self, last: &Finished, least: u64) -> Option<u64> {
        let due = last.request_bytes > 0
            && last.response.is_none()
            && self.turn.as_ref()?.against_answered(last.request_bytes).is_eq();
        if !due || !self.hears_server() {
            return None;
        }
        let asked = last.request_time.saturating_add(last.request);
        // A FIN that comes with the request ends no wait.
        let until = match self.end_time.saturating_sub(asked) {
            early if early < least => last.gave_up.max(self.last),
            _ => last.gave_up,
        };
        Some(until.saturating_sub(asked)).filter(|wait| *wait >= least)
    }

    /// When one side gave up, or nobody had when the input ended, TAI ns. `told`: when that was.
    pub fn gave_up(&self, cause: Option<CloseCause>, told: u64) -> u64 {
        match closing(self, cause).0 {
            CloseKind::Open => told.max(self.last),
            _ if self.end_time > 0 => self.end_time,
            _ => self.last,
        }
    }

    /// The flow ended while data of side `s` waited for a window that never opened, since `from`.
    fn stall(&mut self, s: usize, from: u64, pool: &mut Pool) -> Option<Charged> {
        self.extras.trouble().filter(|trouble| trouble.closed[1 - s].unopened)?;
        let wait = self.last.saturating_sub(from).min(shares::LONGEST);
        let stall = Charged::one(limits::Cause::ZeroWindow, wait);
        self.extras.make_limits(pool).sides[s].total.join(&stall);
        if let Some(turn) = &mut self.turn {
            turn.stalled(s, wait);
        }
        Some(stall)
    }

    /// `None` of a transfer that took no time.
    fn transfer(
        &mut self,
        s: usize,
        (from, to): (u64, u64),
        next: u64,
        given: Given,
        pool: &mut Pool,
    ) -> Option<Charged> {
        let to = to.min(from.saturating_add(shares::LONGEST));
        if self.extras.limits().is_none() && to == from {
            return None;
        }
        let path = self.limit_path(s, given);
        if self.extras.limits().is_none() && path.is_one_flight(to - from) {
            return Some(Charged::one(path.one_flight(), to - from));
        }
        let limits = self.extras.make_limits(pool);
        Some(limits.sides[s].settle(from, to, next, &path))
    }

    /// The server answered a SYN by an ACK of an older connection of these ports.
    pub fn met_older(&self) -> bool {
        let handshake = self.extras.trouble().map(|trouble| &trouble.handshake);
        let is_challenged = |(_, _, evidence): (_, _, Evidence)| evidence.has(sign::CHALLENGED);
        handshake.is_some_and(|handshake| handshake.verdicts(&self.setup, self.known()).any(is_challenged))
    }

    /// Whose time the handshake took.
    pub fn setup_time(&self) -> TimeShares {
        let setup = &self.setup;
        if setup.took_data() {
            // Beside it the server answered what came on the SYN: the time is that transaction's.
            return TimeShares::setup(0, Some(0), false);
        }
        let repeated = setup.syn_count > 1 || setup.syn_ack_count > 1;
        let waited = setup
            .response_ns()
            .filter(|_| setup.has_late_answer())
            .map_or(0, server_waited);
        // An answer that took longer than the first timer waited for a timer itself.
        let answer = setup.response_ns().map(|ns| ns.saturating_sub(waited));
        let answer = answer.filter(|ns| *ns < FIRST_TIMEOUT);
        let handshake = self.extras.trouble().map(|trouble| &trouble.handshake);
        let only = || Some(setup.end_ns()?.saturating_sub(setup.response_ns()?)).filter(|_| !repeated);
        let ack = handshake.and_then(Handshake::ack).or_else(only);
        let ack = ack.filter(|ns| *ns < FIRST_TIMEOUT);
        let trip = setup
            .path_rtt()
            .or_else(|| Some(answer?.saturating_add(ack.unwrap_or(0))));
        // A repeat behind which nothing was lost waited for something else.
        let lost = |(_, place, _)| !matches!(place, Place::Nowhere | Place::Capture);
        let lost = handshake.is_none_or(|handshake| handshake.verdicts(setup, self.known()).any(lost));
        setup.end_ns().map_or_else(TimeShares::default, |whole| {
            TimeShares::setup(whole, trip, repeated && lost || waited > 0)
        })
    }

    /// From the end of the handshake to the first transaction.
    fn since_setup(&self, done: &Finished) -> Option<u64> {
        let whole = self
            .setup
            .end_ns()
            .filter(|_| done.index == 1 && self.how == ClientHow::Syn as u8)?;
        Some(done.request_time.saturating_sub(self.first.saturating_add(whole)))
    }

    /// The receiver of `side`'s data is known to have acknowledged up to `ack`.
    pub fn acknowledge(&mut self, side: usize, ack: u32, time: u64) {
        self.tell_losses(side, |losses, path| losses.acknowledge(ack, time, path));
    }

    /// The same of an ACK that passed at `time`.
    pub fn acknowledged(&mut self, side: usize, ack: u32, time: u64) {
        self.tell_losses(side, |losses, path| losses.acknowledged(ack, None, time, path));
    }

    /// Something that matters only where there is trouble.
    fn tell_losses(&mut self, side: usize, tell: impl FnOnce(&mut Losses, Path)) {
        if self.extras.trouble().is_some() {
            let path = self.path(side);
            if let Some(trouble) = self.extras.trouble_mut() {
                tell(&mut trouble.losses[side & 1], path);
            }
        }
    }

    /// The SETUP record, before the setup takes it in. Returns it with the SYNs and SYN-ACKs that were sent, copies left
    /// out.
    pub fn handshake(&mut self, setup: &Setup) -> Setup {
        let Some(trouble) = self.extras.trouble_mut() else {
            return *setup;
        };
        let [client, server] = &mut trouble.losses;
        trouble
            .handshake
            .settle(setup, [&mut client.counts, &mut server.counts])
    }

    /// Smallest round trip between tap and server, ns.
    pub fn server_rtt(&self) -> Option<u64> {
        self.trip(0)
    }

    /// Smallest round trip between the tap and the receiver of a side's data, ns. Unknown while responses alone have ended it:
    /// the receiver's application is in them.
    pub fn trip(&self, side: usize) -> Option<u64> {
        let trip = self.by_samples(side)?;
        if trip.least == trip.most {
            return Some(trip.most);
        }
        let handshake = &self.extras.trouble()?.handshake;
        handshake
            .timed(side & 1, &self.setup, trip)
            .map(|timed| timed.min(trip.most))
    }

    /// What the samples tell of it.
    fn by_samples(&self, side: usize) -> Option<Trip> {
        let most = self.at_most(side)?;
        let is_path = self.setup.has_timed(side) || self.rtt.is_bare(side);
        let late = if is_path { 0 } else { DELAYED_ACK_MOST };
        Some(Trip {
            least: most.saturating_sub(late),
            most,
        })
    }

    /// The first round trip of data to the server: where it is as long as a timer, that of the handshake was none.
    pub fn confirm_answer(&mut self, side: usize, rtt: u64) {
        if side == 0 && self.setup.has_late_answer() && self.rtt.samples(0) == 0 {
            let wait = self.setup.response_ns().filter(|wait| rtt >= wait / 2);
            if let Some(wait) = wait {
                self.setup.set_late_answer(false);
                self.rtt.sample(0, wait);
            }
        }
    }

    /// What a handshake is judged by.
    fn known(&self) -> Known {
        Known {
            trips: [0, 1].map(|side| self.by_samples(side)),
            server_has_ids: self.newest_id(1) != 0,
        }
    }

    /// By how much more than its turns tell the client's time of all of them may be too long, ns: the smallest round trip to it was taken off,
    /// and its round trips were longer by so much. (The server's is told with each transaction.)
    pub fn client_uncertain(&self) -> u64 {
        let Some(turn) = &self.turn else { return 0 };
        let longer = self.rtt.longer(1).map_or(0, nanoseconds);
        let time = turn.time();
        let answered = u64::from(turn.shares().answered);
        let most = longer.saturating_mul(answered).min(time.client + time.think);
        most.saturating_sub(time.client_uncertain)
    }

    /// The same, or more than that, ns.
    pub fn at_most(&self, side: usize) -> Option<u64> {
        self.rtt.min(side).map(nanoseconds)
    }

    /// The server's timer sent the SYN-ACK: one before it was lost.
    pub fn is_answer_late(&self) -> bool {
        is_answer_late(&self.setup, self.known().trips[0])
    }

    /// What was lost of a handshake in which something came again, and how one failed, in words.
    pub fn explain_setup(&self) -> Option<String> {
        // Who says that it did not pass the SYN goes before all guesses.
        let refused = self.extras.errors().filter(|_| self.setup.is_unanswered());
        if let Some(refused) = refused.and_then(Errors::explain) {
            return Some(refused);
        }
        let trouble = self.extras.trouble();
        let again = trouble.and_then(|t| t.handshake.explain(&self.setup, self.known()));
        let late = || {
            let wait = self.setup.response_ns().filter(|_| self.is_answer_late());
            wait.map(explain_late_answer)
        };
        match (again.or_else(late), self.setup.failure()) {
            // What was lost of it says why nobody answered.
            (Some(lost), Some(failure)) if self.setup.outcome == Outcome::Refused => Some(format!("{lost} {failure}")),
            (Some(lost), _) => Some(lost),
            (None, failure) => failure.map(str::to_owned),
        }
    }

    /// How far the client's clock of timestamps is before the time of the packet, if it ticks once a ms, modulo 2^32: by its FIN or, where it was
    /// never answered, its last SYN but the first.
    pub fn client_clock(&self) -> Option<u32> {
        let syn = || self.extras.trouble()?.handshake.last_stamp();
        let (tsval, time) = self.turn.as_ref().and_then(|turn| turn.stamp()).or_else(syn)?;
        Some(tsval.wrapping_sub((time / MILLISECOND) as u32))
    }

    /// Verdicts on what came again of the handshake.
    pub fn handshake_verdicts(&self) -> impl Iterator<Item = Verdict> + '_ {
        let (connection, known) = (self.id, self.known());
        let verdicts = self
            .extras
            .trouble()
            .into_iter()
            .flat_map(move |t| t.handshake.verdicts(&self.setup, known));
        let answer = self.extras.trouble().and_then(|t| t.handshake.answered());
        let mut last_syn = self.first;
        let mut last_syn_ack = None;
        verdicts.map(move |(repeat, place, evidence)| {
            let lost_at = if repeat.from_server {
                let before_this = last_syn_ack.or(answer).unwrap_or(repeat.time);
                last_syn_ack = Some(repeat.time);
                before_this.min(repeat.time)
            } else {
                std::mem::replace(&mut last_syn, repeat.time)
            };
            Verdict {
                connection,
                from_server: repeat.from_server,
                time: repeat.time,
                lost_at,
                seq: repeat.seq,
                length: repeat.length,
                class: repeat.class,
                cause: Handshake::CAUSE,
                place,
                evidence,
                episode: 0,
                begins: false,
                handshake: true,
                smaller_arrived: 0,
                arrived: true,
                counted: 0,
            }
        })
    }

    /// A verdict is final.
    pub fn count_in_vain(&mut self, verdict: &Verdict) {
        let is_one = verdict.evidence.has(sign::SILENCE) && verdict.length > 0;
        if let Some(trouble) = self.extras.trouble_mut().filter(|_| is_one) {
            trouble.in_vain[usize::from(verdict.from_server)] += 1;
        }
    }

    /// Take out the verdicts on segments that are final.
    pub fn verdicts(&mut self) -> impl Iterator<Item = Verdict> + '_ {
        let connection = self.id;
        let losses = self.extras.trouble_mut().map(|t| &mut t.losses);
        losses
            .into_iter()
            .flatten()
            .enumerate()
            .flat_map(move |(side, losses)| {
                let acked = losses.acked();
                losses.done.drain(..).map(move |entry| Verdict {
                    connection,
                    from_server: side == 1,
                    time: entry.time,
                    lost_at: entry.lost_at,
                    seq: entry.range.from,
                    length: entry.length,
                    class: entry.class,
                    cause: entry.cause,
                    place: entry.place,
                    evidence: entry.evidence,
                    episode: entry.episode,
                    begins: entry.begins,
                    handshake: false,
                    smaller_arrived: entry.smaller_arrived,
                    arrived: acked.is_some_and(|acked| at_or_before(entry.range.to, acked)),
                    counted: entry.counted(),
                })
            })
    }

    /// The flow closed with these next expected sequence numbers, where known: settle what stayed
    /// open.
    /// `counting`: what the IP ids of either side do.
    pub fn settle(&mut self, next: [Option<u32>; 2], acknowledged: [bool; 2], counting: [Counting; 2]) {
        let (paths, last) = ([self.path(0), self.path(1)], self.last);
        let Some(trouble) = self.extras.trouble_mut() else {
            return;
        };
        let whole = [0, 1].map(|s| trouble.losses[s].is_whole());
        for (s, path) in paths.into_iter().enumerate() {
            trouble.closed[s].close(last);
            let losses = &mut trouble.losses[s];
            // Of a side that was never seen, silence says nothing.
            if self.directions[1 - s].packets > 0 {
                losses.mark_silence(trouble.heard[1 - s]);
            }
            if let Some(next) = next[s].filter(|_| acknowledged[s]) {
                losses.acknowledge(next, last, path);
            }
            losses.settle_ids(
                counting[s],
                counting[1 - s] == Counting::ByConnection,
                whole[1 - s],
                path,
            );
            losses.close(next[s], last, path);
        }
    }
}

/// Boxes of closed flows, for reuse.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // the boxes are what is kept
pub(crate) struct Pool {
    turns: Vec<Box<Turn>>,
    pub responses: Responses,
    troubles: Vec<Box<Trouble>>,
    limits: Vec<Box<Limits>>,
}

/// Boxes kept at most.
const POOLED: usize = 4096;

impl Pool {
    pub fn turn(&mut self) -> Box<Turn> {
        self.turns.pop().unwrap_or_default()
    }

    /// `ids`: the newest of either side, or 0.
    fn trouble(&mut self, ids: [u16; 2]) -> Box<Trouble> {
        let mut trouble = self.troubles.pop().unwrap_or_default();
        trouble.ids = ids.map(Counted::from);
        trouble
    }

    fn limits(&mut self) -> Box<Limits> {
        self.limits.pop().unwrap_or_default()
    }

    /// Take the boxes of a flow that is done.
    pub fn take_back(&mut self, flow: &mut Flow) {
        if let Some(mut turn) = flow.turn.take()
            && self.turns.len() < POOLED
        {
            *turn = Turn::default();
            self.turns.push(turn);
        }
        let Some(extra) = flow.extras.0.take() else { return };
        if let Some(mut trouble) = extra.trouble
            && self.troubles.len() < POOLED
        {
            trouble.clear();
            self.troubles.push(trouble);
        }
        if let Some(mut limits) = extra.limits
            && self.limits.len() < POOLED
        {
            limits.clear();
            self.limits.push(limits);
        }
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
