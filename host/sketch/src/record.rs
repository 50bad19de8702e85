//! Statistics as records: section 10 of the specification (`docs/src/flow-engine.md`).

use weir_engine::{Engine, Meta};
use weir_record::{Burst, Header, Histogram, HistogramMore, Metric, Record, Top, TopMore};

use crate::histogram::NAMED;
use crate::talkers::TOP;
use crate::{Config, Interval, Kind, Statistics, Word, WordMaker};

/// Lane of the statistics of packets whose records have this lane.
pub const fn lane_of(lane: u8) -> u8 {
    lane ^ 8
}

/// Buckets of a HISTOGRAM record.
const BUCKETS: usize = 8;

/// Writes the statistics of all that an engine takes. Tell it of each word right after the engine.
#[derive(Debug)]
pub struct Recorder {
    config: Config,
    lane: u8,
    sequence: u32,
    maker: WordMaker,
    statistics: Statistics,
}

impl Recorder {
    /// Beside an engine whose records have this lane.
    pub fn new(config: Config, lane: u8) -> Self {
        Self {
            config,
            lane: lane_of(lane),
            sequence: 0,
            maker: WordMaker::default(),
            statistics: Statistics::new(config),
        }
    }

    /// The engine took a packet and appended records from place `first` on; statistics go behind them.
    pub fn packet(&mut self, meta: &Meta, engine: &Engine, first: usize, records: &mut Vec<Record>) {
        let word = self.maker.packet(meta, &records[first..], engine);
        self.push(&word, records);
    }

    /// The engine took a frame that no flow counts.
    pub fn untracked(&mut self, port: u8, wire: u32, engine: &Engine, records: &mut Vec<Record>) {
        let word = self.maker.untracked(port, wire, engine);
        self.push(&word, records);
    }

    /// The engine was told the time.
    pub fn time(&mut self, engine: &Engine, records: &mut Vec<Record>) {
        let word = Word {
            kind: Kind::Time,
            time: engine.now(),
            ..Word::default()
        };
        self.push(&word, records);
    }

    /// The input is over.
    pub fn finish(&mut self, records: &mut Vec<Record>) {
        if let Some(interval) = self.statistics.finish() {
            self.write(&interval, records);
        }
    }

    fn push(&mut self, word: &Word, records: &mut Vec<Record>) {
        if let Some(interval) = self.statistics.push(word) {
            self.write(&interval, records);
        }
    }

    fn header(&mut self, interval: &Interval, arg: u8) -> Header {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        Header {
            lane: self.lane,
            arg,
            sequence,
            time: interval.start,
            ..Header::default()
        }
    }

    fn write(&mut self, interval: &Interval, out: &mut Vec<Record>) {
        for (port, bursts) in interval.ports.iter().enumerate() {
            let body = Burst {
                bytes: bursts.bytes,
                frames: bursts.frames,
                peak: bursts.peak,
                peak_bin: bursts.peak_bin,
                edges: u16::from(bursts.from_start) | u16::from(bursts.to_end) << 1,
                bursts: bursts.count,
                longest: bursts.longest,
                above: bursts.above,
                threshold: self.config.thresholds[port],
                lost: 0,
            };
            out.push(body.encode(self.header(interval, port as u8)));
        }
        self.write_histograms(interval, out);
        self.write_talkers(interval, out);
    }

    fn write_histograms(&mut self, interval: &Interval, out: &mut Vec<Record>) {
        for (&(metric, service), buckets) in &interval.histograms.0 {
            let mut eight: Option<Histogram> = None;
            for (&bucket, &count) in buckets {
                let first_bucket = (bucket - bucket % BUCKETS) as u16;
                if let Some(done) = eight.take_if(|open| open.first_bucket != first_bucket) {
                    out.push(done.encode(self.header(interval, (metric as u8) << 4 | service as u8)));
                }
                let open = eight.get_or_insert(Histogram {
                    counts: [0; BUCKETS],
                    port: if service == NAMED {
                        0
                    } else {
                        self.config.services[service]
                    },
                    first_bucket,
                });
                open.counts[bucket % BUCKETS] = count;
            }
            if let Some(done) = eight {
                out.push(done.encode(self.header(interval, (metric as u8) << 4 | service as u8)));
            }
        }
        let end = HistogramMore {
            samples: std::array::from_fn(|metric| interval.histograms.samples(Metric::ALL[metric])),
            lost: 0,
        };
        out.push(end.encode(self.header(interval, 0)));
    }

    fn write_talkers(&mut self, interval: &Interval, out: &mut Vec<Record>) {
        let saturating = |value| u32::try_from(value).unwrap_or(u32::MAX);
        let totals = interval.talkers.totals();
        for weight in 0..totals.len() {
            for (address, sent) in interval.talkers.top(weight, TOP) {
                let [packets, bytes, syns] = sent.map(saturating);
                let body = Top {
                    address,
                    packets,
                    bytes,
                    syns,
                };
                out.push(body.encode(self.header(interval, weight as u8)));
            }
        }
        let [packets, bytes, syns] = totals;
        let end = TopMore {
            packets,
            bytes,
            syns,
            lost: 0,
        };
        out.push(end.encode(self.header(interval, 0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::{Class, End, Key};
    use weir_record::tcp_flag;
    use weir_record::{Kind as RecordKind, Weight};

    const START: u64 = 1_800_000_000_000_000_000;

    struct Bench {
        engine: Engine,
        recorder: Recorder,
        records: Vec<Record>,
    }

    impl Bench {
        fn new(config: Config) -> Self {
            Self {
                engine: Engine::new(weir_engine::Config::appliance()),
                recorder: Recorder::new(config, 0),
                records: Vec::new(),
            }
        }

        fn segment(&mut self, to_server: bool, time: u64, flags: u8, seq: u32, ack: u32, payload: u32) {
            let client = End {
                addr: [9; 16],
                port: 2000,
            };
            let server = End {
                addr: [3; 16],
                port: 80,
            };
            let (from, to) = if to_server { (client, server) } else { (server, client) };
            let (key, from_low) = Key::new(from, to, 6);
            let meta = Meta {
                time: START + time,
                class: Class::Tcp,
                key,
                from_low,
                wire: 54 + payload,
                payload,
                flags,
                seq,
                ack,
                window: 1000,
                ..Meta::default()
            };
            let first = self.records.len();
            self.engine.packet(&meta, meta.wire, &mut self.records);
            self.recorder.packet(&meta, &self.engine, first, &mut self.records);
        }

        /// Statistics so far, taken.
        fn taken(&mut self) -> Vec<Record> {
            let mut all = std::mem::take(&mut self.records);
            all.retain(|record| record.lane() == 8);
            all
        }
    }

    #[test]
    fn an_interval_becomes_records_when_the_next_begins() {
        let mut bench = Bench::new(Config {
            thresholds: [100, 0],
            services: [80, 0, 0, 0, 0, 0, 0],
        });
        bench.segment(true, 0, tcp_flag::SYN, 100, 0, 0);
        bench.segment(false, 5_000, tcp_flag::SYN | tcp_flag::ACK, 500, 101, 0);
        bench.segment(true, 7_000, tcp_flag::ACK, 101, 501, 0);
        bench.segment(true, 8_000, tcp_flag::ACK | tcp_flag::PSH, 101, 501, 10);
        bench.segment(false, 11_000, tcp_flag::ACK | tcp_flag::PSH, 501, 111, 20);
        assert!(bench.taken().is_empty(), "the interval goes on");
        bench.engine.time(START + 100_000_000, &mut bench.records);
        bench.recorder.time(&bench.engine, &mut bench.records);

        let records = bench.taken();
        let numbers: Vec<u32> = records.iter().map(Record::sequence).collect();
        assert_eq!(numbers, (0..records.len() as u32).collect::<Vec<_>>());
        assert!(
            records
                .iter()
                .all(|record| record.time() == START && record.flow().0 == 0)
        );
        let of = |kind, more| {
            records
                .iter()
                .filter(move |r| r.kind() == Some(kind) && r.is_continuation() == more)
        };

        let bursts: Vec<Burst> = of(RecordKind::Burst, false).map(Burst::decode).collect();
        assert_eq!(
            (bursts[0].frames, bursts[0].bytes, bursts[0].bursts, bursts[0].edges),
            (5, 300, 1, 1)
        );
        assert_eq!((bursts[1].frames, bursts[1].threshold, bursts.len()), (0, 0, 2));

        let histograms: Vec<(u8, Histogram)> = of(RecordKind::Histogram, false)
            .map(|r| (r.arg(), Histogram::decode(r)))
            .collect();
        let args: Vec<u8> = histograms.iter().map(|(arg, _)| *arg).collect();
        assert_eq!(
            args,
            [0x00, 0x00, 0x10, 0x20],
            "all of service 0; 3 and 5 us lie in two groups of eight"
        );
        assert!(histograms.iter().all(|(_, h)| h.port == 80));
        // 3,000 ns from the request to the response: 2^11 + 1 * 2^9 and more.
        assert_eq!(
            (histograms[3].1.first_bucket, histograms[3].1.counts),
            (0, [0, 0, 0, 0, 0, 0, 1, 0])
        );
        let end: Vec<HistogramMore> = of(RecordKind::Histogram, true).map(HistogramMore::decode).collect();
        assert_eq!(
            end[0].samples,
            [2, 1, 1],
            "SYN and request answered, SYN-ACK answered, one response"
        );

        let top: Vec<(u8, Top)> = of(RecordKind::Top, false).map(|r| (r.arg(), Top::decode(r))).collect();
        let by_bytes: Vec<_> = top.iter().filter(|(arg, _)| *arg == Weight::Bytes as u8).collect();
        assert_eq!((by_bytes[0].1.address, by_bytes[0].1.bytes), ([3; 16], 172));
        let syns: Vec<_> = top.iter().filter(|(arg, _)| *arg == Weight::Syns as u8).collect();
        assert_eq!((syns.len(), syns[0].1.syns), (1, 1));
        let end: Vec<TopMore> = of(RecordKind::Top, true).map(TopMore::decode).collect();
        assert_eq!((end[0].packets, end[0].bytes, end[0].syns), (5, 300, 1));

        bench.recorder.finish(&mut bench.records);
        assert!(bench.taken().is_empty(), "nothing came since");
    }

    #[test]
    fn buckets_are_told_in_groups_of_eight() {
        let mut bench = Bench::new(Config::default());
        // Responses of 1 us to 1 s: ever other buckets, and of a service without an entry.
        bench.segment(true, 0, tcp_flag::ACK, 100, 0, 1);
        let (mut client, mut server, mut time) = (101, 500, 0);
        for power in 10..24 {
            time += 1 << power;
            bench.segment(false, time, tcp_flag::ACK, server, client, 1);
            server += 1;
            time += 10;
            bench.segment(true, time, tcp_flag::ACK, client, server, 1);
            client += 1;
        }
        bench.recorder.finish(&mut bench.records);
        let responses: Vec<Histogram> = bench
            .taken()
            .iter()
            .filter(|r| r.kind() == Some(RecordKind::Histogram) && !r.is_continuation() && r.arg() == 0x27)
            .map(Histogram::decode)
            .collect();
        assert!(responses.len() > 3 && responses.is_sorted_by(|a, b| a.first_bucket < b.first_bucket));
        assert!(responses.iter().all(|h| h.first_bucket % 8 == 0 && h.port == 0));
        let counted: u32 = responses.iter().flat_map(|h| h.counts).sum();
        assert_eq!(counted, 14);
    }
}
