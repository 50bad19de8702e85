//! `weir compare`: two captures, or two ranges of time of one.

use std::io::{self, Write};
use std::process::ExitCode;

use weir_analysis::{Analyzer, Config};
use weir_command::Failure;
use weir_messages::v1::{Analysis, Comparison, Finding};
use weir_patterns::Watched;
use weir_report::Sampler;
use weir_report::compare::{COLUMNS, OTHERS, TIMES, cells, compare, document, name, shown, verdict};

use crate::analyze::{no_flow, read_with, report};
use crate::cli::{CompareArgs, CompareFormat, Cut};
use crate::text::{heading, table};
use crate::{output, source};

/// Run the command.
pub fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    output::keep(std::iter::once(&args.first).chain(&args.second), args.output.as_deref())?;
    let (inputs, ranges, names) = match (&args.second, args.ranges.as_deref()) {
        (Some(second), _) => (
            [&args.first, second],
            [None, None],
            [args.first.clone(), second.clone()],
        ),
        (None, Some(&[a, b])) => {
            if source::comes_once(&args.first) || source::is_url(&args.first) {
                return Err(Failure::new(format_args!(
                    "{}: ranges of time are read one after the other; give a file",
                    args.first
                )));
            }
            let name = |cut: Cut| format!("{}, {} to {} s", args.first, cut.from as f64 / 1e9, cut.to as f64 / 1e9);
            ([&args.first, &args.first], [Some(a), Some(b)], [name(a), name(b)])
        }
        (None, _) => return Err(Failure::new("two captures, or --ranges of one")),
    };
    let of = |which: usize| {
        let options = source::Options {
            cut: ranges[which],
            ..source::Options::of(args.flow.engine())
        };
        sample(inputs[which], &options, || {})
    };
    let ((first, one), (second, other)) = (of(0)?, of(1)?);
    let code = report(one.error.into_iter().chain(other.error));
    let comparison = compare([&names[0], &names[1]], [&first, &second]);
    match output::format(args.format, args.output.as_deref(), CompareFormat::Text) {
        CompareFormat::Text => output::write(args.output.as_deref(), |out| print(&comparison, out))?,
        CompareFormat::Json => output::json(
            args.output.as_deref(),
            &Analysis {
                comparison: Some(comparison),
                ..Analysis::default()
            },
        )?,
        CompareFormat::Html => {
            let text = weir_report::html(&document(&comparison));
            output::binary(args.output.as_deref(), |out| out.write_all(text.as_bytes()))?;
        }
    }
    Ok(code)
}

/// What a comparison needs of a capture, and what became of that; `look` is called again and again.
pub fn sample(input: &str, options: &source::Options, look: impl Fn()) -> Result<(Sampler, source::Outcome), Failure> {
    let mut sampler = Watched::new(Sampler::default());
    let mut analyzer = Analyzer::new(Config::default());
    let outcome = read_with(input, options, |records| {
        analyzer.push(records, &mut sampler);
        look();
    })?;
    let summary = sampler.finish(&mut analyzer);
    match (summary.connections, options.cut) {
        (0, None) => Err(no_flow(input)),
        (0, Some(Cut { from, to })) => Err(Failure::new(format_args!(
            "{input}: no packet of a flow is in it from {} to {} s; weir analyze tells how long it is",
            from as f64 / 1e9,
            to as f64 / 1e9
        ))),
        _ => Ok((sampler.inner, outcome)),
    }
}

fn print(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "first:  {}\nsecond: {}", comparison.first, comparison.second)?;
    writeln!(out, "\n{}", verdict(comparison))?;
    for (title, differences) in [TIMES, OTHERS].into_iter().zip(shown(comparison)) {
        if differences.is_empty() {
            continue;
        }
        heading(out, title.trim_end_matches('.'), "")?;
        let last = COLUMNS.len() - 1;
        let mut table = table(&COLUMNS, &(1..last).collect::<Vec<_>>());
        for d in differences {
            table.add_row(std::iter::once(name(d)).chain(cells(d)));
        }
        writeln!(out, "{table}")?;
    }
    let mut findings = |findings: &[Finding], which: &str| -> io::Result<()> {
        if !findings.is_empty() {
            writeln!(out, "\nFindings only in the {which}")?;
        }
        for finding in findings {
            writeln!(out, "  {} {} ({})", finding.severity, finding.title, finding.kind)?;
        }
        Ok(())
    };
    findings(&comparison.only_second, "second")?;
    findings(&comparison.only_first, "first")?;
    if !comparison.in_both.is_empty() {
        writeln!(out, "\nFindings in both: {}", comparison.in_both.join(", "))?;
    }
    Ok(())
}
