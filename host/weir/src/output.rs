//! Where a command writes: standard output or a file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use weir_messages::v1::Analysis;

use crate::error::Failure;
use crate::{measure, source};

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

/// Refuse an output that is one of the inputs: the capture would be gone.
pub fn keep<'a>(inputs: impl IntoIterator<Item = &'a String>, output: Option<&Path>) -> Result<(), Failure> {
    let Some(output) = file(output) else { return Ok(()) };
    match inputs.into_iter().find(|input| source::is_one_file(input, output)) {
        Some(input) => Err(Failure::new(format_args!(
            "{input}: is the capture itself; -o names another file"
        ))),
        None => Ok(()),
    }
}

/// Write text to `path`, or to standard output with colours if it is a terminal.
pub fn write(path: Option<&Path>, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    finish(Pending::text(path)?, body)
}

/// Write bytes as they are.
pub fn binary(path: Option<&Path>, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    finish(Pending::create(path)?, body)
}

fn finish(mut out: Pending, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    body(&mut out).map_err(|error| Failure::write(out.name(), &error))?;
    out.finish()
}

/// Write one JSON object and a line end.
pub fn json(path: Option<&Path>, answer: &Analysis) -> Result<(), Failure> {
    // Its parts are small and many. No colours can be in it: JSON has no control characters.
    binary(path, |out| {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        serde_json::to_writer(&mut out, answer)?;
        out.write_all(b"\n")?;
        out.flush()
    })
}

/// Files that are not whole yet. Who has the lock goes on before a signal ends the process.
static PARTS: Mutex<Option<BTreeSet<PathBuf>>> = Mutex::new(None);

fn parts() -> MutexGuard<'static, Option<BTreeSet<PathBuf>>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Make a file that goes when a signal ends the process before [`end`].
fn begin(part: &Path) -> io::Result<File> {
    let mut parts = parts();
    if parts.is_none() {
        // Should that fail, a signal only leaves the file.
        let _ = measure::end_at_signal(|| {
            // Nothing is begun any more.
            let parts = self::parts();
            for part in parts.iter().flatten() {
                let _ = fs::remove_file(part);
            }
            std::mem::forget(parts);
        });
    }
    let file = File::create(part)?;
    parts.get_or_insert_default().insert(part.to_owned());
    Ok(file)
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
            let file = begin(&part).map_err(failed)?;
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
            let _ = end(part, |part| fs::remove_file(part));
        }
    }
}
