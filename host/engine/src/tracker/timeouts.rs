//! What ends a flow, and when there is something to do for it: sections 2, 4.2 and 5.

use weir_record::{CloseCause, SetupEnd, tcp_flag};

use super::interval::interval_end;
use crate::config::{Config, SECOND};
use crate::flow::{Flow, Slot, State, TIME_LIMIT, side};
use crate::meta::{Class, Meta};

/// Block idle time (section 5).
pub(super) const BLOCK_IDLE: u64 = SECOND;

/// The timeout of each state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts([u64; State::ALL.len()]);

impl Timeouts {
    pub fn of(config: &Config) -> Self {
        Self(State::ALL.map(|state| match state {
            State::Syn | State::SynAck => config.handshake_timeout,
            State::Mid | State::Up => config.idle_timeout,
            State::ClosedFin | State::ClosedRst => config.linger,
            State::Other => config.other_timeout,
        }))
    }

    #[inline]
    pub const fn get(&self, state: State) -> u64 {
        self.0[state as usize]
    }
}

/// What a flow is closed with before a packet of its key, if it is (section 2 and 4.2).
#[inline]
pub(super) fn ends(flow: &Flow, meta: &Meta, time: u64, timeouts: &Timeouts) -> Option<(CloseCause, SetupEnd)> {
    if time.saturating_sub(flow.last_seen) >= timeouts.get(flow.state) {
        Some(close_cause(flow.state))
    } else if begins_anew(flow, meta) {
        Some((CloseCause::Reuse, SetupEnd::Reuse))
    } else {
        None
    }
}

/// What a flow that times out in this state is closed with.
pub(super) const fn close_cause(state: State) -> (CloseCause, SetupEnd) {
    let cause = match state {
        State::Syn | State::SynAck => CloseCause::Handshake,
        State::Mid | State::Up | State::Other => CloseCause::Idle,
        State::ClosedFin => CloseCause::Fin,
        State::ClosedRst => CloseCause::Rst,
    };
    (cause, SetupEnd::Timeout)
}

/// The earliest time at which a visit has something to do.
#[inline]
pub(super) fn deadline(timeouts: &Timeouts, flow: &Flow, now: u64) -> u64 {
    let mut due = flow.last_seen + timeouts.get(flow.state);
    if flow.interval != 0 {
        due = due.min(interval_end(flow));
    }
    for side in &flow.sides {
        if !side.is(side::IDLE) {
            due = due.min(side.block_last.at(now) + BLOCK_IDLE);
        }
        if side.slot != Slot::Free {
            due = due.min(side.slot_time.at(now) + TIME_LIMIT);
        }
    }
    if flow.pending() {
        due = due.min(setup_begun(flow, now) + TIME_LIMIT);
    }
    due
}

/// When the pending setup began: the first SYN, or the SYN-ACK if no SYN was seen.
#[inline]
pub(super) const fn setup_begun(flow: &Flow, now: u64) -> u64 {
    if flow.sides[0].chain > 0 {
        flow.sides[0].block_first.at(now)
    } else {
        flow.sides[1].slot_time.at(now)
    }
}

/// Section 4.2: whether the packet is a SYN or SYN-ACK that begins a new connection on this key.
#[inline]
fn begins_anew(flow: &Flow, meta: &Meta) -> bool {
    if meta.flags & (tcp_flag::SYN | tcp_flag::RST) != tcp_flag::SYN || meta.class != Class::Tcp {
        return false;
    }
    let s = flow.sender(meta.from_low);
    if flow.sides[s].repeats(meta.seq) {
        return false;
    }
    if meta.flags & tcp_flag::ACK != 0 {
        return matches!(flow.state, State::ClosedFin | State::ClosedRst);
    }
    let simultaneous = flow.state == State::Syn && s == 1;
    !simultaneous
}
