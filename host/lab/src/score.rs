//! What Weir says about a run's capture, held against what became of each frame (`docs/src/lab.md`).
//!
//! The truth comes from the journeys of the frames alone. So do the rules that exclude a loss: they say what no tap in
//! the middle can know, without a look at Weir's answer.

mod counts;
mod judge;
mod kinds;
mod paws;
mod share;
mod streams;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;

use weir_analysis::{Class, Connection, Ends, Sink, Transaction, Verdict};
use weir_record::time::utc_from_tai;

pub use self::counts::Score;
use self::judge::judge;
pub use self::kinds::{Answer, Rule, Truth};
pub(crate) use self::share::Share;
use self::streams::Stream;
use crate::analysis;
use crate::app::read_lines;
use crate::error::LabError;
use crate::run::LabReport;
use crate::truth::{Direction, Journey};

/// Weir's answers about one stream.
#[derive(Default)]
struct Answers {
    /// By time at the tap and sequence number.
    segments: HashMap<(u64, u32), Verdict>,
    /// Bytes never seen.
    ranges: Vec<Verdict>,
}

/// Collects verdicts and the ports of their connections.
#[derive(Default)]
struct Collector {
    verdicts: Vec<Verdict>,
    ports: HashMap<u64, (u16, u16)>,
}

impl Sink for Collector {
    fn connection(&mut self, connection: &Connection<'_>) {
        let message = connection.message();
        let port = |end: Option<weir_messages::v1::Endpoint>| end.map_or(0, |end| end.port as u16);
        self.ports
            .insert(message.id, (port(message.client), port(message.server)));
    }

    fn transaction(&mut self, _: &Transaction<'_>) {}

    fn finding(&mut self, _: weir_messages::v1::Finding) {}

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        self.verdicts.push(*verdict);
    }
}

/// Judges what Weir makes of a run's capture.
pub fn score(report: &LabReport) -> Result<Score, LabError> {
    let journeys: Vec<Journey> = read_lines(&report.journeys)?;
    let answers = analyze(&report.tap)?;
    Ok(judge(&journeys, &answers))
}

/// The capture through the whole analysis.
fn analyze(capture: &Path) -> Result<HashMap<Stream, Answers>, LabError> {
    let mut collector = Collector::default();
    analysis::analyze(capture, &mut collector)?;
    let mut answers: HashMap<Stream, Answers> = HashMap::new();
    for verdict in collector.verdicts {
        let Some(&(client, server)) = collector.ports.get(&verdict.connection.0) else {
            continue;
        };
        let direction = if verdict.from_server {
            Direction::S2c
        } else {
            Direction::C2s
        };
        let stream = answers.entry((client, server, direction)).or_default();
        if matches!(verdict.class, Class::Missed | Class::Lost) {
            stream.ranges.push(verdict);
        } else {
            let time_ns = utc_from_tai(verdict.time);
            stream.segments.insert((time_ns, verdict.seq), verdict);
        }
    }
    Ok(answers)
}
