//! What the analyst's page asks for: tables and aggregates as Arrow over HTTP (`docs/src/page-api.md`).
//!
//! A [`Collector`] keeps what the analysis of a capture finds; a [`Dataset`] is all of it in order, in memory; each
//! module of views answers one route from it: per pixel column, counted, never sampled. What reads captures is given
//! ([`Reader`]): no analysis happens here. Memory is bounded by [`Limits`].
#![forbid(unsafe_code)]

mod answers;
mod batch;
mod captures;
mod collect;
mod complete;
mod connection;
mod dataset;
mod error;
mod exchange;
mod fields;
mod groups;
mod lines;
mod marks;
mod packets;
mod params;
mod reply;
mod server;
mod span;
mod statistics;
mod tables;
mod timeline;
mod timing;
mod waits;

pub use captures::{Captures, Live, Progress, Reader, Reading};
pub use collect::{Collector, Dropped, Limits, Missing, Parts, Path, Recent};
pub use dataset::Dataset;
pub use error::Refused;
pub use server::{Site, router, serve};
