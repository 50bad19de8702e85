//! Connections and their setups.

use std::io::{self, Write};

use weir_messages::v1::{Connection, Direction, SignatureStatistics};

use super::{end, heading, optional, some, table};
use crate::format::{Clock, bytes, count, seconds};

pub(super) fn print_setups(signatures: &[SignatureStatistics], rows: usize, out: &mut dyn Write) -> io::Result<()> {
    let setups: Vec<_> = signatures
        .iter()
        .filter(|s| s.signature.starts_with("Open Conn"))
        .collect();
    if setups.is_empty() {
        return Ok(());
    }
    heading(
        out,
        "Connection setups",
        "response = last SYN to answer, end = first SYN to the end",
    )?;
    let mut table = table(
        &[
            "count",
            "response min",
            "average",
            "max",
            "end average",
            "max",
            "description",
        ],
        &[0, 1, 2, 3, 4, 5],
    );
    for s in setups.iter().take(rows) {
        table.add_row(vec![
            count(s.count),
            optional(s.server_seconds_min),
            optional(s.server_seconds_average),
            optional(s.server_seconds_max),
            optional(s.end_seconds_average),
            optional(s.end_seconds_max),
            s.signature.clone(),
        ]);
    }
    writeln!(out, "{table}")
}

fn rtt(direction: &Option<Direction>) -> String {
    let rtt = direction.as_ref().and_then(|d| d.rtt.as_ref());
    match rtt {
        Some(rtt) if rtt.samples > 0 => format!("{} / {}", optional(rtt.min_seconds), optional(rtt.median_seconds)),
        _ => "-".into(),
    }
}

fn kilobits(direction: &Direction) -> String {
    let rate = direction.payload_bits_per_second;
    rate.map_or_else(|| "-".into(), |rate| count((rate / 1e3).round() as u64))
}

pub(super) fn print(shown: &[Connection], note: &str, clock: Clock, out: &mut dyn Write) -> io::Result<()> {
    if shown.is_empty() {
        return Ok(());
    }
    heading(out, "Connections", note)?;
    let mut table = table(
        &[
            "start",
            "client",
            "server",
            "setup",
            "closed",
            "duration",
            "turns",
            "packets →",
            "←",
            "bytes →",
            "←",
            "kbit/s →",
            "←",
            "sent again →",
            "←",
            "SACKs →",
            "←",
            "RTT server min / median",
            "RTT client",
        ],
        &[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18],
    );
    for c in shown {
        let (to_server, to_client) = (
            c.client_to_server.unwrap_or_default(),
            c.server_to_client.unwrap_or_default(),
        );
        table.add_row(vec![
            clock.known(c.first_packet_time.as_ref()),
            end(&c.client),
            end(&c.server),
            c.setup.as_ref().map_or_else(String::new, |s| s.outcome.clone()),
            c.close.as_ref().map_or_else(String::new, |s| s.kind.clone()),
            seconds(c.duration_seconds),
            count(u64::from(c.turns)),
            count(to_server.packets),
            count(to_client.packets),
            bytes(to_server.payload_bytes),
            bytes(to_client.payload_bytes),
            kilobits(&to_server),
            kilobits(&to_client),
            some(to_server.retransmitted_packets),
            some(to_client.retransmitted_packets),
            some(to_server.sack_blocks),
            some(to_client.sack_blocks),
            rtt(&c.client_to_server),
            rtt(&c.server_to_client),
        ]);
    }
    writeln!(out, "{table}")
}
