//! A store with rows made up: so many connections, ten transactions each, over some hours at two taps.
//!
//! What is in it follows from the number of a row alone, so tests can say what SQL must answer.

use std::net::Ipv4Addr;
use std::path::Path;

use arrow::array::RecordBatch;
use weir_analysis::Ends;
use weir_messages::{Timestamp, v1};
use weir_store::tables::{Builder, Row, Table, Transaction};
use weir_store::{Options, Store};

/// Transactions of each connection.
pub const TRANSACTIONS: u64 = 10;
/// Taps and their share of the connections, in turns.
pub const TAPS: [&str; 2] = ["east", "west"];
/// The first hour, 2026-01-31T12, UTC s since 1970.
const START: i64 = 1_769_860_800;
const HOUR_NS: u64 = 3_600_000_000_000;

/// How much there is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Connections of both taps together.
    pub connections: u64,
    /// Hours over which they are spread, in order; at most 12, which are of one day.
    pub hours: u64,
}

/// A number that looks random and is always the same.
pub fn mixed(number: u64) -> u64 {
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Size {
    /// When a connection begins, ns after the first hour's.
    fn begin(self, id: u64) -> u64 {
        (u128::from(id) * u128::from(self.hours * HOUR_NS) / u128::from(self.connections)) as u64
    }

    fn hour(self, id: u64) -> u64 {
        self.begin(id) / HOUR_NS
    }

    /// The connections of a tap that begin in an hour.
    pub fn ids(self, tap: &str, hour: u64) -> impl Iterator<Item = u64> {
        let turn = TAPS.iter().position(|name| *name == tap).expect("a tap");
        let all = (turn as u64..self.connections).step_by(TAPS.len());
        all.filter(move |id| self.hour(*id) == hour)
    }

    /// When a connection begins, UTC ns.
    #[allow(dead_code, reason = "for the example")]
    pub fn utc(self, id: u64) -> u64 {
        Self::utc_of(self.begin(id))
    }

    /// UTC ns of a time after the first hour's.
    #[allow(dead_code, reason = "for the example")]
    pub const fn utc_of(after_start_ns: u64) -> u64 {
        START as u64 * 1_000_000_000 + after_start_ns
    }
}

fn time(after_start_ns: u64) -> Option<Timestamp> {
    Some(Timestamp::from_unix_nanos(
        START * 1_000_000_000 + after_start_ns as i64,
    ))
}

/// The client of a connection: 10.0.0.0/16 at tap east, 10.1.0.0/16 at west.
pub fn client(id: u64) -> Ipv4Addr {
    let host = mixed(id) % 5000;
    Ipv4Addr::new(10, (id % 2) as u8, (host >> 8) as u8, host as u8)
}

/// The server of a connection: one of 20.
pub fn server(id: u64) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 1, 1 + (mixed(id ^ 1) % 20) as u8)
}

/// Whether a connection's SYN was refused: one of 50.
pub fn refused(id: u64) -> bool {
    mixed(id ^ 2).is_multiple_of(50)
}

/// How long the server thought about a transaction, s: 1 to 1001 ms.
pub fn server_seconds(id: u64, index: u64) -> f64 {
    0.001 + (mixed(id * TRANSACTIONS + index) % 1_000_000) as f64 * 1e-6
}

fn connection(size: Size, id: u64) -> v1::Connection {
    let direction = |packets, payload_bytes, retransmitted_packets| {
        Some(v1::Direction {
            packets,
            payload_bytes,
            retransmitted_packets,
            ..Default::default()
        })
    };
    let endpoint = |address: Ipv4Addr, port| {
        Some(v1::Endpoint {
            address: address.to_string(),
            port,
        })
    };
    let (outcome, close) = if refused(id) {
        ("REFUSED", "REFUSED")
    } else {
        ("OK", "CLIENT_FIN")
    };
    v1::Connection {
        id,
        client: endpoint(client(id), 1024 + (id % 60_000) as u32),
        server: endpoint(server(id), [80, 443, 5432][(mixed(id ^ 3) % 3) as usize]),
        first_packet_time: time(size.begin(id)),
        setup: Some(v1::Setup {
            outcome: outcome.into(),
            syn_count: 1,
            response_seconds: Some(0.0005 + (mixed(id ^ 4) % 1000) as f64 * 1e-5),
            ..Default::default()
        }),
        close: Some(v1::Close {
            kind: close.into(),
            time: time(size.begin(id) + 30_000_000_000),
        }),
        duration_seconds: 30.0,
        client_to_server: direction(25, 10 * (200 + id % 1000), mixed(id ^ 5) % 3),
        server_to_client: direction(40, 10 * (3000 + mixed(id ^ 6) % 50_000), mixed(id ^ 7) % 4),
        client_known_by: "SYN".into(),
        tunnel: "NONE".into(),
        ..Default::default()
    }
}

fn transaction(size: Size, id: u64, index: u64) -> Transaction {
    let server_seconds = server_seconds(id, index);
    let response_seconds = (mixed(id ^ index) % 1000) as f64 * 1e-5;
    Transaction {
        ends: Ends {
            client: client(id).to_ipv6_mapped().octets(),
            server: server(id).to_ipv6_mapped().octets(),
            client_port: 1024 + (id % 60_000) as u16,
            server_port: [80, 443, 5432][(mixed(id ^ 3) % 3) as usize],
        },
        message: v1::Transaction {
            connection_id: id,
            index: index as u32,
            signature: format!("Request: blk[{}xx]-blk[{}xxx]", 1 + mixed(id ^ 8) % 9, 1 + index),
            request_time: time(size.begin(id) + index * 2_000_000_000),
            request_bytes: 200 + id % 1000,
            response_bytes: 3000 + mixed(id ^ 6) % 50_000,
            request_seconds: 0.0001,
            server_seconds: Some(server_seconds),
            response_seconds: Some(response_seconds),
            end_seconds: Some(server_seconds + response_seconds),
            losses: u32::from(mixed(id ^ (index + 100)).is_multiple_of(97)),
            kind: "DATA".into(),
            ..Default::default()
        },
    }
}

/// Write the store: an hour of a tap is a commit.
pub fn write(store: &Path, size: Size) {
    let mut store = Store::open(store, Options::default()).expect("store");
    for hour in 0..size.hours {
        for tap in TAPS {
            commit(&mut store, tap, size, hour);
        }
    }
}

/// Commit an hour of a tap.
pub fn commit(store: &mut Store, tap: &str, size: Size, hour: u64) {
    let mut rows = batches::<v1::Connection>(tap, size.ids(tap, hour).map(|id| connection(size, id)));
    let transactions = size
        .ids(tap, hour)
        .flat_map(|id| (0..TRANSACTIONS).map(move |index| transaction(size, id, index)));
    rows.extend(batches::<Transaction>(tap, transactions));
    store.commit(tap, &rows, None).expect("commit");
}

/// Rows in batches of a table.
pub fn batches<R: Row>(tap: &str, rows: impl Iterator<Item = R>) -> Vec<(Table, RecordBatch)> {
    let mut builder = Builder::new(tap);
    let mut batches = Vec::new();
    let mut end = |builder: &mut Builder<R>| batches.push((R::TABLE, builder.finish().expect("batch")));
    for row in rows {
        builder.push(&row).expect("row");
        if builder.len() == 8192 {
            end(&mut builder);
        }
    }
    if !builder.is_empty() {
        end(&mut builder);
    }
    batches
}

/// The name of an hour.
#[allow(dead_code, reason = "the example needs none")]
pub fn hour_name(hour: u64) -> String {
    format!("2026-01-31T{}", 12 + hour)
}
