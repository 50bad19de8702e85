//! What the analysis knows, kept in memory for FlowService: the analysis writes, clients read.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use tokio::sync::watch;
use weir_messages::v1::finding_change::Kind;
use weir_messages::v1::{Connection, Finding, FindingChange, Segment, Summary, TimeSlice, Transaction};

/// Where FlowService reads. Lists are read in chunks, in the order in which their items were
/// first known; keys grow in that order and are never used again.
pub trait Facts: Send + Sync + 'static {
    /// Which facts these are: keys and versions of others mean nothing here.
    fn id(&self) -> u64;
    /// At most `most` connections with keys from `from` on.
    fn connections(&self, from: u64, most: usize) -> Vec<(u64, Arc<Connection>)>;
    /// At most `most` transactions with keys from `from` on.
    fn transactions(&self, from: u64, most: usize) -> Vec<(u64, Arc<Transaction>)>;
    /// One connection and its transactions by index.
    fn connection(&self, id: u64) -> Option<(Arc<Connection>, Vec<Arc<Transaction>>)>;
    /// Whether it has a connection, by id.
    fn holds(&self, id: u64) -> bool;
    /// At most `most` verdicts on segments with keys from `from` on.
    fn segments(&self, from: u64, most: usize) -> Vec<(u64, Arc<Segment>)>;
    /// All findings, and how often they were replaced.
    fn findings(&self) -> (u64, Arc<Vec<Finding>>);
    /// The number of the last change of a finding, and all open findings as if they opened now.
    fn open_findings(&self) -> (u64, Vec<FindingChange>);
    /// The changes of findings behind a number, and how many of them are not kept any more.
    fn finding_changes(&self, after: u64) -> (u64, Vec<FindingChange>);
    /// Wakes when findings change, with the number of the last change.
    fn follow_findings(&self) -> watch::Receiver<u64>;
    /// The figures of the whole input.
    fn summary(&self) -> Summary;
    /// What happened when, in the order of time.
    fn timeline(&self) -> Arc<Vec<TimeSlice>>;
    /// How much there is.
    fn counts(&self) -> Counts;
    /// Wakes when connections change.
    fn follow(&self) -> watch::Receiver<u64>;
    /// A place in the changes of connections, at their end now.
    fn cursor(&self) -> Arc<Cursor>;
    /// At most `most` connections that changed since, each once in its last state; the cursor
    /// moves behind them.
    fn changes(&self, cursor: &Cursor, most: usize) -> Vec<Arc<Connection>>;
}

/// Sizes of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections held.
    pub connections: u64,
    /// Transactions held.
    pub transactions: u64,
    /// Connections dropped to stay within the limit.
    pub dropped_connections: u64,
    /// Transactions dropped to stay within the limit, or with their connection.
    pub dropped_transactions: u64,
    /// Verdicts on segments held.
    pub segments: u64,
    /// Those dropped to stay within the limit.
    pub dropped_segments: u64,
    /// Last moment of what was dropped, UTC ns since 1970; 0: nothing was. All connections that were there later are held.
    pub connections_dropped_until: i64,
    /// The same of transactions.
    pub transactions_dropped_until: i64,
}

/// How much a [`FactStore`] holds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most connections; the oldest closed ones are dropped first, then the oldest open ones.
    pub connections: usize,
    /// Most transactions; the oldest are dropped.
    pub transactions: usize,
    /// Most verdicts on segments; the oldest are dropped.
    pub segments: usize,
}

impl Default for Limits {
    /// About a gigabyte when full.
    fn default() -> Self {
        Self {
            connections: 500_000,
            transactions: 2_000_000,
            segments: 200_000,
        }
    }
}

/// A watcher's place in the changes.
#[derive(Debug)]
pub struct Cursor {
    /// Revision of the last change seen.
    seen: AtomicU64,
    missed: AtomicU64,
}

impl Cursor {
    /// Changes that were dropped from the store before the watcher saw them, since the last call.
    pub fn take_missed(&self) -> u64 {
        self.missed.swap(0, Ordering::AcqRel)
    }
}

/// Changes of findings that are kept for watchers.
const CHANGES: usize = 1000;

/// The store in memory.
#[derive(Debug)]
pub struct FactStore {
    /// Drawn for each.
    id: u64,
    limits: Limits,
    inner: RwLock<Inner>,
    revision: watch::Sender<u64>,
    /// Number of the last change of a finding.
    newest_change: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    connections: BTreeMap<u64, Entry>,
    /// Key of a connection by its id.
    keys: HashMap<u64, u64>,
    /// Key of the connection that changed last at a revision; one entry for each connection.
    changed: BTreeMap<u64, u64>,
    /// Keys of closed connections, the first closed first.
    closed: VecDeque<u64>,
    transactions: BTreeMap<u64, Arc<Transaction>>,
    /// Keys of a connection's transactions by index.
    of_connection: HashMap<u64, BTreeMap<u32, u64>>,
    /// The last ones; the first has the key `dropped_segments`.
    segments: VecDeque<Arc<Segment>>,
    findings: Arc<Vec<Finding>>,
    findings_replaced: u64,
    /// By the finding's id, each with its opening's time.
    open_findings: BTreeMap<u64, FindingChange>,
    /// The last ones; the newest has the number `finding_changes_told`.
    finding_changes: VecDeque<FindingChange>,
    finding_changes_told: u64,
    summary: Summary,
    timeline: Arc<Vec<TimeSlice>>,
    next_connection: u64,
    next_transaction: u64,
    revision: u64,
    dropped_connections: u64,
    /// Ids of those that were open: they come again, and may be dropped again.
    dropped_open: HashSet<u64>,
    dropped_transactions: u64,
    dropped_segments: u64,
    connections_dropped_until: i64,
    transactions_dropped_until: i64,
    cursors: Vec<Weak<Cursor>>,
}

#[derive(Debug)]
struct Entry {
    connection: Arc<Connection>,
    revision: u64,
    closed: bool,
}

impl FactStore {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        Self {
            id: RandomState::new().build_hasher().finish(),
            limits,
            inner: RwLock::default(),
            revision: watch::Sender::new(0),
            newest_change: watch::Sender::new(0),
        }
    }

    /// Enter connections, or replace those that are known by their id.
    pub fn update_connections(&self, connections: impl IntoIterator<Item = Connection>) {
        let mut inner = self.write();
        for connection in connections {
            inner.update_connection(connection);
            if inner.connections.len() > self.limits.connections {
                inner.drop_connection();
            }
        }
        let revision = inner.revision;
        drop(inner);
        self.revision.send_replace(revision);
    }

    /// Of these connections, by id, the ones that are held, or that there is room for.
    pub fn held_or_room(&self, ids: impl Iterator<Item = u64>) -> Vec<u64> {
        let inner = self.read();
        let mut room = self.limits.connections.saturating_sub(inner.connections.len());
        let takes = |id: &u64| {
            let is_held = inner.keys.contains_key(id);
            let is_new = !is_held && room > 0;
            room -= usize::from(is_new);
            is_held || is_new
        };
        ids.filter(takes).collect()
    }

    /// Enter transactions, or replace those that are known by connection and index.
    pub fn update_transactions(&self, transactions: impl IntoIterator<Item = Transaction>) {
        let mut inner = self.write();
        for transaction in transactions {
            inner.update_transaction(transaction);
            if inner.transactions.len() > self.limits.transactions {
                inner.drop_transaction();
            }
        }
    }

    /// Enter verdicts on segments; they are final.
    pub fn add_segments(&self, segments: impl IntoIterator<Item = Segment>) {
        let mut inner = self.write();
        for segment in segments {
            inner.segments.push_back(Arc::new(segment));
            if inner.segments.len() > self.limits.segments {
                inner.segments.pop_front();
                inner.dropped_segments += 1;
            }
        }
    }

    /// Replace all findings.
    pub fn set_findings(&self, findings: Vec<Finding>) {
        let mut inner = self.write();
        if *inner.findings != findings {
            inner.findings = Arc::new(findings);
            inner.findings_replaced += 1;
        }
    }

    /// Findings opened, changed or closed.
    pub fn change_findings(&self, changes: Vec<FindingChange>) {
        if changes.is_empty() {
            return;
        }
        let mut inner = self.write();
        for change in changes {
            inner.change_finding(change);
        }
        let newest = inner.finding_changes_told;
        drop(inner);
        self.newest_change.send_replace(newest);
    }

    /// Replace the summary.
    pub fn set_summary(&self, summary: Summary) {
        self.write().summary = summary;
    }

    /// Replace the time line.
    pub fn set_timeline(&self, slices: Vec<TimeSlice>) {
        self.write().timeline = Arc::new(slices);
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn change_finding(&mut self, change: FindingChange) {
        match change.kind() {
            Kind::Closed => {
                self.open_findings.remove(&change.id);
            }
            Kind::Unspecified | Kind::Opened | Kind::Updated => {
                let opened = self.open_findings.get(&change.id).map_or(change.time, |open| open.time);
                let open = FindingChange {
                    kind: Kind::Opened.into(),
                    time: opened,
                    ..change.clone()
                };
                self.open_findings.insert(change.id, open);
            }
        }
        if self.finding_changes.len() == CHANGES {
            self.finding_changes.pop_front();
        }
        self.finding_changes.push_back(change);
        self.finding_changes_told += 1;
    }

    fn update_connection(&mut self, connection: Connection) {
        let before = self.keys.get(&connection.id).and_then(|key| self.connections.get(key));
        if before.is_some_and(|before| *before.connection == connection) {
            return; // no news for who watches
        }
        self.revision += 1;
        let revision = self.revision;
        let closed = connection
            .close
            .as_ref()
            .is_some_and(|close| !matches!(close.kind.as_str(), "" | "OPEN"));
        let key = *self.keys.entry(connection.id).or_insert_with(|| {
            self.next_connection += 1;
            self.next_connection
        });
        // Once closed it stays in the queue of the closed, whatever a later update says.
        let was_closed = self.connections.get(&key).is_some_and(|before| before.closed);
        let entry = Entry {
            connection: Arc::new(connection),
            revision,
            closed: closed || was_closed,
        };
        let before = self.connections.insert(key, entry);
        if let Some(before) = &before {
            self.changed.remove(&before.revision);
        }
        self.changed.insert(revision, key);
        if closed && !was_closed {
            self.closed.push_back(key);
        }
    }

    /// Drop the oldest closed connection, or the oldest when none is closed.
    fn drop_connection(&mut self) {
        let closed = self.closed.pop_front();
        let Some(key) = closed.or_else(|| self.connections.keys().next().copied()) else {
            return;
        };
        let Some(entry) = self.connections.remove(&key) else {
            return;
        };
        self.changed.remove(&entry.revision);
        self.keys.remove(&entry.connection.id);
        let is_new = match entry.closed {
            true => !self.dropped_open.remove(&entry.connection.id),
            false => self.dropped_open.insert(entry.connection.id),
        };
        self.dropped_connections += u64::from(is_new);
        self.connections_dropped_until = self.connections_dropped_until.max(entry.connection.span_nanos().1);
        let transactions = self.of_connection.remove(&entry.connection.id).unwrap_or_default();
        for key in transactions.values() {
            if let Some(transaction) = self.transactions.remove(key) {
                self.gone(&transaction);
            }
        }
        self.cursors.retain(|cursor| match cursor.upgrade() {
            Some(cursor) => {
                if entry.revision > cursor.seen.load(Ordering::Acquire) {
                    cursor.missed.fetch_add(1, Ordering::AcqRel);
                }
                true
            }
            None => false,
        });
    }

    fn update_transaction(&mut self, transaction: Transaction) {
        let keys = self.of_connection.entry(transaction.connection_id).or_default();
        let key = *keys.entry(transaction.index).or_insert_with(|| {
            self.next_transaction += 1;
            self.next_transaction
        });
        self.transactions.insert(key, Arc::new(transaction));
    }

    /// A transaction was dropped.
    fn gone(&mut self, transaction: &Transaction) {
        self.dropped_transactions += 1;
        let (begin, end) = transaction.span_nanos();
        self.transactions_dropped_until = self.transactions_dropped_until.max(end.unwrap_or(begin));
    }

    fn drop_transaction(&mut self) {
        let Some((_, transaction)) = self.transactions.pop_first() else {
            return;
        };
        self.gone(&transaction);
        if let Some(keys) = self.of_connection.get_mut(&transaction.connection_id) {
            keys.remove(&transaction.index);
            if keys.is_empty() {
                self.of_connection.remove(&transaction.connection_id);
            }
        }
    }
}

impl Facts for FactStore {
    fn id(&self) -> u64 {
        self.id
    }

    fn connections(&self, from: u64, most: usize) -> Vec<(u64, Arc<Connection>)> {
        let inner = self.read();
        inner
            .connections
            .range(from..)
            .take(most)
            .map(|(key, entry)| (*key, Arc::clone(&entry.connection)))
            .collect()
    }

    fn transactions(&self, from: u64, most: usize) -> Vec<(u64, Arc<Transaction>)> {
        let inner = self.read();
        inner
            .transactions
            .range(from..)
            .take(most)
            .map(|(key, transaction)| (*key, Arc::clone(transaction)))
            .collect()
    }

    fn connection(&self, id: u64) -> Option<(Arc<Connection>, Vec<Arc<Transaction>>)> {
        let inner = self.read();
        let entry = inner.connections.get(inner.keys.get(&id)?)?;
        let keys = inner.of_connection.get(&id).into_iter().flat_map(BTreeMap::values);
        let transactions = keys.filter_map(|key| inner.transactions.get(key).cloned()).collect();
        Some((Arc::clone(&entry.connection), transactions))
    }

    fn holds(&self, id: u64) -> bool {
        self.read().keys.contains_key(&id)
    }

    fn segments(&self, from: u64, most: usize) -> Vec<(u64, Arc<Segment>)> {
        let inner = self.read();
        let first = inner.dropped_segments;
        let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        let keys = first.max(from)..;
        keys.zip(inner.segments.iter().skip(skip).take(most).cloned()).collect()
    }

    fn findings(&self) -> (u64, Arc<Vec<Finding>>) {
        let inner = self.read();
        (inner.findings_replaced, Arc::clone(&inner.findings))
    }

    fn open_findings(&self) -> (u64, Vec<FindingChange>) {
        let inner = self.read();
        (
            inner.finding_changes_told,
            inner.open_findings.values().cloned().collect(),
        )
    }

    fn finding_changes(&self, after: u64) -> (u64, Vec<FindingChange>) {
        let inner = self.read();
        let first_kept = inner.finding_changes_told - inner.finding_changes.len() as u64;
        let skip = after.saturating_sub(first_kept);
        let changes = inner
            .finding_changes
            .iter()
            .skip(usize::try_from(skip).unwrap_or(usize::MAX));
        (first_kept.saturating_sub(after), changes.cloned().collect())
    }

    fn follow_findings(&self) -> watch::Receiver<u64> {
        self.newest_change.subscribe()
    }

    fn summary(&self) -> Summary {
        self.read().summary.clone()
    }

    fn timeline(&self) -> Arc<Vec<TimeSlice>> {
        Arc::clone(&self.read().timeline)
    }

    fn counts(&self) -> Counts {
        let inner = self.read();
        Counts {
            connections: inner.connections.len() as u64,
            transactions: inner.transactions.len() as u64,
            dropped_connections: inner.dropped_connections,
            dropped_transactions: inner.dropped_transactions,
            segments: inner.segments.len() as u64,
            dropped_segments: inner.dropped_segments,
            connections_dropped_until: inner.connections_dropped_until,
            transactions_dropped_until: inner.transactions_dropped_until,
        }
    }

    fn follow(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    fn cursor(&self) -> Arc<Cursor> {
        let mut inner = self.write();
        let cursor = Arc::new(Cursor {
            seen: AtomicU64::new(inner.revision),
            missed: AtomicU64::new(0),
        });
        inner.cursors.retain(|cursor| cursor.strong_count() > 0);
        inner.cursors.push(Arc::downgrade(&cursor));
        cursor
    }

    fn changes(&self, cursor: &Cursor, most: usize) -> Vec<Arc<Connection>> {
        let inner = self.read();
        let seen = cursor.seen.load(Ordering::Acquire);
        let mut connections = Vec::new();
        for (revision, key) in inner.changed.range(seen + 1..).take(most) {
            cursor.seen.store(*revision, Ordering::Release);
            connections.extend(inner.connections.get(key).map(|entry| Arc::clone(&entry.connection)));
        }
        connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_messages::v1::Close;

    fn connection(id: u64, close: &str) -> Connection {
        Connection {
            id,
            close: Some(Close {
                kind: close.to_owned(),
                ..Close::default()
            }),
            ..Connection::default()
        }
    }

    #[test]
    fn what_is_told_again_and_is_the_same_is_no_change() {
        let facts = FactStore::new(Limits::default());
        facts.update_connections([connection(1, "OPEN"), connection(2, "OPEN")]);
        let cursor = facts.cursor();
        facts.update_connections([connection(1, "OPEN"), connection(2, "CLIENT_FIN")]);
        let changed = facts.changes(&cursor, 10);
        assert_eq!(changed.iter().map(|connection| connection.id).collect::<Vec<_>>(), [2]);
        facts.update_connections([connection(2, "CLIENT_FIN")]);
        assert!(facts.changes(&cursor, 10).is_empty());
    }

    #[test]
    fn an_open_connection_that_is_dropped_again_and_again_counts_once() {
        let facts = FactStore::new(Limits {
            connections: 2,
            ..Limits::default()
        });
        let open = || (1..=5).map(|id| connection(id, "OPEN"));
        for _ in 0..10 {
            facts.update_connections(open());
        }
        // Each of the five was dropped at some time.
        assert_eq!(facts.counts().dropped_connections, 5);
        facts.update_connections((1..=5).map(|id| connection(id, "CLIENT_FIN")));
        assert_eq!(facts.counts().dropped_connections, 5);
        // What was not dropped before counts, and nothing is remembered of connections that are over.
        facts.update_connections((6..=9).map(|id| connection(id, "CLIENT_FIN")));
        let counts = facts.counts();
        assert_eq!((counts.connections, counts.dropped_connections), (2, 7));
        assert!(facts.read().dropped_open.is_empty());
    }
}
