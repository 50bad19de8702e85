//! Durations counted by fixed bounds, as scrapers add them up.

/// Upper bounds, seconds: from a hop in a data centre to a setup that gave up.
pub(crate) const BOUNDS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0, 30.0,
];

/// Durations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Histogram {
    /// By the first bound that holds them; the last: above all.
    counts: [u64; BOUNDS.len() + 1],
    /// Seconds.
    pub sum: f64,
}

impl Histogram {
    pub fn add(&mut self, seconds: f64) {
        self.counts[BOUNDS.partition_point(|&bound| bound < seconds)] += 1;
        self.sum += seconds;
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// (upper bound, durations in its bucket alone), the last without bound.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        BOUNDS.into_iter().chain([f64::INFINITY]).zip(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_in_its_own_bucket() {
        let mut histogram = Histogram::default();
        for seconds in [0.001, 0.0011, 100.0, 0.0] {
            histogram.add(seconds);
        }
        let filled: Vec<_> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.0001, 1), (0.001, 1), (0.0025, 1), (f64::INFINITY, 1)]);
        assert_eq!(histogram.count(), 4);
        assert!((histogram.sum - 100.0021).abs() < 1e-9);
    }
}
