//! Responses of each service and of each request it is asked: how long, in how many segments, and what they waited for.
//!
//! Memory: 768 rows of 4 kB, 256 services of 6 kB, the turns of 4,096 connections of 128 bytes (others of the same place in
//! the table push them out, and what they had is not counted), and the newest 32,768 waits: 5 MB.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::hash::BuildHasher;

use weir_analysis::{Acknowledged, Class, DataBlock, Ended, Ends, Place, TransactionKind, Verdict};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::backlog::{Kind, Next, Request, Transaction};
use crate::bins::Bins;
use crate::detector::Detector;
use crate::durations::Durations;
use crate::names::{self, Address};
use crate::newest::Newest;
use crate::routes::{self, Route, ServiceKey};
use crate::sleep::ApplicationSleep;
use crate::timeline::Timeline;
use crate::{delayed_ack, response_bands, slowing_responses, tiny_segments};

/// Services, and requests of all of them, that have a row; those that come later have none.
const SERVICES: usize = 256;
const REQUESTS: usize = 512;
/// Connections whose turn is known.
const TURNS: usize = 4096;
/// Blocks of one side that follow each other sooner than this and a round trip could have been one, ns: a full window
/// makes the rest of what was written wait for an ACK, and 40 ms more if that is delayed.
const TOGETHER: u64 = 50_000_000;
/// Segments with less than this are tiny, bytes.
pub(crate) const TINY: usize = 128;
/// Smallest MSS (RFC 9293 3.7.1).
const LEAST_MSS: u64 = 536;
/// Payload of a segment that every path of IPv6 carries (RFC 8200: 1280 bytes, less 60, and 12 of timestamps). Paths that
/// carry less than both ends told are tunnels, and carry about as much at least.
const PATH_MSS: u64 = 1208;
/// The MSS of most (RFC 6691: 1500 bytes less 40).
const ETHERNET_MSS: u64 = 1460;
/// Of so many segments that come alone one is larger where the network carries larger ones.
const LARGE: u64 = 100;
/// A delayed ACK waits for 30 ms to 500 ms (RFC 9293 3.8.6.3: less than 0.5 s), ns.
const DELAYED: std::ops::RangeInclusive<u64> = 30_000_000..=510_000_000;
/// What waited for an ACK comes within so many ns after it and the way to the sender and back.
const AT_ONCE: u64 = 5_000_000;
/// What comes up to so many times as late did not wait for it, and tells how often data comes by chance.
pub(crate) const LATER: u64 = 4;
/// Bins of the course of response times.
const COURSE: usize = 128;

/// Waits that are kept, and the shortest, ns.
const WAITS: usize = 1 << 15;
const LONG: u64 = 100_000_000;

/// A response that was long in coming, or a setup in which something was lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub client: Address,
    /// Places of the service and of the request; none of a setup, and of a request without a row.
    pub service: Option<u16>,
    pub request: Option<u16>,
    /// Last request packet (or first SYN) to last response packet, TAI ns.
    pub from: u64,
    pub to: u64,
    pub is_lossy: bool,
}

/// The newest waits.
pub(crate) type Waits = Newest<Wait, WAITS>;

/// Response times of a slice of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice {
    pub count: u32,
    /// s.
    pub sum: f64,
}

impl std::ops::AddAssign for Slice {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
    }
}

/// Segments of responses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segments {
    pub all: u64,
    /// More than the same data needs.
    pub extra: u64,
    /// With fewer than [`TINY`] bytes, next to others of the same response.
    pub tiny: u64,
}

impl std::ops::AddAssign for Segments {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.extra += other.extra;
        self.tiny += other.tiny;
    }
}

/// What is known of a service, or of one request to it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub server: Address,
    pub port: u16,
    /// The request's blocks as in signatures; empty: all.
    pub request: Box<str>,
    pub answered: u64,
    /// Responses whose segments are known one by one.
    pub counted: u64,
    /// Response times (last request packet to last response packet), without losses and waits for ACKs.
    pub times: Durations,
    /// Begin of the response times over time.
    pub course: Bins<Slice>,
    pub segments: Segments,
    /// Responses in which data waited for a delayed ACK, and how long in all, ns.
    pub delayed: u64,
    pub delayed_ns: u64,
    /// First and last moment, TAI ns.
    pub span: (u64, u64),
}

impl Row {
    pub fn new(server: Address, port: u16, request: &str) -> Self {
        Self {
            server,
            port,
            request: request.into(),
            answered: 0,
            counted: 0,
            times: Durations::default(),
            course: Bins::bounded(250_000_000, COURSE),
            segments: Segments::default(),
            delayed: 0,
            delayed_ns: 0,
            span: (u64::MAX, 0),
        }
    }

    /// What another row has, too.
    fn include(&mut self, other: &Self) {
        self.answered += other.answered;
        self.counted += other.counted;
        self.times += &other.times;
        self.course.merge(&other.course);
        self.segments += other.segments;
        self.delayed += other.delayed;
        self.delayed_ns += other.delayed_ns;
        self.span = (self.span.0.min(other.span.0), self.span.1.max(other.span.1));
    }

    /// Of the same service.
    pub fn is_of(&self, service: &Self) -> bool {
        self.server == service.server && self.port == service.port
    }

    /// The service, as findings name it.
    pub fn service(&self) -> String {
        names::service(self.server, self.port)
    }
}

/// What only services have.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// All of its requests; while facts come, only those without a row of their own.
    pub row: Row,
    /// Largest segment of its responses so far, bytes.
    largest: u64,
    /// Payload of a full segment, as the ends of its connections told it; the smallest.
    told: Option<u32>,
    /// The largest that is larger than most networks carry, how many are so large, and of how many that came alone.
    larger: u64,
    large: u64,
    alone: u64,
    /// Tiny segments by their size.
    pub sizes: Box<[u32; TINY]>,
    /// Delays of the ACKs that data came right behind, and how many of these data were less than a segment.
    pub ack_delays: Durations,
    pub small: u64,
    /// Data that came later behind such ACKs, up to [`LATER`] times as late as what comes right behind them.
    pub later: u64,
    /// Of them, ACKs of clients.
    pub by_client: u64,
    /// Smallest round trips of its connections.
    pub trips: Durations,
    /// Time until segments of its responses came again that were lost before the tap, as far as that shows.
    pub repeats: Durations,
}

impl Service {
    pub fn new(server: Address, port: u16) -> Self {
        Self {
            row: Row::new(server, port, ""),
            largest: LEAST_MSS,
            told: None,
            larger: 0,
            large: 0,
            alone: 0,
            sizes: Box::new([0; TINY]),
            ack_delays: Durations::default(),
            small: 0,
            later: 0,
            by_client: 0,
            trips: Durations::default(),
            repeats: Durations::default(),
        }
    }

    /// A segment of a response brought so many bytes, or several did so on average.
    fn brought(&mut self, bytes: u32, is_alone: bool) {
        let bytes = u64::from(bytes);
        self.largest = self.largest.max(bytes.min(ETHERNET_MSS));
        self.alone += u64::from(is_alone);
        if is_alone && bytes > ETHERNET_MSS {
            self.large += 1;
            self.larger = self.larger.max(bytes);
        }
    }

    /// Payload of a full segment: what both ends told, or the largest that is seen, if it is one that a path could carry at
    /// most. After losses before the tap one seems to bring what several did: a few that are larger than most networks
    /// carry are no measure. With small ones only, of which nobody told, fewer are held for needless than there are.
    const fn mss(&self) -> u64 {
        match self.told {
            _ if self.large * LARGE >= self.alone && self.large > 0 => self.larger,
            Some(told) if self.largest < PATH_MSS => told as u64,
            _ => self.largest,
        }
    }

    /// Share of the segments of its responses that are lost before the tap.
    pub fn loss_before(&self) -> f64 {
        let lost = self.repeats.count();
        lost as f64 / (self.row.segments.all + lost).max(1) as f64
    }
}

/// Segments of a response.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: u32,
    extra: u32,
    tiny: u32,
}

impl From<Counts> for Segments {
    fn from(counts: Counts) -> Self {
        Self {
            all: counts.all.into(),
            extra: counts.extra.into(),
            tiny: counts.tiny.into(),
        }
    }
}

/// Something was late.
#[derive(Clone, Copy, Debug, Default)]
struct Delay {
    /// When it came, TAI ns.
    at: u64,
    /// How late, ns; 0: nothing was.
    ns: u32,
}

/// What ACKs tell of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Acks {
    id: FlowId,
    /// Smallest round trip from the tap to each side, ns; 0: not known.
    trips: [u64; 2],
    /// Last ACK that was late, and whether the server sent it.
    late: Delay,
    late_by_server: bool,
    /// Data came right behind such an ACK, which it had waited for.
    waited: Delay,
}

/// What data tells of it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Data {
    id: FlowId,
    /// Blocks of the server without a pause: the last packet, and what they brought.
    last: u64,
    bytes: u64,
    packets: u32,
    /// Segments of the response, and of the one before.
    segments: Counts,
    finished: Counts,
    /// Place of the service.
    service: u16,
    /// The last block was tiny and is not counted yet, bytes.
    tiny: u8,
    /// There was a late ACK since the last data.
    is_late: bool,
}

/// The turn of a connection: two lines of the cache, of which most facts need one. Each tells whose it is.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    acks: Acks,
    data: Data,
}

impl Data {
    /// Packets of the last blocks, more than their bytes need.
    fn needless(&self, service: &Service) -> u32 {
        if self.packets == 0 || self.packets == 1 && self.bytes > 0 {
            return 0;
        }
        let needed = self.bytes.div_ceil(service.mss());
        self.packets.saturating_sub(u32::try_from(needed).unwrap_or(u32::MAX))
    }

    /// Blocks of a response that came without a pause are over.
    fn settle(&mut self, service: &Service) {
        self.segments.extra += self.needless(service);
        (self.bytes, self.packets, self.tiny) = (0, 0, 0);
    }

    /// A response is over.
    fn finish(&mut self, service: &Service) {
        self.settle(service);
        if self.segments.all > 0 {
            self.finished = std::mem::take(&mut self.segments);
        }
    }
}

impl Turn {
    /// Nothing is known of a connection yet. What is known of the one before, whose transaction was not told, is its
    /// service's, of no known request.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, id: FlowId, services: &mut [Service]) {
        let old = &self.data;
        if let Some(service) = services.get_mut(usize::from(old.service)) {
            let needless = old.needless(service);
            let segments = &mut service.row.segments;
            *segments += old.segments.into();
            *segments += old.finished.into();
            segments.extra += u64::from(needless);
        }
        *self = Self::default();
        (self.acks.id, self.data.id) = (id, id);
    }

    /// A round trip.
    fn acknowledged(&mut self, ack: &Acknowledged) {
        let trip = &mut self.acks.trips[usize::from(ack.by_server)];
        *trip = if *trip == 0 { ack.rtt } else { ack.rtt.min(*trip) };
        let delay = ack.rtt - *trip;
        if ack.is_data && DELAYED.contains(&delay) {
            self.acks.late = Delay {
                at: ack.time,
                ns: delay as u32,
            };
            self.acks.late_by_server = ack.by_server;
            self.data.is_late = true;
        }
    }

    /// Data of a response.
    #[inline]
    fn respond(&mut self, block: &DataBlock, service: &mut Service) {
        service.brought(block.bytes / u32::from(block.packets.max(1)), block.packets == 1);
        let data = &mut self.data;
        let earlier = std::mem::take(&mut data.tiny);
        let mut follows = false;
        if data.packets > 0 {
            let pause = block.first.saturating_sub(data.last);
            follows = pause < TOGETHER + self.acks.trips[0] + self.acks.trips[1];
            if !follows {
                data.settle(service);
            }
        }
        data.last = block.last;
        data.bytes += u64::from(block.bytes);
        data.packets += u32::from(block.packets);
        data.segments.all += u32::from(block.packets);
        let is_tiny = block.packets == 1 && (block.bytes as usize) < TINY;
        let tiny = if is_tiny { block.bytes as u8 } else { 0 };
        if !follows {
            data.tiny = tiny;
            return;
        }
        for bytes in [earlier, tiny].into_iter().filter(|bytes| *bytes > 0) {
            data.segments.tiny += 1;
            let size = &mut service.sizes[usize::from(bytes)];
            *size = size.saturating_add(1);
        }
    }

    /// Data came after a late ACK: had it waited for it?
    #[inline(never)]
    fn follow(&mut self, block: &DataBlock, service: &mut Service) {
        let acks = &mut self.acks;
        self.data.is_late = false;
        if acks.late_by_server == block.from_server {
            // What comes now answers this.
            return;
        }
        let soon = acks.trips[usize::from(block.from_server)] + AT_ONCE;
        let Some(behind) = block.first.checked_sub(acks.late.at) else {
            return;
        };
        if behind > soon {
            service.later += u64::from(behind <= LATER * soon);
            return;
        }
        acks.waited = Delay {
            at: block.first,
            ns: acks.late.ns,
        };
        service.ack_delays.add(acks.late.ns.into());
        service.by_client += u64::from(!acks.late_by_server);
        service.small += u64::from(u64::from(block.bytes) < service.mss());
    }
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Responses {
    services: Vec<Service>,
    requests: Vec<Row>,
    /// Places of services, and of requests by the place of their service and their text.
    service_numbers: HashMap<ServiceKey, u16, FixedState>,
    request_numbers: HashMap<u64, u16, FixedState>,
    hasher: FixedState,
    turns: Vec<Turn>,
    waits: Waits,
}

impl Default for Responses {
    fn default() -> Self {
        let hasher = FixedState::with_seed(0x7765_6972);
        Self {
            services: Vec::new(),
            requests: Vec::new(),
            service_numbers: HashMap::with_hasher(hasher.clone()),
            request_numbers: HashMap::with_hasher(hasher.clone()),
            hasher,
            turns: vec![Turn::default(); TURNS],
            waits: Waits::default(),
        }
    }
}

impl Responses {
    /// The findings for which it must be known who slept.
    pub fn bands(&self, sleep: &ApplicationSleep, out: &mut Vec<Finding>) {
        response_bands::findings(&self.services(), &self.requests, &self.waits, sleep, out);
    }

    /// Services, with what their requests have.
    fn services(&self) -> Vec<Service> {
        let mut services = self.services.clone();
        for request in &self.requests {
            if let Some(service) = services.iter_mut().find(|service| request.is_of(&service.row)) {
                service.row.include(request);
            }
        }
        services
    }

    /// Where the turn of a connection is, or of another one, which it pushes out.
    #[inline]
    fn place(&self, id: FlowId) -> usize {
        self.hasher.hash_one(id.0) as usize % TURNS
    }

    /// The place of a service, if it has one.
    fn service(&mut self, route: &mut Route) -> Option<usize> {
        let number = route.answer.get_or(|| {
            let key = routes::key(route.server, route.port);
            if let Some(number) = self.service_numbers.get(&key) {
                return usize::from(*number);
            }
            let next = self.services.len();
            if next < SERVICES {
                self.service_numbers.insert(key, next as u16);
                self.services.push(Service::new(route.server, route.port));
            }
            next
        });
        (number < SERVICES).then_some(number)
    }

    fn request(&mut self, service: usize, request: Request<&str>) -> Option<usize> {
        let key = self.hasher.hash_one((service, request));
        if let Some(number) = self.request_numbers.get(&key) {
            return Some(usize::from(*number));
        }
        let next = self.requests.len();
        if next >= REQUESTS {
            return None;
        }
        self.request_numbers.insert(key, next as u16);
        let of = &self.services[service].row;
        let (server, port) = (of.server, of.port);
        self.requests.push(match request {
            Request::Single(bytes) => Row::new(server, port, &format!("blk[{bytes}]")),
            Request::Other(text) => Row::new(server, port, text),
        });
        Some(next)
    }
}

impl Detector for Responses {
    #[inline]
    fn warm(&self, fact: &Next) -> u64 {
        let turn = &self.turns[self.place(fact.id)];
        match fact.kind {
            Kind::Acknowledged => turn.acks.id.0,
            Kind::Block => turn.data.id.0,
            Kind::Transaction => turn.acks.id.0 ^ turn.data.id.0,
            _ => 0,
        }
    }

    #[inline]
    fn block(&mut self, block: &DataBlock, route: &mut Route) {
        let Some(number) = self.service(route) else { return };
        let place = self.place(block.id);
        let turn = &mut self.turns[place];
        if turn.data.id != block.id {
            turn.renew(block.id, &mut self.services);
        }
        let service = &mut self.services[number];
        if turn.data.is_late {
            turn.follow(block, service);
        }
        if block.from_server {
            turn.data.service = number as u16;
            turn.respond(block, service);
        } else {
            turn.data.finish(service);
        }
    }

    #[inline]
    fn acknowledged(&mut self, ack: &Acknowledged, _: &mut Route) {
        let place = self.place(ack.id);
        let turn = &mut self.turns[place];
        if turn.acks.id != ack.id {
            turn.renew(ack.id, &mut self.services);
        }
        turn.acknowledged(ack);
    }

    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let facts = transaction.facts;
        let Some(end) = facts.end else { return };
        let client = route.client;
        let wait = |from: u64| Wait {
            client,
            service: None,
            request: None,
            from,
            to: from.saturating_add(end),
            is_lossy: facts.losses > 0,
        };
        match facts.kind {
            TransactionKind::Data => {}
            TransactionKind::Setup => {
                if let (Some(segment), Some(service)) = (facts.segment, self.service(route)) {
                    let told = &mut self.services[service].told;
                    *told = Some(told.map_or(segment, |told| told.min(segment)));
                }
                if facts.losses > 0 && end >= LONG {
                    self.waits.push(wait(facts.request_time));
                }
                return;
            }
            TransactionKind::Close => return,
        }
        let Some(service) = self.service(route) else { return };
        let asked = facts.request_time.saturating_add(facts.request);
        let place = self.place(transaction.id);
        let turn = &mut self.turns[place];
        if turn.data.id != transaction.id {
            turn.renew(transaction.id, &mut self.services);
        }
        let own = &mut self.services[service];
        if turn.data.finished.all == 0 {
            // At the end of a connection no request follows.
            turn.data.finish(own);
        }
        let segments = Segments::from(std::mem::take(&mut turn.data.finished));
        let waited = turn.acks.waited;
        let trip = turn.acks.trips[0] + turn.acks.trips[1];
        let has_waited = (facts.request_time..=asked.saturating_add(end)).contains(&waited.at);
        if has_waited {
            turn.acks.waited = Delay::default();
        }
        if trip > 0 {
            own.trips.add(trip);
        }
        let number = self.request(service, transaction.request);
        let row = match number {
            Some(number) => &mut self.requests[number],
            None => &mut self.services[service].row,
        };
        row.answered += 1;
        row.segments += segments;
        row.counted += u64::from(segments.all > 0);
        row.span = (row.span.0.min(facts.request_time), row.span.1.max(asked + end));
        if has_waited {
            row.delayed += 1;
            row.delayed_ns += u64::from(waited.ns);
        } else if facts.losses == 0 && !facts.overlapped {
            row.times.add(end);
        }
        *row.course.at(asked) += Slice {
            count: 1,
            sum: end as f64 / 1e9,
        };
        if end >= LONG && !has_waited && !facts.overlapped {
            let wait = Wait {
                service: Some(service as u16),
                request: number.map(|number| number as u16),
                ..wait(asked)
            };
            self.waits.push(wait);
        }
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends, route: &mut Route) {
        let is_data = verdict.length > 0 && !verdict.handshake;
        if verdict.class == Class::Retransmission
            && verdict.place == Place::BeforeTap
            && verdict.from_server
            && is_data
            && let Some(service) = self.service(route)
        {
            self.services[service]
                .repeats
                .add(verdict.time.saturating_sub(verdict.lost_at));
        }
    }

    fn connection(&mut self, connection: &Ended, _: &mut Route) {
        let place = self.place(connection.id);
        let turn = &mut self.turns[place];
        if turn.data.id != connection.id {
            turn.renew(connection.id, &mut self.services);
        }
        *turn = Turn::default();
    }

    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
        let services = self.services();
        tiny_segments::findings(&services, &self.requests, out);
        delayed_ack::findings(&services, &self.requests, out);
        slowing_responses::findings(&services, &self.requests, timeline, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response of one server.
    fn response(id: u64, at: u64, bytes: u32, packets: u16) -> DataBlock {
        DataBlock {
            id: FlowId(id),
            ends: Ends {
                client: [1; 16],
                server: [2; 16],
                client_port: 1,
                server_port: 80,
            },
            from_server: true,
            first: at,
            last: at,
            bytes,
            packets,
        }
    }

    fn tell(responses: &mut Responses, block: &DataBlock) {
        responses.block(block, &mut Route::new(&block.ends, 0));
    }

    /// A connection closes long after its last response; others take its place meanwhile.
    #[test]
    fn segments_outlive_their_turn() {
        const CONNECTIONS: u64 = 20_000;
        const TAKEN: u64 = CONNECTIONS - TURNS as u64;
        let mut responses = Responses::default();
        for id in 1..=CONNECTIONS {
            tell(&mut responses, &response(id, id * 1_000_000, 29, 1));
            tell(&mut responses, &response(id, id * 1_000_000 + 1_000, 29, 1));
        }
        let segments = responses.services()[0].row.segments;
        assert!((2 * TAKEN..=2 * CONNECTIONS).contains(&segments.all), "{segments:?}");
        assert_eq!((segments.tiny, 2 * segments.extra), (segments.all, segments.all));
    }

    /// Pieces of at most 600 bytes say nothing of what a segment may bring; 1,380 may be all that the path carries.
    #[test]
    fn a_full_segment_is_what_both_ends_told() {
        for (largest, told, expected) in [
            (600, None, 600),
            (600, Some(1460), 1460),
            (600, Some(500), 500),
            (1380, Some(1460), 1380),
        ] {
            let mut service = Service::new([1; 16], 80);
            service.told = told;
            service.brought(largest, true);
            assert_eq!(service.mss(), expected);
        }
    }

    /// Three segments of 3,031 bytes each time; once two of them were lost before the tap. Or all come in one.
    #[test]
    fn a_loss_before_the_tap_makes_no_segment_larger() {
        for (is_jumbo, needed) in [(false, 3), (true, 1)] {
            let mut responses = Responses::default();
            for id in 1..=500 {
                let packets = if is_jumbo || id == 100 { 1 } else { 3 };
                tell(&mut responses, &response(id, id * 1_000_000_000, 3_031, packets));
                tell(&mut responses, &response(id, id * 1_000_000_000 + 500_000_000, 29, 1));
            }
            let service = &responses.services()[0];
            assert_eq!(3_031u64.div_ceil(service.mss()), needed);
        }
    }
}
