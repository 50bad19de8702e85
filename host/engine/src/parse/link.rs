//! Link layers, tags and labels: everything before the IP header.

use super::{Layer, LinkType, NIC_MPLS_LABELS, NIC_VLAN_TAGS, Profile, Step, Walk, be16, be32, stop};
use weir_record::{TunnelKind, Untracked};

/// EtherTypes (IANA ieee-802-numbers).
#[allow(missing_docs, reason = "the names say what they are")]
pub mod ether_type {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    pub const VLAN: u16 = 0x8100;
    pub const QINQ: u16 = 0x88a8;
    pub const QINQ_OLD: u16 = 0x9100;
    pub const MPLS: u16 = 0x8847;
    pub const MPLS_MULTICAST: u16 = 0x8848;
    pub const PPPOE_SESSION: u16 = 0x8864;
    pub const TRANSPARENT_ETHERNET: u16 = 0x6558;
    pub const ERSPAN_II: u16 = 0x88be;
    pub const ERSPAN_III: u16 = 0x22eb;
    pub const TRILL: u16 = 0x22f3;
    pub const PBB: u16 = 0x88e7;
    pub const FABRIC_PATH: u16 = 0x8903;
    pub const CISCO_METADATA: u16 = 0x8909;
    pub const VN_TAG: u16 = 0x8926;
    pub const E_TAG: u16 = 0x893f;
    /// Smaller numbers are lengths of an LLC frame (IEEE 802.3 3.2.6).
    pub const FIRST: u16 = 0x0600;
}
use ether_type as et;

impl Walk<'_> {
    #[inline]
    pub(super) fn ethernet(&mut self) -> Step {
        let h: &[u8; 14] = self.take()?;
        self.meta.destination_mac.copy_from_slice(&h[..6]);
        self.meta.source_mac.copy_from_slice(&h[6..12]);
        let kind = be16(h, 12);
        if kind == et::IPV4 {
            Ok(Layer::Ip)
        } else {
            Ok(Layer::EtherType(kind))
        }
    }

    pub(super) fn ether_type(&mut self, kind: u16) -> Step {
        match kind {
            et::IPV4 | et::IPV6 => Ok(Layer::Ip),
            et::VLAN | et::QINQ | et::QINQ_OLD => self.vlan(),
            et::MPLS | et::MPLS_MULTICAST => self.mpls(),
            et::PPPOE_SESSION if self.profile == Profile::Nic => stop(Untracked::Profile),
            et::PPPOE_SESSION => self.pppoe(),
            _ if self.profile == Profile::Nic => stop(Untracked::NotIp),
            _ if kind < et::FIRST => Ok(Layer::Llc),
            _ => self.data_centre(kind),
        }
    }

    /// What switches of one maker or one site put before the packet for each other.
    fn data_centre(&mut self, kind: u16) -> Step {
        match kind {
            // Two bytes of forwarding tag; the addresses before them are those of switches.
            et::FABRIC_PATH => self.skip(2).map(|()| Layer::Ethernet),
            // Service instance (IEEE 802.1ah, I-TAG without the customer's addresses).
            et::PBB => self.skip(4).map(|()| Layer::Ethernet),
            // RFC 6325 3.1: the length of options, in words, stands in bits 6 to 10.
            et::TRILL => {
                let words = be16(self.take::<2>()?, 0) >> 6 & 0x1f;
                self.skip(4 + 4 * u32::from(words)).map(|()| Layer::Ethernet)
            }
            // Version, and the length of the security group's option in words.
            et::CISCO_METADATA => {
                let words = self.take::<2>()?[1];
                self.behind_tag(4 * u32::from(words))
            }
            et::VN_TAG => self.behind_tag(4),
            // IEEE 802.1BR.
            et::E_TAG => self.behind_tag(6),
            _ => stop(Untracked::NotIp),
        }
    }

    /// A tag of so many bytes that says nothing of the flow, and then an EtherType.
    fn behind_tag(&mut self, bytes: u32) -> Step {
        self.skip(bytes)?;
        Ok(Layer::EtherType(be16(self.take::<2>()?, 0)))
    }

    /// IEEE 802.1Q tag: the two outermost ids are part of the key.
    fn vlan(&mut self) -> Step {
        if self.profile == Profile::Nic && self.vlan_tags == NIC_VLAN_TAGS {
            return stop(Untracked::Depth);
        }
        let h: &[u8; 4] = self.take()?;
        let id = u32::from(be16(h, 0) & 0x0fff);
        match self.vlan_tags {
            0 => self.meta.key.vlans |= id,
            1 => self.meta.key.vlans |= id << 12,
            _ => {}
        }
        self.vlan_tags = self.vlan_tags.saturating_add(1);
        Ok(Layer::EtherType(be16(h, 2)))
    }

    /// One MPLS label (RFC 3032 2.1). What follows the last is IP when its first four bits say so
    /// (RFC 4928 3); anything else is a pseudowire.
    fn mpls(&mut self) -> Step {
        if self.profile == Profile::Nic && self.mpls_labels == NIC_MPLS_LABELS {
            return stop(Untracked::Depth);
        }
        let h: &[u8; 4] = self.take()?;
        self.mpls_labels = self.mpls_labels.saturating_add(1);
        let bottom = h[2] & 1 != 0;
        if !bottom {
            return Ok(Layer::EtherType(et::MPLS));
        }
        match self.peek::<1>()?[0] >> 4 {
            4 | 6 => Ok(Layer::Ip),
            _ => stop(Untracked::NotIp),
        }
    }

    /// PPPoE session header (RFC 2516 4), then PPP without address and control.
    fn pppoe(&mut self) -> Step {
        let h: &[u8; 6] = self.take()?;
        if h[0] != 0x11 || h[1] != 0 {
            return stop(Untracked::Malformed);
        }
        self.meta.tunnel_kind = TunnelKind::Pppoe as u8;
        self.meta.tunnel_id = u32::from(be16(h, 2));
        match be16(h, 4) {
            // As in the IP header: segmentation in the card.
            0 => {}
            length => self.state_length(u32::from(length)),
        }
        Ok(Layer::Ppp)
    }

    /// PPP (RFC 1661 2, RFC 1662 3.1): address and control may be there, the protocol's first byte
    /// may be left out when it is zero.
    pub(super) fn ppp(&mut self) -> Step {
        if self.peek::<2>()? == &[0xff, 0x03] {
            self.skip(2)?;
        }
        let first = self.take::<1>()?[0];
        let protocol = if first & 1 != 0 {
            u16::from(first)
        } else {
            u16::from_be_bytes([first, self.take::<1>()?[0]])
        };
        match protocol {
            0x0021 | 0x0057 => Ok(Layer::Ip),
            0x0281 | 0x0283 => Ok(Layer::EtherType(et::MPLS)),
            _ => stop(Untracked::NotIp),
        }
    }

    /// LLC with SNAP (IEEE 802.2, RFC 1042) that carries an EtherType.
    pub(super) fn llc(&mut self) -> Step {
        let h: &[u8; 3] = self.take()?;
        if h != &[0xaa, 0xaa, 0x03] {
            return stop(Untracked::NotIp);
        }
        self.snap()
    }

    /// SNAP: who gave the number, and the number.
    fn snap(&mut self) -> Step {
        let snap: &[u8; 5] = self.take()?;
        match snap[..3] {
            // RFC 1042 and the bridge tunnel of IEEE 802.1H.
            [0, 0, 0] | [0, 0, 0xf8] => Ok(Layer::EtherType(be16(snap, 3))),
            _ => stop(Untracked::NotIp),
        }
    }

    pub(super) fn link(&mut self, link: LinkType) -> Step {
        match link {
            LinkType::Ethernet => Ok(Layer::Ethernet),
            LinkType::RawIp => Ok(Layer::Ip),
            LinkType::LinuxSll => self.linux_sll(),
            LinkType::LinuxSll2 => self.linux_sll2(),
            LinkType::Null => self.null(),
            LinkType::Loop => self.openbsd_loop(),
            LinkType::Ppp => self.serial(),
            LinkType::Fddi => self.fddi(),
            LinkType::Ieee80211 => self.ieee80211(false),
            LinkType::Radiotap => self.radiotap(),
            LinkType::Llc => Ok(Layer::Llc),
            LinkType::FrameRelay => self.frame_relay(),
            LinkType::Nflog => self.nflog(),
            LinkType::Ipoib => self.ipoib(),
            LinkType::Pktap => self.pktap(),
        }
    }

    fn linux_sll(&mut self) -> Step {
        let h: &[u8; 16] = self.take()?;
        if be16(h, 4) == 6 {
            self.meta.source_mac.copy_from_slice(&h[6..12]);
        }
        cooked(be16(h, 14))
    }

    fn linux_sll2(&mut self) -> Step {
        let h: &[u8; 20] = self.take()?;
        if h[11] == 6 {
            self.meta.source_mac.copy_from_slice(&h[12..18]);
        }
        cooked(be16(h, 0))
    }

    fn null(&mut self) -> Step {
        let family = be32(self.take::<4>()?, 0);
        // Families are small: the byte order shows.
        let family = if family > 0xffff { family.swap_bytes() } else { family };
        address_family(family)
    }

    fn openbsd_loop(&mut self) -> Step {
        let family = be32(self.take::<4>()?, 0);
        address_family(family)
    }

    fn fddi(&mut self) -> Step {
        let h: &[u8; 13] = self.take()?;
        self.meta.destination_mac.copy_from_slice(&h[1..7]);
        self.meta.source_mac.copy_from_slice(&h[7..13]);
        // Frame control 01LLxxxx with LL = 01: LLC (ISO 9314-2).
        if h[0] & 0xf0 == 0x50 {
            Ok(Layer::Llc)
        } else {
            stop(Untracked::NotIp)
        }
    }

    /// PPP; or Cisco HDLC, which begins with an address of its own (unicast or multicast), control and an EtherType
    /// (RFC 1547 4.3.1).
    fn serial(&mut self) -> Step {
        match self.peek::<1>()? {
            [0x0f | 0x8f] => Ok(Layer::EtherType(be16(self.take::<4>()?, 2))),
            _ => Ok(Layer::Ppp),
        }
    }

    /// Q.922 address, then a protocol as RFC 2427 (3, 4.1) has it, or Cisco's EtherType.
    fn frame_relay(&mut self) -> Step {
        // The last byte of the address has the lowest bit.
        let mut length = 1;
        while self.take::<1>()?[0] & 1 == 0 {
            length += 1;
            if length > 4 {
                return stop(Untracked::Malformed);
            }
        }
        let unnumbered = 0x03;
        if self.peek::<1>()?[0] != unnumbered {
            return Ok(Layer::EtherType(be16(self.take::<2>()?, 0)));
        }
        self.skip(1)?;
        if self.peek::<1>()?[0] == 0 {
            self.skip(1)?;
        }
        match self.take::<1>()?[0] {
            0xcc | 0x8e => Ok(Layer::Ip),
            0xcf => Ok(Layer::Ppp),
            0x80 => self.snap(),
            _ => stop(Untracked::NotIp),
        }
    }

    /// Netfilter log (<https://www.tcpdump.org/linktypes/LINKTYPE_NFLOG.html>): attributes, each with its length and its
    /// type in the byte order of the capturing host, of which one is the packet.
    fn nflog(&mut self) -> Step {
        const PAYLOAD: u16 = 9;
        let h: &[u8; 4] = self.take()?;
        if h[1] != 0 {
            return stop(Untracked::Link);
        }
        // Attributes are short but for the packet, which is the last: an endless list has ended before.
        while self.left > 4 {
            let h: &[u8; 4] = self.take()?;
            let (low, high) = (u16::from_le_bytes([h[0], h[1]]), be16(h, 0));
            // Types are small: the byte order shows.
            let (length, kind) = if h[3] == 0 {
                (low, u16::from(h[2]))
            } else {
                (high, u16::from(h[3]))
            };
            let Some(length) = u32::from(length).checked_sub(4) else {
                return stop(Untracked::Malformed);
            };
            if kind == PAYLOAD {
                return Ok(Layer::Ip);
            }
            self.skip(length.next_multiple_of(4))?;
        }
        stop(Untracked::NotIp)
    }

    /// Global routing header, then RFC 4391 6: an EtherType and two reserved bytes.
    fn ipoib(&mut self) -> Step {
        self.skip(40)?;
        Ok(Layer::EtherType(be16(self.take::<4>()?, 0)))
    }

    /// Apple's packet tap (`bsd/net/pktap.h`): its length, what follows, and the link type of the packet behind it.
    fn pktap(&mut self) -> Step {
        const PACKET: u32 = 1;
        let word = |h: &[u8; 12], at: usize| u32::from_le_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]]);
        let h = self.peek::<12>()?;
        let (length, what, link) = (word(h, 0), word(h, 4), word(h, 8));
        // 149 is anyone's: others have no such header.
        if !(108..=1024).contains(&length) || what != PACKET {
            return stop(Untracked::Link);
        }
        self.skip(length)?;
        match LinkType::from_pcap(link) {
            Some(LinkType::Pktap) | None => stop(Untracked::Link),
            Some(link) => Ok(Layer::Link(link)),
        }
    }

    /// Radiotap (<https://www.radiotap.org>): only the length and the flags field are used.
    fn radiotap(&mut self) -> Step {
        let h: &[u8; 8] = self.peek()?;
        let length = u32::from(u16::from_le_bytes([h[2], h[3]]));
        if h[0] != 0 || length < 8 {
            return stop(Untracked::Malformed);
        }
        let padded = self.radiotap_flags() & 0x20 != 0;
        self.skip(length)?;
        self.ieee80211(padded)
    }

    /// The flags field: the second possible one, after the 8-byte aligned TSFT. 0 if absent.
    fn radiotap_flags(&self) -> u8 {
        let header = self.data.get(self.at..).unwrap_or_default();
        let word = |at: usize| header.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b));
        let Some(present) = word(4) else { return 0 };
        let (has_tsft, has_flags) = (present & 1 != 0, present & 2 != 0);
        // Bit 31: another word of present bits follows.
        let more_words = (1..16)
            .take_while(|n| word(4 * n).is_some_and(|w| w >> 31 != 0))
            .count();
        let mut at = 8 + 4 * more_words;
        if has_tsft {
            at = at.next_multiple_of(8) + 8;
        }
        if has_flags {
            header.get(at).copied().unwrap_or(0)
        } else {
            0
        }
    }

    /// IEEE 802.11 data frame (IEEE 802.11-2020 9.3.2.1); `padded`: body aligned to 4 bytes.
    fn ieee80211(&mut self, padded: bool) -> Step {
        let control = *self.peek::<2>()?;
        let (kind, subtype) = (control[0] >> 2 & 3, control[0] >> 4);
        let (to_ds, from_ds) = (control[1] & 1 != 0, control[1] & 2 != 0);
        let (no_data, qos) = (subtype & 4 != 0, subtype & 8 != 0);
        let (protected, order) = (control[1] & 0x40 != 0, control[1] & 0x80 != 0);
        if control[0] & 3 != 0 || kind != 2 || no_data {
            return stop(Untracked::NotIp);
        }
        if protected {
            return stop(Untracked::Link);
        }
        let h: &[u8; 24] = self.take()?;
        let mut length = 24;
        let mut fourth = [0; 6];
        if to_ds && from_ds {
            fourth = *self.take::<6>()?;
            length += 6;
        }
        let (destination, source) = match (to_ds, from_ds) {
            (false, false) => (&h[4..10], &h[10..16]),
            (true, false) => (&h[16..22], &h[10..16]),
            (false, true) => (&h[4..10], &h[16..22]),
            (true, true) => (&h[16..22], &fourth[..]),
        };
        self.meta.destination_mac.copy_from_slice(destination);
        self.meta.source_mac.copy_from_slice(source);
        if qos {
            let several_in_one = self.take::<2>()?[0] & 0x80 != 0;
            if several_in_one {
                return stop(Untracked::Link);
            }
            length += 2;
            if order {
                self.skip(4)?;
                length += 4;
            }
        }
        if padded && length % 4 != 0 {
            self.skip(4 - length % 4)?;
        }
        Ok(Layer::Llc)
    }
}

/// The protocol field of Linux cooked headers: an EtherType, or 4 for LLC.
fn cooked(protocol: u16) -> Step {
    match protocol {
        4 => Ok(Layer::Llc),
        0..et::FIRST => stop(Untracked::NotIp),
        kind => Ok(Layer::EtherType(kind)),
    }
}

/// AF_INET is 2 everywhere; AF_INET6 is 10 on Linux and 24, 28 or 30 on the BSDs and macOS.
fn address_family(family: u32) -> Step {
    match family {
        2 | 10 | 24 | 28 | 30 => Ok(Layer::Ip),
        _ => stop(Untracked::NotIp),
    }
}
