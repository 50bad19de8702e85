//! Where a command writes: standard output or a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

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
    write(path, |out| {
        serde_json::to_writer(&mut *out, answer)?;
        writeln!(out)
    })
}
