//! What lies below the connections of the sample: packets, the events and verdicts among them, findings, counters of the
//! taps' ports. All follows from the number of a row, as there.

use std::path::Path;

use weir_analysis::{Cause, Class, Ends, Evidence, Place, Verdict, sign};
use weir_messages::{Timestamp, v1};
use weir_record::time::tai_from_utc;
use weir_record::{self as record, FlowId, Header, flag, what};
use weir_store::tables::{Event, Finding, Packet, Port, RecordBatch, Segment, Table};
use weir_store::{Options, Store};

use crate::sample::{Size, TAPS, batches, client, mixed, server};

/// Packets, events and segments of each connection.
pub const EACH: u64 = 10;
/// Seconds between two counts of a port.
const COUNT_EVERY: u64 = 1;
const SECOND: u64 = 1_000_000_000;
/// A segment's payload.
const MSS: u32 = 1460;

/// Write it, an hour of a tap a commit.
pub fn write(store: &Path, size: Size) {
    let mut store = Store::open(store, Options::default()).expect("store");
    for hour in 0..size.hours {
        for tap in TAPS {
            store.commit(tap, &rows(size, tap, hour), None).expect("commit");
        }
    }
}

fn rows(size: Size, tap: &str, hour: u64) -> Vec<(Table, RecordBatch)> {
    let each = || {
        let ids = size.ids(tap, hour);
        ids.flat_map(|id| (0..EACH).map(move |index| (id, index)))
    };
    let mut rows = batches::<Packet>(tap, each().map(|(id, index)| packet(size, id, index)));
    rows.extend(batches::<Event>(tap, each().map(|(id, index)| event(size, id, index))));
    rows.extend(batches::<Segment>(
        tap,
        each().map(|(id, index)| segment(size, id, index)),
    ));
    rows.extend(batches::<Finding>(tap, size.ids(tap, hour).map(|id| finding(size, id))));
    let seconds = (3600 * hour..3600 * (hour + 1)).step_by(COUNT_EVERY as usize);
    rows.extend(batches::<Port>(tap, seconds.map(|second| port(tap, second))));
    rows
}

/// UTC ns of the `index`th row of a connection, in the two seconds from its begin.
fn time(size: Size, id: u64, index: u64) -> u64 {
    size.utc(id) + index * SECOND / 5
}

fn header(size: Size, id: u64, index: u64) -> Header {
    Header {
        flags: if is_from_server(id, index) {
            flag::SERVER_TO_CLIENT
        } else {
            0
        },
        flow: FlowId(id),
        time: tai_from_utc(time(size, id, index)),
        ..Header::default()
    }
}

/// Two of three.
fn is_from_server(id: u64, index: u64) -> bool {
    !mixed(id ^ (index + 200)).is_multiple_of(3)
}

fn seq(id: u64, index: u64) -> u32 {
    (mixed(id ^ 9) as u32).wrapping_add(index as u32 * MSS)
}

fn packet(size: Size, id: u64, index: u64) -> Packet {
    let content = record::Packet {
        number: id * EACH + index + 1,
        seq: seq(id, index),
        ack: mixed(id ^ 10) as u32,
        length: MSS,
        tsval: 0,
        tsecr: 0,
        wire: 1514,
        window: 500,
        ip_id: index as u16,
        ttl: 64,
        tos: 0,
        tcp_flags: 0x18,
        port: (id % 2) as u8,
        option_bits: 0,
    };
    Packet::new(&content.encode(header(size, id, index)), None)
}

/// Half of the events are below what was expected, by up to 20 segments.
fn event(size: Size, id: u64, index: u64) -> Event {
    let draw = mixed(id ^ (index + 300));
    let (conditions, ahead) = if draw.is_multiple_of(2) {
        (what::BELOW, (draw >> 8) as u32 % (20 * MSS) + 1)
    } else {
        (what::ZERO_WINDOW, 0)
    };
    let content = record::Event {
        what: conditions,
        seq: seq(id, index),
        length: MSS,
        expected: seq(id, index).wrapping_add(ahead),
        acked: seq(id, 0),
        ack: mixed(id ^ 10) as u32,
        tsval: 0,
        since_data: 1000,
        window: 500,
        ip_id: index as u16,
        dup_acks: 0,
        id_step: 0,
        ttl: 64,
        tcp_flags: 0x10,
    };
    Event::new(&content.encode(header(size, id, index)), None)
}

fn segment(size: Size, id: u64, index: u64) -> Segment {
    let draw = mixed(id ^ (index + 400));
    let at = tai_from_utc(time(size, id, index));
    let pick = |one_of: u64| (draw >> 8) % one_of;
    let (class, cause) = match draw % 10 {
        0 => (Class::Reordered, Cause::Unknown),
        1 => (Class::Lost, Cause::Unknown),
        2..6 => (Class::Retransmission, Cause::Timeout),
        _ => (Class::Retransmission, Cause::Fast),
    };
    let place = [
        Place::BeforeTap,
        Place::BehindTap,
        Place::AckBehindTap,
        Place::Nowhere,
        Place::Unknown,
    ][pick(5) as usize];
    let signs = [sign::TIMER, sign::UNSEEN, sign::NO_ACK][pick(3) as usize];
    Segment {
        ends: Ends {
            client: client(id).to_ipv6_mapped().octets(),
            server: server(id).to_ipv6_mapped().octets(),
            client_port: 1024 + (id % 60_000) as u16,
            server_port: 443,
        },
        verdict: Verdict {
            connection: FlowId(id),
            from_server: is_from_server(id, index),
            time: at,
            lost_at: if pick(4) == 0 { 0 } else { at - SECOND / 10 },
            seq: seq(id, index),
            length: MSS,
            class,
            cause,
            place,
            evidence: Evidence::NONE.with(signs),
            episode: index as u32 + 1,
            begins: true,
            handshake: false,
            smaller_arrived: 0,
            arrived: false,
            counted: 1,
        },
    }
}

/// One for each connection: far more than there are in life.
fn finding(size: Size, id: u64) -> Finding {
    const KINDS: [&str; 5] = [
        "LOSS",
        "RETRANSMISSION_RATE",
        "SLOW_SETUP",
        "ZERO_WINDOW",
        "PERIODIC_LOSS",
    ];
    let draw = mixed(id ^ 500);
    let at = Timestamp::from_unix_nanos(time(size, id, 0) as i64);
    let message = v1::Finding {
        kind: KINDS[(draw % 5) as usize].into(),
        severity: ["INFO", "WARNING", "CRITICAL"][(draw >> 8) as usize % 3].into(),
        confidence: ((draw >> 16) % 1000) as f64 * 1e-3,
        title: format!("Something about {}", server(id)),
        evidence: vec![format!("{} of {} packets", draw % 100, 100 + draw % 900)],
        start: Some(at),
        end: Some(at),
        connection_ids: vec![id, id + TAPS.len() as u64],
        ..Default::default()
    };
    Finding::last(id + 1, message, 0)
}

fn port(tap: &str, second: u64) -> Port {
    let frames = (second + 1) * 10_000;
    let content = record::Port {
        frames,
        bytes: frames * 900,
        tracked: frames - frames / 50,
        clamped: 0,
        cut: 0,
        dropped: (second / 60) as u32,
        options_skipped: 0,
    };
    let header = Header {
        arg: u8::from(tap == TAPS[1]),
        time: tai_from_utc(Size::utc_of(second * SECOND)),
        ..Header::default()
    };
    Port::new(&content.encode(header), None)
}
