//! `weir report`: a capture to the written report.

use std::path::Path;
use std::process::ExitCode;

use weir_align::Alignment;
use weir_analysis::Analyzer;
use weir_command::Failure;
use weir_messages::v1::Summary;
use weir_patterns::Watched;
use weir_report::{Collector, Input};

use crate::analyze::records;
use crate::cli::{ReportArgs, ReportFormat};
use crate::{analyze, compare, output, packets, source, taps};

/// Connections whose packets are shown, and packets of each.
const CONNECTIONS: usize = 8;
const PACKETS: usize = 300;

/// Run the command.
pub fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    output::keep(args.inputs.iter().chain(&args.baseline), args.output.as_deref())?;
    let ending = args.output.as_deref().and_then(Path::extension);
    if args.format.is_none() && ending.is_some_and(|ending| ending.eq_ignore_ascii_case("pdf")) {
        return Err(Failure::new(
            "a report is HTML or Markdown: write it to a file that ends in .html, which a browser prints as PDF",
        ));
    }
    let read = read(args)?;
    let facts = &read.answer;
    let ids = facts.inner.worth_a_look(CONNECTIONS);
    let mut timing = facts.inner.timing();
    let traces = match Path::new(read.input).is_file() {
        true => packets::traces(read.input, &args.flow, &ids, PACKETS, timing.as_mut())?,
        // What came once cannot be read again.
        false => Vec::new(),
    };
    let comparison = match &args.baseline {
        None => None,
        Some(baseline) if source::comes_once(read.input) || source::comes_once(baseline) => {
            return Err(Failure::new(format_args!(
                "{baseline}: a comparison reads both captures again; give files"
            )));
        }
        Some(baseline) => {
            let options = source::Options::of(args.flow.engine());
            let (before, outcome) = compare::sample(baseline, &options, || {})?;
            analyze::report(outcome.error);
            let (now, _) = compare::sample(read.input, &options, || {})?;
            Some(weir_report::compare::compare([baseline, read.input], [&before, &now]))
        }
    };
    let alignment = read.alignment.unwrap_or_default();
    let document = weir_report::report(&Input {
        files: &args.inputs,
        question: args.question.as_deref(),
        summary: &read.summary,
        timeline: facts.timeline(),
        dialogues: facts.dialogues(),
        facts: &facts.inner,
        traces: &traces,
        timing: timing.as_ref(),
        taps: &alignment.taps,
        legs: &alignment.legs,
        pies: &alignment.pies,
        comparison: comparison.as_ref(),
    });
    let text = match output::format(args.format, args.output.as_deref(), ReportFormat::Html) {
        ReportFormat::Html => weir_report::html(&document),
        ReportFormat::Markdown => {
            let folder = output::file(args.output.as_deref());
            let folder = folder.map(|path| charts(path, &document)).transpose()?;
            weir_report::markdown(&document, folder.as_deref())
        }
    };
    output::binary(args.output.as_deref(), |out| out.write_all(text.as_bytes()))?;
    Ok(read.code)
}

/// The capture that the report is about, and how it lies to the others.
struct Read<'a> {
    input: &'a str,
    answer: Watched<Collector>,
    summary: Summary,
    alignment: Option<Alignment>,
    code: ExitCode,
}

fn read(args: &ReportArgs) -> Result<Read<'_>, Failure> {
    let [input] = args.inputs.as_slice() else {
        let options = taps::Options {
            inputs: &args.inputs,
            names: &args.inputs,
            reading: source::Options::of(taps::engine(&args.flow)),
            path: args.path,
            timeline: None,
        };
        let mut read = taps::read(options, Collector::default, |_, _| {})?;
        for connection in read.answer.inner.examples_mut() {
            taps::explain(connection, &read.alignment.legs, &read.alignment.lost_setups);
        }
        return Ok(Read {
            input: &args.inputs[read.alignment.nearest_client],
            answer: read.answer,
            summary: read.summary,
            alignment: Some(read.alignment),
            code: analyze::report(taps::errors(read.outcomes)),
        });
    };
    let mut answer = Watched::new(Collector::default());
    let mut analyzer = Analyzer::new(args.path.config());
    let code = records(input, &args.flow, |records| analyzer.push(records, &mut answer))?;
    let summary = answer.finish(&mut analyzer);
    Ok(Read {
        input,
        answer,
        summary,
        alignment: None,
        code,
    })
}

/// Write the charts into a folder beside the text, `NAME-charts`; returns its name, as the text can use it.
fn charts(path: &Path, document: &weir_report::Document) -> Result<String, Failure> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-charts");
    let folder = path.with_file_name(&name);
    std::fs::create_dir_all(&folder).map_err(|error| Failure::write(&folder.display().to_string(), &error))?;
    for (name, chart) in weir_report::charts(document) {
        output::binary(Some(&folder.join(name)), |out| out.write_all(chart.as_bytes()))?;
    }
    Ok(name)
}
