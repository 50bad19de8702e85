//! The hour that a row belongs to, as it is in paths.

use weir_messages::Timestamp;

/// ns.
const HOUR: i64 = 3_600_000_000_000;

/// Number of the hour of a time (UTC ns since 1970), counted from 1970.
pub(crate) const fn of(time: i64) -> i64 {
    time.div_euclid(HOUR)
}

/// Its name: `YYYY-MM-DDTHH`, UTC.
pub(crate) fn name(hour: i64) -> String {
    let mut text = Timestamp::from_unix_nanos(hour.saturating_mul(HOUR)).to_string();
    text.truncate("YYYY-MM-DDTHH".len());
    text
}

/// The hour of a name.
pub(crate) fn parse(name: &str) -> Option<i64> {
    let time: Timestamp = format!("{name}:00:00Z").parse().ok()?;
    Some(of(time.unix_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for time in [0, -1, 1_763_760_000_000_000_000, 1_763_763_599_999_999_999] {
            let hour = of(time);
            assert_eq!(parse(&name(hour)), Some(hour), "{time}");
        }
        assert_eq!(name(of(1_763_760_000_000_000_000)), "2025-11-21T21");
        assert_eq!(name(of(-1)), "1969-12-31T23");
        assert_eq!(parse("2025-11-21"), None);
    }
}
