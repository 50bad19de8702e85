//! What patterns are looked for in: all of the input, or the newest part of a stream without end.

use weir_analysis::{Acknowledged, DataBlock, Ended, Ends, Hops, Opened, Sliding, Verdict};
use weir_record::FlowId;

use crate::backlog::{Next, Transaction};
use crate::detector::{Detector, Detectors};
use crate::dialogues::Dialogues;
use crate::failing_setups::FailingSetups;
use crate::losses::Losses;
use crate::routes::{RouteKey, Routes};
use crate::timeline::Timeline;

/// A timeline, dialogues and detectors that began at the same time.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub timeline: Timeline,
    pub detectors: Detectors,
    pub dialogues: Dialogues,
    routes: Routes,
}

impl View {
    /// Nothing yet; the timeline leaves out what happened before `start` (TAI ns), when `open` connections are open, and
    /// the detectors tell of what is under way.
    pub fn live(start: u64, open: u32) -> Self {
        Self {
            timeline: Timeline::live(start, open),
            detectors: Detectors {
                failing_setups: FailingSetups::live(),
                losses: Losses::live(),
                ..Detectors::default()
            },
            ..Self::default()
        }
    }

    /// Nothing yet; with a time line in slices of `width` ns.
    pub fn resolved(width: u64) -> Self {
        Self {
            timeline: Timeline::resolved(width),
            ..Self::default()
        }
    }

    /// What these facts need comes into the cache, all at once instead of one wait after the other.
    pub fn warm(&self, facts: &[Next]) {
        let routes = facts.iter().fold(0, |seen, fact| seen ^ self.routes.warm(fact.key));
        let detectors = facts.iter().fold(0, |seen, fact| seen ^ self.detectors.warm(fact));
        std::hint::black_box(routes ^ detectors);
    }

    pub fn connection(&mut self, connection: &Ended, key: RouteKey) {
        let route = self.routes.of(key, &connection.ends);
        self.timeline.connection(connection, route);
        self.detectors.connection(connection, route);
        self.dialogues.connection(connection);
    }

    pub fn transaction(&mut self, transaction: &Transaction<'_>, key: RouteKey) {
        let route = self.routes.of(key, &transaction.ends);
        self.timeline.transaction(transaction, route);
        self.detectors.transaction(transaction, route);
    }

    pub fn segment(&mut self, verdict: &Verdict, ends: &Ends, key: RouteKey) {
        let route = self.routes.of(key, ends);
        self.timeline.segment(verdict, route);
        self.detectors.segment(verdict, ends, route);
        self.dialogues.segment(verdict, ends);
    }

    pub fn opened(&mut self, opened: &Opened, key: RouteKey) {
        let route = self.routes.of(key, &opened.ends);
        self.timeline.opened(opened, route);
        self.detectors.opened(opened, route);
    }

    pub fn lost_between(&mut self, lost: impl Iterator<Item = (FlowId, [u32; 2])>) {
        self.detectors.losses.syn_loss.lost_between(lost);
    }

    pub fn again(&mut self, id: FlowId, from_server: bool) {
        self.detectors.again(id, from_server);
    }

    pub fn hops(&mut self, hops: &Hops, key: RouteKey) {
        self.detectors.hops(hops, self.routes.of(key, &hops.ends));
    }

    pub fn block(&mut self, block: &DataBlock, key: RouteKey) {
        self.timeline.block(block);
        self.detectors.block(block, self.routes.of(key, &block.ends));
    }

    pub fn acknowledged(&mut self, ack: &Acknowledged, key: RouteKey) {
        self.timeline.acknowledged(ack);
        self.detectors.acknowledged(ack, self.routes.of(key, &ack.ends));
    }
}

/// The view of everything, or, live, of the window.
pub(crate) type Views = Sliding<View>;
