//! What limited transfers.

use std::io::{self, Write};

use weir_messages::v1::Connection;

use super::{end, heading, table};
use crate::format::{bytes, seconds};

/// Directions whose data was under way for less are not worth a row, s.
const SHORT_TRANSFERS: f64 = 0.01;

/// What limited the directions that were under way for long.
pub(super) fn print(shown: &[Connection], out: &mut dyn Write) -> io::Result<()> {
    let mut table = table(
        &[
            "from",
            "to",
            "bytes",
            "application",
            "sender",
            "receiver's window",
            "congestion window",
            "bandwidth",
            "unknown",
            "Mbit/s",
            "ceilings: window",
            "sender",
            "loss",
            "link",
        ],
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
    );
    let mut any = false;
    for c in shown {
        for (d, from, to) in [
            (&c.client_to_server, &c.client, &c.server),
            (&c.server_to_client, &c.server, &c.client),
        ] {
            let Some((d, l)) = d.as_ref().and_then(|d| Some((d, d.limit_seconds?))) else {
                continue;
            };
            let network = [l.sender, l.receiver_window, l.congestion, l.bandwidth, l.unknown];
            if network.iter().sum::<f64>() < SHORT_TRANSFERS {
                continue;
            }
            any = true;
            let mut row = vec![end(from), end(to), bytes(d.payload_bytes), seconds(l.application)];
            row.extend(network.iter().map(|&s| if s == 0.0 { "·".into() } else { seconds(s) }));
            let c = d.ceilings.unwrap_or_default();
            let rates = [
                c.measured_bits_per_second,
                c.receiver_window_bits_per_second,
                c.sender_bits_per_second,
                c.loss_bits_per_second,
                c.link_bits_per_second,
            ];
            row.extend(rates.map(|rate| rate.map_or_else(|| "·".into(), |rate| format!("{:.3}", rate / 1e6))));
            table.add_row(row);
        }
    }
    if any {
        heading(
            out,
            "What limited transfers",
            "time of data under way, and of an application with nothing to send",
        )?;
        writeln!(out, "{table}")?;
    }
    Ok(())
}
