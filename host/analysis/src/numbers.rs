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
