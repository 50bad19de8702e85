//! Records of the log to facts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_analysis::{Analyzer, Config};
use weir_api::log::Read;
use weir_command::Failure;
use weir_messages::v1::FindingChange;
use weir_patterns::changes::Changes;
use weir_patterns::{WINDOW, Watched};
use weir_record::Record;
use weir_record::raw::BYTES;

use super::Shared;
use super::batch::Batch;
use crate::{say, text};

/// Records that the analysis takes from the log at a time.
const READ: usize = 8192;
/// How often findings, summary and open connections are renewed, and how many times as long as it took the next waits.
const RENEW: Duration = Duration::from_millis(500);
const RENEW_SHARE: u32 = 20;
/// How long it waits for the next records.
const IDLE: Duration = Duration::from_millis(10);

/// Records of the log from `position` on to facts in the store, until all that was `measured` is analysed.
pub fn analyze(shared: &Shared, position: u64, batch: Batch, measured: &AtomicBool) -> Result<(), Failure> {
    let mut analysis = Analysis::new(shared, position, batch);
    let mut renewed = Instant::now();
    let mut pause = RENEW;
    loop {
        // Asked before reading: what was measured before is then in the log.
        let last = measured.load(Ordering::Acquire);
        let at_end = analysis.read()?;
        analysis.take_in();
        if at_end && last || renewed.elapsed() >= pause {
            let begin = Instant::now();
            // Where nothing passes there are no records, and time goes on; not behind the end of a file.
            if at_end && !last {
                analysis.time_goes_on();
            }
            analysis.renew();
            renewed = Instant::now();
            pause = RENEW.max((renewed - begin) * RENEW_SHARE);
        }
        analysis.store(at_end && last)?;
        if at_end {
            if last {
                shared.capture.finished.store(true, Ordering::Release);
                return Ok(());
            }
            std::thread::sleep(IDLE);
        }
    }
}

/// The analysis, what it has read, and what came of it.
struct Analysis<'a> {
    shared: &'a Shared,
    analyzer: Analyzer,
    batch: Watched<Batch>,
    changes: Changes,
    /// What is read next.
    position: u64,
    bytes: Vec<u8>,
    records: Vec<Record>,
    /// Time of the newest record, TAI ns, and when it was read; 0: none was.
    now: u64,
    told: Instant,
}

impl<'a> Analysis<'a> {
    fn new(shared: &'a Shared, position: u64, batch: Batch) -> Self {
        Self {
            shared,
            analyzer: Analyzer::new(Config {
                window: Some(WINDOW),
                inline: shared.is_inline,
                ..Config::default()
            }),
            batch: Watched::live(batch, WINDOW),
            changes: Changes::behind(shared.appliance.numbers_before()),
            position,
            bytes: Vec::new(),
            records: Vec::with_capacity(READ),
            now: 0,
            told: Instant::now(),
        }
    }

    /// The next records of the log; whether there are none.
    fn read(&mut self) -> Result<bool, Failure> {
        self.bytes.clear();
        self.records.clear();
        let read = self.shared.log.read(self.position, READ, &mut self.bytes);
        let at_end = match read.map_err(Failure::new)? {
            Read::Records(count) => {
                self.position += count;
                false
            }
            // The analysis was too slow for the log; the records' numbers show it the gap.
            Read::Reclaimed { to } => {
                self.shared.analysis.reclaimed(to + 1 - self.position);
                self.position = to + 1;
                false
            }
            Read::End => true,
        };
        let records = self.bytes.chunks_exact(BYTES);
        self.records
            .extend(records.filter_map(|record| Record::from_slice(record).ok()));
        Ok(at_end)
    }

    /// What was read, to whom asks for connections, transactions and segments.
    fn take_in(&mut self) {
        let Shared { analysis, facts, .. } = self.shared;
        if let Some(newest) = self.records.last() {
            self.now = newest.time();
            self.told = Instant::now();
            self.batch.time(self.now);
        }
        if let Some(rows) = &mut self.batch.inner.rows {
            rows.records(&self.records);
        }
        self.analyzer.push(&self.records, &mut self.batch);
        let batch = &mut self.batch.inner;
        analysis.add(&batch.connections, &batch.transactions, &batch.segments);
        facts.update_connections(batch.connections.drain(..));
        facts.update_transactions(batch.transactions.drain(..));
        facts.add_segments(batch.segments.drain(..));
        batch.tell_page(&self.records);
    }

    /// It is as much later as time has passed since the newest record.
    fn time_goes_on(&mut self) {
        if self.now > 0 {
            let now = self.now + self.told.elapsed().as_nanos() as u64;
            self.batch.time(now);
            self.analyzer.set_now(now);
        }
    }

    /// What changes while connections last: findings, the summary, open connections.
    fn renew(&mut self) {
        let Shared { analysis, facts, .. } = self.shared;
        let mut summary = self.analyzer.interim(&mut self.batch);
        self.batch.complete();
        self.batch.summarize(&mut summary);
        let batch = &mut self.batch.inner;
        let findings = std::mem::take(&mut batch.findings);
        let changed = self.changes.renew(self.analyzer.now(), &findings);
        changed.iter().for_each(alert);
        if let Some(rows) = &mut batch.rows {
            changed.iter().for_each(|change| rows.change(change));
        }
        facts.change_findings(changed);
        facts.set_findings(findings);
        let waiting: Vec<_> = self.analyzer.waiting().collect();
        let rate = summary.retransmission_rate.as_ref();
        analysis.renew(self.analyzer.health(), rate, waiting.len());
        // Of its own: minutes of slices are larger than all the rest.
        facts.set_timeline(std::mem::take(&mut summary.timeline));
        facts.set_summary(summary);
        batch.open.show(&self.analyzer, facts);
        batch.tell_now(self.analyzer.now(), waiting);
    }

    /// Rows go on their way to the files. `is_over`: the last ones.
    fn store(&mut self, is_over: bool) -> Result<(), Failure> {
        match &mut self.batch.inner.rows {
            Some(rows) if is_over => rows.finish(&mut self.analyzer),
            Some(rows) => rows.hand_on(),
            None => Ok(()),
        }
    }
}

/// A line in the daemon's log.
fn alert(change: &FindingChange) {
    say::line(format_args!("weir: {}", text::findings::change(change)));
}
