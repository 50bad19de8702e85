//! The length of a frame whose end was cut off.

use weir_engine::parse::ether_type::{IPV4, IPV6, QINQ, QINQ_OLD, VLAN};

const IPV6_HEADER: u32 = 40;

/// Bytes on the wire of an Ethernet frame, as its IP header has them (RFC 791 3.1, RFC 8200 3). `None`: it carries something else, or more
/// than that header can say.
pub fn length_by_ip(frame: &[u8]) -> Option<u32> {
    let two = |at: usize| frame.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    let mut at = 12;
    let mut kind = two(at)?;
    while [VLAN, QINQ, QINQ_OLD].contains(&kind) {
        at += 4;
        kind = two(at)?;
    }
    let ip = at + 2;
    let length = |at: usize| two(at).filter(|length| *length > 0).map(u32::from);
    let packet = match kind {
        IPV4 => length(ip + 2)?,
        IPV6 => length(ip + 4)? + IPV6_HEADER,
        _ => return None,
    };
    Some(ip as u32 + packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kinds: &[u16], ip: &[u8]) -> Vec<u8> {
        let kinds_and_tags = kinds.iter().flat_map(|kind| [kind.to_be_bytes(), [0, 5]]);
        let tags = kinds_and_tags.flatten();
        // The last kind has no tag behind it.
        let head = [0; 12].into_iter().chain(tags).take(12 + 4 * kinds.len() - 2);
        head.chain(ip.iter().copied()).collect()
    }

    #[test]
    fn what_was_cut_off_counts() {
        let v4 = [0x45, 0, 0x9c, 0x40, 1, 2];
        assert_eq!(length_by_ip(&frame(&[IPV4], &v4)), Some(14 + 40_000));
        assert_eq!(length_by_ip(&frame(&[QINQ, VLAN, IPV4], &v4)), Some(22 + 40_000));
        let v6 = [0x60, 0, 0, 0, 0x9c, 0x40, 6, 64];
        assert_eq!(length_by_ip(&frame(&[IPV6], &v6)), Some(14 + 40 + 40_000));
        // Larger than the field: the kernel writes 0.
        assert_eq!(length_by_ip(&frame(&[IPV6], &[0x60, 0, 0, 0, 0, 0])), None);
        assert_eq!(length_by_ip(&frame(&[0x0806], &v4)), None);
        for end in 0..20 {
            let _ = length_by_ip(&frame(&[VLAN, IPV6], &v6)[..end]);
        }
    }
}
