//! Rows with numbers: what is stored can be told from what is not.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{UInt32Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use weir_analysis::{DataBlock, Ends};
use weir_record::FlowId;
use weir_record::time::tai_from_utc;
use weir_store::tables::{Builder, Table};
use weir_store::{Manifest, open};

/// 2026-01-01T00:30:00Z, ns.
pub const T0: u64 = 1_767_227_400_000_000_000;

/// Rows of `blocks` with these numbers; the time of a row is `step` ns behind that of the row before.
pub fn blocks(numbers: std::ops::Range<u64>, step: u64) -> Vec<(Table, RecordBatch)> {
    if numbers.is_empty() {
        return Vec::new();
    }
    let mut builder = Builder::new("t");
    for number in numbers {
        let time = tai_from_utc(T0 + number * step);
        builder
            .push(&DataBlock {
                id: FlowId(number),
                ends: Ends::default(),
                from_server: false,
                first: time,
                last: time,
                bytes: number as u32,
                packets: 1,
                flight: 0,
            })
            .unwrap();
    }
    vec![(Table::Blocks, builder.finish().unwrap())]
}

/// How often each number is in a file.
fn count(file: std::fs::File, numbers: &mut BTreeMap<u64, u32>) -> Result<(), String> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
    for batch in reader.map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        let ids = batch
            .column_by_name("connection_id")
            .unwrap()
            .as_primitive::<UInt64Type>();
        let bytes = batch.column_by_name("bytes").unwrap().as_primitive::<UInt32Type>();
        for (id, bytes) in ids.values().iter().zip(bytes.values()) {
            assert_eq!(*id as u32, *bytes, "a row is whole");
            *numbers.entry(*id).or_default() += 1;
        }
    }
    Ok(())
}

/// How often each number is in the store, by the manifest.
pub fn stored(store: &Path) -> BTreeMap<u64, u32> {
    let mut numbers = BTreeMap::new();
    for file in Manifest::read(store).unwrap().of(Table::Blocks) {
        count(open(store, file).unwrap(), &mut numbers).unwrap_or_else(|error| panic!("{}: {error}", file.path));
    }
    numbers
}

/// How often each number is in the files that show.
pub fn shown(store: &Path) -> Result<BTreeMap<u64, u32>, String> {
    let mut numbers = BTreeMap::new();
    for hour in shown_files(store) {
        let file = std::fs::File::open(hour).map_err(|error| error.to_string())?;
        count(file, &mut numbers)?;
    }
    Ok(numbers)
}

/// All `blocks/*/*/*.parquet`.
pub fn shown_files(store: &Path) -> Vec<std::path::PathBuf> {
    let list = |folder: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let mut files = Vec::new();
    for tap in list(&store.join("blocks")) {
        for hour in list(&tap) {
            let is_data = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "parquet");
            files.extend(list(&hour).into_iter().filter(is_data));
        }
    }
    files
}

/// Each of these numbers once.
pub fn once(numbers: std::ops::Range<u64>) -> BTreeMap<u64, u32> {
    numbers.map(|number| (number, 1)).collect()
}
