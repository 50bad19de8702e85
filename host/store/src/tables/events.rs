//! Table `events`: each packet at which something happened, with the evidence (EVENT records).

use weir_record::{Event as Content, EventMore, NO_SCALE, Record, SINCE_DATA_NS, flag, tcp_flag, what};

use super::column::{Cell, Column, utc};
use super::tcp::flags;
use super::{Row, Table};

/// An EVENT record with its continuation.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    record: Record,
    content: Content,
    more: Option<EventMore>,
}

impl Event {
    /// From the records.
    pub fn new(record: &Record, more: Option<&Record>) -> Self {
        Self {
            record: *record,
            content: Content::decode(record),
            more: more.map(EventMore::decode),
        }
    }

    const fn is(&self, bits: u32) -> bool {
        self.content.what & bits != 0
    }

    /// A value of the packet itself: an ICMP message about the flow has none.
    fn tcp<T>(&self, value: T) -> Option<T> {
        (!self.is(what::ICMP)).then_some(value)
    }

    /// The options of a SYN.
    const fn syn(&self) -> Option<&EventMore> {
        if self.is(what::SYN_REPEAT | what::SYN_ACK_REPEAT | what::SYN_OTHER) {
            self.more.as_ref()
        } else {
            None
        }
    }

    const fn sack(&self) -> Option<&EventMore> {
        if self.is(what::SACK) { self.more.as_ref() } else { None }
    }
}

impl Row for Event {
    const TABLE: Table = Table::Events;

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::always(
                "connection_id",
                Cell::U64(|e: &Self| Some(e.record.flow().0)),
                "Its connection.",
            ),
            Column::always("time", Cell::Time(|e| utc(e.record.time())), "When the packet passed."),
            Column::always(
                "from_server",
                Cell::Bool(|e| Some(e.record.server_to_client())),
                "The server sent it.",
            ),
            Column::always(
                "conditions",
                Cell::Texts(|e| {
                    let met = what::NAMES.iter().filter(|(bit, _)| e.is(*bit));
                    met.map(|(_, name)| (*name).into()).collect()
                }),
                "What the packet met: GAP, BELOW, SACK, ZERO_WINDOW … (docs: records, What).",
            ),
            Column::known(
                "seq",
                Cell::U32(|e| Some(e.content.seq)),
                "Sequence number, as on the wire; of ICMP, that of the quoted header.",
            ),
            Column::known("length", Cell::U32(|e| e.tcp(e.content.length)), "Payload in bytes."),
            Column::known(
                "expected",
                Cell::U32(|e| {
                    (!e.is(what::EXPECTED_UNKNOWN))
                        .then(|| e.tcp(e.content.expected))
                        .flatten()
                }),
                "Next expected of this direction before the packet; with ACK_UNSEEN and none of GAP, BELOW, WILD: of the other direction.",
            ),
            Column::known(
                "acked",
                Cell::U32(|e| (!e.is(what::ACKED_UNKNOWN)).then(|| e.tcp(e.content.acked)).flatten()),
                "Highest ACK that the other side had sent.",
            ),
            Column::known(
                "ack",
                Cell::U32(|e| (e.content.tcp_flags & tcp_flag::ACK != 0).then_some(e.content.ack)),
                "Acknowledgment number of the packet; NULL without the flag.",
            ),
            Column::known(
                "tsval",
                Cell::U32(|e| e.content.sent()),
                "TSval of the packet; NULL: none, or it has `tsecr`.",
            ),
            Column::known(
                "tsecr",
                Cell::U32(|e| e.content.echo()),
                "TSecr of the first packet that can answer what came again (ACKS_REPEAT); NULL: another, or none.",
            ),
            Column::known(
                "since_data_seconds",
                // Units of 64 ns.
                Cell::F64(|e| {
                    let known = !e.is(what::IDLE_BEFORE | what::ICMP) && e.content.since_data != u32::MAX;
                    known.then(|| f64::from(e.content.since_data) * SINCE_DATA_NS as f64 * 1e-9)
                }),
                "Time since the previous data segment of this direction; NULL: not known, or above 274 s.",
            ),
            Column::known(
                "window",
                Cell::U16(|e| e.tcp(e.content.window)),
                "Window, raw: not scaled.",
            ),
            Column::always(
                "ip_id",
                Cell::U16(|e| Some(e.content.ip_id)),
                "IPv4 identification; 0 with IPv6.",
            ),
            Column::known(
                "duplicate_acks",
                Cell::U16(|e| e.tcp(u16::from(e.content.dup_acks))),
                "Duplicate ACKs in a row that the other side had sent (saturates at 63).",
            ),
            Column::always("ttl", Cell::U8(|e| Some(e.content.ttl)), "TTL or hop limit."),
            Column::known(
                "flags",
                Cell::Name(|e| e.tcp(flags(e.content.tcp_flags))),
                "Letters of FSRPAUEC: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR.",
            ),
            Column::known(
                "icmp_type",
                Cell::U8(|e| e.is(what::ICMP).then_some((e.content.length >> 8) as u8)),
                "Type of an ICMP error about the connection.",
            ),
            Column::known(
                "icmp_code",
                Cell::U8(|e| e.is(what::ICMP).then_some(e.content.length as u8)),
                "Its code.",
            ),
            Column::always(
                "sack_left",
                Cell::U32s(|e| {
                    e.sack()
                        .into_iter()
                        .flat_map(EventMore::sack)
                        .map(|(left, _)| left)
                        .collect()
                }),
                "Left edges of the SACK blocks (RFC 2018), the first being the D-SACK if there is one.",
            ),
            Column::always(
                "sack_right",
                Cell::U32s(|e| {
                    e.sack()
                        .into_iter()
                        .flat_map(EventMore::sack)
                        .map(|(_, right)| right)
                        .collect()
                }),
                "Right edges.",
            ),
            Column::known(
                "syn_mss",
                Cell::U16(|e| Some(e.syn()?.mss).filter(|mss| *mss != 0)),
                "MSS of a SYN or SYN-ACK.",
            ),
            Column::known(
                "syn_window_scale",
                Cell::U8(|e| Some(e.syn()?.scale).filter(|scale| *scale != NO_SCALE)),
                "Window scale of a SYN or SYN-ACK.",
            ),
            Column::known(
                "syn_sack_permitted",
                Cell::Bool(|e| Some(e.syn()?.sack_permitted != 0)),
                "A SYN or SYN-ACK permits SACK.",
            ),
            Column::always(
                "merged",
                Cell::Bool(|e| Some(e.record.flags() & flag::MERGED != 0)),
                "Made from more than one record because records could not leave.",
            ),
            Column::known(
                "id_step",
                Cell::U8(|e| Some(e.content.id_step).filter(|step| *step != 0 || e.is(what::COPY))),
                "IP id above that of the direction's newest TCP packet before, modulo 2^16 (254: 1 to 256 below, made before it; 255: farther); NULL: not known, or the same without COPY.",
            ),
        ]
    }
}
