//! What Weir says limited each sender, held against the kernel's own account (TCP_INFO), from all three taps.
//!
//! The truth is the state in which the sender was found whenever data was in flight or waited: held back by the receiver's window
//! (data waited, and the window had room for less than three segments, Siekkinen et al.), or by its send buffer (all
//! that was written was sent, and the application was inside a write). The kernel's own counters of these two (`rwnd_limited`,
//! `sndbuf_limited`) say less (`docs/src/limits.md`): that of the window stands still while a pacing timer runs, that of
//! the buffer begins only with a segment that leaves while the application waits already.

use crate::analysis::analyze;
use crate::app::{SenderRecord, TruthLine, read_lines};
use crate::error::LabError;
use crate::run::LabReport;
use std::collections::HashMap;
use std::fmt;
use weir_messages::v1;

/// Least transfer that is judged. The kernel counts in ticks of its clock, 4 ms on many.
const LEAST_BYTES: u64 = 40_000;
const LEAST_DATA_US: u64 = 50_000;
/// Shares may differ by this much.
const POINTS: f64 = 0.1;

/// One direction of a connection, seen from one tap.
#[derive(Debug, Clone, PartialEq)]
struct Judged {
    tap: &'static str,
    client_port: u16,
    from_server: bool,
    congestion_control: String,
    /// Data was in flight or waited, s.
    data: f64,
    /// Shares of that: the receiver's window, the send buffer.
    truth: [f64; 2],
    answer: [f64; 2],
    unknown: f64,
}

impl Judged {
    fn is_right(&self) -> bool {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= POINTS;
        self.truth.iter().zip(&self.answer).all(near)
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [window, sender] = self.truth;
        let [said_window, said_sender] = self.answer;
        let side = if self.from_server { "server" } else { "client" };
        write!(
            f,
            "limits, tap {}: port {} from the {side}, {}, data under way {:.2} s: window {window:.2} called {said_window:.2}, send \
             buffer {sender:.2} called {said_sender:.2}, unknown {:.2}",
            self.tap,
            self.client_port,
            self.congestion_control,
            self.data,
            self.unknown / self.data,
        )
    }
}

/// Transfers that were judged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitScore {
    judged: Vec<Judged>,
}

/// Judges the limits in the run's three captures. Nothing is judged when the scenario does not look at TCP_INFO.
pub fn score_limits(report: &LabReport) -> Result<LimitScore, LabError> {
    let lines: Vec<TruthLine> = read_lines(&report.app_truth)?;
    let senders: HashMap<(u16, bool), SenderRecord> = lines
        .into_iter()
        .filter_map(|line| match line {
            TruthLine::Sender(sender) => Some(((sender.client_port, sender.from_server), sender)),
            _ => None,
        })
        .collect();
    let mut score = LimitScore::default();
    if senders.is_empty() {
        return Ok(score);
    }
    for (tap, capture) in [
        ("client", &report.client_tap),
        ("middle", &report.tap),
        ("server", &report.server_tap),
    ] {
        let mut analysis = v1::Analysis::default();
        analyze(capture, &mut analysis)?;
        for connection in &analysis.connections {
            let port = connection.client.as_ref().map_or(0, |end| end.port as u16);
            for (from_server, direction) in [
                (false, &connection.client_to_server),
                (true, &connection.server_to_client),
            ] {
                let sender = senders.get(&(port, from_server));
                if let Some((direction, sender)) = direction.as_ref().zip(sender) {
                    score.judged.extend(judge(tap, sender, direction));
                }
            }
        }
    }
    Ok(score)
}

fn judge(tap: &'static str, sender: &SenderRecord, direction: &v1::Direction) -> Option<Judged> {
    if sender.bytes_acked < LEAST_BYTES || sender.data_us < LEAST_DATA_US {
        return None;
    }
    let data = sender.data_us as f64 / 1e6;
    let share = |samples: u64| samples as f64 / sender.samples.max(1) as f64;
    let said = direction.limit_seconds.unwrap_or_default();
    Some(Judged {
        tap,
        client_port: sender.client_port,
        from_server: sender.from_server,
        congestion_control: sender.congestion_control.clone(),
        data,
        truth: [share(sender.window_samples), share(sender.buffer_samples)],
        answer: [said.receiver_window / data, (said.sender - said.nagle) / data],
        unknown: said.unknown,
    })
}

impl LimitScore {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.judged.extend_from_slice(&other.judged);
    }

    /// Transfers within 10 points, and all.
    pub fn right(&self) -> (u64, u64) {
        let right = self.judged.iter().filter(|j| j.is_right()).count();
        (right as u64, self.judged.len() as u64)
    }

    /// Time of the transfers that was called unknown, and all, ms.
    pub fn unknown_ms(&self) -> (u64, u64) {
        let sum = |of: fn(&Judged) -> f64| (self.judged.iter().map(of).sum::<f64>() * 1e3).round() as u64;
        (sum(|j| j.unknown), sum(|j| j.data))
    }

    /// A line for each transfer that is not within 10 points.
    pub fn misses(&self) -> impl Iterator<Item = String> + '_ {
        self.judged.iter().filter(|j| !j.is_right()).map(ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sender() -> SenderRecord {
        SenderRecord {
            from_server: true,
            client_port: 7,
            congestion_control: "bbr".into(),
            bytes_acked: 1_000_000,
            busy_us: 2_100_000,
            rwnd_limited_us: 1_000_000,
            sndbuf_limited_us: 500_000,
            data_us: 2_000_000,
            samples: 100,
            window_samples: 50,
            buffer_samples: 25,
        }
    }

    fn said(receiver_window: f64, sender: f64) -> v1::Direction {
        v1::Direction {
            limit_seconds: Some(v1::LimitSeconds {
                receiver_window,
                sender,
                unknown: 0.1,
                ..v1::LimitSeconds::default()
            }),
            ..v1::Direction::default()
        }
    }

    #[test]
    fn shares_within_ten_points_are_right() {
        for (window, buffer, right) in [(1.0, 0.5, 1), (1.19, 0.31, 1), (1.21, 0.5, 0), (1.0, 0.29, 0)] {
            let judged = judge("middle", &sender(), &said(window, buffer)).unwrap();
            let score = LimitScore { judged: vec![judged] };
            assert_eq!(score.right(), (right, 1), "{window} {buffer}");
            assert_eq!(score.misses().count() as u64, 1 - right);
            assert_eq!(score.unknown_ms(), (100, 2000));
        }
    }

    #[test]
    fn a_few_ticks_of_the_clock_are_not_judged() {
        let mut short = sender();
        short.data_us = 49_999;
        assert_eq!(judge("client", &short, &said(0.0, 0.0)), None);
    }
}
