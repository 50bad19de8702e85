//! Whose time it was, told at one tap of a connection: client time if the tap stands at the client, server time if it
//! stands at the server. Both are kept until it is known where the tap stands.
//!
//! An end is charged from the moment when all that the other side sent has arrived (no hole in it) to the moment when
//! it sends data, SYN, FIN or RST of its own. When it goes on after its own data, it is charged from the ACK of all of
//! it, unless that ACK is what it waited for. What is charged to neither is the network's, once: each end's times are
//! measured on the clock of the tap beside it, so no offset of clocks enters.

use crate::tap::Digest;
use weir_record::tcp_flag;

/// Data that follows an ACK by less waited for the ACK.
const ACK_CLOCKED: u64 = 1_000_000;
/// Turns that a fingerprint is made of.
const FINGERPRINT_TURNS: u8 = 4;

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    /// After the last byte seen.
    next: Option<u32>,
    /// Not all before `next` has come: the other side has not acknowledged it since a gap was seen.
    gap: bool,
    /// Highest acknowledgment of this direction's data.
    acked: Option<u32>,
    /// When the other side had acknowledged all of it.
    all_acked: Option<u64>,
    /// The other side's window has been closed since.
    closed: Option<u64>,
    /// Sent again since the other side last sent anything new: something was lost.
    resent: bool,
    /// The other side acknowledged what was not seen here, since anything new was.
    unseen: bool,
    /// A round trip under measurement: end of data, time.
    slot: Option<(u32, u64)>,
    /// Smallest and smoothed round trip from the tap to this direction's receiver and back, ns.
    rtt: Option<(u64, u64)>,
}

/// Times of one flow at one tap, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    halves: [Half; 2],
    /// Sender (1: server) and time of the last packet with data, SYN, FIN or RST that told anything new.
    last: Option<(usize, u64)>,
    first: Option<u64>,
    /// Charged to the client and to the server if the tap is beside them.
    pub beside: [u64; 2],
    /// Charged to the client and to the server if the tap is at the other end: less the round trip between.
    pub across: [u64; 2],
    /// How far these may be wrong.
    pub uncertain: [u64; 2],
    /// Charged to nobody, because the capture missed who sent what in between.
    pub unseen: u64,
    /// Packets of it have no time of their own: the clock was set back.
    pub untimed: bool,
    /// Answers in a row that took no time.
    pub turns_at_once: u8,
    /// A RST ended it.
    reset: bool,
    fingerprint: u64,
    turns: u8,
    turn_bytes: u32,
}

impl Ends {
    /// Take in a TCP packet.
    pub fn packet(&mut self, p: &Digest) {
        let (s, r) = (p.side(), 1 - p.side());
        self.first.get_or_insert(p.time);
        if self.reset {
            return;
        }
        if p.flags & tcp_flag::RST != 0 {
            self.sent(s, p.time, true);
            self.reset = true;
            return;
        }
        // First: an answer that acknowledges is a round trip, too.
        if p.flags & tcp_flag::ACK != 0 {
            self.acknowledge(r, p);
        }
        let end = p.end();
        let mut news = false;
        let mut bytes = 0;
        if end != p.seq {
            let half = &mut self.halves[s];
            let next = *half.next.get_or_insert(p.seq);
            let ahead = end.wrapping_sub(next) as i32;
            if ahead > 0 {
                news = true;
                half.gap |= (p.seq.wrapping_sub(next) as i32) > 0;
                half.unseen &= half.gap;
                bytes = ahead as u32;
                half.next = Some(end);
                if half.slot.is_none() {
                    half.slot = Some((end, p.time));
                }
            } else {
                // Sent again: Karn's rule, and it may fill a gap. Without SACK much is sent again that had come.
                half.slot = None;
                half.resent = true;
                news = half.gap && half.acked.is_none_or(|acked| (end.wrapping_sub(acked) as i32) > 0);
            }
        }
        if news {
            if p.flags & tcp_flag::SYN == 0 {
                self.count_turn(s, bytes);
            }
            self.sent(s, p.time, bytes > 0);
            self.halves[s].all_acked = None;
            self.halves[r].resent = false;
        }
    }

    /// The sender of `p` acknowledges data of side `d`.
    fn acknowledge(&mut self, d: usize, p: &Digest) {
        let half = &mut self.halves[d];
        if half.acked.is_none_or(|acked| (p.ack.wrapping_sub(acked) as i32) > 0) {
            half.acked = Some(p.ack);
            half.unseen |= half.next.is_some_and(|next| (p.ack.wrapping_sub(next) as i32) > 0);
            if half.next.is_some_and(|next| (p.ack.wrapping_sub(next) as i32) >= 0) {
                half.all_acked = Some(p.time);
                half.gap = false;
            }
            if let Some((end, sent)) = half.slot
                && (p.ack.wrapping_sub(end) as i32) >= 0
            {
                half.slot = None;
                let sample = p.time.saturating_sub(sent);
                half.rtt = Some(half.rtt.map_or((sample, sample), |(least, smooth)| {
                    (least.min(sample), smooth - smooth / 8 + sample / 8)
                }));
            }
        }
        if p.flags & tcp_flag::SYN == 0 {
            half.closed = if p.window == 0 {
                half.closed.or(Some(p.time))
            } else {
                None
            };
        }
    }

    /// Side `s` sent something new, or what may fill a gap (`fresh` unset).
    fn sent(&mut self, s: usize, time: u64, fresh: bool) {
        let r = 1 - s;
        if let Some((last, at)) = self.last
            && fresh
        {
            match (last == s, time == at) {
                (false, true) => self.turns_at_once = self.turns_at_once.saturating_add(1),
                (_, false) => self.turns_at_once = 0,
                (true, true) => {}
            }
            if self.halves.iter().any(|half| half.unseen) {
                self.unseen += time.saturating_sub(at);
                for half in &mut self.halves {
                    half.unseen = false;
                }
            } else if last != s {
                if !self.halves[r].gap {
                    self.charge(s, time.saturating_sub(at));
                }
            } else if let Some(closed) = self.halves[s].closed {
                // The receiver did not want more.
                self.charge(r, time.saturating_sub(closed.max(at)));
                self.halves[s].closed = Some(time);
            } else if let Some(acked) = self.halves[s].all_acked
                && time.saturating_sub(acked) >= ACK_CLOCKED
            {
                self.charge(s, time - acked);
            }
        }
        self.last = Some((s, time));
    }

    fn charge(&mut self, end: usize, ns: u64) {
        self.beside[end] += ns;
        // From the tap to that end and back: data of the other side, acknowledged by it.
        let other = &self.halves[1 - end];
        match other.rtt {
            // Time that a repeat took may be anyone's.
            _ if other.resent => self.uncertain[end] += ns,
            Some((least, smooth)) => {
                self.across[end] += ns.saturating_sub(least);
                self.uncertain[end] += (smooth - least.min(smooth)).min(ns);
            }
            None => {
                self.across[end] += ns;
                self.uncertain[end] += ns;
            }
        }
    }

    fn count_turn(&mut self, s: usize, bytes: u32) {
        if self.turns >= FINGERPRINT_TURNS {
            return;
        }
        if self.last.is_some_and(|(last, _)| last != s) && self.turn_bytes > 0 {
            // An odd multiplier, so that the order counts.
            self.fingerprint = (self.fingerprint ^ u64::from(self.turn_bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            self.turns += 1;
            self.turn_bytes = 0;
        }
        self.turn_bytes = self.turn_bytes.saturating_add(bytes);
    }

    /// Packets of both sides were seen.
    pub fn is_two_sided(&self) -> bool {
        self.halves.iter().all(|half| half.next.is_some())
    }

    /// From the tap to the receiver of side `d` and back, smoothed.
    pub fn round_trip(&self, d: usize) -> Option<u64> {
        self.halves[d].rtt.map(|(_, smooth)| smooth)
    }

    /// When its first packet passed.
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// First packet to the last one that told anything new.
    pub fn duration(&self) -> u64 {
        match (self.first, self.last) {
            (Some(first), Some((_, last))) => last.saturating_sub(first),
            _ => 0,
        }
    }

    /// Sizes of the first requests and responses, which no box on the path changes.
    pub fn fingerprint(&self) -> Option<u64> {
        (self.turns >= FINGERPRINT_TURNS).then_some(self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn packet(ms: u64, from_server: bool, seq: u32, len: u32, ack: u32) -> Digest {
        Digest {
            time: ms * MS,
            seq,
            ack,
            len,
            tsval: 0,
            sack: 0,
            flow: 0,
            number: 0,
            window: 1000,
            wire: 0,
            ip_id: 0,
            done: 0,
            flags: tcp_flag::ACK,
            ttl: 64,
            bits: u8::from(from_server),
        }
    }

    /// Without SACK, the server sends again what its client has before what it lacks: 1,000 to 2,000.
    #[test]
    fn what_is_sent_again_for_nothing_fills_no_gap() {
        let mut ends = Ends::default();
        for p in [
            packet(0, false, 0, 100, 0),
            packet(10, true, 0, 1000, 100),
            packet(11, true, 2000, 2000, 100),
            packet(11, false, 100, 0, 1000),
            packet(200, true, 3000, 1000, 100),
            packet(300, true, 1000, 1000, 100),
            packet(300, false, 100, 0, 4000),
            packet(310, false, 100, 100, 4000),
        ] {
            ends.packet(&p);
        }
        assert_eq!(ends.beside, [10 * MS, 10 * MS]);
    }

    /// Nor does an end answer what has not come yet.
    #[test]
    fn an_end_waits_until_all_has_come() {
        let mut ends = Ends::default();
        for p in [
            packet(0, true, 0, 1000, 0),
            packet(1, true, 2000, 1000, 0),
            packet(50, false, 0, 100, 1000),
            packet(90, true, 1000, 1000, 100),
            packet(95, false, 100, 100, 3000),
        ] {
            ends.packet(&p);
        }
        assert_eq!(ends.beside[0], 5 * MS);
    }
}
