//! The TCP handshake: outcome, description, times (`docs/src/transactions.md`).

use weir_record::{NO_SCALE, Setup, SetupEnd, SetupMore, setup_bit};

use crate::limits::TIMESTAMPS;
use crate::message::seconds;
use crate::route::{Host, PLACES, Placed};
use crate::rtt::LONGEST;
use crate::signature::decimal;

/// RFC 6298 2.1: the retransmission timer before the first RTT sample. A RST that comes later than
/// this after the last SYN is no answer to it.
pub(crate) const FIRST_TIMEOUT: u64 = 1_000_000_000;
/// The same in older stacks (RFC 2988 2.1); Windows kept it.
const LONG_FIRST_TIMEOUT: u64 = 3_000_000_000;

/// How the handshake went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It was open before the input began.
    #[default]
    Midstream,
    /// As it should.
    Ok,
    /// A SYN or SYN-ACK came again.
    Retransmitted,
    /// RST at once.
    Refused,
    /// No answer.
    Ignored,
    /// RST long after the last SYN.
    ResetLate,
}

impl Outcome {
    /// Name in the messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Midstream => "MIDSTREAM",
            Self::Ok => "OK",
            Self::Retransmitted => "RETRANSMITTED",
            Self::Refused => "REFUSED",
            Self::Ignored => "IGNORED",
            Self::ResetLate => "RESET_LATE",
        }
    }
}

/// Whose SYN has no window scale at the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unscaled {
    Both,
    /// The SYN-ACK has one nevertheless.
    Client,
    /// The client had offered it.
    Server,
}

/// What a flow keeps of its handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetupState {
    /// ns; `u64::MAX` is not known. Before the SETUP record: time of the last SYN repeat seen.
    response: u64,
    /// ns; `u64::MAX` is not known. Before the SETUP record: time between the last two SYNs.
    end: u64,
    bits: u16,
    pub client_mss: u16,
    pub server_mss: u16,
    client_window: u16,
    server_window: u16,
    client_scale: u8,
    server_scale: u8,
    pub syn_count: u8,
    pub syn_ack_count: u8,
    pub outcome: Outcome,
    /// What is known beside the bits of the record.
    known: u8,
}

const UNKNOWN: u64 = u64::MAX;
/// In `SetupState::known`: the SETUP record has come.
const DONE: u8 = 1 << 0;
/// What came again came after the end of a handshake without repeats.
const LATE_REPEAT: u8 = 1 << 1;
/// The input ended before an answer to the only SYN, or to the only SYN-ACK, was late.
const PENDING: u8 = 1 << 2;
/// Both agree on a window scale, and the client's first ACK does not look scaled.
const BARE_ACK: u8 = 1 << 3;
/// The server has answered the window scale of another SYN with one.
const SERVER_SCALES: u8 = 1 << 4;
/// The server's timer sent the SYN-ACK, as the time tells that it took; one before it was lost.
const LATE_ANSWER: u8 = 1 << 5;
/// The SYN-ACK acknowledges the data of the SYN.
const TOOK_DATA: u8 = 1 << 6;
/// Scales from which on that shows: there are stacks that offer eight times as much in their first ACK as in their SYN.
const PLAIN: u8 = 4;
/// Windows of SYNs that are no full buffer tell nothing.
const ROOM: u16 = 8192;

/// Times of the SETUP transaction, ns and TAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetupTimes {
    pub first_syn: u64,
    pub request: u64,
    pub server: Option<u64>,
    pub response: Option<u64>,
    pub end: Option<u64>,
    pub syn_payload: u16,
}

impl SetupState {
    /// A SYN was repeated while the setup is pending.
    pub fn syn_repeat(&mut self, time: u64, flow_opened: u64) {
        if !self.is_done() {
            let previous = if self.response == 0 { flow_opened } else { self.response };
            self.end = time.saturating_sub(previous);
            self.response = time;
        }
    }

    /// The input ended at `time`; the first of SYN and SYN-ACK came at `first`. Until the timer of the last one's sender has
    /// run out nobody can say that it was ignored.
    pub fn input_ended(&mut self, first: u64, time: u64) {
        let alone = self.outcome == Outcome::Ignored && self.syn_count <= 1 && self.syn_ack_count <= 1;
        let last = first.saturating_add(self.response_ns().unwrap_or(0));
        if self.is_done() && alone && time.saturating_sub(last) < LONG_FIRST_TIMEOUT {
            self.known |= PENDING;
        }
    }

    /// Whether the input ended before an answer was late.
    pub fn is_pending(&self) -> bool {
        self.is(PENDING)
    }

    /// The SETUP record, with the SYNs and SYN-ACKs that were sent. Returns the times of the SETUP transaction when the SYN
    /// was seen.
    pub fn record(&mut self, end_code: u8, s: &Setup, more: &SetupMore) -> Option<SetupTimes> {
        let last_interval = self.end;
        let has = |bit: u16| s.bits & bit != 0;
        let syn = has(setup_bit::SYN);
        let answered = has(setup_bit::SYN_ACK);
        let ended = SetupEnd::from_u8(end_code);
        let finish = match ended {
            Some(SetupEnd::Done | SetupEnd::Reset) if s.end != 0 => Some(s.end),
            _ => None,
        };
        let repeated = s.syn_count > 1 || s.syn_ack_count > 1;
        self.outcome = match ended {
            Some(SetupEnd::Done | SetupEnd::OneSided) if repeated => Outcome::Retransmitted,
            // The server's next packet shows that the client answered.
            Some(SetupEnd::Done | SetupEnd::OneSided) => Outcome::Ok,
            Some(SetupEnd::Reset) => {
                // After a SYN-ACK the RST answers that.
                let asked = if answered { s.syn_ack } else { s.last_syn };
                if s.end.saturating_sub(asked) < FIRST_TIMEOUT {
                    Outcome::Refused
                } else {
                    Outcome::ResetLate
                }
            }
            _ => Outcome::Ignored,
        };
        let answer = if answered { Some(s.syn_ack) } else { finish };
        let response = answer.filter(|_| syn).map(|t| t.saturating_sub(s.last_syn));
        let total = match finish {
            Some(t) if syn => Some(t.saturating_sub(s.first_syn)),
            // The client gives up when the next SYN would be due: it doubles its interval
            // (RFC 6298 5.5). One SYN alone tells nothing.
            None if syn && !answered && self.outcome == Outcome::Ignored && s.syn_count > 1 && last_interval > 0 => {
                Some(
                    s.last_syn
                        .saturating_sub(s.first_syn)
                        .saturating_add(last_interval.saturating_mul(2)),
                )
            }
            _ => None,
        };
        let scaled = syn && answered && more.server_scale != NO_SCALE;
        let is_bare = scaled
            && (PLAIN..NO_SCALE).contains(&more.client_scale)
            && ended == Some(SetupEnd::Done)
            && more.client_window >= ROOM
            && s.end_window >= more.client_window / 10 * 9;
        *self = Self {
            response: response.unwrap_or(UNKNOWN),
            end: total.unwrap_or(UNKNOWN),
            bits: s.bits,
            client_mss: more.client_mss,
            server_mss: more.server_mss,
            client_window: more.client_window,
            server_window: more.server_window,
            client_scale: if syn { more.client_scale } else { NO_SCALE },
            server_scale: if answered { more.server_scale } else { NO_SCALE },
            syn_count: s.syn_count,
            syn_ack_count: s.syn_ack_count,
            outcome: self.outcome,
            known: DONE | self.known & (LATE_ANSWER | TOOK_DATA) | if is_bare { BARE_ACK } else { 0 },
        };
        syn.then(|| SetupTimes {
            first_syn: s.first_syn,
            request: s.last_syn.saturating_sub(s.first_syn),
            server: response,
            response: match finish {
                Some(t) if answered => Some(t.saturating_sub(s.syn_ack)),
                _ => None,
            },
            end: total,
            syn_payload: s.syn_payload,
        })
    }

    /// A SYN or SYN-ACK (side 1) came again after the SETUP record.
    pub fn late_repeat(&mut self, side: usize) {
        let count = if side == 0 {
            &mut self.syn_count
        } else {
            &mut self.syn_ack_count
        };
        *count = count.saturating_add(1);
        if self.outcome == Outcome::Ok {
            self.outcome = Outcome::Retransmitted;
            self.known |= LATE_REPEAT;
        }
    }

    /// Whether the server's timer sent the SYN-ACK: then the time that it took is no round trip.
    pub const fn set_late_answer(&mut self, is_late: bool) {
        self.known = self.known & !LATE_ANSWER | if is_late { LATE_ANSWER } else { 0 };
    }

    /// See [`Self::set_late_answer`].
    pub const fn has_late_answer(&self) -> bool {
        self.is(LATE_ANSWER)
    }

    /// The SYN-ACK acknowledges what came on the SYN (RFC 7413): the server had it then.
    pub const fn set_took_data(&mut self) {
        self.known |= TOOK_DATA;
    }

    /// See [`Self::set_took_data`].
    pub const fn took_data(&self) -> bool {
        self.is(TOOK_DATA)
    }

    /// The client's first ACK repeats the window of its SYN, which is never scaled, although both agree on a scale: it
    /// would have grown by 2^scale within a round trip.
    pub fn is_ack_bare(&self) -> bool {
        self.is(BARE_ACK)
    }

    /// Who left the window scale out, so that no window of the connection is more than 65,535 bytes (RFC 7323 2.2); `None`: nobody, or that is
    /// not known.
    pub const fn unscaled(&self) -> Option<Unscaled> {
        if !(self.has(setup_bit::SYN) && self.answered()) || self.is_cut() {
            return None;
        }
        match (self.client_scale == NO_SCALE, self.server_scale == NO_SCALE) {
            (true, true) => Some(Unscaled::Both),
            (true, false) => Some(Unscaled::Client),
            (false, true) => Some(Unscaled::Server),
            (false, false) => None,
        }
    }

    /// SYN and SYN-ACK have a window scale.
    pub const fn is_scaled(&self) -> bool {
        self.client_scale != NO_SCALE && self.server_scale != NO_SCALE
    }

    /// The server has answered the window scale of another SYN with one.
    pub const fn set_server_scales(&mut self) {
        self.known |= SERVER_SCALES;
    }

    /// See [`Self::set_server_scales`].
    pub const fn server_scales(&self) -> bool {
        self.is(SERVER_SCALES)
    }

    const fn has(&self, bit: u16) -> bool {
        self.bits & bit != 0
    }

    const fn is(&self, bit: u8) -> bool {
        self.known & bit != 0
    }

    /// The SETUP record has come.
    pub const fn is_done(&self) -> bool {
        self.is(DONE)
    }

    /// SYN or SYN-ACK was seen.
    pub const fn seen(&self) -> bool {
        self.has(setup_bit::SYN | setup_bit::SYN_ACK)
    }

    pub const fn answered(&self) -> bool {
        self.has(setup_bit::SYN_ACK)
    }

    /// Nothing answered the SYN.
    pub fn is_unanswered(&self) -> bool {
        self.outcome == Outcome::Ignored && !self.answered()
    }

    /// SETUP was a reset by the server.
    pub const fn reset_by_server(&self) -> bool {
        matches!(self.outcome, Outcome::Refused | Outcome::ResetLate) && self.has(setup_bit::RST_BY_SERVER)
    }

    /// How it failed, as far as its packets alone tell.
    pub const fn failure(&self) -> Option<&'static str> {
        Some(match (self.outcome, self.answered()) {
            (Outcome::Refused | Outcome::ResetLate, true) if self.reset_by_server() => {
                "The server reset the connection after its SYN-ACK."
            }
            (Outcome::Refused, _) if self.reset_by_server() => {
                "The server answered by a reset: nothing listens on that port, or a firewall refuses it."
            }
            (Outcome::ResetLate, _) if self.reset_by_server() => {
                "The server's reset came a second or more after the SYN; what it may have sent before did not pass the tap."
            }
            (Outcome::Refused | Outcome::ResetLate, _) => "The client reset the connection before it was set up.",
            (Outcome::Ignored, false) => {
                "No answer to the SYN passed the tap: one of the two was lost, a firewall or a full queue drops it, or the \
                 capture ended before; nothing tells which."
            }
            (Outcome::Ignored, true) => {
                "The client did not answer the SYN-ACK, nor did it send its SYN again: it went away or was never there, or \
                 one of the two was lost, or the capture ended before; nothing tells which."
            }
            _ => return None,
        })
    }

    /// Last SYN before the answer to the answer, s.
    pub fn response_seconds(&self) -> Option<f64> {
        self.response_ns().map(seconds)
    }

    /// Last SYN before the answer to the answer, ns.
    pub fn response_ns(&self) -> Option<u64> {
        (self.is_done() && self.response != UNKNOWN).then_some(self.response)
    }

    /// First SYN to the end, s.
    pub fn end_seconds(&self) -> Option<f64> {
        self.end_ns().map(seconds)
    }

    /// First SYN to the end, ns.
    pub fn end_ns(&self) -> Option<u64> {
        (self.is_done() && self.end != UNKNOWN).then_some(self.end)
    }

    /// Round trip over the whole path in ns, when the handshake gave a clean one: first SYN to the
    /// client's ACK, each sent once until then.
    pub fn path_rtt(&self) -> Option<u64> {
        let once = self.outcome == Outcome::Ok || self.is(LATE_REPEAT);
        let clean = self.is_done() && once && self.answered() && !self.has_late_answer() && self.end != UNKNOWN;
        clean.then_some(self.end).filter(|rtt| *rtt < LONGEST)
    }

    /// Options of its SYN or SYN-ACK were not all captured.
    pub const fn is_cut(&self) -> bool {
        self.has(setup_bit::CLIENT_OPTIONS_CUT | setup_bit::SERVER_OPTIONS_CUT)
    }

    /// Both sides use ECN as of RFC 3168 (later ways of counting marks use its flags otherwise, and another SYN-ACK).
    pub fn has_ecn(&self) -> bool {
        self.is_done() && self.has(setup_bit::CLIENT_ECN) && self.has(setup_bit::SERVER_ECN)
    }

    /// Whether the handshake timed the way from the tap to the receiver of a side's packets: a SYN or SYN-ACK that was sent
    /// once was answered.
    pub const fn has_timed(&self, side: usize) -> bool {
        if !self.is_done() || !self.answered() {
            return false;
        }
        if side == 0 && self.has_late_answer() {
            return false;
        }
        let (sent, answer) = if side == 0 {
            (self.syn_count, self.response)
        } else {
            (self.syn_ack_count, self.end)
        };
        answer != UNKNOWN && (sent <= 1 || self.is(LATE_REPEAT))
    }

    /// Window of a side's SYN or SYN-ACK, which is never scaled, bytes; 0: not seen.
    pub fn first_window(&self, side: usize) -> u32 {
        u32::from(if side == 0 {
            self.client_window
        } else {
            self.server_window
        })
    }

    /// Window scale in effect for the windows of a side (0 = client), when it is known: only if
    /// both SYNs carry it (RFC 7323 2.2); capped at 14 (2.3).
    pub fn scale(&self, side: usize) -> Option<u8> {
        if !self.is_done() || !self.seen() {
            return None;
        }
        let (syn, syn_ack) = (self.has(setup_bit::SYN), self.answered());
        let own = if side == 0 {
            self.client_scale
        } else {
            self.server_scale
        };
        let absent = [
            syn && self.client_scale == NO_SCALE,
            syn_ack && self.server_scale == NO_SCALE,
        ];
        let cut = [setup_bit::CLIENT_OPTIONS_CUT, setup_bit::SERVER_OPTIONS_CUT].map(|bit| self.has(bit));
        if (0..2).any(|side| absent[side] && !cut[side]) {
            Some(0)
        } else if !syn_ack || own == NO_SCALE || absent[1] {
            None
        } else {
            Some(own.min(14))
        }
    }

    /// Size of a full segment, for counting segments in a range of bytes.
    pub fn segment(&self) -> u32 {
        let offered = [self.client_mss, self.server_mss]
            .into_iter()
            .filter(|m| *m >= 64)
            .min();
        u32::from(offered.unwrap_or(1460))
    }

    /// Bytes of data in a full segment: timestamps take some of it, when both sides offered them.
    pub fn payload(&self) -> u32 {
        let timestamps = self.has(setup_bit::CLIENT_TIMESTAMPS) && self.has(setup_bit::SERVER_TIMESTAMPS);
        self.segment() - if timestamps { TIMESTAMPS } else { 0 }
    }

    /// The smaller MSS, when both sides told theirs.
    pub fn agreed_mss(&self) -> Option<u64> {
        let mss = self.client_mss.min(self.server_mss);
        (mss >= 64).then_some(u64::from(mss))
    }

    /// The description, by the grammar of `docs/src/transactions.md`.
    pub fn description(&self) -> String {
        let mut out = String::with_capacity(96);
        self.describe(&mut out);
        out
    }

    /// Appends the description.
    pub fn describe(&self, out: &mut String) {
        if !self.is_done() || !self.seen() {
            out.push_str("Open Conn: not seen");
            return;
        }
        out.push_str("Open Conn: ");
        let scale = |out: &mut String, shift: u8| {
            if shift != NO_SCALE {
                out.push_str(" WScale: ");
                decimal(out, u64::from(shift));
            }
        };
        let mss = |out: &mut String, mss: u16| {
            if mss != 0 {
                out.push_str(" MSS:");
                decimal(out, u64::from(mss));
            }
        };
        if self.has(setup_bit::SYN) {
            out.push_str("Syn");
            scale(out, self.client_scale);
            if self.has(setup_bit::CLIENT_SACK) {
                out.push_str(" SelAck");
            }
            mss(out, self.client_mss);
        }
        if self.answered() {
            out.push_str("-Syn-Ack");
            mss(out, self.server_mss);
            if self.has(setup_bit::SERVER_SACK) {
                out.push_str(" SelAck");
            }
            scale(out, self.server_scale);
        }
        out.push_str(match self.outcome {
            Outcome::Ok | Outcome::Retransmitted if self.answered() => " - Ack",
            Outcome::Ok | Outcome::Retransmitted | Outcome::Midstream => "-- - Ack",
            Outcome::Refused | Outcome::ResetLate => "--Reset",
            Outcome::Ignored => "--> ignored",
        });
    }

    /// A number below 2⁶³ that is another one for another description.
    pub fn key(&self) -> u64 {
        use setup_bit as b;
        let bits = self.bits & (b::SYN | b::SYN_ACK | b::CLIENT_SACK | b::SERVER_SACK);
        [
            bits | (self.outcome as u16) << 8,
            u16::from_le_bytes([self.client_scale, self.server_scale]),
            self.client_mss,
            self.server_mss,
        ]
        .into_iter()
        .fold(0, |key, part| key << 16 | u64::from(part))
    }

    /// What the handshake lacks, in words (M1).
    pub fn missing(&self) -> Vec<String> {
        let mut out = Vec::new();
        if !self.is_done() || !self.seen() {
            out.push("handshake not seen".to_owned());
            return out;
        }
        let mut side = |name: &str, seen: bool, cut: bool, options: [(&str, bool); 3]| {
            if !seen {
                out.push(format!("{name} not seen"));
                return;
            }
            if cut {
                out.push(format!("{name} options cut: what is absent is not certain"));
            }
            for (option, there) in options {
                if !there {
                    out.push(format!("{name} without {option}"));
                }
            }
        };
        side(
            "SYN",
            self.has(setup_bit::SYN),
            self.has(setup_bit::CLIENT_OPTIONS_CUT),
            [
                ("MSS", self.client_mss != 0),
                ("window scale", self.client_scale != NO_SCALE),
                ("SACK", self.has(setup_bit::CLIENT_SACK)),
            ],
        );
        let established = matches!(self.outcome, Outcome::Ok | Outcome::Retransmitted);
        if self.answered() || established {
            side(
                "SYN-ACK",
                self.answered(),
                self.has(setup_bit::SERVER_OPTIONS_CUT),
                [
                    ("MSS", self.server_mss != 0),
                    ("window scale", self.server_scale != NO_SCALE),
                    ("SACK", self.has(setup_bit::SERVER_SACK)),
                ],
            );
        }
        out
    }

    /// Options of a side (0 = client) for the messages, when its SYN or SYN-ACK was seen.
    pub fn options(&self, side: usize) -> Option<Options> {
        use setup_bit as b;
        let (seen, sack, timestamps, ecn) = if side == 0 {
            (b::SYN, b::CLIENT_SACK, b::CLIENT_TIMESTAMPS, b::CLIENT_ECN)
        } else {
            (b::SYN_ACK, b::SERVER_SACK, b::SERVER_TIMESTAMPS, b::SERVER_ECN)
        };
        let (mss, scale, window) = if side == 0 {
            (self.client_mss, self.client_scale, self.client_window)
        } else {
            (self.server_mss, self.server_scale, self.server_window)
        };
        (self.is_done() && self.has(seen)).then(|| Options {
            mss: (mss != 0).then_some(mss),
            scale: (scale != NO_SCALE).then_some(scale),
            sack: self.has(sack),
            timestamps: self.has(timestamps),
            ecn: self.has(ecn),
            window,
        })
    }
}

/// Servers that have answered a window scale with one, 28 kB; another one takes the place of one with the same hash.
#[derive(Debug)]
pub(crate) struct Scaling(Box<[Option<Host>]>);

impl Default for Scaling {
    fn default() -> Self {
        Self(vec![None; PLACES].into())
    }
}

impl Scaling {
    pub fn add(&mut self, server: Placed<Host>) {
        self.0[server.place] = Some(server.whom);
    }

    pub fn has(&self, server: Placed<Host>) -> bool {
        self.0[server.place] == Some(server.whom)
    }
}

/// Options of one SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    pub window: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn more() -> SetupMore {
        SetupMore {
            client_isn: 1,
            server_isn: 2,
            client_mss: 1460,
            server_mss: 1460,
            client_window: 8192,
            server_window: 8192,
            client_scale: 8,
            server_scale: 8,
        }
    }

    fn setup(end: SetupEnd, syns: &[u64], syn_ack: u64, finish: u64, bits: u16) -> (SetupState, Option<SetupTimes>) {
        let mut state = SetupState::default();
        let first = syns[0];
        for t in &syns[1..] {
            state.syn_repeat(*t, first);
        }
        let record = Setup {
            first_syn: first,
            last_syn: syns[syns.len() - 1],
            syn_ack,
            end: finish,
            syn_count: syns.len() as u8,
            syn_ack_count: u8::from(syn_ack != 0),
            bits: bits | setup_bit::SYN | setup_bit::CLIENT_SACK,
            syn_payload: 0,
            end_window: 0,
        };
        let times = state.record(end as u8, &record, &more());
        (state, times)
    }

    #[test]
    fn timestamps_of_both_sides_take_12_bytes_of_a_segment() {
        use setup_bit::{CLIENT_TIMESTAMPS, SERVER_TIMESTAMPS};
        for (bits, payload) in [(CLIENT_TIMESTAMPS, 1460), (CLIENT_TIMESTAMPS | SERVER_TIMESTAMPS, 1448)] {
            let (state, _) = setup(SetupEnd::Done, &[0], 1, 2, bits);
            assert_eq!(state.payload(), payload);
        }
    }

    #[test]
    fn what_was_cut_from_a_syn_is_not_absent() {
        let scales = |bits: u16, client: u8, server: u8| {
            let mut state = setup(SetupEnd::Done, &[0], 1, 2, ANSWERED | bits).0;
            (state.client_scale, state.server_scale) = (client, server);
            [0, 1].map(|side| state.scale(side))
        };
        let (client_cut, server_cut) = (setup_bit::CLIENT_OPTIONS_CUT, setup_bit::SERVER_OPTIONS_CUT);
        assert_eq!(scales(0, NO_SCALE, NO_SCALE), [Some(0); 2]);
        assert_eq!(scales(client_cut | server_cut, NO_SCALE, NO_SCALE), [None; 2]);
        assert_eq!(scales(server_cut, 7, NO_SCALE), [None; 2]);
        assert_eq!(scales(client_cut, NO_SCALE, 7), [None, Some(7)]);
        assert_eq!(scales(client_cut, 7, NO_SCALE), [Some(0); 2]);
        assert_eq!(scales(client_cut | server_cut, 7, 7), [Some(7); 2]);
    }

    const ANSWERED: u16 = setup_bit::SYN_ACK | setup_bit::SERVER_SACK | setup_bit::ACK;

    #[test]
    fn a_normal_handshake() {
        let (s, times) = setup(SetupEnd::Done, &[S], S + 2_800_000, S + 2_900_000, ANSWERED);
        assert_eq!(
            s.description(),
            "Open Conn: Syn WScale: 8 SelAck MSS:1460-Syn-Ack MSS:1460 SelAck WScale: 8 - Ack"
        );
        assert_eq!(s.outcome, Outcome::Ok);
        assert_eq!(s.response_seconds(), Some(0.0028));
        assert_eq!(s.scale(0), Some(8));
        assert_eq!(s.path_rtt(), Some(2_900_000));
        assert!(s.missing().is_empty());
        assert_eq!(times.and_then(|t| t.response), Some(100_000));
    }

    #[test]
    fn nine_and_twelve_seconds() {
        let (s, _) = setup(SetupEnd::Done, &[S, 4 * S, 10 * S], 13 * S, 13 * S, ANSWERED);
        assert_eq!(s.outcome, Outcome::Retransmitted);
        assert_eq!(s.response_seconds(), Some(3.0));
        assert_eq!(s.end_seconds(), Some(12.0));
    }

    #[test]
    fn ignored_ends_when_the_next_syn_was_due() {
        let (s, _) = setup(SetupEnd::Timeout, &[S, 4 * S, 10 * S], 0, 0, 0);
        assert_eq!(s.description(), "Open Conn: Syn WScale: 8 SelAck MSS:1460--> ignored");
        assert_eq!(s.outcome, Outcome::Ignored);
        assert_eq!(s.response_seconds(), None);
        assert_eq!(s.end_seconds(), Some(21.0));
        let (s, _) = setup(SetupEnd::End, &[S], 0, 0, 0);
        assert_eq!(s.end_seconds(), None, "one SYN tells no interval");
    }

    #[test]
    fn who_has_had_no_time_to_answer_ignored_nothing() {
        let pending = |syn_ack, bits, input_ended| {
            let (mut s, _) = setup(SetupEnd::End, &[S], syn_ack, 0, bits);
            s.input_ended(S, input_ended);
            assert_eq!(s.outcome, Outcome::Ignored);
            s.is_pending()
        };
        // The SYN, and the SYN-ACK however late that was.
        assert!(pending(0, 0, S + S / 100));
        assert!(!pending(0, 0, 4 * S));
        assert!(pending(S + S / 100, ANSWERED, S + S / 50));
        assert!(pending(4 * S, ANSWERED, 5 * S));
        assert!(!pending(S + S / 100, ANSWERED, 5 * S));
    }

    #[test]
    fn late_reset_is_not_a_refusal() {
        let (s, _) = setup(
            SetupEnd::Reset,
            &[S, 4 * S, 10 * S],
            0,
            73 * S,
            setup_bit::RST_BY_SERVER,
        );
        assert_eq!(s.description(), "Open Conn: Syn WScale: 8 SelAck MSS:1460--Reset");
        assert_eq!(s.outcome, Outcome::ResetLate);
        assert!(!s.has_late_answer() && !s.took_data());
        assert_eq!(s.response_seconds(), Some(63.0));
        assert_eq!(s.end_seconds(), Some(72.0));
        let (s, _) = setup(SetupEnd::Reset, &[S], 0, S + 300_000, setup_bit::RST_BY_SERVER);
        assert_eq!(s.outcome, Outcome::Refused);
    }

    #[test]
    fn answered_without_a_syn_ack_in_sight() {
        let (s, _) = setup(SetupEnd::Done, &[S], 0, S + 779_000_000, setup_bit::ACK);
        assert_eq!(s.description(), "Open Conn: Syn WScale: 8 SelAck MSS:1460-- - Ack");
        assert_eq!(s.response_seconds(), Some(0.779));
        assert_eq!(s.scale(0), None, "the SYN-ACK may lack the option");
        assert_eq!(s.missing(), ["SYN-ACK not seen"]);
    }

    /// A SYN, its SYN-ACK and the ACK.
    fn answered() -> Setup {
        Setup {
            first_syn: S,
            last_syn: S,
            syn_ack: S + 1,
            end: S + 2,
            syn_count: 1,
            syn_ack_count: 1,
            bits: setup_bit::SYN | ANSWERED,
            syn_payload: 0,
            end_window: 0,
        }
    }

    #[test]
    fn a_first_ack_is_not_scaled() {
        let ack = |end_window, server_scale| {
            let mut state = SetupState::default();
            let record = Setup {
                end_window,
                ..answered()
            };
            let more = SetupMore { server_scale, ..more() };
            state.record(SetupEnd::Done as u8, &record, &more);
            state.is_ack_bare()
        };
        assert!(ack(8192, 8));
        // Scaled, or not agreed.
        assert!(!ack(256, 8));
        assert!(!ack(8192, NO_SCALE));
    }

    #[test]
    fn scale_needs_both_sides() {
        let mut m = more();
        m.server_scale = NO_SCALE;
        let mut state = SetupState::default();
        let record = Setup {
            bits: answered().bits | setup_bit::CLIENT_SACK,
            ..answered()
        };
        state.record(SetupEnd::Done as u8, &record, &m);
        assert_eq!(state.scale(0), Some(0));
        assert_eq!(
            state.description(),
            "Open Conn: Syn WScale: 8 SelAck MSS:1460-Syn-Ack MSS:1460 SelAck - Ack"
        );
        assert_eq!(state.missing(), ["SYN-ACK without window scale"]);
    }
}
