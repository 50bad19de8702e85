//! One capture: its flows, and the packets that still wait to be matched.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use weir_analysis::before;
use weir_record::{
    Kind, Open, OpenMore, PROTOCOL_TCP, Packet, PacketMore, Record, Setup, SetupMore, setup_bit, tcp_flag,
};

use crate::ends::Ends;

/// Bits of [`Digest::bits`].
const FROM_SERVER: u8 = 1;
const HAS_TIMESTAMPS: u8 = 2;
/// In [`Packet::option_bits`]: a continuation with SACK blocks follows; the capture cut options off.
const SACK_FOLLOWS: u8 = 2;
const OPTIONS_CUT: u8 = 4;
/// From here on, three bits: how late after the first it came, as one of [`LATE`] and 1; 0: it came alone.
const COPY_SHIFT: u32 = 2;
const COPY_MASK: u8 = 7;
/// It is no copy: the one before has had its own, if this is not it.
const IS_NEXT: u8 = 32;
/// A mirror port's copy comes within so many ns.
pub(crate) const LATE: [u64; 6] = [100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000];
/// Packets that are remembered for that, 48 bytes each: in a place, and log2 of the places (0.8 MB a capture).
const WAYS: usize = 4;
const RECENT_BITS: u32 = 12;
/// A direction of which a fifth are copies, and eight at least, is mirrored: networks do not copy as much.
const MIRROR_PART: u64 = 5;
const MIRROR_LEAST: u64 = 8;
/// And where it goes on being so many, the same port is later.
const MIRROR_REST: u64 = 20;
/// Few packets may be further apart by chance than any clock's steps, ns.
const COARSEST: u64 = 100_000_000;
/// No flow.
pub(crate) const NONE: u32 = u32::MAX;

/// What matching needs of a packet: 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest {
    pub time: u64,
    pub seq: u32,
    pub ack: u32,
    pub len: u32,
    pub tsval: u32,
    /// What its SACK blocks say, whatever a box adds to sequence numbers; 0: it has none.
    pub sack: u32,
    /// Place in [`Tap::flows`].
    pub flow: u32,
    /// Of the frame in its capture, from 1.
    pub number: u32,
    pub window: u16,
    /// Bytes of the frame.
    pub wire: u16,
    pub ip_id: u16,
    /// Pairs of taps (a bit each) in which this packet has been accounted for.
    pub done: u16,
    pub flags: u8,
    pub ttl: u8,
    pub bits: u8,
}

impl Digest {
    /// 0: sent by the client, 1: by the server.
    pub const fn side(&self) -> usize {
        (self.bits & FROM_SERVER) as usize
    }

    pub const fn timestamps(&self) -> bool {
        self.bits & HAS_TIMESTAMPS != 0
    }

    /// Nothing else can look like it so soon: an ACK without an IP id may be sent twice.
    pub const fn is_alone_of_its_kind(&self) -> bool {
        self.ip_id != 0 || self.len > 0 || self.flags & (tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST) != 0
    }

    /// Whether it came again as it was, and soon.
    pub fn is_copy(&self) -> bool {
        self.late().is_some()
    }

    /// Which of [`LATE`] it came within, if it is a copy.
    fn late(&self) -> Option<usize> {
        self.behind().filter(|_| self.bits & IS_NEXT == 0)
    }

    /// Which of [`LATE`] it came within behind one that is the same.
    fn behind(&self) -> Option<usize> {
        usize::from(self.bits >> COPY_SHIFT & COPY_MASK).checked_sub(1)
    }

    /// The same fields.
    pub fn is_copy_of(&self, other: &Self) -> bool {
        self.ip_id == other.ip_id
            && (self.flow, self.seq, self.ack, self.len) == (other.flow, other.seq, other.ack, other.len)
            && (self.tsval, self.window, self.flags) == (other.tsval, other.window, other.flags)
            && self.sack == other.sack
            && self.side() == other.side()
    }

    /// Where [`Recent`] has it: the same for its copies.
    fn place(&self) -> usize {
        let fields = (
            self.flow, self.seq, self.ack, self.len, self.tsval, self.ip_id, self.flags, self.sack,
        );
        FixedState::default().hash_one(fields) as usize % (1 << RECENT_BITS)
    }

    /// Sequence number after it: payload, SYN and FIN count.
    pub const fn end(&self) -> u32 {
        let marks = (self.flags & tcp_flag::SYN != 0) as u32 + (self.flags & tcp_flag::FIN != 0) as u32;
        self.seq.wrapping_add(self.len).wrapping_add(marks)
    }
}

/// Packets from one side, and how many of them are copies of another one, by how late they came.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Of which nothing else can look like them, all and copies.
    packets: u64,
    copies: [u64; LATE.len()],
}

impl Sent {
    /// Which of [`LATE`] copies of a mirror port come within, if there is one: all that come as they do. A network's own may come later.
    fn latest_copy(&self) -> Option<usize> {
        let mut copies = 0;
        let first = self.copies.iter().position(|more| {
            copies += more;
            copies >= MIRROR_LEAST && copies * MIRROR_PART >= self.packets
        })?;
        let more = self.copies[first + 1..].iter();
        let also = more.take_while(|more| **more >= MIRROR_LEAST && **more * MIRROR_REST >= self.packets);
        Some(first + also.count())
    }
}

/// The last packets, each in one of a few places that its fields tell, until others need them.
#[derive(Debug, Default)]
struct Recent(Vec<[Digest; WAYS]>);

impl Recent {
    /// Which of [`LATE`] it came within, if one of them is the same, and whether it is the next of the kind and no copy. It is one of them from
    /// now on. `latest`: within which of [`LATE`] a mirror port's copies come, if there is one.
    fn late(&mut self, digest: &Digest, latest: Option<usize>) -> Option<(usize, bool)> {
        if self.0.is_empty() {
            let none = Digest {
                flow: NONE,
                time: 0,
                ..*digest
            };
            self.0.resize(1 << RECENT_BITS, [none; WAYS]);
        }
        let known = &mut self.0[digest.place()];
        let same = known.iter().position(|known| digest.is_copy_of(known));
        let late = same.and_then(|same| {
            let after = digest.time.saturating_sub(known[same].time);
            LATE.iter().position(|most| after < *most)
        });
        if digest.ip_id == 0 {
            // Its sender may say the same again as soon: each has one copy. Repeated ACKs do not tell how late copies may be.
            let is_alone = digest.is_alone_of_its_kind();
            let late = late.filter(|late| is_alone || latest.is_none_or(|latest| *late <= latest));
            let is_next = late.is_some() && same.is_some_and(|same| known[same].bits & IS_NEXT != 0);
            let oldest = (0..WAYS).min_by_key(|way| known[*way].time);
            let known = &mut known[same.or(oldest).unwrap_or(0)];
            if late.is_none() || is_next {
                *known = *digest;
            } else {
                known.bits |= IS_NEXT;
            }
            return late.map(|late| (late, is_next));
        }
        // A network's copy has one of the mirror, too.
        if late != Some(0) {
            let oldest = (0..WAYS).min_by_key(|way| known[*way].time);
            known[same.or(oldest).unwrap_or(0)] = *digest;
        }
        late.map(|late| (late, false))
    }
}

/// SACK blocks as distances from the acknowledgment number, in one number other than 0.
fn sack_of(packet: &Record, more: &Record) -> u32 {
    let ack = Packet::decode(packet).ack;
    let distances: Vec<u32> = PacketMore::decode(more)
        .sack()
        .flat_map(|(left, right)| [left.wrapping_sub(ack), right.wrapping_sub(ack)])
        .collect();
    (FixedState::default().hash_one(distances) as u32).max(1)
}

/// Address and port.
pub(crate) type End = ([u8; 16], u16);

/// What packets of client and server tell of where a tap sits: TTL and MAC address; 0 if not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub ttls: [u8; 2],
    pub macs: [[u8; 6]; 2],
}

impl Place {
    /// The same by other names for client and server.
    pub fn flipped(self, flipped: bool) -> Self {
        let mut place = self;
        if flipped {
            place.ttls.reverse();
            place.macs.reverse();
        }
        place
    }
}

/// What a side's only SYN (or SYN-ACK) offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// None: 255.
    pub scale: u8,
    /// None: 0.
    pub mss: u16,
}

/// A TCP flow of one capture.
#[derive(Clone, Debug)]
pub(crate) struct TapFlow {
    pub id: u64,
    pub client: End,
    pub server: End,
    /// From SYNs: initial sequence numbers of client and server.
    pub isn: [Option<u32>; 2],
    /// Sequence numbers of client and server, from and to.
    pub seen: [Option<[u32; 2]>; 2],
    /// Of sides that sent one SYN: a further one may offer less.
    pub offers: [Option<Offer>; 2],
    /// MSS in the last SYN of client and server; 0: none.
    pub mss: [u16; 2],
    /// Of a side's SYN the capture cut options off: what is not there may have been.
    pub cut: [bool; 2],
    /// TSval and IP id of the first SYN.
    pub syn_mark: Option<(u32, u16)>,
    pub first: u64,
    pub last: u64,
    pub packets: u64,
    pub closed: bool,
    /// When the server's side first sent something.
    pub answered: Option<u64>,
    /// Per side: highest sequence number among the packets that have left the window.
    pub removed_to: [Option<u32>; 2],
    /// Per side: largest payload so far.
    pub largest: [u32; 2],
    /// In at least one other capture, too.
    pub shared: bool,
    /// TTL of the first packet of each side, and its MAC address.
    pub place: Place,
    pub ends: Ends,
}

/// One capture.
#[derive(Debug)]
pub(crate) struct Tap {
    pub name: String,
    /// Waiting packets in the order of the capture.
    pub window: Vec<Digest>,
    pub flows: Vec<Option<TapFlow>>,
    free: Vec<u32>,
    /// Flow of each context index: id, place.
    places: Vec<(u64, u32)>,
    pub first: Option<u64>,
    pub last: u64,
    pub ended: bool,
    pub packets: u64,
    pub connections: u64,
    pub given_up: u64,
    /// Packets whose stamp equals the one before: moved there because their own ran backwards.
    pub clamped: u64,
    /// The greatest step in which all stamps are apart, ns; 0: there is one.
    step: u64,
    repeats: u32,
    /// Packets from clients and from servers.
    sides: [Sent; 2],
    recent: Recent,
    /// A packet whose SACK blocks are in the next record.
    waiting: Option<Record>,
    /// Copies of a mirror port, left out.
    pub mirrored: u64,
    /// Connections by what they tell of the tap's place.
    pub places_seen: Map<Place, u64>,
}

/// Greatest common divisor.
const fn common_step(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Stamps in larger steps than this are often equal, ns.
const FINE: u64 = 1_000;
/// So many equal stamps in a row are no coincidence: the capture's clock was set back, and the engine, for which time
/// does not run backwards, gave them the last time that it knew.
const STUCK: u32 = 16;
/// So many in a row, with requests and answers among them, are no batch either: what comes has no time until it is there again.
const SET_BACK: u32 = 256;

impl Tap {
    pub fn new(name: String) -> Self {
        Self {
            name,
            window: Vec::new(),
            flows: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
            first: None,
            last: 0,
            ended: false,
            packets: 0,
            connections: 0,
            given_up: 0,
            clamped: 0,
            step: 0,
            repeats: 0,
            sides: Default::default(),
            recent: Recent::default(),
            waiting: None,
            mirrored: 0,
            places_seen: map(),
        }
    }

    fn place(&self, record: &Record) -> Option<u32> {
        let (id, place) = *self.places.get(record.flow().index())?;
        (id == record.flow().0 && place != NONE).then_some(place)
    }

    /// Take in records in order.
    pub fn push(&mut self, records: &[Record]) {
        for r in records {
            if let Some(waiting) = self.waiting.take() {
                let is_more = r.kind() == Some(Kind::Packet) && r.is_continuation();
                let sack = if is_more { sack_of(&waiting, r) } else { 0 };
                self.packet(&waiting, sack);
            }
            match r.kind() {
                Some(Kind::Packet) if r.is_continuation() => {}
                Some(Kind::Packet) if Packet::decode(r).option_bits & SACK_FOLLOWS != 0 => self.waiting = Some(*r),
                Some(Kind::Packet) => self.packet(r, 0),
                Some(Kind::Open) => self.open(r),
                Some(Kind::Setup) => self.setup(r),
                Some(Kind::Close) if !r.is_continuation() => {
                    if let Some(place) = self.place(r)
                        && let Some(flow) = &mut self.flows[place as usize]
                    {
                        flow.closed = true;
                    }
                }
                _ => {}
            }
        }
    }

    /// The capture has ended.
    pub fn end(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.packet(&waiting, 0);
        }
        self.ended = true;
    }

    fn open(&mut self, r: &Record) {
        if r.is_continuation() {
            if let Some(place) = self.place(r)
                && let Some(flow) = &mut self.flows[place as usize]
            {
                let more = OpenMore::decode(r);
                flow.place.macs = [more.client_mac, more.server_mac];
            }
            return;
        }
        let open = Open::decode(r);
        let index = r.flow().index();
        if self.places.len() <= index {
            self.places.resize(index + 1, (0, NONE));
        }
        self.places[index] = (r.flow().0, NONE);
        if open.protocol != PROTOCOL_TCP {
            return;
        }
        self.connections += 1;
        let flow = TapFlow {
            id: r.flow().0,
            client: (open.client_addr, open.client_port),
            server: (open.server_addr, open.server_port),
            isn: [None; 2],
            seen: [None; 2],
            offers: [None; 2],
            mss: [0; 2],
            cut: [false; 2],
            syn_mark: None,
            first: r.time(),
            last: r.time(),
            packets: 0,
            closed: false,
            answered: None,
            removed_to: [None; 2],
            largest: [0; 2],
            shared: false,
            place: Place::default(),
            ends: Ends::default(),
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.flows[place as usize] = Some(flow);
                place
            }
            None => {
                self.flows.push(Some(flow));
                (self.flows.len() - 1) as u32
            }
        };
        self.places[index].1 = place;
    }

    fn setup(&mut self, r: &Record) {
        let Some(place) = self.place(r) else { return };
        let Some(flow) = &mut self.flows[place as usize] else {
            return;
        };
        if r.is_continuation() {
            let more = SetupMore::decode(r);
            flow.mss = [more.client_mss, more.server_mss];
            let both = [
                (more.client_scale, more.client_mss),
                (more.server_scale, more.server_mss),
            ];
            for (offer, (scale, mss)) in flow.offers.iter_mut().zip(both) {
                *offer = offer.map(|_| Offer { scale, mss });
            }
            if flow.isn.iter().all(Option::is_some) && flow.cut == [false; 2] {
                flow.ends.set_up(both.map(|(scale, _)| scale), flow.mss);
            }
            return;
        }
        let setup = Setup::decode(r);
        let once = [
            (setup_bit::SYN, setup.syn_count),
            (setup_bit::SYN_ACK, setup.syn_ack_count),
        ];
        flow.offers =
            once.map(|(bit, count)| (setup.bits & bit != 0 && count == 1).then_some(Offer { scale: 0, mss: 0 }));
    }

    fn packet(&mut self, r: &Record, sack: u32) {
        let time = r.time();
        if self.first.is_some() && time == self.last {
            self.repeats += 1;
        } else {
            self.repeats = 0;
        }
        let first = *self.first.get_or_insert(time);
        self.last = self.last.max(time);
        let after = time.abs_diff(first);
        if !after.is_multiple_of(self.step) {
            self.step = common_step(self.step, after);
        }
        let Some(place) = self.place(r) else { return };
        let Some(flow) = &mut self.flows[place as usize] else {
            return;
        };
        let p = Packet::decode(r);
        let mut bits = u8::from(r.server_to_client()) * FROM_SERVER;
        if p.option_bits & 1 != 0 {
            bits |= HAS_TIMESTAMPS;
        }
        let mut digest = Digest {
            time,
            seq: p.seq,
            ack: if p.tcp_flags & tcp_flag::ACK != 0 { p.ack } else { 0 },
            len: p.length,
            tsval: p.tsval,
            sack,
            flow: place,
            number: u32::try_from(p.number).unwrap_or(u32::MAX),
            window: p.window,
            wire: p.wire,
            ip_id: p.ip_id,
            done: 0,
            flags: p.tcp_flags,
            ttl: p.ttl,
            bits,
        };
        self.packets += 1;
        flow.packets += 1;
        flow.last = time;
        if digest.side() == 1 {
            flow.answered.get_or_insert(time);
        }
        // Those of a RST may be none of the connection's.
        if digest.flags & tcp_flag::RST == 0 {
            let [from, to] = flow.seen[digest.side()].get_or_insert([digest.seq, digest.end()]);
            if before(digest.seq, *from) {
                *from = digest.seq;
            }
            if before(*to, digest.end()) {
                *to = digest.end();
            }
        }
        let largest = &mut flow.largest[digest.side()];
        *largest = digest.len.max(*largest);
        if digest.flags & tcp_flag::SYN != 0 {
            flow.isn[digest.side()].get_or_insert(digest.seq);
            flow.cut[digest.side()] |= p.option_bits & OPTIONS_CUT != 0;
            if digest.side() == 0 {
                flow.syn_mark.get_or_insert((digest.tsval, digest.ip_id));
            }
        }
        let side = &mut self.sides[digest.side()];
        let is_alone = digest.is_alone_of_its_kind();
        side.packets += u64::from(is_alone);
        let latest = side.latest_copy();
        let late = self.recent.late(&digest, latest);
        if let Some((late, is_next)) = late {
            side.copies[late] += u64::from(is_alone && !is_next);
            digest.bits |= (late as u8 + 1) << COPY_SHIFT | if is_next { IS_NEXT } else { 0 };
        }
        // Without an IP id, it may be sent again as late.
        let is_certain = |late| late == 0 || digest.ip_id != 0 || latest.is_some_and(|latest| late <= latest);
        if !digest.late().is_some_and(is_certain) {
            flow.ends.packet(&digest);
        }
        if self.repeats >= STUCK {
            self.clamped += 1;
            flow.ends.untimed |= self.repeats >= SET_BACK && flow.ends.turns_at_once >= 2;
        }
        let ttl = &mut flow.place.ttls[digest.side()];
        if *ttl == 0 {
            *ttl = digest.ttl;
        }
        self.window.push(digest);
    }

    /// What its stamps may be wrong by, ns.
    pub fn coarse(&self) -> u64 {
        self.step.min(COARSEST)
    }

    /// Whether the stamp at `at` of the window stands alone enough to be believed.
    pub fn believable(&self, at: usize) -> bool {
        let digest = &self.window[at];
        // It may be the copy of the one before, and that copy it.
        if digest.bits & IS_NEXT != 0
            && let Some(latest) = self.sides[digest.side()].latest_copy()
            && digest.behind().is_some_and(|behind| behind <= latest)
        {
            return false;
        }
        // Its own may have been earlier: then this is the one of the packet before.
        if self.step <= FINE && at > 0 && self.window[at - 1].time == digest.time {
            return false;
        }
        if self.clamped == 0 {
            return true;
        }
        let reach = STUCK as usize;
        let time = self.window[at].time;
        let same = |i: usize| self.window.get(i).is_some_and(|d| d.time == time);
        let before = (1..=reach).take_while(|&k| at >= k && same(at - k)).count();
        let after = (1..=reach).take_while(|&k| same(at + k)).count();
        before + after < reach
    }

    /// A mirror port copies one direction: what it copies of the other, too few to tell, may be its copies.
    pub fn is_mirrored(&self) -> bool {
        self.sides.iter().any(|side| side.latest_copy().is_some())
    }

    /// Too few to say so, but packets that nobody sends twice came twice.
    pub fn has_copies(&self) -> bool {
        let copies: u64 = self.sides.iter().flat_map(|side| side.copies).sum();
        copies >= MIRROR_LEAST
    }

    /// Remove the copies of directions that are mirrored: the wire had each packet once.
    pub fn remove_copies(&mut self) {
        let latest = self.sides.map(|side| side.latest_copy());
        let all = self.window.len();
        self.window.retain(|p| {
            p.late()
                .is_none_or(|late| latest[p.side()].is_none_or(|latest| late > latest))
        });
        self.mirrored += (all - self.window.len()) as u64;
    }

    /// Remove packets that `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut at = 0;
        let flows = &mut self.flows;
        self.window.retain(|digest| {
            at += 1;
            let stays = keep(at - 1);
            if !stays && let Some(flow) = &mut flows[digest.flow as usize] {
                let high = &mut flow.removed_to[digest.side()];
                if high.is_none_or(|high| (digest.end().wrapping_sub(high) as i32) > 0) {
                    *high = Some(digest.end());
                }
            }
            stays
        });
    }

    /// Flows that are over and have no packet in the window.
    pub fn over(&self) -> Vec<bool> {
        let mut over: Vec<bool> = self
            .flows
            .iter()
            .map(|flow| flow.as_ref().is_some_and(|flow| flow.closed || self.ended))
            .collect();
        for digest in &self.window {
            over[digest.flow as usize] = false;
        }
        over
    }

    /// Forget a flow.
    pub fn remove(&mut self, place: u32) -> Option<TapFlow> {
        let flow = self.flows[place as usize].take()?;
        let index = weir_record::FlowId(flow.id).index();
        if self.places[index].0 == flow.id {
            self.places[index].1 = NONE;
        }
        self.free.push(place);
        *self.places_seen.entry(flow.place).or_default() += 1;
        Some(flow)
    }

    /// Window in the order of flows: packets of flow `f` are `order[starts[f]..starts[f + 1]]`.
    pub fn by_flow(&self) -> Grouped {
        let mut starts = vec![0u32; self.flows.len() + 1];
        for digest in &self.window {
            starts[digest.flow as usize + 1] += 1;
        }
        for f in 1..starts.len() {
            starts[f] += starts[f - 1];
        }
        let mut next = starts.clone();
        let mut order = vec![0u32; self.window.len()];
        for (at, digest) in self.window.iter().enumerate() {
            let place = &mut next[digest.flow as usize];
            order[*place as usize] = at as u32;
            *place += 1;
        }
        Grouped { starts, order }
    }
}

/// Places in the window, grouped by flow.
#[derive(Debug)]
pub(crate) struct Grouped {
    starts: Vec<u32>,
    order: Vec<u32>,
}

impl Grouped {
    /// Packets of a flow, in the order of the capture.
    pub fn of(&self, flow: u32) -> &[u32] {
        let f = flow as usize;
        &self.order[self.starts[f] as usize..self.starts[f + 1] as usize]
    }
}

/// Hash maps of this crate: seeds fixed, so that equal input gives equal output.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// The key that was counted most often; of several the largest, so that the answer is always the same.
pub(crate) fn most<K: Copy + Ord>(counts: &Map<K, u64>) -> Option<K> {
    let (key, _) = counts.iter().max_by_key(|&(key, count)| (count, key))?;
    Some(*key)
}

/// A map with a fixed seed.
pub(crate) fn map<K, V>() -> Map<K, V> {
    Map::with_hasher(FixedState::with_seed(0x7765_6972))
}
