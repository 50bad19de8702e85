//! Real captures from both ends of a path, if there are some: `WEIR_CORPUS`, by default `../shared/corpus` beside the
//! repository. Which packets are in both and in one only was found out by others, packet by packet.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Name of the truth, near capture, far capture.
const PAIRS: [(&str, &str, &str); 6] = [
    ("pair1", "pair1_client.pcapng", "pair1_server.pcapng"),
    ("pair2", "pair2_client.pcap", "pair2_server.pcap"),
    ("pair3", "pair3_mail_client_1.pcapng", "pair3_mail_server_2.pcapng"),
    ("pair4", "pair3_mail_server_2.pcapng", "pair4_mail_server_3.pcapng"),
    ("pair5", "pair5_drop_c.pcap", "pair5_drop_s.pcap"),
    ("pair6", "pair6_h1.pcap", "pair6_srv.pcap"),
];

fn corpus() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let path = std::env::var_os("WEIR_CORPUS").map_or(default, PathBuf::from);
    if path.join("pairs").is_dir() {
        return Some(path);
    }
    println!("skipped: no captures at {}", path.display());
    None
}

/// Sum of a field over all connections of a direction.
fn sum(truth: &Value, direction: &str, field: &str) -> u64 {
    let connections = truth["connections"].as_array().unwrap();
    connections.iter().map(|c| c[direction][field].as_u64().unwrap()).sum()
}

#[test]
fn packets_in_both_and_in_one_only() {
    let Some(corpus) = corpus() else { return };
    for (name, near, far) in PAIRS {
        let text = std::fs::read_to_string(corpus.join(format!("pairs/{name}.json"))).unwrap();
        let truth: Value = serde_json::from_str(&text).unwrap();
        let captures = [near, far].map(|file| support::records_of_file(&corpus.join(file)));
        // Whichever is named first, the order on the path is found.
        for turned in [false, true] {
            let mut given = captures.to_vec();
            if turned {
                given.reverse();
            }
            let answer = support::align(&given).unwrap();
            let leg = &answer.legs[0];
            assert_eq!(answer.nearest_client, usize::from(turned), "{name}");
            let matched = sum(&truth, "ab", "matched") + sum(&truth, "ba", "matched");
            let lost = [sum(&truth, "ab", "only_near"), sum(&truth, "ba", "only_far")];
            assert_eq!(
                (leg.matched, leg.lost_forward, leg.lost_backward),
                (matched, lost[0], lost[1]),
                "{name} {leg:?}"
            );
            // Every packet of shared connections is accounted for once.
            assert_eq!(
                leg.only_from + leg.only_to,
                lost[0] + lost[1] + leg.undecided + leg.outside,
                "{name}"
            );
            let connections = truth["connections"].as_array().unwrap();
            let offset = connections[0]["clock_offset_far_minus_near"].as_f64().unwrap();
            let error = (leg.offset_seconds.unwrap() - offset).abs();
            assert!(
                error <= leg.offset_width_seconds.unwrap() / 2.0,
                "{name}: {error} {leg:?}"
            );
        }
    }
}

#[test]
fn three_taps_of_which_the_middle_one_is_a_relay() {
    let Some(corpus) = corpus() else { return };
    // Given in the wrong order.
    let names = [
        "pair4_mail_server_3.pcapng",
        "pair3_mail_client_1.pcapng",
        "pair3_mail_server_2.pcapng",
    ];
    let captures: Vec<_> = names.map(|name| support::records_of_file(&corpus.join(name))).into();
    let answer = support::align(&captures).unwrap();
    let order: Vec<&str> = answer.taps.iter().map(|tap| tap.file.as_str()).collect();
    assert_eq!(order, ["B", "C", "A"]);
    let matched: Vec<u64> = answer.legs.iter().map(|leg| leg.matched).collect();
    assert_eq!(matched, [23, 15]);
    assert!(answer.pies.is_empty(), "no connection goes the whole way");
}

#[test]
fn captures_of_different_paths_are_refused_by_name() {
    let Some(corpus) = corpus() else { return };
    let captures: Vec<_> = ["pair1_client.pcapng", "pair6_srv.pcap"]
        .map(|name| support::records_of_file(&corpus.join(name)))
        .into();
    let error = support::align(&captures).unwrap_err().to_string();
    assert!(
        error.starts_with("A (4 TCP connections) and B (2) have no packet in common"),
        "{error}"
    );
}
