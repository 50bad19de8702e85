//! `weir`: the command line and the daemon.
#![forbid(unsafe_code)]

mod access;
mod analyst;
mod analyze;
mod capture;
mod card;
mod cli;
mod compare;
mod export;
mod keep;
mod measure;
mod nic_sim;
mod output;
mod packets;
mod parts;
mod pie;
mod program;
mod query;
mod records;
mod report;
mod say;
mod serve;
mod source;
mod sql;
mod store;
mod taps;
mod text;
mod view;
mod whole;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use weir_command::Failure;
use weir_report::format;

/// Facts are many small allocations; the system's allocator spends a tenth of the time on them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The lab starts this program again in its namespaces.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "lab-app") {
        return weir_lab::app_main(arguments);
    }
    let arguments: Vec<_> = std::env::args_os().collect();
    if sql::is_meant(&arguments) {
        return end(sql::run(arguments));
    }
    if sql::is_missing(&arguments) {
        return end(Err(Failure::new(
            "--store is asked in SQL: weir query --store DIR \"SELECT ...\" (or WITH, EXPLAIN, SHOW, DESCRIBE)",
        )));
    }
    let cli = Cli::try_parse_from(&arguments).unwrap_or_else(|error| {
        let odd = arguments.iter().find(|argument| argument.to_str().is_none());
        let file = arguments.get(1).filter(|first| Path::new(first).is_file());
        match (error.kind(), odd, file) {
            (ErrorKind::InvalidUtf8, Some(name), _) => say::line(format_args!(
                "weir: {}: its name is not UTF-8; give it another one, or a link to it",
                name.display()
            )),
            (ErrorKind::InvalidSubcommand, _, Some(file)) => say::line(format_args!(
                "weir: {0}: is a file and no command; what happened in a capture: weir analyze {0}",
                file.display()
            )),
            _ => error.exit(),
        }
        std::process::exit(2);
    });
    let result = match cli.command {
        Command::Analyze(args) => analyze::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Pie(args) => pie::run(&args),
        Command::Packets(args) => packets::run(&args),
        Command::Records(args) => records::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::View(args) => view::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Store(args) => store::run(&args.command),
        Command::NicSim(args) => nic_sim::run(args),
        Command::Lab(args) => args
            .execute(&mut anstream::stdout())
            .map(|()| ExitCode::SUCCESS)
            .map_err(Failure::new),
        Command::Scenario(args) => args
            .execute(&mut anstream::stdout())
            .map(|()| ExitCode::SUCCESS)
            .map_err(Failure::new),
    };
    end(result)
}

fn end(result: Result<ExitCode, Failure>) -> ExitCode {
    let code = match result {
        Ok(code) => code,
        // A reader that has seen enough (`weir ... | head`) is no failure.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            say::line(format_args!("weir: {failure}"));
            ExitCode::FAILURE
        }
    };
    say::settle();
    code
}
