//! The tables: Arrow schemas, and builders that the analysis's facts and records fill.
//!
//! [`Table`] lists them with their schemas and documentation. [`Tables`] is a [`Sink`] that builds batches of all of
//! them; who needs one table alone uses its [`Builder`].
//!
//! Every table has `tap`, the name of where the packets were seen, as its first column. Times are UTC in ns, durations
//! Float64 seconds, closed sets of names and addresses dictionaries of texts. What is not known is NULL, never 0.

mod blocks;
mod builder;
mod column;
mod connections;
mod ends;
mod events;
mod findings;
mod intervals;
mod packets;
mod ports;
mod segments;
mod shares;
mod sink;
mod table;
mod tcp;
mod transactions;

pub use arrow::array::RecordBatch;
pub(crate) use builder::tap_array;
pub use builder::{Builder, Row};
pub use column::{Cell, Column};
pub use events::Event;
pub use findings::Finding;
pub use intervals::Interval;
pub use packets::Packet;
pub use ports::Port;
pub use segments::Segment;
pub use sink::{ROWS, Tables};
pub use table::{Described, Table};
pub use transactions::Transaction;
