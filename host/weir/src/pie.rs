//! `weir pie`: client, network and server time from two captures of one exchange.

use std::process::ExitCode;

use weir_align::Aligner;
use weir_analysis::pie::{Trace, article};
use weir_messages::v1::Analysis;

use crate::cli::{FlowOptions, Format, PieArgs};
use crate::error::Failure;
use crate::{output, say, taps, text};

/// Run the command.
pub fn run(args: &PieArgs) -> Result<ExitCode, Failure> {
    let inputs = [&args.client, &args.server].map(|path| path.display().to_string());
    let mut traces = [Trace::default(); 2];
    let flow = FlowOptions { ignore_vlan: false };
    let aligner = Aligner::new(inputs.iter().cloned());
    let (alignment, code) = taps::align(aligner, &inputs, &flow, |tap, records| traces[tap].push(records))?;
    for (input, trace) in inputs.iter().zip(&traces) {
        if trace.frames() == 0 {
            return Err(Failure::new(format_args!(
                "{input}: no packet of a flow is in it; is it the right capture?"
            )));
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
            pies.extend(alignment.pies.into_iter().filter(|pie| pie.method != "ARTICLE"));
        }
        Err(error) => say::line(format_args!(
            "weir: {error}. Without that, there is the article's arithmetic only"
        )),
    }
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
