//! Connections that are kept alive every few seconds and do nothing else.
//!
//! Memory: 256 hosts of about 8 kB of connection numbers at most.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use weir_analysis::{Ended, Group, address, count, finding, seconds};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::{Address, about, connections};
use crate::routes::Route;
use crate::timeline::Timeline;

/// Keep-alives of a host from which on they are worth a word, and their share of its packets on those connections.
const LEAST: u64 = 100;
const SHARE: f64 = 0.1;
/// Mean time between them on a connection up to which it is a storm, s. RFC 9293 3.8.4 wants two hours by default.
const INTERVAL: f64 = 60.0;
/// Hosts that are looked at: the first.
const HOSTS: usize = 256;
/// Findings at most.
const FINDINGS: usize = 8;

/// What a host keeps alive.
#[derive(Clone, Debug, Default)]
struct Keeper {
    keep_alives: u64,
    packets: u64,
    /// Sum of the lives of these connections, ns.
    lives: u64,
    connections: Group,
    span: (u64, u64),
}

/// Keep-alives by host.
#[derive(Debug)]
pub(crate) struct KeepAliveStorm {
    hosts: HashMap<Address, Keeper, FixedState>,
}

impl Default for KeepAliveStorm {
    fn default() -> Self {
        Self {
            hosts: HashMap::with_hasher(FixedState::with_seed(0x7765_6972)),
        }
    }
}

impl Detector for KeepAliveStorm {
    fn connection(&mut self, connection: &Ended, route: &mut Route) {
        for side in 0..2 {
            let sent = connection.sent[side];
            if sent.keep_alives == 0 {
                continue;
            }
            let host = route.host(side);
            if self.hosts.len() >= HOSTS && !self.hosts.contains_key(&host) {
                continue;
            }
            let keeper = self.hosts.entry(host).or_default();
            let (first, last) = connection.span;
            keeper.keep_alives += u64::from(sent.keep_alives);
            keeper.packets += sent.packets;
            keeper.lives += last.saturating_sub(first);
            keeper.connections.include(connection.id, first, last);
            let start = if keeper.span.1 == 0 {
                first
            } else {
                keeper.span.0.min(first)
            };
            keeper.span = (start, keeper.span.1.max(last));
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        let mut storms: Vec<(&Address, &Keeper)> = self
            .hosts
            .iter()
            .filter(|(_, keeper)| {
                keeper.keep_alives >= LEAST
                    && keeper.keep_alives as f64 >= SHARE * keeper.packets as f64
                    && keeper.interval() <= INTERVAL
            })
            .collect();
        storms.sort_by_key(|(host, keeper)| std::cmp::Reverse((keeper.keep_alives, **host)));
        out.extend(
            storms
                .into_iter()
                .take(FINDINGS)
                .map(|(host, keeper)| keeper.told(*host)),
        );
    }
}

impl Keeper {
    /// Mean time between keep-alives on a connection, s.
    fn interval(&self) -> f64 {
        seconds(self.lives) / self.keep_alives as f64
    }

    fn told(&self, host: Address) -> Finding {
        let who = address(host);
        let n = self.keep_alives;
        let took = seconds(self.span.1.saturating_sub(self.span.0)).max(1e-9);
        let share = n as f64 / self.packets as f64;
        let evidence = vec![
            format!(
                "{} keep-alives on {}, one every {:.1} s on each (the standard wants two hours by default)",
                count(n),
                connections(self.connections.count()),
                self.interval()
            ),
            format!(
                "{:.0} % of its packets there, {:.1} a second, and as many answers; they cost no waiting time, but packets, wake-ups and radio time of the other side",
                share * 100.0,
                n as f64 / took
            ),
            "it may also be: windows that are asked for, if segments of the other side are missing in the capture"
                .to_owned(),
            format!(
                "next: look at the keep-alive time of {who} (its kernel or its connection pool), or close connections that are idle"
            ),
        ];
        let finding = finding(
            "KEEP_ALIVE_STORM",
            "INFO",
            0.95,
            format!("{who} keeps connections alive every {:.1} s", self.interval()),
            evidence,
            &self.connections,
            &[
                ("keepAlives", n as f64),
                ("intervalSeconds", self.interval()),
                ("perSecond", n as f64 / took),
                ("share", share),
            ],
        );
        about(who, finding)
    }
}
