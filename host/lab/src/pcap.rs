//! A writer (and, for checks, a reader) of nanosecond pcap files, Ethernet, little-endian.

use std::io::{self, Write};

/// The magic number that says nanoseconds (pcap file format, `draft-ietf-opsawg-pcap`).
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINK_TYPE_ETHERNET: u32 = 1;
const FILE_HEADER_LEN: usize = 24;
const PACKET_HEADER_LEN: usize = 16;

/// Writes frames to one capture file.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    out: W,
    snap_length: usize,
    frames: u64,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header.
    pub fn new(mut out: W, snap_length: u32) -> io::Result<Self> {
        let mut header = Vec::with_capacity(FILE_HEADER_LEN);
        header.extend_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
        header.extend_from_slice(&2u16.to_le_bytes());
        header.extend_from_slice(&4u16.to_le_bytes());
        header.extend_from_slice(&[0; 8]); // time zone and accuracy, always zero
        header.extend_from_slice(&snap_length.to_le_bytes());
        header.extend_from_slice(&LINK_TYPE_ETHERNET.to_le_bytes());
        out.write_all(&header)?;
        Ok(PcapWriter {
            out,
            snap_length: snap_length as usize,
            frames: 0,
        })
    }

    /// Adds a frame with its UTC time; bytes above the snap length are cut, the wire length stays true.
    pub fn write(&mut self, time_ns: u64, frame: &[u8]) -> io::Result<()> {
        let captured = &frame[..frame.len().min(self.snap_length)];
        let mut header = [0u8; PACKET_HEADER_LEN];
        header[0..4].copy_from_slice(&((time_ns / 1_000_000_000) as u32).to_le_bytes());
        header[4..8].copy_from_slice(&((time_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&(captured.len() as u32).to_le_bytes());
        header[12..16].copy_from_slice(&(frame.len() as u32).to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(captured)?;
        self.frames += 1;
        Ok(())
    }

    /// Frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Hands the bytes to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// One frame read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcapFrame {
    /// UTC nanoseconds since 1970.
    pub time_ns: u64,
    /// Length on the wire.
    pub wire_len: u32,
    /// The captured bytes.
    pub bytes: Vec<u8>,
}

/// Reads a file of [`PcapWriter`] whole; `None` if it is not one or is cut short.
pub fn read(file: &[u8]) -> Option<Vec<PcapFrame>> {
    let word = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    if word(0)? != MAGIC_NANOSECONDS {
        return None;
    }
    let mut frames = Vec::new();
    let mut at = FILE_HEADER_LEN;
    while at < file.len() {
        let captured_len = word(at + 8)? as usize;
        let start = at + PACKET_HEADER_LEN;
        frames.push(PcapFrame {
            time_ns: u64::from(word(at)?) * 1_000_000_000 + u64::from(word(at + 4)?),
            wire_len: word(at + 12)?,
            bytes: file.get(start..start.checked_add(captured_len)?)?.to_vec(),
        });
        at = start + captured_len;
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut file = Vec::new();
        let mut writer = PcapWriter::new(&mut file, 4).unwrap();
        writer.write(1_700_000_000_123_456_789, &[1, 2, 3, 4, 5, 6]).unwrap();
        writer.write(1_700_000_001_000_000_001, &[9]).unwrap();
        let frames = read(&file).unwrap();
        assert_eq!(
            frames[0],
            PcapFrame {
                time_ns: 1_700_000_000_123_456_789,
                wire_len: 6,
                bytes: vec![1, 2, 3, 4]
            }
        );
        assert_eq!(
            frames[1],
            PcapFrame {
                time_ns: 1_700_000_001_000_000_001,
                wire_len: 1,
                bytes: vec![9]
            }
        );
        assert_eq!(read(&file[..file.len() - 1]), None);
    }
}
