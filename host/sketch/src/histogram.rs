//! Histograms per service in buckets of a logarithm, and the response times that go into them.

use std::collections::{BTreeMap, HashMap};

use weir_engine::Class;
use weir_record::Metric;

use crate::{Config, Word};

/// Services with a table entry; the number of the one that holds all others.
pub const NAMED: usize = 7;
/// Times of this and more are left out (the flow engine's time limit).
pub const LIMIT_NS: u64 = 1 << 38;
/// Below this there is one bucket.
const FINEST_NS: u64 = 1 << 10;

/// Lower bounds of all buckets in ns: 0, then four to each power of two.
pub fn bounds() -> impl Iterator<Item = u64> {
    let steps = std::iter::successors(Some(FINEST_NS), |power| Some(power * 2))
        .flat_map(|power| (4..8).map(move |quarters| power / 4 * quarters))
        .take_while(|&bound| bound < LIMIT_NS);
    std::iter::once(0).chain(steps)
}

/// The bucket of a time below [`LIMIT_NS`].
pub fn bucket(ns: u64) -> usize {
    bounds().take_while(|&bound| bound <= ns).count() - 1
}

/// The service of a server port.
pub fn service(port: u16, config: &Config) -> usize {
    let named = config.services.iter().position(|&named| named == port && named != 0);
    named.unwrap_or(NAMED)
}

/// Counts by metric, service and bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histograms(pub BTreeMap<(Metric, usize), BTreeMap<usize, u32>>);

impl Histograms {
    /// Count what a packet measured.
    pub fn add(&mut self, word: &Word, response: Option<u64>, config: &Config) {
        if !word.tracked {
            return;
        }
        let side = if word.rtt_of_server {
            Metric::ClientRoundTrip
        } else {
            Metric::ServerRoundTrip
        };
        for (metric, ns) in [(side, word.rtt), (Metric::Response, response)] {
            if let Some(ns) = ns {
                let histogram = self.0.entry((metric, service(word.server_port, config))).or_default();
                *histogram.entry(bucket(ns)).or_default() += 1;
            }
        }
    }

    /// Samples of a metric.
    pub fn samples(&self, metric: Metric) -> u32 {
        let of_metric = self.0.iter().filter(|((of, _), _)| *of == metric);
        of_metric.flat_map(|(_, counts)| counts.values()).sum()
    }
}

/// Requests that wait for their answer, by flow.
#[derive(Clone, Debug, Default)]
pub struct Requests(HashMap<u32, u64>);

impl Requests {
    /// The response time that ends with this packet.
    pub fn response(&mut self, word: &Word) -> Option<u64> {
        if !word.tracked || word.class != Some(Class::Tcp) {
            return None;
        }
        if word.fresh {
            self.0.remove(&word.index);
        }
        if !word.new_data {
            return None;
        }
        if !word.from_server {
            self.0.insert(word.index, word.time);
            return None;
        }
        let asked = self.0.remove(&word.index)?;
        Some(word.time - asked).filter(|&ns| ns < LIMIT_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_quarters_of_powers_of_two() {
        assert_eq!(bounds().count(), 113);
        for (ns, expected) in [
            (0, 0),
            (1023, 0),
            (1024, 1),
            (1279, 1),
            (1280, 2),
            (2047, 4),
            (2048, 5),
            (LIMIT_NS - 1, 112),
        ] {
            assert_eq!(bucket(ns), expected, "{ns} ns");
        }
    }

    fn segment(time: u64, from_server: bool) -> Word {
        Word {
            kind: Kind::Packet,
            time,
            tracked: true,
            class: Some(Class::Tcp),
            new_data: true,
            from_server,
            index: 3,
            ..Word::default()
        }
    }

    #[test]
    fn a_response_is_from_the_last_request_to_the_first_answer() {
        let mut requests = Requests::default();
        assert_eq!(requests.response(&segment(10, true)), None, "nobody asked");
        assert_eq!(requests.response(&segment(100, false)), None);
        assert_eq!(requests.response(&segment(150, false)), None);
        assert_eq!(requests.response(&segment(400, true)), Some(250));
        assert_eq!(requests.response(&segment(500, true)), None, "the rest of the answer");
        requests.response(&segment(600, false));
        let fresh = Word {
            fresh: true,
            ..segment(700, true)
        };
        assert_eq!(requests.response(&fresh), None, "another flow in the same context");
        requests.response(&segment(800, false));
        let late = segment(800 + LIMIT_NS, true);
        assert_eq!(requests.response(&late), None, "over the limit");
    }

    proptest! {
        #[test]
        fn a_bucket_is_a_quarter_wide_at_most(ns in 0..LIMIT_NS) {
            let bounds: Vec<u64> = bounds().chain([LIMIT_NS]).collect();
            let found = bucket(ns);
            prop_assert!(bounds[found] <= ns && ns < bounds[found + 1]);
            prop_assert!(found == 0 || (bounds[found + 1] - bounds[found]) * 4 <= bounds[found]);
        }
    }
}
