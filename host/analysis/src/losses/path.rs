//! What is known of the path of one direction, and what follows from it: timers, answers and how long reordering lasts.

use super::entry::Entry;

/// Reordering is over within 3 ms when no round trip is known (Wireshark's rule for out-of-order
/// segments, user's guide 7.5).
pub(super) const REORDERING: u64 = 3_000_000;
/// Retransmission timers: never below 100 ms (Tstat's floor), 500 ms before a round trip is known.
pub(crate) const TIMEOUT_FLOOR: u64 = 100_000_000;
const TIMEOUT_UNKNOWN: u64 = 500_000_000;
/// No timer of a host is shorter, ns.
pub(super) const SHORTEST_TIMER: u64 = 1_000_000;
/// ns; a full segment at 12 Mbit/s.
const SLOW_LINK: u64 = 1_000_000;

/// What the classification needs to know of the flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Round trip over the whole path, ns.
    pub rtt: Option<u64>,
    /// The same, or less where that of other connections to that server in the last one to two minutes was: a queue may have stood since this one began.
    pub least: Option<u64>,
    /// Smallest round trip between the tap and the receiver, ns, from enough samples.
    pub far: Option<u64>,
    /// The same between the tap and the sender.
    pub near: Option<u64>,
    /// As `far`, of any connection to that server in the last one to two minutes, where few samples are its own.
    pub others: Option<u64>,
    /// The same from the handshake and few samples besides, where that was timed.
    pub timed: Option<u64>,
    /// When the ACK of all that the sender had sent passed, if it is known.
    pub whole: Option<u64>,
    /// Bytes of a full segment.
    pub segment: u32,
    /// Both sides use SACK, so the receiver reports what comes twice (RFC 2883).
    pub sack: bool,
    /// Bytes from its ACK within which the receiver can speak of data: more than its window, or than was sent.
    pub reach: u32,
    /// Packets waited in a queue on the way to the receiver, or back, as the newest round trip tells.
    pub queue: bool,
    /// The receiver has sent a RST.
    pub reset: bool,
    /// IP id of the sender's first FIN, and when it passed (0: not known).
    pub fin: Option<(u16, u64)>,
}

impl Path {
    pub(super) fn segments(self, bytes: u32) -> u32 {
        bytes.div_ceil(self.segment.max(1))
    }

    pub(super) fn reordering(self) -> u64 {
        self.least.map_or(REORDERING, |rtt| rtt.min(REORDERING))
    }

    /// RTO*: one round trip and at least 100 ms or half of it: below what stacks use (RFC 6298
    /// 2.4: 1 s; in practice 200 ms and more), above a tail-loss probe's two round trips on long
    /// paths (RFC 8985 7.2).
    pub(super) fn timeout(self) -> u64 {
        self.rtt.map_or(TIMEOUT_UNKNOWN, |rtt| rtt + TIMEOUT_FLOOR.max(rtt / 2))
    }

    /// An answer of the receiver takes this long, ns: a tenth less than the smallest round trip, which may not quite be
    /// the smallest. With SACK a D-SACK tells more, and it is a millisecond less at least, which long segments take on
    /// slow links and short ones do not. Of few samples, without those of other connections, a quarter: a handshake may have waited in a queue.
    pub(super) fn soonest(self) -> Option<u64> {
        let least = if self.sack { SLOW_LINK } else { 0 };
        let far = self.far.or(self.others);
        let measured = far.map(|far| far.saturating_sub(least.max(far / 10)));
        measured.or(self.timed.map(|timed| timed / 4))
    }

    /// The same of what filled a hole: a queue that was always there may have gone, but hardly half of the smallest round trip was one. Timestamps
    /// tell better (RFC 3522).
    pub(super) fn soonest_by_far(self, entry: &Entry) -> Option<u64> {
        let half = self.far.or(self.others).map_or(u64::MAX, |far| far / 2);
        self.soonest()
            .map(|soonest| soonest.min(half))
            .filter(|_| entry.tsval == 0)
    }

    /// When an answer is due, ns after what it answers: a tenth less than the smallest round trip that is known.
    pub(super) fn answer(self) -> Option<u64> {
        let far = self.far.or(self.others).or(self.timed)?;
        Some(far - far / 10)
    }

    /// What passed the tap on its way to the sender so long before a segment of that, ns, may not have got there first. A tenth less than the
    /// smallest round trip, as in [`Self::soonest`].
    pub(super) fn crosses(self, before: u64) -> bool {
        self.near.is_some_and(|near| before < near - near / 10)
    }

    /// Whether a timer of the sender can have run out in this time: a probe timer is the shortest.
    pub(super) fn is_probe_time(self, since: u64) -> bool {
        // RFC 8985 7.2: PTO = 2 SRTT; the round trip known here may be above the sender's.
        self.rtt.is_some_and(|rtt| since >= SHORTEST_TIMER.max(rtt + rtt / 2))
    }
}
