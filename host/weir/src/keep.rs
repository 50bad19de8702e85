//! What the daemon finds, into its store: a thread that commits about once a second and never holds up the network.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use weir_analysis::{Analyzer, Connection, DataBlock, Ends, Sink, Transaction, Verdict};
use weir_command::Failure;
use weir_messages::v1::{Finding, FindingChange};
use weir_ops::store::{Rows as Counted, StoreCounters};
use weir_record::Record;
use weir_store::tables::{RecordBatch, Table, Tables};
use weir_store::{Expired, Feed, Manifest, Options, Recovery, Store, StoreError};

use crate::format::count;
use crate::say;

/// How often rows are stored.
const COMMIT: Duration = Duration::from_secs(1);
/// How often it is looked whether something is too old, or there is too much.
const EXPIRE: Duration = Duration::from_secs(60);
/// After a compaction that failed the next waits for so long.
const COMPACT_AGAIN: Duration = Duration::from_secs(600);
/// Messages on their way to the thread. When it cannot follow, the analysis waits, and the record log with it; what the
/// log has to give up shows as a gap in the records.
const WAITING: usize = 16;

/// Rows, and whether they are to be stored now.
struct Message {
    rows: Vec<(Table, RecordBatch)>,
    commit: bool,
}

/// The analysis's end.
pub struct Rows {
    /// Takes in facts.
    pub tables: Tables,
    sender: SyncSender<Message>,
    committed: Instant,
}

/// The thread's end.
pub struct Keeper {
    receiver: Receiver<Message>,
    store: Option<Store>,
    folder: PathBuf,
    tap: String,
    options: Options,
    /// The daemon's boot epoch.
    epoch: Box<dyn Fn() -> u16 + Send>,
    /// It did not work the last time: that is said once.
    fails: bool,
    /// Rows that were given up while the store was not open, or failed.
    given_up: u64,
    counters: Arc<StoreCounters>,
    /// Rows that had been removed when it was opened first, by table.
    expired_before: Option<Counted>,
    /// Rows that it removed to make room on a full disk, by table, and what of them is not told yet.
    made_room: Counted,
    to_tell: Option<Expired>,
    expired: Instant,
    compact: Instant,
}

/// The boot epoch of a daemon whose record log is at `of_log`, so that no connection has an id that another of the tap has in the store.
pub fn epoch(folder: &Path, tap: &str, of_log: u16) -> Result<u16, Failure> {
    epoch_of(folder, tap, of_log).map_err(Failure::new)
}

fn epoch_of(folder: &Path, tap: &str, of_log: u16) -> Result<u16, StoreError> {
    match Manifest::read(folder) {
        Ok(manifest) => manifest
            .epoch_of_daemon(tap, of_log)
            .ok_or_else(|| StoreError::Starts(tap.to_owned())),
        // It is made.
        Err(StoreError::NotAStore(_)) => Ok(of_log),
        Err(error) => Err(error),
    }
}

/// Open the store of a daemon. `epoch`: the last boot epoch of its rows. `goes_on`: also when it cannot be opened, it is tried
/// again.
pub fn open(
    folder: PathBuf,
    tap: &str,
    options: Options,
    counters: Arc<StoreCounters>,
    epoch: impl Fn() -> u16 + Send + 'static,
    goes_on: bool,
) -> Result<(Rows, Keeper), Failure> {
    let (sender, receiver) = sync_channel(WAITING);
    let now = Instant::now();
    let rows = Rows {
        tables: Tables::new(tap),
        sender,
        committed: now,
    };
    let mut keeper = Keeper {
        receiver,
        counters,
        expired_before: None,
        made_room: Counted::new(),
        to_tell: None,
        store: None,
        folder,
        tap: tap.to_owned(),
        options,
        epoch: Box::new(epoch),
        fails: false,
        given_up: 0,
        expired: now,
        compact: now,
    };
    match keeper.open() {
        Ok(store) => keeper.store = Some(store),
        Err(error) if goes_on => {
            keeper.failed(&error);
            keeper.counters.given_up(&Counted::new(), error.is_full());
        }
        Err(error) => return Err(Failure::new(error)),
    }
    Ok((rows, keeper))
}

/// What opening the store found, if it is worth a line.
pub fn tell_recovery(recovery: &Recovery) {
    let Recovery {
        torn,
        shown,
        removed: _,
        missing,
        foreign,
    } = recovery;
    if torn + shown > 0 {
        say::line(format_args!(
            "weir: store: {torn} files of an unfinished commit were removed, {shown} of a finished one shown"
        ));
    }
    for path in missing {
        say::line(format_args!(
            "weir: store: {path} is missing or damaged: its rows are lost"
        ));
    }
    if *foreign > 0 {
        say::line(format_args!(
            "weir: store: {foreign} files are not of this store and were left alone"
        ));
    }
}

impl Rows {
    /// Records that the analysis is about to see.
    pub fn records(&mut self, records: &[Record]) {
        self.tables.records(records);
    }

    /// A finding opened, changed or closed.
    pub fn change(&mut self, change: &FindingChange) {
        self.tables.change(change.clone());
    }

    /// Hand on what is full, and about once a second all there is.
    pub fn hand_on(&mut self) -> Result<(), Failure> {
        let commit = self.committed.elapsed() >= COMMIT;
        self.send(commit)
    }

    /// The stream is over: what is open is stored as it stands. Nobody tells its end: what goes on when the daemon starts
    /// again is a connection of its own then.
    pub fn finish(&mut self, analyzer: &mut Analyzer) -> Result<(), Failure> {
        let mut last = Last {
            rows: self,
            failed: None,
        };
        analyzer.finish(&mut last);
        match last.failed {
            Some(failure) => Err(failure),
            None => self.send(true),
        }
    }

    fn send(&mut self, commit: bool) -> Result<(), Failure> {
        let rows = if commit {
            self.committed = Instant::now();
            self.tables.flush()
        } else {
            self.tables.ready()
        };
        let rows = rows.map_err(Failure::new)?;
        if !rows.is_empty() {
            // The thread outlives the analysis.
            let _ = self.sender.send(Message { rows, commit });
        }
        Ok(())
    }
}

/// The last rows of a stream, handed on as they come: there may be a table full of open flows.
struct Last<'a> {
    rows: &'a mut Rows,
    failed: Option<Failure>,
}

impl Sink for Last<'_> {
    fn connection(&mut self, connection: &Connection<'_>) {
        self.rows.tables.connection(connection);
        if let Err(failure) = self.rows.hand_on() {
            self.failed.get_or_insert(failure);
        }
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.rows.tables.transaction(transaction);
    }

    fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        self.rows.tables.segment(verdict, ends);
    }

    fn block(&mut self, block: &DataBlock) {
        self.rows.tables.block(block);
    }

    /// A daemon's findings are told as they change.
    fn finding(&mut self, _: Finding) {}
}

impl Keeper {
    /// Store what comes until the analysis is over.
    pub fn run(mut self) {
        while let Some(mut store) = self.opened() {
            let broken = self.feed(&mut store);
            if !broken && let Err(error) = store.tell_given_up(&self.tap) {
                self.failed(&error);
            }
            self.count_room(&mut store);
            tell(self.to_tell.take(), DISK_FULL);
            drop(store);
            if !broken {
                break;
            }
        }
        if self.given_up > 0 {
            say::line(format_args!(
                "weir: store: {} rows were not stored",
                count(self.given_up)
            ));
        }
    }

    /// The store, open; what comes while it cannot be opened is counted. None when the analysis is over.
    fn opened(&mut self) -> Option<Store> {
        loop {
            if let Some(store) = self.store.take() {
                return Some(store);
            }
            match self.open() {
                Ok(store) => self.store = Some(store),
                Err(error) => {
                    self.failed(&error);
                    let message = self.receiver.recv().ok()?;
                    let rows = counted(&message.rows);
                    self.given_up += rows.values().sum::<u64>();
                    self.counters.given_up(&rows, error.is_full());
                }
            }
        }
    }

    /// Open it, for the first time or again.
    fn open(&mut self) -> Result<Store, StoreError> {
        if self.expired_before.is_none() {
            // The daemon could not ask for an epoch when it began.
            let mine = (self.epoch)();
            if epoch_of(&self.folder, &self.tap, mine)? != mine {
                return Err(StoreError::Epoch(self.tap.clone()));
            }
        } else {
            // One that is gone, as its file system is, comes back: another in its place would be hidden by it then.
            Manifest::read(&self.folder)?;
        }
        let store = Store::open(&self.folder, self.options)?;
        tell_recovery(store.recovery());
        self.expired_before
            .get_or_insert_with(|| store.manifest().expired.clone());
        Ok(store)
    }

    /// Rows into an open store; true if it must be opened again.
    fn feed(&mut self, store: &mut Store) -> bool {
        let tap = self.tap.clone();
        let mut feed = Feed::live(store, &tap);
        self.renew(feed.store());
        let mut waiting = Counted::new();
        while let Ok(message) = self.receiver.recv() {
            for (table, rows) in counted(&message.rows) {
                *waiting.entry(table).or_default() += rows;
            }
            let due = feed.add(message.rows);
            if !due && !message.commit {
                continue;
            }
            let rows = std::mem::take(&mut waiting);
            let begin = Instant::now();
            feed.store().set_daemon(&tap, (self.epoch)());
            match feed.commit() {
                Ok(_) => {
                    self.counters.committed(&rows, begin.elapsed());
                    if std::mem::take(&mut self.fails) {
                        say::line(format_args!("weir: store: rows are stored again"));
                    }
                }
                Err(error) => {
                    self.failed(&error);
                    self.counters.given_up(&rows, error.is_full());
                    feed.give_up();
                    if !error.is_full() {
                        self.given_up += rows.values().sum::<u64>();
                        return true;
                    }
                }
            }
            if self.tidy(feed.store()).is_err() {
                return true;
            }
            self.renew(feed.store());
        }
        false
    }

    /// Compaction and retention. A store that is only full goes on.
    fn tidy(&mut self, store: &mut Store) -> Result<(), ()> {
        if self.compact <= Instant::now() {
            match store.compact_some() {
                Ok(done) => {
                    self.counters.compacted(done.from, done.rows);
                    for problem in &done.problems {
                        say::line(format_args!("weir: {problem}"));
                        self.counters.compaction_failed();
                    }
                }
                Err(error) => {
                    say::line(format_args!("weir: {error}; compaction is tried again in ten minutes"));
                    self.counters.compaction_failed();
                    self.compact = Instant::now() + COMPACT_AGAIN;
                }
            }
        }
        if self.expired.elapsed() >= EXPIRE {
            self.expired = Instant::now();
            match store.expire_live(SystemTime::now()) {
                Ok(expired) => {
                    tell(expired, "retention");
                    self.count_room(store);
                    tell(self.to_tell.take(), DISK_FULL);
                }
                Err(error) if error.is_full() => {}
                Err(error) => {
                    self.failed(&error);
                    return Err(());
                }
            }
        }
        Ok(())
    }

    /// Rows that were removed to make room are no planned retention.
    fn count_room(&mut self, store: &mut Store) {
        if let Some(expired) = store.made_room() {
            for (table, rows) in &expired.rows {
                *self.made_room.entry(table.clone()).or_default() += rows;
            }
            self.to_tell.get_or_insert_default().add(expired);
        }
    }

    /// The state of the store, for scrapes.
    fn renew(&mut self, store: &mut Store) {
        self.count_room(store);
        let manifest = store.manifest();
        let mut planned = manifest.expired.clone();
        for (table, rows) in &mut planned {
            let others = [self.expired_before.as_ref(), Some(&self.made_room)];
            let others = others.into_iter().flatten().filter_map(|sums| sums.get(table));
            // Less than before: a copy took the store's place.
            *rows = rows.saturating_sub(others.sum());
        }
        let (files, bytes) = (manifest.files().count() as u64, manifest.bytes());
        self.counters.renew(files, bytes, planned, self.made_room.clone());
    }

    fn failed(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.fails, true) {
            say::line(format_args!(
                "weir: {error}; what is found is not stored until that is mended, and counted"
            ));
        }
    }
}

/// Rows by the name of their table.
fn counted(rows: &[(Table, RecordBatch)]) -> Counted {
    let mut sums = Counted::new();
    for (table, batch) in rows {
        *sums.entry(table.name().to_owned()).or_default() += batch.num_rows() as u64;
    }
    sums
}

/// Why rows are removed to make room.
pub const DISK_FULL: &str = "the disk is full";

/// A line about what was removed, and why.
pub fn tell(expired: Option<Expired>, why: &str) {
    if let Some(expired) = expired {
        say::line(format_args!(
            "weir: store: {} rows up to {} (UTC) were removed: {why}",
            count(expired.rows.values().sum()),
            expired.to
        ));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use weir_messages::Timestamp;
    use weir_messages::v1::finding_change::Kind;

    use super::*;

    /// Store a row.
    fn one(rows: &mut Rows) {
        rows.change(&FindingChange {
            kind: Kind::Opened.into(),
            time: Some(Timestamp::from_unix_nanos(1_700_000_000_000_000_000)),
            finding: Some(Finding {
                kind: "LOSS".to_owned(),
                severity: "INFO".to_owned(),
                ..Finding::default()
            }),
            ..FindingChange::default()
        });
        rows.send(true).unwrap();
    }

    fn until(condition: impl Fn() -> bool) {
        let begin = Instant::now();
        while !condition() {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_store_that_is_gone_is_waited_for_and_not_begun_anew() {
        let directory = tempfile::tempdir().unwrap();
        let (folder, elsewhere) = (directory.path().join("store"), directory.path().join("elsewhere"));
        let counters = Arc::new(StoreCounters::of(["findings"]));
        let options = Options::default();
        let (mut rows, keeper) = open(folder.clone(), "tap", options, Arc::clone(&counters), || 1, false).unwrap();
        let stored = || Manifest::read(&folder).map_or(0, |manifest| manifest.files().count());
        std::thread::scope(|scope| {
            scope.spawn(|| keeper.run());
            one(&mut rows);
            until(|| stored() == 1);
            // As when its file system is not mounted any more: an empty folder is left.
            fs::rename(&folder, &elsewhere).unwrap();
            fs::create_dir(&folder).unwrap();
            one(&mut rows);
            until(|| counters.fails());
            one(&mut rows);
            one(&mut rows);
            std::thread::sleep(Duration::from_millis(50));
            assert!(counters.fails() && stored() == 0);
            fs::remove_dir_all(&folder).unwrap();
            fs::rename(&elsewhere, &folder).unwrap();
            // The first of these finds it still away.
            one(&mut rows);
            one(&mut rows);
            until(|| stored() == 2);
            drop(rows);
        });
        assert!(!counters.fails());
    }
}
