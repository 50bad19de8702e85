//! Where a command writes: standard output or a file, and a folder for what is not its answer.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;

use crate::{Failure, signals};

/// The file that `-o` names; without it, or with '-', it is standard output.
pub fn file(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| *path != Path::new("-"))
}

/// The format that is asked for; else the one that the output's name ends in; else the usual one.
pub fn format<Format: ValueEnum>(asked: Option<Format>, output: Option<&Path>, usual: Format) -> Format {
    let named = || {
        let ending = file(output)?.extension()?;
        Format::from_str(ending.to_str()?, true).ok()
    };
    asked.or_else(named).unwrap_or(usual)
}

/// How often a folder is tried to be removed while files are made in it.
const REMOVALS: usize = 100;

/// Files that are not whole yet, and folders that are not to stay. Who has the lock goes on before a signal ends the process.
static PARTS: Mutex<Option<BTreeSet<PathBuf>>> = Mutex::new(None);

fn parts() -> MutexGuard<'static, Option<BTreeSet<PathBuf>>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `make` what goes when a signal ends the process before [`end`].
fn begin<T>(part: &Path, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let mut parts = parts();
    if parts.is_none() {
        // Should that fail, a signal only leaves the file.
        let _ = signals::end_at_signal(|| {
            // Nothing is begun any more.
            let parts = self::parts();
            for part in parts.iter().flatten() {
                let _ = remove(part);
            }
            std::mem::forget(parts);
        });
    }
    let made = make(part)?;
    parts.get_or_insert_default().insert(part.to_owned());
    Ok(made)
}

fn remove(part: &Path) -> io::Result<()> {
    if !part.is_dir() {
        return fs::remove_file(part);
    }
    for _ in 1..REMOVALS {
        match fs::remove_dir_all(part) {
            // A thread has made another file in it.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            removed => return removed,
        }
    }
    fs::remove_dir_all(part)
}

/// It is no such file any more: `how` says what becomes of it.
fn end(part: &Path, how: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut parts = parts();
    if let Some(parts) = parts.as_mut() {
        parts.remove(part);
    }
    how(part)
}

/// A result on its way: its file has the name once it is whole; before that, and after an error, the name stands for
/// what it stood for.
pub struct Pending {
    name: String,
    out: BufWriter<Box<dyn Write + Send>>,
    /// The file beside, and the name that it will have.
    renamed: Option<(PathBuf, PathBuf)>,
}

impl Pending {
    /// To `path`, or to standard output. What is no file (a pipe, a device) is written as it is.
    pub fn create(path: Option<&Path>) -> Result<Self, Failure> {
        Self::new(path, |file| Box::new(file), || Box::new(io::stdout()))
    }

    /// The same for what is not text: a terminal gets none of it.
    pub fn bytes(path: Option<&Path>) -> Result<Self, Failure> {
        if file(path).is_none() && io::stdout().is_terminal() {
            return Err(Failure::new(
                "standard output is a terminal, and this format is not text: -o FILE, or a pipe",
            ));
        }
        Self::create(path)
    }

    /// The same for text: only a terminal gets its colours.
    pub fn text(path: Option<&Path>) -> Result<Self, Failure> {
        Self::new(
            path,
            |file| Box::new(anstream::StripStream::new(file)),
            || Box::new(anstream::stdout()),
        )
    }

    fn new(
        path: Option<&Path>,
        to_file: impl FnOnce(File) -> Box<dyn Write + Send>,
        to_standard: impl FnOnce() -> Box<dyn Write + Send>,
    ) -> Result<Self, Failure> {
        let Some(path) = file(path) else {
            return Ok(Self {
                name: "standard output".into(),
                out: BufWriter::new(to_standard()),
                renamed: None,
            });
        };
        let name = path.display().to_string();
        let failed = |error| Failure::write(&name, &error);
        let there = fs::metadata(path).ok();
        let (file, renamed) = if there.as_ref().is_some_and(|meta| !meta.is_file()) {
            (File::options().write(true).open(path).map_err(failed)?, None)
        } else {
            // A link stays one.
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let part = format!(
                ".{}.{}.part",
                path.file_name().unwrap_or_default().to_string_lossy(),
                std::process::id()
            );
            let part = path.with_file_name(part);
            let file = begin(&part, |part| File::create(part)).map_err(failed)?;
            let pending = Some((part, path));
            if let Some(meta) = there {
                // Who may read it stays so, where the file system knows that.
                let _ = file.set_permissions(meta.permissions());
            }
            (file, pending)
        };
        Ok(Self {
            name,
            out: BufWriter::new(to_file(file)),
            renamed,
        })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It is whole.
    pub fn finish(mut self) -> Result<(), Failure> {
        let renamed = self.out.flush().and_then(|()| match &self.renamed {
            Some((part, path)) => end(part, |part| fs::rename(part, path)),
            None => Ok(()),
        });
        renamed.map_err(|error| Failure::write(&self.name, &error))?;
        self.renamed = None;
        Ok(())
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.renamed {
            // The error that ends the command says what matters.
            let _ = end(part, remove);
        }
    }
}

/// A folder for temporary files, which goes with them, also when a signal ends the process.
pub struct Scratch(PathBuf);

impl Scratch {
    /// In a folder, which is made where it is missing.
    pub fn create(within: &Path) -> Result<Self, Failure> {
        let path = within.join(format!(".weir.{}.part", std::process::id()));
        begin(&path, |path| fs::create_dir_all(path))
            .map_err(|error| Failure::write(&within.display().to_string(), &error))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What ends the command says what matters.
        let _ = end(&self.0, remove);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
    enum Format {
        Table,
        Csv,
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("folder");
        entries
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn the_format_is_the_one_asked_for_then_the_one_of_the_name() {
        let format = |asked, output: Option<&str>| format(asked, output.map(Path::new), Format::Table);
        assert_eq!(format(None, Some("a.csv")), Format::Csv);
        assert_eq!(format(None, Some("a.CSV")), Format::Csv);
        assert_eq!(format(Some(Format::Table), Some("a.csv")), Format::Table);
        for other in [None, Some("-"), Some("a.txt"), Some("csv"), Some(".csv")] {
            assert_eq!(format(None, other), Format::Table, "{other:?}");
        }
    }

    #[test]
    fn a_file_has_its_name_once_it_is_whole() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.csv");
        for (there, text) in [(None, "first"), (Some("first"), "second")] {
            let mut out = Pending::create(Some(&path)).expect("created");
            out.write_all(text.as_bytes()).expect("written");
            out.flush().expect("flushed");
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), there);
            out.finish().expect("whole");
            assert_eq!(fs::read_to_string(&path).expect("file"), text);
        }
        drop(Pending::create(Some(&path)).expect("created"));
        assert_eq!(fs::read_to_string(&path).expect("file"), "second");
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[test]
    fn temporary_files_go_with_their_folder() {
        let folder = tempfile::tempdir().expect("folder");
        let within = folder.path().join("spill");
        let scratch = Scratch::create(&within).expect("made");
        fs::write(scratch.path().join("file"), "rows").expect("file");
        drop(scratch);
        assert!(names(&within).is_empty());
        let file = folder.path().join("file");
        fs::write(&file, "").expect("file");
        let failure = Scratch::create(&file).err().expect("no folder").to_string();
        assert!(
            failure.starts_with(&format!("cannot write {}: ", file.display())),
            "{failure}"
        );
    }

    #[test]
    fn a_link_stays_one_and_who_may_read_the_file_stays_so() {
        let folder = tempfile::tempdir().expect("folder");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "first").expect("file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        symlink(&path, &link).expect("link");
        let mut out = Pending::create(Some(&link)).expect("created");
        out.write_all(b"second").expect("written");
        out.finish().expect("whole");
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("file"), "second");
        assert_eq!(fs::metadata(&path).expect("file").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_device_is_written_as_it_is_and_errors_name_it() {
        let full = Path::new("/dev/full");
        let mut out = Pending::create(Some(full)).expect("opened");
        out.write_all(b"text").expect("it waits");
        let failure = out.finish().expect_err("full").to_string();
        assert!(
            failure.starts_with("cannot write /dev/full: No space left"),
            "{failure}"
        );
        let missing = Pending::create(Some(Path::new("/no/such/folder/a")))
            .err()
            .expect("none");
        assert!(
            missing
                .to_string()
                .starts_with("cannot write /no/such/folder/a: No such"),
            "{missing}"
        );
    }

    #[test]
    fn text_in_a_file_has_no_colours() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a");
        let coloured = b"\x1b[1mbold\x1b[0m";
        type Create = fn(Option<&Path>) -> Result<Pending, Failure>;
        let both: [(Create, &[u8]); 2] = [(Pending::text, b"bold"), (Pending::bytes, coloured)];
        for (create, kept) in both {
            let mut out = create(Some(&path)).expect("created");
            out.write_all(coloured).expect("written");
            out.finish().expect("whole");
            assert_eq!(fs::read(&path).expect("file"), kept);
        }
    }
}
