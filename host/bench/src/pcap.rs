//! The classic capture file that the generators write: little-endian, nanoseconds, Ethernet.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A file that is written in large pieces.
pub(crate) struct Output {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Output {
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|e| Error::file("cannot create", path, &e))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, file),
            path: path.to_owned(),
        })
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(bytes);
        written.map_err(|e| self.cannot_write(&e))
    }

    /// Each little-endian.
    pub fn words(&mut self, words: &[u32]) -> Result<(), Error> {
        words.iter().try_for_each(|word| self.bytes(&word.to_le_bytes()))
    }

    /// Header of a classic file: magic of nanoseconds, version 2.4, Ethernet.
    pub fn pcap_header(&mut self) -> Result<(), Error> {
        self.words(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1])
    }

    /// Header of a frame in a classic file, of which `captured` bytes follow.
    pub fn pcap_frame(&mut self, utc_ns: u64, captured: u32, wire: u32) -> Result<(), Error> {
        let (seconds, ns) = (utc_ns / 1_000_000_000, utc_ns % 1_000_000_000);
        self.words(&[seconds as u32, ns as u32, captured, wire])
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<(), Error> {
        let flushed = self.file.flush();
        flushed.map_err(|e| self.cannot_write(&e))
    }

    fn cannot_write(&self, cause: &std::io::Error) -> Error {
        Error::file("cannot write", &self.path, cause)
    }
}
