//! What is wrong with a filter, and where.

use std::fmt;

/// A filter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Position in characters, from 1.
    pub position: usize,
    /// What stands there.
    pub found: String,
    /// What was expected there.
    pub expected: String,
}

impl FilterError {
    /// `at` is a byte offset.
    pub(super) fn new(filter: &str, at: usize, found: &str, expected: impl Into<String>) -> Self {
        let position = filter.get(..at).map_or(0, |before| before.chars().count()) + 1;
        // The message stays short whatever was sent.
        Self {
            position,
            found: found.chars().take(40).collect(),
            expected: expected.into(),
        }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            position,
            found,
            expected,
        } = self;
        if found.is_empty() {
            write!(f, "position {position}: the filter ends, expected {expected}")
        } else {
            write!(f, "position {position}: found {found:?}, expected {expected}")
        }
    }
}

impl std::error::Error for FilterError {}
