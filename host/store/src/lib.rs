//! Weir's tables: what the analysis finds, as Arrow columns and as Parquet files on disk.
//!
//! [`tables`] has the schemas and what fills them. [`Store`] writes them: commit by commit, each on disk as a whole
//! before it is told to be. [`Manifest::read`] says which files count, without a lock and while a writer works.
//! `docs/src/store.md` has the layout and the rules.
#![forbid(unsafe_code)]

mod check;
mod compaction;
mod csv;
mod error;
mod feed;
mod files;
mod hour;
mod manifest;
mod merge;
mod parquet_file;
mod retention;
mod rows;
mod source;
mod store;
pub mod tables;
pub mod unwritten;

pub use check::{Checked, check};
pub use compaction::Compacted;
pub use csv::CsvWriter;
pub use error::StoreError;
pub use feed::{DUE, Feed};
pub use manifest::{Manifest, Source, StoredFile, locate, open};
pub use merge::Merge;
pub use parquet_file::properties;
pub use retention::Expired;
pub use source::identify;
pub use store::{Committed, GRACE, Options, Recovery, Store, WhenFull, check_tap};
