//! A capture as a play list for the card's logic: frames, scan visits, seconds and the end, in the engine's order, with
//! what the engine decided about each, so that a bench can stand in for any part of the logic.
//!
//! The list begins with 64 bytes (`WEIRPLAY`, version, number of ports). Each item has 64 bytes, see [`Item::bytes`]; a
//! frame's captured bytes follow, filled up with zeros to whole beats of 64 bytes. All numbers are little-endian.

use std::io::Write;
use std::path::Path;

use weir_capture::{CaptureFile, Feed, Item as Parsed, card};
use weir_engine::{Class, Config, Engine, Parser, Profile};
use weir_record::time::tai_from_utc;
use weir_record::{CloseCause, Kind, Record, Untracked};

use super::visits::Visits;
use crate::error::Error;

const MAGIC: &[u8; 8] = b"WEIRPLAY";
const VERSION: u32 = 2;
const BEAT: usize = 64;
const SECOND: u64 = 1_000_000_000;
/// Index of a frame that no flow counts.
const NO_INDEX: u32 = u32::MAX;

/// Settings of the play list.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Contexts of the flow table.
    pub contexts: Option<u32>,
    /// Make every visit.
    pub all_visits: bool,
    /// VLAN ids are part of the key.
    pub vlan_in_key: bool,
}

/// What a list holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames.
    pub frames: u64,
    /// Visits.
    pub visits: u64,
    /// Frames of the file that cannot come to the card.
    pub left_out: u64,
    /// Ports that frames come in by: the highest number plus 1.
    pub ports: u8,
}

/// Kinds of item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Frame = 0,
    Visit = 1,
    /// `now` passed a second: PORT is due of each port.
    Second = 2,
    /// Close all contexts below `index`, ascending; then PORT of each port.
    End = 3,
}

/// The packet is counted in a flow, or the visited context is in use.
const TRACKED: u8 = 1;
/// The packet opens a flow in a context that was free or timed out.
const FRESH: u8 = 2;
/// The flow in the context is timed out.
const EXPIRED: u8 = 4;

#[derive(Clone, Copy)]
struct Item {
    what: What,
    port: u8,
    flags: u8,
    /// [`Untracked`] of a frame that is not tracked.
    reason: u8,
    index: u32,
    /// TAI ns: of a frame as it came, maybe behind `now`.
    time: u64,
    now: u64,
    /// Length on the wire if the frame was cut, else 0.
    wire: u32,
    captured: u32,
    /// Of the frame on its port, from 1.
    number: u64,
    /// Time of the last packet in the context before this item.
    last_seen: u64,
    /// Of the frame in the file, from 1.
    place: u64,
}

impl Item {
    const fn new(what: What, time: u64) -> Self {
        Self {
            what,
            port: 0,
            flags: 0,
            reason: 0,
            index: NO_INDEX,
            time,
            now: time,
            wire: 0,
            captured: 0,
            number: 0,
            last_seen: 0,
            place: 0,
        }
    }

    fn bytes(&self) -> [u8; BEAT] {
        let mut out = [0; BEAT];
        out[..4].copy_from_slice(&[self.what as u8, self.port, self.flags, self.reason]);
        out[4..8].copy_from_slice(&self.index.to_le_bytes());
        out[8..16].copy_from_slice(&self.time.to_le_bytes());
        out[16..24].copy_from_slice(&self.now.to_le_bytes());
        out[24..28].copy_from_slice(&self.wire.to_le_bytes());
        out[28..32].copy_from_slice(&self.captured.to_le_bytes());
        out[32..40].copy_from_slice(&self.number.to_le_bytes());
        out[40..48].copy_from_slice(&self.last_seen.to_le_bytes());
        out[48..56].copy_from_slice(&self.place.to_le_bytes());
        out
    }
}

/// What the player knows of a context.
#[derive(Clone, Copy, Default)]
struct Context {
    in_use: bool,
    last_seen: u64,
}

struct Player<'a> {
    out: &'a mut dyn Write,
    engine: Engine,
    records: Vec<Record>,
    contexts: Vec<Context>,
    next_second: u64,
    counts: Counts,
}

/// Write the play list of a capture. A file that is damaged in the middle counts up to there, as for the whole command.
pub fn write(capture: &Path, options: &Options, out: &mut dyn Write) -> Result<Counts, Error> {
    let fail = |e: std::io::Error| Error::new(format!("cannot write the play list: {e}"));
    let mut file = CaptureFile::open(capture).map_err(|e| Error::new(e.to_string()))?;
    let mut feed = Feed::new(Parser::new(Profile::Nic));
    let config = Config {
        contexts: options.contexts.unwrap_or(Config::appliance().contexts),
        vlan_in_key: options.vlan_in_key,
        ..Config::appliance()
    };
    let mut visits = Visits::new(&config, options.all_visits);
    let mut player = Player {
        out,
        engine: Engine::new(config),
        records: Vec::new(),
        contexts: Vec::new(),
        next_second: 0,
        counts: Counts::default(),
    };
    let mut numbers = [0u64; 16];
    let mut place = 0;

    let mut head = [0; BEAT];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..16].copy_from_slice(&card::PORTS.to_le_bytes());
    player.out.write_all(&head).map_err(fail)?;
    while let Ok(Some(frame)) = file.next() {
        place += 1;
        let Some(port) = card::port(&frame) else {
            player.counts.left_out += 1;
            continue;
        };
        let time = tai_from_utc(frame.utc_ns);
        let now = time.clamp(player.engine.now(), 1 << 63);
        visits
            .until(now, |time, index| player.visit(time, index))
            .map_err(fail)?;
        player.pass_second(now).map_err(fail)?;
        player.time(now);

        let captured = frame.data.len() as u32;
        numbers[usize::from(port)] += 1;
        let mut item = Item {
            port,
            time,
            wire: if frame.wire > captured { frame.wire } else { 0 },
            captured,
            number: numbers[usize::from(port)],
            place,
            ..Item::new(What::Frame, now)
        };
        feed.frame(port, time, frame.link, frame.data, frame.wire, |word| {
            player.frame(&word, &mut item, &mut visits);
        });
        player.out.write_all(&item.bytes()).map_err(fail)?;
        player.out.write_all(frame.data).map_err(fail)?;
        let padding = frame.data.len().next_multiple_of(BEAT) - frame.data.len();
        player.out.write_all(&[0; BEAT][..padding]).map_err(fail)?;
        player.counts.frames += 1;
        player.counts.ports = player.counts.ports.max(port + 1);
    }
    let now = player.engine.now();
    visits
        .until(now, |time, index| player.visit(time, index))
        .map_err(fail)?;
    let end = Item {
        index: player.engine.contexts_used(),
        ..Item::new(What::End, now)
    };
    player.out.write_all(&end.bytes()).map_err(fail)?;
    for index in 0..end.index {
        let state = player.context(index);
        let mut item = Item::new(What::End, now);
        item.index = index;
        item.last_seen = state.last_seen;
        item.flags = if state.in_use { TRACKED } else { 0 };
        player.out.write_all(&item.bytes()).map_err(fail)?;
    }
    player.out.flush().map_err(fail)?;
    Ok(player.counts)
}

impl Player<'_> {
    fn context(&mut self, index: u32) -> &mut Context {
        let place = index as usize;
        if self.contexts.len() <= place {
            self.contexts.resize(place + 1, Context::default());
        }
        &mut self.contexts[place]
    }

    /// The engine goes on to `time`; contexts that it closes are free.
    fn time(&mut self, time: u64) -> bool {
        self.engine.time(time, &mut self.records);
        let closes: Vec<u32> = self.closes().map(|(index, _)| index).collect();
        for index in &closes {
            self.context(*index).in_use = false;
        }
        self.records.clear();
        !closes.is_empty()
    }

    /// (index, cause) of the CLOSE records at hand.
    fn closes(&self) -> impl Iterator<Item = (u32, u8)> + '_ {
        self.records
            .iter()
            .filter(|r| r.kind() == Some(Kind::Close) && !r.is_continuation())
            .map(|r| (r.flow().index() as u32, r.arg()))
    }

    fn visit(&mut self, time: u64, index: u32) -> std::io::Result<()> {
        self.pass_second(time - 1)?; // a visit at the second itself comes before PORT
        let mut item = Item::new(What::Visit, time);
        item.index = index;
        let before = *self.context(index);
        item.last_seen = before.last_seen;
        let closed = self.time(time) && !self.context(index).in_use;
        item.flags |= if before.in_use { TRACKED } else { 0 };
        item.flags |= if before.in_use && closed { EXPIRED } else { 0 };
        self.counts.visits += 1;
        self.out.write_all(&item.bytes())
    }

    /// An item for the second that `time` reaches, if it is one that the engine speaks of.
    fn pass_second(&mut self, time: u64) -> std::io::Result<()> {
        if time < self.next_second {
            return Ok(());
        }
        let second = self.next_second;
        self.next_second = (time / SECOND + 1) * SECOND;
        match second {
            0 => Ok(()),
            second => self.out.write_all(&Item::new(What::Second, second).bytes()),
        }
    }

    fn frame(&mut self, word: &weir_capture::Word<'_>, item: &mut Item, visits: &mut Visits) {
        let meta = match word.item {
            Parsed::Untracked(reason) => {
                item.reason = reason as u8;
                word.enter(&mut self.engine, &mut self.records);
                self.records.clear();
                return;
            }
            Parsed::Packet(meta) => meta,
        };
        let known = self.engine.context(meta);
        let tracked = self.engine.port(item.port).tracked;
        word.enter(&mut self.engine, &mut self.records);
        let expired = self.closes().any(|(_, cause)| cause != CloseCause::Reuse as u8);
        self.records.clear();
        if self.engine.port(item.port).tracked == tracked {
            item.reason = match meta.class {
                Class::IcmpError => Untracked::IcmpNoFlow as u8,
                Class::Tcp | Class::Other => Untracked::TableFull as u8,
            };
            return;
        }
        let Some(index) = self.engine.context(meta) else { return };
        item.index = index;
        item.flags = TRACKED | if known.is_none() || expired { FRESH } else { 0 } | if expired { EXPIRED } else { 0 };
        let now = item.now;
        let context = self.context(index);
        item.last_seen = context.last_seen;
        if meta.class != Class::IcmpError {
            *context = Context {
                in_use: true,
                last_seen: now,
            };
            visits.packet(index, now);
        }
    }
}
