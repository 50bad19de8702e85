//! One file of rows.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Schema, SchemaRef, TimestampNanosecondType};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use crate::StoreError;
use crate::tables::Table;

/// Rows of a row group.
pub(crate) const ROW_GROUP: usize = 128 << 10;

impl Table {
    /// Its schema in files: `tap` is in the path.
    pub fn file_schema(self) -> SchemaRef {
        let schema = self.schema();
        Arc::new(Schema::new(schema.fields()[1..].to_vec()))
    }
}

/// Times of the rows, UTC ns; the time column is never NULL.
pub(crate) fn times(table: Table, batch: &RecordBatch) -> &[i64] {
    batch
        .column_by_name(table.time_column())
        .and_then(|column| column.as_primitive_opt::<TimestampNanosecondType>())
        .map_or(&[], |column| column.values())
}

/// Rows as they are in files.
pub(crate) fn without_tap(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    batch.project(&(1..batch.num_columns()).collect::<Vec<_>>())
}

/// Rows without their tap, in the order of time, those of one time as they came.
pub(crate) fn sorted(table: Table, batches: &[RecordBatch]) -> Result<RecordBatch, StoreError> {
    let schema = table.file_schema();
    let all = concat_batches(&schema, batches)?;
    let time = times(table, &all);
    if time.is_sorted() {
        return Ok(all);
    }
    let mut order: Vec<u32> = (0..all.num_rows() as u32).collect();
    order.sort_by_key(|row| time[*row as usize]);
    Ok(take_record_batch(&all, &UInt32Array::from(order))?)
}

/// Writes rows of `table` to `out`.
pub(crate) fn writer<W: Write + Send>(table: Table, out: W, path: &Path) -> Result<ArrowWriter<W>, StoreError> {
    ArrowWriter::try_new(out, table.file_schema(), Some(properties(table)))
        .map_err(|error| StoreError::parquet("write", path, error))
}

/// How files of a table are encoded and compressed, in the store and elsewhere.
pub fn properties(table: Table) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("weir ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP));
    for field in table.file_schema().fields() {
        // Times grow: their differences are small, their values all different.
        if matches!(field.data_type(), DataType::Timestamp(..)) {
            let path = ColumnPath::from(field.name().as_str());
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    builder.build()
}

/// The bytes of a file of these rows.
pub(crate) fn encode(table: Table, rows: &RecordBatch, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    let failed = |error| StoreError::parquet("write", path, error);
    let mut writer = writer(table, &mut bytes, path)?;
    writer.write(rows).map_err(failed)?;
    writer.close().map_err(failed)?;
    Ok(bytes)
}

/// The rows of an open file, `rows` at a time; `path` is for errors.
pub(crate) fn read(file: File, path: &Path, rows: usize) -> Result<ParquetRecordBatchReader, StoreError> {
    ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(rows).build())
        .map_err(|error| StoreError::parquet("read", path, error))
}
