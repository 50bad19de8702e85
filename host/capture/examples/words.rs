//! Reads captures and prints what their frames are, and how fast they were read and parsed:
//! `cargo run --release -p weir-capture --example words -- FILE...`
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use weir_capture::{CaptureError, CaptureFile, Feed, Item};
use weir_engine::Parser;

fn main() -> Result<(), CaptureError> {
    for name in std::env::args().skip(1) {
        let mut file = CaptureFile::open(Path::new(&name))?;
        let mut feed = Feed::new(Parser::default());
        let mut classes = [(0u64, 0u64); 3];
        let mut untracked = BTreeMap::new();
        let start = Instant::now();
        let end = feed.read(&mut file, usize::MAX, |word| match word.item {
            Item::Packet(meta) => {
                let class = &mut classes[meta.class as usize];
                class.0 += 1;
                class.1 += u64::from(meta.payload);
            }
            Item::Untracked(reason) => *untracked.entry(reason.name()).or_insert(0u64) += 1,
        });
        let seconds = start.elapsed().as_secs_f64();
        let [tcp, other, icmp] = classes;
        println!(
            "{name}: {} frames; TCP {} ({} bytes), other {}, ICMP errors {}, untracked {untracked:?}; {:.1} Mpps",
            file.frames(),
            tcp.0,
            tcp.1,
            other.0,
            icmp.0,
            file.frames() as f64 / seconds / 1e6,
        );
        if let Err(error) = end {
            println!("{error}");
        }
    }
    Ok(())
}
