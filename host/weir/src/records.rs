//! `weir records`: what the engine makes of a capture.

use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use weir_analysis::several;
use weir_command::Failure;
use weir_engine::Config;
use weir_record::{
    Block, BlockEnd, Burst, ClientHow, Close, CloseCause, CloseMore, Event, EventMore, Histogram, HistogramMore,
    Interval, Kind, Metric, Open, OpenMore, Packet, PacketMore, Port, PortMore, Record, Rtt, RttHow, Setup, SetupEnd,
    SetupMore, Top, TopMore, Weight, what,
};

use crate::cli::{Profile, RecordFormat, RecordsArgs};
use crate::output::{self, Pending};
use crate::{analyze, say, source};

/// Run the command.
pub fn run(args: &RecordsArgs) -> Result<ExitCode, Failure> {
    output::keep([&args.input], args.output.as_deref())?;
    if source::is_url(&args.input) {
        return Err(Failure::new(format_args!(
            "{}: records are made of a capture file; those of a daemon: weir query records --server {0}",
            args.input
        )));
    }
    let (engine, profile) = match args.profile {
        Profile::File => (Config::file(), weir_engine::Profile::Full),
        Profile::Nic => (Config::appliance(), weir_engine::Profile::Nic),
    };
    let engine = Config {
        contexts: args.contexts.unwrap_or(engine.contexts),
        digests: args.digests,
        vlan_in_key: !args.flow.ignore_vlan,
        ..engine
    };
    let options = source::Options {
        profile,
        statistics: args.statistics.config(),
        ..source::Options::of(engine)
    };
    let mut out = match args.format {
        RecordFormat::Text => Pending::text(args.output.as_deref())?,
        RecordFormat::Binary => Pending::bytes(args.output.as_deref())?,
    };
    let mut printed = Ok(());
    let outcome = source::read(Path::new(&args.input), &options, |records| {
        if printed.is_ok() {
            printed = print(records, args.format, &mut out);
        }
    })
    .map_err(Failure::new)?;
    printed.map_err(|error| Failure::write(out.name(), &error))?;
    out.finish()?;
    if outcome.left_out > 0 {
        let why = "not Ethernet, no byte captured, or too long";
        say::line(format_args!(
            "weir: left out, as no card could receive them ({why}): {}",
            several(outcome.left_out, "frame", "frames")
        ));
    }
    Ok(analyze::report(outcome.error))
}

/// Write records in a format.
pub fn print(records: &[Record], format: RecordFormat, out: &mut dyn Write) -> std::io::Result<()> {
    for record in records {
        match format {
            RecordFormat::Binary => out.write_all(&record.0)?,
            RecordFormat::Text => line(record, out)?,
        }
    }
    Ok(())
}

/// An address as it is written; IPv4 ones are mapped.
fn address(bytes: &[u8; 16]) -> IpAddr {
    Ipv6Addr::from(*bytes).to_canonical()
}

fn line(r: &Record, out: &mut dyn Write) -> std::io::Result<()> {
    let kind = r.kind().map_or("?", Kind::name);
    let direction = if r.server_to_client() { "s>c" } else { "c>s" };
    write!(
        out,
        "{:>3}/{:<8} {:016x} {:>19} {kind:8} ",
        r.lane(),
        r.sequence(),
        r.flow().0,
        r.time()
    )?;
    let arg = r.arg();
    let named = |name: Option<&'static str>| name.unwrap_or("?");
    match (r.kind(), r.is_continuation()) {
        (Some(Kind::Open), false) => {
            let how = named(ClientHow::from_u8(arg).map(ClientHow::name));
            let open = Open::decode(r);
            let client = SocketAddr::new(address(&open.client_addr), open.client_port);
            let server = SocketAddr::new(address(&open.server_addr), open.server_port);
            writeln!(out, "{direction} {how} {client} > {server} {open:?}")
        }
        (Some(Kind::Open), true) => writeln!(out, "{:?}", OpenMore::decode(r)),
        (Some(Kind::Setup), false) => {
            writeln!(
                out,
                "{} {:?}",
                named(SetupEnd::from_u8(arg).map(SetupEnd::name)),
                Setup::decode(r)
            )
        }
        (Some(Kind::Setup), true) => writeln!(out, "{:?}", SetupMore::decode(r)),
        (Some(Kind::Block), _) => {
            writeln!(
                out,
                "{direction} {} {:?}",
                named(BlockEnd::from_u8(arg).map(BlockEnd::name)),
                Block::decode(r)
            )
        }
        (Some(Kind::Rtt), _) => {
            writeln!(
                out,
                "{direction} {} {:?}",
                named(RttHow::from_u8(arg).map(RttHow::name)),
                Rtt::decode(r)
            )
        }
        (Some(Kind::Event), false) => {
            let event = Event::decode(r);
            let names: Vec<_> = what::NAMES
                .iter()
                .filter(|(bit, _)| event.what & bit != 0)
                .map(|(_, name)| *name)
                .collect();
            writeln!(out, "{direction} {} {event:?}", names.join("|"))
        }
        (Some(Kind::Event), true) => writeln!(out, "{direction} {:?}", EventMore::decode(r)),
        (Some(Kind::Interval), _) => writeln!(out, "{direction} {:?}", Interval::decode(r)),
        (Some(Kind::Close), false) => {
            writeln!(
                out,
                "{} {:?}",
                named(CloseCause::from_u8(arg).map(CloseCause::name)),
                Close::decode(r)
            )
        }
        (Some(Kind::Close), true) => writeln!(out, "{:?}", CloseMore::decode(r)),
        (Some(Kind::Packet), false) => writeln!(out, "{direction} {:?}", Packet::decode(r)),
        (Some(Kind::Packet), true) => writeln!(out, "{direction} {:?}", PacketMore::decode(r)),
        (Some(Kind::Port), false) => writeln!(out, "port {arg} {:?}", Port::decode(r)),
        (Some(Kind::Port), true) => writeln!(out, "port {arg} {:?}", PortMore::decode(r)),
        (Some(Kind::Burst), _) => writeln!(out, "port {arg} {:?}", Burst::decode(r)),
        (Some(Kind::Histogram), false) => {
            let metric = named(Metric::from_u8(arg >> 4).map(Metric::name));
            writeln!(out, "{metric} service {} {:?}", arg & 0xf, Histogram::decode(r))
        }
        (Some(Kind::Histogram), true) => writeln!(out, "{:?}", HistogramMore::decode(r)),
        (Some(Kind::Top), false) => {
            let weight = named(Weight::from_u8(arg).map(Weight::name));
            let top = Top::decode(r);
            writeln!(out, "{weight} {} {top:?}", address(&top.address))
        }
        (Some(Kind::Top), true) => writeln!(out, "{:?}", TopMore::decode(r)),
        (Some(Kind::Gap), _) => writeln!(out, "{:?}", weir_record::Gap::decode(r)),
        (None, _) => writeln!(out, "kind {}", r.0[0]),
    }
}
