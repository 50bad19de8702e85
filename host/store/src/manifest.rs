//! What counts: which files, how far each source is stored, and what was given up. `docs/src/store.md` has the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{OTHER_BYTES, PUT_BACK};
use crate::files::entries;
use crate::tables::Table;
use crate::{StoreError, hour};

/// The layout of the store.
pub(crate) const FORMAT: u32 = 1;
/// Folder of the manifest in the store.
pub(crate) const FOLDER: &str = "manifest";
const CHECKPOINT: &str = "checkpoint.json";
/// Times that a reader begins anew because the writer moved on meanwhile.
const TRIES: usize = 100;

/// A file of rows that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// `TABLE/tap=NAME/hour=YYYY-MM-DDTHH/PART.parquet`, in the store.
    pub path: String,
    /// Rows in it.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// CRC-32 (as in zip and PNG) of its bytes; none of a version that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<u32>,
    /// Earliest and latest time of its rows (the table's time column), UTC ns since 1970.
    pub from: i64,
    /// See `from`.
    pub to: i64,
}

impl StoredFile {
    /// Table, tap and hour (`YYYY-MM-DDTHH`) of its path.
    pub fn partition(&self) -> Option<(Table, &str, &str)> {
        let mut parts = self.path.split('/');
        let table = Table::from_name(parts.next()?)?;
        let tap = parts.next()?.strip_prefix("tap=")?;
        Some((table, tap, parts.next()?.strip_prefix("hour=")?))
    }

    /// Number of the commit that made it.
    pub(crate) fn number(&self) -> u64 {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.split('.')
            .next()
            .and_then(|digits| digits.parse().ok())
            .unwrap_or_default()
    }

    /// The hour as a number; `i64::MIN` for a path that has none.
    pub(crate) fn hour(&self) -> i64 {
        let name = self.partition().map(|(_, _, hour)| hour);
        name.and_then(hour::parse).unwrap_or(i64::MIN)
    }
}

/// How far a source is stored: a capture is analysed to the same rows in the same order each time, so their number
/// says where to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What it was called.
    pub name: String,
    /// Version of the analysis.
    pub version: String,
    /// The boot epoch in the ids of its connections: it keeps those of two captures of one tap apart.
    pub epoch: u16,
    /// Rows stored, by table.
    pub rows: BTreeMap<String, u64>,
    /// All of it is stored.
    pub done: bool,
}

/// What one commit changes; it counts as a whole or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Commit {
    pub number: u64,
    #[serde(default)]
    pub add: Vec<StoredFile>,
    #[serde(default)]
    pub remove: Vec<String>,
    /// The source of the rows, by its id.
    #[serde(default)]
    pub source: Option<(String, Source)>,
    /// Tap and boot epoch of the daemon whose rows they are, if that is a later one than before.
    #[serde(default)]
    pub daemon: Option<(String, u16)>,
    /// Rows that the files removed had and no others have: retention gave them up, by table.
    #[serde(default)]
    pub expired: BTreeMap<String, u64>,
    /// Rows that were never stored since the commit before, for want of room, by table.
    #[serde(default)]
    pub not_stored: BTreeMap<String, u64>,
    /// Rows of the files removed that cannot be read any more, by table.
    #[serde(default)]
    pub lost: BTreeMap<String, u64>,
}

/// The state behind a number of commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Number of the next commit.
    pub(crate) next: u64,
    /// All files, by their paths.
    #[serde(with = "list")]
    files: BTreeMap<String, StoredFile>,
    /// Those with the rows of the last commit that had any: a full disk does not cost them.
    #[serde(default)]
    newest: BTreeSet<String>,
    /// All sources, by their ids.
    pub sources: BTreeMap<String, Source>,
    /// The last boot epoch of a daemon with rows in it, by tap; none of a store of a version that did not keep it.
    #[serde(default)]
    pub(crate) daemons: BTreeMap<String, u16>,
    /// Rows that retention gave up, by table.
    pub expired: BTreeMap<String, u64>,
    /// Rows that were not stored for want of room, by table.
    pub not_stored: BTreeMap<String, u64>,
    /// Rows of files that were missing or damaged when the store was opened or files were merged, by table.
    pub lost: BTreeMap<String, u64>,
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            format: FORMAT,
            next: 1,
            files: BTreeMap::new(),
            newest: BTreeSet::new(),
            sources: BTreeMap::new(),
            daemons: BTreeMap::new(),
            expired: BTreeMap::new(),
            not_stored: BTreeMap::new(),
            lost: BTreeMap::new(),
        }
    }
}

/// Files as a list: each has its path.
mod list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::StoredFile;

    pub fn serialize<S: Serializer>(files: &BTreeMap<String, StoredFile>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(files.values())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, StoredFile>, D::Error> {
        let files = Vec::<StoredFile>::deserialize(deserializer)?;
        Ok(files.into_iter().map(|file| (file.path.clone(), file)).collect())
    }
}

impl Manifest {
    /// What counts now in the store at `folder`: one state, whatever is written meanwhile. Needs no lock.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        for _ in 0..TRIES {
            let mut manifest = Self::checkpoint(folder)?;
            let begin = manifest.next;
            while let Some(commit) = read_commit(folder, manifest.next)? {
                manifest.apply(&commit);
            }
            let later = last_commit(folder)?.filter(|last| *last > manifest.next);
            if later.is_some() && commit_path(folder, manifest.next).exists() {
                // It came meanwhile.
                continue;
            }
            // A newer checkpoint takes the place of commits: one that was not there may have been before it.
            if Self::checkpoint(folder)?.next == begin {
                return match later {
                    Some(last) => Err(hole(folder, manifest.next, last)),
                    None => Ok(manifest),
                };
            }
        }
        Err(StoreError::Damaged {
            path: folder.join(FOLDER),
            why: "its checkpoints changed faster than they could be read".into(),
        })
    }

    fn checkpoint(folder: &Path) -> Result<Self, StoreError> {
        let path = checkpoint_path(folder);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::NotAStore(folder.to_owned()));
            }
            Err(error) => return Err(StoreError::io("read", &path)(error)),
        };
        let manifest: Self = parse(&path, &text)?;
        if manifest.format != FORMAT {
            return Err(StoreError::Format {
                path: folder.to_owned(),
                found: manifest.format,
            });
        }
        Ok(manifest)
    }

    /// The bytes of a checkpoint.
    pub(crate) fn to_json(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        json(path, self)
    }

    /// As it is after a commit.
    pub(crate) fn apply(&mut self, commit: &Commit) {
        self.next = commit.number + 1;
        // What replaces a file of the newest commit has its rows.
        let mut newest = commit.remove.is_empty();
        if newest && !commit.add.is_empty() {
            self.newest.clear();
        }
        for path in &commit.remove {
            self.files.remove(path);
            newest |= self.newest.remove(path);
        }
        for file in &commit.add {
            self.files.insert(file.path.clone(), file.clone());
            if newest {
                self.newest.insert(file.path.clone());
            }
        }
        if let Some((id, source)) = &commit.source {
            self.sources.insert(id.clone(), source.clone());
        }
        if let Some((tap, epoch)) = &commit.daemon {
            self.daemons.insert(tap.clone(), *epoch);
        }
        for (sums, more) in [
            (&mut self.expired, &commit.expired),
            (&mut self.not_stored, &commit.not_stored),
            (&mut self.lost, &commit.lost),
        ] {
            for (table, rows) in more {
                *sums.entry(table.clone()).or_default() += rows;
            }
        }
    }

    /// Files that are not where they should be, or not what they should be, do not count any more: their rows are lost.
    pub(crate) fn forget(&mut self, paths: &BTreeSet<String>) {
        for path in paths {
            if let Some(file) = self.files.remove(path)
                && let Some((table, _, _)) = file.partition()
            {
                *self.lost.entry(table.name().to_owned()).or_default() += file.rows;
            }
        }
    }

    /// All files that count, by path.
    pub fn files(&self) -> impl Iterator<Item = &StoredFile> {
        self.files.values()
    }

    /// Those of one table.
    pub fn of(&self, table: Table) -> impl Iterator<Item = &StoredFile> {
        let begin = format!("{}/", table.name());
        let paths = self.files.range(begin.clone()..);
        paths
            .take_while(move |(path, _)| path.starts_with(&begin))
            .map(|(_, file)| file)
    }

    /// The boot epoch of a new source: 0, as in the ids that `weir analyze` shows, if nothing of this tap is stored;
    /// else from the end down, away from those of a daemon, which count up. None if there are too many.
    pub(crate) fn new_epoch(&self, tap: &str) -> Option<u16> {
        const FIRST: u16 = 1000;
        let lowest = self
            .epochs_of_captures(tap)
            .map(|epoch| if epoch == 0 { u16::MAX } else { epoch - 1 })
            .min();
        let of_daemon = self.daemons.get(tap).copied().unwrap_or_default();
        match lowest {
            None if self.has_tap(tap) => Some(u16::MAX),
            None => Some(0),
            Some(epoch) => (epoch >= FIRST && epoch > of_daemon).then_some(epoch),
        }
    }

    /// The boot epoch of a daemon whose record log is at `of_log`: a later one if the tap has rows of it or of later ones, as those of a
    /// daemon with another log. None if there are too many.
    pub fn epoch_of_daemon(&self, tap: &str, of_log: u16) -> Option<u16> {
        // Rows of a version that did not keep the epochs: so many starts hardly any daemon had.
        const UNTOLD: u16 = 1 << 15;
        let lowest = self.epochs_of_captures(tap).filter(|epoch| *epoch > 0).min();
        let first = match self.daemons.get(tap) {
            Some(last) => last.checked_add(1)?,
            // Its log tells where it is; a new one does not.
            None if of_log == 1 && self.has_tap(tap) && self.epochs_of_captures(tap).next().is_none() => UNTOLD,
            None => 1,
        };
        let epoch = of_log.max(first);
        lowest.is_none_or(|lowest| epoch < lowest).then_some(epoch)
    }

    /// Rows of the captures of a tap that were stored and are not there any more. `None`: some of the store went, and a
    /// daemon's are among those of the tap.
    pub fn gone(&self, tap: &str) -> Option<u64> {
        if self.expired.is_empty() && self.lost.is_empty() {
            return Some(0);
        }
        if self.daemons.contains_key(tap) {
            return None;
        }
        let of_tap = |file: &&StoredFile| file.partition().is_some_and(|(_, of, _)| of == tap);
        let there: u64 = self.files().filter(of_tap).map(|file| file.rows).sum();
        let stored: u64 = self.sources_of(tap).flat_map(|source| source.rows.values()).sum();
        Some(stored.saturating_sub(there))
    }

    pub(crate) fn has_tap(&self, tap: &str) -> bool {
        self.files()
            .any(|file| file.partition().is_some_and(|(_, of, _)| of == tap))
    }

    fn epochs_of_captures(&self, tap: &str) -> impl Iterator<Item = u16> {
        self.sources_of(tap).map(|source| source.epoch)
    }

    pub(crate) fn sources_of(&self, tap: &str) -> impl Iterator<Item = &Source> {
        let begin = format!("{tap}/");
        self.sources
            .range(begin.clone()..)
            .take_while(move |(id, _)| id.starts_with(&begin))
            .map(|(_, source)| source)
    }

    /// Whether a file has rows of the last commit that had any.
    pub(crate) fn is_newest(&self, file: &StoredFile) -> bool {
        self.newest.contains(&file.path)
    }

    /// Whether a file counts.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes).sum()
    }
}

/// Where a file of the store can be read now: the writer hides a file while it moves it, and keeps it hidden for a
/// while after it took it out, so that who has read the manifest finds all files of it.
pub fn locate(folder: &Path, file: &StoredFile) -> PathBuf {
    let shown = folder.join(&file.path);
    let hidden = crate::files::hidden(&shown);
    // It is moved both ways: from hidden to shown by a commit, and back by a compaction.
    if shown.exists() || !hidden.exists() {
        shown
    } else {
        hidden
    }
}

/// Open a file of the store, wherever the writer moves it meanwhile.
pub fn open(folder: &Path, file: &StoredFile) -> Result<File, StoreError> {
    let shown = folder.join(&file.path);
    let hidden = crate::files::hidden(&shown);
    // From hidden to shown, and back: whoever looks three times meets it.
    for path in [&shown, &hidden] {
        if let Ok(file) = File::open(path) {
            return Ok(file);
        }
    }
    File::open(&shown).map_err(StoreError::io("read", &shown))
}

pub(crate) fn checkpoint_path(folder: &Path) -> PathBuf {
    folder.join(FOLDER).join(CHECKPOINT)
}

pub(crate) fn commit_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(FOLDER).join(format!("{number:010}.json"))
}

/// The number of a commit's file.
pub(crate) fn commit_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()
}

/// The highest number of a commit's file.
fn last_commit(folder: &Path) -> Result<Option<u64>, StoreError> {
    let folder = folder.join(FOLDER);
    Ok(entries(&folder)?.iter().filter_map(|path| commit_number(path)).max())
}

/// Commits are written one after the other and removed together: one that is missing before `last` was there.
fn hole(folder: &Path, missing: u64, last: u64) -> StoreError {
    StoreError::Incomplete {
        path: folder.to_owned(),
        why: format!(
            "{FOLDER}/{missing:010}.json is not there, but commits up to {last} are: without it nobody knows which files count"
        ),
    }
}

fn read_commit(folder: &Path, number: u64) -> Result<Option<Commit>, StoreError> {
    let path = commit_path(folder, number);
    match std::fs::read(&path) {
        Ok(text) => parse(&path, &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", &path)(error)),
    }
}

/// Begins the last member of each file of the manifest: the CRC-32 of all bytes before it.
const SUM: &[u8] = b",\"crc32\":";

fn parse<T: for<'de> Deserialize<'de>>(path: &Path, text: &[u8]) -> Result<T, StoreError> {
    let damaged = |why: String| StoreError::Damaged {
        path: path.to_owned(),
        why: format!("{why}; nothing was changed. {PUT_BACK}"),
    };
    let value = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
    match summed(text) {
        Some((bytes, sum)) if crc32fast::hash(bytes) != sum => Err(damaged(OTHER_BYTES.into())),
        // An older version kept none.
        _ => Ok(value),
    }
}

/// The bytes that have a checksum, and that.
fn summed(text: &[u8]) -> Option<(&[u8], u32)> {
    let begin = text.windows(SUM.len()).rposition(|bytes| bytes == SUM)?;
    let digits = text[begin + SUM.len()..].strip_suffix(b"}")?;
    Some((&text[..begin], std::str::from_utf8(digits).ok()?.parse().ok()?))
}

/// The bytes of a file of the manifest.
pub(crate) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut text = serde_json::to_vec(value).map_err(|error| StoreError::Damaged {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    // The brace that ends it.
    text.pop();
    let sum = crc32fast::hash(&text).to_string();
    for part in [SUM, sum.as_bytes(), b"}"] {
        text.extend_from_slice(part);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with rows of tap `lab`, of a daemon or of captures.
    fn manifest(daemon: Option<u16>, captures: &[u16]) -> Manifest {
        let mut manifest = Manifest::default();
        let add = |name: &str| StoredFile {
            path: format!("connections/tap={name}/hour=2024-05-01T00/1.parquet"),
            rows: 1,
            bytes: 1,
            ..StoredFile::default()
        };
        manifest.apply(&Commit {
            number: 1,
            add: vec![add("lab"), add("other")],
            daemon: daemon.map(|epoch| ("lab".to_owned(), epoch)),
            ..Commit::default()
        });
        for epoch in captures {
            let source = Source {
                epoch: *epoch,
                ..Source::default()
            };
            manifest.sources.insert(format!("lab/{epoch}"), source);
        }
        manifest
    }

    #[test]
    fn no_two_starts_of_a_tap_have_the_same_epoch() {
        let of = |daemon, captures: &[u16], of_log| manifest(daemon, captures).epoch_of_daemon("lab", of_log);
        assert_eq!(of(Some(3), &[], 1), Some(4));
        assert_eq!(of(Some(3), &[], 9), Some(9));
        assert_eq!(of(Some(3), &[0, u16::MAX], 1), Some(4));
        assert_eq!(of(None, &[0, u16::MAX], 1), Some(1));
        assert_eq!(of(Some(0xfffe), &[0, u16::MAX], 1), None);
        assert_eq!(of(Some(u16::MAX), &[], 1), None);
        assert_eq!(manifest(Some(3), &[]).epoch_of_daemon("another", 1), Some(1));
        // A version that did not keep them: a log that goes on tells where it is.
        assert_eq!(of(None, &[], 7), Some(7));
        assert_eq!(of(None, &[], 1), Some(1 << 15));
        // Captures leave out those of a daemon.
        assert_eq!(manifest(Some(3), &[0, 2000]).new_epoch("lab"), Some(1999));
        assert_eq!(manifest(Some(2000), &[0, 2000]).new_epoch("lab"), None);
    }

    #[test]
    fn a_file_without_a_checksum_is_read() {
        let text = r#"{"path":"a","rows":1,"bytes":2,"from":3,"to":4}"#;
        let read: StoredFile = serde_json::from_str(text).expect("as it was");
        assert_eq!((read.to, read.crc32), (4, None));
        // Nothing is said of what is not known.
        assert_eq!(serde_json::to_string(&read).expect("text"), text);
    }

    #[test]
    fn a_manifest_without_starts_is_read() {
        let text = r#"{"format":1,"next":1,"files":[],"sources":{},"expired":{},"not_stored":{},"lost":{}}"#;
        let read: Manifest = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(read, Manifest::default());
    }
}
