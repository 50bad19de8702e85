//! The packets of a selection, out of the capture that was analysed.
//!
//! The capture is measured a second time as it was for the analysis, with a digest of each packet: that tells the
//! connection of each frame and what the engine saw in it. Memory: the selection's verdicts and connections.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use weir_analysis::{Class, Verdict};
use weir_capture::{CaptureError, CaptureFile, Feed, Item};
use weir_engine::{Config, Engine, Parser, Profile};
use weir_record::time::tai_from_utc;
use weir_record::{Event, Kind, Packet, Record, Untracked};

use crate::comment;
use crate::pcapng::Writer;

/// What to copy; both conditions hold.
#[derive(Debug, Default)]
pub struct Selection {
    /// Packets of these connections; `None`: every packet.
    pub connections: Option<HashSet<u64>>,
    /// From this time on, TAI ns.
    pub from: u64,
    /// Up to this time, not with it.
    pub to: u64,
}

/// Verdicts by the connection and the time of the packet that they are about.
#[derive(Debug, Default)]
pub struct Verdicts(HashMap<(u64, u64), Vec<Verdict>>);

impl Verdicts {
    /// One more.
    pub fn add(&mut self, verdict: &Verdict) {
        self.0
            .entry((verdict.connection.0, verdict.time))
            .or_default()
            .push(*verdict);
    }

    /// How many there are of these connections and in this time.
    pub fn selected(&self, selection: &Selection) -> usize {
        let all = self.0.iter().filter(|((id, time), _)| selection.has(*id, *time));
        all.map(|(_, verdicts)| verdicts.len()).sum()
    }

    /// Those about a packet: of its bytes, or of bytes that it shows were not seen.
    fn of(&self, packet: &Digest) -> impl Iterator<Item = &Verdict> {
        let at = self.0.get(&(packet.flow, packet.time)).into_iter().flatten();
        at.filter(|verdict| {
            matches!(verdict.class, Class::Missed | Class::Lost)
                || (verdict.seq, verdict.from_server) == (packet.seq, packet.from_server)
        })
    }
}

impl Selection {
    fn has(&self, id: u64, time: u64) -> bool {
        (self.from..self.to).contains(&time) && self.connections.as_ref().is_none_or(|ids| ids.contains(&id))
    }
}

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Flows that a frame written is of.
    pub flows: HashSet<u64>,
    /// Frames of the capture.
    pub frames: u64,
    /// Frames written.
    pub packets: u64,
    /// Comments written that tell a verdict.
    pub verdicts: u64,
    /// Pieces of datagrams in the time of the selection that cannot be told to be of a connection: left out.
    pub fragments: u64,
}

/// Why a copy failed.
#[derive(Debug)]
pub enum CopyError {
    /// The capture could not be read.
    Read(CaptureError),
    /// The result could not be written.
    Write(io::Error),
}

/// What is known of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Digest {
    flow: u64,
    /// TAI ns, as the engine has it.
    time: u64,
    seq: u32,
    from_server: bool,
    /// Bits of its EVENT.
    what: u32,
}

/// Copy the selection of one capture as a section of its own. `config` is that of the analysis. An error of a capture
/// that cannot be read to its end comes with what was copied of it.
pub fn copy<W: Write>(
    path: &Path,
    config: Config,
    selection: &Selection,
    verdicts: &Verdicts,
    writer: &mut Writer<W>,
) -> Result<(Copied, Option<CaptureError>), CopyError> {
    let mut file = CaptureFile::open(path).map_err(CopyError::Read)?;
    let mut feed = Feed::new(Parser::new(Profile::Full));
    let mut engine = Engine::new(Config {
        digests: true,
        ..config
    });
    let mut records = Vec::new();
    let mut copied = Copied::default();
    // In the copy, by those of the capture: the sections of a capture number theirs anew.
    let mut interfaces: HashMap<(u32, u16), u32> = HashMap::new();
    let mut comments = Vec::new();
    loop {
        let frame = match file.next() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok((copied, None)),
            Err(error) if copied.frames == 0 => return Err(CopyError::Read(error)),
            Err(error) => return Ok((copied, Some(error))),
        };
        copied.frames += 1;
        let time = tai_from_utc(frame.utc_ns);
        let mut is_fragment = false;
        records.clear();
        let port = frame.interface.min(15) as u8;
        feed.frame(port, time, frame.link, frame.data, frame.wire, |word| {
            is_fragment = matches!(word.item, Item::Untracked(Untracked::Fragment));
            word.enter(&mut engine, &mut records);
        });
        comments.clear();
        let is_selected = match (digest(&records, copied.frames), &selection.connections) {
            (Some(digest), _) if selection.has(digest.flow, digest.time) => {
                if copied.flows.insert(digest.flow) {
                    comments.push(comment::connection(digest.flow));
                }
                let about = verdicts.of(&digest).map(comment::verdict);
                let before = comments.len();
                comments.extend(about);
                copied.verdicts += (comments.len() - before) as u64;
                comments.extend(comment::conditions(digest.what));
                true
            }
            (Some(_), _) => false,
            (None, None) => (selection.from..selection.to).contains(&time),
            (None, Some(_)) => {
                let is_in_time = (selection.from..selection.to).contains(&time);
                copied.fragments += u64::from(is_fragment && is_in_time);
                false
            }
        };
        if is_selected {
            let next = interfaces.len() as u32;
            let interface = match interfaces.entry((frame.interface, frame.link_number)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(place) => {
                    writer.interface(frame.link_number).map_err(CopyError::Write)?;
                    *place.insert(next)
                }
            };
            writer
                .packet(interface, frame.utc_ns, frame.data, frame.wire, &comments)
                .map_err(CopyError::Write)?;
            copied.packets += 1;
        }
    }
}

/// The digest of frame `number` among the records that it made, with the bits of the EVENT before it.
fn digest(records: &[Record], number: u64) -> Option<Digest> {
    let mut event = (0, 0);
    for record in records.iter().filter(|record| !record.is_continuation()) {
        match record.kind() {
            Some(Kind::Event) => event = (record.flow().0, Event::decode(record).what),
            Some(Kind::Packet) => {
                let packet = Packet::decode(record);
                if packet.number == number {
                    let flow = record.flow().0;
                    return Some(Digest {
                        flow,
                        time: record.time(),
                        seq: packet.seq,
                        from_server: record.server_to_client(),
                        what: if event.0 == flow { event.1 } else { 0 },
                    });
                }
            }
            _ => {}
        }
    }
    None
}
