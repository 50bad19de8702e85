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
use weir_scenario::config::Span;
use weir_scenario::{Scenario, run};

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

/// Each error says where and what is allowed.
#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let healthy = Scenario::load("healthy").unwrap().to_toml().unwrap();
    for (from, to, said) in [
        (
            "stack = \"linux\"",
            "stack = \"bsd\"",
            "host users: stack `bsd` is neither linux nor windows",
        ),
        ("duration_s = 60.0", "duration_s = -1.0", "duration_s is -1; it must be"),
        ("duration_s = 60.0", "duration_s = 1e300", "duration_s is 1"),
        (
            "snap_length = 96",
            "snap_length = 10",
            "snap_length is 10; it must be 54 to 65535",
        ),
        (
            "body = [\"page\"]",
            "body = [\"pages\"]",
            "dialogue browse: there is no exchange `pages`",
        ),
        ("writes = \"4100\"", "writes = \"41oo\"", "exchange hello: `41oo`"),
        (
            "writes = \"4100\"",
            "writes = \"41 ~ ~ 9\"",
            "exchange hello: `41 ~ ~ 9` has a pause right behind another",
        ),
        (
            "writes = \"4100\"",
            "writes = \"1*100000 1*100000 1*100000 1*100000 1*100000 1*100000 1*100000 1*100000 1*100000 1*100000 1\"",
            "more than 1000000 writes",
        ),
        (
            "request = \"517\"",
            "request = \"~ 517\"",
            "exchange hello: request: a pause before the first write",
        ),
        (
            "cpu_ms = 1.0",
            "cpu_ms = -1",
            "exchange hello: cpu_ms is -1; it must be 0 to 86400000",
        ),
        ("cpu_ms = 1.0", "cpu_ms = nan", "exchange hello: cpu_ms is NaN"),
        ("cpu_ms = 1.0", "cpu_ms = [2, 1]", "exchange hello: cpu_ms is [2, 1]"),
        ("cpu_ms = 1.0", "cpu_ms = \"1ms\"", "line"),
        (
            "weight = 1.0",
            "weight = inf",
            "exchange hello: response: weight is inf",
        ),
        (
            "loss = 0.0",
            "loss = 1.5",
            "path users - web: leg 1: forward: loss is 1.5; it must be 0 to 1",
        ),
        ("delay_ms = 10.0", "delay_ms = 1e300", "leg 1: forward: delay_ms is 1"),
        (
            "rate_mbit = 1000.0",
            "rate_mbit = -1",
            "leg 1: forward: rate_mbit is -1",
        ),
        (
            "queue_bytes = 1048576",
            "queue_bytes = 0",
            "leg 1: forward: queue_bytes is 0; it must be 1514",
        ),
        (
            "hops = 4",
            "hops = 64",
            "64 hops are too many for the ttl of host users",
        ),
        (
            "hops = 4",
            "hops = 4\ndetour = { probability = 0.1, later_ms = -1 }",
            "detour: later_ms is -1",
        ),
        (
            "hops = 4",
            "hops = 4\nreroute = { at_s = nan, delay_ms = 1, hops = 1 }",
            "reroute: at_s is NaN",
        ),
        (
            "hops = 4",
            "hops = 4\nstall = { period_s = 3, length_s = 1, phase_s = nan }",
            "stall: phase_s is NaN",
        ),
        (
            "hops = 4",
            "hops = 4\nperiodic = { period_s = 3, lossy_s = 4, probability = 1 }",
            "periodic: lossy_s is 4; it must be 0 to 3",
        ),
        (
            "[[path.leg]]",
            "[[path.leg]]\nsyn_batches = [{ from_s = 0, to_s = 1, batches = 4000000000, connections = 1 }]",
            "leg 1: syn_batches: batches is",
        ),
        (
            "[[path.leg]]",
            "[[path.leg]]\nsyn_batches = [{ from_s = 9, to_s = 1, batches = 1, connections = 1 }]",
            "syn_batches: to_s is 1; it must be 9",
        ),
        (
            "taps = [\"web\"]",
            "taps = []",
            "path users - web: there must be one tap fewer",
        ),
        ("[[path.leg]]", "[[path.leg]]\n[[path.leg]]", "one tap fewer"),
        (
            "between = [\"web\", \"db\"]",
            "between = [\"web\", \"users\"]",
            "there are two between these hosts",
        ),
        (
            "between = [\"web\", \"db\"]",
            "between = [\"web\", \"web\"]",
            "it needs two hosts",
        ),
        (
            "name = \"web\"\naddress",
            "name = \"users\"\naddress",
            "two hosts have the name `users`",
        ),
        ("10.1.1.10", "10.1.0.10", "hosts users and web have the same address"),
        (
            "name = \"db\"\nhost = \"db\"",
            "name = \"web\"\nhost = \"db\"",
            "two services have the name `web`",
        ),
        (
            "host = \"db\"\nport = 5432",
            "host = \"web\"\nport = 443",
            "service web: service db listens on the same port",
        ),
        ("port = 443", "port = 0", "service web: port and ports are at least 1"),
        ("cpus = 4.0", "cpus = nan", "service web: cpus is NaN"),
        (
            "count = [4.0, 12.0]",
            "count = [4.0, 12.5]",
            "dialogue browse: count must be whole numbers",
        ),
        ("count = [4.0, 12.0]", "count = -4", "dialogue browse: count is -4"),
        (
            "close = \"client_fin\"\nfarewell = 0",
            "close = \"client_rst\"\nfarewell = 7",
            "dialogue browse: a farewell needs",
        ),
        (
            "close = \"client_fin\"\nfarewell = 0\nfarewell_reply = 0",
            "reader = { bytes = 0, every_ms = 0 }\nclose = \"client_fin\"",
            "dialogue browse: reader: bytes is 0",
        ),
        ("limit = 20.0", "limit = 0", "pool db: limit is 0; it must be 1"),
        (
            "grow_per_s = 0.0",
            "grow_per_s = 1.0",
            "pool db: one that grows needs a max above its limit",
        ),
        (
            "client = \"web\"\nservice = \"db\"",
            "client = \"users\"\nservice = \"web\"",
            "exchange page is served on web, and its pool db makes calls from users",
        ),
        ("per_s = 5.0", "per_s = 0.0", "load of browse: it needs users, or per_s"),
        ("per_s = 5.0", "per_s = nan", "load of browse: per_s is NaN"),
        (
            "users = 0.0",
            "users = 1e9",
            "load of browse: users is 1000000000; it must be 0 to 1000000",
        ),
        (
            "from_s = 0.0",
            "from_s = 59.0",
            "load of browse: to_s is 58; it must be 59",
        ),
        (
            "sleep = []",
            "sleep = [{ hosts = [\"web\"], every_s = nan, length_ms = 1 }]",
            "sleep: every_s is NaN",
        ),
        ("[tap]", "[tap.web]\nmiss = 2", "tap web: miss is 2; it must be 0 to 1"),
        ("[tap]", "[tap.web]\noffset_us = 3e15", "tap web: start_unix_s"),
        (
            "[host.tcp]",
            "[host.tcp]\nmss = 65535",
            "host users: tcp: mss is 65535; it must be 88 to 65495",
        ),
        (
            "[host.tcp]",
            "[host.tcp]\nsyn_timeout_s = 0",
            "host users: tcp: syn_timeout_s is 0",
        ),
        (
            "[host.tcp]",
            "[host.tcp]\ntime_wait_s = nan",
            "host users: tcp: time_wait_s is NaN",
        ),
    ] {
        assert!(healthy.contains(from), "{from}");
        let error = Scenario::parse(&healthy.replacen(from, to, 1), "test")
            .unwrap_err()
            .to_string();
        assert!(error.contains(said) && error.contains("test"), "{to}: {error}");
    }
}

/// A client that abandons closes at once: what it would write later never went.
#[test]
fn who_abandons_writes_the_whole_request_first() {
    let text = Scenario::load("healthy").unwrap().to_toml().unwrap();
    let text = text
        .replacen(
            "close = \"client_fin\"",
            "close = \"client_abandons\"\nabandons = \"hello\"",
            1,
        )
        .replacen("request = \"517\"", "request = \"17 ~ 500\"", 1);
    let error = Scenario::parse(&text, "test").unwrap_err().to_string();
    assert!(
        error.contains("dialogue browse: abandons: the request of hello has a pause"),
        "{error}"
    );
}

#[test]
fn what_calls_itself_is_refused() {
    let text = Scenario::load("healthy").unwrap().to_toml().unwrap();
    let text = text
        .replacen("request = \"80-400\"", "request = \"80-400\"\ncalls = [\"page\"]\npool = \"back\"", 1)
        .replacen("[tap]", "[dialogue.back]\nclient = \"db\"\nservice = \"web\"\nclose = \"client_fin\"\n[pool.back]\ndialogue = \"back\"\nlimit = 1\n[tap]", 1);
    let error = Scenario::parse(&text, "test").unwrap_err().to_string();
    assert!(error.contains("its calls never end"), "{error}");
}

/// Loops that take no time end with an error, not with a full disk.
#[test]
fn what_takes_no_time_has_an_end() {
    let mut scenario = Scenario::load("refused").unwrap();
    for leg in scenario.path.iter_mut().flat_map(|path| &mut path.leg) {
        for link in [&mut leg.forward, &mut leg.backward] {
            (link.delay_ms, link.jitter_ms, link.rate_mbit) = (0.0, 0.0, 0.0);
        }
    }
    for load in &mut scenario.load {
        (load.users, load.per_s) = (1.0, 0.0);
        load.gap_ms = Span::Fixed(0.0);
    }
    let folder = tempdir().unwrap();
    let error = run(&scenario, 1.0, folder.path()).unwrap_err().to_string();
    assert!(error.contains("no time passed: give legs a delay_ms"), "{error}");
}
