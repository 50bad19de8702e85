//! A capture file through parser and engine: the records, batch by batch.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use weir_analysis::{connections, count};
use weir_capture::{Beginning, CaptureError, CaptureFile, Feed, Item, Word};
use weir_command::Failure;
use weir_engine::{Batch, Config, Engine, Parser, Profile, Servers};
use weir_record::Record;
use weir_sketch::Recorder;

use crate::cli::Cut;
use crate::say;

/// Whether an input is the address of a daemon, not a file.
pub fn is_url(input: &str) -> bool {
    input.contains("://")
}

/// Whether an input can be read once only: standard input, a pipe. What is not there is told of where it is opened.
pub fn comes_once(input: &str) -> bool {
    let is_file = || std::fs::metadata(input).map_or(true, |meta| meta.is_file() || meta.is_dir());
    input == "-" || !is_url(input) && !is_file()
}

/// Whether two paths lead to one file, by whatever names; '-' is standard input.
pub fn is_one_file(one: impl AsRef<Path>, other: impl AsRef<Path>) -> bool {
    let file = |path: &Path| {
        let path = if path == Path::new("-") {
            Path::new("/dev/stdin")
        } else {
            path
        };
        let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some((meta.dev(), meta.ino()))
    };
    file(one.as_ref()).is_some_and(|one| file(other.as_ref()) == Some(one))
}

/// Frames between two looks at the progress.
const FRAMES_AT_A_TIME: usize = 256;
/// Flows from which on the table is larger than the processor's cache.
const MANY_FLOWS: usize = 1 << 13;
/// Packets whose flows are then looked up together.
const TOGETHER: usize = 16;
/// Captures below this need no progress bar.
const WORTH_A_BAR: u64 = 32 << 20;

/// How to read a capture.
#[derive(Clone)]
pub struct Options {
    /// Settings of the engine.
    pub engine: Config,
    /// Ends that are known for servers ([`Options::suited`] finds them).
    pub servers: Servers,
    /// What the parser does.
    pub profile: Profile,
    /// Statistics to write beside the records of flows.
    pub statistics: Option<weir_sketch::Config>,
    /// Only packets of this time, as if the rest were not in the file.
    pub cut: Option<Cut>,
    /// It is read for somebody else: this ends it, and nothing is said here.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Options {
    /// For all of a capture file, with nothing beside the records of flows.
    pub fn of(engine: Config) -> Self {
        Self {
            engine,
            servers: Servers::default(),
            profile: Profile::Full,
            statistics: None,
            cut: None,
            stop: None,
        }
    }

    /// With an engine that is suited to a capture file; as on the card where the card's parser is asked for. `tell` gets what
    /// the user should know of it.
    pub fn suited(&self, path: &Path, tell: impl FnOnce(&str)) -> Self {
        let (engine, servers) = match self.profile {
            Profile::Full => suited(path, self.engine, tell),
            Profile::Nic => (self.engine, self.servers.clone()),
        };
        Self {
            engine,
            servers,
            stop: self.stop.clone(),
            ..*self
        }
    }
}

/// What became of a capture.
#[derive(Default)]
pub struct Outcome {
    /// Set when something is missing: the file could not be read to its end, or the beginning of a daemon's log is gone. The
    /// rest is good.
    pub error: Option<Failure>,
    /// What else its reader should know, where it was read for somebody else.
    pub note: Option<String>,
    /// Frames that are not for the card (nic profile).
    pub left_out: u64,
}

/// The engine's settings, suited to a capture file: where its beginning shows that the two directions of connections carry
/// different tags, these are no part of the key, and `tell` is told so. And the ends that it shows to be servers.
pub fn suited(path: &Path, engine: Config, tell: impl FnOnce(&str)) -> (Config, Servers) {
    // Only a file can be read twice.
    let file = path.is_file().then(|| CaptureFile::open(path).ok()).flatten();
    let Beginning {
        directions: found,
        servers,
    } = file.map(|mut file| Beginning::of(&mut file)).unwrap_or_default();
    if !engine.vlan_in_key || !found.differ() {
        return (engine, servers);
    }
    tell(&format!(
        "{}: VLAN ids or VNIs differ by direction in {} of the first {}: they are left out, as by --ignore-vlan",
        path.display(),
        count(found.different),
        connections(found.alike + found.different)
    ));
    let engine = Config {
        vlan_in_key: false,
        ..engine
    };
    (engine, servers)
}

/// Run `path` through the engine and give its records to `take`. An error before the first frame is returned; a later
/// one is in the outcome. A terminal sees how far it has come.
pub fn read(path: &Path, options: &Options, take: impl FnMut(&[Record])) -> Result<Outcome, CaptureError> {
    let file = CaptureFile::open(path)?;
    let mut note = None;
    let options = options.suited(path, |text| match options.stop {
        Some(_) => note = Some(text.to_owned()),
        None => say(text),
    });
    let bar = if options.stop.is_none() { bar(&file) } else { None };
    let outcome = read_watched(file, &options, take, |read, _| {
        if let Some(bar) = &bar {
            bar.set_position(read);
        }
        ControlFlow::Continue(())
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    outcome.map(|outcome| Outcome { note, ..outcome })
}

/// The same; `watch` is told the bytes read, of how many if that is known, and says whether to go on.
pub fn read_watched(
    mut file: CaptureFile,
    options: &Options,
    mut take: impl FnMut(&[Record]),
    mut watch: impl FnMut(u64, Option<u64>) -> ControlFlow<()>,
) -> Result<Outcome, CaptureError> {
    let mut feed = Feed::new(Parser::new(options.profile));
    let mut engine = Engine::new(options.engine).with_servers(options.servers.clone());
    let mut recorder = options
        .statistics
        .map(|config| Recorder::new(config, options.engine.lane));
    let mut records = Vec::with_capacity(8 * FRAMES_AT_A_TIME);
    let mut waiting = Batch::default();
    let mut error = None;
    let mut start = None;
    loop {
        let read = feed.read(&mut file, FRAMES_AT_A_TIME, |word| {
            if let Some(cut) = options.cut {
                let since = word.time.saturating_sub(*start.get_or_insert(word.time));
                if !(cut.from..cut.to).contains(&since) {
                    return;
                }
            }
            if let Some(recorder) = &mut recorder {
                // It looks at the engine after each packet.
                return enter(&word, &mut engine, recorder, &mut records);
            }
            match word.item {
                Item::Packet(meta) if !waiting.is_empty() || engine.flows_in_use() >= MANY_FLOWS => {
                    waiting.push(meta, word.captured);
                    if waiting.len() == TOGETHER {
                        engine.packets(&mut waiting, &mut records);
                    }
                }
                _ => {
                    if !waiting.is_empty() {
                        engine.packets(&mut waiting, &mut records);
                    }
                    word.enter(&mut engine, &mut records);
                }
            }
        });
        engine.packets(&mut waiting, &mut records);
        take(&records);
        records.clear();
        let (position, whole) = file.progress();
        let is_stopped = options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if watch(position, whole).is_break() || is_stopped {
            break;
        }
        match read {
            Ok(true) => {}
            Ok(false) => break,
            Err(cause) => {
                error = Some(cause);
                break;
            }
        }
    }
    feed.tell_lost(&file, &mut engine);
    while engine.finish_some(FRAMES_AT_A_TIME, &mut records) {
        take(&records);
        records.clear();
    }
    if let Some(recorder) = &mut recorder {
        recorder.finish(&mut records);
    }
    take(&records);
    match error {
        // Nothing good came before it: the whole command fails.
        Some(error) if file.frames() == 0 => Err(error),
        error => Ok(Outcome {
            error: error.map(Failure::new),
            note: None,
            left_out: feed.left_out(),
        }),
    }
}

/// A line to the user.
pub fn say(text: &str) {
    say::line(format_args!("weir: {text}"));
}

/// A word through the engine and its statistics.
pub fn enter(word: &Word<'_>, engine: &mut Engine, recorder: &mut Recorder, records: &mut Vec<Record>) {
    let first = records.len();
    word.enter(engine, records);
    match word.item {
        Item::Packet(meta) => recorder.packet(meta, engine, first, records),
        Item::Untracked(_) => recorder.untracked(word.port, word.wire, engine, records),
    }
}

fn bar(file: &CaptureFile) -> Option<ProgressBar> {
    let size = file.progress().1.filter(|&size| size >= WORTH_A_BAR)?;
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::new(size);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    Some(bar)
}
