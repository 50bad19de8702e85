//! What was lost and what the capture missed are the same numbers wherever they are told: verdicts, connections, dialogues, slices
//! of time, the summary.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use support::{built_in, value};
use weir_analysis::{Analyzer, Config, Connection, Ends, Place, Sink, Transaction, Verdict};
use weir_capture::records;
use weir_engine::Config as EngineConfig;
use weir_messages::v1::{self, Analysis, Dialogue, Direction, Finding, Summary, TimeSlice};
use weir_patterns::Watched;

/// Lost before and behind the tap, lost nobody knows where, missed by the capture.
type Counts = [u64; 4];

const fn of_direction(direction: &Direction) -> Counts {
    [
        direction.lost_upstream,
        direction.lost_downstream,
        direction.lost_unknown,
        direction.missed_by_capture,
    ]
}

fn add(sum: &mut Counts, more: Counts) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

#[derive(Default)]
struct Told {
    analysis: Analysis,
    /// By connection and sender.
    verdicts: HashMap<(u64, bool), Counts>,
}

impl Sink for Told {
    fn connection(&mut self, connection: &Connection<'_>) {
        self.analysis.connection(connection);
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.analysis.transaction(transaction);
    }

    fn finding(&mut self, finding: Finding) {
        self.analysis.finding(finding);
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        let place = match verdict.place {
            Place::BeforeTap => 0,
            Place::BehindTap => 1,
            Place::Capture => 3,
            _ => 2,
        };
        let key = (verdict.connection.0, verdict.from_server);
        self.verdicts.entry(key).or_default()[place] += u64::from(verdict.counted);
    }
}

fn tell(path: &Path) -> (Told, Summary) {
    let mut told = Watched::resolved(Told::default(), 100_000_000);
    let mut analyzer = Analyzer::new(Config::default());
    // A file that cannot be read to its end is analysed as far as it goes.
    let _ = records(path, EngineConfig::file(), |records| analyzer.push(records, &mut told));
    let summary = told.finish(&mut analyzer);
    (told.inner, summary)
}

/// Sums of a capture, by sender.
fn check(path: &Path) -> [Counts; 2] {
    let name = path.display();
    let (told, summary) = tell(path);
    let mut all = [Counts::default(); 2];
    for connection in &told.analysis.connections {
        let sides = [&connection.client_to_server, &connection.server_to_client];
        for (side, direction) in sides.into_iter().enumerate() {
            let counts = of_direction(direction.as_ref().unwrap());
            let verdicts = told.verdicts.get(&(connection.id, side == 1));
            let verdicts = verdicts.copied().unwrap_or_default();
            assert_eq!(
                verdicts, counts,
                "{name}: verdicts of side {side} of {:x}",
                connection.id
            );
            add(&mut all[side], counts);
        }
    }
    let mut dialogues = [Counts::default(); 2];
    let told_apart: &[Dialogue] = &summary.dialogues;
    for dialogue in told_apart.iter().chain(&summary.other_dialogues) {
        for (sum, side) in dialogues
            .iter_mut()
            .zip([&dialogue.client_to_server, &dialogue.server_to_client])
        {
            let side: &v1::DialogueSide = side.as_ref().unwrap();
            add(
                sum,
                [
                    side.lost_before_tap,
                    side.lost_behind_tap,
                    side.lost_unknown,
                    side.missed_by_capture,
                ],
            );
        }
    }
    assert_eq!(dialogues, all, "{name}: dialogues");
    told_apart
        .iter()
        .for_each(|dialogue| round_trips(dialogue, &told.analysis));
    let slices = |of: fn(&TimeSlice) -> u64| summary.timeline.iter().map(of).sum::<u64>();
    let lost = all.map(|counts| counts[..3].iter().sum::<u64>());
    assert_eq!(
        [slices(|s| s.client_lost), slices(|s| s.server_lost)],
        lost,
        "{name}: slices"
    );
    let missed = slices(|slice| slice.missed_by_capture);
    assert_eq!(missed, all[0][3] + all[1][3], "{name}: missed in slices");
    let dropped = told
        .analysis
        .findings
        .iter()
        .find(|finding| finding.kind == "CAPTURE_LOSS");
    let dropped = dropped.map_or(0.0, |finding| value(finding, "sourceDropped"));
    assert_eq!(summary.capture_loss, missed + dropped as u64, "{name}: capture loss");
    all
}

/// The smallest round trips of a dialogue are those of its connections.
fn round_trips(dialogue: &Dialogue, analysis: &Analysis) {
    let is_own = |connection: &&v1::Connection| {
        connection.server == dialogue.server
            && connection
                .client
                .as_ref()
                .is_some_and(|client| client.address == dialogue.client_address)
    };
    let own: Vec<_> = analysis.connections.iter().filter(is_own).collect();
    let smallest = |of: fn(&v1::Connection) -> &Option<Direction>| {
        let all = own
            .iter()
            .filter_map(|connection| of(connection).as_ref()?.rtt?.min_seconds);
        all.reduce(f64::min)
    };
    for (told, truth) in [
        (&dialogue.client_to_server, smallest(|c| &c.client_to_server)),
        (&dialogue.server_to_client, smallest(|c| &c.server_to_client)),
    ] {
        let told = told.as_ref().and_then(|side| side.rtt_min_seconds);
        assert_eq!(told, truth, "{dialogue:?}");
    }
}

fn played(name: &str, scale: f64) -> [Counts; 2] {
    let run = built_in(name, scale, 1);
    check(&run.report.captures[0])
}

/// Copies that a mirror made are in the capture too often, not too seldom.
#[test]
fn copies_of_a_mirror_are_not_missed() {
    assert_eq!(played("mirror-duplicates", 0.1).map(|counts| counts[3]), [0; 2]);
}

#[test]
fn what_the_capture_missed_is_counted_in_segments() {
    let [client, server] = played("capture-loss", 0.1);
    assert!(client[3] + server[3] > 0);
}

/// A repeat of which nothing tells whether it was lost is not among those lost nobody knows where.
#[test]
fn losses_are_counted_in_one_way() {
    played("mtu-black-hole", 0.2);
    let [client, server] = played("periodic-loss", 0.1);
    assert!(client[0] + server[0] > 0 && client[1] + server[1] > 0);
}

/// Where the capture's packets are longer than the wire's, among others.
#[test]
fn real_captures_are_counted_in_one_way() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    check(&here.join("../../docs/demo/demo.pcap"));
    let corpus = std::env::var_os("WEIR_CORPUS").map_or(here.join("../../../shared/corpus"), PathBuf::from);
    let Ok(files) = std::fs::read_dir(&corpus) else {
        println!("skipped: no captures at {}", corpus.display());
        return;
    };
    for file in files {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "pcap" || kind == "pcapng") {
            check(&path);
        }
    }
}
