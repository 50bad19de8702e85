//! What happens to a card, for those who watch over it.

use std::fmt;

use crate::card::Info;
use crate::keeper::unhealthy_names;
use crate::protocol::{
    BootReason, CardState, FaultCode, FaultEntry, HelloReply, ImageError, Log, LogCode, ServoState, StateChange,
};
use crate::registers::fault;

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a card.
    Attached(Info),
    /// Firmware is loaded.
    Loading {
        /// Version of the image.
        version: u32,
    },
    /// The boot ROM found no good image.
    NoImage {
        /// `host.boot_stage`.
        stage: u32,
    },
    /// An image that was tried is not the one that runs: the card went back.
    GivenUp {
        /// Version of the image.
        version: u32,
    },
    /// Firmware answered.
    Firmware(HelloReply),
    /// Measuring was started.
    Started {
        /// Boot epoch in its records.
        epoch: u16,
    },
    /// The card is lost, reset or silent: why. It is looked for again.
    Lost(String),
    /// Measuring was ended.
    Stopped,
    /// The service began or ceased to take what the card measures; while it does not, the host's heartbeat is held back.
    Service {
        /// It takes it.
        alive: bool,
    },
    /// Words in the mailbox belonged to no message.
    Garbage {
        /// Words that the card skipped, since its boot.
        to_card: u32,
        /// Words that this host skipped.
        to_host: u64,
    },
    /// The card logged a fault.
    Fault(FaultEntry),
    /// The firmware's state changed.
    State(StateChange),
    /// The firmware told something that is no fault.
    Log(Log),
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Info,
    /// The link is in bypass, or something was not as it should be.
    Warning,
    /// A fault.
    Error,
}

impl Event {
    /// Its name, for programs. Faults and what the firmware logs have the names of the card protocol.
    pub fn name(&self) -> String {
        match self {
            Self::Attached(_) => "ATTACHED".into(),
            Self::Loading { .. } => "FIRMWARE_LOADING".into(),
            Self::NoImage { .. } => "FIRMWARE_REFUSED".into(),
            Self::GivenUp { .. } => "FIRMWARE_GIVEN_UP".into(),
            Self::Firmware(_) => "FIRMWARE".into(),
            Self::Started { .. } => "STARTED".into(),
            Self::Lost(_) => "LOST".into(),
            Self::Stopped => "STOPPED".into(),
            Self::Service { alive: true } => "SERVICE_ALIVE".into(),
            Self::Service { alive: false } => "SERVICE_STALLED".into(),
            Self::Garbage { .. } => "MAILBOX_GARBAGE".into(),
            Self::Fault(entry) => format!("FAULT_{}", fault_name(entry.code)),
            Self::State(change) => format!("STATE_{}", state_name(change.state)),
            Self::Log(log) => {
                LogCode::from_u32(log.code).map_or_else(|| format!("LOG_{}", log.code), |code| code.name().into())
            }
        }
    }

    /// How bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Fault(_) | Self::Lost(_) | Self::NoImage { .. } | Self::GivenUp { .. } => Severity::Error,
            Self::Service { alive: false } | Self::Garbage { .. } => Severity::Warning,
            Self::State(change) if change.state == CardState::Fault as u32 => Severity::Error,
            Self::Log(log) if log.code == LogCode::Bypass as u32 => Severity::Warning,
            _ => Severity::Info,
        }
    }
}

/// Name of a fault's code, or its number.
pub fn fault_name(code: u32) -> String {
    FaultCode::from_u32(code).map_or_else(|| code.to_string(), |code| code.name().into())
}

/// Name of a state of the card, or its number.
pub fn state_name(state: u32) -> String {
    CardState::from_u32(state).map_or_else(|| state.to_string(), |state| state.name().into())
}

/// Version of a firmware in words.
pub fn version(version: u32) -> String {
    format!("{}.{}.{}", version >> 24, version >> 16 & 0xff, version & 0xffff)
}

/// Detected faults of the hardware in words.
fn hardware(bits: u32) -> String {
    let known = [
        (fault::STATUS_TABLE_PARITY, "wrong parity in the key table"),
        (fault::STATUS_RAM_PARITY, "wrong parity in the CPU's memory"),
        (fault::STATUS_STUCK_RECORDS, "record frames do not leave"),
        (fault::STATUS_STUCK_SLICES_0, "header slices of port 0 do not leave"),
        (fault::STATUS_STUCK_SLICES_1, "header slices of port 1 do not leave"),
        (fault::STATUS_WATCHDOG, "the watchdog reset the CPU"),
        (fault::STATUS_BUS_ERROR, "an access where no register is"),
    ];
    let told: Vec<_> = known
        .iter()
        .filter(|(field, _)| field.get(bits) == 1)
        .map(|&(_, text)| text)
        .collect();
    told.join(", ")
}

/// What the boot ROM says of its slots.
pub(crate) fn no_image(stage: u32) -> String {
    let slot = |shift: u32| image_error(stage >> shift & 0xff);
    format!("no slot of the card holds a good image: A {}, B {}", slot(8), slot(16))
}

pub(crate) fn image_error(number: u32) -> String {
    ImageError::from_u32(number).map_or_else(|| number.to_string(), |error| error.name().into())
}

fn fault_text(entry: &FaultEntry, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (a, b) = (entry.detail0, entry.detail1);
    match FaultCode::from_u32(entry.code) {
        Some(FaultCode::Trap) => write!(f, "the firmware took exception {a} at {b:#010x} and started anew"),
        Some(FaultCode::Watchdog) => write!(f, "the firmware hung in task {a}; its watchdog started it anew"),
        Some(FaultCode::SelfTest) => write!(f, "self-test failed: tests {a:#x}, detail {b:#x}"),
        Some(FaultCode::Rollback) => write!(f, "the firmware in slot {a} was given up after {b} boots"),
        Some(FaultCode::ImageRefused) => write!(f, "the firmware image in slot {a} is bad: {}", image_error(b)),
        Some(FaultCode::HostLost) => write!(f, "the host's heartbeat did not come for {b} ms: bypass"),
        Some(FaultCode::MeasureUnhealthy) => write!(f, "measuring is unhealthy: {}", unhealthy_names(a).join(", ")),
        Some(FaultCode::NotReady) => write!(f, "measuring was not ready after {a} ms"),
        Some(FaultCode::Hardware) => write!(f, "the hardware detected: {}", hardware(a)),
        Some(FaultCode::TaskOverrun) => write!(f, "task {a} of the firmware took {b} µs"),
        Some(FaultCode::ReferenceLost) => write!(f, "the clock's reference is gone, after {a} periods LOCKED"),
        Some(FaultCode::TimeStep) => write!(
            f,
            "the clock was stepped by {} ns",
            (u64::from(b) << 32 | u64::from(a)) as i64
        ),
        Some(FaultCode::MailboxOverflow) => write!(f, "{a} words of the mailbox were lost"),
        Some(FaultCode::Configuration) => write!(f, "register {a:#06x} did not keep its value: it holds {b:#x}"),
        Some(FaultCode::RecordsHeld) => write!(f, "records did not leave for {a} ms: measuring ended"),
        Some(FaultCode::BootRecord) => f.write_str("the boot record was damaged and made new"),
        None => write!(
            f,
            "a fault that this program does not know: code {}, {a:#x}, {b:#x}",
            entry.code
        ),
    }?;
    write!(f, " (fault {}, boot {})", entry.sequence, entry.boot)
}

fn log_text(log: &Log, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let servo = |state| ServoState::from_u32(state).map_or_else(|| state.to_string(), |state| state.name().into());
    match LogCode::from_u32(log.code) {
        Some(LogCode::Bypass) => write!(f, "the link is bypassed: {}", unhealthy_names(log.detail0).join(", ")),
        Some(LogCode::Measured) => f.write_str("the link is measured"),
        Some(LogCode::Servo) => write!(f, "the clock is {}, was {}", servo(log.detail0), servo(log.detail1)),
        Some(LogCode::Confirmed) => write!(
            f,
            "firmware {} in slot {} is confirmed",
            version(log.detail1),
            log.detail0
        ),
        None => write!(f, "code {}, {:#x}, {:#x}", log.code, log.detail0, log.detail1),
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached(info) => write!(
                f,
                "a card with {} ports and room for {} flows; registers {}.{}",
                info.ports, info.contexts, info.abi.0, info.abi.1
            ),
            Self::Loading { version: number } => write!(f, "firmware {} is loaded", version(*number)),
            Self::NoImage { stage } => f.write_str(&no_image(*stage)),
            Self::GivenUp { version: number } => write!(
                f,
                "firmware {} was given up before it measured: the card goes on with what it ran; give another image",
                version(*number)
            ),
            Self::Firmware(hello) => {
                let reason = BootReason::from_u32(hello.boot_reason).map_or("UNKNOWN", BootReason::name);
                write!(
                    f,
                    "firmware {} runs from slot {} ({reason})",
                    version(hello.firmware_version),
                    hello.slot
                )
            }
            Self::Started { epoch } => write!(f, "measuring was started, boot epoch {epoch}"),
            Self::Lost(why) => write!(f, "{why}; the card is looked for again"),
            Self::Stopped => f.write_str("measuring was stopped; the link is bypassed"),
            Self::Service { alive: true } => f.write_str("the service takes records again"),
            Self::Service { alive: false } => {
                f.write_str("the service does not take records: the heartbeat is held back")
            }
            Self::Garbage { to_card, to_host } => write!(
                f,
                "words in the mailbox were no messages: {to_card} to the card since its boot, {to_host} to the host"
            ),
            Self::Fault(entry) => fault_text(entry, f),
            Self::State(change) => write!(f, "{}, was {}", state_name(change.state), state_name(change.before)),
            Self::Log(log) => log_text(log, f),
        }
    }
}
