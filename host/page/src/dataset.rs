//! One capture in memory: its facts by time, and what views ask for again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use weir_analysis::{DataBlock, Verdict};
use weir_api::filter::Filter;
use weir_messages::{Timestamp, v1};

use crate::collect::{Dropped, Missing, Parts, Path};
use crate::error::Refused;
use crate::groups::Groups;
use crate::lines::Lines;
use crate::marks::{VALUES, value};
use crate::packets::Packets;
use crate::span::{Span, seconds, since, utc};
use crate::waits::Waits;

/// Selections that are kept for the next request: a row takes 4 bytes.
const SELECTIONS: usize = 16;
/// Time lines of filtered connections that are kept.
const LINES: usize = 4;
/// Setups that failed.
const FAILED: [&str; 3] = ["REFUSED", "IGNORED", "RESET_LATE"];
/// One that its client reset at once: nothing failed, as the findings have it.
pub const RESET_BY_CLIENT: &str = "RESET_BY_CLIENT";

/// What is asked of a connection again and again.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// First packet, ns.
    pub first: u64,
    /// Last packet, ns.
    pub last: u64,
    /// It was open when the input ended, or is so now.
    pub open: bool,
    /// Its setup failed.
    pub failed: bool,
}

/// What is asked of a transaction again and again: transactions lie far apart in memory.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// First packet of the request, ns.
    pub begin: u64,
    /// Last packet of the response, ns.
    pub end: Option<u64>,
    /// Its connection's row, if that is kept.
    pub connection: Option<u32>,
    /// A handshake.
    pub is_setup: bool,
    /// In the order of [`VALUES`], s; NaN: not known.
    pub times: [f64; VALUES.len()],
    pub losses: u32,
    /// Place in its connection; 0: a setup.
    pub index: u32,
    pub request_bytes: u64,
    pub response_bytes: u64,
}

/// A request that has no response yet.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its connection.
    pub id: u64,
    /// First packet, ns.
    pub begin: u64,
    /// Its connection's row, if that is kept.
    pub connection: Option<u32>,
}

/// A capture.
#[derive(Debug)]
pub struct Dataset {
    /// First packet, UTC ns since 1970.
    start: i64,
    /// Behind the last packet, ns since the start.
    end: u64,
    /// From here on all connections and transactions are kept, ns since the start.
    kept_from: u64,
    /// By first packet.
    pub connections: Vec<Arc<v1::Connection>>,
    /// The same rows.
    pub lives: Vec<Life>,
    rows: HashMap<u64, u32>,
    /// By begin.
    pub transactions: Vec<Arc<v1::Transaction>>,
    /// The same rows.
    pub exchanges: Vec<Exchange>,
    /// By time.
    pub verdicts: Vec<Verdict>,
    /// By first packet.
    pub blocks: Vec<DataBlock>,
    /// If they are kept.
    pub packets: Option<Packets>,
    /// Worst first.
    pub findings: Vec<v1::Finding>,
    /// The whole in figures.
    pub summary: v1::Summary,
    /// Several taps.
    pub path: Path,
    /// Requests of open connections that have no response yet, the first first.
    pub waiting: Vec<Waiting>,
    /// What is not kept.
    pub dropped: Dropped,
    lines: OnceLock<Arc<Lines>>,
    waits: OnceLock<Waits>,
    /// Transactions by signature and so on, made when asked for.
    pub(crate) groups: Groups,
    cache: Mutex<Cache>,
}

/// The newest last.
#[derive(Debug, Default)]
struct Cache {
    selections: Vec<(String, Arc<Vec<u32>>)>,
    lines: Vec<(String, Arc<Lines>)>,
}

/// A range that is shorter is not shown as the whole, ns.
const LEAST_WHOLE: u64 = 1_000_000_000;

/// Seconds as ns.
pub fn length(seconds: f64) -> u64 {
    (seconds * 1e9).round().max(0.0) as u64
}

/// How its setup went, and who reset it.
pub fn outcome(connection: &v1::Connection) -> Option<&str> {
    let outcome = connection.setup.as_ref()?.outcome.as_str();
    let closed = connection.close.as_ref().map_or("", |close| close.kind.as_str());
    Some(match (outcome, closed) {
        ("REFUSED", "CLIENT_RST") => RESET_BY_CLIENT,
        _ => outcome,
    })
}

/// Sort by a time that is given, in the order of their coming where it is equal.
fn by_time<T>(items: &mut [T], time: impl Fn(&T) -> u64) {
    items.sort_by_key(time);
}

impl Dataset {
    /// All of it, put in order.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            mut connections,
            mut transactions,
            mut verdicts,
            mut blocks,
            packets,
            findings,
            summary,
            path,
            waiting,
            begin,
            now,
            dropped,
            kept_since,
        } = parts;
        let first = |connection: &Arc<v1::Connection>| connection.span_nanos().0;
        let start = match (begin, &summary.start) {
            (Some(begin), _) => utc(begin),
            (None, Some(start)) => start.unix_nanos(),
            (None, None) => {
                let packet = packets.as_ref().and_then(|packets| packets.first());
                let packet = packet.and_then(|time| i64::try_from(time).ok());
                connections.iter().map(first).chain(packet).min().unwrap_or(0)
            }
        };
        let since = |time: i64| since(start, time);
        let tai = |time: u64| since(utc(time));
        by_time(&mut connections, |connection| since(first(connection)));
        by_time(&mut transactions, |t| since(t.span_nanos().0));
        by_time(&mut verdicts, |verdict| verdict.time);
        by_time(&mut blocks, |block| block.first);
        let lives: Vec<Life> = connections
            .iter()
            .map(|connection| {
                let (first, last) = connection.span_nanos();
                let outcome = outcome(connection);
                let open = connection.close.as_ref().is_some_and(|close| close.kind == "OPEN");
                Life {
                    first: since(first),
                    last: since(last),
                    open,
                    // A SYN right before the end may still be answered.
                    failed: !open && outcome.is_some_and(|outcome| FAILED.contains(&outcome)),
                }
            })
            .collect();
        let rows: HashMap<u64, u32> = connections.iter().map(|connection| connection.id).zip(0..).collect();
        let exchanges: Vec<Exchange> = transactions
            .iter()
            .map(|t| {
                let (begin, end) = t.span_nanos();
                Exchange {
                    begin: since(begin),
                    end: end.map(since),
                    connection: rows.get(&t.connection_id).copied(),
                    is_setup: t.kind == "SETUP",
                    times: VALUES.map(|(_, what)| value(t, what).unwrap_or(f64::NAN)),
                    losses: t.losses,
                    index: t.index,
                    request_bytes: t.request_bytes,
                    response_bytes: t.response_bytes,
                }
            })
            .collect();
        let packets = packets.map(|packets| packets.finish(u64::try_from(start).unwrap_or(0), &verdicts));
        let last = [
            lives.iter().map(|life| life.last).max(),
            exchanges.iter().map(|t| t.end.unwrap_or(t.begin)).max(),
            packets.as_ref().and_then(|packets| packets.all.last()).map(|p| p.time),
            blocks.iter().map(|block| tai(block.last)).max(),
            verdicts.last().map(|verdict| tai(verdict.time)),
            summary.end.as_ref().map(|end| since(end.unix_nanos())),
            (now > 0).then(|| tai(now)),
        ];
        let mut waiting: Vec<Waiting> = waiting
            .into_iter()
            .map(|(id, begin)| Waiting {
                id: id.0,
                begin: tai(begin),
                connection: rows.get(&id.0).copied(),
            })
            .collect();
        waiting.sort_by_key(|request| (request.begin, request.id));
        let findings = weir_report::ranked(&findings).into_iter().cloned().collect();
        let end = last.into_iter().flatten().max().map_or(1, |last| last + 1);
        Self {
            start,
            end,
            kept_from: kept_since
                // What ended with the last that is not kept is not in it.
                .map(|until| since(until) + 1)
                // Where open connections are more than are kept, no time has them all: better all with what is unknown.
                .filter(|from| from + LEAST_WHOLE < end)
                .unwrap_or(0),
            connections,
            lives,
            rows,
            transactions,
            exchanges,
            verdicts,
            blocks,
            packets,
            findings,
            summary,
            path,
            waiting,
            dropped,
            lines: OnceLock::new(),
            waits: OnceLock::new(),
            groups: Groups::default(),
            cache: Mutex::default(),
        }
    }

    /// When it begins.
    pub const fn start(&self) -> Timestamp {
        Timestamp::from_unix_nanos(self.start)
    }

    /// Behind its last packet, ns since the start.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// From the start to the end.
    pub const fn since_start(&self) -> Span {
        Span { from: 0, to: self.end }
    }

    /// All that is kept completely, ns since the start.
    pub const fn whole(&self) -> Span {
        Span {
            from: self.kept_from,
            to: self.end,
        }
    }

    /// Where some of one kind is not kept, ns since the start.
    pub fn gap(&self, missing: &Missing) -> Option<Span> {
        let (from, to) = missing.span?;
        Span::new(since(self.start, from), since(self.start, to) + 1)
    }

    /// First to last packet.
    pub fn seconds(&self) -> f64 {
        seconds(self.end - 1)
    }

    /// ns since the start.
    pub fn since(&self, time: &Timestamp) -> u64 {
        since(self.start, time.unix_nanos())
    }

    /// The same of a TAI time.
    pub fn since_tai(&self, tai: u64) -> u64 {
        since(self.start, utc(tai))
    }

    /// Seconds since the start; before it they are below 0.
    pub fn moment(&self, time: &Timestamp) -> f64 {
        time.unix_nanos().saturating_sub(self.start) as f64 / 1e9
    }

    /// Row of a connection.
    pub fn row(&self, id: u64) -> Option<u32> {
        self.rows.get(&id).copied()
    }

    /// Packets, or why there are none.
    pub fn packets(&self) -> Result<&Packets, Refused> {
        self.packets
            .as_ref()
            .ok_or_else(|| Refused::not_found("no packets are kept of this capture; its hasPackets says so"))
    }

    /// The packets, if all are kept.
    pub fn all_packets(&self) -> Option<&Packets> {
        self.packets.as_ref().filter(|_| self.dropped.packets == 0)
    }

    /// Connections that pass a filter, by time.
    pub fn select_connections(&self, filter: &str) -> Result<Arc<Vec<u32>>, Refused> {
        self.selection("c", filter, || {
            let filter = Filter::<v1::Connection>::parse(filter).map_err(Refused::invalid)?;
            Ok(rows_of(self.connections.len(), |row| {
                filter.matches(&self.connections[row])
            }))
        })
    }

    /// Transactions that pass a filter, by time.
    pub fn select_transactions(&self, filter: &str) -> Result<Arc<Vec<u32>>, Refused> {
        self.selection("t", filter, || {
            let filter = Filter::<v1::Transaction>::parse(filter).map_err(Refused::invalid)?;
            Ok(rows_of(self.transactions.len(), |row| {
                filter.matches(&self.transactions[row])
            }))
        })
    }

    /// Verdicts that pass a filter, by time.
    pub fn select_verdicts(&self, filter: &str) -> Result<Arc<Vec<u32>>, Refused> {
        self.selection("s", filter, || {
            let filter = Filter::<v1::Segment>::parse(filter).map_err(Refused::invalid)?;
            let all = filter.is_empty();
            Ok(rows_of(self.verdicts.len(), |row| {
                all || filter.matches(&self.verdicts[row].message())
            }))
        })
    }

    /// Rows that were selected before with the same `what` and `key`, or now.
    pub fn selection(
        &self,
        what: &str,
        key: &str,
        make: impl FnOnce() -> Result<Vec<u32>, Refused>,
    ) -> Result<Arc<Vec<u32>>, Refused> {
        let key = format!("{what} {key}");
        if let Some(known) = recall(&mut self.cache().selections, &key) {
            return Ok(known);
        }
        // Made without the lock: two requests may do the same work, none waits for another's.
        let made = Arc::new(make()?);
        remember(&mut self.cache().selections, SELECTIONS, key, &made);
        Ok(made)
    }

    /// What happened when, to the connections that pass a filter.
    pub fn lines(&self, filter: &str) -> Result<Arc<Lines>, Refused> {
        if filter.is_empty() {
            return Ok(Arc::clone(
                self.lines.get_or_init(|| Arc::new(Lines::of(self, |_| true))),
            ));
        }
        if let Some(known) = recall(&mut self.cache().lines, filter) {
            return Ok(known);
        }
        let mut chosen = vec![false; self.connections.len()];
        for row in self.select_connections(filter)?.iter() {
            chosen[*row as usize] = true;
        }
        let made = Arc::new(Lines::of(self, |row| row.is_some_and(|row| chosen[row as usize])));
        remember(&mut self.cache().lines, LINES, filter.to_owned(), &made);
        Ok(made)
    }

    /// What hosts waited for.
    pub fn waits(&self) -> &Waits {
        self.waits.get_or_init(|| Waits::of(self))
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rows_of(count: usize, passes: impl Fn(usize) -> bool) -> Vec<u32> {
    (0..count).filter(|row| passes(*row)).map(|row| row as u32).collect()
}

fn recall<T>(list: &mut Vec<(String, Arc<T>)>, key: &str) -> Option<Arc<T>> {
    let place = list.iter().position(|(known, _)| known == key)?;
    let found = list.remove(place);
    list.push(found);
    list.last().map(|(_, found)| Arc::clone(found))
}

fn remember<T>(list: &mut Vec<(String, Arc<T>)>, most: usize, key: String, made: &Arc<T>) {
    if list.len() >= most {
        list.remove(0);
    }
    list.push((key, Arc::clone(made)));
}
