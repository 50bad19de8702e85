//! The demo capture as records.

use std::path::PathBuf;

use weir_capture::{CaptureFile, Feed};
use weir_engine::{Config, Engine, Parser, Profile};
use weir_record::Record;

/// All records of the demo capture, digests of packets included.
pub fn demo() -> Vec<Record> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo/demo.pcap");
    let mut file = CaptureFile::open(&path).unwrap();
    let mut feed = Feed::new(Parser::new(Profile::Full));
    let mut engine = Engine::new(Config {
        digests: true,
        ..Config::file()
    });
    let mut records = Vec::new();
    while feed
        .read(&mut file, 1000, |word| word.enter(&mut engine, &mut records))
        .unwrap()
    {}
    while engine.finish_some(1000, &mut records) {}
    records
}
