//! Facts on their way from the analysis to who asks for them.

use std::sync::{Arc, Mutex, PoisonError};

use weir_analysis::{DataBlock, Ends, Opened, Sink, Verdict};
use weir_messages::v1::{Connection, Finding, Segment, Transaction};
use weir_page::Recent;
use weir_record::{FlowId, Record};

use super::open::OpenConnections;
use crate::keep::Rows;

/// Facts on their way into the store.
#[derive(Default)]
pub struct Batch {
    /// And on their way into the files.
    pub rows: Option<Rows>,
    pub connections: Vec<Connection>,
    pub open: OpenConnections,
    pub transactions: Vec<Transaction>,
    pub segments: Vec<Segment>,
    pub findings: Vec<Finding>,
    /// For the page, if there is one: what messages do not carry.
    recent: Option<Arc<Mutex<Recent>>>,
    verdicts: Vec<Verdict>,
    blocks: Vec<DataBlock>,
}

impl Batch {
    pub fn new(rows: Option<Rows>, recent: Option<Arc<Mutex<Recent>>>) -> Self {
        Self {
            rows,
            recent,
            ..Self::default()
        }
    }

    /// Hand the page what came since the last time, with the records that it came from.
    pub fn tell_page(&mut self, records: &[Record]) {
        let Some(recent) = &self.recent else { return };
        let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.records(records);
        self.verdicts.drain(..).for_each(|verdict| recent.verdict(&verdict));
        self.blocks.drain(..).for_each(|block| recent.block(&block));
    }

    /// Tell the page what time it is (TAI ns), and of requests that wait.
    pub fn tell_now(&self, now: u64, waiting: Vec<(FlowId, u64)>) {
        let Some(recent) = &self.recent else { return };
        recent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .set_now(now, waiting);
    }
}

impl Sink for Batch {
    fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
        self.connections.push(connection.message());
        if let Some(rows) = &mut self.rows {
            rows.tables.connection(connection);
        }
    }

    fn transaction(&mut self, transaction: &weir_analysis::Transaction<'_>) {
        self.transactions.push(transaction.message());
        if let Some(rows) = &mut self.rows {
            rows.tables.transaction(transaction);
        }
    }

    fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        self.segments.push(verdict.message());
        if self.recent.is_some() {
            self.verdicts.push(*verdict);
        }
        if let Some(rows) = &mut self.rows {
            rows.tables.segment(verdict, ends);
        }
    }

    fn opened(&mut self, opened: &Opened) {
        self.open.opened(opened.id);
    }

    fn block(&mut self, block: &DataBlock) {
        if self.recent.is_some() {
            self.blocks.push(*block);
        }
        if let Some(rows) = &mut self.rows {
            rows.tables.block(block);
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}
