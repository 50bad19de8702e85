//! Many small files of an hour become one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::BufWriter;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use crate::manifest::{Commit, StoredFile};
use crate::parquet_file::{read, times, writer};
use crate::tables::Table;
use crate::{Store, StoreError, files};

/// Files that are merged at a time; memory is this many decoders and [`AT_A_TIME`] rows of each.
const MOST: usize = 16;
/// Commits without a file for an hour after which it is taken to be over: ten minutes of a daemon.
const QUIET: u64 = 600;
/// Rows read from each file at a time.
const AT_A_TIME: usize = 1024;
/// Rows written at a time.
const OUT: usize = 8192;

/// What compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Files that were merged.
    pub from: u64,
    /// Files that they became.
    pub to: u64,
    /// Rows of them.
    pub rows: u64,
}

impl Store {
    /// Merge files of an hour of about the same size as soon as there are [`MOST`] of them: an hour that is being
    /// written stays at a few dozen files, and each row is written again a few times. What nothing was added to in the
    /// last [`QUIET`] commits becomes one file.
    pub fn compact_some(&mut self) -> Result<Compacted, StoreError> {
        let mut done = Compacted::default();
        for ((table, partition), files) in self.partitions() {
            let newest = files.iter().map(StoredFile::number).max().unwrap_or_default();
            let is_over = newest + QUIET < self.manifest.next;
            let mut tiers: BTreeMap<u32, Vec<StoredFile>> = BTreeMap::new();
            for file in files {
                // A tier is 16 times the rows of the one below it.
                let tier = if is_over { 0 } else { file.rows.max(1).ilog2() / 4 };
                tiers.entry(tier).or_default().push(file);
            }
            let enough = if is_over { 2 } else { MOST };
            for files in tiers.into_values().filter(|files| files.len() >= enough) {
                let files: Vec<_> = files.into_iter().take(MOST).collect();
                self.merge(table, &partition, &files, &mut done)?;
            }
        }
        Ok(done)
    }

    /// Merge all files of each hour into one.
    pub fn compact(&mut self) -> Result<Compacted, StoreError> {
        let mut done = Compacted::default();
        loop {
            let before = done;
            for ((table, partition), mut files) in self.partitions() {
                if files.len() > 1 {
                    // Small ones first: each row is written as few times as can be.
                    files.sort_by_key(|file| file.rows);
                    files.truncate(MOST);
                    self.merge(table, &partition, &files, &mut done)?;
                }
            }
            if done == before {
                return Ok(done);
            }
        }
    }

    /// The files of each table, tap and hour.
    fn partitions(&self) -> BTreeMap<(Table, String), Vec<StoredFile>> {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for file in self.manifest.files() {
            if let (Some((table, _, _)), Some((partition, _))) = (file.partition(), file.path.rsplit_once('/')) {
                all.entry((table, partition.to_owned())).or_default().push(file.clone());
            }
        }
        all
    }

    fn merge(
        &mut self,
        table: Table,
        partition: &str,
        files: &[StoredFile],
        done: &mut Compacted,
    ) -> Result<(), StoreError> {
        let number = self.manifest.next;
        let path = format!("{partition}/{number:010}{}", files::SHOWN);
        let hidden = files::hidden(&self.folder.join(&path));
        let written = self.write_merged(table, files, &hidden).and_then(|()| {
            let bytes = std::fs::metadata(&hidden)
                .map_err(StoreError::io("look at", &hidden))?
                .len();
            files::sync_folder(hidden.parent().unwrap_or(&self.folder))?;
            let commit = Commit {
                number,
                add: vec![StoredFile {
                    path,
                    rows: files.iter().map(|file| file.rows).sum(),
                    bytes,
                    from: files.iter().map(|file| file.from).min().unwrap_or_default(),
                    to: files.iter().map(|file| file.to).max().unwrap_or_default(),
                }],
                remove: files.iter().map(|file| file.path.clone()).collect(),
                ..Commit::default()
            };
            self.decide(&commit)?;
            Ok(commit)
        });
        let commit = match written {
            Ok(commit) => commit,
            Err(error) => {
                if !self.is_undecided() {
                    let _ = std::fs::remove_file(&hidden);
                }
                return Err(error);
            }
        };
        self.carry_out(&commit.remove, &[hidden])?;
        done.from += files.len() as u64;
        done.to += 1;
        done.rows += commit.add.iter().map(|file| file.rows).sum::<u64>();
        Ok(())
    }

    fn write_merged(&self, table: Table, from: &[StoredFile], to: &std::path::Path) -> Result<(), StoreError> {
        let out = File::create(to).map_err(StoreError::io("write", to))?;
        let failed = |error| StoreError::parquet("write", to, error);
        let mut writer = writer(table, BufWriter::new(out), to)?;
        let mut merge = Merge::new(table, from.iter().map(|file| self.folder.join(&file.path)).collect())?;
        let mut rows = 0;
        while let Some(batch) = merge.next()? {
            rows += batch.num_rows() as u64;
            writer.write(&batch).map_err(failed)?;
        }
        let out = writer.into_inner().map_err(failed)?;
        let out = out
            .into_inner()
            .map_err(|error| StoreError::io("write", to)(error.into_error()))?;
        out.sync_all().map_err(StoreError::io("write", to))?;
        let stored: u64 = from.iter().map(|file| file.rows).sum();
        if rows != stored {
            return Err(StoreError::Damaged {
                path: to.to_owned(),
                why: format!("{rows} rows were read from files with {stored}; nothing was changed"),
            });
        }
        Ok(())
    }
}

/// Files in one order of time; those of one time in the order of the files.
struct Merge {
    table: Table,
    inputs: Vec<Input>,
    /// Time and input of the next row of each.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
}

struct Input {
    path: std::path::PathBuf,
    reader: ParquetRecordBatchReader,
    batch: Option<RecordBatch>,
    row: usize,
}

impl Input {
    /// The next rows of the file.
    fn advance(&mut self) -> Result<(), StoreError> {
        self.row = 0;
        self.batch = self.reader.next().transpose().map_err(|error| StoreError::Damaged {
            path: self.path.clone(),
            why: error.to_string(),
        })?;
        Ok(())
    }

    /// Time of the next row.
    fn head(&self, table: Table) -> Option<i64> {
        times(table, self.batch.as_ref()?).get(self.row).copied()
    }
}

impl Merge {
    fn new(table: Table, paths: Vec<std::path::PathBuf>) -> Result<Self, StoreError> {
        let mut merge = Self {
            table,
            inputs: Vec::new(),
            heads: BinaryHeap::new(),
        };
        for path in paths {
            let mut input = Input {
                reader: read(
                    File::open(&path).map_err(StoreError::io("read", &path))?,
                    &path,
                    AT_A_TIME,
                )?,
                path,
                batch: None,
                row: 0,
            };
            input.advance()?;
            if let Some(time) = input.head(table) {
                merge.heads.push(Reverse((time, merge.inputs.len())));
            }
            merge.inputs.push(input);
        }
        Ok(merge)
    }

    /// The next rows: as many as can be had from the batches in hand.
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        let mut order = Vec::new();
        let mut empty = None;
        while order.len() < OUT {
            let Some(Reverse((_, input))) = self.heads.pop() else {
                break;
            };
            let head = &mut self.inputs[input];
            order.push((input, head.row));
            head.row += 1;
            match head.head(self.table) {
                Some(time) => self.heads.push(Reverse((time, input))),
                None => {
                    empty = Some(input);
                    break;
                }
            }
        }
        if order.is_empty() {
            return Ok(None);
        }
        // Inputs that are read to their end have no batch; they are in no order either.
        let none = RecordBatch::new_empty(self.table.file_schema());
        let batches: Vec<_> = self
            .inputs
            .iter()
            .map(|input| input.batch.as_ref().unwrap_or(&none))
            .collect();
        let batch = interleave_record_batch(&batches, &order)?;
        if let Some(input) = empty {
            self.inputs[input].advance()?;
            if let Some(time) = self.inputs[input].head(self.table) {
                self.heads.push(Reverse((time, input)));
            }
        }
        Ok(Some(batch))
    }
}
