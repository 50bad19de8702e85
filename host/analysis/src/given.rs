//! What the user said of the path, and of the place in it.

use crate::Config;

/// What is not set was not said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    /// Bytes a second.
    pub link: Option<f64>,
    /// The round trip from host to host, ns.
    pub trip: Option<u64>,
    /// What measures stands in the line.
    pub inline: bool,
}

impl Given {
    pub fn new(config: &Config) -> Self {
        let trip = config.latency.map(|seconds| (2e9 * seconds).round() as u64);
        Self {
            link: config.bandwidth.map(|bits| bits / 8.0),
            trip: trip.filter(|trip| *trip > 0),
            inline: config.inline,
        }
    }

    /// The round trip on one side of the tap, where that on the other side alone was `seen`. One that was longer than the whole
    /// tells nothing.
    pub fn rest(&self, seen: Option<u64>) -> Option<u64> {
        self.trip?.checked_sub(seen?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_is_twice_the_latency() {
        let trip = |latency| {
            let config = Config {
                latency,
                ..Config::default()
            };
            Given::new(&config).trip
        };
        assert_eq!(
            [None, Some(0.04), Some(650e-6), Some(0.0)].map(trip),
            [None, Some(80_000_000), Some(1_300_000), None]
        );
    }

    #[test]
    fn what_one_side_took_is_not_on_the_other() {
        let given = Given {
            trip: Some(80),
            ..Given::default()
        };
        assert_eq!(
            [Some(1), Some(80), Some(81), None].map(|seen| given.rest(seen)),
            [Some(79), Some(0), None, None]
        );
        assert_eq!(Given::default().rest(Some(1)), None);
    }
}
