//! Real captures, if there are some: `WEIR_CORPUS`, by default `../shared/corpus` beside the
//! repository. Never a panic, counters that agree, and totals close to those of another tool.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_analysis::{Analyzer, Config};
use weir_capture::records;
use weir_engine::Config as EngineConfig;
use weir_messages::v1;

fn corpus() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let path = std::env::var_os("WEIR_CORPUS").map_or(default, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no captures at {}", path.display());
    None
}

fn analyze_file(path: &Path) -> v1::Analysis {
    let mut out = v1::Analysis::default();
    let mut analyzer = Analyzer::new(Config::default());
    // A file that cannot be read to its end is analysed as far as it goes.
    let _ = records(path, EngineConfig::file(), |records| analyzer.push(records, &mut out));
    out.summary = Some(analyzer.finish(&mut out));
    out
}

fn captures(corpus: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".pcap"))
        .filter(|path| !path.to_string_lossy().ends_with(".txt"))
        .collect();
    files.sort();
    files
}

/// The reference's direction for a connection's client, when exactly one stream fits.
fn reference<'a>(streams: &'a [Value], c: &v1::Connection) -> Option<[&'a Value; 2]> {
    let (client, server) = (c.client.as_ref()?, c.server.as_ref()?);
    let is = |s: &Value, side: &str, e: &v1::Endpoint| {
        s[side] == e.address.as_str() && s[format!("{side}_port").as_str()] == e.port
    };
    let first = c.first_packet_time?.unix_nanos() as f64 / 1e9;
    let near = |s: &Value| (s["t_first"].as_f64().unwrap_or(0.0) - first).abs() < 1e-3;
    let mut found = streams.iter().filter(|s| near(s)).filter_map(|s| {
        if is(s, "a", client) && is(s, "b", server) {
            Some([&s["ab"], &s["ba"]])
        } else if is(s, "b", client) && is(s, "a", server) {
            Some([&s["ba"], &s["ab"]])
        } else {
            None
        }
    });
    let one = found.next()?;
    found.next().is_none().then_some(one)
}

/// The other tool draws the line between retransmission, reordering and copy elsewhere, and by
/// time alone; the sum is what must agree.
#[test]
fn repeats_agree_with_the_reference() {
    let Some(corpus) = corpus() else { return };
    let (mut directions, mut equal, mut packets) = (0, 0, 0);
    for path in captures(&corpus) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(text) = std::fs::read_to_string(corpus.join("reference").join(&name).join("streams.json")) else {
            continue;
        };
        let streams: Vec<Value> = serde_json::from_str(&text).unwrap();
        let a = analyze_file(&path);
        for c in &a.connections {
            let Some(sides) = reference(&streams, c) else { continue };
            for (d, r) in [&c.client_to_server, &c.server_to_client].into_iter().zip(sides) {
                let d = d.as_ref().unwrap();
                if r["packets"] != d.packets {
                    continue; // another tool, another connection
                }
                let count = |name: &str| r[name].as_u64().unwrap_or(0);
                let theirs = count("retransmission") + count("out_of_order");
                let ours = d.retransmitted_packets + d.out_of_order + d.network_duplicates;
                directions += 1;
                packets += d.packets;
                equal += usize::from(ours == theirs);
                if ours != theirs {
                    println!(
                        "{name} {:?}: retransmitted {} reordered {} copies {} keep-alives {} \
                         (fast {} timeout {} spurious {} unknown {}), other tool: {} + {} (fast {} spurious {} keep-alive {})",
                        c.client.as_ref().map(|e| e.port),
                        d.retransmitted_packets,
                        d.out_of_order,
                        d.network_duplicates,
                        d.keep_alives,
                        d.fast_retransmissions,
                        d.timeout_retransmissions,
                        d.spurious_retransmissions,
                        d.unknown_retransmissions,
                        count("retransmission"),
                        count("out_of_order"),
                        count("fast_retransmission"),
                        count("spurious_retransmission"),
                        count("keep_alive"),
                    );
                }
            }
        }
    }
    println!("{equal} of {directions} directions equal ({packets} packets)");
    assert!(directions > 100, "the reference was not found in the answers");
    assert!(equal * 100 >= directions * 95, "{equal} of {directions}");
}
