//! Operations: transactions of one pair of hosts that follow each other without a long gap (`docs/src/limits.md`).

use std::collections::HashMap;

use weir_messages::v1;

use crate::message::{address, seconds, timestamp};
use crate::route::Route;
use crate::shares::TimeShares;
use crate::turns::Finished;

/// Operations kept; what comes later is only counted.
const MOST: usize = 10_000;

/// Client and server.
type Pair = ([u8; 16], [u8; 16]);

/// Transactions without a long gap between them.
#[derive(Clone, Copy, Debug)]
struct Operation {
    pair: Pair,
    start: u64,
    end: u64,
    time: TimeShares,
}

/// All operations so far.
#[derive(Clone, Debug)]
pub(crate) struct Operations {
    /// ns.
    gap: u64,
    open: HashMap<Pair, Operation>,
    done: Vec<Operation>,
    dropped: u64,
}

impl Operations {
    /// `gap`: seconds without a transaction that end an operation.
    pub fn new(gap: f64) -> Self {
        Self {
            gap: (gap * 1e9) as u64,
            open: HashMap::new(),
            done: Vec::new(),
            dropped: 0,
        }
    }

    /// A transaction is over.
    pub fn add(&mut self, route: &Route, done: &Finished, time: &TimeShares) {
        let pair = (route.client_addr, route.server_addr);
        let start = done.request_time;
        let whole = done.end.unwrap_or(0).saturating_add(done.request);
        let end = start.saturating_add(whole);
        let fresh = Operation {
            pair,
            start,
            end,
            time: TimeShares::default(),
        };
        // A setup has no client time before it, and a first transaction's is since the setup.
        let mut time = *time;
        let gap = self.gap;
        if let Some(old) = self.open.get(&pair).copied()
            && start > old.end.saturating_add(gap)
        {
            self.open.remove(&pair);
            self.keep(old);
            // What the client did between two operations belongs to neither.
            (time.think, time.client) = (0, 0);
        }
        let operation = self.open.entry(pair).or_insert(fresh);
        operation.start = operation.start.min(start);
        operation.end = operation.end.max(end);
        operation.time.add(&time);
    }

    fn keep(&mut self, operation: Operation) {
        if self.done.len() < MOST {
            self.done.push(operation);
        } else {
            self.dropped += 1;
        }
    }

    /// Operations by their start, and how many are left out.
    pub fn list(&self) -> (Vec<v1::Operation>, u64) {
        let mut all: Vec<_> = self.done.iter().chain(self.open.values()).copied().collect();
        all.sort_by_key(|o| (o.start, o.pair));
        let list = all
            .iter()
            .map(|o| {
                let duration = o.end.saturating_sub(o.start);
                v1::Operation {
                    client_address: address(o.pair.0),
                    server_address: address(o.pair.1),
                    start: Some(timestamp(o.start)),
                    duration_seconds: seconds(duration),
                    transactions: o.time.transactions,
                    shares: Some(o.time.message()),
                    parallel_seconds: seconds(o.time.total().saturating_sub(duration)),
                }
            })
            .collect();
        (list, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_and_another_host_begin_anew() {
        let mut operations = Operations::new(1.0);
        let route = Route::default();
        let other = Route {
            client_addr: [7; 16],
            ..route
        };
        let time = |server| TimeShares {
            server,
            transactions: 1,
            ..TimeShares::default()
        };
        let second = 1_000_000_000;
        operations.add(&route, &Finished::answered(second, 100), &time(100));
        operations.add(&route, &Finished::answered(second + 500, 100), &time(100));
        operations.add(&other, &Finished::answered(second + 500, 100), &time(100));
        operations.add(&route, &Finished::answered(3 * second, 100), &time(100));
        let (list, dropped) = operations.list();
        let figures: Vec<_> = list.iter().map(|o| (o.transactions, o.duration_seconds)).collect();
        assert_eq!(figures, [(2, 600e-9), (1, 100e-9), (1, 100e-9)]);
        assert_eq!(dropped, 0);
    }

    #[test]
    fn what_runs_side_by_side_is_told() {
        let mut operations = Operations::new(1.0);
        let time = TimeShares {
            server: 100,
            transactions: 1,
            ..TimeShares::default()
        };
        for _ in 0..3 {
            operations.add(&Route::default(), &Finished::answered(50, 100), &time);
        }
        let (list, _) = operations.list();
        assert!((list[0].parallel_seconds - 200e-9).abs() < 1e-15, "{list:?}");
    }
}
