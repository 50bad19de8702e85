//! Rows of several files in one order of time.

use std::fs::{self, File};
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, TimestampNanosecondType, UInt64Type};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use weir_analysis::Ends;
use weir_messages::{Timestamp, v1};
use weir_store::tables::{Builder, Table, Transaction};
use weir_store::{Manifest, Merge, Options, Store, StoreError, check};

use crate::rows::{T0, blocks, once, shown, shown_files, stored};

const HOUR: u64 = 3_600_000_000_000;

/// Number and tap of each row of `blocks`, as they come.
fn merged(folder: &Path) -> Vec<(u64, String)> {
    let manifest = Manifest::read(folder).unwrap();
    let mut all = Vec::new();
    for rows in Merge::new(folder, Table::Blocks, manifest.of(Table::Blocks).cloned()) {
        let rows = rows.unwrap();
        let numbers = rows
            .column_by_name("connection_id")
            .unwrap()
            .as_primitive::<UInt64Type>();
        let taps = rows
            .column_by_name("tap")
            .unwrap()
            .as_dictionary::<arrow::datatypes::Int16Type>();
        let taps = taps.downcast_dict::<arrow::array::StringArray>().unwrap();
        let times = rows
            .column_by_name("first_time")
            .unwrap()
            .as_primitive::<TimestampNanosecondType>();
        assert!(times.values().is_sorted());
        all.extend(
            numbers
                .values()
                .iter()
                .copied()
                .zip(taps.into_iter().map(|tap| tap.unwrap().to_owned())),
        );
    }
    all
}

#[test]
fn rows_of_all_taps_and_hours_come_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    // Each third row is of another tap; files overlap in time, and have more rows than are read at a time.
    const ROWS: u64 = 9000;
    let all = &blocks(0..ROWS, 3 * HOUR / ROWS)[0].1;
    for (part, tap) in ["a", "b", "c"].into_iter().enumerate() {
        for half in 0..2 {
            let of_part = |row: &u32| *row as usize % 3 == part && *row as usize / 3 % 2 == half;
            let rows: arrow::array::UInt32Array = (0..ROWS as u32).filter(of_part).collect();
            let rows = arrow::compute::take_record_batch(all, &rows).unwrap();
            store.commit(tap, &[(Table::Blocks, rows)], None).unwrap();
        }
    }
    let expected: Vec<_> = (0..ROWS)
        .map(|row| (row, ["a", "b", "c"][row as usize % 3].to_owned()))
        .collect();
    assert_eq!(merged(folder.path()), expected);
    store.compact().unwrap();
    assert_eq!(merged(folder.path()), expected);
}

#[test]
fn rows_of_one_time_come_in_the_order_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    for part in 0..4 {
        store.commit("t", &blocks(part * 3..part * 3 + 3, 0), None).unwrap();
    }
    let numbers: Vec<_> = merged(folder.path()).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, (0..12).collect::<Vec<_>>());
}

#[test]
fn a_file_is_opened_when_its_time_has_come() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    store.commit("t", &blocks(0..4, HOUR), None).unwrap();
    let manifest = Manifest::read(folder.path()).unwrap();
    let mut merge = Merge::new(folder.path(), Table::Blocks, manifest.of(Table::Blocks).cloned());
    let mut files = shown_files(folder.path());
    files.sort();
    fs::remove_file(&files[3]).unwrap();
    let rows: usize = merge.by_ref().take(3).map(|rows| rows.unwrap().num_rows()).sum();
    assert_eq!(rows, 3);
    assert!(matches!(merge.next(), Some(Err(StoreError::Io { .. }))));
}

/// A transaction whose client time may be off by so much.
fn transaction(second: i64, uncertain: f64) -> Vec<(Table, RecordBatch)> {
    let mut builder = Builder::new("t");
    let message = v1::Transaction {
        request_time: Some(Timestamp::from_unix_nanos(T0 as i64 + second * 1_000_000_000)),
        kind: "DATA".into(),
        signature: "Request: blk[1]-blk[1]".into(),
        client_uncertain_seconds: Some(uncertain),
        ..v1::Transaction::default()
    };
    let ends = Ends::default();
    builder.push(&Transaction { ends, message }).unwrap();
    vec![(Table::Transactions, builder.finish().unwrap())]
}

/// Replace the one file of `transactions` by one without its last column, or with one more.
fn rewrite(folder: &Path, change: impl Fn(RecordBatch) -> RecordBatch) {
    let manifest = Manifest::read(folder).unwrap();
    let file = manifest.of(Table::Transactions).next().unwrap();
    let path = folder.join(&file.path);
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let rows = change(reader.build().unwrap().next().unwrap().unwrap());
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let size = fs::metadata(&path).unwrap().len();
    for path in fs::read_dir(folder.join("manifest")).unwrap() {
        let path = path.unwrap().path();
        if path.extension().is_some_and(|end| end == "json") {
            let text = fs::read_to_string(&path).unwrap();
            let (old, new) = (format!("\"bytes\":{}", file.bytes), format!("\"bytes\":{size}"));
            let text = text.replace(&old, &new);
            // As a version that kept no checksums.
            let sum = format!(",\"crc32\":{}", file.crc32.unwrap());
            let text = text.replace(&sum, "");
            let (text, _) = text.rsplit_once(",\"crc32\":").unwrap();
            fs::write(&path, format!("{text}}}")).unwrap();
        }
    }
}

fn uncertain(folder: &Path) -> Result<Vec<Option<f64>>, StoreError> {
    let manifest = Manifest::read(folder)?;
    let mut all = Vec::new();
    for rows in Merge::new(folder, Table::Transactions, manifest.of(Table::Transactions).cloned()) {
        let rows = rows?;
        let column = rows.column_by_name("client_uncertain_seconds").unwrap();
        all.extend(column.as_primitive::<Float64Type>());
    }
    Ok(all)
}

#[test]
fn files_written_before_a_column_was_there_have_null_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    store.commit("t", &transaction(0, 0.5), None).unwrap();
    drop(store);
    rewrite(folder.path(), |rows| {
        let last = rows.num_columns() - 1;
        assert_eq!(rows.schema().field(last).name(), "client_uncertain_seconds");
        rows.project(&(0..last).collect::<Vec<_>>()).unwrap()
    });
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    store.commit("t", &transaction(1, 0.25), None).unwrap();
    assert_eq!(uncertain(folder.path()).unwrap(), [None, Some(0.25)]);
    assert_eq!(check(folder.path()).unwrap().problems, Vec::<String>::new());
    let done = store.compact().unwrap();
    assert_eq!((done.from, done.to, done.rows), (2, 1, 2));
    assert_eq!(uncertain(folder.path()).unwrap(), [None, Some(0.25)]);
    assert_eq!(check(folder.path()).unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_column_that_this_version_does_not_know_is_not_lost_by_a_merge() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    store.commit("t", &transaction(0, 0.5), None).unwrap();
    drop(store);
    rewrite(folder.path(), |rows| {
        let strange = rows.schema().field(0).clone().with_name("mood");
        let fields = rows
            .schema()
            .fields()
            .iter()
            .map(|field| field.as_ref().clone())
            .chain([strange])
            .collect::<Vec<_>>();
        let columns = rows.columns().iter().chain([rows.column(0)]).cloned().collect();
        RecordBatch::try_new(std::sync::Arc::new(arrow::datatypes::Schema::new(fields)), columns).unwrap()
    });
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    store.commit("t", &transaction(1, 0.25), None).unwrap();
    let problems = store.compact().unwrap().problems;
    assert!(
        problems.len() == 1 && problems[0].contains("column mood") && problems[0].contains("not merged"),
        "{problems:?}"
    );
    assert_eq!(store.manifest().files().count(), 2);
    assert!(store.manifest().lost.is_empty());
}

/// Flip one bit of a file.
fn flip(path: &Path, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

#[test]
fn any_flipped_bit_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    // One file of a commit, one of a merge.
    for (taps, rows) in [("t", 0..50), ("u", 50..60), ("u", 60..70)] {
        store.commit(taps, &blocks(rows, 1), None).unwrap();
    }
    store.compact().unwrap();
    drop(store);
    let files = shown_files(folder.path());
    assert_eq!(files.len(), 2);
    for file in files {
        let bits = 8 * fs::metadata(&file).unwrap().len() as usize;
        // A prime: all places within bytes.
        for bit in (0..bits).step_by(131) {
            flip(&file, bit);
            let checked = check(folder.path()).unwrap();
            assert_eq!(
                (checked.files, checked.problems.len()),
                (1, 1),
                "bit {bit}: {checked:?}"
            );
            flip(&file, bit);
        }
    }
    let checked = check(folder.path()).unwrap();
    assert_eq!((checked.files, checked.unsummed), (2, 0), "{checked:?}");
}

#[test]
fn a_damaged_file_is_set_aside_and_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    // The damaged one is in the first hour that is merged.
    for part in 0..17 {
        store.commit("a", &blocks(part..part + 1, 0), None).unwrap();
        store.commit("b", &blocks(100 + part..101 + part, 0), None).unwrap();
    }
    let tap_a = |file: &std::path::PathBuf| file.to_string_lossy().contains("tap=a");
    let mut files: Vec<_> = shown_files(folder.path()).into_iter().filter(tap_a).collect();
    files.sort();
    flip(&files[5], 800);
    let done = store.compact_some().unwrap();
    assert_eq!((done.from, done.to, done.problems.len()), (16, 1, 1), "{done:?}");
    let name = files[5]
        .strip_prefix(folder.path())
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert!(done.problems[0].contains(&name), "{done:?}");
    assert!(done.problems[0].contains("its 1 rows are lost"), "{done:?}");
    // Those beside it are merged as before, also for who merges all.
    assert_eq!(store.compact_some().unwrap().from, 16);
    let done = store.compact().unwrap();
    assert!(done.problems.is_empty(), "{done:?}");
    let mut left = once(0..17);
    left.remove(&5);
    left.extend(once(100..117));
    assert_eq!(stored(folder.path()), left);
    assert_eq!(shown(folder.path()).unwrap(), left);
    assert_eq!(check(folder.path()).unwrap().problems, Vec::<String>::new());
    drop(store);
    let store = Store::open(folder.path(), Options::default()).unwrap();
    assert_eq!(store.manifest().lost["blocks"], 1);
    assert!(
        files[5].with_file_name(".0000000011.damaged").exists(),
        "its bytes are kept"
    );
}

#[test]
fn a_file_that_is_gone_holds_up_no_other_merge() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    for part in 0..4 {
        store.commit("t", &blocks(part..part + 1, 0), None).unwrap();
    }
    let mut files = shown_files(folder.path());
    files.sort();
    fs::remove_file(&files[1]).unwrap();
    let done = store.compact().unwrap();
    assert_eq!((done.from, done.to, done.problems.len()), (3, 1, 1), "{done:?}");
    assert!(done.problems[0].contains("not merged"), "{done:?}");
    assert_eq!(store.compact().unwrap().problems.len(), 0, "it is told once");
    drop(store);
    let store = Store::open(folder.path(), Options::default()).unwrap();
    assert_eq!(store.manifest().lost["blocks"], 1);
}
