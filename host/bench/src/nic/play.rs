//! A capture as a play list for the card's logic: frames, scan visits and the end, in the engine's order.
//!
//! The list begins with 16 bytes (`WEIRPLAY`, version, number of ports). Each item has 32 bytes: kind (0 frame, 1 visit,
//! 2 end), port, two bytes of zero, index, time (TAI ns), length on the wire if the frame was cut (else 0), captured
//! length, number of the frame on its port. A frame's bytes follow, filled up with zeros to whole beats of 64 bytes.
//! `index` is that of the visit; of a frame the one the engine gave it, for the bench's explanations only; of the end
//! the number of contexts that were ever in use. All numbers are little-endian.

use std::io::Write;
use std::path::Path;

use weir_capture::{CaptureFile, Feed, Item, card};
use weir_engine::{Class, Config, Engine, Parser, Profile};
use weir_record::time::tai_from_utc;

use super::visits::Visits;
use crate::error::Error;

const MAGIC: &[u8; 8] = b"WEIRPLAY";
const VERSION: u32 = 1;
const BEAT: usize = 64;
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
}

#[derive(Clone, Copy, Default)]
struct Head {
    kind: u8,
    port: u8,
    index: u32,
    time: u64,
    wire: u32,
    captured: u32,
    number: u64,
}

impl Head {
    fn bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        out[0] = self.kind;
        out[1] = self.port;
        out[4..8].copy_from_slice(&self.index.to_le_bytes());
        out[8..16].copy_from_slice(&self.time.to_le_bytes());
        out[16..20].copy_from_slice(&self.wire.to_le_bytes());
        out[20..24].copy_from_slice(&self.captured.to_le_bytes());
        out[24..32].copy_from_slice(&self.number.to_le_bytes());
        out
    }
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
    let mut engine = Engine::new(config);
    let mut visits = Visits::new(&config, options.all_visits);
    let mut counts = Counts::default();
    let mut numbers = [0u64; 16];
    let mut records = Vec::new();

    out.write_all(MAGIC).map_err(fail)?;
    out.write_all(&VERSION.to_le_bytes()).map_err(fail)?;
    out.write_all(&card::PORTS.to_le_bytes()).map_err(fail)?;
    while let Ok(Some(frame)) = file.next() {
        let Some(port) = card::port(&frame) else {
            counts.left_out += 1;
            continue;
        };
        let time = tai_from_utc(frame.utc_ns);
        let now = time.clamp(engine.now(), 1 << 63);
        visits
            .until(now, |time, index| visit(out, &mut counts, time, index))
            .map_err(fail)?;

        let mut index = NO_INDEX;
        feed.frame(port, time, frame.link, frame.data, frame.wire, |word| {
            word.enter(&mut engine, &mut records);
            if let Item::Packet(meta) = word.item
                && meta.class != Class::IcmpError
                && let Some(context) = engine.context(meta)
            {
                visits.packet(context, now);
                index = context;
            }
        });
        records.clear();

        let captured = frame.data.len() as u32;
        numbers[usize::from(port)] += 1;
        let head = Head {
            port,
            index,
            time,
            wire: if frame.wire > captured { frame.wire } else { 0 },
            captured,
            number: numbers[usize::from(port)],
            ..Head::default()
        };
        out.write_all(&head.bytes()).map_err(fail)?;
        out.write_all(frame.data).map_err(fail)?;
        let padding = frame.data.len().next_multiple_of(BEAT) - frame.data.len();
        out.write_all(&[0; BEAT][..padding]).map_err(fail)?;
        counts.frames += 1;
    }
    let now = engine.now();
    visits
        .until(now, |time, index| visit(out, &mut counts, time, index))
        .map_err(fail)?;
    let end = Head {
        kind: 2,
        index: engine.contexts_used(),
        time: now,
        ..Head::default()
    };
    out.write_all(&end.bytes()).and_then(|()| out.flush()).map_err(fail)?;
    Ok(counts)
}

fn visit(out: &mut dyn Write, counts: &mut Counts, time: u64, index: u32) -> std::io::Result<()> {
    counts.visits += 1;
    let head = Head {
        kind: 1,
        index,
        time,
        ..Head::default()
    };
    out.write_all(&head.bytes())
}
