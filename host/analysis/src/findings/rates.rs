//! Retransmission rates against the line.

use weir_messages::v1;

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::numbers::{connections, count};

/// Retransmission rate above which performance suffers (the 0.5 % line of Microsoft's TCP
/// performance method).
pub const RETRANSMISSION_LINE: f64 = 0.005;
/// Ten times the line: severe.
pub const RETRANSMISSION_SEVERE: f64 = 0.05;
/// Data packets at which a rate is believed by half.
const RATE_HALF_CONFIDENCE: f64 = 50.0;

/// Data packets and repeats of one direction, over all connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    pub data: u64,
    pub repeated: u64,
    /// Of these, those of connections that ended in silence.
    in_vain: u64,
}

impl Rate {
    pub fn value(self) -> f64 {
        if self.data == 0 {
            0.0
        } else {
            self.repeated as f64 / self.data as f64
        }
    }

    pub fn add(&mut self, other: Self) {
        self.data += other.data;
        self.repeated += other.repeated;
        self.in_vain += other.in_vain;
    }

    /// Where all are gone, each of them says nothing of single ones.
    fn of_living(self) -> Self {
        let in_vain = self.in_vain.min(self.repeated);
        Self {
            data: self.data - in_vain,
            repeated: self.repeated - in_vain,
            in_vain: 0,
        }
    }
}

/// Of all connections, client to server and server to client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    pub sides: [Rate; 2],
    /// Those above the line.
    above: Group,
}

impl Rates {
    /// A connection that is over.
    pub fn connection(&mut self, flow: &Flow) {
        let mut own = Rate::default();
        for side in 0..2 {
            let rate = Rate {
                data: flow.data_packets(side),
                repeated: flow.counts(side).retransmitted_data,
                in_vain: flow.extras.trouble().map_or(0, |trouble| trouble.in_vain[side]),
            };
            self.sides[side].add(rate);
            own.add(rate);
        }
        if own.repeated > 0 && own.value() > RETRANSMISSION_LINE {
            self.above.add(flow);
        }
    }

    pub fn finding(&self) -> Option<v1::Finding> {
        let [client, server] = self.sides;
        let mut total = client;
        total.add(server);
        let rate = total.value();
        if rate <= RETRANSMISSION_LINE {
            return None;
        }
        let living = total.of_living().value();
        let mut evidence = vec![
            format!(
                "{} of {} data packets were sent again: {}; the line is {}",
                count(total.repeated),
                count(total.data),
                percent(rate),
                percent(RETRANSMISSION_LINE)
            ),
            format!(
                "client to server {} of {} ({}), server to client {} of {} ({})",
                count(client.repeated),
                count(client.data),
                percent(client.value()),
                count(server.repeated),
                count(server.data),
                percent(server.value())
            ),
            format!("above the line: {}", connections(self.above.count())),
        ];
        if total.in_vain > 0 {
            evidence.push(format!(
                "{} of them were sent into silence, on connections that were dead or whose segments were too large for the path (DEAD_CONNECTIONS, MTU_BLACK_HOLE): these tell of no loss of single packets; without them it is {}",
                count(total.in_vain),
                percent(living)
            ));
        }
        evidence.push(
            "it may also be repeats that were not needed, because ACKs were late or lost: their classes tell"
                .to_owned(),
        );
        evidence.push(if living > RETRANSMISSION_LINE {
            "next: find where it is lost: between which hosts and on which side of the tap is told with LOSS and PERIODIC_LOSS, where they were found, else at each connection; then look at the counters of errors and drops of the ports there"
        } else {
            "next: see why these connections fell silent: with DEAD_CONNECTIONS or MTU_BLACK_HOLE, where they were found"
        }.to_owned());
        Some(finding(
            "RETRANSMISSION_RATE",
            if living > RETRANSMISSION_SEVERE {
                "CRITICAL"
            } else if living > RETRANSMISSION_LINE {
                "WARNING"
            } else {
                "INFO"
            },
            total.data as f64 / (total.data as f64 + RATE_HALF_CONFIDENCE),
            format!("{} of the data packets are retransmissions", percent(rate)),
            evidence,
            &self.above,
            &[
                ("rate", rate),
                ("clientToServer", client.value()),
                ("serverToClient", server.value()),
            ],
        ))
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
