//! What can go wrong with the log's files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the record log; says which file, what was tried and what to do.
#[derive(Debug)]
pub enum LogError {
    /// The operating system refused.
    Io {
        /// What was tried, as in "cannot {doing} {path}".
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// It could not be opened, for this reason, and is not tried again.
    NotOpen(String),
    /// Another process has the log open.
    Locked(PathBuf),
    /// The size limit is below [`super::MIN_LIMIT_BYTES`].
    Limit(u64),
    /// A record at this index of the batch has layout version 0, which no record has; nothing of
    /// the batch from there on was appended.
    NotARecord(usize),
}

impl LogError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// The file system has no room, or the quota is used up.
    pub(super) fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, source } => {
                write!(f, "record log: cannot {doing} {}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::PermissionDenied => {
                        write!(f, "; weir serve --data names a folder that may be written")
                    }
                    _ => Ok(()),
                }
            }
            Self::NotOpen(why) => write!(f, "{why}; it is opened when the daemon is started again"),
            Self::Locked(path) => write!(
                f,
                "record log: {} is in use by another process; stop it or give this one its own directory",
                path.display()
            ),
            Self::Limit(bytes) => write!(
                f,
                "record log: a limit of {bytes} bytes is too small; at least {} are needed",
                super::MIN_LIMIT_BYTES
            ),
            Self::NotARecord(index) => {
                write!(
                    f,
                    "record log: item {index} of the batch is no record (layout version 0)"
                )
            }
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
