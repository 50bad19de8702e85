//! What of a capture the card could have received: for the nic profile, and for a bench that drives the card's
//! logic with a capture.

use weir_engine::LinkType;

use crate::file::Frame;

/// Ports of the card: it stands in a line.
pub const PORTS: u32 = 2;
/// The card's counters of lengths take so much.
pub const MAX_WIRE: u32 = (1 << 20) - 1;

/// The port that a frame would have come in by; `None` if no card could have received it: its link is not Ethernet,
/// none of its bytes was captured, or it is longer than any counter of the card can tell.
pub fn port(frame: &Frame<'_>) -> Option<u8> {
    let possible = frame.link == Some(LinkType::Ethernet) && !frame.data.is_empty() && frame.wire <= MAX_WIRE;
    possible.then_some((frame.interface % PORTS) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_card_can_receive_has_no_port() {
        let frame = Frame {
            utc_ns: 0,
            is_astray: false,
            interface: 3,
            link: Some(LinkType::Ethernet),
            link_number: 1,
            wire: 60,
            data: &[0; 60],
        };
        assert_eq!(port(&frame), Some(1));
        assert_eq!(port(&Frame { interface: 4, ..frame }), Some(0));
        for other in [
            Frame {
                link: Some(LinkType::RawIp),
                ..frame
            },
            Frame { link: None, ..frame },
            Frame { data: &[], ..frame },
            Frame {
                wire: MAX_WIRE + 1,
                ..frame
            },
        ] {
            assert_eq!(port(&other), None);
        }
    }
}
