//! Requests that were never answered (`docs/src/findings.md`).
//! Memory: [`SERVICES`] services.

use std::collections::{HashMap, HashSet};

use crate::closing::Kind;
use crate::flow::{FirstEnd, Flow, Service};
use crate::group::{Group, finding};
use crate::message::{seconds, socket_address};
use crate::numbers::{connections, count, decimal, duration, several};
use crate::overdue::Overdue;
use weir_messages::v1;

/// Services of each kind that are told apart.
const SERVICES: usize = 4096;
/// Who waits less for an answer, ns, may wait for none: a last request may be a notice, and there are services that never answer.
const DUE: u64 = 1_000_000_000;
const DUE_OF_SILENT: u64 = 10_000_000_000;
/// Services that are told.
const TOLD: usize = 5;

/// Requests without an answer, one of a connection at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unanswered {
    group: Group,
    /// Services that answered at least one request, and requests that each left without.
    answering: HashSet<Service>,
    silent: HashMap<Service, u64>,
    /// ns.
    waited: u64,
    longest: u64,
    /// By how the wait ended: the client gave up, the server did, or the input ended.
    ended: [u64; 3],
}

fn is_answered(flow: &Flow) -> bool {
    flow.turn.as_ref().is_some_and(|turn| turn.shares().answered > 0)
}

impl Unanswered {
    /// From how long a wait on, ns, an answer of this connection's server was due.
    pub fn due(&self, flow: &Flow) -> u64 {
        if is_answered(flow) || self.answering.contains(&flow.service()) {
            DUE
        } else {
            DUE_OF_SILENT
        }
    }

    /// A connection is over, of which a request waited so long, ns, for an answer that was due.
    pub fn connection(&mut self, flow: &Flow, kind: Kind, waited: Option<u64>) {
        let server = flow.service();
        if is_answered(flow) && self.answering.len() < SERVICES {
            self.answering.insert(server);
        }
        let Some(waited) = waited else { return };
        self.group.add(flow);
        self.waited = self.waited.saturating_add(waited);
        self.longest = self.longest.max(waited);
        if self.silent.len() < SERVICES || self.silent.contains_key(&server) {
            *self.silent.entry(server).or_default() += 1;
        }
        let ended = match (kind, flow.first_end()) {
            (Kind::Open | Kind::Timeout, _) => 2,
            (_, FirstEnd::Fin(1) | FirstEnd::Rst(1)) => 1,
            _ => 0,
        };
        self.ended[ended] += 1;
    }

    /// Of those that are over, and those that are overdue now.
    pub fn finding(&self, overdue: &[Overdue<'_>]) -> Option<v1::Finding> {
        let over = self.group.count();
        let waiting = overdue.len() as u64;
        let requests = over + waiting;
        if requests == 0 {
            return None;
        }
        let (mut group, mut silent) = (self.group.clone(), self.silent.clone());
        let (mut waits, mut longest_wait) = (0u64, 0);
        for request in overdue {
            let (asked, now) = (request.asked, request.asked.saturating_add(request.waited));
            group.include(request.flow.id, asked, now);
            *silent.entry(request.service).or_default() += 1;
            waits = waits.saturating_add(request.waited);
            longest_wait = longest_wait.max(request.waited);
        }
        let answers = |service: &Service| {
            self.answering.contains(service) || overdue.iter().any(|request| request.service == *service)
        };
        let mut silent: Vec<_> = silent.iter().map(|(key, n)| (*n, *key)).collect();
        silent.sort_unstable_by_key(|(n, key)| (std::cmp::Reverse(*n), *key));
        let is_answering = silent.iter().any(|(_, key)| answers(key));
        let [client, server, open] = self.ended;
        let in_all = |all, longest| {
            let [all, longest] = [all, longest].map(|ns| decimal(seconds(ns), 1));
            format!("{all} s in all, {longest} s at most")
        };
        let mut evidence = Vec::new();
        if over > 0 {
            evidence.push(format!(
                "{} waited for an answer that never came: {}",
                several(over, "request", "requests"),
                in_all(self.waited, self.longest),
            ));
            let ends = [
                (client, "the client gave up"),
                (server, "the server closed the connection"),
                (
                    open,
                    "nobody had given up when the input ended, or the connection fell silent",
                ),
            ];
            let ends = ends.into_iter().filter(|(n, _)| *n > 0);
            let ends: Vec<_> = ends.map(|(n, how)| format!("in {} {how}", count(n))).collect();
            evidence.push(ends.join(", "));
        }
        if let Some(longest) = overdue.iter().map(|request| request.longest).max() {
            evidence.push(format!(
                "{} still without an answer: {}; the longest answer that is known of {} took {}",
                several(waiting, "request is", "requests are"),
                in_all(waits, longest_wait),
                if silent.len() > 1 {
                    "these services"
                } else {
                    "this service"
                },
                duration(longest),
            ));
        }
        for (n, key @ (server, port)) in silent.into_iter().take(TOLD) {
            let of_it = overdue.iter().find(|request| request.service == key);
            let others = match of_it.and_then(|request| request.silence) {
                Some(silence) => format!("it answers nobody any more, {} since it did", duration(silence)),
                None if answers(&key) => "it answered others".to_owned(),
                None => "it answered none".to_owned(),
            };
            evidence.push(format!("{}: {} ({others})", socket_address(server, port), count(n)));
        }
        if !is_answering {
            evidence.push("it may also be a protocol in which the client tells and the server says nothing".to_owned());
        }
        evidence.push("it may also be an answer that was lost before the tap and never sent again".to_owned());
        evidence.push(
            "next: the server's log and what its threads wait for (a lock, a tier behind it); a tap nearer to the server tells whether an \
             answer left it"
                .to_owned(),
        );
        Some(finding(
            "UNANSWERED_REQUESTS",
            "WARNING",
            if is_answering { 0.9 } else { 0.6 },
            if over > 0 {
                format!("{} got no answer to a request", connections(requests))
            } else {
                format!("{} got no answer to a request yet", connections(requests))
            },
            evidence,
            &group,
            &[
                ("requests", requests as f64),
                ("byClient", client as f64),
                ("byServer", server as f64),
                ("open", open as f64),
                ("waiting", waiting as f64),
                ("longestSeconds", seconds(self.longest.max(longest_wait))),
                ("costSeconds", seconds(self.waited.saturating_add(waits))),
            ],
        ))
    }
}
