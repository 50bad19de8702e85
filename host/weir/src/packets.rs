//! `weir packets`: the packet table of one connection, from PACKET records.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::process::ExitCode;

use weir_engine::Config;
use weir_messages::Timestamp;
use weir_messages::v1::{Analysis, PacketRow, SackBlock};
use weir_record::time::utc_from_tai;
use weir_record::{Block, Event, FlowId, Kind, Open, PROTOCOL_TCP, Packet, PacketMore, Record, what};
use weir_report::{Timing, Trace};

use crate::cli::{FlowOptions, Format, PacketsArgs};
use crate::error::Failure;
use crate::format::{seconds, time_of_day};
use crate::{analyze, output, source, text};

/// Run the command.
pub fn run(args: &PacketsArgs) -> Result<ExitCode, Failure> {
    let id = match args.connection {
        Some(id) => FlowId(id),
        None => only_connection(args)?,
    };
    let mut table = Table::new(id);
    let outcome = read(&args.input, &args.flow, true, |record| table.record(record))?;
    if table.open.is_none() {
        return Err(Failure::new(format_args!(
            "{}: no connection {}; weir analyze -f json lists their ids",
            args.input, id.0
        )));
    }
    match args.format {
        Format::Json => output::json(
            args.output.as_deref(),
            &Analysis {
                packets: table.rows,
                ..Analysis::default()
            },
        )?,
        Format::Text => output::write(args.output.as_deref(), |out| table.print(out))?,
    }
    Ok(analyze::report(outcome.error))
}

/// The first packets of some connections, at most `most` of each, in the order asked for; those of many go to `timing`.
pub fn traces(
    input: &str,
    flow: &FlowOptions,
    ids: &[u64],
    most: usize,
    mut timing: Option<&mut Timing>,
) -> Result<Vec<Trace>, Failure> {
    let mut tables: HashMap<u64, (Table, u64)> = ids.iter().map(|id| (*id, (Table::new(FlowId(*id)), 0))).collect();
    read(input, flow, true, |record| {
        if let Some(timing) = &mut timing {
            timing.record(record);
        }
        if let Some((table, left_out)) = tables.get_mut(&record.flow().0) {
            if table.rows.len() <= most {
                table.record(record);
            } else if record.kind() == Some(Kind::Packet) && !record.is_continuation() {
                *left_out += 1;
            }
        }
    })?;
    let of = |id: &u64| {
        let (mut table, left_out) = tables.remove(id)?;
        let more = table.rows.len().saturating_sub(most);
        table.rows.truncate(most);
        let open = table.open.as_ref()?;
        Some(Trace {
            id: *id,
            ends: [
                end(open.client_addr, open.client_port),
                end(open.server_addr, open.server_port),
            ],
            rows: table.rows,
            left_out: left_out + more as u64,
        })
    };
    Ok(ids.iter().filter_map(of).collect())
}

fn read(
    input: &str,
    flow: &FlowOptions,
    digests: bool,
    mut take: impl FnMut(&Record),
) -> Result<source::Outcome, Failure> {
    let options = source::Options::of(Config {
        digests,
        ..flow.engine()
    });
    source::read(Path::new(input), &options, |records| records.iter().for_each(&mut take)).map_err(Failure::new)
}

/// The connection of a capture that has one.
fn only_connection(args: &PacketsArgs) -> Result<FlowId, Failure> {
    let (mut first, mut count) = (None, 0u64);
    read(&args.input, &args.flow, false, |record| {
        if record.kind() == Some(Kind::Open)
            && !record.is_continuation()
            && Open::decode(record).protocol == PROTOCOL_TCP
        {
            first.get_or_insert(record.flow());
            count += 1;
        }
    })?;
    match (first, count) {
        (Some(id), 1) => Ok(id),
        _ => Err(Failure::new(format_args!(
            "{}: {count} connections are in it: which one? --connection ID (weir analyze -f json lists the ids)",
            args.input
        ))),
    }
}

/// Packets of one connection.
struct Table {
    id: FlowId,
    open: Option<Open>,
    rows: Vec<PacketRow>,
    /// Block of each direction that ended with a packet that is not in the table yet: where, and its bytes.
    ended: [Option<(u32, u32)>; 2],
    /// Conditions of the packet that comes.
    note: String,
}

impl Table {
    const fn new(id: FlowId) -> Self {
        Self {
            id,
            open: None,
            rows: Vec::new(),
            ended: [None; 2],
            note: String::new(),
        }
    }

    fn record(&mut self, r: &Record) {
        if r.flow() != self.id {
            return;
        }
        let side = usize::from(r.server_to_client());
        match (r.kind(), r.is_continuation()) {
            (Some(Kind::Open), false) => self.open = Some(Open::decode(r)),
            (Some(Kind::Event), false) => {
                let event = Event::decode(r);
                let shown = event.what & !(what::PUSH | what::IDLE_BEFORE | what::FIN | what::RST);
                let names = what::NAMES.iter().filter(|(bit, _)| shown & bit != 0);
                self.note = names.map(|(_, name)| *name).collect::<Vec<_>>().join(" ");
            }
            (Some(Kind::Block), _) => {
                let block = Block::decode(r);
                let end = block.seq.wrapping_add(block.bytes);
                let is_last = |row: &&mut PacketRow| {
                    row.from_server == (side == 1) && row.length > 0 && row.seq.wrapping_add(row.length) == end
                };
                match self.rows.iter_mut().rev().find(is_last) {
                    Some(row) => row.block_bytes = Some(block.bytes),
                    None => self.ended[side] = Some((end, block.bytes)),
                }
            }
            (Some(Kind::Packet), false) => {
                let p = Packet::decode(r);
                let end = p.seq.wrapping_add(p.length);
                let block = self.ended[side].take_if(|(at, _)| p.length > 0 && *at == end);
                let nanos = utc_from_tai(r.time()).min(i64::MAX as u64) as i64;
                let previous = self.rows.last().and_then(|row| row.time).map(|time| time.unix_nanos());
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
                    note: std::mem::take(&mut self.note),
                });
            }
            (Some(Kind::Packet), true) => {
                let blocks = PacketMore::decode(r).sack();
                if let Some(row) = self.rows.last_mut() {
                    row.sack = blocks.map(|(left, right)| SackBlock { left, right }).collect();
                }
            }
            _ => {}
        }
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let address = |addr: [u8; 16], port: u16| format!("{} port {port}", Ipv6Addr::from(addr).to_canonical());
        writeln!(
            out,
            "connection {}: client {}, server {}",
            self.id.0,
            address(open.client_addr, open.client_port),
            address(open.server_addr, open.server_port)
        )?;
        let mut table = text::table(
            &[
                "frame",
                "time",
                "delta",
                "from",
                "wire",
                "TTL",
                "IP id",
                "flags",
                "seq",
                "ack",
                "data",
                "window",
                "block",
                "SACK",
                "conditions",
            ],
            &[0, 2, 4, 5, 6, 8, 9, 10, 11, 12],
        );
        for row in &self.rows {
            let sack: Vec<_> = row.sack.iter().map(|s| format!("{}-{}", s.left, s.right)).collect();
            table.add_row(vec![
                row.number.to_string(),
                row.time.as_ref().map_or_else(String::new, time_of_day),
                seconds(row.delta_seconds),
                if row.from_server { "server" } else { "client" }.into(),
                row.wire_bytes.to_string(),
                row.ttl.to_string(),
                row.ip_id.to_string(),
                row.flags.clone(),
                row.seq.to_string(),
                row.ack.to_string(),
                if row.length == 0 {
                    "·".into()
                } else {
                    row.length.to_string()
                },
                row.window.to_string(),
                row.block_bytes
                    .map_or_else(String::new, |bytes| format!("blk[{bytes}]")),
                sack.join(" "),
                row.note.clone(),
            ]);
        }
        writeln!(out, "{table}")
    }
}

/// `address:port`.
fn end(addr: [u8; 16], port: u16) -> String {
    match Ipv6Addr::from(addr).to_canonical() {
        IpAddr::V4(addr) => format!("{addr}:{port}"),
        IpAddr::V6(addr) => format!("[{addr}]:{port}"),
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
