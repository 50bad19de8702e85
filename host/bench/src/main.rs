//! `weir-bench`: makes large captures, measures, checks and damages them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use weir_bench::error::Error;
use weir_bench::generate::hostile::{self, Mix};
use weir_bench::generate::{self, Kind};
use weir_bench::nic::{coverage::Coverage, play};
use weir_bench::{check, compare, floor, mutate, say};

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
    /// Write a capture that looks for the corners of the flow engine (pcap, nanoseconds)
    Hostile {
        /// File to write
        #[arg(short, long)]
        output: PathBuf,
        /// Frames in it
        #[arg(long, default_value_t = 1_000_000)]
        packets: u64,
        /// The same seed makes the same file
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Write a capture of short frames 3 ns apart: for the rate of the card's logic
    Mix {
        /// Flows by turns: one, cycle:N, random:N, fresh (a new one with each frame)
        mix: Mix,
        /// File to write
        #[arg(short, long)]
        output: PathBuf,
        /// Frames in it
        #[arg(long, default_value_t = 20_000)]
        packets: u64,
    },
    /// Count how often the engine (nic profile) says each thing that it can say about a capture
    Coverage {
        /// Capture file
        file: PathBuf,
        /// Fail if something occurs less often
        #[arg(long, default_value_t = 0)]
        least: u64,
    },
    /// Write a capture as the frames and scan visits that a bench around the card's logic plays
    Play {
        /// Capture file
        file: PathBuf,
        /// File to write, - for standard output
        #[arg(short, long)]
        output: PathBuf,
        /// Flows that the table holds
        #[arg(long)]
        contexts: Option<u32>,
        /// Make every scan visit, not only those that may have something to do: for short captures
        #[arg(long)]
        all_visits: bool,
        /// VLAN ids are not part of the key
        #[arg(long)]
        ignore_vlan: bool,
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

/// A file to write, or standard output for `-`.
fn open(path: &Path) -> Result<Box<dyn Write>, Error> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::with_capacity(1 << 20, std::io::stdout())));
    }
    let file = File::create(path).map_err(|e| Error::file("cannot create", path, &e))?;
    Ok(Box::new(BufWriter::with_capacity(1 << 20, file)))
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
            say!(
                "{}: {} packets, {} connections, {} transactions",
                output.display(),
                truth.packets,
                truth.connections,
                truth.transactions
            );
        }
        Command::Hostile { output, packets, seed } => {
            let (frames, bytes) = hostile::write(&output, seed, packets)?;
            say!("{}: {frames} frames, {bytes} bytes, seed {seed}", output.display());
        }
        Command::Mix { mix, output, packets } => {
            let (frames, bytes) = hostile::write_mix(&output, mix, packets)?;
            println!("{}: {frames} frames, {bytes} bytes", output.display());
        }
        Command::Coverage { file, least } => {
            let coverage = Coverage::of(&file)?;
            coverage.print();
            let below = coverage.below(least);
            for name in &below {
                say!("fewer than {least}: {name}");
            }
            return Ok(success(below.is_empty()));
        }
        Command::Play {
            file,
            output,
            contexts,
            all_visits,
            ignore_vlan,
        } => {
            let options = play::Options {
                contexts,
                all_visits,
                vlan_in_key: !ignore_vlan,
            };
            let counts = play::write(&file, &options, &mut *open(&output)?)?;
            eprintln!(
                "{}: {} frames, {} visits, {} ports, {} frames left out",
                file.display(),
                counts.frames,
                counts.visits,
                counts.ports,
                counts.left_out
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
