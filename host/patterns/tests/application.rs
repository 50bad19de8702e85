//! What applications do wrong: power and false alarms of its detectors, over scenarios whose truth is their own text.
#![allow(clippy::unwrap_used)]

mod support;

use tempfile::tempdir;
use weir_messages::v1::{Analysis, Finding, finding_value::Value};
use weir_scenario::{Scenario, config::Span, run};

use support::value;

/// The analysis of what a tap of the scenario saw.
fn analyze(scenario: &Scenario, tap: usize) -> Analysis {
    let folder = tempdir().unwrap();
    let report = run(scenario, 1.0, folder.path()).unwrap();
    support::analyze(&report.captures[tap])
}

fn built_in(name: &str, scale: f64, seed: u64) -> Scenario {
    let mut scenario = Scenario::load(name).unwrap();
    scenario.scale(scale);
    scenario.seed = seed;
    scenario
}

fn of_kind<'a>(analysis: &'a Analysis, kind: &str) -> Vec<&'a Finding> {
    analysis
        .findings
        .iter()
        .filter(|finding| finding.kind == kind)
        .collect()
}

fn text<'a>(finding: &'a Finding, key: &str) -> &'a str {
    match finding.values.get(key).and_then(|value| value.value.as_ref()) {
        Some(Value::Text(text)) => text,
        other => panic!("{key} of {finding:?} is {other:?}"),
    }
}

fn numbers(finding: &Finding, key: &str) -> Vec<f64> {
    match finding.values.get(key).and_then(|value| value.value.as_ref()) {
        Some(Value::Numbers(list)) => list.values.clone(),
        other => panic!("{key} of {finding:?} is {other:?}"),
    }
}

fn is_near(got: f64, expected: f64, share: f64) -> bool {
    (got - expected).abs() <= share * expected
}

/// A client and a server with think times, and what the test wants to say.
struct Talk<'a> {
    seconds: f64,
    per_s: f64,
    client: &'a str,
    server: &'a str,
    exchange: &'a str,
    /// Way between the tap and the server.
    leg: &'a str,
    more: &'a str,
    seed: u64,
}

impl Default for Talk<'_> {
    fn default() -> Self {
        Self {
            seconds: 60.0,
            per_s: 20.0,
            client: "stack = \"linux\"",
            server: "stack = \"linux\"",
            exchange: "request = \"300-900\"\ncpu_ms = [1, 5]\nresponse = [{ writes = \"2000-9000\" }]",
            leg: "delay_ms = 1",
            more: "",
            seed: 1,
        }
    }
}

impl Talk<'_> {
    fn analyze(&self) -> Analysis {
        let text = format!(
            r#"
name = "talk"
description = "a test"
duration_s = {seconds}
seed = {seed}
[[host]]
name = "users"
address = "10.9.0.1"
{client}
[[host]]
name = "server"
address = "10.9.0.2"
{server}
[[path]]
between = ["users", "server"]
taps = ["tap"]
[[path.leg]]
forward = {{ delay_ms = 4 }}
backward = {{ delay_ms = 4 }}
[[path.leg]]
forward = {{ {leg} }}
backward = {{ {leg} }}
[[service]]
name = "pages"
host = "server"
port = 8080
cpus = 8
[exchange.page]
{exchange}
[dialogue.visit]
client = "users"
service = "pages"
body = ["page"]
count = [5, 15]
think_ms = [20, 200]
close = "client_fin"
[[load]]
dialogue = "visit"
to_s = {seconds}
per_s = {per_s}
{more}
"#,
            seconds = self.seconds,
            seed = self.seed,
            client = self.client,
            server = self.server,
            exchange = self.exchange,
            per_s = self.per_s,
            leg = self.leg,
            more = self.more,
        );
        analyze(&Scenario::parse(&text, "talk").unwrap(), 0)
    }
}

#[test]
fn sleeps_of_either_side_and_of_both_have_their_length_and_period() {
    const USERS: &str = "10.9.0.1";
    const SERVER: &str = "10.9.0.2";
    // Hosts asleep, ms, seconds from one to the next, length of the run, visits a second.
    type Case = (&'static [&'static str], f64, [f64; 2], f64, f64);
    let cases: [Case; 7] = [
        (&["server"], 100.0, [2.0, 2.0], 40.0, 40.0),
        (&["server"], 1000.0, [16.0, 20.0], 100.0, 8.0),
        (&["server"], 600.0, [4.0, 4.5], 60.0, 10.0),
        (&["users"], 250.0, [3.0, 4.0], 50.0, 20.0),
        (&["users", "server"], 150.0, [5.0, 6.0], 60.0, 40.0),
        (&["users", "server"], 300.0, [2.4, 2.6], 40.0, 20.0),
        (&["users", "server"], 800.0, [10.0, 14.0], 90.0, 10.0),
    ];
    for (seed, (hosts, ms, every, seconds, per_s)) in (101..).zip(cases) {
        let case = format!("{hosts:?} {ms} ms every {every:?} s, seed {seed}");
        let more = format!("[[sleep]]\nhosts = {hosts:?}\nevery_s = {every:?}\nlength_ms = {ms}");
        let talk = Talk {
            seconds,
            per_s,
            more: &more,
            seed,
            ..Talk::default()
        };
        let analysis = talk.analyze();
        let found = of_kind(&analysis, "APPLICATION_SLEEP");
        assert_eq!(found.len(), 1, "{case}: {found:?}");
        let told: Vec<&str> = text(found[0], "hosts").split(", ").collect();
        let expected: Vec<&str> = [("users", USERS), ("server", SERVER)]
            .into_iter()
            .filter_map(|(name, address)| hosts.contains(&name).then_some(address))
            .collect();
        assert_eq!(told, expected, "{case}");
        let (gap, period) = (value(found[0], "gapSeconds"), value(found[0], "periodSeconds"));
        println!("{case}: {gap:.3} s every {period:.2} s");
        assert!(is_near(gap, ms / 1e3, 0.05), "{case}: {gap} s");
        // The mean of what was drawn is not the middle of where it was drawn from.
        let drawn = (every[1] - every[0]) / 12f64.sqrt() / (seconds / every[0]).sqrt() * 3.0;
        let middle = (every[0] + every[1]) / 2.0;
        assert!((period - middle).abs() <= 0.05 * middle + drawn, "{case}: {period} s");
    }
}

#[test]
fn bands_have_their_times() {
    for (seed, bands) in (201..).zip([vec![150.0], vec![250.0, 1200.0], vec![400.0, 600.0, 2000.0]]) {
        let others: String = bands
            .iter()
            .map(|ms| {
                format!(
                    ", {{ writes = \"1000-4000\", weight = 4, wait_ms = [{ms}, {}] }}",
                    ms * 1.015
                )
            })
            .collect();
        let exchange = format!(
            "request = \"300-900\"\nresponse = [{{ writes = \"1000-4000\", weight = 80, wait_ms = [2, 30] }}{others}]"
        );
        let talk = Talk {
            exchange: &exchange,
            seed,
            ..Talk::default()
        };
        let analysis = talk.analyze();
        let found = of_kind(&analysis, "RESPONSE_BANDS");
        assert_eq!(found.len(), 1, "{bands:?}, seed {seed}: {found:?}");
        assert_eq!(found[0].who, "10.9.0.2:8080");
        let told = numbers(found[0], "seconds");
        println!("{bands:?} ms, seed {seed}: {told:?} s");
        assert_eq!(told.len(), bands.len(), "{bands:?}, seed {seed}: {told:?}");
        assert!(
            told.iter().zip(&bands).all(|(told, ms)| is_near(*told, ms / 1e3, 0.05)),
            "{told:?}"
        );
    }
}

/// What was under way when an application fell asleep is answered when it wakes.
#[test]
fn responses_that_slept_are_no_band() {
    for (seed, ms) in (211..).zip([400.0, 900.0]) {
        let more = format!("[[sleep]]\nhosts = [\"server\"]\nevery_s = [4, 6]\nlength_ms = {ms}");
        let talk = Talk {
            per_s: 40.0,
            exchange: "request = \"300-900\"\nresponse = [{ writes = \"1000-4000\", wait_ms = [10, 40] }]",
            more: &more,
            seed,
            ..Talk::default()
        };
        let found = talk.analyze();
        let found = of_kind(&found, "RESPONSE_BANDS");
        assert!(found.is_empty(), "{ms} ms, seed {seed}: {found:?}");
    }
}

/// The last segment of a response that is lost before the tap leaves no gap; the others that are lost tell of the timer.
#[test]
fn a_retransmission_timer_is_no_sure_band() {
    for seed in 221..223 {
        let talk = Talk {
            per_s: 40.0,
            exchange: "request = \"300-900\"\nresponse = [{ writes = \"3000\", wait_ms = [10, 14] }]",
            leg: "delay_ms = 1, loss = 0.01",
            seed,
            ..Talk::default()
        };
        let found = talk.analyze();
        let found = of_kind(&found, "RESPONSE_BANDS");
        assert_eq!(found.len(), 1, "seed {seed}: {found:?}");
        assert_eq!(found[0].confidence, 0.6, "seed {seed}: {found:?}");
    }
}

/// Lost SYNs to the database make its client wait for the SYN timer, and that one's client, and the users.
#[test]
fn a_setup_that_is_lost_behind_is_no_sure_band_of_any_tier() {
    let text = r#"
name = "tiers"
description = "a test"
duration_s = 60
[[host]]
name = "users"
address = "10.8.0.2"
stack = "linux"
[[host]]
name = "balancer"
address = "10.8.1.2"
stack = "linux"
[[host]]
name = "shop"
address = "10.8.2.2"
stack = "linux"
[[host]]
name = "database"
address = "10.8.3.2"
stack = "linux"
[[path]]
between = ["users", "balancer"]
taps = ["tap"]
[[path.leg]]
forward = { delay_ms = 5 }
backward = { delay_ms = 5 }
[[path.leg]]
forward = { delay_ms = 0.1 }
backward = { delay_ms = 0.1 }
[[path]]
between = ["balancer", "shop"]
taps = ["tap"]
[[path.leg]]
forward = { delay_ms = 0.1 }
backward = { delay_ms = 0.1 }
[[path.leg]]
forward = { delay_ms = 0.1 }
backward = { delay_ms = 0.1 }
[[path]]
between = ["shop", "database"]
taps = ["tap"]
[[path.leg]]
forward = { delay_ms = 0.1 }
backward = { delay_ms = 0.1 }
[[path.leg]]
forward = { delay_ms = 0.1, loss = 0.02 }
backward = { delay_ms = 0.1 }
[[service]]
name = "balancer"
host = "balancer"
port = 443
cpus = 8
[[service]]
name = "shop"
host = "shop"
port = 8080
cpus = 8
[[service]]
name = "database"
host = "database"
port = 5432
cpus = 8
[exchange.visit]
request = "200-600"
cpu_ms = [0.2, 1]
calls = ["order"]
pool = "shop"
response = [{ writes = "300-1200" }]
[exchange.order]
request = "200-600"
cpu_ms = [2, 8]
calls = ["query"]
pool = "database"
response = [{ writes = "300-1200" }]
[exchange.query]
request = "100-300"
cpu_ms = [1, 4]
response = [{ writes = "300-1200" }]
[dialogue.visit]
client = "users"
service = "balancer"
body = ["visit"]
count = 1
close = "client_fin"
[dialogue.order]
client = "balancer"
service = "shop"
close = "client_fin"
[dialogue.query]
client = "shop"
service = "database"
close = "client_fin"
[pool.shop]
dialogue = "order"
limit = 200
[pool.database]
dialogue = "query"
limit = 200
[[load]]
dialogue = "visit"
to_s = 55
per_s = 40
"#;
    for seed in 231..233 {
        let mut scenario = Scenario::parse(text, "tiers").unwrap();
        scenario.seed = seed;
        let found = analyze(&scenario, 0);
        let found = of_kind(&found, "RESPONSE_BANDS");
        let of = |host: &str| found.iter().any(|f| f.who.starts_with(host));
        assert!(of("10.8.1.2") && of("10.8.2.2"), "seed {seed}: {found:?}");
        assert!(found.iter().all(|f| f.confidence == 0.6), "seed {seed}: {found:?}");
    }
}

#[test]
fn dribbled_responses_have_their_size_and_cost() {
    // Writes, the size most often, how many of them of the segments, how many segments would do.
    let cases = [
        ("300 17*6 400 17*4 90", 17.0, 11.0 / 13.0, 1.0),
        ("6 45", 45.0, 1.0, 1.0),
        ("1448*5 64*8 1448*5 64*2", 64.0, 0.5, 11.0),
    ];
    for (seed, (writes, bytes, share, needed)) in (301..).zip(cases) {
        let exchange = format!("request = \"300\"\ncpu_ms = [1, 5]\nresponse = [{{ writes = \"{writes}\" }}]");
        let talk = Talk {
            exchange: &exchange,
            seed,
            seconds: 30.0,
            ..Talk::default()
        };
        let analysis = talk.analyze();
        let found = of_kind(&analysis, "TINY_SEGMENTS");
        assert_eq!(found.len(), 1, "{writes}, seed {seed}: {found:?}");
        println!("{writes}, seed {seed}: {:?}", found[0].evidence);
        assert_eq!(value(found[0], "bytes"), bytes);
        assert!(is_near(value(found[0], "share"), share, 0.05), "{writes}: {found:?}");
        let segments = value(found[0], "segments") / value(found[0], "share");
        let rest = segments - value(found[0], "extraSegments");
        let each = segments / (share_of(writes));
        assert!(is_near(rest / each, needed, 0.05), "{writes}: {rest} of {segments}");
    }
    // Small answers, one segment each, are as few as can be.
    let exchange = "request = \"30\"\ncpu_ms = [1, 5]\nresponse = [{ writes = \"20-60\" }]";
    let analysis = Talk {
        exchange,
        seed: 399,
        ..Talk::default()
    }
    .analyze();
    assert!(of_kind(&analysis, "TINY_SEGMENTS").is_empty());
}

/// Segments of a response written so.
fn share_of(writes: &str) -> f64 {
    let times = |word: &str| word.split_once('*').map_or(1.0, |(_, times)| times.parse().unwrap());
    writes.split_whitespace().map(times).sum()
}

#[test]
fn waits_for_delayed_acks_have_their_length() {
    // Stacks of the client and of the server, how long the client's ACKs are delayed, ms.
    for (seed, (stack, ms)) in (401..).zip([("windows", 200.0), ("windows", 120.0), ("linux", 40.0)]) {
        let client = format!("stack = \"{stack}\"\ntcp = {{ delayed_ack_ms = {ms}, ack_pushed = false }}");
        let server = "stack = \"linux\"\ntcp = { nodelay = false }";
        let exchange = "request = \"300-900\"\ncpu_ms = [1, 5]\nresponse = [{ writes = \"700 150\", weight = 1 }, { writes = \"900\", weight = 2 }]";
        let talk = Talk {
            client: &client,
            server,
            exchange,
            seed,
            ..Talk::default()
        };
        let analysis = talk.analyze();
        let found = of_kind(&analysis, "DELAYED_ACK");
        assert_eq!(found.len(), 1, "{stack} {ms} ms, seed {seed}: {found:?}");
        println!("{stack} {ms} ms, seed {seed}: {:?}", found[0].evidence);
        assert!(is_near(value(found[0], "seconds"), ms / 1e3, 0.05), "{found:?}");
        assert!(is_near(value(found[0], "share"), 1.0 / 3.0, 0.1), "{found:?}");
        assert!(
            of_kind(&analysis, "RESPONSE_BANDS").is_empty(),
            "the same waits are not told twice"
        );
    }
    // The same without Nagle's algorithm: nobody waits.
    let exchange = "request = \"300-900\"\ncpu_ms = [1, 5]\nresponse = [{ writes = \"700 150\" }]";
    let client = "stack = \"windows\"";
    let analysis = Talk {
        client,
        exchange,
        seed: 499,
        ..Talk::default()
    }
    .analyze();
    assert!(of_kind(&analysis, "DELAYED_ACK").is_empty());
}

#[test]
fn keep_alives_have_their_interval_and_closed_windows_their_host() {
    let analysis = analyze(&built_in("keep-alive", 0.5, 501), 0);
    let found = of_kind(&analysis, "KEEP_ALIVE_STORM");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].who, "10.2.1.10");
    assert!(is_near(value(found[0], "intervalSeconds"), 1.0, 0.1), "{found:?}");
    let analysis = analyze(&built_in("zero-window", 0.5, 502), 0);
    let found = of_kind(&analysis, "ZERO_WINDOW");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(text(found[0], "hosts"), "10.2.0.10");
}

/// What this file is about.
const KINDS: [&str; 7] = [
    "APPLICATION_SLEEP",
    "REQUEST_PAUSES",
    "RESPONSE_BANDS",
    "DELAYED_ACK",
    "TINY_SEGMENTS",
    "SLOWING_RESPONSES",
    "KEEP_ALIVE_STORM",
];

/// Which of them a built-in scenario has by its text.
fn has(name: &str, kind: &str) -> bool {
    let names: &[&str] = match kind {
        "APPLICATION_SLEEP" => &["app-sleep"],
        "REQUEST_PAUSES" => &["request-pauses"],
        "RESPONSE_BANDS" => &["response-bands"],
        "DELAYED_ACK" => &["delayed-ack"],
        "TINY_SEGMENTS" => &["tiny-segments"],
        // More and more users come, to a service with a limit.
        "SLOWING_RESPONSES" => &["capacity-ceiling"],
        "KEEP_ALIVE_STORM" => &["keep-alive"],
        _ => &[],
    };
    names.contains(&name)
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    for seed in 1..=20 {
        let analysis = analyze(&built_in("healthy", 0.5, seed), 0);
        for kind in KINDS {
            let found = of_kind(&analysis, kind);
            assert!(found.is_empty(), "seed {seed}: {found:?}");
        }
    }
}

#[test]
fn other_scenarios_have_other_findings() {
    for name in Scenario::built_in_names().filter(|name| *name != "megalodon") {
        let analysis = analyze(&built_in(name, 0.5, 7), 0);
        for kind in KINDS.into_iter().filter(|kind| !has(name, kind)) {
            let found = of_kind(&analysis, kind);
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}

/// Clients that wait for a timer of their own within their requests.
#[test]
fn a_timer_within_requests_is_told_with_its_length() {
    let analysis = analyze(&built_in("request-pauses", 0.5, 11), 0);
    let found = of_kind(&analysis, "REQUEST_PAUSES");
    assert_eq!(found.len(), 1, "{found:?}");
    let requests = analysis.transactions.iter().filter(|t| t.request_bytes > 0).count() as f64;
    let of = |key: &str| value(found[0], key);
    assert!((of("seconds") - 1.0).abs() < 0.02, "{found:?}");
    assert!(of("share") > 0.99, "{found:?}");
    assert!(
        (of("costSeconds") / requests - 1.0).abs() < 0.03,
        "{requests}: {found:?}"
    );
}

/// A tier that sleeps alone: the other falls silent after it, and does not sleep. Beside it, how often data is lost.
#[test]
fn one_of_two_tiers_sleeps_and_the_other_is_not_blamed() {
    let hosts = [("web", "192.168.1.1", 0.7, 2031), ("content", "10.0.0.10", 0.3, 2032)];
    for (host, address, seconds, seed) in hosts {
        let mut scenario = Scenario::load("megalodon").unwrap();
        scenario.load.truncate(2);
        scenario.duration_s = 190.0;
        scenario.scale(0.5);
        scenario.seed = seed;
        scenario.sleep[0].hosts = vec![host.to_owned()];
        scenario.sleep[0].length_ms = Span::Fixed(seconds * 1e3);
        scenario.path[1].leg[2].syn_batches.clear();
        let analysis = analyze(&scenario, 0);
        let found = of_kind(&analysis, "APPLICATION_SLEEP");
        assert_eq!(found.len(), 1, "{host}: {found:?}");
        assert_eq!(found[0].who, address, "{found:?}");
        let (gap, period) = (value(found[0], "gapSeconds"), value(found[0], "periodSeconds"));
        println!("{host}: {gap:.3} s every {period:.2} s");
        assert!(is_near(gap, seconds, 0.05), "{gap}");
        assert!(is_near(period, 4.5, 0.05), "{period}");
        let found = of_kind(&analysis, "PERIODIC_LOSS");
        assert_eq!(found.len(), 1, "{host}: {found:?}");
        let (rate, lost) = (value(found[0], "rateInside"), value(found[0], "lostInside"));
        println!("{host}: {lost} lost, {rate:.4} of all");
        assert!(is_near(rate, 0.012, 0.03 + 2.0 / lost.sqrt()), "{rate} of {lost}");
    }
}

/// Users, a front tier and a database that sleep.
struct Tiers<'a> {
    /// Asleep.
    hosts: &'a [&'a str],
    users: u32,
    /// Their pause, ms.
    think: &'a str,
    /// Time that the database takes, ms.
    wait: &'a str,
    /// The front tier uses its connections again.
    reuse: bool,
    seed: u64,
}

fn tiers_with_sleep(tiers: &Tiers<'_>) -> Analysis {
    let Tiers {
        hosts,
        users,
        think,
        wait,
        reuse,
        seed,
    } = tiers;
    let text = format!(
        r#"
name = "tiers"
description = "a test"
duration_s = 120
seed = {seed}
[[host]]
name = "users"
address = "10.8.0.2"
stack = "linux"
[[host]]
name = "shop"
address = "10.8.1.2"
stack = "linux"
[[host]]
name = "database"
address = "10.8.2.2"
stack = "linux"
[[path]]
between = ["users", "shop"]
taps = ["tap"]
[[path.leg]]
forward = {{ delay_ms = 3 }}
backward = {{ delay_ms = 3 }}
[[path.leg]]
forward = {{ delay_ms = 0.02 }}
backward = {{ delay_ms = 0.02 }}
[[path]]
between = ["shop", "database"]
taps = ["tap"]
[[path.leg]]
forward = {{ delay_ms = 0.02 }}
backward = {{ delay_ms = 0.02 }}
[[path.leg]]
forward = {{ delay_ms = 0.3, jitter_ms = 0.05 }}
backward = {{ delay_ms = 0.3, jitter_ms = 0.05 }}
[[service]]
name = "shop"
host = "shop"
port = 443
[[service]]
name = "database"
host = "database"
port = 5432
workers = 60
[exchange.page]
request = "300-900"
cpu_ms = [0.05, 0.4]
calls = ["query"]
pool = "database"
response = [{{ writes = "900-3000" }}]
[exchange.query]
request = "100-400"
response = [{{ writes = "300-1200", wait_ms = {wait} }}]
[dialogue.visit]
client = "users"
service = "shop"
body = ["page"]
think_ms = {think}
close = "client_fin"
[dialogue.query]
client = "shop"
service = "database"
close = "client_fin"
[pool.database]
dialogue = "query"
limit = 200
reuse = {reuse}
[[load]]
dialogue = "visit"
to_s = 116
users = {users}
spread_ms = [0, 1000]
[[sleep]]
hosts = {hosts:?}
every_s = [7, 9]
length_ms = 700
"#
    );
    analyze(&Scenario::parse(&text, "tiers").unwrap(), 0)
}

/// What is ready when the hosts wake is answered at once, and nothing for a while after it. Who wakes by itself opens
/// connections before the other can have answered. Whose client sleeps has answered, and rests.
#[test]
fn tiers_that_sleep_have_their_length_and_hosts() {
    let slow = Tiers {
        hosts: &["shop", "database"],
        users: 60,
        think: "0",
        wait: "[270, 430]",
        reuse: false,
        seed: 2041,
    };
    let quick = Tiers {
        hosts: &["users"],
        users: 50,
        think: "[500, 1500]",
        wait: "[30, 60]",
        reuse: true,
        seed: 2044,
    };
    let cases = [
        Tiers { ..slow },
        Tiers {
            hosts: &["database"],
            seed: 2042,
            ..slow
        },
        Tiers {
            hosts: &["shop"],
            seed: 2043,
            ..slow
        },
        quick,
    ];
    for tiers in cases {
        let analysis = tiers_with_sleep(&tiers);
        let found = of_kind(&analysis, "APPLICATION_SLEEP");
        assert_eq!(found.len(), 1, "{:?}: {found:?}", tiers.hosts);
        let (gap, told) = (value(found[0], "gapSeconds"), text(found[0], "hosts"));
        println!("{:?}: {told} {gap:.3} s", tiers.hosts);
        let address = |host: &&str| match *host {
            "users" => "10.8.0.2",
            "shop" => "10.8.1.2",
            _ => "10.8.2.2",
        };
        let expected: Vec<&str> = tiers.hosts.iter().map(address).collect();
        assert_eq!(told, expected.join(", "), "{found:?}");
        assert!(is_near(gap, 0.7, 0.05), "{gap} s: {found:?}");
        // While all wait for the database, or the users rest, nothing comes that their TCP could acknowledge: it may be
        // the way to them.
        let is_heard = tiers.hosts == ["shop"];
        assert_eq!(found[0].confidence > 0.9, is_heard, "{found:?}");
    }
}

#[test]
fn a_third_of_the_megalodon_has_what_its_text_says() {
    let analysis = analyze(&built_in("megalodon", 0.3, 2016), 0);
    let one = |kind: &str, who: &str| {
        let found = of_kind(&analysis, kind);
        let about: Vec<_> = found.iter().filter(|finding| finding.who == who).collect();
        assert_eq!(about.len(), 1, "{kind} {who}: {found:?}");
        (*about[0]).clone()
    };
    let sleep = one("APPLICATION_SLEEP", "10.0.0.10, 192.168.1.1");
    assert_eq!(text(&sleep, "hosts"), "10.0.0.10, 192.168.1.1");
    assert!(is_near(value(&sleep, "gapSeconds"), 0.3, 0.05), "{sleep:?}");
    assert!(is_near(value(&sleep, "periodSeconds"), 4.5, 0.05), "{sleep:?}");
    let content = "10.0.0.10:5433";
    let bands = numbers(&one("RESPONSE_BANDS", content), "seconds");
    assert_eq!(bands.len(), 3, "{bands:?}");
    assert!(
        bands
            .iter()
            .zip([0.302, 0.502, 0.902])
            .all(|(told, s)| is_near(*told, s, 0.05)),
        "{bands:?}"
    );
    assert_eq!(value(&one("TINY_SEGMENTS", content), "bytes"), 29.0);
    let slowing = one("SLOWING_RESPONSES", content);
    assert!(slowing.evidence[0].starts_with("request blk[127]:"), "{slowing:?}");
    assert!(of_kind(&analysis, "DELAYED_ACK").is_empty());
    // Thirty workers; with the processor's share each has its connection for 0.73 s or so.
    let ceiling = one("CAPACITY_CEILING", content);
    assert!(is_near(value(&ceiling, "inProgress"), 30.0, 0.1), "{ceiling:?}");
    assert!(is_near(value(&ceiling, "perSecond"), 30.0 / 0.73, 0.1), "{ceiling:?}");
}
