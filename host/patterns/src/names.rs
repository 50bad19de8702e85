//! How findings name whom they are about, and figures.

use weir_analysis::socket_address;
pub use weir_analysis::{connections, count, several};
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

/// A share as per cent, with the digits that it needs.
pub(crate) fn percent(share: f64) -> String {
    match share {
        s if s >= 0.0995 => format!("{:.0} %", s * 100.0),
        s if s >= 0.00995 => format!("{:.1} %", s * 100.0),
        s if s >= 0.000_995 => format!("{:.2} %", s * 100.0),
        0.0 => "0 %".to_owned(),
        s => format!("{:.4} %", s * 100.0),
    }
}

/// A chance in words: as the largest power of ten above it.
pub(crate) fn chance(p: f64) -> String {
    let exponent = p.max(1e-99).log10().ceil() as i32;
    if exponent >= -3 {
        format!("less than {:.3}", p.max(0.001))
    } else {
        format!("less than 1 in 10^{}", -exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_people_write_them() {
        let v4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1];
        assert_eq!(service(v4, 443), "10.0.0.1:443");
        assert_eq!(service([0; 16], 1), "[::]:1");
        assert_eq!(connections(1), "1 connection");
        assert_eq!(several(1234, "loss", "losses"), "1,234 losses");
    }
}
