//! Rows of a store's file, as the tables have them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use crate::manifest::{StoredFile, open};
use crate::parquet_file::read;
use crate::tables::{Table, tap_array};
use crate::{StoreError, locate};

/// The rows of a file that counts, in the order of time, with all columns of the table: `tap` from the path, NULL for
/// those that the version which wrote the file did not have.
pub(crate) struct Rows {
    table: Table,
    tap: String,
    path: PathBuf,
    reader: ParquetRecordBatchReader,
}

impl Rows {
    /// So many rows at a time.
    pub(crate) fn open(folder: &Path, file: &StoredFile, at_a_time: usize) -> Result<Self, StoreError> {
        let path = locate(folder, file);
        let Some((table, tap, _)) = file.partition() else {
            let why = "its path names no table, tap and hour".into();
            return Err(StoreError::Damaged { path, why });
        };
        Ok(Self {
            table,
            tap: tap.to_owned(),
            reader: read(open(folder, file)?, &path, at_a_time)?,
            path,
        })
    }

    fn whole(&self, batch: &RecordBatch) -> Result<RecordBatch, StoreError> {
        let other = |why: String| StoreError::Columns {
            path: self.path.clone(),
            why,
        };
        let schema = self.table.schema();
        if let Some(strange) = batch
            .schema()
            .fields()
            .iter()
            .find(|field| schema.index_of(field.name()).is_err())
        {
            let name = strange.name();
            return Err(other(format!(
                "it has a column {name}, which this version does not know"
            )));
        }
        let rows = batch.num_rows();
        let mut columns = vec![tap_array(&self.tap, rows)?];
        for field in &schema.fields()[1..] {
            columns.push(match batch.column_by_name(field.name()) {
                Some(column) => Arc::clone(column),
                None => new_null_array(field.data_type(), rows),
            });
        }
        RecordBatch::try_new(schema, columns).map_err(|error| other(error.to_string()))
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.reader.next()? {
            Ok(batch) => self.whole(&batch),
            Err(error) => Err(StoreError::Damaged {
                path: self.path.clone(),
                why: error.to_string(),
            }),
        })
    }
}
