//! `/timing`: packets of many connections, a lane each.

use std::collections::HashMap;

use serde_json::json;

use crate::batch;
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::marks::MARKS;
use crate::packets::{KINDS, Kind, Packets};
use crate::params::Params;
use crate::reply::Reply;
use crate::span::seconds;
use crate::tables::{Query, Table};
use crate::timeline::{USUAL, WIDTH};

/// Most lanes.
const LANES: usize = 1000;

/// What is drawn at a place.
#[derive(Clone, Copy, Debug)]
struct Mark {
    packet: u32,
    count: u32,
    bytes: u32,
}

/// The route.
pub fn get(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let packets = data.packets()?;
    let query = Query::take(data, Table::Connections, &mut params)?.overlapping();
    let span = query.span();
    let offset = params.number("offset", 0usize, 0, u32::MAX as usize)?;
    let limit = params.number("limit", 200usize, 1, LANES)?;
    let mut width = params.number("width", USUAL, 1, WIDTH)?;
    params.end()?;
    let rows = query.rows(data)?;
    let end = rows.len().min(offset.saturating_add(limit));
    let lanes = rows.get(offset..end).unwrap_or_default();
    let chosen: Vec<&[u32]> = lanes
        .iter()
        .map(|row| {
            let all = packets.of_connection(data.connections[*row as usize].id);
            &all[span.part(all, |packet| packets.get(*packet).time)]
        })
        .collect();
    let total: usize = chosen.iter().map(|packets| packets.len()).sum();
    let exact = total <= MARKS;
    let mut marks: Vec<(u16, Mark)> = Vec::new();
    if exact {
        for (lane, all) in (0u16..).zip(&chosen) {
            let one = |packet: &u32| Mark {
                packet: *packet,
                count: 1,
                bytes: packets.get(*packet).length,
            };
            marks.extend(all.iter().map(|packet| (lane, one(packet))));
        }
    } else {
        let columns = span.columns(width);
        let mut cells: HashMap<(u16, bool, Kind, u16), Mark> = HashMap::new();
        for (lane, all) in (0u16..).zip(&chosen) {
            for place in *all {
                let packet = packets.get(*place);
                let at = (lane, packet.server, packet.kind, columns.of(packet.time) as u16);
                let one = Mark {
                    packet: *place,
                    count: 1,
                    bytes: packet.length,
                };
                add(&mut cells, at, one);
            }
        }
        while cells.len() > MARKS && width > 1 {
            width = width.div_ceil(2);
            let finer = std::mem::take(&mut cells);
            for ((lane, server, kind, column), mark) in finer {
                add(&mut cells, (lane, server, kind, column / 2), mark);
            }
        }
        marks = cells.into_iter().map(|((lane, ..), mark)| (lane, mark)).collect();
        marks.sort_unstable_by_key(|(lane, mark)| (*lane, mark.packet));
    }
    Reply::columns(
        columns_of(packets, &marks, exact)
            .says("rows", total)
            .says("exact", exact)
            .says("width", width)
            .says("lanes", json!(lanes))
            .says("total", rows.len())
            .says("kinds", json!(KINDS)),
    )
}

/// Two marks of one place are one: that of the first packet.
fn add<K: std::hash::Hash + Eq>(cells: &mut HashMap<K, Mark>, at: K, mark: Mark) {
    cells
        .entry(at)
        .and_modify(|known| {
            known.packet = known.packet.min(mark.packet);
            known.count += mark.count;
            known.bytes = known.bytes.max(mark.bytes);
        })
        .or_insert(mark);
}

fn columns_of(packets: &Packets, marks: &[(u16, Mark)], exact: bool) -> batch::Columns {
    let shown = || marks.iter().map(|(_, mark)| packets.get(mark.packet));
    let link = |mark: &Mark| {
        let first = packets.original(mark.packet).filter(|_| exact)?;
        Some(seconds(packets.get(first).time))
    };
    batch::Columns::default()
        .u16("lane", marks.iter().map(|(lane, _)| *lane).collect())
        .bool("server", shown().map(|packet| packet.server).collect())
        .u8("kind", shown().map(|packet| packet.kind as u8).collect())
        .f64("time", shown().map(|packet| seconds(packet.time)).collect())
        .u32("count", marks.iter().map(|(_, mark)| mark.count).collect())
        .u32("bytes", marks.iter().map(|(_, mark)| mark.bytes).collect())
        .u32("packet", marks.iter().map(|(_, mark)| mark.packet).collect())
        .f64_or_null("link_time", marks.iter().map(|(_, mark)| link(mark)).collect())
}
