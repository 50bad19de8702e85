//! What an expert would point out of the whole input (`docs/src/findings.md`).

mod abortive;
mod closed;
mod failed;
mod limited;
mod marks;
mod mishaps;
mod missed;
mod quality;
mod rates;
mod refusals;
mod round_trips;
mod stale;

use weir_messages::v1;
use weir_record::CloseCause;

use crate::closing::closing;
use crate::flow::Flow;
use crate::given::Given;
use crate::message::failed;
use crate::resets::Resets;
use crate::setup::Outcome;
use crate::surroundings::Surroundings;
use crate::turns::Finished;
use crate::unanswered::Unanswered;
use abortive::Abortive;
use closed::ClosedWindows;
use failed::Failed;
use limited::LimitedTransfers;
use marks::Marks;
use mishaps::Mishaps;
use missed::Missed;
use quality::Quality;
pub(crate) use rates::Rate;
use rates::Rates;
pub use rates::{RETRANSMISSION_LINE, loss_severity};
use round_trips::Waiting;
use stale::Stale;

/// What holds a transfer, or turns, is worth pointing out from this time on, ns.
const LIMIT_LEAST: u64 = 100_000_000;

/// Everything that findings are made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    failed: Failed,
    pub rates: Rates,
    windows: ClosedWindows,
    mishaps: Mishaps,
    limited: LimitedTransfers,
    marks: Marks,
    waiting: Waiting,
    pub missed: Missed,
    abortive: Abortive,
    resets: Resets,
    stale: Stale,
    pub unanswered: Unanswered,
    quality: Quality,
}

impl Findings {
    /// A connection is over (`cause`), or the input is. `last`: its last transaction.
    pub fn connection(&mut self, flow: &Flow, cause: Option<CloseCause>, last: Option<&Finished>, given: Given) {
        let (kind, _) = closing(flow, cause);
        let failure = failed(kind, flow);
        self.failed.connection(flow, failure);
        self.quality.connection(flow);
        self.marks.connection(flow);
        self.rates.connection(flow);
        self.windows.connection(flow);
        // Most flows had one flight and no trouble; their round trips need not be looked up.
        if flow.extras.limits().is_some() || flow.extras.trouble().is_some() {
            let m = flow.measure(given);
            self.mishaps.connection(flow, &m);
            self.limited.connection(flow, m, given);
        }
        self.waiting.connection(flow, given);
        self.missed.connection(flow);
        let established = matches!(
            flow.setup.outcome,
            Outcome::Ok | Outcome::Retransmitted | Outcome::Midstream
        ) && failure.is_none();
        if established {
            self.unanswered
                .connection(flow, kind, last.and_then(|last| last.unanswered));
            let is_behind = last.is_some_and(|last| self.stale.is_behind(flow, last));
            let is_foreign = self.resets.is_foreign(flow, last);
            self.abortive
                .connection(flow, kind, is_foreign, last.filter(|_| !is_behind));
        }
    }

    /// The findings, in a fixed order.
    pub fn list(&self, around: &Surroundings) -> Vec<v1::Finding> {
        let mut out = Vec::new();
        out.extend(self.failed.findings());
        out.extend(self.rates.finding());
        out.extend(self.windows.findings(self.mishaps.ns));
        out.extend(self.mishaps.finding());
        out.extend(self.limited.findings());
        out.extend(self.marks.finding());
        out.extend(self.waiting.findings());
        out.extend(self.missed.finding(around));
        out.extend(self.abortive.finding());
        out.extend(self.resets.finding());
        out.extend(self.stale.finding());
        out.extend(self.stale.amid());
        out.extend(self.unanswered.finding(self.missed.segments));
        out.extend(self.quality.finding(around));
        out
    }
}

#[cfg(test)]
mod tests {
    /// 2023-11-14 22:13:20 UTC in TAI.
    pub(super) const START: u64 = 1_700_000_037_000_000_000;
}
