//! Many small files of an hour become one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::check::check_file;
use crate::manifest::{Commit, StoredFile};
use crate::merge::Merge;
use crate::parquet_file::{Summed, verify, without_tap, writer};
use crate::tables::Table;
use crate::{Store, StoreError, files};

/// Most files that are merged at a time.
const MOST: usize = 16;
/// Commits without a file for an hour after which it is taken to be over: ten minutes of a daemon.
const QUIET: u64 = 600;

/// What compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Files that were merged.
    pub from: u64,
    /// Files that they became.
    pub to: u64,
    /// Rows of them.
    pub rows: u64,
    /// Files that could not be read, and what became of them; all others are merged without them.
    pub problems: Vec<String>,
}

impl Store {
    /// Merge files of an hour of about the same size as soon as there are [`MOST`] of them: an hour that is being
    /// written stays at a few dozen files, and each row is written again a few times. What nothing was added to in the
    /// last [`QUIET`] commits becomes one file. The newest commit's files stay their own: on a full disk all others can go.
    pub fn compact_some(&mut self) -> Result<Compacted, StoreError> {
        let mut done = Compacted::default();
        for ((table, partition), files) in self.partitions() {
            let newest = files.iter().map(StoredFile::number).max().unwrap_or_default();
            let is_over = newest + QUIET < self.manifest.next;
            let mut tiers: BTreeMap<u32, Vec<StoredFile>> = BTreeMap::new();
            for file in files.into_iter().filter(|file| !self.manifest.is_newest(file)) {
                // A tier is 16 times the rows of the one below it.
                let tier = if is_over { 0 } else { file.rows.max(1).ilog2() / 4 };
                tiers.entry(tier).or_default().push(file);
            }
            let enough = if is_over { 2 } else { MOST };
            for files in tiers.into_values().filter(|files| files.len() >= enough) {
                let files: Vec<_> = files.into_iter().take(MOST).collect();
                self.merge_good(table, &partition, &files, &mut done)?;
            }
        }
        Ok(done)
    }

    /// Merge all files of each hour into one.
    pub fn compact(&mut self) -> Result<Compacted, StoreError> {
        let mut done = Compacted::default();
        loop {
            let before = done.clone();
            for ((table, partition), mut files) in self.partitions() {
                if files.len() > 1 {
                    // Small ones first: each row is written as few times as can be.
                    files.sort_by_key(|file| file.rows);
                    files.truncate(MOST);
                    self.merge_good(table, &partition, &files, &mut done)?;
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
        for file in self.manifest.files().filter(|file| !self.left_out.contains(&file.path)) {
            if let (Some((table, _, _)), Some((partition, _))) = (file.partition(), file.path.rsplit_once('/')) {
                all.entry((table, partition.to_owned())).or_default().push(file.clone());
            }
        }
        all
    }

    /// Merge files; those that cannot be read are told of and do not hold up later merges.
    fn merge_good(
        &mut self,
        table: Table,
        partition: &str,
        files: &[StoredFile],
        done: &mut Compacted,
    ) -> Result<(), StoreError> {
        let Err(error) = self.merge(table, partition, files, done) else {
            return Ok(());
        };
        if self.is_undecided() || error.is_full() {
            return Err(error);
        }
        let bad: Vec<_> = files
            .iter()
            .filter_map(|file| Some((file, check_file(&self.folder, file).err()?)))
            .collect();
        if bad.is_empty() {
            return Err(error);
        }
        for (file, error) in bad {
            let is_damaged = matches!(error, StoreError::Damaged { .. });
            let fate = if is_damaged && (file.crc32.is_none() || verify(&self.folder, file).is_err()) {
                let kept = self.set_aside(table, file)?;
                format!(
                    "its {} rows are lost, its bytes are kept in {}",
                    file.rows,
                    kept.display()
                )
            } else {
                // The disk may give it later, or another version may know its columns.
                self.left_out.insert(file.path.clone());
                "it is not merged until the store is opened again".into()
            };
            done.problems.push(format!("{error}; {fate}"));
        }
        Ok(())
    }

    /// A damaged file does not count any more; gives where its bytes are kept.
    fn set_aside(&mut self, table: Table, file: &StoredFile) -> Result<PathBuf, StoreError> {
        let shown = self.folder.join(&file.path);
        let kept = files::damaged(&shown);
        // Before the commit: an opening after a crash between them finds it missing, and counts its rows, too.
        files::rename(&shown, &kept)?;
        files::sync_folder(kept.parent().unwrap_or(&self.folder))?;
        let commit = Commit {
            number: self.manifest.next,
            remove: vec![file.path.clone()],
            lost: [(table.name().to_owned(), file.rows)].into(),
            ..Commit::default()
        };
        if let Err(error) = self.decide(&commit) {
            if !self.is_undecided() {
                files::rename(&kept, &shown)?;
            }
            return Err(error);
        }
        Ok(kept)
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
        let written = self.write_merged(table, files, &hidden).and_then(|(bytes, crc32)| {
            files::sync_folder(hidden.parent().unwrap_or(&self.folder))?;
            let commit = Commit {
                number,
                add: vec![StoredFile {
                    path,
                    rows: files.iter().map(|file| file.rows).sum(),
                    bytes,
                    crc32: Some(crc32),
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

    /// Their rows in one file; its size and CRC-32.
    fn write_merged(&self, table: Table, from: &[StoredFile], to: &Path) -> Result<(u64, u32), StoreError> {
        from.iter().try_for_each(|file| verify(&self.folder, file))?;
        let out = File::create(to).map_err(StoreError::io("write", to))?;
        let failed = |error| StoreError::parquet("write", to, error);
        let mut writer = writer(table, Summed::new(BufWriter::new(out)), to)?;
        let mut rows = 0;
        for batch in Merge::new(&self.folder, table, from.iter().cloned()) {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            writer.write(&without_tap(&batch)?).map_err(failed)?;
        }
        let summed = writer.into_inner().map_err(failed)?;
        let bytes = summed.bytes;
        let (out, crc32) = summed.finish();
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
        Ok((bytes, crc32))
    }
}
