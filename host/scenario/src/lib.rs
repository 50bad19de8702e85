//! `weir scenario`: captures of a network that never was, with the truth about it.
//!
//! A discrete-event simulation at the level of TCP segments. Hosts run [`tcp`] endpoints with real congestion control,
//! timers, windows and options; applications ([`sim`]) talk over them through worker limits, shared processors, pools,
//! pauses and chunked writes, and tiers call tiers; [`link`] delays and loses segments; taps write what passes. A run
//! depends on its TOML file and its seed alone: the same two give the same files, byte for byte.
//!
//! Layers, from the inside out: [`congestion`] and [`tcp`] are sans-IO (segments, time and calls in; segments, notes
//! and deadlines out), [`link`] decides about one segment, [`sim`] moves everything in the order of time, [`tap`]
//! and [`truth`] write files.

mod again;
mod args;
pub mod config;
pub mod congestion;
mod error;
mod events;
pub mod link;
pub mod packet;
pub mod sim;
mod tap;
pub mod tcp;
pub mod truth;

pub use args::Args;
pub use config::Scenario;
pub use error::ScenarioError;
pub use sim::{Report, run};

/// Simulated time: nanoseconds since the start of the scenario.
pub type Time = u64;

/// Nanoseconds of a number of milliseconds.
pub(crate) fn from_ms(ms: f64) -> Time {
    (ms * 1e6).round() as Time
}

/// Nanoseconds of a number of seconds.
pub(crate) fn from_s(seconds: f64) -> Time {
    (seconds * 1e9).round() as Time
}
