//! Who talks to whom: sums of each client and service.
//!
//! Memory: 4,096 dialogues of 250 bytes; what comes later is summed up as one.

use std::cmp::Reverse;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use weir_analysis::{Ended, Ends, Place, Verdict, address, seconds};
use weir_messages::v1;

use crate::timeline::{Loss, loss};

/// Dialogues that are told apart.
const MOST: usize = 4096;

/// Client, server and server's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The client's address.
    pub client: [u8; 16],
    /// The server's address.
    pub server: [u8; 16],
    /// The server's port.
    pub port: u16,
}

impl Pair {
    const fn of(ends: &Ends) -> Self {
        Self {
            client: ends.client,
            server: ends.server,
            port: ends.server_port,
        }
    }
}

/// What passed between a client and a service. Directions: 0 from the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dialogue {
    /// Connections that are over.
    pub connections: u64,
    /// Of them, whose setup failed.
    pub failed: u64,
    /// Packets.
    pub packets: [u64; 2],
    /// Payload, repeats included.
    pub bytes: [u64; 2],
    /// Data packets, repeats included.
    pub data_packets: [u64; 2],
    /// Of them, retransmissions.
    pub retransmitted: [u64; 2],
    /// Data segments lost between their sender and the tap.
    pub lost_before: [u64; 2],
    /// The same between the tap and their receiver.
    pub lost_behind: [u64; 2],
    /// The same where it is not known where.
    pub lost_unknown: [u64; 2],
    /// SYNs and SYN-ACKs that came again.
    pub syn_repeats: [u64; 2],
    /// Delivered, but not in the capture.
    pub missed: [u64; 2],
    /// Smallest round trip from the tap to the server (0) and to the client (1), ns, responses that acknowledged included.
    pub rtt: [Option<u64>; 2],
}

impl Dialogue {
    /// Share of the data packets of a direction that came again; none without data.
    pub fn rate(&self, side: usize) -> Option<f64> {
        let all = self.data_packets[side];
        (all > 0).then(|| self.retransmitted[side] as f64 / all as f64)
    }

    /// Data segments lost between the tap and the server, and between the tap and the client.
    pub const fn lost(&self) -> (u64, u64) {
        (
            self.lost_behind[0] + self.lost_before[1],
            self.lost_before[0] + self.lost_behind[1],
        )
    }

    fn connection(&mut self, connection: &Ended) {
        self.connections += 1;
        self.failed += u64::from(connection.failed);
        for (side, sent) in connection.sent.iter().enumerate() {
            self.packets[side] += sent.packets;
            self.bytes[side] += sent.payload;
            self.data_packets[side] += u64::from(sent.data_packets);
            self.retransmitted[side] += sent.retransmitted;
            self.missed[side] += u64::from(sent.missed);
            let rtt = &mut self.rtt[side];
            *rtt = [*rtt, sent.acked_min].into_iter().flatten().min();
        }
    }

    fn message(&self, pair: Option<&Pair>) -> v1::Dialogue {
        let side = |side: usize| {
            Some(v1::DialogueSide {
                packets: self.packets[side],
                payload_bytes: self.bytes[side],
                data_packets: self.data_packets[side],
                retransmitted_packets: self.retransmitted[side],
                retransmission_rate: self.rate(side),
                lost_before_tap: self.lost_before[side],
                lost_behind_tap: self.lost_behind[side],
                lost_unknown: self.lost_unknown[side],
                repeated_setup_packets: self.syn_repeats[side],
                missed_by_capture: self.missed[side],
                rtt_min_seconds: self.rtt[side].map(seconds),
            })
        };
        v1::Dialogue {
            client_address: pair.map(|pair| address(pair.client)).unwrap_or_default(),
            server: pair.map(|pair| v1::Endpoint {
                address: address(pair.server),
                port: pair.port.into(),
            }),
            connections: self.connections,
            failed: self.failed,
            client_to_server: side(0),
            server_to_client: side(1),
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Dialogues {
    of: HashMap<Pair, Dialogue, FixedState>,
    /// All that came when there were [`MOST`].
    others: Dialogue,
}

impl Dialogues {
    /// Those with most bytes first.
    pub fn by_volume(&self) -> Vec<(Pair, Dialogue)> {
        let mut all: Vec<_> = self.of.iter().map(|(pair, dialogue)| (*pair, *dialogue)).collect();
        all.sort_by_key(|(pair, d)| (Reverse((d.bytes[0] + d.bytes[1], d.packets[0] + d.packets[1])), *pair));
        all
    }

    /// The one that lost most segments, wherever, if there is another.
    pub fn most_lost(&self) -> Option<(Pair, u64)> {
        let lost = |d: &Dialogue| d.lost().0 + d.lost().1 + d.lost_unknown[0] + d.lost_unknown[1];
        let all = self.of.iter().map(|(pair, dialogue)| (lost(dialogue), Reverse(*pair)));
        let (lost, Reverse(pair)) = all.max()?;
        (lost > 0 && self.of.len() > 1).then_some((pair, lost))
    }

    /// All that came when the table was full, if there are.
    pub fn others(&self) -> Option<&Dialogue> {
        (self.others.connections > 0).then_some(&self.others)
    }

    pub(crate) fn connection(&mut self, connection: &Ended) {
        self.at(&connection.ends).connection(connection);
    }

    pub(crate) fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        let (kind, segments) = match loss(verdict) {
            Some(Loss::Data(segments)) => (Some(verdict.place), segments),
            Some(Loss::Setup) => (None, 1),
            // What the capture missed is told when the connection is over.
            Some(Loss::Capture(_) | Loss::Doubtful) | None => return,
        };
        let dialogue = self.at(ends);
        let count = match kind {
            None => &mut dialogue.syn_repeats,
            Some(Place::BeforeTap) => &mut dialogue.lost_before,
            Some(Place::BehindTap) => &mut dialogue.lost_behind,
            Some(_) => &mut dialogue.lost_unknown,
        };
        count[usize::from(verdict.from_server)] += u64::from(segments);
    }

    pub(crate) fn complete(&self, summary: &mut v1::Summary) {
        let all = self.by_volume();
        summary.dialogues = all
            .iter()
            .map(|(pair, dialogue)| dialogue.message(Some(pair)))
            .collect();
        summary.other_dialogues = self.others().map(|others| others.message(None));
    }

    fn at(&mut self, ends: &Ends) -> &mut Dialogue {
        let pair = Pair::of(ends);
        if self.of.len() >= MOST && !self.of.contains_key(&pair) {
            return &mut self.others;
        }
        self.of.entry(pair).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::ended;
    use weir_analysis::Sent;

    /// A connection of which responses alone have timed the server, and one with a shorter round trip.
    #[test]
    fn the_smallest_round_trip_is_that_of_the_connections() {
        let mut dialogues = Dialogues::default();
        let smallest = |dialogues: &Dialogues| dialogues.by_volume()[0].1.rtt;
        for (acked, expected) in [(None, None), (Some(7), Some(7)), (Some(9), Some(7)), (Some(5), Some(5))] {
            let sent = Sent {
                acked_min: acked,
                ..Sent::default()
            };
            dialogues.connection(&Ended {
                setup: None,
                syns: (0, 0),
                sent: [sent, Sent::default()],
                ..ended(1, (0, 1))
            });
            assert_eq!(smallest(&dialogues), [expected, None]);
        }
    }

    #[test]
    fn what_comes_when_the_table_is_full_is_summed_up() {
        let mut dialogues = Dialogues::default();
        for port in 0..MOST as u16 + 9 {
            let ends = Ends {
                server_port: port,
                ..Ends::default()
            };
            dialogues.at(&ends).connections += 1;
        }
        let mut summary = v1::Summary::default();
        dialogues.complete(&mut summary);
        assert_eq!(summary.dialogues.len(), MOST);
        assert_eq!(summary.other_dialogues.map(|others| others.connections), Some(9));
    }
}
