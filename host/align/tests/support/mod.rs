//! Captures and packets to alignments.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;

use weir_align::{Aligner, Alignment, NothingInCommon};
use weir_capture::{CaptureFile, Feed};
use weir_engine::{Config, End, Engine, Meta};
use weir_record::Record;

/// An IPv4 address and a port.
pub fn end(address: [u8; 4], port: u16) -> End {
    let mut addr = [0; 16];
    (addr[10], addr[11]) = (0xff, 0xff);
    addr[12..].copy_from_slice(&address);
    End { addr, port }
}

fn engine() -> Engine {
    Engine::new(Config {
        digests: true,
        ..Config::file()
    })
}

/// Records of a capture file, PACKET records with them.
pub fn records_of_file(path: &Path) -> Vec<Record> {
    let mut file = CaptureFile::open(path).unwrap();
    let (mut feed, mut engine, mut records) = (Feed::default(), engine(), Vec::new());
    while feed
        .read(&mut file, 4096, |word| word.enter(&mut engine, &mut records))
        .unwrap()
    {}
    engine.finish(&mut records);
    records
}

/// Records of packets in the order given.
pub fn records_of(packets: &[Meta]) -> Vec<Record> {
    let (mut engine, mut records) = (engine(), Vec::new());
    for meta in packets {
        engine.packet(meta, meta.wire, &mut records);
    }
    engine.finish(&mut records);
    records
}

/// What captures say together; named A, B, C ...
pub fn align(captures: &[Vec<Record>]) -> Result<Alignment, NothingInCommon> {
    align_within(captures, weir_align::WINDOW)
}

/// With windows of so many packets.
pub fn align_within(captures: &[Vec<Record>], window: usize) -> Result<Alignment, NothingInCommon> {
    let names = ('A'..).take(captures.len()).map(String::from);
    let mut aligner = Aligner::with_window(names, window);
    let mut read = vec![0; captures.len()];
    while let Some(tap) = aligner.next_tap() {
        let rest = &captures[tap][read[tap]..];
        if rest.is_empty() {
            aligner.end(tap);
            continue;
        }
        let batch = &rest[..rest.len().min(100)];
        aligner.push(tap, batch);
        read[tap] += batch.len();
    }
    aligner.finish()
}
