//! Where a sender runs dry whose application waits for room in its buffer.
//!
//! Two things tell of it on Linux. Of what goes to the wire as one piece the last segment has PSH, a single segment only if nothing
//! was written behind it: a flight that ends with a full segment of its own, with PSH, is the end of what was written. And data is
//! taken in by pieces of as many full segments as one segmentation offload carries, or as fit half of the receiver's largest window.
//! What can be sent at once of such a piece is filled up again, without a look at the buffer. So the next flight that a full
//! buffer ends is one piece behind what the sender could send when its application last woke, to the byte. A congestion window ends there
//! by chance only.
//!
//! A flight whose last piece is shorter than the others ends there because nothing more was written, or because the congestion window
//! cut the piece. Only of a sender whose buffer has held it before the first is said.

use weir_record::Block;

use crate::limits::SHORTEST_PAUSE;

/// Bytes of a piece at most: what an IP packet holds, less room for headers below.
const MOST: u32 = 65_215;

/// Where the application may have woken, in the sequence space, and bytes that were sent at once then: its first block, and all
/// blocks up to a gap.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    at: u32,
    block: u32,
    train: u32,
    is_over: bool,
}

impl Place {
    fn new(at: u32, train: u32) -> Self {
        Self {
            at,
            train,
            ..Self::default()
        }
    }

    fn block(&mut self, bytes: u32, gap: u64) {
        self.is_over |= self.train > 0 && gap >= SHORTEST_PAUSE;
        if self.block == 0 {
            self.block = bytes;
        }
        if !self.is_over {
            self.train = self.train.saturating_add(bytes);
        }
    }

    /// Bytes up to `end` above a piece.
    fn above(&self, end: u32, piece: u32) -> u32 {
        end.wrapping_sub(self.at).wrapping_sub(piece)
    }

    /// Whether `end` is one piece behind what could be sent.
    fn is_piece_before(&self, end: u32, piece: u32) -> bool {
        [0, self.block, self.train].contains(&self.above(end, piece))
    }
}

/// What was written of a transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writes {
    /// Bytes of a full segment.
    segment: u32,
    /// Bytes up to its first pause.
    first_flight: u32,
    /// Its beginning, the last pause, and the last one at which it ran dry.
    begun: Place,
    paused: Option<Place>,
    dry: Option<Place>,
    /// The last block was one full segment; and the one before it was not.
    is_single: bool,
    is_alone: bool,
    /// Segments of the last two blocks, if all were full; and whether the last had fewer than two alike before it.
    sizes: [u16; 2],
    is_rest: bool,
}

impl Writes {
    /// The transfer begins at `at`; `sent` bytes went at once.
    pub fn begin(at: u32, sent: u32) -> Self {
        Self {
            begun: Place::new(at, sent),
            first_flight: sent,
            ..Self::default()
        }
    }

    /// Where the transfer begins in the sequence space, if that is known.
    pub fn begun_at(&self) -> Option<u32> {
        (self.segment > 0).then_some(self.begun.at)
    }

    /// A block of the transfer, after a gap. `full`: bytes of a full segment, if it has one.
    pub fn block(&mut self, b: &Block, full: Option<u32>, gap: u64) {
        let is_full = full.is_some();
        self.segment = self.segment.max(full.unwrap_or(0));
        let is_single = is_full && b.packets == 1 && b.bytes == self.segment;
        self.is_alone = is_single && !self.is_single;
        self.is_single = is_single;
        let whole = is_full && b.bytes == u32::from(b.packets) * self.segment;
        let size = if whole { b.packets } else { 0 };
        let [last, before] = self.sizes;
        self.is_rest = whole && size < last && last == before;
        self.sizes = [size, last];
        if self.paused.is_none() {
            self.first_flight = self.first_flight.saturating_add(b.bytes);
        }
        let later = [&mut self.paused, &mut self.dry].into_iter().flatten();
        for place in later.chain([&mut self.begun]) {
            place.block(b.bytes, gap);
        }
    }

    /// A pause after PSH at `end`. Whether nothing that was written was left to send. `window`: the receiver's largest; 0: not known.
    /// `known`: the sender's buffer has held it before, and it has lost nothing.
    pub fn pause(&mut self, end: u32, window: u32, known: bool) -> bool {
        let piece = MOST.checked_div(self.segment).unwrap_or(0) * self.segment;
        // Who paces sends one such piece after the other.
        let [last, before] = self.sizes.map(|segments| u32::from(segments) * self.segment);
        let is_piece = last == piece && before == piece;
        let is_whole = piece > 0 && (window == 0 || window / 2 >= piece) && !is_piece;
        let is_end = [self.begun.train, self.first_flight].contains(&self.begun.above(end, piece))
            || [self.paused, self.dry]
                .iter()
                .flatten()
                .any(|p| p.is_piece_before(end, piece));
        let is_dry = self.is_alone || self.is_rest && known || is_whole && is_end;
        self.paused = Some(Place::new(end, 0));
        if is_dry {
            self.dry = self.paused;
        }
        is_dry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u32 = 1448;
    const PIECE: u32 = 45;

    struct Sender(Writes, u32);

    /// A rest is the end of what was written if the buffer is known, and only behind pieces of one size.
    #[test]
    fn a_piece_that_is_shorter_than_the_others_is_a_rest() {
        let ends = |pieces: &[u32], known: bool| {
            let mut sender = Sender::begin();
            sender.blocks(pieces);
            sender.0.pause(sender.1, 0, known)
        };
        assert!(ends(&[5, 5, 5, 4], true));
        assert!(!ends(&[5, 5, 5, 4], false));
        assert!(!ends(&[5, 5, 5, 5], true));
        assert!(!ends(&[6, 5, 4], true));
        assert!(!ends(&[2, 2, 3], true));
    }

    impl Sender {
        fn begin() -> Self {
            Self(Writes::begin(0, 0), 0)
        }

        /// Blocks of so many segments, the first after a pause, the others at once. Whether what was sent before that was all.
        fn flight(&mut self, blocks: &[u32], window: u32) -> bool {
            let is_dry = self.1 > 0 && self.0.pause(self.1, window, false);
            self.blocks(blocks);
            is_dry
        }

        fn blocks(&mut self, blocks: &[u32]) {
            for (i, segments) in blocks.iter().enumerate() {
                let bytes = segments * SEGMENT;
                let b = Block {
                    first: 0,
                    last: 0,
                    seq: self.1,
                    bytes,
                    ack: 0,
                    flight: 0,
                    packets: *segments as u16,
                    max_segment: SEGMENT as u16,
                    window: 0,
                    ttl: 64,
                    known: 3,
                };
                self.0
                    .block(&b, Some(SEGMENT), if i == 0 { 2 * SHORTEST_PAUSE } else { 0 });
                self.1 += bytes;
            }
        }
    }

    #[test]
    fn a_single_full_segment_with_psh_is_the_end() {
        let mut s = Sender::begin();
        s.flight(&[2, 2, 2, 1], 0);
        assert!(s.flight(&[2, 2], 0));
        // Nothing is known of a sender that pushes each segment.
        assert!(!s.flight(&[2, 1, 1], 0));
        assert!(!s.flight(&[2], 0));
    }

    #[test]
    fn the_end_is_a_piece_behind_what_could_be_sent() {
        for (last, window, is_dry) in [(6, 0, true), (4, 0, false), (6, 131_000, true), (6, 130_000, false)] {
            let mut s = Sender::begin();
            s.flight(&[4, 4, 2], 0);
            assert!(!s.flight(&[20], window));
            assert!(!s.flight(&[PIECE - 20 - 6], window));
            assert!(!s.flight(&[last], window));
            assert_eq!(s.flight(&[2], window), is_dry, "{last} {window}");
        }
    }

    /// A piece and a pause, and so on: nothing tells what could be sent.
    #[test]
    fn pieces_of_one_size_are_those_of_a_sender_that_paces() {
        let mut s = Sender::begin();
        let ends = [PIECE; 6].map(|piece| s.flight(&[piece], 0));
        assert_eq!(ends, [false; 6]);
    }

    /// The first flight of ten has gaps, of which none was a pause.
    #[test]
    fn a_first_flight_that_jitter_tore_is_one() {
        let mut s = Sender::begin();
        s.blocks(&[4]);
        s.blocks(&[6]);
        s.flight(&[PIECE], 0);
        assert!(s.flight(&[2], 0));
    }

    #[test]
    fn the_last_end_tells_of_the_next_whatever_pauses_are_between() {
        let mut s = Sender::begin();
        s.flight(&[10], 0);
        s.flight(&[PIECE], 0);
        assert!(s.flight(&[2, 8], 0));
        assert!(!s.flight(&[30], 0));
        assert!(!s.flight(&[7], 0));
        // A paced sender could send two segments when its application woke.
        assert!(s.flight(&[2], 0));
    }
}
