//! Groups of numbers without assuming their law: their medians, and whether two differ.

/// How two groups differ (Mann, Whitney 1947).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    /// Chance that one of the first group is larger than one of the second; ties count half. The effect size.
    pub larger: f64,
    /// Chance of such a difference, either way, when there is none; by the normal law, for ten of each and more.
    pub chance: f64,
}

/// Compare two groups; `None` without any in both.
pub(crate) fn compare(first: &[f64], second: &[f64]) -> Option<Comparison> {
    let (n, m) = (first.len() as f64, second.len() as f64);
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let tagged = |values: &[f64], tag: bool| values.iter().map(|v| (*v, tag)).collect::<Vec<_>>();
    let mut all = tagged(first, true);
    all.extend(tagged(second, false));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut ties, mut at) = (0.0, 0.0, 0);
    for same in all.chunk_by(|a, b| a.0 == b.0) {
        let count = same.len() as f64;
        let rank = at as f64 + (count + 1.0) / 2.0;
        sum += rank * same.iter().filter(|(_, first)| *first).count() as f64;
        ties += count.powi(3) - count;
        at += same.len();
    }
    let u = sum - n * (n + 1.0) / 2.0;
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)).max(1.0));
    let z = (u - n * m / 2.0).abs() / variance.max(f64::MIN_POSITIVE).sqrt();
    Some(Comparison {
        larger: u / (n * m),
        chance: if variance > 0.0 { 2.0 * tail(z) } else { 1.0 },
    })
}

/// Chance that a normal variable is larger than `z` ≥ 0 (Abramowitz, Stegun 26.2.17; error below 10⁻⁷).
fn tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = [
        1.330_274_429,
        -1.821_255_978,
        1.781_477_937,
        -0.356_563_782,
        0.319_381_53,
    ];
    let sum = series.iter().fold(0.0, |sum, c| (sum + c) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
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
    fn the_median_of_an_even_number_is_between_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    /// By the formulas with erfc: U 3.5, z 2.51735, p 0.011824.
    #[test]
    fn two_groups_differ_as_elsewhere() {
        let c = compare(&[1.0, 2.0, 3.0, 4.0, 5.0, 5.0], &[4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]).expect("two groups");
        assert!((c.larger * 42.0 - 3.5).abs() < 1e-9, "{c:?}");
        assert!((c.chance - 0.011_824).abs() < 1e-6, "{c:?}");
    }

    #[test]
    fn equal_groups_do_not_differ() {
        let c = compare(&[1.0; 20], &[1.0; 30]).expect("two groups");
        assert!((c.larger - 0.5).abs() < 1e-9 && c.chance > 0.99, "{c:?}");
        assert!(compare(&[], &[1.0]).is_none());
        assert!((tail(1.96) - 0.025).abs() < 1e-4);
    }
}
