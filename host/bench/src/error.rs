//! One error type: a sentence that says what failed, where, and what to do.

use std::fmt;
use std::path::Path;

/// What went wrong, ready to be shown.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    /// An error from its sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// An error of the operating system about a file.
    #[must_use]
    pub fn file(what: &str, path: &Path, cause: &std::io::Error) -> Self {
        Self(format!("{what} {}: {cause}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
