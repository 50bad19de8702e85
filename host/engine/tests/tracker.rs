//! The tracker against its specification: directed cases and invariants on random traffic.
#![allow(clippy::unwrap_used)]

mod support;

use proptest::prelude::*;
use support::{T0, run, tcp, v4};
use weir_engine::{Class, Config, Engine, Key, Meta};
use weir_record::tcp_flag::{ACK, FIN, PSH, RST, SYN};
use weir_record::*;

fn with_scale(mut meta: Meta, mss: u16, scale: u8) -> Meta {
    meta.options.mss = mss;
    meta.options.scale = scale;
    meta.options.sack_permitted = true;
    meta
}

/// Handshake, one request of 100 bytes, a response of 1460 + 40, orderly close.
fn exchange() -> Vec<Meta> {
    vec![
        with_scale(tcp(0, true, SYN, 1000, 0, 0), 1460, 8),
        with_scale(tcp(300, false, SYN | ACK, 5000, 1001, 0), 1460, 7),
        tcp(350, true, ACK, 1001, 5001, 0),
        tcp(400, true, ACK | PSH, 1001, 5001, 100),
        tcp(700, false, ACK, 5001, 1101, 0),
        tcp(9_700, false, ACK, 5001, 1101, 1460),
        tcp(9_710, false, ACK | PSH, 6461, 1101, 40),
        tcp(9_800, true, ACK, 1101, 6501, 0),
        tcp(9_900, true, ACK | FIN, 1101, 6501, 0),
        tcp(10_200, false, ACK | FIN, 6501, 1102, 0),
        tcp(10_250, true, ACK, 1102, 6502, 0),
    ]
}

fn kinds(records: &[Record]) -> String {
    records
        .iter()
        .filter(|r| !r.is_continuation())
        .map(|r| r.kind().unwrap().name())
        .collect::<Vec<_>>()
        .join(" ")
}

fn of(records: &[Record], kind: Kind, continuation: bool) -> Vec<Record> {
    records
        .iter()
        .filter(|r| r.kind() == Some(kind) && r.is_continuation() == continuation)
        .copied()
        .collect()
}

fn events(records: &[Record]) -> Vec<Event> {
    of(records, Kind::Event, false).iter().map(Event::decode).collect()
}

fn all_what(records: &[Record]) -> u32 {
    events(records).iter().fold(0, |bits, event| bits | event.what)
}

/// A window of 300, which is 76,800 bytes if its side's scale holds, and small if it does not.
fn small_window(client_cut: bool, server_cut: bool, client_has: bool) -> bool {
    let mut packets = exchange();
    packets[0].options.incomplete = client_cut;
    packets[1].options.incomplete = server_cut;
    if client_cut || !client_has {
        packets[0].options.scale = NO_SCALE;
    }
    if server_cut {
        packets[1].options.scale = NO_SCALE;
    }
    packets[7].window = 300;
    all_what(&run(Config::file(), &packets)) & what::SMALL_WINDOW != 0
}

#[test]
fn a_scale_that_the_capture_cut_is_not_taken_for_none() {
    assert!(!small_window(false, false, true));
    assert!(small_window(false, false, false), "no scale was offered");
    assert!(!small_window(true, false, true), "it may have been offered");
    assert!(!small_window(false, true, true), "it may have been accepted");
    assert!(!small_window(true, true, true));
    assert!(
        small_window(false, true, false),
        "what was not offered cannot be accepted"
    );
}

/// Requests that are acknowledged `way` µs later, `period` µs apart: RTT records of them.
fn timed(period: u64, way: u64, acked: bool) -> usize {
    let mut packets = exchange();
    packets.truncate(3);
    let mut seq = 1001;
    for n in 1..=20 {
        let at = 1_000 + n * period;
        packets.push(tcp(at, true, ACK | PSH, seq, 5001, 100));
        if !acked {
            packets.push(tcp(at, true, ACK | PSH, seq + 100, 5001, 100));
        }
        packets.push(tcp(at + way, false, ACK, 5001, seq + 100, 0));
        seq += if acked { 100 } else { 200 };
        if !acked {
            packets.push(tcp(at + way, false, ACK, 5001, seq, 0));
        }
    }
    let records = run(Config::file(), &packets);
    let data = |r: &&Record| r.arg() == RttHow::Data as u8;
    of(&records, Kind::Rtt, false).iter().filter(data).count()
}

#[test]
fn round_trips_are_told_once_a_slot_and_when_nothing_is_left() {
    assert_eq!(timed(100, 50, true), 20, "each leaves nothing in flight");
    let most = timed(100, 50, false);
    assert!((2..=4).contains(&most), "{most} in 2 ms");
    // 2^28 ns apart: bits 27..20 are alike. The first is in the slot that a new flow has.
    assert_eq!(timed(268_435, 2_000, false), 20);
}

#[test]
fn a_plain_exchange() {
    let records = run(Config::appliance(), &exchange());
    assert_eq!(
        kinds(&records),
        "OPEN RTT SETUP RTT BLOCK RTT BLOCK RTT EVENT EVENT INTERVAL INTERVAL CLOSE PORT"
    );
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record.sequence() as usize, i);
    }
    let setup = Setup::decode(&of(&records, Kind::Setup, false)[0]);
    assert_eq!((setup.first_syn, setup.last_syn), (T0, T0));
    assert_eq!((setup.syn_ack, setup.end), (T0 + 300_000, T0 + 350_000));
    assert_eq!((setup.syn_count, setup.syn_ack_count), (1, 1));
    let more = SetupMore::decode(&of(&records, Kind::Setup, true)[0]);
    assert_eq!((more.client_isn, more.server_isn), (1000, 5000));
    assert_eq!((more.client_scale, more.server_scale), (8, 7));

    let rtts: Vec<_> = of(&records, Kind::Rtt, false)
        .iter()
        .map(|r| (r.server_to_client(), r.arg(), Rtt::decode(r)))
        .map(|(server, how, rtt)| (server, how, rtt.rtt, rtt.tcp_flags))
        .collect();
    let (ack, syn) = (tcp_flag::ACK, tcp_flag::SYN);
    assert_eq!(
        rtts,
        [
            (false, 1, 300_000, syn | ack),
            (true, 1, 50_000, ack),
            (false, 2, 300_000, ack),
            (true, 2, 100_000, ack)
        ]
    );

    let blocks: Vec<_> = of(&records, Kind::Block, false)
        .iter()
        .map(|r| (r.server_to_client(), r.arg(), Block::decode(r)))
        .collect();
    assert_eq!(blocks.len(), 2);
    assert_eq!((blocks[0].0, blocks[0].2.bytes, blocks[0].2.seq), (false, 100, 1001));
    assert_eq!(
        (blocks[1].2.bytes, blocks[1].2.packets, blocks[1].2.max_segment),
        (1500, 2, 1460)
    );
    assert_eq!((blocks[1].2.first, blocks[1].2.last), (T0 + 9_700_000, T0 + 9_710_000));

    let close = Close::decode(&of(&records, Kind::Close, false)[0]);
    assert_eq!((close.client_packets, close.client_payload), (6, 100));
    assert_eq!((close.server_packets, close.server_payload), (5, 1500));
    assert_eq!(of(&records, Kind::Close, false)[0].arg(), CloseCause::Fin as u8);
}

#[test]
fn loss_before_the_tap_then_fast_retransmission() {
    let mut words = exchange();
    words.truncate(3);
    let sack = |at, left, right| {
        let mut m = tcp(at, true, ACK, 1001, 5001, 0);
        m.options.sack_count = 1;
        m.options.sack[0] = (left, right);
        m
    };
    words.extend([
        tcp(1000, false, ACK, 6461, 1001, 1460), // 5001 was lost before the tap
        sack(1100, 6461, 7921),
        tcp(1200, false, ACK, 7921, 1001, 1460),
        sack(1300, 6461, 9381),
        tcp(1400, false, ACK, 9381, 1001, 1460),
        sack(1500, 6461, 10841),
        tcp(1600, false, ACK, 5001, 1001, 1460),
        tcp(1700, true, ACK, 1001, 10841, 0),
    ]);
    let records = run(Config::appliance(), &words);
    let events = events(&records);
    assert_eq!(events[0].what & what::GAP, what::GAP);
    assert_eq!((events[0].expected, events[0].seq), (5001, 6461));
    assert_eq!(events.iter().filter(|e| e.what & what::SACK != 0).count(), 3);
    let repeat = events.iter().find(|e| e.what & what::BELOW != 0).unwrap();
    assert_eq!((repeat.seq, repeat.dup_acks, repeat.expected), (5001, 3, 10841));
    assert!(events.iter().any(|e| e.what & what::DUP_ACK != 0));
    let more = CloseMore::decode(&of(&records, Kind::Close, true)[0]);
    assert_eq!(more.client_dup_acks, 3);
}

#[test]
fn repeated_syn_keeps_the_first_options_and_both_times() {
    let words = [
        with_scale(tcp(0, true, SYN, 1000, 0, 0), 1460, 8),
        with_scale(tcp(3_000_000, true, SYN, 1000, 0, 0), 1460, 8),
        with_scale(tcp(9_000_000, true, SYN, 1000, 0, 0), 1460, 255),
        with_scale(tcp(9_000_500, false, SYN | ACK, 1, 1001, 0), 1460, 255),
        tcp(9_001_000, true, ACK, 1001, 2, 0),
    ];
    let records = run(Config::file(), &words);
    let setup = Setup::decode(&of(&records, Kind::Setup, false)[0]);
    assert_eq!((setup.first_syn, setup.last_syn), (T0, T0 + 9_000_000_000));
    assert_eq!((setup.syn_count, setup.end), (3, T0 + 9_001_000_000));
    let more = SetupMore::decode(&of(&records, Kind::Setup, true)[0]);
    assert_eq!((more.client_scale, more.server_scale), (8, 255));
    let third = EventMore::decode(&of(&records, Kind::Event, true)[1]);
    assert_eq!(third.scale, 255);
    // Karn: the SYN was repeated, so the SYN-ACK times nothing.
    assert!(of(&records, Kind::Rtt, false).iter().all(|r| r.server_to_client()));
}

#[test]
fn syn_with_a_new_sequence_number_is_a_new_connection() {
    let mut words = exchange();
    words.extend([
        tcp(2_000_000, true, SYN, 777_000, 0, 0),
        tcp(2_000_300, false, SYN | ACK, 99, 777_001, 0),
        tcp(2_000_400, true, ACK, 777_001, 100, 0),
    ]);
    let records = run(Config::appliance(), &words);
    assert_eq!(of(&records, Kind::Open, false).len(), 2);
    assert_eq!(of(&records, Kind::Close, false)[0].arg(), CloseCause::Reuse as u8);
}

#[test]
fn second_syn_ack_with_another_isn_makes_no_bytes() {
    // Zeek ticket 3313: 1.6 GB were counted.
    let mut words = exchange();
    words.insert(2, tcp(320, false, SYN | ACK, 0x9000_0000, 1001, 0));
    let records = run(Config::appliance(), &words);
    assert_ne!(all_what(&records) & what::SYN_OTHER, 0);
    let blocks: u32 = of(&records, Kind::Block, false)
        .iter()
        .map(|r| Block::decode(r).bytes)
        .sum();
    assert_eq!(blocks, 1600);
}

#[test]
fn late_packets_after_the_close_stay_in_the_connection() {
    // Zeek ticket 862: retransmitted FINs became connections.
    let mut words = exchange();
    words.push(tcp(1_500_000, false, ACK | FIN, 6501, 1102, 0));
    let records = run(Config::appliance(), &words);
    assert_eq!(of(&records, Kind::Open, false).len(), 1);
    assert_ne!(all_what(&records) & what::FIN_REPEAT, 0);
}

#[test]
fn keep_alive_without_payload_is_reported() {
    let mut words = exchange();
    words.truncate(8);
    words.push(tcp(30_000_000, true, ACK, 1100, 6501, 0));
    let records = run(Config::appliance(), &words);
    let event = events(&records)
        .into_iter()
        .find(|e| e.what & what::BELOW != 0)
        .unwrap();
    assert_eq!((event.seq, event.length, event.expected), (1100, 0, 1101));
}

#[test]
fn windows_and_probes() {
    let mut words = exchange();
    words.truncate(4);
    let mut zero = tcp(1_000, false, ACK, 5001, 1101, 0);
    zero.window = 0;
    let mut open = tcp(5_000, false, ACK, 5001, 1102, 0);
    open.window = 500;
    words.extend([zero, tcp(3_000, true, ACK, 1101, 5001, 1), open]);
    let records = run(Config::appliance(), &words);
    let beside = what::IDLE_BEFORE | what::ACKS_MORE;
    let bits: Vec<_> = events(&records).iter().map(|e| e.what & !beside).collect();
    assert_eq!(bits, [what::ZERO_WINDOW, what::PROBE, what::WINDOW_OPEN]);
    assert_eq!(
        CloseMore::decode(&of(&records, Kind::Close, true)[0]).server_zero_windows,
        1
    );
}

#[test]
fn rst_ends_the_setup() {
    let words = [tcp(0, true, SYN, 9, 0, 0), tcp(100, false, RST | ACK, 0, 10, 0)];
    let records = run(Config::appliance(), &words);
    let setup = of(&records, Kind::Setup, false)[0];
    assert_eq!(setup.arg(), SetupEnd::Reset as u8);
    assert_ne!(Setup::decode(&setup).bits & setup_bit::RST_BY_SERVER, 0);
    assert_eq!(Setup::decode(&setup).end, T0 + 100_000);
}

#[test]
fn idle_flow_is_closed_by_a_visit_within_a_scan_period() {
    let config = Config::appliance();
    let mut engine = Engine::new(config);
    let mut out = Vec::new();
    for meta in exchange() {
        engine.packet(&meta, meta.wire, &mut out);
    }
    let last = T0 + 10_250_000;
    engine.time(last + config.linger, &mut out);
    let before = out.iter().filter(|r| r.kind() == Some(Kind::Close)).count();
    engine.time(last + config.linger + (1 << 28), &mut out);
    let close = of(&out, Kind::Close, false);
    assert_eq!(before, 0);
    assert_eq!(close.len(), 1);
    assert!(close[0].time() >= last + config.linger && close[0].time() <= last + config.linger + (1 << 28));
    assert_eq!(engine.flows_in_use(), 0);
}

#[test]
fn intervals_are_written_by_packets_and_by_visits_with_the_same_totals() {
    let words: Vec<_> = (0..50u32)
        .map(|i| tcp(u64::from(i) * 30_000, true, ACK, 1 + i * 10, 1, 10))
        .collect();
    let records = run(Config::appliance(), &words);
    let intervals: Vec<_> = of(&records, Kind::Interval, false)
        .iter()
        .map(Interval::decode)
        .collect();
    assert!(
        intervals
            .windows(2)
            .all(|w| w[0].packets < w[1].packets && w[0].start < w[1].start)
    );
    assert_eq!(intervals.last().unwrap().payload, 500);
    assert!(intervals.iter().all(|i| i.start % 10_000_000 == 0));
}

#[test]
fn a_full_table_counts_what_it_cannot_track() {
    let config = Config {
        contexts: 2,
        ..Config::appliance()
    };
    let mut engine = Engine::new(config);
    let mut out = Vec::new();
    for i in 0..5u16 {
        let (key, from_low) = Key::new(v4(1, 1000 + i), v4(2, 80), 6);
        let meta = Meta {
            key,
            from_low,
            ..tcp(u64::from(i), true, SYN, 1, 0, 0)
        };
        engine.packet(&meta, 60, &mut out);
    }
    let port = engine.port(0);
    assert_eq!((port.tracked, port.untracked[Untracked::TableFull as usize]), (2, 3));
}

#[test]
fn icmp_error_is_told_of_its_flow_only() {
    let mut words = exchange();
    words.truncate(4);
    let quoted = Meta {
        class: Class::IcmpError,
        payload: 3 * 256 + 4,
        ..tcp(500, true, 0, 1001, 0, 0)
    };
    words.push(quoted);
    let stranger = Meta {
        key: Key::new(v4(9, 1), v4(8, 2), 6).0,
        ..quoted
    };
    words.push(stranger);
    let records = run(Config::appliance(), &words);
    let event = events(&records).into_iter().find(|e| e.what & what::ICMP != 0).unwrap();
    assert_eq!(event.length, 3 * 256 + 4);
    let more = PortMore::decode(of(&records, Kind::Port, true).last().unwrap());
    assert_eq!(more.untracked[Untracked::IcmpNoFlow as usize], 1);
}

#[test]
fn syn_after_the_syn_ack_is_a_repeat() {
    // The SYN-ACK was lost behind the tap: the client asks again.
    let words = [
        tcp(0, true, SYN, 1000, 0, 0),
        tcp(100, false, SYN | ACK, 5000, 1001, 0),
        tcp(1_000_000, true, SYN, 1000, 0, 0),
        tcp(1_000_100, false, SYN | ACK, 5000, 1001, 0),
        tcp(1_000_200, true, ACK, 1001, 5001, 0),
    ];
    let records = run(Config::appliance(), &words);
    assert_eq!(
        all_what(&records) & (what::SYN_REPEAT | what::SYN_OTHER),
        what::SYN_REPEAT
    );
    let setup = Setup::decode(&of(&records, Kind::Setup, false)[0]);
    assert_eq!((setup.syn_count, setup.syn_ack_count), (2, 2));
    // The first answer answered the first SYN.
    assert_eq!((setup.last_syn, setup.syn_ack), (T0, T0 + 100_000));
}

#[test]
fn challenge_ack_does_not_spoil_the_new_connection() {
    // RFC 9293 3.5.1: the server still has the old connection; the client resets it and asks again.
    let words = [
        tcp(0, true, SYN, 1_000_000, 0, 0),
        tcp(100, false, ACK, 777, 42, 0),
        tcp(110, true, RST, 42, 0, 0),
        tcp(1_000_000, true, SYN, 1_000_000, 0, 0),
        tcp(1_000_100, false, SYN | ACK, 5000, 1_000_001, 0),
        tcp(1_000_200, true, ACK, 1_000_001, 5001, 0),
    ];
    let records = run(Config::appliance(), &words);
    assert_eq!(of(&records, Kind::Open, false).len(), 1);
    let setup = of(&records, Kind::Setup, false)[0];
    assert_eq!(
        (setup.arg(), Setup::decode(&setup).syn_count),
        (SetupEnd::Done as u8, 2)
    );
    assert_ne!(all_what(&records) & what::WILD_ACK, 0);
}

#[test]
fn injected_reset_does_not_close() {
    let mut words = exchange();
    words.insert(5, tcp(800, false, RST, 0x7000_0000, 0, 0));
    let records = run(Config::appliance(), &words);
    assert_eq!(of(&records, Kind::Close, false)[0].arg(), CloseCause::Fin as u8);
    assert!(
        events(&records)
            .iter()
            .any(|e| e.what & (what::RST | what::WILD) == what::RST | what::WILD)
    );
}

#[test]
fn ack_captured_before_its_data() {
    // Zeek tickets 335 and 1564.
    let mut words = exchange();
    words.swap(3, 4);
    for (i, word) in words.iter_mut().enumerate() {
        word.time = T0 + i as u64 * 1000;
    }
    let records = run(Config::appliance(), &words);
    let unseen = events(&records)
        .into_iter()
        .find(|e| e.what & what::ACK_UNSEEN != 0)
        .unwrap();
    assert_eq!((unseen.expected, unseen.ack), (1001, 1101));
    assert_eq!(all_what(&records) & (what::GAP | what::BELOW), 0);
    let blocks: Vec<_> = of(&records, Kind::Block, false)
        .iter()
        .map(|r| Block::decode(r).bytes)
        .collect();
    assert_eq!(blocks, [100, 1500]);
}

/// A response of two segments; its ACK of so many bytes is captured before its last segment, and the client's next packet
/// comes 5 s later: ends of what was timed, and round trips, of the response.
fn timed_behind_its_ack(acked: u32, flags: u8) -> Vec<(u32, u64)> {
    let mut words = exchange();
    words.truncate(6);
    words.extend([
        tcp(9_705, true, ACK, 1101, 5001 + acked, 0),
        tcp(9_710, false, ACK | PSH | flags, 6461, 1101, 40),
        tcp(5_009_710, true, ACK | PSH, 1101, 6501, 100),
    ]);
    let data = |r: &&Record| r.arg() == RttHow::Data as u8 && r.server_to_client();
    of(&run(Config::file(), &words), Kind::Rtt, false)
        .iter()
        .filter(data)
        .map(|r| (Rtt::decode(r).seq_end, Rtt::decode(r).rtt))
        .collect()
}

fn stamped(mut meta: Meta, tsval: u32, tsecr: u32) -> Meta {
    meta.options.timestamps = Some((tsval, tsecr));
    meta
}

/// RTT ECHO of these packets behind a handshake: ns, end of what echoed, bytes in flight, and whether the server's ACK was
/// timed.
fn echo_samples(words: &[Meta]) -> Vec<(u64, u32, u32, bool)> {
    let mut all = exchange();
    all.truncate(3);
    all.extend_from_slice(words);
    let echo = |r: &&Record| r.arg() == RttHow::Echo as u8;
    let told = |r: &Record| (Rtt::decode(r), r.server_to_client());
    of(&run(Config::file(), &all), Kind::Rtt, false)
        .iter()
        .filter(echo)
        .map(told)
        .map(|(rtt, by_server)| (rtt.rtt, rtt.seq_end, rtt.flight, by_server))
        .collect()
}

#[test]
fn an_ack_without_data_is_timed_by_what_echoes_it() {
    let ack = |at, acks: u32, tsval| stamped(tcp(at, true, ACK, 1001, 5001 + acks, 0), tsval, 40);
    let data = |at, from: u32, tsecr| stamped(tcp(at, false, ACK, 5001 + from, 1001, 1000), 50, tsecr);
    let whole = |between: &[Meta]| {
        let mut words = vec![data(1_000, 0, 6), ack(2_000, 1000, 7)];
        words.extend_from_slice(between);
        words.extend([data(5_000, 1000, 6), data(9_000, 2000, 7), data(9_500, 3000, 7)]);
        echo_samples(&words)
    };
    // The first data was on its way when the ACK passed. What comes after the sample is of no ACK.
    let plain = [(7_000_000, 8001, 2000, false)];
    assert_eq!(whole(&[]), plain);
    // The next ACK waits for none, nor does one of nothing new take the place of that which is timed.
    assert_eq!(whole(&[ack(3_000, 1000, 8)]), plain);
    // Data of its side is timed instead.
    assert_eq!(whole(&[stamped(tcp(3_000, true, ACK, 1001, 6001, 10), 8, 40)]), []);
    // Who echoes a later one had heard of that, and whatever it echoes then is none of the first.
    let later = [
        data(1_000, 0, 6),
        ack(2_000, 1000, 7),
        data(9_000, 1000, 8),
        data(9_100, 2000, 7),
    ];
    assert_eq!(echo_samples(&later), []);
    // Nothing echoes without the option.
    let mut bare = vec![data(1_000, 0, 6), ack(2_000, 1000, 7), data(9_000, 1000, 7)];
    bare[2].options.timestamps = None;
    assert_eq!(echo_samples(&bare), []);
    bare[2] = data(9_000, 1000, 7);
    assert_eq!(echo_samples(&bare), [(7_000_000, 7001, 1000, false)]);
    // An ACK of nothing new is not timed; of one that takes as long as the time limit nothing is told.
    bare[1] = ack(2_000, 0, 7);
    bare[0].payload = 0;
    assert_eq!(echo_samples(&bare), []);
}

/// Segments 100 µs apart, acknowledged at once, of which each echoes the ACK of that `behind` before it.
fn stream_of_echoes(behind: u32) -> Vec<Meta> {
    let pair = |n: u32| {
        let (at, seq) = (1_000 + 100 * u64::from(n), 5001 + 1000 * n);
        [
            stamped(tcp(at, false, ACK, seq, 1001, 1000), 1, 100 + n - behind),
            stamped(tcp(at + 50, true, ACK, 1001, seq + 1000, 0), 100 + n, 1),
        ]
    };
    (0..60).flat_map(pair).collect()
}

#[test]
fn echoes_are_told_from_a_tick_on_and_stay_out_of_intervals() {
    // One waits for the next; 2^20 ns are more than 10 segments and 50 µs.
    let told = |behind| echo_samples(&stream_of_echoes(behind)).len();
    assert_eq!([1, 10, 11, 20].map(told), [0, 0, 5, 2]);
    let mut all = exchange();
    all.truncate(3);
    all.extend(stream_of_echoes(20));
    let records = run(Config::file(), &all);
    let counted: u32 = of(&records, Kind::Interval, false)
        .iter()
        .filter(|r| !r.server_to_client())
        .map(|r| u32::from(Interval::decode(r).rtt_count))
        .sum();
    assert_eq!(counted, 1, "the handshake");
}

#[test]
fn data_behind_its_ack_is_not_timed() {
    let answered_later = [(6461, 5_000), (6501, 5_000_000_000)];
    assert_eq!(timed_behind_its_ack(1500, 0), [(6461, 5_000)]);
    // Of the last byte, the ACK came after it.
    assert_eq!(timed_behind_its_ack(1499, 0), answered_later);
    // Of its FIN as well.
    assert_eq!(timed_behind_its_ack(1501, FIN), [(6461, 5_000)]);
    assert_eq!(timed_behind_its_ack(1500, FIN), answered_later);
}

#[test]
fn data_is_timed_before_the_other_side_is_known() {
    let words = [
        tcp(0, true, ACK | PSH, 0x9000_0000, 5001, 100),
        tcp(300, false, ACK, 5001, 0x9000_0064, 0),
    ];
    let records = run(Config::file(), &words);
    assert_eq!(Rtt::decode(&of(&records, Kind::Rtt, false)[0]).rtt, 300_000);
}

#[test]
fn bytes_missed_by_the_capture_are_in_the_block() {
    let mut words = exchange();
    words.remove(5); // the first 1460 bytes of the response
    let records = run(Config::appliance(), &words);
    let gap = events(&records).into_iter().find(|e| e.what & what::GAP != 0).unwrap();
    assert_eq!((gap.expected, gap.seq), (5001, 6461));
    assert_eq!(Block::decode(&of(&records, Kind::Block, false)[1]).bytes, 1500);
}

#[test]
fn mirror_copies_spoil_neither_rtt_nor_counts() {
    let mut words = Vec::new();
    for (i, word) in exchange().into_iter().enumerate() {
        let word = Meta {
            ip_id: 100 + i as u16,
            ..word
        };
        words.extend([
            word,
            Meta {
                time: word.time + 1000,
                ..word
            },
        ]);
    }
    let records = run(Config::appliance(), &words);
    let rtts = of(&records, Kind::Rtt, false);
    assert_eq!(rtts.iter().filter(|r| r.arg() == RttHow::Handshake as u8).count(), 2);
    assert_eq!(rtts.iter().filter(|r| r.arg() == RttHow::Data as u8).count(), 2);
    let setup = Setup::decode(&of(&records, Kind::Setup, false)[0]);
    assert_eq!((setup.syn_count, setup.syn_ack_count), (1, 1));
    let more = CloseMore::decode(&of(&records, Kind::Close, true)[0]);
    assert_eq!((more.client_dup_acks, more.server_dup_acks), (0, 0));
    assert_eq!((more.client_copies, more.server_copies), (6, 5));
}

/// Three segments of the client 1 µs apart, ids 101 to 103, of which the first is timed; segment `which` comes again with the id `ip_id`,
/// `after` ns behind the last, then the ACK of all. Whether it has a round trip.
fn is_timed_beside(which: u32, ip_id: u16, after: u64) -> bool {
    let mut words = after_handshake(100, &[(0, 1, ACK, 10), (1000, 1, ACK, 10), (1000, 1, ACK, 10)]);
    let last = words[5];
    words.push(Meta {
        time: last.time + after,
        seq: words[3].seq + 10 * which,
        ip_id,
        ..last
    });
    words.push(Meta {
        time: last.time + 50_000_000,
        ..tcp(0, false, ACK, 5001, last.seq + 10, 0)
    });
    let records = run(Config::appliance(), &words);
    let data = of(&records, Kind::Rtt, false)
        .into_iter()
        .filter(|r| r.arg() == RttHow::Data as u8);
    data.inspect(|r| assert_eq!(Rtt::decode(r).rtt, 50_002_000)).count() == 1
}

/// The first of the three is timed (Karn, RFC 6298 3).
#[test]
fn what_was_overtaken_is_no_repeat() {
    const SOON: u64 = 1 << 20;
    // A mirror's copies of a burst, each behind the last of it: of the timed one only soon after that, of the others at any time.
    assert!(is_timed_beside(0, 101, SOON - 2001));
    assert!(!is_timed_beside(0, 101, SOON - 2000));
    assert!(is_timed_beside(1, 102, 10 * SOON));
    assert!(is_timed_beside(2, 103, 10 * SOON), "COPY");
    // Sent again.
    assert!(!is_timed_beside(0, 104, 1000));
    assert!(!is_timed_beside(1, 104, 1000));
    // Ids that tell nothing.
    assert!(!is_timed_beside(1, 0, 1000));
    assert!(!is_timed_beside(1, 103u16.wrapping_sub(257), 1000));
}

#[test]
fn an_ack_above_all_before_it_is_told_beside_other_bits() {
    // A FIN, always the same, so that each packet has an EVENT.
    let told = |words: &[(u32, u8, u32)]| -> Vec<_> {
        let words: Vec<_> = words
            .iter()
            .enumerate()
            .map(|(i, &(seq, flags, ack))| tcp(100 * i as u64, true, flags, seq, ack, 0))
            .collect();
        let bits = what::ACKS_MORE | what::WILD_ACK | what::RESYNC | what::RST;
        events(&run(Config::appliance(), &words))
            .iter()
            .map(|event| event.what & bits)
            .collect()
    };
    let (fin, far) = (ACK | FIN, 1 << 30);
    let cases = [
        (1, fin, 0, what::ACKS_MORE), // the first, which needs to be above nothing
        (1, fin, 0, 0),
        (1, fin, 10, what::ACKS_MORE),
        (1, fin, 10, 0),
        (1, fin, 9, 0),
        (1 << 20, RST | ACK, 20, what::RST), // not taken, not even its ack
        (1, fin, 20, what::ACKS_MORE),
        (1, fin, 20 + far, what::WILD_ACK),
        (1, fin, 20 + far, what::WILD_ACK | what::RESYNC | what::ACKS_MORE),
        (1, fin, 20 + far, 0),
    ];
    let words = cases.map(|(seq, flags, ack, _)| (seq, flags, ack));
    assert_eq!(told(&words), cases.map(|(.., bits)| bits));
    // No ACK bit, no ack.
    assert_eq!(told(&[(1, FIN, 10), (1, fin, 10)]), [0, what::ACKS_MORE]);
}

/// A tap with two ports, or a capture with several queues, may have the ACK of a FIN before it.
#[test]
fn a_fin_behind_its_ack_is_acknowledged() {
    let cause = |words: &[Meta]| of(&run(Config::file(), words), Kind::Close, false)[0].arg();
    let fin = CloseCause::Fin as u8;
    let mut words = exchange();
    assert_eq!(cause(&words), fin);
    words.swap(9, 10);
    (words[9].time, words[10].time) = (words[10].time, words[9].time);
    assert_eq!(cause(&words), fin);
    // An ACK of what is before it only is none of it.
    words[9].ack -= 1;
    assert_ne!(cause(&words), fin);
}

/// The client's first packet after the handshake, of 10 bytes, and what it sends then; the ACKs of the server that follow. Which of those
/// answer a repeat, and what their EVENT has as TSval.
fn echoes(again: &[(u32, u8, u32, u16)], acks: &[(u32, u8, u32)]) -> Vec<Option<u32>> {
    let mut words = exchange();
    words.truncate(3);
    let mut time = 1_000;
    let mut add = |from_client: bool, flags, seq, ack, payload, ip_id: u16| {
        time += 100;
        let mut word = tcp(time, from_client, flags, seq, ack, payload);
        word.ip_id = ip_id;
        word.options.timestamps = Some((time as u32, time as u32 - 1));
        words.push(word);
    };
    add(true, ACK, 1001, 5001, 10, 7);
    for &(seq, flags, payload, ip_id) in again {
        add(true, flags, seq, 5001, payload, ip_id);
    }
    for &(ack, flags, payload) in acks {
        add(false, flags, 5001, ack, payload, 0);
    }
    let first = words.len() - acks.len();
    let told = events(&run(Config::file(), &words));
    let echo = |word: &Meta| {
        let (own, _) = word.options.timestamps.unwrap();
        let about = |e: &&Event| e.what & what::ACKS_REPEAT != 0 && (e.tsval == own || e.tsval + 1 == own);
        told.iter().find(about).map(|e| own - e.tsval)
    };
    words[first..].iter().map(echo).collect()
}

#[test]
fn the_first_ack_beyond_what_came_again_tells_which_copy_it_answers() {
    let (later, again) = ((1011, ACK, 10, 8), (1001, ACK, 10, 9));
    let echo = Some(1);
    let acks = [(1001, ACK, 0), (1011, ACK, 0), (1021, ACK, 0)];
    assert_eq!(echoes(&[later, again], &acks), [None, echo, None]);
    assert_eq!(echoes(&[later], &acks), [None; 3], "nothing came again");
    assert_eq!(
        echoes(&[later, (1011, ACK, 10, 8)], &acks),
        [None; 3],
        "a copy of the network"
    );
    assert_eq!(echoes(&[later, (1020, ACK, 0, 9)], &acks), [None; 3], "a keep-alive");
    assert_eq!(
        echoes(&[(1021, ACK, 10, 8), (1011, ACK, 10, 9)], &acks),
        [None, echo, None],
        "late"
    );
    let fin = (1011, ACK | FIN, 0, 8);
    assert_eq!(
        echoes(&[fin, (1011, ACK | FIN, 0, 9)], &[(1011, ACK, 0), (1012, ACK, 0)]),
        [echo, None]
    );
    assert_eq!(echoes(&[fin], &[(1011, ACK, 0), (1012, ACK, 0)]), [None; 2]);
    // With data, too; but where that is out of order its own TSval tells when it was made.
    assert_eq!(echoes(&[again], &[(1011, ACK, 10)]), [echo]);
    let mut words = exchange();
    words.truncate(4);
    words.push(tcp(500, true, ACK | PSH, 1001, 5001, 100));
    for (i, seq) in [6001, 5001].into_iter().enumerate() {
        let mut word = tcp(600 + i as u64, false, ACK, seq, 1101, 10);
        word.options.timestamps = Some((70, 60));
        words.push(word);
    }
    let told = events(&run(Config::file(), &words));
    assert_eq!(
        told[1].what & (what::ACKS_REPEAT | what::GAP),
        what::ACKS_REPEAT | what::GAP
    );
    assert_eq!((told[1].tsval, told[1].echo(), told[1].sent()), (70, None, Some(70)));
}

#[test]
fn a_syn_ack_and_what_answers_it_tell_which_copy_they_answer() {
    let stamped = |time, from_client, flags, seq, ack, stamps| {
        let mut word = tcp(time, from_client, flags, seq, ack, 0);
        word.options.timestamps = Some(stamps);
        word
    };
    let words = [
        stamped(0, true, SYN, 1000, 0, (10, 0)),
        stamped(1_000, true, SYN, 1000, 0, (1010, 0)),
        stamped(1_001, false, SYN | ACK, 5000, 1001, (70, 10)),
        stamped(2_000, false, SYN | ACK, 5000, 1001, (1070, 10)),
        stamped(2_001, true, ACK, 1001, 5001, (2011, 70)),
    ];
    let told = events(&run(Config::file(), &words));
    let echoes: Vec<_> = told.iter().map(|e| (e.sent(), e.echo())).collect();
    assert_eq!(
        echoes,
        [
            (Some(1010), None),
            (None, Some(10)),
            (Some(1070), None),
            (None, Some(70))
        ]
    );
}

/// Packets of the client from 1 ms after the handshake on, all in order: ns since the one before, its IP id above that, flags,
/// payload.
fn after_handshake(ip_id: u16, steps: &[(u64, u16, u8, u32)]) -> Vec<Meta> {
    let mut words = exchange();
    words.truncate(3);
    for word in &mut words {
        word.ip_id = ip_id;
    }
    let last = words[2];
    let (mut time, mut seq, mut ip_id) = (last.time + 1_000_000, last.seq, ip_id);
    for &(after, step, flags, payload) in steps {
        time += after;
        ip_id = ip_id.wrapping_add(step);
        words.push(Meta {
            time,
            ip_id,
            ..tcp(0, true, flags, seq, 5001, payload)
        });
        seq += payload;
    }
    words
}

/// Where `IDS_SKIPPED` is said: the event's `ip_id` and `id_step`.
fn ids_skipped(words: &[Meta]) -> Vec<(u16, u8)> {
    events(&run(Config::appliance(), words))
        .iter()
        .filter(|event| event.what & what::IDS_SKIPPED != 0)
        .map(|event| (event.ip_id, event.id_step))
        .collect()
}

/// The pause from which on skipped IP ids tell.
const PAUSE: u64 = 1 << 20;

#[test]
fn ids_that_were_skipped_tell_from_2_to_17_and_after_a_pause() {
    let words = after_handshake(
        1000,
        &[
            (0, 2, ACK, 10),                        // 1002, no data before
            (PAUSE - 1, 2, ACK, 10),                // 1004
            (PAUSE, 2, ACK, 10),                    // 1006
            (PAUSE, 17, ACK, 10),                   // 1023
            (PAUSE, 18, ACK, 10),                   // 1041
            (PAUSE, 1, ACK, 10),                    // 1042
            (PAUSE, 0, ACK, 10),                    // 1042
            (PAUSE, 0x102, ACK, 10),                // 1300
            (PAUSE, 0u16.wrapping_sub(2), ACK, 10), // 1298, overtaken ...
            (PAUSE, 1, ACK, 10),                    // 1299, ... both
            (1_500_000_000, 3, ACK, 10),            // 1302, idle
            (PAUSE, 3, ACK, 0),                     // 1305, an ACK alone ...
            (1000, 3, ACK | PSH, 10),               // 1308, ... is no data before
            (PAUSE, 3, ACK | FIN, 0),               // 1311
        ],
    );
    let expected = [(1002, 2), (1006, 2), (1023, 17), (1302, 2), (1308, 3), (1311, 3)];
    assert_eq!(ids_skipped(&words), expected);
}

#[test]
fn an_id_is_overtaken_by_at_most_256() {
    for (back, expected) in [(256, vec![(1002, 2)]), (257, vec![(745, 2)])] {
        let words = after_handshake(
            1000,
            &[
                (0, 0u16.wrapping_sub(back), ACK, 0),
                (PAUSE, if back == 256 { 258 } else { 2 }, ACK, 10),
            ],
        );
        assert_eq!(ids_skipped(&words), expected);
    }
}

#[test]
fn ids_that_were_skipped_tell_over_the_wrap_but_not_from_or_to_0() {
    let wraps = after_handshake(65_530, &[(0, 1, ACK, 10), (PAUSE, 10, ACK, 10)]);
    assert_eq!(ids_skipped(&wraps), [(5, 10)]);
    let zero = after_handshake(65_530, &[(0, 1, ACK, 10), (PAUSE, 5, ACK, 10), (PAUSE, 5, ACK, 10)]);
    assert_eq!((zero[4].ip_id, zero[5].ip_id), (0, 5));
    assert_eq!(ids_skipped(&zero), []);
}

#[test]
fn ids_that_were_skipped_tell_of_what_comes_next_only() {
    let at = |seq: u32, flags, payload| {
        let mut words = after_handshake(1000, &[(0, 1, ACK, 10), (PAUSE, 5, flags, payload)]);
        words[4].seq = words[4].seq.wrapping_add(seq);
        ids_skipped(&words)
    };
    assert_eq!(at(0, ACK, 10), [(1006, 5)]);
    assert_eq!(at(1, ACK, 10), []); // GAP
    assert_eq!(at(1u32.wrapping_neg(), ACK, 10), []); // BELOW, PARTIAL
    assert_eq!(at(1 << 30, ACK, 10), []); // WILD
    assert_eq!(at(0, RST, 10), []);
    assert_eq!(at(1u32.wrapping_neg(), SYN, 10), []);
    // Of a side of which nothing was seen, everything is next.
    let first = Meta {
        ip_id: 3,
        ..tcp(0, true, ACK, 1, 1, 10)
    };
    let mut words = vec![Meta { flags: RST, ..first }, Meta { ip_id: 6, ..first }];
    words[1].time += PAUSE;
    assert_eq!(ids_skipped(&words), []);
}

#[test]
fn ids_that_were_skipped_count_every_packet_of_the_side() {
    // The server's data after its SYN-ACK, the setup pending; ids of the client do not matter.
    let mut words = exchange();
    words.truncate(2);
    words[0].ip_id = 70;
    words[1].ip_id = 80;
    let data = Meta {
        ip_id: 83,
        ..tcp(600, false, ACK, 5001, 1001, 10)
    };
    words.push(data);
    assert_eq!(ids_skipped(&words), [(83, 3)]);
    // An ACK in between, and a RST that nobody would take.
    for (flags, seq) in [(ACK, 5001), (RST, 5001 + (1 << 20))] {
        let mut words = words.clone();
        words.insert(
            2,
            Meta {
                ip_id: 82,
                ..tcp(500, false, flags, seq, 1001, 0)
            },
        );
        assert_eq!(ids_skipped(&words), []);
    }
}

#[test]
fn an_event_has_its_step_of_the_ip_id() {
    let mut words = after_handshake(1000, &[]);
    let ids = [1253, 1507, 1251, 1250, 1760, 0, 7, 7];
    for (i, ip_id) in ids.into_iter().enumerate() {
        // Each is a FIN, again from the second on.
        words.push(Meta {
            ip_id,
            ..tcp(1000 + i as u64, true, ACK | FIN, 1001, 5001, 0)
        });
    }
    let steps: Vec<_> = events(&run(Config::appliance(), &words))
        .iter()
        .map(|event| (event.ip_id, event.id_step))
        .collect();
    let (far, overtaken) = (IdStep::Far as u8, IdStep::Overtaken as u8);
    let expected = [253, far, overtaken, far, far, 0, 0, 0];
    assert_eq!(steps, ids.into_iter().zip(expected).collect::<Vec<_>>());
}

#[test]
fn an_interval_has_the_ip_id_of_the_last_packet_of_its_direction() {
    let words: Vec<_> = [
        (0, true, ACK, 10),
        (1_000, true, ACK, 11),
        (2_000, false, ACK, 500),
        (200_000, true, ACK, 12),
        (201_000, true, RST, 13),
    ]
    .into_iter()
    .map(|(at, client, flags, ip_id)| Meta {
        ip_id,
        ..tcp(at, client, flags, 1, 1, 0)
    })
    .collect();
    let ids = |words: &[Meta]| -> Vec<_> {
        of(&run(Config::appliance(), words), Kind::Interval, false)
            .iter()
            .map(|r| (r.server_to_client(), Interval::decode(r).ip_id))
            .collect()
    };
    assert_eq!(ids(&words), [(false, 11), (true, 500), (false, 13)]);
    let other = Meta {
        class: Class::Other,
        ..words[0]
    };
    assert_eq!(ids(&[other]), [(false, 0)]);
}

#[test]
fn one_sided_capture_of_a_server() {
    let all = exchange();
    let server: Vec<_> = [1, 4, 5, 6, 9].map(|i| all[i]).to_vec();
    let records = run(Config::appliance(), &server);
    let setup = of(&records, Kind::Setup, false)[0];
    assert_eq!(setup.arg(), SetupEnd::OneSided as u8);
    assert_eq!(Setup::decode(&setup).end, 0);
    let block = Block::decode(&of(&records, Kind::Block, false)[0]);
    assert_eq!(block.bytes, 1500);
}

#[test]
fn zero_length_probe_of_a_zero_window() {
    let mut words = exchange();
    words.truncate(8);
    let mut zero = tcp(20_000, true, ACK, 1101, 6501, 0);
    zero.window = 0;
    words.extend([zero, tcp(300_000, false, ACK, 6500, 1101, 0)]);
    let records = run(Config::appliance(), &words);
    assert_eq!(
        all_what(&records) & (what::PROBE | what::BELOW),
        what::PROBE | what::BELOW
    );
}

prop_compose! {
    /// Packets that hit the engine's corners: few flows, wraps, overlaps, reuse, jumps of time.
    fn hostile()(
        step in prop_oneof![8 => 0u64..200, 2 => 0u64..2_000_000, 1 => 0u64..100_000_000],
        port in 0u16..3,
        client in any::<bool>(),
        flags in prop_oneof![
            6 => Just(ACK), 4 => Just(ACK | PSH), 2 => Just(SYN), 2 => Just(SYN | ACK),
            1 => Just(ACK | FIN), 1 => Just(RST), 1 => any::<u8>(),
        ],
        base in prop_oneof![Just(0u32), Just(u32::MAX - 3000), Just(1 << 30), any::<u32>()],
        offset in 0u32..6000,
        ack in prop_oneof![4 => 0u32..6000, 1 => any::<u32>()],
        payload in prop_oneof![3 => Just(0u32), 4 => 1u32..1500, 1 => 0u32..70_000],
        window in prop_oneof![1 => Just(0u16), 3 => any::<u16>()],
        ip_id in 0u16..4,
        scale in prop_oneof![2 => Just(255u8), 2 => 0u8..16],
        sack in proptest::option::of((any::<u16>(), any::<u16>())),
        other in prop::bool::weighted(0.05),
    ) -> (u64, Meta) {
        let mut meta = tcp(0, client, flags, base.wrapping_add(offset), ack, payload);
        let (c, s) = (v4(1, 100 + port), v4(2, 80));
        let (key, from_low) = if client { Key::new(c, s, 6) } else { Key::new(s, c, 6) };
        meta.key = key;
        meta.from_low = from_low;
        meta.window = window;
        meta.ip_id = ip_id;
        meta.options.scale = scale;
        if let Some((left, right)) = sack {
            meta.options.sack_count = 2;
            meta.options.sack[0] = (left.into(), right.into());
        }
        if other {
            meta.class = Class::Other;
            meta.key.protocol = 17;
        }
        (step, meta)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn packets_in_are_tracked_or_untracked_and_records_are_whole(
        words in prop::collection::vec(hostile(), 1..300),
        contexts in prop_oneof![Just(1u32), Just(2), Just(1 << 18)],
        back in 0u64..2,
    ) {
        let mut engine = Engine::new(Config { contexts, ..Config::appliance() });
        let mut out = Vec::new();
        let mut time = T0;
        for (step, meta) in &words {
            time += step * 1000;
            let meta = Meta { time: time - back * step.min(&500), ..*meta };
            engine.packet(&meta, meta.wire, &mut out);
        }
        engine.finish(&mut out);
        let port = *engine.port(0);
        let lost: u64 = port.untracked.iter().map(|&n| u64::from(n)).sum();
        prop_assert_eq!(port.frames, words.len() as u64);
        prop_assert_eq!(port.frames, port.tracked + lost);

        let mut packets = 0;
        let mut open = std::collections::HashSet::new();
        let mut last_time = 0;
        for (i, record) in out.iter().enumerate() {
            prop_assert_eq!(record.sequence() as usize, i);
            prop_assert!(record.time() >= last_time, "time runs backwards at {}", i);
            last_time = record.time();
            let more = record.flags() & flag::MORE != 0;
            prop_assert_eq!(more, out.get(i + 1).is_some_and(|r| r.is_continuation() && r.kind() == record.kind()));
            match record.kind().unwrap() {
                Kind::Open if !record.is_continuation() => prop_assert!(open.insert(record.flow())),
                Kind::Close if !record.is_continuation() => {
                    let close = Close::decode(record);
                    packets += u64::from(close.client_packets) + u64::from(close.server_packets);
                }
                Kind::Close => prop_assert!(open.remove(&record.flow())),
                Kind::Port => {}
                _ => prop_assert!(open.contains(&record.flow()), "record of a flow that is not open: {:?}", record),
            }
        }
        prop_assert!(open.is_empty());
        prop_assert_eq!(packets, port.tracked);
        prop_assert_eq!(engine.flows_in_use(), 0);
    }

    /// Time words change nothing but where they themselves cause records: the same records come
    /// out however the waiting is cut.
    #[test]
    fn time_words_between_packets_change_nothing(words in prop::collection::vec(hostile(), 1..100)) {
        let mut plain = Engine::new(Config::appliance());
        let mut ticked = Engine::new(Config::appliance());
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let mut time = T0;
        for (step, meta) in &words {
            let meta = Meta { time: time + step * 1000, ..*meta };
            for part in 1..4 {
                ticked.time(time + step * 1000 * part / 4, &mut b);
            }
            time = meta.time;
            plain.packet(&meta, meta.wire, &mut a);
            ticked.packet(&meta, meta.wire, &mut b);
        }
        plain.finish(&mut a);
        ticked.finish(&mut b);
        prop_assert_eq!(a, b);
    }
}

/// (server to client, cause, bytes) of each BLOCK of some packets.
fn blocks(words: &[Meta]) -> Vec<(bool, BlockEnd, u32)> {
    let causes = [
        BlockEnd::Fin,
        BlockEnd::Push,
        BlockEnd::Turn,
        BlockEnd::Close,
        BlockEnd::Limit,
        BlockEnd::Idle,
    ];
    of(&run(Config::appliance(), words), Kind::Block, false)
        .iter()
        .map(|r| {
            let cause = causes.into_iter().find(|&cause| cause as u8 == r.arg()).unwrap();
            (r.server_to_client(), cause, Block::decode(r).bytes)
        })
        .collect()
}

#[test]
fn a_fin_is_no_byte_of_a_block() {
    let open = |rest: &[Meta]| blocks(&[&exchange()[..3], rest].concat());
    let data = tcp(400, true, ACK, 1001, 5001, 500);
    // Below the next expected, so that next does not count it.
    let below = tcp(500, true, ACK | FIN, 1101, 5001, 10);
    assert_eq!(open(&[data, below]), [(false, BlockEnd::Fin, 500)]);
    // At the last byte that was seen.
    let at_the_end = tcp(500, true, ACK | FIN, 1401, 5001, 99);
    assert_eq!(open(&[data, at_the_end]), [(false, BlockEnd::Fin, 500)]);
    // Data behind a FIN, ended by the other side, by the flow's end, by a FIN once more.
    let fin = tcp(300, true, ACK | FIN, 1001, 5001, 0);
    let behind = tcp(400, true, ACK, 1002, 5001, 100);
    let answer = tcp(500, false, ACK | PSH, 5001, 1001, 7);
    assert_eq!(
        open(&[fin, behind, answer]),
        [(false, BlockEnd::Turn, 100), (true, BlockEnd::Push, 7)]
    );
    assert_eq!(open(&[fin, behind]), [(false, BlockEnd::Close, 100)]);
    let again = tcp(600, true, ACK | FIN, 1102, 5001, 0);
    assert_eq!(
        open(&[fin, behind, again, answer]),
        [(false, BlockEnd::Fin, 100), (true, BlockEnd::Push, 7)]
    );
}

#[test]
fn data_of_a_client_before_its_ack_is_a_block_without_the_fin() {
    let syn = tcp(0, true, SYN, 1000, 0, 0);
    assert_eq!(
        blocks(&[syn, tcp(100, true, FIN | PSH, 1001, 0, 100)]),
        [(false, BlockEnd::Fin, 100)]
    );
    assert_eq!(
        blocks(&[syn, tcp(100, true, 0, 1001, 0, 100), tcp(200, true, PSH, 1101, 0, 50)]),
        [(false, BlockEnd::Push, 100), (false, BlockEnd::Push, 50)]
    );
}

#[test]
fn a_syn_ack_that_fits_no_syn_has_its_ecn_as_its_other_options() {
    let mut words = exchange();
    words[0].flags |= tcp_flag::ECE | tcp_flag::CWR;
    words[1].flags |= tcp_flag::ECE;
    words[1].ack = 77;
    let records = run(Config::appliance(), &words);
    assert_ne!(all_what(&records) & what::SYN_OTHER, 0);
    let bits = Setup::decode(&of(&records, Kind::Setup, false)[0]).bits;
    let both = setup_bit::CLIENT_ECN | setup_bit::SERVER_ECN;
    assert_eq!(bits & (both | setup_bit::SERVER_SACK), both | setup_bit::SERVER_SACK);
}

/// The blocks of data that a client sends in `packets` without PSH: after the handshake `at` these times, from these `seq`.
fn limits(packets: u64, at: impl Fn(u64) -> u64, seq: impl Fn(u64) -> u32) -> Vec<(BlockEnd, Block)> {
    let mut words = exchange();
    words.truncate(3);
    words.extend((0..packets).map(|n| Meta {
        time: T0 + 1_000_000 + at(n),
        ..tcp(0, true, ACK, seq(n), 5001, 10)
    }));
    of(&run(Config::appliance(), &words), Kind::Block, false)
        .iter()
        .map(|r| {
            let mut causes = [BlockEnd::Close, BlockEnd::Limit].into_iter();
            (causes.find(|&cause| cause as u8 == r.arg()).unwrap(), Block::decode(r))
        })
        .collect()
}

#[test]
fn a_block_ends_at_its_limit_of_packets() {
    let of_packets = |packets| limits(packets, |n| n * 1000, |n| 1001 + 10 * n as u32);
    let [(BlockEnd::Close, block)] = of_packets(65_534)[..] else {
        panic!("one less is left open");
    };
    assert_eq!(block.packets, 65_534);
    let [(BlockEnd::Limit, block), (BlockEnd::Close, next)] = of_packets(65_536)[..] else {
        panic!("the last but one ends it");
    };
    assert_eq!((block.packets, block.bytes), (65_535, 655_350));
    assert_eq!(block.last, T0 + 1_000_000 + 65_534_000);
    assert_eq!((next.packets, next.seq), (1, 1001 + 655_350));
}

#[test]
fn a_block_ends_at_its_limit_of_bytes() {
    // Gaps of less than 2^30; the end of the last payload counts.
    let of_bytes = |bytes: u32| {
        limits(
            5,
            |n| n * 1000,
            |n| 1001 + (bytes - 10) / 4 * n as u32 + (bytes - 10) % 4 * (n / 4) as u32,
        )
    };
    let [(BlockEnd::Close, block)] = of_bytes((1 << 31) - 1)[..] else {
        panic!("one less is left open");
    };
    assert_eq!(block.bytes, (1 << 31) - 1);
    let [(BlockEnd::Limit, block)] = of_bytes(1 << 31)[..] else {
        panic!("ended by its bytes");
    };
    assert_eq!((block.bytes, block.packets), (1 << 31, 5));
}

#[test]
fn a_block_ends_at_its_limit_of_time() {
    // Half a second apart, so that no visit finds it idle.
    let packets = 560;
    let of_time = |time: u64| limits(packets, |n| time * n / (packets - 1), |n| 1001 + 10 * n as u32);
    let [(BlockEnd::Close, block)] = of_time((1 << 38) - 1)[..] else {
        panic!("one less is left open");
    };
    assert_eq!(block.last - block.first, (1 << 38) - 1);
    let [(BlockEnd::Limit, block)] = of_time(1 << 38)[..] else {
        panic!("ended by its age");
    };
    assert_eq!((block.last - block.first, u64::from(block.packets)), (1 << 38, packets));
}

#[test]
fn counts_of_conditions_stay_at_their_largest_value() {
    let many = |word: &dyn Fn(u64) -> Meta, packets: u64| {
        let mut words = exchange();
        words.truncate(3);
        words.push(tcp(400, true, ACK | PSH, 1001, 5001, 100));
        words.extend((0..packets).map(|n| Meta {
            time: T0 + 1_000_000 + n * 1000,
            ..word(n)
        }));
        CloseMore::decode(&of(&run(Config::appliance(), &words), Kind::Close, true)[0])
    };
    let ack = tcp(0, false, ACK, 5001, 1001, 0);
    let window = |window| Meta { window, ..ack };
    let copy = Meta {
        ip_id: 7,
        ..tcp(0, true, ACK | PSH, 1101, 5001, 100)
    };
    let dup_acks = |packets| many(&|_| ack, packets).server_dup_acks;
    assert_eq!(
        (dup_acks(65_534), dup_acks(65_535), dup_acks(66_000)),
        (65_534, 65_535, 65_535)
    );
    let zero = |packets| many(&|_| window(0), packets).server_zero_windows;
    assert_eq!((zero(8190), zero(8191), zero(9000)), (8190, 8191, 8191));
    let small = |packets| many(&|_| window(1), packets).server_small_windows;
    assert_eq!((small(32_766), small(32_767), small(40_000)), (32_766, 32_767, 32_767));
    // The first is none.
    let copies = |packets: u64| many(&|_| copy, packets + 1).client_copies;
    assert_eq!((copies(4094), copies(4095), copies(5000)), (4094, 4095, 4095));
}
