//! Everything that is found, as one JSON object. Connections are written as they end and transactions wait encoded, so
//! that memory does not grow with what is printed of each.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use weir_analysis::{Connection, Ends, Sink, Transaction, Verdict};
use weir_messages::Encoded;
use weir_messages::v1::{self, Analysis, Finding};

use crate::error::Failure;
use crate::output::Pending;

/// How proto3 JSON begins an answer without connections and transactions.
const NEITHER: &str = r#"{"connections":[],"transactions":[],"#;

/// A sink that keeps everything until it is written.
pub struct Whole {
    connections: Connections,
    transactions: Encoded<v1::Transaction>,
    findings: Vec<Finding>,
    /// None: they are not asked for.
    segments: Option<Vec<Verdict>>,
}

/// What becomes of connections.
enum Connections {
    /// They are written at once, until it fails.
    Written(Box<Output>, io::Result<()>),
    /// They wait until it is known whether they are wanted.
    Kept(Encoded<v1::Connection>),
}

impl Whole {
    /// To `path` or standard output, on which nothing is written before a connection ends. Segments if they are wanted.
    pub fn written(path: Option<&Path>, segments: bool) -> Result<Self, Failure> {
        let out = Box::new(Output::create(path)?);
        Ok(Self::of(Connections::Written(out, Ok(())), segments))
    }

    /// In memory.
    pub fn kept(segments: bool) -> Self {
        Self::of(Connections::Kept(Encoded::default()), segments)
    }

    fn of(connections: Connections, segments: bool) -> Self {
        Self {
            connections,
            transactions: Encoded::default(),
            findings: Vec::new(),
            segments: segments.then(Vec::new),
        }
    }

    /// What was kept, written to `path` or standard output.
    pub fn to(mut self, path: Option<&Path>) -> Result<Self, Failure> {
        if let Connections::Kept(connections) = self.connections {
            let mut out = Box::new(Output::create(path)?);
            let written = connections
                .messages()
                .try_for_each(|connection| out.connection(&connection?));
            self.connections = Connections::Written(out, written);
        }
        Ok(self)
    }

    /// It is whole with `last`, which has what no sink is told. Segments come in the order of time.
    pub fn finish(self, last: Analysis) -> Result<(), Failure> {
        let Connections::Written(mut out, written) = self.connections else {
            return self.to(None)?.finish(last);
        };
        let mut segments = self.segments.unwrap_or_default();
        segments.sort_by_key(|segment| segment.time);
        let last = Analysis {
            findings: self.findings,
            segments: segments.iter().map(Verdict::message).collect(),
            ..last
        };
        let written = written.and_then(|()| out.rest(self.transactions, &last));
        out.finish(written)
    }
}

impl Sink for Whole {
    fn connection(&mut self, connection: &Connection<'_>) {
        match &mut self.connections {
            Connections::Written(out, written @ Ok(())) => *written = out.connection(&connection.message()),
            Connections::Written(_, Err(_)) => {}
            Connections::Kept(connections) => connections.push(&connection.message()),
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
}

impl Output {
    fn create(path: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self {
            // Its parts are small and many. No colours can be in it: JSON has no control characters.
            out: BufWriter::with_capacity(1 << 16, Pending::create(path)?),
            is_empty: true,
        })
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
    fn finish(self, written: io::Result<()>) -> Result<(), Failure> {
        let name = self.out.get_ref().name().to_owned();
        written
            .and_then(|()| self.out.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(|error| Failure::write(&name, &error))?
            .finish()
    }
}
