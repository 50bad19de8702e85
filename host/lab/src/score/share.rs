//! Shares with their limits.

use std::fmt;

/// Part of a whole, and its limit.
pub(crate) struct Share {
    name: &'static str,
    part: u64,
    pub(crate) whole: u64,
    limit: f64,
    /// The limit is the least, not the most.
    at_least: bool,
}

impl Share {
    pub(crate) const fn at_least(name: &'static str, part: u64, whole: u64, limit: f64) -> Self {
        Self {
            name,
            part,
            whole,
            limit,
            at_least: true,
        }
    }

    pub(crate) const fn at_most(name: &'static str, part: u64, whole: u64, limit: f64) -> Self {
        Self {
            at_least: false,
            ..Self::at_least(name, part, whole, limit)
        }
    }

    /// What is wrong, if the limit is not kept.
    pub(crate) fn failure(&self) -> Option<String> {
        let side = if self.at_least { "at least" } else { "at most" };
        let limit = self.limit * 100.0;
        let text = || {
            format!(
                "{}: {} of {}, {side} {limit:.2} % wanted",
                self.name, self.part, self.whole
            )
        };
        (!self.is_kept()).then(text)
    }

    fn value(&self) -> f64 {
        self.part as f64 / self.whole.max(1) as f64
    }

    /// One case may differ where a limit leaves room for any: runs are small.
    fn is_kept(&self) -> bool {
        let (differ, room) = if self.at_least {
            (self.whole - self.part, 1.0 - self.limit)
        } else {
            (self.part, self.limit)
        };
        differ as f64 <= room * self.whole as f64 || differ == 1 && room > 0.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.at_least { "≥" } else { "≤" };
        let (value, limit) = (self.value() * 100.0, self.limit * 100.0);
        write!(
            f,
            "  {:36} {value:7.2} %  ({} of {}; {sign} {limit:.0} %)",
            self.name, self.part, self.whole
        )
    }
}
