//! Table `blocks`: data of one side up to a PSH, a turn or a pause.

use weir_analysis::DataBlock;

use super::column::{Cell, Column, utc};
use super::ends::ends;
use super::{Row, Table};

impl Row for DataBlock {
    const TABLE: Table = Table::Blocks;

    fn columns() -> Vec<Column<Self>> {
        let mut columns = vec![Column::always(
            "connection_id",
            Cell::U64(|b: &Self| Some(b.id.0)),
            "Its connection.",
        )];
        columns.extend(ends!());
        columns.extend([
            Column::always(
                "from_server",
                Cell::Bool(|b: &Self| Some(b.from_server)),
                "The server sent it.",
            ),
            Column::always("first_time", Cell::Time(|b| utc(b.first)), "First packet."),
            Column::always("last_time", Cell::Time(|b| utc(b.last)), "Last packet."),
            Column::always(
                "bytes",
                Cell::U32(|b| Some(b.bytes)),
                "Sequence space that it covers, bytes that were lost before the tap included, repeats not.",
            ),
            Column::always(
                "packets",
                Cell::U16(|b| Some(b.packets)),
                "Segments that brought new bytes.",
            ),
        ]);
        columns
    }
}
