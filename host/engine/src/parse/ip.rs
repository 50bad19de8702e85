//! IPv4, IPv6 with extension headers, and the protocols directly above them.

use super::{Layer, NIC_EXTENSION_HEADERS, Piece, Profile, Step, Stop, Walk, be16, be32, stop, tunnel};
use crate::meta::{Class, End, Key};
use weir_record::{TunnelKind, Untracked};

/// IP protocol numbers (IANA protocol-numbers).
pub(super) mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const IPV4: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const IPV6: u8 = 41;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const GRE: u8 = 47;
    pub const AUTHENTICATION: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const NO_NEXT: u8 = 59;
    pub const DESTINATION_OPTIONS: u8 = 60;
    pub const SCTP: u8 = 132;
    pub const MOBILITY: u8 = 135;
}
use protocol as ipp;

/// Bytes before the payload of UDP and of ICMP.
const SHORT_HEADER: u32 = 8;
/// SCTP common header (RFC 9260 3.1).
const SCTP_HEADER: u32 = 12;

/// An IPv4 address as IPv4-mapped IPv6 address (RFC 4291 2.5.5.2).
#[inline]
pub(super) fn mapped(a: &[u8]) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a[0], a[1], a[2], a[3]]
}

impl Walk<'_> {
    #[inline]
    pub(super) fn ip(&mut self) -> Step {
        match self.peek::<1>()?[0] >> 4 {
            4 => self.ipv4(),
            6 => self.ipv6(),
            _ => stop(Untracked::Malformed),
        }
    }

    /// RFC 791 3.1.
    #[inline]
    fn ipv4(&mut self) -> Step {
        let h: &[u8; 20] = self.peek()?;
        let header = u32::from(h[0] & 0x0f) * 4;
        match be16(h, 2) {
            // The sender's stack handed down more than 65,535 bytes for segmentation in the card.
            0 => {}
            total => self.state_length(u32::from(total)),
        }
        if header < 20 {
            return stop(Untracked::Malformed);
        }
        self.skip(header)?;
        self.meta.tos = h[1];
        self.meta.ip_id = be16(h, 4);
        self.meta.ttl = h[8];
        self.source = mapped(&h[12..16]);
        self.destination = mapped(&h[16..20]);
        let fragment = be16(h, 6);
        let (more, offset) = (fragment & 0x2000 != 0, u32::from(fragment & 0x1fff) * 8);
        if more || offset != 0 {
            let id = u32::from(be16(h, 4));
            return self.piece(Piece {
                id,
                key_protocol: h[9],
                protocol: h[9],
                offset,
                more,
            });
        }
        Ok(Layer::Transport(h[9]))
    }

    /// RFC 8200 3.
    fn ipv6(&mut self) -> Step {
        let h: &[u8; 40] = self.take()?;
        match be16(h, 4) {
            // Jumbogram (RFC 2675) or segmentation in the card: what is on the wire counts.
            0 => {}
            length => self.state_length(u32::from(length)),
        }
        self.meta.tos = (be16(h, 0) >> 4) as u8;
        self.meta.ip_id = 0;
        self.meta.ttl = h[7];
        self.source.copy_from_slice(&h[8..24]);
        self.destination.copy_from_slice(&h[24..40]);
        Ok(Layer::Transport(h[6]))
    }

    /// Extension headers are steps of their own: each names the next.
    fn extension(&mut self, kind: u8) -> Step {
        if self.profile == Profile::Nic && self.extension_headers == NIC_EXTENSION_HEADERS {
            return stop(Untracked::Depth);
        }
        self.extension_headers = self.extension_headers.saturating_add(1);
        let h: &[u8; 8] = self.take()?;
        match kind {
            ipp::FRAGMENT => {
                let field = be16(h, 2);
                let (more, offset) = (field & 1 != 0, u32::from(field & 0xfff8));
                // RFC 6946: an atomic fragment is a whole packet.
                if more || offset != 0 {
                    let id = be32(h, 4);
                    return self.piece(Piece {
                        id,
                        key_protocol: 0,
                        protocol: h[0],
                        offset,
                        more,
                    });
                }
            }
            // RFC 4302 2.2: in units of 4 bytes, less 2.
            ipp::AUTHENTICATION => match (u32::from(h[1]) + 2) * 4 {
                length @ 8.. => self.skip(length - 8)?,
                _ => return stop(Untracked::Malformed),
            },
            _ => self.skip(u32::from(h[1]) * 8)?,
        }
        Ok(Layer::Transport(h[0]))
    }

    #[cold]
    fn piece(&self, piece: Piece) -> Step {
        match self.profile {
            Profile::Nic => stop(Untracked::Fragment),
            Profile::Full => Err(Stop::Fragment(piece)),
        }
    }

    #[inline]
    pub(super) fn transport(&mut self, protocol: u8) -> Step {
        match protocol {
            ipp::TCP => self.tcp(),
            ipp::UDP => self.udp(),
            ipp::ICMP | ipp::ICMPV6 => self.icmp(protocol),
            ipp::SCTP => {
                let h: &[u8; 4] = self.peek()?;
                let payload = self.payload_after(SCTP_HEADER)?;
                self.other(protocol, (be16(h, 0), be16(h, 2)), payload)
            }
            ipp::HOP_BY_HOP
            | ipp::ROUTING
            | ipp::FRAGMENT
            | ipp::DESTINATION_OPTIONS
            | ipp::AUTHENTICATION
            | ipp::MOBILITY => self.extension(protocol),
            ipp::NO_NEXT => self.other(protocol, (0, 0), 0),
            ipp::IPV4 | ipp::IPV6 | ipp::GRE => {
                self.set_other(protocol, (0, 0), self.left);
                if self.profile == Profile::Nic {
                    return Err(Stop::Done);
                }
                if protocol == ipp::GRE {
                    return Ok(Layer::Gre);
                }
                self.enter(TunnelKind::IpInIp, 0);
                Ok(Layer::Ip)
            }
            _ => self.other(protocol, (0, 0), self.left),
        }
    }

    fn udp(&mut self) -> Step {
        let h: &[u8; 4] = self.peek()?;
        let (source, destination) = (be16(h, 0), be16(h, 2));
        let payload = self.payload_after(SHORT_HEADER)?;
        self.set_other(ipp::UDP, (source, destination), payload);
        if self.profile == Profile::Full
            && let Some(layer) = tunnel::of_udp(destination)
        {
            self.skip(SHORT_HEADER)?;
            return Ok(layer);
        }
        Err(Stop::Done)
    }

    /// ICMP (RFC 792) and ICMPv6 (RFC 4443).
    fn icmp(&mut self, protocol: u8) -> Step {
        let kind = self.peek::<2>()?;
        let (kind, code) = (kind[0], kind[1]);
        let payload = self.payload_after(SHORT_HEADER)?;
        let (echo, error) = match protocol {
            ipp::ICMP => (matches!(kind, 0 | 8), matches!(kind, 3 | 4 | 5 | 11 | 12)),
            _ => (matches!(kind, 128 | 129), matches!(kind, 1..=4)),
        };
        let identifier = if echo { be16(self.peek::<6>()?, 4) } else { 0 };
        if error && let Some(quoted) = self.quoted(protocol) {
            let (key, from_low) = Key::new(quoted.source, quoted.destination, quoted.protocol);
            self.meta.class = Class::IcmpError;
            self.meta.key = Key {
                vlans: self.meta.key.vlans,
                overlay: self.meta.key.overlay,
                ..key
            };
            self.meta.from_low = from_low;
            self.meta.seq = quoted.seq;
            self.meta.payload = u32::from(kind) * 256 + u32::from(code);
            return Err(Stop::Done);
        }
        self.other(protocol, (identifier, identifier), payload)
    }

    /// The TCP or UDP packet that an ICMP error quotes, if enough of it is there: the IP header and
    /// 8 bytes (RFC 792), which hold the ports and the sequence number.
    fn quoted(&self, protocol: u8) -> Option<Quoted> {
        let end = self.at.saturating_add(self.left as usize).min(self.data.len());
        let mut rest = self.data.get(self.at + SHORT_HEADER as usize..end)?;
        let (source, destination, mut next);
        if protocol == ipp::ICMP {
            let h: &[u8; 20] = rest.first_chunk()?;
            let first_piece = be16(h, 6) & 0x1fff == 0;
            if h[0] >> 4 != 4 || h[0] & 0x0f < 5 || !first_piece {
                return None;
            }
            (source, destination, next) = (mapped(&h[12..16]), mapped(&h[16..20]), h[9]);
            rest = rest.get(usize::from(h[0] & 0x0f) * 4..)?;
        } else {
            let h: &[u8; 40] = rest.first_chunk()?;
            if h[0] >> 4 != 6 {
                return None;
            }
            source = *h[8..].first_chunk()?;
            destination = *h[24..].first_chunk()?;
            next = h[6];
            rest = rest.get(40..)?;
            for _ in 0..NIC_EXTENSION_HEADERS {
                let length = match next {
                    ipp::HOP_BY_HOP | ipp::ROUTING | ipp::DESTINATION_OPTIONS => usize::from(*rest.get(1)?) * 8 + 8,
                    ipp::FRAGMENT if be16(rest.first_chunk::<4>()?, 2) & 0xfff8 == 0 => 8,
                    _ => break,
                };
                next = *rest.first()?;
                rest = rest.get(length..)?;
            }
        }
        let h: &[u8; 8] = rest.first_chunk()?;
        let seq = match next {
            ipp::TCP => be32(h, 4),
            ipp::UDP => 0,
            _ => return None,
        };
        Some(Quoted {
            source: End {
                addr: source,
                port: be16(h, 0),
            },
            destination: End {
                addr: destination,
                port: be16(h, 2),
            },
            protocol: next,
            seq,
        })
    }

    /// Bytes behind a transport header of `header` bytes, by the IP length.
    fn payload_after(&self, header: u32) -> Step<u32> {
        match self.left.checked_sub(header) {
            Some(payload) => Ok(payload),
            None => stop(Untracked::Malformed),
        }
    }
}

struct Quoted {
    source: End,
    destination: End,
    protocol: u8,
    seq: u32,
}
