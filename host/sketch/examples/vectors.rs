//! Test vectors for the card's kernels: their input words, and what comes of them exactly.
//!
//!   vectors -o FOLDER FILE...              of captures, as the card would see them (a capture that ends in an error counts
//!                                          up to there); FOLDER/<name>.words, .expected
//!   vectors -o FOLDER --made zipf|uniform --packets N --seed S
//!
//! `.words`: number of fields (u32), for each its lowest bit (u16), width (u16), length of its name (u8), name; then 64
//! bytes for each word, as in `hw/hls/include/weir_word.h`. Little-endian. `.expected`: text, see `expected` below.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use weir_capture::{CaptureFile, Feed, Item};
use weir_engine::{Class, Engine, Parser, Profile};
use weir_record::Metric;
use weir_record::tcp_flag;
use weir_sketch::histogram::NAMED;
use weir_sketch::word::FIELDS;
use weir_sketch::{Config, INTERVAL_NS, Interval, Kind, Statistics, Word, WordMaker};

/// Low enough that ordinary captures have bursts.
const THRESHOLDS: [u32; 2] = [3000, 2000];
/// Services that get a table entry; the rest of the table stays empty.
const SERVICES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut folder = PathBuf::from(".");
    let (mut files, mut made, mut packets, mut seed) = (Vec::new(), None, 50_000, 1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "-o" => folder = value()?.into(),
            "--made" => made = Some(value()?),
            "--packets" => packets = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            _ => files.push(PathBuf::from(argument)),
        }
    }
    std::fs::create_dir_all(&folder)?;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        write(&folder, &name, &of_capture(&file)?, seed)?;
    }
    if let Some(kind) = made {
        write(
            &folder,
            &format!("{kind}-{seed}"),
            &of_nothing(&kind, packets, seed)?,
            seed,
        )?;
    }
    Ok(())
}

fn of_capture(path: &Path) -> Result<Vec<Word>, Box<dyn Error>> {
    let mut engine = Engine::new(weir_engine::Config::appliance());
    let mut feed = Feed::new(Parser::new(Profile::Nic));
    let mut maker = WordMaker::default();
    let (mut words, mut records) = (Vec::new(), Vec::new());
    let read = CaptureFile::open(path).and_then(|mut file| {
        feed.read(&mut file, usize::MAX, |word| {
            records.clear();
            word.enter(&mut engine, &mut records);
            let made = match word.item {
                Item::Packet(meta) => maker.packet(meta, &records, &engine),
                Item::Untracked(_) => maker.untracked(word.port, word.wire, &engine),
            };
            // The card's words that only say what time it is: some.
            let before = words.last().map_or(made.time, |last: &Word| last.time);
            if made.time - before > INTERVAL_NS {
                words.push(Word {
                    kind: Kind::Time,
                    time: before + (made.time - before) / 2,
                    ..Word::default()
                });
            }
            words.push(made);
        })
    });
    if let Err(error) = read {
        eprintln!("{}: {error}", path.display());
    }
    words.push(maker.end(&engine));
    Ok(words)
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

    fn below(&mut self, bound: u64) -> u64 {
        (self.bits() >> 16) % bound
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Three intervals of traffic. Zipf: 30,000 destinations, the n-th with a share as 1 / n^1.1, and a SYN flood of one;
/// uniform: 8,000 destinations. Few flows, so that their packets often follow each other at once.
fn of_nothing(kind: &str, packets: u64, seed: u64) -> Result<Vec<Word>, Box<dyn Error>> {
    let (count, exponent) = match kind {
        "zipf" => (30_000, 1.1),
        "uniform" => (8_000, 0.0),
        _ => return Err(format!("zipf or uniform, not {kind}").into()),
    };
    let mut random = Random(seed);
    let keys: Vec<[u8; 16]> = (0..count)
        .map(|i| {
            if i % 2 == 0 {
                // A subnet, addresses that count up.
                let mut key = [0; 16];
                key[10..12].fill(0xff);
                key[12..].copy_from_slice(&(0x0a00_0000 + i as u32).to_be_bytes());
                key
            } else {
                ((u128::from(random.bits()) << 64) | u128::from(random.bits())).to_be_bytes()
            }
        })
        .collect();
    let mut sum = 0.0;
    let shares: Vec<f64> = (1..=count)
        .map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        })
        .collect();
    let start = 1_800_000_000 * 1_000_000_000;
    let mut opened = [false; 16];
    let mut words = Vec::new();
    for i in 0..packets {
        let flood = kind == "zipf" && random.below(10) == 0;
        let rank = shares
            .partition_point(|&share| share < random.unit() * sum)
            .min(keys.len() - 1);
        let tcp_packet = flood || random.below(4) > 0;
        let flow = random.below(16);
        let tracked = !flood && random.below(8) > 0;
        let fresh = tracked && (!opened[flow as usize] || random.below(200) == 0);
        opened[flow as usize] |= tracked;
        words.push(Word {
            time: start + i * 3 * INTERVAL_NS / packets,
            port: random.below(2) as u8,
            wire: if flood { 60 } else { 60 + random.below(1455) as u32 },
            class: Some(if tcp_packet { Class::Tcp } else { Class::Other }),
            flags: if flood || random.below(30) == 0 {
                tcp_flag::SYN
            } else {
                tcp_flag::ACK
            },
            destination: keys[if flood { count / 2 } else { rank }],
            source: keys[random.below(count as u64) as usize],
            tracked,
            fresh,
            from_server: random.below(2) == 0,
            new_data: tracked && tcp_packet && random.below(3) > 0,
            rtt: (tracked && random.below(2) == 0).then(|| random.bits() >> (26 + random.below(34))),
            rtt_of_server: random.below(2) == 0,
            index: flow as u32,
            server_port: [80, 443, 53, 22, 25, 8080][flow as usize % 6],
            ..Word::default()
        });
    }
    words.push(Word {
        kind: Kind::End,
        time: start + 3 * INTERVAL_NS,
        ..Word::default()
    });
    Ok(words)
}

fn write(folder: &Path, name: &str, words: &[Word], seed: u64) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::new(File::create(folder.join(format!("{name}.words")))?);
    out.write_all(&(FIELDS.len() as u32).to_le_bytes())?;
    for (field, low, width) in FIELDS {
        out.write_all(&(low as u16).to_le_bytes())?;
        out.write_all(&(width as u16).to_le_bytes())?;
        out.write_all(&[field.len() as u8])?;
        out.write_all(field.as_bytes())?;
    }
    for word in words {
        out.write_all(&word.packed())?;
    }
    out.flush()?;

    let mut services = [0; NAMED];
    let mut known = 0;
    for word in words.iter().filter(|word| word.tracked && word.server_port != 0) {
        if known < SERVICES && !services[..known].contains(&word.server_port) {
            services[known] = word.server_port;
            known += 1;
        }
    }
    let config = Config {
        thresholds: THRESHOLDS,
        services,
    };
    let mut statistics = Statistics::new(config);
    let mut random = Random(seed);
    let mut text = String::new();
    writeln!(text, "thresholds {} {}", config.thresholds[0], config.thresholds[1])?;
    writeln!(
        text,
        "services {}",
        config.services.map(|port| port.to_string()).join(" ")
    )?;
    writeln!(
        text,
        "seed {:016x} {:016x} {:016x}",
        random.bits(),
        random.bits(),
        random.bits()
    )?;
    for word in words {
        if let Some(interval) = statistics.push(word) {
            expected(&interval, &mut text)?;
        }
    }
    std::fs::write(folder.join(format!("{name}.expected")), text)?;
    Ok(())
}

/// `interval` START; `port` PORT and its figures; `histogram` METRIC SERVICE BUCKET:COUNT ...; `samples` of each metric;
/// `talker` ADDRESS PACKETS BYTES SYNS of every destination.
fn expected(interval: &Interval, out: &mut String) -> std::fmt::Result {
    writeln!(out, "interval {}", interval.start)?;
    for (port, b) in interval.ports.iter().enumerate() {
        let edges = u8::from(b.from_start) + 2 * u8::from(b.to_end);
        writeln!(
            out,
            "port {port} {} {} {} {} {edges} {} {} {}",
            b.bytes, b.frames, b.peak, b.peak_bin, b.count, b.longest, b.above
        )?;
    }
    for ((metric, service), counts) in &interval.histograms.0 {
        write!(out, "histogram {} {service}", *metric as u8)?;
        for (bucket, count) in counts {
            write!(out, " {bucket}:{count}")?;
        }
        writeln!(out)?;
    }
    let samples = [Metric::ServerRoundTrip, Metric::ClientRoundTrip, Metric::Response]
        .map(|metric| interval.histograms.samples(metric).to_string());
    writeln!(out, "samples {}", samples.join(" "))?;
    for (key, sent) in &interval.talkers.0 {
        let address = u128::from_be_bytes(*key);
        writeln!(out, "talker {address:032x} {} {} {}", sent[0], sent[1], sent[2])?;
    }
    Ok(())
}
