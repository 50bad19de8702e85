//! The metadata word: what the parser tells the tracker about one frame.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};

use weir_record::NO_SCALE;

/// One end of a flow. IPv4 addresses are IPv4-mapped; ordering is bytewise, address then port.
#[derive(Clone, Copy, Debug, Default, Eq, PartialOrd, Ord)]
pub struct End {
    /// Address, `::ffff:a.b.c.d` for IPv4.
    pub addr: [u8; 16],
    /// Port (ICMP echo: identifier; other protocols: 0).
    pub port: u16,
}

impl PartialEq for End {
    /// As derived, with the address compared as one number instead of by a call.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        u128::from_ne_bytes(self.addr) == u128::from_ne_bytes(other.addr) && self.port == other.port
    }
}

impl Hash for End {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (u128::from_ne_bytes(self.addr), self.port).hash(state);
    }
}

impl End {
    /// The address with IPv4-mapped ones as IPv4.
    pub fn ip(&self) -> IpAddr {
        Ipv6Addr::from(self.addr).to_canonical()
    }
}

/// The symmetric key of a flow: the same for both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The end that compares lower.
    pub low: End,
    /// The other end.
    pub high: End,
    /// IP protocol number.
    pub protocol: u8,
    /// Outer VLAN id in bits 11..0, inner in 23..12.
    pub vlans: u32,
    /// VNI of VXLAN or GENEVE plus 1 (the ids that are the same in both directions), else 0.
    pub overlay: u32,
}

impl Key {
    /// The key for a packet from `source` to `destination`, and whether the source is the low end.
    pub fn new(source: End, destination: End, protocol: u8) -> (Self, bool) {
        let number = |end: &End| (u128::from_be_bytes(end.addr), end.port);
        let from_low = number(&source) <= number(&destination);
        let (low, high) = if from_low {
            (source, destination)
        } else {
            (destination, source)
        };
        (
            Self {
                low,
                high,
                protocol,
                ..Self::default()
            },
            from_low,
        )
    }
}

/// What the tracker does with the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// A TCP segment.
    #[default]
    Tcp,
    /// Any other protocol: counted in OPEN, INTERVAL and CLOSE only.
    Other,
    /// An ICMP error that quotes a packet: `key`, `from_low` and `seq` are those of the quoted
    /// packet; `payload` is the ICMP type times 256 plus the code.
    IcmpError,
}

/// One SACK block: left and right edge (RFC 2018 section 3).
pub type SackBlock = (u32, u32);

/// TCP options that the tracker uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// MSS option; 0 = absent.
    pub mss: u16,
    /// Window scale option as sent, or [`NO_SCALE`].
    pub scale: u8,
    /// SACK permitted option.
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Number of SACK blocks, 0..=4.
    pub sack_count: u8,
    /// The blocks; unused ones are (0, 0).
    pub sack: [SackBlock; 4],
    /// Options were cut by the capture, malformed, or beyond the limits: some may be missing.
    pub incomplete: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mss: 0,
            scale: NO_SCALE,
            sack_permitted: false,
            timestamps: None,
            sack_count: 0,
            sack: [(0, 0); 4],
            incomplete: false,
        }
    }
}

/// The parsed frame. All numbers in host order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// TAI ns at start of frame.
    pub time: u64,
    /// Number of the frame on its source, from 1.
    pub number: u64,
    /// Receiving port, 0..16.
    pub port: u8,
    /// What to do with it.
    pub class: Class,
    /// Flow key.
    pub key: Key,
    /// The source is `key.low`.
    pub from_low: bool,
    /// Frame bytes on the wire (without FCS when the source does not say otherwise).
    pub wire: u32,
    /// TCP or transport payload bytes by the IP length, not by what was captured.
    pub payload: u32,
    /// TCP sequence number.
    pub seq: u32,
    /// TCP acknowledgment number (0 without the ACK flag).
    pub ack: u32,
    /// TCP flags ([`weir_record::tcp_flag`]).
    pub flags: u8,
    /// TCP window, raw.
    pub window: u16,
    /// IPv4 identification, 0 for IPv6.
    pub ip_id: u16,
    /// TTL or hop limit.
    pub ttl: u8,
    /// TOS or traffic class.
    pub tos: u8,
    /// TCP options.
    pub options: Options,
    /// Source MAC, 0 when the link has none.
    pub source_mac: [u8; 6],
    /// Destination MAC.
    pub destination_mac: [u8; 6],
    /// `TunnelKind` of the innermost tunnel as its number.
    pub tunnel_kind: u8,
    /// Its id.
    pub tunnel_id: u32,
}
