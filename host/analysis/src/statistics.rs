//! Statistics of all transactions with one signature (N6).

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use weir_messages::v1;

use crate::message::seconds;
use crate::percentiles::Percentiles;
use crate::signature::Text;
use crate::turns::Finished;

/// Signatures that have statistics of their own; those that come later are counted together.
const SIGNATURES: usize = 65_536;
/// Name of the rest.
const OTHERS: &str = "(other signatures)";
/// Keys whose rows are known: several may mean one signature.
const KEYS: usize = 2 * SIGNATURES;
/// First, second, third, later.
const POSITIONS: usize = 4;

/// Running figures of one value.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    count: u64,
    sum: f64,
}

impl Average {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    /// Of the value, or of others that there are as many of; `None` when there is none.
    fn known(&self, value: f64) -> Option<f64> {
        (self.count > 0).then_some(value)
    }

    fn value(&self) -> Option<f64> {
        self.known(self.sum / self.count as f64)
    }
}

/// What each transaction changes: two cache lines.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Row {
    count: u64,
    request_bytes: u64,
    response_bytes: u64,
    client: Average,
    server: Average,
    server_min: f64,
    server_max: f64,
    end: Average,
    end_max: f64,
    positions: [u64; POSITIONS],
}

impl Row {
    fn add(&mut self, t: &Entry) {
        self.count += 1;
        self.request_bytes = self.request_bytes.saturating_add(t.request_bytes);
        self.response_bytes = self.response_bytes.saturating_add(t.response_bytes);
        if let Some(client) = t.client {
            self.client.add(seconds(client));
        }
        if let Some(server) = t.server {
            let server = seconds(server);
            let is_first = self.server.count == 0;
            self.server_min = if is_first { server } else { self.server_min.min(server) };
            self.server_max = self.server_max.max(server);
            self.server.add(server);
        }
        if let Some(end) = t.end {
            self.end_max = self.end_max.max(end);
            self.end.add(end);
        }
        if let Some(position) = t.index.checked_sub(1) {
            self.positions[(position as usize).min(POSITIONS - 1)] += 1;
        }
    }
}

/// The rest of a row.
#[derive(Clone, Debug)]
struct Head {
    signature: Box<str>,
    losses: u64,
}

/// A transaction that is not in its row yet. Times in ns; `end` in s.
#[derive(Clone, Copy, Debug)]
struct Entry {
    row: u32,
    index: u32,
    request_bytes: u64,
    response_bytes: u64,
    client: Option<u64>,
    server: Option<u64>,
    end: Option<f64>,
}

/// Transactions whose rows are fetched together.
const TOGETHER: usize = 16;

/// Rows by signature.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statistics {
    hasher: RandomState,
    /// Numbers of rows by key, which most signatures have and which is found faster than they are.
    keys: HashMap<u64, u32, RandomState>,
    /// Numbers of rows by signature.
    numbers: HashTable<u32>,
    rows: Vec<Row>,
    heads: Vec<Head>,
    /// Times to the end of the response.
    times: Percentiles,
    waiting: Vec<Entry>,
}

impl Statistics {
    /// Enter a transaction.
    pub fn add(&mut self, text: &Text<'_>, t: &Finished) {
        let row = self.row(text);
        if t.losses > 0 {
            self.heads[row as usize].losses += u64::from(t.losses);
        }
        let end = t.end.map(seconds);
        if let Some(end) = end {
            self.times.add(row, end);
        }
        self.waiting.push(Entry {
            row,
            index: t.index,
            request_bytes: t.request_bytes,
            response_bytes: t.response_bytes,
            client: t.client,
            server: t.server,
            end,
        });
        if self.waiting.len() == TOGETHER {
            self.settle();
        }
    }

    /// Put what waits into its rows. They are brought into the cache first, all at once instead of one wait after the
    /// other.
    fn settle(&mut self) {
        let mut seen = 0;
        for entry in &self.waiting {
            let row = &self.rows[entry.row as usize];
            seen ^= row.count ^ row.positions[0];
        }
        std::hint::black_box(seen);
        for entry in self.waiting.drain(..) {
            self.rows[entry.row as usize].add(&entry);
        }
    }

    /// Number of the row of a signature: its own, or beyond [`SIGNATURES`] that of the others.
    fn row(&mut self, text: &Text<'_>) -> u32 {
        let key = text.key();
        if let Some(row) = key.and_then(|key| self.keys.get(&key)) {
            return *row;
        }
        let signature = text.get();
        let row = self.find(signature).unwrap_or_else(|| {
            if self.rows.len() < SIGNATURES {
                self.insert(signature)
            } else {
                self.find(OTHERS).unwrap_or_else(|| self.insert(OTHERS))
            }
        });
        if let Some(key) = key.filter(|_| self.keys.len() < KEYS) {
            self.keys.insert(key, row);
        }
        row
    }

    fn find(&self, signature: &str) -> Option<u32> {
        let is = |number: &u32| *self.heads[*number as usize].signature == *signature;
        self.numbers.find(self.hasher.hash_one(signature), is).copied()
    }

    fn insert(&mut self, signature: &str) -> u32 {
        if self.rows.is_empty() {
            // Memory that is not used yet costs nothing, and rows that move do.
            self.rows.reserve_exact(SIGNATURES + 1);
            self.heads.reserve_exact(SIGNATURES + 1);
        }
        let number = self.rows.len() as u32;
        self.rows.push(Row::default());
        self.heads.push(Head {
            signature: signature.into(),
            losses: 0,
        });
        let Self { heads, hasher, .. } = self;
        let hash = |number: &u32| hasher.hash_one(&*heads[*number as usize].signature);
        self.numbers.insert_unique(hash(&number), number, hash);
        number
    }

    /// The table, most frequent first.
    pub fn table(&mut self) -> Vec<v1::SignatureStatistics> {
        self.settle();
        self.times.settle();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by(|a, b| {
            let by_name = || self.heads[*a].signature.cmp(&self.heads[*b].signature);
            self.rows[*b].count.cmp(&self.rows[*a].count).then_with(by_name)
        });
        order
            .into_iter()
            .map(|number| {
                let (row, head) = (&self.rows[number], &self.heads[number]);
                v1::SignatureStatistics {
                    signature: head.signature.to_string(),
                    count: row.count,
                    client_average_seconds: row.client.value(),
                    request_bytes_average: row.request_bytes as f64 / row.count as f64,
                    server_seconds_min: row.server.known(row.server_min),
                    server_seconds_average: row.server.value(),
                    server_seconds_max: row.server.known(row.server_max),
                    response_bytes_average: row.response_bytes as f64 / row.count as f64,
                    end_seconds_average: row.end.value(),
                    end_seconds_max: row.end.known(row.end_max),
                    positions: row.positions.to_vec(),
                    losses: head.losses,
                    response_times: self.times.message(number as u32, row.end_max),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{Described, Signature, Spare};
    use crate::turns::Kind;

    #[test]
    fn a_row_has_minimum_average_and_maximum() {
        let mut s = Statistics::default();
        for (index, server) in [(1, 100_000_000), (2, 300_000_000), (9, 200_000_000)] {
            let t = Finished {
                index,
                kind: Kind::Data,
                request_time: 1,
                request_bytes: 1,
                response_bytes: 2,
                client: (index > 1).then_some(500_000_000),
                request: 0,
                server: Some(server),
                wait: None,
                missed: None,
                client_wait: None,
                client_uncertain: None,
                paused_us: 0,
                inferred: 0,
                ends: [0; 2],
                response: None,
                response_time: 0,
                unanswered: None,
                gave_up: 0,
                end: None,
                losses: 0,
                segment: None,
                overlapped: false,
                amid: [false; 2],
            };
            let signature = Signature::default();
            s.add(&Spare::default().text(Described::Data(&signature)), &t);
        }
        let table = s.table();
        assert_eq!(table.len(), 1);
        let row = &table[0];
        assert_eq!((row.count, row.positions.as_slice()), (3, &[1, 1, 0, 1][..]));
        assert_eq!((row.server_seconds_min, row.server_seconds_max), (Some(0.1), Some(0.3)));
        assert!((row.server_seconds_average.unwrap_or(0.0) - 0.2).abs() < 1e-12);
        assert_eq!(row.client_average_seconds, Some(0.5));
        assert_eq!(row.end_seconds_max, None);
    }
}
