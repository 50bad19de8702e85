//! What the measuring loop tells of itself, and what the clock does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use weir_api::state::ApplianceState;
use weir_dpdk::{LinkState, PortReport};
use weir_messages::v1::Severity;

use super::Shared;
use super::clock::{ClockWatch, Step};
use super::events::tell;
use super::measuring::Ports;

/// How often it is looked.
const WATCH: Duration = Duration::from_millis(200);

/// What the measuring loop tells of itself: the counters of the inline path, links that go down and come back, measuring
/// that has failed while an inline path goes on.
pub fn watch(shared: &Shared, ports: &Ports, measured: &AtomicBool) {
    let Shared {
        capture,
        appliance,
        is_inline,
        ..
    } = shared;
    let Ports {
        counters,
        devices,
        progress,
        stamps_by_clock,
    } = ports;
    let mut clock = stamps_by_clock.then(|| ClockWatch::new(Instant::now(), SystemTime::now()));
    let (mut failed, mut too_long) = (false, vec![false; devices.len()]);
    loop {
        // Asked before looking: the last look sees the end.
        let last = measured.load(Ordering::Acquire);
        let reports = progress.reports();
        let renew = |counter: &AtomicU64, of: fn(&PortReport) -> u64| {
            counter.store(reports.iter().map(of).sum(), Ordering::Relaxed);
        };
        renew(&capture.forwarded, |report| report.forwarded);
        if *is_inline {
            renew(&capture.forward_drops, PortReport::not_forwarded);
        }
        renew(&capture.unmeasured, |report| report.unmeasured);
        for (number, (report, device)) in reports.iter().zip(devices).enumerate() {
            // All wires of a card come through one port.
            let wires = match &devices[..] {
                [_] => &counters[..],
                _ => &counters[number..=number],
            };
            let up = report.link.map(|link| link == LinkState::Up);
            let mut before = None;
            for counters in wires {
                before = counters.set_link(up);
            }
            match (before, up) {
                (None | Some(true), Some(false)) => {
                    let text = format!("{device}: the link is down: nothing arrives until it is up again");
                    tell(appliance, Severity::Warning, "port", "LINK_DOWN", text);
                }
                (Some(false), Some(true)) => {
                    let text = format!("{device}: the link is up again");
                    tell(appliance, Severity::Info, "port", "LINK_UP", text);
                }
                _ => {}
            }
            if report.forward_drops.too_long > 0 && !std::mem::replace(&mut too_long[number], true) {
                let text = format!(
                    "{device}: a frame was not forwarded, as it is longer than the other side takes: MTUs may differ (one was lowered?), or frames were \
                     joined by receive offload (ethtool -K ... gro off lro off), or by a sender on this host (ethtool -K ... tx off \
                     there); later ones are counted"
                );
                tell(appliance, Severity::Warning, "port", "FRAME_TOO_LONG", text);
            }
        }
        if progress.sink_failed() && !std::mem::replace(&mut failed, true) {
            appliance.troubles.measuring.store(true, Ordering::Relaxed);
            let text = "measuring has failed; an inline path goes on without it until the daemon is started again";
            tell(appliance, Severity::Error, "port", "MEASURING_FAILED", text.to_owned());
        }
        if let Some(clock) = &mut clock {
            let step = clock.look(Instant::now(), SystemTime::now());
            tell_clock(appliance, step, clock.behind());
        }
        if last {
            return;
        }
        std::thread::sleep(WATCH);
    }
}

/// That the clock was set, how far it is `behind` the times that records have, and that it has caught up.
fn tell_clock(appliance: &ApplianceState, step: Option<Step>, behind: Duration) {
    let counters = &appliance.clock;
    let was_behind = counters.behind_ns.swap(behind.as_nanos() as u64, Ordering::Relaxed) > 0;
    match step {
        Some(Step::Forward(by)) => {
            counters.forward.fetch_add(1, Ordering::Relaxed);
            let text = format!("the system's clock was set forward by {by:.1?}: times of records jump, too");
            tell(appliance, Severity::Warning, "daemon", "CLOCK_SET", text);
        }
        Some(Step::Back(by)) => {
            counters.back.fetch_add(1, Ordering::Relaxed);
            let text = format!(
                "the system's clock was set back by {by:.1?}: times of records stand still for {behind:.1?}, until it has caught up; \
                 a daemon that is started again begins with the new time"
            );
            tell(appliance, Severity::Error, "daemon", "CLOCK_SET", text);
        }
        None => {}
    }
    if was_behind && behind.is_zero() {
        let text = "the system's clock has caught up: times of records go on".to_owned();
        tell(appliance, Severity::Info, "daemon", "CLOCK_CAUGHT_UP", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::events::now;

    #[test]
    fn a_clock_that_is_set_back_is_told_and_counted_until_it_has_caught_up() {
        let appliance = ApplianceState::new(now());
        let hour = Duration::from_secs(3600);
        for (step, behind) in [
            (None, Duration::ZERO),
            (Some(Step::Back(hour)), hour),
            (None, hour / 2),
            (None, Duration::ZERO),
            (Some(Step::Forward(hour)), Duration::ZERO),
        ] {
            tell_clock(&appliance, step, behind);
            assert_eq!(
                appliance.clock.behind_ns.load(Ordering::Relaxed),
                behind.as_nanos() as u64
            );
        }
        let names: Vec<_> = appliance.events.after(0).into_iter().map(|event| event.name).collect();
        assert_eq!(names, ["CLOCK_SET", "CLOCK_CAUGHT_UP", "CLOCK_SET"]);
        let counters = &appliance.clock;
        assert_eq!(
            [&counters.back, &counters.forward].map(|count| count.load(Ordering::Relaxed)),
            [1, 1]
        );
    }
}
