//! What only some flows have, and the boxes of those that are over.

use super::Flow;
use super::trouble::Trouble;
use crate::icmp::Errors;
use crate::ids::Counted;
use crate::limits::Limits;
use crate::losses::Losses;
use crate::resets::Reset;
use crate::turns::{Responses, Turn};

/// What only some flows have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras(Option<Box<Extra>>);

#[derive(Clone, Debug, Default)]
struct Extra {
    trouble: Option<Box<Trouble>>,
    /// From the first transfer on that takes more than a flight.
    limits: Option<Box<Limits>>,
    /// Of a connection that was set up.
    reset: Option<Box<Reset>>,
    errors: Option<Box<Errors>>,
}

impl Extras {
    #[inline]
    pub fn trouble(&self) -> Option<&Trouble> {
        self.0.as_ref()?.trouble.as_deref()
    }

    #[inline]
    pub fn trouble_mut(&mut self) -> Option<&mut Trouble> {
        self.0.as_mut()?.trouble.as_deref_mut()
    }

    #[inline]
    pub fn limits(&self) -> Option<&Limits> {
        self.0.as_ref()?.limits.as_deref()
    }

    #[inline]
    pub fn limits_mut(&mut self) -> Option<&mut Limits> {
        self.0.as_mut()?.limits.as_deref_mut()
    }

    #[inline]
    pub fn reset(&self) -> Option<&Reset> {
        self.0.as_ref()?.reset.as_deref()
    }

    pub fn errors(&self) -> Option<&Errors> {
        self.0.as_ref()?.errors.as_deref()
    }

    /// What is known of losses, and errors about the flow's packets.
    pub(super) fn losses_mut(&mut self) -> Option<(&mut [Losses; 2], Option<&Errors>)> {
        let extra = self.0.as_mut()?;
        Some((&mut extra.trouble.as_mut()?.losses, extra.errors.as_deref()))
    }

    /// `new`: if there were none.
    pub(super) fn make_errors(&mut self, new: impl FnOnce() -> Errors) -> &mut Errors {
        let extra = self.0.get_or_insert_default();
        extra.errors.get_or_insert_with(|| Box::new(new()))
    }

    pub(super) fn set_reset(&mut self, reset: Reset) {
        self.0.get_or_insert_default().reset = Some(Box::new(reset));
    }

    /// A packet of `side` that is no RST passed at `time`.
    #[inline]
    pub fn sent(&mut self, side: usize, time: u64) {
        if let Some(reset) = self.0.as_mut().and_then(|extra| extra.reset.as_mut()) {
            reset.sent(side & 1, time);
        }
    }

    /// `ids`: the newest of either side, or 0.
    pub(super) fn make_trouble(&mut self, ids: [u16; 2], pool: &mut Pool) -> &mut Trouble {
        let extra = self.0.get_or_insert_default();
        extra.trouble.get_or_insert_with(|| pool.trouble(ids))
    }

    pub(super) fn make_limits(&mut self, pool: &mut Pool) -> &mut Limits {
        let extra = self.0.get_or_insert_default();
        extra.limits.get_or_insert_with(|| pool.limits())
    }
}

/// Boxes of closed flows, for reuse.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // the boxes are what is kept
pub(crate) struct Pool {
    turns: Vec<Box<Turn>>,
    pub responses: Responses,
    troubles: Vec<Box<Trouble>>,
    limits: Vec<Box<Limits>>,
}

/// Boxes kept at most.
const POOLED: usize = 4096;

impl Pool {
    pub fn turn(&mut self) -> Box<Turn> {
        self.turns.pop().unwrap_or_default()
    }

    /// `ids`: the newest of either side, or 0.
    fn trouble(&mut self, ids: [u16; 2]) -> Box<Trouble> {
        let mut trouble = self.troubles.pop().unwrap_or_default();
        trouble.ids = ids.map(Counted::from);
        trouble
    }

    fn limits(&mut self) -> Box<Limits> {
        self.limits.pop().unwrap_or_default()
    }

    /// Take the boxes of a flow that is done.
    pub fn take_back(&mut self, flow: &mut Flow) {
        if let Some(mut turn) = flow.turn.take()
            && self.turns.len() < POOLED
        {
            *turn = Turn::default();
            self.turns.push(turn);
        }
        let Some(extra) = flow.extras.0.take() else { return };
        if let Some(mut trouble) = extra.trouble
            && self.troubles.len() < POOLED
        {
            trouble.clear();
            self.troubles.push(trouble);
        }
        if let Some(mut limits) = extra.limits
            && self.limits.len() < POOLED
        {
            limits.clear();
            self.limits.push(limits);
        }
    }
}
