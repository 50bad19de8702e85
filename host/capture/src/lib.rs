//! Capture files as a stream: pcap (µs, ns, both byte orders), pcapng (sections, several
//! interfaces and resolutions), gzip, zstd, standard input. Memory does not grow with the file.
//!
//! [`file::CaptureFile`] yields raw frames; [`feed::Feed`] parses them, puts IP fragments together
//! and gives words for the flow engine. [`intake::Intake`] takes the record frames of a card instead.
//! [`records()`] is the whole way of a file.
#![forbid(unsafe_code)]

mod beginning;
pub mod card;
mod defrag;
mod error;
pub mod feed;
pub mod file;
mod input;
pub mod intake;
mod length;
mod lost;
mod pcap;
mod pcapng;
mod records;
mod servers;
mod tags;

pub use beginning::Beginning;
pub use defrag::MAX_DATAGRAMS;
pub use error::{CaptureError, Cause};
pub use feed::{Feed, Item, Word};
pub use file::{CaptureFile, Frame};
pub use intake::Intake;
pub use length::length_by_ip;
pub use records::records;
