//! Captures and packets to alignments.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;

use weir_align::{Aligner, Alignment, NothingInCommon, Passage, Sighting, Sightings};
use weir_capture::records;
use weir_engine::{Config, End, Engine, Meta};
use weir_record::Record;

/// An IPv4 address and a port.
pub fn end(address: [u8; 4], port: u16) -> End {
    let mut addr = [0; 16];
    (addr[10], addr[11]) = (0xff, 0xff);
    addr[12..].copy_from_slice(&address);
    End { addr, port }
}

fn digests() -> Config {
    Config {
        digests: true,
        ..Config::file()
    }
}

/// Records of a capture file, PACKET records with them.
pub fn records_of_file(path: &Path) -> Vec<Record> {
    let mut all = Vec::new();
    records(path, digests(), |some| all.extend_from_slice(some)).unwrap();
    all
}

/// Records of packets in the order given.
pub fn records_of(packets: &[Meta]) -> Vec<Record> {
    let (mut engine, mut records) = (Engine::new(digests()), Vec::new());
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
    align_in_batches(captures, window, 100)
}

/// With windows of so many packets, so many records at once.
pub fn align_in_batches(captures: &[Vec<Record>], window: usize, batch: usize) -> Result<Alignment, NothingInCommon> {
    let names = ('A'..).take(captures.len()).map(String::from);
    let mut aligner = Aligner::with_window(names, window).keep_sightings();
    let mut read = vec![0; captures.len()];
    while let Some(tap) = aligner.next_tap() {
        let rest = &captures[tap][read[tap]..];
        if rest.is_empty() {
            aligner.end(tap);
            continue;
        }
        let batch = &rest[..rest.len().min(batch)];
        aligner.push(tap, batch);
        read[tap] += batch.len();
    }
    let answer = aligner.finish()?;
    sightings_agree(&answer);
    Ok(answer)
}

/// What is said of each packet adds up to what is said of the leg.
fn sightings_agree(answer: &Alignment) {
    let [leg] = &answer.legs[..] else { return };
    // Of a segment that was cut, parts are lost; without clocks nothing is said of packets.
    let is_cut = leg.placement.iter().any(|words| words.contains("cut or joined"));
    if is_cut || leg.round_trip_seconds.is_none() {
        return;
    }
    let Sightings { near, far, .. } = &answer.sightings;
    let all = || near.iter().map(|p| p.passage).chain(far.iter().map(|p| p.passage));
    let count = |wanted: Passage| all().filter(|passage| *passage == wanted).count() as u64;
    assert_eq!(count(Passage::Both), leg.matched, "{leg:?}");
    assert_eq!(count(Passage::Lost), leg.lost_forward + leg.lost_backward, "{leg:?}");
    assert_eq!(
        count(Passage::Copied),
        leg.duplicated_forward + leg.duplicated_backward,
        "{leg:?}"
    );
    assert_eq!(count(Passage::Undecided), leg.undecided, "{leg:?}");
    // Packets that were made here have no numbers.
    let is_next = |a: &Sighting, b: &Sighting| a.number < b.number || b.number == 0;
    assert!(near.is_sorted_by(is_next), "a packet is told of twice");
    let to_far = near.iter().filter(|p| p.passage == Passage::Both).count();
    assert_eq!(to_far, near.iter().filter(|p| p.time > 0).count());
}
