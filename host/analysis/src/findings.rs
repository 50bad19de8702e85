//! What an expert would point out of the whole input (`docs/src/findings.md`).

use weir_messages::v1;
use weir_record::CloseCause;

use crate::ceilings::{LIGHT, Mishap, at_unscaled_most, is_stuck, mishap, sender_bytes};
use crate::closing::{Kind, closing};
use crate::flow::Flow;
use crate::given::Given;
use crate::group::{Group, finding};
use crate::icmp::Icmp;
use crate::limits::Cause;
use crate::marks::Marks;
use crate::message::{Failure, address, failed, period, seconds};
use crate::numbers::{connections, count, decimal, duration, lasting, several};
use crate::quality::Quality;
use crate::refusals::Refusals;
use crate::resets::{FORGOTTEN, Resets};
use crate::setup::{Outcome, Unscaled};
use crate::shares::Measure;
use crate::stale::Stale;
use crate::surroundings::Surroundings;
use crate::turns::Finished;
use crate::unanswered::Unanswered;

/// Retransmission rate above which performance suffers (the 0.5 % line of Microsoft's TCP
/// performance method).
pub const RETRANSMISSION_LINE: f64 = 0.005;
/// Ten times the line: severe.
pub const RETRANSMISSION_SEVERE: f64 = 0.05;
/// Data packets at which a rate is believed by half.
const RATE_HALF_CONFIDENCE: f64 = 50.0;
/// Closed windows that cost less than this in all are not worth a finding, s.
const WINDOW_SECONDS: f64 = 0.01;

/// Hosts whose windows are counted apart, and those that are named.
const WINDOW_HOSTS: usize = 64;
const NAMED_HOSTS: usize = 5;

/// A host whose windows held its peers.
#[derive(Clone, Copy, Debug, Default)]
struct WindowHost {
    address: [u8; 16],
    connections: u64,
    ns: u64,
    /// Of those connections, TAI ns.
    start: u64,
    end: u64,
}

/// The first [`WINDOW_HOSTS`] of them.
#[derive(Clone, Debug, Default)]
struct WindowHosts(Vec<WindowHost>);

impl WindowHosts {
    /// The windows of `side` held its peer for so many ns.
    fn add(&mut self, flow: &Flow, side: usize, ns: u64) {
        let ends = flow.ends();
        let address = if side == 0 { ends.client } else { ends.server };
        let known = self.0.iter().position(|host| host.address == address);
        let at = match known {
            Some(at) => at,
            None if self.0.len() < WINDOW_HOSTS => {
                self.0.push(WindowHost {
                    address,
                    start: flow.first,
                    ..WindowHost::default()
                });
                self.0.len() - 1
            }
            None => return,
        };
        let host = &mut self.0[at];
        host.connections += 1;
        host.ns = host.ns.saturating_add(ns);
        host.start = host.start.min(flow.first);
        host.end = host.end.max(flow.last);
    }

    /// Those to be named, longest first.
    fn most(&self) -> Vec<WindowHost> {
        let mut hosts = self.0.clone();
        hosts.sort_by_key(|host| std::cmp::Reverse((host.ns, host.address)));
        hosts.truncate(NAMED_HOSTS);
        hosts
    }

    /// In sentences.
    fn told(&self) -> impl Iterator<Item = String> {
        self.most().into_iter().map(|host| {
            format!(
                "{} did so for {} in {}, {}",
                address(host.address),
                lasting(seconds(host.ns)),
                connections(host.connections),
                period(host.start, host.end)
            )
        })
    }

    /// The value of a finding.
    fn names(&self) -> v1::FindingValue {
        let names: Vec<String> = self.most().iter().map(|host| address(host.address)).collect();
        names.join(", ").as_str().into()
    }
}

/// Data packets and repeats of one direction, over all connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    pub data: u64,
    pub repeated: u64,
    /// Of these, those of connections that ended in silence.
    in_vain: u64,
}

impl Rate {
    pub fn value(self) -> f64 {
        if self.data == 0 {
            0.0
        } else {
            self.repeated as f64 / self.data as f64
        }
    }

    pub fn add(&mut self, other: Self) {
        self.data += other.data;
        self.repeated += other.repeated;
        self.in_vain += other.in_vain;
    }

    /// Where all are gone, each of them says nothing of single ones.
    fn of_living(self) -> Self {
        let in_vain = self.in_vain.min(self.repeated);
        Self {
            data: self.data - in_vain,
            repeated: self.repeated - in_vain,
            in_vain: 0,
        }
    }
}

/// Transfers that one limit held.
#[derive(Clone, Debug, Default)]
struct Limited {
    group: Group,
    ns: u64,
    /// Of that, because of queues, what windows and send buffers were full for as well.
    queued_ns: u64,
    /// Connections whose receivers' windows have a scale that was not seen, and their part of the time, ns.
    unscaled: u64,
    unscaled_ns: u64,
    /// Whose windows are as large as they can be without a scale, which the handshakes lack, and their part of the time, ns.
    full: [u64; UNAGREED.len()],
    full_ns: u64,
    /// Of the connection that it cost most: ns, bytes in flight (or bytes/s), round trips.
    most: (u64, f64, Measure),
}

/// Who left the window scale out (RFC 7323 2.2), and what an expert makes of it.
const UNAGREED: [(Unscaled, &str); 3] = [
    (
        Unscaled::Server,
        "the client offered it and the server did not answer it: the server does not scale (also one that answers by SYN cookies without timestamps), or a firewall or load balancer between takes the option out",
    ),
    (
        Unscaled::Client,
        "the SYN has none at the tap, and the SYN-ACK answers one: a box between the client and the server changes the option",
    ),
    (
        Unscaled::Both,
        "the client does not offer it: its system is set so or too old for it, or a box before the tap takes the option out",
    ),
];

/// Kinds of findings about limits, what they are about, the key of their value, what else it may be, and what to do.
const LIMITS: [(&str, &str, &str, [&str; 2]); 3] = [
    (
        "SENDER_LIMITED",
        "The senders' buffers held transfers",
        "bytes",
        [
            "it may also be an application that writes a fixed amount and waits for its acknowledgment",
            "next: raise the sender's buffer (SO_SNDBUF or its autotuning limit) to the rate wanted times the round trip",
        ],
    ),
    (
        "RECEIVER_LIMITED",
        "The receivers' windows held transfers",
        "bytes",
        [
            "it may also be a receiving application that reads slowly: its windows would then go up and down",
            "next: raise the receiver's buffer (SO_RCVBUF or its autotuning limit) to the rate wanted times the round trip",
        ],
    ),
    (
        "BANDWIDTH_LIMITED",
        "The link was busy",
        "bitsPerSecond",
        [
            "it may also be a shaper or a policer with that rate, below the link's own",
            "next: a faster link, less data (compression, caching), or other times for bulk transfers",
        ],
    ),
];
/// A limit is worth pointing out from this time and this share of its direction's transfers on.
const LIMIT_LEAST: u64 = 100_000_000;
const LIMIT_SHARE: u64 = 4;
/// Of one transfer in so many, or one second of them, a limit is less sure: each has a small chance to be told wrongly.
const LIMIT_SELDOM: u64 = 100;
/// Turns from which on a connection's latency is worth pointing out, and the share of its time.
const CHATTY_TURNS: u32 = 10;
const CHATTY_SHARE: u64 = 3;
/// The same with users' thinking: who thinks for minutes does not wait for round trips.
const CHATTY_WHOLE: u64 = 10;
/// Application bytes of a turn below which a connection works byte by byte, and turns from which on that matters.
const TINY_BYTES: u64 = 64;
const TINY_TURNS: u32 = 100;

/// Everything that findings are made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    ignored: Group,
    reset: Group,
    refused: Group,
    refusals: Refusals,
    icmp: Icmp,
    /// Of the ignored, those whose client was told why by an ICMP error.
    told_why: u64,
    stale: Stale,
    marks: Marks,
    /// From the first SYN of those that failed until they did, ns, and those of which that is known.
    failed_ns: u64,
    failed_timed: u64,
    /// Of the reset: those whose later SYN had no window scale.
    scale_dropped: u64,
    repeating: Group,
    zero_window: Group,
    zero_ns: u64,
    zero_longest: (u64, u64),
    zero_hosts: WindowHosts,
    small_window: Group,
    small_ns: u64,
    small_hosts: WindowHosts,
    silly: Group,
    silly_ns: u64,
    silly_openings: u64,
    silly_pieces: u64,
    missed: Group,
    missed_segments: u64,
    mishap: Group,
    mishap_shift: u8,
    mishap_stripped: u64,
    mishap_ignored: u64,
    mishap_unheard: u64,
    /// Connections whose windows stayed below a segment, by whatever cause.
    stuck: u64,
    /// Waits for the windows that a wrong scale left.
    mishap_ns: u64,
    limited: [Limited; LIMITS.len()],
    /// Transfers that a limit could have held so long, and their time, ns.
    transfers: u64,
    transfers_ns: u64,
    chatty: Group,
    /// Round trip and bytes of a turn of the connection that lost most to latency, and what it lost, ns.
    chatty_most: (u64, u64, u64),
    /// What all of them lost, ns.
    chatty_ns: u64,
    tiny: Group,
    tiny_turns: u64,
    tiny_ns: u64,
    quality: Quality,
    abortive: Group,
    abortive_by: [u64; 2],
    after_fin: u64,
    resets: Resets,
    /// Of the abortive, those that something on the path reset.
    foreign: u64,
    /// Of them, those with a request that had no answer, by who sent the RST; and of these, those that had been idle before it.
    unanswered_by: [u64; 2],
    unanswered_idle: u64,
    /// Of those by the server, the ones that something on the path sent.
    unanswered_foreign: u64,
    pub unanswered: Unanswered,
    established: u64,
    pub rates: [Rate; 2],
}

impl Findings {
    /// A connection is over (`cause`), or the input is. `last`: its last transaction.
    pub fn connection(&mut self, flow: &Flow, cause: Option<CloseCause>, last: Option<&Finished>, given: Given) {
        let (kind, _) = closing(flow, cause);
        let failure = failed(kind, flow);
        match failure {
            Some(Failure::Ignored) => self.ignored.add(flow),
            Some(Failure::Reset) => self.reset.add(flow),
            Some(Failure::Refused) => {
                self.refused.add(flow);
                self.refusals.refused(&flow.ends(), flow.first, flow.last);
            }
            None if matches!(flow.setup.outcome, Outcome::Ok | Outcome::Retransmitted) => {
                self.refusals.accepted(|| flow.ends());
            }
            None => {}
        }
        let is_told = self.icmp.connection(flow, failure.is_some());
        self.told_why += u64::from(is_told && failure == Some(Failure::Ignored));
        if failure.is_some()
            && let Some(ns) = flow.setup.end_ns()
        {
            self.failed_ns = self.failed_ns.saturating_add(ns);
            self.failed_timed += 1;
        }
        let trouble = flow.extras.trouble();
        if failure.is_some() && trouble.is_some_and(|t| t.scale_dropped) {
            self.scale_dropped += 1;
        }
        self.quality.connection(flow);
        self.marks.connection(flow);
        self.rates(flow);
        self.windows(flow);
        self.limits(flow, given);
        let missed = flow.counts(0).missed + flow.counts(1).missed;
        if missed > 0 {
            self.missed.add(flow);
            self.missed_segments += missed;
        }
        let established = matches!(
            flow.setup.outcome,
            Outcome::Ok | Outcome::Retransmitted | Outcome::Midstream
        ) && failure.is_none();
        self.established += u64::from(established);
        if established {
            self.unanswered
                .connection(flow, kind, last.and_then(|last| last.unanswered));
        }
        let is_stale = established && last.is_some_and(|last| self.stale.is_asked(flow, last));
        let is_foreign = established && self.resets.is_foreign(flow, last);
        let fins = usize::from(flow.sent_fin(0)) + usize::from(flow.sent_fin(1));
        let resets = [flow.sent_rst(0), flow.sent_rst(1)];
        if established && resets != [false; 2] && fins < 2 && kind != Kind::Refused {
            self.abortive.add(flow);
            self.foreign += u64::from(is_foreign);
            self.after_fin += u64::from(fins == 1);
            for (count, reset) in self.abortive_by.iter_mut().zip(resets) {
                *count += u64::from(reset);
            }
            // Behind its own FIN a client waits for nothing: the last that it sends is often TLS's notice of closing.
            let waits = |last: &&Finished| {
                last.request_bytes > 0 && last.response.is_none() && !last.overlapped && !flow.sent_fin(0)
            };
            if let Some(last) = last.filter(waits).filter(|_| !is_stale) {
                self.unanswered_by[usize::from(resets[1])] += 1;
                self.unanswered_foreign += u64::from(resets[1] && is_foreign);
                self.unanswered_idle += u64::from(last.client.is_some_and(|idle| idle >= FORGOTTEN));
            }
        }
    }

    fn rates(&mut self, flow: &Flow) {
        let mut own = Rate::default();
        for side in 0..2 {
            let rate = Rate {
                data: flow.data_packets(side),
                repeated: flow.counts(side).retransmitted_data,
                in_vain: flow.extras.trouble().map_or(0, |trouble| trouble.in_vain[side]),
            };
            self.rates[side].add(rate);
            own.add(rate);
        }
        if own.repeated > 0 && own.value() > RETRANSMISSION_LINE {
            self.repeating.add(flow);
        }
    }

    fn windows(&mut self, flow: &Flow) {
        let Some(trouble) = flow.extras.trouble() else { return };
        let (mut zero, mut small) = (0u64, 0u64);
        let charged = |side: usize, cause| flow.extras.limits().map_or(0, |l| l.sides[side].total.by.of(cause));
        for side in 0..2 {
            // While nothing waits, a closed window costs nothing.
            let closed = &trouble.closed[side];
            let own = charged(1 - side, Cause::ZeroWindow)
                .max(closed.zero_asked)
                .min(closed.zero);
            if own > 0 {
                self.zero_hosts.add(flow, side, own);
            }
            zero = zero.saturating_add(own);
            let own = charged(1 - side, Cause::SmallWindow);
            if own > 0 {
                self.small_hosts.add(flow, side, own);
            }
            small = small.saturating_add(own);
        }
        if zero > 0 {
            self.zero_window.add(flow);
            self.zero_ns = self.zero_ns.saturating_add(zero);
            if zero > self.zero_longest.0 {
                self.zero_longest = (zero, flow.id.0);
            }
        }
        if small > 0 {
            self.small_window.add(flow);
            self.small_ns = self.small_ns.saturating_add(small);
        }
    }

    /// What held the connection's transfers, and its turns.
    fn limits(&mut self, flow: &Flow, given: Given) {
        // Most flows had one flight and no trouble; their round trips need not be looked up.
        if flow.extras.limits().is_some() || flow.extras.trouble().is_some() {
            self.transfers(flow, given);
        }
        let Some(turn) = &flow.turn else { return };
        let turns = turn.shares().answered - turn.shares().crossed;
        if turns < CHATTY_TURNS {
            return;
        }
        let time = turn.time();
        let payload = flow.directions[0].payload.saturating_add(flow.directions[1].payload);
        let bytes = payload / u64::from(turns);
        if turns >= TINY_TURNS && bytes < TINY_BYTES {
            self.tiny.add(flow);
            self.tiny_turns += u64::from(turns);
            self.tiny_ns = self.tiny_ns.saturating_add(time.latency);
        }
        let own = time.total().saturating_sub(time.think);
        let share = (own / CHATTY_SHARE).max(time.total() / CHATTY_WHOLE);
        if time.latency >= LIMIT_LEAST && time.latency >= share {
            self.chatty.add(flow);
            self.chatty_ns = self.chatty_ns.saturating_add(time.latency);
            if time.latency > self.chatty_most.2 {
                let trip = flow.measure(given).path_trip().unwrap_or(0);
                self.chatty_most = (trip, bytes, time.latency);
            }
        }
    }

    /// What held its transfers.
    fn transfers(&mut self, flow: &Flow, given: Given) {
        let m = flow.measure(given);
        let mut told = None;
        for side in 0..2 {
            let silly = flow.extras.limits().map(|l| l.sides[side].silly);
            if let Some(silly) = silly.filter(|silly| silly.openings > 0) {
                self.silly.add(flow);
                self.silly_ns = self.silly_ns.saturating_add(silly.ns);
                self.silly_openings += u64::from(silly.openings);
                self.silly_pieces += u64::from(silly.pieces);
            }
            self.stuck += u64::from(is_stuck(flow, side));
            if let Some(mishap) = mishap(flow, side, &m) {
                let before = self.mishap.count();
                self.mishap.add(flow);
                let is_first = self.mishap.count() > before;
                // A client that does not know of the scale neither applies its own nor the server's: that shows what it cost.
                let shows_more = matches!((told, mishap), (Some(Mishap::Ignored(_)), Mishap::Unheard(_)));
                if is_first || shows_more {
                    let (Mishap::Applied(shift)
                    | Mishap::Stripped(shift)
                    | Mishap::Ignored(shift)
                    | Mishap::Unheard(shift)) = mishap;
                    self.mishap_shift = shift;
                    self.mishap_stripped += u64::from(matches!(mishap, Mishap::Stripped(_)));
                    self.mishap_ignored += u64::from(matches!(mishap, Mishap::Ignored(_)));
                    self.mishap_ignored -= u64::from(shows_more);
                    self.mishap_unheard += u64::from(matches!(mishap, Mishap::Unheard(_)));
                }
                told = Some(mishap);
                if let (true, Some(limits)) = (mishap.is_in_windows(), flow.extras.limits()) {
                    let waited = limits.sides[1 - side].total.by.receiver();
                    self.mishap_ns = self.mishap_ns.saturating_add(waited);
                }
            }
            let Some(limits) = flow.extras.limits() else { continue };
            let t = &limits.sides[side];
            let by = &t.total.by;
            if by.sum() >= LIMIT_LEAST {
                self.transfers += 1;
                self.transfers_ns = self.transfers_ns.saturating_add(by.sum());
            }
            let rate = given.link.or(t.link()).unwrap_or(0.0);
            // What is full because most of the round trip is a queue would only make that longer.
            let (window, buffer) = (t.total.queued_window, t.total.queued_buffer);
            let costs = [
                (
                    by.of(Cause::SendBuffer).saturating_sub(buffer),
                    f64::from(sender_bytes(flow, side).unwrap_or(0)),
                    0,
                ),
                (
                    by.of(Cause::ReceiverWindow).saturating_sub(window),
                    f64::from(t.receiver_bytes),
                    0,
                ),
                (t.total.busy(), rate * 8.0, window.saturating_add(buffer)),
            ];
            for (limited, (ns, value, queued)) in self.limited.iter_mut().zip(costs) {
                if ns < LIMIT_LEAST || ns < by.sum() / LIMIT_SHARE || value == 0.0 {
                    continue;
                }
                limited.group.add(flow);
                limited.ns = limited.ns.saturating_add(ns);
                limited.queued_ns = limited.queued_ns.saturating_add(queued);
                if flow.setup.scale(1 - side).is_none() {
                    limited.unscaled += 1;
                    limited.unscaled_ns = limited.unscaled_ns.saturating_add(ns);
                }
                if let Some(by) = at_unscaled_most(flow, 1 - side) {
                    for (n, (who, _)) in limited.full.iter_mut().zip(UNAGREED) {
                        *n += u64::from(who == by);
                    }
                    limited.full_ns = limited.full_ns.saturating_add(ns);
                }
                if ns > limited.most.0 {
                    limited.most = (ns, value, m);
                }
            }
        }
    }

    fn scale_mishaps(&self) -> Option<v1::Finding> {
        let elsewhere = self.mishap_stripped + self.mishap_ignored + self.mishap_unheard;
        let mut applied = self.mishap.count() - elsewhere;
        // A box scales the windows of all; those of a receiver without room meet a power of two by chance.
        if 2 * applied < self.stuck {
            applied = 0;
        }
        let is_seen = applied + self.mishap_stripped + self.mishap_unheard > 0;
        if !is_seen && self.mishap_ignored == 0 {
            return None;
        }
        let shift = self.mishap_shift;
        let mut evidence = Vec::new();
        let mut values = vec![("shift", f64::from(shift))];
        if applied > 0 {
            evidence.push(format!(
                "{}: windows fell to 1/{} right after the start and stayed, without data to fill them: a box scales by {shift} or more although the handshake says otherwise",
                connections(applied),
                1u32 << shift
            ));
        }
        if self.mishap_unheard > 0 {
            evidence.push(format!(
                "{}: the sender goes on in pieces of exactly as many bytes as the field of the window says, which its receiver means 2^{shift} times as large: it does not know of the scale that the handshake shows at the tap; the option was taken out on its way to it",
                connections(self.mishap_unheard),
            ));
        }
        // A scale that only the tap does not see costs nothing.
        if applied + self.mishap_unheard > 0 {
            values.push(("costSeconds", seconds(self.mishap_ns)));
            evidence.push(format!(
                "senders waited {} s in all for such windows there",
                decimal(seconds(self.mishap_ns), 3)
            ));
        }
        if self.mishap_stripped > 0 {
            evidence.push(format!(
                "{}: more in flight than an unscaled window can allow: the peers use a scale (at least {shift}) that the handshake at the tap does not show; the option was taken out before it",
                connections(self.mishap_stripped)
            ));
        }
        if self.mishap_ignored > 0 {
            evidence.push(format!(
                "{}: the client's first ACK offers as much as its SYN, unscaled, which would be {} times as much by the scale that both agree on at the tap: the client does not scale, its SYN-ACK lost the option behind the tap. The server may send more than there is room for, and the client takes the server's windows for too small",
                connections(self.mishap_ignored),
                1u32 << shift
            ));
        }
        evidence.push(if is_seen {
            "it may also be a receiver that really has so little room from then on: its windows would then close at other times, too".to_owned()
        } else {
            "it may also be clients that have so large buffers: a tap at the client shows its SYN-ACK".to_owned()
        });
        evidence.push(
            "next: find the box that takes out or ignores the window scale option (firewall, load balancer, old router): compare the SYNs on both sides of it".to_owned(),
        );
        Some(finding(
            "WINDOW_SCALE_MISHAP",
            if is_seen { "CRITICAL" } else { "WARNING" },
            if is_seen { 0.9 } else { 0.7 },
            "A window scale is not applied as agreed".to_owned(),
            evidence,
            &self.mishap,
            &values,
        ))
    }

    fn limited(&self, which: usize) -> Option<v1::Finding> {
        let limited = &self.limited[which];
        let (kind, title, key, otherwise) = LIMITS[which];
        let (ns, value, m) = limited.most;
        let trip = m.path_trip().unwrap_or(0);
        if limited.group.count() == 0 {
            return None;
        }
        let cost = seconds(limited.ns);
        let mut evidence = vec![format!(
            "{} waited {} s in all; most: {} s",
            connections(limited.group.count()),
            decimal(cost, 3),
            decimal(seconds(ns), 3)
        )];
        let rate = if key == "bytes" {
            evidence.push(format!(
                "no more than {} bytes were in flight there, for no other reason",
                decimal(value, 0)
            ));
            (trip > 0).then(|| value * 8.0 / seconds(trip))
        } else {
            Some(value)
        };
        if let Some(rate) = rate {
            let path = if trip > 0 {
                let which = if m.is_given() { "given" } else { "smallest" };
                format!(" over the {which} round trip, {}", duration(trip))
            } else {
                String::new()
            };
            evidence.push(format!("that is {} Mbit/s at most{path}", decimal(rate / 1e6, 2)));
        }
        if limited.queued_ns >= LIMIT_LEAST {
            evidence.push(format!(
                "in {} s windows or send buffers were full as well, because of a queue that never ran empty: larger ones would make that longer, and nothing faster",
                decimal(seconds(limited.queued_ns), 3)
            ));
        }
        let count = limited.group.count();
        let is_seldom =
            LIMIT_SELDOM * count < self.transfers && LIMIT_SELDOM.saturating_mul(limited.ns) < self.transfers_ns;
        if is_seldom {
            evidence.push(format!(
                "seldom: {count} of {} transfers, {} s of {} s: so few may be told wrongly",
                self.transfers,
                decimal(cost, 3),
                decimal(seconds(self.transfers_ns), 0)
            ));
        }
        if limited.unscaled > 0 {
            evidence.push(format!(
                "the handshakes of {} were not seen, so the scale of their receivers' windows is not known: {}",
                connections(limited.unscaled),
                if kind == "RECEIVER_LIMITED" {
                    "it is inferred, as what was in flight fills a window of one scale; a send buffer of that size looks the same"
                } else {
                    "these may have been full"
                }
            ));
        }
        let is_unsure = is_seldom || 2 * limited.unscaled_ns > limited.ns;
        let mut values = vec![
            (key, value),
            ("seconds", cost),
            ("costSeconds", cost),
            ("rttSeconds", seconds(trip)),
            ("ceilingBitsPerSecond", rate.unwrap_or(0.0)),
        ];
        let [mut may_be, mut next] = otherwise;
        if kind == "RECEIVER_LIMITED" && limited.full_ns > 0 {
            values.push(("withoutScaling", limited.full.iter().sum::<u64>() as f64));
            evidence.push(format!(
                "{} s of it are of windows that are as large as they can be without scaling, 65,535 bytes, whatever the buffer is (RFC 7323): the handshake has no window scale on both sides",
                decimal(seconds(limited.full_ns), 3)
            ));
            let told = limited.full.iter().zip(UNAGREED).filter(|(n, _)| **n > 0);
            evidence.extend(told.map(|(n, (_, why))| format!("in {}: {why}", connections(*n))));
            if 2 * limited.full_ns >= limited.ns {
                may_be =
                    "it may also be that the receiver's buffer is no larger than that, either: then both are needed";
                next = "next: let both ends agree on window scaling (capture the SYN and the SYN-ACK at both ends to see who leaves it out): without it a larger buffer (SO_RCVBUF) changes nothing; several connections side by side do";
            }
        }
        evidence.extend([may_be, next].map(str::to_owned));
        Some(finding(
            kind,
            "WARNING",
            if is_unsure { 0.5 } else { 0.8 },
            format!("{title} for {} s", decimal(cost, 3)),
            evidence,
            &limited.group,
            &values,
        ))
    }

    /// Turns that each cost a round trip: fatter pipes do not help (SMB's 61 K blocks at 40 ms and more).
    fn latency_bound(&self) -> Option<v1::Finding> {
        if self.chatty.count() == 0 {
            return None;
        }
        let (trip, bytes, lost) = self.chatty_most;
        let ceiling = bytes as f64 * 8.0 / seconds(trip).max(1e-9);
        let evidence = vec![
            format!(
                "{} spent a third of the time or more on round trips of turns; most: {:.3} s",
                connections(self.chatty.count()),
                seconds(lost)
            ),
            format!(
                "{} application bytes a turn over {:.1} ms: {:.3} Mbit/s at most, however fast the link is; a window of that size is all it uses",
                count(bytes),
                seconds(trip) * 1e3,
                ceiling / 1e6
            ),
            format!(
                "light in fibre gets {} km there and back in that time: only a shorter path or fewer turns help",
                decimal(seconds(trip) / 2.0 * LIGHT, 0)
            ),
            format!(
                "{} s of round trips in all of them",
                decimal(seconds(self.chatty_ns), 3)
            ),
            "it may also be a server that asks others for each answer: only a capture behind it tells".to_owned(),
            "next: fewer turns, larger requests or several at once; or a shorter path. A faster link changes nothing"
                .to_owned(),
        ];
        Some(finding(
            "LATENCY_BOUND",
            "WARNING",
            0.9,
            format!("{} waited for round trips", connections(self.chatty.count())),
            evidence,
            &self.chatty,
            &[
                ("rttSeconds", seconds(trip)),
                ("ceilingBitsPerSecond", ceiling),
                ("bytesPerTurn", bytes as f64),
                ("lightKilometres", seconds(trip) / 2.0 * LIGHT),
                ("costSeconds", seconds(self.chatty_ns)),
            ],
        ))
    }

    fn tiny_turns(&self) -> Option<v1::Finding> {
        if self.tiny.count() == 0 {
            return None;
        }
        Some(finding(
            "ONE_BYTE_APPLICATION",
            "WARNING",
            0.9,
            format!("{} carried a few bytes a turn", connections(self.tiny.count())),
            vec![
                format!(
                    "{} turns of fewer than {TINY_BYTES} application bytes: server and network look slow, the application asks too often",
                    count(self.tiny_turns)
                ),
                format!("{} s of round trips in all", decimal(seconds(self.tiny_ns), 3)),
                "it may also be somebody who types: a terminal sends each key".to_owned(),
                "next: let the application ask for more at a time".to_owned(),
            ],
            &self.tiny,
            &[
                ("turns", self.tiny_turns as f64),
                ("costSeconds", seconds(self.tiny_ns)),
            ],
        ))
    }

    /// Segments that were delivered but are not in the capture.
    pub const fn missed_segments(&self) -> u64 {
        self.missed_segments
    }

    /// The findings, in a fixed order.
    pub fn list(&self, around: &Surroundings) -> Vec<v1::Finding> {
        let mut out = Vec::new();
        // What says why goes before what failed.
        out.extend(self.icmp.findings());
        out.extend(self.failed_connections());
        out.extend(self.retransmission_rate());
        out.extend(self.zero_windows());
        out.extend(self.small_windows());
        out.extend(self.silly_windows());
        out.extend(self.scale_mishaps());
        out.extend((0..LIMITS.len()).filter_map(|which| self.limited(which)));
        out.extend(self.marks.finding());
        out.extend(self.latency_bound());
        out.extend(self.tiny_turns());
        out.extend(self.capture_loss(around));
        out.extend(self.abortive_close());
        out.extend(self.resets.finding());
        out.extend(self.stale.finding());
        out.extend(self.stale.amid());
        out.extend(self.unanswered.finding());
        out.extend(self.quality.finding(around));
        out
    }

    fn failed_connections(&self) -> Option<v1::Finding> {
        let mut all = Group::default();
        for group in [&self.ignored, &self.reset, &self.refused] {
            all.join(group);
        }
        if all.count() == 0 {
            return None;
        }
        let mut evidence = Vec::new();
        if self.ignored.count() > 0 {
            evidence.push(format!(
                "{} got no answer to any SYN (or did not answer the SYN-ACK) until the flow ended",
                connections(self.ignored.count())
            ));
        }
        if self.reset.count() > 0 {
            evidence.push(format!(
                "{} reset 1 s or more after the last SYN: the other side knew of the connection, so its SYN-ACKs were lost on the way back",
                connections(self.reset.count())
            ));
        }
        if self.refused.count() > 0 {
            evidence.push(format!(
                "{} refused at once: nothing listens there, or a firewall answers",
                connections(self.refused.count())
            ));
            evidence.extend(self.refusals.rows());
        }
        if self.scale_dropped > 0 {
            evidence.push(format!(
                "{} sent a later SYN without window scale: the client believed its first SYNs lost",
                connections(self.scale_dropped)
            ));
        }
        let cost = seconds(self.failed_ns);
        if self.failed_timed > 0 {
            evidence.push(format!(
                "{} from the first SYN to the RST, or until the next SYN was due, in {}",
                lasting(cost),
                connections(self.failed_timed)
            ));
        }
        let silent = self.ignored.count() + self.reset.count();
        if self.told_why > 0 {
            evidence.push(format!(
                "ICMP errors told the clients of {} why (ICMP_ERRORS)",
                count(self.told_why)
            ));
        }
        let (otherwise, next) = if silent > 0 && self.told_why == silent {
            (
                "it may also be errors that somebody else forged (RFC 5927)",
                "next: as for ICMP_ERRORS: something on the way says why it did not pass the SYNs",
            )
        } else if silent > 0 {
            (
                "it may also be a server that drops SYNs when its queue of connections is full, or a firewall that drops them on purpose",
                "next: find where SYN and SYN-ACK get lost: capture on the other side of every device between the tap and the server (load balancer, firewall, switch), and at the server; compare its listen queue and limits with the number of connections at those times",
            )
        } else {
            (
                "it may also be a firewall that answers for the server",
                "next: see whether the program listens there, when it stopped, and why its clients try on",
            )
        };
        evidence.extend([otherwise, next].map(str::to_owned));
        Some(finding(
            "FAILED_CONNECTIONS",
            if silent > 0 { "CRITICAL" } else { "WARNING" },
            // A SYN at the end of the input may have been answered later.
            if silent == 0 { 1.0 } else { 0.9 },
            format!("{} failed", connections(all.count())),
            evidence,
            &all,
            &[
                ("connections", all.count() as f64),
                ("ignored", self.ignored.count() as f64),
                ("reset", self.reset.count() as f64),
                ("refused", self.refused.count() as f64),
                ("costSeconds", cost),
            ],
        ))
    }

    fn retransmission_rate(&self) -> Option<v1::Finding> {
        let [client, server] = self.rates;
        let mut total = client;
        total.add(server);
        let rate = total.value();
        if rate <= RETRANSMISSION_LINE {
            return None;
        }
        let living = total.of_living().value();
        let mut evidence = vec![
            format!(
                "{} of {} data packets were sent again: {}; the line is {}",
                count(total.repeated),
                count(total.data),
                percent(rate),
                percent(RETRANSMISSION_LINE)
            ),
            format!(
                "client to server {} of {} ({}), server to client {} of {} ({})",
                count(client.repeated),
                count(client.data),
                percent(client.value()),
                count(server.repeated),
                count(server.data),
                percent(server.value())
            ),
            format!("above the line: {}", connections(self.repeating.count())),
        ];
        if total.in_vain > 0 {
            evidence.push(format!(
                "{} of them were sent into silence, on connections that were dead or whose segments were too large for the path (DEAD_CONNECTIONS, MTU_BLACK_HOLE): these tell of no loss of single packets; without them it is {}",
                count(total.in_vain),
                percent(living)
            ));
        }
        evidence.push(
            "it may also be repeats that were not needed, because ACKs were late or lost: their classes tell"
                .to_owned(),
        );
        evidence.push(if living > RETRANSMISSION_LINE {
            "next: find where it is lost: between which hosts and on which side of the tap is told with LOSS and PERIODIC_LOSS, where they were found, else at each connection; then look at the counters of errors and drops of the ports there"
        } else {
            "next: see why these connections fell silent: with DEAD_CONNECTIONS or MTU_BLACK_HOLE, where they were found"
        }.to_owned());
        Some(finding(
            "RETRANSMISSION_RATE",
            if living > RETRANSMISSION_SEVERE {
                "CRITICAL"
            } else if living > RETRANSMISSION_LINE {
                "WARNING"
            } else {
                "INFO"
            },
            total.data as f64 / (total.data as f64 + RATE_HALF_CONFIDENCE),
            format!("{} of the data packets are retransmissions", percent(rate)),
            evidence,
            &self.repeating,
            &[
                ("rate", rate),
                ("clientToServer", client.value()),
                ("serverToClient", server.value()),
            ],
        ))
    }

    fn zero_windows(&self) -> Option<v1::Finding> {
        let total = seconds(self.zero_ns);
        if self.zero_window.count() == 0 || total < WINDOW_SECONDS {
            return None;
        }
        let mut evidence = vec![
            format!(
                "receivers of {} announced a window of 0 for {} s in all while data waited: their applications did not read",
                connections(self.zero_window.count()),
                decimal(total, 3)
            ),
            format!(
                "longest: connection {} with {} s",
                self.zero_longest.1,
                decimal(seconds(self.zero_longest.0), 3)
            ),
        ];
        evidence.extend(self.zero_hosts.told());
        evidence.push(
            "it may also be buffers that are small for the rate of this path: an application that reads at once empties them too late".to_owned(),
        );
        evidence.push(
            "next: see why the receivers' applications did not read what had arrived (processor, disk, a lock, a slow consumer behind them)".to_owned(),
        );
        let mut found = finding(
            "ZERO_WINDOW",
            "WARNING",
            1.0,
            format!("Receivers stopped their senders for {} s", decimal(total, 3)),
            evidence,
            &self.zero_window,
            &[("seconds", total), ("costSeconds", total)],
        );
        found.values.insert("hosts".to_owned(), self.zero_hosts.names());
        Some(found)
    }

    fn small_windows(&self) -> Option<v1::Finding> {
        let total = seconds(self.small_ns);
        if self.small_window.count() == 0 || total < WINDOW_SECONDS {
            return None;
        }
        let mut evidence = vec![format!(
            "receivers of {} announced windows above 0 and below one segment for {} s in all: as bad as a closed window, and not marked as one by other tools",
            connections(self.small_window.count()),
            decimal(total, 3)
        )];
        evidence.extend(self.small_hosts.told());
        evidence.push("it may also be a buffer that is smaller than a segment or two".to_owned());
        evidence
            .push(self.window_advice("as for a closed window: see why the receivers' applications read too slowly"));
        let mut found = finding(
            "SMALL_WINDOW",
            "WARNING",
            0.9,
            format!("Windows below one segment for {} s", decimal(total, 3)),
            evidence,
            &self.small_window,
            &[("seconds", total), ("costSeconds", total)],
        );
        found.values.insert("hosts".to_owned(), self.small_hosts.names());
        Some(found)
    }

    /// What to do about small windows: where a wrong scale made most of them, no application is to blame.
    fn window_advice(&self, else_do: &str) -> String {
        if self.mishap_ns >= self.small_ns / 2 && self.mishap_ns > 0 {
            "next: mend the window scale first (WINDOW_SCALE_MISHAP): it made most of these windows small".to_owned()
        } else {
            format!("next: {else_do}")
        }
    }

    /// RFC 1122 4.2.3.3 and 4.2.3.4.
    fn silly_windows(&self) -> Option<v1::Finding> {
        let total = seconds(self.silly_ns);
        if self.silly.count() == 0 || total < WINDOW_SECONDS {
            return None;
        }
        let mut evidence = vec![format!(
            "receivers of {} opened their windows {} times by less than a segment and less than half of the window, three or more times in a row, while data waited",
            connections(self.silly.count()),
            count(self.silly_openings)
        )];
        if self.silly_pieces > 0 {
            evidence.push(format!(
                "their senders answered with {} below a segment: each costs a round trip or a timer",
                several(self.silly_pieces, "piece", "pieces")
            ));
        }
        evidence.push("it may also be a device in between that announces windows of its own".to_owned());
        evidence.push(
            self.window_advice(
                "let the receivers' applications read more at a time; a TCP that follows RFC 1122 does not announce such windows",
            ),
        );
        Some(finding(
            "SILLY_WINDOW",
            "WARNING",
            0.9,
            format!("Silly windows for {} s", decimal(total, 3)),
            evidence,
            &self.silly,
            &[
                ("seconds", total),
                ("costSeconds", total),
                ("openings", self.silly_openings as f64),
                ("pieces", self.silly_pieces as f64),
            ],
        ))
    }

    fn capture_loss(&self, around: &Surroundings) -> Option<v1::Finding> {
        let Surroundings {
            dropped,
            missing,
            inline,
            ..
        } = *around;
        if self.missed_segments == 0 && dropped == 0 && missing == 0 {
            return None;
        }
        let mut evidence = Vec::new();
        if self.missed_segments > 0 {
            evidence.push(format!(
                "{} of {} {}",
                several(self.missed_segments, "segment", "segments"),
                connections(self.missed.count()),
                match self.missed_segments {
                    1 => "was acknowledged by its receiver but is not in the capture",
                    _ => "were acknowledged by their receivers but are not in the capture",
                }
            ));
        }
        if dropped > 0 {
            let forwarded = if inline { ", which were not forwarded" } else { "" };
            evidence.push(format!(
                "the source says that it dropped {}{forwarded}",
                several(dropped, "frame", "frames")
            ));
        }
        if missing > 0 {
            evidence.push(format!(
                "{} records are missing: counters at the end of connections are right, classes of losses may not be",
                count(missing)
            ));
        }
        evidence.push(
            "it may also be segments that went another way: routes or links that share the load, of which one is not captured".to_owned(),
        );
        let (severity, title, next) = if inline && dropped > 0 {
            (
                "WARNING",
                "The inline appliance dropped frames: they are lost to the network, and not only to the capture",
                "next: give the appliance a CPU that nothing else uses, or take it out of the line; weir_inline_dropped_packets_total counts \
                 all that it did not forward",
            )
        } else {
            // Records do not tell whether what made them stood in the line.
            (
                "INFO",
                "The capture is not complete; what it lacks is not counted as loss of the network",
                "next: repeat the capture with a larger buffer, a snap length, or at a tap in place of a mirror port before trusting rates to \
                 the last digit",
            )
        };
        evidence.push(next.to_owned());
        Some(finding(
            "CAPTURE_LOSS",
            severity,
            1.0,
            title.to_owned(),
            evidence,
            &self.missed,
            &[
                ("packets", self.missed_segments.max(dropped) as f64),
                ("missedSegments", self.missed_segments as f64),
                ("sourceDropped", dropped as f64),
                ("recordsMissing", missing as f64),
            ],
        ))
    }

    fn abortive_close(&self) -> Option<v1::Finding> {
        if self.abortive.count() == 0 {
            return None;
        }
        let mut evidence = vec![format!(
            "{} of {} established connections ended with RST before both sides had sent FIN (client {}, server {})",
            count(self.abortive.count()),
            count(self.established),
            count(self.abortive_by[0]),
            count(self.abortive_by[1])
        )];
        if self.after_fin > 0 {
            evidence.push(format!(
                "in {} of them one side had sent FIN before",
                count(self.after_fin)
            ));
        }
        let [by_client, by_server] = self.unanswered_by;
        let unanswered = by_client + by_server;
        if unanswered > 0 {
            evidence.push(format!(
                "in {} a request had no answer yet: the client gave up in {}, in {} the RST came from the server, or from what stands before it",
                count(unanswered),
                count(by_client),
                count(by_server)
            ));
        }
        if self.unanswered_idle > 0 {
            evidence.push(format!(
                "{} of these requests came after {} s or more without data: firewalls and load balancers forget such connections (keep-alives prevent it)",
                count(self.unanswered_idle),
                FORGOTTEN / 1_000_000_000
            ));
        }
        if self.foreign > 0 {
            evidence.push(format!(
                "{} of them were reset by something on the path, most likely (FOREIGN_RST)",
                count(self.foreign)
            ));
        }
        evidence.push("it may also be on purpose: a RST frees the port at once, without TIME-WAIT".to_owned());
        let own = by_server - self.unanswered_foreign;
        evidence.push(
            if self.foreign == self.abortive.count() {
                "next: as for FOREIGN_RST"
            } else if own > 0 {
                "next: see why the server sends these RSTs, or a device before it that looks the same (those that do not are FOREIGN_RST)"
            } else {
                "next: harmless if the application closes so on purpose; else data under way is lost: see who sends the RST and why"
            }
            .to_owned(),
        );
        Some(finding(
            "ABORTIVE_CLOSE",
            if own > 0 { "WARNING" } else { "INFO" },
            1.0,
            format!(
                "{} {} closed by RST",
                connections(self.abortive.count()),
                if self.abortive.count() == 1 { "was" } else { "were" }
            ),
            evidence,
            &self.abortive,
            &[
                ("count", self.abortive.count() as f64),
                ("unanswered", unanswered as f64),
                ("unansweredAfterIdle", self.unanswered_idle as f64),
            ],
        ))
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use weir_record::FlowId;

    use super::*;

    /// 2023-11-14 22:13:20 UTC in TAI.
    const START: u64 = 1_700_000_037_000_000_000;

    #[test]
    fn hosts_that_closed_their_windows_are_told_with_times_of_the_day() {
        let mut findings = Findings {
            zero_ns: 1_250_041_237,
            zero_longest: (1_250_000_000, 7),
            ..Findings::default()
        };
        for (last, ns) in [(1u8, 1_250_000_000), (2, 41_237)] {
            let mut address = [0; 16];
            address[10..].copy_from_slice(&[255, 255, 10, 0, 0, last]);
            findings.zero_window.include(FlowId(last.into()), START, START);
            findings.zero_hosts.0.push(WindowHost {
                address,
                connections: 1,
                ns,
                start: START,
                end: START + 2_500_000_000,
            });
        }
        let evidence = findings.zero_windows().map(|found| found.evidence).unwrap_or_default();
        assert_eq!(
            evidence[2..4],
            [
                "10.0.0.1 did so for 1.25 s in 1 connection, from 22:13:20.000 to 22:13:22.500 (2.500 s)",
                "10.0.0.2 did so for 41.2 µs in 1 connection, from 22:13:20.000 to 22:13:22.500 (2.500 s)",
            ]
        );
    }

    #[test]
    fn what_was_refused_at_once_took_no_zero_seconds() {
        let mut findings = Findings {
            failed_ns: 41_237,
            failed_timed: 1,
            ..Findings::default()
        };
        findings.refused.include(FlowId(1), START, START);
        let evidence = findings
            .failed_connections()
            .map(|found| found.evidence)
            .unwrap_or_default();
        assert_eq!(
            evidence[1],
            "41.2 µs from the first SYN to the RST, or until the next SYN was due, in 1 connection"
        );
    }

    #[test]
    fn what_an_inline_appliance_dropped_is_lost_to_the_network() {
        let told = |inline, dropped| {
            let around = Surroundings {
                inline,
                dropped,
                missing: 1,
                ..Surroundings::default()
            };
            let found = Findings::default().capture_loss(&around).unwrap_or_default();
            (found.severity, found.title, found.evidence[0].clone())
        };
        let (severity, title, evidence) = told(true, 3);
        assert!(
            severity == "WARNING" && title.contains("are lost to the network"),
            "{title}"
        );
        assert_eq!(
            evidence,
            "the source says that it dropped 3 frames, which were not forwarded"
        );
        assert_eq!(told(false, 1).2, "the source says that it dropped 1 frame");
        // Records that are missing are lost to the analysis alone.
        for (inline, dropped) in [(true, 0), (false, 0), (false, 1)] {
            let (severity, title, _) = told(inline, dropped);
            assert!(
                severity == "INFO" && title.ends_with("not counted as loss of the network"),
                "{title}"
            );
        }
    }

    #[test]
    fn one_segment_is_told_as_one() {
        let told = |segments| {
            let mut findings = Findings {
                missed_segments: segments,
                ..Findings::default()
            };
            findings.missed.include(FlowId(1), START, START);
            let found = findings.capture_loss(&Surroundings::default());
            found.map(|found| found.evidence[0].clone())
        };
        let one = "1 segment of 1 connection was acknowledged by its receiver but is not in the capture";
        assert_eq!(told(1).as_deref(), Some(one));
        let two = "2 segments of 1 connection were acknowledged by their receivers but are not in the capture";
        assert_eq!(told(2).as_deref(), Some(two));
    }
}
