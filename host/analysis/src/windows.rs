//! Receive windows that one side advertised.

/// Smallest and largest window, and the time it was closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    min: u16,
    max: u16,
}

impl Default for Windows {
    fn default() -> Self {
        Self { min: u16::MAX, max: 0 }
    }
}

impl Windows {
    /// Extremes of an interval, raw. The engine enters no windows of SYNs, which are never scaled
    /// (RFC 7323 2.2), and none of RSTs.
    pub fn interval(&mut self, min: u16, max: u16) {
        if min <= max {
            self.min = self.min.min(min);
            self.max = self.max.max(max);
        }
    }

    /// Smallest and largest in bytes; `shift` is the scale in effect, 0 when it is not known.
    pub fn bytes(self, shift: u8) -> Option<(u64, u64)> {
        let scale = |w: u16| u64::from(w) << shift.min(14);
        (self.min <= self.max).then(|| (scale(self.min), scale(self.max)))
    }
}

/// How long a window stayed closed or small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closed {
    since: Option<(u64, bool)>,
    /// Something waits for it to open: it was asked for.
    asked: bool,
    /// ns with window 0, and of them those in which it was asked for.
    pub zero: u64,
    pub zero_asked: u64,
    /// ns with a window above 0 and below the MSS.
    pub small: u64,
    /// It was 0 and asked for when the flow ended.
    pub unopened: bool,
}

impl Closed {
    /// The window became 0 (`zero`) or small, or is it still.
    pub fn begin(&mut self, time: u64, zero: bool) {
        if self.since.is_none_or(|(_, was_zero)| was_zero != zero) {
            self.end(time);
            self.since = Some((time, zero));
        }
    }

    pub const fn is_closed(&self) -> bool {
        self.since.is_some()
    }

    /// A probe asks for it.
    pub const fn ask(&mut self) {
        self.asked = true;
    }

    /// The flow ended.
    pub fn close(&mut self, time: u64) {
        self.unopened = self.asked && matches!(self.since, Some((_, true)));
        self.end(time);
    }

    /// The window opened.
    pub fn end(&mut self, time: u64) {
        let asked = std::mem::take(&mut self.asked);
        if let Some((since, zero)) = self.since.take() {
            let ns = time.saturating_sub(since);
            *(if zero { &mut self.zero } else { &mut self.small }) += ns;
            self.zero_asked += if zero && asked { ns } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_window_is_none_and_scale_applies() {
        let mut w = Windows::default();
        assert_eq!(w.bytes(8), None);
        w.interval(u16::MAX, 0); // an interval without windows
        assert_eq!(w.bytes(8), None);
        w.interval(0, 1026);
        assert_eq!(w.bytes(8), Some((0, 1026 * 256)));
    }

    #[test]
    fn closed_time_is_split_by_kind() {
        let mut c = Closed::default();
        c.begin(10, true);
        c.begin(12, true);
        c.begin(15, false);
        c.end(17);
        c.end(99);
        assert_eq!((c.zero, c.zero_asked, c.small), (5, 0, 2));
    }

    #[test]
    fn a_closed_window_is_asked_for_by_probes() {
        let mut c = Closed::default();
        c.ask(); // of a window that is open
        c.begin(10, true);
        c.end(20);
        c.begin(30, true);
        c.ask();
        c.end(37);
        assert_eq!((c.zero, c.zero_asked), (17, 7));
        // And one that never opened.
        for asked in [false, true] {
            c.begin(40, true);
            if asked {
                c.ask();
            }
            c.close(45);
            assert_eq!(c.unopened, asked);
        }
    }
}
