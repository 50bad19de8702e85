//! Only one direction of connections is in the capture. Memory: two groups of connections.

use weir_analysis::{Ended, Group, Outcome, finding};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::{self, connections};
use crate::routes::Route;
use crate::timeline::Timeline;

/// Connections of one direction from which on there is a pattern, and their share of those with data.
const LEAST: u64 = 10;
const SHARE: f64 = 0.05;
/// Of fewer, the share of those whose unseen side surely answered, and their packets: a handshake and data.
const FEW_SHARE: f64 = 0.5;
const PACKETS: u64 = 3;

/// Connections with data, and those of which one side alone was seen (0: the client).
#[derive(Debug, Default)]
pub(crate) struct OneSided {
    with_data: u64,
    only: [Group; 2],
    /// Those of them whose other side answered: its handshake, or data that was acknowledged.
    answered: u64,
    /// Connections of which both sides were seen, with data or without.
    both: u64,
}

/// The side that was not seen was there. Without that a few connections may be the last of some whose other side is gone.
fn has_answered(connection: &Ended, unseen: usize) -> bool {
    let is_set_up = matches!(connection.setup, Some(Outcome::Ok | Outcome::Retransmitted));
    connection.sent[1 - unseen].packets >= PACKETS && (is_set_up || connection.sent[unseen].missed > 0)
}

impl Detector for OneSided {
    fn connection(&mut self, connection: &Ended, _: &mut Route) {
        let sent = [connection.sent[0], connection.sent[1]];
        self.both += u64::from(sent[0].packets > 0 && sent[1].packets > 0);
        // Nobody sends data to a peer that has not answered.
        if sent[0].payload == 0 && sent[1].payload == 0 {
            return;
        }
        self.with_data += 1;
        for side in 0..2 {
            if sent[1 - side].packets == 0 {
                let (first, last) = connection.span;
                self.only[side].include(connection.id, first, last);
                self.answered += u64::from(has_answered(connection, 1 - side));
            }
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        let [clients, servers] = [self.only[0].count(), self.only[1].count()];
        let count = clients + servers;
        let share = count as f64 / self.with_data.max(1) as f64;
        let are_many = count >= LEAST && share >= SHARE;
        let are_most = self.answered > 0 && self.answered as f64 >= FEW_SHARE * (count + self.both) as f64;
        if !are_many && !are_most {
            return;
        }
        let mut group = self.only[0].clone();
        group.join(&self.only[1]);
        let missing = match (clients, servers) {
            (_, 0) => "the servers' packets are missing",
            (0, _) => "the clients' packets are missing",
            _ => "one direction or the other is missing",
        };
        out.push(finding(
            "ONE_SIDED",
            "WARNING",
            0.95,
            format!(
                "{} {} captured in one direction only: {missing}",
                connections(count),
                if count == 1 { "was" } else { "were" }
            ),
            vec![
                format!(
                    "{} of {} with data ({:.1} %) have packets of one side alone: the client {}, the server {}; both sides must have talked, or there would be no data",
                    names::count(count),
                    connections(self.with_data),
                    100.0 * share,
                    names::count(clients),
                    names::count(servers)
                ),
                "what this costs: no round trips, response times and places of losses are known of them, and what they miss is not loss of the network".to_owned(),
                "it may also be: routes that differ there and back (asymmetric routing, one of two links of a bond, a load balancer whose servers answer directly)".to_owned(),
                "next: mirror both directions, or capture on both links".to_owned(),
            ],
            &group,
            &[
                ("connections", count as f64),
                ("share", share),
                ("clientOnly", clients as f64),
                ("serverOnly", servers as f64),
            ],
        ));
    }
}

#[cfg(test)]
mod tests {
    use weir_analysis::{Ends, Sent};

    use super::*;
    use crate::fixtures::ended;

    /// Connections of which client and server were seen to send so many packets, with data.
    fn told(connections: &[(Option<Outcome>, [Sent; 2])]) -> Vec<Finding> {
        let mut all = OneSided::default();
        let ends = Ends::default();
        for (id, (setup, sent)) in (1..).zip(connections) {
            let connection = Ended {
                setup: *setup,
                syns: (1, 0),
                sent: *sent,
                ..ended(id, (0, 1_000_000_000))
            };
            all.connection(&connection, &mut Route::new(&ends, 0));
        }
        let mut out = Vec::new();
        all.findings(&Timeline::default(), &mut out);
        out
    }

    fn sent(packets: u64, payload: u64, missed: u32) -> Sent {
        Sent {
            packets,
            payload,
            missed,
            ..Sent::default()
        }
    }

    #[test]
    fn one_direction_of_a_few_connections_is_told_where_the_other_surely_was() {
        let nothing = Sent::default();
        let client = (Some(Outcome::Ok), [sent(9, 100, 0), nothing]);
        let found = told(&[client]);
        let [finding] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(finding.values["clientOnly"], 1.0.into());
        // The server's data in a connection that was open already, whose ACKs tell of requests.
        let server = (Some(Outcome::Midstream), [sent(0, 0, 2), sent(9, 9_000, 0)]);
        assert_eq!(told(&[server]).len(), 1);
        // Half of them, and less.
        let whole = (Some(Outcome::Ok), [sent(9, 100, 0), sent(9, 9_000, 0)]);
        let without_data = (Some(Outcome::Ok), [sent(3, 0, 0), sent(2, 0, 0)]);
        assert_eq!(told(&[client, whole]).len(), 1);
        assert!(told(&[client, whole, whole]).is_empty());
        assert!(told(&[client, without_data, without_data]).is_empty());
    }

    #[test]
    fn a_few_connections_whose_other_side_may_be_gone_are_not_one_sided() {
        let repeats = (Some(Outcome::Midstream), [sent(9, 900, 0), Sent::default()]);
        // Data on a SYN that nobody answers (RFC 7413).
        let fast_open = (Some(Outcome::Ignored), [sent(4, 100, 0), Sent::default()]);
        let two_packets = (Some(Outcome::Ok), [sent(2, 100, 0), Sent::default()]);
        assert!(told(&[two_packets; 9]).is_empty());
        assert!(told(&[repeats; 9]).is_empty());
        assert!(told(&[fast_open; 9]).is_empty());
        assert_eq!(told(&[repeats; 10]).len(), 1);
    }
}
