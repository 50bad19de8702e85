//! A path that carries less than its ends believe, and whose routers' ICMP never comes (RFC 2923 2.1).

use crate::frame::{IP_AT, ip_total_len, is_ipv4};

/// IPv4 flag: do not fragment.
const DF: u8 = 0x40;

/// Whether an IP packet of more than `limit` bytes that must not be fragmented is in this frame. One that may be
/// arrives: its fragments would be put together again.
pub(crate) fn swallows(frame: &[u8], limit: u32) -> bool {
    is_ipv4(frame)
        && frame.get(IP_AT + 6).is_some_and(|flags| flags & DF != 0)
        && ip_total_len(frame).is_some_and(|len| u32::from(len) > limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::tcp_frame;

    #[test]
    fn only_larger_packets_that_must_stay_whole() {
        let with_df = |payload| {
            let mut frame = tcp_frame(80, 0x10, 1, payload);
            frame[20] |= DF;
            frame
        };
        assert!(!swallows(&with_df(1360), 1400), "40 bytes of headers and 1360 fit");
        assert!(swallows(&with_df(1361), 1400));
        assert!(!swallows(&tcp_frame(80, 0x10, 1, 1361), 1400), "may be fragmented");
        let mut arp = with_df(1361);
        arp[13] = 6;
        assert!(!swallows(&arp, 1400) && !swallows(&arp[..10], 1400));
    }
}
