//! How findings name whom they are about.

pub use weir_analysis::{connections, count, several};
use weir_analysis::{seconds, socket_address, timestamp};
use weir_messages::v1::Finding;

/// An address (IPv4 as `::ffff:a.b.c.d`).
pub(crate) type Address = [u8; 16];

/// Address and port, an IPv6 address in brackets.
pub(crate) fn service(server: Address, port: u16) -> String {
    socket_address(server, port).to_string()
}

/// The finding with its `who`.
pub(crate) fn about(who: String, finding: Finding) -> Finding {
    Finding { who, ..finding }
}

/// "from 22:13:20.500 to 22:14:01.250 (40.750 s)", with the dates if they differ. TAI ns in, UTC out.
pub(crate) fn period(start: u64, end: u64) -> String {
    let took = seconds(end.saturating_sub(start));
    let [from, to] = [start, end].map(|time| timestamp(time).to_string().chars().take(10).collect::<String>());
    let date = |day| if from == to { String::new() } else { format!("{day} ") };
    format!(
        "from {}{} to {}{} ({took:.3} s)",
        date(&from),
        clock(start),
        date(&to),
        clock(end)
    )
}

/// Time of day in UTC to the millisecond.
pub(crate) fn clock(time: u64) -> String {
    let text = timestamp(time).to_string();
    let day = text.find('T').map_or(0, |at| at + 1);
    text.get(day..day + 12).unwrap_or(&text).to_owned()
}

/// The median; `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_people_write_them() {
        let v4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1];
        assert_eq!(service(v4, 443), "10.0.0.1:443");
        assert_eq!(service([0; 16], 1), "[::]:1");
        // 2023-11-14 22:13:20 UTC in TAI.
        let time = 1_700_000_037_000_000_000;
        assert_eq!(clock(time + 5_000_000), "22:13:20.005");
        assert_eq!(
            period(time, time + 1_500_000_000),
            "from 22:13:20.000 to 22:13:21.500 (1.500 s)"
        );
        assert_eq!(
            period(time, time + 10_000_000_000_000),
            "from 2023-11-14 22:13:20.000 to 2023-11-15 01:00:00.000 (10000.000 s)"
        );
        assert_eq!(connections(1), "1 connection");
        assert_eq!(several(1234, "loss", "losses"), "1,234 losses");
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
