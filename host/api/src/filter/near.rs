//! Fields that may have been meant where there is none of that name.

use super::fields::{Field, Kind};

/// Names shown.
const SHOWN: usize = 3;
/// Likeness (Jaro and Winkler, 0 to 1) from which on one is, and the most of one whose last part alone is compared: what fits from end to
/// end is the likelier.
const ALIKE: f64 = 0.86;
const OF_LAST: f64 = 0.94;

/// The dotted names that are like `dotted`, as a whole or from the right ("tcp.port"), the likest first. Empty: none is.
pub(super) fn near(schema: &'static [Field], dotted: &str) -> String {
    let wanted = dotted.to_lowercase();
    let mut found = Vec::new();
    collect(schema, "", &wanted, &mut found);
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.truncate(SHOWN);
    found
        .iter()
        .map(|(_, name)| name.as_str())
        .collect::<Vec<_>>()
        .join(" or ")
}

fn collect(schema: &'static [Field], before: &str, wanted: &str, found: &mut Vec<(f64, String)>) {
    for field in schema {
        let name = format!("{before}{}", field.name);
        if let Kind::Message(within) = field.kind {
            collect(within, &format!("{name}."), wanted, found);
            continue;
        }
        let likeness = likeness(wanted, &name);
        if likeness >= ALIKE {
            // Of those alike, the shorter is the nearer to the top.
            found.push((likeness - name.len() as f64 / 1e4, name));
        }
    }
}

/// Of the last parts of two dotted names; or, if they have as many and that is more, the least of all parts.
fn likeness(wanted: &str, name: &str) -> f64 {
    let parts = || wanted.rsplit('.').zip(name.rsplit('.'));
    let alike = |(a, b): (&str, &str)| strsim::jaro_winkler(a, b);
    let of_last = parts().next().map_or(0.0, alike).min(OF_LAST);
    if wanted.split('.').count() == name.split('.').count() {
        of_last.max(parts().map(alike).fold(1.0, f64::min))
    } else {
        of_last
    }
}
