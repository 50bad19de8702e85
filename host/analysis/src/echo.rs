//! What a TSecr tells of a TSval of the sender that it is sent to (RFC 7323 4.3).

use crate::seq::{before, distance};

/// In ticks of 1 s to 1 µs (RFC 7323 5.4), those that are farther apart are none of one connection's recovery: a device in the path writes TSval and not
/// TSecr.
const FAR: u32 = 1 << 20;

/// Whether `echo` is older than `tsval`, and of the same clock.
pub(crate) const fn is_older(echo: u32, tsval: u32) -> bool {
    before(echo, tsval) && is_near(echo, tsval)
}

/// Whether they are near enough to be of one clock.
pub(crate) const fn is_near(echo: u32, tsval: u32) -> bool {
    distance(echo, tsval) <= FAR
}
