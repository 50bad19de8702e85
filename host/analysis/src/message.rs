//! Facts to messages: strings, UTC and seconds are made here and nowhere else.

use std::net::{Ipv6Addr, SocketAddr};

use weir_messages::{Timestamp, v1};
use weir_record::time::utc_from_tai;
use weir_record::{ClientHow, CloseCause, FlowId, TunnelKind};

use crate::ceilings::{ceilings, inferred_scale};
use crate::closing::{Kind, closing};
use crate::flow::{Flow, nanoseconds};
use crate::given::Given;
use crate::limits::{Cause, Charges, Transfer};
use crate::losses::Counts;
use crate::setup::{Options, SetupTimes};
use crate::shares::TimeShares;
use crate::silly::Silly;
use crate::turns::{self, Finished, Shares};

/// ns to s.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// TAI ns to a UTC timestamp.
pub fn timestamp(tai: u64) -> Timestamp {
    Timestamp::from_unix_nanos(utc_from_tai(tai).min(i64::MAX as u64) as i64)
}

/// "from 22:13:20.500 to 22:14:01.250 (40.750 s)", with the dates if they differ. TAI ns in, UTC out.
pub fn period(start: u64, end: u64) -> String {
    let took = seconds(end.saturating_sub(start));
    let [from, to] = [start, end].map(|time| timestamp(time).to_string().chars().take(10).collect::<String>());
    let date = |day| if from == to { String::new() } else { format!("{day} ") };
    format!(
        "from {}{} to {}{} ({took:.3} s)",
        date(&from),
        clock(start),
        date(&to),
        clock(end)
    )
}

/// Time of day in UTC to the millisecond.
pub fn clock(time: u64) -> String {
    let text = timestamp(time).to_string();
    let day = text.find('T').map_or(0, |at| at + 1);
    text.get(day..day + 12).unwrap_or(&text).to_owned()
}

/// An address as text.
pub fn address(addr: [u8; 16]) -> String {
    Ipv6Addr::from(addr).to_canonical().to_string()
}

/// Address (IPv4 as `::ffff:a.b.c.d`) and port.
pub fn socket_address(addr: [u8; 16], port: u16) -> SocketAddr {
    SocketAddr::new(Ipv6Addr::from(addr).to_canonical(), port)
}

fn endpoint(addr: [u8; 16], port: u16) -> v1::Endpoint {
    v1::Endpoint {
        address: address(addr),
        port: u32::from(port),
    }
}

fn options(o: Options) -> v1::HandshakeOptions {
    v1::HandshakeOptions {
        mss: o.mss.map(u32::from),
        window_scale: o.scale.map(u32::from),
        sack_permitted: o.sack,
        timestamps: o.timestamps,
        ecn: o.ecn,
        window: u32::from(o.window),
    }
}

fn setup(flow: &Flow) -> v1::Setup {
    let s = &flow.setup;
    v1::Setup {
        outcome: s.outcome.name().to_owned(),
        description: s.description(),
        syn_count: u32::from(s.syn_count),
        syn_ack_count: u32::from(s.syn_ack_count),
        response_seconds: s.response_seconds(),
        end_seconds: s.end_seconds(),
        client_options: s.options(0).map(options),
        server_options: s.options(1).map(options),
        missing: s.missing(),
        explanation: flow.explain_setup().unwrap_or_default(),
    }
}

/// Totals that only CLOSE carries, per sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CloseCounts {
    pub dup_acks: u32,
    pub zero_windows: u16,
    pub small_windows: u16,
    pub copies: u16,
}

/// Times that a side closed its window: what CLOSE counted, or more if EVENTs told more.
fn zero_windows(flow: &Flow, side: usize, close: CloseCounts) -> u64 {
    let told = flow.extras.trouble().map_or(0, |t| t.zero_windows[side]);
    u64::from(told.max(u32::from(close.zero_windows)))
}

/// Packets of one direction that went wrong.
pub(crate) fn trouble(flow: &Flow, side: usize, close: CloseCounts) -> u64 {
    let c = flow.counts(side);
    c.retransmitted + c.out_of_order + c.lost_upstream + c.lost_downstream + zero_windows(flow, side, close)
}

/// Copies of a side's packets, whoever made them.
pub(crate) fn copies(counts: &Counts, close: CloseCounts) -> u64 {
    counts.duplicates.max(u64::from(close.copies))
}

/// A flow whose SETUP record was lost has no setup to tell of.
pub(crate) const fn has_setup(flow: &Flow) -> bool {
    flow.setup.is_done() || flow.how > ClientHow::SynAck as u8
}

fn direction(flow: &Flow, side: usize, close: CloseCounts, shares: Shares, given: Given) -> v1::Direction {
    let d = &flow.directions[side];
    let counts = flow.counts(side);
    let rtt = flow.rtt.summary(side);
    let windows = flow.windows[side].bytes(flow.setup.scale(side).unwrap_or(0));
    let small = flow.extras.trouble().map_or(0, |t| t.small_windows[side]);
    // Samples have fewer digits than s in f64: those behind ns are none, and dialogues do not have them.
    let whole = |time: f64| seconds(nanoseconds(time));
    // Windows are kept with the transfers that they hold.
    let silly = |side: usize| {
        flow.extras
            .limits()
            .map_or_else(Silly::default, |l| l.sides[side & 1].silly)
    };
    let (own, peer) = (silly(side), silly(1 - side));
    v1::Direction {
        packets: d.packets,
        payload_bytes: d.payload,
        payload_bits_per_second: (flow.last > flow.first)
            .then(|| 8.0 * d.payload as f64 / seconds(flow.last - flow.first)),
        data_packets: flow.data_packets(side),
        retransmitted_packets: counts.retransmitted,
        retransmitted_data_packets: counts.retransmitted_data,
        retransmitted_bytes: counts.retransmitted_bytes,
        fast_retransmissions: counts.fast,
        timeout_retransmissions: counts.timeout,
        spurious_retransmissions: counts.spurious,
        unknown_retransmissions: counts.unknown,
        tail_loss_probes: counts.tail_probe,
        retransmission_episodes: counts.episodes,
        lost_acks: counts.lost_acks,
        mirror_copies: counts.mirror_copies,
        out_of_order: counts.out_of_order,
        network_duplicates: copies(&counts, close),
        lost_upstream: counts.lost_upstream,
        lost_downstream: counts.lost_downstream,
        lost_unknown: counts.lost_unknown,
        missed_by_capture: counts.missed,
        duplicate_acks: u64::from(close.dup_acks),
        sack_blocks: counts.sack_states,
        zero_windows: zero_windows(flow, side, close),
        silly_windows: u64::from(peer.openings),
        silly_window_seconds: seconds(peer.ns),
        frozen_windows: u64::from(peer.frozen),
        frozen_window_seconds: seconds(peer.frozen_ns),
        silly_pieces: u64::from(own.pieces),
        small_windows: u64::from(u32::from(close.small_windows).max(small)),
        keep_alives: counts.keep_alives,
        max_in_flight: u64::from(d.flight_max),
        min_window: windows.map(|w| w.0),
        max_window: windows.map(|w| w.1),
        rtt: Some(v1::Rtt {
            min_seconds: rtt.min.map(whole),
            median_seconds: rtt.median.map(whole),
            p95_seconds: rtt.p95.map(whole),
            samples: rtt.samples,
            delayed_ack_share: share_of_acks(flow, side, |transfer| transfer.delayed_acks),
            marked_ack_share: share_of_acks(flow, side, |transfer| transfer.marked_acks)
                .filter(|_| flow.setup.has_ecn()),
        }),
        limit_seconds: Some(limits(flow, side, shares, given)),
        ceilings: ceilings(flow, side, given),
        inferred_window_scale: inferred_scale(flow, side).map(u32::from),
    }
}

/// Share of the timed ACKs that were so, if there were longer transfers.
fn share_of_acks(flow: &Flow, side: usize, which: impl Fn(&Transfer) -> u32) -> Option<f64> {
    let transfer = &flow.extras.limits()?.sides[side];
    (transfer.acks > 0).then(|| f64::from(which(transfer)) / f64::from(transfer.acks))
}

/// What limited a direction: its transfers as they were charged, and the time in which its application had nothing to
/// send.
fn limits(flow: &Flow, side: usize, shares: Shares, given: Given) -> v1::LimitSeconds {
    let (time, transfers) = flow.turn.as_ref().map_or_else(Default::default, |turn| {
        let time = turn.time();
        if side == 0 {
            (time.client + time.think, shares.request)
        } else {
            (time.server, shares.response)
        }
    });
    let mut by = flow
        .extras
        .limits()
        .map_or_else(Charges::default, |l| l.sides[side].so_far());
    // Transfers of one flight before the first longer one are not in the charges.
    let one_flight = transfers.saturating_sub(by.sum());
    by.add(flow.limit_path(side, given).one_flight(), one_flight);
    v1::LimitSeconds {
        application: seconds(time),
        sender: seconds(by.sender()),
        receiver_window: seconds(by.receiver()),
        congestion: seconds(by.congestion()),
        bandwidth: seconds(by.of(Cause::Bandwidth)),
        unknown: seconds(by.of(Cause::Unknown)),
        nagle: seconds(by.of(Cause::Nagle)),
        small_window: seconds(by.of(Cause::SmallWindow)),
        zero_window: seconds(by.of(Cause::ZeroWindow)),
        slow_start: seconds(by.of(Cause::SlowStart)),
        recovery: seconds(by.of(Cause::Recovery)),
    }
}

/// A connection. `cause` is `None` while it is open.
pub(crate) fn connection(
    flow: &Flow,
    cause: Option<CloseCause>,
    close: [CloseCounts; 2],
    given: Given,
) -> v1::Connection {
    let (kind, time) = closing(flow, cause);
    let shares = flow.turn.as_ref().map_or_else(Shares::default, |t| t.shares());
    let mut whose = flow.setup_time();
    if let Some(turn) = &flow.turn {
        whose.add(&turn.time());
    }
    let route = flow.route();
    let ends = flow.ends();
    let vlans = [route.vlans & 0xfff, route.vlans >> 12 & 0xfff];
    v1::Connection {
        id: flow.id.0,
        client: Some(endpoint(ends.client, ends.client_port)),
        server: Some(endpoint(ends.server, ends.server_port)),
        first_packet_time: Some(timestamp(flow.first)),
        setup: has_setup(flow).then(|| setup(flow)),
        close: Some(v1::Close {
            kind: kind.name().to_owned(),
            time: time.map(timestamp),
        }),
        duration_seconds: seconds(flow.last.saturating_sub(flow.first)),
        turns: shares.answered,
        client_to_server: Some(direction(flow, 0, close[0], shares, given)),
        server_to_client: Some(direction(flow, 1, close[1], shares, given)),
        client_known_by: ClientHow::from_u8(flow.how).map_or("", ClientHow::name).to_owned(),
        vlans: vlans.into_iter().filter(|id| *id != 0).collect(),
        tunnel: TunnelKind::from_u8(route.tunnel_kind)
            .unwrap_or(TunnelKind::None)
            .name()
            .to_owned(),
        tunnel_id: route.tunnel_id,
        waiting_since: None,
        shares: Some(whose.message()),
    }
}

/// The SETUP transaction: index 0.
pub(crate) fn setup_transaction(flow: &Flow, times: &SetupTimes) -> Finished {
    let repeats = |n: u8| u32::from(n.saturating_sub(1));
    Finished {
        index: 0,
        kind: turns::Kind::Setup,
        request_time: times.first_syn,
        request_bytes: u64::from(times.syn_payload),
        response_bytes: 0,
        client: None,
        request: times.request,
        server: times.server,
        wait: None,
        missed: None,
        client_wait: None,
        client_uncertain: None,
        paused_us: 0,
        inferred: 0,
        ends: [0; 2],
        response: times.response,
        response_time: 0,
        end: times.end,
        unanswered: None,
        gave_up: 0,
        losses: repeats(flow.setup.syn_count) + repeats(flow.setup.syn_ack_count),
        segment: flow.setup.agreed_mss().map(|_| flow.setup.payload()),
        overlapped: false,
        amid: [false; 2],
    }
}

/// A transaction.
pub(crate) fn transaction(id: FlowId, signature: &str, done: &Finished, time: &TimeShares) -> v1::Transaction {
    v1::Transaction {
        connection_id: id.0,
        index: done.index,
        signature: signature.to_owned(),
        request_time: Some(timestamp(done.request_time)),
        request_bytes: done.request_bytes,
        response_bytes: done.response_bytes,
        request_seconds: seconds(done.request),
        server_seconds: done.server.map(seconds),
        response_seconds: done.response.map(seconds),
        end_seconds: done.end.map(seconds),
        losses: done.losses,
        kind: done.kind.name().to_owned(),
        overlapped: done.overlapped,
        shares: Some(time.message()),
        server_uncertain_seconds: time.server_uncertain_of(done).map(seconds),
        client_uncertain_seconds: done.client_uncertain.map(seconds),
    }
}

/// Whether the connection never came up.
pub(crate) fn failed(kind: Kind, flow: &Flow) -> Option<Failure> {
    use crate::setup::Outcome;
    if kind == Kind::Ignored {
        return Some(Failure::Ignored);
    }
    match flow.setup.outcome {
        Outcome::Refused if flow.setup.reset_by_server() => Some(Failure::Refused),
        Outcome::ResetLate => Some(Failure::Reset),
        _ => None,
    }
}

/// Ways to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Ignored,
    Reset,
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_day() {
        // 2023-11-14 22:13:20 UTC in TAI.
        let time = 1_700_000_037_000_000_000;
        assert_eq!(clock(time + 5_000_000), "22:13:20.005");
        assert_eq!(
            period(time, time + 1_500_000_000),
            "from 22:13:20.000 to 22:13:21.500 (1.500 s)"
        );
        assert_eq!(
            period(time, time + 10_000_000_000_000),
            "from 2023-11-14 22:13:20.000 to 2023-11-15 01:00:00.000 (10000.000 s)"
        );
    }
}
