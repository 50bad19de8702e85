//! `weir report`: a capture to the written report.

use std::process::ExitCode;

use weir_analysis::{Analyzer, Config};
use weir_patterns::Watched;
use weir_report::{Collector, Input};

use crate::analyze::records;
use crate::cli::{ReportArgs, ReportFormat};
use crate::error::Failure;
use crate::{compare, output, packets};

/// Connections whose packets are shown, and packets of each.
const CONNECTIONS: usize = 8;
const PACKETS: usize = 300;

/// Run the command.
pub fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let mut facts = Watched::new(Collector::default());
    let mut analyzer = Analyzer::new(Config {
        bandwidth: args.bandwidth,
        ..Config::default()
    });
    let code = records(&args.input, &args.flow, |records| analyzer.push(records, &mut facts))?;
    let mut summary = analyzer.finish(&mut facts);
    facts.complete();
    facts.summarize(&mut summary);
    let ids = facts.inner.worth_a_look(CONNECTIONS);
    let traces = match std::path::Path::new(&args.input).is_file() {
        true => packets::traces(&args.input, &args.flow, &ids, PACKETS)?,
        // What came once cannot be read again.
        false => Vec::new(),
    };
    let comparison = match &args.baseline {
        None => None,
        Some(baseline) if args.input == "-" || baseline == "-" => {
            return Err(Failure::new(format_args!(
                "{baseline}: a comparison reads both captures again; give files"
            )));
        }
        Some(baseline) => {
            let (before, _) = compare::sample(baseline, &args.flow, None)?;
            let (now, _) = compare::sample(&args.input, &args.flow, None)?;
            Some(weir_report::compare::compare([baseline, &args.input], [&before, &now]))
        }
    };
    let document = weir_report::report(&Input {
        files: std::slice::from_ref(&args.input),
        question: args.question.as_deref(),
        summary: &summary,
        timeline: facts.timeline(),
        facts: &facts.inner,
        traces: &traces,
        comparison: comparison.as_ref(),
    });
    let text = match format(args) {
        ReportFormat::Html => weir_report::html(&document),
        ReportFormat::Markdown => weir_report::markdown(&document),
    };
    output::binary(args.output.as_deref(), |out| out.write_all(text.as_bytes()))?;
    Ok(code)
}

/// As asked for, or as the name of the output says.
fn format(args: &ReportArgs) -> ReportFormat {
    let is_markdown = args
        .output
        .as_ref()
        .and_then(|path| path.extension())
        .is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
    args.format.unwrap_or(match is_markdown {
        true => ReportFormat::Markdown,
        false => ReportFormat::Html,
    })
}
