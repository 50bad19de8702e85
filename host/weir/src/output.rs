//! What all commands write to standard output or a file.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use weir_command::Failure;
pub use weir_command::output::{Pending, file, format};
use weir_messages::v1::Analysis;

use crate::source;

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
