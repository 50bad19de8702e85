//! Registers behind a trait, so that a card, a simulated card and a test are the same to what is above.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::registers::Register;

/// The registers of one card.
pub trait Registers {
    /// Read a register. Reading some changes the card (see `docs/src/registers.md`).
    ///
    /// # Errors
    /// The register could not be read.
    fn read32(&mut self, register: Register) -> Result<u32, AccessError>;

    /// Write a register.
    ///
    /// # Errors
    /// The register could not be written.
    fn write32(&mut self, register: Register, value: u32) -> Result<(), AccessError>;

    /// A pair of registers: reading `low` holds `high`, the register behind it.
    ///
    /// # Errors
    /// As for [`Registers::read32`].
    fn read64(&mut self, low: Register) -> Result<u64, AccessError> {
        let value = u64::from(self.read32(low)?);
        let high = u64::from(self.read32(Register(low.0 + 4))?);
        Ok(high << 32 | value)
    }

    /// The same with what `clock` says before and behind the read of `low`, which is the value's moment.
    ///
    /// # Errors
    /// As for [`Registers::read32`].
    fn read64_timed(&mut self, low: Register, clock: &dyn Fn() -> u64) -> Result<Timed, AccessError> {
        let before = clock();
        let value = u64::from(self.read32(low)?);
        let after = clock();
        let high = u64::from(self.read32(Register(low.0 + 4))?);
        Ok(Timed {
            before,
            value: high << 32 | value,
            after,
        })
    }
}

/// A value, and the times between which the card had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Not later than the value.
    pub before: u64,
    /// What was read.
    pub value: u64,
    /// Not earlier than the value.
    pub after: u64,
}

/// An access to a register failed.
#[derive(Debug)]
pub enum AccessError {
    /// The card answered with an error: there is no such register.
    Refused(Register),
    /// The way to the card is broken.
    Link(std::io::Error),
    /// What came back is no answer to what was asked.
    Protocol(&'static str),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(register) => write!(f, "the card has no register at {:#06x}", register.0),
            Self::Link(error) => write!(f, "the card cannot be reached: {error}"),
            Self::Protocol(what) => write!(f, "the card's answer cannot be understood: {what}"),
        }
    }
}

impl std::error::Error for AccessError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Link(error) => Some(error),
            _ => None,
        }
    }
}

/// Registers that several threads use, an access at a time.
#[derive(Debug)]
pub struct Shared<R>(Arc<Mutex<R>>);

impl<R> Clone for Shared<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Shared<R> {
    /// Share them.
    pub fn new(registers: R) -> Self {
        Self(Arc::new(Mutex::new(registers)))
    }
}

impl<R: Registers> Registers for Shared<R> {
    fn read32(&mut self, register: Register) -> Result<u32, AccessError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read32(register)
    }

    fn write32(&mut self, register: Register, value: u32) -> Result<(), AccessError> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write32(register, value)
    }

    // Nobody else may read the low word between the two.
    fn read64(&mut self, low: Register) -> Result<u64, AccessError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read64(low)
    }

    fn read64_timed(&mut self, low: Register, clock: &dyn Fn() -> u64) -> Result<Timed, AccessError> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .read64_timed(low, clock)
    }
}
