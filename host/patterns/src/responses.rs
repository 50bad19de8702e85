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
use crate::{delayed_ack, request_pauses, response_bands, slowing_responses, tiny_segments};

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
/// Hosts are not slower than this by themselves, ns; what comes so much later may come by chance.
const AT_ONCE_SURELY: u64 = 1_000_000;
/// What comes in the time behind that, up to so many times as long in all, did not wait for it, and tells how often data comes by chance.
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
    /// Data that came later behind such ACKs, in [`LATER`] less one times as long a time.
    pub later: u64,
    /// Of them, ACKs of clients; those that data came behind as soon as its sender can have heard; the first ones of their connections;
    /// those behind repeats; and those that may have been later.
    pub by_client: u64,
    pub sure: u64,
    pub first: u64,
    pub lossy: u64,
    pub least: u64,
    /// The longest time within each of its requests in which the client had nothing to send, where that was [`LONG`].
    pub pauses: Option<Durations>,
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
            sure: 0,
            first: 0,
            lossy: 0,
            least: 0,
            pauses: None,
            trips: Durations::default(),
            repeats: Durations::default(),
        }
    }

    /// Data waited for a late ACK.
    fn waited(&mut self, waited: &Waited) {
        self.ack_delays.add(waited.ns.into());
        self.by_client += u64::from(!waited.by_server);
        self.small += u64::from(waited.is_small);
        self.sure += u64::from(waited.is_sure);
        self.first += u64::from(waited.is_first);
        self.lossy += u64::from(waited.is_lossy);
        self.least += u64::from(waited.is_least);
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

/// What ACKs tell of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Acks {
    id: FlowId,
    /// Smallest round trip from the tap to each side, ns; 0: not known.
    trips: [u64; 2],
    /// Last ACK that was late: when it came, TAI ns, and how late it was, ns.
    late_at: u64,
    late_ns: u32,
    /// When data came right behind such an ACK, which it had waited for, TAI ns; and how late those of the transaction were, µs.
    waited_us: u32,
    waited_at: u64,
    /// When an ACK left less than two segments in flight, TAI ns; 0: the newest left more, or nothing.
    one_left_at: u64,
    /// Whether the server sent the late ACK, and this one.
    late_by_server: bool,
    one_left_by_server: bool,
    /// It was the first of data of its side; it came in the middle of a block.
    late_is_first: bool,
    late_is_within: bool,
    /// Sides whose smallest round trip is the path's: no host held its ACK back.
    are_paths: [bool; 2],
    /// Sides that have acknowledged data.
    have_acked: [bool; 2],
}

/// How long behind a late ACK data passed.
#[derive(Clone, Copy, Debug)]
enum Behind {
    /// As long as the way to its sender and back takes; surely: hardly longer.
    Right { surely: bool },
    /// Later, as it does by chance.
    Later,
    /// Sooner than its sender can have heard, or much later.
    No,
}

impl Acks {
    /// What passed so many ns behind the late ACK.
    fn behind(&self, ns: u64) -> Behind {
        let sender = usize::from(!self.late_by_server);
        let (trip, is_path) = (self.trips[sender], self.are_paths[sender]);
        let soonest = if is_path {
            (trip - trip / 16).saturating_sub(AT_ONCE_SURELY)
        } else {
            0
        };
        let soon = trip + AT_ONCE;
        if ns < soonest {
            Behind::No
        } else if ns <= soon {
            Behind::Right {
                surely: is_path && ns <= trip + AT_ONCE_SURELY,
            }
        } else if ns <= soonest + LATER * (soon - soonest) {
            Behind::Later
        } else {
            Behind::No
        }
    }
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
    /// The last block of either side was full segments only.
    is_whole: bool,
    /// Sides that have sent data again.
    have_lost: [bool; 2],
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

    /// A round trip. Returns what its segment tells of a late ACK before it.
    fn acknowledged(&mut self, ack: &Acknowledged) -> Option<Resumed> {
        let side = usize::from(ack.by_server);
        let waited = (ack.is_data && self.data.is_late).then(|| self.resumed(ack)).flatten();
        let acks = &mut self.acks;
        let trip = &mut acks.trips[side];
        *trip = if *trip == 0 { ack.rtt } else { ack.rtt.min(*trip) };
        acks.are_paths[side] |= !ack.is_data || ack.is_prompt;
        let delay = ack.rtt - *trip;
        if ack.is_data {
            if DELAYED.contains(&delay) && !ack.is_prompt {
                (acks.late_at, acks.late_ns) = (ack.time, delay as u32);
                acks.late_by_server = ack.by_server;
                (acks.late_is_first, acks.late_is_within) = (!acks.have_acked[side], false);
                self.data.is_late = true;
            }
            acks.one_left_at = if ack.is_one_left { ack.time } else { 0 };
            acks.one_left_by_server = ack.by_server;
            acks.have_acked[side] = true;
        }
        waited
    }

    /// What the segment that `ack` timed tells, if it is the first that passed behind a late ACK: it is in the middle of a block, and whole, as
    /// more was written.
    fn resumed(&mut self, ack: &Acknowledged) -> Option<Resumed> {
        let acks = &self.acks;
        let sent = ack.time.saturating_sub(ack.rtt);
        // Behind what left something in flight, nothing need have waited.
        if acks.one_left_at == acks.late_at || acks.late_by_server != ack.by_server {
            return None;
        }
        match acks.behind(sent.checked_sub(acks.late_at)?) {
            Behind::Right { surely } => Some(Resumed::Waited(self.waited(sent, false, surely))),
            behind => {
                self.data.is_late = false;
                matches!(behind, Behind::Later).then_some(Resumed::Later)
            }
        }
    }

    /// Data that passed at `at` had waited for the late ACK.
    fn waited(&mut self, at: u64, is_small: bool, is_sure: bool) -> Waited {
        self.data.is_late = false;
        let acks = &mut self.acks;
        acks.waited_at = at;
        acks.waited_us = acks.waited_us.saturating_add(acks.late_ns / 1_000);
        Waited {
            ns: acks.late_ns,
            by_server: acks.late_by_server,
            is_small,
            is_sure,
            is_first: acks.late_is_first,
            is_lossy: self.data.have_lost[usize::from(!acks.late_by_server)],
            is_least: !acks.are_paths[usize::from(acks.late_by_server)],
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
        let acks = &self.acks;
        if acks.late_by_server == block.from_server {
            // What comes now answers this.
            self.data.is_late = false;
            return;
        }
        let Some(behind) = block.first.checked_sub(acks.late_at) else {
            // Of the middle of a block nothing is known here; its last segment may have waited.
            let last = block.last.checked_sub(acks.late_at).map(|behind| acks.behind(behind));
            self.acks.late_is_within = true;
            if let Some(Behind::Right { surely }) = last
                && is_rest(block, service)
            {
                let waited = self.waited(block.last, true, surely);
                service.waited(&waited);
            }
            return;
        };
        let behind = acks.behind(behind);
        if let Behind::Right { surely } = behind
            && !acks.late_is_within
        {
            let is_small = u64::from(block.bytes) < service.mss();
            let waited = self.waited(block.first, is_small, surely);
            service.waited(&waited);
            return;
        }
        self.data.is_late = false;
        service.later += u64::from(!acks.late_is_within && matches!(behind, Behind::Later));
    }

    /// A block begins, or its last segment came, long after an ACK that had left less than two segments in flight, and those are acknowledged
    /// now: it waited for that ACK, of which no record tells. Who begins a block behind less than full segments may have had nothing to send.
    #[inline(never)]
    fn follow_untold(&mut self, block: &DataBlock, service: &mut Service) {
        let acks = &mut self.acks;
        let at = std::mem::take(&mut acks.one_left_at);
        if acks.one_left_by_server == block.from_server {
            return;
        }
        let next = if at >= block.first {
            is_rest(block, service).then_some((block.last, true))
        } else {
            let is_next = self.data.is_whole && block.flight == block.bytes;
            is_next.then_some((block.first, u64::from(block.bytes) < service.mss()))
        };
        let Some((next, is_small)) = next else { return };
        let delay = next.saturating_sub(at).saturating_sub(acks.trips[0] + acks.trips[1]);
        if DELAYED.contains(&delay) {
            (acks.late_at, acks.late_ns) = (at, delay as u32);
            acks.late_by_server = !block.from_server;
            acks.late_is_first = false;
            let waited = self.waited(next, is_small, true);
            service.waited(&waited);
        }
    }
}

/// Whether the last segment of a block was less than a full one, and all before it acknowledged when it went. (Its sender had more: the block
/// went on without PSH.)
const fn is_rest(block: &DataBlock, service: &Service) -> bool {
    block.packets > 1 && block.flight > 0 && (block.flight as u64) < service.mss()
}

/// Data that waited for an ACK.
#[derive(Clone, Copy, Debug)]
struct Waited {
    /// How late the ACK was, ns.
    ns: u32,
    /// The server sent the ACK.
    by_server: bool,
    /// The data was less than a segment.
    is_small: bool,
    /// It came as soon as its sender can have heard.
    is_sure: bool,
    /// The ACK was the first of the connection for data of that side.
    is_first: bool,
    /// The side had sent something again on the connection.
    is_lossy: bool,
    /// How long the path takes is not known, and the ACK was so late at least.
    is_least: bool,
}

/// What a segment in the middle of a block tells of a late ACK before it.
#[derive(Clone, Copy, Debug)]
enum Resumed {
    /// It had waited for it.
    Waited(Waited),
    /// It came later.
    Later,
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
        if turn.acks.one_left_at > 0 {
            turn.follow_untold(block, service);
        }
        turn.data.is_whole = u64::from(block.bytes).is_multiple_of(service.mss());
        if block.from_server {
            turn.data.service = number as u16;
            turn.respond(block, service);
        } else {
            turn.data.finish(service);
        }
    }

    #[inline]
    fn acknowledged(&mut self, ack: &Acknowledged, route: &mut Route) {
        let place = self.place(ack.id);
        let turn = &mut self.turns[place];
        if turn.acks.id != ack.id {
            turn.renew(ack.id, &mut self.services);
        }
        if let Some(resumed) = turn.acknowledged(ack)
            && let Some(service) = self.service(route)
        {
            match resumed {
                Resumed::Waited(waited) => self.services[service].waited(&waited),
                Resumed::Later => self.services[service].later += 1,
            }
        }
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
        let (waited_at, waited_us) = (turn.acks.waited_at, turn.acks.waited_us);
        let trip = turn.acks.trips[0] + turn.acks.trips[1];
        let has_waited = (facts.request_time..=asked.saturating_add(end)).contains(&waited_at);
        if has_waited {
            (turn.acks.waited_at, turn.acks.waited_us) = (0, 0);
        }
        if trip > 0 {
            own.trips.add(trip);
        }
        let paused = u64::from(facts.paused_us) * 1_000;
        if paused >= LONG && facts.losses == 0 {
            own.pauses.get_or_insert_default().add(paused);
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
            row.delayed_ns += u64::from(waited_us) * 1_000;
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
        if verdict.class != Class::Retransmission || verdict.length == 0 || verdict.handshake {
            return;
        }
        let place = self.place(verdict.connection);
        let data = &mut self.turns[place].data;
        if data.id == verdict.connection {
            data.have_lost[usize::from(verdict.from_server)] = true;
        }
        if verdict.place == Place::BeforeTap
            && verdict.from_server
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
        request_pauses::findings(&services, out);
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
            flight: bytes,
        }
    }

    fn tell(responses: &mut Responses, block: &DataBlock) {
        responses.block(block, &mut Route::new(&block.ends, 0));
    }

    const MS: u64 = 1_000_000;

    /// An ACK of the client (of the server: the other way round) at `at`, ms, after `rtt` ms.
    fn ack(at: u64, rtt: u64, by_server: bool) -> Acknowledged {
        let block = response(1, 0, 0, 0);
        Acknowledged {
            id: block.id,
            ends: block.ends,
            by_server,
            time: at * MS,
            rtt: rtt * MS,
            is_data: true,
            is_prompt: false,
            is_one_left: false,
        }
    }

    /// What waited for ACKs that came 200 ms late, of a server 40 ms behind the tap.
    fn waits(has_path: bool, tell: impl FnOnce(&mut Responses)) -> (u64, Service) {
        let mut responses = Responses::default();
        let mut route = Route::new(&response(1, 0, 0, 0).ends, 0);
        for (by_server, rtt) in [(true, 40), (false, 10)] {
            let handshake = Acknowledged {
                is_data: !has_path,
                ..ack(rtt, rtt, by_server)
            };
            responses.acknowledged(&handshake, &mut route);
        }
        tell(&mut responses);
        let service = responses.services().remove(0);
        (service.ack_delays.count(), service)
    }

    /// A block of the server from `first` to `last` ms, so many bytes in flight at its end.
    fn block(first: u64, last: u64, bytes: u32, packets: u16, flight: u32) -> DataBlock {
        DataBlock {
            last: last * MS,
            flight,
            ..response(1, first * MS, bytes, packets)
        }
    }

    fn told(responses: &mut Responses, ack: &Acknowledged) {
        responses.acknowledged(ack, &mut Route::new(&ack.ends, 0));
    }

    /// The ACK of the first of two pieces comes at 310 ms. Sooner than the way to the server and back takes it has heard of nothing.
    #[test]
    fn what_waited_comes_as_soon_as_its_sender_has_heard() {
        for (next, count, sure, later) in [(350, 1, 1, 0), (354, 1, 0, 0), (340, 0, 0, 0), (360, 0, 0, 1)] {
            let (waited, service) = waits(true, |responses| {
                tell(responses, &block(100, 100, 1460, 1, 1460));
                told(responses, &ack(310, 210, false));
                tell(responses, &block(next, next, 500, 1, 500));
            });
            assert_eq!((waited, service.sure, service.later), (count, sure, later), "{next}");
            assert_eq!((service.small, service.least), (count, 0), "{next}");
        }
        // Without a handshake the path may be shorter, and the ACK was so late at least.
        let (waited, service) = waits(false, |responses| {
            told(responses, &ack(310, 210, false));
            tell(responses, &block(350, 350, 500, 1, 500));
        });
        assert_eq!((waited, service.least, service.sure), (1, 1, 0));
    }

    /// In one block: the next segment was timed, and passed right behind the late ACK; or the last one, less than full, did.
    #[test]
    fn what_waited_may_be_in_the_middle_of_a_block() {
        let (waited, service) = waits(true, |responses| {
            told(responses, &ack(310, 210, false));
            told(responses, &ack(361, 11, false));
            tell(responses, &block(100, 400, 9_000, 7, 500));
        });
        assert_eq!((waited, service.small, service.first), (1, 0, 1));
        // The first behind it came too soon: the next one was let go by another ACK.
        let (waited, service) = waits(true, |responses| {
            told(responses, &ack(310, 210, false));
            told(responses, &ack(341, 11, false));
            told(responses, &ack(361, 11, false));
            tell(responses, &block(100, 400, 9_000, 7, 500));
        });
        assert_eq!((waited, service.later), (0, 0));
        for (flight, count) in [(500, 1), (1_960, 0)] {
            let (waited, service) = waits(true, |responses| {
                tell(responses, &block(90, 90, 1_460, 1, 1_460));
                told(responses, &ack(310, 210, false));
                tell(responses, &block(100, 350, 1_960, 2, flight));
                tell(responses, &block(370, 370, 500, 1, 500));
            });
            assert_eq!((waited, service.small, service.later), (count, count, 0), "{flight}");
        }
    }

    /// An ACK left one segment in flight, and no record tells of the one that the rest waited for.
    #[test]
    fn what_waited_for_an_untold_ack_is_the_rest_of_a_block() {
        for (last, is_one_left, count) in [(350, true, 1), (350, false, 0), (170, true, 0)] {
            let (waited, service) = waits(true, |responses| {
                tell(responses, &block(90, 90, 1_460, 1, 1_460));
                let before = Acknowledged {
                    is_one_left,
                    ..ack(110, 10, false)
                };
                told(responses, &before);
                tell(responses, &block(100, last, 4_000, 3, 1_080));
            });
            assert_eq!((waited, service.small), (count, count), "{last} {is_one_left}");
        }
    }

    /// Or of the next block, behind full segments; who sends less may have had nothing to send for so long.
    #[test]
    fn what_waited_for_an_untold_ack_is_the_next_block() {
        for (bytes, flight, count) in [(4_380, 4_380, 1), (4_000, 4_380, 0), (4_380, 5_840, 0)] {
            let (waited, service) = waits(true, |responses| {
                tell(responses, &block(90, 90, 1_460, 1, 1_460));
                tell(responses, &block(100, 100, bytes, 3, bytes));
                let before = Acknowledged {
                    is_one_left: true,
                    ..ack(110, 10, false)
                };
                told(responses, &before);
                tell(responses, &block(350, 350, 4_380, 3, flight));
            });
            assert_eq!((waited, service.small), (count, 0), "{bytes} {flight}");
        }
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
