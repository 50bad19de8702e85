//! Services whose connections are not set up: SYN flood, half-open pile-up. Memory: 256 services with 1,024 addresses of
//! 16 bytes and three groups of connections each at most; live, 16,384 connections that are being set up (1 MB).

use std::collections::HashSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use weir_analysis::{Ended, Group, Opened, Outcome, TransactionKind, count, decimal, finding, period, seconds};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::backlog::Transaction;
use crate::detector::Detector;
use crate::names::{Address, about, connections, service};
use crate::routes::Route;
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
/// Live: a SYN that nobody repeated after so long is not followed up, ns: the oldest timers are 3 s (RFC 2988 2.1).
const PATIENCE: u64 = 4_000_000_000;
/// Live: connections that are being set up, at most.
const PENDING: usize = 1 << 14;

/// Where something serves.
type Key = (Address, u16);

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
}

/// A connection that is being set up.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    service: Key,
    client: Address,
    /// Its SYN, TAI ns.
    at: u64,
    /// The server repeated its SYN-ACK.
    is_half_open: bool,
}

/// Live: what is not over yet. A flow is given up after a minute or more, and a flood is to be told while it lasts.
#[derive(Debug, Default)]
struct Pending {
    waiting: HashMap<FlowId, Waiting, FixedState>,
    /// Connections that came about.
    established: Table<Key, Times, SERVICES>,
}

impl Pending {
    fn opened(&mut self, opened: &Opened) {
        if opened.is_syn && self.waiting.len() < PENDING {
            let waiting = Waiting {
                service: (opened.ends.server, opened.ends.server_port),
                client: opened.ends.client,
                at: opened.time,
                is_half_open: false,
            };
            self.waiting.insert(opened.id, waiting);
        }
    }

    /// SYNs to each service that nobody followed up until `now`.
    fn abandoned(&self, now: u64) -> HashMap<Key, Vec<(FlowId, Waiting)>, FixedState> {
        let mut out: HashMap<Key, Vec<(FlowId, Waiting)>, FixedState> = HashMap::default();
        for (id, waiting) in &self.waiting {
            if waiting.at.saturating_add(PATIENCE) <= now {
                out.entry(waiting.service).or_default().push((*id, *waiting));
            }
        }
        // Connections are named in the order of their SYNs.
        out.values_mut()
            .for_each(|all| all.sort_unstable_by_key(|(id, waiting)| (waiting.at, *id)));
        out
    }
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
        self.abandoned.count() + self.insisted.count()
    }

    fn success(&mut self, connection: &Ended) {
        self.established.add(connection.span.0);
        if connection.setup == Some(Outcome::Retransmitted) {
            self.delayed += 1;
            self.delayed_ns += connection.setup_ns.unwrap_or(0);
        }
    }

    fn failure(&mut self, connection: &Ended) {
        let (id, (first, last)) = (connection.id, connection.span);
        let (syns, syn_acks) = connection.syns;
        if syns > 1 {
            self.insisted.include(id, first, last);
        } else {
            self.abandoned.include(id, first, first);
            if self.sources.len() < SOURCES {
                self.sources.insert(connection.ends.client);
            }
        }
        // A SYN-ACK that came again shows that the server waited.
        if syn_acks > 1 {
            self.half_open.include(id, first, last);
            self.half_open_ns += last.saturating_sub(first);
        }
    }

    /// The flood, if there is one. `pending`: SYNs that nobody followed up, of connections that are not over;
    /// `established`: connections that came about, if they are not among those of the service.
    fn flood(&self, pending: &[(FlowId, Waiting)], established: Option<&Times>) -> Option<Flood> {
        let mut syns = self.abandoned.clone();
        let mut sources = self.sources.clone();
        let mut half_open = self.half_open.count();
        for (id, waiting) in pending {
            syns.include(*id, waiting.at, waiting.at);
            half_open += u64::from(waiting.is_half_open);
            if sources.len() < SOURCES {
                sources.insert(waiting.client);
            }
        }
        let meanwhile = self
            .established
            .within(syns.span())
            .max(established.map_or(0, |times| times.within(syns.span())));
        let flood = Flood {
            per_second: rate(&syns),
            syns,
            sources: sources.len(),
            half_open,
            meanwhile,
        };
        // A service that answers nobody meanwhile is down, whoever gives up on it.
        let alive = flood.meanwhile > 0 || flood.half_open > 0;
        let is_flood = alive
            && flood.syns.count() >= FLOOD
            && flood.per_second >= FLOOD_RATE
            && flood.per_second >= FLOOD_RATIO * rate(&self.insisted);
        is_flood.then_some(flood)
    }
}

/// SYNs that nobody waits for.
#[derive(Debug)]
struct Flood {
    syns: Group,
    per_second: f64,
    /// Addresses that sent them, [`SOURCES`] at most.
    sources: usize,
    /// The server answered, and waited for the client in vain.
    half_open: u64,
    /// Connections that came about at the same time.
    meanwhile: u64,
}

/// Services with connections that failed.
#[derive(Debug, Default)]
pub(crate) struct FailingSetups {
    services: Table<Key, Service, SERVICES>,
    pending: Option<Pending>,
}

impl FailingSetups {
    /// Tells of a flood while it lasts.
    pub fn live() -> Self {
        Self {
            pending: Some(Pending::default()),
            ..Self::default()
        }
    }
}

impl Detector for FailingSetups {
    fn opened(&mut self, opened: &Opened, _: &mut Route) {
        if let Some(pending) = &mut self.pending {
            pending.opened(opened);
        }
    }

    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let Some(pending) = &mut self.pending else { return };
        let facts = transaction.facts;
        if facts.kind != TransactionKind::Setup {
            return;
        }
        pending.waiting.remove(&transaction.id);
        if facts.response.is_some() {
            let key = (route.server, route.port);
            if let Some(times) = pending.established.place(key, Times::default, |_| false) {
                times.add(facts.request_time);
            }
        }
    }

    fn again(&mut self, id: FlowId, from_server: bool) {
        let Some(pending) = &mut self.pending else { return };
        if !from_server {
            // Its sender wants to connect.
            pending.waiting.remove(&id);
        } else if let Some(waiting) = pending.waiting.get_mut(&id) {
            waiting.is_half_open = true;
        }
    }

    fn connection(&mut self, connection: &Ended, route: &mut Route) {
        if let Some(pending) = &mut self.pending {
            pending.waiting.remove(&connection.id);
        }
        let key = (route.server, route.port);
        match connection.setup {
            Some(Outcome::Ignored | Outcome::ResetLate) => {}
            Some(Outcome::Ok | Outcome::Retransmitted) => {
                if let Some(service) = self.services.get(&key) {
                    service.attempts += 1;
                    service.success(connection);
                }
                return;
            }
            Some(Outcome::Midstream | Outcome::Refused) | None => return,
        }
        let worth = |service: &Service| service.failed() >= FEW;
        let Some(service) = self.services.place(key, Service::default, worth) else {
            return;
        };
        service.attempts += 1;
        service.failure(connection);
    }

    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
        let mut pending = self.pending.as_ref().map_or_else(HashMap::default, |pending| {
            let (_, now) = timeline.span();
            pending.abandoned(now)
        });
        let established = |key: &Key| self.pending.as_ref()?.established.peek(key);
        for (key, state) in self.services.sorted() {
            let name = service(key.0, key.1);
            let waiting = pending.remove(key).unwrap_or_default();
            if let Some(found) = state.flood(&waiting, established(key)) {
                out.push(about(name.clone(), flood(&name, state, &found)));
            } else if state.half_open.count() >= HALF_OPEN
                && state.half_open.count() as f64 >= HALF_OPEN_SHARE * state.attempts as f64
            {
                out.push(about(name.clone(), half_open(&name, state)));
            }
        }
        // Services of which no connection has failed yet.
        let mut others: Vec<_> = pending.into_iter().collect();
        others.sort_unstable_by_key(|(key, _)| *key);
        for (key, waiting) in others {
            let state = Service::default();
            if let Some(found) = state.flood(&waiting, established(&key)) {
                let name = service(key.0, key.1);
                out.push(about(name.clone(), flood(&name, &state, &found)));
            }
        }
    }
}

fn flood(name: &str, state: &Service, found: &Flood) -> Finding {
    let (start, end) = found.syns.span();
    let (syns, sources, rate) = (found.syns.count(), found.sources, found.per_second);
    let most = if sources == SOURCES { "at least " } else { "" };
    let mut evidence = vec![
        format!(
            "{} SYNs to {name} {}, {} a second, from {most}{} address{}: not one was repeated and not one became a connection; who wants to connect sends his SYN again",
            count(syns),
            period(start, end),
            decimal(rate, 1),
            count(sources as u64),
            if sources == 1 { "" } else { "es" }
        ),
        format!(
            "the server answered and waited for {} of them (SYN-ACKs that came again); it is not down; connections that came about meanwhile: {}",
            count(found.half_open),
            count(found.meanwhile)
        ),
        "FAILED_CONNECTIONS counts these SYNs, too; its advice, to look for lost packets, is for clients that repeated theirs"
            .to_owned(),
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
            "{} came about only after a SYN was repeated, and waited {} s in all",
            connections(state.delayed),
            decimal(seconds(state.delayed_ns), 3)
        ));
    }
    evidence.push(if sources > syns as usize / 10 {
        "it may also be: a load test without its reverse path, or SYN-ACKs that are lost behind the tap on the way to many clients".to_owned()
    } else {
        "it may also be: a scanner, a health check or a load test that never completes its connections, or clients that give up within a second".to_owned()
    });
    evidence.push("next: SYN cookies and a longer backlog on the server; block or limit the sources upstream if they are few, and do not trust the addresses if they are many".to_owned());
    finding(
        "SYN_FLOOD",
        "CRITICAL",
        0.95,
        format!("{} SYNs flooded {name}, {} a second", count(syns), decimal(rate, 0)),
        evidence,
        &found.syns,
        &[
            ("syns", syns as f64),
            ("perSecond", rate),
            ("sources", sources as f64),
            ("halfOpen", found.half_open as f64),
            ("failed", state.insisted.count() as f64),
            ("costSeconds", seconds(state.delayed_ns)),
        ],
    )
}

fn half_open(name: &str, state: &Service) -> Finding {
    let gone = state.half_open.count();
    let (start, end) = state.half_open.span();
    let at_once = state.half_open_ns as f64 / (end - start).max(1) as f64;
    let share = gone as f64 / state.attempts.max(1) as f64;
    finding(
        "HALF_OPEN",
        "WARNING",
        0.9,
        format!("{name} waited for {} clients that never completed their connections", count(gone)),
        vec![
            format!(
                "{} of {} attempts ({:.1} %) {}: the server answered the SYN, repeated its SYN-ACK, and got no ACK",
                count(gone),
                count(state.attempts),
                100.0 * share,
                period(start, end)
            ),
            format!(
                "what it cost: {} s of waiting in all, {at_once:.1} places of the server's backlog at any time",
                decimal(seconds(state.half_open_ns), 3)
            ),
            "it may also be: SYN-ACKs lost between the tap and the clients, a firewall that lets only one direction pass, or clients that vanished".to_owned(),
            "next: capture near the clients: do the SYN-ACKs arrive there?".to_owned(),
        ],
        &state.half_open,
        &[("count", gone as f64), ("share", share), ("atOnce", at_once)],
    )
}
