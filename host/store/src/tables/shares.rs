//! The columns that say whose time it was: the same for a connection and for a transaction.

/// The columns of a row's field `shares`.
macro_rules! shares {
    () => {
        [
            Column::known(
                "shares_user_think_seconds",
                Cell::F64(|r: &Self| Some(r.shares.as_ref()?.user_think_seconds)),
                "Whose time it was (docs: limits): the client sent nothing for more than a second.",
            ),
            Column::known(
                "shares_client_processing_seconds",
                Cell::F64(|r| Some(r.shares.as_ref()?.client_processing_seconds)),
                "The client's.",
            ),
            Column::known(
                "shares_server_processing_seconds",
                Cell::F64(|r| Some(r.shares.as_ref()?.server_processing_seconds)),
                "The server's.",
            ),
            Column::known(
                "shares_latency_seconds",
                Cell::F64(|r| r.shares.as_ref()?.latency_seconds),
                "One round trip of the path for each turn; NULL: the round trip is not known, and in the processing.",
            ),
            Column::known(
                "shares_bandwidth_seconds",
                Cell::F64(|r| Some(r.shares.as_ref()?.bandwidth_seconds)),
                "Bytes on the wire at the rate of the path.",
            ),
            Column::known(
                "shares_congestion_seconds",
                Cell::F64(|r| Some(r.shares.as_ref()?.congestion_seconds)),
                "Queueing.",
            ),
            Column::known(
                "shares_protocol_seconds",
                Cell::F64(|r| Some(r.shares.as_ref()?.protocol_seconds)),
                "Windows, recovery of losses, slow start, delayed ACKs: data waited, and the link did not.",
            ),
            Column::known(
                "shares_total_seconds",
                Cell::F64(|r| Some(r.shares.as_ref()?.total_seconds)),
                "Their sum.",
            ),
        ]
    };
}
pub(super) use shares;
