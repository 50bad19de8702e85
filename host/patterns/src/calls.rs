//! Which request of a front tier each call to the tier behind was made for, where timing alone decides.
//!
//! A call can be made for a request only if it begins after the request's first packet and ends before the last packet
//! of its response. Where one request fits, the call is its; where none fits, something else made it; where several
//! fit, time alone does not decide. A front tier that makes its calls one after the other has no two under way for one
//! request. If that holds of the calls that are decided, a call cannot belong to a request that has another under way,
//! which decides more, until nothing changes. What is left is ambiguous, and is told as such.
//!
//! Memory: the newest 131,072 setups and transactions (6 MB).

use std::collections::{BTreeMap, HashMap, HashSet};

use weir_analysis::{TransactionKind, seconds, timestamp};
use weir_messages::v1;
use weir_record::FlowId;

use crate::backlog::Transaction;
use crate::capacity::Unit;
use crate::detector::Detector;
use crate::newest::Newest;
use crate::routes::{self, Route, ServiceKey};
use crate::services::Key;
use crate::tiers::pairs;
use crate::timeline::{Timeline, stay};

/// Setups and transactions kept.
const STAYS: usize = 1 << 17;
/// Services told apart.
const SERVICES: usize = 64;
/// Requests that a call may fit for order to be asked; with more it is ambiguous.
const FITTING: usize = 16;
/// Share of the decided calls of a request that may overlap each other where they are made one after the other.
const SIDE_BY_SIDE: f64 = 0.01;
/// Rounds in which order decides more.
const ROUNDS: usize = 32;
/// Requests whose calls are listed: those that took longest.
const LISTED: usize = 20;

/// From the first packet of a request (or SYN) to the last of the response, TAI ns.
#[derive(Clone, Copy, Debug)]
struct Stay {
    start: u64,
    end: u64,
    id: FlowId,
    client: [u8; 16],
    service: u8,
    is_setup: bool,
}

/// A request in front, or a call behind, with what its owner knows it by.
#[derive(Clone, Copy, Debug)]
pub struct Piece<I> {
    /// First packet, ns.
    pub start: u64,
    /// Last packet of the answer, ns.
    pub end: u64,
    /// Its owner's.
    pub id: I,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    stays: Newest<Stay, STAYS>,
    services: HashMap<ServiceKey, u8, foldhash::fast::FixedState>,
}

impl Detector for Calls {
    #[inline]
    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let facts = transaction.facts;
        let Some(stay) = stay(facts) else { return };
        let service = route.call.get_or(|| self.number(routes::key(route.server, route.port)));
        if service == SERVICES {
            return;
        }
        let stay = Stay {
            start: stay.start,
            end: stay.end,
            id: transaction.id,
            client: route.client,
            service: service as u8,
            is_setup: facts.kind == TransactionKind::Setup,
        };
        self.stays.push(stay);
    }

    fn findings(&self, _: &Timeline, _: &mut Vec<v1::Finding>) {}
}

impl Calls {
    /// The number of a service, one of the first; else [`SERVICES`].
    fn number(&mut self, key: ServiceKey) -> usize {
        let next = self.services.len();
        match self.services.get(&key) {
            Some(service) => usize::from(*service),
            None if next < SERVICES => {
                self.services.insert(key, next as u8);
                next
            }
            None => SERVICES,
        }
    }

    /// Add what is decided to the tiers of the summary, which are those of `timeline`.
    pub fn complete(&self, timeline: &Timeline, tiers: &mut [v1::Tier]) {
        for (pair, tier) in pairs(timeline.services()).iter().zip(tiers) {
            let service = |(server, port): Key| self.services.get(&routes::key(server, port));
            let (Some(front), Some(back)) = (service(pair.front.key), service(pair.back.key)) else {
                continue;
            };
            let requests: Vec<Piece<FlowId>> = self
                .stays
                .iter()
                .filter(|stay| stay.service == *front && !stay.is_setup)
                .map(Stay::piece)
                .collect();
            let host = pair.front.key.0;
            let behind = self
                .stays
                .iter()
                .filter(|stay| stay.service == *back && stay.client == host);
            let mut setups = 0.0;
            let calls = match pair.unit() {
                Unit::Request => {
                    let (opened, asked): (Vec<&Stay>, Vec<_>) = behind.partition(|stay| stay.is_setup);
                    setups = opened.into_iter().map(|stay| length(&stay.piece())).sum();
                    asked.into_iter().map(Stay::piece).collect()
                }
                Unit::Visit => visits(behind),
            };
            let decided = decide(requests, calls);
            decided.tell(tier, setups);
        }
    }
}

/// Whether each connection to a service is one call, going by the answered requests of its connections; else each
/// request is one.
pub fn is_connection_a_call(answered: impl Iterator<Item = u32>) -> bool {
    let sums = answered.map(u64::from).filter(|n| *n > 0);
    let sums = sums.fold([0; 3], |[count, sum, squares], n| [count + 1, sum + n, squares + n * n]);
    Unit::of_answered(sums) == Unit::Visit
}

impl Stay {
    const fn piece(&self) -> Piece<FlowId> {
        Piece {
            start: self.start,
            end: self.end,
            id: self.id,
        }
    }
}

/// Connections from their first SYN to the end of their last response: each is one call.
fn visits<'a>(stays: impl Iterator<Item = &'a Stay>) -> Vec<Piece<FlowId>> {
    let mut visits: BTreeMap<FlowId, Piece<FlowId>> = BTreeMap::new();
    for stay in stays {
        let visit = visits.entry(stay.id).or_insert_with(|| stay.piece());
        visit.start = visit.start.min(stay.start);
        visit.end = visit.end.max(stay.end);
    }
    visits.into_values().collect()
}

/// Whose a call is.
#[derive(Clone, Debug, PartialEq)]
pub enum Whose {
    /// That of this request.
    One(usize),
    /// One of these, or of too many to name.
    Several(Vec<usize>),
    /// Something else made it.
    Nobodys,
}

/// Calls with their requests, each by their beginning.
#[derive(Debug)]
pub struct Decided<I> {
    /// In front.
    pub requests: Vec<Piece<I>>,
    /// Behind, with the place of the request.
    pub calls: Vec<(Piece<I>, Whose)>,
    /// Of the calls that are decided, those for which order was needed.
    by_order: u64,
    /// Calls of a request overlap each other.
    side_by_side: bool,
}

/// Whose the calls to a tier are, by their times alone.
pub fn decide<I: Copy + Ord>(mut requests: Vec<Piece<I>>, mut calls: Vec<Piece<I>>) -> Decided<I> {
    requests.sort_unstable_by_key(|request| (request.start, request.id));
    calls.sort_unstable_by_key(|call| (call.start, call.id));
    let mut begun = 0;
    let mut under_way: Vec<usize> = Vec::new();
    let fits = |call: Piece<I>| {
        while requests.get(begun).is_some_and(|request| request.start <= call.start) {
            under_way.push(begun);
            begun += 1;
        }
        under_way.retain(|number| requests[*number].end > call.start);
        let fitting = || {
            under_way
                .iter()
                .copied()
                .filter(|number| requests[*number].end >= call.end)
        };
        let whose = match fitting().take(FITTING + 1).count() {
            0 => Whose::Nobodys,
            1 => fitting().next().map_or(Whose::Nobodys, Whose::One),
            2..=FITTING => Whose::Several(fitting().collect()),
            _ => Whose::Several(Vec::new()),
        };
        (call, whose)
    };
    let mut calls: Vec<(Piece<I>, Whose)> = calls.into_iter().map(fits).collect();
    let by_order = order(&requests, &mut calls);
    Decided {
        requests,
        calls,
        by_order: by_order.unwrap_or(0),
        side_by_side: by_order.is_none(),
    }
}

/// What is decided because a request makes its calls one after the other; returns how many calls, none if it makes them
/// side by side.
fn order<I>(requests: &[Piece<I>], calls: &mut [(Piece<I>, Whose)]) -> Option<u64> {
    // Calls of each request by their beginning, with their end.
    let mut of: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); requests.len()];
    let overlaps = |of: &BTreeMap<u64, u64>, call: &Piece<I>| {
        let before = of.range(..call.end).next_back();
        before.is_some_and(|(_, end)| *end > call.start)
    };
    let (mut decided, mut side_by_side) = (0u64, 0u64);
    for (call, whose) in &*calls {
        if let Whose::One(request) = whose {
            decided += 1;
            side_by_side += u64::from(overlaps(&of[*request], call));
            of[*request].insert(call.start, call.end);
        }
    }
    if side_by_side as f64 > SIDE_BY_SIDE * decided as f64 {
        return None;
    }
    if decided == 0 {
        return Some(0);
    }
    let mut by_order = 0;
    for _ in 0..ROUNDS {
        let before = by_order;
        for (call, whose) in &mut *calls {
            let Whose::Several(fitting) = whose else { continue };
            if fitting.is_empty() {
                continue;
            }
            let mut free = fitting.iter().copied().filter(|request| !overlaps(&of[*request], call));
            if let (Some(request), None) = (free.next(), free.next()) {
                of[request].insert(call.start, call.end);
                *whose = Whose::One(request);
                by_order += 1;
            }
        }
        if by_order == before {
            break;
        }
    }
    Some(by_order)
}

/// ns.
const fn length<I>(piece: &Piece<I>) -> f64 {
    piece.end.saturating_sub(piece.start) as f64
}

/// Time in which one call or more is under way, ns; by their beginning.
fn union<I>(calls: &[&Piece<I>]) -> u64 {
    let (mut sum, mut done) = (0, 0);
    for call in calls {
        sum += call.end.saturating_sub(call.start.max(done));
        done = call.end.max(done);
    }
    sum
}

impl Decided<FlowId> {
    /// Of the time of the requests, the share in which calls for them are under way. Calls overlap as they do for the
    /// requests all of whose calls are decided.
    fn explained(&self, calls_of: &HashMap<usize, Vec<&Piece<FlowId>>>) -> f64 {
        let mut unsure = HashSet::<usize>::new();
        for (_, whose) in &self.calls {
            if let Whose::Several(fitting) = whose {
                unsure.extend(fitting.iter());
            }
        }
        let (mut under_way, mut one_by_one) = (0.0, 0.0);
        for (_, calls) in calls_of.iter().filter(|(request, _)| !unsure.contains(request)) {
            under_way += union(calls) as f64;
            one_by_one += calls.iter().map(|call| length(call)).sum::<f64>();
        }
        let share = if one_by_one > 0.0 { under_way / one_by_one } else { 1.0 };
        self.most_explained(0.0, share)
    }

    /// The same if each call for a request explained this share of its time, and so much time (ns) of setups all of it: what nobody in front
    /// asked for explains nothing, however busy both are at once.
    fn most_explained(&self, setups: f64, share: f64) -> f64 {
        let made = self.calls.iter().filter(|(_, whose)| *whose != Whose::Nobodys);
        let made: f64 = made.map(|(call, _)| length(call)).sum();
        let whole: f64 = self.requests.iter().map(length).sum();
        ((share * made + setups) / whole.max(1.0)).min(1.0)
    }

    /// `setups`: time of the connections' setups, where these are no part of the calls, ns.
    fn tell(&self, tier: &mut v1::Tier, setups: f64) {
        let mut calls_of: HashMap<usize, Vec<&Piece<FlowId>>> = HashMap::new();
        for (call, whose) in &self.calls {
            match whose {
                Whose::One(request) => {
                    tier.calls_decided += 1;
                    tier.decided_seconds += seconds(call.end.saturating_sub(call.start));
                    calls_of.entry(*request).or_default().push(call);
                }
                Whose::Several(_) => tier.calls_ambiguous += 1,
                Whose::Nobodys => {}
            }
        }
        tier.calls_decided_by_order = self.by_order;
        tier.calls_side_by_side = self.side_by_side;
        if self.side_by_side {
            tier.explained_share = self.explained(&calls_of);
        } else if self.calls.iter().any(|(_, whose)| *whose == Whose::Nobodys) {
            tier.explained_share = tier.explained_share.min(self.most_explained(setups, 1.0));
        }
        tier.explained_seconds = tier.explained_share * tier.request_seconds;
        let mut slowest: Vec<usize> = calls_of.keys().copied().collect();
        slowest.sort_unstable_by_key(|number| {
            let request = &self.requests[*number];
            (std::cmp::Reverse(request.end.saturating_sub(request.start)), *number)
        });
        slowest.truncate(LISTED);
        let told = |number: &usize| {
            let request = &self.requests[*number];
            let calls = calls_of.get(number).map_or(&[][..], Vec::as_slice);
            v1::FrontRequest {
                connection_id: request.id.0,
                start: Some(timestamp(request.start)),
                seconds: seconds(request.end.saturating_sub(request.start)),
                calls: calls
                    .iter()
                    .map(|call| v1::Call {
                        connection_id: call.id.0,
                        start: Some(timestamp(call.start)),
                        seconds: seconds(call.end.saturating_sub(call.start)),
                    })
                    .collect(),
            }
        };
        tier.slowest = slowest.iter().map(told).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(id: u64, start: u64, end: u64) -> Piece<FlowId> {
        Piece {
            start,
            end,
            id: FlowId(id),
        }
    }

    fn whose(requests: &[(u64, u64)], calls: &[(u64, u64)]) -> Vec<Whose> {
        let pieces = |all: &[(u64, u64)]| {
            (0..)
                .zip(all)
                .map(|(id, (start, end))| piece(id, *start, *end))
                .collect()
        };
        decide(pieces(requests), pieces(calls))
            .calls
            .into_iter()
            .map(|(_, whose)| whose)
            .collect()
    }

    #[test]
    fn a_call_belongs_to_the_only_request_that_it_fits() {
        let told = whose(
            &[(0, 100), (50, 200)],
            &[(10, 20), (60, 70), (90, 150), (110, 120), (210, 220)],
        );
        // The second fits both, and order does not help; the third ends after the first request.
        assert_eq!(
            told,
            [
                Whose::One(0),
                Whose::Several(vec![0, 1]),
                Whose::One(1),
                Whose::One(1),
                Whose::Nobodys
            ]
        );
    }

    #[test]
    fn order_decides_where_calls_follow_each_other() {
        // Two requests; each call that fits both runs while the other request has a call of its own.
        let told = whose(&[(0, 100), (5, 150)], &[(1, 40), (30, 60), (45, 70), (75, 120)]);
        assert_eq!(told, [Whose::One(0), Whose::One(1), Whose::One(0), Whose::One(1)]);
    }

    /// Two of three calls at once: the back explains 60 of 100, not 100.
    #[test]
    fn calls_side_by_side_explain_the_time_in_which_any_is_under_way() {
        for (calls, share) in [
            ([(10, 50), (10, 50), (60, 80)], 0.6),
            ([(10, 30), (30, 50), (60, 80)], 1.0),
        ] {
            let calls = (0..)
                .zip(calls)
                .map(|(id, (start, end))| piece(id, start, end))
                .collect();
            let mut tier = v1::Tier {
                request_seconds: 100.0,
                explained_seconds: 100.0,
                explained_share: 1.0,
                ..v1::Tier::default()
            };
            decide(vec![piece(9, 0, 100)], calls).tell(&mut tier, 0.0);
            assert_eq!(tier.calls_side_by_side, share < 1.0);
            assert!((tier.explained_share - share).abs() < 1e-9, "{tier:?}");
            assert!((tier.explained_seconds - 100.0 * share).abs() < 1e-6, "{tier:?}");
        }
    }

    /// Both tiers are always busy, and only the second call can be for the request.
    #[test]
    fn calls_that_fit_no_request_explain_nothing() {
        let tier = |setups| {
            let mut tier = v1::Tier {
                request_seconds: 100.0,
                explained_seconds: 100.0,
                explained_share: 1.0,
                ..v1::Tier::default()
            };
            let calls = vec![piece(0, 0, 30), piece(1, 40, 60), piece(2, 70, 150)];
            decide(vec![piece(9, 10, 110)], calls).tell(&mut tier, setups);
            (tier.explained_share, tier.explained_seconds)
        };
        assert_eq!(tier(0.0), (0.2, 20.0));
        assert_eq!(tier(10.0), (0.3, 30.0));
    }

    #[test]
    fn calls_side_by_side_have_no_order() {
        let told = whose(
            &[(0, 100), (50, 200)],
            &[(1, 40), (2, 30), (60, 70), (110, 150), (120, 140)],
        );
        assert_eq!(told[2], Whose::Several(vec![0, 1]));
    }
}
