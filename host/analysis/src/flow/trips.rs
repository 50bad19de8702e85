//! Round trips between the tap and either side.

use super::Flow;
use crate::limits::DELAYED_ACK_MOST;
use crate::rtt::Trip;

/// s of a round trip to ns.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    // As `round`, which is a call.
    (seconds * 1e9 + 0.5) as u64
}

impl Flow {
    /// Smallest round trip between tap and server, ns.
    pub fn server_rtt(&self) -> Option<u64> {
        self.trip(0)
    }

    /// Smallest round trip between the tap and the receiver of a side's data, ns. Unknown while responses alone have ended it:
    /// the receiver's application is in them.
    pub fn trip(&self, side: usize) -> Option<u64> {
        let trip = self.by_samples(side)?;
        if trip.least == trip.most {
            return Some(trip.most);
        }
        let handshake = &self.extras.trouble()?.handshake;
        handshake
            .timed(side & 1, &self.setup, trip)
            .map(|timed| timed.min(trip.most))
    }

    /// Smallest round trip of the whole path, ns, as far as it is known beside that to the server.
    pub fn whole_trip(&self, to_server: u64) -> u64 {
        to_server + self.trip(1).unwrap_or(0)
    }

    /// What the samples tell of it.
    pub(super) fn by_samples(&self, side: usize) -> Option<Trip> {
        let most = self.at_most(side)?;
        let is_path = self.setup.has_timed(side) || self.rtt.is_bare(side);
        let late = if is_path { 0 } else { DELAYED_ACK_MOST };
        Some(Trip {
            least: most.saturating_sub(late),
            most,
        })
    }

    /// By how much more than its turns tell the client's time of all of them may be too long, ns: the smallest round trip to it was taken off,
    /// and its round trips were longer by so much. (The server's is told with each transaction.)
    pub fn client_uncertain(&self) -> u64 {
        let Some(turn) = &self.turn else { return 0 };
        let longer = self.rtt.longer(1).map_or(0, nanoseconds);
        let time = turn.time();
        let answered = u64::from(turn.shares().answered);
        let most = longer.saturating_mul(answered).min(time.client + time.think);
        most.saturating_sub(time.client_uncertain)
    }

    /// The same, or more than that, ns.
    pub fn at_most(&self, side: usize) -> Option<u64> {
        self.rtt.min(side).map(nanoseconds)
    }
}
