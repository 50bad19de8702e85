//! What limited transfers, and whose time it was, on rebuilt published cases and on each rule.
#![allow(clippy::unwrap_used)]

mod support;

use support::{C, Conversation, S, analyze, analyze_with, only, records};
use weir_analysis::Config;
use weir_engine::{Config as EngineConfig, Meta};
use weir_messages::v1;
use weir_record::tcp_flag;

const MSS: u32 = 1460;

/// Shaken hands, the tap at the client's side: 1 ms to the client, `trip` s to the server and back.
fn start(trip: f64, client_scale: Option<u8>, server_scale: Option<u8>) -> Conversation {
    start_from(40_000, trip, client_scale, server_scale)
}

fn start_from(port: u16, trip: f64, client_scale: Option<u8>, server_scale: Option<u8>) -> Conversation {
    let mut c = Conversation::new(port);
    c.syn(0.0, C, 100, 0, client_scale);
    c.syn(trip, S, 900, 101, server_scale);
    c.packet(trip + 0.001, C, "A", 101, 901, 0);
    c
}

fn finding<'a>(a: &'a v1::Analysis, kind: &str) -> &'a v1::Finding {
    let kinds: Vec<_> = a.findings.iter().map(|f| f.kind.as_str()).collect();
    a.findings
        .iter()
        .find(|f| f.kind == kind)
        .unwrap_or_else(|| panic!("no {kind} in {kinds:?}"))
}

#[track_caller]
fn about(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

fn value(f: &v1::Finding, key: &str) -> f64 {
    match f.values[key].value {
        Some(v1::finding_value::Value::Number(number)) => number,
        ref other => panic!("{key}: {other:?}"),
    }
}

/// The parts of every share and every limit add up.
fn check_sums(a: &v1::Analysis) {
    let unbalanced = a.summary.as_ref().unwrap().unbalanced_seconds;
    assert!(unbalanced.abs() < 1e-12, "{unbalanced}");
    for t in &a.transactions {
        let s = t.shares.unwrap();
        let parts = s.user_think_seconds
            + s.client_processing_seconds
            + s.server_processing_seconds
            + s.latency_seconds.unwrap_or(0.0)
            + s.bandwidth_seconds
            + s.congestion_seconds
            + s.protocol_seconds;
        assert!((parts - s.total_seconds).abs() < 1e-9, "{s:?}");
    }
}

/// "It Was the Best of Load Balancers": the balancer agrees on scale 0 and a window of 32,768, and after a few packets
/// says 254; the client sends 254 bytes every 5 s, and 3 KB take 52 s. Then 1.5 MB come back, 32 KB in flight, over
/// 130 ms, to a client with a window of 131,072.
fn load_balancer() -> Conversation {
    let trip = 0.130;
    let mut c = start(trip, Some(9), Some(0));
    c.packets[1].window = 32_768;
    let (mut seq, mut at) = (101, 0.2);
    // A few hundred bytes, answered with the first windows.
    c.packet(at, C, "AP", seq, 901, 400).window = 256;
    seq += 400;
    c.packet(at + trip, S, "A", 901, seq, 0).window = 32_768;
    at += trip + 0.001;
    c.packet(at, C, "AP", seq, 901, 300).window = 256;
    seq += 300;
    c.packet(at + trip, S, "A", 901, seq, 0).window = 254;
    at += trip;
    for _ in 0..10 {
        at += 5.0;
        c.packet(at, C, "A", seq, 901, 254).window = 256;
        seq += 254;
        c.packet(at + trip, S, "A", 901, seq, 0).window = 254;
    }
    at += 2.0;
    c.packet(at, C, "AP", seq, 901, 60).window = 256;
    seq += 60;
    at += trip + 8.0;
    // The download: 22 segments in each round trip, 1.5 MB.
    let mut sent = 901;
    for _ in 0..48 {
        for i in 0..22 {
            c.packet(
                at + f64::from(i) * 1e-4,
                S,
                if i == 21 { "AP" } else { "A" },
                sent,
                seq,
                MSS,
            )
            .window = 254;
            sent += MSS;
        }
        c.packet(at + 0.004, C, "A", seq, sent, 0).window = 256;
        at += trip;
    }
    c
}

/// The same from another port, the server's windows `before` instead of 32,768 and `after` instead of 254.
fn without_room(port: u16, before: u16, after: u16) -> Vec<Meta> {
    let mut packets = load_balancer().packets;
    for packet in &mut packets {
        packet.window = match packet.window {
            32_768 => before,
            254 => after,
            other => other,
        };
        let ends = [&mut packet.key.low, &mut packet.key.high];
        ends.into_iter()
            .filter(|end| end.port == 40_000)
            .for_each(|end| end.port = port);
    }
    packets
}

fn is_mishap(conversations: &[&[Meta]]) -> bool {
    let findings = analyze(&conversations.concat()).findings;
    findings.iter().any(|f| f.kind == "WINDOW_SCALE_MISHAP")
}

#[test]
fn a_receiver_without_room_is_no_mishap() {
    let balanced = without_room(40_001, 32_768, 256);
    let (second, third) = (without_room(40_002, 20_000, 200), without_room(40_003, 9_000, 170));
    assert!(is_mishap(&[&balanced]));
    // One of three by chance.
    assert!(!is_mishap(&[&balanced, &second, &third]));
    // Never as much as a segment.
    assert!(!is_mishap(&[&without_room(40_001, 1_200, 150)]));
}

/// A box makes the scale of a kernel's SYN-ACK 0: after 65,160 come windows of 67 to 75, as its buffer grows. They are no
/// power of two below.
#[test]
fn windows_that_are_never_what_the_syn_ack_offered_are_a_mishap() {
    let with_syn_ack = |offered| {
        let mut packets = without_room(40_001, 67, 75);
        packets[1].window = offered;
        packets
    };
    let a = analyze(&with_syn_ack(65_160));
    assert!((value(finding(&a, "WINDOW_SCALE_MISHAP"), "shift") - 10.0).abs() < 1e-9);
    // Offered less than a segment from the beginning: a small buffer.
    assert!(!is_mishap(&[&with_syn_ack(1_200)]));
}

#[test]
fn a_load_balancer_that_applies_a_scale_it_did_not_offer() {
    let a = analyze(&load_balancer().packets);
    check_sums(&a);
    let c = only(&a);
    let limits = c.client_to_server.as_ref().unwrap().limit_seconds.unwrap();
    assert!((51.0..=53.0).contains(&limits.small_window), "{limits:?}");
    let mishap = finding(&a, "WINDOW_SCALE_MISHAP");
    assert!((value(mishap, "shift") - 7.0).abs() < 1e-9);
    assert!((51.0..=53.0).contains(&value(mishap, "costSeconds")), "{mishap:?}");
    let small = finding(&a, "SMALL_WINDOW");
    assert!((51.0..=53.0).contains(&value(small, "seconds")), "{small:?}");
    // Silly: ten openings by 254 bytes, 5 s apart, and the rest; the client's pieces fill them.
    let silly = finding(&a, "SILLY_WINDOW");
    assert!((value(silly, "seconds") - 52.0).abs() < 0.2, "{silly:?}");
    assert!((10.0..=11.0).contains(&value(silly, "openings")), "{silly:?}");
    let (up, down) = (
        c.client_to_server.as_ref().unwrap(),
        c.server_to_client.as_ref().unwrap(),
    );
    assert_eq!((up.silly_pieces, down.silly_pieces), (10, 0));
    assert_eq!(
        (up.silly_windows, down.silly_windows),
        (0, value(silly, "openings") as u64)
    );
    // The next one: 32 KB in flight, far below the client's 131,072.
    let down = down.limit_seconds.unwrap();
    assert!(down.sender > 5.0 && down.receiver_window < 0.1, "{down:?}");
    let sender = finding(&a, "SENDER_LIMITED");
    assert!((value(sender, "bytes") / 32_120.0 - 1.0).abs() < 0.05, "{sender:?}");
    let first = &a.summary.as_ref().unwrap().bottlenecks[..2];
    assert_eq!(
        (first[0].name.as_str(), first[1].name.as_str()),
        ("RECEIVER_WINDOW", "SERVER_PROCESSING")
    );
}

/// The same, open when the capture began: no scale is known, but pieces as long as the window's field were cut by it.
#[test]
fn pieces_as_long_as_a_window_of_unknown_scale_are_held_by_it() {
    let mut packets = load_balancer().packets;
    packets.drain(..3);
    let a = analyze(&packets);
    check_sums(&a);
    let limits = only(&a).client_to_server.as_ref().unwrap().limit_seconds.unwrap();
    assert!((42.0..=53.0).contains(&limits.small_window), "{limits:?}");
    // As a send buffer of that size would look the same, it is no bottleneck for sure.
    let window = a
        .summary
        .as_ref()
        .unwrap()
        .bottlenecks
        .iter()
        .find(|b| b.name == "RECEIVER_WINDOW")
        .unwrap();
    assert!(
        window.uncertain_seconds.unwrap() >= limits.small_window - 1e-6,
        "{window:?}"
    );
    // Other sizes tell nothing.
    for packet in packets.iter_mut().filter(|packet| packet.window == 254) {
        packet.window = 253;
    }
    let limits = only(&analyze(&packets))
        .client_to_server
        .as_ref()
        .unwrap()
        .limit_seconds
        .unwrap();
    assert!(limits.small_window < 1e-9, "{limits:?}");
}

/// What would save the time of receivers' windows.
fn window_remedy(a: &v1::Analysis) -> &str {
    let all = &a.summary.as_ref().unwrap().bottlenecks;
    &all.iter().find(|b| b.name == "RECEIVER_WINDOW").unwrap().remedy
}

/// The same with a scale in the SYN-ACK at the tap, which was taken out behind it: the client takes 32,512 bytes for 254.
#[test]
fn pieces_as_long_as_the_field_of_a_window_with_a_scale_are_held_by_it() {
    let with = |field: u16| {
        let mut packets = load_balancer().packets;
        packets[1].options.scale = 7;
        for packet in packets.iter_mut().filter(|packet| packet.window == 254) {
            packet.window = field;
        }
        let a = analyze(&packets);
        check_sums(&a);
        let limits = only(&a).client_to_server.as_ref().unwrap().limit_seconds.unwrap();
        (limits, a)
    };
    let (limits, a) = with(254);
    // The first of the pieces may be so long by chance; the second tells that it was not.
    assert!((47.0..=53.0).contains(&limits.small_window), "{limits:?}");
    assert!(window_remedy(&a).contains("applied as agreed"));
    let mishap = finding(&a, "WINDOW_SCALE_MISHAP");
    assert!((value(mishap, "shift") - 7.0).abs() < 1e-9);
    assert!(
        mishap.evidence[0].contains("it does not know of the scale"),
        "{mishap:?}"
    );
    assert!((47.0..=53.0).contains(&value(mishap, "costSeconds")), "{mishap:?}");
    // Other sizes tell nothing.
    let (limits, a) = with(253);
    assert!(limits.small_window < 1e-9, "{limits:?}");
    assert!(a.findings.iter().all(|f| f.kind != "WINDOW_SCALE_MISHAP"));
}

/// The capture misses ten of the server's flights, and their ACKs, or a segment of each: its buffer is what the others tell.
#[test]
fn what_the_capture_missed_was_not_in_flight_at_once() {
    let sender = |misses: &dyn Fn(u32) -> bool| {
        let mut n = 0;
        let mut packets = load_balancer().packets;
        packets.retain(|packet| {
            n += u32::from(packet.payload == MSS);
            !misses(n)
        });
        let a = analyze(&packets);
        assert!(finding(&a, "CAPTURE_LOSS").values.contains_key("packets"));
        value(finding(&a, "SENDER_LIMITED"), "bytes") / 32_120.0
    };
    for misses in [&|n| (220..440).contains(&n), &|n| n > 100 && n % 22 == 5] as [&dyn Fn(u32) -> bool; 2] {
        let share = sender(misses);
        assert!((share - 1.0).abs() < 0.1, "{share}");
    }
}

/// So many windows of 65,535 bytes over `trip`.
fn unscaled(trip: f64, windows: u32) -> Vec<Meta> {
    held_by(trip, windows, 44, 65_535)
}

/// The same with another window, which so many segments fill.
fn held_by(trip: f64, windows: u32, segments: u32, window: u16) -> Vec<Meta> {
    let mut c = start(trip, None, None);
    for packet in &mut c.packets {
        packet.window = window;
    }
    c.packet(0.2, C, "AP", 101, 901, 200).window = window;
    let (mut at, mut sent) = (0.2 + trip, 901);
    for _ in 0..windows {
        for i in 0..segments {
            c.packet(at + f64::from(i) * 1e-4, S, "A", sent, 301, MSS);
            sent += MSS;
        }
        c.packet(at + 0.006, C, "A", 301, sent, 0).window = window;
        at += trip;
    }
    c.packets
}

/// Windows of 64,000 bytes in the SYN and of so many behind it, over a download of so many windows' worth.
fn taken_back(after: u16, flights: u32) -> Vec<Meta> {
    let mut c = start(0.1, None, None);
    c.packets[0].window = 64_000;
    c.packets[1].window = 1_026;
    c.packets[2].window = after;
    c.packet(0.2, C, "AP", 101, 901, 200).window = after;
    let (mut at, mut sent) = (0.3, 901);
    for _ in 0..flights {
        for i in 0..4 {
            c.packet(at + f64::from(i) * 1e-4, S, "A", sent, 301, MSS);
            sent += MSS;
        }
        c.packet(at + 0.006, C, "A", 301, sent, 0).window = after;
        at += 0.1;
    }
    c.packets
}

/// A window above a segment shows it, too; but not one that was never read.
#[test]
fn nobody_takes_back_what_a_syn_offered() {
    let a = analyze(&taken_back(8_000, 40));
    let mishap = finding(&a, "WINDOW_SCALE_MISHAP");
    assert!((value(mishap, "shift") - 3.0).abs() < 1e-9, "{mishap:?}");
    assert!(value(mishap, "costSeconds") > 3.0, "{mishap:?}");
    assert!(is_mishap(&[&taken_back(8_000, 4)]));
    // No power of two; less than 8; what came may fill it.
    assert!(!is_mishap(&[&taken_back(6_000, 40)]));
    assert!(!is_mishap(&[&taken_back(16_000, 40)]));
    assert!(!is_mishap(&[&taken_back(8_000, 12)]));
}

/// The same without its handshake: 32,768 bytes are one of the windows that the client's 256 may be, and full; 300 are none.
#[test]
fn a_window_whose_scale_was_not_seen_is_inferred_or_said_to_be_unknown() {
    for (window, kind, line) in [
        (256, "RECEIVER_LIMITED", "it is inferred"),
        (300, "SENDER_LIMITED", "may have been full"),
    ] {
        let mut packets = load_balancer().packets;
        packets.drain(..3);
        for packet in packets.iter_mut().filter(|packet| packet.window == 256) {
            packet.window = window;
        }
        let a = analyze(&packets);
        let found = finding(&a, kind);
        assert!((found.confidence - 0.5).abs() < 1e-9, "{found:?}");
        assert!(
            found.evidence.iter().any(|evidence| evidence.contains(line)),
            "{found:?}"
        );
        let down = only(&a).server_to_client.as_ref().unwrap().limit_seconds.unwrap();
        assert_eq!(down.receiver_window > 0.0, window == 256, "{down:?}");
        // All that is charged to it, and to the window that cut the request, may be another limit's.
        let summary = a.summary.unwrap();
        let cost = summary
            .bottlenecks
            .iter()
            .find(|b| b.name == "RECEIVER_WINDOW")
            .unwrap();
        assert!(
            (cost.uncertain_seconds.unwrap() - cost.seconds).abs() < 1e-6,
            "{cost:?}"
        );
        assert!(cost.remedy.contains("send buffer"), "{cost:?}");
        let row = summary.diagnosis.iter().find(|row| row.category == "TCP_WINDOW");
        assert!((row.unwrap().uncertain.unwrap() - cost.share).abs() < 1e-6, "{row:?}");
    }
    let summary = analyze(&load_balancer().packets).summary.unwrap();
    assert!(
        summary
            .bottlenecks
            .iter()
            .all(|b| b.name != "RECEIVER_WINDOW" || b.uncertain_seconds.is_none())
    );
}

/// Without scaling, 65,535 bytes a round trip of 130 ms are 4 Mbit/s at most.
#[test]
fn an_unscaled_window_over_130_ms_is_4_mbit() {
    let trip = 0.130;
    let a = analyze(&unscaled(trip, 40));
    let c = only(&a);
    let d = c.server_to_client.as_ref().unwrap();
    let limits = d.limit_seconds.unwrap();
    assert!(limits.receiver_window > 0.9 * 39.0 * trip, "{limits:?}");
    // The window never changes, and each round trip fills it: frozen, but not silly.
    let up = c.client_to_server.as_ref().unwrap();
    assert!((35..=40).contains(&up.frozen_windows), "{up:?}");
    assert!(up.frozen_window_seconds > 0.9 * 39.0 * trip, "{up:?}");
    assert_eq!((up.silly_windows, d.silly_pieces, d.frozen_windows), (0, 0, 0));
    let ceilings = d.ceilings.unwrap();
    let ceiling = ceilings.receiver_window_bits_per_second.unwrap();
    assert!((3.9e6..4.1e6).contains(&ceiling), "{ceilings:?}");
    // 40 windows in 39 round trips.
    assert!(
        ceilings.measured_bits_per_second.unwrap() <= ceiling * 1.03,
        "{ceilings:?}"
    );
    let limited = finding(&a, "RECEIVER_LIMITED");
    assert!((value(limited, "bytes") - 65_535.0).abs() < 1.0, "{limited:?}");
    assert!(value(limited, "withoutScaling") == 1.0, "{limited:?}");
    // Over half of that path they are twice as much.
    let a = analyze_over(&unscaled(trip, 40), None, Some(trip / 4.0));
    let limited = finding(&a, "RECEIVER_LIMITED");
    let ceiling = value(limited, "ceilingBitsPerSecond");
    assert!((7.9e6..8.2e6).contains(&ceiling), "{limited:?}");
    assert!(
        limited
            .evidence
            .iter()
            .any(|e| e.contains("over the given round trip, 65.0 ms")),
        "{limited:?}"
    );
}

/// Without a scale on both sides no buffer makes a window larger than 65,535 bytes (RFC 7323 2.2); who left it out shows in the handshake.
#[test]
fn a_window_that_cannot_be_larger_asks_for_scaling() {
    let full = |client: Option<u8>, server: Option<u8>| {
        let mut packets = unscaled(0.130, 40);
        packets[0].options.scale = client.unwrap_or(255);
        packets[1].options.scale = server.unwrap_or(255);
        packets
    };
    for (packets, why) in [
        (full(None, None), "the client does not offer it"),
        (full(Some(8), None), "the server did not answer it"),
        (full(None, Some(8)), "a box between"),
    ] {
        let a = analyze(&packets);
        let limited = finding(&a, "RECEIVER_LIMITED");
        assert!(limited.evidence.iter().any(|e| e.contains(why)), "{limited:?}");
        assert!(
            limited.evidence.last().unwrap().contains("agree on window scaling"),
            "{limited:?}"
        );
        assert!(window_remedy(&a).contains("scaling on both sides"));
    }
    // A window of half of that could be larger.
    let a = analyze(&held_by(0.130, 40, 22, 32_768));
    let limited = finding(&a, "RECEIVER_LIMITED");
    assert!(!limited.values.contains_key("withoutScaling"), "{limited:?}");
    assert!(limited.evidence.last().unwrap().contains("SO_RCVBUF"), "{limited:?}");
    assert!(window_remedy(&a).contains("a larger window"));
}

/// An FTP download over T1: 1,428,870 bytes, 196 ms there and back, 16 KB in flight at most, 21 losses.
fn t1_download() -> Vec<weir_engine::Meta> {
    let (near, far) = (0.002, 0.194);
    let segment_time = f64::from(MSS + 54) * 8.0 / 1.544e6;
    let mut c = Conversation::new(1043);
    c.syn(0.0, C, 100, 0, None);
    c.syn(far, S, 900, 101, None);
    c.packet(far + near, C, "A", 101, 901, 0);
    c.packet(far + near + 0.01, C, "AP", 101, 901, 25).window = 17_520;
    let client = 126;
    let mut at = far + near + 0.01 + far + 0.001;
    let (mut sent, total) = (0u32, 1_428_870u32);
    let (mut window, mut losses) = (2u32, 0);
    let mut turn = 0;
    while sent < total {
        turn += 1;
        let lose = turn % 6 == 5 && losses < 21;
        let count = window.min(11);
        let start = sent;
        for i in 0..count {
            let len = MSS.min(total - sent);
            // One is lost before the tap, in every sixth turn.
            if len > 0 && !(lose && i == 0) {
                c.packet(at + f64::from(i) * segment_time, S, "A", 901 + sent, client, len);
            }
            sent += len;
            if !lose && i % 2 == 1 {
                let heard = at + f64::from(i) * segment_time + near;
                c.packet(heard, C, "A", client, 901 + sent, 0).window = 17_520;
            }
        }
        let end = at + f64::from(count) * segment_time;
        if lose {
            losses += 1;
            for i in 1..count {
                let edges = (901 + start + MSS, 901 + start + MSS * (i + 1));
                c.sack(
                    at + f64::from(i) * segment_time + near,
                    C,
                    client,
                    901 + start,
                    &[edges],
                );
            }
            // The retransmission timer, then slow start anew.
            let again = end + 0.6;
            c.packet(again, S, "A", 901 + start, client, MSS);
            c.packet(again + near, C, "A", client, 901 + sent, 0).window = 17_520;
            at = again + near + far;
            window = 2;
        } else {
            c.packet(end + near, C, "A", client, 901 + sent, 0).window = 17_520;
            at = at.max(end - far) + near + far;
            window = (window * 2).min(11);
        }
    }
    c.packets
}

fn analyze_at(packets: &[weir_engine::Meta], bandwidth: f64) -> v1::Analysis {
    analyze_over(packets, Some(bandwidth), None)
}

fn analyze_over(packets: &[weir_engine::Meta], bandwidth: Option<f64>, latency: Option<f64>) -> v1::Analysis {
    let config = Config {
        bandwidth,
        latency,
        ..Config::default()
    };
    analyze_with(&records(packets, EngineConfig::file()), config)
}

#[test]
fn a_download_over_t1_is_held_by_protocol() {
    let a = analyze_at(&t1_download(), 1.544e6);
    check_sums(&a);
    let summary = a.summary.as_ref().unwrap();
    let shares = summary.delays.unwrap();
    assert!((36.0..40.0).contains(&shares.total_seconds), "{shares:?}");
    assert!(shares.protocol_seconds > 0.7 * shares.total_seconds, "{shares:?}");
    // 1,428,870 bytes and their headers at 1,544 kbit/s.
    assert!((7.0..8.5).contains(&shares.bandwidth_seconds), "{shares:?}");
    assert!((0.39..0.60).contains(&shares.latency_seconds.unwrap()), "{shares:?}");
    let d = only(&a).server_to_client.unwrap();
    assert_eq!(d.max_in_flight / 1000, 16, "16 KB in flight");
    let ideal = d.ceilings.unwrap().ideal_window_bytes.unwrap();
    assert!((37_000.0..39_000.0).contains(&ideal), "38 KB would fill it: {ideal}");
    let verdict = |category: &str| {
        let row = summary.diagnosis.iter().find(|d| d.category == category).unwrap();
        row.verdict.as_str()
    };
    assert_eq!(verdict("PROTOCOL"), "BOTTLENECK");
    assert_eq!(verdict("SERVER_PROCESSING"), "NO_BOTTLENECK");
    assert_eq!(verdict("RETRANSMISSIONS"), "BOTTLENECK");
    let statistic = |name: &str| summary.statistics.iter().find(|s| s.name == name).unwrap();
    assert_eq!(statistic("Retransmissions").server, Some(21.0));
    assert_eq!(statistic("Max Application Bytes Per Turn").server, Some(1_428_870.0));
    assert_eq!(statistic("Latency").total.map(|ms| ms.round()), Some(98.0));
    assert_eq!(summary.statistics.len(), 28, "every row of the published table");
}

const T1: Option<f64> = Some(1.544e6);

/// Ceilings are those of the path that was given, unless the connection showed a shorter one.
#[test]
fn a_given_latency_is_that_of_the_path() {
    let packets = t1_download();
    let row = |a: &v1::Analysis| {
        let rows = &a.summary.as_ref().unwrap().statistics;
        rows.iter().find(|s| s.name == "Latency").unwrap().total.unwrap()
    };
    let ceilings = |a: &v1::Analysis| only(a).server_to_client.unwrap().ceilings.unwrap();
    let seen = analyze_over(&packets, T1, None);
    let near = analyze_over(&packets, T1, Some(0.049));
    check_sums(&near);
    assert_eq!(row(&near), 49.0);
    let (half, whole) = (ceilings(&near), ceilings(&seen));
    assert_eq!(half.round_trip_seconds, Some(0.098));
    let about = |of: fn(&v1::Ceilings) -> Option<f64>, times: f64| {
        let ratio = of(&half).unwrap() / of(&whole).unwrap();
        assert!((ratio - times).abs() < 0.01, "{half:?} {whole:?}");
    };
    about(|c| c.receiver_window_bits_per_second, 2.0);
    about(|c| c.loss_bits_per_second, 2.0);
    about(|c| c.ideal_window_bytes, 0.5);
    about(|c| c.light_kilometres, 0.5);
    about(|c| c.link_bits_per_second, 1.0);
    // Each side's way to the tap was seen.
    assert_eq!(near.summary.unwrap().delays, seen.summary.as_ref().unwrap().delays);
    let far = analyze_over(&packets, T1, Some(0.2));
    check_sums(&far);
    assert_eq!(row(&far), 200.0);
    assert_eq!(ceilings(&far), whole);
    assert_eq!(far.summary.unwrap().delays, seen.summary.unwrap().delays);
}

/// Without handshake and request the capture does not show the way to the server.
#[test]
fn a_given_latency_makes_ceilings_known() {
    let mut packets = t1_download();
    packets.drain(..4);
    // By their ports the ends are the other way round.
    let download = |a: &v1::Analysis| only(a).client_to_server.unwrap();
    // What was given alone is known.
    let alone = download(&analyze_over(&packets, T1, None)).ceilings.unwrap();
    let link = alone.link_bits_per_second.map(f64::round);
    assert_eq!((alone.round_trip_seconds, link), (None, Some(1_544_000.0)));
    assert_eq!(
        (alone.measured_bits_per_second, alone.receiver_window_bits_per_second),
        (None, None)
    );
    let a = analyze_over(&packets, T1, Some(0.098));
    check_sums(&a);
    let ceilings = download(&a).ceilings.unwrap();
    assert_eq!(ceilings.round_trip_seconds, Some(0.196));
    assert!(
        (37_000.0..39_000.0).contains(&ceilings.ideal_window_bytes.unwrap()),
        "{ceilings:?}"
    );
    let measured = ceilings.measured_bits_per_second.unwrap();
    assert!((0.28e6..0.32e6).contains(&measured), "{ceilings:?}");
    // Neither does one side alone.
    let low = packets[0].from_low;
    packets.retain(|packet| packet.from_low == low);
    assert_eq!(download(&analyze_over(&packets, T1, None)).ceilings, None);
    let a = analyze_over(&packets, T1, Some(0.098));
    check_sums(&a);
    let alone = download(&a).ceilings.unwrap();
    assert_eq!(alone.round_trip_seconds, Some(0.196));
    assert_eq!(alone.ideal_window_bytes, ceilings.ideal_window_bytes);
    assert!(
        (alone.measured_bits_per_second.unwrap() / measured - 1.0).abs() < 0.02,
        "{alone:?}"
    );
    assert_eq!(alone.receiver_window_bits_per_second, None);
}

/// Small messages in turns: each costs a round trip, however fast the link.
#[test]
fn turns_over_a_long_path_are_latency() {
    let trip = 0.250;
    let mut c = start(trip, Some(8), Some(8));
    let (mut at, mut client, mut server) = (0.3, 101, 901);
    for _ in 0..20 {
        c.packet(at, C, "AP", client, server, 100);
        client += 100;
        at += trip + 0.002;
        for i in 0..42u32 {
            c.packet(
                at + f64::from(i) * 1e-5,
                S,
                if i == 41 { "AP" } else { "A" },
                server,
                client,
                MSS,
            );
            server += MSS;
        }
        at += 0.003;
        c.packet(at, C, "A", client, server, 0);
    }
    let a = analyze(&c.packets);
    check_sums(&a);
    let latency = finding(&a, "LATENCY_BOUND");
    let bytes = f64::from(42 * MSS + 100);
    assert!((value(latency, "rttSeconds") - 0.251).abs() < 0.005, "{latency:?}");
    let ceiling = value(latency, "ceilingBitsPerSecond");
    assert!((ceiling / (bytes * 8.0 / 0.251) - 1.0).abs() < 0.05, "{latency:?}");
    let shares = a.summary.unwrap().delays.unwrap();
    assert!(
        (shares.latency_seconds.unwrap() / (21.0 * 0.251) - 1.0).abs() < 0.05,
        "{shares:?}"
    );
    assert!((0.03..0.08).contains(&shares.server_processing_seconds), "{shares:?}");
}

/// RFC 896 and RFC 1122 4.2.3.2: the tail of a message waits for an ACK that waits for more data.
#[test]
fn nagle_and_a_delayed_ack() {
    let mut c = start(0.010, Some(8), Some(8));
    let (mut at, mut seq) = (0.1, 101);
    for _ in 0..10 {
        c.packet(at, C, "A", seq, 901, MSS);
        c.packet(at + 0.050, S, "A", 901, seq + MSS, 0);
        c.packet(at + 0.052, C, "AP", seq + MSS, 901, 300);
        c.packet(at + 0.0621, S, "A", 901, seq + MSS + 300, 0);
        seq += MSS + 300;
        at += 0.2;
    }
    let a = analyze(&c.packets);
    let limits = only(&a).client_to_server.unwrap().limit_seconds.unwrap();
    // The first has no shortest round trip but the handshake's.
    assert!((0.45..=0.53).contains(&limits.nagle), "{limits:?}");
    // What waits for a delayed ACK waits in no queue.
    let costs = &a.summary.as_ref().unwrap().bottlenecks;
    let cost = |name| costs.iter().find(|b| b.name == name).map_or(0.0, |b| b.seconds);
    assert!((cost("NAGLE") - limits.nagle).abs() < 0.05, "{costs:?}");
    assert!(cost("CONGESTION") < 0.05, "{costs:?}");
}

/// Responses of 1,460 and 500 bytes: what was written behind a full segment waits for its ACK, whether the segment ends with PSH (two writes)
/// or not. Or a segment that ends with less goes ahead, and the ACK of it and the next one comes at once, that of the third when its timer
/// has run out, and no record tells of it.
#[test]
fn less_than_a_segment_behind_full_ones_waits_for_nagle() {
    const FULL: &[u32] = &[MSS];
    const ODD: &[u32] = &[250, MSS, MSS];
    for (pieces, flags) in [(FULL, "AP"), (FULL, "A"), (ODD, "A")] {
        let mut c = start(0.001, Some(8), Some(8));
        let (mut at, mut asked, mut sent) = (0.1, 101, 901);
        for _ in 0..20 {
            c.packet(at, C, "AP", asked, sent, 400);
            asked += 400;
            at += 0.004;
            for (i, bytes) in pieces.iter().enumerate() {
                let flags = if *bytes < MSS { "AP" } else { flags };
                c.packet(at, S, flags, sent, asked, *bytes);
                sent += bytes;
                at += 0.000_01;
                if i == 1 {
                    c.packet(at + 0.000_02, C, "A", asked, sent, 0);
                }
            }
            at += 0.2;
            c.packet(at, C, "A", asked, sent, 0);
            c.packet(at + 0.001, S, "AP", sent, asked, 500);
            sent += 500;
            at += 0.05;
        }
        let a = analyze(&c.packets);
        check_sums(&a);
        let costs = &a.summary.as_ref().unwrap().bottlenecks;
        let cost = |name| costs.iter().find(|b| b.name == name).map_or(0.0, |b| b.seconds);
        // Nothing was noted of the connection when the first passed.
        assert!((3.75..4.1).contains(&cost("NAGLE")), "{pieces:?} {flags}: {costs:?}");
        assert!(cost("CONGESTION") < 0.01, "{pieces:?} {flags}: {costs:?}");
        assert!(cost("SENDER") < 0.1, "{pieces:?} {flags}: {costs:?}");
    }
}

/// After a timeout the congestion window has room for one segment: a message in two pieces waits once for the ACK of the
/// first. If it waits again, that is Nagle's algorithm.
#[test]
fn after_a_timeout_one_segment_at_a_time_is_not_nagles() {
    let mut c = start(0.010, Some(8), Some(8));
    c.packet(0.1, C, "AP", 101, 901, 127);
    c.packet(0.4, C, "AP", 101, 901, 127);
    c.packet(0.4101, S, "A", 901, 228, 0);
    let (mut at, mut seq) = (0.5, 228);
    for (message, nagle) in [(1, 0.0..=0.0), (2, 0.04..=0.06)] {
        for bytes in [178, 1284] {
            c.packet(at, C, "AP", seq, 901, bytes);
            seq += bytes;
            at += 0.050;
            c.packet(at, S, "A", 901, seq, 0);
            at += 0.002;
        }
        at += 0.1;
        let a = analyze(&c.packets);
        check_sums(&a);
        let limits = only(&a).client_to_server.unwrap().limit_seconds.unwrap();
        assert!(nagle.contains(&limits.nagle), "message {message}: {limits:?}");
        assert!(limits.congestion >= 0.34, "message {message}: {limits:?}");
    }
}

/// A response over 60 ms, flight by flight, each of so many segments; the last ends with PSH, as all the others.
fn download(port: u16, segments: &[u32]) -> Vec<Meta> {
    let trip = 0.060;
    let mut c = start_from(port, trip, Some(9), Some(9));
    c.packet(0.2, C, "AP", 101, 901, 200).window = 60_000;
    let (mut at, mut sent) = (0.2 + trip, 901);
    for &n in segments {
        for i in 0..n {
            let flags = if i + 1 == n { "AP" } else { "A" };
            c.packet(at + f64::from(i) * 1e-6, S, flags, sent, 301, MSS);
            sent += MSS;
        }
        c.packet(at + 0.002, C, "A", 301, sent, 0).window = 60_000;
        at += trip;
    }
    c.packets
}

fn flights(segments: &[u32]) -> v1::LimitSeconds {
    let a = analyze(&download(40_000, segments));
    check_sums(&a);
    only(&a).server_to_client.unwrap().limit_seconds.unwrap()
}

/// A mirror of both ways writes each packet twice, bursts first and then their copies.
#[test]
fn a_mirror_changes_no_limits() {
    for packets in [
        download(40_000, &[10, 20, 40, 80, 160, 320]),
        unscaled(0.130, 6),
        t1_download(),
    ] {
        let mut twice = packets.clone();
        twice.extend(packets.iter().map(|m| Meta {
            time: m.time + 20_000,
            ..*m
        }));
        twice.sort_by_key(|m| m.time);
        let limits = |packets: &[Meta]| only(&analyze(packets)).server_to_client.unwrap().limit_seconds.unwrap();
        let (once, twice) = (limits(&packets), limits(&twice));
        for [once, twice] in [
            [once.application, twice.application],
            [once.sender, twice.sender],
            [once.receiver_window, twice.receiver_window],
            [once.congestion, twice.congestion],
            [once.bandwidth, twice.bandwidth],
            [once.unknown, twice.unknown],
        ] {
            assert!((once - twice).abs() < 0.001, "{once:?} {twice:?}");
        }
    }
}

/// Each transfer has a small chance to be told wrongly: a limit of a few of very many is less sure.
#[test]
fn a_limit_of_one_transfer_in_many_is_less_sure() {
    let limited = unscaled(0.130, 6);
    let confidence = |others: u16| {
        let others = (0..others).map(|i| download(40_001 + i, &[10, 20, 40, 80]));
        let all: Vec<Vec<Meta>> = std::iter::once(limited.clone()).chain(others).collect();
        finding(&analyze(&all.concat()), "RECEIVER_LIMITED").confidence
    };
    assert!((confidence(0) - 0.8).abs() < 1e-9);
    assert!((confidence(40) - 0.8).abs() < 1e-9);
    assert!((confidence(400) - 0.5).abs() < 1e-9);
}

/// RFC 5681 3.1, RFC 3465 2.2: in slow start each flight is twice the one before.
#[test]
fn flights_that_double_are_slow_start() {
    let limits = flights(&[10, 20, 40, 80, 160, 320]);
    assert!(limits.sender < 1e-9 && limits.congestion > 4.9 * 0.060, "{limits:?}");
}

/// A sender whose flights doubled, and then grew by less without a loss, and by more again, waited for its buffer:
/// Linux lets in up to 64 KB each time that it wakes its application.
#[test]
fn flights_that_grow_by_less_than_slow_start_wait_for_a_buffer() {
    let limits = flights(&[10, 20, 31, 53, 60, 105, 136, 160, 300, 400, 200]);
    assert!(
        limits.sender > 7.5 * 0.060 && limits.congestion < 2.6 * 0.060,
        "{limits:?}"
    );
}

/// The same beginning, but then a segment in each round trip: slow start has ended, as far as the wire tells.
#[test]
fn flights_that_grow_by_a_segment_are_congestion_avoidance() {
    let limits = flights(&[10, 20, 31, 32, 33, 34, 35, 36, 37, 38, 39]);
    assert!(limits.sender < 0.060, "{limits:?}");
    assert!(limits.congestion > 8.9 * 0.060, "{limits:?}");
}

/// A download whose flights become smaller behind one whose ACK, as those of some after it (`marks` in all), tells of a mark, where both sides use ECN
/// (`agreed`).
fn with_marks(agreed: bool, marks: usize) -> v1::Analysis {
    let mut packets = download(
        40_000,
        &[10, 20, 40, 80, 160, 120, 110, 100, 101, 102, 103, 104, 105, 106, 300],
    );
    if agreed {
        packets[0].flags |= tcp_flag::ECE | tcp_flag::CWR;
        packets[1].flags |= tcp_flag::ECE;
    }
    let end = 901 + (10 + 20 + 40 + 80 + 160) * MSS;
    let acks = packets.iter_mut().filter(|m| m.payload == 0 && m.ack >= end);
    acks.take(marks).for_each(|m| m.flags |= tcp_flag::ECE);
    let a = analyze(&packets);
    check_sums(&a);
    a
}

/// RFC 3168 6.1.2: who hears of a mark makes its congestion window smaller, although nothing was lost.
#[test]
fn a_mark_makes_the_congestion_window_smaller() {
    let of = |a: &v1::Analysis| only(a).server_to_client.unwrap();
    let limits = |a: &v1::Analysis| of(a).limit_seconds.unwrap();
    let sender = limits(&with_marks(true, 0)).sender;
    assert!(sender > 0.4, "{sender}");
    let marked = with_marks(true, 2);
    let limits_marked = limits(&marked);
    assert!(
        limits_marked.sender < 0.07 && limits_marked.congestion > 0.7,
        "{limits_marked:?}"
    );
    about(of(&marked).rtt.unwrap().marked_ack_share.unwrap(), 2.0 / 14.0);
    // Without an agreement, the flag means something else.
    let other = with_marks(false, 2);
    about(limits(&other).sender, sender);
    assert_eq!(of(&other).rtt.unwrap().marked_ack_share, None);
}

#[test]
fn queues_that_mark_are_told() {
    let found = with_marks(true, 6);
    let marks = finding(&found, "ECN_MARKS");
    about(value(marks, "acks"), 6.0);
    about(value(marks, "serverToClient"), 6.0);
    about(value(marks, "share"), 6.0 / 14.0);
    assert!(with_marks(true, 4).findings.iter().all(|f| f.kind != "ECN_MARKS"));
}

/// One connection uploads through a queue behind the tap, and another asks for something small meanwhile. The request waits
/// as long as the upload's segments: 60 ms above the round trip of 20 ms. `queue`: whether there is any.
fn a_request_beside_an_upload(queue: bool) -> v1::Transaction {
    the_request(&beside_an_upload(queue, 0.0))
}

/// `apart`: the time between the request's first 200 bytes, which are acknowledged by themselves, and the rest; 0: it is one segment.
fn beside_an_upload(queue: bool, apart: f64) -> Vec<Meta> {
    let base = 0.020;
    let mut upload = Conversation::new(40_001);
    upload.syn(0.0, C, 100, 0, Some(8));
    upload.syn(base, S, 900, 101, Some(8));
    upload.packet(base + 0.001, C, "A", 101, 901, 0);
    let (mut at, mut sent) = (0.100, 101);
    for i in 0..300u32 {
        upload.packet(at, C, "A", sent, 901, MSS);
        sent += MSS;
        // It grows over the first hundred segments and stays; the ACK is of this segment while others are in flight.
        let wait = if queue {
            0.060 * f64::from(i.min(100)) / 100.0
        } else {
            0.0
        };
        upload.packet(at + base + wait, S, "A", 901, sent, 0);
        at += 0.002;
    }
    let mut ask = Conversation::new(40_002);
    ask.syn(0.0, C, 100, 0, Some(8));
    ask.syn(base, S, 900, 101, Some(8));
    ask.packet(base + 0.001, C, "A", 101, 901, 0);
    let way = base + if queue { 0.060 } else { 0.0 };
    if apart > 0.0 {
        ask.packet(0.500 - apart, C, "A", 101, 901, 200);
        ask.packet(0.500 - apart + way, S, "A", 901, 301, 0);
        ask.packet(0.500, C, "AP", 301, 901, 100);
    } else {
        ask.packet(0.500, C, "AP", 101, 901, 300);
    }
    ask.packet(0.500 + way + 0.007, S, "AP", 901, 401, 500);
    upload.packets.into_iter().chain(ask.packets).collect()
}

/// The one of 300 bytes.
fn the_request(packets: &[Meta]) -> v1::Transaction {
    let a = analyze(packets);
    check_sums(&a);
    let asked = |t: &&v1::Transaction| t.kind == "DATA" && t.request_bytes == 300;
    a.transactions.iter().find(asked).unwrap().clone()
}

#[test]
fn what_waits_in_a_queue_behind_the_tap_is_not_the_servers_time() {
    let with = a_request_beside_an_upload(true);
    let shares = with.shares.unwrap();
    assert!((shares.server_processing_seconds - 0.007).abs() < 0.001, "{shares:?}");
    assert!((shares.congestion_seconds - 0.060).abs() < 0.001, "{shares:?}");
    // It could have waited less and the server have worked: the queue may stand on the way back, and be gone.
    let uncertain = with.server_uncertain_seconds.unwrap();
    assert!((uncertain - 0.060).abs() < 0.001, "{uncertain}");
    let without = a_request_beside_an_upload(false);
    assert!((without.shares.unwrap().server_processing_seconds - 0.007).abs() < 1e-6);
    assert_eq!(without.server_uncertain_seconds, None);
}

/// Its end waits in the queue, too.
#[test]
fn what_waits_in_a_queue_behind_the_tap_is_still_under_way() {
    for (queue, whole) in [(true, 0.100 + 0.021 + 0.060), (false, 0.100 + 0.021)] {
        let a = analyze(&beside_an_upload(queue, 0.100));
        let asks = |c: &&v1::Connection| c.client.as_ref().unwrap().port == 40_002;
        let sent = a
            .connections
            .iter()
            .find(asks)
            .unwrap()
            .client_to_server
            .as_ref()
            .unwrap();
        let rate = sent.ceilings.unwrap().measured_bits_per_second.unwrap();
        assert!((rate * whole / 2400.0 - 1.0).abs() < 0.01, "{rate} {queue}");
    }
}

/// Three requests and responses of 200 bytes, 7 ms of the server's each; the capture missed some packets, by their numbers.
fn without(missed: &[usize]) -> Vec<v1::Transaction> {
    let base = 0.020;
    let mut c = start_from(40_000, base, Some(8), Some(8));
    let mut data = Vec::new();
    for turn in 0..3u32 {
        let (at, from) = (0.1 + f64::from(turn) * 0.1, 200 * turn);
        c.packet(at, C, "AP", 101 + from, 901 + from, 200);
        c.packet(at + base + 0.007, S, "AP", 901 + from, 301 + from, 100);
        c.packet(at + base + 0.008, S, "AP", 1001 + from, 301 + from, 100);
        c.packet(at + base + 0.009, C, "A", 301 + from, 1101 + from, 0);
        data.push(c.packets.len() - 4);
    }
    c.packet(0.5, S, "FA", 1501, 701, 0);
    c.packet(0.5, C, "A", 701, 1502, 0);
    let gone: Vec<_> = missed.iter().map(|n| data[n / 4] + n % 4).collect();
    let kept = |i: &usize| !gone.contains(i);
    let packets: Vec<_> = (0..c.packets.len()).filter(kept).map(|i| c.packets[i]).collect();
    let mut a = analyze(&packets);
    check_sums(&a);
    a.transactions.retain(|t| t.kind == "DATA");
    a.transactions
}

/// Where the capture missed a request, how much of the time before the response was the server's is not known; where it missed a response's
/// beginning, the server seems to have begun later.
#[test]
fn what_the_capture_missed_makes_a_server_time_uncertain() {
    let server = |t: &v1::Transaction| t.shares.unwrap().server_processing_seconds;
    let all = without(&[]);
    assert_eq!(all.len(), 3);
    for t in &all {
        assert!((server(t) - 0.007).abs() < 0.0001, "{t:?}");
        assert_eq!(t.server_uncertain_seconds, None);
    }
    // The server's ACK tells how long it was, and not when it came.
    for (missed, which) in [(0, 0), (4, 1), (8, 2)] {
        let request = without(&[missed]);
        assert_eq!(request.len(), 3);
        for (i, t) in request.iter().enumerate() {
            assert_eq!((t.request_bytes, t.response_bytes), (200, 200), "{t:?}");
            assert_eq!(t.server_seconds.is_none(), i == which);
            assert_eq!(t.server_uncertain_seconds.is_some(), i == which);
        }
        let t = &request[which];
        assert!(server(t) - 0.007 < t.server_uncertain_seconds.unwrap());
        assert!(t.shares.unwrap().total_seconds > 0.07, "{t:?}");
    }
    // A whole response.
    let response = without(&[9, 10]);
    let sizes: Vec<_> = response.iter().map(|t| (t.request_bytes, t.response_bytes)).collect();
    assert_eq!(sizes, [(200, 200); 3]);
    assert_eq!(response[2].server_seconds, None);
    let response = without(&[5]);
    let said: Vec<_> = response.iter().map(|t| t.server_uncertain_seconds).collect();
    assert!(matches!(said[..], [None, Some(_), None]), "{said:?}");
    assert!(said[1].unwrap() >= 0.027, "{said:?}");
}

/// Two requests of a segment and a little more, just before the one that is asked about. Their first segments' ACKs come later by
/// `wait`, and of what else was sent too if `both`.
fn a_request_behind_two(wait: f64, both: bool) -> v1::Transaction {
    let base = 0.020;
    let mut packets = Vec::new();
    for (k, sent) in [(0, 0.480), (1, 0.490), (2, 0.500)] {
        let mut c = Conversation::new(40_001 + k);
        c.syn(0.0, C, 100, 0, Some(8));
        c.syn(base, S, 900, 101, Some(8));
        c.packet(base + 0.001, C, "A", 101, 901, 0);
        let mut end = 101;
        if k < 2 {
            c.packet(sent, C, "A", end, 901, MSS);
            end += MSS;
        }
        c.packet(sent + 1e-6, C, "AP", end, 901, 300);
        end += 300;
        if k < 2 {
            c.packet(sent + base + wait, S, "A", 901, if both { end } else { end - 300 }, 0);
        }
        c.packet(sent + base + wait + 0.007, S, "AP", 901, end, 500);
        packets.extend(c.packets);
    }
    packets.sort_by_key(|p| p.time);
    the_request(&packets)
}

/// A receiver that has a part of a request only answers nothing yet, nor does one whose ACK of all of it comes by itself, and no timer of
/// its ACK is as short.
#[test]
fn an_ack_without_a_response_tells_of_a_queue() {
    for both in [false, true] {
        let queue = a_request_behind_two(0.012, both);
        let shares = queue.shares.unwrap();
        assert!((shares.server_processing_seconds - 0.007).abs() < 0.001, "{shares:?}");
        assert!((queue.server_uncertain_seconds.unwrap() - 0.012).abs() < 0.001);
        // Held back by its timer.
        assert_eq!(a_request_behind_two(0.025, both).server_uncertain_seconds, None);
    }
}

/// The ACK of a request came `late` above the smallest round trip, and its response 5 ms behind it.
#[test]
fn the_ack_of_a_request_tells_how_long_that_waited() {
    for (late, server, uncertain) in [(0.0005, 5.5, None), (0.012, 5.0, Some(12)), (0.025, 30.0, None)] {
        let mut c = Conversation::new(40_001);
        c.syn(0.0, C, 100, 0, Some(8));
        c.syn(0.020, S, 900, 101, Some(8));
        c.packet(0.021, C, "A", 101, 901, 0);
        c.packet(0.500, C, "AP", 101, 901, 300);
        c.packet(0.520 + late, S, "A", 901, 401, 0);
        c.packet(0.525 + late, S, "AP", 901, 401, 500);
        let request = the_request(&c.packets);
        let said = request.server_uncertain_seconds.map(|s| (s * 1000.0).round() as u32);
        let ms = request.shares.unwrap().server_processing_seconds * 1000.0;
        assert!(
            (ms - server).abs() < 0.1 && said == uncertain,
            "{late}: {ms} ± {said:?}"
        );
    }
}

/// A link passes a segment each millisecond, to a tap 1 ms from the client. One connection shakes hands while it is idle, another behind
/// 200 ms of its queue; and then that has the link for itself, to a window of 320,000 bytes.
fn behind_a_queue(first: bool) -> v1::LimitSeconds {
    let mut packets = Vec::new();
    for (port, trip, from) in [(40_001, 0.010, 0.1), (40_002, 0.210, 1.2)] {
        if port == 40_001 && !first {
            continue;
        }
        let mut c = start_from(port, trip, Some(8), Some(8));
        c.packet(trip + 0.002, C, "AP", 101, 901, 100);
        for n in 0..900 {
            let at = from + f64::from(n) * 0.001;
            let flags = if n % 2 == 1 { "AP" } else { "A" };
            c.packet(at, S, flags, 901 + n * MSS, 201, MSS);
            if n % 2 == 1 {
                c.packet(at + 0.001, C, "A", 201, 901 + (n + 1) * MSS, 0).window = 1250;
            }
        }
        packets.extend(c.packets);
    }
    packets.sort_by_key(|p| p.time);
    let a = analyze(&packets);
    check_sums(&a);
    let second = a.connections.iter().find(|c| c.client.as_ref().unwrap().port == 40_002);
    second
        .unwrap()
        .server_to_client
        .as_ref()
        .unwrap()
        .limit_seconds
        .unwrap()
}

/// Over 211 ms a window of 320,000 bytes would be full, over 11 ms it has room.
#[test]
fn the_round_trip_of_a_handshake_in_a_queue_is_that_of_others() {
    let by = [false, true].map(behind_a_queue);
    assert!(by[0].receiver_window > 0.3, "{by:?}");
    assert!(by[1].receiver_window < 0.01 && by[1].bandwidth > 0.8, "{by:?}");
}

/// Windows of six segments, beside the receiver. Of each third flight no ACK comes to the sender, which sends the first segment again after
/// 300 ms: until then it stands at the edge of the last window that it had heard of.
#[test]
fn who_has_heard_of_no_ack_stands_at_the_edge() {
    let mut c = start(0.010, Some(0), Some(0));
    c.packet(0.020, C, "AP", 101, 901, 300);
    let (mut at, mut sent) = (0.030, 901);
    for flight in 1..=12 {
        for i in 1..=6 {
            let flags = if i % 2 == 0 { "AP" } else { "A" };
            c.packet(at + f64::from(i) * 0.0005, S, flags, sent, 401, MSS);
            sent += MSS;
            if i % 2 == 0 {
                c.packet(at + f64::from(i) * 0.0005 + 0.000_1, C, "A", 401, sent, 0)
                    .window = 8760;
            }
        }
        at += 0.0101;
        if flight % 3 == 0 {
            c.packet(at + 0.300, S, "A", sent - 6 * MSS, 401, MSS);
            c.packet(at + 0.300_05, C, "A", 401, sent, 0).window = 8760;
            at += 0.310;
        }
    }
    let a = analyze(&c.packets);
    check_sums(&a);
    let limits = only(&a).server_to_client.unwrap().limit_seconds.unwrap();
    assert!(limits.receiver_window > 0.95, "{limits:?}");
    assert!(limits.recovery < 0.1, "{limits:?}");
}

/// The first window is ten segments (RFC 6928); what a response has beyond that waits for its ACKs, be it 55 bytes only.
/// The server was done long before.
#[test]
fn a_small_rest_behind_the_first_window_is_not_the_servers_time() {
    for size in [MSS, MSS - 12] {
        let mut c = start(0.040, Some(8), Some(8));
        c.packet(0.100, C, "AP", 101, 901, 700);
        let at = 0.100 + 0.040 + 0.009;
        for i in 0..10 {
            let flags = if i % 2 == 1 { "AP" } else { "A" };
            c.packet(at + f64::from(i) * 1e-6, S, flags, 901 + size * i, 801, size);
        }
        c.packet(at + 0.001_02, C, "A", 801, 901 + size * 10, 0);
        c.packet(at + 0.041_05, S, "AP", 901 + size * 10, 801, 55);
        let a = analyze(&c.packets);
        check_sums(&a);
        let shares = a.transactions[1].shares.unwrap();
        assert!(
            (shares.server_processing_seconds - 0.009).abs() < 0.001,
            "{size}: {shares:?}"
        );
    }
}

/// A proxy whose bursts nearly fill the window of 56,704 waits 239 ms for its origin, although all has been acknowledged with
/// the same window (and segments of 8,961 bytes, cut by the card): the application, not the receiver.
#[test]
fn a_pause_after_all_was_acknowledged_is_not_the_windows() {
    let mut c = start(0.000_3, Some(7), Some(7));
    for syn in &mut c.packets[..2] {
        syn.options.mss = 8961;
    }
    c.packet(0.001, C, "AP", 101, 901, 93).window = 491;
    let (mut at, mut sent) = (0.4, 901);
    for _ in 0..3 {
        for len in [26_847, 12_713] {
            c.packet(at, S, "AP", sent, 194, len);
            sent += len;
        }
        c.packet(at + 0.000_04, C, "A", 194, sent, 0).window = 443;
        at += 0.239;
    }
    let a = analyze(&c.packets);
    check_sums(&a);
    let limits = only(&a).server_to_client.unwrap().limit_seconds.unwrap();
    assert!(limits.receiver_window < 0.005, "{limits:?}");
    assert!((limits.application - (0.399 + 2.0 * 0.239)).abs() < 0.005, "{limits:?}");
}

/// Four of ten segments are lost, and one is sent again in each round trip. The window had room for `room` more. Seconds of the window.
fn holes(room: u32) -> f64 {
    let (trip, edge) = (0.1, 10 + room);
    let mut c = start(trip, None, None);
    c.packets[1].window = (edge * MSS) as u16;
    let seq = |segment: u32| 101 + segment * MSS;
    for n in 0..10 {
        c.packet(0.2 + f64::from(n) * 1e-4, C, "A", seq(n), 901, MSS);
    }
    let mut at = 0.2 + trip;
    for n in 0..6 {
        c.packet(at + f64::from(n) * 1e-4, S, "A", 901, seq(0), 0).window = (edge * MSS) as u16;
    }
    for (lost, next) in [(0, 2), (2, 4), (4, 6), (6, 10)] {
        c.packet(at + 0.001, C, "A", seq(lost), 901, MSS);
        at += trip;
        let window = if next == 10 { 10 } else { edge - next };
        c.packet(at, S, "A", 901, seq(next), 0).window = (window * MSS) as u16;
    }
    c.packet(at + 0.001, C, "AP", seq(10), 901, MSS);
    c.packet(at + 0.001 + trip, S, "AP", 901, seq(11), 100);
    let a = analyze(&c.packets);
    check_sums(&a);
    only(&a)
        .client_to_server
        .as_ref()
        .unwrap()
        .limit_seconds
        .unwrap()
        .receiver_window
}

/// It was full, or had no room for three more, until the new segment went. (What a block that has not ended yet tells is not known at the
/// first repeat.)
#[test]
fn a_window_is_full_until_the_first_hole_is_filled_and_the_next_and_the_next() {
    for (room, seconds) in [(0, 0.49..0.51), (2, 0.39..0.41), (4, 0.0..0.001)] {
        let window = holes(room);
        assert!(seconds.contains(&window), "{room}: {window}");
    }
}

/// Ten segments go to the edge of the window, and the first is lost. Duplicate ACKs tell of a window of 30 a round trip later. The
/// sender, who has lost their rest, is silent until its timeout.
#[test]
fn a_window_that_duplicate_acks_open_holds_its_sender_no_longer() {
    let trip = 0.1;
    let mut c = start(trip, None, None);
    c.packets[1].window = 10 * MSS as u16;
    let seq = |segment: u32| 101 + segment * MSS;
    for n in 0..10 {
        let flags = if n == 9 { "AP" } else { "A" };
        c.packet(0.2 + f64::from(n) * 1e-4, C, flags, seq(n), 901, MSS);
    }
    for n in 0..6 {
        let window = &mut c.packet(0.3 + f64::from(n) * 1e-4, S, "A", 901, seq(0), 0).window;
        *window = 30 * MSS as u16;
    }
    c.packet(0.7, C, "A", seq(0), 901, MSS);
    c.packet(0.7 + trip, S, "A", 901, seq(10), 0).window = 30 * MSS as u16;
    c.packet(0.801, C, "AP", seq(10), 901, MSS);
    c.packet(0.801 + trip, S, "AP", 901, seq(11), 100);
    let a = analyze(&c.packets);
    check_sums(&a);
    let limits = only(&a).client_to_server.unwrap().limit_seconds.unwrap();
    assert!((0.098..0.102).contains(&limits.receiver_window), "{limits:?}");
}

/// Shaken hands on a loopback interface, whose segments are as large as a window without scale.
fn on_loopback(scale: u8, offered: u16, window: u16) -> Conversation {
    let mut c = start(20e-6, Some(scale), Some(scale));
    for syn in &mut c.packets[..2] {
        syn.options.mss = 65_495;
        syn.window = offered;
    }
    c.packets[2].window = window;
    c
}

/// On a loopback interface a window has hardly room for one segment, and yet it is no limit: here a service writes 20,000
/// bytes every 2 ms, and every second of these is acknowledged at once.
#[test]
fn a_window_smaller_than_two_segments_is_no_limit_by_itself() {
    let mut c = on_loopback(10, 65_495, 104);
    let (mut at, mut asked, mut sent) = (0.001, 101, 901);
    for _ in 0..30 {
        c.packet(at, C, "AP", asked, sent, 100).window = 104;
        asked += 100;
        at += 0.005;
        for piece in 0..10 {
            c.packet(at, S, "AP", sent, asked, 20_000).window = 64;
            sent += 20_000;
            if piece % 2 == 1 {
                c.packet(at + 3e-6, C, "A", asked, sent, 0).window = 104;
            }
            at += 0.002;
        }
    }
    let a = analyze(&c.packets);
    check_sums(&a);
    let limits = only(&a).server_to_client.as_ref().unwrap().limit_seconds.unwrap();
    assert!(limits.receiver_window < 0.01, "{limits:?}");
    assert!(limits.application > 0.5, "{limits:?}");
}

/// Nor is it silly: its window grows by a little with each message, as a receiver's buffer does that is tuned.
#[test]
fn a_window_that_grows_before_little_data_is_not_silly() {
    let mut c = on_loopback(7, 43_690, 342);
    let (mut at, mut asked, mut sent, mut window) = (0.001, 101, 901, 342);
    for _ in 0..20 {
        c.packet(at, C, "AP", asked, sent, 300).window = window;
        asked += 300;
        window += 8;
        c.packet(at + 0.001, S, "AP", sent, asked, 400).window = window;
        sent += 400;
        c.packet(at + 0.001_01, C, "A", asked, sent, 0).window = window;
        at += 1.0;
    }
    let a = analyze(&c.packets);
    assert!(!a.findings.iter().any(|f| f.kind == "SILLY_WINDOW"), "{:?}", a.findings);
}

/// Messages of 20 bytes to a receiver whose window is always 1,000 bytes, less than the MSS: half of it is as good as a segment (RFC 1122 4.2.3.4).
/// Once the window was more than twice that, it is small.
#[test]
fn a_window_below_the_mss_holds_nobody_if_it_is_the_largest() {
    let small = |offered: u16| {
        let mut c = Conversation::new(40_000);
        c.syn(0.0, C, 100, 0, Some(0)).window = 1_000;
        c.syn(0.010, S, 900, 101, Some(0)).window = offered;
        c.packet(0.011, C, "A", 101, 901, 0).window = 1_000;
        for message in 0..10u32 {
            let (at, seq) = (0.1 + f64::from(message) * 0.3, 101 + 20 * message);
            c.packet(at, C, "AP", seq, 901, 20).window = 1_000;
            c.packet(at + 0.010, S, "A", 901, seq + 20, 0).window = 1_000;
        }
        let a = analyze(&c.packets);
        check_sums(&a);
        only(&a).client_to_server.unwrap().limit_seconds.unwrap().small_window
    };
    assert_eq!(small(1_000), 0.0);
    assert!(small(4_000) > 2.0, "{}", small(4_000));
}

/// Less than a segment without PSH, and more of the message 2 s later: the client had no more.
#[test]
fn silence_behind_less_than_a_segment_is_the_applications_without_psh() {
    let mut c = start(0.010, Some(8), Some(8));
    // A request in two pieces before, so that transfers are looked at.
    c.packet(0.1, C, "AP", 101, 901, 50);
    c.packet(0.15, C, "AP", 151, 901, 50);
    c.packet(0.16, S, "A", 901, 201, 300);
    c.packet(0.17, C, "A", 201, 1201, 17);
    c.packet(2.17, C, "A", 218, 1201, 106);
    c.packet(2.18, S, "A", 1201, 324, 300);
    let a = analyze(&c.packets);
    check_sums(&a);
    let limits = only(&a).client_to_server.unwrap().limit_seconds.unwrap();
    assert!(limits.application >= 1.9, "{limits:?}");
    let costs = &a.summary.as_ref().unwrap().bottlenecks;
    assert!(
        costs.iter().all(|b| b.name != "CONGESTION" || b.seconds < 0.05),
        "{costs:?}"
    );
}

/// A link carries 1448 bytes in 0.6 ms, and nothing for 5 s in the middle of a transfer: it was not busy then.
#[test]
fn a_link_that_carries_nothing_is_not_busy() {
    const SEGMENT: u32 = 1448;
    let mut c = start(0.020, Some(8), Some(8));
    c.packet(0.050, C, "AP", 101, 901, 100);
    let mut at = 0.080;
    for n in 0..800u32 {
        if n == 400 {
            at += 5.0;
        }
        c.packet(at, S, "A", 901 + n * SEGMENT, 201, SEGMENT).window = 1026;
        if n % 2 == 1 {
            // What the queue holds grows and shrinks.
            let wait = 0.004 + 0.000_02 * f64::from(n % 100);
            c.packet(at + wait, C, "A", 201, 901 + (n + 1) * SEGMENT, 0).window = 16_000;
        }
        at += 0.000_6;
    }
    let a = analyze(&c.packets);
    check_sums(&a);
    let limits = only(&a).server_to_client.as_ref().unwrap().limit_seconds.unwrap();
    assert!(limits.bandwidth < 1.0, "{limits:?}");
}

/// A segment of a request is late, its repeat passes first, and then it comes itself: the server had no whole request before.
#[test]
fn a_request_is_whole_when_its_gap_is_filled() {
    let trip = 0.020;
    let mut c = start(trip, Some(8), Some(8));
    c.packet(0.100, C, "A", 101, 901, 100);
    let late = *c.packet(0.100_01, C, "A", 201, 901, 100);
    c.packets.pop();
    c.packet(0.100_02, C, "AP", 301, 901, 100);
    for right in [351, 401, 401] {
        c.sack(0.100 + trip, S, 901, 201, &[(301, right)]);
    }
    c.packet(0.125, C, "A", 201, 901, 100);
    c.packets.push(Meta {
        time: late.time + 26_000_000,
        ..late
    });
    c.packet(0.125 + trip, S, "A", 901, 401, 0);
    c.packet(0.200, S, "AP", 901, 401, 100);
    c.packet(0.201, C, "A", 401, 1001, 0);
    let t = the_request(&c.packets);
    let server = t.shares.unwrap().server_processing_seconds;
    assert!((server - (0.200 - 0.125 - trip)).abs() < 0.001, "{t:?}");
}

/// What an ACK for so many segments, each `late` s behind the round trip, was charged to, of an upload in bursts that fill the window; the tap
/// is in the middle of 40 ms.
fn a_slow_reader(late: f64) -> v1::Analysis {
    const BURST: u32 = 20 * MSS;
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(0.020, S, 900, 101, Some(8));
    c.packet(0.040, C, "A", 101, 901, 0);
    let every = (0.040 + late) / 2.0;
    for k in 0..60 {
        let at = 1.0 + f64::from(k) * every;
        for n in 0..20 {
            let flags = if n == 19 { "AP" } else { "A" };
            c.packet(at + f64::from(n) * 1e-6, C, flags, 101 + k * BURST + n * MSS, 901, MSS);
        }
        let acked = c.packet(at + 0.020 + late, S, "A", 901, 101 + (k + 1) * BURST, 0);
        // Two bursts.
        acked.window = 229;
    }
    c.packets.sort_by_key(|packet| packet.time);
    let a = analyze(&c.packets);
    check_sums(&a);
    a
}

/// Segments that wait in a queue come out of it one by one, and each second one is acknowledged.
#[test]
fn one_late_ack_for_many_segments_waited_for_its_receiver_and_in_no_queue() {
    let a = a_slow_reader(0.020_3);
    assert!(
        a.findings.iter().all(|f| f.kind != "BANDWIDTH_LIMITED"),
        "{:?}",
        a.findings
    );
    let by = only(&a).client_to_server.unwrap().limit_seconds.unwrap();
    let time = a.summary.as_ref().unwrap().delays.unwrap();
    assert!(by.receiver_window > 1.5, "{by:?}");
    assert!(
        time.bandwidth_seconds + time.congestion_seconds < 0.2 && time.protocol_seconds > 1.5,
        "{time:?}"
    );
}

/// An application writes 500 bytes each 3 ms, and Nagle's algorithm makes full segments of them: 1.3 Mbit/s, evenly spaced, beside a sender that
/// is `near` s away.
fn small_writes(near: f64) -> v1::Analysis {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(near, S, 900, 101, Some(8));
    c.packet(0.080 + near, C, "A", 101, 901, 0);
    c.packet(0.082, C, "AP", 101, 901, 100);
    c.packet(0.082 + near, S, "A", 901, 201, 0);
    let (mut at, mut sent) = (0.085, 901);
    for _ in 0..12 {
        for (wait, length, flags) in [(0.009_5, MSS, "A"); 8].into_iter().chain([(0.003_4, 916, "AP")]) {
            at += wait;
            c.packet(at, S, flags, sent, 201, length);
            sent += length;
            c.packet(at + 0.080, C, "A", 201, sent, 0);
        }
    }
    c.packets.sort_by_key(|packet| packet.time);
    let a = analyze(&c.packets);
    check_sums(&a);
    a
}

#[test]
fn a_link_that_takes_longer_for_a_packet_than_its_round_trip_is_none() {
    let busy = |a: &v1::Analysis| a.findings.iter().any(|f| f.kind == "BANDWIDTH_LIMITED");
    let a = small_writes(0.000_1);
    assert!(!busy(&a), "{:?}", a.findings);
    let time = a.summary.as_ref().unwrap().delays.unwrap();
    assert!(
        time.server_processing_seconds > 0.6 && time.bandwidth_seconds < 0.1,
        "{time:?}"
    );
    // From farther away it may as well be a link.
    assert!(busy(&small_writes(0.020)));
}

/// A receiver's window of 20 segments that is filled again when its last ACK comes to the sender, as late as a wireless link lets it.
fn with_late_acks(late: impl Fn(u32) -> f64) -> v1::LimitSeconds {
    let trip = 0.004;
    let mut c = start(trip, None, None);
    c.packet(0.010, C, "AP", 101, 901, 200).window = 29_200;
    let (mut at, mut seq) = (0.010 + trip, 901);
    for flight in 0..60 {
        for n in 0..20 {
            c.packet(
                at + f64::from(n) * 1e-6,
                S,
                if n == 19 { "AP" } else { "A" },
                seq,
                301,
                MSS,
            );
            seq += MSS;
        }
        c.packet(at + 0.001 + 20e-6, C, "A", 301, seq, 0).window = 29_200;
        at += 0.001 + 20e-6 + trip + late(flight);
    }
    let a = analyze(&c.packets);
    check_sums(&a);
    only(&a).server_to_client.unwrap().limit_seconds.unwrap()
}

/// No round trip tells of the way to the sender, but the pauses at a full window do.
#[test]
fn acks_that_come_late_to_their_sender_leave_it_at_the_edge() {
    let by = with_late_acks(|flight| f64::from(flight * 7 % 10) * 1e-3);
    let all = by.receiver_window + by.application;
    assert!(by.receiver_window > 0.9 * all, "{by:?}");
    // A pause now and then is the application's.
    let by = with_late_acks(|flight| if flight % 9 == 5 { 0.009 } else { 0.0 });
    assert!((0.05..0.07).contains(&by.application), "{by:?}");
}

/// Beside the server, whose SYN-ACK was lost behind the tap and sent again by its timer: the answer to that alone tells how far the client is,
/// which sends a window of eight segments in each round trip.
#[test]
fn the_answer_to_a_repeated_syn_ack_tells_how_far_the_sender_is() {
    const TRIP: f64 = 0.020;
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(0));
    c.syn(0.0001, S, 900, 101, Some(0));
    c.syn(1.0101, S, 900, 101, Some(0));
    c.packet(1.0101 + TRIP, C, "A", 101, 901, 0);
    let (mut seq, mut at) = (101, 1.0101 + TRIP);
    for _ in 0..50 {
        for n in 0..8 {
            at += 0.00012;
            c.packet(at, C, if n == 7 { "AP" } else { "A" }, seq, 901, MSS);
            seq += MSS;
            if n % 2 == 1 {
                c.packet(at + 0.00003, S, "A", 901, seq, 0).window = (8 * MSS) as u16;
            }
        }
        at += TRIP - 8.0 * 0.00012;
    }
    c.packet(at, S, "AP", 901, seq, 100);
    let a = analyze(&c.packets);
    let limits = only(&a).client_to_server.as_ref().unwrap().limit_seconds.unwrap();
    assert!(limits.receiver_window > 0.9 * 50.0 * TRIP, "{limits:?}");
}

/// A download beside its client, in segments of which none has PSH, and the client acknowledges each second one: flights of so many, each so
/// long after the one before it, s apart within.
fn without_psh(scale: Option<u8>, flights: u32, segments: u32, trip: f64, apart: f64) -> v1::LimitSeconds {
    let mut c = start(trip, scale, scale);
    c.packet(trip + 0.002, C, "AP", 101, 901, 100);
    let (mut seq, begin) = (901, 2.0 * trip + 0.002);
    for n in 0..flights * segments {
        let (flight, place) = (f64::from(n / segments), f64::from(n % segments));
        let at = begin + flight * trip.max(f64::from(segments) * apart) + place * apart;
        c.packet(at, S, "A", seq, 201, MSS);
        seq += MSS;
        if n % 2 == 1 {
            c.packet(at + 0.00003, C, "A", 201, seq, 0).window = 65_535;
        }
    }
    let a = analyze(&c.packets);
    check_sums(&a);
    only(&a).server_to_client.as_ref().unwrap().limit_seconds.unwrap()
}

/// Senders other than Linux set PSH at the end of what was written alone: no block ends within the transfer.
#[test]
fn segments_without_psh_that_stand_apart_come_from_a_slow_link() {
    // The round trips of the last two hold many ACKs.
    for (segments, trip, apart) in [(2000, 0.02, 0.0012), (5000, 0.06, 0.00024), (2000, 0.3, 0.006)] {
        let limits = without_psh(Some(8), 1, segments, trip, apart);
        let whole = f64::from(segments) * apart;
        assert!(limits.bandwidth > 0.9 * whole, "{trip}: {limits:?}");
    }
}

#[test]
fn flights_without_psh_as_long_as_the_window_are_held_by_it() {
    for apart in [0.000_012, 0.0012] {
        let limits = without_psh(None, 20, 44, 0.55, apart);
        assert!(limits.receiver_window > 0.9 * 19.0 * 0.55, "{apart}: {limits:?}");
    }
    // 30 of 44 segments: something else.
    let limits = without_psh(None, 20, 30, 0.55, 0.0012);
    assert!(
        limits.receiver_window + limits.bandwidth < 0.1 * 19.0 * 0.55,
        "{limits:?}"
    );
}
