//! Requests that were never answered (`docs/src/findings.md`).
//! Memory: [`SERVICES`] services.

use std::collections::HashMap;

use crate::closing::Kind;
use crate::flow::{FirstEnd, Flow, Service};
use crate::group::{Group, finding};
use crate::message::{seconds, socket_address};
use crate::numbers::{connections, count, decimal, several};
use crate::overdue::TIMES;
use weir_messages::v1;

/// Services of each kind that are told apart.
const SERVICES: usize = 4096;
/// Who waits less for an answer, ns, may wait for none: a last request may be a notice, and there are services that never answer.
const DUE: u64 = 1_000_000_000;
const DUE_OF_SILENT: u64 = 10_000_000_000;
/// What to do about a server that does not answer.
pub(crate) const NEXT: &str = "next: the server's log and what its threads wait for (a lock, a tier behind it); a tap nearer to the server tells \
                               whether an answer left it";
/// Services that are told.
const TOLD: usize = 5;

/// Requests without an answer, one of a connection at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unanswered {
    group: Group,
    /// Services that answered at least one request, with the longest that one waited for it, ns, and requests that each left without.
    answering: HashMap<Service, u64>,
    silent: HashMap<Service, u64>,
    /// ns.
    waited: u64,
    longest: u64,
    /// By how the wait ended: the client gave up, the server did, or the input ended.
    ended: [u64; 3],
}

/// The longest that an answered request of a connection waited, ns.
fn longest_answer(flow: &Flow) -> Option<u64> {
    let shares = flow.turn.as_ref().map(|turn| turn.shares())?;
    (shares.answered > 0).then_some(u64::from(shares.longest_ms) * 1_000_000)
}

impl Unanswered {
    /// From how long a wait on, ns, an answer of this connection's server was due. Where the input ended before anybody gave up, the answer may
    /// have been on its way: it is overdue when others of its service never took nearly as long.
    pub fn due(&self, flow: &Flow, is_open: bool) -> u64 {
        let others = self.answering.get(&flow.service()).copied();
        match longest_answer(flow).max(others) {
            None => DUE_OF_SILENT,
            Some(longest) if is_open => DUE.max(longest.saturating_mul(TIMES)),
            Some(_) => DUE,
        }
    }

    /// A connection is over, of which a request waited so long, ns, for an answer that was due.
    pub fn connection(&mut self, flow: &Flow, kind: Kind, waited: Option<u64>) {
        let server = flow.service();
        if let Some(waited) = longest_answer(flow)
            && (self.answering.len() < SERVICES || self.answering.contains_key(&server))
        {
            let longest = self.answering.entry(server).or_default();
            *longest = waited.max(*longest);
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

    /// `missed`: data segments of any connection that were delivered and are not in the capture.
    pub fn finding(&self, missed: u64) -> Option<v1::Finding> {
        let requests = self.group.count();
        if requests == 0 {
            return None;
        }
        let mut silent: Vec<_> = self.silent.iter().map(|(key, n)| (*n, *key)).collect();
        silent.sort_unstable_by_key(|(n, key)| (std::cmp::Reverse(*n), *key));
        let is_answering = silent.iter().any(|(_, key)| self.answering.contains_key(key));
        let [client, server, open] = self.ended;
        let mut evidence = vec![format!(
            "{} waited {} s in all for an answer that never came, {} s at most",
            several(requests, "request", "requests"),
            decimal(seconds(self.waited), 1),
            decimal(seconds(self.longest), 1),
        )];
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
        for (n, key @ (server, port)) in silent.into_iter().take(TOLD) {
            let answers = if self.answering.contains_key(&key) {
                "it answered others"
            } else {
                "it answered none"
            };
            evidence.push(format!("{}: {} ({answers})", socket_address(server, port), count(n)));
        }
        if !is_answering {
            evidence.push("it may also be a protocol in which the client tells and the server says nothing".to_owned());
        }
        evidence.push("it may also be an answer that was lost before the tap and never sent again".to_owned());
        // Nobody gave up, because it was answered: a capture with holes looks like that.
        let is_by_capture = open > 0 && missed >= requests;
        if is_by_capture {
            evidence.push(format!(
                "it may also be the capture, which missed {} of this or other connections that were delivered: the answers and all that followed them may \
                 be among what it lacks",
                several(missed, "data segment", "data segments")
            ));
        }
        evidence.push(NEXT.to_owned());
        Some(finding(
            "UNANSWERED_REQUESTS",
            "WARNING",
            if is_by_capture {
                0.4
            } else if is_answering {
                0.9
            } else {
                0.6
            },
            format!("{} got no answer to a request", connections(requests)),
            evidence,
            &self.group,
            &[
                ("requests", requests as f64),
                ("byClient", client as f64),
                ("byServer", server as f64),
                ("open", open as f64),
                ("longestSeconds", seconds(self.longest)),
                ("costSeconds", seconds(self.waited)),
            ],
        ))
    }
}
