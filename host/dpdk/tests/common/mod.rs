//! Shared by the tests; each test file has one test, as DPDK starts once per process.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};

/// A frame of a generated capture: time in microseconds since 1970, bytes.
pub type Stamped = (u64, Vec<u8>);

/// Frames of every length from 14 to 9014 in uneven steps, with uneven times.
pub fn generated_frames(count: u64) -> Vec<Stamped> {
    let mut time_us = 1_700_000_000_000_000_u64;
    let frame = |number: u64| {
        let length = 14 + (number * 37) % 9001;
        (0..length).map(|place| (place ^ number) as u8).collect()
    };
    (0..count)
        .map(|number| {
            time_us += (number * 7919) % 100_003;
            (time_us, frame(number))
        })
        .collect()
}

/// Writes a pcap file (little-endian, microseconds, Ethernet): draft-ietf-opsawg-pcap.
pub fn write_pcap(path: &Path, frames: &[Stamped]) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 262_144, 1] {
        out.write_all(&word.to_le_bytes()).unwrap();
    }
    for (time_us, data) in frames {
        let length = data.len() as u32;
        for word in [
            (time_us / 1_000_000) as u32,
            (time_us % 1_000_000) as u32,
            length,
            length,
        ] {
            out.write_all(&word.to_le_bytes()).unwrap();
        }
        out.write_all(data).unwrap();
    }
    out.flush().unwrap();
}

/// A path for a scratch file of this process.
pub fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("weir-dpdk-{}-{name}", std::process::id()))
}
