//! Each built-in scenario shows what it is there for, in its capture and its truth.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use support::{Frame, frames, lines, make};
use tempfile::tempdir;
use weir_scenario::packet::flag::{ACK, RST, SYN};
use weir_scenario::{Report, Scenario};

/// A scenario that has run.
struct Ran {
    report: Report,
    frames: Vec<Frame>,
    app: Vec<Value>,
    wire: Vec<Value>,
    again: Vec<Value>,
}

impl Ran {
    fn new(name: &str) -> Ran {
        let folder = tempdir().unwrap();
        let report = make(name, 1.0, 11, folder.path());
        Ran {
            frames: frames(&report.captures[0]),
            app: lines(folder.path(), &format!("{name}-app.jsonl")),
            wire: lines(folder.path(), &format!("{name}-wire.jsonl")),
            again: lines(folder.path(), &format!("{name}-again.jsonl")),
            report,
        }
    }

    fn of_server(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.tcp.src_port == 8080)
    }

    fn of_clients(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.tcp.dst_port == 8080)
    }

    /// Payload seen twice.
    fn repeats(&self) -> usize {
        let mut seen = HashSet::new();
        let data = self.frames.iter().filter(|frame| frame.tcp.len > 0);
        let key = |frame: &Frame| (frame.tcp.src, frame.tcp.src_port, frame.tcp.dst_port, frame.tcp.seq);
        data.filter(|frame| !seen.insert(key(frame))).count()
    }

    /// Most bytes of the server between its last byte and the last ACK, on one connection.
    fn most_in_flight(&self) -> u32 {
        let mut acked: HashMap<u16, u32> = HashMap::new();
        let mut most = 0;
        for frame in &self.frames {
            if frame.has(SYN) {
                acked.remove(&frame.tcp.src_port);
            } else if frame.tcp.dst_port == 8080 {
                acked.insert(frame.tcp.src_port, frame.tcp.ack);
            } else if let Some(&acked) = acked.get(&frame.tcp.dst_port) {
                let end = frame.tcp.seq.wrapping_add(frame.tcp.len);
                most = most.max((end.wrapping_sub(acked) as i32).max(0) as u32);
            }
        }
        most
    }

    fn transactions(&self) -> impl Iterator<Item = &Value> {
        self.app.iter().filter(|line| line["type"] == "transaction")
    }
}

fn utc(line: &Value, key: &str) -> f64 {
    line[key].as_u64().unwrap() as f64 / 1e9
}

fn check(name: &str) -> bool {
    let ran = Ran::new(name);
    let lost = !ran.wire.is_empty();
    let losses = |cause: &str| ran.wire.iter().filter(|line| line["cause"] == cause).count();
    let start = 1_700_000_000.0;
    match name {
        "megalodon" => true, // has tests of its own
        "healthy" => !lost && ran.repeats() == 0 && ran.frames.iter().all(|frame| !frame.has(RST)),
        "periodic-loss" => {
            let phase = |line: &Value| (utc(line, "time_ns") - start - 0.7).rem_euclid(6.0);
            losses("periodic_loss") > 200 && ran.wire.iter().all(|line| phase(line) < 1.5)
        }
        "random-loss" => losses("random_loss") > 200 && ran.repeats() > 200,
        "ack-loss" => losses("random_loss") > 200 && ran.wire.iter().all(|line| line["direction"] == "c2s"),
        "reordering" => {
            let late = |line: &&Value| line["again"] == false && line["taps"]["tap"]["how"] == "fill";
            !lost && ran.again.iter().filter(late).count() > 100
        }
        "stalls" => !lost && ran.again.iter().filter(|line| line["spurious"] == true).count() > 30,
        "burst-loss" => losses("burst_loss") > 30 && ran.repeats() > 30,
        "syn-loss" => losses("syn_batch") == 30 + 24 && ran.repeats() == 0,
        "app-sleep" => {
            let sleeps: Vec<&Value> = ran.app.iter().filter(|line| line["type"] == "sleep").collect();
            let asleep = |line: &Value, key: &str| {
                line[key].as_u64().is_some_and(|at| {
                    let within = |sleep: &&&Value| {
                        (sleep["start_ns"].as_u64().unwrap() + 1..sleep["end_ns"].as_u64().unwrap()).contains(&at)
                    };
                    sleeps.iter().any(|sleep| within(&sleep))
                })
            };
            let keys = ["server_request_last_ns", "server_response_start_ns"];
            sleeps.len() > 14 && !ran.transactions().any(|line| keys.iter().any(|key| asleep(line, key)))
        }
        "capacity-ceiling" => {
            let mut per_second = [0; 60];
            for line in ran.transactions().filter(|line| line["complete"] == true) {
                per_second[(utc(line, "response_last_ns") - start) as usize] += 1;
            }
            per_second[45..57].iter().all(|&count| (95..=105).contains(&count)) && per_second[10] < 90
        }
        "slow-ramp" => {
            let grew: Vec<f64> = ran
                .app
                .iter()
                .filter(|line| line["type"] == "pool_grew")
                .map(|line| utc(line, "time_ns"))
                .collect();
            grew.len() > 20 && grew.windows(2).all(|pair| (pair[1] - pair[0]).rem_euclid(1.0) < 1e-6)
        }
        "port-recycling" => {
            let mut first: HashMap<u16, f64> = HashMap::new();
            let syns = ran.of_clients().filter(|frame| frame.has(SYN));
            let again: Vec<f64> = syns
                .filter_map(|f| Some(f.at - first.insert(f.tcp.src_port, f.at)?))
                .collect();
            again.len() > 1000 && again.iter().all(|&after| (15.0..30.0).contains(&after))
        }
        "port-exhaustion" => ran.report.totals.ports_exhausted > 100,
        "tiny-segments" => {
            let data: Vec<u32> = ran
                .of_server()
                .map(|frame| frame.tcp.len)
                .filter(|&len| len > 0)
                .collect();
            data.iter().filter(|&&len| len == 29).count() * 2 > data.len()
        }
        "request-pauses" => {
            let took = |line: &Value| utc(line, "server_request_last_ns") - utc(line, "request_write_start_ns");
            let mut done = ran.transactions().filter(|line| line["complete"] == true);
            !lost && done.all(|line| (1.0..1.03).contains(&took(line)))
        }
        "response-bands" => {
            let took = |line: &Value| utc(line, "response_last_ns") - utc(line, "request_write_start_ns");
            let times: Vec<f64> = ran
                .transactions()
                .filter(|line| line["complete"] == true)
                .map(took)
                .collect();
            let share = |low: f64, high: f64| {
                times.iter().filter(|&&t| t >= low && t < high).count() as f64 / times.len() as f64
            };
            [(0.3, 0.33, 0.12), (0.5, 0.53, 0.08), (0.9, 0.93, 0.05)]
                .iter()
                .all(|&(low, high, expected)| (share(low, high) - expected).abs() < 0.03)
        }
        "delayed-ack" => {
            let took = |line: &&Value| utc(line, "response_last_ns") - utc(line, "response_first_ns");
            let done = ran.transactions().filter(|line| line["complete"] == true);
            let late = done.filter(|line| (0.19..0.23).contains(&took(line))).count();
            late * 10 > ran.transactions().count() * 9
        }
        "connection-per-transaction" => ran.transactions().all(|line| line["index"].as_u64() < Some(3)),
        "abortive-close" => {
            let resets = ran.of_clients().filter(|frame| frame.has(RST)).count();
            resets > 400 && ran.of_server().all(|frame| !frame.has(RST))
        }
        "zero-window" => {
            ran.of_clients()
                .filter(|frame| frame.window() == 0 && !frame.has(RST))
                .count()
                > 50
        }
        "small-window" => {
            ran.of_clients().all(|frame| frame.window() <= 1200) && ran.of_server().all(|f| f.tcp.len <= 1200)
        }
        "receiver-limited" => (14_000..=16_384).contains(&ran.most_in_flight()),
        "sender-limited" => (30_000..=32_768).contains(&ran.most_in_flight()),
        "bandwidth-limited" => {
            let bytes: f64 = ran.of_server().map(|frame| f64::from(frame.tcp.len)).sum();
            losses("queue_full") > 0 && bytes * 8.0 / 60.0 < 11e6
        }
        "window-scale-mishap" => {
            let scale = |frame: &Frame| frame.option(3).is_some();
            let syns = ran.frames.iter().filter(|frame| frame.has(SYN));
            // The server believes in windows far above what an unscaled field can say.
            syns.into_iter().all(scale) && ran.most_in_flight() > 65_535
        }
        "refused" => {
            let syns = ran.of_clients().count();
            syns > 50 && ran.of_server().filter(|frame| frame.has(RST)).count() == syns
        }
        "capture-loss" => !lost && ran.report.totals.taps["tap"].missed > 200 && ran.repeats() == 0,
        "mirror-duplicates" => {
            let ordered = ran.frames.windows(2).all(|pair| pair[0].at <= pair[1].at);
            let ids: HashSet<_> = ran
                .frames
                .iter()
                .map(|f| (f.tcp.src_port, f.tcp.dst_port, f.tcp.ip_id, f.tcp.seq))
                .collect();
            let copies = ran.frames.len() - ids.len();
            ordered && copies as u64 == ran.report.totals.taps["tap"].duplicated && copies > 5000
        }
        "route-change" => {
            let ttls = |after: bool| -> BTreeSet<u8> {
                ran.of_clients()
                    .filter(|f| (f.at - start > 31.0) == after && (f.at - start < 29.0 || after))
                    .map(|f| f.bytes[22])
                    .collect()
            };
            ttls(false) == BTreeSet::from([61]) && ttls(true) == BTreeSet::from([58])
        }
        "mtu-black-hole" => {
            losses("black_hole") > 100 && ran.wire.iter().all(|line| line["frame_len"].as_u64() > Some(1400))
        }
        "keep-alive" => ran.of_server().filter(|f| f.tcp.len == 0 && f.tcp.flags == ACK).count() > 1000,
        "half-open" => {
            let of_branch = ran.app.iter().filter(|line| line["dialogue"] == "branch");
            let waits = |line: &Value| line["outcome"] != "connected" && line["syn_acks_sent"].as_u64() > Some(1);
            of_branch.clone().count() > 60 && of_branch.filter(|line| !waits(line)).count() < 5
        }
        "late-capture" => {
            let first = ran.frames[0].at - start;
            let syns: HashSet<u16> = ran
                .frames
                .iter()
                .filter(|f| f.has(SYN))
                .map(|f| f.tcp.src_port)
                .collect();
            let clients: HashSet<u16> = ran.of_clients().map(|frame| frame.tcp.src_port).collect();
            (20.0..20.5).contains(&first) && clients.difference(&syns).count() > 20
        }
        "latency-bound" => {
            // Most of a connection's time goes by on the way.
            let (mut waited, mut open) = (0.0, 0.0);
            for line in ran
                .app
                .iter()
                .filter(|line| line["type"] == "connection" && line["close_ns"].is_u64())
            {
                waited += 0.082 * line["transactions"].as_f64().unwrap();
                open += utc(line, "close_ns") - utc(line, "connect_start_ns");
            }
            open > 100.0 && waited > 0.8 * open
        }
        "one-sided" => ran.of_server().count() == 0 && ran.of_clients().count() > 1000,
        "port-scan" => {
            let tried: BTreeSet<u16> = ran
                .frames
                .iter()
                .map(|frame| frame.tcp.dst_port)
                .filter(|&port| port <= 1000)
                .collect();
            // One after the other.
            tried.len() > 100 && tried.last().map(|&last| usize::from(last)) == Some(tried.len())
        }
        "syn-flood" => {
            let answered = ran
                .app
                .iter()
                .filter(|line| line["dialogue"] == "visit" && line["outcome"] == "connected")
                .count();
            ran.report.totals.connections["flood"] > 5000
                && answered * 2 < ran.report.totals.connections["visit"] as usize
        }
        _ => panic!("no test says what {name} must show"),
    }
}

#[test]
fn every_scenario_shows_what_it_is_there_for() {
    let failed: Vec<&str> = Scenario::built_in_names()
        .filter(|name| *name != "megalodon" && !check(name))
        .collect();
    assert!(failed.is_empty(), "not to be seen: {failed:?}");
}
