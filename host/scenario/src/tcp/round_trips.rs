//! How long a sender waits for an acknowledgement (RFC 6298).

use crate::config::Stack;
use crate::{Time, from_ms, from_s};

/// What the samples of the round trip give.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    /// Smoothed, ns; 0 before the first sample.
    smoothed: Time,
    variance: Time,
}

impl RoundTrips {
    /// Smoothed, ns; 0 before the first sample.
    pub fn smoothed(&self) -> Time {
        self.smoothed
    }

    pub fn is_known(&self) -> bool {
        self.smoothed > 0
    }

    /// RFC 6298 2.2 and 2.3.
    pub fn sample(&mut self, rtt: Time) {
        let rtt = rtt.max(1);
        if self.is_known() {
            self.variance = (3 * self.variance + self.smoothed.abs_diff(rtt)) / 4;
            self.smoothed = (7 * self.smoothed + rtt) / 8;
        } else {
            self.smoothed = rtt;
            self.variance = rtt / 2;
        }
    }

    /// The retransmission timeout before any backing off, ns.
    pub fn timeout(&self, stack: &Stack) -> Time {
        if !self.is_known() {
            return from_s(stack.initial_rto_s);
        }
        let floor = from_ms(stack.min_rto_ms);
        if stack.min_rto_is_variance {
            self.smoothed + (4 * self.variance).max(floor)
        } else {
            (self.smoothed + 4 * self.variance).max(floor)
        }
    }
}
