#![allow(clippy::unwrap_used)]
//! Each format built by hand in bytes, and damage to it.

use std::io::{Cursor, Read, Write};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use weir_capture::{CaptureError, CaptureFile, Cause, Feed, Item};
use weir_engine::{Config, Engine, LinkType, Parser, Profile};
use weir_record::{Kind, Port, Untracked, time::tai_from_utc};

/// Writes numbers in one byte order.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

const LITTLE: Order = Order { big: false };
const BIG: Order = Order { big: true };

impl Order {
    fn u16(self, v: u16) -> Vec<u8> {
        if self.big {
            v.to_be_bytes().into()
        } else {
            v.to_le_bytes().into()
        }
    }

    fn u32(self, v: u32) -> Vec<u8> {
        if self.big {
            v.to_be_bytes().into()
        } else {
            v.to_le_bytes().into()
        }
    }

    fn u64(self, v: u64) -> Vec<u8> {
        if self.big {
            v.to_be_bytes().into()
        } else {
            v.to_le_bytes().into()
        }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| self.u32(*w)).collect()
    }

    fn pcap(self, magic: u32, network: u32) -> Vec<u8> {
        let versions = [self.u16(2), self.u16(4)].concat();
        [self.u32(magic), versions, self.words(&[0, 0, 65_535, network])].concat()
    }

    fn record(self, seconds: u32, fraction: u32, wire: u32, data: &[u8]) -> Vec<u8> {
        [self.words(&[seconds, fraction, data.len() as u32, wire]), data.to_vec()].concat()
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = self.u32(padded as u32 + 12);
        let mut block = [self.u32(kind), length.clone(), body.to_vec()].concat();
        block.resize(8 + padded, 0);
        block.extend(length);
        block
    }

    fn section(self) -> Vec<u8> {
        let body = [self.u32(0x1a2b_3c4d), self.u16(1), self.u16(0), self.u64(u64::MAX)].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [self.u16(code), self.u16(value.len() as u16), value.to_vec()].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn interface(self, link: u16, snap: u32, options: &[u8]) -> Vec<u8> {
        self.block(
            1,
            &[self.u16(link), self.u16(0), self.u32(snap), options.to_vec()].concat(),
        )
    }

    fn packet(self, interface: u32, ticks: u64, wire: u32, data: &[u8]) -> Vec<u8> {
        let head = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, wire];
        self.block(6, &[self.words(&head), data.to_vec()].concat())
    }
}

/// A frame with its bytes owned.
#[derive(Clone, Debug, PartialEq)]
struct Owned {
    utc_ns: u64,
    interface: u32,
    link: Option<LinkType>,
    wire: u32,
    data: Vec<u8>,
}

/// A reader that gives one byte at a time: as slow a pipe as can be.
struct Dripping(Cursor<Vec<u8>>);

impl Read for Dripping {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = buffer.len().min(1);
        self.0.read(&mut buffer[..n])
    }
}

fn open(bytes: &[u8]) -> Result<CaptureFile, CaptureError> {
    CaptureFile::from_reader("test.cap".into(), Box::new(Cursor::new(bytes.to_vec())), None)
}

fn drain(file: &mut CaptureFile) -> (Vec<Owned>, Option<CaptureError>) {
    let mut frames = Vec::new();
    loop {
        match file.next() {
            Ok(Some(f)) => frames.push(Owned {
                utc_ns: f.utc_ns,
                interface: f.interface,
                link: f.link,
                wire: f.wire,
                data: f.data.to_vec(),
            }),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

fn read(bytes: &[u8]) -> (Vec<Owned>, Option<CaptureError>) {
    match open(bytes) {
        Ok(mut file) => drain(&mut file),
        Err(error) => (Vec::new(), Some(error)),
    }
}

#[track_caller]
fn whole(bytes: &[u8]) -> Vec<Owned> {
    let (frames, error) = read(bytes);
    assert!(error.is_none(), "{error:?}");
    let mut drip =
        CaptureFile::from_reader("pipe".into(), Box::new(Dripping(Cursor::new(bytes.to_vec()))), None).unwrap();
    assert_eq!(drain(&mut drip).0, frames, "a pipe gives the same");
    frames
}

fn frame(utc_ns: u64, wire: u32, data: &[u8]) -> Owned {
    let link = Some(LinkType::Ethernet);
    Owned {
        utc_ns,
        interface: 0,
        link,
        wire,
        data: data.to_vec(),
    }
}

#[test]
fn pcap_of_all_kinds() {
    for order in [LITTLE, BIG] {
        let records = [order.record(10, 20, 3, b"abc"), order.record(11, 0, 900, b"d")].concat();
        let micro = [order.pcap(0xa1b2_c3d4, 1), records.clone()].concat();
        let nano = [order.pcap(0xa1b2_3c4d, 1), records].concat();
        let second = frame(11_000_000_000, 900, b"d");
        assert_eq!(whole(&micro), [frame(10_000_020_000, 3, b"abc"), second.clone()]);
        assert_eq!(whole(&nano), [frame(10_000_000_020, 3, b"abc"), second]);
        let extended = [order.words(&[10, 20, 3, 3]), vec![9; 8], b"abc".to_vec()].concat();
        let modified = [order.pcap(0xa1b2_cd34, 1), extended].concat();
        assert_eq!(whole(&modified), [frame(10_000_020_000, 3, b"abc")]);
    }
}

/// libpcap wrote the length on the wire before the captured one until version 2.2, and some programs in 2.3.
#[test]
fn old_versions_have_their_lengths_the_other_way_round() {
    for order in [LITTLE, BIG] {
        let swapped = |minor: u16, lengths: [u32; 2]| {
            let mut file = order.pcap(0xa1b2_c3d4, 1);
            file.splice(6..8, order.u16(minor));
            let header = order.words(&[10, 20, lengths[0], lengths[1]]);
            whole(&[file, header, b"abc".to_vec()].concat())
        };
        for found in [
            swapped(2, [900, 3]),
            swapped(3, [900, 3]),
            swapped(3, [3, 900]),
            swapped(4, [3, 900]),
        ] {
            assert_eq!(found, [frame(10_000_020_000, 900, b"abc")]);
        }
    }
}

/// Which times of frames are astray, of a pcap and of a pcapng file with a block of another kind before each.
fn astray(seconds: &[u64]) -> Vec<bool> {
    let pcap = seconds.iter().map(|s| LITTLE.record(*s as u32, 0, 4, b"abcd"));
    let pcap = [LITTLE.pcap(0xa1b2_c3d4, 1), pcap.collect::<Vec<_>>().concat()].concat();
    let blocks = seconds.iter().map(|s| {
        [
            LITTLE.block(0x0bad, &[0; 100]),
            LITTLE.packet(0, s * 1_000_000, 4, b"abcd"),
        ]
        .concat()
    });
    let interface = LITTLE.interface(1, 0, &[]);
    let pcapng = [LITTLE.section(), interface, blocks.collect::<Vec<_>>().concat()].concat();
    let [pcap, pcapng] = [pcap, pcapng].map(|bytes| {
        // Byte by byte: what is looked at ahead is there to be read afterwards.
        let mut file = CaptureFile::from_reader("f".into(), Box::new(Dripping(Cursor::new(bytes))), None).unwrap();
        let mut found = Vec::new();
        while let Some(frame) = file.next().unwrap() {
            assert_eq!(
                (frame.utc_ns, frame.data),
                (seconds[found.len()] * 1_000_000_000, &b"abcd"[..])
            );
            found.push(frame.is_astray);
        }
        found
    });
    assert_eq!(pcap, pcapng);
    pcap
}

#[test]
fn a_time_far_ahead_of_both_neighbours_is_astray() {
    const DAY: u64 = 86_400;
    assert_eq!(
        astray(&[10, 10 + DAY, 10, 11, 13, 12]),
        [false, true, false, false, false, false]
    );
    // A pause, a clock that was set, or the end: nothing speaks against it.
    assert_eq!(astray(&[10, 10 + DAY, 11 + DAY, 10]), [false; 4]);
    assert_eq!(astray(&[10, 11, 11 + DAY]), [false; 3]);
    assert_eq!(astray(&[10 + DAY, 10, 11]), [false; 3]);
    // Two of them with a good one between.
    assert_eq!(
        astray(&[10, 10 + DAY, 11, 9 + DAY, 12]),
        [false, true, false, true, false]
    );
}

#[test]
fn a_frame_whose_time_is_astray_comes_now() {
    let records = [10, 86_400, 11].map(|s| LITTLE.record(s, 0, 4, b"abcd")).concat();
    let capture = [LITTLE.pcap(0xa1b2_c3d4, 1), records].concat();
    let times = |profile| {
        let mut file = open(&capture).unwrap();
        let mut times = Vec::new();
        let mut feed = Feed::new(Parser::new(profile));
        while feed.read(&mut file, 100, |word| times.push(word.time)).unwrap() {}
        times
    };
    let [before, astray, next] = [10, 86_400, 11].map(|s| tai_from_utc(s * 1_000_000_000));
    // The engine moves 0 to the time of the frame before, and counts it.
    assert_eq!(times(Profile::Full), [before, 0, next]);
    // A card takes each frame as it comes.
    assert_eq!(times(Profile::Nic), [before, astray, next]);
}

#[test]
fn the_fcs_is_not_part_of_a_frame() {
    // Bit 26: known; 2 units of 16 bits.
    let head = LITTLE.pcap(0xa1b2_c3d4, 2 << 28 | 1 << 26 | 1);
    let records = [LITTLE.record(0, 0, 8, b"abcdFCS."), LITTLE.record(0, 0, 10, b"abcdefF")].concat();
    assert_eq!(
        whole(&[head, records].concat()),
        [frame(0, 4, b"abcd"), frame(0, 6, b"abcdef")],
        "one whole, one cut inside of its FCS"
    );
    let interface = LITTLE.interface(1, 0, &LITTLE.option(13, &[4]));
    let packet = LITTLE.packet(0, 0, 8, b"abcdFCS.");
    assert_eq!(
        whole(&[LITTLE.section(), interface, packet].concat()),
        [frame(0, 4, b"abcd")]
    );
}

#[test]
fn an_unknown_link_type_is_delivered_as_such() {
    let bytes = [LITTLE.pcap(0xa1b2_c3d4, 147), LITTLE.record(0, 0, 1, b"x")].concat();
    assert_eq!(whole(&bytes)[0].link, None);
    let mut words = Vec::new();
    Feed::new(Parser::default())
        .read(&mut open(&bytes).unwrap(), 10, |w| {
            words.push(matches!(w.item, Item::Untracked(Untracked::Link)));
        })
        .unwrap();
    assert_eq!(words, [true]);
}

#[test]
fn pcapng_interfaces_have_their_own_clocks() {
    for o in [LITTLE, BIG] {
        let bytes = [
            o.section(),
            o.interface(1, 0, &[]),
            o.interface(101, 0, &o.option(9, &[9])),
            o.interface(
                113,
                0,
                &[o.option(2, b"eth0"), o.option(9, &[0x8a]), o.option(14, &o.u64(100))].concat(),
            ),
            o.interface(
                1,
                0,
                &[o.option(9, &[0]), o.option(0, &[]), o.option(14, &o.u64(5))].concat(),
            ),
            o.packet(0, 5_000_001, 60, b"micro"),
            o.block(0x0bad, b"unknown block"),
            o.packet(1, 6_000_000_001, 60, b"nano"),
            o.packet(2, 2048 + 512, 60, b"1024ths"),
            o.packet(3, 7, 60, b"seconds"),
        ]
        .concat();
        let frames = whole(&bytes);
        let times: Vec<_> = frames.iter().map(|f| f.utc_ns).collect();
        assert_eq!(times, [5_000_001_000, 6_000_000_001, 102_500_000_000, 7_000_000_000]);
        let links: Vec<_> = frames.iter().map(|f| f.link.unwrap()).collect();
        use LinkType::{Ethernet, LinuxSll, RawIp};
        assert_eq!(links, [Ethernet, RawIp, LinuxSll, Ethernet]);
        assert_eq!(frames[2].data, b"1024ths");
    }
}

#[test]
fn a_negative_time_offset() {
    let o = LITTLE;
    let interface = o.interface(1, 0, &o.option(14, &o.u64((-3i64) as u64)));
    let packet = o.packet(0, 5_000_000, 1, b"x");
    assert_eq!(
        whole(&[o.section(), interface, packet].concat())[0].utc_ns,
        2_000_000_000
    );
}

#[test]
fn sections_start_anew_in_their_own_byte_order() {
    let part =
        |o: Order, link: u16, data: &[u8]| [o.section(), o.interface(link, 0, &[]), o.packet(0, 1, 9, data)].concat();
    let frames = whole(&[part(LITTLE, 1, b"a"), part(BIG, 101, b"b")].concat());
    assert_eq!(
        (frames[0].link, frames[1].link),
        (Some(LinkType::Ethernet), Some(LinkType::RawIp))
    );
    assert_eq!(frames[1].data, b"b");
}

#[test]
fn simple_and_obsolete_packets() {
    for o in [LITTLE, BIG] {
        let simple = o.block(3, &[o.u32(900), b"abcd".to_vec()].concat());
        let obsolete = [o.u16(0), o.u16(7), o.words(&[0, 3, 2, 60]), b"xy".to_vec()].concat();
        let bytes = [o.section(), o.interface(1, 4, &[]), simple, o.block(2, &obsolete)].concat();
        assert_eq!(whole(&bytes), [frame(3_000, 900, b"abcd"), frame(3_000, 60, b"xy")]);
    }
}

#[test]
fn statistics_say_what_the_interface_lost() {
    let o = BIG;
    let options = [
        o.option(4, &o.u64(1000)),
        o.option(5, &o.u64(7)),
        o.option(7, &o.u64(2)),
    ]
    .concat();
    let statistics = o.block(5, &[o.words(&[0, 0, 0]), options].concat());
    let mut file = open(&[o.section(), o.interface(1, 0, &[]), statistics].concat()).unwrap();
    assert!(file.next().unwrap().is_none());
    assert_eq!(file.lost().collect::<Vec<_>>(), [(0, 9)]);
}

/// A packet block with options behind its data.
fn packet_with_options(o: Order, options: &[u8]) -> Vec<u8> {
    let head = [0, 0, 1, 3, 60];
    o.block(6, &[o.words(&head), b"abc\0".to_vec(), options.to_vec()].concat())
}

#[test]
fn packets_say_what_was_lost_before_them() {
    for o in [LITTLE, BIG] {
        let lost =
            |frames: u64| packet_with_options(o, &[o.option(1, b"comment"), o.option(4, &o.u64(frames))].concat());
        let obsolete = |drops: u16| {
            o.block(
                2,
                &[o.u16(0), o.u16(drops), o.words(&[0, 3, 2, 60]), b"xy".to_vec()].concat(),
            )
        };
        let statistics = |frames: u64| o.block(5, &[o.words(&[0, 0, 0]), o.option(5, &o.u64(frames))].concat());
        let begin = [o.section(), o.interface(1, 0, &[])].concat();
        let lost_of = |blocks: &[Vec<u8>]| {
            let mut file = open(&blocks.concat()).unwrap();
            while file.next().unwrap().is_some() {}
            file.lost().collect::<Vec<_>>()
        };
        assert_eq!(
            lost_of(&[begin.clone(), lost(2), o.packet(0, 2, 3, b"abc"), lost(3)]),
            [(0, 5)]
        );
        // The number may be unknown.
        assert_eq!(lost_of(&[begin.clone(), obsolete(7), obsolete(u16::MAX)]), [(0, 7)]);
        // The same frames again; and in another section others.
        assert_eq!(
            lost_of(&[begin.clone(), lost(2), statistics(2), statistics(6)]),
            [(0, 6)]
        );
        assert_eq!(
            lost_of(&[begin.clone(), statistics(7), begin.clone(), lost(1), statistics(4)]),
            [(0, 11)]
        );
    }
}

#[test]
fn interfaces_of_one_port_lost_what_they_lost_together() {
    let o = LITTLE;
    let interfaces = o.interface(1, 0, &[]).repeat(18);
    let statistics = |number: u32| {
        o.block(
            5,
            &[o.words(&[number, 0, 0]), o.option(5, &o.u64(u64::from(number)))].concat(),
        )
    };
    let bytes = [o.section(), interfaces, statistics(3), statistics(15), statistics(17)].concat();
    let mut file = open(&bytes).unwrap();
    assert!(file.next().unwrap().is_none());
    let mut engine = Engine::new(Config::file());
    Feed::new(Parser::default()).tell_lost(&file, &mut engine);
    let mut records = Vec::new();
    engine.finish(&mut records);
    let ports = records
        .iter()
        .filter(|r| r.kind() == Some(Kind::Port) && !r.is_continuation());
    let dropped: Vec<_> = ports.map(|r| (r.arg(), Port::decode(r).dropped)).collect();
    assert_eq!(dropped, [(3, 3), (15, 32)]);
}

#[test]
fn a_first_packet_without_time_has_that_of_the_next() {
    let o = LITTLE;
    let simple = || o.block(3, &[o.u32(3), b"abc".to_vec()].concat());
    let begin = [o.section(), o.interface(1, 0, &[])].concat();
    let times = |blocks: &[Vec<u8>]| whole(&blocks.concat()).iter().map(|f| f.utc_ns).collect::<Vec<_>>();
    let packet = o.packet(0, 1_700_000_000_000_000, 3, b"abc");
    let then = 1_700_000_000_000_000_000;
    assert_eq!(
        times(&[begin.clone(), simple(), simple(), packet.clone(), simple()]),
        [then, 0, then, 0],
        "0 is clamped to the time before"
    );
    assert_eq!(times(&[begin.clone(), simple(), simple()]), [0, 0]);
    assert_eq!(times(&[begin, packet, simple()]), [then, 0]);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn compressed_in_several_members() {
    let plain = [
        LITTLE.pcap(0xa1b2_c3d4, 1),
        LITTLE.record(1, 0, 3, b"abc"),
        LITTLE.record(2, 0, 3, b"def"),
    ]
    .concat();
    for compress in [gzip, zstd] {
        let members = [compress(&plain[..41]), compress(&plain[41..])].concat();
        assert_eq!(whole(&members), whole(&plain));
        let cut = &members[..members.len() - 12];
        let error = read(cut).1.unwrap();
        assert!(matches!(error.cause, Cause::Io(_) | Cause::Cut { .. }), "{error}");
        let mut damaged = compress(&plain);
        damaged[10..].fill(0x55);
        for bytes in [cut, &damaged] {
            let text = read(bytes).1.unwrap().to_string();
            assert!(text.contains("copy the file again"), "{text}");
        }
    }
}

#[test]
fn errors_name_file_place_cause_and_frames() {
    let bytes = [
        LITTLE.pcap(0xa1b2_c3d4, 1),
        LITTLE.record(1, 0, 3, b"abc"),
        LITTLE.record(2, 0, 3, b"def"),
    ]
    .concat();
    let (frames, error) = read(&bytes[..bytes.len() - 1]);
    let text = error.unwrap().to_string();
    assert_eq!(frames.len(), 1);
    for part in [
        "test.cap",
        "byte 43",
        "18 of 19 bytes",
        "the 1 frame before it was used",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(matches!(read(b"").1.unwrap().cause, Cause::Empty));
    for (bytes, begin, or_text) in [(b"vers", r#""vers""#, true), (b"\x7fELF", r#""\x7fELF""#, false)] {
        let error = read(bytes).1.unwrap();
        assert!(matches!(error.cause, Cause::NotACapture(_)));
        let text = error.to_string();
        assert!(text.contains(begin) && text.contains("editcap"), "{text}");
        assert_eq!(text.contains("if it is a text"), or_text, "{text}");
    }
    assert!(matches!(read(&bytes[..20]).1.unwrap().cause, Cause::Cut { .. }));
    let absurd = [&bytes[..24], &LITTLE.words(&[1, 0, u32::MAX, 3])].concat();
    assert!(matches!(read(&absurd).1.unwrap().cause, Cause::Corrupt(_)));
    let missing = CaptureFile::open("/no/such/file".as_ref()).unwrap_err().to_string();
    assert!(missing.contains("/no/such/file"), "{missing}");
}

#[test]
fn pcapng_errors() {
    let o = LITTLE;
    let start = [o.section(), o.interface(1, 0, &[])].concat();
    let packet = o.packet(0, 0, 3, b"abc");
    let after = |block: &[u8]| read(&[&start, &packet, block].concat());
    let corrupt = |block: &[u8], what: &str| {
        let (frames, error) = after(block);
        let text = error.unwrap().to_string();
        assert_eq!(frames.len(), 1);
        assert!(text.contains(what), "{text}");
    };
    corrupt(&o.packet(1, 0, 3, b"abc"), "interface 1");
    corrupt(&o.words(&[6, 8, 8]), "says it is 8 bytes long");
    corrupt(&o.words(&[6, u32::MAX, 8]), "bytes long");
    corrupt(&o.block(6, &[0; 4]), "too short");
    corrupt(&o.block(6, &o.words(&[0, 0, 0, 50, 50])), "room for");
    let mut two_lengths = packet.clone();
    *two_lengths.last_mut().unwrap() = 1;
    corrupt(&two_lengths, "at its end");
    corrupt(&packet[..20], "20 of");
}

/// An IPv4 packet with TCP, as `pieces` fragments.
fn fragments(pieces: usize) -> Vec<Vec<u8>> {
    let mut segment = vec![0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0];
    segment.resize(8 * 3 * pieces, 7);
    let size = segment.len() / pieces;
    let piece = |(n, data): (usize, &[u8])| {
        let more = u16::from(n + 1 < pieces) << 13;
        let field = (more | (n * size / 8) as u16).to_be_bytes();
        let total = (20 + size as u16).to_be_bytes();
        let head = [
            0x45, 0, total[0], total[1], 0, 9, field[0], field[1], 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        [&head[..], data].concat()
    };
    segment.chunks(size).enumerate().map(piece).collect()
}

#[test]
fn the_last_fragment_is_the_packet() {
    let o = LITTLE;
    let mut pieces = fragments(3);
    pieces.swap(0, 2);
    let mut bytes = [o.section(), o.interface(101, 0, &[])].concat();
    for _ in 0..20 {
        bytes.extend(o.interface(101, 0, &[]));
    }
    for (n, piece) in pieces.iter().enumerate() {
        bytes.extend(o.packet(18, 1_500_000_000_000_000 + n as u64, piece.len() as u32, piece));
    }
    let mut got = Vec::new();
    let mut feed = Feed::new(Parser::default());
    let more = feed.read(&mut open(&bytes).unwrap(), 100, |word| {
        assert_eq!(word.port, 15, "interfaces above the ports share the last");
        got.push(match word.item {
            Item::Packet(m) => Ok((m.number, m.time, m.payload, m.wire)),
            Item::Untracked(reason) => Err(reason),
        });
    });
    assert!(!more.unwrap());
    let time = tai_from_utc(1_500_000_000_000_002_000);
    let f = Err(Untracked::Fragment);
    assert_eq!(got, [f, f, Ok((3, time, 72 - 20, 44))]);
}

#[test]
fn a_limit_stops_between_frames() {
    let bytes = [
        LITTLE.pcap(0xa1b2_c3d4, 1),
        LITTLE.record(1, 0, 1, b"a"),
        LITTLE.record(2, 0, 1, b"b"),
    ]
    .concat();
    let mut file = open(&bytes).unwrap();
    let mut feed = Feed::new(Parser::default());
    let mut times = Vec::new();
    assert!(feed.read(&mut file, 1, |w| times.push(w.time)).unwrap());
    assert!(!feed.read(&mut file, 5, |w| times.push(w.time)).unwrap());
    assert_eq!(times, [tai_from_utc(1_000_000_000), tai_from_utc(2_000_000_000)]);
}

/// Files that use everything.
fn samples() -> Vec<Vec<u8>> {
    let mut list = Vec::new();
    for o in [LITTLE, BIG] {
        let mut pcap = o.pcap(0xa1b2_c3d4, 101);
        let mut ng = [
            o.section(),
            o.interface(101, 0, &[o.option(9, &[0x94]), o.option(13, &[4])].concat()),
        ]
        .concat();
        for (n, piece) in fragments(4).iter().enumerate() {
            pcap.extend(o.record(n as u32, 1, 200, piece));
            ng.extend(o.packet(0, n as u64, 200, piece));
            ng.extend(o.block(3, &[o.u32(900), piece.clone()].concat()));
            ng.extend(o.block(5, &[o.words(&[0, 0, 0]), o.option(5, &o.u64(3))].concat()));
        }
        ng.extend(o.section());
        list.extend([gzip(&pcap), zstd(&pcap), pcap, ng]);
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Damage ends in an error or in other frames, never in a panic, a hang or a large allocation.
    #[test]
    fn damage_is_survived(
        which in 0..samples().len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = samples().swap_remove(which);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(mut file) = open(&bytes) {
            let mut words = 0;
            let mut feed = Feed::new(Parser::default());
            let end = feed.read(&mut file, 1_000_000, |_| words += 1);
            prop_assert_eq!(words, file.frames());
            if let Err(error) = end {
                prop_assert!(error.to_string().contains("test.cap"));
                prop_assert!(file.next().unwrap().is_none(), "an error is the end");
            } else {
                prop_assert!(words < 1_000_000, "reading ends");
            }
        }
    }

    /// What is there before a cut is what the whole file begins with.
    #[test]
    fn a_cut_leaves_what_was_before(which in 0..samples().len(), cut in any::<prop::sample::Index>()) {
        let bytes = samples().swap_remove(which);
        let (all, error) = read(&bytes);
        prop_assert!(error.is_none());
        let (some, _) = read(&bytes[..cut.index(bytes.len())]);
        prop_assert!(all.starts_with(&some));
    }
}
