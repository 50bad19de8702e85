//! What can go wrong, in words that name what, where and what to do.

use std::fmt;

use crate::eal::log_text;
use crate::sys;

/// The kinds of failure a caller may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The environment of DPDK can be started once per process, and was.
    AlreadyStarted,
    /// The environment could not be started.
    Start,
    /// A device name or setting that cannot be used.
    Argument,
    /// A device that could not be opened or set up.
    Device,
    /// Packet memory ran out.
    Memory,
    /// The code that was shown the frames failed.
    Measuring,
}

/// A failure, with the reason DPDK or the system gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// A failed DPDK call: `code` is a positive errno, or 0 or 1 when none was given.
    /// What the libraries logged since the last failure is appended.
    pub(crate) fn dpdk(kind: ErrorKind, what: &str, code: i32) -> Self {
        let mut message = what.to_owned();
        // Drivers give -1 for any failure: as an errno it would say "not permitted".
        if code > 1 {
            message.push_str(": ");
            message.push_str(&describe(code));
        }
        let logged = log_text();
        if !logged.is_empty() {
            message.push_str(" (DPDK says: ");
            message.push_str(&logged);
            message.push(')');
        }
        Self { kind, message }
    }

    pub(crate) fn hint(mut self, hint: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(hint);
        self
    }

    /// Which kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// `rte_errno` of the calling thread.
pub(crate) fn last_code() -> i32 {
    sys::errno()
}

/// The text of an errno, DPDK's own numbers included.
fn describe(code: i32) -> String {
    sys::error_text(code)
}
