//! Tables as CSV and Parquet, out of captures, a daemon's records, or a store.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_analysis::{Analyzer, Config, Moment};
use weir_command::Failure;
use weir_export::tables::{Format, RowSelection, TableWriter};
use weir_patterns::Watched;
use weir_record::time::utc_from_tai;
use weir_store::tables::{RecordBatch, Table, Tables};
use weir_store::{Manifest, Merge, StoredFile};

use super::{Wanted, begin, choose, range};
use crate::analyze;
use crate::cli::ExportArgs;
use crate::format::count;
use crate::output::{self, Pending};
use crate::say;
use crate::store::tap_of;

pub fn run(args: &ExportArgs, wanted: &Wanted, format: Format) -> Result<ExitCode, Failure> {
    let taps = taps(args)?;
    let mut outputs = Outputs::create(args, format)?;
    let mut code = ExitCode::SUCCESS;
    match &args.store {
        Some(folder) => store(folder, args, wanted, &mut outputs)?,
        None => {
            for (input, tap) in args.inputs.iter().zip(&taps) {
                let status = capture(input, tap, args, wanted, &mut outputs)?;
                if status != ExitCode::SUCCESS {
                    code = status;
                }
            }
        }
    }
    outputs.finish()?;
    Ok(code)
}

/// The taps of the inputs: their connections have the same ids.
fn taps(args: &ExportArgs) -> Result<Vec<String>, Failure> {
    let taps: Vec<_> = args.inputs.iter().map(|input| tap_of(Path::new(input))).collect();
    let mut known = BTreeMap::new();
    for (tap, input) in taps.iter().zip(&args.inputs) {
        if let Some(other) = known.insert(tap, input) {
            return Err(Failure::new(format_args!(
                "{other} and {input} are both tap {tap} (the name of the file), so their connections would have the \
                 same ids: export them apart, or put them into a store (weir store add --tap) and export that"
            )));
        }
    }
    Ok(taps)
}

/// A file for each table.
struct Outputs(BTreeMap<Table, Output>);

struct Output {
    /// For errors.
    name: String,
    writer: TableWriter<Pending>,
}

impl Outputs {
    fn create(args: &ExportArgs, format: Format) -> Result<Self, Failure> {
        let tables: BTreeSet<_> = args.table.iter().copied().collect();
        let places: Vec<(Table, Option<PathBuf>)> = match (tables.len(), output::file(args.output.as_deref())) {
            (1, path) => tables
                .into_iter()
                .map(|table| (table, path.map(Path::to_path_buf)))
                .collect(),
            (_, None) => {
                return Err(Failure::new(
                    "several tables go into a folder: -o DIR; or one of them with --table NAME",
                ));
            }
            (number, Some(folder)) => {
                if folder.is_file() {
                    return Err(Failure::new(format_args!(
                        "{}: is a file, and several tables go into a folder; or one of them with --table NAME",
                        folder.display()
                    )));
                }
                std::fs::create_dir_all(folder)
                    .map_err(|error| Failure::write(&folder.display().to_string(), &error))?;
                let all = Table::ALL.into_iter();
                all.filter(|table| number == 0 || tables.contains(table))
                    .map(|table| {
                        (
                            table,
                            Some(folder.join(format!("{}.{}", table.name(), format.ending()))),
                        )
                    })
                    .collect()
            }
        };
        let mut outputs = BTreeMap::new();
        for (table, path) in places {
            output::keep(&args.inputs, path.as_deref())?;
            let out = match format {
                Format::Csv => Pending::create(path.as_deref())?,
                Format::Parquet => Pending::bytes(path.as_deref())?,
            };
            let name = out.name().to_owned();
            let writer = TableWriter::new(table, format, out);
            let writer = writer.map_err(|error| Failure::write(&name, &error))?;
            outputs.insert(table, Output { name, writer });
        }
        Ok(Self(outputs))
    }

    fn has(&self, table: Table) -> bool {
        self.0.contains_key(&table)
    }

    fn write(&mut self, table: Table, rows: &RecordBatch, selection: &RowSelection) -> Result<(), Failure> {
        let Some(output) = self.0.get_mut(&table) else {
            return Ok(());
        };
        let rows = selection.of(table, rows).map_err(Failure::new)?;
        output
            .writer
            .write(&rows)
            .map_err(|error| Failure::write(&output.name, &error))
    }

    /// All files are whole.
    fn finish(self) -> Result<(), Failure> {
        let mut said = Vec::new();
        let mut whole = Vec::new();
        for (table, Output { name, writer }) in self.0 {
            said.push(format!("{} {}", count(writer.rows()), table.name()));
            let mut out = writer.finish().map_err(|error| Failure::write(&name, &error))?;
            out.flush().map_err(|error| Failure::write(&name, &error))?;
            whole.push(out);
        }
        // None has its name before all are written: those of one export stand beside each other.
        whole.into_iter().try_for_each(Pending::finish)?;
        say::line(format_args!("weir: rows: {}", said.join(", ")));
        Ok(())
    }
}

/// The rows of a capture, or of the records of a daemon, as they come.
fn capture(
    input: &str,
    tap: &str,
    args: &ExportArgs,
    wanted: &Wanted,
    outputs: &mut Outputs,
) -> Result<ExitCode, Failure> {
    let mut selection = RowSelection {
        connections: match wanted.is_all() {
            true => None,
            false => Some(choose(input, args, wanted, false)?.connections),
        },
        time: i64::MIN..i64::MAX,
    };
    let engine = weir_engine::Config {
        digests: outputs.has(Table::Packets),
        ..args.flow.engine()
    };
    let mut analyzer = Analyzer::new(Config::default());
    let mut facts = Watched::new(Tables::new(tap));
    let mut start = None;
    let mut failed = None;
    let outcome = analyze::read(input, engine, |records| {
        // The rest of the input is only read.
        if failed.is_some() {
            return;
        }
        begin(&mut start, records);
        selection.time = utc(range(args, start.unwrap_or(0)));
        facts.inner.records(records);
        analyzer.push(records, &mut facts);
        let ready = facts.inner.ready().map_err(Failure::new);
        failed = ready.and_then(|rows| write_all(outputs, rows, &selection)).err();
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    let summary = facts.finish(&mut analyzer);
    facts.inner.complete(&summary);
    write_all(outputs, facts.inner.flush().map_err(Failure::new)?, &selection)?;
    Ok(analyze::report(outcome.error))
}

fn write_all(outputs: &mut Outputs, rows: Vec<(Table, RecordBatch)>, selection: &RowSelection) -> Result<(), Failure> {
    rows.iter()
        .try_for_each(|(table, rows)| outputs.write(*table, rows, selection))
}

/// TAI ns as UTC ns; without an end it stays so.
fn utc(range: Range<u64>) -> Range<i64> {
    let at = |time: u64| i64::try_from(utc_from_tai(time)).unwrap_or(i64::MAX);
    let end = if range.end == u64::MAX { i64::MAX } else { at(range.end) };
    let start = if range.start == 0 { i64::MIN } else { at(range.start) };
    start..end
}

/// The rows of a store, by time over all taps.
fn store(folder: &Path, args: &ExportArgs, wanted: &Wanted, outputs: &mut Outputs) -> Result<(), Failure> {
    if !wanted.is_all() {
        return Err(Failure::new(
            "--filter and --finding are for captures; of a store, weir query --store DIR 'SELECT ...' --format csv has \
             any rows",
        ));
    }
    if [args.from, args.to]
        .iter()
        .any(|moment| matches!(moment, Some(Moment::AfterStart(_))))
    {
        return Err(Failure::new(
            "a store has no first packet: --from and --to as times such as 2026-01-31T12:00:00Z",
        ));
    }
    let manifest = Manifest::read(folder).map_err(Failure::new)?;
    let is_of_tap = |file: &StoredFile| {
        let of = file.partition().map(|(_, tap, _)| tap);
        args.tap.is_none() || of == args.tap.as_deref()
    };
    if let Some(tap) = &args.tap
        && !manifest.files().any(is_of_tap)
    {
        let taps: BTreeSet<_> = manifest.files().filter_map(|file| Some(file.partition()?.1)).collect();
        let taps: Vec<_> = taps.into_iter().collect();
        return Err(Failure::new(format_args!(
            "store {} has no tap {tap}; it has: {}",
            folder.display(),
            taps.join(", ")
        )));
    }
    let selection = RowSelection {
        connections: None,
        time: utc(range(args, 0)),
    };
    for table in Table::ALL
        .into_iter()
        .filter(|table| outputs.has(*table))
        .collect::<Vec<_>>()
    {
        let files = manifest.of(table).filter(|file| is_of_tap(file));
        let files = files.filter(|file| file.to >= selection.time.start && file.from < selection.time.end);
        for rows in Merge::new(folder, table, files.cloned()) {
            outputs.write(table, &rows.map_err(Failure::new)?, &selection)?;
        }
    }
    Ok(())
}
