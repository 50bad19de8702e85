//! Times on a logarithmic scale: from a microsecond to a thousand seconds.

use std::ops::AddAssign;

/// Lowest time told apart, ns.
const LOWEST: f64 = 1e3;
const DECADES: usize = 9;
/// Rows of a chart per decade: 15 % each, about two pixels.
pub const PER_DECADE: usize = 16;
/// Rows of a chart.
pub const ROWS: usize = DECADES * PER_DECADE;
/// Classes of a histogram per decade: 1.8 % each.
const FINE: usize = 128;
/// Decades of a histogram: connections last for days, which charts show as their longest time.
const FINE_DECADES: usize = 12;

fn decades(ns: u64, most: usize) -> f64 {
    (ns.max(1) as f64 / LOWEST).log10().clamp(0.0, most as f64)
}

/// Decades above the lowest time, from 0 to `DECADES`.
pub fn height(ns: u64) -> f64 {
    decades(ns, DECADES)
}

/// Row of a time.
pub fn row(ns: u64) -> usize {
    ((height(ns) * PER_DECADE as f64) as usize).min(ROWS - 1)
}

/// Seconds at `decades` above the lowest time.
pub fn seconds_at(decades: f64) -> f64 {
    LOWEST / 1e9 * 10f64.powf(decades)
}

/// How many marks stand in each row of one column.
#[derive(Clone, Copy, Debug)]
pub struct Column(pub [u32; ROWS]);

impl Default for Column {
    fn default() -> Self {
        Self([0; ROWS])
    }
}

impl AddAssign for Column {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// Counts of times in classes of 1.8 %: percentiles are right to 0.9 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    classes: Box<[u32]>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            classes: vec![0; FINE_DECADES * FINE + 1].into(),
            count: 0,
            sum: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Another one.
    pub fn add(&mut self, ns: u64) {
        self.classes[(decades(ns, FINE_DECADES) * FINE as f64) as usize] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(ns);
        self.max = self.max.max(ns);
    }

    /// Those of another, too.
    pub fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// How many.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Of all of them, ns.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Arithmetic mean, s.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / 1e9 / self.count.max(1) as f64
    }

    /// Largest, s.
    pub const fn max(&self) -> f64 {
        self.max as f64 / 1e9
    }

    /// The time that a share of them does not exceed, s; 0 when there are none.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        for (class, &n) in self.classes.iter().enumerate() {
            below += u64::from(n);
            if below >= rank {
                // The last class has no upper end.
                if class == self.classes.len() - 1 {
                    return self.max();
                }
                let middle = seconds_at((class as f64 + 0.5) / FINE as f64);
                return middle.min(self.max());
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_one_per_cent() {
        let mut all = Histogram::default();
        assert!(all.quantile(0.5).abs() < f64::EPSILON);
        for ms in 1..=1000 {
            all.add(ms * 1_000_000);
        }
        for share in [0.01, 0.5, 0.9, 0.99, 1.0] {
            assert!((all.quantile(share) / share - 1.0).abs() < 0.01, "{share}");
        }
        assert!((all.mean() - 0.5005).abs() < 1e-9);
        all.add(u64::MAX);
        all.add(0);
        assert_eq!(all.count(), 1002);
        let mut long = Histogram::default();
        for hours in [1, 2, 2000] {
            long.add(hours * 3_600_000_000_000);
        }
        assert!((long.quantile(0.5) / 7200.0 - 1.0).abs() < 0.01);
        assert!((long.quantile(0.99) - 7.2e6).abs() < 1e-3);
    }

    #[test]
    fn rows_cover_all_times() {
        assert_eq!(row(0), 0);
        assert_eq!(row(u64::MAX), ROWS - 1);
        assert!((seconds_at(height(3_000_000_000)) - 3.0).abs() < 1e-9);
    }
}
