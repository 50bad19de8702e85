//! Services that refuse connections in a row: the program was down, or a firewall answered for it.
//! Memory: [`SERVICES`] services.

use std::collections::HashMap;

use crate::message::{period, seconds, socket_address};
use crate::sink::Ends;

/// Services that are looked at, in the order of their first refusal.
const SERVICES: usize = 64;
/// Refusals without a connection between them from which on the row is told.
const ROW: u64 = 20;
/// Rows that are told.
const TOLD: usize = 5;

/// Refusals without a connection between them; times are those of the first SYN and of the last RST, TAI ns.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    count: u64,
    start: u64,
    end: u64,
}

/// The row that goes on, and the longest before it.
#[derive(Clone, Copy, Debug, Default)]
struct Service {
    row: Row,
    longest: Row,
}

impl Service {
    const fn longest(&self) -> Row {
        if self.row.count > self.longest.count {
            self.row
        } else {
            self.longest
        }
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    services: HashMap<([u8; 16], u16), Service>,
}

impl Refusals {
    /// A connection was refused.
    pub fn refused(&mut self, ends: &Ends, start: u64, end: u64) {
        let key = (ends.server, ends.server_port);
        if self.services.len() >= SERVICES && !self.services.contains_key(&key) {
            return;
        }
        let row = &mut self.services.entry(key).or_default().row;
        row.start = if row.count == 0 { start } else { row.start.min(start) };
        row.end = row.end.max(end);
        row.count += 1;
    }

    /// A connection came about.
    pub fn accepted(&mut self, ends: impl FnOnce() -> Ends) {
        if self.services.is_empty() {
            return;
        }
        let ends = ends();
        if let Some(service) = self.services.get_mut(&(ends.server, ends.server_port)) {
            service.longest = service.longest();
            service.row = Row::default();
        }
    }

    /// The longest rows in words, longest first.
    pub fn rows(&self) -> Vec<String> {
        let mut rows: Vec<_> = self
            .services
            .iter()
            .map(|(key, service)| (*key, service.longest()))
            .collect();
        rows.retain(|(_, row)| row.count >= ROW);
        rows.sort_by_key(|(key, row)| (std::cmp::Reverse(row.count), *key));
        rows.truncate(TOLD);
        let told = rows.into_iter().map(|((server, port), row)| {
            let took = seconds(row.end.saturating_sub(row.start));
            format!(
                "{} refused {} in a row {}, {:.1} a second: no connection came about between them",
                socket_address(server, port),
                row.count,
                period(row.start, row.end),
                row.count as f64 / took.max(1.0)
            )
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(port: u16) -> Ends {
        Ends {
            server_port: port,
            ..Ends::default()
        }
    }

    #[test]
    fn the_longest_row_without_a_connection_is_told() {
        let mut refusals = Refusals::default();
        let refuse = |refusals: &mut Refusals, port, from: u64, n: u64| {
            for i in from..from + n {
                refusals.refused(&ends(port), i * 1_000_000_000, i * 1_000_000_000);
            }
        };
        refuse(&mut refusals, 80, 100, 30);
        refusals.accepted(|| ends(80));
        refuse(&mut refusals, 80, 200, 25);
        refuse(&mut refusals, 81, 100, 19);
        refuse(&mut refusals, 82, 100, 40);
        let rows = refusals.rows();
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert_eq!(
            rows[0],
            "[::]:82 refused 40 in a row from 00:01:30.000 to 00:02:09.000 (39.000 s), 1.0 a second: no connection came about between them"
        );
        assert!(
            rows[1].contains(":80 refused 30 in a row") && rows[1].contains("1.0 a second"),
            "{rows:?}"
        );
    }

    #[test]
    fn strangers_find_no_room() {
        let mut refusals = Refusals::default();
        for port in 0..1000 {
            refusals.refused(&ends(port), 1, 1);
        }
        assert_eq!(refusals.services.len(), SERVICES);
    }
}
