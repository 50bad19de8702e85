//! Answers as text and as files.

use std::collections::HashSet;
use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::json::writer::{LineDelimited, WriterBuilder};
use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;
use clap::ValueEnum;
use datafusion::common::plan_datafusion_err;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use weir_store::CsvWriter;
use weir_store::unwritten::{of_arrow, of_parquet};

use crate::engine::Answer;
use crate::error::Error;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    Table,
    /// Comma-separated values with a line of names (RFC 4180); NULL is empty, lists and maps are JSON
    Csv,
    /// One JSON object a line; NULL is null, numbers are numbers
    Json,
    /// An Apache Parquet file, compressed with Zstandard
    Parquet,
}

impl Format {
    /// Whether people can read it.
    pub fn is_text(self) -> bool {
        self != Self::Parquet
    }
}

/// Write an answer; of a table, `rows` rows, which are held in memory. Returns how many rows were written.
pub async fn write(answer: &mut Answer, format: Format, rows: usize, out: impl Write + Send) -> Result<usize, Error> {
    match format {
        Format::Table => table(answer, rows, out).await,
        Format::Csv => {
            let mut writer = CsvWriter::new(out, &answer.schema()).map_err(of_arrow)?;
            let written = each(answer, |batch| writer.write(batch).map_err(of_arrow)).await?;
            writer.finish().map_err(of_arrow)?;
            Ok(written)
        }
        Format::Json => {
            once_named(&answer.schema())?;
            let builder = WriterBuilder::new().with_explicit_nulls(true);
            let mut writer = builder.build::<_, LineDelimited>(out);
            let written = each(answer, |batch| writer.write(batch).map_err(of_arrow)).await?;
            writer.finish().map_err(of_arrow)?;
            writer.into_inner().flush()?;
            Ok(written)
        }
        Format::Parquet => {
            let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
            let writer = ArrowWriter::try_new(out, answer.schema(), Some(properties.build()));
            let mut writer = writer.map_err(of_parquet)?;
            let written = each(answer, |batch| writer.write(batch).map_err(of_parquet)).await?;
            writer.close().map_err(of_parquet)?;
            Ok(written)
        }
    }
}

/// A JSON object has each name once: of two columns of one name, readers would see one.
fn once_named(schema: &Schema) -> Result<(), Error> {
    let mut names = HashSet::new();
    match schema.fields().iter().find(|field| !names.insert(field.name())) {
        Some(field) => Err(Error::Query(plan_datafusion_err!(
            "two columns are named {:?}, of which a JSON object could hold one: name them apart with AS",
            field.name()
        ))),
        None => Ok(()),
    }
}

/// Give every batch to `write`.
async fn each(answer: &mut Answer, mut write: impl FnMut(&RecordBatch) -> io::Result<()>) -> Result<usize, Error> {
    let mut rows = 0;
    while let Some(batch) = answer.next().await {
        let batch = batch?;
        write(&batch)?;
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
    let table = pretty_format_batches_with_options(&batches, &options).map_err(of_arrow)?;
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
