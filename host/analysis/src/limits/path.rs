//! What is known of the path of one direction, and what follows from it: what a full segment is, how long a pause or a
//! delayed ACK takes, and when a window counts as used up.

use weir_record::Block;

use super::charges::Cause;
use crate::shares::USER_THINK;

/// Timing of hosts is not better than this, ns.
pub(crate) const SLACK: u64 = 1_000_000;
/// A pause shorter than this is none, ns.
pub(crate) const SHORTEST_PAUSE: u64 = 200_000;
/// An ACK that comes this much later than the fastest was delayed by its receiver (RFC 1122 4.2.3.2 allows 500 ms;
/// in practice 25, 40, 100 or 200 ms).
pub(crate) const DELAYED_ACK: u64 = 20_000_000;
pub(crate) const DELAYED_ACK_MOST: u64 = 500_000_000;
/// How much later than the fastest an ACK may come to the sender (a wireless link repeats what is lost): so many round trips, or ns, if that is less.
const LATE: (u64, u64) = (16, 50_000_000);
/// The receiver's window counts as used up when less than this many segments would fit (Siekkinen et al.).
pub(super) const ROOM: u32 = 3;
/// Bytes that options take from a full segment, at most (RFC 9293 3.1).
const OPTIONS: u32 = 40;
/// Bytes that timestamps take from it (RFC 7323 appendix A).
pub(crate) const TIMESTAMPS: u32 = 12;
/// And one to three SACK blocks (RFC 2018 3).
const SACK: [u32; 3] = [12, 20, 28];

/// What the path and the peers tell of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    /// Bytes of a full segment, with its options; and of the data in it.
    pub segment: u32,
    pub payload: u32,
    /// A window below this has no room for one segment: the MSS, where a network can carry it.
    pub mss: u32,
    /// Smallest round trip from the tap to the receiver and back, ns.
    pub base: Option<u64>,
    /// Smallest round trip from the tap to the sender and back, ns; 0: not known.
    pub other: u64,
    /// A handshake in which nothing came again has timed both: what was longer has waited.
    pub exact: bool,
    /// Bytes of the receiver's largest window; 0: not known.
    pub window: u32,
    /// Of one whose scale was not seen, what it is most likely, as it is filled then.
    pub inferred: Option<u32>,
    /// Bytes a second, when the user said so.
    pub link: Option<f64>,
    /// It is the server's.
    pub from_server: bool,
    /// Both sides told their MSS.
    pub told: bool,
}

impl Path {
    /// One round trip over the whole path, ns.
    pub(super) fn round_trip(&self) -> u64 {
        self.base.unwrap_or(0).saturating_add(self.other)
    }

    /// Whether a transfer of this length is one flight.
    pub fn is_one_flight(&self, ns: u64) -> bool {
        ns <= self.round_trip().max(SLACK)
    }

    /// What limited a transfer that was one flight: the link, which needs as long as it took. Without a known round trip it need not
    /// have been one.
    pub fn one_flight(&self) -> Cause {
        if self.round_trip() > 0 {
            Cause::Bandwidth
        } else {
            Cause::Unknown
        }
    }

    /// Three segments, or most of a window that never has room for so many.
    pub(super) fn three(&self, window: u32) -> u32 {
        (ROOM * self.payload).min(window / 4 * 3)
    }

    /// Bytes below which a window has no room.
    /// `exact`: what is in flight is known, not only its average.
    pub(super) fn room(&self, window: u32, exact: bool) -> u32 {
        // A small window seldom has room for three: what is in flight is most of it, or waits for a delayed ACK.
        let is_small = window <= 2 * ROOM * self.payload;
        let room = if is_small {
            self.three(window)
        } else {
            (ROOM * self.payload).min(window / 3)
        };
        if exact { room } else { room.max(window / 10) }
    }

    /// A gap between blocks from which on the sender paused, ns.
    pub(super) fn least_pause(&self) -> u64 {
        SHORTEST_PAUSE.max(self.round_trip() / 8)
    }

    /// Whether a server that was silent for so long, ns, may have been asked for nothing, and tells something new.
    pub(super) const fn may_be_unasked(&self, gap: u64) -> bool {
        self.from_server && gap > USER_THINK
    }

    /// Whether the largest segment of the block is full, but for options: where both sides use timestamps, those of SACK alone are not known.
    pub(super) fn is_full(&self, b: &Block) -> bool {
        let most = u32::from(b.max_segment);
        // The way may be too narrow for what the handshake agreed on: then all of several are as large.
        let alike = b.packets > 1 && b.bytes == u32::from(b.packets) * most;
        if self.payload == self.segment || alike {
            most > 0 && most + OPTIONS >= self.segment
        } else {
            most >= self.payload || SACK.contains(&(self.payload - most))
        }
    }

    /// Bytes of the segments of which a full block is made. Of larger ones than both sides agreed on (TSO: its card cuts them) the last part may be
    /// the end of what was written.
    pub(super) fn unit(&self, b: &Block) -> u32 {
        let most = u32::from(b.max_segment);
        if self.told && self.mss > 0 && most > self.mss {
            self.payload
        } else {
            most
        }
    }

    /// How far what an ACK lets go may be from that ACK, ns.
    pub(super) fn jitter(&self) -> u64 {
        SHORTEST_PAUSE + self.round_trip() / 64
    }

    /// How much later than the fastest an ACK may come to the sender, ns.
    pub(super) fn late(&self) -> u64 {
        let (trips, most) = LATE;
        self.round_trip().saturating_mul(trips).min(most)
    }

    /// How far a packet may be from where it is expected, ns.
    pub(super) fn slack(&self) -> u64 {
        (self.round_trip() / 4).max(SLACK)
    }
}

/// Bytes that make full segments, with timestamps or without.
pub(super) fn are_whole(bytes: u64, segment: u32) -> bool {
    let full = |size: u32| size > 0 && bytes.is_multiple_of(u64::from(size));
    full(segment) || full(segment.saturating_sub(TIMESTAMPS))
}

/// Whether an ACK came at once after `rtt` ns: `flight` behind it was at least every second full segment (RFC 1122 4.2.3.2), or it was of the
/// timed segment `alone` and came sooner after the `least` than the shortest timer lets it.
pub(crate) fn is_prompt(rtt: u64, flight: u32, alone: bool, segment: u32, least: Option<u64>) -> bool {
    let soon = || least.is_some_and(|least| rtt < least.saturating_add(DELAYED_ACK));
    flight > 0 && (flight >= 2 * segment || alone && soon())
}

/// Nothing was in flight any more, and the ACK was later than the path explains.
pub(super) fn is_delayed(rtt: u64, flight: u32, path: &Path) -> bool {
    let late = rtt.saturating_sub(path.base.unwrap_or(rtt));
    flight == 0 && (DELAYED_ACK..DELAYED_ACK_MOST).contains(&late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::tests::{TAP_BETWEEN, block};

    #[test]
    fn with_timestamps_a_segment_is_full_but_for_sack() {
        let is_full = |payload: u32, most: u16| {
            let path = Path {
                segment: 1460,
                payload,
                ..TAP_BETWEEN
            };
            path.is_full(&Block {
                max_segment: most,
                ..block(0, 0, 0, 1460)
            })
        };
        assert_eq!(
            [1500, 1448, 1442, 1436, 1428, 0].map(|most| is_full(1448, most)),
            [true, true, false, true, true, false]
        );
        // A tunnel takes some of it from each.
        let several = Block {
            packets: 3,
            max_segment: 1442,
            ..block(0, 0, 0, 3 * 1442)
        };
        let path = Path {
            segment: 1460,
            payload: 1448,
            ..TAP_BETWEEN
        };
        assert!(path.is_full(&several));
        // Of a sender whose handshake was not seen they are not known.
        assert_eq!(
            [1500, 1448, 1442, 1419, 0].map(|most| is_full(1460, most)),
            [true, true, true, false, false]
        );
    }

    /// A card cuts 2,888 bytes into one full segment and one that is not. How many bytes are in a full one, a handshake must tell.
    #[test]
    fn what_a_card_cuts_is_full_segments() {
        let unit = |most: u16, told: bool| {
            let path = Path {
                segment: 1460,
                payload: 1448,
                mss: 1460,
                told,
                ..TAP_BETWEEN
            };
            path.unit(&Block {
                max_segment: most,
                ..block(0, 0, 0, 0)
            })
        };
        assert_eq!(
            [2888, 2896, 1460, 1188].map(|most| unit(most, true)),
            [1448, 1448, 1460, 1188]
        );
        assert_eq!(unit(2888, false), 2888);
    }
}
