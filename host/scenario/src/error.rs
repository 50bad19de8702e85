//! The one error type: what failed, where, and what to do.

use std::fmt;

/// Why a scenario could not be read or run.
#[derive(Debug)]
pub enum ScenarioError {
    /// The description cannot be used.
    Description {
        /// Name or path of the scenario.
        source: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file operation failed.
    Io {
        /// What was being done, and on what.
        doing: String,
        /// The system's error.
        error: std::io::Error,
    },
}

impl ScenarioError {
    /// Names the operation that an I/O error belongs to; for `map_err`.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> ScenarioError {
        let doing = doing.into();
        move |error| ScenarioError::Io { doing, error }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScenarioError::Description { source, problem } => write!(f, "scenario {source}: {problem}"),
            ScenarioError::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for ScenarioError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ScenarioError::Description { .. } => None,
            ScenarioError::Io { error, .. } => Some(error),
        }
    }
}
