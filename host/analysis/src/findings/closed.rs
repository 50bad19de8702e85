//! Windows that were closed, small or silly while data waited for them.

use weir_messages::v1;

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::limits::Cause;
use crate::message::{address, period, seconds};
use crate::numbers::{connections, count, decimal, lasting, several};

/// Closed windows that cost less than this in all are not worth a finding, s.
const WINDOW_SECONDS: f64 = 0.01;

/// Hosts whose windows are counted apart, and those that are named.
const WINDOW_HOSTS: usize = 64;
const NAMED_HOSTS: usize = 5;

/// A host whose windows held its peers.
#[derive(Clone, Copy, Debug, Default)]
struct WindowHost {
    address: [u8; 16],
    connections: u64,
    ns: u64,
    /// Of those connections, TAI ns.
    start: u64,
    end: u64,
}

/// The first [`WINDOW_HOSTS`] of them.
#[derive(Clone, Debug, Default)]
struct WindowHosts(Vec<WindowHost>);

impl WindowHosts {
    /// The windows of `side` held its peer for so many ns.
    fn add(&mut self, flow: &Flow, side: usize, ns: u64) {
        let ends = flow.ends();
        let address = if side == 0 { ends.client } else { ends.server };
        let known = self.0.iter().position(|host| host.address == address);
        let at = match known {
            Some(at) => at,
            None if self.0.len() < WINDOW_HOSTS => {
                self.0.push(WindowHost {
                    address,
                    start: flow.first,
                    ..WindowHost::default()
                });
                self.0.len() - 1
            }
            None => return,
        };
        let host = &mut self.0[at];
        host.connections += 1;
        host.ns = host.ns.saturating_add(ns);
        host.start = host.start.min(flow.first);
        host.end = host.end.max(flow.last);
    }

    /// Those to be named, longest first.
    fn most(&self) -> Vec<WindowHost> {
        let mut hosts = self.0.clone();
        hosts.sort_by_key(|host| std::cmp::Reverse((host.ns, host.address)));
        hosts.truncate(NAMED_HOSTS);
        hosts
    }

    /// In sentences.
    fn told(&self) -> impl Iterator<Item = String> {
        self.most().into_iter().map(|host| {
            format!(
                "{} did so for {} in {}, {}",
                address(host.address),
                lasting(seconds(host.ns)),
                connections(host.connections),
                period(host.start, host.end)
            )
        })
    }

    /// The value of a finding.
    fn names(&self) -> v1::FindingValue {
        let names: Vec<String> = self.most().iter().map(|host| address(host.address)).collect();
        names.join(", ").as_str().into()
    }
}

/// What receivers' windows held.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedWindows {
    zero: Group,
    zero_ns: u64,
    /// ns and connection.
    zero_longest: (u64, u64),
    zero_hosts: WindowHosts,
    small: Group,
    small_ns: u64,
    small_hosts: WindowHosts,
    silly: Group,
    silly_ns: u64,
    silly_openings: u64,
    silly_pieces: u64,
}

impl ClosedWindows {
    /// A connection that is over.
    pub fn connection(&mut self, flow: &Flow) {
        self.silly(flow);
        let Some(trouble) = flow.extras.trouble() else { return };
        let (mut zero, mut small) = (0u64, 0u64);
        let charged = |side: usize, cause| flow.extras.limits().map_or(0, |l| l.sides[side].total.by.of(cause));
        for side in 0..2 {
            // While nothing waits, a closed window costs nothing.
            let closed = &trouble.closed[side];
            let own = charged(1 - side, Cause::ZeroWindow)
                .max(closed.zero_asked)
                .min(closed.zero);
            if own > 0 {
                self.zero_hosts.add(flow, side, own);
            }
            zero = zero.saturating_add(own);
            let own = charged(1 - side, Cause::SmallWindow);
            if own > 0 {
                self.small_hosts.add(flow, side, own);
            }
            small = small.saturating_add(own);
        }
        if zero > 0 {
            self.zero.add(flow);
            self.zero_ns = self.zero_ns.saturating_add(zero);
            if zero > self.zero_longest.0 {
                self.zero_longest = (zero, flow.id.0);
            }
        }
        if small > 0 {
            self.small.add(flow);
            self.small_ns = self.small_ns.saturating_add(small);
        }
    }

    fn silly(&mut self, flow: &Flow) {
        let Some(limits) = flow.extras.limits() else { return };
        for silly in limits.sides.iter().map(|side| side.silly) {
            if silly.openings > 0 {
                self.silly.add(flow);
                self.silly_ns = self.silly_ns.saturating_add(silly.ns);
                self.silly_openings += u64::from(silly.openings);
                self.silly_pieces += u64::from(silly.pieces);
            }
        }
    }

    /// `wrong_scale`: waits for the windows that a wrong scale left, ns.
    pub fn findings(&self, wrong_scale: u64) -> impl Iterator<Item = v1::Finding> {
        [
            self.zero_windows(),
            self.small_windows(wrong_scale),
            self.silly_windows(wrong_scale),
        ]
        .into_iter()
        .flatten()
    }

    fn zero_windows(&self) -> Option<v1::Finding> {
        let total = seconds(self.zero_ns);
        if self.zero.count() == 0 || total < WINDOW_SECONDS {
            return None;
        }
        let mut evidence = vec![
            format!(
                "receivers of {} announced a window of 0 for {} s in all while data waited: their applications did not read",
                connections(self.zero.count()),
                decimal(total, 3)
            ),
            format!(
                "longest: connection {} with {} s",
                self.zero_longest.1,
                decimal(seconds(self.zero_longest.0), 3)
            ),
        ];
        evidence.extend(self.zero_hosts.told());
        evidence.push(
            "it may also be buffers that are small for the rate of this path: an application that reads at once empties them too late".to_owned(),
        );
        evidence.push(
            "next: see why the receivers' applications did not read what had arrived (processor, disk, a lock, a slow consumer behind them)".to_owned(),
        );
        let mut found = finding(
            "ZERO_WINDOW",
            "WARNING",
            1.0,
            format!("Receivers stopped their senders for {} s", decimal(total, 3)),
            evidence,
            &self.zero,
            &[("seconds", total), ("costSeconds", total)],
        );
        found.values.insert("hosts".to_owned(), self.zero_hosts.names());
        Some(found)
    }

    fn small_windows(&self, wrong_scale: u64) -> Option<v1::Finding> {
        let total = seconds(self.small_ns);
        if self.small.count() == 0 || total < WINDOW_SECONDS {
            return None;
        }
        let mut evidence = vec![format!(
            "receivers of {} announced windows above 0 and below one segment for {} s in all: as bad as a closed window, and not marked as one by other tools",
            connections(self.small.count()),
            decimal(total, 3)
        )];
        evidence.extend(self.small_hosts.told());
        evidence.push("it may also be a buffer that is smaller than a segment or two".to_owned());
        evidence.push(self.window_advice(
            wrong_scale,
            "as for a closed window: see why the receivers' applications read too slowly",
        ));
        let mut found = finding(
            "SMALL_WINDOW",
            "WARNING",
            0.9,
            format!("Windows below one segment for {} s", decimal(total, 3)),
            evidence,
            &self.small,
            &[("seconds", total), ("costSeconds", total)],
        );
        found.values.insert("hosts".to_owned(), self.small_hosts.names());
        Some(found)
    }

    /// What to do about small windows: where a wrong scale made most of them, no application is to blame.
    fn window_advice(&self, wrong_scale: u64, else_do: &str) -> String {
        if wrong_scale >= self.small_ns / 2 && wrong_scale > 0 {
            "next: mend the window scale first (WINDOW_SCALE_MISHAP): it made most of these windows small".to_owned()
        } else {
            format!("next: {else_do}")
        }
    }

    /// RFC 1122 4.2.3.3 and 4.2.3.4.
    fn silly_windows(&self, wrong_scale: u64) -> Option<v1::Finding> {
        let total = seconds(self.silly_ns);
        if self.silly.count() == 0 || total < WINDOW_SECONDS {
            return None;
        }
        let mut evidence = vec![format!(
            "receivers of {} opened their windows {} times by less than a segment and less than half of the window, three or more times in a row, while data waited",
            connections(self.silly.count()),
            count(self.silly_openings)
        )];
        if self.silly_pieces > 0 {
            evidence.push(format!(
                "their senders answered with {} below a segment: each costs a round trip or a timer",
                several(self.silly_pieces, "piece", "pieces")
            ));
        }
        evidence.push("it may also be a device in between that announces windows of its own".to_owned());
        evidence.push(
            self.window_advice(
wrong_scale,
                "let the receivers' applications read more at a time; a TCP that follows RFC 1122 does not announce such windows",
            ),
        );
        Some(finding(
            "SILLY_WINDOW",
            "WARNING",
            0.9,
            format!("Silly windows for {} s", decimal(total, 3)),
            evidence,
            &self.silly,
            &[
                ("seconds", total),
                ("costSeconds", total),
                ("openings", self.silly_openings as f64),
                ("pieces", self.silly_pieces as f64),
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
    fn hosts_that_closed_their_windows_are_told_with_times_of_the_day() {
        let mut windows = ClosedWindows {
            zero_ns: 1_250_041_237,
            zero_longest: (1_250_000_000, 7),
            ..ClosedWindows::default()
        };
        for (last, ns) in [(1u8, 1_250_000_000), (2, 41_237)] {
            let mut address = [0; 16];
            address[10..].copy_from_slice(&[255, 255, 10, 0, 0, last]);
            windows.zero.include(FlowId(last.into()), START, START);
            windows.zero_hosts.0.push(WindowHost {
                address,
                connections: 1,
                ns,
                start: START,
                end: START + 2_500_000_000,
            });
        }
        let evidence = windows.zero_windows().map(|found| found.evidence).unwrap_or_default();
        assert_eq!(
            evidence[2..4],
            [
                "10.0.0.1 did so for 1.25 s in 1 connection, from 22:13:20.000 to 22:13:22.500 (2.500 s)",
                "10.0.0.2 did so for 41.2 µs in 1 connection, from 22:13:20.000 to 22:13:22.500 (2.500 s)",
            ]
        );
    }
}
