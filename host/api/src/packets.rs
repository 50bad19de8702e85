//! The packet table of a connection, from its records.

use std::collections::VecDeque;

use weir_messages::Timestamp;
use weir_messages::v1::{PacketRow, SackBlock};
use weir_record::raw::BYTES;
use weir_record::time::utc_from_tai;
use weir_record::{Block, Event, FlowId, Kind, Packet, PacketMore, Record, what};

use crate::log::{LogError, Read, RecordLog};
use crate::records::is_gap;

/// Packets with data of a direction among which the last of a block is.
const RECENT: usize = 64;
/// Records that are read at a time.
const READ: usize = 65_536;

/// Rows of one connection, in the order of its packets.
#[derive(Debug)]
pub struct PacketTable {
    id: FlowId,
    most: usize,
    rows: Vec<PacketRow>,
    left_out: u64,
    /// The newest rows of each direction that have data.
    recent: [VecDeque<usize>; 2],
    /// Block of each direction that ended with a packet that did not come yet: where, and its bytes.
    ended: [Option<(u32, u32)>; 2],
    /// Conditions of the packet that comes.
    note: String,
    /// When the packet before passed, ns since 1970.
    previous: Option<i64>,
}

impl PacketTable {
    /// The first `most` packets of a connection.
    pub const fn new(id: FlowId, most: usize) -> Self {
        Self {
            id,
            most,
            rows: Vec::new(),
            left_out: 0,
            recent: [const { VecDeque::new() }; 2],
            ended: [None; 2],
            note: String::new(),
            previous: None,
        }
    }

    /// Whether a record is one of the connection's.
    pub fn is_of(&self, r: &Record) -> bool {
        r.flow() == self.id
    }

    /// The next record; those of others are left out.
    pub fn record(&mut self, r: &Record) {
        if !self.is_of(r) {
            return;
        }
        let side = usize::from(r.server_to_client());
        match (r.kind(), r.is_continuation()) {
            (Some(Kind::Event), false) => {
                let event = Event::decode(r);
                let shown = event.what & !(what::PUSH | what::IDLE_BEFORE | what::FIN | what::RST);
                let names = what::NAMES.iter().filter(|(bit, _)| shown & bit != 0);
                self.note = names.map(|(_, name)| *name).collect::<Vec<_>>().join(" ");
            }
            (Some(Kind::Block), _) => {
                let block = Block::decode(r);
                let end = block.seq.wrapping_add(block.bytes);
                let is_last = |at: &&usize| {
                    let row = &self.rows[**at];
                    row.seq.wrapping_add(row.length) == end
                };
                match self.recent[side].iter().rev().find(is_last) {
                    Some(&at) => self.rows[at].block_bytes = Some(block.bytes),
                    None => self.ended[side] = Some((end, block.bytes)),
                }
            }
            (Some(Kind::Packet), false) => self.packet(r, side),
            // Of a packet that is left out, too.
            (Some(Kind::Packet), true) if self.left_out == 0 => {
                let blocks = PacketMore::decode(r).sack();
                if let Some(row) = self.rows.last_mut() {
                    row.sack = blocks.map(|(left, right)| SackBlock { left, right }).collect();
                }
            }
            _ => {}
        }
    }

    fn packet(&mut self, r: &Record, side: usize) {
        let p = Packet::decode(r);
        let end = p.seq.wrapping_add(p.length);
        let block = self.ended[side].take_if(|(at, _)| p.length > 0 && *at == end);
        let nanos = utc_from_tai(r.time()).min(i64::MAX as u64) as i64;
        let previous = self.previous.replace(nanos);
        let note = std::mem::take(&mut self.note);
        if self.rows.len() == self.most {
            self.left_out += 1;
            return;
        }
        if p.length > 0 {
            let recent = &mut self.recent[side];
            if recent.len() == RECENT {
                recent.pop_front();
            }
            recent.push_back(self.rows.len());
        }
        self.rows.push(PacketRow {
            number: p.number,
            time: Some(Timestamp::from_unix_nanos(nanos)),
            delta_seconds: previous.map_or(0.0, |previous| nanos.saturating_sub(previous) as f64 / 1e9),
            from_server: side == 1,
            wire_bytes: u32::from(p.wire),
            ttl: u32::from(p.ttl),
            ip_id: u32::from(p.ip_id),
            flags: flags(p.tcp_flags),
            seq: p.seq,
            ack: p.ack,
            length: p.length,
            window: u32::from(p.window),
            sack: Vec::new(),
            block_bytes: block.map(|(_, bytes)| bytes),
            note,
        });
    }

    /// The rows, and how many packets came behind them.
    pub fn finish(self) -> (Vec<PacketRow>, u64) {
        (self.rows, self.left_out)
    }
}

/// Letters of TCP flags, low bits first.
fn flags(bits: u8) -> String {
    "FSRPAUEC"
        .chars()
        .enumerate()
        .filter(|(i, _)| bits >> i & 1 != 0)
        .map(|(_, letter)| letter)
        .collect()
}

/// Give the table all of the log; returns at how many places records are missing there, its beginning among them.
pub(crate) fn read(log: &RecordLog, table: &mut PacketTable) -> Result<u64, LogError> {
    let (mut position, mut bytes) = (log.first_position(), Vec::new());
    let mut gaps = u64::from(position > 0);
    loop {
        bytes.clear();
        match log.read(position, READ, &mut bytes)? {
            Read::End => return Ok(gaps),
            // The log moved on meanwhile.
            Read::Reclaimed { to } => {
                position = to + 1;
                gaps += 1;
            }
            Read::Records(count) => {
                position += count;
                for record in bytes.chunks_exact(BYTES) {
                    gaps += u64::from(is_gap(record));
                    if let Ok(record) = Record::from_slice(record) {
                        table.record(&record);
                    }
                }
            }
        }
    }
}
