//! What is known of connections while they are open.
#![allow(clippy::unwrap_used)]

mod support;

use support::{C, Conversation, S, T0, ns, records};
use weir_analysis::{Analyzer, Config};
use weir_engine::Config as EngineConfig;
use weir_messages::v1;
use weir_record::{FlowId, Kind};

/// Requests that wait when these packets have passed.
fn waiting(c: &Conversation) -> Vec<(FlowId, u64)> {
    let mut records = records(&c.packets, EngineConfig::file());
    records.retain(|record| record.kind() != Some(Kind::Close));
    let mut analyzer = Analyzer::new(Config::default());
    analyzer.push(&records, &mut v1::Analysis::default());
    let open: Vec<FlowId> = analyzer.open_connections(0).collect();
    assert_eq!(open.len(), 1);
    assert_eq!(analyzer.open_connection(open[0]).unwrap().id, open[0].0);
    assert_eq!(analyzer.open_connections(open[0].index() + 1).count(), 0);
    analyzer.waiting().collect()
}

#[test]
fn a_request_waits_until_its_response_begins() {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, None);
    c.syn(0.010, S, 900, 101, None);
    c.packet(0.040, C, "A", 101, 901, 0);
    assert_eq!(waiting(&c), []);
    let (mut asked, mut answered) = (101, 901);
    for at in [1.0, 2.0] {
        c.packet(at, C, "A", asked, answered, 100);
        c.packet(at + 0.3, C, "AP", asked + 100, answered, 50);
        asked += 150;
        let since = waiting(&c).iter().map(|(_, since)| *since).collect::<Vec<_>>();
        assert_eq!(since, [T0 + ns(at)]);
        c.packet(at + 0.5, S, "AP", answered, asked, 10);
        answered += 10;
        assert_eq!(waiting(&c), []);
    }
    // A notice before the end, as TLS has it: the server may answer until it has ended, too.
    c.packet(3.0, C, "AP", asked, answered, 31);
    c.packet(3.0, C, "AF", asked + 31, answered, 0);
    assert_eq!(waiting(&c).len(), 1);
    c.packet(3.1, S, "AF", answered, asked + 32, 0);
    assert_eq!(waiting(&c), []);
}

/// A connection that is answered each second, from `at` on, `work` s behind the request; the last request has other bytes and no answer.
fn asks(port: u16, answers: u32, work: f64, last: u32) -> Conversation {
    let mut c = Conversation::new(port);
    c.syn(0.0, C, 100, 0, None);
    c.syn(0.010, S, 900, 101, None);
    c.packet(0.020, C, "A", 101, 901, 0);
    let (mut at, mut asked, mut answered) = (1.0, 101, 901);
    for _ in 0..answers {
        c.packet(at, C, "AP", asked, answered, 200);
        asked += 200;
        c.packet(at + work, S, "AP", answered, asked, 300);
        answered += 300;
        c.packet(at + work + 0.010, C, "A", asked, answered, 0);
        at += work + 1.0;
    }
    c.packet(at, C, "AP", asked, answered, last);
    c.packet(at + 0.010, S, "A", answered, asked + last, 0);
    c
}

/// The findings about requests that wait, in a stream without end, so long after the last of all packets.
fn overdue(conversations: &[Conversation], after: f64) -> Vec<v1::Finding> {
    let mut packets: Vec<_> = conversations.iter().flat_map(|c| c.packets.clone()).collect();
    packets.sort_by_key(|packet| packet.time);
    let mut records = records(&packets, EngineConfig::file());
    records.retain(|record| record.kind() != Some(Kind::Close));
    let mut analyzer = Analyzer::new(Config {
        window: Some(ns(600.0)),
        ..Config::default()
    });
    let mut analysis = v1::Analysis::default();
    analyzer.push(&records, &mut analysis);
    analyzer.set_now(packets.last().unwrap().time + ns(after));
    analyzer.interim(&mut analysis);
    analysis.findings.retain(|f| f.kind == "UNANSWERED_REQUESTS");
    analysis.findings
}

fn waits(conversations: &[Conversation], after: f64) -> usize {
    overdue(conversations, after)
        .iter()
        .map(|f| f.connection_ids.len())
        .sum()
}

/// Connections of one service from three clients' ports.
fn three(of: impl Fn(u16) -> Conversation) -> [Conversation; 3] {
    [40_000, 40_001, 40_002].map(of)
}

#[test]
fn a_server_that_hangs_is_told_while_it_hangs() {
    let hangs = three(|port| asks(port, 30, 0.1, 200));
    assert_eq!(waits(&hangs, 9.0), 0);
    let [told] = &overdue(&hangs, 12.0)[..] else { panic!() };
    assert_eq!(told.connection_ids.len(), 3);
    let value = |name: &str| match told.values[name].value {
        Some(v1::finding_value::Value::Number(number)) => number,
        _ => panic!("{name}"),
    };
    assert_eq!((value("requests"), value("waiting")), (3.0, 3.0));
    assert!((value("longestSeconds") - 12.0).abs() < 0.1 && (value("costSeconds") - 36.0).abs() < 0.1);
    let evidence = told.evidence.join("\n");
    assert!(
        evidence.contains("it answers nobody any more: 13.0 s since it did"),
        "{evidence}"
    );
    assert!(
        told.title.starts_with(&told.who) && told.who.ends_with(":5433"),
        "{}",
        told.title
    );

    // One alone may wait for something to happen.
    let alone = &hangs[..1];
    assert_eq!((waits(alone, 29.0), waits(alone, 31.0)), (0, 1));
    // Where answers take long, so does a wait that is unusual.
    let slow = [asks(40_000, 30, 11.0, 200)];
    assert_eq!((waits(&slow, 32.0), waits(&slow, 34.0)), (0, 1));
    // Nothing is known of a service that never answered.
    assert_eq!(waits(&three(|port| asks(port, 0, 0.1, 200)), 60.0), 0);
}

#[test]
fn a_request_of_another_length_is_overdue_where_nobody_is_answered() {
    let [longer, shorter] = [240, 31].map(|bytes| three(|port| asks(port, 30, 0.1, bytes)));
    assert_eq!(
        (waits(&longer, 9.0), waits(&longer, 12.0), waits(&shorter, 600.0)),
        (0, 3, 0)
    );
    // Nobody else asks.
    assert_eq!(waits(&longer[..2], 600.0), 0);
    // Answers of which too few are known: of the service, or on the connection, which tells behind its handshake.
    assert_eq!(waits(&three(|port| asks(port, 6, 0.1, 240)), 12.0), 0);
    let publishers: Vec<_> = (0..30).map(|n| asks(40_000 + n, 2, 0.1, 240)).collect();
    assert_eq!(waits(&publishers, 600.0), 0);
    // The same service goes on to answer another connection, or has just begun to.
    let mut other = asks(40_003, 60, 0.1, 200);
    let asked = 1.0 + 60.0 * 1.1;
    let and = |other: &Conversation| [&longer[..], std::slice::from_ref(other)].concat();
    assert_eq!(waits(&and(&other), 1.0), 0);
    other.packet(asked + 20.0, S, "AP", 901 + 60 * 300, 101 + 61 * 200, 300);
    assert_eq!(waits(&and(&other), 1.0), 0);
}

#[test]
fn who_goes_on_sending_asks_for_nothing() {
    let mut sends = three(|port| asks(port, 30, 0.1, 200));
    let at = 1.0 + 30.0 * 1.1;
    for c in &mut sends {
        for n in 1..4 {
            c.packet(
                at + 4.0 * f64::from(n),
                C,
                "AP",
                101 + 30 * 200 + 200 * n,
                901 + 30 * 300,
                200,
            );
        }
    }
    assert_eq!(waits(&sends, 60.0), 0);
}

#[test]
fn a_request_that_came_again_may_not_have_arrived() {
    let lost = three(|port| {
        let mut lost = asks(port, 30, 0.1, 200);
        let at = 1.0 + 30.0 * 1.1;
        lost.packets.truncate(lost.packets.len() - 1);
        for again in [0.3, 0.9, 2.1] {
            lost.packet(at + again, C, "AP", 101 + 30 * 200, 901 + 30 * 300, 200);
        }
        lost
    });
    assert_eq!(waits(&lost, 60.0), 0);
}
