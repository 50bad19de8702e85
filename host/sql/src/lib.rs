//! SQL over the store, by an embedded engine and as Arrow Flight SQL.
#![forbid(unsafe_code)]
