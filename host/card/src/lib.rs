//! The card's control plane, as the host has it.
//!
//! ```text
//! Keeper: firmware, start and watch for a service, again when the card was lost
//!   ▼
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
mod event;
mod heartbeat;
mod image;
mod keeper;
pub mod mailbox;
#[rustfmt::skip]
#[allow(missing_docs)]
pub mod protocol;
#[rustfmt::skip]
pub mod registers;
mod seed;
mod socket;

pub use access::{AccessError, Registers, Shared, Timed};
pub use card::{Card, Info};
pub use crc::crc32;
pub use error::CardError;
pub use event::{Event, Severity, fault_name, state_name, version};
pub use heartbeat::Heartbeat;
pub use image::{Image, ImageProblem};
pub use keeper::{Keeper, Phase, Report, Service, Settings, unhealthy_names};
pub use mailbox::{Mailbox, Message, Timing};
pub use socket::SocketRegisters;
