//! Captures through the whole analysis, in this process.

use crate::error::LabError;
use std::path::Path;
use weir_analysis::{Analyzer, Config, Sink};
use weir_capture::{CaptureFile, Feed};
use weir_engine::Engine;
use weir_record::Record;

/// Frames between two looks at their records.
const TOGETHER: usize = 4096;

/// Gives what the analysis finds in `capture` to `sink`.
pub(crate) fn analyze(capture: &Path, sink: &mut impl Sink) -> Result<(), LabError> {
    let mut analyzer = Analyzer::new(Config::default());
    measure(capture, weir_engine::Config::file(), |records| {
        analyzer.push(records, sink);
    })?;
    analyzer.finish(sink);
    Ok(())
}

/// Gives the records that an engine of these settings makes of `capture` to `take`.
pub(crate) fn measure(
    capture: &Path,
    config: weir_engine::Config,
    mut take: impl FnMut(&[Record]),
) -> Result<(), LabError> {
    let doing = format!("analysing {}", capture.display());
    let failed = |error: weir_capture::CaptureError| LabError::io(&doing)(std::io::Error::other(error.to_string()));
    let mut file = CaptureFile::open(capture).map_err(failed)?;
    let mut feed = Feed::default();
    let mut engine = Engine::new(config);
    let mut records = Vec::new();
    loop {
        let more = feed
            .read(&mut file, TOGETHER, |word| word.enter(&mut engine, &mut records))
            .map_err(failed)?;
        take(&records);
        records.clear();
        if !more {
            break;
        }
    }
    engine.finish(&mut records);
    take(&records);
    Ok(())
}
