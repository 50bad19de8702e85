//! ECN marks at the tap as the records tell them (PACKET, `docs/src/records.md`), held against those that the wire made.

use crate::analysis::measure;
use crate::app::read_lines;
use crate::error::LabError;
use crate::run::LabReport;
use crate::truth::Journey;
use std::collections::HashMap;
use weir_record::time::utc_from_tai;
use weir_record::{Kind, Packet, Record};

/// The two bits of ECN in TOS, and congestion experienced (RFC 3168 5).
const CE: u8 = 3;

/// Marks of a run, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MarkScore {
    /// Frames in the tap's capture that the wire has marked, and those that only the records call marked.
    pub judged: u64,
    /// Of those: both say so.
    pub right: u64,
    /// A line for each that only one says.
    pub misses: Vec<String>,
}

impl MarkScore {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.judged += other.judged;
        self.right += other.right;
        self.misses.extend_from_slice(&other.misses);
    }
}

/// Judges the marks in the run's capture of the middle.
pub fn score_marks(report: &LabReport) -> Result<MarkScore, LabError> {
    let journeys: Vec<Journey> = read_lines(&report.journeys)?;
    let mut said: HashMap<(u64, u32), bool> = HashMap::new();
    let config = weir_engine::Config {
        digests: true,
        ..weir_engine::Config::file()
    };
    measure(&report.tap, config, |records| {
        for record in records.iter().filter(|r| is_packet(r)) {
            let packet = Packet::decode(record);
            said.insert((utc_from_tai(record.time()), packet.seq), packet.tos & CE == CE);
        }
    })?;
    Ok(judge(&journeys, &said))
}

fn is_packet(record: &Record) -> bool {
    record.kind() == Some(Kind::Packet) && !record.is_continuation()
}

/// `said`: by time at the tap and sequence number.
fn judge(journeys: &[Journey], said: &HashMap<(u64, u32), bool>) -> MarkScore {
    let mut score = MarkScore::default();
    for journey in journeys {
        let Some(tcp) = &journey.tcp else { continue };
        for passage in journey.tap.iter().filter(|passage| passage.captured) {
            let said = said.get(&(passage.time_ns, tcp.seq)).copied();
            if !passage.marked && said != Some(true) {
                continue;
            }
            score.judged += 1;
            if said == Some(passage.marked) {
                score.right += 1;
                continue;
            }
            let word = |marked| if marked { "marked" } else { "not marked" };
            score.misses.push(format!(
                "ECN, frame {} seq {} at {}: {} called {}",
                journey.frame,
                tcp.seq,
                passage.time_ns,
                word(passage.marked),
                said.map_or("nothing", word)
            ));
        }
    }
    score
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::frame::TcpSummary;
    use crate::frame::tests::tcp_frame;
    use crate::truth::{Direction, Passage};

    #[test]
    fn a_mark_that_only_one_side_knows_is_a_miss() {
        for (marked, said, judged, right) in [
            (true, Some(true), 1, 1),
            (true, Some(false), 1, 0),
            (true, None, 1, 0),
            (false, Some(true), 1, 0),
            (false, Some(false), 0, 0),
        ] {
            let journey = Journey {
                frame: 1,
                time_ns: 1,
                direction: Direction::S2c,
                tap: vec![Passage {
                    time_ns: 5,
                    captured: true,
                    mirrored: false,
                    marked,
                }],
                arrived_ns: Vec::new(),
                tcp: TcpSummary::parse(&tcp_frame(80, 0x10, 7, 9)),
            };
            let said = said.map(|said| ((5, 7), said)).into_iter().collect();
            let score = judge(&[journey], &said);
            assert_eq!((score.judged, score.right), (judged, right));
            assert_eq!(score.misses.len() as u64, judged - right);
        }
    }
}
