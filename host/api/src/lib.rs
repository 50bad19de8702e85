//! (see the crate's README)
mod checksum;
pub mod filter;
pub mod log;
