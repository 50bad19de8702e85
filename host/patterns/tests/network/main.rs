//! Power and false alarms of what is found about the network and the capture, and the findings of a stream without end.
#![allow(clippy::unwrap_used)]

mod live;
mod play;
#[path = "../support/mod.rs"]
mod support;

use play::{HEADER, assert_near, findings, only, play, play_edited, span};
use support::value;
use weir_messages::v1::Finding;
use weir_scenario::Scenario;

/// The kinds that are judged here, with the scenarios whose truth has them.
const KINDS: [(&str, &[&str]); 8] = [
    ("MIRROR_DUPLICATES", &["mirror-duplicates"]),
    ("ONE_SIDED", &["one-sided"]),
    ("ROUTE_CHANGE", &["route-change"]),
    ("HALF_OPEN", &["half-open"]),
    ("SYN_FLOOD", &["syn-flood"]),
    ("MTU_BLACK_HOLE", &["mtu-black-hole"]),
    ("PORT_SCAN", &["port-scan"]),
    ("CAPTURE_QUALITY", &["late-capture"]),
];

/// What each built-in scenario shows first, and what else is true there and may be said aloud.
const SHOWN: [(&str, &str, &[&str]); 37] = [
    ("healthy", "", &[]),
    ("abortive-close", "ABORTIVE_CLOSE", &[]),
    ("ack-loss", "NEEDLESS_REPEATS", &["RETRANSMISSION_RATE", "SYN_LOSS"]),
    ("app-sleep", "APPLICATION_SLEEP", &[]),
    (
        "bandwidth-limited",
        "BANDWIDTH_LIMITED",
        &["RETRANSMISSION_RATE", "LOSS"],
    ),
    ("burst-loss", "LOSS", &["RETRANSMISSION_RATE"]),
    ("capacity-ceiling", "CAPACITY_CEILING", &["SLOWING_RESPONSES"]),
    ("capture-loss", "CAPTURE_LOSS", &[]),
    ("connection-per-transaction", "CONNECTION_PER_TRANSACTION", &[]),
    ("delayed-ack", "DELAYED_ACK", &[]),
    ("half-open", "HALF_OPEN", &["FAILED_CONNECTIONS"]),
    ("keep-alive", "KEEP_ALIVE_STORM", &[]),
    ("late-capture", "CAPTURE_QUALITY", &[]),
    ("latency-bound", "LATENCY_BOUND", &[]),
    ("mirror-duplicates", "MIRROR_DUPLICATES", &[]),
    ("mtu-black-hole", "MTU_BLACK_HOLE", &["RETRANSMISSION_RATE", "LOSS"]),
    ("one-sided", "ONE_SIDED", &[]),
    ("periodic-loss", "PERIODIC_LOSS", &["RETRANSMISSION_RATE"]),
    ("port-exhaustion", "PORT_EXHAUSTION", &[]),
    ("port-recycling", "PORT_RECYCLING", &[]),
    ("port-scan", "PORT_SCAN", &["FAILED_CONNECTIONS"]),
    ("random-loss", "LOSS", &["RETRANSMISSION_RATE"]),
    ("receiver-limited", "RECEIVER_LIMITED", &[]),
    ("refused", "FAILED_CONNECTIONS", &[]),
    ("reordering", "REORDERING", &["RETRANSMISSION_RATE"]),
    ("request-pauses", "REQUEST_PAUSES", &[]),
    ("response-bands", "RESPONSE_BANDS", &[]),
    ("route-change", "ROUTE_CHANGE", &["RTT_SHIFT"]),
    ("sender-limited", "SENDER_LIMITED", &[]),
    ("slow-ramp", "SLOW_RAMP", &[]),
    ("small-window", "SMALL_WINDOW", &[]),
    ("stalls", "NEEDLESS_REPEATS", &["RETRANSMISSION_RATE"]),
    ("syn-flood", "SYN_FLOOD", &["FAILED_CONNECTIONS"]),
    ("syn-loss", "SYN_LOSS_BURST", &[]),
    ("tiny-segments", "TINY_SEGMENTS", &[]),
    ("window-scale-mishap", "WINDOW_SCALE_MISHAP", &[]),
    ("zero-window", "ZERO_WINDOW", &["SMALL_WINDOW"]),
];

/// Users and a server (10.2.1.10:8080), a tap 1 ms before the server, in parts that a test varies.
struct Site {
    near: [&'static str; 2],
    far: [&'static str; 2],
    service: &'static str,
    tap: String,
    /// Visits; 0: none.
    per_s: f64,
    more: String,
}

impl Default for Site {
    fn default() -> Self {
        Self {
            near: ["delay_ms = 5, hops = 3", "delay_ms = 5, hops = 3"],
            far: ["delay_ms = 1", "delay_ms = 1"],
            service: "cpus = 4",
            tap: String::new(),
            per_s: 8.0,
            more: String::new(),
        }
    }
}

impl Site {
    fn scenario(&self) -> Scenario {
        let Self {
            near: [near0, near1],
            far: [far0, far1],
            service,
            tap,
            per_s,
            more,
        } = self;
        let visits = format!("[[load]]\ndialogue = \"visit\"\nto_s = 38\nper_s = {per_s}");
        let visits = if *per_s > 0.0 { visits } else { String::new() };
        let text = format!(
            r#"
name = "site"
description = "a test"
duration_s = 40
[[host]]
name = "users"
address = "10.2.0.10"
stack = "linux"
[[host]]
name = "server"
address = "10.2.1.10"
stack = "linux"
[[path]]
between = ["users", "server"]
taps = ["tap"]
[[path.leg]]
forward = {{ {near0} }}
backward = {{ {near1} }}
[[path.leg]]
forward = {{ {far0} }}
backward = {{ {far1} }}
[[service]]
name = "pages"
host = "server"
port = 8080
{service}
[exchange.page]
request = "300-900"
cpu_ms = [1, 5]
response = [{{ writes = "300-6000" }}]
[dialogue.visit]
client = "users"
service = "pages"
body = ["page"]
count = [3, 8]
think_ms = [50, 500]
close = "client_fin"
{visits}
[tap.tap]
{tap}
{more}
"#
        );
        Scenario::parse(&text, "site").unwrap()
    }
}

#[test]
fn copies_of_a_mirror_are_counted() {
    for (seed, share) in [(1, 0.05), (2, 0.33), (3, 1.0)] {
        let site = Site {
            tap: format!("duplicate = {share}\nduplicate_us = 20"),
            ..Site::default()
        };
        let played = play(site.scenario(), 1.0, seed);
        let found = findings(&played.records);
        let truth = played.report.totals.taps["tap"].duplicated as f64;
        // Estimated from the copies of data, which are a part of all.
        let share = (3.0 / truth.sqrt()).max(0.05);
        assert_near(
            "packets",
            value(only(&found, "MIRROR_DUPLICATES"), "packets"),
            truth,
            share,
        );
    }
}

#[test]
fn a_direction_that_is_missing_is_told() {
    // IPv4 source address.
    let is_server = |packet: &[u8]| packet[HEADER + 26..HEADER + 30] == [10, 2, 1, 10];
    for (seed, servers) in [(1, false), (2, true)] {
        let played = play_edited(Site::default().scenario(), 1.0, seed, |packet| {
            is_server(packet) == servers
        });
        let found = findings(&played.records);
        assert!(found.iter().all(|f| f.kind != "CONNECTION_PER_TRANSACTION"));
        let found = only(&found, "ONE_SIDED");
        let truth = played.report.totals.connections["visit"] as f64;
        assert_near("connections", value(found, "connections"), truth, 0.05);
        let key = if servers { "serverOnly" } else { "clientOnly" };
        assert_eq!(value(found, key), value(found, "connections"));
    }
}

#[test]
fn what_the_capture_lacks_is_told() {
    // Without SYNs all connections are midstream.
    let is_syn = |packet: &[u8]| packet[HEADER + 47] & 2 != 0;
    let played = play_edited(Site::default().scenario(), 1.0, 1, |packet| !is_syn(packet));
    let found = findings(&played.records);
    let truth = played.report.totals.connections["visit"] as f64;
    assert_near(
        "midstream",
        value(only(&found, "CAPTURE_QUALITY"), "midstream"),
        truth,
        0.02,
    );

    // Every hundredth packet has a time 5 ms too early.
    let (mut number, mut newest, mut backwards) = (0, 0, 0);
    let played = play_edited(Site::default().scenario(), 1.0, 2, |packet| {
        let field = |at: usize| u64::from(u32::from_le_bytes(packet[at..at + 4].try_into().unwrap()));
        let mut time = field(0) * 1_000_000_000 + field(4);
        number += 1;
        if number % 100 == 0 {
            time -= 5_000_000;
            packet[..4].copy_from_slice(&((time / 1_000_000_000) as u32).to_le_bytes());
            packet[4..8].copy_from_slice(&((time % 1_000_000_000) as u32).to_le_bytes());
        }
        backwards += u32::from(time < newest);
        newest = newest.max(time);
        true
    });
    let found = findings(&played.records);
    assert!(backwards > 20);
    assert_eq!(
        value(only(&found, "CAPTURE_QUALITY"), "clampedTimes"),
        f64::from(backwards)
    );
}

fn flood(per_s: f64, from_s: f64, to_s: f64) -> String {
    format!(
        r#"
[[host]]
name = "sender"
address = "10.9.9.9"
stack = "linux"
tcp = {{ syn_retries = 0, syn_timeout_s = 3 }}
[[path]]
between = ["sender", "server"]
taps = ["tap"]
[[path.leg]]
forward = {{ delay_ms = 30, hops = 12 }}
backward = {{ delay_ms = 30, syn_loss = 1.0 }}
[[path.leg]]
forward = {{ delay_ms = 1 }}
backward = {{ delay_ms = 1 }}
[dialogue.flood]
client = "sender"
service = "pages"
count = 0
close = "client_rst"
[[load]]
dialogue = "flood"
from_s = {from_s}
to_s = {to_s}
per_s = {per_s}
"#
    )
}

#[test]
fn a_flood_is_told_with_its_rate_and_time() {
    for (seed, per_s, from_s, to_s, service) in [
        (1, 40.0, 5.0, 15.0, "backlog = 64"),
        (2, 200.0, 10.0, 20.0, "backlog = 128"),
        (3, 500.0, 20.0, 24.0, "backlog = 100000"),
    ] {
        let site = Site {
            service,
            more: flood(per_s, from_s, to_s),
            ..Site::default()
        };
        let played = play(site.scenario(), 1.0, seed);
        let found = findings(&played.records);
        let found = only(&found, "SYN_FLOOD");
        assert_eq!(found.who, "10.2.1.10:8080");
        let truth = played.report.totals.connections["flood"] as f64;
        assert_near("syns", value(found, "syns"), truth, 0.05);
        assert_near("rate", value(found, "perSecond"), truth / (to_s - from_s), 0.05);
        assert_eq!(value(found, "sources"), 1.0);
        let told_apart = |line: &String| line.starts_with("FAILED_CONNECTIONS counts these SYNs, too");
        assert!(found.evidence.iter().any(told_apart), "{found:#?}");
        let (start, end) = span(found);
        assert!((start - played.start - from_s).abs() < 0.5 && (end - played.start - to_s).abs() < 0.5);
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_no_flood() {
    // SYNs lost behind the tap: it is down. SYN-ACKs lost before the users: it waits for them.
    for (seed, site, half_open) in [
        (
            1,
            Site {
                far: ["delay_ms = 1, syn_loss = 1.0", "delay_ms = 1"],
                per_s: 60.0,
                ..Site::default()
            },
            false,
        ),
        (
            2,
            Site {
                near: ["delay_ms = 5", "delay_ms = 5, syn_loss = 1.0"],
                per_s: 60.0,
                ..Site::default()
            },
            true,
        ),
    ] {
        let played = play(site.scenario(), 1.0, seed);
        let found = findings(&played.records);
        let kinds: Vec<&str> = found.iter().map(|finding| finding.kind.as_str()).collect();
        assert!(!kinds.contains(&"SYN_FLOOD"), "{kinds:?}");
        assert_eq!(kinds.contains(&"HALF_OPEN"), half_open, "{kinds:?}");
    }
}

#[test]
fn refusals_in_a_row_are_told_and_a_scan_by_its_targets() {
    let site = Site {
        service: "refuses = true",
        ..Site::default()
    };
    let played = play(site.scenario(), 1.0, 1);
    let found = findings(&played.records);
    let refused = played.report.totals.connections["visit"] as f64;
    let failed = only(&found, "FAILED_CONNECTIONS");
    assert_near("refused", value(failed, "refused"), refused, 0.0);
    let row = format!("10.2.1.10:8080 refused {refused} in a row from ");
    assert!(failed.evidence.iter().any(|line| line.starts_with(&row)), "{failed:?}");
    assert!(found.iter().all(|finding| finding.kind != "PORT_SCAN"));

    // One connection to each of 40 closed ports, beside normal visits of another host.
    let doors = (0..40).map(|door| {
        format!(
            r#"
[[service]]
name = "door{door}"
host = "server"
port = {port}
refuses = true
[dialogue.door{door}]
client = "scanner"
service = "door{door}"
count = 0
close = "client_rst"
[[load]]
dialogue = "door{door}"
from_s = {at}
to_s = {until}
users = 1
gap_ms = 100000
"#,
            port = 20 + door,
            at = 5.0 + 0.1 * f64::from(door),
            until = 5.05 + 0.1 * f64::from(door),
        )
    });
    let more = String::from(
        r#"
[[host]]
name = "scanner"
address = "10.9.9.8"
stack = "linux"
[[path]]
between = ["scanner", "server"]
taps = ["tap"]
[[path.leg]]
forward = { delay_ms = 30 }
backward = { delay_ms = 30 }
[[path.leg]]
forward = { delay_ms = 1 }
backward = { delay_ms = 1 }
"#,
    ) + &doors.collect::<String>();
    let site = Site {
        more,
        ..Site::default()
    };
    let found = findings(&play(site.scenario(), 1.0, 2).records);
    let scan = only(&found, "PORT_SCAN");
    assert_eq!(scan.who, "10.9.9.8");
    assert_eq!(
        ["targets", "hosts", "ports", "connections"].map(|key| value(scan, key)),
        [40.0, 1.0, 40.0, 40.0]
    );
}

#[test]
fn another_route_is_told_with_its_hops_and_round_trips() {
    for (seed, at, delay, hops) in [(1, 15, 17.5, 6), (2, 25, 5.0, 4), (3, 20, 2.0, 1)] {
        let near = format!("delay_ms = 5, hops = 3, reroute = {{ at_s = {at}, delay_ms = {delay}, hops = {hops} }}");
        let near: &'static str = Box::leak(near.into_boxed_str());
        let site = Site {
            near: [near, near],
            ..Site::default()
        };
        let played = play(site.scenario(), 1.0, seed);
        let found = findings(&played.records);
        let found = only(&found, "ROUTE_CHANGE");
        assert_eq!(found.who, "10.2.0.10");
        assert_eq!(
            value(found, "ttlBefore") - value(found, "ttlAfter"),
            f64::from(hops - 3)
        );
        assert_near("before", value(found, "rttBeforeSeconds"), 0.010, 0.05);
        assert_near("after", value(found, "rttAfterSeconds"), delay * 2e-3, 0.05);
        let slower = delay * 2e-3 > 0.010;
        assert_eq!(found.values.contains_key("costSeconds"), slower, "{found:?}");
        let start = span(found).0 - played.start;
        assert!((start - f64::from(at)).abs() < 0.5, "{start}");
    }
}

#[test]
fn what_is_too_large_for_the_path_is_told() {
    for (seed, above) in [(1, 600), (2, 1000), (3, 1400)] {
        let near = format!("delay_ms = 5, hops = 3, black_hole_above = {above}");
        let site = Site {
            near: ["delay_ms = 5, hops = 3", Box::leak(near.into_boxed_str())],
            per_s: 4.0,
            ..Site::default()
        };
        let found = findings(&play(site.scenario(), 1.0, seed).records);
        let found = only(&found, "MTU_BLACK_HOLE");
        assert_eq!(found.who, "10.2.1.10 > 10.2.0.10");
        // Ethernet, IPv4 and TCP with its timestamps.
        let limit = f64::from(above - 14 - 20 - 32);
        let (passed, lost) = (value(found, "largestPassed"), value(found, "smallestLost"));
        assert!(passed <= limit && limit < lost, "{passed} {limit} {lost}");
        // The largest that passed is no limit to set.
        let next = found.evidence.last().map(String::as_str).unwrap_or_default();
        assert!(
            next.starts_with("next: find the limit between ") && !next.contains(&format!("MSS to {passed}")),
            "{next}"
        );
    }
}

/// Dialogues of which one asks for a page of 5,000 bytes, another for an icon of so many.
fn icons_and_images(icon: &str) -> String {
    format!(
        r#"
[exchange.icon]
request = "300"
response = [{{ writes = "{icon}" }}]
[exchange.image]
request = "300"
response = [{{ writes = "5000" }}]
[dialogue.icons]
client = "users"
service = "pages"
body = ["icon"]
close = "client_fin"
[dialogue.images]
client = "users"
service = "pages"
body = ["image"]
close = "client_fin"
"#
    )
}

/// Small messages pass before, and setups meanwhile; or the small ends of large messages do, as SACK tells. Where no data passes at all, it
/// can be anything that keeps it back.
#[test]
fn what_is_too_large_is_told_when_only_setups_pass_meanwhile() {
    for (icon, above, is_told) in [("200-400", 1000, true), ("5000", 1000, true), ("5000", 120, false)] {
        let near = format!("delay_ms = 5, hops = 3, black_hole_above = {above}");
        let more = format!(
            r#"
{}[[load]]
dialogue = "icons"
to_s = 4
per_s = 2.0
[[load]]
dialogue = "images"
from_s = 5
to_s = 38
per_s = 1.0
"#,
            icons_and_images(icon)
        );
        let site = Site {
            near: ["delay_ms = 5, hops = 3", Box::leak(near.into_boxed_str())],
            per_s: 0.0,
            more,
            ..Site::default()
        };
        let found = findings(&play(site.scenario(), 1.0, 1).records);
        let is_found = found.iter().any(|f| f.kind == "MTU_BLACK_HOLE");
        assert_eq!(is_found, is_told, "{icon} {above}: {found:?}");
    }
}

/// Pages of 5,000 bytes over a path that carries 1,000 on one side of the tap, asked for from 5 s on, so many a second for `s` seconds; and small ones at the end.
fn pages_over_a_narrow_path(before_tap: bool, per_s: f64, s: f64) -> Vec<Finding> {
    let more = format!(
        r#"
{}[[load]]
dialogue = "icons"
from_s = 30
to_s = 32
per_s = 2.0
[[load]]
dialogue = "images"
from_s = 5
to_s = {}
per_s = {per_s}
"#,
        icons_and_images("200"),
        5.0 + s
    );
    let narrow = "delay_ms = 5, hops = 3, black_hole_above = 1000";
    let wide = "delay_ms = 5, hops = 3";
    let site = Site {
        near: [wide, if before_tap { wide } else { narrow }],
        far: [wide, if before_tap { narrow } else { wide }],
        per_s: 0.0,
        more,
        ..Site::default()
    };
    findings(&play(site.scenario(), 1.0, 1).records)
}

/// At the tap beside the client nothing of full size is ever seen: a hole that stands, with the end of the page above it, tells.
#[test]
fn what_is_too_large_is_told_on_either_side_of_the_tap() {
    for before_tap in [false, true] {
        let found = pages_over_a_narrow_path(before_tap, 2.0, 10.0);
        let found = only(&found, "MTU_BLACK_HOLE");
        assert_eq!(
            (found.severity.as_str(), found.confidence),
            ("CRITICAL", 0.9),
            "{before_tap}"
        );
        let (passed, lost) = (value(found, "largestPassed"), value(found, "smallestLost"));
        assert!(passed < 934.0 && lost > 934.0, "{before_tap} {passed} {lost}");
    }
}

/// Of one connection it is told, and that nothing shows that size is the reason. Where the receiver is not heard of any more behind repeats, it may
/// be gone.
#[test]
fn one_connection_shows_what_is_too_large_as_far_as_it_can() {
    let found = pages_over_a_narrow_path(true, 1.0, 0.3);
    let found = only(&found, "MTU_BLACK_HOLE");
    assert_eq!((found.severity.as_str(), value(found, "connections")), ("WARNING", 1.0));
    assert!(found.confidence < 0.7);
    assert!(
        found.evidence.iter().any(|text| text.starts_with("what is not known")),
        "{found:?}"
    );
    let found = pages_over_a_narrow_path(false, 1.0, 0.3);
    assert!(
        found.iter().all(|finding| finding.kind != "MTU_BLACK_HOLE"),
        "{found:?}"
    );
}

#[test]
fn nothing_is_told_where_nothing_is() {
    for seed in 1..=20 {
        let found = findings(&play(Scenario::load("healthy").unwrap(), 0.3, 7000 + seed).records);
        let told: Vec<_> = found
            .iter()
            .filter(|f| KINDS.iter().any(|(kind, _)| f.kind == *kind))
            .collect();
        assert!(told.is_empty(), "seed {seed}: {told:?}");
        // All of the analysis together.
        let loud: Vec<_> = found.iter().filter(|finding| finding.severity != "INFO").collect();
        assert!(loud.is_empty(), "seed {seed}: {loud:?}");
    }
}

#[test]
fn each_scenario_shows_its_own_trouble_and_no_other() {
    let mut wrong = Vec::new();
    for name in Scenario::built_in_names() {
        let scale = if name == "megalodon" { 0.05 } else { 1.0 };
        let found = findings(&play(Scenario::load(name).unwrap(), scale, 7100).records);
        for finding in &found {
            let says = |what: &str| finding.evidence.iter().any(|line| line.starts_with(what));
            if !says("it may also be") || !says("next: ") {
                wrong.push(format!(
                    "{name}: {} without an alternative or a next step",
                    finding.kind
                ));
            }
        }
        if name != "megalodon" {
            let shown = SHOWN.iter().find(|(scenario, ..)| *scenario == name);
            let (_, first, others) = shown.unwrap_or_else(|| panic!("nothing says what {name} must show"));
            if !first.is_empty() && found.iter().all(|finding| finding.kind != *first) {
                wrong.push(format!("{name}: no {first}"));
            }
            let aloud = found.iter().filter(|f| f.severity != "INFO" && f.confidence >= 0.9);
            let not_there = aloud.filter(|f| f.kind != *first && !others.contains(&f.kind.as_str()));
            wrong.extend(not_there.map(|f| format!("{name}: {}", f.title)));
        }
        for (kind, scenarios) in KINDS {
            let told = found.iter().filter(|finding| finding.kind == kind).count();
            if told != usize::from(scenarios.contains(&name)) {
                wrong.push(format!("{name}: {kind} {told} times"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
