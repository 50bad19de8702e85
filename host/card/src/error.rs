//! What can go wrong with a card, with what to do.

use std::fmt;
use std::time::Duration;

use crate::access::AccessError;
use crate::card::is_no_image;
use crate::event::{image_error, no_image, state_name};
use crate::image::ImageProblem;
use crate::protocol::{ABI_MAJOR, ABI_MINOR, Opcode, Status, self_test_bit};
use crate::registers::system::{BOOT_REASON, BOOT_REASON_HOST, BOOT_REASON_RESTART, BOOT_REASON_WATCHDOG};

/// Working with a card failed.
#[derive(Debug)]
pub enum CardError {
    /// A register could not be reached.
    Access(AccessError),
    /// There is no card: the word at the magic's place.
    NoCard(u32),
    /// The card's register map is of a version that this program does not know.
    Abi {
        /// Major version of the card.
        major: u32,
        /// Minor version of the card.
        minor: u32,
    },
    /// The image of the firmware is not good.
    Image(ImageProblem),
    /// No answer came in time.
    NoAnswer(Opcode, Duration),
    /// The card took no words for so long.
    MailboxFull(Duration),
    /// More words than a message takes.
    TooLong(usize),
    /// The card answered that it did not do it; the detail is by request (`docs/src/card-protocol.md`).
    Refused {
        /// What was asked.
        opcode: Opcode,
        /// How it ended; `None`: a number that this program does not know.
        status: Option<Status>,
        /// First word of the reply.
        detail: u32,
    },
    /// A reply is shorter than its layout.
    ShortReply(Opcode, usize),
    /// The firmware did not start in time; the last boot stage.
    NotBooted(u32),
    /// A thread could not be started.
    Thread(std::io::Error),
    /// No firmware runs, and there is none to load.
    NoFirmware,
    /// Tests of the firmware failed: their bits.
    SelfTest(u32),
    /// The heartbeat ended.
    Heartbeat(AccessError),
    /// The card's CPU was reset: `system.boot`, and whether it is held in reset.
    Reset(u32, bool),
    /// The firmware left RUNNING by itself: its state.
    NotRunning(u32),
    /// The card's time could not be read closely enough: ns that it took at best, and that it may take.
    WidePair(u64, u64),
    /// No random numbers.
    Random(std::io::Error),
    /// The service gave no epoch.
    Service(String),
}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(error) => error.fmt(f),
            Self::NoCard(magic) => write!(f, "no card answers: its first register holds {magic:#010x}, not 'WEIR'"),
            Self::Abi { major, minor } => write!(
                f,
                "the card's registers are version {major}.{minor}, this program knows {ABI_MAJOR}.{ABI_MINOR}; {}",
                if *major > ABI_MAJOR || *major == ABI_MAJOR && *minor > ABI_MINOR {
                    "update weir"
                } else {
                    "update the card"
                }
            ),
            Self::Image(problem) => write!(f, "the firmware image cannot be used: {problem}"),
            Self::NoAnswer(opcode, time) => write!(
                f,
                "the card's firmware did not answer {} within {time:?}; does it run? (host.state, host.boot_stage)",
                opcode.name()
            ),
            Self::MailboxFull(time) => {
                write!(
                    f,
                    "the card's firmware took nothing from the mailbox for {time:?}; does it run?"
                )
            }
            Self::TooLong(words) => write!(f, "a message of {words} words does not fit into the mailbox"),
            Self::Refused {
                opcode: Opcode::UpdateEnd,
                status: Some(Status::Failed),
                detail,
            } => write!(
                f,
                "the card refused the firmware image ({}); it goes on with what it runs",
                image_error(*detail)
            ),
            Self::Refused { opcode, status, detail } => write!(
                f,
                "the card refused {}: {} (detail {detail:#x})",
                opcode.name(),
                status.map_or("a status that this program does not know", Status::name)
            ),
            Self::ShortReply(opcode, words) => {
                write!(f, "the card's reply to {} has {words} words only", opcode.name())
            }
            Self::NotBooted(stage) if is_no_image(*stage) => f.write_str(&no_image(*stage)),
            Self::NotBooted(stage) => write!(f, "the card's firmware did not start; boot stage {stage}"),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
            Self::NoFirmware => f.write_str("the card runs no firmware; give an image to load (--firmware)"),
            Self::SelfTest(tests) => {
                let failed = self_test_bit::NAMES.iter().filter(|(bit, _)| tests & bit != 0);
                let names: Vec<_> = failed.map(|&(_, name)| name).collect();
                write!(
                    f,
                    "the card's self-test failed: {}; the card is broken",
                    names.join(", ")
                )
            }
            Self::Heartbeat(error) => write!(f, "the heartbeat ended: {error}"),
            Self::Reset(boot, held) => {
                let cause = match BOOT_REASON.get(*boot) {
                    BOOT_REASON_HOST => "the host",
                    BOOT_REASON_WATCHDOG => "its watchdog",
                    BOOT_REASON_RESTART => "a restart",
                    _ => "power-on",
                };
                if *held {
                    f.write_str("the card's CPU is held in reset")
                } else {
                    write!(f, "the card's CPU was reset by {cause}")
                }
            }
            Self::NotRunning(state) => write!(f, "the card left RUNNING: it is {}", state_name(*state)),
            Self::WidePair(width, widest) => write!(
                f,
                "the card's time cannot be told to {widest} ns: reading it takes {width} ns; is this host busy?"
            ),
            Self::Random(error) => write!(f, "no random numbers for the hash's seed: {error}"),
            Self::Service(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for CardError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Access(error) | Self::Heartbeat(error) => Some(error),
            Self::Thread(error) | Self::Random(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AccessError> for CardError {
    fn from(error: AccessError) -> Self {
        Self::Access(error)
    }
}

impl From<ImageProblem> for CardError {
    fn from(problem: ImageProblem) -> Self {
        Self::Image(problem)
    }
}
