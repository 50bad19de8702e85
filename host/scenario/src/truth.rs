//! What the scenario did, in the files beside the captures. Times are UTC nanoseconds since 1970.

use crate::config::Close;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
pub use weir_lab::truth::Direction;

/// Why a frame got no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// By chance.
    RandomLoss,
    /// In the lossy part of a period.
    PeriodicLoss,
    /// In a burst.
    BurstLoss,
    /// It carries SYN.
    SynLoss,
    /// It carries SYN, in a batch.
    SynBatch,
    /// The queue was full.
    QueueFull,
    /// It was too large.
    BlackHole,
}

/// A line of `NAME-wire.jsonl`: a frame that was lost. The fields of the lab's wire file where they mean the same.
#[derive(Debug, Serialize)]
pub struct Loss<'a> {
    /// When it entered the leg.
    pub time_ns: u64,
    /// The path, as its two hosts.
    pub path: &'a str,
    /// The leg, counted from 1 at the path's first host.
    pub leg: usize,
    /// From the side that opened the connection, or to it.
    pub direction: Direction,
    /// Why.
    pub cause: Cause,
    /// Number of the connection.
    pub connection: u32,
    /// Length of the frame.
    pub frame_len: u32,
    /// Taps that saw it, with the number of its frame in their files (from 1).
    pub taps: BTreeMap<&'a str, u64>,
    /// Sender.
    pub src: Ipv4Addr,
    /// Its port.
    pub src_port: u16,
    /// Receiver.
    pub dst: Ipv4Addr,
    /// Its port.
    pub dst_port: u16,
    /// As on the wire.
    pub seq: u32,
    /// As on the wire.
    pub ack: u32,
    /// Payload bytes.
    pub len: u32,
    /// Flags, bit 0 FIN.
    pub flags: u8,
    /// IPv4 identification.
    pub ip_id: u16,
    /// It told of data that came twice (RFC 2883).
    pub d_sack: bool,
}

/// What a tap could see of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Nothing from behind it had passed.
    New,
    /// Later bytes had passed, and not all of its own: it fills a gap.
    Fill,
    /// All its bytes had passed.
    Repeat,
}

/// A segment at a tap.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AgainSeen {
    /// Number of its frame in the file (from 1).
    pub frame: u64,
    /// Its stamp.
    pub time_ns: u64,
    /// What it looked like there.
    pub how: How,
}

/// A line of `NAME-again.jsonl`: a segment with data, SYN or FIN that was sent again, or that later ones overtook before
/// a tap.
#[derive(Debug, Serialize)]
pub struct Again<'a> {
    /// When it was sent.
    pub time_ns: u64,
    /// From the side that opened the connection, or to it.
    pub direction: Direction,
    /// Number of the connection.
    pub connection: u32,
    /// It, or a part of it, had been sent before.
    pub again: bool,
    /// It had been sent before, and copies sent before it brought all of it.
    pub spurious: bool,
    /// It arrived.
    pub arrived: bool,
    /// Taps that wrote it.
    pub taps: BTreeMap<&'a str, AgainSeen>,
    /// As on the wire.
    pub seq: u32,
    /// Payload bytes.
    pub len: u32,
    /// Flags, bit 0 FIN.
    pub flags: u8,
    /// IPv4 identification.
    pub ip_id: u16,
}

/// How an attempt to connect ended, as its client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Connected.
    Connected,
    /// RST at once.
    Refused,
    /// RST long after the last SYN, or nothing until the client gave up; see the taps for what could be seen.
    TimedOut,
    /// The run ended first.
    Unfinished,
}

/// What a tap saw of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Frames written, client to server.
    pub packets_c2s: u32,
    /// Frames written, server to client.
    pub packets_s2c: u32,
    /// Payload in them, repeats counted.
    pub payload_c2s: u64,
    /// Payload in them, repeats counted.
    pub payload_s2c: u64,
    /// SYNs.
    pub syns: u32,
    /// SYN-ACKs.
    pub syn_acks: u32,
    /// RSTs of the server.
    pub resets_s2c: u32,
    /// Frames that passed and the tap missed.
    pub missed: u32,
    /// Of them, those with data or FIN.
    pub missed_segments: u32,
}

/// Lines of `NAME-app.jsonl`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AppRecord<'a> {
    /// One per attempt to connect, when it is over.
    Connection(ConnectionRecord<'a>),
    /// One per request that was begun, when it is over.
    Transaction(TransactionRecord<'a>),
    /// Applications stopped.
    Sleep {
        /// The hosts.
        hosts: &'a [String],
        /// From.
        start_ns: u64,
        /// To.
        end_ns: u64,
    },
    /// A connection could not be opened: no port was free.
    PortsExhausted {
        /// The host.
        host: &'a str,
        /// When.
        time_ns: u64,
    },
    /// A pool may hold more connections.
    PoolGrew {
        /// The pool.
        pool: &'a str,
        /// Its limit from now on.
        limit: u32,
        /// When.
        time_ns: u64,
    },
}

/// A connection.
#[derive(Debug, Serialize)]
pub struct ConnectionRecord<'a> {
    /// Its number, in the order of attempts.
    pub connection: u32,
    /// Its kind.
    pub dialogue: &'a str,
    /// Client's address.
    pub client: Ipv4Addr,
    /// Client's port.
    pub client_port: u16,
    /// Server's address.
    pub server: Ipv4Addr,
    /// Server's port.
    pub server_port: u16,
    /// The client's connect().
    pub connect_start_ns: u64,
    /// It returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_end_ns: Option<u64>,
    /// What came of it.
    pub outcome: Outcome,
    /// Transactions finished.
    pub transactions: u32,
    /// The planned end; absent if never connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close: Option<Close>,
    /// When the client let go of the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_ns: Option<u64>,
    /// A connection broken by a RST or by silence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// SYNs the client sent.
    pub syns_sent: u32,
    /// SYN-ACKs the server sent.
    pub syn_acks_sent: u32,
    /// What each tap of the path saw.
    pub taps: BTreeMap<&'a str, Seen>,
}

/// A request and its response.
#[derive(Debug, Clone, Serialize)]
pub struct TransactionRecord<'a> {
    /// Number of the connection.
    pub connection: u32,
    /// Its number on the connection, from 0.
    pub index: u32,
    /// Its kind.
    pub exchange: &'a str,
    /// The transaction of the tier before that caused it: connection, index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<(u32, u32)>,
    /// Request size.
    pub request_bytes: u64,
    /// Writes it was sent in.
    pub request_chunks: usize,
    /// Response size.
    pub response_bytes: u64,
    /// Writes it was sent in.
    pub response_chunks: usize,
    /// All of the response was read.
    pub complete: bool,
    /// First write of the request.
    pub request_write_start_ns: u64,
    /// Last write of the request.
    pub request_write_end_ns: Option<u64>,
    /// The server read the first byte.
    pub server_request_first_ns: Option<u64>,
    /// The server read the last byte.
    pub server_request_last_ns: Option<u64>,
    /// A worker took it.
    pub server_work_start_ns: Option<u64>,
    /// First write of the response.
    pub server_response_start_ns: Option<u64>,
    /// Last write of the response.
    pub server_response_end_ns: Option<u64>,
    /// The client read the first byte of the response.
    pub response_first_ns: Option<u64>,
    /// The client read the last byte.
    pub response_last_ns: Option<u64>,
}

/// Totals of a tap.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TapTotals {
    /// The file.
    pub file: String,
    /// Frames in it.
    pub packets: u64,
    /// Frames that passed and are not in it.
    pub missed: u64,
    /// Frames written twice.
    pub duplicated: u64,
}

/// `NAME-truth.json`: the whole in figures.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Totals {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the run.
    pub seed: u64,
    /// Scale of the run.
    pub scale: f64,
    /// Per tap.
    pub taps: BTreeMap<String, TapTotals>,
    /// Attempts to connect, per kind.
    pub connections: BTreeMap<String, u64>,
    /// Of these, per kind and outcome.
    pub outcomes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Transactions, per exchange.
    pub transactions: BTreeMap<String, u64>,
    /// Lost frames, per path and leg (`a-b/1`), direction and cause.
    pub losses: BTreeMap<String, u64>,
    /// Sleeps.
    pub sleeps: u64,
    /// Connections not opened for want of a port.
    pub ports_exhausted: u64,
}
