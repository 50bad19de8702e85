//! Large segments vanish again and again while small ones pass. Memory: 4,096 segments that are sent again (48 bytes), and
//! 4,096 pairs of hosts (about 150 bytes, and 8 for each connection that is stuck).

use weir_analysis::{Class, Connection, Ends, Group, Transaction, TransactionKind, Verdict, address, finding, seconds};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::detector::Detector;
use crate::names::{Address, about};
use crate::table::Table;
use crate::timeline::Timeline;

/// Segments and pairs that are watched.
const SEGMENTS: usize = 4096;
const PAIRS: usize = 4096;
/// Repeats of one segment that were all lost, too: at 5 % loss one segment in 160,000 comes to that, at 20 % one in 625.
const REPEATS: u32 = 3;
/// Connections that are stuck so from which on it is a pattern.
const LEAST: u64 = 3;
/// One that is stuck although large ones pass for each so many where none does: chance loss.
const RATIO: u64 = 10;
/// A message of so many bytes has segments of the full size; one of so many is one segment (RFC 879: MSS of Ethernet).
const LARGE: u64 = 3000;
const SINGLE: u64 = 1460;

/// A segment that was sent again and again.
#[derive(Clone, Copy, Debug)]
struct Stuck {
    seq: u32,
    length: u32,
    repeats: u32,
    first: u64,
    last: u64,
}

/// What went from one host to another.
#[derive(Clone, Debug, Default)]
struct Pair {
    /// When a message of one segment, and one with segments of the full size, came through last without loss.
    small_last: u64,
    large_last: u64,
    /// The largest message of one segment that came through since a large one did.
    passed: u64,
    /// Stuck connections while small ones passed and no large one, and those while large ones passed.
    stuck: Group,
    chance: u64,
    /// Time from the first repeat to the last, ns, and the sizes of the segments.
    ns: u64,
    least: u32,
    most: u32,
}

/// Segments that never arrive.
#[derive(Debug, Default)]
pub(crate) struct MtuBlackHole {
    /// By connection and side.
    stuck: Table<(FlowId, bool), Stuck, SEGMENTS>,
    /// By sender and receiver.
    pairs: Table<(Address, Address), Pair, PAIRS>,
}

const fn pair(ends: &Ends, from_server: bool) -> (Address, Address) {
    if from_server {
        (ends.server, ends.client)
    } else {
        (ends.client, ends.server)
    }
}

impl MtuBlackHole {
    fn pair(&mut self, key: (Address, Address)) -> Option<&mut Pair> {
        self.pairs.place(key, Pair::default, |pair| pair.stuck.count() > 0)
    }
}

impl Detector for MtuBlackHole {
    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        if verdict.class != Class::Retransmission || verdict.length == 0 {
            return;
        }
        let key = (verdict.connection, verdict.from_server);
        let new = Stuck {
            seq: verdict.seq,
            length: verdict.length,
            repeats: 0,
            first: verdict.time,
            last: verdict.time,
        };
        // Entries go when their connections are over.
        let Some(stuck) = self.stuck.place(key, || new, |_| true) else {
            return;
        };
        if stuck.seq == verdict.seq {
            stuck.repeats += 1;
            stuck.length = stuck.length.min(verdict.length);
            stuck.last = stuck.last.max(verdict.time);
        } else if stuck.repeats < REPEATS {
            *stuck = Stuck { repeats: 1, ..new };
        }
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        let facts = transaction.facts();
        if facts.kind == TransactionKind::Setup || facts.losses > 0 {
            return;
        }
        let (Some(end), Some(_)) = (facts.end, facts.response) else {
            return;
        };
        let end = facts.request_time + facts.request + end;
        let ends = transaction.ends();
        for (from_server, bytes) in [(false, facts.request_bytes), (true, facts.response_bytes)] {
            if bytes > SINGLE && bytes < LARGE {
                continue;
            }
            if let Some(pair) = self.pair(pair(&ends, from_server)) {
                if bytes >= LARGE {
                    pair.large_last = pair.large_last.max(end);
                    pair.passed = 0;
                } else {
                    pair.small_last = pair.small_last.max(end);
                    pair.passed = pair.passed.max(bytes);
                }
            }
        }
    }

    fn connection(&mut self, connection: &Connection<'_>) {
        if !connection.has_trouble() {
            return;
        }
        for from_server in [false, true] {
            let Some(stuck) = self.stuck.remove(&(connection.id(), from_server)) else {
                continue;
            };
            if stuck.repeats < REPEATS {
                continue;
            }
            let Some(pair) = self.pair(pair(&connection.ends(), from_server)) else {
                continue;
            };
            if pair.large_last >= stuck.first {
                pair.chance += 1;
            } else if pair.small_last >= stuck.first {
                pair.least = if pair.stuck.count() == 0 {
                    stuck.length
                } else {
                    pair.least.min(stuck.length)
                };
                pair.most = pair.most.max(stuck.length);
                pair.ns += stuck.last - stuck.first;
                pair.stuck.include(connection.id(), stuck.first, stuck.last);
            }
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        for ((from, to), pair) in self.pairs.sorted() {
            let count = pair.stuck.count();
            if count < LEAST || count < RATIO * pair.chance || u64::from(pair.least) <= pair.passed {
                continue;
            }
            let (from, to) = (address(*from), address(*to));
            out.push(about(format!("{from} > {to}"), black_hole(&from, &to, pair)));
        }
    }
}

fn black_hole(from: &str, to: &str, pair: &Pair) -> Finding {
    let Pair {
        stuck,
        least,
        most,
        passed,
        ..
    } = pair;
    let count = stuck.count();
    let cost = seconds(pair.ns);
    finding(
        "MTU_BLACK_HOLE",
        "CRITICAL",
        0.9,
        format!("Segments of {least} bytes and more from {from} never reach {to}, smaller ones do"),
        vec![
            format!(
                "{count} connections are stuck at a segment of {least} to {most} bytes that was sent {} times or more and never acknowledged",
                REPEATS + 1
            ),
            format!(
                "meanwhile messages of up to {passed} bytes came through in one segment, and none of {LARGE} bytes or more: the limit of the path is between {passed} and {least} bytes of payload"
            ),
            format!("what it cost: {cost:.3} s from the first repeats to the last, and the answers never came"),
            "it may also be: a device that drops these packets for what is in them, or a tunnel that cannot carry more"
                .to_owned(),
            format!(
                "next: ping with DF and that size along the path; let ICMP \"fragmentation needed\" through, or clamp the MSS to {passed}"
            ),
        ],
        stuck,
        &[
            ("smallestLost", f64::from(*least)),
            ("largestPassed", *passed as f64),
            ("connections", count as f64),
            ("seconds", cost),
        ],
    )
}
