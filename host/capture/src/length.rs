//! The length of a frame whose end was cut off.

const VLAN_TYPES: [[u8; 2]; 3] = [[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const IPV6_HEADER: u32 = 40;

/// Bytes on the wire of an Ethernet frame, as its IP header has them (RFC 791 3.1, RFC 8200 3). `None`: it carries something else, or more
/// than that header can say.
pub fn length_by_ip(frame: &[u8]) -> Option<u32> {
    let two = |at: usize| frame.get(at..at + 2).and_then(|two| two.try_into().ok());
    let mut at = 12;
    let mut kind: [u8; 2] = two(at)?;
    while VLAN_TYPES.contains(&kind) {
        at += 4;
        kind = two(at)?;
    }
    let ip = at + 2;
    let length = |at: usize| {
        two(at)
            .map(u16::from_be_bytes)
            .filter(|length| *length > 0)
            .map(u32::from)
    };
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

    fn frame(kinds: &[[u8; 2]], ip: &[u8]) -> Vec<u8> {
        let tags = kinds.iter().flat_map(|kind| [kind[0], kind[1], 0, 5]);
        // The last kind has no tag behind it.
        let head = [0; 12].into_iter().chain(tags).take(12 + 4 * kinds.len() - 2);
        head.chain(ip.iter().copied()).collect()
    }

    #[test]
    fn what_was_cut_off_counts() {
        let v4 = [0x45, 0, 0x9c, 0x40, 1, 2];
        assert_eq!(length_by_ip(&frame(&[IPV4], &v4)), Some(14 + 40_000));
        assert_eq!(
            length_by_ip(&frame(&[[0x88, 0xa8], [0x81, 0x00], IPV4], &v4)),
            Some(22 + 40_000)
        );
        let v6 = [0x60, 0, 0, 0, 0x9c, 0x40, 6, 64];
        assert_eq!(length_by_ip(&frame(&[IPV6], &v6)), Some(14 + 40 + 40_000));
        // Larger than the field: the kernel writes 0.
        assert_eq!(length_by_ip(&frame(&[IPV6], &[0x60, 0, 0, 0, 0, 0])), None);
        assert_eq!(length_by_ip(&frame(&[[0x08, 0x06]], &v4)), None);
        for end in 0..20 {
            let _ = length_by_ip(&frame(&[[0x81, 0x00], IPV6], &v6)[..end]);
        }
    }
}
