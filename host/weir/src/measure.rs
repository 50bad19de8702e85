//! Live ports into the flow engine: what `weir serve` and `weir capture` share.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_capture::intake::LinkCounters;
use weir_capture::{CaptureError, CaptureFile, Feed, Intake, card, length_by_ip};
use weir_command::Failure;
use weir_command::signals::with_signals;
use weir_dpdk::{Device, Eal, EalConfig, FrameSink, LoopConfig, Port, PortConfig, Progress, Until, inline, receive};
use weir_engine::{Config, Engine, LinkType, Parser, PortCounters, Profile, Servers};
use weir_record::{Record, time::tai_from_utc};
use weir_sketch::Recorder;

use crate::card::Pulse;
use crate::cli::PortArgs;
use crate::{say, source};

/// Records are handed on when there are so many, or when the ports are idle.
const BATCH: usize = 1024;
/// Flows that software stands in for the card with: 4 million contexts of 300 bytes when all are used.
const CONTEXTS: u32 = 1 << 22;
/// A replayed file that gives nothing for so long has ended, should its frames have been miscounted.
const REPLAY_QUIET: Duration = Duration::from_secs(2);

/// Who measured, and so has the counters.
pub enum Measured<'a> {
    /// The engine here.
    Here {
        /// It.
        engine: &'a Engine,
        /// The sources have ended: what follows closes the flows.
        ended: bool,
    },
    /// A card: what came of it.
    Card {
        /// Its counters.
        intake: &'a Intake,
        /// The lane that begins to number anew with these records.
        anew: Option<u8>,
    },
}

impl Measured<'_> {
    /// Counters of a port.
    pub fn port(&self, number: u8) -> PortCounters {
        match self {
            Self::Here { engine, .. } => *engine.port(number),
            Self::Card { intake, .. } => {
                let said = intake.port(number);
                PortCounters {
                    frames: said.port.frames,
                    bytes: said.port.bytes,
                    tracked: said.port.tracked,
                    clamped: said.port.clamped,
                    cut: said.port.cut,
                    dropped: said.port.dropped,
                    options_skipped: said.port.options_skipped,
                    untracked: said.more.untracked,
                }
            }
        }
    }

    /// Flows in the table.
    pub fn flows(&self) -> u64 {
        match self {
            Self::Here { engine, .. } => engine.flows_in_use() as u64,
            Self::Card { intake, .. } => intake.flows(),
        }
    }

    /// The lane that begins to number anew with these records.
    pub fn begins_anew(&self) -> Option<u8> {
        match self {
            Self::Here { .. } => None,
            Self::Card { anew, .. } => *anew,
        }
    }

    /// The sources have ended, so that nothing waits behind these records.
    pub fn ended(&self) -> bool {
        matches!(self, Self::Here { ended: true, .. })
    }

    /// The link that record frames came over.
    pub fn link(&self) -> Option<&LinkCounters> {
        match self {
            Self::Here { .. } => None,
            Self::Card { intake, .. } => Some(intake.counters()),
        }
    }
}

/// The measuring side: frames in, batches of records to `take`.
struct Meter<T> {
    feed: Feed,
    engine: Engine,
    recorder: Option<Recorder>,
    records: Vec<Record>,
    ended: bool,
    take: T,
}

impl<T: FnMut(&[Record], &Measured<'_>)> Meter<T> {
    fn hand_on(&mut self) {
        let measured = Measured::Here {
            engine: &self.engine,
            ended: self.ended,
        };
        (self.take)(&self.records, &measured);
        self.records.clear();
    }

    /// The sources have ended: close every flow.
    fn finish(&mut self) {
        self.ended = true;
        while self.engine.finish_some(BATCH, &mut self.records) {
            self.hand_on();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.finish(&mut self.records);
        }
        self.hand_on();
    }
}

impl<T: FnMut(&[Record], &Measured<'_>)> FrameSink for Meter<T> {
    fn frame(&mut self, port: u8, time_utc_ns: u64, data: &[u8], wire_len: Option<u32>) {
        let captured = data.len() as u32;
        let wire_len = wire_len.unwrap_or_else(|| length_by_ip(data).unwrap_or(0).max(captured));
        let Self {
            feed,
            engine,
            recorder,
            records,
            ..
        } = self;
        let time = tai_from_utc(time_utc_ns);
        feed.frame(
            port,
            time,
            Some(LinkType::Ethernet),
            data,
            wire_len,
            |word| match recorder {
                Some(recorder) => source::enter(&word, engine, recorder, records),
                None => word.enter(engine, records),
            },
        );
        if self.records.len() >= BATCH {
            self.hand_on();
        }
    }

    fn lost(&mut self, port: u8, frames: u64) {
        self.engine.dropped(port, u32::try_from(frames).unwrap_or(u32::MAX));
        self.hand_on();
    }

    fn idle(&mut self, now_utc_ns: u64) {
        self.engine.time(tai_from_utc(now_utc_ns), &mut self.records);
        if let Some(recorder) = &mut self.recorder {
            recorder.time(&self.engine, &mut self.records);
        }
        if !self.records.is_empty() {
            self.hand_on();
        }
    }
}

/// A card measures: its record frames in, batches of records to `take`.
struct CardMeter<T> {
    intake: Intake,
    records: Vec<Record>,
    take: T,
    told: LinkCounters,
    anew: Option<u8>,
    pulse: Pulse,
}

impl<T: FnMut(&[Record], &Measured<'_>)> CardMeter<T> {
    fn hand_on(&mut self) {
        let measured = Measured::Card {
            intake: &self.intake,
            anew: self.anew.take(),
        };
        (self.take)(&self.records, &measured);
        self.records.clear();
        self.told = *self.intake.counters();
    }
}

impl<T: FnMut(&[Record], &Measured<'_>)> FrameSink for CardMeter<T> {
    fn frame(&mut self, _: u8, _: u64, data: &[u8], _: Option<u32>) {
        self.pulse.fetch_add(1, Ordering::Relaxed);
        let (before, restarts) = (self.records.len(), self.intake.counters().restarts);
        self.intake.frame(data, &mut self.records);
        if self.intake.counters().restarts != restarts {
            let anew = self.records.split_off(before);
            self.hand_on();
            self.anew = anew.first().map(Record::lane);
            self.records = anew;
        }
        if self.records.len() >= BATCH {
            self.hand_on();
        }
    }

    // The card's time comes in its records.
    fn idle(&mut self, _: u64) {
        self.pulse.fetch_add(1, Ordering::Relaxed);
        if self.told != *self.intake.counters() {
            self.hand_on();
        }
    }
}

/// What stands at the ports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Wire,
    Inline,
    Card,
}

/// Open ports, ready to measure.
pub struct Source {
    ports: Vec<Port>,
    role: Role,
    until: Until,
    damaged: Vec<CaptureError>,
    engine: Config,
    servers: Servers,
    statistics: Option<weir_sketch::Config>,
    pulse: Pulse,
}

impl Source {
    /// Open the ports of the command line. DPDK can be started once per process.
    pub fn open(args: &PortArgs, epoch: u16) -> Result<Self, Failure> {
        let (role, devices) = match (&args.inline, &args.card) {
            (Some(inline), _) => (Role::Inline, inline.as_slice()),
            (None, Some(card)) => (Role::Card, std::slice::from_ref(card)),
            (None, None) => (Role::Wire, args.ports.as_slice()),
        };
        let twice = |(number, device): &(usize, &Device)| {
            **device != Device::Null && devices.iter().take(*number).any(|other| other == *device)
        };
        if let Some((_, device)) = devices.iter().enumerate().find(twice) {
            return Err(Failure::new(format_args!(
                "{device} is given twice; its frames would be measured twice"
            )));
        }
        let replay = devices.iter().all(|device| matches!(device, Device::Pcap(_)));
        let (until, damaged) = if replay {
            end_of_replay(devices)?
        } else {
            (Until::default(), Vec::new())
        };
        // Hugepages and PCI only for devices that need them.
        let raw = devices
            .iter()
            .any(|device| matches!(device, Device::Raw(name) if !name.starts_with("net_")));
        let eal = Eal::init(&EalConfig {
            pci: raw,
            hugepages: raw,
            ..EalConfig::default()
        })
        .map_err(Failure::new)?;
        let ports = devices
            .iter()
            .map(|device| Port::open(&eal, device, &PortConfig::default()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Failure::new)?;
        let engine = if replay {
            Config::file()
        } else {
            Config {
                contexts: CONTEXTS,
                ..Config::appliance()
            }
        };
        let engine = Config {
            epoch,
            digests: args.digests,
            vlan_in_key: !args.flow.ignore_vlan,
            ..engine
        };
        let (engine, servers) = match devices {
            [Device::Pcap(path)] => source::suited(path, engine, source::say),
            _ => (engine, Servers::default()),
        };
        Ok(Self {
            ports,
            role,
            until,
            damaged,
            engine,
            servers,
            statistics: args.statistics.config(),
            pulse: Pulse::default(),
        })
    }

    /// Why captures that are replayed cannot be read to their end: what is before is measured.
    pub fn take_damaged(&mut self) -> Vec<CaptureError> {
        std::mem::take(&mut self.damaged)
    }

    /// Whether it stands in the line.
    fn is_inline(&self) -> bool {
        self.role == Role::Inline
    }

    /// Inline ports whose interface joins what it receives into frames that the other side does not take: a line for each.
    pub fn joining(&self) -> Vec<String> {
        let inline = self.ports.iter().filter(|_| self.is_inline());
        inline
            .filter_map(|port| joined(port.device(), &port.joining()))
            .collect()
    }

    /// Whether its frames wait for whoever takes the records: those of a file, not those of a network.
    pub fn waits(&self) -> bool {
        self.until.frames.is_some()
    }

    /// Whether frames are stamped by the system's clock: those of a card and of a file have times of their own.
    pub fn stamps_by_clock(&self) -> bool {
        self.role != Role::Card && !self.waits()
    }

    /// Moves on while a card's record frames are looked for.
    pub fn pulse(&self) -> Pulse {
        Arc::clone(&self.pulse)
    }

    /// (name, whether it is known what was lost) of each measured port.
    pub fn names(&self) -> Vec<(String, bool)> {
        let of_port = |port: &Port| (port.device().to_string(), port.stats().drops_known);
        match self.role {
            Role::Wire | Role::Inline => self.ports.iter().map(of_port).collect(),
            // The card counts what it drops, the link has numbers.
            Role::Card => (0..card::PORTS)
                .map(|wire| (format!("{} wire {wire}", self.ports[0].device()), true))
                .collect(),
        }
    }

    /// The devices, by number in the measuring loop.
    pub fn devices(&self) -> Vec<String> {
        self.ports.iter().map(|port| port.device().to_string()).collect()
    }

    /// What to call all of it.
    pub fn title(&self) -> String {
        let names = self.devices();
        match self.role {
            Role::Wire => names.join(", "),
            Role::Inline => names.join(" ⇄ "),
            Role::Card => format!("card at {}", names.join(", ")),
        }
    }

    /// Measure until `stop` is set or a replay ends, on this thread. Records go to `take` in batches.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        progress: &Progress,
        take: impl FnMut(&[Record], &Measured<'_>) + Send,
    ) -> Result<(), Failure> {
        let config = LoopConfig {
            until: self.until,
            ..LoopConfig::default()
        };
        let records = Vec::with_capacity(2 * BATCH);
        if self.role == Role::Card {
            let mut meter = CardMeter {
                intake: Intake::default(),
                records,
                take,
                told: LinkCounters::default(),
                anew: None,
                pulse: self.pulse,
            };
            let result = receive(&mut self.ports, &config, &mut meter, stop, progress);
            meter.hand_on();
            return result.map_err(Failure::new);
        }
        let mut meter = Meter {
            feed: Feed::new(Parser::new(Profile::Full)),
            engine: Engine::new(self.engine).with_servers(self.servers.clone()),
            recorder: self.statistics.map(|config| Recorder::new(config, self.engine.lane)),
            records,
            ended: false,
            take,
        };
        let result = if self.role == Role::Inline {
            let ports: &mut [Port; 2] = self
                .ports
                .as_mut_slice()
                .try_into()
                .map_err(|_| Failure::new("inline takes two ports"))?;
            inline(ports, &config, &mut meter, stop, progress)
        } else {
            receive(&mut self.ports, &config, &mut meter, stop, progress)
        };
        for (number, report) in progress.reports().iter().enumerate() {
            let missed = u32::try_from(report.device.missed).unwrap_or(u32::MAX);
            meter.engine.dropped(number as u8, missed);
        }
        meter.finish();
        result.map_err(Failure::new)
    }
}

/// What to do about an interface that joins what it receives in these ways.
fn joined(device: &Device, ways: &[&str]) -> Option<String> {
    let Device::Eth(name) = device else { return None };
    let off: String = ways.iter().map(|way| format!(" {way} off")).collect();
    (!ways.is_empty()).then(|| {
        format!(
            "{device}: receive offload joins frames into longer ones, which are not forwarded: connections stall; turn it off: \
             ethtool -K {name}{off}"
        )
    })
}

/// A replay tells nothing of its end: it ends after as many frames as its files have. And why some of them end too soon.
fn end_of_replay(devices: &[Device]) -> Result<(Until, Vec<CaptureError>), Failure> {
    let (mut frames, mut damaged) = (0, Vec::new());
    for device in devices {
        if let Device::Pcap(path) = device {
            let (read, error) = frames_of(path)?;
            frames += read;
            damaged.extend(error);
        }
    }
    let until = Until {
        frames: Some(frames),
        quiet: Some(REPLAY_QUIET),
    };
    Ok((until, damaged))
}

/// Frames of a capture, up to where it is damaged; of one without any there is nothing to measure.
fn frames_of(path: &Path) -> Result<(u64, Option<CaptureError>), Failure> {
    // It is read for the number of its frames, then replayed.
    if source::comes_once(&path.to_string_lossy()) {
        return Err(Failure::new(format_args!(
            "pcap:{} is not a regular file",
            path.display()
        )));
    }
    let mut file = CaptureFile::open(path).map_err(Failure::new)?;
    loop {
        let error = match file.next() {
            Ok(Some(frame)) if frame.link == Some(LinkType::Ethernet) => continue,
            // DPDK does not tell of the link: it would be taken for Ethernet.
            Ok(Some(frame)) => {
                let link = frame.link_number;
                return Err(Failure::new(format_args!(
                    "pcap:{}: frame {} has link type {link}, and a port takes Ethernet (1) alone; weir analyze and weir view may read it",
                    path.display(),
                    file.frames()
                )));
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        return match error {
            Some(error) if file.frames() == 0 => Err(Failure::new(error)),
            error => Ok((file.frames(), error)),
        };
    }
}

/// Signals that come so soon after the first are one: a terminal and what started the process there both send it.
const ONE_SIGNAL: Duration = Duration::from_millis(200);

/// Sets a flag at the first signal to end, and ends the process at the second: whoever asks twice does not want to
/// wait for what is still to be done.
pub fn stop_at_signal(stop: &'static AtomicBool) -> Result<(), Failure> {
    with_signals(move |next| {
        next();
        let first = Instant::now();
        stop.store(true, Ordering::Relaxed);
        next();
        while first.elapsed() < ONE_SIGNAL {
            next();
        }
        say::line("weir: ended at once by a second signal");
        say::settle();
        std::process::exit(1);
    })
    .map_err(Failure::new)
}
