//! The whole input as an expert's tables: which part of the time is a bottleneck, which bottleneck counts most, and the
//! figures behind it (`docs/src/diagnosis.md`, which repeats [`THRESHOLDS`]; a test holds them equal).

use weir_messages::v1;

use crate::ceilings::{Mishap, at_unscaled_most, mishap};
use crate::findings::RETRANSMISSION_LINE;
use crate::flow::Flow;
use crate::given::Given;
use crate::limits::Cause;
use crate::message::seconds;
use crate::setup::Outcome;
use crate::shares::{HEADERS, Measure, TimeShares};
use crate::turns::Finished;

/// A category, from which value on it is a potential bottleneck, and from which on it is one.
pub(crate) struct Threshold {
    pub category: &'static str,
    pub potential: f64,
    pub bottleneck: f64,
    /// What the value is.
    pub of: &'static str,
}

const fn threshold(category: &'static str, potential: f64, bottleneck: f64, of: &'static str) -> Threshold {
    Threshold {
        category,
        potential,
        bottleneck,
        of,
    }
}

const OF_TIME: &str = "share of the time";
const OF_DATA: &str = "share of the data packets";

/// All thresholds of the diagnosis.
pub(crate) const THRESHOLDS: [Threshold; 12] = [
    threshold("CLIENT_PROCESSING", 0.2, 0.4, OF_TIME),
    threshold("SERVER_PROCESSING", 0.2, 0.4, OF_TIME),
    threshold("LATENCY", 0.2, 0.4, OF_TIME),
    threshold("BANDWIDTH", 0.3, 0.6, OF_TIME),
    threshold("CONGESTION", 0.1, 0.25, OF_TIME),
    threshold("PROTOCOL", 0.2, 0.4, OF_TIME),
    threshold("TCP_WINDOW", 0.1, 0.3, OF_TIME),
    threshold("FROZEN_WINDOW", 0.01, 0.05, OF_TIME),
    threshold("NAGLE", 0.01, 0.05, OF_TIME),
    threshold("RETRANSMISSIONS", RETRANSMISSION_LINE, 0.02, OF_DATA),
    threshold("OUT_OF_SEQUENCE", 0.005, 0.02, OF_DATA),
    threshold("CONNECTION_RESETS", 0.01, 0.05, "share of the connections"),
];

/// Value of a category that is a part of the time of transactions.
fn time_of(category: &str, time: &TimeShares) -> Option<f64> {
    let ns = match category {
        "CLIENT_PROCESSING" => time.client,
        "SERVER_PROCESSING" => time.server,
        "LATENCY" => time.latency,
        "BANDWIDTH" => time.bandwidth,
        "CONGESTION" => time.congestion,
        "PROTOCOL" => time.protocol,
        "TCP_WINDOW" => time.receiver.saturating_add(time.sender),
        _ => return None,
    };
    Some(ns as f64 / time.total().max(1) as f64)
}

/// How far the time of a category may be from the truth, as far as that is known, ns: one tap cannot tell a host's time from what a link behind it
/// took. `inferred`: see [`Finished::inferred`].
fn uncertain(category: &str, time: &TimeShares, inferred: u64) -> u64 {
    match category {
        "CLIENT_PROCESSING" => time.client_uncertain,
        "SERVER_PROCESSING" => time.server_uncertain,
        "BANDWIDTH" => time.link_uncertain.min(time.bandwidth),
        "CONGESTION" => time.link_uncertain.saturating_sub(time.bandwidth).min(time.congestion),
        "RECEIVER_WINDOW" | "TCP_WINDOW" => inferred.min(time.receiver),
        _ => 0,
    }
}

/// A sender that was idle for a retransmission timeout begins slow start again (RFC 5681 4.1): 1 s (RFC 6298 2.4), if not less, ns.
const REST: u64 = 1_000_000_000;

/// Time of small congestion windows, as far as transactions tell what made them small, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SmallWindows {
    /// Something was sent again meanwhile.
    repaired: u64,
    /// Nothing was, and the connection had rested before.
    rested: u64,
    /// Nothing was, and the connection had just begun; and in how many transactions.
    begun: u64,
    connections: u64,
}

/// Half or more.
const fn is_most(ns: u64, all: u64) -> bool {
    ns >= all - all / 2
}

impl SmallWindows {
    /// A transaction is over.
    pub const fn add(&mut self, done: &Finished, time: &TimeShares) {
        let ns = time.slow_start;
        if ns == 0 {
            return;
        }
        let rest = match done.client {
            Some(gap) => gap,
            None => 0,
        };
        if done.losses > 0 {
            self.repaired = self.repaired.saturating_add(ns);
        } else if done.index <= 1 {
            self.begun = self.begun.saturating_add(ns);
            self.connections += 1;
        } else if rest >= REST {
            self.rested = self.rested.saturating_add(ns);
        }
    }

    /// What would save most of it. `all`: the time of small windows; `is_needless`: most of what was sent again was not needed.
    fn remedy(&self, all: u64, is_needless: bool) -> &'static str {
        let is_most = |ns: u64| is_most(ns, all);
        if is_most(self.repaired) && is_needless {
            "fewer repeats that nobody needs: a path that keeps the order"
        } else if is_most(self.repaired) {
            "less loss"
        } else if is_most(self.rested) {
            "no slow start after idle (RFC 5681 4.1; Linux: tcp_slow_start_after_idle)"
        } else if is_most(self.begun) && self.connections > 1 {
            "connections that stay open, or a larger initial congestion window"
        } else if is_most(self.begun) {
            "a larger initial congestion window"
        } else {
            "a congestion window that grows faster, or is cut less often"
        }
    }
}

/// What is known of bottlenecks beside their time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// See [`Finished::inferred`].
    pub inferred: u64,
    pub windows: SmallWindows,
    /// Of the time of receivers' windows, that of windows as large as they can be without scaling, which the handshake lacks; and of those that
    /// a wrong scale left, ns.
    unscaled: u64,
    mishap: u64,
    /// Of the time of repeats, that of connections that ended in silence, ns.
    silence: u64,
    /// The same of setups that nobody completed.
    unanswered: u64,
    /// Setups on ports of which the server still had an older connection, beyond their round trips, ns.
    collided: u64,
    /// Most of what was sent again was not needed.
    is_needless: bool,
}

impl Known {
    /// A transaction is over.
    pub const fn add(&mut self, done: &Finished, time: &TimeShares) {
        self.inferred = self.inferred.saturating_add(done.inferred);
        self.windows.add(done, time);
    }

    /// A connection is over, on which a side's transfers were limited by the receiver's window for so many ns.
    fn scaled(&mut self, flow: &Flow, side: usize, ns: u64) {
        if ns == 0 {
            return;
        }
        let mishap = mishap(flow, 1 - side, &flow.measure(Given::default()));
        if mishap.is_some_and(Mishap::is_in_windows) {
            self.mishap = self.mishap.saturating_add(ns);
        } else if at_unscaled_most(flow, 1 - side).is_some() {
            self.unscaled = self.unscaled.saturating_add(ns);
        }
    }

    /// A connection is over, with its setup.
    fn set_up(&mut self, flow: &Flow) {
        if flow.setup.outcome == Outcome::Ignored {
            self.unanswered = self.unanswered.saturating_add(flow.setup_time().recovery);
        }
    }

    /// A connection with trouble is over.
    fn troubled(&mut self, flow: &Flow, in_vain: u64) {
        if in_vain > 0 {
            let recovery = flow.turn.as_ref().map_or(0, |turn| turn.time().recovery);
            self.silence = self.silence.saturating_add(recovery);
        }
        if flow.met_older() {
            let setup = flow.setup_time();
            self.collided = self.collided.saturating_add(setup.protocol - setup.recovery);
        }
    }

    /// What would save most of the time of repeats, which is so many ns.
    const fn recovery_remedy(&self, all: u64) -> &'static str {
        if is_most(self.silence, all) {
            "a path that does not cut connections off (DEAD_CONNECTIONS, MTU_BLACK_HOLE)"
        } else if is_most(self.unanswered, all) {
            "an answer to each SYN and SYN-ACK (FAILED_CONNECTIONS)"
        } else {
            "a path without loss"
        }
    }

    /// The same of what has no other name.
    const fn other_remedy(&self, all: u64) -> &'static str {
        if is_most(self.collided, all) {
            "ports that the server has forgotten (PORT_COLLISION)"
        } else {
            "not known"
        }
    }

    /// What would save most of the time of receivers' windows, which is so many ns.
    const fn window_remedy(&self, all: u64) -> &'static str {
        if is_most(self.mishap, all) {
            "a window scale that is applied as agreed (WINDOW_SCALE_MISHAP)"
        } else if is_most(self.unscaled, all) {
            "window scaling on both sides (RFC 7323): windows are as large as they can be without"
        } else {
            "a larger window, or a receiver that reads faster"
        }
    }
}

/// Figures of one direction over everything.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    packets: u64,
    payload: u64,
    /// Of application messages: nothing twice.
    bytes: u64,
    data: u64,
    retransmitted: u64,
    /// Of these, those into silence: they tell of no loss of single packets.
    in_vain: u64,
    needless: u64,
    out_of_order: u64,
    triples: u64,
    /// Most application bytes in one turn, and most unacknowledged.
    turn: u64,
    in_flight: u32,
    /// ns.
    closed: u64,
    nagle: u64,
}

/// What the tables are made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    sides: [Side; 2],
    turns: u64,
    messages: u64,
    connections: u64,
    resets: u64,
    /// Of the connection with most payload.
    most: u64,
    path: Measure,
    /// Bytes/s.
    link: f64,
    /// Charges that did not add up, ns.
    pub unbalanced: u64,
    known: Known,
}

impl Figures {
    /// A block of a side ended: an application message.
    pub fn message(&mut self, side: usize, bytes: u32) {
        self.messages += 1;
        self.sides[side & 1].bytes += u64::from(bytes);
    }

    /// A transaction is over.
    pub fn transaction(&mut self, done: &Finished, time: &TimeShares) {
        for (side, bytes) in self.sides.iter_mut().zip([done.request_bytes, done.response_bytes]) {
            side.turn = side.turn.max(bytes);
        }
        self.known.add(done, time);
        self.turns += u64::from(done.request_bytes > 0 && done.response_bytes > 0);
    }

    /// A connection is over.
    pub fn connection(&mut self, flow: &Flow) {
        self.connections += 1;
        self.resets += u64::from(flow.sent_rst(0) || flow.sent_rst(1));
        let mut payload = 0;
        for (s, side) in self.sides.iter_mut().enumerate() {
            let d = &flow.directions[s];
            side.packets = side.packets.saturating_add(d.packets);
            side.payload = side.payload.saturating_add(d.payload);
            side.in_flight = side.in_flight.max(d.flight_max);
            side.data = side.data.saturating_add(flow.data_packets(s));
            payload += d.payload;
            if let Some(trouble) = flow.extras.trouble() {
                let counts = flow.counts(s);
                side.in_vain += trouble.in_vain[s].min(counts.retransmitted_data);
                side.retransmitted += counts.retransmitted_data;
                side.needless += counts.spurious;
                side.out_of_order += counts.out_of_order;
                side.triples += counts.duplicate_triples;
            }
            if let Some(limits) = flow.extras.limits() {
                let transfer = &limits.sides[s];
                side.closed = side.closed.saturating_add(transfer.total.by.closed());
                side.nagle = side.nagle.saturating_add(transfer.total.by.of(Cause::Nagle));
                self.link = self.link.max(transfer.link().unwrap_or(0.0));
                self.unbalanced = self.unbalanced.saturating_add(transfer.unbalanced);
                self.known.scaled(flow, s, transfer.total.by.receiver());
            }
        }
        if let Some(trouble) = flow.extras.trouble() {
            self.known.troubled(flow, trouble.in_vain[0] + trouble.in_vain[1]);
        }
        self.known.set_up(flow);
        if payload > self.most {
            self.most = payload;
            self.path = flow.measure(Given::default());
        }
    }

    fn value(&self, category: &str, time: &TimeShares) -> f64 {
        let of_time = |ns: u64| ns as f64 / time.total().max(1) as f64;
        let [c, s] = &self.sides;
        let in_vain = c.in_vain + s.in_vain;
        let of_data = |n: u64| n as f64 / (c.data + s.data - in_vain).max(1) as f64;
        if let Some(value) = time_of(category, time) {
            return value;
        }
        match category {
            "FROZEN_WINDOW" => of_time(c.closed.saturating_add(s.closed)),
            "NAGLE" => of_time(c.nagle.saturating_add(s.nagle)),
            "RETRANSMISSIONS" => of_data(c.retransmitted + s.retransmitted - in_vain),
            "OUT_OF_SEQUENCE" => of_data(c.out_of_order + s.out_of_order),
            _ => self.resets as f64 / self.connections.max(1) as f64,
        }
    }

    /// The diagnosis table. `is_known`: whose time it was, of most transactions.
    pub fn diagnosis(&self, time: &TimeShares, is_known: bool) -> Vec<v1::Diagnosis> {
        let is_told = |category: &&str| is_known || time_of(category, time).is_none();
        Self::rows(time, self.known.inferred, |category| {
            Some(category)
                .filter(is_told)
                .map(|category| self.value(category, time))
        })
    }

    /// Its rows that are parts of the time of transactions.
    pub fn diagnosis_of_time(time: &TimeShares, inferred: u64) -> Vec<v1::Diagnosis> {
        Self::rows(time, inferred, |category| time_of(category, time))
    }

    fn rows(time: &TimeShares, inferred: u64, value: impl Fn(&str) -> Option<f64>) -> Vec<v1::Diagnosis> {
        if time.total() == 0 {
            return Vec::new();
        }
        let row = |t: &Threshold| {
            let value = value(t.category)?;
            let uncertain = uncertain(t.category, time, inferred) as f64 / time.total().max(1) as f64;
            let verdict = if value - uncertain >= t.bottleneck {
                "BOTTLENECK"
            } else if value >= t.potential {
                "POTENTIAL_BOTTLENECK"
            } else {
                "NO_BOTTLENECK"
            };
            Some(v1::Diagnosis {
                category: t.category.to_owned(),
                verdict: verdict.to_owned(),
                value,
                potential: t.potential,
                bottleneck: t.bottleneck,
                of: if uncertain > 0.0 {
                    format!("{}, ± {:.1} %", t.of, 100.0 * uncertain)
                } else {
                    t.of.to_owned()
                },
                uncertain: (uncertain > 0.0).then_some(uncertain),
            })
        };
        THRESHOLDS.iter().filter_map(row).collect()
    }

    /// Bottlenecks of everything, which took this time.
    pub fn bottlenecks_of(&self, time: &TimeShares) -> Vec<v1::Bottleneck> {
        let sum = |count: fn(&Side) -> u64| self.sides.iter().map(count).sum::<u64>();
        let needless = sum(|side| side.needless);
        let is_needless = needless > 0 && 2 * needless >= sum(|side| side.retransmitted);
        let known = Known {
            is_needless,
            ..self.known
        };
        Self::bottlenecks(time, &known)
    }

    /// Bottlenecks by the seconds that they cost, most first.
    pub fn bottlenecks(time: &TimeShares, known: &Known) -> Vec<v1::Bottleneck> {
        let windows = known.windows.remedy(time.slow_start, known.is_needless);
        let inferred = known.inferred;
        let parts = [time.receiver, time.sender, time.nagle, time.recovery, time.slow_start];
        let other = parts.iter().fold(time.protocol, |rest, ns| rest.saturating_sub(*ns));
        let costs = [
            ("USER_THINK", time.think, "nothing: people and timers"),
            ("CLIENT_PROCESSING", time.client, "a faster client"),
            ("SERVER_PROCESSING", time.server, "a faster server"),
            ("LATENCY", time.latency, "fewer turns, or a shorter path"),
            ("BANDWIDTH", time.bandwidth, "a faster link, or fewer bytes"),
            ("CONGESTION", time.congestion, "a link without queues"),
            ("RECEIVER_WINDOW", time.receiver, known.window_remedy(time.receiver)),
            ("SENDER", time.sender, "a larger send buffer"),
            ("NAGLE", time.nagle, "one write for each message, or TCP_NODELAY"),
            ("LOSS_RECOVERY", time.recovery, known.recovery_remedy(time.recovery)),
            ("CONGESTION_WINDOW", time.slow_start, windows),
            ("PROTOCOL_OTHER", other, known.other_remedy(other)),
        ];
        let mut costs: Vec<_> = costs.into_iter().filter(|cost| cost.1 > 0).collect();
        costs.sort_by_key(|cost| std::cmp::Reverse(cost.1));
        costs
            .into_iter()
            .map(|(name, ns, remedy)| {
                let uncertain = uncertain(name, time, inferred);
                let doubt = match name {
                    _ if uncertain <= ns / 2 => "",
                    "RECEIVER_WINDOW" => " (or a larger send buffer: not known which)",
                    "BANDWIDTH" | "CONGESTION" => " (or a faster host behind it: not known which)",
                    _ => " (or a faster link on the way to it: not known which)",
                };
                v1::Bottleneck {
                    name: name.to_owned(),
                    seconds: seconds(ns),
                    share: ns as f64 / time.total().max(1) as f64,
                    remedy: format!("{remedy}{doubt}"),
                    uncertain_seconds: (uncertain > 0).then(|| seconds(uncertain)),
                }
            })
            .collect()
    }

    /// The statistics table, in the order of the published one. `duration`: first to last packet, ns.
    pub fn statistics(&self, time: &TimeShares, duration: u64, given: Given) -> Vec<v1::Statistic> {
        if time.total() == 0 {
            return Vec::new();
        }
        let [c, s] = &self.sides;
        let both = |value: fn(&Side) -> f64| row3(value(c) + value(s), value(c), value(s));
        let total = |value: f64| (Some(value), None, None);
        let network = time.latency + time.bandwidth + time.congestion + time.protocol;
        let bytes = (c.bytes + s.bytes) as f64;
        let packets = (c.packets + s.packets) as f64;
        // Records have no frame sizes.
        let frames = |side: &Side| (side.payload + side.packets * HEADERS) as f64;
        let parallel = time.total().saturating_sub(duration);
        // One way, as such tables have it.
        let latency = given.trip.or(self.path.round_trip()).map(|trip| trip as f64 / 2e6);
        let link = given.link.or((self.link > 0.0).then_some(self.link));
        let rows = [
            (
                "User Think Time",
                "s",
                (Some(seconds(time.think)), Some(seconds(time.think)), None),
            ),
            (
                "Effect of Processing",
                "s",
                row3(
                    seconds(time.client + time.server),
                    seconds(time.client),
                    seconds(time.server),
                ),
            ),
            ("Effect of Network", "s", total(seconds(network))),
            ("Parallel Effects", "s", total(seconds(parallel))),
            ("Duration", "s", total(seconds(duration))),
            (
                "Response Time",
                "s",
                total(seconds(time.total() - parallel.min(time.total()))),
            ),
            ("Application Turns", "", total(self.turns as f64)),
            ("Application Messages", "", total(self.messages as f64)),
            ("Application Data", "bytes", both(|s| s.bytes as f64)),
            (
                "Average Application Message",
                "bytes",
                total(bytes / self.messages.max(1) as f64),
            ),
            ("Network Packets", "", both(|s| s.packets as f64)),
            (
                "Network Data (without TCP options)",
                "bytes",
                row3(frames(c) + frames(s), frames(c), frames(s)),
            ),
            (
                "Average Network Packet",
                "bytes",
                total((frames(c) + frames(s)) / packets.max(1.0)),
            ),
            ("Latency", "ms", (latency, None, None)),
            ("Effect of Latency", "s", total(seconds(time.latency))),
            ("Bandwidth", "kbit/s", (link.map(|link| link * 8.0 / 1e3), None, None)),
            ("Effect of Bandwidth", "s", total(seconds(time.bandwidth))),
            ("Effect of Protocol", "s", total(seconds(time.protocol))),
            ("Effect of Congestion", "s", total(seconds(time.congestion))),
            (
                "Effect of Network Transfer",
                "s",
                total(seconds(network - time.latency)),
            ),
            (
                "Max Application Bytes Per Turn",
                "bytes",
                (None, Some(c.turn as f64), Some(s.turn as f64)),
            ),
            (
                "Max Unacknowledged Data",
                "bytes",
                (None, Some(f64::from(c.in_flight)), Some(f64::from(s.in_flight))),
            ),
            ("Retransmissions", "", both(|s| s.retransmitted as f64)),
            ("Out of Sequence Packets", "", both(|s| s.out_of_order as f64)),
            ("Connection Resets", "", total(self.resets as f64)),
            ("TCP Frozen Window", "s", both(|s| seconds(s.closed))),
            ("TCP Nagle's Algorithm", "s", both(|s| seconds(s.nagle))),
            (
                "TCP Triple-Duplicate ACK Loss Indications",
                "",
                both(|s| s.triples as f64),
            ),
        ];
        rows.into_iter()
            .map(|(name, unit, (total, client, server))| v1::Statistic {
                name: name.to_owned(),
                unit: unit.to_owned(),
                total,
                client,
                server,
            })
            .collect()
    }
}

const fn row3(total: f64, client: f64, server: f64) -> (Option<f64>, Option<f64>, Option<f64>) {
    (Some(total), Some(client), Some(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page is the one file that users read; it must say what the code does.
    #[test]
    fn the_page_has_all_thresholds() {
        let page = include_str!("../../../docs/src/diagnosis.md");
        for t in &THRESHOLDS {
            let row = format!("| `{}` | {} | {} | {} |", t.category, t.of, t.potential, t.bottleneck);
            assert!(page.contains(&row), "not in docs/src/diagnosis.md: {row}");
        }
        let is_row = |line: &&str| line.starts_with("| `") && line.matches(" | ").count() == 3;
        assert_eq!(page.lines().filter(is_row).count(), THRESHOLDS.len(), "a row too many");
    }

    /// Half of the time is the client's, or the link's behind the tap.
    #[test]
    fn what_may_be_anothers_time_is_no_bottleneck() {
        let rows = |client_uncertain| {
            let time = TimeShares {
                client: 50_000,
                protocol: 50_000,
                client_uncertain,
                ..TimeShares::default()
            };
            let client = Figures::diagnosis_of_time(&time, 0).remove(0);
            (
                client.verdict,
                client.of,
                client.uncertain,
                Figures::bottlenecks(&time, &Known::default()).remove(0).remedy,
            )
        };
        let (verdict, of, uncertain, remedy) = rows(0);
        assert_eq!(
            (&*verdict, &*of, uncertain, &*remedy),
            ("BOTTLENECK", OF_TIME, None, "a faster client")
        );
        let (verdict, of, uncertain, remedy) = rows(40_000);
        assert_eq!(
            (&*verdict, &*of),
            ("POTENTIAL_BOTTLENECK", "share of the time, ± 40.0 %")
        );
        assert_eq!(uncertain, Some(0.4));
        assert_eq!(
            remedy,
            "a faster client (or a faster link on the way to it: not known which)"
        );
        assert_eq!(rows(5_000).0, "BOTTLENECK");
    }

    /// Most of it is time of windows whose scale was inferred, or half a percent.
    #[test]
    fn what_may_be_a_send_buffer_is_no_bottleneck_of_windows() {
        let rows = |inferred| {
            let time = TimeShares {
                server: 2_000,
                protocol: 98_000,
                receiver: 90_000,
                sender: 5_000,
                ..TimeShares::default()
            };
            let rows = Figures::diagnosis_of_time(&time, inferred);
            let verdict = |category| {
                rows.iter()
                    .find(|row| row.category == category)
                    .map(|row| row.verdict.clone())
            };
            let known = Known {
                inferred,
                ..Known::default()
            };
            let cost = Figures::bottlenecks(&time, &known).remove(0);
            (
                verdict("TCP_WINDOW").unwrap_or_default(),
                verdict("PROTOCOL").unwrap_or_default(),
                cost.uncertain_seconds,
                cost.remedy,
            )
        };
        let (window, protocol, uncertain, remedy) = rows(80_000);
        assert_eq!((&*window, &*protocol), ("POTENTIAL_BOTTLENECK", "BOTTLENECK"));
        assert_eq!(uncertain, Some(seconds(80_000)));
        assert!(remedy.contains("a larger send buffer"), "{remedy}");
        let (window, _, uncertain, remedy) = rows(500);
        assert_eq!(window, "BOTTLENECK");
        assert_eq!(uncertain, Some(seconds(500)));
        assert!(!remedy.contains("send buffer"), "{remedy}");
        assert_eq!(rows(0).2, None);
    }

    /// Responses that began with a connection, after a rest, or while something was lost; each takes 2 s of small windows.
    #[test]
    fn what_makes_windows_larger_follows_from_what_made_them_small() {
        let remedy = |transactions: &[(u32, u64, u32)], is_needless: bool| {
            let (mut known, mut all) = (Known::default(), TimeShares::default());
            for (index, rest, losses) in transactions {
                let done = Finished {
                    index: *index,
                    client: Some(*rest),
                    losses: *losses,
                    ..Finished::answered(0, REST)
                };
                let time = TimeShares {
                    protocol: 2 * REST,
                    slow_start: 2 * REST,
                    ..TimeShares::default()
                };
                known.add(&done, &time);
                all.add(&time);
            }
            known.is_needless = is_needless;
            Figures::bottlenecks(&all, &known).remove(0).remedy
        };
        let rested = (2, 5 * REST, 0);
        assert_eq!(remedy(&[(1, 0, 0)], false), "a larger initial congestion window");
        assert!(remedy(&[(1, 0, 0), (1, 0, 0), rested], false).contains("stay open"));
        assert!(remedy(&[(1, 0, 0), rested, rested], false).contains("after idle"));
        assert_eq!(remedy(&[(1, 0, 3), (2, 0, 1), rested], false), "less loss");
        assert!(remedy(&[(1, 0, 3), (2, 0, 1), rested], true).contains("order"));
        assert!(remedy(&[(1, 0, 0), (2, 0, 0), (2, 0, 0)], true).contains("grows faster"));
    }

    #[test]
    fn the_most_costly_comes_first_and_all_add_up() {
        let time = TimeShares {
            server: 5_000,
            protocol: 90_000,
            receiver: 60_000,
            recovery: 20_000,
            nagle: 9_000,
            latency: 7_000,
            ..TimeShares::default()
        };
        let list = Figures::bottlenecks(&time, &Known::default());
        let names: Vec<_> = list.iter().map(|b| b.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "RECEIVER_WINDOW",
                "LOSS_RECOVERY",
                "NAGLE",
                "LATENCY",
                "SERVER_PROCESSING",
                "PROTOCOL_OTHER",
            ]
        );
        let sum: f64 = list.iter().map(|b| b.seconds).sum();
        assert!((sum - seconds(time.total())).abs() < 1e-12);
    }
}
