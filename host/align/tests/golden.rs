//! Published pairs of traces, rebuilt and held against what is printed about them.
#![allow(clippy::unwrap_used)]

mod support;

use support::end;
use weir_align::Alignment;
use weir_analysis::{Analyzer, Config};
use weir_engine::{Config as EngineConfig, Engine, Key, Meta, Options};
use weir_messages::v1;
use weir_record::tcp_flag;

const T0: u64 = 1_700_000_037_000_000_000;
const MSS: u32 = 1460;

/// One connection as the tap at the client and the one at the server see it.
struct TwoTaps {
    taps: [Vec<Meta>; 2],
    ids: [u16; 2],
}

impl TwoTaps {
    fn new() -> Self {
        Self {
            taps: [Vec::new(), Vec::new()],
            ids: [100, 9000],
        }
    }

    /// After a handshake at once, with so long a way (s) from tap to tap; and when the client sent its ACK.
    fn opened(way: f64) -> (Self, f64) {
        let mut c = Self::new();
        c.packet([Some(0.0), Some(way)], true, "S", 0, 0, 0);
        c.packet([Some(2.0 * way), Some(way)], false, "SA", 0, 1, 0);
        let at = 2.0 * way;
        c.packet([Some(at), Some(at + way)], true, "A", 1, 1, 0);
        (c, at)
    }

    /// A packet at the times (s) at which the two taps saw it; relative sequence numbers, flags in letters (SAP).
    fn packet(&mut self, at: [Option<f64>; 2], client: bool, flags: &str, seq: u32, ack: u32, len: u32) {
        let ends = [end([172, 28, 18, 214], 49_713), end([172, 28, 18, 74], 80)];
        let (key, from_low) = Key::new(ends[usize::from(!client)], ends[usize::from(client)], 6);
        let bits = flags.chars().fold(0, |bits, letter| {
            bits | match letter {
                'S' => tcp_flag::SYN,
                'A' => tcp_flag::ACK,
                'P' => tcp_flag::PSH,
                other => panic!("no flag {other}"),
            }
        });
        let id = &mut self.ids[usize::from(!client)];
        *id += 1;
        let is_syn = bits & tcp_flag::SYN != 0;
        let meta = Meta {
            key,
            from_low,
            wire: 54 + len,
            payload: len,
            seq,
            ack,
            flags: bits,
            window: if is_syn { 64_240 } else { 1026 },
            ip_id: *id,
            ttl: 128,
            options: Options {
                mss: if is_syn { 1460 } else { 0 },
                scale: if is_syn { 8 } else { 255 },
                sack_permitted: is_syn,
                ..Options::default()
            },
            ..Meta::default()
        };
        for (tap, at) in self.taps.iter_mut().zip(at) {
            tap.extend(at.map(|at| Meta {
                time: T0 + (at * 1e6).round() as u64 * 1000,
                ..meta
            }));
        }
    }

    /// What a receiver that has `ack` says of the bytes up to `right` behind a hole of one segment.
    fn sack(&mut self, at: [Option<f64>; 2], client: bool, seq: u32, ack: u32, right: u32) {
        self.packet(at, client, "A", seq, ack, 0);
        for (tap, at) in self.taps.iter_mut().zip(at) {
            if let (Some(_), Some(meta)) = (at, tap.last_mut()) {
                meta.options.sack_count = 1;
                meta.options.sack[0] = (ack + MSS, right);
            }
        }
    }

    fn in_order(&self) -> [Vec<Meta>; 2] {
        let mut taps = self.taps.clone();
        for tap in &mut taps {
            tap.sort_by_key(|meta| meta.time);
        }
        taps
    }

    fn align(&self) -> Alignment {
        support::align(&self.in_order().map(|tap| support::records_of(&tap))).unwrap()
    }

    /// The analysis of one tap alone.
    fn analyze(&self, tap: usize) -> v1::Analysis {
        let (mut engine, mut records) = (Engine::new(EngineConfig::file()), Vec::new());
        for meta in &self.in_order()[tap] {
            engine.packet(meta, meta.wire, &mut records);
        }
        engine.finish(&mut records);
        let (mut analyzer, mut out) = (Analyzer::new(Config::default()), v1::Analysis::default());
        analyzer.push(&records, &mut out);
        out.summary = Some(analyzer.finish(&mut out));
        out
    }
}

fn finding<'a>(analysis: &'a v1::Analysis, kind: &str) -> Option<&'a v1::Finding> {
    analysis.findings.iter().find(|finding| finding.kind == kind)
}

fn value(finding: &v1::Finding, key: &str) -> f64 {
    match finding.values[key].value {
        Some(v1::finding_value::Value::Number(number)) => number,
        ref other => panic!("{key}: {other:?}"),
    }
}

fn pie<'a>(answer: &'a Alignment, method: &str) -> &'a v1::Pie {
    answer.pies.iter().find(|pie| pie.method == method).unwrap()
}

/// Shares of client, network and server in percent.
fn percent(pie: &v1::Pie) -> [f64; 3] {
    [pie.client_seconds, pie.network_seconds, pie.server_seconds].map(|s| 100.0 * s / pie.total_seconds)
}

/// "Introduction to Network Trace Analysis 3", the two-sided trace of the slow download, in s after 15:41:00. The SYN-ACK
/// of 16.157994 and the segment at 30661 are in the trace of the server and not in that of the client.
fn slow_download() -> TwoTaps {
    let mut c = TwoTaps::new();
    let both = |at: f64, way: f64| [Some(at), Some(at + way)];
    // The traces print the same times for both sides: the way is some 40 us.
    let (up, down) = (0.000_040, -0.000_040);
    c.packet(both(16.157_828, up), true, "S", 0, 0, 0);
    c.packet([None, Some(16.157_994)], false, "SA", 0, 1, 0);
    c.packet(both(17.164_414, down), false, "SA", 0, 1, 0);
    c.packet(both(17.165_840, up), true, "A", 1, 1, 0);
    c.packet(both(17.165_900, up), true, "AP", 1, 1, 167);
    let data = |c: &mut TwoTaps, left: f64, first: u32, count: u32| {
        for seq in (0..count).map(|i| first + MSS * i) {
            let lost = seq == 30_661 && left < 17.168_7;
            c.packet([(!lost).then_some(left - down), Some(left)], false, "A", seq, 168, MSS);
        }
    };
    data(&mut c, 17.166_200, 1, 10);
    c.packet(both(17.166_500, up), true, "A", 168, 14_601, 0);
    data(&mut c, 17.166_700, 14_601, 11);
    data(&mut c, 17.168_116, 30_661, 7); // frames 33 to 39
    c.packet(both(17.168_312, up), true, "A", 168, 20_441, 0);
    data(&mut c, 17.168_364, 40_881, 4); // 41 to 44
    for ack in [23_361, 26_281, 29_201] {
        c.packet(both(17.168_492, up), true, "A", 168, ack, 0); // 45 to 47
    }
    data(&mut c, 17.168_547, 46_721, 12); // 48 to 59
    for right in [33_581, 35_041, 36_501] {
        c.sack(both(17.168_682, up), true, 168, 30_661, right); // 60 to 62
    }
    data(&mut c, 17.168_742, 64_241, 1); // 63
    data(&mut c, 17.168_747, 65_701, 1); // 64
    c.sack(both(17.168_713, up), true, 168, 30_661, 37_961); // 65
    data(&mut c, 17.168_757, 30_661, 1); // 66: the fast retransmission
    c.packet(both(17.168_990, up), true, "A", 168, 67_161, 0);
    c
}

/// "The TCP SYN ACK really was dropped somewhere along the way": between the two taps, as was the segment that was "already
/// sent". Nothing else is lost, and nothing is a capture's fault.
#[test]
fn the_slow_download_loses_a_syn_ack_and_a_segment_between_server_and_client() {
    let answer = slow_download().align();
    let [leg] = answer.legs.as_slice() else {
        panic!("{:?}", answer.legs)
    };
    assert_eq!((leg.lost_forward, leg.lost_backward), (0, 2), "{leg:?}");
    assert_eq!((leg.only_from, leg.only_to, leg.undecided, leg.outside), (0, 2, 0, 0));
    assert_eq!(answer.taps.iter().map(|tap| tap.missed_by_capture).sum::<u64>(), 0);
    // The setup's second is the network's: the server answered in 166 us, and its timer ran.
    let measured = pie(&answer, "MEASURED");
    assert!(measured.network_seconds > 1.0, "{measured:?}");
    assert!(measured.server_seconds < 0.003, "{measured:?}");
}

/// A SYN that is lost between the taps comes again after a second or more: the far tap sees the connection begin with that. It is no other
/// time that the captures have, and its leg tells what it lost.
#[test]
fn a_lost_syn_is_the_network_s_time() {
    for (lost, pause) in [(1, 1.0), (2, 3.0)] {
        let way = 0.030;
        let mut c = TwoTaps::new();
        for at in [0.0, 1.0, 3.0].into_iter().take(lost) {
            c.packet([Some(at), None], true, "S", 0, 0, 0);
        }
        let mut at = pause;
        c.packet([Some(at), Some(at + way)], true, "S", 0, 0, 0);
        c.packet([Some(at + 2.0 * way), Some(at + way)], false, "SA", 0, 1, 0);
        at += 2.0 * way;
        c.packet([Some(at), Some(at + way)], true, "A", 1, 1, 0);
        for i in 0..20 {
            let (to, from) = (1 + 100 * i, 1 + 200 * i);
            at += 0.020;
            c.packet([Some(at), Some(at + way)], true, "AP", to, from, 100);
            at += 2.0 * way + 0.010;
            c.packet([Some(at), Some(at - way)], false, "AP", from, to + 100, 200);
        }
        let answer = c.align();
        let leg = &answer.legs[0];
        assert_eq!((leg.lost_forward, leg.lost_backward), (lost as u64, 0), "{leg:?}");
        let told = leg.lost_setups.iter().map(|lost| (lost.syns, lost.syn_acks));
        assert!(told.eq([(lost as u32, 0)]), "{leg:?}");
        let measured = pie(&answer, "MEASURED");
        assert!(measured.uncertainty_seconds.unwrap() < 1e-3, "{measured:?}");
        let wanted = [0.4, pause + 21.0 * 2.0 * way, 0.2];
        let parts = [
            measured.client_seconds,
            measured.network_seconds,
            measured.server_seconds,
        ];
        for (part, wanted) in parts.into_iter().zip(wanted) {
            assert!((part - wanted).abs() < 1e-3, "{measured:?}");
        }
    }
}

/// Each side on its own: what it can know and what it cannot.
#[test]
fn the_slow_download_from_each_side_alone() {
    let (client, server) = (slow_download().analyze(0), slow_download().analyze(1));
    let setup = |a: &v1::Analysis| a.connections[0].setup.clone().unwrap();
    // "We only see one TCP SYN ACK": from there it is a slow answer, and no loss that the client's trace could show.
    assert_eq!(
        (setup(&client).outcome.as_str(), setup(&client).syn_ack_count),
        ("OK", 1)
    );
    assert!((setup(&client).response_seconds.unwrap() - 1.006_586).abs() < 1e-9);
    // "Didn't get a response for a little over a second so it retransmitted": the SYN-ACK, or the ACK of it.
    let told = setup(&server);
    assert_eq!((told.outcome.as_str(), told.syn_ack_count), ("RETRANSMITTED", 2));
    assert!((told.response_seconds.unwrap() - 0.000_126).abs() < 1e-9);
    assert!((told.end_seconds.unwrap() - 1.008_012).abs() < 1e-9);
    // "But that packet was already sent!": lost behind the server's tap, in front of the client's.
    let data = |a: &v1::Analysis| a.connections[0].server_to_client.unwrap();
    let counts = |d: &v1::Direction| (d.fast_retransmissions, d.lost_upstream, d.lost_downstream);
    assert_eq!(counts(&data(&server)), (1, 0, 1));
    assert_eq!(counts(&data(&client)).1, 1, "a gap, filled later by bytes never seen");
    assert_eq!(data(&client).lost_downstream, 0);
}

/// "Tasting Client/Network/Server Pie": a file of 10 MB goes to the server block by block, each answered before the next. `block`
/// bytes; s of the client before each, of the server after each, of a segment on the link.
fn copy(block: u32, client: f64, server: f64, segment: f64) -> TwoTaps {
    let way = 0.126;
    let (mut c, mut at) = TwoTaps::opened(way);
    let (mut sent, mut answered) = (0, 0);
    while sent < 10_000_000 {
        at += client;
        let end = sent + block;
        let mut arrives = at + way;
        while sent < end {
            let len = MSS.min(end - sent);
            arrives += segment;
            let flags = if sent + len == end { "AP" } else { "A" };
            // A window of a block lets it leave at once.
            c.packet([Some(at), Some(arrives)], true, flags, 1 + sent, 1 + answered, len);
            sent += len;
            if (end - sent) / MSS % 2 == 1 {
                c.packet(
                    [Some(arrives + way), Some(arrives)],
                    false,
                    "A",
                    1 + answered,
                    1 + sent,
                    0,
                );
            }
        }
        let response = arrives + server;
        c.packet(
            [Some(response + way), Some(response)],
            false,
            "AP",
            1 + answered,
            1 + sent,
            51,
        );
        answered += 51;
        at = response + way;
    }
    c
}

/// SMBv1: blocks of 61 K over 250 ms. Of 63.5 s in about 10,776 frames, client 2.8 s, server 5.7 s, network 55 s: 4, 9 and 87 %.
#[test]
fn the_copy_in_blocks_of_61_k() {
    let smb1 = copy(61_000, 0.017, 0.0345, 0.001_93);
    let answer = smb1.align();
    let frames = answer.taps[0].packets;
    assert!((10_200..11_000).contains(&frames), "{frames}");
    for method in ["MEASURED", "ARTICLE"] {
        let pie = pie(&answer, method);
        assert!((pie.total_seconds - 63.5).abs() < 1.0, "{pie:?}");
        assert!((pie.client_seconds - 2.8).abs() < 0.1, "{pie:?}");
        assert!((pie.server_seconds - 5.7).abs() < 0.1, "{pie:?}");
        let shares = percent(pie);
        for (share, printed) in shares.into_iter().zip([4.0, 87.0, 9.0]) {
            assert!((share - printed).abs() < 1.0, "{method} {shares:?}");
        }
    }
    // The pie points at the network, and "no amount of fatter pipe will improve performance": one block a round trip.
    let analysis = smb1.analyze(0);
    let latency = finding(&analysis, "LATENCY_BOUND").unwrap();
    assert!(
        (value(latency, "bytesPerTurn") / 61_051.0 - 1.0).abs() < 0.01,
        "{latency:?}"
    );
    let ceiling = 61_051.0 * 8.0 / value(latency, "rttSeconds");
    assert!(
        (value(latency, "ceilingBitsPerSecond") / ceiling - 1.0).abs() < 0.01,
        "{latency:?}"
    );
    assert!((value(latency, "rttSeconds") - 0.252).abs() < 0.003, "{latency:?}");
    // 164 blocks of a round trip each.
    assert!(
        (value(latency, "costSeconds") - 164.0 * 0.252).abs() < 1.0,
        "{latency:?}"
    );
}

/// SMBv2 over the same path: larger blocks, from 64 to 14 s ("a factor of ~5"), and no turns to blame.
#[test]
fn the_copy_in_large_blocks_is_not_bound_by_latency() {
    let smb2 = copy(1_250_000, 0.017, 0.0345, 0.001_93 / 1.45);
    let measured = pie(&smb2.align(), "MEASURED").clone();
    assert!((measured.total_seconds - 14.0).abs() < 3.0, "{measured:?}");
    assert!(finding(&smb2.analyze(0), "LATENCY_BOUND").is_none());
}

/// "Inefficient App": one byte at a time, opened and closed around each. The server has 60 to 70 %, and the application is named.
#[test]
fn one_byte_at_a_time() {
    let way = 0.000_050;
    let (mut c, mut at) = TwoTaps::opened(way);
    for i in 0..1024 {
        at += 0.000_230;
        c.packet([Some(at), Some(at + way)], true, "AP", 1 + i, 1 + i, 1);
        let answer = at + way + 0.000_620;
        c.packet([Some(answer + way), Some(answer)], false, "AP", 1 + i, 2 + i, 1);
        at = answer + way;
    }
    let [client, network, server] = percent(pie(&c.align(), "MEASURED"));
    assert!((60.0..70.0).contains(&server), "{client} {network} {server}");
    assert!(
        (server - 65.3).abs() < 0.5 && (client - 24.2).abs() < 0.5,
        "{client} {network}"
    );
    let analysis = c.analyze(0);
    let named = finding(&analysis, "ONE_BYTE_APPLICATION").unwrap();
    assert!((value(named, "turns") - 1024.0).abs() < 1e-9, "{named:?}");
}
