//! The flow engine in software: frames in, records out, deterministic, time from the packets.
//!
//! [`parse`] turns a frame into a [`meta::Meta`] word; [`tracker`] turns words into records. Both
//! follow `docs/src/flow-engine.md`, as the hardware does; where this code and the specification
//! differ, the code is wrong.
#![forbid(unsafe_code)]

mod config;
mod flow;
pub mod meta;
pub mod parse;
mod servers;
mod table;
pub mod tracker;
mod visits;

pub use config::Config;
pub use meta::{Class, End, Key, Meta, Options};
pub use parse::{Fragment, LinkType, Parsed, Parser, Profile};
pub use servers::Servers;
pub use tracker::{Batch, Engine, PortCounters};
