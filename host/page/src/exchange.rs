//! `/exchange`: application messages between hosts over time.

use std::collections::BTreeMap;

use weir_analysis::{DataBlock, Ends, address};

use crate::batch;
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::params::Params;
use crate::reply::Reply;
use crate::span::seconds;
use crate::timeline::{USUAL, WIDTH};
use crate::waits::Chosen;

/// Most messages of an answer.
const MESSAGES: usize = 20_000;

/// A message, or those of two ends in a pixel column.
#[derive(Clone, Copy, Debug)]
struct Message {
    time: u64,
    last: u64,
    ends: Ends,
    server: bool,
    bytes: u64,
    packets: u32,
    count: u32,
    /// Of its connection.
    id: u64,
}

impl Message {
    fn of(data: &Dataset, block: &DataBlock) -> Self {
        Self {
            time: data.since_tai(block.first),
            last: data.since_tai(block.last),
            ends: block.ends,
            server: block.from_server,
            bytes: u64::from(block.bytes),
            packets: u32::from(block.packets),
            count: 1,
            id: block.id.0,
        }
    }

    fn add(&mut self, other: &Self) {
        self.last = self.last.max(other.last);
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.count += other.count;
    }
}

/// Client, server, its port, and whether the server sends: who talks with whom, whatever the client's port.
type Pair = ([u8; 16], [u8; 16], u16, bool);

/// The route.
pub fn get(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let span = params.span(data.whole())?;
    let filter = params.text("filter").unwrap_or_default();
    let limit = params.number("limit", 5000usize, 1, MESSAGES)?;
    let mut width = params.number("width", USUAL, 1, WIDTH)?;
    let with_calls = params.word("calls", &[("false", false), ("true", true)])?;
    params.end()?;
    let chosen = Chosen::new(data, &filter, with_calls)?;
    let passes = |message: &Message| {
        chosen
            .as_ref()
            .is_none_or(|chosen| chosen.message(data.row(message.id), message.time))
    };
    let part = &data.blocks[span.part(&data.blocks, |block| data.since_tai(block.first))];
    let messages = || part.iter().map(|block| Message::of(data, block)).filter(passes);
    let rows = messages().count();
    let exact = rows <= limit;
    let all: Vec<Message> = if exact {
        messages().collect()
    } else {
        loop {
            let columns = span.columns(width);
            let mut cells: Vec<Message> = Vec::new();
            // Places of the pairs of the column at hand, and when it ends.
            let mut pairs: BTreeMap<Pair, usize> = BTreeMap::new();
            let mut until = 0;
            for message in messages() {
                if message.time >= until {
                    pairs.clear();
                    until = columns.edge(columns.of(message.time) + 1);
                }
                let Ends {
                    client,
                    server,
                    server_port,
                    ..
                } = message.ends;
                let place = *pairs
                    .entry((client, server, server_port, message.server))
                    .or_insert(cells.len());
                match cells.get_mut(place) {
                    Some(known) => known.add(&message),
                    None => cells.push(message),
                }
            }
            if cells.len() <= MESSAGES || width == 1 {
                break cells;
            }
            width = width.div_ceil(2);
        }
    };
    let names: Vec<[String; 2]> = all
        .iter()
        .map(|message| [address(message.ends.client), address(message.ends.server)])
        .collect();
    let name = |from: bool| {
        let side = move |message: &Message| usize::from(message.server == from);
        all.iter()
            .zip(&names)
            .map(move |(message, names)| Some(names[side(message)].as_str()))
    };
    let columns = batch::Columns::default()
        .f64("time", all.iter().map(|m| seconds(m.time)).collect())
        .f64("time_last", all.iter().map(|m| seconds(m.last)).collect())
        .words("sender", name(true))
        .words("receiver", name(false))
        .u16("port", all.iter().map(|m| m.ends.server_port).collect())
        .bool("server", all.iter().map(|m| m.server).collect())
        .f64("bytes", all.iter().map(|m| m.bytes as f64).collect())
        .u32("packets", all.iter().map(|m| m.packets).collect())
        .u32("count", all.iter().map(|m| m.count).collect())
        .u32_or_null("row", all.iter().map(|m| data.row(m.id)).collect())
        .says("rows", rows)
        .says("exact", exact)
        .says("width", width);
    Reply::columns(columns)
}
