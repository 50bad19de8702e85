//! Records of each lane in their order: what is missing, and which record continues which.

use weir_record::{Kind, Record, flag};

/// Lanes of a header.
const LANES: usize = 16;

/// Counters of the record stream itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamHealth {
    /// Records taken in.
    pub records: u64,
    /// Records missing by sequence number.
    pub missing: u64,
    /// Records of a kind or version that this analysis does not know.
    pub unknown: u64,
    /// Continuations without the record that they continue.
    pub stray: u64,
    /// Records of flows whose OPEN did not come.
    pub homeless: u64,
    /// Flows whose place was taken before their CLOSE came.
    pub replaced: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    next: Option<u32>,
    waiting: Option<Record>,
}

/// State of all lanes.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    lanes: [Lane; LANES],
    /// Records, missing and stray are counted here.
    pub health: StreamHealth,
}

/// A jump of this much or more is a restart or a record out of place, not a loss.
const JUMP: u32 = 1 << 31;

impl Lanes {
    /// Count a record and pair it with its continuation. Calls `each` with every record that is
    /// complete.
    #[inline]
    pub fn push(&mut self, record: &Record, mut each: impl FnMut(&Record, Option<&Record>)) {
        let health = &mut self.health;
        let lane = &mut self.lanes[usize::from(record.lane()) % LANES];
        health.records += 1;
        let sequence = record.sequence();
        // The host's own GAP records have no place in the numbering.
        if record.kind() != Some(Kind::Gap) {
            if let Some(next) = lane.next {
                let jump = sequence.wrapping_sub(next);
                if jump != 0 && jump < JUMP {
                    health.missing += u64::from(jump);
                }
            }
            lane.next = Some(sequence.wrapping_add(1));
        }
        if let Some(first) = lane.waiting.take() {
            let continues = record.is_continuation()
                && record.kind() == first.kind()
                && record.flow() == first.flow()
                && sequence == first.sequence().wrapping_add(1);
            if continues {
                each(&first, Some(record));
                return;
            }
            each(&first, None);
        }
        if record.is_continuation() {
            health.stray += 1;
        } else if record.flags() & flag::MORE != 0 {
            lane.waiting = Some(*record);
        } else {
            each(record, None);
        }
    }

    /// The input is over: records whose continuation did not come.
    pub fn finish(&mut self, mut each: impl FnMut(&Record)) {
        for lane in &mut self.lanes {
            if let Some(first) = lane.waiting.take() {
                each(&first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::{FlowId, Header};

    fn record(kind: Kind, sequence: u32, flags: u8) -> Record {
        let header = Header {
            flags,
            sequence,
            flow: FlowId(7),
            ..Header::default()
        };
        header.start(kind, false)
    }

    #[test]
    fn pairs_and_gaps() {
        let mut lanes = Lanes::default();
        let mut seen = Vec::new();
        for r in [
            record(Kind::Open, u32::MAX, flag::MORE),
            record(Kind::Open, 0, flag::CONTINUATION),
            record(Kind::Open, 1, flag::CONTINUATION),
            record(Kind::Event, 5, flag::MORE),
            record(Kind::Block, 7, 0),
        ] {
            lanes.push(&r, |a, b| seen.push((a.sequence(), b.is_some())));
        }
        assert_eq!(seen, [(u32::MAX, true), (5, false), (7, false)]);
        let health = lanes.health;
        assert_eq!((health.missing, health.stray, health.records), (4, 1, 5));
    }
}
