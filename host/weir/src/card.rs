//! A card that is kept for the service: what `weir serve` and `weir capture` share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_card::protocol::{CardState, Key, ServoState};
use weir_card::{AccessError, Event, Image, Keeper, Report, Service, Settings, Severity, SocketRegisters, Timing};
use weir_card::{fault_name, unhealthy_names, version};
use weir_command::Failure;
use weir_messages::Timestamp;
use weir_messages::v1::{self, CardPortStatus, CardStatus};
use weir_record::time::tai_from_utc;

use crate::cli::PortArgs;
use crate::say;

/// A simulated card is some thousand times slower than a card.
const SIMULATED: Timing = Timing {
    reply: Duration::from_secs(60),
    boot: Duration::from_secs(240),
    poll: Duration::from_millis(1),
};
/// The measuring loop goes round at least this often; longer, and it hangs.
const STALLED: Duration = Duration::from_secs(1);
/// What the card sends at its stop arrives within this.
const LAST_RECORDS: Duration = Duration::from_millis(300);

/// Moves on while the measuring loop goes round.
pub type Pulse = Arc<AtomicU64>;

/// How the service's own state gets what the keeper tells.
pub struct Told {
    /// A boot epoch for a start of measuring.
    pub epoch: Box<dyn FnMut() -> Result<u16, String> + Send>,
    /// An event.
    pub event: Box<dyn FnMut(v1::Event) + Send>,
    /// The newest state.
    pub status: Box<dyn FnMut(CardStatus) + Send>,
}

/// What keeps the card of the command line; `None` when nobody is asked to.
pub fn keeper(args: &PortArgs, pulse: &Pulse, told: Told) -> Result<Option<Keeper<Control>>, Failure> {
    let Some(socket) = &args.control else {
        if args.card.is_some() && (args.digests || args.flow.ignore_vlan || args.statistics.statistics) {
            return Err(Failure::new(
                "--digests, --ignore-vlan and --statistics are the card's settings: give its --control, too",
            ));
        }
        return Ok(None);
    };
    let image = args.firmware.as_deref().map(read_image).transpose()?;
    let mut values = vec![
        (Key::VlanInKey, u32::from(!args.flow.ignore_vlan)),
        (Key::DigestMode, u32::from(args.digests)),
    ];
    values.extend(statistics(args));
    values.extend(&args.settings);
    let settings = Settings {
        image,
        values,
        timing: SIMULATED,
        host_version: host_version(),
    };
    let control = Control {
        socket: socket.clone(),
        pulse: Arc::clone(pulse),
        told,
    };
    Ok(Some(Keeper::new(control, settings)))
}

/// The card's settings for `--statistics`.
fn statistics(args: &PortArgs) -> Vec<(Key, u32)> {
    let Some(config) = args.statistics.config() else {
        return Vec::new();
    };
    let keys = |first: Key| (first as u32..).filter_map(Key::from_u32);
    let thresholds = keys(Key::BurstBytes0).zip(config.thresholds);
    let services = keys(Key::Service0).zip(config.services.map(u32::from));
    let enable = [(Key::StatisticsEnable, 1)];
    enable.into_iter().chain(thresholds).chain(services).collect()
}

/// Keep the card until `asked`, stop it, let its last records come, then set `stop`.
pub fn keep(keeper: &mut Keeper<Control>, asked: &AtomicBool, stop: &AtomicBool) -> Result<(), Failure> {
    let result = keeper.run(asked);
    if result.is_ok() {
        std::thread::sleep(LAST_RECORDS);
    }
    asked.store(true, Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    result.map_err(|error| Failure::new(format_args!("card: {error}")))
}

/// A setting of the card as `KEY=VALUE`.
pub fn setting(text: &str) -> Result<(Key, u32), String> {
    let (name, value) = text.split_once('=').ok_or("not KEY=VALUE")?;
    let key = Key::ALL.iter().copied().find(|key| key.name() == name);
    let key =
        key.ok_or_else(|| format!("the card has no setting {name} (docs: card-protocol.md, configuration keys)"))?;
    let secret = (Key::Seed0..=Key::Seed12).contains(&key) || (Key::SketchSeed0..=Key::SketchSeed5).contains(&key);
    if key == Key::Epoch || secret {
        return Err(format!("{name} is drawn anew for each start"));
    }
    let (least, most) = key.range();
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number
        .map(|number| (key, number))
        .ok_or_else(|| format!("{name} takes a number from {least} to {most}"))
}

/// This program's version, as in an image's header.
fn host_version() -> u32 {
    let part = |text: &str| text.parse().unwrap_or(0_u32);
    part(env!("CARGO_PKG_VERSION_MAJOR")) << 24
        | part(env!("CARGO_PKG_VERSION_MINOR")) << 16
        | part(env!("CARGO_PKG_VERSION_PATCH"))
}

fn read_image(path: &Path) -> Result<Image, Failure> {
    let named = |problem: &dyn std::fmt::Display| Failure::new(format_args!("firmware {}: {problem}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| named(&error))?;
    Image::parse(&bytes).map_err(|problem| named(&problem))
}

fn utc_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// The simulated card's socket, and the service's state.
pub struct Control {
    socket: PathBuf,
    pulse: Pulse,
    told: Told,
}

impl Service for Control {
    type Registers = SocketRegisters;

    fn connect(&mut self) -> Result<SocketRegisters, AccessError> {
        SocketRegisters::connect(&self.socket)
    }

    fn epoch(&mut self) -> Result<u16, String> {
        (self.told.epoch)()
    }

    fn alive(&self) -> Box<dyn FnMut() -> bool + Send> {
        let pulse = Arc::clone(&self.pulse);
        let mut seen = (0, Instant::now());
        Box::new(move || {
            let now = pulse.load(Ordering::Relaxed);
            if now != seen.0 {
                seen = (now, Instant::now());
            }
            seen.1.elapsed() < STALLED
        })
    }

    fn tai_now(&self) -> u64 {
        tai_from_utc(utc_now())
    }

    fn tell(&mut self, event: &Event) {
        let severity = match event.severity() {
            Severity::Info => v1::Severity::Info,
            Severity::Warning => v1::Severity::Warning,
            Severity::Error => v1::Severity::Error,
        };
        let event = v1::Event {
            number: 0,
            time: Some(Timestamp::from_unix_nanos(utc_now() as i64)),
            severity: severity.into(),
            source: "card".to_owned(),
            name: event.name(),
            text: event.to_string(),
        };
        say::line(format_args!("weir: card: {}: {}", event.name, event.text));
        (self.told.event)(event);
    }

    fn show(&mut self, report: &Report) {
        (self.told.status)(status(report));
    }
}

fn status(report: &Report) -> CardStatus {
    let Report { state, statistics, .. } = report;
    let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let frames = [
        (
            statistics.port0_frames_in,
            statistics.port0_frames_out,
            statistics.port0_frames_dropped,
            statistics.port0_takeovers,
            statistics.port0_dropped,
        ),
        (
            statistics.port1_frames_in,
            statistics.port1_frames_out,
            statistics.port1_frames_dropped,
            statistics.port1_takeovers,
            statistics.port1_dropped,
        ),
    ];
    let ports = frames.iter().enumerate().map(|(port, counters)| CardPortStatus {
        measured: report.measured.get(port).copied().unwrap_or(false),
        frames_in: counters.0,
        frames_out: counters.1,
        frames_dropped: counters.2,
        takeovers: counters.3,
        unmeasured: counters.4,
    });
    CardStatus {
        phase: report.phase.name().to_owned(),
        state: CardState::from_u32(state.state).map_or("", CardState::name).to_owned(),
        unhealthy: unhealthy_names(state.unhealthy)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        servo_state: ServoState::from_u32(state.servo_state)
            .map_or("", ServoState::name)
            .to_owned(),
        servo_offset_ns: state.servo_offset_ns as i32,
        firmware_version: version(report.hello.firmware_version),
        slot: state.slot,
        boots: report.hello.boots,
        confirmed: state.confirmed != 0,
        contexts: report.info.map_or(0, |info| info.contexts),
        contexts_in_use: statistics.contexts_in_use,
        contexts_used: statistics.contexts_used,
        starts: report.starts,
        bypasses: state.bypasses,
        faults: report
            .faults
            .iter()
            .map(|(&code, &count)| (fault_name(code), count))
            .collect(),
        garbage_to_card: state.garbage_words,
        garbage_to_host: report.mailbox.0,
        records_in: wide(statistics.records_in_low, statistics.records_in_high),
        records_out: wide(statistics.records_out_low, statistics.records_out_high),
        records_left_out: statistics.left_out,
        ports: ports.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_and_in_range() {
        assert_eq!(setting("HOST_TIMEOUT_US=2000"), Ok((Key::HostTimeoutUs, 2000)));
        for (wrong, says) in [
            ("HOST_TIMEOUT_US", "not KEY=VALUE"),
            ("HOST_TIMEOUT_US=99", "from 100 to 10000000"),
            ("HOST_TIMEOUT_US=soon", "takes a number"),
            ("NOTHING=1", "no setting NOTHING"),
            ("SEED_3=1", "drawn anew"),
            ("EPOCH=1", "drawn anew"),
        ] {
            let error = setting(wrong).expect_err(wrong);
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
