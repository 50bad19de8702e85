//! IP ids as counters of packets (`docs/src/losses.md`): what a host numbers and the tap did not see.

use crate::route::{PLACES, Pair, Placed};

/// Ids of two flows of a pair that are closer than this are of one counter: by chance 1 in 64.
const NEAR: u16 = 512;
/// Flows and intervals that it takes to tell: a pair that is seen with few connections may have others elsewhere.
const FLOWS: u16 = 4;
const STEADY: u16 = 6;
/// Packets that tell, of one interval or of several; and the part of them that losses may take, at most.
const ENOUGH: i32 = 4;
const LOSSY: i32 = 8;
/// So much of the one for one of the other.
const CLEARLY: u16 = 4;

/// Packets of a direction that were seen, copies aside, and ids of others. Below 0: packets had the ids of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub packets: i32,
    pub missing: i32,
}

impl Step {
    /// From one interval to the next. None where one of the ids is 0, as those of IPv6 and of hosts that do not count, or
    /// where packets are too many.
    pub fn new(before: u16, newest: u16, packets: i64) -> Option<Self> {
        let packets = i16::try_from(packets).ok()?;
        // Modulo 2¹⁶: ids of others, or of what the tap missed, are taken for fewer than half of that.
        let missing = newest.wrapping_sub(before).wrapping_sub(packets as u16) as i16;
        (before != 0 && newest != 0).then_some(Self {
            packets: packets.into(),
            missing: missing.into(),
        })
    }
}

/// Sums of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    newest: u16,
    sum: Step,
    /// Intervals whose ids tell nothing.
    unknown: u32,
    /// Packets that came twice.
    copies: u64,
}

impl Counted {
    /// From an interval on whose last id was this.
    pub fn from(newest: u16) -> Self {
        Self {
            newest,
            ..Self::default()
        }
    }

    /// Of the last interval; 0: none.
    pub const fn newest(&self) -> u16 {
        self.newest
    }

    /// An interval of so many packets with its last id. `copies`: packets of the direction so far that came twice, with the
    /// ids of the first.
    pub fn interval(&mut self, id: u16, packets: u32, copies: u64) -> Option<Step> {
        let again = copies.saturating_sub(std::mem::replace(&mut self.copies, copies));
        let before = std::mem::replace(&mut self.newest, id);
        let step = Step::new(before, id, packets_sent(id.wrapping_sub(before), packets, again));
        match step {
            Some(step) => {
                self.sum.packets = self.sum.packets.saturating_add(step.packets);
                self.sum.missing = self.sum.missing.saturating_add(step.missing);
            }
            None => self.unknown += 1,
        }
        step
    }

    /// What came since then; none if an interval between them tells nothing.
    pub fn since(&self, then: &Self) -> Option<Step> {
        (self.unknown == then.unknown).then_some(Step {
            packets: self.sum.packets - then.sum.packets,
            missing: self.sum.missing - then.sum.missing,
        })
    }
}

/// Packets of an interval without its copies. `copies`: those that were told apart, behind their first copy. A mirror
/// copies bursts, too, whose ACKs nobody tells apart: then there are twice as many packets as ids (one may be in the next
/// interval).
fn packets_sent(ids: u16, packets: u32, copies: u64) -> i64 {
    let is_mirrored = copies > 0 && packets.abs_diff(2 * u32::from(ids)) <= 1;
    if is_mirrored {
        ids.into()
    } else {
        i64::from(packets) - copies as i64
    }
}

/// What the ids of a host in packets to another count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Nothing tells yet.
    #[default]
    Unknown,
    /// Nothing tells for certain; some were missing where nothing else shows a loss.
    Uneven,
    /// The packets of each connection.
    ByConnection,
    /// Those of other connections, too, or nothing.
    More,
}

/// What the ids of a host were seen to do in packets to another: there are hosts (Windows) that count for each address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Habit {
    pair: Pair,
    newest: u16,
    /// Flows whose first id was near, or far from, the newest of another flow.
    near: u16,
    far: u16,
    /// Intervals in which no id, or many, were missing.
    steady: u16,
    uneven: u16,
    /// Sum of intervals with too few packets to tell alone.
    few: Step,
}

impl Habit {
    /// The newest id of an interval. `is_first`: no id of its direction was known; `step`: since the one before.
    #[inline]
    pub fn interval(&mut self, id: u16, is_first: bool, step: Option<Step>) {
        let before = std::mem::replace(&mut self.newest, id);
        if let Some(mut step) = step {
            if step.packets < ENOUGH {
                self.few.packets = self.few.packets.saturating_add(step.packets);
                self.few.missing = self.few.missing.saturating_add(step.missing);
                if self.few.packets < ENOUGH {
                    return;
                }
                step = std::mem::take(&mut self.few);
            }
            self.stepped(step);
        } else if is_first && before != 0 && id != 0 {
            let near = id.wrapping_sub(before) < NEAR;
            let count = if near { &mut self.near } else { &mut self.far };
            *count = count.saturating_add(1);
        }
    }

    /// Whether the one counts the packets to the other for each connection, so that no ids go elsewhere; `None`: not known yet.
    pub fn by_connection(&self) -> Option<bool> {
        let enough = self.near.saturating_add(self.far) >= FLOWS && self.steady.saturating_add(self.uneven) >= STEADY;
        enough.then(|| clearly(self.far, self.near) && clearly(self.steady, self.uneven))
    }

    /// The same, and of few connections whether ids go elsewhere.
    fn counting(&self) -> Counting {
        match self.by_connection() {
            Some(true) => Counting::ByConnection,
            Some(false) => Counting::More,
            None if clearly(self.steady, self.uneven) => Counting::Unknown,
            None => Counting::Uneven,
        }
    }

    fn stepped(&mut self, step: Step) {
        let lost = step.packets / LOSSY;
        let count = match step.missing {
            0 => &mut self.steady,
            // Packets are lost before the tap.
            missing if (1..=lost.max(1)).contains(&missing) => return,
            _ => &mut self.uneven,
        };
        *count = count.saturating_add(1);
    }
}

/// So many for so many others.
fn clearly(one: u16, other: u16) -> bool {
    u32::from(one) >= u32::from(other) * u32::from(CLEARLY)
}

/// The pairs of hosts that were seen lately, each way; another one takes the place of one with the same hash.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    pairs: Vec<Habit>,
}

impl Habits {
    /// That of a pair, a new one if another has its place.
    #[inline]
    pub fn of(&mut self, pair: Placed<Pair>) -> &mut Habit {
        if self.pairs.is_empty() {
            self.pairs.resize(PLACES, Habit::default());
        }
        let Placed { place, whom: pair } = pair;
        let habit = &mut self.pairs[place];
        if habit.pair != pair {
            *habit = Habit {
                pair,
                ..Habit::default()
            };
        }
        habit
    }

    /// Of a pair; nothing is known of one that is not watched.
    pub fn counting(&self, pair: Placed<Pair>) -> Counting {
        let habit = self.pairs.get(pair.place).filter(|habit| habit.pair == pair.whom);
        habit.map_or_else(Counting::default, Habit::counting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_does_not_hide_which_ids_are_missing() {
        let missing =
            |ids: u16, packets: u32, copies: u64| Step::new(100, 100 + ids, packets_sent(ids, packets, copies));
        let step = |packets, missing| Some(Step { packets, missing });
        assert_eq!(missing(13, 13, 0), step(13, 0));
        assert_eq!(missing(14, 13, 0), step(13, 1));
        // Three were told apart, and ten were behind others; one of them is in the next interval.
        assert_eq!(missing(13, 26, 3), step(13, 0));
        assert_eq!(missing(13, 25, 3), step(13, 0));
        // All were told apart.
        assert_eq!(missing(14, 26, 13), step(13, 1));
        // No mirror.
        assert_eq!(missing(13, 26, 0), step(26, -13));
    }
}
