//! The system's clock against one that nobody sets: how records are stamped depends on it.

use std::time::{Duration, Instant, SystemTime};

/// Least difference that is a step: adjustments that slow a clock down or speed it up are far below it between two looks,
/// and a thread that is held up between reading both clocks is seldom so for longer.
const STEP: Duration = Duration::from_millis(100);

/// The clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ahead by so much.
    Forward(Duration),
    /// Back by so much.
    Back(Duration),
}

/// Sees steps of the clock.
#[derive(Debug)]
pub struct ClockWatch {
    last: (Instant, SystemTime),
    /// The latest time that the clock ever showed.
    latest: SystemTime,
}

impl ClockWatch {
    /// From now on.
    pub fn new(steady: Instant, clock: SystemTime) -> Self {
        Self {
            last: (steady, clock),
            latest: clock,
        }
    }

    /// The step since the last look, if there was one.
    pub fn look(&mut self, steady: Instant, clock: SystemTime) -> Option<Step> {
        let (steady_before, clock_before) = std::mem::replace(&mut self.last, (steady, clock));
        let expected = clock_before + steady.saturating_duration_since(steady_before);
        self.latest = self.latest.max(clock);
        match clock.duration_since(expected) {
            Ok(ahead) if ahead >= STEP => Some(Step::Forward(ahead)),
            Err(behind) if behind.duration() >= STEP => {
                // What it showed a moment before it was set.
                self.latest = self.latest.max(expected);
                Some(Step::Back(behind.duration()))
            }
            _ => None,
        }
    }

    /// How far the clock is behind what it showed before: until that is over, times of records stand still. Zero unless it
    /// was set back.
    pub fn behind(&self) -> Duration {
        let behind = self.latest.duration_since(self.last.1).unwrap_or_default();
        // Not what reading two clocks makes.
        if behind < STEP { Duration::ZERO } else { behind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_seen_until_it_has_caught_up() {
        let (begin, midnight) = (Instant::now(), SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30));
        let seconds = Duration::from_secs;
        let mut watch = ClockWatch::new(begin, midnight);
        // It is slowed down, and a look comes late.
        assert_eq!(
            watch.look(begin + seconds(10), midnight + Duration::from_millis(9_995)),
            None
        );
        assert_eq!(watch.behind(), Duration::ZERO);
        let step = watch.look(begin + seconds(20), midnight - seconds(40));
        assert_eq!(step, Some(Step::Back(Duration::from_millis(59_995))));
        assert_eq!(watch.look(begin + seconds(30), midnight - seconds(30)), None);
        assert_eq!(watch.behind(), Duration::from_millis(49_995));
        assert_eq!(watch.look(begin + seconds(90), midnight + seconds(30)), None);
        assert_eq!(watch.behind(), Duration::ZERO);
        let step = watch.look(begin + seconds(91), midnight + seconds(3631));
        assert_eq!(step, Some(Step::Forward(seconds(3600))));
        assert_eq!(watch.behind(), Duration::ZERO);
    }
}
