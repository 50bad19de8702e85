//! The whole input in figures.

use weir_messages::v1;
use weir_record::{Port, PortMore, Record, Untracked};

use crate::diagnosis::Figures;
use crate::findings::Rate;
use crate::given::Given;
use crate::lanes::StreamHealth;
use crate::message::{seconds, timestamp};
use crate::shares::TimeShares;
use crate::surroundings::Surroundings;

/// 16 lanes with 16 ports each.
const PORTS: usize = 256;

/// Latest counters of one port.
#[derive(Clone, Copy, Debug)]
struct PortState {
    lane: u8,
    port: u8,
    counters: Port,
    untracked: [u32; 10],
}

/// Totals over everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    ports: Vec<PortState>,
    /// Packets of closed TCP flows, and of closed other flows.
    pub tcp_packets: u64,
    pub other_packets: u64,
    pub connections: u64,
    pub other_flows: u64,
    pub transactions: u64,
    /// Whose time the transactions took.
    pub time: TimeShares,
    /// How far the hosts' part of it may be from the truth, ns.
    pub uncertain: u64,
    /// Transactions with data, and those of which nothing tells whose time they were.
    pub with_data: u64,
    pub untimed: u64,
    pub figures: Figures,
    pub given: Given,
    pub start: u64,
    pub end: u64,
}

impl Totals {
    /// Nothing yet.
    pub fn new(given: Given) -> Self {
        Self {
            given,
            ..Self::default()
        }
    }

    /// A flow was seen from `first` to `last`.
    pub fn span(&mut self, first: u64, last: u64) {
        self.start = if self.start == 0 { first } else { self.start.min(first) };
        self.end = self.end.max(last);
    }

    /// When the last flow was seen last, of those that are over, TAI ns.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// PORT with its continuation: running counters, the latest count.
    pub fn port(&mut self, record: &Record, more: Option<&Record>) {
        let (lane, port) = (record.lane(), record.arg());
        let counters = Port::decode(record);
        let untracked = more.map(|more| PortMore::decode(more).untracked);
        let known = self.ports.iter().position(|p| p.lane == lane && p.port == port);
        let at = match known {
            Some(at) => at,
            None if self.ports.len() < PORTS => {
                self.ports.push(PortState {
                    lane,
                    port,
                    counters,
                    untracked: [0; 10],
                });
                self.ports.len() - 1
            }
            None => return,
        };
        let state = &mut self.ports[at];
        state.counters = counters;
        state.untracked = untracked.unwrap_or(state.untracked);
    }

    /// What findings must know beside the connections.
    pub fn surroundings(&self, health: StreamHealth) -> Surroundings {
        let sum = |field: fn(&Port) -> u32| -> u64 { self.ports.iter().map(|p| u64::from(field(&p.counters))).sum() };
        let mut untracked = [0; Untracked::ALL.len()];
        for port in &self.ports {
            for (sum, count) in untracked.iter_mut().zip(port.untracked) {
                *sum += u64::from(count);
            }
        }
        Surroundings {
            frames: self.frames(),
            dropped: self.dropped(),
            clamped: sum(|p| p.clamped),
            untracked,
            missing: health.missing,
            inline: self.given.inline,
        }
    }

    fn frames(&self) -> u64 {
        let frames = self.ports.iter().map(|p| p.counters.frames);
        frames.fold(0, u64::saturating_add)
    }

    /// Frames that the sources say they lost.
    pub fn dropped(&self) -> u64 {
        self.ports.iter().map(|p| u64::from(p.counters.dropped)).sum()
    }

    /// The message. `missed`: segments that the capture missed.
    pub fn message(&self, rates: [Rate; 2], missed: u64, signatures: Vec<v1::SignatureStatistics>) -> v1::Summary {
        let [client, server] = rates;
        let mut total = client;
        total.add(server);
        let frames = self.frames();
        let names = Untracked::ALL.iter().map(|reason| {
            let count: u64 = self
                .ports
                .iter()
                .map(|p| u64::from(p.untracked[*reason as usize]))
                .sum();
            (reason.name().to_owned(), count)
        });
        let sum = |field: fn(&Port) -> u32| -> u64 { self.ports.iter().map(|p| u64::from(field(&p.counters))).sum() };
        let seen = self.start != 0;
        let is_known = 2 * self.untimed <= self.with_data;
        v1::Summary {
            // Without PORT records, what the flows counted.
            packets: frames.max(self.tcp_packets.saturating_add(self.other_packets)),
            tcp_packets: self.tcp_packets,
            connections: self.connections,
            duration_seconds: seconds(self.end.saturating_sub(self.start)),
            retransmission_rate: Some(v1::RetransmissionRate {
                total: total.value(),
                client_to_server: client.value(),
                server_to_client: server.value(),
                data_packets: total.data,
                retransmitted_packets: total.repeated,
            }),
            capture_loss: missed.saturating_add(self.dropped()),
            phases: Vec::new(),
            transactions: self.transactions,
            untracked: names.filter(|(_, count)| *count > 0).collect(),
            clamped_times: sum(|p| p.clamped),
            other_flows: self.other_flows,
            start: seen.then(|| timestamp(self.start)),
            end: seen.then(|| timestamp(self.end)),
            cut_packets: sum(|p| p.cut),
            signatures,
            delays: Some(self.time.message()),
            delays_uncertain_seconds: seconds(self.uncertain),
            unbalanced_seconds: seconds(self.figures.unbalanced),
            untimed_transactions: self.untimed,
            bottlenecks: if is_known {
                self.figures.bottlenecks_of(&self.time)
            } else {
                Vec::new()
            },
            diagnosis: self.figures.diagnosis(&self.time, is_known),
            statistics: self
                .figures
                .statistics(&self.time, self.end.saturating_sub(self.start), self.given),
            ..v1::Summary::default()
        }
    }
}
