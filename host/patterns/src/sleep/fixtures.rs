//! What tests have in common.

use super::naps::Nap;
use super::sleeper::{Host, Sleeper};
use super::track::Track;

/// Silences of so many ms each, so long after each beginning of a period of 5 s.
pub(super) fn sleeper(track: &Track, number: usize, after: u64, length: u64) -> Sleeper<'_> {
    let nap = |i: u64| Nap {
        from: (5_000 * i + after) * 1_000_000,
        to: (5_000 * i + after + length) * 1_000_000,
        before: 1_000_000,
        strays: 0,
    };
    Sleeper {
        host: Host {
            number,
            address: [number as u8; 16],
            track,
        },
        naps: (1..20).map(nap).collect(),
        heard: 19,
        awake: 19,
        at_once: 19,
        opening: 0,
    }
}
