//! A connection for each transaction: every request pays for a handshake first.

use weir_analysis::{Ended, Group, Outcome, count, decimal, finding, seconds};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::connections;
use crate::timeline::Timeline;

/// Connections with at least one answered request from which on there is a pattern.
const LEAST: u64 = 30;
/// Share of them with exactly one.
const SHARE: f64 = 0.5;

/// Connections that had one answered request, and what their setups took.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPerTransaction {
    answered: u64,
    single: Group,
    setup_ns: u64,
    life_ns: u64,
}

impl Detector for ConnectionPerTransaction {
    fn connection(&mut self, connection: &Ended) {
        let begun = matches!(connection.setup, Some(Outcome::Ok | Outcome::Retransmitted));
        if !begun || connection.answered == 0 {
            return;
        }
        self.answered += 1;
        if connection.answered == 1 {
            let (first, last) = connection.span;
            self.single.include(connection.id, first, last);
            self.setup_ns += connection.setup_ns.unwrap_or(0);
            self.life_ns += last.saturating_sub(first);
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        let single = self.single.count();
        let share = single as f64 / self.answered.max(1) as f64;
        if self.answered < LEAST || share < SHARE {
            return;
        }
        let setup_share = self.setup_ns as f64 / self.life_ns.max(1) as f64;
        out.push(finding(
            "CONNECTION_PER_TRANSACTION",
            "INFO",
            1.0,
            format!("{:.0} % of the connections carry one transaction each", share * 100.0),
            vec![
                format!(
                    "{} of {} with an answered request had exactly one",
                    count(single),
                    connections(self.answered)
                ),
                format!(
                    "their setups took {} s, {:.1} % of their time: connections that stay open save it",
                    decimal(seconds(self.setup_ns), 3),
                    setup_share * 100.0
                ),
                "it may also be clients that come once and have nothing more to ask".to_owned(),
                "next: keep connections open for more than one request (keep-alive, a pool), or use session resumption: each of them pays for handshakes first".to_owned(),
            ],
            &self.single,
            &[
                ("setupShare", setup_share),
                ("share", share),
                ("costSeconds", seconds(self.setup_ns)),
            ],
        ));
    }
}
