//! A few long transfers of full-size segments: half of the flows upload, half download; the receiver acknowledges every
//! second segment; one segment in 2,000 is lost, before or behind the tap, and brought back by SACK and fast retransmission.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use weir_record::tcp_flag::{ACK, FIN, PSH, SYN};

use super::{START, scaled};
use crate::error::Error;
use crate::frame::{Ends, FrameWriter, MSS, Segment, TIMESTAMPS_LENGTH};
use crate::rng::Rng;
use crate::truth::Truth;

const FLOWS: u64 = 50;
/// Full segments of each flow at scale 1; with the ACKs 1.5 M packets in all.
const SEGMENTS: u64 = 20_000;
const US: u64 = 1_000;
/// Mean time between two segments of a flow: 50 flows fill 1 Gb/s.
const SPACING_NS: u64 = 600 * US;
/// The application writes so many segments at a time.
const WRITE: u64 = 32;
const LOSSES: f64 = 0.0005;
/// No loss so near to the end that three duplicate ACKs could not follow.
const QUIET_END: u64 = 300;

pub(super) fn write(out: &mut FrameWriter, mut rng: Rng, scale: f64) -> Result<(), Error> {
    let segments = scaled(SEGMENTS, scale);
    let mut flows: Vec<Transfer> = (0..FLOWS)
        .map(|number| Transfer::new(&mut rng, number, segments))
        .collect();
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = flows
        .iter()
        .enumerate()
        .filter_map(|(index, flow)| flow.next_time().map(|time| Reverse((time, index))))
        .collect();
    while let Some(Reverse((_, index))) = next.pop() {
        let flow = &mut flows[index];
        if let Some(segment) = flow.advance(&mut rng, &mut out.truth) {
            out.write(&flow.ends, &segment)?;
        }
        if let Some(time) = flow.next_time() {
            next.push(Reverse((time, index)));
        }
    }
    out.truth.connections = FLOWS;
    out.truth.closed = FLOWS;
    out.truth.concurrent = FLOWS;
    out.truth.transactions = FLOWS;
    Ok(())
}

/// A lost segment that is not yet repaired.
struct Hole {
    segment: Segment,
    duplicates: u32,
    /// When the repetition passes the tap, known after the third duplicate ACK.
    again: Option<u64>,
}

/// One flow. The sender of the data sits close to the tap, the receiver a round trip behind it.
struct Transfer {
    ends: Ends,
    /// The client sends the data.
    upload: bool,
    /// Control segments and ACKs to come, in order of time.
    queue: VecDeque<Segment>,
    /// Data segments left, and the time of the next.
    left: u64,
    total: u64,
    data_time: u64,
    hole: Option<Hole>,
    /// Sequence numbers: of the data's sender, of the other side.
    seq: u32,
    other: u32,
    unacked: u32,
    receiver_rtt: u64,
    sender_rtt: u64,
    closing: bool,
    ids: [u16; 2],
    clocks: [u32; 2],
    last_tsval: [u32; 2],
}

impl Transfer {
    fn new(rng: &mut Rng, number: u64, segments: u64) -> Self {
        let upload = number % 2 == 1;
        let mut flow = Self {
            ends: Ends {
                client: (0x0a02_0001 + number as u32, 40_000 + number as u16),
                server: (0xc0a8_1401, 7_105),
                timestamps: true,
                options: true,
            },
            upload,
            queue: VecDeque::new(),
            left: segments,
            total: segments,
            data_time: 0,
            hole: None,
            seq: 0,
            other: 0,
            unacked: 0,
            receiver_rtt: rng.between(2_000 * US, 40_000 * US),
            sender_rtt: rng.between(100 * US, 400 * US),
            closing: false,
            ids: [rng.bits() as u16, rng.bits() as u16],
            clocks: [rng.bits() as u32, rng.bits() as u32],
            last_tsval: [0; 2],
        };
        let (client, server) = (rng.bits() as u32, rng.bits() as u32);
        let (client_rtt, server_rtt) = if upload {
            (flow.sender_rtt, flow.receiver_rtt)
        } else {
            (flow.receiver_rtt, flow.sender_rtt)
        };
        let mut time = START + rng.below(500_000 * US);
        let (mut seq, ack) = (client.wrapping_add(1), server.wrapping_add(1));
        let blank = Segment {
            window: 64_240,
            ..Segment::default()
        };
        flow.queue.push_back(Segment {
            time,
            from_client: true,
            flags: SYN,
            seq: client,
            ..blank
        });
        time += server_rtt;
        flow.queue.push_back(Segment {
            time,
            flags: SYN | ACK,
            seq: server,
            ack: seq,
            ..blank
        });
        time += client_rtt;
        let blank = Segment {
            window: 4_096,
            from_client: true,
            flags: ACK,
            ack,
            ..blank
        };
        flow.queue.push_back(Segment { time, seq, ..blank });
        time += 100 * US;
        if !upload {
            flow.queue.push_back(Segment {
                time,
                seq,
                flags: ACK | PSH,
                len: 100,
                ..blank
            });
            seq = seq.wrapping_add(100);
            time += server_rtt + 2_000 * US;
        }
        (flow.seq, flow.other) = if upload { (seq, ack) } else { (ack, seq) };
        flow.data_time = time;
        flow
    }

    fn next_time(&self) -> Option<u64> {
        let data = (self.left > 0).then_some(self.data_time);
        let queued = self.queue.front().map(|segment| segment.time);
        let again = self.hole.as_ref().and_then(|hole| hole.again);
        [data, queued, again].into_iter().flatten().min()
    }

    /// The next segment that the tap sees; none if this one was lost before the tap.
    fn advance(&mut self, rng: &mut Rng, truth: &mut Truth) -> Option<Segment> {
        let time = self.next_time()?;
        if self.queue.front().is_some_and(|segment| segment.time == time) {
            let segment = self.queue.pop_front()?;
            return Some(self.stamp(segment));
        }
        if self.hole.as_ref().is_some_and(|hole| hole.again == Some(time)) {
            let hole = self.hole.take()?;
            self.unacked = 0;
            self.acknowledge(time, self.seq, (0, 0));
            truth.retransmitted_segments += 1;
            return Some(self.stamp(Segment { time, ..hole.segment }));
        }
        let segment = self.data(rng);
        if self.hole.is_none() && self.left > QUIET_END && rng.chance(LOSSES) {
            self.hole = Some(Hole {
                segment,
                duplicates: 0,
                again: None,
            });
            let upstream = rng.chance(0.5);
            truth.lost_upstream += u64::from(upstream);
            truth.lost_downstream += u64::from(!upstream);
            // The sender has used an IP id for it in either case.
            let stamped = self.stamp(segment);
            return (!upstream).then_some(stamped);
        }
        self.received(time);
        if self.left == 0 {
            self.close(time);
        }
        Some(self.stamp(segment))
    }

    fn data(&mut self, rng: &mut Rng) -> Segment {
        let time = self.data_time;
        self.left -= 1;
        let sent = self.total - self.left;
        let push = sent.is_multiple_of(WRITE) || self.left == 0;
        let len = MSS - TIMESTAMPS_LENGTH;
        let segment = Segment {
            time,
            from_client: self.upload,
            flags: if push { ACK | PSH } else { ACK },
            window: 4_096,
            seq: self.seq,
            ack: self.other,
            len,
            ..Segment::default()
        };
        self.seq = self.seq.wrapping_add(u32::from(len));
        self.data_time = time + rng.between(SPACING_NS / 2, SPACING_NS * 3 / 2);
        segment
    }

    /// The receiver's answer to a data segment that passed the tap now.
    fn received(&mut self, time: u64) {
        let seq = self.seq;
        let rtt = self.receiver_rtt;
        let sender_rtt = self.sender_rtt;
        if let Some(hole) = &mut self.hole {
            let lost = hole.segment;
            hole.duplicates += 1;
            if hole.duplicates == 3 {
                hole.again = Some(time + rtt + sender_rtt);
            }
            self.acknowledge(time, lost.seq, (lost.seq.wrapping_add(u32::from(lost.len)), seq));
            return;
        }
        self.unacked += 1;
        if self.unacked == 2 || self.left == 0 {
            self.unacked = 0;
            self.acknowledge(time, seq, (0, 0));
        }
    }

    fn acknowledge(&mut self, time: u64, ack: u32, sack: (u32, u32)) {
        let time = time + self.receiver_rtt;
        self.queue.push_back(Segment {
            time,
            from_client: !self.upload,
            flags: ACK,
            window: 4_096,
            seq: self.other,
            ack,
            sack,
            ..Segment::default()
        });
    }

    /// After the last data: an upload gets a response of 200 octets; then the client closes.
    fn close(&mut self, last: u64) {
        if self.closing {
            return;
        }
        self.closing = true;
        let (to_client, to_server) = if self.upload {
            (self.sender_rtt, self.receiver_rtt)
        } else {
            (self.receiver_rtt, self.sender_rtt)
        };
        let mut time = last + self.receiver_rtt + 1_000 * US;
        let blank = Segment {
            window: 4_096,
            flags: ACK,
            ..Segment::default()
        };
        if self.upload {
            self.queue.push_back(Segment {
                time,
                flags: ACK | PSH,
                len: 200,
                seq: self.other,
                ack: self.seq,
                ..blank
            });
            self.other = self.other.wrapping_add(200);
            time += to_client + 1_000 * US;
        }
        let (client, server) = if self.upload {
            (self.seq, self.other)
        } else {
            (self.other, self.seq)
        };
        let (client_end, server_end) = (client.wrapping_add(1), server.wrapping_add(1));
        self.queue.push_back(Segment {
            time,
            from_client: true,
            flags: FIN | ACK,
            seq: client,
            ack: server,
            ..blank
        });
        time += to_server;
        self.queue.push_back(Segment {
            time,
            flags: FIN | ACK,
            seq: server,
            ack: client_end,
            ..blank
        });
        time += to_client;
        self.queue.push_back(Segment {
            time,
            from_client: true,
            seq: client_end,
            ack: server_end,
            ..blank
        });
    }

    fn stamp(&mut self, mut segment: Segment) -> Segment {
        let side = usize::from(segment.from_client);
        self.ids[side] = self.ids[side].wrapping_add(1);
        segment.ip_id = self.ids[side];
        segment.tsval = self.clocks[side].wrapping_add((segment.time / 1_000_000) as u32);
        segment.tsecr = if segment.flags == SYN {
            0
        } else {
            self.last_tsval[side ^ 1]
        };
        self.last_tsval[side] = segment.tsval;
        segment
    }
}
