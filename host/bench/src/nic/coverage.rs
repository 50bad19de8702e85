//! How often each thing that the engine can say occurs in the records of a capture.

use std::collections::BTreeMap;
use std::path::Path;

use weir_capture::{CaptureFile, Feed};
use weir_engine::{Config, Engine, Parser, Profile};
use weir_record::tcp_flag;
use weir_record::{
    BlockEnd, ClientHow, CloseCause, CloseMore, Event, IdStep, Interval, Kind, Packet, Record, RttHow, Setup, SetupEnd,
    Untracked, flag, setup_bit, what,
};

use crate::error::Error;
use crate::say;

const BATCH: usize = 4096;

/// Names and how often they occurred.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// By name: kind, or kind and cause, or `what NAME`, and so on.
    pub counts: BTreeMap<String, u64>,
    /// Records in all.
    pub records: u64,
    /// Frames in all.
    pub frames: u64,
}

/// Things that the engine says only of what a capture cannot make often: a full table, software's own kinds, statistics
/// (which only come when they are asked for).
const SELDOM: [&str; 8] = [
    "close EVICTED",
    "untracked TABLE_FULL",
    "untracked LINK",
    "record GAP",
    "record GAP more",
    "record BURST",
    "record HISTOGRAM",
    "record TOP",
];

/// Where `IDS_SKIPPED` begins and ends: only those cases without it that make an EVENT for another reason are counted. And steps
/// that are none.
const IDS: [&str; 13] = [
    "skipped, step 2",
    "skipped, step 17",
    "skipped, over the wrap",
    "skipped, shortest pause",
    "skipped, idle",
    "skipped, FIN alone",
    "not skipped, step 1",
    "not skipped, step 18",
    "not skipped, id 0",
    "not skipped, pause too short",
    "not skipped, not in sequence",
    "far",
    "overtaken",
];
/// Its shortest pause in units of `since_data`.
const LEAST_PAUSE: u32 = 1 << 14;

impl Coverage {
    /// Run the engine (nic profile, digests on) over a capture and count.
    pub fn of(capture: &Path) -> Result<Self, Error> {
        let fail = |e: weir_capture::CaptureError| Error::new(e.to_string());
        let mut file = CaptureFile::open(capture).map_err(fail)?;
        let mut feed = Feed::new(Parser::new(Profile::Nic));
        let mut engine = Engine::new(Config {
            digests: true,
            ..Config::appliance()
        });
        let mut coverage = Self::everything();
        let mut records = Vec::new();
        while feed
            .read(&mut file, BATCH, |word| word.enter(&mut engine, &mut records))
            .map_err(fail)?
        {
            coverage.add(&records);
            records.clear();
        }
        engine.finish(&mut records);
        coverage.add(&records);
        let untracked = (0..16).map(|port| engine.port(port)).fold([0u64; 10], |mut sum, port| {
            sum.iter_mut().zip(port.untracked).for_each(|(s, n)| *s += u64::from(n));
            sum
        });
        for (reason, count) in untracked.into_iter().enumerate() {
            let name = Untracked::from_u8(reason as u8).map_or("?", Untracked::name);
            coverage.count(format!("untracked {name}"), count);
        }
        for port in 0..16 {
            let counters = engine.port(port);
            coverage.count("port clamped".into(), counters.clamped.into());
            coverage.count("port cut".into(), counters.cut.into());
            coverage.count("port options_skipped".into(), counters.options_skipped.into());
        }
        coverage.frames = file.frames();
        Ok(coverage)
    }

    /// All names with 0.
    fn everything() -> Self {
        let mut all = Self::default();
        for kind in (0..=u8::MAX).filter_map(Kind::from_u8) {
            all.count(format!("record {}", kind.name()), 0);
        }
        for name in ["clamped", "cut", "options_skipped"] {
            all.count(format!("port {name}"), 0);
        }
        let named = |names: Vec<&'static str>, of: &str, all: &mut Self| {
            names.into_iter().for_each(|name| all.count(format!("{of} {name}"), 0));
        };
        let numbers = 0..=u8::MAX;
        named(
            numbers
                .clone()
                .filter_map(ClientHow::from_u8)
                // A card knows no servers.
                .filter(|how| *how != ClientHow::Server)
                .map(ClientHow::name)
                .collect(),
            "client",
            &mut all,
        );
        named(
            numbers
                .clone()
                .filter_map(SetupEnd::from_u8)
                .map(SetupEnd::name)
                .collect(),
            "setup",
            &mut all,
        );
        named(
            numbers
                .clone()
                .filter_map(BlockEnd::from_u8)
                .map(BlockEnd::name)
                .collect(),
            "block",
            &mut all,
        );
        named(
            numbers.clone().filter_map(RttHow::from_u8).map(RttHow::name).collect(),
            "rtt",
            &mut all,
        );
        named(
            numbers.filter_map(CloseCause::from_u8).map(CloseCause::name).collect(),
            "close",
            &mut all,
        );
        for (_, name) in setup_bit::NAMES {
            all.count(format!("setup bit {name}"), 0);
        }
        for bit in 0..8 {
            all.count(format!("close bit {bit}"), 0);
        }
        for (_, name) in what::NAMES {
            all.count(format!("what {name}"), 0);
        }
        for name in IDS {
            all.count(format!("ids {name}"), 0);
        }
        for name in ["packet", "visit", "close"] {
            all.count(format!("interval by {name}"), 0);
            all.count(format!("interval by {name}, fine"), 0);
        }
        all
    }

    fn count(&mut self, name: String, by: u64) {
        *self.counts.entry(name).or_default() += by;
    }

    fn add(&mut self, records: &[Record]) {
        for r in records {
            self.one(r);
        }
        self.records += records.len() as u64;
    }

    fn one(&mut self, r: &Record) {
        let arg = r.arg();
        let Some(kind) = r.kind() else { return };
        let more = if r.is_continuation() { " more" } else { "" };
        self.count(format!("record {}{more}", kind.name()), 1);
        if r.is_continuation() {
            if kind == Kind::Close {
                let bits = CloseMore::decode(r).bits;
                for bit in (0..8).filter(|bit| bits >> bit & 1 != 0) {
                    self.count(format!("close bit {bit}"), 1);
                }
            }
            return;
        }
        let mut named = |of: &str, name: Option<&str>| self.count(format!("{of} {}", name.unwrap_or("?")), 1);
        match kind {
            Kind::Open => {
                named("client", ClientHow::from_u8(arg).map(ClientHow::name));
                if r.0[1] & flag::IPV6 != 0 {
                    named("open", Some("IPv6"));
                }
            }
            Kind::Setup => {
                named("setup", SetupEnd::from_u8(arg).map(SetupEnd::name));
                let body = Setup::decode(r);
                for (_, name) in setup_bit::NAMES.iter().filter(|(bit, _)| body.bits & bit != 0) {
                    self.count(format!("setup bit {name}"), 1);
                }
                if body.syn_count > 1 || body.syn_ack_count > 1 {
                    self.count("setup with repeats".into(), 1);
                }
            }
            Kind::Block => named("block", BlockEnd::from_u8(arg).map(BlockEnd::name)),
            Kind::Rtt => named("rtt", RttHow::from_u8(arg).map(RttHow::name)),
            Kind::Close => named("close", CloseCause::from_u8(arg).map(CloseCause::name)),
            Kind::Event => {
                let body = Event::decode(r);
                for (bit, name) in what::NAMES {
                    if body.what & bit != 0 {
                        self.count(format!("what {name}"), 1);
                    }
                }
                self.ids(&body);
            }
            Kind::Interval => {
                let body = Interval::decode(r);
                let by = ["?", "packet", "visit", "close"][usize::from(arg.min(3))];
                let fine = if body.fine != 0 { ", fine" } else { "" };
                self.count(format!("interval by {by}{fine}"), 1);
                if body.rtt_count > 0 {
                    self.count("interval with round trips".into(), 1);
                }
            }
            Kind::Packet => {
                let bits = Packet::decode(r).option_bits;
                for bit in (0..3).filter(|bit| bits >> bit & 1 != 0) {
                    self.count(format!("packet option bit {bit}"), 1);
                }
            }
            Kind::Port | Kind::Gap | Kind::Burst | Kind::Histogram | Kind::Top => {}
        }
    }

    fn ids(&mut self, event: &Event) {
        let elsewhere = what::GAP | what::BELOW | what::WILD | what::ACK_UNSEEN | what::EXPECTED_UNKNOWN | what::RST;
        let syn = event.tcp_flags & tcp_flag::SYN != 0;
        let data = !syn && (event.length > 0 || event.tcp_flags & tcp_flag::FIN != 0);
        let in_sequence = data && event.what & elsewhere == 0;
        let (skipped, step, pause) = (event.what & what::IDS_SKIPPED != 0, event.id_step, event.since_data);
        let (enough, paused) = ((2..=17).contains(&step), pause >= LEAST_PAUSE);
        let cases = [
            skipped && step == 2,
            skipped && step == 17,
            skipped && event.ip_id < u16::from(step),
            skipped && pause == LEAST_PAUSE,
            skipped && pause == u32::MAX,
            skipped && event.length == 0,
            in_sequence && paused && step == 1,
            in_sequence && paused && step == 18,
            in_sequence && paused && event.ip_id == 0,
            in_sequence && enough && pause == LEAST_PAUSE - 1,
            data && enough && paused && event.what & what::GAP != 0,
            step == IdStep::Far as u8,
            step == IdStep::Overtaken as u8,
        ];
        for (name, _) in IDS.iter().zip(cases).filter(|(_, on)| *on) {
            self.count(format!("ids {name}"), 1);
        }
    }

    /// Names that occurred fewer than `least` times, but for those that a capture cannot make often.
    pub fn below(&self, least: u64) -> Vec<&str> {
        self.counts
            .iter()
            .filter(|(name, count)| **count < least && !SELDOM.contains(&name.as_str()))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// A line for each name.
    pub fn print(&self) {
        say!("{} frames, {} records", self.frames, self.records);
        for (name, count) in &self.counts {
            say!("{count:>10}  {name}");
        }
    }
}
