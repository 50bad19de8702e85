//! The capture file that the hostile traffic goes into.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;

const BUFFER: usize = 1 << 20;

/// A nanosecond pcap file, Ethernet.
pub(super) struct Capture {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    pub frames: u64,
    pub frame_bytes: u64,
}

impl Capture {
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|e| Error::file("cannot create", path, &e))?;
        let mut buffer = Vec::with_capacity(BUFFER + 16_384);
        for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 1] {
            buffer.extend_from_slice(&word.to_le_bytes());
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            buffer,
            frames: 0,
            frame_bytes: 0,
        })
    }

    pub fn write(&mut self, utc_ns: u64, bytes: &[u8], wire: u32) -> Result<(), Error> {
        let words = [
            (utc_ns / 1_000_000_000) as u32,
            (utc_ns % 1_000_000_000) as u32,
            bytes.len() as u32,
            wire.max(bytes.len() as u32),
        ];
        for word in words {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        self.buffer.extend_from_slice(bytes);
        self.frames += 1;
        self.frame_bytes += u64::from(wire);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file
            .write_all(&self.buffer)
            .map_err(|e| Error::file("cannot write", &self.path, &e))?;
        self.buffer.clear();
        Ok(())
    }

    pub fn finish(mut self) -> Result<(u64, u64), Error> {
        self.flush()?;
        Ok((self.frames, self.frame_bytes))
    }
}
