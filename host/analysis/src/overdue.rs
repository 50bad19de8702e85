//! Requests that wait for longer than their service ever takes, while their connections are open (`docs/src/findings.md`).
//! Memory: [`SERVICES`] services.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use weir_messages::v1;

use crate::flow::{Asked, Flow, Service};
use crate::group::{Group, finding};
use crate::message::{seconds, socket_address};
use crate::numbers::{decimal, duration, several};
use crate::unanswered::NEXT;

/// Services that are told apart.
const SERVICES: usize = 4096;
/// Known of a service are its last answers, so many and as many ns at least, to twice as much: where none comes any more, nothing is forgotten.
const ANSWERS: u32 = 1000;
const LAST: u64 = 600_000_000_000;
/// Answers from which on it is known how long a service is silent.
const KNOWN: u32 = 20;
/// A wait is unusual from so many times the longest that is known on, and from so long on, ns: of a request alone, for it may be one that waits
/// for something to happen; and of all requests to a service that answers nobody.
pub(crate) const TIMES: u64 = 3;
const ALONE: u64 = 30_000_000_000;
const SILENT: u64 = 10_000_000_000;
/// Requests that wait for a service that answers nobody; where fewer do, nobody may have asked.
const WAITING: usize = 3;
/// Answers on a connection from which on a longer request than the last may be due one: others tell behind a handshake, and get none.
const ANSWERED: u32 = 3;
/// Who goes on sending for so long, ns, asks for nothing.
const SENDING: u64 = 5_000_000_000;
/// Services that are told, those with most requests first.
const TOLD: usize = 8;

/// The longest of a row of answers, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    answers: u32,
    /// When the first of them began, TAI ns.
    since: u64,
    /// Last packet of a request to the first of its response.
    answer: u64,
    /// Between two answers.
    silence: u64,
}

/// What a service's answers were like.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    row: Row,
    before: Row,
    /// First packet of the newest, TAI ns.
    newest: u64,
}

impl Habit {
    const fn is_unusual(time: u64, longest: u64, least: u64) -> bool {
        time >= least && time / TIMES >= longest
    }

    fn answers(&self) -> u32 {
        self.row.answers.saturating_add(self.before.answers)
    }

    fn answer(&self) -> u64 {
        self.row.answer.max(self.before.answer)
    }

    fn silence(&self) -> u64 {
        self.row.silence.max(self.before.silence)
    }

    fn add(&mut self, took: u64, at: u64) {
        if self.row.answers >= ANSWERS && at.saturating_sub(self.row.since) >= LAST {
            self.before = std::mem::take(&mut self.row);
        }
        if self.row.answers == 0 {
            self.row.since = at;
        }
        self.row.answers = self.row.answers.saturating_add(1);
        self.row.answer = self.row.answer.max(took);
        if self.newest > 0 {
            self.row.silence = self.row.silence.max(at.saturating_sub(self.newest));
        }
        self.newest = self.newest.max(at);
    }
}

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    flow: &'a Flow,
    asked: Asked,
    /// Since its last packet, ns.
    waited: u64,
}

/// What the services' answers were like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    services: HashMap<Service, Habit>,
}

impl Answers {
    /// A service's answer began at `at`, TAI ns, `took` ns behind the request.
    pub fn answered(&mut self, service: Service, took: u64, at: u64) {
        let is_full = self.services.len() >= SERVICES;
        match self.services.get_mut(&service) {
            Some(habit) => habit.add(took, at),
            None if is_full => {}
            None => self.services.entry(service).or_default().add(took, at),
        }
    }

    /// Of each service with requests that are overdue at `now`, TAI ns.
    pub fn findings<'a>(&self, flows: impl Iterator<Item = &'a Flow> + Clone, now: u64) -> Vec<v1::Finding> {
        let mut waiting: HashMap<Service, (Habit, Vec<Request<'a>>)> = HashMap::new();
        for flow in flows.clone() {
            let Some(asked) = flow.asked() else { continue };
            let waited = now.saturating_sub(asked.last);
            let goes_on = asked.last.saturating_sub(asked.first) >= SENDING;
            if waited < SILENT || goes_on || asked.length == Ordering::Less {
                continue;
            }
            let service = flow.service();
            let Some(habit) = self.services.get(&service) else {
                continue;
            };
            if Habit::is_unusual(waited, habit.answer(), SILENT) {
                let (_, requests) = waiting.entry(service).or_insert_with(|| (*habit, Vec::new()));
                requests.push(Request { flow, asked, waited });
            }
        }
        if waiting.is_empty() {
            return Vec::new();
        }
        // Answers of transactions in progress are not told of yet.
        for flow in flows {
            if let Some((at, (habit, _))) = flow.response_begin().zip(waiting.get_mut(&flow.service())) {
                habit.newest = habit.newest.max(at);
            }
        }
        let due = |(service, (habit, requests)): (Service, (Habit, Vec<Request<'a>>))| {
            let silence = now.saturating_sub(habit.newest);
            let is_silent = habit.answers() >= KNOWN
                && requests.len() >= WAITING
                && Habit::is_unusual(silence, habit.silence(), SILENT);
            let is_due = |request: &Request<'_>| match request.asked.length {
                Ordering::Equal => is_silent || request.waited >= ALONE,
                _ => is_silent && request.asked.answered >= ANSWERED,
            };
            let requests: Vec<_> = requests.into_iter().filter(is_due).collect();
            (!requests.is_empty()).then_some((service, habit, requests, is_silent.then_some(silence)))
        };
        let mut due: Vec<_> = waiting.into_iter().filter_map(due).collect();
        due.sort_by_key(|(service, _, requests, _)| (Reverse(requests.len()), *service));
        due.truncate(TOLD);
        due.into_iter()
            .map(|(service, habit, requests, silence)| tell(service, &habit, &requests, silence))
            .collect()
    }
}

/// `silence`: since the service answered anybody, ns, if it is never silent for so long.
fn tell((address, port): Service, habit: &Habit, requests: &[Request<'_>], silence: Option<u64>) -> v1::Finding {
    let mut group = Group::default();
    for request in requests {
        let begun = request.asked.first;
        group.include(
            request.flow.id,
            begun,
            request.asked.last.saturating_add(request.waited),
        );
    }
    let all = requests
        .iter()
        .fold(0, |all: u64, request| all.saturating_add(request.waited));
    let longest = requests.iter().map(|request| request.waited).max().unwrap_or(0);
    let who = socket_address(address, port).to_string();
    let many = several(requests.len() as u64, "request", "requests");
    let how = match silence {
        Some(silence) => format!(
            "it answers nobody any more: {} since it did, and it was never silent for longer than {} between two answers",
            duration(silence),
            duration(habit.silence())
        ),
        None => "requests as long as these were answered before on their connections".to_owned(),
    };
    let evidence = vec![
        format!(
            "they wait for {} s in all, {} s at most; the longest answer that is known of it took {}",
            decimal(seconds(all), 1),
            decimal(seconds(longest), 1),
            duration(habit.answer())
        ),
        how,
        "it may also be requests that wait for something to happen (a long poll, a queue), or an answer that was lost before the tap".to_owned(),
        NEXT.to_owned(),
    ];
    v1::Finding {
        who: who.clone(),
        ..finding(
            "UNANSWERED_REQUESTS",
            "WARNING",
            if silence.is_some() { 0.9 } else { 0.7 },
            format!("{who} does not answer {many} that it should have by now"),
            evidence,
            &group,
            &[
                ("requests", requests.len() as f64),
                ("waiting", requests.len() as f64),
                ("longestSeconds", seconds(longest)),
                ("costSeconds", seconds(all)),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_is_unusual_is_forgotten_after_other_answers_and_time() {
        let (mut answers, service) = (Answers::default(), ([1; 16], 80));
        let longest = |answers: &Answers| {
            let habit = answers.services[&service];
            (habit.answer(), habit.silence())
        };
        answers.answered(service, 40 * SECOND, 100 * SECOND);
        answers.answered(service, SECOND, 200 * SECOND);
        for n in 1..2 * u64::from(ANSWERS) - 1 {
            answers.answered(service, 2 * SECOND, (200 + n) * SECOND);
            assert_eq!(longest(&answers), (40 * SECOND, 100 * SECOND));
        }
        // Many answers in no time push nothing out.
        let mut busy = answers.clone();
        (0..3 * ANSWERS).for_each(|_| busy.answered(service, SECOND, 2_300 * SECOND));
        assert_eq!(longest(&busy), (2 * SECOND, 102 * SECOND));
        answers.answered(service, 2 * SECOND, 2_199 * SECOND);
        assert_eq!(longest(&answers), (2 * SECOND, SECOND));
        // Told late, as that of a connection whose next request took long.
        answers.answered(service, SECOND, 300 * SECOND);
        assert_eq!(longest(&answers), (2 * SECOND, SECOND));
    }

    #[test]
    fn services_beyond_the_limit_are_not_known() {
        let mut answers = Answers::default();
        (0..2 * SERVICES as u16).for_each(|port| answers.answered(([1; 16], port), SECOND, SECOND));
        assert_eq!(answers.services.len(), SERVICES);
    }
}
