//! The list of tables with their schemas.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use weir_analysis::DataBlock;
use weir_messages::v1::Connection;

use super::builder::Row;
use super::column::{Column, name_type};
use super::{Event, Finding, Interval, Packet, Port, Segment, Transaction};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// TCP connections.
    Connections,
    /// Requests with their responses.
    Transactions,
    /// Data blocks.
    Blocks,
    /// Verdicts on segments.
    Segments,
    /// Evidence, packet by packet.
    Events,
    /// Counters per interval.
    Intervals,
    /// Digests of packets.
    Packets,
    /// Findings.
    Findings,
    /// Counters of ports.
    Ports,
}

/// A column for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// Its Arrow type.
    pub data_type: DataType,
    /// It may be NULL.
    pub nullable: bool,
    /// What it is.
    pub doc: &'static str,
}

/// What is made of the columns' definitions once.
struct Definition {
    schema: SchemaRef,
    columns: Vec<Described>,
}

static DEFINITIONS: LazyLock<Vec<Definition>> =
    LazyLock::new(|| Table::ALL.iter().map(|table| table.define()).collect());

impl Table {
    /// All tables; their numbers are their places.
    pub const ALL: [Self; 9] = [
        Self::Connections,
        Self::Transactions,
        Self::Blocks,
        Self::Segments,
        Self::Events,
        Self::Intervals,
        Self::Packets,
        Self::Findings,
        Self::Ports,
    ];

    /// Its name in SQL and on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Transactions => "transactions",
            Self::Blocks => "blocks",
            Self::Segments => "segments",
            Self::Events => "events",
            Self::Intervals => "intervals",
            Self::Packets => "packets",
            Self::Findings => "findings",
            Self::Ports => "ports",
        }
    }

    /// The table of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// What a row is.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Connections => {
                "A TCP connection, written when it is over, or as it stands when the input ends (close_kind OPEN)."
            }
            Self::Transactions => {
                "A request with its response, written when it is over; the setup of each connection is its first."
            }
            Self::Blocks => "Data of one side of a connection up to a PSH, a turn or a pause.",
            Self::Segments => {
                "What became of a segment that came twice, late or never, written when nothing can change it any more."
            }
            Self::Events => "A packet at which something happened, with the evidence (EVENT records).",
            Self::Intervals => {
                "One direction of a flow in 100 ms, or 10 ms while in trouble, if it had packets then (INTERVAL records): running totals and extremes."
            }
            Self::Packets => "A packet, when digests are on (PACKET records).",
            Self::Findings => "Something that an expert would point out, as it stood at a time.",
            Self::Ports => "The counters of a port, each time that they were told (PORT records).",
        }
    }

    /// The column by which a row belongs to an hour; files are sorted by it.
    pub const fn time_column(self) -> &'static str {
        match self {
            Self::Connections => "first_packet_time",
            Self::Transactions => "request_time",
            Self::Blocks => "first_time",
            Self::Intervals => "start_time",
            Self::Segments | Self::Events | Self::Packets | Self::Findings | Self::Ports => "time",
        }
    }

    /// Its schema, `tap` first.
    pub fn schema(self) -> SchemaRef {
        Arc::clone(&DEFINITIONS[self as usize].schema)
    }

    /// Its columns for people, in the order of the schema.
    pub fn columns(self) -> &'static [Described] {
        &DEFINITIONS[self as usize].columns
    }

    fn define(self) -> Definition {
        match self {
            Self::Connections => define::<Connection>(),
            Self::Transactions => define::<Transaction>(),
            Self::Blocks => define::<DataBlock>(),
            Self::Segments => define::<Segment>(),
            Self::Events => define::<Event>(),
            Self::Intervals => define::<Interval>(),
            Self::Packets => define::<Packet>(),
            Self::Findings => define::<Finding>(),
            Self::Ports => define::<Port>(),
        }
    }
}

fn define<R: Row>() -> Definition {
    let columns = R::columns();
    let tap = Field::new("tap", name_type(), false);
    let fields: Vec<_> = std::iter::once(tap).chain(columns.iter().map(Column::field)).collect();
    let docs = std::iter::once("Where the packets were seen.").chain(columns.iter().map(|column| column.doc));
    let names = std::iter::once("tap").chain(columns.iter().map(|column| column.name));
    let describe = |((name, doc), field): ((&'static str, &'static str), &Field)| Described {
        name,
        data_type: field.data_type().clone(),
        nullable: field.is_nullable(),
        doc,
    };
    Definition {
        columns: names.zip(docs).zip(&fields).map(describe).collect(),
        schema: Arc::new(Schema::new(fields)),
    }
}
