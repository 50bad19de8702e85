//! Connections that ended with a RST.

use weir_messages::v1;

use crate::closing::Kind;
use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::numbers::{connections, count};
use crate::resets::FORGOTTEN;
use crate::turns::Finished;

/// Established connections, and those of them that ended so.
#[derive(Clone, Debug, Default)]
pub(super) struct Abortive {
    established: u64,
    group: Group,
    by: [u64; 2],
    after_fin: u64,
    /// Of the abortive, those that something on the path reset.
    foreign: u64,
    /// Of them, those with a request that had no answer, by who sent the RST; and of these, those that had been idle before it.
    unanswered_by: [u64; 2],
    unanswered_idle: u64,
    /// Of those by the server, the ones that something on the path sent.
    unanswered_foreign: u64,
}

impl Abortive {
    /// An established connection that is over. `is_foreign`: something on the path reset it. `last`: its last transaction, if
    /// it may have been left without an answer.
    pub fn connection(&mut self, flow: &Flow, kind: Kind, is_foreign: bool, last: Option<&Finished>) {
        self.established += 1;
        let fins = usize::from(flow.sent_fin(0)) + usize::from(flow.sent_fin(1));
        let resets = [flow.sent_rst(0), flow.sent_rst(1)];
        if resets == [false; 2] || fins == 2 || kind == Kind::Refused {
            return;
        }
        self.group.add(flow);
        self.foreign += u64::from(is_foreign);
        self.after_fin += u64::from(fins == 1);
        for (count, reset) in self.by.iter_mut().zip(resets) {
            *count += u64::from(reset);
        }
        // Behind its own FIN a client waits for nothing: the last that it sends is often TLS's notice of closing.
        let waits = |last: &&Finished| {
            last.request_bytes > 0 && last.response.is_none() && !last.overlapped && !flow.sent_fin(0)
        };
        if let Some(last) = last.filter(waits) {
            self.unanswered_by[usize::from(resets[1])] += 1;
            self.unanswered_foreign += u64::from(resets[1] && is_foreign);
            self.unanswered_idle += u64::from(last.client.is_some_and(|idle| idle >= FORGOTTEN));
        }
    }

    pub fn finding(&self) -> Option<v1::Finding> {
        if self.group.count() == 0 {
            return None;
        }
        let mut evidence = vec![format!(
            "{} of {} established connections ended with RST before both sides had sent FIN (client {}, server {})",
            count(self.group.count()),
            count(self.established),
            count(self.by[0]),
            count(self.by[1])
        )];
        if self.after_fin > 0 {
            evidence.push(format!(
                "in {} of them one side had sent FIN before",
                count(self.after_fin)
            ));
        }
        let [by_client, by_server] = self.unanswered_by;
        let unanswered = by_client + by_server;
        if unanswered > 0 {
            evidence.push(format!(
                "in {} a request had no answer yet: the client gave up in {}, in {} the RST came from the server, or from what stands before it",
                count(unanswered),
                count(by_client),
                count(by_server)
            ));
        }
        if self.unanswered_idle > 0 {
            evidence.push(format!(
                "{} of these requests came after {} s or more without data: firewalls and load balancers forget such connections (keep-alives prevent it)",
                count(self.unanswered_idle),
                FORGOTTEN / 1_000_000_000
            ));
        }
        if self.foreign > 0 {
            evidence.push(format!(
                "{} of them were reset by something on the path, most likely (FOREIGN_RST)",
                count(self.foreign)
            ));
        }
        evidence.push("it may also be on purpose: a RST frees the port at once, without TIME-WAIT".to_owned());
        let own = by_server - self.unanswered_foreign;
        evidence.push(
            if self.foreign == self.group.count() {
                "next: as for FOREIGN_RST"
            } else if own > 0 {
                "next: see why the server sends these RSTs, or a device before it that looks the same (those that do not are FOREIGN_RST)"
            } else {
                "next: harmless if the application closes so on purpose; else data under way is lost: see who sends the RST and why"
            }
            .to_owned(),
        );
        Some(finding(
            "ABORTIVE_CLOSE",
            if own > 0 { "WARNING" } else { "INFO" },
            1.0,
            format!(
                "{} {} closed by RST",
                connections(self.group.count()),
                if self.group.count() == 1 { "was" } else { "were" }
            ),
            evidence,
            &self.group,
            &[
                ("count", self.group.count() as f64),
                ("unanswered", unanswered as f64),
                ("unansweredAfterIdle", self.unanswered_idle as f64),
            ],
        ))
    }
}
