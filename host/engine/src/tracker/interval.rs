//! INTERVAL: section 5.

use weir_record::{FINE_INTERVAL_NS, INTERVAL_NS, Interval, width};

use super::out::{Out, direction};
use crate::flow::{Flow, NO_RTT, bit, flight};

/// A normal interval in units of a fine one.
const NORMAL_SPAN: u64 = INTERVAL_NS / FINE_INTERVAL_NS;

pub(super) const fn interval_end(flow: &Flow) -> u64 {
    flow.interval + flow.span as u64 * FINE_INTERVAL_NS
}

pub(super) fn begin_interval(flow: &mut Flow, time: u64) {
    let fine = flow.is(bit::TROUBLE);
    let unit = time / FINE_INTERVAL_NS;
    flow.set(bit::FINE, fine);
    flow.set(bit::TROUBLE, false);
    // Never 0, which stands for no interval: UTC 1970 is TAI 10 s.
    flow.interval = unit * FINE_INTERVAL_NS;
    flow.span = if fine {
        1
    } else {
        (NORMAL_SPAN - unit % NORMAL_SPAN) as u8
    };
}

/// A finished interval, taken before the packet that ended it.
#[derive(Clone, Copy)]
pub(super) struct Ended([Option<Interval>; 2]);

impl Ended {
    pub fn write(&self, arg: u8, out: &mut Out<'_>) {
        for (s, interval) in self.0.iter().enumerate() {
            if let Some(interval) = interval {
                let header = out.header(direction(s), arg);
                out.records.push(interval.encode(header));
            }
        }
    }
}

#[inline]
pub(super) fn end_interval(flow: &mut Flow, time: u64) -> Option<Ended> {
    (flow.interval != 0 && time >= interval_end(flow)).then(|| take_interval(flow))
}

pub(super) fn take_interval(flow: &mut Flow) -> Ended {
    let mut ended = [None; 2];
    let fine = flow.is(bit::FINE);
    for (s, slot) in ended.iter_mut().enumerate() {
        let in_flight = flight(&flow.sides[s], &flow.sides[1 - s]).min((1 << width::FLIGHT_MAX) - 1);
        let side = &mut flow.sides[s];
        if std::mem::take(&mut side.active) {
            *slot = Some(Interval {
                start: flow.interval,
                packets: side.packets,
                payload: side.payload.get(),
                flight_max: side.flight_max,
                window_min: side.window_min,
                window_max: side.window_max,
                rtt_min: side.rtt_min,
                rtt_max: side.rtt_max,
                rtt_count: side.rtt_count,
                fine: u8::from(fine),
                ip_id: side.ip_id,
            });
        }
        side.flight_max = in_flight;
        side.window_min = u16::MAX;
        side.window_max = 0;
        side.rtt_min = NO_RTT;
        side.rtt_max = 0;
        side.rtt_count = 0;
    }
    flow.interval = 0;
    Ended(ended)
}
