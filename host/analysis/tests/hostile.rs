//! Any record stream: random bytes, records dropped, doubled and out of place. Never a panic, and
//! counters that agree with each other.
#![allow(clippy::unwrap_used)]

mod support;

use proptest::prelude::*;
use support::{Conversation, analyze_records, records};
use weir_analysis::{Analyzer, Config};
use weir_engine::Config as EngineConfig;
use weir_messages::v1;
use weir_record::{Record, VERSION};

/// What must hold of any answer.
fn check(a: &v1::Analysis) {
    for c in &a.connections {
        assert!(c.duration_seconds >= 0.0);
        for d in [&c.client_to_server, &c.server_to_client] {
            let d = d.as_ref().unwrap();
            let classes = d.fast_retransmissions
                + d.timeout_retransmissions
                + d.tail_loss_probes
                + d.spurious_retransmissions
                + d.unknown_retransmissions;
            assert!(classes <= d.retransmitted_packets, "{d:?}");
            assert!(d.rtt.unwrap().samples == 0 || d.rtt.unwrap().min_seconds.is_some());
            let l = d.limit_seconds.unwrap();
            for share in [l.application, l.receiver_window, l.unknown] {
                assert!(share >= 0.0 && share.is_finite(), "{l:?}");
            }
        }
    }
    for t in &a.transactions {
        assert!(t.request_seconds >= 0.0);
        for s in [t.server_seconds, t.response_seconds, t.end_seconds]
            .into_iter()
            .flatten()
        {
            assert!(s >= 0.0 && s.is_finite());
        }
        assert!(t.signature.len() < 1000);
    }
    for f in &a.findings {
        assert!((0.0..=1.0).contains(&f.confidence) && !f.evidence.is_empty(), "{f:?}");
    }
    let s = a.summary.as_ref().unwrap();
    assert_eq!(s.connections, a.connections.len() as u64);
    assert_eq!(s.transactions, a.transactions.len() as u64);
    let rate = s.retransmission_rate.unwrap();
    assert!((0.0..=1.0).contains(&rate.total), "{rate:?}");
}

/// Bytes that pass for a record: a known version and kind, few flows, the rest as it comes.
fn record() -> impl Strategy<Value = Record> {
    (
        prop::array::uniform32(any::<u8>()),
        prop::array::uniform32(any::<u8>()),
        0u8..12,
        0u64..5,
        any::<bool>(),
    )
        .prop_map(|(a, b, kind, flow, tame)| {
            let mut bytes = [0u8; 64];
            bytes[..32].copy_from_slice(&a);
            bytes[32..].copy_from_slice(&b);
            if tame {
                bytes[0] = kind;
                bytes[2] = VERSION << 4;
                bytes[8..16].copy_from_slice(&flow.to_le_bytes());
                if kind == 1 {
                    bytes[60] = 6; // OPEN of a TCP flow
                }
            } else {
                bytes[8] = 0; // keep the index small: memory follows it
                bytes[9] = 0;
                bytes[10] &= 1;
            }
            Record(bytes)
        })
}

/// A conversation with everything in it, from arbitrary choices.
fn conversation(choices: &[(u8, u16, u16)]) -> Conversation {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, true, 100, 0, Some(2));
    c.syn(0.01, false, 900, 101, Some(2));
    c.packet(0.02, true, "A", 101, 901, 0);
    let mut next = [101u32, 901];
    let mut at = 0.02;
    for (kind, a, b) in choices {
        at += f64::from(*a % 50) / 1000.0;
        let client = kind & 1 == 0;
        let s = usize::from(!client);
        let len = u32::from(*b) % 3000;
        let back = u32::from(*a) % 4000;
        let flags = ["A", "AP", "AF", "AR", "S", "SA"][usize::from(kind >> 1) % 6];
        let flags = if len % 7 == 0 { flags } else { "AP" };
        let seq = match kind >> 4 {
            0..=9 => next[s],
            10..=12 => next[s].wrapping_sub(back),
            _ => next[s].wrapping_add(back),
        };
        let ack = if kind >> 4 == 3 {
            next[1 - s].wrapping_sub(back)
        } else {
            next[1 - s]
        };
        let m = c.packet(at, client, flags, seq, ack, len);
        m.window = if b % 11 == 0 { 0 } else { *b };
        if kind >> 4 == 5 {
            m.options.sack_count = 2;
            m.options.sack[0] = (ack.wrapping_add(back), ack.wrapping_add(back + len));
            m.options.sack[1] = (ack.wrapping_add(5000), ack.wrapping_add(9000));
        }
        if seq == next[s] {
            next[s] = seq.wrapping_add(len);
        }
    }
    c
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(stream in prop::collection::vec(record(), 0..200)) {
        check(&analyze_records(&stream));
    }

    #[test]
    fn dropped_doubled_and_misplaced_records(
        choices in prop::collection::vec(any::<(u8, u16, u16)>(), 0..150),
        faults in prop::collection::vec((0usize..1000, 0u8..3, 0usize..1000), 0..20),
    ) {
        let mut stream = records(&conversation(&choices).packets, EngineConfig::file());
        check(&analyze_records(&stream));
        for (at, fault, other) in faults {
            if stream.is_empty() {
                break;
            }
            let (at, other) = (at % stream.len(), other % stream.len());
            match fault {
                0 => { stream.remove(at); }
                1 => { let r = stream[at]; stream.insert(other, r); }
                _ => stream.swap(at, other),
            }
        }
        check(&analyze_records(&stream));
    }

    #[test]
    fn the_answer_does_not_depend_on_the_batches(
        choices in prop::collection::vec(any::<(u8, u16, u16)>(), 0..80),
        batch in 1usize..20,
    ) {
        let stream = records(&conversation(&choices).packets, EngineConfig::file());
        let whole = analyze_records(&stream);
        let mut analyzer = Analyzer::new(Config::default());
        let mut parts = v1::Analysis::default();
        for batch in stream.chunks(batch) {
            analyzer.push(batch, &mut parts);
            prop_assert_eq!(analyzer.open_connections(0).count() <= 2, true);
        }
        parts.summary = Some(analyzer.finish(&mut parts));
        prop_assert_eq!(whole, parts);
    }
}

#[test]
fn missing_records_are_told() {
    let c = conversation(&[(1, 10, 100), (2, 10, 100), (1, 10, 100)]);
    let mut stream = records(&c.packets, EngineConfig::file());
    stream.drain(4..7);
    let mut analyzer = Analyzer::new(Config::default());
    let mut out = v1::Analysis::default();
    analyzer.push(&stream, &mut out);
    assert_eq!(analyzer.health().missing, 3);
    analyzer.finish(&mut out);
    let loss = out.findings.iter().find(|f| f.kind == "CAPTURE_LOSS").unwrap();
    assert!(loss.evidence[0].starts_with("3 records are missing"), "{loss:?}");
}

#[test]
fn a_flow_whose_close_was_lost_is_reported_when_its_place_is_taken() {
    let c = conversation(&[]);
    let stream = records(&c.packets, EngineConfig::file());
    let twice: Vec<_> = stream.iter().chain(&stream).copied().filter(|r| r.0[0] != 7).collect();
    let mut analyzer = Analyzer::new(Config::default());
    let mut out = v1::Analysis::default();
    analyzer.push(&twice, &mut out);
    assert_eq!(analyzer.health().replaced, 1);
    assert_eq!(analyzer.open_connections(0).count(), 1);
    analyzer.finish(&mut out);
    let kinds: Vec<_> = out.connections.iter().map(|c| c.close.clone().unwrap().kind).collect();
    assert_eq!(kinds, ["TIMEOUT", "OPEN"]);
}
