//! The scan visits that a bench makes: all of them, or those that may have something to do.
//!
//! The second list is longer than the engine's own, and does not follow from the state of a flow but from the times of
//! its packets alone: after a packet every visit for a while, then the first one at or after each timeout and time
//! limit. A visit that is left out of it and would have done something makes a difference that the comparison shows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_engine::Config;

/// log2 of the indices that one scan period looks at.
const SCAN_BITS: u32 = 18;
/// log2 of the ns between two visits.
const VISIT_SHIFT: u32 = 10;
/// Interval ends (100 ms) and the block idle time (1 s) lie in here, each followed by a whole scan period (268 ms).
const BUSY_NS: u64 = 1_400_000_000;
/// The time limit of the specification, section 3.
const TIME_LIMIT: u64 = 1 << 38;

/// Number of the first visit to `index` at or after `time`.
fn visit_at(index: u32, time: u64) -> u64 {
    let first = time.div_ceil(1 << VISIT_SHIFT);
    first + (u64::from(index).wrapping_sub(first) & ((1 << SCAN_BITS) - 1))
}

/// Reasons to visit an index.
const BUSY: usize = 0;
const TIMEOUTS: std::ops::Range<usize> = 1..5;
const LIMIT: usize = 5;

#[derive(Clone, Copy, Default)]
struct Context {
    /// Time of the last packet.
    seen: u64,
    /// Bit for each reason that is in the heap already.
    scheduled: u8,
    /// The last visit scheduled for the time limit of a packet.
    limit: u64,
}

/// Visits in order.
pub struct Visits {
    timeouts: [u64; 4],
    heap: BinaryHeap<Reverse<(u64, u32, usize)>>,
    contexts: Vec<Context>,
    /// The next visit when all are made.
    all: Option<u64>,
    number_of_contexts: u32,
}

impl Visits {
    /// For an engine with these settings; `all`: leave nothing out.
    pub fn new(config: &Config, all: bool) -> Self {
        Self {
            timeouts: [
                config.handshake_timeout,
                config.idle_timeout,
                config.linger,
                config.other_timeout,
            ],
            heap: BinaryHeap::new(),
            contexts: Vec::new(),
            all: all.then_some(0),
            number_of_contexts: config.contexts,
        }
    }

    /// A packet of the flow in `index` at `time`; all visits up to `time` were taken.
    pub fn packet(&mut self, index: u32, time: u64) {
        if self.all.is_some() {
            return;
        }
        let place = index as usize;
        if self.contexts.len() <= place {
            self.contexts.resize(place + 1, Context::default());
        }
        let context = &mut self.contexts[place];
        context.seen = time;
        for reason in BUSY..LIMIT {
            if context.scheduled & 1 << reason == 0 {
                context.scheduled |= 1 << reason;
                // The visit at the time of the packet itself comes before it.
                let after = if reason == BUSY {
                    1
                } else {
                    self.timeouts[reason - TIMEOUTS.start]
                };
                self.heap.push(Reverse((visit_at(index, time + after), index, reason)));
            }
        }
        let limit = visit_at(index, time + TIME_LIMIT);
        if limit != context.limit {
            context.limit = limit;
            self.heap.push(Reverse((limit, index, LIMIT)));
        }
    }

    /// Give `take` (time, index) of all visits up to `time` that were not yet taken.
    pub fn until<E>(&mut self, time: u64, mut take: impl FnMut(u64, u32) -> Result<(), E>) -> Result<(), E> {
        if let Some(next) = &mut self.all {
            if *next == 0 {
                *next = time >> VISIT_SHIFT; // there are no flows before the first packet
            }
            while *next << VISIT_SHIFT <= time {
                let index = (*next & ((1 << SCAN_BITS) - 1)) as u32;
                if index < self.number_of_contexts {
                    take(*next << VISIT_SHIFT, index)?;
                }
                *next += 1;
            }
            return Ok(());
        }
        let mut taken = None;
        while let Some(&Reverse((visit, index, reason))) = self.heap.peek() {
            if visit << VISIT_SHIFT > time {
                break;
            }
            self.heap.pop();
            let context = &mut self.contexts[index as usize];
            let again = match reason {
                BUSY => Some(visit + (1 << SCAN_BITS)).filter(|next| next << VISIT_SHIFT <= context.seen + BUSY_NS),
                LIMIT => None,
                // Packets came since: due later.
                _ => Some(visit_at(index, context.seen + self.timeouts[reason - TIMEOUTS.start]))
                    .filter(|due| *due > visit),
            };
            match again {
                Some(next) => self.heap.push(Reverse((next, index, reason))),
                None => context.scheduled &= !(1 << reason),
            }
            let due_later = again.is_some() && reason != BUSY;
            if !due_later && taken != Some((visit, index)) {
                taken = Some((visit, index));
                take(visit << VISIT_SHIFT, index)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_followed_by_visits_until_nothing_can_be_due() {
        let config = Config::appliance();
        let mut visits = Visits::new(&config, false);
        let mut all = Visits::new(&config, true);
        let (index, start) = (77, 1_700_000_000_000_000_000);
        let mut busy = Vec::new();
        let mut every = Vec::new();
        let none = |_, _| Ok::<(), ()>(());
        visits
            .until(start, none)
            .and_then(|()| all.until(start, none))
            .expect("none");
        visits.packet(index, start);
        let keep = |list: &mut Vec<u64>, time, i| {
            list.extend((i == index).then_some(time));
            Ok::<(), ()>(())
        };
        all.until(start + 1_300_000_000, |t, i| keep(&mut every, t, i))
            .expect("kept");
        visits
            .until(start + 1_300_000_000, |t, i| keep(&mut busy, t, i))
            .expect("kept");
        assert_eq!(busy, every);
        assert!(busy.len() >= 4);

        busy.clear();
        visits.until(start + 2_000_000_000, none).expect("none");
        visits.packet(index, start + 2_000_000_000);
        visits.until(start + 10_000_000_000, none).expect("none");
        visits.until(u64::MAX >> 1, |t, i| keep(&mut busy, t, i)).expect("kept");
        let period = 1 << 28;
        let mut due: Vec<u64> = [60, 90, 900].map(|s| start + (s + 2) * 1_000_000_000).to_vec();
        due.extend([start + TIME_LIMIT, start + 2_000_000_000 + TIME_LIMIT]);
        due.sort_unstable();
        assert_eq!(busy.len(), due.len());
        for (visit, due) in busy.iter().zip(&due) {
            assert!(visit >= due && *visit < due + period);
        }
    }
}
