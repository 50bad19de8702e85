//! (see the crate's README)
