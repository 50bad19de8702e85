//! Generators of large captures. Each is deterministic in (scale, seed) and keeps only the flows in progress in memory.

mod bulk;
mod connections;
pub mod hostile;
mod minimum;

use std::path::Path;

use crate::error::Error;
use crate::frame::FrameWriter;
use crate::rng::Rng;
use crate::truth::{GENERATOR_VERSION, Truth};

/// Begin of all captures: 2025-01-01T00:00:00Z, in ns since 1970.
const START: u64 = 1_735_689_600_000_000_000;

/// Kinds of capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// 2 M packets, 100 k connections with transactions, about 1,000 at a time.
    Connections,
    /// 4 M frames of minimum size, 1 M flows open at once.
    Minimum,
    /// 1.5 M packets, 50 transfers of full-size segments.
    Bulk,
}

impl Kind {
    /// All kinds, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Connections, Self::Minimum, Self::Bulk];

    /// Name on the command line and in the truth.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Minimum => "minimum",
            Self::Bulk => "bulk",
        }
    }
}

/// Writes a capture and its truth. The capture appears under its name only when it is whole.
pub fn generate(kind: Kind, scale: f64, seed: u64, path: &Path) -> Result<Truth, Error> {
    if !(scale > 0.0 && scale <= 100.0) {
        return Err(Error::new(format!(
            "scale {scale}: give a number above 0 and at most 100"
        )));
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = std::path::PathBuf::from(part);
    let mut out = FrameWriter::create(&part)?;
    let rng = Rng::new(seed);
    match kind {
        Kind::Connections => connections::write(&mut out, rng, scale)?,
        Kind::Minimum => minimum::write(&mut out, rng, scale)?,
        Kind::Bulk => bulk::write(&mut out, rng, scale)?,
    }
    let mut truth = out.finish()?;
    truth.generator = GENERATOR_VERSION;
    truth.name = kind.name().to_owned();
    truth.scale = scale;
    truth.seed = seed;
    std::fs::rename(&part, path).map_err(|e| Error::file("cannot rename the finished capture to", path, &e))?;
    truth.save(path)?;
    Ok(truth)
}

/// Number of things at a scale, at least one.
fn scaled(count: u64, scale: f64) -> u64 {
    ((count as f64 * scale).round() as u64).max(1)
}
