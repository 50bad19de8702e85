//! Keeps a card measuring for a service: firmware, configuration, start, watch, and all of it again when the card was
//! lost, reset or loaded anew.
//!
//! ```text
//!  attach ─► firmware ─► hello ─► self-test done ─► configure ─► time ─► start ─► watch ─► (asked to end) ─► stop
//!    ▲       (loaded if none runs or it was silent,                                 │
//!    └────── another is put beside it) ◄─────── event, a pause ◄────────────────────┘ lost, reset, silent, not RUNNING
//! ```
//! An image that is put beside the one that runs is on trial until it measures: whatever ends its session is followed by
//! a reset, and after its tries the card goes back by itself. It is tried once by a keeper.
//!
//! The heartbeat is a thread of its own, from before the start until after the stop. What the card tells, and what
//! happens to it, goes to the service as [`Event`]s; the fault log is read by number, so a fault is told once however
//! it came to be known.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::access::{AccessError, Registers};
use crate::card::{Card, Info, is_no_image};
use crate::error::CardError;
use crate::event::Event;
use crate::heartbeat::Heartbeat;
use crate::image::Image;
use crate::mailbox::{Message, Timing};
use crate::protocol::{
    CardState, FaultEntry, HelloReply, Key, Log, Opcode, PAIRS_TO_SET, SERVO_GATE_HOST_NS, ServoSource, State,
    StateChange, Statistics, Status, SyncAction, health_bit,
};
use crate::registers::{host, info, inline, system};
use crate::seed;

/// Between two looks at what the card says unasked.
const LOOK: Duration = Duration::from_millis(100);
/// Between two questions for state and counters.
const ASK: Duration = Duration::from_secs(1);
/// Before a lost card is looked for again.
const PAUSE: Duration = Duration::from_secs(1);
/// The host beats four times in `HOST_TIMEOUT_US`, but a thread is not woken more often than this.
const QUICKEST_BEAT: Duration = Duration::from_millis(10);
/// The inline path's heartbeat comes four times before it is missed; the card refuses a slower one.
const BEATS: u32 = 4;
/// The card's time is read within so many ns for the second to be right: a clock is set that is 400 ms off.
const WIDEST_OF_A_SECOND: u64 = 100_000_000;

/// How to keep the card.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Firmware for a card that runs none or another, or is silent.
    pub image: Option<Image>,
    /// Values of CONFIGURE beside those that the keeper sets: epoch, seed, and the heartbeat's period.
    pub values: Vec<(Key, u32)>,
    /// How long to wait for the card.
    pub timing: Timing,
    /// Version of the service, for HELLO.
    pub host_version: u32,
}

/// What the keeper needs of the service.
pub trait Service {
    /// The way to the card.
    type Registers: Registers + Send + 'static;

    /// Reach the card's registers.
    ///
    /// # Errors
    /// They cannot be reached.
    fn connect(&mut self) -> Result<Self::Registers, AccessError>;

    /// A boot epoch that no start of measuring had before: it makes flow ids unique.
    ///
    /// # Errors
    /// Why there is none; the keeper then ends.
    fn epoch(&mut self) -> Result<u16, String>;

    /// Asked before each heartbeat: does the service take what the card measures? While not, the link is bypassed.
    fn alive(&self) -> Box<dyn FnMut() -> bool + Send>;

    /// TAI in ns.
    fn tai_now(&self) -> u64;

    /// Something happened.
    fn tell(&mut self, event: &Event);

    /// The newest state.
    fn show(&mut self, report: &Report);
}

/// Where the keeper is with its card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The card is looked for.
    #[default]
    Attaching,
    /// Firmware is loaded or boots.
    Booting,
    /// The firmware is configured and started.
    Starting,
    /// The card measures, or would if it were healthy.
    Running,
    /// The keeper has ended.
    Stopped,
}

impl Phase {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attaching => "ATTACHING",
            Self::Booting => "BOOTING",
            Self::Starting => "STARTING",
            Self::Running => "RUNNING",
            Self::Stopped => "STOPPED",
        }
    }
}

/// What is known of the card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Where the keeper is.
    pub phase: Phase,
    /// What the card is; kept when it is lost.
    pub info: Option<Info>,
    /// What its firmware said at the last hello.
    pub hello: HelloReply,
    /// The firmware's state when it was last asked.
    pub state: State,
    /// Its counters then.
    pub statistics: Statistics,
    /// Whether frames pass through the measured stage, by port; else bypass.
    pub measured: Vec<bool>,
    /// Starts of measuring.
    pub starts: u64,
    /// Faults told since the service began, by code.
    pub faults: BTreeMap<u32, u64>,
    /// Words from the card that were no message, replies nobody waited for, notices thrown away.
    pub mailbox: (u64, u64, u64),
}

/// The image, and its trial beside the one that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    /// The card did not get it from this keeper.
    Untried,
    /// It boots or runs, and was not confirmed.
    Runs,
    /// The card went back to the one before, which nothing is loaded over.
    GivenUp,
    /// It was confirmed, refused, or loaded into a card that had no other.
    Over,
}

/// Keeps one card.
pub struct Keeper<S> {
    service: S,
    settings: Settings,
    report: Report,
    /// Newest entry of the fault log that was told.
    fault: u32,
    /// Words that the card and this host could not use, as last told.
    garbage: (u32, u64),
    /// The firmware did not answer: it is to be loaded anew.
    silent: bool,
    trial: Trial,
    /// A reset helps: it is the next try, or wakes what nothing is loaded over.
    restart: bool,
    /// Why the card is lost, as last told: said once, however often it is looked for.
    lost: Option<String>,
}

impl<S: Service> Keeper<S> {
    /// For this service.
    pub fn new(service: S, settings: Settings) -> Self {
        Self {
            service,
            settings,
            report: Report::default(),
            fault: 0,
            garbage: (0, 0),
            silent: false,
            trial: Trial::Untried,
            restart: false,
            lost: None,
        }
    }

    /// Keep the card until `end` is set, then stop it.
    ///
    /// # Errors
    /// The card could not be brought to measure the first time, or there is no epoch any more. Later failures are told,
    /// and the card is looked for again.
    pub fn run(&mut self, end: &AtomicBool) -> Result<(), CardError> {
        loop {
            self.phase(Phase::Attaching);
            match self.session(end) {
                Ok(()) => {
                    self.phase(Phase::Stopped);
                    return Ok(());
                }
                Err(error) => {
                    // Without an answer, or after a boot that did not end, only a new image helps, or the one beside it.
                    let silent = matches!(
                        error,
                        CardError::NoAnswer(..) | CardError::MailboxFull(_) | CardError::NotBooted(_)
                    );
                    let tries = self.trial == Trial::Runs;
                    self.restart = tries || silent && self.trial == Trial::GivenUp;
                    self.silent = silent && !self.restart;
                    let helps = tries || silent && self.trial == Trial::Untried && self.settings.image.is_some();
                    let ends = self.report.starts == 0 && !helps || matches!(error, CardError::Service(_));
                    if ends || end.load(Ordering::Relaxed) {
                        self.phase(Phase::Stopped);
                        return Err(error);
                    }
                    self.report.measured.clear();
                    let why = error.to_string();
                    if self.lost.as_ref() != Some(&why) {
                        self.service.tell(&Event::Lost(why.clone()));
                        self.lost = Some(why);
                    }
                }
            }
            self.phase(Phase::Attaching);
            wait(PAUSE, end);
        }
    }

    /// From attaching to the end (`Ok`) or the loss of the card.
    fn session(&mut self, end: &AtomicBool) -> Result<(), CardError> {
        let mut card = Card::attach(self.service.connect()?, self.settings.timing)?;
        self.report.info = Some(card.info());
        if self.lost.is_none() {
            self.service.tell(&Event::Attached(card.info()));
        }
        self.phase(Phase::Booting);
        self.firmware(&mut card)?;
        self.settle(&mut card, end)?;
        if end.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.phase(Phase::Starting);
        let epoch = self.configure(&mut card)?;
        // Before anything is measured: flows would keep the time that they were opened at by the clock as it was.
        self.set_clock(&mut card)?;
        let heartbeat = card.heartbeat(self.beat_period(), self.service.alive())?;
        card.start()?;
        self.report.starts += 1;
        self.lost = None;
        self.service.tell(&Event::Started { epoch });
        self.phase(Phase::Running);
        self.watch(&mut card, &heartbeat, end)?;
        // The link goes to bypass with this; the heartbeat has no meaning any more.
        card.stop()?;
        self.hear(&mut card)?;
        heartbeat.stop()?;
        self.service.tell(&Event::Stopped);
        Ok(())
    }

    /// Firmware that answers.
    fn firmware(&mut self, card: &mut Card<S::Registers>) -> Result<(), CardError> {
        if std::mem::take(&mut self.restart) {
            card.restart()?;
        }
        let held = system::STATUS_CPU_IN_RESET.get(card.registers().read32(system::STATUS)?) == 1;
        let runs = !held && !self.silent && self.boots(card)?;
        match &self.settings.image {
            Some(image) if !runs => {
                self.service.tell(&Event::Loading {
                    version: image.header.version,
                });
                self.trial = Trial::Over;
                card.load_firmware(image)?;
            }
            None if !runs => return Err(CardError::NoFirmware),
            _ => {}
        }
        self.silent = false;
        self.hello(card)?;
        self.try_image(card)
    }

    fn hello(&mut self, card: &mut Card<S::Registers>) -> Result<(), CardError> {
        let hello = card.hello(self.settings.host_version)?;
        self.report.hello = hello;
        self.service.tell(&Event::Firmware(hello));
        Ok(())
    }

    /// Put the image beside another one that runs, once, and boot it: that it fails costs a few boots, not the firmware that
    /// worked.
    fn try_image(&mut self, card: &mut Card<S::Registers>) -> Result<(), CardError> {
        let Some(image) = &self.settings.image else {
            return Ok(());
        };
        let (version, wanted) = (image.header.version, image.header.header_crc);
        let mut runs = card.image_in(self.report.hello.slot)?;
        if runs != wanted && self.trial == Trial::Untried {
            self.service.tell(&Event::Loading { version });
            self.trial = Trial::Over;
            card.update_firmware(image)?;
            self.trial = Trial::Runs;
            card.restart()?;
            card.wait_for_boot()?;
            self.hello(card)?;
            runs = card.image_in(self.report.hello.slot)?;
        }
        if runs != wanted && self.trial == Trial::Runs {
            self.trial = Trial::GivenUp;
            self.service.tell(&Event::GivenUp { version });
        }
        Ok(())
    }

    /// Whether a boot that may be under way ends with firmware that runs.
    fn boots(&mut self, card: &mut Card<S::Registers>) -> Result<bool, CardError> {
        match card.wait_for_boot() {
            Ok(()) => Ok(true),
            Err(CardError::NotBooted(stage)) if is_no_image(stage) => {
                self.service.tell(&Event::NoImage { stage });
                Ok(false)
            }
            // Else a reset follows: there is an image to go back to.
            Err(CardError::NotBooted(_)) if !matches!(self.trial, Trial::Runs | Trial::GivenUp) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Until the card is IDLE: its self-test is done, and what it measured for someone before has ended.
    fn settle(&mut self, card: &mut Card<S::Registers>, end: &AtomicBool) -> Result<(), CardError> {
        let deadline = Instant::now() + self.settings.timing.boot;
        loop {
            self.ask(card)?;
            let state = self.report.state;
            match CardState::from_u32(state.state) {
                Some(CardState::Idle) => return Ok(()),
                Some(CardState::Running) => card.stop()?,
                Some(CardState::Fault) if state.self_test_failed == 0 => card.stop()?,
                Some(CardState::Fault) => return Err(CardError::SelfTest(state.self_test_failed)),
                _ if end.load(Ordering::Relaxed) => return Ok(()),
                _ if Instant::now() >= deadline => {
                    return Err(CardError::NotBooted(card.registers().read32(host::BOOT_STAGE)?));
                }
                _ => wait(LOOK, end),
            }
        }
    }

    fn configure(&mut self, card: &mut Card<S::Registers>) -> Result<u16, CardError> {
        let epoch = self.service.epoch().map_err(CardError::Service)?;
        let clocks = u64::from(card.registers().read32(info::HEARTBEAT_CLOCKS)?);
        let khz = u64::from(card.info().clock_khz.max(1));
        let patience_us = u32::try_from(clocks * 1000 / khz).unwrap_or(u32::MAX);
        let (least, _) = Key::BeatUs.range();
        let mut values = vec![
            (Key::Epoch, epoch.into()),
            (Key::BeatUs, (patience_us / BEATS).clamp(least, Key::BeatUs.initial())),
        ];
        values.extend(seed::draw()?);
        values.extend(&self.settings.values);
        card.configure(&values)?;
        Ok(epoch)
    }

    fn value(&self, key: Key) -> u32 {
        let set = self.settings.values.iter().rev().find(|(other, _)| *other == key);
        set.map_or(key.initial(), |&(_, value)| value)
    }

    fn beat_period(&self) -> Duration {
        let timeout = Duration::from_micros(self.value(Key::HostTimeoutUs).into());
        (timeout / BEATS).max(QUICKEST_BEAT)
    }

    /// What the card's servo takes for an outlier, when it follows this host: ns.
    fn gate(&self) -> u32 {
        match self.value(Key::ServoGateNs) {
            0 => SERVO_GATE_HOST_NS,
            set => set,
        }
    }

    /// Tell the card the time, where its clock is to follow this host or to count its edges from the right second.
    fn synchronise(&mut self, card: &mut Card<S::Registers>) -> Result<Option<SyncAction>, CardError> {
        let widest = match ServoSource::from_u32(self.value(Key::ServoSource)) {
            Some(ServoSource::Pps) => WIDEST_OF_A_SECOND,
            // Its middle is at most the gate off.
            Some(ServoSource::Host) => 2 * u64::from(self.gate()),
            _ => return Ok(None),
        };
        let reply = card.time_sync(widest, || self.service.tai_now())?;
        Ok(SyncAction::from_u32(reply.action))
    }

    /// The same until the card has it: a clock that was locked doubts what is far from it.
    fn set_clock(&mut self, card: &mut Card<S::Registers>) -> Result<(), CardError> {
        for _ in 0..PAIRS_TO_SET {
            if self.synchronise(card)? != Some(SyncAction::Doubted) {
                break;
            }
        }
        Ok(())
    }

    /// Until the end is asked for.
    fn watch(
        &mut self,
        card: &mut Card<S::Registers>,
        heartbeat: &Heartbeat,
        end: &AtomicBool,
    ) -> Result<(), CardError> {
        let boots = card.registers().read32(system::BOOT)?;
        let follows_host = self.value(Key::ServoSource) == ServoSource::Host as u32;
        let mut asked = None;
        let mut stalled = false;
        let mut confirmed = false;
        while !end.load(Ordering::Relaxed) {
            if let Some(error) = heartbeat.failed() {
                return Err(CardError::Heartbeat(error));
            }
            if heartbeat.held_back() != stalled {
                stalled = !stalled;
                self.service.tell(&Event::Service { alive: !stalled });
            }
            still_of(card, boots)?;
            self.hear(card)?;
            if asked.is_none_or(|at: Instant| at.elapsed() >= ASK) {
                asked = Some(Instant::now());
                let answered = self.round(card, follows_host, &mut confirmed);
                // A reset in the midst of it explains whatever was answered, or was not.
                still_of(card, boots)?;
                answered?;
            }
            wait(LOOK, end);
        }
        Ok(())
    }

    /// What is asked again and again of a card that runs.
    fn round(
        &mut self,
        card: &mut Card<S::Registers>,
        follows_host: bool,
        confirmed: &mut bool,
    ) -> Result<(), CardError> {
        self.ask(card)?;
        let state = self.report.state;
        if state.state != CardState::Running as u32 {
            return Err(CardError::NotRunning(state.state));
        }
        if state.unhealthy == 0 && !*confirmed {
            card.confirm()?;
            *confirmed = true;
            self.trial = Trial::Over;
        }
        if follows_host {
            match self.synchronise(card) {
                // The card counts what did not come, and tells when it is too much.
                Ok(_) | Err(CardError::WidePair(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// State and counters, faults that nobody told us of, and how the ports stand.
    fn ask(&mut self, card: &mut Card<S::Registers>) -> Result<(), CardError> {
        self.hear(card)?;
        self.report.state = again(|| card.state())?;
        self.report.statistics = again(|| card.statistics())?;
        self.hear(card)?;
        let faults = card.registers().read32(host::FAULT_COUNT)?;
        if faults < self.fault {
            // Power was gone, and the numbers began anew.
            self.fault = 0;
        }
        if faults > self.fault {
            for entry in again(|| card.fault_log(self.fault + 1))? {
                self.tell_fault(entry);
            }
            // What the log has no room for any more cannot be told.
            self.fault = self.fault.max(faults);
        }
        let ports = self.report.info.map_or(0, |info| info.ports);
        let measured = (0..ports).map(|port| {
            let mode = card.registers().read32(inline::port_mode(port))?;
            Ok(inline::PORT_MODE_MEASURED.get(mode) == 1)
        });
        self.report.measured = measured.collect::<Result<_, AccessError>>()?;
        self.report.mailbox = card.mailbox_counters();
        let garbage = (self.report.state.garbage_words, self.report.mailbox.0);
        if garbage.0 > self.garbage.0 || garbage.1 > self.garbage.1 {
            self.service.tell(&Event::Garbage {
                to_card: garbage.0,
                to_host: garbage.1,
            });
        }
        self.garbage = garbage;
        self.service.show(&self.report);
        Ok(())
    }

    /// What the card said unasked.
    fn hear(&mut self, card: &mut Card<S::Registers>) -> Result<(), CardError> {
        for Message { opcode, payload, .. } in card.notices()? {
            match opcode {
                Some(Opcode::Fault) => {
                    if let Some(words) = payload.first_chunk() {
                        self.tell_fault(FaultEntry::decode(words));
                    }
                }
                Some(Opcode::StateChange) => {
                    if let Some(words) = payload.first_chunk() {
                        self.service.tell(&Event::State(StateChange::decode(words)));
                    }
                }
                Some(Opcode::Log) => {
                    if let Some(words) = payload.first_chunk() {
                        self.service.tell(&Event::Log(Log::decode(words)));
                    }
                }
                // Counters are asked for.
                _ => {}
            }
        }
        Ok(())
    }

    fn tell_fault(&mut self, entry: FaultEntry) {
        if entry.sequence <= self.fault {
            return;
        }
        self.fault = entry.sequence;
        *self.report.faults.entry(entry.code).or_default() += 1;
        self.service.tell(&Event::Fault(entry));
    }

    fn phase(&mut self, phase: Phase) {
        self.report.phase = phase;
        self.service.show(&self.report);
    }
}

/// That the CPU was not reset since `system.boot` was this, and is not held.
fn still_of<R: Registers>(card: &mut Card<R>, boots: u32) -> Result<(), CardError> {
    let now = card.registers().read32(system::BOOT)?;
    let held = system::STATUS_CPU_IN_RESET.get(card.registers().read32(system::STATUS)?) == 1;
    if held || now != boots {
        return Err(CardError::Reset(now, held));
    }
    Ok(())
}

/// A question that was damaged on its way is asked once more.
fn again<T>(mut ask: impl FnMut() -> Result<T, CardError>) -> Result<T, CardError> {
    match ask() {
        Err(CardError::Refused {
            status: Some(Status::BadCrc),
            ..
        }) => ask(),
        other => other,
    }
}

fn wait(time: Duration, end: &AtomicBool) {
    let until = Instant::now() + time;
    while Instant::now() < until && !end.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK.min(time));
    }
}

/// Names of the bits in `unhealthy`.
pub fn unhealthy_names(bits: u32) -> Vec<&'static str> {
    let set = health_bit::NAMES.iter().filter(|(bit, _)| bits & bit != 0);
    set.map(|&(_, name)| name).collect()
}
