//! What patterns are looked for in: all of the input, or the newest part of a stream without end.

use weir_analysis::Sliding;

use crate::detector::Detectors;
use crate::failing_setups::FailingSetups;
use crate::losses::Losses;
use crate::timeline::Timeline;

/// A timeline and detectors that began at the same time.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub timeline: Timeline,
    pub detectors: Detectors,
}

impl View {
    /// Nothing yet; the timeline leaves out what happened before `start` (TAI ns), and the detectors tell of what is
    /// under way.
    pub fn live(start: u64) -> Self {
        Self {
            timeline: Timeline::since(start),
            detectors: Detectors {
                failing_setups: FailingSetups::live(),
                losses: Losses::live(),
                ..Detectors::default()
            },
        }
    }

    /// Nothing yet; with a time line in slices of `width` ns.
    pub fn resolved(width: u64) -> Self {
        Self {
            timeline: Timeline::resolved(width),
            detectors: Detectors::default(),
        }
    }
}

/// The view of everything, or, live, of the window.
pub(crate) type Views = Sliding<View>;
