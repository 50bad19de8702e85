//! Values that records of several kinds carry.

use std::borrow::Cow;

/// Letters of FSRPAUEC (FIN, SYN, RST, PSH, ACK, URG, ECE, CWR) of the bits of a TCP header.
pub(super) fn flags(bits: u8) -> Cow<'static, str> {
    "FSRPAUEC"
        .chars()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 != 0)
        .map(|(_, letter)| letter)
        .collect()
}
