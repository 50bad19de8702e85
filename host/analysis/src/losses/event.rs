//! What an EVENT record tells by itself.

use weir_record::{Event, SINCE_DATA_NS, what};

/// The first that is not acknowledged.
pub(super) fn is_first(e: &Event) -> bool {
    e.what & what::ACKED_UNKNOWN == 0 && e.seq == e.acked
}

/// Two duplicate ACKs at least stand where it begins.
pub(super) fn is_asked_twice(e: &Event) -> bool {
    e.dup_acks >= 2 && is_first(e)
}

pub(super) fn since_data(e: &Event) -> u64 {
    if e.what & what::IDLE_BEFORE != 0 {
        u64::MAX
    } else {
        u64::from(e.since_data) * SINCE_DATA_NS
    }
}
