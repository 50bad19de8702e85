//! Rows to record batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int16Array, RecordBatch, StringArray};
use arrow::error::ArrowError;

use super::Table;
use super::column::{Collect, Column};

/// A kind of row, and the table that it goes to.
pub trait Row: Sized + 'static {
    /// Its table.
    const TABLE: Table;
    /// The columns, without `tap`, which every table has.
    fn columns() -> Vec<Column<Self>>;
}

/// Rows of one table and one tap on their way into a batch.
pub struct Builder<R: Row> {
    tap: String,
    collectors: Vec<Box<dyn Collect<R>>>,
    rows: usize,
}

impl<R: Row> Builder<R> {
    /// No rows yet.
    pub fn new(tap: &str) -> Self {
        Self {
            tap: tap.to_owned(),
            collectors: R::columns().iter().map(Column::collector).collect(),
            rows: 0,
        }
    }

    /// Add a row. An error (a dictionary is full) leaves the batch unusable.
    pub fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        self.collectors.iter_mut().try_for_each(|column| column.push(row))?;
        self.rows += 1;
        Ok(())
    }

    /// Rows since the last batch.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// There are none.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The rows since the last batch.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let mut arrays = vec![tap_array(&self.tap, rows)?];
        for column in &mut self.collectors {
            arrays.push(column.finish()?);
        }
        RecordBatch::try_new(R::TABLE.schema(), arrays)
    }
}

/// The column `tap` of so many rows.
pub(crate) fn tap_array(tap: &str, rows: usize) -> Result<ArrayRef, ArrowError> {
    let keys = Int16Array::from_value(0, rows);
    let names = StringArray::from_iter_values([tap]);
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(names))?))
}
