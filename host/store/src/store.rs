//! The writer: one commit after the other, each of them whole or not at all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arrow::array::{RecordBatch, UInt32Array};

use crate::files::entries;
use crate::manifest::{self, Commit, FOLDER, Manifest, Source, StoredFile};
use crate::parquet_file::{encode, sorted, times, without_tap};
use crate::tables::Table;
use crate::{Expired, StoreError, files, hour};

/// Commits between two checkpoints: what a reader reads beside the checkpoint.
const CHECKPOINT_EVERY: u64 = 64;
/// How long files that are not part of the store any more can still be read by who began before.
pub const GRACE: Duration = Duration::from_secs(600);
/// Bytes kept back so that room can be made on a full disk: removing files is a commit, too.
const RESERVE: usize = 1 << 20;

/// What to do when there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Give up the oldest rows for the new ones, but not those of the commit before.
    #[default]
    Oldest,
    /// Keep what is there; new rows are not stored, and counted.
    Stop,
}

/// What is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Rows of hours older than this go; not set: none for their age.
    pub keep: Option<Duration>,
    /// The oldest hours go while there are more bytes than this; not set: none for their size.
    pub keep_bytes: Option<u64>,
    /// When the disk is full.
    pub when_full: WhenFull,
}

/// What opening a store found to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Files of a commit that did not happen any more: removed.
    pub torn: u64,
    /// Files of a commit that happened, and that were not shown yet: shown.
    pub shown: u64,
    /// Files that a compaction or retention had taken out: removed.
    pub removed: u64,
    /// Files of the manifest that are not there, or have another size: their rows are gone.
    pub missing: Vec<String>,
    /// Files that are not of this store: left alone.
    pub foreign: u64,
}

/// What a commit made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Rows written.
    pub rows: u64,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A store that is open for writing: there is one writer at a time.
#[derive(Debug)]
pub struct Store {
    pub(crate) folder: PathBuf,
    pub(crate) options: Options,
    pub(crate) manifest: Manifest,
    recovery: Recovery,
    /// Held while the store is open.
    _lock: File,
    /// Folders with names that may not be on disk yet.
    unsynced: BTreeSet<PathBuf>,
    /// Number of the next commit of the newest checkpoint.
    checkpoint: u64,
    /// Hidden files that may be removed later.
    retired: VecDeque<(Instant, PathBuf)>,
    /// What was removed for want of room, and not told yet.
    pub(crate) made_room: Option<Expired>,
    /// Rows that found no room since the last commit, by table.
    not_stored: BTreeMap<String, u64>,
    /// Files that cannot be merged, though their bytes are not known to be wrong.
    pub(crate) left_out: BTreeSet<String>,
    /// It is not known whether the last commit counts.
    undecided: bool,
    /// See [`Self::set_daemon`].
    daemon: Option<(String, u16)>,
}

/// A file that is written, but does not count yet.
struct Prepared {
    file: StoredFile,
    hidden: PathBuf,
}

impl Store {
    /// Open a store for writing, or make one in a new or empty folder. What a crash left behind is put right.
    pub fn open(folder: &Path, options: Options) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(StoreError::io("make", folder))?;
        let begins = !manifest::checkpoint_path(folder).exists();
        if begins && !is_empty(folder)? {
            return Err(StoreError::NotAStore(folder.to_owned()));
        }
        files::make_folder(folder, &folder.join(FOLDER))?;
        let lock_path = folder.join(FOLDER).join("lock");
        let lock = File::create(&lock_path).map_err(StoreError::io("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &lock_path)(error)),
        }
        if begins {
            let path = manifest::checkpoint_path(folder);
            files::replace(&path, &Manifest::default().to_json(&path)?)?;
        }
        let mut store = Self {
            folder: folder.to_owned(),
            options,
            manifest: Manifest::read(folder)?,
            recovery: Recovery::default(),
            _lock: lock,
            unsynced: BTreeSet::new(),
            checkpoint: 0,
            retired: VecDeque::new(),
            made_room: None,
            not_stored: BTreeMap::new(),
            left_out: BTreeSet::new(),
            undecided: false,
            daemon: None,
        };
        store.recover()?;
        store.write_checkpoint()?;
        store.keep_reserve();
        Ok(store)
    }

    /// What opening found to do.
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// What counts now.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The rows of the next commits are those of a daemon at this tap in this boot epoch, or an earlier one.
    pub fn set_daemon(&mut self, tap: &str, epoch: u16) {
        self.daemon = Some((tap.to_owned(), epoch));
    }

    /// Write rows of one tap and, when this returns, have them on disk for good: all of them, with the progress of
    /// their source, or none. On a full disk room is made if that is wanted.
    pub fn commit(
        &mut self,
        tap: &str,
        rows: &[(Table, RecordBatch)],
        source: Option<(String, Source)>,
    ) -> Result<Committed, StoreError> {
        check_tap(tap)?;
        loop {
            match self.try_commit(tap, rows, source.clone()) {
                Err(error) if error.is_full() && self.options.when_full == WhenFull::Oldest && !self.undecided => {
                    if !self.make_room()? {
                        return Err(error);
                    }
                }
                result => return result,
            }
        }
    }

    fn try_commit(
        &mut self,
        tap: &str,
        rows: &[(Table, RecordBatch)],
        source: Option<(String, Source)>,
    ) -> Result<Committed, StoreError> {
        let mut prepared = Vec::new();
        let written = self.prepare_all(tap, rows, &mut prepared);
        let commit = Commit {
            number: self.manifest.next,
            add: prepared.iter().map(|prepared| prepared.file.clone()).collect(),
            source,
            daemon: self
                .daemon
                .clone()
                .filter(|(tap, epoch)| self.manifest.daemons.get(tap) != Some(epoch)),
            not_stored: self.not_stored.clone(),
            ..Commit::default()
        };
        let sum = |of: fn(&StoredFile) -> u64| commit.add.iter().map(of).sum();
        let committed = Committed {
            rows: sum(|file| file.rows),
            files: commit.add.len() as u64,
            bytes: sum(|file| file.bytes),
        };
        if let Err(error) = written.and_then(|()| self.decide(&commit)) {
            if !self.undecided {
                discard(prepared.iter().map(|prepared| &prepared.hidden));
            }
            return Err(error);
        }
        self.not_stored.clear();
        let hidden: Vec<_> = prepared.into_iter().map(|prepared| prepared.hidden).collect();
        self.carry_out(&[], &hidden)?;
        Ok(committed)
    }

    /// Files for all rows, hidden, on disk.
    fn prepare_all(
        &mut self,
        tap: &str,
        rows: &[(Table, RecordBatch)],
        prepared: &mut Vec<Prepared>,
    ) -> Result<(), StoreError> {
        let mut folders = BTreeSet::new();
        for ((table, hour), batches) in by_hour(rows)? {
            let folder = format!("{}/tap={tap}/hour={}", table.name(), hour::name(hour));
            let rows = sorted(table, &batches)?;
            let path = format!("{folder}/{:010}{}", self.manifest.next, files::SHOWN);
            let hidden = files::hidden(&self.folder.join(&path));
            let bytes = encode(table, &rows, &hidden)?;
            let folder = self.folder.join(folder);
            files::make_folder(&self.folder, &folder)?;
            folders.insert(folder);
            let time = times(table, &rows);
            // Before it is written: a part of a file is removed, too.
            prepared.push(Prepared {
                file: StoredFile {
                    path,
                    rows: rows.num_rows() as u64,
                    bytes: bytes.len() as u64,
                    crc32: Some(crc32fast::hash(&bytes)),
                    from: time.first().copied().unwrap_or_default(),
                    to: time.last().copied().unwrap_or_default(),
                },
                hidden: hidden.clone(),
            });
            files::write(&hidden, &bytes)?;
        }
        folders.iter().try_for_each(|folder| files::sync_folder(folder))
    }

    /// The moment from which on a commit counts. After an error here it may count or not, unless there was no room.
    pub(crate) fn decide(&mut self, commit: &Commit) -> Result<(), StoreError> {
        if self.undecided {
            return Err(StoreError::Undecided(self.folder.clone()));
        }
        let path = manifest::commit_path(&self.folder, commit.number);
        let json = manifest::json(&path, commit)?;
        if let Err(error) = files::replace(&path, &json) {
            self.undecided = path.exists();
            return Err(error);
        }
        self.manifest.apply(commit);
        Ok(())
    }

    /// The store must be opened anew.
    pub(crate) const fn is_undecided(&self) -> bool {
        self.undecided
    }

    /// Do to the files what a commit that counts says: hide some, show others. In this order no row shows twice; for an
    /// instant a compaction's rows do not show to who does not read the manifest. What a crash leaves undone is done by
    /// the next opening.
    pub(crate) fn carry_out(&mut self, hide: &[String], show: &[PathBuf]) -> Result<(), StoreError> {
        let done = self.rename_all(hide, show).and_then(|()| self.tidy());
        // The commit counts, but its files are not all where they belong.
        self.undecided = done.is_err();
        done
    }

    fn rename_all(&mut self, hide: &[String], show: &[PathBuf]) -> Result<(), StoreError> {
        for path in hide {
            let shown = self.folder.join(path);
            let hidden = files::hidden(&shown);
            files::rename(&shown, &hidden)?;
            self.unsynced.extend(shown.parent().map(Path::to_owned));
            self.retired.push_back((Instant::now(), hidden));
        }
        for hidden in show {
            if let Some(shown) = files::shown(hidden) {
                files::rename(hidden, &shown)?;
                self.unsynced.extend(shown.parent().map(Path::to_owned));
            }
        }
        Ok(())
    }

    /// A checkpoint when one is due, and an end to retired files whose time is over.
    fn tidy(&mut self) -> Result<(), StoreError> {
        if self.manifest.next - self.checkpoint >= CHECKPOINT_EVERY {
            self.write_checkpoint()?;
        }
        while let Some((_, path)) = self.retired.pop_front_if(|(since, _)| since.elapsed() >= GRACE) {
            self.remove_retired(&path)?;
        }
        Ok(())
    }

    /// Remove a file that nobody needs, and its folders when nothing else is in them.
    fn remove_retired(&self, path: &Path) -> Result<(), StoreError> {
        files::remove(path)?;
        for folder in path.ancestors().skip(1).take(2) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Remove the files that are only kept for readers; true if there were any.
    pub(crate) fn purge(&mut self) -> Result<bool, StoreError> {
        let any = !self.retired.is_empty();
        for (_, path) in std::mem::take(&mut self.retired) {
            self.remove_retired(&path)?;
        }
        Ok(any)
    }

    /// One file in the place of all commits so far. A full disk is no reason to fail: the commits stay.
    fn write_checkpoint(&mut self) -> Result<(), StoreError> {
        // Commits go: what they would have put right must be on disk.
        for folder in &self.unsynced {
            if folder.is_dir() {
                files::sync_folder(folder)?;
            }
        }
        self.unsynced.clear();
        let path = manifest::checkpoint_path(&self.folder);
        match files::replace(&path, &self.manifest.to_json(&path)?) {
            Err(error) if error.is_full() => return Ok(()),
            replaced => replaced?,
        }
        self.checkpoint = self.manifest.next;
        for path in entries(&self.folder.join(FOLDER))? {
            let old = manifest::commit_number(&path).is_some_and(|number| number < self.checkpoint);
            if old || files::is_temporary(&path) {
                files::remove(&path)?;
            }
        }
        Ok(())
    }

    fn reserve_path(&self) -> PathBuf {
        self.folder.join(FOLDER).join("reserve")
    }

    /// Room for the commits that make room. A disk that has none for it has none for the next commit either, which
    /// says so.
    pub(crate) fn keep_reserve(&self) {
        let path = self.reserve_path();
        if fs::metadata(&path).map(|reserve| reserve.len()).ok() != Some(RESERVE as u64)
            && files::write(&path, &vec![0x5a; RESERVE]).is_err()
        {
            let _ = fs::remove_file(&path);
        }
    }

    pub(crate) fn use_reserve(&self) -> Result<(), StoreError> {
        files::remove(&self.reserve_path())
    }

    /// Rows that found no room and are given up; the next commit tells of them for good.
    pub fn give_up(&mut self, rows: &[(Table, RecordBatch)]) {
        for (table, batch) in rows {
            *self.not_stored.entry(table.name().to_owned()).or_default() += batch.num_rows() as u64;
        }
    }

    /// No more rows come: what was given up and no commit has told of is told for good, in the room that is kept back.
    pub fn tell_given_up(&mut self, tap: &str) -> Result<(), StoreError> {
        if self.not_stored.is_empty() {
            return Ok(());
        }
        self.use_reserve()?;
        let told = self.try_commit(tap, &[], None);
        self.keep_reserve();
        told.map(|_| ())
    }

    /// A crash leaves nothing of a later commit than the next, and of that hidden files only: they show when it counts.
    fn could_be(&self, path: &Path) -> Result<(), StoreError> {
        let hidden = files::shown(path);
        let number = files::part_number(hidden.as_deref().unwrap_or(path));
        let end = self.manifest.next + u64::from(hidden.is_some());
        if number.is_none_or(|number| number < end) {
            return Ok(());
        }
        Err(StoreError::Incomplete {
            path: self.folder.clone(),
            why: format!(
                "{} is of a later commit than the last one there, number {}",
                path.strip_prefix(&self.folder).unwrap_or(path).display(),
                self.manifest.next - 1
            ),
        })
    }

    /// Put right what a crash left: the manifest decides.
    fn recover(&mut self) -> Result<(), StoreError> {
        let mut there = BTreeMap::new();
        for path in files::data_files(&self.folder)? {
            let meta = fs::metadata(&path).map_err(StoreError::io("look at", &path))?;
            there.insert(path, meta.len());
        }
        there.keys().try_for_each(|path| self.could_be(path))?;
        let mut missing = BTreeSet::new();
        for file in self.manifest.files() {
            let shown = self.folder.join(&file.path);
            let hidden = files::hidden(&shown);
            let mut size = there.remove(&shown);
            if size.is_none()
                && let Some(hidden_size) = there.remove(&hidden)
            {
                files::rename(&hidden, &shown)?;
                self.unsynced.extend(shown.parent().map(Path::to_owned));
                self.recovery.shown += 1;
                size = Some(hidden_size);
            }
            if size != Some(file.bytes) {
                missing.insert(file.path.clone());
                if size.is_some() {
                    // Its bytes are kept for whoever wants to look.
                    files::rename(&shown, &files::damaged(&shown))?;
                }
            }
        }
        self.manifest.forget(&missing);
        self.recovery.missing = missing.into_iter().collect();
        for path in there.into_keys() {
            let shown = files::shown(&path).unwrap_or_else(|| path.clone());
            match files::part_number(&shown) {
                None => {
                    self.recovery.foreign += 1;
                    continue;
                }
                Some(number) if number < self.manifest.next => self.recovery.removed += 1,
                Some(_) => self.recovery.torn += 1,
            }
            self.remove_retired(&path)?;
        }
        Ok(())
    }
}

/// Nothing is in the folder, or only what a crash leaves of the first opening.
fn is_empty(folder: &Path) -> Result<bool, StoreError> {
    let rest = entries(folder)?;
    Ok(rest
        .iter()
        .all(|path| path.file_name().is_some_and(|name| name == FOLDER)))
}

/// A commit that did not happen leaves nothing; what cannot be removed now is removed by the next opening.
fn discard<'a>(hidden: impl Iterator<Item = &'a PathBuf>) {
    for path in hidden {
        let _ = fs::remove_file(path);
    }
}

/// Whether a text can name a tap: it becomes the name of a folder.
pub fn check_tap(tap: &str) -> Result<(), StoreError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let good = (1..=64).contains(&tap.len()) && !tap.starts_with('.') && tap.chars().all(plain);
    if good {
        Ok(())
    } else {
        Err(StoreError::Tap(tap.to_owned()))
    }
}

/// The rows of each table and hour, without their tap.
fn by_hour(rows: &[(Table, RecordBatch)]) -> Result<BTreeMap<(Table, i64), Vec<RecordBatch>>, StoreError> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (table, batch) in rows {
        let batch = without_tap(batch)?;
        let time = times(*table, &batch);
        let mut hours: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        for (row, time) in time.iter().enumerate() {
            hours.entry(hour::of(*time)).or_default().push(row as u32);
        }
        if hours.len() == 1 {
            all.entry((*table, hour::of(time[0]))).or_default().push(batch);
            continue;
        }
        for (hour, rows) in hours {
            let part = arrow::compute::take_record_batch(&batch, &UInt32Array::from(rows))?;
            all.entry((*table, hour)).or_default().push(part);
        }
    }
    Ok(all)
}
