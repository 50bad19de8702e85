//! Acknowledgments: section 4.6.

use weir_record::{RttHow, tcp_flag, what, width};

use super::arithmetic::{after, saturate_u16};
use super::packet::Step;
use crate::flow::{CHAIN_MAX, Side, Slot, TIME_LIMIT, flight, side};
use crate::meta::Meta;

/// RTT DATA is written about once in 2 to the power of so many ns.
const GATE_BITS: u32 = 20;

/// Hash of what a SACK option says (section 4.6); 0 without one.
pub(super) const fn sack_hash(meta: &Meta) -> u16 {
    if meta.options.sack_count == 0 {
        return 0;
    }
    let (left, right) = meta.options.sack[0];
    let h = left
        ^ (left >> 12)
        ^ (left >> 24)
        ^ right.rotate_left(5)
        ^ (right >> 7)
        ^ (right >> 19)
        ^ meta.ack
        ^ (meta.ack >> 12);
    let h = (h & 0xfff) as u16;
    if h == 0 { 1 } else { h }
}

/// Section 4.6.
#[inline(always)]
pub(super) fn acknowledge(
    sender: &mut Side,
    receiver: &mut Side,
    s: usize,
    meta: &Meta,
    time: u64,
    pending: bool,
    step: &mut Step,
) {
    let una = sender.ack;
    let had_ack = sender.is(side::HAS_ACK);
    let advance = meta.ack.wrapping_sub(una) as i32;
    if !had_ack {
        sender.ack = meta.ack;
        sender.set(side::HAS_ACK, true);
    } else if advance.unsigned_abs() >= 1 << 30 {
        step.what |= what::WILD_ACK;
        if pending {
            return;
        }
        let again = sender.is(side::WILD_ACK);
        sender.set(side::WILD_ACK, !again);
        if !again {
            return;
        }
        step.what |= what::RESYNC;
        sender.ack = meta.ack;
        sender.chain = 0;
    } else {
        if !pending {
            sender.set(side::WILD_ACK, false);
        }
        if advance > 0 {
            sender.ack = meta.ack;
            if !pending {
                sender.chain = 0;
            }
        }
    }
    if !had_ack || sender.ack != una {
        step.what |= what::ACKS_MORE;
        if receiver.is(side::REPEATED) {
            step.what |= what::ACKS_REPEAT;
            receiver.set(side::REPEATED, false);
        }
    }
    if receiver.is(side::HAS_NEXT) && after(meta.ack, receiver.next) && !(had_ack && after(una, receiver.next)) {
        step.what |= what::ACK_UNSEEN;
    }

    let hash = sack_hash(meta);
    let new_sack = hash != 0 && hash != sender.sack_hash;
    let pure = meta.payload == 0 && meta.flags & (tcp_flag::SYN | tcp_flag::FIN) == 0;
    if pure
        && had_ack
        && meta.ack == una
        && receiver.is(side::HAS_NEXT)
        && after(receiver.next, una)
        && step.what & what::COPY == 0
        && (meta.window == sender.window && meta.window != 0 || new_sack)
    {
        sender.dup_acks = saturate_u16(sender.dup_acks, width::DUP_ACKS);
        if !pending && sender.chain < CHAIN_MAX {
            sender.chain += 1;
            if sender.chain == 3 {
                step.what |= what::DUP_ACK;
            }
        }
    }
    if new_sack {
        step.what |= what::SACK;
        let [first, second, ..] = meta.options.sack;
        let inside_second = meta.options.sack_count > 1 && !after(second.0, first.0) && !after(first.1, second.1);
        if !after(first.1, meta.ack) || inside_second {
            step.what |= what::DSACK;
        }
    }
    sender.sack_hash = hash;
    receiver.set(side::FIN_ACKED, receiver.is(side::FIN) && sender.ack == receiver.next);

    if receiver.slot == Slot::Segment && !pending && !after(receiver.slot_seq, meta.ack) {
        receiver.slot = Slot::Free;
        let value = receiver.slot_time.age(time);
        if value < TIME_LIMIT {
            receiver.sample(value);
            let gate = (time >> GATE_BITS) as u8;
            // So long a sample began after the last record; after one that leaves nothing in flight nobody waits for ACKs.
            if gate != receiver.rtt_gate || value >> GATE_BITS != 0 || flight(receiver, sender) == 0 {
                receiver.rtt_gate = gate;
                step.rtt = Some((1 - s, RttHow::Data, value, receiver.slot_seq));
            }
        }
    }
}
