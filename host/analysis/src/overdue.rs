//! Requests that wait for longer than their service ever takes, while their connections are open (`docs/src/findings.md`).
//! Memory: [`SERVICES`] services.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::flow::{Flow, Service};

/// Services that are told apart.
const SERVICES: usize = 4096;
/// Known of a service are its last answers, so many to twice as many: where none comes any more, nothing is forgotten.
const ANSWERS: u32 = 1000;
/// Answers from which on it is known how long a service is silent.
const KNOWN: u32 = 20;
/// A wait or a silence is unusual from so long on, ns, and from so many times the longest that is known.
const LEAST: u64 = 10_000_000_000;
const TIMES: u64 = 3;

/// The longest of a row of answers, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Longest {
    /// Last packet of a request to the first of its response.
    answer: u64,
    /// Between two answers.
    silence: u64,
}

/// What a service's answers were like.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    answers: u32,
    row: Longest,
    before: Longest,
    /// First packet of the newest, TAI ns.
    newest: u64,
}

impl Habit {
    fn longest(&self) -> Longest {
        Longest {
            answer: self.row.answer.max(self.before.answer),
            silence: self.row.silence.max(self.before.silence),
        }
    }

    /// Nobody was answered for so long, ns, and the service is never silent for so long.
    fn is_silent(&self, silence: u64) -> bool {
        self.answers >= KNOWN && is_unusual(silence, self.longest().silence)
    }
}

const fn is_unusual(time: u64, longest: u64) -> bool {
    time >= LEAST && time / TIMES >= longest
}

/// A request that should have been answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overdue<'a> {
    pub flow: &'a Flow,
    pub service: Service,
    /// Its last packet, TAI ns.
    pub asked: u64,
    /// Since then, ns.
    pub waited: u64,
    /// The longest wait for an answer of this service that is known, ns.
    pub longest: u64,
    /// Since its service answered anybody, ns, if it is never silent for so long.
    pub silence: Option<u64>,
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
        let habit = match self.services.get_mut(&service) {
            Some(habit) => habit,
            None if is_full => return,
            None => self.services.entry(service).or_default(),
        };
        if habit.answers > 0 && habit.answers.is_multiple_of(ANSWERS) {
            habit.before = std::mem::take(&mut habit.row);
        }
        habit.row.answer = habit.row.answer.max(took);
        if habit.newest > 0 {
            habit.row.silence = habit.row.silence.max(at.saturating_sub(habit.newest));
        }
        habit.answers = habit.answers.saturating_add(1);
        habit.newest = habit.newest.max(at);
    }

    /// The requests that are overdue at `now`, TAI ns. A request as long as the last that was answered on its connection is known to get an
    /// answer; one that is longer, where its service answers nobody any more; a shorter one may be a notice.
    pub fn overdue<'a>(&self, flows: impl Iterator<Item = &'a Flow> + Clone, now: u64) -> Vec<Overdue<'a>> {
        let waits = |flow: &'a Flow| {
            let (asked, length) = flow.asked().filter(|(_, length)| *length != Ordering::Less)?;
            let service = flow.service();
            let habit = self.services.get(&service)?;
            let (waited, longest) = (now.saturating_sub(asked), habit.longest().answer);
            let request = Overdue {
                flow,
                service,
                asked,
                waited,
                longest,
                silence: None,
            };
            is_unusual(waited, longest).then_some((request, length))
        };
        let waiting: Vec<_> = flows.clone().filter_map(waits).collect();
        if waiting.is_empty() {
            return Vec::new();
        }
        let known = |(request, _): &(Overdue<'_>, _)| Some((request.service, *self.services.get(&request.service)?));
        let mut habits: HashMap<Service, Habit> = waiting.iter().filter_map(known).collect();
        // Answers of transactions in progress are not told of yet.
        for flow in flows {
            if let Some((at, habit)) = flow.response_begin().zip(habits.get_mut(&flow.service())) {
                habit.newest = habit.newest.max(at);
            }
        }
        let heard = |(request, length): (Overdue<'a>, Ordering)| {
            let habit = habits.get(&request.service)?;
            let silence = Some(now.saturating_sub(habit.newest)).filter(|silence| habit.is_silent(*silence));
            (length.is_eq() || silence.is_some()).then_some(Overdue { silence, ..request })
        };
        waiting.into_iter().filter_map(heard).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_is_unusual_is_forgotten_after_other_answers_and_not_with_time() {
        let (mut answers, service) = (Answers::default(), ([1; 16], 80));
        let longest = |answers: &Answers| answers.services[&service].longest();
        answers.answered(service, 40 * SECOND, 100 * SECOND);
        answers.answered(service, SECOND, 200 * SECOND);
        for n in 1..2 * u64::from(ANSWERS) - 1 {
            answers.answered(service, 2 * SECOND, (200 + n) * SECOND);
            assert_eq!(longest(&answers).answer, 40 * SECOND);
            assert_eq!(longest(&answers).silence, 100 * SECOND);
        }
        answers.answered(service, 2 * SECOND, 100_000 * SECOND);
        assert_eq!(longest(&answers).answer, 2 * SECOND);
        // Told late, as that of a connection whose next request took long.
        let silence = longest(&answers).silence;
        answers.answered(service, SECOND, 300 * SECOND);
        assert_eq!(longest(&answers).silence, silence);
    }

    #[test]
    fn services_beyond_the_limit_are_not_known() {
        let mut answers = Answers::default();
        (0..2 * SERVICES as u16).for_each(|port| answers.answered(([1; 16], port), SECOND, SECOND));
        assert_eq!(answers.services.len(), SERVICES);
    }
}
