//! `weir serve`: the daemon. One thread measures and appends records to the log, one analyses what
//! is in the log, gRPC serves both.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_analysis::{Analyzer, Config, DataBlock, Ends, Opened, Sink, Verdict};
use weir_api::access::Access;
use weir_api::facts::{FactStore, Limits};
use weir_api::log::{self, LogError, Read, RecordLog, Recovery};
use weir_api::server::{Services, serve_on};
use weir_api::state::{ApplianceState, CaptureState, PortCounters};
use weir_capture::intake::LinkCounters;
use weir_command::Failure;
use weir_dpdk::{LinkState, PortReport, Progress as Measuring};
use weir_messages::Timestamp;
use weir_messages::v1::{Connection, Event, Finding, FindingChange, RecordLinkStatus, Segment, Severity, Transaction};
use weir_ops::analysis::AnalysisCounters;
use weir_ops::endpoint;
use weir_ops::metrics::{Metrics, Sources};
use weir_ops::store::StoreCounters;
use weir_ops::webhook::{Roots, Webhook, WebhookCounters};
use weir_page::{Captures, Live, Progress, Recent};
use weir_patterns::changes::Changes;
use weir_patterns::{WINDOW, Watched};
use weir_record::frame::Refusal;
use weir_record::raw::BYTES;
use weir_record::{FlowId, Record};
use weir_store::tables::Table;

use crate::card::{self, Told};
use crate::cli::{PathOptions, ServeArgs};
use crate::clock::{ClockWatch, Step};
use crate::format::count;
use crate::keep::{self, Rows};
use crate::measure::{Measured, Source, stop_at_signal};
use crate::open::OpenConnections;
use crate::queue::{Change, Queue};
use crate::renewal::Renewal;
use crate::{access, analyst, say, text, view};

/// Records that the analysis takes from the log at a time.
const READ: usize = 8192;
/// How often findings, summary and open connections are renewed, and how many times as long as it took the next waits.
const RENEW: Duration = Duration::from_millis(500);
const RENEW_SHARE: u32 = 20;
/// How often it is looked what the measuring loop tells of itself.
const WATCH: Duration = Duration::from_millis(200);
/// How often it is looked whether the store works, and who may call.
const LOOK: Duration = Duration::from_secs(1);
/// How long the log of an inline path has taken all records when it is said to work again.
const SETTLED: Duration = Duration::from_secs(5);
/// Silence on a stream before a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The daemon is to end: a card is stopped first.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Measuring is to end.
static STOP: AtomicBool = AtomicBool::new(false);

/// Run the daemon.
pub fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    say::without_waiting()?;
    let access = access::of(&args.access)?;
    let roots = match &args.webhook_ca {
        Some(path) => Roots::read(path).map_err(Failure::new)?,
        None => Roots::default(),
    };
    let config = log::Config {
        directory: args.data.clone(),
        limit_bytes: args.log_mib << 20,
    };
    // A link is forwarded also when nothing can be kept of it.
    let is_inline = args.ports.inline.is_some();
    let mut troubles = Vec::new();
    let log = match RecordLog::open(config.clone()) {
        Ok(log) => log,
        Err(error) if is_inline && !matches!(error, LogError::Locked(_)) => {
            let log = RecordLog::without_files(config, &error);
            troubles.push((
                "log",
                "LOG_FAILS",
                format!(
                    "{error}; frames are forwarded, all records are lost until the daemon is started again, and counted"
                ),
            ));
            log
        }
        Err(error) => return Err(Failure::new(error)),
    };
    let log = Arc::new(log);
    let mut start = Start(Some(&log));
    let Recovery {
        cut_bytes,
        damaged,
        given_up,
    } = log.recovery();
    if *cut_bytes > 0 || !damaged.is_empty() {
        say::line(format_args!(
            "weir: record log: {cut_bytes} bytes of a torn end were cut, {} damaged files were set aside",
            damaged.len()
        ));
    }
    if *given_up > 0 {
        say::line(format_args!(
            "weir: record log: the disk is full: its {} oldest records were given up",
            count(*given_up)
        ));
    }
    if let Some(folder) = &args.store
        && let Err(failure) = keep::epoch(folder, &args.tap, log.epoch()).and_then(|epoch| begin_epoch(&log, epoch))
    {
        // Where the store is opened it is asked again: until then nothing is stored.
        if !is_inline {
            return Err(failure);
        }
    }
    let mut source = Source::open(&args.ports, log.epoch())?;
    let (title, devices) = (source.title(), source.devices());
    let capture = Arc::new(CaptureState::default());
    let counters: Vec<_> = source
        .names()
        .into_iter()
        .enumerate()
        .map(|(number, (name, drops_known))| capture.add_port(number as u32, name, drops_known))
        .collect();
    let facts = Arc::new(FactStore::new(Limits {
        connections: args.keep,
        transactions: 4 * args.keep,
        ..Limits::default()
    }));
    let appliance = Arc::new(ApplianceState::new(now()));
    let damaged = source.take_damaged();
    for error in &damaged {
        tell(
            &appliance,
            Severity::Warning,
            "port",
            "CAPTURE_DAMAGED",
            error.to_string(),
        );
    }
    for text in source.joining() {
        tell(&appliance, Severity::Warning, "port", "RECEIVE_OFFLOAD", text);
    }
    for (source, name, text) in troubles {
        tell(&appliance, Severity::Error, source, name, text);
    }
    let stamps_by_clock = source.stamps_by_clock();
    let mut keeper = card::keeper(&args.ports, &source.pulse(), told(&log, &appliance))?;

    let tables = || Table::ALL.iter().map(|table| table.name());
    let stored = args.store.as_ref().map(|_| Arc::new(StoreCounters::of(tables())));
    let (rows, keeper_of_rows) = match args.store.as_ref().zip(stored.as_ref()) {
        None => (None, None),
        Some((folder, stored)) => {
            let options = args.retention.options();
            let (rows, keeper) = {
                let log = Arc::clone(&log);
                let epoch = move || log.epoch();
                keep::open(folder.clone(), &args.tap, options, Arc::clone(stored), epoch, is_inline)?
            };
            (Some(rows), Some(keeper))
        }
    };

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let listener = runtime.block_on(listen(args.listen, "--listen"))?;
    let address = listener.local_addr().map_err(Failure::new)?;
    let (counted, webhook) = (
        Arc::new(AnalysisCounters::default()),
        Arc::new(WebhookCounters::default()),
    );
    let scheme = access::scheme(&access);
    // What nobody forwards for is given up.
    let optional = |failure: Failure| match is_inline {
        true => {
            tell(
                &appliance,
                Severity::Error,
                "daemon",
                "LISTEN_FAILS",
                failure.to_string(),
            );
            Ok(())
        }
        false => Err(failure),
    };
    if let Some(address) = args.metrics {
        match runtime.block_on(listen(address, "--metrics")) {
            Ok(listener) => {
                let address = listener.local_addr().map_err(Failure::new)?;
                let metrics = Metrics::new(Sources {
                    log: Arc::clone(&log),
                    facts: Arc::clone(&facts) as Arc<_>,
                    capture: Arc::clone(&capture),
                    appliance: Arc::clone(&appliance),
                    analysis: Arc::clone(&counted),
                    store: stored.clone(),
                    webhook: Arc::clone(&webhook),
                });
                say::line(format_args!("weir: metrics on {scheme}://{address}/metrics"));
                runtime.spawn(endpoint::serve(listener, metrics, access.clone()));
            }
            Err(failure) => optional(failure)?,
        }
    }
    let addresses = [Some(address), args.metrics, args.page];
    if let Some(line) = access::open_to(addresses.iter().flatten().map(SocketAddr::ip), &access) {
        say::line(format_args!("weir: {line}"));
    }
    let services = Services {
        log: Arc::clone(&log),
        facts: Arc::clone(&facts) as Arc<_>,
        analyst: Some(Arc::new(analyst::Reader(args.ports.flow))),
        capture: Arc::clone(&capture),
        appliance: Arc::clone(&appliance),
        access: access.clone(),
        heartbeat: HEARTBEAT,
    };

    let recent = match args.page {
        None => None,
        Some(address) => {
            let recent = Arc::new(Mutex::new(Recent::new(weir_page::Limits::live(), args.ports.digests)));
            let live = Live {
                name: title,
                facts: Arc::clone(&facts) as Arc<_>,
                recent: Arc::clone(&recent),
            };
            match show(&runtime, address, live, args, access) {
                Ok(address) => {
                    say::line(format_args!("weir: page on {scheme}://{address}"));
                    Some(recent)
                }
                Err(failure) => {
                    optional(failure)?;
                    None
                }
            }
        }
    };

    runtime.spawn(look_around(
        Renewal::new(&args.access, &services.access),
        stored,
        Arc::clone(&appliance),
    ));
    stop_at_signal(&ASKED)?;
    // What fails in a thread ends the daemon with its reason.
    let failure = Mutex::new(None);
    let fail = &|error: Failure| {
        failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        ASKED.store(true, Ordering::Relaxed);
    };
    let begin = log.next_position();
    start.0 = None;
    let (measured, analyzed) = (AtomicBool::new(false), AtomicBool::new(false));
    let shown = Shown {
        log: &log,
        capture: &capture,
        counters: &counters,
        appliance: &appliance,
        progress: &Measuring::default(),
        is_inline,
        stamps_by_clock,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            end_with("measuring", fail, || measure(source, &shown, fail));
            measured.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            end_with("the watch of the ports", fail, || {
                watch(&shown, &devices, &measured);
                Ok(())
            });
        });
        let kept = keeper.as_mut().map(|keeper| {
            scope.spawn(|| {
                end_with("keeping the card", fail, || card::keep(keeper, &ASKED, &STOP));
                STOP.store(true, Ordering::Relaxed);
            })
        });
        if let Some(keeper) = keeper_of_rows {
            scope.spawn(|| {
                end_with("storing", fail, || {
                    keeper.run();
                    Ok(())
                });
            });
        }
        scope.spawn(|| {
            let batch = Batch {
                recent,
                rows,
                ..Batch::default()
            };
            end_with("the analysis", fail, || {
                analyze(&shown, begin, &facts, &counted, batch, &measured)
            });
            analyzed.store(true, Ordering::Release);
        });
        if let Some(url) = &args.webhook {
            let hook = Webhook::new(url, roots, &webhook);
            // It goes on with what a replayed file has shown until the daemon ends.
            let analyzed = &analyzed;
            let is_over = move || analyzed.load(Ordering::Acquire) && STOP.load(Ordering::Acquire);
            let facts = &*facts;
            scope.spawn(move || {
                end_with("the webhook", fail, || {
                    hook.run(facts, is_over, |text| say::line(format_args!("weir: {text}")));
                    Ok(())
                });
            });
        }
        let stopped = async {
            while !ASKED.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        say::line(format_args!(
            "weir: gRPC on {}, records in {}",
            address,
            args.data.display()
        ));
        if let Err(error) = runtime.block_on(serve_on(listener, services, stopped)) {
            fail(Failure::new(error));
        }
        ASKED.store(true, Ordering::Relaxed);
        // What keeps a card sets it once the card has stopped.
        if kept.is_none() {
            STOP.store(true, Ordering::Relaxed);
        }
    });
    // Connections that are still open, and what is being read for the page, are not waited for.
    runtime.shutdown_background();
    log.sync().map_err(Failure::new)?;
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None if !damaged.is_empty() => Ok(ExitCode::from(2)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// A start. One that fails gives its epoch back: what starts a daemon again and again until a port is there, or an address
/// is free, would use all of them up in hours.
struct Start<'a>(Option<&'a RecordLog>);

impl Drop for Start<'_> {
    fn drop(&mut self) {
        if let Some(log) = self.0 {
            // If not, it is one of 65,535; why the start failed is what is to be told.
            let _ = log.give_back_epoch();
        }
    }
}

/// Now and then: the files that say who may call, and whether the store works.
async fn look_around(mut renewal: Option<Renewal>, stored: Option<Arc<StoreCounters>>, appliance: Arc<ApplianceState>) {
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(stored) = &stored {
            appliance.troubles.store.store(stored.fails(), Ordering::Relaxed);
        }
        for outcome in renewal.iter_mut().flat_map(Renewal::look) {
            match outcome {
                Ok(text) => tell(&appliance, Severity::Info, "daemon", "ACCESS_RENEWED", text),
                Err(error) => {
                    let text = format!("{error}; what was used before is used on");
                    tell(&appliance, Severity::Error, "daemon", "ACCESS_FAILS", text);
                }
            }
        }
    }
}

/// The boot epoch of a daemon that stores what it finds.
fn begin_epoch(log: &RecordLog, epoch: u16) -> Result<(), Failure> {
    match epoch == log.epoch() {
        true => Ok(()),
        false => log.begin_epoch_at(epoch).map_err(Failure::new),
    }
}

/// Do a thread's work. What fails in it, a panic, too, goes to `fail`: a daemon without that thread only seems to work.
fn end_with(name: &str, fail: &impl Fn(Failure), work: impl FnOnce() -> Result<(), Failure>) {
    // What a panic leaves half done is not used again: the daemon ends.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => fail(error),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("no reason was given");
            fail(Failure::new(format_args!("{name} failed: {text}")));
        }
    }
}

/// A socket that listens.
pub async fn listen(address: SocketAddr, option: &str) -> Result<tokio::net::TcpListener, Failure> {
    tokio::net::TcpListener::bind(address).await.map_err(|error| {
        let guess = match error.kind() {
            ErrorKind::AddrInUse => "is another one running? ",
            _ => "",
        };
        Failure::new(format_args!(
            "cannot listen on {address}: {error}; {guess}{option} sets another address"
        ))
    })
}

/// The analyst's page, as long as the daemon runs; its address.
fn show(
    runtime: &tokio::runtime::Runtime,
    address: SocketAddr,
    live: Live,
    args: &ServeArgs,
    access: Access,
) -> Result<SocketAddr, Failure> {
    let flow = args.ports.flow;
    let reader =
        move |paths: &[PathBuf], progress: &Progress| view::read(paths, PathOptions::default(), flow, progress);
    let captures = Arc::new(Captures::new(Arc::new(reader)));
    captures.watch(live).map_err(Failure::new)?;
    let listener = runtime.block_on(listen(address, "--page"))?;
    let address = listener.local_addr().map_err(Failure::new)?;
    let site = view::site(&args.page_options, access);
    runtime.spawn(weir_page::serve(listener, captures, site, std::future::pending()));
    Ok(address)
}

/// The card's keeper tells these.
fn told(log: &Arc<RecordLog>, appliance: &Arc<ApplianceState>) -> Told {
    let (log, events, status) = (Arc::clone(log), Arc::clone(appliance), Arc::clone(appliance));
    let mut first = true;
    Told {
        epoch: Box::new(move || {
            // That of the opening is new.
            if std::mem::take(&mut first) {
                return Ok(log.epoch());
            }
            log.begin_epoch().map_err(|error| error.to_string())
        }),
        event: Box::new(move |event| events.events.add(event)),
        status: Box::new(move |card| status.set_card(card)),
    }
}

/// Where the measuring loop shows what it measures.
struct Shown<'a> {
    log: &'a RecordLog,
    capture: &'a CaptureState,
    counters: &'a [Arc<PortCounters>],
    appliance: &'a ApplianceState,
    progress: &'a Measuring,
    is_inline: bool,
    stamps_by_clock: bool,
}

/// Frames to records in the log, until the sources end or the daemon stops. The network does not wait for the log; an inline
/// path does not end with it, either.
fn measure(source: Source, shown: &Shown<'_>, fail: &(impl Fn(Failure) + Sync)) -> Result<(), Failure> {
    let Shown {
        log,
        capture,
        counters,
        appliance,
        progress,
        is_inline,
        ..
    } = *shown;
    let waits = source.waits();
    let queue = Queue::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            end_with("writing the record log", fail, || {
                queue.write(log, SETTLED, |change| match change {
                    Change::Fails(error) if is_inline => {
                        let text = format!(
                            "{error}; frames are forwarded, records are lost until that is mended, and counted"
                        );
                        tell(appliance, Severity::Error, "log", "LOG_FAILS", text);
                    }
                    Change::Fails(error) => fail(Failure::new(error)),
                    Change::Works => {
                        let text = "the record log is written again".to_owned();
                        tell(appliance, Severity::Info, "log", "LOG_WORKS", text);
                    }
                });
                Ok(())
            });
        });
        let _closing = queue.closing();
        source.run(&STOP, progress, |records: &[Record], measured: &Measured<'_>| {
            if let Some(lane) = measured.begins_anew() {
                queue.settle();
                log.restart_lane(lane);
            }
            if !records.is_empty() {
                let taken = if waits || measured.ended() {
                    queue.add(records)
                } else {
                    queue.offer(records)
                };
                if !taken {
                    log.count_lost(records.len());
                }
            }
            publish(measured, counters);
            appliance.flows_in_table.store(measured.flows(), Ordering::Relaxed);
            if let Some(link) = measured.link() {
                capture.set_link(link_status(link));
            }
        })
    })
}

/// What the measuring loop tells of itself: the counters of the inline path, links that go down and come back, measuring
/// that has failed while an inline path goes on.
fn watch(shown: &Shown<'_>, devices: &[String], measured: &AtomicBool) {
    let Shown {
        capture,
        counters,
        appliance,
        progress,
        is_inline,
        stamps_by_clock,
        ..
    } = *shown;
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
        if is_inline {
            renew(&capture.forward_drops, PortReport::not_forwarded);
        }
        renew(&capture.unmeasured, |report| report.unmeasured);
        for (number, (report, device)) in reports.iter().zip(devices).enumerate() {
            // All wires of a card come through one port.
            let wires = match devices {
                [_] => counters,
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

/// An event, and a line in the daemon's log.
fn tell(appliance: &ApplianceState, severity: Severity, source: &str, name: &str, text: String) {
    say::line(format_args!("weir: {text}"));
    appliance.events.add(Event {
        time: Some(now()),
        severity: severity.into(),
        source: source.to_owned(),
        name: name.to_owned(),
        text,
        ..Event::default()
    });
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::from_unix_nanos(since.map_or(0, |since| since.as_nanos() as i64))
}

fn link_status(link: &LinkCounters) -> RecordLinkStatus {
    let refused = Refusal::ALL
        .iter()
        .map(|&reason| (reason.name().to_owned(), link.refused(reason)));
    RecordLinkStatus {
        frames: link.frames,
        records: link.records,
        lost_frames: link.lost_frames,
        lost_records: link.lost_records,
        restarts: link.restarts,
        refused: refused.collect(),
    }
}

fn publish(measured: &Measured<'_>, counters: &[Arc<PortCounters>]) {
    for counter in counters {
        let port = measured.port(counter.port as u8);
        counter.frames.store(port.frames, Ordering::Relaxed);
        counter.bytes.store(port.bytes, Ordering::Relaxed);
        counter.tracked.store(port.tracked, Ordering::Relaxed);
        counter.clamped.store(port.clamped.into(), Ordering::Relaxed);
        counter.dropped.store(port.dropped.into(), Ordering::Relaxed);
        for (cell, &value) in counter.untracked.iter().zip(&port.untracked) {
            cell.store(value.into(), Ordering::Relaxed);
        }
    }
}

/// Facts on their way into the store.
#[derive(Default)]
struct Batch {
    /// And on their way into the files.
    rows: Option<Rows>,
    connections: Vec<Connection>,
    open: OpenConnections,
    transactions: Vec<Transaction>,
    segments: Vec<Segment>,
    findings: Vec<Finding>,
    /// For the page, if there is one: what messages do not carry.
    recent: Option<Arc<Mutex<Recent>>>,
    verdicts: Vec<Verdict>,
    blocks: Vec<DataBlock>,
}

impl Batch {
    /// Hand the page what came since the last time, with the records that it came from.
    fn tell_page(&mut self, records: &[Record]) {
        let Some(recent) = &self.recent else { return };
        let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.records(records);
        self.verdicts.drain(..).for_each(|verdict| recent.verdict(&verdict));
        self.blocks.drain(..).for_each(|block| recent.block(&block));
    }

    /// Tell the page what time it is (TAI ns), and of requests that wait.
    fn tell_now(&self, now: u64, waiting: Vec<(FlowId, u64)>) {
        let Some(recent) = &self.recent else { return };
        recent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .set_now(now, waiting);
    }
}

impl Sink for Batch {
    fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
        self.connections.push(connection.message());
        if let Some(rows) = &mut self.rows {
            rows.tables.connection(connection);
        }
    }

    fn transaction(&mut self, transaction: &weir_analysis::Transaction<'_>) {
        self.transactions.push(transaction.message());
        if let Some(rows) = &mut self.rows {
            rows.tables.transaction(transaction);
        }
    }

    fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        self.segments.push(verdict.message());
        if self.recent.is_some() {
            self.verdicts.push(*verdict);
        }
        if let Some(rows) = &mut self.rows {
            rows.tables.segment(verdict, ends);
        }
    }

    fn opened(&mut self, opened: &Opened) {
        self.open.opened(opened.id);
    }

    fn block(&mut self, block: &DataBlock) {
        if self.recent.is_some() {
            self.blocks.push(*block);
        }
        if let Some(rows) = &mut self.rows {
            rows.tables.block(block);
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

/// A line in the daemon's log.
fn alert(change: &FindingChange) {
    say::line(format_args!("weir: {}", text::findings::change(change)));
}

/// Records of the log from `position` on to facts in the store.
fn analyze(
    shown: &Shown<'_>,
    mut position: u64,
    facts: &FactStore,
    counted: &AnalysisCounters,
    batch: Batch,
    measured: &AtomicBool,
) -> Result<(), Failure> {
    let Shown {
        log,
        capture,
        appliance,
        is_inline,
        ..
    } = *shown;
    let mut analyzer = Analyzer::new(Config {
        window: Some(WINDOW),
        inline: is_inline,
        ..Config::default()
    });
    let mut batch = Watched::live(batch, WINDOW);
    let mut changes = Changes::behind(appliance.numbers_before());
    let mut now = 0;
    let mut bytes = Vec::new();
    let mut records = Vec::with_capacity(READ);
    let mut renewed = std::time::Instant::now();
    // When records told the time last.
    let mut told = renewed;
    let mut pause = RENEW;
    loop {
        // Asked before reading: what was measured before is then in the log.
        let last = measured.load(Ordering::Acquire);
        bytes.clear();
        let read = log.read(position, READ, &mut bytes).map_err(Failure::new)?;
        let at_end = match read {
            Read::Records(count) => {
                position += count;
                false
            }
            // The analysis was too slow for the log; the records' numbers show it the gap.
            Read::Reclaimed { to } => {
                counted.reclaimed(to + 1 - position);
                position = to + 1;
                false
            }
            Read::End => true,
        };
        records.clear();
        records.extend(
            bytes
                .chunks_exact(BYTES)
                .filter_map(|record| Record::from_slice(record).ok()),
        );
        if let Some(newest) = records.last() {
            now = newest.time();
            told = std::time::Instant::now();
            batch.time(now);
        }
        if let Some(rows) = &mut batch.inner.rows {
            rows.records(&records);
        }
        analyzer.push(&records, &mut batch);
        counted.add(
            &batch.inner.connections,
            &batch.inner.transactions,
            &batch.inner.segments,
        );
        facts.update_connections(batch.inner.connections.drain(..));
        facts.update_transactions(batch.inner.transactions.drain(..));
        facts.add_segments(batch.inner.segments.drain(..));
        batch.inner.tell_page(&records);
        if at_end && last || renewed.elapsed() >= pause {
            let begin = std::time::Instant::now();
            // Where nothing passes there are no records, and time goes on; not behind the end of a file.
            if at_end && !last && now > 0 {
                let now = now + told.elapsed().as_nanos() as u64;
                batch.time(now);
                analyzer.set_now(now);
            }
            let mut summary = analyzer.interim(&mut batch);
            batch.complete();
            batch.summarize(&mut summary);
            let findings = std::mem::take(&mut batch.inner.findings);
            let changed = changes.renew(analyzer.now(), &findings);
            changed.iter().for_each(alert);
            if let Some(rows) = &mut batch.inner.rows {
                changed.iter().for_each(|change| rows.change(change));
            }
            facts.change_findings(changed);
            facts.set_findings(findings);
            let waiting: Vec<_> = analyzer.waiting().collect();
            counted.renew(analyzer.health(), summary.retransmission_rate.as_ref(), waiting.len());
            // Of its own: minutes of slices are larger than all the rest.
            facts.set_timeline(std::mem::take(&mut summary.timeline));
            facts.set_summary(summary);
            batch.inner.open.show(&analyzer, facts);
            batch.inner.tell_now(analyzer.now(), waiting);
            renewed = std::time::Instant::now();
            pause = RENEW.max((renewed - begin) * RENEW_SHARE);
        }
        if let Some(rows) = &mut batch.inner.rows {
            if at_end && last {
                rows.finish(&mut analyzer)?;
            } else {
                rows.hand_on()?;
            }
        }
        if at_end {
            if last {
                capture.finished.store(true, Ordering::Release);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_panic_in_a_thread_is_a_failure_with_its_text() {
        let told = Mutex::new(Vec::new());
        let fail = |error: Failure| {
            told.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(error.to_string());
        };
        let number = 7;
        end_with("a", &fail, || Ok(()));
        end_with("b", &fail, || Err(Failure::new("no room")));
        end_with("c", &fail, || panic!("plain"));
        end_with("d", &fail, || panic!("number {number}"));
        let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(told, ["no room", "c failed: plain", "d failed: number 7"]);
    }
}
