//! Records of a flow, as sections 5 and 6 say.

use weir_record::timestamps::holds_echo;
use weir_record::{
    Block, BlockEnd, Close, CloseCause, CloseMore, Event, EventMore, Packet, PacketMore, Rtt, RttHow, Setup, SetupEnd,
    SetupMore, flag, setup_bit, what,
};

use super::before::{Before, told};
use super::data::block_max;
use super::out::{Out, direction};
use super::packet::Timed;
use crate::flow::{Flow, NO_SCALE, ShortTime, Side, flight, pair, side};
use crate::meta::Meta;

/// Write BLOCK for the sender, side `s`, if its block is open. Of this side's packet, if that ends it: its TTL, and whether
/// `next` counts its FIN. A FIN that `next` counts always ends the block.
#[inline]
pub(super) fn end_block(
    sender: &mut Side,
    receiver: &Side,
    s: usize,
    cause: BlockEnd,
    own: (u8, bool),
    out: &mut Out<'_>,
) {
    if sender.is(side::BLOCK_OPEN) {
        sender.set(side::BLOCK_OPEN, false);
        write_block(sender, receiver, s, cause, own, out);
    }
}

/// Both blocks end with the flow.
pub(super) fn close_blocks(flow: &mut Flow, out: &mut Out<'_>) {
    for s in 0..2 {
        let (sender, receiver) = pair(&mut flow.sides, s);
        end_block(sender, receiver, s, BlockEnd::Close, (0, false), out);
    }
}

#[inline(never)]
fn write_block(sender: &Side, receiver: &Side, s: usize, cause: BlockEnd, (ttl, fin): (u8, bool), out: &mut Out<'_>) {
    let header = out.header(direction(s), cause as u8);
    let block = Block {
        first: sender.block_first.at(out.time),
        last: sender.block_last.at(out.time),
        seq: sender.block_seq,
        bytes: sender.next.wrapping_sub(sender.block_seq).wrapping_sub(u32::from(fin)),
        ack: sender.ack,
        flight: flight(sender, receiver),
        packets: sender.block_packets,
        max_segment: sender.block_max,
        window: receiver.window,
        ttl,
        known: known(sender, receiver),
    };
    out.records.push(block.encode(header));
}

/// BLOCK of one packet, which leaves none open.
#[cold]
pub(super) fn write_block_of_one(
    sender: &Side,
    receiver: &Side,
    s: usize,
    meta: &Meta,
    (seq, bytes, cause): (u32, u32, BlockEnd),
    out: &mut Out<'_>,
) {
    let header = out.header(direction(s), cause as u8);
    let block = Block {
        first: out.time,
        last: out.time,
        seq,
        bytes,
        ack: sender.ack,
        flight: flight(sender, receiver),
        packets: 1,
        max_segment: block_max(meta),
        window: receiver.window,
        ttl: meta.ttl,
        known: known(sender, receiver),
    };
    out.records.push(block.encode(header));
}

/// BLOCK.known: the sender's ack; the receiver's window, known with its first ACK.
fn known(sender: &Side, receiver: &Side) -> u8 {
    u8::from(sender.is(side::HAS_ACK)) | u8::from(receiver.is(side::HAS_ACK)) << 1
}

pub(super) fn write_setup(sides: &[Side; 2], cause: SetupEnd, end: u64, end_window: u16, out: &mut Out<'_>) {
    let [client, server] = sides;
    let mut bits = 0;
    for (on, bit) in [
        (client.chain > 0, setup_bit::SYN),
        (server.chain > 0, setup_bit::SYN_ACK),
        (cause == SetupEnd::Done, setup_bit::ACK),
        (client.is(side::SACK_OK), setup_bit::CLIENT_SACK),
        (server.is(side::SACK_OK), setup_bit::SERVER_SACK),
        (client.is(side::TIMESTAMPS), setup_bit::CLIENT_TIMESTAMPS),
        (server.is(side::TIMESTAMPS), setup_bit::SERVER_TIMESTAMPS),
        (client.is(side::ECN), setup_bit::CLIENT_ECN),
        (server.is(side::ECN), setup_bit::SERVER_ECN),
        (client.is(side::CUT), setup_bit::CLIENT_OPTIONS_CUT),
        (server.is(side::CUT), setup_bit::SERVER_OPTIONS_CUT),
        (server.is(side::RST), setup_bit::RST_BY_SERVER),
    ] {
        bits |= if on { bit } else { 0 };
    }
    let header = out.header(flag::MORE, cause as u8);
    let now = out.time;
    let seen = |count: u8, time: ShortTime| if count > 0 { time.at(now) } else { 0 };
    let setup = Setup {
        first_syn: seen(client.chain, client.block_first),
        last_syn: seen(client.chain, client.slot_time),
        syn_ack: seen(server.chain, server.slot_time),
        end,
        syn_count: client.chain,
        syn_ack_count: server.chain,
        bits,
        syn_payload: client.block_max,
        end_window,
    };
    out.records.push(setup.encode(header));
    let header = out.header(0, cause as u8);
    let scale = |side: &Side| {
        if side.scale == NO_SCALE {
            weir_record::NO_SCALE
        } else {
            side.scale
        }
    };
    let known_isn = client.chain > 0 || server.chain > 0;
    let more = SetupMore {
        client_isn: if known_isn { client.block_seq.wrapping_sub(1) } else { 0 },
        server_isn: if server.chain > 0 {
            server.slot_seq.wrapping_sub(1)
        } else {
            0
        },
        client_mss: client.mss,
        server_mss: server.mss,
        client_window: client.window,
        server_window: server.window,
        client_scale: scale(client),
        server_scale: scale(server),
    };
    out.records.push(more.encode(header));
}

pub(super) fn write_close(flow: &Flow, cause: CloseCause, out: &mut Out<'_>) {
    let [client, server] = &flow.sides;
    let header = out.header(flag::MORE, cause as u8);
    let close = Close {
        last: flow.last_seen,
        client_packets: client.packets,
        server_packets: server.packets,
        client_payload: client.payload.get(),
        server_payload: server.payload.get(),
        client_next: client.next,
        server_next: server.next,
    };
    out.records.push(close.encode(header));
    let mut bits = 0;
    for (i, on) in [
        client.is(side::FIN),
        server.is(side::FIN),
        client.is(side::RST),
        server.is(side::RST),
        client.is(side::FIN_ACKED),
        server.is(side::FIN_ACKED),
        client.is(side::HAS_NEXT),
        server.is(side::HAS_NEXT),
    ]
    .into_iter()
    .enumerate()
    {
        bits |= u16::from(on) << i;
    }
    let header = out.header(0, cause as u8);
    let more = CloseMore {
        client_dup_acks: client.dup_acks.into(),
        server_dup_acks: server.dup_acks.into(),
        client_zero_windows: client.zero_windows,
        server_zero_windows: server.zero_windows,
        client_small_windows: client.small_windows,
        server_small_windows: server.small_windows,
        client_copies: client.copies,
        server_copies: server.copies,
        bits,
    };
    out.records.push(more.encode(header));
}

#[inline(never)]
pub(super) fn write_rtt(sides: &[Side; 2], (timed, how, value, seq_end): Timed, meta: &Meta, out: &mut Out<'_>) {
    let header = out.header(direction(timed), how as u8);
    let flying = if how == RttHow::Echo { 1 - timed } else { timed };
    let rtt = Rtt {
        rtt: value,
        seq_end,
        ack: meta.ack,
        flight: flight(&sides[flying], &sides[1 - flying]),
        window: meta.window,
        tcp_flags: meta.flags,
    };
    out.records.push(rtt.encode(header));
}

pub(super) fn write_event(
    s: usize,
    meta: &Meta,
    before: &Before,
    receiver: &Side,
    dup_acks: u8,
    bits: u32,
    out: &mut Out<'_>,
) {
    // What an unseen ack speaks of is the other direction.
    let unseen = bits & what::ACK_UNSEEN != 0 && bits & (what::GAP | what::BELOW | what::WILD) == 0;
    let (tsval, tsecr) = meta.options.timestamps.unwrap_or_default();
    let syn = bits & (what::SYN_REPEAT | what::SYN_ACK_REPEAT | what::SYN_OTHER) != 0;
    let more = syn || bits & what::SACK != 0;
    let header = out.header(direction(s) | if more { flag::MORE } else { 0 }, 0);
    let event = Event {
        what: bits,
        seq: meta.seq,
        length: meta.payload,
        expected: if unseen { receiver.next } else { before.next },
        acked: receiver.ack,
        ack: meta.ack,
        tsval: if holds_echo(bits) { tsecr } else { tsval },
        since_data: before.since_data(out.time),
        window: meta.window,
        ip_id: meta.ip_id,
        dup_acks,
        id_step: told(before.id_step(meta)),
        ttl: meta.ttl,
        tcp_flags: meta.flags,
    };
    out.records.push(event.encode(header));
    if more {
        let header = out.header(direction(s), 0);
        let [a, b, c, d] = meta.options.sack;
        let more = EventMore {
            left0: a.0,
            right0: a.1,
            left1: b.0,
            right1: b.1,
            left2: c.0,
            right2: c.1,
            left3: d.0,
            right3: d.1,
            sack_count: meta.options.sack_count,
            scale: meta.options.scale,
            mss: meta.options.mss,
            sack_permitted: u8::from(meta.options.sack_permitted),
            timestamps: u8::from(meta.options.timestamps.is_some()),
        };
        out.records.push(more.encode(header));
    }
}

pub(super) fn write_packet(s: usize, meta: &Meta, out: &mut Out<'_>) {
    let sack = meta.options.sack_count > 0;
    let header = out.header(direction(s) | if sack { flag::MORE } else { 0 }, 0);
    let (tsval, tsecr) = meta.options.timestamps.unwrap_or_default();
    let packet = Packet {
        number: meta.number,
        seq: meta.seq,
        ack: meta.ack,
        length: meta.payload,
        tsval,
        tsecr,
        wire: meta.wire.min(u32::from(u16::MAX)) as u16,
        window: meta.window,
        ip_id: meta.ip_id,
        ttl: meta.ttl,
        tos: meta.tos,
        tcp_flags: meta.flags,
        port: meta.port,
        option_bits: u8::from(meta.options.timestamps.is_some())
            | u8::from(sack) << 1
            | u8::from(meta.options.incomplete) << 2,
    };
    out.records.push(packet.encode(header));
    if sack {
        let header = out.header(direction(s), 0);
        let [a, b, c, d] = meta.options.sack;
        let more = PacketMore {
            left0: a.0,
            right0: a.1,
            left1: b.0,
            right1: b.1,
            left2: c.0,
            right2: c.1,
            left3: d.0,
            right3: d.1,
            sack_count: meta.options.sack_count,
        };
        out.records.push(more.encode(header));
    }
}
