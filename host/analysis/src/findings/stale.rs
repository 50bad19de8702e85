//! Requests on connections that their servers had closed: a pool keeps connections longer than the server does (`docs/src/findings.md`).

use weir_messages::v1;

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::message::seconds;
use crate::numbers::{connections, count, lasting_between};
use crate::turns::Finished;

/// What a client that closes, too, sends as its last may be a notice of that, in so many bytes (TLS's, up to that of AES-CBC with SHA-384; HTTP/2's before it). A RST may come before its FIN.
const NOTICE: u64 = 85;
/// Servers that close sooner than this after their last data, ns, do not close for want of requests: keep-alive timeouts are seconds.
const IDLE: u64 = 1_000_000_000;

/// Connections with a request behind the server's FIN, which a RST answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stale {
    /// Those that the client went on with before it had the answer: of a request that it was still sending, or the next one.
    amid: Group,
    group: Group,
    /// The client had the FIN when it asked.
    knew: u64,
    /// How long no data had passed when the server closed, shortest and longest, ns.
    idle: Option<(u64, u64)>,
}

impl Stale {
    /// Whether the last request of a connection came behind the server's FIN, so that nobody waits for an answer. It is counted if a RST answered it,
    /// and it is no notice.
    pub fn is_behind(&mut self, flow: &Flow, last: &Finished) -> bool {
        let closed = flow.fin_time(1);
        let asked = last.request_time;
        if closed == 0 || asked <= closed || last.response.is_some() {
            return false;
        }
        // One as long as the last that was answered is another.
        let turn = flow
            .turn
            .as_ref()
            .filter(|turn| turn.shares().answered > 0 && !flow.sent_fin(0));
        let is_another = turn.is_some_and(|turn| turn.against_answered(last.request_bytes).is_eq());
        let is_request = last.request_bytes > NOTICE || is_another;
        if !is_request || !flow.sent_rst(1) {
            return !is_request;
        }
        if last.overlapped {
            self.amid.include(flow.id, closed, flow.last);
            return true;
        }
        self.group.include(flow.id, closed, flow.last);
        // The FIN had been at the client, and the request made its way back.
        let way = flow.trip(1).unwrap_or(u64::MAX);
        self.knew += u64::from(asked - closed >= way);
        let quiet = last
            .client
            .and_then(|quiet| closed.checked_sub(asked.saturating_sub(quiet)));
        if let Some(quiet) = quiet {
            let (least, most) = self.idle.unwrap_or((quiet, quiet));
            self.idle = Some((least.min(quiet), most.max(quiet)));
        }
        true
    }

    /// Data that its receiver never reads makes it send a RST (RFC 9293 3.10.7.4; RFC 2525 2.17), and whoever gets that throws away what it has
    /// received and not read (RFC 9112 9.6).
    pub fn amid(&self) -> Option<v1::Finding> {
        let all = self.amid.count();
        (all > 0).then(|| {
            finding(
                "CLOSED_DURING_REQUEST",
                "WARNING",
                0.8,
                format!("{} sent on while the server answered and closed", connections(all)),
                vec![
                    "the server answered and sent its FIN; what the client had sent before that reached it, the rest of its request, the server answered by a RST".to_owned(),
                    "a RST makes the client's TCP throw away what it has received and not read: the client may see an error (connection reset) instead of the answer, which may say why (too large, not allowed)".to_owned(),
                    "it may also be a further request that the client sent without waiting for the answer (pipelining)".to_owned(),
                    "next: let the server read on to the end of the request, or for a while, before it closes (RFC 9112 9.6); or let the client ask first (Expect: 100-continue) before it sends much".to_owned(),
                ],
                &self.amid,
                &[("connections", all as f64)],
            )
        })
    }

    pub fn finding(&self) -> Option<v1::Finding> {
        let all = self.group.count();
        if all == 0 {
            return None;
        }
        let mut evidence = vec![format!(
            "the server had sent its FIN, and answered the request by a RST: in {} the client had the FIN when it asked, in {} the two may have met on the way",
            count(self.knew),
            count(all - self.knew)
        )];
        let (least, most) = self.idle.unwrap_or_default();
        if self.idle.is_some() {
            evidence.push(format!(
                "the servers closed after {} without data",
                lasting_between(seconds(least), seconds(most))
            ));
        }
        evidence.push("who asked got an error (connection reset) instead of an answer, unless the request was sent again elsewhere".to_owned());
        let (otherwise, next) = if self.idle.is_some() && most < IDLE {
            (
                "it may also be requests that the server refuses: it was stopped, or answers the first one and no other",
                "next: the servers closed right behind their last data, so no timeout of idle connections did it: see why (so many requests of a connection only, an error), and why the clients do not see the end before they ask",
            )
        } else {
            (
                "it may also be a server that closed for another reason: it was stopped, or takes so many requests of a connection only",
                "next: let the clients' pools give up idle connections sooner than the server does (its keep-alive timeout), or make that longer",
            )
        };
        evidence.extend([otherwise, next].map(str::to_owned));
        let mut values = vec![("connections", all as f64), ("knew", self.knew as f64)];
        if self.idle.is_some() {
            values.extend([("idleLeastSeconds", seconds(least)), ("idleMostSeconds", seconds(most))]);
        }
        Some(finding(
            "CLOSED_BEFORE_REQUEST",
            "WARNING",
            0.9,
            format!("{} had a request after the server had closed", connections(all)),
            evidence,
            &self.group,
            &values,
        ))
    }
}
