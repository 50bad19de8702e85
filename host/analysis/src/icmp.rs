//! ICMP errors about connections: something on the way says why it did not pass a packet (`docs/src/findings.md`).
//! Memory: [`KINDS`] kinds.

use weir_messages::v1;
use weir_record::Event;

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::message::seconds;
use crate::numbers::{connections, count, decimal, several};
use crate::resets::hops;
use crate::seq::Range;

/// Kinds that are told apart.
const KINDS: usize = 16;
/// The same segment was refused so often: its sender does not heed that (RFC 1191 3: it must at once).
const UNHEEDED: u32 = 3;
/// Packets that are known as too large, the newest.
const TOO_LARGE: usize = 16;

/// What the message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Prohibited,
    TooBig,
    Unreachable,
    Loop,
    Other,
}

/// The messages of RFC 792, RFC 1812 5.2.7.1 and RFC 4443: IPv6, type, code.
const MESSAGES: [(bool, u8, u8, About, &str); 19] = [
    (false, 3, 0, About::Unreachable, "network unreachable"),
    (false, 3, 1, About::Unreachable, "host unreachable"),
    (false, 3, 2, About::Prohibited, "protocol unreachable"),
    (false, 3, 3, About::Prohibited, "port unreachable"),
    (false, 3, 4, About::TooBig, "fragmentation needed and DF set"),
    (false, 3, 9, About::Prohibited, "network administratively prohibited"),
    (false, 3, 10, About::Prohibited, "host administratively prohibited"),
    (
        false,
        3,
        13,
        About::Prohibited,
        "communication administratively prohibited",
    ),
    (false, 11, 0, About::Loop, "time to live exceeded in transit"),
    (false, 11, 1, About::Other, "fragment reassembly time exceeded"),
    (true, 1, 0, About::Unreachable, "no route to destination"),
    (
        true,
        1,
        1,
        About::Prohibited,
        "communication administratively prohibited",
    ),
    (true, 1, 3, About::Unreachable, "address unreachable"),
    (true, 1, 4, About::Prohibited, "port unreachable"),
    (
        true,
        1,
        5,
        About::Prohibited,
        "source address failed ingress or egress policy",
    ),
    (true, 1, 6, About::Prohibited, "reject route to destination"),
    (true, 2, 0, About::TooBig, "packet too big"),
    (true, 3, 0, About::Loop, "hop limit exceeded in transit"),
    (true, 3, 1, About::Other, "fragment reassembly time exceeded"),
];

/// Type and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    is_v6: bool,
    kind: u8,
    code: u8,
}

impl Message {
    fn known(self) -> Option<(About, &'static str)> {
        let is_this = |(is_v6, kind, code, ..): &&(bool, u8, u8, About, &str)| {
            (*is_v6, *kind, *code) == (self.is_v6, self.kind, self.code)
        };
        MESSAGES.iter().find(is_this).map(|(.., about, name)| (*about, *name))
    }

    fn about(self) -> About {
        self.known().map_or(About::Other, |(about, _)| about)
    }

    fn name(self) -> String {
        let version = if self.is_v6 { "ICMPv6" } else { "ICMP" };
        let number = format!("{version} type {}, code {}", self.kind, self.code);
        match self.known() {
            Some((_, name)) => format!("{name} ({number})"),
            None => number,
        }
    }
}

/// Errors about the packets of a connection, all like the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    message: Message,
    /// Whose packets they quote.
    side: usize,
    count: u64,
    ttl: u8,
    /// First and last, TAI ns.
    span: (u64, u64),
    /// The newest quoted, and how often in a row.
    seq: u32,
    same: u32,
    most: u32,
    /// First bytes of those that were too large.
    too_large: Recent,
}

/// The newest of some sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    seqs: [u32; TOO_LARGE],
    len: usize,
}

impl Recent {
    fn push(&mut self, seq: u32) {
        self.seqs[self.len % TOO_LARGE] = seq;
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        self.seqs.into_iter().take(self.len)
    }
}

impl Errors {
    pub fn new(side: usize, is_v6: bool, e: &Event, time: u64) -> Self {
        Self {
            message: Message {
                is_v6,
                kind: (e.length >> 8) as u8,
                code: e.length as u8,
            },
            side,
            count: 0,
            ttl: e.ttl,
            span: (time, time),
            seq: e.seq,
            same: 0,
            most: 0,
            too_large: Recent::default(),
        }
    }

    /// One more, or the first.
    pub fn add(&mut self, side: usize, e: &Event, time: u64) {
        let is_like = side == self.side && e.length == u32::from(self.message.kind) << 8 | u32::from(self.message.code);
        if !is_like {
            return;
        }
        self.count += 1;
        self.span.1 = time;
        self.same = if e.seq == self.seq { self.same + 1 } else { 1 };
        self.seq = e.seq;
        self.most = self.most.max(self.same);
        if self.message.about() == About::TooBig {
            self.too_large.push(e.seq);
        }
    }

    /// Whether something of `range`, which this side sent, was in a packet that was too large; `segment`: payload of a full one, which those are.
    pub fn is_too_large(&self, side: usize, range: Range, segment: u32) -> bool {
        let held = |seq: u32| {
            let packet = Range {
                from: seq,
                to: seq.wrapping_add(segment),
            };
            packet.overlap(range) > 0
        };
        side & 1 == self.side && self.too_large.iter().any(held)
    }

    /// What they say of a SYN that nothing else answered.
    pub fn explain(&self) -> Option<String> {
        (self.side == 0).then(|| {
            format!(
                "No answer to the SYN passed the tap but an ICMP error: {}.",
                self.message.name()
            )
        })
    }
}

/// Connections with errors of one kind.
#[derive(Clone, Debug)]
struct Kind {
    message: Message,
    group: Group,
    errors: u64,
    /// Their setups failed; they sent on what was refused; and what either took, ns.
    failed: u64,
    unheeded: u64,
    ns: u64,
    /// Of the client's packets.
    by_client: u64,
    /// TTL of the first.
    ttl: u8,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Icmp {
    kinds: Vec<Kind>,
}

impl Icmp {
    /// A connection is over; whether an ICMP error told its client why its setup failed.
    pub fn connection(&mut self, flow: &Flow, has_failed: bool) -> bool {
        let Some(errors) = flow.extras.errors() else {
            return false;
        };
        let known = self.kinds.iter().position(|kind| kind.message == errors.message);
        let at = match known {
            Some(at) => at,
            None if self.kinds.len() < KINDS => {
                self.kinds.push(Kind {
                    message: errors.message,
                    group: Group::default(),
                    errors: 0,
                    failed: 0,
                    unheeded: 0,
                    ns: 0,
                    by_client: 0,
                    ttl: errors.ttl,
                });
                self.kinds.len() - 1
            }
            None => return false,
        };
        let kind = &mut self.kinds[at];
        kind.group.include(flow.id, errors.span.0, errors.span.1);
        kind.errors += errors.count;
        kind.by_client += u64::from(errors.side == 0);
        let is_told = has_failed && errors.side == 0;
        let ns = if is_told {
            kind.failed += 1;
            flow.setup.end_ns().unwrap_or(0)
        } else if errors.most >= UNHEEDED {
            kind.unheeded += 1;
            errors.span.1 - errors.span.0
        } else {
            0
        };
        kind.ns = kind.ns.saturating_add(ns);
        is_told
    }

    pub fn findings(&self) -> impl Iterator<Item = v1::Finding> {
        self.kinds.iter().map(tell)
    }
}

fn tell(kind: &Kind) -> v1::Finding {
    let n = kind.group.count();
    let (about, name) = (kind.message.about(), kind.message.name());
    let hops = hops(kind.ttl);
    let whose = match (kind.by_client, n - kind.by_client) {
        (_, 0) => "the clients",
        (0, _) => "the servers",
        _ => "either side",
    };
    let mut evidence = vec![format!(
        "{} answered packets of {whose} in {}: {name}; the first came from {} away, as its TTL of {} tells",
        several(kind.errors, "error", "errors"),
        connections(n),
        several(hops.into(), "hop", "hops"),
        kind.ttl
    )];
    let cost = seconds(kind.ns);
    if kind.failed > 0 {
        evidence.push(format!(
            "{} of these connections did not come about; their clients tried for {} s in all",
            count(kind.failed),
            decimal(cost, 3)
        ));
    }
    if kind.unheeded > 0 {
        evidence.push(format!(
            "in {} the same packet was refused {UNHEEDED} times or more: its sender does not heed this",
            count(kind.unheeded)
        ));
    }
    evidence.push("it may also be an error that somebody else forged (RFC 5927)".to_owned());
    let next = match about {
        About::Prohibited => {
            "next: the rules of the firewall, router or host that says so (its address is in these packets): it refuses this on purpose"
        }
        About::TooBig if kind.unheeded > 0 => {
            "next: see why the sender does not make its packets smaller: a firewall before it that drops these errors, or path MTU discovery that is off while DF is set; a smaller MSS helps as well (RFC 1191, RFC 4821)"
        }
        About::TooBig => {
            "next: nothing where the sender then made its packets smaller, as path MTU discovery does (RFC 1191)"
        }
        About::Unreachable => {
            "next: the route to that address at the router that says so, and whether the host is there"
        }
        About::Loop => "next: a routing loop: follow the route from both sides (traceroute)",
        About::Other => "next: what the host that says so has in its log",
    };
    evidence.push(next.to_owned());
    let severity = match about {
        _ if kind.failed + kind.unheeded > 0 => "CRITICAL",
        About::TooBig => "INFO",
        _ => "WARNING",
    };
    v1::Finding {
        who: name.clone(),
        ..finding(
            "ICMP_ERRORS",
            severity,
            0.95,
            format!("Something on the way refused packets of {}: {name}", connections(n)),
            evidence,
            &kind.group,
            &[
                ("connections", n as f64),
                ("errors", kind.errors as f64),
                ("type", kind.message.kind.into()),
                ("code", kind.message.code.into()),
                ("failed", kind.failed as f64),
                ("unheeded", kind.unheeded as f64),
                ("hops", hops.into()),
                ("costSeconds", cost),
            ],
        )
    }
}
