//! One end of a connection: the segments that real stacks would send, without any I/O.
//!
//! Calls and segments go in with the time; segments to send, notes to the application and the next deadline come out.
//! Followed: RFC 9293 (state, windows, persist), 6298 (timer), 5681 and 6675 (recovery), 6582 (without SACK), 2018 and
//! 2883 (SACK, D-SACK), 7323 (scale, timestamps), 8985 section 7 (tail loss probe), 1122 (delayed ACKs, keep-alive).
//! Left out: RACK, F-RTO, PRR, pacing, ECN, growing receive buffers, simultaneous open.

use crate::config::{Stack, Timestamps};
use crate::congestion::Congestion;
use crate::packet::{MAX_SACK_BLOCKS, Segment, SynOptions, flag};
use crate::{Time, from_ms, from_s};
use std::collections::VecDeque;
use std::rc::Rc;

/// Longest wait of the retransmission and persist timers (RFC 6298 2.5 asks for 60 s or more).
const MAX_WAIT: Time = 60_000_000_000;
/// Interval of keep-alives that are not answered, and how many (RFC 1122 4.2.3.6 leaves both to the stack).
const KEEP_ALIVE_INTERVAL: Time = 1_000_000_000;
const KEEP_ALIVE_PROBES: u32 = 10;
/// RFC 6675 2: DupThresh.
const DUP_THRESH: u32 = 3;

/// Why a connection is over without a proper end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// RST instead of a SYN-ACK.
    Refused,
    /// RST on an open connection, or after the setup had waited.
    Reset,
    /// Nobody answered.
    TimedOut,
}

/// What the application is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The handshake is done.
    Connected,
    /// Bytes are ready to be read.
    Readable,
    /// The peer has closed its sending side; all its bytes are readable.
    Eof,
    /// It is over.
    Failed(Failure),
}

/// What a call produced.
#[derive(Debug, Default)]
pub struct Output {
    /// Segments, in the order sent.
    pub segments: Vec<Segment>,
    /// Notes, in order.
    pub notes: Vec<Note>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    SynSent,
    SynReceived,
    Established,
    TimeWait,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// What the retransmission deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    Retransmission,
    Probe,
    Persist,
}

/// A segment that is not yet acknowledged.
#[derive(Debug, Clone, Copy)]
struct Sent {
    seq: u64,
    len: u32,
    flags: u8,
    at: Time,
    transmissions: u32,
    sacked: bool,
    lost: bool,
    /// Lost, and sent again since.
    resent: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.flags & (flag::SYN | flag::FIN) != 0)
    }

    /// Believed to be in the network (RFC 6675 4, pipe).
    fn in_pipe(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Endpoint {
    stack: Rc<Stack>,
    state: State,

    // Sender.
    una: u64,
    nxt: u64,
    /// End of what the application has written.
    stream_end: u64,
    /// Ends of writes not yet sent: segments that end there carry PSH.
    write_ends: VecDeque<u64>,
    sent: VecDeque<Sent>,
    pipe: u64,
    any_sacked: bool,
    fin_queued: bool,
    mss: u32,
    congestion: Congestion,
    phase: Phase,
    recover: u64,
    dup_acks: u32,
    peer_window: u64,
    peer_shift: u8,
    largest_peer_window: u64,
    srtt: Time,
    rttvar: Time,
    backoff: u32,
    probed: bool,
    last_sent: Time,
    timer: Option<(Time, Timer)>,

    // Receiver.
    rcv_nxt: u64,
    /// What the last segment sent acknowledged.
    acked_to: u64,
    /// Out of order, sorted, apart from each other; the newest is named first in SACK.
    islands: Vec<(u64, u64)>,
    newest_island: u64,
    d_sack: Option<(u64, u64)>,
    unread: u64,
    /// Right edge of the window told to the peer.
    edge: u64,
    own_shift: u8,
    scaled: bool,
    unacked_segments: u32,
    /// ACKs wait for the application's answers.
    conversation: bool,
    /// When data last came in order.
    data_at: Option<Time>,
    ack_at: Option<Time>,
    fin_at: Option<u64>,
    fin_received: bool,
    /// Our FIN went before the peer's came.
    fin_was_first: bool,
    /// The application will read no more: data is answered with RST.
    deaf: bool,
    use_sack: bool,
    use_timestamps: bool,
    ts_recent: u32,
    ts_offset: u32,

    // Lifetime.
    syns_sent: u32,
    life_until: Option<Time>,
    /// Random part of the half-open time, 0 to 1.
    spread: f64,
    heard_at: Time,
    keep_alives: u32,
}

impl Endpoint {
    fn new(stack: Rc<Stack>, state: State, spread: f64, ts_offset: u32) -> Endpoint {
        let window = u64::from(stack.window_bytes);
        Endpoint {
            state,
            una: 0,
            nxt: 0,
            stream_end: 1,
            write_ends: VecDeque::new(),
            sent: VecDeque::new(),
            pipe: 0,
            any_sacked: false,
            fin_queued: false,
            mss: u32::from(stack.mss),
            congestion: Congestion::new(stack.congestion, stack.mss.into(), stack.initial_window),
            phase: Phase::Open,
            recover: 0,
            dup_acks: 0,
            peer_window: 0,
            peer_shift: 0,
            largest_peer_window: 0,
            srtt: 0,
            rttvar: 0,
            backoff: 0,
            probed: false,
            last_sent: 0,
            timer: None,
            rcv_nxt: 0,
            acked_to: 0,
            islands: Vec::new(),
            newest_island: 0,
            d_sack: None,
            unread: 0,
            edge: window,
            own_shift: 0,
            scaled: false,
            unacked_segments: 0,
            conversation: false,
            data_at: None,
            ack_at: None,
            fin_at: None,
            fin_received: false,
            fin_was_first: false,
            deaf: false,
            use_sack: false,
            use_timestamps: false,
            ts_recent: 0,
            ts_offset,
            syns_sent: 0,
            life_until: None,
            spread,
            heard_at: 0,
            keep_alives: 0,
            stack,
        }
    }

    /// The active side: sends a SYN. `ts_offset` begins its timestamps.
    pub fn connect(stack: Rc<Stack>, now: Time, ts_offset: u32, out: &mut Output) -> Endpoint {
        let mut end = Endpoint::new(stack, State::SynSent, 0.0, ts_offset);
        end.send_syn(now, out);
        end
    }

    /// The passive side, made by a SYN: answers with a SYN-ACK. `spread` (0 to 1) draws how long it stays half open.
    pub fn accept(
        stack: Rc<Stack>,
        now: Time,
        syn: &Segment,
        spread: f64,
        ts_offset: u32,
        out: &mut Output,
    ) -> Endpoint {
        let mut end = Endpoint::new(stack, State::SynReceived, spread, ts_offset);
        end.take_options(syn);
        end.rcv_nxt = 1;
        end.acked_to = 1;
        end.ts_recent = syn.timestamps.map_or(0, |(value, _)| value);
        end.edge = 1 + u64::from(end.stack.window_bytes.min(65535));
        end.heard_syn(now);
        end.send_syn(now, out);
        end
    }

    /// Nothing more will come of it.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The handshake is done, and it is not over.
    pub fn is_open(&self) -> bool {
        self.state == State::Established
    }

    /// The handshake is not done.
    pub fn is_half_open(&self) -> bool {
        self.state == State::SynReceived
    }

    /// Bytes that wait for the application.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Window of the congestion control, for tests against other stacks.
    pub fn congestion_window(&self) -> u64 {
        self.congestion.window()
    }

    /// SYNs or SYN-ACKs sent.
    pub fn syns_sent(&self) -> u32 {
        self.syns_sent
    }

    /// When [`Endpoint::on_time`] wants to be called.
    pub fn deadline(&self) -> Option<Time> {
        let timer = self.timer.map(|(at, _)| at);
        [timer, self.ack_at, self.life_until, self.keep_alive_at()]
            .into_iter()
            .flatten()
            .min()
    }

    // ---- the application's calls ----

    /// The application writes.
    pub fn write(&mut self, now: Time, bytes: u32, out: &mut Output) {
        if self.state == State::Closed || self.fin_queued {
            return;
        }
        // Whoever answers before an ACK would have waited is in a conversation: its ACKs may wait for its data.
        if self
            .data_at
            .is_some_and(|at| now - at < from_ms(self.stack.delayed_ack_ms))
        {
            self.conversation = true;
        }
        self.stream_end += u64::from(bytes);
        self.write_ends.push_back(self.stream_end);
        self.transmit(now, out);
    }

    /// The application reads so many bytes of those that wait.
    pub fn read(&mut self, now: Time, bytes: u64, out: &mut Output) {
        self.unread -= bytes.min(self.unread);
        if self.state != State::Established {
            return;
        }
        // RFC 9293 3.8.6.2.2: an opening is told when it is worth it.
        let told = self.edge - self.rcv_nxt.min(self.edge);
        let buffer = u64::from(self.stack.window_bytes);
        let gain = self.window_now().saturating_sub(told);
        if told < buffer / 2 && gain >= (2 * u64::from(self.mss)).min(buffer / 2) {
            self.send_ack(now, out);
        }
    }

    /// The application lets go of the socket: FIN after what is written, and RST to whatever still comes.
    pub fn close(&mut self, now: Time, out: &mut Output) {
        if self.unread > 0 {
            // RFC 2525 2.17: data that nobody will read is answered with RST.
            self.abort(now, out);
            return;
        }
        self.deaf = true;
        self.shutdown(now, out);
    }

    /// The application will write no more.
    pub fn shutdown(&mut self, now: Time, out: &mut Output) {
        if self.state == State::Closed || self.fin_queued {
            return;
        }
        self.fin_queued = true;
        self.transmit(now, out);
    }

    /// RST, and it is over.
    pub fn abort(&mut self, now: Time, out: &mut Output) {
        if matches!(self.state, State::Established | State::SynReceived) {
            let segment = self.segment(now, self.nxt, 0, flag::RST | flag::ACK);
            out.segments.push(segment);
        }
        self.end();
    }

    // ---- time ----

    /// The deadline has come.
    pub fn on_time(&mut self, now: Time, out: &mut Output) {
        if self.life_until.is_some_and(|at| at <= now) {
            self.life_over(now, out);
        }
        if self.ack_at.is_some_and(|at| at <= now) {
            // The answer did not come in time.
            self.conversation = false;
            self.send_ack(now, out);
        }
        if let Some((at, timer)) = self.timer
            && at <= now
        {
            self.timer = None;
            match timer {
                Timer::Retransmission => self.on_timeout(now, out),
                Timer::Probe => self.tail_loss_probe(now, out),
                Timer::Persist => self.window_probe(now, out),
            }
        }
        if self.keep_alive_at().is_some_and(|at| at <= now) {
            self.keep_alive(now, out);
        }
    }

    fn life_over(&mut self, now: Time, out: &mut Output) {
        if self.state == State::SynReceived {
            if self.stack.half_open_reset {
                let segment = self.segment(now, self.nxt, 0, flag::RST | flag::ACK);
                out.segments.push(segment);
            }
            out.notes.push(Note::Failed(Failure::TimedOut));
        }
        self.end();
    }

    fn on_timeout(&mut self, now: Time, out: &mut Output) {
        self.backoff += 1;
        match self.state {
            State::SynSent => {
                if self.syns_sent > self.stack.syn_retries {
                    self.fail(Failure::TimedOut, out);
                } else {
                    self.send_syn(now, out);
                }
            }
            State::SynReceived => {
                // When the repeats are used up, the half-open time alone goes on.
                if self.syns_sent <= self.stack.syn_ack_retries {
                    self.send_syn(now, out);
                }
            }
            _ => {
                if self.backoff > self.stack.data_retries {
                    self.abort(now, out);
                    out.notes.push(Note::Failed(Failure::TimedOut));
                    return;
                }
                // RFC 6298 5.4 to 5.6; RFC 6675 5.1: the scoreboard is kept, all that is not sacked counts as lost.
                if self.phase != Phase::Loss {
                    self.congestion.on_timeout(self.nxt - self.una);
                }
                self.phase = Phase::Loss;
                self.recover = self.nxt;
                self.dup_acks = 0;
                for sent in &mut self.sent {
                    sent.lost = !sent.sacked;
                    sent.resent = false;
                }
                self.pipe = 0;
                self.transmit(now, out);
            }
        }
    }

    /// RFC 8985 7.3: the last segment once more, or a new one.
    fn tail_loss_probe(&mut self, now: Time, out: &mut Output) {
        self.probed = true;
        if let Some(last) = self.sent.len().checked_sub(1) {
            self.resend(now, last, out);
        }
        self.timer = Some((now + self.rto(), Timer::Retransmission));
    }

    /// RFC 9293 3.8.6.1, in the way of Linux: an old byte without payload, which asks for an ACK.
    fn window_probe(&mut self, now: Time, out: &mut Output) {
        self.backoff += 1;
        let segment = self.segment(now, self.nxt - 1, 0, flag::ACK);
        out.segments.push(segment);
        self.arm_persist(now);
    }

    fn arm_persist(&mut self, now: Time) {
        let wait = (self.rto() << self.backoff.min(16)).min(MAX_WAIT);
        self.timer = Some((now + wait, Timer::Persist));
    }

    fn keep_alive_at(&self) -> Option<Time> {
        let idle = self.stack.keep_alive_s;
        if idle <= 0.0 || self.state != State::Established || !self.sent.is_empty() {
            return None;
        }
        Some(self.heard_at + from_s(idle) + u64::from(self.keep_alives) * KEEP_ALIVE_INTERVAL)
    }

    /// RFC 1122 4.2.3.6.
    fn keep_alive(&mut self, now: Time, out: &mut Output) {
        self.keep_alives += 1;
        if self.keep_alives > KEEP_ALIVE_PROBES {
            self.abort(now, out);
            out.notes.push(Note::Failed(Failure::TimedOut));
            return;
        }
        let segment = self.segment(now, self.nxt - 1, 0, flag::ACK);
        out.segments.push(segment);
    }

    // ---- segments ----

    /// A segment has arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, out: &mut Output) {
        self.take_timestamp(segment);
        self.heard_at = now;
        self.keep_alives = 0;
        match self.state {
            State::Closed => {
                if !segment.has(flag::RST) {
                    out.segments.push(reset_for(segment));
                }
            }
            State::TimeWait => {
                if segment.space() > 0 {
                    self.send_ack(now, out);
                }
            }
            State::SynSent => self.on_segment_in_syn_sent(now, segment, out),
            State::SynReceived => {
                if segment.has(flag::RST) {
                    self.end();
                } else if segment.has(flag::SYN) {
                    self.heard_syn(now);
                    self.repeat_syn_ack(now, out);
                } else if segment.has(flag::ACK) && segment.ack >= 1 {
                    self.established(now, segment);
                    out.notes.push(Note::Connected);
                    self.on_segment_when_open(now, segment, out);
                }
            }
            State::Established => self.on_segment_when_open(now, segment, out),
        }
    }

    /// RFC 7323 4.3: the echo is of the earliest segment that is not acknowledged yet, and never goes back. As Linux does, a SYN
    /// that comes again changes nothing: the SYN-ACK echoes the first that arrived.
    fn take_timestamp(&mut self, segment: &Segment) {
        let Some((value, _)) = segment.timestamps else { return };
        let first = self.state == State::SynSent && segment.has(flag::SYN);
        let newer = segment.seq <= self.acked_to && value.wrapping_sub(self.ts_recent) as i32 >= 0;
        if first || newer && !segment.has(flag::SYN) {
            self.ts_recent = value;
        }
    }

    fn on_segment_in_syn_sent(&mut self, now: Time, segment: &Segment, out: &mut Output) {
        if segment.has(flag::RST) {
            // Late: the server gave up, it did not refuse.
            let waited = self.sent.front().map_or(0, |syn| now - syn.at);
            let failure = if waited < 1_000_000_000 {
                Failure::Refused
            } else {
                Failure::Reset
            };
            self.fail(failure, out);
        } else if segment.has(flag::SYN) && segment.has(flag::ACK) {
            self.take_options(segment);
            self.rcv_nxt = 1;
            self.established(now, segment);
            self.edge = 1;
            self.peer_window = u64::from(segment.window);
            self.send_ack(now, out);
            out.notes.push(Note::Connected);
        }
    }

    /// The handshake is done; `segment` acknowledges our SYN.
    fn established(&mut self, now: Time, segment: &Segment) {
        self.state = State::Established;
        self.una = 1;
        self.nxt = 1;
        self.life_until = None;
        self.timer = None;
        self.backoff = 0;
        if let Some(syn) = self.sent.pop_front() {
            // RFC 6298 3 (Karn): no sample from a SYN that was repeated, unless timestamps tell.
            if let Some(rtt) = self.round_trip(now, segment, &syn) {
                self.sample(rtt);
            } else if self.stack.initial_window > 1 {
                // RFC 5681 3.1: "if the SYN or SYN/ACK is lost, the initial window ... must be one segment".
                self.congestion = Congestion::new(self.stack.congestion, self.mss, 1);
            }
        }
        self.sent.clear();
        self.pipe = 0;
        self.edge = self.edge.max(self.rcv_nxt);
        self.last_sent = now;
    }

    fn on_segment_when_open(&mut self, now: Time, segment: &Segment, out: &mut Output) {
        if segment.has(flag::RST) {
            self.end();
            out.notes.push(Note::Failed(Failure::Reset));
            return;
        }
        if segment.has(flag::SYN) {
            // A SYN-ACK again: our ACK was lost.
            self.send_ack(now, out);
            return;
        }
        if segment.has(flag::ACK) {
            self.on_ack(now, segment);
        }
        if segment.len > 0 && self.deaf {
            let reset = self.segment(now, self.nxt, 0, flag::RST | flag::ACK);
            out.segments.push(reset);
            self.end();
            out.notes.push(Note::Failed(Failure::Reset));
            return;
        }
        // A keep-alive (or a segment wholly old) has nothing new but wants an answer.
        if segment.space() > 0 || segment.seq < self.rcv_nxt {
            self.on_data(now, segment, out);
        }
        self.transmit(now, out);
        self.finish(now);
    }

    /// Both FINs are acknowledged?
    fn finish(&mut self, now: Time) {
        let own_fin_acked = self.fin_queued && self.una == self.stream_end + 1;
        if self.state == State::Established && own_fin_acked {
            if !self.fin_received {
                // FIN-WAIT-2 of a socket that nobody holds does not last forever.
                if self.deaf && self.life_until.is_none() {
                    self.life_until = Some(now + from_s(self.stack.time_wait_s));
                }
            } else if self.fin_was_first {
                self.state = State::TimeWait;
                self.timer = None;
                self.life_until = Some(now + from_s(self.stack.time_wait_s));
            } else {
                self.end();
            }
        }
    }

    fn on_ack(&mut self, now: Time, segment: &Segment) {
        if segment.ack > self.nxt {
            return;
        }
        let window = u64::from(segment.window) << self.peer_shift;
        let newly_sacked = self.use_sack && self.mark_sacked(segment);
        if segment.ack > self.una {
            self.on_new_ack(now, segment);
        } else if segment.ack == self.una
            && segment.space() == 0
            && window > 0
            && (window == self.peer_window || newly_sacked)
            && !self.sent.is_empty()
        {
            self.dup_acks += 1;
        }
        if window > 0 && self.peer_window == 0 {
            self.backoff = 0;
            if matches!(self.timer, Some((_, Timer::Persist))) {
                self.timer = None;
            }
        }
        self.peer_window = window;
        self.largest_peer_window = self.largest_peer_window.max(window);
        self.detect_losses();
    }

    fn mark_sacked(&mut self, segment: &Segment) -> bool {
        let mut newly = false;
        for &(left, right) in segment.sacks() {
            if right <= segment.ack {
                continue; // D-SACK
            }
            for sent in &mut self.sent {
                if !sent.sacked && sent.seq >= left && sent.end() <= right {
                    if sent.in_pipe() {
                        self.pipe -= u64::from(sent.len);
                    }
                    sent.sacked = true;
                    newly = true;
                    self.any_sacked = true;
                }
            }
        }
        newly
    }

    fn on_new_ack(&mut self, now: Time, segment: &Segment) {
        let acked = segment.ack - self.una;
        let limited = self.nxt - self.una + u64::from(self.mss) > self.congestion.window();
        let mut oldest = None;
        while let Some(front) = self.sent.front_mut() {
            if front.end() > segment.ack {
                if front.seq < segment.ack {
                    let part = (segment.ack - front.seq) as u32;
                    if front.in_pipe() {
                        self.pipe -= u64::from(part);
                    }
                    front.seq += u64::from(part);
                    front.len -= part;
                }
                break;
            }
            if front.in_pipe() {
                self.pipe -= u64::from(front.len);
            }
            oldest.get_or_insert(*front);
            self.sent.pop_front();
        }
        if let Some(rtt) = oldest.and_then(|sent| self.round_trip(now, segment, &sent)) {
            self.sample(rtt);
        }
        self.una = segment.ack;
        self.dup_acks = 0;
        self.backoff = 0;
        self.probed = false;
        if self.sent.is_empty() {
            self.any_sacked = false;
        }
        match self.phase {
            Phase::Open if limited => self.congestion.on_ack(now, acked, self.srtt),
            Phase::Open => {}
            _ if segment.ack >= self.recover => self.phase = Phase::Open,
            // RFC 6582 3.2: a partial ACK says that the next segment was lost as well.
            Phase::Recovery => {
                if !self.use_sack {
                    self.lose_front();
                }
            }
            Phase::Loss => self.congestion.on_ack(now, acked, self.srtt),
        }
        self.timer = None;
        self.arm(now);
    }

    /// RFC 6675 4 (IsLost, counted in segments), or three duplicate ACKs.
    fn detect_losses(&mut self) {
        let mut found = false;
        if self.use_sack {
            if self.any_sacked {
                let mut above = 0;
                for sent in self.sent.iter_mut().rev() {
                    if sent.sacked {
                        above += 1;
                    } else if above >= DUP_THRESH && !sent.lost {
                        sent.lost = true;
                        self.pipe -= u64::from(sent.len);
                        found = true;
                    }
                }
            }
        } else if self.dup_acks == DUP_THRESH && self.phase == Phase::Open {
            found = self.lose_front();
        }
        if found && self.phase == Phase::Open {
            self.phase = Phase::Recovery;
            self.recover = self.nxt;
            self.congestion.on_loss(self.nxt - self.una);
        }
    }

    fn lose_front(&mut self) -> bool {
        match self.sent.front_mut() {
            Some(front) if !front.lost => {
                front.lost = true;
                self.pipe -= u64::from(front.len);
                true
            }
            _ => false,
        }
    }

    fn on_data(&mut self, now: Time, segment: &Segment, out: &mut Output) {
        let (start, end) = (segment.seq, segment.seq + u64::from(segment.len));
        if segment.has(flag::FIN) {
            self.fin_at = Some(end);
        }
        let had_islands = !self.islands.is_empty();
        let space = start < end;
        if end <= self.rcv_nxt && !(segment.has(flag::FIN) && !self.fin_received && end == self.rcv_nxt) {
            // Old: acknowledged at once, with a D-SACK of what came twice.
            self.d_sack = space.then_some((start, end));
            self.send_ack(now, out);
            return;
        }
        if start > self.rcv_nxt {
            if end > self.edge {
                self.send_ack(now, out);
                return;
            }
            if space {
                self.add_island(start, end);
            }
            self.send_ack(now, out);
            return;
        }
        // A segment beyond the window is cut; one byte into a closed window is not taken.
        let end = end.min(self.edge);
        if end <= self.rcv_nxt && space {
            self.send_ack(now, out);
            return;
        }
        let before = self.rcv_nxt;
        self.rcv_nxt = self.rcv_nxt.max(end);
        while let Some(&(left, right)) = self.islands.first() {
            if left > self.rcv_nxt {
                break;
            }
            self.rcv_nxt = self.rcv_nxt.max(right);
            self.islands.remove(0);
        }
        if self.rcv_nxt > before {
            self.data_at = Some(now);
            self.unread += self.rcv_nxt - before;
            out.notes.push(Note::Readable);
        }
        if self.fin_at == Some(self.rcv_nxt) && !self.fin_received {
            self.fin_received = true;
            self.fin_was_first = self.nxt > self.stream_end;
            self.rcv_nxt += 1;
            out.notes.push(Note::Eof);
            self.send_ack(now, out);
            return;
        }
        self.unacked_segments += 1;
        let at_once = self.stack.ack_pushed && segment.has(flag::PSH) && !self.conversation;
        if had_islands || at_once || self.unacked_segments >= self.stack.ack_every {
            self.send_ack(now, out);
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now + from_ms(self.stack.delayed_ack_ms));
        }
    }

    fn add_island(&mut self, start: u64, end: u64) {
        let (mut start, mut end) = (start, end);
        self.islands.retain(|&(left, right)| {
            let touches = left <= end && right >= start;
            if touches {
                start = start.min(left);
                end = end.max(right);
            }
            !touches
        });
        let place = self.islands.partition_point(|&(left, _)| left < start);
        self.islands.insert(place, (start, end));
        self.newest_island = start;
    }

    // ---- sending ----

    fn transmit(&mut self, now: Time, out: &mut Output) {
        if self.state != State::Established {
            return;
        }
        if self.sent.is_empty() && self.srtt > 0 && now - self.last_sent > self.rto() {
            self.congestion.on_idle(self.stack.initial_window);
        }
        self.transmit_lost(now, out);
        self.transmit_new(now, out);
        self.arm(now);
    }

    fn transmit_lost(&mut self, now: Time, out: &mut Output) {
        if self.phase == Phase::Open {
            return;
        }
        for index in 0..self.sent.len() {
            let sent = self.sent[index];
            if !sent.lost || sent.resent || sent.sacked {
                continue;
            }
            // The first goes whatever the window says.
            if self.pipe > 0 && index > 0 && self.pipe + u64::from(sent.len) > self.congestion.window() {
                return;
            }
            self.resend(now, index, out);
        }
    }

    fn resend(&mut self, now: Time, index: usize, out: &mut Output) {
        let sent = &mut self.sent[index];
        let in_pipe_before = sent.in_pipe();
        sent.transmissions += 1;
        sent.at = now;
        if sent.lost {
            sent.resent = true;
        }
        if !in_pipe_before && sent.in_pipe() {
            self.pipe += u64::from(sent.len);
        }
        let (seq, len, flags) = (sent.seq, sent.len, sent.flags);
        let segment = self.segment(now, seq, len, flags);
        self.emit(now, segment, out);
    }

    fn transmit_new(&mut self, now: Time, out: &mut Output) {
        let window_edge = self.una + self.peer_window;
        while self.nxt < self.stream_end {
            let mss = u64::from(self.mss);
            let len = mss.min(self.stream_end - self.nxt);
            let flight = self.nxt - self.una;
            let usable = window_edge.saturating_sub(self.nxt);
            if self.pipe > 0 && self.pipe + len > self.congestion.window() {
                break;
            }
            if flight > 0 && flight + len > self.stack.send_buffer {
                break;
            }
            // RFC 9293 3.8.6.2.1: no silly pieces of a window that is too small.
            let len = if usable >= len {
                len
            } else if usable > 0 && (2 * usable >= self.largest_peer_window || flight == 0) {
                usable
            } else {
                break;
            };
            // RFC 9293 3.7.4 (Nagle).
            if !self.stack.nodelay && len < mss && flight > 0 {
                break;
            }
            self.send_new(now, len as u32, out);
        }
        if self.fin_queued && self.nxt == self.stream_end {
            let segment = self.segment(now, self.nxt, 0, flag::FIN | flag::ACK);
            self.record(now, &segment);
            self.emit(now, segment, out);
        }
    }

    fn send_new(&mut self, now: Time, len: u32, out: &mut Output) {
        let end = self.nxt + u64::from(len);
        // Linux pushes what is there when a write has to wait for the buffer.
        let full = end - self.una + u64::from(self.mss) > self.stack.send_buffer;
        let mut push = full || end == self.stream_end;
        while let Some(&write_end) = self.write_ends.front() {
            if write_end > end {
                break;
            }
            push |= write_end == end;
            self.write_ends.pop_front();
        }
        let flags = if push { flag::ACK | flag::PSH } else { flag::ACK };
        let segment = self.segment(now, self.nxt, len, flags);
        self.record(now, &segment);
        self.emit(now, segment, out);
    }

    fn record(&mut self, now: Time, segment: &Segment) {
        self.sent.push_back(Sent {
            seq: segment.seq,
            len: segment.len,
            flags: segment.flags,
            at: now,
            transmissions: 1,
            sacked: false,
            lost: false,
            resent: false,
        });
        self.pipe += u64::from(segment.len);
        self.nxt = self.nxt.max(segment.seq + segment.space());
    }

    fn send_syn(&mut self, now: Time, out: &mut Output) {
        self.syns_sent += 1;
        let passive = self.state == State::SynReceived;
        let stack = &self.stack;
        let bare = !passive && stack.bare_syn_from > 0 && self.syns_sent >= stack.bare_syn_from;
        let scale_offered = u8::try_from(stack.window_scale).ok();
        let (flags, scale, sack, timestamps) = if passive {
            (flag::SYN | flag::ACK, self.scaled, self.use_sack, self.use_timestamps)
        } else {
            (
                flag::SYN,
                !bare,
                stack.sack,
                stack.timestamps == Timestamps::Offer && !bare,
            )
        };
        let segment = Segment {
            flags,
            ack: self.rcv_nxt,
            window: stack.window_bytes.min(65535) as u16,
            syn: SynOptions {
                mss: Some(stack.mss),
                scale: scale_offered.filter(|_| scale),
                sack,
            },
            timestamps: timestamps.then(|| (self.clock(now), self.ts_recent)),
            ..Segment::default()
        };
        let first_wait = from_s(if passive {
            stack.syn_ack_timeout_s
        } else {
            stack.syn_timeout_s
        });
        let wait = (first_wait << self.backoff.min(16)).min(2 * MAX_WAIT);
        if let Some(syn) = self.sent.front_mut() {
            syn.transmissions += 1;
            syn.at = now;
        } else {
            self.record(now, &segment);
        }
        self.timer = Some((now + wait, Timer::Retransmission));
        self.last_sent = now;
        out.segments.push(segment);
    }

    /// A SYN came again: the answer again, the timer as it is.
    fn repeat_syn_ack(&mut self, now: Time, out: &mut Output) {
        let timer = self.timer;
        self.send_syn(now, out);
        // Not one of the repeats that the timer asks for.
        self.syns_sent -= 1;
        self.timer = timer;
    }

    fn heard_syn(&mut self, now: Time) {
        let spread = self.spread * self.stack.half_open_spread_s;
        self.life_until = Some(now + from_s(self.stack.half_open_s + spread));
    }

    fn take_options(&mut self, syn: &Segment) {
        // A SYN-ACK has a scale only in answer to one of our SYNs that had it.
        if let (Ok(own), Some(peer)) = (u8::try_from(self.stack.window_scale), syn.syn.scale) {
            self.peer_shift = peer.min(14);
            self.own_shift = own.min(14);
            self.scaled = true;
        }
        self.use_sack = self.stack.sack && syn.syn.sack;
        self.use_timestamps = self.stack.timestamps != Timestamps::Never && syn.timestamps.is_some();
        let mss = u32::from(self.stack.mss.min(syn.syn.mss.unwrap_or(536)));
        self.mss = if self.use_timestamps { mss - 12 } else { mss };
        self.congestion = Congestion::new(self.stack.congestion, self.mss, self.stack.initial_window);
        self.peer_window = u64::from(syn.window);
    }

    /// What a new ACK would say of the window, in whole units of the scale.
    fn window_now(&self) -> u64 {
        let most = 65535u64 << self.own_shift;
        let free = u64::from(self.stack.window_bytes).saturating_sub(self.unread).min(most);
        let told = self.edge.saturating_sub(self.rcv_nxt);
        // RFC 9293 3.8.6.2.2: the edge does not creep, and never goes back.
        let worth = (u64::from(self.stack.window_bytes) / 2).min(u64::from(self.mss));
        let window = if free >= told + worth || free >= u64::from(self.stack.window_bytes) {
            free
        } else {
            told.min(most)
        };
        (window >> self.own_shift) << self.own_shift
    }

    fn send_ack(&mut self, now: Time, out: &mut Output) {
        let segment = self.segment(now, self.nxt, 0, flag::ACK);
        out.segments.push(segment);
    }

    /// A segment with everything that acknowledges; whatever waited to be acknowledged does so no more.
    fn segment(&mut self, now: Time, seq: u64, len: u32, flags: u8) -> Segment {
        let window = self.window_now();
        self.edge = self.edge.max(self.rcv_nxt + window);
        self.acked_to = self.rcv_nxt;
        self.ack_at = None;
        self.unacked_segments = 0;
        let mut segment = Segment {
            seq,
            ack: self.rcv_nxt,
            len,
            flags,
            window: (window >> self.own_shift) as u16,
            timestamps: self.use_timestamps.then(|| (self.clock(now), self.ts_recent)),
            ..Segment::default()
        };
        if self.use_sack && len == 0 && flags == flag::ACK {
            self.add_sack(&mut segment);
        }
        segment
    }

    /// RFC 2018 4: the block of the newest segment first; RFC 2883: a D-SACK before all.
    fn add_sack(&mut self, segment: &mut Segment) {
        let room = if segment.timestamps.is_some() {
            MAX_SACK_BLOCKS - 1
        } else {
            MAX_SACK_BLOCKS
        };
        let newest = self.newest_island;
        let first = self
            .islands
            .iter()
            .find(|island| (island.0..island.1).contains(&newest));
        let others = self.islands.iter().filter(|island| Some(*island) != first);
        let blocks = self
            .d_sack
            .take()
            .into_iter()
            .chain(first.copied())
            .chain(others.copied());
        for block in blocks.take(room) {
            segment.sack[segment.sack_blocks] = block;
            segment.sack_blocks += 1;
        }
    }

    fn emit(&mut self, now: Time, segment: Segment, out: &mut Output) {
        self.last_sent = now;
        out.segments.push(segment);
    }

    // ---- timers ----

    /// Sets the deadline that what is in flight (or waits for a window) needs, if none is set.
    fn arm(&mut self, now: Time) {
        if self.state != State::Established {
            return;
        }
        if self.sent.is_empty() {
            if self.nxt < self.stream_end && self.timer.is_none() {
                self.arm_persist(now);
            } else if self.nxt == self.stream_end && !matches!(self.timer, Some((_, Timer::Persist))) {
                self.timer = None;
            }
            return;
        }
        if matches!(self.timer, Some((_, Timer::Retransmission))) {
            return;
        }
        let rto = (self.rto() << self.backoff.min(16)).min(MAX_WAIT);
        let mut timer = (now + rto, Timer::Retransmission);
        let may_probe = self.stack.tail_loss_probe && self.use_sack && self.srtt > 0 && !self.probed;
        if may_probe && self.phase == Phase::Open && self.backoff == 0 {
            // RFC 8985 7.2; a single segment may be waiting for a delayed ACK.
            let single = if self.sent.len() == 1 { from_ms(200.0) } else { 0 };
            let wait = 2 * self.srtt + single;
            if wait < rto {
                timer = (now + wait, Timer::Probe);
            }
        }
        self.timer = Some(timer);
    }

    fn rto(&self) -> Time {
        if self.srtt == 0 {
            return from_s(self.stack.initial_rto_s);
        }
        let floor = from_ms(self.stack.min_rto_ms);
        if self.stack.min_rto_is_variance {
            self.srtt + (4 * self.rttvar).max(floor)
        } else {
            (self.srtt + 4 * self.rttvar).max(floor)
        }
    }

    /// The round trip that an ACK shows: not of what was sent twice (RFC 6298 3, Karn) unless a timestamp tells.
    fn round_trip(&self, now: Time, ack: &Segment, sent: &Sent) -> Option<Time> {
        if sent.transmissions == 1 {
            return (!sent.sacked).then(|| now - sent.at);
        }
        let (_, echo) = ack.timestamps.filter(|_| self.use_timestamps)?;
        let elapsed = self.clock(now).wrapping_sub(echo);
        Some((u64::from(elapsed) * 1_000_000).min(MAX_WAIT))
    }

    /// RFC 6298 2.2 and 2.3.
    fn sample(&mut self, rtt: Time) {
        let rtt = rtt.max(1);
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (7 * self.srtt + rtt) / 8;
        }
    }

    /// Milliseconds, for timestamps.
    fn clock(&self, now: Time) -> u32 {
        self.ts_offset.wrapping_add((now / 1_000_000) as u32)
    }

    fn fail(&mut self, failure: Failure, out: &mut Output) {
        self.end();
        out.notes.push(Note::Failed(failure));
    }

    fn end(&mut self) {
        self.state = State::Closed;
        self.timer = None;
        self.ack_at = None;
        self.life_until = None;
        self.sent.clear();
        self.write_ends.clear();
    }
}

/// The RST that answers a segment for which there is no connection (RFC 9293 3.10.7.1).
pub fn reset_for(segment: &Segment) -> Segment {
    if segment.has(flag::ACK) {
        Segment {
            seq: segment.ack,
            flags: flag::RST,
            ..Segment::default()
        }
    } else {
        Segment {
            ack: segment.seq + segment.space(),
            flags: flag::RST | flag::ACK,
            ..Segment::default()
        }
    }
}
