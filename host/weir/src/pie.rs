//! `weir pie`: client, network and server time from one capture of an exchange, or from two.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_align::Aligner;
use weir_analysis::pie::{Trace, article, is_unknown, one_tap};
use weir_analysis::{Analyzer, Config, Connection, Sink, Transaction};
use weir_command::Failure;
use weir_messages::v1::{Analysis, Finding, Pie};

use crate::analyze::{no_flow, records, report};
use crate::cli::{FlowOptions, Format, PieArgs};
use crate::{output, say, source, taps, text};

const FLOW: FlowOptions = FlowOptions { ignore_vlan: false };

/// Run the command.
pub fn run(args: &PieArgs) -> Result<ExitCode, Failure> {
    let (pies, code) = match &args.server {
        Some(server) => of_two([&args.client, server])?,
        None => of_one(&args.client)?,
    };
    match args.format {
        Format::Json => output::json(
            None,
            &Analysis {
                pie: pies,
                ..Analysis::default()
            },
        ),
        Format::Text => output::write(None, |out| text::taps::print_pies(&pies, out)),
    }?;
    Ok(code)
}

/// The network's time as round trips tell it.
fn of_one(path: &Path) -> Result<(Vec<Pie>, ExitCode), Failure> {
    let input = path.display().to_string();
    let mut analyzer = Analyzer::new(Config::default());
    let code = records(&input, &FLOW, |records| analyzer.push(records, &mut Nobody))?;
    let summary = analyzer.finish(&mut Nobody);
    if summary.connections == 0 {
        return Err(no_flow(&input));
    }
    if is_unknown(&summary) {
        say::line(format_args!(
            "weir: {input}: whose time most transactions were is not known: one direction is not in the capture"
        ));
    }
    Ok((one_tap(&summary).into_iter().collect(), code))
}

/// Wants no facts.
struct Nobody;

impl Sink for Nobody {
    fn connection(&mut self, _: &Connection<'_>) {}

    fn transaction(&mut self, _: &Transaction<'_>) {}

    fn finding(&mut self, _: Finding) {}
}

/// As both measure it.
fn of_two(paths: [&PathBuf; 2]) -> Result<(Vec<Pie>, ExitCode), Failure> {
    let inputs = paths.map(|path| path.display().to_string());
    let mut traces = [Trace::default(); 2];
    let aligner = Aligner::new(inputs.iter().cloned());
    let reading = source::Options::of(taps::engine(&FLOW));
    let (alignment, outcomes) = taps::align(aligner, &inputs, &reading, |tap, records| traces[tap].push(records))?;
    let code = report(taps::errors(outcomes));
    for (input, trace) in inputs.iter().zip(&traces) {
        if trace.frames() == 0 {
            return Err(no_flow(input));
        }
    }
    // The article's arithmetic takes all frames of both captures as they are.
    let mut pies: Vec<_> = article(&traces[0], &traces[1]).into_iter().collect();
    match alignment {
        Ok(alignment) => {
            if alignment.nearest_client != 0 {
                let [client, server] = &inputs;
                say::line(format_args!(
                    "weir: {server} is nearer to the client than {client}; exchange them"
                ));
            }
            let told = alignment.pies.into_iter().filter(|pie| pie.method != "ARTICLE");
            let before = pies.len();
            pies.extend(told);
            if pies.len() == before {
                let placement = alignment.legs.iter().flat_map(|leg| &leg.placement);
                let reasons: Vec<&str> = placement.map(String::as_str).collect();
                say::line(format_args!(
                    "weir: what was measured makes no pie, and the article's arithmetic means nothing here: {}",
                    reasons.join("; ")
                ));
            }
        }
        Err(error) => say::line(format_args!(
            "weir: {error}. Without that, there is the article's arithmetic only"
        )),
    }
    Ok((pies, code))
}
