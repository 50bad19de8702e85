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
}

impl Transfer {
    /// The first data that echoes an ACK passed the tap at `time`. What comes as fast as any tells nothing that the path does not.
    pub fn echoed(&mut self, time: u64, r: &Rtt, path: &Path) {
        if path.other == 0 || (r.rtt as f64) < path.other as f64 * QUEUE + SLACK as f64 {
            return;
        }
        let from = time.saturating_sub(r.rtt);
        let soon = (path.round_trip() / 10).max(SLACK);
        let heard = |by: u64| self.samples.iter().rev().find(|s| s.time <= by);
        let in_flight = |s: &Sample| before(s.ack, r.seq_end).then(|| r.seq_end.wrapping_sub(s.ack));
        let Some(flight) = heard(from.saturating_add(SLACK))
            .filter(|s| s.time.saturating_add(soon) >= from)
            .and_then(in_flight)
        else {
            return;
        };
        let least = heard(from.saturating_add(TICK)).and_then(in_flight).unwrap_or(0);
        self.echoes.push(Echo {
            from,
            to: time,
            flight,
            least,
        });
    }
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
}
