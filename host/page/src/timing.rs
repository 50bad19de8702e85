//! `/timing`: packets of many connections, a lane each, or all of them in a few lanes.

use std::collections::HashMap;

use serde_json::json;

use crate::batch;
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::packets::{KINDS, Kind, NONE, Packets};
use crate::params::Params;
use crate::reply::Reply;
use crate::span::{Columns, Span, seconds};
use crate::tables::{Query, Table};
use crate::timeline::{USUAL, WIDTH};

/// Most lanes.
const LANES: usize = 1000;
/// Most lanes that connections share.
const SHARED: usize = 100;
/// Most marks of an answer, each packet one up to here: a browser without a graphics card draws them in 0.1 s.
const MARKS: usize = 12_000;

/// What is drawn at a place: the packets of a lane, side and kind in a pixel column.
#[derive(Clone, Copy, Debug)]
struct Mark {
    lane: u16,
    /// Its first and last packet.
    first: u32,
    last: u32,
    count: u32,
    /// Smallest and largest payload.
    least: u32,
    bytes: u32,
}

impl Mark {
    fn add(&mut self, other: &Self) {
        self.last = self.last.max(other.last);
        self.count += other.count;
        self.least = self.least.min(other.least);
        self.bytes = self.bytes.max(other.bytes);
    }
}

/// The route.
pub fn get(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let packets = data.packets()?;
    let query = Query::take(data, Table::Connections, &mut params)?.overlapping();
    let span = query.span();
    let offset = params.number("offset", 0usize, 0, u32::MAX as usize)?;
    let limit = params.number("limit", 200usize, 0, LANES)?;
    let share = params.optional("share", 1, SHARED)?;
    let mut width = params.number("width", USUAL, 1, WIDTH)?;
    params.end()?;
    let rows = query.rows(data)?;
    let shared = share.filter(|_| rows.len() > limit);
    let end = rows.len().min(offset.saturating_add(limit));
    let lanes = match shared {
        Some(_) => &rows[..],
        None => rows.get(offset..end).unwrap_or_default(),
    };
    let lane = |place: usize| match shared {
        Some(share) => place * share / lanes.len(),
        None => place,
    };
    let mut lane_of = vec![None; packets.ids.len()];
    for (place, row) in lanes.iter().enumerate() {
        if let Some(flow) = packets.flow(data.connections[*row as usize].id) {
            lane_of[flow as usize] = Some(lane(place) as u16);
        }
    }
    let part = span.part(&packets.all, |packet| packet.time);
    let all = || {
        let places = part.start as u32..part.end as u32;
        places.zip(&packets.all[part.clone()]).filter_map(|(place, packet)| {
            Some(Mark {
                lane: lane_of[packet.flow as usize]?,
                first: place,
                last: place,
                count: 1,
                least: packet.length,
                bytes: packet.length,
            })
        })
    };
    let total = all().count();
    let exact = total <= MARKS;
    let mut marks: Vec<Mark> = if exact {
        all().collect()
    } else {
        let used = lanes.len().checked_sub(1).map_or(0, |last| lane(last) + 1);
        let mut cells = Cells::new(packets, span, width, used);
        let mut marks = cells.fold(all());
        while marks.len() > MARKS && width > 1 {
            width = width.div_ceil(2);
            cells = Cells::new(packets, span, width, used);
            marks = cells.fold(marks.into_iter());
        }
        marks
    };
    marks.sort_unstable_by_key(|mark| mark.first);
    let segments = match exact {
        true => marks.iter().map(|mark| mark.count).collect(),
        false => segments(packets, &marks, span.columns(width)),
    };
    Reply::columns(
        columns_of(packets, &marks, segments, exact)
            .says("rows", total)
            .says("exact", exact)
            .says("width", width)
            .says("lanes", json!(if shared.is_some() { &[] } else { lanes }))
            .says("shared", shared.unwrap_or(0))
            .says("total", rows.len())
            .says("kinds", json!(KINDS)),
    )
}

/// Marks of one pixel column after the other.
struct Cells<'a> {
    packets: &'a Packets,
    span: Span,
    width: usize,
    /// Of the column: place of the mark of each lane, side and kind in what is made, or NONE.
    column: Vec<u32>,
}

impl<'a> Cells<'a> {
    fn new(packets: &'a Packets, span: Span, width: usize, lanes: usize) -> Self {
        Self {
            packets,
            span,
            width,
            column: vec![NONE; lanes * 2 * KINDS.len()],
        }
    }

    /// Marks in the order of columns to one for each lane, side, kind and column.
    fn fold(&mut self, marks: impl Iterator<Item = Mark>) -> Vec<Mark> {
        let columns = self.span.columns(self.width);
        let mut out: Vec<Mark> = Vec::new();
        // Where the column begins in what is made, and when it ends.
        let (mut begin, mut until) = (0, 0);
        for mark in marks {
            let packet = self.packets.get(mark.first);
            if packet.time >= until {
                for done in &out[begin..] {
                    let slot = self.slot(done);
                    self.column[slot] = NONE;
                }
                begin = out.len();
                until = columns.edge(columns.of(packet.time) + 1);
            }
            let slot = self.slot(&mark);
            match self.column[slot] {
                NONE => {
                    self.column[slot] = out.len() as u32;
                    out.push(mark);
                }
                known => out[known as usize].add(&mark),
            }
        }
        out
    }

    fn slot(&self, mark: &Mark) -> usize {
        let packet = self.packets.get(mark.first);
        (usize::from(mark.lane) * 2 + packet.side()) * KINDS.len() + packet.kind as usize
    }
}

/// Data segments of the lane, side and column of each mark, whatever their kinds: those sent again are drawn as a part of
/// them.
fn segments(packets: &Packets, marks: &[Mark], columns: Columns) -> Vec<u32> {
    const KINDS: [Kind; 3] = [Kind::Data, Kind::OutOfOrder, Kind::Retransmission];
    let place = |mark: &Mark| {
        let packet = packets.get(mark.first);
        (mark.lane, packet.server, columns.of(packet.time))
    };
    let mut sums: HashMap<_, u32> = HashMap::new();
    for mark in marks {
        if KINDS.contains(&packets.get(mark.first).kind) {
            *sums.entry(place(mark)).or_default() += mark.count;
        }
    }
    marks
        .iter()
        .map(|mark| sums.get(&place(mark)).copied().unwrap_or(0))
        .collect()
}

fn columns_of(packets: &Packets, marks: &[Mark], segments: Vec<u32>, exact: bool) -> batch::Columns {
    let shown = || marks.iter().map(|mark| packets.get(mark.first));
    let link = |mark: &Mark| {
        let first = packets.original(mark.first).filter(|_| exact)?;
        Some(seconds(packets.get(first).time))
    };
    batch::Columns::default()
        .u16("lane", marks.iter().map(|mark| mark.lane).collect())
        .bool("server", shown().map(|packet| packet.server).collect())
        .u8("kind", shown().map(|packet| packet.kind as u8).collect())
        .f64("time", shown().map(|packet| seconds(packet.time)).collect())
        .f64(
            "time_last",
            marks.iter().map(|mark| seconds(packets.get(mark.last).time)).collect(),
        )
        .u32("count", marks.iter().map(|mark| mark.count).collect())
        .u32("segments", segments)
        .u32("bytes_min", marks.iter().map(|mark| mark.least).collect())
        .u32("bytes", marks.iter().map(|mark| mark.bytes).collect())
        .u32("packet", marks.iter().map(|mark| mark.first).collect())
        .f64_or_null("link_time", marks.iter().map(link).collect())
}
