//! `weir lab`: real kernel TCP over a wire whose every misdeed is known.
//!
//! Two network namespaces hold a client and a server. Between them runs a wire in user space: leg 1 from the client
//! to the middle tap, leg 2 from the tap to the server, each with its own impairments per direction. A run leaves
//! three captures (client end, middle, server end), the wire's truth (each frame dropped, delayed, duplicated or
//! reordered) and the application's truth (each connection and transaction with its times). What the analysis says
//! about the captures can then be checked against what happened.
//!
//! The layers, from the inside out: [`link`] decides about one frame in one direction of one leg and [`wire`] joins
//! four of these with a heap of timed events: both are pure functions of their inputs, times and seed. [`run()`] gives
//! them namespaces, packet sockets, files and the application.

mod analysis;
mod app;
mod args;
mod black_hole;
pub mod check;
mod checksum;
mod clock;
pub mod config;
mod ecn;
mod error;
pub mod findings;
pub mod frame;
pub mod limits;
pub mod link;
pub mod marks;
mod netns;
mod packet_socket;
pub mod pcap;
pub mod rng;
mod run;
pub mod score;
pub mod server_time;
pub mod truth;
pub mod window_scale;
pub mod wire;

pub use app::app_main;
pub use args::Args;
pub use config::Scenario;
pub use error::LabError;
pub use run::{FrameCounts, LabConfig, LabReport, run};
