//! The applications: clients that follow their dialogue, services with workers and shared processors, pools that call
//! the next tier, and sleeps that hold them all.

use super::{Conn, ConnRef, Event, Side, World};
use crate::config::{Close, Drawn, draw_ms};
use crate::sim::plan::Plan;
use crate::tcp::{Failure, Note};
use crate::truth::{AppRecord, Outcome, TransactionRecord};
use crate::{Time, from_ms, from_s};
use std::collections::{BTreeMap, VecDeque};

/// A user who found no port free tries again after this.
const PORT_RETRY: Time = 1_000_000_000;

/// What an application does; held back while its host's applications sleep.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    /// A user of this load opens a connection.
    Open(usize),
    /// TCP has something to say.
    Note(ConnRef, Side, Note),
    /// The client begins its next request.
    Request(ConnRef),
    /// The client goes on writing its request.
    WriteRequest(ConnRef),
    /// A slow client reads.
    Read(ConnRef),
    /// The work at this place has its pause behind it.
    Work(usize),
    /// The work at this place makes its next call.
    Call(usize),
}

/// Who waits for a connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner {
    /// A user of this load, who will open another.
    User(usize),
    /// Nobody: a connection of this load that came by chance.
    Chance(usize),
    /// A call through this pool.
    Pool(usize),
}

/// A request of one tier to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    work: usize,
    exchange: usize,
    caused_by: (u32, u32),
}

/// The application's side of a connection, both ends of it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) dialogue: usize,
    owner: Owner,
    /// The call that it serves (pools).
    call: Option<Call>,
    /// Body exchanges that it makes; `None`: until its load is over.
    count: Option<u64>,
    /// Exchanges begun.
    begun: u32,
    run: Option<Run>,
    /// The client is done with it: nothing more begins.
    over: bool,
    /// The server's application heard the client close.
    server_eof: bool,
    /// A worker stays with it.
    has_worker: bool,
    /// A slow reader has a read to come.
    reading: bool,
    pub(super) connect_start: Time,
    pub(super) connect_end: Option<Time>,
    pub(super) closed_at: Option<Time>,
    pub(super) transactions: u32,
    pub(super) error: Option<&'static str>,
    refused: bool,
}

impl Session {
    /// Nobody will use it again.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn outcome(&self) -> Outcome {
        match (self.connect_end, self.refused, self.over) {
            (Some(_), _, _) => Outcome::Connected,
            (None, true, _) => Outcome::Refused,
            (None, false, true) => Outcome::TimedOut,
            (None, false, false) => Outcome::Unfinished,
        }
    }
}

/// A request and its response under way.
#[derive(Debug)]
struct Run {
    /// `None`: the farewell.
    exchange: Option<usize>,
    index: u32,
    caused_by: Option<(u32, u32)>,
    /// The last of its connection.
    last: bool,
    request: Vec<Drawn>,
    written: usize,
    request_bytes: u64,
    request_read: u64,
    /// Place among the exchange's responses.
    choice: usize,
    response: Vec<Drawn>,
    response_bytes: u64,
    response_read: u64,
    times: Times,
}

#[derive(Debug, Clone, Copy, Default)]
struct Times {
    write_start: Time,
    write_end: Option<Time>,
    server_first: Option<Time>,
    server_last: Option<Time>,
    work_start: Option<Time>,
    response_start: Option<Time>,
    response_end: Option<Time>,
    first: Option<Time>,
    last: Option<Time>,
}

/// A request in work at a service.
#[derive(Debug)]
struct Work {
    conn: ConnRef,
    index: u32,
    service: usize,
    exchange: usize,
    choice: usize,
    response: Vec<Drawn>,
    step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    /// Needs the processor.
    Process,
    /// This call is next, or under way.
    Calls(usize),
    /// The wait before the response is next.
    Wait,
    /// This write is next.
    Write(usize),
}

/// Processors shared equally, at most one for each request: virtual time is the work that each request in it has got.
#[derive(Debug, Default)]
struct Processors {
    cpus: f64,
    virtual_ns: f64,
    at: Time,
    asleep: bool,
    /// By the virtual time at which it is done, and the order of coming.
    jobs: BTreeMap<(u64, u64), usize>,
    came: u64,
    /// Raised with every change: an event of an older version says nothing.
    version: u64,
}

impl Processors {
    fn rate(&self) -> f64 {
        let jobs = self.jobs.len() as f64;
        match () {
            () if self.asleep || self.jobs.is_empty() => 0.0,
            () if self.cpus <= 0.0 => 1.0,
            () => (self.cpus / jobs).min(1.0),
        }
    }

    fn advance(&mut self, now: Time) {
        self.virtual_ns += self.rate() * (now - self.at) as f64;
        self.at = now;
        self.version += 1;
    }

    /// When the first is done if nothing changes.
    fn next(&self) -> Option<Time> {
        let rate = self.rate();
        let (&(done, _), _) = self.jobs.first_key_value()?;
        let left = (done as f64 - self.virtual_ns).max(0.0);
        (rate > 0.0).then(|| self.at + (left / rate).ceil() as Time)
    }
}

#[derive(Default)]
pub(super) struct ServiceState {
    /// Of its ports, the one for the next connection.
    next_port: u16,
    busy: u32,
    /// Works that wait for a worker.
    waiting: VecDeque<usize>,
    processors: Processors,
    pub(super) half_open: Vec<ConnRef>,
}

impl ServiceState {
    /// Which of so many ports a new connection goes to.
    pub(super) fn turn(&mut self, ports: u16) -> u16 {
        let turn = self.next_port;
        self.next_port = (turn + 1) % ports;
        turn
    }
}

struct PoolState {
    limit: f64,
    in_use: u32,
    waiting: VecDeque<Call>,
    idle: Vec<ConnRef>,
}

pub(super) struct Apps {
    pub(super) services: Vec<ServiceState>,
    pools: Vec<PoolState>,
    works: Vec<Option<Work>>,
    free_works: Vec<usize>,
    /// End of the sleep under way, for each sleep.
    wakes: Vec<Time>,
}

impl Apps {
    pub(super) fn new(plan: &Plan) -> Apps {
        let service = |service: &super::plan::Service| ServiceState {
            processors: Processors {
                cpus: service.cpus,
                ..Processors::default()
            },
            ..ServiceState::default()
        };
        let pool = |pool: &super::plan::Pool| PoolState {
            limit: pool.limit,
            in_use: 0,
            waiting: VecDeque::new(),
            idle: Vec::new(),
        };
        Apps {
            services: plan.services.iter().map(service).collect(),
            pools: plan.pools.iter().map(pool).collect(),
            works: Vec::new(),
            free_works: Vec::new(),
            wakes: vec![0; plan.sleeps.len()],
        }
    }
}

impl World<'_> {
    pub(super) fn start_apps(&mut self) {
        for (load, config) in self.scenario.load.iter().enumerate() {
            let host = self.plan.dialogues[self.plan.loads[load]].client;
            for _ in 0..config.users as u64 {
                let at = from_s(config.from_s) + draw_ms(&mut self.rng_apps, config.spread_ms);
                self.events.push(at, Event::Act(host, Action::Open(load)));
            }
            if config.per_s > 0.0 {
                self.events.push(from_s(config.from_s), Event::Arrival(load));
            }
        }
        for (pool, plan) in self.plan.pools.iter().enumerate() {
            if plan.grow_per_s > 0.0 {
                self.events.push(from_s(1.0 / plan.grow_per_s), Event::Grow(pool));
            }
        }
        for (sleep, config) in self.scenario.sleep.iter().enumerate() {
            let at = draw_ms(&mut self.rng_apps, config.every_s) * 1000;
            self.events.push(at, Event::Sleep(sleep));
        }
    }

    // ---- sleeping ----

    /// An application does something, once it is awake.
    pub(super) fn act(&mut self, host: usize, action: Action) {
        if self.hosts[host].sleeps > 0 {
            self.hosts[host].held.push(action);
        } else {
            self.perform(action);
        }
    }

    pub(super) fn on_sleep(&mut self, sleep: usize) {
        let config = &self.scenario.sleep[sleep];
        let wake = self.now + draw_ms(&mut self.rng_apps, config.length_ms);
        let again = self.now + draw_ms(&mut self.rng_apps, config.every_s) * 1000;
        self.apps.wakes[sleep] = wake;
        self.events.push(wake, Event::Wake(sleep));
        self.events.push(again, Event::Sleep(sleep));
        self.totals.sleeps += 1;
        let record = AppRecord::Sleep {
            hosts: &config.hosts,
            start_ns: self.utc(self.now),
            end_ns: self.utc(wake),
        };
        self.log(&record);
        for place in 0..self.plan.sleeps[sleep].len() {
            let host = self.plan.sleeps[sleep][place];
            self.hosts[host].sleeps += 1;
            self.set_processors(host, true);
        }
    }

    pub(super) fn on_wake(&mut self, sleep: usize) {
        for place in 0..self.plan.sleeps[sleep].len() {
            let host = self.plan.sleeps[sleep][place];
            self.hosts[host].sleeps -= 1;
            if self.hosts[host].sleeps == 0 {
                self.set_processors(host, false);
                for action in std::mem::take(&mut self.hosts[host].held) {
                    self.perform(action);
                }
            }
        }
    }

    fn set_processors(&mut self, host: usize, asleep: bool) {
        for service in 0..self.plan.services.len() {
            if self.plan.services[service].host == host {
                let processors = &mut self.apps.services[service].processors;
                processors.advance(self.now);
                processors.asleep = asleep;
                self.await_processors(service);
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Open(load) => self.open(self.plan.loads[load], Owner::User(load), None),
            Action::Note(conn, side, note) => self.on_note(conn, side, note),
            Action::Request(conn) => self.request(conn),
            Action::WriteRequest(conn) => self.write_request(conn),
            Action::Read(conn) => self.read_slowly(conn),
            Action::Work(work) => self.go_on(work),
            Action::Call(work) => self.call(work),
        }
    }

    // ---- clients ----

    pub(super) fn on_arrival(&mut self, load: usize) {
        let config = &self.scenario.load[load];
        if self.now > from_s(config.to_s) {
            return;
        }
        let dialogue = self.plan.loads[load];
        // Exponential gaps: arrivals by chance.
        let gap = -(1.0 - self.rng_apps.unit()).ln() / config.per_s;
        self.events.push(self.now + from_s(gap).max(1), Event::Arrival(load));
        if self.hosts[self.plan.dialogues[dialogue].client].sleeps == 0 {
            self.open(dialogue, Owner::Chance(load), None);
        }
    }

    /// A client opens a connection, if its load is not over.
    fn open(&mut self, dialogue: usize, owner: Owner, call: Option<Call>) {
        if let Owner::User(load) = owner
            && self.now >= from_s(self.scenario.load[load].to_s)
        {
            return;
        }
        let plan = &self.plan.dialogues[dialogue];
        let count = plan.count.map(|span| {
            let (low, high) = span.ends();
            self.rng_apps.between(low as u64, high as u64)
        });
        let host = plan.client;
        let session = Session {
            dialogue,
            owner,
            call,
            count,
            begun: 0,
            run: None,
            over: false,
            server_eof: false,
            has_worker: false,
            reading: false,
            connect_start: self.now,
            connect_end: None,
            closed_at: None,
            transactions: 0,
            error: None,
            refused: false,
        };
        if self.connect(dialogue, session).is_none() {
            match owner {
                Owner::User(load) => self
                    .events
                    .push(self.now + PORT_RETRY, Event::Act(host, Action::Open(load))),
                Owner::Chance(_) => {}
                Owner::Pool(pool) => {
                    self.apps.pools[pool].in_use -= 1;
                    if let Some(call) = call {
                        self.go_on(call.work);
                    }
                }
            }
        }
    }

    fn on_note(&mut self, at: ConnRef, side: Side, note: Note) {
        let now = self.now;
        let Some(conn) = self.conn(at) else { return };
        match (side, note) {
            (Side::Client, Note::Connected) => {
                conn.session.connect_end = Some(now);
                self.request(at);
            }
            (Side::Client, Note::Readable) => self.client_reads(at),
            (Side::Client, Note::Eof) => self.client_hears_close(at),
            (Side::Client, Note::Failed(failure)) => self.client_fails(at, failure),
            (Side::Server, Note::Readable) => self.server_reads(at),
            (Side::Server, Note::Eof) => {
                conn.session.server_eof = true;
                self.server_hears_close(at);
            }
            (Side::Server, Note::Failed(_)) => self.dismiss_worker(at),
            (Side::Server, Note::Connected) => {}
        }
    }

    /// The next exchange and whether it is the last; `None` when the dialogue is done.
    fn next_exchange(&self, session: &Session) -> Option<(usize, bool)> {
        let plan = &self.plan.dialogues[session.dialogue];
        let begun = session.begun as usize;
        if let Some(call) = session.call {
            // A pooled connection opens once, then serves a call at a time.
            let exchange = plan.open.get(begun).copied().unwrap_or(call.exchange);
            return Some((exchange, begun >= plan.open.len()));
        }
        let count = session.count.map_or(usize::MAX, |count| count as usize);
        let last = begun + 1 == plan.open.len().saturating_add(count);
        if let Some(&exchange) = plan.open.get(begun) {
            return Some((exchange, last));
        }
        let place = begun - plan.open.len();
        if place >= count || plan.body.is_empty() || self.load_is_over(session.owner) {
            return None;
        }
        Some((plan.body[place % plan.body.len()], last))
    }

    fn load_is_over(&self, owner: Owner) -> bool {
        match owner {
            Owner::User(load) | Owner::Chance(load) => self.now >= from_s(self.scenario.load[load].to_s),
            Owner::Pool(_) => false,
        }
    }

    /// The client begins its next request, or ends.
    fn request(&mut self, at: ConnRef) {
        let Some(conn) = self.conns[at.slot].as_ref().filter(|conn| conn.number == at.number) else {
            return;
        };
        if conn.session.over || conn.session.run.is_some() {
            return;
        }
        match self.next_exchange(&conn.session) {
            Some((exchange, last)) => self.begin(at, Some(exchange), last),
            None => self.finish_dialogue(at),
        }
    }

    /// Begins an exchange, or the farewell.
    fn begin(&mut self, at: ConnRef, exchange: Option<usize>, last: bool) {
        let Some(conn) = self.conns[at.slot].as_mut() else {
            return;
        };
        let dialogue = &self.plan.dialogues[conn.session.dialogue];
        let whole = |bytes: u32| match bytes {
            0 => Vec::new(),
            bytes => vec![Drawn { pause: false, bytes }],
        };
        let (request, choice, response) = match exchange {
            None => (whole(dialogue.farewell), 0, whole(dialogue.farewell_reply)),
            Some(exchange) => {
                let plan = &self.plan.exchanges[exchange];
                let all: f64 = plan.responses.iter().map(|(_, response)| response.weight).sum();
                let mut drawn = self.rng_apps.unit() * all;
                let choice = plan.responses.iter().position(|(_, response)| {
                    drawn -= response.weight;
                    drawn < 0.0
                });
                let choice = choice.unwrap_or(plan.responses.len() - 1);
                let request = plan.request.draw(&mut self.rng_apps);
                (request, choice, plan.responses[choice].0.draw(&mut self.rng_apps))
            }
        };
        let sum = |writes: &[Drawn]| writes.iter().map(|write| u64::from(write.bytes)).sum();
        let session = &mut conn.session;
        session.run = Some(Run {
            exchange,
            index: session.begun,
            caused_by: session.call.map(|call| call.caused_by),
            last,
            written: 0,
            request_bytes: sum(&request),
            request,
            request_read: 0,
            choice,
            response_bytes: sum(&response),
            response,
            response_read: 0,
            times: Times {
                write_start: self.now,
                ..Times::default()
            },
        });
        session.begun += 1;
        self.write_request(at);
    }

    fn write_request(&mut self, at: ConnRef) {
        loop {
            let now = self.now;
            let Some(conn) = self.conn(at) else { return };
            let (dialogue, host) = (conn.session.dialogue, conn.hosts[0]);
            let Some(run) = conn.session.run.as_mut() else { return };
            let Some(&write) = run.request.get(run.written) else {
                return;
            };
            run.written += 1;
            let (exchange, done, last) = (run.exchange, run.written == run.request.len(), run.last);
            let next_waits = run.request.get(run.written).is_some_and(|next| next.pause);
            if done {
                run.times.write_end = Some(now);
            }
            self.with(at, Side::Client, |end, now, output| end.write(now, write.bytes, output));
            if done {
                if last && self.plan.dialogues[dialogue].close == Close::ClientHalfClose {
                    self.with(at, Side::Client, |end, now, output| end.shutdown(now, output));
                }
                return;
            }
            if let Some(exchange) = exchange.filter(|_| next_waits) {
                let pause = draw_ms(&mut self.rng_apps, self.plan.exchanges[exchange].request_pause_ms);
                self.events
                    .push(now + pause, Event::Act(host, Action::WriteRequest(at)));
                return;
            }
        }
    }

    fn client_reads(&mut self, at: ConnRef) {
        let Some(conn) = self.conns[at.slot].as_mut() else {
            return;
        };
        let dialogue = &self.plan.dialogues[conn.session.dialogue];
        if let Some(reader) = dialogue.reader {
            if !conn.session.reading {
                conn.session.reading = true;
                let host = conn.hosts[0];
                self.events
                    .push(self.now + from_ms(reader.every_ms), Event::Act(host, Action::Read(at)));
            }
            return;
        }
        let ready = conn.client.unread();
        self.client_takes(at, ready);
    }

    fn read_slowly(&mut self, at: ConnRef) {
        let Some(conn) = self.conn(at) else { return };
        conn.session.reading = false;
        let (dialogue, ready) = (conn.session.dialogue, conn.client.unread());
        let Some(reader) = self.plan.dialogues[dialogue].reader else {
            return;
        };
        self.client_takes(at, ready.min(reader.bytes));
        if ready > reader.bytes {
            self.client_reads(at);
        }
    }

    fn client_takes(&mut self, at: ConnRef, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.with(at, Side::Client, |end, now, output| end.read(now, bytes, output));
        let now = self.now;
        let Some(conn) = self.conn(at) else { return };
        let Some(run) = conn.session.run.as_mut() else { return };
        run.times.first.get_or_insert(now);
        run.response_read += bytes;
        if run.response_read < run.response_bytes {
            return;
        }
        run.times.last = Some(now);
        self.complete(at);
    }

    /// A response is whole: the next request, after a pause.
    fn complete(&mut self, at: ConnRef) {
        self.write_transaction(at);
        let Some(conn) = self.conns[at.slot].as_mut() else {
            return;
        };
        conn.session.run = None;
        conn.session.transactions += 1;
        let plan = &self.plan.dialogues[conn.session.dialogue];
        let (owner, host) = (conn.session.owner, conn.hosts[0]);
        if let (Owner::Pool(pool), Some(call)) = (owner, conn.session.call)
            && conn.session.begun as usize > plan.open.len()
        {
            conn.session.call = None;
            self.apps.pools[pool].in_use -= 1;
            if self.plan.pools[pool].reuse {
                self.apps.pools[pool].idle.push(at);
            } else {
                self.finish_dialogue(at);
            }
            self.go_on(call.work);
            self.serve_calls(pool);
            return;
        }
        let think = draw_ms(&mut self.rng_apps, plan.think_ms);
        if think == 0 {
            self.request(at);
        } else {
            self.events
                .push(self.now + think, Event::Act(host, Action::Request(at)));
        }
    }

    /// All exchanges are done: the end of the connection as its dialogue wants it.
    fn finish_dialogue(&mut self, at: ConnRef) {
        let Some(conn) = self.conn(at) else { return };
        let dialogue = conn.session.dialogue;
        let close = self.plan.dialogues[dialogue].close;
        match close {
            Close::ClientFin => {
                if self.plan.dialogues[dialogue].farewell > 0 {
                    self.begin(at, None, true);
                }
                self.with(at, Side::Client, |end, now, output| end.close(now, output));
            }
            Close::ClientAbandons => {
                let exchange = self.plan.dialogues[dialogue].abandons;
                self.begin(at, exchange, true);
                self.with(at, Side::Client, |end, now, output| end.close(now, output));
            }
            Close::ClientRst => self.with(at, Side::Client, |end, now, output| end.abort(now, output)),
            // The server closes; or nobody.
            Close::ServerFin | Close::ClientHalfClose | Close::Never => return,
        }
        self.let_go(at);
    }

    /// The client is done with the connection; its owner goes on.
    fn let_go(&mut self, at: ConnRef) {
        let now = self.now;
        let Some(conn) = self.conn(at) else { return };
        if conn.session.over {
            return;
        }
        conn.session.over = true;
        conn.session.closed_at = Some(now);
        let (owner, host) = (conn.session.owner, conn.hosts[0]);
        if let Owner::User(load) = owner {
            let gap = draw_ms(&mut self.rng_apps, self.scenario.load[load].gap_ms);
            self.events.push(now + gap, Event::Act(host, Action::Open(load)));
        }
        self.release(at);
    }

    fn client_hears_close(&mut self, at: ConnRef) {
        self.with(at, Side::Client, |end, now, output| end.close(now, output));
        self.leave_pool(at);
        self.let_go(at);
    }

    fn client_fails(&mut self, at: ConnRef, failure: Failure) {
        let Some(conn) = self.conn(at) else { return };
        if conn.session.over {
            self.release(at);
            return;
        }
        if conn.session.connect_end.is_some() {
            conn.session.error = Some(match failure {
                Failure::TimedOut => "timed out",
                Failure::Refused | Failure::Reset => "reset",
            });
        } else {
            conn.session.refused = failure == Failure::Refused;
        }
        self.leave_pool(at);
        self.let_go(at);
    }

    /// A pooled connection is no more; the call that it served goes without an answer.
    fn leave_pool(&mut self, at: ConnRef) {
        let Some(conn) = self.conn(at) else { return };
        let Owner::Pool(pool) = conn.session.owner else { return };
        let call = conn.session.call.take();
        self.apps.pools[pool].idle.retain(|&idle| idle != at);
        if let Some(call) = call {
            self.apps.pools[pool].in_use -= 1;
            self.go_on(call.work);
            self.serve_calls(pool);
        }
    }

    // ---- pools ----

    fn call(&mut self, place: usize) {
        let Some(work) = self.apps.works[place].as_ref() else {
            return;
        };
        let exchange = &self.plan.exchanges[work.exchange];
        let (Step::Calls(next), Some(pool)) = (work.step, exchange.pool) else {
            return;
        };
        let call = Call {
            work: place,
            exchange: exchange.calls[next],
            caused_by: (work.conn.number, work.index),
        };
        self.apps.pools[pool].waiting.push_back(call);
        self.serve_calls(pool);
    }

    fn serve_calls(&mut self, pool: usize) {
        loop {
            let state = &mut self.apps.pools[pool];
            if state.waiting.is_empty() || f64::from(state.in_use) + 1.0 > state.limit {
                return;
            }
            let Some(call) = state.waiting.pop_front() else { return };
            state.in_use += 1;
            match state.idle.pop() {
                Some(at) => {
                    if let Some(conn) = self.conn(at) {
                        conn.session.call = Some(call);
                    }
                    self.request(at);
                }
                None => self.open(self.plan.pools[pool].dialogue, Owner::Pool(pool), Some(call)),
            }
        }
    }

    pub(super) fn on_grow(&mut self, pool: usize) {
        let plan = &self.plan.pools[pool];
        self.events
            .push(self.now + from_s(1.0 / plan.grow_per_s), Event::Grow(pool));
        let state = &mut self.apps.pools[pool];
        if state.waiting.is_empty() || state.limit + 1.0 > plan.max {
            return;
        }
        state.limit += 1.0;
        let record = AppRecord::PoolGrew {
            pool: &plan.name,
            limit: state.limit as u32,
            time_ns: self.epoch_ns + self.now,
        };
        let written = self.app_lines.write(&record);
        self.keep(written);
        self.serve_calls(pool);
    }

    // ---- services ----

    fn server_reads(&mut self, at: ConnRef) {
        let now = self.now;
        let Some(conn) = self.conn(at) else { return };
        let Some(ready) = conn.server.as_ref().map(|end| end.unread()).filter(|&ready| ready > 0) else {
            return;
        };
        self.with(at, Side::Server, |end, now, output| end.read(now, ready, output));
        let Some(conn) = self.conn(at) else { return };
        let (service, has_worker) = (conn.service, conn.session.has_worker);
        let Some(run) = conn.session.run.as_mut() else { return };
        run.times.server_first.get_or_insert(now);
        run.request_read += ready;
        if run.request_read < run.request_bytes {
            return;
        }
        run.times.server_last = Some(now);
        let Some(exchange) = run.exchange else { return };
        let work = Work {
            conn: at,
            index: run.index,
            service,
            exchange,
            choice: run.choice,
            response: run.response.clone(),
            step: Step::Process,
        };
        let place = match self.apps.free_works.pop() {
            Some(place) => {
                self.apps.works[place] = Some(work);
                place
            }
            None => {
                self.apps.works.push(Some(work));
                self.apps.works.len() - 1
            }
        };
        let state = &mut self.apps.services[service];
        let workers = self.plan.services[service].workers;
        if has_worker {
            self.start_work(place);
        } else if workers > 0 && state.busy >= workers {
            state.waiting.push_back(place);
        } else {
            state.busy += 1;
            self.start_work(place);
        }
    }

    /// The times of the request that a work is about, if its connection still has it.
    fn times_of(&mut self, place: usize) -> Option<&mut Times> {
        let work = self.apps.works[place].as_ref()?;
        let (at, index) = (work.conn, work.index);
        let run = self.conn(at)?.session.run.as_mut()?;
        (run.index == index).then_some(&mut run.times)
    }

    fn start_work(&mut self, place: usize) {
        let now = self.now;
        if let Some(times) = self.times_of(place) {
            times.work_start = Some(now);
        }
        let Some(work) = self.apps.works[place].as_ref() else {
            return;
        };
        let (service, at) = (work.service, work.conn);
        if self.plan.services[service].worker_per_connection
            && let Some(conn) = self.conn(at)
        {
            conn.session.has_worker = true;
        }
        let Some(work) = self.apps.works[place].as_ref() else {
            return;
        };
        let demand = draw_ms(&mut self.rng_apps, self.plan.exchanges[work.exchange].cpu_ms);
        let processors = &mut self.apps.services[service].processors;
        processors.advance(now);
        let done = processors.virtual_ns as u64 + demand;
        processors.jobs.insert((done, processors.came), place);
        processors.came += 1;
        self.await_processors(service);
    }

    fn await_processors(&mut self, service: usize) {
        let processors = &self.apps.services[service].processors;
        if let Some(at) = processors.next() {
            self.events.push(at, Event::Processed(service, processors.version));
        }
    }

    pub(super) fn on_processed(&mut self, service: usize, version: u64) {
        let processors = &mut self.apps.services[service].processors;
        if processors.version != version {
            return;
        }
        processors.advance(self.now);
        let mut done = Vec::new();
        while let Some(entry) = processors.jobs.first_entry() {
            if entry.key().0 as f64 > processors.virtual_ns + 1.0 {
                break;
            }
            done.push(entry.remove());
        }
        self.await_processors(service);
        for place in done {
            if let Some(work) = self.apps.works[place].as_mut() {
                work.step = Step::Calls(usize::MAX);
            }
            self.go_on(place);
        }
    }

    /// The step of a work is over: the next.
    fn go_on(&mut self, place: usize) {
        let now = self.now;
        loop {
            let Some(work) = self.apps.works[place].as_mut() else {
                return;
            };
            let exchange = &self.plan.exchanges[work.exchange];
            let response = &exchange.responses[work.choice].1;
            let host = self.plan.services[work.service].host;
            match work.step {
                Step::Process => return,
                Step::Calls(done) => {
                    let next = done.wrapping_add(1);
                    if next < exchange.calls.len() {
                        work.step = Step::Calls(next);
                        let gap = draw_ms(&mut self.rng_apps, exchange.call_gap_ms);
                        self.events.push(now + gap, Event::Act(host, Action::Call(place)));
                        return;
                    }
                    work.step = Step::Wait;
                    let wait = draw_ms(&mut self.rng_apps, response.wait_ms);
                    if wait > 0 {
                        self.events.push(now + wait, Event::Act(host, Action::Work(place)));
                        return;
                    }
                }
                Step::Wait => {
                    work.step = Step::Write(0);
                    if work.response[0].pause && self.pause(place) {
                        return;
                    }
                }
                Step::Write(next) => {
                    let at = work.conn;
                    let bytes = work.response[next].bytes;
                    let then = work.response.get(next + 1).copied();
                    work.step = Step::Write(next + 1);
                    if let Some(times) = self.times_of(place) {
                        times.response_start.get_or_insert(now);
                        if then.is_none() {
                            times.response_end = Some(now);
                        }
                    }
                    self.with(at, Side::Server, |end, now, output| end.write(now, bytes, output));
                    let Some(then) = then else {
                        self.end_work(place);
                        return;
                    };
                    if then.pause && self.pause(place) {
                        return;
                    }
                }
            }
        }
    }

    /// The pause before a write; false if it is none.
    fn pause(&mut self, place: usize) -> bool {
        let Some(work) = self.apps.works[place].as_ref() else {
            return false;
        };
        let response = &self.plan.exchanges[work.exchange].responses[work.choice].1;
        let pause = draw_ms(&mut self.rng_apps, response.pause_ms);
        let host = self.plan.services[work.service].host;
        if pause > 0 {
            self.events
                .push(self.now + pause, Event::Act(host, Action::Work(place)));
        }
        pause > 0
    }

    /// The response is written: the worker takes the next request.
    fn end_work(&mut self, place: usize) {
        let Some(work) = self.apps.works[place].take() else {
            return;
        };
        self.apps.free_works.push(place);
        let at = work.conn;
        let mut stays = false;
        if let Some(conn) = self.conn(at) {
            let (dialogue, eof) = (conn.session.dialogue, conn.session.server_eof);
            let last = conn.session.run.as_ref().is_some_and(|run| run.last);
            stays = conn.session.has_worker;
            if eof || (last && self.plan.dialogues[dialogue].close == Close::ServerFin) {
                self.dismiss_worker(at);
                self.with(at, Side::Server, |end, now, output| end.close(now, output));
            }
        }
        if !stays {
            self.next_work(work.service);
        }
    }

    /// A worker is free.
    fn next_work(&mut self, service: usize) {
        let state = &mut self.apps.services[service];
        match state.waiting.pop_front() {
            Some(next) => self.start_work(next),
            None => state.busy -= 1,
        }
    }

    /// The worker that stayed with a connection is free.
    fn dismiss_worker(&mut self, at: ConnRef) {
        let Some(conn) = self.conn(at) else { return };
        let service = conn.service;
        if std::mem::take(&mut conn.session.has_worker) {
            self.next_work(service);
        }
    }

    /// The client has closed: the farewell's answer, or our close, unless a response is still to be written.
    fn server_hears_close(&mut self, at: ConnRef) {
        let now = self.now;
        let Some(conn) = self.conn(at) else { return };
        let run = conn.session.run.as_mut();
        if run
            .as_ref()
            .is_some_and(|run| run.exchange.is_some() && run.times.response_end.is_none())
        {
            return;
        }
        let reply = run.and_then(|run| {
            let reply = run.response.first().copied();
            if reply.is_some() && run.exchange.is_none() {
                run.times.response_start = Some(now);
                run.times.response_end = Some(now);
                return reply;
            }
            None
        });
        self.dismiss_worker(at);
        self.with(at, Side::Server, |end, now, output| match reply {
            // The client will not take it: its RST is the end.
            Some(reply) => end.write(now, reply.bytes, output),
            None => end.close(now, output),
        });
    }

    // ---- the truth ----

    fn write_transaction(&mut self, at: ConnRef) {
        let Some(conn) = self.conns[at.slot].take() else { return };
        self.write_last_transaction(&conn);
        self.conns[at.slot] = Some(conn);
    }

    /// Writes the request and response under way, if there is one.
    pub(super) fn write_last_transaction(&mut self, conn: &Conn) {
        let Some(run) = &conn.session.run else { return };
        let exchange = match run.exchange {
            Some(exchange) => self.plan.exchanges[exchange].name.as_str(),
            None => "farewell",
        };
        let utc = |time: Option<Time>| time.map(|time| self.epoch_ns + time);
        let times = run.times;
        let record = AppRecord::Transaction(TransactionRecord {
            connection: conn.number,
            index: run.index,
            exchange,
            caused_by: run.caused_by,
            request_bytes: run.request_bytes,
            request_chunks: run.request.len(),
            response_bytes: run.response_bytes,
            response_chunks: run.response.len(),
            complete: times.last.is_some(),
            request_write_start_ns: self.epoch_ns + times.write_start,
            request_write_end_ns: utc(times.write_end),
            server_request_first_ns: utc(times.server_first),
            server_request_last_ns: utc(times.server_last),
            server_work_start_ns: utc(times.work_start),
            server_response_start_ns: utc(times.response_start),
            server_response_end_ns: utc(times.response_end),
            response_first_ns: utc(times.first),
            response_last_ns: utc(times.last),
        });
        let written = self.app_lines.write(&record);
        *self.totals.transactions.entry(exchange.to_owned()).or_default() += 1;
        self.keep(written);
    }
}
