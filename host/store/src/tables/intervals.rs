//! Table `intervals`: each direction of a flow, each 100 ms (10 ms in trouble) in which it had packets (INTERVAL).

use weir_record::{INTERVAL_RTT_NS, Interval as Content, Record, flag};

use super::column::{Cell, Column, utc};
use super::{Row, Table};

/// An INTERVAL record.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    record: Record,
    content: Content,
}

impl Interval {
    /// From the record.
    pub fn new(record: &Record) -> Self {
        Self {
            record: *record,
            content: Content::decode(record),
        }
    }

    const fn has_window(&self) -> bool {
        self.content.window_min <= self.content.window_max
    }

    /// Units of 1,024 ns.
    fn rtt(&self, units: u32) -> Option<f64> {
        (self.content.rtt_count > 0).then(|| f64::from(units) * INTERVAL_RTT_NS as f64 * 1e-9)
    }
}

impl Row for Interval {
    const TABLE: Table = Table::Intervals;

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::always(
                "connection_id",
                Cell::U64(|i: &Self| Some(i.record.flow().0)),
                "Its connection, or another flow (UDP, ICMP …).",
            ),
            Column::always(
                "from_server",
                Cell::Bool(|i| Some(i.record.server_to_client())),
                "What the server sent.",
            ),
            Column::always(
                "start_time",
                Cell::Time(|i| utc(i.content.start)),
                "Start of the interval.",
            ),
            Column::always(
                "end_time",
                Cell::Time(|i| utc(i.record.time())),
                "When it was found to be over.",
            ),
            Column::always(
                "fine",
                Cell::Bool(|i| Some(i.content.fine != 0)),
                "An interval of 10 ms, not of 100 ms.",
            ),
            Column::always(
                "packets_so_far",
                Cell::U32(|i| Some(i.content.packets)),
                "Packets since the flow opened, modulo 2^32.",
            ),
            Column::always(
                "payload_bytes_so_far",
                Cell::U64(|i| Some(i.content.payload)),
                "Payload bytes since the flow opened, repeats included, modulo 2^36.",
            ),
            Column::always(
                "max_in_flight",
                Cell::U32(|i| Some(i.content.flight_max)),
                "Most bytes in flight in the interval (saturates at 2^30 - 1).",
            ),
            Column::known(
                "min_window",
                Cell::U16(|i| i.has_window().then_some(i.content.window_min)),
                "Smallest window that this side advertised in it, raw: not scaled.",
            ),
            Column::known(
                "max_window",
                Cell::U16(|i| i.has_window().then_some(i.content.window_max)),
                "Largest.",
            ),
            Column::known(
                "rtt_min_seconds",
                Cell::F64(|i| i.rtt(i.content.rtt_min)),
                "Smallest round trip from the tap to the receiver and back, in steps of 1,024 ns (saturates at 17.2 s).",
            ),
            Column::known("rtt_max_seconds", Cell::F64(|i| i.rtt(i.content.rtt_max)), "Largest."),
            Column::always(
                "rtt_samples",
                Cell::U8(|i| Some(i.content.rtt_count)),
                "How many there were (saturates at 255).",
            ),
            Column::always(
                "merged",
                Cell::Bool(|i| Some(i.record.flags() & flag::MERGED != 0)),
                "Made from more than one record because records could not leave.",
            ),
            Column::known(
                "ip_id",
                Cell::U16(|i| Some(i.content.ip_id).filter(|id| *id != 0)),
                "IPv4 identification of the direction's newest TCP packet; NULL: none or 0.",
            ),
        ]
    }
}
