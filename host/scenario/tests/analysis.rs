//! The analysis of a small megalodon against its truth: every connection, how it was set up, every transaction.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::collections::HashMap;
use support::{analyze, by_client, lines, make, number};
use tempfile::tempdir;

/// How the setup must look at a tap that saw this much of it.
fn expected_outcome(line: &Value, seen: &Value) -> &'static str {
    match line["connect_end_ns"].is_null() {
        true if line["outcome"] == "refused" => "REFUSED",
        true if number(seen, "resets_s2c") > 0 => "RESET_LATE",
        true => "IGNORED",
        false if number(seen, "syns") <= 1 && number(seen, "syn_acks") <= 1 => "OK",
        false => "RETRANSMITTED",
    }
}

/// Seeds kept aside.
#[test]
fn a_small_megalodon_is_answered_as_its_truth_says() {
    for seed in [2015, 7001, 7002, 7003] {
        for tap in ["web", "content"] {
            check_megalodon(0.05, seed, tap);
        }
    }
}

fn check_megalodon(scale: f64, seed: u64, tap: &str) {
    let folder = tempdir().unwrap();
    make("megalodon", scale, seed, folder.path());
    let app = lines(folder.path(), "megalodon-app.jsonl");
    let wire = lines(folder.path(), "megalodon-wire.jsonl");
    let answer = analyze(&folder.path().join(format!("megalodon-{tap}.pcap")));

    let mut transactions: HashMap<u64, Vec<&Value>> = HashMap::new();
    for line in app.iter().filter(|line| line["type"] == "transaction") {
        transactions.entry(number(line, "connection")).or_default().push(line);
    }
    let mut told: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    for transaction in answer.transactions.iter().filter(|t| t.kind != "SETUP") {
        let sizes = (transaction.request_bytes, transaction.response_bytes);
        told.entry(transaction.connection_id).or_default().push(sizes);
    }

    let mut by_port = by_client(&answer.connections);
    let mut attempts: Vec<&Value> = app.iter().filter(|line| line["type"] == "connection").collect();
    attempts.sort_by_key(|line| number(line, "connection"));
    assert!(attempts.len() > 1500);
    assert_eq!(answer.connections.len(), attempts.len());

    let mut outcomes: HashMap<&str, u32> = HashMap::new();
    for line in attempts {
        let key = (line["client"].as_str().unwrap().to_owned(), number(line, "client_port"));
        let connection = by_port.get_mut(&key).unwrap().remove(0);
        let seen = &line["taps"][tap];
        let missed = number(seen, "missed") > 0;
        let (c2s, s2c) = (
            connection.client_to_server.as_ref().unwrap(),
            connection.server_to_client.as_ref().unwrap(),
        );
        assert_eq!(
            [c2s.packets, c2s.payload_bytes, s2c.packets, s2c.payload_bytes],
            ["packets_c2s", "payload_c2s", "packets_s2c", "payload_s2c"].map(|key| number(seen, key)),
            "{line}"
        );
        let setup = connection.setup.as_ref().unwrap();
        let syns = (u64::from(setup.syn_count), u64::from(setup.syn_ack_count));
        assert_eq!(syns, (number(seen, "syns"), number(seen, "syn_acks")), "{line}");
        let outcome = setup.outcome.as_str();
        assert_eq!(outcome, expected_outcome(line, seen), "{line}");
        *outcomes.entry(outcome).or_default() += 1;

        let done = transactions.remove(&number(line, "connection")).unwrap_or_default();
        let told = told.remove(&connection.id).unwrap_or_default();
        assert_eq!(told.len(), done.len(), "transactions of {line}");
        for (&(request, response), done) in told.iter().zip(done) {
            assert_eq!(request, number(done, "request_bytes"), "{done}");
            // A response that the client did not wait for is cut somewhere.
            if done["complete"] == true && !missed {
                assert_eq!(response, number(done, "response_bytes"), "{done}");
            }
        }
    }
    println!("setups: {outcomes:?}");
    for outcome in ["IGNORED", "RESET_LATE", "RETRANSMITTED"] {
        assert!(outcomes.contains_key(outcome), "none is {outcome:?}");
    }

    // Data lost on its way to the content server passed the tap, and came again.
    let lost = |line: &&Value| line["direction"] == "c2s" && number(line, "len") > 0;
    let lost = wire
        .iter()
        .filter(lost)
        .filter(|line| line["taps"][tap].is_u64())
        .count() as f64;
    let directions = answer
        .connections
        .iter()
        .filter_map(|connection| connection.client_to_server.as_ref());
    let found = directions.map(|direction| direction.lost_downstream).sum::<u64>() as f64;
    println!("data segments of clients lost behind the tap: {lost}, found {found}");
    assert!(lost > 20.0 && (found - lost).abs() <= (0.05 * lost).max(1.0));
}

/// Seeds kept aside.
#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    for seed in 6001..=6020 {
        let folder = tempdir().unwrap();
        make("healthy", 0.2, seed, folder.path());
        let answer = analyze(&folder.path().join("healthy-web.pcap"));
        assert!(answer.transactions.len() > 300, "seed {seed}");
        let claims = |finding: &&weir_messages::v1::Finding| finding.severity != "INFO" || finding.confidence >= 0.5;
        let claimed: Vec<_> = answer.findings.iter().filter(claims).collect();
        assert!(claimed.is_empty(), "seed {seed}: {claimed:?}");
        for direction in answer
            .connections
            .iter()
            .flat_map(|c| [&c.client_to_server, &c.server_to_client])
        {
            let d = direction.as_ref().unwrap();
            let trouble =
                d.retransmitted_packets + d.out_of_order + d.lost_upstream + d.lost_downstream + d.lost_unknown;
            assert_eq!(trouble + d.missed_by_capture, 0, "seed {seed}");
        }
    }
}

/// The buffer of the server is full: its tap is behind 20 ms, and 1 ms from it.
#[test]
fn a_full_send_buffer_is_told() {
    let folder = tempdir().unwrap();
    make("sender-limited", 1.0, 3, folder.path());
    let answer = analyze(&folder.path().join("sender-limited-tap.pcap"));
    let limits = |c: &weir_messages::v1::Connection| c.server_to_client.as_ref()?.limit_seconds;
    let limits: Vec<_> = answer.connections.iter().filter_map(limits).collect();
    let sender: f64 = limits.iter().map(|l| l.sender).sum();
    let others: f64 = limits
        .iter()
        .map(|l| l.receiver_window + l.congestion + l.bandwidth + l.unknown)
        .sum();
    assert!(
        limits.len() > 40 && sender > 8.0 * others,
        "{sender} s of {} s",
        sender + others
    );
}
