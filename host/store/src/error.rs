//! What can go wrong with a store.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// What to do when nobody knows which files count.
pub(crate) const PUT_BACK: &str = "Put back the whole store from a copy, or move it aside and begin another: its Parquet \
                                   files can be read without a manifest";
/// Why a file with another checksum than it was written with is damaged.
pub(crate) const OTHER_BYTES: &str = "its bytes are not those that were written (CRC-32)";

/// An error of the store; says which file, what was tried and what to do.
#[derive(Debug)]
pub enum StoreError {
    /// The operating system refused.
    Io {
        /// What was tried, as in "cannot {doing} {path}".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// Another process writes to the store.
    Locked(PathBuf),
    /// A capture that can be read once only: standard input, a pipe, a folder.
    NoFile(PathBuf),
    /// The folder is no store.
    NotAStore(PathBuf),
    /// A file of the store is not what was written.
    Damaged {
        /// Which one.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file has columns of another version.
    Columns {
        /// Which one.
        path: PathBuf,
        /// What is other about them.
        why: String,
    },
    /// Commits are missing in the manifest of a store: what they added must not be taken for waste.
    Incomplete {
        /// The store.
        path: PathBuf,
        /// What shows it.
        why: String,
    },
    /// Made by a version with another layout.
    Format {
        /// The store.
        path: PathBuf,
        /// Its layout.
        found: u32,
    },
    /// A name that cannot be a folder's.
    Tap(String),
    /// A tap with more captures than ids can tell apart.
    Captures(String),
    /// The same of a daemon's starts.
    Starts(String),
    /// A daemon whose connections have ids that others of the tap have already.
    Epoch(String),
    /// A commit failed where it may or may not have happened: the store must be opened anew, which decides.
    Undecided(PathBuf),
    /// A source was begun by another version of the analysis, whose rows may be others.
    Version {
        /// The source.
        source: String,
        /// The version that began it.
        began: String,
    },
    /// Rows that cannot be written.
    Rows(ArrowError),
}

impl StoreError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// From Parquet, which wraps what the operating system said.
    pub(crate) fn parquet(doing: &'static str, path: &Path, error: ParquetError) -> Self {
        let path = path.to_owned();
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Self::Io {
                    doing,
                    path,
                    source: *source,
                },
                Err(other) => Self::Damaged {
                    path,
                    why: other.to_string(),
                },
            },
            other => Self::Damaged {
                path,
                why: other.to_string(),
            },
        }
    }

    /// The file system has no room, or the quota is used up.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }
}

impl From<ArrowError> for StoreError {
    fn from(error: ArrowError) -> Self {
        Self::Rows(error)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, source } => write!(f, "store: cannot {doing} {}: {source}", path.display()),
            Self::Locked(path) => write!(
                f,
                "store: {} is being written by another process; stop it or choose another folder (reading needs no lock)",
                path.display()
            ),
            Self::NoFile(path) => write!(
                f,
                "{}: is not a regular file: a capture is read twice, as its content tells whether it is stored; save it to a file first",
                path.display()
            ),
            Self::NotAStore(path) if !path.exists() => write!(
                f,
                "store: there is no folder {}; weir store add makes a store",
                path.display()
            ),
            Self::NotAStore(path) => write!(
                f,
                "store: {} has no manifest, so it is no store; name a store, or a new or empty folder to begin one",
                path.display()
            ),
            Self::Damaged { path, why } => write!(f, "store: {} is damaged: {why}", path.display()),
            Self::Columns { path, why } => write!(f, "store: {} was written by another version: {why}", path.display()),
            Self::Incomplete { path, why } => write!(
                f,
                "store: commits are missing in the manifest of {}: {why}; nothing was changed. {PUT_BACK}",
                path.display()
            ),
            Self::Format { path, found } => write!(
                f,
                "store: {} has layout {found}, this version knows {}; read it with the version that wrote it",
                path.display(),
                crate::manifest::FORMAT
            ),
            Self::Tap(name) => write!(
                f,
                "store: {name:?} cannot name a tap: 1 to 64 of the characters a-z A-Z 0-9 . _ -, not beginning with a point"
            ),
            Self::Captures(tap) => write!(
                f,
                "store: tap {tap} has so many captures that the ids of their connections would meet; add more under another tap"
            ),
            Self::Epoch(tap) => write!(
                f,
                "store: connections of tap {tap} that are stored have the ids that those of this start have: start the daemon again"
            ),
            Self::Starts(tap) => write!(
                f,
                "store: tap {tap} has rows of so many starts and captures that the ids of further connections would meet theirs; give the daemon another --tap or --store"
            ),
            Self::Undecided(path) => write!(
                f,
                "store: a commit to {} failed half-way; open the store again to see whether it counts",
                path.display()
            ),
            Self::Version { source, began } => write!(
                f,
                "store: {source} was begun by version {began}, whose rows may differ; finish it with that version, or add \
                 it under another tap (--tap)"
            ),
            Self::Rows(error) => write!(f, "store: rows cannot be written: {error}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Rows(error) => Some(error),
            _ => None,
        }
    }
}
