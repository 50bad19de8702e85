//! A range of time, and the pixel columns that divide it. Times are ns since the start of the capture.

use weir_record::time::utc_from_tai;

/// Latest moment of a range, s.
pub const LONGEST: f64 = 1e9;

/// From a moment (included) to another (not included).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// ns.
    pub from: u64,
    /// ns.
    pub to: u64,
}

impl Span {
    /// None if it is empty.
    pub fn new(from: u64, to: u64) -> Option<Self> {
        (from < to).then_some(Self { from, to })
    }

    /// Whether a moment lies in it.
    pub const fn holds(&self, time: u64) -> bool {
        self.from <= time && time < self.to
    }

    /// The part of a sorted list whose times lie in it.
    pub fn part<T>(&self, sorted: &[T], time: impl Fn(&T) -> u64) -> std::ops::Range<usize> {
        let begin = sorted.partition_point(|item| time(item) < self.from);
        let end = sorted.partition_point(|item| time(item) < self.to);
        begin..end
    }

    /// Divided into `width` columns.
    pub const fn columns(self, width: usize) -> Columns {
        Columns { span: self, width }
    }
}

/// Pixel columns of a range.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The range.
    pub span: Span,
    /// How many.
    pub width: usize,
}

impl Columns {
    /// Column of a moment in the range.
    pub fn of(&self, time: u64) -> usize {
        let length = u128::from(self.span.to - self.span.from);
        (u128::from(time - self.span.from) * self.width as u128 / length) as usize
    }

    /// First moment that is in a column or behind it: `of(time) >= column` from it on.
    pub fn edge(&self, column: usize) -> u64 {
        let length = u128::from(self.span.to - self.span.from);
        self.span.from + (column as u128 * length).div_ceil(self.width as u128) as u64
    }
}

/// UTC ns since 1970 of a TAI time.
pub fn utc(tai: u64) -> i64 {
    i64::try_from(utc_from_tai(tai)).unwrap_or(i64::MAX)
}

/// From a moment to another, ns; 0 where that is earlier.
pub fn since(start: i64, time: i64) -> u64 {
    u64::try_from(time.saturating_sub(start)).unwrap_or(0)
}

/// ns as seconds.
pub fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_in_one_column() {
        for (from, to, width) in [
            (0, 10, 3),
            (5, 6, 4),
            (7, 1007, 13),
            (0, 3, 10),
            (1 << 60, (1 << 60) + 999, 7),
        ] {
            let columns = Span { from, to }.columns(width);
            assert_eq!(columns.edge(0), from);
            assert_eq!(columns.edge(width), to);
            for time in from..to {
                let column = columns.of(time);
                assert!(column < width);
                assert!(
                    columns.edge(column) <= time && time < columns.edge(column + 1),
                    "{time}"
                );
            }
        }
    }
}
