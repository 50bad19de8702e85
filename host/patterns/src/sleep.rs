//! Applications that stop while their TCP goes on.
//!
//! The application of a host shows itself when data of the host begins. A silence is a time without; what opens
//! connections may go on in it. It is a sleep when it cannot be chance at the rate at which the host sends otherwise, when
//! at least two connections waited for the host all the time, and when the host's TCP was heard in it: ACKs, SYN-ACKs,
//! repeats. A link or a capture that stops takes these away, too; so where TCP was seldom heard and nothing was lost, a link
//! that holds packets back is as likely. Who wakes has work for several connections at once; a
//! silence between two pieces of work ends with one.
//!
//! Memory: 32 hosts, 600 kB each at most (550 s; longer times in wider slots).

#[cfg(test)]
mod fixtures;
mod naps;
mod sleeper;
mod together;
mod told;
mod track;

use std::ops::Range;

use weir_analysis::{Acknowledged, Class, DataBlock, Ends, Opened, TransactionKind, Verdict};
use weir_messages::v1::Finding;

use self::naps::common;
use self::sleeper::{BY_CHANCE, Host, LEAST};
use self::together::{silent_clients, sleepers};
use self::told::told;
use self::track::{LOST, SHORTEST, TCP, THINKING, TWO_WAITING, Track, WAITING};
use crate::backlog::Transaction;
use crate::detector::Detector;
use crate::hosts::Hosts;
use crate::names::Address;
use crate::routes::Route;
use crate::timeline::Timeline;

/// Share of the sleeps of one host in which another slept, from which on they sleep together: by chance it is about
/// the share of time that they sleep.
const TOGETHER: f64 = 0.3;

/// Sleeps of all hosts.
#[derive(Debug, Default)]
pub(crate) struct ApplicationSleep {
    hosts: Hosts<Track>,
}

impl ApplicationSleep {
    /// A connection waited for a host of its route, in a layer.
    fn waited(&mut self, waiting: usize, route: &mut Route, side: usize, from: u64, ns: u64) {
        let Some(track) = self.hosts.at(route, side) else {
            return;
        };
        let count = if waiting == WAITING {
            &mut track.asked
        } else {
            &mut track.asks
        };
        *count += 1;
        if ns >= SHORTEST {
            track.moments.fill(waiting, from, from.saturating_add(ns));
        }
    }

    fn heard(&mut self, route: &mut Route, side: usize, time: u64) {
        if let Some(track) = self.hosts.at(route, side) {
            track.moments.set(TCP, time);
        }
    }

    fn all(&self) -> impl Iterator<Item = Host<'_>> {
        let hosts = self.hosts.iter().enumerate();
        hosts.map(|(number, (address, track))| Host { number, address, track })
    }

    /// Times (TAI ns) in which this host, or one that it asks, began nothing although somebody waited, not by chance:
    /// what was under way then is answered late.
    pub fn stops(&self, host: Address) -> Vec<Range<u64>> {
        let own = self.all().find(|other| other.address == host);
        let involved = self
            .all()
            .filter(|other| other.address == host || own.is_some_and(|own| own.asks(*other)));
        let silences = involved.flat_map(|Host { track, .. }| {
            let mut silences = track.silences(TWO_WAITING);
            silences.retain(|silence| silence.chance <= BY_CHANCE);
            silences.into_iter().map(|silence| track.nap(&silence))
        });
        silences.map(|nap| nap.from..nap.to).collect()
    }
}

impl Detector for ApplicationSleep {
    fn opened(&mut self, opened: &Opened, route: &mut Route) {
        if let Some(track) = self.hosts.at(route, 0) {
            track.opened(opened.time);
        }
    }

    #[inline]
    fn block(&mut self, block: &DataBlock, route: &mut Route) {
        if let Some(track) = self.hosts.at(route, usize::from(block.from_server)) {
            track.began(block.id, block.first);
        }
    }

    #[inline]
    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let facts = transaction.facts;
        let asked = facts.request_time.saturating_add(facts.request);
        if facts.kind == TransactionKind::Setup {
            if let (Some(client), Some(server)) = (self.hosts.number(route, 0), self.hosts.number(route, 1)) {
                self.hosts.facts(client).servers |= 1 << server;
            }
            if let Some(answer) = facts.server {
                self.heard(route, 1, asked.saturating_add(answer));
            }
            return;
        }
        if let Some(ns) = facts.client {
            self.waited(THINKING, route, 0, facts.request_time.saturating_sub(ns), ns);
        }
        if let Some(ns) = facts.server {
            self.waited(WAITING, route, 1, asked, ns);
        }
    }

    #[inline]
    fn acknowledged(&mut self, ack: &Acknowledged, route: &mut Route) {
        if let Some(track) = self.hosts.at(route, usize::from(ack.by_server)) {
            track.moments.set(TCP, ack.time);
            track.trip = if track.trip == 0 {
                ack.rtt
            } else {
                track.trip.min(ack.rtt)
            };
        }
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends, route: &mut Route) {
        if verdict.class == Class::Retransmission {
            self.heard(route, usize::from(verdict.from_server), verdict.time);
        }
        if matches!(verdict.class, Class::Retransmission | Class::Lost | Class::Missed) {
            for side in 0..2 {
                if let Some(track) = self.hosts.at(route, side) {
                    track.moments.set(LOST, verdict.lost_at);
                }
            }
        }
    }

    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
        let hosts: Vec<Host> = self.all().collect();
        let mut rest = sleepers(&hosts);
        while !rest.is_empty() {
            let first = rest.remove(0);
            let (with, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|other| {
                let shared = common(&first.naps, &other.naps).len();
                shared >= LEAST && shared as f64 >= TOGETHER * other.naps.len() as f64
            });
            rest = others;
            let waiting = silent_clients(&hosts, &first, &with);
            out.push(told(&first, &with, &waiting, timeline));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use weir_analysis::address;
    use weir_record::FlowId;

    /// A route on which a host is the client.
    fn of(client: [u8; 16]) -> Route {
        let ends = Ends {
            client,
            ..Ends::default()
        };
        Route::new(&ends, 0)
    }

    /// A server sleeps 0.5 s every 5 s. Its client begins nothing in those times and wakes behind it, or goes on a while.
    #[test]
    fn a_client_that_falls_silent_with_its_server_is_left_open() {
        const MS: u64 = 1_000_000;
        let (client, server) = ([1; 16], [2; 16]);
        for goes_on in [false, true] {
            let mut sleep = ApplicationSleep::default();
            let mut random = Random::new(7);
            let place =
                |hosts: &mut Hosts<Track>, host| hosts.number(&mut of(host), 0).unwrap_or_else(|| panic!("no place"));
            let (server_at, client_at) = (place(&mut sleep.hosts, server), place(&mut sleep.hosts, client));
            sleep.hosts.facts(client_at).servers = 1 << server_at;
            for ms in 1_000..61_000u64 {
                for (host, at) in [(client, client_at), (server, server_at)] {
                    sleep.waited(WAITING, &mut of(host), 0, ms * MS, 60 * MS);
                    let track = sleep.hosts.facts(at);
                    track.moments.fill(TWO_WAITING, ms * MS, (ms + 60) * MS);
                    track.trip = MS;
                    let wakes = if host == client { 510 } else { 500 };
                    let is_awake = ms % 5_000 >= wakes || host == client && goes_on && ms % 5_000 < 60;
                    if is_awake && random.below(5) < 2 {
                        track.began(FlowId(ms), ms * MS);
                    }
                }
            }
            let mut found = Vec::new();
            sleep.findings(&Timeline::default(), &mut found);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].who, address(server));
            let is_open = |line: &String| line.starts_with(&address(client)) && line.ends_with("is not known");
            assert_eq!(found[0].evidence.iter().any(is_open), !goes_on, "{found:?}");
        }
    }

    /// A client sleeps 0.9 s every 5 s. Its server answers for 0.1 s what it was asked before, then some wait for what the
    /// client holds; or it sleeps as well.
    #[test]
    fn a_server_that_goes_on_for_a_while_does_not_sleep_with_its_client() {
        const MS: u64 = 1_000_000;
        let (client, server) = ([1; 16], [2; 16]);
        for (goes_on, who) in [
            (100, address(client)),
            (0, format!("{}, {}", address(client), address(server))),
        ] {
            let mut sleep = ApplicationSleep::default();
            let mut random = Random::new(11);
            for ms in 1_000..61_000u64 {
                for (host, from, to) in [(client, 0, 900), (server, goes_on, 912)] {
                    let at = sleep
                        .hosts
                        .number(&mut of(host), 0)
                        .unwrap_or_else(|| panic!("no place"));
                    let track = sleep.hosts.facts(at);
                    track.moments.fill(WAITING, ms * MS, (ms + 60) * MS);
                    track.moments.fill(TWO_WAITING, ms * MS, (ms + 60) * MS);
                    track.trip = MS;
                    if !(from..to).contains(&(ms % 5_000)) && random.below(5) < 2 {
                        track.began(FlowId(ms), ms * MS);
                    }
                }
            }
            let mut found = Vec::new();
            sleep.findings(&Timeline::default(), &mut found);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].who, who, "it goes on for {goes_on} ms");
        }
    }

    /// What is found of one host that wakes to work for several connections, given what it begins else.
    fn found_of(mut begins: impl FnMut(&mut Random, u64) -> bool, length: u64, opens_every: u64) -> Vec<Finding> {
        const MS: u64 = 1_000_000;
        let host = [1; 16];
        let ends = Ends {
            client: host,
            server: [2; 16],
            client_port: 1,
            server_port: 2,
        };
        let mut sleep = ApplicationSleep::default();
        let mut random = Random::new(3);
        for ms in 1_000..101_000u64 {
            let Some(track) = sleep.hosts.at(&mut of(host), 0) else {
                panic!("no place")
            };
            for layer in [WAITING, TWO_WAITING] {
                track.moments.set(layer, ms * MS);
            }
            let phase = ms % 5_000;
            if phase == length {
                track.began(FlowId(0), ms * MS);
                track.began(FlowId(1), ms * MS);
            } else if phase > length && begins(&mut random, ms) {
                track.began(FlowId(random.next()), ms * MS);
            }
            if ms % opens_every == 0 {
                let opened = Opened {
                    id: FlowId(ms),
                    time: ms * MS,
                    ends,
                    is_syn: true,
                };
                sleep.opened(&opened, &mut Route::new(&ends, 0));
            }
        }
        let mut found = Vec::new();
        sleep.findings(&Timeline::default(), &mut found);
        found
    }

    #[test]
    fn connections_opened_do_not_end_a_sleep() {
        let found = found_of(|random, _| random.below(5) < 2, 900, 150);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].title.contains("for 0.90 s every 5.0 s"), "{found:?}");
        assert!(
            found[0]
                .evidence
                .iter()
                .any(|line| line.starts_with("in 20 of them connections were opened"))
        );
    }

    /// A host that is not busy: silences as long would come by chance, but not such as end with work for several.
    #[test]
    fn short_sleeps_show_by_how_they_end() {
        let found = found_of(|random, _| random.below(100) < 9, 120, 1_000_000);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].title.ends_with("for 0.12 s every 5.0 s"), "{found:?}");
        // How long a host that begins something every 11 ms had been silent before is not known.
        let is_shortest = |line: &String| line.contains("so the shortest is told");
        assert!(found[0].evidence.iter().any(is_shortest), "{found:?}");
    }

    /// Between its sleeps a host works in steps, with silences of all lengths; each ends with one piece of work.
    #[test]
    fn work_in_steps_hides_no_sleep() {
        let mut ends = 0;
        let steps = |random: &mut Random, ms: u64| {
            if ms >= ends + 150 && (1_100..4_000).contains(&(ms % 5_000)) {
                ends = ms + 100 + random.below(750) as u64;
            }
            ms == ends || ms > ends + 5 && random.below(5) == 0
        };
        let found = found_of(steps, 830, 1_000_000);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].title.contains("for 0.82 s every 5.0 s"), "{found:?}");
    }

    /// A client sleeps with its server. Where it has one thing to do it begins before its server can have asked for more;
    /// else both wake to much work.
    #[test]
    fn a_client_that_wakes_to_little_work_sleeps_with_its_server() {
        const MS: u64 = 1_000_000;
        let (client, server) = ([1; 16], [2; 16]);
        let mut sleep = ApplicationSleep::default();
        let mut random = Random::new(7);
        let place =
            |hosts: &mut Hosts<Track>, host| hosts.number(&mut of(host), 0).unwrap_or_else(|| panic!("no place"));
        let (server_at, client_at) = (place(&mut sleep.hosts, server), place(&mut sleep.hosts, client));
        sleep.hosts.facts(client_at).servers = 1 << server_at;
        for ms in 1_000..131_000u64 {
            let phase = ms % 5_000;
            let has_little = ms / 5_000 % 5 < 3;
            for (host, at) in [(client, client_at), (server, server_at)] {
                let track = sleep.hosts.facts(at);
                track.trip = MS;
                for layer in [WAITING, TWO_WAITING] {
                    track.moments.set(layer, ms * MS);
                }
                let wakes = match (host == client, has_little) {
                    (true, true) => 698,
                    (true, false) => 702,
                    (false, _) => 700,
                };
                if phase == wakes {
                    track.began(FlowId(0), ms * MS);
                    if host == server || !has_little {
                        track.began(FlowId(1), ms * MS);
                    }
                } else if phase > wakes + 5 && random.below(5) < 2 {
                    track.began(FlowId(random.next()), ms * MS);
                }
            }
        }
        let mut found = Vec::new();
        sleep.findings(&Timeline::default(), &mut found);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].who, format!("{}, {}", address(client), address(server)));
    }
}
