//! Builds metadata words and runs the engine over them.
#![allow(dead_code, clippy::unwrap_used)]

use weir_engine::{Config, End, Engine, Key, Meta};
use weir_record::{Record, Untracked};

pub const T0: u64 = 1_700_000_037_000_000_000;

pub fn v4(a: u8, port: u16) -> End {
    let mut addr = [0; 16];
    addr[10] = 0xff;
    addr[11] = 0xff;
    addr[12..].copy_from_slice(&[10, 0, 0, a]);
    End { addr, port }
}

/// A TCP packet of the connection 10.0.0.1:40000 to 10.0.0.2:80.
pub fn tcp(at_us: u64, from_client: bool, flags: u8, seq: u32, ack: u32, payload: u32) -> Meta {
    let (c, s) = (v4(1, 40000), v4(2, 80));
    let (from, to) = if from_client { (c, s) } else { (s, c) };
    let (key, from_low) = Key::new(from, to, 6);
    Meta {
        time: T0 + at_us * 1000,
        key,
        from_low,
        wire: 54 + payload,
        payload,
        seq,
        ack,
        flags,
        window: 1000,
        ttl: 64,
        ..Meta::default()
    }
}

pub fn run(config: Config, words: &[Meta]) -> Vec<Record> {
    let mut engine = Engine::new(config);
    let mut out = Vec::new();
    for meta in words {
        engine.packet(meta, meta.wire, &mut out);
    }
    engine.finish(&mut out);
    out
}

pub fn untracked(engine: &mut Engine, time: u64, out: &mut Vec<Record>) {
    engine.untracked(0, time, 60, 60, Untracked::NotIp, out);
}
