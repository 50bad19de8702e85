//! All tables at once, filled by an analysis.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use weir_analysis::{Connection, DataBlock, Ends, Lanes, Sink, Verdict};
use weir_messages::v1;
use weir_record::{Kind, Record};

use super::{Builder, Event, Finding, Interval, Packet, Port, Row, Segment, Table, Transaction};

/// Rows of a batch, unless it is asked for before.
pub const ROWS: usize = 8192;

/// All tables of one tap on their way into batches.
///
/// A [`Sink`] for the facts of an analysis; [`Tables::records`] takes in the records that the analysis is given, for
/// the tables that are about them. Full batches wait in [`Tables::ready`]; memory is what waits there and at most
/// [`ROWS`] rows of each table, about 30 MB if all of them are full.
pub struct Tables {
    connections: Builder<v1::Connection>,
    transactions: Builder<Transaction>,
    blocks: Builder<DataBlock>,
    segments: Builder<Segment>,
    events: Builder<Event>,
    intervals: Builder<Interval>,
    packets: Builder<Packet>,
    findings: Builder<Finding>,
    ports: Builder<Port>,
    lanes: Lanes,
    ready: Vec<(Table, RecordBatch)>,
    /// Findings wait for the end of the input.
    found: Vec<v1::Finding>,
    failed: Option<ArrowError>,
}

impl Tables {
    /// No rows yet; `tap` names where the packets are seen.
    pub fn new(tap: &str) -> Self {
        Self {
            connections: Builder::new(tap),
            transactions: Builder::new(tap),
            blocks: Builder::new(tap),
            segments: Builder::new(tap),
            events: Builder::new(tap),
            intervals: Builder::new(tap),
            packets: Builder::new(tap),
            findings: Builder::new(tap),
            ports: Builder::new(tap),
            lanes: Lanes::default(),
            ready: Vec::new(),
            found: Vec::new(),
            failed: None,
        }
    }

    /// Take in the records that the analysis is given, in the same order.
    pub fn records(&mut self, records: &[Record]) {
        let Self {
            events,
            intervals,
            packets,
            ports,
            lanes,
            ready,
            failed,
            ..
        } = self;
        lanes.push(records, |first, more| match first.kind() {
            Some(Kind::Event) => add(events, &Event::new(first, more), ready, failed),
            Some(Kind::Interval) => add(intervals, &Interval::new(first), ready, failed),
            Some(Kind::Packet) => add(packets, &Packet::new(first, more), ready, failed),
            Some(Kind::Port) => add(ports, &Port::new(first, more), ready, failed),
            _ => {}
        });
    }

    /// A change of a finding, told by a daemon. It must not give the sink the findings themselves, too: these wait for
    /// [`Tables::complete`].
    pub fn change(&mut self, change: v1::FindingChange) {
        if let Some(row) = Finding::change(change) {
            add(&mut self.findings, &row, &mut self.ready, &mut self.failed);
        }
    }

    /// The input is over, and `summary` is about it: the findings are the last ones.
    pub fn complete(&mut self, summary: &v1::Summary) {
        let end = summary.end.map_or(0, |end| end.unix_nanos());
        for (number, finding) in std::mem::take(&mut self.found).into_iter().enumerate() {
            let row = Finding::last(number as u64 + 1, finding, end);
            add(&mut self.findings, &row, &mut self.ready, &mut self.failed);
        }
    }

    /// The batches that are full.
    pub fn ready(&mut self) -> Result<Vec<(Table, RecordBatch)>, ArrowError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut self.ready)),
        }
    }

    /// All rows since the last time, full batches or not.
    pub fn flush(&mut self) -> Result<Vec<(Table, RecordBatch)>, ArrowError> {
        fn end<R: Row>(builder: &mut Builder<R>, ready: &mut Vec<(Table, RecordBatch)>) -> Result<(), ArrowError> {
            if !builder.is_empty() {
                ready.push((R::TABLE, builder.finish()?));
            }
            Ok(())
        }
        let mut ready = self.ready()?;
        end(&mut self.connections, &mut ready)?;
        end(&mut self.transactions, &mut ready)?;
        end(&mut self.blocks, &mut ready)?;
        end(&mut self.segments, &mut ready)?;
        end(&mut self.events, &mut ready)?;
        end(&mut self.intervals, &mut ready)?;
        end(&mut self.packets, &mut ready)?;
        end(&mut self.findings, &mut ready)?;
        end(&mut self.ports, &mut ready)?;
        Ok(ready)
    }
}

/// Add a row; a full batch is ready.
fn add<R: Row>(
    builder: &mut Builder<R>,
    row: &R,
    ready: &mut Vec<(Table, RecordBatch)>,
    failed: &mut Option<ArrowError>,
) {
    let pushed = builder.push(row).and_then(|()| {
        if builder.len() >= ROWS {
            ready.push((R::TABLE, builder.finish()?));
        }
        Ok(())
    });
    if let Err(error) = pushed {
        failed.get_or_insert(error);
    }
}

impl Sink for Tables {
    fn connection(&mut self, connection: &Connection<'_>) {
        add(
            &mut self.connections,
            &connection.message(),
            &mut self.ready,
            &mut self.failed,
        );
    }

    fn transaction(&mut self, transaction: &weir_analysis::Transaction<'_>) {
        let row = Transaction {
            ends: transaction.ends(),
            message: transaction.message(),
        };
        add(&mut self.transactions, &row, &mut self.ready, &mut self.failed);
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.found.push(finding);
    }

    fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        let row = Segment {
            ends: *ends,
            verdict: *verdict,
        };
        add(&mut self.segments, &row, &mut self.ready, &mut self.failed);
    }

    fn block(&mut self, block: &DataBlock) {
        add(&mut self.blocks, block, &mut self.ready, &mut self.failed);
    }
}
