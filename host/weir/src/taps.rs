//! `weir analyze A B [C...]`: captures of one path, matched packet by packet.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use weir_align::{Aligner, Alignment};
use weir_analysis::{Analyzer, Config, Sink};
use weir_capture::CaptureError;
use weir_engine::Profile;
use weir_messages::v1::Summary;
use weir_record::Record;

use crate::analyze::Whole;
use crate::cli::{AnalyzeArgs, Format};
use crate::error::Failure;
use crate::{analyze, output, source, text};

/// Batches of records that a reader may be ahead.
const AHEAD: usize = 4;

/// Run the command.
pub fn run(args: &AnalyzeArgs) -> Result<ExitCode, Failure> {
    match args.format {
        Format::Json => {
            let read = read(args, || Whole::new(args.segments))?;
            let mut answer = read.answer.finish(read.summary);
            answer.taps = read.alignment.taps;
            answer.legs = read.alignment.legs;
            answer.pie = read.alignment.pies;
            output::json(args.output.as_deref(), &answer)?;
            Ok(read.code)
        }
        Format::Text => {
            let read = read(args, || text::Collector::new(args.rows, args.segments))?;
            let name = &args.inputs[read.alignment.nearest_client];
            output::write(args.output.as_deref(), |out| {
                text::print_alignment(&read.alignment, out)?;
                writeln!(out)?;
                read.answer.print(name, &read.summary, out)
            })?;
            Ok(read.code)
        }
    }
}

/// What all captures say, and the analysis of the one nearest to the client.
struct Read<S> {
    alignment: Alignment,
    answer: S,
    summary: Summary,
    code: ExitCode,
}

/// One capture and its own analysis.
struct Tap<S> {
    records: Receiver<Vec<Record>>,
    reader: thread::JoinHandle<Result<source::Outcome, CaptureError>>,
    analyzer: Analyzer,
    sink: S,
}

fn read<S: Sink>(args: &AnalyzeArgs, mut sink: impl FnMut() -> S) -> Result<Read<S>, Failure> {
    for input in &args.inputs {
        if input == "-" || input.contains("://") {
            return Err(Failure::new(format_args!(
                "{input}: several taps are capture files; give a file in its place"
            )));
        }
        if args.inputs.iter().filter(|other| *other == input).count() > 1 {
            return Err(Failure::new(format_args!(
                "{input}: given twice; each file is one tap of the path"
            )));
        }
    }
    let engine = weir_engine::Config {
        digests: true,
        vlan_in_key: !args.flow.ignore_vlan,
        ..weir_engine::Config::file()
    };
    let mut taps: Vec<Tap<S>> = args
        .inputs
        .iter()
        .map(|input| {
            let (sender, records) = sync_channel(AHEAD);
            let path = PathBuf::from(input);
            Tap {
                records,
                reader: thread::spawn(move || read_file(&path, engine, &sender)),
                analyzer: Analyzer::new(Config::default()),
                sink: sink(),
            }
        })
        .collect();
    let mut aligner = Aligner::new(args.inputs.iter().cloned());
    while let Some(at) = aligner.next_tap() {
        let tap = &mut taps[at];
        match tap.records.recv() {
            Ok(records) => {
                tap.analyzer.push(&records, &mut tap.sink);
                aligner.push(at, &records);
            }
            Err(_) => aligner.end(at),
        }
    }
    let mut code = ExitCode::SUCCESS;
    let mut answers = Vec::new();
    for (input, tap) in args.inputs.iter().zip(taps) {
        let joined = tap
            .reader
            .join()
            .map_err(|_| Failure::new(format_args!("{input}: the reader failed; please report the capture")))?;
        let outcome = joined.map_err(Failure::new)?;
        if outcome.error.is_some() {
            code = analyze::report(outcome);
        }
        answers.push((tap.analyzer, tap.sink));
    }
    let alignment = aligner.finish().map_err(Failure::new)?;
    let (mut analyzer, mut answer) = answers.swap_remove(alignment.nearest_client);
    let summary = analyzer.finish(&mut answer);
    Ok(Read {
        alignment,
        answer,
        summary,
        code,
    })
}

fn read_file(
    path: &std::path::Path,
    engine: weir_engine::Config,
    records: &SyncSender<Vec<Record>>,
) -> Result<source::Outcome, CaptureError> {
    let options = source::Options {
        engine,
        profile: Profile::Full,
        statistics: None,
    };
    source::read(path, &options, |batch| {
        // Nobody takes them when the comparison has failed: the rest is read for nothing, then told of.
        let _ = records.send(batch.to_vec());
    })
}
