//! Why a query has no answer.

use std::fmt;
use std::time::Duration;

use arrow::error::ArrowError;
use datafusion::common::exec_datafusion_err;
use datafusion::error::DataFusionError;

/// What stood in the way of a query; the text says what to do.
#[derive(Debug)]
pub enum Error {
    /// It would change something.
    ReadOnly(String),
    /// It is no SQL, or names what there is not.
    Query(DataFusionError),
    /// Its text has so many bytes, which are too many.
    Length(usize),
    /// More operators than a tree may be deep.
    Depth(usize),
    /// It is more than can be planned.
    Extent {
        /// How much of it there may be.
        may: usize,
        /// What there is too much of.
        what: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// It took longer than allowed.
    Time(Duration),
    /// Its reader asked for no more rows for so long.
    Idle(Duration),
    /// It needed more memory, in bytes, than allowed; whether it could have used files.
    Memory {
        /// What is allowed, bytes.
        limit: usize,
        /// Whether a folder to spill to was given.
        spilling: bool,
    },
    /// Somebody cancelled it.
    Cancelled,
    /// The store could not be read.
    Store(String),
    /// The server could not run.
    Listen(String),
    /// The answer could not be written.
    Write(std::io::Error),
}

impl Error {
    /// What an error of the engine means under these limits.
    pub(crate) fn from_engine(error: DataFusionError, memory: usize, spilling: bool) -> Self {
        if let Some(text) = condition(&error) {
            return Self::Query(exec_datafusion_err!("a condition cannot be computed: {text}"));
        }
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::Memory {
                limit: memory,
                spilling,
            },
            DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) | DataFusionError::ParquetError(_) => {
                Self::Store(error.strip_backtrace())
            }
            _ => Self::Query(error),
        }
    }
}

/// What a condition of the query met while it chose the rows of a file: the engine tells it as an error of that file.
fn condition(error: &DataFusionError) -> Option<String> {
    let first: &(dyn std::error::Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |error| error.source());
    causes.find_map(|cause| match cause.downcast_ref() {
        Some(ArrowError::ComputeError(text)) => text
            .strip_prefix("Error evaluating filter predicate: ")
            .map(str::to_owned),
        _ => None,
    })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly(statement) => write!(
                f,
                "{statement} is not possible: SQL only reads the store; it is written by weir serve --store and weir \
                 store add"
            ),
            Self::Query(error) => f.write_str(&error.strip_backtrace()),
            Self::Length(bytes) => write!(
                f,
                "the text of the query has {bytes} bytes, and may have {}: ask in parts",
                crate::engine::LONGEST
            ),
            Self::Depth(operators) => write!(
                f,
                "the query has {operators} operators and brackets, and may have {}: compare with many values by IN (...), or ask in \
                 parts",
                crate::depth::MOST
            ),
            Self::Extent { may, what, instead } => write!(f, "the query has more than {may} {what}: {instead}"),
            Self::Time(limit) => write!(
                f,
                "stopped after {} s, the limit that --timeout sets: ask for fewer taps and hours (WHERE tap = ... AND \
                 hour >= ...), or allow more time",
                limit.as_secs_f64()
            ),
            Self::Idle(patience) => write!(
                f,
                "stopped: its rows were not taken for {} s, and others may wait for their turn: read an answer to its end, or \
                 close it",
                patience.as_secs_f64()
            ),
            Self::Memory { limit, spilling } => {
                let hint = if *spilling {
                    "or allow more memory"
                } else {
                    "allow more, or name a folder for temporary files with --spill"
                };
                write!(
                    f,
                    "needs more than {} MiB of memory, the limit that --memory sets: ask for fewer rows or groups, {hint}",
                    limit >> 20
                )
            }
            Self::Cancelled => f.write_str("cancelled"),
            Self::Store(text) => write!(f, "cannot read the store: {text}"),
            Self::Listen(text) => write!(f, "cannot serve on {text}"),
            Self::Write(error) => write!(f, "cannot write the answer: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Write(error)
    }
}
