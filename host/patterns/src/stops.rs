//! Times in which an application stood still, for those who must not take what then waits for a lack of something else.

use std::ops::Range;

use crate::names::Address;
use crate::sleep::ApplicationSleep;

/// Stops of a host or of one that it asks. Each counts twice as long as it is: what waited is caught up with after it.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    /// TAI ns, in order, none touches another.
    times: Vec<Range<u64>>,
}

impl Stops {
    pub fn of(sleep: &ApplicationSleep, host: Address) -> Self {
        let mut all = sleep.stops(host);
        all.sort_unstable_by_key(|stop| stop.start);
        let mut times: Vec<Range<u64>> = Vec::new();
        for stop in all {
            let end = stop.end + (stop.end - stop.start);
            match times.last_mut() {
                Some(last) if last.end >= stop.start => last.end = last.end.max(end),
                _ => times.push(stop.start..end),
            }
        }
        Self { times }
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
