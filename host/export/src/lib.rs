//! What others' tools read: packets as pcapng with comments, connections as IPFIX, tables as CSV and Parquet.
//!
//! - [`pcapng`]: blocks of a pcapng file.
//! - [`comment`]: what Weir thinks of a packet, in words.
//! - [`copy`]: the packets of a selection, out of the capture that was analysed.
//! - [`ipfix`]: connections as biflows (RFC 7011, RFC 5103).
//! - [`collector`]: where IPFIX messages go.
//! - [`tables`]: rows as CSV and Parquet.
#![forbid(unsafe_code)]

pub mod collector;
pub mod comment;
pub mod copy;
pub mod ipfix;
pub mod pcapng;
pub mod tables;
