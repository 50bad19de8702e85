//! The columns that say who talks: the same wherever a row belongs to a connection.

/// The columns of a row's field `ends`.
macro_rules! ends {
    () => {
        [
            Column::always(
                "client_address",
                Cell::Address(|r: &Self| Some(r.ends.client)),
                "Address of the client.",
            ),
            Column::always(
                "client_port",
                Cell::U16(|r| Some(r.ends.client_port)),
                "Port of the client.",
            ),
            Column::always(
                "server_address",
                Cell::Address(|r| Some(r.ends.server)),
                "Address of the server.",
            ),
            Column::always(
                "server_port",
                Cell::U16(|r| Some(r.ends.server_port)),
                "Port of the server.",
            ),
        ]
    };
}
pub(super) use ends;
