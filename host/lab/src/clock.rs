//! One clock for the wire, the captures and both ends of the application.
//!
//! The monotonic clock of the machine plus one offset to UTC that is taken when the run starts: a correction of the
//! system's time during the run cannot put the truths of different processes apart.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Reads UTC nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    offset_ns: i64,
}

impl Clock {
    /// A clock that agrees with the system's time now.
    pub(crate) fn start() -> Clock {
        Clock {
            offset_ns: read_ns(ClockId::CLOCK_REALTIME) - read_ns(ClockId::CLOCK_MONOTONIC),
        }
    }

    /// The same clock in another process.
    pub(crate) fn with_offset(offset_ns: i64) -> Clock {
        Clock { offset_ns }
    }

    /// What [`Clock::with_offset`] needs.
    pub(crate) fn offset_ns(self) -> i64 {
        self.offset_ns
    }

    /// The time.
    pub(crate) fn now_ns(self) -> u64 {
        u64::try_from(read_ns(ClockId::CLOCK_MONOTONIC) + self.offset_ns).unwrap_or(0)
    }
}

fn read_ns(clock: ClockId) -> i64 {
    // These two clocks exist on every Linux; a failure would show as a time of 1970.
    clock_gettime(clock).map_or(0, |time| Duration::from(time).as_nanos() as i64)
}
