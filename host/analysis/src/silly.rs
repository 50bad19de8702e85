//! Silly and frozen windows, as far as round trips show them: ACKs between two timed ones are joined, so nothing is
//! called silly that is not.

/// Silly openings in a row from which on they are a syndrome.
const RUN: u32 = 3;

/// One receiver's windows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silly {
    last: Option<Heard>,
    /// Small openings in a row, and since when.
    run: u32,
    since: u64,
    /// Small openings of runs of three and more.
    pub openings: u32,
    /// ns of these runs.
    pub ns: u64,
    /// Whole windows of data under a window that did not change.
    pub frozen: u32,
    /// ns of these.
    pub frozen_ns: u64,
    /// Pieces below a segment that the sender sent into a small window.
    pub pieces: u32,
}

/// An ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// TAI ns.
    pub time: u64,
    /// When the timed segment had passed the tap, TAI ns.
    pub sent: u64,
    pub ack: u32,
    /// Bytes.
    pub window: u32,
    /// There is less than a segment of room behind what is in flight, or the sender went to the window's edge.
    pub binds: bool,
}

impl Silly {
    /// An ACK of data. `segment`: bytes of a full one; `largest`: of the largest window.
    pub fn heard(&mut self, heard: Heard, segment: u32, largest: u32) {
        let last = self.last.replace(heard);
        let Some(last) = last else { return };
        let opened = (heard.ack.wrapping_add(heard.window)).wrapping_sub(last.ack.wrapping_add(last.window)) as i32;
        // RFC 1122 4.2.3.3: a receiver opens its window by a segment or half its buffer, or not at all.
        let least = i64::from(segment.min(largest / 2));
        let opened = i64::from(opened);
        if heard.binds && opened > 0 && opened < least {
            if self.run == 0 {
                self.since = last.time;
            }
            self.run += 1;
            if self.run >= RUN {
                self.openings += if self.run == RUN { RUN } else { 1 };
                // Until the piece was sent that fills the opening: its ACK may wait for the answer.
                let from = if self.run == RUN { self.since } else { last.sent };
                self.ns = self.ns.saturating_add(heard.sent.saturating_sub(from));
            }
        } else if opened != 0 {
            self.run = 0;
        }
    }

    /// `bytes` in `ns` filled a window that had not changed.
    pub fn freeze(&mut self, bytes: u32, window: u32, ns: u64) {
        let windows = bytes.saturating_add(window / 2).checked_div(window).unwrap_or(0);
        self.frozen = self.frozen.saturating_add(windows);
        self.frozen_ns = self.frozen_ns.saturating_add(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// ACKs as (time, ACK, window), of windows of at most `largest`.
    fn hear(silly: &mut Silly, largest: u32, binds: bool, list: &[(u64, u32, u32)]) {
        for &(time, ack, window) in list {
            let heard = Heard {
                time,
                sent: time,
                ack,
                window,
                binds,
            };
            silly.heard(heard, MSS, largest);
        }
    }

    /// RFC 1122 4.2.3.3.
    #[test]
    fn three_small_openings_in_a_row_are_silly() {
        let mut s = Silly::default();
        // From 8,000 the edge retreats to 254 behind the ACK, then moves on by 254 each time.
        hear(
            &mut s,
            8000,
            true,
            &[(0, 0, 8000), (1, 300, 254), (2, 554, 254), (3, 808, 254)],
        );
        assert_eq!((s.openings, s.ns), (0, 0));
        hear(&mut s, 8000, true, &[(4, 1062, 254)]);
        assert_eq!((s.openings, s.ns), (3, 3));
        hear(&mut s, 8000, true, &[(5, 1316, 254), (6, 3000, 8000), (7, 3200, 8000)]);
        assert_eq!((s.openings, s.ns), (4, 4));
    }

    #[test]
    fn openings_of_a_segment_or_half_the_window_are_not() {
        for (step, largest, binds, openings) in [
            (MSS, 4000, true, 0),
            (MSS - 1, 4000, true, 4),
            (300, 600, true, 0),
            (299, 600, true, 4),
            (299, 600, false, 0),
        ] {
            let mut s = Silly::default();
            for n in 0..5u32 {
                hear(&mut s, largest, binds, &[(u64::from(n), n * step, largest)]);
            }
            assert_eq!(s.openings, openings, "{step} {largest} {binds}");
        }
    }
}
