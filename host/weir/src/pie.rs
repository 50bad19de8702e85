//! `weir pie`: client, network and server time from two captures of one exchange.

use std::path::Path;
use std::process::ExitCode;

use weir_analysis::pie::{Trace, article};
use weir_engine::{Config, Profile};
use weir_messages::v1::Analysis;

use crate::cli::{Format, PieArgs};
use crate::error::Failure;
use crate::{analyze, output, source, text};

/// Run the command.
pub fn run(args: &PieArgs) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    let mut trace = |path: &Path| {
        let options = source::Options {
            engine: Config {
                digests: true,
                ..Config::file()
            },
            profile: Profile::Full,
            statistics: None,
        };
        let mut trace = Trace::default();
        let outcome = source::read(path, &options, |records| trace.push(records)).map_err(Failure::new)?;
        if outcome.error.is_some() {
            code = analyze::report(outcome);
        }
        if trace.frames() == 0 {
            let path = path.display();
            return Err(Failure::new(format_args!(
                "{path}: no packet of a flow is in it; is it the right capture?"
            )));
        }
        Ok(trace)
    };
    let (near_client, near_server) = (trace(&args.client)?, trace(&args.server)?);
    let pies: Vec<_> = article(&near_client, &near_server).into_iter().collect();
    match args.format {
        Format::Json => output::json(
            None,
            &Analysis {
                pie: pies,
                ..Analysis::default()
            },
        ),
        Format::Text => output::write(None, |out| text::print_pies(&pies, out)),
    }?;
    Ok(code)
}
