#![allow(clippy::unwrap_used)]
//! Packets and payload bytes per direction of every capture of the corpus against reference values
//! (`WEIR_CORPUS`, by default `../shared/corpus` beside the repository; skipped if absent).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_capture::{CaptureFile, Feed, Item};
use weir_engine::{Class, Parser};

/// (source, port, destination, port): the streams of reused ports are summed.
type Direction = (IpAddr, u16, IpAddr, u16);
type Totals = BTreeMap<Direction, (u64, u64)>;

/// Where we differ from the reference on purpose, and why.
const KNOWN: &[(&str, &str)] = &[
    (
        "fuzz_2006.pcap",
        "frames 62, 65, 83: a corrupted IP total length beyond the frame; the reference counts the frame, we the IP length",
    ),
    (
        "wscale_only_synack.pcap",
        "frames 7, 26, 35, 39, 85: the frame lost 8 or 20 bytes before it was captured; the receiver acknowledged \
         the IP length (frame 8), which is what we count",
    ),
];

fn corpus() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = std::env::var_os("WEIR_CORPUS").map_or_else(|| root.join("../shared/corpus"), PathBuf::from);
    path.join("reference").is_dir().then_some(path)
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

fn reference(folder: &Path) -> Totals {
    let streams: Value = serde_json::from_slice(&std::fs::read(folder.join("streams.json")).unwrap()).unwrap();
    let mut totals = Totals::new();
    for stream in streams.as_array().unwrap() {
        let end = |side: &str| -> (IpAddr, u16) {
            let port = number(&stream[format!("{side}_port")]) as u16;
            (stream[side].as_str().unwrap().parse().unwrap(), port)
        };
        let (a, b) = (end("a"), end("b"));
        for (from, to, side) in [(a, b, "ab"), (b, a, "ba")] {
            let total = totals.entry((from.0, from.1, to.0, to.1)).or_default();
            total.0 += number(&stream[side]["packets"]);
            total.1 += number(&stream[side]["bytes"]);
        }
    }
    totals.retain(|_, (packets, _)| *packets > 0);
    totals
}

/// Our totals, and the number of frames by what became of them.
fn ours(path: &Path) -> (Totals, BTreeMap<String, u64>) {
    let mut totals = Totals::new();
    let mut kinds = BTreeMap::new();
    let mut file = CaptureFile::open(path).unwrap();
    let mut feed = Feed::new(Parser::default());
    let end = feed.read(&mut file, usize::MAX, |word| {
        let kind = match word.item {
            Item::Packet(meta) => {
                if meta.class == Class::Tcp {
                    let (from, to) = match meta.from_low {
                        true => (meta.key.low, meta.key.high),
                        false => (meta.key.high, meta.key.low),
                    };
                    let total = totals.entry((from.ip(), from.port, to.ip(), to.port)).or_default();
                    total.0 += 1;
                    total.1 += u64::from(meta.payload);
                }
                format!("{:?}", meta.class)
            }
            Item::Untracked(reason) => format!("{reason:?}"),
        };
        *kinds.entry(kind).or_default() += 1;
    });
    if let Err(error) = end {
        kinds.insert(format!("error: {:?}", error.cause), 1);
    }
    (totals, kinds)
}

#[test]
fn packets_and_bytes_are_those_of_the_reference() {
    let Some(corpus) = corpus() else {
        println!("skipped: no corpus (set WEIR_CORPUS)");
        return;
    };
    let mut report = String::new();
    let (mut directions, mut different) = (0, 0);
    let mut names: Vec<_> = std::fs::read_dir(corpus.join("reference"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in &names {
        let expected = reference(&corpus.join("reference").join(name));
        let (got, kinds) = ours(&corpus.join(name));
        directions += expected.len();
        let mut lines = String::new();
        for key in expected.keys().chain(got.keys().filter(|k| !expected.contains_key(k))) {
            let (e, g) = (
                expected.get(key).copied().unwrap_or_default(),
                got.get(key).copied().unwrap_or_default(),
            );
            if e != g {
                different += 1;
                let known = KNOWN
                    .iter()
                    .find(|(file, _)| file == name)
                    .map_or("UNEXPLAINED", |(_, why)| why);
                writeln!(
                    lines,
                    "  {key:?}: (packets, bytes) reference {e:?}, ours {g:?}: {known}"
                )
                .unwrap();
            }
        }
        if !lines.is_empty() {
            write!(report, "{name} {kinds:?}\n{lines}").unwrap();
        }
    }
    println!(
        "{} captures, {directions} directions, {different} different\n{report}",
        names.len()
    );
    assert!(!report.contains("UNEXPLAINED"), "{report}");
}
