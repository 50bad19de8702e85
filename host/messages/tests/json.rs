//! The JSON contract: names, forms and what is printed when nothing is known.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_messages::Timestamp;
use weir_messages::v1::*;

fn connection() -> Connection {
    let direction = Direction {
        packets: 5,
        payload_bytes: 9_007_199_254_740_993,
        max_in_flight: 2920,
        rtt: Some(Rtt {
            samples: 0,
            ..Rtt::default()
        }),
        limit_seconds: Some(LimitSeconds {
            receiver_window: 0.5,
            ..LimitSeconds::default()
        }),
        ..Direction::default()
    };
    Connection {
        id: u64::MAX,
        client: Some(Endpoint {
            address: "10.0.0.1".into(),
            port: 40_000,
        }),
        first_packet_time: Some(Timestamp {
            seconds: 1_700_000_000,
            nanos: 5,
        }),
        client_to_server: Some(direction),
        ..Connection::default()
    }
}

#[test]
fn a_connection_has_the_names_of_the_contract() {
    let value = serde_json::to_value(connection()).unwrap();
    assert_eq!(value["id"], "18446744073709551615");
    assert_eq!(value["client"], json!({"address": "10.0.0.1", "port": 40000}));
    assert_eq!(value["firstPacketTime"], "2023-11-14T22:13:20.000000005Z");
    assert_eq!(value["durationSeconds"], 0.0);
    assert_eq!(value["turns"], 0);
    assert_eq!(value["vlans"], json!([]));
    assert!(value.get("setup").is_none(), "an unset message is left out");

    let direction = value["clientToServer"].as_object().unwrap();
    for name in [
        "packets",
        "payloadBytes",
        "retransmittedPackets",
        "retransmittedBytes",
        "fastRetransmissions",
        "timeoutRetransmissions",
        "spuriousRetransmissions",
        "outOfOrder",
        "networkDuplicates",
        "lostUpstream",
        "lostDownstream",
        "missedByCapture",
        "duplicateAcks",
        "sackBlocks",
        "zeroWindows",
        "smallWindows",
        "keepAlives",
        "maxInFlight",
    ] {
        assert!(
            direction.get(name).is_some_and(Value::is_string),
            "{name} is not a 64-bit count"
        );
    }
    assert_eq!(direction["payloadBytes"], "9007199254740993");
    assert_eq!(
        direction["rtt"],
        json!({"samples": "0"}),
        "unset optional values are left out"
    );
    assert!(direction.get("minWindow").is_none());
    assert_eq!(
        direction["limitSeconds"],
        json!({"application": 0.0, "sender": 0.0, "receiverWindow": 0.5, "zeroWindow": 0.0, "smallWindow": 0.0,
               "nagle": 0.0, "congestion": 0.0, "recovery": 0.0, "slowStart": 0.0, "bandwidth": 0.0,
               "unknown": 0.0})
    );
    let rtt = Rtt {
        p95_seconds: Some(0.0),
        min_seconds: Some(1.0),
        median_seconds: Some(2.0),
        delayed_ack_share: Some(0.25),
        marked_ack_share: None,
        samples: 3,
    };
    assert_eq!(
        serde_json::to_value(rtt).unwrap(),
        json!({"minSeconds": 1.0, "medianSeconds": 2.0, "p95Seconds": 0.0, "delayedAckShare": 0.25,
               "samples": "3"})
    );
}

#[test]
fn an_empty_analysis_still_has_its_lists() {
    let value = serde_json::to_value(Analysis::default()).unwrap();
    assert_eq!(
        value,
        json!({"connections": [], "transactions": [], "findings": [], "segments": [], "packets": [],
               "taps": [], "legs": [], "lostSetups": [], "pie": []})
    );
}

#[test]
fn finding_values_are_plain_and_maps_keep_one_order() {
    let finding = Finding {
        kind: "PERIODIC_LOSS".into(),
        connection_ids: vec![7],
        values: [
            ("periodSeconds".to_owned(), 10.0.into()),
            ("seconds".to_owned(), vec![0.5, 1.0].into()),
            ("hosts".to_owned(), "10.0.0.1".into()),
        ]
        .into(),
        ..Finding::default()
    };
    let value = serde_json::to_value(&finding).unwrap();
    assert_eq!(value["connectionIds"], json!(["7"]));
    assert_eq!(
        value["values"],
        json!({"periodSeconds": 10.0, "seconds": [0.5, 1.0], "hosts": "10.0.0.1"})
    );
    assert_eq!(serde_json::from_value::<Finding>(value).unwrap(), finding);

    let untracked = (0..20).map(|cause| (format!("CAUSE_{cause:02}"), cause)).collect();
    let text = serde_json::to_string(&Summary {
        untracked,
        ..Summary::default()
    })
    .unwrap();
    let places: Vec<_> = (0..20)
        .map(|cause| text.find(&format!("CAUSE_{cause:02}")).unwrap())
        .collect();
    assert!(places.is_sorted());
}

#[test]
fn bytes_are_base64() {
    let batch = RecordBatch {
        records: vec![0, 1, 255],
        first_position: 3,
    };
    assert_eq!(
        serde_json::to_value(batch).unwrap(),
        json!({"records": "AAH/", "firstPosition": "3"})
    );
}

#[test]
fn json_reads_back() {
    let text = serde_json::to_string(&connection()).unwrap();
    let back: Connection = serde_json::from_str(&text).unwrap();
    assert_eq!(back, connection());
}

#[test]
fn times_follow_rfc_3339() {
    let parse = |text: &str| text.parse::<Timestamp>().map(Timestamp::unix_nanos);
    assert_eq!(parse("1970-01-01T00:00:00Z"), Ok(0));
    // The examples of RFC 3339 section 5.8.
    assert_eq!(parse("1985-04-12T23:20:50.52Z"), Ok(482_196_050_520_000_000));
    assert_eq!(parse("1996-12-19T16:39:57-08:00"), parse("1996-12-20T00:39:57Z"));
    assert_eq!(parse("1990-12-31T23:59:60Z"), parse("1991-01-01T00:00:00Z"));
    assert_eq!(parse("1937-01-01T12:00:27.87+00:20"), parse("1937-01-01T11:40:27.87Z"));
    for wrong in [
        "",
        "2026",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.0000000000Z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00+1:00",
        "0001-01-01T00:00:00+00:01",
        "é026-01-01T00:00:00Z",
        "2026-01-01T00:00:0éZ",
    ] {
        assert!(parse(wrong).is_err(), "{wrong} was read");
    }
}

proptest! {
    #[test]
    fn times_round_trip(nanos in any::<i64>()) {
        let time = Timestamp::from_unix_nanos(nanos);
        prop_assert_eq!(time.unix_nanos(), nanos);
        prop_assert_eq!(time.to_string().parse::<Timestamp>(), Ok(time));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        let _ = text.parse::<Timestamp>();
    }
}
