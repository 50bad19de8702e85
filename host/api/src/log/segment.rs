//! One file of the log: a 64-byte header, then records.
//!
//! | bytes | header field |
//! |---|---|
//! | 0..8 | `WEIRLOG\0` |
//! | 8..12 | format version, 1 |
//! | 12..14 | boot epoch in which the file was begun |
//! | 16..24 | identity of the log |
//! | 24..32 | position of the first record |
//! | 60..64 | FNV-1a of bytes 0..60 |

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use weir_record::Record;
use weir_record::raw::BYTES;

use super::LogError;
use crate::checksum::fnv1a;

const MAGIC: &[u8; 8] = b"WEIRLOG\0";
const FORMAT: u32 = 1;
const EXTENSION: &str = "weirlog";
const TEMPORARY: &str = "new-segment.tmp";
/// Records looked at in one step of the recovery scan.
const SCAN_RECORDS: usize = 4096;

/// Bytes before the first record.
pub(super) const HEADER_BYTES: u64 = 64;

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub log_id: u64,
    pub epoch: u16,
    pub first: u64,
}

impl Head {
    fn encode(self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        let sum = fnv1a(&bytes[..60]);
        bytes[60..64].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// `None` when the header is not whole.
    fn decode(bytes: &[u8; HEADER_BYTES as usize]) -> Option<Self> {
        let word = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let head = Self {
            log_id: word(16)?,
            epoch: u16::from_le_bytes([bytes[12], bytes[13]]),
            first: word(24)?,
        };
        // Comparing the whole encoding also checks magic, version, reserved bytes and checksum.
        (head.encode() == *bytes).then_some(head)
    }
}

/// An open segment. Reading needs no lock; only the log's writer appends.
#[derive(Debug)]
pub(super) struct Segment {
    pub head: Head,
    path: PathBuf,
    file: File,
    /// Whole records that readers may see.
    records: AtomicU64,
}

impl Segment {
    /// Begin a segment. The header reaches the disk before the file gets its name, so that a
    /// named segment has a whole header after any crash; an empty segment of the same first
    /// position is replaced.
    pub fn create(directory: &Path, head: Head) -> Result<Self, LogError> {
        let temporary = directory.join(TEMPORARY);
        let path = directory.join(format!("{:020}.{EXTENSION}", head.first));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .map_err(LogError::io("create", &temporary))?;
        file.write_all_at(&head.encode(), 0)
            .map_err(LogError::io("write", &temporary))?;
        file.sync_all().map_err(LogError::io("sync", &temporary))?;
        fs::rename(&temporary, &path).map_err(LogError::io("name", &path))?;
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(LogError::io("sync", directory))?;
        Ok(Self {
            head,
            path,
            file,
            records: AtomicU64::new(0),
        })
    }

    /// Open an existing segment; `None` when its header is damaged.
    pub fn open(path: &Path) -> Result<Option<Self>, LogError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(LogError::io("open", path))?;
        let bytes = file.metadata().map_err(LogError::io("examine", path))?.len();
        let mut header = [0; HEADER_BYTES as usize];
        if bytes < HEADER_BYTES {
            return Ok(None);
        }
        file.read_exact_at(&mut header, 0).map_err(LogError::io("read", path))?;
        let records = (bytes - HEADER_BYTES) / BYTES as u64;
        Ok(Head::decode(&header).map(|head| Self {
            head,
            path: path.to_owned(),
            file,
            records: AtomicU64::new(records),
        }))
    }

    /// Cut what a crash left behind the last whole record; returns the bytes cut.
    ///
    /// After a power failure a file system may show blocks that were never written as zeros: the
    /// segment ends before the first record whose layout version is 0.
    pub fn cut_torn_tail(&self) -> Result<u64, LogError> {
        let bytes = self.file.metadata().map_err(LogError::io("examine", &self.path))?.len();
        let mut whole = 0;
        let mut buffer = Vec::new();
        let mut torn = false;
        while whole < self.records() && !torn {
            let step = (self.records() - whole).min(SCAN_RECORDS as u64);
            buffer.clear();
            self.read(self.head.first + whole, step as usize, &mut buffer)?;
            let valid = buffer
                .chunks_exact(BYTES)
                .take_while(|bytes| version(bytes) != 0)
                .count() as u64;
            whole += valid;
            torn = valid < step;
        }
        let keep = HEADER_BYTES + whole * BYTES as u64;
        if keep < bytes {
            self.file.set_len(keep).map_err(LogError::io("cut", &self.path))?;
            self.records.store(whole, Ordering::Release);
        }
        Ok(bytes - keep)
    }

    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Acquire)
    }

    /// Position after the last record.
    pub fn end(&self) -> u64 {
        self.head.first + self.records()
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        HEADER_BYTES + self.records() * BYTES as u64
    }

    /// Append the bytes of `position`..`position + records` to `out`; the caller has checked that
    /// they lie in this segment.
    pub fn read(&self, position: u64, records: usize, out: &mut Vec<u8>) -> Result<(), LogError> {
        let start = out.len();
        out.resize(start + records * BYTES, 0);
        let offset = HEADER_BYTES + (position - self.head.first) * BYTES as u64;
        self.file.read_exact_at(&mut out[start..], offset).map_err(|source| {
            out.truncate(start);
            LogError::io("read", &self.path)(source)
        })
    }

    /// Append whole records; all become visible to readers at once, or none does.
    pub fn append(&self, bytes: &[u8]) -> Result<(), LogError> {
        let end = self.bytes();
        if let Err(source) = self.file.write_all_at(bytes, end) {
            // What was written in part must not look like records after a restart.
            let _ = self.file.set_len(end);
            return Err(LogError::io("write", &self.path)(source));
        }
        self.records.fetch_add((bytes.len() / BYTES) as u64, Ordering::Release);
        Ok(())
    }

    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync_data().map_err(LogError::io("sync", &self.path))
    }

    /// Remove the file; readers that hold the segment can still read it.
    pub fn remove(&self) -> Result<(), LogError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(LogError::io("remove", &self.path)(error))
            }
            _ => Ok(()),
        }
    }
}

fn version(record: &[u8]) -> u8 {
    Record::from_slice(record).map_or(0, |record| record.version())
}

/// Take a damaged file out of the way; returns its new name.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, LogError> {
    let aside = path.with_extension("damaged");
    fs::rename(path, &aside).map_err(LogError::io("set aside", path))?;
    Ok(aside)
}

/// Segment files of a directory, oldest first.
pub(super) fn list(directory: &Path) -> Result<Vec<PathBuf>, LogError> {
    let entries = fs::read_dir(directory).map_err(LogError::io("list", directory))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(LogError::io("list", directory))?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    // Names are positions of equal width, so their order is the order of positions.
    paths.sort();
    Ok(paths)
}
