//! Records that no engine writes; and paths, events and recoveries for the tests of all parts.

use super::*;
use crate::verdict::Place;
use weir_record::{SINCE_DATA_NS, tcp_flag};

pub(super) const PATH: Path = Path {
    rtt: None,
    least: None,
    far: None,
    near: None,
    whole: None,
    others: None,
    timed: None,
    segment: 1460,
    sack: true,
    reach: 1 << 20,
    queue: false,
    reset: false,
    fin: None,
};
pub(super) const SOON: u64 = 1_000;

pub(super) fn event(what: u32, seq: u32, expected: u32, length: u32) -> Event {
    Event {
        what: what | what::ACKED_UNKNOWN,
        seq,
        length,
        expected,
        acked: 0,
        ack: 0,
        tsval: 0,
        since_data: 0,
        window: 0,
        ip_id: 0,
        dup_acks: 0,
        id_step: 0,
        ttl: 64,
        tcp_flags: tcp_flag::ACK,
    }
}

/// Segments of 1,000 bytes from 0 on, sent again in a recovery without SACK that began when 20 of them were out; `acked` has
/// been acknowledged, with so many duplicate ACKs since.
pub(super) fn again(from: u32, acked: u32, dup_acks: u8, expected: u32, since: u64) -> Event {
    Event {
        what: what::BELOW,
        acked: acked * 1000,
        dup_acks,
        since_data: (since / SINCE_DATA_NS) as u32,
        ..event(0, from * 1000, expected * 1000, 1000)
    }
}

pub(super) fn places(repeats: &[Event], acked: u32) -> Vec<Place> {
    places_each(repeats, acked, 5_000_000)
}

/// One each `step` ns; the smallest round trip that was seen is 10 ms, half of it behind the tap.
pub(super) fn places_each(repeats: &[Event], acked: u32, step: u64) -> Vec<Place> {
    let path = Path {
        rtt: Some(10_000_000),
        far: Some(5_000_000),
        segment: 1000,
        sack: false,
        ..PATH
    };
    let mut losses = Losses::default();
    let time = |i: usize| 1_000_000_000 + i as u64 * step;
    for (i, repeat) in repeats.iter().enumerate() {
        losses.sent(repeat, time(i), path);
    }
    losses.acknowledge(acked * 1000, time(repeats.len()), path);
    losses.close(None, time(repeats.len()), path);
    losses.done.iter().map(|entry| entry.place).collect()
}

/// Ranges of half the sequence space have no order: such records, which no engine writes, once
/// made the search for filled gaps go round for ever.
#[test]
fn ranges_that_no_engine_writes_are_left_out() {
    let mut losses = Losses::default();
    losses.sent(&event(what::GAP, 0x7fff_0000, 5, 10), 1, PATH);
    assert!(losses.gaps.is_empty());
    losses.sent(&event(what::GAP, 1005, 5, 10), 2, PATH);
    let far = event(what::BELOW, 0x9000_0000, 0x0fff_0000, u32::MAX);
    assert_eq!(losses.sent(&far, 3, PATH), Some(Segment::Harmless));
}
