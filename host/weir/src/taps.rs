//! Captures of one path, read side by side and matched packet by packet: `weir analyze A B [C...]`, and the pies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use weir_align::{Aligner, Alignment, MAX_TAPS, NothingInCommon};
use weir_analysis::{Analyzer, Sink, several};
use weir_capture::CaptureError;
use weir_command::Failure;
use weir_messages::v1::{Analysis, Connection, Leg, LostSetup, Summary};
use weir_patterns::Watched;
use weir_record::{FlowId, Record};

use crate::cli::{AnalyzeArgs, AnalyzeFormat, FlowOptions, PathOptions};
use crate::whole::Whole;
use crate::{analyze, output, report, source, text};

/// Batches of records that a reader may be ahead.
const AHEAD: usize = 4;

/// Run the command.
pub fn run(args: &AnalyzeArgs) -> Result<ExitCode, Failure> {
    match args.format() {
        AnalyzeFormat::Json => {
            let read = read(
                args.into(),
                || Whole::kept(args.output.as_deref(), args.segments),
                |_, _| {},
            )?;
            let code = analyze::report(errors(read.outcomes));
            let (whole, last) = whole(read.answer, read.summary, read.alignment);
            whole.finish(last)?;
            Ok(code)
        }
        AnalyzeFormat::Text => {
            let read = read(
                args.into(),
                || text::Collector::new(args.rows, args.segments),
                |_, _| {},
            )?;
            let code = analyze::report(errors(read.outcomes));
            let name = &args.inputs[read.alignment.nearest_client];
            output::write(args.output.as_deref(), |out| {
                text::taps::print_alignment(&read.alignment, out)?;
                writeln!(out)?;
                read.answer.inner.print(name, &read.summary, out)
            })?;
            Ok(code)
        }
        AnalyzeFormat::Html => report::run(&args.into()),
    }
}

/// The whole answer: what its sink has, and the rest.
pub fn whole(answer: Watched<Whole>, summary: Summary, alignment: Alignment) -> (Whole, Analysis) {
    let rest = Analysis {
        summary: Some(summary),
        taps: alignment.taps,
        legs: alignment.legs,
        lost_setups: alignment.lost_setups,
        pie: alignment.pies,
        ..Analysis::default()
    };
    (answer.inner, rest)
}

/// What all captures say, and the analysis of the one nearest to the client.
pub struct Read<S> {
    /// Clocks, delays and losses between them.
    pub alignment: Alignment,
    /// What it found.
    pub answer: Watched<S>,
    /// Its figures.
    pub summary: Summary,
    /// What became of the captures.
    pub outcomes: Vec<source::Outcome>,
}

/// What to read, and how.
pub struct Options<'a> {
    /// The captures.
    pub inputs: &'a [String],
    /// What they are called.
    pub names: &'a [String],
    /// How to read them.
    pub reading: source::Options,
    /// See `AnalyzeArgs`.
    pub path: PathOptions,
    /// See `AnalyzeArgs`.
    pub timeline: Option<f64>,
}

impl<'a> From<&'a AnalyzeArgs> for Options<'a> {
    fn from(args: &'a AnalyzeArgs) -> Self {
        Self {
            inputs: &args.inputs,
            names: &args.inputs,
            reading: source::Options::of(engine(&args.flow)),
            path: args.path,
            timeline: args.timeline,
        }
    }
}

/// What the legs tell of the setup of a connection of the tap nearest to the client, where that tap alone cannot; `whole`: what was lost
/// between the outermost taps.
pub fn explain(connection: &mut Connection, legs: &[Leg], whole: &[LostSetup]) {
    let Some(setup) = &mut connection.setup else { return };
    let of_it = |lost: &[LostSetup]| {
        let at = lost.binary_search_by_key(&connection.id, |lost| lost.connection_id);
        at.ok().map(|at| lost[at])
    };
    // Each leg begins where the one before it ends.
    let first = legs.first().map(|leg| &leg.from);
    let files: Vec<String> = first
        .into_iter()
        .chain(legs.iter().map(|leg| &leg.to))
        .cloned()
        .collect();
    let names = weir_report::file_names(&files);
    let on_legs: Vec<_> = names
        .windows(2)
        .zip(legs)
        .filter_map(|(ends, leg)| Some(([ends[0], ends[1]], of_it(&leg.lost_setups)?)))
        .collect();
    // A tap between the others may not have all that passed.
    let elsewhere = of_it(whole).map(|lost| LostSetup {
        syns: on_legs
            .iter()
            .fold(lost.syns, |rest, (_, leg)| rest.saturating_sub(leg.syns)),
        syn_acks: on_legs
            .iter()
            .fold(lost.syn_acks, |rest, (_, leg)| rest.saturating_sub(leg.syn_acks)),
        ..lost
    });
    let ends = names.first().zip(names.last()).map(|(near, far)| [*near, *far]);
    let (mut told, mut all) = (Vec::new(), 0);
    for ([near, far], lost) in on_legs.into_iter().chain(ends.zip(elsewhere)) {
        for (count, one, many, [from, to]) in [
            (lost.syns, "SYN", "SYNs", [near, far]),
            (lost.syn_acks, "SYN-ACK", "SYN-ACKs", [far, near]),
        ] {
            if count > 0 {
                told.push(format!("{} between {from} and {to}", several(count.into(), one, many)));
                all += count;
            }
        }
    }
    if told.is_empty() {
        return;
    }
    let told = format!("The captures together show lost: {}.", told.join(", "));
    // Each repeat of the client has a loss before it, unless the server was silent.
    setup.explanation = match all + 1 >= setup.syn_count || setup.explanation.is_empty() {
        true => told,
        false => format!("{told} {}", setup.explanation),
    };
}

/// Why captures could not be read to their end.
pub fn errors(outcomes: Vec<source::Outcome>) -> impl Iterator<Item = Failure> {
    outcomes.into_iter().filter_map(|outcome| outcome.error)
}

/// The engine that captures of a path are read with.
pub fn engine(flow: &FlowOptions) -> weir_engine::Config {
    weir_engine::Config {
        digests: true,
        ..flow.engine()
    }
}

/// Read them side by side; `look` is shown the sink of a capture whenever it was told more.
pub fn read<S: Sink>(
    args: Options<'_>,
    mut sink: impl FnMut() -> S,
    mut look: impl FnMut(usize, &S),
) -> Result<Read<S>, Failure> {
    let mut answers: Vec<(Analyzer, Watched<S>)> = args
        .inputs
        .iter()
        .map(|_| {
            (
                Analyzer::new(args.path.config()),
                analyze::watched(sink(), args.timeline),
            )
        })
        .collect();
    let aligner = Aligner::new(args.names.iter().cloned());
    let (alignment, outcomes) = align(aligner, args.inputs, &args.reading, |tap, records| {
        let (analyzer, sink) = &mut answers[tap];
        analyzer.push(records, sink);
        look(tap, &sink.inner);
    })?;
    let alignment = alignment.map_err(Failure::new)?;
    let (mut analyzer, mut answer) = answers.swap_remove(alignment.nearest_client);
    answer.lost_between(lost_between(&alignment));
    let summary = answer.finish(&mut analyzer);
    Ok(Read {
        alignment,
        answer,
        summary,
        outcomes,
    })
}

/// Connections with the SYNs and SYN-ACKs that they lost, by their ids at the tap nearest to the client.
pub fn lost_between(alignment: &Alignment) -> impl Iterator<Item = (FlowId, [u32; 2])> + Clone {
    let lost = alignment.lost_setups.iter();
    lost.map(|lost| (FlowId(lost.connection_id), [lost.syns, lost.syn_acks]))
}

/// Read captures side by side into an aligner of theirs; their records go to `take` with the number of the capture, too. Also
/// what became of each.
pub fn align(
    mut aligner: Aligner,
    inputs: &[String],
    reading: &source::Options,
    mut take: impl FnMut(usize, &[Record]),
) -> Result<(Result<Alignment, NothingInCommon>, Vec<source::Outcome>), Failure> {
    if inputs.len() > MAX_TAPS {
        return Err(Failure::new(format_args!(
            "{} captures: at most {MAX_TAPS} taps of a path are compared at once; pieces of one trace are put together first (mergecap -w \
             whole.pcapng PIECE…)",
            inputs.len()
        )));
    }
    for input in inputs {
        if input == "-" || source::is_url(input) {
            return Err(Failure::new(format_args!(
                "{input}: several taps are capture files; give a file in its place"
            )));
        }
        let same = |other: &&String| *other == input || source::is_one_file(other, input);
        if inputs.iter().filter(same).count() > 1 {
            return Err(Failure::new(format_args!(
                "{input}: given twice; each file is one tap of the path"
            )));
        }
    }
    let readers: Vec<Reader> = inputs.iter().map(|input| Reader::start(input, reading)).collect();
    while let Some(tap) = aligner.next_tap() {
        match readers[tap].records.recv() {
            Ok(records) => {
                take(tap, &records);
                aligner.push(tap, &records);
            }
            Err(_) => aligner.end(tap),
        }
    }
    let mut outcomes = Vec::new();
    for (input, reader) in inputs.iter().zip(readers) {
        let joined = reader.thread.join();
        let read =
            joined.map_err(|_| Failure::new(format_args!("{input}: the reader failed; please report the capture")))?;
        outcomes.push(read.map_err(Failure::new)?);
    }
    Ok((aligner.finish(), outcomes))
}

/// Reads a capture on a thread of its own.
struct Reader {
    records: Receiver<Vec<Record>>,
    thread: thread::JoinHandle<Result<source::Outcome, CaptureError>>,
}

impl Reader {
    fn start(input: &str, options: &source::Options) -> Self {
        let (sender, records) = sync_channel(AHEAD);
        let (path, options) = (PathBuf::from(input), options.clone());
        Self {
            records,
            thread: thread::spawn(move || read_file(&path, &options, &sender)),
        }
    }
}

fn read_file(
    path: &Path,
    options: &source::Options,
    records: &SyncSender<Vec<Record>>,
) -> Result<source::Outcome, CaptureError> {
    source::read(path, options, |batch| {
        // Nobody takes them when the comparison has failed: the rest is read for nothing, then told of.
        let _ = records.send(batch.to_vec());
    })
}

#[cfg(test)]
mod tests {
    use weir_messages::v1::Setup;

    use super::*;

    #[test]
    fn captures_are_named_without_their_folders() {
        let leg = |from: &str, to: &str, syns, syn_acks| Leg {
            from: from.to_owned(),
            to: to.to_owned(),
            lost_setups: vec![LostSetup {
                connection_id: 1,
                syns,
                syn_acks,
            }],
            ..Leg::default()
        };
        let explained = |legs: &[Leg], whole: &[LostSetup]| {
            let mut connection = Connection {
                id: 1,
                setup: Some(Setup::default()),
                ..Connection::default()
            };
            explain(&mut connection, legs, whole);
            connection.setup.unwrap_or_default().explanation
        };
        assert_eq!(
            explained(
                &[
                    leg("/a/near.pcap", "b/mid.pcap", 2, 0),
                    leg("b/mid.pcap", "/c/far.pcap", 0, 1)
                ],
                &[]
            ),
            "The captures together show lost: 2 SYNs between near.pcap and mid.pcap, 1 SYN-ACK between far.pcap and mid.pcap."
        );
        // Folders tell what names do not.
        assert_eq!(
            explained(&[leg("a/tap.pcap", "b/tap.pcap", 1, 0)], &[]),
            "The captures together show lost: 1 SYN between a/tap.pcap and b/tap.pcap."
        );
        // What no leg can tell.
        let whole = LostSetup {
            connection_id: 1,
            syns: 3,
            syn_acks: 1,
        };
        let legs = [
            leg("near", "mid", 1, 0),
            Leg {
                from: "mid".into(),
                to: "far".into(),
                ..Leg::default()
            },
        ];
        assert_eq!(
            explained(&legs, &[whole]),
            "The captures together show lost: 1 SYN between near and mid, 2 SYNs between near and far, 1 SYN-ACK between far and near."
        );
    }
}
