//! Patterns over time: what an expert sees who lays thousands of connections beside each other.
//!
//! Sans-IO and deterministic: a [`Sink`] of the analysis's facts that passes them on and keeps bins and sums of them;
//! [`Watched::complete`] adds the findings. `docs/src/findings.md` lists the kinds, `docs/src/patterns.md` the rules
//! and their thresholds.
//!
//! Memory is bounded: [`bins::MOST`] bins a series, and what each detector states.
#![forbid(unsafe_code)]

pub mod bins;
mod connection_per_transaction;
mod detector;
mod timeline;

use weir_analysis::{Acknowledged, Connection, DataBlock, Ends, Opened, Sink, Transaction, Verdict};
use weir_messages::v1;

use detector::{Detector, Detectors};
pub use timeline::{Bin, Timeline};

/// A sink that is watched: all facts go on to `inner`.
#[derive(Debug, Default)]
pub struct Watched<S> {
    /// Who wants the facts.
    pub inner: S,
    timeline: Timeline,
    detectors: Detectors,
}

impl<S: Sink> Watched<S> {
    /// Watch what `inner` gets.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            timeline: Timeline::default(),
            detectors: Detectors::default(),
        }
    }

    /// Give `inner` the findings about all that has been seen so far.
    pub fn complete(&mut self) {
        let mut found = Vec::new();
        self.detectors.findings(&self.timeline, &mut found);
        for finding in found {
            self.inner.finding(finding);
        }
    }

    /// What happened when.
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }
}

impl<S: Sink> Sink for Watched<S> {
    fn connection(&mut self, connection: &Connection<'_>) {
        self.timeline.connection(connection);
        self.detectors.connection(connection);
        self.inner.connection(connection);
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.timeline.transaction(transaction);
        self.detectors.transaction(transaction);
        self.inner.transaction(transaction);
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.inner.finding(finding);
    }

    fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        self.timeline.segment(verdict, ends);
        self.detectors.segment(verdict, ends);
        self.inner.segment(verdict, ends);
    }

    fn opened(&mut self, opened: &Opened) {
        self.timeline.opened(opened);
        self.detectors.opened(opened);
        self.inner.opened(opened);
    }

    fn block(&mut self, block: &DataBlock) {
        self.timeline.block(block);
        self.detectors.block(block);
        self.inner.block(block);
    }

    fn acknowledged(&mut self, ack: &Acknowledged) {
        self.timeline.acknowledged(ack);
        self.detectors.acknowledged(ack);
        self.inner.acknowledged(ack);
    }
}
