//! The filter language against connections, transactions and findings.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use proptest::prelude::*;
use weir_api::filter::{Field, Fields, Filter, Kind, Order};
use weir_messages::v1::{Close, Connection, Direction, Endpoint, Finding, Rtt, Segment, Setup, Transaction};

fn connection() -> Connection {
    Connection {
        id: u64::MAX,
        client: Some(Endpoint {
            address: "10.0.0.1".into(),
            port: 40_000,
        }),
        server: Some(Endpoint {
            address: "2001:db8::1".into(),
            port: 443,
        }),
        first_packet_time: Some("2026-01-31T12:00:00.5Z".parse().unwrap()),
        setup: Some(Setup {
            outcome: "OK".into(),
            description: "Open Conn: Syn WScale: 8 - \"Ack\" *".into(),
            missing: vec!["SACK".into(), "window scale".into()],
            ..Setup::default()
        }),
        close: Some(Close {
            kind: "CLIENT_FIN".into(),
            time: None,
        }),
        duration_seconds: 0.25,
        turns: 3,
        server_to_client: Some(Direction {
            packets: 100,
            retransmitted_packets: 2,
            rtt: Some(Rtt {
                median_seconds: Some(0.0003),
                ..Rtt::default()
            }),
            ..Direction::default()
        }),
        vlans: vec![10, 20],
        ..Connection::default()
    }
}

fn holds(filter: &str) -> bool {
    Filter::parse(filter)
        .unwrap_or_else(|error| panic!("{filter}: {error}"))
        .matches(&connection())
}

#[test]
fn filters_that_hold() {
    for filter in [
        "",
        "  ",
        r#"client.address = "10.0.0.1" AND server_to_client.retransmitted_packets > 0"#,
        "serverToClient.retransmittedPackets >= 2",
        "client.address=10.0.0.1",
        "client.address = 10.0.*",
        "client.address = *.1",
        "client.address = 1*.0.*1",
        "client.address != 10.0.0.2",
        "client.address < 10.0.0.10",
        "server.address = 2001:db8::1",
        "id = 18446744073709551615",
        "id > 18446744073709551614",
        "turns = 3",
        "turns != 4",
        "turns < 3.5",
        "turns > -1",
        "duration_seconds = 0.25",
        "duration_seconds = 250ms",
        "durationSeconds<=0.25s",
        "duration_seconds < 1m",
        "server_to_client.rtt.median_seconds >= 300us",
        "server_to_client.rtt.median_seconds < 0.4ms",
        "server_to_client.rtt.median_seconds:*",
        r#"first_packet_time > "2026-01-31T12:00:00Z""#,
        "first_packet_time = 2026-01-31T13:00:00.500+01:00",
        "vlans:10",
        "vlans:20",
        "vlans:*",
        "setup:*",
        "setup.missing:SACK",
        "setup.missing:window*",
        "close:*",
        r#"setup.description:"wscale: 8""#,
        r#"setup.description = "*- \"Ack\" \*""#,
        "setup.outcome = OK",
        "client_fin",
        "\"open conn\"",
        "-443",
        "NOT 8080",
        "NOT NOT OK",
        "turns = 9 OR turns = 3",
        "NOT turns = 9",
        "-turns = 9",
        "-(turns = 9 OR turns = 8)",
        "turns = 3 OK client_fin",
        "(((turns = 3)))",
        // OR binds tighter than AND: false AND (false OR true) would be true the other way round.
        "NOT (turns = 9 AND turns = 8 OR turns = 3)",
        "turns = 3 OR turns = 9 AND turns = 3",
    ] {
        assert!(holds(filter), "{filter}");
    }
}

#[test]
fn filters_that_do_not_hold() {
    for filter in [
        "turns = 4",
        "turns > 3",
        "client.address = 10.0.0",
        "client.address = *.2",
        "client.address = 10.0.0.1*1",
        "server_to_client.rtt.min_seconds:*",
        "vlans:30",
        "setup.missing:SAC",
        "tunnel:*",
        "close.time:*",
        // What is not set passes no comparison.
        "server_to_client.rtt.min_seconds < 1",
        "server_to_client.rtt.min_seconds != 1",
        "client_to_server.packets >= 0",
        "turns = 9 AND turns = 8 OR turns = 3",
        "turns = 3 turns = 9",
        "nothing",
        "NOT OK",
        r#"setup.description = "*- \"Ack\" \*x""#,
    ] {
        assert!(!holds(filter), "{filter}");
    }
}

#[test]
fn findings_and_their_values() {
    let finding = Finding {
        kind: "PERIODIC_LOSS".into(),
        confidence: 0.9,
        connection_ids: vec![7, 8],
        values: [
            ("periodSeconds".to_owned(), 10.0.into()),
            ("hosts".to_owned(), "10.0.0.9".into()),
            ("seconds".to_owned(), vec![0.5, 1.5].into()),
        ]
        .into(),
        ..Finding::default()
    };
    for (filter, expected) in [
        ("values.periodSeconds > 9s AND connection_ids:8", true),
        ("values.periodSeconds > 11", false),
        ("values.hosts = 10.0.*", true),
        ("values:hosts", true),
        ("values:host", false),
        ("values:*", true),
        ("values.seconds > 1", true),
        ("values.seconds > 2", false),
        ("values.nothing != 1", false),
        ("10.0.0.9", true),
        ("confidence >= 0.9", true),
    ] {
        assert_eq!(Filter::parse(filter).unwrap().matches(&finding), expected, "{filter}");
    }
    let transaction = Transaction {
        overlapped: true,
        ..Transaction::default()
    };
    assert!(
        Filter::parse("overlapped = true AND overlapped != false")
            .unwrap()
            .matches(&transaction)
    );
}

#[test]
fn errors_say_where_and_what() {
    for (filter, position, expected) in [
        ("turns = ", 9, "a value"),
        ("turns = x", 9, "a number"),
        ("é turns = x", 11, "a number"),
        ("turnz = 1", 1, "a field: id, client"),
        ("client.adress = 1", 1, "a field of it: address, port"),
        (
            "client.adress = 1",
            1,
            "; did you mean client.address or server.address?",
        ),
        ("duration > 500ms", 1, "; did you mean duration_seconds?"),
        ("tcp.port = 80", 1, "; did you mean client.port or server.port?"),
        (
            "ip.addr = 10.0.0.1",
            1,
            "; did you mean client.address or server.address?",
        ),
        ("client = 1", 8, ":* or a field of client: address, port"),
        ("turns.x = 1", 1, "no field behind turns"),
        ("vlans = 10", 7, "\":\": vlans is a list"),
        ("duration_seconds < 5 min", 22, "without a space"),
        ("duration_seconds > 0.5 s", 24, "without a space"),
        ("duration_seconds > 0.5 \"s\"", 1, ""),
        ("duration_seconds < 5min", 20, "1.5s"),
        ("turns < 5s", 9, "a number"),
        ("first_packet_time > yesterday", 21, "RFC 3339"),
        ("(turns = 3", 11, "\")\""),
        ("turns = 3)", 10, "AND, OR or the end"),
        ("AND", 1, "a field, a text"),
        ("turns = 3 AND", 14, "a field, a text"),
        ("turns = 3 OR OR", 14, "a field, a text"),
        ("!", 1, "a field, a text"),
        ("\"open", 6, "a closing \""),
        ("\"a\" = 3", 5, "without quotes"),
        ("duration_seconds = inf", 20, "seconds"),
        ("turns == 3", 8, "once"),
        ("client.address==10.0.0.1", 16, "once"),
        ("turns = 3 && OK", 11, "AND or OR"),
        ("turns = 3 || turns = 4", 11, "AND or OR"),
        ("turns = 3 and OK", 11, "AND in capitals"),
        ("turns = 3 Or OK", 11, "OR in capitals"),
        ("not turns = 3", 1, "NOT in capitals"),
        ("\"not\" nothing", 1, ""),
        ("setup.outcome IN (IGNORED)", 15, "(a = X OR a = Y)"),
        ("server.address like 10", 16, "= with *"),
        ("turns is 3", 7, "as a text it stands in quotes"),
        ("setup.outcome", 1, "comparison behind the field setup"),
        ("server.port 443", 1, "comparison behind the field server"),
        ("setup.outcom IGNORED", 1, "comparison behind the field setup"),
        ("turns = 3 turns", 11, "comparison behind the field turns"),
        ("(client.address, 3)", 2, "comparison behind the field client"),
        ("in_subnet(client.address, 10.0.0.0/8)", 1, "there are no functions"),
        ("\"setup.outcome\" \"in\" 'turns'", 1, ""),
        ("turns-over 10.0.0.1 reset (reset)", 1, ""),
        ("client.address = 10.0.0.1&&turns = 3", 26, "AND or OR"),
        (
            "setup.outcome = ok",
            17,
            "one of OK, RETRANSMITTED, REFUSED, IGNORED, RESET_LATE, MIDSTREAM",
        ),
        ("setup.outcome != \"X*\"", 18, "one of OK"),
        ("setup.outcome:fine", 15, "one of OK"),
        ("close.kind = FIN", 14, "one of CLIENT_FIN, SERVER_FIN"),
        ("setup.outcome = \"\"", 1, ""),
        ("setup.outcome:fuse", 1, ""),
        ("setup.outcome = RE*", 1, ""),
        ("setup.description:\"&&\"", 1, ""),
    ] {
        match Filter::<Connection>::parse(filter) {
            Err(error) => {
                assert_eq!(error.position, position, "{filter}: {error}");
                assert!(
                    error.to_string().starts_with(&format!("position {position}: ")),
                    "{error}"
                );
                assert!(error.to_string().contains(expected), "{filter}: {error}");
            }
            Ok(_) => assert!(expected.is_empty(), "{filter} was read"),
        }
    }
    assert!(Filter::<Connection>::parse(&"(".repeat(5000)).is_err());
    assert!(Filter::<Connection>::parse(&"NOT ".repeat(2000)).is_err());
    assert!(Filter::<Connection>::parse(&"a ".repeat(4000)).is_err());
    assert!(Filter::<Connection>::parse(&"a".repeat(9000)).is_err());
}

/// Texts whose comment in the proto lists all that they can be; one too many would refuse filters that are right.
#[test]
fn fields_with_few_values_are_those_listed() {
    fn walk(fields: &[Field], path: &str, out: &mut Vec<String>) {
        for field in fields {
            let path = format!("{path}{}", field.name);
            if !field.values.is_empty() {
                out.push(format!("{path}: {}", field.values.join(" ")));
            }
            if let Kind::Message(inner) = field.kind {
                walk(inner, &format!("{path}."), out);
            }
        }
    }
    let mut all = Vec::new();
    for schema in [
        Connection::SCHEMA,
        Transaction::SCHEMA,
        Segment::SCHEMA,
        Finding::SCHEMA,
    ] {
        walk(schema, "", &mut all);
    }
    assert_eq!(
        all,
        [
            "setup.outcome: OK RETRANSMITTED REFUSED IGNORED RESET_LATE MIDSTREAM",
            "close.kind: CLIENT_FIN SERVER_FIN CLIENT_RST SERVER_RST REFUSED HALF_CLOSED IGNORED OPEN TIMEOUT",
            "client_known_by: SYN SYN_ACK SERVER PORT FIRST",
            "tunnel: NONE IP_IN_IP GRE VXLAN GENEVE ERSPAN GTP_U PPPOE",
            "kind: SETUP DATA CLOSE",
            "class: COPY WINDOW_PROBE KEEP_ALIVE CAPTURE_ORDER REORDERED RETRANSMISSION MISSED LOST",
            "cause: FAST TIMEOUT TAIL_PROBE UNKNOWN",
            "place: BEFORE_TAP BEHIND_TAP ACK_BEFORE_TAP ACK_BEHIND_TAP CAPTURE NOWHERE UNKNOWN",
            "severity: INFO WARNING CRITICAL",
        ]
    );
}

#[test]
fn a_million_connections_take_seconds_at_most() {
    let connection = connection();
    let filter = Filter::parse(
        r#"client.address = "10.0.*" AND server_to_client.retransmitted_packets > 0 AND NOT setup.description:"reset""#,
    )
    .unwrap();
    let start = Instant::now();
    let matching = (0..1_000_000)
        .filter(|_| filter.matches(std::hint::black_box(&connection)))
        .count();
    assert_eq!(matching, 1_000_000);
    println!("1 M connections: {:?}", start.elapsed());
    assert!(start.elapsed().as_secs() < 10);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        if let Ok(filter) = Filter::parse(&text) {
            let _ = filter.matches(&connection());
        }
    }

    #[test]
    fn any_words_are_read_or_refused(words in prop::collection::vec(prop::sample::select(vec![
        "AND", "OR", "NOT", "-", "(", ")", "=", "!=", ":", "<", "turns", "client.address", "values.x", "vlans", "*", "3",
        "\"a*\"", "'", "\\", "é", "setup", "duration_seconds", "5ms", ".",
    ]), 0..14)) {
        for separator in ["", " "] {
            if let Ok(filter) = Filter::parse(&words.join(separator)) {
                let _ = filter.matches(&connection());
            }
        }
    }

    /// AND, OR and NOT against a table of truths.
    #[test]
    fn and_or_not_follow_their_precedence(truths in prop::collection::vec(any::<bool>(), 2..8), ors in prop::collection::vec(any::<bool>(), 8)) {
        let mut text = String::new();
        let mut groups: Vec<bool> = Vec::new();
        for (index, truth) in truths.iter().enumerate() {
            let or = index > 0 && ors[index];
            if index > 0 {
                text.push_str(if or { " OR " } else { " AND " });
            }
            text.push_str(if *truth { "turns = 3" } else { "NOT turns = 3" });
            match groups.last_mut() {
                Some(last) if or => *last |= truth,
                _ => groups.push(*truth),
            }
        }
        prop_assert_eq!(holds(&text), groups.iter().all(|group| *group), "{}", text);
    }
}

/// Connections by id, of these addresses and durations, in this order.
fn ordered(order: &str) -> Vec<u64> {
    let order = Order::parse(order).unwrap_or_else(|error| panic!("{order}: {error}"));
    let rows = [
        ("10.0.0.10", 2.0, None),
        ("10.0.0.9", 1.0, Some(7)),
        ("10.0.0.9", 3.0, Some(0)),
        ("", 1.0, Some(30)),
    ];
    let rows = (0..)
        .zip(rows)
        .map(|(id, (address, duration_seconds, lost))| Connection {
            id,
            client: (!address.is_empty()).then(|| Endpoint {
                address: address.into(),
                port: 1,
            }),
            duration_seconds,
            server_to_client: lost.map(|retransmitted_packets| Direction {
                retransmitted_packets,
                ..Direction::default()
            }),
            ..Connection::default()
        });
    let mut rows: Vec<Connection> = rows.collect();
    rows.sort_by(|a, b| order.compare(a, b));
    rows.iter().map(|row| row.id).collect()
}

#[test]
fn orders_are_by_value_and_what_has_none_comes_last() {
    assert_eq!(ordered(""), [0, 1, 2, 3]);
    assert_eq!(ordered(" durationSeconds"), [1, 3, 0, 2]);
    assert_eq!(ordered("duration_seconds desc"), [2, 0, 1, 3]);
    assert_eq!(ordered("duration_seconds asc , id desc"), [3, 1, 0, 2]);
    assert_eq!(ordered("client.address"), [1, 2, 0, 3], "as numbers, not as texts");
    assert_eq!(ordered("client.address desc,duration_seconds desc"), [0, 2, 1, 3]);
    assert_eq!(ordered("server_to_client.retransmitted_packets"), [2, 1, 3, 0]);
    assert_eq!(ordered("server_to_client.retransmitted_packets desc"), [3, 1, 2, 0]);
    let rate = |number: f64| Finding {
        values: [("rate".to_owned(), number.into())].into(),
        ..Finding::default()
    };
    let order = Order::parse("values.rate desc").unwrap();
    assert!(order.compare(&rate(2.0), &rate(1.0)).is_lt());
    assert!(order.compare(&rate(2.0), &Finding::default()).is_lt());
}

#[test]
fn orders_that_are_none_say_where_and_why() {
    for (order, position, found, expected) in [
        ("turns, shares", 8, "shares", "a field of shares"),
        ("turnz", 1, "turnz", "a field: id, client"),
        ("turns down", 1, "turns down", "FIELD, FIELD asc or FIELD desc"),
        ("turns DESC", 1, "turns DESC", "FIELD asc or FIELD desc"),
        ("turns desc id", 1, "turns desc id", "FIELD desc"),
        ("turns,,id", 7, ",", "a field between commas"),
        ("turns, ", 8, ",", "a field between commas"),
        ("vlans", 1, "vlans", "one value: vlans is a list"),
        ("turns.x", 1, "turns.x", "no field behind turns"),
        ("id,id,id,id,id,id,id,id,id,id,id", 31, "id", "at most 10 fields"),
    ] {
        let error = Order::<Connection>::parse(order).unwrap_err();
        assert_eq!((error.position, error.found.as_str()), (position, found), "{order}");
        assert!(error.expected.contains(expected), "{order}: {error}");
    }
    assert!(
        Order::<Finding>::parse("values")
            .unwrap_err()
            .expected
            .contains("values.NAME")
    );
    assert!(Order::<Connection>::parse(&" ".repeat(9000)).is_err());
}
