//! Handshakes and resets: sections 4.4, 4.7 and 4.9.

use weir_record::{BlockEnd, RttHow, SetupEnd, tcp_flag, what};

use super::arithmetic::after;
use super::data::block_max;
use super::order::segment_end;
use super::out::Out;
use super::packet::{Step, Timed};
use super::records::write_setup;
use crate::flow::{CHAIN_MAX, Flow, NO_SCALE, ShortTime, Side, Slot, State, TIME_LIMIT, side};
use crate::meta::Meta;

/// A server that goes on this long after its SYN-ACK was answered, whether we saw it or not.
const ONE_SIDED_AFTER: u64 = 1 << 32;

/// Section 4.4.
#[inline(never)]
pub(super) fn syn(flow: &mut Flow, s: usize, meta: &Meta, time: u64, copy: bool) -> Step {
    let r = 1 - s;
    let mut step = Step {
        what: if copy { what::COPY } else { 0 },
        ..Step::default()
    };
    let end = segment_end(meta);
    let is_ack = meta.flags & tcp_flag::ACK != 0;
    let state = flow.state;
    let repeats = flow.sides[s].repeats(meta.seq);
    let no_reply_yet = flow.sides[1].chain == 0;
    let answers = acks_this_setup(&flow.sides[0], meta.ack);
    let pending = flow.pending();
    let sender = &mut flow.sides[s];
    let mut repeated = false;
    if !is_ack && s == 0 && matches!(state, State::Syn | State::SynAck) {
        if sender.chain == 0 {
            take_options(sender, meta, pending);
            sender.next = end;
            sender.set(side::HAS_NEXT, true);
            sender.block_first = ShortTime::new(time);
            sender.slot_time = ShortTime::new(time);
            sender.block_seq = meta.seq.wrapping_add(1);
            sender.block_max = block_max(meta);
        } else {
            step.what |= what::SYN_REPEAT;
            repeated = true;
            if no_reply_yet && !copy {
                sender.slot_time = ShortTime::new(time);
            }
        }
        sender.window = meta.window;
        if !copy {
            sender.chain = (sender.chain + 1).min(CHAIN_MAX);
        }
    } else if is_ack && s == 1 && matches!(state, State::Syn | State::SynAck) && sender.chain == 0 && answers {
        take_options(sender, meta, pending);
        sender.next = end;
        sender.set(side::HAS_NEXT, true);
        sender.slot_time = ShortTime::new(time);
        sender.slot_seq = meta.seq.wrapping_add(1);
        sender.chain = 1;
        sender.window = meta.window;
        flow.state = State::SynAck;
        let receiver = &mut flow.sides[r];
        if !receiver.is(side::HAS_NEXT) {
            receiver.next = meta.ack;
            receiver.block_seq = meta.ack;
            receiver.set(side::HAS_NEXT, true);
        }
        if receiver.chain == 1 {
            let value = receiver.slot_time.age(time);
            if value < TIME_LIMIT {
                receiver.sample(value);
                step.rtt = Some((r, RttHow::Handshake, value, meta.ack));
            }
        }
    } else if is_ack
        && s == 1
        && state == State::SynAck
        && sender.chain > 0
        && sender.slot_seq == meta.seq.wrapping_add(1)
    {
        step.what |= what::SYN_ACK_REPEAT;
        repeated = true;
        if !copy {
            sender.chain = (sender.chain + 1).min(CHAIN_MAX);
        }
        sender.window = meta.window;
    } else if repeats && !matches!(state, State::Syn | State::SynAck) {
        step.what |= if is_ack { what::SYN_ACK_REPEAT } else { what::SYN_REPEAT };
        repeated = true;
    } else {
        step.what |= what::SYN_OTHER;
        step.other_syn = true;
        if !sender.is(side::HAS_NEXT) {
            take_options(sender, meta, pending);
            sender.scale = NO_SCALE; // whether scaling is in effect is not known
            sender.next = end;
            sender.set(side::HAS_NEXT, true);
        }
    }
    if meta.payload > 0 {
        step.what |= what::SYN_DATA;
        if !repeated && !step.other_syn {
            step.alone = Some((meta.seq.wrapping_add(1), meta.payload, BlockEnd::Push));
        }
    }
    step
}

/// Whether an ack of the server can answer the SYN of the pending setup.
#[inline]
pub(super) fn acks_this_setup(client: &Side, ack: u32) -> bool {
    let isn = client.block_seq.wrapping_sub(1);
    client.chain == 0 || (after(ack, isn) && !after(ack, client.next))
}

fn take_options(sender: &mut Side, meta: &Meta, pending: bool) {
    sender.mss = meta.options.mss;
    sender.scale = if meta.options.scale == weir_record::NO_SCALE {
        NO_SCALE
    } else {
        meta.options.scale.min(14)
    };
    sender.set(side::SACK_OK, meta.options.sack_permitted);
    let (is_ack, is_cwr) = (meta.flags & tcp_flag::ACK != 0, meta.flags & tcp_flag::CWR != 0);
    sender.set(side::ECN, meta.flags & tcp_flag::ECE != 0 && is_cwr != is_ack);
    sender.set(side::TIMESTAMPS, meta.options.timestamps.is_some());
    if pending {
        sender.set(side::CUT, meta.options.incomplete); // afterwards the bit is WILD_ACK
    }
}

/// Section 4.7: the packet ends the setup that is pending, if it does; the RTT of the SYN-ACK.
#[inline(never)]
pub(super) fn setup_end(flow: &mut Flow, s: usize, meta: &Meta, out: &mut Out<'_>) -> Option<Timed> {
    if meta.flags & tcp_flag::ACK == 0 {
        return None;
    }
    let time = out.time;
    let mut timed = None;
    if s == 0 {
        // SETUP tells of the sides as they were before.
        write_setup(&flow.sides, SetupEnd::Done, time, meta.window, out);
        let server = &mut flow.sides[1];
        if flow.state == State::SynAck && server.chain == 1 {
            let value = server.slot_time.age(time);
            if value < TIME_LIMIT {
                server.sample(value);
                timed = Some((1, RttHow::Handshake, value, server.slot_seq));
            }
        }
        leave_setup(flow, State::Up);
    } else {
        let [client, server] = &flow.sides;
        let unseen = client.is(side::HAS_NEXT) && after(meta.ack, client.next);
        if flow.state == State::SynAck && (unseen || server.slot_time.age(time) >= ONE_SIDED_AFTER) {
            write_setup(&flow.sides, SetupEnd::OneSided, 0, meta.window, out);
            leave_setup(flow, State::Up);
        }
    }
    timed
}

/// Section 4.9: what the RST is; a pending setup ends.
#[cold]
pub(super) fn reset(flow: &mut Flow, s: usize, meta: &Meta, out: &mut Out<'_>) -> u32 {
    let sender = &mut flow.sides[s];
    let distance = meta.seq.wrapping_sub(sender.next) as i32;
    if sender.is(side::HAS_NEXT) && distance.unsigned_abs() >= 1 << 16 {
        return what::RST | what::WILD; // no receiver would take it (RFC 9293 3.5.2, RFC 5961 3.2)
    }
    sender.set(side::RST, true);
    if flow.pending() {
        write_setup(&flow.sides, SetupEnd::Reset, out.time, meta.window, out);
        leave_setup(flow, State::ClosedRst);
    }
    flow.state = State::ClosedRst;
    what::RST
}

/// The setup is over: its fields go back to what they are for; window scaling is in effect or not
/// (RFC 7323 2.2).
pub(super) fn leave_setup(flow: &mut Flow, state: State) {
    let [client, server] = &mut flow.sides;
    let (syn, syn_ack) = (client.chain > 0, server.chain > 0);
    // What was cut may have had it.
    let lacks = |side: &Side| side.scale == NO_SCALE && !side.is(side::CUT);
    if syn && lacks(client) || syn_ack && lacks(server) {
        client.scale = 0;
        server.scale = 0;
    } else if server.scale == NO_SCALE {
        client.scale = NO_SCALE;
    }
    for side in [client, server] {
        side.chain = 0;
        side.set(side::WILD_ACK, false);
        side.slot = Slot::Free;
    }
    flow.state = state;
}
