//! Where the pieces of a capture file lie, so that damage can be aimed.

use std::ops::Range;

/// The kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap.
    Pcap,
    /// pcapng.
    PcapNg,
    /// Anything else: compressed, or damaged beyond recognition.
    Other,
}

/// Pieces of a file: the file header or blocks, in order, without gaps.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Kind of file.
    pub format: Format,
    /// Multi-byte fields are big-endian.
    pub big: bool,
    /// The file header (pcap) first, then records; or all blocks (pcapng).
    pub blocks: Vec<Range<usize>>,
}

const SECTION: u32 = 0x0a0d_0d0a;
const ENHANCED_PACKET: u32 = 6;

impl Layout {
    /// Finds the pieces as far as the file is whole.
    #[must_use]
    pub fn of(data: &[u8]) -> Self {
        match data.get(..4) {
            Some([0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1]) => Self::pcap(data, false),
            Some([0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d]) => Self::pcap(data, true),
            Some([0x0a, 0x0d, 0x0d, 0x0a]) => Self::pcapng(data),
            _ => Self {
                format: Format::Other,
                big: false,
                blocks: Vec::new(),
            },
        }
    }

    fn pcap(data: &[u8], big: bool) -> Self {
        let mut blocks = Vec::new();
        let mut end = 24;
        if data.len() >= end {
            blocks.push(0..end);
        }
        while let Some(captured) = word(data, end + 8, big) {
            let next = end.saturating_add(16).saturating_add(captured as usize);
            if next > data.len() {
                break;
            }
            blocks.push(end..next);
            end = next;
        }
        Self {
            format: Format::Pcap,
            big,
            blocks,
        }
    }

    fn pcapng(data: &[u8]) -> Self {
        let mut blocks = Vec::new();
        let mut at = 0;
        let mut big = false;
        while let Some(kind) = word(data, at, big) {
            if kind == SECTION {
                big = data.get(at + 8..at + 12) == Some(&[0x1a, 0x2b, 0x3c, 0x4d]);
            }
            let Some(length) = word(data, at + 4, big) else { break };
            let next = at.saturating_add(length as usize);
            if length < 12 || next > data.len() {
                break;
            }
            blocks.push(at..next);
            at = next;
        }
        Self {
            format: Format::PcapNg,
            big,
            blocks,
        }
    }

    /// Where the frame of a block begins, if it is one with a frame.
    #[must_use]
    pub fn frame(&self, data: &[u8], index: usize) -> Option<Range<usize>> {
        let block = self.blocks.get(index)?.clone();
        let frame = match self.format {
            Format::Pcap if index > 0 => block.start + 16..block.end,
            Format::PcapNg if word(data, block.start, self.big) == Some(ENHANCED_PACKET) && block.len() >= 32 => {
                block.start + 28..block.end - 4
            }
            _ => return None,
        };
        (!frame.is_empty()).then_some(frame)
    }

    /// Offsets of the 32-bit fields of a block that say how long something is.
    #[must_use]
    pub fn length_fields(&self, index: usize) -> Vec<usize> {
        let Some(block) = self.blocks.get(index) else {
            return Vec::new();
        };
        let from_start: &[usize] = match (self.format, index) {
            // Snap length of the file; captured and original length of a record.
            (Format::Pcap, 0) => &[16],
            (Format::Pcap, _) => &[8, 12],
            // Total length; section length or captured and original length.
            (Format::PcapNg, _) => &[4, 16, 20, 24],
            (Format::Other, _) => &[],
        };
        let mut fields: Vec<usize> = from_start
            .iter()
            .map(|field| block.start + field)
            .filter(|field| field + 4 <= block.end)
            .collect();
        if self.format == Format::PcapNg {
            fields.push(block.end - 4);
        }
        fields
    }
}

fn word(data: &[u8], at: usize, big: bool) -> Option<u32> {
    let bytes: [u8; 4] = data.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A classic file with frames of the given lengths.
    pub fn pcap(lengths: &[usize]) -> Vec<u8> {
        let mut data = Vec::new();
        for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
            data.extend_from_slice(&word.to_le_bytes());
        }
        for &length in lengths {
            for word in [0, 0, length as u32, length as u32] {
                data.extend_from_slice(&word.to_le_bytes());
            }
            data.extend(std::iter::repeat_n(0xab, length));
        }
        data
    }

    #[test]
    fn records_and_frames_are_found_up_to_the_cut() {
        let mut data = pcap(&[60, 100]);
        let layout = Layout::of(&data);
        assert_eq!(layout.blocks, [0..24, 24..100, 100..216]);
        assert_eq!(layout.frame(&data, 1), Some(40..100));
        assert_eq!(layout.frame(&data, 0), None);
        assert_eq!(layout.length_fields(2), [108, 112]);
        data.truncate(200);
        assert_eq!(Layout::of(&data).blocks, [0..24, 24..100]);
    }

    #[test]
    fn pcapng_blocks_in_both_byte_orders() {
        for big in [false, true] {
            let put = |words: &[u32]| -> Vec<u8> {
                words
                    .iter()
                    .flat_map(|w| if big { w.to_be_bytes() } else { w.to_le_bytes() })
                    .collect()
            };
            let mut data = put(&[SECTION, 28, 0x1a2b_3c4d, 0x0001_0000, !0, !0, 28]);
            data.extend(put(&[1, 20, 1, 0, 20]));
            data.extend(put(&[6, 36, 0, 0, 0, 4, 4, 0xffff_ffff, 36]));
            let layout = Layout::of(&data);
            assert_eq!((layout.big, &layout.blocks[..]), (big, &[0..28, 28..48, 48..84][..]));
            assert_eq!(layout.frame(&data, 2), Some(76..80));
            assert_eq!(layout.length_fields(2), [52, 64, 68, 72, 80]);
        }
    }

    #[test]
    fn hostile_lengths_do_not_overflow() {
        let mut data = pcap(&[4]);
        data[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Layout::of(&data).blocks.len(), 1);
        assert_eq!(Layout::of(&[]).blocks.len(), 0);
    }
}
