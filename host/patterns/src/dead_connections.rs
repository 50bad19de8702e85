//! Connections that end in silence: one side sends again by its timers, and nothing comes any more. Memory: the newest
//! [`MOST`] of them (0.4 MB).

use std::collections::HashSet;

use weir_analysis::{
    Ended, Ends, FORGOTTEN, Group, Verdict, address, count, decimal, finding, lasting, lasting_between, seconds, sign,
};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::detector::Detector;
use crate::names::{Address, connections, service, several};
use crate::newest::Newest;
use crate::routes::Route;
use crate::timeline::Timeline;

/// Connections kept.
const MOST: usize = 4096;
/// Those from which on it is more than a host that was switched off; and so it is if they are such a share of all connections.
const MANY: u64 = 3;
const SHARE: u64 = 10;
/// Hosts that are named.
const NAMED: usize = 5;

/// A connection of which one side fell silent.
#[derive(Clone, Copy, Debug)]
struct Dead {
    id: FlowId,
    ends: Ends,
    /// The server is silent.
    by_server: bool,
    repeats: u64,
    /// Some of them had data: not only the end of the connection was sent again.
    has_data: bool,
    /// From the last packet before a timer ran out in vain to the last repeat, TAI ns.
    span: (u64, u64),
    /// How long nothing had passed before what was sent in vain, ns; 0: not known.
    rested: u64,
}

impl Dead {
    /// Who is silent: a service, or the address of a client.
    fn who(&self) -> (Address, Option<u16>) {
        if self.by_server {
            (self.ends.server, Some(self.ends.server_port))
        } else {
            (self.ends.client, None)
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct DeadConnections {
    dead: Newest<Dead, MOST>,
    /// Of the connection whose verdicts came last.
    current: Option<Dead>,
    /// Connections that came about or were open before.
    connections: u64,
}

impl Detector for DeadConnections {
    fn segment(&mut self, verdict: &Verdict, ends: &Ends, _: &mut Route) {
        // Nobody waits for a setup that its client gave up: that is for `HALF_OPEN` and `SYN_FLOOD` to tell.
        if !verdict.evidence.has(sign::SILENCE) || verdict.handshake {
            return;
        }
        let new = Dead {
            id: verdict.connection,
            ends: *ends,
            by_server: !verdict.from_server,
            repeats: 0,
            has_data: false,
            span: (verdict.lost_at, verdict.time),
            rested: 0,
        };
        let dead = self.current.get_or_insert(new);
        if dead.id != new.id {
            *dead = new;
        }
        dead.repeats += 1;
        dead.has_data |= verdict.length > 0;
        dead.span = (dead.span.0.min(verdict.lost_at), dead.span.1.max(verdict.time));
    }

    fn connection(&mut self, connection: &Ended, _: &mut Route) {
        self.connections += u64::from(!connection.failed);
        if let Some(dead) = self.current.take_if(|dead| dead.id == connection.id) {
            let rested = u64::from(connection.rested[usize::from(!dead.by_server)]) * 1_000_000;
            self.dead.push(Dead { rested, ..dead });
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        // What is too large for the path comes again in vain, too.
        let stuck: HashSet<u64> = out
            .iter()
            .filter(|finding| finding.kind == "MTU_BLACK_HOLE")
            .flat_map(|finding| finding.connection_ids.iter().copied())
            .collect();
        let dead: Vec<&Dead> = self.dead.iter().filter(|dead| !stuck.contains(&dead.id.0)).collect();
        if !dead.is_empty() {
            out.push(tell(&dead, self.connections));
        }
    }
}

/// Least and most, ns, of the waits in vain that came after a rest in which devices forget.
fn forgotten(dead: &[&Dead]) -> Option<(u64, u64, u64)> {
    let rests = || dead.iter().filter(|dead| dead.has_data).map(|dead| dead.rested);
    let long = || rests().filter(|rest| *rest >= FORGOTTEN);
    Some((long().count() as u64, long().min()?, long().max()?))
}

fn tell(dead: &[&Dead], all: u64) -> Finding {
    let mut group = Group::default();
    let mut hosts: Vec<((Address, Option<u16>), u64)> = Vec::new();
    for dead in dead {
        group.include(dead.id, dead.span.0, dead.span.1);
        let who = dead.who();
        match hosts.iter_mut().find(|(known, _)| *known == who) {
            Some((_, count)) => *count += 1,
            None => hosts.push((who, 1)),
        }
    }
    hosts.sort_by_key(|(who, count)| (std::cmp::Reverse(*count), *who));
    let name = |(host, port): (Address, Option<u16>)| port.map_or_else(|| address(host), |port| service(host, port));
    let named: Vec<String> = hosts
        .iter()
        .take(NAMED)
        .map(|(who, n)| format!("{} ({})", name(*who), connections(*n)))
        .collect();
    let repeats: u64 = dead.iter().map(|dead| dead.repeats).sum();
    let waiting = || dead.iter().filter(|dead| dead.has_data);
    let waited: u64 = waiting().map(|dead| dead.span.1.saturating_sub(dead.span.0)).sum();
    let waited = seconds(waited);
    let by_server = dead.iter().filter(|dead| dead.by_server).count() as u64;
    let n = group.count();
    let closing = n - waiting().count() as u64;
    let went_on = if closing < n {
        format!(
            "this went on for {} s in all: a user or a program waited for it",
            decimal(waited, 3)
        )
    } else {
        "only FINs came again: who had sent them was done, and nobody waited".to_owned()
    };
    let who = match (by_server, n - by_server) {
        (_, 0) => "the server",
        (0, _) => "the client",
        _ => "one side",
    };
    let rest = hosts.len().saturating_sub(NAMED) as u64;
    let more = if rest > 0 {
        format!(" and {} more", count(rest))
    } else {
        String::new()
    };
    let waiting = n - closing;
    let mut evidence = vec![format!(
        "nothing came any more from {}{more}, while the other side sent again what was not acknowledged: {}, all by its timers, and all in vain",
        named.join(", "),
        several(repeats, "segment", "segments")
    )];
    let mut values = vec![
        ("connections", n as f64),
        ("closing", closing as f64),
        ("repeats", repeats as f64),
        ("byServer", by_server as f64),
        ("costSeconds", waited),
    ];
    let forgotten = forgotten(dead);
    let mut after = String::new();
    if let Some((idle, least, most)) = forgotten {
        let times = lasting_between(seconds(least), seconds(most));
        evidence.push(format!(
            "in {} it was the first data after {times} in which nothing had passed: what keeps a table of connections on the way (a firewall, a NAT, a load balancer) forgets those that are idle, or the host was gone by then",
            count(idle)
        ));
        values.extend([
            ("afterIdle", idle as f64),
            ("idleLeastSeconds", seconds(least)),
            ("idleMostSeconds", seconds(most)),
        ]);
        if 2 * idle >= n {
            after = format!(" after {times} of idle time");
        }
    }
    evidence.push(went_on);
    evidence
        .push("these segments are not counted as losses: nothing tells of single ones where all are gone".to_owned());
    evidence.push(
        "it may also be the way to it or from it: a firewall or a NAT that has forgotten the connection, a route that is gone; or the capture lost one direction".to_owned(),
    );
    evidence.push(match forgotten {
        Some((_, least, _)) => format!(
            "next: compare {} with the idle timeouts of the firewalls, NATs and load balancers on the way; let keep-alives come sooner than these (RFC 9293 3.8.4: off, or after two hours by default) or make them longer; see whether other connections of the silent host went on then",
            lasting(seconds(least))
        ),
        None => "next: see whether other connections of the silent host went on then; if so, look at the firewalls and NATs on the way, and at its routes".to_owned(),
    });
    finding(
        "DEAD_CONNECTIONS",
        if waiting >= MANY || waiting > 0 && SHARE * waiting >= all {
            "WARNING"
        } else {
            "INFO"
        },
        0.8,
        format!(
            "{} ended in silence{after}: {who} was not heard of any more",
            connections(n)
        ),
        evidence,
        &group,
        &values,
    )
}

#[cfg(test)]
mod tests {
    use weir_analysis::{CloseKind, Evidence, Outcome};

    use super::*;
    use crate::fixtures::{ended, verdict};

    /// A connection whose server fell silent after a second; its client sends again so often, every 2 s. Or a setup whose
    /// client did, and the server sends its SYN-ACK again (`handshake`).
    fn end(all: &mut DeadConnections, id: u64, repeats: u64, handshake: bool) {
        end_with(all, id, repeats, handshake, if handshake { 0 } else { 100 });
    }

    /// The same, with so many bytes in each repeat.
    fn end_with(all: &mut DeadConnections, id: u64, repeats: u64, handshake: bool, length: u32) {
        end_after(all, id, repeats, handshake, length, 0);
    }

    /// The same, before which nothing had passed for so long, ms.
    fn end_after(all: &mut DeadConnections, id: u64, repeats: u64, handshake: bool, length: u32, rested: u32) {
        let ends = Ends::default();
        let mut route = Route::new(&ends, 0);
        for n in 1..=repeats {
            let verdict = Verdict {
                from_server: handshake,
                seq: 1,
                length,
                evidence: Evidence::NONE.with(sign::SILENCE),
                episode: 1,
                begins: n == 1,
                handshake,
                ..verdict(id, (2 * n - 1) * 1_000_000_000, (1 + 2 * n) * 1_000_000_000)
            };
            all.segment(&verdict, &ends, &mut route);
        }
        let connection = Ended {
            setup: Some(if handshake { Outcome::Ignored } else { Outcome::Ok }),
            rested: [rested, 0],
            closing: CloseKind::ClientFin,
            has_trouble: true,
            ..ended(id, (0, 60_000_000_000))
        };
        all.connection(&connection, &mut route);
    }

    /// Of so many others nothing is wrong.
    fn others(all: &mut DeadConnections, many: u64) {
        (100..100 + many).for_each(|id| end(all, id, 0, false));
    }

    #[test]
    fn connections_that_end_in_silence_are_told_but_for_black_holes() {
        let mut all = DeadConnections::default();
        let timeline = Timeline::default();
        let found = |all: &DeadConnections, mut out: Vec<Finding>| {
            let before = out.len();
            all.findings(&timeline, &mut out);
            out.split_off(before)
        };
        end(&mut all, 9, 0, false);
        assert_eq!(found(&all, vec![]), []);
        others(&mut all, 30);
        for id in 1..=3 {
            end(&mut all, id, 3, false);
        }
        let told = &found(&all, vec![])[0];
        assert_eq!(
            (told.severity.as_str(), &told.connection_ids[..]),
            ("WARNING", &[1, 2, 3][..])
        );
        let value = |key: &str| told.values[key].clone();
        assert_eq!(value("repeats"), 9.0.into());
        assert_eq!(value("byServer"), 3.0.into());
        assert_eq!(value("costSeconds"), 18.0.into());
        let black_hole = Finding {
            kind: "MTU_BLACK_HOLE".to_owned(),
            connection_ids: vec![1, 3],
            ..Finding::default()
        };
        let rest = &found(&all, vec![black_hole])[0];
        assert_eq!((rest.severity.as_str(), &rest.connection_ids[..]), ("INFO", &[2][..]));
    }

    #[test]
    fn idle_times_in_which_devices_forget_are_told() {
        let mut all = DeadConnections::default();
        for (id, rested) in [(1, 3_700_000), (2, 4_000_000), (3, 59_000)] {
            end_after(&mut all, id, 3, false, 100, rested);
        }
        let mut out = Vec::new();
        all.findings(&Timeline::default(), &mut out);
        let values = ["afterIdle", "idleLeastSeconds", "idleMostSeconds"].map(|key| out[0].values[key].clone());
        assert_eq!(values, [2.0, 3700.0, 4000.0].map(Into::into));
        assert!(
            out[0].title.contains("after 3,700.00 s to 4,000.00 s of idle time"),
            "{}",
            out[0].title
        );
        assert!(
            out[0]
                .evidence
                .last()
                .is_some_and(|next| next.contains("compare 3,700.00 s"))
        );
    }

    #[test]
    fn the_only_connection_is_worth_a_warning() {
        for (others_too, severity) in [(0, "WARNING"), (9, "WARNING"), (10, "INFO")] {
            let mut all = DeadConnections::default();
            end(&mut all, 1, 3, false);
            others(&mut all, others_too);
            let mut out = Vec::new();
            all.findings(&Timeline::default(), &mut out);
            assert_eq!(out[0].severity, severity, "{others_too}");
        }
    }

    #[test]
    fn nobody_waits_for_the_end_of_a_connection() {
        let mut all = DeadConnections::default();
        for id in 1..=3 {
            end_with(&mut all, id, 5, false, 0);
        }
        let mut out = Vec::new();
        all.findings(&Timeline::default(), &mut out);
        assert_eq!(out[0].severity, "INFO");
        assert_eq!(out[0].values["costSeconds"], 0.0.into());
        assert!(out[0].evidence[1].contains("nobody waited"), "{:?}", out[0].evidence);
    }

    #[test]
    fn a_setup_that_nobody_completes_is_no_dead_connection() {
        let mut all = DeadConnections::default();
        for id in 1..=3 {
            end(&mut all, id, 5, true);
        }
        let mut out = Vec::new();
        all.findings(&Timeline::default(), &mut out);
        assert_eq!(out, []);
    }
}
