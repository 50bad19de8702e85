//! Who serves: load over time of each service (address and port), and whose clients it has.

use std::ops::{AddAssign, Range};

use hashbrown::HashMap;
use weir_analysis::{Ended, Finished, Opened, Outcome, TransactionKind, Verdict, address};
use weir_messages::v1;

use crate::bins::Bins;
use crate::names::service;
use crate::routes::{self, Route, ServiceKey};
use crate::steps::Steps;
use crate::timeline::{Loss, loss};
use crate::times::Times;

/// Services at most; of more, those with the fewest connections make room.
const MOST: usize = 64;
/// A service with as many connections stays.
const STAYS: u64 = 8;
/// ns; 2¹³ of them are 13 minutes. 136 bytes each.
const WIDTH: u64 = 100_000_000;
const BINS: usize = 1 << 13;
/// Of the response times, ns; 2⁹ of them are 8 minutes.
const TIMES_WIDTH: u64 = 1_000_000_000;
const TIMES_BINS: usize = 1 << 9;
/// Client hosts of a service that are told apart; the first ones.
const CLIENTS: usize = 16;

/// Load of a service in one slice of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Connections, from the first packet to the last, or to the end of the input where they were open then.
    pub connections: Steps,
    /// Connections that their clients hold: those that were set up, and those that never were until their next SYN was
    /// due.
    pub held: Steps,
    /// Those of them that are being set up.
    pub setups: Steps,
    /// Connections after their setup, to the last packet; without those that are stuck.
    pub visits: Steps,
    /// Requests in progress, from the first packet of the request to the last of the response.
    pub progress: Steps,
    /// Requests that wait, from their last packet to the first of the response.
    pub waiting: Steps,
    /// Time that the visits stay that begin here, ns.
    pub visiting: u64,
    /// Time that the requests stay that begin here, ns.
    pub staying: u64,
    /// Payload of the requests that begin here.
    pub asked: u64,
    /// Connections opened here.
    pub opened: u32,
    /// Segments of either direction lost.
    pub lost: u32,
    /// SYNs and SYN-ACKs that came again.
    pub syn_repeats: u32,
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.held += other.held;
        self.setups += other.setups;
        self.visits += other.visits;
        self.progress += other.progress;
        self.waiting += other.waiting;
        self.visiting += other.visiting;
        self.staying += other.staying;
        self.asked += other.asked;
        self.opened += other.opened;
        self.lost += other.lost;
        self.syn_repeats += other.syn_repeats;
    }
}

/// Setup and response times in one slice.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// First SYN to the end of the setup, where it succeeded.
    pub setup: Times,
    /// Last packet of the request to the last of the response.
    pub response: Times,
}

impl AddAssign for Answers {
    fn add_assign(&mut self, other: Self) {
        self.setup += other.setup;
        self.response += other.response;
    }
}

/// A visit is stuck if it takes so many times as long as the others before it, if these are so many: a request that its
/// server did not get, a client that does not close. It is no work of the service.
const STUCK: u64 = 20;
const USUAL: u64 = 100;

/// Where something serves.
pub type Key = ([u8; 16], u16);

/// A service.
#[derive(Clone, Debug)]
pub struct Service {
    /// Address and port.
    pub key: Key,
    /// Its load.
    pub load: Bins<Load>,
    /// How long it took.
    pub answers: Bins<Answers>,
    /// Connections opened.
    pub opened: u64,
    /// Connections with an answered request, and the sum and the sum of squares of their answered requests.
    pub answered: [u64; 3],
    /// Visits that are over, and their time, ns.
    visits: [u64; 2],
    /// Connections of the first client hosts.
    clients: Vec<([u8; 16], u64)>,
    /// TAI ns.
    since: u64,
}

impl Service {
    fn new(key: Key, since: u64) -> Self {
        Self {
            key,
            load: Bins::bounded(WIDTH, BINS),
            answers: Bins::bounded(TIMES_WIDTH, TIMES_BINS),
            opened: 0,
            answered: [0; 3],
            visits: [0; 2],
            clients: Vec::new(),
            since,
        }
    }

    /// Another service comes in its place, with its memory.
    fn renew(&mut self, key: Key, since: u64) {
        let Self {
            mut load,
            mut answers,
            mut clients,
            ..
        } = std::mem::replace(self, Self::new(key, since));
        load.clear(WIDTH);
        answers.clear(TIMES_WIDTH);
        clients.clear();
        (self.load, self.answers, self.clients) = (load, answers, clients);
    }

    /// "address:port".
    pub fn name(&self) -> String {
        service(self.key.0, self.key.1)
    }

    /// The same as a message.
    pub fn endpoint(&self) -> v1::Endpoint {
        v1::Endpoint {
            address: address(self.key.0),
            port: self.key.1.into(),
        }
    }

    /// Half of its connections or more come from this host.
    pub fn is_behind(&self, host: &[u8; 16]) -> bool {
        self.of(host) * 2 >= self.opened
    }

    /// Enough of its connections come from this host to slow that down: a twentieth.
    pub fn is_asked_by(&self, host: &[u8; 16]) -> bool {
        self.of(host) * 20 >= self.opened
    }

    /// Connections of a client host.
    fn of(&self, host: &[u8; 16]) -> u64 {
        let of = self.clients.iter().find(|(client, _)| client == host);
        of.map_or(0, |&(_, count)| count)
    }

    /// Whether a visit of so many ns waited for something else than the service; counts it if not.
    fn is_stuck(&mut self, ns: u64) -> bool {
        let [count, sum] = &mut self.visits;
        let is_stuck = *count >= USUAL && ns > STUCK * (*sum / *count);
        if !is_stuck {
            *count += 1;
            *sum += ns;
        }
        is_stuck
    }

    fn client(&mut self, host: [u8; 16]) {
        if let Some((_, count)) = self.clients.iter_mut().find(|(client, _)| *client == host) {
            *count += 1;
        } else if self.clients.len() < CLIENTS {
            self.clients.push((host, 1));
        }
    }
}

/// All services. Memory: at most 64 of 1.1 MB and their times (at most 2 kB for each histogram; seldom more than 50 kB).
#[derive(Clone, Debug, Default)]
pub struct Services {
    places: HashMap<ServiceKey, usize, foldhash::fast::FixedState>,
    list: Vec<Service>,
    /// The first of those with the fewest connections, when it was looked for last.
    least: usize,
    /// All places are taken by services that stay.
    is_settled: bool,
    /// Connections of services that found no room.
    left_out: u64,
}

impl Services {
    /// Those that there is room for, in the order in which they were seen first.
    pub fn iter(&self) -> impl Iterator<Item = &Service> + Clone {
        self.list.iter()
    }

    /// Connections of services that found no room.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Services that are asked by this service's host.
    pub fn behind<'a>(&'a self, front: &Service) -> impl Iterator<Item = &'a Service> {
        let (host, port) = front.key;
        self.list
            .iter()
            .filter(move |service| service.key != (host, port) && service.is_behind(&host))
    }

    /// Services that this service's host asks among others.
    pub fn asked_by<'a>(&'a self, front: &Service) -> impl Iterator<Item = &'a Service> {
        let (host, port) = front.key;
        self.list
            .iter()
            .filter(move |service| service.key != (host, port) && service.is_asked_by(&host))
    }

    /// Most of its clients are not servers themselves, as far as the capture shows.
    pub fn is_outer(&self, service: &Service) -> bool {
        let serves = |host: &[u8; 16]| {
            self.list
                .iter()
                .any(|other| other.key != service.key && other.key.0 == *host)
        };
        let of_servers = service.clients.iter().filter(|(host, _)| serves(host));
        of_servers.map(|(_, count)| count).sum::<u64>() * 2 < service.opened
    }

    #[inline]
    fn find(&mut self, route: &mut Route) -> Option<&mut Service> {
        let is_it = |service: &Service| service.key == (route.server, route.port);
        let is_known = match self.list.get(usize::from(route.place)) {
            Some(service) => is_it(service),
            None => self.is_settled && usize::from(route.place) == MOST,
        };
        if !is_known {
            self.look_up(route);
        }
        self.list.get_mut(usize::from(route.place))
    }

    #[inline(never)]
    fn look_up(&self, route: &mut Route) {
        let number = self.places.get(&routes::key(route.server, route.port));
        route.place = number.copied().unwrap_or(MOST) as u16;
    }

    /// Of a connection that began at `begun`; none if the service was not here then.
    fn known(&mut self, route: &mut Route, begun: u64, start: u64) -> Option<&mut Service> {
        self.find(route).filter(|service| begun.max(start) >= service.since)
    }

    /// A service that was not here yet gets a place, if there is one.
    fn take_place(&mut self, route: &mut Route, time: u64) -> Option<&mut Service> {
        if self.is_settled {
            self.left_out += 1;
            return None;
        }
        let key = (route.server, route.port);
        let number = if self.list.len() < MOST {
            self.list.push(Service::new(key, time));
            self.list.len() - 1
        } else {
            // The one that came last may still have its first connection only: none has fewer.
            if self.list[self.least].opened > 1 {
                let all = self.list.iter().enumerate();
                self.least = all.min_by_key(|(_, s)| s.opened).map_or(0, |(number, _)| number);
            }
            let number = self.least;
            let least = &self.list[number];
            if least.opened >= STAYS {
                self.is_settled = true;
                self.left_out += 1;
                return None;
            }
            self.left_out += least.opened;
            self.places.remove(&routes::key(least.key.0, least.key.1));
            self.list[number].renew(key, time);
            number
        };
        self.places.insert(routes::key(route.server, route.port), number);
        route.place = number as u16;
        self.list.get_mut(number)
    }

    /// The service gets a place, if there is one and it has none yet.
    fn find_or_take_place(&mut self, route: &mut Route, time: u64) -> Option<&mut Service> {
        if self.find(route).is_none() {
            self.take_place(route, time);
        }
        self.list.get_mut(usize::from(route.place))
    }

    pub(crate) fn opened(&mut self, opened: &Opened, route: &mut Route, start: u64) {
        let time = opened.time.max(start);
        let Some(service) = self.find_or_take_place(route, time) else {
            return;
        };
        service.opened += 1;
        service.client(route.client);
        let load = service.load.at(time);
        load.opened += 1;
        load.connections.begin(time);
    }

    /// `heard`: its opening was told.
    pub(crate) fn connection(&mut self, connection: &Ended, route: &mut Route, start: u64, heard: bool) {
        let ((first, last), until) = (connection.span, connection.until);
        if until < start {
            return;
        }
        if !heard {
            // What was open when the view began is told of when it ends.
            self.find_or_take_place(route, start);
        }
        let Some(service) = self.known(route, first, start) else {
            return;
        };
        if !heard {
            service.opened += 1;
            service.client(route.client);
            service.load.at(start).connections.begin(start);
        }
        service.load.at(until).connections.end(until);
        let set_up = first.saturating_add(connection.setup_ns.unwrap_or(0));
        let held = match connection.setup {
            Some(Outcome::Ok | Outcome::Retransmitted) => {
                let begun = set_up.clamp(start, until);
                if last >= begun && !service.is_stuck(last - begun) {
                    let load = service.load.at(begun);
                    load.visits.begin(begun);
                    load.visiting += last - begun;
                    service.load.at(last).visits.end(last);
                }
                Some((begun, until))
            }
            // When the next SYN was due.
            Some(Outcome::Ignored) => Some((set_up.max(last), set_up.max(last))),
            _ => None,
        };
        if let Some((set_up, end)) = held {
            let begun = first.max(start);
            let load = service.load.at(begun);
            load.held.begin(begun);
            load.setups.begin(begun);
            service.load.at(set_up).setups.end(set_up);
            service.load.at(end).held.end(end);
        }
        let answered = u64::from(connection.answered);
        if answered > 0 {
            let [count, sum, squares] = &mut service.answered;
            *count += 1;
            *sum += answered;
            *squares += answered * answered;
        }
    }

    pub(crate) fn transaction(&mut self, facts: &Finished, stay: &Range<u64>, route: &mut Route, start: u64) {
        let Some(service) = self.known(route, stay.start, start).filter(|_| stay.end >= start) else {
            return;
        };
        let answers = service.answers.at(stay.end);
        if facts.kind == TransactionKind::Setup {
            answers.setup.add(stay.end - stay.start);
            return;
        }
        answers.response.add(facts.end.unwrap_or(0));
        let begun = stay.start.max(start);
        let load = service.load.at(begun);
        load.progress.begin(begun);
        load.staying += stay.end - begun;
        load.asked += facts.request_bytes;
        service.load.at(stay.end).progress.end(stay.end);
        let asked = facts.request_time.saturating_add(facts.request).max(start);
        if facts.response_time > asked {
            service.load.at(asked).waiting.begin(asked);
            service.load.at(facts.response_time).waiting.end(facts.response_time);
        }
    }

    pub(crate) fn segment(&mut self, verdict: &Verdict, route: &mut Route, start: u64) {
        if verdict.lost_at < start {
            return;
        }
        if let Some(loss) = loss(verdict)
            && let Some(service) = self.find(route)
        {
            let load = service.load.at(verdict.lost_at);
            match loss {
                Loss::Setup => load.syn_repeats += 1,
                Loss::Data(segments) => load.lost = load.lost.saturating_add(segments),
                Loss::Capture(_) | Loss::Doubtful => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_analysis::Ends;
    use weir_record::FlowId;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_visit_that_is_stuck_is_no_work() {
        const MS: u64 = 1_000_000;
        let mut service = Service::new(([1; 16], 80), 0);
        // The first may all be long; later, load makes them longer.
        assert!(!service.is_stuck(60_000 * MS));
        let mut service = Service {
            visits: [0; 2],
            ..service
        };
        assert!((0..2_000).all(|i| !service.is_stuck((500 + i) * MS)));
        assert!(service.is_stuck(60_000 * MS));
        assert!(!service.is_stuck(6_000 * MS));
    }

    #[test]
    fn who_takes_a_place_has_nothing_of_the_one_before() {
        let mut services = Services::default();
        let mut open = |server: usize, time: u64| {
            let ends = Ends {
                server: [server as u8; 16],
                ..Ends::default()
            };
            let opened = Opened {
                id: FlowId(1),
                time,
                ends,
                is_syn: true,
            };
            services.opened(&opened, &mut Route::new(&ends, 0), 0);
        };
        (0..MOST).for_each(|server| open(server, S));
        open(0, 2 * S);
        open(MOST, 9 * S);
        assert_eq!((services.iter().count(), services.left_out()), (MOST, 1));
        let newest = services.iter().find(|service| service.key.0[0] as usize == MOST);
        let newest = newest.expect("there is room for it");
        assert_eq!((newest.opened, newest.clients.len()), (1, 1));
        assert_eq!((newest.load.start(), newest.load.len()), (9 * S, 1));
        assert!(newest.answers.is_empty());
    }
}
