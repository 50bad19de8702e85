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
}
