//! One file of rows.

use std::fs::File;
use std::io::{self, Write};
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

use crate::error::OTHER_BYTES;
use crate::manifest::{StoredFile, open};
use crate::tables::Table;
use crate::{StoreError, locate};

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

/// Passes bytes on and sums them up.
pub(crate) struct Summed<W> {
    out: W,
    /// How many came.
    pub bytes: u64,
    crc32: crc32fast::Hasher,
}

impl<W: Write> Summed<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            bytes: 0,
            crc32: crc32fast::Hasher::new(),
        }
    }

    /// Where they went, and their CRC-32.
    pub(crate) fn finish(self) -> (W, u32) {
        (self.out, self.crc32.finalize())
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let taken = self.out.write(data)?;
        self.bytes += taken as u64;
        self.crc32.update(&data[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether a file's bytes are those that were written, as far as the manifest knows them.
pub(crate) fn verify(folder: &Path, file: &StoredFile) -> Result<(), StoreError> {
    let path = locate(folder, file);
    let mut summed = Summed::new(io::sink());
    io::copy(&mut open(folder, file)?, &mut summed).map_err(StoreError::io("read", &path))?;
    let bytes = summed.bytes;
    let (_, crc32) = summed.finish();
    let why = if bytes != file.bytes {
        format!("it has {bytes} bytes instead of {}", file.bytes)
    } else if file.crc32.is_some_and(|written| written != crc32) {
        OTHER_BYTES.into()
    } else {
        return Ok(());
    };
    Err(StoreError::Damaged { path, why })
}

/// The rows of an open file, `rows` at a time; `path` is for errors.
pub(crate) fn read(file: File, path: &Path, rows: usize) -> Result<ParquetRecordBatchReader, StoreError> {
    ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(rows).build())
        .map_err(|error| StoreError::parquet("read", path, error))
}
