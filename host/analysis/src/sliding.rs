//! The newest part of a stream without end.

/// One value of everything; or, with a window, two that take turns: when the younger has seen half of the window, the
/// older goes and a new one begins. So sums forget by being replaced, and the older has seen half to all of the window.
#[derive(Debug, Default)]
pub struct Sliding<T> {
    older: T,
    younger: Option<T>,
    /// Half of the window, ns; 0: no window.
    half: u64,
    /// Where the younger began, or the only one, TAI ns.
    begun: Option<u64>,
}

impl<T> Sliding<T> {
    /// `first` sees everything.
    pub const fn all(first: T) -> Self {
        Self {
            older: first,
            younger: None,
            half: 0,
            begun: None,
        }
    }

    /// Begin with `first`, and keep the last `window` ns as [`Self::time`] moves on.
    pub fn new(first: T, window: u64) -> Self {
        Self {
            older: first,
            younger: None,
            half: (window / 2).max(1),
            begun: None,
        }
    }

    /// Do the same with all.
    pub fn each(&mut self, mut tell: impl FnMut(&mut T)) {
        tell(&mut self.older);
        if let Some(younger) = &mut self.younger {
            tell(younger);
        }
    }

    /// It is `now` (TAI ns); `anew` makes what begins.
    pub fn time(&mut self, now: u64, mut anew: impl FnMut() -> T) {
        if self.half == 0 {
            return;
        }
        let begun = *self.begun.get_or_insert(now);
        if now.abs_diff(begun) < self.half {
            return;
        }
        self.begun = Some(now);
        if now < begun || now - begun >= 2 * self.half {
            // All that was seen is older than the window, or the clock was set back.
            self.older = anew();
            self.younger = None;
        } else if let Some(younger) = self.younger.replace(anew()) {
            self.older = younger;
        }
    }

    /// The one that has seen most.
    pub const fn get(&self) -> &T {
        &self.older
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// First and last second that were seen.
    type Seen = Option<(u64, u64)>;

    fn second(seen: &mut Sliding<Seen>, s: u64) {
        seen.time(s * 1_000_000_000, || None);
        seen.each(|seen| *seen = Some((seen.map_or(s, |seen| seen.0), s)));
    }

    #[test]
    fn half_to_all_of_the_window_is_kept() {
        let mut sliding = Sliding::new(None, 100_000_000_000);
        for s in 1000..1050 {
            second(&mut sliding, s);
        }
        assert_eq!(*sliding.get(), Some((1000, 1049)));
        for s in 1050..2000 {
            second(&mut sliding, s);
            let (start, end) = sliding.get().unwrap();
            assert_eq!(end, s);
            assert!(s < 1100 || (49..100).contains(&(end - start)), "{start} to {end}");
        }
        // After a long silence, or when the clock was set back, nothing of the past is left.
        for s in [9000, 500] {
            second(&mut sliding, s);
            assert_eq!(*sliding.get(), Some((s, s)));
        }
    }

    #[test]
    fn without_a_window_all_is_kept() {
        let mut sliding = Sliding::default();
        for s in [1000, 5000, 9000] {
            second(&mut sliding, s);
        }
        assert_eq!(*sliding.get(), Some((1000, 9000)));
    }
}
