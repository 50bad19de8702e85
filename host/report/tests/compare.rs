//! Comparisons of simulated captures: healthy ones are alike, a slowed server stands first.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashSet;

use support::Html;
use weir_analysis::{Analyzer, Config};
use weir_engine::Config as EngineConfig;
use weir_messages::v1::Comparison;
use weir_patterns::Watched;
use weir_report::compare::{cells, compare, document, sections, verdict};
use weir_report::{Sampler, html, markdown};
use weir_scenario::{Scenario, run};

fn sample(scenario: &Scenario, scale: f64) -> Sampler {
    let folder = tempfile::tempdir().unwrap();
    let made = run(scenario, scale, folder.path()).unwrap();
    let mut sampler = Watched::new(Sampler::default());
    let mut analyzer = Analyzer::new(Config::default());
    weir_capture::records(&made.captures[0], EngineConfig::file(), |records| {
        analyzer.push(records, &mut sampler)
    })
    .unwrap();
    analyzer.finish(&mut sampler);
    sampler.complete();
    sampler.inner
}

const HEALTHY: &str = include_str!("../../scenario/scenarios/healthy.toml");

/// The healthy scenario with a part of its text replaced.
fn healthy(seed: u64, what: &str, by: &str) -> Sampler {
    healthy_for(0.3, seed, what, by)
}

fn healthy_for(scale: f64, seed: u64, what: &str, by: &str) -> Sampler {
    assert!(HEALTHY.contains(what), "{what}");
    let mut scenario = Scenario::parse(&HEALTHY.replace(what, by), "healthy").unwrap();
    scenario.scale(scale);
    scenario.seed = seed;
    sample(&scenario, scale)
}

fn significant(comparison: &Comparison) -> Vec<(&str, &str, f64)> {
    let all = comparison.differences.iter().filter(|d| d.significant);
    all.map(|d| (d.measure.as_str(), d.of.as_str(), d.effect.unwrap()))
        .collect()
}

#[test]
fn captures_with_nothing_in_common_are_not_told_to_be_alike() {
    let here = healthy_for(0.02, 41, "", "");
    let none = Sampler::default();
    for pair in [[&here, &none], [&none, &here], [&none, &none]] {
        let told = verdict(&compare(["a", "b"], pair));
        assert!(told.starts_with("Nothing was compared"), "{told}");
    }
    let told = verdict(&compare(["a", "b"], [&here, &here]));
    assert!(told.starts_with("No significant difference"), "{told}");
}

#[test]
fn healthy_captures_do_not_differ() {
    let samples: Vec<_> = (41..47).map(|seed| healthy(seed, "", "")).collect();
    for pair in samples.windows(2) {
        let found = compare(["a", "b"], [&pair[0], &pair[1]]);
        assert!(found.tests >= 5, "{}", found.tests);
        assert!(significant(&found).is_empty(), "{:?}", significant(&found));
        assert!(found.only_first.is_empty() && found.only_second.is_empty());
        let text = format!("{:?}", sections(&found));
        assert!(text.contains("No significant difference"), "{text}");
    }
}

#[test]
fn a_slowed_server_stands_first() {
    let before = healthy(51, "", "");
    let after = healthy(52, "cpu_ms = [1, 4]", "cpu_ms = [9, 12]");
    let found = compare(["before", "after"], [&before, &after]);
    let all = significant(&found);
    assert!(!all.is_empty());
    let (measure, of, effect) = all[0];
    assert_eq!(measure, "SERVER_TIME", "{all:?}");
    assert!(of.starts_with("port 443") && effect > 0.5, "{all:?}");
    // The other tier did not change.
    assert!(all.iter().all(|(_, of, _)| !of.starts_with("port 5432")), "{all:?}");
    assert!(
        all.iter()
            .any(|(measure, of, _)| (*measure, *of) == ("RESPONSE_TIME", "port 443")),
        "{all:?}"
    );
    let first = &found.differences[0];
    let (a, b) = (first.first.unwrap().value, first.second.unwrap().value);
    assert!(b > a, "{a} {b}");
    // 1 to 4 ms of work became 9 to 12.
    let cost = first.cost_seconds.unwrap();
    assert!((cost - 8e-3).abs() < 0.5e-3, "{cost}");

    let text = html(&document(&found));
    let parsed = Html::parse(&text);
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    assert!(parsed.text.contains("Server time of port 443"), "{}", parsed.text);
}

#[test]
fn a_lossy_path_shows_as_retransmissions() {
    let before = healthy(61, "", "");
    let after = healthy(
        62,
        "backward = { delay_ms = 10,",
        "backward = { loss = 0.02, delay_ms = 10,",
    );
    let found = compare(["before", "after"], [&before, &after]);
    let all = significant(&found);
    assert!(
        all.iter()
            .any(|(measure, of, _)| *measure == "RETRANSMITTED_BY_SERVER" && *of == "port 443"),
        "{all:?}"
    );
    assert!(
        found.only_second.iter().any(|f| f.kind == "RETRANSMISSION_RATE"),
        "{:?}",
        found.only_second
    );
}

/// What is too little to test is shown all the same, by what it costs.
#[test]
fn a_few_transactions_are_compared() {
    let before = healthy_for(0.01, 71, "", "");
    let after = healthy_for(0.01, 71, "cpu_ms = [1, 4]", "cpu_ms = [901, 904]");
    let found = compare(["good", "bad"], [&before, &after]);
    assert!(significant(&found).is_empty(), "{found:?}");
    // Load alone has as much to test as the capture has time.
    let tested = found.differences.iter().filter(|d| d.p.is_some());
    let tested: HashSet<&str> = tested.map(|d| d.measure.as_str()).collect();
    assert_eq!(tested, HashSet::from(["NEW_CONNECTIONS", "REQUESTS"]));
    let of_web = |measure: &str| {
        let mut all = found.differences.iter().enumerate();
        all.find(|(_, d)| d.measure == measure && d.of == "port 443").unwrap()
    };
    let (place, server) = of_web("SERVER_TIME");
    assert!(place < 4, "{:?}", found.differences);
    assert!(server.cost_seconds.unwrap() > 0.5, "{server:?}");
    let (_, network) = of_web("NETWORK_TIME");
    assert!(network.cost_seconds.unwrap().abs() < 0.1, "{network:?}");
    let text = format!("{:?}", sections(&found));
    assert!(text.contains("too few to tell from chance"), "{text}");
    // The largest of them is told, and not as a difference.
    let text = markdown(&document(&found), None);
    let answer = text
        .lines()
        .find(|line| line.contains("No significant difference"))
        .unwrap();
    assert!(answer.starts_with("No significant difference"), "{answer}");
    assert!(answer.contains(" Of these most: "), "{answer}");
    // Loads are counted over time, of which the capture has some seconds.
    let load = found.differences.iter().find(|d| d.measure == "REQUESTS").unwrap();
    assert!(cells(load)[0].ends_with(" s"), "{:?}", cells(load));
}

#[test]
fn a_capture_does_not_differ_from_itself() {
    let few = healthy_for(0.01, 71, "", "");
    let text = markdown(&document(&compare(["/in/a.pcap", "/in/b.pcap"], [&few, &few])), None);
    let answer = text
        .lines()
        .find(|line| line.contains("No significant difference"))
        .unwrap();
    assert!(answer.starts_with("No significant difference"), "{answer}");
    assert!(!answer.contains('→'), "{answer}");
    assert!(text.starts_with("# a.pcap and b.pcap compared"), "{text}");
    assert!(text.contains("First: `a.pcap`; second: `b.pcap`."), "{text}");
}
