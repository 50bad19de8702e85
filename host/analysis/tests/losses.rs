//! Each class of `docs/src/losses.md`, from packets through the engine.
#![allow(clippy::unwrap_used)]

mod support;

use support::{C, Conversation, S, analyze, only};
use weir_messages::v1;

/// Shaken hands: server 10 ms, client 30 ms away from the tap; then a request.
fn start() -> Conversation {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(0.010, S, 900, 101, Some(8));
    c.packet(0.040, C, "A", 101, 901, 0);
    c.packet(0.041, C, "AP", 101, 901, 100);
    c
}

const A: u32 = 201;

/// Segments of 1000 bytes of the server, by their number.
fn seg(c: &mut Conversation, at: f64, n: u32) {
    c.packet(at, S, "A", 901 + 1000 * n, A, 1000);
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

#[test]
fn a_gap_that_is_filled_within_3_ms_was_reordered() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 2);
    seg(&mut c, 0.101, 1);
    ack(&mut c, 0.131, 3);
    let d = server(&c);
    assert_eq!((d.out_of_order, d.retransmitted_packets), (1, 0));
    assert_eq!(losses(&d), [0; 4]);
}

/// 3 ms at most, however long the path is.
#[test]
fn a_fill_after_3_ms_is_no_reordering() {
    let mut c = start();
    seg(&mut c, 0.100, 0);
    seg(&mut c, 0.100, 2);
    seg(&mut c, 0.110, 1);
    ack(&mut c, 0.131, 3);
    let d = server(&c);
    assert_eq!((d.out_of_order, d.retransmitted_packets, d.lost_upstream), (0, 1, 1));
    assert_eq!(causes(&d), [0, 0, 0, 1], "nothing tells why it was sent again so soon");
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

/// One tail segment after two round trips may be a probe (RFC 8985): nobody knows.
#[test]
fn a_repeat_without_evidence_is_unknown() {
    let mut c = start();
    for n in 0..3 {
        seg(&mut c, 0.100, n);
    }
    ack(&mut c, 0.130, 2);
    seg(&mut c, 0.180, 2);
    let d = server(&c);
    assert_eq!(causes(&d), [0, 0, 0, 1]);
    assert_eq!(losses(&d), [0; 4]);
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
