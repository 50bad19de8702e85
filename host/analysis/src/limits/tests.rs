//! Transfers as a whole; and paths, blocks and round trips for the tests of all parts.

use super::*;

pub(super) const MS: u64 = 1_000_000;

pub(super) const TAP_AT_RECEIVER: Path = Path {
    segment: 1000,
    payload: 1000,
    mss: 1000,
    base: Some(100_000),
    other: 80 * MS,
    exact: true,
    window: 40_000,
    inferred: None,
    link: None,
    from_server: true,
    told: true,
};

pub(super) const TAP_BETWEEN: Path = Path {
    segment: 1000,
    payload: 1000,
    mss: 1000,
    base: Some(60 * MS),
    other: 40 * MS,
    exact: true,
    window: 40_000,
    inferred: None,
    link: None,
    from_server: true,
    told: true,
};

pub(super) fn block(first: u64, last: u64, seq: u32, bytes: u32) -> Block {
    Block {
        first,
        last,
        seq,
        bytes,
        ack: 0,
        flight: 0,
        packets: 10,
        max_segment: 1000,
        window: 0,
        ttl: 64,
        known: 3,
    }
}

pub(super) fn rtt(rtt: u64, ack: u32, flight: u32) -> Rtt {
    Rtt {
        rtt,
        seq_end: ack,
        ack,
        flight,
        window: 0,
        tcp_flags: 0,
    }
}

/// A window that was full in each round trip is not what an application waited for after all had been acknowledged.
#[test]
fn what_follows_the_last_ack_is_the_applications() {
    let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
    let (mut so_far, mut seq, mut time) = (None, 0u32, 0);
    for flight in 0..20 {
        time += if flight == 10 { 400 * MS } else { 81 * MS };
        let b = Block {
            flight: 20_000,
            ..block(time, time, seq, 20_000)
        };
        t.block(BlockEnd::Push as u8, &b, so_far, Some(20_000), &path);
        seq += 20_000;
        let all = Rtt {
            rtt: 100_000,
            seq_end: seq,
            ack: seq,
            flight: 0,
            window: 0,
            tcp_flags: 0,
        };
        t.sample(time + 100_000, &all, Some(20_000), &path);
        so_far = Some(SoFar {
            first: 81 * MS,
            last: time,
            bytes: seq.into(),
        });
    }
    let by = t.settle(81 * MS, time, time, &path).by;
    assert_eq!(by.of(Cause::Application) / MS, 400 - 81);
}

/// All was acknowledged and the next flight came late: its sender had nothing to send, or it waited in the queue of the slow link
/// that its segments show.
#[test]
fn a_flight_from_a_slow_link_may_have_waited_there() {
    let application = |apart: u64| {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        let passage = 9 * apart;
        t.block(
            BlockEnd::Push as u8,
            &block(81 * MS, 81 * MS + passage, 0, 10_000),
            None,
            None,
            &path,
        );
        let all = rtt(100_000, 10_000, 0);
        t.sample(81 * MS + passage + 100_000, &all, None, &path);
        let so_far = SoFar {
            first: 81 * MS,
            last: 81 * MS + passage,
            bytes: 10_000,
        };
        let next = block(400 * MS, 400 * MS + passage, 10_000, 10_000);
        t.block(BlockEnd::Push as u8, &next, Some(so_far), None, &path);
        let by = t.settle(81 * MS, 400 * MS + passage, 500 * MS, &path).by;
        by.of(Cause::Application) / MS
    };
    assert_eq!(application(10_000), 400 - 81 - 1 - TAP_AT_RECEIVER.round_trip() / MS);
    assert_eq!(application(200_000), 0);
}

/// A reader opens a window of 24 segments each 100 ms. Its sender paces two segments each 2 ms until it has used that up; what comes
/// from a slow link may have waited there.
#[test]
fn a_window_holds_nobody_while_it_has_room() {
    let held = |apart: u64| {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.measured = Some(0);
        let mut so_far = None;
        for cycle in 0..8 {
            let begin = u64::from(cycle) * 100 * MS;
            for piece in 0..12 {
                let time = begin + u64::from(piece) * 2 * MS;
                let b = Block {
                    flight: 2_000 * (piece + 1),
                    packets: 2,
                    ..block(time, time + apart, 24_000 * cycle + 2_000 * piece, 2_000)
                };
                t.block(BlockEnd::Push as u8, &b, so_far, Some(24_000), &path);
                so_far = Some(SoFar {
                    first: 0,
                    last: time + apart,
                    bytes: u64::from(b.seq + b.bytes),
                });
            }
            let read = Rtt {
                ack: 24_000 * (cycle + 1),
                ..rtt(60 * MS, 24_000 * cycle + 1_000, 0)
            };
            t.sample(begin + 60 * MS, &read, Some(24_000), &path);
        }
        t.settle(0, 760 * MS, 800 * MS, &path).by.of(Cause::ReceiverWindow) / MS
    };
    let (paced, waited) = (held(10_000), held(MS));
    assert!(waited - paced > 100, "{paced} {waited}");
    assert!(paced > 500, "{paced}");
}

#[test]
fn a_transfer_of_many_samples_is_measured_from_the_last_that_was_dropped() {
    let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
    t.measured = Some(0);
    for n in 1..500 {
        t.sample(u64::from(n) * 100 * MS, &rtt(60 * MS, n * 10_000, 0), None, &path);
    }
    t.settle(0, 50_000 * MS, 50_000 * MS, &path);
    assert_eq!(t.peak, 10_000);
}

/// The last flight of a transfer filled the window; the next transfer begins within a round trip.
#[test]
fn a_window_that_the_last_transfer_filled_holds_not_the_next() {
    let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
    t.block(BlockEnd::Push as u8, &block(0, MS, 0, 40_000), None, None, &path);
    t.full(MS, 40_000, 40_000);
    t.settle(0, MS, 30 * MS, &path);
    t.block(
        BlockEnd::Push as u8,
        &block(30 * MS, 31 * MS, 40_000, 10_000),
        None,
        None,
        &path,
    );
    let so_far = SoFar {
        first: 30 * MS,
        last: 31 * MS,
        bytes: 10_000,
    };
    t.block(
        BlockEnd::Push as u8,
        &block(60 * MS, 61 * MS, 50_000, 10_000),
        Some(so_far),
        None,
        &path,
    );
    let by = t.settle(30 * MS, 61 * MS, 200 * MS, &path).by;
    assert_eq!(by.of(Cause::ReceiverWindow), 0, "{by:?}");
}

/// What a transfer is charged whose window of `window` bytes is full: 10,000 bytes are acknowledged each `every` ms, after `trip` ms, with `behind` in
/// flight after that.
fn full_window(window: u32, every: u64, trip: u64, behind: u32) -> (Charged, f64) {
    let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
    t.measured = Some(0);
    for n in 1..40 {
        let ack = rtt(trip * MS, n * 10_000, behind);
        t.sample(u64::from(n) * every * MS, &ack, Some(window), &path);
    }
    let end = 39 * every * MS;
    (t.settle(0, end, end, &path), t.link().unwrap_or(0.0))
}

/// A window that is full because the round trips are four times the smallest leaves the link no pause; one that is full without a queue does.
#[test]
fn a_window_that_a_queue_fills_is_a_busy_link() {
    let (queue, rate) = full_window(40_000, 100, 360, 30_000);
    let window = queue.by.of(Cause::ReceiverWindow);
    assert!(window > 3_000 * MS, "{queue:?}");
    assert_eq!(
        (queue.queued_window, queue.busy()),
        (window, queue.by.of(Cause::Bandwidth) + window)
    );
    assert!((rate - 100_000.0).abs() < 5_000.0, "{rate}");
    let (clear, _) = full_window(10_000, 100, 60, 5_000);
    assert!(clear.by.of(Cause::ReceiverWindow) > 3_000 * MS, "{clear:?}");
    assert_eq!(clear.queued_window, 0);
}

/// The round trips are half as long again as the smallest, all of them or every second one; or the segments of a burst wait for each other; or
/// the receiver reads late.
#[test]
fn a_window_behind_a_queue_that_never_ends_leaves_the_link_no_pause() {
    for (trip, other, read, window) in [
        (110, 110, 0, true),
        (110, 110, 1_000, false),
        (110, 60, 0, false),
        (70, 70, 0, false),
    ] {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.measured = Some(0);
        let mut end = 0;
        for n in 1..40 {
            let trip = if n % 2 == 0 { trip } else { other };
            end += trip * MS + path.other;
            let window = 15_000 - n % 2 * read;
            t.sample(end, &rtt(trip * MS, n * 15_000, 8_000), Some(window), &path);
        }
        let charged = t.settle(0, end, end, &path);
        let full = charged.by.of(Cause::ReceiverWindow);
        assert!(full > 3_000 * MS, "{charged:?}");
        assert_eq!(charged.queued_window, if window { full } else { 0 }, "{trip} {other}");
    }
}

/// A link of known rate takes what the window lets go.
#[test]
fn a_full_window_at_the_rate_of_the_link_is_a_busy_link() {
    for (link, busy) in [(100_000.0, true), (200_000.0, false)] {
        let mut t = Transfer::default();
        let path = Path {
            link: Some(link),
            ..TAP_BETWEEN
        };
        t.measured = Some(0);
        for n in 1..40 {
            t.sample(
                u64::from(n) * 100 * MS,
                &rtt(60 * MS, n * 10_000, 5_000),
                Some(10_000),
                &path,
            );
        }
        let charged = t.settle(0, 3_900 * MS, 3_900 * MS, &path);
        assert_eq!(charged.queued_window > 3_000 * MS, busy, "{charged:?}");
    }
}

/// 1,000 bytes in a transfer that no round trip tells of.
#[test]
fn one_flight_needs_a_round_trip() {
    for (path, cause) in [(TAP_BETWEEN, Cause::Bandwidth), (Path::default(), Cause::Unknown)] {
        let charged = Transfer::default().settle(0, 500_000, 500_000, &path);
        assert_eq!(charged.by.of(cause), 500_000);
        assert_eq!(Charged::one(path.one_flight(), 7).by.of(cause), 7);
    }
}

/// A window of 700 bytes, below a segment, is filled each 5 s; or half of it.
#[test]
fn a_window_below_a_segment_that_is_full_each_time_holds_its_sender() {
    let small = |bytes: u32| {
        let (mut t, path) = (
            Transfer::default(),
            Path {
                window: 700,
                ..TAP_BETWEEN
            },
        );
        let mut so_far = None;
        for n in 0..6u32 {
            let time = u64::from(n) * 5_000 * MS;
            let piece = Block {
                packets: 1,
                max_segment: bytes as u16,
                ..block(time, time, bytes * n, bytes)
            };
            t.block(BlockEnd::Idle as u8, &piece, so_far, Some(700), &path);
            so_far = Some(SoFar {
                first: 0,
                last: time,
                bytes: u64::from(bytes * (n + 1)),
            });
        }
        t.settle(0, 25_000 * MS, 25_000 * MS, &path).by.of(Cause::SmallWindow) / MS
    };
    assert_eq!([700, 350].map(small), [25_000, 0]);
}

/// The scale was not seen. What is in flight fills the window that it would be at one scale, or leaves room for ten segments.
#[test]
fn a_window_of_unknown_scale_is_inferred_where_it_is_filled() {
    for (inferred, held) in [(Some(10_000), true), (Some(20_000), false), (None, false)] {
        let (mut t, path) = (
            Transfer::default(),
            Path {
                inferred,
                ..TAP_BETWEEN
            },
        );
        t.measured = Some(0);
        for n in 1..40 {
            t.sample(u64::from(n) * 100 * MS, &rtt(60 * MS, n * 10_000, 5_000), None, &path);
        }
        let by = t.settle(0, 3_900 * MS, 3_900 * MS, &path).by;
        assert_eq!(by.of(Cause::ReceiverWindow) > 3_000 * MS, held, "{by:?}");
        assert_eq!(t.receiver_bytes, if held { 10_000 } else { 0 });
    }
}

/// The receiver acknowledges all that its window lets in 100 ms later than it could: it did not wait in a queue.
#[test]
fn what_the_receiver_of_a_full_window_delays_is_no_queue() {
    let queueing = |behind| full_window(10_000, 200, 160, behind).0.queueing / MS;
    assert!(queueing(0) < 200, "{}", queueing(0));
    assert!(queueing(2_000) > 3_000, "{}", queueing(2_000));
}

/// Round trips of a queue, and then a window that is closed for two seconds: nothing is in flight in them that could wait in it.
#[test]
fn a_closed_window_is_no_queue() {
    let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
    t.measured = Some(0);
    let acked =
        |t: &mut Transfer, at: u64, n: u32| t.sample(at, &rtt(360 * MS, n * 10_000, 30_000), Some(400_000), &path);
    (1..10).for_each(|n| acked(&mut t, u64::from(n) * 100 * MS, n));
    t.close(950 * MS, true, &path);
    t.open(2_950 * MS, &path);
    (10..20).for_each(|n| acked(&mut t, (2_300 + u64::from(n) * 100) * MS, n));
    let charged = t.settle(0, 4_200 * MS, 4_200 * MS, &path);
    let (closed, whole) = (charged.by.closed(), charged.by.sum());
    assert!(closed >= 2_000 * MS, "{charged:?}");
    assert!(
        charged.queueing > 1_000 * MS && charged.queueing + closed <= whole,
        "{charged:?}"
    );
}
