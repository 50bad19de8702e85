//! Services whose connections are not set up: SYN flood, half-open pile-up, refusals in a row. Memory: 256 services with
//! 1,024 addresses of 16 bytes and four groups of connections each at most.

use std::collections::HashSet;

use weir_analysis::{Connection, Group, Outcome, finding, seconds};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::{Address, about, connections, period, service};
use crate::table::Table;
use crate::timeline::Timeline;

/// Services that are watched, and addresses that are told apart for each.
const SERVICES: usize = 256;
const SOURCES: usize = 1024;
/// A service with fewer failed connections makes room for another.
const FEW: u64 = 8;
/// SYNs that nobody followed up from which on they are a flood, and how fast. Who wants to connect repeats his SYN after
/// 1 s (RFC 6298 2.1; older stacks 3 s), so that even a busy service that is down leaves few such.
const FLOOD: u64 = 100;
const FLOOD_RATE: f64 = 10.0;
/// A flood has so many a second for each client a second that kept trying in vain; where a service is down it is the
/// other way round.
const FLOOD_RATIO: f64 = 2.0;
/// Times of connections that came about, of which it is known whether they fell into the flood.
const TIMES: usize = 512;
/// Half-open connections from which on they are a pile, and their share of the attempts.
const HALF_OPEN: u64 = 20;
const HALF_OPEN_SHARE: f64 = 0.05;
/// Refusals in a row, without a connection between them, that are worth telling.
const REFUSED: u64 = 20;

#[derive(Debug, Default)]
struct Service {
    /// Attempts since the first that failed, and those of them that came about.
    attempts: u64,
    established: Times,
    /// One SYN, no connection, no second SYN; who sent them.
    abandoned: Group,
    sources: HashSet<Address>,
    /// In vain, although the SYN came again.
    insisted: Group,
    /// Came about after repeats, and what those cost, ns.
    delayed: u64,
    delayed_ns: u64,
    /// The server answered, and waited for the client in vain, for so long in all, ns.
    half_open: Group,
    half_open_ns: u64,
    /// Refused since the last success, and the longest such row.
    refused: Group,
    refused_most: Group,
}

/// Some of many times, evenly.
#[derive(Debug, Default)]
struct Times {
    kept: Vec<u64>,
    /// Each stands for so many less one.
    skip: u64,
    seen: u64,
}

impl Times {
    fn add(&mut self, time: u64) {
        if self.seen.is_multiple_of(self.skip + 1) {
            if self.kept.len() == TIMES {
                let mut number = 0;
                self.kept.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.skip = 2 * self.skip + 1;
            }
            self.kept.push(time);
        }
        self.seen += 1;
    }

    /// About so many within a range.
    fn within(&self, (start, end): (u64, u64)) -> u64 {
        let kept = self.kept.iter().filter(|time| (start..=end).contains(*time)).count();
        kept as u64 * (self.skip + 1)
    }
}

/// How many a second.
fn rate(group: &Group) -> f64 {
    let (start, end) = group.span();
    group.count() as f64 / seconds(end - start).max(1.0)
}

impl Service {
    fn failed(&self) -> u64 {
        self.abandoned.count() + self.insisted.count() + self.refused.count() + self.refused_most.count()
    }

    fn refused(&self) -> &Group {
        if self.refused.count() > self.refused_most.count() {
            &self.refused
        } else {
            &self.refused_most
        }
    }

    fn success(&mut self, connection: &Connection<'_>) {
        self.established.add(connection.span().0);
        if connection.setup() == Some(Outcome::Retransmitted) {
            self.delayed += 1;
            self.delayed_ns += connection.setup_ns().unwrap_or(0);
        }
        if self.refused.count() > 0 {
            let row = std::mem::take(&mut self.refused);
            if row.count() > self.refused_most.count() {
                self.refused_most = row;
            }
        }
    }

    fn failure(&mut self, connection: &Connection<'_>, refused: bool) {
        let (id, (first, last)) = (connection.id(), connection.span());
        let (syns, syn_acks) = connection.syns();
        if refused {
            self.refused.include(id, first, last);
            return;
        }
        if syns > 1 {
            self.insisted.include(id, first, last);
        } else {
            self.abandoned.include(id, first, first);
            if self.sources.len() < SOURCES {
                self.sources.insert(connection.ends().client);
            }
        }
        // A SYN-ACK that came again shows that the server waited.
        if syn_acks > 1 {
            self.half_open.include(id, first, last);
            self.half_open_ns += last.saturating_sub(first);
        }
    }

    /// SYNs of the flood a second, if there is one.
    fn flood(&self) -> Option<f64> {
        let per_second = rate(&self.abandoned);
        // A service that answers nobody meanwhile is down, whoever gives up on it.
        let alive = self.established.within(self.abandoned.span()) > 0 || self.half_open.count() > 0;
        let is_flood = alive
            && self.abandoned.count() >= FLOOD
            && per_second >= FLOOD_RATE
            && per_second >= FLOOD_RATIO * rate(&self.insisted);
        is_flood.then_some(per_second)
    }
}

/// Services with connections that failed.
#[derive(Debug, Default)]
pub(crate) struct FailingSetups {
    services: Table<(Address, u16), Service, SERVICES>,
}

impl Detector for FailingSetups {
    fn connection(&mut self, connection: &Connection<'_>) {
        let ends = connection.ends();
        let key = (ends.server, ends.server_port);
        let refused = match connection.setup() {
            Some(Outcome::Refused) => true,
            Some(Outcome::Ignored | Outcome::ResetLate) => false,
            Some(Outcome::Ok | Outcome::Retransmitted) => {
                if let Some(service) = self.services.get(&key) {
                    service.attempts += 1;
                    service.success(connection);
                }
                return;
            }
            Some(Outcome::Midstream) | None => return,
        };
        let worth = |service: &Service| service.failed() >= FEW;
        let Some(service) = self.services.place(key, Service::default, worth) else {
            return;
        };
        service.attempts += 1;
        service.failure(connection, refused);
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        for ((server, port), state) in self.services.sorted() {
            let name = service(*server, *port);
            if let Some(rate) = state.flood() {
                out.push(about(name.clone(), flood(&name, state, rate)));
            } else if state.half_open.count() >= HALF_OPEN
                && state.half_open.count() as f64 >= HALF_OPEN_SHARE * state.attempts as f64
            {
                out.push(about(name.clone(), half_open(&name, state)));
            }
            if state.refused().count() >= REFUSED {
                out.push(about(name.clone(), refusals(&name, state.refused())));
            }
        }
    }
}

fn flood(name: &str, state: &Service, rate: f64) -> Finding {
    let (start, end) = state.abandoned.span();
    let count = state.abandoned.count();
    let sources = state.sources.len();
    let most = if sources == SOURCES { "at least " } else { "" };
    let mut evidence = vec![
        format!(
            "{count} SYNs to {name} {}, {rate:.1} a second, from {most}{sources} address{}: not one was repeated and not one became a connection; who wants to connect sends his SYN again",
            period(start, end),
            if sources == 1 { "" } else { "es" }
        ),
        format!(
            "the server answered and waited for {} of them (SYN-ACKs that came again); it is not down; connections that came about meanwhile: {}",
            state.half_open.count(),
            state.established.within((start, end))
        ),
    ];
    if state.insisted.count() > 0 {
        let (start, end) = state.insisted.span();
        evidence.push(format!(
            "what it cost: {} failed although they repeated their SYNs ({})",
            connections(state.insisted.count()),
            period(start, end)
        ));
    }
    if state.delayed > 0 {
        evidence.push(format!(
            "{} came about only after a SYN was repeated, and waited {:.3} s in all",
            connections(state.delayed),
            seconds(state.delayed_ns)
        ));
    }
    evidence.push(if sources > count as usize / 10 {
        "it may also be: a load test without its reverse path, or SYN-ACKs that are lost behind the tap on the way to many clients".to_owned()
    } else {
        "it may also be: a scanner, a health check or a load test that never completes its connections, or clients that give up within a second".to_owned()
    });
    evidence.push("next: SYN cookies and a longer backlog on the server; block or limit the sources upstream if they are few, and do not trust the addresses if they are many".to_owned());
    finding(
        "SYN_FLOOD",
        "CRITICAL",
        0.95,
        format!("{count} SYNs flooded {name}, {rate:.0} a second"),
        evidence,
        &state.abandoned,
        &[
            ("syns", count as f64),
            ("perSecond", rate),
            ("sources", sources as f64),
            ("halfOpen", state.half_open.count() as f64),
            ("failed", state.insisted.count() as f64),
        ],
    )
}

fn half_open(name: &str, state: &Service) -> Finding {
    let count = state.half_open.count();
    let (start, end) = state.half_open.span();
    let at_once = state.half_open_ns as f64 / (end - start).max(1) as f64;
    let share = count as f64 / state.attempts.max(1) as f64;
    finding(
        "HALF_OPEN",
        "WARNING",
        0.9,
        format!("{name} waited for {count} clients that never completed their connections"),
        vec![
            format!(
                "{count} of {} attempts ({:.1} %) {}: the server answered the SYN, repeated its SYN-ACK, and got no ACK",
                state.attempts,
                100.0 * share,
                period(start, end)
            ),
            format!(
                "what it cost: {:.3} s of waiting in all, {at_once:.1} places of the server's backlog at any time",
                seconds(state.half_open_ns)
            ),
            "it may also be: SYN-ACKs lost between the tap and the clients, a firewall that lets only one direction pass, or clients that vanished".to_owned(),
            "next: capture near the clients: do the SYN-ACKs arrive there?".to_owned(),
        ],
        &state.half_open,
        &[("count", count as f64), ("share", share), ("atOnce", at_once)],
    )
}

fn refusals(name: &str, refused: &Group) -> Finding {
    let (start, end) = refused.span();
    let count = refused.count();
    let rate = rate(refused);
    finding(
        "SERVICE_REFUSES",
        "WARNING",
        1.0,
        format!("{name} refused {count} connections in a row"),
        vec![
            format!(
                "every SYN was answered by RST {}, {rate:.1} a second",
                period(start, end)
            ),
            "it may also be: a firewall that answers for the server".to_owned(),
            "next: does the program listen there? When did it stop, and why do its clients try on?".to_owned(),
        ],
        refused,
        &[("count", count as f64), ("perSecond", rate)],
    )
}
