//! Where a command writes: standard output or a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use weir_messages::v1::Analysis;

use crate::error::Failure;

/// Write text to `path`, or to standard output with colours if it is a terminal.
pub fn write(path: Option<&Path>, body: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    match path {
        Some(path) => {
            let (name, file) = create(path)?;
            finish(&name, BufWriter::new(anstream::StripStream::new(file)), body)
        }
        None => finish("standard output", BufWriter::new(anstream::stdout()), body),
    }
}

/// Write bytes as they are.
pub fn binary(path: Option<&Path>, body: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    match path {
        Some(path) => {
            let (name, file) = create(path)?;
            finish(&name, BufWriter::new(file), body)
        }
        None => finish("standard output", BufWriter::new(std::io::stdout()), body),
    }
}

fn create(path: &Path) -> Result<(String, File), Failure> {
    let name = path.display().to_string();
    let file = File::create(path).map_err(|error| Failure::write(&name, &error))?;
    Ok((name, file))
}

fn finish(
    name: &str,
    mut out: impl Write,
    body: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    body(&mut out)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::write(name, &error))
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
        let Some(path) = path else {
            return Ok(Self {
                name: "standard output".into(),
                out: BufWriter::new(Box::new(io::stdout())),
                renamed: None,
            });
        };
        let name = path.display().to_string();
        let failed = |error| Failure::write(&name, &error);
        let is_special = fs::metadata(path).is_ok_and(|meta| !meta.is_file());
        let (file, renamed) = if is_special {
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
            (File::create(&part).map_err(failed)?, Some((part, path)))
        };
        Ok(Self {
            name,
            out: BufWriter::new(Box::new(file)),
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
            Some((part, path)) => fs::rename(part, path),
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
            let _ = fs::remove_file(part);
        }
    }
}
