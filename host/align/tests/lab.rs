//! Real TCP over the lab's wire, seen by three taps whose clocks are made to differ afterwards: each loss of the log on
//! its leg, offsets and drift within the stated width, the pie beside what the application wrote down. Needs root; says
//! so and passes without it. This program is also the client and the server of the lab. `WEIR_LAB_SEED` sets the seed.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;
use weir_align::Alignment;
use weir_lab::pcap::{self, PcapFrame};
use weir_lab::{LabConfig, LabReport, Scenario, run};
use weir_messages::v1;

/// Losses, copies and disorder on both legs; one ignored connection; a SYN lost on leg 1.
const ROUGH: &str = r#"
name = "taps-rough"
time_limit_s = 60
[leg1.c2s]
delay_ms = 2
loss = 0.02
duplicate = 0.01
syn_loss = [{ port = 9000, skip = 3, limit = 1 }]
[leg1.s2c]
delay_ms = 2
loss = 0.02
reorder = 0.01
reorder_ms = 1.5
[leg2.c2s]
delay_ms = 5
loss = 0.02
reorder = 0.01
[leg2.s2c]
delay_ms = 5
loss = 0.02
duplicate = 0.01
jitter_ms = 1
[app]
connections = 20
concurrency = 6
requests = [2, 4]
request_bytes = [8, 6000]
think_ms = [5, 40]
server_ms = [5, 60]
response_bytes = [1, 60000]
close = ["client_fin", "server_fin", "client_half_close"]
ignored = 1
ignored_timeout_ms = 1500
"#;

/// No misdeed: client and server take their time.
const SHARES: &str = r#"
name = "taps-shares"
time_limit_s = 60
[leg1.c2s]
delay_ms = 4
[leg1.s2c]
delay_ms = 4
[leg2.c2s]
delay_ms = 6
[leg2.s2c]
delay_ms = 6
rate_mbit = 20
queue_bytes = 100000
loss = 0.01
[app]
connections = 12
concurrency = 4
requests = [3, 5]
request_bytes = [50, 3000]
think_ms = [10, 60]
server_ms = [10, 80]
response_bytes = [1000, 40000]
close = ["client_fin"]
"#;

/// A link to the client that is slow: the smallest packets take [`SLOWER`] there, and no time on the way back.
const SLOW: &str = r#"
name = "taps-slow"
time_limit_s = 60
[leg1.c2s]
delay_ms = 1
[leg1.s2c]
delay_ms = 1
[leg2.c2s]
delay_ms = 3
[leg2.s2c]
delay_ms = 3
rate_mbit = 2
queue_bytes = 100000
[app]
connections = 4
concurrency = 2
requests = 2
request_bytes = [50, 300]
think_ms = [5, 20]
server_ms = [5, 20]
response_bytes = [10000, 40000]
close = ["client_fin"]
"#;

/// What the smallest packets take there, s.
const SLOWER: f64 = 0.000_264;
/// How far apart full ones leave it, ns.
const APART: u64 = 6_056_000;

/// Client to server in the scenario of the shares, s.
const ONE_WAY: f64 = 0.010;

/// What a tap's clock shows: true time + offset + drift since the start of the run.
#[derive(Clone, Copy)]
struct Clock {
    start: u64,
    offset: i64,
    ppm: f64,
}

impl Clock {
    fn show(&self, time: u64) -> u64 {
        let drift = time.wrapping_sub(self.start) as i64 as f64 * self.ppm / 1e6;
        time.wrapping_add_signed(self.offset + drift.round() as i64)
    }

    /// Offset at a time that this clock shows; drift is too slow for more steps to matter.
    fn offset_at(&self, shown: u64) -> f64 {
        let near = shown.wrapping_add_signed(-self.offset);
        let time = near.wrapping_add_signed(-(self.show(near).wrapping_sub(shown) as i64));
        (self.show(time).wrapping_sub(time) as i64) as f64 / 1e9
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "lab-app") {
        return weir_lab::app_main(arguments);
    }
    if !nix::unistd::geteuid().is_root() || !namespaces_work() {
        println!("skipped: the lab needs root, network namespaces and iproute2");
        return ExitCode::SUCCESS;
    }
    let directory = std::env::temp_dir().join(format!("weir-taps-test-{}", std::process::id()));
    let seed = std::env::var("WEIR_LAB_SEED").map_or(5, |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let lab = |text: &str| {
        let mut scenario = Scenario::parse(text, "test").unwrap();
        scenario.seed = seed;
        let report = run(&LabConfig {
            scenario,
            output: directory.clone(),
            program: std::env::current_exe().unwrap(),
        })
        .unwrap();
        print!("{report}");
        report
    };
    let rough = lab(ROUGH);
    losses_are_on_their_legs(&rough, &directory);
    println!("ok: losses, clocks and order of three taps");
    dropped_by_the_capture(&rough, &directory);
    println!("ok: a capture that drops");
    // On a busy machine the wire hands over late: more so on one way than on the other, or together what the link kept apart.
    in_calm("clocks beside a slow link", || {
        let slow = lab(SLOW);
        let calm = unevenness(&slow) < 40e-6 && slow.latest_delivery_ns < APART;
        if calm {
            clocks_over_a_slow_link(&slow, &directory);
        }
        calm
    });
    // The programs wake up late, and what they write down is not what the wire saw.
    in_calm("the pie", || {
        let shares = lab(SHARES);
        let calm = lag(&shares) < 0.01;
        if calm {
            pie_is_the_applications(&shares, &directory);
        }
        calm
    });
    std::fs::remove_dir_all(&directory).unwrap();
    ExitCode::SUCCESS
}

/// Run a part until the machine was calm meanwhile, as the part says of itself.
fn in_calm(what: &str, part: impl Fn() -> bool) {
    let judged = (0..4).any(|_| part());
    let outcome = if judged {
        "ok"
    } else {
        "skipped, the machine is too busy"
    };
    println!("{outcome}: {what}");
}

/// Whether a namespace can be made and used here.
fn namespaces_work() -> bool {
    let ip = |arguments: &[&str]| {
        let status = Command::new("ip").arg("netns").args(arguments).status();
        status.is_ok_and(|status| status.success())
    };
    let name = format!("weirtaps-{}", std::process::id());
    let made = ip(&["add", &name]);
    let usable = made && ip(&["exec", &name, "true"]);
    if made {
        ip(&["del", &name]);
    }
    usable
}

fn frames(path: &Path) -> Vec<PcapFrame> {
    pcap::read(&std::fs::read(path).unwrap()).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A pcap of nanoseconds.
fn write_pcap(path: &Path, frames: &[PcapFrame], clock: Clock) {
    let mut out = pcap::PcapWriter::new(std::fs::File::create(path).unwrap(), 65_535).unwrap();
    for frame in frames {
        out.write(clock.show(frame.time_ns), &frame.bytes).unwrap();
    }
}

/// A big-endian pcap of microseconds.
fn write_micro_pcap(path: &Path, frames: &[PcapFrame], clock: Clock) {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 1] {
        out.extend(word.to_be_bytes());
    }
    for frame in frames {
        let micros = clock.show(frame.time_ns) / 1000;
        let len = frame.bytes.len() as u32;
        for word in [
            (micros / 1_000_000) as u32,
            (micros % 1_000_000) as u32,
            len,
            frame.wire_len,
        ] {
            out.extend(word.to_be_bytes());
        }
        out.extend(&frame.bytes);
    }
    std::fs::write(path, out).unwrap();
}

/// A pcapng of nanoseconds.
fn write_pcapng(path: &Path, frames: &[PcapFrame], clock: Clock) {
    let mut out = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let len = (12 + body.len().next_multiple_of(4)) as u32;
        out.extend(kind.to_le_bytes());
        out.extend(len.to_le_bytes());
        out.extend(body);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(len.to_le_bytes());
    };
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4d_u32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    block(0x0a0d_0d0a, &section);
    // Ethernet, no snap length, if_tsresol 9.
    block(1, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    for frame in frames {
        let time = clock.show(frame.time_ns);
        let len = frame.bytes.len() as u32;
        let mut body = Vec::new();
        for word in [0, (time >> 32) as u32, time as u32, len, frame.wire_len] {
            body.extend(word.to_le_bytes());
        }
        body.extend(&frame.bytes);
        block(6, &body);
    }
    std::fs::write(path, out).unwrap();
}

/// Drops and copies of the log, by what, leg and direction.
fn deeds(report: &LabReport) -> HashMap<(&'static str, u64, bool), u64> {
    let mut deeds = HashMap::new();
    for line in lines(&report.wire_truth) {
        let what = match line["cause"].as_str().unwrap() {
            "duplicate" => "copy",
            "queue_delay" | "jitter" | "reorder" => continue,
            _ => "drop",
        };
        let key = (what, line["leg"].as_u64().unwrap(), line["direction"] == "c2s");
        *deeds.entry(key).or_default() += 1;
    }
    deeds
}

/// Three taps with clocks far apart, in three formats, given in the wrong order.
fn three_taps(report: &LabReport, directory: &Path, at_tap: &[PcapFrame]) -> (Alignment, [Clock; 3]) {
    let client = frames(&report.client_tap);
    let start = client[0].time_ns;
    let clocks = [(0, 0.0), (17_304_222_000, 80.0), (-3_600_000_000_000, -35.0)].map(|(offset, ppm)| Clock {
        start,
        offset,
        ppm,
    });
    let paths: Vec<PathBuf> = ["client.pcap", "middle.pcap", "server.pcapng"]
        .map(|name| directory.join(name))
        .into();
    write_pcap(&paths[0], &client, clocks[0]);
    write_micro_pcap(&paths[1], at_tap, clocks[1]);
    write_pcapng(&paths[2], &frames(&report.server_tap), clocks[2]);
    let captures: Vec<_> = [1, 2, 0].map(|k| support::records_of_file(&paths[k])).into();
    let answer = support::align(&captures).unwrap();
    let order: Vec<&str> = answer.taps.iter().map(|tap| tap.file.as_str()).collect();
    assert_eq!(order, ["C", "A", "B"], "client, middle, server");
    (answer, clocks)
}

/// UTC nanoseconds.
fn nanos(time: Option<weir_messages::Timestamp>) -> u64 {
    time.unwrap().unix_nanos() as u64
}

fn clocks_are_right(leg: &v1::Leg, from: Clock, to: Clock) {
    for piece in &leg.clock {
        let start = nanos(piece.start);
        // The first matched packet on the clock of `from`, then what `to` showed at that moment.
        let time = start.wrapping_add_signed(-(from.offset_at(start) * 1e9).round() as i64);
        let truth = (to.show(time).wrapping_sub(from.show(time)) as i64) as f64 / 1e9;
        let error = (piece.offset_seconds - truth).abs();
        println!(
            "offset {:.6} s, error {:.1} us of {:.1} us stated, drift {:.2} ppm of {:.2}",
            piece.offset_seconds,
            1e6 * error,
            0.5e6 * piece.offset_width_seconds,
            piece.skew_ppm,
            to.ppm - from.ppm
        );
        assert!(error <= piece.offset_width_seconds / 2.0, "{leg:?}");
        assert!(error < 50e-6, "{leg:?}");
    }
    assert_eq!(leg.clock.len(), 1, "nobody set a clock: {leg:?}");
}

/// Each drop of the log is lost on its leg. One after which the far capture has nothing more is outside of it: at most
/// the last packet or two of a run.
fn lost_is(lost: [u64; 2], outside: u64, truth: [u64; 2]) {
    assert!(outside <= 2, "{outside}");
    let all = |of: [u64; 2]| of.iter().sum::<u64>();
    assert_eq!(all(lost) + outside, all(truth), "{lost:?} {truth:?}");
    assert!(lost[0] <= truth[0] && lost[1] <= truth[1], "{lost:?} {truth:?}");
}

fn losses_are_on_their_legs(report: &LabReport, directory: &Path) {
    let (answer, clocks) = three_taps(report, directory, &frames(&report.tap));
    let deeds = deeds(report);
    let truth = |what, leg, forward| deeds.get(&(what, leg, forward)).copied().unwrap_or(0);
    for (k, leg) in (1..).zip(&answer.legs) {
        println!(
            "leg {k}: lost {} and {}, copied {} and {}, undecided {}, outside {}",
            leg.lost_forward,
            leg.lost_backward,
            leg.duplicated_forward,
            leg.duplicated_backward,
            leg.undecided,
            leg.outside
        );
        let lost = [leg.lost_forward, leg.lost_backward];
        lost_is(
            lost,
            leg.outside,
            [true, false].map(|forward| truth("drop", k, forward)),
        );
        let copied = [leg.duplicated_forward, leg.duplicated_backward];
        assert_eq!(
            copied,
            [true, false].map(|forward| truth("copy", k, forward)),
            "{leg:?}"
        );
        assert_eq!(leg.undecided, 0);
    }
    for tap in &answer.taps {
        assert_eq!(tap.missed_by_capture, 0, "{tap:?}");
    }
    clocks_are_right(&answer.legs[0], clocks[0], clocks[1]);
    clocks_are_right(&answer.legs[1], clocks[1], clocks[2]);
}

/// Frames taken out of the middle capture that had arrived at the end: the capture's own, no leg's.
fn dropped_by_the_capture(report: &LabReport, directory: &Path) {
    let whole = frames(&report.tap);
    let arrived: Vec<Vec<u8>> = [&report.client_tap, &report.server_tap]
        .into_iter()
        .flat_map(|path| frames(path))
        .map(|frame| frame.bytes)
        .collect();
    let copies = |bytes: &[u8], of: &[Vec<u8>]| of.iter().filter(|other| *other == bytes).count();
    let at_tap: Vec<Vec<u8>> = whole.iter().map(|frame| frame.bytes.clone()).collect();
    // Of the last packets no clock is good enough to tell that the capture still ran.
    let end = whole.last().unwrap().time_ns - 1_000_000;
    let mut dropped = 0;
    let kept: Vec<PcapFrame> = whole
        .into_iter()
        .enumerate()
        .filter(|(k, frame)| {
            // Both ends have it, once, and so has the tap: nothing but the capture can have lost it.
            let is_alone = copies(&frame.bytes, &at_tap) == 1 && copies(&frame.bytes, &arrived) == 2;
            let drop = k % 23 == 7 && is_alone && frame.time_ns < end;
            dropped += u64::from(drop);
            !drop
        })
        .map(|(_, frame)| frame)
        .collect();
    assert!(dropped > 20, "{dropped}");
    let (answer, _) = three_taps(report, directory, &kept);
    let deeds = deeds(report);
    let lost: Vec<[u64; 2]> = answer
        .legs
        .iter()
        .map(|leg| [leg.lost_forward, leg.lost_backward])
        .collect();
    let truth = |leg| [true, false].map(|forward| deeds.get(&("drop", leg, forward)).copied().unwrap_or(0));
    println!(
        "{dropped} taken out of the middle capture, {} found; lost {lost:?}",
        answer.taps[1].missed_by_capture
    );
    assert_eq!(answer.taps[1].missed_by_capture, dropped);
    for (k, leg) in (1..).zip(&answer.legs) {
        lost_is([leg.lost_forward, leg.lost_backward], leg.outside, truth(k));
    }
}

/// The taps beside client and server, the latter on such a clock; and both clocks.
fn two_taps(report: &LabReport, directory: &Path, offset: i64, ppm: f64) -> (Alignment, [Clock; 2]) {
    let start = frames(&report.client_tap)[0].time_ns;
    let paths = [directory.join("client.pcap"), directory.join("server.pcapng")];
    let clocks = [(0, 0.0), (offset, ppm)].map(|(offset, ppm)| Clock { start, offset, ppm });
    write_pcap(&paths[0], &frames(&report.client_tap), clocks[0]);
    write_pcapng(&paths[1], &frames(&report.server_tap), clocks[1]);
    let captures: Vec<_> = paths.iter().map(|path| support::records_of_file(path)).collect();
    (support::align(&captures).unwrap(), clocks)
}

/// By how much more the quickest frame to the client was late than the quickest to the server, s: two captures do not tell it from an
/// offset of their clocks twice as small. Both ends have one clock in the lab.
fn unevenness(report: &LabReport) -> f64 {
    let at_client: HashMap<_, _> = frames(&report.client_tap)
        .into_iter()
        .map(|frame| (frame.bytes, frame.time_ns))
        .collect();
    let took = |frame: PcapFrame| Some(frame.time_ns as i64 - *at_client.get(&frame.bytes)? as i64);
    let (there, back): (Vec<_>, Vec<_>) = frames(&report.server_tap)
        .into_iter()
        .filter_map(took)
        .partition(|ns| *ns > 0);
    let least = |ways: &[i64]| ways.iter().map(|ns| ns.unsigned_abs()).min().unwrap() as f64 / 1e9;
    (least(&back) - least(&there) - SLOWER).abs()
}

/// What the link takes is not the clocks'.
fn clocks_over_a_slow_link(report: &LabReport, directory: &Path) {
    let (answer, clocks) = two_taps(report, directory, -3_000_000_000, 0.0);
    clocks_are_right(&answer.legs[0], clocks[0], clocks[1]);
}

/// Share of the connections' time in which a program slept although its packet was there: connections beyond a round
/// trip (a lost SYN-ACK apart, which takes a second), requests read late. From the application's log alone.
fn lag(report: &LabReport) -> f64 {
    let number = |line: &Value, key: &str| line[key].as_u64().unwrap() as f64 / 1e9;
    let (mut late, mut total) = (0.0, 0.0);
    for line in lines(&report.app_truth) {
        if line["type"] == "connection" {
            let connect = number(&line, "connect_end_ns") - number(&line, "connect_start_ns");
            late += if connect < 0.5 { connect - 2.0 * ONE_WAY } else { 0.0 };
            total += number(&line, "close_ns") - number(&line, "connect_start_ns");
        } else {
            late += number(&line, "server_request_last_ns") - number(&line, "request_write_end_ns") - ONE_WAY;
        }
    }
    println!("programs slept {:.2} % of the time too long", 100.0 * late / total);
    late / total
}

/// Shares of client, network and server within two points of what the application wrote down.
fn pie_is_the_applications(report: &LabReport, directory: &Path) {
    let (answer, _) = two_taps(report, directory, 5_000_000_000, 40.0);
    let truth = lines(&report.app_truth);
    let number = |line: &Value, key: &str| line[key].as_u64().unwrap() as f64 / 1e9;
    let (mut client, mut server, mut total) = (0.0, 0.0, 0.0);
    for connection in truth.iter().filter(|line| line["type"] == "connection") {
        let mut since = number(connection, "connect_end_ns");
        let mut transactions: Vec<&Value> = truth
            .iter()
            .filter(|line| line["type"] == "transaction" && line["connection"] == connection["connection"])
            .collect();
        transactions.sort_by_key(|line| line["index"].as_u64());
        for line in transactions {
            client += number(line, "request_write_start_ns") - since;
            // On a busy machine the server reads late what has arrived: that is the server's time, too. Nothing
            // disturbs requests here.
            let arrival = number(line, "request_write_end_ns") + ONE_WAY;
            server += number(line, "server_response_start_ns") - arrival;
            since = number(line, "response_last_ns");
        }
        // The close after the last answer is nobody's time.
        total += since - number(connection, "connect_start_ns");
    }
    let pie = answer.pies.iter().find(|pie| pie.method == "MEASURED").unwrap();
    let shares = [pie.client_seconds, pie.network_seconds, pie.server_seconds].map(|s| 100.0 * s / pie.total_seconds);
    let truth = [client, total - client - server, server].map(|s| 100.0 * s / total);
    println!("client, network, server: {shares:.2?} %, truth {truth:.2?} %");
    for (share, truth) in shares.iter().zip(truth) {
        assert!((share - truth).abs() < 2.0, "{shares:?} {truth:?}");
    }
    for pie in &answer.pies {
        println!(
            "{}: {:.3} {:.3} {:.3} of {:.3} s",
            pie.method, pie.client_seconds, pie.network_seconds, pie.server_seconds, pie.total_seconds
        );
    }
}
