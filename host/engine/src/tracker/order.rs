//! Where a segment stands in its stream: section 4.5.

use weir_record::{tcp_flag, what};

use super::acknowledge::sack_hash;
use super::arithmetic::after;
use super::packet::Step;
use crate::flow::{Side, side};
use crate::meta::Meta;

/// Sequence number after the segment.
#[inline]
pub(super) fn segment_end(meta: &Meta) -> u32 {
    let controls = u32::from(meta.flags & tcp_flag::SYN != 0) + u32::from(meta.flags & tcp_flag::FIN != 0);
    meta.seq.wrapping_add(meta.payload).wrapping_add(controls)
}

/// Section 4.5.
#[inline(always)]
pub(super) fn order(sender: &mut Side, receiver: &Side, meta: &Meta, is_copy: bool) -> Step {
    let peer_is_zero = receiver.is(side::ZERO);
    let mut step = Step {
        what: if is_copy { what::COPY } else { 0 },
        ..Step::default()
    };
    let fin = meta.flags & tcp_flag::FIN != 0;
    let end = segment_end(meta);
    let mut used = true;
    if meta.payload > 0 || fin {
        let d = if sender.is(side::HAS_NEXT) {
            meta.seq.wrapping_sub(sender.next) as i32
        } else {
            0
        };
        step.new_start = meta.seq;
        if d.unsigned_abs() >= 1 << 30 {
            step.what |= what::WILD;
            used = sender.is(side::WILD);
            sender.set(side::WILD, !used);
            if used {
                step.what |= what::RESYNC;
                step.moved = true;
                step.new_bytes = meta.payload > 0;
            }
        } else {
            sender.set(side::WILD, false);
            if meta.payload == 1 && !fin && peer_is_zero && (d == 0 || d == -1) {
                step.what |= what::PROBE;
            }
            if d < 0 {
                step.what |= what::BELOW;
                if after(end, sender.next) {
                    step.what |= what::PARTIAL;
                    step.new_start = sender.next;
                    // New bytes only if payload, not just the FIN, reaches beyond.
                    step.new_bytes = after(meta.seq.wrapping_add(meta.payload), sender.next);
                    step.moved = true;
                }
            } else {
                step.in_sequence = d == 0 && sender.is(side::HAS_NEXT);
                if d > 0 {
                    step.what |= what::GAP;
                    // The missing bytes belong to the block that comes, if none is open.
                    step.new_start = sender.next;
                }
                step.moved = true;
                sender.set(side::HAS_NEXT, true);
                step.new_bytes = meta.payload > 0;
            }
        }
        if step.moved {
            sender.next = end;
        }
    } else if !sender.is(side::HAS_NEXT) {
        sender.next = meta.seq;
        sender.set(side::HAS_NEXT, true);
    } else if meta.seq == sender.next.wrapping_sub(1) {
        step.what |= if peer_is_zero {
            what::BELOW | what::PROBE
        } else {
            what::BELOW
        };
    }
    if fin {
        if sender.is(side::FIN) {
            step.what |= what::FIN_REPEAT;
        } else {
            step.what |= what::FIN;
            sender.set(side::FIN, used);
        }
        if step.moved {
            // Its ACK may have been captured before it.
            sender.set(side::FIN_ACKED, receiver.is(side::HAS_ACK) && receiver.ack == end);
        }
    }
    step
}

/// COPY of section 4.5, against the sender's state before the packet.
#[inline]
pub(super) fn is_copy(before: &Side, meta: &Meta) -> bool {
    if meta.ip_id == 0 || before.ip_id != meta.ip_id || meta.flags & tcp_flag::RST != 0 {
        return false;
    }
    let occupies = meta.payload > 0 || meta.flags & (tcp_flag::FIN | tcp_flag::SYN) != 0;
    if occupies {
        before.is(side::HAS_NEXT) && segment_end(meta) == before.next
    } else {
        before.is(side::HAS_ACK) && meta.ack == before.ack && sack_hash(meta) == before.sack_hash
    }
}
