//! Measures the analysis alone: records per second of CPU, records made beforehand by the engine.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use weir_analysis::{Analyzer, Config, Sink};
use weir_engine::{Config as EngineConfig, End, Engine, Key, Meta};
use weir_messages::v1;
use weir_record::tcp_flag;

/// Counts and forgets.
#[derive(Default)]
struct Count(u64, u64, u64);

impl Sink for Count {
    fn connection(&mut self, _: &weir_analysis::Connection<'_>) {
        self.0 += 1;
    }
    fn transaction(&mut self, _: &weir_analysis::Transaction<'_>) {
        self.1 += 1;
    }
    fn finding(&mut self, _: v1::Finding) {
        self.2 += 1;
    }
}

fn end(n: u32, port: u16) -> End {
    let mut addr = [0; 16];
    addr[10..12].fill(0xff);
    addr[12..].copy_from_slice(&n.to_be_bytes());
    End { addr, port }
}

fn main() {
    let connections: u32 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(100_000);
    let mut engine = Engine::new(EngineConfig::file());
    let mut records = Vec::new();
    let mut packets = 0u64;
    let mut time = 1_700_000_000_000_000_000u64;
    // 20 packets each, as the normal connections of a busy web server; 64 at once.
    let script: [(bool, u8, u32, u32, u32); 20] = [
        (true, tcp_flag::SYN, 0, 0, 0),
        (false, tcp_flag::SYN | tcp_flag::ACK, 0, 1, 0),
        (true, tcp_flag::ACK, 1, 1, 0),
        (true, tcp_flag::ACK | tcp_flag::PSH, 1, 1, 127),
        (false, tcp_flag::ACK, 1, 128, 1460),
        (false, tcp_flag::ACK, 1461, 128, 1460),
        (true, tcp_flag::ACK, 128, 2921, 0),
        (false, tcp_flag::ACK | tcp_flag::PSH, 2921, 128, 111),
        (true, tcp_flag::ACK | tcp_flag::PSH, 128, 3032, 158),
        (false, tcp_flag::ACK | tcp_flag::PSH, 3032, 286, 6),
        (false, tcp_flag::ACK | tcp_flag::PSH, 3038, 286, 45),
        (true, tcp_flag::ACK, 286, 3083, 0),
        (true, tcp_flag::ACK | tcp_flag::PSH, 286, 3083, 178),
        (true, tcp_flag::ACK | tcp_flag::PSH, 464, 3083, 1284),
        (false, tcp_flag::ACK, 3083, 1748, 0),
        (false, tcp_flag::ACK | tcp_flag::PSH, 3083, 1748, 245),
        (true, tcp_flag::ACK | tcp_flag::FIN, 1748, 3328, 0),
        (false, tcp_flag::ACK, 3328, 1749, 0),
        (false, tcp_flag::ACK | tcp_flag::FIN, 3328, 1749, 0),
        (true, tcp_flag::ACK, 1749, 3329, 0),
    ];
    for group in 0..connections.div_ceil(64) {
        for (client, flags, seq, ack, len) in script {
            for i in 0..64 {
                let n = group * 64 + i;
                let (c, s) = (end(0x0a00_0000 + n / 60_000, 2000 + (n % 60_000) as u16), end(1, 80));
                let (from, to) = if client { (c, s) } else { (s, c) };
                let (key, from_low) = Key::new(from, to, 6);
                time += 1000;
                packets += 1;
                let meta = Meta {
                    time,
                    key,
                    from_low,
                    wire: 54 + len,
                    payload: len,
                    seq,
                    ack,
                    flags,
                    window: 1000,
                    ttl: 64,
                    ..Meta::default()
                };
                engine.packet(&meta, meta.wire, &mut records);
            }
        }
    }
    engine.finish(&mut records);
    let mut best = f64::INFINITY;
    let mut count = Count::default();
    for _ in 0..5 {
        let mut analyzer = Analyzer::new(Config::default());
        count = Count::default();
        let begin = Instant::now();
        for batch in records.chunks(4096) {
            analyzer.push(batch, &mut count);
        }
        analyzer.finish(&mut count);
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!(
        "{packets} packets, {} records, {} connections, {} transactions: {:.2} M records/s, {:.2} M packets/s",
        records.len(),
        count.0,
        count.1,
        records.len() as f64 / best / 1e6,
        packets as f64 / best / 1e6
    );
}
