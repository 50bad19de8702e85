//! Everything that is found, as one JSON object. Connections are written as they end and transactions wait encoded, so
//! that memory does not grow with what is printed of each.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_analysis::{Connection, Ends, Sink, Transaction, Verdict};
use weir_command::Failure;
use weir_messages::Encoded;
use weir_messages::v1::{self, Analysis, Finding};

use crate::output::Pending;
use crate::parts::Parts;
use crate::taps;

/// How proto3 JSON begins an answer without connections and transactions.
const NEITHER: &str = r#"{"connections":[],"transactions":[],"#;

/// A sink of everything.
pub struct Whole {
    connections: Connections,
    transactions: Encoded<v1::Transaction>,
    findings: Vec<Finding>,
    /// None: they are not asked for.
    segments: Option<Vec<Verdict>>,
}

/// What becomes of connections. (No generic parameter: there would be one more analysis for each.)
enum Connections {
    /// They are written as they end.
    Written(Box<Output>),
    /// They wait until it is known whether they are wanted, and are written there then.
    Kept(Encoded<v1::Connection>, Option<PathBuf>),
}

impl Whole {
    /// To `path` or standard output, on which nothing is written before a connection ends. Segments if they are wanted.
    pub fn written(path: Option<&Path>, segments: bool) -> Result<Self, Failure> {
        let out = Box::new(Output::create(path)?);
        Ok(Self::of(Connections::Written(out), segments))
    }

    /// The same, in memory until [`Self::finish`].
    pub fn kept(path: Option<&Path>, segments: bool) -> Self {
        let connections = Connections::Kept(Encoded::default(), path.map(Path::to_path_buf));
        Self::of(connections, segments)
    }

    fn of(connections: Connections, segments: bool) -> Self {
        Self {
            connections,
            transactions: Encoded::default(),
            findings: Vec::new(),
            segments: segments.then(Vec::new),
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        let connections = match &self.connections {
            Connections::Written(_) => 0,
            Connections::Kept(connections, _) => connections.bytes(),
        };
        let segments = self
            .segments
            .as_ref()
            .map_or(0, |segments| size_of_val(segments.as_slice()));
        connections + self.transactions.bytes() + segments
    }

    /// `last`, which has what no sink is told, with findings, and with segments in the order of time.
    fn rest(&mut self, last: Analysis) -> Analysis {
        let mut segments = self.segments.take().unwrap_or_default();
        segments.sort_by_key(|segment| segment.time);
        Analysis {
            findings: std::mem::take(&mut self.findings),
            segments: segments.iter().map(Verdict::message).collect(),
            ..last
        }
    }

    /// The same in parts, as far as `give` says to go on.
    pub fn parts(mut self, last: Analysis, give: impl FnMut(Analysis) -> bool) {
        let mut last = self.rest(last);
        let mut parts = Parts::new(give);
        if let Connections::Kept(connections, _) = self.connections {
            // What was encoded here can be decoded.
            let connections = connections.messages().filter_map(Result::ok).map(|mut connection| {
                taps::explain(&mut connection, &last.legs, &last.lost_setups);
                connection
            });
            parts.list(connections, |part, connection| part.connections.push(connection));
        }
        let transactions = self.transactions.messages().filter_map(Result::ok);
        parts.list(transactions, |part, transaction| part.transactions.push(transaction));
        let segments = std::mem::take(&mut last.segments);
        parts.list(segments, |part, segment| part.segments.push(segment));
        let findings = std::mem::take(&mut last.findings);
        parts.list(findings, |part, finding| part.findings.push(finding));
        parts.finish(last);
    }

    /// It is whole with `last`, which has what no sink is told.
    pub fn finish(mut self, last: Analysis) -> Result<(), Failure> {
        let last = self.rest(last);
        let mut out = match self.connections {
            Connections::Written(out) => out,
            Connections::Kept(connections, path) => {
                let mut out = Box::new(Output::create(path.as_deref())?);
                for connection in connections.messages() {
                    out.write(|out| {
                        let mut connection = connection?;
                        taps::explain(&mut connection, &last.legs, &last.lost_setups);
                        out.connection(&connection)
                    });
                }
                out
            }
        };
        out.write(|out| out.rest(self.transactions, &last));
        out.finish()
    }
}

impl Sink for Whole {
    fn connection(&mut self, connection: &Connection<'_>) {
        let connection = connection.message();
        match &mut self.connections {
            Connections::Written(out) => out.write(|out| out.connection(&connection)),
            Connections::Kept(connections, _) => connections.push(&connection),
        }
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.transactions.push(&transaction.message());
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        if let Some(segments) = &mut self.segments {
            segments.push(*verdict);
        }
    }
}

/// The object on its way.
struct Output {
    out: BufWriter<Pending>,
    /// No connection is in it yet.
    is_empty: bool,
    /// The first error: nothing is written after it.
    written: io::Result<()>,
}

impl Output {
    fn create(path: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self {
            // Its parts are small and many. No colours can be in it: JSON has no control characters.
            out: BufWriter::with_capacity(1 << 16, Pending::create(path)?),
            is_empty: true,
            written: Ok(()),
        })
    }

    /// The next part, if all before it could be written.
    fn write(&mut self, part: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.written.is_ok() {
            self.written = part(self);
        }
    }

    fn connection(&mut self, connection: &v1::Connection) -> io::Result<()> {
        let begin = if self.is_empty { r#"{"connections":["# } else { "," };
        self.is_empty = false;
        self.item(begin, connection)
    }

    fn item(&mut self, before: &str, item: &impl Serialize) -> io::Result<()> {
        self.out.write_all(before.as_bytes())?;
        Ok(serde_json::to_writer(&mut self.out, item)?)
    }

    fn rest(&mut self, transactions: Encoded<v1::Transaction>, last: &Analysis) -> io::Result<()> {
        let last = serde_json::to_string(last)?;
        let Some(last) = last.strip_prefix(NEITHER) else {
            return Err(io::Error::other(
                "lists of connections and transactions come first in no answer",
            ));
        };
        if self.is_empty {
            self.out.write_all(br#"{"connections":["#)?;
        }
        self.out.write_all(br#"],"transactions":["#)?;
        let mut before = "";
        for transaction in transactions.messages() {
            self.item(before, &transaction?)?;
            before = ",";
        }
        writeln!(self.out, "],{last}")
    }

    /// It is whole, unless it could not be written.
    fn finish(self) -> Result<(), Failure> {
        let name = self.out.get_ref().name().to_owned();
        self.written
            .and_then(|()| self.out.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(|error| Failure::write(&name, &error))?
            .finish()
    }
}
