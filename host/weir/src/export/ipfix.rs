//! Connections to a collector or a file, each as it ends.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Range;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_analysis::{Analyzer, Config, Connection, Sink, Transaction, connections, several};
use weir_command::Failure;
use weir_export::collector::Collector;
use weir_export::ipfix::Exporter;
use weir_messages::v1;

use super::{Wanted, begin, choose, range};
use crate::analyze;
use crate::cli::ExportArgs;
use crate::output::{self, Pending};
use crate::say;

pub fn run(args: &ExportArgs, wanted: &Wanted) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    let mut sender = Sender::new(args, wanted)?;
    // Each input is an observation domain: ids of connections are unique in it, not beyond.
    for (input, domain) in args.inputs.iter().zip(1..) {
        sender.exporter = Exporter::new(domain, sender.loses);
        // Findings are known at the end: who is named by them takes a reading of its own.
        sender.named = match &wanted.finding {
            Some(_) => Some(choose(input, args, wanted, false)?.connections),
            None => None,
        };
        let mut start = None;
        let mut analyzer = Analyzer::new(Config::default());
        let outcome = analyze::read(input, args.flow.engine(), |records| {
            begin(&mut start, records);
            sender.range = range(args, start.unwrap_or(0));
            // After an error the rest of the input is only read.
            if sender.failed.is_none() {
                analyzer.push(records, &mut sender);
            }
        })?;
        analyzer.finish(&mut sender);
        sender.end();
        let status = analyze::report(outcome.error);
        if status != ExitCode::SUCCESS {
            code = status;
        }
    }
    sender.finish()?;
    Ok(code)
}

/// Where messages go.
enum Way {
    Collector(Collector),
    File(Pending),
}

/// Exports connections as they end; memory: one message.
struct Sender<'a> {
    wanted: &'a Wanted,
    /// Connections that the findings name.
    named: Option<HashSet<u64>>,
    /// TAI ns.
    range: Range<u64>,
    exporter: Exporter,
    /// Messages may be lost on the way.
    loses: bool,
    way: Way,
    /// Its name, for errors.
    to: String,
    failed: Option<io::Error>,
    exported: u64,
    messages: u64,
    unfit: u64,
}

impl<'a> Sender<'a> {
    fn new(args: &ExportArgs, wanted: &'a Wanted) -> Result<Self, Failure> {
        let (way, to) = match (&args.collector, &args.output) {
            (Some(_), Some(_)) => return Err(Failure::new("either --collector or -o, not both")),
            (Some(address), None) => {
                let way = address.connect().map_err(|error| unreachable(address, &error))?;
                (Way::Collector(way), address.to_string())
            }
            (None, path) => {
                output::keep(&args.inputs, path.as_deref())?;
                let file = Pending::bytes(path.as_deref())?;
                let name = file.name().to_owned();
                (Way::File(file), name)
            }
        };
        let loses = args.collector.as_ref().is_some_and(|collector| collector.loses());
        Ok(Self {
            wanted,
            named: None,
            range: 0..u64::MAX,
            exporter: Exporter::new(0, loses),
            loses,
            way,
            to,
            failed: None,
            exported: 0,
            messages: 0,
            unfit: 0,
        })
    }

    fn send(&mut self, message: &[u8]) {
        let sent = match &mut self.way {
            Way::Collector(collector) => collector.send(message),
            Way::File(file) => file.write_all(message),
        };
        match sent {
            Ok(()) => self.messages += 1,
            Err(error) => {
                self.failed.get_or_insert(error);
            }
        }
    }

    /// The last message of an input.
    fn end(&mut self) {
        if self.failed.is_none()
            && let Some(message) = self.exporter.finish(now())
        {
            self.send(&message);
        }
    }

    /// Everything is sent.
    fn finish(mut self) -> Result<(), Failure> {
        let is_taken = match (self.failed.take(), self.way) {
            (Some(error), Way::Collector(_)) => return Err(left(&self.to, self.messages, &error)),
            (Some(error), Way::File(_)) => return Err(Failure::write(&self.to, &error)),
            (None, Way::Collector(collector)) => {
                let taken = collector.finish();
                taken.map_err(|error| left(&self.to, self.messages, &error))? || self.loses
            }
            (None, Way::File(file)) => {
                file.finish()?;
                true
            }
        };
        say::line(format_args!(
            "weir: {} in {}",
            connections(self.exported),
            several(self.messages, "message", "messages")
        ));
        if !is_taken {
            say::line(format_args!(
                "weir: collector {}: has not closed the connection, so whether it read all of them is not known",
                self.to
            ));
        }
        if self.unfit > 0 {
            say::line(format_args!(
                "weir: left out, as their ends are of different versions of IP: {}",
                connections(self.unfit)
            ));
        }
        Ok(())
    }
}

impl Sink for Sender<'_> {
    fn connection(&mut self, connection: &Connection<'_>) {
        let is_named = |ids: &HashSet<u64>| ids.contains(&connection.id().0);
        if self.failed.is_some() || !self.named.as_ref().is_none_or(is_named) {
            return;
        }
        let message = connection.message();
        if !touches(&message, &self.range) || !self.wanted.connections.matches(&message) {
            return;
        }
        match self.exporter.add(&message, now()) {
            Ok(full) => {
                self.exported += 1;
                if let Some(full) = full {
                    self.send(&full);
                }
            }
            Err(_) => self.unfit += 1,
        }
    }

    fn transaction(&mut self, _: &Transaction<'_>) {}

    fn finding(&mut self, _: v1::Finding) {}
}

fn unreachable(collector: impl std::fmt::Display, error: &io::Error) -> Failure {
    Failure::new(format_args!("collector {collector}: {error}; does it listen there?"))
}

/// A collector that was there went away, or was never there, which UDP tells late.
fn left(collector: &str, messages: u64, error: &io::Error) -> Failure {
    Failure::new(format_args!(
        "collector {collector}: {error}, after {} of which it need not have all; does it listen and read there?",
        several(messages, "message", "messages")
    ))
}

/// UTC seconds, the export time of a message.
fn now() -> u32 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as u32)
}

/// Whether a packet of the connection may be in the range (TAI ns).
fn touches(connection: &v1::Connection, range: &Range<u64>) -> bool {
    let Some(first) = connection.first_packet_time else {
        return true;
    };
    let first = weir_record::time::tai_from_utc(first.unix_nanos().max(0) as u64);
    let last = first.saturating_add((connection.duration_seconds * 1e9).round() as u64);
    first < range.end && last >= range.start
}

#[cfg(test)]
mod tests {
    use weir_messages::Timestamp;

    use super::*;

    #[test]
    fn a_time_that_begins_with_the_last_packet_has_the_connection() {
        for ns in (1..100_000).map(|us| us * 1000) {
            let connection = v1::Connection {
                first_packet_time: Some(Timestamp::from_unix_nanos(0)),
                duration_seconds: ns as f64 / 1e9,
                ..v1::Connection::default()
            };
            let last = weir_record::time::tai_from_utc(ns);
            assert!(touches(&connection, &(last..u64::MAX)), "{ns}");
            assert!(!touches(&connection, &(last + 1..u64::MAX)), "{ns}");
        }
    }
}
