//! The short way for what nearly every frame is: Ethernet without tags, IPv4 without options, not a fragment, TCP with
//! all of its header captured.
//!
//! It says what the walk would say, and nothing of any other frame, however little it differs.

use super::ip::{mapped, protocol};
use super::link::ether_type;
use super::tcp::{self, options, segment};
use super::{be16, be32};
use crate::meta::{Class, End, Key, Meta};

/// Where the headers begin, and the first byte after a TCP header without options.
const IP: usize = 14;
const TCP: usize = IP + 20;
const END: usize = TCP + tcp::HEADER as usize;

/// IPv4 in its shortest header (RFC 791 3.1).
const VERSION_AND_LENGTH: u8 = 0x45;
/// More fragments, and the offset.
const FRAGMENT: u16 = 0x3fff;

/// The frame as the walk would parse it; `None`: the walk shall.
#[inline(always)]
pub(super) fn parse(frame: &[u8], wire: u32, meta: &mut Meta) -> Option<()> {
    let (h, rest) = frame.split_first_chunk::<END>()?;
    let is_plain = be16(h, IP - 2) == ether_type::IPV4
        && h[IP] == VERSION_AND_LENGTH
        && be16(h, IP + 6) & FRAGMENT == 0
        && h[IP + 9] == protocol::TCP;
    let header = u32::from(h[TCP + 12] >> 4) * 4;
    let options_length = header.checked_sub(tcp::HEADER)?;
    let payload = u32::from(be16(h, IP + 2)).checked_sub(header + (TCP - IP) as u32)?;
    if !is_plain {
        return None;
    }
    let captured = rest.get(..options_length as usize)?;
    // Address and port as one number.
    let source = u64::from(be32(h, IP + 12)) << 16 | u64::from(be16(h, TCP));
    let destination = u64::from(be32(h, IP + 16)) << 16 | u64::from(be16(h, TCP + 2));
    let from_low = source <= destination;
    let (low, high) = if from_low {
        (source, destination)
    } else {
        (destination, source)
    };
    let end = |end: u64| End {
        addr: mapped(&((end >> 16) as u32).to_be_bytes()),
        port: end as u16,
    };
    *meta = Meta {
        class: Class::Tcp,
        key: Key {
            low: end(low),
            high: end(high),
            protocol: protocol::TCP,
            ..Key::default()
        },
        from_low,
        wire,
        ip_id: be16(h, IP + 4),
        ttl: h[IP + 8],
        tos: h[IP + 1],
        destination_mac: [h[0], h[1], h[2], h[3], h[4], h[5]],
        source_mac: [h[6], h[7], h[8], h[9], h[10], h[11]],
        ..Meta::default()
    };
    segment(meta, h[TCP..].first_chunk()?, payload);
    if !captured.is_empty() {
        options(captured, &mut meta.options);
    }
    Some(())
}
