//! What each limit would allow a direction (`docs/src/limits.md`), and window scales that its data betrays.

use weir_messages::v1;

use crate::flow::Flow;
use crate::given::Given;
use crate::limits::Cause;
use crate::message::seconds;
use crate::setup::Unscaled;
use crate::shares::Measure;

/// Speed of light in fibre, km/s; half of the round trip is the way there.
pub(crate) const LIGHT: f64 = 200_000.0;
/// A window that changes by a factor that is a power of two to this share is taken for another scale.
const POWER: f64 = 0.05;
/// Smallest shift that a mishap shows: receivers that read slowly halve their windows, too.
const LEAST_SHIFT: u8 = 3;
/// Largest shift (RFC 7323 2.3).
const MOST_SHIFT: u8 = 14;
/// Round trips from which on it is known what is in flight: where a sender's ACKs are not seen, all that it sends is.
const HEARD: u32 = 3;
/// Segments of a window from which on it is hardly chance that what is in flight fills it.
const FILLED: u64 = 8;
/// Largest window without scaling.
const UNSCALED: u64 = 65_535;
/// Who offers less than all of it but for one part in so many could offer more; else what is left may be the rest of a segment.
const UNSCALED_FULL: u64 = 8;

/// Ceilings of a direction; `None` when its transfers were single flights.
pub(crate) fn ceilings(flow: &Flow, side: usize, given: Given) -> Option<v1::Ceilings> {
    let transfer = &flow.extras.limits()?.sides[side];
    let by = transfer.so_far();
    let under_way = by.sum() - by.of(Cause::Application);
    // Of a capture without ACKs the given round trip tells how long a flight is.
    let longer = |trip: u64| under_way > trip;
    if under_way == 0 || transfer.acks == 0 && !given.trip.is_some_and(longer) {
        return None;
    }
    let trip = flow.measure(given).path_trip().map(seconds).filter(|trip| *trip > 0.0);
    let per_trip = |bytes: f64| trip.map(|trip| bytes * 8.0 / trip);
    let link = given.link.or(transfer.link());
    let measured = transfer.rate().filter(|_| trip.is_some());
    let counts = flow.counts(side);
    let loss = counts.retransmitted_data as f64 / flow.data_packets(side).max(1) as f64;
    let segment = f64::from(flow.setup.segment());
    Some(v1::Ceilings {
        measured_bits_per_second: measured.map(|bytes| bytes * 8.0),
        receiver_window_bits_per_second: window(flow, 1 - side).and_then(|bytes| per_trip(bytes as f64)),
        sender_bits_per_second: sender_bytes(flow, side).and_then(|bytes| per_trip(f64::from(bytes))),
        // Rate < MSS / (RTT · √(2p/3)).
        loss_bits_per_second: (loss > 0.0)
            .then(|| per_trip(segment / (2.0 * loss / 3.0).sqrt()))
            .flatten(),
        link_bits_per_second: link.map(|link| link * 8.0),
        round_trip_seconds: trip,
        ideal_window_bytes: link.zip(trip).map(|(link, trip)| link * trip),
        light_kilometres: trip.map(|trip| trip / 2.0 * LIGHT),
    })
}

/// The most that a side's send buffer let be in flight, if that held it.
pub(crate) fn sender_bytes(flow: &Flow, side: usize) -> Option<u32> {
    let bytes = flow.extras.limits()?.sides[side].sender_bytes;
    let hole = flow.counts(side).missed_at_once.saturating_mul(flow.setup.segment());
    (bytes > 0 && !is_hole(bytes, hole)).then_some(bytes)
}

/// Whether most of what seems to have been in flight is what the capture missed in one piece.
fn is_hole(bytes: u32, hole: u32) -> bool {
    (hole..hole.saturating_mul(2)).contains(&bytes)
}

/// Largest window of a side in bytes, if its scale is known.
fn window(flow: &Flow, side: usize) -> Option<u64> {
    let shift = flow.setup.scale(side)?;
    flow.windows[side].bytes(shift).map(|(_, most)| most)
}

/// Who left the window scale out of the handshake, where a side's windows are as large as they can be without it.
pub(crate) fn at_unscaled_most(flow: &Flow, side: usize) -> Option<Unscaled> {
    let by = flow.setup.unscaled()?;
    let most = window(flow, side)?.max(flow.setup.first_window(side).into());
    (most >= UNSCALED - UNSCALED / UNSCALED_FULL).then_some(by)
}

/// The least shift that lets the peer's flight fit this side's windows, when the handshake does not tell one.
pub(crate) fn inferred_scale(flow: &Flow, side: usize) -> Option<u8> {
    if flow.setup.scale(side).is_some() {
        return None;
    }
    fitting(flow, side)
}

fn fitting(flow: &Flow, side: usize) -> Option<u8> {
    // A segment more may be on its way than the tap's last window allows.
    fitting_flight(flow, side, u64::from(flow.setup.segment())).map(|(shift, _)| shift)
}

/// The least shift that lets the peer's flight fit this side's windows but for `over` bytes, and the largest of these windows then.
fn fitting_flight(flow: &Flow, side: usize, over: u64) -> Option<(u8, u64)> {
    let (_, most) = flow.windows[side].bytes(0)?;
    let flight = u64::from(flow.directions[1 - side].flight_max).saturating_sub(over);
    (0..=MOST_SHIFT)
        .map(|shift| (shift, most << shift))
        .find(|(_, window)| *window >= flight)
}

/// The window of a side whose scale is not known, in bytes, if the most that its peer had in flight leaves no room for a segment in it
/// at one scale: that is chance once in so many times as segments fit.
pub(crate) fn filled_window(flow: &Flow, side: usize) -> Option<u32> {
    if flow.setup.scale(side).is_some() {
        return None;
    }
    let (_, window) = fitting_flight(flow, side, 0)?;
    let segment = u64::from(flow.setup.segment());
    let left = window - u64::from(flow.directions[1 - side].flight_max);
    let is_filled = left < segment && window >= FILLED * segment;
    u32::try_from(window).ok().filter(|_| is_filled)
}

/// Pieces as long as the window's field from which on they are no chance.
const UNHEARD: u32 = 3;

/// A window scale that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// The side's windows dropped by 2^shift and stayed: it scales although the handshake says otherwise.
    Applied(u8),
    /// The peer sends as if the side's windows were scaled by 2^shift: the option was lost before the tap.
    Stripped(u8),
    /// The client does not scale although the handshake at the tap says so: the option was lost behind it.
    Ignored(u8),
    /// The peer takes the side's windows for unscaled: the option was lost on its way to it.
    Unheard(u8),
}

impl Mishap {
    /// Its cost shows in the time of the receiver's window.
    pub const fn is_in_windows(self) -> bool {
        matches!(self, Self::Applied(_) | Self::Unheard(_))
    }
}

/// The mishap of a side's windows, if there is one.
pub(crate) fn mishap(flow: &Flow, side: usize, m: &Measure) -> Option<Mishap> {
    let shift = flow.setup.scale(side)?;
    let (least, most) = flow.windows[side].bytes(0)?;
    if shift == 0 && most <= UNSCALED {
        let sent = &flow.directions[1 - side];
        let flight = u64::from(sent.flight_max);
        let is_heard = flow.rtt.samples(1 - side) >= HEARD;
        if is_heard && flight > UNSCALED + u64::from(m.segment) && flight > 2 * most {
            return fitting(flow, side).map(Mishap::Stripped);
        }
    }
    if let Some(drop) = taken_back(flow, side) {
        return Some(Mishap::Applied(drop));
    }
    if is_stuck(flow, side) {
        let fell = (least << shift..=most << shift).contains(&u64::from(m.segment));
        if let Some(drop) = power(most, least).filter(|_| fell) {
            return Some(Mishap::Applied(drop));
        }
        if let Some(drop) = drop_after_syn(flow, side, m.segment) {
            return Some(Mishap::Applied(drop));
        }
    }
    let pieces = flow
        .extras
        .limits()
        .map_or(0, |limits| limits.sides[1 - side].unscaled_pieces);
    if pieces >= UNHEARD {
        return Some(Mishap::Unheard(shift));
    }
    (side == 0 && flow.setup.is_ack_bare()).then_some(Mishap::Ignored(shift))
}

/// The shift between two windows, if it is one and large enough.
fn power(most: u64, least: u64) -> Option<u8> {
    let ratio = (most as f64 / least.max(1) as f64).log2();
    let shift = ratio.round();
    let is_power = (ratio - shift).abs() <= POWER && shift >= f64::from(LEAST_SHIFT) && shift <= f64::from(MOST_SHIFT);
    (is_power && least > 0).then_some(shift as u8)
}

/// A side's SYN, whose window is never scaled (RFC 7323 2.2), offers 2^shift times what any other of its packets does, and what came in
/// between is too little to have filled the rest, or so much that it was read: nobody takes back what was offered (RFC 7323 2.4).
fn taken_back(flow: &Flow, side: usize) -> Option<u8> {
    let shift = flow.setup.scale(side)?;
    let offered = u64::from(flow.setup.options(side)?.window);
    let (_, most) = flow.windows[side].bytes(shift)?;
    let came = flow.directions[1 - side].payload;
    let is_known = came > 0 && (came < offered.saturating_sub(most) || came > 2 * offered);
    power(offered, most).filter(|_| is_known && offered >= u64::from(flow.setup.segment()))
}

/// Of windows that are stuck: a side's SYN, whose window is never scaled (RFC 7323 2.2), offers a segment or more, and no other of its packets does:
/// nobody takes back what was offered (RFC 9293 3.8.6). A buffer that grows with what arrives makes the shift a little smaller
/// than it was.
fn drop_after_syn(flow: &Flow, side: usize, segment: u32) -> Option<u8> {
    let shift = flow.setup.scale(side)?;
    let offered = flow.setup.options(side)?.window;
    let (_, most) = flow.windows[side].bytes(shift)?;
    let drop = (f64::from(offered) / most.max(1) as f64).log2().round();
    let fell = (most + 1..=u64::from(offered)).contains(&u64::from(segment));
    (fell && drop >= f64::from(LEAST_SHIFT)).then_some(drop as u8)
}

/// Whether a side's windows were smaller than a segment for most of the time.
pub(crate) fn is_stuck(flow: &Flow, side: usize) -> bool {
    flow.extras.trouble().is_some_and(|t| {
        let small = t.closed[side].small;
        t.small_windows[side] > 0 && small > flow.last.saturating_sub(flow.first) / 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_no_send_buffer() {
        // 140 segments missed in a transfer with 7 in flight; one of 22 that a buffer holds; ten flights of such a buffer.
        let told = [(214_620, 204_400), (32_120, 1_460), (32_120, 321_200), (32_120, 0)];
        assert_eq!(
            told.map(|(bytes, hole)| is_hole(bytes, hole)),
            [true, false, false, false]
        );
    }
}
