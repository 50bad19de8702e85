//! What was lost and sent again.

use std::collections::HashMap;
use std::io::{self, Write};

use weir_analysis::Class;
use weir_messages::v1::{Connection, Segment};

use super::{end, heading, some, table};
use crate::format::{Clock, count};

pub(super) fn print(shown: &[Connection], out: &mut dyn Write) -> io::Result<()> {
    let mut table = table(
        &[
            "from",
            "to",
            "packets",
            "retransmitted",
            "fast",
            "timeout",
            "tail probe",
            "spurious",
            "unknown",
            "episodes",
            "reordered",
            "copies",
            "lost before tap",
            "after tap",
            "not known",
            "ACKs",
            "missed by capture",
            "zero windows",
        ],
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17],
    );
    let mut any = false;
    for c in shown {
        for (d, from, to) in [
            (&c.client_to_server, &c.client, &c.server),
            (&c.server_to_client, &c.server, &c.client),
        ] {
            let Some(d) = d else { continue };
            let figures = [
                d.retransmitted_packets,
                d.fast_retransmissions,
                d.timeout_retransmissions,
                d.tail_loss_probes,
                d.spurious_retransmissions,
                d.unknown_retransmissions,
                d.retransmission_episodes,
                d.out_of_order,
                d.network_duplicates,
                d.lost_upstream,
                d.lost_downstream,
                d.lost_unknown,
                d.lost_acks,
                d.missed_by_capture,
                d.zero_windows,
            ];
            if figures.iter().all(|&n| n == 0) {
                continue;
            }
            any = true;
            let mut row = vec![end(from), end(to), count(d.packets)];
            row.extend(figures.iter().map(|&n| some(n)));
            table.add_row(row);
        }
    }
    if any {
        heading(
            out,
            "Losses and repeats",
            "segments, by direction; 'before tap' is the sender's side",
        )?;
        writeln!(out, "{table}")?;
    }
    Ok(())
}

pub(super) fn print_segments(
    segments: &[Segment],
    note: &str,
    ends: &HashMap<u64, (String, String)>,
    clock: Clock,
    out: &mut dyn Write,
) -> io::Result<()> {
    heading(out, "Segments that came twice, late or never", note)?;
    let mut table = table(
        &[
            "time", "from", "to", "seq", "bytes", "what", "why", "lost", "sure", "episode", "evidence",
        ],
        &[3, 4, 8, 9],
    );
    for s in segments {
        // Who has the connection's id alone says that.
        let unknown = || {
            (
                format!("{} client", s.connection_id),
                format!("{} server", s.connection_id),
            )
        };
        let (client, server) = ends.get(&s.connection_id).cloned().unwrap_or_else(unknown);
        let (from, to) = if s.from_server {
            (server, client)
        } else {
            (client, server)
        };
        let sent_again = s.class == Class::Retransmission.name();
        table.add_row(vec![
            clock.known(s.time.as_ref()),
            from,
            to,
            s.seq.to_string(),
            s.length.to_string(),
            s.class.clone(),
            if sent_again { s.cause.clone() } else { String::new() },
            s.place.clone(),
            format!("{:.0} %", 100.0 * s.confidence),
            if sent_again {
                s.episode.to_string()
            } else {
                String::new()
            },
            s.evidence.join(" "),
        ]);
    }
    writeln!(out, "{table}")
}
