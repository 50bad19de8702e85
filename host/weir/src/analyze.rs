//! `weir analyze`: a capture file, or the records of a daemon, to the answer.

use std::path::Path;
use std::process::ExitCode;

use weir_analysis::{Analyzer, Config, Sink};
use weir_api::filter::Order;
use weir_command::Failure;
use weir_messages::v1::Analysis;
use weir_patterns::Watched;
use weir_record::Record;

use crate::cli::{AnalyzeArgs, AnalyzeFormat, FlowOptions};
use crate::whole::Whole;
use crate::{output, query, report, say, source, taps, text};

/// Run the command.
pub fn run(args: &AnalyzeArgs) -> Result<ExitCode, Failure> {
    output::keep(&args.inputs, args.output.as_deref())?;
    let (format, marked) = (args.format(), args.range()?);
    let order = Order::parse(&args.order_by).map_err(|error| Failure::new(format_args!("--order-by: {error}")))?;
    if format == AnalyzeFormat::Json && !order.is_empty() {
        return Err(Failure::new(
            "--order-by is for text: JSON tells of connections as they end, and of all",
        ));
    }
    if args.inputs.len() > 1 || format == AnalyzeFormat::Html {
        args.without_parts()?;
    }
    let [input] = args.inputs.as_slice() else {
        return taps::run(args);
    };
    let config = Config {
        operations: args.operations,
        marked,
        ..args.path.config()
    };
    match format {
        AnalyzeFormat::Json => {
            let whole = Whole::written(args.output.as_deref(), args.segments)?;
            let mut whole = watched(whole, args.timeline);
            let mut analyzer = Analyzer::new(config);
            let code = records(input, &args.flow, |records| analyzer.push(records, &mut whole))?;
            let summary = whole.finish(&mut analyzer);
            let last = Analysis {
                summary: Some(summary),
                ..Analysis::default()
            };
            whole.inner.finish(last)?;
            Ok(code)
        }
        AnalyzeFormat::Text => {
            let collector = text::Collector::new(args.rows, args.segments).ordered(order);
            let mut collector = watched(collector, args.timeline);
            let mut analyzer = Analyzer::new(config);
            let code = records(input, &args.flow, |records| analyzer.push(records, &mut collector))?;
            let summary = collector.finish(&mut analyzer);
            output::write(args.output.as_deref(), |out| {
                collector.inner.print(input, &summary, out)
            })?;
            Ok(code)
        }
        AnalyzeFormat::Html => report::run(&args.into()),
    }
}

/// With a time line of slices of so many seconds, if they are given.
pub fn watched<S: Sink>(inner: S, timeline: Option<f64>) -> Watched<S> {
    match timeline {
        Some(seconds) => Watched::resolved(inner, (seconds * 1e9) as u64),
        None => Watched::new(inner),
    }
}

/// Give all records of the input to `take`.
pub fn records(input: &str, flow: &FlowOptions, take: impl FnMut(&[Record])) -> Result<ExitCode, Failure> {
    read(input, flow.engine(), take).map(|outcome| report(outcome.error))
}

/// The same, measured with an engine of these settings, and without telling of a file that could not be read to its end.
pub fn read(input: &str, engine: weir_engine::Config, take: impl FnMut(&[Record])) -> Result<source::Outcome, Failure> {
    read_with(input, &source::Options::of(engine), take)
}

/// The same with these options.
pub fn read_with(
    input: &str,
    options: &source::Options,
    take: impl FnMut(&[Record]),
) -> Result<source::Outcome, Failure> {
    if source::is_url(input) {
        let reclaimed = query::all_records(input, take)?;
        return Ok(source::Outcome {
            error: (reclaimed > 0).then(|| Failure::new(query::gone(input, reclaimed))),
            ..source::Outcome::default()
        });
    }
    source::read(Path::new(input), options, take).map_err(|error| {
        let address = input.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        match address {
            Some(_) if !Path::new(input).exists() => {
                Failure::new(format_args!("{error}; that of a daemon is http://{input}"))
            }
            _ => Failure::new(error),
        }
    })
}

/// There is nothing to tell of it.
pub fn no_flow(input: &str) -> Failure {
    Failure::new(format_args!(
        "{input}: no packet of a flow is in it; is it the right capture?"
    ))
}

/// Tell of inputs of which something is missing: what is there was used.
pub fn report(errors: impl IntoIterator<Item = Failure>) -> ExitCode {
    errors.into_iter().fold(ExitCode::SUCCESS, |_, error| {
        say::line(format_args!("weir: {error}"));
        ExitCode::from(2)
    })
}
