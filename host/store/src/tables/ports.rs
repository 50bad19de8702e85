//! Table `ports`: the counters of each port as they grow (PORT records).

use weir_record::{Port as Content, PortMore, Record, Untracked};

use super::column::{Cell, Column, utc};
use super::{Row, Table};

/// A PORT record with its continuation.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    record: Record,
    content: Content,
    more: Option<PortMore>,
}

impl Port {
    /// From the records.
    pub fn new(record: &Record, more: Option<&Record>) -> Self {
        Self {
            record: *record,
            content: Content::decode(record),
            more: more.map(PortMore::decode),
        }
    }

    fn untracked(&self, why: Untracked) -> Option<u32> {
        self.more.as_ref()?.untracked.get(why as usize).copied()
    }
}

impl Row for Port {
    const TABLE: Table = Table::Ports;

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::always("port", Cell::U8(|p: &Self| Some(p.record.arg())), "Number of the port."),
            Column::always(
                "time",
                Cell::Time(|p| utc(p.record.time())),
                "When the counters stood so.",
            ),
            Column::always(
                "frames",
                Cell::U64(|p| Some(p.content.frames)),
                "Frames received so far.",
            ),
            Column::always(
                "bytes",
                Cell::U64(|p| Some(p.content.bytes)),
                "Their bytes on the wire.",
            ),
            Column::always(
                "tracked",
                Cell::U64(|p| Some(p.content.tracked)),
                "Frames counted in a flow.",
            ),
            Column::always(
                "clamped",
                Cell::U32(|p| Some(p.content.clamped)),
                "Frames whose time was before an earlier frame's: moved to that time.",
            ),
            Column::always(
                "cut",
                Cell::U32(|p| Some(p.content.cut)),
                "Frames captured shorter than they were on the wire.",
            ),
            Column::always(
                "dropped",
                Cell::U32(|p| Some(p.content.dropped)),
                "Frames that the source says it lost before Weir.",
            ),
            Column::always(
                "options_skipped",
                Cell::U32(|p| Some(p.content.options_skipped)),
                "TCP packets whose options were cut, malformed or beyond the parser's limits.",
            ),
            Column::known(
                "untracked_not_ip",
                Cell::U32(|p| p.untracked(Untracked::NotIp)),
                "Frames in no flow, modulo 2^32, as the next nine: no IP inside (ARP, LLDP, LLC …).",
            ),
            Column::known(
                "untracked_link",
                Cell::U32(|p| p.untracked(Untracked::Link)),
                "Link type or link header not supported.",
            ),
            Column::known(
                "untracked_depth",
                Cell::U32(|p| p.untracked(Untracked::Depth)),
                "More tags, labels, extension headers or tunnels than the parser follows.",
            ),
            Column::known(
                "untracked_truncated",
                Cell::U32(|p| p.untracked(Untracked::Truncated)),
                "The capture cut the headers.",
            ),
            Column::known(
                "untracked_malformed",
                Cell::U32(|p| p.untracked(Untracked::Malformed)),
                "A header contradicts itself.",
            ),
            Column::known(
                "untracked_fragment",
                Cell::U32(|p| p.untracked(Untracked::Fragment)),
                "IP fragment not (or not yet) put together.",
            ),
            Column::known(
                "untracked_icmp_no_flow",
                Cell::U32(|p| p.untracked(Untracked::IcmpNoFlow)),
                "ICMP error about a flow that is not in the table.",
            ),
            Column::known(
                "untracked_table_full",
                Cell::U32(|p| p.untracked(Untracked::TableFull)),
                "No room in the flow table.",
            ),
            Column::known(
                "untracked_oversize",
                Cell::U32(|p| p.untracked(Untracked::Oversize)),
                "Longer than the profile allows.",
            ),
            Column::known(
                "untracked_profile",
                Cell::U32(|p| p.untracked(Untracked::Profile)),
                "Encapsulation outside the profile.",
            ),
        ]
    }
}
