//! Whose time it was (`docs/src/limits.md`): every instant of a transaction, and of the client's time before it, is
//! charged once. The parts add up to the whole.

use weir_messages::v1;

use crate::given::Given;
use crate::limits::{Cause, Charged, Tail};
use crate::message::seconds;
use crate::turns::Finished;

/// A client that sends nothing for longer waits for a person or a timer, ns.
pub(crate) const USER_THINK: u64 = 1_000_000_000;
/// The least that retransmission timers in use have beside the round trip, ns (Linux, `TCP_RTO_MIN`; RFC 6298 2.4 asks for a second).
pub(crate) const USUAL_TIMER: u64 = 200_000_000;
/// No gap is longer: sums of parts cannot overflow.
pub(crate) const LONGEST: u64 = 1 << 58;
/// Bytes of a frame that are not payload: Ethernet, IPv4 and TCP headers without options.
pub(crate) const HEADERS: u64 = 54;

/// Bytes on the wire, in full segments.
pub(crate) fn on_wire(bytes: u64, segment: u32) -> u64 {
    bytes.saturating_add(bytes.div_ceil(u64::from(segment.max(1))).saturating_mul(HEADERS))
}

/// ns of a transaction, an operation or everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeShares {
    pub think: u64,
    pub client: u64,
    pub server: u64,
    pub latency: u64,
    /// Transactions, and those of them whose path's round trip is not known: the latency is in other parts.
    pub transactions: u64,
    pub blind: u64,
    // Of transfers, which most transactions have none of that takes time.
    pub bandwidth: u64,
    pub congestion: u64,
    pub protocol: u64,
    /// Of the protocol's, what a lossless path, open windows, larger send buffers and no Nagle's algorithm would save.
    pub recovery: u64,
    pub receiver: u64,
    pub sender: u64,
    pub nagle: u64,
    pub slow_start: u64,
    /// How far the client's, the server's, and the link's (bandwidth and congestion) may be from the truth.
    pub client_uncertain: u64,
    pub server_uncertain: u64,
    pub link_uncertain: u64,
}

/// What a transaction is measured with; times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measure {
    /// Smallest round trip between tap and client.
    pub to_client: Option<u64>,
    /// Smallest round trip between tap and server.
    pub to_server: Option<u64>,
    pub segment: u32,
    /// What the user said of the path.
    pub given: Given,
}

/// Waits for what was sent again that its receiver needed, ns. First copies do not show them, so no transfer has them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// From the last packet of the request to its last repeat.
    pub request: u64,
    /// From the last packet of the response (of a request without one, of that) to its last repeat.
    pub end: u64,
    /// The same of the transaction before.
    pub before: u64,
    /// From what passed behind the response, which was lost, to its first packet.
    pub answer: u64,
    /// The request came again, and its first copy was lost before the tap.
    pub asked_again: bool,
}

/// How late the ends of transfers came to who went on then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tails {
    pub request: Tail,
    /// Of the response of the transaction before.
    pub before: Tail,
}

impl TimeShares {
    pub fn add(&mut self, other: &Self) {
        let Self {
            think,
            client,
            server,
            latency,
            transactions,
            blind,
            bandwidth,
            congestion,
            protocol,
            recovery,
            receiver,
            sender,
            nagle,
            slow_start,
            client_uncertain,
            server_uncertain,
            link_uncertain,
        } = other;
        for (sum, more) in [
            (&mut self.think, think),
            (&mut self.client, client),
            (&mut self.server, server),
            (&mut self.latency, latency),
            (&mut self.transactions, transactions),
            (&mut self.blind, blind),
            (&mut self.client_uncertain, client_uncertain),
            (&mut self.server_uncertain, server_uncertain),
            (&mut self.link_uncertain, link_uncertain),
        ] {
            *sum = sum.saturating_add(*more);
        }
        // The other parts are parts of the protocol's.
        if bandwidth | congestion | protocol == 0 {
            return;
        }
        for (sum, more) in [
            (&mut self.bandwidth, bandwidth),
            (&mut self.congestion, congestion),
            (&mut self.protocol, protocol),
            (&mut self.recovery, recovery),
            (&mut self.receiver, receiver),
            (&mut self.sender, sender),
            (&mut self.nagle, nagle),
            (&mut self.slow_start, slow_start),
        ] {
            *sum = sum.saturating_add(*more);
        }
    }

    pub fn total(&self) -> u64 {
        let network = [self.latency, self.bandwidth, self.congestion, self.protocol];
        let hosts = [self.think, self.client, self.server];
        hosts
            .iter()
            .chain(&network)
            .fold(0, |sum: u64, ns| sum.saturating_add(*ns))
    }

    /// A handshake: one round trip, and what repeats added. `trip`: that of its own packets, when they show it;
    /// `repeated`: the rest is the wait for timers that a lost SYN or SYN-ACK left to run.
    pub fn setup(whole: u64, trip: Option<u64>, repeated: bool) -> Self {
        let whole = whole.min(LONGEST);
        let latency = whole.min(trip.unwrap_or(0));
        let protocol = whole - latency;
        Self {
            latency,
            protocol,
            recovery: if repeated { protocol } else { 0 },
            transactions: 1,
            blind: u64::from(trip.is_none()),
            ..Self::default()
        }
    }

    /// A transaction of which nothing tells whose time it was.
    pub fn unknown() -> Self {
        Self {
            transactions: 1,
            blind: 1,
            ..Self::default()
        }
    }

    /// A transaction. `before`: from what went before it to its first packet.
    pub fn transaction(
        done: &Finished,
        before: Option<u64>,
        request: Option<&Charged>,
        response: Option<&Charged>,
        recovery: &Recovery,
        tails: &Tails,
        m: &Measure,
    ) -> Self {
        let before = before.map(|gap| gap.saturating_sub(recovery.before).min(LONGEST));
        let server = done.server.or(done.unanswered).map(|gap| gap.min(LONGEST));
        let end = recovery.end.min(LONGEST);
        let mut s = Self {
            transactions: 1,
            blind: u64::from(m.halves().is_none()),
            ..Self::default()
        };
        let mut either = 0;
        if let Some(gap) = before {
            if done.was_asked() {
                let gap = s.less_timer(recovery.asked_again, gap, m.to_client, m);
                // The packet before had to reach the client, and this one to come back.
                let idle = s.less_latency(gap, m.to_client);
                // And the rest of what it carried, too.
                let idle = idle - s.tail(tails.before, idle);
                *(if idle > USER_THINK { &mut s.think } else { &mut s.client }) += idle;
            } else {
                let idle = s.less_latency(gap, m.to_server);
                s.server += idle;
                either = done.missed.map_or(0, |_| idle);
            }
        }
        let idle = s.transfer(request, done.request_bytes, m);
        let quiet = request.map_or(0, |charged| charged.quiet.min(idle));
        s.think += quiet;
        s.client += idle - quiet;
        s.recover(end);
        if let Some(gap) = server {
            let gap = gap - s.recover(recovery.answer.min(gap));
            // Until the last of the request has come, the server cannot answer it.
            let gap = gap - s.recover(recovery.request.min(gap));
            let is_repeat = done.wait.is_some_and(|wait| wait.is_repeat);
            let gap = s.less_timer(is_repeat, gap, m.to_server, m);
            // Behind a queue the round trip was longer than the smallest, or the smallest had a queue in it. 0: it was not known then.
            let trip = done
                .wait
                .map(|wait| u64::from(wait.round_trip))
                .filter(|trip| *trip > 0);
            let idle = s.less_latency(gap, m.to_server.map(|own| own.min(trip.unwrap_or(own))));
            let idle = idle - s.tail(tails.request, idle);
            s.server += idle;
        }
        let idle = s.transfer(response, done.response_bytes, m);
        s.server += idle;
        // What is uncertain of a side is at most all that it may have had.
        let whole = |gap: Option<u64>, charged: Option<&Charged>, uncertain: Option<u64>| {
            let pauses = charged.map_or(0, |charged| charged.doubtful);
            gap.unwrap_or(0).saturating_add(pauses).min(uncertain.unwrap_or(0))
        };
        s.client_uncertain = if s.think > 0 {
            0
        } else {
            whole(before, request, done.client_uncertain)
        };
        s.server_uncertain = either + whole(server, response, done.server_uncertain());
        // What was sent while a transfer of the peer went on was waited for by nobody.
        let [request_amid, response_amid] = done.amid;
        if request_amid {
            s.protocol += std::mem::take(&mut s.think) + std::mem::take(&mut s.client);
            s.client_uncertain = 0;
        }
        if response_amid {
            s.protocol += std::mem::take(&mut s.server);
            s.server_uncertain = 0;
        }
        if done.overlapped {
            // Who sends before it has heard waits for no round trip; whose the rest was, nothing tells.
            let latency = std::mem::take(&mut s.latency);
            s.protocol += latency;
            let most = s.client + s.server + latency;
            s.client_uncertain = if s.think > 0 { s.client_uncertain } else { most };
            s.server_uncertain = most;
        }
        debug_assert_eq!(
            s.total(),
            before.unwrap_or(0)
                + request.map_or(0, |charged| charged.by.sum())
                + server.unwrap_or(0)
                + response.map_or(0, |charged| charged.by.sum())
                + end
        );
        s
    }

    /// A wait for what was sent again.
    const fn recover(&mut self, wait: u64) -> u64 {
        self.protocol += wait;
        self.recovery += wait;
        wait
    }

    /// What is left of a gap in which something lost before the tap waited to be sent `again`: nearly for a timer. There was a round
    /// trip in it, too.
    fn less_timer(&mut self, again: bool, gap: u64, trip: Option<u64>, m: &Measure) -> u64 {
        if !again {
            return gap;
        }
        let timer = USUAL_TIMER + m.round_trip().unwrap_or(0);
        gap - self.recover(timer.min(gap.saturating_sub(trip.unwrap_or(0))))
    }

    /// The end of a transfer, which came late, as far as that is in a gap. Returns how long that was.
    fn tail(&mut self, tail: Tail, gap: u64) -> u64 {
        let late = tail.late.min(gap);
        let wire = tail.wire.min(late);
        self.bandwidth += wire;
        self.congestion += late - wire;
        self.link_uncertain += tail.guessed.min(late);
        late
    }

    /// What is left of a gap without the round trip in it.
    const fn less_latency(&mut self, gap: u64, trip: Option<u64>) -> u64 {
        let trip = match trip {
            Some(trip) if trip < gap => trip,
            Some(_) => gap,
            None => 0,
        };
        self.latency += trip;
        gap - trip
    }

    /// The parts of a transfer, if it took time. Returns the application's.
    fn transfer(&mut self, charged: Option<&Charged>, bytes: u64, m: &Measure) -> u64 {
        let Some(charged) = charged else { return 0 };
        let by = &charged.by;
        let application = by.of(Cause::Application);
        let mut rest = by.sum() - application;
        let on_wire = match m.given.link {
            Some(link) => (on_wire(bytes, m.segment) as f64 / link * 1e9) as u64,
            None => charged.busy(),
        };
        let bandwidth = on_wire.min(rest);
        rest -= bandwidth;
        let congestion = charged.queueing.min(rest);
        rest -= congestion;
        self.bandwidth += bandwidth;
        self.congestion += congestion;
        self.protocol += rest;
        // What the protocol's part is made of, in proportion: bandwidth and queueing are parts of the same time.
        let whole = by.sum() - application;
        if rest == 0 {
            return application;
        }
        let part = |ns: u64| {
            // Divisions of this width are slow.
            if ns == 0 || rest == whole {
                ns
            } else {
                (u128::from(ns) * u128::from(rest) / u128::from(whole)) as u64
            }
        };
        self.recovery += part(by.of(Cause::Recovery));
        self.receiver += part(by.receiver().saturating_sub(charged.queued_window));
        self.sender += part(by.of(Cause::SendBuffer).saturating_sub(charged.queued_buffer));
        self.nagle += part(by.of(Cause::Nagle));
        self.slow_start += part(by.of(Cause::SlowStart) + by.of(Cause::CongestionWindow));
        application
    }

    /// How far the server's time of this transaction may be from the truth, ns.
    pub fn server_uncertain_of(&self, done: &Finished) -> Option<u64> {
        done.server_uncertain().map(|ns| match ns {
            u64::MAX => self.server_uncertain,
            ns => ns,
        })
    }

    /// The message.
    pub fn message(&self) -> v1::TimeShares {
        v1::TimeShares {
            user_think_seconds: seconds(self.think),
            client_processing_seconds: seconds(self.client),
            server_processing_seconds: seconds(self.server),
            latency_seconds: (self.blind == 0 || self.latency > 0).then(|| seconds(self.latency)),
            bandwidth_seconds: seconds(self.bandwidth),
            congestion_seconds: seconds(self.congestion),
            protocol_seconds: seconds(self.protocol),
            total_seconds: seconds(self.total()),
        }
    }
}

impl Measure {
    /// From host to host and back, as it was for the hosts: as far as it was seen, else as it was given.
    pub fn round_trip(&self) -> Option<u64> {
        self.halves().or(self.given.trip)
    }

    /// The same without queues: as it was given, but a shorter one that was seen proves that path shorter.
    pub fn path_trip(&self) -> Option<u64> {
        [self.halves(), self.given.trip].into_iter().flatten().min()
    }

    /// Whether [`Self::path_trip`] is what the user said.
    pub fn is_given(&self) -> bool {
        self.given.trip.is_some() && self.given.trip == self.path_trip()
    }

    fn halves(&self) -> Option<u64> {
        let (client, server) = self.to_client.zip(self.to_server)?;
        Some(client + server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lost_syn_cost_is_recovery() {
        let nine = TimeShares::setup(9_000_400_000, Some(400_000), true);
        assert_eq!(
            (nine.latency, nine.protocol, nine.recovery),
            (400_000, 9_000_000_000, 9_000_000_000)
        );
        let reset = TimeShares::setup(70_000_000_000, None, true);
        assert_eq!((reset.latency, reset.recovery, reset.blind), (0, 70_000_000_000, 1));
        let slow = TimeShares::setup(1_000, Some(400), false);
        assert_eq!((slow.protocol, slow.recovery), (600, 0));
    }
}
