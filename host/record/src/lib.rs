//! The seam: 64-byte records between the flow engine (hardware or software) and the analysis.
//!
//! [`layout`] is generated from `proto/records.toml` and has one struct per record kind with
//! `encode` and `decode`; [`raw`] has the header and the byte container; [`time`] converts
//! between the TAI of records and the UTC of capture files; [`frame`] checks the frames that bring
//! records from the card. No I/O, no allocation.
#![forbid(unsafe_code)]

pub mod frame;
#[rustfmt::skip]
#[allow(clippy::cast_lossless)]
pub mod layout;
pub mod raw;
mod sack;
pub mod time;
pub mod timestamps;

pub use layout::*;
pub use raw::{FlowId, Header, Record};

/// The lowest port that a system in use gives to clients by itself (FreeBSD; 32,768 with Linux, 49,152 by RFC 6335 6):
/// of two below it the lower is the server's, of two others either may be.
pub const EPHEMERAL: u16 = 10_000;
