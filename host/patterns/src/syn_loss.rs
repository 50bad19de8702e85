//! `SYN_LOSS_BURST`: many setups in a row lose their SYN or SYN-ACK, between others that lose none. `SYN_LOSS`: setups
//! lose them, and not in batches.
//!
//! What a repeat of a SYN does not tell by itself, the server's habits may: what is known of them comes from its other
//! connections, so that it is decided when findings are asked for.
//!
//! Memory: the newest [`ATTEMPTS`] connections (8 MB); live, up to [`OPEN`] that are not over (2 MB).

use std::collections::HashSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use weir_analysis::{
    Class, Ended, Finished, Group, Outcome, Place, SYN_TIMER_LEAST, Verdict, before, finding as make, lasting,
    loss_severity, seconds, sign,
};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::losses::{Losses, Periodic};
use crate::names::{chance, connections, count, percent, several};
use crate::newest::Newest;
use crate::rank::{compare, median};
use crate::timeline::Timeline;

/// Connections kept.
const ATTEMPTS: usize = 1 << 17;
/// Live: connections that were set up and are not over, at most.
const OPEN: usize = 1 << 14;
/// Setups in a row that are a batch, at least; and runs of that length that chance may make: in the whole input, or as a
/// share of those that there are.
const SHORTEST: usize = 3;
const BY_CHANCE: f64 = 0.1;
const SHARE_BY_CHANCE: f64 = 0.01;
/// Batches that are a pattern; one alone is when it is longer than that by two.
const LEAST: usize = 2;
/// Share of the setups of a pair that get an answer: below, it is not the network (a server that is off).
const ANSWERED: f64 = 0.5;
/// Change of the distance between batches from which on they come faster.
const FASTER: f64 = 1.5;
/// Largest chance of a difference in load without one.
const CHANCE: f64 = 1e-3;
/// A server's timer, or the time after which it gives a client up, is known when it was seen so often...
const SEEN: usize = 3;
/// ...within this share of each other.
const ALIKE: f64 = 0.05;
/// A SYN-ACK from the server's timer is late when it has not come so much after it was due.
const LATE: f64 = 1.1;
/// Standard deviations by which chance is allowed for.
const SIGMAS: f64 = 3.0;
/// Clocks of clients that were answered, and that were not, from which on it is no chance that all of the latter are behind.
const CLOCKS: usize = 5;
const MILLISECOND: u64 = 1_000_000;
/// Pairs without batches that are told of at most, those with most losses first.
const MOST: usize = 8;

/// What a setup lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Toll {
    syns: u8,
    syn_acks: u8,
    /// SYN or SYN-ACK, not known which.
    either: u8,
    /// SYN-ACKs lost behind the tap, as the repeats of the client and as those of the server tell: the same ones, until
    /// the connection is over.
    behind: [u8; 2],
    /// The server sent its SYN-ACK twice at once: one is its timer's.
    twice: bool,
    /// Least time from a SYN of which it is not known to the next, µs.
    gap: u32,
    /// Least time from a SYN-ACK to its repeat by the server's timer, µs; 0: not seen.
    timer: u32,
}

impl Toll {
    const fn total(self) -> u64 {
        self.syns as u64 + self.syn_acks as u64 + self.either as u64
    }
}

/// A connection that was asked for.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    /// First SYN, TAI ns.
    at: u64,
    id: FlowId,
    /// First SYN to the end of the setup, µs; 0: none.
    micros: u32,
    /// Last SYN to what answered it (a RST, too), µs; 0: nothing did.
    answer: u32,
    /// First to last packet, µs.
    lived: u32,
    pair: u16,
    toll: Toll,
    failure: Option<Outcome>,
    /// How far the client's clock of timestamps, if it ticks once a ms, is before the time of the packet, ms modulo 2^32.
    clock: Option<u32>,
}

/// Setups in a row that lost something.
struct Batch<'a> {
    of: &'a [Attempt],
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SynLoss {
    attempts: Newest<Attempt, ATTEMPTS>,
    /// Of the connection whose verdicts came last.
    current: Option<(FlowId, Toll)>,
    /// Live: what is known of connections that are not over; verdicts come with their end.
    open: Option<HashMap<FlowId, Attempt, FixedState>>,
    /// What further captures show to be lost between them and this one, SYNs and SYN-ACKs; `None`: there are none.
    between: Option<HashMap<FlowId, [u32; 2], FixedState>>,
}

impl SynLoss {
    /// Tells of connections that are not over.
    pub fn live() -> Self {
        Self {
            open: Some(HashMap::default()),
            ..Self::default()
        }
    }

    /// Tells of them, so that it wants to hear of setups.
    pub const fn is_live(&self) -> bool {
        self.open.is_some()
    }

    /// Further captures of the path show so many SYNs and SYN-ACKs lost between them and this one, of each connection.
    pub fn lost_between(&mut self, lost: impl Iterator<Item = (FlowId, [u32; 2])>) {
        let between = self.between.get_or_insert_default();
        for (id, [syns, syn_acks]) in lost {
            let sum = between.entry(id).or_default();
            sum[0] += syns;
            sum[1] += syn_acks;
        }
    }

    /// Of what nothing tells at this tap, the other captures may.
    fn prove(&self, attempt: &mut Attempt) {
        let Some(lost) = self.between.as_ref().and_then(|between| between.get(&attempt.id)) else {
            return;
        };
        let toll = &mut attempt.toll;
        for (known, lost) in [&mut toll.syns, &mut toll.syn_acks].into_iter().zip(lost) {
            let lost = u8::try_from(*lost).unwrap_or(u8::MAX);
            let more = lost.saturating_sub(*known).min(toll.either);
            *known = known.saturating_add(more);
            toll.either -= more;
        }
    }

    /// A connection was set up.
    pub fn set_up(&mut self, id: FlowId, facts: &Finished, pair: u16) {
        let Some(end) = facts.end else { return };
        if let Some(open) = self.open.as_mut().filter(|open| open.len() < OPEN) {
            // The SYN that was answered was not the first. What was lost is not known before all is.
            let toll = Toll {
                either: u8::from(facts.request >= SYN_TIMER_LEAST),
                ..Toll::default()
            };
            let attempt = Attempt {
                at: facts.request_time,
                id,
                micros: micros(end),
                answer: facts.server.map_or(0, micros),
                lived: micros(end),
                pair,
                toll,
                failure: None,
                clock: None,
            };
            open.insert(id, attempt);
        }
    }

    /// A SYN or SYN-ACK came again.
    pub fn segment(&mut self, verdict: &Verdict) {
        if !verdict.handshake || verdict.class != Class::Retransmission {
            return;
        }
        let mut toll = self
            .current
            .filter(|(id, _)| *id == verdict.connection)
            .map_or_else(Toll::default, |(_, toll)| toll);
        let since = micros(verdict.time.saturating_sub(verdict.lost_at));
        let least = |known: u32| if known == 0 { since } else { known.min(since) };
        // Of a SYN behind the SYN-ACK: it is not known whether anything was lost.
        let is_open = verdict.place == Place::Unknown && !verdict.evidence.has(sign::ACKED);
        match (verdict.from_server, verdict.place) {
            (false, Place::Unknown) if is_open => toll.gap = least(toll.gap),
            (true, Place::BehindTap | Place::Unknown) if verdict.evidence.has(sign::TIMER) => {
                toll.timer = least(toll.timer)
            }
            (true, Place::Nowhere) if verdict.evidence.has(sign::SECOND_ANSWER) => toll.twice = true,
            _ => {}
        }
        let mut none = 0;
        let lost = match (verdict.from_server, verdict.place) {
            (false, Place::BehindTap) => &mut toll.syns,
            (false, Place::AckBeforeTap) => &mut toll.syn_acks,
            (false, Place::AckBehindTap) => &mut toll.behind[0],
            (true, Place::BehindTap) => &mut toll.behind[1],
            (false, Place::Unknown) if is_open => &mut toll.either,
            // The ACK was lost, or nothing; or nothing tells.
            _ => &mut none,
        };
        *lost = lost.saturating_add(1);
        self.current = Some((verdict.connection, toll));
    }

    /// A connection is over; its verdicts came right before.
    pub fn connection(&mut self, connection: &Ended, pair: u16) {
        if let Some(open) = &mut self.open {
            open.remove(&connection.id);
        }
        let Some(outcome) = connection.setup.filter(|outcome| *outcome != Outcome::Midstream) else {
            return;
        };
        let (syns, syn_acks) = connection.syns;
        if syns == 0 || outcome == Outcome::Ignored && (syn_acks > 0 || syns == 1) {
            // Its beginning was not seen; or the client is silent; or there was no time for an answer.
            return;
        }
        let mut toll = self
            .current
            .take()
            .filter(|(id, _)| *id == connection.id)
            .map_or_else(Toll::default, |(_, toll)| toll);
        let [client, server] = std::mem::take(&mut toll.behind);
        toll.syn_acks = toll.syn_acks.saturating_add(client.max(server));
        let begun = matches!(outcome, Outcome::Ok | Outcome::Retransmitted);
        if begun && connection.is_answer_late {
            toll.syn_acks = toll.syn_acks.saturating_add(1);
        }
        // The last SYN came to nothing, too.
        match outcome {
            Outcome::Ignored => toll.either = toll.either.saturating_add(1),
            Outcome::ResetLate if toll.syn_acks > 0 => toll.syn_acks = toll.syn_acks.saturating_add(1),
            _ => {}
        }
        self.attempts.push(Attempt {
            at: connection.span.0,
            id: connection.id,
            micros: connection.setup_ns.map_or(0, micros),
            answer: connection.answer_ns.map_or(0, micros),
            lived: micros(connection.span.1.saturating_sub(connection.span.0)),
            pair,
            toll,
            failure: matches!(outcome, Outcome::Ignored | Outcome::ResetLate).then_some(outcome),
            clock: connection.client_clock,
        });
    }
}

/// A client's setups that were never answered have timestamps from the past, by so much at least, ms.
fn from_the_past(attempts: &[Attempt]) -> Option<(usize, usize, u32)> {
    let clocks = |has_failed: bool| {
        let of = attempts
            .iter()
            .filter(move |a| (a.failure == Some(Outcome::Ignored)) == has_failed);
        of.filter_map(|a| a.clock)
    };
    let (failed, answered) = (clocks(true).count(), clocks(false).count());
    let unknown = attempts
        .iter()
        .filter(|a| a.failure == Some(Outcome::Ignored) && a.clock.is_none());
    if failed < CLOCKS || answered < CLOCKS || unknown.count() > 0 {
        return None;
    }
    // A clock may tick more slowly: by no more than the time between two of them.
    let (first, last) = (attempts.first()?.at, attempts.last()?.at);
    let drift = u32::try_from((last - first) / MILLISECOND).ok()?.checked_add(1000)?;
    let newest = clocks(false).reduce(|a, b| if before(a, b) { b } else { a })?;
    let behind = |clock: u32| newest.wrapping_sub(clock);
    let is_near = |clock: u32| behind(clock) <= drift;
    let is_past = |clock: u32| before(clock, newest) && behind(clock) > drift;
    let least = clocks(true).map(behind).min()?;
    (clocks(false).all(is_near) && clocks(true).all(is_past)).then(|| (failed, answered, least - drift))
}

/// In µs.
fn micros(ns: u64) -> u32 {
    u32::try_from(ns / 1000).unwrap_or(u32::MAX)
}

/// What the connections of a pair tell of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Habits {
    /// From a SYN-ACK to its repeat, µs.
    timer: Option<f64>,
    /// Longest time after the last SYN until it resets a connection that it holds half open, µs.
    reset: Option<f64>,
}

impl Habits {
    fn of(attempts: &[Attempt]) -> Self {
        let mut timers: Vec<f64> = attempts
            .iter()
            .map(|a| f64::from(a.toll.timer))
            .filter(|t| *t > 0.0)
            .collect();
        timers.sort_unstable_by(f64::total_cmp);
        // Later repeats double the time.
        let alike = timers.partition_point(|timer| *timer <= timers[0] * (1.0 + ALIKE));
        let resets = attempts
            .iter()
            .filter(|a| a.failure == Some(Outcome::ResetLate) && a.answer > 0);
        let resets: Vec<f64> = resets.map(|a| f64::from(a.answer)).collect();
        Self {
            timer: (alike >= SEEN).then(|| timers[alike / 2]),
            reset: (resets.len() >= SEEN).then(|| resets.iter().copied().fold(0.0, f64::max)),
        }
    }

    /// What was lost of a connection if only one story fits. `end`: of what was seen, TAI ns.
    fn settle(self, attempt: &mut Attempt, end: u64) {
        let toll = &mut attempt.toll;
        let would_show = match attempt.failure {
            // Had a SYN arrived, the server would have reset the connection in the end.
            Some(Outcome::Ignored) => self.reset.is_some_and(|reset| {
                let last = attempt.at + u64::from(attempt.lived) * 1000;
                end.saturating_sub(last) as f64 > LATE * reset * 1e3
            }),
            // Had a SYN arrived, the server's timer would have sent the SYN-ACK again before the next SYN.
            None => self.timer.is_some_and(|timer| f64::from(toll.gap) > LATE * timer),
            Some(_) => false,
        };
        if would_show {
            toll.syns = toll.syns.saturating_add(std::mem::take(&mut toll.either));
        }
    }

    /// Of the SYNs and SYN-ACKs of which nothing tells, how many are SYNs at least. Where the client's timer is as long as
    /// the server's, a lost SYN-ACK lets both go off at the same time. If the server's is first, and that is so in half of
    /// the cases, it sends its SYN-ACK twice: as many that are sent once may have the same story, the rest have not.
    fn least_syns(self, attempts: &[&Attempt]) -> u64 {
        let Some(timer) = self.timer else { return 0 };
        let answered = attempts.iter().filter(|a| a.failure.is_none());
        let (mut once, mut twice) = (0u64, 0u64);
        for attempt in answered {
            if attempt.toll.twice {
                twice += 1;
            } else if attempt.toll.either == 1 && (f64::from(attempt.toll.gap) / timer - 1.0).abs() <= ALIKE {
                once += 1;
            }
        }
        let most = twice as f64 + SIGMAS * ((2 * twice) as f64).sqrt().max(1.0);
        (once as f64 - most).max(0.0) as u64
    }
}

/// What some setups of a pair lost in all.
struct Sum<'a> {
    hit: Vec<&'a Attempt>,
    syns: u64,
    syn_acks: u64,
    either: u64,
    ignored: u64,
    reset: u64,
    /// Those that were answered in the end, beyond the median of those that lost nothing: in all, and the longest, s.
    waited: f64,
    longest: f64,
}

impl<'a> Sum<'a> {
    /// `hit` of all the `attempts` of the pair.
    fn of(hit: Vec<&'a Attempt>, attempts: &[Attempt]) -> Self {
        let sum = |part: fn(&Toll) -> u8| hit.iter().map(|a| u64::from(part(&a.toll))).sum::<u64>();
        let failed = |outcome| hit.iter().filter(|a| a.failure == Some(outcome)).count() as u64;
        let time = |a: &Attempt| f64::from(a.micros) / 1e6;
        let usual = attempts.iter().filter(|a| a.toll.total() == 0 && a.failure.is_none());
        let usual = median(&usual.map(time).collect::<Vec<f64>>()).unwrap_or(0.0);
        let late = hit.iter().filter(|a| a.failure.is_none());
        let late: Vec<f64> = late.map(|a| (time(a) - usual).max(0.0)).collect();
        Self {
            syns: sum(|t| t.syns),
            syn_acks: sum(|t| t.syn_acks),
            either: sum(|t| t.either),
            ignored: failed(Outcome::Ignored),
            reset: failed(Outcome::ResetLate),
            waited: late.iter().fold(0.0, |sum, one| sum + one),
            longest: late.iter().copied().fold(0.0, f64::max),
            hit,
        }
    }

    const fn lost(&self) -> u64 {
        self.syns + self.syn_acks + self.either
    }

    const fn failed(&self) -> u64 {
        self.ignored + self.reset
    }

    /// Those that failed first: ids are limited.
    fn group(&self) -> Group {
        let mut group = Group::default();
        let (failed, late): (Vec<&Attempt>, Vec<&Attempt>) = self.hit.iter().partition(|a| a.failure.is_some());
        for attempt in failed.into_iter().chain(late) {
            group.include(attempt.id, attempt.at, attempt.at + u64::from(attempt.micros) * 1000);
        }
        group
    }

    /// Which of the two were lost, and where.
    fn places(&self, server: &str, has_other_captures: bool) -> Vec<String> {
        let mut rows = vec![format!(
            "{} lost between the tap and {server}, {} on the way back{}",
            several(self.syns, "SYN was", "SYNs were"),
            several(self.syn_acks, "SYN-ACK", "SYN-ACKs"),
            match self.either {
                0 => String::new(),
                either => format!("; of {} nothing tells which of the two", count(either)),
            }
        )];
        if self.either > 0 && has_other_captures {
            rows.push(format!(
                "no capture shows these lost between the taps: they were lost beyond the last one, or {server} did not answer"
            ));
        } else if self.either > 0 {
            rows.push(format!(
                "a SYN-ACK that never reached the tap and a SYN that was lost behind it look the same where the next SYN comes no later than {server} would have repeated its answer: only a capture at {server} can tell them apart"
            ));
        }
        rows
    }

    /// What the losses cost.
    fn costs(&self) -> Vec<String> {
        let mut rows = Vec::new();
        let ways = [
            (self.ignored, "never answered"),
            (self.reset, "reset after a minute or so"),
        ];
        let ways: Vec<String> = ways
            .into_iter()
            .filter(|(of, _)| *of > 0)
            .map(|(of, how)| format!("{} {how}", several(of, "of them was", "of them were")))
            .collect();
        match self.failed() {
            0 => {}
            1 => rows.push(format!("{}: this request failed", ways.join(" and "))),
            _ => rows.push(format!("{}: these requests failed", ways.join(" and "))),
        }
        match self.hit.len() as u64 - self.failed() {
            0 => {}
            1 => rows.push(format!(
                "the one that was answered in the end waited {} more than others",
                lasting(self.waited)
            )),
            answered => rows.push(format!(
                "those that were answered in the end waited {} more than others in all, {} each, {} at most",
                lasting(self.waited),
                lasting(self.waited / answered as f64),
                lasting(self.longest)
            )),
        }
        rows
    }

    fn failures(&self) -> String {
        match self.failed() {
            0 => String::new(),
            failed => format!(", {} failed", connections(failed)),
        }
    }

    fn values(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("lostSyns", self.syns as f64),
            ("lostSynAcks", self.syn_acks as f64),
            ("lostEither", self.either as f64),
            ("connections", self.hit.len() as f64),
            ("ignored", self.ignored as f64),
            ("reset", self.reset as f64),
            ("costSeconds", self.waited),
        ]
    }
}

/// What else it may be, and what to do.
fn advice(all: &Losses, server: &str, attempts: &[Attempt]) -> [String; 2] {
    if let Some((failed, answered, behind)) = from_the_past(attempts) {
        return [
            format!(
                "it may also be, and most likely is, {server} itself: all {} that were never answered have timestamps (TSval) that are {} s or more behind those of all {} that were: clients behind one address (NAT) have clocks of their own, and a server that remembers the last timestamp of an address ignores SYNs that are older (RFC 7323 5.3; Linux before 4.12 with tcp_tw_recycle)",
                count(failed as u64),
                count(u64::from(behind) / 1000),
                count(answered as u64)
            ),
            format!(
                "next: look whether {server} (or the firewall or balancer before it) drops SYNs for their timestamps (netstat -s there; tcp_tw_recycle), and switch that off; else timestamps at the clients behind that address"
            ),
        ];
    }
    [
        match all.accept_queue.full_at(server) {
            Some(service) => format!(
                "most likely it is {service} itself: its queue of accepted connections is full (ACCEPT_QUEUE), which drops SYNs, too; it may also be a limit of SYNs a second, or a firewall or load balancer before it"
            ),
            None => format!(
                "it may also be {server} itself: a full queue of connections or a limit of SYNs a second drops SYNs and nothing else; or a firewall or load balancer before it"
            ),
        },
        format!(
            "next: read the counters of dropped SYNs and of the listen queue at {server}, and the connection tables of the devices before it; capture at {server} itself"
        ),
    ]
}

/// Findings: one for each pair of hosts with batches, and for those with most losses of the others.
pub(crate) fn findings(all: &Losses, periodic: &[Periodic], timeline: &Timeline, out: &mut Vec<Finding>) {
    let open = || all.syn_loss.open.iter().flat_map(HashMap::values);
    let tried = || all.syn_loss.attempts.iter().chain(open());
    let mut is_lossy = vec![false; all.by_pair.len()];
    for attempt in tried().filter(|attempt| attempt.toll.total() > 0) {
        is_lossy[usize::from(attempt.pair)] = true;
    }
    let of_lossy = tried().filter(|attempt| is_lossy[usize::from(attempt.pair)]);
    let mut attempts: Vec<Attempt> = of_lossy.copied().collect();
    if attempts.is_empty() {
        return;
    }
    attempts.sort_by_key(|attempt| (attempt.pair, attempt.at));
    let load = Load::new(timeline);
    let (_, end) = timeline.span();
    let mut alone = Vec::new();
    for of_pair in attempts.chunk_by_mut(|a, b| a.pair == b.pair) {
        let habits = Habits::of(of_pair);
        for attempt in &mut *of_pair {
            all.syn_loss.prove(attempt);
            habits.settle(attempt, end);
        }
        let of_pair = &*of_pair;
        let pair = of_pair[0].pair;
        let answered = of_pair.iter().filter(|a| a.failure.is_none()).count() as f64;
        if answered < ANSWERED * of_pair.len() as f64 {
            continue;
        }
        let period = periodic.iter().find(|found| found.has(pair));
        let (batches, by_chance) = batches(of_pair, period);
        if batches.len() >= LEAST || batches.iter().any(|batch| batch.of.len() >= SHORTEST + 2) {
            out.push(burst(all, of_pair, &batches, by_chance, period, habits, &load));
        } else {
            // What is lost in the lossy part of a period is its finding's.
            let is_periodic = |a: &Attempt| period.is_some_and(|found| found.period.is_inside(a.at));
            let hit: Vec<&Attempt> = of_pair
                .iter()
                .filter(|a| a.toll.total() > 0 && !is_periodic(a))
                .collect();
            if !hit.is_empty() {
                let aside = period.and_then(|found| aside(of_pair, found));
                alone.push((of_pair, Sum::of(hit, of_pair), aside));
            }
        }
    }
    alone.sort_by_key(|(_, sum, _)| std::cmp::Reverse(sum.lost()));
    out.extend(
        alone
            .iter()
            .take(MOST)
            .map(|(attempts, sum, aside)| single(all, attempts, sum, aside.clone())),
    );
}

/// What a pair lost in the lossy part of a period, in a sentence: else there are more failed connections than any finding tells of.
fn aside(attempts: &[Attempt], found: &Periodic) -> Option<String> {
    let hit = || {
        attempts
            .iter()
            .filter(|a| a.toll.total() > 0 && found.period.is_inside(a.at))
    };
    let failed = match hit().filter(|a| a.failure.is_some()).count() as u64 {
        0 => String::new(),
        failed => format!(" ({} failed)", connections(failed)),
    };
    let lost = hit().count() as u64;
    (lost > 0).then(|| {
        format!(
            "{} in the lossy {:.2} s of every {:.2} s{failed}: that goes with the losses that have this period, and is not counted here",
            several(lost, "more setup lost SYNs or SYN-ACKs", "more setups lost SYNs or SYN-ACKs"),
            found.period.part / 1e9,
            found.period.period / 1e9
        )
    })
}

/// Setups of a pair that lost something, without batches; `aside`: what of them another finding tells.
fn single(all: &Losses, attempts: &[Attempt], sum: &Sum<'_>, aside: Option<String>) -> Finding {
    let pair = usize::from(attempts[0].pair);
    let (client, server) = all.pairs.names(pair);
    let (hit, tried) = (sum.hit.len() as u64, attempts.len() as u64);
    let mut evidence = vec![format!(
        "{} lost in {}, of {} that {} tried between the two{}",
        several(sum.lost(), "SYN or SYN-ACK was", "SYNs or SYN-ACKs were"),
        several(hit, "setup", "setups"),
        count(tried),
        if tried == 1 { "was" } else { "were" },
        if hit < tried { ", and not in batches" } else { "" }
    )];
    evidence.extend(sum.places(&server, all.syn_loss.between.is_some()));
    evidence.extend(sum.costs());
    evidence.extend(aside);
    evidence.extend(advice(all, &server, attempts));
    let failed = match sum.failed() {
        0 => String::new(),
        failed => format!(", {} of them failed", count(failed)),
    };
    let mut finding = make(
        "SYN_LOSS",
        loss_severity(hit, tried),
        // Where nothing tells which was lost, it may be that neither was, and the server was silent.
        0.5 + 0.45 * (sum.lost() - sum.either) as f64 / sum.lost() as f64,
        format!(
            "{} between {client} and {server} lost SYNs or SYN-ACKs{failed}",
            connections(hit)
        ),
        evidence,
        &sum.group(),
        &sum.values(),
    );
    finding.who = all.pairs.who(pair);
    finding
}

/// Runs of setups with losses that are longer than chance makes them, and how many it would make. What is usual is taken
/// from short runs; inside and outside of a lossy part each has its own.
fn batches<'a>(attempts: &'a [Attempt], period: Option<&Periodic>) -> (Vec<Batch<'a>>, f64) {
    if attempts.iter().all(|attempt| attempt.toll.total() > 0) {
        return (Vec::new(), 0.0);
    }
    let is_inside = |attempt: &Attempt| period.is_some_and(|found| found.period.is_inside(attempt.at));
    let runs: Vec<&[Attempt]> = attempts
        .chunk_by(|a, b| (a.toll.total() > 0) == (b.toll.total() > 0))
        .filter(|run| run[0].toll.total() > 0)
        .collect();
    let (mut found, mut by_chance) = (Vec::new(), 0.0);
    for inside in [false, true] {
        let of_them = || runs.iter().filter(|run| is_inside(&run[0]) == inside);
        let tried = attempts.iter().filter(|a| is_inside(a) == inside).count() as f64;
        let alone: usize = of_them().map(|run| run.len()).filter(|len| *len < SHORTEST).sum();
        let usual = (alone + 1) as f64 / (tried + 2.0);
        let longer = |len: usize| tried * usual.powi(len as i32);
        let there = |len: usize| of_them().filter(|run| run.len() >= len).count() as f64;
        let shortest = (SHORTEST..32)
            .find(|len| longer(*len) <= BY_CHANCE.max(SHARE_BY_CHANCE * there(*len)))
            .unwrap_or(32);
        if tried > 0.0 {
            by_chance += longer(shortest);
        }
        found.extend(
            of_them()
                .filter(|run| run.len() >= shortest)
                .map(|run| Batch { of: run }),
        );
    }
    found.sort_by_key(|batch| batch.of[0].at);
    (found, by_chance)
}

/// Where the good setups of a pair are that its batches stand out from.
fn around(attempts: &[Attempt], batches: &[Batch<'_>]) -> &'static str {
    let is_hit = |attempt: Option<&Attempt>| attempt.is_some_and(|attempt| attempt.toll.total() > 0);
    match (is_hit(attempts.first()), is_hit(attempts.last())) {
        (false, false) => ", and good ones before and after",
        (false, true) => ", and good ones before",
        (true, false) => ", and good ones after",
        (true, true) if batches.len() > 1 => ", and good ones between them",
        (true, true) => "",
    }
}

/// Setups of a pair that lose SYNs or SYN-ACKs in batches.
fn burst(
    all: &Losses,
    attempts: &[Attempt],
    batches: &[Batch<'_>],
    by_chance: f64,
    period: Option<&Periodic>,
    habits: Habits,
    load: &Load,
) -> Finding {
    let pair = usize::from(attempts[0].pair);
    let (client, server) = all.pairs.names(pair);
    let sum = Sum::of(batches.iter().flat_map(|batch| batch.of).collect(), attempts);
    let longest = batches.iter().map(|batch| batch.of.len()).max().unwrap_or(0);

    let mut evidence = vec![format!(
        "{} SYNs or SYN-ACKs of {} were lost in {}: up to {longest} setups in a row, none of them good{}",
        count(sum.lost()),
        connections(sum.hit.len() as u64),
        several(batches.len() as u64, "batch", "batches"),
        around(attempts, batches)
    )];
    evidence.extend(sum.places(&server, all.syn_loss.between.is_some()));
    let least_syns = habits.least_syns(&sum.hit);
    if least_syns > 0 {
        evidence.push(format!(
            "{} of these at least are SYNs: {server} repeats a SYN-ACK after {:.2} s, as long as the client waits, so that a lost SYN-ACK comes twice in half of the cases, and too few do",
            count(least_syns),
            habits.timer.unwrap_or(0.0) / 1e6
        ));
    }
    let in_batches: HashSet<u64> = sum.hit.iter().map(|a| a.id.0).collect();
    let alone = || {
        attempts
            .iter()
            .filter(|a| a.toll.total() > 0 && !in_batches.contains(&a.id.0))
    };
    evidence.push(format!(
        "{} more stand alone among {} setups{}; by chance, {by_chance:.2} such batches would be seen",
        count(alone().map(|a| a.toll.total()).sum()),
        count(attempts.len() as u64),
        match alone().filter(|a| a.failure.is_some()).count() as u64 {
            0 => String::new(),
            failed => format!(" ({} failed for them)", connections(failed)),
        }
    ));
    if let Some(found) = period {
        let outside = batches
            .iter()
            .filter(|batch| !found.period.is_inside(batch.of[0].at))
            .count();
        evidence.push(format!(
            "{outside} of {} batches begin outside the lossy {:.2} s of every {:.2} s: {}",
            batches.len(),
            found.period.part / 1e9,
            found.period.period / 1e9,
            if outside > 0 {
                "another behaviour than the losses with the period"
            } else {
                "they may be a part of it"
            }
        ));
    }
    evidence.extend(faster(batches));
    evidence.extend(load.grows(attempts, &in_batches));
    evidence.extend(data_meanwhile(all, pair, batches));
    evidence.extend(sum.costs());
    evidence.extend(advice(all, &server, attempts));
    let mut values = sum.values();
    values.extend([
        ("lostSynsAtLeast", (sum.syns + least_syns) as f64),
        ("batches", batches.len() as f64),
        ("longest", longest as f64),
    ]);
    let mut finding = make(
        "SYN_LOSS_BURST",
        if sum.failed() > 0 { "CRITICAL" } else { "WARNING" },
        (1.0 - by_chance / batches.len() as f64).clamp(0.0, 0.95),
        format!(
            "SYNs or SYN-ACKs between {client} and {server} are lost in {}{}",
            several(batches.len() as u64, "batch", "batches"),
            sum.failures()
        ),
        evidence,
        &sum.group(),
        &values,
    );
    finding.who = all.pairs.who(pair);
    finding
}

/// Whether batches come faster and faster.
fn faster(batches: &[Batch<'_>]) -> Option<String> {
    let [first, .., last] = batches else { return None };
    let middle = batches.get(batches.len() / 2)?.of[0].at;
    let (early, late) = (middle - first.of[0].at, last.of[0].at - middle);
    let (many, rest) = (batches.len() / 2, batches.len() - 1 - batches.len() / 2);
    let each = |ns: u64, n: usize| seconds(ns) / n.max(1) as f64;
    let (early, late) = (each(early, many), each(late, rest));
    (batches.len() >= 4 && early > FASTER * late).then(|| {
        format!("they come faster and faster: {early:.2} s apart in the first half, {late:.2} s in the second")
    })
}

/// How data fared in the slots of the batches.
fn data_meanwhile(all: &Losses, pair: usize, batches: &[Batch<'_>]) -> Option<String> {
    let exposure = all.exposure(|other| other == pair, [1.0; 2])?;
    let hit = exposure.counts(batches.iter().flat_map(|batch| batch.of).map(|a| a.at));
    let of_pair = all.losses.iter().filter(|loss| usize::from(loss.pair) == pair);
    let lost = exposure.counts(of_pair.map(|loss| loss.at));
    let sum = |values: &[f64], inside: bool| -> f64 {
        let of_them = values.iter().zip(&hit).filter(|(_, hit)| (**hit > 0.0) == inside);
        of_them.map(|(value, _)| value).sum()
    };
    let rate = |inside| sum(&lost, inside) / (sum(&lost, inside) + sum(exposure.sums(), inside)).max(1.0);
    (sum(exposure.sums(), true) > 0.0).then(|| {
        format!(
            "data meanwhile: {} of {} segments were lost in the {:.0} ms around them, {} at other times",
            percent(rate(true)),
            count(sum(exposure.sums(), true) as u64),
            exposure.slot_seconds() * 1e3,
            percent(rate(false))
        )
    })
}

/// Connections open at a time, over all hosts.
struct Load {
    start: u64,
    width: u64,
    open: Vec<f64>,
}

impl Load {
    fn new(timeline: &Timeline) -> Self {
        let mut open = 0i64;
        let bins = timeline.bins();
        Self {
            start: bins.start(),
            width: bins.width(),
            open: bins
                .iter()
                .map(|bin| {
                    open += i64::from(bin.opened) - i64::from(bin.closed);
                    open as f64
                })
                .collect(),
        }
    }

    fn at(&self, time: u64) -> f64 {
        let bin = (time.saturating_sub(self.start) / self.width) as usize;
        self.open.get(bin).copied().unwrap_or(0.0)
    }

    /// Whether more is open when setups are lost in batches.
    fn grows(&self, attempts: &[Attempt], in_batches: &HashSet<u64>) -> Option<String> {
        let (hit, good): (Vec<&Attempt>, Vec<&Attempt>) =
            attempts.iter().partition(|attempt| in_batches.contains(&attempt.id.0));
        let open = |list: Vec<&Attempt>| list.iter().map(|a| self.at(a.at)).collect::<Vec<f64>>();
        let (hit, good) = (open(hit), open(good));
        let c = compare(&hit, &good).filter(|c| c.chance < CHANCE)?;
        let (there, elsewhere) = (median(&hit)?, median(&good)?);
        (c.larger > 0.5).then(|| {
            format!(
                "load has a part in it: {there:.0} connections are open when they happen, {elsewhere:.0} at other setups (medians; chance of that by accident: {})",
                chance(c.chance)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use weir_analysis::{CloseKind, Evidence};

    use super::*;
    use crate::fixtures::{ended, verdict};
    use crate::period::Period;

    const SECOND: u32 = 1_000_000;

    fn attempt(toll: Toll, failure: Option<Outcome>) -> Attempt {
        Attempt {
            at: 0,
            id: FlowId(0),
            micros: SECOND,
            answer: if failure == Some(Outcome::ResetLate) {
                60 * SECOND
            } else {
                300
            },
            lived: 9 * SECOND,
            pair: 0,
            toll,
            failure,
            clock: None,
        }
    }

    /// Five were answered; five whose clocks are so far behind, ms, were not.
    #[test]
    fn clients_whose_timestamps_are_from_the_past_are_ignored() {
        let found = |behind: u32, of_answered: u32| {
            let at = |n: u32, clock: u32, failure| Attempt {
                at: u64::from(n) * 1_000 * MILLISECOND,
                clock: Some(clock),
                ..attempt(unknown(SECOND), failure)
            };
            let newest = 100u32;
            let all: Vec<Attempt> = (0..5)
                .flat_map(|n| {
                    let answered = if n == 2 {
                        newest.wrapping_sub(of_answered)
                    } else {
                        newest
                    };
                    let ignored = at(n, newest.wrapping_sub(behind), Some(Outcome::Ignored));
                    [at(n, answered, None), ignored]
                })
                .collect();
            from_the_past(&all)
        };
        // The clocks may differ by the 4 s of all of them, and a second.
        assert_eq!(found(3_600_000, 0), Some((5, 5, 3_595_000)));
        assert_eq!(found(4_000, 0), None);
        // One that is as far behind was answered.
        assert_eq!(found(3_600_000, 3_600_000), None);
        // It is ahead.
        assert_eq!(found(0u32.wrapping_sub(3_600_000), 0), None);
    }

    fn unknown(gap: u32) -> Toll {
        Toll {
            either: 1,
            gap,
            ..Toll::default()
        }
    }

    fn with_timer(timer: u32) -> Attempt {
        attempt(
            Toll {
                timer,
                ..Toll::default()
            },
            None,
        )
    }

    #[test]
    fn a_timer_that_would_have_shown_tells() {
        let habits = Habits::of(&[1, 1, 1, 3].map(|s| with_timer(s * SECOND)));
        assert_eq!(habits.timer, Some(f64::from(SECOND)));
        let settled = |gap| {
            let mut one = attempt(unknown(gap), None);
            habits.settle(&mut one, 0);
            (one.toll.syns, one.toll.either)
        };
        assert_eq!(settled(3 * SECOND), (1, 0));
        // As long as the server's timer: both stories fit.
        assert_eq!(settled(SECOND), (0, 1));
        // Twice is no habit.
        assert_eq!(Habits::of(&[1, 1, 3].map(|s| with_timer(s * SECOND))).timer, None);
    }

    #[test]
    fn one_is_told_as_one() {
        let costs = |failures: &[Option<Outcome>]| {
            let all: Vec<Attempt> = failures.iter().map(|one| attempt(unknown(SECOND), *one)).collect();
            Sum::of(all.iter().collect(), &all).costs()
        };
        let (ignored, reset) = (Some(Outcome::Ignored), Some(Outcome::ResetLate));
        assert_eq!(
            costs(&[ignored, None]),
            [
                "1 of them was never answered: this request failed",
                "the one that was answered in the end waited 1.00 s more than others"
            ]
        );
        assert_eq!(
            costs(&[reset, ignored, ignored, None, None]),
            [
                "2 of them were never answered and 1 of them was reset after a minute or so: these requests failed",
                "those that were answered in the end waited 2.00 s more than others in all, 1.00 s each, 1.00 s at most"
            ]
        );
    }

    /// Those that `FAILED_CONNECTIONS` counts and `SYN_LOSS` does not.
    #[test]
    fn what_failed_in_the_lossy_part_is_told() {
        let period = Period {
            period: 5e9,
            part: 2e9,
            begin: 1_000_000_000,
            cycles: 9,
            struck: 9,
            chance: 0.0,
        };
        let found = Periodic::of_all(period);
        let at = |seconds: u64, failure| Attempt {
            at: seconds * 1_000_000_000,
            ..attempt(unknown(SECOND), failure)
        };
        let told = |attempts: &[Attempt]| aside(attempts, &found);
        let (inside, outside) = (at(7, Some(Outcome::Ignored)), at(9, Some(Outcome::Ignored)));
        assert_eq!(told(&[outside]), None);
        assert_eq!(
            told(&[inside, outside]).as_deref(),
            Some(
                "1 more setup lost SYNs or SYN-ACKs in the lossy 2.00 s of every 5.00 s (1 connection failed): that goes with the losses that have this period, and is not counted here"
            )
        );
        assert_eq!(
            told(&[at(2, None), at(12, None)]).as_deref(),
            Some(
                "2 more setups lost SYNs or SYN-ACKs in the lossy 2.00 s of every 5.00 s: that goes with the losses that have this period, and is not counted here"
            )
        );
    }

    #[test]
    fn further_captures_tell_which_was_lost() {
        let proved = |lost: [u32; 2], toll: Toll| {
            let mut found = SynLoss::default();
            found.lost_between([(FlowId(0), lost)].into_iter());
            let mut one = attempt(toll, None);
            found.prove(&mut one);
            (one.toll.syns, one.toll.syn_acks, one.toll.either)
        };
        assert_eq!(proved([1, 0], unknown(SECOND)), (1, 0, 0));
        assert_eq!(proved([0, 1], unknown(SECOND)), (0, 1, 0));
        // Nothing of it between the taps: it may have been lost beyond.
        assert_eq!(proved([0, 0], unknown(SECOND)), (0, 0, 1));
        // The SYN-ACK that this tap knows of is the one that the others saw.
        let both = Toll {
            syn_acks: 1,
            ..unknown(SECOND)
        };
        assert_eq!(proved([0, 1], both), (0, 1, 1));
    }

    #[test]
    fn a_reset_that_did_not_come_tells() {
        let resets = [attempt(unknown(3 * SECOND), Some(Outcome::ResetLate)); 3];
        let habits = Habits::of(&resets);
        let settled = |end: u64| {
            let mut one = attempt(unknown(3 * SECOND), Some(Outcome::Ignored));
            habits.settle(&mut one, end * 1_000_000_000);
            (one.toll.syns, one.toll.either)
        };
        // The last SYN came after 9 s, a RST would have come 60 s later.
        assert_eq!(settled(80), (1, 0));
        assert_eq!(settled(70), (0, 1));
    }

    #[test]
    fn a_late_syn_ack_was_not_the_first() {
        let lost = |is_answer_late: bool| {
            let mut all = SynLoss::default();
            let connection = Ended {
                setup_ns: Some(9_000_000_000),
                answer_ns: Some(9_000_000_000),
                is_answer_late,
                closing: CloseKind::ClientFin,
                ..ended(1, (0, 20_000_000_000))
            };
            all.connection(&connection, 0);
            all.attempts.iter().map(|attempt| attempt.toll.syn_acks).sum::<u8>()
        };
        assert_eq!([lost(true), lost(false)], [1, 0]);
    }

    /// A batch is between good ones.
    #[test]
    fn setups_that_all_lose_are_no_batch() {
        let lossy = [attempt(unknown(SECOND), None); 12];
        assert!(batches(&lossy, None).0.is_empty());
        let mut some = lossy.to_vec();
        some.push(attempt(Toll::default(), None));
        let (found, _) = batches(&some, None);
        assert_eq!((found.len(), around(&some, &found)), (1, ", and good ones after"));
    }

    #[test]
    fn what_may_have_lost_nothing_is_not_counted() {
        let lost = |evidence: Evidence| {
            let mut all = SynLoss::default();
            all.segment(&Verdict {
                evidence,
                handshake: true,
                ..verdict(1, 0, 1_000_000_000)
            });
            all.current.map(|(_, toll)| toll.total())
        };
        let timer = Evidence::NONE.with(sign::TIMER);
        assert_eq!([lost(timer), lost(timer.with(sign::ACKED))], [Some(1), Some(0)]);
    }

    #[test]
    fn more_than_chance_makes_are_syns() {
        let habits = Habits {
            timer: Some(f64::from(SECOND)),
            reset: None,
        };
        let twice = Toll {
            twice: true,
            ..Toll::default()
        };
        let mut all = vec![attempt(unknown(SECOND), None); 64];
        all.extend(vec![attempt(twice, None); 8]);
        // 8 and three standard deviations of 4.
        assert_eq!(habits.least_syns(&all.iter().collect::<Vec<_>>()), 44);
        all.extend(vec![attempt(twice, None); 56]);
        assert_eq!(habits.least_syns(&all.iter().collect::<Vec<_>>()), 0);
    }
}
