//! Classic pcap (draft-ietf-opsawg-pcap).

use weir_engine::LinkType;

use crate::error::Cause;
use crate::file::Located;
use crate::input::{Input, MAX_PIECE};

const FILE_HEADER: usize = 24;
/// Of a packet: seconds, fraction, captured length, length on the wire.
const LEAST_HEADER: usize = 16;

/// Layout of a pcap file.
pub(crate) struct Pcap {
    big: bool,
    nanoseconds: bool,
    /// 16, or 24 for the variant that adds an interface index (magic a1b2cd34).
    record_header: usize,
    link: Option<LinkType>,
    link_number: u16,
    fcs: u32,
    /// Minor version; before 4 the two lengths of a packet stand the other way round, or may.
    minor: u16,
}

impl Pcap {
    pub fn open(input: &mut Input, magic: [u8; 4]) -> Result<Self, Cause> {
        let (big, nanoseconds, record_header) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, false, 16),
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, false, 16),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, true, 16),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, true, 16),
            [0xa1, 0xb2, 0xcd, 0x34] => (true, false, 24),
            [0x34, 0xcd, 0xb2, 0xa1] => (false, false, 24),
            _ => return Err(Cause::NotACapture(magic)),
        };
        let have = input.fill(FILE_HEADER).map_err(Cause::Io)?;
        if have < FILE_HEADER {
            return Err(Cause::Cut {
                what: "file header",
                have,
                need: FILE_HEADER,
            });
        }
        let header = input.peek(0, FILE_HEADER);
        let network = u32_at(header, 20, big);
        let (major, minor) = (u16_at(header, 4, big), u16_at(header, 6, big));
        if major != 2 {
            return Err(Cause::Corrupt(format!("pcap version {major}, only 2 is known")));
        }
        // Bit 26: the length of the FCS is known, in bits 28 to 31, units of 16 bits.
        let fcs = if network & 1 << 26 != 0 { (network >> 28) * 2 } else { 0 };
        let link_number = network as u16;
        let link = LinkType::from_pcap(link_number.into());
        input.skip(FILE_HEADER);
        Ok(Self {
            big,
            nanoseconds,
            record_header,
            link,
            link_number,
            fcs,
            minor,
        })
    }

    /// Lengths of a packet, captured and on the wire, as its header has them: libpcap wrote them the other way round before version 2.3, and
    /// some programs in that one.
    #[cold]
    fn old_lengths(&self, captured: u32, wire: u32) -> (u32, u32) {
        if self.minor < 3 || captured > wire {
            (wire, captured)
        } else {
            (captured, wire)
        }
    }

    #[inline(always)]
    pub fn next(&mut self, input: &mut Input) -> Result<Option<Located>, Cause> {
        let need = self.record_header;
        let have = input.fill(need).map_err(Cause::Io)?;
        if have < need {
            return if have == 0 {
                Ok(None)
            } else {
                cut("packet header", have, need)
            };
        }
        let [seconds, fraction, mut captured, mut wire] = words(input.peek(0, LEAST_HEADER), self.big);
        if self.minor < 4 {
            (captured, wire) = self.old_lengths(captured, wire);
        }
        if captured as usize > MAX_PIECE - need {
            return too_long(captured, MAX_PIECE - need);
        }
        let piece = need + captured as usize;
        let have = input.fill(piece).map_err(Cause::Io)?;
        if have < piece {
            return cut("packet", have, piece);
        }
        let cut = (captured + self.fcs).saturating_sub(wire.max(captured)).min(captured);
        Ok(Some(Located {
            utc_ns: self.utc(seconds, fraction),
            interface: 0,
            link: self.link,
            link_number: self.link_number,
            wire: wire.max(captured).saturating_sub(self.fcs),
            from: need,
            to: piece - cut as usize,
            piece,
        }))
    }

    #[inline]
    const fn utc(&self, seconds: u32, fraction: u32) -> u64 {
        let nanos = if self.nanoseconds { 1 } else { 1000 } * fraction as u64;
        seconds as u64 * 1_000_000_000 + nanos
    }

    /// Time of the packet `from` bytes ahead, if there is one.
    pub fn time_at(&self, input: &mut Input, from: usize) -> Option<u64> {
        let to = from + LEAST_HEADER;
        (input.fill(to).ok()? == to).then(|| {
            let [seconds, fraction, ..] = words(input.peek(from, to), self.big);
            self.utc(seconds, fraction)
        })
    }
}

#[cold]
fn cut<T>(what: &'static str, have: usize, need: usize) -> Result<T, Cause> {
    Err(Cause::Cut { what, have, need })
}

#[cold]
fn too_long<T>(captured: u32, most: usize) -> Result<T, Cause> {
    Err(Cause::Corrupt(format!(
        "a packet says that {captured} bytes of it were captured, more than {most} cannot be"
    )))
}

/// The first four words.
#[inline]
fn words(bytes: &[u8], big: bool) -> [u32; 4] {
    let bytes: &[u8; LEAST_HEADER] = bytes.first_chunk().unwrap_or(&[0; LEAST_HEADER]);
    let at = [0, 4, 8, 12];
    if big {
        at.map(|at| u32_at(bytes, at, true))
    } else {
        at.map(|at| u32_at(bytes, at, false))
    }
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize, big: bool) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|s| s.try_into().ok()).unwrap_or([0; 4]);
    if big {
        u32::from_be_bytes(word)
    } else {
        u32::from_le_bytes(word)
    }
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize, big: bool) -> u16 {
    let half = bytes.get(at..at + 2).and_then(|s| s.try_into().ok()).unwrap_or([0; 2]);
    if big {
        u16::from_be_bytes(half)
    } else {
        u16::from_le_bytes(half)
    }
}
