//! `RETRANSMISSION_TIMES`: when more is sent again than the line allows.

use std::ops::AddAssign;

use weir_analysis::{Group, RETRANSMISSION_LINE, clock, finding as make, seconds, several};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::names::{count, percent};
use crate::timeline::{Bin, Timeline};

/// Width of a slice, ns.
const WIDTH: u64 = 1_000_000_000;
/// Standard deviations by which a slice is above it: one of a thousand by chance.
const SURE: f64 = 3.1;
/// Retransmissions that a slice needs.
const LEAST: u32 = 3;
/// Share of the time above which it is not a matter of times: `RETRANSMISSION_RATE` says it.
const MOST: f64 = 0.9;
/// Ranges that are named, the worst first.
const NAMED: usize = 5;

/// Data segments sent, and those sent again.
#[derive(Clone, Copy, Debug)]
struct Slice {
    sent: u32,
    again: u32,
}

impl AddAssign for Slice {
    fn add_assign(&mut self, other: Self) {
        self.sent = self.sent.saturating_add(other.sent);
        self.again = self.again.saturating_add(other.again);
    }
}

impl From<&Bin> for Slice {
    fn from(bin: &Bin) -> Self {
        Self {
            sent: bin.segments[0].saturating_add(bin.segments[1]),
            again: bin.again,
        }
    }
}

impl Slice {
    /// Blocks count those in sequence alone.
    const fn all(self) -> u32 {
        self.sent.saturating_add(self.again)
    }

    fn rate(self) -> f64 {
        f64::from(self.again) / f64::from(self.all().max(1))
    }

    /// Surely, not by chance.
    fn is_above(self) -> bool {
        let again = f64::from(self.again);
        self.again >= LEAST && again - SURE * again.sqrt() > RETRANSMISSION_LINE * f64::from(self.sent)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RetransmissionTimes;

/// Slices above the line without a pause.
struct Range {
    from: usize,
    slices: usize,
    sum: Slice,
}

impl Detector for RetransmissionTimes {
    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
        let bins = timeline.bins().coarser(WIDTH);
        let slices = || bins.iter().map(Slice::from);
        let (mut ranges, mut last): (Vec<Range>, _) = (Vec::new(), None);
        let mut active = 0;
        for (i, slice) in slices().enumerate() {
            active += usize::from(slice.sent > 0);
            if !slice.is_above() {
                continue;
            }
            match ranges.last_mut().filter(|_| last == Some(i - 1)) {
                Some(range) => {
                    range.slices += 1;
                    range.sum += slice;
                }
                None => ranges.push(Range {
                    from: i,
                    slices: 1,
                    sum: slice,
                }),
            }
            last = Some(i);
        }
        let above: usize = ranges.iter().map(|range| range.slices).sum();
        if above == 0 || above as f64 > MOST * active as f64 {
            return;
        }
        let width = bins.width();
        let time = |i: usize| bins.start() + i as u64 * width;
        let span = seconds(above as u64 * width);
        let group = Group::range(time(ranges[0].from), time(last.unwrap_or(0) + 1));
        let number = ranges.len();
        let again: u64 = ranges.iter().map(|range| u64::from(range.sum.again)).sum();
        let all: u64 = slices().map(|slice| u64::from(slice.again)).sum();
        ranges.sort_by_key(|range| std::cmp::Reverse(range.sum.again));
        let mut evidence = vec![format!(
            "{span:.0} s of {:.0} s with data, in {}; {} of {} retransmissions fall into them",
            seconds(active as u64 * width),
            several(number as u64, "range", "ranges"),
            count(again),
            count(all)
        )];
        for range in ranges.iter().take(NAMED) {
            evidence.push(format!(
                "{} s from {}: {} of {} data segments were sent again ({})",
                seconds(range.slices as u64 * width),
                clock(time(range.from)),
                count(u64::from(range.sum.again)),
                count(u64::from(range.sum.all())),
                percent(range.sum.rate())
            ));
        }
        evidence.push("it may also be that little was sent then, so that few repeats make a high rate".to_owned());
        evidence.push(
            "next: see what else happened at these times: load, jobs, changes; LOSS and PERIODIC_LOSS say where"
                .to_owned(),
        );
        let worst = ranges.iter().map(|range| range.sum.rate()).fold(0.0, f64::max);
        out.push(make(
            "RETRANSMISSION_TIMES",
            "INFO",
            0.95,
            format!(
                "More than {} of the data is sent again in {span:.0} s of the time",
                percent(RETRANSMISSION_LINE)
            ),
            evidence,
            &group,
            &[
                ("seconds", span),
                ("ranges", number as f64),
                ("worstRate", worst),
                ("line", RETRANSMISSION_LINE),
            ],
        ));
    }
}
