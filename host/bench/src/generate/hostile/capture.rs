//! The capture file that the hostile traffic goes into.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;

const BUFFER: usize = 1 << 20;

/// A nanosecond pcap file, Ethernet; or a pcapng file with two interfaces.
pub(super) struct Capture {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// pcapng.
    pub interfaces: bool,
    pub frames: u64,
    pub frame_bytes: u64,
}

impl Capture {
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|e| Error::file("cannot create", path, &e))?;
        let mut buffer = Vec::with_capacity(BUFFER + 16_384);
        let interfaces = path.extension().is_some_and(|e| e == "pcapng");
        if interfaces {
            section(&mut buffer);
        } else {
            put(&mut buffer, &[0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1]);
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            buffer,
            interfaces,
            frames: 0,
            frame_bytes: 0,
        })
    }

    /// `interface` counts for pcapng only.
    pub fn write(&mut self, utc_ns: u64, interface: u32, bytes: &[u8], wire: u32) -> Result<(), Error> {
        let captured = bytes.len() as u32;
        let wire = wire.max(captured);
        if self.interfaces {
            // Enhanced packet block.
            let length = 32 + captured.next_multiple_of(4);
            let (high, low) = ((utc_ns >> 32) as u32, utc_ns as u32);
            put(&mut self.buffer, &[6, length, interface, high, low, captured, wire]);
            self.buffer.extend_from_slice(bytes);
            let padding = bytes.len().next_multiple_of(4) - bytes.len();
            self.buffer.extend_from_slice(&[0; 4][..padding]);
            put(&mut self.buffer, &[length]);
        } else {
            let (seconds, ns) = (utc_ns / 1_000_000_000, utc_ns % 1_000_000_000);
            put(&mut self.buffer, &[seconds as u32, ns as u32, captured, wire]);
            self.buffer.extend_from_slice(bytes);
        }
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

fn put(buffer: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        buffer.extend_from_slice(&word.to_le_bytes());
    }
}

/// Section header and two interfaces (Ethernet) with times in ns.
fn section(buffer: &mut Vec<u8>) {
    put(buffer, &[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
    for _ in 0..2 {
        put(buffer, &[1, 32, 1, 65_535, 0x0001_0009, 9, 0, 32]);
    }
}
