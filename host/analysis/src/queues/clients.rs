//! Queues between the tap and clients, the same the other way round: how long the end of a response took to the client, and the next request
//! from there.

use super::{Hosts, SLACK, Sample, Wait, short};
use crate::limits::DELAYED_ACK;
use crate::route::{Host, Placed};
use crate::turns::Finished;

/// Of hosts of clients of which an ACK came late. What is kept of round trips is by how much they were longer than the smallest of their connection:
/// behind one address may be hosts near and far.
#[derive(Debug, Default)]
pub(crate) struct ClientQueues {
    hosts: Hosts,
    /// Of any host.
    has_late: bool,
}

impl ClientQueues {
    /// An ACK of a client at `time` that no application held back, and its round trip; `own`: the smallest of its connection.
    #[inline]
    pub fn sample(&mut self, client: impl FnOnce() -> Placed<Host>, time: u64, round_trip: u64, own: u64) {
        let longer = round_trip.saturating_sub(own);
        if longer > SLACK || self.has_late {
            self.add(client(), time, longer, own);
        }
    }

    fn add(&mut self, client: Placed<Host>, time: u64, longer: u64, own: u64) {
        // Most hosts have no queue before them.
        if longer > SLACK || self.hosts.known(client).is_some() {
            self.has_late = true;
            let sample = Sample {
                sent: time.saturating_sub(longer),
                round_trip: longer,
            };
            self.hosts.at(client).add(sample, own);
        }
    }

    /// How long the way was for a response that ended at `ended` and a request that began at `asked`, where a queue made it longer than the smallest
    /// round trip of the connection. `acked`: when an ACK of the whole response passed by itself.
    pub fn way(
        &mut self,
        client: impl Fn() -> Placed<Host>,
        own: u64,
        (ended, acked): (u64, Option<u64>),
        asked: u64,
    ) -> Option<Wait> {
        let wait = if self.has_late {
            self.wait(client(), own, ended, asked)
        } else {
            None
        };
        // No timer of an ACK is as short: the client had the response then.
        let way = acked.map(|acked| acked.saturating_sub(ended));
        match way.filter(|way| *way < own.saturating_add(DELAYED_ACK)) {
            Some(way) => {
                self.sample(client, ended.saturating_add(way), way, own);
                Wait::measured(wait, own, way)
            }
            None => wait,
        }
    }

    /// The same when a transaction is over: the first sign of a queue may have come after its request.
    pub fn again(&self, client: impl Fn() -> Placed<Host>, own: Option<u64>, done: &mut Finished) {
        if let (true, None, Some((own, gap))) = (self.has_late, done.client_wait, own.zip(done.client)) {
            done.client_wait = self.wait(client(), own, done.request_time.saturating_sub(gap), done.request_time);
        }
    }

    fn wait(&self, client: Placed<Host>, own: u64, ended: u64, asked: u64) -> Option<Wait> {
        let history = self.hosts.known(client)?;
        let longer = history.wait(0, ended.saturating_add(own), asked)?;
        // All that a connection saw may have waited, or its host is further away than another behind that address.
        let least = own.min(history.least());
        Some(Wait {
            round_trip: short(own.max(least.saturating_add(longer.round_trip.into()))),
            uncertain: short(own - least).saturating_add(longer.uncertain),
            ..longer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// A time that is no slot's edge.
    const T: u64 = 1_700_000_000_123_456_789;

    /// Times in ms after T and round trips of a connection whose smallest is 20 ms; then of one whose smallest is `own`, a response that ended at 1000 and
    /// a request at 1300.
    fn way(samples: &[(u64, u64)], own: u64, acked: Option<u64>) -> Option<(u64, u64)> {
        let mut queues = ClientQueues::default();
        let client = || Host::default().into();
        for (sent, trip) in samples {
            queues.sample(client, T + (sent + trip) * MS, trip * MS, 20 * MS);
        }
        let acked = acked.map(|ms| T + ms * MS);
        let wait = queues.way(client, own * MS, (T + 1000 * MS, acked), T + 1300 * MS)?;
        Some((u64::from(wait.round_trip) / MS, u64::from(wait.uncertain) / MS))
    }

    #[test]
    fn what_passed_around_the_end_of_a_response_waited_as_long() {
        assert_eq!(way(&[(900, 20), (950, 21), (1020, 20)], 20, None), None);
        assert_eq!(way(&[(940, 80), (980, 20), (1010, 20)], 20, None), None, "one alone");
        let (trip, uncertain) = way(&[(980, 80), (1020, 90)], 20, None).expect("a queue");
        assert_eq!(trip, 85);
        assert!((65..=140).contains(&uncertain), "{uncertain}");
        // Nothing passed then: whether the queue still stood is not known.
        let (trip, uncertain) = way(&[(300, 80), (320, 80)], 20, None).expect("a queue");
        assert_eq!(trip, 20);
        assert!(uncertain >= 60, "{uncertain}");
    }

    /// The other host behind the address is 100 ms further away, or the connection was opened in the queue.
    #[test]
    fn hosts_behind_one_address_are_near_and_far() {
        assert_eq!(way(&[(980, 20), (1020, 20)], 120, None), None);
        let (trip, uncertain) = way(&[(980, 80), (1020, 80)], 120, None).expect("a queue");
        assert_eq!(trip, 120);
        assert!(uncertain >= 100, "{uncertain}");
    }

    #[test]
    fn an_ack_of_the_whole_response_tells_its_way() {
        assert_eq!(way(&[], 20, Some(1020)), None);
        assert_eq!(way(&[], 20, Some(1035)), Some((35, 15)));
        assert_eq!(way(&[], 20, Some(1060)), None, "a timer may be in it");
    }
}
