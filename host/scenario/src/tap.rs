//! A tap: one capture file of what passes one or more places.

use crate::config::Tap as Config;
use crate::error::ScenarioError;
use crate::{Time, from_ms, from_s};
use std::collections::VecDeque;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use weir_lab::pcap::PcapWriter;
use weir_lab::rng::Rng;

pub(crate) struct Tap {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    config: Config,
    rng: Rng,
    writer: PcapWriter<BufWriter<File>>,
    epoch_ns: u64,
    /// Copies still to be written, in the order of their stamps.
    copies: VecDeque<(u64, Vec<u8>)>,
    pub(crate) missed: u64,
    pub(crate) duplicated: u64,
}

impl Tap {
    pub(crate) fn create(
        name: &str,
        path: PathBuf,
        snap_length: u32,
        config: Config,
        rng: Rng,
        epoch_ns: u64,
    ) -> Result<Tap, ScenarioError> {
        let file = File::create(&path).map_err(ScenarioError::io(format!("creating {}", path.display())))?;
        let writer = PcapWriter::new(BufWriter::with_capacity(1 << 20, file), snap_length)
            .map_err(ScenarioError::io(format!("writing {}", path.display())))?;
        Ok(Tap {
            name: name.into(),
            path,
            config,
            rng,
            writer,
            epoch_ns,
            copies: VecDeque::new(),
            missed: 0,
            duplicated: 0,
        })
    }

    /// Frames written.
    pub(crate) fn frames(&self) -> u64 {
        self.writer.frames()
    }

    /// The stamp that this tap's clock gives.
    pub(crate) fn stamp(&self, now: Time) -> u64 {
        let off_us = self.config.offset_us + self.config.skew_ppm * now as f64 / 1e9;
        (self.epoch_ns + now).saturating_add_signed((off_us * 1e3) as i64)
    }

    /// A frame passes: the number of its frame in the file (from 1), or none if the tap missed it.
    pub(crate) fn see(&mut self, now: Time, forward: bool, frame: &[u8]) -> Result<Option<u64>, ScenarioError> {
        let [miss, duplicate] = [self.rng.unit(), self.rng.unit()];
        let is_off = now < from_s(self.config.from_s) || self.config.one_way && !forward;
        if is_off || miss < self.config.miss {
            self.missed += 1;
            return Ok(None);
        }
        let stamp = self.stamp(now);
        self.write_copies(stamp)?;
        self.write(stamp, frame)?;
        let number = self.frames();
        if duplicate < self.config.duplicate {
            self.duplicated += 1;
            let later = stamp + from_ms(self.config.duplicate_us / 1e3);
            self.copies.push_back((later, frame.to_vec()));
        }
        Ok(Some(number))
    }

    /// Writes the copies that come before this stamp.
    fn write_copies(&mut self, stamp: u64) -> Result<(), ScenarioError> {
        while self.copies.front().is_some_and(|(at, _)| *at <= stamp) {
            if let Some((at, copy)) = self.copies.pop_front() {
                self.write(at, &copy)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, stamp: u64, frame: &[u8]) -> Result<(), ScenarioError> {
        let written = self.writer.write(stamp, frame);
        written.map_err(ScenarioError::io(format!("writing {}", self.path.display())))
    }

    pub(crate) fn finish(&mut self) -> Result<(), ScenarioError> {
        self.write_copies(u64::MAX)?;
        let flushed = self.writer.flush();
        flushed.map_err(ScenarioError::io(format!("writing {}", self.path.display())))
    }
}
