//! How late the end of a transfer came to its receiver: what passed the tap at once may wait behind it for a slow link. Records time the
//! first segments of a flight, not its last.

use weir_record::Rtt;

use super::Transfer;
use super::path::{Path, SLACK, is_prompt};
use super::sample::Sample;
use crate::queues::Wait;
use crate::shares::on_wire;

/// Round trips from which on their fastest tells what the link takes.
const ENOUGH: u32 = 4;
/// A round trip that is above the smallest by so many times what those before it were is the first sign of a queue.
const FIRST_SIGN: u64 = 4;
/// Data that passes the tap so many halves as fast as a link behind it takes it, or faster, makes a queue grow there.
const FASTER: u64 = 3;

/// Whether an ACK is of two full segments at least, of which the first was timed up to `end`, and of less than all: the second had it sent
/// (RFC 1122 4.2.3.2), and the rest was not there.
fn is_of_two(end: u32, ack: u32, flight: u32, path: &Path) -> bool {
    let more = ack.wrapping_sub(end);
    flight > 0 && path.payload > 0 && more >= path.payload && more <= i32::MAX as u32
}

/// Bytes, and the time that they took, ns; 0: not known, or none.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    bytes: u64,
    ns: u64,
}

impl Rate {
    fn is_faster(self, other: Self) -> bool {
        u128::from(self.bytes) * u128::from(other.ns) > u128::from(other.bytes) * u128::from(self.ns)
    }

    /// What so many bytes take, ns.
    fn time(self, bytes: u64) -> u64 {
        let ns = u128::from(bytes) * u128::from(self.ns) / u128::from(self.bytes.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// What a link takes at most, by its own round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    /// Of bytes on the wire.
    rate: Rate,
    /// Round trips that tell of it, and the smallest of all, ns.
    trips: u32,
    base: u64,
}

impl Passed {
    /// A timed segment and what was acknowledged with it took at most what its round trip was above the smallest: the link is
    /// as fast as the fastest of these.
    pub fn sample(&mut self, r: &Rtt, path: &Path) {
        let alone = r.ack == r.seq_end;
        let tells = |base: &u64| {
            is_prompt(r.rtt, r.flight, alone, path.payload, Some(*base)) || is_of_two(r.seq_end, r.ack, r.flight, path)
        };
        let Some(base) = path.base.filter(tells) else {
            return;
        };
        // A smaller round trip than all before makes them longer.
        self.rate.ns = self.rate.ns.saturating_add(self.base.saturating_sub(base));
        self.base = base;
        let ns = r.rtt.saturating_sub(base);
        if ns == 0 {
            return;
        }
        let more = u64::from(r.ack.wrapping_sub(r.seq_end));
        let bytes = on_wire(more.saturating_add(path.payload.into()), path.payload);
        let new = Rate { bytes, ns };
        if self.trips == 0 || new.is_faster(self.rate) {
            self.rate = new;
        }
        self.trips = self.trips.saturating_add(1);
    }

    /// Whether several round trips tell of a link that takes longer than hosts may.
    const fn is_slow(&self) -> bool {
        self.trips >= ENOUGH && self.rate.ns >= SLACK
    }
}

/// How fast a link takes what waits before it, in bytes of payload; it may be faster.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain(Rate);

impl Drain {
    /// The last sample is new. Where it is the first sign of a queue, what it acknowledged went on at the link's pace, or slower where the queue began after
    /// the sample before: the fastest is kept.
    pub fn sample(&mut self, samples: &[Sample], base: Option<u64>) {
        let (Some((last, before)), Some(base)) = (samples.split_last(), base) else {
            return;
        };
        let Some(one) = before.last() else { return };
        let above = |s: &Sample| s.rtt.saturating_sub(base);
        let queue = above(last);
        // Where round trips differ anyway (jitter, a queue that always stands), a long one tells nothing of those after it.
        let is_first = |s: &Sample| above(s) <= queue / FIRST_SIGN;
        if queue <= SLACK || !before.iter().rev().all(is_first) {
            return;
        }
        // Of one flight: the link had no rest.
        if one.flight == 0 || last.sent().saturating_sub(one.time) > base / 2 {
            return;
        }
        let new = Rate {
            bytes: last.ack.wrapping_sub(one.ack).into(),
            ns: last.time.saturating_sub(one.time),
        };
        if self.0.ns == 0 || new.is_faster(self.0) {
            self.0 = new;
        }
    }

    /// Whether a queue grew before the link behind so many bytes that passed the tap within `passed` ns: faster than it takes them.
    fn grows(self, bytes: u64, passed: u64) -> bool {
        self.0.time(bytes) > passed.saturating_mul(FASTER) / 2
    }
}

/// What passed the tap as one transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flown {
    /// First and last packet.
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
    /// Sequence number behind it.
    pub end: u32,
    /// When its receiver answered, and so had all of it.
    pub until: u64,
}

/// How much later than the smallest round trip says the end of a transfer came, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The best guess.
    pub late: u64,
    /// All of it on the wire of the slow link, where its rate is known or guessed.
    pub wire: u64,
    /// Of `late`, what is guessed.
    pub guessed: u64,
    /// The truth is at most so far from it.
    pub uncertain: u64,
}

impl Tail {
    /// `trip`: the smallest round trip from the tap to the receiver. `transfer`: none that took longer than a flight is known.
    pub fn new(transfer: Option<&Transfer>, flown: &Flown, trip: u64, path: &Path) -> Self {
        let soonest = flown.last.saturating_add(trip);
        let passed = transfer
            .map(|transfer| transfer.passed)
            .filter(|passed| passed.trips > 0);
        // The last ACK that came at once and was not that of the end, or that of a first segment: it may have left the link before the tap.
        let behind_first = flown.bytes.saturating_sub(path.payload.into());
        let mut at = (flown.first, flown.first.saturating_add(trip), behind_first);
        let (mut known, mut latest) = (0, flown.until);
        let heard = transfer.into_iter().flat_map(|transfer| transfer.samples.iter().rev());
        for s in heard.filter(|s| s.time <= flown.until) {
            let left = flown.end.wrapping_sub(s.ack);
            if left == 0 || left > i32::MAX as u32 {
                latest = latest.min(s.time);
            } else if u64::from(left) > flown.bytes {
                break;
            } else if s.is_prompt(path) || is_of_two(s.end, s.ack, s.flight, path) {
                at = (s.sent(), s.time, left.into());
                known = s.time.saturating_sub(soonest);
                break;
            }
        }
        let (sent, since, left) = at;
        let drain = transfer
            .map(|transfer| transfer.drain)
            .filter(|drain| drain.grows(left, flown.last.saturating_sub(sent)));
        let time = |bytes: u64| {
            let wire = on_wire(bytes, path.payload);
            match (path.link, drain) {
                (Some(link), _) => (wire as f64 / link * 1e9) as u64,
                (None, Some(Drain(rate))) => rate.time(bytes),
                (None, None) => passed.map_or(0, |passed| passed.rate.time(wire)),
            }
        };
        let whole = since
            .saturating_add(time(left))
            .min(latest)
            .saturating_sub(soonest)
            .max(known);
        let more = whole - known;
        let more = if more < SLACK { 0 } else { more };
        let is_given = path.link.is_some();
        let is_told = is_given || drain.is_some() || passed.is_some_and(|passed| passed.is_slow());
        Self {
            late: known + if is_told { more } else { 0 },
            wire: if is_told { time(flown.bytes) } else { 0 },
            guessed: if is_told && !is_given { more } else { 0 },
            uncertain: if is_given { 0 } else { more },
        }
    }

    /// With the queue that what passed around a request tells of, where `own` is the smallest round trip: two signs of one queue.
    pub fn queued(self, wait: Wait, own: u64) -> Self {
        let wire = u64::from(wait.on_wire);
        // 0: it was not known then.
        let queue = u64::from(wait.round_trip).saturating_sub(own);
        Self {
            late: self.late.saturating_add(wire).max(queue),
            wire: self.wire.saturating_add(wire),
            ..self
        }
    }

    /// Without what passed while the transfer went on, which took that long (ns).
    pub fn behind(self, transfer: u64) -> Self {
        Self {
            wire: self.wire.saturating_sub(transfer).min(self.late),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::tests::{MS, TAP_BETWEEN, rtt};

    /// Ten segments of 1,000 bytes at once, behind 60 ms, of which an ACK came after so many ms and left so many bytes.
    fn tail(samples: &[(u64, u32)], until: u64, path: &Path) -> Tail {
        let mut t = Transfer::default();
        for (at, left) in samples {
            let end = 10_000 - left;
            t.sample(at * MS, &rtt(at * MS, end, *left), None, path);
        }
        let flown = Flown {
            first: 0,
            last: 0,
            bytes: 10_000,
            end: 10_000,
            until: until * MS,
        };
        Tail::new(Some(&t), &flown, 60 * MS, path)
    }

    #[test]
    fn until_an_ack_of_less_the_end_was_not_there() {
        let at_once = tail(&[(60, 9_000)], 300, &TAP_BETWEEN);
        assert_eq!(at_once, Tail::default());
        // One round trip tells of 10 ms for a segment, which is a guess, and of no more than the other side let it.
        for (until, more) in [(300, 90), (100, 30), (70, 0)] {
            let one = tail(&[(70, 9_000)], until, &TAP_BETWEEN);
            assert_eq!((one.late / MS, one.uncertain / MS), (10, more), "{until}");
        }
        // Or than its ACK did.
        assert_eq!(tail(&[(70, 9_000), (110, 0)], 300, &TAP_BETWEEN).uncertain / MS, 40);
        // What came after the other side went on tells nothing.
        assert_eq!(tail(&[(70, 9_000)], 65, &TAP_BETWEEN).late, 0);
    }

    /// The second of two full segments had the ACK sent, and what is less than two behind them was not there.
    #[test]
    fn an_ack_of_two_segments_tells_of_the_end_behind_them() {
        let of = |segments: u32| {
            let mut t = Transfer::default();
            let ack = Rtt {
                rtt: 90 * MS,
                seq_end: 1_000,
                ack: 1_000 * segments,
                flight: 500,
                window: 1_000,
                tcp_flags: 0,
            };
            t.sample(90 * MS, &ack, None, &TAP_BETWEEN);
            let flown = Flown {
                first: 0,
                last: 0,
                bytes: 1_000 * u64::from(segments) + 500,
                end: 1_000 * segments + 500,
                until: 300 * MS,
            };
            Tail::new(Some(&t), &flown, 60 * MS, &TAP_BETWEEN).late / MS
        };
        // One alone, 30 ms late, may have waited for a timer.
        assert_eq!([1, 2, 3].map(of), [0, 30, 30]);
    }

    /// A round trip of 60 ms, then one of so many that ends so long after it and acknowledges 10,000 bytes more: how long 40,000 then take, ms.
    fn drained(trips: [u64; 3], apart: u64) -> u64 {
        let mut t = Transfer::default();
        let mut time = 60;
        for (n, trip) in (1..).zip(trips) {
            t.sample(time * MS, &rtt(trip * MS, 10_000 * n, 40_000), None, &TAP_BETWEEN);
            time += apart;
        }
        t.drain.0.time(40_000) / MS
    }

    #[test]
    fn the_first_sign_of_a_queue_tells_how_fast_the_link_takes_what_waits() {
        assert_eq!(drained([60, 60, 70], 80), 320);
        assert_eq!(drained([60, 60, 60], 60), 0, "no queue");
        assert_eq!(drained([66, 60, 70], 80), 0, "they differ anyway");
        assert_eq!(drained([60, 60, 70], 120), 0, "the link may have had a rest");
    }

    /// What the link takes as fast as it passed the tap did not wait, and of what passed at once most did.
    #[test]
    fn a_queue_grows_before_what_passes_faster_than_the_link_takes_it() {
        let late = |last: u64| {
            let mut t = Transfer::default();
            for (time, trip, acked) in [(60, 60, 10_000), (140, 70, 20_000)] {
                t.sample(time * MS, &rtt(trip * MS, acked, 40_000), None, &TAP_BETWEEN);
            }
            let flown = Flown {
                first: 0,
                last: last * MS,
                bytes: 60_000,
                end: 60_000,
                until: 1_000 * MS,
            };
            let tail = Tail::new(Some(&t), &flown, 60 * MS, &TAP_BETWEEN);
            [tail.late / MS, tail.uncertain / MS]
        };
        // 8 ms a kilobyte from 140 on, when 40 kB are left.
        assert_eq!(late(80), [320, 320]);
        assert_eq!(late(390)[0], 0);
    }

    #[test]
    fn a_smaller_round_trip_makes_the_others_longer() {
        let path = |base: u64| Path {
            base: Some(base * MS),
            ..TAP_BETWEEN
        };
        let mut passed = Passed::default();
        passed.sample(&rtt(70 * MS, 1_000, 9_000), &path(69));
        passed.sample(&rtt(60 * MS, 2_000, 8_000), &path(60));
        assert_eq!((passed.rate.ns, passed.trips), (10 * MS, 1));
        passed.sample(&rtt(64 * MS, 3_000, 7_000), &path(60));
        assert_eq!((passed.rate.ns, passed.trips), (4 * MS, 2));
    }
}
