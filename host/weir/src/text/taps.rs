//! Several taps of one path.

use std::io::{self, Write};

use weir_align::Alignment;
use weir_messages::v1::{Leg, Pie};

use super::{heading, table};
use crate::format::{Clock, count, seconds};

/// The path with its taps and legs, then the figures of each.
pub fn print_alignment(alignment: &Alignment, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "Path", "client on the left")?;
    let names: Vec<String> = alignment.taps.iter().map(|tap| file_name(&tap.file)).collect();
    write!(out, "  client ──")?;
    for (k, name) in names.iter().enumerate() {
        if k > 0 {
            write!(out, "── leg {k} ──")?;
        }
        write!(out, "[{name}]")?;
    }
    writeln!(out, "── server")?;
    for (k, leg) in alignment.legs.iter().enumerate() {
        print_leg(k + 1, leg, out)?;
    }
    heading(
        out,
        "Taps",
        "TTL and MAC: of packets from the client's and the server's side",
    )?;
    let mut table = table(
        &[
            "tap",
            "packets",
            "connections",
            "only here",
            "missed by capture",
            "TTL",
            "MAC",
        ],
        &[1, 2, 3, 4],
    );
    for (name, tap) in names.iter().zip(&alignment.taps) {
        let ttl = |ttl: Option<u32>| ttl.map_or_else(|| "-".to_owned(), |ttl| ttl.to_string());
        let macs = if tap.mac_client_side.is_empty() && tap.mac_server_side.is_empty() {
            "-".to_owned()
        } else {
            format!("{}, {}", tap.mac_client_side, tap.mac_server_side)
        };
        table.add_row(vec![
            name.clone(),
            count(tap.packets),
            count(tap.connections),
            count(tap.connections_only_here),
            count(tap.missed_by_capture),
            format!("{}, {}", ttl(tap.ttl_client_side), ttl(tap.ttl_server_side)),
            macs,
        ]);
    }
    writeln!(out, "{table}")?;
    for (name, tap) in names.iter().zip(&alignment.taps) {
        if tap.given_up > 0 {
            writeln!(
                out,
                "  {name}: {} packets were given up: the matching window was full",
                count(tap.given_up)
            )?;
        }
    }
    print_pies(&alignment.pies, out)
}

fn file_name(path: &str) -> String {
    std::path::Path::new(path)
        .file_name()
        .map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn print_leg(number: usize, leg: &Leg, out: &mut dyn Write) -> io::Result<()> {
    let note = format!("{} to {}", file_name(&leg.from), file_name(&leg.to));
    heading(out, &format!("Leg {number}"), &note)?;
    let directions = [
        (
            "→",
            &leg.delay_forward,
            [leg.arrived_forward, leg.lost_forward],
            leg.duplicated_forward,
        ),
        (
            "←",
            &leg.delay_backward,
            [leg.arrived_backward, leg.lost_backward],
            leg.duplicated_backward,
        ),
    ];
    for (arrow, delay, [arrived, lost], duplicated) in directions {
        write!(out, "  {arrow} ")?;
        match delay {
            Some(d) => write!(
                out,
                "delay {} min, {} median, {} p95, {} max",
                seconds(d.min_seconds),
                seconds(d.median_seconds),
                seconds(d.p95_seconds),
                seconds(d.max_seconds)
            )?,
            None => write!(out, "no delay to tell")?,
        }
        let sent = arrived + lost;
        let share = 100.0 * lost as f64 / sent.max(1) as f64;
        write!(out, "; lost {} of {} ({share:.2} %)", count(lost), count(sent))?;
        if duplicated > 0 {
            write!(out, "; {} came twice", count(duplicated))?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "  {} packets in both, {} only in {}, {} only in {}; {} undecided, {} while one capture was not running",
        count(leg.matched),
        count(leg.only_from),
        file_name(&leg.from),
        count(leg.only_to),
        file_name(&leg.to),
        count(leg.undecided),
        count(leg.outside)
    )?;
    let clock = Clock::of_times(leg.clock.iter().filter_map(|piece| piece.start));
    for (k, piece) in leg.clock.iter().enumerate() {
        let since = match (&piece.start, k) {
            (Some(start), 1..) => format!("from {} on: ", clock.time(start)),
            _ => String::new(),
        };
        writeln!(
            out,
            "  clock of {} {since}{:+.6} s ± {}, drifting by {:+.2} ppm",
            file_name(&leg.to),
            piece.offset_seconds,
            seconds(piece.offset_width_seconds / 2.0),
            piece.skew_ppm
        )?;
    }
    for line in &leg.placement {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// The pies as text.
pub fn print_pies(pies: &[Pie], out: &mut dyn Write) -> io::Result<()> {
    for pie in pies {
        heading(
            out,
            &format!("{} pie", pie.method.to_lowercase().replace('_', " ")),
            &match pie.uncertainty_seconds {
                Some(uncertainty) if uncertainty > 0.0 => {
                    format!("of {}, ± {}", seconds(pie.total_seconds), seconds(uncertainty))
                }
                _ => format!("of {}", seconds(pie.total_seconds)),
            },
        )?;
        let parts = [
            ("client", pie.client_seconds),
            ("network", pie.network_seconds),
            ("server", pie.server_seconds),
        ];
        for (name, value) in parts {
            let share = if pie.total_seconds > 0.0 {
                value / pie.total_seconds
            } else {
                0.0
            };
            let bar = "█".repeat((share.clamp(0.0, 1.0) * 40.0).round() as usize);
            writeln!(out, "  {name:8} {value:10.6} s {:5.1} % {bar}", 100.0 * share)?;
        }
    }
    Ok(())
}
