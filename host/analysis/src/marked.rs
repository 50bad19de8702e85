//! A range of time that the user marks: whose time the transactions were that began in it (`docs/src/limits.md`).

use weir_messages::v1;

use crate::diagnosis::{Figures, Known};
use crate::message::timestamp;
use crate::shares::TimeShares;
use crate::turns::Finished;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// ns after the first packet of the first flow.
    AfterStart(u64),
    /// TAI ns.
    At(u64),
}

/// A range of time: `from` is in it, `to` is not; without one it is open on that side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Its first moment.
    pub from: Option<Moment>,
    /// The moment after it.
    pub to: Option<Moment>,
}

/// What the transactions of the range add up to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marked {
    range: Range,
    /// The first packet, once there is one.
    start: Option<u64>,
    time: TimeShares,
    known: Known,
    transactions: u64,
    crossing: u64,
}

impl Marked {
    pub fn new(range: Range) -> Self {
        Self {
            range,
            start: None,
            time: TimeShares::default(),
            known: Known::default(),
            transactions: 0,
            crossing: 0,
        }
    }

    /// A flow was opened.
    pub fn open(&mut self, time: u64) {
        self.start.get_or_insert(time);
    }

    fn resolve(&self, moment: Option<Moment>) -> Option<u64> {
        match moment? {
            Moment::At(time) => Some(time),
            Moment::AfterStart(ns) => Some(self.start.unwrap_or(0).saturating_add(ns)),
        }
    }

    /// A transaction is over.
    pub fn add(&mut self, done: &Finished, time: &TimeShares) {
        let from = self.resolve(self.range.from).unwrap_or(0);
        let to = self.resolve(self.range.to).unwrap_or(u64::MAX);
        let end = done
            .request_time
            .saturating_add(done.request)
            .saturating_add(done.end.unwrap_or(0));
        if (from..to).contains(&done.request_time) {
            self.time.add(time);
            self.known.add(done, time);
            self.transactions += 1;
        } else if done.request_time < from && end >= from {
            self.crossing += 1;
        }
    }

    pub fn message(&self) -> v1::Marked {
        v1::Marked {
            start: self.resolve(self.range.from).or(self.start).map(timestamp),
            end: self.resolve(self.range.to).map(timestamp),
            transactions: self.transactions,
            crossing: self.crossing,
            shares: Some(self.time.message()),
            bottlenecks: Figures::bottlenecks(&self.time, &self.known),
            diagnosis: Figures::diagnosis_of_time(&self.time, self.known.inferred),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Transactions of a second each that begin at 100, 101, 102 s; the first packet at 100 s.
    fn marked(from: Option<Moment>, to: Option<Moment>) -> v1::Marked {
        let mut marked = Marked::new(Range { from, to });
        marked.open(100 * SECOND);
        marked.open(99 * SECOND);
        for at in 100..103 {
            let time = TimeShares {
                server: SECOND,
                ..TimeShares::default()
            };
            marked.add(&Finished::answered(at * SECOND, SECOND), &time);
        }
        marked.message()
    }

    #[test]
    fn what_began_in_the_range_counts_whole() {
        let after = |s| Some(Moment::AfterStart(s * SECOND));
        let at = |s| Some(Moment::At(s * SECOND));
        for (from, to, transactions, crossing) in [
            (None, None, 3, 0),
            (after(1), None, 2, 1),
            (after(1), after(2), 1, 1),
            (at(101), at(102), 1, 1),
            (None, at(100), 0, 0),
            (after(4), None, 0, 0),
        ] {
            let m = marked(from, to);
            assert_eq!(
                (m.transactions, m.crossing),
                (transactions, crossing),
                "{from:?} {to:?}"
            );
            let shares = m.shares.unwrap_or_default();
            assert!((shares.server_processing_seconds - transactions as f64).abs() < 1e-9);
            assert_eq!(m.diagnosis.is_empty(), transactions == 0);
        }
    }
}
