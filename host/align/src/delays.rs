//! Distribution of delays in bounded memory: 64 steps for each power of two, so a quantile is within 1 %.

use weir_messages::v1;

const STEPS_LOG2: u32 = 6;
const STEPS: usize = 1 << STEPS_LOG2;

/// Delays of one direction, ns.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    counts: Vec<u64>,
    samples: u64,
    least: i64,
    most: i64,
}

impl Delays {
    pub fn new() -> Self {
        Self {
            counts: vec![0; STEPS * 64],
            samples: 0,
            least: i64::MAX,
            most: i64::MIN,
        }
    }

    pub fn add(&mut self, ns: i64) {
        self.samples += 1;
        self.least = self.least.min(ns);
        self.most = self.most.max(ns);
        self.counts[step(ns.max(0) as u64)] += 1;
    }

    /// The longest; 0: none.
    pub fn most(&self) -> u64 {
        self.most.max(0).unsigned_abs()
    }

    fn quantile(&self, q: f64) -> f64 {
        let wanted = (q * self.samples as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (step, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= wanted {
                return middle(step).clamp(self.least as f64, self.most as f64);
            }
        }
        self.most as f64
    }

    pub fn message(&self) -> Option<v1::Delay> {
        (self.samples > 0).then(|| v1::Delay {
            min_seconds: self.least as f64 / 1e9,
            median_seconds: self.quantile(0.5) / 1e9,
            p95_seconds: self.quantile(0.95) / 1e9,
            max_seconds: self.most as f64 / 1e9,
            samples: self.samples,
        })
    }
}

/// Values below 64 have a step of their own.
fn step(ns: u64) -> usize {
    let power = (64 - ns.leading_zeros()).saturating_sub(STEPS_LOG2 + 1);
    (power as usize) * STEPS + (ns >> power) as usize
}

fn middle(step: usize) -> f64 {
    let power = (step / STEPS).saturating_sub(1);
    let low = (step - power * STEPS) as f64;
    let width = (power as f64).exp2();
    low * width + (width - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_cover_everything_in_order_within_a_percent() {
        let mut last = 0;
        for ns in (0..5000).chain((13..63).map(|p| 3 << (p - 2))).chain([i64::MAX as u64]) {
            let step = step(ns);
            assert!(step >= last && step < STEPS * 64, "{ns}");
            last = step;
            assert!(
                (middle(step) - ns as f64).abs() <= 0.01 * ns as f64,
                "{ns} {}",
                middle(step)
            );
        }
    }

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut delays = Delays::new();
        for k in 1..=1000 {
            delays.add(k * 1000);
        }
        let message = delays.message().expect("samples");
        assert!((message.median_seconds - 500e-6).abs() < 5e-6);
        assert!((message.p95_seconds - 950e-6).abs() < 10e-6);
        assert_eq!((message.min_seconds, message.max_seconds), (1e-6, 1e-3));
    }
}
