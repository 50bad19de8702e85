//! Numbers as people read them.

use weir_analysis::decimal;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(bytes(1_234_567), "1,234.6 kB");
    }
}
