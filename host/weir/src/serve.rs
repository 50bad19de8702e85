//! `weir serve`: the daemon. One thread measures and appends records to the log, one analyses what
//! is in the log, gRPC serves both.

mod analysis;
mod batch;
mod clock;
mod events;
mod measuring;
mod open;
mod queue;
mod renewal;
mod watch;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use weir_api::access::Access;
use weir_api::facts::{FactStore, Limits};
use weir_api::log::{self, LogError, RecordLog, Recovery};
use weir_api::server::{Services, serve_on};
use weir_api::state::{ApplianceState, CaptureState};
use weir_command::Failure;
use weir_messages::v1::Severity;
use weir_ops::analysis::AnalysisCounters;
use weir_ops::endpoint;
use weir_ops::metrics::{Metrics, Sources};
use weir_ops::store::StoreCounters;
use weir_ops::webhook::{Roots, Webhook, WebhookCounters};
use weir_page::{Captures, Live, Progress, Recent};
use weir_store::tables::Table;

use self::batch::Batch;
use self::events::{now, tell};
use self::measuring::Ports;
use self::renewal::Renewal;
use crate::card::{self, Control, Told};
use crate::cli::{PathOptions, ServeArgs};
use crate::format::count;
use crate::keep::{self, Rows};
use crate::measure::{Source, stop_at_signal};
use crate::{access, analyst, say, view};

/// How often it is looked whether the store works, and who may call.
const LOOK: Duration = Duration::from_secs(1);
/// Silence on a stream before a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The daemon is to end: a card is stopped first.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Measuring is to end.
static STOP: AtomicBool = AtomicBool::new(false);

/// What the parts of the daemon share.
struct Shared {
    log: Arc<RecordLog>,
    facts: Arc<FactStore>,
    capture: Arc<CaptureState>,
    appliance: Arc<ApplianceState>,
    analysis: Arc<AnalysisCounters>,
    store: Option<Arc<StoreCounters>>,
    webhook: Arc<WebhookCounters>,
    is_inline: bool,
}

impl Shared {
    fn new(args: &ServeArgs, log: Arc<RecordLog>) -> Self {
        let facts = FactStore::new(Limits {
            connections: args.keep,
            transactions: 4 * args.keep,
            ..Limits::default()
        });
        let tables = || Table::ALL.iter().map(|table| table.name());
        Self {
            log,
            facts: Arc::new(facts),
            capture: Arc::default(),
            appliance: Arc::new(ApplianceState::new(now())),
            analysis: Arc::default(),
            store: args.store.as_ref().map(|_| Arc::new(StoreCounters::of(tables()))),
            webhook: Arc::default(),
            is_inline: args.ports.inline.is_some(),
        }
    }

    /// What the metrics are made of.
    fn sources(&self) -> Sources {
        Sources {
            log: Arc::clone(&self.log),
            facts: Arc::clone(&self.facts) as Arc<_>,
            capture: Arc::clone(&self.capture),
            appliance: Arc::clone(&self.appliance),
            analysis: Arc::clone(&self.analysis),
            store: self.store.clone(),
            webhook: Arc::clone(&self.webhook),
        }
    }

    /// What gRPC serves.
    fn services(&self, args: &ServeArgs, access: Access) -> Services {
        Services {
            log: Arc::clone(&self.log),
            facts: Arc::clone(&self.facts) as Arc<_>,
            analyst: Some(Arc::new(analyst::Reader(args.ports.flow))),
            capture: Arc::clone(&self.capture),
            appliance: Arc::clone(&self.appliance),
            access,
            heartbeat: HEARTBEAT,
        }
    }

    /// Inline, what nobody forwards for is given up, and that is told.
    fn optional<T>(&self, done: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match done {
            Err(failure) if self.is_inline => {
                let text = failure.to_string();
                tell(&self.appliance, Severity::Error, "daemon", "LISTEN_FAILS", text);
                Ok(None)
            }
            done => done.map(Some),
        }
    }
}

/// Run the daemon.
pub fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    say::without_waiting()?;
    let access = access::of(&args.access)?;
    let roots = match &args.webhook_ca {
        Some(path) => Roots::read(path).map_err(Failure::new)?,
        None => Roots::default(),
    };
    let (log, log_fails) = open_log(args)?;
    let mut start = Start(Some(&log));
    tell_recovery(log.recovery());
    begin_epoch(args, &log)?;
    let mut source = Source::open(&args.ports, log.epoch())?;
    let title = source.title();
    let shared = Shared::new(args, Arc::clone(&log));
    let ports = Ports::of(&source, &shared.capture);
    let damaged = source.take_damaged();
    let warn = |source, name, text| tell(&shared.appliance, Severity::Warning, source, name, text);
    for error in &damaged {
        warn("port", "CAPTURE_DAMAGED", error.to_string());
    }
    for text in source.joining() {
        warn("port", "RECEIVE_OFFLOAD", text);
    }
    if let Some(text) = log_fails {
        tell(&shared.appliance, Severity::Error, "log", "LOG_FAILS", text);
    }
    let card = card::keeper(&args.ports, &source.pulse(), told(&shared))?;
    let (rows, storing) = open_store(args, &shared)?.unzip();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let (listener, address) = bind(&runtime, args.listen, "--listen")?;
    let scheme = access::scheme(&access);
    if let Some(address) = args.metrics
        && let Some((listener, address)) = shared.optional(bind(&runtime, address, "--metrics"))?
    {
        say::line(format_args!("weir: metrics on {scheme}://{address}/metrics"));
        runtime.spawn(endpoint::serve(
            listener,
            Metrics::new(shared.sources()),
            access.clone(),
        ));
    }
    let addresses = [Some(address), args.metrics, args.page];
    if let Some(line) = access::open_to(addresses.iter().flatten().map(SocketAddr::ip), &access) {
        say::line(format_args!("weir: {line}"));
    }
    let services = shared.services(args, access.clone());
    let mut recent = None;
    if let Some(address) = args.page
        && let Some((address, shown)) = shared.optional(show(&runtime, address, title, args, &shared, access))?
    {
        say::line(format_args!("weir: page on {scheme}://{address}"));
        recent = Some(shown);
    }
    runtime.spawn(look_around(
        Renewal::new(&args.access, &services.access),
        shared.store.clone(),
        Arc::clone(&shared.appliance),
    ));
    stop_at_signal(&ASKED)?;
    let begin = log.next_position();
    start.0 = None;
    let hook = args
        .webhook
        .as_ref()
        .map(|url| Webhook::new(url, roots, &shared.webhook));
    let threads = Threads {
        source,
        ports,
        card,
        storing,
        batch: Batch::new(rows, recent),
        hook,
    };
    let failure = threads.run(&shared, begin, || {
        say::line(format_args!(
            "weir: gRPC on {address}, records in {}",
            args.data.display()
        ));
        let stopped = async {
            while !ASKED.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let served = runtime.block_on(serve_on(listener, services, stopped));
        served.map_err(Failure::new)
    });
    // Connections that are still open, and what is being read for the page, are not waited for.
    runtime.shutdown_background();
    log.sync().map_err(Failure::new)?;
    match failure {
        Some(error) => Err(error),
        None if !damaged.is_empty() => Ok(ExitCode::from(2)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The record log; and what is to be told when nothing can be kept of a link, which is forwarded also then.
fn open_log(args: &ServeArgs) -> Result<(Arc<RecordLog>, Option<String>), Failure> {
    let config = log::Config {
        directory: args.data.clone(),
        limit_bytes: args.log_mib << 20,
    };
    match RecordLog::open(config.clone()) {
        Ok(log) => Ok((Arc::new(log), None)),
        Err(error) if args.ports.inline.is_some() && !matches!(error, LogError::Locked(_)) => {
            let log = RecordLog::without_files(config, &error);
            let text = format!(
                "{error}; frames are forwarded, all records are lost until the daemon is started again, and counted"
            );
            Ok((Arc::new(log), Some(text)))
        }
        Err(error) => Err(Failure::new(error)),
    }
}

/// What opening the log has cost.
fn tell_recovery(recovery: &Recovery) {
    let Recovery {
        cut_bytes,
        damaged,
        given_up,
    } = recovery;
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
}

/// The boot epoch of a daemon that stores what it finds is one that its store does not have.
fn begin_epoch(args: &ServeArgs, log: &RecordLog) -> Result<(), Failure> {
    let Some(folder) = &args.store else { return Ok(()) };
    let begun = keep::epoch(folder, &args.tap, log.epoch()).and_then(|epoch| match epoch == log.epoch() {
        true => Ok(()),
        false => log.begin_epoch_at(epoch).map_err(Failure::new),
    });
    match begun {
        // Where the store is opened it is asked again: until then nothing is stored.
        Err(_) if args.ports.inline.is_some() => Ok(()),
        begun => begun,
    }
}

/// The store, if there is to be one.
fn open_store(args: &ServeArgs, shared: &Shared) -> Result<Option<(Rows, keep::Keeper)>, Failure> {
    let Some((folder, counters)) = args.store.as_ref().zip(shared.store.as_ref()) else {
        return Ok(None);
    };
    let log = Arc::clone(&shared.log);
    let opened = keep::open(
        folder.clone(),
        &args.tap,
        args.retention.options(),
        Arc::clone(counters),
        move || log.epoch(),
        shared.is_inline,
    );
    opened.map(Some)
}

/// What each thread works on.
struct Threads<'a> {
    source: Source,
    ports: Ports,
    card: Option<weir_card::Keeper<Control>>,
    storing: Option<keep::Keeper>,
    batch: Batch,
    hook: Option<Webhook<'a>>,
}

impl Threads<'_> {
    /// All of them, and `serve` in this one, until the daemon is asked to end or one of them fails: then that is returned. `begin`:
    /// where what is analysed begins in the log.
    fn run(self, shared: &Shared, begin: u64, serve: impl FnOnce() -> Result<(), Failure>) -> Option<Failure> {
        let Self {
            source,
            ports,
            mut card,
            storing,
            batch,
            hook,
        } = self;
        let failure = Mutex::new(None);
        let fail = &|error: Failure| {
            failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
            ASKED.store(true, Ordering::Relaxed);
        };
        let (ports, measured, analyzed) = (&ports, &AtomicBool::new(false), &AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                end_with("measuring", fail, || measuring::measure(source, shared, ports, fail));
                measured.store(true, Ordering::Release);
            });
            scope.spawn(move || {
                end_with("the watch of the ports", fail, || {
                    watch::watch(shared, ports, measured);
                    Ok(())
                });
            });
            let kept = card.as_mut().map(|card| {
                scope.spawn(|| {
                    end_with("keeping the card", fail, || card::keep(card, &ASKED, &STOP));
                    STOP.store(true, Ordering::Relaxed);
                })
            });
            if let Some(storing) = storing {
                scope.spawn(move || {
                    end_with("storing", fail, || {
                        storing.run();
                        Ok(())
                    });
                });
            }
            scope.spawn(move || {
                end_with("the analysis", fail, || {
                    analysis::analyze(shared, begin, batch, measured)
                });
                analyzed.store(true, Ordering::Release);
            });
            if let Some(hook) = hook {
                // It goes on with what a replayed file has shown until the daemon ends.
                let is_over = move || analyzed.load(Ordering::Acquire) && STOP.load(Ordering::Acquire);
                scope.spawn(move || {
                    end_with("the webhook", fail, || {
                        hook.run(&*shared.facts, is_over, |text| say::line(format_args!("weir: {text}")));
                        Ok(())
                    });
                });
            }
            if let Err(error) = serve() {
                fail(error);
            }
            ASKED.store(true, Ordering::Relaxed);
            // What keeps a card sets it once the card has stopped.
            if kept.is_none() {
                STOP.store(true, Ordering::Relaxed);
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner)
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
async fn look_around(mut renewal: Option<Renewal>, store: Option<Arc<StoreCounters>>, appliance: Arc<ApplianceState>) {
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(store) = &store {
            appliance.troubles.store.store(store.fails(), Ordering::Relaxed);
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
pub async fn listen(address: SocketAddr, option: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let guess = match error.kind() {
            ErrorKind::AddrInUse => "is another one running? ",
            _ => "",
        };
        Failure::new(format_args!(
            "cannot listen on {address}: {error}; {guess}{option} sets another address"
        ))
    })
}

/// The same, and the address that it has.
fn bind(runtime: &Runtime, address: SocketAddr, option: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = runtime.block_on(listen(address, option))?;
    let address = listener.local_addr().map_err(Failure::new)?;
    Ok((listener, address))
}

/// The analyst's page, as long as the daemon runs: its address, and what it is told of.
fn show(
    runtime: &Runtime,
    address: SocketAddr,
    title: String,
    args: &ServeArgs,
    shared: &Shared,
    access: Access,
) -> Result<(SocketAddr, Arc<Mutex<Recent>>), Failure> {
    let recent = Arc::new(Mutex::new(Recent::new(weir_page::Limits::live(), args.ports.digests)));
    let live = Live {
        name: title,
        facts: Arc::clone(&shared.facts) as Arc<_>,
        recent: Arc::clone(&recent),
    };
    let flow = args.ports.flow;
    let reader =
        move |paths: &[PathBuf], progress: &Progress| view::read(paths, PathOptions::default(), flow, progress);
    let captures = Arc::new(Captures::new(Arc::new(reader)));
    captures.watch(live).map_err(Failure::new)?;
    let (listener, address) = bind(runtime, address, "--page")?;
    let site = view::site(&args.page_options, access);
    runtime.spawn(weir_page::serve(listener, captures, site, std::future::pending()));
    Ok((address, recent))
}

/// The card's keeper tells these.
fn told(shared: &Shared) -> Told {
    let log = Arc::clone(&shared.log);
    let (events, status) = (Arc::clone(&shared.appliance), Arc::clone(&shared.appliance));
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

#[cfg(test)]
mod tests {
    use super::*;

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
