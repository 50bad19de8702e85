//! Rows of a store's file, as the tables have them.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};

use crate::manifest::{StoredFile, open};
use crate::parquet_file::read;
use crate::tables::{Table, tap_array};
use crate::{StoreError, locate};

/// Rows at a time.
const AT_A_TIME: usize = 8192;

/// The rows of a file that counts, in the order of time, with all columns of the table: `tap` from the path, NULL for
/// those that the version which wrote the file did not have.
pub fn rows(
    folder: &Path,
    file: &StoredFile,
) -> Result<impl Iterator<Item = Result<RecordBatch, StoreError>>, StoreError> {
    let path = locate(folder, file);
    let damaged = |path: &Path, why: String| StoreError::Damaged {
        path: path.to_owned(),
        why,
    };
    let Some((table, tap, _)) = file.partition() else {
        return Err(damaged(&path, "its folders name no table and tap".into()));
    };
    let tap = tap.to_owned();
    let batches = read(open(folder, file)?, &path, AT_A_TIME)?;
    Ok(batches.map(move |batch| {
        batch
            .and_then(|batch| whole(table, &tap, &batch))
            .map_err(|error| damaged(&path, error.to_string()))
    }))
}

fn whole(table: Table, tap: &str, batch: &RecordBatch) -> Result<RecordBatch, arrow::error::ArrowError> {
    let schema = table.schema();
    let rows = batch.num_rows();
    let mut columns = vec![tap_array(tap, rows)?];
    for field in &schema.fields()[1..] {
        columns.push(match batch.column_by_name(field.name()) {
            Some(column) => Arc::clone(column),
            None => new_null_array(field.data_type(), rows),
        });
    }
    RecordBatch::try_new(schema, columns)
}
