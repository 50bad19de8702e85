//! Counters of the store that a daemon writes to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::histogram::Histogram;
use crate::page::{Family, Page};

/// Filled by the thread that writes, read by scrapes.
#[derive(Debug)]
pub struct StoreCounters {
    /// All tables: a counter that begins above 0 has no increase to who watches.
    tables: Vec<&'static str>,
    counts: Mutex<Counts>,
}

/// Rows by the name of their table.
pub type Rows = BTreeMap<String, u64>;

#[derive(Clone, Debug, Default)]
struct Counts {
    /// Rows of commits that count.
    stored: Rows,
    /// Rows that no commit took, for want of room and for other reasons.
    full: Rows,
    failed: Rows,
    /// Rows that retention removed, and those that went to make room on a full disk.
    planned: Rows,
    made_room: Rows,
    /// How long commits took.
    commits: Histogram,
    /// Files that compaction merged, and rows that it wrote again.
    merged: u64,
    rewritten: u64,
    merges_failed: u64,
    /// Files and bytes now.
    files: u64,
    bytes: u64,
    is_full: bool,
    fails: bool,
}

impl StoreCounters {
    /// Of a store with these tables.
    pub fn of(tables: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            tables: tables.into_iter().collect(),
            counts: Mutex::default(),
        }
    }

    /// A commit counts: its rows are on disk.
    pub fn committed(&self, rows: &Rows, took: Duration) {
        let mut counts = self.lock();
        add(&mut counts.stored, rows);
        counts.commits.add(took.as_secs_f64());
        (counts.is_full, counts.fails) = (false, false);
    }

    /// Rows were given up; `is_full`: there was no room.
    pub fn given_up(&self, rows: &Rows, is_full: bool) {
        let mut counts = self.lock();
        add(if is_full { &mut counts.full } else { &mut counts.failed }, rows);
        (counts.is_full, counts.fails) = (is_full, true);
    }

    /// What is found is not stored now, for want of room or for another reason.
    pub fn fails(&self) -> bool {
        self.lock().fails
    }

    /// Compaction merged so many files with so many rows.
    pub fn compacted(&self, files: u64, rows: u64) {
        let mut counts = self.lock();
        counts.merged += files;
        counts.rewritten += rows;
    }

    /// A compaction failed, or left out a file that it could not read.
    pub fn compaction_failed(&self) {
        self.lock().merges_failed += 1;
    }

    /// What is there now: files and their bytes; and the rows that were removed since the daemon started, as planned and to
    /// make room on a full disk.
    pub fn renew(&self, files: u64, bytes: u64, planned: Rows, made_room: Rows) {
        let mut counts = self.lock();
        (counts.files, counts.bytes) = (files, bytes);
        (counts.planned, counts.made_room) = (planned, made_room);
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn encode(&self, page: &mut Page<'_>) -> fmt::Result {
        let counts = self.lock().clone();
        let by_table = |family: &mut Family<'_>, rows: &Rows| {
            rows.iter()
                .try_for_each(|(table, number)| family.sample(&[("table", table)], *number))
        };
        page.counts("weir_store_rows", "Rows stored since the daemon started", |family| {
            by_table(family, &counts.stored)
        })?;
        let by_reason = |family: &mut Family<'_>, reasons: [(&str, &Rows); 2]| {
            for (reason, rows) in reasons {
                for table in &self.tables {
                    let number = rows.get(*table).copied().unwrap_or(0);
                    family.sample(&[("reason", reason), ("table", table)], number)?;
                }
            }
            Ok(())
        };
        page.counts(
            "weir_store_lost_rows",
            "Rows that were given up, by reason: the disk was full, or the store could not be written",
            |family| by_reason(family, [("full", &counts.full), ("failed", &counts.failed)]),
        )?;
        page.counts(
            "weir_store_expired_rows",
            "Rows that were removed, by reason: retention (too old, too many bytes), or to make room on a full disk",
            |family| by_reason(family, [("retention", &counts.planned), ("full", &counts.made_room)]),
        )?;
        page.histogram(
            "weir_store_commit_duration",
            "From the rows in memory to all of them on disk for good",
            &counts.commits,
        )?;
        page.count(
            "weir_store_compacted_files",
            "Files that compaction merged into larger ones",
            counts.merged,
        )?;
        page.count(
            "weir_store_compacted_rows",
            "Rows that compaction wrote again",
            counts.rewritten,
        )?;
        page.count(
            "weir_store_compactions_failed",
            "Compactions that failed, and files that were left out as they could not be read",
            counts.merges_failed,
        )?;
        page.gauge("weir_store_files", "Files of the store", counts.files as f64)?;
        page.family(
            "weir_store",
            "Size of the store's files",
            Some(&Unit::Bytes),
            MetricType::Gauge,
            |family| family.gauge(&[], counts.bytes as f64),
        )?;
        page.gauge(
            "weir_store_full",
            "1 while the store's disk has no room for what is found",
            u8::from(counts.is_full),
        )?;
        page.gauge(
            "weir_store_failing",
            "1 while what is found is not stored, for whatever reason",
            u8::from(counts.fails),
        )
    }
}

fn add(sums: &mut Rows, more: &Rows) {
    for (table, rows) in more {
        *sums.entry(table.clone()).or_default() += rows;
    }
}
