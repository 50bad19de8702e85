//! Diagnosis from flow records: connections, setups, transactions, losses and findings.
//!
//! Sans-IO and deterministic: records in ([`Analyzer::push`]), facts out (a [`Sink`] of messages).
//! Live hardware, the software engine and capture files all speak through the same records, so the
//! same code answers for all. The rules are in `docs/src/transactions.md`, `docs/src/losses.md`
//! and `docs/src/findings.md`.
//!
//! Memory is bounded by the flows that are open at once: 192 bytes for a flow that only
//! shook hands, more when it has transactions or trouble; the boxes of closed flows are used
//! again.
#![forbid(unsafe_code)]

mod busy;
mod ceilings;
mod closing;
mod diagnosis;
mod echo;
mod findings;
mod flow;
mod given;
mod group;
mod handshake;
mod icmp;
mod ids;
mod lanes;
mod limits;
mod losses;
mod marked;
mod message;
mod numbers;
mod operations;
mod overdue;
mod percentiles;
pub mod pie;
mod pieces;
mod queues;
mod resets;
mod route;
mod rtt;
mod seq;
mod setup;
mod shares;
mod signature;
mod silly;
mod sink;
mod slab;
mod sliding;
mod slow_start;
mod statistics;
mod summary;
mod surroundings;
mod turns;
mod twins;
mod unanswered;
mod verdict;
mod windows;
mod writes;

use weir_messages::v1;
use weir_record::{
    Block, Close, CloseCause, CloseMore, Event, EventMore, FlowId, Interval, Kind, NO_SCALE, Open, OpenMore, Record,
    Rtt, RttHow, Setup, SetupEnd, SetupMore, VERSION, tcp_flag, what,
};

pub use closing::Kind as CloseKind;
use findings::Findings;
pub use findings::{RETRANSMISSION_LINE, loss_severity};
use flow::{Flow, Pool};
use given::Given;
pub use group::{Group, finding};
pub use handshake::SYN_TIMER_LEAST;
use ids::{Counting, Habits};
pub use lanes::{Lanes, StreamHealth};
use losses::Again;
pub use losses::is_timed_out;
use marked::Marked;
pub use marked::{Moment, Range};
use message::CloseCounts;
pub use message::{address, clock, period, seconds, socket_address, timestamp};
pub use numbers::{connections, count, decimal, lasting, lasting_between, several};
use operations::Operations;
use overdue::Answers;
use queues::{ClientQueues, Flight, Queues, Wait};
pub use resets::FORGOTTEN;
pub use seq::before;
pub use setup::Outcome;
use setup::Scaling;
use shares::{TimeShares, USUAL_TIMER};
use signature::{Described, Spare};
pub use sink::{Acknowledged, Connection, DataBlock, Ended, Ends, Hops, Opened, Sent, Sink, Transaction};
use slab::Slab;
pub use sliding::Sliding;
use statistics::Statistics;
use summary::Totals;
use surroundings::Surroundings;
pub use turns::{Finished, Kind as TransactionKind};
use twins::Twins;
pub use verdict::{Cause, Class, Evidence, Place, Sign, Verdict, sign};

/// How an IPv4 address begins.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// Settings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Config {
    /// Keep statistics per signature (they grow with the number of different signatures, up to
    /// 65,536).
    pub signatures: Signatures,
    /// Bandwidth of the path in bits a second, when it is known; else it is inferred where it shows.
    pub bandwidth: Option<f64>,
    /// One-way latency of the path between client and server in seconds, when it is known; else it is half of the smallest round trip.
    pub latency: Option<f64>,
    /// Put transactions of two hosts together to operations, which end when there is none for so many seconds.
    pub operations: Option<f64>,
    /// A range of time whose transactions are also put together on their own.
    pub marked: Option<Range>,
    /// Findings are about the last so many ns only: for a stream without end.
    pub window: Option<u64>,
    /// The frames were forwarded by what measured them: those that it dropped never arrived.
    pub inline: bool,
}

/// Whether statistics per signature are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signatures {
    /// Kept.
    #[default]
    Keep,
    /// Not kept: for a daemon whose store makes them by query.
    Leave,
}

/// The analysis of one record stream.
#[derive(Debug, Default)]
pub struct Analyzer {
    config: Config,
    lanes: Lanes,
    state: State,
}

/// Flows from which on they are more than the processor's cache holds.
const MANY_FLOWS: usize = 1 << 13;

/// Everything behind the pairing of records.
#[derive(Debug, Default)]
struct State {
    flows: Slab,
    pool: Pool,
    queues: Queues,
    client_queues: ClientQueues,
    habits: Habits,
    scaling: Scaling,
    /// IP ids are of interest from the first trouble on.
    watch_ids: bool,
    totals: Totals,
    findings: Findings,
    /// Those of the window, if there is one.
    recent: Option<Sliding<Recent>>,
    /// In a stream without end.
    answers: Option<Answers>,
    /// What the newest record says, or who knows better, TAI ns.
    now: u64,
    statistics: Statistics,
    /// Unknown, homeless and replaced are counted here.
    health: StreamHealth,
    keep_statistics: bool,
    operations: Option<Operations>,
    marked: Option<Marked>,
    twins: Twins,
    /// For the text of the transaction in hand.
    spare: Spare,
}

/// Findings of a stretch that began when the input was as in `before`.
#[derive(Debug, Default)]
struct Recent {
    before: Surroundings,
    findings: Findings,
}

impl Analyzer {
    /// An analysis that has seen nothing.
    pub fn new(config: Config) -> Self {
        let keep_statistics = config.signatures == Signatures::Keep;
        Self {
            config,
            lanes: Lanes::default(),
            state: State {
                keep_statistics,
                operations: config.operations.map(Operations::new),
                marked: config.marked.map(Marked::new),
                recent: config.window.map(|window| Sliding::new(Recent::default(), window)),
                answers: config.window.map(|_| Answers::default()),
                totals: Totals::new(Given::new(&config)),
                ..State::default()
            },
        }
    }

    /// Take in records, in the order of each lane.
    pub fn push(&mut self, records: &[Record], sink: &mut impl Sink) {
        for together in records.chunks(slab::TOGETHER) {
            if self.state.flows.len() >= MANY_FLOWS {
                self.state.flows.warm(together);
            }
            self.lanes
                .push(together, |first, more| self.state.record(first, more, sink));
        }
        if let Some(newest) = records.last() {
            self.set_now(newest.time());
        }
    }

    /// It is `now` (TAI ns), whether records come or not.
    pub fn set_now(&mut self, now: u64) {
        let health = self.health();
        self.state.now = now;
        let State { totals, recent, .. } = &mut self.state;
        if let Some(recent) = recent {
            recent.time(now, || Recent {
                before: totals.surroundings(health),
                findings: Findings::default(),
            });
        }
    }

    /// The time of the newest record, or the one that was set, TAI ns; 0: neither.
    pub const fn now(&self) -> u64 {
        self.state.now
    }

    /// The input is over: close what is open, give the findings, return the summary. The analyzer
    /// is empty afterwards.
    pub fn finish(&mut self, sink: &mut impl Sink) -> v1::Summary {
        let state = &mut self.state;
        self.lanes.finish(|record| state.record(record, None, sink));
        let open = std::mem::take(&mut state.flows);
        let time = open.iter().map(|flow| flow.last).fold(state.totals.end(), u64::max);
        for mut flow in open.drain() {
            let ending = Ending {
                time,
                ..Ending::default()
            };
            state.end(&mut flow, None, ending, sink);
        }
        let summary = self.interim(sink);
        *self = Self::new(self.config);
        summary
    }

    /// Connections that are open now, by their index, from one on.
    pub fn open_connections(&self, from: usize) -> impl Iterator<Item = FlowId> {
        let open = self.state.flows.iter_from(from);
        open.filter(|flow| flow.is_tcp()).map(|flow| flow.id)
    }

    /// A connection that is open now, as far as it is known.
    pub fn open_connection(&self, id: FlowId) -> Option<v1::Connection> {
        let flow = self.state.flows.get(id).filter(|flow| flow.is_tcp())?;
        let counts = [CloseCounts::default(); 2];
        let known = message::connection(flow, None, counts, self.state.totals.given);
        Some(v1::Connection {
            waiting_since: flow.waits_since().map(timestamp),
            ..known
        })
    }

    /// Open connections with a request that has no response yet and may get one, and its first packet, TAI ns.
    pub fn waiting(&self) -> impl Iterator<Item = (FlowId, u64)> {
        let waits = |flow: &Flow| Some((flow.id, flow.waits_since()?));
        self.state.flows.iter().filter_map(waits)
    }

    /// The findings and the summary of what has been seen so far. Of open connections nothing is in them but the requests that are
    /// overdue in a stream without end.
    pub fn interim(&mut self, sink: &mut impl Sink) -> v1::Summary {
        let around = self.state.totals.surroundings(self.health());
        let mut found = match &self.state.recent {
            None => self.state.findings.list(&around),
            Some(recent) => {
                let Recent { before, findings } = recent.get();
                findings.list(&around.since(before))
            }
        };
        if let Some(answers) = &self.state.answers {
            found.extend(answers.findings(self.state.flows.iter(), self.state.now));
        }
        for finding in found {
            sink.finding(finding);
        }
        self.state.summary()
    }

    /// What is known of the record stream itself.
    pub fn health(&self) -> StreamHealth {
        let StreamHealth {
            records,
            missing,
            stray,
            ..
        } = self.lanes.health;
        StreamHealth {
            records,
            missing,
            stray,
            ..self.state.health
        }
    }
}

impl State {
    /// One record with its continuation.
    #[inline]
    fn record(&mut self, r: &Record, more: Option<&Record>, sink: &mut impl Sink) {
        if r.version() != VERSION {
            self.health.unknown += 1;
            return;
        }
        match r.kind() {
            Some(Kind::Open) => self.open(r, more, sink),
            Some(Kind::Setup) => self.setup(r, more, sink),
            Some(Kind::Block) => self.block(r, r.arg(), &Block::decode(r), false, sink),
            Some(Kind::Rtt) => self.rtt(r, sink),
            Some(Kind::Event) => self.event(r, more, sink),
            Some(Kind::Interval) => self.interval(r),
            Some(Kind::Close) => self.close(r, more, sink),
            Some(Kind::Port) => self.totals.port(r, more),
            // Missing records show in the numbering; digests and statistics are for other views.
            Some(Kind::Gap | Kind::Packet | Kind::Burst | Kind::Histogram | Kind::Top) => {}
            None => self.health.unknown += 1,
        }
    }

    #[inline(never)]
    fn open(&mut self, r: &Record, more: Option<&Record>, sink: &mut impl Sink) {
        let mut flow = Flow::open(r.flow(), r.time(), r.arg(), &Open::decode(r));
        if let Some(marked) = &mut self.marked {
            marked.open(r.time());
        }
        let more = more.map(OpenMore::decode);
        if let Some(more) = &more {
            flow.open_more(more);
        }
        if flow.is_tcp() {
            sink.opened(&Opened {
                id: flow.id,
                time: flow.first,
                ends: flow.ends(),
                is_syn: more
                    .is_some_and(|more| more.first_tcp_flags & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN),
            });
            if let Some(more) = &more {
                if self.twins.is_one(flow.first_packet(more)) {
                    flow.set_twin();
                }
                let side = usize::from(more.first_sent_by_server);
                hops(&flow, side, more.first_ttl, flow.first, sink);
            }
        }
        if let Some(mut old) = self.flows.insert(flow) {
            // Its CLOSE was lost.
            self.health.replaced += 1;
            self.end(&mut old, Some(CloseCause::Evicted), Ending::default(), sink);
        }
    }

    #[inline(never)]
    fn setup(&mut self, r: &Record, more: Option<&Record>, sink: &mut impl Sink) {
        let Some(flow) = self.flows.get_mut(r.flow()) else {
            self.health.homeless += 1;
            return;
        };
        if flow.setup.is_done() {
            return;
        }
        let seen = Setup::decode(r);
        let sent = flow.handshake(&seen);
        let more = more.map_or(NO_OPTIONS, SetupMore::decode);
        let times = flow.setup.record(r.arg(), &sent, &more);
        if flow.setup.is_scaled() {
            self.scaling.add(flow.server());
        }
        if matches!(SetupEnd::from_u8(r.arg()), Some(SetupEnd::Done | SetupEnd::Reset)) {
            flow.last = flow.last.max(r.time());
        }
        if let Some(times) = times {
            let done = message::setup_transaction(flow, &times);
            let setup = flow.setup;
            let time = flow.setup_time();
            let ends = flow.ends();
            if let Some(operations) = &mut self.operations {
                operations.add(&flow.route(), &done, &time);
            }
            self.transaction(r.flow(), ends, &done, &time, Described::Setup(&setup), sink);
        }
        // The engine times nothing that it counted twice.
        for (side, time, rtt) in handshake::timed_beside_copies(&seen, &sent, &more) {
            self.round_trip(r.flow(), side, time, Some(RttHow::Handshake), &rtt, sink);
        }
    }

    /// A block of data, as the engine made it (`is_late`: the analysis) of the flow of a record.
    #[inline(never)]
    fn block(&mut self, r: &Record, code: u8, block: &Block, is_late: bool, sink: &mut impl Sink) {
        let side = usize::from(r.server_to_client());
        let Some(flow) = self.flows.get_mut(r.flow()) else {
            self.health.homeless += 1;
            return;
        };
        let before = flow.last;
        if !is_late {
            flow.last = flow.last.max(block.last);
            if let Some(trouble) = flow.extras.trouble_mut() {
                trouble.losses[side].block(block.seq.wrapping_add(block.bytes));
            }
            if side == 1 && flow.directions[1].data_segments == 0 {
                hops(flow, side, block.ttl, block.last, sink);
            }
            let direction = &mut flow.directions[side];
            direction.data_segments = direction.data_segments.saturating_add(u32::from(block.packets));
            direction.flight_max = direction.flight_max.max(block.flight);
        }
        let begun = flow.rtt.block(side);
        let acked = flow.rtt.response(1 - side, block.first);
        let ends = flow.ends();
        sink.block(&DataBlock {
            id: flow.id,
            ends,
            from_server: side == 1,
            first: block.first,
            last: block.last,
            bytes: block.bytes,
            packets: block.packets,
            flight: block.flight,
        });
        if block.known & 1 != 0 {
            flow.acknowledge(1 - side, block.ack, r.time());
        }
        self.totals.figures.message(side, block.bytes);
        // For the time of the turn on its own, so that the rest of the flow can be looked at.
        let mut turn = flow.turn.take().unwrap_or_else(|| self.pool.turn());
        let tail = turn.tail(side);
        let asked = turn.unanswered().filter(|_| side == 1);
        let mut done = turn.block(side, code, block, || flow.client_fin(), &mut self.pool.responses);
        flow.turn = Some(turn);
        flow.rested(side, block, before);
        flow.extras.sent(side, block.first);
        let unseen = flow.unseen(side, block);
        if let Some((done, _)) = &mut done {
            let own = flow.server_rtt();
            self.queues.again(flow.server(), own, done);
            self.client_queues.again(|| flow.client(), flow.trip(1), done);
            if unseen == Some(true) {
                may_be_two(done, own);
            }
        }
        let ended = done
            .as_ref()
            .filter(|_| side == 0)
            .and_then(|(done, _)| done.response_end());
        if let Some((ended, own)) = ended.zip(flow.trip(1)) {
            let acked = acked.filter(|acked| *acked > ended);
            let wait = self
                .client_queues
                .way(|| flow.client(), own, (ended, acked), block.first);
            if let (Some(wait), Some(turn)) = (wait, &mut flow.turn) {
                turn.client_waited(wait);
            }
        }
        let own = flow.server_rtt().filter(|_| side == 1);
        let trips = own.map(|own| {
            let flight = Flight {
                round_trip: flow.whole_trip(own),
                window: flow.window(side, block),
            };
            (own, flight)
        });
        if let Some((_, flight)) = trips.filter(|_| !begun.is_some_and(|begun| begun.told)) {
            self.queues.passed(flow.server(), block, flight);
        }
        let link = own.and_then(|_| self.queues.shared(flow.server(), block));
        let wait = if let Some(asked) = asked {
            let acked = acked.filter(|acked| *acked > asked);
            let mut wait = trips.and_then(|trips| self.queues.way(flow.server(), trips, (asked, acked), block));
            let (own, gap) = (own.unwrap_or(0), block.first.saturating_sub(asked));
            if unseen.is_some() {
                // The response began before.
                wait = Some(Wait::or(wait, own, gap));
            }
            match flow.came_again(side, block.seq, block.first) {
                // No timer is as short.
                Again::IfCounted if gap.saturating_sub(own) >= USUAL_TIMER => Some(Wait::or(wait, own, gap)),
                Again::No | Again::IfCounted => wait,
                Again::Maybe => Some(Wait::or(wait, own, gap)),
                Again::Yes => Some(Wait::again(wait, own, gap)),
            }
        } else if let Some(own) = own
            && let Some((asked, answered, wait)) = flow.turn.as_ref().and_then(|turn| turn.responding())
        {
            self.queues.behind(wait, flow.server(), own, (asked, answered))
        } else {
            None
        };
        if let (Some(wait), Some(turn)) = (wait, &mut flow.turn) {
            turn.waited(wait);
        }
        let time = done
            .as_mut()
            .map(|(done, _)| flow.account(done, block.first, self.totals.given, &mut self.pool));
        flow.limit_block(side, code, block, (tail, link), self.totals.given, &mut self.pool);
        if let Some(((done, signature), time)) = done.as_ref().zip(time) {
            if let Some(operations) = &mut self.operations {
                operations.add(&flow.route(), done, &time);
            }
            self.transaction(r.flow(), ends, done, &time, Described::Data(signature), sink);
        }
    }

    fn transaction(
        &mut self,
        id: FlowId,
        ends: Ends,
        done: &Finished,
        time: &TimeShares,
        described: Described<'_>,
        sink: &mut impl Sink,
    ) {
        let text = self.spare.text(described);
        self.totals.transactions += 1;
        self.totals.time.add(time);
        self.totals.with_data += u64::from(done.request_bytes | done.response_bytes != 0);
        let server = time.server_uncertain_of(done).unwrap_or(0);
        self.totals.uncertain = [server, time.client_uncertain]
            .iter()
            .fold(self.totals.uncertain, |sum, ns| sum.saturating_add(*ns));
        self.totals.figures.transaction(done, time);
        if let Some(marked) = &mut self.marked {
            marked.add(done, time);
        }
        if self.keep_statistics {
            self.statistics.add(&text, done);
        }
        if let Some((answers, took)) = self.answers.as_mut().zip(done.server)
            && done.kind == TransactionKind::Data
        {
            let asked = done.request_time.saturating_add(done.request);
            answers.answered((ends.server, ends.server_port), took, asked.saturating_add(took));
        }
        sink.transaction(&Transaction {
            id,
            ends,
            signature: &text,
            done,
            time,
        });
    }

    #[inline(never)]
    fn rtt(&mut self, r: &Record, sink: &mut impl Sink) {
        let side = usize::from(r.server_to_client());
        let how = RttHow::from_u8(r.arg());
        if how == Some(RttHow::Echo) {
            self.echo(r.flow(), side, r.time(), &Rtt::decode(r));
            return;
        }
        self.round_trip(r.flow(), side, r.time(), how, &Rtt::decode(r), sink);
    }

    /// Data that passed at `time` was the first to echo an ACK of a side.
    fn echo(&mut self, flow: FlowId, side: usize, time: u64, rtt: &Rtt) {
        let Some(flow) = self.flows.get_mut(flow) else {
            self.health.homeless += 1;
            return;
        };
        flow.last = flow.last.max(time);
        flow.limit_echo(1 - side, time, rtt, self.totals.given);
    }

    /// A round trip that was over at `time`, of what a side sent.
    #[inline]
    fn round_trip(
        &mut self,
        flow: FlowId,
        side: usize,
        time: u64,
        how: Option<RttHow>,
        rtt: &Rtt,
        sink: &mut impl Sink,
    ) {
        let Some(flow) = self.flows.get_mut(flow) else {
            self.health.homeless += 1;
            return;
        };
        flow.last = flow.last.max(time);
        if side == 0 && how == Some(RttHow::Handshake) {
            let near = self.queues.least(flow.server()).unwrap_or(0);
            if handshake::server_timer(rtt.rtt, near).is_some() {
                // Of a SYN-ACK that was lost: no round trip (Karn, RFC 6298 3).
                flow.setup.set_late_answer(true);
                return;
            }
            let on_syn = flow.turn.as_ref().and_then(|turn| turn.request_end());
            if on_syn.is_some_and(|end| !before(rtt.ack, end)) {
                flow.setup.set_took_data();
            }
        }
        flow.confirm_answer(side, rtt.rtt);
        flow.extras.sent(1 - side, time);
        flow.rtt.sample(side, rtt.rtt);
        let is_data = how == Some(RttHow::Data);
        // One of a part of what is in flight waited for no response, either.
        let (segment, alone) = (flow.setup.segment(), rtt.ack == rtt.seq_end);
        let again = is_data && flow.fin_came_again(side, time.saturating_sub(rtt.rtt));
        if is_data {
            let soon = limits::is_prompt(rtt.rtt, rtt.flight, alone, segment, None) || rtt.rtt < limits::DELAYED_ACK;
            flow.rtt
                .of_data(side, (time, rtt.rtt), soon && !again, rtt.flight == 0 && !again);
        }
        let is_prompt = limits::is_prompt(rtt.rtt, rtt.flight, alone, segment, flow.trip(side)) && !again
            || how == Some(RttHow::Handshake);
        if side == 0 && is_prompt {
            self.queues.sample(flow.server(), time, rtt.rtt);
        }
        // The first of a connection tells of no queue: how long its path is is not known.
        if side == 1
            && is_prompt
            && flow.rtt.samples(1) > 1
            && !flow.is_at_gap(1, rtt.ack)
            && let Some(own) = flow.at_most(1)
        {
            self.client_queues.sample(|| flow.client(), time, rtt.rtt, own);
        }
        sink.acknowledged(&Acknowledged {
            id: flow.id,
            ends: flow.ends(),
            by_server: side == 0,
            time,
            rtt: rtt.rtt,
            is_data,
            is_prompt,
            is_one_left: (1..2 * segment).contains(&rtt.flight),
        });
        flow.acknowledged(side, rtt.ack, time);
        // A handshake is no transfer, nor is data that was acknowledged whole, unless it goes on and on.
        let goes_on = |block: &rtt::Open| rtt.ack.wrapping_sub(block.ack) >= limits::GOES_ON * segment;
        let block = flow.rtt.in_block(side, rtt.ack, time).copied();
        let block = block.filter(|block| is_data && goes_on(block));
        if is_data && (rtt.flight > 0 || block.is_some() || flow.extras.limits().is_some()) {
            flow.limit_sample(side, time, rtt, block.is_some(), self.totals.given, &mut self.pool);
        }
        // Blocks of more than a flight tell no more of a link than that they came.
        if side == 1
            && let Some(block) = block
            && let Some((own, (piece, is_even))) = flow.server_rtt().zip(flow.piece(side))
        {
            let whole = flow.whole_trip(own);
            if piece.first.saturating_sub(block.since) > whole {
                self.queues.went_on(flow.server(), &piece, is_even, whole);
                if let Some(block) = flow.rtt.in_block(side, rtt.ack, time) {
                    block.told = true;
                }
            }
        }
    }

    #[inline(never)]
    fn event(&mut self, r: &Record, more: Option<&Record>, sink: &mut impl Sink) {
        let side = usize::from(r.server_to_client());
        let Some(flow) = self.flows.get_mut(r.flow()) else {
            self.health.homeless += 1;
            return;
        };
        let e = Event::decode(r);
        if e.what & what::ICMP != 0 {
            // Not a packet of the flow.
            let is_v4 = flow.ends().client.starts_with(&MAPPED);
            if flow.is_tcp() {
                flow.refused(side, !is_v4, &e, r.time());
            }
            return;
        }
        flow.last = flow.last.max(r.time());
        flow.ending(side, &e, r.time());
        if e.what & what::RST != 0 {
            flow.reset(side, &e, r.time());
        } else {
            flow.extras.sent(side, r.time());
        }
        let mut skipped = false;
        if e.what & what::IDS_SKIPPED != 0 {
            self.watch_ids = true;
            let counting = self.habits.counting(flow.pair(side));
            skipped = counting != Counting::More && flow.skipped(side, &e, r.time(), counting, &mut self.pool);
        }
        // A first FIN, a RST and skipped ids alone are no trouble.
        let alone = what::FIN | what::RST | what::IDS_SKIPPED;
        if e.what & !(alone | what::PUSH | what::IDLE_BEFORE | what::ACKS_MORE) != 0 {
            let more = more.map(EventMore::decode);
            let lost = flow.trouble(side, &e, more.as_ref(), r.time(), &mut self.pool);
            let to_server = self.queues.least(flow.server());
            if let Some(trouble) = flow.extras.trouble_mut() {
                trouble.to_server = to_server;
            }
            if side == 1 && e.length > 0 && e.what & (what::BELOW | what::COPY | what::PARTIAL) == what::BELOW {
                self.queues.repeated(flow.server(), r.time(), e.length);
            }
            if e.what & (what::SYN_REPEAT | what::SYN_ACK_REPEAT) != 0 && e.what & what::COPY == 0 {
                sink.again(flow.id, e.what & what::SYN_ACK_REPEAT != 0);
            }
            flow.limit_event(side, &e, lost || skipped, r.time(), self.totals.given, &mut self.pool);
            let ends = flow.ends();
            flow.verdicts().for_each(|verdict| sink.segment(&verdict, &ends));
            if let Some((end, block)) = flow.late_block(side, &e, r.time()) {
                self.block(r, end as u8, &block, true, sink);
            }
        } else if skipped {
            flow.limit_event(side, &e, true, r.time(), self.totals.given, &mut self.pool);
        }
    }

    #[inline(never)]
    fn interval(&mut self, r: &Record) {
        let side = usize::from(r.server_to_client());
        let Some(flow) = self.flows.get_mut(r.flow()) else {
            self.health.homeless += 1;
            return;
        };
        let i = Interval::decode(r);
        if flow.is_tcp() {
            self.watch_ids |= flow.extras.trouble().is_some();
            if self.watch_ids {
                let habit = self.habits.of(flow.pair(side));
                let is_first = !flow.has_ids(side);
                let step = flow.interval_ids(side, r, || habit.by_connection() == Some(true));
                habit.interval(i.ip_id, is_first, step);
            } else {
                flow.interval_ids(side, r, || false);
            }
        }
        let d = &mut flow.directions[side];
        d.totals(i.packets, i.payload);
        d.flight_max = d.flight_max.max(i.flight_max);
        let is_late_answer = || side == 0 && flow.setup.has_late_answer() && flow.rtt.samples(0) == 0;
        if i.rtt_count > 0 && !is_late_answer() {
            flow.rtt.interval_min(side, i.rtt_min);
        }
        flow.windows[side].interval(i.window_min, i.window_max);
        if let Some(limits) = flow.extras.limits_mut() {
            limits.sides[side].flight(i.flight_max);
        }
    }

    #[inline(never)]
    fn close(&mut self, r: &Record, more: Option<&Record>, sink: &mut impl Sink) {
        let Some(mut flow) = self.flows.remove(r.flow()) else {
            self.health.homeless += 1;
            return;
        };
        let close = Close::decode(r);
        flow.directions[0].totals(close.client_packets, close.client_payload);
        flow.directions[1].totals(close.server_packets, close.server_payload);
        flow.last = close.last;
        let mut ending = Ending {
            time: r.time(),
            ..Ending::default()
        };
        if let Some(more) = more {
            let more = CloseMore::decode(more);
            flow.close_bits(more.bits);
            ending.next = [
                (more.bits & 1 << 6 != 0).then_some(close.client_next),
                (more.bits & 1 << 7 != 0).then_some(close.server_next),
            ];
            ending.acknowledged = [more.bits & 1 << 4 != 0, more.bits & 1 << 5 != 0];
            ending.counts = close_counts(&more);
        }
        // An unknown cause is a flow that was given up.
        let cause = CloseCause::from_u8(r.arg()).unwrap_or(CloseCause::Evicted);
        if cause == CloseCause::End {
            flow.setup.input_ended(flow.first, r.time());
        }
        self.end(&mut flow, Some(cause), ending, sink);
    }

    /// A flow is over: by CLOSE, because its CLOSE was lost, or (`cause` is `None`) because the
    /// input ended without one.
    fn end(&mut self, flow: &mut Flow, cause: Option<CloseCause>, ending: Ending, sink: &mut impl Sink) {
        self.totals.span(flow.first, flow.last);
        let packets = flow.directions[0].packets.saturating_add(flow.directions[1].packets);
        if !flow.is_tcp() {
            self.totals.other_flows += 1;
            self.totals.other_packets = self.totals.other_packets.saturating_add(packets);
            self.pool.take_back(flow);
            return;
        }
        self.totals.connections += 1;
        self.totals.tcp_packets = self.totals.tcp_packets.saturating_add(packets);
        flow.rtt.close();
        let last_request = flow.turn.as_ref().and_then(|turn| turn.request_end());
        let unseen = flow
            .extras
            .trouble()
            .zip(last_request)
            .is_some_and(|(trouble, at)| trouble.losses[0].missed_behind(at, ending.next[0]));
        if flow.extras.trouble().is_some() {
            let counting = [0, 1].map(|side| self.habits.counting(flow.pair(side)));
            flow.settle(ending.next, ending.acknowledged, counting);
            if self.scaling.has(flow.server()) {
                flow.setup.set_server_scales();
            }
        }
        let ends = flow.ends();
        flow.handshake_verdicts()
            .for_each(|verdict| sink.segment(&verdict, &ends));
        let fin = flow.client_fin();
        let [data_end, server_end] = [0, 1].map(|side| {
            let acknowledged = flow.sent_fin(side) && ending.acknowledged[side];
            ending.next[side]
                .filter(|_| acknowledged)
                .map(|next| next.wrapping_sub(1))
        });
        let losses = flow.extras.trouble().map(|trouble| &trouble.losses[1]);
        let missed = losses.zip(server_end).and_then(|(losses, end)| losses.missed_end(end));
        let turn = flow.turn.as_mut();
        let last = turn.and_then(|turn| turn.close(fin, data_end, missed, &mut self.pool.responses));
        let last = last.map(|(mut done, signature)| {
            let own = flow.server_rtt();
            self.queues.again(flow.server(), own, &mut done);
            self.client_queues.again(|| flow.client(), flow.trip(1), &mut done);
            if unseen {
                may_be_two(&mut done, own);
            }
            done.gave_up = flow.gave_up(cause, ending.time);
            done.unanswered = flow.unanswered(&done, || {
                let is_open = closing::closing(flow, cause).0 == CloseKind::Open;
                self.findings.unanswered.due(flow, is_open)
            });
            let time = flow.account(&mut done, u64::MAX, self.totals.given, &mut self.pool);
            (done, time, signature)
        });
        let verdicts: Vec<Verdict> = flow.verdicts().collect();
        for verdict in &verdicts {
            flow.count_in_vain(verdict);
            sink.segment(verdict, &ends);
        }
        if let Some((done, time, signature)) = &last {
            if let Some(operations) = &mut self.operations {
                operations.add(&flow.route(), done, time);
            }
            self.transaction(flow.id, ends, done, time, Described::Data(signature), sink);
            self.totals.untimed += u64::from(flow.is_one_sided());
        }
        let done = last.as_ref().map(|(done, ..)| done);
        self.findings.connection(flow, cause, done, self.totals.given);
        if let Some(recent) = &mut self.recent {
            recent.each(|recent| recent.findings.connection(flow, cause, done, self.totals.given));
        }
        self.totals.figures.connection(flow);
        self.totals.uncertain = self.totals.uncertain.saturating_add(flow.client_uncertain());
        sink.connection(&Connection {
            flow,
            cause,
            counts: ending.counts,
            given: self.totals.given,
            told: ending.time,
        });
        self.pool.take_back(flow);
    }

    fn summary(&mut self) -> v1::Summary {
        let signatures = self.statistics.table();
        let (operations, operations_left_out) =
            self.operations.as_ref().map_or_else(Default::default, Operations::list);
        v1::Summary {
            operations,
            operations_left_out,
            marked: self.marked.as_ref().map(Marked::message),
            ..self
                .totals
                .message(self.findings.rates.sides, self.findings.missed.segments, signatures)
        }
    }
}

/// A packet of `side` had this TTL (0: not known).
fn hops(flow: &Flow, side: usize, ttl: u8, time: u64, sink: &mut impl Sink) {
    if ttl > 0 {
        sink.hops(&Hops {
            id: flow.id,
            time,
            ends: flow.ends(),
            by_server: side == 1,
            ttl,
        });
    }
}

/// What CLOSE tells of a flow beyond its totals.
#[derive(Clone, Copy, Debug, Default)]
struct Ending {
    /// Next expected sequence numbers, where known.
    next: [Option<u32>; 2],
    /// The FIN of each side, and so everything before it, was acknowledged.
    acknowledged: [bool; 2],
    counts: [CloseCounts; 2],
    /// When it was told of, or the input ended, TAI ns; 0: not known.
    time: u64,
}

/// Options of a SETUP whose continuation was lost: none known.
const NO_OPTIONS: SetupMore = SetupMore {
    client_isn: 0,
    server_isn: 0,
    client_mss: 0,
    server_mss: 0,
    client_window: 0,
    server_window: 0,
    client_scale: NO_SCALE,
    server_scale: NO_SCALE,
};

/// A request that the capture missed may have gone behind this transaction's, and its response be two. `own`: round trip to the server, ns.
fn may_be_two(done: &mut Finished, own: Option<u64>) {
    done.wait = Some(Wait::or(done.wait, own.unwrap_or(0), done.end.unwrap_or(u64::MAX)));
}

fn close_counts(more: &CloseMore) -> [CloseCounts; 2] {
    [
        CloseCounts {
            dup_acks: more.client_dup_acks,
            zero_windows: more.client_zero_windows,
            small_windows: more.client_small_windows,
            copies: more.client_copies,
        },
        CloseCounts {
            dup_acks: more.server_dup_acks,
            zero_windows: more.server_zero_windows,
            small_windows: more.server_small_windows,
            copies: more.server_copies,
        },
    ]
}
