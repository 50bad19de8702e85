//! Table `packets`: a digest of each packet, when digests are on (PACKET records).

use weir_record::{Packet as Content, PacketMore, Record, tcp_flag};

use super::column::{Cell, Column, utc};
use super::tcp::flags;
use super::{Row, Table};

/// Bit of the option bits: the timestamps option is there.
const TIMESTAMPS: u8 = 1;

/// A PACKET record with its continuation.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    record: Record,
    content: Content,
    more: Option<PacketMore>,
}

impl Packet {
    /// From the records.
    pub fn new(record: &Record, more: Option<&Record>) -> Self {
        Self {
            record: *record,
            content: Content::decode(record),
            more: more.map(PacketMore::decode),
        }
    }

    const fn timestamp(&self, value: u32) -> Option<u32> {
        if self.content.option_bits & TIMESTAMPS != 0 {
            Some(value)
        } else {
            None
        }
    }
}

impl Row for Packet {
    const TABLE: Table = Table::Packets;

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::always(
                "connection_id",
                Cell::U64(|p: &Self| Some(p.record.flow().0)),
                "Its connection, or another flow (UDP, ICMP …).",
            ),
            Column::always(
                "number",
                Cell::U64(|p| Some(p.content.number)),
                "Number of the frame on its source, from 1.",
            ),
            Column::always("time", Cell::Time(|p| utc(p.record.time())), "When it passed."),
            Column::always(
                "from_server",
                Cell::Bool(|p| Some(p.record.server_to_client())),
                "The server sent it.",
            ),
            Column::always(
                "flags",
                Cell::Name(|p| Some(flags(p.content.tcp_flags))),
                "Letters of FSRPAUEC: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR; empty if it is not TCP.",
            ),
            Column::always(
                "seq",
                Cell::U32(|p| Some(p.content.seq)),
                "Sequence number, as on the wire.",
            ),
            Column::known(
                "ack",
                Cell::U32(|p| (p.content.tcp_flags & tcp_flag::ACK != 0).then_some(p.content.ack)),
                "Acknowledgment number; NULL without the flag.",
            ),
            Column::always("length", Cell::U32(|p| Some(p.content.length)), "Payload in bytes."),
            Column::always(
                "window",
                Cell::U16(|p| Some(p.content.window)),
                "Window, raw: not scaled.",
            ),
            Column::always(
                "wire_bytes",
                Cell::U16(|p| Some(p.content.wire)),
                "Bytes of the frame on the wire (saturates at 65,535).",
            ),
            Column::known(
                "tsval",
                Cell::U32(|p| p.timestamp(p.content.tsval)),
                "TSval; NULL without the option.",
            ),
            Column::known(
                "tsecr",
                Cell::U32(|p| p.timestamp(p.content.tsecr)),
                "TSecr; NULL without the option.",
            ),
            Column::always(
                "sack_left",
                Cell::U32s(|p| p.more.iter().flat_map(PacketMore::sack).map(|(left, _)| left).collect()),
                "Left edges of the SACK blocks (RFC 2018).",
            ),
            Column::always(
                "sack_right",
                Cell::U32s(|p| {
                    p.more
                        .iter()
                        .flat_map(PacketMore::sack)
                        .map(|(_, right)| right)
                        .collect()
                }),
                "Right edges.",
            ),
            Column::always(
                "ip_id",
                Cell::U16(|p| Some(p.content.ip_id)),
                "IPv4 identification; 0 with IPv6.",
            ),
            Column::always("ttl", Cell::U8(|p| Some(p.content.ttl)), "TTL or hop limit."),
            Column::always(
                "dscp",
                Cell::U8(|p| Some(p.content.tos >> 2)),
                "Differentiated services code point (RFC 2474).",
            ),
            Column::always(
                "ecn",
                Cell::U8(|p| Some(p.content.tos & 3)),
                "ECN bits of the IP header (RFC 3168): 3 is CE.",
            ),
            Column::always("port", Cell::U8(|p| Some(p.content.port)), "Port that received it."),
        ]
    }
}
