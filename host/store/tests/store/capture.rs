//! The demo capture as records.

use std::path::PathBuf;

use weir_capture::records;
use weir_engine::Config;
use weir_record::Record;

/// All records of the demo capture, digests of packets included.
pub fn demo() -> Vec<Record> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo/demo.pcap");
    let config = Config {
        digests: true,
        ..Config::file()
    };
    let mut all = Vec::new();
    records(&path, config, |some| all.extend_from_slice(some)).unwrap();
    all
}
