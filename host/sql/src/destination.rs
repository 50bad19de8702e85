//! Where an answer goes: standard output, or a file that has its name once it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Standard output or a file. Before [`Destination::finish`], and after an error, the file's name stands for what it stood
/// for.
pub struct Destination {
    out: BufWriter<Box<dyn Write + Send>>,
    /// The file beside, and the name that it will have.
    renamed: Option<(PathBuf, PathBuf)>,
}

impl Destination {
    /// The file at `path`; without one, or with '-', standard output, which must be no terminal for what is not text. What
    /// is no file (a pipe, a device) is written as it is.
    pub fn create(path: Option<&Path>, text: bool) -> Result<Self, Error> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            if !text && io::stdout().is_terminal() {
                let told = "standard output is a terminal, and this format is not text: -o FILE, or a pipe";
                return Err(Error::Write(io::Error::other(told)));
            }
            return Ok(Self {
                out: BufWriter::new(Box::new(io::stdout())),
                renamed: None,
            });
        };
        let (file, renamed) =
            open(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(Self {
            out: BufWriter::new(Box::new(file)),
            renamed,
        })
    }

    /// Whether there is something to remove should the program end before its time.
    pub fn is_unfinished(&self) -> bool {
        self.renamed.is_some()
    }

    /// It is whole.
    pub fn finish(mut self) -> Result<(), Error> {
        self.out.flush()?;
        if let Some((part, path)) = &self.renamed {
            fs::rename(part, path)?;
        }
        self.renamed = None;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<(File, Option<(PathBuf, PathBuf)>)> {
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|meta| !meta.is_file()) {
        return Ok((File::options().write(true).open(path)?, None));
    }
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let file = File::create(&part)?;
    if let Some(meta) = there {
        // Who may read it stays so, where the file system knows that.
        let _ = file.set_permissions(meta.permissions());
    }
    Ok((file, Some((part, path))))
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.renamed {
            // The error that ends the query says what matters.
            let _ = fs::remove_file(part);
        }
    }
}
