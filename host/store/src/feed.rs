//! Batches on their way into commits.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;

use crate::manifest::Source;
use crate::store::Committed;
use crate::tables::Table;
use crate::{Store, StoreError};

/// Bytes of batches from which on a commit is due. While it is written there are about four times as many.
pub const DUE: usize = 32 << 20;

/// Batches of one tap that wait for the next commit.
pub struct Feed<'a> {
    store: &'a mut Store,
    tap: String,
    source: Option<Known>,
    waiting: Vec<(Table, RecordBatch)>,
    bytes: usize,
    written: u64,
}

/// A source whose rows have numbers.
struct Known {
    id: String,
    /// As it is after the next commit.
    source: Source,
    /// Rows that came, and rows that are stored, by table.
    seen: BTreeMap<Table, u64>,
    stored: BTreeMap<Table, u64>,
}

impl<'a> Feed<'a> {
    /// Of a source that never says the same again.
    pub fn live(store: &'a mut Store, tap: &str) -> Self {
        Self {
            store,
            tap: tap.to_owned(),
            source: None,
            waiting: Vec::new(),
            bytes: 0,
            written: 0,
        }
    }

    /// Of a source that gives the same rows in the same order each time, from its begin: rows that are stored are passed
    /// over. `id` says which it is and how it is analysed, `name` is for people, `version` is that of the analysis.
    pub fn again(store: &'a mut Store, tap: &str, id: &str, name: &str, version: &str) -> Result<Self, StoreError> {
        let id = format!("{tap}/{id}");
        let source = match store.manifest().sources.get(&id) {
            // No row of it is there any more: it begins anew.
            Some(known) if known.rows.values().any(|rows| *rows > 0) && !store.manifest().has_tap(tap) => Source {
                name: name.to_owned(),
                version: version.to_owned(),
                epoch: known.epoch,
                ..Source::default()
            },
            Some(known) if known.version != version && !known.done => {
                return Err(StoreError::Version {
                    source: name.to_owned(),
                    began: known.version.clone(),
                });
            }
            Some(known) => known.clone(),
            None => Source {
                name: name.to_owned(),
                version: version.to_owned(),
                epoch: store
                    .manifest()
                    .new_epoch(tap)
                    .ok_or_else(|| StoreError::Captures(tap.to_owned()))?,
                ..Source::default()
            },
        };
        let stored = source
            .rows
            .iter()
            .filter_map(|(name, rows)| Some((Table::from_name(name)?, *rows)))
            .collect();
        Ok(Self {
            source: Some(Known {
                id,
                source,
                seen: BTreeMap::new(),
                stored,
            }),
            ..Self::live(store, tap)
        })
    }

    /// Rows of other sources of its tap that have this name, if there are any and nothing of this one is stored.
    pub fn others_named(&self, name: &str) -> Option<u64> {
        let others = self.store.manifest().sources_of(&self.tap);
        let rows = others
            .filter(|other| other.name == name)
            .map(|other| other.rows.values().sum::<u64>())
            .sum();
        (rows > 0 && self.stored() == 0).then_some(rows)
    }

    /// All of the source is stored: there is nothing to do.
    pub fn is_done(&self) -> bool {
        self.source.as_ref().is_some_and(|known| known.source.done)
    }

    /// The boot epoch that is to be in the ids of its connections.
    pub fn epoch(&self) -> u16 {
        self.source.as_ref().map_or(0, |known| known.source.epoch)
    }

    /// Rows of the source that are stored.
    pub fn stored(&self) -> u64 {
        self.source.as_ref().map_or(0, |known| known.stored.values().sum())
    }

    /// Of one table.
    pub fn stored_of(&self, table: Table) -> u64 {
        let known = self.source.as_ref().and_then(|known| known.stored.get(&table));
        known.copied().unwrap_or_default()
    }

    /// Rows that this feed has stored.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Take in batches; true when a commit is due.
    pub fn add(&mut self, batches: impl IntoIterator<Item = (Table, RecordBatch)>) -> bool {
        for (table, mut batch) in batches {
            if let Some(known) = &mut self.source {
                let rows = batch.num_rows();
                let seen = known.seen.entry(table).or_default();
                let stored = known.stored.get(&table).copied().unwrap_or_default();
                let skip = stored.saturating_sub(*seen).min(rows as u64) as usize;
                *seen += rows as u64;
                batch = batch.slice(skip, rows - skip);
            }
            if batch.num_rows() > 0 {
                self.bytes += batch.get_array_memory_size();
                self.waiting.push((table, batch));
            }
        }
        self.bytes >= DUE
    }

    /// Rows that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(|(_, batch)| batch.num_rows()).sum()
    }

    /// Store what waits: when this returns, it is on disk for good. After an error it still waits.
    pub fn commit(&mut self) -> Result<Committed, StoreError> {
        if self.waiting.is_empty() {
            return Ok(Committed::default());
        }
        self.store_all(false)
    }

    /// The source is over: store what waits, and that it is all.
    pub fn finish(&mut self) -> Result<Committed, StoreError> {
        self.store_all(true)
    }

    /// What waits is given up for want of room, and counted.
    pub fn give_up(&mut self) {
        self.store.give_up(&std::mem::take(&mut self.waiting));
        self.bytes = 0;
    }

    /// The store, for what is to be done between two commits.
    pub const fn store(&mut self) -> &mut Store {
        self.store
    }

    fn store_all(&mut self, done: bool) -> Result<Committed, StoreError> {
        let source = self.source.as_ref().map(|known| {
            let mut source = known.source.clone();
            for (table, seen) in &known.seen {
                let rows = source.rows.entry(table.name().to_owned()).or_default();
                *rows = (*rows).max(*seen);
            }
            source.done = done;
            (known.id.clone(), source)
        });
        let committed = self.store.commit(&self.tap, &self.waiting, source.clone())?;
        if let (Some(known), Some((_, source))) = (&mut self.source, source) {
            known.source = source;
        }
        self.waiting.clear();
        self.bytes = 0;
        self.written += committed.rows;
        Ok(committed)
    }
}
