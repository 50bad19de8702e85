//! Weir's protocol messages (`proto/weir/v1`): Rust types, proto3 JSON and the descriptor set.
//!
//! The types come from [`prost`]; `serde` gives them proto3 JSON: lowerCamelCase names, 64-bit
//! integers as strings, bytes as base64, times as RFC 3339. Counts of 0, empty texts and empty
//! lists are printed; a field that is `optional` or a message is left out while not set.
//! The values of a finding are printed plainly (`"values": {"periodSeconds": 10.0}`), as a
//! `google.protobuf.Value` would be.
//!
//! No gRPC here: `weir-api` adds services and clients, and what only prints answers builds without.

mod encoded;
mod finding_value;
mod span;
mod timestamp;

pub use encoded::Encoded;
pub use prost::Message;
pub use timestamp::{ParseTimestampError, Timestamp};

/// Messages of the package `weir.v1`.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rustdoc::all)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/weir.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/weir.v1.serde.rs"));
}

/// Encoded `google.protobuf.FileDescriptorSet` of all protos with their imports, services included.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
