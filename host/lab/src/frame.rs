//! The few header fields of a frame that the truth log names.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use weir_record::{PROTOCOL_TCP, tcp_flag};

const ETHERTYPE_IPV4: u16 = 0x0800;
/// Where the IP header begins.
pub(crate) const IP_AT: usize = 14;
const OPTION_END: u8 = 0;
/// The option of one byte that says nothing.
pub(crate) const OPTION_NOTHING: u8 = 1;
/// RFC 2018 2.
const OPTION_SACK_PERMITTED: u8 = 4;
/// RFC 7323 3.2.
const OPTION_TIMESTAMPS: u8 = 8;

/// TCP over IPv4 as the lab's hosts send it: no VLAN, no fragments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSummary {
    /// Source address.
    pub src: IpAddr,
    /// Source port.
    pub src_port: u16,
    /// Destination address.
    pub dst: IpAddr,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number as on the wire.
    pub seq: u32,
    /// Acknowledgment number as on the wire; meaningless unless ACK is set.
    pub ack: u32,
    /// Payload bytes.
    pub len: u32,
    /// Flags, bit 0 = FIN ... bit 7 = CWR.
    pub flags: u8,
    /// IPv4 identification.
    pub ip_id: u16,
    /// A SYN that permits SACK.
    pub sack_permitted: bool,
    /// Timestamp of the sender (RFC 7323 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tsval: Option<u32>,
}

impl TcpSummary {
    /// Reads an Ethernet frame; `None` when it is not whole TCP over IPv4.
    pub fn parse(frame: &[u8]) -> Option<TcpSummary> {
        let ip = frame.get(IP_AT..)?;
        if !is_ipv4(frame) || *ip.get(9)? != PROTOCOL_TCP {
            return None;
        }
        let ip_header_len = usize::from(ip.first()? & 0x0f) * 4;
        let total_len = usize::from(ip_total_len(frame)?);
        let fragment_offset = be16(ip, 6)? & 0x1fff;
        if ip_header_len < 20 || fragment_offset != 0 {
            return None;
        }
        let tcp = ip.get(ip_header_len..)?;
        let tcp_header_len = usize::from(tcp.get(12)? >> 4) * 4;
        let payload_len = total_len.checked_sub(ip_header_len + tcp_header_len)?;
        Some(TcpSummary {
            src: ipv4(ip, 12)?,
            src_port: be16(tcp, 0)?,
            dst: ipv4(ip, 16)?,
            dst_port: be16(tcp, 2)?,
            seq: be32(tcp, 4)?,
            ack: be32(tcp, 8)?,
            len: u32::try_from(payload_len).ok()?,
            flags: *tcp.get(13)?,
            sack_permitted: option_at(tcp.get(20..tcp_header_len)?, OPTION_SACK_PERMITTED).is_some(),
            ip_id: be16(ip, 4)?,
            tsval: find_option(frame, OPTION_TIMESTAMPS).and_then(|(_, option)| be32(frame.get(option)?, 2)),
        })
    }

    /// An ACK and nothing else.
    pub fn is_pure_ack(&self) -> bool {
        self.len == 0 && self.flags & (tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST | tcp_flag::ACK) == tcp_flag::ACK
    }

    /// Sequence numbers that the segment takes: payload, SYN and FIN (RFC 9293 3.4).
    pub fn sequence_len(&self) -> u32 {
        self.len + u32::from(self.flags & tcp_flag::SYN != 0) + u32::from(self.flags & tcp_flag::FIN != 0)
    }

    /// FIN is set.
    pub fn is_fin(&self) -> bool {
        self.flags & tcp_flag::FIN != 0
    }

    /// SYN is set: a SYN or a SYN-ACK.
    pub fn is_syn(&self) -> bool {
        self.flags & tcp_flag::SYN != 0
    }
}

/// An Ethernet frame with IPv4 in it.
pub(crate) fn is_ipv4(frame: &[u8]) -> bool {
    be16(frame, 12) == Some(ETHERTYPE_IPV4) && frame.get(IP_AT).is_some_and(|first| first >> 4 == 4)
}

/// Length of the IPv4 packet, header included.
pub(crate) fn ip_total_len(frame: &[u8]) -> Option<u16> {
    be16(frame, IP_AT + 2)
}

/// Where the TCP header of a frame that [`TcpSummary::parse`] reads begins, and where in it an option of this kind and of a
/// known length is.
pub(crate) fn find_option(frame: &[u8], wanted: u8) -> Option<(usize, Range<usize>)> {
    let tcp_at = IP_AT + usize::from(frame.get(IP_AT)? & 0x0f) * 4;
    let first = tcp_at + 20;
    let end = tcp_at + usize::from(frame.get(tcp_at + 12)? >> 4) * 4;
    let options = frame.get(first..end)?;
    let at = option_at(options, wanted)?;
    let option = at..at + usize::from(*options.get(at + 1)?);
    options.get(option.clone())?;
    Some((tcp_at, first + option.start..first + option.end))
}

/// Where TCP options have one of this kind (RFC 9293 3.1).
fn option_at(options: &[u8], wanted: u8) -> Option<usize> {
    let mut at = 0;
    while let [kind, rest @ ..] = options.get(at..)? {
        at += match (*kind, rest) {
            (kind, _) if kind == wanted => return Some(at),
            (OPTION_NOTHING, _) => 1,
            (OPTION_END, _) => return None,
            (_, [len, ..]) if *len >= 2 => usize::from(*len),
            _ => return None,
        };
    }
    None
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn ipv4(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::checksum::tests::checked_frame;
    use crate::rng::Rng;

    /// A TCP frame of `payload` bytes; checksums are left zero.
    pub(crate) fn tcp_frame(dst_port: u16, flags: u8, seq: u32, payload: usize) -> Vec<u8> {
        let mut frame = vec![0u8; 54 + payload];
        frame[12..14].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
        frame[18..20].copy_from_slice(&0x1234u16.to_be_bytes());
        frame[23] = PROTOCOL_TCP;
        frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
        frame[30..34].copy_from_slice(&[10, 0, 0, 2]);
        frame[34..36].copy_from_slice(&40_000u16.to_be_bytes());
        frame[36..38].copy_from_slice(&dst_port.to_be_bytes());
        frame[38..42].copy_from_slice(&seq.to_be_bytes());
        frame[46] = 5 << 4;
        frame[47] = flags;
        frame
    }

    #[test]
    fn reads_the_named_fields() {
        let summary = TcpSummary::parse(&tcp_frame(80, 0x18, 77, 9)).unwrap();
        assert_eq!((summary.src_port, summary.dst_port), (40_000, 80));
        assert_eq!(
            (summary.seq, summary.len, summary.flags, summary.ip_id),
            (77, 9, 0x18, 0x1234)
        );
        assert!(!summary.is_syn());
        assert_eq!(summary.tsval, None);
        let mut rng = Rng::new(1, 0);
        let timed = checked_frame(&mut rng, 0x10, &[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(TcpSummary::parse(&timed).unwrap().tsval, Some(0x0102_0304));
    }

    #[test]
    fn options_are_walked() {
        let at = |options: &[u8]| option_at(options, OPTION_SACK_PERMITTED);
        assert_eq!(at(&[2, 4, 5, 180, 1, 3, 3, 7, 4, 2]), Some(8));
        assert_eq!(at(&[2, 4, 4, 4, 0, 4, 2]), None, "inside of another, behind the end");
        assert_eq!(at(&[8, 0, 4, 2]), None, "no length");
        assert_eq!(at(&[8]), None);
        assert_eq!(at(&[8, 9, 4]), None, "longer than all of them");
    }

    #[test]
    fn short_and_foreign_frames_are_none() {
        let frame = tcp_frame(80, tcp_flag::SYN, 1, 0);
        for len in 0..48 {
            assert_eq!(TcpSummary::parse(&frame[..len]), None, "cut to {len}");
        }
        let mut arp = frame.clone();
        arp[13] = 0x06;
        assert_eq!(TcpSummary::parse(&arp), None);
    }
}
