//! Numbers as people read them.

/// With thousands apart: 12,345.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "1 loss", "1,234 losses": `one` and `many` are the words.
pub fn several(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// How many connections.
pub fn connections(n: u64) -> String {
    several(n, "connection", "connections")
}

/// The same with so many decimals: 12,345.678.
pub fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let sign = if value < 0.0 { "-" } else { "" };
    whole
        .parse()
        .map_or_else(|_| format!("{sign}{text}"), |n| format!("{sign}{}{rest}", count(n)))
}

/// A time for a sentence, s: three digits below a second, hundredths above.
pub fn lasting(s: f64) -> String {
    let size = s.abs();
    // As they are rounded: 999.7 ms is 1.00 s.
    let (value, unit) = match () {
        () if size == 0.0 => return "0 s".to_owned(),
        () if size >= 0.9995 => return format!("{} s", decimal(s, 2)),
        () if size >= 0.9995e-3 => (s * 1e3, "ms"),
        () if size >= 0.9995e-6 => (s * 1e6, "µs"),
        () => return format!("{:.0} ns", s * 1e9),
    };
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// Two of them, s, or one where they are written the same.
pub fn lasting_between(least: f64, most: f64) -> String {
    match [least, most].map(lasting) {
        [least, most] if least == most => least,
        [least, most] => format!("{least} to {most}"),
    }
}

/// A duration in ns, for a sentence.
pub(crate) fn duration(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e5 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.1} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1_234_567].map(count), ["0", "999", "1,234,567"]);
        let decimals = [(0.5, 1), (1234.5678, 3), (-98_765.4, 0), (f64::NAN, 1)].map(|(value, n)| decimal(value, n));
        assert_eq!(decimals, ["0.5", "1,234.568", "-98,765", "NaN"]);
    }

    #[test]
    fn short_times_keep_their_digits() {
        let told = [
            0.0, 3e-9, 41.237e-6, 0.0001, 0.0099996, 0.1724, 0.9994, 0.9997, 34.928, 1234.5,
        ]
        .map(lasting);
        let wanted = [
            "0 s",
            "3 ns",
            "41.2 µs",
            "100 µs",
            "10.0 ms",
            "172 ms",
            "999 ms",
            "1.00 s",
            "34.93 s",
            "1,234.50 s",
        ];
        assert_eq!(told, wanted);
        assert_eq!(lasting_between(1.001, 1.0), "1.00 s");
        assert_eq!(lasting_between(0.5, 1.0), "500 ms to 1.00 s");
    }
}
