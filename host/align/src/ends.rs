//! Whose time it was, told at one tap of a connection: client time if the tap stands at the client, server time if it
//! stands at the server. Both are kept until it is known where the tap stands.
//!
//! An end is charged from the moment when all that the other side sent has arrived (no hole in it) to the moment when
//! it sends data, SYN, FIN or RST of its own. When it goes on after its own data, it is charged from its last packet if
//! nothing held it back there, else from the ACK of all of it, unless that ACK is what it waited for. What is charged to neither is the network's, once: each end's times are
//! measured on the clock of the tap beside it, so no offset of clocks enters. All of it ends with the last data: no one waits for FIN or RST
//! behind that, unless a server sends one in place of an answer.

use crate::tap::Digest;
use weir_analysis::is_timed_out;
use weir_record::{NO_SCALE, tcp_flag};

/// Data that follows an ACK by less waited for the ACK.
const ACK_CLOCKED: u64 = 1_000_000;
/// Part of the wait for an ACK by which a sender goes on late that waited for it.
const LATE: u64 = 4;
/// What a side takes in a segment if its SYN was not seen, and what the timestamps take of that.
const USUAL_MSS: u32 = 1460;
const TIMESTAMPS: u32 = 12;
/// No stack's full segment is shorter.
const FULL_SEGMENT: u32 = 536;
/// Steps of an IP id behind packets that were not seen; a larger one tells nothing.
const SKIPPED: std::ops::RangeInclusive<u16> = 2..=17;
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
    /// Its largest segment.
    largest: u32,
    /// IP id of its newest packet.
    ip_id: u16,
    /// Its last new segment had no PSH: it had more queued (RFC 9293 3.9.1.2: the last queued segment has PSH).
    queued: bool,
    /// Its last one was shorter, and not cut by the window: nothing was left to send.
    partial: bool,
    /// Most bytes under way at once since the last loss.
    most: u32,
    /// The other side's window, bytes; `None`: not known, or its scale is not.
    window: Option<u64>,
    /// The same as its packets write it.
    field: Option<u16>,
    /// The least that was left of it since its last packet.
    room: Option<u64>,
    /// The first ACK of anything new since its last packet: its time, and the bytes that were still under way.
    first_ack: Option<(u64, u32)>,
    /// The last packet of the other side, which may have let this one go on.
    heard: Option<u64>,
    /// A round trip under measurement: end of data, time.
    slot: Option<(u32, u64)>,
    /// Smallest and smoothed round trip from the tap to this direction's receiver and back, ns.
    rtt: Option<(u64, u64)>,
}

impl Half {
    /// Bytes under way.
    fn flight(&self) -> u32 {
        match (self.next, self.acked) {
            (Some(next), Some(acked)) => (next.wrapping_sub(acked) as i32).max(0).cast_unsigned(),
            _ => 0,
        }
    }

    /// What its packets leave of the window.
    fn left(&self) -> Option<u64> {
        self.window.map(|window| window.saturating_sub(self.flight().into()))
    }

    /// What is under way is less than a segment, and as long as the window lets it be. After all was acknowledged, nothing but a timer sends
    /// that (RFC 1122 4.2.3.4): more waited. `Some(false)`: so it is if the sender does not scale the window as this tap would; only
    /// where what it sent before left more, as one length in some hundred is that by chance.
    fn cut(&self) -> Option<bool> {
        let (flight, segment) = (self.flight(), self.largest.min(USUAL_MSS));
        let is_window = self.window == Some(flight.into());
        let is_field = !self.partial && self.field.is_some_and(|field| u32::from(field) == flight);
        (flight < segment && (is_field || is_window)).then_some(is_window)
    }

    /// Since when it has been idle: all was acknowledged, and it went on `time` after that, and not at once.
    fn idle(&self, time: u64) -> Option<u64> {
        let after = self.all_acked.map(|acked| time.saturating_sub(acked));
        after.filter(|ns| *ns >= ACK_CLOCKED)
    }

    /// Its packets between the newest and one with this id were not seen, if its ids count them.
    fn skips(&self, ip_id: u16) -> bool {
        self.ip_id != 0 && SKIPPED.contains(&ip_id.wrapping_sub(self.ip_id))
    }

    /// It went on by itself, `at` its last packet and at `time` so many bytes: why not before?
    fn pause(&self, at: u64, time: u64, bytes: u32) -> Pause {
        let waited = time.saturating_sub(at);
        // Into less than a segment, most senders send nothing before a timer tells them to (RFC 1122 4.2.3.4).
        let least = bytes.max(self.largest.min(USUAL_MSS));
        let is_narrow = self.room.is_some_and(|room| room < least.into());
        // With nothing sent before but a SYN, or after a loss, it is not known what could have been under way.
        if waited < ACK_CLOCKED || self.resent || self.most == 0 || is_narrow {
            return Pause::Held;
        }
        // What waits for room goes on with the first ACK that makes some.
        let let_pass = self
            .first_ack
            .is_some_and(|(acked, flight)| flight + bytes <= self.most && time.saturating_sub(acked) >= ACK_CLOCKED);
        let is_idle = self.idle(time).is_some();
        let is_answer = self.heard.is_some_and(|heard| time.saturating_sub(heard) < ACK_CLOCKED);
        if is_answer && !is_idle {
            // It waited for that ACK (Nagle's algorithm, a full send buffer), or had nothing to send.
            return match let_pass || self.partial && self.all_acked.is_some() {
                true => Pause::Unclear,
                false => Pause::Held,
            };
        }
        // What is paced leaves several times a round trip.
        let is_slow = is_idle || self.rtt.is_some_and(|(_, smooth)| waited >= smooth / 2);
        // A host is late by a small part of the round trip when it wakes whom ACKs let go on (a send buffer goes on when a third of it is free).
        let acked = self.all_acked.or(self.heard);
        let is_late = acked.is_some_and(|acked| time.saturating_sub(acked) < acked.saturating_sub(at) / LATE);
        match (self.partial && self.room.is_some()) || (let_pass && is_slow && !is_late) {
            true => Pause::Own,
            false => Pause::Unclear,
        }
    }
}

/// A FIN or RST without data, of packets that tell anything new.
fn is_lone_end(p: &Digest) -> bool {
    p.len == 0 && p.flags & tcp_flag::SYN == 0
}

/// Whose a pause of a sender is that went on by itself.
enum Pause {
    /// Its own: it had nothing to send.
    Own,
    /// Its own, or it paced what it had, or waited for an ACK.
    Unclear,
    /// It waited for room.
    Held,
}

/// Whose time a flow has been so far, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Charges {
    /// Charged to the client and to the server if the tap is beside them.
    pub beside: [u64; 2],
    /// Charged to the client and to the server if the tap is at the other end: less the round trip between.
    pub across: [u64; 2],
    /// How far these may be wrong.
    pub uncertain: [u64; 2],
    /// Pauses of client and server, if the tap is beside them, that are not charged to them and may be theirs.
    pub unclear: [u64; 2],
    /// Charged to nobody, because the capture missed who sent what in between.
    pub unseen: u64,
    /// The whole: from the first packet to the last one that told anything new, without waits before a FIN or RST alone
    /// behind its sender's own data, which are nobody's.
    pub whole: u64,
}

/// Times of one flow at one tap, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    halves: [Half; 2],
    /// Sender (1: server) and time of the last packet with data, SYN, FIN or RST that told anything new.
    last: Option<(usize, u64)>,
    first: Option<u64>,
    charges: Charges,
    /// The same when nobody had anything left to say: what came since were FIN and RST alone, for which no one waits.
    said: Option<Charges>,
    /// Who sent the last of what took time: SYN, data, or in place of an answer a FIN or RST.
    spoke: usize,
    /// What the windows of client and server are shifted by, if SYNs tell.
    scales: Option<[u8; 2]>,
    /// Bytes of a full segment, options included.
    mss: u32,
    /// Packets of it have no time of their own: the clock was set back.
    pub untimed: bool,
    /// Answers in a row that took no time.
    pub turns_at_once: u8,
    /// A RST ended it.
    reset: bool,
    fingerprint: u64,
    /// Who sent the first data.
    opener: u8,
    turns: u8,
    turn_bytes: u32,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            halves: Default::default(),
            last: None,
            first: None,
            charges: Charges::default(),
            said: None,
            spoke: 0,
            scales: None,
            mss: USUAL_MSS,
            untimed: false,
            turns_at_once: 0,
            reset: false,
            fingerprint: 0,
            opener: 0,
            turns: 0,
            turn_bytes: 0,
        }
    }
}

impl Ends {
    /// What the SYNs of both sides agreed on: window scales ([`NO_SCALE`]: none) and MSS (0: none).
    pub fn set_up(&mut self, scales: [u8; 2], mss: [u16; 2]) {
        self.scales = Some(if scales.contains(&NO_SCALE) { [0; 2] } else { scales });
        let least = mss.into_iter().filter(|mss| *mss > 0).min();
        self.mss = least.map_or(USUAL_MSS, u32::from).max(FULL_SEGMENT);
    }

    /// Take in a TCP packet.
    pub fn packet(&mut self, p: &Digest) {
        let (s, r) = (p.side(), 1 - p.side());
        self.first.get_or_insert(p.time);
        if self.reset {
            return;
        }
        if p.flags & tcp_flag::RST != 0 {
            self.sent(s, p, Some(0));
            self.halves[s].next.get_or_insert(p.seq);
            self.reset = true;
            return;
        }
        // First: an answer that acknowledges is a round trip, too.
        if p.flags & tcp_flag::ACK != 0 {
            self.acknowledge(r, p);
        }
        let end = p.end();
        let mut news = false;
        let (mut bytes, mut shorter) = (0, false);
        if end != p.seq {
            let is_shorter = self.is_shorter(p);
            let half = &mut self.halves[s];
            let next = *half.next.get_or_insert(p.seq);
            let ahead = end.wrapping_sub(next) as i32;
            if ahead > 0 {
                news = true;
                shorter = !half.gap && is_shorter;
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
                half.most = 0;
                news = half.gap && half.acked.is_none_or(|acked| (end.wrapping_sub(acked) as i32) > 0);
            }
        }
        if news {
            if p.flags & tcp_flag::SYN == 0 {
                self.count_turn(s, bytes);
            }
            self.sent(s, p, (bytes > 0).then_some(p.len));
            let half = &mut self.halves[s];
            half.all_acked = None;
            half.first_ack = None;
            half.largest = half.largest.max(p.len);
            half.partial = shorter && half.cut().is_none() && p.flags & tcp_flag::SYN == 0;
            half.queued = p.flags & (tcp_flag::PSH | tcp_flag::SYN | tcp_flag::FIN) == 0;
            half.most = half.most.max(half.flight());
            half.room = half.left();
            if std::mem::take(&mut self.halves[r].resent) {
                self.halves[r].most = 0;
            }
        }
        self.halves[s].ip_id = p.ip_id;
    }

    /// Whether a segment is shorter than its sender fills them. One before segmentation offload is as many full ones as it holds.
    fn is_shorter(&self, p: &Digest) -> bool {
        let largest = self.halves[p.side()].largest;
        if largest <= self.mss {
            return p.len < largest.max(FULL_SEGMENT);
        }
        let full = self.mss - if p.timestamps() { TIMESTAMPS } else { 0 };
        largest.is_multiple_of(full) && !p.len.is_multiple_of(full)
    }

    /// The sender of `p` acknowledges data of side `d`.
    fn acknowledge(&mut self, d: usize, p: &Digest) {
        let half = &mut self.halves[d];
        let is_syn = p.flags & tcp_flag::SYN != 0;
        let scale = if is_syn {
            Some(0)
        } else {
            self.scales.map(|scales| scales[p.side()])
        };
        half.window = scale.map(|scale| u64::from(p.window) << scale);
        half.field = Some(p.window);
        half.heard = Some(p.time);
        if half.acked.is_none_or(|acked| (p.ack.wrapping_sub(acked) as i32) > 0) {
            half.acked = Some(p.ack);
            let flight = half.flight();
            half.first_ack.get_or_insert((p.time, flight));
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
        half.room = half.room.zip(half.left()).map(|(room, left)| room.min(left));
        if !is_syn {
            half.closed = if p.window == 0 {
                half.closed.or(Some(p.time))
            } else {
                None
            };
        }
    }

    /// Side `s` sent so many bytes, of which some are new; or what may fill a gap (`fresh` not set).
    fn sent(&mut self, s: usize, p: &Digest, fresh: Option<u32>) {
        // A server that closes, or resets, instead of an answer took its time for it.
        if !is_lone_end(p) || (s == 1 && self.spoke == 0) {
            self.said = None;
            self.spoke = s;
        } else if self.last.is_some_and(|(last, _)| last != s) {
            self.said.get_or_insert(self.charges);
        }
        if let Some((last, at)) = self.last {
            self.charges.whole += p.time.saturating_sub(at);
            if let Some(bytes) = fresh {
                self.went_on((last, at), s, p, bytes);
            }
        }
        self.last = Some((s, p.time));
    }

    /// Side `s` sends so many bytes that are new, behind what `last` sent then.
    fn went_on(&mut self, (last, at): (usize, u64), s: usize, p: &Digest, bytes: u32) {
        let (r, time) = (1 - s, p.time);
        let waited = time.saturating_sub(at);
        match (last == s, time == at) {
            (false, true) => self.turns_at_once = self.turns_at_once.saturating_add(1),
            (_, false) => self.turns_at_once = 0,
            (true, true) => {}
        }
        let cut = self.halves[s].cut().filter(|_| bytes > 0);
        if self.halves.iter().any(|half| half.unseen) {
            self.charges.unseen += waited;
            for half in &mut self.halves {
                half.unseen = false;
            }
        } else if last != s {
            if !self.halves[r].gap {
                match cut {
                    Some(true) => self.charges.unclear[s] += waited,
                    _ => self.charge(s, waited),
                }
            }
        } else if let Some(closed) = self.halves[s].closed {
            // The receiver did not want more.
            self.charge(r, time.saturating_sub(closed.max(at)));
            self.halves[s].closed = Some(time);
        } else if let (Some(is_sure), Some(_)) = (cut, self.halves[s].idle(time)) {
            // Where what came before went whole, it is not known how long this one has waited.
            if !is_sure || self.halves[s].partial {
                self.charges.unclear[s] += waited;
            }
        } else {
            let pause = self.halves[s].pause(at, time, bytes);
            let after = self.halves[s].idle(time);
            let before = waited.saturating_sub(after.unwrap_or(0));
            if is_lone_end(p) {
                let held = if matches!(pause, Pause::Held) { before } else { 0 };
                self.closing(s, before - held + after.unwrap_or(0));
            } else {
                if let Some(ns) = after {
                    self.charge_pause(s, p, (waited, ns));
                }
                match pause {
                    Pause::Own => self.charges.beside[s] += before,
                    Pause::Unclear => self.charges.unclear[s] += before,
                    Pause::Held => {}
                }
            }
        }
    }

    /// Side `s` waited so long behind its own data for a FIN or RST alone, which brings nothing that took time. A server had answered, and
    /// nobody had more to say; a client gave up waiting, or asked for nothing.
    fn closing(&mut self, s: usize, ns: u64) {
        self.charges.whole = self.charges.whole.saturating_sub(ns);
        if s == 0 {
            self.charges.unclear[s] += ns;
            self.charges.uncertain[s] += ns;
        }
    }

    /// Side `s` went on behind its own data, `waited` ns later and `idle` ns after the ACK of all of it. Where it had more queued, a timer sent that:
    /// seen across the path, the first copy may have been lost before the tap, and was if ids were skipped.
    fn charge_pause(&mut self, s: usize, p: &Digest, (waited, idle): (u64, u64)) {
        let [client, server] = self.halves.each_ref().map(|half| half.rtt);
        let half = &self.halves[s];
        let trip = client
            .zip(server)
            .map(|((to_client, _), (to_server, _))| to_client + to_server);
        let is_late = half.queued && trip.is_some_and(|trip| is_timed_out(waited, trip));
        if is_late && half.skips(p.ip_id) && p.flags & tcp_flag::PSH != 0 {
            self.charges.beside[s] += idle;
            return;
        }
        let uncertain = self.charges.uncertain[s];
        self.charge(s, idle);
        if is_late {
            self.charges.uncertain[s] = uncertain + idle;
        }
    }

    fn charge(&mut self, end: usize, ns: u64) {
        self.charges.beside[end] += ns;
        // From the tap to that end and back: data of the other side, acknowledged by it.
        let other = &self.halves[1 - end];
        match other.rtt {
            // Time that a repeat took may be anyone's.
            _ if other.resent => self.charges.uncertain[end] += ns,
            Some((least, smooth)) => {
                self.charges.across[end] += ns.saturating_sub(least);
                self.charges.uncertain[end] += (smooth - least.min(smooth)).min(ns);
            }
            None => {
                self.charges.across[end] += ns;
                self.charges.uncertain[end] += ns;
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
        if self.turns == 0 && self.turn_bytes == 0 {
            self.opener = s as u8;
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

    /// Whose time it was, until nobody had anything left to say.
    pub fn charges(&self) -> Charges {
        self.said.unwrap_or(self.charges)
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

    /// The side that sent the first of them.
    pub const fn opener(&self) -> u8 {
        self.opener
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
        assert_eq!(ends.charges().beside, [10 * MS, 10 * MS]);
    }

    /// Full segments of 1,000 bytes: a block of two and a half goes out, then another one so many ms later. When its ACKs come is in ms, too.
    fn two_blocks(pause: u64, acks: &[(u64, u32)]) -> Ends {
        let mut ends = Ends::default();
        ends.set_up([7; 2], [1000; 2]);
        let mut all = vec![
            packet(0, true, 0, 1000, 0),
            packet(0, true, 1000, 1000, 0),
            packet(0, true, 2000, 500, 0),
        ];
        all.extend(acks.iter().map(|&(ms, ack)| packet(ms, false, 0, 0, ack)));
        all.push(packet(pause, true, 2500, 1000, 0));
        all.sort_by_key(|p| p.time);
        // The handshake, and a first answer.
        for p in [
            packet(0, false, u32::MAX, 1, 0),
            packet(0, true, u32::MAX, 1, 0),
            packet(0, false, 0, 0, 0),
        ] {
            ends.packet(&p);
        }
        all.iter().for_each(|p| ends.packet(p));
        ends
    }

    /// Who ends with less than a segment has no more, and what comes without an ACK was not held back.
    #[test]
    fn a_sender_that_has_no_more_is_charged_from_its_last_packet() {
        for acks in [&[][..], &[(60, 2000)], &[(60, 2000), (62, 2500)]] {
            let ends = two_blocks(100, acks);
            assert_eq!(
                (ends.charges().beside, ends.charges().unclear),
                ([0, 100 * MS], [0; 2]),
                "{acks:?}"
            );
        }
        // Across the path the time of the ACK is all that is known.
        assert_eq!(two_blocks(100, &[(60, 2500)]).charges().across[1], 40 * MS);
    }

    /// Who closes behind its own data gave up waiting for the other end, or nobody had anything to say: neither took the time for it.
    #[test]
    fn what_passes_before_a_lone_end_is_nobody_s() {
        for (flag, s) in [(tcp_flag::FIN, 1), (tcp_flag::RST, 1), (tcp_flag::RST, 0)] {
            let mut ends = Ends::default();
            for p in [
                packet(0, false, u32::MAX, 1, 0),
                packet(0, true, u32::MAX, 1, 0),
                packet(0, false, 0, 0, 0),
                packet(10, false, 0, 100, 0),
                packet(10, true, 0, 0, 100),
            ] {
                ends.packet(&p);
            }
            if s == 1 {
                ends.packet(&packet(30, true, 0, 1000, 100));
                ends.packet(&packet(30, false, 100, 0, 1000));
            }
            let last = packet(30_030, s == 1, [100, 1000][s], 0, [0, 100][s]);
            ends.packet(&Digest {
                flags: last.flags | flag,
                ..last
            });
            let (beside, wait) = [([10, 0], 30_020), ([10, 20], 30_000)][s];
            assert_eq!(ends.charges().beside, beside.map(|ms| ms * MS), "{flag}");
            assert_eq!(ends.charges().whole, (30_030 - wait) * MS, "{flag}");
            // The client may have been waiting for an answer.
            assert_eq!(
                ends.charges().unclear,
                [if s == 0 { wait * MS } else { 0 }, 0],
                "{flag}"
            );
        }
    }

    /// Nobody waits for the two FINs after an answer; one in place of an answer took its sender's time.
    #[test]
    fn what_passes_after_the_last_answer_is_nobody_s() {
        let fin = |p: Digest| Digest {
            flags: p.flags | tcp_flag::FIN,
            ..p
        };
        let mut ends = Ends::default();
        for p in [packet(0, false, 0, 100, 0), packet(30, true, 0, 1000, 100)] {
            ends.packet(&p);
        }
        let answered = ends.charges();
        ends.packet(&fin(packet(530, false, 100, 0, 1000)));
        ends.packet(&fin(packet(570, true, 1000, 0, 101)));
        assert_eq!((ends.charges().beside, ends.charges().whole), ([0, 30 * MS], 30 * MS));
        assert_eq!(ends.charges().unclear, answered.unclear);

        // The client has no more requests; the server says without an answer that it is done.
        let mut ends = Ends::default();
        for p in [
            packet(0, false, 0, 100, 0),
            fin(packet(1, false, 100, 0, 0)),
            fin(packet(900, true, 0, 0, 101)),
            packet(940, false, 101, 0, 1),
        ] {
            ends.packet(&p);
        }
        assert_eq!((ends.charges().beside[1], ends.charges().whole), (899 * MS, 900 * MS));
    }

    /// It may have come for the ACK of all, or at that moment by chance.
    #[test]
    fn a_sender_that_goes_on_with_an_ack_may_have_waited_for_it() {
        let ends = two_blocks(100, &[(60, 2000), (100, 2500)]);
        assert_eq!((ends.charges().beside, ends.charges().unclear), ([0; 2], [0, 100 * MS]));
        // The first ACK made room: so it goes with a congestion window.
        let ends = two_blocks(60, &[(60, 2000)]);
        assert_eq!((ends.charges().beside, ends.charges().unclear), ([0; 2], [0; 2]));
    }

    /// The server, 40 ms away, has more to send behind its first segment (`flags`), and that comes 400 ms after the ACK of it, `step` IP ids later.
    #[test]
    fn what_was_queued_and_lost_before_the_tap_is_no_time_of_its_sender() {
        let across = |flags: u8, step: u16| {
            let mut ends = Ends::default();
            for p in [
                packet(0, false, u32::MAX, 1, 0),
                packet(40, true, u32::MAX, 1, 0),
                packet(40, false, 0, 0, 0),
                packet(41, false, 0, 100, 0),
            ] {
                ends.packet(&p);
            }
            let first = Digest {
                ip_id: 7,
                flags: tcp_flag::ACK | flags,
                ..packet(81, true, 0, 1000, 100)
            };
            let last = Digest {
                ip_id: 7 + step,
                flags: tcp_flag::ACK | tcp_flag::PSH,
                ..packet(481, true, 1000, 500, 100)
            };
            ends.packet(&first);
            ends.packet(&packet(81, false, 100, 0, 1000));
            ends.packet(&last);
            [ends.charges().across[1] / MS, ends.charges().uncertain[1] / MS]
        };
        let answer = across(0, 2)[0];
        assert!(answer < 5, "{answer}");
        assert_eq!(across(0, 2)[1], 0);
        // It may as well have waited at the server.
        assert_eq!(across(0, 1), [answer + 360, 400]);
        // It had no more.
        assert_eq!(across(tcp_flag::PSH, 2), [answer + 360, 0]);
    }

    /// A window that has less than a segment is the receiver's, until it opens.
    #[test]
    fn a_sender_that_waits_for_the_window_is_not_charged_from_its_last_packet() {
        let narrow = |window: u16| {
            let mut ends = two_blocks(1, &[]);
            for (ms, window) in [(60, window), (99, 1000)] {
                let ack = packet(ms, false, 0, 0, 3500);
                ends.packet(&Digest { window, ..ack });
            }
            ends.packet(&packet(100, true, 3500, 500, 0));
            ends.charges().beside[1]
        };
        // 1 << 7 is 128 bytes; the block before it went at once.
        assert_eq!(narrow(1), MS + 40 * MS);
        assert_eq!(narrow(1000), MS + 99 * MS);
    }

    /// Three full segments of 1,000 bytes, and then what a window of 75 lets go, each 200 ms after the ACK of all before it; `last` bytes are left.
    fn dribble(scale: u8, last: u32) -> (Ends, u64) {
        let mut ends = Ends::default();
        ends.set_up([scale; 2], [1000; 2]);
        let ack = |ms, ack| Digest {
            window: 75,
            ..packet(ms, false, 0, 0, ack)
        };
        for p in [
            packet(0, false, u32::MAX, 1, 0),
            packet(0, true, u32::MAX, 1, 0),
            packet(0, false, 0, 0, 0),
        ] {
            ends.packet(&p);
        }
        for k in 0..3 {
            ends.packet(&packet(0, true, 1000 * k, 1000, 0));
        }
        let (mut now, mut next) = (60, 3000);
        for _ in 0..3 {
            ends.packet(&ack(now, next));
            ends.packet(&packet(now + 200, true, next, 75, 0));
            (now, next) = (now + 260, next + 75);
        }
        ends.packet(&ack(now, next));
        // It fits: nothing waits.
        ends.packet(&packet(now, true, next, last, 0));
        ends.packet(&ack(now + 60, next + last));
        (ends, now)
    }

    /// What waits before a window of less than a segment is not its sender's.
    #[test]
    fn a_sender_that_fills_a_small_window_had_more() {
        let (ends, _) = dribble(0, 30);
        assert_eq!((ends.charges().beside, ends.charges().unclear), ([0; 2], [0; 2]));
        // By its scale the window has room: the sender may know of another one, or have written pieces of this length.
        let (mut ends, now) = dribble(7, 30);
        assert_eq!(
            (ends.charges().beside, ends.charges().unclear),
            ([0; 2], [0, (now - 60) * MS])
        );
        // One alone is so by chance: nothing was left before it.
        ends.packet(&packet(now + 2000, true, 3255, 75, 0));
        assert_eq!(
            (ends.charges().beside, ends.charges().unclear),
            ([0, 2000 * MS], [0, (now - 60) * MS])
        );
    }

    /// It may have had nothing left for most of that time.
    #[test]
    fn what_fills_a_small_window_after_a_rest_has_waited_a_part_of_it() {
        let (mut ends, now) = dribble(0, 30);
        ends.packet(&packet(now + 2000, true, 3255, 75, 0));
        assert_eq!(
            (ends.charges().beside, ends.charges().unclear),
            ([0; 2], [0, 2000 * MS])
        );
        // So may the first piece of an answer.
        let (mut ends, now) = dribble(0, 30);
        let request = packet(now + 100, false, 0, 100, 3255);
        ends.packet(&Digest { window: 75, ..request });
        ends.packet(&packet(now + 400, true, 3255, 75, 100));
        assert_eq!(
            (ends.charges().beside, ends.charges().unclear),
            ([100 * MS, 0], [0, 300 * MS])
        );
    }

    /// Full segments only, and then the next one so long after the ACK of all of them, which took 80 ms.
    #[test]
    fn a_host_that_is_late_with_whom_an_ack_woke_has_not_been_idle_before_it() {
        for (late, charges) in [(3, (3, 80)), (30, (110, 0))] {
            let mut ends = Ends::default();
            ends.set_up([7; 2], [1000; 2]);
            for p in [
                packet(0, false, u32::MAX, 1, 0),
                packet(0, true, u32::MAX, 1, 0),
                packet(0, false, 0, 0, 0),
                packet(0, true, 0, 1000, 0),
                packet(0, true, 1000, 1000, 0),
                packet(80, false, 0, 0, 2000),
                packet(80 + late, true, 2000, 1000, 0),
            ] {
                ends.packet(&p);
            }
            let (own, unclear) = charges;
            assert_eq!(ends.charges().beside, [0, own * MS], "{late}");
            assert_eq!(ends.charges().unclear, [0, unclear * MS], "{late}");
        }
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
        assert_eq!(ends.charges().beside[0], 5 * MS);
    }
}
