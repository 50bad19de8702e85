//! Conversations over a path of two legs whose every loss is known, seen by three taps that see only what passes them:
//! boxes that translate addresses and rewrite sequence numbers, segmentation offload, captures that drop, small windows.
//! Seeds are fixed and named in every message.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{HashMap, HashSet};

use support::end;
use weir_align::{Alignment, Passage};
use weir_engine::{Class, End, Key, Meta, Options};
use weir_record::Record;
use weir_record::tcp_flag;

const MS: u64 = 1_000_000;
const T0: u64 = 1_700_000_037_000_000_000;
const MSS: u32 = 1000;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() * n as f64) as u64
    }
}

/// What the path does.
#[derive(Clone, Copy)]
struct Path {
    loss: f64,
    copies: f64,
    /// Timestamps option, and IP ids other than 0.
    timestamps: bool,
    ip_ids: bool,
    connections: u16,
}

const PATH: Path = Path {
    loss: 0.03,
    copies: 0.01,
    timestamps: true,
    ip_ids: true,
    connections: 30,
};

/// A packet at a tap, in true time.
#[derive(Clone, Debug)]
struct Seen {
    tap: usize,
    meta: Meta,
    from_client: bool,
    /// It, or a copy of it, reached the last tap of its way.
    arrived: bool,
}

#[derive(Default)]
struct World {
    seen: Vec<Seen>,
    /// By leg and direction (0: from the client).
    lost: [[u64; 2]; 2],
    copied: [[u64; 2]; 2],
    ids: [u16; 2],
}

struct Side {
    end: End,
    next: u32,
}

impl World {
    /// A packet on its way from tap to tap; when it arrived.
    fn send(&mut self, random: &mut Random, path: Path, time: u64, from_client: bool, meta: Meta) -> Option<u64> {
        let direction = usize::from(!from_client);
        let mut meta = meta;
        self.ids[direction] = self.ids[direction].wrapping_add(1).max(1);
        meta.ip_id = if path.ip_ids { self.ids[direction] } else { 0 };
        if path.timestamps {
            meta.options.timestamps = Some(((time / MS) as u32, 7));
        }
        let first = self.seen.len();
        let (mut times, mut arrived) = (vec![time], Some(time));
        for hop in 0..3 {
            let tap = if from_client { hop } else { 2 - hop };
            for &time in &times {
                let meta = Meta { time, ..meta };
                self.seen.push(Seen {
                    tap,
                    meta,
                    from_client,
                    arrived: false,
                });
            }
            arrived = times.first().copied();
            if hop == 2 {
                break;
            }
            let leg = if from_client { hop } else { 1 - hop };
            let mut out = Vec::new();
            for time in times {
                if random.next() < path.loss {
                    self.lost[leg][direction] += 1;
                    continue;
                }
                // 2 and 5 ms, and a little that keeps the order of a burst.
                let time = time + [2, 5][leg] * MS + random.below(5_000);
                out.push(time);
                if random.next() < path.copies {
                    self.copied[leg][direction] += 1;
                    out.push(time + 100_000);
                }
            }
            times = out;
        }
        let end = if from_client { 2 } else { 0 };
        let reached = self.seen[first..].iter().any(|seen| seen.tap == end);
        for seen in &mut self.seen[first..] {
            seen.arrived = reached;
        }
        arrived.filter(|_| reached)
    }

    /// Send until it arrives.
    fn deliver(&mut self, random: &mut Random, path: Path, mut time: u64, from_client: bool, meta: Meta) -> u64 {
        let mut wait = 300 * MS;
        loop {
            if let Some(arrival) = self.send(random, path, time, from_client, meta) {
                return arrival;
            }
            time += wait + random.below(MS);
            wait *= 2;
        }
    }

    fn conversation(&mut self, random: &mut Random, path: Path, start: u64, port: u16) {
        let mut sides = [
            Side {
                end: end([10, 0, 0, 1], port),
                next: (random.next() * 4e9) as u32,
            },
            Side {
                end: end([10, 0, 0, 2], 443),
                next: (random.next() * 4e9) as u32,
            },
        ];
        let packet = |sides: &[Side; 2], from: usize, flags: u8, len: u32| {
            let (key, from_low) = Key::new(sides[from].end, sides[1 - from].end, 6);
            Meta {
                key,
                from_low,
                wire: 54 + len,
                payload: len,
                seq: sides[from].next,
                ack: if flags & tcp_flag::ACK != 0 {
                    sides[1 - from].next
                } else {
                    0
                },
                flags,
                window: 60_000,
                ttl: 64,
                options: Options {
                    // With timestamps.
                    mss: if flags & tcp_flag::SYN != 0 { MSS as u16 + 12 } else { 0 },
                    scale: 255,
                    ..Options::default()
                },
                ..Meta::default()
            }
        };
        let mut now = self.deliver(random, path, start, true, packet(&sides, 0, tcp_flag::SYN, 0));
        sides[0].next = sides[0].next.wrapping_add(1);
        now = self.deliver(
            random,
            path,
            now,
            false,
            packet(&sides, 1, tcp_flag::SYN | tcp_flag::ACK, 0),
        );
        sides[1].next = sides[1].next.wrapping_add(1);
        self.send(random, path, now, true, packet(&sides, 0, tcp_flag::ACK, 0));
        for turn in 0..6 + random.below(6) {
            let from = (turn % 2) as usize;
            now += random.below(20) * MS;
            let segments = 1 + random.below(30);
            let mut arrivals = Vec::new();
            for k in 0..segments {
                let len = if k + 1 == segments {
                    1 + random.below(999) as u32
                } else {
                    MSS
                };
                let meta = packet(&sides, from, tcp_flag::ACK, len);
                // 8 µs apart on a link of 1 Gbit/s.
                arrivals.push(self.deliver(random, path, now + k * 8_000, from == 0, meta));
                sides[from].next = sides[from].next.wrapping_add(len);
                // The receiver acknowledges every second segment that came in order.
                if k % 2 == 1 {
                    let so_far = *arrivals.iter().max().unwrap();
                    self.send(
                        random,
                        path,
                        so_far,
                        from != 0,
                        packet(&sides, 1 - from, tcp_flag::ACK, 0),
                    );
                }
            }
            now = arrivals.into_iter().max().unwrap();
            // All of it, so that there is evidence whatever comes next.
            self.deliver(
                random,
                path,
                now + MS,
                from != 0,
                packet(&sides, 1 - from, tcp_flag::ACK, 0),
            );
            now += 60 * MS;
        }
        for from in 0..2 {
            now = self.deliver(
                random,
                path,
                now,
                from == 0,
                packet(&sides, from, tcp_flag::FIN | tcp_flag::ACK, 0),
            );
            sides[from].next = sides[from].next.wrapping_add(1);
        }
        self.deliver(random, path, now, true, packet(&sides, 0, tcp_flag::ACK, 0));
    }

    fn new(seed: u64, path: Path) -> Self {
        let mut random = Random(seed);
        let mut world = Self::default();
        for k in 0..path.connections {
            let start = T0 + (1000 + random.below(4000)) * MS;
            world.conversation(&mut random, path, start, 40_000 + k);
        }
        // Nobody's last packet is the capture's last.
        let quiet = Path {
            loss: 0.0,
            copies: 0.0,
            ..path
        };
        let last = world.seen.iter().map(|seen| seen.meta.time).max().unwrap();
        world.conversation(&mut random, quiet, T0, 39_999);
        world.conversation(&mut random, quiet, last + 1000 * MS, 39_998);
        world.seen.sort_by_key(|seen| seen.meta.time);
        world
    }

    /// What a tap captured: packets that `keep` wants, changed by `change`, on a clock.
    fn capture(&self, tap: usize, clock: impl Fn(u64) -> u64, keep: impl Fn(usize, &Seen) -> bool) -> Vec<Meta> {
        self.seen
            .iter()
            .enumerate()
            .filter(|(at, seen)| seen.tap == tap && keep(*at, seen))
            .map(|(_, seen)| Meta {
                time: clock(seen.meta.time),
                ttl: seen.meta.ttl - if seen.from_client { tap } else { 2 - tap } as u8,
                ..seen.meta
            })
            .collect()
    }
}

fn plain(time: u64) -> u64 {
    time
}

fn late(time: u64) -> u64 {
    time + 123_456_789_000 + (time - T0) / 20_000
}

fn early(time: u64) -> u64 {
    time - 7_000_000_123 - (time - T0) / 50_000
}

fn all(_: usize, _: &Seen) -> bool {
    true
}

fn losses(answer: &Alignment) -> Vec<[u64; 2]> {
    answer
        .legs
        .iter()
        .map(|leg| [leg.lost_forward, leg.lost_backward])
        .collect()
}

fn copies(answer: &Alignment) -> Vec<[u64; 2]> {
    let of = |leg: &weir_messages::v1::Leg| [leg.duplicated_forward, leg.duplicated_backward];
    answer.legs.iter().map(of).collect()
}

/// Undecided and outside on all legs, missed by all captures.
fn rest(answer: &Alignment) -> [u64; 3] {
    [
        answer.legs.iter().map(|leg| leg.undecided).sum(),
        answer.legs.iter().map(|leg| leg.outside).sum(),
        answer.taps.iter().map(|tap| tap.missed_by_capture).sum(),
    ]
}

/// Offsets of the clocks above, at the start of the first stretch.
fn offsets_are_right(answer: &Alignment, seed: u64) {
    for (leg, to, sign) in [(0, late as fn(u64) -> u64, 1.0), (1, early, -1.0)] {
        let leg = &answer.legs[leg];
        let start = weir_record::time::tai_from_utc(leg.clock[0].start.unwrap().unix_nanos() as u64);
        // The first leg starts from the plain clock; the second ends where `early` is and starts from `late`.
        let truth = if sign > 0.0 {
            to(start) as f64 - start as f64
        } else {
            let time = start - 123_456_789_000 - (start - 123_456_789_000 - T0) / 20_001;
            to(time) as f64 - late(time) as f64
        };
        let error = (1e9 * leg.offset_seconds.unwrap() - truth).abs();
        assert!(
            error <= 0.5e9 * leg.offset_width_seconds.unwrap(),
            "seed {seed}: {error} ns of {leg:?}"
        );
        assert!(error < 50_000.0, "seed {seed}: {error} ns of {leg:?}");
    }
}

/// What each tap has; the clocks of the second and third are wrong.
fn three_taps(world: &World) -> [Vec<Record>; 3] {
    [
        support::records_of(&world.capture(0, plain, all)),
        support::records_of(&world.capture(1, late, all)),
        support::records_of(&world.capture(2, early, all)),
    ]
}

#[test]
fn losses_and_copies_are_exact_on_each_leg() {
    for seed in 1..=6 {
        let world = World::new(seed, PATH);
        let captures = three_taps(&world);
        for window in [weir_align::WINDOW, 1500] {
            let answer = support::align_within(&captures, window).unwrap();
            assert_eq!(
                losses(&answer),
                world.lost,
                "seed {seed}, window {window} {:?}",
                rest(&answer)
            );
            assert_eq!(copies(&answer), world.copied, "seed {seed}, window {window}");
            assert_eq!(rest(&answer), [0, 0, 0], "seed {seed}, window {window}");
            offsets_are_right(&answer, seed);
        }
    }
}

/// It is outside of what that capture covers, and the leg before has said so.
#[test]
fn a_last_packet_that_one_capture_misses_is_outside_once() {
    let world = World::new(95, PATH);
    let mut captures = three_taps(&world);
    let mut middle = world.capture(1, late, all);
    middle.pop();
    captures[1] = support::records_of(&middle);
    let answer = support::align(&captures).unwrap();
    assert_eq!(losses(&answer), world.lost);
    assert_eq!(rest(&answer), [0, 1, 0]);
    assert_eq!(answer.legs[1].outside, 0);
}

/// Captures that begin and end at once, while packets are on their way: nothing of these is lost, or missed.
#[test]
fn what_is_on_its_way_when_captures_begin_and_end_is_outside() {
    let whole = Path {
        loss: 0.0,
        copies: 0.0,
        ..PATH
    };
    let mut outside = 0;
    for seed in 1..=20 {
        let world = World::new(seed, whole);
        let (from, to) = (T0 + (1500 + 7 * seed) * MS, T0 + (3500 + 11 * seed) * MS);
        let within = |_: usize, seen: &Seen| (from..=to).contains(&seen.meta.time);
        let captures = [
            support::records_of(&world.capture(0, plain, within)),
            support::records_of(&world.capture(1, late, within)),
            support::records_of(&world.capture(2, early, within)),
        ];
        let answer = support::align(&captures).unwrap();
        assert_eq!(losses(&answer), world.lost, "seed {seed}");
        let [undecided, left_out, missed] = rest(&answer);
        assert_eq!([undecided, missed], [0, 0], "seed {seed}");
        outside += left_out;
    }
    assert!(outside > 20, "{outside}");
}

/// The middle capture has some packets twice: no leg lost any of them, though it may be that the network made these copies.
#[test]
fn a_few_copies_of_a_capture_are_no_losses() {
    for seed in 103..106 {
        let path = Path { copies: 0.0, ..PATH };
        let world = World::new(seed, path);
        let mut captures = three_taps(&world);
        let mut copied = world.capture(1, late, all);
        let again = copied.iter().step_by(50).map(|meta| Meta {
            time: meta.time + 30_000,
            ..*meta
        });
        let again: Vec<_> = again.collect();
        copied.extend(&again);
        copied.sort_by_key(|meta| meta.time);
        captures[1] = support::records_of(&copied);
        let answer = support::align(&captures).unwrap();
        assert_eq!(losses(&answer), world.lost, "seed {seed}");
        let [undecided, ..] = rest(&answer);
        let duplicated: u64 = copies(&answer).iter().flatten().sum();
        assert!(again.len() > 20);
        // But for the last ones, after which nothing came.
        let (told, most) = (undecided + duplicated, 2 * again.len() as u64);
        assert!(
            (most - 2..=most).contains(&told),
            "seed {seed}: {told} of {most} on both legs"
        );
    }
}

/// Bursts come in between a packet and its copy.
#[test]
fn copies_of_a_mirror_port_are_no_leg_s() {
    // From one to another, ns.
    let delays = [
        (30_000, 0),
        (30_000, 0),
        (30_000, 0),
        (50_000, 100_000),
        (900_000, 0),
        (3_000_000, 100_000),
    ];
    for (seed, (delay, jitter)) in (97..).zip(delays) {
        // Copies of the network that come as late as those of the mirror are taken for them.
        let by_network = if delay + jitter < 100_000 { PATH.copies } else { 0.0 };
        let path = Path {
            copies: by_network,
            ..PATH
        };
        let world = World::new(seed, path);
        let mut captures = three_taps(&world);
        let mut mirrored = world.capture(1, late, all);
        let copy = |(n, meta): (usize, &Meta)| Meta {
            time: meta.time + delay + jitter * (n as u64 % 8) / 8,
            ..*meta
        };
        mirrored.extend(mirrored.iter().enumerate().map(copy).collect::<Vec<_>>());
        mirrored.sort_by_key(|meta| meta.time);
        captures[1] = support::records_of(&mirrored);
        for (window, batch) in [(weir_align::WINDOW, 100), (3000, 150), (1500, 64), (1500, 150)] {
            let answer = support::align_in_batches(&captures, window, batch).unwrap();
            let case = format!("seed {seed}, window {window}, batches of {batch}");
            assert_eq!(losses(&answer), world.lost, "{case}");
            assert_eq!(copies(&answer), world.copied, "{case}");
            assert_eq!(rest(&answer), [0; 3], "{case}");
            offsets_are_right(&answer, seed);
            for leg in &answer.legs {
                let said = leg.placement.iter().any(|words| words.starts_with("B: a mirror port"));
                assert!(said, "{leg:?}");
            }
        }
    }
}

#[test]
fn a_tap_between_has_its_own_time_for_each_packet() {
    for seed in 31..=33 {
        let world = World::new(seed, Path { copies: 0.0, ..PATH });
        let captures = three_taps(&world);
        for window in [weir_align::WINDOW, 1500] {
            let answer = support::align_within(&captures, window).unwrap();
            let [between] = &answer.sightings.between[..] else {
                panic!("one tap of three is between the others")
            };
            // An IP id and a direction name a packet.
            let at = |tap: usize| -> HashMap<(bool, u16), u64> {
                let seen = world.seen.iter().filter(move |seen| seen.tap == tap);
                seen.map(|seen| ((seen.from_client, seen.meta.ip_id), seen.meta.time))
                    .collect()
            };
            let taps = [at(0), at(1), at(2)];
            let of_tap_0 = |packet: &(bool, u16)| taps[0].contains_key(packet);
            let of_tap_2_alone = |packet: &(bool, u16)| taps[2].contains_key(packet) && !of_tap_0(packet);
            for (found, wanted) in [
                (&between[0], &of_tap_0 as &dyn Fn(&(bool, u16)) -> bool),
                (&between[2], &of_tap_2_alone),
            ] {
                let mut found: Vec<u64> = found.iter().map(|pass| pass.time).collect();
                let there = taps[1].iter().filter(|(packet, _)| wanted(packet));
                let mut truth: Vec<u64> = there.map(|(_, time)| *time).collect();
                found.sort_unstable();
                truth.sort_unstable();
                assert!(truth.len() > 20, "{}", truth.len());
                assert_eq!(found.len(), truth.len(), "seed {seed}, window {window}");
                let error = found.iter().zip(&truth).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                assert!(error < 50_000, "seed {seed}, window {window}: {error} ns");
            }
        }
    }
}

#[test]
fn what_only_a_tap_between_has_is_told_with_what_became_of_it() {
    for seed in 41..=43 {
        let world = World::new(seed, Path { copies: 0.0, ..PATH });
        let name = |seen: &Seen| (!seen.from_client, seen.meta.ip_id);
        let between: HashSet<_> = world.seen.iter().filter(|seen| seen.tap == 1).map(name).collect();
        // What the tap beside its sender does not capture, and is lost behind the one between.
        let dropped = |seen: &Seen| seen.meta.payload > 0 && !seen.arrived && between.contains(&name(seen));
        let captures = [(0, plain as fn(u64) -> u64), (1, late), (2, early)]
            .map(|(tap, clock)| support::records_of(&world.capture(tap, clock, |_, seen| tap == 1 || !dropped(seen))));
        let mut truth: Vec<_> = world
            .seen
            .iter()
            .filter(|seen| seen.tap == 1 && dropped(seen))
            .collect();
        truth.sort_by_key(|seen| name(seen));
        assert!(truth.len() > 20, "{}", truth.len());
        for window in [weir_align::WINDOW, 1500] {
            let answer = support::align_within(&captures, window).unwrap();
            let sightings = &answer.sightings;
            let mut found: Vec<_> = sightings.far.iter().filter(|packet| packet.tap == 1).collect();
            found.sort_by_key(|packet| (packet.from_server, packet.ip_id));
            let names: Vec<_> = found.iter().map(|packet| (packet.from_server, packet.ip_id)).collect();
            let wanted: Vec<_> = truth.iter().map(|seen| name(seen)).collect();
            assert_eq!(names, wanted, "seed {seed}, window {window}");
            for (packet, seen) in found.iter().zip(&truth) {
                assert_eq!(packet.passage, Passage::Lost, "seed {seed}: {packet:?}");
                assert!(
                    packet.time.abs_diff(seen.meta.time) < 50_000,
                    "seed {seed}: {packet:?} {seen:?}"
                );
                assert_eq!(
                    (packet.seq, packet.length),
                    (seen.meta.seq, seen.meta.payload),
                    "seed {seed}"
                );
            }
        }
    }
}

#[test]
fn without_ids_and_timestamps_the_number_of_losses_is_exact() {
    for seed in 11..=14 {
        let path = Path {
            timestamps: false,
            ip_ids: false,
            copies: 0.0,
            ..PATH
        };
        let world = World::new(seed, path);
        let captures: Vec<_> = (0..3)
            .map(|tap| support::records_of(&world.capture(tap, plain, all)))
            .collect();
        let answer = support::align(&captures).unwrap();
        assert_eq!(losses(&answer), world.lost, "seed {seed} {:?}", rest(&answer));
    }
}

#[test]
fn a_capture_that_drops_is_not_the_network() {
    for seed in 21..=24 {
        let world = World::new(seed, PATH);
        // Of two taps, only data tells: the receiver acknowledges what the capture lacks.
        let dropped = |at: usize, seen: &Seen| at % 17 == 3 && seen.meta.payload > 0 && seen.arrived;
        for tap in [0, 2] {
            // Copies of one packet may each be dropped; whatever is left of it, it was there.
            let path = Path { copies: 0.0, ..PATH };
            let world = World::new(seed, path);
            let mut captures: Vec<_> = [0, 2].map(|tap| world.capture(tap, plain, all)).into();
            captures[tap / 2] = world.capture(tap, plain, |at, seen| !dropped(at, seen));
            let count = world
                .seen
                .iter()
                .enumerate()
                .filter(|(at, s)| s.tap == tap && dropped(*at, s))
                .count();
            assert!(count > 20, "{count}");
            let captures: Vec<_> = captures.iter().map(|packets| support::records_of(packets)).collect();
            let answer = support::align(&captures).unwrap();
            let missed: Vec<u64> = answer.taps.iter().map(|tap| tap.missed_by_capture).collect();
            let expected = if tap == 0 { [count as u64, 0] } else { [0, count as u64] };
            assert_eq!(missed, expected, "seed {seed}, tap {tap}");
            let data_and_all: u64 = losses(&answer)[0].iter().sum::<u64>() + answer.legs[0].undecided;
            let truth: u64 = world.lost.iter().flatten().sum();
            assert_eq!(data_and_all, truth, "seed {seed}, tap {tap}");
        }
        // Of three, everything that arrived does.
        let any = |at: usize, seen: &Seen| at % 13 == 5 && seen.arrived && seen.tap == 1;
        let captures = [
            world.capture(0, plain, all),
            world.capture(1, late, |at, seen| !any(at, seen)),
            world.capture(2, early, all),
        ];
        let count = world
            .seen
            .iter()
            .enumerate()
            .filter(|(at, seen)| any(*at, seen))
            .count() as u64;
        let captures: Vec<_> = captures.iter().map(|packets| support::records_of(packets)).collect();
        let answer = support::align(&captures).unwrap();
        let missed = answer.taps[1].missed_by_capture;
        // A copy made before the tap and dropped by it looks like one made behind it.
        assert!(
            missed.abs_diff(count) <= world.copied.iter().flatten().sum(),
            "seed {seed}: {missed} of {count}"
        );
    }
}

/// The client's capture has nothing of a connection's end, no ACK either: the server's capture has what the client acknowledged.
#[test]
fn acks_at_the_other_tap_prove_what_a_capture_missed() {
    let quiet = Path {
        loss: 0.0,
        copies: 0.0,
        ..PATH
    };
    let world = World::new(25, quiet);
    let ends = |seen: &Seen| {
        let port = seen.meta.key.low.port.max(seen.meta.key.high.port);
        let of_port = world
            .seen
            .iter()
            .filter(|s| s.meta.key == seen.meta.key)
            .map(|s| s.meta.time);
        let (first, last) = (of_port.clone().min().unwrap(), of_port.max().unwrap());
        port == 40_007 && seen.meta.time > first.midpoint(last)
    };
    let captures = [
        world.capture(0, plain, |_, seen| !ends(seen)),
        world.capture(2, plain, all),
    ];
    let answer = support::align(&captures.map(|packets| support::records_of(&packets))).unwrap();
    assert_eq!(losses(&answer), [[0, 0]], "{answer:?}");
    assert!(answer.taps[0].missed_by_capture > 20, "{:?}", answer.taps);
}

#[test]
fn a_repeat_that_a_leg_lost_did_not_bring_what_the_capture_missed() {
    for seed in 25..=28 {
        let quiet = Path {
            loss: 0.0,
            copies: 0.0,
            ..PATH
        };
        let mut world = World::new(seed, quiet);
        // Of these the middle capture misses the first copy; the second is sent just before the ACK comes back, and lost.
        let is_one = |seen: &Seen| seen.from_client && seen.meta.payload > 0 && seen.meta.ip_id % 40 == 7;
        let mut repeats: Vec<Seen> = world
            .seen
            .iter()
            .filter(|seen| seen.tap == 0 && is_one(seen))
            .cloned()
            .collect();
        for (k, repeat) in (0..).zip(&mut repeats) {
            repeat.meta.time += 12 * MS;
            repeat.meta.ip_id = 60_000 + k;
            repeat.meta.options.timestamps = Some(((repeat.meta.time / MS) as u32, 7));
        }
        let count = repeats.len() as u64;
        assert!(count > 20, "{count}");
        world.seen.extend(repeats);
        world.seen.sort_by_key(|seen| seen.meta.time);
        let captures = [
            support::records_of(&world.capture(0, plain, all)),
            support::records_of(&world.capture(1, late, |_, seen| !is_one(seen))),
            support::records_of(&world.capture(2, early, all)),
        ];
        let answer = support::align(&captures).unwrap();
        assert_eq!(
            losses(&answer),
            [[count, 0], [0, 0]],
            "seed {seed}: {:?}",
            rest(&answer)
        );
        assert_eq!(rest(&answer), [0, 0, count], "seed {seed}");
    }
}

/// Addresses translated, sequence numbers of one or both sides moved, between taps 0 and 1.
fn behind_box(packets: &mut [Meta], translate: bool, client_shift: u32, server_shift: u32) {
    for meta in packets {
        let (low, high) = (meta.key.low, meta.key.high);
        let from = if meta.from_low { low } else { high };
        let is_client = from.port != 443;
        let (mut source, mut destination) = if meta.from_low { (low, high) } else { (high, low) };
        if translate {
            let client = if is_client { &mut source } else { &mut destination };
            client.addr[12..].copy_from_slice(&[192, 0, 2, 77]);
            client.port = client.port.wrapping_add(9_000);
        }
        (meta.key, meta.from_low) = Key::new(source, destination, 6);
        let (own, other) = if is_client {
            (client_shift, server_shift)
        } else {
            (server_shift, client_shift)
        };
        meta.seq = meta.seq.wrapping_add(own);
        if meta.flags & tcp_flag::ACK != 0 {
            meta.ack = meta.ack.wrapping_add(other);
        }
    }
}

#[test]
fn boxes_that_translate_and_rewrite() {
    for (seed, translate, client, server) in [
        (31, true, 0, 0),
        (32, false, 0x1234_5678, 0),
        (33, false, 0x9876_5432, 0xf000_0001),
        (34, true, 0x7777_7777, 0x1111_1111),
    ] {
        let world = World::new(seed, Path { copies: 0.0, ..PATH });
        let near = world.capture(0, plain, all);
        let mut far = world.capture(2, late, all);
        behind_box(&mut far, translate, client, server);
        let captures = [support::records_of(&near), support::records_of(&far)];
        let answer = support::align(&captures).unwrap();
        let truth = [world.lost[0][0] + world.lost[1][0], world.lost[0][1] + world.lost[1][1]];
        assert_eq!(losses(&answer), [truth], "seed {seed} {:?}", rest(&answer));
        assert_eq!(answer.taps[0].connections_only_here, 0, "seed {seed}");
        let said = answer.legs[0].placement.join("; ");
        assert_eq!(
            said.contains("addresses are translated: 32 connections"),
            translate,
            "{said}"
        );
        assert_eq!(
            said.contains("sequence numbers are rewritten: 32"),
            client != 0,
            "{said}"
        );
        assert!(said.contains("2 routers forward: TTL 64 becomes 62"), "{said}");
    }
}

#[test]
fn a_box_that_changes_what_syns_offer_is_said() {
    let world = World::new(36, Path { copies: 0.0, ..PATH });
    let offers = |mut packets: Vec<Meta>, mss: u16, answered: u8| {
        for meta in packets.iter_mut().filter(|meta| meta.flags & tcp_flag::SYN != 0) {
            let is_answer = meta.flags & tcp_flag::ACK != 0;
            meta.options.scale = if is_answer { answered } else { 7 };
            meta.options.mss = if is_answer { 1460 } else { mss };
        }
        support::records_of(&packets)
    };
    let (near, far) = (world.capture(0, plain, all), world.capture(2, late, all));
    let said = |captures: [Vec<Record>; 2]| support::align(&captures).unwrap().legs[0].placement.join("; ");
    let changed = said([offers(near.clone(), 1460, 255), offers(far.clone(), 1380, 8)]);
    let expected = "the window scale of SYN-ACKs is changed on the way, 8 becomes none: 3";
    assert!(changed.contains(expected), "{changed}");
    let expected = "the MSS of SYNs is changed on the way, 1460 becomes 1380: 3";
    assert!(changed.contains(expected), "{changed}");
    assert_eq!(changed.matches("changed on the way").count(), 2, "{changed}");
    let same = said([offers(near, 1460, 8), offers(far, 1460, 8)]);
    assert!(!same.contains("changed on the way"), "{same}");
}

/// A capture that keeps too little of a frame has no options of SYNs: no box took them, and they are the same packets.
#[test]
fn options_that_a_capture_cut_off_tell_nothing() {
    let world = World::new(
        37,
        Path {
            copies: 0.0,
            ip_ids: false,
            ..PATH
        },
    );
    let mut captures = [0, 2].map(|tap| world.capture(tap, plain, all));
    for meta in captures
        .iter_mut()
        .flatten()
        .filter(|meta| meta.flags & tcp_flag::SYN != 0)
    {
        meta.options.scale = 7;
    }
    for meta in captures[1].iter_mut().filter(|meta| meta.flags & tcp_flag::SYN != 0) {
        meta.options = Options {
            incomplete: true,
            ..Options::default()
        };
    }
    let answer = support::align(&captures.map(|packets| support::records_of(&packets))).unwrap();
    let truth = [world.lost[0][0] + world.lost[1][0], world.lost[0][1] + world.lost[1][1]];
    assert_eq!(losses(&answer), [truth], "{:?}", rest(&answer));
    let said = answer.legs[0].placement.join("; ");
    assert!(!said.contains("changed on the way"), "{said}");
}

/// A mirror port copies all of one direction and some ACKs of the other, and nothing but the content tells packets apart: no leg
/// lost these copies.
#[test]
fn a_mirror_that_copies_a_direction_may_have_copied_the_other() {
    let world = World::new(
        38,
        Path {
            copies: 0.0,
            ip_ids: false,
            ..PATH
        },
    );
    let (mut near, mut count) = (Vec::new(), 0);
    for meta in world.capture(0, plain, all) {
        let is_servers = meta.from_low == (meta.key.low.port == 443);
        count += 1;
        near.push(meta);
        if is_servers || meta.payload == 0 && meta.flags == tcp_flag::ACK && count % 4 == 0 {
            near.push(Meta {
                time: meta.time + 5_000,
                ..meta
            });
        }
    }
    near.sort_by_key(|meta| meta.time);
    let far = support::records_of(&world.capture(2, plain, all));
    let answer = support::align(&[support::records_of(&near), far]).unwrap();
    let forward = world.lost[0][0] + world.lost[1][0];
    let leg = &answer.legs[0];
    assert!(
        leg.lost_forward <= forward && leg.undecided > 100,
        "{forward}: {:?}",
        losses(&answer)
    );
}

/// Bursts as one large packet, as the sender's own capture shows them when its card cuts them; a receiver's card may join timestamps that are
/// so many `ticks` apart.
fn joined(packets: Vec<Meta>, ticks: u32) -> Vec<Meta> {
    let is_near = |one: Option<(u32, u32)>, other: Option<(u32, u32)>| {
        let apart = one.zip(other).map(|(one, other)| one.0.abs_diff(other.0));
        one.is_some() == other.is_some() && apart.unwrap_or(0) <= ticks
    };
    let mut out: Vec<Meta> = Vec::new();
    for meta in packets {
        let same = out.iter_mut().rev().take(200).find(|last| {
            last.key == meta.key
                && last.from_low == meta.from_low
                && meta.payload > 0
                && last.payload > 0
                && last.payload < 40_000
                && last.seq.wrapping_add(last.payload) == meta.seq
                && last.ack == meta.ack
                && is_near(last.options.timestamps, meta.options.timestamps)
                && meta.time - last.time < 500_000
        });
        match same {
            Some(last) => {
                last.payload += meta.payload;
                last.wire += meta.payload;
            }
            None => out.push(meta),
        }
    }
    out
}

#[test]
fn segmentation_offload_at_one_tap() {
    for (seed, ticks) in (41..=44).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let path = Path { copies: 0.0, ..PATH };
        let world = World::new(seed, path);
        let (mut near, mut others): (Vec<Meta>, Vec<Meta>) = world
            .capture(0, plain, all)
            .into_iter()
            .partition(|meta| meta.payload > 0 && meta.from_low == (meta.key.low.port != 443));
        let before = near.len();
        near = joined(near, ticks);
        assert!(near.len() < before / 4, "{} of {before}", near.len());
        let large = near.len();
        others.extend(near);
        others.sort_by_key(|meta| meta.time);
        let captures = [
            support::records_of(&others),
            support::records_of(&world.capture(2, late, all)),
        ];
        let answer = support::align(&captures).unwrap();
        let truth = [world.lost[0][0] + world.lost[1][0], world.lost[0][1] + world.lost[1][1]];
        assert_eq!(
            losses(&answer),
            [truth],
            "seed {seed}, {large} large {:?}",
            rest(&answer)
        );
        assert_eq!(rest(&answer), [0, 0, 0], "seed {seed}");
        assert!(
            answer.legs[0]
                .placement
                .iter()
                .any(|line| line.contains("segmentation offload"))
        );
    }
}

/// With data as large packets.
fn offloaded(packets: Vec<Meta>) -> Vec<Record> {
    let (data, mut others): (Vec<Meta>, Vec<Meta>) = packets.into_iter().partition(|meta| meta.payload > 0);
    others.extend(joined(data, 0));
    others.sort_by_key(|meta| meta.time);
    support::records_of(&others)
}

/// The packets that leave one and come to the other are joined anew, and without timestamps nothing tells a lost one from its repeat.
#[test]
fn segmentation_offload_anywhere_counts_what_was_lost_on_the_wire() {
    for (seed, timestamps, at_far) in [
        (45, true, true),
        (46, true, true),
        (47, false, false),
        (48, false, false),
    ] {
        let path = Path {
            copies: 0.0,
            ip_ids: timestamps,
            timestamps,
            ..PATH
        };
        let world = World::new(seed, path);
        let near = offloaded(world.capture(0, plain, all));
        let far = world.capture(2, late, all);
        let far = if at_far {
            offloaded(far)
        } else {
            support::records_of(&far)
        };
        let answer = support::align(&[near, far]).unwrap();
        let truth = [world.lost[0][0] + world.lost[1][0], world.lost[0][1] + world.lost[1][1]];
        assert_eq!(losses(&answer), [truth], "seed {seed} {:?}", rest(&answer));
    }
}

#[test]
fn a_clock_set_back_is_said_and_spoils_nothing_before() {
    let world = World::new(51, Path { copies: 0.0, ..PATH });
    let middle = T0 + 4000 * MS;
    let set_back = |time: u64| if time < middle { time } else { time - 1500 * MS };
    let captures = [
        support::records_of(&world.capture(0, plain, all)),
        support::records_of(&world.capture(2, set_back, all)),
    ];
    let answer = support::align(&captures).unwrap();
    let leg = &answer.legs[0];
    assert!(
        leg.placement
            .iter()
            .any(|line| line.starts_with("B: its clock was set back")),
        "{leg:?}"
    );
    assert!(leg.offset_seconds.unwrap().abs() < 50e-6, "{leg:?}");
    let last = leg.clock.last().unwrap();
    assert!((last.offset_seconds + 1.5).abs() < 0.1, "{leg:?}");
    let truth = [world.lost[0][0] + world.lost[1][0], world.lost[0][1] + world.lost[1][1]];
    assert_eq!(losses(&answer), [truth], "{leg:?}");
    // Connections from then on have no times.
    let captures = [0, 2].map(|tap| support::records_of(&world.capture(tap, plain, all)));
    let (pie, whole) = (measured(&answer).unwrap(), support::align(&captures).unwrap());
    let all_of_it = measured(&whole).unwrap();
    assert!(left_out(&answer) > 0);
    assert!(
        pie.client_seconds < 0.5 * all_of_it.client_seconds && pie.total_seconds < 0.5 * all_of_it.total_seconds,
        "{pie:?}, {all_of_it:?}"
    );
    assert!(pie.network_seconds > 0.5 * pie.total_seconds, "{pie:?}, {all_of_it:?}");
}

fn measured(answer: &Alignment) -> Option<&weir_messages::v1::Pie> {
    answer.pies.iter().find(|pie| pie.method == "MEASURED")
}

/// Connections that are in no pie.
fn left_out(answer: &Alignment) -> u64 {
    let mut lines = answer.legs.iter().flat_map(|leg| &leg.placement);
    let line = lines.find(|line| line.contains("not in the pies"));
    line.map_or(0, |line| line.split(' ').next().unwrap().parse().unwrap())
}

/// Its pie leaves out some connections of `whole`, and so has less of everything, in the same shares.
fn is_like(answer: &Alignment, whole: &Alignment) {
    let (pie, all) = (measured(answer).unwrap(), measured(whole).unwrap());
    assert!(left_out(answer) > 0 && left_out(whole) == 0, "{pie:?}, {all:?}");
    assert!(pie.total_seconds < 0.95 * all.total_seconds, "{pie:?}, {all:?}");
    let shares = |pie: &weir_messages::v1::Pie| {
        [pie.client_seconds, pie.network_seconds, pie.server_seconds].map(|part| part / pie.total_seconds)
    };
    for (part, of_all) in shares(pie).into_iter().zip(shares(all)) {
        assert!((part - of_all).abs() < 0.06, "{pie:?}, {all:?}");
    }
}

#[test]
fn a_pie_has_what_both_captures_have() {
    let world = World::new(71, Path { copies: 0.0, ..PATH });
    let capture = |tap: usize, until: u64| {
        let within = |_: usize, seen: &Seen| seen.meta.time < until;
        support::records_of(&world.capture(tap, plain, within))
    };
    let whole = support::align(&[capture(0, u64::MAX), capture(2, u64::MAX)]).unwrap();
    let middle = T0 + 4500 * MS;
    for until in [[middle, u64::MAX], [u64::MAX, middle]] {
        let answer = support::align(&[capture(0, until[0]), capture(2, until[1])]).unwrap();
        is_like(&answer, &whole);
    }
    // The second's clock is set while connections are open.
    let set = |time: u64| if time < middle { time } else { time + 3_600_000 * MS };
    let second = support::records_of(&world.capture(2, set, all));
    is_like(&support::align(&[capture(0, u64::MAX), second]).unwrap(), &whole);
}

/// A client's upload of 20 kB to a server whose windows a box makes a thousandth of what they are, at taps that see these scales of the
/// SYN-ACK: the client's timer sends what each window lets go, 300 ms after the last.
fn squeezed(scales: [u8; 2]) -> Alignment {
    const WINDOW: u16 = 75;
    let (way, ack) = (10 * MS, tcp_flag::ACK);
    let (client, server) = (end([10, 0, 0, 1], 2000), end([10, 0, 0, 2], 443));
    let mut taps = [Vec::new(), Vec::new()];
    let mut id = 0;
    let mut add = |at: u64, from_client: bool, flags: u8, seq: u32, acked: u32, payload: u32| {
        let is_syn = flags & tcp_flag::SYN != 0;
        id += 1;
        for (tap, scale) in scales.into_iter().enumerate() {
            let (from, to) = if from_client {
                (client, server)
            } else {
                (server, client)
            };
            let (key, from_low) = Key::new(from, to, 6);
            let passed = if from_client == (tap == 0) { 0 } else { way };
            taps[tap].push(Meta {
                key,
                from_low,
                time: T0 + at + passed,
                wire: 54 + payload,
                payload,
                seq,
                ack: acked,
                flags,
                window: if is_syn { 64_240 } else { WINDOW },
                ip_id: id,
                ttl: 64,
                options: Options {
                    mss: if is_syn { MSS as u16 } else { 0 },
                    scale: match (is_syn, from_client) {
                        (true, true) => 10,
                        (true, false) => scale,
                        _ => 255,
                    },
                    ..Options::default()
                },
                ..Meta::default()
            });
        }
    };
    add(0, true, tcp_flag::SYN, 0, 0, 0);
    add(way, false, tcp_flag::SYN | ack, 0, 1, 0);
    let mut at = 2 * way;
    add(at, true, ack, 1, 1, 0);
    for k in 0..10 {
        add(at, true, ack, 1 + k * MSS, 1, MSS);
    }
    let mut next = 1 + 10 * MSS;
    add(at + way, false, ack, 1, next, 0);
    for _ in 0..40 {
        at += 300 * MS;
        add(at, true, ack, next, 1, WINDOW.into());
        next += u32::from(WINDOW);
        add(at + way, false, ack, 1, next, 0);
    }
    add(at + way + 5 * MS, false, ack, 1, next, 500);
    let records = taps.map(|mut seen| {
        seen.sort_by_key(|meta| meta.time);
        support::records_of(&seen)
    });
    support::align(&records).unwrap()
}

/// Data that waits for a window is no time of its sender, but where that may not have read the window so.
#[test]
fn a_sender_before_a_small_window_is_not_charged() {
    for (scales, waits) in [([0, 10], 0.0), ([10, 10], 12.0)] {
        let answer = squeezed(scales);
        let pie = measured(&answer).unwrap();
        assert!((pie.total_seconds - 12.05).abs() < 0.02, "{scales:?}: {pie:?}");
        assert!(pie.client_seconds < 0.01, "{scales:?}: {pie:?}");
        assert!((pie.server_seconds - 0.005).abs() < 0.001, "{scales:?}: {pie:?}");
        assert!(
            (pie.uncertainty_seconds.unwrap() - waits).abs() < 0.02,
            "{scales:?}: {pie:?}"
        );
    }
}

#[test]
fn times_around_what_a_capture_missed_are_uncertain() {
    let world = World::new(81, Path { copies: 0.0, ..PATH });
    let whole = support::align(&[0, 2].map(|tap| support::records_of(&world.capture(tap, plain, all)))).unwrap();
    let all_of_it = measured(&whole).unwrap();
    for tap in [0, 2] {
        let kept = |at: usize, seen: &Seen| seen.tap != tap || at % 7 != 3;
        let captures = [0, 2].map(|tap| support::records_of(&world.capture(tap, plain, kept)));
        let answer = support::align(&captures).unwrap();
        let pie = measured(&answer).unwrap();
        let uncertain = pie.uncertainty_seconds.unwrap();
        let wrong = [
            pie.client_seconds - all_of_it.client_seconds,
            pie.server_seconds - all_of_it.server_seconds,
        ];
        assert!(
            wrong.iter().all(|wrong| wrong.abs() < uncertain),
            "tap {tap}: {pie:?}, {all_of_it:?}"
        );
        assert!(
            wrong.iter().all(|wrong| *wrong < 0.06 * all_of_it.server_seconds),
            "tap {tap}: {pie:?}, {all_of_it:?}"
        );
    }
}

#[test]
fn one_direction_only_has_no_offset_and_says_so() {
    let world = World::new(61, PATH);
    let forward = |_: usize, seen: &Seen| seen.from_client;
    let captures: Vec<_> = [0, 1]
        .map(|tap| support::records_of(&world.capture(tap, plain, forward)))
        .into();
    let answer = support::align(&captures).unwrap();
    let leg = &answer.legs[0];
    assert_eq!(
        (leg.offset_seconds, leg.offset_width_seconds, leg.round_trip_seconds),
        (None, None, None)
    );
    assert_eq!(leg.delay_forward, None);
    assert!(leg.matched > 1000);
    assert!(answer.pies.is_empty() && left_out(&answer) == answer.taps[0].connections);
    assert!(
        leg.placement[0].starts_with("packets of one direction only"),
        "{:?}",
        leg.placement
    );
}

/// Equal TTLs, and one direction in both: what one has alone may be lost behind it, or missed by the other, whichever is named first.
#[test]
fn without_an_order_nothing_is_lost_or_missed() {
    let world = World::new(39, Path { copies: 0.0, ..PATH });
    let of = |tap: usize, keep: fn(&Seen) -> bool| {
        let mut packets = world.capture(tap, plain, |_, seen| keep(seen));
        for meta in &mut packets {
            meta.ttl = 64;
        }
        support::records_of(&packets)
    };
    let mut captures = vec![of(0, |seen| seen.from_client), of(2, |_| true)];
    for _ in 0..2 {
        let answer = support::align(&captures).unwrap();
        assert_eq!(losses(&answer), [[0, 0]]);
        let [undecided, _, missed] = rest(&answer);
        assert!(undecided > 100 && missed == 0, "{undecided}, {missed}");
        captures.reverse();
    }
}

#[test]
fn a_capture_of_one_direction_tells_nothing_of_the_other() {
    let world = World::new(91, Path { copies: 0.0, ..PATH });
    for (from_client, direction) in [(true, 0), (false, 1)] {
        let one = |_: usize, seen: &Seen| seen.from_client == from_client;
        let near = support::records_of(&world.capture(0, plain, all));
        let far = support::records_of(&world.capture(2, late, one));
        for captures in [[near.clone(), far.clone()], [far, near]] {
            let nearest = if captures[0].len() > captures[1].len() { 0 } else { 1 };
            let answer = support::align(&captures).unwrap();
            let leg = &answer.legs[0];
            assert_eq!(answer.nearest_client, nearest, "{leg:?}");
            let mut truth = [0, 0];
            truth[direction] = world.lost[0][direction] + world.lost[1][direction];
            assert_eq!(losses(&answer), [truth], "{leg:?}");
            let other = |seen: &&Seen| seen.tap == 0 && seen.from_client != from_client;
            let other = world.seen.iter().filter(other).count() as u64;
            assert_eq!(rest(&answer), [other, 0, 0], "{leg:?}");
            assert!(
                !leg.placement.iter().any(|line| line.contains("packets of its own")),
                "{leg:?}"
            );
        }
    }
}

#[test]
fn one_capture_twice_is_no_capture_of_one_direction() {
    let world = World::new(92, PATH);
    let captures = [0, 0].map(|tap| support::records_of(&world.capture(tap, plain, all)));
    let leg = &support::align(&captures).unwrap().legs[0];
    assert!(
        leg.placement[0].contains("the same capture twice"),
        "{:?}",
        leg.placement
    );
}

#[test]
fn later_connections_with_the_same_ports_are_others() {
    let (world, later) = (World::new(93, PATH), World::new(94, PATH));
    let near = support::records_of(&world.capture(0, plain, all));
    // World has the same TSvals whenever it is: those of a minute later.
    let mut far = later.capture(2, |time| time + 60_000 * MS, all);
    for meta in &mut far {
        meta.options.timestamps = meta.options.timestamps.map(|(value, echo)| (value + 60_000, echo));
    }
    assert!(support::align(&[near, support::records_of(&far)]).is_err());
}

/// One capture has earlier connections of the same ports, the other later ones.
#[test]
fn what_both_have_is_not_joined_to_others_with_the_same_ports() {
    let path = Path {
        timestamps: false,
        ..PATH
    };
    let [earlier, both, later] = [93, 97, 94].map(|seed| World::new(seed, path));
    let at = |world: &World, tap: usize, minutes: u64| world.capture(tap, |time| time + minutes * 60_000 * MS, all);
    // Of some, one capture has no SYN-ACK.
    let syn_ack = tcp_flag::SYN | tcp_flag::ACK;
    let no_syn_acks = |meta: &Meta| meta.key.low.port.max(meta.key.high.port) % 3 != 1 || meta.flags != syn_ack;
    let mut near = at(&both, 0, 1);
    near.retain(no_syn_acks);
    near.splice(0..0, at(&earlier, 0, 0));
    let mut far = at(&both, 2, 1);
    far.extend(at(&later, 2, 2));
    let answer = support::align(&[near, far].map(|packets| support::records_of(&packets))).unwrap();
    let [leg] = &answer.legs[..] else { panic!() };
    assert_eq!(
        answer
            .taps
            .iter()
            .map(|tap| tap.connections_only_here)
            .collect::<Vec<_>>(),
        [32, 32]
    );
    assert!(!leg.placement.join("; ").contains("rewritten"), "{:?}", leg.placement);
    assert!(leg.offset_seconds.unwrap().abs() < 2e-3, "{leg:?}");
    let forward = both.lost[0][0] + both.lost[1][0];
    // An ACK beside a SYN-ACK that a capture has not may be undecided.
    assert!(
        (leg.lost_forward..=leg.lost_forward + leg.undecided).contains(&forward),
        "{leg:?}"
    );
}

/// Other addresses, ports, sequence numbers and IP ids: the sizes of requests and responses alone are no evidence.
#[test]
fn connections_of_the_same_sizes_are_others_if_their_syns_differ() {
    let world = World::new(
        98,
        Path {
            timestamps: false,
            ..PATH
        },
    );
    let near = support::records_of(&world.capture(0, plain, all));
    let mut far = world.capture(2, plain, all);
    behind_box(&mut far, true, 0x7777_7777, 0x1111_1111);
    for meta in &mut far {
        meta.ip_id ^= 0x5500;
    }
    assert!(support::align(&[near, support::records_of(&far)]).is_err());
}

#[test]
fn of_three_captures_the_one_of_another_path_is_named() {
    let (world, other) = (
        World::new(95, PATH),
        World::new(
            96,
            Path {
                timestamps: false,
                ..PATH
            },
        ),
    );
    let of = |world: &World, tap: usize| support::records_of(&world.capture(tap, plain, all));
    let mut moved = other.capture(1, plain, all);
    for meta in &mut moved {
        (meta.key, meta.from_low) = Key::new(end([10, 9, 9, 9], 7), end([10, 9, 9, 8], meta.key.low.port), 6);
    }
    for at in 0..3 {
        let mut captures = vec![of(&world, 0), of(&world, 2)];
        captures.insert(at, support::records_of(&moved));
        let error = support::align(&captures).unwrap_err();
        assert_eq!(error.apart.as_deref(), Some(["A", "B", "C"][at]), "{error}");
    }
}

#[test]
fn captures_without_tcp_are_refused_for_that() {
    let world = World::new(97, PATH);
    let mut packets = world.capture(2, plain, all);
    for meta in &mut packets {
        (meta.class, meta.key.protocol) = (Class::Other, 17);
    }
    let near = support::records_of(&world.capture(0, plain, all));
    let error = support::align(&[near, support::records_of(&packets)]).unwrap_err();
    assert!(error.to_string().starts_with("B has no TCP connection"), "{error}");
}

/// No id tells a copy from a repeat, but nobody repeats so soon.
#[test]
fn copies_that_no_sender_can_have_made_are_no_losses() {
    let path = Path {
        copies: 0.0,
        ip_ids: false,
        ..PATH
    };
    let world = World::new(39, path);
    let (mut near, mut made) = (Vec::new(), 0);
    for (at, meta) in world.capture(0, plain, all).into_iter().enumerate() {
        let is_data = meta.payload > 0 || meta.flags & tcp_flag::SYN != 0;
        near.push(meta);
        if is_data && at % 9 == 0 {
            made += 1;
            near.push(Meta {
                time: meta.time + 4_000,
                ..meta
            });
        }
    }
    near.sort_by_key(|meta| meta.time);
    let far = support::records_of(&world.capture(2, plain, all));
    let answer = support::align(&[support::records_of(&near), far]).unwrap();
    let [leg] = &answer.legs[..] else { panic!() };
    let truth = [world.lost[0][0] + world.lost[1][0], world.lost[0][1] + world.lost[1][1]];
    // Of a packet that was lost with its copy, one is.
    assert!(
        made > 50 && leg.lost_forward <= truth[0] + made / 20,
        "{made} {truth:?} {leg:?}"
    );
    assert_eq!(leg.lost_backward, truth[1]);
    let sent = world
        .seen
        .iter()
        .filter(|seen| seen.tap == 0 && seen.from_client)
        .count() as u64;
    assert!(leg.arrived_forward + truth[0] == sent, "{sent} {leg:?}");
}

/// What the legs cannot tell, the outermost captures do.
#[test]
fn a_tap_between_that_has_one_connection_takes_nothing_from_the_others() {
    let world = World::new(40, PATH);
    let [near, middle, far] = [0, 1, 2].map(|tap| world.capture(tap, plain, all));
    let first = near[0].key;
    let middle: Vec<Meta> = middle.into_iter().filter(|meta| meta.key == first).collect();
    let one_way: Vec<Meta> = middle.iter().filter(|meta| meta.payload == 0).copied().collect();
    let of = |packets: &[Meta]| support::records_of(packets);
    let two = support::align(&[of(&near), of(&far)]).unwrap();
    assert!(two.lost_setups.iter().any(|lost| lost.syns > 0));
    for middle in [middle, one_way] {
        let three = support::align(&[of(&near), of(&middle), of(&far)]).unwrap();
        assert_eq!(three.legs.len(), 2);
        assert_eq!((measured(&three), left_out(&three)), (measured(&two), left_out(&two)));
        assert_eq!(three.lost_setups, two.lost_setups);
    }
}

/// Without SYNs the ports tell who the client is, and behind a translation they tell something else.
#[test]
fn translated_ports_may_turn_the_roles_of_the_ends() {
    let world = World::new(41, PATH);
    let no_syns = |_: usize, seen: &Seen| seen.meta.flags & tcp_flag::SYN == 0;
    let near = world.capture(0, plain, no_syns);
    let mut far = world.capture(2, plain, no_syns);
    for meta in &mut far {
        let client = meta.key.low.port.max(meta.key.high.port);
        let from_client = meta.from_low == (meta.key.low.port == client);
        let (server, translated) = (end([10, 0, 0, 2], 443), end([192, 0, 2, 1], client % 400 + 1));
        let ends = if from_client {
            [translated, server]
        } else {
            [server, translated]
        };
        (meta.key, meta.from_low) = Key::new(ends[0], ends[1], 6);
    }
    let answer = support::align(&[near, far].map(|packets| support::records_of(&packets))).unwrap();
    let [leg] = &answer.legs[..] else { panic!() };
    let truth = [world.lost[0][0] + world.lost[1][0], world.lost[0][1] + world.lost[1][1]];
    assert!(leg.placement.iter().any(|line| line.contains("translated")), "{leg:?}");
    assert!(
        leg.matched > 500 && leg.lost_forward <= truth[0] && leg.lost_backward <= truth[1],
        "{truth:?} {leg:?}"
    );
    let missed: u64 = answer.taps.iter().map(|tap| tap.missed_by_capture).sum();
    assert_eq!(missed, 0, "{leg:?}");
}

/// No SYNs and no requests: nothing but packets that both have tells which connection is which.
#[test]
fn translated_connections_that_were_open_before_are_joined_by_their_packets() {
    let world = World::new(42, Path { copies: 0.0, ..PATH });
    let keep = |_: usize, seen: &Seen| {
        let meta = &seen.meta;
        meta.flags & tcp_flag::SYN == 0 && !(seen.from_client && meta.payload > 0)
    };
    let near = world.capture(0, plain, keep);
    let mut far = world.capture(2, late, keep);
    behind_box(&mut far, true, 0, 0);
    let answer = support::align(&[near, far].map(|packets| support::records_of(&packets))).unwrap();
    let [leg] = &answer.legs[..] else { panic!() };
    assert_eq!([0, 1].map(|tap: usize| answer.taps[tap].connections_only_here), [0, 0]);
    let said = leg.placement.join("; ");
    assert!(said.contains("addresses are translated: 32 connections"), "{said}");
    assert_eq!(
        leg.lost_backward,
        world.lost[0][1] + world.lost[1][1] - lost_syn_acks(&world),
        "{leg:?}"
    );
}

/// SYN-ACKs that did not reach the first tap.
fn lost_syn_acks(world: &World) -> u64 {
    let at = |tap: usize| {
        let syn_acks = world.seen.iter().filter(|seen| seen.tap == tap && !seen.from_client);
        syn_acks.filter(|seen| seen.meta.flags & tcp_flag::SYN != 0).count() as u64
    };
    at(2) - at(0)
}

/// No IP ids, as in IPv6, and all connections have the same sizes: the timestamps of SYNs tell.
#[test]
fn connections_that_are_alike_are_joined_by_the_timestamps_of_their_syns() {
    let quiet = Path {
        loss: 0.0,
        copies: 0.0,
        ip_ids: false,
        ..PATH
    };
    for translate in [false, true] {
        let mut world = World::default();
        for k in 0..8 {
            world.conversation(&mut Random(46), quiet, T0 + u64::from(k) * 37 * MS, 40_000 + k);
        }
        world.seen.sort_by_key(|seen| seen.meta.time);
        let mut far = world.capture(2, late, all);
        behind_box(&mut far, translate, 0x7777_7777, 0x1111_1111);
        let captures = [world.capture(0, plain, all), far].map(|packets| support::records_of(&packets));
        let answer = support::align(&captures).unwrap();
        let leg = &answer.legs[0];
        assert_eq!(
            (leg.matched, leg.only_from, leg.only_to),
            (answer.taps[0].packets, 0, 0),
            "{leg:?}"
        );
        assert!((leg.offset_seconds.unwrap() - 123.456_789).abs() < 50e-6, "{leg:?}");
    }
}

/// Each connection passes one of two taps between the others.
#[test]
fn taps_on_parallel_ways_have_nothing_in_common_but_with_the_others() {
    let world = World::new(44, Path { copies: 0.0, ..PATH });
    let [near, between, far] =
        [(0, plain as fn(u64) -> u64), (1, late), (2, early)].map(|(tap, clock)| world.capture(tap, clock, all));
    let is_even = |meta: &Meta| (meta.key.low.port ^ meta.key.high.port).is_multiple_of(2);
    let (even, odd): (Vec<Meta>, Vec<Meta>) = between.into_iter().partition(is_even);
    let of = |packets: &[Meta]| support::records_of(packets);
    let answer = support::align(&[of(&even), of(&near), of(&far), of(&odd)]).unwrap();
    let files: Vec<&str> = answer.taps.iter().map(|tap| &tap.file[..]).collect();
    assert_eq!(files, ["B", "A", "D", "C"]);
    let alone = [[&near, &even], [&odd, &far]].map(|two| support::align(&two.map(|packets| of(packets))).unwrap());
    for (leg, alone) in [(0, &alone[0].legs[0]), (2, &alone[1].legs[0])] {
        let leg = &answer.legs[leg];
        let figures = |leg: &weir_messages::v1::Leg| (leg.matched, leg.lost_forward, leg.lost_backward);
        assert_eq!(figures(leg), figures(alone));
        assert!((leg.offset_seconds.unwrap() - alone.offset_seconds.unwrap()).abs() < 1e-6);
    }
    let leg = &answer.legs[1];
    assert_eq!((leg.matched, leg.offset_seconds), (0, None));
    assert!(leg.placement[0].contains("no packet is in both"), "{:?}", leg.placement);
    let whole = support::align(&[of(&near), of(&far)]).unwrap();
    assert_eq!(measured(&answer), measured(&whole));
    // Two paths are none.
    let other = World::new(45, PATH);
    let other = [0, 2].map(|tap| {
        let mut packets = other.capture(tap, plain, all);
        behind_box(&mut packets, true, 0, 0);
        of(&packets)
    });
    let [one, two] = other;
    assert!(support::align(&[of(&near), one, of(&far), two]).is_err());
}

#[test]
fn a_refused_connection_has_packets_of_both_sides() {
    let (client, server) = (end([10, 0, 0, 1], 40_000), end([10, 0, 0, 2], 80));
    let packet = |time: u64, from_client: bool, flags: u8| {
        let (from, to) = if from_client {
            (client, server)
        } else {
            (server, client)
        };
        let (key, from_low) = Key::new(from, to, 6);
        Meta {
            time: T0 + time,
            key,
            from_low,
            flags,
            seq: if from_client { 100 } else { 0 },
            ack: if from_client { 0 } else { 101 },
            ttl: 64,
            ip_id: 7,
            ..Meta::default()
        }
    };
    let capture = |[asked, refused]: [u64; 2]| {
        support::records_of(&[
            packet(asked, true, tcp_flag::SYN),
            packet(refused, false, tcp_flag::RST | tcp_flag::ACK),
        ])
    };
    let answer = support::align(&[capture([0, 10 * MS]), capture([4 * MS, 5 * MS])]).unwrap();
    assert_eq!(left_out(&answer), 0, "{:?}", answer.legs[0].placement);
    assert_eq!(measured(&answer).unwrap().total_seconds, 0.01);
}

/// A capture whose clock is an hour behind, and which began when the other had seen more than a window has room for.
#[test]
fn what_may_still_match_stays_until_the_clocks_are_known() {
    let [before, both] = [42, 43].map(|seed| World::new(seed, PATH));
    let minute = |time: u64| time + 60_000 * MS;
    let mut near = before.capture(0, plain, all);
    let window = near.len() / 2;
    near.extend(both.capture(0, minute, all));
    let far = both.capture(2, |time| minute(time) - 3_600_000 * MS, |at, _| at < window / 4);
    let answer = support::align_within(&[near, far].map(|packets| support::records_of(&packets)), window).unwrap();
    let [leg] = &answer.legs[..] else { panic!() };
    assert!((leg.offset_seconds.unwrap() + 3600.0).abs() < 2e-3, "{leg:?}");
    assert!(leg.matched > 100 && leg.only_to == 0, "{leg:?}");
}
