//! Tunnels: the flow inside is the one that is tracked (full profile only).

use std::ops::RangeInclusive;

use super::{Layer, LinkType, Step, Walk, be16, be32, link::ether_type as et, stop};
use weir_record::{TunnelKind, Untracked};

/// The tunnel that a UDP destination port announces (IANA service names; 8472 is the port of the
/// first Linux VXLAN, 4790 of its generic extension, 4754 of GRE: RFC 8086).
pub(super) fn of_udp(destination: u16) -> Option<Layer> {
    match destination {
        4789 | 4790 | 8472 => Some(Layer::Vxlan),
        6081 => Some(Layer::Geneve),
        2152 => Some(Layer::GtpU),
        4754 => Some(Layer::Gre),
        _ => None,
    }
}

impl Walk<'_> {
    /// What was parsed so far becomes the outer packet.
    pub(super) fn enter(&mut self, kind: TunnelKind, id: u32) {
        self.outer = Some(*self.meta);
        self.meta.tunnel_kind = kind as u8;
        self.meta.tunnel_id = id;
    }

    /// Not the tunnel that it looked like, or not one that can be followed: an ordinary packet.
    fn not_a_tunnel(&mut self) -> Step {
        self.outer = Some(*self.meta);
        stop(Untracked::NotIp)
    }

    /// GRE (RFC 2784, key and sequence number RFC 2890). Version 1 (PPTP) is not followed.
    pub(super) fn gre(&mut self) -> Step {
        /// Redirected by WCCP version 2, which has a word of its own before the packet.
        const WCCP: u16 = 0x883e;
        /// From Aruba's access points: frames as they were in the air.
        const ARUBA: RangeInclusive<u16> = 0x8200..=0x8210;
        let h: &[u8; 4] = self.take()?;
        let (flags, kind) = (be16(h, 0), be16(h, 2));
        let (checksum, routing) = (flags & 0x8000 != 0, flags & 0x4000 != 0);
        let (key, sequence) = (flags & 0x2000 != 0, flags & 0x1000 != 0);
        if routing || flags & 7 != 0 {
            return self.not_a_tunnel();
        }
        if checksum {
            self.skip(4)?;
        }
        let id = if key { be32(self.take::<4>()?, 0) } else { 0 };
        if sequence {
            self.skip(4)?;
        }
        self.enter(TunnelKind::Gre, id);
        match kind {
            et::TRANSPARENT_ETHERNET => Ok(Layer::Ethernet),
            // Type I has no header of its own and no sequence number.
            et::ERSPAN_II if !sequence => {
                self.meta.tunnel_kind = TunnelKind::Erspan as u8;
                Ok(Layer::Ethernet)
            }
            et::ERSPAN_II => Ok(Layer::ErspanII),
            et::ERSPAN_III => Ok(Layer::ErspanIII),
            // Version 1 went without the word.
            WCCP if self.peek::<1>()?[0] >> 4 == 4 => Ok(Layer::Ip),
            WCCP => self.skip(4).map(|()| Layer::Ip),
            _ if ARUBA.contains(&kind) => Ok(Layer::Link(LinkType::Ieee80211)),
            _ => Ok(Layer::EtherType(kind)),
        }
    }

    /// draft-foschiano-erspan-03 4.2.
    pub(super) fn erspan_ii(&mut self) -> Step {
        let h: &[u8; 8] = self.take()?;
        self.set_erspan(be16(h, 2));
        Ok(Layer::Ethernet)
    }

    /// draft-foschiano-erspan-03 4.3.
    pub(super) fn erspan_iii(&mut self) -> Step {
        let h: &[u8; 12] = self.take()?;
        self.set_erspan(be16(h, 2));
        let (frame_type, subheader) = (h[10] >> 2 & 0x1f, h[11] & 1 != 0);
        if subheader {
            self.skip(8)?;
        }
        match frame_type {
            0 => Ok(Layer::Ethernet),
            2 => Ok(Layer::Ip),
            _ => stop(Untracked::NotIp),
        }
    }

    /// The session is the low 10 bits of the second half word.
    fn set_erspan(&mut self, half_word: u16) {
        self.meta.tunnel_kind = TunnelKind::Erspan as u8;
        self.meta.tunnel_id = u32::from(half_word & 0x03ff);
    }

    /// VXLAN (RFC 7348 5). Reserved bits are ignored, as the RFC asks: extensions (group policy) use them; but the generic
    /// one's that something else than Ethernet follows (draft-ietf-nvo3-vxlan-gpe-12 3.1).
    pub(super) fn vxlan(&mut self) -> Step {
        let Ok(h) = self.peek::<8>() else {
            return self.not_a_tunnel();
        };
        let vni = be32(h, 4) >> 8;
        let has_vni = h[0] & 0x08 != 0;
        if !has_vni {
            return self.not_a_tunnel();
        }
        self.skip(8)?;
        self.enter(TunnelKind::Vxlan, vni);
        self.meta.key.overlay = vni + 1;
        match (h[0] & 0x04 != 0, h[3]) {
            (false, _) | (true, 0 | 3) => Ok(Layer::Ethernet),
            (true, 1 | 2) => Ok(Layer::Ip),
            _ => stop(Untracked::NotIp),
        }
    }

    /// GENEVE (RFC 8926 3.4). Reserved bits are ignored.
    pub(super) fn geneve(&mut self) -> Step {
        let Ok(h) = self.peek::<8>() else {
            return self.not_a_tunnel();
        };
        let (version, options) = (h[0] >> 6, u32::from(h[0] & 0x3f) * 4);
        let (kind, vni) = (be16(h, 2), be32(h, 4) >> 8);
        if version != 0 || self.left < 8 + options {
            return self.not_a_tunnel();
        }
        self.skip(8 + options)?;
        self.enter(TunnelKind::Geneve, vni);
        self.meta.key.overlay = vni + 1;
        match kind {
            et::TRANSPARENT_ETHERNET => Ok(Layer::Ethernet),
            _ => Ok(Layer::EtherType(kind)),
        }
    }

    /// GTP-U (3GPP TS 29.281 5.1): only G-PDUs carry a packet. TEIDs differ between the directions
    /// and are not part of the key.
    pub(super) fn gtp_u(&mut self) -> Step {
        const G_PDU: u8 = 255;
        let Ok(h) = self.peek::<8>() else {
            return self.not_a_tunnel();
        };
        let version_1_gtp = h[0] >> 4 == 3;
        if !version_1_gtp || h[1] != G_PDU {
            return self.not_a_tunnel();
        }
        let teid = be32(h, 4);
        let (extension, optional) = (h[0] & 4 != 0, h[0] & 7 != 0);
        self.skip(8)?;
        self.enter(TunnelKind::GtpU, teid);
        if optional {
            let mut next = self.take::<4>()?[3];
            if !extension {
                next = 0;
            }
            for _ in 0..8 {
                if next == 0 {
                    break;
                }
                // In units of 4 bytes; the last byte names the next header (5.2.1).
                let length = u32::from(self.peek::<1>()?[0]) * 4;
                if length == 0 {
                    return stop(Untracked::Malformed);
                }
                self.skip(length - 1)?;
                next = self.take::<1>()?[0];
            }
            if next != 0 {
                return stop(Untracked::Depth);
            }
        }
        match self.peek::<1>()?[0] >> 4 {
            4 | 6 => Ok(Layer::Ip),
            _ => stop(Untracked::NotIp),
        }
    }
}
