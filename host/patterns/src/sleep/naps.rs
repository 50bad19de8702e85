//! The sleeps of a host beside each other and beside another's: when they come, and how long they are.

use weir_analysis::seconds;

/// Share of the intervals within 0.6 and 1.6 of their median from which on they are regular: by chance it is 0.33,
/// and uniform from half to one and a half of the mean 0.9.
const REGULAR: f64 = 0.6;
/// Or within so much of the median of one, two or three times it, where sleeps were not seen: by chance it is 0.33, too.
const NEAR_MULTIPLE: f64 = 0.25;
const MOST_UNSEEN: f64 = 3.0;
/// The mean is of the intervals within this factor of the median.
const NEAREST: f64 = 1.25;
/// The middle half of the lengths lies within so much of the median: one cause makes them all. Silences without a
/// period and of all lengths may be of work that comes in steps.
const ALIKE: f64 = 0.15;

/// A sleep of a host, TAI ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nap {
    pub from: u64,
    pub to: u64,
    /// Usual time from one begin to the next around it, ns.
    pub before: u64,
    pub strays: u32,
}

impl Nap {
    /// s; the last begin before it was not its own begin, but some time earlier.
    pub(super) fn length(&self) -> f64 {
        seconds((self.to - self.from).saturating_sub(self.before))
    }

    /// Time of both, ns.
    pub(super) fn shared(&self, other: &Self) -> u64 {
        self.to.min(other.to).saturating_sub(self.from.max(other.from))
    }
}

/// Sleeps of both that share half of the shorter.
pub(super) fn common<'a>(a: &'a [Nap], b: &'a [Nap]) -> Vec<(&'a Nap, &'a Nap)> {
    let mut pairs = Vec::new();
    let mut j = 0;
    for own in a {
        while j < b.len() && b[j].to <= own.from {
            j += 1;
        }
        if let Some(theirs) = b.get(j) {
            let shorter = (own.to - own.from).min(theirs.to - theirs.from);
            if own.shared(theirs) * 2 >= shorter {
                pairs.push((own, theirs));
            }
        }
    }
    pairs
}

/// They come in a rhythm; with `unseen`, one or two between two may be missing.
pub(super) fn is_regular(naps: &[Nap], unseen: bool) -> bool {
    let rhythm = Rhythm::of(naps);
    let is_multiple = |pair: &&[Nap]| {
        let interval = seconds(pair[1].from - pair[0].from) / rhythm.mean;
        (1.0..=MOST_UNSEEN).contains(&interval.round()) && (interval - interval.round()).abs() <= NEAR_MULTIPLE
    };
    let multiples = naps.windows(2).filter(is_multiple).count();
    rhythm.near >= REGULAR || unseen && multiples as f64 >= REGULAR * (naps.len() - 1) as f64
}

/// How much time is from the begin of one to that of the next.
pub(super) struct Rhythm {
    /// Of those nearest to the median, s.
    pub mean: f64,
    /// Of those near the median, s.
    pub deviation: f64,
    /// Share that is near the median: a sleep that was not seen makes two intervals one, and one that is none makes one two.
    near: f64,
}

impl Rhythm {
    pub(super) fn of(naps: &[Nap]) -> Self {
        let mut all: Vec<f64> = naps
            .windows(2)
            .map(|pair| seconds(pair[1].from - pair[0].from))
            .collect();
        // One of them: what lies between one interval and two is near both.
        all.sort_by(f64::total_cmp);
        let median = all.get(all.len() / 2).copied().unwrap_or(0.0);
        let whole = all.len().max(1) as f64;
        all.retain(|interval| (0.6 * median..1.6 * median).contains(interval));
        let n = all.len().max(1) as f64;
        let mean = all.iter().sum::<f64>() / n;
        let variance = all.iter().map(|interval| (interval - mean).powi(2)).sum::<f64>() / n;
        all.retain(|interval| (NEAREST.recip() * median..NEAREST * median).contains(interval));
        Self {
            mean: all.iter().sum::<f64>() / all.len().max(1) as f64,
            deviation: variance.sqrt(),
            near: n / whole,
        }
    }
}

/// Of sorted lengths.
pub(super) fn are_alike(lengths: &[f64]) -> bool {
    let at = |quarter: usize| lengths[(lengths.len() * quarter / 4).min(lengths.len() - 1)];
    at(3) - at(1) <= ALIKE * at(2)
}

/// Silences that begin behind another sooner than half of their own length.
pub(super) fn right_behind(naps: &[Nap]) -> usize {
    let is_near = |pair: &&[Nap]| 2 * pair[1].from.saturating_sub(pair[0].to) < pair[1].to - pair[1].from;
    naps.windows(2).filter(is_near).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight sleeps of eleven in a rhythm of 14 s, and eight without one.
    #[test]
    fn sleeps_that_were_not_seen_leave_a_rhythm() {
        let regular = |at: &[u64]| {
            let nap = |at: &u64| Nap {
                from: at * 1_000_000_000,
                to: at * 1_000_000_000 + 500_000_000,
                before: 1_000_000,
                strays: 0,
            };
            let naps: Vec<Nap> = at.iter().map(nap).collect();
            [false, true].map(|unseen| is_regular(&naps, unseen))
        };
        assert_eq!(regular(&[0, 14, 42, 56, 84, 98, 126, 140]), [false, true]);
        assert_eq!(regular(&[0, 3, 26, 30, 48, 56, 77, 140]), [false, false]);
    }
}
