//! The edges of SACK blocks (RFC 2018 3), left and right, from the continuations that carry them.

use crate::layout::{EventMore, PacketMore};

macro_rules! sack {
    ($more:ty) => {
        impl $more {
            /// Left and right edge of each block, as the option has them.
            pub fn sack(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
                let all = [
                    (self.left0, self.right0),
                    (self.left1, self.right1),
                    (self.left2, self.right2),
                    (self.left3, self.right3),
                ];
                all.into_iter().take(self.sack_count.into())
            }
        }
    };
}

sack!(EventMore);
sack!(PacketMore);
