//! Weir's tables: what the analysis finds, as Arrow columns and as Parquet files on disk.
#![forbid(unsafe_code)]
