//! The loops that run on live ports: receiving, and forwarding inline while measuring.
//!
//! Each runs to completion on the calling thread, which should be one of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::affinity;
use crate::burst::Burst;
use crate::eal::RegisteredThread;
use crate::error::{Error, ErrorKind, Result};
use crate::netif::LinkState;
use crate::port::{Port, PortStats};

/// What measures the frames. It is called on the loop's thread.
pub trait FrameSink {
    /// A frame that was received on port number `port` of the loop. `time_utc_ns` is nanoseconds since 1970
    /// (UTC), `data` what was captured of `wire_len` bytes; `None`: the kernel probably cut it, and does not tell how long it was.
    fn frame(&mut self, port: u8, time_utc_ns: u64, data: &[u8], wire_len: Option<u32>);

    /// The device of a port says that it has lost so many frames since it was opened. Called when there are more.
    fn lost(&mut self, _port: u8, _frames: u64) {}

    /// No frame came in a whole round over the ports. Not called while every port replays a file: their
    /// time is not now.
    fn idle(&mut self, now_utc_ns: u64);
}

/// When receiving ends, besides the stop flag. A replayed file gives no sign of its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Until {
    /// Ends after this many frames over all ports.
    pub frames: Option<u64>,
    /// Ends when no frame came for this long.
    pub quiet: Option<Duration>,
}

/// How a loop runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopConfig {
    /// Binds the loop's thread to this CPU.
    pub cpu: Option<usize>,
    /// When receiving ends; an inline loop ends by the stop flag alone.
    pub until: Until,
}

/// Counters of one port in a loop, in frames unless the name says bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortReport {
    /// What the device counts since it was opened.
    pub device: PortStats,
    /// Of the kernel interface, where there is one.
    pub link: Option<LinkState>,
    /// Frames that the loop received here.
    pub received: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Frames given to the sink.
    pub measured: u64,
    /// Frames not given to the sink, because it had failed.
    pub unmeasured: u64,
    /// Frames that the kernel has probably cut to the size of its ring: their length is the ring's limit.
    pub probably_cut: u64,
    /// Inline: frames received here and sent on the other side.
    pub forwarded: u64,
    /// Inline: frames received here and not sent on the other side, with the cause.
    pub forward_drops: ForwardDrops,
}

impl PortReport {
    /// Inline: frames that came here and did not leave on the other side: those that could not be sent, and those that were
    /// lost before the loop, as the ring was full or the like.
    pub fn not_forwarded(&self) -> u64 {
        self.forward_drops.total() + self.device.missed
    }
}

/// Why frames were not forwarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForwardDrops {
    /// The other side's queue stayed full for all attempts.
    pub queue_full: u64,
    /// Longer than the other side takes. When its MTU is lowered, at most one burst among them may have been sent before.
    pub too_long: u64,
    /// Taken by the other side's driver, which could not send them, or whose interface dropped them.
    pub send_errors: u64,
}

impl ForwardDrops {
    /// All causes together.
    pub fn total(&self) -> u64 {
        self.queue_full + self.too_long + self.send_errors
    }
}

/// The state of a loop, to be looked at from other threads.
#[derive(Debug, Default)]
pub struct Progress {
    reports: Mutex<Vec<PortReport>>,
    sink_failed: AtomicBool,
}

impl Progress {
    /// One report per port, at most a fraction of a second old while the loop runs and exact when it has ended.
    pub fn reports(&self) -> Vec<PortReport> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the sink panicked: measuring has ended, an inline loop goes on forwarding.
    pub fn sink_failed(&self) -> bool {
        self.sink_failed.load(Ordering::Relaxed)
    }
}

/// Attempts to hand a burst to a full send queue before the rest of it is dropped and counted. A device that does not
/// take frames must not make the other direction wait: an attempt is about a system call.
const SEND_ATTEMPTS: u32 = 16;

/// The wait after a round without frames. Polling without it takes a CPU from the ends of the
/// traffic where there are few; with it nothing is lost as rings hold far more than 50 µs of traffic.
const IDLE_WAIT: Duration = Duration::from_micros(50);

/// How often the reports are renewed.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// Receives from all ports until `stop` is set or `config.until` says so, each frame going to the sink.
///
/// # Errors
/// [`ErrorKind::Argument`] when the thread cannot be bound to the CPU or there is no port to receive from or more than 256;
/// [`ErrorKind::Device`] when an interface is gone; [`ErrorKind::Measuring`] when the sink panicked.
pub fn receive(
    ports: &mut [Port],
    config: &LoopConfig,
    sink: &mut impl FrameSink,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<()> {
    let ports: &[Port] = ports;
    let mut state = State::start(ports, config, sink, progress)?;
    let mut total = 0_u64;
    let mut last_frame = Instant::now();
    let mut burst = Burst::new();
    while !stop.load(Ordering::Relaxed) {
        let mut round = 0;
        for (number, port) in ports.iter().enumerate() {
            let count = port.rx_burst(&mut burst);
            if count == 0 {
                continue;
            }
            round += count as u64;
            state.count_received(number, &burst, port);
            state.measure(number, &burst, port, utc_now_ns());
        }
        total += round;
        if state.sink_failed {
            state.report(ports);
            return Err(Error::new(
                ErrorKind::Measuring,
                "the measuring code panicked and receiving has stopped; its message stands on the standard error output",
            ));
        }
        if config.until.frames.is_some_and(|frames| total >= frames) {
            break;
        }
        if round > 0 {
            last_frame = Instant::now();
        } else {
            if config.until.quiet.is_some_and(|quiet| last_frame.elapsed() >= quiet) {
                break;
            }
            state.idle();
        }
        state.report_when_due(ports)?;
    }
    burst.clear();
    state.report(ports);
    Ok(())
}

/// Forwards what `ports[0]` receives to `ports[1]` and the reverse until `stop` is set; the sink sees every
/// frame of both.
///
/// A burst is forwarded first and measured after: the frames are held by a second reference while the driver
/// sends them, so nothing is copied and measuring adds nothing to the delay of a frame that is being forwarded. A slow sink can make the
/// next burst wait in the device's ring (16,384 frames for a packet socket with an MTU of 1500), so a sink must not block:
/// what it produces goes to another thread through a bounded queue. A thread of its own for measuring is not used: with
/// fewer free CPUs than threads it falls behind and frames go unmeasured. A sink that panics is not called again and
/// forwarding goes on.
///
/// # Errors
/// [`ErrorKind::Argument`] when the thread cannot be bound to the CPU or a port replays a file; [`ErrorKind::Device`] when
/// an interface is gone.
pub fn inline(
    ports: &mut [Port; 2],
    config: &LoopConfig,
    sink: &mut impl FrameSink,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<()> {
    let ports: &[Port; 2] = ports;
    if let Some(replay) = ports.iter().find(|port| port.is_replay()) {
        return Err(Error::new(
            ErrorKind::Argument,
            format!(
                "{} is a file: nothing can be forwarded to it; inline takes two interfaces",
                replay.device()
            ),
        ));
    }
    let mut state = State::start(ports, config, sink, progress)?;
    let mut burst = Burst::new();
    while !stop.load(Ordering::Relaxed) {
        let mut any = false;
        for (number, port) in ports.iter().enumerate() {
            if port.rx_burst(&mut burst) == 0 {
                continue;
            }
            any = true;
            let now = utc_now_ns();
            let measured = burst.share();
            let outcome = forward(&mut burst, &measured, &ports[1 - number]);
            state.count_received(number, &measured, port);
            state.count_forwarded(number, &outcome);
            state.measure(number, &measured, port, now);
        }
        if !any {
            state.idle();
        }
        state.report_when_due(ports)?;
    }
    burst.clear();
    state.report(ports);
    Ok(())
}

/// What became of a burst, in frames.
struct Forwarded {
    accepted: u64,
    queue_full: u64,
    too_long: u64,
}

/// Sends all of a burst; what the port does not take is given back. `all`: the same frames, which stay.
fn forward(burst: &mut Burst<'_>, all: &Burst<'_>, out: &Port) -> Forwarded {
    if burst.iter().any(|frame| !out.takes(&frame)) {
        // It may take more by now; nothing was sent since it was asked.
        out.renew_limit();
    }
    let mut too_long = burst.retain(|frame| out.takes(frame));
    let offered = burst.len();
    for _ in 0..SEND_ATTEMPTS {
        if burst.is_empty() {
            break;
        }
        out.tx_burst(burst);
    }
    let queue_full = burst.len();
    burst.clear();
    let mut accepted = offered - queue_full;
    // Asked behind the sending, so that no frame can pass unseen between a look and a change.
    if out.renew_limit() {
        let now = all.iter().filter(|frame| !out.takes(frame)).count();
        let lost = now.saturating_sub(too_long).min(accepted);
        (accepted, too_long) = (accepted - lost, too_long + lost);
    }
    Forwarded {
        accepted: accepted as u64,
        queue_full: queue_full as u64,
        too_long: too_long as u64,
    }
}

/// What both loops keep.
struct State<'a, S> {
    sink: &'a mut S,
    progress: &'a Progress,
    reports: Vec<PortReport>,
    /// Frames of each port that the other side's driver took.
    accepted: Vec<u64>,
    /// What the devices had counted as send errors before the loop.
    send_errors_before: Vec<u64>,
    all_replay: bool,
    sink_failed: bool,
    scratch: Vec<u8>,
    next_report: Instant,
    _registered: Option<RegisteredThread>,
}

impl<'a, S: FrameSink> State<'a, S> {
    fn start(ports: &[Port], config: &LoopConfig, sink: &'a mut S, progress: &'a Progress) -> Result<Self> {
        let Some(first) = ports.first().filter(|_| ports.len() <= 256) else {
            return Err(Error::new(
                ErrorKind::Argument,
                format!("a loop runs on 1 to 256 ports, not on {}", ports.len()),
            ));
        };
        if let Some(cpu) = config.cpu {
            affinity::pin(cpu).map_err(|error| {
                Error::new(
                    ErrorKind::Argument,
                    format!("this thread cannot be bound to CPU {cpu} ({error}); `nproc` and `taskset -p $$` show which there are"),
                )
            })?;
        }
        progress.sink_failed.store(false, Ordering::Relaxed);
        Ok(Self {
            sink,
            progress,
            reports: vec![PortReport::default(); ports.len()],
            accepted: vec![0; ports.len()],
            send_errors_before: ports.iter().map(|port| port.stats().send_errors).collect(),
            all_replay: ports.iter().all(Port::is_replay),
            sink_failed: false,
            scratch: Vec::new(),
            next_report: Instant::now(),
            _registered: RegisteredThread::new(first.eal()),
        })
    }

    fn count_received(&mut self, number: usize, burst: &Burst<'_>, port: &Port) {
        let report = &mut self.reports[number];
        report.received += burst.len() as u64;
        for frame in burst.iter() {
            let length = frame.length();
            report.received_bytes += u64::from(length);
            report.probably_cut += u64::from(port.probably_cut(length));
        }
    }

    fn count_forwarded(&mut self, number: usize, outcome: &Forwarded) {
        self.accepted[number] += outcome.accepted;
        let drops = &mut self.reports[number].forward_drops;
        drops.queue_full += outcome.queue_full;
        drops.too_long += outcome.too_long;
    }

    /// Shows a burst to the sink. Frames without a stamp of their own get the time of the burst.
    fn measure(&mut self, number: usize, burst: &Burst<'_>, port: &Port, now: u64) {
        let report = &mut self.reports[number];
        if self.sink_failed {
            report.unmeasured += burst.len() as u64;
            return;
        }
        let (sink, scratch) = (&mut *self.sink, &mut self.scratch);
        let mut shown = 0;
        // The sink is not used again after a panic, so what it left half done is not seen.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for frame in burst.iter() {
                let time = frame.driver_time_ns().unwrap_or(now);
                let length = Some(frame.length()).filter(|length| !port.probably_cut(*length));
                sink.frame(number as u8, time, frame.contiguous(scratch), length);
                shown += 1;
            }
        }));
        report.measured += shown;
        report.unmeasured += burst.len() as u64 - shown;
        if outcome.is_err() {
            self.fail();
        }
    }

    fn idle(&mut self) {
        if !self.all_replay && !self.sink_failed {
            let sink = &mut *self.sink;
            if catch_unwind(AssertUnwindSafe(|| sink.idle(utc_now_ns()))).is_err() {
                self.fail();
            }
        }
        std::thread::sleep(IDLE_WAIT);
    }

    fn fail(&mut self) {
        self.sink_failed = true;
        self.progress.sink_failed.store(true, Ordering::Relaxed);
    }

    /// An error when an interface is gone: nothing comes from its port any more, also if one is made under its name.
    fn report_when_due(&mut self, ports: &[Port]) -> Result<()> {
        let now = Instant::now();
        if now < self.next_report {
            return Ok(());
        }
        self.next_report = now + REPORT_EVERY;
        let before: Vec<u64> = self.reports.iter().map(|report| report.device.missed).collect();
        self.report(ports);
        self.tell_lost(&before);
        let is_gone = |report: &PortReport| report.link == Some(LinkState::Gone);
        match self.reports.iter().position(is_gone) {
            None => Ok(()),
            Some(number) => Err(Error::new(
                ErrorKind::Device,
                format!(
                    "{}: the interface is gone (removed, or moved to another network namespace); start again when it is back",
                    ports[number].device()
                ),
            )),
        }
    }

    /// Tells the sink what devices have lost more than `before`.
    fn tell_lost(&mut self, before: &[u64]) {
        for (number, before) in before.iter().enumerate() {
            let missed = self.reports[number].device.missed;
            let sink = &mut *self.sink;
            let tell = AssertUnwindSafe(|| sink.lost(number as u8, missed));
            if missed > *before && !self.sink_failed && catch_unwind(tell).is_err() {
                self.fail();
            }
        }
    }

    fn report(&mut self, ports: &[Port]) {
        for (report, port) in self.reports.iter_mut().zip(ports) {
            report.device = port.stats();
            report.link = port.link();
        }
        // Drivers over sockets take frames and learn afterwards that the kernel did not.
        for (number, accepted) in self
            .accepted
            .iter()
            .copied()
            .enumerate()
            .filter(|&(_, accepted)| accepted > 0)
        {
            let other = 1 - number;
            let errors = self.reports[other]
                .device
                .send_errors
                .saturating_sub(self.send_errors_before[other]);
            let report = &mut self.reports[number];
            report.forward_drops.send_errors = errors.min(accepted);
            report.forwarded = accepted - report.forward_drops.send_errors;
        }
        let mut shown = self.progress.reports.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone_from(&self.reports);
    }
}

/// The time, in UTC nanoseconds since 1970.
fn utc_now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
