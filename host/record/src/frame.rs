//! Record frames: how records travel from the card to the host (`docs/src/records.md`, record frames).
//!
//! [`open`] looks at all that a frame says of itself before any record of it is used: a frame is good as a whole or
//! not at all.

use crate::layout::{FrameHeader, Kind, LANES, VERSION};
use crate::raw::{BYTES, FlowId, Record};

/// Why a frame is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Refusal {
    /// Another EtherType: not from the card.
    Foreign,
    /// Shorter than the header.
    Short,
    /// A version of the header that this program does not know.
    Version,
    /// No lane of ours, or bits that must be 0.
    Header,
    /// A count of records that cannot be.
    Count,
    /// Longer or shorter than its count of records.
    Length,
    /// A record contradicts the header (version, lane, number, epoch), or is none that a card makes.
    Record,
    /// It was here before.
    Repeated,
    /// It comes after one that was sent later; its records are in a gap by now.
    Late,
}

impl Refusal {
    /// All reasons in numeric order.
    pub const ALL: [Self; 9] = [
        Self::Foreign,
        Self::Short,
        Self::Version,
        Self::Header,
        Self::Count,
        Self::Length,
        Self::Record,
        Self::Repeated,
        Self::Late,
    ];

    /// The name used in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Foreign => "FOREIGN",
            Self::Short => "SHORT",
            Self::Version => "VERSION",
            Self::Header => "HEADER",
            Self::Count => "COUNT",
            Self::Length => "LENGTH",
            Self::Record => "RECORD",
            Self::Repeated => "REPEATED",
            Self::Late => "LATE",
        }
    }
}

/// The header of a good frame, and its records.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The header.
    pub header: FrameHeader,
    records: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The records.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record> + 'a {
        self.records.chunks_exact(BYTES).map(record)
    }
}

/// Check a frame as it came, without FCS.
///
/// # Errors
/// The first reason not to use it.
pub fn open(data: &[u8]) -> Result<Frame<'_>, Refusal> {
    let ethertype = data.get(12..14).ok_or(Refusal::Foreign)?;
    if ethertype != FrameHeader::ETHERTYPE.to_be_bytes() {
        return Err(Refusal::Foreign);
    }
    let (head, records) = data.split_at_checked(BYTES).ok_or(Refusal::Short)?;
    let head = record(head);
    let header = FrameHeader::decode(&head);
    if header.version != FrameHeader::VERSION {
        return Err(Refusal::Version);
    }
    // What is 0 in every header: what is not decoded does not come back.
    if usize::from(header.lane) >= LANES || header.encode() != head {
        return Err(Refusal::Header);
    }
    if header.records == 0 || header.records > FrameHeader::MAX_RECORDS || header.first_sequence != header.total as u32
    {
        return Err(Refusal::Count);
    }
    if records.len() != usize::from(header.records) * BYTES {
        return Err(Refusal::Length);
    }
    let frame = Frame { header, records };
    let mut sequence = header.first_sequence;
    for record in frame.records() {
        // GAP is the host's own.
        let fits = record.version() == VERSION
            && record.kind() != Some(Kind::Gap)
            && record.lane() == header.lane
            && record.sequence() == sequence
            && (record.flow() == FlowId(0) || record.flow().epoch() == header.epoch);
        if !fits {
            return Err(Refusal::Record);
        }
        sequence = sequence.wrapping_add(1);
    }
    Ok(frame)
}

/// 64 bytes; zeros when they are not 64, which callers exclude.
fn record(bytes: &[u8]) -> Record {
    Record::from_slice(bytes).unwrap_or(Record([0; BYTES]))
}
