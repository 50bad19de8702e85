//! Real runs: what the captures show must be what the truth files say, frame by frame. Needs root; says so and passes
//! without it. This program is also the client and the server that the runs start.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use weir_lab::config::PassConfig;
use weir_lab::findings::findings;
use weir_lab::frame::TcpSummary;
use weir_lab::limits::score_limits;
use weir_lab::marks::score_marks;
use weir_lab::pcap::{self, PcapFrame};
use weir_lab::score::score;
use weir_lab::truth::Cause;
use weir_lab::{LabConfig, LabError, LabReport, Scenario, run};

/// Everything at once: each kind of deed, each kind of close, a refused and an ignored connection.
const ROUGH: &str = r#"
name = "rough"
seed = 11
time_limit_s = 40
[leg1.c2s]
delay_ms = 2
jitter_ms = 1
loss = 0.02
duplicate = 0.03
[leg1.s2c]
delay_ms = 2
loss = 0.02
reorder = 0.03
reorder_ms = 1.5
periodic = { period_s = 0.3, lossy_s = 0.03, probability = 0.5 }
[leg2.c2s]
delay_ms = 3
loss = 0.02
reorder = 0.03
syn_loss = [{ port = 9000, skip = 2, limit = 1 }]
[leg2.s2c]
delay_ms = 3
rate_mbit = 20
queue_bytes = 15000
loss = 0.02
duplicate = 0.03
[app]
connections = 16
concurrency = 6
requests = [1, 4]
request_bytes = [8, 6000]
request_chunks = [1, 2]
think_ms = [1, 20]
server_ms = [1, 30]
response_bytes = [1, 60000]
response_chunks = [1, 3]
response_pause_ms = [1, 5]
close = ["client_fin", "client_half_close", "server_fin", "client_rst"]
refused = 1
ignored = 1
ignored_timeout_ms = 1500
"#;

/// Losses on both sides of the tap, reordering, a capture that misses frames.
const CHECKED: &str = r#"
name = "checked"
seed = 5
time_limit_s = 40
snap_length = 96
[leg1.c2s]
delay_ms = 4
[leg1.s2c]
delay_ms = 4
loss = 0.02
[leg2.c2s]
delay_ms = 8
[leg2.s2c]
delay_ms = 8
loss = 0.02
reorder = 0.01
reorder_ms = 4
[tap]
drop = 0.003
[app]
connections = 8
concurrency = 4
requests = 2
response_bytes = [100000, 300000]
"#;

/// A small receive window.
const SMALL_WINDOW: &str = r#"
name = "small-window"
seed = 3
time_limit_s = 40
snap_length = 96
[leg1.c2s]
delay_ms = 6
[leg1.s2c]
delay_ms = 6
[leg2.c2s]
delay_ms = 14
[leg2.s2c]
delay_ms = 14
[app]
connections = 3
concurrency = 3
requests = 1
response_bytes = [1500000, 2000000]
client_rcvbuf = 30000
tcp_info_ms = 5
server_congestion = "reno"
"#;

/// A leg that swallows large packets, and a server that finds out and sends smaller ones.
const BLACK_HOLE: &str = r#"
name = "black-hole"
seed = 4
time_limit_s = 40
snap_length = 96
[leg1.s2c]
delay_ms = 8
black_hole_above = 1300
[leg2.c2s]
delay_ms = 8
[app]
connections = 12
concurrency = 6
requests = 2
response_bytes = [200, 6000]
[server_sysctl]
"net.ipv4.tcp_mtu_probing" = "1"
"#;

/// The same server, and a path that carries nothing for some seconds.
fn outage() -> String {
    let nothing = "periodic = { period_s = 100, lossy_s = 3, phase_s = 0.3 }";
    BLACK_HOLE
        .replace("\"black-hole\"", "\"outage\"")
        .replace("black_hole_above = 1300", nothing)
}

/// Boxes that change frames: marks of a queue, and a window scale in one direction.
const BOXES: &str = r#"
name = "boxes"
seed = 6
time_limit_s = 40
[leg1.c2s]
delay_ms = 4
window_scale = "remove"
[leg2.s2c]
delay_ms = 8
rate_mbit = 20
queue_bytes = 1000000
ecn_mark_bytes = 10000
[app]
connections = 4
concurrency = 2
requests = 2
response_bytes = [100000, 300000]
[client_sysctl]
"net.ipv4.tcp_ecn" = "1"
[server_sysctl]
"net.ipv4.tcp_ecn" = "1"
"#;

fn small_buffer() -> String {
    SMALL_WINDOW
        .replace("small-window", "small-buffer")
        .replace("client_rcvbuf = 30000", "server_sndbuf = 16384")
        .replace("reno", "bbr")
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "lab-app") {
        return weir_lab::app_main(arguments);
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: the lab needs root");
        return ExitCode::SUCCESS;
    }
    for tool in ["ip", "ethtool"] {
        if Command::new(tool).arg("--version").output().is_err() {
            println!("skipped: {tool} is not installed (apt-get install iproute2 ethtool)");
            return ExitCode::SUCCESS;
        }
    }
    let directory = std::env::temp_dir().join(format!("weir-lab-test-{}", std::process::id()));
    let config = |text: &str| LabConfig {
        scenario: Scenario::parse(text, "test").unwrap(),
        output: directory.clone(),
        program: std::env::current_exe().unwrap(),
    };

    if !leave_a_leftover() {
        println!(
            "skipped: network namespaces cannot be made and used here (a container without CAP_SYS_ADMIN? a chroot?)"
        );
        return ExitCode::SUCCESS;
    }
    let report = run(&config(ROUGH)).unwrap();
    print!("{report}");
    assert_eq!(
        namespaces(),
        Vec::<String>::new(),
        "namespaces must be gone, leftovers too"
    );
    captures_are_the_truth(&report);
    connections_are_the_truth(&report);
    println!("ok: a rough run");
    the_analysis_keeps_its_limits(&config(CHECKED));
    println!("ok: a checked run");
    for (text, limit) in [(SMALL_WINDOW.to_string(), "window"), (small_buffer(), "buffer")] {
        let config = config(&text);
        if let Some(missing) = config.scenario.missing_congestion_control() {
            println!("skipped: a run with a small {limit}; this kernel has no {missing}");
            continue;
        }
        the_limits_are_those_of_the_kernel(&config);
        println!("ok: a run with a small {limit}");
    }

    boxes_leave_checksums_right(&config(BOXES));
    println!("ok: a run with boxes that change frames");
    for (text, is_there) in [(BLACK_HOLE.to_string(), true), (outage(), false)] {
        let report = run(&config(&text)).unwrap();
        let found = findings(&report).unwrap();
        assert_eq!(found.contains("MTU_BLACK_HOLE"), is_there, "{}: {found:?}", report.name);
        println!("ok: a run with a {}", report.name);
    }

    stopped_by_its_limit(&config("time_limit_s = 1\n[app]\nserver_ms = 20000"));
    println!("ok: a run that takes too long");
    stopped_by_a_signal(&config("[app]\nserver_ms = 20000"));
    println!("ok: a run that is interrupted");
    std::fs::remove_dir_all(&directory).unwrap();
    ExitCode::SUCCESS
}

/// Makes the namespace of a lab process that was killed (no process can have this number); false if that cannot be
/// done here, or nothing can be run in it (`ip netns exec` needs a root that is a mount point: a plain chroot is none).
fn leave_a_leftover() -> bool {
    let ip = |arguments: &[&str]| {
        let status = Command::new("ip").arg("netns").args(arguments).status();
        status.is_ok_and(|status| status.success())
    };
    let leftover = "weirlab-999999999-c";
    if !ip(&["add", leftover]) {
        return false;
    }
    let usable = ip(&["exec", leftover, "true"]);
    if !usable {
        ip(&["del", leftover]);
    }
    usable
}

/// Namespaces of this process, and the leftover.
fn namespaces() -> Vec<String> {
    let ours = format!("weirlab-{}-", std::process::id());
    std::fs::read_dir("/run/netns")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&ours) || name.starts_with("weirlab-999999999-"))
        .collect()
}

/// What Weir says of the capture, against the journeys of the frames.
fn the_analysis_keeps_its_limits(config: &LabConfig) {
    let score = score(&run(config).unwrap()).unwrap();
    print!("{score}");
    // A small run of real stacks, never twice the same: one case is more than a per cent, and chance decides how many
    // losses show at all. The scenarios of `make lab` are long enough for strict limits.
    let limits = PassConfig {
        location: 0.95,
        unknown: 0.15,
        excluded: 0.2,
        reordered_as_loss: 0.1,
        spurious: 0.5,
        ..PassConfig::default()
    };
    assert_eq!(score.failures(&limits), Vec::<String>::new(), "{:#?}", score.misses);
}

/// Transfers that one thing limits, against TCP_INFO, from each of the three taps.
fn the_limits_are_those_of_the_kernel(config: &LabConfig) {
    let score = score_limits(&run(config).unwrap()).unwrap();
    let misses: Vec<_> = score.misses().collect();
    let (right, all) = score.right();
    // One may differ: a busy machine wakes the programs late.
    assert!(all == 9 && right >= 8, "{right} of {all}: {misses:#?}");
}

/// The kernel drops what has a wrong checksum; the captures must not show any, either.
fn boxes_leave_checksums_right(config: &LabConfig) {
    let report = run(config).unwrap();
    print!("{report}");
    for (cause, least) in [(Cause::EcnMark, 50), (Cause::WindowScale, 4)] {
        let times = report.deeds.get(&cause).copied().unwrap_or(0);
        assert!(times >= least, "{cause:?}: {times}");
    }
    assert_eq!((report.transactions, report.failed), (8, 0));
    for path in [&report.client_tap, &report.tap, &report.server_tap] {
        for frame in frames(path) {
            assert!(is_right(&frame.bytes), "{}: {frame:?}", path.display());
        }
    }
    let marks = score_marks(&report).unwrap();
    assert_eq!(
        (marks.judged, marks.right),
        (report.deeds[&Cause::EcnMark], marks.judged)
    );
}

/// Both checksums of a frame without IP options.
fn is_right(frame: &[u8]) -> bool {
    let sum = |bytes: &[u8]| -> u32 {
        let words = bytes.chunks(2);
        words
            .map(|w| u32::from(w[0]) * 256 + w.get(1).map_or(0, |b| u32::from(*b)))
            .sum()
    };
    let pseudo = sum(&frame[26..34]) + 6 + (frame.len() - 34) as u32;
    [sum(&frame[14..34]), sum(&frame[34..]) + pseudo]
        .iter()
        .all(|sum| sum % 0xffff == 0)
}

fn frames(path: &Path) -> Vec<PcapFrame> {
    pcap::read(&std::fs::read(path).unwrap()).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How often each frame occurs.
fn multiset<'a>(frames: impl Iterator<Item = (&'a [u8], i64)>) -> HashMap<&'a [u8], i64> {
    let mut counts = HashMap::new();
    for (bytes, times) in frames {
        *counts.entry(bytes).or_default() += times;
    }
    counts.retain(|_, times| *times != 0);
    counts
}

fn is_from_client(frame: &PcapFrame) -> bool {
    TcpSummary::parse(&frame.bytes).unwrap().src.to_string() == "10.77.0.1"
}

/// Frames in, minus logged drops, plus logged copies, are the frames at the tap and the frames out: per direction, byte
/// for byte.
fn captures_are_the_truth(report: &LabReport) {
    let client = frames(&report.client_tap);
    let server = frames(&report.server_tap);
    let tap = frames(&report.tap);
    for capture in [&client, &server, &tap] {
        assert!(capture.is_sorted_by_key(|frame| frame.time_ns));
        assert!(capture.iter().all(|frame| frame.wire_len as usize == frame.bytes.len()));
    }

    // The wire numbers frames in the order in which it took them in, from both ends.
    let mut taken: Vec<&PcapFrame> = client.iter().filter(|frame| is_from_client(frame)).collect();
    taken.extend(server.iter().filter(|frame| !is_from_client(frame)));
    taken.sort_by_key(|frame| frame.time_ns);
    let at_tap: HashMap<(u64, &[u8]), usize> = tap
        .iter()
        .enumerate()
        .map(|(i, frame)| ((frame.time_ns, &frame.bytes[..]), i))
        .collect();

    let mut copies_at_tap = vec![1i64; taken.len()];
    let mut copies_out = vec![1i64; taken.len()];
    let mut causes: HashMap<String, u64> = HashMap::new();
    for deed in lines(&report.wire_truth) {
        let index = deed["frame"].as_u64().unwrap() as usize - 1;
        let frame = taken[index];
        let from_client = deed["direction"] == "c2s";
        assert_eq!(is_from_client(frame), from_client);
        let tcp = TcpSummary::parse(&frame.bytes).unwrap();
        assert_eq!(deed["frame_len"], frame.wire_len);
        assert_eq!((&deed["seq"], &deed["ack"]), (&tcp.seq.into(), &tcp.ack.into()));
        assert_eq!((&deed["len"], &deed["flags"]), (&tcp.len.into(), &tcp.flags.into()));
        assert_eq!(
            (&deed["src_port"], &deed["ip_id"]),
            (&tcp.src_port.into(), &tcp.ip_id.into())
        );

        let before_tap = (deed["leg"] == 1) == from_client;
        let cause = deed["cause"].as_str().unwrap();
        let change = match cause {
            "duplicate" => 1,
            "queue_delay" | "jitter" | "reorder" => 0,
            _ => -1,
        };
        if before_tap {
            copies_at_tap[index] += change;
        }
        copies_out[index] += change;
        assert_eq!(deed["passed_tap"], !before_tap || change >= 0, "{deed}");
        if let Some(time_ns) = deed.get("tap_time_ns") {
            let key = (time_ns.as_u64().unwrap(), &frame.bytes[..]);
            assert!(at_tap.contains_key(&key), "not at the tap at that time: {deed}");
        }
        *causes.entry(cause.into()).or_default() += 1;
    }
    for cause in [
        "random_loss",
        "periodic_loss",
        "syn_loss",
        "queue_full",
        "queue_delay",
        "jitter",
        "reorder",
        "duplicate",
    ] {
        assert!(
            causes.contains_key(cause),
            "this run should have had a {cause}: {causes:?}"
        );
    }

    for from_client in [true, false] {
        let expected = |copies: &[i64]| {
            let of_direction: Vec<_> = taken
                .iter()
                .zip(copies)
                .filter(|(frame, _)| is_from_client(frame) == from_client)
                .map(|(frame, &times)| (&frame.bytes[..], times))
                .collect();
            multiset(of_direction.into_iter())
        };
        let seen = |capture: &'static str, frames: &[PcapFrame], copies: &[i64]| {
            let of_direction = frames.iter().filter(|frame| is_from_client(frame) == from_client);
            assert_eq!(
                multiset(of_direction.map(|frame| (&frame.bytes[..], 1))),
                expected(copies),
                "{capture}, from client: {from_client}"
            );
        };
        seen("tap", &tap, &copies_at_tap);
        seen("far end", if from_client { &server } else { &client }, &copies_out);
    }
}

/// The bytes that arrived are those that the application says it sent, and the outcomes are those that were arranged.
fn connections_are_the_truth(report: &LabReport) {
    let mut received: HashMap<(u16, bool), Vec<TcpSummary>> = HashMap::new();
    for (path, from_client) in [(&report.server_tap, true), (&report.client_tap, false)] {
        for frame in frames(path).iter().filter(|frame| is_from_client(frame) == from_client) {
            let tcp = TcpSummary::parse(&frame.bytes).unwrap();
            let client_port = if from_client { tcp.src_port } else { tcp.dst_port };
            received.entry((client_port, from_client)).or_default().push(tcp);
        }
    }
    let truth = lines(&report.app_truth);
    let mut outcomes: HashMap<&str, u32> = HashMap::new();
    for connection in truth.iter().filter(|line| line["type"] == "connection") {
        let outcome = connection["outcome"].as_str().unwrap();
        *outcomes.entry(outcome).or_default() += 1;
        if outcome != "connected" {
            continue;
        }
        assert_eq!(connection.get("error"), None, "{connection}");
        let transactions: Vec<_> = truth
            .iter()
            .filter(|line| line["type"] == "transaction" && line["connection"] == connection["connection"])
            .collect();
        assert_eq!(transactions.len() as u64, connection["transactions"].as_u64().unwrap());
        for transaction in &transactions {
            let times: Vec<_> = [
                "request_write_start_ns",
                "server_request_first_ns",
                "server_request_last_ns",
                "server_response_start_ns",
                "response_first_ns",
                "response_last_ns",
            ]
            .iter()
            .map(|key| transaction[key].as_u64().unwrap())
            .collect();
            assert!(times.is_sorted(), "{transaction}");
        }
        let port = connection["client_port"].as_u64().unwrap() as u16;
        for (from_client, key) in [(true, "request_bytes"), (false, "response_bytes")] {
            let sent: u64 = transactions
                .iter()
                .map(|transaction| transaction[key].as_u64().unwrap())
                .sum();
            assert_eq!(
                bytes_in_order(&received[&(port, from_client)]),
                sent,
                "{key} of {connection}"
            );
        }
    }
    assert_eq!(
        outcomes,
        HashMap::from([("connected", 16), ("refused", 1), ("timed_out", 1)])
    );
}

/// Bytes from the start of a stream without a gap.
fn bytes_in_order(segments: &[TcpSummary]) -> u64 {
    let first = segments.iter().find(|tcp| tcp.is_syn()).unwrap().seq.wrapping_add(1);
    let mut ranges: Vec<(u64, u64)> = segments
        .iter()
        .filter(|tcp| tcp.len > 0)
        .map(|tcp| (u64::from(tcp.seq.wrapping_sub(first)), u64::from(tcp.len)))
        .collect();
    ranges.sort_unstable();
    ranges.iter().fold(
        0,
        |end, &(start, len)| if start <= end { end.max(start + len) } else { end },
    )
}

fn stopped_by_its_limit(config: &LabConfig) {
    let started = Instant::now();
    assert!(matches!(run(config), Err(LabError::TimeLimit { .. })));
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(namespaces(), Vec::<String>::new());
}

fn stopped_by_a_signal(config: &LabConfig) {
    let interrupter = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(1500));
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).unwrap();
    });
    assert!(matches!(run(config), Err(LabError::Interrupted)));
    interrupter.join().unwrap();
    assert_eq!(namespaces(), Vec::<String>::new());
    let leftover_records: Vec<PathBuf> = std::fs::read_dir(&config.output)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tmp"))
        .collect();
    assert_eq!(leftover_records, Vec::<PathBuf>::new());
}
