//! `weir-bench`: makes large captures, measures, checks and damages them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use weir_bench::error::Error;
use weir_bench::floor;
use weir_bench::generate::{self, Kind};

/// Large captures with known totals, and what it costs to analyse them.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a large capture (pcap, nanoseconds) and its totals (FILE.truth.json)
    Gen {
        /// Kind of capture
        kind: Kind,
        /// File to write
        #[arg(short, long)]
        output: PathBuf,
        /// Size; 1 is the size that the targets speak of
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// The same seed makes the same file
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Walk headers and count per flow, nothing else: the least that any flow analysis costs
    Floor {
        /// Classic pcap file, Ethernet
        file: PathBuf,
    },
}

fn run(command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Gen {
            kind,
            output,
            scale,
            seed,
        } => {
            let truth = generate::generate(kind, scale, seed, &output)?;
            println!(
                "{}: {} packets, {} connections, {} transactions",
                output.display(),
                truth.packets,
                truth.connections,
                truth.transactions
            );
        }
        Command::Floor { file } => floor::run(&file)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("weir-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
