//! Builds packets, runs them through the real engine and the analysis.
#![allow(dead_code, clippy::unwrap_used)]

use weir_analysis::{Analyzer, Config};
use weir_engine::{Config as EngineConfig, End, Engine, Key, Meta, Options};
use weir_messages::v1;
use weir_record::Record;
use weir_record::tcp_flag;

/// TAI ns of second 0 of a test.
pub const T0: u64 = 1_700_000_037_000_000_000;

pub const C: bool = true;
pub const S: bool = false;

/// One TCP connection; sequence numbers are absolute.
#[derive(Clone)]
pub struct Conversation {
    pub client: End,
    pub server: End,
    pub packets: Vec<Meta>,
    ip_id: [u16; 2],
}

pub fn v4(a: u8, port: u16) -> End {
    let mut addr = [0; 16];
    addr[10] = 0xff;
    addr[11] = 0xff;
    addr[12..].copy_from_slice(&[10, 0, 0, a]);
    End { addr, port }
}

/// ns of a time in s with up to six decimals.
pub fn ns(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64 * 1000
}

impl Conversation {
    pub fn new(client_port: u16) -> Self {
        Self {
            client: v4(1, client_port),
            server: v4(2, 5433),
            packets: Vec::new(),
            ip_id: [100, 9000],
        }
    }

    /// A packet `at` s; flags in letters (SAFRPEC; E and C are those of ECN).
    pub fn packet(&mut self, at: f64, client: bool, flags: &str, seq: u32, ack: u32, len: u32) -> &mut Meta {
        let (from, to) = if client {
            (self.client, self.server)
        } else {
            (self.server, self.client)
        };
        let (key, from_low) = Key::new(from, to, 6);
        let bits = flags.chars().fold(0, |bits, c| {
            bits | match c {
                'S' => tcp_flag::SYN,
                'A' => tcp_flag::ACK,
                'F' => tcp_flag::FIN,
                'R' => tcp_flag::RST,
                'P' => tcp_flag::PSH,
                'E' => tcp_flag::ECE,
                'C' => tcp_flag::CWR,
                other => panic!("no flag {other}"),
            }
        });
        let id = &mut self.ip_id[usize::from(!client)];
        *id += 1;
        self.packets.push(Meta {
            time: T0 + ns(at),
            number: self.packets.len() as u64 + 1,
            key,
            from_low,
            wire: 54 + len,
            payload: len,
            seq,
            ack,
            flags: bits,
            window: 1026,
            ip_id: *id,
            ttl: 128,
            ..Meta::default()
        });
        self.packets.last_mut().unwrap()
    }

    /// A SYN or SYN-ACK with MSS 1460, SACK permitted and, unless `None`, window scale.
    pub fn syn(&mut self, at: f64, client: bool, seq: u32, ack: u32, scale: Option<u8>) -> &mut Meta {
        let m = self.packet(at, client, if client { "S" } else { "SA" }, seq, ack, 0);
        m.window = 64240;
        m.options = Options {
            mss: 1460,
            scale: scale.unwrap_or(255),
            sack_permitted: true,
            ..Options::default()
        };
        m
    }

    /// An ACK of the other side with SACK blocks.
    pub fn sack(&mut self, at: f64, client: bool, seq: u32, ack: u32, blocks: &[(u32, u32)]) {
        let m = self.packet(at, client, "A", seq, ack, 0);
        m.options.sack_count = blocks.len() as u8;
        for (place, block) in m.options.sack.iter_mut().zip(blocks) {
            *place = *block;
        }
    }
}

/// Records of packets in order of time.
pub fn records(packets: &[Meta], config: EngineConfig) -> Vec<Record> {
    let mut sorted = packets.to_vec();
    sorted.sort_by_key(|m| m.time);
    let mut engine = Engine::new(config);
    let mut out = Vec::new();
    for meta in &sorted {
        engine.packet(meta, meta.wire, &mut out);
    }
    engine.finish(&mut out);
    out
}

/// The whole way: engine and analysis.
pub fn analyze(packets: &[Meta]) -> v1::Analysis {
    analyze_records(&records(packets, EngineConfig::file()))
}

pub fn analyze_records(records: &[Record]) -> v1::Analysis {
    analyze_with(records, Config::default())
}

pub fn analyze_with(records: &[Record], config: Config) -> v1::Analysis {
    let mut analyzer = Analyzer::new(config);
    let mut out = v1::Analysis::default();
    analyzer.push(records, &mut out);
    out.summary = Some(analyzer.finish(&mut out));
    out
}

/// The only connection.
pub fn only(a: &v1::Analysis) -> &v1::Connection {
    assert_eq!(a.connections.len(), 1, "{:?}", a.connections);
    &a.connections[0]
}

pub fn near(actual: Option<f64>, expected: f64) -> bool {
    actual.is_some_and(|actual| (actual - expected).abs() < 1e-9)
}
