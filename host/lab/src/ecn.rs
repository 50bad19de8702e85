//! Explicit congestion notification in the IP header (RFC 3168 5).

use crate::checksum;
use crate::frame::{IP_AT, is_ipv4};

const TOS_AT: usize = IP_AT + 1;
const CHECKSUM_AT: usize = IP_AT + 10;
const CODEPOINT: u8 = 3;
const CE: u8 = 3;

/// Whether a queue may mark the frame: ECT(0) or ECT(1).
pub(crate) fn is_capable(frame: &[u8]) -> bool {
    is_ipv4(frame) && frame.get(TOS_AT).is_some_and(|tos| matches!(tos & CODEPOINT, 1 | 2))
}

/// Marks a capable frame: congestion experienced.
pub(crate) fn mark(frame: &mut [u8]) {
    checksum::replace(frame, IP_AT, CHECKSUM_AT, TOS_AT, frame[TOS_AT] | CE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::tests::{checked_frame, is_right};
    use crate::rng::Rng;

    #[test]
    fn a_mark_changes_two_bits_and_leaves_the_checksums_right() {
        for seed in 0..2000 {
            let mut rng = Rng::new(seed, 0);
            let mut frame = checked_frame(&mut rng, 0x10, &[]);
            let tos = rng.next_u64() as u8;
            checksum::replace(&mut frame, IP_AT, CHECKSUM_AT, TOS_AT, tos);
            assert_eq!(is_capable(&frame), [1, 2].contains(&(tos & 3)), "{tos}");
            let mut marked = frame.clone();
            mark(&mut marked);
            assert!(is_right(&marked) && !is_capable(&marked));
            assert_eq!(marked[TOS_AT], tos | 3, "the rest is the service's");
            marked[TOS_AT] = tos;
            marked[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&frame[CHECKSUM_AT..CHECKSUM_AT + 2]);
            assert_eq!(marked, frame, "nothing else");
        }
    }

    #[test]
    fn other_frames_are_not_capable() {
        let mut arp = vec![0; 60];
        arp[TOS_AT] = 2;
        assert!(!is_capable(&arp) && !is_capable(&arp[..15]));
    }
}
