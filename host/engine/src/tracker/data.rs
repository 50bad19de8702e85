//! Windows, blocks, round trips and flight: section 4.8.

use weir_record::{BlockEnd, RttHow, tcp_flag, what, width};

use super::arithmetic::{after, saturate_u16};
use super::before::is_overtaken;
use super::order::segment_end;
use super::packet::Step;
use crate::flow::{NO_SCALE, ShortTime, Side, Slot, TIME_LIMIT, flight, side};
use crate::meta::Meta;

/// MSS of a peer that did not send the option (RFC 9293 3.7.1).
const DEFAULT_MSS: u32 = 536;

/// ns for which a packet that was overtaken may hold up an ACK whose round trip still counts, and below which an echo tells
/// nothing: a tick of timestamps is hardly shorter.
const SOON: u64 = 1 << 20;

/// Window of `side` in bytes, if known (section 4.8).
#[inline]
fn window_bytes(side: &Side) -> Option<u32> {
    (side.scale != NO_SCALE).then(|| u32::from(side.window) << side.scale)
}

/// Section 4.8, first part.
#[inline(always)]
pub(super) fn window_conditions(sender: &mut Side, meta: &Meta, step: &mut Step) {
    sender.window = meta.window;
    let mss = if sender.mss == 0 {
        DEFAULT_MSS
    } else {
        u32::from(sender.mss)
    };
    let small = window_bytes(sender).is_some_and(|w| w > 0 && w < mss);
    if meta.window == 0 {
        sender.zero_windows = saturate_u16(sender.zero_windows, width::ZERO_WINDOWS);
        if !sender.is(side::ZERO) {
            step.what |= what::ZERO_WINDOW;
        }
        sender.set(side::ZERO, true);
        sender.set(side::SMALL, false);
    } else if small {
        sender.small_windows = saturate_u16(sender.small_windows, width::SMALL_WINDOWS);
        if !sender.is(side::SMALL) {
            step.what |= what::SMALL_WINDOW;
        }
        sender.set(side::ZERO, false);
        sender.set(side::SMALL, true);
    } else {
        if sender.is(side::ZERO | side::SMALL) {
            step.what |= what::WINDOW_OPEN;
        }
        sender.set(side::ZERO | side::SMALL, false);
    }
    sender.window_min = sender.window_min.min(meta.window);
    sender.window_max = sender.window_max.max(meta.window);
}

/// Payload of the packet as the 14-bit field of a block holds it.
#[inline]
pub(super) fn block_max(meta: &Meta) -> u16 {
    meta.payload.min((1 << width::BLOCK_MAX) - 1) as u16
}

/// Whether the ACK of the segment that is timed may be one of this packet, which is below `next`, or have waited for it for long
/// (Karn's rule, RFC 6298 3). What was overtaken is no repeat: a mirror's copy, or late.
fn may_delay_ack(sender: &Side, meta: &Meta, time: u64) -> bool {
    // Of what is newer, `ip_id` is the id.
    let was_overtaken = is_overtaken(meta.ip_id.wrapping_sub(sender.ip_id));
    let is_soon = sender.slot_time.age(time) < SOON;
    !was_overtaken || after(sender.slot_seq, meta.seq) && !is_soon
}

/// Section 4.8, echo: what answers the receiver's timed ACK, and the sender's own. After [`data`], the setup not pending.
#[inline(always)]
pub(super) fn echo(sender: &mut Side, receiver: &mut Side, s: usize, meta: &Meta, time: u64, step: &mut Step) {
    let Some((tsval, tsecr)) = meta.options.timestamps else {
        return;
    };
    let acks = meta.flags & tcp_flag::ACK != 0;
    if step.new_bytes && acks && receiver.slot == Slot::Ack && !after(receiver.slot_seq, tsecr) {
        receiver.slot = Slot::Free;
        let value = receiver.slot_time.age(time);
        // Who echoes a later one had heard more.
        if tsecr == receiver.slot_seq && (SOON..TIME_LIMIT).contains(&value) {
            let end = meta.seq.wrapping_add(meta.payload);
            step.rtt = Some((1 - s, RttHow::Echo, value, end));
        }
    }
    let is_bare = meta.payload == 0 && meta.flags & tcp_flag::FIN == 0;
    let acks_more = step.what & (what::ACKS_MORE | what::COPY) == what::ACKS_MORE;
    if is_bare && acks_more && sender.slot == Slot::Free {
        sender.slot = Slot::Ack;
        sender.slot_seq = tsval;
        sender.slot_time = ShortTime::new(time);
    }
}

/// Section 4.8, second part: blocks, window full, the RTT slot, flight. Returns what ends the
/// sender's block.
#[inline(always)]
pub(super) fn data(
    sender: &mut Side,
    receiver: &Side,
    meta: &Meta,
    time: u64,
    pending: bool,
    own_block: bool,
    step: &mut Step,
) -> Option<BlockEnd> {
    let fin = meta.flags & tcp_flag::FIN != 0;
    let push = meta.flags & tcp_flag::PSH != 0;
    if meta.payload > 0 {
        let is_below = step.what & (what::BELOW | what::COPY) == what::BELOW;
        if is_below && sender.slot == Slot::Segment && may_delay_ack(sender, meta, time) {
            sender.slot = Slot::Free;
        }
        sender.block_last = ShortTime::new(time);
        sender.set(side::IDLE, false);
    }
    if step.new_bytes && !own_block {
        if !sender.is(side::BLOCK_OPEN) {
            sender.set(side::BLOCK_OPEN, true);
            sender.block_first = ShortTime::new(time);
            sender.block_seq = step.new_start;
            sender.block_packets = 0;
            sender.block_max = 0;
        }
        sender.block_packets += 1; // LIMIT ends the block before it can overflow
        sender.block_max = sender.block_max.max(block_max(meta));
        // Its ACK was captured before it: the next one answers something else.
        let is_acked = receiver.is(side::HAS_ACK) && flight(sender, receiver) == 0;
        let in_order = step.what & (what::GAP | what::PROBE | what::BELOW) == 0;
        if sender.slot != Slot::Segment && in_order && !is_acked && !pending {
            sender.slot = Slot::Segment;
            sender.slot_seq = meta.seq.wrapping_add(meta.payload);
            sender.slot_time = ShortTime::new(time);
        }
    }
    let mut block_end = None;
    if sender.is(side::BLOCK_OPEN) {
        let closes = step.moved
            || fin && step.what & what::FIN != 0
            || step.what & what::BELOW != 0 && segment_end(meta) == sender.next;
        block_end = if fin && closes {
            Some(BlockEnd::Fin)
        } else if push && closes {
            Some(BlockEnd::Push)
        } else if sender.block_packets == u16::MAX
            || sender.next.wrapping_sub(sender.block_seq) >= 1 << 31
            || sender.block_first.age(time) >= TIME_LIMIT
        {
            Some(BlockEnd::Limit)
        } else {
            None
        };
    }
    let in_flight = flight(sender, receiver);
    match window_bytes(receiver) {
        Some(window) if !pending && window > 0 && in_flight.saturating_add(meta.payload) > window => {
            if step.new_bytes && !sender.is(side::FULL) {
                step.what |= what::WINDOW_FULL;
                sender.set(side::FULL, true);
            }
        }
        _ => sender.set(side::FULL, false),
    }
    sender.flight_max = sender.flight_max.max(in_flight.min((1 << width::FLIGHT_MAX) - 1));
    block_end
}
