//! Weir's record log, gRPC services and filter language.
//!
//! - [`log`]: the bounded, crash-safe queue of records on disk. The engine's thread appends, the
//!   analysis and gRPC subscribers read, each at its own position.
//! - [`facts`]: what the analysis found out, in memory.
//! - [`filter`]: one filter grammar for gRPC and the command line.
//! - [`access`], [`tls`], [`http`]: who may call, also at the daemon's other addresses.
//! - [`server`]: the services of `proto/weir/v1`, with health and reflection.
//! - [`v1`]: generated clients and servers; their messages are those of `weir-messages`.
#![forbid(unsafe_code)]

pub mod access;
pub mod analyses;
mod appliance;
mod checksum;
mod connection_feed;
pub mod facts;
pub mod filter;
mod finding_feed;
mod flows;
pub mod health;
pub mod http;
mod incoming;
pub mod log;
pub mod packets;
mod records;
pub mod server;
pub mod state;
mod status;
mod streams;
pub mod tls;
mod token;

pub use status::DOMAIN;
pub use streams::MAX_STREAMS;

/// Clients and servers of the package `weir.v1`.
#[allow(missing_docs, clippy::all, rustdoc::all)]
pub mod v1 {
    tonic::include_proto!("weir.v1");
}

/// The examples of the README and of the book compile.
#[cfg(doctest)]
mod examples {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/src/grpc.md")]
    mod grpc {}
}
