//! Only one direction of connections is in the capture. Memory: two groups of connections.

use weir_analysis::{Ended, Group, finding};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::{self, connections};
use crate::routes::Route;
use crate::timeline::Timeline;

/// Connections of one direction from which on there is a pattern, and their share of those with data.
const LEAST: u64 = 10;
const SHARE: f64 = 0.05;

/// Connections with data, and those of which one side alone was seen (0: the client).
#[derive(Debug, Default)]
pub(crate) struct OneSided {
    with_data: u64,
    only: [Group; 2],
}

impl Detector for OneSided {
    fn connection(&mut self, connection: &Ended, _: &mut Route) {
        let sent = [connection.sent[0], connection.sent[1]];
        // Nobody sends data to a peer that has not answered.
        if sent[0].payload == 0 && sent[1].payload == 0 {
            return;
        }
        self.with_data += 1;
        for side in 0..2 {
            if sent[1 - side].packets == 0 {
                let (first, last) = connection.span;
                self.only[side].include(connection.id, first, last);
            }
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        let [clients, servers] = [self.only[0].count(), self.only[1].count()];
        let count = clients + servers;
        let share = count as f64 / self.with_data.max(1) as f64;
        if count < LEAST || share < SHARE {
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
            format!("{} were captured in one direction only: {missing}", connections(count)),
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
