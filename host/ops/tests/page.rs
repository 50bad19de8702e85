//! The page of a daemon that keeps a card, and the files that name its metrics.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_api::facts::{FactStore, Limits};
use weir_api::log::{Config, RecordLog};
use weir_api::state::{ApplianceState, CaptureState};
use weir_messages::v1::{CardPortStatus, CardStatus, Finding, FindingChange, RecordLinkStatus, finding_change::Kind};
use weir_ops::analysis::AnalysisCounters;
use weir_ops::metrics::{Metrics, Sources};
use weir_ops::store::StoreCounters;
use weir_ops::webhook::WebhookCounters;

fn page() -> String {
    let directory = tempfile::tempdir().expect("a folder");
    let config = Config {
        directory: directory.path().to_owned(),
        limit_bytes: 1 << 30,
    };
    let capture = Arc::new(CaptureState::default());
    let port = capture.add_port(0, "eth:\"odd\" name", true);
    port.frames.store(7, std::sync::atomic::Ordering::Relaxed);
    port.set_link(Some(false));
    capture.set_link(RecordLinkStatus {
        lost_records: 5,
        refused: [("SHORT".to_owned(), 3)].into(),
        ..RecordLinkStatus::default()
    });
    let appliance = Arc::new(ApplianceState::default());
    appliance.clock.back.store(1, std::sync::atomic::Ordering::Relaxed);
    appliance
        .clock
        .behind_ns
        .store(2_500_000_000, std::sync::atomic::Ordering::Relaxed);
    appliance.set_card(CardStatus {
        phase: "RUNNING".to_owned(),
        unhealthy: vec!["HOST_LOST".to_owned()],
        servo_offset_ns: -40,
        faults: [("WATCHDOG".to_owned(), 2)].into(),
        ports: vec![
            CardPortStatus::default(),
            CardPortStatus {
                frames_dropped: 9,
                ..CardPortStatus::default()
            },
        ],
        ..CardStatus::default()
    });
    let facts = FactStore::new(Limits::default());
    facts.change_findings(vec![FindingChange {
        id: 1,
        kind: Kind::Opened.into(),
        finding: Some(Finding {
            kind: "SYN_LOSS".to_owned(),
            severity: "CRITICAL".to_owned(),
            ..Finding::default()
        }),
        ..FindingChange::default()
    }]);
    let store = StoreCounters::of(["connections", "blocks"]);
    let rows = |number| [("connections".to_owned(), number)].into();
    store.committed(&rows(7), Duration::from_millis(4));
    store.given_up(&rows(3), true);
    store.compacted(16, 160);
    store.renew(5, 4096, rows(2), rows(4));
    let sources = Sources {
        log: Arc::new(RecordLog::open(config).expect("a log")),
        facts: Arc::new(facts),
        capture,
        appliance,
        analysis: Arc::new(AnalysisCounters::default()),
        store: Some(Arc::new(store)),
        webhook: Arc::new(WebhookCounters::default()),
    };
    Metrics::new(sources).page().expect("a page")
}

/// Names of samples, as queries use them.
fn samples(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect()
}

/// Families by their TYPE lines.
fn families(page: &str) -> Vec<(&str, &str)> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split_once(' ')).collect()
}

#[test]
fn every_state_is_on_the_page() {
    let page = page();
    for line in [
        r#"weir_capture_packets_total{port="0",device="eth:\"odd\" name"} 7"#,
        "weir_link_lost_records_total 5",
        r#"weir_link_refused_frames_total{reason="SHORT"} 3"#,
        r#"weir_card_phase{phase="RUNNING"} 1"#,
        r#"weir_card_unhealthy{reason="HOST_LOST"} 1"#,
        "weir_card_clock_offset_seconds -4e-8",
        r#"weir_card_faults_total{code="WATCHDOG"} 2"#,
        r#"weir_card_port_dropped_frames_total{port="1"} 9"#,
        r#"weir_findings_open{kind="SYN_LOSS",severity="CRITICAL"} 1"#,
        "weir_finding_changes_total 1",
        r#"weir_capture_port_up{port="0",device="eth:\"odd\" name"} 0"#,
        "weir_capture_unmeasured_packets_total 0",
        r#"weir_setup_duration_seconds_bucket{le="+Inf"} 0"#,
        r#"weir_store_rows_total{table="connections"} 7"#,
        r#"weir_store_lost_rows_total{reason="full",table="connections"} 3"#,
        // Also of a table of which nothing was ever lost.
        r#"weir_store_lost_rows_total{reason="failed",table="blocks"} 0"#,
        r#"weir_store_expired_rows_total{reason="retention",table="connections"} 2"#,
        r#"weir_store_expired_rows_total{reason="full",table="connections"} 4"#,
        r#"weir_store_commit_duration_seconds_bucket{le="0.005"} 1"#,
        "weir_store_compacted_files_total 16",
        r#"weir_clock_steps_total{direction="back"} 1"#,
        r#"weir_clock_steps_total{direction="forward"} 0"#,
        "weir_clock_behind_seconds 2.5",
        "weir_store_files 5.0",
        "weir_store_bytes 4096.0",
        "weir_store_full 1.0",
    ] {
        assert!(page.lines().any(|have| have == line), "{line} is not in\n{page}");
    }
    assert!(page.ends_with("\n# EOF\n"));
}

#[test]
fn families_are_unlike_and_named_as_is_usual() {
    let page = page();
    let families = families(&page);
    let mut names = BTreeSet::new();
    for (name, kind) in &families {
        assert!(names.insert(*name), "{name} twice");
        assert!(
            name.starts_with("weir_") || name.starts_with("process_"),
            "{name} is of no namespace"
        );
        assert!(!name.ends_with("_total"), "{name}: a counter's samples have the suffix");
        // Base units only (OpenMetrics, "Units and base units").
        let words: Vec<_> = name.split('_').collect();
        for bad in ["ms", "us", "ns", "milliseconds", "kb", "mib", "percent"] {
            assert!(!words.contains(&bad), "{name} is in {bad}");
        }
        assert!(["counter", "gauge", "histogram"].contains(kind), "{name} is a {kind}");
        assert!(page.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
    assert!(families.len() > 60, "{}", families.len());
}

/// Names of metrics in a text: words that begin as Weir's do.
fn named(text: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_word(c))
        .filter(|word| word.starts_with("weir_") || word.starts_with("process_"))
        .collect()
}

#[test]
fn what_dashboard_rules_and_book_name_is_on_the_page() {
    let page = page();
    // Families without a sample here, because nothing was counted yet, have their names all the same.
    let counters: Vec<_> = families(&page)
        .iter()
        .map(|(name, _)| format!("{name}_total"))
        .collect();
    let mut known = samples(&page);
    known.extend(counters.iter().map(String::as_str));
    known.extend(families(&page).iter().map(|(name, _)| *name));
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for file in ["grafana/weir.json", "prometheus/weir.rules.yml", "src/metrics.md"] {
        let text = std::fs::read_to_string(docs.join(file)).expect(file);
        let named = named(&text);
        assert!(named.len() > 10, "{file} names {}", named.len());
        let unknown: Vec<_> = named.iter().filter(|name| !known.contains(**name)).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}");
    }
    // And the book explains every family.
    let book = std::fs::read_to_string(docs.join("src/metrics.md")).expect("the book");
    let told = named(&book);
    let has = |name: &str| told.contains(name) || told.contains(&*format!("{name}_total"));
    let untold: Vec<_> = families(&page).into_iter().filter(|(name, _)| !has(name)).collect();
    assert!(untold.is_empty(), "docs/src/metrics.md does not explain {untold:?}");
}
