//! Transactions: by signature, and each.

use std::io::{self, Write};

use weir_messages::v1::{SignatureStatistics, Transaction};

use super::{heading, optional, some, table};
use crate::format::{Clock, bytes, count, seconds};

pub(super) fn print(signatures: &[SignatureStatistics], rows: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut data: Vec<_> = signatures
        .iter()
        .filter(|s| !s.signature.starts_with("Open Conn"))
        .collect();
    if data.is_empty() {
        return Ok(());
    }
    data.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.signature.cmp(&b.signature)));
    let note = format!(
        "{} of {} signatures, most frequent first",
        data.len().min(rows),
        data.len()
    );
    heading(out, "Transactions", &note)?;
    let mut table = table(
        &[
            "count",
            "1st / 2nd / 3rd / later",
            "client average",
            "request",
            "server min",
            "average",
            "max",
            "response",
            "end average",
            "max",
            "losses",
            "signature",
        ],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    );
    for s in data.iter().take(rows) {
        let positions: Vec<_> = s.positions.iter().map(|&n| some(n)).collect();
        table.add_row(vec![
            count(s.count),
            positions.join(" / "),
            optional(s.client_average_seconds),
            bytes(s.request_bytes_average.round() as u64),
            optional(s.server_seconds_min),
            optional(s.server_seconds_average),
            optional(s.server_seconds_max),
            bytes(s.response_bytes_average.round() as u64),
            optional(s.end_seconds_average),
            optional(s.end_seconds_max),
            some(s.losses),
            s.signature.clone(),
        ]);
    }
    writeln!(out, "{table}")
}

pub(super) fn print_each(transactions: &[Transaction], note: &str, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "Transactions", note)?;
    let mut table = table(
        &[
            "start",
            "connection",
            "#",
            "request",
            "response",
            "request time",
            "server",
            "response time",
            "losses",
            "signature",
        ],
        &[2, 3, 4, 5, 6, 7, 8],
    );
    let clock = Clock::of_times(transactions.iter().filter_map(|t| t.request_time));
    for t in transactions {
        table.add_row(vec![
            clock.known(t.request_time.as_ref()),
            t.connection_id.to_string(),
            t.index.to_string(),
            bytes(t.request_bytes),
            bytes(t.response_bytes),
            seconds(t.request_seconds),
            optional(t.server_seconds),
            optional(t.response_seconds),
            t.losses.to_string(),
            t.signature.clone(),
        ]);
    }
    writeln!(out, "{table}")
}
