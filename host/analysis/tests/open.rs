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
