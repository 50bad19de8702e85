//! `weir packets`: the packet table of one connection, from PACKET records.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use weir_analysis::socket_address;
use weir_api::packets::PacketTable;
use weir_command::Failure;
use weir_engine::Config;
use weir_messages::Timestamp;
use weir_messages::v1::{Analysis, PacketRow};
use weir_record::time::utc_from_tai;
use weir_record::{FlowId, Kind, Open, PROTOCOL_TCP, Record};
use weir_report::{Timing, Trace};

use crate::cli::{FlowOptions, Format, PacketsArgs, Wanted};
use crate::format::{Clock, seconds};
use crate::{analyze, output, source, text};

/// Connections that are told of where one is to be chosen.
const LISTED: usize = 20;

/// Run the command.
pub fn run(args: &PacketsArgs) -> Result<ExitCode, Failure> {
    output::keep([&args.input], args.output.as_deref())?;
    let id = match args.connection {
        Some(Wanted::Id(id)) => id,
        Some(Wanted::End(end)) => only_connection(args, Some(end))?,
        None => only_connection(args, None)?,
    };
    let mut table = Table::new(id, usize::MAX);
    let outcome = read(&args.input, &args.flow, true, |record| table.record(record))?;
    let (rows, _) = table.packets.finish();
    if rows.is_empty() {
        let why = match (&table.open, source::is_url(&args.input)) {
            (Some(_), _) => "no PACKET records of it; a daemon makes them with weir serve --digests",
            (None, true) => "there is none in the log; weir query connections lists those that are known",
            (None, false) => "there is none; without --connection their ids are listed, all by weir analyze -f json",
        };
        return Err(Failure::new(format_args!(
            "{}: no connection {}: {why}",
            args.input, id.0
        )));
    }
    match output::format(args.format, args.output.as_deref(), Format::Text) {
        Format::Json => output::json(
            args.output.as_deref(),
            &Analysis {
                packets: rows,
                ..Analysis::default()
            },
        )?,
        Format::Text => output::write(args.output.as_deref(), |out| print(id, table.open.as_ref(), &rows, out))?,
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
    let new = |id: &u64| (*id, Table::new(FlowId(*id), most));
    let mut tables: HashMap<u64, Table> = ids.iter().map(new).collect();
    read(input, flow, true, |record| {
        if let Some(timing) = &mut timing {
            timing.record(record);
        }
        if let Some(table) = tables.get_mut(&record.flow().0) {
            table.record(record);
        }
    })?;
    let of = |id: &u64| {
        let Table { open, packets } = tables.remove(id)?;
        let (open, (rows, left_out)) = (open?, packets.finish());
        Some(Trace {
            id: *id,
            ends: [
                socket_address(open.client_addr, open.client_port).to_string(),
                socket_address(open.server_addr, open.server_port).to_string(),
            ],
            rows,
            left_out,
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
    let engine = Config {
        digests,
        ..flow.engine()
    };
    analyze::read(input, engine, |records| records.iter().for_each(&mut take))
}

/// The connection of a capture that has one, with this end if one is given.
fn only_connection(args: &PacketsArgs, wanted: Option<SocketAddr>) -> Result<FlowId, Failure> {
    let input = &args.input;
    if source::comes_once(input) {
        return Err(Failure::new(format_args!(
            "{input}: can be read only once (standard input, a pipe): --connection ID says of which connection"
        )));
    }
    let (mut listed, mut count) = (Vec::new(), 0usize);
    read(input, &args.flow, false, |record| {
        if record.kind() != Some(Kind::Open) || record.is_continuation() {
            return;
        }
        let open = Open::decode(record);
        let ends = [
            socket_address(open.client_addr, open.client_port),
            socket_address(open.server_addr, open.server_port),
        ];
        if open.protocol == PROTOCOL_TCP && wanted.is_none_or(|wanted| ends.contains(&wanted)) {
            count += 1;
            if listed.len() < LISTED {
                listed.push((record.flow(), record.time(), ends));
            }
        }
    })?;
    let with_end = wanted.map_or_else(String::new, |wanted| format!(" with the end {wanted}"));
    let mut why = match listed[..] {
        [(id, ..)] => return Ok(id),
        [] => format!("{input}: no connection{with_end} is in it"),
        _ => format!("{input}: {count} connections{with_end} are in it: which one? --connection END, or the ID"),
    };
    for (FlowId(id), time, [client, server]) in &listed {
        let time = Timestamp::from_unix_nanos(utc_from_tai(*time).cast_signed());
        let _ = write!(why, "\n  {id:<8} {time}  {client} -> {server}");
    }
    if count > listed.len() {
        let _ = write!(
            why,
            "\n  and {} more: weir analyze -f json lists all",
            count - listed.len()
        );
    }
    Err(Failure::new(why))
}

/// A connection, and its packets.
struct Table {
    open: Option<Open>,
    packets: PacketTable,
}

impl Table {
    const fn new(id: FlowId, most: usize) -> Self {
        Self {
            open: None,
            packets: PacketTable::new(id, most),
        }
    }

    fn record(&mut self, r: &Record) {
        if self.packets.is_of(r) && r.kind() == Some(Kind::Open) && !r.is_continuation() {
            self.open = Some(Open::decode(r));
        }
        self.packets.record(r);
    }
}

/// As a table.
fn print(id: FlowId, open: Option<&Open>, rows: &[PacketRow], out: &mut dyn Write) -> io::Result<()> {
    match open {
        Some(open) => writeln!(
            out,
            "connection {}: client {}, server {}",
            id.0,
            socket_address(open.client_addr, open.client_port),
            socket_address(open.server_addr, open.server_port)
        )?,
        // A daemon's log has lost it with its oldest records.
        None => writeln!(out, "connection {}: its beginning is not in the log any more", id.0)?,
    }
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
            "raw window",
            "block",
            "SACK",
            "conditions",
        ],
        &[0, 2, 4, 5, 6, 8, 9, 10, 11, 12],
    );
    let clock = Clock::of_times(rows.iter().filter_map(|row| row.time));
    for row in rows {
        let sack: Vec<_> = row.sack.iter().map(|s| format!("{}-{}", s.left, s.right)).collect();
        table.add_row(vec![
            row.number.to_string(),
            clock.known(row.time.as_ref()),
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
