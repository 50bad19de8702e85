//! When connections and transactions begin and end.

use crate::Timestamp;
use crate::v1::{Connection, Transaction};

fn nanos(time: Option<&Timestamp>) -> i64 {
    time.map_or(0, |time| time.unix_nanos())
}

/// `seconds` (s) behind a moment.
fn after(nanos: i64, seconds: f64) -> i64 {
    nanos.saturating_add((seconds * 1e9).round().max(0.0) as i64)
}

impl Connection {
    /// First and last packet, UTC ns since 1970.
    pub fn span_nanos(&self) -> (i64, i64) {
        let first = nanos(self.first_packet_time.as_ref());
        (first, after(first, self.duration_seconds))
    }
}

impl Transaction {
    /// First packet of the request and, if the response ended, its last, UTC ns since 1970.
    pub fn span_nanos(&self) -> (i64, Option<i64>) {
        let first = nanos(self.request_time.as_ref());
        // The end of a request is counted from its last packet, that of a setup from its first.
        let asked = if self.kind == "SETUP" {
            0.0
        } else {
            self.request_seconds
        };
        let end = self.response_seconds.and(self.end_seconds);
        (first, end.map(|end| after(first, asked + end)))
    }
}
