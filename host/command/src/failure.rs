//! What a command fails with: a text that names what, where and what to do.

use std::fmt;
use std::io;

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    text: String,
    broken_pipe: bool,
}

impl Failure {
    /// From an error that explains itself.
    pub fn new(error: impl fmt::Display) -> Self {
        Self {
            text: error.to_string(),
            broken_pipe: false,
        }
    }

    /// Writing to `what` failed.
    pub fn write(what: &str, error: &io::Error) -> Self {
        Self {
            text: format!("cannot write {what}: {error}"),
            broken_pipe: error.kind() == io::ErrorKind::BrokenPipe,
        }
    }

    /// Whether the reader of our output went away.
    pub fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
