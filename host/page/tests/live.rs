//! What a daemon shows of the records that it measures, against the same capture read from its file.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use support::{Page, demo, megalodon, read_records};
use weir_analysis::{Analyzer, Config, DataBlock, Ends, Sink, Verdict};
use weir_api::facts::{FactStore, Limits as FactLimits};
use weir_messages::Timestamp;
use weir_messages::v1::{Connection, Finding, Summary, Transaction};
use weir_page::{Captures, Limits, Live, Recent, Site, router};
use weir_record::time::utc_from_tai;
use weir_record::{FlowId, Header, Kind, Record};

/// What the daemon hands on.
#[derive(Default)]
struct Facts {
    connections: Vec<Connection>,
    transactions: Vec<Transaction>,
    verdicts: Vec<Verdict>,
    blocks: Vec<DataBlock>,
}

impl Sink for Facts {
    fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
        self.connections.push(connection.message());
    }
    fn transaction(&mut self, transaction: &weir_analysis::Transaction<'_>) {
        self.transactions.push(transaction.message());
    }
    fn finding(&mut self, _: Finding) {}
    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        self.verdicts.push(*verdict);
    }
    fn block(&mut self, block: &DataBlock) {
        self.blocks.push(*block);
    }
}

/// The page of a daemon that keeps `packets` packets; `digests`: it knows that they come; `order`: how their records come.
fn daemon(file: &Path, packets: usize, digests: bool, order: impl Fn(&mut Vec<Record>)) -> Page {
    let limits = Limits {
        packets,
        ..Limits::default()
    };
    daemon_within(file, FactLimits::default(), limits, digests, order)
}

/// The same with other limits.
fn daemon_within(
    file: &Path,
    fact_limits: FactLimits,
    limits: Limits,
    digests: bool,
    order: impl Fn(&mut Vec<Record>),
) -> Page {
    let mut records = Vec::new();
    read_records(file, |some| records.extend_from_slice(some)).unwrap();
    let mut analyzer = Analyzer::new(Config::default());
    let mut found = Facts::default();
    analyzer.push(&records, &mut found);
    let summary = analyzer.finish(&mut found);
    let facts = FactStore::new(fact_limits);
    facts.update_transactions(found.transactions);
    facts.update_connections(found.connections);
    facts.set_summary(summary);
    let mut recent = Recent::new(limits, digests);
    order(&mut records);
    recent.records(&records);
    found.verdicts.iter().for_each(|verdict| recent.verdict(verdict));
    found.blocks.iter().for_each(|block| recent.block(block));
    page_of(facts, recent)
}

/// The page of a daemon that knows these.
fn page_of(facts: FactStore, recent: Recent) -> Page {
    let captures = Captures::new(Arc::new(|_, _| Err("no files here".into())));
    let live = Live {
        name: "live".into(),
        facts: Arc::new(facts),
        recent: Arc::new(Mutex::new(recent)),
    };
    captures.watch(live).unwrap();
    Page(router(Arc::new(captures), Site::default()))
}

/// What is the same however many packets are kept, text for each packet by its number.
async fn packets(page: &Page, connection: &str) -> HashMap<u64, String> {
    let table = page
        .table(&format!("/captures/1/connections/{connection}/packets?limit=20000"))
        .await;
    let numbers =
        ["number", "time", "kind", "length", "seq", "ack", "flags", "block_bytes"].map(|name| table.numbers(name));
    let texts = ["class", "note"].map(|name| table.texts(name));
    (0..table.rows())
        .map(|row| {
            let numbers = numbers.each_ref().map(|column| column[row]);
            let texts = texts.each_ref().map(|column| column[row].clone());
            (numbers[0].unwrap() as u64, format!("{numbers:?} {texts:?}"))
        })
        .collect()
}

async fn ids(page: &Page) -> Vec<String> {
    let table = page.table("/captures/1/connections?columns=id&limit=10000").await;
    table.texts("id").into_iter().flatten().collect()
}

async fn count(page: &Page, name: &str) -> usize {
    let object = page.json("/captures/1").await;
    object[name].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn packets_of_a_daemon_are_those_of_the_file() {
    let file = Page::of(&[&demo()]).await;
    // As they come, and as two ports might deliver them: all of some connections before any of the others.
    let apart = |records: &mut Vec<Record>| records.sort_by_key(|record| record.flow().0 % 2);
    for live in [
        daemon(&demo(), 1_000_000, true, |_| {}),
        daemon(&demo(), 1_000_000, true, apart),
        // A card sends them on its own account.
        daemon(&demo(), 1_000_000, false, |_| {}),
    ] {
        assert_eq!(live.json("/captures/1").await["hasPackets"], true);
        let all = ids(&file).await;
        assert_eq!(ids(&live).await, all);
        assert_eq!(count(&live, "packets").await, count(&file, "packets").await);
        assert_eq!(count(&live, "packetsDropped").await, 0);
        for id in &all {
            assert_eq!(packets(&live, id).await, packets(&file, id).await, "{id}");
        }
        let timing = |page| async move { Page::table(page, "/captures/1/timing?width=300&limit=1000").await };
        let (mine, theirs) = (timing(&live).await, timing(&file).await);
        for name in ["lane", "kind", "time", "count", "bytes", "packet"] {
            assert_eq!(mine.numbers(name), theirs.numbers(name), "{name}");
        }
    }
}

#[tokio::test]
async fn a_daemon_keeps_the_last_packets_and_counts_the_others() {
    const MOST: usize = 3000;
    let folder = tempfile::tempdir().unwrap();
    let capture = megalodon(folder.path());
    let file = Page::of(&[&capture]).await;
    let live = daemon(&capture, MOST, true, |_| {});
    let (all, kept) = (count(&file, "packets").await, count(&live, "packets").await);
    assert!(all > 2 * MOST, "{all}");
    assert!((MOST..=MOST + MOST / 4).contains(&kept), "{kept}");
    assert_eq!(count(&live, "packetsDropped").await, all - kept);
    let (mut known, mut last) = (0, 0);
    let (mut of_file, mut of_live) = (HashMap::new(), HashMap::new());
    for id in ids(&file).await {
        of_file.extend(packets(&file, &id).await);
        of_live.extend(packets(&live, &id).await);
    }
    let mut numbers: Vec<&u64> = of_file.keys().collect();
    numbers.sort_unstable();
    for (place, number) in numbers.iter().enumerate() {
        let is_kept = place >= all - kept;
        assert_eq!(of_live.contains_key(number), is_kept, "{number}");
        if is_kept {
            assert_eq!(of_live[number], of_file[number]);
            known += 1;
            last = **number;
        }
    }
    assert_eq!((known, Some(&&last)), (kept, numbers.last()));
}

/// What is not kept any more was not nothing.
#[tokio::test]
async fn what_a_daemon_no_longer_keeps_is_not_known() {
    let file = Page::of(&[&demo()]).await;
    let all = ids(&file).await.len();
    for (connections, transactions) in [(all / 2, 1_000_000), (1_000_000, 2 * all)] {
        let facts = FactLimits {
            connections,
            transactions,
            ..FactLimits::default()
        };
        let limits = Limits {
            verdicts: 3,
            blocks: 50,
            packets: 1,
            ..Limits::default()
        };
        let live = daemon_within(&demo(), facts, limits, true, |_| {});
        let object = live.json("/captures/1").await;
        let (kept_from, end) = (
            object["keptFrom"].as_f64().unwrap(),
            object["seconds"].as_f64().unwrap(),
        );
        assert!(0.0 < kept_from && kept_from < end, "{kept_from} of {end}");

        let range = format!("/captures/1/timeline?width=200&from=0&to={end}");
        let (mine, theirs) = (live.table(&range).await, file.table(&range).await);
        for name in "connections_max connections_mean opened closed failed in_progress_min requests responses \
                     client_lost server_retransmitted syn_repeats missed_by_capture"
            .split_whitespace()
        {
            let (mine, theirs) = (mine.numbers(name), theirs.numbers(name));
            let known = mine.iter().zip(&theirs).filter(|(mine, _)| mine.is_some());
            known.for_each(|(mine, theirs)| assert_eq!(mine, theirs, "{name}"));
            assert!(mine.last().unwrap().is_some(), "{name}");
        }
        let gone = if connections < all { "opened" } else { "responses" };
        for name in [gone, "client_packets", "syn_repeats"] {
            assert!(mine.numbers(name).iter().any(Option::is_none), "{name}");
        }

        // Of the others a filter can tell nothing.
        let filtered = live.table(&format!("{range}&filter=server.port%3E0")).await;
        assert_eq!(filtered.numbers(gone)[0], None);
        assert_eq!(filtered.numbers("responses")[0], None);

        let whole = live.table("/captures/1/timeline?width=200").await;
        assert!((whole.numbers("time")[0].unwrap() - kept_from).abs() < 1e-9);
        assert!(whole.numbers("opened").iter().all(Option::is_some));
        assert!(whole.numbers("responses").iter().all(Option::is_some));
        // Tables have all that there is.
        assert_eq!(ids(&live).await.len(), all.min(connections));
    }
}

/// A server that does not answer shows while it does not, also when nothing else passes. The first connection that is over
/// began 5 s after the first packet.
#[tokio::test]
async fn requests_that_wait_are_in_progress() {
    let mut recent = Recent::new(Limits::live(), false);
    let (start, second) = (1_795_000_000_000_000_000, 1_000_000_000);
    let header = Header {
        flags: 0,
        lane: 0,
        arg: 0,
        sequence: 0,
        flow: FlowId(0),
        time: start,
    };
    recent.records(&[header.start(Kind::Port, false)]);
    recent.set_now(
        start + 30 * second,
        vec![(FlowId(8), start + 20 * second), (FlowId(7), start + 10 * second)],
    );
    let facts = FactStore::new(FactLimits::default());
    facts.set_summary(Summary {
        start: Some(Timestamp::from_unix_nanos(utc_from_tai(start + 5 * second) as i64)),
        ..Summary::default()
    });
    let page = page_of(facts, recent);
    let object = page.json("/captures/1").await;
    assert_eq!(object["seconds"], 30.0);
    let waiting = &object["waiting"];
    assert_eq!(
        (&waiting["count"], &waiting["connectionIds"][0]),
        (&"2".into(), &"7".into())
    );
    assert!((waiting["longestSeconds"].as_f64().unwrap() - 20.0).abs() < 1e-6);
    let table = page.table("/captures/1/timeline?from=0&to=30&width=3").await;
    assert_eq!(table.numbers("in_progress_max"), [Some(0.0), Some(1.0), Some(2.0)]);
}

#[tokio::test]
async fn a_daemon_without_digests_says_that_it_has_no_packets() {
    let page = page_of(
        FactStore::new(FactLimits::default()),
        Recent::new(Limits::live(), false),
    );
    assert_eq!(page.json("/captures/1").await["hasPackets"], false);
    page.refused("/captures/1/timing", 404).await;
}
