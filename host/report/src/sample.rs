//! A sink that keeps what a comparison needs: values and rates of a capture, with their times.
//!
//! Memory: at most 256 kinds of requests and a few quantities of 64 ports, each with up to 4,096 values drawn evenly
//! (those with the smallest hash of connection and position): about 40 MB at most.

use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::ops::AddAssign;

use weir_analysis::{Connection, Opened, Outcome, Sink, Transaction, TransactionKind};
use weir_messages::v1;
use weir_patterns::bins::Bins;

use crate::collect::request;
use crate::significance::{Ratio, SLICES, Trials};

/// Values kept of a quantity.
const MOST_VALUES: usize = 4096;
const MOST_REQUESTS: usize = 256;
const MOST_PORTS: usize = 64;
/// Width that bins of rates begin with (ns), and their number.
const WIDTH: u64 = 1000;
const BINS: usize = 1024;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    ResponseTime,
    ClientTime,
    NetworkTime,
    ServerTime,
    SetupTime,
    RoundTripServer,
    RoundTripClient,
    WindowClient,
    WindowServer,
    RetransmittedClient,
    RetransmittedServer,
    FailedConnections,
    RepeatedSetups,
    Resets,
    Unanswered,
    /// Share of the time of transfers, by limit.
    LimitClient(Limit),
    LimitServer(Limit),
    Connections,
    Requests,
}

/// What held a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    Application,
    Sender,
    ReceiverWindow,
    Congestion,
    Bandwidth,
}

const LIMITS: [Limit; 5] = [
    Limit::Application,
    Limit::Sender,
    Limit::ReceiverWindow,
    Limit::Congestion,
    Limit::Bandwidth,
];

impl Measure {
    /// Name in the messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResponseTime => "RESPONSE_TIME",
            Self::ClientTime => "CLIENT_TIME",
            Self::NetworkTime => "NETWORK_TIME",
            Self::ServerTime => "SERVER_TIME",
            Self::SetupTime => "SETUP_TIME",
            Self::RoundTripServer => "ROUND_TRIP_TO_SERVER",
            Self::RoundTripClient => "ROUND_TRIP_TO_CLIENT",
            Self::WindowClient => "WINDOW_OF_CLIENT",
            Self::WindowServer => "WINDOW_OF_SERVER",
            Self::RetransmittedClient => "RETRANSMITTED_BY_CLIENT",
            Self::RetransmittedServer => "RETRANSMITTED_BY_SERVER",
            Self::FailedConnections => "FAILED_CONNECTIONS",
            Self::RepeatedSetups => "REPEATED_SETUPS",
            Self::Resets => "CLOSED_BY_RST",
            Self::Unanswered => "UNANSWERED_REQUESTS",
            Self::LimitClient(Limit::Application) => "CLIENT_LIMITED_BY_APPLICATION",
            Self::LimitClient(Limit::Sender) => "CLIENT_LIMITED_BY_SENDER",
            Self::LimitClient(Limit::ReceiverWindow) => "CLIENT_LIMITED_BY_RECEIVER_WINDOW",
            Self::LimitClient(Limit::Congestion) => "CLIENT_LIMITED_BY_CONGESTION",
            Self::LimitClient(Limit::Bandwidth) => "CLIENT_LIMITED_BY_BANDWIDTH",
            Self::LimitServer(Limit::Application) => "SERVER_LIMITED_BY_APPLICATION",
            Self::LimitServer(Limit::Sender) => "SERVER_LIMITED_BY_SENDER",
            Self::LimitServer(Limit::ReceiverWindow) => "SERVER_LIMITED_BY_RECEIVER_WINDOW",
            Self::LimitServer(Limit::Congestion) => "SERVER_LIMITED_BY_CONGESTION",
            Self::LimitServer(Limit::Bandwidth) => "SERVER_LIMITED_BY_BANDWIDTH",
            Self::Connections => "NEW_CONNECTIONS",
            Self::Requests => "REQUESTS",
        }
    }

    /// Load comes from outside: it explains, it is not explained.
    pub const fn is_load(self) -> bool {
        matches!(self, Self::Connections | Self::Requests)
    }

    /// What the trials of a rate are.
    pub const fn trials(self) -> Trials {
        match self {
            Self::Connections | Self::Requests => Trials::Time,
            Self::LimitClient(_) | Self::LimitServer(_) => Trials::Weight,
            _ => Trials::Share,
        }
    }
}

/// Port, and request or nothing.
pub(crate) type Key = (Measure, u16, Box<str>);

/// A draw of the values of a quantity, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct Draw {
    /// Largest hash on top.
    kept: BinaryHeap<(u64, u64, u64)>,
    pub count: u64,
    sum: u64,
}

impl Draw {
    /// Of all values, drawn or not.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    fn add(&mut self, hash: u64, time: u64, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        if self.kept.len() < MOST_VALUES {
            self.kept.push((hash, time, value));
        } else if let Some(mut top) = self.kept.peek_mut()
            && hash < top.0
        {
            *top = (hash, time, value);
        }
    }
}

/// Hits and trials.
#[derive(Clone, Copy, Debug, Default)]
struct Hits {
    hits: f64,
    trials: f64,
}

impl AddAssign for Hits {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.trials += other.trials;
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Sampler {
    pub(crate) values: BTreeMap<Key, Draw>,
    rates: BTreeMap<Key, Bins<Hits>>,
    ports: HashSet<u16>,
    requests: HashSet<(u16, Box<str>)>,
    /// First and last moment, TAI ns.
    span: Option<(u64, u64)>,
    pub(crate) findings: Vec<v1::Finding>,
}

/// SplitMix64: even, and the same each time.
const fn hash(id: u64, position: u64) -> u64 {
    let mut z = id.rotate_left(32) ^ position.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Sampler {
    fn saw(&mut self, time: u64) {
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    /// The port if it is one of those kept apart, else 0.
    fn port(&mut self, port: u16) -> u16 {
        if self.ports.contains(&port) || self.ports.len() < MOST_PORTS {
            self.ports.insert(port);
            port
        } else {
            0
        }
    }

    fn value(&mut self, key: Key, id: u64, position: u64, time: u64, value: u64) {
        self.values.entry(key).or_default().add(hash(id, position), time, value);
    }

    fn rate(&mut self, measure: Measure, port: u16, time: u64, hits: f64, trials: f64) {
        let bins = self
            .rates
            .entry((measure, port, "".into()))
            .or_insert_with(|| Bins::bounded(WIDTH, BINS));
        *bins.at(time) += Hits { hits, trials };
    }

    /// Values with their slices of time.
    pub(crate) fn sliced(&self, draw: &Draw) -> Vec<(usize, f64)> {
        let place = self.slice();
        draw.kept
            .iter()
            .map(|(_, time, value)| (place(*time), *value as f64))
            .collect()
    }

    /// Rates with their slices of time.
    pub(crate) fn ratios(&self) -> BTreeMap<Key, Ratio> {
        let place = self.slice();
        let (first, last) = self.span.unwrap_or_default();
        let slice_seconds = (last - first) as f64 / 1e9 / SLICES as f64;
        let mut out = BTreeMap::new();
        for (key, bins) in &self.rates {
            let mut ratio = [(0.0, 0.0); SLICES];
            if key.0.trials() == Trials::Time {
                ratio = [(0.0, slice_seconds); SLICES];
            }
            for (number, bin) in (0u64..).zip(bins.iter()) {
                let middle = bins.start() + number * bins.width() + bins.width() / 2;
                let (hits, trials) = &mut ratio[place(middle)];
                *hits += bin.hits;
                *trials += bin.trials;
            }
            out.insert(key.clone(), ratio);
        }
        out
    }

    fn slice(&self) -> impl Fn(u64) -> usize {
        let (first, last) = self.span.unwrap_or_default();
        let whole = (last - first).max(1) as f64;
        move |time| ((time.saturating_sub(first) as f64 / whole * SLICES as f64) as usize).min(SLICES - 1)
    }
}

impl Sink for Sampler {
    fn connection(&mut self, connection: &Connection<'_>) {
        let (time, last) = connection.span();
        self.saw(time);
        self.saw(last);
        let port = self.port(connection.ends().server_port);
        let id = connection.id().0;
        let key = |measure| (measure, port, Box::from(""));
        let count = |is: bool| f64::from(u8::from(is));
        if let Some(outcome) = connection.setup().filter(|outcome| *outcome != Outcome::Midstream) {
            self.rate(Measure::FailedConnections, port, time, count(connection.failed()), 1.0);
            let established = matches!(outcome, Outcome::Ok | Outcome::Retransmitted);
            if established {
                self.rate(
                    Measure::RepeatedSetups,
                    port,
                    time,
                    count(outcome == Outcome::Retransmitted),
                    1.0,
                );
                let reset = (0..2).any(|side| connection.sent(side).rst);
                self.rate(Measure::Resets, port, time, count(reset), 1.0);
            }
            if let Some(ns) = connection.setup_ns().filter(|_| established) {
                self.value(key(Measure::SetupTime), id, 0, time, ns);
            }
        }
        let message = connection.message();
        let directions = [message.client_to_server, message.server_to_client];
        for (side, direction) in directions.iter().enumerate() {
            let sent = connection.sent(side);
            let of = |client: Measure, server: Measure| if side == 0 { client } else { server };
            let measure = of(Measure::RetransmittedClient, Measure::RetransmittedServer);
            self.rate(
                measure,
                port,
                time,
                sent.retransmitted as f64,
                f64::from(sent.data_packets),
            );
            if let Some(ns) = sent.rtt_min {
                let measure = of(Measure::RoundTripServer, Measure::RoundTripClient);
                self.value(key(measure), id, 0, time, ns);
            }
            let Some(direction) = direction else { continue };
            if let Some(bytes) = direction.max_window {
                self.value(
                    key(of(Measure::WindowClient, Measure::WindowServer)),
                    id,
                    0,
                    time,
                    bytes,
                );
            }
            if let Some(limits) = &direction.limit_seconds {
                let seconds = [
                    limits.application,
                    limits.sender,
                    limits.receiver_window,
                    limits.congestion,
                    limits.bandwidth,
                ];
                let all = seconds.iter().sum::<f64>() + limits.unknown;
                for (limit, seconds) in LIMITS.into_iter().zip(seconds) {
                    let measure = of(Measure::LimitClient(limit), Measure::LimitServer(limit));
                    self.rate(measure, port, time, seconds, all);
                }
            }
        }
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        let facts = transaction.facts();
        if facts.kind == TransactionKind::Setup {
            return;
        }
        let time = facts.request_time;
        self.saw(time);
        let port = self.port(transaction.ends().server_port);
        self.rate(Measure::Requests, port, time, 1.0, 0.0);
        let answered = facts.response.and(facts.end);
        self.rate(
            Measure::Unanswered,
            port,
            time,
            f64::from(u8::from(answered.is_none())),
            1.0,
        );
        let Some(end) = answered else { return };
        let mut name = Box::from(request(transaction.signature()));
        if !self.requests.contains(&(port, Box::clone(&name))) {
            if self.requests.len() < MOST_REQUESTS {
                self.requests.insert((port, Box::clone(&name)));
            } else {
                name = "other requests".into();
            }
        }
        let id = transaction.id().0;
        let shares = transaction.shares();
        // Without a round trip, nothing tells the hosts' time from the network's.
        if let Some(latency) = shares.latency_seconds {
            let network = latency + shares.bandwidth_seconds + shares.congestion_seconds + shares.protocol_seconds;
            for (measure, seconds) in [
                (Measure::ClientTime, shares.client_processing_seconds),
                (Measure::NetworkTime, network),
                (Measure::ServerTime, shares.server_processing_seconds),
            ] {
                let ns = (seconds * 1e9).round() as u64;
                self.value((measure, port, "".into()), id, u64::from(facts.index), time, ns);
            }
        }
        // All of the port, too: sizes that vary make many kinds of few.
        self.value(
            (Measure::ResponseTime, port, "".into()),
            id,
            u64::from(facts.index),
            time,
            end,
        );
        self.value(
            (Measure::ResponseTime, port, name),
            id,
            u64::from(facts.index),
            time,
            end,
        );
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.findings.push(finding);
    }

    fn opened(&mut self, opened: &Opened) {
        self.saw(opened.time);
        let port = self.port(opened.ends.server_port);
        self.rate(Measure::Connections, port, opened.time, 1.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of `LimitSeconds`, as everywhere.
    #[test]
    fn limits_have_their_common_names() {
        let names = ["APPLICATION", "SENDER", "RECEIVER_WINDOW", "CONGESTION", "BANDWIDTH"];
        for (limit, name) in LIMITS.into_iter().zip(names) {
            let of = [Measure::LimitClient(limit), Measure::LimitServer(limit)].map(Measure::name);
            assert_eq!(
                of,
                [format!("CLIENT_LIMITED_BY_{name}"), format!("SERVER_LIMITED_BY_{name}")]
            );
        }
    }
}
