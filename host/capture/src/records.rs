//! A whole capture file as records.

use std::path::Path;

use weir_engine::{Config, Engine};
use weir_record::Record;

use crate::error::CaptureError;
use crate::feed::Feed;
use crate::file::CaptureFile;

/// Frames that are measured between two calls of `take`.
const AT_A_TIME: usize = 4096;

/// Measure a capture file with an engine of its own, and hand its records on, some at a time. Where the file cannot
/// be read further, what was measured until then is handed on before the error is returned.
pub fn records(path: &Path, config: Config, mut take: impl FnMut(&[Record])) -> Result<(), CaptureError> {
    let mut file = CaptureFile::open(path)?;
    let (mut feed, mut engine, mut records) = (Feed::default(), Engine::new(config), Vec::new());
    let end = loop {
        let read = feed.read(&mut file, AT_A_TIME, |word| word.enter(&mut engine, &mut records));
        take(&records);
        records.clear();
        match read {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    engine.finish(&mut records);
    take(&records);
    end
}
