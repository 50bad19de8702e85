//! Table `segments`: what became of each segment that came twice, late or never, on what evidence.

use weir_analysis::{Ends, Verdict};

use super::column::{Cell, Column, utc};
use super::ends::ends;
use super::{Row, Table};

/// A verdict and who talked.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Who talked.
    pub ends: Ends,
    /// What became of it.
    pub verdict: Verdict,
}

impl Row for Segment {
    const TABLE: Table = Table::Segments;

    fn columns() -> Vec<Column<Self>> {
        let mut columns = vec![Column::always(
            "connection_id",
            Cell::U64(|s: &Self| Some(s.verdict.connection.0)),
            "Its connection.",
        )];
        columns.extend(ends!());
        columns.extend([
            Column::always("from_server", Cell::Bool(|s: &Self| Some(s.verdict.from_server)), "The server sent it."),
            Column::always(
                "time",
                Cell::Time(|s| utc(s.verdict.time)),
                "When it passed the tap; for bytes never seen, when they were missed first.",
            ),
            Column::known(
                "lost_time",
                Cell::Time(|s| utc(s.verdict.lost_at)),
                "When the packet passed the tap, or should have, whose loss it shows.",
            ),
            Column::always("seq", Cell::U32(|s| Some(s.verdict.seq)), "First sequence number, as on the wire."),
            Column::always(
                "length",
                Cell::U32(|s| Some(s.verdict.length)),
                "Payload in bytes; for bytes never seen, how many.",
            ),
            Column::always(
                "class",
                Cell::Name(|s| Some(s.verdict.class.name().into())),
                "COPY, WINDOW_PROBE, KEEP_ALIVE, CAPTURE_ORDER, REORDERED, RETRANSMISSION, MISSED or LOST.",
            ),
            Column::always(
                "cause",
                Cell::Name(|s| Some(s.verdict.cause.name().into())),
                "Why it was sent again: FAST, TIMEOUT, TAIL_PROBE or UNKNOWN.",
            ),
            Column::always(
                "place",
                Cell::Name(|s| Some(s.verdict.place.name().into())),
                "Where the packet was lost whose loss it shows: BEFORE_TAP, BEHIND_TAP, ACK_BEFORE_TAP, ACK_BEHIND_TAP, CAPTURE, NOWHERE or UNKNOWN.",
            ),
            Column::always(
                "evidence",
                Cell::Texts(|s| s.verdict.evidence.signs().map(|sign| sign.name.into()).collect()),
                "The signs (docs: losses).",
            ),
            Column::always(
                "confidence",
                Cell::F64(|s| Some((f64::from(s.verdict.confidence()) * 1e3).round() / 1e3)),
                "0 to 1; 0 where the place is not known.",
            ),
            Column::known(
                "episode",
                Cell::U32(|s| Some(s.verdict.episode).filter(|episode| *episode > 0)),
                "Retransmissions of one recovery have the same number, from 1 in each direction; NULL: none.",
            ),
            Column::always(
                "handshake",
                Cell::Bool(|s| Some(s.verdict.handshake)),
                "It is a SYN or SYN-ACK.",
            ),
        ]);
        columns
    }
}
