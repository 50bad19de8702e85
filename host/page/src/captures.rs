//! The captures that are open: being read, ready, failed, live.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempPath;
use weir_api::facts::Facts;

use crate::collect::{Dropped, Missing, Parts, Recent};
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::span::seconds;

/// Most captures that are open at once.
pub const MOST: usize = 8;
/// Most bytes of an upload.
pub const UPLOAD: u64 = 4 << 30;
/// How old a copy of a live stream may be, and how many times as long as making it took.
const FRESH: Duration = Duration::from_secs(2);
const SHARE: u32 = 20;

/// Connections whose requests wait that are named, the longest first.
const WAITING: usize = 200;

/// How far reading has come; the reader looks whether it is still wanted.
#[derive(Debug, Default)]
pub struct Progress {
    read: AtomicU64,
    /// 0: not known.
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// So many bytes are read, of so many if that is known.
    pub fn at(&self, read: u64, total: Option<u64>) {
        self.read.store(read, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
    }

    /// Nobody wants it any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// What was read.
#[derive(Debug)]
pub struct Reading {
    /// The capture.
    pub data: Dataset,
    /// Why it could not be read to its end.
    pub error: Option<String>,
}

/// Reads and analyses captures: one file, or several of one path. On an error nothing of it is good.
pub type Reader = dyn Fn(&[PathBuf], &Progress) -> Result<Reading, String> + Send + Sync;

/// A stream that goes on.
pub struct Live {
    /// What it is called.
    pub name: String,
    /// What the analysis knows.
    pub facts: Arc<dyn Facts>,
    /// What the facts do not hold.
    pub recent: Arc<Mutex<Recent>>,
}

/// A copy of a live stream.
struct Copied {
    data: Arc<Dataset>,
    revision: u64,
    /// Of the facts, their findings, and what these do not hold, with the time.
    of: (u64, u64, (u64, u64)),
    renew_at: Instant,
}

enum State {
    Reading,
    Ready(Arc<Dataset>, Option<String>),
    Failed(String),
    Live(Box<Live>, Mutex<Option<Copied>>),
}

struct Capture {
    id: u64,
    name: String,
    is_path: bool,
    progress: Arc<Progress>,
    state: State,
}

/// All of them.
pub struct Captures {
    inner: Mutex<Inner>,
    reader: Arc<Reader>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    all: Vec<Arc<Capture>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Captures {
    /// None yet.
    pub fn new(reader: Arc<Reader>) -> Self {
        Self {
            inner: Mutex::default(),
            reader,
        }
    }

    /// Show a live stream.
    pub fn watch(&self, live: Live) -> Result<u64, Refused> {
        let name = live.name.clone();
        self.enter(name, false, State::Live(Box::new(live), Mutex::default()))
            .map(|(id, _)| id)
    }

    /// Read a file, or several of one path, on a thread. `kept`: a file to remove when it was read.
    pub fn open(self: &Arc<Self>, name: String, paths: Vec<PathBuf>, kept: Option<TempPath>) -> Result<u64, Refused> {
        let called = name.clone();
        let (id, progress) = self.enter(name, paths.len() > 1, State::Reading)?;
        let captures = Arc::clone(self);
        let work = move || {
            // What panics in the reader is the capture's failure, not the page's.
            let read = std::panic::AssertUnwindSafe(|| (captures.reader)(&paths, &progress));
            let state = match std::panic::catch_unwind(read) {
                Ok(Ok(Reading { data, error })) => {
                    // Every view begins with it.
                    let _ = data.lines("");
                    State::Ready(Arc::new(data), error.map(|error| named(&error, &paths, &called)))
                }
                Ok(Err(error)) => State::Failed(named(&error, &paths, &called)),
                Err(_) => State::Failed("the analysis of this capture broke down; please report it".into()),
            };
            drop(kept);
            captures.replace(id, state);
        };
        let thread = std::thread::Builder::new().name(format!("capture {id}")).spawn(work);
        if let Err(error) = thread {
            self.replace(id, State::Failed(format!("no thread to read it: {error}")));
        }
        Ok(id)
    }

    fn enter(&self, name: String, is_path: bool, state: State) -> Result<(u64, Arc<Progress>), Refused> {
        let mut inner = locked(&self.inner);
        if inner.all.len() >= MOST {
            return Err(Refused::too_many(format_args!(
                "{MOST} captures are open; close one first"
            )));
        }
        inner.next += 1;
        let id = inner.next;
        let progress = Arc::new(Progress::default());
        inner.all.push(Arc::new(Capture {
            id,
            name,
            is_path,
            progress: Arc::clone(&progress),
            state,
        }));
        Ok((id, progress))
    }

    /// Whether another one may be opened.
    pub fn has_room(&self) -> Result<(), Refused> {
        match locked(&self.inner).all.len() < MOST {
            true => Ok(()),
            false => Err(Refused::too_many(format_args!(
                "{MOST} captures are open; close one first"
            ))),
        }
    }

    /// It may have been closed meanwhile.
    fn replace(&self, id: u64, state: State) {
        let mut inner = locked(&self.inner);
        if let Some(slot) = inner.all.iter_mut().find(|capture| capture.id == id) {
            *slot = Arc::new(Capture {
                id,
                name: slot.name.clone(),
                is_path: slot.is_path,
                progress: Arc::clone(&slot.progress),
                state,
            });
        }
    }

    fn all(&self) -> Vec<Arc<Capture>> {
        locked(&self.inner).all.clone()
    }

    fn get(&self, id: &str) -> Result<Arc<Capture>, Refused> {
        let found = id.parse::<u64>().ok().and_then(|id| {
            let all = self.all();
            all.into_iter().find(|capture| capture.id == id)
        });
        found.ok_or_else(|| Refused::not_found(format_args!("there is no capture {}", crate::params::shown(id))))
    }

    /// Forget it; reading it ends.
    pub fn close(&self, id: &str) -> Result<(), Refused> {
        let capture = self.get(id)?;
        if matches!(capture.state, State::Live(..)) {
            return Err(Refused::invalid("what is measured live cannot be closed here"));
        }
        capture.progress.cancelled.store(true, Ordering::Relaxed);
        locked(&self.inner).all.retain(|known| known.id != capture.id);
        Ok(())
    }

    /// What is known of a capture now.
    pub fn data(&self, id: &str) -> Result<Arc<Dataset>, Refused> {
        let capture = self.get(id)?;
        match &capture.state {
            State::Reading => Err(Refused::not_ready(format_args!("{} is still being read", capture.name))),
            State::Failed(error) => Err(Refused::not_ready(error)),
            State::Ready(data, _) => Ok(Arc::clone(data)),
            State::Live(live, copied) => Ok(live.copy(copied).0),
        }
    }

    /// Its object.
    pub fn object(&self, id: &str) -> Result<Value, Refused> {
        Ok(self.get(id)?.object())
    }

    /// All objects.
    pub fn objects(&self) -> Vec<Value> {
        self.all().iter().map(|capture| capture.object()).collect()
    }

    /// The live stream, if there is one, with its id.
    pub fn live(&self) -> Option<(u64, Arc<dyn Facts>)> {
        self.all().iter().find_map(|capture| match &capture.state {
            State::Live(live, _) => Some((capture.id, Arc::clone(&live.facts))),
            _ => None,
        })
    }
}

/// An upload is known by its name, not by where it was put.
fn named(error: &str, paths: &[PathBuf], name: &str) -> String {
    match paths {
        [path] => error.replace(&path.display().to_string(), name),
        _ => error.to_owned(),
    }
}

impl Live {
    /// A copy that is new enough, and its number.
    fn copy(&self, copied: &Mutex<Option<Copied>>) -> (Arc<Dataset>, u64) {
        // Held while a copy is made: who asks meanwhile waits for it.
        let mut copied = locked(copied);
        let seen = locked(&self.recent).seen();
        let now = (*self.facts.follow().borrow(), self.facts.findings().0, seen);
        if let Some(known) = copied.as_ref()
            && (known.of == now || Instant::now() < known.renew_at)
        {
            return (Arc::clone(&known.data), known.revision);
        }
        let begin = Instant::now();
        let data = Arc::new(Dataset::new(self.parts()));
        let revision = copied.as_ref().map_or(1, |known| known.revision + 1);
        *copied = Some(Copied {
            data: Arc::clone(&data),
            revision,
            of: now,
            renew_at: Instant::now() + FRESH.max(begin.elapsed() * SHARE),
        });
        (data, revision)
    }

    fn parts(&self) -> Parts {
        let recent = locked(&self.recent).parts();
        let counts = self.facts.counts();
        let connections = self.facts.connections(0, usize::MAX);
        let transactions = self.facts.transactions(0, usize::MAX);
        let dropped = Dropped {
            connections: Missing::until(counts.dropped_connections, counts.connections_dropped_until),
            transactions: Missing::until(counts.dropped_transactions, counts.transactions_dropped_until),
            ..recent.dropped
        };
        let gone = [dropped.connections.span, dropped.transactions.span];
        Parts {
            connections: connections.into_iter().map(|(_, connection)| connection).collect(),
            transactions: transactions.into_iter().map(|(_, transaction)| transaction).collect(),
            findings: self.facts.findings().1.to_vec(),
            summary: self.facts.summary(),
            dropped,
            kept_since: gone.iter().flatten().map(|(_, until)| *until).max(),
            ..recent
        }
    }
}

impl Capture {
    fn object(&self) -> Value {
        let kind = match &self.state {
            State::Live(..) => "LIVE",
            _ if self.is_path => "TAPS",
            _ => "FILE",
        };
        let mut out = json!({ "id": self.id.to_string(), "name": self.name, "kind": kind });
        let (data, revision) = match &self.state {
            State::Reading => {
                out["state"] = json!("READING");
                out["revision"] = json!("0");
                out["readBytes"] = json!(self.progress.read.load(Ordering::Relaxed).to_string());
                let total = self.progress.total.load(Ordering::Relaxed);
                if total > 0 {
                    out["totalBytes"] = json!(total.to_string());
                }
                return out;
            }
            State::Failed(error) => {
                out["state"] = json!("FAILED");
                out["revision"] = json!("1");
                out["error"] = json!(error);
                return out;
            }
            State::Ready(data, error) => {
                if let Some(error) = error {
                    out["error"] = json!(error);
                }
                (Arc::clone(data), 1)
            }
            State::Live(live, copied) => live.copy(copied),
        };
        out["state"] = json!("READY");
        out["revision"] = json!(revision.to_string());
        describe(&data, &mut out);
        out
    }
}

fn describe(data: &Dataset, out: &mut Value) {
    out["start"] = json!(data.start().to_string());
    out["seconds"] = json!(data.seconds());
    out["keptFrom"] = json!(seconds(data.whole().from));
    let Dropped {
        connections,
        transactions,
        verdicts,
        blocks,
        packets,
    } = data.dropped;
    let kept = data.packets.as_ref().map_or(0, |packets| packets.all.len());
    for (name, count, dropped) in [
        ("packets", kept, packets),
        ("connections", data.connections.len(), connections.count),
        ("transactions", data.transactions.len(), transactions.count),
        ("segments", data.verdicts.len(), verdicts.count),
        ("blocks", data.blocks.len(), blocks.count),
    ] {
        out[name] = json!(count.to_string());
        out[format!("{name}Dropped")] = json!(dropped.to_string());
    }
    let longest = data
        .waiting
        .first()
        .map(|request| seconds(data.end().saturating_sub(request.begin)));
    let of = data.waiting.iter().take(WAITING).map(|request| request.id.to_string());
    out["waiting"] = json!({
        "count": data.waiting.len().to_string(),
        "longestSeconds": longest,
        "connectionIds": of.collect::<Vec<_>>(),
    });
    out["findings"] = json!(data.findings.len().to_string());
    out["hasPackets"] = json!(data.packets.is_some());
    let phases: Vec<_> = data
        .summary
        .phases
        .iter()
        .filter_map(|phase| {
            let (from, to) = (phase.start.as_ref()?, phase.end.as_ref()?);
            Some(json!({
                "from": data.moment(from),
                "to": data.moment(to),
                "concurrentConnections": phase.concurrent_connections,
            }))
        })
        .collect();
    out["phases"] = json!(phases);
}
