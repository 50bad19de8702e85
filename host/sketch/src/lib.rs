//! Statistics per 100 ms that no flow record holds: microbursts of the ports, histograms of round-trip and response
//! times per service, destinations that are sent most.
//!
//! Exact, and written without a look at the card's kernels (`hw/hls`), which are held to it: bursts and histograms are
//! to be equal, the kernels' sketch is to keep its bound (`hw/hls/test`). What each figure means stands in `docs/src/hls.md`.
//!
//! [`word`] makes the kernels' input from packets and the records that the flow engine made of them; [`Statistics`]
//! takes words and gives an [`Interval`] for every 100 ms with packets; [`Recorder`] is all of it beside an engine, and
//! writes records. No I/O, no clock.
#![forbid(unsafe_code)]

pub mod bursts;
pub mod histogram;
pub mod record;
pub mod talkers;
pub mod word;

pub use record::Recorder;
pub use word::{Kind, Word, WordMaker};

/// Length of an interval; intervals lie on the grid of TAI time.
pub const INTERVAL_NS: u64 = 100_000_000;

/// Settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Bytes in 100 µs that make a bin part of a burst, for each port; 0: no bursts are looked for.
    pub thresholds: [u32; bursts::PORTS],
    /// Server ports with histograms of their own; 0: no entry.
    pub services: [u16; histogram::NAMED],
}

/// What an interval with packets holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// TAI ns.
    pub start: u64,
    /// Bursts by port.
    pub ports: [bursts::Bursts; bursts::PORTS],
    /// Histograms that are not empty.
    pub histograms: histogram::Histograms,
    /// What every destination was sent.
    pub talkers: talkers::Talkers,
}

/// Words in, intervals out.
#[derive(Debug)]
pub struct Statistics {
    config: Config,
    start: Option<u64>,
    bins: bursts::Bins,
    requests: histogram::Requests,
    histograms: histogram::Histograms,
    talkers: talkers::Talkers,
}

impl Statistics {
    /// Nothing seen yet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            start: None,
            bins: bursts::Bins::default(),
            requests: histogram::Requests::default(),
            histograms: histogram::Histograms::default(),
            talkers: talkers::Talkers::default(),
        }
    }

    /// Take a word; an interval that it ends.
    pub fn push(&mut self, word: &Word) -> Option<Interval> {
        let start = word.time - word.time % INTERVAL_NS;
        let over = self
            .start
            .is_some_and(|current| current != start || word.kind == Kind::End);
        let done = if over { self.finish() } else { None };
        if word.kind == Kind::Packet {
            self.start = Some(start);
            self.bins.add(word);
            self.histograms.add(word, self.requests.response(word), &self.config);
            self.talkers.add(word);
        }
        done
    }

    /// End the interval in progress.
    pub fn finish(&mut self) -> Option<Interval> {
        let start = self.start.take()?;
        Some(Interval {
            start,
            ports: std::mem::take(&mut self.bins).bursts(&self.config),
            histograms: std::mem::take(&mut self.histograms),
            talkers: std::mem::take(&mut self.talkers),
        })
    }
}
