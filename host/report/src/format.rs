//! Numbers as people read them.

use weir_analysis::decimal;
use weir_messages::{Timestamp, v1};
pub use weir_patterns::count;

/// Bytes with a decimal unit from 10 kB on.
pub fn bytes(n: u64) -> String {
    match n {
        0..10_000 => count(n),
        10_000..10_000_000 => format!("{} kB", decimal(n as f64 / 1e3, 1)),
        10_000_000..10_000_000_000 => format!("{} MB", decimal(n as f64 / 1e6, 1)),
        _ => format!("{} GB", decimal(n as f64 / 1e9, 1)),
    }
}

/// Seconds with a unit that leaves three or four digits.
pub fn seconds(s: f64) -> String {
    let a = s.abs();
    if a == 0.0 {
        "0".into()
    } else if a < 1e-3 {
        format!("{:.0} µs", s * 1e6)
    } else if a < 1.0 {
        format!("{:.1} ms", s * 1e3)
    } else if a < 100.0 {
        format!("{s:.2} s")
    } else {
        format!("{} s", decimal(s, 0))
    }
}

/// How long a capture is, behind how much is in it; nothing of one whose packets, if there are any, have one time.
pub fn length(summary: &v1::Summary) -> String {
    match summary.duration_seconds {
        0.0 => String::new(),
        length => format!(" in {}", seconds(length)),
    }
}

/// Address and port, an IPv6 address in brackets.
pub fn endpoint(e: &v1::Endpoint) -> String {
    if e.address.contains(':') {
        format!("[{}]:{}", e.address, e.port)
    } else {
        format!("{}:{}", e.address, e.port)
    }
}

/// How times are written, UTC: HH:MM:SS.µµµµµµ, with the date before it where they are of several days.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    dated: bool,
}

impl Clock {
    /// Of the times of a capture.
    pub fn of(summary: &v1::Summary) -> Self {
        let end = |start: Timestamp| {
            let length = (summary.duration_seconds * 1e9) as i64;
            Timestamp::from_unix_nanos(start.unix_nanos().saturating_add(length))
        };
        Self::of_times(summary.start.into_iter().flat_map(|start| [start, end(start)]))
    }

    /// Of these times.
    pub fn of_times(times: impl IntoIterator<Item = Timestamp>) -> Self {
        let mut days = times.into_iter().map(|time| day(&time));
        let first = days.next();
        Self {
            dated: days.any(|day| Some(day) != first),
        }
    }

    /// A time.
    pub fn time(self, time: &Timestamp) -> String {
        let of_day: String = time.to_string().chars().skip(11).take(15).collect();
        match self.dated {
            true => format!("{} {of_day}", day(time)),
            false => of_day,
        }
    }

    /// A time, if it is known.
    pub fn known(self, time: Option<&Timestamp>) -> String {
        time.map_or_else(String::new, |time| self.time(time))
    }
}

/// YYYY-MM-DD.
fn day(time: &Timestamp) -> String {
    time.to_string().chars().take(10).collect()
}

/// Frames in no connection by reason, if there are any.
pub fn untracked(summary: &v1::Summary) -> Option<String> {
    let mut reasons: Vec<_> = summary.untracked.iter().filter(|(_, n)| **n > 0).collect();
    reasons.sort();
    let list: Vec<_> = reasons
        .into_iter()
        .map(|(reason, n)| match reason.as_str() {
            "FRAGMENT" => format!("{} {reason} (those that were put together, too)", count(*n)),
            _ => format!("{} {reason}", count(*n)),
        })
        .collect();
    (!list.is_empty()).then(|| list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_said_to_be_put_together_or_not() {
        let mut summary = v1::Summary::default();
        assert_eq!(untracked(&summary), None);
        let counts = [("FRAGMENT", 4000), ("NOT_IP", 2), ("LINK", 0)];
        summary.untracked = counts.map(|(reason, n)| (reason.to_owned(), n)).into();
        let list = untracked(&summary);
        assert_eq!(
            list.as_deref(),
            Some("4,000 FRAGMENT (those that were put together, too), 2 NOT_IP")
        );
    }

    #[test]
    fn figures() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(bytes(1_234_567), "1,234.6 kB");
    }

    #[test]
    fn times_of_several_days_have_their_dates() {
        let start = Timestamp::from_unix_nanos(1_433_203_198_000_000_000);
        let mut summary = v1::Summary {
            start: Some(start),
            duration_seconds: 1.5,
            ..v1::Summary::default()
        };
        assert_eq!(Clock::of(&summary).time(&start), "23:59:58.000000");
        summary.duration_seconds = 3.0;
        assert_eq!(Clock::of(&summary).time(&start), "2015-06-01 23:59:58.000000");
    }
}
