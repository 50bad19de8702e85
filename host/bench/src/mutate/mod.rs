//! Black-box robustness: captures are damaged in thousands of ways and a command is run on each. It may refuse them, with a
//! message that names file and offset; it may not panic, hang, or eat memory.

pub mod layout;
pub mod operators;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::process::{self, Outcome};
use crate::rng::Rng;
use crate::say;
use layout::{Format, Layout};
use operators::Operator;

/// What to do.
pub struct Plan {
    /// Capture files, or folders of them.
    pub sources: Vec<PathBuf>,
    /// Damaged files to try.
    pub count: u64,
    /// The same seed makes the same files.
    pub seed: u64,
    /// The command, words parted by blanks, `{}` for the file.
    pub command: String,
    /// Longest time that one run may take.
    pub timeout: Duration,
    /// Address space that one run may use, octets.
    pub memory: u64,
    /// Where files are kept that the command failed on.
    pub keep: PathBuf,
}

/// Why a run is a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A panic (exit 101, or a panic message) or a signal.
    Crash,
    /// Killed at the time limit.
    Hang,
    /// An allocation failed under the memory limit.
    Memory,
    /// A refusal whose message does not name the file, or not the place in it.
    Mute,
}

/// One damaged file on which the command failed.
#[derive(Debug)]
pub struct Finding {
    /// Number of the mutation.
    pub number: u64,
    /// What happened.
    pub failure: Failure,
    /// Exit code or signal, damage done, first line of the message.
    pub what: String,
    /// The file, kept.
    pub kept: PathBuf,
}

/// Sum of all runs.
#[derive(Debug, Default)]
pub struct Report {
    /// Source files in use.
    pub sources: usize,
    /// Runs.
    pub runs: u64,
    /// Runs that ended with success.
    pub accepted: u64,
    /// Runs that refused the file with a good message.
    pub refused: u64,
    /// Failures, by number.
    pub findings: Vec<Finding>,
}

/// A source file in memory.
struct Source {
    name: String,
    data: Vec<u8>,
}

/// Sources are cut at a block near this length: small files run fast and lose no kind of block.
const CUT: usize = 96 << 10;
/// Compressed sources cannot be cut; larger ones are left out.
const LARGEST: usize = 1 << 20;
/// Messages are read up to this length.
const MESSAGE: u64 = 64 << 10;

/// Damages and runs; the untouched sources are run first.
pub fn run(plan: &Plan) -> Result<Report, Error> {
    let sources = read_sources(&plan.sources)?;
    std::fs::create_dir_all(&plan.keep).map_err(|e| Error::file("cannot create", &plan.keep, &e))?;
    process::limit_memory(plan.memory)?;
    let total = sources.len() as u64 + plan.count;
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let report = Mutex::new(Report {
        sources: sources.len(),
        ..Report::default()
    });
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let begin = Instant::now();
    let result: Result<(), Error> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                let (sources, next, stop, report) = (&sources, &next, &stop, &report);
                scope.spawn(move || {
                    let done = work(plan, worker, sources, next, total, stop, report);
                    if done.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    done
                })
            })
            .collect();
        for handle in handles {
            handle
                .join()
                .map_err(|_| Error::new("a worker of this program panicked"))??;
        }
        Ok(())
    });
    result?;
    let mut report = report
        .into_inner()
        .map_err(|_| Error::new("a worker of this program panicked"))?;
    report.findings.sort_by_key(|finding| finding.number);
    print(plan, &report, begin.elapsed());
    Ok(report)
}

fn work(
    plan: &Plan,
    worker: usize,
    sources: &[Source],
    next: &AtomicU64,
    total: u64,
    stop: &AtomicBool,
    report: &Mutex<Report>,
) -> Result<(), Error> {
    let place = Place::new(worker)?;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= total || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (source, data, damage) = mutation(sources, number, plan.seed);
        let file = place.folder.join(&source.name);
        std::fs::write(&file, &data).map_err(|e| Error::file("cannot write", &file, &e))?;
        let (outcome, message) = place.run(plan, &file)?;
        let failure = judge(&outcome, &message, &source.name);
        let kept = plan.keep.join(format!("{number:06}-{}", source.name));
        if failure.is_some() {
            std::fs::copy(&file, &kept).map_err(|e| Error::file("cannot keep the damaged file as", &kept, &e))?;
        }
        std::fs::remove_file(&file).map_err(|e| Error::file("cannot remove", &file, &e))?;
        let Ok(mut report) = report.lock() else { return Ok(()) };
        report.runs += 1;
        match failure {
            None if outcome.status.success() => report.accepted += 1,
            None => report.refused += 1,
            Some(failure) => {
                let line = message
                    .lines()
                    .find(|line| !line.trim().is_empty())
                    .unwrap_or("(no message)");
                let what = format!("{}; {damage}; {line}", outcome.ending());
                report.findings.push(Finding {
                    number,
                    failure,
                    what,
                    kept,
                });
            }
        }
    }
}

/// The file of a number: first the sources as they are, then damaged ones.
fn mutation(sources: &[Source], number: u64, seed: u64) -> (&Source, Vec<u8>, String) {
    if let Some(source) = sources.get(number as usize) {
        return (source, source.data.clone(), "untouched".to_owned());
    }
    let mut rng = Rng::new(Rng::new(seed).bits() ^ number);
    let source = &sources[rng.below(sources.len() as u64) as usize];
    let other = &sources[rng.below(sources.len() as u64) as usize];
    let mut data = source.data.clone();
    let mut damage = Vec::new();
    for _ in 0..rng.between(1, 3) {
        let operator = Operator::any(&mut rng);
        operators::apply(operator, &mut data, &other.data, &mut rng);
        damage.push(format!("{operator:?}"));
    }
    (source, data, damage.join(", "))
}

/// Whether a run is a failure, from its end and its message.
fn judge(outcome: &Outcome, message: &str, file: &str) -> Option<Failure> {
    if outcome.timed_out {
        return Some(Failure::Hang);
    }
    if message.contains("memory allocation of") {
        return Some(Failure::Memory);
    }
    // 101 is how a Rust program ends after a panic of its main thread; other threads only leave the message.
    if outcome.status.code().is_none_or(|code| code == 101) || message.contains("panicked at") {
        return Some(Failure::Crash);
    }
    let explained = message.contains(file) && names_place(message);
    (!outcome.status.success() && !explained).then_some(Failure::Mute)
}

/// The message has "byte N", "offset N", "frame N" or "packet N".
fn names_place(message: &str) -> bool {
    let words: Vec<&str> = message
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).any(|pair| {
        matches!(
            pair[0].to_ascii_lowercase().as_str(),
            "byte" | "offset" | "frame" | "packet"
        ) && pair[1].starts_with(|c: char| c.is_ascii_digit())
    })
}

/// A folder of one worker for the file under test and the message; removed at the end.
struct Place {
    folder: PathBuf,
    message: PathBuf,
}

impl Place {
    fn new(worker: usize) -> Result<Self, Error> {
        // Memory instead of disk where there is any.
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() {
            shm.to_owned()
        } else {
            std::env::temp_dir()
        };
        static PLACES: AtomicU64 = AtomicU64::new(0);
        let unique = PLACES.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("weir-mutate-{}-{unique}-{worker}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| Error::file("cannot create", &folder, &e))?;
        Ok(Self {
            message: folder.join("stderr"),
            folder,
        })
    }

    fn run(&self, plan: &Plan, file: &Path) -> Result<(Outcome, String), Error> {
        let file_name = file.to_string_lossy();
        let mut words = plan
            .command
            .split_whitespace()
            .map(|word| word.replace("{}", &file_name));
        let program = words
            .next()
            .ok_or_else(|| Error::new("the command is empty: give for example \"bin/weir analyze {}\""))?;
        let messages = File::create(&self.message).map_err(|e| Error::file("cannot create", &self.message, &e))?;
        let mut command = Command::new(program);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages);
        let outcome = process::run(&mut command, plan.timeout)?;
        let mut message = Vec::new();
        File::open(&self.message)
            .and_then(|open| open.take(MESSAGE).read_to_end(&mut message))
            .map_err(|e| Error::file("cannot read", &self.message, &e))?;
        Ok((outcome, String::from_utf8_lossy(&message).into_owned()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing depends on it: a folder left behind is small, and its name says whose it was.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn read_sources(paths: &[PathBuf]) -> Result<Vec<Source>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|e| Error::file("cannot read the folder", path, &e))?;
            let mut inside: Vec<PathBuf> = entries
                .filter_map(Result::ok)
                .map(|entry| entry.path())
                .filter(|p| is_capture(p))
                .collect();
            inside.sort();
            files.append(&mut inside);
        } else {
            files.push(path.clone());
        }
    }
    let mut sources = Vec::new();
    for file in files {
        let mut data = std::fs::read(&file).map_err(|e| Error::file("cannot read", &file, &e))?;
        let layout = Layout::of(&data);
        if layout.format == Format::Other && data.len() > LARGEST {
            say!(
                "{}: left out, larger than {LARGEST} octets and without blocks to cut at",
                file.display()
            );
            continue;
        }
        if let Some(end) = layout
            .blocks
            .iter()
            .map(|block| block.end)
            .take_while(|end| *end <= CUT)
            .last()
            && data.len() > CUT
        {
            data.truncate(end);
        }
        let name = file
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        sources.push(Source { name, data });
    }
    if sources.is_empty() {
        return Err(Error::new(
            "no capture files (*.pcap, *.pcapng, *.cap, also .gz) in the given places",
        ));
    }
    Ok(sources)
}

fn is_capture(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    path.is_file() && [".pcap", ".pcapng", ".cap"].iter().any(|ending| name.ends_with(ending))
}

/// Findings shown in full.
const SHOWN: usize = 20;

fn print(plan: &Plan, report: &Report, took: Duration) {
    let number = |failure| {
        report
            .findings
            .iter()
            .filter(|finding| finding.failure == failure)
            .count()
    };
    say!(
        "{} runs ({} files as they are, {} damaged, seed {}) in {:.0} s: {} accepted, {} refused with file and place",
        report.runs,
        report.sources,
        plan.count,
        plan.seed,
        took.as_secs_f64(),
        report.accepted,
        report.refused
    );
    say!(
        "failures: {} crashes, {} hangs, {} out of memory, {} refusals that do not name file and place",
        number(Failure::Crash),
        number(Failure::Hang),
        number(Failure::Memory),
        number(Failure::Mute)
    );
    for finding in report.findings.iter().take(SHOWN) {
        say!("  {:?}: {}: {}", finding.failure, finding.kept.display(), finding.what);
    }
    if report.findings.len() > SHOWN {
        say!(
            "  … and {} more in {}",
            report.findings.len() - SHOWN,
            plan.keep.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn ended(raw: i32) -> Outcome {
        Outcome {
            status: ExitStatus::from_raw(raw),
            timed_out: false,
            user: Duration::ZERO,
            system: Duration::ZERO,
            wall: Duration::ZERO,
            peak_memory: 0,
        }
    }

    #[test]
    fn ends_are_told_apart() {
        let good = "weir: /tmp/x/a.pcap: byte 24: the file ends inside of a frame";
        assert_eq!(judge(&ended(0), "", "a.pcap"), None);
        assert_eq!(judge(&ended(1 << 8), good, "a.pcap"), None);
        assert_eq!(judge(&ended(1 << 8), good, "b.pcap"), Some(Failure::Mute));
        assert_eq!(
            judge(&ended(1 << 8), "a.pcap: cannot be read", "a.pcap"),
            Some(Failure::Mute)
        );
        assert_eq!(judge(&ended(1 << 8), "", "a.pcap"), Some(Failure::Mute));
        assert_eq!(judge(&ended(101 << 8), good, "a.pcap"), Some(Failure::Crash));
        assert_eq!(judge(&ended(11), good, "a.pcap"), Some(Failure::Crash));
        assert_eq!(
            judge(&ended(0), "thread 'x' panicked at src/a.rs:1", "a.pcap"),
            Some(Failure::Crash)
        );
        assert_eq!(
            judge(&ended(6), "memory allocation of 99 bytes failed", "a.pcap"),
            Some(Failure::Memory)
        );
        assert_eq!(
            judge(
                &Outcome {
                    timed_out: true,
                    ..ended(9)
                },
                good,
                "a.pcap"
            ),
            Some(Failure::Hang)
        );
    }

    #[test]
    fn places_in_messages() {
        assert!(names_place("x.pcap: byte 0: not a capture"));
        assert!(names_place("at offset 0x18"));
        assert!(names_place("Packet 17 is cut"));
        assert!(!names_place("x.pcap: 24 bytes are missing"));
    }

    #[test]
    fn a_number_and_a_seed_always_make_the_same_file() {
        let source = |name: &str| Source {
            name: name.to_owned(),
            data: layout::tests::pcap(&[60, 90]),
        };
        let sources = [source("a.pcap"), source("b.pcap")];
        assert_eq!(mutation(&sources, 1, 5).2, "untouched");
        for number in 2..100 {
            assert_eq!(mutation(&sources, number, 5).1, mutation(&sources, number, 5).1);
        }
        assert_ne!(mutation(&sources, 7, 5).1, mutation(&sources, 7, 6).1);
    }
}
