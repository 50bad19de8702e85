//! Where a command writes: standard output or a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use weir_messages::v1::Analysis;

use crate::error::Failure;

/// Write to `path`, or to standard output with colours if it is a terminal.
pub fn write(path: Option<&Path>, body: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    let (name, mut out): (String, Box<dyn Write>) = match path {
        Some(path) => {
            let name = path.display().to_string();
            let file = File::create(path).map_err(|error| Failure::write(&name, &error))?;
            (name, Box::new(BufWriter::new(anstream::StripStream::new(file))))
        }
        None => ("standard output".into(), Box::new(BufWriter::new(anstream::stdout()))),
    };
    body(&mut out)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::write(&name, &error))
}

/// Write one JSON object and a line end.
pub fn json(path: Option<&Path>, answer: &Analysis) -> Result<(), Failure> {
    write(path, |out| {
        serde_json::to_writer(&mut *out, answer)?;
        writeln!(out)
    })
}
