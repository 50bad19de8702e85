//! Times in which an application stood still or packets were lost, for those who must not take what then waits for a lack
//! of something else.

use std::ops::Range;

use crate::names::Address;
use crate::sleep::ApplicationSleep;
use crate::timeline::{Bin, Timeline};

/// Losses are counted in slices of so long, and wait for a timer for so long, ns.
const SECOND: u64 = 1_000_000_000;
/// A slice has many losses from this number and this multiple of the share that is lost in all on.
const LEAST: u64 = 2;
const MANY: f64 = 1.5;

/// Stops of a host or of one that it asks. Each counts twice as long as it is: what waited is caught up with after it.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    /// TAI ns, in order, none touches another.
    times: Vec<Range<u64>>,
}

impl Stops {
    pub fn of(sleep: &ApplicationSleep, host: Address) -> Self {
        let longer = |stop: Range<u64>| stop.start..stop.end + (stop.end - stop.start);
        Self::from(sleep.stops(host).into_iter().map(longer).collect())
    }

    fn from(mut all: Vec<Range<u64>>) -> Self {
        all.sort_unstable_by_key(|stop| stop.start);
        let mut times: Vec<Range<u64>> = Vec::new();
        for stop in all {
            match times.last_mut() {
                Some(last) if last.end >= stop.start => last.end = last.end.max(stop.end),
                _ => times.push(stop),
            }
        }
        Self { times }
    }

    /// And times in which more is lost than usual, whoever loses it, until a timer has made up for it.
    pub fn and_losses(self, timeline: &Timeline) -> Self {
        let bins = timeline.bins().coarser(SECOND);
        // What came again in vain was waited for as well.
        let lost = |bin: &Bin| {
            let setups = bin.syn_repeats.iter().sum::<u32>();
            bin.lost(0) + bin.lost(1) + u64::from(bin.doubtful + setups)
        };
        let sent = |bin: &Bin| (u64::from(bin.segments.iter().sum::<u32>() + bin.opened) + lost(bin)) as f64;
        let all = bins
            .iter()
            .fold((0, 0.0), |all, bin| (all.0 + lost(bin), all.1 + sent(bin)));
        let share = all.0 as f64 / f64::max(all.1, 1.0);
        let has_many = |bin: &Bin| lost(bin) >= LEAST && lost(bin) as f64 >= MANY * share * sent(bin);
        let slices = bins.iter().enumerate().filter(|(_, bin)| has_many(bin));
        let times = slices.map(|(number, _)| {
            let start = bins.start() + number as u64 * bins.width();
            start..start + bins.width() + SECOND
        });
        Self::from(self.times.into_iter().chain(times).collect())
    }

    /// Whether one reaches into this time (TAI ns).
    pub fn touch(&self, time: &Range<u64>) -> bool {
        let next = self.times.partition_point(|stop| stop.end <= time.start);
        self.times.get(next).is_some_and(|stop| stop.start < time.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_touched_by_what_reaches_into_it() {
        let stops = Stops {
            times: vec![10..20, 30..40],
        };
        let touched = [
            (0..10, false),
            (0..11, true),
            (20..30, false),
            (19..20, true),
            (40..50, false),
            (0..50, true),
        ];
        for (time, is_touched) in touched {
            assert_eq!(stops.touch(&time), is_touched, "{time:?}");
        }
    }
}
