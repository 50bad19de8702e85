//! Table `transactions`: each request with its response, when it is over; the setup of a connection is its first.

use weir_analysis::Ends;
use weir_messages::v1;

use super::column::{Cell, Column, nanos, text};
use super::ends::ends;
use super::shares::shares;
use super::{Row, Table};

/// A transaction and who talked.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Who talked.
    pub ends: Ends,
    /// What they did.
    pub message: v1::Transaction,
}

impl std::ops::Deref for Transaction {
    type Target = v1::Transaction;

    fn deref(&self) -> &v1::Transaction {
        &self.message
    }
}

impl Row for Transaction {
    const TABLE: Table = Table::Transactions;

    fn columns() -> Vec<Column<Self>> {
        let mut columns = vec![
            Column::always(
                "connection_id",
                Cell::U64(|t: &Self| Some(t.connection_id)),
                "Its connection.",
            ),
            Column::always(
                "index",
                Cell::U32(|t| Some(t.index)),
                "Position in the connection: 0 is the setup.",
            ),
            Column::always(
                "kind",
                Cell::Name(|t| text(&t.kind)),
                "SETUP, DATA or CLOSE (the client closed its side within the request).",
            ),
            Column::always(
                "signature",
                Cell::Text(|t| text(&t.signature)),
                "Its sizes with their small digits masked: transactions of one kind have one signature.",
            ),
        ];
        columns.extend(ends!());
        columns.extend([
            Column::always(
                "request_time",
                Cell::Time(|t: &Self| nanos(t.request_time)),
                "First packet of the request, or of the response where none of it was seen.",
            ),
            Column::always(
                "request_bytes",
                Cell::U64(|t| Some(t.request_bytes)),
                "Payload of the request.",
            ),
            Column::always(
                "response_bytes",
                Cell::U64(|t| Some(t.response_bytes)),
                "Payload of the response.",
            ),
            Column::always(
                "request_seconds",
                Cell::F64(|t| Some(t.request_seconds)),
                "First to last request packet.",
            ),
            Column::known(
                "server_seconds",
                Cell::F64(|t| t.server_seconds),
                "Last request packet to first response packet; NULL without a response.",
            ),
            Column::known(
                "response_seconds",
                Cell::F64(|t| t.response_seconds),
                "First to last response packet.",
            ),
            Column::known(
                "end_seconds",
                Cell::F64(|t| t.end_seconds),
                "Last request packet to last response packet; of a SETUP, first SYN to the end of the setup.",
            ),
            Column::always(
                "losses",
                Cell::U32(|t| Some(t.losses)),
                "Losses of either direction within it.",
            ),
            Column::always(
                "overlapped",
                Cell::Bool(|t| Some(t.overlapped)),
                "Request and response data crossed: the times are those of turns only.",
            ),
        ]);
        columns.extend(shares!());
        columns.push(Column::known(
            "server_uncertain_seconds",
            Cell::F64(|t| t.server_uncertain_seconds),
            "How far the server's share may be from the truth (docs: limits); NULL: no sign of a queue, of others before it on a slow link or of something missed.",
        ));
        columns.push(Column::known(
            "client_uncertain_seconds",
            Cell::F64(|t| t.client_uncertain_seconds),
            "How far the client's share may be from the truth (docs: limits); NULL: no sign that the response before waited for a slow link or in a queue.",
        ));
        columns
    }
}
