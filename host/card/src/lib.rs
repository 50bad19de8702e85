//! The card's control plane, as the host has it.
//!
//! ```text
//! Card: attach, firmware, configuration, start, stop, statistics, faults
//!   │            └── Heartbeat (a thread)
//!   ▼                 │
//! Mailbox: messages   │        proto/card.toml
//!   ▼                 ▼
//! Registers: read32, write32   hw/registers/weir.rdl
//!   ▼
//! SocketRegisters (the simulated card), Shared<R> (several users of one card)
//! ```
//! [`registers`] and [`protocol`] are generated. Time is waited for in one place: [`mailbox::Timing`].
#![forbid(unsafe_code)]

mod access;
mod card;
mod crc;
mod error;
mod heartbeat;
mod image;
pub mod mailbox;
#[rustfmt::skip]
#[allow(missing_docs)]
pub mod protocol;
#[rustfmt::skip]
pub mod registers;
mod socket;

pub use access::{AccessError, Registers, Shared};
pub use card::{Card, Info};
pub use crc::crc32;
pub use error::CardError;
pub use heartbeat::Heartbeat;
pub use image::{Image, ImageProblem};
pub use mailbox::{Mailbox, Message, Timing};
pub use socket::SocketRegisters;
