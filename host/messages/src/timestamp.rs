//! `google.protobuf.Timestamp` with its proto3 JSON form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const NANOS: i64 = 1_000_000_000;
const DAY: i64 = 86_400;
/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the range of the protobuf type.
const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;

/// A point in time, UTC (`google.protobuf.Timestamp`).
///
/// Printed as RFC 3339 with `Z` and nine digits of fraction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Message)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z, leap seconds not counted.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds after `seconds`, 0 to 999,999,999.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Timestamp {
    /// From UTC nanoseconds since 1970.
    pub const fn from_unix_nanos(nanos: i64) -> Self {
        Self {
            seconds: nanos.div_euclid(NANOS),
            nanos: nanos.rem_euclid(NANOS) as i32,
        }
    }

    /// UTC nanoseconds since 1970; beyond the years 1678 to 2262 the nearest value.
    pub const fn unix_nanos(self) -> i64 {
        self.seconds.saturating_mul(NANOS).saturating_add(self.nanos as i64)
    }

    /// Whether it is a time of the protobuf type: years 1 to 9999, and nanoseconds less than a second.
    pub const fn is_valid(self) -> bool {
        self.seconds >= MIN_SECONDS && self.seconds <= MAX_SECONDS && self.nanos >= 0 && (self.nanos as i64) < NANOS
    }

    /// From days since 1970 and a time of the day.
    fn from_parts(days: i64, second_of_day: i64, nanos: i32) -> Self {
        Self {
            seconds: days * DAY + second_of_day,
            nanos,
        }
    }
}

impl fmt::Display for Timestamp {
    /// Values outside of the protobuf type's range print as its nearest end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds.clamp(MIN_SECONDS, MAX_SECONDS);
        let nanos = self.nanos.clamp(0, (NANOS - 1) as i32);
        let (year, month, day) = civil(seconds.div_euclid(DAY));
        let second = seconds.rem_euclid(DAY);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{nanos:09}Z",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

/// A text that is not an RFC 3339 time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTimestampError {
    text: String,
}

impl fmt::Display for ParseTimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a time: expected RFC 3339 such as 2026-01-31T12:00:00.5Z or 2026-01-31T13:00:00+01:00",
            self.text
        )
    }
}

impl std::error::Error for ParseTimestampError {}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.as_bytes()).ok_or_else(|| ParseTimestampError {
            // The message stays short whatever was sent.
            text: text.chars().take(64).collect(),
        })
    }
}

/// RFC 3339 section 5.6; a leap second (`:60`) is read as the second after it.
fn parse(text: &[u8]) -> Option<Timestamp> {
    let (date_time, rest) = text.split_at_checked(19)?;
    let number = |range: std::ops::Range<usize>| digits(date_time.get(range)?);
    let separators: [(usize, &[u8]); 5] = [(4, b"-"), (7, b"-"), (10, b"Tt"), (13, b":"), (16, b":")];
    if separators
        .iter()
        .any(|(at, any)| !date_time.get(*at).is_some_and(|byte| any.contains(byte)))
    {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let date_exists = civil(days(year, month, day)) == (year, month, day);
    if year == 0 || !date_exists || hour > 23 || minute > 59 || second > 60 {
        return None;
    }

    let (fraction, zone) = match rest.strip_prefix(b".") {
        None => (0, rest),
        Some(rest) => {
            let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count == 0 || count > 9 {
                return None;
            }
            let scale = 10_i64.pow(9 - count as u32);
            (digits(&rest[..count])? * scale, &rest[count..])
        }
    };
    let offset = match zone {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'+' { seconds } else { -seconds }
        }
        _ => return None,
    };
    let local = hour * 3600 + minute * 60 + second;
    let time = Timestamp::from_parts(days(year, month, day), local - offset, fraction as i32);
    (MIN_SECONDS..=MAX_SECONDS).contains(&time.seconds).then_some(time)
}

/// Value of a short run of digits.
fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
    })
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar, counted in eras of 400 years
/// (146,097 days) whose years begin in March, so that the leap day is a year's last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a count of days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}
