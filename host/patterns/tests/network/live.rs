//! A stream without end: minutes of scenarios one after another through one engine, as a daemon gets them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::tempdir;
use weir_analysis::{Analyzer, Config as AnalysisConfig};
use weir_capture::{CaptureFile, Feed, Item};
use weir_engine::{Config, Engine};
use weir_messages::v1::finding_change::Kind;
use weir_messages::v1::{Analysis, FindingChange};
use weir_patterns::Watched;
use weir_patterns::changes::{Changes, HOLD};
use weir_record::time::tai_from_utc;
use weir_scenario::{Scenario, run};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
/// Short, so that the test is.
const WINDOW: u64 = 4 * MINUTE;
/// Bins of 10 ms.
const BINS: usize = (WINDOW / 10_000_000) as usize;

/// A daemon's analysis, and what it keeps.
struct Daemon {
    engine: Engine,
    analyzer: Analyzer,
    watched: Watched<Analysis>,
    changes: Changes,
    told: Vec<FindingChange>,
    now: u64,
    most_bins: usize,
    most_open: usize,
}

impl Daemon {
    fn new() -> Self {
        Self {
            engine: Engine::new(Config::appliance()),
            analyzer: Analyzer::new(AnalysisConfig {
                window: Some(WINDOW),
                ..AnalysisConfig::default()
            }),
            watched: Watched::live(Analysis::default(), WINDOW),
            changes: Changes::default(),
            told: Vec::new(),
            now: 0,
            most_bins: 0,
            most_open: 0,
        }
    }

    /// The frames of a capture, their times moved by `shift` ns; findings are asked for every five seconds.
    fn take(&mut self, capture: &Path, shift: u64) {
        let mut file = CaptureFile::open(capture).unwrap();
        let mut feed = Feed::default();
        let mut records = Vec::new();
        let mut asked = self.now;
        let mut more = true;
        while more {
            let engine = &mut self.engine;
            more = feed
                .read(&mut file, 16, |word| match word.item {
                    Item::Packet(meta) => {
                        let mut meta = *meta;
                        meta.time += shift;
                        engine.packet(&meta, word.captured, &mut records);
                    }
                    Item::Untracked(reason) => panic!("a frame was not tracked: {reason:?}"),
                })
                .unwrap();
            if let Some(newest) = records.last() {
                self.now = newest.time();
                self.watched.time(self.now);
            }
            self.analyzer.push(&records, &mut self.watched);
            records.clear();
            if self.now >= asked + 5 * SECOND {
                asked = self.now;
                self.ask();
            }
        }
    }

    fn ask(&mut self) {
        self.analyzer.interim(&mut self.watched);
        self.watched.complete();
        let found = std::mem::take(&mut self.watched.inner).findings;
        self.told.extend(self.changes.renew(self.now, &found));
        self.most_bins = self.most_bins.max(self.watched.timeline().bins().len());
        self.most_open = self.most_open.max(self.changes.len());
    }

    /// Times of a kind's openings and closings.
    fn times(&self, kind: &str, change: Kind) -> Vec<u64> {
        let told = self.told.iter().filter(|told| told.kind() == change);
        told.filter(|told| told.finding.as_ref().unwrap().kind == kind)
            .map(|told| tai_from_utc(told.time.unwrap().unix_nanos() as u64))
            .collect()
    }

    /// All that is kept, as text: its length grows with what is kept.
    fn size(&self) -> usize {
        format!("{:?}{:?}", self.watched, self.changes).len()
    }
}

fn capture(name: &str, scale: f64, folder: &Path) -> (PathBuf, u64) {
    let mut scenario = Scenario::load(name).unwrap();
    scenario.scale(scale);
    scenario.seed = 5;
    let start = tai_from_utc(scenario.start_unix_s * SECOND);
    (run(&scenario, scale, folder).unwrap().captures.remove(0), start)
}

#[test]
fn findings_open_and_close_and_memory_stays() {
    let folder = tempdir().unwrap();
    let (healthy, start) = capture("healthy", 0.2, folder.path());
    let (flood, _) = capture("syn-flood", 0.2, folder.path());
    let (refused, _) = capture("refused", 1.0, folder.path());
    let mut daemon = Daemon::new();
    let mut sizes = BTreeMap::new();
    // Minutes 10 and 40 have a flood, minute 20 a service that is down.
    for minute in 0..60 {
        let capture = match minute {
            10 | 40 => &flood,
            20 => &refused,
            _ => &healthy,
        };
        daemon.take(capture, minute * MINUTE);
        if minute % 10 == 9 {
            sizes.insert(minute, daemon.size());
        }
    }
    // The flood begins after 20 s of its minute and ends after 40 s.
    let opened = daemon.times("SYN_FLOOD", Kind::Opened);
    let closed = daemon.times("SYN_FLOOD", Kind::Closed);
    assert_eq!((opened.len(), closed.len()), (2, 2), "{opened:?} {closed:?}");
    for ((opened, closed), minute) in opened.iter().zip(&closed).zip([10, 40]) {
        let begin = start + minute * MINUTE + 20 * SECOND;
        // While it lasts: findings are asked for every five seconds, and a SYN may wait for four.
        assert!((begin..begin + 12 * SECOND).contains(opened), "{}", opened - begin);
        let over = begin + 20 * SECOND;
        assert!(
            (over..over + 3 * MINUTE + WINDOW + HOLD).contains(closed),
            "{}",
            closed - over
        );
    }
    // The findings of single connections are of the window, too.
    let failed = daemon.times("FAILED_CONNECTIONS", Kind::Opened);
    let ended = daemon.times("FAILED_CONNECTIONS", Kind::Closed);
    assert_eq!((failed.len(), ended.len()), (3, 3), "{failed:?} {ended:?}");
    // Each is told of when it opens and closes and about once a minute between. Connections that a minute leaves open are
    // there again in the next, with the same data: repeats that nobody needed.
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for told in &daemon.told {
        *kinds.entry(&told.finding.as_ref().unwrap().kind).or_default() += 1;
    }
    assert!(daemon.told.len() < 260, "{kinds:?}");

    // The window moves on with records, which come every few seconds here.
    assert!(
        daemon.most_bins <= BINS + BINS / 20 && daemon.most_bins > BINS / 2,
        "{}",
        daemon.most_bins
    );
    assert!(daemon.most_open < 20, "{}", daemon.most_open);
    println!("sizes by minute: {sizes:?}");
    let quiet = [9, 39, 59].map(|minute| sizes[&minute]);
    assert!(quiet.iter().all(|&size| size < quiet[0] * 3 / 2), "{sizes:?}");
}

/// SYNs are lost in batches from 20 to 45 s on.
#[test]
fn batches_of_lost_syns_are_told_while_they_come() {
    let folder = tempdir().unwrap();
    let (healthy, start) = capture("healthy", 0.2, folder.path());
    let (syn_loss, _) = capture("syn-loss", 1.0, folder.path());
    let mut daemon = Daemon::new();
    daemon.take(&healthy, 0);
    daemon.take(&syn_loss, MINUTE);
    daemon.take(&healthy, 2 * MINUTE);
    let opened = daemon.times("SYN_LOSS_BURST", Kind::Opened);
    assert_eq!(opened.len(), 1, "{opened:?}");
    let begin = start + MINUTE + 20 * SECOND;
    // Who loses one is set up a second later; connections go on for seconds, and are over four after their end.
    assert!(opened[0] < begin + 5 * SECOND, "{}", opened[0] - begin);
}
