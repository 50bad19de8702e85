//! `weir lab` as a program of its own: `cargo run -p weir-lab --example lab -- --scenario demo -o DIR` (as root).

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    lab: weir_lab::Args,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "lab-app") {
        return weir_lab::app_main(arguments);
    }
    match Cli::parse().lab.execute(&mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
