//! Records of each lane in their order: what is missing, and which record continues which.

use weir_record::{Kind, LANES, Record, flag};

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
    /// Lanes with a record that waits for its continuation.
    waiting: usize,
    /// Records, missing and stray are counted here.
    pub health: StreamHealth,
}

/// A jump of this much or more is a restart or a record out of place, not a loss.
const JUMP: u32 = 1 << 31;

impl Lanes {
    /// Count records and pair them with their continuations. Calls `each` with every record that is
    /// complete.
    #[inline]
    pub fn push(&mut self, records: &[Record], mut each: impl FnMut(&Record, Option<&Record>)) {
        self.health.records += records.len() as u64;
        let mut rest = records;
        while let [record, later @ ..] = rest {
            rest = later;
            self.number(record);
            if self.waiting > 0 && self.resume(record, &mut each) {
                continue;
            }
            if record.is_continuation() {
                // Those that end the statistics of 100 ms stand alone.
                let stands_alone = matches!(record.kind(), Some(Kind::Histogram | Kind::Top));
                self.health.stray += u64::from(!stands_alone);
                continue;
            }
            let more = later.first().filter(|more| continues(record, more));
            if let Some(more) = more {
                self.number(more);
                rest = &later[1..];
            } else if record.flags() & flag::MORE != 0 {
                self.lane(record).waiting = Some(*record);
                self.waiting += 1;
                continue;
            }
            each(record, more);
        }
    }

    fn lane(&mut self, record: &Record) -> &mut Lane {
        &mut self.lanes[usize::from(record.lane()) % LANES]
    }

    /// What is missing before a record.
    #[inline]
    fn number(&mut self, record: &Record) {
        // The host's own GAP records have no place in the numbering.
        if record.kind() == Some(Kind::Gap) {
            return;
        }
        let sequence = record.sequence();
        let next = &mut self.lane(record).next;
        let jump = next.map_or(0, |next| sequence.wrapping_sub(next));
        *next = Some(sequence.wrapping_add(1));
        if jump != 0 && jump < JUMP {
            self.health.missing += u64::from(jump);
        }
    }

    /// The record that waits on the lane of another one, if there is one. Returns whether the other one continues it.
    #[cold]
    fn resume(&mut self, record: &Record, each: &mut impl FnMut(&Record, Option<&Record>)) -> bool {
        let Some(first) = self.lane(record).waiting.take() else {
            return false;
        };
        self.waiting -= 1;
        let more = Some(record).filter(|record| continues(&first, record));
        each(&first, more);
        more.is_some()
    }

    /// The input is over: records whose continuation did not come.
    pub fn finish(&mut self, mut each: impl FnMut(&Record)) {
        self.waiting = 0;
        for lane in &mut self.lanes {
            if let Some(first) = lane.waiting.take() {
                each(&first);
            }
        }
    }
}

/// `record` is the continuation of the one before it on its lane.
#[inline]
fn continues(first: &Record, record: &Record) -> bool {
    first.flags() & flag::MORE != 0
        && record.is_continuation()
        && record.lane() == first.lane()
        && record.kind() == first.kind()
        && record.flow() == first.flow()
        && record.sequence() == first.sequence().wrapping_add(1)
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
        let records = [
            record(Kind::Open, u32::MAX, flag::MORE),
            record(Kind::Open, 0, flag::CONTINUATION),
            record(Kind::Open, 1, flag::CONTINUATION),
            record(Kind::Event, 5, flag::MORE),
            record(Kind::Block, 7, 0),
            // They end what may be none.
            record(Kind::Histogram, 8, flag::CONTINUATION),
            record(Kind::Top, 9, flag::CONTINUATION),
        ];
        // In one piece or in several.
        for size in 1..=records.len() {
            let mut lanes = Lanes::default();
            let mut seen = Vec::new();
            for some in records.chunks(size) {
                lanes.push(some, |a, b| seen.push((a.sequence(), b.is_some())));
            }
            assert_eq!(seen, [(u32::MAX, true), (5, false), (7, false)]);
            let health = lanes.health;
            assert_eq!((health.missing, health.stray, health.records), (4, 1, 7));
        }
    }
}
