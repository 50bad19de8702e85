//! Values that records of several kinds carry.

use std::borrow::Cow;

use weir_record::{EventMore, PacketMore};

/// Letters of FSRPAUEC (FIN, SYN, RST, PSH, ACK, URG, ECE, CWR) of the bits of a TCP header.
pub(super) fn flags(bits: u8) -> Cow<'static, str> {
    "FSRPAUEC"
        .chars()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 != 0)
        .map(|(_, letter)| letter)
        .collect()
}

/// The bit of ACK.
pub(super) const ACK: u8 = 1 << 4;

/// The edges of SACK blocks.
pub(super) trait Sack {
    /// Left and right edge of each block.
    fn blocks(&self) -> impl Iterator<Item = (u32, u32)>;
}

macro_rules! sack {
    ($more:ty) => {
        impl Sack for $more {
            fn blocks(&self) -> impl Iterator<Item = (u32, u32)> {
                let all = [
                    (self.left0, self.right0),
                    (self.left1, self.right1),
                    (self.left2, self.right2),
                    (self.left3, self.right3),
                ];
                all.into_iter().take(usize::from(self.sack_count))
            }
        }
    };
}

sack!(EventMore);
sack!(PacketMore);

/// The left edges, if there are blocks.
pub(super) fn left(more: Option<&impl Sack>) -> Vec<u32> {
    more.map(|more| more.blocks().map(|(left, _)| left).collect())
        .unwrap_or_default()
}

/// The right edges.
pub(super) fn right(more: Option<&impl Sack>) -> Vec<u32> {
    more.map(|more| more.blocks().map(|(_, right)| right).collect())
        .unwrap_or_default()
}
