//! Many short connections, about 1,000 at a time: handshake, a few requests with their responses, an orderly close.
//! In one connection of a hundred a segment is lost and repaired, by time-out or by SACK and a fast retransmission.
//!
//! Each connection is planned whole when it starts (about 20 segments); a heap merges the plans in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_record::tcp_flag::{ACK, FIN, PSH, SYN};

use super::{START, scaled};
use crate::error::Error;
use crate::frame::{Ends, FrameWriter, MSS, Segment, TIMESTAMPS_LENGTH};
use crate::rng::Rng;
use crate::truth::Truth;

const CONNECTIONS: u64 = 100_000;
const MS: u64 = 1_000_000;
const US: u64 = 1_000;
/// Mean time between two connections: 1,000 a second, each open for about one.
const ARRIVAL_NS: f64 = 1e6;
/// Share of connections with a loss.
const LOSSES: f64 = 0.01;
/// Time of a full segment on the senders' 1 Gb/s links.
const SEGMENT_NS: u64 = 12 * US;
/// Delayed acknowledgment (RFC 1122 4.2.3.2 allows up to 500 ms; hosts use 40).
const DELAYED_ACK_NS: u64 = 40 * MS;
/// Least retransmission time-out of common hosts.
const RTO_NS: u64 = 200 * MS;
/// First retransmission time-out of a SYN (RFC 6298 2.1).
const SYN_RTO_NS: u64 = 1_000 * MS;

pub(super) fn write(out: &mut FrameWriter, mut rng: Rng, scale: f64) -> Result<(), Error> {
    let total = scaled(CONNECTIONS, scale);
    let mut open: Vec<Plan> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut started = 0;
    let mut arrival = START;
    loop {
        let first = next.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        if started < total && arrival <= first {
            let slot = free.pop().unwrap_or_else(|| {
                open.push(Plan::default());
                open.len() - 1
            });
            open[slot].make(&mut rng, started, arrival, &mut out.truth);
            next.push(Reverse((open[slot].segments[0].time, slot)));
            started += 1;
            arrival += rng.exponential(ARRIVAL_NS);
            out.truth.concurrent = out.truth.concurrent.max(next.len() as u64);
            continue;
        }
        let Some(Reverse((_, slot))) = next.pop() else { break };
        let plan = &mut open[slot];
        out.write(&plan.ends, &plan.segments[plan.at])?;
        plan.at += 1;
        match plan.segments.get(plan.at) {
            Some(segment) => next.push(Reverse((segment.time, slot))),
            None => free.push(slot),
        }
    }
    out.truth.connections = total;
    out.truth.closed = total;
    Ok(())
}

/// Where and how a segment of the connection is lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    None,
    /// The SYN, behind the tap: sent again after a second.
    Syn,
    /// The end of a request, behind the tap: sent again after the time-out.
    Request,
    /// The end of a response, behind the tap: sent again after the time-out.
    Tail,
    /// A segment in the middle of a response, behind the tap: fast retransmission.
    Downstream,
    /// The same, before the tap.
    Upstream,
}

/// One connection: its segments in order of time.
struct Plan {
    ends: Ends,
    segments: Vec<Segment>,
    at: usize,
    // While planning:
    now: u64,
    client_seq: u32,
    server_seq: u32,
    /// Round trip between the tap and each host.
    client_rtt: u64,
    server_rtt: u64,
    mss: u16,
}

impl Default for Plan {
    fn default() -> Self {
        let nobody = Ends {
            client: (0, 0),
            server: (0, 0),
            timestamps: false,
            options: true,
        };
        Self {
            ends: nobody,
            segments: Vec::new(),
            at: 0,
            now: 0,
            client_seq: 0,
            server_seq: 0,
            client_rtt: 0,
            server_rtt: 0,
            mss: MSS,
        }
    }
}

impl Plan {
    fn make(&mut self, rng: &mut Rng, number: u64, start: u64, truth: &mut Truth) {
        let server = rng.below(40) as u32;
        self.ends = Ends {
            // 16,384 clients, each connection of one from another port: no 5-tuple comes twice.
            // Ports that no dissector claims: the payload is no protocol.
            client: (
                0x0a01_0001 + (number % 16_384) as u32,
                20_000 + (number / 16_384 % 40_000) as u16,
            ),
            server: (0xc0a8_0a01 + server, 7_101 + (server % 4) as u16),
            timestamps: rng.chance(0.75),
            options: true,
        };
        self.segments.clear();
        self.at = 0;
        self.now = start;
        let far = rng.unit();
        self.client_rtt = MS + (far * far * 60e6) as u64;
        self.server_rtt = rng.between(100 * US, 900 * US);
        self.mss = MSS - if self.ends.timestamps { TIMESTAMPS_LENGTH } else { 0 };
        self.client_seq = rng.bits() as u32;
        self.server_seq = rng.bits() as u32;

        let transactions = rng.between(3, 5);
        let loss = if rng.chance(LOSSES) {
            *rng.pick(&[Loss::Syn, Loss::Request, Loss::Tail, Loss::Downstream, Loss::Upstream])
                .unwrap_or(&Loss::None)
        } else {
            Loss::None
        };
        let lossy = rng.below(transactions);
        self.open(loss, truth);
        for index in 0..transactions {
            let loss = if index == lossy { loss } else { Loss::None };
            self.transaction(rng, loss, truth);
            truth.transactions += 1;
        }
        self.close(rng);
        self.segments.sort_by_key(|segment| segment.time);
        self.stamp(rng);
    }

    fn push(&mut self, time: u64, from_client: bool, flags: u8, len: u16) {
        let (seq, ack) = if from_client {
            (self.client_seq, self.server_seq)
        } else {
            (self.server_seq, self.client_seq)
        };
        let window = if from_client { 502 } else { 1_024 };
        self.segments.push(Segment {
            time,
            from_client,
            flags,
            window,
            seq,
            ack,
            len,
            ..Segment::default()
        });
        let advance = u32::from(len) + u32::from(flags & (SYN | FIN) != 0);
        if from_client {
            self.client_seq = seq.wrapping_add(advance);
        } else {
            self.server_seq = seq.wrapping_add(advance);
        }
    }

    fn open(&mut self, loss: Loss, truth: &mut Truth) {
        self.push(self.now, true, SYN, 0);
        let syn = self.segments.len() - 1;
        self.segments[syn].ack = 0;
        self.segments[syn].window = 64_240;
        if loss == Loss::Syn {
            self.now += SYN_RTO_NS;
            let again = Segment {
                time: self.now,
                ..self.segments[syn]
            };
            self.segments.push(again);
            truth.retransmitted_syns += 1;
        }
        self.now += self.server_rtt;
        self.push(self.now, false, SYN | ACK, 0);
        let syn_ack = self.segments.len() - 1;
        self.segments[syn_ack].window = 65_160;
        self.now += self.client_rtt;
        self.push(self.now, true, ACK, 0);
    }

    /// A request and its response; `now` is then the time of the last segment of the response.
    fn transaction(&mut self, rng: &mut Rng, loss: Loss, truth: &mut Truth) {
        self.now += rng.between(50 * US, 500 * US);
        let request = if rng.chance(0.05) {
            rng.between(1_500, 2_800)
        } else {
            rng.between(80, 500)
        };
        self.data(true, request);
        if loss == Loss::Request {
            self.repeat_after_timeout(self.client_rtt + self.server_rtt);
            truth.retransmitted_segments += 1;
            truth.lost_downstream += 1;
        }
        let arrived = self.now + self.server_rtt;
        let think = rng.between(200 * US, MS) + rng.exponential(22e6);
        if request > u64::from(self.mss) {
            self.push(arrived, false, ACK, 0);
        } else if think > DELAYED_ACK_NS {
            self.push(arrived + DELAYED_ACK_NS, false, ACK, 0);
        }
        self.now = arrived + think;

        let mss = u64::from(self.mss);
        let response = match (loss, rng.below(10)) {
            (Loss::Downstream | Loss::Upstream, _) => mss * rng.between(6, 9) + rng.between(1, mss),
            (_, 0..6) => rng.between(100, 700),
            (_, 6..9) => rng.between(700, mss),
            _ => rng.between(mss + 1, 3 * mss),
        };
        let first = self.segments.len();
        self.data(false, response);
        match loss {
            Loss::Downstream | Loss::Upstream => self.repair(rng, first, loss == Loss::Upstream, truth),
            Loss::Tail => {
                self.acknowledge(first, self.segments.len() - 1, false);
                self.repeat_after_timeout(self.client_rtt + self.server_rtt);
                truth.retransmitted_segments += 1;
                truth.lost_downstream += 1;
                self.push(self.now + self.client_rtt, true, ACK, 0);
            }
            _ => self.acknowledge(first, self.segments.len(), true),
        }
        // The next request leaves when the user has thought.
        self.now += self.client_rtt + DELAYED_ACK_NS + MS + rng.exponential(150e6);
    }

    /// Segments of one write; the last has PSH.
    fn data(&mut self, from_client: bool, bytes: u64) {
        let mut left = bytes;
        while left > 0 {
            let len = left.min(u64::from(self.mss));
            left -= len;
            self.push(
                self.now,
                from_client,
                if left == 0 { ACK | PSH } else { ACK },
                len as u16,
            );
            if left > 0 {
                self.now += SEGMENT_NS;
            }
        }
    }

    /// The client acknowledges each second segment of `first..end`, and an odd last one after the delay.
    fn acknowledge(&mut self, first: usize, end: usize, last: bool) {
        for index in first..end {
            let segment = self.segments[index];
            let second = (index - first) % 2 == 1;
            if second || (last && index + 1 == end) {
                let delay = if second { 20 * US } else { DELAYED_ACK_NS };
                self.push(segment.time + self.client_rtt + delay, true, ACK, 0);
                let ack = self.segments.len() - 1;
                self.segments[ack].ack = segment.seq.wrapping_add(u32::from(segment.len));
            }
        }
    }

    /// The segment planned last is sent again: the first copy was lost behind the tap.
    fn repeat_after_timeout(&mut self, rtt: u64) {
        if let Some(lost) = self.segments.iter().rev().find(|s| s.len > 0).copied() {
            self.now = lost.time + RTO_NS + rtt;
            self.segments.push(Segment { time: self.now, ..lost });
        }
    }

    /// A segment of the response `first..` is lost; three duplicate ACKs with SACK bring it back (RFC 5681 3.2, RFC 2018).
    fn repair(&mut self, rng: &mut Rng, first: usize, upstream: bool, truth: &mut Truth) {
        let end = self.segments.len();
        let lost_at = first + rng.between(1, (end - first) as u64 - 4) as usize;
        let lost = self.segments[lost_at];
        self.acknowledge(first, lost_at, false);
        let left = lost.seq.wrapping_add(u32::from(lost.len));
        let mut duplicates = 0;
        let mut again = self.now + RTO_NS;
        for index in lost_at + 1..end {
            let arrived = self.segments[index];
            let time = arrived.time + self.client_rtt + 20 * US;
            self.push(time, true, ACK, 0);
            let ack = self.segments.len() - 1;
            self.segments[ack].ack = lost.seq;
            self.segments[ack].sack = (left, arrived.seq.wrapping_add(u32::from(arrived.len)));
            duplicates += 1;
            if duplicates == 3 {
                again = time + self.server_rtt;
            }
        }
        self.now = again.max(self.now);
        self.segments.push(Segment { time: self.now, ..lost });
        self.push(self.now + self.client_rtt + 20 * US, true, ACK, 0);
        truth.retransmitted_segments += 1;
        if upstream {
            self.segments.remove(lost_at);
            truth.lost_upstream += 1;
        } else {
            truth.lost_downstream += 1;
        }
    }

    /// FIN, FIN, ACK; one in four begins with the server.
    fn close(&mut self, rng: &mut Rng) {
        let server_first = rng.chance(0.25);
        let (there, back) = if server_first {
            (self.client_rtt, self.server_rtt)
        } else {
            (self.server_rtt, self.client_rtt)
        };
        self.push(self.now, !server_first, FIN | ACK, 0);
        self.push(self.now + there + 60 * US, server_first, FIN | ACK, 0);
        self.push(self.now + there + 60 * US + back, !server_first, ACK, 0);
    }

    /// IP ids count per host, TSval follows the sender's clock, TSecr is what the sender last received.
    fn stamp(&mut self, rng: &mut Rng) {
        let random = rng.bits();
        let mut id = [random as u16, (random >> 16) as u16];
        let base = [random as u32, (random >> 32) as u32];
        let rtt = [self.server_rtt, self.client_rtt];
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            let side = usize::from(segment.from_client);
            // What passed the tap less than a round trip before had not yet reached this host.
            let seen = self.segments[..index]
                .iter()
                .rev()
                .find(|other| other.from_client != segment.from_client && other.time + rtt[side] <= segment.time);
            let tsecr = seen.map_or(0, |other| other.tsval);
            let segment = &mut self.segments[index];
            id[side] = id[side].wrapping_add(1);
            segment.ip_id = id[side];
            segment.tsval = base[side].wrapping_add(((segment.time - rtt[side] / 2) / MS) as u32);
            segment.tsecr = tsecr;
        }
    }
}
