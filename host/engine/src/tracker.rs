//! Metadata words to records: sections 1 to 6 of the specification. Section numbers in comments
//! are those of `docs/src/flow-engine.md`.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use weir_record::{
    Block, BlockEnd, ClientHow, Close, CloseCause, CloseMore, Event, EventMore, FlowId, Header, IdStep, Interval, Open,
    OpenMore, Packet, PacketMore, Port, PortMore, Record, Rtt, RttHow, Setup, SetupEnd, SetupMore, Untracked, flag,
    setup_bit, what, width,
};

use crate::flow::{
    Flow, Low40, NO_RTT, NO_SCALE, NO_VISIT, PlainKey, ShortTime, Side, State, StoredKey, V4_PREFIX, bit, flight, pair,
    side,
};
use crate::meta::{Class, Key, Meta, tcp};
use crate::table::Table;
use crate::visits::{Calendar, REST_NS, visit_at, visit_time};

const SECOND: u64 = 1_000_000_000;
/// Block idle time (section 5).
const BLOCK_IDLE: u64 = SECOND;
const FINE_INTERVAL: u64 = 10_000_000;
/// A normal interval in units of a fine one.
const NORMAL_SPAN: u64 = 10;
/// Times of 40 bits in the context are given up when older than this, so that they never wrap (section 3).
const TIME_LIMIT: u64 = 1 << 38;
/// MSS of a peer that did not send the option (RFC 9293 3.7.1).
const DEFAULT_MSS: u32 = 536;
/// Counts that share the 6-bit chain field.
const CHAIN_MAX: u8 = (1 << width::CHAIN) - 1;
/// Times beyond this are taken for this (the year 2262), so that sums of times do not overflow.
const MAX_TIME: u64 = 1 << 63;
/// A server that goes on this long after its SYN-ACK was answered, whether we saw it or not.
const ONE_SIDED_AFTER: u64 = 1 << 32;
/// Ports that PORT counts.
const PORTS: usize = 16;
/// `IDS_SKIPPED` (4.8): the highest `id_step`, and the least `since_data` in its units of 64 ns.
const MOST_IDS_SKIPPED: u16 = 17;
const LEAST_PAUSE: u32 = 1 << (20 - 6);
/// Ids that a packet which was overtaken is below the newest, at most (4.5).
const MOST_OVERTAKEN: u16 = 256;

/// Conditions that make the next interval fine (section 5).
const TROUBLE: u32 = what::GAP
    | what::BELOW
    | what::ACK_UNSEEN
    | what::SACK
    | what::DUP_ACK
    | what::ZERO_WINDOW
    | what::SMALL_WINDOW
    | what::SYN_REPEAT
    | what::SYN_ACK_REPEAT;

/// Bits that cause no EVENT by themselves.
const BESIDE: u32 = what::PUSH | what::IDLE_BEFORE | what::EXPECTED_UNKNOWN | what::ACKED_UNKNOWN | what::ACKS_MORE;

/// Settings of the engine; times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Boot epoch in the flow ids.
    pub epoch: u16,
    /// Lane of the records, 0..16.
    pub lane: u8,
    /// Contexts, at most 2²⁴.
    pub contexts: u32,
    /// Timeout while the handshake is pending.
    pub handshake_timeout: u64,
    /// Timeout of an open TCP flow.
    pub idle_timeout: u64,
    /// How long a closed flow stays to take in late packets.
    pub linger: u64,
    /// Timeout of flows that are not TCP.
    pub other_timeout: u64,
    /// Write a PACKET record for every packet.
    pub digests: bool,
    /// VLAN ids are part of the key.
    pub vlan_in_key: bool,
    /// Seed of the flow hash.
    pub seed: u64,
}

impl Config {
    /// For the card and for software that stands in for it.
    pub const fn appliance() -> Self {
        Self {
            epoch: 0,
            lane: 0,
            contexts: 1 << 18,
            handshake_timeout: 90 * SECOND,
            idle_timeout: 900 * SECOND,
            linger: 4 * SECOND,
            other_timeout: 60 * SECOND,
            digests: false,
            vlan_in_key: true,
            seed: 0,
        }
    }

    /// For capture files: long timeouts, as many contexts as a flow id can name.
    pub const fn file() -> Self {
        Self {
            contexts: 1 << 24,
            handshake_timeout: 180 * SECOND,
            idle_timeout: 86_400 * SECOND,
            linger: 60 * SECOND,
            other_timeout: 120 * SECOND,
            ..Self::appliance()
        }
    }
}

/// Running counters of one port, as PORT carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames received.
    pub frames: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Frames counted in a flow.
    pub tracked: u64,
    /// Frames whose time ran backwards.
    pub clamped: u32,
    /// Frames captured shorter than on the wire.
    pub cut: u32,
    /// Frames that the source lost before the engine.
    pub dropped: u32,
    /// TCP packets with incomplete options.
    pub options_skipped: u32,
    /// By [`Untracked`].
    pub untracked: [u32; 10],
}

/// The flow engine. Words go in by its methods, records are appended to the given vector.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    timeouts: Timeouts,
    hasher: FixedState,
    table: Table,
    flows: Flows,
    calendar: Calendar,
    /// Released indices with their times, oldest first.
    released: std::collections::VecDeque<(u32, u64)>,
    fresh: u32,
    /// Indices that `finish_some` has been through.
    finished: u32,
    now: u64,
    next_second: u64,
    /// No second passes and no visit is due before this time.
    quiet_until: u64,
    sequence: u32,
    ports: [PortCounters; PORTS],
    reported: [PortCounters; PORTS],
    /// Flows of the packets in hand, by their hashes alone.
    hints: Vec<Option<u32>>,
    /// Of the last packet.
    new_bytes: bool,
}

/// Packets that wait to go into the engine together ([`Engine::packets`]).
#[derive(Debug, Default)]
pub struct Batch {
    metas: Vec<Meta>,
    captured: Vec<u32>,
}

impl Batch {
    /// Append a frame and its captured length.
    #[inline]
    pub fn push(&mut self, meta: &Meta, captured: u32) {
        self.metas.extend_from_slice(std::slice::from_ref(meta));
        self.captured.push(captured);
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.metas.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.metas.is_empty()
    }
}

/// Contexts in chunks that never move, so that growing does not need the memory twice.
#[derive(Debug, Default)]
struct Flows(Vec<Vec<Flow>>);

/// Many, because the allocator leaves room between chunks, which huge pages fill.
const CHUNK: usize = 1 << 15;

impl Flows {
    #[inline]
    fn get(&self, index: u32) -> &Flow {
        &self.0[index as usize / CHUNK][index as usize % CHUNK]
    }

    #[inline]
    fn get_mut(&mut self, index: u32) -> &mut Flow {
        &mut self.0[index as usize / CHUNK][index as usize % CHUNK]
    }

    fn push(&mut self, flow: Flow) {
        match self.0.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(flow),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(flow);
                self.0.push(chunk);
            }
        }
    }
}

/// Where records go: numbers them and fills in the header.
struct Out<'a> {
    records: &'a mut Vec<Record>,
    sequence: &'a mut u32,
    lane: u8,
    flow: FlowId,
    time: u64,
}

impl<'a> Out<'a> {
    /// For records of a flow.
    #[inline]
    fn of(
        records: &'a mut Vec<Record>,
        sequence: &'a mut u32,
        config: &Config,
        generation: u32,
        index: u32,
        time: u64,
    ) -> Self {
        let flow = FlowId::new(config.epoch, generation, index);
        Self {
            records,
            sequence,
            lane: config.lane,
            flow,
            time,
        }
    }

    #[inline]
    fn header(&mut self, flags: u8, arg: u8) -> Header {
        let header = Header {
            flags,
            lane: self.lane,
            arg,
            sequence: *self.sequence,
            flow: self.flow,
            time: self.time,
        };
        *self.sequence = self.sequence.wrapping_add(1);
        header
    }
}

const fn direction(side: usize) -> u8 {
    if side == 1 { flag::SERVER_TO_CLIENT } else { 0 }
}

impl Engine {
    /// An engine without flows.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            timeouts: Timeouts::of(&config),
            hasher: FixedState::with_seed(config.seed),
            table: Table::new(),
            flows: Flows::default(),
            calendar: Calendar::new(),
            released: std::collections::VecDeque::new(),
            fresh: 0,
            finished: 0,
            now: 0,
            next_second: 0,
            quiet_until: 0,
            sequence: 0,
            ports: [PortCounters::default(); PORTS],
            reported: [PortCounters::default(); PORTS],
            hints: Vec::new(),
            new_bytes: false,
        }
    }

    /// Flows in the table.
    pub fn flows_in_use(&self) -> usize {
        self.table.len()
    }

    /// The context of the flow that counts such a packet, if there is one.
    pub fn context(&self, meta: &Meta) -> Option<u32> {
        self.find(meta, None)
    }

    /// Whether the last packet brought TCP payload that was not seen before (section 4.5; not of a SYN or RST).
    pub fn new_bytes(&self) -> bool {
        self.new_bytes
    }

    /// Contexts that were ever in use: the indices below this number.
    pub fn contexts_used(&self) -> u32 {
        self.fresh
    }

    /// Counters of a port (0..16).
    pub fn port(&self, port: u8) -> &PortCounters {
        &self.ports[usize::from(port) % PORTS]
    }

    /// The largest time of any word so far, TAI ns.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// A parsed frame; `captured` is its captured length.
    pub fn packet(&mut self, meta: &Meta, captured: u32, out: &mut Vec<Record>) {
        self.enter(meta, None, captured, out);
    }

    /// The packets that wait in `batch`, one after the other; none waits afterwards. What they need is brought into the
    /// cache first, all at once instead of one wait after the other: worth it when the table is larger than the cache.
    pub fn packets(&mut self, batch: &mut Batch, out: &mut Vec<Record>) {
        let mut hints = std::mem::take(&mut self.hints);
        hints.clear();
        // First all slots, then all flows: who asks for a flow on the way to the next slot waits for each of both, because
        // the processor cannot know which packets have a flow.
        hints.extend(batch.metas.iter().map(|meta| {
            let hash = self.hash(&meta.key, self.plain(&meta.key));
            self.table.find(hash, |_| true)
        }));
        let newest = batch.metas.last().map_or(0, |meta| meta.time);
        let mut seen = 0;
        for index in hints.iter().copied().flatten().chain(self.calendar.due(newest)) {
            let flow = self.flows.get(index);
            let [client, server] = &flow.sides;
            // One load from each cache line that the flow can be in.
            seen ^= flow.later ^ u64::from(client.next ^ server.next) ^ u64::from(client.flags ^ server.flags);
        }
        std::hint::black_box(seen);
        for ((meta, &captured), &hint) in batch.metas.iter().zip(&batch.captured).zip(&hints) {
            self.enter(meta, hint, captured, out);
        }
        batch.metas.clear();
        batch.captured.clear();
        self.hints = hints;
    }

    /// The key under which the packet's flow is in the table.
    fn key(&self, meta: &Meta) -> Key {
        let mut key = meta.key;
        if !self.config.vlan_in_key {
            key.vlans = 0;
            key.overlay = 0;
        }
        key
    }

    /// Its short form, if it has one.
    #[inline]
    fn plain(&self, key: &Key) -> Option<PlainKey> {
        if key.vlans | key.overlay == 0 || !self.config.vlan_in_key {
            PlainKey::untagged(key)
        } else {
            None
        }
    }

    /// `hint`: the flow that may be the packet's.
    fn enter(&mut self, meta: &Meta, hint: Option<u32>, captured: u32, out: &mut Vec<Record>) {
        let port = usize::from(meta.port) % PORTS;
        let time = self.arrive(port, meta.time, meta.wire, captured, out);
        self.new_bytes = false;
        if meta.options.incomplete {
            self.ports[port].options_skipped = self.ports[port].options_skipped.wrapping_add(1);
        }
        let result = match meta.class {
            Class::IcmpError => self.icmp_error(hint, meta, time, out),
            Class::Tcp | Class::Other => self.flow_packet(hint, meta, time, out),
        };
        match result {
            Ok(()) => self.ports[port].tracked += 1,
            Err(reason) => self.count_untracked(port, reason),
        }
    }

    /// A frame that no flow counts.
    pub fn untracked(
        &mut self,
        port: u8,
        time: u64,
        wire: u32,
        captured: u32,
        reason: Untracked,
        out: &mut Vec<Record>,
    ) {
        let port = usize::from(port) % PORTS;
        self.arrive(port, time, wire, captured, out);
        self.count_untracked(port, reason);
    }

    /// Nothing else happened until `time`.
    pub fn time(&mut self, time: u64, out: &mut Vec<Record>) {
        self.advance(time.clamp(self.now, MAX_TIME), out);
    }

    /// The source says that it lost `frames` on a port, in all.
    pub fn dropped(&mut self, port: u8, frames: u32) {
        self.ports[usize::from(port) % PORTS].dropped = frames;
    }

    /// The input is over: close every flow.
    pub fn finish(&mut self, out: &mut Vec<Record>) {
        while self.finish_some(usize::MAX, out) {}
    }

    /// The input is over: close up to `flows` flows; false when all are closed. For callers who take
    /// the records away in between.
    pub fn finish_some(&mut self, flows: usize, out: &mut Vec<Record>) -> bool {
        let mut left = flows;
        while self.finished < self.fresh {
            if left == 0 {
                return true;
            }
            let index = self.finished;
            self.finished += 1;
            let flow = self.flows.get(index);
            if flow.is(bit::IN_USE) {
                let cause = match flow.state {
                    State::ClosedFin => CloseCause::Fin,
                    State::ClosedRst => CloseCause::Rst,
                    _ => CloseCause::End,
                };
                self.close(index, self.now, cause, SetupEnd::End, out);
                left -= 1;
            }
        }
        self.table.clear();
        self.report_ports(self.now, out);
        false
    }

    fn count_untracked(&mut self, port: usize, reason: Untracked) {
        let counter = &mut self.ports[port].untracked[reason as usize];
        *counter = counter.wrapping_add(1);
    }

    /// Section 1: the time of the word, and everything that is due before it.
    #[inline]
    fn arrive(&mut self, port: usize, time: u64, wire: u32, captured: u32, out: &mut Vec<Record>) -> u64 {
        let clamped = time < self.now;
        let time = time.min(MAX_TIME).max(self.now);
        self.advance(time, out);
        let counters = &mut self.ports[port];
        counters.frames += 1;
        counters.bytes += u64::from(wire);
        if clamped {
            counters.clamped = counters.clamped.wrapping_add(1);
        }
        if captured < wire {
            counters.cut = counters.cut.wrapping_add(1);
        }
        time
    }

    #[inline]
    fn advance(&mut self, time: u64, out: &mut Vec<Record>) {
        if time >= self.quiet_until {
            self.catch_up(time, out);
        }
        self.now = time;
    }

    /// Every second and visit up to `time`.
    #[inline(never)]
    fn catch_up(&mut self, time: u64, out: &mut Vec<Record>) {
        if time >= self.next_second {
            if self.next_second != 0 {
                self.visits(self.next_second, out);
                self.report_ports(self.next_second, out);
            }
            self.next_second = (time / SECOND + 1) * SECOND;
        }
        self.visits(time, out);
        self.quiet_until = self.next_second.min(self.calendar.next());
    }

    fn report_ports(&mut self, time: u64, out: &mut Vec<Record>) {
        for port in 0..PORTS {
            let c = self.ports[port];
            if c == self.reported[port] {
                continue;
            }
            self.reported[port] = c;
            let mut out = Out {
                records: out,
                sequence: &mut self.sequence,
                lane: self.config.lane,
                flow: FlowId(0),
                time,
            };
            let header = out.header(flag::MORE, port as u8);
            let body = Port {
                frames: c.frames,
                bytes: c.bytes,
                tracked: c.tracked,
                clamped: c.clamped,
                cut: c.cut,
                dropped: c.dropped,
                options_skipped: c.options_skipped,
            };
            out.records.push(body.encode(header));
            let header = out.header(0, port as u8);
            out.records.push(PortMore { untracked: c.untracked }.encode(header));
        }
    }

    #[inline]
    fn visits(&mut self, time: u64, out: &mut Vec<Record>) {
        while let Some((visit, index)) = self.calendar.pop(time) {
            self.visit(visit, index, out);
        }
    }

    /// Section 5: a scan visit to a flow.
    fn visit(&mut self, visit: u64, index: u32, out: &mut Vec<Record>) {
        let flow = self.flows.get_mut(index);
        if !flow.is(bit::IN_USE) || flow.visit != visit {
            return; // the flow was closed or is scheduled elsewhere
        }
        let time = visit_time(visit);
        if time.saturating_sub(flow.last_seen) >= self.timeouts.get(flow.state) {
            let (cause, setup) = close_cause(flow.state);
            self.close(index, time, cause, setup, out);
            self.release(index, time);
            return;
        }
        let mut out = Out::of(out, &mut self.sequence, &self.config, flow.generation, index, time);
        for s in 0..2 {
            let (sender, receiver) = pair(&mut flow.sides, s);
            if !sender.is(side::IDLE) && sender.block_last.age(time) >= BLOCK_IDLE {
                end_block(sender, receiver, s, BlockEnd::Idle, 0, &mut out);
                sender.set(side::IDLE, true);
            }
            if sender.is(side::SLOT) && sender.slot_time.age(time) >= TIME_LIMIT {
                sender.set(side::SLOT, false);
            }
        }
        if flow.pending() && time - setup_begun(flow, time) >= TIME_LIMIT {
            write_setup(&flow.sides, SetupEnd::Timeout, 0, 0, &mut out);
            leave_setup(flow, State::Up);
        }
        if let Some(ended) = end_interval(flow, time) {
            ended.write(2, &mut out);
        }
        let due = visit_at(index, deadline(&self.timeouts, flow, time).max(time + 1));
        if flow.later <= due {
            flow.visit = std::mem::replace(&mut flow.later, NO_VISIT);
        } else {
            flow.visit = self.calendar.insert(due, index);
        }
    }

    #[inline]
    fn hash(&self, key: &Key, plain: Option<PlainKey>) -> u32 {
        let mut h = self.hasher.build_hasher();
        if let Some(plain) = plain {
            h.write_u64(u64::from(u32::from_ne_bytes(plain.low)) << 32 | u64::from(u32::from_ne_bytes(plain.high)));
        } else {
            h.write(&key.low.addr);
            h.write(&key.high.addr);
            h.write_u64(u64::from(key.overlay) << 32 | u64::from(key.vlans));
        }
        h.write_u64(u64::from(key.low.port) << 24 | u64::from(key.high.port) << 8 | u64::from(key.protocol));
        let h = h.finish();
        (h ^ (h >> 32)) as u32
    }

    #[inline]
    fn find(&self, meta: &Meta, hint: Option<u32>) -> Option<u32> {
        if let Some(plain) = self.plain(&meta.key) {
            let hash = || self.hash(&meta.key, Some(plain));
            self.find_stored(hint, hash, |key| matches!(key, StoredKey::Plain(own) if *own == plain))
        } else {
            self.find_full(meta, hint)
        }
    }

    #[inline(never)]
    fn find_full(&self, meta: &Meta, hint: Option<u32>) -> Option<u32> {
        let full = self.key(meta);
        let hash = || self.hash(&full, None);
        self.find_stored(hint, hash, |key| matches!(key, StoredKey::Full(own) if **own == full))
    }

    #[inline(always)]
    fn find_stored(
        &self,
        hint: Option<u32>,
        hash: impl Fn() -> u32,
        is_it: impl Fn(&StoredKey) -> bool,
    ) -> Option<u32> {
        let flows = &self.flows;
        if let Some(index) = hint {
            let flow = flows.get(index);
            // A flow in use is in the table.
            if flow.is(bit::IN_USE) && is_it(&flow.key) {
                return hint;
            }
        }
        self.table.find(hash(), |index| is_it(&flows.get(index).key))
    }

    /// Section 4.1: an ICMP error about a flow.
    #[inline(never)]
    fn icmp_error(
        &mut self,
        hint: Option<u32>,
        meta: &Meta,
        time: u64,
        out: &mut Vec<Record>,
    ) -> Result<(), Untracked> {
        let index = self.find(meta, hint).ok_or(Untracked::IcmpNoFlow)?;
        let flow = self.flows.get(index);
        if time.saturating_sub(flow.last_seen) >= self.timeouts.get(flow.state) {
            return Err(Untracked::IcmpNoFlow);
        }
        let s = flow.sender(meta.from_low);
        let mut out = Out::of(out, &mut self.sequence, &self.config, flow.generation, index, time);
        let header = out.header(direction(s), 0);
        let event = Event {
            what: what::ICMP,
            seq: meta.seq,
            length: meta.payload,
            expected: flow.sides[s].next,
            acked: flow.sides[1 - s].ack,
            ack: 0,
            tsval: 0,
            since_data: u32::MAX,
            window: 0,
            ip_id: meta.ip_id,
            dup_acks: 0,
            id_step: 0,
            ttl: meta.ttl,
            tcp_flags: 0,
        };
        out.records.push(event.encode(header));
        Ok(())
    }

    #[inline]
    fn flow_packet(
        &mut self,
        hint: Option<u32>,
        meta: &Meta,
        time: u64,
        out: &mut Vec<Record>,
    ) -> Result<(), Untracked> {
        let found = self.find(meta, hint);
        let index = match found {
            Some(index) => index,
            None => self.admit(meta, time, out)?,
        };
        let mut flow = self.flows.get_mut(index);
        if found.is_some()
            && let Some((cause, setup)) = ends(flow, meta, time, &self.timeouts)
        {
            self.close(index, time, cause, setup, out);
            self.open(index, meta, time, out);
            flow = self.flows.get_mut(index);
        }
        let mut out = Out::of(out, &mut self.sequence, &self.config, flow.generation, index, time);
        let before = (flow.interval, flow.state);
        self.new_bytes = update(flow, meta, time, self.config.digests, &mut out);
        // Nothing else brings the next visit forward: whatever a packet begins lasts longer than the interval in progress.
        if before != (flow.interval, flow.state) {
            let due = interval_end(flow).min(time + self.timeouts.get(flow.state));
            let due = visit_at(index, due);
            if due < flow.visit {
                flow.later = flow.visit;
                flow.visit = self.calendar.insert(due, index);
                self.quiet_until = self.quiet_until.min(visit_time(flow.visit));
            }
        }
        Ok(())
    }

    /// A flow for a key that is not in the table.
    #[inline(never)]
    fn admit(&mut self, meta: &Meta, time: u64, out: &mut Vec<Record>) -> Result<u32, Untracked> {
        let key = self.key(meta);
        let hash = self.hash(&key, self.plain(&key));
        let index = self.take_index(time).ok_or(Untracked::TableFull)?;
        self.table.insert(hash, index);
        self.open(index, meta, time, out);
        Ok(index)
    }

    /// Section 4.3: open a flow in a context that is free or was just closed for the same key.
    fn open(&mut self, index: u32, meta: &Meta, time: u64, out: &mut Vec<Record>) {
        let key = self.key(meta);
        let is_syn = meta.class == Class::Tcp && meta.flags & (tcp::SYN | tcp::RST) == tcp::SYN;
        let (how, state, sender_is_client) = if is_syn && meta.flags & tcp::ACK == 0 {
            (ClientHow::Syn, State::Syn, true)
        } else if is_syn {
            (ClientHow::SynAck, State::SynAck, false)
        } else {
            let state = if meta.class == Class::Tcp {
                State::Mid
            } else {
                State::Other
            };
            let (source, destination) = if meta.from_low {
                (key.low.port, key.high.port)
            } else {
                (key.high.port, key.low.port)
            };
            if source == destination || !matches!(key.protocol, 6 | 17) {
                (ClientHow::First, state, true)
            } else {
                (ClientHow::Port, state, source > destination)
            }
        };
        let client_is_low = meta.from_low == sender_is_client;
        let flow = self.flows.get_mut(index);
        flow.begin((&key).into(), state, client_is_low, time);

        let (client, server) = if client_is_low {
            (key.low, key.high)
        } else {
            (key.high, key.low)
        };
        let ipv6 = if key.low.addr[..12] == V4_PREFIX { 0 } else { flag::IPV6 };
        let sent_by_server = !sender_is_client;
        let mut out = Out::of(out, &mut self.sequence, &self.config, flow.generation, index, time);
        let header = out.header(direction(usize::from(sent_by_server)) | ipv6 | flag::MORE, how as u8);
        let body = Open {
            client_addr: client.addr,
            server_addr: server.addr,
            client_port: client.port,
            server_port: server.port,
            protocol: key.protocol,
            vlans: meta.key.vlans,
        };
        out.records.push(body.encode(header));
        let header = out.header(direction(usize::from(sent_by_server)) | ipv6, how as u8);
        let (client_mac, server_mac) = if sender_is_client {
            (meta.source_mac, meta.destination_mac)
        } else {
            (meta.destination_mac, meta.source_mac)
        };
        let body = OpenMore {
            client_mac,
            server_mac,
            first_ttl: meta.ttl,
            first_port: meta.port,
            tunnel_kind: meta.tunnel_kind,
            first_tcp_flags: meta.flags,
            tunnel_id: meta.tunnel_id,
            first_seq: meta.seq,
            first_ack: meta.ack,
            first_length: meta.payload,
            first_wire: meta.wire,
            first_sent_by_server: u8::from(sent_by_server),
        };
        out.records.push(body.encode(header));
    }

    /// Section 2: the free index that a new flow gets.
    fn take_index(&mut self, time: u64) -> Option<u32> {
        match self.released.front() {
            Some(&(index, at)) if time - at >= REST_NS => {
                self.released.pop_front();
                Some(index)
            }
            _ if self.fresh < self.config.contexts => {
                self.flows.push(Flow::unused());
                self.fresh += 1;
                Some(self.fresh - 1)
            }
            _ => None,
        }
    }

    /// Section 5, *Close*: the records of it.
    fn close(&mut self, index: u32, time: u64, cause: CloseCause, setup: SetupEnd, out: &mut Vec<Record>) {
        let flow = self.flows.get_mut(index);
        let mut out = Out::of(out, &mut self.sequence, &self.config, flow.generation, index, time);
        if flow.pending() {
            write_setup(&flow.sides, setup, 0, 0, &mut out);
        }
        close_blocks(flow, &mut out);
        if flow.interval != 0 {
            take_interval(flow).write(3, &mut out);
        }
        write_close(flow, cause, &mut out);
        flow.set(bit::IN_USE, false);
    }

    /// Take a closed flow out of the table; its index rests.
    fn release(&mut self, index: u32, time: u64) {
        let key = self.flows.get(index).key.get();
        let hash = self.hash(&key, self.plain(&key));
        self.table.remove(hash, index);
        self.released.push_back((index, time));
    }
}

/// The timeout of each state.
#[derive(Clone, Copy, Debug)]
struct Timeouts([u64; State::ALL.len()]);

impl Timeouts {
    fn of(config: &Config) -> Self {
        Self(State::ALL.map(|state| match state {
            State::Syn | State::SynAck => config.handshake_timeout,
            State::Mid | State::Up => config.idle_timeout,
            State::ClosedFin | State::ClosedRst => config.linger,
            State::Other => config.other_timeout,
        }))
    }

    #[inline]
    const fn get(&self, state: State) -> u64 {
        self.0[state as usize]
    }
}

/// What a flow is closed with before a packet of its key, if it is (section 2 and 4.2).
#[inline]
fn ends(flow: &Flow, meta: &Meta, time: u64, timeouts: &Timeouts) -> Option<(CloseCause, SetupEnd)> {
    if time.saturating_sub(flow.last_seen) >= timeouts.get(flow.state) {
        Some(close_cause(flow.state))
    } else if begins_anew(flow, meta) {
        Some((CloseCause::Reuse, SetupEnd::Reuse))
    } else {
        None
    }
}

/// What a flow that times out in this state is closed with.
const fn close_cause(state: State) -> (CloseCause, SetupEnd) {
    let cause = match state {
        State::Syn | State::SynAck => CloseCause::Handshake,
        State::Mid | State::Up | State::Other => CloseCause::Idle,
        State::ClosedFin => CloseCause::Fin,
        State::ClosedRst => CloseCause::Rst,
    };
    (cause, SetupEnd::Timeout)
}

const fn interval_end(flow: &Flow) -> u64 {
    flow.interval + flow.span as u64 * FINE_INTERVAL
}

/// The earliest time at which a visit has something to do.
#[inline]
fn deadline(timeouts: &Timeouts, flow: &Flow, now: u64) -> u64 {
    let mut due = flow.last_seen + timeouts.get(flow.state);
    if flow.interval != 0 {
        due = due.min(interval_end(flow));
    }
    for side in &flow.sides {
        if !side.is(side::IDLE) {
            due = due.min(side.block_last.at(now) + BLOCK_IDLE);
        }
        if side.is(side::SLOT) {
            due = due.min(side.slot_time.at(now) + TIME_LIMIT);
        }
    }
    if flow.pending() {
        due = due.min(setup_begun(flow, now) + TIME_LIMIT);
    }
    due
}

/// When the pending setup began: the first SYN, or the SYN-ACK if no SYN was seen.
#[inline]
const fn setup_begun(flow: &Flow, now: u64) -> u64 {
    if flow.sides[0].chain > 0 {
        flow.sides[0].block_first.at(now)
    } else {
        flow.sides[1].slot_time.at(now)
    }
}

/// Section 4.2: whether the packet is a SYN or SYN-ACK that begins a new connection on this key.
#[inline]
fn begins_anew(flow: &Flow, meta: &Meta) -> bool {
    if meta.flags & (tcp::SYN | tcp::RST) != tcp::SYN || meta.class != Class::Tcp {
        return false;
    }
    let s = flow.sender(meta.from_low);
    if flow.sides[s].repeats(meta.seq) {
        return false;
    }
    if meta.flags & tcp::ACK != 0 {
        return matches!(flow.state, State::ClosedFin | State::ClosedRst);
    }
    let simultaneous = flow.state == State::Syn && s == 1;
    !simultaneous
}

/// A finished interval, taken before the packet that ended it.
#[derive(Clone, Copy)]
struct Ended([Option<Interval>; 2]);

impl Ended {
    fn write(&self, arg: u8, out: &mut Out<'_>) {
        for (s, interval) in self.0.iter().enumerate() {
            if let Some(interval) = interval {
                let header = out.header(direction(s), arg);
                out.records.push(interval.encode(header));
            }
        }
    }
}

#[inline]
fn end_interval(flow: &mut Flow, time: u64) -> Option<Ended> {
    (flow.interval != 0 && time >= interval_end(flow)).then(|| take_interval(flow))
}

fn take_interval(flow: &mut Flow) -> Ended {
    let mut ended = [None; 2];
    let fine = flow.is(bit::FINE);
    for (s, slot) in ended.iter_mut().enumerate() {
        let in_flight = flight(&flow.sides[s], &flow.sides[1 - s]).min((1 << width::FLIGHT_MAX) - 1);
        let side = &mut flow.sides[s];
        if std::mem::take(&mut side.active) {
            *slot = Some(Interval {
                start: flow.interval,
                packets: side.packets,
                payload: side.payload.get(),
                flight_max: side.flight_max,
                window_min: side.window_min,
                window_max: side.window_max,
                rtt_min: side.rtt_min,
                rtt_max: side.rtt_max,
                rtt_count: side.rtt_count,
                fine: u8::from(fine),
                ip_id: side.ip_id,
            });
        }
        side.flight_max = in_flight;
        side.window_min = u16::MAX;
        side.window_max = 0;
        side.rtt_min = NO_RTT;
        side.rtt_max = 0;
        side.rtt_count = 0;
    }
    flow.interval = 0;
    Ended(ended)
}

/// Write BLOCK for the sender, side `s`, if its block is open; `ttl` is 0 unless this side's packet ends it.
#[inline]
fn end_block(sender: &mut Side, receiver: &Side, s: usize, cause: BlockEnd, ttl: u8, out: &mut Out<'_>) {
    if sender.is(side::BLOCK_OPEN) {
        sender.set(side::BLOCK_OPEN, false);
        write_block(sender, receiver, s, cause, ttl, out);
    }
}

/// Both blocks end with the flow.
fn close_blocks(flow: &mut Flow, out: &mut Out<'_>) {
    for s in 0..2 {
        let (sender, receiver) = pair(&mut flow.sides, s);
        end_block(sender, receiver, s, BlockEnd::Close, 0, out);
    }
}

#[inline(never)]
fn write_block(sender: &Side, receiver: &Side, s: usize, cause: BlockEnd, ttl: u8, out: &mut Out<'_>) {
    let header = out.header(direction(s), cause as u8);
    let fin = u32::from(sender.is(side::FIN));
    let block = Block {
        first: sender.block_first.at(out.time),
        last: sender.block_last.at(out.time),
        seq: sender.block_seq,
        bytes: sender.next.wrapping_sub(sender.block_seq).wrapping_sub(fin),
        ack: sender.ack,
        flight: flight(sender, receiver),
        packets: sender.block_packets,
        max_segment: sender.block_max,
        window: receiver.window,
        ttl,
        known: known(sender, receiver),
    };
    out.records.push(block.encode(header));
}

/// BLOCK.known: the sender's ack; the receiver's window, known with its first ACK.
fn known(sender: &Side, receiver: &Side) -> u8 {
    u8::from(sender.is(side::HAS_ACK)) | u8::from(receiver.is(side::HAS_ACK)) << 1
}

fn write_setup(sides: &[Side; 2], cause: SetupEnd, end: u64, end_window: u16, out: &mut Out<'_>) {
    let [client, server] = sides;
    let mut bits = 0;
    for (on, bit) in [
        (client.chain > 0, setup_bit::SYN),
        (server.chain > 0, setup_bit::SYN_ACK),
        (cause == SetupEnd::Done, setup_bit::ACK),
        (client.is(side::SACK_OK), setup_bit::CLIENT_SACK),
        (server.is(side::SACK_OK), setup_bit::SERVER_SACK),
        (client.is(side::TIMESTAMPS), setup_bit::CLIENT_TIMESTAMPS),
        (server.is(side::TIMESTAMPS), setup_bit::SERVER_TIMESTAMPS),
        (client.is(side::ECN), setup_bit::CLIENT_ECN),
        (server.is(side::ECN), setup_bit::SERVER_ECN),
        (client.is(side::CUT), setup_bit::CLIENT_OPTIONS_CUT),
        (server.is(side::CUT), setup_bit::SERVER_OPTIONS_CUT),
        (server.is(side::RST), setup_bit::RST_BY_SERVER),
    ] {
        bits |= if on { bit } else { 0 };
    }
    let header = out.header(flag::MORE, cause as u8);
    let now = out.time;
    let seen = |count: u8, time: ShortTime| if count > 0 { time.at(now) } else { 0 };
    let setup = Setup {
        first_syn: seen(client.chain, client.block_first),
        last_syn: seen(client.chain, client.slot_time),
        syn_ack: seen(server.chain, server.slot_time),
        end,
        syn_count: client.chain,
        syn_ack_count: server.chain,
        bits,
        syn_payload: client.block_max,
        end_window,
    };
    out.records.push(setup.encode(header));
    let header = out.header(0, cause as u8);
    let scale = |side: &Side| {
        if side.scale == NO_SCALE { 255 } else { side.scale }
    };
    let known_isn = client.chain > 0 || server.chain > 0;
    let more = SetupMore {
        client_isn: if known_isn { client.block_seq.wrapping_sub(1) } else { 0 },
        server_isn: if server.chain > 0 {
            server.slot_seq.wrapping_sub(1)
        } else {
            0
        },
        client_mss: client.mss,
        server_mss: server.mss,
        client_window: client.window,
        server_window: server.window,
        client_scale: scale(client),
        server_scale: scale(server),
    };
    out.records.push(more.encode(header));
}

fn write_close(flow: &Flow, cause: CloseCause, out: &mut Out<'_>) {
    let [client, server] = &flow.sides;
    let header = out.header(flag::MORE, cause as u8);
    let close = Close {
        last: flow.last_seen,
        client_packets: client.packets,
        server_packets: server.packets,
        client_payload: client.payload.get(),
        server_payload: server.payload.get(),
        client_next: client.next,
        server_next: server.next,
    };
    out.records.push(close.encode(header));
    let mut bits = 0;
    for (i, on) in [
        client.is(side::FIN),
        server.is(side::FIN),
        client.is(side::RST),
        server.is(side::RST),
        client.is(side::FIN_ACKED),
        server.is(side::FIN_ACKED),
        client.is(side::HAS_NEXT),
        server.is(side::HAS_NEXT),
    ]
    .into_iter()
    .enumerate()
    {
        bits |= u16::from(on) << i;
    }
    let header = out.header(0, cause as u8);
    let more = CloseMore {
        client_dup_acks: client.dup_acks.into(),
        server_dup_acks: server.dup_acks.into(),
        client_zero_windows: client.zero_windows,
        server_zero_windows: server.zero_windows,
        client_small_windows: client.small_windows,
        server_small_windows: server.small_windows,
        client_copies: client.copies,
        server_copies: server.copies,
        bits,
    };
    out.records.push(more.encode(header));
}

const fn saturate_u16(value: u16, bits: u32) -> u16 {
    let max = ((1u32 << bits) - 1) as u16;
    if value >= max { max } else { value + 1 }
}

/// Payload of the packet as the 14-bit field of a block holds it.
#[inline]
fn block_max(meta: &Meta) -> u16 {
    meta.payload.min((1 << width::BLOCK_MAX) - 1) as u16
}

/// `a` after `b` in sequence space.
#[inline]
const fn after(a: u32, b: u32) -> bool {
    let d = a.wrapping_sub(b);
    d != 0 && d < 1 << 31
}

/// Hash of what a SACK option says (section 4.6); 0 without one.
const fn sack_hash(meta: &Meta) -> u16 {
    if meta.options.sack_count == 0 {
        return 0;
    }
    let (left, right) = meta.options.sack[0];
    let h = left
        ^ (left >> 12)
        ^ (left >> 24)
        ^ right.rotate_left(5)
        ^ (right >> 7)
        ^ (right >> 19)
        ^ meta.ack
        ^ (meta.ack >> 12);
    let h = (h & 0xfff) as u16;
    if h == 0 { 1 } else { h }
}

/// A round trip: the side that was timed, how, ns, and what was acknowledged.
type Timed = (usize, RttHow, u64, u32);

/// What earlier steps of section 4 tell later ones about the packet.
#[derive(Default)]
struct Step {
    what: u32,
    /// The packet is a SYN that fits nothing: its ACK is not used.
    other_syn: bool,
    new_bytes: bool,
    new_start: u32,
    /// Payload or FIN at the next expected.
    in_sequence: bool,
    rtt: Option<Timed>,
    /// First sequence number and bytes of a BLOCK of the packet alone.
    alone: Option<(u32, u32)>,
    /// What ends the sender's block.
    end: Option<BlockEnd>,
}

/// The sender as it was before the packet, as far as EVENT tells of it.
struct Before {
    next: u32,
    block_last: ShortTime,
    ip_id: u16,
    flags: u16,
}

impl Before {
    #[inline]
    const fn of(sender: &Side) -> Self {
        Self {
            next: sender.next,
            block_last: sender.block_last,
            ip_id: sender.ip_id,
            flags: sender.flags,
        }
    }

    #[inline]
    const fn idle(&self) -> bool {
        self.flags & side::IDLE != 0
    }

    /// By how much the packet's id is above the newest; 0 if there is none.
    #[inline]
    const fn id_step(&self, meta: &Meta) -> u16 {
        if meta.ip_id == 0 || self.ip_id == 0 {
            0
        } else {
            meta.ip_id.wrapping_sub(self.ip_id)
        }
    }

    fn since_data(&self, time: u64) -> u32 {
        if self.idle() {
            u32::MAX
        } else {
            u32::try_from((self.block_last.age(time)) >> 6).unwrap_or(u32::MAX)
        }
    }
}

/// Whether the packet was made before the one with the newest id (4.5).
const fn is_overtaken(id_step: u16) -> bool {
    let back = id_step.wrapping_neg();
    back >= 1 && back <= MOST_OVERTAKEN
}

/// `id_step` as EVENT has it (4.10).
fn told(id_step: u16) -> u8 {
    let step = u8::try_from(id_step)
        .ok()
        .filter(|step| *step < IdStep::Overtaken as u8);
    let other = if is_overtaken(id_step) {
        IdStep::Overtaken
    } else {
        IdStep::Far
    };
    step.unwrap_or(other as u8)
}

/// Section 4: everything one packet does to its flow. Whether it brought new bytes.
#[inline]
fn update(flow: &mut Flow, meta: &Meta, time: u64, digests: bool, out: &mut Out<'_>) -> bool {
    let s = flow.sender(meta.from_low);
    let ended = end_interval(flow, time);
    if flow.interval == 0 {
        begin_interval(flow, time);
    }
    flow.sides[s].active = true;

    let new_bytes = meta.class == Class::Tcp && tcp_packet(flow, s, meta, time, out);

    // 4.10
    let sender = &mut flow.sides[s];
    sender.packets = sender.packets.wrapping_add(1);
    sender.payload = Low40::new((sender.payload.get() + u64::from(meta.payload)) & ((1 << width::PAYLOAD) - 1));
    flow.last_seen = time;
    const FINISHED: u16 = side::FIN | side::FIN_ACKED;
    if flow.sides[0].flags & flow.sides[1].flags & FINISHED == FINISHED && matches!(flow.state, State::Up | State::Mid)
    {
        flow.state = State::ClosedFin;
    }

    if let Some(ended) = ended {
        ended.write(1, out);
    }
    if digests {
        write_packet(s, meta, out);
    }
    new_bytes
}

fn begin_interval(flow: &mut Flow, time: u64) {
    let fine = flow.is(bit::TROUBLE);
    let unit = time / FINE_INTERVAL;
    flow.set(bit::FINE, fine);
    flow.set(bit::TROUBLE, false);
    // Never 0, which stands for no interval: UTC 1970 is TAI 10 s.
    flow.interval = unit * FINE_INTERVAL;
    flow.span = if fine {
        1
    } else {
        (NORMAL_SPAN - unit % NORMAL_SPAN) as u8
    };
}

#[inline(never)]
fn tcp_packet(flow: &mut Flow, s: usize, meta: &Meta, time: u64, out: &mut Out<'_>) -> bool {
    let is_set_up = !flow.pending();
    let (sender, receiver) = pair(&mut flow.sides, s);
    let before = Before::of(sender);
    let id_step = before.id_step(meta);
    let is_copy = is_copy(sender, meta);
    let is_overtaken = is_overtaken(id_step);
    if !is_overtaken {
        sender.ip_id = meta.ip_id;
    }
    if is_set_up && meta.flags & (tcp::SYN | tcp::RST) == 0 {
        let step = segment(sender, receiver, s, meta, time, is_copy);
        tell(flow, s, meta, &before, false, step, out)
    } else {
        control(flow, s, meta, &before, is_copy, out)
    }
}

/// Section 6: EVENT, RTT, BLOCK. Whether the packet brought new bytes.
#[inline(always)]
fn tell(
    flow: &mut Flow,
    s: usize,
    meta: &Meta,
    before: &Before,
    was_pending: bool,
    mut step: Step,
    out: &mut Out<'_>,
) -> bool {
    let skipped = (2..=MOST_IDS_SKIPPED).contains(&before.id_step(meta));
    if skipped && step.in_sequence && before.since_data(out.time) >= LEAST_PAUSE {
        step.what |= what::IDS_SKIPPED;
    }
    if step.what & !BESIDE != 0 {
        conditions(flow, s, meta, before, was_pending, step.what, out);
    }
    if let Some(timed) = step.rtt {
        write_rtt(&flow.sides, timed, meta, out);
    }
    let (sender, receiver) = pair(&mut flow.sides, s);
    if step.new_bytes {
        end_block(receiver, sender, 1 - s, BlockEnd::Turn, 0, out);
    }
    if let Some(alone) = step.alone {
        write_block_of_one(sender, receiver, s, meta, alone, out);
    }
    if let Some(cause) = step.end {
        end_block(sender, receiver, s, cause, meta.ttl, out);
    }
    step.new_bytes
}

/// A packet of a connection that is set up, neither SYN nor RST.
#[inline]
fn segment(sender: &mut Side, receiver: &mut Side, s: usize, meta: &Meta, time: u64, is_copy: bool) -> Step {
    let mut step = order(sender, receiver.is(side::ZERO), meta, is_copy);
    if meta.flags & tcp::ACK != 0 {
        acknowledge(sender, receiver, s, meta, time, false, &mut step);
    }
    // Windows and data change state now; their BLOCK records come after EVENT and RTT.
    if !is_copy {
        window_conditions(sender, meta, &mut step);
    }
    step.end = data(sender, receiver, meta, time, false, false, &mut step);
    step
}

/// A packet with SYN or RST, or while the setup is pending: SETUP is its first record.
#[inline(never)]
fn control(flow: &mut Flow, s: usize, meta: &Meta, before: &Before, is_copy: bool, out: &mut Out<'_>) -> bool {
    let was_pending = flow.pending();
    if meta.flags & tcp::RST != 0 {
        let bits = reset(flow, s, meta, out);
        conditions(flow, s, meta, before, was_pending, bits, out);
        if bits & what::WILD == 0 {
            close_blocks(flow, out);
        }
        return false;
    }
    let time = out.time;
    let is_syn = meta.flags & tcp::SYN != 0;
    let mut step = if is_syn {
        syn(flow, s, meta, time, is_copy)
    } else {
        let (sender, receiver) = pair(&mut flow.sides, s);
        order(sender, receiver.is(side::ZERO), meta, is_copy)
    };
    let (sender, receiver) = pair(&mut flow.sides, s);
    if meta.flags & tcp::ACK != 0 && !step.other_syn {
        if was_pending && s == 1 && !acks_this_setup(receiver, meta.ack) {
            step.what |= what::WILD_ACK; // a challenge ACK of an earlier connection (RFC 9293 3.5.1)
        } else {
            acknowledge(sender, receiver, s, meta, time, was_pending, &mut step);
        }
    }
    if !is_syn {
        if let Some(timed) = setup_end(flow, s, meta, out) {
            step.rtt = Some(timed);
        }
        let pending = flow.pending();
        let (sender, receiver) = pair(&mut flow.sides, s);
        if !pending && !is_copy {
            window_conditions(sender, meta, &mut step);
        }
        // Data of the client without an ACK: its block fields still hold the setup.
        let own_block = pending && s == 0 && step.new_bytes;
        step.end = data(sender, receiver, meta, time, pending, own_block, &mut step);
        if own_block {
            let bytes = sender.next.wrapping_sub(step.new_start);
            step.alone = Some((step.new_start, bytes));
        }
    }
    tell(flow, s, meta, before, was_pending, step, out)
}

/// What the packet's conditions change beside what they are, and EVENT.
#[inline(never)]
fn conditions(
    flow: &mut Flow,
    s: usize,
    meta: &Meta,
    before: &Before,
    pending: bool,
    mut bits: u32,
    out: &mut Out<'_>,
) {
    if bits & what::COPY != 0 {
        flow.sides[s].copies = saturate_u16(flow.sides[s].copies, width::COPIES);
    }
    // Keep-alives and probes are no trouble.
    let harmless = bits & TROUBLE == what::BELOW && bits & what::PARTIAL == 0 && meta.payload <= 1;
    if bits & TROUBLE != 0 && !harmless {
        flow.set(bit::TROUBLE, true);
    }
    // A packet changes nothing of its receiver that EVENT tells of.
    let receiver = &flow.sides[1 - s];
    for (on, bit) in [
        (meta.flags & tcp::PSH != 0, what::PUSH),
        (before.idle(), what::IDLE_BEFORE),
        (before.flags & side::HAS_NEXT == 0, what::EXPECTED_UNKNOWN),
        (!receiver.is(side::HAS_ACK), what::ACKED_UNKNOWN),
    ] {
        bits |= if on { bit } else { 0 };
    }
    let dup_acks = if pending { 0 } else { receiver.chain };
    write_event(s, meta, before, receiver, dup_acks, bits, out);
}

#[inline(never)]
fn write_rtt(sides: &[Side; 2], (timed, how, value, seq_end): Timed, meta: &Meta, out: &mut Out<'_>) {
    let header = out.header(direction(timed), how as u8);
    let rtt = Rtt {
        rtt: value,
        seq_end,
        ack: meta.ack,
        flight: flight(&sides[timed], &sides[1 - timed]),
        window: meta.window,
    };
    out.records.push(rtt.encode(header));
}

/// BLOCK of one packet, which leaves none open.
#[cold]
fn write_block_of_one(
    sender: &Side,
    receiver: &Side,
    s: usize,
    meta: &Meta,
    (seq, bytes): (u32, u32),
    out: &mut Out<'_>,
) {
    let header = out.header(direction(s), BlockEnd::Push as u8);
    let block = Block {
        first: out.time,
        last: out.time,
        seq,
        bytes,
        ack: sender.ack,
        flight: flight(sender, receiver),
        packets: 1,
        max_segment: block_max(meta),
        window: receiver.window,
        ttl: meta.ttl,
        known: known(sender, receiver),
    };
    out.records.push(block.encode(header));
}

/// Section 4.4.
#[inline(never)]
fn syn(flow: &mut Flow, s: usize, meta: &Meta, time: u64, copy: bool) -> Step {
    let r = 1 - s;
    let mut step = Step {
        what: if copy { what::COPY } else { 0 },
        ..Step::default()
    };
    let end = segment_end(meta);
    let is_ack = meta.flags & tcp::ACK != 0;
    let state = flow.state;
    let repeats = flow.sides[s].repeats(meta.seq);
    let no_reply_yet = flow.sides[1].chain == 0;
    let answers = acks_this_setup(&flow.sides[0], meta.ack);
    let pending = flow.pending();
    let sender = &mut flow.sides[s];
    let mut repeated = false;
    if !is_ack && s == 0 && matches!(state, State::Syn | State::SynAck) {
        if sender.chain == 0 {
            take_options(sender, meta, pending);
            sender.set(side::ECN, meta.flags & (tcp::ECE | tcp::CWR) == tcp::ECE | tcp::CWR);
            sender.next = end;
            sender.set(side::HAS_NEXT, true);
            sender.block_first = ShortTime::new(time);
            sender.slot_time = ShortTime::new(time);
            sender.block_seq = meta.seq.wrapping_add(1);
            sender.block_max = block_max(meta);
        } else {
            step.what |= what::SYN_REPEAT;
            repeated = true;
            if no_reply_yet && !copy {
                sender.slot_time = ShortTime::new(time);
            }
        }
        sender.window = meta.window;
        if !copy {
            sender.chain = (sender.chain + 1).min(CHAIN_MAX);
        }
    } else if is_ack && s == 1 && matches!(state, State::Syn | State::SynAck) && sender.chain == 0 && answers {
        take_options(sender, meta, pending);
        sender.set(side::ECN, meta.flags & (tcp::ECE | tcp::CWR) == tcp::ECE);
        sender.next = end;
        sender.set(side::HAS_NEXT, true);
        sender.slot_time = ShortTime::new(time);
        sender.slot_seq = meta.seq.wrapping_add(1);
        sender.chain = 1;
        sender.window = meta.window;
        flow.state = State::SynAck;
        let receiver = &mut flow.sides[r];
        if !receiver.is(side::HAS_NEXT) {
            receiver.next = meta.ack;
            receiver.block_seq = meta.ack;
            receiver.set(side::HAS_NEXT, true);
        }
        if receiver.chain == 1 {
            let value = receiver.slot_time.age(time);
            if value < TIME_LIMIT {
                receiver.sample(value);
                step.rtt = Some((r, RttHow::Handshake, value, meta.ack));
            }
        }
    } else if is_ack
        && s == 1
        && state == State::SynAck
        && sender.chain > 0
        && sender.slot_seq == meta.seq.wrapping_add(1)
    {
        step.what |= what::SYN_ACK_REPEAT;
        repeated = true;
        if !copy {
            sender.chain = (sender.chain + 1).min(CHAIN_MAX);
        }
        sender.window = meta.window;
    } else if repeats && !matches!(state, State::Syn | State::SynAck) {
        step.what |= if is_ack { what::SYN_ACK_REPEAT } else { what::SYN_REPEAT };
        repeated = true;
    } else {
        step.what |= what::SYN_OTHER;
        step.other_syn = true;
        if !sender.is(side::HAS_NEXT) {
            take_options(sender, meta, pending);
            sender.scale = NO_SCALE; // whether scaling is in effect is not known
            sender.next = end;
            sender.set(side::HAS_NEXT, true);
        }
    }
    if meta.payload > 0 {
        step.what |= what::SYN_DATA;
        if !repeated && !step.other_syn {
            step.alone = Some((meta.seq.wrapping_add(1), meta.payload));
        }
    }
    step
}

/// Whether an ack of the server can answer the SYN of the pending setup.
#[inline]
fn acks_this_setup(client: &Side, ack: u32) -> bool {
    let isn = client.block_seq.wrapping_sub(1);
    client.chain == 0 || (after(ack, isn) && !after(ack, client.next))
}

fn take_options(sender: &mut Side, meta: &Meta, pending: bool) {
    sender.mss = meta.options.mss;
    sender.scale = if meta.options.scale == 255 {
        NO_SCALE
    } else {
        meta.options.scale.min(14)
    };
    sender.set(side::SACK_OK, meta.options.sack_permitted);
    sender.set(side::TIMESTAMPS, meta.options.timestamps.is_some());
    if pending {
        sender.set(side::CUT, meta.options.incomplete); // afterwards the bit is WILD_ACK
    }
}

/// Sequence number after the segment.
#[inline]
fn segment_end(meta: &Meta) -> u32 {
    let controls = u32::from(meta.flags & tcp::SYN != 0) + u32::from(meta.flags & tcp::FIN != 0);
    meta.seq.wrapping_add(meta.payload).wrapping_add(controls)
}

/// Section 4.5.
#[inline(always)]
fn order(sender: &mut Side, peer_is_zero: bool, meta: &Meta, is_copy: bool) -> Step {
    let mut step = Step {
        what: if is_copy { what::COPY } else { 0 },
        ..Step::default()
    };
    let fin = meta.flags & tcp::FIN != 0;
    let end = segment_end(meta);
    let mut used = true;
    if meta.payload > 0 || fin {
        let d = if sender.is(side::HAS_NEXT) {
            meta.seq.wrapping_sub(sender.next) as i32
        } else {
            0
        };
        step.new_start = meta.seq;
        if d.unsigned_abs() >= 1 << 30 {
            step.what |= what::WILD;
            used = sender.is(side::WILD);
            sender.set(side::WILD, !used);
            if used {
                step.what |= what::RESYNC;
                sender.next = end;
                step.new_bytes = meta.payload > 0;
            }
        } else {
            sender.set(side::WILD, false);
            if meta.payload == 1 && !fin && peer_is_zero && (d == 0 || d == -1) {
                step.what |= what::PROBE;
            }
            if d < 0 {
                step.what |= what::BELOW;
                if after(end, sender.next) {
                    step.what |= what::PARTIAL;
                    step.new_start = sender.next;
                    // New bytes only if payload, not just the FIN, reaches beyond.
                    step.new_bytes = after(meta.seq.wrapping_add(meta.payload), sender.next);
                    sender.next = end;
                }
            } else {
                step.in_sequence = d == 0 && sender.is(side::HAS_NEXT);
                if d > 0 {
                    step.what |= what::GAP;
                    // The missing bytes belong to the block that comes, if none is open.
                    step.new_start = sender.next;
                }
                sender.next = end;
                sender.set(side::HAS_NEXT, true);
                step.new_bytes = meta.payload > 0;
            }
        }
    } else if !sender.is(side::HAS_NEXT) {
        sender.next = meta.seq;
        sender.set(side::HAS_NEXT, true);
    } else if meta.seq == sender.next.wrapping_sub(1) {
        step.what |= if peer_is_zero {
            what::BELOW | what::PROBE
        } else {
            what::BELOW
        };
    }
    if fin {
        if sender.is(side::FIN) {
            step.what |= what::FIN_REPEAT;
        } else {
            step.what |= what::FIN;
            sender.set(side::FIN, used);
        }
    }
    step
}

/// COPY of section 4.5, against the sender's state before the packet.
#[inline]
fn is_copy(before: &Side, meta: &Meta) -> bool {
    if meta.ip_id == 0 || before.ip_id != meta.ip_id || meta.flags & tcp::RST != 0 {
        return false;
    }
    let occupies = meta.payload > 0 || meta.flags & (tcp::FIN | tcp::SYN) != 0;
    if occupies {
        before.is(side::HAS_NEXT) && segment_end(meta) == before.next
    } else {
        before.is(side::HAS_ACK) && meta.ack == before.ack && sack_hash(meta) == before.sack_hash
    }
}

/// Section 4.6.
#[inline(always)]
fn acknowledge(
    sender: &mut Side,
    receiver: &mut Side,
    s: usize,
    meta: &Meta,
    time: u64,
    pending: bool,
    step: &mut Step,
) {
    let una = sender.ack;
    let had_ack = sender.is(side::HAS_ACK);
    let advance = meta.ack.wrapping_sub(una) as i32;
    if !had_ack {
        sender.ack = meta.ack;
        sender.set(side::HAS_ACK, true);
    } else if advance.unsigned_abs() >= 1 << 30 {
        step.what |= what::WILD_ACK;
        if pending {
            return;
        }
        let again = sender.is(side::WILD_ACK);
        sender.set(side::WILD_ACK, !again);
        if !again {
            return;
        }
        step.what |= what::RESYNC;
        sender.ack = meta.ack;
        sender.chain = 0;
    } else {
        if !pending {
            sender.set(side::WILD_ACK, false);
        }
        if advance > 0 {
            sender.ack = meta.ack;
            if !pending {
                sender.chain = 0;
            }
        }
    }
    if !had_ack || sender.ack != una {
        step.what |= what::ACKS_MORE;
    }
    if receiver.is(side::HAS_NEXT) && after(meta.ack, receiver.next) && !(had_ack && after(una, receiver.next)) {
        step.what |= what::ACK_UNSEEN;
    }

    let hash = sack_hash(meta);
    let new_sack = hash != 0 && hash != sender.sack_hash;
    let pure = meta.payload == 0 && meta.flags & (tcp::SYN | tcp::FIN) == 0;
    if pure
        && had_ack
        && meta.ack == una
        && receiver.is(side::HAS_NEXT)
        && after(receiver.next, una)
        && step.what & what::COPY == 0
        && (meta.window == sender.window && meta.window != 0 || new_sack)
    {
        sender.dup_acks = saturate_u16(sender.dup_acks, width::DUP_ACKS);
        if !pending && sender.chain < CHAIN_MAX {
            sender.chain += 1;
            if sender.chain == 3 {
                step.what |= what::DUP_ACK;
            }
        }
    }
    if new_sack {
        step.what |= what::SACK;
        let [first, second, ..] = meta.options.sack;
        let inside_second = meta.options.sack_count > 1 && !after(second.0, first.0) && !after(first.1, second.1);
        if !after(first.1, meta.ack) || inside_second {
            step.what |= what::DSACK;
        }
    }
    sender.sack_hash = hash;
    receiver.set(side::FIN_ACKED, receiver.is(side::FIN) && sender.ack == receiver.next);

    if receiver.is(side::SLOT) && !pending && !after(receiver.slot_seq, meta.ack) {
        receiver.set(side::SLOT, false);
        let value = receiver.slot_time.age(time);
        if value < TIME_LIMIT {
            receiver.sample(value);
            let gate = (time >> 20) as u8;
            if gate != receiver.rtt_gate {
                receiver.rtt_gate = gate;
                step.rtt = Some((1 - s, RttHow::Data, value, receiver.slot_seq));
            }
        }
    }
}

/// Section 4.9: what the RST is; a pending setup ends.
#[cold]
fn reset(flow: &mut Flow, s: usize, meta: &Meta, out: &mut Out<'_>) -> u32 {
    let sender = &mut flow.sides[s];
    let distance = meta.seq.wrapping_sub(sender.next) as i32;
    if sender.is(side::HAS_NEXT) && distance.unsigned_abs() >= 1 << 16 {
        return what::RST | what::WILD; // no receiver would take it (RFC 9293 3.5.2, RFC 5961 3.2)
    }
    sender.set(side::RST, true);
    if flow.pending() {
        write_setup(&flow.sides, SetupEnd::Reset, out.time, meta.window, out);
        leave_setup(flow, State::ClosedRst);
    }
    flow.state = State::ClosedRst;
    what::RST
}

/// The setup is over: its fields go back to what they are for; window scaling is in effect or not
/// (RFC 7323 2.2).
fn leave_setup(flow: &mut Flow, state: State) {
    let [client, server] = &mut flow.sides;
    let (syn, syn_ack) = (client.chain > 0, server.chain > 0);
    if syn && client.scale == NO_SCALE || syn_ack && server.scale == NO_SCALE {
        client.scale = 0;
        server.scale = 0;
    } else if !syn_ack {
        client.scale = NO_SCALE;
        server.scale = NO_SCALE;
    }
    for side in [client, server] {
        side.chain = 0;
        side.set(side::SLOT | side::WILD_ACK, false);
    }
    flow.state = state;
}

/// Section 4.7: the packet ends the setup that is pending, if it does; the RTT of the SYN-ACK.
#[inline(never)]
fn setup_end(flow: &mut Flow, s: usize, meta: &Meta, out: &mut Out<'_>) -> Option<Timed> {
    if meta.flags & tcp::ACK == 0 {
        return None;
    }
    let time = out.time;
    let mut timed = None;
    if s == 0 {
        // SETUP tells of the sides as they were before.
        write_setup(&flow.sides, SetupEnd::Done, time, meta.window, out);
        let server = &mut flow.sides[1];
        if flow.state == State::SynAck && server.chain == 1 {
            let value = server.slot_time.age(time);
            if value < TIME_LIMIT {
                server.sample(value);
                timed = Some((1, RttHow::Handshake, value, server.slot_seq));
            }
        }
        leave_setup(flow, State::Up);
    } else {
        let [client, server] = &flow.sides;
        let unseen = client.is(side::HAS_NEXT) && after(meta.ack, client.next);
        if flow.state == State::SynAck && (unseen || server.slot_time.age(time) >= ONE_SIDED_AFTER) {
            write_setup(&flow.sides, SetupEnd::OneSided, 0, meta.window, out);
            leave_setup(flow, State::Up);
        }
    }
    timed
}

/// Window of `side` in bytes, if known (section 4.8).
#[inline]
fn window_bytes(side: &Side) -> Option<u32> {
    (side.scale != NO_SCALE).then(|| u32::from(side.window) << side.scale)
}

/// Section 4.8, first part.
#[inline(always)]
fn window_conditions(sender: &mut Side, meta: &Meta, step: &mut Step) {
    sender.window = meta.window;
    let mss = if sender.mss == 0 {
        DEFAULT_MSS
    } else {
        u32::from(sender.mss)
    };
    let small = window_bytes(sender).is_some_and(|w| w > 0 && w < mss);
    if meta.window == 0 {
        sender.zero_windows = saturate_u16(sender.zero_windows, width::ZERO_WINDOWS);
        if !sender.is(side::ZERO) {
            step.what |= what::ZERO_WINDOW;
        }
        sender.set(side::ZERO, true);
        sender.set(side::SMALL, false);
    } else if small {
        sender.small_windows = saturate_u16(sender.small_windows, width::SMALL_WINDOWS);
        if !sender.is(side::SMALL) {
            step.what |= what::SMALL_WINDOW;
        }
        sender.set(side::ZERO, false);
        sender.set(side::SMALL, true);
    } else {
        if sender.is(side::ZERO | side::SMALL) {
            step.what |= what::WINDOW_OPEN;
        }
        sender.set(side::ZERO | side::SMALL, false);
    }
    sender.window_min = sender.window_min.min(meta.window);
    sender.window_max = sender.window_max.max(meta.window);
}

/// Section 4.8, second part: blocks, window full, the RTT slot, flight. Returns what ends the
/// sender's block.
#[inline(always)]
fn data(
    sender: &mut Side,
    receiver: &Side,
    meta: &Meta,
    time: u64,
    pending: bool,
    own_block: bool,
    step: &mut Step,
) -> Option<BlockEnd> {
    let fin = meta.flags & tcp::FIN != 0;
    let push = meta.flags & tcp::PSH != 0;
    if meta.payload > 0 {
        if step.what & (what::BELOW | what::COPY) == what::BELOW {
            sender.set(side::SLOT, false);
        }
        sender.block_last = ShortTime::new(time);
        sender.set(side::IDLE, false);
    }
    if step.new_bytes && !own_block {
        if !sender.is(side::BLOCK_OPEN) {
            sender.set(side::BLOCK_OPEN, true);
            sender.block_first = ShortTime::new(time);
            sender.block_seq = step.new_start;
            sender.block_packets = 0;
            sender.block_max = 0;
        }
        sender.block_packets += 1; // LIMIT ends the block before it can overflow
        sender.block_max = sender.block_max.max(block_max(meta));
        if !sender.is(side::SLOT) && step.what & (what::GAP | what::PROBE | what::BELOW) == 0 && !pending {
            sender.set(side::SLOT, true);
            sender.slot_seq = meta.seq.wrapping_add(meta.payload);
            sender.slot_time = ShortTime::new(time);
        }
    }
    let mut block_end = None;
    if sender.is(side::BLOCK_OPEN) {
        let closes = step.new_bytes
            || fin && step.what & what::FIN != 0
            || step.what & (what::BELOW | what::PARTIAL) == what::BELOW && segment_end(meta) == sender.next;
        block_end = if fin && closes {
            Some(BlockEnd::Fin)
        } else if push && closes {
            Some(BlockEnd::Push)
        } else if sender.block_packets == u16::MAX
            || sender.next.wrapping_sub(sender.block_seq) >= 1 << 31
            || sender.block_first.age(time) >= TIME_LIMIT
        {
            Some(BlockEnd::Limit)
        } else {
            None
        };
    }
    let in_flight = flight(sender, receiver);
    match window_bytes(receiver) {
        Some(window) if !pending && window > 0 && in_flight.saturating_add(meta.payload) > window => {
            if step.new_bytes && !sender.is(side::FULL) {
                step.what |= what::WINDOW_FULL;
                sender.set(side::FULL, true);
            }
        }
        _ => sender.set(side::FULL, false),
    }
    sender.flight_max = sender.flight_max.max(in_flight.min((1 << width::FLIGHT_MAX) - 1));
    block_end
}

fn write_event(s: usize, meta: &Meta, before: &Before, receiver: &Side, dup_acks: u8, bits: u32, out: &mut Out<'_>) {
    // What an unseen ack speaks of is the other direction.
    let unseen = bits & what::ACK_UNSEEN != 0 && bits & (what::GAP | what::BELOW | what::WILD) == 0;
    let syn = bits & (what::SYN_REPEAT | what::SYN_ACK_REPEAT | what::SYN_OTHER) != 0;
    let more = syn || bits & what::SACK != 0;
    let header = out.header(direction(s) | if more { flag::MORE } else { 0 }, 0);
    let event = Event {
        what: bits,
        seq: meta.seq,
        length: meta.payload,
        expected: if unseen { receiver.next } else { before.next },
        acked: receiver.ack,
        ack: meta.ack,
        tsval: meta.options.timestamps.map_or(0, |(value, _)| value),
        since_data: before.since_data(out.time),
        window: meta.window,
        ip_id: meta.ip_id,
        dup_acks,
        id_step: told(before.id_step(meta)),
        ttl: meta.ttl,
        tcp_flags: meta.flags,
    };
    out.records.push(event.encode(header));
    if more {
        let header = out.header(direction(s), 0);
        let [a, b, c, d] = meta.options.sack;
        let more = EventMore {
            left0: a.0,
            right0: a.1,
            left1: b.0,
            right1: b.1,
            left2: c.0,
            right2: c.1,
            left3: d.0,
            right3: d.1,
            sack_count: meta.options.sack_count,
            scale: meta.options.scale,
            mss: meta.options.mss,
            sack_permitted: u8::from(meta.options.sack_permitted),
            timestamps: u8::from(meta.options.timestamps.is_some()),
        };
        out.records.push(more.encode(header));
    }
}

fn write_packet(s: usize, meta: &Meta, out: &mut Out<'_>) {
    let sack = meta.options.sack_count > 0;
    let header = out.header(direction(s) | if sack { flag::MORE } else { 0 }, 0);
    let (tsval, tsecr) = meta.options.timestamps.unwrap_or_default();
    let packet = Packet {
        number: meta.number,
        seq: meta.seq,
        ack: meta.ack,
        length: meta.payload,
        tsval,
        tsecr,
        wire: meta.wire.min(u32::from(u16::MAX)) as u16,
        window: meta.window,
        ip_id: meta.ip_id,
        ttl: meta.ttl,
        tos: meta.tos,
        tcp_flags: meta.flags,
        port: meta.port,
        option_bits: u8::from(meta.options.timestamps.is_some())
            | u8::from(sack) << 1
            | u8::from(meta.options.incomplete) << 2,
    };
    out.records.push(packet.encode(header));
    if sack {
        let header = out.header(direction(s), 0);
        let [a, b, c, d] = meta.options.sack;
        let more = PacketMore {
            left0: a.0,
            right0: a.1,
            left1: b.0,
            right1: b.1,
            left2: c.0,
            right2: c.1,
            left3: d.0,
            right3: d.1,
            sack_count: meta.options.sack_count,
        };
        out.records.push(more.encode(header));
    }
}
