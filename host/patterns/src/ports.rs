//! PORT_RECYCLING and PORT_EXHAUSTION: a client comes round to ports that it used before, or has none left.
//!
//! A port that was used to the same server and port can meet the old connection's TIME-WAIT: 2 MSL = 240 s
//! (RFC 9293 3.4.2), in practice 60 s (Linux), 120 s (Windows) or 240 s. Memory: 300 bytes for each client and service,
//! at most 4,096 of them, and 9 to 18 bytes for each port, at most 2¹⁹ of them (10 MB).

use hashbrown::HashMap;
use weir_analysis::{CloseKind, Ended, Group, Outcome, address, count, finding, seconds};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::{Address, about, connections, service};
use crate::routes::Route;
use crate::timeline::Timeline;
use crate::times::Times;

/// RFC 9293 3.4.2: twice the maximum segment lifetime of two minutes, ns.
const TIME_WAIT: u64 = 240_000_000_000;
/// Connections of a client and a service from which on there can be no ports left.
const MANY: u64 = 256;
/// Pairs of client and service whose ports are kept, and ports of all of them.
const PAIRS: usize = 4096;
const PORTS: usize = 1 << 19;
/// Ports that were used again, from which on they are recycled.
const RECYCLED: u64 = 100;
/// Times are kept in units of 2²⁰ ns: 52 days fit.
const UNIT: u32 = 20;
/// Ports come round in order if nine of ten come back after this share of the median, or later.
const ROUND: f64 = 0.5;
/// No ports are left: of the ports between the first and the last, this share was used...
const ALL: f64 = 0.98;
/// ...and this share of the connections left its port in TIME-WAIT (the client closed first, and nobody reset)...
const WAITING: f64 = 0.9;
/// ...and no connection came for so long, ns, and for so many times the usual gap.
const SILENCE: u64 = 10_000_000_000;
const GAPS: f64 = 50.0;
/// ...and ports came back after the TIME-WAIT of systems in use, s, or so near to it.
const COMMON: [f64; 4] = [30.0, 60.0, 120.0, 240.0];
const NEAR: f64 = 0.05;

/// Client, server, its port.
type Key = (Address, Address, u16);

/// What is known of the clients' ports. What found no room is not looked at.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    tables: Vec<Table>,
    numbers: HashMap<Key, usize, foldhash::fast::FixedState>,
    /// Of all tables.
    kept: usize,
}

/// Ports of a client to a service.
#[derive(Debug)]
struct Table {
    /// First packet of the last connection on each port, in units after `base`.
    last: HashMap<u16, u32, foldhash::fast::FixedState>,
    base: u64,
    /// Lowest and highest port.
    ports: (u16, u16),
    connections: u64,
    /// That left their port in TIME-WAIT.
    waiting: u64,
    /// Not answered or refused: on a port used before, and on others.
    failed: [u64; 2],
    /// Times from use to use.
    cycles: Times,
    /// Of them, those below TIME-WAIT, and the shortest, ns.
    again: Group,
    shortest: u64,
    /// First and last opening, TAI ns.
    first: u64,
    newest: u64,
}

impl Table {
    fn new(base: u64) -> Self {
        Self {
            last: HashMap::default(),
            base,
            ports: (u16::MAX, 0),
            connections: 0,
            waiting: 0,
            failed: [0; 2],
            cycles: Times::default(),
            again: Group::default(),
            shortest: u64::MAX,
            first: u64::MAX,
            newest: 0,
        }
    }

    /// Another one; a port that is new is kept only if there is `room`.
    fn connection(&mut self, connection: &Ended, room: bool) {
        let (begun, _) = connection.span;
        let port = connection.ends.client_port;
        let last = self.last.get_mut(&port);
        match connection.setup {
            Some(Outcome::Ok | Outcome::Retransmitted) => {}
            Some(_) => {
                self.failed[usize::from(last.is_none())] += 1;
                return;
            }
            None => return,
        }
        self.connections += 1;
        self.first = self.first.min(begun);
        self.newest = self.newest.max(begun);
        let left = connection.sent[0];
        self.waiting += u64::from(connection.closing == CloseKind::ClientFin && !left.rst && !connection.sent[1].rst);
        let now = (begun.saturating_sub(self.base) >> UNIT) as u32;
        let Some(last) = last else {
            if room {
                self.last.insert(port, now);
                self.ports = (self.ports.0.min(port), self.ports.1.max(port));
            }
            return;
        };
        let before = std::mem::replace(last, now);
        if now > before {
            let cycle = u64::from(now - before) << UNIT;
            self.cycles.add(cycle);
            if cycle < TIME_WAIT {
                self.shortest = self.shortest.min(cycle);
                self.again.include(connection.id, begun, begun);
            }
        }
    }

    fn between(&self) -> f64 {
        f64::from(self.ports.1) - f64::from(self.ports.0) + 1.0
    }
}

impl Detector for Ports {
    fn connection(&mut self, connection: &Ended, route: &mut Route) {
        let number = route.ports.get_or(|| {
            let key = (route.client, route.server, route.port);
            let next = self.tables.len();
            if next < PAIRS {
                *self.numbers.entry(key).or_insert_with(|| {
                    self.tables.push(Table::new(connection.span.0));
                    next
                })
            } else {
                self.numbers.get(&key).copied().unwrap_or(PAIRS)
            }
        });
        let Some(table) = self.tables.get_mut(number) else {
            return;
        };
        let before = table.last.len();
        table.connection(connection, self.kept < PORTS);
        self.kept += table.last.len() - before;
    }

    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
        let tables = self.numbers.iter().map(|(key, number)| (key, &self.tables[*number]));
        let mut busy: Vec<_> = tables
            .filter(|(_, table)| table.connections >= MANY.min(RECYCLED))
            .collect();
        busy.sort_unstable_by_key(|(key, _)| **key);
        for (key, table) in busy {
            out.extend(recycling(key, table));
            out.extend(exhaustion(key, table, timeline));
        }
    }
}

fn who(&(client, server, port): &Key) -> String {
    format!("{} > {}", address(client), service(server, port))
}

fn recycling(key: &Key, table: &Table) -> Option<Finding> {
    let again = table.again.count();
    let cycle = table.cycles.quantile(0.5)?;
    if again < RECYCLED || cycle >= TIME_WAIT {
        return None;
    }
    let (first, last) = table.ports;
    let is_round = table.cycles.quantile(0.1)? as f64 >= ROUND * cycle as f64;
    let cycle = seconds(cycle);
    let client = address(key.0);
    let (title, next) = if is_round {
        (
            format!("{client} uses its ports again after {cycle:.0} s"),
            format!("next: begin below port {first} on {client}, or keep connections open, before load grows"),
        )
    } else {
        (
            format!(
                "{client} uses ports again in no order, after {:.1} s at the soonest",
                seconds(table.shortest)
            ),
            "next: keep connections open; if it is one host, let its ports come in order, if it is a NAT, give it more addresses".to_owned(),
        )
    };
    let failed = table.failed;
    let blame = if failed[0] == 0 {
        "none of the connections on a port used before failed: recycling did no harm here".to_owned()
    } else {
        format!(
            "{} failed on a port used before, {} on a port used for the first time: compare them",
            connections(failed[0]),
            count(failed[1])
        )
    };
    let mut finding = finding(
        "PORT_RECYCLING",
        if cycle * 4.0 < seconds(TIME_WAIT) {
            "WARNING"
        } else {
            "INFO"
        },
        1.0,
        title,
        vec![
            format!(
                "ports {first} to {last} ({} of them) carried {} to {}; {} came on a port used less than {:.0} s before",
                count(table.last.len() as u64),
                connections(table.connections),
                service(key.1, key.2),
                count(again),
                seconds(TIME_WAIT)
            ),
            format!(
                "half of them after {cycle:.0} s, the shortest after {:.1} s; TIME-WAIT lasts up to {:.0} s (RFC 9293), and a server may ignore a SYN that meets it",
                seconds(table.shortest),
                seconds(TIME_WAIT)
            ),
            blame,
            "it may also be harmless: who ends a connection by RST leaves no TIME-WAIT, and timestamps tell the old connection from the new (RFC 6191)".to_owned(),
        ],
        &table.again,
        &[
            ("firstPort", first.into()),
            ("lastPort", last.into()),
            ("cycleSeconds", cycle),
            ("shortestSeconds", seconds(table.shortest)),
            ("connections", again as f64),
        ],
    );
    if !is_round {
        finding.evidence.push(
            "they come back in no order: each is chosen at random (RFC 6056), or several hosts are behind this address (NAT); so some come back \
             soon, however many there are"
                .to_owned(),
        );
    }
    finding.evidence.push(next);
    Some(about(who(key), finding))
}

/// The longest time from one opening to the next, TAI ns.
fn silence(key: &Key, timeline: &Timeline) -> Option<(u64, u64)> {
    let server = (key.1, key.2);
    let load = &timeline.services().iter().find(|service| service.key == server)?.load;
    let starts = (load.start()..).step_by(load.width() as usize);
    let opened: Vec<u64> = starts
        .zip(load.iter())
        .filter_map(|(start, bin)| (bin.opened > 0).then_some(start))
        .collect();
    let silences = opened.windows(2).map(|pair| (pair[0] + load.width(), pair[1]));
    silences.max_by_key(|(from, to)| to.saturating_sub(*from))
}

fn exhaustion(key: &Key, table: &Table, timeline: &Timeline) -> Option<Finding> {
    let full = table.last.len() as f64 >= ALL * table.between();
    let kept = table.waiting as f64 >= WAITING * table.connections as f64;
    // All ports are taken by the first round.
    if !full || !kept || table.connections < MANY {
        return None;
    }
    let (from, to) = silence(key, timeline)?;
    let rate = table.connections as f64 / seconds(table.newest - table.first).max(1e-9);
    let silent = to.saturating_sub(from);
    if silent < SILENCE || seconds(silent) * rate < GAPS {
        return None;
    }
    // A load that ends looks the same, and ports in a row are all used without being all that there are: only how they
    // come back tells.
    let back = table.cycles.quantile(0.1).map(seconds)?;
    let time = COMMON.into_iter().find(|time| (back / time - 1.0).abs() < NEAR)?;
    let (first, last) = table.ports;
    let client = address(key.0);
    let finding = finding(
        "PORT_EXHAUSTION",
        "CRITICAL",
        0.9,
        format!("{client} had no port left for {}", service(key.1, key.2)),
        vec![
            format!(
                "each of the {} ports from {first} to {last} was used, {rate:.1} connections a second; then none was opened for {:.0} s",
                table.last.len(),
                seconds(silent)
            ),
            format!(
                "{} of {} connections were closed by the client first, so that it keeps the port in TIME-WAIT",
                table.waiting, table.connections
            ),
            format!(
                "then ports came back {time:.0} s after their last use, in the order in which they were used: TIME-WAIT ends"
            ),
            "it may also be a load that paused for just so long: only the client knows (its connect() fails with EADDRNOTAVAIL)"
                .to_owned(),
            format!("next: keep connections open, or give {client} more ports"),
        ],
        &Group::range(from, to),
        &[
            ("firstPort", first.into()),
            ("lastPort", last.into()),
            ("seconds", seconds(silent)),
            ("ports", table.last.len() as f64),
        ],
    );
    Some(about(who(key), finding))
}

#[cfg(test)]
mod tests {
    use weir_analysis::Ends;

    use super::*;
    use crate::fixtures::ended;
    use crate::random::Random;

    /// What is told of 2,000 connections, ten a second, on these ports.
    fn told(port: impl FnMut(u64) -> u16) -> Finding {
        let mut table = Table::new(0);
        for (n, port) in (0..2_000).zip((0..).map(port)) {
            let at = n * 100_000_000;
            let connection = Ended {
                setup: Some(Outcome::Ok),
                ends: Ends {
                    client_port: port,
                    ..Ends::default()
                },
                ..ended(n, (at, at + 1_000_000))
            };
            table.connection(&connection, true);
        }
        recycling(&([1; 16], [2; 16], 80), &table).expect("ports come again")
    }

    #[test]
    fn ports_that_come_round_are_told_from_those_in_no_order() {
        let round = told(|n| 50_000 + (n % 500) as u16);
        assert!(
            round.title.ends_with("uses its ports again after 50 s"),
            "{}",
            round.title
        );
        let mut random = Random::new(1);
        let chosen = told(|_| 50_000 + random.below(2_000) as u16);
        assert!(chosen.title.contains("in no order"), "{}", chosen.title);
        assert!(
            chosen.evidence.iter().any(|line| line.contains("RFC 6056")),
            "{chosen:?}"
        );
    }
}
