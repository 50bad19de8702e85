//! Golden cases: published analyses, rebuilt packet by packet and run through the engine.
#![allow(clippy::unwrap_used)]

mod support;

use support::{C, Conversation, S, analyze, near, only, records};
use weir_analysis::{Analyzer, Config, Sink};
use weir_engine::Config as EngineConfig;
use weir_messages::v1;
use weir_record::tcp_flag;

/// Times are s after 01:52:00.
fn megalodon_normal() -> Conversation {
    let mut c = Conversation::new(50834);
    let (cl, sv) = (568_490_814u32, 3_819_784_676u32);
    c.syn(14.8553, C, cl, 0, Some(8));
    c.syn(14.858, S, sv, cl + 1, Some(8));
    for (at, client, flags, seq, ack, len) in [
        (14.858, C, "A", 568_490_815, 3_819_784_677, 0),
        (14.8584, C, "AP", 568_490_815, 3_819_784_677, 127),
        (15.0151, S, "A", 3_819_784_677, 568_490_942, 1460),
        (15.0151, S, "A", 3_819_786_137, 568_490_942, 1460),
        (15.0151, C, "A", 568_490_942, 3_819_787_597, 0),
        (15.0157, S, "AP", 3_819_787_597, 568_490_942, 111),
        (15.0175, C, "AP", 568_490_942, 3_819_787_708, 158),
        (15.02, S, "AP", 3_819_787_708, 568_491_100, 6),
        (15.02, S, "AP", 3_819_787_714, 568_491_100, 45),
        (15.02, C, "A", 568_491_100, 3_819_787_759, 0),
        (15.02, C, "AP", 568_491_100, 3_819_787_759, 178),
        (15.0206, C, "AP", 568_491_278, 3_819_787_759, 1284),
        (15.0209, S, "A", 3_819_787_759, 568_492_562, 0),
        (15.2331, S, "AP", 3_819_787_759, 568_492_562, 245),
        (15.2331, S, "AP", 3_819_788_004, 568_492_562, 29),
        (15.2331, C, "A", 568_492_562, 3_819_788_033, 0),
        (15.2331, S, "AP", 3_819_788_033, 568_492_562, 29),
        (15.2331, S, "AP", 3_819_788_062, 568_492_562, 29),
        (15.2331, S, "AP", 3_819_788_091, 568_492_562, 29),
        (15.2331, S, "AP", 3_819_788_120, 568_492_562, 29),
        (15.2331, C, "A", 568_492_562, 3_819_788_149, 0),
        (15.2335, S, "AP", 3_819_788_149, 568_492_562, 469),
        (15.2335, S, "AP", 3_819_788_618, 568_492_562, 29),
        (15.2335, S, "AP", 3_819_788_647, 568_492_562, 29),
        (15.2335, C, "A", 568_492_562, 3_819_788_676, 0),
        (15.2349, S, "AP", 3_819_788_676, 568_492_562, 29),
        (15.2349, S, "AP", 3_819_788_705, 568_492_562, 37),
        (15.2349, C, "A", 568_492_562, 3_819_788_742, 0),
        (15.2349, C, "AP", 568_492_562, 3_819_788_742, 29),
        (15.2349, C, "AF", 568_492_591, 3_819_788_742, 0),
        (15.2352, S, "A", 3_819_788_742, 568_492_592, 0),
        (15.2371, S, "AP", 3_819_788_742, 568_492_592, 29),
        (15.2371, C, "AR", 568_492_592, 3_819_788_771, 0),
    ] {
        c.packet(at, client, flags, seq, ack, len);
    }
    c
}

const SCALED: &str = "Open Conn: Syn WScale: 8 SelAck MSS:1460-Syn-Ack MSS:1460 SelAck WScale: 8 - Ack";

#[test]
fn megalodon_packet_table_normal_transactions() {
    let a = analyze(&megalodon_normal().packets);
    let c = only(&a);
    let setup = c.setup.as_ref().unwrap();
    assert_eq!(setup.description, SCALED);
    assert_eq!(setup.outcome, "OK");
    assert!(near(setup.response_seconds, 0.0027));
    assert!(near(setup.end_seconds, 0.0027));
    let close = c.close.as_ref().unwrap();
    assert_eq!(close.kind, "CLIENT_FIN", "cltF cR");
    assert_eq!(c.turns, 4, "trips");
    assert!(
        (c.duration_seconds - 0.3818).abs() < 1e-9,
        "the connections table has 0.3819"
    );
    let (cs, sc) = (
        c.client_to_server.as_ref().unwrap(),
        c.server_to_client.as_ref().unwrap(),
    );
    assert_eq!((cs.packets, sc.packets), (15, 20), "as the connections table has them");
    assert_eq!(
        (cs.payload_bytes, sc.payload_bytes),
        (127 + 158 + 1462 + 29, 3031 + 51 + 983 + 29)
    );
    assert_eq!((cs.retransmitted_packets, sc.retransmitted_packets), (0, 0));
    let closed_after = close.time.unwrap().unix_nanos() - c.first_packet_time.unwrap().unix_nanos();
    assert_eq!(closed_after, 379_600_000, "Closing is the FIN: 15.2349");

    // Bytes of request and response; s of request, server, response, end.
    let expected = [
        (SCALED, "SETUP", [0, 0], [0.0, 0.0027, 0.0, 0.0027]),
        (
            "Request: blk[127]-blk[3xxx]",
            "DATA",
            [127, 3031],
            [0.0, 0.1567, 0.0006, 0.1573],
        ),
        (
            "Request: blk[158]-blk[6]; blk[4x]",
            "DATA",
            [158, 51],
            [0.0, 0.0025, 0.0, 0.0025],
        ),
        (
            "Request: blk[178]; blk[1284]-blk[2xx]; blk[2x] (5); blk[4xx]; blk[2x] (3); blk[3x]",
            "DATA",
            [1462, 983],
            [0.0006, 0.2125, 0.0018, 0.2143],
        ),
        (
            "Request: blk[29]; conn half closed--blk[2x]",
            "CLOSE",
            [29, 29],
            [0.0, 0.0022, 0.0, 0.0022],
        ),
    ];
    assert_eq!(a.transactions.len(), expected.len(), "{:#?}", a.transactions);
    for (i, (t, e)) in a.transactions.iter().zip(expected).enumerate() {
        assert_eq!((t.index, t.signature.as_str(), t.kind.as_str()), (i as u32, e.0, e.1));
        assert_eq!([t.request_bytes, t.response_bytes], e.2, "{}", e.0);
        let times = [
            Some(t.request_seconds),
            t.server_seconds,
            t.response_seconds,
            t.end_seconds,
        ];
        assert!(
            times.iter().zip(e.3).all(|(time, s)| near(*time, s)),
            "{}: {times:?}",
            e.0
        );
        assert!(!t.overlapped && t.losses == 0);
    }
    let kinds: Vec<_> = a.findings.iter().map(|f| f.kind.as_str()).collect();
    assert_eq!(kinds, ["ABORTIVE_CLOSE"]);
}

/// SYNs (with or without window scale), the SYN-ACK if there is one, a RST if there is one.
fn handshake(syns: &[(f64, Option<u8>)], syn_ack: Option<(f64, Option<u8>)>, reset: Option<f64>) -> v1::Analysis {
    let mut c = Conversation::new(50_823);
    for (at, scale) in syns {
        c.syn(*at, C, 100, 0, *scale);
    }
    if let Some((at, scale)) = syn_ack {
        c.syn(at, S, 900, 101, scale);
        c.packet(at, C, "A", 101, 901, 0);
    }
    if let Some(at) = reset {
        c.packet(at, S, "AR", 0, 101, 0);
    }
    analyze(&c.packets)
}

fn check(a: &v1::Analysis, outcome: &str, text: &str, response: Option<f64>, end: Option<f64>, close: &str) {
    let c = only(a);
    let s = c.setup.as_ref().unwrap();
    assert_eq!((s.outcome.as_str(), s.description.as_str()), (outcome, text));
    let same = |a: Option<f64>, b: Option<f64>| a.is_some() == b.is_some() && b.is_none_or(|b| near(a, b));
    assert!(same(s.response_seconds, response), "{:?}", s.response_seconds);
    assert!(same(s.end_seconds, end), "{:?}", s.end_seconds);
    assert_eq!(c.close.as_ref().unwrap().kind, close);
    assert_eq!(a.transactions[0].signature, text);
    assert_eq!(a.transactions[0].kind, "SETUP");
}

#[test]
fn lost_syn_connections() {
    let w = Some(8);
    let unscaled = "Open Conn: Syn WScale: 8 SelAck MSS:1460-Syn-Ack MSS:1460 SelAck - Ack";
    let three = handshake(&[(0.0, w), (3.0, w)], Some((3.0005, w)), None);
    check(&three, "RETRANSMITTED", SCALED, Some(0.0005), Some(3.0005), "OPEN");
    let six = handshake(&[(0.0, w), (3.0, w)], Some((6.0, w)), None);
    check(&six, "RETRANSMITTED", SCALED, Some(3.0), Some(6.0), "OPEN");
    let nine = handshake(&[(0.0, w), (3.0, w), (9.0, None)], Some((9.0005, None)), None);
    check(&nine, "RETRANSMITTED", unscaled, Some(0.0005), Some(9.0005), "OPEN");
    let twelve = handshake(&[(0.0, w), (3.0, w), (9.0, None)], Some((12.0, None)), None);
    check(&twelve, "RETRANSMITTED", unscaled, Some(3.0), Some(12.0), "OPEN");
    let sent = only(&twelve).client_to_server.as_ref().unwrap();
    assert_eq!(sent.retransmitted_packets, 2, "repeated SYNs are retransmissions");
}

/// The 3, 6, 9, 12 and 21 second setups, and those that were reset after a minute: what was lost.
#[test]
fn the_sentence_about_each_slow_setup() {
    let w = Some(8);
    let explained = |syns: &[(f64, Option<u8>)], answer, reset| {
        let a = handshake(syns, answer, reset);
        only(&a).setup.as_ref().unwrap().explanation.clone()
    };
    let all = [(0.0, w), (3.0, w), (9.0, None)];
    let three = explained(&all[..2], Some((3.0005, w)), None);
    assert_eq!(
        three,
        "The first SYN was unanswered for 3.0 s: lost between the tap and the server, or its SYN-ACK on the way back to the tap; nothing tells which."
    );
    let six = explained(&all[..2], Some((6.0, w)), None);
    assert!(
        six.ends_with("The SYN-ACK came 3.0 s after the last SYN: the server's timer sent it again, so one before it was lost between the server and the tap."),
        "{six}"
    );
    // A server that never scales may have had any of the SYNs.
    let behind = |scale, answer: f64| {
        let mut before = Conversation::new(50_822);
        before.syn(0.0, C, 100, 0, w);
        before.syn(0.0005, S, 900, 101, scale);
        before.packet(0.001, C, "A", 101, 901, 0);
        let mut c = Conversation::new(50_823);
        for (at, scale) in all {
            c.syn(0.1 + at, C, 100, 0, scale);
        }
        c.syn(0.1 + answer, S, 900, 101, None);
        c.packet(0.1 + answer, C, "A", 101, 901, 0);
        before.packets.append(&mut c.packets);
        let a = analyze(&before.packets);
        let slow = a.connections.iter().find(|c| c.client.as_ref().unwrap().port == 50_823);
        slow.unwrap().setup.as_ref().unwrap().explanation.clone()
    };
    let nine = behind(w, 9.0005);
    assert_eq!(
        nine,
        "The last SYN had no window scale, and neither had the SYN-ACK, although the server answers a scale with one: it knew only that SYN, so the first 2 SYNs were lost between the tap and the server (9.0 s)."
    );
    let open = behind(None, 9.0005);
    assert!(open.ends_with("nothing tells which."), "{open}");
    let twelve = behind(w, 12.0);
    assert!(
        twelve.starts_with(&nine) && twelve.contains("The SYN-ACK came 3.0 s after"),
        "{twelve}"
    );
    let scaled = explained(&all, Some((9.0005, w)), None);
    assert!(
        scaled.starts_with("The server had an earlier SYN when the last one came (its SYN-ACK has the window scale"),
        "{scaled}"
    );
    let ignored = explained(&all, None, None);
    assert!(ignored.starts_with("None of 3 SYNs in 9.0 s was answered"), "{ignored}");
    assert!(
        ignored.ends_with("nothing shows that it knew of the connection."),
        "{ignored}"
    );
    let reset = explained(&all, None, Some(72.652));
    assert_eq!(
        reset,
        "None of 3 SYNs was answered, and 63.7 s after the last one the server reset the connection: it had held it half open, so SYNs arrived and its SYN-ACKs were lost between the server and the tap."
    );
    assert_eq!(explained(&all[..1], Some((0.0005, w)), None), "", "nothing came again");
    // The SYN-ACK passes the tap; the client goes on asking, then has got one or has not.
    let asked_again = |is_answered| {
        let mut c = Conversation::new(50_823);
        for at in [0.0, 1.0, 3.0] {
            c.syn(at, C, 100, 0, w);
            c.syn(at + 0.0005, S, 900, 101, w);
        }
        if is_answered {
            c.packet(3.001, C, "A", 101, 901, 0);
        }
        let a = analyze(&c.packets);
        only(&a).setup.as_ref().unwrap().explanation.clone()
    };
    let got = asked_again(true);
    assert!(
        got.ends_with("the SYN-ACK was lost between the tap and the client."),
        "{got}"
    );
    let never = asked_again(false);
    assert!(never.contains("half open") && never.contains("a filter"), "{never}");
    // What failed without a repeat says so, too.
    let refusal = "The server answered by a reset: nothing listens on that port, or a firewall refuses it.";
    assert_eq!(explained(&all[..1], None, Some(0.0003)), refusal);
    let at_last = explained(&all[..2], None, Some(3.0003));
    assert!(
        at_last.starts_with("The first SYN was") || at_last.starts_with("None of 2 SYNs"),
        "{at_last}"
    );
    assert!(at_last.ends_with(refusal), "{at_last}");
    let alone = explained(&all[..1], None, None);
    assert!(alone.starts_with("No answer to the SYN passed the tap"), "{alone}");
}

#[test]
fn ignored_and_reset_connections() {
    let w = Some(8);
    let syns = [(0.0, w), (3.0, w), (9.0, None)];
    let ignored = handshake(&syns, None, None);
    let text = "Open Conn: Syn WScale: 8 SelAck MSS:1460--> ignored";
    check(&ignored, "IGNORED", text, None, Some(21.0), "IGNORED");
    let reset = handshake(&syns, None, Some(72.652));
    let text = "Open Conn: Syn WScale: 8 SelAck MSS:1460--Reset";
    check(&reset, "RESET_LATE", text, Some(63.652), Some(72.652), "REFUSED");
    let refused = handshake(&syns[..1], None, Some(0.0003));
    check(&refused, "REFUSED", text, Some(0.0003), Some(0.0003), "REFUSED");

    let f = &reset.findings[0];
    assert_eq!(
        (f.kind.as_str(), f.severity.as_str()),
        ("FAILED_CONNECTIONS", "CRITICAL")
    );
    let value = |f: &v1::Finding, name: &str| match &f.values[name].value {
        Some(v1::finding_value::Value::Number(n)) => *n,
        other => panic!("{other:?}"),
    };
    assert_eq!(value(f, "reset"), 1.0);
    assert_eq!(value(&ignored.findings[0], "ignored"), 1.0);
    assert_eq!(value(&ignored.findings[0], "connections"), 1.0);
    assert_eq!(value(&refused.findings[0], "refused"), 1.0);
    assert!(
        f.evidence.iter().any(|e| e.contains("without window scale")),
        "{:?}",
        f.evidence
    );
}

/// Whether a SYN is ignored shows when its timer has run out (3 s in RFC 2988 2.1), and not before.
#[test]
fn a_syn_at_the_end_of_the_input_is_not_ignored_yet() {
    let ends_after = |after: f64| {
        let mut c = Conversation::new(50_901);
        c.syn(0.0, C, 100, 0, Some(8));
        let mut other = Conversation::new(50_902);
        other.syn(after, C, 100, 0, Some(8));
        let mut packets = c.packets;
        packets.extend(other.packets);
        let a = analyze(&packets);
        let close = a
            .connections
            .iter()
            .find(|c| c.client.as_ref().unwrap().port == 50_901)
            .unwrap();
        (close.close.as_ref().unwrap().kind.clone(), a.findings.len())
    };
    assert_eq!(ends_after(2.9), ("OPEN".to_owned(), 0));
    assert_eq!(ends_after(3.1), ("IGNORED".to_owned(), 1));
}

#[test]
fn syn_answered_by_data_without_a_syn_ack() {
    let mut c = Conversation::new(50_900);
    c.syn(0.0, C, 100, 0, Some(8));
    c.packet(0.779, S, "A", 901, 101, 1460);
    c.packet(0.779, S, "A", 2361, 101, 1460);
    c.packet(0.779, C, "A", 101, 3821, 0);
    let a = analyze(&c.packets);
    let text = "Open Conn: Syn WScale: 8 SelAck MSS:1460-- - Ack";
    check(&a, "OK", text, Some(0.779), Some(0.779), "OPEN");
}

/// Every signature of the statistics tables.
const SIGNATURES: &str = "\
Request: blk[127]-blk[3xxx]
Request: blk[158]-blk[6]; blk[4x]
Request: blk[29]; conn half closed--blk[2x]
Request: blk[178]; blk[1284]-blk[2xx]; blk[2x] (5); blk[4xx]; blk[2x] (3); blk[3x]
Request: blk[170]; blk[1284]-blk[4xx]; blk[2x] (5); blk[4xx]; blk[2x] (3); blk[3x]
Request: blk[138]; blk[1284]-blk[2xx]; blk[2x]; blk[3x]
Request: blk[202]; blk[1284]-blk[2xx]; blk[2x]; blk[3x]
Request: blk[158]-blk[5x]
Request: blk[29]; conn half closed; conn already half closed by client--blk[2x]
Request: blk[154]; blk[1284]-blk[4xx]; blk[2x] (5); blk[3xxxx]; blk[2x] (6); blk[1xxxx]; blk[2x] (2); blk[3x]
Request: blk[178]; blk[1284]-blk[2xx]; blk[2x] (4); blk[4xx]; blk[2x] (2); blk[3x]
Request: blk[170]; blk[1284]-blk[4xx]; blk[2x] (4); blk[4xx]; blk[2x] (3); blk[3x]
Request: blk[154]; blk[1284]-blk[4xx]; blk[2x] (5); blk[3xxxx]; blk[2x] (7); blk[1xxxx]; blk[2x] (2); blk[3x]
Request: blk[178]; blk[1284]-blk[2xx]; blk[2x] (5); blk[4xx]; blk[2x] (2); blk[3x]
Request: blk[202]; blk[1284]-blk[2xx]; blk[3x]
Request: blk[138]; blk[1284]-blk[2xx]; blk[3x]
Request: blk[170]; blk[1284]-blk[4xx]; blk[2x] (5); blk[4xx]; blk[2x] (3); blk[3x]; blk[2x]
Request: blk[178]; blk[1284]-blk[2xx]; blk[2x] (5); blk[4xx]; blk[2x] (3); blk[3x]; blk[2x]
Request: blk[178]; blk[1284]-blk[2xx]; blk[2x] (5); blk[4xx]; blk[2x] (2); blk[6x]
Request: blk[29]-blk[2x]
Request: blk[127]; blk[158]-blk[3xxx]; blk[6]; blk[4x]
Request: blk[170]; blk[1284]-blk[4xx]; blk[2x] (5); blk[4xx]; blk[2x] (2); blk[6x]
Request: blk[154]; blk[1284]-blk[4xx]; blk[2x] (5); blk[3xxxx]; blk[2x] (5); blk[1xxxx]; blk[2x] (2); blk[3x]
Request: blk[138]; blk[1284]-blk[2xx]; blk[2x]; blk[3x]; blk[2x]
Request: blk[138]; blk[1284]-blk[2xx]; blk[6x]
Request: blk[202]; blk[1284]-blk[2xx]; blk[6x]
Request: blk[157]-blk[6]; blk[4x]
Request: blk[202]; blk[1284]-blk[2xx]; blk[2x]; blk[3x]; blk[2x]
Request: blk[154]; blk[1284]-blk[4xx]; blk[2x] (5); blk[3xxxx]; blk[2x] (6); blk[1xxxx]; blk[2xxx]; blk[2x] (2); ...
Request: blk[326]-blk[5x]
Request: blk[267]; blk[59]-blk[5x]
Request: blk[93]-blk[1xx]
Request: blk[6]; blk[378]; blk[37]; conn half closed--blk[2xxx]
Request: blk[6]; blk[415]; conn half closed--blk[2xxx]
Request: blk[61]-blk[4xxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[5xxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[7xxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[1xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[2xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[3xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[4xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[6xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[6xxxx]; blk[2xxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[6xxxx]; blk[5xxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[6xxxx]; blk[7xxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[7xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[6xxxx]; blk[1xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[8xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[9xxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[1xxxxx]
Request: blk[37]; blk[325]; blk[37]; conn half closed--blk[2xxxxx]
Request: blk[6]; blk[378]-blk[1xxxxx]; blk[1xxxxx]
Request: blk[37]; blk[325]-blk[1xxxxx]; blk[6xxxx]; blk[6xxxx]; blk[2xxxx]
Request: blk[325]-blk[1xxxxx]; blk[7xxxx]; blk[7xxxx]
Request: blk[6]; blk[378]-blk[1xxxxx]; blk[3xxxx]; blk[1xxxxx]
Request: blk[37]; blk[325]-blk[1xxxxx]; blk[6xxxx] (2); blk[2xxxx]
Request: blk[6]; blk[378]-blk[6xxxx]; blk[2xxxxx]
Request: blk[37]; blk[325]-blk[1xxxxx]; blk[1xxxxx]; blk[2xxxx]
Request: blk[325]-blk[1xxxxx]; blk[4xxx]; blk[1xxxxx]
Request: blk[325]-blk[2xxxxx]; blk[2xxxx]";

/// Sizes of a printed list; x becomes a digit that differs from block to block.
fn sizes(list: &str) -> Vec<u32> {
    let mut out = Vec::new();
    for (i, item) in list.split("; ").enumerate() {
        if item == "..." {
            out.extend([31, 32]); // what the printed list leaves out
            continue;
        }
        let (size, count) = match item.split_once(" (") {
            Some((size, count)) => (size, count.trim_end_matches(')').parse().unwrap()),
            None => (item, 1),
        };
        let digits = size.trim_start_matches("blk[").trim_end_matches(']');
        let digits = digits.replace('x', &(i % 10).to_string());
        out.extend(std::iter::repeat_n(digits.parse::<u32>().unwrap(), count));
    }
    out
}

#[test]
fn every_signature_of_the_statistics_tables() {
    let mut count = 0;
    for line in SIGNATURES.lines() {
        let text = line.strip_prefix("Request: ").unwrap();
        let (half, again) = (text.contains("; conn half closed"), text.contains("; conn already"));
        let (request, response) = if half {
            text.split_once("--").unwrap()
        } else {
            text.split_once('-').unwrap()
        };
        let request = request.split("; conn").next().unwrap();
        let mut c = Conversation::new(51_000);
        let (mut cl, mut sv, mut at) = (101u32, 901u32, 0.0);
        c.syn(0.0, C, 100, 0, Some(8));
        c.syn(0.001, S, 900, 101, Some(8));
        c.packet(0.002, C, "A", 101, 901, 0);
        for size in sizes(request) {
            at += 0.01;
            c.packet(at, C, "AP", cl, sv, size);
            cl += size;
        }
        for _ in 0..usize::from(half) + usize::from(again) {
            at += 0.01;
            c.packet(at, C, "AF", cl, sv, 0);
        }
        let acked = cl + u32::from(half);
        for size in sizes(response) {
            at += 0.01;
            c.packet(at, S, "AP", sv, acked, size);
            sv += size;
            c.packet(at, C, "A", acked, sv, 0);
        }
        let a = analyze(&c.packets);
        assert_eq!(a.transactions.len(), 2, "{line}");
        assert_eq!(a.transactions[1].signature, line);
        count += 1;
    }
    assert_eq!(count, 60);
}

/// Seconds after 20:30:00 of the server-side trace over the long pipe, relative sequence numbers.
#[test]
fn long_pipe_round_trips() {
    let mut c = Conversation::new(50_497);
    c.syn(35.836_154, C, 0, 0, Some(8));
    c.syn(35.836_306, S, 0, 1, Some(8));
    c.packet(36.005_644, C, "A", 1, 1, 0);
    let rtt = |d: &Option<v1::Direction>| d.as_ref().unwrap().rtt.unwrap();
    let a = analyze(&c.packets);
    let shook = only(&a);
    assert!((rtt(&shook.client_to_server).min_seconds.unwrap() - 0.000_152).abs() < 1e-9);
    assert!((rtt(&shook.server_to_client).min_seconds.unwrap() - 0.169_338).abs() < 1e-8);

    c.packet(36.005_644, C, "AP", 1, 1, 167);
    for i in 0..10 {
        c.packet(36.006_750, S, "A", 1 + 1460 * i, 168, 1460);
    }
    for i in 1..=5 {
        c.packet(36.175_081, C, "A", 168, 1 + 2920 * i, 0);
    }
    let a = analyze(&c.packets);
    let c = only(&a);
    assert!((rtt(&c.client_to_server).min_seconds.unwrap() - 0.000_152).abs() < 1e-9);
    assert!((rtt(&c.server_to_client).min_seconds.unwrap() - 0.168_331).abs() < 1e-8);
    assert!((rtt(&c.server_to_client).p95_seconds.unwrap() - 0.169_338).abs() < 1e-8);
    let down = c.server_to_client.as_ref().unwrap();
    assert_eq!(down.max_in_flight, 14_600);
    // "A lifetime of doing nothing": the server took 1.1 ms for the response, the network more than 168 ms.
    let request = a.transactions.iter().find(|t| t.index == 1).unwrap();
    let shares = request.shares.unwrap();
    assert!(
        (shares.server_processing_seconds - (0.001_106 - 0.000_152)).abs() < 1e-6,
        "{shares:?}"
    );
    assert!(shares.latency_seconds.unwrap() > 0.000_15, "{shares:?}");
    let setup = a.transactions.iter().find(|t| t.index == 0).unwrap().shares.unwrap();
    assert!((setup.latency_seconds.unwrap() - 0.169_490).abs() < 1e-6, "{setup:?}");
}

/// Seconds after 18:00:00.
#[test]
fn duplicate_acks_with_sack_edges_and_the_fast_retransmission() {
    let mut c = Conversation::new(51_039);
    c.syn(6.375_549, C, 0, 0, Some(8));
    c.syn(7.380_461, S, 0, 1, Some(8));
    c.packet(7.380_581, C, "A", 1, 1, 0);
    for i in 0..4 {
        c.packet(7.386_768, C, "A", 1 + 1460 * i, 1, 1460);
    }
    c.packet(7.388_096, S, "A", 1, 2921, 0);
    c.packet(7.388_096, S, "A", 1, 5841, 0);
    for i in 4..12 {
        c.packet(7.388_122, C, "A", 1 + 1460 * i, 1, 1460);
    }
    c.packet(7.389_123, C, "A", 17_521, 1, 1460);
    for ack in [8761, 11_681, 14_601, 17_521] {
        c.packet(7.389_418, S, "A", 1, ack, 0);
    }
    for i in 13..16 {
        c.packet(7.390_000, C, "A", 1 + 1460 * i, 1, 1460); // what the SACKs speak of
    }
    for right in [20_441, 21_901, 23_361] {
        c.sack(7.391_073, S, 1, 17_521, &[(18_981, right)]);
    }
    c.packet(7.391_117, C, "A", 17_521, 1, 1460);
    let a = analyze(&c.packets);
    let c = only(&a);
    let setup = c.setup.as_ref().unwrap();
    assert_eq!(
        (setup.outcome.as_str(), setup.syn_count),
        ("OK", 1),
        "slow, and no packet of the trace says why"
    );
    assert!(near(setup.response_seconds, 1.004_912));
    let (cs, sc) = (
        c.client_to_server.as_ref().unwrap(),
        c.server_to_client.as_ref().unwrap(),
    );
    assert_eq!((cs.retransmitted_packets, cs.fast_retransmissions), (1, 1));
    assert_eq!(
        (cs.retransmitted_bytes, cs.lost_downstream, cs.lost_upstream),
        (1460, 1, 0)
    );
    assert_eq!((sc.duplicate_acks, sc.sack_blocks), (3, 3));
    assert_eq!(cs.unknown_retransmissions + cs.spurious_retransmissions, 0);
}

/// Seconds after 15:41:00: the SYN-ACK left the server and did not reach the client.
#[test]
fn syn_ack_lost_between_server_and_client_in_two_captures() {
    let trace = |server_side: bool| {
        let mut c = Conversation::new(49_713);
        c.syn(16.157_828, C, 0, 0, Some(8));
        if server_side {
            c.syn(16.157_994, S, 0, 1, Some(8));
        }
        c.syn(17.164_414, S, 0, 1, Some(8));
        c.packet(17.165_840, C, "A", 1, 1, 0);
        analyze(&c.packets)
    };
    let (near_server, near_client) = (trace(true), trace(false));
    let setup = |a: &v1::Analysis| only(a).setup.clone().unwrap();
    assert_eq!(
        (setup(&near_server).syn_ack_count, setup(&near_client).syn_ack_count),
        (2, 1)
    );
    assert_eq!(setup(&near_server).outcome, "RETRANSMITTED");
    assert_eq!(
        only(&near_server)
            .server_to_client
            .as_ref()
            .unwrap()
            .retransmitted_packets,
        1
    );
    assert!(near(setup(&near_server).response_seconds, 0.000_166));
    assert!(near(setup(&near_client).response_seconds, 1.006_586));
}

/// Seconds after 15:41:17, server side: retransmission in the middle of a full flight.
#[test]
fn fast_retransmission_of_a_download() {
    let mut c = Conversation::new(49_713);
    c.syn(0.0, C, 0, 0, Some(8));
    c.syn(0.000_166, S, 0, 1, Some(8));
    c.packet(0.001_592, C, "A", 1, 1, 0);
    c.packet(0.160_0, C, "AP", 1, 1, 167);
    for i in 0..28 {
        c.packet(0.168_116, S, "A", 1 + 1460 * i, 168, 1460);
    }
    c.packet(0.168_352, C, "A", 168, 20_441, 0);
    for i in 28..44 {
        c.packet(0.168_547, S, "A", 1 + 1460 * i, 168, 1460);
    }
    for right in [33_581, 35_041, 36_501] {
        c.sack(0.168_722, C, 168, 30_661, &[(32_121, right)]);
    }
    c.packet(0.168_742, S, "A", 64_241, 168, 1460);
    c.packet(0.168_747, S, "A", 65_701, 168, 1460);
    c.sack(0.168_753, C, 168, 30_661, &[(32_121, 37_961)]);
    c.packet(0.168_757, S, "A", 30_661, 168, 1460);
    let a = analyze(&c.packets);
    let c = only(&a);
    let (cs, sc) = (
        c.client_to_server.as_ref().unwrap(),
        c.server_to_client.as_ref().unwrap(),
    );
    assert_eq!(
        (sc.retransmitted_packets, sc.fast_retransmissions, sc.lost_downstream),
        (1, 1, 1)
    );
    assert_eq!((cs.duplicate_acks, cs.sack_blocks), (3, 4));
    let rate = a.summary.as_ref().unwrap().retransmission_rate.as_ref().unwrap();
    assert_eq!((rate.data_packets, rate.retransmitted_packets), (48, 1));
    assert!(a.findings.iter().any(|f| f.kind == "RETRANSMISSION_RATE"));
    assert_eq!(a.transactions[1].losses, 1);
}

/// Seconds after 19:47:00: ten segments in one go, and their ACK. The windows are printed as 1026 and 8195 times 256.
#[test]
fn data_flow_in_action() {
    let mut c = Conversation::new(50_006);
    c.syn(39.510_548, C, 0, 0, Some(8)).flags |= tcp_flag::ECE | tcp_flag::CWR;
    let answer = c.syn(39.511_748, S, 0, 1, Some(8));
    answer.flags |= tcp_flag::ECE;
    (answer.window, answer.options.mss) = (65_535, 8960);
    c.packet(39.511_807, C, "A", 1, 1, 0);
    for i in 0..10 {
        c.packet(40.032_755, C, "A", 1 + 1460 * i, 1, 1460);
    }
    c.packet(40.034_547, S, "A", 1, 14_601, 0).window = 8195;
    let a = analyze(&c.packets);
    let c = only(&a);
    let setup = c.setup.as_ref().unwrap();
    assert_eq!(
        setup.description,
        "Open Conn: Syn WScale: 8 SelAck MSS:1460-Syn-Ack MSS:8960 SelAck WScale: 8 - Ack"
    );
    let [client, server] = [setup.client_options.unwrap(), setup.server_options.unwrap()];
    assert_eq!((client.window, server.window), (64_240, 65_535));
    assert!(client.ecn && server.ecn, "[SYN, ECE, CWR] and [SYN, ACK, ECE]");
    assert!(near(setup.response_seconds, 0.001_2));
    let (cs, sc) = (
        c.client_to_server.as_ref().unwrap(),
        c.server_to_client.as_ref().unwrap(),
    );
    assert_eq!((cs.max_window, sc.max_window), (Some(262_656), Some(2_097_920)));
    assert_eq!((cs.payload_bytes, cs.max_in_flight), (14_600, 14_600));
    assert!((cs.rtt.unwrap().min_seconds.unwrap() - 0.001_2).abs() < 1e-8);
    assert!((cs.rtt.unwrap().p95_seconds.unwrap() - 0.001_792).abs() < 1e-8);
}

/// A download of so many segments, some of which are lost behind the tap and sent again.
fn with_repeats(segments: u32, repeats: u32) -> v1::Analysis {
    let mut c = Conversation::new(49_713);
    c.syn(0.0, C, 0, 0, Some(8));
    c.syn(0.000_166, S, 0, 1, Some(8));
    c.packet(0.001_592, C, "A", 1, 1, 0);
    c.packet(0.002, C, "AP", 1, 1, 167);
    let mut at = 0.003;
    let new = segments - repeats;
    for i in 0..new {
        let seq = 1 + 1460 * i;
        c.packet(at, S, "A", seq, 168, 1460);
        at += 0.000_02;
        // Evenly spread, and not the last one.
        if (i + 1) * repeats / new > i * repeats / new {
            c.packet(at + 0.000_2, C, "A", 168, seq, 0);
            c.packet(at + 0.3, S, "A", seq, 168, 1460);
            at += 0.3;
        }
        at += 0.001;
        c.packet(at, C, "A", 168, seq + 1460, 0);
    }
    analyze(&c.packets)
}

/// "8041 out of 554433 packets were retransmitted this works out to 1.5 %", on a hundredth of them; "anything over 0.5 % packet loss
/// you will see severe performance degradation"; and "you see no packet loss".
#[test]
fn one_and_a_half_percent_is_told_and_half_a_percent_is_the_line() {
    for (repeats, told) in [(80, true), (28, true), (27, false), (0, false)] {
        let a = with_repeats(5544, repeats);
        let rate = a.summary.as_ref().unwrap().retransmission_rate.unwrap();
        assert_eq!(
            (rate.data_packets, rate.retransmitted_packets),
            (5545, u64::from(repeats)),
            "with the request"
        );
        let found = a.findings.iter().find(|f| f.kind == "RETRANSMISSION_RATE");
        assert_eq!(found.is_some(), told, "{repeats}");
        if let Some(found) = found.filter(|_| repeats == 80) {
            let Some(v1::finding_value::Value::Number(rate)) = found.values["rate"].value else {
                panic!("{found:?}")
            };
            assert!((rate - 8041.0 / 554_433.0).abs() < 0.000_1, "{rate}");
            assert_eq!(found.severity, "WARNING");
        }
    }
}

/// Light needs 21.2046695 ms for 6,357 km in empty space, 42.409 ms there and back. In fibre it comes as far as 4,241 km
/// in that time: ten turns over it cannot be faster, whatever the link.
#[test]
fn the_laws_of_physics_beside_a_transfer_of_turns() {
    let trip: f64 = 2.0 * 6357.0 / 299_792.458;
    assert!((trip / 2.0 - 0.021_204_669_5).abs() < 1e-9);
    let mut c = Conversation::new(50_007);
    c.syn(0.0, C, 0, 0, Some(8));
    c.syn(trip, S, 0, 1, Some(8));
    c.packet(trip, C, "A", 1, 1, 0);
    let mut at = trip;
    for i in 0..30 {
        c.packet(at, C, "AP", 1 + 100 * i, 1 + 1000 * i, 100);
        at += trip;
        c.packet(at, S, "AP", 1 + 1000 * i, 101 + 100 * i, 1000);
    }
    let a = analyze(&c.packets);
    let bound = a.findings.iter().find(|f| f.kind == "LATENCY_BOUND").unwrap();
    let number = |key: &str| match bound.values[key].value {
        Some(v1::finding_value::Value::Number(number)) => number,
        ref other => panic!("{other:?}"),
    };
    assert!((number("rttSeconds") - trip).abs() < 2e-6);
    assert!((number("lightKilometres") - 6357.0 * 200_000.0 / 299_792.458).abs() < 1.0);
}

/// How each setup went, how its connection was closed, and whether it failed.
#[derive(Default)]
struct Failed(Vec<(String, String, bool)>, Vec<v1::Finding>);

impl Sink for Failed {
    fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
        let outcome = connection.outcome().unwrap_or_default().to_owned();
        self.0
            .push((outcome, connection.close_kind().to_owned(), connection.failed()));
    }

    fn transaction(&mut self, _: &weir_analysis::Transaction<'_>) {}

    fn finding(&mut self, finding: v1::Finding) {
        self.1.push(finding);
    }
}

/// What a connection says of itself is what the finding counts.
#[test]
fn a_setup_that_its_client_reset_at_once_has_not_failed() {
    let mut packets = Vec::new();
    // By the server before and behind its SYN-ACK, and by the client there, at once and late.
    for (port, answered, client, at) in [
        (40_001, false, S, 0.02),
        (40_002, true, S, 0.04),
        (40_003, true, C, 0.04),
        (40_004, true, C, 5.0),
    ] {
        let mut c = Conversation::new(port);
        c.syn(0.0, C, 100, 0, Some(8));
        if answered {
            c.syn(0.02, S, 900, 101, Some(8));
        }
        match client {
            C => c.packet(at, C, "R", 101, 0, 0),
            S => c.packet(at, S, "RA", if answered { 901 } else { 0 }, 101, 0),
        };
        packets.extend(c.packets);
    }
    let mut failed = Failed::default();
    let mut analyzer = Analyzer::new(Config::default());
    analyzer.push(&records(&packets, EngineConfig::file()), &mut failed);
    analyzer.finish(&mut failed);
    let Failed(mut all, findings) = failed;
    all.sort();
    let all: Vec<_> = all
        .iter()
        .map(|(setup, close, failed)| (&**setup, &**close, *failed))
        .collect();
    assert_eq!(
        all,
        [
            ("REFUSED", "CLIENT_RST", false),
            ("REFUSED", "REFUSED", true),
            ("REFUSED", "SERVER_RST", true),
            ("RESET_LATE", "CLIENT_RST", true),
        ]
    );
    let finding = findings.iter().find(|f| f.kind == "FAILED_CONNECTIONS").unwrap();
    assert_eq!(finding.connection_ids.len(), 3);
}
