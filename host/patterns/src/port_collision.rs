//! Setups on ports of which the server still has an older connection: it answers the SYN by an ACK of that (in TIME-WAIT RFC 9293 3.10.7.4, else
//! RFC 5961 4.2), the client resets it (RFC 9293 3.10.7.3), and its SYN comes again when its timer runs out. Memory: the newest [`OLD`] connections
//! that are over (0.3 MB), and [`PAIRS`] pairs.

use weir_analysis::{
    CloseKind, Ended, Ends, Group, Verdict, address, decimal, finding, lasting, lasting_between, seconds, sign,
};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::detector::Detector;
use crate::names::{Address, about, connections, count, service};
use crate::newest::Newest;
use crate::routes::Route;
use crate::timeline::Timeline;

/// Connections that are over of which it is known how.
const OLD: usize = 4096;
/// Pairs of client and service that are told apart, and that are told.
const PAIRS: usize = 64;
const TOLD: usize = 8;

/// A connection that is over.
#[derive(Clone, Copy, Debug)]
struct Old {
    ends: Ends,
    /// Its last packet, TAI ns.
    last: u64,
    /// The server has ended its side first; or either side has not at all.
    by_server: bool,
    is_open: bool,
}

/// Setups of a client with a service.
#[derive(Debug)]
struct Pair {
    client: Address,
    server: (Address, u16),
    group: Group,
    /// From a SYN that was answered so to the next, ns.
    waited: u64,
    /// Of those whose older connection was seen: how long ago its last packet had passed, least and most, ns; and how it ended.
    seen: u64,
    since: (u64, u64),
    by_server: u64,
    open: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct PortCollision {
    old: Newest<Old, OLD>,
    pairs: Vec<Pair>,
    /// Of the connection whose verdicts came last, and how long its SYNs waited, ns.
    current: Option<(FlowId, u64)>,
}

impl PortCollision {
    fn collided(&mut self, new: &Ended, waited: u64) {
        let (client, server) = (new.ends.client, (new.ends.server, new.ends.server_port));
        let known = self
            .pairs
            .iter()
            .position(|pair| (pair.client, pair.server) == (client, server));
        if known.is_none() && self.pairs.len() == PAIRS {
            return;
        }
        let at = known.unwrap_or_else(|| {
            self.pairs.push(Pair {
                client,
                server,
                group: Group::default(),
                waited: 0,
                seen: 0,
                since: (u64::MAX, 0),
                by_server: 0,
                open: 0,
            });
            self.pairs.len() - 1
        });
        let pair = &mut self.pairs[at];
        let begun = new.span.0;
        pair.group.include(new.id, begun, begun.saturating_add(waited));
        pair.waited += waited;
        let older = self.old.iter().filter(|old| old.ends == new.ends && old.last <= begun);
        if let Some(old) = older.last() {
            let since = begun - old.last;
            pair.seen += 1;
            pair.since = (pair.since.0.min(since), pair.since.1.max(since));
            pair.by_server += u64::from(old.by_server);
            pair.open += u64::from(old.is_open);
        }
    }
}

impl Detector for PortCollision {
    fn segment(&mut self, verdict: &Verdict, _: &Ends, _: &mut Route) {
        if verdict.handshake && verdict.evidence.has(sign::CHALLENGED) {
            let wait = verdict.time.saturating_sub(verdict.lost_at);
            match &mut self.current {
                Some((id, waited)) if *id == verdict.connection => *waited += wait,
                current => *current = Some((verdict.connection, wait)),
            }
        }
    }

    fn connection(&mut self, connection: &Ended, _: &mut Route) {
        if let Some((_, waited)) = self.current.take_if(|(id, _)| *id == connection.id) {
            self.collided(connection, waited);
        }
        let [client, server] = connection.sent;
        let is_reset = client.rst || server.rst;
        self.old.push(Old {
            ends: connection.ends,
            last: connection.span.1,
            by_server: connection.closing == CloseKind::ServerFin && !is_reset,
            is_open: !(is_reset || client.fin && server.fin),
        });
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        let mut pairs: Vec<&Pair> = self.pairs.iter().collect();
        pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.group.count()), pair.client, pair.server));
        out.extend(pairs.into_iter().take(TOLD).map(tell));
    }
}

fn tell(pair: &Pair) -> Finding {
    let n = pair.group.count();
    let waited = seconds(pair.waited);
    let name = format!(
        "{} with {}",
        address(pair.client),
        service(pair.server.0, pair.server.1)
    );
    let mut evidence = vec![format!(
        "the server answered the SYNs by ACKs of older connections of the same addresses and ports, which it still has; the client reset these, and its SYNs came again when their timers ran out: {} s in all, {} each",
        decimal(waited, 3),
        lasting(waited / n as f64)
    )];
    let mut values = vec![("connections", n as f64), ("costSeconds", waited)];
    if pair.seen > 0 {
        let [least, most] = [pair.since.0, pair.since.1].map(seconds);
        evidence.push(format!(
            "older connections in the capture: {}, over since {}; {} closed by the server first, which then keeps them in TIME-WAIT (30 s to 240 s), {} not closed by both",
            count(pair.seen),
            lasting_between(least, most),
            count(pair.by_server),
            count(pair.open)
        ));
        values.extend([
            ("seen", pair.seen as f64),
            ("closedByServer", pair.by_server as f64),
            ("notClosed", pair.open as f64),
            ("sinceLeastSeconds", least),
            ("sinceMostSeconds", most),
        ]);
    }
    evidence.push("it may also be several clients behind one address: a NAT that gives a port to the next sooner than the server forgets the last".to_owned());
    evidence.push("next: let the client take its ports in turn from a larger range (none that is fixed), or keep connections open; let it close first, so that TIME-WAIT is at its end; with timestamps on both sides a server takes such a SYN at once (RFC 6191)".to_owned());
    let found = finding(
        "PORT_COLLISION",
        "WARNING",
        0.9,
        format!(
            "{} of {name} met an older one that the server still had",
            connections(n)
        ),
        evidence,
        &pair.group,
        &values,
    );
    about(name, found)
}

#[cfg(test)]
mod tests {
    use weir_analysis::{Evidence, Place, Sent};

    use super::*;
    use crate::fixtures::{ended, verdict};

    const SECOND: u64 = 1_000_000_000;

    /// A connection from `start` on, s, that lasts a second and is closed by its server first, or not at all; its SYN was answered by an ACK of
    /// something else or not.
    fn end(all: &mut PortCollision, id: u64, start: u64, is_closed: bool, is_challenged: bool) {
        let ends = Ends {
            client_port: 51_000,
            ..Ends::default()
        };
        let mut route = Route::new(&ends, 0);
        let start = start * SECOND;
        if is_challenged {
            let verdict = Verdict {
                seq: 1,
                place: Place::Nowhere,
                evidence: Evidence::NONE.with(sign::CHALLENGED),
                handshake: true,
                ..verdict(id, start, start + SECOND)
            };
            all.segment(&verdict, &ends, &mut route);
        }
        let fin = Sent {
            fin: is_closed,
            ..Sent::default()
        };
        let connection = Ended {
            ends,
            closing: if is_closed {
                CloseKind::ServerFin
            } else {
                CloseKind::Open
            },
            sent: [fin; 2],
            answered: 1,
            has_trouble: is_challenged,
            ..ended(id, (start, start + SECOND))
        };
        all.connection(&connection, &mut route);
    }

    #[test]
    fn ports_that_the_server_still_has_are_told_with_what_they_were_used_for() {
        let mut all = PortCollision::default();
        let found = |all: &PortCollision| {
            let mut out = Vec::new();
            all.findings(&Timeline::default(), &mut out);
            out
        };
        end(&mut all, 1, 0, true, false);
        assert_eq!(found(&all), []);
        end(&mut all, 2, 20, false, true);
        end(&mut all, 3, 51, true, true);
        let told = &found(&all)[0];
        let value = |key: &str| told.values[key].clone();
        assert_eq!(told.connection_ids, [2, 3]);
        assert_eq!(
            [value("costSeconds"), value("closedByServer"), value("notClosed")],
            [2.0, 1.0, 1.0].map(Into::into)
        );
        // From the last packet to the SYN.
        assert_eq!(
            [value("sinceLeastSeconds"), value("sinceMostSeconds")],
            [19.0, 30.0].map(Into::into)
        );
    }
}
