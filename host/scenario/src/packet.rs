//! A segment, and the Ethernet frame it becomes.
//!
//! Payload is zeros, so that it adds nothing to a checksum: the sums written are those of the whole segment although
//! no payload is ever made.

use std::net::Ipv4Addr;

/// TCP flag bits (RFC 9293 3.1).
pub mod flag {
    #![allow(missing_docs)]
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
}

/// Most SACK blocks that a segment can carry (three beside timestamps).
pub const MAX_SACK_BLOCKS: usize = 4;

/// A segment. Sequence and acknowledgment numbers count from the initial ones, so they never wrap here.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Segment {
    /// Sequence number of the first byte; the SYN is 0.
    pub seq: u64,
    /// Acknowledgment number; meaningless without ACK.
    pub ack: u64,
    /// Payload bytes.
    pub len: u32,
    /// Flags.
    pub flags: u8,
    /// The window field as on the wire.
    pub window: u16,
    /// Options of a SYN or SYN-ACK.
    pub syn: SynOptions,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks, a D-SACK first (RFC 2883).
    pub sack: [(u64, u64); MAX_SACK_BLOCKS],
    /// How many of them.
    pub sack_blocks: usize,
}

/// What only a SYN or SYN-ACK carries.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SynOptions {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub scale: Option<u8>,
    /// SACK permitted.
    pub sack: bool,
}

impl Segment {
    /// Has one of these flags.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Sequence space that it takes.
    pub fn space(&self) -> u64 {
        u64::from(self.len) + u64::from(self.has(flag::SYN)) + u64::from(self.has(flag::FIN))
    }

    /// The SACK blocks in use.
    pub fn sacks(&self) -> &[(u64, u64)] {
        &self.sack[..self.sack_blocks]
    }

    /// Length of the TCP header with options.
    fn tcp_header_len(&self) -> usize {
        let mut options = 0;
        if self.syn.mss.is_some() {
            options += 4;
        }
        if self.syn.scale.is_some() {
            options += 4;
        }
        if self.timestamps.is_some() {
            options += 12;
        }
        // Without timestamps it needs two bytes of padding; with them it takes the place of theirs.
        if self.syn.sack && self.timestamps.is_none() {
            options += 4;
        }
        if self.sack_blocks > 0 {
            options += 4 + 8 * self.sack_blocks;
        }
        20 + options
    }

    /// Length of its frame.
    pub fn frame_len(&self) -> u32 {
        (ETHERNET + IP + self.tcp_header_len()) as u32 + self.len
    }
}

const ETHERNET: usize = 14;
const IP: usize = 20;
/// Longest header: Ethernet, IP, TCP with 40 bytes of options.
const MAX_HEADER: usize = ETHERNET + IP + 60;

/// One end of a connection as it stands in a frame.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Number of its host, in its MAC address.
    pub host: u8,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// Its initial sequence number.
    pub isn: u32,
}

/// Makes frames, in a buffer of its own.
#[derive(Debug, Default)]
pub struct Framer {
    buffer: Vec<u8>,
}

impl Framer {
    /// The frame of a segment.
    pub fn frame(&mut self, segment: &Segment, from: &End, to: &End, ip_id: u16, ttl: u8) -> &[u8] {
        let tcp_len = segment.tcp_header_len();
        let frame_len = segment.frame_len() as usize;
        if self.buffer.len() < frame_len.max(MAX_HEADER) {
            self.buffer.resize(frame_len.max(MAX_HEADER), 0);
        }
        // Behind the headers lies nothing but zeros: the payload.
        self.buffer[..MAX_HEADER].fill(0);
        let frame = &mut self.buffer[..frame_len];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to.host]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from.host]);
        frame[12..14].copy_from_slice(&0x0800u16.to_be_bytes());

        let ip = &mut frame[ETHERNET..ETHERNET + IP];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&((frame_len - ETHERNET) as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&ip_id.to_be_bytes());
        ip[6] = 0x40; // don't fragment
        ip[8] = ttl;
        ip[9] = 6;
        ip[12..16].copy_from_slice(&from.address.octets());
        ip[16..20].copy_from_slice(&to.address.octets());
        let sum = checksum(ip, 0);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());

        let tcp = &mut frame[ETHERNET + IP..ETHERNET + IP + tcp_len];
        let wire = |isn: u32, number: u64| isn.wrapping_add(number as u32);
        tcp[0..2].copy_from_slice(&from.port.to_be_bytes());
        tcp[2..4].copy_from_slice(&to.port.to_be_bytes());
        tcp[4..8].copy_from_slice(&wire(from.isn, segment.seq).to_be_bytes());
        if segment.has(flag::ACK) {
            tcp[8..12].copy_from_slice(&wire(to.isn, segment.ack).to_be_bytes());
        }
        tcp[12] = ((tcp_len / 4) as u8) << 4;
        tcp[13] = segment.flags;
        tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
        write_options(&mut tcp[20..], segment, |number| wire(to.isn, number));
        // The pseudo header (RFC 9293 3.1); the zeros of the payload add nothing but their length.
        let addresses = [from.address.octets(), to.address.octets()].concat();
        let pseudo = word_sum(&addresses) + 6 + (tcp_len as u64 + u64::from(segment.len));
        let sum = checksum(tcp, pseudo);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        frame
    }
}

fn write_options(options: &mut [u8], segment: &Segment, wire: impl Fn(u64) -> u32) {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        options[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    if let Some(mss) = segment.syn.mss {
        put(&[2, 4]);
        put(&mss.to_be_bytes());
    }
    if let Some(scale) = segment.syn.scale {
        put(&[1, 3, 3, scale]);
    }
    let sack_permitted = if segment.syn.sack { [4, 2] } else { [1, 1] };
    if let Some((value, echo)) = segment.timestamps {
        put(&sack_permitted);
        put(&[8, 10]);
        put(&value.to_be_bytes());
        put(&echo.to_be_bytes());
    } else if segment.syn.sack {
        put(&[1, 1]);
        put(&sack_permitted);
    }
    if segment.sack_blocks > 0 {
        put(&[1, 1, 5, 2 + 8 * segment.sack_blocks as u8]);
        for &(left, right) in segment.sacks() {
            put(&wire(left).to_be_bytes());
            put(&wire(right).to_be_bytes());
        }
    }
}

fn word_sum(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    pairs
        .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum()
}

/// The Internet checksum (RFC 1071) of an even number of bytes and a sum to begin with.
fn checksum(bytes: &[u8], begin: u64) -> u16 {
    let mut sum = begin + word_sum(bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_lab::frame::TcpSummary;

    #[test]
    fn a_frame_says_what_the_segment_is_and_its_sums_are_right() {
        let end = |host: u8, isn| End {
            host,
            address: Ipv4Addr::new(10, 0, 0, host),
            port: 1000 + u16::from(host),
            isn,
        };
        let segment = Segment {
            seq: 7,
            ack: 4,
            len: 1001,
            flags: flag::ACK | flag::PSH,
            window: 500,
            timestamps: Some((77, 88)),
            sack: [(10, 20), (30, 40), (0, 0), (0, 0)],
            sack_blocks: 2,
            ..Segment::default()
        };
        let mut framer = Framer::default();
        framer.frame(
            &Segment {
                syn: SynOptions {
                    mss: Some(1460),
                    scale: Some(8),
                    sack: true,
                },
                ..segment
            },
            &end(1, 5),
            &end(2, 6),
            3,
            64,
        );
        let frame = framer.frame(&segment, &end(1, u32::MAX - 2), &end(2, 900), 3, 64);
        assert_eq!(frame.len() as u32, segment.frame_len());
        let read = TcpSummary::parse(frame).unwrap();
        assert_eq!((read.src_port, read.dst_port, read.len), (1001, 1002, 1001));
        assert_eq!((read.seq, read.ack, read.flags, read.ip_id), (4, 904, 0x18, 3));
        assert_eq!(checksum(&frame[14..34], 0), 0, "IP");
        let mut tcp = frame[34..].to_vec();
        let pseudo = word_sum(&frame[26..34]) + 6 + tcp.len() as u64;
        tcp.push(0);
        assert_eq!(checksum(&tcp, pseudo), 0, "TCP");
        assert!(
            frame[34 + 20 + 12 + 20..].iter().all(|&byte| byte == 0),
            "payload is zeros"
        );
    }
}
