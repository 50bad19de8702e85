//! Packets of a selection.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use weir_analysis::{connections, several};
use weir_command::Failure;
use weir_engine::Engine;
use weir_export::copy::{Copied, CopyError, Selection, copy, pieces};
use weir_export::pcapng::Writer;
use weir_messages::Timestamp;
use weir_record::time::utc_from_tai;

use super::{Chosen, Wanted, choose, range};
use crate::analyze;
use crate::cli::ExportArgs;
use crate::format::count;
use crate::output::{self, Pending};
use crate::say;
use crate::source::{self, Options, Outcome};

pub fn run(args: &ExportArgs, wanted: &Wanted) -> Result<ExitCode, Failure> {
    let Some(path) = &args.output else {
        return Err(Failure::new("pcapng goes to a file: -o FILE"));
    };
    for input in &args.inputs {
        let why = if source::is_url(input) {
            "a daemon keeps none"
        } else if source::comes_once(input) {
            "save it to a file first"
        } else {
            continue;
        };
        return Err(Failure::new(format_args!(
            "{input}: packets are copied out of a capture file, which is read twice; {why}"
        )));
    }
    output::keep(&args.inputs, Some(path))?;
    let mut code = ExitCode::SUCCESS;
    let mut writer = Writer::new(Pending::bytes(Some(path))?);
    let failed = |error| Failure::write(&path.display().to_string(), &error);
    for input in &args.inputs {
        let chosen = choose(input, args, wanted, true)?;
        let outcome = section(input, args, wanted, &mut writer, chosen, failed)?;
        let status = analyze::report(outcome.error);
        if status != ExitCode::SUCCESS {
            code = status;
        }
    }
    writer.finish().map_err(failed)?.finish()?;
    Ok(code)
}

/// The selection of one capture.
fn section(
    input: &str,
    args: &ExportArgs,
    wanted: &Wanted,
    writer: &mut Writer<Pending>,
    chosen: Chosen,
    failed: impl Fn(std::io::Error) -> Failure,
) -> Result<Outcome, Failure> {
    let Chosen {
        connections: chosen,
        verdicts: mut known,
        start,
        fragments,
        outcome,
    } = chosen;
    let range = range(args, start);
    let path = Path::new(input);
    let config = weir_engine::Config {
        digests: true,
        ..args.flow.engine()
    };
    // What the analysis found out for itself holds here, too; it has told it.
    let Options { engine, servers, .. } = Options::of(config).suited(path, |_| {});
    let engine = || Engine::new(engine).with_servers(servers.clone());
    // Of a whole capture, flows that are no connections are copied, too.
    let others = wanted.is_all();
    let pieces = match fragments && !others {
        true => pieces(path, engine(), &chosen).map_err(Failure::new)?,
        false => HashSet::new(),
    };
    let selection = Selection {
        connections: chosen,
        others,
        pieces,
        from: range.start,
        to: range.end,
    };
    let at = |tai| Timestamp::from_unix_nanos(i64::try_from(utc_from_tai(tai)).unwrap_or(i64::MAX));
    let conditions: Vec<_> = [
        (!args.filter.is_empty()).then(|| format!("connections {}", args.filter)),
        args.finding.as_ref().map(|finding| format!("findings {finding}")),
        args.from.map(|_| format!("from {}", at(selection.from))),
        args.to.map(|_| format!("before {}", at(selection.to))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let what = if conditions.is_empty() {
        "all packets".to_owned()
    } else {
        conditions.join(", ")
    };
    writer
        .section(&format!("{what}, exported from {input}"))
        .map_err(&failed)?;
    let copied = copy(path, engine(), &selection, &mut known, writer);
    let (copied, error) = copied.map_err(|error| match error {
        CopyError::Write(error) => failed(error),
        CopyError::Read(error) => Failure::new(error),
    })?;
    let Copied {
        connections: of,
        frames,
        packets,
        verdicts,
        fragments: left_out,
    } = copied;
    say::line(format_args!(
        "weir: {input}: {} of {}, of {}, {} with a verdict",
        count(packets),
        several(frames, "frame", "frames"),
        connections(of.len() as u64),
        count(verdicts)
    ));
    if packets == 0 && (args.from.is_some() || args.to.is_some()) {
        say::line(format_args!(
            "weir: {input}: none of these frames is of that time; weir analyze tells when a capture begins and how long it is"
        ));
    }
    let silent = known.selected(&selection) as u64;
    if silent > 0 {
        say::line(format_args!(
            "weir: {input}: {} verdicts are about no packet of the capture and are no comment",
            count(silent)
        ));
    }
    if left_out > 0 {
        say::line(format_args!(
            "weir: {input}: {} of other datagrams, or of some that are not whole in the capture, are left out",
            several(left_out, "fragment", "fragments")
        ));
    }
    // A capture that is cut ends both readings in the same way; what changed between them is told, too.
    Ok(Outcome {
        error: outcome.error.or(error.map(Failure::new)),
        ..outcome
    })
}
