#![doc = include_str!("../README.md")]
// The one crate with unsafe code: each block says why it is sound.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod affinity;
mod burst;
mod device;
mod eal;
mod error;
mod netif;
mod pool;
mod port;
mod run;
mod sys;

pub use burst::{BURST, Burst, Frame, Segments};
pub use device::Device;
pub use eal::{Eal, EalConfig, RegisteredThread};
pub use error::{Error, ErrorKind, Result};
pub use netif::LinkState;
pub use pool::{LARGEST_BUFFER, Mempool};
pub use port::{Port, PortConfig, PortStats};
pub use run::{ForwardDrops, FrameSink, LoopConfig, PortReport, Progress, Until, inline, receive};
