//! Counters of what the analysis told, which only grow: the store forgets, these do not.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_analysis::StreamHealth;
use weir_messages::v1::{Connection, RetransmissionRate, Segment, Transaction};

use crate::histogram::Histogram;

/// Filled by the thread that analyses, read by scrapes.
#[derive(Debug, Default)]
pub struct AnalysisCounters(Mutex<Counts>);

/// The counts at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Connections that ended, by setup outcome (empty: no setup to tell of) and kind of closure.
    pub connections: BTreeMap<[String; 2], u64>,
    /// Segments that came twice, late or never, by class, cause and place.
    pub segments: BTreeMap<[String; 3], u64>,
    /// Transactions by kind.
    pub transactions: BTreeMap<[String; 1], u64>,
    /// First SYN to the end of the setup.
    pub setups: Histogram,
    /// Last packet of a request to the last of its response.
    pub responses: Histogram,
    /// Data packets of ended connections, and retransmissions among them.
    pub data_packets: u64,
    pub retransmitted_packets: u64,
    pub health: StreamHealth,
    /// Records that the log gave up before the analysis read them.
    pub reclaimed: u64,
    /// Requests of open connections without a response, now.
    pub waiting: usize,
}

impl AnalysisCounters {
    /// Count facts that are final, each given once.
    pub fn add(&self, connections: &[Connection], transactions: &[Transaction], segments: &[Segment]) {
        let mut counts = self.lock();
        for connection in connections {
            let outcome = connection.setup.as_ref().map_or("", |setup| &setup.outcome);
            let kind = connection.close.as_ref().map_or("", |close| &close.kind);
            count(&mut counts.connections, [outcome, kind]);
        }
        for transaction in transactions {
            count(&mut counts.transactions, [&transaction.kind]);
            match (transaction.kind.as_str(), transaction.end_seconds) {
                (_, None) => {}
                ("SETUP", Some(seconds)) => counts.setups.add(seconds),
                (_, Some(seconds)) => counts.responses.add(seconds),
            }
        }
        for segment in segments {
            count(&mut counts.segments, [&segment.class, &segment.cause, &segment.place]);
        }
    }

    /// The log gave up so many records before the analysis read them.
    pub fn reclaimed(&self, records: u64) {
        self.lock().reclaimed += records;
    }

    /// Renew what the analysis counts itself; `waiting`: requests without a response.
    pub fn renew(&self, health: StreamHealth, rate: Option<&RetransmissionRate>, waiting: usize) {
        let mut counts = self.lock();
        counts.health = health;
        counts.waiting = waiting;
        if let Some(rate) = rate {
            counts.data_packets = rate.data_packets;
            counts.retransmitted_packets = rate.retransmitted_packets;
        }
    }

    pub(crate) fn get(&self) -> Counts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One more under these names. There are few different ones: they are looked for as they are, and copied when new.
fn count<const N: usize>(counts: &mut BTreeMap<[String; N], u64>, names: [&str; N]) {
    match counts.iter_mut().find(|(known, _)| known.iter().eq(names.iter())) {
        Some((_, count)) => *count += 1,
        None => {
            counts.insert(names.map(str::to_owned), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_messages::v1::{Close, Setup};

    use super::*;

    #[test]
    fn facts_are_counted_under_their_names() {
        let counters = AnalysisCounters::default();
        let connection = |outcome: &str, kind: &str| Connection {
            setup: Some(Setup {
                outcome: outcome.to_owned(),
                ..Setup::default()
            }),
            close: Some(Close {
                kind: kind.to_owned(),
                time: None,
            }),
            ..Connection::default()
        };
        let transaction = |kind: &str, end_seconds| Transaction {
            kind: kind.to_owned(),
            end_seconds,
            ..Transaction::default()
        };
        counters.add(
            &[connection("OK", "CLIENT_FIN"), connection("IGNORED", "IGNORED")],
            &[transaction("SETUP", Some(0.2)), transaction("DATA", None)],
            &[],
        );
        counters.add(
            &[connection("OK", "CLIENT_FIN")],
            &[transaction("DATA", Some(2.0))],
            &[],
        );
        let counts = counters.get();
        let names = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        assert_eq!(counts.connections[&names("OK", "CLIENT_FIN")], 2);
        assert_eq!(counts.connections[&names("IGNORED", "IGNORED")], 1);
        assert_eq!(counts.transactions[&["DATA".to_owned()]], 2);
        // What never got an answer has no time.
        assert_eq!((counts.setups.count(), counts.responses.count()), (1, 1));
    }
}
