//! A connection for each transaction: every request pays for a handshake first.
//!
//! Where encryption or a login comes first, all connections begin (and some end) with exchanges whose requests have the
//! same sizes; what a connection is for is the one that differs. Where none does, which it is does not show.
//!
//! Memory: 16 services, 50 kB each.

use weir_analysis::{Ended, Group, Outcome, TransactionKind, count, decimal, finding, seconds};
use weir_messages::v1::Finding;

use crate::backlog::Transaction;
use crate::detector::Detector;
use crate::names::{about, connections, service};
use crate::routes::{self, Route, ServiceKey};
use crate::services::Key;
use crate::timeline::Timeline;

/// Connections with at least one answered request from which on there is a pattern.
const LEAST: u64 = 30;
/// Share of them with exactly one.
const SHARE: f64 = 0.5;

/// Exchanges of a connection that are looked at, and services.
const EXCHANGES: usize = 6;
const SERVICES: usize = 16;
/// Requests of one place in the connection are alike if those of their size are so many more than the others.
const ALIKE: f64 = 0.9;

/// The exchanges of one place in the connection.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    /// The size of most requests, and how many more have it than have not (Boyer and Moore's vote).
    size: u64,
    votes: u64,
    requests: u64,
    /// First packet of the request to the last of the response, ns.
    ns: u64,
}

impl Exchange {
    fn add(&mut self, size: u64, ns: u64) {
        if self.votes == 0 {
            self.size = size;
        }
        if self.size == size {
            self.votes += 1;
        } else {
            self.votes -= 1;
        }
        self.requests += 1;
        self.ns += ns;
    }

    fn is_alike(&self) -> bool {
        self.votes as f64 >= ALIKE * self.requests as f64
    }
}

/// Connections of a service with the same number of answered requests, and their times, ns.
#[derive(Clone, Debug, Default)]
struct Count {
    group: Group,
    setup_ns: u64,
    life_ns: u64,
}

/// What the connections of a service are for.
#[derive(Clone, Debug)]
struct Service {
    key: Key,
    connections: u64,
    by_count: [Count; EXCHANGES],
    exchanges: [Exchange; EXCHANGES],
}

/// Connections that had one answered request, and what their setups took.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPerTransaction {
    services: Vec<Service>,
    /// Theirs.
    keys: Vec<ServiceKey>,
    answered: u64,
    single: Group,
    setup_ns: u64,
    life_ns: u64,
}

impl ConnectionPerTransaction {
    /// The service of a route, one of the first.
    fn service(&mut self, route: &mut Route) -> Option<&mut Service> {
        let number = route.exchange.get_or(|| {
            let key = routes::key(route.server, route.port);
            let known = self.keys.iter().position(|known| *known == key);
            known.unwrap_or_else(|| {
                let next = self.services.len();
                if next < SERVICES {
                    self.keys.push(key);
                    self.services.push(Service {
                        key: (route.server, route.port),
                        connections: 0,
                        by_count: Default::default(),
                        exchanges: Default::default(),
                    });
                }
                next
            })
        });
        self.services.get_mut(number)
    }
}

impl Detector for ConnectionPerTransaction {
    #[inline]
    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let facts = transaction.facts;
        if facts.kind == TransactionKind::Setup || facts.response.is_none() {
            return;
        }
        let Some(service) = self.service(route) else { return };
        if let Some(exchange) = service.exchanges.get_mut((facts.index as usize).wrapping_sub(1)) {
            exchange.add(facts.request_bytes, facts.request + facts.end.unwrap_or(0));
        }
    }

    fn connection(&mut self, connection: &Ended, route: &mut Route) {
        let begun = matches!(connection.setup, Some(Outcome::Ok | Outcome::Retransmitted));
        // Of one direction alone it is not known how many there were.
        let one_sided = connection.sent.iter().any(|sent| sent.packets == 0);
        if !begun || connection.answered == 0 || one_sided {
            return;
        }
        self.answered += 1;
        let (first, last) = connection.span;
        let (setup, life) = (connection.setup_ns.unwrap_or(0), last.saturating_sub(first));
        if connection.answered == 1 {
            self.single.include(connection.id, first, last);
            self.setup_ns += setup;
            self.life_ns += life;
        }
        if let Some(service) = self.service(route) {
            service.connections += 1;
            if let Some(count) = service.by_count.get_mut(connection.answered as usize - 1) {
                count.group.include(connection.id, first, last);
                count.setup_ns += setup;
                count.life_ns += life;
            }
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        out.extend(self.services.iter().filter_map(one_of_several));
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

/// One request for which all others of its connection are made.
fn one_of_several(of: &Service) -> Option<Finding> {
    let (place, most) = of
        .by_count
        .iter()
        .enumerate()
        .max_by_key(|(_, count)| count.group.count())?;
    let share = most.group.count() as f64 / of.connections.max(1) as f64;
    let exchanges = &of.exchanges[..=place];
    let different = exchanges.iter().filter(|exchange| !exchange.is_alike()).count();
    if of.connections < LEAST || share < SHARE || place == 0 {
        return None;
    }
    if different == 0 {
        return Some(always_the_same(of, &most.group, place + 1, share));
    }
    if different > 1 {
        return None;
    }
    let alike = exchanges.iter().filter(|exchange| exchange.is_alike());
    let sizes: Vec<String> = alike.clone().map(|exchange| count(exchange.size)).collect();
    // Of each connection, its part of the time that all such exchanges took.
    let each: f64 = alike.map(|e| seconds(e.ns) / e.requests.max(1) as f64).sum();
    let cost = seconds(most.setup_ns) + each * most.group.count() as f64;
    let setup_share = cost / seconds(most.life_ns).max(1e-9);
    let name = service(of.key.0, of.key.1);
    let finding = finding(
        "CONNECTION_PER_TRANSACTION",
        "INFO",
        0.8,
        format!(
            "{:.0} % of the connections to {name} carry one request each, and {} for it",
            share * 100.0,
            match place {
                1 => "one more exchange".to_owned(),
                more => format!("{more} more exchanges"),
            }
        ),
        vec![
            format!(
                "{} of {} to {name} had {} answered requests; all but one of them are the same every time ({} bytes): an encrypted session or a login is set up, and taken down",
                count(most.group.count()),
                connections(of.connections),
                place + 1,
                sizes.join(", ")
            ),
            format!(
                "setups and these exchanges took {} s, {:.1} % of the connections' time: connections that stay open save it",
                decimal(cost, 3),
                setup_share * 100.0
            ),
            "it may also be several requests that always have the same size".to_owned(),
            "next: keep connections open for more than one request (keep-alive, a pool), or use session resumption"
                .to_owned(),
        ],
        &most.group,
        &[
            ("setupShare", setup_share),
            ("share", share),
            ("exchanges", place as f64),
            ("costSeconds", cost),
        ],
    );
    Some(about(name, finding))
}

/// Connections that all have the same requests: which of these the others are made for does not show, if it is one.
fn always_the_same(of: &Service, group: &Group, requests: usize, share: f64) -> Finding {
    let count_of = &of.by_count[requests - 1];
    let exchanges = &of.exchanges[..requests];
    let sizes: Vec<String> = exchanges.iter().map(|exchange| count(exchange.size)).collect();
    let times = || exchanges.iter().map(|e| seconds(e.ns) / e.requests.max(1) as f64);
    let others = times().sum::<f64>() - times().fold(0.0, f64::max);
    let life = seconds(count_of.life_ns).max(1e-9);
    let setups = seconds(count_of.setup_ns);
    let most = setups + others * group.count() as f64;
    let name = service(of.key.0, of.key.1);
    let finding = finding(
        "CONNECTION_PER_TRANSACTION",
        "INFO",
        0.6,
        format!("{:.0} % of the connections to {name} carry the same {requests} requests each", share * 100.0),
        vec![
            format!(
                "{} of {} to {name} had {requests} answered requests, of the same sizes every time ({} bytes): all of this is done anew for each",
                count(group.count()),
                connections(of.connections),
                sizes.join(", ")
            ),
            format!(
                "their setups took {} s, {:.1} % of their time; where all requests but one only set up an encrypted session or a login, {} s, {:.1} %: connections that stay open save it",
                decimal(setups, 3),
                100.0 * setups / life,
                decimal(most, 3),
                100.0 * most / life
            ),
            "it may also be a monitoring system that asks the same again and again, or several requests that always have the same size".to_owned(),
            "next: keep connections open for more than one request (keep-alive, a pool), or use session resumption".to_owned(),
        ],
        group,
        &[
            ("setupShare", setups / life),
            ("share", share),
            ("requests", requests as f64),
            ("costSeconds", setups),
        ],
    );
    about(name, finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_messages::v1::finding_value::Value;

    /// A hundred connections with requests of these sizes; 0: of another size each.
    fn found(sizes: &[u64]) -> Option<Finding> {
        let mut of = Service {
            key: ([0; 16], 443),
            connections: 100,
            by_count: Default::default(),
            exchanges: Default::default(),
        };
        for i in 0..100 {
            for (exchange, size) in of.exchanges.iter_mut().zip(sizes) {
                exchange.add(if *size == 0 { 1000 + i } else { *size }, 1_000_000);
            }
            let count = &mut of.by_count[sizes.len() - 1];
            count.group.include(weir_record::FlowId(i), i, i + 1);
            count.setup_ns += 1_000_000;
            count.life_ns += 40_000_000;
        }
        one_of_several(&of)
    }

    #[test]
    fn handshakes_and_farewells_are_for_one_request() {
        let one = found(&[127, 158, 0, 29]).expect("one of four differs");
        assert_eq!(one.values["exchanges"], 3.0.into());
        // Three exchanges and the setup of 40 ms.
        let share = match one.values["setupShare"].value {
            Some(Value::Number(share)) => share,
            _ => 0.0,
        };
        assert!((share - 0.1).abs() < 1e-9, "{share}");
        assert!(
            one.title.contains("carry one request each, and 3 more exchanges"),
            "{}",
            one.title
        );
        // Two that differ, nothing else.
        assert!(found(&[127, 0, 0]).is_none());
        assert!(found(&[0]).is_none());
    }

    #[test]
    fn which_of_requests_that_never_differ_is_the_one_is_not_known() {
        let same = found(&[517, 126, 600]).expect("each connection does the same");
        assert_eq!((same.confidence, same.values["requests"].clone()), (0.6, 3.0.into()));
        // The setups alone; two more exchanges as long as them are told.
        assert_eq!(same.values["setupShare"], 0.025.into());
        assert!(same.evidence[1].contains("0.300 s, 7.5 %"), "{:?}", same.evidence);
    }
}
