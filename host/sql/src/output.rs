//! Answers as text and as files.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::csv;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::json::writer::{LineDelimited, WriterBuilder};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches_with_options;
use clap::ValueEnum;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::engine::Answer;
use crate::error::Error;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    Table,
    /// Comma-separated values with a line of names (RFC 4180); NULL is empty, lists are as in tables
    Csv,
    /// One JSON object a line; NULL is null, numbers are numbers
    Json,
    /// An Apache Parquet file, compressed with Zstandard
    Parquet,
}

/// Write an answer; of a table, `rows` rows, which are held in memory. Returns how many rows were written.
pub async fn write(answer: &mut Answer, format: Format, rows: usize, out: impl Write + Send) -> Result<usize, Error> {
    match format {
        Format::Table => table(answer, rows, out).await,
        Format::Csv => {
            let flat = flat(&answer.schema());
            let mut writer = csv::WriterBuilder::new().build(out);
            // Names stand over no rows, too.
            writer
                .write(&RecordBatch::new_empty(Arc::clone(&flat)))
                .map_err(failed)?;
            let written = each(answer, |batch| writer.write(&flatten(batch, &flat)?)).await?;
            writer.into_inner().flush()?;
            Ok(written)
        }
        Format::Json => {
            let builder = WriterBuilder::new().with_explicit_nulls(true);
            let mut writer = builder.build::<_, LineDelimited>(out);
            let written = each(answer, |batch| writer.write(batch)).await?;
            writer.finish().map_err(failed)?;
            writer.into_inner().flush()?;
            Ok(written)
        }
        Format::Parquet => {
            let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
            let writer = ArrowWriter::try_new(out, answer.schema(), Some(properties.build()));
            let mut writer = writer.map_err(|error| failed(error.into()))?;
            let written = each(answer, |batch| writer.write(batch).map_err(Into::into)).await?;
            writer.close().map_err(|error| failed(error.into()))?;
            Ok(written)
        }
    }
}

/// Give every batch to `write`.
async fn each(
    answer: &mut Answer,
    mut write: impl FnMut(&RecordBatch) -> Result<(), ArrowError>,
) -> Result<usize, Error> {
    let mut rows = 0;
    while let Some(batch) = answer.next().await {
        let batch = batch?;
        write(&batch).map_err(failed)?;
        rows += batch.num_rows();
    }
    Ok(rows)
}

async fn table(answer: &mut Answer, rows: usize, mut out: impl Write) -> Result<usize, Error> {
    let (mut batches, mut kept, mut more) = (Vec::new(), 0, false);
    while let Some(batch) = answer.next().await {
        let batch = batch?;
        let room = rows - kept;
        more = batch.num_rows() > room;
        kept += batch.num_rows().min(room);
        batches.push(batch.slice(0, batch.num_rows().min(room)));
        if more {
            break;
        }
    }
    let options = FormatOptions::default().with_null("NULL");
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(answer.schema()));
    }
    let table = pretty_format_batches_with_options(&batches, &options).map_err(failed)?;
    writeln!(out, "{table}")?;
    if more {
        writeln!(
            out,
            "The first {kept} rows; --rows shows more, --format csv, json and parquet write all."
        )?;
    } else {
        writeln!(out, "{kept} row{}", if kept == 1 { "" } else { "s" })?;
    }
    out.flush()?;
    Ok(kept)
}

/// The columns with lists and structures as text.
fn flat(schema: &Schema) -> Arc<Schema> {
    let fields = schema.fields().iter().map(|field| {
        if field.data_type().is_nested() {
            Arc::new(Field::new(field.name(), DataType::Utf8, true))
        } else {
            Arc::clone(field)
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn flatten(batch: &RecordBatch, flat: &Arc<Schema>) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(|column| {
        if column.data_type().is_nested() {
            text(column)
        } else {
            Ok(Arc::clone(column))
        }
    });
    RecordBatch::try_new(Arc::clone(flat), columns.collect::<Result<_, _>>()?)
}

fn text(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let texts = (0..column.len()).map(|row| column.is_valid(row).then(|| formatter.value(row).to_string()));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// An answer that could not be written.
fn failed(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => Error::Write(error),
        ArrowError::ExternalError(error) => match error.downcast::<ParquetError>() {
            Ok(error) => Error::Write(io::Error::other(error)),
            Err(error) => Error::Write(io::Error::other(error)),
        },
        other => Error::Write(io::Error::other(other)),
    }
}
