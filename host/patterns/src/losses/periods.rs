//! Which losses come in a rhythm, and whose.

use super::{Loss, Losses, Side};
use crate::pairs;
use crate::period::{self, Period};

/// Pairs, those with most losses first, in which a period is looked for.
const LOOKED_AT: usize = 8;

/// The period that the losses of some pairs have.
#[derive(Clone, Debug)]
pub(crate) struct Periodic {
    pub period: Period,
    /// In the order of losses; empty: all.
    pub pairs: Vec<usize>,
    /// On this side of the tap only, where the other side has losses of its own.
    side: Option<Side>,
}

impl Periodic {
    /// Of all pairs, on both sides.
    #[cfg(test)]
    pub const fn of_all(period: Period) -> Self {
        Self {
            period,
            pairs: Vec::new(),
            side: None,
        }
    }

    pub fn has(&self, pair: u16) -> bool {
        self.pairs.is_empty() || self.pairs.contains(&usize::from(pair))
    }

    /// One of its losses. Those without a place are, too, when they are in the part that is lossy.
    pub fn has_loss(&self, loss: &Loss) -> bool {
        let here = match self.side {
            None => true,
            Some(side) => loss.side == side || loss.side == Side::Unknown && self.period.is_inside(loss.at),
        };
        here && self.has(loss.pair)
    }
}

impl Losses {
    /// Losses that nothing tells from the capture's own: it misses as many as often.
    fn is_by_capture(&self, found: &Periodic) -> bool {
        let is_inside = |time: u64| found.period.is_inside(time);
        let lost = self.losses.iter().filter(|l| found.has_loss(l) && is_inside(l.at));
        self.missed(found).0 > lost.map(Loss::at_least_one).sum()
    }

    /// Segments that the capture missed, of these pairs: in the lossy part, and all.
    pub fn missed(&self, found: &Periodic) -> (u64, u64) {
        let (mut inside, mut all) = (0, 0);
        for (time, _, segments) in self.missed.iter().filter(|(_, pair, _)| found.has(*pair)) {
            all += u64::from(*segments);
            inside += u64::from(if found.period.is_inside(*time) { *segments } else { 0 });
        }
        (inside, all)
    }

    /// Losses of these pairs on this side, each recovery once.
    fn times(&self, has: impl Fn(usize) -> bool, side: Option<Side>) -> Vec<u64> {
        let of_them =
            |loss: &&Loss| loss.first && has(usize::from(loss.pair)) && side.is_none_or(|side| loss.side == side);
        self.losses.iter().filter(of_them).map(|loss| loss.at).collect()
    }

    fn period_of(&self, has: impl Fn(usize) -> bool, side: Option<Side>) -> Option<Period> {
        let times = self.times(&has, side);
        if times.len() < period::LEAST {
            return None;
        }
        period::find(&times, &self.exposure(has, [1.0; 2])?)
    }

    /// Other pairs whose losses are too few to show the period by themselves, but keep to it. More than one period found leaves open whose.
    fn join(&self, found: &mut [Periodic]) {
        let [found] = found else { return };
        if found.pairs.is_empty() {
            return;
        }
        for number in 0..self.by_pair.len() {
            let fits = || {
                let exposure = self.exposure(|other| other == number, [1.0; 2])?;
                Some(
                    found
                        .period
                        .fits(&self.times(|other| other == number, found.side), &exposure),
                )
            };
            if !found.pairs.contains(&number) && fits() == Some(true) {
                found.pairs.push(number);
            }
        }
    }

    /// Patterns in time, each of a pair or of several with the same period.
    pub(super) fn periodic(&self) -> Vec<Periodic> {
        let mut counts = [[0usize; 3]; pairs::MOST + 1];
        for loss in self.losses.iter().filter(|loss| loss.first) {
            counts[usize::from(loss.pair)][loss.side as usize] += 1;
        }
        let all = |number: &usize| counts[*number].iter().sum::<usize>();
        let mut most: Vec<usize> = (0..counts.len()).filter(|number| all(number) > 0).collect();
        most.sort_by_key(|number| std::cmp::Reverse(all(number)));
        let mut found: Vec<Periodic> = Vec::new();
        for number in most.iter().copied().take(LOOKED_AT) {
            // Two sides with losses have two causes.
            let of_side = |side: Side| counts[number][side as usize] >= period::LEAST;
            let sides: &[Option<Side>] = if of_side(Side::Client) && of_side(Side::Server) {
                &[Some(Side::Client), Some(Side::Server)]
            } else {
                &[None]
            };
            for side in sides {
                let Some(period) = self.period_of(|other| other == number, *side) else {
                    continue;
                };
                let same = |known: &&mut Periodic| known.period.is_like(&period) && known.side == *side;
                match found.iter_mut().find(same) {
                    Some(known) => {
                        known.pairs.push(number);
                        if period.chance < known.period.chance && !known.period.is_sure() {
                            known.period = period;
                        }
                    }
                    None => found.push(Periodic {
                        period,
                        pairs: vec![number],
                        side: *side,
                    }),
                }
            }
        }
        // Too few in each, enough in all; or more than are told apart.
        let is_sure = found.iter().any(|found| found.period.is_sure());
        let is_wide = !is_sure || found.iter().any(|found| found.pairs.contains(&pairs::MOST));
        if is_wide
            && most.len() > 1
            && let Some(period) = self.period_of(|_| true, None)
            && (period.is_sure() || found.is_empty())
        {
            found.retain(|known| !known.period.is_like(&period));
            found.push(Periodic {
                period,
                pairs: vec![],
                side: None,
            });
        }
        self.join(&mut found);
        found.retain(|found| !self.is_by_capture(found));
        found
    }

    /// Client and server of a pattern, as text.
    pub fn names(&self, found: &Periodic) -> (String, String) {
        match found.pairs.first() {
            Some(pair) => self.pairs.names(*pair),
            None => self.pairs.common(),
        }
    }
}
