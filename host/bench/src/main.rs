//! `weir-bench`: makes large captures, measures, checks and damages them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use weir_bench::error::Error;
use weir_bench::generate::{self, Kind};
use weir_bench::{check, compare, floor, mutate};

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
    /// CPU time and memory of weir, the floor, tcptrace and tshark on the same captures, in one table
    Compare {
        /// The command under test
        #[arg(long, default_value = "bin/weir")]
        weir: PathBuf,
        /// Where the captures are made and kept (3 GB at scale 1)
        #[arg(long, default_value = "build/bench")]
        dir: PathBuf,
        /// Size of the captures; 1 is the size that the targets speak of
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// Runs of each command; the least CPU time counts
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        runs: u32,
    },
    /// Hold the totals of weir analyze against the truth beside generated captures
    Check {
        /// The command under test
        #[arg(long, default_value = "bin/weir")]
        weir: PathBuf,
        /// Captures written by gen
        #[arg(required = true)]
        captures: Vec<PathBuf>,
    },
    /// Damage captures in many ways and run a command on each: no panic, no hang, no mute refusal
    Mutate {
        /// Capture files, or folders of them
        #[arg(required = true)]
        sources: Vec<PathBuf>,
        /// Damaged files to try
        #[arg(long, default_value_t = 1_000)]
        count: u64,
        /// The same seed makes the same files
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Command to run, words parted by blanks, {} for the file
        #[arg(long, default_value = "bin/weir analyze {} --format json")]
        command: String,
        /// Longest time of one run, seconds
        #[arg(long, default_value_t = 10.0)]
        timeout: f64,
        /// Address space of one run, MiB
        #[arg(long, default_value_t = 4_096)]
        memory: u64,
        /// Folder for the files that the command failed on
        #[arg(long, default_value = "build/mutants")]
        keep: PathBuf,
    },
}

fn success(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
        Command::Compare { weir, dir, scale, runs } => {
            return compare::run(&compare::Plan {
                weir,
                directory: dir,
                scale,
                runs,
            })
            .map(success);
        }
        Command::Check { weir, captures } => {
            let mut good = true;
            for capture in captures {
                good &= check::print(&capture, &check::check(&weir, &capture)?);
            }
            return Ok(success(good));
        }
        Command::Mutate {
            sources,
            count,
            seed,
            command,
            timeout,
            memory,
            keep,
        } => {
            let timeout = Duration::try_from_secs_f64(timeout).map_err(|e| Error::new(format!("--timeout: {e}")))?;
            let memory = memory.saturating_mul(1 << 20);
            let report = mutate::run(&mutate::Plan {
                sources,
                count,
                seed,
                command,
                timeout,
                memory,
                keep,
            })?;
            return Ok(success(report.findings.is_empty()));
        }
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
