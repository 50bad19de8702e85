//! The server's time as one tap tells it, held against the application's own log.
//!
//! Weir's figure is the transaction's `serverProcessing`, from the tap in the middle. The log's is from the return of the
//! read that brought the last byte of the request to the call of the write of the response; responses of several
//! writes have pauses that the log does not tell and are left out. Between the two lies what the host needs to wake the application and to
//! send: where the frames show that this was long, the host was busy with something else, and the log is no truth.

use crate::analysis::analyze;
use crate::app::{ClientTransaction, TruthLine, read_lines};
use crate::error::LabError;
use crate::run::LabReport;
use crate::truth::{Direction, Journey};
use std::collections::HashMap;
use weir_messages::v1;

/// The figures may differ by this much, ns, and this share of the log's.
const DIFFERENCE_NS: f64 = 1e6;
const DIFFERENCE: f64 = 0.05;
/// From a frame's arrival to the return of the read, and from the write to its frame: longer is a busy host, ns.
const LATE_NS: u64 = 500_000;

/// Transactions that were judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Judged {
    /// All.
    pub all: u64,
    /// Of those: within 1 ms and 5 %.
    pub right: u64,
    /// Said to be uncertain by more than that; the truth is within what was said.
    pub unknown: u64,
}

impl Judged {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.right += other.right;
        self.unknown += other.unknown;
    }
}

/// Transactions of a run, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerTimeScore {
    /// Without loss, on a host that kept time.
    pub clean: Judged,
    /// The same where frames of the request or the response were lost or sent again.
    pub lossy: Judged,
    /// Not judged: the host was late.
    pub late: u64,
    /// Not judged: the capture missed the whole request.
    pub unseen: u64,
    /// A line for each that is not within 1 ms and 5 %.
    pub misses: Vec<String>,
}

impl ServerTimeScore {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.clean.add(other.clean);
        self.lossy.add(other.lossy);
        self.late += other.late;
        self.unseen += other.unseen;
        self.misses.extend_from_slice(&other.misses);
    }
}

/// The frames of a connection, by direction.
#[derive(Default)]
struct Frames<'a> {
    by_direction: [Vec<&'a Journey>; 2],
}

impl<'a> Frames<'a> {
    /// Those that carry bytes `from` to `to` of a direction, and whether each byte was sent once and arrived.
    fn carrying(&self, direction: Direction, from: u64, to: u64) -> (Vec<&'a Journey>, bool) {
        let all = &self.by_direction[direction as usize];
        let Some(start) = all.iter().find_map(|j| j.tcp.as_ref().filter(|tcp| tcp.is_syn())) else {
            return (Vec::new(), false);
        };
        let first = start.seq.wrapping_add(1);
        let (mut out, mut reach, mut once) = (Vec::new(), from, true);
        for journey in all {
            let Some(tcp) = journey.tcp.as_ref().filter(|tcp| tcp.len > 0) else {
                continue;
            };
            // Streams of a run are far below 2 GB.
            let at = u64::from(tcp.seq.wrapping_sub(first));
            let end = at + u64::from(tcp.len);
            if end <= from || at >= to {
                continue;
            }
            once &= at <= reach && end > reach && !journey.arrived_ns.is_empty();
            reach = reach.max(end);
            out.push(*journey);
        }
        (out, once && reach >= to)
    }
}

/// Judges the server times in the run's capture of the middle.
pub fn score_server_time(report: &LabReport) -> Result<ServerTimeScore, LabError> {
    let journeys: Vec<Journey> = read_lines(&report.journeys)?;
    let lines: Vec<TruthLine> = read_lines(&report.app_truth)?;
    let mut analysis = v1::Analysis::default();
    analyze(&report.tap, &mut analysis)?;

    let mut frames: HashMap<u16, Frames<'_>> = HashMap::new();
    for journey in &journeys {
        let Some(tcp) = &journey.tcp else { continue };
        let port = match journey.direction {
            Direction::C2s => tcp.src_port,
            Direction::S2c => tcp.dst_port,
        };
        frames.entry(port).or_default().by_direction[journey.direction as usize].push(journey);
    }
    // By connection and the time of the request at the tap: where the capture missed messages, Weir counts fewer transactions.
    let mut said: HashMap<(u16, u64), &v1::Transaction> = HashMap::new();
    let ports: HashMap<u64, u16> = analysis
        .connections
        .iter()
        .filter_map(|c| Some((c.id, c.client.as_ref()?.port as u16)))
        .collect();
    for transaction in analysis.transactions.iter().filter(|t| t.index > 0) {
        if let Some((port, time)) = ports.get(&transaction.connection_id).zip(transaction.request_time) {
            said.insert((*port, time.unix_nanos() as u64), transaction);
        }
    }

    let mut score = ServerTimeScore::default();
    // Of the connection in hand: its port, and the bytes of the transactions before.
    let (mut port, mut offsets) = (0, [0u64; 2]);
    let none = Frames::default();
    for line in &lines {
        match line {
            TruthLine::Connection(connection) => (port, offsets) = (connection.client_port, [0; 2]),
            TruthLine::Transaction { client, server } => {
                let [asked, answered] = offsets;
                offsets = [asked + client.request_bytes, answered + client.response_bytes];
                let Some(server) = server.as_ref().filter(|_| client.response_chunks == 1) else {
                    continue;
                };
                let frames = frames.get(&port).unwrap_or(&none);
                let (request, asked_once) = frames.carrying(Direction::C2s, asked, offsets[0]);
                let (response, answered_once) = frames.carrying(Direction::S2c, answered, offsets[1]);
                let at_tap = request
                    .iter()
                    .flat_map(|j| &j.tap)
                    .filter(|p| p.captured)
                    .map(|p| p.time_ns)
                    .min();
                let (Some(at_tap), Some(response)) = (at_tap, response.first()) else {
                    score.unseen += 1;
                    continue;
                };
                let read = server.server_request_last_ns;
                let arrivals = request.iter().filter_map(|j| j.arrived_ns.iter().min());
                let arrived = arrivals.filter(|time| **time <= read).max();
                let woken = arrived.map_or(u64::MAX, |arrived| read - arrived);
                let sent = response.time_ns.saturating_sub(server.server_response_start_ns);
                if woken > LATE_NS || sent > LATE_NS {
                    score.late += 1;
                    continue;
                }
                let truth = server
                    .server_response_start_ns
                    .saturating_sub(server.server_request_last_ns) as f64;
                let answer = said.get(&(port, at_tap)).copied();
                let said = answer.and_then(|t| {
                    let uncertain = t.server_uncertain_seconds.unwrap_or(0.0);
                    Some((t.shares.as_ref()?.server_processing_seconds * 1e9, uncertain * 1e9))
                });
                score.enter(asked_once && answered_once, port, client, truth, said);
            }
            TruthLine::Sender(_) => {}
        }
    }
    Ok(score)
}

impl ServerTimeScore {
    /// `answer`: the time, and how far it may be wrong.
    fn enter(&mut self, is_clean: bool, port: u16, client: &ClientTransaction, truth: f64, answer: Option<(f64, f64)>) {
        let judged = if is_clean { &mut self.clean } else { &mut self.lossy };
        judged.all += 1;
        if let Some((answer, uncertain)) = answer {
            let difference = (answer - truth).abs();
            if uncertain > DIFFERENCE_NS + DIFFERENCE * answer {
                if difference <= DIFFERENCE_NS + uncertain {
                    judged.unknown += 1;
                    return;
                }
            } else if difference <= DIFFERENCE_NS + DIFFERENCE * truth {
                judged.right += 1;
                return;
            }
        }
        let said = answer.map_or_else(
            || "not told".into(),
            |(answer, uncertain)| format!("{:.3} ms, uncertain by {:.3} ms", answer / 1e6, uncertain / 1e6),
        );
        self.misses.push(format!(
            "server time, port {port}, transaction {}: {:.3} ms called {said}",
            client.index,
            truth / 1e6
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::TcpSummary;
    use std::net::{IpAddr, Ipv4Addr};

    fn journey(direction: Direction, seq: u32, len: u32, syn: bool, arrives: bool) -> Journey {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Journey {
            frame: 1,
            time_ns: 1,
            direction,
            tap: Vec::new(),
            arrived_ns: if arrives { vec![2] } else { Vec::new() },
            tcp: Some(TcpSummary {
                src: address,
                src_port: 1,
                dst: address,
                dst_port: 2,
                seq,
                ack: 0,
                len,
                flags: if syn { 2 } else { 16 },
                ip_id: 0,
                sack_permitted: false,
                tsval: None,
            }),
        }
    }

    #[test]
    fn a_message_with_a_loss_or_a_repeat_is_told_from_others() {
        let start = u32::MAX - 100;
        let stream = |arrives, twice: bool| {
            let mut all = vec![
                journey(Direction::C2s, start, 0, true, true),
                journey(Direction::C2s, start.wrapping_add(1), 100, false, true),
                journey(Direction::C2s, start.wrapping_add(101), 100, false, arrives),
            ];
            if twice {
                all.push(journey(Direction::C2s, start.wrapping_add(101), 100, false, true));
            }
            all
        };
        for (arrives, twice, once) in [
            (true, false, true),
            (false, false, false),
            (true, true, false),
            (false, true, false),
        ] {
            let all = stream(arrives, twice);
            let frames_of = Frames {
                by_direction: [all.iter().collect(), Vec::new()],
            };
            let carrying = |from, to| {
                let (frames, once) = frames_of.carrying(Direction::C2s, from, to);
                (frames.len(), once)
            };
            assert_eq!(carrying(0, 200), (2 + usize::from(twice), once));
            assert_eq!(carrying(0, 100), (1, true));
            assert!(!carrying(100, 201).1, "not all of it was sent");
        }
    }

    #[test]
    fn a_millisecond_and_five_per_cent_are_allowed() {
        let client = ClientTransaction {
            connection: 0,
            index: 0,
            request_bytes: 1,
            request_chunks: 1,
            response_bytes: 1,
            response_chunks: 1,
            think_ns: 0,
            request_write_start_ns: 0,
            request_write_end_ns: 0,
            response_first_ns: 0,
            response_last_ns: 0,
        };
        for (answer, right, unknown) in [
            (Some((121.9e6, 0.0)), 0, 0),
            (Some((94.1e6, 0.0)), 1, 0),
            (Some((105.9e6, 5e6)), 1, 0),
            (Some((121.9e6, 30e6)), 0, 1),
            (Some((100.0e6, 30e6)), 0, 1),
            (Some((141.9e6, 30e6)), 0, 0),
            (None, 0, 0),
        ] {
            let mut score = ServerTimeScore::default();
            score.enter(true, 1, &client, 100e6, answer);
            assert_eq!(score.clean, Judged { all: 1, right, unknown });
            assert_eq!(score.misses.len() as u64, 1 - right - unknown);
            assert_eq!(score.lossy, Judged::default());
        }
    }
}
