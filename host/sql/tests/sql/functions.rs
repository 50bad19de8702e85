//! The functions of this field, by their edges.

use weir_sql::engine::Engine;
use weir_sql::functions::Hosts;

use super::{empty, fails, limits, text};

/// Each expression has the value that it is written with.
async fn are(engine: &Engine, cases: &[(&str, &str)]) {
    for (expression, value) in cases {
        assert_eq!(
            text(engine, &format!("SELECT {expression}")).await,
            *value,
            "{expression}"
        );
    }
}

#[tokio::test]
async fn sequence_numbers_wrap() {
    let (_folder, engine) = empty();
    are(
        &engine,
        &[
            ("seq_diff(10, 4)", "6"),
            ("seq_diff(4, 10)", "-6"),
            ("seq_diff(5, 4294967291)", "10"),
            ("seq_diff(4294967291, 5)", "-10"),
            // Half way round is before.
            ("seq_diff(2147483648, 0)", "-2147483648"),
            ("seq_between(5, 5, 6)", "true"),
            ("seq_between(6, 5, 6)", "false"),
            ("seq_between(4, 5, 6)", "false"),
            ("seq_between(2, 4294967280, 8)", "true"),
            ("seq_between(4294967280, 4294967280, 8)", "true"),
            ("seq_between(8, 4294967280, 8)", "false"),
            ("seq_between(4294967279, 4294967280, 8)", "false"),
            // An empty range.
            ("seq_between(5, 5, 5)", "false"),
        ],
    )
    .await;
}

#[tokio::test]
async fn addresses_in_subnets() {
    let (_folder, engine) = empty();
    are(
        &engine,
        &[
            ("in_subnet('10.255.0.1', '10.0.0.0/8')", "true"),
            ("in_subnet('11.0.0.1', '10.0.0.0/8')", "false"),
            // Bits of the host do not count.
            ("in_subnet('192.168.1.1', '192.168.1.77/24')", "true"),
            ("in_subnet('255.255.255.255', '0.0.0.0/0')", "true"),
            ("in_subnet('10.1.2.3', '10.1.2.3/32')", "true"),
            ("in_subnet('10.1.2.2', '10.1.2.3/32')", "false"),
            ("in_subnet('10.0.0.127', '10.0.0.128/25')", "false"),
            ("in_subnet('2001:db8:ffff::1', '2001:db8::/32')", "true"),
            ("in_subnet('2001:db9::1', '2001:db8::/32')", "false"),
            ("in_subnet('fe80::1', '::/0')", "true"),
            ("in_subnet('::2', '::1/128')", "false"),
            ("in_subnet('febf::1', 'fe80::/10')", "true"),
            ("in_subnet('fec0::1', 'fe80::/10')", "false"),
            // The families stay apart, except mapped addresses.
            ("in_subnet('10.0.0.1', '::/0')", "false"),
            ("in_subnet('::1', '0.0.0.0/0')", "false"),
            ("in_subnet('::ffff:10.0.0.1', '10.0.0.0/8')", "true"),
            ("in_subnet('::ffff:11.0.0.1', '10.0.0.0/8')", "false"),
        ],
    )
    .await;
    for no_subnet in [
        "10.0.0.0",
        "10.0.0.0/33",
        "::/129",
        "10.0.0/8",
        "a/8",
        "10.0.0.0/-1",
        "",
    ] {
        let error = fails(&engine, &format!("SELECT in_subnet('10.0.0.1', '{no_subnet}')")).await;
        assert!(error.to_string().contains("is no subnet"), "{no_subnet}: {error}");
    }
}

#[tokio::test]
async fn percentiles_are_by_nearest_rank() {
    let (_folder, engine) = empty();
    let five = "FROM (VALUES (50.0), (15.0), (40.0), (20.0), (35.0)) AS t (v)";
    for (p, value) in [
        ("0.0", "15.0"),
        ("0.05", "15.0"),
        ("0.2", "15.0"),
        ("0.21", "20.0"),
        ("0.3", "20.0"),
        ("0.4", "20.0"),
        ("0.5", "35.0"),
        ("1.0", "50.0"),
    ] {
        let sql = format!("SELECT percentile_disc(v, {p}) {five}");
        assert_eq!(text(&engine, &sql).await, value, "{p}");
    }
    let sql = format!("SELECT percentile_disc(0.2) WITHIN GROUP (ORDER BY v DESC) {five}");
    assert_eq!(text(&engine, &sql).await, "50.0", "from the largest");
    let sql = format!("SELECT percentile_disc(v, 0.5) {five} WHERE v > 99");
    assert_eq!(text(&engine, &sql).await, "-", "of nothing");
    // 0.07 * 100 is 7.000000000000001.
    let percents = (1..=100).map(|percent| format!("percentile_disc(value, {})", f64::from(percent) / 100.0));
    let percents: Vec<_> = percents.collect();
    let sql = format!("SELECT {} FROM generate_series(1, 100)", percents.join(", "));
    let values: Vec<_> = (1..=100).map(|value| format!("{value}.0")).collect();
    assert_eq!(text(&engine, &sql).await, values.join("|"));
}

#[tokio::test]
async fn names_of_a_hosts_file() {
    let (store, _) = empty();
    let file = store.path().join("hosts");
    let lines = "# comment\n127.0.0.1 localhost\n\n10.0.0.5\tshop.example shop # the shop\n10.0.0.5 other\n\
                 2001:db8::5 six\nfe80::1%lo0 link\n10.0.0.9\n";
    std::fs::write(&file, lines).expect("write");
    let hosts = Hosts::read(&file).expect("hosts");
    let engine = Engine::open(store.path(), limits(), hosts).expect("engine");
    are(
        &engine,
        &[
            // The first name counts.
            ("host_name('10.0.0.5')", "shop.example"),
            ("host_name('::ffff:10.0.0.5')", "shop.example"),
            ("host_name('2001:db8:0::5')", "six"),
            ("host_name('fe80::1')", "link"),
            ("host_name('10.0.0.9')", "-"),
            ("host_name('no address')", "-"),
        ],
    )
    .await;
    std::fs::write(&file, "127.0.0.1 localhost\nshop 10.0.0.5\n").expect("write");
    let error = Hosts::read(&file).expect_err("line 2");
    assert!(
        error.ends_with("line 2: \"shop\" is no address; a line is an address and its names"),
        "{error}"
    );
}

#[tokio::test]
async fn differences_of_counters_have_a_sign() {
    let (_folder, engine) = empty();
    // As a direction's packets, retransmissions, TTLs and ports are stored.
    let row = "(SELECT CAST(3 AS BIGINT UNSIGNED) AS a, CAST(5 AS BIGINT UNSIGNED) AS b, CAST(3 AS INT UNSIGNED) AS c,
                       CAST(5 AS INT UNSIGNED) AS d, CAST(64 AS TINYINT UNSIGNED) AS t, CAST(1514 AS SMALLINT UNSIGNED) AS w,
                       CAST(18446744073709551615 AS BIGINT UNSIGNED) AS most) AS r";
    for (expression, value) in [
        ("a - b", "-2"),
        ("c - d", "-2"),
        ("a - d", "-2"),
        ("t + t + t + t + t", "320"),
        ("w * w", "2292196"),
        ("w * w - t", "2292132"),
        ("most * b", "92233720368547758075"),
        ("sum(a) - sum(b)", "-2"),
        ("max(c) - max(d)", "-2"),
        ("abs(a - b)", "2"),
        ("a - 5", "-2"),
        ("b / a", "1"),
    ] {
        let sql = format!("SELECT {expression} FROM {row}");
        assert_eq!(text(&engine, &sql).await, value, "{expression}");
    }
    let sql = "SELECT a - b, count(*)
               FROM (SELECT CAST(x AS BIGINT UNSIGNED) AS a, CAST(y AS BIGINT UNSIGNED) AS b
                     FROM (VALUES (1, 3), (2, 4), (9, 1)) AS t (x, y))
               GROUP BY a - b HAVING a - b < 0";
    assert_eq!(text(&engine, sql).await, "-2|2");
    let sql = format!("SELECT b - most FROM {row}");
    let error = fails(&engine, &sql).await;
    assert!(
        error.to_string().contains("18446744073709551615"),
        "no wrong number: {error}"
    );
}
