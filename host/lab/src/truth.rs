//! What the wire did, one record per deed, written as JSON Lines.

use crate::frame::TcpSummary;
use serde::Serialize;

/// A direction of travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Client to server.
    C2s,
    /// Server to client.
    S2c,
}

/// What happened to a frame. The first five are drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Lost by the loss probability.
    RandomLoss,
    /// Lost in the lossy part of a period.
    PeriodicLoss,
    /// Lost because it carries SYN.
    SynLoss,
    /// The queue in front of the rate limit was full.
    QueueFull,
    /// The wire already holds as many frames as it may.
    WireFull,
    /// Waited in the queue behind other frames.
    QueueDelay,
    /// Was late by jitter, its own or that of the frame before it.
    Jitter,
    /// Was held back so that later frames could overtake it.
    Reorder,
    /// A second copy was made.
    Duplicate,
}

impl Cause {
    /// The frame got no further.
    pub fn is_drop(self) -> bool {
        matches!(
            self,
            Cause::RandomLoss | Cause::PeriodicLoss | Cause::SynLoss | Cause::QueueFull | Cause::WireFull
        )
    }
}

/// One deed of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WireTruth {
    /// When the frame entered the leg, UTC nanoseconds.
    pub time_ns: u64,
    /// 1: client to tap, 2: tap to server.
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
