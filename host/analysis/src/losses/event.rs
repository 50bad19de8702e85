//! What an EVENT record tells by itself.

use weir_record::{Event, IdStep, SINCE_DATA_NS, tcp_flag, what};

use super::FAR;

/// The first that is not acknowledged.
pub(super) fn is_first(e: &Event) -> bool {
    e.what & what::ACKED_UNKNOWN == 0 && e.seq == e.acked
}

/// Two duplicate ACKs at least stand where it begins.
pub(super) fn is_asked_twice(e: &Event) -> bool {
    e.dup_acks >= 2 && is_first(e)
}

/// Time since the data segment before it, ns; the largest there is after more than a second.
pub(crate) fn since_data(e: &Event) -> u64 {
    if e.what & what::IDLE_BEFORE != 0 {
        u64::MAX
    } else {
        u64::from(e.since_data) * SINCE_DATA_NS
    }
}

/// A packet without data, and its sender had sent more than was seen.
pub(super) fn is_ahead(e: &Event) -> bool {
    let elsewhere = what::WILD | what::GAP | what::BELOW | what::ACK_UNSEEN | what::EXPECTED_UNKNOWN;
    let flags = tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST;
    let ahead = e.seq.wrapping_sub(e.expected);
    e.length == 0 && e.what & elsewhere == 0 && e.tcp_flags & flags == 0 && (1..FAR).contains(&ahead)
}

/// The IP id is above the newest of its sender's: of ids by chance, 1 in 256 is.
pub(crate) fn has_new_id(e: &Event) -> bool {
    (1..IdStep::Overtaken as u8).contains(&e.id_step)
}
