//! Whether two captures differ: tests for values that depend on their neighbours in time.
//!
//! Response times a moment apart are not independent (they share a queue), so the textbook variances are too small. Both
//! captures are cut into [`SLICES`] slices of time, and the variance is that of the jackknife which leaves out one slice at a
//! time (Efron and Stein 1981), never less than the textbook's.

/// Slices of time of each capture.
pub const SLICES: usize = 20;
/// Values that a capture must have.
pub const LEAST_VALUES: usize = 30;
/// Slices that must hold something.
pub const LEAST_SLICES: usize = 5;

/// What a test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// For values Cliff's delta, −1 to 1: how much more often a value of the second capture is above one of the first than
    /// below (0: alike). For rates Cohen's h, or for counts a second ln(second ÷ first).
    pub effect: f64,
    /// Chance of a difference at least as large between captures that do not differ.
    pub p: f64,
}

/// Mann and Whitney's test (1947) of values with their slices. Not set when there are too few.
pub fn values(first: &[(usize, f64)], second: &[(usize, f64)]) -> Option<Tested> {
    let (n, m) = (first.len(), second.len());
    let counts = [first, second].map(|values| {
        let mut count = [0usize; SLICES];
        for (slice, _) in values {
            count[*slice] += 1;
        }
        count
    });
    let slices = counts.map(|count| count.iter().filter(|n| **n > 0).count());
    if n.min(m) < LEAST_VALUES || slices[0].min(slices[1]) < LEAST_SLICES {
        return None;
    }
    let wins = wins(first, second);
    let all: f64 = wins.iter().flatten().sum();
    let (size, other) = (n as f64, m as f64);
    let share = all / (size * other);

    let without_first = (0..SLICES).filter(|i| counts[0][*i] > 0).map(|i| {
        let lost: f64 = wins[i].iter().sum();
        (all - lost) / ((size - counts[0][i] as f64) * other)
    });
    let without_second = (0..SLICES).filter(|j| counts[1][*j] > 0).map(|j| {
        let lost: f64 = wins.iter().map(|row| row[j]).sum();
        (all - lost) / (size * (other - counts[1][j] as f64))
    });
    let variance = jackknife(without_first) + jackknife(without_second);
    let textbook = (size + other + 1.0) / (12.0 * size * other);
    let t = (share - 0.5) / variance.max(textbook).sqrt();
    Some(Tested {
        effect: 2.0 * share - 1.0,
        p: two_sided(t, slices[0].min(slices[1]) - 1),
    })
}

/// How many pairs of each two slices have the second value above the first one; ties count half.
fn wins(first: &[(usize, f64)], second: &[(usize, f64)]) -> [[f64; SLICES]; SLICES] {
    let mut all: Vec<_> = first
        .iter()
        .map(|(slice, value)| (*value, false, *slice))
        .chain(second.iter().map(|(slice, value)| (*value, true, *slice)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut wins = [[0.0; SLICES]; SLICES];
    let mut below = [0.0; SLICES];
    for tied in all.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let mut same = [0.0; SLICES];
        for (_, _, slice) in tied.iter().filter(|(_, is_second, _)| !is_second) {
            same[*slice] += 1.0;
        }
        for (_, _, slice) in tied.iter().filter(|(_, is_second, _)| *is_second) {
            for i in 0..SLICES {
                wins[i][*slice] += below[i] + same[i] / 2.0;
            }
        }
        for (all, more) in below.iter_mut().zip(same) {
            *all += more;
        }
    }
    wins
}

/// Hits and trials of each slice.
pub type Ratio = [(f64, f64); SLICES];

/// What the trials of a ratio are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trials {
    /// Things that can be hits: the ratio is a share.
    Share,
    /// Amounts of which hits are a part.
    Weight,
    /// Seconds.
    Time,
}

/// Two rates, from hits and trials of each slice; the ratio of sums with the jackknife's variance. Not set when there is too little.
pub fn rates(first: &Ratio, second: &Ratio, trials: Trials) -> Option<Tested> {
    let sums = [first, second].map(sum);
    let used = [first, second].map(|ratio| ratio.iter().filter(|(_, trials)| *trials > 0.0).count());
    let hits = sums[0].0 + sums[1].0;
    let least = sums[0].1.min(sums[1].1);
    let enough = trials != Trials::Share || least >= LEAST_VALUES as f64;
    if !enough || hits <= 0.0 || used[0].min(used[1]) < LEAST_SLICES {
        return None;
    }
    let rate = sums.map(|(hits, trials)| hits / trials);
    let variance: f64 = [first, second]
        .into_iter()
        .zip(sums)
        .map(|(ratio, (hits, trials))| {
            let without = ratio
                .iter()
                .filter(|(_, n)| *n > 0.0)
                .map(|(h, n)| (hits - h) / (trials - n));
            jackknife(without)
        })
        .sum();
    // Two proportions (or two Poisson counts), as if all trials were independent.
    let pooled = hits / (sums[0].1 + sums[1].1);
    let spread = match trials {
        Trials::Share => pooled * (1.0 - pooled),
        Trials::Weight => 0.0,
        Trials::Time => pooled,
    };
    let textbook = spread.max(0.0) * (1.0 / sums[0].1 + 1.0 / sums[1].1);
    let variance = variance.max(textbook);
    if variance <= 0.0 {
        return None;
    }
    let t = (rate[1] - rate[0]) / variance.sqrt();
    let effect = match trials {
        Trials::Share | Trials::Weight => 2.0 * (rate[1].min(1.0).sqrt().asin() - rate[0].min(1.0).sqrt().asin()),
        Trials::Time => (rate[1].max(f64::MIN_POSITIVE) / rate[0].max(f64::MIN_POSITIVE))
            .ln()
            .clamp(-10.0, 10.0),
    };
    Some(Tested {
        effect,
        p: two_sided(t, used[0].min(used[1]) - 1),
    })
}

/// All hits and all trials.
pub fn sum(ratio: &Ratio) -> (f64, f64) {
    ratio
        .iter()
        .fold((0.0, 0.0), |(h, n), (hits, trials)| (h + hits, n + trials))
}

/// Variance of a statistic from its values with one slice left out each.
fn jackknife(without: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = without.clone().count() as f64;
    if n < 2.0 {
        return f64::INFINITY;
    }
    let mean = without.clone().sum::<f64>() / n;
    (n - 1.0) / n * without.map(|value| (value - mean).powi(2)).sum::<f64>()
}

/// Holm's correction (1979) for many tests: the chance that any of them is as small by chance.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut out = vec![1.0; p.len()];
    let mut largest = 0.0f64;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max((p[index] * (p.len() - place) as f64).min(1.0));
        out[index] = largest;
    }
    out
}

/// Two-sided p of Student's t (Abramowitz and Stegun 26.7.3, 26.7.4).
fn two_sided(t: f64, freedom: usize) -> f64 {
    let theta = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    let odd = !freedom.is_multiple_of(2);
    // Terms of the series: cos, 2/3 cos³, ... or 1, 1/2 cos², ...
    let mut term = if odd { cos } else { 1.0 };
    let mut series = if freedom == 1 { 0.0 } else { term };
    let mut k = if odd { 3 } else { 2 };
    while k < freedom {
        term *= cos * cos * (k - 1) as f64 / k as f64;
        series += term;
        k += 2;
    }
    let within = match odd {
        true => std::f64::consts::FRAC_2_PI * (theta + sin * series),
        false => sin * series,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers like chance (SplitMix64).
    struct Chance(u64);

    impl Chance {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (t, freedom, p) in [
            (12.706, 1, 0.05),
            (4.303, 2, 0.05),
            (2.571, 5, 0.05),
            (2.093, 19, 0.05),
            (2.861, 19, 0.01),
            (3.169, 10, 0.01),
        ] {
            assert!(
                (two_sided(t, freedom) - p).abs() < 2e-4,
                "{t} {freedom}: {}",
                two_sided(t, freedom)
            );
        }
        assert!((two_sided(0.0, 7) - 1.0).abs() < 1e-12);
        assert!(two_sided(1e6, 19) < 1e-9);
    }

    /// Values whose level wanders from slice to slice, as a queue's does; `ratio` times as large in the second.
    fn wandering(seed: u64, ratio: f64) -> Option<Tested> {
        let mut chance = Chance(seed);
        let mut side = |factor: f64| -> Vec<(usize, f64)> {
            (0..SLICES)
                .flat_map(|slice| {
                    let level = 0.5 + chance.next();
                    let values: Vec<_> = (0..50)
                        .map(|_| (slice, factor * level * (0.5 + chance.next())))
                        .collect();
                    values
                })
                .collect()
        };
        values(&side(1.0), &side(ratio))
    }

    #[test]
    fn false_alarms_are_as_rare_as_stated_and_differences_are_seen() {
        let p = |ratio: f64| (0..400).filter_map(move |seed| wandering(seed, ratio)).map(|t| t.p);
        let alarms = p(1.0).filter(|p| *p < 0.01).count();
        // 4 are expected of 400; 12 or more have a chance of 0.1 %.
        assert!(alarms < 12, "{alarms} of 400");
        let seen = p(2.0).filter(|p| *p < 0.01).count();
        assert!(seen > 390, "{seen} of 400");
    }

    #[test]
    fn rates_with_bursts_need_more_than_one_burst() {
        let even = |hits: f64| [(hits, 100.0); SLICES];
        assert!(rates(&even(1.0), &even(1.0), Trials::Share).is_some_and(|t| t.p > 0.9));
        assert!(rates(&even(1.0), &even(5.0), Trials::Share).is_some_and(|t| t.p < 1e-6 && t.effect > 0.2));
        let mut burst = even(0.0);
        burst[3].0 = 80.0;
        assert!(rates(&even(0.0), &burst, Trials::Share).is_some_and(|t| t.p > 0.1));
        assert_eq!(rates(&even(0.0), &even(0.0), Trials::Share), None);
    }

    #[test]
    fn holm_multiplies_the_smallest_most() {
        let corrected = holm(&[0.01, 0.04, 0.03]);
        for (got, wanted) in corrected.iter().zip([0.03, 0.06, 0.06]) {
            assert!((got - wanted).abs() < 1e-12, "{corrected:?}");
        }
    }

    #[test]
    fn ties_count_half() {
        let same: Vec<_> = (0..100).map(|i| (i % SLICES, 1.0)).collect();
        let tested = values(&same, &same).unwrap_or(Tested { effect: 9.0, p: 9.0 });
        assert!(tested.effect.abs() < 1e-12 && tested.p > 0.999, "{tested:?}");
    }
}
