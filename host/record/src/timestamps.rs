//! What EVENT keeps of the timestamps option (RFC 7323 3): TSval, or of what answers a repeat TSecr.

use crate::{Event, what};

/// Whether [`Event::tsval`] is TSecr: the packet answers what came again, and no order is to be told from its own TSval
/// (flow engine, section 4.10).
pub const fn holds_echo(bits: u32) -> bool {
    let own = what::GAP | what::BELOW | what::WILD | what::IDS_SKIPPED;
    bits & what::ACKS_REPEAT != 0 && bits & own == 0
}

impl Event {
    /// TSval of the packet; `None`: it has none, or the record holds TSecr.
    pub const fn sent(&self) -> Option<u32> {
        if self.tsval == 0 || holds_echo(self.what) {
            None
        } else {
            Some(self.tsval)
        }
    }

    /// TSecr of the packet, which is the first that can answer what came again; `None`: not told.
    pub const fn echo(&self) -> Option<u32> {
        if self.tsval != 0 && holds_echo(self.what) {
            Some(self.tsval)
        } else {
            None
        }
    }
}
