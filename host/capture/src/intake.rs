//! Record frames from the card into records: what `Feed` and the engine are for frames of the wire.
//!
//! Each lane is followed by the numbers of its frames. What is missing becomes a GAP record in its place and is
//! counted; what cannot be used is counted by reason ([`Refusal`]) and changes nothing.

use weir_record::frame::{self, Refusal};
use weir_record::{FrameHeader, Gap, Header, Kind, LANES, Port, PortMore, Record};

/// `Gap::reason`: lost between card and host.
const LOST: u8 = 1;
/// Ports that records can name.
const PORTS: usize = 16;
/// Frames that are remembered for telling a repeated one from a late one.
const REMEMBERED: u64 = 64;

/// What came over the link from the card. Every frame is in `frames` or in one of `refused`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames used.
    pub frames: u64,
    /// Their records.
    pub records: u64,
    /// Frames not used, by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Frames missing by their numbers.
    pub lost_frames: u64,
    /// Records missing by the frames' totals.
    pub lost_records: u64,
    /// Times that a lane began anew: another epoch, or the measuring side was reset.
    pub restarts: u64,
}

impl LinkCounters {
    /// Frames from the card that were not used (what is not from the card is not meant).
    pub fn damaged(&self) -> u64 {
        self.refused.iter().sum::<u64>() - self.refused(Refusal::Foreign)
    }

    /// Frames not used for this reason.
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }
}

/// What the card says of one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardPort {
    /// Counters of the last PORT record.
    pub port: Port,
    /// Those of its continuation.
    pub more: PortMore,
}

const NO_PORT: CardPort = CardPort {
    port: Port {
        frames: 0,
        bytes: 0,
        tracked: 0,
        clamped: 0,
        cut: 0,
        dropped: 0,
        options_skipped: 0,
    },
    more: PortMore { untracked: [0; 10] },
};

#[derive(Clone, Copy, Debug)]
struct Lane {
    epoch: u16,
    /// The epoch before: no frame of it is new.
    previous: Option<u16>,
    /// Number of the next frame, and time of the last.
    next: u64,
    time: u64,
    /// Records in all frames before the next.
    total: u64,
    /// Bit i: frame next - 1 - i was here.
    seen: u64,
}

/// The intake of all lanes of a card.
#[derive(Clone, Debug)]
pub struct Intake {
    lanes: [Option<Lane>; LANES],
    ports: [CardPort; PORTS],
    flows: u64,
    counters: LinkCounters,
}

impl Default for Intake {
    fn default() -> Self {
        Self {
            lanes: [None; LANES],
            ports: [NO_PORT; PORTS],
            flows: 0,
            counters: LinkCounters::default(),
        }
    }
}

impl Intake {
    /// One frame as it came; its records are appended to `records`, behind a GAP record if some before it are missing.
    pub fn frame(&mut self, data: &[u8], records: &mut Vec<Record>) {
        let follows = frame::open(data).and_then(|frame| self.follow(&frame.header, records).map(|()| frame));
        match follows {
            Err(reason) => self.counters.refused[reason as usize] += 1,
            Ok(frame) => {
                self.counters.frames += 1;
                self.counters.records += u64::from(frame.header.records);
                for record in frame.records() {
                    self.look(&record);
                    records.push(record);
                }
            }
        }
    }

    /// Counters of the link.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// What the card last said of its port.
    pub fn port(&self, port: u8) -> &CardPort {
        &self.ports[usize::from(port) % PORTS]
    }

    /// Flows in the card's table, by the OPEN and CLOSE records that came.
    pub fn flows(&self) -> u64 {
        self.flows
    }

    /// Take the frame's place on its lane.
    fn follow(&mut self, header: &FrameHeader, records: &mut Vec<Record>) -> Result<(), Refusal> {
        let place = usize::from(header.lane) % LANES;
        let begin = |previous| Lane {
            epoch: header.epoch,
            previous,
            next: 0,
            time: 0,
            total: 0,
            seen: 0,
        };
        let mut restart = false;
        let mut lane = match self.lanes[place] {
            // Whoever attaches to a card that runs has lost nothing.
            None => Lane {
                next: header.sequence,
                total: header.total,
                ..begin(None)
            },
            Some(lane) if header.epoch == lane.epoch && header.sequence >= lane.next => lane,
            Some(lane) if Some(header.epoch) == lane.previous => return Err(Refusal::Late),
            // Numbers that fall: an old frame, unless it was sent later or is a first one.
            Some(lane)
                if header.epoch == lane.epoch
                    && header.time <= lane.time
                    && (header.sequence > 0 || lane.next <= REMEMBERED) =>
            {
                let age = lane.next - 1 - header.sequence;
                let seen = age < REMEMBERED && lane.seen >> age & 1 != 0;
                return Err(if seen { Refusal::Repeated } else { Refusal::Late });
            }
            Some(lane) => {
                restart = true;
                begin(Some(lane.epoch).filter(|&epoch| epoch != header.epoch))
            }
        };
        let lost = header.sequence - lane.next;
        // Of a lane whose totals contradict the numbers of its frames nothing can be used.
        let missing = header.total.checked_sub(lane.total).ok_or(Refusal::Count)?;
        let plausible = missing >= lost && missing.div_ceil(FrameHeader::MAX_RECORDS.into()) <= lost;
        if !plausible {
            return Err(Refusal::Count);
        }
        let next = header.sequence.checked_add(1).ok_or(Refusal::Count)?;
        let total = header.total.checked_add(header.records.into()).ok_or(Refusal::Count)?;
        if restart {
            self.counters.restarts += 1;
            self.flows = 0;
        }
        if missing > 0 {
            self.counters.lost_frames += lost;
            self.counters.lost_records += missing;
            let gap = Gap {
                from_sequence: lane.total as u32,
                to_sequence: header.first_sequence.wrapping_sub(1),
                reason: LOST,
            };
            records.push(gap.encode(Header {
                lane: header.lane,
                sequence: gap.from_sequence,
                time: header.time,
                ..Header::default()
            }));
        }
        let age = lost + 1;
        lane.seen = if age < REMEMBERED { lane.seen << age } else { 0 } | 1;
        (lane.next, lane.total, lane.time) = (next, total, header.time);
        self.lanes[place] = Some(lane);
        Ok(())
    }

    fn look(&mut self, record: &Record) {
        match (record.kind(), record.is_continuation()) {
            (Some(Kind::Open), false) => self.flows += 1,
            (Some(Kind::Close), false) => self.flows = self.flows.saturating_sub(1),
            (Some(Kind::Port), more) => {
                let port = &mut self.ports[usize::from(record.arg()) % PORTS];
                if more {
                    port.more = PortMore::decode(record);
                } else {
                    port.port = Port::decode(record);
                }
            }
            _ => {}
        }
    }
}
