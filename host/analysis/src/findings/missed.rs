//! What the capture lacks.

use weir_messages::v1;

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::numbers::{connections, count, several};
use crate::surroundings::Surroundings;

/// Segments that were delivered but are not in the capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    group: Group,
    pub segments: u64,
}

impl Missed {
    /// A connection that is over.
    pub fn connection(&mut self, flow: &Flow) {
        let missed = flow.counts(0).missed + flow.counts(1).missed;
        if missed > 0 {
            self.group.add(flow);
            self.segments += missed;
        }
    }

    pub fn finding(&self, around: &Surroundings) -> Option<v1::Finding> {
        let Surroundings {
            dropped,
            missing,
            inline,
            ..
        } = *around;
        if self.segments == 0 && dropped == 0 && missing == 0 {
            return None;
        }
        let mut evidence = Vec::new();
        if self.segments > 0 {
            evidence.push(format!(
                "{} of {} {}",
                several(self.segments, "segment", "segments"),
                connections(self.group.count()),
                match self.segments {
                    1 => "was acknowledged by its receiver but is not in the capture",
                    _ => "were acknowledged by their receivers but are not in the capture",
                }
            ));
        }
        if dropped > 0 {
            let forwarded = if inline { ", which were not forwarded" } else { "" };
            evidence.push(format!(
                "the source says that it dropped {}{forwarded}",
                several(dropped, "frame", "frames")
            ));
        }
        if missing > 0 {
            evidence.push(format!(
                "{} records are missing: counters at the end of connections are right, classes of losses may not be",
                count(missing)
            ));
        }
        evidence.push(
            "it may also be segments that went another way: routes or links that share the load, of which one is not captured".to_owned(),
        );
        let (severity, title, next) = if inline && dropped > 0 {
            (
                "WARNING",
                "The inline appliance dropped frames: they are lost to the network, and not only to the capture",
                "next: give the appliance a CPU that nothing else uses, or take it out of the line; weir_inline_dropped_packets_total counts \
                 all that it did not forward",
            )
        } else {
            // Records do not tell whether what made them stood in the line.
            (
                "INFO",
                "The capture is not complete; what it lacks is not counted as loss of the network",
                "next: repeat the capture with a larger buffer, a snap length, or at a tap in place of a mirror port before trusting rates to \
                 the last digit",
            )
        };
        evidence.push(next.to_owned());
        Some(finding(
            "CAPTURE_LOSS",
            severity,
            1.0,
            title.to_owned(),
            evidence,
            &self.group,
            &[
                ("packets", self.segments.max(dropped) as f64),
                ("missedSegments", self.segments as f64),
                ("sourceDropped", dropped as f64),
                ("recordsMissing", missing as f64),
            ],
        ))
    }
}

#[cfg(test)]
mod tests {
    use weir_record::FlowId;

    use super::super::tests::START;
    use super::*;

    #[test]
    fn what_an_inline_appliance_dropped_is_lost_to_the_network() {
        let told = |inline, dropped| {
            let around = Surroundings {
                inline,
                dropped,
                missing: 1,
                ..Surroundings::default()
            };
            let found = Missed::default().finding(&around).unwrap_or_default();
            (found.severity, found.title, found.evidence[0].clone())
        };
        let (severity, title, evidence) = told(true, 3);
        assert!(
            severity == "WARNING" && title.contains("are lost to the network"),
            "{title}"
        );
        assert_eq!(
            evidence,
            "the source says that it dropped 3 frames, which were not forwarded"
        );
        assert_eq!(told(false, 1).2, "the source says that it dropped 1 frame");
        // Records that are missing are lost to the analysis alone.
        for (inline, dropped) in [(true, 0), (false, 0), (false, 1)] {
            let (severity, title, _) = told(inline, dropped);
            assert!(
                severity == "INFO" && title.ends_with("not counted as loss of the network"),
                "{title}"
            );
        }
    }

    #[test]
    fn one_segment_is_told_as_one() {
        let told = |segments| {
            let mut missed = Missed {
                segments,
                ..Missed::default()
            };
            missed.group.include(FlowId(1), START, START);
            let found = missed.finding(&Surroundings::default());
            found.map(|found| found.evidence[0].clone())
        };
        let one = "1 segment of 1 connection was acknowledged by its receiver but is not in the capture";
        assert_eq!(told(1).as_deref(), Some(one));
        let two = "2 segments of 1 connection were acknowledged by their receivers but are not in the capture";
        assert_eq!(told(2).as_deref(), Some(two));
    }
}
