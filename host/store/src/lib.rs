//! Weir's tables: what the analysis finds, as Arrow columns and as Parquet files on disk.
//!
//! [`tables`] has the schemas and what fills them.
#![forbid(unsafe_code)]

pub mod tables;
