//! The command line: every subcommand and its options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use weir_analysis::{Moment, Range};
use weir_command::Failure;
use weir_dpdk::Device;
use weir_messages::Timestamp;
use weir_record::FlowId;
use weir_record::time::tai_from_utc;
use weir_sketch::bursts::PORTS;
use weir_sketch::histogram::NAMED;

use crate::output;

/// Capture and flow analysis: was it the client, the network or the server; where were packets
/// lost; why is it slow?
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    after_help = "\
Start here:
  weir analyze capture.pcapng           what happened, in tables
  weir analyze capture.pcapng -f json   the same as one JSON object
  weir analyze client.pcap server.pcap  several taps of one path: losses and delays per leg
  weir report capture.pcapng -o r.html  the same as a written report with charts
  weir compare good.pcap bad.pcap       what differs, and whether chance explains it
  weir pie client.pcap server.pcap      client, network and server time from two captures
  weir export capture.pcapng -f pcapng -o lost.pcapng --filter 'server_to_client.lost_upstream > 0'
  weir store add *.pcapng --store DIR   everything found, in Parquet files for SQL and other tools
  weir serve --port eth:eth1            measure a port and answer over gRPC (as root)
  weir query --filter 'server_to_client.retransmitted_packets > 0'
  weir query --store DIR 'SELECT ...'   ask a store in SQL

Captures: pcap and pcapng, plain, gzip or zstd, '-' for standard input."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Analyse a capture file (or the records of a daemon): connections, setups, transactions,
    /// losses, round trips, findings
    Analyze(AnalyzeArgs),
    /// Write the report of a capture: answer, observations, recommendations, charts
    Report(ReportArgs),
    /// Compare two captures, or two ranges of time of one: what differs, by how much, and whether chance explains it
    Compare(CompareArgs),
    /// Split an exchange into client, network and server time, from one capture of it or from two
    Pie(PieArgs),
    /// Print the packet table of one connection
    Packets(PacketsArgs),
    /// Print the flow records that the engine makes of a capture file
    Records(RecordsArgs),
    /// Open captures in the analyst's page: serves it to this machine's browser and prints its address
    View(ViewArgs),
    /// Run the daemon: ports in, records and answers out over gRPC
    Serve(Box<ServeArgs>),
    /// Measure live ports and print a status line a second: passive, or inline between two ports
    Capture(CaptureArgs),
    /// Ask a running daemon for connections, transactions, findings or records, or a store in SQL
    Query(QueryArgs),
    /// For other tools: packets of a selection as pcapng with comments, connections as IPFIX, tables as CSV and Parquet
    Export(ExportArgs),
    /// Keep what is found in Parquet files, for SQL and other tools: add captures, list, check, compact
    Store(StoreArgs),
    /// The card's logic in simulation: wires in, record frames out (see weir nic-sim --help)
    NicSim(NicSimArgs),
    /// Two namespaces, real TCP and a wire that loses, delays and reorders on purpose (needs root)
    Lab(weir_lab::Args),
    /// Captures of simulated hosts, applications and links, with the truth about them
    Scenario(weir_scenario::Args),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people
    Text,
    /// One JSON object: the messages that gRPC returns, in proto3 JSON
    Json,
}

/// Format of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AnalyzeFormat {
    /// Tables for people
    Text,
    /// One JSON object: the messages that gRPC returns, in proto3 JSON
    Json,
    /// The written report (see weir report)
    Html,
}

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One file with its charts, for the browser and for printing
    Html,
    /// Text with tables, without charts
    #[value(alias = "md")]
    Markdown,
}

#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Capture file, '-' for standard input, or http://HOST:PORT of a daemon. Several files: captures of one path,
    /// matched packet by packet: clocks, delays and losses of each leg between them, whose time it was
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub inputs: Vec<String>,
    /// Output format (default: HTML if the output file ends in .html, JSON if in .json, else text)
    #[arg(short, long, value_enum)]
    pub format: Option<AnalyzeFormat>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Rows of each table in text output
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub rows: usize,
    /// Which connections are shown first, in text output: fields as in the JSON output, by commas, each with desc for the
    /// largest first ("server_to_client.payload_bytes desc"). Otherwise those with most trouble, by time
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FIELDS")]
    pub order_by: String,
    #[command(flatten)]
    pub path: PathOptions,
    /// Put transactions of two hosts together to operations: a gap of so many seconds ends one
    #[arg(long, value_name = "SECONDS", value_parser = length)]
    pub operations: Option<f64>,
    /// Mark a range: shares and diagnosis of the transactions that begin in it. Seconds after the first packet, or a
    /// time with its date (2026-01-31T12:00:00.5Z)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub from: Option<Moment>,
    /// The end of that range; what begins then is not in it any more
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub to: Option<Moment>,
    /// Also print what happened when, in slices of so many seconds: connections at once, transactions in progress,
    /// rates, losses, percentiles of setup and response times
    #[arg(long, value_name = "SECONDS", value_parser = length)]
    pub timeline: Option<f64>,
    /// Also tell of each segment that came twice, late or never: what it was, why and where a packet
    /// was lost, on what evidence
    #[arg(long)]
    pub segments: bool,
    #[command(flatten)]
    pub flow: FlowOptions,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Capture file, '-' for standard input, or http://HOST:PORT of a daemon. Several files: captures of one path; the
    /// report is about the one nearest to the client, and about what lies between them
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub inputs: Vec<String>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Output format (default: Markdown if the output file ends in .md, else HTML)
    #[arg(short, long, value_enum)]
    pub format: Option<ReportFormat>,
    /// Compare with this capture: a good one, or the one before a change
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<String>,
    /// The question that the report is to answer, as its reader asked it
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub question: Option<String>,
    #[command(flatten)]
    pub path: PathOptions,
    #[command(flatten)]
    pub flow: FlowOptions,
}

impl AnalyzeArgs {
    /// The format of the answer.
    pub fn format(&self) -> AnalyzeFormat {
        output::format(self.format, self.output.as_deref(), AnalyzeFormat::Text)
    }

    /// The marked range, if there is one.
    pub fn range(&self) -> Result<Option<Range>, Failure> {
        let Self { from, to, .. } = *self;
        ordered(from, to)?;
        Ok((from.is_some() || to.is_some()).then_some(Range { from, to }))
    }

    /// Several captures of one path, and the report, have no place for some of what can be asked about one.
    pub fn without_parts(&self) -> Result<(), Failure> {
        let given = [
            ("--order-by", !self.order_by.is_empty()),
            ("--operations", self.operations.is_some()),
            ("--from", self.from.is_some()),
            ("--to", self.to.is_some()),
            ("--timeline", self.timeline.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(Failure::new(format_args!(
                "{option} is for one capture, in text or JSON: ask it of the one nearest to the client by itself"
            ))),
            None => Ok(()),
        }
    }
}

/// A range that ends before it begins is a mistake; and seconds and a time with its date have no order before the first packet.
pub fn ordered(from: Option<Moment>, to: Option<Moment>) -> Result<(), Failure> {
    let (Some(from), Some(to)) = (from, to) else {
        return Ok(());
    };
    match (from, to) {
        (Moment::AfterStart(from), Moment::AfterStart(to)) | (Moment::At(from), Moment::At(to)) => {
            if from < to {
                Ok(())
            } else {
                Err(Failure::new("--from is not before --to: the range has no time in it"))
            }
        }
        _ => Err(Failure::new(
            "--from and --to are of two kinds: give both as seconds after the first packet, or both as times with their dates",
        )),
    }
}

/// Seconds after the first packet, or a timestamp (RFC 3339).
fn moment(text: &str) -> Result<Moment, String> {
    const LONGEST: f64 = 1e9;
    if let Ok(seconds) = text.parse::<f64>() {
        return if (0.0..=LONGEST).contains(&seconds) {
            Ok(Moment::AfterStart((seconds * 1e9) as u64))
        } else {
            Err("seconds after the first packet are 0 to 1000000000".into())
        };
    }
    let time: Timestamp = text
        .parse()
        .map_err(|_| "seconds after the first packet, or a time with its date, such as 2026-01-31T12:00:00.5Z")?;
    let utc = u64::try_from(time.unix_nanos()).map_err(|_| "a time since 1970")?;
    Ok(Moment::At(tai_from_utc(utc)))
}

impl From<&AnalyzeArgs> for ReportArgs {
    fn from(args: &AnalyzeArgs) -> Self {
        Self {
            inputs: args.inputs.clone(),
            output: args.output.clone(),
            format: Some(ReportFormat::Html),
            baseline: None,
            question: None,
            path: args.path,
            flow: args.flow,
        }
    }
}

/// Format of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Text with tables (Markdown)
    Text,
    /// One JSON object: the field comparison of an analysis
    Json,
    /// One file for the browser and for printing
    Html,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// First capture (good, or before); the only one with --ranges
    #[arg(value_name = "FIRST")]
    pub first: String,
    /// Second capture (bad, or after)
    #[arg(value_name = "SECOND", required_unless_present = "ranges", conflicts_with = "ranges")]
    pub second: Option<String>,
    /// Two ranges of time of one capture, in seconds from its first packet: 0-60 120-180
    #[arg(long, num_args = 2, value_names = ["FROM-TO", "FROM-TO"], value_parser = cut)]
    pub ranges: Option<Vec<Cut>>,
    /// Output format (default: HTML if the output file ends in .html, JSON if in .json, else text)
    #[arg(short, long, value_enum)]
    pub format: Option<CompareFormat>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub flow: FlowOptions,
}

/// A range of time of a capture, ns from its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Its first moment.
    pub from: u64,
    /// The moment after its last one.
    pub to: u64,
}

/// Two numbers of seconds.
fn cut(text: &str) -> Result<Cut, String> {
    let ns = |text: &str| {
        let seconds = text.parse::<f64>().ok().filter(|s| (0.0..1e9).contains(s))?;
        Some((seconds * 1e9) as u64)
    };
    match text.split_once('-').and_then(|(from, to)| Some((ns(from)?, ns(to)?))) {
        Some((from, to)) if from < to => Ok(Cut { from, to }),
        _ => Err("two numbers of seconds, the first below the second, as 0-60".into()),
    }
}

/// A length of time.
fn length(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (1e-6..=1e6).contains(&seconds) => Ok(seconds),
        _ => Err("seconds from 0.000001 to 1000000".into()),
    }
}

/// A number with a decimal unit.
fn bits(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.chars().last() {
        Some('k') => (&text[..text.len() - 1], 1e3),
        Some('M') => (&text[..text.len() - 1], 1e6),
        Some('G') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    match digits.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number * unit),
        _ => Err("a number above 0, with k, M or G for thousands, millions, billions of bits a second".into()),
    }
}

/// Seconds, or a number with its unit.
fn latency(text: &str) -> Result<f64, String> {
    const LONGEST: f64 = 60.0;
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (digits, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
        .unwrap_or((text, 1.0));
    match digits.parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if seconds > 0.0 && seconds <= LONGEST => Ok(seconds),
        _ => Err("seconds above 0, at most 60 (0.04), or a number with ms or us (40ms, 650us)".into()),
    }
}

/// What is known of the path from elsewhere.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct PathOptions {
    /// Bandwidth of the path in bits a second (1544k, 10M, 1G): splits waiting for the link from waiting for windows
    #[arg(long, value_name = "BITS", value_parser = bits)]
    pub bandwidth: Option<f64>,
    /// Latency of the whole path, one way, in seconds or with a unit (40ms, 0.04, 650us): for ceilings, and in place of a
    /// round trip that the capture does not show
    #[arg(long, value_name = "SECONDS", value_parser = latency)]
    pub latency: Option<f64>,
}

impl PathOptions {
    /// Settings of an analysis with that.
    pub fn config(self) -> weir_analysis::Config {
        let Self { bandwidth, latency } = self;
        weir_analysis::Config {
            bandwidth,
            latency,
            ..weir_analysis::Config::default()
        }
    }
}

/// An address to listen on.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an address of this machine and a port, as 127.0.0.1:50051, [::1]:50051, or 0.0.0.0:50051 for all")
}

/// Who may call.
#[derive(Clone, Debug, Args)]
pub struct AccessOptions {
    /// Answer with TLS, on each address: the server's certificate and those up to the root, in PEM. weir serve reads this and
    /// the next two files again when they change
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Answer only to those who send the token in this file: browsers as a password (of any user); weir query and others find
    /// it by WEIR_TOKEN_FILE, and what the certificate is checked against by WEIR_CA (docs: grpc.md)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Args)]
pub struct FlowOptions {
    /// Take packets with different VLAN ids or VNIs for one connection (for links whose two directions are
    /// tagged differently; a capture file tells that by itself)
    #[arg(long)]
    pub ignore_vlan: bool,
}

impl FlowOptions {
    /// How a capture file is measured.
    pub fn engine(self) -> weir_engine::Config {
        weir_engine::Config {
            vlan_in_key: !self.ignore_vlan,
            ..weir_engine::Config::file()
        }
    }
}

/// Statistics per 100 ms beside the records of flows.
#[derive(Clone, Debug, Args)]
pub struct StatisticsOptions {
    /// Also write BURST, HISTOGRAM and TOP records: microbursts of the ports, round-trip and response times per service,
    /// destinations that are sent most, of every 100 ms
    #[arg(long)]
    pub statistics: bool,
    /// Bytes in 100 microseconds that make a burst, on port 0 and on port 1; 0: bursts are not looked for
    #[arg(long, value_name = "BYTES,BYTES", default_value = "0", value_parser = list::<u32, PORTS>, requires = "statistics")]
    pub burst_bytes: [u32; PORTS],
    /// Server ports with histograms of their own, at most 7 (as 80,443); all others share one
    #[arg(long, value_name = "PORTS", default_value = "0", value_parser = list::<u16, NAMED>, requires = "statistics")]
    pub services: [u16; NAMED],
}

/// Up to `N` whole numbers between commas; what is not given is 0.
fn list<T: TryFrom<u64> + Copy + Default, const N: usize>(text: &str) -> Result<[T; N], String> {
    let most = u64::MAX >> (u64::BITS as usize - 8 * size_of::<T>());
    let mut all = [T::default(); N];
    for (place, number) in text.split(',').enumerate() {
        let read = number.parse().ok().and_then(|number: u64| T::try_from(number).ok());
        *all.get_mut(place).ok_or_else(|| format!("at most {N} numbers"))? =
            read.ok_or_else(|| format!("{number:?} is no whole number from 0 to {most}"))?;
    }
    Ok(all)
}

impl StatisticsOptions {
    /// What to count, if anything.
    pub fn config(&self) -> Option<weir_sketch::Config> {
        self.statistics.then_some(weir_sketch::Config {
            thresholds: self.burst_bytes,
            services: self.services,
        })
    }
}

#[derive(Debug, Args)]
pub struct ViewArgs {
    /// Capture file. Several: captures of one path, as weir analyze takes them; the page is about the one nearest to the
    /// client. None: drag captures onto the page
    #[arg(value_name = "FILE", num_args = 0..)]
    pub inputs: Vec<String>,
    /// Address to serve the page on; port 0: any that is free
    #[arg(long, default_value = "127.0.0.1:8970", value_name = "ADDR:PORT", value_parser = address)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub access: AccessOptions,
    #[command(flatten)]
    pub page: PageOptions,
    #[command(flatten)]
    pub path: PathOptions,
    #[command(flatten)]
    pub flow: FlowOptions,
}

/// Where the page comes from, and who may ask for it.
#[derive(Clone, Debug, Args)]
pub struct PageOptions {
    /// Folder of the page's files, as make page builds them (default: page/ beside this program)
    #[arg(long, value_name = "DIR")]
    pub page_files: Option<PathBuf>,
    /// Name by which browsers may call the page, beside addresses and localhost; may be given again
    #[arg(long, value_name = "NAME")]
    pub page_host: Vec<String>,
}

/// The connection that is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    Id(FlowId),
    /// One that has this end.
    End(SocketAddr),
}

impl Wanted {
    fn read(text: &str) -> Result<Self, String> {
        let id = text.parse().map(|id| Self::Id(FlowId(id)));
        let end = || text.parse().map(Self::End);
        id.or_else(|_| end())
            .map_err(|_| "an end such as 10.0.0.1:40000 or [2001:db8::1]:40000, or a number".into())
    }
}

#[derive(Debug, Args)]
pub struct PacketsArgs {
    /// Capture file, or http://HOST:PORT of a daemon that makes PACKET records (weir serve --digests)
    #[arg(value_name = "FILE")]
    pub input: String,
    /// Connection, by an end as in the tables (10.0.0.1:40000, [2001:db8::1]:40000), mostly the client's, or by the id that weir
    /// analyze -f json gives, or weir query (a daemon's differ); not needed when the capture has one
    #[arg(long, value_name = "END|ID", value_parser = Wanted::read)]
    pub connection: Option<Wanted>,
    /// Output format (default: JSON if the output file ends in .json, else text)
    #[arg(short, long, value_enum)]
    pub format: Option<Format>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub flow: FlowOptions,
}

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Packets, with comments of what Weir thinks of them
    Pcapng,
    /// A record for each connection, both directions in it (RFC 7011, RFC 5103)
    Ipfix,
    /// Tables as comma-separated values with a line of names (RFC 4180)
    Csv,
    /// Tables as Apache Parquet
    Parquet,
}

/// A table by its name.
fn table(name: &str) -> Result<weir_store::tables::Table, String> {
    use weir_store::tables::Table;
    Table::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Try it:
  weir export capture.pcapng -f pcapng -o lost.pcapng --filter 'server_to_client.lost_upstream > 0'
  weir export capture.pcapng -f csv --table transactions -o transactions.csv
  weir export capture.pcapng -f parquet -o tables                   every table, a file each
  weir export --store results -f csv --table findings               out of a store
  weir export capture.pcapng -f ipfix --collector udp://collector:4739")]
pub struct ExportArgs {
    /// Capture files; but for pcapng also '-' for standard input, or http://HOST:PORT of a daemon
    #[arg(value_name = "FILE", required_unless_present = "store", conflicts_with = "store")]
    pub inputs: Vec<String>,
    /// What to write
    #[arg(short, long, value_enum)]
    pub format: ExportFormat,
    /// Write to this file; several tables: into this folder
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// With ipfix: send to this collector, udp://HOST:PORT or tcp://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub collector: Option<weir_export::collector::Address>,
    /// With csv and parquet: this table, see docs/src/tables.md; may be given again (default: all of them)
    #[arg(long, value_name = "NAME", value_parser = table)]
    pub table: Vec<weir_store::tables::Table>,
    /// With csv and parquet: out of this store instead of a capture
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// With --store: only this tap of it
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// Only these connections, for example: server.port = 443 AND setup.outcome = IGNORED (see docs/src/filter.md)
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FILTER")]
    pub filter: String,
    /// Only connections that these findings name, for example: kind = PERIODIC_LOSS
    #[arg(long, value_name = "FILTER")]
    pub finding: Option<String>,
    /// Only from this time on: seconds after the first packet, or a time with its date (2026-01-31T12:00:00.5Z)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub from: Option<Moment>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub to: Option<Moment>,
    #[command(flatten)]
    pub flow: FlowOptions,
}

#[derive(Debug, Args)]
pub struct PieArgs {
    /// Capture taken near the client, or the only one
    #[arg(value_name = "FILE")]
    pub client: PathBuf,
    /// Capture taken near the server; without it, the network's time is estimated from round trips
    #[arg(value_name = "SERVER")]
    pub server: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// All that the software does; timeouts for files
    File,
    /// Exactly what the card does: for comparison with the hardware
    Nic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordFormat {
    /// A line for each record
    Text,
    /// The 64 bytes of each record
    Binary,
}

#[derive(Debug, Args)]
pub struct RecordsArgs {
    /// Capture file, '-' for standard input
    #[arg(value_name = "FILE")]
    pub input: String,
    /// What the engine does and how long it waits
    #[arg(long, value_enum, default_value = "file")]
    pub profile: Profile,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    pub format: RecordFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Also write a PACKET record for every packet
    #[arg(long)]
    pub digests: bool,
    /// Flows that the table holds (default: that of the profile)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub contexts: Option<u32>,
    #[command(flatten)]
    pub flow: FlowOptions,
    #[command(flatten)]
    pub statistics: StatisticsOptions,
}

#[derive(Debug, Args)]
pub struct PortArgs {
    /// Port to measure: eth:IFNAME (kernel interface), xdp:IFNAME (AF_XDP: the host itself gets no frame of it any more),
    /// pcap:FILE (replay), or a DPDK device as in --vdev; repeat for several
    #[arg(
        long = "port",
        value_name = "PORT",
        required_unless_present_any = ["inline", "card"],
        conflicts_with = "inline"
    )]
    pub ports: Vec<Device>,
    /// Port on which a card's record frames arrive, named as for --port: the card measures, nothing is measured here
    #[arg(long, value_name = "PORT", conflicts_with_all = ["ports", "inline"])]
    pub card: Option<Device>,
    /// Registers of the card (weir nic-sim --socket): configure and start it, give it a heartbeat, watch over it
    #[arg(long, value_name = "SOCKET", requires = "card")]
    pub control: Option<PathBuf>,
    /// Firmware for a card that runs none, or another: that stays until this one has measured
    #[arg(long, value_name = "IMAGE", requires = "control")]
    pub firmware: Option<PathBuf>,
    /// A setting of the card, as HOST_TIMEOUT_US=50000 (docs: card-protocol.md, configuration keys); repeat for several
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "control", value_parser = crate::card::setting)]
    pub settings: Vec<(weir_card::protocol::Key, u32)>,
    /// Stand in the line between two ports: what comes in on one goes out of the other, measured. Receive offload of eth:
    /// ports must be off: ethtool -K IFNAME gro off lro off
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub inline: Option<Vec<Device>>,
    /// Write a PACKET record for every packet (the page's views of packets need them)
    #[arg(long)]
    pub digests: bool,
    #[command(flatten)]
    pub flow: FlowOptions,
    #[command(flatten)]
    pub statistics: StatisticsOptions,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub ports: PortArgs,
    /// Address of the gRPC server
    #[arg(long, default_value_t = weir_api::server::DEFAULT_ADDRESS, value_name = "ADDR:PORT", value_parser = address)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub access: AccessOptions,
    /// Directory of the record log
    #[arg(long, default_value = "/var/lib/weir", value_name = "DIR")]
    pub data: PathBuf,
    /// Size of the record log in MiB; the oldest records go first
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MOST_MIB))]
    pub log_mib: u64,
    /// Also answer scrapes of the metrics: http://ADDR:PORT/metrics, in OpenMetrics (docs: metrics.md)
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    /// Post every finding that opens, changes or closes to this address, as JSON (docs: metrics.md)
    #[arg(long, value_name = "URL")]
    pub webhook: Option<weir_ops::webhook::Url>,
    /// Check the webhook's certificate against those of this PEM file instead of the system's
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub webhook_ca: Option<PathBuf>,
    /// Connections kept in memory for queries, and four times as many transactions; the oldest closed ones go first
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    pub keep: usize,
    /// Serve the analyst's page on this address
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub page: Option<SocketAddr>,
    #[command(flatten)]
    pub page_options: PageOptions,
    /// Also keep all that is found in this store, for SQL and other tools (docs: store.md)
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Name in the store of the place where packets are seen
    #[arg(long, default_value = "weir", value_name = "NAME", requires = "store", value_parser = tap)]
    pub tap: String,
    #[command(flatten)]
    pub retention: RetentionOptions,
}

/// More have no number of bytes.
const MOST_MIB: u64 = u64::MAX >> 20;

/// The name of a tap.
fn tap(text: &str) -> Result<String, weir_store::StoreError> {
    weir_store::check_tap(text).map(|()| text.to_owned())
}

/// What a store keeps.
#[derive(Clone, Copy, Debug, Args)]
pub struct RetentionOptions {
    /// Remove hours from the store that are older than so many days, by the time of their traffic
    // Not 0, which some take for no limit: it would remove all there is.
    #[arg(long, value_name = "DAYS", requires = "store", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_days: Option<u32>,
    /// Remove the oldest hours from the store while it is larger than so many MiB
    #[arg(long, value_name = "MIB", requires = "store", value_parser = clap::value_parser!(u64).range(1..=MOST_MIB))]
    pub keep_mib: Option<u64>,
    /// When the disk of the store is full
    #[arg(long, value_enum, default_value = "oldest", requires = "store")]
    pub when_full: WhenFull,
}

/// What to do when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhenFull {
    /// Remove the oldest hour for the new rows
    Oldest,
    /// Keep what is there: new rows are not stored, and counted
    Stop,
}

impl RetentionOptions {
    /// As the store takes them.
    pub fn options(self) -> weir_store::Options {
        weir_store::Options {
            keep: self.keep_days.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
            keep_bytes: self.keep_mib.map(|mib| mib << 20),
            when_full: match self.when_full {
                WhenFull::Oldest => weir_store::WhenFull::Oldest,
                WhenFull::Stop => weir_store::WhenFull::Stop,
            },
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Try it:
  weir store add capture.pcapng --store results     resumes when it was interrupted, never doubles
  weir store list --store results
  weir serve --port eth:eth1 --store results        as it happens")]
pub struct StoreArgs {
    #[command(subcommand)]
    pub command: StoreCommand,
}

/// What to do with a store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Analyse captures and store what is found; goes on where it was interrupted
    Add(StoreAddArgs),
    /// What is in it: tables, sources, and what was given up
    List(StoreFolderArgs),
    /// Read everything and compare it with what was written
    Check(StoreFolderArgs),
    /// Apply retention, and make one file of each hour
    Compact(StoreCompactArgs),
}

#[derive(Debug, Args)]
pub struct StoreAddArgs {
    /// Capture files (pcap or pcapng, plain, gzip or zstd), whole: one that is still being written is another one when it has grown
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Folder of the store; a new one is made
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Name of the place where the packets were seen (default: the name of the file without its ending)
    #[arg(long, value_name = "NAME", value_parser = tap)]
    pub tap: Option<String>,
    /// Also store every packet (table packets); can be added later to a capture stored without
    #[arg(long)]
    pub digests: bool,
    #[command(flatten)]
    pub flow: FlowOptions,
    #[command(flatten)]
    pub retention: RetentionOptions,
}

#[derive(Debug, Args)]
pub struct StoreFolderArgs {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
}

#[derive(Debug, Args)]
pub struct StoreCompactArgs {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    #[command(flatten)]
    pub retention: RetentionOptions,
}

#[derive(Debug, Args)]
pub struct CaptureArgs {
    #[command(flatten)]
    pub ports: PortArgs,
    /// Stop after this many seconds (default: at Ctrl-C, or at the end of a replayed file)
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Output format of the answer at the end
    #[arg(short, long, value_enum, default_value = "text")]
    pub format: Format,
    /// Rows of each table in text output
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub rows: usize,
}

#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
  --wire0 WIRE, --wire1 WIRE   pcap file (its frames at its times) or eth:INTERFACE
  --records LINK               pcap file, or eth:INTERFACE: where record frames go
  --help                       all options

Try it:
  weir nic-sim --wire0 capture.pcap --records link.pcap
  weir capture --card pcap:link.pcap"
)]
pub struct NicSimArgs {
    /// Options of bin/weir-nic-sim, which make nic-sim builds
    #[arg(
        value_name = "OPTIONS",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    pub options: Vec<std::ffi::OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Connections
    Connections,
    /// Transactions
    Transactions,
    /// What became of segments that came twice, late or never
    Segments,
    /// Findings
    Findings,
    /// The whole in figures
    Summary,
    /// What happened when: slices of a second, of the last five to ten minutes
    Timeline,
    /// The daemon's own state
    Status,
    /// What happened to the appliance and its card
    Events,
    /// Flow records, from the oldest in the log; as text only
    Records,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Try it:
  weir query findings
  weir query --filter 'server_to_client.retransmitted_packets > 0'
  weir query --order-by 'server_to_client.payload_bytes desc' --limit 10
  weir query transactions --filter 'server_seconds > 1s' -f json

A query that begins with SELECT, WITH, EXPLAIN, SHOW or DESCRIBE is SQL over a store on disk, as
weir serve --store and weir store add make it, and has options of its own: weir-sql query --help,
built by make sql.

  weir query --store DIR 'SELECT setup_outcome, count(*) FROM connections GROUP BY 1'")]
pub struct QueryArgs {
    /// What to ask for
    #[arg(value_enum, default_value = "connections")]
    pub what: What,
    /// Condition, for example: client.address = "10.0.0.1" AND server_to_client.lost_upstream > 0
    /// (fields as in the JSON output, in either spelling; see docs/src/filter.md)
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FILTER")]
    pub filter: String,
    /// Order, for example: server.port, duration_seconds desc (fields as in a filter; the first ones are fetched)
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FIELDS")]
    pub order_by: String,
    /// With findings: those that are open, then each that opens, changes or closes, until interrupted
    #[arg(long)]
    pub watch: bool,
    /// Address of the daemon; https:// for one with TLS. WEIR_TOKEN_FILE and WEIR_CA name the files with its token and with
    /// the roots that its certificate is checked against
    #[arg(long, default_value_t = format!("http://{}", weir_api::server::DEFAULT_ADDRESS), value_name = "URL")]
    pub server: String,
    /// Most rows to fetch
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    pub format: Format,
}
