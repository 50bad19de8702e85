//! A run: namespaces, programs, the loop that drives the wire, and the files.

use crate::app::{self, READY};
use crate::clock::Clock;
use crate::config::{Scenario, SynLoss};
use crate::error::LabError;
use crate::frame::TcpSummary;
use crate::netns::{Hosts, MTU, Namespace, frames_received};
use crate::packet_socket::PacketSocket;
use crate::pcap::PcapWriter;
use crate::truth::{Cause, Direction, Journey, Passage};
use crate::wire::{Output, Wire};
use nix::poll::{PollFd, PollFlags, poll, ppoll};
use nix::sys::time::TimeSpec;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ETHERNET_HEADER_LEN: usize = 14;
/// Frames read from one side before the wire's events get their turn.
const READ_BURST: usize = 64;
/// Longest sleep of the loop: signals, limits and the programs are looked at this often.
const LOOP_PERIOD: Duration = Duration::from_millis(20);
/// The run is over when nothing has moved for this long after both programs have ended ...
const QUIET: Duration = Duration::from_millis(400);
/// ... or, if retransmissions go on, after this long.
const LONGEST_TAIL: Duration = Duration::from_secs(5);
const SERVER_START_MS: u16 = 10_000;
/// A frame handed over this much after its due time is counted as late.
const LATE_NS: u64 = 1_000_000;

/// What to run and where to put the results.
#[derive(Debug, Clone)]
pub struct LabConfig {
    /// The scenario.
    pub scenario: Scenario,
    /// Directory for the files; made if absent.
    pub output: PathBuf,
    /// The program that calls [`crate::app_main`] for its subcommand `lab-app`: as a rule the running one.
    pub program: PathBuf,
}

/// Frames of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FrameCounts {
    /// Taken from the sending host.
    pub taken: u64,
    /// Seen by the middle tap.
    pub at_tap: u64,
    /// Given to the receiving host.
    pub delivered: u64,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabReport {
    /// Name of the scenario.
    pub name: String,
    /// The middle tap's capture.
    pub tap: PathBuf,
    /// The capture at the client.
    pub client_tap: PathBuf,
    /// The capture at the server.
    pub server_tap: PathBuf,
    /// The wire's truth.
    pub wire_truth: PathBuf,
    /// What became of each frame.
    pub journeys: PathBuf,
    /// The application's truth.
    pub app_truth: PathBuf,
    /// The scenario with every setting.
    pub scenario: PathBuf,
    /// Client to server.
    pub c2s: FrameCounts,
    /// Server to client.
    pub s2c: FrameCounts,
    /// Deeds of the wire.
    pub deeds: BTreeMap<Cause, u64>,
    /// Attempts to connect.
    pub connections: u64,
    /// Attempts and conversations that did not go as planned, refused and ignored ones apart.
    pub failed: u64,
    /// Transactions finished.
    pub transactions: u64,
    /// Length of the run.
    pub seconds: f64,
    /// Deliveries more than a millisecond after their due time: the machine was busy.
    pub late_deliveries: u64,
    /// The latest of them.
    pub latest_delivery_ns: u64,
}

impl fmt::Display for LabReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} connections, {} transactions, {} failures in {:.1} s",
            self.connections, self.transactions, self.failed, self.seconds
        )?;
        for (name, counts) in [("client to server", self.c2s), ("server to client", self.s2c)] {
            writeln!(
                f,
                "{name}: {} frames taken, {} at the tap, {} delivered",
                counts.taken, counts.at_tap, counts.delivered
            )?;
        }
        for (cause, count) in &self.deeds {
            writeln!(f, "  {cause:?}: {count}")?;
        }
        writeln!(
            f,
            "{} deliveries more than 1 ms late, the latest {:.3} ms",
            self.late_deliveries,
            self.latest_delivery_ns as f64 / 1e6
        )?;
        for path in [
            &self.tap,
            &self.client_tap,
            &self.server_tap,
            &self.wire_truth,
            &self.journeys,
            &self.app_truth,
            &self.scenario,
        ] {
            writeln!(f, "{}", path.display())?;
        }
        Ok(())
    }
}

/// Makes the run of `config`. Namespaces and programs are gone when this returns, however it returns.
pub fn run(config: &LabConfig) -> Result<LabReport, LabError> {
    let source = config.scenario.name.clone();
    config
        .scenario
        .check()
        .map_err(|problem| LabError::Scenario { source, problem })?;
    if !nix::unistd::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    let stop = StopFlag::install()?;
    let paths = Paths::create(&config.output, &config.scenario)?;
    let hosts = Hosts::create()?;
    for (namespace, settings) in [
        (&hosts.client, &config.scenario.client_sysctl),
        (&hosts.server, &config.scenario.server_sysctl),
    ] {
        for (key, value) in settings {
            namespace.set(key, value)?;
        }
    }

    let clock = Clock::start();
    let _priority = Priority::raise();
    let mut engine = Engine::new(config, &hosts, &paths, clock)?;
    let mut server = Program::start("server", &config.program, &hosts.server, &paths, clock)?;
    server.wait_until_ready()?;
    let mut client = Program::start("client", &config.program, &hosts.client, &paths, clock)?;
    engine.drive(&mut client, &mut server, &stop)?;
    let mut report = engine.finish()?;
    write_app_truth(&paths, &mut report)?;
    Ok(report)
}

/// Becomes true on SIGINT, SIGTERM and SIGHUP.
struct StopFlag {
    flag: Arc<AtomicBool>,
    handlers: Vec<signal_hook::SigId>,
}

impl StopFlag {
    fn install() -> Result<StopFlag, LabError> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut stop = StopFlag {
            flag: Arc::default(),
            handlers: Vec::new(),
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let handler = signal_hook::flag::register(signal, Arc::clone(&stop.flag))
                .map_err(LabError::io("installing a signal handler"))?;
            stop.handlers.push(handler);
        }
        Ok(stop)
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

impl Drop for StopFlag {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

/// Real-time priority for this thread where the system allows it, so that frames are handed over on time on a busy
/// machine. The programs started meanwhile do not inherit it.
struct Priority {
    thread: String,
}

impl Priority {
    fn raise() -> Priority {
        let priority = Priority {
            thread: nix::unistd::gettid().to_string(),
        };
        priority.set(&["--reset-on-fork", "--fifo", "--pid", "10"]);
        priority
    }

    fn set(&self, arguments: &[&str]) {
        // Without it the run is still right, only later: the report counts late deliveries.
        let _ = Command::new("chrt")
            .args(arguments)
            .arg(&self.thread)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        self.set(&["--other", "--pid", "0"]);
    }
}

/// Where the files go; all paths absolute.
struct Paths {
    tap: PathBuf,
    client_tap: PathBuf,
    server_tap: PathBuf,
    wire_truth: PathBuf,
    journeys: PathBuf,
    app_truth: PathBuf,
    scenario: PathBuf,
    /// Each side's own records, joined into `app_truth` and removed.
    client_records: PathBuf,
    server_records: PathBuf,
}

impl Paths {
    fn create(directory: &Path, scenario: &Scenario) -> Result<Paths, LabError> {
        let doing = || format!("making the directory {}", directory.display());
        std::fs::create_dir_all(directory).map_err(LabError::io(doing()))?;
        let directory = directory.canonicalize().map_err(LabError::io(doing()))?;
        let file = |suffix: &str| directory.join(format!("{}{suffix}", scenario.name));
        let paths = Paths {
            tap: file(".pcap"),
            client_tap: file("-client.pcap"),
            server_tap: file("-server.pcap"),
            wire_truth: file("-wire.jsonl"),
            journeys: file("-frames.jsonl"),
            app_truth: file("-app.jsonl"),
            scenario: file("-scenario.toml"),
            client_records: file("-client.tmp"),
            server_records: file("-server.tmp"),
        };
        std::fs::write(&paths.scenario, scenario.to_toml()?)
            .map_err(LabError::io(format!("writing {}", paths.scenario.display())))?;
        Ok(paths)
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.client_records);
        let _ = std::fs::remove_file(&self.server_records);
    }
}

/// A running client or server; killed when dropped.
struct Program {
    side: &'static str,
    child: Child,
    status: Option<ExitStatus>,
}

impl Program {
    fn start(
        side: &'static str,
        program: &Path,
        namespace: &Namespace,
        paths: &Paths,
        clock: Clock,
    ) -> Result<Program, LabError> {
        let records = if side == "client" {
            &paths.client_records
        } else {
            &paths.server_records
        };
        let child = namespace
            .command(program)
            .args(["lab-app", side])
            .args([&paths.scenario, records])
            .arg(clock.offset_ns().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(LabError::io(format!("starting the {side}")))?;
        Ok(Program {
            side,
            child,
            status: None,
        })
    }

    fn wait_until_ready(&mut self) -> Result<(), LabError> {
        let Some(stdout) = self.child.stdout.as_ref() else {
            return Ok(());
        };
        let mut descriptors = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
        let is_readable = poll(&mut descriptors, SERVER_START_MS).is_ok_and(|ready| ready > 0);
        let mut line = String::new();
        if is_readable && let Some(stdout) = self.child.stdout.as_mut() {
            let mut reader = BufReader::new(stdout.take(64));
            // An error leaves the line empty, which is then reported.
            let _ = reader.read_line(&mut line);
        }
        if line.trim() == READY {
            Ok(())
        } else {
            Err(self.failure("it did not start"))
        }
    }

    fn ask_to_stop(&mut self) {
        self.child.stdin = None;
    }

    /// Whether it has ended; an error if it ended badly.
    fn has_ended(&mut self) -> Result<bool, LabError> {
        if self.status.is_none() {
            self.status = self
                .child
                .try_wait()
                .map_err(LabError::io(format!("waiting for the {}", self.side)))?;
        }
        match self.status {
            None => Ok(false),
            Some(status) if status.success() => Ok(true),
            Some(status) => Err(self.failure(&status.to_string())),
        }
    }

    fn failure(&mut self, problem: &str) -> LabError {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut message = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(4096).read_to_string(&mut message);
        }
        LabError::App {
            side: self.side,
            problem: format!("{problem}; {}", message.trim()),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// One end of the wire.
struct End {
    side: &'static str,
    socket: PacketSocket,
    interface: String,
    /// Counted by the interface before the socket was opened.
    frames_before: u64,
    capture: PcapWriter<BufWriter<File>>,
    path: PathBuf,
}

impl End {
    fn open(side: &'static str, namespace: &Namespace, path: &Path, snap_length: u32) -> Result<End, LabError> {
        let interface = namespace.wire_end.clone();
        let frames_before = frames_received(&interface).unwrap_or(0);
        let socket =
            PacketSocket::open(&interface).map_err(LabError::io(format!("opening a packet socket on {interface}")))?;
        Ok(End {
            side,
            socket,
            interface,
            frames_before,
            capture: open_capture(path, snap_length)?,
            path: path.into(),
        })
    }

    fn record(&mut self, time_ns: u64, frame: &[u8]) -> Result<(), LabError> {
        self.capture
            .write(time_ns, frame)
            .map_err(LabError::io(format!("writing {}", self.path.display())))
    }
}

/// The wire with its sockets, its clock and its files.
struct Engine<'a> {
    scenario: &'a Scenario,
    paths: &'a Paths,
    clock: Clock,
    started: Instant,
    wire: Wire,
    client: End,
    server: End,
    tap: PcapWriter<BufWriter<File>>,
    truth: BufWriter<File>,
    counts: [FrameCounts; 2],
    deeds: BTreeMap<Cause, u64>,
    /// By number of the frame, less 1.
    journeys: Vec<Journey>,
    late_deliveries: u64,
    latest_delivery_ns: u64,
    last_activity: Instant,
}

impl<'a> Engine<'a> {
    fn new(config: &'a LabConfig, hosts: &Hosts, paths: &'a Paths, clock: Clock) -> Result<Engine<'a>, LabError> {
        let scenario = &config.scenario;
        let snap_length = scenario.snap_length;
        let truth = File::create(&paths.wire_truth)
            .map_err(LabError::io(format!("creating {}", paths.wire_truth.display())))?;
        Ok(Engine {
            scenario,
            paths,
            clock,
            started: Instant::now(),
            wire: Wire::new(&with_ignored_port(scenario), clock.now_ns()),
            client: End::open("client", &hosts.client, &paths.client_tap, snap_length)?,
            server: End::open("server", &hosts.server, &paths.server_tap, snap_length)?,
            tap: open_capture(&paths.tap, snap_length)?,
            truth: BufWriter::new(truth),
            counts: [FrameCounts::default(); 2],
            deeds: BTreeMap::new(),
            journeys: Vec::new(),
            late_deliveries: 0,
            latest_delivery_ns: 0,
            last_activity: Instant::now(),
        })
    }

    /// Moves frames until both programs have ended and the wire is quiet.
    fn drive(&mut self, client: &mut Program, server: &mut Program, stop: &StopFlag) -> Result<(), LabError> {
        let limit = Duration::from_secs_f64(self.scenario.time_limit_s);
        let mut next_look = Instant::now();
        let mut ended: Option<Instant> = None;
        let mut buffer = vec![0u8; 65_536];
        loop {
            self.read_frames(Direction::C2s, &mut buffer)?;
            self.read_frames(Direction::S2c, &mut buffer)?;
            self.advance()?;

            let now = Instant::now();
            if now >= next_look {
                next_look = now + LOOP_PERIOD;
                if stop.is_set() {
                    return Err(LabError::Interrupted);
                }
                if now - self.started > limit {
                    return Err(LabError::TimeLimit {
                        seconds: self.scenario.time_limit_s,
                    });
                }
                if client.has_ended()? {
                    server.ask_to_stop();
                    if server.has_ended()? {
                        ended.get_or_insert(now);
                    }
                } else if server.has_ended()? {
                    return Err(LabError::App {
                        side: "server",
                        problem: "it ended before the client".into(),
                    });
                }
            }
            if let Some(ended) = ended {
                let is_quiet = self.wire.next_event_ns().is_none() && now - self.last_activity > QUIET;
                if is_quiet || now - ended > LONGEST_TAIL {
                    return Ok(());
                }
            }
            self.sleep()?;
        }
    }

    /// Sleeps until a frame comes, an event is due or it is time to look around.
    fn sleep(&self) -> Result<(), LabError> {
        let until_event = self.wire.next_event_ns().map_or(LOOP_PERIOD, |time_ns| {
            Duration::from_nanos(time_ns.saturating_sub(self.clock.now_ns()))
        });
        let mut descriptors = [
            PollFd::new(self.client.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.server.socket.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(
            &mut descriptors,
            Some(TimeSpec::from(until_event.min(LOOP_PERIOD))),
            None,
        ) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(LabError::io("waiting for frames")(error.into())),
        }
    }

    /// Takes in what the host at the start of `direction` has sent.
    fn read_frames(&mut self, direction: Direction, buffer: &mut [u8]) -> Result<(), LabError> {
        let end = match direction {
            Direction::C2s => &mut self.client,
            Direction::S2c => &mut self.server,
        };
        let doing = format!("reading frames from the {}", end.side);
        for _ in 0..READ_BURST {
            let received = end.socket.receive(buffer).map_err(LabError::io(&doing))?;
            let Some(len) = received else { return Ok(()) };
            if len > MTU + ETHERNET_HEADER_LEN {
                let problem = format!("a frame of {len} bytes: segmentation offload could not be switched off");
                return Err(LabError::io(&doing)(std::io::Error::other(problem)));
            }
            let now_ns = self.clock.now_ns();
            end.record(now_ns, &buffer[..len])?;
            let frame = self.wire.take(now_ns, direction, &buffer[..len]);
            self.journeys.push(Journey {
                frame,
                time_ns: now_ns,
                direction,
                tap: Vec::new(),
                arrived_ns: Vec::new(),
                tcp: TcpSummary::parse(&buffer[..len]),
            });
            self.counts[direction as usize].taken += 1;
            self.last_activity = Instant::now();
        }
        Ok(())
    }

    /// Lets the wire do what is due.
    fn advance(&mut self) -> Result<(), LabError> {
        self.wire.advance(self.clock.now_ns());
        while let Some(output) = self.wire.next_output() {
            match output {
                Output::Tap {
                    time_ns,
                    number,
                    captured,
                    mirrored,
                    marked,
                    direction,
                    frame,
                } => {
                    self.counts[direction as usize].at_tap += u64::from(!mirrored);
                    if let Some(journey) = self.journeys.get_mut(number as usize - 1) {
                        journey.tap.push(Passage {
                            time_ns,
                            captured,
                            mirrored,
                            marked,
                        });
                    }
                    if !captured {
                        continue;
                    }
                    self.tap
                        .write(time_ns, &frame)
                        .map_err(LabError::io(format!("writing {}", self.paths.tap.display())))?;
                }
                Output::Deliver {
                    time_ns,
                    number,
                    direction,
                    frame,
                } => {
                    if let Some(journey) = self.journeys.get_mut(number as usize - 1) {
                        journey.arrived_ns.push(time_ns);
                    }
                    self.deliver(time_ns, direction, &frame)?;
                }
                Output::Truth(truth) => {
                    *self.deeds.entry(truth.cause).or_default() += 1;
                    write_line(&mut self.truth, &truth)
                        .map_err(LabError::io(format!("writing {}", self.paths.wire_truth.display())))?;
                }
            }
        }
        Ok(())
    }

    fn deliver(&mut self, due_ns: u64, direction: Direction, frame: &[u8]) -> Result<(), LabError> {
        let end = match direction {
            Direction::C2s => &mut self.server,
            Direction::S2c => &mut self.client,
        };
        let now_ns = self.clock.now_ns();
        end.record(now_ns, frame)?;
        end.socket
            .transmit(frame)
            .map_err(LabError::io(format!("sending a frame to the {}", end.side)))?;
        self.counts[direction as usize].delivered += 1;
        let late_ns = now_ns.saturating_sub(due_ns);
        self.late_deliveries += u64::from(late_ns > LATE_NS);
        self.latest_delivery_ns = self.latest_delivery_ns.max(late_ns);
        self.last_activity = Instant::now();
        Ok(())
    }

    /// Closes the files and makes sure that no frame escaped the wire.
    fn finish(mut self) -> Result<LabReport, LabError> {
        for (path, flushed) in [
            (&self.paths.tap, self.tap.flush()),
            (&self.paths.client_tap, self.client.capture.flush()),
            (&self.paths.server_tap, self.server.capture.flush()),
            (&self.paths.wire_truth, self.truth.flush()),
        ] {
            flushed.map_err(LabError::io(format!("writing {}", path.display())))?;
        }
        write_journeys(&self.paths.journeys, &self.journeys)
            .map_err(LabError::io(format!("writing {}", self.paths.journeys.display())))?;
        for (end, counts) in [(&self.client, self.counts[0]), (&self.server, self.counts[1])] {
            let sent = frames_received(&end.interface).map_or(0, |frames| frames - end.frames_before);
            if sent > counts.taken {
                return Err(LabError::FramesMissed {
                    frames: sent - counts.taken,
                    side: end.side,
                });
            }
        }
        let [c2s, s2c] = self.counts;
        Ok(LabReport {
            name: self.scenario.name.clone(),
            tap: self.paths.tap.clone(),
            client_tap: self.paths.client_tap.clone(),
            server_tap: self.paths.server_tap.clone(),
            wire_truth: self.paths.wire_truth.clone(),
            journeys: self.paths.journeys.clone(),
            app_truth: self.paths.app_truth.clone(),
            scenario: self.paths.scenario.clone(),
            c2s,
            s2c,
            deeds: self.deeds,
            connections: 0,
            failed: 0,
            transactions: 0,
            seconds: self.started.elapsed().as_secs_f64(),
            late_deliveries: self.late_deliveries,
            latest_delivery_ns: self.latest_delivery_ns,
        })
    }
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

fn write_journeys(path: &Path, journeys: &[Journey]) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for journey in journeys {
        write_line(&mut out, journey)?;
    }
    out.flush()
}

/// The ignored port is a rule of leg 2: its SYNs pass the tap and are lost behind it.
fn with_ignored_port(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    if scenario.app.ignored > 0 {
        let port = Some(scenario.app.ignored_port());
        scenario.leg2.c2s.syn_loss.insert(
            0,
            SynLoss {
                probability: 1.0,
                port,
                skip: 0,
                limit: None,
            },
        );
    }
    scenario
}

fn open_capture(path: &Path, snap_length: u32) -> Result<PcapWriter<BufWriter<File>>, LabError> {
    File::create(path)
        .and_then(|file| PcapWriter::new(BufWriter::new(file), snap_length))
        .map_err(LabError::io(format!("creating {}", path.display())))
}

/// Joins both programs' records into one file and counts them.
fn write_app_truth(paths: &Paths, report: &mut LabReport) -> Result<(), LabError> {
    let mut client: Vec<app::ClientRecord> = app::read_lines(&paths.client_records)?;
    let server: Vec<app::ServerRecord> = app::read_lines(&paths.server_records)?;
    for record in &client {
        match record {
            app::ClientRecord::Connection(connection) => {
                report.connections += 1;
                report.failed += u64::from(connection.error.is_some());
            }
            app::ClientRecord::Transaction(_) => report.transactions += 1,
            app::ClientRecord::Sender(_) => {}
        }
    }
    let mut text = Vec::new();
    for line in app::join(&mut client, &server) {
        serde_json::to_writer(&mut text, &line)
            .map_err(|error| LabError::io("writing the application's truth")(error.into()))?;
        text.push(b'\n');
    }
    std::fs::write(&paths.app_truth, text).map_err(LabError::io(format!("writing {}", paths.app_truth.display())))
}
