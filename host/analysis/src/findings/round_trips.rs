//! Applications that wait for a round trip a turn.

use weir_messages::v1;

use super::LIMIT_LEAST;
use crate::ceilings::LIGHT;
use crate::flow::Flow;
use crate::given::Given;
use crate::group::{Group, finding};
use crate::message::seconds;
use crate::numbers::{connections, count, decimal};

/// Turns from which on a connection's latency is worth pointing out, and the share of its time.
const CHATTY_TURNS: u32 = 10;
const CHATTY_SHARE: u64 = 3;
/// The same with users' thinking: who thinks for minutes does not wait for round trips.
const CHATTY_WHOLE: u64 = 10;
/// Application bytes of a turn below which a connection works byte by byte, and turns from which on that matters.
const TINY_BYTES: u64 = 64;
const TINY_TURNS: u32 = 100;

/// Connections with many turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    chatty: Group,
    /// Round trip and bytes of a turn of the connection that lost most to latency, and what it lost, ns.
    chatty_most: (u64, u64, u64),
    /// What all of them lost, ns.
    chatty_ns: u64,
    tiny: Group,
    tiny_turns: u64,
    tiny_ns: u64,
}

impl Waiting {
    /// A connection that is over.
    pub fn connection(&mut self, flow: &Flow, given: Given) {
        let Some(turn) = &flow.turn else { return };
        let turns = turn.shares().answered - turn.shares().crossed;
        if turns < CHATTY_TURNS {
            return;
        }
        let time = turn.time();
        let payload = flow.directions[0].payload.saturating_add(flow.directions[1].payload);
        let bytes = payload / u64::from(turns);
        if turns >= TINY_TURNS && bytes < TINY_BYTES {
            self.tiny.add(flow);
            self.tiny_turns += u64::from(turns);
            self.tiny_ns = self.tiny_ns.saturating_add(time.latency);
        }
        let own = time.total().saturating_sub(time.think);
        let share = (own / CHATTY_SHARE).max(time.total() / CHATTY_WHOLE);
        if time.latency >= LIMIT_LEAST && time.latency >= share {
            self.chatty.add(flow);
            self.chatty_ns = self.chatty_ns.saturating_add(time.latency);
            if time.latency > self.chatty_most.2 {
                let trip = flow.measure(given).path_trip().unwrap_or(0);
                self.chatty_most = (trip, bytes, time.latency);
            }
        }
    }

    pub fn findings(&self) -> impl Iterator<Item = v1::Finding> {
        self.latency_bound().into_iter().chain(self.tiny_turns())
    }

    /// Turns that each cost a round trip: fatter pipes do not help (SMB's 61 K blocks at 40 ms and more).
    fn latency_bound(&self) -> Option<v1::Finding> {
        if self.chatty.count() == 0 {
            return None;
        }
        let (trip, bytes, lost) = self.chatty_most;
        let ceiling = bytes as f64 * 8.0 / seconds(trip).max(1e-9);
        let evidence = vec![
            format!(
                "{} spent a third of the time or more on round trips of turns; most: {:.3} s",
                connections(self.chatty.count()),
                seconds(lost)
            ),
            format!(
                "{} application bytes a turn over {:.1} ms: {:.3} Mbit/s at most, however fast the link is; a window of that size is all it uses",
                count(bytes),
                seconds(trip) * 1e3,
                ceiling / 1e6
            ),
            format!(
                "light in fibre gets {} km there and back in that time: only a shorter path or fewer turns help",
                decimal(seconds(trip) / 2.0 * LIGHT, 0)
            ),
            format!(
                "{} s of round trips in all of them",
                decimal(seconds(self.chatty_ns), 3)
            ),
            "it may also be a server that asks others for each answer: only a capture behind it tells".to_owned(),
            "next: fewer turns, larger requests or several at once; or a shorter path. A faster link changes nothing"
                .to_owned(),
        ];
        Some(finding(
            "LATENCY_BOUND",
            "WARNING",
            0.9,
            format!("{} waited for round trips", connections(self.chatty.count())),
            evidence,
            &self.chatty,
            &[
                ("rttSeconds", seconds(trip)),
                ("ceilingBitsPerSecond", ceiling),
                ("bytesPerTurn", bytes as f64),
                ("lightKilometres", seconds(trip) / 2.0 * LIGHT),
                ("costSeconds", seconds(self.chatty_ns)),
            ],
        ))
    }

    fn tiny_turns(&self) -> Option<v1::Finding> {
        if self.tiny.count() == 0 {
            return None;
        }
        Some(finding(
            "ONE_BYTE_APPLICATION",
            "WARNING",
            0.9,
            format!("{} carried a few bytes a turn", connections(self.tiny.count())),
            vec![
                format!(
                    "{} turns of fewer than {TINY_BYTES} application bytes: server and network look slow, the application asks too often",
                    count(self.tiny_turns)
                ),
                format!("{} s of round trips in all", decimal(seconds(self.tiny_ns), 3)),
                "it may also be somebody who types: a terminal sends each key".to_owned(),
                "next: let the application ask for more at a time".to_owned(),
            ],
            &self.tiny,
            &[
                ("turns", self.tiny_turns as f64),
                ("costSeconds", seconds(self.tiny_ns)),
            ],
        ))
    }
}
