//! Microbursts: runs of 100 µs bins with at least a threshold's bytes.

use crate::{Config, INTERVAL_NS, Word};

/// Ports of the card.
pub const PORTS: usize = 2;
/// Length of a bin.
pub const BIN_NS: u64 = 100_000;
const BINS: usize = (INTERVAL_NS / BIN_NS) as usize;

/// The bursts of a port in an interval. A burst that goes on over the end of the interval is counted in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Bytes on the wire.
    pub bytes: u64,
    /// Frames.
    pub frames: u32,
    /// Bytes of the fullest bin.
    pub peak: u32,
    /// Its number, the first of equals.
    pub peak_bin: u16,
    /// Runs.
    pub count: u32,
    /// Bins of the longest run.
    pub longest: u32,
    /// Bins of all runs: their time in units of 100 µs.
    pub above: u32,
    /// The first bin of the interval is part of a burst.
    pub from_start: bool,
    /// The last bin is.
    pub to_end: bool,
}

/// Bytes of all bins of an interval.
#[derive(Clone, Debug)]
pub struct Bins {
    bytes: [Vec<u64>; PORTS],
    frames: [u32; PORTS],
}

impl Default for Bins {
    fn default() -> Self {
        Self {
            bytes: std::array::from_fn(|_| vec![0; BINS]),
            frames: [0; PORTS],
        }
    }
}

impl Bins {
    /// Count a frame.
    pub fn add(&mut self, word: &Word) {
        let port = usize::from(word.port) % PORTS;
        self.bytes[port][(word.time % INTERVAL_NS / BIN_NS) as usize] += u64::from(word.wire);
        self.frames[port] += 1;
    }

    /// The interval is over.
    pub fn bursts(&self, config: &Config) -> [Bursts; PORTS] {
        std::array::from_fn(|port| of_bins(&self.bytes[port], self.frames[port], config.thresholds[port]))
    }
}

fn of_bins(bytes: &[u64], frames: u32, threshold: u32) -> Bursts {
    let above: Vec<bool> = bytes
        .iter()
        .map(|&bytes| threshold > 0 && bytes >= u64::from(threshold))
        .collect();
    let runs: Vec<usize> = above
        .split(|&above| !above)
        .map(<[bool]>::len)
        .filter(|&n| n > 0)
        .collect();
    let peak = bytes.iter().copied().max().unwrap_or(0);
    Bursts {
        bytes: bytes.iter().sum(),
        frames,
        peak: u32::try_from(peak).unwrap_or(u32::MAX),
        peak_bin: bytes.iter().position(|&bytes| bytes == peak).unwrap_or(0) as u16,
        count: runs.len() as u32,
        longest: runs.iter().copied().max().unwrap_or(0) as u32,
        above: runs.iter().sum::<usize>() as u32,
        from_start: above.first().copied().unwrap_or(false),
        to_end: above.last().copied().unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bins(given: &[(usize, u64)]) -> Vec<u64> {
        let mut bytes = vec![0; BINS];
        for (bin, count) in given {
            bytes[*bin] += count;
        }
        bytes
    }

    #[test]
    fn runs_are_counted_and_measured() {
        let bytes = bins(&[(0, 10), (1, 12), (2, 9), (5, 40), (6, 40), (7, 40), (998, 9), (999, 10)]);
        let bursts = of_bins(&bytes, 8, 10);
        assert_eq!((bursts.count, bursts.longest, bursts.above), (3, 3, 6));
        assert_eq!((bursts.peak, bursts.peak_bin, bursts.bytes), (40, 5, 170));
        assert!(bursts.from_start && bursts.to_end);
    }

    #[test]
    fn no_threshold_no_bursts() {
        let bursts = of_bins(&bins(&[(3, 5)]), 1, 0);
        assert_eq!((bursts.count, bursts.above, bursts.peak, bursts.peak_bin), (0, 0, 5, 3));
    }

    proptest! {
        #[test]
        fn runs_cover_what_is_above(given in prop::collection::vec((0..BINS, 1..3000u64), 0..400), limit in 1..4000u32) {
            let bytes = bins(&given);
            let bursts = of_bins(&bytes, given.len() as u32, limit);
            let above = bytes.iter().filter(|&&b| b >= u64::from(limit)).count() as u32;
            prop_assert_eq!(bursts.above, above);
            prop_assert!(bursts.longest <= above && bursts.count <= above);
            prop_assert!(above <= bursts.longest * bursts.count);
            prop_assert_eq!(bursts.count == 0, u64::from(bursts.peak) < u64::from(limit));
        }
    }
}
