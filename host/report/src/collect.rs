//! A sink that keeps what a report shows, in bounded memory: sums per service, marks per pixel of the
//! charts (every one of them counts, so outliers stay), and connections to show as examples.
//!
//! At most about 70 MB, whatever the capture: 32 services and 32 kinds of requests with up to 1,024
//! columns each; further ones are counted together.

use std::collections::{BTreeMap, HashMap};
use std::ops::AddAssign;

use weir_analysis::{Connection, Ends, Opened, Outcome, Sink, Transaction, TransactionKind};
use weir_messages::v1;
use weir_patterns::bins::Bins;

use crate::scale::{Column, Histogram, row};
use crate::spent::{SETUP, Spent};
use crate::timing::Timing;
use crate::waterfall::Waterfalls;

/// Width that columns begin with, ns; it doubles when they are too many.
const FIRST_WIDTH: u64 = 1000;
/// Columns of a chart.
const COLUMNS: usize = 1024;
const MOST_SERVICES: usize = 32;
const MOST_KINDS: usize = 32;
/// Connections of which their time is kept, 48 bytes each: those that end first.
const MOST_LIVES: usize = 65_536;
/// From so many kinds on, new ones are told apart by the first digits of their sizes alone.
const EXACT_KINDS: usize = 16;
/// Examples of each pair of outcome and close.
const EXAMPLES: usize = 2;
/// Connections with most trouble kept.
const TROUBLED: usize = 12;

/// Outcomes of a setup in the order of the charts.
pub(crate) const OUTCOMES: [(Outcome, &str, &str); 5] = [
    (Outcome::Ok, "OK", "as it should"),
    (Outcome::Retransmitted, "RETRANSMITTED", "SYN or SYN-ACK came again"),
    (Outcome::Ignored, "IGNORED", "no answer"),
    (Outcome::ResetLate, "RESET_LATE", "reset long after the last SYN"),
    (Outcome::Refused, "REFUSED", "refused at once"),
];

/// A server's address and port.
pub(crate) type Service = ([u8; 16], u16);

/// What happened to a service in a slice of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice {
    pub opened: u32,
    pub closed: u32,
    pub requests: u32,
    pub responses: u32,
}

impl AddAssign for Slice {
    fn add_assign(&mut self, other: Self) {
        self.opened += other.opened;
        self.closed += other.closed;
        self.requests += other.requests;
        self.responses += other.responses;
    }
}

/// Requests of one size to one port.
#[derive(Debug)]
pub(crate) struct Requests {
    pub name: String,
    pub marks: Bins<Column>,
    pub times: Histogram,
    pub unanswered: u64,
    pub with_losses: u64,
}

impl Requests {
    fn new(name: String) -> Self {
        Self {
            name,
            marks: columns(),
            times: Histogram::default(),
            unanswered: 0,
            with_losses: 0,
        }
    }
}

/// Times of setups of one outcome, or of connections closed in one way.
#[derive(Debug)]
pub(crate) struct Times {
    pub marks: Bins<Column>,
    pub times: Histogram,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            marks: columns(),
            times: Histogram::default(),
        }
    }
}

impl Times {
    fn add(&mut self, at: u64, ns: u64) {
        self.marks.at(at).0[row(ns)] += 1;
        self.times.add(ns);
    }
}

/// When a connection was there, TAI ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub id: u64,
    pub service: Service,
    pub first: u64,
    pub last: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Collector {
    pub(crate) services: HashMap<Service, Bins<Slice>>,
    pub(crate) other_services: Bins<Slice>,
    /// In the order of `OUTCOMES`.
    pub(crate) setups: Vec<Times>,
    /// First packet to last, by how they were closed.
    pub(crate) durations: BTreeMap<&'static str, Times>,
    lives: Vec<Life>,
    pub(crate) requests: Vec<Requests>,
    /// Number in `requests`, by port and request.
    numbers: HashMap<u16, HashMap<Box<str>, usize>>,
    /// Marks of the transactions with losses.
    pub(crate) with_losses: Bins<Column>,
    examples: BTreeMap<(&'static str, &'static str), Vec<v1::Connection>>,
    /// Most trouble first.
    troubled: Vec<(u64, v1::Connection)>,
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    pub(crate) closes: BTreeMap<&'static str, u64>,
    pub(crate) findings: Vec<v1::Finding>,
    pub(crate) waterfalls: Waterfalls,
    pub(crate) spent: Spent,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            services: HashMap::new(),
            other_services: columns(),
            setups: OUTCOMES.iter().map(|_| Times::default()).collect(),
            durations: BTreeMap::new(),
            lives: Vec::new(),
            requests: Vec::new(),
            numbers: HashMap::new(),
            with_losses: columns(),
            examples: BTreeMap::new(),
            troubled: Vec::new(),
            outcomes: BTreeMap::new(),
            closes: BTreeMap::new(),
            findings: Vec::new(),
            waterfalls: Waterfalls::default(),
            spent: Spent::default(),
        }
    }
}

fn columns<T: Copy + Default + AddAssign>() -> Bins<T> {
    Bins::bounded(FIRST_WIDTH, COLUMNS)
}

/// The request of a signature: up to the `-` before the response.
pub(crate) fn request(signature: &str) -> &str {
    let text = signature.strip_prefix("Request: ").unwrap_or(signature);
    text.split('-').next().unwrap_or(text)
}

/// `blk[345]` as `blk[3xx]`.
pub(crate) fn masked(request: &str) -> String {
    let mut before = ' ';
    let mask = |c: char| {
        let masked = c.is_ascii_digit() && (before.is_ascii_digit() || before == 'x');
        before = if masked { 'x' } else { c };
        before
    };
    request.chars().map(mask).collect()
}

impl Collector {
    fn slice(&mut self, ends: &Ends, time: u64) -> &mut Slice {
        let service = (ends.server, ends.server_port);
        if self.services.len() >= MOST_SERVICES && !self.services.contains_key(&service) {
            return self.other_services.at(time);
        }
        self.services.entry(service).or_insert_with(columns).at(time)
    }

    fn kind(&mut self, port: u16, request: &str) -> &mut Requests {
        let numbers = self.numbers.entry(port).or_default();
        if let Some(&number) = numbers.get(request) {
            return &mut self.requests[number];
        }
        let request = match self.requests.len() < EXACT_KINDS {
            true => request.to_owned(),
            false => masked(request),
        };
        let number = match numbers.get(request.as_str()) {
            Some(&number) => number,
            None if self.requests.len() < MOST_KINDS => {
                self.requests.push(Requests::new(format!("{port}: {request}")));
                numbers.insert(request.into(), self.requests.len() - 1);
                self.requests.len() - 1
            }
            None => {
                if self.requests.len() == MOST_KINDS {
                    self.requests.push(Requests::new("other requests".to_owned()));
                }
                MOST_KINDS
            }
        };
        &mut self.requests[number]
    }

    /// The findings, in the order in which they were told.
    pub fn findings(&self) -> &[v1::Finding] {
        &self.findings
    }

    /// All connections that may be shown.
    pub fn examples_mut(&mut self) -> impl Iterator<Item = &mut v1::Connection> {
        let troubled = self.troubled.iter_mut().map(|(_, connection)| connection);
        self.examples.values_mut().flatten().chain(troubled)
    }

    /// The connections to show, in the order of time.
    pub(crate) fn shown(&self) -> Vec<&v1::Connection> {
        let mut all: Vec<_> = self
            .examples
            .values()
            .flatten()
            .chain(self.troubled.iter().map(|(_, connection)| connection))
            .collect();
        all.sort_by_key(|c| (c.first_packet_time, c.id));
        all.dedup_by_key(|c| c.id);
        all
    }

    /// Many connections to look at packet by packet, if there are many.
    pub fn timing(&self) -> Option<Timing> {
        Timing::new(&self.lives, &self.findings)
    }

    /// Ids of connections that are worth a look packet by packet: of each finding the first, and of each way to fail;
    /// at most `most`.
    pub fn worth_a_look(&self, most: usize) -> Vec<u64> {
        let failed = |connection: &&v1::Connection| {
            let outcome = connection.setup.as_ref().map_or("", |setup| setup.outcome.as_str());
            !matches!(outcome, "" | "OK" | "MIDSTREAM")
        };
        let by_outcome = self.examples.values().filter_map(|all| all.first()).filter(failed);
        let mut ids: Vec<u64> = Vec::new();
        let candidates = by_outcome
            .map(|connection| connection.id)
            .chain(self.troubled.iter().take(2).map(|(_, connection)| connection.id))
            .chain(self.findings.iter().filter_map(|f| f.connection_ids.first().copied()));
        for id in candidates {
            if !ids.contains(&id) && ids.len() < most {
                ids.push(id);
            }
        }
        ids
    }
}

impl Sink for Collector {
    fn connection(&mut self, connection: &Connection<'_>) {
        self.waterfalls.connection(connection);
        let ends = connection.ends();
        let (first, last) = connection.span();
        self.slice(&ends, last).closed += 1;
        let place = OUTCOMES
            .iter()
            .position(|(outcome, _, _)| Some(*outcome) == connection.setup());
        if let Some((place, ns)) = place.zip(connection.setup_ns()) {
            self.setups[place].add(first, ns);
        }
        let outcome = connection.outcome().unwrap_or("");
        let close = connection.close_kind();
        if !outcome.is_empty() {
            *self.outcomes.entry(outcome).or_default() += 1;
        }
        *self.closes.entry(close).or_default() += 1;
        self.durations
            .entry(close)
            .or_default()
            .add(first, last.saturating_sub(first));
        if self.lives.len() < MOST_LIVES {
            self.lives.push(Life {
                id: connection.id().0,
                service: (ends.server, ends.server_port),
                first,
                last,
            });
        }
        let examples = self.examples.entry((outcome, close)).or_default();
        if examples.len() < EXAMPLES {
            examples.push(connection.message());
        }
        let trouble = connection.trouble();
        let least = self.troubled.last().map_or(0, |(least, _)| *least);
        if trouble > 0 && (self.troubled.len() < TROUBLED || trouble > least) {
            let at = self.troubled.partition_point(|(other, _)| *other >= trouble);
            self.troubled.insert(at, (trouble, connection.message()));
            self.troubled.truncate(TROUBLED);
        }
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.waterfalls.transaction(transaction);
        let facts = transaction.facts();
        let ends = transaction.ends();
        let is_setup = facts.kind == TransactionKind::Setup;
        if let Some(time) = &transaction.message().shares {
            let request = if is_setup {
                SETUP
            } else {
                request(transaction.signature())
            };
            self.spent.add((ends.server, ends.server_port), request, time);
        }
        if is_setup {
            return;
        }
        self.slice(&ends, facts.request_time).requests += 1;
        let answered = facts.response.and(facts.end);
        let kind = self.kind(ends.server_port, request(transaction.signature()));
        kind.with_losses += u64::from(facts.losses > 0);
        let Some(end) = answered else {
            kind.unanswered += 1;
            return;
        };
        kind.marks.at(facts.request_time).0[row(end)] += 1;
        kind.times.add(end);
        let done = facts.request_time.saturating_add(facts.request).saturating_add(end);
        self.slice(&ends, done).responses += 1;
        if facts.losses > 0 {
            self.with_losses.at(facts.request_time).0[row(end)] += 1;
        }
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.findings.push(finding);
    }

    fn opened(&mut self, opened: &Opened) {
        self.slice(&opened.ends, opened.time).opened += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_by_their_sizes() {
        assert_eq!(
            request("Request: blk[178]; blk[1284]-blk[2xx]; blk[2x] (5)"),
            "blk[178]; blk[1284]"
        );
        assert_eq!(
            request("Request: blk[29]; conn half closed--blk[2x]"),
            "blk[29]; conn half closed"
        );
        assert_eq!(masked("blk[178]; blk[1284] (12)"), "blk[1xx]; blk[1xxx] (1x)");
    }

    #[test]
    fn kinds_of_requests_stay_bounded() {
        let mut facts = Collector::default();
        for size in 1..5000 {
            facts.kind(443, &format!("blk[{size}]")).unanswered += 1;
        }
        assert!(facts.requests.len() <= MOST_KINDS + 1);
        assert_eq!(facts.requests.iter().map(|kind| kind.unanswered).sum::<u64>(), 4999);
    }
}
