//! Who talks to whom, as a table.

use std::io::{self, Write};

use weir_messages::v1::{Dialogue, DialogueSide, Summary};

use super::{end, heading, optional, some, table};
use crate::format::{bytes, count};

/// Print the dialogues with most bytes.
pub fn print(summary: &Summary, rows: usize, out: &mut dyn Write) -> io::Result<()> {
    let all = summary.dialogues.len();
    if all == 0 {
        return Ok(());
    }
    let note = format!(
        "{} of {all}, most bytes first; → from the client, ← from the server; lost: data segments, on either side of the tap",
        all.min(rows)
    );
    heading(out, "Dialogues", &note)?;
    let headers = [
        "client",
        "server",
        "connections",
        "failed",
        "packets →",
        "←",
        "bytes →",
        "←",
        "sent again →",
        "←",
        "lost to server",
        "to client",
        "not known",
        "SYNs again",
        "missed by capture",
        "RTT server min",
        "client",
    ];
    let right: Vec<usize> = (2..headers.len()).collect();
    let mut table = table(&headers, &right);
    for dialogue in summary.dialogues.iter().take(rows) {
        let names = [dialogue.client_address.clone(), end(&dialogue.server)];
        table.add_row(names.into_iter().chain(figures(dialogue)));
    }
    if let Some(others) = &summary.other_dialogues {
        let names = ["all others".to_owned(), String::new()];
        table.add_row(names.into_iter().chain(figures(others)));
    }
    writeln!(out, "{table}")
}

fn figures(dialogue: &Dialogue) -> [String; 15] {
    let [to_server, to_client] =
        [&dialogue.client_to_server, &dialogue.server_to_client].map(|side| side.unwrap_or_default());
    let rate = |side: &DialogueSide| {
        side.retransmission_rate
            .map_or_else(|| "-".into(), |rate| format!("{:.3} %", 100.0 * rate))
    };
    [
        count(dialogue.connections),
        some(dialogue.failed),
        count(to_server.packets),
        count(to_client.packets),
        bytes(to_server.payload_bytes),
        bytes(to_client.payload_bytes),
        rate(&to_server),
        rate(&to_client),
        some(to_server.lost_behind_tap + to_client.lost_before_tap),
        some(to_server.lost_before_tap + to_client.lost_behind_tap),
        some(to_server.lost_unknown + to_client.lost_unknown),
        some(to_server.repeated_setup_packets + to_client.repeated_setup_packets),
        some(to_server.missed_by_capture + to_client.missed_by_capture),
        optional(to_server.rtt_min_seconds),
        optional(to_client.rtt_min_seconds),
    ]
}
