//! One conversation as its hosts might see it. The model is loose on purpose: it only has to be right often enough that
//! wrong packets hit corners and not just noise.

use weir_record::tcp_flag::{ACK, CWR, ECE, FIN, PSH, SYN};

use super::frame::{self, End, Shape, TCP, Tcp};
use crate::rng::Rng;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Side {
    pub isn: u32,
    pub next: u32,
    /// What this side last acknowledged.
    pub acked: u32,
    pub window: u16,
    pub scale: Option<u8>,
    pub id: u16,
    pub id_step: u16,
    /// Chance that IP ids are skipped before a packet, if `id_step` is not 0.
    pub id_skips: f64,
    pub fin: bool,
    pub sack: Option<[(u32, u32); 4]>,
    pub sack_count: usize,
    /// Its last TSval.
    pub tsval: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    Syn,
    SynAck,
    Up,
}

/// A packet about to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    pub from: usize,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub len: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub protocol: u8,
    pub ends: [End; 2],
    pub shape: Shape,
    pub timestamps: bool,
    pub sides: [Side; 2],
    pub phase: Phase,
    /// Time of its last packet, UTC ns; 0: none.
    pub seen: u64,
    /// The last frame of each side, for copies: bytes and length on the wire.
    pub last: [(Vec<u8>, u32); 2],
}

/// Differences to a sequence number at which a rule of the engine has its edge.
const EDGES: [u32; 14] = [
    1,
    2,
    1460,
    65_535,
    65_536,
    65_537,
    (1 << 30) - 1,
    1 << 30,
    (1 << 30) + 1,
    1 << 31,
    (1 << 31) - 1,
    (1 << 31) + 1,
    3 << 30,
    u32::MAX,
];

impl Side {
    /// The IP id of the next packet. Skipped are about as many as `IDS_SKIPPED` begins and ends with, or what leads over the
    /// wrap, to 0, far away.
    fn next_id(&mut self, rng: &mut Rng) -> u16 {
        self.id = self.id.wrapping_add(self.id_step);
        if self.id_step != 0 && rng.chance(self.id_skips) {
            self.id = match rng.below(17) {
                0 => 0,
                // What is a little below the newest would be taken for overtaken: away from the wrap first.
                1..=5 => (u16::MAX - rng.below(4) as u16).wrapping_add(if self.id < 512 { 1024 } else { 0 }),
                6 => rng.bits() as u16,
                7 => self.id.wrapping_sub(1 + rng.below(3) as u16),
                8 => self.id.wrapping_sub(255 + rng.below(4) as u16),
                9 => self.id.wrapping_add(253 + rng.below(4) as u16),
                10 | 11 => self.id.wrapping_add(1 + rng.below(2) as u16),
                _ => self.id.wrapping_add(15 + rng.below(3) as u16),
            };
        }
        self.id
    }
}

impl Conversation {
    /// `few`: keys out of a small space, so that conversations meet on one key.
    pub fn new(rng: &mut Rng, few: bool) -> Self {
        let shape = shape(rng, few);
        let protocol = match rng.below(40) {
            0 => frame::UDP,
            1 if shape.ipv6 => frame::ICMPV6,
            1 => frame::ICMP,
            2 => *rng.pick(&[frame::SCTP, frame::UDP, 47, 89, 2]).unwrap_or(&47),
            _ => TCP,
        };
        let ends = ends(rng, &shape, few);
        let mut sides = [Side::default(); 2];
        for side in &mut sides {
            side.isn = isn(rng);
            side.next = side.isn.wrapping_add(1);
            side.window = window(rng);
            side.id = rng.bits() as u16;
            side.id_step = *rng.pick(&[1, 1, 1, 1, 256, 0]).unwrap_or(&1);
            side.id_skips = 0.1;
            if rng.chance(0.1) {
                (side.id, side.id_step) = (0, 0);
            }
        }
        sides[0].acked = sides[1].next;
        sides[1].acked = sides[0].next;
        Self {
            protocol,
            ends,
            shape,
            timestamps: rng.chance(0.4),
            sides,
            phase: Phase::New,
            seen: 0,
            last: Default::default(),
        }
    }

    /// IPv4 and TCP, nothing odd; `number` makes the key.
    pub fn plain(rng: &mut Rng, number: u32) -> Self {
        let mut flow = Self::new(rng, false);
        flow.protocol = TCP;
        flow.shape = Shape::default();
        flow.timestamps = false;
        for (end, word) in flow.ends.iter_mut().zip([0x0a00_0000 + (number >> 14), 0xc0a8_0001]) {
            end.address[12..].copy_from_slice(&word.to_be_bytes());
        }
        flow.ends[0].port = 40_000 + (number & 0x3fff) as u16;
        flow.ends[1].port = 80;
        for side in &mut flow.sides {
            side.window = 60_000;
            (side.id, side.id_step) = (0, 0);
        }
        flow
    }

    /// A new connection on the same key; the initial sequence number of `side` may be one that looks like a repeat.
    pub fn begin_again(&mut self, rng: &mut Rng, side: usize) {
        let old = self.sides[side];
        for s in &mut self.sides {
            s.isn = isn(rng);
            s.next = s.isn.wrapping_add(1);
            s.fin = false;
            s.sack_count = 0;
        }
        let s = &mut self.sides[side];
        s.isn = match rng.below(4) {
            0 => old.next.wrapping_add(rng.below(5) as u32).wrapping_sub(3),
            1 => old.next.wrapping_sub(65_536 + rng.below(4) as u32),
            2 => old.next.wrapping_add(100_000),
            _ => s.isn,
        };
        s.next = s.isn.wrapping_add(1);
        self.phase = Phase::New;
    }

    pub fn is_tcp(&self) -> bool {
        self.protocol == TCP
    }

    /// `base` or a number at a distance at which something changes.
    pub fn near(rng: &mut Rng, base: u32) -> u32 {
        let distance = match rng.below(4) {
            0 => rng.bits() as u32,
            _ => rng
                .pick(&EDGES)
                .copied()
                .unwrap_or(1)
                .wrapping_add(rng.below(3) as u32)
                .wrapping_sub(1),
        };
        if rng.chance(0.5) {
            base.wrapping_add(distance)
        } else {
            base.wrapping_sub(distance)
        }
    }

    /// A data segment in order.
    pub fn in_order(&self, rng: &mut Rng, from: usize) -> Segment {
        Segment {
            from,
            flags: ACK | if rng.chance(0.4) { PSH } else { 0 },
            seq: self.sides[from].next,
            ack: self.sides[from].acked,
            len: length(rng),
        }
    }

    /// An ACK without data.
    pub fn pure_ack(&self, from: usize, ack: u32) -> Segment {
        Segment {
            from,
            flags: ACK,
            seq: self.sides[from].next,
            ack,
            len: 0,
        }
    }

    /// The SYN or SYN-ACK of a side.
    pub fn syn(&self, rng: &mut Rng, from: usize, answer: bool) -> Segment {
        let side = &self.sides[from];
        let ecn = match (rng.below(4), answer) {
            (0, false) => ECE | CWR,
            (0, true) => ECE,
            (1, _) if rng.chance(0.2) => CWR,
            _ => 0,
        };
        Segment {
            from,
            flags: SYN | if answer { ACK } else { 0 } | ecn,
            seq: side.isn,
            ack: if answer {
                self.sides[1 - from].isn.wrapping_add(1)
            } else {
                0
            },
            len: if rng.chance(0.03) { length(rng) } else { 0 },
        }
    }

    /// Octets of sequence space that the segment takes.
    pub fn space(segment: &Segment) -> u32 {
        segment.len + u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0)
    }

    /// What the hosts know after the segment: for segments that are meant to be right.
    pub fn note(&mut self, segment: &Segment) {
        let end = segment.seq.wrapping_add(Self::space(segment));
        let side = &mut self.sides[segment.from];
        side.next = end;
        if segment.flags & ACK != 0 {
            side.acked = segment.ack;
        }
        side.fin |= segment.flags & FIN != 0;
    }

    /// Options of the segment.
    pub fn options(&mut self, rng: &mut Rng, segment: &Segment, odd: f64) -> Vec<u8> {
        let heard = self.sides[1 - segment.from].tsval;
        let side = &mut self.sides[segment.from];
        let mut out;
        if segment.flags & SYN != 0 {
            side.scale = match rng.below(10) {
                0 => None,
                1 => Some(15),
                2 => Some(14),
                3 => Some(rng.bits() as u8),
                n => Some(n as u8),
            };
            out = frame::syn_options(rng, side.scale, self.timestamps);
        } else {
            out = Vec::new();
            if self.timestamps {
                out.extend_from_slice(&[1, 1, 8, 10]);
                let (own, other) = (rng.bits() as u32, rng.bits() as u32);
                side.tsval = match own % 10 {
                    0 => own,
                    _ => side.tsval.wrapping_add(own >> 31),
                };
                let tsecr = match other % 10 {
                    0 => other,
                    1 => heard.wrapping_add(1),
                    _ => heard,
                };
                out.extend_from_slice(&side.tsval.to_be_bytes());
                out.extend_from_slice(&tsecr.to_be_bytes());
            }
            if let Some(blocks) = side.sack {
                let most = if self.timestamps { 3 } else { 4 };
                frame::sack_option(&blocks[..side.sack_count.clamp(1, most)], &mut out);
                if rng.chance(0.5) {
                    side.sack = None;
                }
            }
        }
        if rng.chance(odd) {
            frame::odd_options(rng, &mut out);
        }
        out
    }

    /// SACK blocks for the next ACK of a side: plain, D-SACK below or inside of another block, or wild.
    pub fn choose_sack(&mut self, rng: &mut Rng, from: usize) {
        let peer = self.sides[1 - from].next;
        let side = &mut self.sides[from];
        let mut blocks = [(0, 0); 4];
        for (i, block) in blocks.iter_mut().enumerate() {
            let left = side.acked.wrapping_add(1460 * (1 + 2 * i as u32 + rng.below(3) as u32));
            *block = (left, left.wrapping_add(1460));
        }
        match rng.below(6) {
            0 => blocks[0] = (side.acked.wrapping_sub(1460), side.acked),
            1 => blocks[0] = (blocks[1].0.wrapping_add(rng.below(2) as u32), blocks[1].1),
            2 => blocks[0] = (Self::near(rng, side.acked), Self::near(rng, peer)),
            3 => blocks[0].1 = side.acked.wrapping_add(rng.below(3) as u32),
            _ => {}
        }
        side.sack = Some(blocks);
        side.sack_count = 1 + rng.below(4) as usize;
    }

    /// Headers from Ethernet on, and the length on the wire.
    pub fn encode(&mut self, rng: &mut Rng, segment: &Segment, odd: f64, out: &mut Vec<u8>) -> u32 {
        let options = self.options(rng, segment, odd);
        let (source, destination) = (self.ends[segment.from], self.ends[1 - segment.from]);
        let side = &mut self.sides[segment.from];
        let next_id = side.next_id(rng);
        let mut header = Vec::new();
        let id = if self.shape.ipv6 { 1 } else { next_id };
        match self.protocol {
            TCP => {
                let fields = Tcp {
                    flags: segment.flags,
                    seq: segment.seq,
                    ack: segment.ack,
                    window: side.window,
                };
                frame::tcp((source.port, destination.port), &fields, &options, &mut header);
            }
            frame::ICMP | frame::ICMPV6 => {
                let echo = if self.protocol == frame::ICMP {
                    [8, 0]
                } else {
                    [128, 129]
                };
                header.extend_from_slice(&[echo[segment.from], 0, 0, 0, 0, 9, 0, 1]);
            }
            frame::SCTP => {
                header.extend_from_slice(&source.port.to_be_bytes());
                header.extend_from_slice(&destination.port.to_be_bytes());
                header.extend_from_slice(&[0; 8]);
            }
            _ => {
                header.extend_from_slice(&source.port.to_be_bytes());
                header.extend_from_slice(&destination.port.to_be_bytes());
                header.extend_from_slice(&((8 + segment.len) as u16).to_be_bytes());
                header.extend_from_slice(&[0, 0]);
            }
        }
        let packet = frame::Packet {
            shape: &self.shape,
            source,
            destination,
            protocol: self.protocol,
            id,
            ttl: 40 + rng.below(25) as u8,
            tos: rng.below(4) as u8,
            fragment: 0x4000,
            header: &header,
            payload: segment.len,
        };
        frame::headers(&packet, out);
        (out.len() as u32 + segment.len).clamp(60, 9_216)
    }

    /// An ICMP error of a router about the segment.
    pub fn icmp_error(&self, rng: &mut Rng, segment: &Segment, out: &mut Vec<u8>) -> u32 {
        let (source, destination) = (self.ends[segment.from], self.ends[1 - segment.from]);
        let mut quoted = Vec::new();
        let fields = Tcp {
            seq: segment.seq,
            flags: segment.flags,
            ..Tcp::default()
        };
        frame::tcp((source.port, destination.port), &fields, &[], &mut quoted);
        let plain = Shape {
            ipv6: self.shape.ipv6,
            ip_options: rng.below(3) as u8 * u8::from(rng.chance(0.2)),
            extensions: if rng.chance(0.1) { vec![60, 0] } else { Vec::new() },
            ..Shape::default()
        };
        let inner = frame::Packet {
            shape: &plain,
            source,
            destination,
            protocol: self.protocol,
            id: 1,
            ttl: 1,
            tos: 0,
            fragment: *rng.pick(&[0, 0, 0x4000, 1]).unwrap_or(&0),
            header: &quoted,
            payload: 0,
        };
        frame::headers(&inner, out);
        let keep = 14 + if self.shape.ipv6 { 40 + 32 } else { 20 + 8 };
        let inner = out[14..out.len().min(keep)].to_vec();
        let (kind, protocol) = if self.shape.ipv6 {
            (1 + rng.below(5) as u8, frame::ICMPV6)
        } else {
            (*rng.pick(&[3, 3, 3, 4, 5, 11, 12, 13]).unwrap_or(&3), frame::ICMP)
        };
        let mut header = vec![kind, rng.below(16) as u8, 0, 0, 0, 0, 0, 0];
        header.extend_from_slice(&inner);
        let router = End {
            address: [9; 16],
            port: 0,
        };
        let packet = frame::Packet {
            shape: &self.shape,
            source: router,
            destination: source,
            protocol,
            id: rng.bits() as u16,
            ttl: 250,
            tos: 0xc0,
            fragment: 0,
            header: &header,
            payload: 0,
        };
        frame::headers(&packet, out);
        (out.len() as u32).max(60)
    }
}

fn shape(rng: &mut Rng, few: bool) -> Shape {
    let mut shape = Shape {
        ipv6: rng.chance(0.25),
        ..Shape::default()
    };
    if rng.chance(0.2) {
        shape.vlans = (0..1 + rng.below(2))
            .map(|_| if few { 7 } else { rng.bits() as u16 })
            .collect();
    }
    if rng.chance(0.1) {
        shape.labels = 1 + rng.below(4) as u8;
    }
    if rng.chance(0.1) {
        shape.ip_options = 1 + rng.below(10) as u8;
    }
    if shape.ipv6 && rng.chance(0.3) {
        shape.extensions = (0..1 + rng.below(4))
            .map(|_| *rng.pick(&[0, 60, 43, 51, 44, 135]).unwrap_or(&0))
            .collect();
    }
    shape
}

fn ends(rng: &mut Rng, shape: &Shape, few: bool) -> [End; 2] {
    let mut ends = [End::default(); 2];
    for (place, end) in ends.iter_mut().enumerate() {
        let word = if few { rng.below(4) as u32 } else { rng.bits() as u32 };
        end.address[12..].copy_from_slice(&word.to_be_bytes());
        end.address[12] = if rng.chance(0.5) { 10 } else { 192 };
        if shape.ipv6 {
            end.address[0] = 0x20;
            end.address[7] = rng.below(2) as u8;
        }
        end.port = match rng.below(4) {
            0 if place == 1 => 80,
            _ if few => 1000 + rng.below(8) as u16,
            _ => rng.bits() as u16,
        };
    }
    match rng.below(100) {
        0 => ends[1] = ends[0],
        1 => ends[1].address = ends[0].address,
        2 | 3 => ends[1].port = ends[0].port,
        _ => {}
    }
    ends
}

/// Often just before the numbers wrap.
fn isn(rng: &mut Rng) -> u32 {
    match rng.below(4) {
        0 => 0u32.wrapping_sub(rng.below(5_000) as u32),
        1 => (1u32 << 31).wrapping_sub(rng.below(5_000) as u32),
        _ => rng.bits() as u32,
    }
}

pub(super) fn length(rng: &mut Rng) -> u32 {
    match rng.below(40) {
        0 => 65_535 - 120 + rng.below(140) as u32,
        1 => 16_382 + rng.below(4) as u32,
        2 => 8_960,
        n => [1, 1, 2, 6, 100, 536, 1000, 1448, 1460, 1460][n as usize % 10],
    }
}

pub(super) fn window(rng: &mut Rng) -> u16 {
    match rng.below(8) {
        0 => rng.bits() as u16,
        n => [1, 535, 536, 1459, 1460, 8_192, 65_535, 4][n as usize],
    }
}
