//! The random source of every decision: SplitMix64.
//!
//! Written out (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 17) rather
//! than taken from a library, so that a seed means the same decisions in every version of the lab.

/// A stream of random numbers that depends on nothing but its seed.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A stream for one purpose: streams of different `purpose` are independent of each other.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut rng = Rng { state: seed };
        let mixed_seed = rng.next_u64();
        Rng {
            state: mixed_seed ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93),
        }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `0.0 .. 1.0`, 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `low ..= high` (the bias of the modulo-free product is below 2^-53 for the sizes used here).
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low) as f64 + 1.0;
        low + ((self.unit() * span) as u64).min(high.saturating_sub(low))
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn first_numbers_of_splitmix64() {
        // Reference values of the published algorithm for state 1234567.
        let mut rng = Rng { state: 1_234_567 };
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn between_reaches_both_ends_and_no_further() {
        let mut rng = Rng::new(1, 2);
        let mut seen = [false; 4];
        for _ in 0..1000 {
            let value = rng.between(5, 8);
            assert!((5..=8).contains(&value));
            seen[(value - 5) as usize] = true;
        }
        assert_eq!(seen, [true; 4]);
        assert_eq!(rng.between(9, 9), 9);
    }
}
