//! What flights tell of a congestion window in slow start.
//!
//! There it grows by what is acknowledged (RFC 5681 3.1, RFC 3465 2.2): each flight is twice the one before. If a sender has
//! done that, a smaller flight was not ended by the congestion window, unless slow start ended with it. That is known
//! later: after slow start the window grows by a segment or some percent in a round trip (RFC 5681 3.1, RFC 9438 4.2),
//! so a flight that is again much larger than all before shows that slow start had not ended.
//!
//! No congestion window of a sender that grows by 1.5 in a round trip (one segment for each ACK, and every second
//! segment acknowledged) is told from its buffer so: it never doubles.

/// Growth of a flight in slow start, but for the last segments.
const DOUBLE: f64 = 1.9;
/// A flight must be smaller than the least window by this.
const SMALLER: f64 = 0.95;
/// Growth that no congestion window has in a round trip after slow start, and segments besides.
const GROWTH: f64 = 1.2;
const GROWTH_SEGMENTS: u32 = 2;
/// Segments of the initial window (RFC 6928).
const INITIAL: u32 = 10;

/// What is known of the congestion window, and of the last flight. Bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowStart {
    /// A flight was twice the one before.
    doubles: bool,
    /// The last flight, 0 if it does not count, and the largest.
    last: u32,
    most: u32,
    /// The window is at least this, if it grows by what is acknowledged; 0: not known.
    window: u32,
    /// The last flight was smaller than the window.
    was_held: bool,
}

impl SlowStart {
    /// Whether a flight shows that slow start went on.
    pub fn grows(&self, flight: u32, segment: u32) -> bool {
        let growth = flight.saturating_sub(self.most);
        self.doubles && f64::from(flight) >= GROWTH * f64::from(self.most) && growth > GROWTH_SEGMENTS * segment
    }

    /// A flight is over. Whether, if slow start goes on, something else than the congestion window ended it. The first
    /// flight after such a one that is as large as the least window counts as they do: the window may be larger.
    pub fn flight(&mut self, flight: u32) -> bool {
        let is_held = self.doubles && f64::from(flight) <= SMALLER * f64::from(self.window);
        let held = is_held || self.was_held && self.doubles;
        let window = self.window.max(flight);
        // A window that is not used does not grow much above what is (RFC 7661 4.3).
        let grown = window.saturating_add(flight).min(flight.saturating_mul(2));
        *self = Self {
            doubles: self.doubles || self.is_double(flight),
            last: flight,
            most: self.most.max(flight),
            window: window.max(grown),
            was_held: is_held,
        };
        held
    }

    /// Whether the flight is twice the one before.
    fn is_double(&self, flight: u32) -> bool {
        self.last > 0 && f64::from(flight) >= DOUBLE * f64::from(self.last)
    }

    /// Whether the flight surely filled the congestion window: the first, which is the initial window, or twice one that did.
    pub fn fills(&self, flight: u32, segment: u32) -> bool {
        !self.was_held && self.is_double(flight) || self.most == 0 && flight <= INITIAL * segment
    }

    /// A flight that the receiver's window ended: the congestion window is not full, and grows.
    pub fn filled_window(&mut self, flight: u32) {
        self.flight(flight);
        self.skip();
    }

    /// Something else than the congestion window ended the last flight.
    pub fn was_held(&mut self) {
        self.was_held = true;
    }

    /// A flight that was not seen as one, or not ended by its sender.
    pub fn skip(&mut self) {
        self.last = 0;
        self.was_held = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these flights were held, as far as slow start goes on, and whether a later one shows that it did.
    fn held(flights: &[u32]) -> (Vec<u32>, bool) {
        let (mut slow_start, mut held, mut went_on) = (SlowStart::default(), Vec::new(), false);
        for &flight in flights {
            went_on |= !held.is_empty() && slow_start.grows(flight, 1);
            if slow_start.flight(flight) {
                held.push(flight);
            }
        }
        (held, went_on)
    }

    #[test]
    fn doubling_is_the_congestion_window() {
        assert_eq!(held(&[10, 20, 40, 80, 160, 320]), (vec![], false));
    }

    #[test]
    fn less_than_double_and_more_later_is_not() {
        assert_eq!(held(&[10, 20, 31, 30, 30, 53, 56]), (vec![31, 30, 30, 53, 56], true));
        // 106 is what 53 allowed at least: as the one before it.
        assert_eq!(held(&[10, 20, 31, 53, 106, 212]), (vec![31, 53, 106], true));
    }

    #[test]
    fn the_end_of_slow_start_is_not_told_from_it_before_more_comes() {
        assert!(!held(&[10, 20, 31, 32, 33, 34]).1);
        // RFC 9438 4.2: some percent in a round trip.
        assert!(!held(&[10, 20, 40, 64, 67, 70, 73]).1);
    }

    #[test]
    fn nothing_is_said_of_a_sender_that_never_doubled() {
        assert_eq!(held(&[10, 15, 22, 33, 49, 73, 110]), (vec![], false));
        assert_eq!(held(&[30, 30, 30, 60]), (vec![], false));
    }

    #[test]
    fn a_full_congestion_window_is_the_first_or_twice_another() {
        let mut slow_start = SlowStart::default();
        let full: Vec<_> = [10, 20, 40, 50, 100, 200]
            .map(|n| {
                let fills = slow_start.fills(n, 1);
                slow_start.flight(n);
                fills
            })
            .into();
        // 50 was held: 100 may be, too.
        assert_eq!(full, [true, true, true, false, false, true]);
        assert!(!SlowStart::default().fills(11, 1));
        slow_start.was_held();
        assert!(
            !slow_start.fills(400, 1),
            "nor what comes behind one that is known to be held"
        );
    }

    /// 56 segments fill the receiver's window, twice: 86 are not all that the congestion window allows then, as 118 show.
    #[test]
    fn behind_a_full_window_the_congestion_window_grows() {
        let mut slow_start = SlowStart::default();
        for flight in [10, 20, 40] {
            assert!(!slow_start.flight(flight));
        }
        slow_start.filled_window(56);
        assert!(!slow_start.fills(112, 1), "not the congestion window's");
        slow_start.filled_window(56);
        assert!(slow_start.flight(86));
        assert!(slow_start.grows(118, 1));
    }

    #[test]
    fn a_burst_that_was_no_flight_does_not_double() {
        let mut slow_start = SlowStart::default();
        slow_start.flight(10);
        slow_start.skip();
        slow_start.flight(40);
        assert!(!slow_start.flight(41), "nothing has doubled yet");
    }
}
