//! The bytes of frames, whole and hurt. Checksums are left 0: nothing that measures looks at them.

use crate::rng::Rng;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMP: u8 = 1;
pub(super) const ICMPV6: u8 = 58;
pub(super) const SCTP: u8 = 132;

/// One end of a conversation; IPv4 uses the last four bytes of the address.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    pub address: [u8; 16],
    pub port: u16,
}

/// What stands around the transport header.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    pub ipv6: bool,
    pub vlans: Vec<u16>,
    pub labels: u8,
    /// Words of IPv4 options.
    pub ip_options: u8,
    /// IPv6 extension headers by kind.
    pub extensions: Vec<u8>,
}

/// An IP packet to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub shape: &'a Shape,
    pub source: End,
    pub destination: End,
    pub protocol: u8,
    pub id: u16,
    pub ttl: u8,
    pub tos: u8,
    /// IPv4 flags and fragment offset.
    pub fragment: u16,
    /// Transport header.
    pub header: &'a [u8],
    /// Bytes behind it by the IP length.
    pub payload: u32,
}

/// Headers of the packet from Ethernet on; the payload is the writer's.
pub(super) fn headers(packet: &Packet<'_>, out: &mut Vec<u8>) {
    let shape = packet.shape;
    out.clear();
    let mac = |end: &End| {
        [
            2,
            end.address[11],
            end.address[12],
            end.address[13],
            end.address[14],
            end.address[15],
        ]
    };
    out.extend_from_slice(&mac(&packet.destination));
    out.extend_from_slice(&mac(&packet.source));
    for (depth, tag) in shape.vlans.iter().enumerate() {
        let kind: u16 = match (depth + 1 < shape.vlans.len(), tag & 1) {
            (true, 0) => 0x88a8,
            (true, _) => 0x9100,
            _ => 0x8100,
        };
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&tag.to_be_bytes());
    }
    let network: u16 = match (shape.labels, shape.ipv6) {
        (0, false) => 0x0800,
        (0, true) => 0x86dd,
        _ => 0x8847 + (packet.id & 1),
    };
    out.extend_from_slice(&network.to_be_bytes());
    for label in 0..shape.labels {
        let bottom = u8::from(label + 1 == shape.labels);
        out.extend_from_slice(&[0, label, 0x10 | bottom, 64]);
    }
    if shape.ipv6 {
        ipv6(packet, out)
    } else {
        ipv4(packet, out)
    }
    out.extend_from_slice(packet.header);
}

fn ipv4(packet: &Packet<'_>, out: &mut Vec<u8>) {
    let header = 20 + 4 * u32::from(packet.shape.ip_options);
    let total = header + packet.header.len() as u32 + packet.payload;
    // What does not fit stands for segmentation in the card: a length of 0.
    let total = u16::try_from(total).unwrap_or(0);
    out.extend_from_slice(&[0x40 | (header / 4) as u8, packet.tos]);
    out.extend_from_slice(&total.to_be_bytes());
    out.extend_from_slice(&packet.id.to_be_bytes());
    out.extend_from_slice(&packet.fragment.to_be_bytes());
    out.extend_from_slice(&[packet.ttl, packet.protocol, 0, 0]);
    out.extend_from_slice(&packet.source.address[12..]);
    out.extend_from_slice(&packet.destination.address[12..]);
    out.resize(out.len() + 4 * usize::from(packet.shape.ip_options), 1);
}

/// Length of an extension header as written here, by its kind and place in the chain.
fn extension_length(kind: u8, place: usize) -> usize {
    match kind {
        44 => 8,
        _ => 8 * (1 + place % 3),
    }
}

fn ipv6(packet: &Packet<'_>, out: &mut Vec<u8>) {
    let kinds = &packet.shape.extensions;
    let extensions: usize = kinds.iter().enumerate().map(|(i, k)| extension_length(*k, i)).sum();
    let length = extensions as u32 + packet.header.len() as u32 + packet.payload;
    let length = u16::try_from(length).unwrap_or(0);
    out.extend_from_slice(&[0x60 | packet.tos >> 4, packet.tos << 4, packet.id as u8, 7]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&[kinds.first().copied().unwrap_or(packet.protocol), packet.ttl]);
    out.extend_from_slice(&packet.source.address);
    out.extend_from_slice(&packet.destination.address);
    for (place, kind) in kinds.iter().enumerate() {
        let next = kinds.get(place + 1).copied().unwrap_or(packet.protocol);
        let length = extension_length(*kind, place);
        let start = out.len();
        out.extend_from_slice(&[next, 0]);
        match *kind {
            // An atomic fragment (RFC 6946).
            44 => out.extend_from_slice(&[0, 0, 0, 0, 0, 1]),
            // In units of 4 bytes less 2 (RFC 4302 2.2).
            51 => out[start + 1] = (length / 4 - 2) as u8,
            _ => out[start + 1] = (length / 8 - 1) as u8,
        }
        out.resize(start + length, 0);
    }
}

/// A TCP header.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tcp {
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
}

/// A TCP header with options, which are filled up to whole words with END.
pub(super) fn tcp(ports: (u16, u16), header: &Tcp, options: &[u8], out: &mut Vec<u8>) {
    let options = &options[..options.len().min(40)];
    out.clear();
    out.extend_from_slice(&ports.0.to_be_bytes());
    out.extend_from_slice(&ports.1.to_be_bytes());
    out.extend_from_slice(&header.seq.to_be_bytes());
    out.extend_from_slice(&header.ack.to_be_bytes());
    let words = 5 + options.len().div_ceil(4);
    out.extend_from_slice(&[(words << 4) as u8, header.flags]);
    out.extend_from_slice(&header.window.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, 0]);
    out.extend_from_slice(options);
    out.resize(4 * words, 0);
}

/// Options that a SYN of a sane host carries, in some order.
pub(super) fn syn_options(rng: &mut Rng, scale: Option<u8>, timestamps: bool) -> Vec<u8> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    if rng.chance(0.9) {
        let mss = *rng
            .pick(&[1460u16, 1448, 536, 8960, 1, 0, 65_535, 1400])
            .unwrap_or(&1460);
        parts.push([&[2, 4][..], &mss.to_be_bytes()].concat());
    }
    if rng.chance(0.6) {
        parts.push(vec![4, 2]);
    }
    if timestamps {
        parts.push([&[8, 10][..], &(rng.bits() as u32).to_be_bytes(), &[0; 4]].concat());
    }
    if let Some(scale) = scale {
        parts.push(vec![3, 3, scale]);
    }
    let mut out = Vec::new();
    while !parts.is_empty() {
        let part = parts.swap_remove(rng.below(parts.len() as u64) as usize);
        out.extend(std::iter::repeat_n(1, rng.below(3) as usize));
        out.extend_from_slice(&part);
    }
    out
}

/// SACK blocks as an option with the NOPs that usually stand before it.
pub(super) fn sack_option(blocks: &[(u32, u32)], out: &mut Vec<u8>) {
    out.extend_from_slice(&[1, 1, 5, 2 + 8 * blocks.len() as u8]);
    for (left, right) in blocks {
        out.extend_from_slice(&left.to_be_bytes());
        out.extend_from_slice(&right.to_be_bytes());
    }
}

/// Options that no sane host sends: unknown and doubled kinds, wrong lengths, an end in the middle.
pub(super) fn odd_options(rng: &mut Rng, options: &mut Vec<u8>) {
    match rng.below(8) {
        0 => {
            let length = 2 + rng.below(9) as u8;
            let kind = *rng.pick(&[6u8, 7, 14, 19, 28, 30, 34, 253, 254, 255]).unwrap_or(&254);
            options.splice(0..0, std::iter::repeat_n(0x55, usize::from(length)));
            options[..2].copy_from_slice(&[kind, length]);
        }
        1 => {
            let again = options.clone();
            options.extend_from_slice(&again);
        }
        2 if options.len() > 1 => {
            let place = rng.below(options.len() as u64) as usize;
            options[place] = rng.bits() as u8;
        }
        3 => options.extend_from_slice(&[rng.bits() as u8, rng.below(2) as u8]),
        4 => options.extend_from_slice(&[5, 2 + rng.below(40) as u8, 1, 2, 3, 4, 5, 6, 7, 8]),
        5 => {
            let place = rng.below(options.len() as u64 + 1) as usize;
            options.insert(place, 0);
        }
        6 => {
            let kind = 2 + rng.below(7) as u8;
            let length = 2 + rng.below(12) as u8;
            options.extend_from_slice(&[kind, length]);
            options.resize(options.len() + usize::from(length) - 2, 0xa5);
        }
        _ => {
            options.clear();
            options.extend((0..40).map(|_| rng.bits() as u8 & 15));
        }
    }
    options.truncate(40);
}

/// A frame that no flow counts, or barely: other EtherTypes, tunnels, fragments, headers that lie. Returns bytes and the
/// length on the wire.
pub(super) fn junk(rng: &mut Rng, source: End, destination: End, out: &mut Vec<u8>) -> u32 {
    let mut shape = Shape {
        ipv6: rng.chance(0.5),
        ..Shape::default()
    };
    let mut header = Vec::new();
    let some_tcp = Tcp {
        flags: 0x10,
        seq: rng.bits() as u32,
        window: 1000,
        ..Tcp::default()
    };
    tcp((source.port, destination.port), &some_tcp, &[], &mut header);
    let mut packet = Packet {
        shape: &Shape::default(),
        source,
        destination,
        protocol: TCP,
        id: rng.bits() as u16,
        ttl: 64,
        tos: 0,
        fragment: 0,
        header: &header,
        payload: 10,
    };
    let choice = rng.below(19);
    match choice {
        0 => shape.vlans = (0..3 + rng.below(3)).map(|_| rng.bits() as u16).collect(),
        1 => shape.labels = 5 + rng.below(4) as u8,
        2 => {
            shape.ipv6 = true;
            shape.extensions = (0..5 + rng.below(3))
                .map(|_| *rng.pick(&[0, 60, 43, 51, 44, 135]).unwrap_or(&0))
                .collect();
        }
        3 | 16 => {
            shape.ipv6 = false;
            packet.fragment = *rng.pick(&[0x2000, 0x2001, 1, 0x1fff, 0x6000]).unwrap_or(&1);
        }
        4 => packet.protocol = *rng.pick(&[4, 41, 47, 50, 89, 59, 255, 2]).unwrap_or(&47),
        5 => {
            packet.protocol = *rng
                .pick(&[44, 0, 60, 43, 51, 135, ICMP, ICMPV6, SCTP, UDP])
                .unwrap_or(&44)
        }
        _ => {}
    }
    packet.shape = &shape;
    headers(&packet, out);
    let length = out.len();
    match choice {
        6 | 15 | 18 => {
            // Not IP at all.
            let kinds = [
                0x0806u16, 0x8863, 0x0026, 0x05dc, 0x0600, 0x88cc, 0x6558, 0x88be, 0x8847, 0,
            ];
            let pppoe = rng.chance(0.5);
            let kind = if pppoe { 0x8864 } else { *rng.pick(&kinds).unwrap_or(&0) };
            out[12..14].copy_from_slice(&kind.to_be_bytes());
        }
        7 => out.truncate(1 + rng.below(length as u64) as usize),
        8 | 9 => {
            // A header byte that lies.
            let place = 12 + rng.below((length - 12) as u64) as usize;
            out[place] = rng.bits() as u8;
        }
        10 if !shape.ipv6 => out[14] = 0x40 | rng.below(16) as u8,
        11 if !shape.ipv6 => out[46] = rng.bits() as u8,
        12 | 17 => return 9_212 + rng.below(14) as u32,
        13 => {
            // Extension headers and options until the parser has seen enough.
            let deep = Shape {
                ipv6: true,
                extensions: vec![60; 3],
                ..Shape::default()
            };
            let mut long = Packet { shape: &deep, ..packet };
            long.protocol = 60;
            headers(&long, out);
            let at = length.min(out.len() - 1);
            out[at] = 30;
            out.resize(400, 1);
        }
        14 if !shape.ipv6 => {
            let total = rng.below(64) as u16;
            out[16..18].copy_from_slice(&total.to_be_bytes());
        }
        _ => {}
    }
    (out.len() as u32 + rng.below(3) as u32 * 10).max(60)
}
