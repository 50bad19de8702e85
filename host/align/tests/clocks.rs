//! Clocks of two taps that are microseconds apart, while connections fail slowly.
#![allow(clippy::unwrap_used)]

mod support;

use support::end;
use weir_align::Alignment;
use weir_engine::{Key, Meta, Options};
use weir_record::tcp_flag;

const MS: u64 = 1_000_000;
const T0: u64 = 1_700_000_037_000_000_000;
/// From tap to tap, ns, and the drift of the second clock.
const LEG: u64 = 6_000;
const PPM: f64 = 1.0;

/// A packet of a client's port at the tap that it passes first, ns after the start.
fn packet(port: u16, time: u64, from_client: bool, flags: u8, seq: u32, ack: u32, payload: u32) -> (bool, Meta) {
    let ends = [end([10, 0, 0, 1], port), end([10, 0, 0, 2], 80)];
    let (key, from_low) = Key::new(ends[usize::from(!from_client)], ends[usize::from(from_client)], 6);
    let meta = Meta {
        key,
        from_low,
        time: T0 + time,
        wire: 54 + payload,
        payload,
        seq,
        ack,
        flags,
        window: 1000,
        ip_id: (time / 1000 % 65_521) as u16 + 1,
        ttl: 64,
        options: Options {
            mss: if flags & tcp_flag::SYN != 0 { 1460 } else { 0 },
            ..Options::default()
        },
        ..Meta::default()
    };
    (from_client, meta)
}

/// What two captures say, whose packets are in any order.
fn align(taps: [Vec<Meta>; 2]) -> Alignment {
    let records = taps.map(|mut seen| {
        seen.sort_by_key(|meta| meta.time);
        support::records_of(&seen)
    });
    support::align(&records).unwrap()
}

/// A SYN that is sent three times and answered by a RST after a minute, or never: what its packets say of the leg is far
/// apart in time, and the drift in between is many times the leg.
#[test]
fn a_reset_after_a_minute_does_not_turn_the_leg_around() {
    let mut packets = Vec::new();
    for n in 0..1200u64 {
        let (port, at) = (1024 + n as u16, n * 100 * MS);
        let ack = tcp_flag::ACK;
        packets.push(packet(port, at, true, tcp_flag::SYN, 1000, 0, 0));
        packets.push(packet(port, at + MS / 5, false, tcp_flag::SYN | ack, 5000, 1001, 0));
        packets.push(packet(port, at + MS / 4, true, ack, 1001, 5001, 0));
        packets.push(packet(port, at + MS / 2, true, ack | tcp_flag::PSH, 1001, 5001, 100));
        packets.push(packet(port, at + MS, false, ack | tcp_flag::PSH, 5001, 1101, 900));
        packets.push(packet(port, at + 2 * MS, true, ack | tcp_flag::FIN, 1101, 5901, 0));
        packets.push(packet(port, at + 3 * MS, false, ack | tcp_flag::FIN, 5901, 1102, 0));
        packets.push(packet(port, at + 4 * MS, true, ack, 1102, 5902, 0));
    }
    for n in 0..20u64 {
        let (port, at) = (10_000 + n as u16, 40_000 * MS + n * 7 * MS);
        for wait in [0, 3000, 9000] {
            packets.push(packet(port, at + wait * MS, true, tcp_flag::SYN, 77, 0, 0));
        }
        if n % 2 == 0 {
            packets.push(packet(port, at + 69_000 * MS, false, tcp_flag::RST, 0, 0, 0));
        }
    }
    let taps = [true, false].map(|near| {
        packets
            .iter()
            .map(|(from_client, meta)| {
                let passed = if *from_client == near { 0 } else { LEG };
                let time = meta.time + passed;
                let drift = if near { 0.0 } else { (time - T0) as f64 * PPM / 1e6 };
                Meta {
                    time: time + drift as u64,
                    ..*meta
                }
            })
            .collect()
    });
    let answer = align(taps);
    let leg = &answer.legs[0];
    assert_eq!(leg.clock.len(), 1, "{:?}", leg.clock);
    let (offset, width) = (leg.offset_seconds.unwrap(), leg.offset_width_seconds.unwrap());
    assert!(offset.abs() <= width && width < 20e-6, "{offset} ± {width}");
    assert!((leg.skew_ppm.unwrap() - PPM).abs() < 0.2, "{:?}", leg.skew_ppm);
}

/// What two taps 5 ms apart have of small requests and their answers. `copies` tells when a packet that left its sender at this time passes
/// a tap (0: the client's, 1: the server's), in ns after that; nothing of a packet is lost.
fn copied(requests: u64, copies: impl Fn(usize, &Meta, bool) -> Vec<u64>) -> Alignment {
    let ack = tcp_flag::ACK;
    let mut packets = vec![
        packet(1024, 0, true, tcp_flag::SYN, 1000, 0, 0),
        packet(1024, 10 * MS, false, tcp_flag::SYN | ack, 5000, 1001, 0),
    ];
    for n in 0..requests {
        let (at, asked, answered) = (20 * MS + n * 37_003_000, 1001 + 100 * n as u32, 5001 + 900 * n as u32);
        packets.push(packet(1024, at, true, ack, asked, answered, 100));
        packets.push(packet(1024, at + 10 * MS, false, ack, answered, asked + 100, 900));
    }
    align([0, 1].map(|tap| {
        let passages = packets.iter().flat_map(|(from_client, meta)| {
            let passed = copies(tap, meta, *from_client).into_iter();
            passed.map(|after| Meta {
                time: meta.time + after,
                ..*meta
            })
        });
        passages.collect()
    }))
}

/// A second passage at one tap may be another copy than the second one at the other.
#[test]
fn later_copies_of_a_network_bound_no_clock() {
    for is_lost in [false, true] {
        let answer = copied(400, |tap, meta, from_client| {
            let leg = if from_client == (tap == 0) { 0 } else { 5 * MS };
            let is_copied = !from_client && meta.seq / 900 % 20 == 7;
            match (is_copied, tap) {
                (false, _) => vec![leg],
                // One copy is made before the leg, another on it.
                (true, 1) => vec![0, MS],
                (true, _) if is_lost => vec![leg, leg + MS / 10],
                (true, _) => vec![leg, leg + MS / 10, leg + MS],
            }
        });
        let leg = &answer.legs[0];
        assert_eq!((leg.from.as_str(), leg.clock.len()), ("A", 1), "{leg:?}");
        assert_eq!(leg.duplicated_backward, if is_lost { 0 } else { 20 }, "{leg:?}");
        let (offset, width) = (leg.offset_seconds.unwrap(), leg.offset_width_seconds.unwrap());
        assert!(offset.abs() < 1e-6 && width > 9.9e-3, "{offset} ± {width}");
        for delay in [leg.delay_forward.unwrap(), leg.delay_backward.unwrap()] {
            assert!((delay.min_seconds - 5e-3).abs() < 1e-6, "{delay:?}");
        }
    }
}

/// Too few for a mirror port to be known by them: the first of each copy is all that bounds the clock.
#[test]
fn a_few_answers_of_which_one_capture_has_each_twice_bound_the_clock() {
    let answer = copied(5, |tap, _, from_client| {
        let leg = if from_client == (tap == 0) { 0 } else { 5 * MS };
        match (from_client, tap) {
            (false, 0) => vec![leg, leg + 10_000],
            _ => vec![leg],
        }
    });
    let leg = &answer.legs[0];
    assert_eq!(leg.from, "A", "{leg:?}");
    assert!(leg.offset_seconds.is_some_and(|offset| offset.abs() < 1e-6), "{leg:?}");
    assert!((leg.delay_forward.unwrap().min_seconds - 5e-3).abs() < 1e-6, "{leg:?}");
}

/// IPv6 without timestamps: nothing but their number tells keep-alives, or repeated ACKs, from each other. Some are lost.
#[test]
fn what_is_alike_and_lacking_bounds_no_clock() {
    for every in [0, 7, 40] {
        // From the client, when it was sent, whether it is lost.
        let mut packets = Vec::new();
        let mut sent = 0u64;
        let mut add = |(from_client, meta): (bool, Meta), alike: bool| {
            sent += u64::from(alike);
            let lost = alike && every > 0 && sent % every == 3;
            let time = meta.time + packets.len() as u64 * 7919;
            packets.push((from_client, Meta { time, ip_id: 0, ..meta }, lost));
        };
        let ack = tcp_flag::ACK;
        for n in 0..5u64 {
            let (port, at) = (1024 + n as u16, n * 100 * MS);
            add(packet(port, at, true, tcp_flag::SYN, 1000, 0, 0), false);
            add(
                packet(port, at + 15 * MS, false, tcp_flag::SYN | ack, 5000, 1001, 0),
                false,
            );
            add(packet(port, at + 30 * MS, true, ack, 1001, 5001, 0), false);
            add(
                packet(port, at + 31 * MS, true, ack | tcp_flag::PSH, 1001, 5001, 100),
                false,
            );
            add(
                packet(port, at + 45 * MS, false, ack | tcp_flag::PSH, 5001, 1101, 900),
                false,
            );
            add(packet(port, at + 60 * MS, true, ack, 1101, 5901, 0), false);
            for beat in 1..16 {
                let at = at + beat * 45_000 * MS;
                add(packet(port, at, true, ack, 1100, 5901, 0), true);
                add(packet(port, at + 15 * MS, false, ack, 5901, 1101, 0), true);
            }
        }
        let lost = [true, false].map(|side| packets.iter().filter(|p| p.0 == side && p.2).count() as u64);
        let taps = [true, false].map(|near| {
            packets
                .iter()
                .filter(|(from_client, _, lost)| *from_client == near || !lost)
                .map(|(from_client, meta, _)| {
                    let passed = if *from_client == near {
                        0
                    } else {
                        5 * MS + meta.time % 1000
                    };
                    let time = meta.time + passed;
                    let drift = if near { 0 } else { 3000 * MS + (time - T0) / 50_000 };
                    Meta {
                        time: time + drift,
                        ..*meta
                    }
                })
                .collect()
        });
        let answer = align(taps);
        let leg = &answer.legs[0];
        assert_eq!((leg.from.as_str(), leg.clock.len()), ("A", 1), "{leg:?}");
        assert_eq!([leg.lost_forward, leg.lost_backward], lost, "{leg:?}");
        let (offset, width) = (leg.offset_seconds.unwrap(), leg.offset_width_seconds.unwrap());
        assert!(
            (offset - 3.0).abs() <= width / 2.0 && width < 15e-3,
            "{offset} ± {width}"
        );
        for delay in [leg.delay_forward.unwrap(), leg.delay_backward.unwrap()] {
            assert!(delay.min_seconds > 4e-3 && delay.max_seconds < 6e-3, "{delay:?}");
        }
    }
}

/// Downloads without IP ids, whose lost segments are sent again after three ACKs that are alike; from where to where, and lost on the leg.
fn downloads() -> Vec<(bool, Meta, bool)> {
    let (mut packets, ack) = (Vec::new(), tcp_flag::ACK);
    let mut add = |at: u64, from_client: bool, flags: u8, numbers: (u32, u32), len: u32, lost: bool| {
        let port = 1024 + (at / (1000 * MS)) as u16;
        let (_, meta) = packet(port, at, from_client, flags, numbers.0, numbers.1, len);
        packets.push((from_client, Meta { ip_id: 0, ..meta }, lost));
    };
    for n in 0..30u64 {
        let at = n * 1000 * MS;
        add(at, true, tcp_flag::SYN, (1000, 0), 0, false);
        add(at + 15 * MS, false, tcp_flag::SYN | ack, (5000, 1001), 0, false);
        add(at + 30 * MS, true, ack, (1001, 5001), 0, false);
        add(at + 31 * MS, true, ack | tcp_flag::PSH, (1001, 5001), 100, false);
        for k in 0..40u32 {
            let (at, seq) = (at + 50 * MS + u64::from(k) * 20 * MS, 5001 + k * 1000);
            let is_lost = k % 13 == 7;
            add(at, false, ack, (seq, 1101), 1000, is_lost);
            if is_lost {
                for again in 0..4 {
                    add(at + 7 * MS + again * MS / 20, true, ack, (1101, seq), 0, again == 2);
                }
                add(at + 8 * MS, false, ack, (seq, 1101), 1000, false);
            }
            add(at + 15 * MS, true, ack, (1101, seq + 1000), 0, false);
        }
        add(at + 900 * MS, true, ack | tcp_flag::FIN, (1101, 45_001), 0, false);
        add(at + 915 * MS, false, ack | tcp_flag::FIN, (45_001, 1102), 0, false);
        add(at + 930 * MS, true, ack, (1102, 45_002), 0, false);
    }
    packets
}

/// Most packets of the one direction are ACKs, which without an IP id may be sent twice: that the rest comes twice tells of the mirror port.
#[test]
fn copies_of_a_mirror_port_are_found_without_ids() {
    let packets = downloads();
    let lost = [true, false].map(|side| packets.iter().filter(|p| p.0 == side && p.2).count() as u64);
    for (mirrored, delay) in [(0, 20_000), (0, 300_000), (1, 20_000), (1, 300_000)] {
        let taps = [0, 1].map(|tap| {
            let mut seen = Vec::new();
            for (from_client, meta, lost) in &packets {
                let is_first = *from_client == (tap == 0);
                if *lost && !is_first {
                    continue;
                }
                let passed = if is_first { 0 } else { 5 * MS + meta.time % 1000 };
                let time = meta.time + passed + tap as u64 * 3000 * MS;
                seen.push(Meta { time, ..*meta });
                if tap == mirrored {
                    let time = time + delay;
                    seen.push(Meta { time, ..*meta });
                }
            }
            seen
        });
        let answer = align(taps);
        let leg = &answer.legs[0];
        let case = format!("tap {mirrored}, {delay} ns: {leg:?}");
        assert_eq!([leg.lost_forward, leg.lost_backward], lost, "{case}");
        let copied = leg.duplicated_forward + leg.duplicated_backward;
        assert_eq!((leg.undecided, leg.outside, copied), (0, 0, 0), "{case}");
        let error = (leg.offset_seconds.unwrap() - 3.0).abs();
        assert!(
            error < 2e-6 && error <= leg.offset_width_seconds.unwrap() / 2.0,
            "{case}"
        );
        for delay in [leg.delay_forward.unwrap(), leg.delay_backward.unwrap()] {
            assert!(delay.min_seconds > 4.9e-3 && delay.max_seconds < 5.1e-3, "{case}");
        }
    }
}

/// Requests and their answers, after `busy` ns, of 1,000 connections, `gap` ns apart, over a leg of `leg` ns, on these clocks.
fn requests(gap: u64, leg: u64, busy: u64, clocks: [&dyn Fn(u64) -> u64; 2]) -> Alignment {
    let (mut packets, ack) = (Vec::new(), tcp_flag::ACK);
    for n in 0..1000u64 {
        // At no time of any step more often than at another.
        let (port, at) = (1024 + n as u16, n * gap + n * 7919 * 1009 % gap);
        let mut add = |after: u64, from_client: bool, flags: u8, seq: u32, ack: u32, len: u32| {
            packets.push(packet(port, at + after, from_client, flags, seq, ack, len));
        };
        add(0, true, tcp_flag::SYN, 1000, 0, 0);
        add(leg + 31_000, false, tcp_flag::SYN | ack, 5000, 1001, 0);
        add(2 * leg + 67_000, true, ack, 1001, 5001, 0);
        add(2 * leg + 300_000, true, ack | tcp_flag::PSH, 1001, 5001, 100);
        add(3 * leg + busy + 900_000, false, ack | tcp_flag::PSH, 5001, 1101, 900);
        add(4 * leg + busy + 2 * MS, true, ack | tcp_flag::FIN, 1101, 5901, 0);
        add(5 * leg + busy + 3 * MS, false, ack | tcp_flag::FIN, 5901, 1102, 0);
        add(6 * leg + busy + 4 * MS, true, ack, 1102, 5902, 0);
    }
    let taps = [0, 1].map(|tap| {
        let passed = |(from_client, meta): &(bool, Meta)| {
            let later = if *from_client == (tap == 0) {
                0
            } else {
                leg + meta.time % 97
            };
            (meta.time - T0 + later, *meta)
        };
        let mut seen: Vec<(u64, Meta)> = packets.iter().map(passed).collect();
        seen.sort_by_key(|(time, _)| *time);
        let stamped = seen.iter().map(|(time, meta)| Meta {
            time: T0 + clocks[tap](*time),
            ..*meta
        });
        support::records_of(&stamped.collect::<Vec<_>>())
    });
    support::align(&taps).unwrap()
}

/// Stamps that are multiples of these steps; the clock of the second drifts.
fn in_steps(gap: u64, leg: u64, busy: u64, steps: [u64; 2], ppm: u64) -> Alignment {
    let near = |time: u64| time / steps[0] * steps[0];
    let far = |time: u64| (time + 5000 * MS + time * ppm / 1_000_000) / steps[1] * steps[1];
    requests(gap, leg, busy, [&near, &far])
}

/// Taps on one switch, stamps in µs; a leg of 200 µs, stamps in ms.
#[test]
fn steps_of_the_stamps_are_no_clock_that_was_set() {
    for (gap, leg, steps, ppm) in [
        (60 * MS, 400, [1000, 1000], 14),
        (60 * MS, 400, [1000, 1], 14),
        (60 * MS, 300, [1000, 1000], 0),
        (13 * MS, 200_000, [1000, MS], 0),
        (13 * MS, 200_000, [1, MS], 0),
        (13 * MS, 200_000, [MS, 1000], 40),
        (13 * MS, 2 * MS, [10 * MS, 10 * MS], 0),
    ] {
        let answer = in_steps(gap, leg, 0, steps, ppm);
        let leg = &answer.legs[0];
        let case = format!("{gap} {steps:?} {ppm}: {leg:?}");
        assert_eq!((leg.from.as_str(), leg.clock.len()), ("A", 1), "{case}");
        let (offset, width) = (leg.offset_seconds.unwrap(), leg.offset_width_seconds.unwrap());
        assert!((offset - 5.0).abs() <= width / 2.0, "{case}");
        for delay in [leg.delay_forward.unwrap(), leg.delay_backward.unwrap()] {
            assert!(delay.min_seconds >= 0.0, "{case}");
        }
        assert_eq!((leg.only_from, leg.only_to), (0, 0), "{case}");
    }
}

/// Steps far larger than the leg take from most round trips there and back and add much to few: their sum tells who is first.
#[test]
fn steps_do_not_turn_the_leg_around() {
    let answer = in_steps(213 * MS, MS, 9 * MS, [1, 15_625_000], 0);
    let leg = &answer.legs[0];
    assert_eq!(leg.from, "A", "{leg:?}");
    let (offset, width) = (leg.offset_seconds.unwrap(), leg.offset_width_seconds.unwrap());
    assert!((offset - 5.0).abs() <= width / 2.0, "{leg:?}");
    for pie in &answer.pies[..1] {
        let busy = pie.client_seconds + pie.server_seconds;
        assert!(busy <= pie.total_seconds * 1.000_001, "{pie:?}");
    }
}

/// A capture that writes the frames of one direction in blocks, behind others that came later: time does not run backwards in records, and
/// they have the stamp of the one before, which is late.
#[test]
fn frames_out_of_order_in_a_file_have_no_time() {
    let (mut near, mut far, leg) = (Vec::new(), Vec::new(), 5 * MS);
    for n in 0..1000u64 {
        let at = n * 7 * MS + n * 7919 % MS;
        let (_, request) = packet(
            1024,
            at,
            true,
            tcp_flag::ACK,
            1000 + n as u32 * 100,
            5000 + n as u32 * 900,
            100,
        );
        let (_, answer) = packet(
            1024,
            at + leg + MS,
            false,
            tcp_flag::ACK,
            5000 + n as u32 * 900,
            1100 + n as u32 * 100,
            900,
        );
        let later = |meta: Meta| Meta {
            time: meta.time + leg,
            ..meta
        };
        let written = (request.time / (10 * MS) + 1) * 10 * MS;
        near.extend([(written, request), (later(answer).time, later(answer))]);
        far.extend([(0, later(request)), (0, answer)]);
    }
    near.sort_by_key(|(written, _)| *written);
    let captures = [near, far].map(|frames| {
        let frames: Vec<Meta> = frames.into_iter().map(|(_, meta)| meta).collect();
        support::records_of(&frames)
    });
    let leg = &support::align(&captures).unwrap().legs[0];
    assert!(leg.offset_seconds.unwrap().abs() < 50e-6, "{leg:?}");
    assert!(leg.round_trip_seconds.unwrap() > 9.9e-3, "{leg:?}");
}

/// The second clock is set half-way, by so many ms, while packets come: none has a delay by the line of the other side of that.
#[test]
fn packets_around_a_clock_that_was_set_have_no_delay() {
    let leg = 5 * MS;
    // In the last ones packets come so fast that those on their way fill more than a block.
    let cases = [
        (-50, 60),
        (50, 60),
        (-500, 60),
        (-17, 60),
        (800, 60),
        (-6, 4),
        (-4, 4),
        (4, 4),
    ];
    for (k, (by, gap)) in cases.into_iter().enumerate() {
        let set_at = 500 * gap * MS + k as u64 * 7 * MS;
        let near = |time: u64| time;
        let far = |time: u64| {
            let time_there = 2000 * MS + time + time / 70_000;
            if time < set_at {
                time_there
            } else {
                time_there.wrapping_add_signed(by * 1_000_000)
            }
        };
        let answer = requests(gap * MS, leg, 0, [&near, &far]);
        let leg = &answer.legs[0];
        let case = format!("{by} ms: {leg:?}");
        assert_eq!((leg.from.as_str(), leg.clock.len()), ("A", 2), "{case}");
        for (piece, is_before) in leg.clock.iter().zip([true, false]) {
            let at = |stamp: weir_messages::Timestamp| weir_record::time::tai_from_utc(stamp.unix_nanos() as u64) - T0;
            let (start, end) = (at(piece.start.unwrap()), at(piece.end.unwrap()));
            assert_eq!((start < set_at, end < set_at), (is_before, is_before), "{case}");
            let error = (far(start) as f64 - start as f64) / 1e9 - piece.offset_seconds;
            assert!(error.abs() <= piece.offset_width_seconds / 2.0, "{error} {case}");
        }
        for delay in [leg.delay_forward.unwrap(), leg.delay_backward.unwrap()] {
            assert!(delay.min_seconds > 4e-3 && delay.max_seconds < 6e-3, "{case}");
            assert!(delay.samples > 2800, "{case}");
        }
    }
}
