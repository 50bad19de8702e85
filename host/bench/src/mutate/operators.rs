//! The ways in which a capture is damaged.

use super::layout::{Format, Layout};
use crate::rng::Rng;

/// One kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// One to sixteen bits are turned over.
    BitFlips,
    /// The file ends early.
    Truncate,
    /// A length field of the file format gets a value that lies.
    FileLength,
    /// A length, offset or type field of a frame's headers gets another value.
    FrameField,
    /// A block appears again, up to 64 times.
    Duplicate,
    /// A block is missing.
    Remove,
    /// Two blocks change places: times run backwards, interfaces come after their packets.
    Swap,
    /// The beginning of this file, the end of another.
    Splice,
    /// Random bytes over what was there.
    Overwrite,
    /// Random bytes in between.
    Insert,
    /// Some bytes are missing.
    Delete,
    /// A field of a file or block header: magic, version, link type, resolution, time.
    Header,
    /// Nothing but random bytes, or nothing at all.
    Noise,
}

impl Operator {
    const ALL: [Self; 13] = [
        Self::BitFlips,
        Self::Truncate,
        Self::FileLength,
        Self::FrameField,
        Self::Duplicate,
        Self::Remove,
        Self::Swap,
        Self::Splice,
        Self::Overwrite,
        Self::Insert,
        Self::Delete,
        Self::Header,
        Self::Noise,
    ];

    /// Any operator; noise is rare, for it seldom gets past the first test of a reader.
    pub fn any(rng: &mut Rng) -> Self {
        let picked = rng.pick(&Self::ALL).copied().unwrap_or(Self::BitFlips);
        if picked == Self::Noise && rng.chance(0.9) {
            Self::FrameField
        } else {
            picked
        }
    }
}

/// Values at which arithmetic on lengths goes wrong.
const LENGTHS: [u32; 18] = [
    0,
    1,
    3,
    4,
    7,
    8,
    11,
    12,
    13,
    15,
    16,
    0x7f,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff0,
    0xffff_ffff,
];

/// Offsets and widths of fields in an Ethernet frame with IPv4 or IPv6 and TCP (RFC 791 3.1, RFC 8200 3, RFC 9293 3.1):
/// type, version and header length, total length, fragment, protocol; payload length, next header; data offset, flags,
/// option kinds and lengths.
const FRAME_FIELDS: [(usize, usize); 18] = [
    (12, 2),
    (14, 1),
    (16, 2),
    (20, 2),
    (23, 1),
    (18, 2),
    (20, 1),
    (46, 1),
    (47, 1),
    (54, 1),
    (55, 1),
    (56, 1),
    (57, 1),
    (58, 1),
    (38, 4),
    (42, 4),
    (66, 1),
    (67, 1),
];

/// Types, protocols and options that lead into other parsers: VLAN, QinQ, MPLS, PPPoE, IPv6, IPv4; IP in IP, GRE, fragment header.
const FRAME_VALUES: [u32; 20] = [
    0, 1, 2, 4, 5, 6, 0x29, 0x2c, 0x2f, 0x3c, 0x45, 0x4f, 0x5f, 0xff, 0x0800, 0x8100, 0x88a8, 0x8847, 0x8864, 0x86dd,
];

/// Applies one kind of damage; `other` gives the end of a splice.
pub fn apply(operator: Operator, data: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let layout = Layout::of(data);
    match operator {
        Operator::BitFlips => {
            for _ in 0..rng.between(1, 16) {
                if let Some(at) = place(data, rng) {
                    data[at] ^= 1 << rng.below(8);
                }
            }
        }
        Operator::Truncate => data.truncate(rng.below(data.len() as u64) as usize),
        Operator::FileLength => file_length(data, &layout, rng),
        Operator::FrameField => frame_field(data, &layout, rng),
        Operator::Duplicate => {
            if let Some(block) = rng.pick(&layout.blocks) {
                let copy = data[block.clone()].repeat(1 << rng.below(7));
                data.splice(block.end..block.end, copy);
            }
        }
        Operator::Remove => {
            if let Some(block) = rng.pick(&layout.blocks) {
                data.drain(block.clone());
            }
        }
        Operator::Swap => {
            let a = rng.below(layout.blocks.len() as u64) as usize;
            let b = rng.below(layout.blocks.len() as u64) as usize;
            if let (Some(first), Some(second)) = (layout.blocks.get(a.min(b)), layout.blocks.get(a.max(b)))
                && a != b
            {
                let swapped = [
                    &data[second.clone()],
                    &data[first.end..second.start],
                    &data[first.clone()],
                ]
                .concat();
                data.splice(first.start..second.end, swapped);
            }
        }
        Operator::Splice => {
            let tail = Layout::of(other);
            // At the blocks, mostly: what follows then is read as a block of this file.
            let (cut, from) = match (rng.pick(&layout.blocks), rng.pick(&tail.blocks)) {
                (Some(here), Some(there)) if rng.chance(0.7) => (here.end, there.start),
                _ => (
                    rng.below(data.len() as u64) as usize,
                    rng.below(other.len() as u64) as usize,
                ),
            };
            data.truncate(cut);
            data.extend_from_slice(&other[from..]);
        }
        Operator::Overwrite => {
            if let Some(at) = place(data, rng) {
                let end = (at + rng.between(1, 64) as usize).min(data.len());
                data[at..end].fill_with(|| rng.bits() as u8);
            }
        }
        Operator::Insert => {
            let at = place(data, rng).unwrap_or(0);
            let bytes: Vec<u8> = (0..rng.between(1, 64)).map(|_| rng.bits() as u8).collect();
            data.splice(at..at, bytes);
        }
        Operator::Delete => {
            if let Some(at) = place(data, rng) {
                let end = (at + rng.between(1, 64) as usize).min(data.len());
                data.drain(at..end);
            }
        }
        Operator::Header => header(data, &layout, rng),
        Operator::Noise => {
            let length = if rng.chance(0.2) { 0 } else { rng.below(4096) };
            *data = (0..length).map(|_| rng.bits() as u8).collect();
        }
    }
}

/// Any place; one time in four among the first 64 octets, where the file says what it is.
fn place(data: &[u8], rng: &mut Rng) -> Option<usize> {
    let bound = if rng.chance(0.25) {
        data.len().min(64)
    } else {
        data.len()
    };
    (bound > 0).then(|| rng.below(bound as u64) as usize)
}

fn write_word(data: &mut [u8], at: usize, big: bool, value: u32) {
    if let Some(field) = data.get_mut(at..at + 4) {
        field.copy_from_slice(&if big { value.to_be_bytes() } else { value.to_le_bytes() });
    }
}

fn file_length(data: &mut [u8], layout: &Layout, rng: &mut Rng) {
    let index = rng.below(layout.blocks.len() as u64) as usize;
    let Some(&at) = rng.pick(&layout.length_fields(index)) else {
        return;
    };
    let length = layout.blocks[index].len() as u32;
    let value = if rng.chance(0.3) {
        // Near misses: off by little.
        length.wrapping_add(rng.below(33) as u32).wrapping_sub(16)
    } else {
        rng.pick(&LENGTHS).copied().unwrap_or(0)
    };
    write_word(data, at, layout.big, value);
}

fn frame_field(data: &mut [u8], layout: &Layout, rng: &mut Rng) {
    let index = rng.below(layout.blocks.len() as u64) as usize;
    let Some(frame) = layout.frame(data, index) else { return };
    let (at, width) = match rng.pick(&FRAME_FIELDS) {
        Some(&field) if rng.chance(0.7) => field,
        _ => (rng.below(100) as usize, 1 << rng.below(3)),
    };
    let value = if rng.chance(0.7) {
        rng.pick(&FRAME_VALUES).copied().unwrap_or(0)
    } else {
        rng.bits() as u32
    };
    // Fields of frames are big-endian.
    let bytes = value.to_be_bytes();
    if at + width <= frame.len() {
        data[frame.start + at..frame.start + at + width].copy_from_slice(&bytes[4 - width..]);
    }
}

fn header(data: &mut [u8], layout: &Layout, rng: &mut Rng) {
    let index = if rng.chance(0.5) {
        0
    } else {
        rng.below(layout.blocks.len() as u64) as usize
    };
    let Some(block) = layout.blocks.get(index) else { return };
    // Whole words of the header: pcap's magic … link type or time; pcapng's type, order, interface, time, options.
    let words = match layout.format {
        Format::Pcap if index == 0 => 6,
        Format::Pcap => 2,
        _ => (block.len() / 4).min(16),
    };
    let at = block.start + 4 * rng.below(words as u64) as usize;
    let value = match rng.below(3) {
        0 => rng.below(300) as u32,
        1 => rng.pick(&LENGTHS).copied().unwrap_or(0),
        _ => rng.bits() as u32,
    };
    write_word(data, at, layout.big, value);
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::pcap;
    use super::*;

    #[test]
    fn every_operator_changes_a_file_and_survives_any() {
        let whole = pcap(&[60, 1514, 60, 90]);
        let other = pcap(&[70; 8]);
        for operator in Operator::ALL {
            let mut rng = Rng::new(operator as u64);
            let mut changed = 0;
            for _ in 0..200 {
                let mut data = whole.clone();
                apply(operator, &mut data, &other, &mut rng);
                changed += usize::from(data != whole);
                // Damage on damage, down to nothing.
                for length in [0, 1, 23, 24, 30, 41] {
                    let mut short = whole[..length].to_vec();
                    apply(operator, &mut short, &other[..length], &mut rng);
                }
            }
            assert!(changed > 20, "{operator:?} changed {changed} of 200");
        }
    }
}
