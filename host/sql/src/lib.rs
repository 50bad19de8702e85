//! SQL over the store, by an embedded engine (Apache DataFusion) and as Arrow Flight SQL.
//!
//! | module | job |
//! |---|---|
//! | [`engine`] | a query in, batches of rows out, within limits of time and memory |
//! | `table` | the tables: the files of the store that count when a query begins |
//! | `storage` | reads those files, and nothing else |
//! | `depth` | how deep a query's tree may be, and the stack for it |
//! | `extent` | how much there may be to plan |
//! | `read_only` | which statements may run |
//! | [`functions`] | sequence arithmetic, subnets, names of hosts, percentiles by rank |
//! | [`placeholders`] | parameters written as `?` |
//! | [`output`] | answers as tables, CSV, JSON and Parquet |
//! | [`flight`] | the same for programs: Arrow Flight SQL |
//! | [`cli`] | the command line of `weir-sql` |
#![forbid(unsafe_code)]

pub mod cli;
mod depth;
pub mod engine;
pub mod error;
mod extent;
pub mod flight;
pub mod functions;
pub mod output;
pub mod placeholders;
mod read_only;
mod storage;
mod table;

pub use depth::STACK;
