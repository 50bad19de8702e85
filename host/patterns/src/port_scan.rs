//! A host that tries many doors. Memory: 256 hosts with 512 targets of 18 bytes each at most, and a group each.

use std::collections::HashSet;

use weir_analysis::{Ended, Group, Outcome, address, count, finding, period, seconds, several};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::{Address, about};
use crate::routes::Route;
use crate::table::Table;
use crate::timeline::Timeline;

/// Hosts that are watched, and targets that are told apart for each.
const HOSTS: usize = 256;
const TARGETS: usize = 512;
/// Targets that failed from which on it is a scan: monitoring and clients of a broken site have a handful.
const LEAST: usize = 30;
/// So many failed for each that answered.
const RATIO: u64 = 4;
/// A host with fewer failed targets makes room for another.
const FEW: usize = 8;

#[derive(Debug, Default)]
struct Host {
    targets: HashSet<(Address, u16)>,
    failed: Group,
    /// No answer, and RST.
    ignored: u64,
    refused: u64,
    answered: u64,
}

/// Hosts whose connections failed.
#[derive(Debug, Default)]
pub(crate) struct PortScan {
    hosts: Table<Address, Host, HOSTS>,
}

impl Detector for PortScan {
    fn connection(&mut self, connection: &Ended, route: &mut Route) {
        let refused = match connection.setup {
            Some(Outcome::Refused) => true,
            Some(Outcome::Ignored | Outcome::ResetLate) => false,
            _ => {
                if let Some(host) = self.hosts.get(&route.client) {
                    host.answered += 1;
                }
                return;
            }
        };
        let worth = |host: &Host| host.targets.len() >= FEW;
        let Some(host) = self.hosts.place(route.client, Host::default, worth) else {
            return;
        };
        if host.targets.len() < TARGETS {
            host.targets.insert((route.server, route.port));
        }
        let at = connection.span.0;
        host.failed.include(connection.id, at, at);
        host.refused += u64::from(refused);
        host.ignored += u64::from(!refused);
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        let mut scanners: Vec<_> = self
            .hosts
            .sorted()
            .into_iter()
            .filter(|(_, host)| host.targets.len() >= LEAST && host.failed.count() >= RATIO * host.answered)
            .collect();
        scanners.sort_by_key(|(_, host)| std::cmp::Reverse(host.failed.count()));
        for (client, host) in scanners {
            let hosts = host.targets.iter().map(|target| target.0).collect::<HashSet<_>>().len();
            let ports = host.targets.iter().map(|target| target.1).collect::<HashSet<_>>().len();
            let (start, end) = host.failed.span();
            let rate = host.failed.count() as f64 / seconds(end - start).max(1.0);
            let most = if host.targets.len() == TARGETS { "at least " } else { "" };
            let name = address(*client);
            let title = format!(
                "{name} tried {most}{} targets in vain: {} of {}",
                host.targets.len(),
                several(ports as u64, "port", "ports"),
                several(hosts as u64, "host", "hosts")
            );
            let evidence = vec![
                format!(
                    "{} failed {}: {} refused, {} without an answer; {} were answered since the first failed",
                    several(host.failed.count(), "attempt", "attempts"),
                    period(start, end),
                    count(host.refused),
                    count(host.ignored),
                    count(host.answered)
                ),
                "it may also be: monitoring or discovery that is meant to, or a program for peers that are gone"
                    .to_owned(),
                "next: ask who runs it; the firewall's log tells which were dropped on purpose".to_owned(),
            ];
            let values = [
                ("targets", host.targets.len() as f64),
                ("hosts", hosts as f64),
                ("ports", ports as f64),
                ("connections", host.failed.count() as f64),
                ("perSecond", rate),
            ];
            let found = finding("PORT_SCAN", "WARNING", 0.9, title, evidence, &host.failed, &values);
            out.push(about(name, found));
        }
    }
}
