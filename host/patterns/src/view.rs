//! What patterns are looked for in: all of the input, or the newest part of a stream without end.

use weir_analysis::{Acknowledged, DataBlock, Ended, Ends, Hops, Opened, Sliding, Transaction, Verdict};

use crate::detector::{Detector, Detectors};
use crate::failing_setups::FailingSetups;
use crate::losses::Losses;
use crate::routes::Routes;
use crate::timeline::Timeline;

/// A timeline and detectors that began at the same time.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub timeline: Timeline,
    pub detectors: Detectors,
    routes: Routes,
}

impl View {
    /// Nothing yet; the timeline leaves out what happened before `start` (TAI ns), and the detectors tell of what is
    /// under way.
    pub fn live(start: u64) -> Self {
        Self {
            timeline: Timeline::since(start),
            detectors: Detectors {
                failing_setups: FailingSetups::live(),
                losses: Losses::live(),
                ..Detectors::default()
            },
            routes: Routes::default(),
        }
    }

    /// Nothing yet; with a time line in slices of `width` ns.
    pub fn resolved(width: u64) -> Self {
        Self {
            timeline: Timeline::resolved(width),
            ..Self::default()
        }
    }

    pub fn connection(&mut self, connection: &Ended) {
        let route = self.routes.of(&connection.ends);
        self.timeline.connection(connection, route);
        self.detectors.connection(connection, route);
    }

    pub fn transaction(&mut self, transaction: &Transaction<'_>) {
        let route = self.routes.of(&transaction.ends());
        self.timeline.transaction(transaction, route);
        self.detectors.transaction(transaction, route);
    }

    pub fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        let route = self.routes.of(ends);
        self.timeline.segment(verdict, route);
        self.detectors.segment(verdict, ends, route);
    }

    pub fn opened(&mut self, opened: &Opened) {
        let route = self.routes.of(&opened.ends);
        self.timeline.opened(opened, route);
        self.detectors.opened(opened, route);
    }

    pub fn hops(&mut self, hops: &Hops) {
        self.detectors.hops(hops, self.routes.of(&hops.ends));
    }

    pub fn block(&mut self, block: &DataBlock) {
        self.timeline.block(block);
        self.detectors.block(block, self.routes.of(&block.ends));
    }

    pub fn acknowledged(&mut self, ack: &Acknowledged) {
        self.timeline.acknowledged(ack);
        self.detectors.acknowledged(ack, self.routes.of(&ack.ends));
    }
}

/// The view of everything, or, live, of the window.
pub(crate) type Views = Sliding<View>;
