//! What a run writes must be what it did: captures against truth files, and a seed against itself.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use support::{lines, make};
use tempfile::{TempDir, tempdir};
use weir_lab::frame::TcpSummary;
use weir_lab::pcap;
use weir_scenario::Scenario;

fn files(folder: &Path) -> HashMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn a_seed_means_the_same_files_and_another_means_others() {
    let folders: Vec<TempDir> = ["a", "b", "c"].map(|_| tempdir().unwrap()).into();
    for (folder, seed) in folders.iter().zip([3, 3, 4]) {
        make("megalodon", 0.01, seed, folder.path());
    }
    let [a, b, c] = [0, 1, 2].map(|place| files(folders[place].path()));
    assert_eq!(a.len(), 7);
    for (name, bytes) in &a {
        assert!(bytes == &b[name], "{name} differs between two runs of one seed");
    }
    for name in [
        "megalodon-web.pcap",
        "megalodon-app.jsonl",
        "megalodon-wire.jsonl",
        "megalodon-again.jsonl",
    ] {
        assert!(a[name] != c[name], "{name} is the same for another seed");
    }
}

/// Frames of one connection at one tap, counted from the file.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    packets: [u64; 2],
    payload: [u64; 2],
    syns: [u64; 2],
}

#[test]
fn captures_hold_what_the_truth_says() {
    let folder = tempdir().unwrap();
    let report = make("megalodon", 0.02, 5, folder.path());
    let app = lines(folder.path(), "megalodon-app.jsonl");
    let wire = lines(folder.path(), "megalodon-wire.jsonl");
    assert!(wire.len() > 100, "{} losses", wire.len());
    for tap in ["web", "content"] {
        let file = std::fs::read(folder.path().join(format!("megalodon-{tap}.pcap"))).unwrap();
        let frames = pcap::read(&file).unwrap();
        assert_eq!(frames.len() as u64, report.totals.taps[tap].packets);
        assert!(
            frames.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns),
            "in the order of time"
        );
        let parsed: Vec<TcpSummary> = frames
            .iter()
            .map(|frame| TcpSummary::parse(&frame.bytes).unwrap())
            .collect();

        // Ports come again only after their connection is over: count by the connection that last sent a first SYN.
        let mut counted: HashMap<u64, Counted> = HashMap::new();
        let mut current: HashMap<(String, u64), u64> = HashMap::new();
        let mut attempts: HashMap<(String, u64), Vec<u64>> = HashMap::new();
        let connections: Vec<&Value> = app.iter().filter(|line| line["type"] == "connection").collect();
        let mut by_number = connections.clone();
        by_number.sort_by_key(|line| line["connection"].as_u64());
        for line in by_number {
            let key = (
                line["client"].as_str().unwrap().to_owned(),
                line["client_port"].as_u64().unwrap(),
            );
            attempts
                .entry(key)
                .or_default()
                .push(line["connection"].as_u64().unwrap());
        }
        let mut isns: HashMap<(String, u64), u32> = HashMap::new();
        for frame in &parsed {
            let to_server = frame.dst_port == 443 || frame.dst_port == 5433;
            let (client, port) = if to_server {
                (frame.src, frame.src_port)
            } else {
                (frame.dst, frame.dst_port)
            };
            let key = (client.to_string(), u64::from(port));
            if to_server && frame.is_syn() && isns.insert(key.clone(), frame.seq) != Some(frame.seq) {
                current.insert(key.clone(), attempts.get_mut(&key).unwrap().remove(0));
            }
            let entry = counted.entry(current[&key]).or_default();
            let side = usize::from(!to_server);
            entry.packets[side] += 1;
            entry.payload[side] += u64::from(frame.len);
            entry.syns[side] += u64::from(frame.is_syn());
        }
        for line in connections {
            let number = line["connection"].as_u64().unwrap();
            let told = &line["taps"][tap];
            let pair = |a: &str, b: &str| [a, b].map(|key| told[key].as_u64().unwrap());
            let told = Counted {
                packets: pair("packets_c2s", "packets_s2c"),
                payload: pair("payload_c2s", "payload_s2c"),
                syns: pair("syns", "syn_acks"),
            };
            assert_eq!(
                counted.remove(&number).unwrap_or_default(),
                told,
                "connection {number} at {tap}"
            );
        }
        assert!(counted.is_empty());

        for loss in &wire {
            if let Some(number) = loss["taps"][tap].as_u64() {
                let frame = &parsed[number as usize - 1];
                assert_eq!(loss["seq"], frame.seq);
                assert_eq!(loss["ip_id"], frame.ip_id);
                assert_eq!(loss["src_port"], frame.src_port);
                assert_eq!(loss["flags"], frame.flags);
            }
        }
    }
}

#[test]
fn transactions_are_whole_and_in_order() {
    let folder = tempdir().unwrap();
    make("healthy", 0.2, 1, folder.path());
    let app = lines(folder.path(), "healthy-app.jsonl");
    let transactions: Vec<&Value> = app.iter().filter(|line| line["type"] == "transaction").collect();
    assert!(transactions.len() > 300);
    assert!(lines(folder.path(), "healthy-wire.jsonl").is_empty());
    let mut pages = HashMap::new();
    for line in &transactions {
        let order = [
            "request_write_start_ns",
            "request_write_end_ns",
            "server_request_first_ns",
            "server_request_last_ns",
            "server_work_start_ns",
            "server_response_start_ns",
            "server_response_end_ns",
            "response_last_ns",
        ];
        if line["complete"] == true {
            let times = order.map(|key| line[key].as_u64().unwrap());
            assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "{line}");
        }
        if line["exchange"] == "query" {
            let cause = &line["caused_by"];
            let cause = (cause[0].as_u64().unwrap(), cause[1].as_u64().unwrap());
            *pages.entry(cause).or_insert(0) += 1;
        }
    }
    let complete = transactions
        .iter()
        .filter(|line| line["exchange"] == "page" && line["complete"] == true);
    for page in complete {
        let key = (page["connection"].as_u64().unwrap(), page["index"].as_u64().unwrap());
        assert_eq!(pages[&key], 2, "each page makes two queries: {page}");
    }
}

#[test]
fn built_in_scenarios_are_valid_and_survive_their_own_toml() {
    for name in Scenario::built_in_names() {
        let scenario = Scenario::load(name).unwrap();
        assert_eq!(scenario.name, name);
        assert!(!scenario.description.is_empty());
        assert_eq!(Scenario::parse(&scenario.to_toml().unwrap(), name).unwrap(), scenario);
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let healthy = Scenario::load("healthy").unwrap().to_toml().unwrap();
    for (from, to, said) in [
        ("stack = \"linux\"", "stack = \"bsd\"", "neither linux nor windows"),
        ("duration_s = 60.0", "duration_s = -1.0", "duration_s"),
        ("body = [\"page\"]", "body = [\"pages\"]", "no exchange `pages`"),
        ("writes = \"4100\"", "writes = \"41oo\"", "`41oo`"),
        ("loss = 0.0", "loss = 1.5", "probabilities"),
        ("taps = [\"web\"]", "taps = []", "one tap fewer"),
    ] {
        assert!(healthy.contains(from), "{from}");
        let error = Scenario::parse(&healthy.replacen(from, to, 1), "test")
            .unwrap_err()
            .to_string();
        assert!(error.contains(said) && error.contains("test"), "{error}");
    }
}
