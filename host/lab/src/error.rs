//! The one error type: what failed, where, and what to do.

use std::fmt;

/// Why a run could not be made or finished.
#[derive(Debug)]
pub enum LabError {
    /// The process may not make namespaces and packet sockets.
    NotRoot,
    /// The scenario cannot be used.
    Scenario {
        /// Name or path of the scenario.
        source: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A command of the system (`ip`, `ethtool`) failed or is missing.
    Command {
        /// The command line.
        command: String,
        /// Its message, or why it could not be started.
        problem: String,
    },
    /// A file or socket operation failed.
    Io {
        /// What was being done, and on what.
        doing: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The client or the server program failed.
    App {
        /// `client` or `server`.
        side: &'static str,
        /// What it said or how it ended.
        problem: String,
    },
    /// The wire did not see every frame, so the truth would not be complete.
    FramesMissed {
        /// Frames that the kernel delivered but the wire never read.
        frames: u64,
        /// The side whose interface lost them.
        side: &'static str,
    },
    /// The run took longer than the scenario's `time_limit_s`.
    TimeLimit {
        /// The limit, in seconds.
        seconds: f64,
    },
    /// The analysis does not keep the limits of these scenarios.
    Limits {
        /// Their names.
        failed: Vec<String>,
    },
    /// A signal asked the run to stop.
    Interrupted,
}

impl LabError {
    /// Names the operation that an I/O error belongs to; for `map_err`.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> LabError {
        let doing = doing.into();
        move |error| LabError::Io { doing, error }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::NotRoot => write!(
                f,
                "the lab makes network namespaces and packet sockets, which needs root: run it again with sudo"
            ),
            LabError::Scenario { source, problem } => write!(f, "scenario {source}: {problem}"),
            LabError::Command { command, problem } => write!(f, "`{command}`: {problem}"),
            LabError::Io { doing, error } => write!(f, "{doing}: {error}"),
            LabError::App { side, problem } => {
                write!(f, "the {side} application failed: {problem}")
            }
            LabError::FramesMissed { frames, side } => write!(
                f,
                "{frames} frames from the {side} never reached the wire (the machine was too busy); \
                 the captures are not complete: run it again, or lower the load in the scenario"
            ),
            LabError::TimeLimit { seconds } => write!(
                f,
                "the run was stopped after {seconds} s (time_limit_s in the scenario); raise the limit or ask for less"
            ),
            LabError::Limits { failed } => write!(
                f,
                "limits not kept: {}; the NAME-misses.txt beside the captures tell what was judged wrong",
                failed.join(", ")
            ),
            LabError::Interrupted => {
                write!(f, "stopped by a signal; the files written so far are kept")
            }
        }
    }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LabError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
