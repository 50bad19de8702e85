//! What the parser of the card must make of frames, for the comparison with the hardware's (rtl-tests/parser):
//! `meta FILE...` takes the Ethernet frames of captures, `meta --hostile COUNT --seed SEED` makes frames up.
//!
//! On standard output, little-endian: the number of fields (u32) and for each its width in bits (u16), the length of
//! its name (u8) and the name, first field highest, in the order of `meta_t` in hw/rtl/weir_pkg.sv. Then for each frame:
//! its captured bytes (u32), its `wire_length` input (u32), its time (u64), the packed word (whole 32-bit words), and
//! the captured bytes.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use weir_capture::CaptureFile;
use weir_engine::meta::{Class, Meta};
use weir_engine::{LinkType, Parsed, Parser, Profile};
use weir_record::Untracked;

/// Lengths of the hardware have 20 bits. It counts whole beats of 64 bytes: frames of 16,383 and more have the
/// largest length.
const MAX_LENGTH: u32 = (1 << 20) - 1;
const COUNTED: u32 = 16_383 * 64;

/// Fields of a word with widths and values, first field highest: the one place with their order.
struct Word(Vec<(&'static str, u16, u128)>);

impl Word {
    fn new(parsed: &Parsed, meta: &Meta, time: u64, number: u64, captured: u32, wire: u32) -> Self {
        let mut word = Self(Vec::with_capacity(40));
        let (meta, class, reason) = match parsed {
            Parsed::Packet => {
                let class = match meta.class {
                    Class::Tcp => 0_u8,
                    Class::Other => 1,
                    Class::IcmpError => 2,
                };
                (*meta, class, 0)
            }
            Parsed::Untracked(reason) => (Meta::default(), 3, *reason as u128),
            Parsed::Fragment(_) => (Meta::default(), 3, Untracked::Fragment as u128),
        };
        word.put("timestamp", 64, time);
        word.put("number", 64, number);
        word.put("port", 4, 0u8);
        word.put("class", 2, class);
        word.put("reason", 4, reason);
        word.put("key.low.addr", 128, u128::from_be_bytes(meta.key.low.addr));
        word.put("key.low.port", 16, meta.key.low.port);
        word.put("key.high.addr", 128, u128::from_be_bytes(meta.key.high.addr));
        word.put("key.high.port", 16, meta.key.high.port);
        word.put("key.protocol", 8, meta.key.protocol);
        word.put("key.vlans", 24, meta.key.vlans);
        word.put("from_low", 1, meta.from_low);
        word.put("wire_length", 20, wire);
        word.put("cut", 1, captured < wire);
        word.put("payload", 20, meta.payload);
        word.put("seq", 32, meta.seq);
        word.put("ack", 32, meta.ack);
        word.put("flags", 8, meta.flags);
        word.put("window", 16, meta.window);
        word.put("ip_id", 16, meta.ip_id);
        word.put("ttl", 8, meta.ttl);
        word.put("tos", 8, meta.tos);
        let options = &meta.options;
        let (tsval, tsecr) = options.timestamps.unwrap_or_default();
        word.put("options.mss", 16, options.mss);
        word.put("options.scale", 8, options.scale);
        word.put("options.sack_permitted", 1, options.sack_permitted);
        word.put("options.has_timestamps", 1, options.timestamps.is_some());
        word.put("options.tsval", 32, tsval);
        word.put("options.tsecr", 32, tsecr);
        word.put("options.sack_count", 3, options.sack_count);
        let names = [
            ("options.sack[0].left", "options.sack[0].right"),
            ("options.sack[1].left", "options.sack[1].right"),
            ("options.sack[2].left", "options.sack[2].right"),
            ("options.sack[3].left", "options.sack[3].right"),
        ];
        for ((left, right), block) in names.into_iter().zip(options.sack).rev() {
            word.put(left, 32, block.0);
            word.put(right, 32, block.1);
        }
        word.put("options.incomplete", 1, options.incomplete);
        word.put("source_mac", 48, number_of(meta.source_mac));
        word.put("destination_mac", 48, number_of(meta.destination_mac));
        word
    }

    fn put(&mut self, name: &'static str, width: u16, value: impl Into<u128>) {
        self.0.push((name, width, value.into()));
    }

    fn table(&self) -> Vec<u8> {
        let mut out = (self.0.len() as u32).to_le_bytes().to_vec();
        for (name, width, _) in &self.0 {
            out.extend(width.to_le_bytes());
            out.push(name.len() as u8);
            out.extend(name.bytes());
        }
        out
    }

    fn packed(&self) -> Vec<u8> {
        let bits: usize = self.0.iter().map(|field| usize::from(field.1)).sum();
        let mut out = vec![0u8; bits.div_ceil(32) * 4];
        let mut at = 0;
        for (_, width, value) in self.0.iter().rev() {
            for bit in 0..usize::from(*width) {
                out[(at + bit) / 8] |= ((value >> bit & 1) as u8) << ((at + bit) % 8);
            }
            at += usize::from(*width);
        }
        out
    }
}

fn number_of(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

struct Output {
    out: BufWriter<io::StdoutLock<'static>>,
    number: u64,
}

impl Output {
    fn new() -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let nothing = Parsed::Untracked(Untracked::NotIp);
        out.write_all(&Word::new(&nothing, &Meta::default(), 0, 0, 0, 0).table())?;
        Ok(Self { out, number: 0 })
    }

    /// `said` is the length on the wire that comes with the frame, 0 for none.
    fn frame(&mut self, frame: &[u8], said: u32, time: u64) -> io::Result<()> {
        self.number += 1;
        let captured = frame.len() as u32;
        let length = if captured < COUNTED { captured } else { MAX_LENGTH };
        let wire = said.max(length);
        let mut meta = Meta::default();
        let parsed = Parser::new(Profile::Nic).parse(LinkType::Ethernet, frame, wire, &mut meta);
        let word = Word::new(&parsed, &meta, time, self.number, length, wire);
        self.out.write_all(&captured.to_le_bytes())?;
        self.out.write_all(&said.to_le_bytes())?;
        self.out.write_all(&time.to_le_bytes())?;
        self.out.write_all(&word.packed())?;
        self.out.write_all(frame)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.bits() >> 16) as usize % bound.max(1)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.bits() as u8).collect()
    }
}

/// A value at a place of a header.
fn set16(header: &mut [u8], at: usize, value: usize) {
    header[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

/// Frames that look like traffic and are wrong in every possible place now and then.
struct Hostile {
    random: Random,
    /// Frames made, and the last size of those that go through all sizes.
    made: u64,
    size: usize,
    /// The last whole frame.
    last: Vec<u8>,
}

impl Hostile {
    /// The bytes of a frame and the length that comes with it.
    fn frame(&mut self) -> (Vec<u8>, u32) {
        self.made += 1;
        if self.made.is_multiple_of(50_000) {
            let mut frame = self.ethernet();
            frame.resize(COUNTED as usize - 65 + self.random.below(200), 0);
            return (frame, self.random.pick(&[0, MAX_LENGTH]));
        }
        if self.random.one_in(3) {
            // The frame before, cut: in the hardware the old bytes still stand behind its end.
            let keep = self.random.below(self.last.len().min(120) + 1);
            return (self.last[..keep].to_vec(), self.last.len() as u32);
        }
        let mut frame = if self.random.one_in(50) {
            let count = self.random.below(300);
            self.random.bytes(count)
        } else {
            self.ethernet()
        };
        self.resize(&mut frame);
        if self.random.one_in(5) {
            for _ in 0..=self.random.below(3) {
                let end = frame.len().min(200);
                if end > 0 {
                    let at = self.random.below(end);
                    frame[at] = match self.random.below(4) {
                        0 => 0,
                        1 => 0xff,
                        2 => frame[at] ^ (1 << self.random.below(8)),
                        _ => self.random.bits() as u8,
                    };
                }
            }
        }
        let whole = frame.len();
        self.last.clone_from(&frame);
        if self.random.one_in(6) {
            let keep = self.random.below(whole.min(300) + 1);
            frame.truncate(keep);
        }
        let said = match self.random.below(8) {
            0..=2 => 0,
            3..=5 => whole,
            6 => self.random.below(whole + 40),
            _ => self
                .random
                .pick(&[1, 13, 33, 1514, 9216, 9216, 9217, MAX_LENGTH as usize]),
        };
        (frame, said as u32)
    }

    /// Most frames keep their size; the others go through all sizes in turn, small ones more often.
    fn resize(&mut self, frame: &mut Vec<u8>) {
        match self.random.below(40) {
            0 => {
                self.size = if self.size >= 9300 { 0 } else { self.size + 1 };
                frame.resize(self.size, 0x5a);
            }
            1..=3 => frame.resize(self.random.below(330), 0),
            // The end of what the parser sees, beats.
            4..=6 => {
                let size =
                    self.random.pick(&[64, 128, 192, 256, 256, 256]) + self.random.pick(&[0, 1, 2, 2, 2, 3, 4]) - 2;

                frame.resize(size, 0);
            }
            9 => frame.resize(60, 0),
            _ => {}
        }
    }

    fn ethernet(&mut self) -> Vec<u8> {
        let mut frame = self.random.bytes(12);
        if self.random.one_in(40) {
            let kind = self
                .random
                .pick(&[0x0806, 0x8864, 0x0100, 0x05ff, 0x88cc, 0x6558, 0x0801]);
            frame.extend((kind as u16).to_be_bytes());
            frame.extend(self.random.bytes(60));
            return frame;
        }
        let tags = self.random.pick(&[0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3]);
        for _ in 0..tags {
            let kind = self.random.pick(&[0x8100_u16, 0x88a8, 0x9100]);
            frame.extend(kind.to_be_bytes());
            frame.extend(self.random.bytes(2));
        }
        let six = self.random.one_in(2);
        let labels = self.random.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]);
        if labels > 0 {
            frame.extend(self.random.pick(&[0x8847_u16, 0x8848]).to_be_bytes());
            for label in 1..=labels {
                let mut bytes = self.random.bytes(4);
                bytes[2] = bytes[2] & !1 | u8::from(label == labels);
                frame.extend(bytes);
            }
        } else {
            // The type does not decide, the version does.
            let claims_six = six != self.random.one_in(20);
            frame.extend(if claims_six { [0x86, 0xdd] } else { [8, 0] });
        }
        let depth = 0;
        frame.extend(if six { self.ip_6(depth) } else { self.ip_4(depth) });
        frame
    }

    fn ip_4(&mut self, depth: usize) -> Vec<u8> {
        let words = match self.random.below(20) {
            0 => 4,
            1..=10 => 5,
            _ => self.random.below(11) + 5,
        };
        let (protocol, inner) = self.behind_ip(depth, 1);
        let length = words * 4 + inner.len();
        let mut header = self.random.bytes(words.max(5) * 4);
        header[0] = 0x40 | words as u8;
        if self.random.one_in(30) {
            header[0] = self.random.bits() as u8;
        }
        let total = self.length(length);
        set16(&mut header, 2, total);
        let fragment = if self.random.one_in(25) {
            self.random.pick(&[0x2000, 1, 0x1fff, 0x3456])
        } else {
            self.random.pick(&[0, 0x4000, 0x8000, 0xc000])
        };
        set16(&mut header, 6, fragment);
        header[9] = protocol;
        self.addresses(&mut header, 12, 4);
        header.extend(inner);
        header
    }

    fn ip_6(&mut self, depth: usize) -> Vec<u8> {
        let (protocol, inner) = self.behind_ip(depth, 58);
        let mut header = self.random.bytes(40);
        header[0] = 0x60 | header[0] & 0x0f;
        if self.random.one_in(30) {
            header[0] = self.random.bits() as u8;
        }
        let length = self.length(inner.len());
        set16(&mut header, 4, length);
        header[6] = protocol;
        self.addresses(&mut header, 8, 16);
        header.extend(inner);
        header
    }

    /// Now and then equal ends, or ends that differ late, so that every part of the comparison decides.
    fn addresses(&mut self, header: &mut [u8], at: usize, size: usize) {
        if self.random.one_in(2) {
            let source = header[at..at + size].to_vec();
            header[at + size..at + 2 * size].copy_from_slice(&source);
            if self.random.one_in(2) {
                let place = at + size + self.random.below(size);
                header[place] = self.random.bits() as u8;
            }
        }
    }

    /// A length field, mostly true.
    fn length(&mut self, length: usize) -> usize {
        match self.random.below(30) {
            0 => 0,
            1 => self.random.below(length + 30),
            2 => length.saturating_sub(self.random.below(30)),
            3 => self.random.below(65_536),
            _ => length,
        }
    }

    /// Extension headers, then a transport header; its protocol number.
    fn behind_ip(&mut self, depth: usize, icmp: u8) -> (u8, Vec<u8>) {
        // Most quoted packets are of TCP: others tell less.
        let protocol = match self.random.below(if depth == 0 { 16 } else { 10 }) {
            0..=7 => 6,
            8 => 17,
            9..=11 => icmp,
            12 => self.random.pick(&[1, 58]),
            13 => 132,
            14 => self.random.pick(&[59, 4, 41, 47, 2, 50, 89]),
            _ => self.random.bits() as u8,
        };
        let mut bytes = self.transport(protocol, depth);
        let mut next = protocol;
        for _ in 0..self.random.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]) {
            let kind = self.random.pick(&[0, 43, 44, 51, 60, 135]);
            let unit = if kind == 51 { 4 } else { 8 };
            let extra = self.random.pick(&[0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 7, 22]);
            let count = if kind == 44 { 8 } else { 8 + unit * extra };
            let mut header = self.random.bytes(count);
            header[0] = next;
            header[1] = if kind == 51 { (count / 4 - 2) as u8 } else { extra as u8 };
            if kind == 44 {
                let piece = match self.random.below(8) {
                    0 => self.random.below(65_536),
                    1 => 1,
                    _ => self.random.below(8) & 6,
                };
                set16(&mut header, 2, piece);
            }
            if self.random.one_in(20) {
                header[1] = self.random.bits() as u8;
            }
            header.extend(bytes);
            bytes = header;
            next = kind;
        }
        (next, bytes)
    }

    fn transport(&mut self, protocol: u8, depth: usize) -> Vec<u8> {
        let payload = match self.random.below(20) {
            0 => self.random.below(1400),
            1..=9 => 0,
            _ => self.random.below(40),
        };
        let mut bytes = match protocol {
            6 => {
                let mut header = self.random.bytes(20);
                let options = self.options();
                header[12] = ((5 + options.len() / 4) << 4) as u8 | header[12] & 0x0f;
                if self.random.one_in(20) {
                    header[12] = self.random.bits() as u8;
                }
                header.extend(options);
                header
            }
            1 | 58 => {
                let mut header = self.random.bytes(8);
                header[0] = self
                    .random
                    .pick(&[0, 8, 3, 4, 5, 11, 12, 128, 129, 1, 2, 3, 4, 0, 6, 130]);
                if depth == 0 {
                    let six = (protocol == 58) != self.random.one_in(20);
                    let mut quoted = if six { self.ip_6(1) } else { self.ip_4(1) };
                    if self.random.one_in(2) {
                        let keep = self.random.below(quoted.len() + 1);
                        quoted.truncate(keep);
                    }
                    header.extend(quoted);
                }
                header
            }
            _ => {
                let count = self.random.pick(&[0, 3, 4, 7, 8, 8, 11, 12, 12, 16]);
                self.random.bytes(count)
            }
        };
        if self.random.one_in(2) && bytes.len() >= 4 {
            // Equal ports.
            let port = [bytes[0], bytes[1]];
            bytes[2..4].copy_from_slice(&port);
        }
        bytes.extend(self.random.bytes(payload));
        bytes
    }

    /// Up to 40 bytes of options in any layout, a multiple of 4.
    fn options(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let count = self
            .random
            .pick(&[0, 0, 4, 8, 12, 12, 12, 16, 20, 24, 28, 32, 36, 40, 40, 40]);
        if self.random.one_in(4) && count >= 12 {
            bytes.extend([1, 1, 8, 10]);
            bytes.extend(self.random.bytes(8));
        }
        while bytes.len() < count {
            let kind = self.random.pick(&[1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 8, 8, 30, 0]);
            if kind == 1 || (kind == 0 && self.random.one_in(3)) {
                bytes.push(kind);
                continue;
            }
            let true_length = match kind {
                2 => 4,
                3 => 3,
                4 => 2,
                5 => self.random.pick(&[10, 18, 26, 34, 10, 18]),
                8 => 10,
                _ => 2 + self.random.below(6),
            };
            let length = if self.random.one_in(25) {
                self.random.below(40)
            } else {
                true_length
            };
            bytes.extend([kind, length as u8]);
            bytes.extend(self.random.bytes(length.saturating_sub(2)));
        }
        bytes.truncate(count);
        bytes
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut output = Output::new()?;
    if let [hostile, count, seed, value] = arguments.as_slice()
        && hostile == "--hostile"
        && seed == "--seed"
    {
        let mut source = Hostile {
            random: Random(value.parse()?),
            made: 0,
            size: 0,
            last: Vec::new(),
        };
        for _ in 0..count.parse::<u64>()? {
            let (frame, said) = source.frame();
            let time = source.random.bits();
            output.frame(&frame, said, time)?;
        }
    } else {
        for name in &arguments {
            let mut file = CaptureFile::open(Path::new(name))?;
            loop {
                match file.next() {
                    Ok(Some(frame)) if frame.link == Some(LinkType::Ethernet) => {
                        output.frame(frame.data, frame.wire.min(MAX_LENGTH), frame.utc_ns)?;
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) => {
                        eprintln!("{error}");
                        break;
                    }
                }
            }
        }
    }
    output.out.flush()?;
    Ok(())
}
