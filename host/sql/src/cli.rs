//! The command line of `weir-sql`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use weir_command::output;

use crate::engine::{Limits, Spill};
use crate::output::Format;

/// SQL over what Weir found: connections, transactions, losses, findings
#[derive(Debug, Parser)]
#[command(
    name = "weir-sql",
    version,
    after_help = "\
Start here:
  weir store add capture.pcapng --store store      analyse a capture into a store
  weir-sql query --store store 'SHOW TABLES'       what there is
  weir-sql query --store store 'SELECT client_address, count(*) FROM connections GROUP BY 1 ORDER BY 2 DESC'
  weir-sql serve --store store                     answer ADBC and JDBC programs (Arrow Flight SQL)

The SQL is that of Apache DataFusion, with functions of this field; the tables are only read. See the book: sql.md."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer one query
    Query(QueryArgs),
    /// Answer queries over Arrow Flight SQL
    Serve(ServeArgs),
}

/// The store and the limits of queries over it.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// Folder of the store, as weir serve --store and weir store add write it
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Memory for the rows that queries hold (groups, sorts, joins), in MiB; all running queries together
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory: u64,
    /// Most seconds that an answer may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    timeout: f64,
    /// Folder for temporary files of queries that need more memory (default: such queries fail)
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Most MiB of temporary files
    #[arg(long, value_name = "MIB", default_value_t = 10_240, requires = "spill")]
    spill_mib: u64,
    /// Names of addresses for the function host_name, in the format of /etc/hosts
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
}

impl EngineArgs {
    /// The limits that the options set.
    pub fn limits(&self) -> Limits {
        let spill = self.spill.as_ref().map(|folder| Spill {
            folder: folder.clone(),
            bytes: self.spill_mib << 20,
        });
        Limits {
            memory: usize::try_from(self.memory << 20).unwrap_or(usize::MAX),
            time: Duration::from_secs_f64(self.timeout),
            patience: None,
            spill,
        }
    }
}

/// `weir-sql query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// The query; '-' reads it from standard input
    #[arg(value_name = "SQL")]
    pub sql: String,
    /// Output format (default: the one that the output's name ends in, .csv, .json or .parquet, else a table)
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// Write to this file instead of standard output; it is there once it is whole
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Rows of a table; the other formats write all
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub rows: usize,
    /// Where to ask and how much.
    #[command(flatten)]
    pub engine: EngineArgs,
}

impl QueryArgs {
    /// The format that is asked for; else the one that the output's name ends in.
    pub fn format(&self) -> Format {
        output::format(self.format, self.output.as_deref(), Format::Table)
    }
}

/// `weir-sql serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address of the Flight SQL server (gRPC without TLS or passwords: keep it on this machine, or behind a proxy that
    /// has them)
    #[arg(long, default_value = "127.0.0.1:50052", value_name = "ADDR:PORT")]
    pub listen: SocketAddr,
    /// Where to ask and how much.
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// A time to wait.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=1e6).contains(&seconds) => Ok(seconds),
        _ => Err("seconds from 0.001 to 1000000".into()),
    }
}
