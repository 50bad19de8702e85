//! Rows are the facts and records that went in.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Float64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow::util::display::array_value_to_string;
use weir_analysis::{Analyzer, Config, Connection, DataBlock, Ends, Sink, Transaction, Verdict};
use weir_messages::v1;
use weir_record::{Event, Header, Interval, Kind, Packet, Record, Untracked, what};
use weir_store::tables::{self, Builder, ROWS, Table, Tables};

use crate::capture::demo;

/// Facts to the tables, and beside them as messages.
struct Both {
    tables: Tables,
    analysis: v1::Analysis,
    blocks: Vec<DataBlock>,
    segments: Vec<v1::Segment>,
}

impl Sink for Both {
    fn connection(&mut self, connection: &Connection<'_>) {
        self.analysis.connection(connection);
        self.tables.connection(connection);
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.analysis.transaction(transaction);
        self.tables.transaction(transaction);
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.analysis.finding(finding.clone());
        self.tables.finding(finding);
    }

    fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        self.segments.push(verdict.message());
        self.tables.segment(verdict, ends);
    }

    fn block(&mut self, block: &DataBlock) {
        self.blocks.push(*block);
        self.tables.block(block);
    }
}

/// The demo capture in records, in messages and in tables, each in one batch.
fn demo_tables(cut: usize) -> (Vec<Record>, Both, BTreeMap<Table, RecordBatch>) {
    let records = demo();
    let mut both = Both {
        tables: Tables::new("demo"),
        analysis: v1::Analysis::default(),
        blocks: Vec::new(),
        segments: Vec::new(),
    };
    let mut batches: BTreeMap<Table, Vec<RecordBatch>> = BTreeMap::new();
    let mut analyzer = Analyzer::new(Config::default());
    for part in records.chunks(cut) {
        both.tables.records(part);
        analyzer.push(part, &mut both);
        for (table, batch) in both.tables.ready().unwrap() {
            assert_eq!(batch.num_rows(), ROWS, "{table:?}");
            batches.entry(table).or_default().push(batch);
        }
    }
    let summary = analyzer.finish(&mut both);
    both.tables.complete(&summary);
    for (table, batch) in both.tables.flush().unwrap() {
        batches.entry(table).or_default().push(batch);
    }
    assert!(both.tables.flush().unwrap().is_empty(), "all rows came");
    let whole = |(table, batches): (Table, Vec<RecordBatch>)| {
        let batch = concat_batches(&table.schema(), &batches).unwrap();
        (table, batch)
    };
    (records, both, batches.into_iter().map(whole).collect())
}

/// A column of a batch.
fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a dyn Array {
    batch.column_by_name(name).unwrap_or_else(|| panic!("{name}")).as_ref()
}

fn u64s(batch: &RecordBatch, name: &str) -> Vec<Option<u64>> {
    let array = column(batch, name);
    match array.data_type() {
        DataType::UInt8 => array
            .as_primitive::<UInt8Type>()
            .iter()
            .map(|v| v.map(u64::from))
            .collect(),
        DataType::UInt16 => array
            .as_primitive::<UInt16Type>()
            .iter()
            .map(|v| v.map(u64::from))
            .collect(),
        DataType::UInt32 => array
            .as_primitive::<UInt32Type>()
            .iter()
            .map(|v| v.map(u64::from))
            .collect(),
        _ => array.as_primitive::<UInt64Type>().iter().collect(),
    }
}

fn f64s(batch: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    column(batch, name).as_primitive::<Float64Type>().iter().collect()
}

/// A row of `numbers`.
fn numbers_of(batch: &RecordBatch, row: usize) -> BTreeMap<String, f64> {
    let entries = column(batch, "numbers").as_map().value(row);
    let names = entries.column(0).as_string::<i32>().iter().flatten().map(str::to_owned);
    names
        .zip(entries.column(1).as_primitive::<Float64Type>().values().iter().copied())
        .collect()
}

fn times(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    column(batch, name)
        .as_primitive::<TimestampNanosecondType>()
        .iter()
        .collect()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let array = column(batch, name);
    let text = |row| array.is_valid(row).then(|| array_value_to_string(array, row).unwrap());
    (0..array.len()).map(text).collect()
}

fn some<T: Clone>(values: impl IntoIterator<Item = T>) -> Vec<Option<T>> {
    values.into_iter().map(Some).collect()
}

#[test]
fn rows_are_the_facts() {
    let (records, both, tables) = demo_tables(1000);
    let Both {
        analysis,
        blocks,
        segments,
        ..
    } = both;
    for (table, batch) in &tables {
        assert_eq!(batch.schema(), table.schema());
        assert!(texts(batch, "tap").iter().all(|tap| tap.as_deref() == Some("demo")));
        assert!(
            times(batch, table.time_column()).iter().all(Option::is_some),
            "{table:?}"
        );
    }

    let batch = &tables[&Table::Connections];
    let all = &analysis.connections;
    assert!(all.len() > 10);
    assert_eq!(u64s(batch, "id"), some(all.iter().map(|c| c.id)));
    let client = |c: &v1::Connection| c.client.clone().unwrap();
    assert_eq!(
        texts(batch, "client_address"),
        some(all.iter().map(|c| client(c).address))
    );
    assert_eq!(
        u64s(batch, "client_port"),
        some(all.iter().map(|c| u64::from(client(c).port)))
    );
    let outcome = |c: &v1::Connection| c.setup.as_ref().map(|setup| setup.outcome.clone());
    assert_eq!(
        texts(batch, "setup_outcome"),
        all.iter().map(outcome).collect::<Vec<_>>()
    );
    let p95 = |c: &v1::Connection| c.server_to_client.as_ref()?.rtt.as_ref()?.p95_seconds;
    assert_eq!(
        f64s(batch, "server_to_client_rtt_p95_seconds"),
        all.iter().map(p95).collect::<Vec<_>>()
    );
    let sent = |c: &v1::Connection| Some(c.client_to_server.as_ref()?.packets);
    assert_eq!(
        u64s(batch, "client_to_server_packets"),
        all.iter().map(sent).collect::<Vec<_>>()
    );

    let batch = &tables[&Table::Transactions];
    let all = &analysis.transactions;
    assert!(all.len() > 10);
    assert_eq!(u64s(batch, "connection_id"), some(all.iter().map(|t| t.connection_id)));
    assert_eq!(texts(batch, "signature"), some(all.iter().map(|t| t.signature.clone())));
    assert_eq!(
        f64s(batch, "server_seconds"),
        all.iter().map(|t| t.server_seconds).collect::<Vec<_>>()
    );
    let time = |t: &v1::Transaction| t.request_time.map(|time| time.unix_nanos());
    assert_eq!(times(batch, "request_time"), all.iter().map(time).collect::<Vec<_>>());
    // A transaction talks as its connection does.
    let ends: BTreeMap<u64, String> = analysis.connections.iter().map(|c| (c.id, client(c).address)).collect();
    let of = |t: &v1::Transaction| ends[&t.connection_id].clone();
    assert_eq!(texts(batch, "client_address"), some(all.iter().map(of)));

    assert_eq!(
        u64s(&tables[&Table::Blocks], "bytes"),
        some(blocks.iter().map(|b| u64::from(b.bytes)))
    );
    let batch = &tables[&Table::Segments];
    assert!(!segments.is_empty());
    assert_eq!(texts(batch, "place"), some(segments.iter().map(|s| s.place.clone())));
    assert_eq!(f64s(batch, "confidence"), some(segments.iter().map(|s| s.confidence)));
    let batch = &tables[&Table::Findings];
    assert!(!analysis.findings.is_empty());
    assert_eq!(
        texts(batch, "kind"),
        some(analysis.findings.iter().map(|f| f.kind.clone()))
    );
    let json = |f: &v1::Finding| serde_json::to_string(&f.values).unwrap();
    assert_eq!(texts(batch, "values"), some(analysis.findings.iter().map(json)));
    for (row, finding) in analysis.findings.iter().enumerate() {
        let values = serde_json::to_value(&finding.values).unwrap();
        let numbers = values.as_object().unwrap().iter();
        let numbers = numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
        assert_eq!(numbers_of(batch, row), numbers.collect(), "{}", finding.kind);
    }

    let of = |kind| {
        records
            .iter()
            .filter(move |r| r.kind() == Some(kind) && !r.is_continuation())
    };
    let ids: Vec<_> = of(Kind::Interval)
        .map(|r| Some(u64::from(Interval::decode(r).ip_id)).filter(|id| *id != 0))
        .collect();
    assert!(ids.iter().any(Option::is_some));
    assert_eq!(u64s(&tables[&Table::Intervals], "ip_id"), ids);
    assert_eq!(tables[&Table::Ports].num_rows(), of(Kind::Port).count());
    let events: Vec<_> = of(Kind::Event).map(|r| u64::from(Event::decode(r).seq)).collect();
    assert_eq!(u64s(&tables[&Table::Events], "seq"), some(events));
    let steps = u64s(&tables[&Table::Events], "id_step");
    let told: Vec<_> = of(Kind::Event).map(|r| u64::from(Event::decode(r).id_step)).collect();
    assert!(steps.iter().any(Option::is_some));
    assert_eq!(steps.iter().map(|step| step.unwrap_or(0)).collect::<Vec<_>>(), told);
    let packets: Vec<_> = of(Kind::Packet).map(|r| Packet::decode(r).number).collect();
    assert_eq!(u64s(&tables[&Table::Packets], "number"), some(packets));
}

#[test]
fn a_step_of_0_is_known_of_copies_only() {
    let mut builder = Builder::new("t");
    for (what, id_step) in [(what::GAP, 0), (what::GAP, 1), (what::COPY, 0), (what::ICMP, 0)] {
        let event = Event {
            what,
            id_step,
            ..Event::decode(&Record([0; 64]))
        };
        let record = event.encode(Header {
            time: 1 << 60,
            ..Header::default()
        });
        builder.push(&tables::Event::new(&record, None)).unwrap();
    }
    let batch = builder.finish().unwrap();
    assert_eq!(u64s(&batch, "id_step"), [None, Some(1), Some(0), None]);
}

#[test]
fn rows_do_not_depend_on_how_the_input_is_cut() {
    let (_, _, whole) = demo_tables(usize::MAX);
    for cut in [1, 7, 4096] {
        assert_eq!(demo_tables(cut).2, whole, "records {cut} at a time");
    }
}

#[test]
fn what_is_not_known_is_null() {
    let mut builder = Builder::new("t");
    builder
        .push(&v1::Connection {
            first_packet_time: Some(weir_messages::Timestamp::from_unix_nanos(1)),
            tunnel: "NONE".into(),
            ..v1::Connection::default()
        })
        .unwrap();
    let batch = builder.finish().unwrap();
    for column in Table::Connections.columns() {
        let array = batch.column_by_name(column.name).unwrap();
        // A list without entries says: nothing is missing.
        let known = !column.nullable || column.name == "tunnel" || column.name == "setup_missing";
        assert_eq!(array.is_valid(0), known, "{}", column.name);
    }
}

#[test]
fn a_port_has_a_column_for_each_cause() {
    let columns = Table::Ports.columns();
    let named = columns
        .iter()
        .filter_map(|column| column.name.strip_prefix("untracked_"));
    let causes = Untracked::ALL.iter().map(|cause| cause.name().to_lowercase());
    assert!(named.eq(causes));
}

#[test]
fn names_are_sql_words_and_unique() {
    for table in Table::ALL {
        assert_eq!(Table::from_name(table.name()), Some(table));
        let mut names: Vec<_> = table.columns().iter().map(|column| column.name).collect();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(names.iter().all(|name| name.chars().all(plain)), "{names:?}");
        assert!(names.contains(&table.time_column()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", table.name());
    }
}
