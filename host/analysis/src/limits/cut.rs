//! Segments that are smaller than the handshake allows, because the way is too narrow for those (a tunnel, RFC 1191): their sender has more
//! to send, although none of them is full.

use weir_record::Block;

/// Bytes of data in a segment that every way carries, with timestamps (Linux: `ip_rt_min_pmtu`).
const LEAST: u32 = 500;
/// So many alike are no chance.
const ALIKE: u32 = 3;

/// Segments alike of one block each, which ended with PSH behind the last of them: an application that writes small pieces has each pushed, so
/// these its stack has cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// Bytes of data in one of them, and how many came since a larger one.
    size: u32,
    segments: u32,
    /// Of what was captured before a card cut it: bytes of which all blocks since some time were a multiple, and how many of these were larger than
    /// a segment.
    common: u32,
    larger: u32,
}

fn common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Cut {
    /// Bytes of data in a segment; `full`: as the handshake tells.
    pub fn payload(&self, full: u32) -> u32 {
        if self.segments < ALIKE {
            full
        } else {
            full.min(self.size)
        }
    }

    /// A block behind `before` bytes of its transfer. Whether it tells of such segments. A receiver's window may cut them as well; one with room for
    /// three has not.
    pub fn block(&mut self, b: &Block, before: u64, window: u32, full: u32) -> bool {
        let size = u32::from(b.max_segment);
        if size > full || self.common > 0 {
            return self.before_card(b.bytes, size > full, window, full);
        }
        if size > self.size {
            *self = Self::default();
        }
        let alike = b.packets > 1 && b.bytes == u32::from(b.packets) * size;
        if !alike || !(LEAST..full).contains(&size) || window < ALIKE * size {
            return false;
        }
        if size != self.size {
            let earlier = if before.is_multiple_of(size.into()) {
                before / u64::from(size)
            } else {
                0
            };
            (self.size, self.segments) = (size, u32::try_from(earlier).unwrap_or(u32::MAX));
        }
        self.segments = self.segments.saturating_add(b.packets.into());
        true
    }

    /// The same, of a direction that was captured before a card cut it: blocks of different sizes are multiples of one segment.
    fn before_card(&mut self, bytes: u32, is_larger: bool, window: u32, full: u32) -> bool {
        let common = common_divisor(self.common, bytes);
        if common >= LEAST {
            self.common = common;
            self.larger = self.larger.saturating_add(is_larger.into());
        } else {
            (self.common, self.larger) = if is_larger { (bytes, 1) } else { (0, 0) };
        }
        if self.size > 0 && bytes.is_multiple_of(full) && !bytes.is_multiple_of(self.size) {
            (self.size, self.segments) = (0, 0);
        }
        let tells = self.larger > ALIKE && self.common < full && window >= ALIKE * self.common;
        if tells {
            (self.size, self.segments) = (self.common, self.larger);
        }
        tells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::tests::{MS, TAP_BETWEEN, block};
    use crate::limits::{SoFar, Transfer};

    /// What blocks of so many segments of so many bytes tell, under a window.
    fn payload(blocks: &[(u16, u16)], window: u32) -> u32 {
        let mut t = Transfer::default();
        blocks.iter().fold(0, |sent, (packets, size)| {
            let bytes = u32::from(*packets) * u32::from(*size);
            let b = Block {
                packets: *packets,
                max_segment: *size,
                ..block(0, 0, sent, bytes)
            };
            let before = SoFar {
                first: 0,
                last: 0,
                bytes: sent.into(),
            };
            t.learn_cut(&b, (sent > 0).then_some(before), window, 1460);
            sent + bytes
        });
        t.cut(1460)
    }

    #[test]
    fn three_segments_alike_are_full_ones() {
        assert_eq!(payload(&[(3, 1188)], 40_000), 1188);
        assert_eq!(payload(&[(2, 1188)], 40_000), 1460);
        assert_eq!(payload(&[(1, 1460), (2, 1188), (2, 1188)], 40_000), 1188);
        // What came before and was not noted was such segments, too.
        assert_eq!(payload(&[(1, 1188), (2, 1188)], 40_000), 1188);
        // Who pushes each writes it.
        assert_eq!(payload(&[(1, 1188); 5], 40_000), 1460);
        assert_eq!(payload(&[(3, 460)], 40_000), 1460);
    }

    #[test]
    fn a_larger_segment_takes_its_place() {
        assert_eq!(payload(&[(3, 1188), (1, 1200)], 40_000), 1460);
        assert_eq!(payload(&[(3, 1188), (2, 1440), (2, 1440)], 40_000), 1440);
        assert_eq!(payload(&[(3, 1188), (1, 700), (3, 1460)], 40_000), 1460);
    }

    /// A card will cut two, three and four segments each.
    #[test]
    fn what_a_card_cuts_is_a_multiple_of_a_segment() {
        let before_card = |sizes: &[u16]| payload(&sizes.iter().map(|size| (1, *size)).collect::<Vec<_>>(), 40_000);
        assert_eq!(before_card(&[1800, 900, 2700, 3600, 1800]), 900);
        assert_eq!(before_card(&[1800, 900, 2700, 3600]), 1460);
        assert_eq!(before_card(&[1800; 5]), 1460);
        assert_eq!(before_card(&[1800, 2700, 3600, 1800, 2920]), 1460);
        assert_eq!(before_card(&[2920, 4380, 2920, 5840, 2920]), 1460);
        // The end of what was written, and a window's.
        assert_eq!(before_card(&[1800, 2700, 3600, 1800, 2000, 1174, 1800]), 900);
        // Pieces of an application.
        assert_eq!(before_card(&[2000, 900, 900, 900, 900, 900]), 1460);
    }

    #[test]
    fn a_window_that_cuts_them_tells_nothing_of_the_way() {
        assert_eq!(payload(&[(3, 536)], 1500), 1460);
        let mut t = Transfer::default();
        t.close(0, false, &TAP_BETWEEN);
        let b = Block {
            packets: 3,
            max_segment: 536,
            ..block(MS, 200 * MS, 0, 3 * 536)
        };
        t.learn_cut(&b, None, 40_000, 1460);
        assert_eq!(t.cut(1460), 1460);
    }
}
