//! Which packet of a handshake was lost, and the sentence that an expert would write about it
//! (`docs/src/losses.md`).

use weir_record::{Event, EventMore, NO_SCALE, Rtt, Setup, SetupMore, setup_bit, what};

use crate::echo::{is_near, is_older};
use crate::losses::{Counts, has_new_id};
use crate::numbers::duration;
use crate::rtt::Trip;
use crate::setup::{Outcome, SetupState};
use crate::verdict::{Cause, Class, Evidence, Place, Sign, sign};

/// Repeats kept; the SYN timers of all stacks give up sooner, also where a mirror writes each of them twice.
const REPEATS: usize = 32;
/// No SYN timer is as short as this, ns (RFC 6298 2.1: 1 s; in use, 250 ms and more): the same SYN
/// again sooner is a copy.
pub const SYN_TIMER_LEAST: u64 = 100_000_000;
/// An answer this much later than a round trip is the server's own timer, not its answer.
const SERVER_TIMER_LEAST: u64 = 500_000_000;
/// Copies of a mirror port come up to so many times later than others.
const COPIES_DIFFER: u64 = 4;
/// When a server sends its SYN-ACK again, s after the first: timers of 1 s (RFC 6298 2.1) and 3 s (RFC 2988 2.1), each
/// time twice as long (5.5); and how far from that it comes, in parts of it.
const SERVER_TIMERS: [u64; 6] = [1, 3, 7, 9, 15, 21];
const TIMER_TOLERANCE: u64 = 10;

/// So much longer than a SYN a segment of data may take, ns: 1,500 bytes at 4 Mbit/s.
const SLOW_LINK: u64 = 3_000_000;

/// Where no round trip is known: an ACK that comes within this part of the time between two SYN-ACKs after the later one answers that.
const COINCIDENCE: u64 = 10;

/// Round trips of a handshake that a copy of a SYN or SYN-ACK hid from the engine: the side that was timed, and when the answer came.
/// `seen`: the SETUP record; `sent`: the same without copies.
pub(crate) fn timed_beside_copies(
    seen: &Setup,
    sent: &Setup,
    more: &SetupMore,
) -> impl Iterator<Item = (usize, u64, Rtt)> {
    let hidden = |side, seen: u8, sent: u8, from: u64, to: u64, isn: u32| {
        let start = isn.wrapping_add(1);
        let rtt = Rtt {
            rtt: to.saturating_sub(from),
            seq_end: start,
            ack: start,
            flight: 0,
            window: 0,
            tcp_flags: 0,
        };
        (seen > 1 && sent == 1 && from != 0 && to != 0).then_some((side, to, rtt))
    };
    let syn = hidden(
        0,
        seen.syn_count,
        sent.syn_count,
        seen.first_syn,
        seen.syn_ack,
        more.client_isn,
    );
    let syn_ack = hidden(
        1,
        seen.syn_ack_count,
        sent.syn_ack_count,
        seen.syn_ack,
        seen.end,
        more.server_isn,
    );
    syn.into_iter().chain(syn_ack)
}

/// Whether the server's timer sent the SYN-ACK, so that one before it was lost. `near`: round trip to the server. After a SYN that was
/// sent once, a server or a proxy may as well have been slow, unless it is the time of a timer, and so may the way be that is not known.
pub(crate) fn is_answer_late(state: &SetupState, near: Option<Trip>) -> bool {
    let is_late = |wait: u64| match near {
        Some(near) if state.syn_count > 1 => wait.saturating_sub(near.most) >= SERVER_TIMER_LEAST,
        Some(near) => server_timer(wait, near.most).is_some(),
        None => state.has_late_answer() || server_timer(wait, 0).is_some(),
    };
    state.answered() && state.response_ns().is_some_and(is_late)
}

/// The timer, ns, that sent a SYN-ACK `wait` ns after the only SYN, if it is that of one. `near`: round trip to the server, 0 where it is not known.
pub(crate) fn server_timer(wait: u64, near: u64) -> Option<u64> {
    let late = wait.saturating_sub(near);
    SERVER_TIMERS
        .map(|seconds| seconds * 1_000_000_000)
        .into_iter()
        .find(|timer| wait >= *timer && late.abs_diff(*timer) <= *timer / TIMER_TOLERANCE)
}

/// The part of that time that the timer took, ns.
pub(crate) fn server_waited(wait: u64) -> u64 {
    let ran_out = |timer: &u64| *timer <= wait;
    let timers = SERVER_TIMERS.into_iter().map(|seconds| seconds * 1_000_000_000);
    timers.take_while(ran_out).last().unwrap_or(0)
}

/// The sentence about it; `wait`: from the last SYN, ns.
pub(crate) fn explain_late_answer(wait: u64) -> String {
    format!(
        "The SYN-ACK came {} after the last SYN: the server's timer sent it again, so one before it was lost between the server and \
         the tap.",
        duration(wait)
    )
}

/// Whether what was sent `wait` ns ago can have been answered, and no timer of who answers was in it.
const fn is_direct(trip: Trip, wait: u64) -> bool {
    !trip.is_too_soon(wait) && wait < trip.most.saturating_add(SERVER_TIMER_LEAST)
}

/// Which of the packets that were `sent` was answered, where the answer came too soon for the last of them and when that of an earlier one
/// could come: those behind it were sent before their sender could have it.
fn answered(sent: impl Iterator<Item = u64> + Clone, answer: u64, trip: Option<Trip>) -> Option<u64> {
    let trip = trip?;
    let wait = |sent: u64| answer.saturating_sub(sent);
    sent.clone().last().filter(|last| trip.is_too_soon(wait(*last)))?;
    let direct = sent.filter(|sent| is_direct(trip, wait(*sent)));
    direct.min_by_key(|sent| wait(*sent).abs_diff(trip.most))
}

/// How long the answer took, where the round trips of data, `trip`, tell which of the packets that were `sent` it is to (RFC 6298 3: else it
/// tells nothing).
fn timed(sent: impl Iterator<Item = u64> + Clone, answer: u64, trip: Trip) -> Option<u64> {
    let wait = |sent: u64| answer.saturating_sub(sent);
    let fits = |sent: &u64| wait(*sent) <= trip.most + trip.most / 4;
    let (last, before) = newest(sent.clone());
    let sent = match (answered(sent, answer, Some(trip)), before.filter(fits)) {
        (None, None) => last,
        (None, before) => before
            .zip(last)
            .and_then(|(before, last)| is_alike(wait(last), wait(before)).then_some(before)),
        (earlier, _) => earlier,
    };
    sent.filter(fits).map(wait)
}

/// How long after the first of the packets that were `sent` soon before it the answer came, where the others were sent by a timer's time before.
fn likely(sent: impl Iterator<Item = u64>, answer: u64) -> Option<u64> {
    let (soon, late): (Vec<u64>, Vec<u64>) = sent
        .map(|sent| answer.saturating_sub(sent))
        .partition(|wait| *wait < SERVER_TIMER_LEAST / 2);
    let is_timer = |wait: &u64| *wait >= SERVER_TIMER_LEAST;
    soon.into_iter().max().filter(|_| late.iter().all(is_timer))
}

/// Two times of which either may be a round trip: the longer one is it, well enough.
const fn is_alike(short: u64, long: u64) -> bool {
    long - short <= short / 4
}

/// The last, and the one before.
fn newest(sent: impl Iterator<Item = u64>) -> (Option<u64>, Option<u64>) {
    sent.fold((None, None), |(last, _), time| (Some(time), last))
}

/// The server knew of it, and nothing that the client sent shows that it ever knew of the server.
fn is_half_open(state: &SetupState) -> bool {
    state.outcome == Outcome::Ignored || state.reset_by_server()
}

/// A SYN or SYN-ACK that came again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SynRepeat {
    pub time: u64,
    pub seq: u32,
    pub length: u32,
    tsval: Option<u32>,
    pub from_server: bool,
    without_scale: bool,
    /// The handshake was over.
    late: bool,
    /// A SYN-ACK right after a SYN that came again: the server answers each.
    answers: bool,
    /// A SYN: the server had acknowledged something else since the one before.
    challenged: bool,
    /// The same IP id as the one before: the engine did not count it.
    same_id: bool,
    /// A SYN with a new IP id: its sender made it anew, however soon it comes (what a timer sent may wait on its way).
    is_made_anew: bool,
    pub class: Class,
}

impl SynRepeat {
    /// A SYN after the server's RST, which ended the setup: some systems ask a closed port several times.
    const fn is_told(&self, state: &SetupState) -> bool {
        self.late && !self.from_server && state.reset_by_server()
    }
}

/// What is kept of a handshake in which something came again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshake {
    repeats: Vec<SynRepeat>,
    setup: Option<Setup>,
    /// The last SYN was answered by an ACK of something else.
    challenged: bool,
    /// What comes so long after the one before may be a copy, too, as copies did, ns.
    copies_after: u64,
    /// TSval that the first SYN-ACK behind several SYNs echoes, and whether its IP id was 0.
    echo: Option<(u32, bool)>,
}

/// What is known beside the packets of a handshake when it is judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// Round trips between the tap and the server, and between it and the client.
    pub trips: [Option<Trip>; 2],
    /// Packets of the server have IP ids.
    pub server_has_ids: bool,
}

/// What became of the packets of a handshake. Times are TAI ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Story {
    /// Where the packets were lost that made the client send its SYN again before any SYN-ACK
    /// passed the tap.
    silence: Place,
    sign: Option<Sign>,
    /// The SYN that the first SYN-ACK answers, if another one had passed by then.
    syn: Option<u64>,
    /// A SYN that the server had.
    had: Option<Had>,
    /// The SYN-ACK that the client answered: those before it were lost. [`NEVER`]: all were. None: nothing tells.
    syn_ack: Option<u64>,
}

const NEVER: u64 = u64::MAX;

/// A SYN that the server had, as its SYN-ACK tells. Times are TAI ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Had {
    syn: u64,
    /// It was the first that the server had.
    is_first: bool,
    /// The SYN behind it: the answer to the one before was lost before the tap.
    unanswered: Option<u64>,
}

impl Story {
    /// What was lost before a SYN that came again at `time`. What shows that the server had one when the `last` came does not tell
    /// which one it had; only a server that gives up has had them all.
    fn of(self, time: u64, last: bool) -> (Place, Option<Sign>) {
        match self.had {
            Some(had) if had.is_first && time <= had.syn => return (Place::BehindTap, Some(sign::SYN_ECHO)),
            Some(had) if Some(time) == had.unanswered => return (Place::AckBeforeTap, Some(sign::SYN_ECHO)),
            _ => {}
        }
        match self.silence {
            Place::AckBeforeTap if !last && self.sign != Some(sign::LATE_RESET) => (Place::Unknown, None),
            place => (place, self.sign),
        }
    }
}

impl Handshake {
    pub fn clear(&mut self) {
        self.repeats.clear();
        self.setup = None;
        self.challenged = false;
        self.copies_after = 0;
        self.echo = None;
    }

    /// The first SYN-ACK, which answers one of several SYNs and echoes its TSval.
    pub fn echoes(&mut self, syn_ack: &Event) {
        self.echo = syn_ack.echo().map(|tsval| (tsval, syn_ack.ip_id == 0));
    }

    /// The server answered a SYN with an ACK of something else: it still has an older connection of these ports. The client
    /// resets that, and its SYN comes again (RFC 9293 3.5.1; also RFC 5961 4.2).
    pub const fn challenge(&mut self) {
        self.challenged = true;
    }

    /// EVENT `SYN_REPEAT` or `SYN_ACK_REPEAT`; `opened`: first packet. Returns what it was; of those that come before the
    /// end of the handshake, [`Self::settle`] may say otherwise.
    pub fn repeat(
        &mut self,
        side: usize,
        e: &Event,
        more: Option<&EventMore>,
        time: u64,
        opened: u64,
        late: bool,
    ) -> Class {
        let from_server = side == 1;
        let asked = self.syn_repeats().last().map_or(0, |syn| syn.time);
        let last = match self.last(from_server) {
            0 if !from_server => opened,
            last => last,
        };
        let after = time.saturating_sub(last);
        let answers = from_server && time.saturating_sub(asked) < SERVER_TIMER_LEAST && after > self.copies_after;
        let soon = last != 0 && after < SYN_TIMER_LEAST;
        // There are senders whose repeats have the IP id of the first.
        let same_id = e.what & what::COPY != 0;
        let is_made_anew = !from_server && has_new_id(e);
        let class = if same_id && (soon || last == 0) || late && soon && !answers && !is_made_anew {
            Class::Copy
        } else {
            Class::Retransmission
        };
        let challenged = !from_server && class == Class::Retransmission && std::mem::take(&mut self.challenged);
        if self.repeats.len() < REPEATS {
            self.repeats.push(SynRepeat {
                time,
                seq: e.seq,
                length: e.length,
                tsval: e.sent(),
                from_server,
                without_scale: more.is_some_and(|m| m.scale == NO_SCALE),
                late,
                answers,
                challenged,
                same_id,
                is_made_anew,
                class,
            });
        }
        class
    }

    /// A handshake that was over before anything came again: its SETUP record was not kept. `opened`: first packet.
    pub fn without_trouble(&mut self, state: &SetupState, opened: u64) {
        self.setup.get_or_insert_with(|| Setup {
            first_syn: opened,
            last_syn: opened,
            syn_ack: state
                .response_ns()
                .map_or(0, |response| opened.saturating_add(response)),
            end: state.end_ns().map_or(0, |end| opened.saturating_add(end)),
            syn_count: state.syn_count,
            syn_ack_count: state.syn_ack_count,
            bits: if state.answered() { setup_bit::SYN_ACK } else { 0 },
            ..NO_SETUP
        });
    }

    /// Time of a side's last SYN or SYN-ACK; 0 while SETUP has not told of the first.
    fn last(&self, from_server: bool) -> u64 {
        let first = self
            .setup
            .map_or(0, |s| if from_server { s.syn_ack } else { s.first_syn });
        let again = self.repeats.iter().rev().find(|r| r.from_server == from_server);
        again.map_or(first, |r| r.time)
    }

    /// The SETUP record has come: tell copies from repeats among what came again. Returns the record with the SYNs and
    /// SYN-ACKs that were sent.
    pub fn settle(&mut self, setup: &Setup, counts: [&mut Counts; 2]) -> Setup {
        let [client, server] = counts;
        let mut sent = *setup;
        let mut last = [setup.first_syn, setup.syn_ack];
        let mut asked = 0;
        for repeat in self.repeats.iter_mut().filter(|r| !r.late) {
            let side = usize::from(repeat.from_server);
            let after = repeat.time.saturating_sub(last[side]);
            let soon = last[side] != 0 && after < SYN_TIMER_LEAST;
            // A copy of a SYN asks for nothing, and one of a SYN-ACK answers nothing.
            repeat.answers &= repeat.time.saturating_sub(asked) < SERVER_TIMER_LEAST && after > self.copies_after;
            let (counts, number) = if repeat.from_server {
                (&mut *server, &mut sent.syn_ack_count)
            } else {
                (&mut *client, &mut sent.syn_count)
            };
            // Who has reset an older connection asks again at once.
            let is_told = repeat.answers || repeat.challenged || repeat.is_made_anew;
            if repeat.class == Class::Retransmission && soon && !is_told {
                repeat.class = Class::Copy;
                if !repeat.same_id {
                    *number = number.saturating_sub(1);
                }
                counts.retransmitted = counts.retransmitted.saturating_sub(1);
                counts.retransmitted_bytes = counts.retransmitted_bytes.saturating_sub(u64::from(repeat.length));
                counts.duplicates += 1;
            } else if repeat.same_id && !soon {
                if repeat.class == Class::Copy {
                    repeat.class = Class::Retransmission;
                    counts.retransmitted += 1;
                    counts.retransmitted_bytes += u64::from(repeat.length);
                    counts.duplicates = counts.duplicates.saturating_sub(1);
                }
                *number = number.saturating_add(1);
                if !repeat.from_server && (setup.syn_ack == 0 || repeat.time < setup.syn_ack) {
                    sent.last_syn = sent.last_syn.max(repeat.time);
                }
            }
            last[side] = repeat.time;
            match repeat.class {
                Class::Copy => self.copies_after = self.copies_after.max(COPIES_DIFFER * after),
                _ if !repeat.from_server => asked = repeat.time,
                _ => {}
            }
        }
        self.setup = Some(sent);
        sent
    }

    fn repeats_of(&self, from_server: bool) -> impl Iterator<Item = &SynRepeat> + Clone {
        let again = move |r: &&SynRepeat| r.from_server == from_server && r.class == Class::Retransmission;
        self.repeats.iter().filter(again)
    }

    fn syn_repeats(&self) -> impl Iterator<Item = &SynRepeat> + Clone {
        self.repeats_of(false)
    }

    fn syn_ack_repeats(&self) -> impl Iterator<Item = &SynRepeat> + Clone {
        self.repeats_of(true)
    }

    /// SYN repeats before the server's first answer passed the tap, SYN-ACK or RST.
    fn unanswered(&self, setup: &Setup, state: &SetupState) -> impl Iterator<Item = &SynRepeat> {
        let (syn_ack, state) = (setup.syn_ack, *state);
        self.syn_repeats()
            .filter(move |r| !r.is_told(&state) && (syn_ack == 0 || r.time < syn_ack))
    }

    /// Whether the client sent its SYN again although the SYN-ACK had passed the tap.
    fn asks_on(&self, setup: &Setup, state: &SetupState) -> bool {
        self.syn_repeats()
            .any(|syn| setup.syn_ack != 0 && syn.time >= setup.syn_ack && !syn.is_told(state))
    }

    /// SYNs until the first SYN-ACK.
    fn syns(&self, setup: &Setup) -> impl Iterator<Item = u64> + Clone {
        let (first, end) = (setup.first_syn, setup.syn_ack);
        let again = self.syn_repeats().map(|r| r.time);
        std::iter::once(first).chain(again).filter(move |time| *time < end)
    }

    /// SYN-ACKs until the client's answer.
    fn syn_acks(&self, setup: &Setup) -> impl Iterator<Item = u64> + Clone {
        let (first, end) = (setup.syn_ack, setup.end);
        let again = self.syn_ack_repeats().filter(|r| !r.late).map(|r| r.time);
        std::iter::once(first).chain(again).filter(move |time| *time < end)
    }

    /// The SYN-ACK that the client answered. `trip`: between the tap and the client.
    fn heard(&self, setup: &Setup, state: &SetupState, trip: Option<Trip>) -> Option<u64> {
        if is_half_open(state) {
            return Some(NEVER);
        }
        let sent = self.syn_acks(setup);
        let (last, before) = newest(sent.clone());
        let last = last?;
        let wait = setup.end - last;
        let is_last = match (trip, before) {
            // An earlier one was answered.
            (Some(trip), Some(_)) => !trip.is_too_soon(wait),
            // Unless the capture missed a second one.
            (Some(trip), None) => is_direct(trip, wait),
            (None, Some(before)) => wait < (last - before) / COINCIDENCE,
            (None, None) => false,
        };
        answered(sent, setup.end, trip).or(is_last.then_some(last))
    }

    /// Round trip between the tap and a side, where something came again and its answer tells it nevertheless.
    pub fn timed(&self, side: usize, state: &SetupState, trip: Trip) -> Option<u64> {
        let setup = self.setup.as_ref().filter(|_| state.answered())?;
        if side == 1 {
            return timed(self.syn_acks(setup), setup.end, trip);
        }
        // Of two answers one is the timer's.
        let wait = |answer: u64| answer.saturating_sub(setup.last_syn);
        let (first, second) = (setup.syn_ack, self.second_answer(setup).unwrap_or(setup.syn_ack));
        timed(self.syns(setup), second, trip).filter(|_| is_alike(wait(first), wait(second)))
    }

    /// The same where nothing else was timed: what came soon answers the first packet that came soon before it, for the others had waited for a
    /// timer. So it is most likely, which is enough to say how much was under way, and not whose time it was.
    pub fn likely(&self, side: usize, state: &SetupState) -> Option<u64> {
        let setup = self.setup.as_ref().filter(|_| state.answered())?;
        match side {
            0 => likely(self.syns(setup), setup.syn_ack),
            _ => likely(self.syn_acks(setup), setup.end),
        }
    }

    /// From the last SYN-ACK to what ended the handshake.
    pub fn ack(&self) -> Option<u64> {
        let setup = self.setup.as_ref()?;
        self.syn_acks(setup).last().map(|sent| setup.end - sent)
    }

    /// What the packets of the handshake tell.
    fn story(&self, setup: &Setup, state: &SetupState, known: Known) -> Story {
        let near = known.trips[0];
        let is_answered = setup.bits & setup_bit::SYN_ACK != 0;
        let wait = setup.syn_ack.saturating_sub(setup.last_syn);
        let last_without_scale = self.unanswered(setup, state).last().is_some_and(|r| r.without_scale);
        let first_scale = state.options(0).is_some_and(|o| o.scale.is_some());
        let answer = state.options(1);
        let answer_scale = answer.is_some_and(|o| o.scale.is_some());
        // A SYN cookie has neither, whatever its SYN had.
        let is_cookie = answer.is_none_or(|o| !o.sack);
        let syn = answered(self.syns(setup), setup.syn_ack, near);
        let (silence, sign) = if !is_answered {
            let late_reset = state.outcome == Outcome::ResetLate && state.reset_by_server();
            if late_reset {
                (Place::AckBeforeTap, Some(sign::LATE_RESET))
            } else {
                (Place::Unknown, None)
            }
        } else if syn.is_some() {
            (Place::Unknown, None)
        } else if first_scale && last_without_scale && answer_scale {
            // A SYN-ACK offers window scale only if its SYN did (RFC 7323 2.2): it tells which SYN
            // the server had.
            (Place::AckBeforeTap, Some(sign::SYN_OPTIONS))
        } else if first_scale && last_without_scale && state.server_scales() && !is_cookie && !state.is_cut() {
            // Else it would have had one, too.
            (Place::BehindTap, Some(sign::SYN_OPTIONS))
        } else if near.is_some_and(|near| near.is_too_soon(wait + SLOW_LINK)) {
            (Place::AckBeforeTap, Some(sign::SOON))
        } else if self.second_answer(setup).is_some() {
            (Place::AckBeforeTap, Some(sign::SECOND_ANSWER))
        } else {
            (Place::Unknown, None)
        };
        // What tells that an answer was lost goes before.
        let had = self
            .had(setup, known)
            .filter(|had| had.unanswered.is_some() || sign.is_none() && syn.is_none());
        Story {
            silence,
            sign,
            syn,
            had,
            syn_ack: self.heard(setup, state, known.trips[1]),
        }
    }

    /// A SYN that the server had: the one whose TSval its SYN-ACK echoes. Where that is not the last, and no answer to it can have
    /// come so late, its answer was lost before the tap. Linux keeps the TSval of the first SYN (`tcp_check_req`), others, as BSD
    /// (`syncache_add`), that of the newest. The SYN-ACKs of Linux have the IP id 0, and no other of its packets has
    /// (`ip_build_and_send_pkt`); BSD numbers all or none.
    fn had(&self, setup: &Setup, known: Known) -> Option<Had> {
        let (echo, has_no_id) = self.echo?;
        let is_first = has_no_id && known.server_has_ids;
        // A device in the path may write TSval and not TSecr.
        let mut stamps = self.syn_repeats().filter_map(|r| r.tsval);
        if !stamps.all(|tsval| is_near(echo, tsval)) {
            return None;
        }
        // The TSval of the first is in no record: it is older than those of all others.
        let has_passed = |r: &&SynRepeat| r.tsval.is_some_and(|tsval| !is_older(echo, tsval));
        let echoed = self.syn_repeats().filter(has_passed).map(|r| r.time);
        let syn = echoed
            .filter(|time| *time < setup.syn_ack)
            .last()
            .unwrap_or(setup.first_syn);
        let (next, last) = (self.syns(setup).find(|time| *time > syn), self.syns(setup).last()?);
        let wait = setup.syn_ack - syn;
        let is_late = match known.trips[0] {
            Some(near) => wait > near.most.saturating_add(SERVER_TIMER_LEAST),
            None => setup.syn_ack - last < (last - syn) / COINCIDENCE,
        };
        match next {
            Some(_) if !is_late => None,
            None if !is_first => None,
            unanswered => Some(Had {
                syn,
                is_first,
                unanswered,
            }),
        }
    }

    /// When the server sent its SYN-ACK again although one SYN had come since its last: one answers, the
    /// other comes from its timer, so it had an earlier SYN.
    fn second_answer(&self, setup: &Setup) -> Option<u64> {
        self.syn_ack_repeats()
            .find(|r| r.answers && r.time.saturating_sub(setup.syn_ack) < SERVER_TIMER_LEAST)
            .map(|r| r.time)
    }

    /// TSval of the last SYN that came again, and when it passed, TAI ns.
    pub fn last_stamp(&self) -> Option<(u32, u64)> {
        let last = self.syn_repeats().last()?;
        Some((last.tsval?, last.time))
    }

    /// When the first SYN-ACK passed the tap, TAI ns.
    pub fn answered(&self) -> Option<u64> {
        self.setup.map(|setup| setup.syn_ack).filter(|time| *time != 0)
    }

    /// What was lost before each repeat.
    pub fn verdicts(&self, state: &SetupState, known: Known) -> impl Iterator<Item = (SynRepeat, Place, Evidence)> {
        let setup = self.setup.unwrap_or(NO_SETUP);
        let story = self.story(&setup, state, known);
        let near = known.trips[0];
        let last_unanswered = self.unanswered(&setup, state).last().map(|syn| syn.time);
        let client_is_silent = is_half_open(state) && !self.asks_on(&setup, state);
        let (mut last_syn, mut last_syn_ack) = (setup.first_syn, setup.syn_ack);
        self.repeats.iter().map(move |repeat| {
            if repeat.class == Class::Copy {
                return (*repeat, Place::Capture, Evidence::NONE.with(sign::NOBODY_ASKED));
            }
            let timer = Evidence::NONE.with(sign::TIMER);
            let answered = setup.syn_ack != 0 && repeat.time >= setup.syn_ack;
            let (place, evidence) = match (repeat.from_server, answered) {
                (false, _) if repeat.is_told(state) => (Place::Nowhere, timer.with(sign::RESET)),
                (false, false) if repeat.challenged => (Place::Nowhere, timer.with(sign::CHALLENGED)),
                // The one before had waited for as long as the timer ran.
                (false, _) if repeat.time.saturating_sub(last_syn) < SYN_TIMER_LEAST => {
                    (Place::Nowhere, timer.with(sign::SOON))
                }
                (false, false) if story.syn.is_some_and(|syn| repeat.time > syn) => {
                    (Place::Nowhere, timer.with(sign::SOON))
                }
                (false, true) => match story.syn_ack {
                    Some(heard) if repeat.time >= heard => (Place::Nowhere, timer.with(sign::SOON)),
                    Some(_) => (Place::AckBehindTap, timer.with(sign::ACKED)),
                    None => (Place::Unknown, timer.with(sign::ACKED)),
                },
                (false, false) => {
                    let (place, sign) = story.of(repeat.time, Some(repeat.time) == last_unanswered);
                    (place, sign.map_or(timer, |sign| timer.with(sign)))
                }
                (true, _) if repeat.time.saturating_sub(last_syn_ack) < SERVER_TIMER_LEAST => {
                    // The timer's and the answer to a SYN: either would have been sent.
                    (Place::Nowhere, Evidence::NONE.with(sign::SECOND_ANSWER))
                }
                (true, _) if repeat.late && self.is_asked_for(repeat, near) => {
                    (Place::Nowhere, Evidence::NONE.with(sign::SECOND_ANSWER))
                }
                (true, _) if client_is_silent => (Place::Unknown, timer.with(sign::SILENCE)),
                (true, _)
                    if repeat.late
                        && near.is_some_and(|near| near.is_too_soon(repeat.time.saturating_sub(setup.end))) =>
                {
                    (Place::Nowhere, timer.with(sign::SOON))
                }
                // The server may have had the ACK, and waits for data or for room.
                (true, _) if repeat.late => (Place::Unknown, timer),
                (true, _) => match story.syn_ack {
                    Some(heard) if repeat.time > heard => (Place::Nowhere, timer.with(sign::SOON)),
                    Some(_) => (Place::BehindTap, timer),
                    None => (Place::Unknown, timer),
                },
            };
            *(if repeat.from_server {
                &mut last_syn_ack
            } else {
                &mut last_syn
            }) = repeat.time;
            (*repeat, place, evidence)
        })
    }

    /// A SYN-ACK that came again is the answer to a SYN that did.
    fn is_asked_for(&self, syn_ack: &SynRepeat, near: Option<Trip>) -> bool {
        let Some(near) = near else { return syn_ack.answers };
        let mut waits = self.syn_repeats().filter_map(|syn| syn_ack.time.checked_sub(syn.time));
        waits.any(|wait| is_direct(near, wait))
    }

    /// The cause of every repeat of a SYN.
    pub const CAUSE: Cause = Cause::Timeout;

    /// What happened, in a sentence or two; none when nothing came again.
    pub fn explain(&self, state: &SetupState, known: Known) -> Option<String> {
        let setup = self.setup?;
        let told: Vec<(SynRepeat, Place, Evidence)> = self
            .verdicts(state, known)
            .filter(|(repeat, ..)| repeat.class == Class::Retransmission)
            .collect();
        if told.is_empty() {
            return None;
        }
        let count = |of: &dyn Fn(&SynRepeat, Place, Evidence) -> bool| {
            told.iter()
                .filter(|(repeat, place, evidence)| of(repeat, *place, *evidence))
                .count()
        };
        let is_unanswered = |r: &SynRepeat| !r.from_server && (setup.syn_ack == 0 || r.time < setup.syn_ack);
        let mut out = Vec::new();
        if count(&|_, _, evidence| evidence.has(sign::CHALLENGED)) > 0 {
            out.push(
                "The server answered a SYN with an ACK of an older connection of these ports, which it still had (TIME-WAIT, or \
                 half open); the client reset that one, and its SYN came again by its timer: nothing was lost."
                    .to_owned(),
            );
        }
        let unanswered = count(&|r, place, _| is_unanswered(r) && place != Place::Nowhere);
        if unanswered > 0 {
            out.push(self.silence(&setup, state, known, unanswered));
        }
        let is_needless = |place, evidence: Evidence| place == Place::Nowhere && evidence.has(sign::SOON);
        if let Some(who) = match [false, true]
            .map(|side| count(&|r, place, evidence| r.from_server == side && is_needless(place, evidence)) > 0)
        {
            [true, true] => Some("The SYN and the SYN-ACK"),
            [true, false] => Some("The SYN"),
            [false, true] => Some("The SYN-ACK"),
            [false, false] => None,
        } {
            out.push(format!(
                "{who} came again by a timer that ran out before an answer could come: nothing shows a loss."
            ));
        }
        let asks_on = count(&|r, place, _| !r.from_server && place == Place::AckBehindTap) > 0;
        if asks_on {
            out.push(if is_half_open(state) {
                "The SYN-ACK passed the tap, and the client went on sending its SYN: half open. SYN-ACKs were lost between \
                 the tap and the client, or something there drops them (a filter, a way back that is another)."
                    .to_owned()
            } else {
                "The SYN-ACK passed the tap and the client sent its SYN again: \
                 the SYN-ACK was lost between the tap and the client."
                    .to_owned()
            });
        }
        let is_open = |r: &SynRepeat, place, evidence: Evidence| {
            let is_elsewhere = is_unanswered(r) || r.from_server && r.late;
            !is_elsewhere && place == Place::Unknown && !evidence.has(sign::SILENCE)
        };
        if count(&is_open) > 0 {
            out.push(
                "The SYN-ACK had passed the tap when something was sent again: it or its answer was lost between the tap and \
                 the client, or came later than the timer allows for; nothing tells which."
                    .to_owned(),
            );
        }
        let refused = count(&|_, place, evidence| place == Place::Nowhere && evidence.has(sign::RESET));
        if refused > 0 {
            out.push(format!(
                "The client sent its SYN again {} although the server's reset had passed the tap, as some systems do \
                 (Windows asks a closed port three times): nothing shows a loss.",
                if refused == 1 {
                    "once".to_owned()
                } else {
                    format!("{refused} times")
                }
            ));
        }
        if is_answer_late(state, known.trips[0]) {
            out.push(explain_late_answer(setup.syn_ack.saturating_sub(setup.last_syn)));
        }
        let mut by_timer = told.iter().filter(|(r, place, evidence)| {
            let is_lost = *place == Place::BehindTap || evidence.has(sign::SILENCE);
            r.from_server && is_lost && !r.late && r.time >= setup.syn_ack + SERVER_TIMER_LEAST
        });
        if let Some((last, ..)) = by_timer.next_back().filter(|_| !asks_on) {
            out.push(if is_half_open(state) {
                format!(
                    "The server sent its SYN-ACK {} times in {}, and the client answered none: half open. Nothing tells \
                     whether it got them; the clients of a flood or a scan never answer.",
                    self.syn_ack_repeats().count() + 1,
                    duration(last.time - setup.syn_ack)
                )
            } else {
                "The server sent its SYN-ACK again before the client answered: \
                 the first was lost between the tap and the client."
                    .to_owned()
            });
        }
        let is_late = |r: &SynRepeat, place, evidence: Evidence| {
            r.from_server && r.late && place == Place::Unknown && !evidence.has(sign::SILENCE)
        };
        if count(&is_late) > 0 {
            out.push(
                "The server sent its SYN-ACK again although the client's ACK had passed the tap: that ACK was lost between the \
                 tap and the server, or the server waits for the client's data (deferred accept) or has no room for the \
                 connection (a full accept queue); nothing tells which."
                    .to_owned(),
            );
        }
        Some(out.join(" "))
    }

    fn silence(&self, setup: &Setup, state: &SetupState, known: Known, unanswered: usize) -> String {
        let story = self.story(setup, state, known);
        let lost = format!("the {}", first_syns(unanswered));
        let waited = duration(setup.last_syn.saturating_sub(setup.first_syn));
        if let Some(had) = story.had {
            let before = self.syns(setup).filter(|time| had.is_first && *time < had.syn).count();
            let lost = format!("the {} lost between the tap and the server", first_syns(before));
            return match (had.unanswered, before) {
                (None, _) => format!(
                    "The SYN-ACK echoes the timestamp of the last SYN, and the server, a Linux as its IP ids show, keeps that of the \
                     first: {lost} ({waited})."
                ),
                (Some(_), 0) => format!(
                    "The SYN-ACK echoes the timestamp of a SYN before the last, so the server had that: its answer to it was lost \
                     between the server and the tap ({waited})."
                ),
                (Some(_), _) => format!(
                    "The SYN-ACK echoes the timestamp of a SYN before the last, the first that the server had: {lost}, and the \
                     server's answer to that one between the server and the tap ({waited})."
                ),
            };
        }
        match (story.silence, setup.syn_ack != 0) {
            (Place::BehindTap, _) => format!(
                "The last SYN had no window scale, and neither had the SYN-ACK, although the server answers a scale with one: \
                 it knew only that SYN, so {lost} lost between the tap and the server ({waited})."
            ),
            (Place::AckBeforeTap, true) => format!(
                "The server had an earlier SYN when the last one came ({}): \
                 its SYN-ACK was lost between the server and the tap ({waited}).",
                match story.sign {
                    Some(s) if s == sign::SYN_OPTIONS => "its SYN-ACK has the window scale that the last SYN left out",
                    Some(s) if s == sign::SECOND_ANSWER => "it sent its SYN-ACK twice for it",
                    _ => "its SYN-ACK came sooner than an answer can",
                }
            ),
            (Place::AckBeforeTap, false) => format!(
                "None of {} SYNs was answered, and {} after the last one the server reset the connection: it had held it \
                 half open, so SYNs arrived and its SYN-ACKs were lost between the server and the tap.",
                unanswered + 1,
                duration(setup.end.saturating_sub(setup.last_syn))
            ),
            (_, true) => format!(
                "The {} unanswered for {waited}: lost between the tap and the server, or its SYN-ACK on the way back to the \
                 tap; nothing tells which.",
                first_syns(unanswered)
            ),
            (_, false) => format!(
                "None of {} SYNs in {waited} was answered: they or their SYN-ACKs were lost between the tap and the \
                 server, or the server did not answer; nothing shows that it knew of the connection.",
                unanswered + 1
            ),
        }
    }
}

/// The first SYNs, so many, as the subject of a sentence without its article.
fn first_syns(n: usize) -> String {
    if n == 1 {
        "first SYN was".to_owned()
    } else {
        format!("first {n} SYNs were")
    }
}

/// A SETUP record that was lost.
const NO_SETUP: Setup = Setup {
    first_syn: 0,
    last_syn: 0,
    syn_ack: 0,
    end: 0,
    syn_count: 0,
    syn_ack_count: 0,
    bits: 0,
    syn_payload: 0,
    end_window: 0,
};
