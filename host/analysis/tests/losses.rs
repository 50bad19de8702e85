//! Each class of `docs/src/losses.md`, from packets through the engine.
#![allow(clippy::unwrap_used)]

mod support;

use support::{C, Conversation, S, analyze, ns, only, records};
use weir_analysis::{Analyzer, Cause, Class, Config, Ends, Place, Sink, Verdict, sign};
use weir_engine::Config as EngineConfig;
use weir_messages::v1;
use weir_record::{Event, Kind, tcp_flag, what};

/// Shaken hands: server 10 ms, client 30 ms away from the tap; then a request.
fn start() -> Conversation {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(0.010, S, 900, 101, Some(8));
    c.packet(0.040, C, "A", 101, 901, 0);
    c.packet(0.041, C, "AP", 101, 901, 100);
    c
}

/// The same where no D-SACK will come.
fn start_without_sack() -> Conversation {
    let mut c = start();
    for m in &mut c.packets {
        m.options.sack_permitted = false;
    }
    c
}

const A: u32 = 201;

/// Segments of 1000 bytes of the server, by their number.
fn seg(c: &mut Conversation, at: f64, n: u32) {
    c.packet(at, S, "A", 901 + 1000 * n, A, 1000);
}

/// Four segments, each acknowledged after 30 ms.
fn four_round_trips(c: &mut Conversation) {
    for n in 0..4 {
        let at = 0.050 + 0.040 * f64::from(n);
        seg(c, at, n);
        ack(c, at + 0.030, n + 1);
    }
}

/// The packet `back` before the last once more.
fn mirror(c: &mut Conversation, at: f64, back: usize) {
    let copy = c.packets[c.packets.len() - 1 - back];
    c.packets.push(weir_engine::Meta {
        time: support::T0 + ns(at),
        ..copy
    });
}

fn ack(c: &mut Conversation, at: f64, n: u32) {
    c.packet(at, C, "A", A, 901 + 1000 * n, 0);
}

fn edges(from: u32, to: u32) -> (u32, u32) {
    (901 + 1000 * from, 901 + 1000 * to)
}

fn server(c: &Conversation) -> v1::Direction {
    only(&analyze(&c.packets)).server_to_client.unwrap()
}

/// fast, timeout, spurious, unknown.
fn causes(d: &v1::Direction) -> [u64; 4] {
    [
        d.fast_retransmissions,
        d.timeout_retransmissions,
        d.spurious_retransmissions,
        d.unknown_retransmissions,
    ]
}

/// upstream, downstream, unknown, missed.
fn losses(d: &v1::Direction) -> [u64; 4] {
    [d.lost_upstream, d.lost_downstream, d.lost_unknown, d.missed_by_capture]
}

#[test]
fn a_gap_that_is_filled_late_was_lost_upstream() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    for n in 2..6 {
        seg(&mut c, 0.100, n);
    }
    ack(&mut c, 0.130, 1);
    for n in 3..6 {
        c.sack(0.130, C, A, 1901, &[edges(2, n)]);
    }
    seg(&mut c, 0.141, 1);
    ack(&mut c, 0.171, 6);
    let d = server(&c);
    assert_eq!((d.retransmitted_packets, d.retransmitted_bytes), (1, 1000));
    assert_eq!(causes(&d), [1, 0, 0, 0]);
    assert_eq!(losses(&d), [1, 0, 0, 0]);
    assert_eq!(d.out_of_order, 0);
}

/// Where each direction has a clock of its own, the ACK of a segment may be stamped before it. What SACK left as a hole, the receiver lacked.
/// Else, or long after the ACK, or where no record has its time, the capture missed what came first.
#[test]
fn a_gap_that_is_filled_right_behind_its_ack_was_lost_upstream() {
    let (lost, missed) = ([1, 0, 0, 0], [0, 0, 0, 1]);
    for (sack, asked, timed, after, expected) in [
        (true, true, true, 0.000_3, lost),
        (true, true, true, 0.004, missed),
        (true, true, false, 0.000_3, missed),
        (true, false, true, 0.000_3, missed),
        // Duplicate ACKs answer other things, too.
        (false, true, true, 0.000_3, missed),
    ] {
        let mut c = if sack { start() } else { start_without_sack() };
        for n in [0, 2, 3, 4, 5] {
            seg(&mut c, 0.100, n);
        }
        ack(&mut c, 0.130, 1);
        for n in 3..6 {
            match (asked, sack) {
                (true, true) => c.sack(0.130, C, A, 1901, &[edges(2, n)]),
                (true, false) => ack(&mut c, 0.130, 1),
                (false, _) => {}
            }
        }
        if timed {
            seg(&mut c, 0.140, 6);
        }
        ack(&mut c, 0.171, 6 + u32::from(timed));
        seg(&mut c, 0.171 + after, 1);
        let d = server(&c);
        assert_eq!(losses(&d), expected, "{sack} {asked} {timed} {after}");
        let is_fast = u64::from(expected == lost);
        assert_eq!((d.retransmitted_packets, d.fast_retransmissions), (1, is_fast));
    }
}

/// The SACK block is stamped before the segment that it is about, and so before the gap.
#[test]
fn a_hole_may_be_told_before_it_shows() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    c.sack(0.129_9, C, A, 1901, &[edges(2, 3)]);
    seg(&mut c, 0.130, 2);
    seg(&mut c, 0.140, 3);
    ack(&mut c, 0.171, 4);
    seg(&mut c, 0.171_3, 1);
    assert_eq!(losses(&server(&c)), [1, 0, 0, 0]);
}

/// The capture misses what the ACK takes in that tells of a hole above it.
#[test]
fn what_is_missed_below_a_hole_was_no_hole() {
    let mut c = start();
    for n in [0, 2, 4] {
        seg(&mut c, 0.100, n);
    }
    c.sack(0.130, C, A, 3901, &[edges(4, 5)]);
    seg(&mut c, 0.130_3, 1);
    seg(&mut c, 0.141, 3);
    ack(&mut c, 0.171, 5);
    assert_eq!(losses(&server(&c)), [1, 0, 0, 1]);
}

/// The same of the second of two holes, by a SACK block. What else the block covers stays missed.
#[test]
fn a_hole_that_is_filled_right_behind_its_block_was_lost_upstream() {
    let mut c = start();
    for n in [0, 2, 5, 6] {
        seg(&mut c, 0.100, n);
    }
    c.sack(0.130, C, A, 1901, &[edges(2, 3)]);
    c.sack(0.130, C, A, 1901, &[edges(5, 7), edges(2, 3)]);
    c.sack(0.171, C, A, 1901, &[edges(2, 7)]);
    seg(&mut c, 0.171_3, 3);
    seg(&mut c, 0.172, 1);
    ack(&mut c, 0.202, 7);
    let d = server(&c);
    assert_eq!((losses(&d), d.retransmitted_packets), ([2, 0, 0, 1], 2));
}

#[test]
fn a_gap_that_is_filled_within_3_ms_was_reordered() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 2);
    seg(&mut c, 0.101, 1);
    no_id(&mut c);
    ack(&mut c, 0.131, 3);
    let d = server(&c);
    assert_eq!((d.out_of_order, d.retransmitted_packets), (1, 0));
    assert_eq!(losses(&d), [0; 4]);
}

/// The last packet's IP id is 0 (RFC 6864 allows that): it tells nothing.
fn no_id(c: &mut Conversation) {
    c.packets.last_mut().unwrap().ip_id = 0;
}

/// A counter in the IP id tells which was made first, however soon the fill comes; ids by chance are far apart.
#[test]
fn ip_ids_tell_reordering_from_retransmission() {
    for (step, reordered, says) in [
        (3, 0, Some(sign::NEWER_ID)),
        (-1, 1, Some(sign::OLDER_ID)),
        (5000, 1, None),
    ] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        seg(&mut c, 0.100, 2);
        let overtook = c.packets.last().unwrap().ip_id;
        seg(&mut c, 0.102, 1);
        c.packets.last_mut().unwrap().ip_id = overtook.wrapping_add_signed(step);
        ack(&mut c, 0.131, 3);
        let d = server(&c);
        assert_eq!((d.out_of_order, d.lost_upstream), (reordered, 1 - reordered), "{step}");
        let evidence = verdicts(&c)[0].evidence;
        for sign in [sign::NEWER_ID, sign::OLDER_ID] {
            assert_eq!(evidence.has(sign), says == Some(sign), "{step}");
        }
    }
}

/// When a timer can have sent it again, an id that is a little lower may be so by chance.
#[test]
fn a_lower_ip_id_after_a_timeout_tells_nothing() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 2);
    let overtook = c.packets.last().unwrap().ip_id;
    seg(&mut c, 0.400, 1);
    c.packets.last_mut().unwrap().ip_id = overtook - 7;
    ack(&mut c, 0.431, 3);
    assert_eq!((server(&c).out_of_order, server(&c).lost_upstream), (0, 1));
}

/// The first copy comes behind its repeat, and no timestamps tell so.
#[test]
fn a_late_original_shows_in_the_ip_id() {
    let mut c = start();
    for n in [0, 2, 3, 4] {
        seg(&mut c, 0.100, n);
    }
    let newest = c.packets.last().unwrap().ip_id;
    c.sack(0.130, C, A, 1901, &[edges(2, 5)]);
    seg(&mut c, 0.141, 1);
    c.packets.last_mut().unwrap().ip_id = newest + 1;
    seg(&mut c, 0.143, 1);
    c.packets.last_mut().unwrap().ip_id = newest - 3;
    ack(&mut c, 0.171, 5);
    let expected = [
        (Class::Retransmission, Place::Nowhere),
        (Class::Reordered, Place::Nowhere),
    ];
    assert_eq!(places(&c), expected);
    let d = server(&c);
    assert_eq!(
        (d.out_of_order, d.retransmitted_packets, d.spurious_retransmissions),
        (1, 1, 1)
    );
}

/// The last segment of a burst is overtaken by its repeat, which comes in sequence. A packet that passed before that one was
/// made after the original.
#[test]
fn a_repeat_that_came_in_sequence_shows_when_its_original_comes() {
    for (made, expected) in [
        (
            3,
            [
                (Class::Retransmission, Place::Nowhere),
                (Class::Reordered, Place::Nowhere),
            ],
        ),
        // Its copy, and no other packet shows that it is older.
        (5, [(Class::Copy, Place::Capture); 2]),
    ] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        seg(&mut c, 0.100, 2);
        let id = c.packets.last().unwrap().ip_id;
        let of = |c: &mut Conversation, made: u16| c.packets.last_mut().unwrap().ip_id = id + made - 2;
        c.sack(0.130, C, A, 1901, &[edges(2, 3)]);
        seg(&mut c, 0.141, 1);
        of(&mut c, 4);
        ack(&mut c, 0.171, 3);
        seg(&mut c, 0.182, 3);
        of(&mut c, 5);
        seg(&mut c, 0.184, 3);
        of(&mut c, made);
        ack(&mut c, 0.212, 4);
        let mut said = places(&c);
        let fill = said.remove(said.iter().position(|v| v.1 == Place::BeforeTap).unwrap());
        assert_eq!(fill.0, Class::Retransmission);
        assert!(said.iter().all(|v| expected.contains(v)), "{made}: {said:?}");
        let d = server(&c);
        let repeats = u64::from(made == 3);
        assert_eq!((d.out_of_order, d.spurious_retransmissions), (repeats, repeats));
        assert_eq!(d.retransmitted_packets, 1 + repeats);
    }
}

/// The client has let go of the connection and answered with RST, which did not get to the server.
#[test]
fn a_repeat_behind_a_reset_shows_that_lost() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    c.packet(0.130, C, "RA", A, 901, 0);
    seg(&mut c, 0.400, 0);
    let v = verdicts(&c);
    let v = v.iter().find(|v| v.class == Class::Retransmission).unwrap();
    assert_eq!((v.cause, v.place), (Cause::Timeout, Place::AckBehindTap));
    assert!(v.evidence.has(sign::RESET));
    assert_eq!(losses(&server(&c)), [0; 4]);
}

/// The engine makes no block of bytes below a FIN: the response would be empty.
#[test]
fn data_that_comes_behind_its_fin_is_a_response() {
    for pushed in [true, false] {
        let mut c = start();
        c.packet(0.100, S, "AF", 901 + 1500, A, 0);
        ack(&mut c, 0.130, 0);
        c.packet(0.341, S, "A", 901, A, 1000);
        c.packet(0.342, S, if pushed { "AP" } else { "A" }, 1901, A, 500);
        c.packet(0.372, C, "AF", A, 901 + 1501, 0);
        let a = analyze(&c.packets);
        let t = &a.transactions[1];
        assert_eq!(t.signature, "Request: blk[100]-blk[1xxx]");
        assert_eq!((t.response_bytes, t.losses), (1500, 2));
        assert!((t.server_seconds.unwrap() - 0.3).abs() < 1e-6);
        assert_eq!(losses(&server(&c)), [2, 0, 0, 0]);
    }
}

/// The engine's last block ends at the FIN and has the gap in it already.
#[test]
fn data_that_comes_behind_its_fin_is_counted_once() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    c.packet(0.100, S, "AF", 901 + 1500, A, 0);
    ack(&mut c, 0.130, 1);
    c.packet(0.341, S, "AP", 1901, A, 500);
    c.packet(0.371, C, "AF", A, 901 + 1501, 0);
    assert_eq!(analyze(&c.packets).transactions[1].response_bytes, 1500);
}

/// Tstat's rule 4: what asks for a fill needs a round trip (40 ms here) from the gap on.
#[test]
fn a_fill_sooner_than_a_round_trip_was_reordered() {
    for (at, reordered) in [(0.135, 1), (0.141, 0)] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        seg(&mut c, 0.100, 2);
        seg(&mut c, at, 1);
        no_id(&mut c);
        ack(&mut c, 0.171, 3);
        let d = server(&c);
        assert_eq!((d.out_of_order, d.lost_upstream), (reordered, 1 - reordered), "{at}");
    }
}

/// The timer of the lost segment ran already when the gap showed.
#[test]
fn a_fill_soon_after_a_pause_was_sent_again() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.330, 2); // 1 was lost before the tap at 0.100
    seg(&mut c, 0.361, 1);
    ack(&mut c, 0.391, 3);
    let d = server(&c);
    assert_eq!((d.out_of_order, d.lost_upstream), (0, 1));
    assert_eq!(causes(&d), [0, 0, 0, 1], "nothing tells why it was sent again");
}

/// On a path of 0.4 ms a retransmission can come within 3 ms.
#[test]
fn reordering_is_bounded_by_the_round_trip() {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(0.000_2, S, 900, 101, Some(8));
    c.packet(0.000_4, C, "A", 101, 901, 0);
    c.packet(0.001, C, "AP", 101, 901, 100);
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 2);
    seg(&mut c, 0.101, 1);
    ack(&mut c, 0.1015, 3);
    let d = server(&c);
    assert_eq!((d.out_of_order, d.retransmitted_packets, d.lost_upstream), (0, 1, 1));
}

/// Where a queue stood during the handshake, other connections to that server tell how long a round trip takes at least.
#[test]
fn others_tell_how_long_reordering_lasts() {
    let mut c = Conversation::new(40_000);
    c.syn(1.0, C, 100, 0, Some(8));
    c.syn(1.040, S, 900, 101, Some(8));
    c.packet(1.041, C, "A", 101, 901, 0);
    c.packet(1.042, C, "AP", 101, 901, 100);
    for (at, n) in [(1.100, 0), (1.100, 2), (1.115, 1)] {
        seg(&mut c, at, n);
        no_id(&mut c);
    }
    ack(&mut c, 1.116, 3);
    assert_eq!(only_verdict(&c).class, Class::Reordered);
    let with_others = only_verdict(&with_others(&c, false));
    assert_eq!(
        (with_others.class, with_others.place),
        (Class::Retransmission, Place::BeforeTap)
    );
}

/// RFC 7323 4.1: a later TSval was sent later, however soon it comes.
#[test]
fn timestamps_tell_reordering_from_retransmission() {
    for (tsval, reordered) in [(1004, 0), (998, 1)] {
        let mut c = start();
        for (n, at, value) in [(0, 0.100, 999), (2, 0.100, 1000), (1, 0.102, tsval)] {
            seg(&mut c, at, n);
            c.packets.last_mut().unwrap().options.timestamps = Some((value, 5));
        }
        ack(&mut c, 0.131, 3);
        let d = server(&c);
        assert_eq!((d.out_of_order, d.retransmitted_packets), (reordered, 1 - reordered));
    }
}

#[test]
fn bytes_seen_twice_after_a_timeout_were_lost_downstream() {
    let mut c = start();
    for n in 0..3 {
        seg(&mut c, 0.100, n);
    }
    ack(&mut c, 0.130, 2);
    seg(&mut c, 0.350, 2);
    ack(&mut c, 0.380, 3);
    let d = server(&c);
    assert_eq!(causes(&d), [0, 1, 0, 0]);
    assert_eq!(losses(&d), [0, 1, 0, 0]);
}

/// Two segments of four come again, each 5 s after the ACK of what was before it: a timer of that ran from then on.
#[test]
fn after_a_second_of_silence_a_timer_ran_from_the_last_ack() {
    let mut c = start();
    for n in 0..4 {
        seg(&mut c, 0.1, n);
    }
    ack(&mut c, 0.2, 1);
    c.sack(0.201, C, A, 1901, &[edges(3, 4)]);
    seg(&mut c, 5.2, 1);
    c.sack(5.3, C, A, 2901, &[edges(3, 4)]);
    seg(&mut c, 10.3, 2);
    ack(&mut c, 10.4, 4);
    let lost: Vec<_> = verdicts(&c).iter().map(|v| (v.time - v.lost_at) / 1_000_000).collect();
    assert_eq!(lost, [4999, 5000]);
}

/// RFC 8985 7: the last segment after about two round trips (40 ms here).
#[test]
fn a_tail_loss_probe_is_no_timeout() {
    let mut c = start();
    for n in 0..3 {
        seg(&mut c, 0.100, n);
    }
    ack(&mut c, 0.130, 2);
    seg(&mut c, 0.180, 2);
    let d = server(&c);
    assert_eq!((causes(&d), d.tail_loss_probes), ([0; 4], 1));
    assert_eq!(losses(&d), [0; 4], "nobody answered it");
    // Acknowledged without a D-SACK: the first copy had not arrived.
    ack(&mut c, 0.210, 3);
    c.packet(0.300, C, "AP", A, 3901, 100);
    let d = server(&c);
    assert_eq!((d.tail_loss_probes, losses(&d)), (1, [0, 1, 0, 0]));
}

/// RFC 2018: the block that covers the probe for the first time answers it.
#[test]
fn a_tail_loss_probe_that_is_sacked_was_lost_before() {
    let mut c = start();
    for n in 0..3 {
        seg(&mut c, 0.100, n);
    }
    ack(&mut c, 0.130, 1);
    seg(&mut c, 0.180, 2);
    c.sack(0.210, C, A, 1901, &[edges(2, 3)]);
    seg(&mut c, 0.221, 1);
    let d = server(&c);
    assert_eq!(
        (d.tail_loss_probes, d.fast_retransmissions, losses(&d)),
        (1, 1, [0, 2, 0, 0])
    );
    assert!(verdicts(&c)[0].evidence.has(sign::SACKED_AFTER));
}

/// Sooner than that, and sooner than any answer came, it is about the first copy; in between it may be about either.
#[test]
fn a_block_that_covers_a_probe_too_soon_tells_of_no_loss() {
    for (after, place, sign) in [
        (0.002, Place::Nowhere, Some(sign::ACKED_TOO_SOON)),
        (0.015, Place::Unknown, None),
        (0.028, Place::BehindTap, Some(sign::SACKED_AFTER)),
    ] {
        let mut c = start();
        for n in 0..3 {
            seg(&mut c, 0.100, n);
        }
        ack(&mut c, 0.130, 1);
        seg(&mut c, 0.180, 2);
        c.sack(0.180 + after, C, A, 1901, &[edges(2, 3)]);
        let v = only_verdict(&c);
        assert_eq!(v.place, place, "{after}");
        for known in [sign::ACKED_TOO_SOON, sign::SACKED_AFTER] {
            assert_eq!(v.evidence.has(known), sign == Some(known), "{after}");
        }
    }
}

/// Of three repeats, the D-SACK of the last tells that two copies came. A timer alone does not tell which.
#[test]
fn repeats_before_one_that_came_twice_are_unknown() {
    for (twice, first) in [(true, Place::Unknown), (false, Place::BehindTap)] {
        let mut c = start();
        for n in 0..3 {
            seg(&mut c, 0.100, n);
        }
        ack(&mut c, 0.130, 2);
        for at in [0.5, 1.2, 2.5] {
            seg(&mut c, at, 2);
        }
        if twice {
            c.sack(2.530, C, A, 3901, &[edges(2, 3)]);
        } else {
            ack(&mut c, 2.530, 3);
        }
        let last = if twice { Place::Nowhere } else { Place::BehindTap };
        let places: Vec<_> = verdicts(&c).iter().map(|v| v.place).collect();
        assert_eq!(places, [first, first, last]);
    }
}

/// Before any interval has told of the receiver's window, that of its ACK tells how far from it its blocks can be.
#[test]
fn blocks_of_a_fast_start_are_evidence() {
    let mut c = start();
    for n in 0..151 {
        seg(&mut c, 0.045 + 0.000_01 * f64::from(n), n);
    }
    c.sack(0.076, C, A, 1901, &[edges(140, 151)]);
    seg(&mut c, 0.087, 1);
    let v = only_verdict(&c);
    assert_eq!((v.class, v.place), (Class::Retransmission, Place::BehindTap));
    assert!(v.evidence.has(sign::SACK_HOLE));
}

#[test]
fn a_repeat_without_evidence_is_unknown() {
    let mut c = start();
    for n in 0..3 {
        seg(&mut c, 0.100, n);
    }
    ack(&mut c, 0.130, 1);
    seg(&mut c, 0.180, 1); // not the last one, 80 ms after it
    let d = server(&c);
    assert_eq!((causes(&d), losses(&d)), ([0, 0, 0, 1], [0; 4]));
}

/// What came of each segment, in order of time.
fn verdicts(c: &Conversation) -> Vec<Verdict> {
    struct Keep(Vec<Verdict>);
    impl Sink for Keep {
        fn connection(&mut self, _: &weir_analysis::Connection<'_>) {}
        fn transaction(&mut self, _: &weir_analysis::Transaction<'_>) {}
        fn finding(&mut self, _: v1::Finding) {}
        fn segment(&mut self, verdict: &Verdict, _: &Ends) {
            self.0.push(*verdict);
        }
    }
    let mut keep = Keep(Vec::new());
    let mut analyzer = Analyzer::new(Config::default());
    analyzer.push(&records(&c.packets, EngineConfig::file()), &mut keep);
    analyzer.finish(&mut keep);
    keep.0.sort_by_key(|v| v.time);
    keep.0
}

fn only_verdict(c: &Conversation) -> Verdict {
    let all = verdicts(c);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

/// Sent again with others, before anything behind it was known to have arrived: what SACK says then tells, even if nothing of it is
/// acknowledged any more.
#[test]
fn a_hole_that_shows_behind_its_repeat_was_lost_behind_the_tap() {
    let (lost, unknown) = ((Place::BehindTap, true), (Place::Unknown, false));
    // Too soon for the repeat, and a queue may have shrunk.
    let came = (Place::Unknown, false);
    for (says, told) in [
        (vec![(3, 4)], lost),
        (vec![(2, 3), (4, 5)], came),
        (vec![(1, 2)], unknown),
    ] {
        let mut c = start();
        for n in 0..6 {
            seg(&mut c, 0.100, n);
        }
        c.sack(0.130, C, A, 901, &[edges(1, 2)]);
        seg(&mut c, 0.141, 0);
        seg(&mut c, 0.142, 2);
        for (from, to) in says {
            c.sack(0.143, C, A, 901, &[edges(from, to)]);
        }
        let [_, repeat] = verdicts(&c)[..] else { panic!() };
        assert_eq!((repeat.place, repeat.evidence.has(sign::SACK_HOLE)), told);
    }
}

/// RFC 6582: what was sent before the recovery began belongs to it.
#[test]
fn two_segments_of_one_recovery_are_one_episode() {
    let mut c = start();
    for n in 0..6 {
        seg(&mut c, 0.100, n);
    }
    c.sack(0.130, C, A, 901, &[edges(1, 2)]);
    c.sack(0.130, C, A, 901, &[edges(3, 6), edges(1, 2)]);
    seg(&mut c, 0.141, 0);
    seg(&mut c, 0.142, 2);
    ack(&mut c, 0.171, 6);
    for n in 6..9 {
        seg(&mut c, 0.200, n);
    }
    c.sack(0.230, C, A, 6901, &[edges(7, 9)]);
    seg(&mut c, 0.241, 6);
    ack(&mut c, 0.271, 9);
    let d = server(&c);
    assert_eq!((d.retransmitted_packets, d.retransmission_episodes), (3, 2));
    let episodes: Vec<_> = verdicts(&c).iter().map(|v| v.episode).collect();
    assert_eq!(episodes, [1, 1, 2]);
}

/// The first copy comes after the repeat that replaced it: nothing was lost.
#[test]
fn a_first_copy_behind_its_repeat_makes_that_spurious() {
    let mut c = start();
    let data = [(0, 0.100, 999), (2, 0.100, 1000), (1, 0.160, 1060), (1, 0.161, 1000)];
    for (n, at, value) in data {
        seg(&mut c, at, n);
        c.packets.last_mut().unwrap().options.timestamps = Some((value, 5));
    }
    ack(&mut c, 0.190, 3);
    let d = server(&c);
    assert_eq!((d.out_of_order, d.retransmitted_packets, losses(&d)), (1, 1, [0; 4]));
    assert_eq!(d.spurious_retransmissions, 1);
    let v = verdicts(&c);
    assert!(v[0].evidence.has(sign::ORIGINAL_CAME) && v[0].place == Place::Nowhere);
    assert_eq!((v[1].class, v[1].place), (Class::Reordered, Place::Nowhere));
}

/// Senders send nothing again without a reason; networks do. No ids tell here.
#[test]
fn a_repeat_that_nobody_asked_for_is_a_copy() {
    let mut c = start();
    for n in 0..3 {
        seg(&mut c, 0.100, n);
    }
    seg(&mut c, 0.101, 3);
    mirror(&mut c, 0.1012, 2);
    ack(&mut c, 0.130, 4);
    c.packets.iter_mut().for_each(|packet| packet.ip_id = 0);
    let d = server(&c);
    assert_eq!(
        (d.network_duplicates, d.mirror_copies, d.retransmitted_packets),
        (1, 1, 0)
    );
    assert!(only_verdict(&c).evidence.has(sign::NOBODY_ASKED));
}

/// Whoever writes down the time may have been held up, and timers run meanwhile: what has a new id was sent again.
#[test]
fn a_repeat_with_a_new_id_is_no_copy_however_soon_it_comes() {
    for (step, is_told) in [(0, false), (0, true), (1, false), (1, true)] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        seg(&mut c, 0.100, 1);
        let id = c.packets.last().unwrap().ip_id;
        seg(&mut c, 0.100, 1);
        c.packets.last_mut().unwrap().ip_id = id + step;
        ack(&mut c, 0.130, 2);
        if is_told {
            c.sack(0.130, C, A, 2901, &[edges(1, 2)]);
        }
        let (v, d) = (only_verdict(&c), server(&c));
        let class = [Class::Copy, Class::Retransmission][usize::from(step)];
        let place = match (step, is_told) {
            (_, true) => Place::Nowhere,
            (0, false) => Place::Capture,
            _ => Place::Unknown,
        };
        assert_eq!((v.class, v.place), (class, place), "{step} {is_told}");
        assert_eq!((d.retransmitted_packets, losses(&d)), (step.into(), [0; 4]));
    }
}

/// Where much comes twice, an older id behind a repeat is that of the first copy's copy: it had passed before the repeat.
#[test]
fn a_mirrors_copy_behind_a_repeat_is_no_late_original() {
    for (copies, class) in [(8, Class::Copy), (0, Class::Reordered)] {
        let mut c = start();
        for n in 0..8 {
            seg(&mut c, 0.100 + 0.001 * f64::from(n), n);
            if n < copies {
                mirror(&mut c, 0.1001 + 0.001 * f64::from(n), 0);
            }
        }
        ack(&mut c, 0.140, 8);
        seg(&mut c, 0.200, 8);
        let first = *c.packets.last().unwrap();
        seg(&mut c, 0.450, 8);
        c.packets.push(weir_engine::Meta {
            time: support::T0 + ns(0.451),
            ..first
        });
        ack(&mut c, 0.480, 9);
        assert_eq!(verdicts(&c).last().unwrap().class, class);
    }
}

/// RFC 2883: a receiver that got the copy says so; then the network made it, not the mirror.
#[test]
fn a_d_sack_tells_the_networks_copy_from_the_mirrors() {
    for named in [false, true] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        let copy = *c.packets.last().unwrap();
        c.packets.push(copy);
        ack(&mut c, 0.130, 1);
        if named {
            c.sack(0.131, C, A, 1901, &[edges(0, 1)]);
        }
        let d = server(&c);
        assert_eq!((d.network_duplicates, d.mirror_copies), (1, u64::from(!named)));
        let place = if named { Place::Nowhere } else { Place::Capture };
        assert_eq!(only_verdict(&c).place, place);
    }
}

/// The ACK passed the tap and the timer ran out all the same.
#[test]
fn a_timeout_behind_the_ack_shows_a_lost_ack() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    ack(&mut c, 0.130, 1);
    seg(&mut c, 0.350, 0);
    let d = server(&c);
    assert_eq!((d.spurious_retransmissions, d.lost_acks, losses(&d)), (1, 1, [0; 4]));
    assert_eq!(only_verdict(&c).place, Place::AckBehindTap);
}

/// The sender is 10 ms away: what passed the tap later than that before the repeat was still on its way, an ACK alone or a request.
#[test]
fn a_timeout_that_meets_its_ack_on_the_way_shows_no_lost_ack() {
    for (in_trouble, request) in [(false, 0), (false, 20), (true, 0), (true, 20)] {
        for (acked, lost) in [(0.342, 0), (0.339, 1)] {
            let mut c = start();
            let n = u32::from(in_trouble);
            if in_trouble {
                seg(&mut c, 0.050, 0);
                mirror(&mut c, 0.050_1, 0);
                ack(&mut c, 0.080, 1);
            }
            seg(&mut c, 0.100, n);
            c.packet(acked, C, "AP", A, 901 + 1000 * (n + 1), request);
            seg(&mut c, 0.350, n);
            let verdict = *verdicts(&c).last().unwrap();
            let place = [Place::Nowhere, Place::AckBehindTap][usize::from(lost > 0)];
            assert_eq!(verdict.place, place, "{in_trouble} {request} {acked}: {verdict:?}");
            assert_eq!(verdict.evidence.has(sign::SOON), lost == 0, "{verdict:?}");
            let d = server(&c);
            assert_eq!((d.spurious_retransmissions, d.lost_acks, losses(&d)), (1, lost, [0; 4]));
        }
    }
}

/// No ACK passed, and yet the receiver had the bytes: the ACK was lost before the tap if its id is missing, and else there was none
/// yet. Where the ids tell nothing, it was lost if no ACK waits so long.
#[test]
fn a_timeout_with_a_d_sack_shows_an_ack_lost_before_the_tap() {
    for (repeat, skipped, place) in [
        (0.350, Some(0), Place::Nowhere),
        (0.350, Some(1), Place::AckBeforeTap),
        (0.350, None, Place::Nowhere),
        (0.600, None, Place::AckBeforeTap),
    ] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        seg(&mut c, repeat, 0);
        c.sack(repeat + 0.030, C, A, 1901, &[edges(0, 1)]);
        match skipped {
            Some(skipped) => c.packets.last_mut().unwrap().ip_id += skipped,
            None => no_id(&mut c),
        }
        let (lost, all) = (u64::from(place == Place::AckBeforeTap), with_others(&c, false));
        assert_eq!(only_verdict(&all).place, place, "{repeat} {skipped:?}");
        let analysis = analyze(&all.packets);
        let port = |c: &&v1::Connection| c.client.as_ref().unwrap().port == 40_000;
        let d = analysis.connections.iter().find(port).unwrap();
        let d = d.server_to_client.as_ref().unwrap();
        assert_eq!((d.spurious_retransmissions, d.lost_acks, losses(d)), (1, lost, [0; 4]));
    }
}

/// Without SACK a timeout of the only segment in flight may be its ACK's loss.
#[test]
fn without_sack_a_lonely_timeout_has_no_place() {
    for (segments, place) in [(1, Place::Unknown), (4, Place::BehindTap)] {
        let mut c = start_without_sack();
        for n in 0..segments {
            seg(&mut c, 0.100, n);
        }
        seg(&mut c, 0.350, 0);
        ack(&mut c, 0.380, 1);
        assert_eq!(only_verdict(&c).place, place, "{segments}");
    }
}

/// RFC 3522 by time: an answer to the repeat needs a round trip of its side (30 ms here).
#[test]
fn an_ack_sooner_than_a_round_trip_is_that_of_the_first_copy() {
    for (at, spurious) in [(0.460, 1), (0.480, 0)] {
        let mut c = start_without_sack();
        for n in 0..4u32 {
            seg(&mut c, 0.060 + 0.04 * f64::from(n), n);
            ack(&mut c, 0.090 + 0.04 * f64::from(n), n + 1);
        }
        for n in 4..7 {
            seg(&mut c, 0.300, n);
        }
        seg(&mut c, 0.450, 4);
        ack(&mut c, at, 7);
        seg(&mut c, at + 0.001, 5); // the sender had not got that ACK yet
        let d = server(&c);
        assert_eq!(
            (d.spurious_retransmissions, d.lost_downstream),
            (1 + spurious, 1 - spurious),
            "{at}"
        );
    }
}

/// But what echoes the TSval of the repeat answers that, however soon: a queue has shrunk.
#[test]
fn an_ack_that_echoes_the_repeat_answers_it_however_soon() {
    for (echo, place) in [(450, Place::Unknown), (300, Place::Nowhere)] {
        let mut c = start_without_sack();
        four_round_trips(&mut c);
        for (at, stamp) in [(0.300, 300), (0.450, 450)] {
            seg(&mut c, at, 4);
            c.packets.last_mut().unwrap().options.timestamps = Some((stamp, 7));
        }
        ack(&mut c, 0.460, 5);
        c.packets.last_mut().unwrap().options.timestamps = Some((8, echo));
        assert_eq!(only_verdict(&c).place, place, "{echo}");
    }
}

/// The confidence is that of the strongest sign; nothing is known of what nothing told.
#[test]
fn verdicts_carry_their_evidence() {
    let mut c = start();
    for n in 0..4 {
        seg(&mut c, 0.100, n);
    }
    c.sack(0.130, C, A, 901, &[edges(1, 4)]);
    seg(&mut c, 0.141, 0);
    ack(&mut c, 0.171, 4);
    c.packet(0.300, C, "AP", A, 4901, 100);
    let v = only_verdict(&c);
    assert_eq!(
        (v.class, v.cause, v.place),
        (Class::Retransmission, Cause::Fast, Place::BehindTap)
    );
    let message = v.message();
    assert_eq!(message.evidence, ["SEEN", "SACK_HOLE", "NO_DSACK"]);
    assert_eq!((message.confidence, message.seq, message.length), (0.99, 901, 1000));
    assert!(message.from_server && message.episode == 1);
}

#[test]
fn a_repeat_behind_its_ack_was_spurious() {
    let mut c = start();
    for n in 0..3 {
        seg(&mut c, 0.100, n);
    }
    ack(&mut c, 0.130, 3);
    seg(&mut c, 0.400, 2);
    let d = server(&c);
    assert_eq!(causes(&d), [0, 0, 1, 0]);
    assert_eq!(losses(&d), [0; 4]);
}

/// RFC 2883: the D-SACK proves that the first copy had arrived.
#[test]
fn a_d_sack_makes_the_repeat_spurious_afterwards() {
    let mut c = start();
    for n in 0..3 {
        seg(&mut c, 0.100, n);
    }
    seg(&mut c, 0.400, 2);
    c.sack(0.430, C, A, 3901, &[edges(2, 3)]);
    let d = server(&c);
    assert_eq!((causes(&d), losses(&d)), ([0, 0, 1, 0], [0; 4]));
}

#[test]
fn a_sack_block_that_covers_the_repeat_makes_it_spurious() {
    let mut c = start();
    for n in 0..4 {
        seg(&mut c, 0.100, n);
    }
    c.sack(0.130, C, A, 901, &[edges(1, 4)]);
    seg(&mut c, 0.141, 0); // fast
    seg(&mut c, 0.141, 2); // needless
    let d = server(&c);
    assert_eq!((causes(&d), losses(&d)), ([1, 0, 1, 0], [0, 1, 0, 0]));
}

#[test]
fn the_same_ip_id_is_a_copy() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    let copy = *c.packets.last().unwrap();
    c.packets.push(copy);
    ack(&mut c, 0.130, 1);
    let d = server(&c);
    assert_eq!((d.network_duplicates, d.retransmitted_packets), (1, 0));
}

#[test]
fn what_the_receiver_acknowledged_unfilled_was_missed_by_the_capture() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 3); // 1 and 2 are not in the capture
    ack(&mut c, 0.130, 4);
    c.packet(0.2, S, "AF", 4901, A, 0);
    c.packet(0.2, C, "AF", A, 4902, 0);
    c.packet(0.2, S, "A", 4902, A + 1, 0);
    let a = analyze(&c.packets);
    let d = only(&a).server_to_client.unwrap();
    assert_eq!((d.retransmitted_packets, losses(&d)), (0, [0, 0, 0, 2]));
    assert_eq!(a.findings[0].kind, "CAPTURE_LOSS");
    assert_eq!(a.summary.unwrap().capture_loss, 2);
}

/// A SACK block over what did not pass, before anything was sent again: it had arrived, behind what came after it. The
/// repeat that crosses the block is needless.
#[test]
fn what_sack_covers_before_it_came_again_was_missed_by_the_capture() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 2); // 1 is not in the capture
    seg(&mut c, 0.100, 3);
    c.sack(0.130, C, A, 901, &[edges(2, 4)]);
    c.sack(0.134, C, A, 901, &[edges(1, 4)]);
    seg(&mut c, 0.160, 1);
    seg(&mut c, 0.160, 0);
    ack(&mut c, 0.190, 4);
    let d = server(&c);
    assert_eq!((d.retransmitted_packets, losses(&d)), (2, [0, 1, 0, 1]));
    // Repeated before the block: it may be the repeat that arrived.
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 2);
    c.sack(0.130, C, A, 901, &[edges(2, 3)]);
    seg(&mut c, 0.140, 1);
    c.sack(0.170, C, A, 901, &[edges(1, 3)]);
    let d = server(&c);
    assert_eq!(losses(&d), [1, 0, 0, 0]);
}

/// The ACK is the only sign of data at the end of a burst.
#[test]
fn acks_of_unseen_data_count_what_is_missing() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    ack(&mut c, 0.130, 4); // 1 to 3 are not in the capture
    seg(&mut c, 0.140, 4);
    ack(&mut c, 0.170, 5);
    let d = server(&c);
    // 3000 bytes in segments of the MSS.
    assert_eq!((d.retransmitted_packets, losses(&d)), (0, [0, 0, 0, 3]));
}

/// Zeek 335 and 1564: the ACK stands before its data in the file.
#[test]
fn data_behind_its_ack_in_the_file_is_neither_lost_nor_repeated() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    ack(&mut c, 0.1000, 2);
    seg(&mut c, 0.1001, 1);
    ack(&mut c, 0.130, 2);
    let d = server(&c);
    assert_eq!((d.retransmitted_packets, losses(&d)), (0, [0; 4]));
    // Three segments, one after the other or in one packet; one of them is missing.
    for (later, missed) in [
        (&[(1, 1000), (2, 1000), (3, 1000)][..], 0),
        (&[(1, 3000)], 0),
        (&[(1, 2000)], 1),
    ] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        ack(&mut c, 0.1000, 5);
        seg(&mut c, 0.1001, 4);
        for &(n, bytes) in later {
            c.packet(0.1002, S, "A", 901 + 1000 * n, A, bytes);
        }
        ack(&mut c, 0.130, 5);
        assert_eq!(losses(&server(&c)), [0, 0, 0, missed], "{later:?}");
    }
}

#[test]
fn keep_alives_are_no_retransmissions() {
    for len in [0, 1] {
        let mut c = start();
        c.packet(0.1, S, "AP", 901, A, 500);
        c.packet(0.13, C, "A", A, 1401, 0);
        c.packet(45.0, C, "A", A - 1, 1401, len);
        c.packet(45.01, S, "A", 1401, A, 0);
        let a = analyze(&c.packets);
        let d = only(&a).client_to_server.unwrap();
        assert_eq!((d.keep_alives, d.retransmitted_packets), (1, 0), "{len}");
        assert_eq!(a.transactions.len(), 2, "no turn");
    }
}

/// One byte that is not acknowledged yet is data.
#[test]
fn a_one_byte_segment_is_retransmitted_like_any_other() {
    let mut c = start();
    c.packet(0.1, S, "AP", 901, A, 1);
    c.packet(0.4, S, "AP", 901, A, 1);
    c.packet(0.43, C, "A", A, 902, 0);
    let d = server(&c);
    assert_eq!((d.keep_alives, d.retransmitted_packets), (0, 1));
    assert_eq!(causes(&d), [0, 1, 0, 0]);
}

/// The ACK of the last byte was lost behind the tap: no keep-alive comes so soon after data, and one byte of it is not garbage.
#[test]
fn an_acknowledged_byte_soon_after_data_is_sent_again() {
    for (after, keep_alives) in [(0.3, 0), (0.6, 1)] {
        let mut c = start();
        c.packet(0.1, S, "A", 901, A, 1000);
        c.packet(0.1, S, "AP", 1901, A, 1);
        c.packet(0.13, C, "A", A, 1902, 0);
        c.packet(0.1 + after, S, "AP", 1901, A, 1);
        c.packet(0.13 + after, C, "A", A, 1902, 0);
        let d = server(&c);
        assert_eq!(
            (d.keep_alives, d.retransmitted_packets, d.lost_acks),
            (keep_alives, 1 - keep_alives, 1 - keep_alives),
            "{after}"
        );
    }
}

#[test]
fn a_closed_window_is_timed() {
    let mut c = start();
    seg(&mut c, 0.1, 0);
    ack(&mut c, 0.13, 1);
    c.packets.last_mut().unwrap().window = 0;
    c.packet(1.0, S, "A", 1901, A, 1); // probe
    ack(&mut c, 1.03, 1);
    c.packets.last_mut().unwrap().window = 0;
    ack(&mut c, 2.13, 1);
    let a = analyze(&c.packets);
    let d = only(&a).client_to_server.unwrap();
    assert_eq!((d.zero_windows, d.min_window), (2, Some(0)));
    let f = a.findings.iter().find(|f| f.kind == "ZERO_WINDOW").unwrap();
    let Some(v1::finding_value::Value::Number(s)) = f.values["seconds"].value else {
        panic!()
    };
    assert!((s - 2.0).abs() < 1e-9);
    assert_eq!(only(&a).server_to_client.as_ref().unwrap().retransmitted_packets, 0);
}

/// Nobody waits for a window that closes behind the last byte; the FIN needs none.
#[test]
fn a_closed_window_that_nothing_waits_for_holds_nobody_back() {
    let mut c = start();
    seg(&mut c, 0.1, 0);
    ack(&mut c, 0.13, 1);
    c.packets.last_mut().unwrap().window = 0;
    c.packet(30.0, C, "AF", A, 1901, 0).window = 0;
    c.packet(30.01, S, "AF", 1901, A + 1, 0);
    c.packet(30.04, C, "A", A + 1, 1902, 0).window = 0;
    let a = analyze(&c.packets);
    assert!(only(&a).client_to_server.as_ref().unwrap().zero_windows > 0);
    assert!(a.findings.iter().all(|f| f.kind != "ZERO_WINDOW"), "{:?}", a.findings);
}

/// What the capture has twice was sent once: shares are those of what was sent.
#[test]
fn a_mirror_changes_no_retransmission_rate() {
    let rate = |mirrored: bool| {
        let mut c = start();
        for n in 0..100 {
            let at = 0.1 + 0.4 * f64::from(n);
            seg(&mut c, at, n);
            if n % 25 == 24 {
                seg(&mut c, at + 0.3, n);
            }
            ack(&mut c, at + 0.33, n + 1);
        }
        if mirrored {
            let twice = c.packets.iter().flat_map(|packet| {
                let copy = weir_engine::Meta {
                    time: packet.time + 2000,
                    ..*packet
                };
                [*packet, copy]
            });
            c.packets = twice.collect();
        }
        let a = analyze(&c.packets);
        let rate = a.summary.unwrap().retransmission_rate.unwrap();
        (rate.retransmitted_packets, rate.data_packets)
    };
    assert_eq!(rate(false), (4, 105));
    assert_eq!(rate(true), rate(false));
}

/// The probe's byte was not taken: the sender goes on from it.
#[test]
fn data_that_begins_with_the_probes_byte_is_new() {
    let mut c = start();
    seg(&mut c, 0.1, 0);
    ack(&mut c, 0.13, 1);
    c.packets.last_mut().unwrap().window = 0;
    c.packet(1.0, S, "A", 1901, A, 1);
    c.packet(2.0, S, "A", 1901, A, 1);
    ack(&mut c, 2.13, 1);
    seg(&mut c, 2.14, 1);
    ack(&mut c, 2.17, 2);
    let d = server(&c);
    assert_eq!((d.retransmitted_packets, d.keep_alives), (0, 0));
}

/// The client's answer took another way: the server goes on, so the setup was done.
#[test]
fn a_setup_seen_from_one_side_only() {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(0.010, S, 900, 101, Some(8));
    c.packet(0.050, S, "AP", 901, 201, 500);
    let a = analyze(&c.packets);
    let setup = only(&a).setup.as_ref().unwrap();
    assert_eq!((setup.outcome.as_str(), setup.end_seconds), ("OK", None));
}

/// A PSH segment that was lost before the tap still ends its block.
#[test]
fn a_late_push_ends_its_block() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    c.packet(0.100, S, "AP", 2901, A, 300); // after the lost second segment
    ack(&mut c, 0.130, 1);
    c.packet(0.341, S, "AP", 1901, A, 1000);
    ack(&mut c, 0.371, 3);
    let a = analyze(&c.packets);
    assert_eq!(a.transactions[1].signature, "Request: blk[100]-blk[2xxx]; blk[3xx]");
    assert_eq!(a.transactions[1].losses, 1);
}

#[test]
fn half_closed_when_the_other_side_never_ends() {
    let mut c = start();
    c.packet(0.1, S, "AP", 901, A, 500);
    c.packet(0.13, C, "AF", A, 1401, 0);
    c.packet(0.14, S, "A", 1401, A + 1, 0);
    let close = |c: &Conversation| only(&analyze(&c.packets)).close.clone().unwrap().kind;
    assert_eq!(close(&c), "HALF_CLOSED");
    c.packet(0.2, S, "AF", 1401, A + 1, 0);
    assert_eq!(close(&c), "CLIENT_FIN");
}

#[test]
fn a_repeated_fin_is_a_retransmission() {
    let mut c = start();
    c.packet(0.1, S, "AF", 901, A, 0);
    c.packet(0.4, S, "AF", 901, A, 0);
    c.packet(0.43, C, "AF", A, 902, 0);
    c.packet(0.44, S, "A", 902, A + 1, 0);
    let d = server(&c);
    assert_eq!((d.retransmitted_packets, causes(&d)), (1, [0, 1, 0, 0]));
}

/// The mirror's FIN comes behind its copy of the ACK before, so it is not the same as the packet before it.
#[test]
fn a_fin_with_the_same_ip_id_is_a_copy() {
    for (same, counts) in [(true, (0, 1)), (false, (1, 0))] {
        let mut c = start();
        c.packet(0.1, S, "A", 901, A, 0);
        let ack = *c.packets.last().unwrap();
        c.packet(0.100_001, S, "AF", 901, A, 0);
        let fin = *c.packets.last().unwrap();
        for (copy, at) in [(ack, 0.100_015), (fin, 0.100_016)] {
            let time = support::T0 + ns(at);
            c.packets.push(weir_engine::Meta { time, ..copy });
        }
        if !same {
            c.packets.last_mut().unwrap().ip_id += 9;
        }
        c.packet(0.13, C, "AF", A, 902, 0);
        c.packet(0.14, S, "A", 902, A + 1, 0);
        let d = server(&c);
        assert_eq!((d.retransmitted_packets, d.mirror_copies), counts);
    }
}

/// A mirror port may write a burst first and then its copies, and the round trip may not be known yet.
#[test]
fn copies_behind_their_burst_are_copies_before_any_round_trip() {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(1.0, C, 100, 0, Some(8));
    c.syn(1.010, S, 900, 101, Some(8));
    c.packet(1.040, C, "A", 101, 901, 0);
    let first = c.packets.len();
    for n in 0..4 {
        c.packet(1.041 + f64::from(n) * 3e-6, C, "A", 101 + 1000 * n, 901, 1000);
    }
    for n in first..first + 4 {
        let time = c.packets[n].time + 15_000;
        c.packets.push(weir_engine::Meta { time, ..c.packets[n] });
    }
    c.packet(1.051, S, "A", 901, 4101, 0);
    let d = only(&analyze(&c.packets)).client_to_server.unwrap();
    let syn = 1;
    assert_eq!((d.mirror_copies, d.retransmitted_packets), (4, syn));
}

/// What came again of a handshake: sent at these times, SYN-ACKs after 10 ms where `answered`.
fn slow_setup(packets: &[(f64, bool)], ack: f64) -> Conversation {
    let mut c = Conversation::new(40_000);
    for (at, from_client) in packets {
        let (seq, acked) = if *from_client { (100, 0) } else { (900, 101) };
        c.syn(*at, *from_client, seq, acked, Some(8));
    }
    c.packet(ack, C, "A", 101, 901, 0);
    c.packet(ack + 0.001, C, "AP", 101, 901, 100);
    c.packet(ack + 0.011, S, "A", 901, 201, 0);
    c.packet(ack + 0.012, S, "AP", 901, 201, 100);
    c.packet(ack + 0.041, C, "A", 201, 1001, 0);
    c
}

fn places(c: &Conversation) -> Vec<(Class, Place)> {
    verdicts(c).iter().map(|v| (v.class, v.place)).collect()
}

#[test]
fn a_syn_again_behind_its_syn_ack_shows_that_lost_behind_the_tap() {
    let c = slow_setup(&[(0.0, C), (0.010, S), (1.0, C), (1.010, S)], 1.040);
    // The second SYN-ACK answers the second SYN; that the first was lost is told twice.
    let expected = [
        (Class::Retransmission, Place::AckBehindTap),
        (Class::Retransmission, Place::BehindTap),
    ];
    assert_eq!(places(&c), expected);
    assert!(
        only(&analyze(&c.packets))
            .setup
            .as_ref()
            .unwrap()
            .explanation
            .contains("lost between the tap and the client")
    );
}

/// A path of 1.5 s, `client` of it before the tap, on which nothing is lost: the SYN comes again after 1 s, and the server answers both.
fn long_way(client: f64) -> Conversation {
    let server = 1.5 - client;
    let mut c = Conversation::new(40_000);
    for (at, from_client) in [(0.0, C), (server, S), (1.0, C), (1.0 + server, S)] {
        let (seq, acked) = if from_client { (100, 0) } else { (900, 101) };
        c.syn(at, from_client, seq, acked, Some(8));
    }
    c.packet(1.5, C, "A", 101, 901, 0);
    c.packet(1.51, C, "AP", 101, 901, 100);
    c.packet(2.5, C, "A", 201, 901, 0);
    c.packet(1.51 + server, S, "A", 901, 201, 0);
    c.packet(1.56 + server, S, "AP", 901, 201, 100);
    c.packet(3.06, C, "A", 201, 1001, 0);
    c.packets.sort_by_key(|packet| packet.time);
    c
}

/// Wherever the tap is.
#[test]
fn a_syn_again_sooner_than_a_round_trip_shows_no_loss() {
    for client in [0.000_2, 0.4, 0.75, 1.1, 1.499_8] {
        let c = long_way(client);
        let again = (Class::Retransmission, Place::Nowhere);
        assert_eq!(places(&c), [again; 2], "{client}");
        let a = analyze(&c.packets);
        let said = &only(&a).setup.as_ref().unwrap().explanation;
        assert!(
            said.contains("nothing shows a loss") && !said.contains("lost"),
            "{said}"
        );
    }
    // On a short path the second answer is that of a timer, and something was lost.
    let mut c = slow_setup(&[(0.0, C), (1.0, C), (1.010, S)], 1.040);
    c.syn(2.010, S, 900, 101, Some(8));
    assert_eq!(places(&c)[0], (Class::Retransmission, Place::Unknown));
}

/// The client's answer to the one SYN-ACK or to the other: without any other round trip nothing tells.
#[test]
fn a_syn_behind_its_syn_ack_tells_nothing_without_a_round_trip() {
    let told = |answer: f64| {
        let mut c = Conversation::new(40_000);
        for (at, from_client) in [(0.0, C), (0.001, S), (1.0, C), (1.001, S)] {
            let (seq, acked) = if from_client { (100, 0) } else { (900, 101) };
            c.syn(at, from_client, seq, acked, Some(8));
        }
        c.packet(answer, C, "A", 101, 901, 0);
        places(&c)[0].1
    };
    assert_eq!([told(1.5), told(1.03)], [Place::Unknown, Place::AckBehindTap]);
}

/// The server answers data in 10 ms; 4 ms after the SYN, its own timer speaks. On a slow link a SYN is faster than data.
#[test]
fn a_syn_ack_sooner_than_an_answer_shows_one_lost_before() {
    for (answer, place) in [
        (1.004, Place::AckBeforeTap),
        (1.006, Place::Unknown),
        (1.010, Place::Unknown),
    ] {
        let c = slow_setup(&[(0.0, C), (1.0, C), (answer, S)], 1.040);
        assert_eq!(places(&c), [(Class::Retransmission, place)], "{answer}");
    }
}

/// The server had the first or the second SYN when the third came: nothing tells what was lost before the second.
#[test]
fn a_syn_ack_lost_before_shows_of_the_last_syn_only() {
    let c = slow_setup(&[(0.0, C), (1.0, C), (3.0, C), (3.004, S)], 3.040);
    let expected = [
        (Class::Retransmission, Place::Unknown),
        (Class::Retransmission, Place::AckBeforeTap),
    ];
    assert_eq!(places(&c), expected);
}

#[test]
fn two_syn_acks_for_one_syn_show_one_lost_before() {
    let c = slow_setup(&[(0.0, C), (1.0, C), (1.010, S), (1.020, S)], 1.040);
    assert_eq!(places(&c)[0], (Class::Retransmission, Place::AckBeforeTap));
    assert!(verdicts(&c)[0].evidence.has(sign::SECOND_ANSWER));
}

/// As [`slow_setup`], with timestamps: the TSval of a packet is when it was sent, in ms and from 1 on; the SYN-ACKs echo that of the SYN of number
/// `echoed`. SYN-ACKs have no IP id, as those of Linux.
fn stamped_setup(packets: &[(f64, bool)], echoed: usize) -> Conversation {
    let mut c = slow_setup(packets, packets.last().unwrap().0 + 0.03);
    let stamp = |at: f64| (at * 1e3) as u32 + 1;
    for (packet, (at, from_client)) in c.packets.iter_mut().zip(packets) {
        let echo = if *from_client { 0 } else { stamp(packets[echoed].0) };
        packet.options.timestamps = Some((stamp(*at), echo));
        packet.ip_id *= u16::from(*from_client);
    }
    for (id, packet) in (1..).zip(&mut c.packets[packets.len()..]) {
        packet.ip_id = id;
    }
    c
}

/// Linux keeps the TSval of the first SYN that it gets, however many come.
#[test]
fn a_syn_ack_echoes_the_first_syn_that_arrived() {
    use Place::{AckBeforeTap, BehindTap, Nowhere, Unknown};
    let syns = [(0.0, C), (1.0, C), (3.0, C), (3.010, S)];
    for (echoed, expected, words) in [
        (
            2,
            [BehindTap, BehindTap],
            "the first 2 SYNs were lost between the tap and the server (3.0 s)",
        ),
        (
            1,
            [BehindTap, AckBeforeTap],
            "the first SYN was lost between the tap and the server, and the server's answer",
        ),
        (
            0,
            [AckBeforeTap, Unknown],
            "the server had that: its answer to it was lost between the server and the tap",
        ),
    ] {
        let c = stamped_setup(&syns, echoed);
        assert_eq!(
            places(&c),
            expected.map(|place| (Class::Retransmission, place)),
            "{echoed}"
        );
        // Of a server that may echo the newest, the echo tells of that SYN alone.
        let mut other = c.clone();
        other.packets[3].ip_id = 77;
        let told = |place| if place == BehindTap { Unknown } else { place };
        let expected = expected.map(|place| (Class::Retransmission, told(place)));
        assert_eq!(places(&other), expected, "{echoed}");
        assert!(verdicts(&c)[0].evidence.has(sign::SYN_ECHO));
        let said = only(&analyze(&c.packets)).setup.as_ref().unwrap().explanation.clone();
        assert!(said.contains(words), "{said}");
    }
    // An answer to the first that is only late.
    let c = stamped_setup(&[(0.0, C), (0.25, C), (0.260, S)], 0);
    assert_eq!(places(&c), [(Class::Retransmission, Unknown)]);
    // A device in the path writes TSval and not TSecr.
    let mut c = stamped_setup(&syns, 0);
    c.packets[3].options.timestamps = Some((1, 1 << 30));
    assert!(places(&c).iter().all(|(_, place)| *place == Unknown));
    // A server that echoes the newest: its second answer shows that it had an earlier one.
    let c = stamped_setup(&[(0.0, C), (1.0, C), (1.010, S), (1.020, S)], 1);
    assert_eq!(places(&c)[0], (Class::Retransmission, AckBeforeTap));
    assert_eq!(places(&c)[1].1, Nowhere);
}

/// The ports are used again while the server still has their last connection: the first SYN arrived.
#[test]
fn a_syn_that_an_older_connection_answered_was_not_lost() {
    let again_after = |again: f64, acked: Option<u32>| {
        let mut c = Conversation::new(40_000);
        c.syn(0.0, C, 100, 0, Some(8));
        if let Some(acked) = acked {
            c.packet(0.010, S, "A", 2_000_000_900, acked, 0);
            c.packet(0.030, C, "R", acked, 0, 0);
        }
        c.syn(again, C, 100, 0, Some(8));
        c.syn(again + 0.010, S, 900, 101, Some(8));
        c.packet(again + 0.040, C, "A", 101, 901, 0);
        c.packet(again + 0.041, C, "AP", 101, 901, 100);
        c.packet(again + 0.051, S, "AP", 901, 201, 100);
        c
    };
    let with_ack = |acked: Option<u32>| again_after(1.0, acked);
    let said = |c: &Conversation| only(&analyze(&c.packets)).setup.as_ref().unwrap().explanation.clone();
    let c = with_ack(Some(3_000_000_000));
    assert_eq!(places(&c), [(Class::Retransmission, Place::Nowhere)]);
    assert!(verdicts(&c)[0].evidence.has(sign::CHALLENGED));
    assert!(said(&c).ends_with("nothing was lost."), "{}", said(&c));
    let c = with_ack(None);
    assert_eq!(places(&c), [(Class::Retransmission, Place::Unknown)]);
    assert!(said(&c).contains("unanswered for 1.0 s"), "{}", said(&c));
    // Linux asks again at once.
    let c = again_after(0.035, Some(3_000_000_000));
    assert_eq!(places(&c), [(Class::Retransmission, Place::Nowhere)]);
    assert_eq!(only(&analyze(&c.packets)).setup.as_ref().unwrap().syn_count, 2);
    assert!(said(&c).ends_with("nothing was lost."), "{}", said(&c));
}

/// Windows asks a closed port three times, half a second apart.
#[test]
fn a_syn_after_a_reset_shows_no_loss() {
    let mut c = Conversation::new(40_000);
    for at in [0.0, 0.51, 1.02] {
        c.syn(at, C, 100, 0, Some(8));
        c.packet(at + 0.01, S, "RA", 0, 101, 0);
    }
    assert_eq!(places(&c), [(Class::Retransmission, Place::Nowhere); 2]);
    assert!(verdicts(&c)[0].evidence.has(sign::RESET));
    let a = analyze(&c.packets);
    let setup = only(&a).setup.as_ref().unwrap();
    assert_eq!((setup.outcome.as_str(), setup.syn_count), ("REFUSED", 3));
    assert!(
        setup.explanation.contains("sent its SYN again 2 times"),
        "{}",
        setup.explanation
    );
    assert!(!setup.explanation.contains("lost"), "{}", setup.explanation);
}

/// There are senders whose repeats have the IP id of the first; a mirror's copy comes sooner than any timer runs out.
#[test]
fn a_syn_with_the_same_ip_id_is_a_repeat_when_a_timer_can_have_run_out() {
    for (again, class, count) in [(3.0, Class::Retransmission, 3), (0.001, Class::Copy, 1)] {
        let mut c = slow_setup(
            &[(0.0, C), (again, C), (3.0 * again, C), (3.0 * again + 0.01, S)],
            3.0 * again + 0.04,
        );
        for m in &mut c.packets[..3] {
            m.ip_id = 77;
        }
        let classes: Vec<_> = places(&c).iter().map(|(class, _)| *class).collect();
        assert_eq!(classes, [class; 2]);
        let a = analyze(&c.packets);
        let setup = only(&a).setup.as_ref().unwrap();
        assert_eq!(setup.syn_count, count);
        let response = setup.response_seconds.unwrap();
        let last = if count == 1 { 0.0 } else { 3.0 * again };
        assert!((response - (3.0 * again + 0.01 - last)).abs() < 1e-9, "{response}");
        let retransmitted = only(&a).client_to_server.as_ref().unwrap().retransmitted_packets;
        assert_eq!(retransmitted, u64::from(count - 1));
    }
}

/// What waited on its way comes at once with what the timer sent behind it; a new IP id tells that from a copy.
#[test]
fn a_syn_with_a_new_ip_id_is_no_copy_however_soon_it_comes() {
    let (repeat, copy) = ((Class::Retransmission, Place::Nowhere), (Class::Copy, Place::Capture));
    for (is_new, expected, count) in [(true, repeat, 2), (false, copy, 1)] {
        let mut c = slow_setup(&[(0.0, C), (0.001, C), (0.011, S)], 0.041);
        if !is_new {
            c.packets[0].ip_id = 0;
            c.packets[1].ip_id = 0;
        }
        assert_eq!(places(&c), [expected]);
        let a = analyze(&c.packets);
        assert_eq!(only(&a).setup.as_ref().unwrap().syn_count, count);
    }
}

/// A slow server is not one whose first SYN-ACK was lost, unless its SYN-ACK comes when a timer has run out.
#[test]
fn a_late_syn_ack_is_the_servers_second_when_its_timer_can_have_sent_it() {
    let said = |answer: f64| {
        let mut c = slow_setup(&[(0.0, C), (answer, S), (answer + 0.9, S)], answer + 0.93);
        c.packet(answer + 1.0, C, "AP", 201, 1001, 10);
        c.packet(answer + 1.01, S, "A", 1001, 211, 0);
        only(&analyze(&c.packets)).setup.as_ref().unwrap().explanation.clone()
    };
    assert!(
        said(1.02).contains("timer sent it again, so one before it was lost"),
        "{}",
        said(1.02)
    );
    assert!(!said(1.6).contains("one before it"), "{}", said(1.6));
}

/// With deferred accept the server sends it again until data comes, whether it has the ACK or not.
#[test]
fn a_syn_ack_behind_the_clients_ack_does_not_tell_that_lost() {
    let mut c = slow_setup(&[(0.0, C), (0.010, S)], 0.040);
    c.syn(1.010, S, 900, 101, Some(8));
    assert_eq!(places(&c), [(Class::Retransmission, Place::Unknown)]);
    let a = analyze(&c.packets);
    let setup = only(&a).setup.as_ref().unwrap();
    assert_eq!((setup.outcome.as_str(), setup.syn_ack_count), ("RETRANSMITTED", 2));
    assert!(setup.explanation.contains("deferred accept"), "{}", setup.explanation);
    // Sooner than the ACK can have come to the server.
    let mut c = long_way(0.75);
    c.packets.retain(|packet| packet.time != support::T0 + ns(1.0));
    assert_eq!(places(&c), [(Class::Retransmission, Place::Nowhere)]);
    // A mirror's is none.
    let mut c = slow_setup(&[(0.0, C), (0.010, S)], 0.040);
    c.syn(0.040_01, S, 900, 101, Some(8));
    assert_eq!(places(&c), [(Class::Copy, Place::Capture)]);
    let a = analyze(&c.packets);
    let setup = only(&a).setup.as_ref().unwrap();
    assert_eq!((setup.outcome.as_str(), setup.syn_ack_count), ("OK", 1));
}

/// Nobody answers in a flood: that is no loss.
#[test]
fn a_client_that_answers_no_syn_ack_is_not_said_to_have_lost_them() {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    for at in [0.010, 1.010, 3.010] {
        c.syn(at, S, 900, 101, Some(8));
    }
    let a = analyze(&c.packets);
    let setup = only(&a).setup.as_ref().unwrap();
    assert_eq!(setup.outcome, "IGNORED");
    let said = &setup.explanation;
    assert!(
        said.contains("3 times in 3.0 s, and the client answered none"),
        "{said}"
    );
    assert!(!said.contains("lost"), "{said}");
    for verdict in verdicts(&c) {
        assert_eq!((verdict.cause, verdict.place), (Cause::Timeout, Place::Unknown));
        assert!(verdict.evidence.has(sign::SILENCE));
    }
    // That it goes on asking shows that it had none.
    c.syn(3.050, C, 100, 0, Some(8));
    let told: Vec<_> = verdicts(&c).iter().map(|v| v.place).collect();
    assert_eq!(told, [Place::BehindTap, Place::BehindTap, Place::AckBehindTap]);
}

/// RFC 7413 4.2: the client sends it again when the SYN-ACK acknowledges the SYN alone.
#[test]
fn data_on_the_syn_that_the_server_refused_was_not_lost() {
    let refused = |from: u32| {
        let mut c = Conversation::new(40_000);
        c.syn(0.0, C, 100, 0, Some(8));
        c.packets[0].payload = 500;
        c.syn(0.010, S, 900, 101, Some(8));
        c.packet(0.040, C, "AP", from, 901, 500);
        c.packet(0.050, S, "A", 901, 601, 0);
        c
    };
    let verdict = only_verdict(&refused(101));
    assert_eq!((verdict.class, verdict.place), (Class::Retransmission, Place::Nowhere));
    assert!(verdict.evidence.has(sign::SYN_DATA));
    // Later, it is as any other.
    let mut c = start();
    c.packet(0.341, C, "AP", 101, 901, 100);
    c.packet(0.351, S, "A", 901, A, 0);
    assert_eq!(only_verdict(&c).place, Place::BehindTap);
}

/// Stacks of BSD and of Windows answer a FIN with their own once more where both close at once.
#[test]
fn a_fin_on_the_ack_of_the_others_fin_tells_of_no_loss() {
    let mut c = start();
    four_round_trips(&mut c);
    c.packet(0.400, C, "AF", A, 4901, 0);
    c.packet(0.405, S, "AF", 4901, A, 0);
    c.packet(0.435, C, "AF", A, 4902, 0);
    // When a probe is due, and behind the ACK of its first.
    c.packet(0.475, S, "AF", 4901, A + 1, 0);
    c.packet(0.505, C, "A", A + 1, 4902, 0);
    let told: Vec<_> = verdicts(&c).iter().map(|v| (v.from_server, v.cause, v.place)).collect();
    let unknown = Cause::Unknown;
    assert_eq!(
        told,
        [(false, unknown, Place::Unknown), (true, unknown, Place::Nowhere)]
    );
    let a = analyze(&c.packets);
    for d in [&only(&a).client_to_server, &only(&a).server_to_client] {
        let d = d.as_ref().unwrap();
        assert_eq!((losses(d), d.lost_acks), ([0; 4], 0));
    }
    // Without more to acknowledge it is a probe, whose ACK was lost.
    let last = c.packets.len() - 2;
    c.packets[last].ack = A;
    assert_eq!(verdicts(&c)[1].place, Place::AckBehindTap);
}

/// The answer to the second SYN comes behind the ACK of the server's own repeat: nothing was lost after it.
#[test]
fn a_second_answer_behind_the_clients_ack_is_one() {
    let mut c = slow_setup(&[(0.0, C), (1.0, C), (1.004, S)], 1.034);
    c.syn(1.040, S, 900, 101, Some(8));
    let expected = [
        (Class::Retransmission, Place::AckBeforeTap),
        (Class::Retransmission, Place::Nowhere),
    ];
    assert_eq!(places(&c), expected);
    assert_eq!(only(&analyze(&c.packets)).setup.as_ref().unwrap().syn_ack_count, 2);
}

/// No SYN timer is as short; a mirror port is. Linux sends SYN-ACKs with IP id 0.
#[test]
fn mirrored_handshakes_are_not_repeated_ones() {
    let mut c = slow_setup(&[(0.0, C), (0.000_01, C), (0.010, S), (0.010_01, S)], 0.040);
    for m in &mut c.packets[..4] {
        m.ip_id = 0;
    }
    assert_eq!(places(&c), [(Class::Copy, Place::Capture); 2]);
    let a = analyze(&c.packets);
    let setup = only(&a).setup.as_ref().unwrap();
    assert_eq!(
        (setup.outcome.as_str(), setup.syn_count, setup.syn_ack_count),
        ("OK", 1, 1)
    );
    let (cs, sc) = (only(&a).client_to_server.unwrap(), server(&c));
    assert_eq!((cs.retransmitted_packets, sc.retransmitted_packets), (0, 0));
    assert_eq!((cs.network_duplicates, sc.network_duplicates), (1, 1));
    // Copies leave both round trips of the handshake known, 10 ms and 30 ms, beside those of data.
    let rtt = |d: &v1::Direction| {
        d.rtt
            .map(|rtt| (rtt.samples, (1000.0 * rtt.p95_seconds.unwrap()).round()))
    };
    assert_eq!([&cs, &sc].map(rtt), [Some((2, 10.0)), Some((2, 30.0))]);
}

/// The server answers each SYN, but not within microseconds: what a mirror port does to the SYNs it does to the SYN-ACK.
#[test]
fn a_mirrored_answer_to_a_second_syn_is_no_second_answer() {
    let places_with = |copies: bool| {
        let mut times = vec![
            (0.0, C),
            (0.000_01, C),
            (1.0, C),
            (1.000_01, C),
            (1.034, S),
            (1.034_012, S),
        ];
        if !copies {
            times.retain(|(time, side)| *side == S || [0.0, 1.0].contains(time));
        }
        let mut c = slow_setup(&times, 1.060);
        for packet in &mut c.packets[..times.len()] {
            packet.ip_id = 0;
        }
        places(&c)
    };
    let copy = (Class::Copy, Place::Capture);
    let syn = (Class::Retransmission, Place::Unknown);
    assert_eq!(places_with(true), [copy, syn, copy, copy]);
    assert_eq!(
        places_with(false),
        [
            (Class::Retransmission, Place::AckBeforeTap),
            (Class::Retransmission, Place::Nowhere)
        ]
    );
}

/// The same behind the end of the handshake: the server answers the second SYN, too, and a mirror copies that answer.
#[test]
fn a_mirrored_answer_behind_the_handshake_is_one_answer() {
    let (syns, answers) = ([0.0, 1.0], [1.034, 1.045]);
    let twice = |at: f64, side| [(at, side), (at + 0.000_02, side)];
    let times = syns.map(|at| twice(at, C)).concat();
    let mut c = slow_setup(&[times, answers.map(|at| twice(at, S)).concat()].concat(), 1.043);
    for packet in &mut c.packets[..8] {
        packet.ip_id = 0;
    }
    c.packets.sort_by_key(|packet| packet.time);
    let a = analyze(&c.packets);
    let setup = only(&a).setup.as_ref().unwrap();
    assert_eq!((setup.syn_count, setup.syn_ack_count), (2, 2));
    assert_eq!(server(&c).retransmitted_packets, 1);
}

/// Linux joins what came twice before its next ACK into one D-SACK, with what lies between (`tcp_dsack_extend`): that tells nothing of what
/// filled a hole and the tap never saw before. A block of that alone does: the capture had missed the first copy.
#[test]
fn a_joined_dsack_does_not_name_what_filled_a_hole() {
    let place = |twice: (u32, u32)| {
        let mut c = start();
        for n in [0, 1, 2, 4, 5] {
            seg(&mut c, 0.100, n);
        }
        for n in [5, 6, 6] {
            c.sack(0.130, C, A, 3901, &[edges(4, n)]);
        }
        seg(&mut c, 0.141, 5);
        seg(&mut c, 0.142, 3);
        c.sack(0.172, C, A, 6901, &[twice]);
        verdicts(&c).last().unwrap().place
    };
    assert_eq!(place(edges(2, 6)), Place::BeforeTap);
    assert_eq!(place(edges(5, 6)), Place::BeforeTap);
    assert_eq!(place(edges(3, 4)), Place::Capture);
}

/// RFC 6582 3.2, without SACK: the ACK of the first repeat stops at the second hole.
#[test]
fn a_partial_ack_asks_for_the_next_hole() {
    let mut c = start_without_sack();
    for n in 0..6 {
        seg(&mut c, 0.100, n);
    }
    for _ in 0..4 {
        ack(&mut c, 0.130, 0);
    }
    seg(&mut c, 0.141, 0);
    ack(&mut c, 0.171, 3);
    seg(&mut c, 0.182, 3);
    ack(&mut c, 0.212, 6);
    let v = verdicts(&c);
    assert_eq!((v[0].cause, v[0].place), (Cause::Fast, Place::BehindTap));
    assert_eq!((v[1].cause, v[1].place), (Cause::Fast, Place::BehindTap));
    assert!(v[1].evidence.has(sign::PARTIAL_ACK));
    // All that is repaired had been sent before the recovery began.
    assert_eq!(v[1].lost_at, v[0].lost_at);
}

/// A whole flight is lost, and its sender goes on from the first segment, as ACKs let it: no duplicate ACK and no SACK asked for any of them.
#[test]
fn what_partial_acks_ask_for_after_a_timeout_is_the_timeouts() {
    for start in [start, start_without_sack] {
        let mut c = start();
        for n in 0..10 {
            seg(&mut c, 0.100, n);
        }
        for timer in [0.350, 0.850] {
            seg(&mut c, timer, 0);
        }
        ack(&mut c, 0.895, 1);
        // Later than a round trip after the one before.
        let mut at = 0.896;
        for (from, to) in [(1, 3), (3, 6), (6, 10)] {
            for n in from..to {
                seg(&mut c, at, n);
            }
            ack(&mut c, at + 0.045, to);
            at += 0.046;
        }
        let v = verdicts(&c);
        assert_eq!(v.len(), 11);
        for v in v {
            assert_eq!((v.cause, v.place), (Cause::Timeout, Place::BehindTap), "{v:?}");
        }
    }
}

/// A rest, and then both FINs; a copy of each packet `later` after it, if there is one. Without IP ids.
fn closed_after_a_rest(later: Option<f64>) -> Conversation {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    ack(&mut c, 0.130, 1);
    c.packet(3.000, C, "AF", A, 1901, 0);
    c.packet(3.010, S, "AF", 1901, A + 1, 0);
    c.packet(3.040, C, "A", A + 1, 1902, 0);
    let copies = c.packets.clone().into_iter();
    let copies = copies.filter(|_| later.is_some()).map(|mut m| {
        m.time += ns(later.unwrap_or(0.0));
        m
    });
    c.packets.extend(copies);
    for m in &mut c.packets {
        m.ip_id = 0;
    }
    c
}

/// No timer runs out within microseconds, however long ago the last data was.
#[test]
fn a_fin_right_after_itself_is_a_copy() {
    for later in [0.000_007, 0.000_2] {
        let v = verdicts(&closed_after_a_rest(Some(later)));
        let fins: Vec<_> = v.iter().filter(|v| v.length == 0 && !v.handshake).collect();
        assert_eq!(fins.len(), 2, "{v:?}");
        assert!(v.iter().all(|v| v.class == Class::Copy), "{v:?}");
    }
    // Of the client alone, which nothing had gone wrong before.
    let mut c = closed_after_a_rest(None);
    let mut again = c.packets[c.packets.len() - 3];
    assert_ne!(again.flags & tcp_flag::FIN, 0);
    again.time += 7_000;
    c.packets.push(again);
    let v = only_verdict(&c);
    assert_eq!((v.class, v.place), (Class::Copy, Place::Capture));
    let a = analyze(&c.packets);
    let d = only(&a).client_to_server.unwrap();
    assert_eq!((d.retransmitted_packets, d.mirror_copies), (0, 1));
    assert!(a.transactions.iter().all(|t| !t.signature.contains("already")), "{a:?}");
}

/// A FIN again 5 ms later, of a path of 40 ms, was sent by nobody knows what; after 70 ms by a probe timer, after 300 ms by the other one.
#[test]
fn the_timer_of_a_fin_runs_from_the_fin() {
    for (later, cause) in [
        (0.005, Cause::Unknown),
        (0.070, Cause::TailProbe),
        (0.300, Cause::Timeout),
    ] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        ack(&mut c, 0.130, 1);
        c.packet(3.0, S, "AF", 1901, A, 0);
        c.packet(3.0 + later, S, "AF", 1901, A, 0);
        c.packet(3.031 + later, C, "A", A, 1902, 0);
        let v = only_verdict(&c);
        assert_eq!((v.class, v.cause), (Class::Retransmission, cause), "{later}");
    }
}

/// In a recovery, too: what was sent for the first time just now is not sent again yet. No ids tell here.
#[test]
fn the_newest_segment_again_is_a_copy_even_in_a_recovery() {
    let mut c = start();
    for n in 0..4 {
        seg(&mut c, 0.100, n);
    }
    c.sack(0.130, C, A, 901, &[edges(1, 4)]);
    seg(&mut c, 0.141, 0);
    seg(&mut c, 0.142, 4);
    let mut copy = *c.packets.last().unwrap();
    copy.time += 2000;
    c.packets.push(copy);
    ack(&mut c, 0.172, 5);
    c.packets.iter_mut().for_each(|packet| packet.ip_id = 0);
    let d = server(&c);
    assert_eq!((d.retransmitted_packets, d.network_duplicates), (1, 1));
}

/// What brings new bytes behind old ones was cut anew; a copy is the same.
#[test]
fn a_segment_with_new_bytes_is_no_copy() {
    let mut c = start();
    c.packet(0.100, S, "A", 901, A, 6);
    c.packet(0.100_3, S, "AP", 901, A, 500);
    ack(&mut c, 0.131, 0);
    let d = server(&c);
    assert_eq!((d.network_duplicates, d.retransmitted_packets), (0, 1));
    // Why, and whether anything was lost, nobody knows.
    assert_eq!(places(&c)[0], (Class::Retransmission, Place::Unknown));
}

/// ACKs that a device padded into their payload: the same bytes, each made later by its IP id.
#[test]
fn segments_with_other_ip_ids_are_no_copies() {
    let mut c = start();
    for n in 0..5u32 {
        c.packet(0.100 + 0.000_1 * f64::from(n), S, "A", 901, A, 6);
    }
    ack(&mut c, 0.131, 0);
    let d = server(&c);
    assert_eq!((d.network_duplicates, d.retransmitted_packets), (0, 4));
}

/// Of a mirrored retransmission, the second is no other one.
#[test]
fn a_copy_of_a_retransmission_is_a_copy() {
    let mut c = start();
    for n in 0..4 {
        seg(&mut c, 0.100, n);
    }
    c.sack(0.130, C, A, 901, &[edges(1, 4)]);
    seg(&mut c, 0.141, 0);
    seg(&mut c, 0.141_001, 4);
    mirror(&mut c, 0.141_002, 1);
    ack(&mut c, 0.171, 5);
    let d = server(&c);
    assert_eq!((d.retransmitted_packets, d.network_duplicates), (1, 1));
}

/// A full segment of the server, by its number.
fn full(c: &mut Conversation, at: f64, n: u32) {
    c.packet(at, S, "A", 901 + 1460 * n, A, 1460);
}

/// A mirror that copies a burst as a whole: one copy right behind its packet tells how the ids are counted, and the others
/// have ids of the time when their segments were new. What is sent again has a later one.
#[test]
fn copies_have_the_ids_of_when_they_were_new() {
    for (mirrored, counts) in [(true, (5, 1)), (false, (1, 5))] {
        let mut c = start();
        full(&mut c, 0.100, 0);
        mirror(&mut c, 0.100_01, 0);
        for n in 1..6 {
            full(&mut c, 0.140, n);
        }
        // Three duplicate ACKs, so that the sender has a reason.
        for _ in 0..4 {
            c.packet(0.180, C, "A", A, 901 + 1460, 0);
        }
        full(&mut c, 0.190, 1);
        for n in 2..6 {
            if mirrored {
                mirror(&mut c, 0.190_01, 8);
            } else {
                full(&mut c, 0.190_01, n);
            }
        }
        let d = server(&c);
        assert_eq!((d.network_duplicates, d.retransmitted_packets), counts, "{mirrored}");
    }
}

/// Where a mirror writes everything twice, what no SACK asked for is a copy in a recovery, too; what has a new id was sent.
#[test]
fn what_has_a_new_id_is_no_copy_of_a_mirror() {
    for (sent, counts) in [(true, (92, 3)), (false, (93, 2))] {
        let mut c = start();
        let twice = |c: &mut Conversation, at: f64, n: u32| {
            seg(c, at, n);
            mirror(c, at + 0.000_02, 0);
        };
        for n in 0..10 {
            let at = 0.100 + 0.040 * f64::from(n);
            twice(&mut c, at, n);
            ack(&mut c, at + 0.030, n + 1);
        }
        // So many that the first copies are settled.
        for n in 10..90 {
            twice(&mut c, 0.500 + 0.000_03 * f64::from(n), n);
        }
        for n in 14..16 {
            c.sack(0.530, C, A, 901 + 10_000, &[edges(13, n), edges(11, 12)]);
        }
        twice(&mut c, 0.541, 10);
        c.sack(0.571, C, A, 901 + 12_000, &[edges(13, 15)]);
        twice(&mut c, 0.582, 12);
        if sent {
            seg(&mut c, 0.582_03, 16);
        } else {
            mirror(&mut c, 0.582_03, 0);
        }
        ack(&mut c, 0.613, 90);
        let d = server(&c);
        assert_eq!((d.network_duplicates, d.retransmitted_packets), counts, "{sent}");
    }
}

/// A flight is sent again, and a network copy of the tenth repeat comes behind the eightieth: it tells nothing of ids of new segments.
#[test]
fn a_late_copy_of_a_repeat_makes_no_copies_of_others() {
    let mut c = start_without_sack();
    for n in 0..100 {
        full(&mut c, 0.100, n);
    }
    for _ in 0..4 {
        ack(&mut c, 0.130, 0);
    }
    full(&mut c, 0.141, 0);
    c.packet(0.171, C, "A", A, 901 + 1460, 0);
    for n in 1..81 {
        full(&mut c, 0.182, n);
    }
    mirror(&mut c, 0.183, 70);
    for n in 81..100 {
        full(&mut c, 0.184, n);
    }
    let d = server(&c);
    assert_eq!((d.network_duplicates, d.retransmitted_packets), (1, 100));
}

/// What filled a hole in SACK was needed; a D-SACK of it is about the network's copy, where that was seen.
#[test]
fn a_d_sack_of_a_copied_fill_is_about_the_copy() {
    for copied in [false, true] {
        let mut c = start();
        for n in [0, 2, 3, 4] {
            seg(&mut c, 0.100, n);
        }
        c.sack(0.130, C, A, 1901, &[edges(2, 5)]);
        seg(&mut c, 0.145, 1);
        if copied {
            mirror(&mut c, 0.145_05, 0);
        }
        c.sack(0.180, C, A, 5901, &[edges(1, 2)]);
        let place = if copied { Place::BeforeTap } else { Place::Capture };
        assert_eq!(verdicts(&c)[0].place, place, "{copied}");
    }
}

/// The same where the network copies behind the tap: a D-SACK of what was sent once shows that it does. But an ACK that
/// comes sooner than one of the repeat can is of the first copy, which came late.
#[test]
fn a_network_that_copies_makes_d_sacks_of_what_was_needed() {
    for (copies, late, place) in [
        (2, false, Place::Nowhere),
        (3, false, Place::BehindTap),
        (3, true, Place::Nowhere),
    ] {
        let mut c = start();
        four_round_trips(&mut c);
        for n in 0..copies {
            c.sack(0.201 + 0.001 * f64::from(n), C, A, 4901, &[edges(n, n + 1)]);
        }
        for n in 4..8 {
            seg(&mut c, 0.300, n);
        }
        c.sack(0.330, C, A, 4901, &[edges(5, 8)]);
        seg(&mut c, 0.342, 4);
        if late {
            // A SACK block above tells of the ACK at once.
            seg(&mut c, 0.343, 9);
            c.sack(0.350, C, A, 8901, &[edges(9, 10)]);
        }
        c.sack(0.375, C, A, 8901, &[edges(4, 5)]);
        assert_eq!(verdicts(&c)[0].place, place, "{copies} {late}");
    }
}

/// The tap sees segment 5 once, as a repeat, and its receiver gets it twice. An ACK before that hole comes just before the repeat's own, or long
/// before it: then a first copy, which the capture missed, may have come in between.
#[test]
fn a_hole_that_stands_until_its_repeat_comes_was_no_miss_of_the_capture() {
    for (stands, place) in [(0.368, Place::BeforeTap), (0.360, Place::Capture)] {
        let mut c = start();
        four_round_trips(&mut c);
        for n in [4, 6, 7] {
            seg(&mut c, 0.300, n);
        }
        c.sack(0.330, C, A, 5901, &[edges(6, 8)]);
        seg(&mut c, 0.342, 5);
        seg(&mut c, 0.343, 8);
        c.sack(stands, C, A, 5901, &[edges(6, 9)]);
        c.sack(0.373, C, A, 9901, &[edges(5, 6)]);
        assert_eq!(verdicts(&c)[0].place, place, "{stands}");
    }
}

/// The same without an ACK just before. The receiver tells that it has the repeat when that is due, and right after it that it came twice: that was
/// a copy behind the tap. Told sooner, much later, or both in one, a first copy may have come that the capture missed.
#[test]
fn a_repeat_that_comes_twice_right_after_its_ack_was_copied() {
    for (told, twice, place) in [
        (0.372, 0.3735, Place::BeforeTap),
        (0.368, 0.3695, Place::Capture),
        (0.3725, 0.3725, Place::Capture),
        (0.372, 0.376, Place::Capture),
    ] {
        for below in [4, 5] {
            let mut c = start();
            four_round_trips(&mut c);
            for n in (4..below).chain([6, 7, 9]) {
                seg(&mut c, 0.300, n);
            }
            c.sack(0.330, C, A, edges(below, 0).0, &[edges(6, 8)]);
            seg(&mut c, 0.342, 5);
            // With segment 4, an ACK tells of the repeat; without it, a SACK block does.
            let (ack, blocks) = match below {
                5 => (8901, vec![edges(9, 10)]),
                _ => (4901, vec![edges(5, 8), edges(9, 10)]),
            };
            if told < twice {
                c.sack(told, C, A, ack, &blocks);
            }
            c.sack(twice, C, A, ack, &[&[edges(5, 6)], blocks.as_slice()].concat());
            let repeat = verdicts(&c).into_iter().find(|v| v.seq == 5901);
            assert_eq!(repeat.map(|v| v.place), Some(place), "{told} {twice} {below}");
        }
    }
}

/// A queue that stood since the connection began may shrink, and the ACK of the repeat come sooner than any before. A hole in SACK
/// that was filled twice brings a D-SACK, or its ACK comes sooner than half of a round trip.
#[test]
fn an_ack_that_comes_too_soon_for_a_hole_needs_a_d_sack() {
    for (after, twice, place) in [
        (0.020, true, Place::Nowhere),
        (0.020, false, Place::BehindTap),
        (0.014, false, Place::Nowhere),
    ] {
        let mut c = start();
        four_round_trips(&mut c);
        for n in 4..8 {
            seg(&mut c, 0.300, n);
        }
        c.sack(0.330, C, A, 4901, &[edges(5, 8)]);
        seg(&mut c, 0.342, 4);
        // A SACK block above tells of the ACK at once.
        seg(&mut c, 0.343, 9);
        c.sack(0.342 + after, C, A, 8901, &[edges(9, 10)]);
        if twice {
            c.sack(0.372, C, A, 8901, &[edges(4, 5), edges(9, 10)]);
        }
        let v = verdicts(&c)[0];
        assert_eq!(v.place, place, "{after} {twice}");
        let message = v.message();
        assert_eq!(
            message.evidence.contains(&"ACKED_TOO_SOON".to_owned()),
            place == Place::Nowhere,
            "{message:?}"
        );
    }
}

/// Without SACK: a repeat that its sender did not wait with has no place until the ACK of the one before it stops there.
#[test]
fn an_ack_that_stops_at_a_repeat_shows_its_first_copy_lost() {
    for (stops, place) in [(1, Place::BehindTap), (6, Place::Unknown)] {
        let mut c = start_without_sack();
        for n in 0..6 {
            seg(&mut c, 0.100, n);
        }
        seg(&mut c, 0.350, 0);
        seg(&mut c, 0.351, 1);
        ack(&mut c, 0.390, stops);
        // It tells what was acknowledged when it came.
        seg(&mut c, 0.400, 5);
        assert_eq!(verdicts(&c)[1].place, place, "{stops}");
    }
}

/// Copies that come behind others, and behind their ACK, have ids below those that passed; what is sent again has a later one.
/// Where the receiver asks for it, or a timer runs out or recovers, an id that is lower by chance tells nothing.
#[test]
fn what_was_made_before_others_is_a_copy_of_it() {
    // At a time, behind an ACK of all or one that asks, or behind another one that the timer sent.
    let copies = |lower: bool, at: f64, asked: bool, repeated: bool| {
        let mut c = start();
        for n in 0..6 {
            full(&mut c, 0.100, n);
        }
        let of = c.packets[c.packets.len() - 5].ip_id;
        match (asked, repeated) {
            (true, _) => c.sack(0.130, C, A, 901 + 1460, &[(901 + 2 * 1460, 901 + 6 * 1460)]),
            (_, true) => full(&mut c, at - 0.000_1, 0),
            _ => {
                c.packet(0.130, C, "A", A, 901 + 6 * 1460, 0);
            }
        }
        full(&mut c, at, 1);
        if lower {
            c.packets.last_mut().unwrap().ip_id = of;
        }
        server(&c).network_duplicates
    };
    assert_eq!(copies(true, 0.131, false, false), 1);
    assert_eq!(copies(false, 0.131, false, false), 0);
    assert_eq!(copies(true, 0.131, true, false), 0);
    assert_eq!(copies(true, 0.500, false, false), 0);
    assert_eq!(copies(true, 0.500, false, true), 0);
}

/// A repeat that others overtook, and one more: that has a later id than the first, and so is no copy.
#[test]
fn a_second_repeat_that_was_overtaken_is_no_copy() {
    let mut c = start();
    for n in 0..6 {
        full(&mut c, 0.100, n);
    }
    let id = c.packets.last().unwrap().ip_id;
    c.sack(0.130, C, A, 901 + 1460, &[(901 + 2 * 1460, 901 + 6 * 1460)]);
    let sent = |c: &mut Conversation, at: f64, n: u32, made: u16| {
        full(c, at, n);
        c.packets.last_mut().unwrap().ip_id = id + made;
    };
    sent(&mut c, 0.131, 6, 3);
    sent(&mut c, 0.132, 1, 1);
    c.packet(0.160, C, "A", A, 901 + 7 * 1460, 0);
    sent(&mut c, 0.161, 1, 2);
    let classes: Vec<_> = places(&c).iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [Class::Retransmission; 2]);
}

/// A segment comes late, and then its needless repeat, which newer ones overtook: that has a later id than the late one, and so is no copy.
#[test]
fn a_repeat_of_what_came_late_is_no_copy_when_it_was_overtaken() {
    for (made, class) in [(14, Class::Retransmission), (2, Class::Copy)] {
        let mut c = start();
        let id = c.packets[1].ip_id;
        let sent = |c: &mut Conversation, at: f64, n: u32, made: u16| {
            full(c, at, n);
            c.packets.last_mut().unwrap().ip_id = id.wrapping_add(made);
        };
        for n in [0, 2, 3, 4, 5] {
            sent(&mut c, 0.100, n, 1 + n as u16);
        }
        sent(&mut c, 0.102, 1, 2);
        for n in 3..=6 {
            c.sack(0.130, C, A, 901 + 1460, &[(901 + 2 * 1460, 901 + n * 1460)]);
        }
        c.packet(0.132, C, "A", A, 901 + 6 * 1460, 0);
        for n in 6..9 {
            sent(&mut c, 0.140, n, 10 + n as u16);
        }
        sent(&mut c, 0.142, 1, made);
        c.packet(0.170, C, "A", A, 901 + 9 * 1460, 0);
        let classes: Vec<_> = places(&c).iter().map(|(class, _)| *class).collect();
        assert_eq!(classes, [Class::Reordered, class], "{made}");
    }
}

/// The id of a mirrored retransmission is not of the time when its segment was new.
#[test]
fn a_copy_of_a_retransmission_tells_no_ids() {
    let mut c = start();
    for n in 0..6 {
        full(&mut c, 0.100, n);
    }
    full(&mut c, 0.350, 0);
    mirror(&mut c, 0.350_01, 0);
    full(&mut c, 0.350_1, 1);
    let d = server(&c);
    assert_eq!((d.network_duplicates, d.retransmitted_packets), (1, 2));
}

/// Behind a mirror that makes copies, a repeat that nothing asked for is not said to have been needed because no D-SACK came.
#[test]
fn a_mirrors_copies_bring_no_d_sack() {
    for (copies, place) in [(8, Place::Unknown), (0, Place::BehindTap)] {
        let mut c = start();
        for n in 0..8 {
            let at = 0.100 + 0.040 * f64::from(n);
            seg(&mut c, at, n);
            if n < copies {
                mirror(&mut c, at, 0);
            }
            ack(&mut c, at + 0.030, n + 1);
        }
        for n in 8..20 {
            seg(&mut c, 0.500, n);
        }
        c.sack(0.530, C, A, 8901, &[edges(9, 10), edges(11, 12)]);
        seg(&mut c, 0.542, 8);
        seg(&mut c, 0.542, 10);
        seg(&mut c, 0.542_1, 13);
        c.packet(0.580, C, "AP", A, 901 + 20_000, 10);
        assert_eq!(verdicts(&c).last().unwrap().place, place, "{copies}");
    }
}

/// On a short path the ACK of a short segment comes sooner than those of the long ones that the round trip was measured with.
#[test]
fn short_paths_tell_nothing_by_time() {
    let mut c = start();
    for n in 0..6 {
        let at = 0.100 + 0.010 * f64::from(n);
        seg(&mut c, at, n);
        ack(&mut c, at + 0.000_5, n + 1);
    }
    for n in 0..4 {
        c.packet(0.300, S, "AP", 6901 + 20 * n, A, 20);
    }
    c.packet(0.600, S, "AP", 6901, A, 20);
    c.packet(0.600_3, C, "AP", A, 6921, 10);
    assert_eq!(only_verdict(&c).place, Place::BehindTap);
}

/// The handshake alone tells the path: what the client sends a moment after a repeat is no answer to it, but its first copy has
/// come. A little sooner than the handshake it may be one: that had perhaps waited in a queue.
#[test]
fn a_timed_handshake_tells_which_ack_comes_too_soon() {
    for (after, place) in [(0.007, Place::Nowhere), (0.008, Place::BehindTap)] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        seg(&mut c, 0.190, 0);
        c.packet(0.190 + after, C, "AP", A, 1901, 100);
        let verdict = only_verdict(&c);
        assert_eq!(verdict.place, place, "{after}");
        assert_eq!(verdict.evidence.has(sign::ACKED_TOO_SOON), place == Place::Nowhere);
    }
}

/// So do the round trips of others to that server: a repeated request, whose answer comes 7 ms behind it.
#[test]
fn others_tell_which_ack_of_a_request_comes_too_soon() {
    let place = |others: u16| {
        let mut packets = Vec::new();
        for port in 0..=others {
            let mut c = Conversation::new(40_000 + port);
            let begin = 0.001 * f64::from(port);
            c.syn(begin, C, 100, 0, Some(8));
            c.syn(begin + 0.010, S, 900, 101, Some(8));
            c.packet(begin + 0.040, C, "A", 101, 901, 0);
            if port == 0 {
                c.packet(0.100, C, "AP", 101, 901, 100);
                c.packet(0.180, C, "AP", 101, 901, 100);
                c.packet(0.187, S, "AP", 901, 201, 100);
            }
            packets.extend(c.packets);
        }
        packets.sort_by_key(|m| m.time);
        let mut all = Conversation::new(40_000);
        all.packets = packets;
        only_verdict(&all).place
    };
    assert_eq!([2, 4].map(place), [Place::BehindTap, Place::Nowhere]);
}

/// The same hosts in five more connections, each with four packets a side every tenth of a second. Their ids count the packets
/// of each connection, or (`together`) of all.
fn with_others(c: &Conversation, together: bool) -> Conversation {
    with_others_of(|_| c.client.addr, c, together)
}

/// The others are of clients with these addresses.
fn with_others_of(client: impl Fn(u16) -> [u8; 16], c: &Conversation, together: bool) -> Conversation {
    with_others_at((0.0, 0.1, 0.000_1), client, c, together)
}

/// They begin at a time, and send four packets a side in so many seconds, and one after the other.
fn with_others_at(
    (begin, pace, apart): (f64, f64, f64),
    client: impl Fn(u16) -> [u8; 16],
    c: &Conversation,
    together: bool,
) -> Conversation {
    let mut all = Conversation::new(40_000);
    all.packets.clone_from(&c.packets);
    for other in 1..6u16 {
        let mut o = Conversation::new(40_000 + other);
        o.client.addr = client(other);
        o.syn(begin + 0.000_1, C, 100, 0, Some(8));
        o.syn(begin + 0.010_1, S, 900, 101, Some(8));
        // As Linux sends it.
        o.packets[1].ip_id = 0;
        for n in 0..32 {
            let at = begin + 0.050 + pace * f64::from(n / 4) + apart * f64::from(n % 4) + 0.001 * f64::from(other);
            o.packet(at, C, "AP", 101 + 10 * n, 901 + 10 * n, 10);
            o.packet(at + 0.010, S, "AP", 901 + 10 * n, 111 + 10 * n, 10);
        }
        o.packet(begin + 0.300 + 8.0 * pace, S, "AP", 1221, 421, 10);
        for m in o.packets.iter_mut().filter(|m| m.ip_id != 0) {
            m.ip_id += 5000 * other;
        }
        all.packets.extend(o.packets);
    }
    all.packets.sort_by_key(|m| m.time);
    if together {
        let mut ids = [0; 2];
        for m in &mut all.packets {
            let id = &mut ids[usize::from(m.from_low)];
            *id += 1;
            m.ip_id = *id;
        }
    }
    all
}

/// Segments of the server, the last of which comes late: `skipped` ids before it were not seen.
fn late_segment(at: f64, acks: u32, skipped: u16) -> Conversation {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 1);
    ack(&mut c, 0.130, 2);
    c.packet(at, S, "AP", 2901, acks, 1000).ip_id += skipped;
    c
}

/// The last segment was lost before the tap: no gap shows it, only the id of its repeat.
#[test]
fn ids_that_were_skipped_tell_of_a_last_segment_lost_before_the_tap() {
    let c = late_segment(0.450, A, 2);
    let v = only_verdict(&with_others(&c, false));
    assert_eq!(
        (v.class, v.cause, v.place, v.seq),
        (Class::Retransmission, Cause::Timeout, Place::BeforeTap, 2901)
    );
    assert!(v.evidence.has(sign::IDS_SKIPPED), "{v:?}");
    assert_eq!(v.lost_at, v.time - ns(0.350), "the timer ran from the segment before");
    let analysis = analyze(&with_others(&c, false).packets);
    let port = |c: &&v1::Connection| c.client.as_ref().unwrap().port == 40_000;
    let d = analysis.connections.iter().find(port).unwrap();
    let d = d.server_to_client.as_ref().unwrap();
    assert_eq!(
        (d.lost_upstream, d.retransmitted_packets, d.timeout_retransmissions),
        (2, 1, 1)
    );
}

/// Hosts whose connections send a packet now and then show how they count, too.
#[test]
fn a_few_packets_at_a_time_tell_how_ids_count() {
    let c = late_segment(0.450, A, 1);
    let others = |together| with_others_at((0.46, 2.0, 0.5), |_| c.client.addr, &c, together);
    let v = only_verdict(&others(false));
    assert!(v.evidence.has(sign::IDS_SKIPPED), "{v:?}");
    assert_eq!(verdicts(&others(true)), []);
}

fn events(c: &Conversation) -> Vec<Event> {
    let all = records(&c.packets, EngineConfig::file());
    let events = all
        .iter()
        .filter(|r| r.kind() == Some(Kind::Event) && !r.is_continuation());
    events.map(Event::decode).collect()
}

#[test]
fn skipped_ids_tell_nothing() {
    let none = |c: &Conversation, together| {
        let all = verdicts(&with_others(c, together));
        assert!(all.iter().all(|v| !v.evidence.has(sign::IDS_SKIPPED)), "{all:?}");
    };
    // The host counts for all its connections, five of which had a packet meanwhile.
    let mut c = start();
    seg(&mut c, 1.000, 0);
    ack(&mut c, 1.030, 1);
    seg(&mut c, 1.300, 1);
    none(&c, true);
    let told = |m: &&Event| (m.seq, m.id_step) == (1901, 6) && m.what & what::IDS_SKIPPED != 0;
    assert_eq!(events(&with_others(&c, true)).iter().filter(told).count(), 1);
    // It would be too soon for a timer.
    none(&late_segment(0.130, A, 1), false);
    // What was not seen may have been an ACK.
    let mut c = start();
    seg(&mut c, 0.100, 0);
    c.packet(0.130, C, "AP", A, 1901, 50);
    c.packet(0.450, S, "AP", 1901, A + 50, 1000).ip_id += 1;
    none(&c, false);
    // So it may where the other side had sent something twice.
    let mut c = late_segment(0.100, A, 0);
    c.packet(0.200, C, "AP", 101, 901, 100);
    c.packet(0.450, S, "AP", 3901, A, 1000).ip_id += 1;
    none(&c, false);
    // It may count for each address, as Windows does.
    let mut alone = late_segment(0.450, A, 1);
    let before = alone.packets.len() - 3;
    alone.packets[before].flags |= tcp_flag::PSH;
    let others = with_others_of(|other| support::v4(10 + other as u8, 0).addr, &alone, false);
    assert_eq!(verdicts(&others), []);
    // Where the hosts are seen with this connection alone, they may have others elsewhere.
    assert_eq!(verdicts(&alone), []);
}

/// No PSH: it was queued when the segment before it passed. All of that was acknowledged, so nothing kept it back until a timer can have run out:
/// an id that was skipped then is its own, whatever else the ids count, unless they show that they count more.
#[test]
fn what_was_queued_was_lost_before_the_tap_if_an_id_was_skipped() {
    let c = late_segment(0.450, A, 1);
    let v = only_verdict(&c);
    assert_eq!(
        (v.class, v.cause, v.place),
        (Class::Retransmission, Cause::Timeout, Place::BeforeTap)
    );
    assert!(
        v.evidence.has(sign::QUEUED) && v.evidence.has(sign::IDS_SKIPPED),
        "{v:?}"
    );
    // So short a wait may be that of an application (TCP_CORK).
    assert_eq!(verdicts(&late_segment(0.330, A, 1)), []);
    // Later, the ids show that they count others.
    let mut c = c;
    for n in 0..8 {
        let at = 0.5 + 0.2 * f64::from(n);
        for k in 0..4 {
            let seq = 3901 + 400 * n + 100 * k;
            c.packet(at + 0.001 * f64::from(k), S, "AP", seq, A, 100).ip_id += 50 * n as u16;
        }
        c.packet(at + 0.030, C, "A", A, 4301 + 400 * n, 0);
    }
    assert_eq!(verdicts(&c), []);
    let d = server(&c);
    assert_eq!(
        (d.retransmitted_packets, d.retransmission_episodes, d.lost_upstream),
        (0, 0, 0)
    );
}

/// The client is gone: what the server's timer sends again tells of no loss. Where it answers in the end, it does; and of a
/// client that was never seen nothing is said.
#[test]
fn repeats_to_a_receiver_that_is_gone_tell_of_silence() {
    let with_end = |answered: bool| {
        let mut c = start();
        for n in 0..4 {
            seg(&mut c, 0.100, n);
        }
        ack(&mut c, 0.130, 2);
        for at in [0.5, 1.1, 2.3, 4.7] {
            seg(&mut c, at, 2);
        }
        if answered {
            ack(&mut c, 4.73, 4);
        }
        c
    };
    let dead = with_end(false);
    for v in verdicts(&dead) {
        assert_eq!((v.cause, v.place), (Cause::Timeout, Place::Unknown), "{v:?}");
        assert!(v.evidence.has(sign::SILENCE), "{v:?}");
    }
    assert_eq!(verdicts(&dead).len(), 4);
    assert_eq!(losses(&server(&dead)), [0; 4]);
    let alive = with_end(true);
    assert!(verdicts(&alive).iter().all(|v| !v.evidence.has(sign::SILENCE)));
    assert!(server(&alive).lost_downstream > 0);
    let mut half = with_end(false);
    half.packets.retain(|m| m.key.low.port != 40_000 || !m.from_low);
    assert!(verdicts(&half).iter().all(|v| !v.evidence.has(sign::SILENCE)));
}

/// Without SACK, a receiver whose ids are all there had sent no ACK for the first copy; else that ACK was lost.
#[test]
fn ids_tell_a_lost_segment_from_its_lost_ack() {
    for (skipped, place, says) in [
        (0, Place::BehindTap, Some(sign::NO_ID_MISSING)),
        (1, Place::AckBeforeTap, Some(sign::IDS_SKIPPED)),
        (2, Place::Unknown, None),
    ] {
        let mut c = start_without_sack();
        seg(&mut c, 0.100, 0);
        ack(&mut c, 0.130, 1);
        seg(&mut c, 0.250, 1);
        seg(&mut c, 0.650, 1);
        c.packet(0.680, C, "A", A, 2901, 0).ip_id += skipped;
        c.packet(0.900, C, "AP", A, 2901, 10).ip_id += skipped;
        let v = only_verdict(&with_others(&c, false));
        assert_eq!(v.place, place, "{skipped}: {v:?}");
        for sign in [sign::NO_ID_MISSING, sign::IDS_SKIPPED] {
            assert_eq!(v.evidence.has(sign), says == Some(sign), "{skipped}: {v:?}");
        }
    }
}

/// With SACK, no D-SACK tells of a lost segment, unless that was lost as the ACK of the first copy was: then two ids are missing.
#[test]
fn two_missing_ids_tell_of_a_lost_ack_and_a_lost_d_sack() {
    for (skipped, place) in [(0, Place::BehindTap), (1, Place::BehindTap), (2, Place::AckBeforeTap)] {
        let mut c = start();
        seg(&mut c, 0.100, 0);
        ack(&mut c, 0.130, 1);
        seg(&mut c, 0.250, 1);
        seg(&mut c, 0.650, 1);
        for at in [0.690, 0.900] {
            c.packet(at, C, "A", A, 2901, 0).ip_id += skipped;
        }
        let v = only_verdict(&with_others(&c, false));
        assert_eq!(v.place, place, "{skipped}: {v:?}");
        assert_eq!(v.evidence.has(sign::IDS_SKIPPED), skipped == 2, "{v:?}");
    }
}

/// A firewall that has forgotten the connection answers the next request by a RST.
#[test]
fn a_reset_instead_of_an_answer_is_told() {
    let abortive = |by_server: bool, answered: bool, idle: f64| {
        let mut c = start();
        c.packet(0.06, S, "AP", 901, A, 100);
        let at = 0.1 + idle;
        c.packet(at, C, "AP", A, 1001, 100);
        if answered {
            c.packet(at + 0.02, S, "AP", 1001, A + 100, 100);
        }
        let at = at + 0.03;
        if by_server {
            c.packet(at, S, "R", if answered { 1101 } else { 1001 }, 0, 0);
        } else {
            c.packet(at, C, "R", A + 100, 0, 0);
        }
        let mut a = analyze(&c.packets);
        let at = a.findings.iter().position(|f| f.kind == "ABORTIVE_CLOSE").unwrap();
        let f = a.findings.swap_remove(at);
        let value = |name: &str| match f.values[name].value {
            Some(v1::finding_value::Value::Number(n)) => n as u64,
            _ => panic!("{name}"),
        };
        (f.severity.clone(), value("unanswered"), value("unansweredAfterIdle"))
    };
    assert_eq!(abortive(true, false, 900.0), ("WARNING".to_owned(), 1, 1));
    assert_eq!(abortive(true, false, 1.0), ("WARNING".to_owned(), 1, 0));
    assert_eq!(abortive(false, false, 1.0), ("INFO".to_owned(), 1, 0));
    assert_eq!(abortive(true, true, 1.0), ("INFO".to_owned(), 0, 0));
    // Nor is the rest of a request missed that was answered before it had come.
    let mut c = start();
    c.packet(0.06, S, "AP", 901, A, 100);
    c.packet(0.1, C, "A", A, 1001, 1000);
    c.packet(0.111, S, "AP", 1001, A + 1000, 200);
    c.packet(0.112, C, "AP", A + 1000, 1001, 1000);
    c.packet(0.115, S, "R", 1201, 0, 0);
    let early = analyze(&c.packets);
    assert_eq!(
        early
            .findings
            .iter()
            .find(|f| f.kind == "ABORTIVE_CLOSE")
            .unwrap()
            .severity,
        "INFO"
    );
    // A last word behind which the client closes asks for nothing.
    let mut c = start();
    c.packet(0.06, S, "AP", 901, A, 100);
    c.packet(0.1, C, "AP", A, 1001, 31);
    c.packet(0.1, C, "AF", A + 31, 1001, 0);
    c.packet(0.12, S, "R", 1001, 0, 0);
    let a = analyze(&c.packets);
    assert_eq!(
        a.findings.iter().find(|f| f.kind == "ABORTIVE_CLOSE").unwrap().severity,
        "INFO"
    );
}

/// A pool asks on a connection that the server has closed meanwhile; the notice of a client that closes, too, is no request.
#[test]
fn a_request_after_the_servers_fin_is_told() {
    let told = |wait: f64, bytes: u32, closes: bool| {
        let mut c = start();
        c.packet(0.05, C, "AP", A, 901, 100);
        c.packet(0.06, S, "AP", 901, A + 100, 100);
        c.packet(0.07, C, "A", A + 100, 1001, 0);
        c.packet(5.06, S, "AF", 1001, A + 100, 0);
        let at = 5.06 + wait;
        let ack = if wait < 0.01 { 1001 } else { 1002 };
        c.packet(at, C, "AP", A + 100, ack, bytes);
        if closes {
            c.packet(at, C, "AF", A + 100 + bytes, ack, 0);
        }
        c.packet(at + 0.001, S, "R", 1002, 0, 0);
        let found = analyze(&c.packets).findings;
        let of = |kind: &str| found.iter().find(|f| f.kind == kind);
        assert!(of("ABORTIVE_CLOSE").is_none_or(|f| f.severity == "INFO"));
        of("CLOSED_BEFORE_REQUEST").map(|f| {
            let value = |name: &str| match f.values[name].value {
                Some(v1::finding_value::Value::Number(n)) => n,
                _ => panic!("{name}"),
            };
            (value("knew") as u64, (value("idleMostSeconds") * 1e3).round() as u64)
        })
    };
    assert_eq!(told(0.5, 100, false), Some((1, 5_000)));
    assert_eq!(told(0.5, 100, true), Some((1, 5_000)));
    assert_eq!(told(0.001, 100, false), Some((0, 5_000)), "they met on the way");
    assert_eq!(told(0.5, 31, true), None, "a notice");
    assert_eq!(
        told(0.5, 31, false),
        None,
        "a notice, and the RST came before the FIN behind it"
    );
}

fn found<'a>(a: &'a v1::Analysis, kind: &str) -> Option<&'a v1::Finding> {
    a.findings.iter().find(|f| f.kind == kind)
}

fn number(f: &v1::Finding, name: &str) -> f64 {
    match f.values[name].value {
        Some(v1::finding_value::Value::Number(n)) => n,
        _ => panic!("{name}"),
    }
}

/// A server answers an upload before it has all of it, closes, and resets what still comes. The client had not seen the answer, so it asked nothing
/// on a connection that it could know to be closed.
#[test]
fn the_rest_of_an_upload_is_no_request_behind_the_fin() {
    let upload = |acked: u32| {
        let mut c = start();
        c.packet(0.050, S, "A", 901, A, 0);
        c.packet(0.100, C, "A", A, 901, 1000);
        c.packet(0.101, C, "A", A + 1000, 901, 1000);
        c.packet(0.111, S, "AP", 901, A + 2000, 100);
        c.packet(0.1112, S, "AF", 1001, A + 2000, 0);
        c.packet(0.150, C, "AP", A + 2000, acked, 1000);
        c.packet(0.160, S, "R", 1002, 0, 0);
        analyze(&c.packets)
    };
    let amid = upload(901);
    assert!(found(&amid, "CLOSED_BEFORE_REQUEST").is_none());
    assert_eq!(
        number(found(&amid, "CLOSED_DURING_REQUEST").unwrap(), "connections"),
        1.0
    );
    let behind = upload(1002);
    assert!(found(&behind, "CLOSED_DURING_REQUEST").is_none());
    assert_eq!(number(found(&behind, "CLOSED_BEFORE_REQUEST").unwrap(), "knew"), 1.0);
}

/// A request and its answer, a pause, a request; then a RST of the server with this TTL so long after it, and then what the server sends itself.
fn reset_after(pause: f64, wait: f64, ttl: u8, flags: &str, goes_on: bool) -> v1::Analysis {
    let mut c = start();
    for packet in &mut c.packets {
        packet.ttl = if packet.flags & tcp_flag::SYN != 0 && packet.flags & tcp_flag::ACK != 0 {
            49
        } else {
            128
        };
    }
    c.packet(0.051, S, "AP", 901, A, 100).ttl = 49;
    c.packet(0.081, C, "A", A, 1001, 0);
    let asked = 0.081 + pause;
    c.packet(asked, C, "AP", A, 1001, 100);
    let ack = if flags.contains('A') { A + 100 } else { 0 };
    c.packet(asked + wait, S, flags, 1001, ack, 0).ttl = ttl;
    if goes_on {
        c.packet(asked + 0.020, S, "AP", 1001, A + 100, 100).ttl = 49;
    }
    analyze(&c.packets)
}

/// The server is 10 ms and 15 hops away.
#[test]
fn a_rst_that_something_on_the_path_sent_is_told_by_its_signs() {
    let signs = |a: v1::Analysis| {
        let foreign = found(&a, "FOREIGN_RST")?;
        let signs = ["byTtl", "tooSoon", "wentOn"].map(|name| number(foreign, name) as u64);
        let abortive = found(&a, "ABORTIVE_CLOSE").unwrap();
        assert_eq!(abortive.severity, "INFO");
        Some((signs, (foreign.confidence * 100.0).round() as u64))
    };
    assert_eq!(signs(reset_after(1.5, 0.002, 61, "R", true)), Some(([1, 1, 1], 95)));
    assert_eq!(signs(reset_after(1.5, 0.010, 61, "R", false)), Some(([1, 0, 0], 70)));
    assert_eq!(signs(reset_after(1.5, 0.010, 49, "R", true)), Some(([0, 0, 1], 80)));
    // From another initial value, and as far away; or by another path.
    for ttl in [113, 240, 50] {
        assert_eq!(signs(reset_after(1.5, 0.010, ttl, "R", false)), None, "{ttl}");
    }
    assert_eq!(signs(reset_after(1.5, 0.002, 240, "R", false)), Some(([0, 1, 0], 80)));
    // It acknowledges the request.
    assert_eq!(signs(reset_after(1.5, 0.002, 49, "RA", false)), Some(([0, 1, 0], 80)));
    // It may answer the ACK before.
    assert_eq!(signs(reset_after(0.009, 0.002, 49, "R", false)), None);
}

/// Connections that die tell of no loss of single packets.
#[test]
fn repeats_into_silence_are_no_reason_for_a_high_rate() {
    let with_repeats = |repeats: u32, is_heard: bool| {
        let mut c = start();
        c.packet(0.051, S, "AP", 901, A, 100);
        c.packet(0.081, C, "A", A, 1001, 0);
        let mut at = 900.0;
        c.packet(at, C, "AP", A, 1001, 100);
        for n in 0..repeats {
            at += 0.3 * f64::from(1 << n);
            c.packet(at, C, "AP", A, 1001, 100);
        }
        if is_heard {
            c.packet(at + 0.010, S, "AP", 1001, A + 100, 100);
        }
        c.packets
    };
    let dead = with_repeats(5, false);
    let a = analyze(&dead);
    let rate = found(&a, "RETRANSMISSION_RATE").unwrap();
    assert_eq!(rate.severity, "INFO");
    assert!(
        rate.evidence
            .iter()
            .any(|e| e.starts_with("5 of them were sent into silence")),
        "{rate:?}"
    );
    let about = |a: &v1::Analysis| {
        let summary = a.summary.as_ref().unwrap();
        let recovery = summary.bottlenecks.iter().find(|b| b.name == "LOSS_RECOVERY").unwrap();
        let repeats = summary.diagnosis.iter().find(|row| row.category == "RETRANSMISSIONS");
        let is_told = repeats.unwrap().verdict == "BOTTLENECK";
        (recovery.remedy.contains("DEAD_CONNECTIONS"), is_told)
    };
    assert_eq!(about(&a), (true, false));
    let a = analyze(&with_repeats(5, true));
    assert_eq!(found(&a, "RETRANSMISSION_RATE").unwrap().severity, "CRITICAL");
    assert_eq!(about(&a), (false, true));

    #[derive(Default)]
    struct Rested(Vec<[u32; 2]>);
    impl Sink for Rested {
        fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
            self.0.push(connection.ended().rested);
        }
        fn transaction(&mut self, _: &weir_analysis::Transaction<'_>) {}
        fn finding(&mut self, _: v1::Finding) {}
    }
    let rested = |packets: &[weir_engine::Meta]| {
        let mut sink = Rested::default();
        let mut analyzer = Analyzer::new(Config::default());
        analyzer.push(&records(packets, EngineConfig::file()), &mut sink);
        analyzer.finish(&mut sink);
        sink.0
    };
    assert_eq!(rested(&dead), [[899_919, 0]]);
    assert_eq!(rested(&with_repeats(5, true)), [[0, 0]]);
    // A sign of life in between: the connection did not rest so long.
    let mut c = start();
    c.packet(0.051, S, "AP", 901, A, 100);
    c.packet(0.081, C, "A", A, 1001, 0);
    c.packet(890.0, C, "A", A - 1, 1001, 0);
    c.packet(890.01, S, "A", 1001, A, 0);
    c.packets.extend(dead[dead.len() - 6..].iter().copied());
    let alive = rested(&c.packets)[0][0];
    assert!((9_900..=10_000).contains(&alive), "{alive}");
}

/// Errors of this ICMP type and code, about the packets of the client with these sequence numbers.
fn with_errors(c: &mut Conversation, errors: &[(f64, u32)], kind: u32, code: u32) {
    for (at, seq) in errors {
        let error = c.packet(*at, C, "", *seq, 0, kind * 256 + code);
        error.class = weir_engine::Class::IcmpError;
        error.ttl = 250;
    }
}

#[test]
fn an_icmp_error_says_why_a_setup_failed() {
    let mut c = Conversation::new(40_000);
    for at in [0.0, 1.0, 3.0] {
        c.syn(at, C, 100, 0, Some(8));
        with_errors(&mut c, &[(at + 0.004, 100)], 3, 13);
    }
    let a = analyze(&c.packets);
    let told = found(&a, "ICMP_ERRORS").unwrap();
    assert_eq!(told.severity, "CRITICAL");
    assert_eq!(
        ["errors", "failed", "hops"].map(|name| number(told, name)),
        [3.0, 1.0, 5.0]
    );
    let failed = found(&a, "FAILED_CONNECTIONS").unwrap();
    assert!(failed.evidence.last().unwrap().contains("ICMP_ERRORS"), "{failed:?}");
    let explanation = &only(&a).setup.as_ref().unwrap().explanation;
    assert!(
        explanation.contains("communication administratively prohibited"),
        "{explanation}"
    );
}

#[test]
fn a_sender_that_does_not_heed_that_its_packets_are_too_big_is_told() {
    let severity = |errors: &[(f64, u32)]| {
        let mut c = start();
        with_errors(&mut c, errors, 3, 4);
        found(&analyze(&c.packets), "ICMP_ERRORS").unwrap().severity.clone()
    };
    assert_eq!(severity(&[(0.05, 101), (0.3, 101), (0.9, 101)]), "CRITICAL");
    // Each of a flight once.
    assert_eq!(severity(&[(0.05, 101), (0.051, 1561), (0.052, 3021)]), "INFO");
}

/// A router says that full segments are too large for its next link; in smaller ones they come again. That is how a sender finds the MTU.
#[test]
fn what_a_router_refused_as_too_large_was_not_lost_by_chance() {
    let about = |code: u32| {
        let mut c = start();
        for n in 0..3 {
            c.packet(0.05, C, "A", 101 + 1460 * n, 901, 1460);
        }
        with_errors(&mut c, &[(0.051, 101), (0.0511, 1561), (0.0512, 3021)], 3, code);
        for n in 0..3 {
            c.packet(0.052 + 0.011 * f64::from(n), C, "A", 101 + 1452 * n, 901, 1452);
            c.packet(0.062 + 0.011 * f64::from(n), S, "A", 901, 101 + 1452 * (n + 1), 0);
        }
        c.packet(0.090, C, "AP", 4457, 901, 24);
        c.packet(0.101, S, "A", 901, 4481, 0);
        let signs = verdicts(&c).into_iter().filter(|v| v.class == Class::Retransmission);
        signs.map(|v| v.evidence.has(sign::TOO_LARGE)).collect::<Vec<_>>()
    };
    assert_eq!(about(4), [true; 5]);
    assert_eq!(about(1), [false; 5], "another error says nothing of their size");
}

/// A segment that is sent again is no more data of the application.
#[test]
fn application_data_is_counted_once() {
    let mut c = start();
    c.packet(0.300, C, "AP", 101, 901, 100);
    c.packet(0.311, S, "AP", 901, 201, 300);
    c.packet(0.341, C, "A", 201, 1201, 0);
    let summary = analyze(&c.packets).summary.unwrap();
    let row = |name: &str| summary.statistics.iter().find(|s| s.name == name).unwrap();
    let data = row("Application Data");
    assert_eq!([data.total, data.client, data.server], [400.0, 100.0, 300.0].map(Some));
    assert_eq!(row("Average Application Message").total, Some(200.0));
}
