//! The request/response application: a client and a server that know from the scenario what they will do, do it over
//! kernel TCP, and write down when they did.

mod client;
mod plan;
mod record;
mod server;
mod tcp_info;

use crate::clock::Clock;
use crate::config::Scenario;
use record::RecordFile;
pub(crate) use record::{ClientRecord, ClientTransaction, SenderRecord, ServerRecord, TruthLine, join, read_lines};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tcp_info::Writers;

/// Line that the server prints once it listens.
pub(crate) const READY: &str = "ready";

/// What a program must do for its hidden subcommand `lab-app`: `arguments` are those after it. [`crate::run()`] starts
/// its own program again with this subcommand in each namespace.
pub fn app_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match start(&arguments.into_iter().collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &[OsString]) -> Result<(), String> {
    let [side, scenario, records, clock_offset] = arguments else {
        return Err("lab-app is started by the lab itself: SIDE SCENARIO RECORDS CLOCK_OFFSET_NS".into());
    };
    let scenario = Scenario::load(Path::new(scenario)).map_err(|error| error.to_string())?;
    let offset_ns = clock_offset
        .to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("clock offset {clock_offset:?} is not a number"))?;
    let clock = Clock::with_offset(offset_ns);
    let records = RecordFile::create(Path::new(records)).map_err(|e| format!("{}: {e}", records.display()))?;
    match side.to_str() {
        Some("client") => client::run(&scenario, clock, records),
        Some("server") => server::run(&scenario, clock, records),
        _ => Err(format!("side {side:?} is neither client nor server")),
    }
}

/// Blocks until the lab closes our standard input: it does so to stop us, and the kernel does so when it dies.
fn wait_for_stop() {
    let mut scrap = [0u8; 64];
    while matches!(io::stdin().read(&mut scrap), Ok(n) if n > 0) {}
}

/// A message of `total` bytes, starting with `header`. Made before its moment comes: this takes longer than sending.
fn compose(header: &[u8], total: u64) -> Vec<u8> {
    let total = total as usize;
    let mut message: Vec<u8> = b"abcdefghijklmnopqrstuvwxyz"
        .iter()
        .copied()
        .cycle()
        .take(total)
        .collect();
    let header_len = header.len().min(total);
    message[..header_len].copy_from_slice(&header[..header_len]);
    message
}

/// What writing needs to know of its side.
struct Writing {
    clock: Clock,
    writers: Arc<Writers>,
}

/// Sends `message` in `chunks` writes of nearly equal size with pauses between them. Returns when the first write
/// began and the last one ended: the clock is read right before and right after the calls.
fn write_chunked(
    stream: &mut TcpStream,
    client_port: u16,
    writing: &Writing,
    message: &[u8],
    chunks: u64,
    pause: Duration,
) -> io::Result<(u64, u64)> {
    let clock = writing.clock;
    let total = message.len();
    let chunks = (chunks as usize).clamp(1, total.max(1));
    let start_ns = clock.now_ns();
    for number in 0..chunks {
        if number > 0 {
            thread::sleep(pause);
        }
        let chunk = &message[total * number / chunks..total * (number + 1) / chunks];
        writing.writers.during(client_port, || stream.write_all(chunk))?;
    }
    Ok((start_ns, clock.now_ns()))
}
