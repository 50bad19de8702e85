//! What all charts share: the plane with its axes, and paths in SVG.

use std::fmt::Write;
use std::ops::AddAssign;

use maud::{Markup, html};
use weir_analysis::timestamp;
use weir_patterns::bins::Bins;

use crate::document::Drawing;
use crate::format::seconds;
use crate::scale::{Column, PER_DECADE, seconds_at};

/// Width of a chart, px.
pub const WIDTH: f64 = 1000.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 52.0;
/// Room for what the axes show.
const TOP: f64 = 20.0;
const BOTTOM: f64 = 26.0;
/// Of a label, px, and what is kept between two.
const LETTER: f64 = 6.2;
const APART: f64 = 10.0;
/// Smallest mark, px, and that of what is rare and matters.
pub const MARK: f64 = 2.0;
/// See `MARK`.
pub const LARGE_MARK: f64 = 5.0;

/// A plane over time (TAI ns).
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    pub start: u64,
    pub end: u64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Plane {
    /// Of this height, below `above` px.
    pub fn new((start, end): (u64, u64), above: f64, height: f64) -> Self {
        Self {
            start,
            end: end.max(start + 1),
            left: LEFT,
            right: WIDTH - RIGHT,
            top: above + TOP,
            bottom: above + TOP + height,
        }
    }

    /// Room that it needs with its labels below.
    pub fn whole_height(&self) -> f64 {
        self.bottom + BOTTOM
    }

    /// Place of a time.
    pub fn x(&self, time: u64) -> f64 {
        let share = time.saturating_sub(self.start) as f64 / (self.end - self.start) as f64;
        self.left + share.min(1.0) * (self.right - self.left)
    }

    /// Place of a share of the height.
    pub fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }

    /// Frame, ticks and clock times; midnight is told by the day that begins.
    pub fn time_axis(&self) -> Markup {
        // Round in UTC, as the labels are.
        self.axis(ahead, clock)
    }

    /// The same with seconds since 0.
    pub fn elapsed_axis(&self) -> Markup {
        self.axis(|_| 0, elapsed)
    }

    /// Ticks are round in a time that its own is `ahead` of, at each moment.
    fn axis(&self, ahead: impl Fn(u64) -> u64, label: impl Fn(u64, u64) -> String) -> Markup {
        // The last label of a step is about as long as any.
        let wide = |step: u64| label(self.end / step * step, step).chars().count() as f64 * LETTER + APART;
        let fit = |step: u64| (self.right - self.left) / wide(step);
        let step = time_step(self.end - self.start, fit);
        let (before, behind) = (ahead(self.start), ahead(self.end));
        let first = (self.start - before).div_ceil(step) * step;
        let round = (first..=self.end - behind).step_by(step as usize);
        let ticks = round.map(|tick| tick + ahead(tick + before));
        html! {
            rect.axis x=(n(self.left)) y=(n(self.top)) width=(n(self.right - self.left)) height=(n(self.bottom - self.top)) {}
            @for tick in ticks {
                line.axis x1=(n(self.x(tick))) x2=(n(self.x(tick))) y1=(n(self.bottom)) y2=(n(self.bottom + 4.0)) {}
                text.m x=(n(self.x(tick))) y=(n(self.bottom + 16.0)) { (label(tick, step)) }
            }
        }
    }

    /// Lines and labels at each decade; the axis goes from `low` to `high` decades above a microsecond.
    pub fn log_axis(&self, low: f64, high: f64) -> Markup {
        let decades = (low.ceil() as u32)..=(high.floor() as u32);
        html! {
            @for decade in decades {
                @let y = self.y((f64::from(decade) - low) / (high - low));
                line.axis x1=(n(self.left)) x2=(n(self.right)) y1=(n(y)) y2=(n(y)) {}
                text.e x=(n(self.left - 6.0)) y=(n(y + 4.0)) { (plain_seconds(seconds_at(f64::from(decade)))) }
            }
        }
    }

    /// Labels from 0 to `most` at the left or at the right, in steps of `least` or more.
    pub fn linear_axis(&self, most: f64, at_right: bool, least: f64) -> Markup {
        let step = linear_step(most).max(least);
        let ticks = (0..=(most / step) as u32).map(|i| f64::from(i) * step);
        html! {
            @for tick in ticks {
                @let y = self.y(tick / most);
                @if at_right {
                    text x=(n(self.right + 6.0)) y=(n(y + 4.0)) { (number(tick, step)) }
                } @else {
                    line.axis x1=(n(self.left)) x2=(n(self.right)) y1=(n(y)) y2=(n(y)) {}
                    text.e x=(n(self.left - 6.0)) y=(n(y + 4.0)) { (number(tick, step)) }
                }
            }
        }
    }

    /// What an axis shows, above its end: within the plane data would strike it through.
    pub fn name(&self, text: &str, at_right: bool) -> Markup {
        let x = if at_right { self.right - 6.0 } else { self.left + 6.0 };
        html! { text.name.e[at_right] x=(n(x)) y=(n(self.top - 6.0)) { (text) } }
    }

    /// A line with a step at each bin; `value` is a share of the height.
    pub fn steps<T: Copy + Default + AddAssign>(&self, bins: &Bins<T>, mut value: impl FnMut(&T) -> f64) -> String {
        let mut path = String::new();
        let mut last = f64::NAN;
        for (number, bin) in (0u64..).zip(bins.iter()) {
            let y = self.y(value(bin).clamp(0.0, 1.0));
            // A step that is not drawn changes nothing that can be seen.
            if (y - last).abs() >= 0.05 || last.is_nan() {
                let x = self.x(bins.start() + number * bins.width());
                let _ = match last.is_nan() {
                    true => write!(path, "M{x:.1} {y:.1}"),
                    false => write!(path, "H{x:.1}V{y:.1}"),
                };
                last = y;
            }
        }
        if !path.is_empty() {
            let _ = write!(path, "H{:.1}", self.x(bins.start() + bins.len() as u64 * bins.width()));
        }
        path
    }

    /// A line with equal steps over the whole time, shares of the height.
    pub fn stairs(&self, heights: impl ExactSizeIterator<Item = f64>) -> String {
        let wide = (self.right - self.left) / heights.len().max(1) as f64;
        let mut path = String::new();
        for (number, height) in heights.enumerate() {
            let (x, y) = (self.left + number as f64 * wide, self.y(height.clamp(0.0, 1.0)));
            let _ = match number {
                0 => write!(path, "M{x:.1} {y:.1}"),
                _ => write!(path, "V{y:.1}"),
            };
            let _ = write!(path, "H{:.1}", x + wide);
        }
        path
    }

    /// Bars from the bottom, one for each bin above `base`, both shares of the height.
    pub fn bars<T: Copy + Default + AddAssign>(
        &self,
        bins: &Bins<T>,
        mut range: impl FnMut(&T) -> (f64, f64),
    ) -> String {
        let mut path = String::new();
        for (number, bin) in (0u64..).zip(bins.iter()) {
            let (low, high) = range(bin);
            if high <= low {
                continue;
            }
            let begin = bins.start() + number * bins.width();
            let x = self.x(begin);
            let width = (self.x(begin + bins.width()) - x).max(1.0);
            let (y, bottom) = (self.y(high.min(1.0)), self.y(low.min(1.0)));
            let _ = write!(path, "M{x:.1} {y:.1}h{width:.1}V{bottom:.1}h-{width:.1}z");
        }
        path
    }

    /// Columns of bins for which `is` holds, over the whole height, neighbours as one.
    pub fn bands<T: Copy + Default + AddAssign>(&self, bins: &Bins<T>, mut is: impl FnMut(&T) -> bool) -> String {
        let mut path = String::new();
        let mut begun = None;
        let place = |number: u64| self.x(bins.start() + number * bins.width());
        let mut end = |from: u64, to: u64| {
            let (x, width) = (place(from), (place(to) - place(from)).max(0.5));
            let _ = write!(
                path,
                "M{x:.1} {:.1}h{width:.1}V{:.1}h-{width:.1}z",
                self.top, self.bottom
            );
        };
        for (number, bin) in (0u64..).zip(bins.iter()) {
            match (is(bin), begun) {
                (true, None) => begun = Some(number),
                (false, Some(from)) => {
                    end(from, number);
                    begun = None;
                }
                _ => {}
            }
        }
        if let Some(from) = begun {
            end(from, bins.len() as u64);
        }
        path
    }

    /// Marks of a scatter chart whose rows go from `low` to `high`: one path for each of four levels of count, the
    /// stroke as wide as a column, at least `mark` px in either direction.
    pub fn dots(&self, bins: &Bins<Column>, (low, high): (usize, usize), mark: f64) -> Markup {
        let mut levels = [const { String::new() }; LEVELS.len()];
        let row_height = (self.bottom - self.top) / (high - low) as f64;
        let least = row_height.max(mark);
        for (number, column) in (0u64..).zip(bins.iter()) {
            let x = self.x(bins.start() + number * bins.width() + bins.width() / 2);
            let mut row = low;
            while row < high {
                let level = level(column.0[row]);
                let begin = row;
                while row < high && self::level(column.0[row]) == level {
                    row += 1;
                }
                if let Some(level) = level {
                    let y = self.bottom - (begin - low) as f64 * row_height;
                    let length = ((row - begin) as f64 * row_height).max(least);
                    let _ = write!(levels[level], "M{x:.1} {y:.1}v-{length:.1}");
                }
            }
        }
        let width = (self.x(bins.start() + bins.width()) - self.x(bins.start())).max(mark);
        html! {
            @for (path, (_, opacity)) in levels.iter().zip(LEVELS) {
                @if !path.is_empty() {
                    path.dots d=(path) stroke-width=(n(width)) opacity=(opacity) {}
                }
            }
        }
    }
}

/// Marks at least so many are drawn this opaque.
const LEVELS: [(u32, f64); 4] = [(1, 0.6), (3, 0.75), (10, 0.88), (100, 1.0)];

fn level(count: u32) -> Option<usize> {
    LEVELS.iter().rposition(|(least, _)| count >= *least)
}

/// First and last row that anything stands in, widened to whole decades.
pub fn used_rows<'a>(all: impl Iterator<Item = &'a Bins<Column>>) -> Option<(usize, usize)> {
    let mut used: Option<(usize, usize)> = None;
    for column in all.flat_map(Bins::iter) {
        let first = column.0.iter().position(|&n| n > 0);
        let last = column.0.iter().rposition(|&n| n > 0);
        if let Some((first, last)) = first.zip(last) {
            used = Some(used.map_or((first, last), |(low, high)| (low.min(first), high.max(last))));
        }
    }
    used.map(|(low, high)| (low / PER_DECADE * PER_DECADE, (high / PER_DECADE + 1) * PER_DECADE))
}

/// A chart.
pub fn drawing(height: f64, title: impl Into<String>, body: Markup, legend: Vec<(String, bool, String)>) -> Drawing {
    Drawing {
        height,
        title: title.into(),
        body: body.into_string(),
        legend,
    }
}

/// A coordinate.
pub fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Seconds without digits that say nothing.
fn plain_seconds(s: f64) -> String {
    seconds(s).replace(".00 s", " s").replace(".0 ms", " ms")
}

/// A number on an axis with steps of `step`.
fn number(value: f64, step: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", short(v, step, 1e9)),
        v if v >= 1e6 => format!("{} M", short(v, step, 1e6)),
        v if v >= 1e4 => format!("{} k", short(v, step, 1e3)),
        v => short(v, step, 1.0),
    }
}

/// A time since 0, ns, on an axis with steps of `step`.
fn elapsed(tick: u64, step: u64) -> String {
    let (unit, name) = match tick {
        0 => return "0".into(),
        1..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {name}", short(tick as f64, step as f64, unit))
}

/// A value in a unit, with the digits that steps of this size need.
fn short(value: f64, step: f64, unit: f64) -> String {
    let digits = (unit / step).log10().ceil().max(0.0) as usize;
    let text = format!("{:.digits$}", value / unit);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Four to eight steps of 1, 2 or 5.
fn linear_step(most: f64) -> f64 {
    let rough = most / 5.0;
    let decade = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * decade)
        .find(|step| *step >= rough)
        .unwrap_or(most)
}

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// The smallest step of clock times, ns, that leaves at most ten ticks, and no more than `fit` says.
fn time_step(span: u64, fit: impl Fn(u64) -> f64) -> u64 {
    let below = (0..9).flat_map(|power| [1, 2, 5].map(|factor| factor * 10u64.pow(power)));
    let seconds = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200,
    ];
    let days = [1, 2, 7, 30, 365, 730, 1825, 3650, 7300, 18_250, 36_500, 73_000];
    below
        .chain(seconds.map(|s| s * SECOND))
        .chain(days.map(|d| d * DAY))
        .find(|step| (span / step) as f64 <= fit(*step).min(10.0))
        .unwrap_or(u64::MAX)
}

/// What TAI is ahead of UTC, ns.
pub fn ahead(time: u64) -> u64 {
    time.saturating_sub(timestamp(time).unix_nanos().max(0) as u64)
}

/// Time of day (UTC) with the digits that steps of this size need; at midnight the date.
fn clock(time: u64, step: u64) -> String {
    let text = timestamp(time).to_string();
    if text
        .chars()
        .skip(11)
        .filter(char::is_ascii_digit)
        .all(|digit| digit == '0')
    {
        return text.chars().take(10).collect();
    }
    let digits = match step {
        SECOND.. => 8,
        1_000_000.. => 12,
        1000.. => 15,
        _ => 18,
    };
    text.chars().skip(11).take(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_a_few_round_ticks() {
        let spans = [
            30,
            1_000,
            7_300_000,
            999_999_999,
            420 * SECOND,
            25 * 3600 * SECOND,
            400 * DAY,
            6000 * DAY,
        ];
        for span in spans {
            let ticks = span / time_step(span, |_| 10.0);
            assert!((1..=10).contains(&ticks), "{span}: {ticks}");
            assert!(span / time_step(span, |_| 4.5) <= 4, "{span}");
        }
        assert!((linear_step(200.0) - 50.0).abs() < 1e-9);
        assert!((linear_step(1.0) - 0.2).abs() < 1e-9);
    }

    /// Labels of an axis and where their middles are.
    fn labels(drawn: &str) -> Vec<(f64, &str)> {
        let texts = drawn.split("<text class=\"m\" x=\"").skip(1);
        let label = |text| {
            let (x, rest) = str::split_once(text, '"')?;
            Some((x.parse().ok()?, rest.split_once('>')?.1.split_once('<')?.0))
        };
        texts.filter_map(label).collect()
    }

    #[test]
    fn labels_of_time_stand_apart_and_tell_days() {
        let start = 1_433_124_000 * SECOND;
        for span in [
            30,
            30_000,
            5_000_000,
            400 * SECOND,
            36 * 3600 * SECOND,
            9 * DAY,
            700 * DAY,
        ] {
            for drawn in [
                Plane::new((start, start + span), 0.0, 100.0).time_axis().into_string(),
                Plane::new((0, span), 0.0, 100.0).elapsed_axis().into_string(),
            ] {
                let all = labels(&drawn);
                assert!(!all.is_empty(), "{span}");
                for pair in all.windows(2) {
                    let half = |text: &str| text.chars().count() as f64 * LETTER / 2.0;
                    assert!(
                        pair[0].0 + half(pair[0].1) < pair[1].0 - half(pair[1].1),
                        "{span}: {pair:?}"
                    );
                    assert_ne!(pair[0].1, pair[1].1, "{span}");
                }
            }
        }
    }

    #[test]
    fn midnight_is_told_by_its_date() {
        let start = 1_433_160_000 * SECOND;
        let drawn = Plane::new((start, start + DAY), 0.0, 100.0).time_axis().into_string();
        let all: Vec<_> = labels(&drawn).into_iter().map(|(_, text)| text).collect();
        assert!(all.contains(&"2015-06-02") && all.contains(&"04:00:00"), "{all:?}");
    }

    #[test]
    fn labels_of_small_steps_differ() {
        let axis = Plane::new((0, 1), 0.0, 100.0)
            .linear_axis(0.0011, false, 0.0)
            .into_string();
        let texts = |axis: &str| -> Vec<String> {
            let labels = axis.split("</text>");
            labels
                .filter_map(|text| Some(text.rsplit_once('>')?.1.to_owned()))
                .collect()
        };
        assert_eq!(texts(&axis)[..3], ["0", "0.0005", "0.001"]);
        // Of what is counted there are no halves.
        let counted = Plane::new((0, 1), 0.0, 100.0)
            .linear_axis(1.05, true, 1.0)
            .into_string();
        assert_eq!(texts(&counted)[..2], ["0", "1"]);
        assert_eq!(
            [
                number(12_500.0, 500.0),
                number(2e6, 5e5),
                number(1.5e10, 5e9),
                number(20.0, 10.0)
            ],
            ["12.5 k", "2 M", "15 G", "20"]
        );
        assert_eq!(
            [elapsed(1_500_000, 500_000), elapsed(100_002_000_000, 1_000_000)],
            ["1.5 ms", "100.002 s"]
        );
    }

    #[test]
    fn an_outlier_is_drawn() {
        let mut bins: Bins<Column> = Bins::bounded(1000, 64);
        for i in 0..100_000 {
            bins.at(i * 1000).0[10] += 1;
        }
        bins.at(50_000_000).0[100] += 1;
        let plane = Plane::new((0, 100_000_000), 0.0, 144.0);
        let drawn = plane.dots(&bins, (0, 144), MARK).into_string();
        assert_eq!(drawn.matches("<path").count(), 2, "{drawn}");
        assert_eq!(drawn.matches('M').count(), 1 + bins.len(), "{drawn}");
    }
}
