//! The capture file that the hostile traffic goes into.

use std::path::Path;

use crate::error::Error;
use crate::pcap::Output;

/// A nanosecond pcap file, Ethernet; or a pcapng file with two interfaces.
pub(super) struct Capture {
    output: Output,
    /// pcapng.
    pub interfaces: bool,
    pub frames: u64,
    pub frame_bytes: u64,
}

impl Capture {
    pub fn create(path: &Path) -> Result<Self, Error> {
        let mut output = Output::create(path)?;
        let interfaces = path.extension().is_some_and(|e| e == "pcapng");
        if interfaces {
            section(&mut output)?;
        } else {
            output.pcap_header()?;
        }
        Ok(Self {
            output,
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
            self.output.words(&[6, length, interface, high, low, captured, wire])?;
            self.output.bytes(bytes)?;
            let padding = bytes.len().next_multiple_of(4) - bytes.len();
            self.output.bytes(&[0; 4][..padding])?;
            self.output.words(&[length])?;
        } else {
            self.output.pcap_frame(utc_ns, captured, wire)?;
            self.output.bytes(bytes)?;
        }
        self.frames += 1;
        self.frame_bytes += u64::from(wire);
        Ok(())
    }

    pub fn finish(self) -> Result<(u64, u64), Error> {
        self.output.finish()?;
        Ok((self.frames, self.frame_bytes))
    }
}

/// Section header and two interfaces (Ethernet) with times in ns.
fn section(output: &mut Output) -> Result<(), Error> {
    output.words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28])?;
    for _ in 0..2 {
        output.words(&[1, 32, 1, 65_535, 0x0001_0009, 9, 0, 32])?;
    }
    Ok(())
}
