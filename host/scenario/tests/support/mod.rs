//! Runs scenarios in folders that go when the test is over, and reads what they wrote.
#![allow(dead_code, clippy::unwrap_used)]

use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use tempfile::tempdir;
use weir_analysis::{Analyzer, Config, Ends, Sink, Verdict};
use weir_capture::records;
use weir_engine::Config as EngineConfig;
use weir_lab::frame::TcpSummary;
use weir_lab::pcap;
use weir_messages::v1;
use weir_scenario::{Report, Scenario, run};

/// Runs a built-in scenario.
pub fn make(name: &str, scale: f64, seed: u64, folder: &Path) -> Report {
    let mut scenario = Scenario::load(name).unwrap();
    scenario.scale(scale);
    scenario.seed = seed;
    run(&scenario, scale, folder).unwrap()
}

pub fn lines(folder: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn number(line: &Value, key: &str) -> u64 {
    line[key].as_u64().unwrap_or_else(|| panic!("{key} in {line}"))
}

/// Keeps every answer, verdicts on segments as well.
#[derive(Default)]
struct Everything(v1::Analysis);

impl Sink for Everything {
    fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
        self.0.connection(connection);
    }

    fn transaction(&mut self, transaction: &weir_analysis::Transaction<'_>) {
        self.0.transaction(transaction);
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.0.finding(finding);
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        self.0.segments.push(verdict.message());
    }
}

/// The whole way: a capture through the engine and the analysis.
pub fn analyze(path: &Path) -> v1::Analysis {
    let mut out = Everything::default();
    let mut analyzer = Analyzer::new(Config::default());
    records(path, EngineConfig::file(), |records| analyzer.push(records, &mut out)).unwrap();
    let summary = analyzer.finish(&mut out);
    out.0.summary = Some(summary);
    out.0
}

/// Connections by the client's address and port: ports are used again, so in the order of time.
pub fn by_client(connections: &[v1::Connection]) -> HashMap<(String, u64), Vec<&v1::Connection>> {
    let mut out: HashMap<(String, u64), Vec<&v1::Connection>> = HashMap::new();
    for connection in connections {
        let client = connection.client.as_ref().unwrap();
        let key = (client.address.clone(), u64::from(client.port));
        out.entry(key).or_default().push(connection);
    }
    let time = |connection: &&v1::Connection| {
        let at = connection.first_packet_time.unwrap();
        (at.seconds, at.nanos)
    };
    out.values_mut().for_each(|connections| connections.sort_by_key(time));
    out
}

/// A TCP frame with its time in seconds.
#[derive(Debug, Clone)]
pub struct Frame {
    pub at: f64,
    pub tcp: TcpSummary,
    pub bytes: Vec<u8>,
}

impl Frame {
    pub fn has(&self, flag: u8) -> bool {
        self.tcp.flags & flag != 0
    }

    /// The option of this kind.
    pub fn option(&self, kind: u8) -> Option<&[u8]> {
        let header = &self.bytes[34..];
        let mut options = &header[20..usize::from(header[12] >> 4) * 4];
        while let [this, rest @ ..] = options {
            match this {
                0 => return None,
                1 => options = rest,
                _ => {
                    let len = usize::from(rest[0]);
                    if *this == kind {
                        return Some(&options[2..len]);
                    }
                    options = &options[len..];
                }
            }
        }
        None
    }

    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.bytes[48], self.bytes[49]])
    }
}

/// The frames of a capture of TCP alone.
pub fn frames(path: &Path) -> Vec<Frame> {
    let file = pcap::read(&std::fs::read(path).unwrap()).unwrap();
    file.into_iter()
        .filter_map(|frame| {
            Some(Frame {
                at: frame.time_ns as f64 / 1e9,
                tcp: TcpSummary::parse(&frame.bytes)?,
                bytes: frame.bytes,
            })
        })
        .collect()
}

/// A client and a server (port 9000) with a tap between, from the parts that a test wants to say something about.
pub struct Pair<'a> {
    pub client: &'a str,
    pub server: &'a str,
    /// Settings of their TCP.
    pub client_tcp: &'a str,
    pub server_tcp: &'a str,
    /// Leg from the client to the tap, leg from the tap to the server: to the server, and back.
    pub near: [&'a str; 2],
    pub far: [&'a str; 2],
    pub exchange: &'a str,
    pub dialogue: &'a str,
    pub users: u32,
    pub seconds: f64,
}

impl Default for Pair<'_> {
    fn default() -> Self {
        Pair {
            client: "linux",
            server: "linux",
            client_tcp: "",
            server_tcp: "",
            near: ["delay_ms = 10", "delay_ms = 10"],
            far: ["delay_ms = 10", "delay_ms = 10"],
            exchange: "request = \"100\"\nresponse = [{ writes = \"1000\" }]",
            dialogue: "body = [\"x\"]\ncount = 1\nclose = \"client_fin\"",
            users: 1,
            seconds: 30.0,
        }
    }
}

impl Pair<'_> {
    /// Runs it; the frames at the tap.
    pub fn run(&self, name: &str) -> Vec<Frame> {
        let text = format!(
            r#"
name = "pair"
description = "a test"
duration_s = {seconds}
[[host]]
name = "client"
address = "10.0.0.1"
stack = "{client}"
tcp = {{ {client_tcp} }}
[[host]]
name = "server"
address = "10.0.0.2"
stack = "{server}"
tcp = {{ {server_tcp} }}
[[path]]
between = ["client", "server"]
taps = ["tap"]
[[path.leg]]
forward = {{ {near0} }}
backward = {{ {near1} }}
[[path.leg]]
forward = {{ {far0} }}
backward = {{ {far1} }}
[[service]]
name = "service"
host = "server"
port = 9000
[exchange.x]
{exchange}
[dialogue.d]
client = "client"
service = "service"
{dialogue}
[[load]]
dialogue = "d"
to_s = 1000
gap_ms = 1000000 # once each
users = {users}
"#,
            seconds = self.seconds,
            client = self.client,
            server = self.server,
            client_tcp = self.client_tcp,
            server_tcp = self.server_tcp,
            near0 = self.near[0],
            near1 = self.near[1],
            far0 = self.far[0],
            far1 = self.far[1],
            exchange = self.exchange,
            dialogue = self.dialogue,
            users = self.users,
        );
        let folder = tempdir().unwrap();
        let scenario = Scenario::parse(&text, name).unwrap();
        let report = run(&scenario, 1.0, folder.path()).unwrap();
        frames(&report.captures[0])
    }
}

/// Seconds from the first of these frames to each.
pub fn since_first<'a>(frames: impl IntoIterator<Item = &'a Frame>) -> Vec<f64> {
    let times: Vec<f64> = frames.into_iter().map(|frame| frame.at).collect();
    times.iter().map(|at| at - times[0]).collect()
}

/// All within `within` of what is expected, one by one.
#[track_caller]
pub fn assert_near(got: &[f64], expected: &[f64], within: f64) {
    let near = got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= within);
    assert!(near, "{got:?} is not {expected:?}");
}
