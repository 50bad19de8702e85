//! The record as bytes, its header, and the flow id.

use crate::layout::{Kind, VERSION, flag};

/// Bytes of a record.
pub const BYTES: usize = 64;

/// One record: 64 bytes, little-endian (layout in `docs/src/records.md`).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Record(pub [u8; BYTES]);

/// Identity of a flow, unique for the life of the appliance: boot epoch (16 bits), generation of
/// the context index (24) and context index (24).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

impl FlowId {
    /// Compose; each part is cut to its width.
    pub const fn new(epoch: u16, generation: u32, index: u32) -> Self {
        Self(((epoch as u64) << 48) | (((generation & 0xff_ffff) as u64) << 24) | (index & 0xff_ffff) as u64)
    }

    /// The boot epoch of whoever measured.
    pub const fn epoch(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The context index: small and dense, usable as an array index while the flow lives.
    pub const fn index(self) -> usize {
        (self.0 & 0xff_ffff) as usize
    }
}

/// The header fields that the writer chooses; kind, version and the continuation flag are added
/// when a layout is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Bits of [`flag`], without `CONTINUATION`.
    pub flags: u8,
    /// Lane, 0..16.
    pub lane: u8,
    /// Kind-specific code.
    pub arg: u8,
    /// Sequence number on the lane.
    pub sequence: u32,
    /// Flow, or 0.
    pub flow: FlowId,
    /// TAI ns.
    pub time: u64,
}

impl Header {
    /// A record with this header and zero content.
    #[inline]
    pub fn start(self, kind: Kind, continuation: bool) -> Record {
        let mut r = Record([0; BYTES]);
        r.0[0] = kind as u8;
        r.0[1] = self.flags | if continuation { flag::CONTINUATION } else { 0 };
        r.0[2] = (VERSION << 4) | (self.lane & 0xf);
        r.0[3] = self.arg;
        r.0[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        r.0[8..16].copy_from_slice(&self.flow.0.to_le_bytes());
        r.0[16..24].copy_from_slice(&self.time.to_le_bytes());
        r
    }
}

impl Record {
    /// The kind, or `None` for a number this version does not know.
    #[inline]
    pub const fn kind(&self) -> Option<Kind> {
        Kind::from_u8(self.0[0])
    }

    /// Header flags ([`flag`]).
    #[inline]
    pub const fn flags(&self) -> u8 {
        self.0[1]
    }

    /// Whether this record continues the previous one.
    #[inline]
    pub const fn is_continuation(&self) -> bool {
        self.0[1] & flag::CONTINUATION != 0
    }

    /// Whether the record speaks of the server-to-client direction.
    #[inline]
    pub const fn server_to_client(&self) -> bool {
        self.0[1] & flag::SERVER_TO_CLIENT != 0
    }

    /// Layout version.
    #[inline]
    pub const fn version(&self) -> u8 {
        self.0[2] >> 4
    }

    /// Lane.
    #[inline]
    pub const fn lane(&self) -> u8 {
        self.0[2] & 0xf
    }

    /// Kind-specific code.
    #[inline]
    pub const fn arg(&self) -> u8 {
        self.0[3]
    }

    /// Sequence number on the lane.
    #[inline]
    pub fn sequence(&self) -> u32 {
        get::<4>(self, 4) as u32
    }

    /// Flow.
    #[inline]
    pub fn flow(&self) -> FlowId {
        FlowId(get::<8>(self, 8))
    }

    /// TAI ns.
    #[inline]
    pub fn time(&self) -> u64 {
        get::<8>(self, 16)
    }

    /// The record of 64 bytes, or an error that says how many there were.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, LengthError> {
        bytes.try_into().map(Self).map_err(|_| LengthError(bytes.len()))
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Record({:?} lane {} #{} flow {:x} time {} arg {} flags {:#x})",
            self.kind(),
            self.lane(),
            self.sequence(),
            self.flow().0,
            self.time(),
            self.arg(),
            self.flags()
        )
    }
}

/// A record was not 64 bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthError(pub usize);

impl std::fmt::Display for LengthError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a record has {BYTES} bytes, got {}", self.0)
    }
}

impl std::error::Error for LengthError {}

/// Little-endian value of `N` bytes at `at`.
#[inline]
pub(crate) fn get<const N: usize>(r: &Record, at: usize) -> u64 {
    let mut wide = [0u8; 8];
    wide[..N].copy_from_slice(&r.0[at..at + N]);
    u64::from_le_bytes(wide)
}

/// Write the low `N` bytes of `value` at `at`.
#[inline]
pub(crate) fn put<const N: usize>(r: &mut Record, at: usize, value: u64) {
    r.0[at..at + N].copy_from_slice(&value.to_le_bytes()[..N]);
}

/// `N` bytes at `at`.
#[inline]
pub(crate) fn bytes<const N: usize>(r: &Record, at: usize) -> [u8; N] {
    let mut out = [0u8; N];
    out.copy_from_slice(&r.0[at..at + N]);
    out
}
