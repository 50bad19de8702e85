//! What the wire did, one record per deed, written as JSON Lines.

use crate::frame::TcpSummary;
use serde::{Deserialize, Serialize};

/// A direction of travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Client to server.
    C2s,
    /// Server to client.
    S2c,
}

impl Direction {
    /// The way back.
    pub fn other(self) -> Self {
        match self {
            Self::C2s => Self::S2c,
            Self::S2c => Self::C2s,
        }
    }
}

/// What happened to a frame. The first eight are drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Lost by the loss probability.
    RandomLoss,
    /// Lost in the lossy part of a period.
    PeriodicLoss,
    /// Lost because it carries SYN.
    SynLoss,
    /// Lost in a burst.
    BurstLoss,
    /// Lost because it carries nothing but an ACK.
    AckLoss,
    /// Lost because it is larger than the path carries.
    BlackHole,
    /// The queue in front of the rate limit was full.
    QueueFull,
    /// The wire already holds as many frames as it may.
    WireFull,
    /// Waited in the queue behind other frames.
    QueueDelay,
    /// The queue was long, and marked it: congestion experienced.
    EcnMark,
    /// Another window scale was put into it, or none.
    WindowScale,
    /// Was late by jitter, its own or that of the frame before it.
    Jitter,
    /// Was held back so that later frames could overtake it.
    Reorder,
    /// A second copy was made.
    Duplicate,
    /// The capture missed it.
    CaptureDrop,
    /// The capture has it twice.
    CaptureCopy,
}

impl Cause {
    /// The frame got no further.
    pub fn is_drop(self) -> bool {
        matches!(
            self,
            Cause::RandomLoss
                | Cause::PeriodicLoss
                | Cause::SynLoss
                | Cause::BurstLoss
                | Cause::AckLoss
                | Cause::BlackHole
                | Cause::QueueFull
                | Cause::WireFull
        )
    }
}

/// One deed of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WireTruth {
    /// When the frame entered the leg, UTC nanoseconds.
    pub time_ns: u64,
    /// 1: client to tap, 2: tap to server; 0: the tap's capture.
    pub leg: u8,
    /// Direction of the frame.
    pub direction: Direction,
    /// What happened.
    pub cause: Cause,
    /// Time added beyond transmission and base delay (for a duplicate: between the first copy and the second).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_ns: Option<u64>,
    /// Number of the frame in the order in which the wire took frames in; copies keep it.
    pub frame: u64,
    /// Length of the frame, Ethernet header included.
    pub frame_len: u32,
    /// The middle tap saw it (for a duplicate: saw the second copy).
    pub passed_tap: bool,
    /// Its time in the middle tap's capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tap_time_ns: Option<u64>,
    /// Addresses and TCP fields; absent for other traffic.
    #[serde(flatten)]
    pub tcp: Option<TcpSummary>,
}

/// One frame at the tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// UTC nanoseconds.
    pub time_ns: u64,
    /// The capture has it.
    pub captured: bool,
    /// It is there only in the capture: a mirror's copy.
    pub mirrored: bool,
    /// A queue before the tap marked it (ECN).
    pub marked: bool,
}

/// Everything that became of one frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journey {
    /// Number of the frame, as in [`WireTruth`].
    pub frame: u64,
    /// When the wire took it in, UTC nanoseconds.
    pub time_ns: u64,
    /// Direction of the frame.
    pub direction: Direction,
    /// When it passed the tap; more than once if it was copied before.
    pub tap: Vec<Passage>,
    /// When it reached its host; never, once or, if it was copied, more often.
    pub arrived_ns: Vec<u64>,
    /// Addresses and TCP fields; absent for other traffic.
    #[serde(flatten)]
    pub tcp: Option<TcpSummary>,
}
