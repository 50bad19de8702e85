//! Frame to metadata word: link layer, tags and labels, IP, tunnels, TCP.
//!
//! No I/O, no allocation, no panics. A frame may be cut by the capture: lengths come from the
//! headers and from the length on the wire, never from the number of captured bytes. Checksums are
//! not verified, because offloading makes them wrong in captures taken at a sender.
//!
//! What nearly every frame is has a short way of its own (`plain`); for the rest
//! one header is one step; [`MAX_HEADERS`] bounds the steps. Everything that a step learns goes
//! into the `Walk`, so that a tunnel can restart at any layer.

mod ip;
mod link;
mod plain;
mod tcp;
#[cfg(test)]
mod tests;
mod tunnel;

use crate::meta::{Class, End, Key, Meta};
pub use link::ether_type;
use std::ops::Range;
use weir_record::Untracked;

/// Most headers (each tag, label, extension header and tunnel counts) in one frame.
pub const MAX_HEADERS: usize = 32;
/// Bytes of a TCP header that must be captured: up to and including the window.
pub const TCP_CAPTURED: usize = 16;
/// Nic profile: VLAN tags.
pub const NIC_VLAN_TAGS: u8 = 2;
/// Nic profile: MPLS labels.
pub const NIC_MPLS_LABELS: u8 = 4;
/// Nic profile: IPv6 extension headers.
pub const NIC_EXTENSION_HEADERS: u8 = 4;
/// Nic profile: bytes from the start of the frame that the parser sees.
pub const NIC_HEADER_BYTES: usize = 256;
/// Nic profile: longest frame on the wire.
pub const NIC_FRAME_BYTES: u32 = 9216;

/// What the bytes of a frame begin with. Numbers in comments are pcap link types
/// (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet without preamble and FCS (1).
    Ethernet,
    /// IPv4 or IPv6 header (12, 14, 101, 228, 229).
    RawIp,
    /// Linux cooked capture (113).
    LinuxSll,
    /// Linux cooked capture version 2 (276).
    LinuxSll2,
    /// BSD loopback: address family in the byte order of the capturing host (0).
    Null,
    /// OpenBSD loopback: address family in network byte order (108).
    Loop,
    /// PPP, with or without address and control, or Cisco HDLC in its place (9, 50, 104).
    Ppp,
    /// FDDI (10).
    Fddi,
    /// IEEE 802.11 (105).
    Ieee80211,
    /// IEEE 802.11 behind a radiotap header (127).
    Radiotap,
    /// LLC, as on ATM (100).
    Llc,
    /// Frame Relay (107).
    FrameRelay,
    /// Linux netfilter log (239).
    Nflog,
    /// IP over InfiniBand (242).
    Ipoib,
    /// macOS `pktap`: a header that names the link type of what follows (258; its own files say 149).
    Pktap,
}

impl LinkType {
    /// The link type for a number in a pcap or pcapng header, if it is supported.
    pub const fn from_pcap(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Null,
            1 => Self::Ethernet,
            9 | 50 | 104 => Self::Ppp,
            10 => Self::Fddi,
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            100 => Self::Llc,
            105 => Self::Ieee80211,
            107 => Self::FrameRelay,
            108 => Self::Loop,
            113 => Self::LinuxSll,
            127 => Self::Radiotap,
            149 | 258 => Self::Pktap,
            239 => Self::Nflog,
            242 => Self::Ipoib,
            276 => Self::LinuxSll2,
            _ => return None,
        })
    }
}

/// How much of a frame the parser follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Everything this module knows.
    #[default]
    Full,
    /// What the card does, within the `NIC_` limits: Ethernet with tags and labels, IP, no inner
    /// flows (the outer packet is tracked), no fragments.
    Nic,
}

/// What became of a frame.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// The given [`Meta`] is a word for the tracker; `time`, `number` and `port` are the caller's to fill.
    Packet,
    /// Not to be tracked, and why.
    Untracked(Untracked),
    /// A piece of an IP datagram: put together by the caller, then [`Parser::datagram`].
    Fragment(Box<Fragment>),
}

/// What pieces of one datagram have in common (RFC 791 3.2, RFC 8200 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentKey {
    /// Source address, IPv4 as `::ffff:a.b.c.d`.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Identification.
    pub id: u32,
    /// IPv4: protocol. IPv6: 0, because only the first piece's next header counts.
    pub protocol: u8,
    /// As in [`Key`]: a copy on another VLAN is another datagram.
    pub vlans: u32,
    /// As in [`Key`].
    pub overlay: u32,
}

/// A piece of an IP datagram.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Pieces with equal keys belong together.
    pub key: FragmentKey,
    /// Where the piece begins in the datagram's payload, in bytes (a multiple of 8).
    pub offset: u32,
    /// Bytes of the piece, by the IP length.
    pub length: u32,
    /// More pieces follow after this one.
    pub more: bool,
    /// Its captured bytes in the frame; may be fewer than `length`.
    pub data: Range<usize>,
    /// What the headers before the piece said; that of the piece at offset 0 counts.
    pub context: Context,
}

/// State of the walk at the end of an IP header.
#[derive(Clone, Debug)]
pub struct Context {
    meta: Meta,
    source: [u8; 16],
    destination: [u8; 16],
    protocol: u8,
}

/// The parser. Holds no state between frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parser {
    profile: Profile,
}

impl Parser {
    /// A parser for a profile.
    pub const fn new(profile: Profile) -> Self {
        Self { profile }
    }

    /// The profile given to [`Parser::new`].
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Parses the captured bytes of a frame that was `wire` bytes long on the wire. What was in `meta` does not count;
    /// it is large and lives where the caller needs it.
    #[inline(always)]
    pub fn parse(&self, link: LinkType, frame: &[u8], wire: u32, meta: &mut Meta) -> Parsed {
        let wire = wire.max(u32::try_from(frame.len()).unwrap_or(u32::MAX));
        if self.profile == Profile::Full && link == LinkType::Ethernet && plain::parse(frame, wire, meta).is_some() {
            return Parsed::Packet;
        }
        self.walk(link, frame, wire, meta)
    }

    /// Parses header by header.
    #[inline(never)]
    fn walk(&self, link: LinkType, frame: &[u8], wire: u32, meta: &mut Meta) -> Parsed {
        if self.profile == Profile::Nic {
            if link != LinkType::Ethernet {
                return Parsed::Untracked(Untracked::Link);
            }
            if wire > NIC_FRAME_BYTES {
                return Parsed::Untracked(Untracked::Oversize);
            }
        }
        let layer = match link {
            LinkType::Ethernet => Layer::Ethernet,
            LinkType::RawIp => Layer::Ip,
            other => Layer::Link(other),
        };
        *meta = Meta {
            wire,
            ..Meta::default()
        };
        Walk::new(self.profile, frame, wire, meta).run(layer)
    }

    /// Parses a datagram put together from fragments: `context` of the piece at offset 0, `data`
    /// the captured bytes from its start without a hole, `length` its bytes by the IP lengths,
    /// `wire` the length of the frame that completed it. May yield a [`Fragment`] again (a tunnel
    /// whose inner packet is a fragment), with `data` a range of this `data`.
    pub fn datagram(&self, context: &Context, data: &[u8], length: u32, wire: u32, meta: &mut Meta) -> Parsed {
        *meta = Meta { wire, ..context.meta };
        let mut walk = Walk::new(self.profile, data, wire, meta);
        walk.left = length;
        walk.stated = true;
        walk.source = context.source;
        walk.destination = context.destination;
        walk.run(Layer::Transport(context.protocol))
    }
}

/// The header that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// A link type other than Ethernet and raw IP.
    Link(LinkType),
    Ethernet,
    /// Whatever this EtherType announces.
    EtherType(u16),
    Llc,
    Ppp,
    /// IPv4 or IPv6, by the version.
    Ip,
    /// Whatever this IP protocol number announces.
    Transport(u8),
    Gre,
    ErspanII,
    ErspanIII,
    Vxlan,
    Geneve,
    GtpU,
}

/// Why a walk ended.
enum Stop {
    /// `Walk::meta` is whole.
    Done,
    Untracked(Untracked),
    Fragment(Piece),
}

/// The position of a fragment, see [`Fragment`].
struct Piece {
    id: u32,
    key_protocol: u8,
    protocol: u8,
    offset: u32,
    more: bool,
}

type Step<T = Layer> = Result<T, Stop>;

/// Ends the walk.
fn stop<T>(reason: Untracked) -> Step<T> {
    Err(Stop::Untracked(reason))
}

struct Walk<'a> {
    profile: Profile,
    /// Captured bytes; for the nic profile the first [`NIC_HEADER_BYTES`].
    data: &'a [u8],
    /// Position of the next header in `data`.
    at: usize,
    /// Bytes from `at` to the end of the enclosing layer, by its length: may be more than were
    /// captured, or fewer (padding).
    left: u32,
    /// `left` comes from a header, which bounds what is inside. What the capture says about the
    /// length on the wire does not: frames lose bytes on the way to a capture, and the sequence
    /// numbers go on by the IP length all the same.
    stated: bool,
    /// What a header beyond `data` means.
    beyond: Untracked,
    meta: &'a mut Meta,
    source: [u8; 16],
    destination: [u8; 16],
    vlan_tags: u8,
    mpls_labels: u8,
    extension_headers: u8,
    /// The packet that carries the tunnel in progress: tracked if there is no IP inside.
    outer: Option<Meta>,
}

impl<'a> Walk<'a> {
    #[inline]
    fn new(profile: Profile, frame: &'a [u8], wire: u32, meta: &'a mut Meta) -> Self {
        let (data, beyond) = match (profile, frame.get(..NIC_HEADER_BYTES)) {
            (Profile::Nic, Some(head)) => (head, Untracked::Depth),
            _ => (frame, Untracked::Truncated),
        };
        Self {
            profile,
            data,
            at: 0,
            left: wire,
            stated: false,
            beyond,
            meta,
            source: [0; 16],
            destination: [0; 16],
            vlan_tags: 0,
            mpls_labels: 0,
            extension_headers: 0,
            outer: None,
        }
    }

    #[inline]
    fn run(mut self, first: Layer) -> Parsed {
        let mut layer = first;
        for _ in 0..MAX_HEADERS {
            match self.step(layer) {
                Ok(next) => layer = next,
                Err(Stop::Done) => return Parsed::Packet,
                Err(Stop::Untracked(reason)) => return self.give_up(reason),
                Err(Stop::Fragment(piece)) => return Parsed::Fragment(Box::new(self.fragment(&piece))),
            }
        }
        Parsed::Untracked(Untracked::Depth)
    }

    #[inline]
    fn step(&mut self, layer: Layer) -> Step {
        match layer {
            Layer::Ethernet => self.ethernet(),
            Layer::EtherType(kind) => self.ether_type(kind),
            Layer::Ip => self.ip(),
            Layer::Transport(protocol) => self.transport(protocol),
            Layer::Llc => self.llc(),
            Layer::Link(link) => self.link(link),
            Layer::Ppp => self.ppp(),
            Layer::Gre => self.gre(),
            Layer::ErspanII => self.erspan_ii(),
            Layer::ErspanIII => self.erspan_iii(),
            Layer::Vxlan => self.vxlan(),
            Layer::Geneve => self.geneve(),
            Layer::GtpU => self.gtp_u(),
        }
    }

    /// A tunnel without IP inside is tracked as the packet that carries it.
    #[cold]
    fn give_up(self, reason: Untracked) -> Parsed {
        match self.outer {
            Some(outer) if matches!(reason, Untracked::NotIp | Untracked::Link) => {
                *self.meta = outer;
                Parsed::Packet
            }
            _ => Parsed::Untracked(reason),
        }
    }

    #[cold]
    fn fragment(self, piece: &Piece) -> Fragment {
        let start = self.at.min(self.data.len());
        let end = self.at.saturating_add(self.left as usize).min(self.data.len());
        Fragment {
            key: FragmentKey {
                source: self.source,
                destination: self.destination,
                id: piece.id,
                protocol: piece.key_protocol,
                vlans: self.meta.key.vlans,
                overlay: self.meta.key.overlay,
            },
            offset: piece.offset,
            length: self.left,
            more: piece.more,
            data: start..end,
            context: Context {
                meta: *self.meta,
                source: self.source,
                destination: self.destination,
                protocol: piece.protocol,
            },
        }
    }

    /// The next `N` bytes, without going on.
    #[inline]
    fn peek<const N: usize>(&self) -> Step<&'a [u8; N]> {
        if (self.left as usize) < N {
            return stop(Untracked::Malformed);
        }
        match self.data.get(self.at..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => Ok(bytes),
            None => stop(self.beyond),
        }
    }

    /// The next `N` bytes.
    #[inline]
    fn take<const N: usize>(&mut self) -> Step<&'a [u8; N]> {
        let bytes = self.peek()?;
        self.at += N;
        self.left -= N as u32;
        Ok(bytes)
    }

    /// Goes on by `count` bytes, which need not be captured.
    #[inline]
    fn skip(&mut self, count: u32) -> Step<()> {
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                self.at += count as usize;
                Ok(())
            }
            None => stop(Untracked::Malformed),
        }
    }

    /// A header says how many bytes belong to its layer from `at` on.
    #[inline]
    fn state_length(&mut self, length: u32) {
        self.left = if self.stated { length.min(self.left) } else { length };
        self.stated = true;
    }

    /// Sets the key from the addresses in hand; VLANs and overlay stay.
    #[inline]
    fn set_key(&mut self, protocol: u8, source_port: u16, destination_port: u16) {
        let source = End {
            addr: self.source,
            port: source_port,
        };
        let destination = End {
            addr: self.destination,
            port: destination_port,
        };
        let (key, from_low) = Key::new(source, destination, protocol);
        self.meta.key = Key {
            vlans: self.meta.key.vlans,
            overlay: self.meta.key.overlay,
            ..key
        };
        self.meta.from_low = from_low;
    }

    /// The word for a packet that is not TCP.
    fn set_other(&mut self, protocol: u8, ports: (u16, u16), payload: u32) {
        self.set_key(protocol, ports.0, ports.1);
        self.meta.class = Class::Other;
        self.meta.payload = payload;
    }

    /// Ends the walk with a packet that is not TCP.
    fn other(&mut self, protocol: u8, ports: (u16, u16), payload: u32) -> Step {
        self.set_other(protocol, ports, payload);
        Err(Stop::Done)
    }
}

/// Big-endian 16 bits at a fixed place of a header.
#[inline]
fn be16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Big-endian 32 bits at a fixed place of a header.
#[inline]
fn be32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
