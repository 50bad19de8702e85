//! Retransmission rates against the line.

use weir_messages::v1;

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::numbers::{connections, count};

/// Retransmission rate above which performance suffers (the 0.5 % line of Microsoft's TCP
/// performance method).
pub const RETRANSMISSION_LINE: f64 = 0.005;
/// Ten times the line: severe.
const RETRANSMISSION_SEVERE: f64 = 0.05;
/// What few are at least counts from so many on, in standard deviations below the share seen.
const FEW: u64 = 5;
const ABOVE: f64 = 2.0;
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
        let alive = total.of_living();
        let living = alive.value();
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
            match (loss_severity(alive.repeated, alive.data), living > RETRANSMISSION_LINE) {
                ("CRITICAL", _) => "CRITICAL",
                (_, true) => "WARNING",
                (_, false) => "INFO",
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

/// How much it matters that `few` of `many` segments were lost, or sent again, as far as so many tell.
pub fn loss_severity(few: u64, many: u64) -> &'static str {
    match at_least(few, many) {
        s if s > RETRANSMISSION_SEVERE => "CRITICAL",
        s if s > RETRANSMISSION_LINE => "WARNING",
        _ => "INFO",
    }
}

/// The share of which a few of many are at least a sign: the lower end of Wilson's interval; 0 for too few.
fn at_least(few: u64, many: u64) -> f64 {
    if few < FEW {
        return 0.0;
    }
    let (n, z2) = (many as f64, ABOVE * ABOVE);
    let share = few as f64 / n;
    let spread = ABOVE * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    (share + z2 / (2.0 * n) - spread) / (1.0 + z2 / n)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_few_is_no_share() {
        assert_eq!(at_least(1, 19), 0.0);
        assert_eq!(at_least(4, 20), 0.0);
        let low = at_least(50, 1000);
        assert!(low > 0.037 && low < 0.039, "{low}");
        assert!(at_least(60_000, 1_000_000) > RETRANSMISSION_SEVERE);
    }

    #[test]
    fn one_repeat_of_three_segments_is_not_critical() {
        let severity = |data, repeated| {
            let rate = Rate {
                data,
                repeated,
                in_vain: 0,
            };
            let found = Rates {
                sides: [rate, Rate::default()],
                ..Rates::default()
            };
            found.finding().map(|found| found.severity)
        };
        assert_eq!(severity(3, 1).as_deref(), Some("WARNING"));
        assert_eq!(severity(90, 5).as_deref(), Some("WARNING"), "5.6 %, and at least 2.4 %");
        assert_eq!(severity(900, 90).as_deref(), Some("CRITICAL"));
        assert_eq!(severity(1000, 5), None);
    }
}
