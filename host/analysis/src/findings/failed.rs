//! Connections that were never set up.

use weir_messages::v1;

use super::refusals::Refusals;
use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::icmp::Icmp;
use crate::message::{Failure, seconds};
use crate::numbers::{connections, count, lasting};
use crate::setup::Outcome;

/// Those that failed, by how, and who told why.
#[derive(Clone, Debug, Default)]
pub(super) struct Failed {
    ignored: Group,
    reset: Group,
    refused: Group,
    refusals: Refusals,
    icmp: Icmp,
    /// Of the ignored, those whose client was told why by an ICMP error.
    told_why: u64,
    /// From the first SYN until they failed, ns, and those of which that is known.
    ns: u64,
    timed: u64,
    /// Those whose later SYN had no window scale.
    scale_dropped: u64,
}

impl Failed {
    /// A connection that is over; `failure`: how it failed, if it did.
    pub fn connection(&mut self, flow: &Flow, failure: Option<Failure>) {
        match failure {
            Some(Failure::Ignored) => self.ignored.add(flow),
            Some(Failure::Reset) => self.reset.add(flow),
            Some(Failure::Refused) => {
                self.refused.add(flow);
                self.refusals.refused(&flow.ends(), flow.first, flow.last);
            }
            None if matches!(flow.setup.outcome, Outcome::Ok | Outcome::Retransmitted) => {
                self.refusals.accepted(|| flow.ends());
            }
            None => {}
        }
        let is_told = self.icmp.connection(flow, failure.is_some());
        self.told_why += u64::from(is_told && failure == Some(Failure::Ignored));
        if failure.is_none() {
            return;
        }
        if let Some(ns) = flow.setup.end_ns() {
            self.ns = self.ns.saturating_add(ns);
            self.timed += 1;
        }
        if flow.extras.trouble().is_some_and(|trouble| trouble.scale_dropped) {
            self.scale_dropped += 1;
        }
    }

    /// What says why goes before what failed.
    pub fn findings(&self) -> impl Iterator<Item = v1::Finding> {
        self.icmp.findings().chain(self.finding())
    }

    fn finding(&self) -> Option<v1::Finding> {
        let mut all = Group::default();
        for group in [&self.ignored, &self.reset, &self.refused] {
            all.join(group);
        }
        if all.count() == 0 {
            return None;
        }
        let mut evidence = Vec::new();
        if self.ignored.count() > 0 {
            evidence.push(format!(
                "{} got no answer to any SYN (or did not answer the SYN-ACK) until the flow ended",
                connections(self.ignored.count())
            ));
        }
        if self.reset.count() > 0 {
            evidence.push(format!(
                "{} reset 1 s or more after the last SYN: the other side knew of the connection, so its SYN-ACKs were lost on the way back",
                connections(self.reset.count())
            ));
        }
        if self.refused.count() > 0 {
            evidence.push(format!(
                "{} refused at once: nothing listens there, or a firewall answers",
                connections(self.refused.count())
            ));
            evidence.extend(self.refusals.rows());
        }
        if self.scale_dropped > 0 {
            evidence.push(format!(
                "{} sent a later SYN without window scale: the client believed its first SYNs lost",
                connections(self.scale_dropped)
            ));
        }
        let cost = seconds(self.ns);
        if self.timed > 0 {
            evidence.push(format!(
                "{} from the first SYN to the RST, or until the next SYN was due, in {}",
                lasting(cost),
                connections(self.timed)
            ));
        }
        let silent = self.ignored.count() + self.reset.count();
        if self.told_why > 0 {
            evidence.push(format!(
                "ICMP errors told the clients of {} why (ICMP_ERRORS)",
                count(self.told_why)
            ));
        }
        let (otherwise, next) = if silent > 0 && self.told_why == silent {
            (
                "it may also be errors that somebody else forged (RFC 5927)",
                "next: as for ICMP_ERRORS: something on the way says why it did not pass the SYNs",
            )
        } else if silent > 0 {
            (
                "it may also be a server that drops SYNs when its queue of connections is full, or a firewall that drops them on purpose",
                "next: find where SYN and SYN-ACK get lost: capture on the other side of every device between the tap and the server (load balancer, firewall, switch), and at the server; compare its listen queue and limits with the number of connections at those times",
            )
        } else {
            (
                "it may also be a firewall that answers for the server",
                "next: see whether the program listens there, when it stopped, and why its clients try on",
            )
        };
        evidence.extend([otherwise, next].map(str::to_owned));
        Some(finding(
            "FAILED_CONNECTIONS",
            if silent > 0 { "CRITICAL" } else { "WARNING" },
            // A SYN at the end of the input may have been answered later.
            if silent == 0 { 1.0 } else { 0.9 },
            format!("{} failed", connections(all.count())),
            evidence,
            &all,
            &[
                ("connections", all.count() as f64),
                ("ignored", self.ignored.count() as f64),
                ("reset", self.reset.count() as f64),
                ("refused", self.refused.count() as f64),
                ("costSeconds", cost),
            ],
        ))
    }
}

#[cfg(test)]
mod tests {
    use weir_record::FlowId;

    use super::super::tests::START;
    use super::*;

    #[test]
    fn what_was_refused_at_once_took_no_zero_seconds() {
        let mut failed = Failed {
            ns: 41_237,
            timed: 1,
            ..Failed::default()
        };
        failed.refused.include(FlowId(1), START, START);
        let evidence = failed.finding().map(|found| found.evidence).unwrap_or_default();
        assert_eq!(
            evidence[1],
            "41.2 µs from the first SYN to the RST, or until the next SYN was due, in 1 connection"
        );
    }
}
