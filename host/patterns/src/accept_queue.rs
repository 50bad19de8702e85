//! `ACCEPT_QUEUE`: a server drops the first data of connections, because nobody accepts them.
//!
//! A client takes its connection for open when it has the SYN-ACK. While its queue of accepted connections is full, a Linux server drops the
//! ACK of that and the data behind it (`tcp_v4_syn_recv_sock`, listen(2)), again and again, until there is room: losses of one
//! segment of each connection, and of nothing else. The network does not know which segment is the first.
//!
//! Memory: 4,096 connections with losses (48 bytes), 256 services, and the newest 16,384 connections hit so (40 bytes).

use std::collections::HashMap;

use weir_analysis::{
    Class, Ended, Group, Place, Verdict, address, before, finding, lasting, loss_severity, seconds, sign,
};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::backlog::Transaction;
use crate::losses::{Loss, Side};
use crate::names::{about, chance, connections, count, percent, service, several};
use crate::newest::Newest;
use crate::period::by_chance;
use crate::routes::{Route, ServiceKey, key};
use crate::table::Table;

/// Connections that are watched, and services.
const WATCHED: usize = 4096;
const SERVICES: usize = 256;
/// Connections hit that are kept.
const HITS: usize = 1 << 14;
/// Connections hit, and losses of first data, from which on there is a pattern.
const LEAST: u64 = 3;
const LOSSES: u64 = 5;
/// First data is lost so many times as often as what else the clients send, at least.
const TIMES: f64 = 5.0;
/// Largest chance of so many losses of first data, if all were lost as often as the rest may be.
const CHANCE: f64 = 1e-4;

/// A connection with losses.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    /// First byte of the first request, once that is known.
    request: Option<u32>,
    /// The first byte of the foremost segment of the client that was lost behind the tap, and how often it was; 0: none was.
    seq: u32,
    lost: u32,
    /// When it was lost first, and came again last, TAI ns.
    first: u64,
    last: u64,
    /// Losses of other segments of the client behind the tap, meanwhile and later.
    meanwhile: u32,
    later: u32,
}

impl Watched {
    fn add(&mut self, verdict: &Verdict) {
        if self.lost == 0 || before(verdict.seq, self.seq) {
            self.meanwhile += self.lost;
            self.seq = verdict.seq;
            self.lost = 1;
            self.first = verdict.lost_at;
            self.last = verdict.time;
        } else if verdict.seq == self.seq {
            self.lost += 1;
            self.last = self.last.max(verdict.time);
        } else if verdict.lost_at <= self.last {
            self.meanwhile += 1;
        } else {
            self.later += 1;
        }
    }

    /// Its first data was lost.
    fn is_hit(&self) -> bool {
        self.lost > 0 && self.request == Some(self.seq)
    }
}

/// What the clients of a service sent, from the first connection on whose first data was lost.
#[derive(Clone, Debug, Default)]
struct Service {
    /// Connections with data, and those whose first data was lost.
    connections: u64,
    hit: Group,
    /// Copies of first data, and how many of them were lost; the most of one connection.
    first_sent: u64,
    first_lost: u64,
    most: u32,
    /// The same of other data and FINs.
    other_sent: u64,
    other_lost: u64,
    /// SYNs that came again before any SYN-ACK, and their connections.
    syns: u64,
    slow: u64,
    /// From the first copies to the last, ns.
    ns: u64,
}

impl Service {
    /// The most of the other packets that may be lost, as a share, and the chance of as many losses of first data.
    fn by_chance(&self) -> (f64, f64) {
        let lost = self.other_lost as f64;
        // Upper end of what a Poisson variable's mean may be: 3 where nothing was lost.
        let most = ((lost + 2.0 * lost.sqrt() + 3.0) / (self.other_sent as f64 + 3.0)).min(1.0);
        (
            most,
            by_chance(self.first_lost as usize, self.first_sent as usize, most),
        )
    }

    fn share(&self) -> f64 {
        self.first_lost as f64 / self.first_sent.max(1) as f64
    }

    fn is_full(&self) -> bool {
        let (most, chance) = self.by_chance();
        self.hit.count() >= LEAST && self.first_lost >= LOSSES && self.share() >= TIMES * most && chance <= CHANCE
    }
}

/// A connection whose first data was lost.
#[derive(Clone, Copy, Debug)]
struct Hit {
    id: FlowId,
    service: ServiceKey,
    /// When its first data came again last, TAI ns.
    last: u64,
}

/// Connections whose first data was lost: when it came again last, and whether that is told as the queue's.
#[derive(Debug, Default)]
pub(crate) struct FirstData(HashMap<FlowId, (u64, bool)>);

impl FirstData {
    fn of(&self, loss: &Loss) -> Option<bool> {
        let (last, is_told) = self
            .0
            .get(&loss.id)
            .filter(|_| !loss.from_server && loss.side == Side::Server)?;
        (loss.at <= *last).then_some(*is_told)
    }

    /// The server dropped it.
    pub fn is_dropped(&self, loss: &Loss) -> bool {
        self.of(loss) == Some(true)
    }

    /// The server may have dropped it.
    pub fn may_be_dropped(&self, loss: &Loss) -> bool {
        self.of(loss) == Some(false)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AcceptQueue {
    watched: Table<FlowId, Watched, WATCHED>,
    services: Table<ServiceKey, Service, SERVICES>,
    hits: Newest<Hit, HITS>,
}

impl AcceptQueue {
    pub fn segment(&mut self, verdict: &Verdict) {
        // A FIN that nobody acknowledged in time: it may have been lost as well as its ACK, so it does not show that the rest passes.
        let is_fin = verdict.length == 0 && verdict.place == Place::Unknown;
        let is_lost = verdict.class == Class::Retransmission && (verdict.place == Place::BehindTap || is_fin);
        if !is_lost || verdict.from_server || verdict.handshake || verdict.evidence.has(sign::SILENCE) {
            return;
        }
        if let Some(watched) = self.watch(verdict.connection) {
            watched.add(verdict);
        }
    }

    pub fn transaction(&mut self, transaction: &Transaction<'_>) {
        let facts = transaction.facts;
        if facts.index == 1
            && facts.losses > 0
            && let Some(watched) = self.watch(transaction.id)
        {
            watched.request = facts.request_start();
        }
    }

    fn watch(&mut self, id: FlowId) -> Option<&mut Watched> {
        // Entries go when their connections are over.
        self.watched.place(id, Watched::default, |_| true)
    }

    pub fn connection(&mut self, connection: &Ended, route: &Route) {
        let watched = connection
            .has_trouble
            .then(|| self.watched.remove(&connection.id))
            .flatten()
            .unwrap_or_default();
        let sent = &connection.sent[0];
        // Of one without answer nothing says that the server lived.
        if connection.setup.is_none() || connection.answered == 0 || sent.data_packets == 0 {
            return;
        }
        let (of, is_hit) = (key(route.server, route.port), watched.is_hit());
        let service = if is_hit {
            self.services
                .place(of, Service::default, |service| service.hit.count() > 0)
        } else {
            self.services.get(&of)
        };
        let Some(service) = service else {
            return;
        };
        let Watched {
            lost,
            first,
            last,
            meanwhile,
            later,
            ..
        } = watched;
        let (first_lost, aside, other_lost) = if is_hit {
            service.most = service.most.max(lost);
            service.ns += last.saturating_sub(first);
            service.hit.include(connection.id, first, last);
            self.hits.push(Hit {
                id: connection.id,
                service: of,
                last,
            });
            (u64::from(lost), u64::from(meanwhile), u64::from(later))
        } else {
            (0, 0, u64::from(lost) + u64::from(meanwhile) + u64::from(later))
        };
        if let (syns @ 2.., 1) = connection.syns {
            service.syns += u64::from(syns - 1);
            service.slow += 1;
        }
        service.connections += 1;
        service.first_sent += 1 + first_lost;
        service.first_lost += first_lost;
        let sent = u64::from(sent.data_packets) + u64::from(sent.fin);
        service.other_sent += sent.saturating_sub(1 + first_lost + aside);
        service.other_lost += other_lost;
    }

    /// Services whose queues are full.
    fn full(&self) -> impl Iterator<Item = (&ServiceKey, &Service)> {
        let services = self.services.sorted().into_iter();
        services.filter(|(_, service)| service.is_full())
    }

    /// The service of a host whose queue is full, as text, if there is one.
    pub fn full_at(&self, host: &str) -> Option<String> {
        let mut full = self.full();
        let ((server, port), _) = full.find(|((server, _), _)| address(server.to_ne_bytes()) == host)?;
        Some(service(server.to_ne_bytes(), *port))
    }

    /// Tell of full queues; returns what of the losses that is.
    pub fn findings(&self, out: &mut Vec<Finding>) -> FirstData {
        let full: Vec<_> = self.full().collect();
        let is_told = |of: &ServiceKey| full.iter().any(|(told, _)| *told == of);
        let hits = self.hits.iter().map(|hit| (hit.id, (hit.last, is_told(&hit.service))));
        let first = FirstData(hits.collect());
        for ((server, port), of) in full {
            let name = service(server.to_ne_bytes(), *port);
            out.push(about(name.clone(), full_queue(&name, of)));
        }
        first
    }
}

fn full_queue(name: &str, service: &Service) -> Finding {
    let hit = service.hit.count();
    let (share, cost) = (service.share(), seconds(service.ns));
    let (most, by_chance) = service.by_chance();
    let times = |n: u64| several(n, "time", "times");
    let mut evidence = vec![
        format!(
            "of {} the first data behind the handshake was lost between the tap and the server, {} ({} of its copies, up to {} of one connection)",
            connections(hit),
            times(service.first_lost),
            percent(share),
            count(service.most.into())
        ),
        format!(
            "of {} other data packets and FINs of the clients {} were lost on that way: {} at most; chance of that if the network lost both: {}",
            count(service.other_sent),
            count(service.other_lost),
            percent(most),
            chance(by_chance)
        ),
        format!(
            "what it cost: {} from first copies to the last, which are those connections' loss recovery; the network lost nothing",
            lasting(cost)
        ),
    ];
    if service.slow > 0 {
        evidence.push(format!(
            "since the first of them {} of {} to it came again, too: a full queue drops these as well",
            several(service.syns, "SYN", "SYNs"),
            connections(service.slow)
        ));
    }
    evidence.extend([
        "it may also be: a firewall or a load balancer before the server that is not ready for data when the handshake is over"
            .to_owned(),
        "next: on the server, compare Recv-Q and Send-Q of the listening socket (ss -lnt) and see whether TcpExtListenOverflows counts up (nstat -az); let the application accept sooner, or give it a longer queue (listen, net.core.somaxconn)"
            .to_owned(),
    ]);
    finding(
        "ACCEPT_QUEUE",
        loss_severity(hit, service.connections),
        0.8,
        format!(
            "{name} drops the first data of {}: its queue of accepted connections is full",
            connections(hit)
        ),
        evidence,
        &service.hit,
        &[
            ("connections", hit as f64),
            ("ofConnections", service.connections as f64),
            ("lost", service.first_lost as f64),
            ("share", share),
            ("others", service.other_sent as f64),
            ("othersLost", service.other_lost as f64),
            ("costSeconds", cost),
        ],
    )
}

#[cfg(test)]
mod tests {
    use weir_analysis::{CloseKind, Ends, Sent};

    use super::*;
    use crate::fixtures::{ended, verdict};

    const MS: u64 = 1_000_000;

    /// Of a segment of the client at `seq`, lost behind the tap at `lost_at` and sent again 200 ms later.
    fn lost(id: u64, seq: u32, lost_at: u64) -> Verdict {
        Verdict {
            seq,
            length: 400,
            place: Place::BehindTap,
            episode: 1,
            begins: true,
            counted: 1,
            ..verdict(id, lost_at, lost_at + 200 * MS)
        }
    }

    /// A connection of `requests` requests of 400 bytes from sequence number 1 on, each in a segment; of request `n` so many copies are lost.
    fn play(all: &mut AcceptQueue, id: u64, requests: u32, copies: &[(u32, u64)], answered: u32) {
        let ends = Ends::default();
        let route = Route::new(&ends, 0);
        for (n, times) in copies {
            for again in 0..*times {
                all.segment(&lost(id, 1 + 400 * n, (id + again) * 200 * MS));
            }
        }
        if let Some(watched) = copies.first().and_then(|_| all.watch(FlowId(id))) {
            watched.request = Some(1);
        }
        let repeats: u64 = copies.iter().map(|(_, times)| *times).sum();
        let has_trouble = all.watched.get(&FlowId(id)).is_some();
        let sent = Sent {
            data_packets: requests + repeats as u32,
            fin: true,
            ..Sent::default()
        };
        all.connection(
            &Ended {
                closing: CloseKind::ClientFin,
                sent: [sent, Sent::default()],
                answered,
                has_trouble,
                ..ended(id, (0, 60_000 * MS))
            },
            &route,
        );
    }

    fn told(all: &AcceptQueue) -> Vec<Finding> {
        let mut out = Vec::new();
        all.findings(&mut out);
        out
    }

    #[test]
    fn first_data_that_is_lost_where_nothing_else_is_was_dropped_by_the_server() {
        let mut all = AcceptQueue::default();
        for id in 0..300 {
            play(&mut all, id, 3, if id % 10 == 0 { &[(0, 2)] } else { &[] }, 3);
        }
        let found = told(&all);
        assert_eq!(found.len(), 1);
        let full = all.full_at("::").map(|service| service == found[0].who);
        assert_eq!((full, all.full_at("::1")), (Some(true), None));
        let expected = [("connections", 30.0), ("ofConnections", 300.0), ("lost", 60.0)];
        assert!(
            expected.iter().all(|(name, n)| found[0].values[*name] == (*n).into()),
            "{found:?}"
        );
        // Of each two other requests and the FIN.
        assert_eq!(found[0].values["others"], 900.0.into());
        assert_eq!(found[0].values["othersLost"], 0.0.into());
        assert_eq!(found[0].values["costSeconds"], (30.0 * 0.4).into());
    }

    #[test]
    fn what_was_sent_with_the_first_data_is_no_sign_against_it() {
        let mut all = AcceptQueue::default();
        for id in 0..300 {
            // Two segments of the same flight.
            play(&mut all, id, 3, if id % 10 == 0 { &[(0, 2), (1, 2)] } else { &[] }, 3);
        }
        let found = told(&all);
        assert_eq!(found[0].values["othersLost"], 0.0.into());
        assert_eq!(found[0].values["others"], 900.0.into());
    }

    #[test]
    fn losses_of_all_of_it_are_the_networks() {
        let mut all = AcceptQueue::default();
        for id in 0..900 {
            let copies: &[(u32, u64)] = match id % 30 {
                0 => &[(0, 1)],
                10 => &[(1, 1)],
                20 => &[(2, 1)],
                _ => &[],
            };
            play(&mut all, id, 3, copies, 3);
        }
        assert!(told(&all).is_empty());
    }

    /// Of connections with one request each, FINs are the rest: that one of ten of them came again leaves open whether it or its ACK was lost.
    #[test]
    fn fins_that_nobody_acknowledged_may_have_been_lost_as_well() {
        let mut all = AcceptQueue::default();
        for id in 0..900 {
            if id % 10 == 5 {
                let fin = Verdict {
                    length: 0,
                    counted: 0,
                    place: Place::Unknown,
                    ..lost(id, 401, id * 200 * MS)
                };
                all.segment(&fin);
                let known = all.watched.get(&FlowId(id)).is_some();
                assert!(known, "it is watched");
                play(&mut all, id, 1, &[], 1);
            } else {
                play(&mut all, id, 1, if id % 10 == 0 { &[(0, 1)] } else { &[] }, 1);
            }
        }
        assert!(told(&all).is_empty());
    }

    /// A path that carries no large segments; a few losses of which nothing tells.
    #[test]
    fn without_an_answer_or_others_to_compare_with_nothing_is_said() {
        let mut all = AcceptQueue::default();
        for id in 0..300 {
            play(&mut all, id, 1, &[(0, 6)], 0);
        }
        assert!(told(&all).is_empty());
        let mut all = AcceptQueue::default();
        for id in 0..4 {
            play(&mut all, id, 1, if id > 0 { &[(0, 6)] } else { &[] }, 1);
        }
        let mut out = Vec::new();
        let first = all.findings(&mut out);
        assert!(out.is_empty());
        // But LOSS tells that it may be that.
        let loss = |id: u64, at: u64| Loss {
            at,
            again: at,
            id: FlowId(id),
            pair: 0,
            from_server: false,
            side: Side::Server,
            segments: 1,
            first: true,
            episode: 1,
            seq: 1,
            in_queue: false,
            is_step: false,
            smaller: 0,
        };
        assert!(first.may_be_dropped(&loss(1, 1_200 * MS)));
        assert!(!first.may_be_dropped(&loss(1, 9_000 * MS)) && !first.may_be_dropped(&loss(0, 0)));
    }
}
