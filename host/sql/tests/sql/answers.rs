//! Queries and their answers.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use weir_sql::engine::{Engine, Limits, Spill};
use weir_sql::error::Error;
use weir_sql::functions::Hosts;
use weir_sql::output::{self, Format};
use weir_store::tables::Table;

use super::{SIZE, ask, explain, fails, limits, open, sample, text};
use weir_store::{Options, Store};

use crate::sample::{TRANSACTIONS, client, commit, hour_name, refused, server, server_seconds};

#[tokio::test]
async fn counts_follow_from_the_rows() {
    let (_folder, engine) = sample();
    assert_eq!(text(&engine, "SELECT count(*) FROM connections").await, "2000");
    assert_eq!(text(&engine, "SELECT count(*) FROM transactions").await, "20000");
    assert_eq!(
        text(&engine, "SELECT count(*) FROM packets").await,
        "0",
        "a table without files"
    );
    let expected = (0..SIZE.connections).filter(|id| refused(*id)).count();
    let sql = "SELECT count(*) FROM connections WHERE setup_outcome = 'REFUSED'";
    assert_eq!(text(&engine, sql).await, expected.to_string());

    let mut by_server = BTreeMap::new();
    for id in 0..SIZE.connections {
        let sum: &mut (u64, f64) = by_server.entry(server(id).to_string()).or_default();
        sum.0 += TRANSACTIONS;
        sum.1 += (0..TRANSACTIONS).map(|index| server_seconds(id, index)).sum::<f64>();
    }
    let rows = by_server
        .iter()
        .map(|(server, (count, sum))| format!("{server}|{count}|{sum:.6}"));
    let sql = "SELECT server_address, count(*), round(sum(server_seconds), 6) FROM transactions GROUP BY 1 ORDER BY 1";
    let close = |line: &str| -> Vec<String> {
        let mut words: Vec<_> = line.split('|').map(str::to_owned).collect();
        words[2] = format!("{:.4}", words[2].parse::<f64>().expect("number"));
        words
    };
    let answer = text(&engine, sql).await;
    let answer: Vec<_> = answer.lines().map(close).collect();
    assert_eq!(answer, rows.map(|line| close(&line)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_join_finds_each_transaction_its_connection() {
    let (_folder, engine) = sample();
    let sql = "SELECT count(*) FROM transactions t JOIN connections c ON c.id = t.connection_id AND c.tap = t.tap
               WHERE c.client_address = t.client_address AND c.hour <= t.hour";
    assert_eq!(text(&engine, sql).await, "20000");
}

#[tokio::test]
async fn filters_on_tap_hour_and_time_read_few_files() {
    let (_folder, engine) = sample();
    // 2 taps and 3 hours are 6 files.
    let east = explain(&engine, "SELECT id FROM connections WHERE tap = 'east'").await;
    assert!(!east.contains("tap=west") && east.contains("tap=east"), "{east}");
    let hour = hour_name(1);
    let sql = format!("SELECT id FROM connections WHERE hour = '{hour}' AND tap IN ('east', 'west')");
    let one_hour = explain(&engine, &sql).await;
    assert!(
        one_hour.contains(&format!("tap=east/hour={hour}")) && one_hour.contains("tap=west"),
        "{one_hour}"
    );
    for other in [0, 2].map(hour_name) {
        assert!(!one_hour.contains(&format!("/hour={other}")), "{one_hour}");
    }
    let sql = format!("SELECT count(*) FROM connections WHERE hour > '{hour}' AND tap LIKE 'w%'");
    let expected = (0..SIZE.connections)
        .filter(|id| id % 2 == 1 && id * 3 / SIZE.connections == 2)
        .count();
    assert_eq!(text(&engine, &sql).await, expected.to_string());
    // By the files' own statistics.
    let sql = "SELECT id FROM connections WHERE first_packet_time >= '2026-01-31T14:30:00Z'";
    let late = explain(&engine, sql).await;
    assert!(
        late.contains("files_ranges_pruned_statistics=6 total → 2 matched"),
        "{late}"
    );
}

#[tokio::test]
async fn tables_are_listed_and_described() {
    let (_folder, engine) = sample();
    let tables = text(
        &engine,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'store'",
    )
    .await;
    let mut tables: Vec<_> = tables.lines().collect();
    tables.sort_unstable();
    let mut expected = Table::ALL.map(Table::name);
    expected.sort_unstable();
    assert_eq!(tables, expected);
    let described = text(&engine, "DESCRIBE transactions").await;
    assert!(described.contains("server_seconds|Float64|YES"), "{described}");
    assert_eq!(
        described.matches("tap|").count(),
        1,
        "the folder's column alone: {described}"
    );
}

#[tokio::test]
async fn a_commit_is_seen_by_the_next_query() {
    let (store, engine) = sample();
    let sql = "SELECT count(*), max(id) FROM connections WHERE tap = 'east'";
    assert_eq!(text(&engine, sql).await, "1000|1998");
    let mut writer = Store::open(store.path(), Options::default()).expect("store");
    commit(&mut writer, "east", SIZE, 2);
    assert_eq!(text(&engine, sql).await, "1333|1998", "a third more");
    writer.compact().expect("compaction");
    assert_eq!(text(&engine, sql).await, "1333|1998", "in fewer files");
}

#[tokio::test]
async fn functions_of_the_field() {
    let (_folder, engine) = sample();
    let sql = "SELECT seq_diff(5, 4294967291), seq_diff(1, 2), seq_between(2, 4294967290, 8), seq_diff(NULL, 1)";
    assert_eq!(text(&engine, sql).await, "10|-1|true|-");
    let sql = "SELECT in_subnet('10.1.2.3', '10.0.0.0/8'), in_subnet('2001:db8::1', '2001:db8::/32'),
                      in_subnet('a host', '10.0.0.0/8'), in_subnet(NULL, '10.0.0.0/8')";
    assert_eq!(text(&engine, sql).await, "true|true|-|-");
    let sql = "SELECT count(*), count(DISTINCT tap) FROM connections WHERE in_subnet(client_address, '10.1.0.0/16')";
    assert_eq!(text(&engine, sql).await, "1000|1");
    let error = fails(&engine, "SELECT in_subnet(client_address, '10.1.0.0') FROM connections").await;
    assert!(
        error
            .to_string()
            .contains("\"10.1.0.0\" is no subnet; one looks like 10.0.0.0/8"),
        "{error}"
    );
    let error = fails(&engine, "SELECT in_subnet(client_port, '10.0.0.0/8') FROM connections").await;
    assert!(
        error.to_string().contains("in_subnet takes text here, not UInt16"),
        "{error}"
    );
    let error = fails(&engine, "SELECT seq_diff(1)").await;
    assert!(error.to_string().contains("write it as seq_diff(a, b)"), "{error}");
    let described = text(
        &engine,
        "SELECT routine_name, description FROM information_schema.routines
                                   WHERE routine_name = 'seq_between'",
    )
    .await;
    assert!(described.contains("modulo 2^32"), "{described}");
}

#[tokio::test]
async fn percentiles() {
    let (_folder, engine) = sample();
    let mut times: Vec<_> = (0..SIZE.connections)
        .flat_map(|id| (0..TRANSACTIONS).map(move |index| server_seconds(id, index)))
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    let exact = times[(0.95 * times.len() as f64).ceil() as usize - 1];
    let number = |answer: &str| answer.parse::<f64>().expect("number");
    let disc = text(
        &engine,
        "SELECT percentile_disc(server_seconds, 0.95) FROM transactions",
    )
    .await;
    assert_eq!(number(&disc), exact);
    let sql = "SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY server_seconds) FROM transactions";
    assert_eq!(number(&text(&engine, sql).await), exact);
    let sql = "SELECT percentile_disc(0.05) WITHIN GROUP (ORDER BY server_seconds DESC) FROM transactions";
    assert_eq!(
        number(&text(&engine, sql).await),
        times[times.len() - times.len() / 20],
        "from the largest"
    );
    let cont = number(
        &text(
            &engine,
            "SELECT percentile_cont(server_seconds, 0.95) FROM transactions",
        )
        .await,
    );
    assert!((cont - exact).abs() < 1e-3, "{cont} {exact}");
    let approx = number(
        &text(
            &engine,
            "SELECT approx_percentile_cont(server_seconds, 0.95) FROM transactions",
        )
        .await,
    );
    assert!((approx - exact).abs() < 0.01, "{approx} {exact}");
    // By group, over merged states.
    let sql = "SELECT server_address, percentile_disc(server_seconds, 0.5) FROM transactions GROUP BY 1 ORDER BY 1";
    for line in text(&engine, sql).await.lines() {
        let (address, median) = line.split_once('|').expect("two columns");
        let mut times: Vec<_> = (0..SIZE.connections)
            .filter(|id| server(*id).to_string() == address)
            .flat_map(|id| (0..TRANSACTIONS).map(move |index| server_seconds(id, index)))
            .collect();
        times.sort_unstable_by(f64::total_cmp);
        assert_eq!(number(median), times[times.len().div_ceil(2) - 1], "{address}");
    }
    let error = fails(&engine, "SELECT percentile_disc(server_seconds, 95) FROM transactions").await;
    assert!(error.to_string().contains("p is a constant from 0 to 1"), "{error}");
}

#[tokio::test]
async fn names_of_hosts() {
    let (store, _) = sample();
    let file = store.path().join("hosts");
    std::fs::write(&file, "192.168.1.1 shop.example shop\n").expect("write");
    let engine = Engine::open(store.path(), limits(), Hosts::read(&file).expect("hosts")).expect("engine");
    let sql = "SELECT DISTINCT host_name(server_address) FROM connections
               WHERE server_address IN ('192.168.1.1', '192.168.1.2') ORDER BY 1";
    assert_eq!(text(&engine, sql).await, "shop.example\n-");
    let error = Hosts::read(&PathBuf::from("/nowhere")).expect_err("no file");
    assert!(error.contains("/nowhere"), "{error}");
}

#[tokio::test]
async fn times_by_bucket() {
    let (_folder, engine) = sample();
    let sql =
        "SELECT date_bin(INTERVAL '90 minutes', first_packet_time), count(*) FROM connections GROUP BY 1 ORDER BY 1";
    assert_eq!(
        text(&engine, sql).await,
        "2026-01-31T12:00:00Z|1000\n2026-01-31T13:30:00Z|1000"
    );
}

#[tokio::test]
async fn now_is_a_time_to_filter_by() {
    let (_folder, engine) = sample();
    let mut sum = 0;
    for is in ["<", ">="] {
        let sql = format!("SELECT count(*) FROM connections WHERE first_packet_time {is} now() - INTERVAL '1 hour'");
        sum += text(&engine, &sql).await.parse::<u64>().expect("a count");
    }
    assert_eq!(sum.to_string(), text(&engine, "SELECT count(*) FROM connections").await);
    let plan = explain(
        &engine,
        "SELECT id FROM connections WHERE first_packet_time > now() + INTERVAL '100 years'",
    )
    .await;
    assert!(!plan.contains("now()"), "{plan}");
    assert_eq!(text(&engine, "SELECT now() = now()").await, "true");
}

#[tokio::test]
async fn what_would_write_is_refused() {
    let (store, engine) = sample();
    let out = store.path().join("out.csv");
    let copy = format!("COPY (SELECT 1) TO '{}'", out.display());
    let explain_copy = format!("EXPLAIN ANALYZE {copy}");
    for sql in [
        "CREATE TABLE t AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE connections",
        "INSERT INTO connections SELECT * FROM connections",
        "DELETE FROM connections",
        "UPDATE connections SET id = 1",
        "TRUNCATE TABLE connections",
        "SET datafusion.execution.batch_size = 1",
        "EXPLAIN ANALYZE INSERT INTO connections SELECT * FROM connections",
        "PREPARE p AS SELECT 1",
        &copy,
        &explain_copy,
    ] {
        let error = fails(&engine, sql).await;
        assert!(matches!(error, Error::ReadOnly(_)), "{sql}: {error:?}");
        assert!(error.to_string().contains("SQL only reads the store"), "{error}");
    }
    assert!(!out.exists());
    let error = fails(&engine, "SELECT * FROM '/etc/passwd'").await;
    assert!(error.to_string().contains("not found"), "{error}");
    let error = fails(&engine, "SELECT 1; SELECT 2").await;
    assert!(matches!(error, Error::Query(_)), "{error:?}");
}

#[tokio::test]
async fn errors_name_what_is_wrong() {
    let (_folder, engine) = sample();
    let error = fails(&engine, "SELECT client_adress FROM connections").await;
    assert!(
        error.to_string().contains("client_address"),
        "the nearest name: {error}"
    );
    let error = fails(&engine, "SELEC 1").await;
    assert!(error.to_string().contains("SELEC"), "{error}");
    let missing = Engine::open(&PathBuf::from("/nowhere"), limits(), Hosts::default());
    let Err(error) = missing else { panic!("opened") };
    assert!(error.to_string().contains("/nowhere"), "{error}");
}

#[tokio::test]
async fn a_condition_that_cannot_be_computed_is_no_fault_of_the_store() {
    let (_folder, engine) = sample();
    for (condition, says) in [
        ("1 / (id - id) = 1", "DivideByZero"),
        ("CAST(client_address AS INT) = 1", "Cannot cast string"),
        (
            "in_subnet(client_address, '10.1.0.0')",
            "is no subnet; one looks like 10.0.0.0/8",
        ),
    ] {
        let error = fails(&engine, &format!("SELECT tap FROM connections WHERE {condition}")).await;
        assert!(matches!(error, Error::Query(_)), "{condition}: {error:?}");
        let text = error.to_string();
        assert!(
            text.contains("a condition cannot be computed") && text.contains(says),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_is_limited() {
    let (store, _) = sample();
    let time = Duration::from_millis(300);
    let engine = Engine::open(store.path(), Limits { time, ..limits() }, Hosts::default()).expect("engine");
    let begin = Instant::now();
    let sql = "SELECT sum(a.index * b.index + c.index) FROM transactions a, transactions b, transactions c";
    let error = fails(&engine, sql).await;
    assert!(matches!(error, Error::Time(limit) if limit == time), "{error:?}");
    assert!(error.to_string().contains("--timeout"), "{error}");
    // It is not only given up, it ends.
    while Handle::current().metrics().num_alive_tasks() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "it goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The time of a reader that does something else is its own.
    let mut answer = engine
        .plan("SELECT count(*) FROM connections")
        .await
        .expect("plan")
        .run();
    tokio::time::sleep(time * 2).await;
    assert_eq!(answer.next().await.expect("rows").expect("no error").num_rows(), 1);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_keeps_no_turn() {
    let (store, _) = sample();
    let patience = Some(Duration::from_millis(200));
    let engine = Engine::open(store.path(), Limits { patience, ..limits() }, Hosts::default()).expect("engine");
    for (sql, ends) in [
        ("SELECT * FROM generate_series(1, 1000000)", true),
        ("SELECT id FROM connections LIMIT 9", false),
    ] {
        let (turn, given_back) = oneshot::channel::<()>();
        let mut answer = engine.plan(sql).await.expect("plan").run_with(turn);
        let waited = tokio::time::timeout(Duration::from_secs(20), given_back).await;
        assert!(waited.is_ok(), "{sql}: it keeps its turn");
        let mut rows = 0;
        let error = loop {
            match answer.next().await {
                Some(Ok(batch)) => rows += batch.num_rows(),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        if ends {
            let error = error.expect("it has not all rows").to_string();
            assert!(
                error.contains("not taken for 0.2 s") && error.contains("close it"),
                "{error}"
            );
        } else {
            assert!(error.is_none() && rows == 9, "{rows} {error:?}");
        }
    }
}

#[tokio::test]
async fn memory_is_limited_and_may_be_spilled() {
    let (store, _) = sample();
    let small = Limits {
        memory: 4 << 20,
        ..limits()
    };
    let engine = Engine::open(store.path(), small.clone(), Hosts::default()).expect("engine");
    let sql = "SELECT connection_id, index, server_seconds, response_seconds, value
               FROM transactions CROSS JOIN generate_series(1, 20) ORDER BY server_seconds, value";
    let error = fails(&engine, sql).await;
    assert!(matches!(error, Error::Memory { .. }), "{error:?}");
    assert!(
        error.to_string().contains("4 MiB") && error.to_string().contains("--spill"),
        "{error}"
    );
    let spill = store.path().join("spill");
    std::fs::create_dir(&spill).expect("folder");
    let spill = Some(Spill {
        folder: spill,
        bytes: 1 << 30,
    });
    let memory = 12 << 20;
    let engine = Engine::open(store.path(), Limits { memory, spill, ..small }, Hosts::default()).expect("engine");
    assert_eq!(ask(&engine, sql).await.expect("spilled").num_rows(), 400_000);
    let told = explain(&engine, sql).await;
    assert!(
        told.contains("spill_count=") && !told.contains("SortExec: spill_count=0"),
        "{told}"
    );
}

#[tokio::test]
async fn functions_that_make_much_of_little_are_limited() {
    let (_folder, engine) = sample();
    for much in [
        "SELECT range(0, 1000000000)",
        "SELECT range(1000000000)",
        "SELECT range(1000000000, 0, -1)",
        "SELECT generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '2026-01-01', INTERVAL '1 second')",
        "SELECT generate_series(DATE '1900-01-01', DATE '2100-01-01', INTERVAL '1 day') FROM generate_series(1, 1000)",
        "SELECT count(*) FROM (SELECT unnest(range(0, value * 100000)) FROM generate_series(1, 100))",
        "SELECT range(0, 100000) FROM transactions",
        "SELECT repeat('x', 2000000000)",
        "SELECT repeat('x', 1000000) FROM transactions",
        "SELECT max(length(repeat(signature, 100000))) FROM transactions",
        "SELECT max(length(repeat(tap, 100000))) FROM transactions",
        "SELECT lpad('x', 100000000)",
        "SELECT rpad(signature, 1000000, 'ab') FROM transactions",
        "SELECT replace(repeat('a', 10000), 'a', repeat('b', 10000))",
        "SELECT array_repeat(1, 1000000000)",
        "SELECT list_repeat('abc', 100000000)",
        "SELECT array_resize([1], 1000000000, 2)",
    ] {
        let error = fails(&engine, much).await.to_string();
        assert!(
            error.contains(" MiB of ") && error.contains("may make 64: ask for less"),
            "{much}: {error}"
        );
    }
    for (little, answer) in [
        ("SELECT cardinality(range(0, 1000000))", "1000000"),
        ("SELECT range(3, 0, -1), range(5, 0), range(NULL)", "[3, 2, 1]|[]|-"),
        (
            "SELECT cardinality(generate_series(TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-02', INTERVAL '1 minute'))",
            "1441",
        ),
        (
            "SELECT cardinality(range(DATE '2026-01-01', DATE '2027-01-01', INTERVAL '1 month'))",
            "12",
        ),
        ("SELECT count(DISTINCT repeat(tap, 2)) > 0 FROM connections", "true"),
        (
            "SELECT repeat('ab', NULL), repeat('ab', -1), lpad('x', 3, '-'), rpad('x', 3, '-')",
            "-||--x|x--",
        ),
        (
            "SELECT replace('aXbX', 'X', '--'), replace('ab', 'c', '-')",
            "a--b--|ab",
        ),
        (
            "SELECT array_repeat(7, 2), list_repeat('a', 2), array_resize([1], 3, 2)",
            "[7, 7]|[a, a]|[1, 2, 2]",
        ),
        ("SELECT count(*) FROM generate_series(1, 20000000)", "20000000"),
    ] {
        assert_eq!(text(&engine, little).await, answer, "{little}");
    }
}

#[tokio::test]
async fn parameters() {
    let (_folder, engine) = sample();
    let query = engine
        .plan("SELECT count(*) FROM connections WHERE id < ? AND tap = ?")
        .await
        .expect("plan");
    let names: Vec<_> = query
        .parameters()
        .expect("types")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["$1", "$2"]);
    let error = ask(&engine, "SELECT count(*) FROM connections WHERE id < $1")
        .await
        .expect_err("no value");
    assert!(error.to_string().contains("$1"), "{error}");
}

/// An answer in each format, read again.
#[tokio::test]
async fn formats() {
    let (_folder, engine) = sample();
    let sql =
        "SELECT id, client_address, first_packet_time, close_time, setup_end_seconds, setup_missing FROM connections
               WHERE id IN (0, 1) ORDER BY id";
    let write = async |format, rows| {
        let mut out = Vec::new();
        let mut answer = engine.plan(sql).await.expect("plan").run();
        output::write(&mut answer, format, rows, &mut out)
            .await
            .expect("written");
        out
    };
    let [a, b] = [0, 1].map(client);
    let csv = String::from_utf8(write(Format::Csv, 0).await).expect("text");
    assert_eq!(
        csv,
        format!(
            "id,client_address,first_packet_time,close_time,setup_end_seconds,setup_missing\n\
             0,{a},2026-01-31T12:00:00Z,2026-01-31T12:00:30Z,,[]\n\
             1,{b},2026-01-31T12:00:05.400Z,2026-01-31T12:00:35.400Z,,[]\n"
        )
    );
    let json = String::from_utf8(write(Format::Json, 0).await).expect("text");
    assert!(
        json.starts_with(&format!(
            "{{\"id\":0,\"client_address\":\"{a}\",\"first_packet_time\":\"2026-01-31T12:00:00Z\",\
             \"close_time\":\"2026-01-31T12:00:30Z\",\"setup_end_seconds\":null,\"setup_missing\":[]}}\n"
        )),
        "{json}"
    );
    assert_eq!(json.lines().count(), 2);
    let table = String::from_utf8(write(Format::Table, 1).await).expect("text");
    assert!(
        table.contains(&a.to_string()) && !table.contains(&b.to_string()),
        "{table}"
    );
    assert!(table.contains("NULL") && table.contains("The first 1 rows"), "{table}");
    let table = String::from_utf8(write(Format::Table, 2).await).expect("text");
    assert!(table.ends_with("2 rows\n"), "{table}");
    let parquet = write(Format::Parquet, 0).await;
    let reader =
        parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(prost::bytes::Bytes::from(parquet), 10);
    let batches: Vec<_> = reader.expect("a file").map(|batch| batch.expect("rows")).collect();
    assert_eq!(batches[0], ask(&engine, sql).await.expect("answer"));
}

/// A reader that is gone.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(ErrorKind::BrokenPipe.into())
    }
}

#[tokio::test]
async fn a_reader_that_is_gone_is_known_in_every_format() {
    let (_folder, engine) = sample();
    for format in [Format::Table, Format::Csv, Format::Json, Format::Parquet] {
        let mut answer = engine.plan("SELECT id FROM connections").await.expect("plan").run();
        match output::write(&mut answer, format, 9, Gone).await {
            Err(Error::Write(error)) => assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{format:?}: {error}"),
            other => panic!("{format:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_object_holds_one_column_of_a_name() {
    let (_folder, engine) = sample();
    let sql = "SELECT c.id, d.id FROM connections c JOIN connections d ON d.id = c.id + 1 WHERE c.id = 7";
    let write = async |format| {
        let mut out = Vec::new();
        let mut answer = engine.plan(sql).await.expect("plan").run();
        let written = output::write(&mut answer, format, 9, &mut out).await;
        written.map(|_| String::from_utf8(out).expect("text"))
    };
    assert_eq!(write(Format::Csv).await.expect("CSV"), "id,id\n7,8\n");
    let error = write(Format::Json).await.expect_err("JSON");
    assert!(
        error.to_string().contains("two columns are named \"id\"") && error.to_string().contains("AS"),
        "{error}"
    );
}

#[tokio::test]
async fn an_empty_store_has_empty_tables() {
    let folder = tempfile::tempdir().expect("folder");
    let nothing = Engine::open(folder.path(), limits(), Hosts::default()).err();
    assert!(nothing.expect("an error").to_string().contains("is no store"));
    drop(Store::open(folder.path(), Options::default()).expect("store"));
    let engine = open(folder.path());
    assert_eq!(
        text(&engine, "SELECT count(*), max(first_packet_time) FROM connections").await,
        "0|-"
    );
    let mut out = Vec::new();
    let mut answer = engine.plan("SELECT id, tap FROM findings").await.expect("plan").run();
    output::write(&mut answer, Format::Csv, 0, &mut out)
        .await
        .expect("written");
    assert_eq!(String::from_utf8(out).expect("text"), "id,tap\n");
}
