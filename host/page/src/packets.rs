//! Packets of all connections in memory: 40 bytes each, what few of them have in lists of its own.

use std::collections::HashMap;
use std::ops::Range;

use weir_align::Elsewhere;
use weir_analysis::{Class, Verdict};
use weir_record::time::utc_from_tai;
use weir_record::{
    Block, Event, Kind as RecordKind, Open, PROTOCOL_TCP, Packet as Digest, PacketMore, Record, tcp_flag, what,
};

/// No packet, no connection.
pub const NONE: u32 = u32::MAX;
/// Data packets of a direction that a block may turn out to end with.
const RECENT: usize = 4;
/// Earlier packets that are looked at for the bytes of a retransmission.
const LOOK_BACK: usize = 8;

/// What a packet is drawn as: the first that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    Rst,
    Syn,
    Fin,
    Retransmission,
    OutOfOrder,
    Copy,
    Data,
    Dsack,
    Sack,
    ZeroWindow,
    Ack,
}

/// Names by number.
pub const KINDS: [&str; 11] = [
    "RST",
    "SYN",
    "FIN",
    "RETRANSMISSION",
    "OUT_OF_ORDER",
    "COPY",
    "DATA",
    "DSACK",
    "SACK",
    "ZERO_WINDOW",
    "ACK",
];

/// A packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// ns; since the start of the capture once all are there.
    pub time: u64,
    /// Its connection, by the order in which they were opened.
    pub flow: u32,
    /// Of the frame in its source, from 1.
    pub number: u32,
    pub seq: u32,
    pub ack: u32,
    /// Payload.
    pub length: u32,
    /// Raw.
    pub window: u16,
    /// Bytes of the frame.
    pub wire: u16,
    pub ip_id: u16,
    pub ttl: u8,
    pub flags: u8,
    pub kind: Kind,
    /// The server sent it.
    pub server: bool,
}

impl Packet {
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Sequence numbers that it takes.
    pub fn room(&self) -> u32 {
        self.length + u32::from(self.has(tcp_flag::SYN)) + u32::from(self.has(tcp_flag::FIN))
    }

    pub fn side(&self) -> usize {
        usize::from(self.server)
    }

    /// Of a packet that only another tap has; `time`: ns since the start of the capture.
    pub fn elsewhere(packet: &Elsewhere, time: u64) -> Self {
        let mut out = Self {
            time,
            flow: NONE,
            number: packet.number,
            seq: packet.seq,
            ack: packet.ack,
            length: packet.length,
            window: packet.window,
            wire: packet.wire,
            ip_id: packet.ip_id,
            ttl: packet.ttl,
            flags: packet.flags,
            kind: Kind::Ack,
            server: packet.from_server,
        };
        out.kind = match out.marked_kind() {
            Some(kind) => kind,
            None if out.length > 0 => Kind::Data,
            None if out.window == 0 => Kind::ZeroWindow,
            None => Kind::Ack,
        };
        out
    }

    /// What its flags alone make it.
    fn marked_kind(&self) -> Option<Kind> {
        let kinds = [
            (tcp_flag::RST, Kind::Rst),
            (tcp_flag::SYN, Kind::Syn),
            (tcp_flag::FIN, Kind::Fin),
        ];
        kinds
            .into_iter()
            .find(|(flag, _)| self.has(*flag))
            .map(|(_, kind)| kind)
    }
}

/// Which packets are kept of more than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    First,
    Last,
}

/// Packets as they come.
#[derive(Clone, Debug)]
pub struct Gather {
    most: usize,
    keep: Keep,
    pub dropped: u64,
    flows: HashMap<u64, u32>,
    ids: Vec<u64>,
    open: Vec<Pending>,
    packets: Vec<Packet>,
    sacks: Vec<(u32, PacketMore)>,
    notes: Vec<(u32, u32)>,
    blocks: Vec<(u32, u32)>,
}

/// What a connection's next packet will need.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Block of each direction that ended with a packet to come: where, and its bytes.
    ended: [Option<(u32, u32)>; 2],
    /// Last data packets.
    recent: [[u32; RECENT]; 2],
    /// Conditions.
    note: u32,
    /// Its newest packet is kept: continuations belong to it.
    kept: bool,
    /// Nothing comes any more.
    closed: bool,
}

/// Conditions that say nothing to a reader.
const DULL: u32 = what::PUSH | what::IDLE_BEFORE | what::FIN | what::RST;

impl Gather {
    /// At most so many packets: the first.
    pub fn first_of(most: usize) -> Self {
        Self::new(most, Keep::First)
    }

    /// At most so many packets and a quarter: the last.
    pub fn last_of(most: usize) -> Self {
        Self::new(most, Keep::Last)
    }

    fn new(most: usize, keep: Keep) -> Self {
        Self {
            most,
            keep,
            dropped: 0,
            flows: HashMap::new(),
            ids: Vec::new(),
            open: Vec::new(),
            packets: Vec::new(),
            sacks: Vec::new(),
            notes: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// A record of an engine that writes PACKET records.
    pub fn record(&mut self, r: &Record) {
        let is_first = !r.is_continuation();
        if r.kind() == Some(RecordKind::Open) && is_first {
            if Open::decode(r).protocol == PROTOCOL_TCP {
                self.flows.insert(r.flow().0, self.ids.len() as u32);
                self.ids.push(r.flow().0);
                self.open.push(Pending {
                    ended: [None; 2],
                    recent: [[NONE; RECENT]; 2],
                    note: 0,
                    kept: false,
                    closed: false,
                });
            }
            return;
        }
        if !matches!(
            r.kind(),
            Some(RecordKind::Event | RecordKind::Block | RecordKind::Packet | RecordKind::Close)
        ) {
            return;
        }
        let Some(&flow) = self.flows.get(&r.flow().0) else {
            return;
        };
        let side = usize::from(r.server_to_client());
        let pending = &mut self.open[flow as usize];
        match (r.kind(), is_first) {
            (Some(RecordKind::Close), _) => pending.closed = true,
            (Some(RecordKind::Event), true) => pending.note |= Event::decode(r).what & !DULL,
            (Some(RecordKind::Block), _) => {
                let block = Block::decode(r);
                let end = block.seq.wrapping_add(block.bytes);
                let ends = |packet: &&u32| {
                    let known = self.packets.get(**packet as usize);
                    known.is_some_and(|p| p.seq.wrapping_add(p.length) == end)
                };
                match pending.recent[side].iter().find(ends) {
                    Some(packet) => self.blocks.push((*packet, block.bytes)),
                    None => pending.ended[side] = Some((end, block.bytes)),
                }
            }
            (Some(RecordKind::Packet), true) => {
                let note = std::mem::take(&mut pending.note);
                pending.kept = self.keep == Keep::Last || self.packets.len() < self.most;
                if !pending.kept {
                    self.dropped += 1;
                    return;
                }
                let place = self.packets.len() as u32;
                let p = Digest::decode(r);
                if note != 0 {
                    self.notes.push((place, note));
                }
                if p.length > 0 {
                    let end = p.seq.wrapping_add(p.length);
                    if let Some((_, bytes)) = pending.ended[side].take_if(|(at, _)| *at == end) {
                        self.blocks.push((place, bytes));
                    }
                    let recent = &mut pending.recent[side];
                    recent.rotate_right(1);
                    recent[0] = place;
                }
                self.packets.push(Packet {
                    time: utc_from_tai(r.time()),
                    flow,
                    number: u32::try_from(p.number).unwrap_or(u32::MAX),
                    seq: p.seq,
                    ack: p.ack,
                    length: p.length,
                    window: p.window,
                    wire: p.wire,
                    ip_id: p.ip_id,
                    ttl: p.ttl,
                    flags: p.tcp_flags,
                    kind: Kind::Ack,
                    server: side == 1,
                });
                if self.keep == Keep::Last && self.packets.len() > self.most + self.most / 4 {
                    self.forget(self.packets.len() - self.most);
                }
            }
            (Some(RecordKind::Packet), false) if pending.kept => {
                let more = PacketMore::decode(r);
                // It follows its packet.
                let place = self.packets.len() as u32 - 1;
                if more.sack_count > 0 {
                    self.sacks.push((place, more));
                }
            }
            _ => {}
        }
    }

    /// How many came.
    pub fn seen(&self) -> u64 {
        self.packets.len() as u64 + self.dropped
    }

    /// Drop the first so many packets, and connections that neither have packets left nor can have more.
    fn forget(&mut self, count: usize) {
        self.dropped += count as u64;
        self.packets.drain(..count);
        let count = count as u32;
        fn moved<T>(list: &mut Vec<(u32, T)>, count: u32) {
            list.retain_mut(|(packet, _)| {
                let stays = *packet >= count;
                *packet = packet.wrapping_sub(count);
                stays
            });
        }
        moved(&mut self.sacks, count);
        moved(&mut self.notes, count);
        moved(&mut self.blocks, count);
        let mut has_packets = vec![false; self.ids.len()];
        for packet in &self.packets {
            has_packets[packet.flow as usize] = true;
        }
        // A CLOSE that was lost must not hold its connection for ever.
        let long_ago = self.ids.len().saturating_sub(self.most);
        let stays = |flow: usize| has_packets[flow] || flow >= long_ago && !self.open[flow].closed;
        let mut number = 0;
        let new: Vec<u32> = (0..self.ids.len())
            .map(|flow| match stays(flow) {
                true => {
                    number += 1;
                    number - 1
                }
                false => NONE,
            })
            .collect();
        let of = |flow: u32| new[flow as usize];
        self.flows.retain(|_, flow| {
            *flow = of(*flow);
            *flow != NONE
        });
        let mut flow = new.iter();
        self.ids.retain(|_| flow.next().is_some_and(|new| *new != NONE));
        let mut flow = new.iter();
        self.open.retain(|_| flow.next().is_some_and(|new| *new != NONE));
        for pending in &mut self.open {
            for packet in pending.recent.iter_mut().flatten().filter(|packet| **packet != NONE) {
                *packet = packet.checked_sub(count).unwrap_or(NONE);
            }
        }
        for packet in &mut self.packets {
            packet.flow = of(packet.flow);
        }
    }

    /// In the order of time: records of several sources come in turns.
    fn sort(&mut self) {
        if self.packets.is_sorted_by_key(|packet| packet.time) {
            return;
        }
        let mut order: Vec<u32> = (0..self.packets.len() as u32).collect();
        order.sort_by_key(|packet| self.packets[*packet as usize].time);
        let mut place = vec![0u32; order.len()];
        for (new, old) in (0u32..).zip(&order) {
            place[*old as usize] = new;
        }
        self.packets = order.iter().map(|old| self.packets[*old as usize]).collect();
        fn moved<T>(list: &mut [(u32, T)], place: &[u32]) {
            list.iter_mut()
                .for_each(|(packet, _)| *packet = place[*packet as usize]);
            list.sort_by_key(|(packet, _)| *packet);
        }
        moved(&mut self.sacks, &place);
        moved(&mut self.notes, &place);
        moved(&mut self.blocks, &place);
    }

    /// Time of the first, ns since 1970.
    pub fn first(&self) -> Option<u64> {
        self.packets.iter().map(|packet| packet.time).min()
    }

    /// With the verdicts on them (their times: ns since 1970). `start`: of the capture.
    pub fn finish(mut self, start: u64, verdicts: &[Verdict]) -> Packets {
        self.sort();
        let Self {
            ids,
            mut packets,
            sacks,
            notes,
            mut blocks,
            flows,
            ..
        } = self;
        for packet in &mut packets {
            packet.time = packet.time.saturating_sub(start);
        }
        let mut begins = vec![0u32; ids.len() + 1];
        for packet in &packets {
            begins[packet.flow as usize + 1] += 1;
        }
        for flow in 0..ids.len() {
            begins[flow + 1] += begins[flow];
        }
        let mut next = begins.clone();
        let mut by_flow = vec![0u32; packets.len()];
        for (place, packet) in (0u32..).zip(&packets) {
            let slot = &mut next[packet.flow as usize];
            by_flow[*slot as usize] = place;
            *slot += 1;
        }
        blocks.sort_unstable();
        let mut all = Packets {
            all: packets,
            ids,
            begins,
            by_flow,
            sacks,
            notes,
            blocks,
            verdicts: Vec::new(),
            originals: Vec::new(),
            flows,
        };
        all.judge(start, verdicts);
        all
    }
}

/// All packets, by time.
#[derive(Debug, Default)]
pub struct Packets {
    pub all: Vec<Packet>,
    /// Connection ids by flow.
    pub ids: Vec<u64>,
    begins: Vec<u32>,
    by_flow: Vec<u32>,
    // The rest by packet.
    sacks: Vec<(u32, PacketMore)>,
    notes: Vec<(u32, u32)>,
    blocks: Vec<(u32, u32)>,
    verdicts: Vec<(u32, u32)>,
    originals: Vec<(u32, u32)>,
    flows: HashMap<u64, u32>,
}

fn find<T: Copy>(list: &[(u32, T)], packet: u32) -> Option<T> {
    let place = list.binary_search_by_key(&packet, |(of, _)| *of).ok()?;
    Some(list[place].1)
}

impl Packets {
    /// Number of a connection, if it is known here.
    pub fn flow(&self, id: u64) -> Option<u32> {
        self.flows.get(&id).copied()
    }

    /// Packets of a connection, by time; none if it is not known here.
    pub fn of_connection(&self, id: u64) -> &[u32] {
        self.flow(id).map_or(&[], |flow| self.of_flow(flow))
    }

    fn of_flow(&self, flow: u32) -> &[u32] {
        let Range { start, end } = self.begins[flow as usize]..self.begins[flow as usize + 1];
        &self.by_flow[start as usize..end as usize]
    }

    /// A packet.
    pub fn get(&self, packet: u32) -> &Packet {
        &self.all[packet as usize]
    }

    pub fn sack(&self, packet: u32) -> Option<PacketMore> {
        find(&self.sacks, packet)
    }

    /// Names of its conditions.
    pub fn note(&self, packet: u32) -> Option<String> {
        let bits = find(&self.notes, packet)?;
        let names = what::NAMES.iter().filter(|(bit, _)| bits & bit != 0);
        Some(names.map(|(_, name)| *name).collect::<Vec<_>>().join(" "))
    }

    /// Bytes of the block that ends with it.
    pub fn block(&self, packet: u32) -> Option<u32> {
        find(&self.blocks, packet)
    }

    /// Place of the verdict on it.
    pub fn verdict(&self, packet: u32) -> Option<u32> {
        find(&self.verdicts, packet)
    }

    /// The packet that carried its bytes first.
    pub fn original(&self, packet: u32) -> Option<u32> {
        find(&self.originals, packet)
    }

    /// Bytes that all of it takes.
    pub fn memory(&self) -> usize {
        self.all.capacity() * size_of::<Packet>()
            + self.by_flow.capacity() * 4
            + self.sacks.capacity() * size_of::<(u32, PacketMore)>()
            + (self.notes.capacity() + self.blocks.capacity() + self.verdicts.capacity() + self.originals.capacity())
                * 8
    }

    /// Verdicts to their packets, then kinds.
    fn judge(&mut self, start: u64, verdicts: &[Verdict]) {
        let mut found = Vec::with_capacity(verdicts.len());
        for (number, verdict) in (0u32..).zip(verdicts) {
            let time = utc_from_tai(verdict.time).saturating_sub(start);
            let mine = self.of_connection(verdict.connection.0);
            let first = mine.partition_point(|packet| self.get(*packet).time < time);
            let packet = mine[first..]
                .iter()
                .take_while(|packet| self.get(**packet).time == time)
                .find(|packet| {
                    let p = self.get(**packet);
                    p.server == verdict.from_server && p.seq == verdict.seq
                });
            // Bytes that never passed have none.
            if let Some(packet) = packet.filter(|_| !matches!(verdict.class, Class::Missed | Class::Lost)) {
                found.push((*packet, number));
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|(packet, _)| *packet);
        let mut originals = Vec::new();
        let mut repeats: HashMap<(u32, bool), Vec<u32>> = HashMap::new();
        for (packet, number) in &found {
            if matches!(verdicts[*number as usize].class, Class::Retransmission | Class::Copy) {
                let p = self.get(*packet);
                repeats.entry((p.flow, p.server)).or_default().push(*packet);
            }
        }
        for ((flow, server), packets) in repeats {
            self.first_copies(flow, server, &packets, &mut originals);
        }
        originals.sort_unstable();
        let class = |place: u32| find(&found, place).map(|number| verdicts[number as usize].class);
        let kinds: Vec<Kind> = (0u32..)
            .zip(&self.all)
            .map(|(place, packet)| self.kind(place, packet, class(place)))
            .collect();
        for (packet, kind) in self.all.iter_mut().zip(kinds) {
            packet.kind = kind;
        }
        self.verdicts = found;
        self.originals = originals;
    }

    fn kind(&self, place: u32, packet: &Packet, class: Option<Class>) -> Kind {
        let sack = || self.sack(place);
        let is_dsack = || find(&self.notes, place).is_some_and(|bits| bits & what::DSACK != 0);
        if let Some(kind) = packet.marked_kind() {
            return kind;
        }
        match class {
            Some(Class::Retransmission) => Kind::Retransmission,
            Some(Class::Reordered | Class::CaptureOrder) => Kind::OutOfOrder,
            Some(Class::Copy | Class::KeepAlive | Class::WindowProbe) => Kind::Copy,
            _ if packet.length > 0 => Kind::Data,
            _ if is_dsack() => Kind::Dsack,
            _ if sack().is_some() => Kind::Sack,
            _ if packet.window == 0 => Kind::ZeroWindow,
            _ => Kind::Ack,
        }
    }

    /// For each of `repeats` of a direction, the packet that carried its first byte first.
    fn first_copies(&self, flow: u32, server: bool, repeats: &[u32], out: &mut Vec<(u32, u32)>) {
        let mut unwrap = Unwrap::default();
        // Where it begins, its place, where it ends.
        let mut taken: Vec<(i64, u32, i64)> = Vec::new();
        for place in self.of_flow(flow) {
            let p = self.get(*place);
            if p.server == server && p.room() > 0 {
                let begin = unwrap.at(p.seq);
                taken.push((begin, *place, begin + i64::from(p.room())));
            }
        }
        let mut begins: HashMap<u32, i64> = HashMap::with_capacity(repeats.len());
        for (begin, place, _) in &taken {
            if repeats.binary_search(place).is_ok() {
                begins.insert(*place, *begin);
            }
        }
        taken.sort_unstable();
        for repeat in repeats {
            let Some(begin) = begins.get(repeat) else { continue };
            let above = taken.partition_point(|(at, _, _)| at <= begin);
            let same = taken.partition_point(|(at, _, _)| at < begin);
            // Of those that begin there the first is enough; else a few that begin before.
            let here = taken[same..above].first();
            let before = taken[same.saturating_sub(LOOK_BACK)..same].iter();
            let first = before
                .chain(here)
                .filter(|(_, place, end)| place < repeat && end > begin)
                .map(|(_, place, _)| *place)
                .min();
            out.extend(first.map(|first| (*repeat, first)));
        }
    }
}

/// Sequence numbers without their wrap, from the first on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwrap {
    last: Option<(u32, i64)>,
}

impl Unwrap {
    /// From a number on.
    pub const fn from(first: u32) -> Self {
        Self { last: Some((first, 0)) }
    }

    /// The number `seq` is, nearest to the one before.
    pub fn at(&mut self, seq: u32) -> i64 {
        let at = match self.last {
            None => 0,
            Some((before, at)) => at + i64::from(seq.wrapping_sub(before) as i32),
        };
        self.last = Some((seq, at));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_behind_the_wrap() {
        let mut unwrap = Unwrap::default();
        let all: Vec<i64> = [u32::MAX - 1, 3, 1, u32::MAX, 5].map(|seq| unwrap.at(seq)).into();
        assert_eq!(all, [0, 5, 3, 1, 7]);
    }

    #[test]
    fn a_packet_is_small() {
        assert_eq!(size_of::<Packet>(), 40);
    }
}
