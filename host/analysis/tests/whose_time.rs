//! Whose time it was where something was lost, and where a capture does not show the path (`docs/src/limits.md`).
#![allow(clippy::unwrap_used)]

mod support;

use support::{C, Conversation, S, analyze, analyze_with, only};
use weir_analysis::Config;
use weir_engine::Config as EngineConfig;
use weir_messages::v1;
use weir_record::{Kind, Record};

/// Round trip from the tap to the server, and to the client, s.
const TRIP: f64 = 0.020;
const NEAR: f64 = 0.001;
/// What the server works on each request.
const WORK: f64 = 0.007;

/// A connection with SACK or without.
fn start(sack: bool) -> Conversation {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8)).options.sack_permitted = sack;
    c.syn(TRIP, S, 900, 101, Some(8)).options.sack_permitted = sack;
    c.packet(TRIP + NEAR, C, "A", 101, 901, 0);
    c
}

/// The data transactions; the parts of each add up.
fn transactions(c: &Conversation) -> Vec<v1::Transaction> {
    transactions_over(c, None)
}

/// The same over a path of that latency.
fn transactions_over(c: &Conversation, latency: Option<f64>) -> Vec<v1::Transaction> {
    let config = Config {
        latency,
        ..Config::default()
    };
    let mut a = analyze_with(&support::records(&c.packets, EngineConfig::file()), config);
    a.transactions.retain(|t| t.kind == "DATA");
    for t in &a.transactions {
        let s = t.shares.unwrap();
        let hosts = s.user_think_seconds + s.client_processing_seconds + s.server_processing_seconds;
        let network =
            s.latency_seconds.unwrap_or(0.0) + s.bandwidth_seconds + s.congestion_seconds + s.protocol_seconds;
        assert!((hosts + network - s.total_seconds).abs() < 1e-9, "{s:?}");
    }
    a.transactions
}

fn shares(t: &v1::Transaction) -> v1::TimeShares {
    t.shares.unwrap()
}

#[track_caller]
fn about(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-6, "{actual} is not {expected}");
}

/// Answers in two writes, the second of which waits with Nagle's algorithm for an ACK that the client delays by so much; in one block, if
/// the first is without PSH and a full segment. So many before them are one write each.
fn answers_in_two_writes(before: u32, delay: f64, one_block: bool) -> Vec<v1::Transaction> {
    let mut c = start(true);
    let (mut asked, mut sent) = (101, 901);
    let (first, flags) = if one_block { (1460, "A") } else { (600, "AP") };
    for n in 0..before + 2 {
        let at = f64::from(n) + 0.1;
        let answer = at + TRIP + WORK;
        c.packet(at, C, "AP", asked, sent, 200);
        asked += 200;
        if n < before {
            c.packet(answer, S, "AP", sent, asked, 600);
            c.packet(answer + NEAR, C, "A", asked, sent + 600, 0);
            sent += 600;
            continue;
        }
        c.packet(answer, S, flags, sent, asked, first);
        let ack = answer + NEAR + delay;
        c.packet(ack, C, "A", asked, sent + first, 0);
        c.packet(ack + TRIP, S, "AP", sent + first, asked, 300);
        sent += first + 300;
        c.packet(ack + TRIP + NEAR, C, "A", asked, sent, 0);
    }
    transactions(&c).split_off(before as usize)
}

/// The first such wait of a connection as each later one: nothing was noted of the connection until then.
#[test]
fn the_first_wait_for_a_delayed_ack_is_nagles_too() {
    for (before, delay, one_block) in [
        (0, 0.040, false),
        (0, 0.200, false),
        (0, 0.040, true),
        (40, 0.040, false),
        (40, 0.040, true),
        // A round trip without a delay.
        (0, 0.0, false),
    ] {
        for t in answers_in_two_writes(before, delay, one_block) {
            about(shares(&t).server_processing_seconds, WORK);
            let waited = shares(&t).protocol_seconds + shares(&t).congestion_seconds;
            about(waited, NEAR + delay + TRIP);
        }
    }
}

/// Two streams that do not wait for each other: no turns, of which a path could take no more.
#[test]
fn who_sends_before_it_has_heard_waits_for_no_round_trip() {
    let mut c = start(true);
    let (mut asked, mut sent) = (101, 901);
    for n in 0..300 {
        let at = 0.1 + 0.010 * f64::from(n);
        c.packet(at, C, "AP", asked, sent - u32::from(n > 0) * 30, 20);
        asked += 20;
        c.packet(at + 0.001, S, "AP", sent, asked - 20, 30);
        sent += 30;
    }
    let a = analyze(&c.packets);
    assert!(a.findings.iter().all(|f| f.kind != "LATENCY_BOUND"), "{:?}", a.findings);
    let crossed: Vec<_> = a.transactions.iter().filter(|t| t.overlapped).collect();
    assert!(crossed.len() > 200);
    for t in crossed {
        about(shares(t).latency_seconds.unwrap_or(0.0), 0.0);
    }
}

/// The engine writes no RTT record 256 times 2^20 ns after the last, within one of these: then nothing tells when the ACK came.
#[test]
fn a_wait_for_an_ack_of_which_no_record_tells_is_uncertain() {
    let mut c = start(true);
    c.packet(0.1, C, "AP", 101, 901, 200);
    let answer = 0.1 + TRIP + WORK;
    c.packet(answer, S, "AP", 901, 301, 600);
    let ack = answer + NEAR + 0.040;
    c.packet(ack, C, "A", 301, 1501, 0);
    c.packet(ack + TRIP, S, "AP", 1501, 301, 300);
    c.packet(ack + TRIP + NEAR, C, "A", 301, 1801, 0);
    let mut records = support::records(&c.packets, EngineConfig::file());
    let is_ack = |r: &Record| r.kind() == Some(Kind::Rtt) && r.time() == support::T0 + support::ns(ack);
    assert_eq!(records.iter().filter(|r| is_ack(r)).count(), 1);
    records.retain(|r| !is_ack(r));
    let a = analyze_with(&records, Config::default());
    let t = a.transactions.iter().find(|t| t.kind == "DATA").unwrap();
    let wait = NEAR + 0.040 + TRIP;
    about(shares(t).server_processing_seconds, WORK + wait);
    about(t.server_uncertain_seconds.unwrap(), wait);
    let bottlenecks = a.summary.unwrap().bottlenecks;
    let server = bottlenecks.iter().find(|b| b.name == "SERVER_PROCESSING").unwrap();
    about(server.uncertain_seconds.unwrap(), wait);
}

/// The server's time of a response in segments of these sizes, of which the client acknowledges all but the last at once and that one after
/// `ack`, if ever, and 300 bytes more `after` them, beyond what it works; and how much of it is uncertain. (Before it a response in two pieces.)
fn goes_on(segments: &[u32], ack: Option<f64>, after: f64) -> (f64, f64) {
    let mut c = start(true);
    let (mut asked, mut sent) = (101, 901);
    for (at, segments, ack, after) in [(0.1, &[600][..], Some(NEAR), NEAR + TRIP), (0.5, segments, ack, after)] {
        c.packet(at, C, "AP", asked, sent, 200);
        asked += 200;
        let answer = at + TRIP + WORK;
        let (last, first) = segments.split_last().unwrap();
        for bytes in first {
            c.packet(answer, S, "A", sent, asked, *bytes);
            sent += bytes;
        }
        c.packet(answer, S, "AP", sent, asked, *last);
        if !first.is_empty() {
            c.packet(answer + NEAR, C, "A", asked, sent, 0);
        }
        sent += last;
        if let Some(ack) = ack {
            c.packet(answer + ack, C, "A", asked, sent, 0);
        }
        c.packet(answer + after, S, "AP", sent, asked, 300);
        sent += 300;
        c.packet(answer + after + NEAR, C, "A", asked, sent, 0);
    }
    let t = transactions(&c).remove(1);
    let server = shares(&t).server_processing_seconds - WORK;
    (server, t.server_uncertain_seconds.unwrap_or(0.0))
}

/// An ACK of what came before the last segment tells nothing of that one's.
#[test]
fn the_ack_of_another_segment_is_not_the_one_that_was_waited_for() {
    let wait = NEAR + 0.040 + TRIP;
    let (server, uncertain) = goes_on(&[1460, 1460, 1240], Some(NEAR + 0.040), wait);
    about(server, wait);
    about(uncertain, wait);
}

/// A delayed ACK may come late to its sender, by 50 ms here.
#[test]
fn what_comes_behind_a_delayed_ack_may_have_waited_for_it() {
    let ack = NEAR + 0.040;
    for (late, is_uncertain) in [(0.030, true), (0.060, false)] {
        let wait = ack + TRIP + late;
        let (server, uncertain) = goes_on(&[600], Some(ack), wait);
        about(server, wait);
        about(uncertain, if is_uncertain { wait } else { 0.0 });
    }
    // No timer kept this one back.
    about(goes_on(&[600], Some(NEAR), NEAR + TRIP + 0.030).1, 0.0);
}

/// Where the ACK of a small segment is lost, what was kept back goes when a timer runs out (RFC 8985 7.2): the probe's, or that of a retransmission
/// where it is sooner.
#[test]
fn what_goes_when_a_timer_runs_out_may_have_waited_for_an_ack() {
    let trip = TRIP + NEAR;
    let timer = 0.200 + 2.0 * trip;
    for (wait, is_uncertain) in [
        (timer, true),
        (timer - trip, true),
        (timer - trip - 0.010, false),
        (timer + 0.060, false),
    ] {
        let (_, uncertain) = goes_on(&[600], None, wait);
        about(uncertain, if is_uncertain { wait } else { 0.0 });
    }
    // The ACK passed the tap, and was lost behind it.
    about(goes_on(&[600], Some(NEAR + 0.040), timer).1, timer);
}

/// Nor does an application wait for ACKs: what is written later than the ACK came is its time.
#[test]
fn the_first_pause_of_an_application_is_its_own() {
    let mut c = start(true);
    c.packet(0.1, C, "AP", 101, 901, 200);
    let answer = 0.1 + TRIP + WORK;
    c.packet(answer, S, "AP", 901, 301, 600);
    c.packet(answer + NEAR + 0.040, C, "A", 301, 1501, 0);
    c.packet(answer + 0.150, S, "AP", 1501, 301, 300);
    c.packet(answer + 0.150 + NEAR, C, "A", 301, 1801, 0);
    about(shares(&transactions(&c)[0]).server_processing_seconds, WORK + 0.150);
}

/// A request that was lost behind the tap, and sent again by a timer of 250 ms.
fn request_again(sack: bool) -> Conversation {
    let mut c = start(sack);
    c.packet(0.100, C, "AP", 101, 901, 200);
    c.packet(0.350, C, "AP", 101, 901, 200);
    let answer = 0.350 + TRIP + WORK;
    c.packet(answer, S, "AP", 901, 301, 300);
    c.packet(answer + NEAR, C, "A", 301, 1201, 0);
    c.packet(answer + 0.005, C, "AP", 301, 1201, 200);
    c.packet(answer + 0.005 + TRIP + WORK, S, "AP", 1201, 501, 300);
    c.packet(answer + 0.006 + TRIP + WORK, C, "A", 501, 1501, 0);
    c
}

#[test]
fn the_wait_for_a_lost_request_is_recovery() {
    let all = transactions(&request_again(true));
    let [lost, next] = &all[..] else { panic!("{all:?}") };
    about(shares(lost).server_processing_seconds, WORK);
    about(shares(lost).protocol_seconds, 0.250);
    assert_eq!(lost.server_uncertain_seconds, None);
    about(shares(next).server_processing_seconds, WORK);
    about(shares(next).protocol_seconds, 0.0);
    let a = analyze(&request_again(true).packets);
    let bottlenecks = a.summary.unwrap().bottlenecks;
    assert_eq!(bottlenecks[0].name, "LOSS_RECOVERY", "{bottlenecks:?}");
}

/// Without SACK, nothing tells whether the request or its ACK was lost: the time stays the server's, and is uncertain.
#[test]
fn what_may_be_a_lost_request_makes_the_servers_time_uncertain() {
    let all = transactions(&request_again(false));
    about(shares(&all[0]).server_processing_seconds, 0.250 + WORK);
    about(all[0].server_uncertain_seconds.unwrap(), 0.250);
    assert_eq!(all[1].server_uncertain_seconds, None);
}

/// The server had the request, as its D-SACK tells, and worked on it for long.
#[test]
fn a_repeat_that_was_not_needed_is_no_recovery() {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 101, 901, 200);
    c.packet(0.350, C, "AP", 101, 901, 200);
    c.sack(0.350 + TRIP, S, 901, 301, &[(101, 301)]);
    c.packet(0.500, S, "AP", 901, 301, 300);
    c.packet(0.501, C, "A", 301, 1201, 0);
    let all = transactions(&c);
    about(shares(&all[0]).server_processing_seconds, 0.400 - TRIP);
    about(shares(&all[0]).protocol_seconds, 0.0);
}

/// The ACK of a first copy passes `early` before an answer to its repeat, the timer's, can come: the first copy was late, or its ACK, and whoever goes
/// on waited for that, or had it. Returns the transactions, the request of the first and the response of the second of which were so.
fn first_copies_late(early: f64) -> Vec<v1::Transaction> {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 101, 901, 200);
    c.packet(0.350, C, "AP", 101, 901, 200);
    let acked = 0.350 + TRIP - early * TRIP;
    c.packet(acked, S, "A", 901, 301, 0);
    c.sack(0.350 + TRIP, S, 901, 301, &[(101, 301)]);
    let answer = acked + 0.050;
    c.packet(answer, S, "AP", 901, 301, 300);
    c.packet(answer + NEAR, C, "A", 301, 1201, 0);
    c.packet(1.0, C, "AP", 301, 1201, 200);
    let answer = 1.0 + TRIP + WORK;
    c.packet(answer, S, "AP", 1201, 501, 300);
    c.packet(answer + 0.250, S, "AP", 1201, 501, 300);
    let acked = answer + 0.250 + NEAR - early * NEAR;
    c.packet(acked, C, "A", 501, 1501, 0);
    c.sack(answer + 0.250 + NEAR, C, 501, 1501, &[(1201, 1501)]);
    c.packet(acked + 0.050, C, "AP", 501, 1501, 200);
    transactions(&c)
}

#[test]
fn nobody_answers_what_is_late_on_its_way() {
    let all = first_copies_late(0.9);
    let late = 0.250 - 0.9 * TRIP;
    about(shares(&all[0]).server_processing_seconds, 0.050);
    about(shares(&all[0]).protocol_seconds, late);
    about(all[0].server_uncertain_seconds.unwrap(), late);
    let late = 0.250 - 0.9 * NEAR;
    about(shares(&all[2]).client_processing_seconds, 0.050);
    about(shares(&all[1]).protocol_seconds, late);
    about(all[2].client_uncertain_seconds.unwrap(), late);
}

/// A request and a response, each of which comes three times within `spread` s: no timer is as short, so that the first copies were late.
fn bunched(spread: f64) -> Vec<v1::Transaction> {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 101, 901, 200);
    let answer = 0.100 + TRIP + WORK;
    c.packet(answer, S, "AP", 901, 301, 300);
    c.packet(answer + NEAR, C, "A", 301, 1201, 0);
    for n in 0..3 {
        c.packet(1.0 + spread * f64::from(n), C, "AP", 301, 1201, 200).ip_id += 1;
        c.sack(
            1.0 + spread * f64::from(n) + TRIP,
            S,
            1201,
            501,
            &[(301, 501)][..usize::from(n > 0)],
        );
    }
    let answer = 1.0 + 2.0 * spread + TRIP + WORK;
    for n in 0..3 {
        c.packet(answer + spread * f64::from(n), S, "AP", 1201, 501, 300).ip_id += 1;
        c.sack(
            answer + spread * f64::from(n) + NEAR,
            C,
            501,
            1501,
            &[(1201, 1501)][..usize::from(n > 0)],
        );
    }
    c.packet(2.0, C, "AP", 501, 1501, 200);
    transactions(&c)
}

#[test]
fn when_the_first_of_a_bunch_was_sent_is_not_known() {
    let all = bunched(0.004);
    let gap = 1.0 - 0.100 - TRIP - WORK;
    about(all[1].client_uncertain_seconds.unwrap(), gap);
    about(all[1].server_uncertain_seconds.unwrap(), 2.0 * 0.004 + TRIP + WORK);
}

/// One segment of the request, or of the response, was overtaken behind the tap, by 10 ms, and came again for nothing. With the ACK of all
/// of it, which no timer holds back then (RFC 5681 4.2), who goes on had what it waited for.
#[test]
fn nobody_goes_on_before_a_late_segment_has_come() {
    let mut c = start(false);
    let whole = 10 * 1460;
    let mut send = |from: f64, client: bool, (seq, ack): (u32, u32), trip: f64| {
        for n in 0..10 {
            let flags = if n == 9 { "AP" } else { "A" };
            c.packet(from + f64::from(n) * 1e-6, client, flags, seq + n * 1460, ack, 1460);
        }
        let hole = seq + 2 * 1460;
        for n in 0..8 {
            c.packet(from + trip + f64::from(n) * 1e-6, !client, "A", ack, hole, 0);
        }
        let all = from + trip + 0.010;
        c.packet(all - trip / 5.0, client, "A", hole, ack, 1460);
        c.packet(all, !client, "A", ack, seq + whole, 0);
        all
    };
    let asked = send(0.100, C, (101, 901), TRIP);
    let answered = send(asked + WORK, S, (901, 101 + whole), NEAR);
    c.packet(answered + WORK, C, "AP", 101 + whole, 901 + whole, 200);
    let all = transactions(&c);
    let ms = |seconds: f64| (seconds * 1e3).round();
    assert_eq!(ms(shares(&all[0]).server_processing_seconds), 7.0);
    assert_eq!(ms(shares(&all[1]).client_processing_seconds), 7.0);
    assert_eq!(ms(shares(&all[0]).protocol_seconds), 20.0);
}

/// The last 300 bytes of a response come `wait` s after the ACK of what came before them, so many IP ids later. `queued`: no PSH was on that.
fn late_end(wait: f64, skipped: u16, queued: bool) -> (v1::Analysis, v1::Transaction) {
    let mut c = start(true);
    let (mut asked, mut sent) = (101, 901);
    for n in 0..2 {
        let answer = 0.1 + f64::from(n) + TRIP + WORK;
        c.packet(0.1 + f64::from(n), C, "AP", asked, sent, 200);
        asked += 200;
        c.packet(answer, S, "A", sent, asked, 1460);
        c.packet(
            answer + 0.000_02,
            S,
            if queued { "A" } else { "AP" },
            sent + 1460,
            asked,
            1460,
        );
        sent += 2920;
        c.packet(answer + NEAR, C, "A", asked, sent, 0);
        c.packet(answer + NEAR + wait, S, "AP", sent, asked, 300).ip_id += skipped;
        sent += 300;
        c.packet(answer + NEAR + wait + NEAR, C, "A", asked, sent, 0);
    }
    let t = transactions(&c).pop().unwrap();
    (analyze(&c.packets), t)
}

/// The sender had more queued (no PSH), all was acknowledged, and yet nothing came until a timer can have run out: what ids were skipped for was
/// that. Where none were, it may be as well that the server's application wrote no more.
#[test]
fn what_was_queued_and_comes_late_had_been_lost_before_the_tap() {
    let lost = |a: &v1::Analysis| only(a).server_to_client.as_ref().unwrap().lost_upstream;
    let (a, t) = late_end(0.4, 1, true);
    assert_eq!(lost(&a), 2);
    about(shares(&t).server_processing_seconds, WORK);
    about(shares(&t).bandwidth_seconds, 0.0);
    assert_eq!(t.server_uncertain_seconds, None);
    let recovery = a
        .summary
        .unwrap()
        .bottlenecks
        .into_iter()
        .find(|b| b.name == "LOSS_RECOVERY");
    assert!(recovery.is_some_and(|b| (b.seconds - 0.8).abs() < 0.01));
    // It need not have been lost; an application may keep it back for 200 ms (TCP_CORK), or have written no more.
    for (wait, skipped, queued) in [(0.4, 0, true), (0.2, 1, true), (0.4, 1, false)] {
        let (a, t) = late_end(wait, skipped, queued);
        assert_eq!(lost(&a), 0, "{wait} {skipped} {queued}");
        about(shares(&t).bandwidth_seconds, 0.0);
        assert!(shares(&t).congestion_seconds < 0.01, "{t:?}");
        let server = shares(&t).server_processing_seconds + t.server_uncertain_seconds.unwrap_or(0.0);
        assert!(server > wait * 0.9, "{wait} {skipped} {queued}: {t:?}");
    }
}

/// A response of which the first 2,920 bytes never come, and the end does, until the client gives up 12 s later.
#[test]
fn what_never_came_was_waited_for_until_the_client_gave_up() {
    let waited = |told: bool| {
        let mut c = start(true);
        c.packet(0.1, C, "AP", 101, 901, 200);
        let answer = 0.1 + TRIP + WORK;
        c.packet(0.1 + TRIP, S, "A", 901, 301, 0);
        c.packet(answer, S, "AP", 3821, 301, 700);
        if told {
            c.sack(answer + NEAR, C, 301, 901, &[(3821, 4521)]);
        }
        c.packet(12.1, C, "FA", 301, 901, 0);
        c.packet(12.1 + TRIP, S, "A", 4521, 302, 0);
        let t = transactions(&c).pop().unwrap();
        about(shares(&t).server_processing_seconds, WORK);
        shares(&t).protocol_seconds
    };
    about(waited(true), 12.0 - TRIP - WORK);
    // Whether the client lacks it nothing tells.
    about(waited(false), 0.0);
}

/// The first flight is one segment, whose ACK the client delays; two full ones and the rest go with that. Nagle's algorithm holds no full segment
/// back: the congestion window had no room.
#[test]
fn what_goes_with_full_segments_did_not_wait_for_nagles_algorithm() {
    let nagle = |more: u32| {
        let mut c = start(true);
        let (mut asked, mut sent) = (101, 901);
        for n in 0..3 {
            let answer = 0.1 + f64::from(n) + TRIP + WORK;
            c.packet(0.1 + f64::from(n), C, "AP", asked, sent, 200);
            asked += 200;
            c.packet(answer, S, "A", sent, asked, 1460);
            sent += 1460;
            let ack = answer + NEAR + 0.040;
            c.packet(ack, C, "A", asked, sent, 0);
            for _ in 0..more {
                c.packet(ack + TRIP, S, "A", sent, asked, 1460);
                sent += 1460;
            }
            c.packet(ack + TRIP, S, "AP", sent, asked, 300);
            sent += 300;
            c.packet(ack + TRIP + NEAR, C, "A", asked, sent, 0);
        }
        let bottlenecks = analyze(&c.packets).summary.unwrap().bottlenecks;
        bottlenecks
            .iter()
            .find(|b| b.name == "NAGLE")
            .map_or(0.0, |b| b.seconds)
    };
    assert!(nagle(0) > 3.0 * (0.040 + TRIP));
    // Of the first nothing was noted.
    let wait = NEAR + 0.040 + TRIP;
    assert!(nagle(2) < wait + 1e-6, "{}", nagle(2));
}

/// Before a response an IP id was skipped: whether the server counts the packets of each connection is not known of so few. If it does, the
/// response had been sent before, and waited for a timer.
#[test]
fn a_late_response_behind_a_skipped_id_may_have_been_sent_before() {
    let uncertain = |skipped: bool, wait: f64| {
        let mut c = start(true);
        c.packet(0.100, C, "AP", 101, 901, 200);
        c.packet(0.100 + TRIP + WORK, S, "AP", 901, 301, 300);
        c.packet(0.100 + TRIP + WORK + NEAR, C, "A", 301, 1201, 0);
        c.packet(0.500, C, "AP", 301, 1201, 200);
        c.packet(0.500 + TRIP, S, "A", 1201, 501, 0);
        if skipped {
            c.packet(0.500 + TRIP + WORK, S, "AP", 1201, 501, 300);
            c.packets.pop();
        }
        c.packet(0.500 + wait, S, "AP", 1201, 501, 300);
        c.packet(0.500 + wait + NEAR, C, "A", 501, 1501, 0);
        transactions(&c)[1].server_uncertain_seconds
    };
    about(uncertain(true, 0.230).unwrap(), 0.230);
    assert_eq!(uncertain(true, 0.210), None, "no timer is as short");
    assert_eq!(uncertain(false, 0.230), None);
}

/// The same of the first response: nothing was heard of the server before.
#[test]
fn a_first_response_behind_a_skipped_id_may_have_been_sent_before() {
    let uncertain = |skipped: bool| {
        let mut c = start(true);
        c.packet(0.100, C, "AP", 101, 901, 200);
        c.packet(0.100 + TRIP, S, "A", 901, 301, 0);
        if skipped {
            c.packet(0.100 + TRIP + WORK, S, "AP", 901, 301, 300);
            c.packets.pop();
        }
        c.packet(0.330, S, "AP", 901, 301, 300);
        c.packet(0.330 + NEAR, C, "A", 301, 1201, 0);
        transactions(&c)[0].server_uncertain_seconds
    };
    about(uncertain(true).unwrap(), 0.230);
    assert_eq!(uncertain(false), None);
}

/// A response that was lost before the tap, and the server's FIN behind it was not: it had answered by then.
#[test]
fn a_server_that_closes_has_answered() {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 101, 901, 200);
    c.packet(0.100 + TRIP, S, "A", 901, 301, 0);
    let fin = 0.100 + TRIP + WORK;
    c.packet(fin, S, "AF", 1201, 301, 0);
    c.sack(fin + NEAR, C, 301, 901, &[(1201, 1202)]);
    c.packet(fin + 0.040, S, "AP", 901, 301, 300);
    c.packet(fin + 0.040 + NEAR, C, "A", 301, 1202, 0);
    let s = shares(&transactions(&c)[0]);
    about(s.server_processing_seconds, WORK);
    about(s.protocol_seconds, 0.040);
}

/// The server holds back its ACK of a request that the client's FIN came right behind, until that comes again: its answer to the repeat is no
/// round trip of the request, in which a queue would show.
#[test]
fn the_answer_to_a_fin_that_came_again_times_no_request() {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 101, 901, 200);
    c.packet(0.100 + TRIP, S, "A", 901, 301, 0);
    c.packet(0.150, S, "AP", 901, 301, 300);
    c.packet(0.200, C, "AP", 301, 1201, 200);
    c.packet(0.200, C, "AF", 501, 1201, 0);
    c.packet(0.215, C, "AF", 501, 1201, 0);
    c.sack(0.215 + TRIP, S, 1201, 502, &[(501, 502)]);
    c.packet(0.240, S, "AP", 1201, 502, 300);
    c.packet(0.240 + NEAR, C, "A", 502, 1501, 0);
    let a = analyze(&c.packets);
    let last = a.transactions.last().unwrap();
    about(shares(last).server_processing_seconds, 0.040 - TRIP);
    about(shares(last).congestion_seconds, 0.0);
    assert_eq!(last.server_uncertain_seconds, None);
}

/// The end of a response was lost between the tap and the client: the client could ask no more before it had come.
/// The response was lost before the tap; the client asks again after `timer`, and the server's D-SACK comes `ahead` of the response's repeat.
fn response_again(timer: f64, ahead: f64) -> v1::Transaction {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 101, 901, 200);
    c.packet(0.100 + timer, C, "AP", 101, 901, 200);
    c.sack(0.100 + timer + TRIP, S, 1201, 301, &[(101, 301)]);
    let answer = 0.100 + timer + TRIP + ahead;
    c.packet(answer, S, "AP", 901, 301, 300);
    c.packet(answer + NEAR, C, "A", 301, 1201, 0);
    transactions(&c).remove(0)
}

#[test]
fn a_response_that_was_lost_before_the_tap_waited_for_a_timer() {
    let t = response_again(0.250, WORK);
    let gap = 0.250 + TRIP + WORK;
    about(t.server_seconds.unwrap(), gap);
    about(t.server_uncertain_seconds.unwrap(), gap);
    let timer = 0.200 + TRIP + NEAR;
    about(shares(&t).protocol_seconds, timer);
    about(shares(&t).server_processing_seconds, gap - TRIP - timer);
    // A wait that is shorter than a timer was all the timer's.
    let t = response_again(0.150, WORK);
    about(shares(&t).protocol_seconds, 0.150 + WORK);
    about(shares(&t).server_processing_seconds, 0.0);
    // Packets that overtake each other tell nothing.
    assert_eq!(response_again(0.250, 0.002).server_uncertain_seconds, None);
}

/// The second request, which acknowledges the first response, was lost before the tap: the server sends its response again.
#[test]
fn a_request_that_was_lost_before_the_tap_waited_for_a_timer() {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 101, 901, 200);
    let answer = 0.100 + TRIP + WORK;
    c.packet(answer, S, "AP", 901, 301, 300);
    c.packet(answer + 0.250, S, "AP", 901, 301, 300);
    c.sack(answer + 0.250 + NEAR, C, 501, 1201, &[(901, 1201)]);
    let gap = 0.250 + NEAR + 0.009;
    c.packet(answer + gap, C, "AP", 301, 1201, 200);
    c.packet(answer + gap + TRIP + WORK, S, "AP", 1201, 501, 300);
    let all = transactions(&c);
    let (before, t) = (shares(&all[0]), &all[1]);
    about(t.client_uncertain_seconds.unwrap(), gap);
    let timer = 0.200 + TRIP + NEAR;
    about(shares(t).client_processing_seconds, gap - NEAR - timer);
    about(before.protocol_seconds + shares(t).protocol_seconds, timer);
    about(t.server_uncertain_seconds.unwrap_or(0.0), 0.0);
}

#[test]
fn the_wait_for_the_end_of_a_response_is_recovery() {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 101, 901, 200);
    let answer = 0.100 + TRIP + WORK;
    c.packet(answer, S, "AP", 901, 301, 300);
    c.packet(answer + 0.300, S, "AP", 901, 301, 300);
    c.packet(answer + 0.301, C, "A", 301, 1201, 0);
    c.packet(answer + 0.306, C, "AP", 301, 1201, 200);
    c.packet(answer + 0.306 + TRIP + WORK, S, "AP", 1201, 501, 300);
    c.packet(answer + 0.307 + TRIP + WORK, C, "A", 501, 1501, 0);
    let all = transactions(&c);
    let [lost, next] = &all[..] else { panic!("{all:?}") };
    about(shares(lost).server_processing_seconds, WORK);
    about(shares(lost).protocol_seconds, 0.300);
    // 6 ms from the repeat to the next request, 1 ms of them on the way.
    about(shares(next).client_processing_seconds, 0.005);
    about(next.shares.unwrap().total_seconds, 0.006 + TRIP + WORK);
}

/// Two segments of a request, and of its response, the first of which was lost before the tap: with what fills the gap each is complete.
#[test]
fn a_request_and_a_response_end_with_what_filled_their_gaps() {
    let mut c = start(true);
    c.packet(0.100, C, "AP", 1101, 901, 200);
    c.sack(0.100 + TRIP, S, 901, 101, &[(1101, 1301)]);
    c.packet(0.350, C, "A", 101, 901, 1000);
    let answer = 0.350 + TRIP + WORK;
    c.packet(answer, S, "AP", 1901, 1301, 300);
    c.sack(answer + NEAR, C, 1301, 901, &[(1901, 2201)]);
    c.packet(answer + 0.300, S, "A", 901, 1301, 1000);
    c.packet(answer + 0.300 + NEAR, C, "A", 1301, 2201, 0);
    let next = answer + 0.310;
    c.packet(next, C, "AP", 1301, 2201, 200);
    c.packet(next + TRIP + WORK, S, "AP", 2201, 1501, 300);
    c.packet(next + TRIP + WORK + NEAR, C, "A", 1501, 2501, 0);
    let all = transactions(&c);
    let [first, second] = &all[..] else { panic!("{all:?}") };
    assert_eq!((first.request_bytes, first.response_bytes), (1200, 1300));
    about(first.request_seconds, 0.250);
    about(first.server_seconds.unwrap(), TRIP + WORK);
    about(first.response_seconds.unwrap(), 0.300);
    about(first.end_seconds.unwrap(), TRIP + WORK + 0.300);
    about(shares(first).server_processing_seconds, WORK);
    about(second.server_seconds.unwrap(), TRIP + WORK);
    let signatures = analyze(&c.packets).summary.unwrap().signatures;
    let asked = signatures.iter().find(|row| row.signature == second.signature).unwrap();
    about(asked.client_average_seconds.unwrap(), 0.010);
}

/// A request that nobody answers is waited for as long as it is sent again.
#[test]
fn what_was_never_answered_is_recovery_up_to_its_last_repeat() {
    let mut c = start(true);
    for at in [0.1, 0.4, 1.0, 2.2] {
        c.packet(at, C, "AP", 101, 901, 200);
    }
    let all = transactions(&c);
    about(shares(&all[0]).protocol_seconds, 2.1);
    about(shares(&all[0]).server_processing_seconds, 0.0);
}

/// Gaps between packets of one side are nobody's, if the other was not captured.
#[test]
fn one_side_alone_tells_of_nobodys_time() {
    for seen in [C, S] {
        let mut c = start(true);
        for turn in 0..3u32 {
            let at = 0.1 + f64::from(turn);
            c.packet(at, C, "AP", 101 + 200 * turn, 901 + 300 * turn, 200);
            c.packet(at + 0.4, S, "AP", 901 + 300 * turn, 301 + 200 * turn, 300);
        }
        let low = c.packets[0].from_low;
        c.packets.retain(|packet| (packet.from_low == low) == seen);
        let all = transactions(&c);
        assert!(!all.is_empty());
        for t in &all {
            about(shares(t).total_seconds, 0.0);
        }
    }
}

/// Three requests of a connection whose handshake was not captured. `ack`: how soon the server's ACK comes, if not with its response.
fn midstream(ack: Option<f64>) -> v1::Analysis {
    analyze(&turns_midstream(ack).packets)
}

fn turns_midstream(ack: Option<f64>) -> Conversation {
    let mut c = Conversation::new(40_000);
    for turn in 0..3u32 {
        let (at, seq, ack_seq) = (f64::from(turn) * 0.1, 101 + 200 * turn, 901 + 300 * turn);
        c.packet(at, C, "AP", seq, ack_seq, 200);
        if let Some(soon) = ack {
            c.packet(at + soon, S, "A", ack_seq, seq + 200, 0);
        }
        c.packet(at + 0.060, S, "AP", ack_seq, seq + 200, 300);
        c.packet(at + 0.061, C, "A", seq + 200, ack_seq + 300, 0);
    }
    c
}

/// Where the way to the client was seen, the rest of what was given is the way to the server, if a response does not show that it is shorter.
#[test]
fn a_given_latency_tells_the_way_that_was_not_seen() {
    let c = turns_midstream(None);
    for (latency, server, uncertain) in [
        (0.0105, 0.040, 0.0),
        (0.0300, 0.001, 0.0),
        (0.0310, 0.0, 0.060),
        (10.0, 0.0, 0.060),
    ] {
        for t in transactions_over(&c, Some(latency)) {
            about(shares(&t).server_processing_seconds, server);
            about(t.server_uncertain_seconds.unwrap_or(0.0), uncertain);
            let turn = if t.index == 1 { 0.060 } else { 0.061 };
            about(shares(&t).latency_seconds.unwrap(), turn - server);
        }
    }
    // Less than the way to the client alone cannot be.
    for t in transactions_over(&c, Some(0.000_4)) {
        about(t.server_uncertain_seconds.unwrap(), 0.060);
    }
    // What was seen stays.
    assert_eq!(
        transactions_over(&turns_midstream(Some(0.004)), Some(0.02)),
        transactions(&turns_midstream(Some(0.004)))
    );
}

/// Whatever is given, each instant is charged once.
#[test]
fn a_given_latency_moves_time_and_makes_none() {
    let all = [
        request_again(true),
        request_again(false),
        turns_midstream(None),
        turns_midstream(Some(0.045)),
        flights(SLOW, true),
        flights(SLOW, false),
    ];
    for whole in &all {
        for first in [0, 3] {
            let mut c = whole.clone();
            c.packets.drain(..first);
            let total = |latency| -> Vec<f64> {
                let all = transactions_over(&c, latency);
                all.iter().map(|t| shares(t).total_seconds).collect()
            };
            let without = total(None);
            for latency in [1e-6, 0.001, 0.010, 0.1, 60.0] {
                assert_eq!(total(Some(latency)), without, "{latency}");
            }
        }
    }
}

/// A response is sent when its application has it: the time to it is at most a round trip, and the server's work may be all of it.
#[test]
fn a_round_trip_that_responses_ended_is_not_the_paths() {
    let server = |a: &v1::Analysis| -> Vec<(f64, Option<f64>)> {
        let of = |t: &v1::Transaction| (shares(t).server_processing_seconds, t.server_uncertain_seconds);
        a.transactions.iter().map(of).collect()
    };
    let by_responses = midstream(None);
    for (seconds, uncertain) in server(&by_responses) {
        about(seconds, 0.060);
        about(uncertain.unwrap(), 0.060);
    }
    assert!(by_responses.findings.iter().all(|f| f.kind != "LATENCY_BOUND"));
    // ACKs at once tell it.
    let last = *server(&midstream(Some(0.004))).last().unwrap();
    about(last.0, 0.056);
    assert_eq!(last.1, None);
    // A timer may have held these back.
    let last = *server(&midstream(Some(0.045))).last().unwrap();
    about(last.0, 0.060);
    about(last.1.unwrap(), 0.045);
    // What is reported of round trips is what was measured.
    assert!(only(&by_responses).client_to_server.as_ref().unwrap().rtt.is_some());
}

/// Where the SYN or the SYN-ACK was lost, one of the client's and one of the server's way, s.
fn lossy_setup(packets: &[(f64, bool)], trips: [f64; 2]) -> Vec<v1::Transaction> {
    transactions(&setup_of(40_000, packets, trips))
}

/// The same of that port, with four turns.
fn setup_of(port: u16, packets: &[(f64, bool)], [client, server]: [f64; 2]) -> Conversation {
    let mut c = Conversation::new(port);
    for (at, from_client) in packets {
        let (seq, acked) = if *from_client { (100, 0) } else { (900, 101) };
        c.syn(*at, *from_client, seq, acked, Some(8));
    }
    let mut at = packets[packets.len() - 1].0 + client;
    c.packet(at, C, "A", 101, 901, 0);
    for (seq, ack) in [(101, 901), (201, 1201), (301, 1501)] {
        at += WORK;
        c.packet(at, C, "AP", seq, ack, 100);
        // The responses end what times the requests.
        at += server + WORK;
        c.packet(at, S, "AP", ack, seq + 100, 300);
        at += client;
    }
    c.packet(at, C, "A", 401, 1801, 0);
    c
}

#[test]
fn a_handshake_with_repeats_times_the_path() {
    let syn_lost: &[_] = &[(0.0, C), (1.0, C), (1.060, S)];
    let syn_ack_lost: &[_] = &[(0.0, C), (0.001, S), (1.0, C), (1.001, S)];
    for (packets, trips) in [(syn_lost, [0.001, 0.060]), (syn_ack_lost, [0.060, 0.001])] {
        for t in &lossy_setup(packets, trips)[1..] {
            about(shares(t).server_processing_seconds, WORK);
            about(shares(t).client_processing_seconds, WORK);
            about(shares(t).latency_seconds.unwrap(), trips[0] + trips[1]);
            assert_eq!(t.server_uncertain_seconds, None);
        }
    }
    // Of two SYN-ACKs one is the timer's, which matters where they are apart, and nobody else's way is known.
    let twice = |first| lossy_setup(&[(0.0, C), (1.0, C), (first, S), (1.060, S)], [0.001, 0.060]).remove(1);
    assert!(twice(1.020).server_uncertain_seconds.is_some());
    let mut others = Vec::new();
    for n in 0..5 {
        let at = f64::from(n);
        others.extend(setup_of(40_001 + n, &[(at, C), (at + 0.060, S)], [0.001, 0.060]).packets);
    }
    let apart = [(10.0, C), (11.0, C), (11.020, S), (11.060, S)];
    others.extend(setup_of(40_000, &apart, [0.001, 0.060]).packets);
    let all = analyze(&others).transactions;
    let last = all.iter().rfind(|t| t.kind == "DATA").unwrap();
    about(shares(last).server_processing_seconds, WORK);
    assert_eq!(last.server_uncertain_seconds, None);
    let at_once = shares(&twice(1.059_9));
    assert!(
        (at_once.server_processing_seconds - WORK).abs() < 0.000_2,
        "{at_once:?}"
    );
    assert!(
        (at_once.client_processing_seconds - WORK).abs() < 0.000_2,
        "{at_once:?}"
    );
}

/// The server still has the connection of before, and challenges the SYN (RFC 5961 4): the client resets that, and its timer sends
/// the SYN again. Nothing was lost.
#[test]
fn the_wait_behind_a_challenge_is_no_recovery() {
    let about = |challenged: bool| {
        let mut c = Conversation::new(40_000);
        // Of before; the client has forgotten it.
        c.packet(0.0, C, "AP", 10_101, 50_901, 200);
        c.packet(TRIP, S, "AP", 50_901, 10_301, 300);
        c.packet(TRIP + NEAR, C, "A", 10_301, 51_201, 0);
        c.syn(40.0, C, 777_000, 0, Some(8));
        if challenged {
            c.packet(40.0 + TRIP, S, "A", 51_201, 10_301, 0);
            c.packet(40.0 + TRIP + NEAR, C, "R", 10_301, 0, 0);
        }
        c.syn(41.0, C, 777_000, 0, Some(8));
        c.syn(41.0 + TRIP, S, 900_000, 777_001, Some(8));
        c.packet(41.0 + TRIP + NEAR, C, "A", 777_001, 900_001, 0);
        let bottlenecks = analyze(&c.packets).summary.unwrap().bottlenecks;
        let most = bottlenecks.into_iter().find(|b| b.name != "USER_THINK").unwrap();
        (most.name, most.remedy)
    };
    assert_eq!(about(false), ("LOSS_RECOVERY".into(), "a path without loss".into()));
    let (name, remedy) = about(true);
    assert_eq!(name, "PROTOCOL_OTHER");
    assert!(remedy.contains("PORT_COLLISION"), "{remedy}");
}

/// What nobody answers is no loss that a better path would save.
#[test]
fn syns_that_nobody_answers_wait_for_an_answer() {
    let remedy = |answered: bool| {
        let mut c = Conversation::new(40_000);
        for at in [0.0, 1.0, 3.0] {
            c.syn(at, C, 777_000, 0, Some(8));
        }
        if answered {
            c.syn(3.0 + TRIP, S, 900_000, 777_001, Some(8));
            c.packet(3.0 + TRIP + NEAR, C, "A", 777_001, 900_001, 0);
        }
        // The capture goes on until the last SYN's timer has run out.
        let mut packets = c.packets;
        packets.extend(setup_of(40_001, &[(20.0, C), (20.0 + TRIP, S)], [NEAR, TRIP]).packets);
        let bottlenecks = analyze(&packets).summary.unwrap().bottlenecks;
        bottlenecks
            .into_iter()
            .find(|b| b.name == "LOSS_RECOVERY")
            .unwrap()
            .remedy
    };
    assert_eq!(remedy(true), "a path without loss");
    assert_eq!(remedy(false), "an answer to each SYN and SYN-ACK (FAILED_CONNECTIONS)");
}

/// A bulk transfer from `from`, of which 30 segments are in flight; in its pauses of 20 ms the receiver sends two small pieces, as
/// HTTP/2's window updates, 12 ms apart.
fn small_pieces_amid(from: bool) -> Vec<v1::TimeShares> {
    const SEGMENT: u32 = 1460;
    let mut c = start(true);
    let (mut bulk, mut small) = if from == C { (101, 901) } else { (901, 101) };
    if from == S {
        c.packet(0.050, C, "AP", 101, 901, 100);
        small += 100;
    }
    let begin = bulk;
    let mut at = 0.080;
    for _ in 0..4 {
        for _ in 0..30 {
            c.packet(at, from, "A", bulk, small, SEGMENT);
            bulk += SEGMENT;
            at += 0.000_1;
        }
        let acked = begin.max(bulk - 25 * SEGMENT);
        for piece in [0.002, 0.014] {
            c.packet(at + piece, !from, "AP", small, acked, 39);
            small += 39;
        }
        c.packet(at + 0.019, !from, "A", small, bulk - SEGMENT, 0);
        at += 0.020;
    }
    transactions(&c).iter().map(shares).collect()
}

/// Whoever sends while a transfer of the peer goes on has not been waited for.
#[test]
fn pieces_amid_a_transfer_are_waited_for_by_nobody() {
    for from in [C, S] {
        let all = small_pieces_amid(from);
        assert!(all.len() > 2, "{all:?}");
        for s in &all[1..] {
            let receiver = if from == C {
                s.server_processing_seconds
            } else {
                s.client_processing_seconds
            };
            assert!(receiver < 0.002, "{from}: {s:?}");
        }
        assert!(all.iter().any(|s| s.protocol_seconds > 0.011), "{from}: {all:?}");
    }
}

/// Eight turns of ten segments at once and an answer of 100 bytes, and then 10 ms until the next. Behind the tap there are 60 ms to who hears the segments, and
/// a link that takes `apart` s for one; it acknowledges every second one. `up`: the client sends them.
fn flights(apart: f64, up: bool) -> Conversation {
    let (many, one) = if up { (C, S) } else { (S, C) };
    let way = 0.060;
    let mut c = Conversation::new(40_000);
    let trips = if up { [way, 0.001] } else { [0.001, way] };
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(trips[0], S, 900, 101, Some(8));
    c.packet(trips[0] + trips[1], C, "A", 101, 901, 0);
    let (mut seq, mut answered) = if up { (101, 901) } else { (901, 101) };
    let mut at = 0.2;
    for _ in 0..8 {
        if !up {
            c.packet(at, C, "AP", answered, seq, 100);
            answered += 100;
            at += 0.011;
        }
        for n in 1..=10 {
            c.packet(at, many, if n == 10 { "AP" } else { "A" }, seq, answered, 1460);
            seq += 1460;
            if n % 2 == 0 {
                c.packet(at + way + f64::from(n) * apart, one, "A", answered, seq, 0);
            }
        }
        at += way + 10.0 * apart + 0.010;
        if up {
            c.packet(at, S, "AP", answered, seq, 100);
            answered += 100;
            c.packet(at + 0.001, C, "A", seq, answered, 0);
            at += 0.011;
        }
    }
    c
}

/// 2 Mbit/s.
const SLOW: f64 = 0.006_056;

/// What comes behind the tap over a slow link is neither the client's time nor the server's, although the ACKs of its end are in no record.
#[test]
fn the_end_of_a_flight_on_a_slow_link_is_not_the_time_of_who_waits_for_it() {
    for up in [false, true] {
        let all = transactions(&flights(SLOW, up));
        let t = &all[6];
        let (own, uncertain) = if up {
            (shares(t).server_processing_seconds, t.server_uncertain_seconds)
        } else {
            (shares(t).client_processing_seconds, t.client_uncertain_seconds)
        };
        about(own, 0.010);
        about(shares(t).bandwidth_seconds, 10.0 * SLOW);
        // That nothing else held it is a guess.
        about(uncertain.unwrap(), 8.0 * SLOW);
        // The rate is not known before several flights tell the same.
        let first = if up { &all[0] } else { &all[1] };
        let (own, uncertain) = if up {
            (shares(first).server_processing_seconds, first.server_uncertain_seconds)
        } else {
            (shares(first).client_processing_seconds, first.client_uncertain_seconds)
        };
        about(own, 0.010 + 8.0 * SLOW);
        about(uncertain.unwrap(), 8.0 * SLOW);
    }
}

/// A client that tells something now and then and hears nothing: no faster client would tell sooner.
#[test]
fn long_pauses_of_a_client_that_tells_are_thinking() {
    let mut c = start(true);
    for n in 0..6 {
        let (at, seq) = (0.1 + 1.5 * f64::from(n), 101 + 200 * n);
        c.packet(at, C, "AP", seq, 901, 200);
        c.packet(at + TRIP, S, "A", 901, seq + 200, 0);
    }
    let all = transactions(&c);
    let sum = |of: fn(&v1::TimeShares) -> f64| all.iter().map(|t| of(&shares(t))).sum::<f64>();
    about(sum(|s| s.user_think_seconds), 5.0 * 1.5);
    assert!(sum(|s| s.client_processing_seconds) < 0.1);
}

/// A timer sends the middle of a response again, without SACK: when the client asks next, it is not known whether it had waited for that.
#[test]
fn a_repeat_of_which_nothing_is_known_yet_makes_the_clients_time_uncertain() {
    let mut c = start(false);
    c.packet(0.100, C, "AP", 101, 901, 200);
    let answer = 0.100 + TRIP + WORK;
    for i in 0..3 {
        c.packet(answer, S, if i == 2 { "AP" } else { "A" }, 901 + 1000 * i, 301, 1000);
    }
    c.packet(answer + NEAR, C, "A", 301, 1901, 0);
    c.packet(answer + NEAR, C, "A", 301, 1901, 0);
    c.packet(answer + 0.220, S, "A", 1901, 301, 1000);
    c.packet(answer + 0.220 + NEAR, C, "A", 301, 3901, 0);
    let next = answer + 0.225;
    c.packet(next, C, "AP", 301, 3901, 200);
    c.packet(next + TRIP, S, "AP", 3901, 501, 300);
    c.packet(next + TRIP + NEAR, C, "A", 501, 4201, 0);
    let t = &transactions(&c)[1];
    let own = shares(t).client_processing_seconds;
    let truth = 0.225 - 0.220 - NEAR;
    assert!(own - t.client_uncertain_seconds.unwrap_or(0.0) < truth + 1e-3, "{t:?}");
}

/// Each direction has a clock of its own: ACKs stand before the data that they acknowledge. Where the data never comes, the capture missed it.
#[test]
fn directions_that_are_out_of_step_are_told() {
    let early = |missed: bool| {
        let mut c = start(true);
        for n in 0..4 {
            let (at, seq) = (0.1 + f64::from(n), 901 + 300 * n);
            c.packet(at, C, "AP", 101 + 200 * n, seq, 200);
            c.packet(at + TRIP, C, "A", 301 + 200 * n, seq + 300, 0);
            c.packet(at + TRIP + NEAR, S, "AP", seq, 301 + 200 * n, 300);
            if missed && n == 2 {
                c.packets.pop();
            }
        }
        let a = analyze(&c.packets);
        let told = a.findings.into_iter().find(|f| f.kind == "CAPTURE_QUALITY")?;
        told.values["earlyAcks"].value.clone()
    };
    assert_eq!(early(false), Some(v1::finding_value::Value::Number(4.0)));
    assert_eq!(early(true), None);
}

/// Three segments are no transfer to watch; but the ACK of the first tells that the others take longer than the path.
#[test]
fn a_short_response_that_comes_over_a_slow_link_makes_the_clients_time_uncertain() {
    let mut c = start(true);
    for n in 0..2 {
        let (at, seq) = (0.1 + f64::from(n), 901 + 4380 * n);
        c.packet(at, C, "AP", 101 + 200 * n, seq, 200);
        let answer = at + TRIP + WORK;
        for i in 0..3 {
            c.packet(
                answer,
                S,
                if i == 2 { "AP" } else { "A" },
                seq + 1460 * i,
                301 + 200 * n,
                1460,
            );
        }
        for i in 1..=3 {
            let ack = answer + NEAR + SLOW * f64::from(i);
            c.packet(ack, C, "A", 301 + 200 * n, seq + 1460 * i, 0);
        }
    }
    let t = &transactions(&c)[1];
    let gap = 1.0 - TRIP - WORK - NEAR;
    about(
        shares(t).user_think_seconds + shares(t).client_processing_seconds,
        gap - SLOW,
    );
    about(t.client_uncertain_seconds.unwrap(), 2.0 * SLOW);
}

/// Ten segments in one flight take 0.1 ms past the tap; their link has 2 Mbit/s.
#[test]
fn a_flight_is_no_faster_than_its_link() {
    for up in [false, true] {
        let mut c = flights(SLOW, up);
        for (n, packet) in (0..).zip(c.packets.iter_mut().filter(|packet| packet.payload == 1460)) {
            packet.time += n % 10 * 10_000;
        }
        let a = analyze(&c.packets);
        let c = only(&a);
        let d = if up { c.client_to_server } else { c.server_to_client };
        let rate = d.unwrap().ceilings.unwrap().measured_bits_per_second.unwrap();
        assert!((0.9e6..2e6).contains(&rate), "{rate}");
    }
}

/// With the bandwidth given, it is no guess.
#[test]
fn a_given_bandwidth_tells_when_the_end_of_a_flight_comes() {
    let records = support::records(&flights(SLOW, false).packets, weir_engine::Config::file());
    let mut analyzer = weir_analysis::Analyzer::new(weir_analysis::Config {
        bandwidth: Some(2e6),
        ..weir_analysis::Config::default()
    });
    let mut a = v1::Analysis::default();
    analyzer.push(&records, &mut a);
    analyzer.finish(&mut a);
    let t = a.transactions.iter().filter(|t| t.kind == "DATA").nth(1).unwrap();
    about(shares(t).client_processing_seconds, 0.010);
    assert_eq!(t.client_uncertain_seconds, None);
}

/// Where all is acknowledged as soon as its first segment, the rest of the time is the host's.
#[test]
fn the_end_of_a_flight_on_a_fast_link_is_there_at_once() {
    for up in [false, true] {
        let all = transactions(&flights(0.000_010, up));
        for t in &all[1..] {
            let s = shares(t);
            let own = if up {
                s.server_processing_seconds
            } else {
                s.client_processing_seconds
            };
            assert!((own - 0.010).abs() < 0.000_2, "{s:?}");
            assert_eq!((t.server_uncertain_seconds, t.client_uncertain_seconds), (None, None));
        }
    }
}

/// The SYN-ACK comes when the server's timer has run out, and nothing came twice at the tap. The round trips of data tell whether the way is as
/// long as that.
#[test]
fn a_syn_ack_that_a_timer_sent_is_no_round_trip() {
    let answered = |trip: f64| {
        let at = 1.015;
        let mut c = Conversation::new(40_000);
        c.syn(0.0, C, 100, 0, Some(8));
        c.syn(at, S, 900, 101, Some(8));
        c.packet(at + NEAR, C, "A", 101, 901, 0);
        c.packet(at + NEAR, C, "AP", 101, 901, 200);
        c.packet(at + NEAR + trip, S, "A", 901, 301, 0);
        c.packet(at + NEAR + trip + WORK, S, "AP", 901, 301, 100);
        c.packet(at + 2.0 * NEAR + trip + WORK, C, "A", 301, 1001, 0);
        let a = analyze(&c.packets);
        let connection = only(&a);
        let setup = connection.setup.as_ref().unwrap();
        let least = connection.client_to_server.as_ref().unwrap().rtt.unwrap().min_seconds;
        let parts = a.transactions.iter().map(shares);
        let [opening, asked] = parts.collect::<Vec<_>>().try_into().unwrap();
        (setup.explanation.clone(), least.unwrap(), opening, asked)
    };
    let (why, least, opening, asked) = answered(0.015);
    assert!(
        why.contains("one before it was lost between the server and the tap"),
        "{why}"
    );
    about(least, 0.015);
    about(opening.protocol_seconds, 1.0);
    about(opening.latency_seconds.unwrap(), 0.015 + NEAR);
    about(asked.server_processing_seconds, WORK);
    // A way of a second.
    let (why, least, ..) = answered(1.015);
    assert_eq!(why, "");
    about(least, 1.015);
    // And that SYN-ACK is lost behind the tap: the next one is no latency, either.
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.syn(1.015, S, 900, 101, Some(8));
    c.syn(4.015, S, 900, 101, Some(8));
    c.packet(4.015 + NEAR, C, "A", 101, 901, 0);
    c.packet(5.0, C, "AP", 101, 901, 200);
    let a = analyze(&c.packets);
    let opening = shares(&a.transactions[0]);
    about(opening.latency_seconds.unwrap(), 0.015 + NEAR);
    about(opening.protocol_seconds, 4.0);
}

/// A request that is acknowledged and not answered, after `before` that were; then nothing for `wait` s, until the client closes or, if `open`, the
/// input ends.
fn unanswered(before: usize, wait: f64, bytes: u32, open: bool) -> v1::Analysis {
    unanswered_after(WORK, before, wait, bytes, open)
}

/// The same; the server worked so long for each of those that it answered.
fn unanswered_after(work: f64, before: usize, wait: f64, bytes: u32, open: bool) -> v1::Analysis {
    let mut c = start(true);
    let (mut at, mut sent, mut got) = (1.0, 101, 901);
    for _ in 0..before {
        c.packet(at, C, "AP", sent, got, 200);
        sent += 200;
        c.packet(at + TRIP, S, "A", got, sent, 0);
        c.packet(at + TRIP + work, S, "AP", got, sent, 300);
        got += 300;
        c.packet(at + TRIP + work + NEAR, C, "A", sent, got, 0);
        at += 1.0 + work;
    }
    c.packet(at, C, "AP", sent, got, bytes);
    sent += bytes;
    c.packet(at + TRIP, S, "A", got, sent, 0);
    if open {
        // A keep-alive.
        c.packet(at + wait - TRIP, C, "A", sent - 1, got, 0);
        c.packet(at + wait, S, "A", got, sent, 0);
    } else {
        c.packet(at + wait, C, "FA", sent, got, 0);
        c.packet(at + wait + TRIP, S, "FA", got, sent + 1, 0);
        c.packet(at + wait + TRIP + NEAR, C, "A", sent + 1, got + 1, 0);
    }
    analyze(&c.packets)
}

/// Whose time it was, and whether it is told of.
#[test]
fn a_request_without_the_answer_that_was_due_is_the_servers_time() {
    for (before, wait, bytes, open, is_due) in [
        (0, 12.0, 200, false, true),
        (0, 12.0, 200, true, true),
        (0, 9.0, 200, false, false),
        (2, 1.1, 200, false, true),
        (2, 0.9, 200, false, false),
        // A notice.
        (2, 12.0, 31, false, false),
    ] {
        let a = unanswered(before, wait, bytes, open);
        let told = a.findings.iter().find(|f| f.kind == "UNANSWERED_REQUESTS");
        let case = (before, wait, bytes, open);
        assert_eq!(told.is_some(), is_due, "{case:?}");
        let last = a.transactions.last().unwrap();
        let server = shares(last).server_processing_seconds;
        assert_eq!(last.server_seconds, None);
        if is_due {
            about(server, wait - TRIP);
            about(last.server_uncertain_seconds.unwrap(), wait);
            assert_eq!(told.unwrap().connection_ids.len(), 1);
        } else {
            about(server, 0.0);
        }
    }
}

/// A client that tells something every ten seconds, of which its server says nothing, waits for no answer when it closes ten seconds after the last.
#[test]
fn who_goes_on_after_a_pause_waits_for_no_answer() {
    let told = |wait: f64| {
        let mut c = start(true);
        let (mut at, mut sent) = (1.0, 101);
        for _ in 0..4 {
            c.packet(at, C, "AP", sent, 901, 60);
            sent += 60;
            c.packet(at + TRIP, S, "A", 901, sent, 0);
            at += 10.0;
        }
        at += wait - 10.0;
        c.packet(at, C, "FA", sent, 901, 0);
        c.packet(at + TRIP, S, "FA", 901, sent + 1, 0);
        c.packet(at + TRIP + NEAR, C, "A", sent + 1, 902, 0);
        let a = analyze(&c.packets);
        let is_told = a.findings.iter().any(|f| f.kind == "UNANSWERED_REQUESTS");
        (
            is_told,
            shares(a.transactions.last().unwrap()).server_processing_seconds > 1.0,
        )
    };
    assert_eq!(told(10.0), (false, false));
    assert_eq!(told(60.0), (true, true), "but not so long");
}

/// Answers took 2 s. When the input ends, that to another request may be on its way for as long as that, and more.
#[test]
fn what_waits_when_the_input_ends_may_still_be_answered() {
    for (wait, open, is_due) in [(5.0, true, false), (7.0, true, true), (5.0, false, true)] {
        let a = unanswered_after(2.0, 2, wait, 200, open);
        let told = a.findings.iter().any(|f| f.kind == "UNANSWERED_REQUESTS");
        assert_eq!(told, is_due, "{wait} {open}");
    }
}

/// The client's window is 0 from the end of a response on until the input ends; the server asks for it, or has nothing more to send.
#[test]
fn a_window_that_never_opens_again_holds_the_transfer() {
    for (asks, held) in [(true, 60.0), (false, 0.0)] {
        let mut c = start(false);
        c.packet(1.0, C, "AP", 101, 901, 200);
        c.packet(1.0 + TRIP + WORK, S, "A", 901, 301, 1460);
        let end = 1.0 + TRIP + WORK + NEAR;
        c.packet(end, C, "A", 301, 2361, 0).window = 0;
        for n in 1..=6 {
            let at = end + 10.0 * f64::from(n);
            if asks {
                c.packet(at - NEAR, S, "A", 2360, 301, 0);
            }
            c.packet(at, C, "A", 301, 2361, 0).window = 0;
        }
        let a = analyze(&c.packets);
        let last = shares(a.transactions.last().unwrap());
        let limits = only(&a).server_to_client.as_ref().unwrap().limit_seconds.unwrap();
        let held = if asks { held + NEAR } else { held };
        about(last.protocol_seconds, held);
        about(limits.zero_window, held);
        about(limits.receiver_window, held);
    }
}

/// A server that goes on after a pause may have been asked for nothing: from a second on that is uncertain, however long it is.
#[test]
fn what_a_server_tells_unasked_may_be_no_response() {
    for (pause, uncertain) in [(0.9, None), (5.0, Some(5.0)), (50.0, Some(50.0))] {
        let mut c = start(true);
        c.packet(1.0, C, "AP", 101, 901, 200);
        c.packet(1.0 + TRIP, S, "A", 901, 301, 0);
        let answered = 1.0 + TRIP + WORK;
        for n in 0..2u32 {
            let at = answered + f64::from(n) * pause;
            c.packet(at, S, "AP", 901 + 40 * n, 301, 40);
            c.packet(at + NEAR, C, "A", 301, 941 + 40 * n, 0);
        }
        let [t] = transactions(&c).try_into().unwrap();
        about(shares(&t).server_processing_seconds, WORK + pause);
        let told = t.server_uncertain_seconds;
        assert_eq!(told.is_some(), uncertain.is_some(), "{pause}: {told:?}");
        if let (Some(told), Some(uncertain)) = (told, uncertain) {
            assert!(
                (uncertain..uncertain + TRIP + 2.0 * WORK).contains(&told),
                "{told} {uncertain}"
            );
        }
    }
}

/// Of one direction alone nothing tells who waited for whom; the handshake's round trip is not all of it.
#[test]
fn of_one_direction_nothing_tells_whose_time_it_was() {
    let summary = |both: bool| {
        let mut c = start(true);
        for n in 0..4 {
            let at = 0.1 + f64::from(n);
            c.packet(at, C, "AP", 101 + 200 * n, 901 + 300 * n, 200);
            c.packet(at + TRIP + WORK, S, "AP", 901 + 300 * n, 301 + 200 * n, 300);
        }
        c.packets
            .retain(|packet| both || packet.from_low || packet.flags & weir_record::tcp_flag::SYN != 0);
        c.packets.retain(|packet| both || packet.seq != 900);
        analyze(&c.packets).summary.unwrap()
    };
    let is_part = |d: &v1::Diagnosis| d.category == "LATENCY" || d.category == "SERVER_PROCESSING";
    let known = summary(true);
    assert_eq!(known.untimed_transactions, 0);
    assert!(!known.bottlenecks.is_empty() && known.diagnosis.iter().any(is_part));
    let unknown = summary(false);
    assert_eq!(unknown.untimed_transactions, 1);
    assert!(unknown.bottlenecks.is_empty() && !unknown.diagnosis.iter().any(is_part));
    assert_eq!(weir_analysis::pie::one_tap(&unknown), None);
}

/// Data on the SYN (RFC 7413) that the server took, or not: then the client sends it again with the ACK of the SYN-ACK.
fn asked_on_the_syn(taken: bool) -> v1::Analysis {
    let mut c = Conversation::new(40_000);
    c.syn(0.0, C, 100, 0, Some(8));
    c.packets[0].payload = 300;
    c.syn(TRIP, S, 900, if taken { 401 } else { 101 }, Some(8));
    let asked = if taken {
        c.packet(TRIP + WORK, S, "AP", 901, 401, 500);
        c.packet(TRIP + NEAR, C, "A", 401, 901, 0);
        0.0
    } else {
        c.packet(TRIP + NEAR, C, "AP", 101, 901, 300);
        c.packet(TRIP + NEAR + TRIP + WORK, S, "AP", 901, 401, 500);
        TRIP + NEAR
    };
    c.packets.sort_by_key(|packet| packet.time);
    c.packet(asked + TRIP + WORK + NEAR, C, "A", 401, 1401, 0);
    analyze(&c.packets)
}

#[test]
fn a_handshake_beside_a_request_on_the_syn_takes_no_time_of_its_own() {
    let a = asked_on_the_syn(true);
    let [setup, asked] = a.transactions.as_slice() else {
        panic!("{:?}", a.transactions)
    };
    about(setup.end_seconds.unwrap(), TRIP + NEAR);
    about(shares(setup).total_seconds, 0.0);
    about(asked.server_seconds.unwrap(), TRIP + WORK);
    about(shares(asked).server_processing_seconds, WORK);
    about(shares(asked).latency_seconds.unwrap(), TRIP);
    about(only(&a).shares.unwrap().total_seconds, TRIP + WORK);
}

#[test]
fn a_request_on_a_syn_that_the_server_refused_begins_with_its_repeat() {
    let a = asked_on_the_syn(false);
    let [setup, asked] = a.transactions.as_slice() else {
        panic!("{:?}", a.transactions)
    };
    about(shares(setup).total_seconds, TRIP + NEAR);
    about(asked.server_seconds.unwrap(), TRIP + WORK);
    about(shares(asked).server_processing_seconds, WORK);
    about(shares(asked).protocol_seconds, 0.0);
    assert_eq!(asked.losses, 0);
    let sent = only(&a).client_to_server.as_ref().unwrap();
    assert_eq!((sent.retransmitted_packets, sent.retransmitted_data_packets), (1, 0));
}

/// Beside a download over the same slow link, of which no segment has PSH, a response may have waited behind what the link still had.
#[test]
fn a_response_behind_a_download_without_psh_may_have_waited_for_the_link() {
    let beside = |download: bool| {
        let mut c = start(true);
        let mut other = Conversation::new(50_000);
        if download {
            other.syn(0.0, C, 100, 0, Some(8));
            other.syn(TRIP, S, 900, 101, Some(8));
            other.packet(TRIP + NEAR, C, "A", 101, 901, 0);
            other.packet(TRIP + NEAR, C, "AP", 101, 901, 100);
            for n in 0..1000u32 {
                let (at, seq) = (2.5 * TRIP + f64::from(n) * 0.0012, 901 + 1460 * n);
                other.packet(at, S, "A", seq, 201, 1460);
                if n % 2 == 1 {
                    other.packet(at + 0.000_03, C, "A", 201, seq + 1460, 0);
                }
            }
        }
        // 40 ms longer than the way: right behind one of those segments, or none.
        let asked = 2.5 * TRIP + 0.6;
        let answered = 2.5 * TRIP + 550.0 * 0.0012 + 0.0003;
        c.packet(asked, C, "AP", 101, 901, 200);
        c.packet(answered, S, "AP", 901, 301, 300);
        c.packet(answered + NEAR, C, "A", 301, 1201, 0);
        c.packets.extend(other.packets);
        c.packets.sort_by_key(|packet| packet.time);
        let a = analyze(&c.packets);
        let asked = |t: &&v1::Transaction| t.kind == "DATA" && t.request_bytes == 200;
        let t = a.transactions.iter().find(asked).unwrap();
        (shares(t).server_processing_seconds, t.server_uncertain_seconds)
    };
    let (server, uncertain) = beside(true);
    assert!(
        uncertain.is_some_and(|ns| ns > 0.9 * server) && server > 0.03,
        "{server} {uncertain:?}"
    );
    assert_eq!(beside(false).1, None);
}

/// The same beside blocks of 10 segments, one of which ends after the response has begun. Before the connection ends the link is busy and
/// idle twelve times more.
#[test]
fn what_a_response_waited_behind_is_looked_at_while_it_is_known() {
    let mut c = start(true);
    let mut other = Conversation::new(50_000);
    other.syn(0.0, C, 100, 0, Some(8));
    other.syn(TRIP, S, 900, 101, Some(8));
    other.packet(TRIP + NEAR, C, "A", 101, 901, 0);
    other.packet(TRIP + NEAR, C, "AP", 101, 901, 100);
    let begin = 2.5 * TRIP;
    let blocks = (0..70).map(|n| (begin + f64::from(n) * 10.0 * 0.0012, 10));
    let later = (0..12).map(|n| (begin + 0.9 + f64::from(n) * 0.05, 4));
    let mut seq = 901;
    for (first, packets) in blocks.chain(later) {
        for i in 1..=packets {
            let at = first + f64::from(i) * 0.0012;
            other.packet(at, S, if i == packets { "AP" } else { "A" }, seq, 201, 1460);
            seq += 1460;
        }
        other.packet(first + f64::from(packets) * 0.0012 + NEAR, C, "A", 201, seq, 0);
    }
    let answered = begin + 505.5 * 0.0012;
    c.packet(answered - 0.060, C, "AP", 101, 901, 200);
    c.packet(answered, S, "AP", 901, 301, 300);
    c.packet(answered + NEAR, C, "A", 301, 1201, 0);
    c.packet(answered + 0.015, S, "AP", 1201, 301, 300);
    c.packet(answered + 0.015 + NEAR, C, "A", 301, 1501, 0);
    c.packets.extend(other.packets);
    c.packets.sort_by_key(|packet| packet.time);
    let a = analyze(&c.packets);
    let asked = |t: &&v1::Transaction| t.kind == "DATA" && t.request_bytes == 200;
    let t = a.transactions.iter().find(asked).unwrap();
    let uncertain = t.server_uncertain_seconds.unwrap_or(0.0);
    assert!(uncertain > 0.029, "{uncertain}");
}

/// How a client's ACKs of a download come, beside a connection on which it asks 30 ms after the end of a response.
#[derive(Clone, Copy, PartialEq)]
enum Acks {
    /// `longer` s than the path's round trip after what they acknowledge.
    Late(f64),
    /// At once, but of every second segment, and the one behind the first had been lost before the tap: what comes 40 ms later has it sent.
    AtGaps,
}

/// The second transaction of that connection, whose response waited for `queue` s.
fn beside_a_download(acks: Acks, queue: f64) -> v1::Transaction {
    let mut c = start(false);
    let mut other = Conversation::new(50_000);
    other.syn(0.0, C, 100, 0, Some(8));
    other.syn(TRIP, S, 900, 101, Some(8));
    other.packet(TRIP + NEAR, C, "A", 101, 901, 0);
    other.packet(0.2, C, "AP", 101, 901, 100);
    for n in 0..10u32 {
        let (at, seq) = (0.3 + f64::from(n) * 0.080, 901 + 5840 * n);
        match acks {
            Acks::Late(longer) => {
                for i in 0..4 {
                    let flags = if i == 3 { "AP" } else { "A" };
                    other.packet(at, S, flags, seq + 1460 * i, 201, 1460);
                    let ack = at + NEAR + longer + f64::from(i) * 0.0001;
                    other.packet(ack, C, "A", 201, seq + 1460 * (i + 1), 0);
                }
            }
            Acks::AtGaps => {
                other.packet(at, S, "A", seq, 201, 1460);
                for (i, later) in [(2, 0.040), (3, 0.040), (1, 0.060)] {
                    other.packet(at + later, S, "A", seq + 1460 * i, 201, 1460);
                }
                other.packet(at + 0.040 + NEAR, C, "A", 201, seq + 1460, 0);
                other.packet(at + 0.060 + NEAR, C, "A", 201, seq + 5840, 0);
            }
        }
    }
    let asked = 0.605 - TRIP - WORK;
    c.packet(asked, C, "AP", 101, 901, 200);
    c.packet(0.605, S, "AP", 901, 301, 300);
    let again = 0.605 + NEAR + queue + 0.030;
    c.packet(again, C, "AP", 301, 1201, 200);
    c.packet(again + TRIP + WORK, S, "AP", 1201, 501, 300);
    c.packet(again + TRIP + WORK + NEAR, C, "A", 501, 1501, 0);
    c.packets.extend(other.packets);
    c.packets.sort_by_key(|packet| packet.time);
    let all = transactions(&c);
    let asked_again = |t: &&v1::Transaction| t.request_bytes == 200 && t.index == 2;
    all.iter().find(asked_again).unwrap().clone()
}

/// A download fills the queue before a client: what another of its connections brings waits there, too.
#[test]
fn what_waits_behind_a_download_is_not_the_clients_time() {
    let t = beside_a_download(Acks::Late(0.060), 0.060);
    let (s, uncertain) = (shares(&t), t.client_uncertain_seconds.unwrap());
    assert!((s.client_processing_seconds - 0.030).abs() < 0.001, "{t:?}");
    assert!((s.congestion_seconds - 0.060).abs() < 0.001, "{t:?}");
    // It may have waited less, or more.
    assert!(uncertain >= 0.030, "{t:?}");
    let t = beside_a_download(Acks::Late(0.0), 0.0);
    about(shares(&t).client_processing_seconds, 0.030);
    assert_eq!(t.client_uncertain_seconds, None);
}

/// An ACK that something behind a gap has sent tells of no queue: what it acknowledges had waited for a second segment.
#[test]
fn an_ack_at_a_gap_tells_of_no_queue() {
    let t = beside_a_download(Acks::AtGaps, 0.0);
    about(shares(&t).client_processing_seconds, 0.030);
    assert_eq!(t.client_uncertain_seconds, None);
}
