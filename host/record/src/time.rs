//! TAI and UTC. Records carry TAI nanoseconds since 1970-01-01 00:00:00 TAI; capture files, JSON
//! and gRPC carry UTC. The offset is whole seconds and changes at leap seconds (IERS Bulletin C).

const NS: u64 = 1_000_000_000;

/// (first UTC second since 1970 with this offset, TAI − UTC in seconds). Before 1972, UTC was not
/// whole seconds from TAI; the offset of 1972 is used so that the conversion stays reversible.
const LEAPS: [(u64, u64); 28] = [
    (0, 10),
    (78_796_800, 11),
    (94_694_400, 12),
    (126_230_400, 13),
    (157_766_400, 14),
    (189_302_400, 15),
    (220_924_800, 16),
    (252_460_800, 17),
    (283_996_800, 18),
    (315_532_800, 19),
    (362_793_600, 20),
    (394_329_600, 21),
    (425_865_600, 22),
    (489_024_000, 23),
    (567_993_600, 24),
    (631_152_000, 25),
    (662_688_000, 26),
    (709_948_800, 27),
    (741_484_800, 28),
    (773_020_800, 29),
    (820_454_400, 30),
    (867_715_200, 31),
    (915_148_800, 32),
    (1_136_073_600, 33),
    (1_230_768_000, 34),
    (1_341_100_800, 35),
    (1_435_708_800, 36),
    (1_483_228_800, 37),
];

/// TAI ns of a UTC time in ns since 1970 (saturating at the end of u64).
///
/// POSIX UTC repeats the second before a leap; the repeated second maps to its first occurrence.
#[inline]
pub fn tai_from_utc(utc_ns: u64) -> u64 {
    // Captures are recent.
    let (start, now) = LEAPS[LEAPS.len() - 1];
    let offset = if utc_ns >= start * NS {
        now
    } else {
        offset(utc_ns / NS, 0)
    };
    utc_ns.saturating_add(offset * NS)
}

/// UTC ns since 1970 of a TAI time in ns; inverse of [`tai_from_utc`]. The inserted leap second
/// itself maps to the second that follows it.
pub fn utc_from_tai(tai_ns: u64) -> u64 {
    tai_ns.saturating_sub(offset(tai_ns / NS, 1) * NS)
}

/// The offset in force; `tai` is 1 when `second` is a TAI second, 0 when UTC.
fn offset(second: u64, tai: u64) -> u64 {
    // Captures are recent: the last rows are looked at first.
    LEAPS
        .iter()
        .rev()
        .find(|(start, offset)| second >= start + tai * offset)
        .map_or(LEAPS[0].1, |(_, offset)| *offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_offsets() {
        assert_eq!(tai_from_utc(1_483_228_800 * NS), (1_483_228_800 + 37) * NS);
        assert_eq!(tai_from_utc(1_483_228_799 * NS), (1_483_228_799 + 36) * NS);
        assert_eq!(tai_from_utc(0), 10 * NS);
    }

    #[test]
    fn every_utc_second_around_a_leap_comes_back() {
        for (start, _) in LEAPS {
            for s in start.saturating_sub(3)..start + 3 {
                assert_eq!(utc_from_tai(tai_from_utc(s * NS + 7)), s * NS + 7, "{s}");
            }
        }
    }
}
