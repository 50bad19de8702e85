//! `weir store`: captures into a store, and what is to be done to one.

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use weir_analysis::{Analyzer, Config};
use weir_capture::CaptureFile;
use weir_command::Failure;
use weir_messages::Timestamp;
use weir_patterns::Watched;
use weir_store::tables::{Table, Tables};
use weir_store::{Compacted, Feed, Manifest, Options, Store, StoreError, check, identify};

use crate::cli::{StoreAddArgs, StoreCommand, StoreCompactArgs};
use crate::format::count;
use crate::{analyze, keep, output, say, source, text};

/// Run the command.
pub fn run(command: &StoreCommand) -> Result<ExitCode, Failure> {
    match command {
        StoreCommand::Add(args) => add(args),
        StoreCommand::List(args) => list(&args.store),
        StoreCommand::Check(args) => check_all(&args.store),
        StoreCommand::Compact(args) => compact(args),
    }
}

fn add(args: &StoreAddArgs) -> Result<ExitCode, Failure> {
    // What is no capture makes no store.
    if let (Some(first), Err(StoreError::NotAStore(_))) = (args.files.first(), Manifest::read(&args.store)) {
        identify(first).map_err(Failure::new)?;
        CaptureFile::open(first).map_err(Failure::new)?;
    }
    let mut store = open(&args.store, args.retention.options())?;
    let mut worst = ExitCode::SUCCESS;
    for path in &args.files {
        let code = add_capture(&mut store, path, args);
        keep::tell(store.made_room(), keep::DISK_FULL);
        let code = code?;
        if code != ExitCode::SUCCESS {
            worst = code;
        }
        expire(&mut store)?;
    }
    Ok(worst)
}

fn open(folder: &Path, options: Options) -> Result<Store, Failure> {
    let store = Store::open(folder, options).map_err(Failure::new)?;
    keep::tell_recovery(store.recovery());
    Ok(store)
}

fn expire(store: &mut Store) -> Result<(), Failure> {
    keep::tell(store.expire(SystemTime::now()).map_err(Failure::new)?, "retention");
    Ok(())
}

fn add_capture(store: &mut Store, path: &Path, args: &StoreAddArgs) -> Result<ExitCode, Failure> {
    let name = path.display().to_string();
    let id = identify(path).map_err(Failure::new)?;
    let tap = args.tap.clone().unwrap_or_else(|| tap_of(path));
    // What changes the rows.
    let vlan = if args.flow.ignore_vlan { " --ignore-vlan" } else { "" };
    let version = format!("{}{vlan}", env!("CARGO_PKG_VERSION"));
    let mut feed = Feed::again(store, &tap, &id, &name, &version).map_err(Failure::new)?;
    if let Some(rows) = feed.others_named(&name) {
        say::line(format_args!(
            "weir: {name}: tap {tap} has {} rows of a file of this name with other content: they stay, and what is in both is there twice; \
             a file that still grows is added when it is whole",
            count(rows)
        ));
    }
    let (before, packets) = (feed.stored(), feed.stored_of(Table::Packets));
    // Packets can be added to a capture that is stored without them; what was begun with them goes on with them.
    let digests = args.digests || packets > 0;
    if feed.is_done() && (packets > 0 || !digests) {
        let (rows, gone) = (count(before), feed.store().manifest().gone(&tap));
        let told = match gone {
            Some(0) => format!("its {rows} rows are stored already"),
            Some(gone) => format!(
                "its {rows} rows were stored, and are not stored again; of those of tap {tap}, {} were removed since (weir store list \
                 tells why)",
                count(gone)
            ),
            None => format!(
                "its {rows} rows were stored, and are not stored again; whether all are still there is not known, as a daemon's are of \
                 tap {tap}, too, and some of the store were removed since"
            ),
        };
        say::line(format_args!("{name}: {told}"));
        return Ok(ExitCode::SUCCESS);
    }
    let engine = weir_engine::Config {
        digests,
        epoch: feed.epoch(),
        ..args.flow.engine()
    };
    let options = source::Options::of(engine);
    let mut analyzer = Analyzer::new(Config::default());
    let mut facts = Watched::new(Tables::new(&tap));
    let mut failed = None;
    let outcome = source::read(path, &options, |records| {
        // The rest of the file is only read.
        if failed.is_some() {
            return;
        }
        facts.inner.records(records);
        analyzer.push(records, &mut facts);
        failed = store_ready(&mut feed, &mut facts.inner).err();
    })
    .map_err(Failure::new)?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    let summary = facts.finish(&mut analyzer);
    facts.inner.complete(&summary);
    feed.add(facts.inner.flush().map_err(Failure::new)?);
    feed.finish().map_err(Failure::new)?;
    say::line(format_args!("{name}: {} rows stored", count(feed.written())));
    match store.compact_some() {
        // The capture is stored; small files are only slower to read.
        Err(error) if error.is_full() => {}
        done => tell_problems(&done.map_err(Failure::new)?),
    }
    Ok(analyze::report(outcome.error))
}

/// The name of a capture without its endings, as the name of a tap.
pub fn tap_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name
        .trim_end_matches(".gz")
        .trim_end_matches(".zst")
        .trim_end_matches(".pcapng")
        .trim_end_matches(".pcap");
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.trim_start_matches('.').chars().map(plain).take(64).collect();
    if name.is_empty() { "capture".into() } else { name }
}

/// Full batches into the feed, and a commit when one is due.
fn store_ready(feed: &mut Feed<'_>, tables: &mut Tables) -> Result<(), Failure> {
    if feed.add(tables.ready().map_err(Failure::new)?) {
        feed.commit().map_err(Failure::new)?;
    }
    Ok(())
}

fn list(folder: &Path) -> Result<ExitCode, Failure> {
    let manifest = Manifest::read(folder).map_err(Failure::new)?;
    let mut table = text::table(&["table", "tap", "files", "rows", "MiB", "from", "to"], &[2, 3, 4]);
    for kind in Table::ALL {
        let mut taps: Vec<_> = manifest.of(kind).filter_map(|file| Some(file.partition()?.1)).collect();
        taps.dedup();
        for tap in taps {
            let files = || {
                manifest
                    .of(kind)
                    .filter(move |file| file.partition().is_some_and(|(_, of, _)| of == tap))
            };
            let time = |nanos: Option<i64>| nanos.map_or_else(String::new, second);
            table.add_row(vec![
                kind.name().to_owned(),
                tap.to_owned(),
                count(files().count() as u64),
                count(files().map(|file| file.rows).sum()),
                format!(
                    "{:.1}",
                    files().map(|file| file.bytes).sum::<u64>() as f64 / f64::from(1 << 20)
                ),
                time(files().map(|file| file.from).min()),
                time(files().map(|file| file.to).max()),
            ]);
        }
    }
    output::write(None, |out| {
        writeln!(out, "{table}")?;
        for source in manifest.sources.values() {
            let rows = count(source.rows.values().sum());
            let state = if source.done {
                "stored"
            } else {
                "not all stored: add it again to go on"
            };
            writeln!(out, "{}: {rows} rows, {state}", source.name)?;
        }
        for (what, sums) in [
            ("removed by retention or for want of room", &manifest.expired),
            ("not stored for want of room", &manifest.not_stored),
            ("lost with missing or damaged files", &manifest.lost),
        ] {
            for (table, rows) in sums {
                writeln!(out, "{table}: {} rows {what}", count(*rows))?;
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A time to the second.
fn second(nanos: i64) -> String {
    let mut text = Timestamp::from_unix_nanos(nanos).to_string();
    text.truncate("2026-01-31T12:00:00".len());
    text + "Z"
}

fn check_all(folder: &Path) -> Result<ExitCode, Failure> {
    let checked = check(folder).map_err(Failure::new)?;
    output::write(None, |out| {
        for problem in &checked.problems {
            writeln!(out, "{problem}")?;
        }
        writeln!(
            out,
            "{} files with {} rows and {} bytes are as they were written; {} are not",
            count(checked.files),
            count(checked.rows),
            count(checked.bytes),
            count(checked.problems.len() as u64)
        )?;
        if checked.unsummed > 0 {
            writeln!(
                out,
                "{} of them have no checksum, as an older version wrote them: not every wrong byte shows",
                count(checked.unsummed)
            )?;
        }
        Ok(())
    })?;
    Ok(if checked.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn compact(args: &StoreCompactArgs) -> Result<ExitCode, Failure> {
    // Opening would make a store of a folder that is none.
    Manifest::read(&args.store).map_err(Failure::new)?;
    let mut store = open(&args.store, args.retention.options())?;
    expire(&mut store)?;
    let done = store.compact().map_err(Failure::new)?;
    say::line(format_args!(
        "{} files with {} rows became {}",
        count(done.from),
        count(done.rows),
        count(done.to)
    ));
    tell_problems(&done);
    Ok(if done.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Files that a compaction could not read.
fn tell_problems(done: &Compacted) {
    for problem in &done.problems {
        say::line(format_args!("weir: {problem}"));
    }
}
