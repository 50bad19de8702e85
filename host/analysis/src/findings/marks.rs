//! Queues that mark packets instead of dropping them (`docs/src/findings.md`).

use weir_messages::v1;

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::numbers::{connections, count};

/// ACKs that tell of a mark, from which on that is worth a finding.
const TELLING: u64 = 5;

/// Connections whose receivers told of marks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    group: Group,
    /// Timed ACKs of longer transfers of such connections that told of one, and all, of the client's data and the server's.
    told: [u64; 2],
    acks: [u64; 2],
}

impl Marks {
    /// A connection that is over.
    pub fn connection(&mut self, flow: &Flow) {
        let Some(limits) = flow.extras.limits() else { return };
        if limits.sides.iter().all(|side| side.marked_acks == 0) {
            return;
        }
        self.group.add(flow);
        for (side, transfer) in limits.sides.iter().enumerate() {
            self.told[side] += u64::from(transfer.marked_acks);
            self.acks[side] += u64::from(transfer.acks);
        }
    }

    /// RFC 3168 6.1.3: from a mark on, all ACKs tell of it, until the sender says that it has heard.
    pub fn finding(&self) -> Option<v1::Finding> {
        let [client, server] = self.told;
        let told = client + server;
        if told < TELLING {
            return None;
        }
        let acks = self.acks[0] + self.acks[1];
        let of = |side: usize| format!("{} of {}", count(self.told[side]), count(self.acks[side]));
        let evidence = vec![
            format!(
                "of timed ACKs in longer transfers of {}, these carried ECE: of the client's data {}, of the server's {}",
                connections(self.group.count()),
                of(0),
                of(1)
            ),
            "a full queue on the way of that data marked it, and its sender made its congestion window smaller, as for a loss (RFC 3168 6.1.2): seconds of congestion and bandwidth say what that held"
                .to_owned(),
            "a receiver tells of one mark for a round trip: there were fewer marks than such ACKs".to_owned(),
            "it may also be a receiver's own queue that marks".to_owned(),
            "next: nothing was lost for it, and the queue stays short; where the transfers are too slow, that link is what limits them"
                .to_owned(),
        ];
        Some(finding(
            "ECN_MARKS",
            "INFO",
            1.0,
            format!(
                "Queues marked data instead of dropping it: {} ACKs tell of it",
                count(told)
            ),
            evidence,
            &self.group,
            &[
                ("acks", told as f64),
                ("share", told as f64 / acks as f64),
                ("clientToServer", client as f64),
                ("serverToClient", server as f64),
            ],
        ))
    }
}
