//! What one packet does to its flow: section 4, in the order of its parts.

use weir_record::{BlockEnd, RttHow, tcp_flag, what, width};

use super::acknowledge::acknowledge;
use super::arithmetic::saturate_u16;
use super::before::{Before, is_overtaken};
use super::data::{data, echo, window_conditions};
use super::interval::{begin_interval, end_interval};
use super::order::{is_copy, order};
use super::out::Out;
use super::records::{close_blocks, end_block, write_block_of_one, write_event, write_packet, write_rtt};
use super::setup::{acks_this_setup, reset, setup_end, syn};
use crate::flow::{Flow, Low40, Side, State, bit, pair, side};
use crate::meta::{Class, Meta};

/// Conditions that make the next interval fine (section 5).
const TROUBLE: u32 = what::GAP
    | what::BELOW
    | what::ACK_UNSEEN
    | what::SACK
    | what::DUP_ACK
    | what::ZERO_WINDOW
    | what::SMALL_WINDOW
    | what::SYN_REPEAT
    | what::SYN_ACK_REPEAT;

/// Bits that cause no EVENT by themselves.
const BESIDE: u32 = what::PUSH | what::IDLE_BEFORE | what::EXPECTED_UNKNOWN | what::ACKED_UNKNOWN | what::ACKS_MORE;

/// `IDS_SKIPPED` (4.8): the highest `id_step`, and the least `since_data` in its units of 64 ns.
const MOST_IDS_SKIPPED: u16 = 17;
const LEAST_PAUSE: u32 = 1 << (20 - 6);

/// A round trip: the side that was timed, how, ns, and what was acknowledged.
pub(super) type Timed = (usize, RttHow, u64, u32);

/// What earlier steps of section 4 tell later ones about the packet.
#[derive(Default)]
pub(super) struct Step {
    pub what: u32,
    /// The packet is a SYN that fits nothing: its ACK is not used.
    pub other_syn: bool,
    pub new_bytes: bool,
    pub new_start: u32,
    /// Payload or FIN at the next expected.
    pub in_sequence: bool,
    pub rtt: Option<Timed>,
    /// Payload or FIN set the next expected.
    pub moved: bool,
    /// First sequence number, bytes and end of a BLOCK of the packet alone.
    pub alone: Option<(u32, u32, BlockEnd)>,
    /// What ends the sender's block.
    pub end: Option<BlockEnd>,
}

/// Section 4: everything one packet does to its flow. Whether it brought new bytes.
#[inline]
pub(super) fn update(flow: &mut Flow, meta: &Meta, time: u64, digests: bool, out: &mut Out<'_>) -> bool {
    let s = flow.sender(meta.from_low);
    let ended = end_interval(flow, time);
    if flow.interval == 0 {
        begin_interval(flow, time);
    }
    flow.sides[s].active = true;

    let new_bytes = meta.class == Class::Tcp && tcp_packet(flow, s, meta, time, out);

    // 4.10
    let sender = &mut flow.sides[s];
    sender.packets = sender.packets.wrapping_add(1);
    sender.payload = Low40::new((sender.payload.get() + u64::from(meta.payload)) & ((1 << width::PAYLOAD) - 1));
    flow.last_seen = time;
    const FINISHED: u16 = side::FIN | side::FIN_ACKED;
    if flow.sides[0].flags & flow.sides[1].flags & FINISHED == FINISHED && matches!(flow.state, State::Up | State::Mid)
    {
        flow.state = State::ClosedFin;
    }

    if let Some(ended) = ended {
        ended.write(1, out);
    }
    if digests {
        write_packet(s, meta, out);
    }
    new_bytes
}

#[inline(never)]
fn tcp_packet(flow: &mut Flow, s: usize, meta: &Meta, time: u64, out: &mut Out<'_>) -> bool {
    let is_set_up = !flow.pending();
    let (sender, receiver) = pair(&mut flow.sides, s);
    let before = Before::of(sender);
    let id_step = before.id_step(meta);
    let is_copy = is_copy(sender, meta);
    let is_overtaken = is_overtaken(id_step);
    if !is_overtaken {
        sender.ip_id = meta.ip_id;
    }
    if is_set_up && meta.flags & (tcp_flag::SYN | tcp_flag::RST) == 0 {
        let step = segment(sender, receiver, s, meta, time, is_copy);
        tell(flow, s, meta, &before, false, step, out)
    } else {
        control(flow, s, meta, &before, is_copy, out)
    }
}

/// A packet of a connection that is set up, neither SYN nor RST.
#[inline]
fn segment(sender: &mut Side, receiver: &mut Side, s: usize, meta: &Meta, time: u64, is_copy: bool) -> Step {
    let mut step = order(sender, receiver, meta, is_copy);
    if meta.flags & tcp_flag::ACK != 0 {
        acknowledge(sender, receiver, s, meta, time, false, &mut step);
    }
    // Windows and data change state now; their BLOCK records come after EVENT and RTT.
    if !is_copy {
        window_conditions(sender, meta, &mut step);
    }
    step.end = data(sender, receiver, meta, time, false, false, &mut step);
    echo(sender, receiver, s, meta, time, &mut step);
    step
}

/// A packet with SYN or RST, or while the setup is pending: SETUP is its first record.
#[inline(never)]
fn control(flow: &mut Flow, s: usize, meta: &Meta, before: &Before, is_copy: bool, out: &mut Out<'_>) -> bool {
    let was_pending = flow.pending();
    if meta.flags & tcp_flag::RST != 0 {
        let bits = reset(flow, s, meta, out);
        conditions(flow, s, meta, before, was_pending, bits, out);
        if bits & what::WILD == 0 {
            close_blocks(flow, out);
        }
        return false;
    }
    let time = out.time;
    let is_syn = meta.flags & tcp_flag::SYN != 0;
    let mut step = if is_syn {
        syn(flow, s, meta, time, is_copy)
    } else {
        let (sender, receiver) = pair(&mut flow.sides, s);
        order(sender, receiver, meta, is_copy)
    };
    let (sender, receiver) = pair(&mut flow.sides, s);
    if meta.flags & tcp_flag::ACK != 0 && !step.other_syn {
        if was_pending && s == 1 && !acks_this_setup(receiver, meta.ack) {
            step.what |= what::WILD_ACK; // a challenge ACK of an earlier connection (RFC 9293 3.5.1)
        } else {
            acknowledge(sender, receiver, s, meta, time, was_pending, &mut step);
        }
    }
    if !is_syn {
        if let Some(timed) = setup_end(flow, s, meta, out) {
            step.rtt = Some(timed);
        }
        let pending = flow.pending();
        let (sender, receiver) = pair(&mut flow.sides, s);
        if !pending && !is_copy {
            window_conditions(sender, meta, &mut step);
        }
        // Data of the client without an ACK: its block fields still hold the setup.
        let own_block = pending && s == 0 && step.new_bytes;
        step.end = data(sender, receiver, meta, time, pending, own_block, &mut step);
        if !pending {
            echo(sender, receiver, s, meta, time, &mut step);
        }
        if own_block {
            let fin = meta.flags & tcp_flag::FIN != 0;
            let bytes = sender.next.wrapping_sub(step.new_start).wrapping_sub(u32::from(fin));
            let cause = if fin { BlockEnd::Fin } else { BlockEnd::Push };
            step.alone = Some((step.new_start, bytes, cause));
        }
    }
    tell(flow, s, meta, before, was_pending, step, out)
}

/// Section 6: EVENT, RTT, BLOCK. Whether the packet brought new bytes.
#[inline(always)]
fn tell(
    flow: &mut Flow,
    s: usize,
    meta: &Meta,
    before: &Before,
    was_pending: bool,
    mut step: Step,
    out: &mut Out<'_>,
) -> bool {
    let skipped = (2..=MOST_IDS_SKIPPED).contains(&before.id_step(meta));
    if skipped && step.in_sequence && before.since_data(out.time) >= LEAST_PAUSE {
        step.what |= what::IDS_SKIPPED;
    }
    let occupies = meta.payload > 0 || meta.flags & tcp_flag::FIN != 0;
    let below = occupies && step.what & what::BELOW != 0;
    if (below || step.what & (what::SYN_REPEAT | what::SYN_ACK_REPEAT) != 0) && step.what & what::COPY == 0 {
        flow.sides[s].set(side::REPEATED, true);
    }
    if step.what & !BESIDE != 0 {
        conditions(flow, s, meta, before, was_pending, step.what, out);
    }
    if let Some(timed) = step.rtt {
        write_rtt(&flow.sides, timed, meta, out);
    }
    let (sender, receiver) = pair(&mut flow.sides, s);
    if step.new_bytes {
        end_block(receiver, sender, 1 - s, BlockEnd::Turn, (0, false), out);
    }
    if let Some(alone) = step.alone {
        write_block_of_one(sender, receiver, s, meta, alone, out);
    }
    if let Some(cause) = step.end {
        let fin = step.moved && meta.flags & tcp_flag::FIN != 0;
        end_block(sender, receiver, s, cause, (meta.ttl, fin), out);
    }
    step.new_bytes
}

/// What the packet's conditions change beside what they are, and EVENT.
#[inline(never)]
fn conditions(
    flow: &mut Flow,
    s: usize,
    meta: &Meta,
    before: &Before,
    pending: bool,
    mut bits: u32,
    out: &mut Out<'_>,
) {
    if bits & what::COPY != 0 {
        flow.sides[s].copies = saturate_u16(flow.sides[s].copies, width::COPIES);
    }
    // Keep-alives and probes are no trouble.
    let harmless = bits & TROUBLE == what::BELOW && bits & what::PARTIAL == 0 && meta.payload <= 1;
    if bits & TROUBLE != 0 && !harmless {
        flow.set(bit::TROUBLE, true);
    }
    // A packet changes nothing of its receiver that EVENT tells of.
    let receiver = &flow.sides[1 - s];
    for (on, bit) in [
        (meta.flags & tcp_flag::PSH != 0, what::PUSH),
        (before.idle(), what::IDLE_BEFORE),
        (before.flags & side::HAS_NEXT == 0, what::EXPECTED_UNKNOWN),
        (!receiver.is(side::HAS_ACK), what::ACKED_UNKNOWN),
    ] {
        bits |= if on { bit } else { 0 };
    }
    let dup_acks = if pending { 0 } else { receiver.chain };
    write_event(s, meta, before, receiver, dup_acks, bits, out);
}
