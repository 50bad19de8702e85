//! Window scales that are not applied as agreed.

use weir_messages::v1;

use crate::ceilings::{Mishap, is_stuck, mishap};
use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::message::seconds;
use crate::numbers::{connections, decimal};
use crate::shares::Measure;

/// Connections with such scales.
#[derive(Clone, Debug, Default)]
pub(super) struct Mishaps {
    group: Group,
    shift: u8,
    stripped: u64,
    ignored: u64,
    unheard: u64,
    /// Connections whose windows stayed below a segment, by whatever cause.
    stuck: u64,
    /// Waits for the windows that a wrong scale left.
    pub ns: u64,
}

impl Mishaps {
    /// A connection that is over.
    pub fn connection(&mut self, flow: &Flow, m: &Measure) {
        let mut told = None;
        for side in 0..2 {
            self.stuck += u64::from(is_stuck(flow, side));
            if let Some(mishap) = mishap(flow, side, m) {
                let before = self.group.count();
                self.group.add(flow);
                let is_first = self.group.count() > before;
                // A client that does not know of the scale neither applies its own nor the server's: that shows what it cost.
                let shows_more = matches!((told, mishap), (Some(Mishap::Ignored(_)), Mishap::Unheard(_)));
                if is_first || shows_more {
                    let (Mishap::Applied(shift)
                    | Mishap::Stripped(shift)
                    | Mishap::Ignored(shift)
                    | Mishap::Unheard(shift)) = mishap;
                    self.shift = shift;
                    self.stripped += u64::from(matches!(mishap, Mishap::Stripped(_)));
                    self.ignored += u64::from(matches!(mishap, Mishap::Ignored(_)));
                    self.ignored -= u64::from(shows_more);
                    self.unheard += u64::from(matches!(mishap, Mishap::Unheard(_)));
                }
                told = Some(mishap);
                if let (true, Some(limits)) = (mishap.is_in_windows(), flow.extras.limits()) {
                    let waited = limits.sides[1 - side].total.by.receiver();
                    self.ns = self.ns.saturating_add(waited);
                }
            }
        }
    }

    pub fn finding(&self) -> Option<v1::Finding> {
        let elsewhere = self.stripped + self.ignored + self.unheard;
        let mut applied = self.group.count() - elsewhere;
        // A box scales the windows of all; those of a receiver without room meet a power of two by chance.
        if 2 * applied < self.stuck {
            applied = 0;
        }
        // A scale that only the tap does not see costs nothing.
        let costs = applied + self.unheard > 0;
        if !costs && self.stripped + self.ignored == 0 {
            return None;
        }
        let shift = self.shift;
        let mut evidence = Vec::new();
        let mut values = vec![("shift", f64::from(shift))];
        if applied > 0 {
            evidence.push(format!(
                "{}: windows fell to 1/{} right after the start and stayed, without data to fill them: a box scales by {shift} or more although the handshake says otherwise",
                connections(applied),
                1u32 << shift
            ));
        }
        if self.unheard > 0 {
            evidence.push(format!(
                "{}: the sender goes on in pieces of exactly as many bytes as the field of the window says, which its receiver means 2^{shift} times as large: it does not know of the scale that the handshake shows at the tap; the option was taken out on its way to it",
                connections(self.unheard),
            ));
        }
        if costs {
            values.push(("costSeconds", seconds(self.ns)));
            evidence.push(format!(
                "senders waited {} s in all for such windows there",
                decimal(seconds(self.ns), 3)
            ));
        }
        if self.stripped > 0 {
            evidence.push(format!(
                "{}: more in flight than an unscaled window can allow: the peers use a scale (at least {shift}) that the handshake at the tap does not show; the option was taken out before it",
                connections(self.stripped)
            ));
        }
        if self.ignored > 0 {
            evidence.push(format!(
                "{}: the client's first ACK offers as much as its SYN, unscaled, which would be {} times as much by the scale that both agree on at the tap: the client does not scale, its SYN-ACK lost the option behind the tap. The server may send more than there is room for, and the client takes the server's windows for too small",
                connections(self.ignored),
                1u32 << shift
            ));
        }
        let otherwise = if costs {
            "it may also be a receiver that really has so little room from then on: its windows would then close at other times, too"
        } else if self.stripped > 0 {
            "it may also be ACKs that the capture missed, or a sender that heeds no windows, as generators of test captures write them"
        } else {
            "it may also be clients that have so large buffers: a tap at the client shows its SYN-ACK"
        };
        evidence.push(otherwise.to_owned());
        evidence.push(
            "next: find the box that takes out or ignores the window scale option (firewall, load balancer, old router): compare the SYNs on both sides of it".to_owned(),
        );
        Some(finding(
            "WINDOW_SCALE_MISHAP",
            if costs { "CRITICAL" } else { "WARNING" },
            if costs { 0.9 } else { 0.7 },
            "A window scale is not applied as agreed".to_owned(),
            evidence,
            &self.group,
            &values,
        ))
    }
}
