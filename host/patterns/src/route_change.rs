//! Another route: the TTL of a host's packets changes for good, and the round trip with it. Memory: 1,024 hosts with three
//! stretches of 32 round trips at most, 100 to 600 bytes each.

use weir_analysis::{Ended, Group, Hops, address, clock, finding, seconds};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::{Address, about};
use crate::rank::median;
use crate::routes::Route;
use crate::table::Table;
use crate::timeline::Timeline;

/// Hosts that are watched; one with fewer connections makes room for another.
const HOSTS: usize = 1024;
const FEW: u32 = 16;
/// Connections in a row with one TTL that confirm it. Behind one address there may be hosts or paths with different TTLs;
/// two that alternate at random come eight times in a row once in 256 changes, and the strays between tell them.
const CONFIRM: u32 = 8;
/// Strays among the connections of a stretch up to which it counts as one route: 1 in so many.
const STRAYS: u32 = 10;
/// Round trips kept of a stretch.
const TRIPS: usize = 32;
/// Round trips of each stretch from which on their medians are compared, and the step that is told: the same share as
/// of the jitter of a busy path.
const COMPARABLE: usize = 4;
const STEP: f64 = 0.05;
/// Findings at most; the evidence of the last tells how many hosts there are beside.
const MOST: usize = 8;

/// Connections one after another whose packets had one TTL.
#[derive(Debug, Default)]
struct Stretch {
    ttl: u8,
    count: u32,
    strays: u32,
    first: u64,
    last: u64,
    /// The newest round trips, s.
    trips: Vec<f32>,
    next: usize,
}

impl Stretch {
    fn new(ttl: u8, time: u64) -> Self {
        Self {
            ttl,
            first: time,
            ..Self::default()
        }
    }

    fn seen(&mut self, time: u64) {
        self.count += 1;
        self.last = time;
    }

    fn trip(&mut self, ns: u64) {
        let trip = seconds(ns) as f32;
        if self.trips.len() < TRIPS {
            self.trips.push(trip);
        } else {
            self.trips[self.next % TRIPS] = trip;
        }
        self.next += 1;
    }

    fn median(&self) -> Option<f64> {
        let trips: Vec<f64> = self.trips.iter().map(|trip| f64::from(*trip)).collect();
        median(&trips).filter(|_| trips.len() >= COMPARABLE)
    }

    const fn is_one_route(&self) -> bool {
        self.count >= CONFIRM && self.strays * STRAYS <= self.count
    }
}

#[derive(Debug)]
struct Host {
    current: Stretch,
    /// Another TTL, not confirmed yet.
    candidate: Option<Box<Stretch>>,
    /// What was before the newest change, and how many changes there were.
    before: Option<Box<Before>>,
    changes: u32,
}

/// One route before the newest change, and the connections since.
#[derive(Debug)]
struct Before {
    stretch: Stretch,
    group: Group,
}

impl Host {
    fn new(hops: &Hops) -> Self {
        Self {
            current: Stretch::new(hops.ttl, hops.time),
            candidate: None,
            before: None,
            changes: 0,
        }
    }

    fn seen(&mut self, hops: &Hops) {
        if hops.ttl == self.current.ttl {
            if let Some(candidate) = self.candidate.take() {
                self.current.strays += candidate.count;
            }
            self.current.seen(hops.time);
        } else {
            let candidate = match self.candidate.take() {
                Some(candidate) if candidate.ttl == hops.ttl => candidate,
                other => {
                    self.current.strays += other.map_or(0, |other| other.count);
                    Box::new(Stretch::new(hops.ttl, hops.time))
                }
            };
            let candidate = self.candidate.insert(candidate);
            candidate.seen(hops.time);
            if candidate.count >= CONFIRM
                && let Some(confirmed) = self.candidate.take()
            {
                let old = std::mem::replace(&mut self.current, *confirmed);
                self.changes += u32::from(old.is_one_route());
                self.before = old.is_one_route().then(|| {
                    Box::new(Before {
                        stretch: old,
                        group: Group::default(),
                    })
                });
            }
        }
        if let Some(before) = &mut self.before {
            before.group.include(hops.id, self.current.first, hops.time);
        }
    }

    /// A connection that began at `time` had this round trip between the tap and the host.
    fn trip(&mut self, time: u64, ns: u64) {
        match (&mut self.candidate, &mut self.before) {
            (Some(candidate), _) if time >= candidate.first => candidate.trip(ns),
            (_, Some(before)) if time <= before.stretch.last => before.stretch.trip(ns),
            _ if time >= self.current.first => self.current.trip(ns),
            _ => {}
        }
    }

    fn change(&self) -> Option<&Before> {
        self.before.as_deref().filter(|_| self.current.is_one_route())
    }
}

/// The TTLs of each host's packets.
#[derive(Debug, Default)]
pub(crate) struct RouteChange {
    /// By address as one number, which is hashed and compared at once.
    hosts: Table<u128, Host, HOSTS>,
}

const fn number(address: Address) -> u128 {
    u128::from_be_bytes(address)
}

impl Detector for RouteChange {
    fn hops(&mut self, hops: &Hops, route: &mut Route) {
        let host = number(route.host(usize::from(hops.by_server)));
        let worth = |host: &Host| host.current.count >= FEW;
        if let Some(host) = self.hosts.place(host, || Host::new(hops), worth) {
            host.seen(hops);
        }
    }

    fn connection(&mut self, connection: &Ended, route: &mut Route) {
        for side in 0..2 {
            // Data of this side goes to the other, whose ACKs come back.
            if let Some(ns) = connection.sent[side].rtt_min
                && let Some(host) = self.hosts.get(&number(route.host(1 - side)))
            {
                host.trip(connection.span.0, ns);
            }
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        let mut changed: Vec<_> = self
            .hosts
            .sorted()
            .into_iter()
            .filter_map(|(address, host)| Some((address, host, host.change()?)))
            .collect();
        changed.sort_by_key(|(_, host, _)| std::cmp::Reverse(host.current.count));
        let more = changed.len().saturating_sub(MOST);
        for (place, (host, state, before)) in changed.into_iter().take(MOST).enumerate() {
            let left_out = if place + 1 == MOST { more } else { 0 };
            out.push(route_change(&address(host.to_be_bytes()), state, before, left_out));
        }
    }
}

fn route_change(name: &str, state: &Host, before: &Before, left_out: usize) -> Finding {
    let (now, group, before) = (&state.current, &before.group, &before.stretch);
    let hops = i32::from(before.ttl) - i32::from(now.ttl);
    let direction = if hops > 0 { "more" } else { "fewer" };
    let mut evidence = vec![format!(
        "its packets had a TTL of {} at the tap in {} connections until {}, and {} in {} from {} on: {} hops {direction}",
        before.ttl,
        before.count,
        clock(before.last),
        now.ttl,
        now.count,
        clock(now.first),
        hops.abs()
    )];
    let mut values = vec![("ttlBefore", f64::from(before.ttl)), ("ttlAfter", f64::from(now.ttl))];
    let trips = before.median().zip(now.median());
    let mut is_step = false;
    if let Some((old, new)) = trips {
        is_step = (new - old).abs() > STEP * old;
        values.extend([("rttBeforeSeconds", old), ("rttAfterSeconds", new)]);
        let times = format!(
            "between the tap and it were {:.3} ms before and {:.3} ms after (medians)",
            old * 1e3,
            new * 1e3
        );
        evidence.push(if is_step {
            let cost = (new - old) * f64::from(now.count);
            if cost > 0.0 {
                values.push(("costSeconds", cost));
            }
            format!(
                "round trips {times}: {:+.3} ms each; {} connections since then, with a round trip each at least, make {cost:+.3} s",
                (new - old) * 1e3,
                now.count
            )
        } else {
            format!("round trips {times}: the change costs no time")
        });
    } else {
        evidence.push("too few round trips on one of the two routes to compare their times".to_owned());
    }
    if state.changes > 1 {
        evidence.push(format!("{} such changes in all; this is the last", state.changes));
    }
    if left_out > 0 {
        evidence.push(format!("{left_out} more hosts changed their TTL"));
    }
    evidence.push(if hops.abs() > 20 {
        "it may also be: another machine or another operating system at that address (a failover), whose packets start with another TTL".to_owned()
    } else {
        "it may also be: another machine at that address, nearer or farther by so many hops (a failover)".to_owned()
    });
    evidence.push("next: traceroute from both ends; routing logs at that time".to_owned());
    let by = trips.filter(|_| is_step).map_or_else(String::new, |(old, new)| {
        format!(", {:+.1} ms a round trip", (new - old) * 1e3)
    });
    let found = finding(
        "ROUTE_CHANGE",
        "WARNING",
        if is_step { 0.95 } else { 0.8 },
        format!(
            "The route from {name} changed at {}: {} hops {direction}{by}",
            clock(now.first),
            hops.abs()
        ),
        evidence,
        group,
        &values,
    );
    about(name.to_owned(), found)
}
