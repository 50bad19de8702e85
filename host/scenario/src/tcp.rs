//! One end of a connection: the segments that real stacks would send, without any I/O.
//!
//! Calls and segments go in with the time; segments to send, notes to the application and the next deadline come out.
//! Followed: RFC 9293 (state, windows, persist), 6298 (timer), 5681 and 6675 (recovery), 6582 (without SACK), 2018 and
//! 2883 (SACK, D-SACK), 7323 (scale, timestamps), 8985 section 7 (tail loss probe), 1122 (delayed ACKs, keep-alive).
//! Left out: RACK, F-RTO, PRR, pacing, ECN, growing receive buffers, simultaneous open.

mod arrivals;
mod round_trips;
mod scoreboard;

use self::arrivals::Arrivals;
use self::round_trips::RoundTrips;
use self::scoreboard::{DUP_THRESH, Scoreboard, Sent};
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
    sent: Scoreboard,
    fin_queued: bool,
    mss: u32,
    congestion: Congestion,
    phase: Phase,
    recover: u64,
    dup_acks: u32,
    peer_window: u64,
    peer_shift: u8,
    largest_peer_window: u64,
    round_trips: RoundTrips,
    backoff: u32,
    probed: bool,
    last_sent: Time,
    timer: Option<(Time, Timer)>,

    // Receiver.
    arrivals: Arrivals,
    /// What the last segment sent acknowledged.
    acked_to: u64,
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
            sent: Scoreboard::default(),
            fin_queued: false,
            mss: u32::from(stack.mss),
            congestion: Congestion::new(stack.congestion, stack.mss.into(), stack.initial_window),
            phase: Phase::Open,
            recover: 0,
            dup_acks: 0,
            peer_window: 0,
            peer_shift: 0,
            largest_peer_window: 0,
            round_trips: RoundTrips::default(),
            backoff: 0,
            probed: false,
            last_sent: 0,
            timer: None,
            arrivals: Arrivals::default(),
            acked_to: 0,
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
        end.arrivals.begin();
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
        let told = self.edge - self.arrivals.next().min(self.edge);
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
                // RFC 6298 5.4 to 5.6.
                if self.phase != Phase::Loss {
                    self.congestion.on_timeout(self.nxt - self.una);
                }
                self.phase = Phase::Loss;
                self.recover = self.nxt;
                self.dup_acks = 0;
                self.sent.lose_all();
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
            let waited = self.sent.first().map_or(0, |syn| now - syn.at);
            let failure = if waited < 1_000_000_000 {
                Failure::Refused
            } else {
                Failure::Reset
            };
            self.fail(failure, out);
        } else if segment.has(flag::SYN) && segment.has(flag::ACK) {
            self.take_options(segment);
            self.arrivals.begin();
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
        if let Some(syn) = self.sent.first().copied() {
            // RFC 6298 3 (Karn): no sample from a SYN that was repeated, unless timestamps tell.
            if let Some(rtt) = self.round_trip(now, segment, &syn) {
                self.round_trips.sample(rtt);
            } else if self.stack.initial_window > 1 {
                // RFC 5681 3.1: "if the SYN or SYN/ACK is lost, the initial window ... must be one segment".
                self.congestion = Congestion::new(self.stack.congestion, self.mss, 1);
            }
        }
        self.sent.clear();
        self.edge = self.edge.max(self.arrivals.next());
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
        if segment.space() > 0 || segment.seq < self.arrivals.next() {
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
        let newly_sacked = self.use_sack && self.sent.sack(segment);
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

    fn on_new_ack(&mut self, now: Time, segment: &Segment) {
        let acked = segment.ack - self.una;
        let limited = self.nxt - self.una + u64::from(self.mss) > self.congestion.window();
        let oldest = self.sent.acknowledge(segment.ack);
        if let Some(rtt) = oldest.and_then(|sent| self.round_trip(now, segment, &sent)) {
            self.round_trips.sample(rtt);
        }
        self.una = segment.ack;
        self.dup_acks = 0;
        self.backoff = 0;
        self.probed = false;
        match self.phase {
            Phase::Open if limited => self.congestion.on_ack(now, acked, self.round_trips.smoothed()),
            Phase::Open => {}
            _ if segment.ack >= self.recover => self.phase = Phase::Open,
            // RFC 6582 3.2: a partial ACK says that the next segment was lost as well.
            Phase::Recovery => {
                if !self.use_sack {
                    self.sent.lose_first();
                }
            }
            Phase::Loss => self.congestion.on_ack(now, acked, self.round_trips.smoothed()),
        }
        self.timer = None;
        self.arm(now);
    }

    /// What later segments have overtaken by SACK, or three duplicate ACKs.
    fn detect_losses(&mut self) {
        let found = if self.use_sack {
            self.sent.lose_sacked_over()
        } else {
            self.dup_acks == DUP_THRESH && self.phase == Phase::Open && self.sent.lose_first()
        };
        if found && self.phase == Phase::Open {
            self.phase = Phase::Recovery;
            self.recover = self.nxt;
            self.congestion.on_loss(self.nxt - self.una);
        }
    }

    fn on_data(&mut self, now: Time, segment: &Segment, out: &mut Output) {
        let (start, end) = (segment.seq, segment.seq + u64::from(segment.len));
        if segment.has(flag::FIN) {
            self.fin_at = Some(end);
        }
        let had_islands = self.arrivals.has_islands();
        let space = start < end;
        if end <= self.arrivals.next() && !(segment.has(flag::FIN) && !self.fin_received && end == self.arrivals.next())
        {
            // Old: acknowledged at once, with a D-SACK of what came twice.
            self.arrivals.again(space.then_some((start, end)));
            self.send_ack(now, out);
            return;
        }
        if start > self.arrivals.next() {
            if end > self.edge {
                self.send_ack(now, out);
                return;
            }
            if space {
                self.arrivals.ahead(start, end);
            }
            self.send_ack(now, out);
            return;
        }
        // A segment beyond the window is cut; one byte into a closed window is not taken.
        let end = end.min(self.edge);
        if end <= self.arrivals.next() && space {
            self.send_ack(now, out);
            return;
        }
        let arrived = self.arrivals.in_order(end);
        if arrived > 0 {
            self.data_at = Some(now);
            self.unread += arrived;
            out.notes.push(Note::Readable);
        }
        if self.fin_at == Some(self.arrivals.next()) && !self.fin_received {
            self.fin_received = true;
            self.fin_was_first = self.nxt > self.stream_end;
            self.arrivals.end();
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

    // ---- sending ----

    fn transmit(&mut self, now: Time, out: &mut Output) {
        if self.state != State::Established {
            return;
        }
        if self.sent.is_empty() && self.round_trips.is_known() && now - self.last_sent > self.rto() {
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
            let sent = self.sent.get(index);
            if !sent.is_missing() {
                continue;
            }
            // The first goes whatever the window says.
            if self.sent.pipe() > 0 && index > 0 && self.sent.pipe() + u64::from(sent.len) > self.congestion.window() {
                return;
            }
            self.resend(now, index, out);
        }
    }

    fn resend(&mut self, now: Time, index: usize, out: &mut Output) {
        let Sent { seq, len, flags, .. } = self.sent.resend(now, index);
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
            if self.sent.pipe() > 0 && self.sent.pipe() + len > self.congestion.window() {
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
        self.sent.push(now, segment);
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
            ack: self.arrivals.next(),
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
        if self.sent.is_empty() {
            self.record(now, &segment);
        } else {
            self.sent.resend(now, 0);
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
        let told = self.edge.saturating_sub(self.arrivals.next());
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
        self.edge = self.edge.max(self.arrivals.next() + window);
        self.acked_to = self.arrivals.next();
        self.ack_at = None;
        self.unacked_segments = 0;
        let mut segment = Segment {
            seq,
            ack: self.arrivals.next(),
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

    fn add_sack(&mut self, segment: &mut Segment) {
        let room = if segment.timestamps.is_some() {
            MAX_SACK_BLOCKS - 1
        } else {
            MAX_SACK_BLOCKS
        };
        for block in self.arrivals.blocks().take(room) {
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
        let may_probe = self.stack.tail_loss_probe && self.use_sack && self.round_trips.is_known() && !self.probed;
        if may_probe && self.phase == Phase::Open && self.backoff == 0 {
            // RFC 8985 7.2; a single segment may be waiting for a delayed ACK.
            let single = if self.sent.len() == 1 { from_ms(200.0) } else { 0 };
            let wait = 2 * self.round_trips.smoothed() + single;
            if wait < rto {
                timer = (now + wait, Timer::Probe);
            }
        }
        self.timer = Some(timer);
    }

    fn rto(&self) -> Time {
        self.round_trips.timeout(&self.stack)
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
