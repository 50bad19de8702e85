//! `weir export`: what others' tools read, out of a capture, a daemon's records or a store.

mod about;
mod ipfix;
mod pcapng;
mod tables;

use std::collections::HashSet;
use std::process::ExitCode;

use weir_analysis::{Analyzer, Config, Ends, Moment, Sink, Transaction, Verdict};
use weir_api::filter::{Filter, FilterError};
use weir_command::Failure;
use weir_export::copy::Verdicts;
use weir_export::tables::Format;
use weir_messages::v1;
use weir_patterns::Watched;
use weir_record::{Kind, PortMore, Record, Untracked};

use about::About;

use crate::analyze;
use crate::cli::{ExportArgs, ExportFormat, ordered};
use crate::say;
use crate::source::{self, Outcome};

/// Run the command.
pub fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let is_tables = matches!(args.format, ExportFormat::Csv | ExportFormat::Parquet);
    if args.collector.is_some() && args.format != ExportFormat::Ipfix {
        return Err(Failure::new("--collector is for --format ipfix"));
    }
    if (args.store.is_some() || !args.table.is_empty()) && !is_tables {
        return Err(Failure::new(
            "--store and --table are for --format csv and --format parquet",
        ));
    }
    ordered(args.from, args.to)?;
    // Clap takes a conflict with --store (that of files) for a reason not to require it.
    if args.tap.is_some() && args.store.is_none() {
        return Err(Failure::new(
            "--tap is for --store: a capture is a tap named as its file",
        ));
    }
    let wanted = Wanted::parse(args)?;
    match args.format {
        ExportFormat::Pcapng => pcapng::run(args, &wanted),
        ExportFormat::Ipfix => ipfix::run(args, &wanted),
        ExportFormat::Csv => tables::run(args, &wanted, Format::Csv),
        ExportFormat::Parquet => tables::run(args, &wanted, Format::Parquet),
    }
}

/// What the user asked for.
struct Wanted {
    connections: Filter<v1::Connection>,
    finding: Option<Filter<v1::Finding>>,
}

impl Wanted {
    fn parse(args: &ExportArgs) -> Result<Self, Failure> {
        let failed = |option: &str, error: FilterError| Failure::new(format_args!("{option}: {error}"));
        let connections = Filter::parse(&args.filter);
        let finding = args.finding.as_deref().map(Filter::parse).transpose();
        Ok(Self {
            connections: connections.map_err(|error| failed("--filter", error))?,
            finding: finding.map_err(|error| failed("--finding", error))?,
        })
    }

    /// Every connection is wanted.
    fn is_all(&self) -> bool {
        self.connections.is_empty() && self.finding.is_none()
    }
}

/// One input, analysed: what is selected of it.
struct Chosen {
    connections: HashSet<u64>,
    verdicts: Verdicts,
    /// First packet, TAI ns.
    start: u64,
    /// Some of its frames are pieces of datagrams.
    fragments: bool,
    /// How reading it ended.
    outcome: Outcome,
}

/// Keeps what may be selected: connections are known to match when they end, findings at the end of all.
struct Keeper<'a> {
    wanted: &'a Wanted,
    with_verdicts: bool,
    connections: HashSet<u64>,
    /// Their ends, where findings are wanted: some name hosts only.
    ends: Vec<v1::Connection>,
    verdicts: Verdicts,
    findings: Vec<v1::Finding>,
}

impl Sink for Keeper<'_> {
    fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
        let Wanted { connections, finding } = self.wanted;
        if connections.is_empty() && finding.is_none() {
            self.connections.insert(connection.id().0);
            return;
        }
        let message = connection.message();
        if connections.matches(&message) {
            self.connections.insert(message.id);
            if finding.is_some() {
                self.ends.push(v1::Connection {
                    id: message.id,
                    client: message.client,
                    server: message.server,
                    ..v1::Connection::default()
                });
            }
        }
    }

    fn transaction(&mut self, _: &Transaction<'_>) {}

    fn finding(&mut self, finding: v1::Finding) {
        self.findings.push(finding);
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        if self.with_verdicts {
            self.verdicts.add(verdict);
        }
    }
}

/// Analyse an input to know which connections are selected.
fn choose(input: &str, args: &ExportArgs, wanted: &Wanted, with_verdicts: bool) -> Result<Chosen, Failure> {
    if source::comes_once(input) {
        return Err(Failure::new(format_args!(
            "{input}: can be read only once (standard input, a pipe), and a selection needs the capture twice: name a file"
        )));
    }
    let mut sink = Watched::new(Keeper {
        wanted,
        with_verdicts,
        connections: HashSet::new(),
        ends: Vec::new(),
        verdicts: Verdicts::default(),
        findings: Vec::new(),
    });
    let mut analyzer = Analyzer::new(Config::default());
    let mut start = None;
    let mut fragments = false;
    let outcome = analyze::read(input, args.flow.engine(), |records: &[Record]| {
        begin(&mut start, records);
        fragments = fragments || has_fragments(records);
        analyzer.push(records, &mut sink);
    })?;
    sink.finish(&mut analyzer);
    let Keeper {
        mut connections,
        ends,
        verdicts,
        findings,
        ..
    } = sink.inner;
    if let Some(filter) = &wanted.finding {
        let matching: Vec<_> = findings.iter().filter(|finding| filter.matches(finding)).collect();
        if matching.is_empty() {
            return Err(Failure::new(format_args!(
                "{input}: no finding matches; weir analyze lists the findings with their kinds"
            )));
        }
        let mut ids: HashSet<u64> = HashSet::new();
        for finding in &matching {
            let about = About::of(finding).filter(|_| finding.connection_ids.is_empty());
            let (n, how) = match about {
                None => {
                    ids.extend(&finding.connection_ids);
                    (finding.connection_ids.len(), "named")
                }
                Some(about) => {
                    let of_it = ends.iter().filter(|connection| about.is_about(connection));
                    let of_it: Vec<u64> = of_it.map(|connection| connection.id).collect();
                    ids.extend(&of_it);
                    (of_it.len(), "of the hosts that it names")
                }
            };
            say::line(format_args!(
                "weir: {input}: {}: {} ({} {how})",
                finding.kind,
                finding.title,
                weir_analysis::connections(n as u64)
            ));
        }
        if ids.is_empty() {
            return Err(Failure::new(format_args!(
                "{input}: {} ({}) names neither connections nor hosts: select them with --filter, or their time with --from and --to",
                matching[0].title, matching[0].kind
            )));
        }
        connections.retain(|id| ids.contains(id));
    }
    if connections.is_empty() && !wanted.is_all() {
        say::line(format_args!("weir: {input}: no connection is selected"));
    }
    Ok(Chosen {
        connections,
        verdicts,
        start: start.unwrap_or(0),
        fragments,
        outcome,
    })
}

/// Whether the counters of a port have fragments.
fn has_fragments(records: &[Record]) -> bool {
    let mut counters = records
        .iter()
        .filter(|record| record.is_continuation() && record.kind() == Some(Kind::Port));
    counters.any(|record| PortMore::decode(record).untracked[Untracked::Fragment as usize] > 0)
}

/// Keep the time of the first record, TAI ns.
fn begin(start: &mut Option<u64>, records: &[Record]) {
    if start.is_none() {
        *start = records.first().map(Record::time);
    }
}

/// The time of the selection, TAI ns, of an input that began at `start`.
fn range(args: &ExportArgs, start: u64) -> std::ops::Range<u64> {
    let at = |moment| match moment {
        Moment::AfterStart(ns) => start.saturating_add(ns),
        Moment::At(time) => time,
    };
    args.from.map_or(0, at)..args.to.map_or(u64::MAX, at)
}
