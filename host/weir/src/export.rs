//! `weir export`: what others' tools read, out of a capture or a daemon's records.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_analysis::{Analyzer, Config, Ends, Moment, Sink, Transaction, Verdict};
use weir_api::filter::Filter;
use weir_export::collector::Collector;
use weir_export::copy::{Copied, CopyError, Selection, Verdicts, copy};
use weir_export::ipfix::Exporter;
use weir_export::pcapng::Writer;
use weir_messages::v1;
use weir_patterns::Watched;
use weir_record::Record;

use crate::cli::{ExportArgs, ExportFormat};
use crate::error::Failure;
use crate::format::count;
use crate::{analyze, output};

/// Observation domain of all records: a capture has one tap.
const DOMAIN: u32 = 1;

/// Run the command.
pub fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let wanted = Wanted::parse(args)?;
    match args.format {
        ExportFormat::Pcapng => pcapng(args, &wanted),
        ExportFormat::Ipfix => ipfix(args, &wanted),
    }
}

/// What the user asked for.
struct Wanted {
    connections: Filter<v1::Connection>,
    finding: Option<Filter<v1::Finding>>,
}

impl Wanted {
    fn parse(args: &ExportArgs) -> Result<Self, Failure> {
        let finding = args.finding.as_deref().map(Filter::parse).transpose();
        Ok(Self {
            connections: Filter::parse(&args.filter).map_err(Failure::new)?,
            finding: finding.map_err(Failure::new)?,
        })
    }

    /// Every connection is wanted.
    fn is_all(&self) -> bool {
        self.connections.is_empty() && self.finding.is_none()
    }
}

/// One input, analysed: what is selected of it.
struct Selected {
    connections: BTreeMap<u64, Option<v1::Connection>>,
    verdicts: Verdicts,
    /// First packet, TAI ns.
    start: u64,
}

/// Keeps what may be selected: connections are known to match when they end, findings at the end of all.
struct Keeper<'a> {
    wanted: &'a Wanted,
    with_messages: bool,
    connections: BTreeMap<u64, Option<v1::Connection>>,
    verdicts: Verdicts,
    findings: Vec<v1::Finding>,
}

impl Sink for Keeper<'_> {
    fn connection(&mut self, connection: &weir_analysis::Connection<'_>) {
        if self.wanted.connections.is_empty() && !self.with_messages {
            self.connections.insert(connection.id().0, None);
            return;
        }
        let message = connection.message();
        if self.wanted.connections.matches(&message) {
            self.connections
                .insert(message.id, self.with_messages.then_some(message));
        }
    }

    fn transaction(&mut self, _: &Transaction<'_>) {}

    fn finding(&mut self, finding: v1::Finding) {
        self.findings.push(finding);
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        if !self.with_messages {
            self.verdicts.add(verdict);
        }
    }
}

/// Analyse an input and select from it. `with_messages`: connections whole, no verdicts.
fn select(
    input: &str,
    args: &ExportArgs,
    wanted: &Wanted,
    with_messages: bool,
) -> Result<(Selected, ExitCode), Failure> {
    let mut sink = Watched::new(Keeper {
        wanted,
        with_messages,
        connections: BTreeMap::new(),
        verdicts: Verdicts::default(),
        findings: Vec::new(),
    });
    let mut analyzer = Analyzer::new(Config::default());
    let mut start = 0;
    let code = analyze::records(input, &args.flow, |records: &[Record]| {
        if let Some(first) = records.first().filter(|_| start == 0) {
            start = first.time();
        }
        analyzer.push(records, &mut sink);
    })?;
    analyzer.finish(&mut sink);
    sink.complete();
    let Keeper {
        mut connections,
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
        let ids: HashSet<u64> = matching
            .iter()
            .flat_map(|finding| &finding.connection_ids)
            .copied()
            .collect();
        for finding in &matching {
            anstream::eprintln!(
                "weir: {input}: {}: {} ({} connections named)",
                finding.kind,
                finding.title,
                count(finding.connection_ids.len() as u64)
            );
        }
        connections.retain(|id, _| ids.contains(id));
    }
    let selected = Selected {
        connections,
        verdicts,
        start,
    };
    Ok((selected, code))
}

/// TAI ns of a moment.
fn at(moment: Moment, start: u64) -> u64 {
    match moment {
        Moment::AfterStart(ns) => start.saturating_add(ns),
        Moment::At(time) => time,
    }
}

fn pcapng(args: &ExportArgs, wanted: &Wanted) -> Result<ExitCode, Failure> {
    let Some(path) = &args.output else {
        return Err(Failure::new("pcapng goes to a file: -o FILE"));
    };
    if args.collector.is_some() {
        return Err(Failure::new("--collector is for --format ipfix"));
    }
    if let Some(input) = args
        .inputs
        .iter()
        .find(|input| input.starts_with("http") || *input == "-")
    {
        return Err(Failure::new(format_args!(
            "{input}: packets are copied out of a capture file, which is read twice; a daemon keeps none"
        )));
    }
    for input in &args.inputs {
        if same_file(Path::new(input), path) {
            return Err(Failure::new(format_args!(
                "{input}: is the capture itself; -o names another file"
            )));
        }
    }
    let mut code = ExitCode::SUCCESS;
    let mut failed = None;
    output::binary(Some(path), |out| {
        let mut writer = Writer::new(out);
        for input in &args.inputs {
            match section(input, args, wanted, &mut writer) {
                Ok(status) if status == ExitCode::SUCCESS => {}
                Ok(status) => code = status,
                Err(CopyFailure::Write(error)) => return Err(error),
                Err(CopyFailure::Told(failure)) => {
                    failed = Some(failure);
                    break;
                }
            }
        }
        writer.finish().map(drop)
    })?;
    failed.map_or(Ok(code), Err)
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// A write error is told with the name of the output.
enum CopyFailure {
    Told(Failure),
    Write(std::io::Error),
}

impl From<Failure> for CopyFailure {
    fn from(failure: Failure) -> Self {
        Self::Told(failure)
    }
}

/// The selection of one capture.
fn section(
    input: &str,
    args: &ExportArgs,
    wanted: &Wanted,
    writer: &mut Writer<impl Write>,
) -> Result<ExitCode, CopyFailure> {
    let (selected, code) = select(input, args, wanted, false)?;
    let selection = Selection {
        connections: (!wanted.is_all()).then(|| selected.connections.keys().copied().collect()),
        from: args.from.map_or(0, |moment| at(moment, selected.start)),
        to: args.to.map_or(u64::MAX, |moment| at(moment, selected.start)),
    };
    let conditions: Vec<_> = [
        (!args.filter.is_empty()).then(|| format!("connections {}", args.filter)),
        args.finding.as_ref().map(|finding| format!("findings {finding}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let what = if conditions.is_empty() {
        "all connections".to_owned()
    } else {
        conditions.join(", ")
    };
    writer
        .section(&format!("{what}, exported from {input}"))
        .map_err(CopyFailure::Write)?;
    let config = analyze::engine(&args.flow);
    let copied = copy(Path::new(input), config, &selection, &selected.verdicts, writer);
    let Copied {
        frames,
        packets,
        verdicts,
        fragments,
    } = match copied {
        Ok(copied) => copied,
        Err(CopyError::Write(error)) => return Err(CopyFailure::Write(error)),
        Err(CopyError::Read(error)) => return Err(Failure::new(error).into()),
    };
    let connections = selection
        .connections
        .as_ref()
        .map_or(selected.connections.len(), HashSet::len);
    anstream::eprintln!(
        "weir: {input}: {} of {} frames of {} connections, {} with a verdict",
        count(packets),
        count(frames),
        count(connections as u64),
        count(verdicts)
    );
    let silent = (selected.verdicts.selected(&selection) as u64).saturating_sub(verdicts);
    if silent > 0 {
        anstream::eprintln!(
            "weir: {input}: {} verdicts are about no packet of the capture and are no comment",
            count(silent)
        );
    }
    if fragments > 0 {
        anstream::eprintln!(
            "weir: {input}: {} pieces of fragmented datagrams are left out: only the last piece tells the connection",
            count(fragments)
        );
    }
    Ok(code)
}

fn ipfix(args: &ExportArgs, wanted: &Wanted) -> Result<ExitCode, Failure> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as u32);
    let mut code = ExitCode::SUCCESS;
    let mut messages = Vec::new();
    let loses = args.collector.as_ref().is_some_and(|collector| collector.loses());
    let mut exporter = Exporter::new(DOMAIN, loses);
    let (mut exported, mut unfit) = (0u64, 0u64);
    for input in &args.inputs {
        let (selected, status) = select(input, args, wanted, true)?;
        if status != ExitCode::SUCCESS {
            code = status;
        }
        let range = args.from.map_or(0, |m| at(m, selected.start))..args.to.map_or(u64::MAX, |m| at(m, selected.start));
        for connection in selected.connections.into_values().flatten() {
            if !touches(&connection, &range) {
                continue;
            }
            match exporter.add(&connection, now) {
                Ok(message) => {
                    exported += 1;
                    messages.extend(message);
                }
                Err(_) => unfit += 1,
            }
        }
    }
    messages.extend(exporter.finish(now));
    match (&args.collector, &args.output) {
        (Some(address), None) => {
            let fail = |error: std::io::Error| {
                Failure::new(format_args!("collector {address}: {error}; does it listen there?"))
            };
            let mut collector: Collector = address.connect().map_err(fail)?;
            messages
                .iter()
                .try_for_each(|message| collector.send(message))
                .map_err(fail)?;
        }
        (None, path) => output::binary(path.as_deref(), |out| {
            messages.iter().try_for_each(|message| out.write_all(message))
        })?,
        (Some(_), Some(_)) => return Err(Failure::new("either --collector or -o, not both")),
    }
    anstream::eprintln!(
        "weir: {} connections in {} messages",
        count(exported),
        count(messages.len() as u64)
    );
    if unfit > 0 {
        anstream::eprintln!(
            "weir: {} connections whose ends are of different versions of IP are left out",
            count(unfit)
        );
    }
    Ok(code)
}

/// Whether a packet of the connection may be in the range (TAI ns).
fn touches(connection: &v1::Connection, range: &std::ops::Range<u64>) -> bool {
    let Some(first) = connection.first_packet_time else {
        return true;
    };
    let first = weir_record::time::tai_from_utc(first.unix_nanos().max(0) as u64);
    let last = first.saturating_add((connection.duration_seconds * 1e9) as u64);
    first < range.end && last >= range.start
}
