//! Live ports into the flow engine: what `weir serve` and `weir capture` share.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_capture::{CaptureFile, Feed};
use weir_dpdk::{Device, Eal, EalConfig, FrameSink, LoopConfig, Port, PortConfig, Progress, Until, inline, receive};
use weir_engine::{Config, Engine, LinkType, Parser, Profile};
use weir_record::{Record, time::tai_from_utc};

use crate::cli::PortArgs;
use crate::error::Failure;

/// Records are handed on when there are so many, or when the ports are idle.
const BATCH: usize = 1024;
/// Flows that software stands in for the card with: 4 million contexts of 300 bytes when all are used.
const CONTEXTS: u32 = 1 << 22;
/// A replayed file that gives nothing for so long has ended, should its frames have been miscounted.
const REPLAY_QUIET: Duration = Duration::from_secs(2);

/// The measuring side: frames in, batches of records to `take`.
pub struct Meter<T> {
    feed: Feed,
    engine: Engine,
    records: Vec<Record>,
    take: T,
}

impl<T: FnMut(&[Record], &Engine)> Meter<T> {
    fn hand_on(&mut self) {
        (self.take)(&self.records, &self.engine);
        self.records.clear();
    }

    /// The sources have ended: close every flow.
    fn finish(&mut self) {
        while self.engine.finish_some(BATCH, &mut self.records) {
            self.hand_on();
        }
        self.hand_on();
    }
}

impl<T: FnMut(&[Record], &Engine)> FrameSink for Meter<T> {
    fn frame(&mut self, port: u8, time_utc_ns: u64, data: &[u8], wire_len: u32) {
        let Self {
            feed, engine, records, ..
        } = self;
        let time = tai_from_utc(time_utc_ns);
        feed.frame(port, time, Some(LinkType::Ethernet), data, wire_len, |word| {
            word.enter(engine, records)
        });
        if self.records.len() >= BATCH {
            self.hand_on();
        }
    }

    fn idle(&mut self, now_utc_ns: u64) {
        self.engine.time(tai_from_utc(now_utc_ns), &mut self.records);
        if !self.records.is_empty() {
            self.hand_on();
        }
    }
}

/// Open ports, ready to measure.
pub struct Source {
    ports: Vec<Port>,
    inline: bool,
    until: Until,
    engine: Config,
}

impl Source {
    /// Open the ports of the command line. DPDK can be started once per process.
    pub fn open(args: &PortArgs, epoch: u16) -> Result<Self, Failure> {
        let names = args.inline.as_ref().unwrap_or(&args.ports);
        let devices: Vec<Device> = names
            .iter()
            .map(|name| name.parse())
            .collect::<Result<_, _>>()
            .map_err(Failure::new)?;
        let replay = devices.iter().all(|device| matches!(device, Device::Pcap(_)));
        let until = if replay {
            end_of_replay(&devices)?
        } else {
            Until::default()
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
        Ok(Self {
            ports,
            inline: args.inline.is_some(),
            until,
            engine,
        })
    }

    /// (name, whether the device can tell what it lost) of each port.
    pub fn names(&self) -> impl Iterator<Item = (String, bool)> + '_ {
        self.ports
            .iter()
            .map(|port| (port.device().to_string(), port.stats().drops_known))
    }

    /// Measure until `stop` is set or a replay ends, on this thread. Records go to `take` in batches.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        progress: &Progress,
        take: impl FnMut(&[Record], &Engine) + Send,
    ) -> Result<(), Failure> {
        let mut meter = Meter {
            feed: Feed::new(Parser::new(Profile::Full)),
            engine: Engine::new(self.engine),
            records: Vec::with_capacity(2 * BATCH),
            take,
        };
        let config = LoopConfig {
            until: self.until,
            ..LoopConfig::default()
        };
        let result = if self.inline {
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

/// A replay tells nothing of its end: it ends after as many frames as its files have.
fn end_of_replay(devices: &[Device]) -> Result<Until, Failure> {
    let mut frames = 0;
    for device in devices {
        if let Device::Pcap(path) = device {
            frames += frames_of(path)?;
        }
    }
    Ok(Until {
        frames: Some(frames),
        quiet: Some(REPLAY_QUIET),
    })
}

fn frames_of(path: &Path) -> Result<u64, Failure> {
    let mut file = CaptureFile::open(path).map_err(Failure::new)?;
    while file.next().map_err(Failure::new)?.is_some() {}
    Ok(file.frames())
}

/// Sets a flag at the first SIGINT or SIGTERM.
pub fn stop_at_signal(stop: &'static AtomicBool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(signal());
            stop.store(true, Ordering::Relaxed);
        })
        .map(|_| ())
        .map_err(Failure::new)
}

/// Completes at SIGINT or SIGTERM.
pub async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
