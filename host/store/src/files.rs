//! Files that outlive a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::tables::Table;

/// Ending of the files that count.
pub(crate) const SHOWN: &str = ".parquet";
/// Ending of the files that do not, or not yet, or not any more.
const HIDDEN: &str = ".hidden";
const TEMPORARY: &str = ".tmp";

/// Where a data file stands while it does not show: `.PART.hidden` beside `PART.parquet`. No reader that follows the
/// customs (names that begin with a point are not data) or looks for `*.parquet` sees it.
pub(crate) fn hidden(shown: &Path) -> PathBuf {
    let name = shown.file_name().unwrap_or_default().to_string_lossy();
    let part = name.strip_suffix(SHOWN).unwrap_or(&name);
    shown.with_file_name(format!(".{part}{HIDDEN}"))
}

/// Where the bytes of a damaged data file are kept.
pub(crate) fn damaged(shown: &Path) -> PathBuf {
    hidden(shown).with_extension("damaged")
}

/// The data file that is, or was, or would have been, shown under another name than this one.
pub(crate) fn shown(hidden: &Path) -> Option<PathBuf> {
    let name = hidden.file_name()?.to_str()?;
    let part = name.strip_prefix('.')?.strip_suffix(HIDDEN)?;
    Some(hidden.with_file_name(format!("{part}{SHOWN}")))
}

/// The number of the commit that made a data file.
pub(crate) fn part_number(shown: &Path) -> Option<u64> {
    let digits = shown.file_name()?.to_str()?.strip_suffix(SHOWN)?;
    (digits.len() == 10).then(|| digits.parse().ok()).flatten()
}

/// What is in a folder.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = |error| StoreError::io("list", folder)(error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    Ok(paths)
}

/// All files in the folders of the tables of a store.
pub(crate) fn data_files(store: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut all = Vec::new();
    for table in Table::ALL {
        collect(&store.join(table.name()), 2, &mut all)?;
    }
    Ok(all)
}

/// All files up to `depth` folders below this one, if it is there.
fn collect(folder: &Path, depth: u32, all: &mut Vec<PathBuf>) -> Result<(), StoreError> {
    if !folder.is_dir() {
        return Ok(());
    }
    let listed = entries(folder);
    // Its last file went, and it with that.
    if listed.is_err() && !folder.exists() {
        return Ok(());
    }
    for path in listed? {
        if !path.is_dir() {
            all.push(path);
        } else if depth > 0 {
            collect(&path, depth - 1, all)?;
        }
    }
    Ok(())
}

/// A file is as good as its folder: its name must be on disk, too.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(StoreError::io("sync", folder))
}

/// The folder, made with those above it up to `root` (which is there), all of them on disk.
pub(crate) fn make_folder(root: &Path, folder: &Path) -> Result<(), StoreError> {
    if folder == root || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(root);
    make_folder(root, above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(StoreError::io("make", folder)(error)),
        _ => sync_folder(above),
    }
}

/// Replace a file at once: it has the old or the new content whatever happens, and the new when this returns.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!("{name}{TEMPORARY}"));
    let written = write(&temporary, content).and_then(|()| rename(&temporary, path));
    if written.is_err() {
        // The error says what matters; the next opening removes what this cannot.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_folder(path.parent().unwrap_or(path))
}

/// Whether a file is what is left of [`replace`].
pub(crate) fn is_temporary(path: &Path) -> bool {
    path.to_string_lossy().ends_with(TEMPORARY)
}

/// A new file whose content is on disk; its name need not be.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    File::create(path)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .map_err(StoreError::io("write", path))
}

/// Rename.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::io("rename", from))
}

/// Remove a file that may be gone already.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path)(error)),
        _ => Ok(()),
    }
}
