//! `weir capture`: measure live ports, a status line a second, the answer at the end.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_analysis::{Analyzer, Config, Sink};
use weir_capture::intake::LinkCounters;
use weir_card::Keeper;
use weir_command::Failure;
use weir_dpdk::{LinkState, Progress};
use weir_messages::v1::{Analysis, Summary};
use weir_patterns::Watched;
use weir_record::Record;
use weir_record::frame::Refusal;

use crate::card::{self, Control, Told};
use crate::cli::{CaptureArgs, Format};
use crate::format::{bytes, count};
use crate::measure::{Measured, Source, stop_at_signal};
use crate::whole::Whole;
use crate::{analyze, output, say, source, text};

/// The command is to end: a card is stopped first.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Measuring is to end.
static STOP: AtomicBool = AtomicBool::new(false);

/// Run the command.
pub fn run(args: &CaptureArgs) -> Result<ExitCode, Failure> {
    let mut source = Source::open(&args.ports, 0)?;
    let damaged = source.take_damaged();
    let name = source.title();
    source.joining().iter().for_each(|text| source::say(text));
    let told = Told {
        epoch: Box::new(epochs()),
        event: Box::new(|_| {}),
        status: Box::new(|_| {}),
    };
    let keeper = card::keeper(&args.ports, &source.pulse(), told)?;
    stop_at_signal(if keeper.is_some() { &ASKED } else { &STOP })?;
    match args.format {
        Format::Json => {
            let mut whole = Watched::new(Whole::written(None, false)?);
            let summary = measure(args, source, keeper, &mut whole)?;
            let last = Analysis {
                summary: Some(summary),
                ..Analysis::default()
            };
            whole.inner.finish(last)?;
        }
        Format::Text => {
            let mut collector = Watched::new(text::Collector::new(args.rows, false));
            let summary = measure(args, source, keeper, &mut collector)?;
            output::write(None, |out| collector.inner.print(&name, &summary, out))?;
        }
    }
    Ok(analyze::report(damaged.into_iter().map(Failure::new)))
}

/// Epochs for this run alone: 1, 2, ...
fn epochs() -> impl FnMut() -> Result<u16, String> {
    let mut last = 0_u16;
    move || {
        last = last.checked_add(1).ok_or("the card was started 65,535 times")?;
        Ok(last)
    }
}

fn measure(
    args: &CaptureArgs,
    source: Source,
    mut keeper: Option<Keeper<Control>>,
    sink: &mut Watched<impl Sink + Send>,
) -> Result<Summary, Failure> {
    let mut analyzer = Analyzer::new(Config {
        inline: args.ports.inline.is_some(),
        ..Config::default()
    });
    let progress = Progress::default();
    let done = AtomicBool::new(false);
    let mut link = None;
    let result = std::thread::scope(|scope| {
        let asked = if keeper.is_some() { &ASKED } else { &STOP };
        scope.spawn(|| status(args.seconds, &progress, &done, asked));
        let kept = keeper
            .as_mut()
            .map(|keeper| scope.spawn(|| card::keep(keeper, &ASKED, &STOP)));
        let take = |records: &[Record], measured: &Measured<'_>| {
            link = measured.link().copied();
            analyzer.push(records, sink);
        };
        let result = source.run(&STOP, &progress, take);
        done.store(true, Ordering::Relaxed);
        ASKED.store(true, Ordering::Relaxed);
        let kept = kept.map(|kept| {
            kept.join()
                .unwrap_or_else(|_| Err(Failure::new("what keeps the card panicked")))
        });
        result.and(kept.unwrap_or(Ok(())))
    });
    result?;
    print_status(&progress);
    if let Some(link) = link {
        say::line(format_args!("{}", link_line(&link)));
    }
    Ok(sink.finish(&mut analyzer))
}

/// A line a second, until done; sets the stop flag when the time is over.
fn status(seconds: Option<u64>, progress: &Progress, done: &AtomicBool, asked: &AtomicBool) {
    let start = Instant::now();
    let mut next = Duration::from_secs(1);
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        if seconds.is_some_and(|limit| start.elapsed() >= Duration::from_secs(limit)) {
            asked.store(true, Ordering::Relaxed);
        }
        if start.elapsed() >= next {
            next += Duration::from_secs(1);
            print_status(progress);
        }
    }
}

fn print_status(progress: &Progress) {
    let ports: Vec<_> = progress
        .reports()
        .iter()
        .enumerate()
        .map(|(number, port)| {
            let mut line = format!(
                "port {number}: {} frames, {}",
                count(port.received),
                bytes(port.received_bytes)
            );
            for (what, n) in [
                ("forwarded", port.forwarded),
                ("not forwarded", port.forward_drops.total()),
                ("not measured", port.unmeasured),
                ("missed", port.device.missed),
                ("probably cut", port.probably_cut),
            ] {
                if n > 0 {
                    line += &format!(", {} {what}", count(n));
                }
            }
            if !port.device.drops_known {
                line += ", losses not known";
            }
            if port.link == Some(LinkState::Down) {
                line += ", link down";
            }
            line
        })
        .collect();
    say::line(format_args!("{}", ports.join(" | ")));
}

/// What came over the link from a card.
fn link_line(link: &LinkCounters) -> String {
    let mut line = format!("card: {} records in {} frames", count(link.records), count(link.frames));
    for (what, n) in [
        ("frames lost", link.lost_frames),
        ("records lost", link.lost_records),
        ("restarts", link.restarts),
    ] {
        if n > 0 {
            line += &format!(", {} {what}", count(n));
        }
    }
    for reason in Refusal::ALL {
        let n = link.refused(reason);
        if n > 0 {
            line += &format!(", {} not used: {}", count(n), reason.name());
        }
    }
    line
}
