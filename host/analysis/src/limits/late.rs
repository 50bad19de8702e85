//! How late ACKs come to a sender that waits for one: a wireless link or another with jitter beyond the tap keeps some of them back, and
//! no round trip tells of it, for the sender is asked for nothing.

/// Waits remembered.
const WAITS: usize = 8;
/// Of fewer nothing is known.
const FEW: u32 = 4;

/// The last waits at the edge of a window: from when its sender would have heard of more room, had the ACK come as fast as any, until it
/// went on, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Late {
    waits: [u64; WAITS],
    known: u32,
}

impl Late {
    pub fn add(&mut self, ns: u64) {
        self.waits.rotate_right(1);
        self.waits[0] = ns;
        self.known = self.known.saturating_add(1);
    }

    /// How much later than the fastest an ACK may have come, ns: no more than two of the last waits were. (One may have been the application's.)
    /// `trip`: a round trip. What takes as long may have waited for the ACKs of the next flight; unless so do half of them.
    pub fn most(&self, trip: u64) -> u64 {
        if self.known < FEW {
            return 0;
        }
        let mut waits = self.waits;
        waits.sort_unstable();
        let flight = trip / 4 * 3;
        let end = if waits[WAITS / 2] >= flight {
            WAITS
        } else {
            waits.partition_point(|ns| *ns < flight)
        };
        end.checked_sub(2).map_or(0, |second| waits[second])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(waits: &[u64], trip: u64) -> u64 {
        let mut late = Late::default();
        waits.iter().for_each(|ns| late.add(*ns));
        late.most(trip)
    }

    #[test]
    fn the_longest_wait_alone_tells_nothing() {
        assert_eq!(most(&[30, 10, 20], 100), 0);
        assert_eq!(most(&[30, 10, 20, 5], 100), 20);
        assert_eq!(most(&[30, 20, 7, 7, 7, 7, 7, 7, 7], 100), 7);
    }

    /// The ACKs of the next flight come a round trip later. Jitter may be longer than that.
    #[test]
    fn a_wait_for_the_next_flight_tells_nothing_of_jitter() {
        assert_eq!(most(&[0, 0, 75, 0, 80, 90, 8, 9], 100), 8);
        assert_eq!(most(&[0, 80, 75, 0, 80, 90, 8, 9], 100), 80);
    }
}
