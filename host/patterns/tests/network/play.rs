//! Scenarios to records, and records to findings.

use std::path::Path;

use tempfile::tempdir;
use weir_analysis::{Analyzer, Config};
use weir_capture::records;
use weir_engine::Config as EngineConfig;
use weir_messages::v1::{Analysis, Finding};
use weir_patterns::Watched;
use weir_record::Record;
use weir_scenario::{Report, Scenario, run};

/// A scenario that ran, as the records of its first tap.
pub struct Played {
    pub report: Report,
    pub records: Vec<Record>,
    /// UTC, s.
    pub start: f64,
}

/// Bytes before the frame of each packet in a pcap file; seconds and nanoseconds come first.
pub const HEADER: usize = 16;

/// Run a scenario; `edit` changes the packets of its capture, header and frame, or leaves them out.
pub fn play_edited(mut scenario: Scenario, scale: f64, seed: u64, edit: impl FnMut(&mut [u8]) -> bool) -> Played {
    scenario.scale(scale);
    scenario.seed = seed;
    let folder = tempdir().unwrap();
    let report = run(&scenario, scale, folder.path()).unwrap();
    let capture = &report.captures[0];
    rewrite(capture, edit);
    let mut all = Vec::new();
    records(capture, EngineConfig::file(), |some| all.extend_from_slice(some)).unwrap();
    Played {
        start: scenario.start_unix_s as f64,
        report,
        records: all,
    }
}

pub fn play(scenario: Scenario, scale: f64, seed: u64) -> Played {
    play_edited(scenario, scale, seed, |_| true)
}

fn rewrite(path: &Path, mut edit: impl FnMut(&mut [u8]) -> bool) {
    let mut bytes = std::fs::read(path).unwrap();
    let (header, mut rest) = bytes.split_at_mut(24);
    let mut out = header.to_vec();
    while rest.len() >= HEADER {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (packet, after) = rest.split_at_mut(HEADER + length);
        if edit(packet) {
            out.extend_from_slice(packet);
        }
        rest = after;
    }
    std::fs::write(path, out).unwrap();
}

/// Everything that the analysis finds in the records.
pub fn findings(records: &[Record]) -> Vec<Finding> {
    let mut out = Watched::new(Analysis::default());
    let mut analyzer = Analyzer::new(Config::default());
    analyzer.push(records, &mut out);
    analyzer.finish(&mut out);
    out.complete();
    out.inner.findings
}

/// The only finding of a kind.
#[track_caller]
pub fn only<'a>(findings: &'a [Finding], kind: &str) -> &'a Finding {
    let mut found = findings.iter().filter(|finding| finding.kind == kind);
    let first = found.next().unwrap_or_else(|| {
        let kinds: Vec<_> = findings.iter().map(|finding| (&finding.kind, &finding.title)).collect();
        panic!("no {kind} in {kinds:?}")
    });
    assert_eq!(found.next(), None);
    first
}

/// Start and end of a finding, UTC s.
pub fn span(finding: &Finding) -> (f64, f64) {
    let seconds = |time: Option<weir_messages::Timestamp>| time.unwrap().unix_nanos() as f64 / 1e9;
    (seconds(finding.start), seconds(finding.end))
}

/// Within a share of what is true.
#[track_caller]
pub fn assert_near(what: &str, got: f64, truth: f64, share: f64) {
    assert!(
        (got - truth).abs() <= share * truth.abs(),
        "{what}: {got}, in truth {truth}"
    );
}
