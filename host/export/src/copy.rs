//! The packets of a selection, out of the capture that was analysed.
//!
//! The capture is measured a second time as it was for the analysis, with a digest of each packet: that tells the
//! connection of each frame and what the engine saw in it. Memory: the selection's verdicts, connections and fragments.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use weir_analysis::{Class, Verdict};
use weir_capture::{CaptureError, CaptureFile, Feed, Item, MAX_DATAGRAMS};
use weir_engine::{Engine, Parser, Profile};
use weir_record::time::tai_from_utc;
use weir_record::{Event, Kind, Packet, Record, Untracked, what};

use crate::comment;
use crate::pcapng::Writer;

/// What to copy; both conditions hold.
#[derive(Debug, Default)]
pub struct Selection {
    /// Packets of these connections.
    pub connections: HashSet<u64>,
    /// Every other packet, too.
    pub others: bool,
    /// Frames, counted from 1, that are pieces of these packets ([`pieces`]).
    pub pieces: HashSet<u64>,
    /// From this time on, TAI ns.
    pub from: u64,
    /// Up to this time, not with it.
    pub to: u64,
}

/// Bits of a packet whose bytes, or whose SYN or FIN, came before.
const AGAIN: u32 =
    what::BELOW | what::COPY | what::SYN_REPEAT | what::SYN_ACK_REPEAT | what::SYN_OTHER | what::FIN_REPEAT;

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

    /// How many there are, not yet told, of these connections and in this time.
    pub fn selected(&self, selection: &Selection) -> usize {
        let all = self.0.iter().filter(|((id, time), _)| selection.has(*id, *time));
        all.map(|(_, verdicts)| verdicts.len()).sum()
    }

    /// Take those about a packet: of bytes that it shows were not seen, and one of its own. Several packets with the same
    /// bytes may have the same time: a copy comes behind that of which it is one, which need not have any.
    fn take(&mut self, packet: &Digest) -> Vec<Verdict> {
        let mut about = Vec::new();
        if packet.is_icmp_error() {
            return about;
        }
        let Some(at) = self.0.get_mut(&(packet.flow, packet.time)) else {
            return about;
        };
        about.extend(at.extract_if(.., |verdict| matches!(verdict.class, Class::Missed | Class::Lost)));
        let is_own = |verdict: &Verdict, is_copy: bool| {
            (verdict.seq, verdict.from_server) == (packet.seq, packet.from_server)
                && (verdict.class == Class::Copy) == is_copy
                && packet.what & if is_copy { AGAIN } else { u32::MAX } != 0
        };
        let own = [false, true]
            .into_iter()
            .find_map(|is_copy| at.iter().position(|verdict| is_own(verdict, is_copy)));
        about.extend(own.map(|place| at.remove(place)));
        about
    }
}

impl Selection {
    fn has(&self, id: u64, time: u64) -> bool {
        (self.from..self.to).contains(&time) && (self.others || self.connections.contains(&id))
    }
}

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Connections that a frame written is of.
    pub connections: HashSet<u64>,
    /// Frames of the capture.
    pub frames: u64,
    /// Frames written.
    pub packets: u64,
    /// Comments written that tell a verdict.
    pub verdicts: u64,
    /// Pieces of datagrams in the time of the selection that are of no connection of it, or cannot be told to be: left out.
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
    /// It opened the flow.
    opens: bool,
}

impl Digest {
    /// It is no packet of the flow, but speaks of it.
    fn is_icmp_error(&self) -> bool {
        self.what & what::ICMP != 0
    }
}

/// The frames of a capture that are pieces of packets of these connections, but for the last piece of each, which is the
/// packet to the engine. They are known when that comes, so the capture is read for them alone. `engine` as for [`copy`].
pub fn pieces(path: &Path, mut engine: Engine, connections: &HashSet<u64>) -> Result<HashSet<u64>, CaptureError> {
    let mut file = CaptureFile::open(path)?;
    let mut feed = Feed::new(Parser::new(Profile::Full));
    let mut records = Vec::new();
    let mut number = 0;
    // By datagram; as many as are put together at a time.
    let mut waiting: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut found = HashSet::new();
    // The copy tells of a capture that cannot be read to its end.
    while let Ok(Some(frame)) = file.next() {
        number += 1;
        records.clear();
        feed.file_frame(&frame, |word| word.enter(&mut engine, &mut records));
        let Some(datagram) = feed.datagram() else { continue };
        match digest(&records, number) {
            Some(whole) => {
                let pieces = waiting.remove(&datagram).unwrap_or_default();
                if connections.contains(&whole.flow) {
                    found.extend(pieces);
                }
            }
            None => {
                waiting.entry(datagram).or_default().push(number);
                if waiting.len() > MAX_DATAGRAMS {
                    waiting.pop_first();
                }
            }
        }
    }
    Ok(found)
}

/// Copy the selection of one capture as a section of its own. `engine` is set as that of the analysis, or its flows would
/// be others, and makes digests. Verdicts that are told are taken. An error of a capture that cannot be read to its end
/// comes with what was copied of it.
pub fn copy<W: Write>(
    path: &Path,
    mut engine: Engine,
    selection: &Selection,
    verdicts: &mut Verdicts,
    writer: &mut Writer<W>,
) -> Result<(Copied, Option<CaptureError>), CopyError> {
    let mut file = CaptureFile::open(path).map_err(CopyError::Read)?;
    let mut feed = Feed::new(Parser::new(Profile::Full));
    let mut records = Vec::new();
    let mut copied = Copied::default();
    // In the copy, by those of the capture: the sections of a capture number theirs anew.
    let mut interfaces: HashMap<(u32, u16), u32> = HashMap::new();
    let mut comments = Vec::new();
    let mut last = 0;
    let error = loop {
        let frame = match file.next() {
            Ok(Some(frame)) => frame,
            Ok(None) => break None,
            Err(error) if copied.frames == 0 => return Err(CopyError::Read(error)),
            Err(error) => break Some(error),
        };
        copied.frames += 1;
        if !frame.is_astray {
            last = last.max(frame.utc_ns);
        }
        let time = tai_from_utc(frame.utc_ns);
        let mut is_fragment = false;
        records.clear();
        feed.file_frame(&frame, |word| {
            is_fragment = matches!(word.item, Item::Untracked(Untracked::Fragment));
            word.enter(&mut engine, &mut records);
        });
        comments.clear();
        let is_selected = match digest(&records, copied.frames) {
            Some(digest) if selection.has(digest.flow, digest.time) => {
                let is_connection = selection.connections.contains(&digest.flow);
                if is_connection && copied.connections.insert(digest.flow) {
                    comments.push(comment::connection(digest.flow, digest.opens));
                }
                let about = verdicts.take(&digest);
                copied.verdicts += about.len() as u64;
                comments.extend(about.iter().map(comment::verdict));
                comments.extend(match digest.is_icmp_error() {
                    true => is_connection.then(|| comment::icmp_error(digest.flow)),
                    false => comment::conditions(digest.what),
                });
                true
            }
            Some(_) => false,
            None => {
                let is_in_time = (selection.from..selection.to).contains(&time);
                let is_taken = selection.others || selection.pieces.contains(&copied.frames);
                copied.fragments += u64::from(is_fragment && is_in_time && !is_taken);
                is_in_time && is_taken
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
    };
    for (number, dropped) in file.lost() {
        // Of an interface that had several link types, the first in the copy tells it.
        let of_it = interfaces.iter().filter(|((interface, _), _)| *interface == number);
        if let Some(interface) = of_it.map(|(_, copy)| *copy).min() {
            writer.statistics(interface, last, dropped).map_err(CopyError::Write)?;
        }
    }
    Ok((copied, error))
}

/// The digest of frame `number` among the records that it made, with the bits of the EVENT before it. Of an ICMP error
/// there is the EVENT alone.
fn digest(records: &[Record], number: u64) -> Option<Digest> {
    let mut event = (0, 0);
    let mut opened = None;
    for record in records.iter().filter(|record| !record.is_continuation()) {
        let flow = record.flow().0;
        match record.kind() {
            Some(Kind::Open) => opened = Some(flow),
            Some(Kind::Event) => {
                let told = Event::decode(record);
                event = (flow, told.what);
                if told.what & what::ICMP != 0 {
                    return Some(Digest {
                        flow,
                        time: record.time(),
                        seq: told.seq,
                        from_server: record.server_to_client(),
                        what: told.what,
                        opens: false,
                    });
                }
            }
            Some(Kind::Packet) => {
                let packet = Packet::decode(record);
                if packet.number == number {
                    return Some(Digest {
                        flow,
                        time: record.time(),
                        seq: packet.seq,
                        from_server: record.server_to_client(),
                        what: if event.0 == flow { event.1 } else { 0 },
                        opens: opened == Some(flow),
                    });
                }
            }
            _ => {}
        }
    }
    None
}
