//! Scenarios run and analysed in this process, in folders that go when the test is over.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;

use tempfile::{TempDir, tempdir};
use weir_analysis::{Analyzer, Config, Sink};
use weir_capture::records;
use weir_engine::Config as EngineConfig;
use weir_messages::v1::{Analysis, Finding, Summary, finding_value};
use weir_patterns::Watched;
use weir_scenario::{Report, Scenario, run};

/// A scenario that ran: its files, and what the analysis of one tap says.
pub struct Run {
    pub folder: TempDir,
    pub report: Report,
    pub answer: Analysis,
    /// UTC, s.
    pub start: f64,
    name: String,
}

/// Run a scenario and analyse the capture of its first tap.
pub fn play(mut scenario: Scenario, scale: f64, seed: u64) -> Run {
    scenario.scale(scale);
    scenario.seed = seed;
    let folder = tempdir().unwrap();
    let report = run(&scenario, scale, folder.path()).unwrap();
    let answer = analyze(&report.captures[0]);
    Run {
        folder,
        report,
        answer,
        start: scenario.start_unix_s as f64,
        name: scenario.name,
    }
}

/// A built-in scenario.
pub fn built_in(name: &str, scale: f64, seed: u64) -> Run {
    play(Scenario::load(name).unwrap(), scale, seed)
}

impl Run {
    /// Lines of the truth file `NAME-kind.jsonl`.
    pub fn truth(&self, kind: &str) -> Vec<serde_json::Value> {
        let path = self.folder.path().join(format!("{}-{kind}.jsonl", self.name));
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Findings of a kind.
    pub fn found(&self, kind: &str) -> Vec<&Finding> {
        self.answer
            .findings
            .iter()
            .filter(|finding| finding.kind == kind)
            .collect()
    }
}

/// A number among the values of a finding.
pub fn value(finding: &Finding, key: &str) -> f64 {
    match finding.values.get(key).and_then(|value| value.value.as_ref()) {
        Some(finding_value::Value::Number(number)) => *number,
        other => panic!("{key} is {other:?} in {finding:?}"),
    }
}

/// Everything that `weir analyze` tells of a capture.
pub fn analyze(path: &Path) -> Analysis {
    let mut out = Watched::new(Analysis::default());
    let mut summary = tell(path, &mut out);
    out.complete();
    out.summarize(&mut summary);
    out.inner.summary = Some(summary);
    out.inner
}

/// Give a sink the facts of a capture.
pub fn tell(path: &Path, out: &mut impl Sink) -> Summary {
    let mut analyzer = Analyzer::new(Config::default());
    records(path, EngineConfig::file(), |records| analyzer.push(records, out)).unwrap();
    analyzer.finish(out)
}
