//! Statistics of all transactions with one signature (N6).

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use weir_messages::v1;

use crate::message::seconds;
use crate::percentiles::Percentiles;
use crate::turns::Finished;

/// Signatures that have statistics of their own; those that come later are counted together.
const SIGNATURES: usize = 65_536;
/// Name of the rest.
const OTHERS: &str = "(other signatures)";
/// First, second, third, later.
const POSITIONS: usize = 4;

/// Running figures of one value.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Figures {
    fn add(&mut self, value: Option<f64>) {
        let Some(value) = value else { return };
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.sum += value;
        self.count += 1;
    }

    fn average(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }
}

#[derive(Clone, Debug)]
struct Row {
    signature: Box<str>,
    hash: u64,
    count: u64,
    request_bytes: u64,
    response_bytes: u64,
    losses: u64,
    client: Figures,
    server: Figures,
    end: Figures,
    positions: [u64; POSITIONS],
}

impl Row {
    fn new(signature: &str, hash: u64) -> Self {
        Self {
            signature: signature.into(),
            hash,
            count: 0,
            request_bytes: 0,
            response_bytes: 0,
            losses: 0,
            client: Figures::default(),
            server: Figures::default(),
            end: Figures::default(),
            positions: [0; POSITIONS],
        }
    }
}

/// Transactions whose rows are fetched together.
const TOGETHER: usize = 16;

/// Rows by signature.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statistics {
    hasher: RandomState,
    /// Numbers of rows by signature.
    numbers: HashTable<u32>,
    rows: Vec<Row>,
    /// Times to the end of the response.
    times: Percentiles,
    /// Transactions that are not in their rows yet, and where their signatures end in `signatures`.
    waiting: Vec<(u64, usize, Finished)>,
    signatures: String,
}

impl Statistics {
    /// Enter a transaction.
    pub fn add(&mut self, signature: &str, t: &Finished) {
        self.signatures.push_str(signature);
        let hash = self.hasher.hash_one(signature);
        self.waiting.push((hash, self.signatures.len(), t.clone()));
        if self.waiting.len() == TOGETHER {
            self.settle();
        }
    }

    /// Put what waits into its rows. They are brought into the cache first, all at once instead of one wait after the
    /// other.
    pub fn settle(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut signatures = std::mem::take(&mut self.signatures);
        let mut seen = 0;
        for (hash, ..) in &waiting {
            let number = self.numbers.find(*hash, |n| self.rows[*n as usize].hash == *hash);
            if let Some(row) = number.map(|number| &self.rows[*number as usize]) {
                let first = row.signature.as_bytes().first();
                seen ^= row.positions[0] ^ row.end.count ^ row.client.count ^ u64::from(first.copied().unwrap_or(0));
            }
        }
        std::hint::black_box(seen);
        let mut start = 0;
        for (hash, end, t) in waiting.drain(..) {
            self.enter(&signatures[start..end], hash, &t);
            start = end;
        }
        signatures.clear();
        (self.waiting, self.signatures) = (waiting, signatures);
    }

    fn find(&self, name: &str, hash: u64) -> Option<usize> {
        let is = |number: &u32| {
            let row = &self.rows[*number as usize];
            row.hash == hash && *row.signature == *name
        };
        self.numbers.find(hash, is).map(|number| *number as usize)
    }

    /// Number of the row of a signature: its own, or beyond [`SIGNATURES`] that of the others.
    fn row(&mut self, signature: &str, hash: u64) -> usize {
        let (mut name, mut hash) = (signature, hash);
        let mut number = self.find(name, hash);
        if number.is_none() && self.rows.len() >= SIGNATURES {
            (name, hash) = (OTHERS, self.hasher.hash_one(OTHERS));
            number = self.find(name, hash);
        }
        number.unwrap_or_else(|| {
            let rows = &mut self.rows;
            rows.push(Row::new(name, hash));
            self.numbers
                .insert_unique(hash, rows.len() as u32 - 1, |number| rows[*number as usize].hash);
            rows.len() - 1
        })
    }

    fn enter(&mut self, signature: &str, hash: u64, t: &Finished) {
        let number = self.row(signature, hash);
        let row = &mut self.rows[number];
        row.count += 1;
        row.request_bytes = row.request_bytes.saturating_add(t.request_bytes);
        row.response_bytes = row.response_bytes.saturating_add(t.response_bytes);
        row.losses += u64::from(t.losses);
        row.client.add(t.client.map(seconds));
        row.server.add(t.server.map(seconds));
        row.end.add(t.end.map(seconds));
        if let Some(end) = t.end {
            self.times.add(number as u32, seconds(end));
        }
        if t.index > 0 {
            row.positions[(t.index as usize - 1).min(POSITIONS - 1)] += 1;
        }
    }

    /// The table, most frequent first.
    pub fn table(&mut self) -> Vec<v1::SignatureStatistics> {
        self.settle();
        self.times.settle();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by(|a, b| {
            let (a, b) = (&self.rows[*a], &self.rows[*b]);
            b.count.cmp(&a.count).then_with(|| a.signature.cmp(&b.signature))
        });
        order
            .into_iter()
            .map(|number| {
                let row = &self.rows[number];
                v1::SignatureStatistics {
                    signature: row.signature.to_string(),
                    count: row.count,
                    client_average_seconds: row.client.average(),
                    request_bytes_average: row.request_bytes as f64 / row.count as f64,
                    server_seconds_min: row.server.min(),
                    server_seconds_average: row.server.average(),
                    server_seconds_max: row.server.max(),
                    response_bytes_average: row.response_bytes as f64 / row.count as f64,
                    end_seconds_average: row.end.average(),
                    end_seconds_max: row.end.max(),
                    positions: row.positions.to_vec(),
                    losses: row.losses,
                    response_times: self.times.message(number as u32, row.end.max),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
                response: None,
                response_time: 0,
                end: None,
                losses: 0,
                overlapped: false,
            };
            s.add("Request: blk[1]-blk[2]", &t);
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
