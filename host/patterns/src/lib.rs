//! Patterns over time: what an expert sees who lays thousands of connections beside each other.
//!
//! Sans-IO and deterministic: a [`Sink`] of the analysis's facts that passes them on and keeps bins and sums of them;
//! [`Watched::complete`] adds the findings. `docs/src/findings.md` lists the kinds, `docs/src/patterns.md` the rules
//! and their thresholds.
//!
//! Memory is bounded: [`bins::MOST`] bins a series, and what each detector states; twice that when a stream without end
//! is watched ([`Watched::live`]), where only the last [`WINDOW`] counts and [`changes`] tells what opened and closed.
#![forbid(unsafe_code)]

mod accept_queue;
mod backlog;
mod beyond;
pub mod bins;
pub mod calls;
mod capacity;
pub mod changes;
mod connection_per_transaction;
mod dead_connections;
mod delayed_ack;
mod detector;
mod dialogues;
mod durations;
mod failing_setups;
#[cfg(test)]
mod fixtures;
mod frontend_queueing;
mod hosts;
mod keep_alive_storm;
mod loss;
mod losses;
mod mirror_duplicates;
mod moments;
mod mtu_black_hole;
mod names;
mod needless;
mod newest;
mod one_sided;
mod pairs;
mod period;
mod periodic_loss;
pub mod phases;
mod port_collision;
mod port_scan;
mod ports;
mod random;
mod rank;
mod request_pauses;
mod response_bands;
mod responses;
mod retransmission_times;
mod route_change;
mod routes;
mod rtt_shift;
mod scale;
pub mod services;
mod sleep;
mod slow_ramp;
mod slow_setup;
mod slowing_responses;
pub mod steps;
mod stops;
mod summary;
mod syn_loss;
mod table;
mod tiers;
mod timeline;
pub mod times;
mod tiny_segments;
mod view;

use weir_analysis::{Acknowledged, Analyzer, Connection, DataBlock, Ends, Hops, Opened, Sink, Transaction, Verdict};
use weir_messages::v1;
use weir_record::FlowId;

use backlog::Backlog;
use detector::Detector;
pub use dialogues::{Dialogue, Dialogues, Pair};
pub use names::count;
pub use timeline::{Bin, Loss, Timeline, loss};
use view::{View, Views};

/// What a daemon looks at, ns: ten minutes, in bins of 10 ms.
pub const WINDOW: u64 = 600_000_000_000;

/// A sink that is watched: all facts go on to `inner`.
#[derive(Debug, Default)]
pub struct Watched<S> {
    /// Who wants the facts.
    pub inner: S,
    views: Views,
    /// What they have not seen yet.
    backlog: Backlog,
}

impl<S: Sink> Watched<S> {
    /// Watch what `inner` gets, from beginning to end.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            views: Views::default(),
            backlog: Backlog::default(),
        }
    }

    /// The same with a time line for the summary, in slices of `width` ns.
    pub fn resolved(inner: S, width: u64) -> Self {
        Self {
            inner,
            views: Views::all(View::resolved(width)),
            backlog: Backlog::default(),
        }
    }

    /// Watch what `inner` gets for as long as it comes, and look at the last `window` ns only.
    pub fn live(inner: S, window: u64) -> Self {
        Self {
            inner,
            views: Views::new(View::live(0, 0), window),
            backlog: Backlog::default(),
        }
    }

    /// It is `now` (TAI ns): to be told often where a window slides.
    pub fn time(&mut self, now: u64) {
        self.show();
        let open = self.timeline().open();
        self.views.time(now, || View::live(now, open));
    }

    /// Further captures of the path show so many SYNs and SYN-ACKs of connections lost between them and this one.
    pub fn lost_between(&mut self, lost: impl Iterator<Item = (FlowId, [u32; 2])> + Clone) {
        self.views.each(|view| view.lost_between(lost.clone()));
    }

    /// The records are over: `inner` is told what is left and what was found; the summary has what shows over time.
    pub fn finish(&mut self, analyzer: &mut Analyzer) -> v1::Summary {
        let mut summary = analyzer.finish(self);
        self.views.each(|view| view.timeline.set_clamped(summary.clamped_times));
        self.complete();
        self.summarize(&mut summary);
        summary
    }

    /// Give `inner` the findings about all that has been seen so far.
    pub fn complete(&mut self) {
        self.show();
        let View {
            timeline, detectors, ..
        } = self.views.get();
        let mut found = Vec::new();
        detectors.findings(timeline, &mut found);
        for finding in found {
            self.inner.finding(finding);
        }
    }

    /// Add to the summary what shows over time, as of [`Self::complete`].
    pub fn summarize(&self, summary: &mut v1::Summary) {
        let View {
            timeline,
            detectors,
            dialogues,
            ..
        } = self.views.get();
        timeline.complete(summary);
        dialogues.complete(summary);
        detectors.calls.complete(timeline, &mut summary.tiers);
    }

    /// Who talked to whom, as of [`Self::complete`].
    pub const fn dialogues(&self) -> &Dialogues {
        &self.views.get().dialogues
    }

    /// What happened when, as of [`Self::complete`].
    pub const fn timeline(&self) -> &Timeline {
        &self.views.get().timeline
    }

    /// Show the views what waits.
    #[inline(never)]
    fn show(&mut self) {
        self.views.each(|view| self.backlog.show(view));
        self.backlog.clear();
    }

    /// Another fact waits.
    #[inline]
    fn tell(&mut self, fact: impl FnOnce(&mut Backlog)) {
        fact(&mut self.backlog);
        if self.backlog.is_full() {
            self.show();
        }
    }
}

impl<S: Sink> Sink for Watched<S> {
    fn connection(&mut self, connection: &Connection<'_>) {
        self.tell(|backlog| backlog.connection(connection.ended()));
        self.inner.connection(connection);
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.tell(|backlog| backlog.transaction(transaction));
        self.inner.transaction(transaction);
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.inner.finding(finding);
    }

    fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        self.tell(|backlog| backlog.segment(verdict, ends));
        self.inner.segment(verdict, ends);
    }

    fn opened(&mut self, opened: &Opened) {
        self.tell(|backlog| backlog.opened(opened));
        self.inner.opened(opened);
    }

    fn hops(&mut self, hops: &Hops) {
        self.tell(|backlog| backlog.hops(hops));
        self.inner.hops(hops);
    }

    fn block(&mut self, block: &DataBlock) {
        self.tell(|backlog| backlog.block(block));
        self.inner.block(block);
    }

    fn acknowledged(&mut self, ack: &Acknowledged) {
        self.tell(|backlog| backlog.acknowledged(ack));
        self.inner.acknowledged(ack);
    }

    fn again(&mut self, id: FlowId, from_server: bool) {
        self.tell(|backlog| backlog.again(id, from_server));
        self.inner.again(id, from_server);
    }
}
