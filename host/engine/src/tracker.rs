//! Metadata words to records: sections 1 to 6 of the specification. Section numbers in comments
//! are those of `docs/src/flow-engine.md`.

mod acknowledge;
mod arithmetic;
mod before;
mod data;
mod flows;
mod interval;
mod order;
mod out;
mod packet;
mod records;
mod setup;
mod timeouts;

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use weir_record::{
    BlockEnd, ClientHow, CloseCause, Event, FlowId, Open, OpenMore, Port, PortMore, Record, SetupEnd, Untracked, flag,
    tcp_flag, what,
};

use crate::config::{Config, SECOND};
use crate::flow::{Flow, NO_VISIT, PlainKey, Slot, State, StoredKey, TIME_LIMIT, V4_PREFIX, bit, pair, side};
use crate::meta::{Class, Key, Meta};
use crate::servers::Servers;
use crate::table::Table;
use crate::visits::{Calendar, has_rested, visit_at, visit_time};

use flows::Flows;
use interval::{end_interval, interval_end, take_interval};
use out::{Out, direction};
use packet::update;
use records::{close_blocks, end_block, write_close, write_setup};
use setup::leave_setup;
use timeouts::{BLOCK_IDLE, Timeouts, close_cause, deadline, ends, setup_begun};

/// Times beyond this are taken for this (the year 2262), so that sums of times do not overflow.
const MAX_TIME: u64 = 1 << 63;
/// Ports that PORT counts.
const PORTS: usize = 16;

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
    servers: Servers,
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

impl Engine {
    /// An engine without flows.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            servers: Servers::default(),
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

    /// The same, with ends that are known for servers.
    #[must_use]
    pub fn with_servers(self, servers: Servers) -> Self {
        Self { servers, ..self }
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
                end_block(sender, receiver, s, BlockEnd::Idle, (0, false), &mut out);
                sender.set(side::IDLE, true);
            }
            if sender.slot_time.age(time) >= TIME_LIMIT {
                sender.slot = Slot::Free;
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
        let is_syn = meta.class == Class::Tcp && meta.flags & (tcp_flag::SYN | tcp_flag::RST) == tcp_flag::SYN;
        let (how, state, sender_is_client) = if is_syn && meta.flags & tcp_flag::ACK == 0 {
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
                (&key.low, &key.high)
            } else {
                (&key.high, &key.low)
            };
            let is_server = match meta.class {
                Class::Tcp => self.servers.is_source(source, destination),
                _ => None,
            };
            if let Some(is_server) = is_server {
                (ClientHow::Server, state, !is_server)
            } else if source.port == destination.port || !matches!(key.protocol, 6 | 17) {
                (ClientHow::First, state, true)
            } else {
                (ClientHow::Port, state, source.port > destination.port)
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
            Some(&(index, at)) if has_rested(at, time) => {
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
