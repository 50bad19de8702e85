//! Rows of many files in one order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;

use crate::StoreError;
use crate::manifest::StoredFile;
use crate::parquet_file::times;
use crate::rows::Rows;
use crate::tables::Table;

/// Rows read from each file at a time.
const AT_A_TIME: usize = 1024;
/// Most rows given at a time.
const OUT: usize = 8192;

/// Rows of files of one table in the order of time, those of one time in the order of the files. Memory is a decoder and
/// [`AT_A_TIME`] rows of each file that has rows of the time at hand; the others are not open.
pub struct Merge {
    folder: PathBuf,
    table: Table,
    /// Files that are not open yet, with their places; the first to begin last.
    waiting: Vec<(usize, StoredFile)>,
    inputs: Vec<Input>,
    /// Inputs that are at their end: their places are for others.
    free: Vec<usize>,
    /// Time, place of the file and input of the next row of each.
    heads: BinaryHeap<Reverse<(i64, usize, usize)>>,
}

struct Input {
    place: usize,
    rows: Rows,
    batch: RecordBatch,
    row: usize,
}

impl Merge {
    /// Rows of these files, all of one table.
    pub fn new(folder: &Path, table: Table, files: impl IntoIterator<Item = StoredFile>) -> Self {
        let mut waiting: Vec<_> = files.into_iter().enumerate().collect();
        waiting.sort_by_key(|(_, file)| Reverse(file.from));
        Self {
            folder: folder.to_owned(),
            table,
            waiting,
            inputs: Vec::new(),
            free: Vec::new(),
            heads: BinaryHeap::new(),
        }
    }

    /// Open the files that may have the next row.
    fn open(&mut self) -> Result<(), StoreError> {
        loop {
            let next = self.heads.peek().map(|Reverse((time, ..))| *time);
            let due = |(_, file): &mut (usize, StoredFile)| next.is_none_or(|next| file.from <= next);
            let Some((place, file)) = self.waiting.pop_if(due) else {
                return Ok(());
            };
            let input = Input {
                place,
                rows: Rows::open(&self.folder, &file, AT_A_TIME)?,
                batch: RecordBatch::new_empty(self.table.schema()),
                row: 0,
            };
            let at = self.free.pop().unwrap_or(self.inputs.len());
            match self.inputs.get_mut(at) {
                Some(ended) => *ended = input,
                None => self.inputs.push(input),
            }
            self.read(at)?;
        }
    }

    /// The next rows of an input.
    fn read(&mut self, at: usize) -> Result<(), StoreError> {
        let input = &mut self.inputs[at];
        let batch = input.rows.next().transpose()?;
        input.row = 0;
        input.batch = batch.unwrap_or_else(|| RecordBatch::new_empty(self.table.schema()));
        match input.head(self.table) {
            Some(time) => self.heads.push(Reverse((time, input.place, at))),
            None => self.free.push(at),
        }
        Ok(())
    }

    /// As many rows as can be had from the batches in hand.
    fn take(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        let mut order = Vec::new();
        let mut over = None;
        while order.len() < OUT && over.is_none() {
            self.open()?;
            let Some(Reverse((_, place, at))) = self.heads.pop() else {
                break;
            };
            let input = &mut self.inputs[at];
            order.push((at, input.row));
            input.row += 1;
            match input.head(self.table) {
                Some(time) => self.heads.push(Reverse((time, place, at))),
                None => over = Some(at),
            }
        }
        if order.is_empty() {
            return Ok(None);
        }
        let batches: Vec<_> = self.inputs.iter().map(|input| &input.batch).collect();
        let rows = interleave_record_batch(&batches, &order)?;
        if let Some(at) = over {
            self.read(at)?;
        }
        Ok(Some(rows))
    }
}

impl Iterator for Merge {
    type Item = Result<RecordBatch, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take().transpose()
    }
}

impl Input {
    /// Time of the next row.
    fn head(&self, table: Table) -> Option<i64> {
        times(table, &self.batch).get(self.row).copied()
    }
}
