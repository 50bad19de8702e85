//! What some losses have in common, in figures and in words.

use std::collections::{HashMap, HashSet};

use weir_analysis::{Group, count, lasting, seconds};
use weir_record::FlowId;

use super::{Loss, Side};
use crate::names::connections;

/// After so long another segment that is lost is of another recovery, ns: recoveries are told apart by sequence numbers, which
/// come again.
const PAUSE: u64 = 1_000_000_000;
/// Repairs one by one from which on that is worth a word.
const STEPS: u64 = 5;

/// From the first loss of a recovery to its last repeat.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    first: u64,
    last: u64,
    /// Of the loss that came last.
    seq: u32,
}

/// What some losses have in common.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Of the connections.
    pub group: Group,
    /// Packets that came again, or bytes that never did, by client and server, the senders.
    pub by_sender: [u64; 2],
    /// Data segments: those that count as lost, and one of each packet of which it is not known whether it was.
    pub segments: [u64; 2],
    /// Where these were lost: client's side, server's side, not known.
    pub sides: [u64; 3],
    /// By sender and side (client's, server's).
    pub ways: [[u64; 2]; 2],
    /// Recoveries, and those before which a queue stood: of a flight that is too large for it, a round trip tells of its first segment alone.
    begun: u64,
    in_queue: u64,
    /// Packets that a recovery without SACK repaired one by one.
    steps: u64,
    /// Recoveries of which it is known how long they took, and how long all of them did, ns.
    recoveries: u64,
    wait: u64,
}

impl Sums {
    pub fn of<'a>(losses: impl Iterator<Item = &'a Loss>) -> Self {
        let mut sums = Self::default();
        let mut ids = HashSet::new();
        let mut recoveries: HashMap<(FlowId, bool, u32), Recovery> = HashMap::new();
        let mut span: Option<(u64, u64)> = None;
        let mut losses: Vec<&Loss> = losses.collect();
        losses.sort_by_key(|loss| loss.at);
        for loss in losses {
            let sender = usize::from(loss.from_server);
            let segments = loss.at_least_one();
            sums.by_sender[sender] += 1;
            sums.begun += u64::from(loss.first);
            sums.in_queue += u64::from(loss.first && loss.in_queue);
            sums.steps += u64::from(loss.is_step);
            sums.segments[sender] += segments;
            sums.sides[loss.side as usize] += segments;
            if loss.side != Side::Unknown {
                sums.ways[sender][loss.side as usize] += segments;
            }
            if loss.episode > 0 {
                let key = (loss.id, loss.from_server, loss.episode);
                let new = Recovery {
                    first: loss.at,
                    last: loss.again,
                    seq: loss.seq,
                };
                let recovery = recoveries.entry(key).or_insert(new);
                // What is lost again and again is waited for all the time.
                if loss.seq != recovery.seq && loss.at.saturating_sub(recovery.last) > PAUSE {
                    sums.waited_for(*recovery);
                    *recovery = new;
                }
                recovery.last = recovery.last.max(loss.again);
                recovery.seq = loss.seq;
            }
            let (first, last) = span.unwrap_or((loss.at, loss.at));
            span = Some((first.min(loss.at), last.max(loss.at)));
            if ids.insert(loss.id) {
                sums.group.include(loss.id, loss.at, loss.at);
            }
        }
        if let Some((first, last)) = span {
            sums.group.extend(first, last);
        }
        for recovery in recoveries.into_values() {
            sums.waited_for(recovery);
        }
        sums
    }

    fn waited_for(&mut self, Recovery { first, last, .. }: Recovery) {
        self.recoveries += u64::from(last > first);
        self.wait += last - first;
    }

    /// How long all of it was waited for, if that is known, s.
    pub fn cost(&self) -> Option<f64> {
        (self.recoveries > 0).then(|| seconds(self.wait))
    }

    /// The same, in a sentence.
    pub fn waited(&self) -> String {
        self.cost().map_or_else(
            || "how long it took until what was lost came again is not known, as the round trip is not".to_owned(),
            |cost| {
                format!(
                    "from a loss to the last repeat of its recovery it took {} on average: {} of waiting in {}",
                    lasting(cost / self.recoveries as f64),
                    lasting(cost),
                    connections(self.group.count())
                )
            },
        )
    }

    /// Whether most were lost in a queue, in a sentence.
    pub fn queue(&self) -> Option<String> {
        (self.in_queue > 0 && 2 * self.in_queue >= self.begun).then(|| {
            format!(
                "{} of {} recoveries began while packets waited in a queue behind the tap, as the round trips before them tell: what a full queue drops is lost so",
                count(self.in_queue),
                count(self.begun)
            )
        })
    }

    /// Whether most were repaired one by one, in a sentence.
    pub fn steps(&self) -> Option<String> {
        (self.steps >= STEPS && 2 * self.steps >= self.total()).then(|| {
            format!(
                "{} of them were repaired one by one, a round trip each, as a sender does that hears of no SACK blocks (RFC 6582)",
                count(self.steps)
            )
        })
    }

    /// Packets.
    pub const fn total(&self) -> u64 {
        self.by_sender[0] + self.by_sender[1]
    }

    /// Data segments.
    pub const fn all_segments(&self) -> u64 {
        self.segments[0] + self.segments[1]
    }

    /// The part of the way where to look for them.
    pub fn way(&self, client: &str, server: &str) -> String {
        match self.sides {
            [n, 0, 0] if n > 0 => format!("between the tap and {client}"),
            [0, n, 0] if n > 0 => format!("between the tap and {server}"),
            _ => format!("between {client} and {server}"),
        }
    }

    /// Where they happened, in a sentence.
    pub fn place(&self, client: &str, server: &str) -> String {
        let [at_client, at_server, unknown] = self.sides;
        let known = at_client + at_server;
        let way = |side: usize| {
            let (to, from) = if side == 0 {
                (self.ways[1][0], self.ways[0][0])
            } else {
                (self.ways[0][1], self.ways[1][1])
            };
            format!("{} on the way to it, {} on the way back", count(to), count(from))
        };
        let rest = match unknown {
            0 => String::new(),
            n => format!("; of {} more the place is not known", count(n)),
        };
        let all = |n: u64| match n {
            1 => "the loss occurred".to_owned(),
            n => format!("all {} losses occurred", count(n)),
        };
        if known == 0 {
            return format!("the place is not known of any of the {} losses", count(unknown));
        }
        if at_client == 0 {
            return format!("{} between the tap and {server}: {}{rest}", all(known), way(1));
        }
        if at_server == 0 {
            return format!("{} between the tap and {client}: {}{rest}", all(known), way(0));
        }
        format!(
            "{} of {} losses occurred between the tap and {server} ({}), {} between the tap and {client} ({}){rest}",
            count(at_server),
            count(known),
            way(1),
            count(at_client),
            way(0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_look_stands_by_itself() {
        let way = |sides| {
            let sums = Sums {
                sides,
                ..Sums::default()
            };
            sums.way("C", "S")
        };
        assert_eq!(way([3, 0, 0]), "between the tap and C");
        assert_eq!(way([0, 3, 0]), "between the tap and S");
        assert_eq!(way([3, 3, 0]), "between C and S");
        // What is not known where may be on either side.
        assert_eq!(way([0, 3, 1]), "between C and S");
    }
}
