//! The world: moves segments over paths, endpoints through time, and keeps the truth.

mod app;
mod plan;

use crate::again::{Stream, Turn};
use crate::config::Scenario;
use crate::error::ScenarioError;
use crate::events::Events;
use crate::link::{Batches, Fate, Link};
use crate::packet::{End, Framer, Segment, flag};
use crate::tap::Tap;
use crate::tcp::{self, Endpoint, Output};
use crate::truth::{
    Again, AgainSeen, AppRecord, Cause, ConnectionRecord, Direction, How, Loss, Outcome, Seen, TapTotals, Totals,
};
use crate::{Time, from_s};
use app::{Action, Apps, Session};
use plan::Plan;
use serde::Serialize;
use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use weir_lab::rng::Rng;

/// Purposes of random streams; links and taps have one each above `LINKS` and `TAPS`.
const TCP: u64 = 1;
const APPS: u64 = 2;
const LINKS: u64 = 1 << 16;
const TAPS: u64 = 1 << 17;

/// Events of one instant above which it is taken to have no end; and those that each user may add.
const MAX_AT_ONCE: u64 = 500_000;
const MAX_OF_USER: u64 = 20;

/// A connection: its place, and its number, which is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ConnRef {
    slot: usize,
    number: u32,
}

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

enum Event {
    /// A packet has crossed a leg.
    Arrive(usize),
    /// An endpoint's deadline.
    Deadline(ConnRef, Side),
    /// An application on this host does something.
    Act(usize, Action),
    /// A service's processors are done with a request, if nothing changed since.
    Processed(usize, u64),
    /// A pool may grow.
    Grow(usize),
    /// A connection of a load comes by chance.
    Arrival(usize),
    /// Applications stop.
    Sleep(usize),
    /// They go on.
    Wake(usize),
}

struct HostState {
    stack: Rc<crate::config::Stack>,
    address: std::net::Ipv4Addr,
    ports: [u16; 2],
    next_port: u16,
    used_ports: HashSet<u16>,
    ip_id: u16,
    /// Sleeps that hold its applications.
    sleeps: u32,
    /// What they would have done.
    held: Vec<Action>,
}

struct LegState {
    forward: Link,
    backward: Link,
    batches: Batches,
}

struct PathState {
    name: String,
    /// Places in `World::taps`.
    taps: Vec<usize>,
    legs: Vec<LegState>,
}

struct Packet {
    conn: ConnRef,
    from: Side,
    segment: Segment,
    /// Legs and taps behind it, in its direction.
    passed: usize,
    ip_id: u16,
    ttl: u8,
    /// When it was sent, and its place among the segments of its direction.
    sent: Time,
    turn: Option<Turn>,
    /// Taps that wrote it.
    seen: Vec<(usize, AgainSeen)>,
}

/// What is written of a segment that was sent again or came late; its stream adds whether it was spurious.
#[derive(Debug)]
struct AgainLine {
    packet_sent: Time,
    direction: Direction,
    connection: u32,
    again: bool,
    arrived: bool,
    seen: Vec<(usize, AgainSeen)>,
    seq: u32,
    len: u32,
    flags: u8,
    ip_id: u16,
}

struct Conn {
    number: u32,
    path: usize,
    /// The client is at the path's first host.
    forward: bool,
    hosts: [usize; 2],
    ends: [End; 2],
    client: Endpoint,
    server: Option<Endpoint>,
    service: usize,
    /// Its deadline event that counts.
    deadlines: [Option<Time>; 2],
    /// Packets under way.
    flying: u32,
    seen: Vec<Seen>,
    /// What went each way, by the side that sent it.
    streams: [Stream<AgainLine>; 2],
    session: Session,
}

struct World<'a> {
    scenario: &'a Scenario,
    plan: Plan,
    epoch_ns: u64,
    now: Time,
    end: Time,
    events: Events<Event>,
    hosts: Vec<HostState>,
    paths: Vec<PathState>,
    taps: Vec<Tap>,
    packets: Vec<Packet>,
    free_packets: Vec<usize>,
    conns: Vec<Option<Conn>>,
    free_conns: Vec<usize>,
    connections: u32,
    apps: Apps,
    rng_tcp: Rng,
    rng_apps: Rng,
    framer: Framer,
    output: Output,
    app_lines: Lines,
    wire_lines: Lines,
    again_lines: Lines,
    totals: Totals,
    /// The first error of a file; the run ends with it.
    failed: Option<ScenarioError>,
}

/// A JSON Lines file.
struct Lines {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Lines {
    fn create(path: PathBuf) -> Result<Lines, ScenarioError> {
        let file = File::create(&path).map_err(ScenarioError::io(format!("creating {}", path.display())))?;
        let out = BufWriter::with_capacity(1 << 18, file);
        Ok(Lines { path, out })
    }

    fn write(&mut self, record: &impl Serialize) -> Result<(), ScenarioError> {
        let written = serde_json::to_writer(&mut self.out, record)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"));
        written.map_err(ScenarioError::io(format!("writing {}", self.path.display())))
    }

    fn finish(&mut self) -> Result<(), ScenarioError> {
        let flushed = self.out.flush();
        flushed.map_err(ScenarioError::io(format!("writing {}", self.path.display())))
    }
}

/// What a run left behind.
#[derive(Debug)]
pub struct Report {
    /// Captures, one per tap.
    pub captures: Vec<PathBuf>,
    /// The whole in figures, as in `NAME-truth.json`.
    pub totals: Totals,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tap in self.totals.taps.values() {
            write!(f, "{}: {} frames", tap.file, tap.packets)?;
            if tap.missed > 0 {
                write!(f, ", {} missed", tap.missed)?;
            }
            if tap.duplicated > 0 {
                write!(f, ", {} twice", tap.duplicated)?;
            }
            writeln!(f)?;
        }
        for (dialogue, count) in &self.totals.connections {
            let outcomes: Vec<String> = self.totals.outcomes.get(dialogue).map_or_else(Vec::new, |outcomes| {
                outcomes
                    .iter()
                    .map(|(outcome, count)| format!("{outcome} {count}"))
                    .collect()
            });
            writeln!(f, "{dialogue}: {count} connections ({})", outcomes.join(", "))?;
        }
        let transactions: u64 = self.totals.transactions.values().sum();
        let losses: u64 = self.totals.losses.values().sum();
        writeln!(f, "{transactions} transactions, {losses} frames lost")
    }
}

/// Runs a scenario (already scaled; `scale` is only told in the truth) and writes its files into a folder.
pub fn run(scenario: &Scenario, scale: f64, folder: &Path) -> Result<Report, ScenarioError> {
    std::fs::create_dir_all(folder).map_err(ScenarioError::io(format!("making {}", folder.display())))?;
    let file = |suffix: &str| folder.join(format!("{}-{suffix}", scenario.name));
    let settings = file("scenario.toml");
    std::fs::write(&settings, scenario.to_toml()?)
        .map_err(ScenarioError::io(format!("writing {}", settings.display())))?;
    let mut world = World::new(scenario, folder)?;
    world.totals.scenario.clone_from(&scenario.name);
    world.totals.seed = scenario.seed;
    world.totals.scale = scale;
    world.run()?;
    let truth = file("truth.json");
    let text = serde_json::to_string_pretty(&world.totals).unwrap_or_default() + "\n";
    std::fs::write(&truth, text).map_err(ScenarioError::io(format!("writing {}", truth.display())))?;
    Ok(Report {
        captures: world.taps.iter().map(|tap| tap.path.clone()).collect(),
        totals: world.totals,
    })
}

impl HostState {
    /// The next ephemeral port that is free.
    fn take_port(&mut self) -> Option<u16> {
        let [first, last] = self.ports;
        for _ in first..=last {
            let port = self.next_port;
            self.next_port = if port == last { first } else { port + 1 };
            if self.used_ports.insert(port) {
                return Some(port);
            }
        }
        None
    }
}

impl Seen {
    fn count(&mut self, from: Side, segment: &Segment, written: bool) {
        if !written {
            self.missed += 1;
            self.missed_segments += u32::from(segment.len > 0 || segment.has(flag::FIN));
            return;
        }
        match from {
            Side::Client => {
                self.packets_c2s += 1;
                self.payload_c2s += u64::from(segment.len);
                self.syns += u32::from(segment.has(flag::SYN));
            }
            Side::Server => {
                self.packets_s2c += 1;
                self.payload_s2c += u64::from(segment.len);
                self.syn_acks += u32::from(segment.has(flag::SYN));
                self.resets_s2c += u32::from(segment.has(flag::RST));
            }
        }
    }
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, folder: &Path) -> Result<Self, ScenarioError> {
        let wrong = |problem: String| ScenarioError::Description {
            source: scenario.name.clone(),
            problem,
        };
        let plan = Plan::new(scenario).map_err(wrong)?;
        let epoch_ns = scenario.start_unix_s * 1_000_000_000;
        let seed = scenario.seed;
        let mut taps: Vec<Tap> = Vec::new();
        let mut paths = Vec::new();
        let mut links = LINKS;
        for path in &scenario.path {
            let mut places = Vec::new();
            for name in &path.taps {
                let place = match taps.iter().position(|tap| tap.name == *name) {
                    Some(place) => place,
                    None => {
                        let file = folder.join(format!("{}-{name}.pcap", scenario.name));
                        let config = scenario.tap.get(name).copied().unwrap_or_default();
                        let rng = Rng::new(seed, TAPS + taps.len() as u64);
                        taps.push(Tap::create(name, file, scenario.snap_length, config, rng, epoch_ns)?);
                        taps.len() - 1
                    }
                };
                places.push(place);
            }
            let mut link = |config: &crate::config::Link| {
                links += 1;
                Link::new(config.clone(), Rng::new(seed, links))
            };
            paths.push(PathState {
                name: path.between.join("-"),
                taps: places,
                legs: path
                    .leg
                    .iter()
                    .map(|leg| LegState {
                        forward: link(&leg.forward),
                        backward: link(&leg.backward),
                        batches: Batches::new(&leg.syn_batches),
                    })
                    .collect(),
            });
        }
        let mut rng_tcp = Rng::new(seed, TCP);
        let hosts = scenario
            .host
            .iter()
            .map(|host| {
                Ok(HostState {
                    stack: Rc::new(host.stack()?),
                    address: host.address,
                    ports: host.ports,
                    next_port: host.next_port.unwrap_or(host.ports[0]),
                    used_ports: HashSet::new(),
                    ip_id: rng_tcp.next_u64() as u16,
                    sleeps: 0,
                    held: Vec::new(),
                })
            })
            .collect::<Result<Vec<_>, String>>()
            .map_err(wrong)?;
        let lines = |suffix: &str| Lines::create(folder.join(format!("{}-{suffix}.jsonl", scenario.name)));
        Ok(World {
            apps: Apps::new(&plan),
            plan,
            epoch_ns,
            now: 0,
            end: from_s(scenario.duration_s),
            events: Events::new(),
            hosts,
            paths,
            taps,
            packets: Vec::new(),
            free_packets: Vec::new(),
            conns: Vec::new(),
            free_conns: Vec::new(),
            connections: 0,
            rng_tcp,
            rng_apps: Rng::new(seed, APPS),
            framer: Framer::default(),
            output: Output::default(),
            app_lines: lines("app")?,
            wire_lines: lines("wire")?,
            again_lines: lines("again")?,
            totals: Totals::default(),
            failed: None,
            scenario,
        })
    }

    fn run(&mut self) -> Result<(), ScenarioError> {
        self.start_apps();
        let users: f64 = self.scenario.load.iter().map(|load| load.users).sum();
        let most_at_once = MAX_AT_ONCE + MAX_OF_USER * users as u64;
        let mut at_once = 0;
        while let Some((at, event)) = self.events.pop() {
            if at > self.end || self.failed.is_some() {
                break;
            }
            at_once = if at == self.now { at_once + 1 } else { 0 };
            if at_once > most_at_once {
                return Err(ScenarioError::Description {
                    source: self.scenario.name.clone(),
                    problem: format!(
                        "at {} s, {at_once} events happened and no time passed: give legs a delay_ms or rate_mbit, or loads a gap_ms",
                        at as f64 / 1e9
                    ),
                });
            }
            self.now = at;
            match event {
                Event::Arrive(packet) => self.advance(packet),
                Event::Deadline(conn, side) => self.on_deadline(conn, side),
                Event::Act(host, action) => self.act(host, action),
                Event::Processed(service, version) => self.on_processed(service, version),
                Event::Grow(pool) => self.on_grow(pool),
                Event::Arrival(load) => self.on_arrival(load),
                Event::Sleep(sleep) => self.on_sleep(sleep),
                Event::Wake(sleep) => self.on_wake(sleep),
            }
        }
        self.now = self.end;
        self.give_up_packets();
        for slot in 0..self.conns.len() {
            self.write_off(slot);
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        for tap in &mut self.taps {
            tap.finish()?;
            let totals = TapTotals {
                file: tap.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                packets: tap.frames(),
                missed: tap.missed,
                duplicated: tap.duplicated,
            };
            self.totals.taps.insert(tap.name.clone(), totals);
        }
        self.app_lines.finish()?;
        self.wire_lines.finish()?;
        self.again_lines.finish()
    }

    /// Keeps the first error of a file; the run ends before the next event.
    fn keep<T>(&mut self, result: Result<T, ScenarioError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    fn utc(&self, time: Time) -> u64 {
        self.epoch_ns + time
    }

    fn log(&mut self, record: &AppRecord<'_>) {
        let written = self.app_lines.write(record);
        self.keep(written);
    }

    fn conn(&mut self, at: ConnRef) -> Option<&mut Conn> {
        self.conns[at.slot].as_mut().filter(|conn| conn.number == at.number)
    }

    // ---- connections ----

    /// A client connects; `None` when no port is free.
    fn connect(&mut self, dialogue: usize, session: Session) -> Option<ConnRef> {
        let plan = &self.plan.dialogues[dialogue];
        let service = &self.plan.services[plan.service];
        let (client_host, server_host) = (plan.client, service.host);
        let (path, forward) = (plan.path, plan.forward);
        let server_port = service.port + self.apps.services[plan.service].turn(service.ports);
        let service = plan.service;
        let Some(client_port) = self.hosts[client_host].take_port() else {
            self.totals.ports_exhausted += 1;
            let record = AppRecord::PortsExhausted {
                host: &self.scenario.host[client_host].name,
                time_ns: self.utc(self.now),
            };
            let written = self.app_lines.write(&record);
            self.keep(written);
            return None;
        };
        let number = self.connections;
        self.connections += 1;
        let mut end = |host: usize, port: u16| End {
            host: host as u8 + 1,
            address: self.hosts[host].address,
            port,
            isn: self.rng_tcp.next_u64() as u32,
        };
        let ends = [end(client_host, client_port), end(server_host, server_port)];
        let ts_offset = self.rng_tcp.next_u64() as u32;
        let mut output = std::mem::take(&mut self.output);
        let client = Endpoint::connect(self.hosts[client_host].stack.clone(), self.now, ts_offset, &mut output);
        let conn = Conn {
            number,
            path,
            forward,
            hosts: [client_host, server_host],
            ends,
            client,
            server: None,
            service,
            deadlines: [None; 2],
            flying: 0,
            seen: vec![Seen::default(); self.paths[path].taps.len()],
            streams: [0, 1].map(|_| Stream::new(self.paths[path].taps.len())),
            session,
        };
        let slot = match self.free_conns.pop() {
            Some(slot) => {
                self.conns[slot] = Some(conn);
                slot
            }
            None => {
                self.conns.push(Some(conn));
                self.conns.len() - 1
            }
        };
        let name = self.plan.dialogues[dialogue].name.clone();
        *self.totals.connections.entry(name).or_default() += 1;
        let at = ConnRef { slot, number };
        self.carry_out(at, Side::Client, output);
        Some(at)
    }

    /// Calls an endpoint and does what it asks for.
    fn with(&mut self, at: ConnRef, side: Side, call: impl FnOnce(&mut Endpoint, Time, &mut Output)) {
        let now = self.now;
        let mut output = std::mem::take(&mut self.output);
        if let Some(conn) = self.conn(at) {
            let endpoint = match side {
                Side::Client => Some(&mut conn.client),
                Side::Server => conn.server.as_mut(),
            };
            if let Some(endpoint) = endpoint {
                call(endpoint, now, &mut output);
            }
        }
        self.carry_out(at, side, output);
    }

    fn carry_out(&mut self, at: ConnRef, side: Side, mut output: Output) {
        for segment in output.segments.drain(..) {
            self.send(at, side, segment);
        }
        for note in output.notes.drain(..) {
            if let Some(conn) = self.conn(at) {
                let host = conn.hosts[side as usize];
                self.act(host, Action::Note(at, side, note));
            }
        }
        self.output = output;
        self.set_deadline(at, side);
        self.release(at);
    }

    fn set_deadline(&mut self, at: ConnRef, side: Side) {
        let Some(conn) = self.conn(at) else { return };
        let endpoint = match side {
            Side::Client => Some(&conn.client),
            Side::Server => conn.server.as_ref(),
        };
        let Some(deadline) = endpoint.and_then(Endpoint::deadline) else {
            return;
        };
        // An event that is early finds nothing to do and asks again.
        if conn.deadlines[side as usize].is_none_or(|set| deadline < set) {
            conn.deadlines[side as usize] = Some(deadline);
            self.events.push(deadline, Event::Deadline(at, side));
        }
    }

    fn on_deadline(&mut self, at: ConnRef, side: Side) {
        let now = self.now;
        let Some(conn) = self.conn(at) else { return };
        if conn.deadlines[side as usize] != Some(now) {
            return;
        }
        conn.deadlines[side as usize] = None;
        self.with(at, side, |endpoint, now, output| endpoint.on_time(now, output));
    }

    /// Forgets a connection that is over for everybody.
    fn release(&mut self, at: ConnRef) {
        let Some(conn) = self.conn(at) else { return };
        let over = conn.flying == 0
            && conn.client.is_closed()
            && conn.server.as_ref().is_none_or(Endpoint::is_closed)
            && conn.session.is_over();
        if over {
            self.write_off(at.slot);
        }
    }

    /// Writes what is known of a connection, and frees its place and port.
    fn write_off(&mut self, slot: usize) {
        let Some(conn) = self.conns[slot].take() else { return };
        self.free_conns.push(slot);
        let [client, server] = conn.ends;
        self.hosts[conn.hosts[0]].used_ports.remove(&client.port);
        self.write_last_transaction(&conn);
        let outcome = conn.session.outcome();
        let dialogue = &self.plan.dialogues[conn.session.dialogue];
        let told = serde_json::to_value(outcome).ok();
        let told = told.as_ref().and_then(|value| value.as_str()).unwrap_or_default();
        let outcomes = self.totals.outcomes.entry(dialogue.name.clone()).or_default();
        *outcomes.entry(told.to_owned()).or_default() += 1;
        let taps = self.paths[conn.path].taps.iter().zip(&conn.seen);
        let record = AppRecord::Connection(ConnectionRecord {
            connection: conn.number,
            dialogue: &dialogue.name,
            client: client.address,
            client_port: client.port,
            server: server.address,
            server_port: server.port,
            connect_start_ns: self.utc(conn.session.connect_start),
            connect_end_ns: conn.session.connect_end.map(|time| self.utc(time)),
            outcome,
            transactions: conn.session.transactions,
            close: (outcome == Outcome::Connected).then_some(dialogue.close),
            close_ns: conn.session.closed_at.map(|time| self.utc(time)),
            error: conn.session.error,
            syns_sent: conn.client.syns_sent(),
            syn_acks_sent: conn.server.as_ref().map_or(0, Endpoint::syns_sent),
            taps: taps.map(|(&tap, &seen)| (self.taps[tap].name.as_str(), seen)).collect(),
        });
        let written = self.app_lines.write(&record);
        self.keep(written);
    }

    // ---- packets ----

    fn send(&mut self, at: ConnRef, from: Side, segment: Segment) {
        let Some(conn) = self.conn(at) else { return };
        conn.flying += 1;
        let turn = conn.streams[from as usize].send(&segment);
        let host = conn.hosts[from as usize];
        let host = &mut self.hosts[host];
        host.ip_id = host.ip_id.wrapping_add(1);
        let (ip_id, ttl) = (host.ip_id, host.stack.ttl);
        let mut packet = Packet {
            conn: at,
            from,
            segment,
            passed: 0,
            ip_id,
            ttl,
            sent: self.now,
            turn,
            seen: Vec::new(),
        };
        let index = match self.free_packets.pop() {
            Some(index) => {
                packet.seen = std::mem::take(&mut self.packets[index].seen);
                packet.seen.clear();
                self.packets[index] = packet;
                index
            }
            None => {
                self.packets.push(packet);
                self.packets.len() - 1
            }
        };
        self.advance(index);
    }

    /// Takes a packet over taps and into the next leg, or to its host.
    fn advance(&mut self, index: usize) {
        let at = self.packets[index].conn;
        let Some(conn) = self.conns[at.slot].as_mut() else {
            return;
        };
        let path = &mut self.paths[conn.path];
        let elements = 2 * path.legs.len() - 1;
        let packet = &mut self.packets[index];
        let forward = (packet.from == Side::Client) == conn.forward;
        loop {
            if packet.passed == elements {
                self.deliver(index);
                return;
            }
            let place = if forward {
                packet.passed
            } else {
                elements - 1 - packet.passed
            };
            packet.passed += 1;
            if place % 2 == 1 {
                let tap = path.taps[place / 2];
                let (from, to) = (
                    &conn.ends[packet.from as usize],
                    &conn.ends[packet.from.other() as usize],
                );
                let frame = self.framer.frame(&packet.segment, from, to, packet.ip_id, packet.ttl);
                match self.taps[tap].see(self.now, forward, frame) {
                    Ok(number) => {
                        conn.seen[place / 2].count(packet.from, &packet.segment, number.is_some());
                        if let Some(frame) = number {
                            let how = match packet.turn {
                                Some(_) => conn.streams[packet.from as usize].pass(place / 2, &packet.segment),
                                None => How::New,
                            };
                            let time_ns = self.taps[tap].stamp(self.now);
                            packet.seen.push((tap, AgainSeen { frame, time_ns, how }));
                        }
                    }
                    Err(error) => {
                        self.failed.get_or_insert(error);
                    }
                }
                continue;
            }
            let leg = &mut path.legs[place / 2];
            let is_syn = packet.segment.has(flag::SYN);
            let first = conn.client.syns_sent() == 1;
            let fate = if is_syn && leg.batches.lose(self.now, conn.number, first, &packet.segment) {
                Fate::Lost(Cause::SynBatch)
            } else {
                let link = if forward { &mut leg.forward } else { &mut leg.backward };
                link.pass(self.now, &mut packet.segment)
            };
            match fate {
                Fate::Arrives(time, hops) => {
                    packet.ttl = packet.ttl.saturating_sub(hops);
                    self.events.push(time, Event::Arrive(index));
                }
                Fate::Lost(cause) => self.lose(index, place / 2, cause),
            }
            return;
        }
    }

    fn lose(&mut self, index: usize, leg: usize, cause: Cause) {
        let packet = &self.packets[index];
        let at = packet.conn;
        let Some(conn) = self.conns[at.slot].as_mut() else {
            return;
        };
        conn.flying -= 1;
        let (src, dst) = (
            &conn.ends[packet.from as usize],
            &conn.ends[packet.from.other() as usize],
        );
        let segment = &packet.segment;
        let direction = match packet.from {
            Side::Client => Direction::C2s,
            Side::Server => Direction::S2c,
        };
        let path = &self.paths[conn.path].name;
        let record = Loss {
            time_ns: self.epoch_ns + self.now,
            path,
            leg: leg + 1,
            direction,
            cause,
            connection: conn.number,
            frame_len: segment.frame_len(),
            taps: packet
                .seen
                .iter()
                .map(|(tap, seen)| (self.taps[*tap].name.as_str(), seen.frame))
                .collect(),
            src: src.address,
            src_port: src.port,
            dst: dst.address,
            dst_port: dst.port,
            seq: src.isn.wrapping_add(segment.seq as u32),
            ack: if segment.has(flag::ACK) {
                dst.isn.wrapping_add(segment.ack as u32)
            } else {
                0
            },
            len: segment.len,
            flags: segment.flags,
            ip_id: packet.ip_id,
            d_sack: segment.sacks().first().is_some_and(|&(_, right)| right <= segment.ack),
        };
        let key = format!("{path}/{} {direction:?} {cause:?}", leg + 1).to_lowercase();
        *self.totals.losses.entry(key).or_default() += 1;
        let written = self.wire_lines.write(&record);
        self.keep(written);
        self.account(index, false);
        self.free_packets.push(index);
        self.release(at);
    }

    /// The way of a packet is over: truth about segments that were sent again or came late.
    fn account(&mut self, index: usize, arrived: bool) {
        let packet = &mut self.packets[index];
        let (Some(turn), Some(conn)) = (packet.turn.take(), self.conns[packet.conn.slot].as_mut()) else {
            return;
        };
        let segment = &packet.segment;
        let worth = turn.again || packet.seen.iter().any(|(_, seen)| seen.how != How::New);
        let line = worth.then(|| AgainLine {
            packet_sent: packet.sent,
            direction: match packet.from {
                Side::Client => Direction::C2s,
                Side::Server => Direction::S2c,
            },
            connection: conn.number,
            again: turn.again,
            arrived,
            seen: packet.seen.clone(),
            seq: conn.ends[packet.from as usize].isn.wrapping_add(segment.seq as u32),
            len: segment.len,
            flags: segment.flags,
            ip_id: packet.ip_id,
        });
        let mut settled = Vec::new();
        let stream = &mut conn.streams[packet.from as usize];
        stream.end(turn, segment, arrived, line, |line, spurious| {
            settled.push((line, spurious));
        });
        for (line, spurious) in settled {
            let record = Again {
                time_ns: self.epoch_ns + line.packet_sent,
                direction: line.direction,
                connection: line.connection,
                again: line.again,
                spurious,
                arrived: line.arrived,
                taps: line
                    .seen
                    .iter()
                    .map(|&(tap, seen)| (self.taps[tap].name.as_str(), seen))
                    .collect(),
                seq: line.seq,
                len: line.len,
                flags: line.flags,
                ip_id: line.ip_id,
            };
            let written = self.again_lines.write(&record);
            self.keep(written);
        }
    }

    /// The run is over: what is under way will not arrive.
    fn give_up_packets(&mut self) {
        for index in 0..self.packets.len() {
            self.account(index, false);
        }
    }

    fn deliver(&mut self, index: usize) {
        let packet = &self.packets[index];
        let (at, to, segment) = (packet.conn, packet.from.other(), packet.segment);
        self.account(index, true);
        self.free_packets.push(index);
        let Some(conn) = self.conn(at) else { return };
        conn.flying -= 1;
        let is_first = segment.flags & (flag::SYN | flag::ACK) == flag::SYN;
        if is_first && conn.server.as_ref().is_none_or(Endpoint::is_closed) {
            self.on_syn(at, &segment);
            return;
        }
        if to == Side::Server && conn.server.is_none() {
            if !segment.has(flag::RST) {
                self.send(at, Side::Server, tcp::reset_for(&segment));
            }
            self.release(at);
            return;
        }
        self.with(at, to, |endpoint, now, output| {
            endpoint.on_segment(now, &segment, output)
        });
    }

    /// A SYN for a connection that the server does not know.
    fn on_syn(&mut self, at: ConnRef, segment: &Segment) {
        let Some(conn) = self.conns[at.slot].as_mut() else {
            return;
        };
        let (service, host) = (&self.plan.services[conn.service], conn.hosts[1]);
        let half_open = &mut self.apps.services[conn.service].half_open;
        if service.refuses {
            self.send(at, Side::Server, tcp::reset_for(segment));
            return;
        }
        if service.backlog > 0 {
            half_open.retain(|&at| {
                let other = self.conns[at.slot].as_ref().filter(|conn| conn.number == at.number);
                other
                    .and_then(|conn| conn.server.as_ref())
                    .is_some_and(Endpoint::is_half_open)
            });
            if half_open.len() >= service.backlog as usize {
                return;
            }
            half_open.push(at);
        }
        let (spread, ts_offset) = (self.rng_tcp.unit(), self.rng_tcp.next_u64() as u32);
        let mut output = std::mem::take(&mut self.output);
        let stack = self.hosts[host].stack.clone();
        let server = Endpoint::accept(stack, self.now, segment, spread, ts_offset, &mut output);
        if let Some(conn) = self.conns[at.slot].as_mut() {
            conn.server = Some(server);
        }
        self.carry_out(at, Side::Server, output);
    }
}
