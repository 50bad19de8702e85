//! What the sizes of the pieces in which a sender hands its data down tell of its congestion window.
//!
//! Linux cuts what it sends into pieces that last a millisecond at its pacing rate (`tcp_tso_autosize`). That rate follows from the congestion
//! window and the round trip even if nothing is paced: at most twice the window in each round trip (`tcp_update_pacing_rate`). Two
//! segments are the least. So two pieces alike tell of the least window that makes them, and a flight that stays below it was not ended by it.
//! Since Linux 5.5 each piece of two segments or more ends with PSH, and so does its block.
//!
//! Senders that push elsewhere are known by flights that surely filled the congestion window: what their blocks tell must not be more.
//! Nothing is said of a sender before it has shown pieces of two segments, or such a flight.

/// Pieces in a second, and windows in a round trip at the pacing rate, at most.
const PIECES_PER_S: f64 = 1024.0;
const PACED: f64 = 2.0;
/// Segments of the smallest piece.
const LEAST: u32 = 2;
/// On short ways Linux adds this to a piece, halved for each 512 µs of the round trip (`tcp_tso_rtt_log`).
const MORE: u32 = 65_536;
const HALVED_EACH_NS: u64 = 512_000;
/// A sender that was idle for a timeout begins anew (RFC 5681 4.1), but cuts its pieces as before until an ACK has come; the least
/// timeout that Linux has, ns.
const IDLE: u64 = 200_000_000;

/// The pieces of one direction. Bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pieces {
    /// The last one; 0 if it was not whole segments. And the last that was like the one before it.
    last: u32,
    alike: u32,
    /// When the last one was sent, and until when they are as before a rest, ns.
    sent: u64,
    stale: u64,
    /// A flight that filled the congestion window was as its pieces told; or was not.
    is_trusted: bool,
    is_refuted: bool,
}

impl Pieces {
    /// A piece of whole segments, or of others (0), and when its first and last were sent. `trip`: the least round trip, ns.
    pub fn piece(&mut self, bytes: u32, segment: u32, time: (u64, u64), trip: u64) {
        let (first, last) = time;
        if self.sent > 0 && first.saturating_sub(self.sent) >= IDLE {
            self.forget();
            self.stale = first.saturating_add(trip);
        }
        self.sent = last;
        if first < self.stale {
            return;
        }
        if bytes > 0 && bytes == self.last {
            self.alike = bytes;
            self.is_trusted |= bytes == LEAST * segment;
        }
        self.last = bytes;
    }

    /// The congestion window is another: nothing is known of it.
    pub fn forget(&mut self) {
        self.last = 0;
        self.alike = 0;
    }

    /// The least congestion window that makes such pieces. `trip`: the least round trip, ns.
    fn window(&self, segment: u32, trip: u64) -> f64 {
        if self.alike <= LEAST * segment {
            return 0.0;
        }
        let halved = u32::try_from(trip / HALVED_EACH_NS).unwrap_or(u32::MAX);
        let more = MORE.checked_shr(halved).unwrap_or(0);
        let paced = f64::from(self.alike.saturating_sub(more)) * PIECES_PER_S;
        paced * trip as f64 / 1e9 / PACED
    }

    fn is_below(&self, flight: u32, segment: u32, trip: u64) -> bool {
        f64::from(flight) < self.window(segment, trip)
    }

    /// A flight that surely filled the congestion window.
    pub fn filled(&mut self, flight: u32, segment: u32, trip: u64) {
        if self.alike > 0 {
            let is_below = self.is_below(flight, segment, trip);
            self.is_refuted |= is_below;
            self.is_trusted |= !is_below;
        }
    }

    /// Whether so many bytes in flight were not all that the congestion window allowed.
    pub fn held(&self, flight: u32, segment: u32, trip: u64) -> bool {
        self.is_trusted && !self.is_refuted && self.is_below(flight, segment, trip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u32 = 1448;
    const MS: u64 = 1_000_000;

    /// After pieces of so many segments, the most segments in flight that were not a whole congestion window.
    fn held(pieces: &Pieces, trip: u64) -> u32 {
        (0..2000)
            .take_while(|n| pieces.held(n * SEGMENT, SEGMENT, trip))
            .count() as u32
    }

    fn pieces(sizes: &[u32]) -> Pieces {
        let mut pieces = Pieces::default();
        for n in sizes {
            send(&mut pieces, *n, MS);
        }
        pieces
    }

    fn send(pieces: &mut Pieces, segments: u32, time: u64) {
        pieces.piece(segments * SEGMENT, SEGMENT, (time, time), 80 * MS);
    }

    /// Over 80 ms, 246 segments make pieces of 6, and 410 of 10.
    #[test]
    fn a_piece_is_a_millisecond_of_twice_the_window_in_a_round_trip() {
        for (piece, window) in [(2, 0), (6, 246), (10, 410)] {
            assert_eq!(held(&pieces(&[2, 2, piece, piece]), 80 * MS), window);
        }
    }

    #[test]
    fn two_pieces_must_be_alike() {
        assert_eq!(held(&pieces(&[2, 2, 6, 7, 6]), 80 * MS), 0);
        assert_eq!(held(&pieces(&[2, 2, 6, 6, 7]), 80 * MS), 246);
    }

    /// 64 KB are a piece wherever the round trip is below half a millisecond.
    #[test]
    fn on_short_ways_pieces_are_larger() {
        assert_eq!(held(&pieces(&[2, 2, 45, 45]), MS / 2), 0);
        assert!(held(&pieces(&[2, 2, 45, 45]), 2 * MS) < 50);
    }

    #[test]
    fn nothing_is_said_of_a_sender_that_pushes_elsewhere() {
        let mut other = pieces(&[5, 5]);
        assert_eq!(held(&other, 80 * MS), 0, "not known yet");
        other.filled(10 * SEGMENT, SEGMENT, 80 * MS);
        for n in [2, 2, 6, 6] {
            send(&mut other, n, MS);
        }
        assert_eq!(held(&other, 80 * MS), 0, "10 segments were its window, not 200");
    }

    #[test]
    fn a_full_window_that_its_pieces_allow_for_is_enough() {
        let mut linux = pieces(&[6, 6]);
        linux.filled(250 * SEGMENT, SEGMENT, 80 * MS);
        assert_eq!(held(&linux, 80 * MS), 246);
    }

    #[test]
    fn a_loss_and_a_timeout_of_rest_end_what_is_known() {
        let mut lost = pieces(&[2, 2, 6, 6]);
        lost.forget();
        assert_eq!(held(&lost, 80 * MS), 0);
        let mut rested = pieces(&[2, 2, 6, 6]);
        let anew = MS + IDLE;
        for time in [0, 1, 2, 79] {
            send(&mut rested, 6, anew + time * MS);
            assert_eq!(held(&rested, 80 * MS), 0, "as before the rest");
        }
        for time in [80, 81] {
            send(&mut rested, 4, anew + time * MS);
        }
        assert_eq!(held(&rested, 80 * MS), 164);
    }
}
