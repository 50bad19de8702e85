//! Rust reads and writes the same bytes as the other languages: `vectors.txt` is made from the Python
//! module, which rtl-tests/test_record_layout.py holds equal to C and SystemVerilog.
#![allow(clippy::unwrap_used)]

use weir_record::{
    Block, Burst, Close, CloseMore, Event, EventMore, FlowId, FrameHeader, Gap, Header, Histogram, HistogramMore,
    Interval, Open, OpenMore, Packet, PacketMore, Port, PortMore, Record, Rtt, Setup, SetupMore, Top, TopMore, flag,
};

/// Header fields as the vectors give them: flags, lane, arg, sequence, flow, time.
fn header_from(columns: &[&str]) -> Header {
    let number = |i: usize| columns[i].parse::<u64>().unwrap();
    Header {
        flags: u8::try_from(number(0)).unwrap() & !flag::CONTINUATION,
        lane: u8::try_from(number(1)).unwrap(),
        arg: u8::try_from(number(2)).unwrap(),
        sequence: u32::try_from(number(3)).unwrap(),
        flow: FlowId(number(4)),
        time: number(5),
    }
}

/// For the layout that a record has: its content as text, and the record encoded anew.
macro_rules! decode_and_encode {
    ($record:expr, $header:expr; $($layout:ident),+) => {{
        let mut matches = Vec::new();
        $(if $record.kind() == Some($layout::KIND) && $record.is_continuation() == $layout::CONTINUATION {
            let content = $layout::decode(&$record);
            matches.push((format!("{content:?}"), content.encode($header)));
        })+
        matches
    }};
}

fn bytes_from(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect()
}

#[test]
fn frame_headers_decode_and_encode() {
    let mut lines = 0;
    for line in include_str!("frame_vectors.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let (hex, content) = line.split_once('\t').unwrap();
        let bytes = Record::from_slice(&bytes_from(hex)).unwrap();
        let header = FrameHeader::decode(&bytes);
        assert_eq!(format!("{header:?}"), content);
        assert_eq!(header.encode(), bytes, "{line}");
        lines += 1;
    }
    assert!(lines > 5, "frame_vectors.txt has {lines} headers");
}

#[test]
fn vectors_decode_and_encode() {
    let mut lines = 0;
    for line in include_str!("vectors.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let columns: Vec<&str> = line.split('\t').collect();
        let record = Record::from_slice(&bytes_from(columns[0])).unwrap();
        let header = header_from(&columns[1..7]);

        assert_eq!(record.flags() & !flag::CONTINUATION, header.flags, "{line}");
        assert_eq!(record.lane(), header.lane, "{line}");
        assert_eq!(record.arg(), header.arg, "{line}");
        assert_eq!(record.sequence(), header.sequence, "{line}");
        assert_eq!(record.flow(), header.flow, "{line}");
        assert_eq!(record.time(), header.time, "{line}");

        let matches = decode_and_encode!(record, header;
            Open, OpenMore, Setup, SetupMore, Block, Rtt, Event, EventMore, Interval, Close, CloseMore,
            Packet, PacketMore, Port, PortMore, Gap, Burst, Histogram, HistogramMore, Top, TopMore);
        assert_eq!(matches.len(), 1, "layouts that take this record: {line}");
        assert_eq!(matches[0].0, columns[7]);
        assert_eq!(matches[0].1, record, "{line}");
        lines += 1;
    }
    assert!(lines > 100, "vectors.txt has {lines} records");
}

#[test]
fn a_record_of_another_length_is_refused() {
    let error = Record::from_slice(&[0; 63]).unwrap_err();
    assert_eq!(error.to_string(), "a record has 64 bytes, got 63");
}
