//! What a distant sender had in flight: its data tells by the timestamps that it echoes which ACK it had heard.
//!
//! A tap beside the receiver sees no more in flight than is behind it. Where a queue stands before the tap, the smallest round
//! trip to the sender does not tell how much is on its way there.

use weir_record::Rtt;

use super::Transfer;
use super::path::{Path, SLACK};
use super::sample::Sample;
use super::trips::QUEUE;
use crate::seq::before;

/// Segments in flight from which on a sender that is never silent sends soon behind an ACK: the echo is late by a part of the
/// round trip that no queue is taken for.
const MANY: u32 = 8;
/// ns of a tick of timestamps where hosts are old. ACKs with one TSval passed in one tick, and their sender may have heard all of them.
const TICK: u64 = 10_000_000;

/// What two samples acknowledge is little if it is at most this part of what is in flight.
const FEW: u32 = 4;

/// From when the receiver's ACK passed the tap until the first data did that its sender let go behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Echo {
    from: u64,
    pub to: u64,
    /// Bytes in flight over the whole path, with that data, and what is sure where ticks are long.
    pub flight: u32,
    least: u32,
}

impl Echo {
    /// Round trip from the tap to the sender and back, ns, if so much was in flight that nothing else can have taken as long.
    pub fn round_trip(&self, path: &Path) -> Option<u64> {
        (self.least >= MANY * path.payload).then_some(self.to.saturating_sub(self.from))
    }

    /// ACKs that passed from then on had not been heard when this data was sent, and what passed before it was sent before.
    const fn unheard(&self) -> u64 {
        self.from.saturating_add(TICK)
    }

    /// Whether what passed the tap at `next` had been sent when its sender heard the ACK that had passed at `acked`.
    pub const fn covers(&self, acked: u64, next: u64) -> bool {
        self.unheard() <= acked && next <= self.to
    }

    /// Since when all that passed up to this data had been sent: its sender heard the first ACK that it does not echo then. `samples`: what
    /// tells of ACKs. `None`: of none.
    pub fn sent_by(&self, samples: &[Sample], path: &Path) -> Option<u64> {
        let next = samples.get(samples.partition_point(|s| s.time < self.unheard()))?;
        Some(next.time.saturating_add(path.other))
    }
}

impl Transfer {
    /// The first data that echoes an ACK passed the tap at `time`. What comes as fast as any tells nothing that the path does not.
    pub fn echoed(&mut self, time: u64, r: &Rtt, path: &Path) {
        if path.other == 0 || (r.rtt as f64) < path.other as f64 * QUEUE + SLACK as f64 {
            return;
        }
        let from = time.saturating_sub(r.rtt);
        let soon = (path.round_trip() / 10).max(SLACK);
        let around = |by: u64| self.samples.split_at(self.samples.partition_point(|s| s.time <= by));
        let in_flight = |s: &Sample| before(s.ack, r.seq_end).then(|| r.seq_end.wrapping_sub(s.ack));
        let (heard, later) = around(from.saturating_add(SLACK));
        let known = heard.last().and_then(|s| match s.time.saturating_add(soon) >= from {
            true => in_flight(s),
            false => between(s, later.first()?, from, in_flight),
        });
        let Some(flight) = known else { return };
        let (heard, _) = around(from.saturating_add(TICK));
        let least = heard.last().and_then(in_flight).unwrap_or(0);
        self.echoes.push(Echo {
            from,
            to: time,
            flight,
            least,
        });
    }
}

/// What was in flight at a time between two samples, on the line between them, if that differs little: not each ACK has a record.
fn between(last: &Sample, next: &Sample, at: u64, in_flight: impl Fn(&Sample) -> Option<u32>) -> Option<u32> {
    let (most, least) = (in_flight(last)?, in_flight(next)?);
    let acked = most.checked_sub(least).filter(|acked| *acked <= most / FEW)?;
    let share = at.saturating_sub(last.time) as f64 / next.time.saturating_sub(last.time).max(1) as f64;
    Some(most - (f64::from(acked) * share) as u32)
}

/// The echo that tells most of the time from `since` to `to`, if that is more than half of it.
pub(super) fn echo(echoes: &[Echo], since: u64, to: u64) -> Option<&Echo> {
    let within = |echo: &Echo| echo.to.min(to).saturating_sub(echo.from.max(since));
    let longest = echoes.iter().max_by_key(|echo| within(echo))?;
    (2 * within(longest) > to.saturating_sub(since)).then_some(longest)
}

#[cfg(test)]
mod tests {
    use weir_record::Rtt;

    use super::*;
    use crate::limits::charges::Cause;
    use crate::limits::spans::Sure;
    use crate::limits::tests::{MS, TAP_AT_RECEIVER, rtt};

    /// Ten segments in 100 ms, so far apart, from a slow link before the tap, where 20 are on their way: 200 ms, of which 80 are the path.
    /// Shares of the receiver's window, of so many segments, and of the link, %, if the data echoes ACKs or does not; and of the former in
    /// which the link was busy, too.
    fn shares(window: u32, apart: u64, echoes: bool) -> [u64; 3] {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        t.measured = Some(0);
        for n in 1..=100u32 {
            let passed = u64::from(n / 10) * 100 * MS + u64::from(n % 10) * apart;
            let end = 1_000 * n;
            if echoes && n % 20 == 0 {
                let echo = Rtt {
                    seq_end: end,
                    ..rtt(200 * MS - apart, 0, 0)
                };
                t.echoed(passed, &echo, &path);
            }
            t.sample(passed + 100_000, &rtt(100_000, end, 0), Some(1_000 * window), &path);
        }
        let charged = t.settle(10 * MS, 1_000 * MS, 1_000 * MS, &path);
        let [window, link] = [Cause::ReceiverWindow, Cause::Bandwidth].map(|cause| charged.by.of(cause));
        [window, link, charged.queued_window].map(|ns| ns / (10 * MS))
    }

    /// Without what the data echoes, its sender seems to have eight segments on their way.
    #[test]
    fn a_window_that_fills_a_queue_before_the_tap_limits_its_sender() {
        let [window, _, queued] = shares(20, 10 * MS, true);
        assert!(window > 80 && queued > 80, "{window} {queued}");
        assert_eq!(shares(20, 10 * MS, false)[0], 0);
        assert_eq!(shares(40, 10 * MS, true)[0], 0);
    }

    /// Others have their turns in that queue.
    #[test]
    fn what_waits_in_a_queue_before_the_tap_waits_for_the_link() {
        let [_, link, _] = shares(40, MS, true);
        assert!(link > 80, "{link}");
        assert_eq!(shares(40, MS, false)[1], 0);
    }

    #[test]
    fn an_echo_as_fast_as_any_tells_nothing_new() {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        t.sample(MS, &rtt(100_000, 1_000, 0), None, &path);
        for (ns, kept) in [(90, 0), (110, 1)] {
            let echo = Rtt {
                seq_end: 9_000,
                ..rtt(ns * MS, 0, 0)
            };
            t.echoed((ns + 1) * MS, &echo, &path);
            assert_eq!(t.echoes.len(), kept, "{ns} ms");
        }
        // The ACK that was heard is not known.
        let late = Rtt {
            seq_end: 9_000,
            ..rtt(150 * MS, 0, 0)
        };
        t.echoed(200 * MS, &late, &path);
        assert_eq!(t.echoes.len(), 1);
    }

    /// Data that echoes an ACK which passed at 120 ms: records tell of those at 100 and 140 ms.
    #[test]
    fn what_was_in_flight_lies_between_two_acks() {
        let flight = |acked: u32| {
            let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
            t.sample(100 * MS, &rtt(100_000, 10_000, 0), None, &path);
            t.sample(140 * MS, &rtt(100_000, 10_000 + acked, 0), None, &path);
            let echo = Rtt {
                seq_end: 40_000,
                ..rtt(200 * MS, 0, 0)
            };
            t.echoed(320 * MS, &echo, &path);
            t.echoes.first().map(|echo| echo.flight)
        };
        assert_eq!(flight(4_000), Some(28_000));
        assert_eq!(flight(8_000), None, "too much to tell");
    }

    /// All was acknowledged at 1,100 ms, and the next segment passed at 2,000 ms. It echoes an ACK of so many ms before the last one, or none.
    /// What is charged to the application, and doubtful, ms.
    fn silence(heard: Option<u64>) -> [u64; 2] {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        t.measured = Some(0);
        for n in 1..=11u32 {
            let at = u64::from(n) * 100 * MS;
            t.sample(at, &rtt(100_000, 10_000 * n, 0), Some(100_000), &path);
        }
        t.known_span(1_300 * MS, 2_000 * MS, (Cause::Application, Sure::Yes), &path);
        if let Some(ms) = heard {
            let echo = Rtt {
                seq_end: 111_000,
                ..rtt((900 + ms) * MS, 0, 0)
            };
            t.echoed(2_000 * MS, &echo, &path);
        }
        t.sample(2_001 * MS, &rtt(MS, 111_000, 0), Some(100_000), &path);
        let charged = t.settle(100 * MS, 2_001 * MS, 2_001 * MS, &path);
        [charged.by.of(Cause::Application), charged.doubtful].map(|ns| ns / MS)
    }

    #[test]
    fn what_had_been_sent_waited_for_no_application() {
        assert_eq!(silence(None), [700, 200]);
        assert_eq!(silence(Some(0)), [700, 200], "its sender had heard the last ACK");
        assert_eq!(silence(Some(100)), [0, 0]);
    }
}
