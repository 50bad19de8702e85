//! Large segments vanish again and again while small ones pass, until the connection ends or its sender makes them smaller
//! (packetization layer path MTU discovery, RFC 4821). Memory: 4,096 segments that are sent again (56 bytes),
//! what passed between 4,096 pairs of hosts (64 bytes; others of the same place push them out), and 4,096 pairs with stuck
//! connections (about 100 bytes, and 8 for each connection).

use weir_analysis::{
    Class, Ended, Ends, Group, TransactionKind, Verdict, address, count, decimal, finding, seconds, sign,
};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::backlog::{Kind, Next, Transaction};
use crate::detector::Detector;
use crate::names::{Address, about, connections};
use crate::routes::Route;
use crate::table::Table;
use crate::timeline::Timeline;

/// Segments and pairs that are watched.
const SEGMENTS: usize = 4096;
const PAIRS: usize = 4096;
/// Repeats of one segment that were all lost, too: at 5 % loss one segment in 160,000 comes to that, at 20 % one in 625.
const REPEATS: u32 = 3;
/// A sender that waits a second before the first (RFC 6298 2.1) and doubles that has sent so many repeats after so long, ns. What was lost
/// before the tap shows none of them.
const WAIT: u64 = 7_000_000_000;
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
    /// It was lost before the tap, and never seen.
    unseen: bool,
    /// Smaller ones that were sent behind it arrived, and it never did, while its receiver was heard.
    alone: bool,
    /// What its sender made of it at last, if it was sent so often before: its beginning, so long.
    cut: Option<u32>,
    first: u64,
    last: u64,
}

impl Stuck {
    /// The segment came again.
    fn again(&mut self, verdict: &Verdict) {
        self.last = self.last.max(verdict.time);
        self.alone = is_alone(verdict);
        if verdict.length < self.length && self.repeats >= REPEATS {
            self.cut = Some(self.cut.map_or(verdict.length, |cut| cut.min(verdict.length)));
        } else {
            self.repeats += 1;
            self.length = self.length.min(verdict.length);
        }
    }
}

/// Something smaller that was sent behind it arrived (SACK), and it did not, although its receiver was heard after it.
const fn is_alone(verdict: &Verdict) -> bool {
    verdict.smaller_arrived > 0 && !verdict.arrived && !verdict.evidence.has(sign::SILENCE)
}

/// What passed between two hosts, by sender: client, server.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Passed {
    /// Hash of the hosts.
    hosts: u64,
    /// When a message of one segment or a setup, and a message with segments of the full size, came through last without loss.
    small_last: [u64; 2],
    large_last: [u64; 2],
    /// The largest message of one segment that came through since a large one did.
    largest: [u32; 2],
}

impl Passed {
    /// A message of one segment or with segments of the full size, or the small end of one that was SACKed.
    fn came_through(&mut self, side: usize, time: u64, bytes: u64) {
        let last = if bytes >= LARGE {
            &mut self.large_last
        } else {
            &mut self.small_last
        };
        last[side] = last[side].max(time);
        self.largest[side] = largest(self.largest[side], bytes);
    }
}

/// The largest message of one segment since a large one came through.
const fn largest(before: u32, bytes: u64) -> u32 {
    if bytes >= LARGE {
        0
    } else if bytes > before as u64 {
        bytes as u32
    } else {
        before
    }
}

/// Stuck connections of a pair of hosts.
#[derive(Clone, Debug, Default)]
struct Pair {
    /// Those while small ones passed and no large one, and those while large ones passed.
    stuck: Group,
    chance: u64,
    /// Those of them that went on in smaller segments.
    cut: u64,
    /// Those whose segment never arrived while smaller ones of the same data did; and those of which the tap saw no copy.
    alone: u64,
    unseen: u64,
    /// Time from the first repeat to the last, ns, and the sizes of the segments.
    ns: u64,
    least: u32,
    most: u32,
    /// The largest message of one segment that came through since a large one did.
    passed: u32,
}

/// What passed between all hosts, by hash of client and server.
#[derive(Debug, Default)]
struct Passages {
    list: Vec<Passed>,
}

impl Passages {
    fn between(&mut self, route: &Route) -> &mut Passed {
        if self.list.is_empty() {
            self.list.resize(PAIRS, Passed::default());
        }
        let passed = &mut self.list[route.pair as usize % PAIRS];
        if passed.hosts != route.pair {
            *passed = Passed {
                hosts: route.pair,
                ..Passed::default()
            };
        }
        passed
    }
}

/// Segments that never arrive.
#[derive(Debug, Default)]
pub(crate) struct MtuBlackHole {
    /// By connection and side.
    stuck: Table<(FlowId, bool), Stuck, SEGMENTS>,
    /// By client, server and sender.
    pairs: Table<(Address, Address, bool), Pair, PAIRS>,
    passages: Passages,
}

/// The same of a pair with stuck connections: it stays when another pair takes the place of its hosts.
fn keep(pairs: &mut Table<(Address, Address, bool), Pair, PAIRS>, route: &Route, from_server: bool, bytes: u64) {
    if let Some(pair) = pairs.get(&(route.client, route.server, from_server)) {
        pair.passed = largest(pair.passed, bytes);
    }
}

impl Detector for MtuBlackHole {
    #[inline]
    fn warm(&self, fact: &Next) -> u64 {
        let passed = self.passages.list.get(fact.key.pair as usize % PAIRS);
        passed
            .filter(|_| fact.kind == Kind::Transaction)
            .map_or(0, |passed| passed.hosts)
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends, route: &mut Route) {
        let unseen = verdict.class == Class::Lost && is_alone(verdict);
        if !unseen && verdict.class != Class::Retransmission || verdict.length == 0 {
            return;
        }
        if verdict.smaller_arrived > 0 {
            let (side, bytes) = (usize::from(verdict.from_server), verdict.smaller_arrived.into());
            self.passages.between(route).came_through(side, verdict.time, bytes);
            keep(&mut self.pairs, route, verdict.from_server, bytes);
        }
        let key = (verdict.connection, verdict.from_server);
        let new = Stuck {
            seq: verdict.seq,
            // Of what was never seen, as far as it goes into segments of the full size.
            length: verdict.length / if unseen { verdict.counted.max(1) } else { 1 },
            repeats: 0,
            unseen,
            alone: is_alone(verdict),
            cut: None,
            first: verdict.time,
            last: verdict.time,
        };
        // Entries go when their connections are over.
        let Some(stuck) = self.stuck.place(key, || new, |_| true) else {
            return;
        };
        if unseen {
            if stuck.repeats < REPEATS && !stuck.unseen {
                *stuck = new;
            }
        } else if stuck.seq == verdict.seq {
            stuck.again(verdict);
        } else if stuck.repeats < REPEATS && !stuck.unseen {
            *stuck = Stuck { repeats: 1, ..new };
        }
    }

    #[inline]
    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let facts = transaction.facts;
        if facts.losses > 0 {
            return;
        }
        let (Some(end), Some(_)) = (facts.end, facts.response) else {
            return;
        };
        let end = facts.request_time + facts.request + end;
        let passed = self.passages.between(route);
        if facts.kind == TransactionKind::Setup {
            // It says nothing of the size of data, but that the path carries what is small.
            for last in &mut passed.small_last {
                *last = (*last).max(end);
            }
            return;
        }
        for (side, bytes) in [facts.request_bytes, facts.response_bytes].into_iter().enumerate() {
            if bytes > SINGLE && bytes < LARGE {
                continue;
            }
            // A sender that has cut its segments tells nothing of larger ones, nor does what never came as a whole.
            let stuck = self.stuck.peek(&(transaction.id, side == 1));
            if stuck.is_some_and(|stuck| stuck.unseen)
                || stuck.and_then(|stuck| stuck.cut).is_some_and(|cut| bytes > cut.into())
            {
                continue;
            }
            passed.came_through(side, end, bytes);
            keep(&mut self.pairs, route, side == 1, bytes);
        }
    }

    fn connection(&mut self, connection: &Ended, route: &mut Route) {
        if !connection.has_trouble {
            return;
        }
        for from_server in [false, true] {
            let Some(mut stuck) = self.stuck.remove(&(connection.id, from_server)) else {
                continue;
            };
            if stuck.unseen {
                // Until who lacked it gave up.
                stuck.last = connection.until;
            }
            let is_long = stuck.unseen && stuck.last.saturating_sub(stuck.first) >= WAIT;
            if stuck.repeats < REPEATS && !is_long {
                continue;
            }
            let (passed, side) = (*self.passages.between(route), usize::from(from_server));
            let key = (route.client, route.server, from_server);
            let Some(pair) = self.pairs.place(key, Pair::default, |pair| pair.stuck.count() > 0) else {
                continue;
            };
            if pair.stuck.count() == 0 {
                pair.passed = passed.largest[side];
            }
            if passed.large_last[side] >= stuck.first {
                pair.chance += 1;
            } else if passed.small_last[side] >= stuck.first {
                pair.least = if pair.stuck.count() == 0 {
                    stuck.length
                } else {
                    pair.least.min(stuck.length)
                };
                pair.most = pair.most.max(stuck.length);
                pair.cut += u64::from(stuck.cut.is_some());
                pair.alone += u64::from(stuck.alone);
                pair.unseen += u64::from(stuck.unseen);
                pair.ns += stuck.last - stuck.first;
                pair.stuck.include(connection.id, stuck.first, stuck.last);
            }
        }
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        for ((client, server, from_server), pair) in self.pairs.sorted() {
            let count = pair.stuck.count();
            // What passes nothing but setups does not go by size.
            let is_by_size = (1..pair.least).contains(&pair.passed);
            // Few are told where each of them shows by itself that size tells what passes, and no other does better.
            let is_told = count >= LEAST || pair.alone == count && pair.chance == 0;
            if !is_told || count < RATIO * pair.chance || !is_by_size {
                continue;
            }
            let (client, server) = (address(*client), address(*server));
            let (from, to) = if *from_server {
                (server, client)
            } else {
                (client, server)
            };
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
        cut,
        unseen,
        ..
    } = pair;
    let hit = stuck.count();
    let is_pattern = hit >= LEAST;
    let fate = match *cut {
        0 => "the answers never came".to_owned(),
        cut if cut == hit => {
            "then the sender made smaller segments of it (path MTU probing), and those passed".to_owned()
        }
        cut => format!(
            "in {} the sender then made smaller segments of it (path MTU probing), the other answers never came",
            connections(cut)
        ),
    };
    let cost = seconds(pair.ns);
    let bytes = |n: &u32| count((*n).into());
    let how = match *unseen {
        0 => format!("was sent {} times or more", REPEATS + 1),
        unseen if unseen == hit => format!(
            "was lost before the tap and did not come for {} s or more, in which its sender's timers run out {REPEATS} times or more",
            WAIT / 1_000_000_000
        ),
        _ => format!("was sent {} times or more, or as long lacking", REPEATS + 1),
    };
    let mut evidence = vec![
        format!(
            "{} {} stuck at a segment of {} that {how}, and never acknowledged as a whole",
            connections(hit),
            if hit == 1 { "is" } else { "are" },
            if least == most {
                format!("{} bytes", bytes(least))
            } else {
                format!("{} to {} bytes", bytes(least), bytes(most))
            },
        ),
        format!(
            "messages, or ends of messages, of up to {} bytes came through in one segment, and none of {} bytes or more: the limit of the path is between {} and {} bytes of payload",
            bytes(passed),
            count(LARGE),
            bytes(passed),
            bytes(least)
        ),
        format!(
            "what it cost: {} s from the first {} to the last; {fate}",
            decimal(cost, 3),
            if *unseen == hit { "sign" } else { "repeats" }
        ),
    ];
    if !is_pattern {
        evidence.push(format!(
            "what is not known: whether size is the reason. It is {}, and no other data of full size between these hosts shows that it passes or does not",
            connections(hit)
        ));
    }
    evidence.push(
        "it may also be: a device that drops these packets for what is in them, or a tunnel that cannot carry more"
            .to_owned(),
    );
    // The largest that passed happened to be so large: it is not the limit.
    evidence.push(format!(
        "next: find the limit between {} and {} by pings with DF along the path; let ICMP \"fragmentation needed\" through, or clamp the MSS to what passes there",
        bytes(passed),
        bytes(least)
    ));
    let (severity, confidence) = if is_pattern {
        ("CRITICAL", 0.9)
    } else {
        ("WARNING", 0.6)
    };
    finding(
        "MTU_BLACK_HOLE",
        severity,
        confidence,
        format!(
            "Segments of {} bytes and more from {from} never reach {to}, smaller ones do",
            bytes(least)
        ),
        evidence,
        stuck,
        &[
            ("smallestLost", f64::from(*least)),
            ("largestPassed", f64::from(*passed)),
            ("connections", hit as f64),
            ("costSeconds", cost),
        ],
    )
}
