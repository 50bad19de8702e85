//! Tables as files of their own: CSV and Parquet, and which rows of them a selection has.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Range;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{TimestampNanosecondType, UInt64Type};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use weir_store::tables::Table;
use weir_store::unwritten::{of_arrow, of_parquet};
use weir_store::{CsvWriter, properties};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values (RFC 4180).
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// Ending of its files.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// Writes the rows of one table, `tap` with them. Memory of Parquet: a row group, 131,072 rows.
pub struct TableWriter<W: Write + Send> {
    writer: Writer<W>,
    rows: u64,
}

enum Writer<W: Write + Send> {
    Csv(Box<CsvWriter<W>>),
    Parquet(Box<ArrowWriter<W>>),
}

impl<W: Write + Send> TableWriter<W> {
    /// A file of no rows yet.
    pub fn new(table: Table, format: Format, out: W) -> io::Result<Self> {
        let schema = table.schema();
        let writer = match format {
            Format::Csv => Writer::Csv(Box::new(CsvWriter::new(out, &schema).map_err(of_arrow)?)),
            Format::Parquet => {
                let writer = ArrowWriter::try_new(out, schema, Some(properties(table)));
                Writer::Parquet(Box::new(writer.map_err(of_parquet)?))
            }
        };
        Ok(Self { writer, rows: 0 })
    }

    /// Add rows.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.rows += batch.num_rows() as u64;
        match &mut self.writer {
            Writer::Csv(writer) => writer.write(batch).map_err(of_arrow),
            Writer::Parquet(writer) => writer.write(batch).map_err(of_parquet),
        }
    }

    /// Rows so far.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// What is under it, with everything written.
    pub fn finish(self) -> io::Result<W> {
        match self.writer {
            Writer::Csv(writer) => writer.finish().map_err(of_arrow),
            Writer::Parquet(writer) => writer.into_inner().map_err(of_parquet),
        }
    }
}

/// Rows of all tables; both conditions hold.
#[derive(Clone, Debug)]
pub struct RowSelection {
    /// Rows of these connections, findings that name one of them, no counters of ports; `None`: every row.
    pub connections: Option<HashSet<u64>>,
    /// Rows of this time: UTC ns, by the table's column of time.
    pub time: Range<i64>,
}

impl RowSelection {
    /// The rows that it has.
    pub fn of(&self, table: Table, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let column = |name| batch.column_by_name(name);
        let times = column(table.time_column()).and_then(|times| times.as_primitive_opt::<TimestampNanosecondType>());
        let Some(times) = times else {
            return Err(ArrowError::SchemaError(format!("{} without its time", table.name())));
        };
        let in_time = |row: usize| self.time.contains(&times.value(row));
        let has_connection = |row: usize| {
            let Some(ids) = &self.connections else { return true };
            let has = |values: &dyn Array, row: usize| {
                let values = values.as_primitive_opt::<UInt64Type>();
                values.is_some_and(|values| ids.contains(&values.value(row)))
            };
            match table {
                Table::Ports => false,
                Table::Connections => column("id").is_some_and(|id| has(id, row)),
                Table::Findings => column("connection_ids")
                    .and_then(|lists| lists.as_list_opt::<i32>())
                    .map(|lists| lists.value(row))
                    .is_some_and(|named| (0..named.len()).any(|place| has(&named, place))),
                _ => column("connection_id").is_some_and(|id| has(id, row)),
            }
        };
        let selected = (0..batch.num_rows()).map(|row| Some(in_time(row) && has_connection(row)));
        filter_record_batch(batch, &selected.collect::<BooleanArray>())
    }
}
