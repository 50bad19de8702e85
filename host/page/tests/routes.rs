//! Every route over the demo capture and a small megalodon, against figures that come another way.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{HashMap, HashSet};

use axum::body::Body;
use axum::http::{Method, StatusCode};
use serde_json::Value;
use support::{Page, analysis, demo, megalodon};
use weir_api::filter::Order;
use weir_messages::v1::{Analysis, Connection, Direction};

fn directions(connection: &Connection) -> [&Direction; 2] {
    [
        connection.client_to_server.as_ref().unwrap(),
        connection.server_to_client.as_ref().unwrap(),
    ]
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

/// A message as the page gives it: numbers through text, as they are read back.
fn given<T: serde::Serialize>(message: &T) -> Value {
    serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
}

fn same<T: serde::Serialize>(one: &T, other: &Value) {
    assert_eq!(&given(one), other);
}

/// Whole answers against the analysis.
async fn figures(page: &Page, id: &str, truth: &Analysis) {
    let summary = truth.summary.as_ref().unwrap();
    let at = |route: &str| format!("/captures/{id}{route}");
    same(summary, &page.json(&at("/summary")).await);

    let object = page.json(&at("")).await;
    assert_eq!(object["state"], "READY");
    assert_eq!(number(&object["connections"]), truth.connections.len() as f64);
    assert_eq!(number(&object["transactions"]), truth.transactions.len() as f64);
    assert_eq!(object["start"], summary.start.unwrap().to_string());
    assert!((number(&object["seconds"]) - summary.duration_seconds).abs() < 1e-6);
    assert_eq!(object["phases"].as_array().unwrap().len(), summary.phases.len());

    let findings = page.json(&at("/findings")).await;
    let findings = findings["findings"].as_array().unwrap();
    // In the order of the report.
    let titles: Vec<_> = findings
        .iter()
        .map(|f| f["finding"]["title"].as_str().unwrap())
        .collect();
    let ranked = weir_report::ranked(&truth.findings);
    assert_eq!(titles, ranked.iter().map(|f| f.title.as_str()).collect::<Vec<_>>());
    for finding in &truth.findings {
        let found = findings
            .iter()
            .find(|f| f["finding"]["title"] == finding.title.as_str())
            .unwrap();
        same(finding, &found["finding"]);
        assert!(found["key"].as_str().unwrap().starts_with(&finding.kind));
    }

    // Tables: every connection once, with the values of its message.
    let table = page
        .table(&at("/connections?limit=10000&sort=-duration_seconds,id"))
        .await;
    assert_eq!(table.says("total"), truth.connections.len().to_string());
    let by_id: HashMap<String, &Connection> = truth.connections.iter().map(|c| (c.id.to_string(), c)).collect();
    let ids = table.texts("id");
    let bytes = table.numbers("client_to_server_payload_bytes");
    let outcomes = table.texts("setup_outcome");
    let durations = table.numbers("duration_seconds");
    assert_eq!(ids.len(), truth.connections.len().min(10_000));
    for row in 0..ids.len() {
        let connection = by_id[ids[row].as_ref().unwrap()];
        assert_eq!(bytes[row], Some(directions(connection)[0].payload_bytes as f64));
        assert_eq!(outcomes[row], connection.setup.as_ref().map(|s| s.outcome.clone()));
        assert!(row == 0 || durations[row] <= durations[row - 1]);
    }

    // Texts in the order that `--order-by` has.
    for (sort, order) in [
        ("client_address", "client.address"),
        ("-server_address", "server.address desc"),
    ] {
        let column = sort.trim_start_matches('-');
        let table = page.table(&at(&format!("/connections?limit=10000&sort={sort}"))).await;
        let order = Order::<Connection>::parse(order).unwrap();
        let mut sorted: Vec<_> = truth.connections.iter().collect();
        sorted.sort_by(|a, b| order.compare(a, b));
        let address = |c: &&Connection| {
            let end = if column == "client_address" {
                &c.client
            } else {
                &c.server
            };
            end.as_ref().map(|end| end.address.clone())
        };
        assert_eq!(table.texts(column), sorted.iter().map(address).collect::<Vec<_>>());
    }

    // Filters: as many as when one looks at each.
    let refused = page
        .table(&at("/connections?limit=0&filter=setup.outcome%20%3D%20REFUSED"))
        .await;
    let count = |outcome: &str| {
        let is = |c: &&Connection| c.setup.as_ref().is_some_and(|s| s.outcome == outcome);
        truth.connections.iter().filter(is).count()
    };
    assert_eq!(refused.says("total"), count("REFUSED").to_string());

    // Setups: each with an outcome is a mark or has no value.
    let setups = page.table(&at("/setups")).await;
    let known = ["OK", "RETRANSMITTED", "REFUSED", "IGNORED", "RESET_LATE"].map(count);
    assert_eq!(setups.says("rows"), known.iter().sum::<usize>().to_string());
    let ends = truth.connections.iter().filter_map(|c| c.setup.as_ref()?.end_seconds);
    let largest = ends.reduce(f64::max).unwrap();
    let shown = setups.numbers("value").into_iter().flatten().reduce(f64::max).unwrap();
    assert!((shown - largest).abs() < 1e-5 * largest, "{shown} {largest}");

    // Transactions by signature: the summary counts them too.
    let statistics = page.json(&at("/statistics?limit=1000")).await;
    let groups = statistics["groups"].as_array().unwrap();
    let counted: f64 = groups.iter().map(|g| number(&g["count"])).sum();
    if number(&statistics["leftOut"]) == 0.0 {
        assert_eq!(counted, truth.transactions.len() as f64);
    }
    for signature in &summary.signatures {
        let Some(group) = groups.iter().find(|g| g["name"] == signature.signature.as_str()) else {
            continue;
        };
        assert_eq!(number(&group["count"]), signature.count as f64);
        assert_eq!(group["positions"], serde_json::json!(signature.positions));
        if let Some(mean) = signature.end_seconds_average {
            assert!((number(&group["end"]["mean"]) - mean).abs() < 1e-6, "{group}");
        }
        if let Some(most) = signature.end_seconds_max {
            assert!((number(&group["end"]["max"]) - most).abs() < 1e-6);
        }
    }
    let histogram = page.table(&at("/histogram?filter=kind%3D*")).await;
    let with_end = truth.transactions.iter().filter(|t| t.end_seconds.is_some()).count();
    assert_eq!(histogram.sum("count"), with_end as f64);

    let sum = |side: usize, of: fn(&Direction) -> u64| {
        truth.connections.iter().map(|c| of(directions(c)[side])).sum::<u64>() as f64
    };
    // Dialogues: those of the summary.
    let dialogues = page.json(&at("/dialogues?limit=5000")).await;
    let all = dialogues["dialogues"].as_array().unwrap();
    assert_eq!(all.len(), summary.dialogues.len());
    for told in &summary.dialogues {
        let server = told.server.as_ref().unwrap();
        let shown = all.iter().find(|shown| {
            shown["client"] == told.client_address.as_str()
                && shown["server"] == server.address.as_str()
                && shown["port"] == server.port
        });
        let shown = shown.unwrap();
        let counts = [("connections", told.connections), ("failed", told.failed)];
        for (name, count) in counts {
            assert_eq!(number(&shown[name]), count as f64, "{name}: {shown}");
        }
        let sides = [
            ("clientToServer", &told.client_to_server),
            ("serverToClient", &told.server_to_client),
        ];
        for (name, side) in sides {
            let (shown, told) = (&shown[name], side.as_ref().unwrap());
            let counts = [
                ("packets", told.packets),
                ("bytes", told.payload_bytes),
                ("dataPackets", told.data_packets),
                ("retransmittedPackets", told.retransmitted_packets),
                ("lostBeforeTap", told.lost_before_tap),
                ("lostBehindTap", told.lost_behind_tap),
                ("lostUnknown", told.lost_unknown),
                ("missedByCapture", told.missed_by_capture),
            ];
            for (name, count) in counts {
                assert_eq!(number(&shown[name]), count as f64, "{name}: {shown}");
            }
            assert_eq!(shown["retransmissionRate"].as_f64(), told.retransmission_rate);
            let rtt = (shown["minRttSeconds"].as_f64(), told.rtt_min_seconds);
            let same = |(one, other): (f64, f64)| (one - other).abs() < 1e-6 * other;
            assert!(
                rtt.0.is_some() == rtt.1.is_some() && rtt.0.zip(rtt.1).is_none_or(same),
                "{rtt:?}"
            );
        }
    }

    // Whose time: the sums of all groups are the summary's.
    let delays = page.json(&at("/delays?by=none")).await;
    let shares = &delays["groups"][0]["shares"];
    let whole = summary.delays.as_ref().unwrap();
    for (name, truth) in [
        ("totalSeconds", whole.total_seconds),
        ("serverProcessingSeconds", whole.server_processing_seconds),
        ("protocolSeconds", whole.protocol_seconds),
    ] {
        assert!(
            (number(&shares[name]) - truth).abs() < 1e-6 * truth.max(1.0),
            "{name}: {shares} {truth}"
        );
    }

    // The whole time line in one column.
    let line = page.table(&at("/timeline?width=1")).await;
    assert_eq!(line.sum("opened"), truth.connections.len() as f64);
    let is_open = |c: &&Connection| c.close.as_ref().unwrap().kind == "OPEN";
    let open = truth.connections.iter().filter(is_open).count();
    assert_eq!(line.sum("closed"), (truth.connections.len() - open) as f64);
    let reset = |c: &&Connection| {
        let is_reset = c.close.as_ref().is_some_and(|close| close.kind == "CLIENT_RST");
        is_reset && c.setup.as_ref().is_some_and(|setup| setup.outcome == "REFUSED")
    };
    let reset = truth.connections.iter().filter(reset).count();
    let failed = count("REFUSED") - reset + count("IGNORED") + count("RESET_LATE");
    assert_eq!(line.sum("failed"), failed as f64);
    let requests = truth.transactions.iter().filter(|t| t.kind != "SETUP");
    assert_eq!(line.sum("requests"), requests.count() as f64);
    for (side, name) in [(0, "client"), (1, "server")] {
        assert_eq!(line.sum(&format!("{name}_bytes")), sum(side, |d| d.payload_bytes));
        let again = line.sum(&format!("{name}_retransmitted"));
        assert_eq!(again, sum(side, |d| d.retransmitted_data_packets), "{name}");
    }
    // Connections one by one: from their first packet to their last, or to the end where they are open still.
    let seconds = summary.duration_seconds;
    let spent = |c: &Connection| {
        let begun = c.first_packet_time.unwrap().unix_nanos() - summary.start.unwrap().unix_nanos();
        if is_open(&c) {
            seconds - begun as f64 / 1e9
        } else {
            c.duration_seconds
        }
    };
    let spent: f64 = truth.connections.iter().map(spent).sum();
    let mean = line.sum("connections_mean");
    assert!(
        (mean - spent / seconds).abs() < 1e-3 * mean.max(1.0),
        "{mean} {}",
        spent / seconds
    );
}

/// Numbers without order, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// At any zoom the pixel columns add up to what a single column of the range has, and to the rows of the tables.
async fn zooms(page: &Page, id: &str, seconds: f64, seed: u64) {
    println!("seed {seed}");
    let mut random = Random(seed);
    for _ in 0..12 {
        // From the whole down to a microsecond, somewhere.
        let length = seconds / 10f64.powf(random.below(80) as f64 / 10.0);
        let from = ((seconds - length).max(0.0) * random.below(1000) as f64 / 1000.0 * 1e9).round() / 1e9;
        let to = from + (length * 1e9).round().max(1.0) / 1e9;
        let width = 1 + random.below(2000);
        let range = format!("from={from}&to={to}");
        let base = format!("/captures/{id}");
        let line = page.table(&format!("{base}/timeline?{range}&width={width}")).await;
        let whole = page.table(&format!("{base}/timeline?{range}&width=1")).await;
        assert_eq!(line.rows(), width as usize);
        for name in [
            "opened",
            "closed",
            "failed",
            "requests",
            "responses",
            "client_packets",
            "server_packets",
            "client_bytes",
            "server_bytes",
            "client_retransmitted",
            "server_retransmitted",
            "client_lost",
            "server_lost",
            "syn_repeats",
            "syn_ack_repeats",
            "missed_by_capture",
        ] {
            assert_eq!(line.sum(name), whole.sum(name), "{name} {range} {width}");
        }
        for name in ["connections", "in_progress"] {
            let most = |table: &support::Table| {
                let all = table.numbers(&format!("{name}_max")).into_iter().flatten();
                all.reduce(f64::max)
            };
            assert_eq!(most(&line), most(&whole), "{name} {range}");
            let mean = line.sum(&format!("{name}_mean")) / width as f64;
            let truth = whole.sum(&format!("{name}_mean"));
            // Columns of a few ns are not all equally wide.
            let slack = if length > 1e-4 {
                0.02 * truth.max(0.05)
            } else {
                f64::MAX
            };
            assert!((mean - truth).abs() <= slack, "{name} {range} {width}: {mean} {truth}");
        }
        let opened = page.table(&format!("{base}/connections?limit=0&{range}")).await;
        assert_eq!(opened.says("total"), line.sum("opened").to_string());
        let marks = page.table(&format!("{base}/marks?{range}&width={width}")).await;
        let without: f64 = marks.says("without_value").parse().unwrap();
        assert_eq!(marks.sum("count") + without, line.sum("requests"), "{range}");
        let begun = page
            .table(&format!(
                "{base}/transactions?limit=0&{range}&filter=NOT%20kind%3DSETUP"
            ))
            .await;
        assert_eq!(begun.says("total"), line.sum("requests").to_string());
        let timing = page
            .table(&format!("{base}/timing?{range}&limit=1000&width={width}"))
            .await;
        assert_eq!(timing.sum("count").to_string(), timing.says("rows"), "{range}");
        for table in [&line, &marks, &timing] {
            assert!(table.bytes < 1_000_000, "{}", table.bytes);
        }
    }
}

/// Of marks by lane, side and kind: how many packets, the largest and the smallest, the first and the last.
type Sums = HashMap<(u64, bool, u64), (f64, [f64; 2], f64, f64)>;

fn add_marks(sums: &mut Sums, table: &support::Table, lane: impl Fn(u64) -> u64) {
    let [lanes, kinds, counts, bytes, least, times, lasts] =
        ["lane", "kind", "count", "bytes", "bytes_min", "time", "time_last"].map(|name| table.numbers(name));
    let servers = table.flags("server");
    for row in 0..table.rows() {
        let of = |column: &Vec<Option<f64>>| column[row].unwrap();
        let key = (lane(of(&lanes) as u64), servers[row].unwrap(), of(&kinds) as u64);
        let sum = sums.entry(key).or_insert((0.0, [0.0, f64::MAX], f64::MAX, 0.0));
        *sum = (
            sum.0 + of(&counts),
            [sum.1[0].max(of(&bytes)), sum.1[1].min(of(&least))],
            sum.2.min(of(&times)),
            sum.3.max(of(&lasts)),
        );
    }
}

/// Lanes that connections share hold what the lanes of their own do.
async fn shared_lanes(page: &Page, id: &str, range: &str) {
    let base = format!("/captures/{id}/timing?{range}");
    let mut own = Vec::new();
    let mut total = 1;
    while own.len() * 1000 < total {
        let table = page
            .table(&format!("{base}&limit=1000&offset={}", own.len() * 1000))
            .await;
        total = table.says("total").parse().unwrap();
        assert_eq!(table.says("shared"), "0");
        own.push(table);
    }
    for share in [1, 7, 100] {
        let table = page
            .table(&format!("{base}&limit=0&share={share}&width=500&sort="))
            .await;
        let mut truth = Sums::new();
        for (number, own) in (0u64..).zip(&own) {
            add_marks(&mut truth, own, |lane| (number * 1000 + lane) * share / total as u64);
        }
        let mut sums = Sums::new();
        add_marks(&mut sums, &table, |lane| lane);
        assert_eq!(sums, truth, "{share} {range}");
        assert_eq!(
            (table.says("shared"), table.says("lanes")),
            (share.to_string(), "[]".into())
        );
        assert!(table.rows() <= 12_000);
        let width: f64 = table.says("width").parse().unwrap();
        let columns = page.json(&format!("/captures/{id}")).await["seconds"].as_f64().unwrap() / width;
        let (times, lasts) = (table.numbers("time"), table.numbers("time_last"));
        for (time, last) in times.iter().zip(lasts) {
            let lasts = last.unwrap() - time.unwrap();
            // A column that was put together with its neighbour holds what began in it.
            assert!((0.0..=2.0 * columns).contains(&lasts), "{lasts} {columns}");
        }
    }
    // In one column: data segments of all kinds, of each lane and side.
    let table = page.table(&format!("{base}&limit=0&share=3&width=1")).await;
    let [lanes, kinds, counts, segments] = ["lane", "kind", "count", "segments"].map(|name| table.numbers(name));
    let data = |row: &usize| [3.0, 4.0, 6.0].contains(&kinds[*row].unwrap());
    let servers = table.flags("server");
    for row in 0..table.rows() {
        let same = |other: &usize| lanes[*other] == lanes[row] && servers[*other] == servers[row];
        let all = (0..table.rows()).filter(same).filter(data);
        let all: f64 = all.map(|other| counts[other].unwrap()).sum();
        let expected = if table.says("exact") == "true" {
            counts[row].unwrap()
        } else {
            all
        };
        assert_eq!(segments[row], Some(expected), "{row} {range}");
    }
    // Who fit have lanes of their own.
    let table = page.table(&format!("{base}&limit=1000&share=3")).await;
    assert_eq!(table.says("shared"), if total > 1000 { "3" } else { "0" });
}

/// Packets of some connections against their messages.
async fn packets(page: &Page, id: &str, truth: &Analysis) {
    let mut seen = HashMap::new();
    let worst = |c: &&Connection| {
        directions(c)
            .map(|d| d.retransmitted_packets + d.lost_upstream)
            .iter()
            .sum::<u64>()
    };
    let mut chosen: Vec<&Connection> = truth.connections.iter().collect();
    chosen.sort_by_key(|c| std::cmp::Reverse(worst(c)));
    for connection in chosen.into_iter().take(25) {
        let base = format!("/captures/{id}/connections/{}", connection.id);
        let detail = page.json(&base).await;
        same(connection, &detail["connection"]);
        let of = |t: &&weir_messages::v1::Transaction| t.connection_id == connection.id;
        let mut transactions: Vec<_> = truth.transactions.iter().filter(of).collect();
        transactions.sort_by_key(|transaction| transaction.index);
        same(&transactions, &detail["transactions"]);

        let table = page.table(&format!("{base}/packets?limit=20000")).await;
        let [client, server] = directions(connection);
        if table.rows() == 20_000 {
            continue;
        }
        assert_eq!(table.rows() as u64, client.packets + server.packets);
        assert_eq!(
            table.sum("length"),
            (client.payload_bytes + server.payload_bytes) as f64
        );
        let times = table.numbers("time");
        assert!(times.is_sorted());
        let seconds = times.last().unwrap().unwrap() - times[0].unwrap();
        assert!((seconds - connection.duration_seconds).abs() < 1e-8);
        assert!((table.sum("delta") - (seconds + table.numbers("delta")[0].unwrap())).abs() < 1e-8);
        let names: Vec<String> = serde_json::from_str(&table.says("kinds")).unwrap();
        let of_kind = |name: &str| {
            let number = names.iter().position(|one| one == name).unwrap();
            table
                .numbers("kind")
                .iter()
                .filter(|kind| **kind == Some(number as f64))
                .count()
        };
        let some = page
            .table(&format!("{base}/packets?limit=20000&kinds=RETRANSMISSION,ACK"))
            .await;
        assert_eq!(some.rows(), of_kind("RETRANSMISSION") + of_kind("ACK"));
        for kind in table.numbers("kind") {
            *seen.entry(kind.unwrap() as usize).or_insert(0) += 1;
        }
        // A retransmission carries what an earlier packet of the same side carried.
        let packets = table.numbers("packet");
        let place: HashMap<u64, usize> = packets
            .iter()
            .enumerate()
            .map(|(n, p)| (p.unwrap() as u64, n))
            .collect();
        let (seqs, lengths, sides) = (
            table.numbers("seq_relative"),
            table.numbers("length"),
            table.flags("server"),
        );
        for (row, original) in table.numbers("original").into_iter().enumerate() {
            let Some(original) = original else { continue };
            let first = place[&(original as u64)];
            assert!(first < row && sides[first] == sides[row]);
            let end = seqs[first].unwrap() + lengths[first].unwrap().max(1.0);
            assert!(seqs[first] <= seqs[row] && seqs[row].unwrap() < end);
        }
        // The graph's columns hold the same packets.
        for side in ["client", "server"] {
            let graph = page.table(&format!("{base}/sequence?side={side}&width=7")).await;
            let sent = if side == "client" { client } else { server };
            assert_eq!(graph.sum("bytes"), sent.payload_bytes as f64);
            let flight = graph.numbers("in_flight_max").into_iter().flatten().reduce(f64::max);
            assert!(
                flight.unwrap_or(0.0) + 2.0 >= sent.max_in_flight as f64,
                "{flight:?} {}",
                sent.max_in_flight
            );
        }
    }
    assert!(seen.len() >= 4, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_is_as_the_analysis_says() {
    let truth = analysis(&demo());
    let page = Page::of(&[&demo()]).await;
    figures(&page, "1", &truth).await;
    packets(&page, "1", &truth).await;
    zooms(&page, "1", truth.summary.as_ref().unwrap().duration_seconds, 7).await;
    shared_lanes(&page, "1", "").await;
}

/// What hosts wait for: all of it, joined or not, as the transactions and the tiers say.
async fn waits(page: &Page, truth: &Analysis) {
    let all = page.table("/captures/1/waits?limit=20000").await;
    let joined = page.table("/captures/1/waits?limit=1&width=10").await;
    assert_eq!(joined.says("exact"), "false");
    assert!((all.sum("seconds") - joined.sum("seconds")).abs() < 1e-6);
    assert_eq!(joined.sum("count").to_string(), joined.says("rows"));
    let tier = &truth.summary.as_ref().unwrap().tiers[0];
    assert_eq!(all.says("decided"), tier.calls_decided.to_string());
    assert_eq!(all.says("ambiguous"), tier.calls_ambiguous.to_string());
    let kinds: Value = serde_json::from_str(&all.says("kinds")).unwrap();
    let spent = |name: &str| {
        let kinds = kinds.as_array().unwrap();
        number(&kinds.iter().find(|kind| kind["name"] == name).unwrap()["seconds"])
    };
    let called: f64 = spent("CALL");
    assert!(
        (called - tier.decided_seconds).abs() < 0.01 * tier.decided_seconds,
        "{called}"
    );
    // The server's times, and those parts of responses that are its own.
    let data = || truth.transactions.iter().filter(|t| t.kind != "SETUP");
    let server: f64 = data().filter_map(|t| t.server_seconds).sum();
    let response: f64 = data().filter_map(|t| t.response_seconds).sum();
    let parts = called + spent("SERVER") + spent("UNDECIDED") + spent("RESPONSE");
    assert!(
        (parts - server - response).abs() < 1e-3 * parts,
        "{parts} {server} {response}"
    );

    // One request in front, with its calls.
    let request = tier.slowest.iter().find(|request| request.calls.len() > 1).unwrap();
    let filter = format!("filter=id%20%3D%20{}", request.connection_id);
    let own = page.table(&format!("/captures/1/waits?limit=20000&{filter}")).await;
    let calls: HashSet<_> = own.texts("call_connection").into_iter().flatten().collect();
    let made = own
        .texts("for_connection")
        .into_iter()
        .flatten()
        .collect::<HashSet<_>>();
    assert_eq!(made, HashSet::from([request.connection_id.to_string()]));
    let messages = format!("/captures/1/exchange?limit=20000&{filter}");
    let alone = page.table(&messages).await;
    let with_calls = page.table(&format!("{messages}&calls=true")).await;
    let ports = |table: &support::Table| -> HashSet<u32> {
        let ports = table.numbers("port").into_iter().flatten();
        ports.map(|port| port as u32).collect()
    };
    let tier_ports = [&tier.front, &tier.back].map(|end| end.as_ref().unwrap().port);
    assert_eq!(ports(&alone), HashSet::from([tier_ports[0]]));
    assert_eq!(ports(&with_calls), HashSet::from(tier_ports));
    for call in &request.calls {
        assert!(calls.contains(&call.connection_id.to_string()), "{call:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_megalodon_is_as_the_analysis_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = megalodon(folder.path());
    let truth = analysis(&path);
    assert!(truth.connections.len() > 500, "{}", truth.connections.len());
    let page = Page::of(&[&path]).await;
    figures(&page, "1", &truth).await;
    packets(&page, "1", &truth).await;
    zooms(&page, "1", truth.summary.as_ref().unwrap().duration_seconds, 99).await;
    shared_lanes(&page, "1", "").await;
    shared_lanes(&page, "1", "from=2&to=6&filter=client_to_server.packets%20%3E%209").await;

    // A filter over connections holds for the time line, too.
    let all = page.table("/captures/1/timeline?width=50").await;
    let filter = |server: &str| format!("filter=server.port%20{server}");
    let some = page
        .table(&format!("/captures/1/timeline?width=50&{}", filter("%3D%2080")))
        .await;
    let rest = page
        .table(&format!("/captures/1/timeline?width=50&{}", filter("!%3D%2080")))
        .await;
    for name in [
        "opened",
        "requests",
        "client_packets",
        "server_bytes",
        "server_retransmitted",
        "client_lost",
    ] {
        assert_eq!(some.sum(name) + rest.sum(name), all.sum(name), "{name}");
    }

    // Messages: all of them, joined or not.
    let exact = page.table("/captures/1/exchange?limit=20000&to=2").await;
    let joined = page.table("/captures/1/exchange?limit=1&to=2&width=10").await;
    assert_eq!(
        (exact.says("exact"), joined.says("exact")),
        ("true".into(), "false".into())
    );
    assert_eq!(exact.sum("bytes"), joined.sum("bytes"));
    assert_eq!(joined.sum("count").to_string(), joined.says("rows"));

    waits(&page, &truth).await;

    // Completion.
    let fields = page.json("/captures/1/complete?filter=setup.o").await;
    assert_eq!(fields["items"][0]["text"], "setup.outcome");
    assert_eq!((&fields["from"], &fields["to"]), (&0.into(), &7.into()));
    let values = page.json("/captures/1/complete?filter=setup.outcome%20%3D%20").await;
    assert!(
        values["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|item| item["text"] == "OK"),
        "{values}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameters_are_named() {
    let page = Page::of(&[&demo()]).await;
    for (route, part) in [
        ("/timeline?width=0", "width"),
        ("/timeline?width=4097", "1 to 4096"),
        ("/timeline?width=-1", "width"),
        ("/timeline?from=5&to=5", "from, to"),
        ("/timeline?from=NaN", "from"),
        ("/timeline?to=1e999", "to"),
        ("/timeline?columns=opened,nonsense", "nonsense"),
        ("/timeline?widht=5", "widht"),
        ("/timeline?width=5&width=6", "more than once"),
        ("/timeline?filter=((((", "position"),
        ("/connections?filter=clientt.port%3D1", "clientt"),
        ("/connections?sort=nonsense", "sort"),
        ("/connections?limit=10001", "limit"),
        ("/connections?offset=-1", "offset"),
        ("/connections?columns=a", "columns"),
        ("/connections?touch=never", "touch"),
        ("/connections?format=xml", "format"),
        ("/marks?value=mood", "value"),
        ("/marks?by=mood", "by"),
        ("/marks?low=2&high=1", "low, high"),
        ("/marks?height=100000", "height"),
        ("/histogram?bins=1", "bins"),
        ("/statistics?limit=0", "limit"),
        ("/timing?limit=1001", "limit"),
        ("/timing?share=0", "share"),
        ("/exchange?limit=0", "limit"),
        ("/columns?table=tables", "table"),
        ("/complete?cursor=99999", "cursor"),
        ("/summary?x=1", "x"),
    ] {
        let message = page.refused(&format!("/captures/1{route}"), 400).await;
        assert!(message.contains(part), "{route}: {message}");
    }
    for route in ["/captures?x=1", "/captures/1?x=1", "/events?x=1"] {
        let message = page.refused(route, 400).await;
        assert!(message.contains("\"x\""), "{route}: {message}");
    }
    let (status, _) = page.ask(Method::POST, "/captures/1/close?x=1", Body::empty()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let long = "a".repeat(20_000);
    page.refused(&format!("/captures/1/connections?filter={long}"), 400)
        .await;
    for route in [
        "/captures/1/nonsense",
        "/captures/2",
        "/captures/x",
        "/captures/-1/summary",
        "/captures/1/connections/0",
        "/captures/1/connections/x/packets",
        "/nonsense",
    ] {
        page.refused(route, 404).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_are_read_or_refused_and_others_stay() {
    let page = Page::of(&[]).await;
    let good = std::fs::read(demo()).unwrap();
    let send = async |name: &str, bytes: &[u8]| {
        let path = format!("/captures?name={name}");
        let (status, body) = page.ask(Method::POST, &path, Body::from(bytes.to_vec())).await;
        let object: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, StatusCode::CREATED, "{object}");
        page.settled(object["id"].as_str().unwrap()).await
    };
    let first = send("demo.pcap", &good).await;
    assert_eq!(
        (&first["state"], &first["name"]),
        (&"READY".into(), &"demo.pcap".into()),
        "{first}"
    );
    assert!(first.get("error").is_none());
    let cut = send("cut.pcap", &good[..good.len() - 7]).await;
    assert_eq!(cut["state"], "READY");
    assert!(cut["error"].as_str().unwrap().contains("cut.pcap"), "{cut}");
    for (name, bytes) in [
        ("empty.pcap", &b""[..]),
        ("noise.pcap", &[7u8; 5000]),
        ("short.pcap", &good[..20]),
    ] {
        let object = send(name, bytes).await;
        assert_eq!(object["state"], "FAILED", "{object}");
        assert!(object["error"].as_str().unwrap().contains(name), "{object}");
        let id = object["id"].as_str().unwrap();
        page.refused(&format!("/captures/{id}/summary"), 409).await;
    }
    // What breaks off leaves nothing.
    let pieces = vec![Ok(good[..100].to_vec()), Err(std::io::Error::other("gone"))];
    let body = Body::from_stream(tokio_stream::iter(pieces));
    let (status, _) = page.ask(Method::POST, "/captures?name=broken.pcap", body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let all = page.json("/captures").await;
    assert_eq!(all["captures"].as_array().unwrap().len(), 5);
    // As many as there may be; closing makes room.
    for _ in 0..3 {
        send("demo.pcap", &good).await;
    }
    let (status, _) = page.ask(Method::POST, "/captures", Body::from(good.clone())).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    let (status, _) = page.ask(Method::POST, "/captures/3/close", Body::empty()).await;
    assert_eq!(status, StatusCode::OK);
    page.refused("/captures/3", 404).await;
    send("demo.pcap", &good).await;
    page.json("/captures/1/summary").await;
}
