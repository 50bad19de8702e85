//! Is all of it there, and what the manifest says?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::manifest::{Manifest, StoredFile};
use crate::parquet_file::{times, verify};
use crate::rows::Rows;
use crate::{StoreError, files, hour};

/// Rows read at a time.
const AT_A_TIME: usize = 8192;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Files that were read to their end.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them whose bytes no checksum is known of: a version wrote them that kept none.
    pub unsummed: u64,
    /// What is wrong, file by file; also Parquet files beside those that count: who reads all of them reads these.
    pub problems: Vec<String>,
}

/// Read all that counts, also while a writer works.
pub fn check(folder: &Path) -> Result<Checked, StoreError> {
    let mut checked = Checked::default();
    for file in Manifest::read(folder)?.files() {
        match check_file(folder, file) {
            Ok(()) => {
                checked.files += 1;
                checked.rows += file.rows;
                checked.bytes += file.bytes;
                checked.unsummed += u64::from(file.crc32.is_none());
            }
            // It was taken out long before it was its turn.
            Err(_) if !Manifest::read(folder)?.has(&file.path) => {}
            Err(StoreError::Damaged { why, .. }) => checked.problems.push(format!("{}: {why}", file.path)),
            Err(error) => checked.problems.push(error.to_string()),
        }
    }
    for path in unknown(folder)? {
        checked.problems.push(format!(
            "{}: the manifest does not know it",
            path.strip_prefix(folder).unwrap_or(&path).display()
        ));
    }
    Ok(checked)
}

/// Parquet files that show and do not count. Those that the writer, or the next opening, is about to remove are none.
fn unknown(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = files::data_files(folder)?;
    // Read after the files were listed: it knows all that showed.
    let manifest = Manifest::read(folder)?;
    let known: BTreeSet<_> = manifest.files().map(|file| folder.join(&file.path)).collect();
    files.retain(|path| {
        let is_old = files::part_number(path).is_some_and(|number| number < manifest.next);
        path.to_string_lossy().ends_with(files::SHOWN) && !is_old && !known.contains(path)
    });
    files.sort();
    Ok(files)
}

/// Whether a file is what the manifest says.
pub(crate) fn check_file(folder: &Path, file: &StoredFile) -> Result<(), StoreError> {
    let path = folder.join(&file.path);
    let damaged = |why: String| StoreError::Damaged {
        path: path.clone(),
        why,
    };
    let (table, _, hour) = file
        .partition()
        .ok_or_else(|| damaged("its path names no table, tap and hour".into()))?;
    verify(folder, file)?;
    let (mut rows, mut last) = (0, i64::MIN);
    for batch in Rows::open(folder, file, AT_A_TIME)? {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        for time in times(table, &batch) {
            if *time < last || !(file.from..=file.to).contains(time) || hour::name(hour::of(*time)) != hour {
                return Err(damaged(format!(
                    "row {rows} or one before it is out of order or of its hour"
                )));
            }
            last = *time;
        }
    }
    if rows == file.rows {
        Ok(())
    } else {
        Err(damaged(format!("it has {rows} rows instead of {}", file.rows)))
    }
}
