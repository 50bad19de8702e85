//! RSTs in the name of a host that something on the path sent most likely (`docs/src/findings.md`).

use weir_messages::v1;
use weir_record::{Event, tcp_flag};

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::message::{address, seconds};
use crate::numbers::{connections, count, duration, lasting_between};
use crate::rtt::Trip;
use crate::turns::Finished;

/// What systems set TTL or hop limit to.
const INITIAL: [u8; 4] = [32, 64, 128, 255];
/// Hops from which on two ways are not the same: paths that share the load differ by one.
const HOPS: u8 = 2;
/// What its sender had sent before a RST may be so late, ns.
const OVERTAKEN: u64 = 1_000_000;
/// A round trip that is longer by less than that, ns, is not known so well.
const SLACK: u64 = 1_000_000;
/// ACKs are not later than that, ns (RFC 9293 3.8.6.3, and twice as much).
const LATEST_ACK: u64 = 1_000_000_000;
/// Idle times, ns, after which devices on the way are known to forget a connection: short ones of load balancers and NATs (RFC 5382 5 asks
/// those for two hours and four minutes).
pub const FORGOTTEN: u64 = 60_000_000_000;

/// Hops from the sender of a packet to the tap: it began with the next initial value.
pub(crate) fn hops(ttl: u8) -> u8 {
    let initial = INITIAL.into_iter().find(|initial| *initial >= ttl);
    initial.unwrap_or(u8::MAX) - ttl
}

/// TTL of the first of a side's data at the tap; 0: not known, [`SEVERAL`]: it comes on several ways.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ttl(u8);

/// No packet that a router would pass on.
const SEVERAL: u8 = 1;

impl Ttl {
    pub fn add(&mut self, ttl: u8) {
        if self.0 == 0 {
            self.0 = ttl;
        } else if self.is_other(ttl) {
            self.0 = SEVERAL;
        }
    }

    /// Those of more data.
    pub fn join(&mut self, other: Self) {
        self.add(other.0);
    }

    /// Whether another TTL comes from farther away or from nearer.
    fn is_other(self, ttl: u8) -> bool {
        self.0 > SEVERAL && ttl != 0 && hops(self.0).abs_diff(hops(ttl)) >= HOPS
    }
}

/// The first RST of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reset {
    side: usize,
    time: u64,
    ttl: u8,
    /// From the request that it answers, and the shortest round trip, ns: the server cannot have had it.
    soon: Option<(u64, u64)>,
    /// Who sends RSTs has no connection any more.
    went_on: bool,
}

/// When what a RST may answer had passed, TAI ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The first packet of the request, and its end.
    pub request: u64,
    pub end: u32,
    /// The last of the server before it, which the client acknowledged.
    pub before: u64,
}

impl Reset {
    /// `asked`: a request of the other side that nobody has answered; `trip`: between the tap and who is to have had it.
    pub fn new(side: usize, e: &Event, time: u64, asked: Option<Asked>, trip: Option<Trip>) -> Self {
        // Without an ACK it answers a packet (RFC 9293 3.5.2), which had acknowledged all that came before.
        let answers = |asked: &Asked| e.tcp_flags & tcp_flag::ACK == 0 || e.ack == asked.end;
        let soon = asked.filter(answers).zip(trip).and_then(|(asked, trip)| {
            let is_too_soon = |wait: u64| trip.is_too_soon(wait) && trip.least.saturating_sub(wait) >= SLACK;
            let wait = time.saturating_sub(asked.request);
            // Nor does it answer the ACK of what came before.
            let rested = asked.request.saturating_sub(asked.before) >= LATEST_ACK.saturating_add(trip.most);
            let is_first = rested || is_too_soon(time.saturating_sub(asked.before));
            (is_too_soon(wait) && is_first).then_some((wait, trip.least))
        });
        Self {
            side,
            time,
            ttl: e.ttl,
            soon,
            went_on: false,
        }
    }

    /// A packet of `side` that is no RST passed at `time`.
    pub fn sent(&mut self, side: usize, time: u64) {
        self.went_on |= side == self.side && time > self.time.saturating_add(OVERTAKEN);
    }
}

/// RSTs of the same kind of evidence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resets {
    group: Group,
    by_ttl: u64,
    too_soon: u64,
    went_on: u64,
    /// Behind a rest in which devices forget: how many, and least and most of it, ns.
    forgotten: u64,
    rested: (u64, u64),
    /// Sum of what each is believed by.
    confidence: f64,
    /// The first whose TTL tells: in whose name, its TTL, and the other packets'.
    ttls: Option<([u8; 16], u8, Ttl)>,
    /// The soonest, and its round trip, ns.
    soonest: Option<(u64, u64)>,
}

impl Resets {
    /// A connection that was set up is over; whether something on the path reset it, most likely.
    pub fn is_foreign(&mut self, flow: &Flow, last: Option<&Finished>) -> bool {
        let Some(reset) = flow.extras.reset() else { return false };
        let turn = flow.turn.as_ref();
        let known = turn.map_or_else(Ttl::default, |turn| turn.ttl(reset.side));
        let by_ttl = known.is_other(reset.ttl);
        let kinds = u8::from(by_ttl) + u8::from(reset.soon.is_some()) + u8::from(reset.went_on);
        self.confidence += match kinds {
            0 => return false,
            // A kernel may set another TTL in what it sends for itself.
            1 if by_ttl => 0.7,
            1 => 0.8,
            _ => 0.95,
        };
        self.group.include(flow.id, reset.time, reset.time);
        self.by_ttl += u64::from(by_ttl);
        self.too_soon += u64::from(reset.soon.is_some());
        self.went_on += u64::from(reset.went_on);
        let ends = flow.ends();
        let name = if reset.side == 0 { ends.client } else { ends.server };
        if by_ttl {
            self.ttls.get_or_insert((name, reset.ttl, known));
        }
        if let Some(soon) = reset.soon.filter(|soon| self.soonest.is_none_or(|known| *soon < known)) {
            self.soonest = Some(soon);
        }
        let rested = last.and_then(|last| last.client).filter(|rest| *rest >= FORGOTTEN);
        if let Some(rest) = rested {
            let (least, most) = if self.forgotten == 0 { (rest, rest) } else { self.rested };
            self.rested = (least.min(rest), most.max(rest));
            self.forgotten += 1;
        }
        true
    }

    pub fn finding(&self) -> Option<v1::Finding> {
        let all = self.group.count();
        if all == 0 {
            return None;
        }
        let mut evidence = Vec::new();
        let mut values = vec![
            ("connections", all as f64),
            ("byTtl", self.by_ttl as f64),
            ("tooSoon", self.too_soon as f64),
            ("wentOn", self.went_on as f64),
        ];
        if let Some((name, ttl, Ttl(others))) = self.ttls {
            evidence.push(format!(
                "in {} the TTL tells: the RST in the name of {} had {ttl} at the tap, the data of that host {}: it came from {} hops away, that from {}",
                count(self.by_ttl),
                address(name),
                others,
                hops(ttl),
                hops(others)
            ));
            values.extend([
                ("rstTtl", f64::from(ttl)),
                ("ttl", f64::from(others)),
                ("rstHops", f64::from(hops(ttl))),
                ("hops", f64::from(hops(others))),
            ]);
        }
        if let Some((wait, trip)) = self.soonest {
            evidence.push(format!(
                "in {} it came sooner than an answer can: {} after the request, where no round trip took less than {}",
                count(self.too_soon),
                duration(wait),
                duration(trip)
            ));
            values.extend([("soonestSeconds", seconds(wait)), ("rttSeconds", seconds(trip))]);
        }
        if self.went_on > 0 {
            evidence.push(format!(
                "in {} the host in whose name it came went on with the connection: who sends a RST has none any more",
                count(self.went_on)
            ));
        }
        if self.forgotten > 0 {
            let times = lasting_between(seconds(self.rested.0), seconds(self.rested.1));
            evidence.push(format!(
                "in {} it answered the first data after {times} of idle time: a device that has forgotten the connection answers so",
                count(self.forgotten)
            ));
            values.extend([
                ("afterIdle", self.forgotten as f64),
                ("idleLeastSeconds", seconds(self.rested.0)),
                ("idleMostSeconds", seconds(self.rested.1)),
            ]);
        }
        evidence.push(
            "it may also be a balancer that answers for its servers, or another host behind the same address"
                .to_owned(),
        );
        let what = if self.forgotten > 0 {
            "compare the idle time with the timeouts of the firewalls and load balancers on the way, and let keep-alives come sooner; "
        } else {
            ""
        };
        evidence.push(format!(
            "next: {what}look for the firewall, filter or intrusion prevention on the way that sends these RSTs, and at its log at these times; a tap nearer to the host in whose name they come does not see them"
        ));
        Some(finding(
            "FOREIGN_RST",
            "WARNING",
            self.confidence / all as f64,
            format!(
                "{} reset by something on the path, most likely, not by the other end",
                if all == 1 {
                    "1 connection was".to_owned()
                } else {
                    format!("{} were", connections(all))
                }
            ),
            evidence,
            &self.group,
            &values,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_initial_value_is_no_other_way() {
        let mut known = Ttl::default();
        assert!(!known.is_other(61));
        known.add(0);
        known.add(49);
        // 15 hops, from 64, 128 and 255.
        for (ttl, is_other) in [
            (49, false),
            (50, false),
            (113, false),
            (240, false),
            (61, true),
            (47, true),
            (0, false),
        ] {
            assert_eq!(known.is_other(ttl), is_other, "{ttl}");
        }
        // Its packets come on two ways.
        known.add(45);
        assert!(!known.is_other(61));
    }
}
