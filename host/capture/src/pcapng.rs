//! pcapng (draft-ietf-opsawg-pcapng).

use std::ops::Range;

use weir_engine::LinkType;

use crate::error::Cause;
use crate::file::Located;
use crate::input::{Input, MAX_PIECE};
use crate::lost::{Lost, MAX_INTERFACES};
use crate::pcap::{u16_at, u32_at};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2; // obsolete
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

#[derive(Clone, Copy)]
struct Interface {
    link: Option<LinkType>,
    link_number: u16,
    /// 0: no limit.
    snap: u32,
    resolution: Resolution,
    /// Seconds to add to each time.
    offset: i64,
    fcs: u32,
}

/// Ticks per second.
#[derive(Clone, Copy, PartialEq)]
enum Resolution {
    Micro,
    Nano,
    Other(u64),
}

/// State of a pcapng stream.
#[derive(Default)]
pub(crate) struct Pcapng {
    big: bool,
    interfaces: Vec<Interface>,
    lost: Lost,
    /// A packet has come.
    is_begun: bool,
}

impl Pcapng {
    /// What the interfaces lost, by the blocks so far.
    pub fn lost(&self) -> &Lost {
        &self.lost
    }

    pub fn next(&mut self, input: &mut Input) -> Result<Option<Located>, Cause> {
        loop {
            let have = input.fill(12).map_err(Cause::Io)?;
            if have == 0 {
                return Ok(None);
            }
            if have < 12 {
                return Err(Cause::Cut {
                    what: "block",
                    have,
                    need: 12,
                });
            }
            let start = input.peek(0, 12);
            if u32_at(start, 0, false) == SECTION {
                self.big = match u32_at(start, 8, false) {
                    0x1a2b_3c4d => false,
                    0x4d3c_2b1a => true,
                    other => {
                        return Err(Cause::Corrupt(format!(
                            "byte-order magic {other:#010x} is not that of pcapng"
                        )));
                    }
                };
            }
            let kind = u32_at(start, 0, self.big);
            let length = u32_at(start, 4, self.big) as usize;
            if !(12..=MAX_PIECE).contains(&length) {
                return Err(Cause::Corrupt(format!(
                    "a block of type {kind:#x} says it is {length} bytes long"
                )));
            }
            let piece = length.next_multiple_of(4);
            let have = input.fill(piece).map_err(Cause::Io)?;
            if have < length {
                return Err(Cause::Cut {
                    what: "block",
                    have,
                    need: length,
                });
            }
            // The length stands at both ends. (Writers that forget the padding put it anywhere.)
            let trailer = u32_at(input.peek(length - 4, length), 0, self.big) as usize;
            if length.is_multiple_of(4) && trailer != length {
                return Err(Cause::Corrupt(format!(
                    "a block says that it is {length} bytes long at its start and {trailer} at its end"
                )));
            }
            // A last block without its padding is whole all the same.
            let piece = piece.min(have);
            if let Some(mut located) = self.block(kind, input.peek(0, length), piece)? {
                if kind == SIMPLE_PACKET && !self.is_begun {
                    located.utc_ns = self.time_at(input, piece).unwrap_or(0);
                }
                self.is_begun = true;
                return Ok(Some(located));
            }
            input.skip(piece);
        }
    }

    #[inline]
    fn block(&mut self, kind: u32, block: &[u8], piece: usize) -> Result<Option<Located>, Cause> {
        let body_end = block.len() - 4;
        let need = |bytes: usize, what: &str| {
            if body_end < 8 + bytes {
                return Err(Cause::Corrupt(format!(
                    "a {what} block of {} bytes is too short",
                    block.len()
                )));
            }
            Ok(())
        };
        match kind {
            ENHANCED_PACKET | PACKET => {
                need(20, "packet")?;
                let (number, ticks) = self.number_and_ticks(kind, block);
                let captured = u32_at(block, 20, self.big);
                let wire = u32_at(block, 24, self.big);
                let located = self.packet(block, piece, number, ticks, 28, captured, wire)?;
                let options = 28 + captured.next_multiple_of(4) as usize;
                if kind == PACKET || options < body_end {
                    self.lost_before(kind, number, block, options..body_end);
                }
                Ok(located)
            }
            SIMPLE_PACKET => {
                need(4, "simple packet")?;
                let wire = u32_at(block, 8, self.big);
                let snap = match self.interfaces.first().map_or(0, |i| i.snap) {
                    0 => u32::MAX,
                    snap => snap,
                };
                let captured = wire.min(snap).min((body_end - 12) as u32);
                // It has no time: 0 is clamped to the time of the frame before it, and the first has that of the next.
                self.packet(block, piece, 0, 0, 12, captured, wire)
            }
            SECTION => {
                need(16, "section header")?;
                let major = u16_at(block, 12, self.big);
                if major != 1 {
                    return Err(Cause::Corrupt(format!("pcapng version {major}, only 1 is known")));
                }
                self.interfaces.clear();
                self.lost.next_section();
                Ok(None)
            }
            INTERFACE => {
                need(8, "interface")?;
                if self.interfaces.len() == MAX_INTERFACES {
                    return Err(Cause::Corrupt(format!(
                        "more than {MAX_INTERFACES} interfaces in a section"
                    )));
                }
                let interface = self.interface(block, body_end);
                self.interfaces.push(interface);
                Ok(None)
            }
            STATISTICS => {
                need(12, "statistics")?;
                self.statistics(block, body_end);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Interface and time of a packet block; the obsolete one differs in the width of the interface number alone.
    #[inline]
    fn number_and_ticks(&self, kind: u32, block: &[u8]) -> (u32, u64) {
        let number = match kind {
            PACKET => u16_at(block, 8, self.big).into(),
            _ => u32_at(block, 8, self.big),
        };
        let ticks = u64::from(u32_at(block, 12, self.big)) << 32 | u64::from(u32_at(block, 16, self.big));
        (number, ticks)
    }

    /// Time of the packet behind the next `from` bytes, if there is one with a time in this section and no new interface
    /// before it.
    pub fn time_at(&self, input: &mut Input, mut from: usize) -> Option<u64> {
        const HEADER: usize = 20;
        loop {
            let to = from.checked_add(HEADER)?;
            if input.fill(to).ok()? < to {
                return None;
            }
            let block = input.peek(from, to);
            let kind = u32_at(block, 0, self.big);
            match kind {
                ENHANCED_PACKET | PACKET => {
                    let (number, ticks) = self.number_and_ticks(kind, block);
                    return self
                        .interfaces
                        .get(number as usize)
                        .map(|interface| interface.utc(ticks));
                }
                INTERFACE | SECTION => return None,
                _ => {}
            }
            let length = u32_at(block, 4, self.big) as usize;
            if !(12..=MAX_PIECE).contains(&length) {
                return None;
            }
            from += length.next_multiple_of(4);
        }
    }

    #[allow(clippy::too_many_arguments)] // the fields of three block types
    #[inline]
    fn packet(
        &self,
        block: &[u8],
        piece: usize,
        number: u32,
        ticks: u64,
        from: usize,
        captured: u32,
        wire: u32,
    ) -> Result<Option<Located>, Cause> {
        let Some(interface) = self.interfaces.get(number as usize) else {
            return Err(Cause::Corrupt(format!(
                "a packet of interface {number}, but the section describes {} interfaces",
                self.interfaces.len()
            )));
        };
        if captured as usize > block.len() - 4 - from {
            return Err(Cause::Corrupt(format!(
                "a packet says that {captured} bytes of it were captured, its block has room for {}",
                block.len() - 4 - from
            )));
        }
        let wire = wire.max(captured);
        let cut = (captured + interface.fcs).saturating_sub(wire).min(captured);
        Ok(Some(Located {
            utc_ns: interface.utc(ticks),
            interface: number,
            link: interface.link,
            link_number: interface.link_number,
            wire: wire.saturating_sub(interface.fcs),
            from,
            to: from + (captured - cut) as usize,
            piece,
        }))
    }

    fn interface(&self, block: &[u8], end: usize) -> Interface {
        let link_number = u16_at(block, 8, self.big);
        let mut interface = Interface {
            link: LinkType::from_pcap(link_number.into()),
            link_number,
            snap: u32_at(block, 12, self.big),
            resolution: Resolution::Micro,
            offset: 0,
            fcs: 0,
        };
        for (code, value) in (Options {
            bytes: block.get(16..end).unwrap_or_default(),
            big: self.big,
        }) {
            match (code, value) {
                (9, [resolution, ..]) => interface.resolution = Resolution::of(*resolution),
                // In bits by the draft; some writers give bytes.
                (13, [fcs, ..]) => interface.fcs = u32::from(if *fcs >= 8 { fcs / 8 } else { *fcs }),
                (14, value) if value.len() == 8 => interface.offset = self.u64_of(value) as i64,
                _ => {}
            }
        }
        interface
    }

    /// isb_ifdrop (5) and isb_osdrop (7): frames lost before the file.
    fn statistics(&mut self, block: &[u8], end: usize) {
        let number = u32_at(block, 8, self.big);
        let mut dropped = 0u64;
        for (code, value) in (Options {
            bytes: block.get(20..end).unwrap_or_default(),
            big: self.big,
        }) {
            if matches!(code, 5 | 7) && value.len() == 8 {
                dropped = dropped.saturating_add(self.u64_of(value));
            }
        }
        self.lost.statistics(number, dropped);
    }

    /// epb_dropcount (4), or the field of the obsolete block, in which all ones are unknown: frames lost between the packet
    /// before it and this one.
    #[cold]
    fn lost_before(&mut self, kind: u32, number: u32, block: &[u8], options: Range<usize>) {
        let frames = if kind == PACKET {
            Some(u16_at(block, 10, self.big))
                .filter(|n| *n != u16::MAX)
                .map(u64::from)
        } else {
            let bytes = block.get(options).unwrap_or_default();
            Options { bytes, big: self.big }
                .find(|(code, value)| *code == 4 && value.len() == 8)
                .map(|(_, value)| self.u64_of(value))
        };
        if let Some(frames) = frames.filter(|n| *n > 0) {
            self.lost.before_packet(number, frames);
        }
    }

    fn u64_of(&self, value: &[u8]) -> u64 {
        let (a, b) = (
            u64::from(u32_at(value, 0, self.big)),
            u64::from(u32_at(value, 4, self.big)),
        );
        if self.big { a << 32 | b } else { b << 32 | a }
    }
}

impl Resolution {
    /// if_tsresol: a power of 10, or of 2 with the highest bit set.
    fn of(byte: u8) -> Self {
        let exponent = u32::from(byte & 0x7f);
        let base: u64 = if byte & 0x80 != 0 { 2 } else { 10 };
        match base.checked_pow(exponent) {
            Some(1_000_000) => Self::Micro,
            Some(1_000_000_000) => Self::Nano,
            Some(ticks) => Self::Other(ticks),
            None => Self::Other(u64::MAX),
        }
    }
}

impl Interface {
    #[inline]
    fn utc(&self, ticks: u64) -> u64 {
        let ns = match self.resolution {
            Resolution::Micro => u128::from(ticks) * 1000,
            Resolution::Nano => u128::from(ticks),
            Resolution::Other(per_second) => u128::from(ticks) * 1_000_000_000 / u128::from(per_second),
        };
        // Times beyond the year 2262 are damage; the engine bounds them too.
        let ns = i128::try_from(ns).unwrap_or(i128::MAX) + i128::from(self.offset) * 1_000_000_000;
        ns.clamp(0, 1 << 62) as u64
    }
}

/// Options of a block: (code, value).
struct Options<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.len() < 4 {
            return None;
        }
        let code = u16_at(self.bytes, 0, self.big);
        let length = usize::from(u16_at(self.bytes, 2, self.big));
        if code == 0 {
            return None;
        }
        let value = self.bytes.get(4..4 + length)?;
        self.bytes = self.bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    }
}
