//! What patterns are looked for in: all of the input, or the newest part of a stream without end.

use weir_messages::v1::Finding;

use crate::detector::{Detector, Detectors};
use crate::timeline::Timeline;

/// A timeline and detectors that began at the same time.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub timeline: Timeline,
    pub detectors: Detectors,
}

impl View {
    /// Nothing yet; the timeline leaves out what happened before `start` (TAI ns).
    fn since(start: u64) -> Self {
        Self {
            timeline: Timeline::since(start),
            detectors: Detectors::default(),
        }
    }
}

/// One view of everything; or, live, two that take turns: when the younger has seen half of the window, the older goes
/// and a new one begins. So a detector forgets by being replaced, and what is told rests on half to all of the window.
#[derive(Debug, Default)]
pub(crate) struct Views {
    older: View,
    younger: Option<View>,
    /// Half of the window, ns; 0: no window.
    half: u64,
    /// Where the younger view began, or the only one, TAI ns.
    begun: Option<u64>,
}

impl Views {
    /// Look at the last `window` ns only, as [`Self::time`] moves on.
    pub fn sliding(window: u64) -> Self {
        Self {
            half: (window / 2).max(1),
            ..Self::default()
        }
    }

    /// Tell all views.
    pub fn each(&mut self, mut tell: impl FnMut(&mut View)) {
        tell(&mut self.older);
        if let Some(younger) = &mut self.younger {
            tell(younger);
        }
    }

    /// It is `now` (TAI ns).
    pub fn time(&mut self, now: u64) {
        if self.half == 0 {
            return;
        }
        let begun = *self.begun.get_or_insert(now);
        if now.abs_diff(begun) < self.half {
            return;
        }
        // A clock that was set back is a new beginning, too.
        let late = now < begun || now - begun >= 2 * self.half;
        let younger = self.younger.replace(View::since(now));
        if late {
            // All that was seen is older than the window.
            self.older = View::since(now);
            self.younger = None;
        } else if let Some(younger) = younger {
            self.older = younger;
        }
        self.begun = Some(now);
    }

    /// What the older view found.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        self.older.detectors.findings(&self.older.timeline, &mut found);
        found
    }

    /// Of the older view.
    pub const fn timeline(&self) -> &Timeline {
        &self.older.timeline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First and last second that the older view has.
    fn seen(views: &Views) -> (u64, u64) {
        let (start, end) = views.timeline().span();
        (start / 1_000_000_000, end / 1_000_000_000)
    }

    fn second(views: &mut Views, s: u64) {
        let time = s * 1_000_000_000;
        views.time(time);
        views.each(|view| view.timeline.tick(time));
    }

    #[test]
    fn what_is_told_rests_on_half_to_all_of_the_window() {
        let mut views = Views::sliding(100_000_000_000);
        for s in 1000..1050 {
            second(&mut views, s);
        }
        assert_eq!(seen(&views), (1000, 1049));
        for s in 1050..2000 {
            second(&mut views, s);
            let (start, end) = seen(&views);
            assert_eq!(end, s);
            assert!(s < 1100 || (49..100).contains(&(end - start)), "{start} to {end}");
        }
        // After a long silence, or when the clock was set back, nothing of the past is left.
        for s in [9000, 500] {
            second(&mut views, s);
            assert_eq!(seen(&views), (s, s));
        }
    }

    #[test]
    fn without_a_window_all_is_kept() {
        let mut views = Views::default();
        for s in [1000, 5000, 9000] {
            second(&mut views, s);
        }
        assert_eq!(seen(&views), (1000, 9000));
    }
}
