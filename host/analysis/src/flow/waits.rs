//! Requests that have no response, and connections that rest.

use std::cmp::Ordering;

use weir_record::Block;

use super::Flow;
use crate::turns::{Finished, Rest};

/// A request that has no response yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Its packets so far, TAI ns.
    pub first: u64,
    pub last: u64,
    /// Against the last that was answered on the connection.
    pub length: Ordering,
    /// How many were.
    pub answered: u32,
}

/// A connection on which nothing passes for so long, ns, rests.
const REST: u64 = 1_000_000_000;

impl Flow {
    /// A block of `side` is told of; `before`: the newest packet that a record had told of. Where it is the first of what nobody answers, how long
    /// the connection had rested before it is kept.
    pub fn rested(&mut self, side: usize, block: &Block, before: u64) {
        let (side, ns) = (side & 1, block.first.saturating_sub(before));
        let is_kept = |flow: &Self| {
            flow.rest()
                .is_some_and(|rest| rest.side == side && !flow.has_heard(rest))
        };
        if ns < REST || is_kept(self) {
            return;
        }
        let rest = Rest {
            side,
            at: block.first,
            ns,
            samples: self.rtt.samples(side),
        };
        if let Some(turn) = &mut self.turn {
            turn.set_rest(rest);
        }
    }

    pub(super) fn rest(&self) -> Option<Rest> {
        self.turn.as_ref()?.rest()
    }

    /// Anything of the other side that a record tells came behind the rest.
    fn has_heard(&self, rest: Rest) -> bool {
        let other = 1 - rest.side;
        let event = self
            .extras
            .trouble()
            .is_some_and(|trouble| trouble.heard[other] > rest.at);
        let data = || {
            self.turn
                .as_ref()
                .is_some_and(|turn| turn.has_sent_since(other, rest.at))
        };
        event || self.rtt.samples(rest.side) > rest.samples || data()
    }

    /// How long nothing had passed before data of `side`, ns, since which nothing of the other side was heard.
    pub fn rest_before_silence(&self, side: usize) -> Option<u64> {
        let rest = self.rest().filter(|rest| rest.side == side & 1)?;
        (!self.has_heard(rest)).then_some(rest.ns)
    }

    /// First packet of the response in progress, TAI ns.
    pub fn response_begin(&self) -> Option<u64> {
        self.turn.as_ref()?.response_begin()
    }

    /// The server was heard, and nothing that it said was missed.
    fn hears_server(&self) -> bool {
        self.directions[1].packets > 0 && self.counts(1).missed == 0
    }

    /// First packet of a request that has no response yet and may get one, TAI ns.
    pub fn waits_since(&self) -> Option<u64> {
        self.turn.as_ref()?.waits_since().filter(|_| self.may_answer())
    }

    /// Such a request, where nothing says that it did not arrive or that the response was missed.
    pub fn asked(&self) -> Option<Asked> {
        let turn = self.turn.as_ref()?;
        let first = self.waits_since().filter(|_| self.hears_server())?;
        let last = turn.unanswered()?;
        let came_again = self.extras.trouble().is_some_and(|trouble| {
            let repeats = trouble.losses[0].repeats(last, u64::MAX);
            repeats.needed.or(repeats.doubtful).is_some()
        });
        (!came_again).then(|| Asked {
            first,
            last,
            length: turn.against_answered(turn.request_bytes()),
            answered: turn.shares().answered,
        })
    }

    /// How long an answer to the last request was due, ns, that never came. `None`: less than `least`, or it may have come where the capture
    /// missed it.
    pub fn unanswered(&self, last: &Finished, least: impl FnOnce() -> u64) -> Option<u64> {
        let due = last.request_bytes > 0
            && last.response.is_none()
            && self.turn.as_ref()?.against_answered(last.request_bytes).is_eq();
        if !due || !self.hears_server() {
            return None;
        }
        let least = least();
        let asked = last.request_time.saturating_add(last.request);
        // A FIN that comes with the request ends no wait.
        let until = match self.end_time.saturating_sub(asked) {
            early if early < least => last.gave_up.max(self.last),
            _ => last.gave_up,
        };
        Some(until.saturating_sub(asked)).filter(|wait| *wait >= least)
    }
}
