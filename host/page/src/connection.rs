//! One connection: what is known of it, its packets, its time-sequence graph.

use serde_json::json;
use weir_align::{Between, Passage, Sightings};
use weir_record::tcp_flag;

use crate::batch;
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::packets::{KINDS, Kind, Packet, Packets, Unwrap};
use crate::params::{Params, shown};
use crate::reply::Reply;
use crate::span::{Span, seconds};
use crate::timeline::{USUAL, WIDTH};

/// Most packets of an answer.
const PACKETS: usize = 20_000;
/// Transactions and verdicts beside a connection.
const BESIDE: usize = 1000;
/// Largest window scale (RFC 7323 2.3).
const SCALE: u32 = 14;

/// Row of the connection that a request names.
fn row(data: &Dataset, id: &str) -> Result<u32, Refused> {
    let found = id.parse().ok().and_then(|id| data.row(id));
    found.ok_or_else(|| Refused::not_found(format_args!("there is no connection {} in this capture", shown(id))))
}

/// `/connections/{id}`.
pub fn get(data: &Dataset, id: &str, params: Params) -> Result<Reply, Refused> {
    params.end()?;
    let row = row(data, id)?;
    let connection = &data.connections[row as usize];
    let life = data.lives[row as usize];
    // All of it happened between its first and its last packet.
    let span = Span {
        from: life.first,
        to: life.last + 1,
    };
    let near = &data.exchanges[span.part(&data.exchanges, |t| t.begin)];
    let skipped = data.exchanges.partition_point(|t| t.begin < span.from);
    let mine = |(_, t): &(usize, &crate::dataset::Exchange)| t.connection == Some(row);
    let mut transactions: Vec<_> = (skipped..)
        .zip(near)
        .filter(mine)
        .map(|(place, _)| data.transactions[place].as_ref())
        .collect();
    transactions.sort_by_key(|transaction| transaction.index);
    let verdicts = data.verdicts.iter().filter(|v| v.connection.0 == connection.id);
    let mut segments: Vec<_> = verdicts.collect();
    let left_out = |count: usize| count.saturating_sub(BESIDE);
    let (more_transactions, more_segments) = (left_out(transactions.len()), left_out(segments.len()));
    transactions.truncate(BESIDE);
    segments.truncate(BESIDE);
    let segments: Vec<_> = segments.into_iter().map(|verdict| verdict.message()).collect();
    let packets = data.packets.as_ref();
    Ok(Reply::json(&json!({
        "row": row,
        "from": seconds(life.first),
        "to": seconds(life.last),
        "connection": **connection,
        "transactions": transactions,
        "segments": segments,
        "packets": packets.map(|packets| packets.of_connection(connection.id).len()),
        "transactionsLeftOut": more_transactions,
        "segmentsLeftOut": more_segments,
    })))
}

/// Its packets with what stands in none of them alone.
struct Trace<'a> {
    packets: &'a Packets,
    all: &'a [u32],
    rows: Vec<Row>,
    /// Where each side's relative numbers begin.
    first: [Option<u32>; 2],
    scales: [Option<u32>; 2],
}

/// Of a packet.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Relative to the first of its side.
    seq: i64,
    /// Relative to the first of the other side.
    ack: Option<i64>,
    window: Option<u64>,
}

/// Window scale of each side: what both offered, or what the data showed; none: not known.
fn scales(data: &Dataset, row: u32) -> [Option<u32>; 2] {
    let connection = &data.connections[row as usize];
    let setup = connection.setup.as_ref();
    let client = setup.and_then(|setup| setup.client_options.as_ref());
    let server = setup.and_then(|setup| setup.server_options.as_ref());
    // Only both together scale (RFC 7323 2.2).
    let offered = match (client, server) {
        (Some(client), Some(server)) => match (client.window_scale, server.window_scale) {
            (Some(client), Some(server)) => [Some(client), Some(server)],
            _ => [Some(0), Some(0)],
        },
        _ => [None, None],
    };
    let inferred = [&connection.client_to_server, &connection.server_to_client]
        .map(|direction| direction.as_ref().and_then(|direction| direction.inferred_window_scale));
    [0, 1].map(|side| offered[side].or(inferred[side]).map(|scale: u32| scale.min(SCALE)))
}

impl<'a> Trace<'a> {
    fn new(data: &Dataset, packets: &'a Packets, row: u32) -> Self {
        let all = packets.of_connection(data.connections[row as usize].id);
        let scales = scales(data, row);
        let mut first: [Option<u32>; 2] = [None; 2];
        for place in all {
            let packet = packets.get(*place);
            let side = packet.side();
            first[side].get_or_insert(packet.seq);
            if packet.has(tcp_flag::ACK) && first[1 - side].is_none() {
                // A side whose packets come later begins where the other has heard of it.
                first[1 - side] = all
                    .iter()
                    .map(|other| packets.get(*other))
                    .find(|other| other.side() != side)
                    .map(|other| other.seq)
                    .or(Some(packet.ack));
            }
        }
        let mut numbers = first.map(|first| first.map_or_else(Unwrap::default, Unwrap::from));
        let mut acks = first.map(|first| first.map_or_else(Unwrap::default, Unwrap::from));
        let rows = all
            .iter()
            .map(|place| {
                let packet = packets.get(*place);
                let side = packet.side();
                let is_syn = packet.has(tcp_flag::SYN);
                // The window of a SYN is never scaled (RFC 7323 2.2).
                let scale = if is_syn { Some(0) } else { scales[side] };
                Row {
                    // A RST's number may be anything.
                    seq: match packet.has(tcp_flag::RST) {
                        true => {
                            let mut aside = numbers[side];
                            aside.at(packet.seq)
                        }
                        false => numbers[side].at(packet.seq),
                    },
                    ack: packet.has(tcp_flag::ACK).then(|| match packet.has(tcp_flag::RST) {
                        true => {
                            let mut aside = acks[1 - side];
                            aside.at(packet.ack)
                        }
                        false => acks[1 - side].at(packet.ack),
                    }),
                    window: scale.map(|scale| u64::from(packet.window) << scale),
                }
            })
            .collect();
        Self {
            packets,
            all,
            rows,
            first,
            scales,
        }
    }

    /// What stands in none of the packets alone, of one that only another tap has: numbers go on from those before it.
    fn elsewhere(&self, packet: &Packet) -> Row {
        let side = packet.side();
        let before = self
            .all
            .partition_point(|other| self.packets.get(*other).time <= packet.time);
        let last = self.all[..before].iter().rposition(|other| {
            let other = self.packets.get(*other);
            other.side() == side && other.has(tcp_flag::ACK) && !other.has(tcp_flag::RST)
        });
        let far = |number: u32, from: u32| i64::from(number.wrapping_sub(from) as i32);
        let numbers = last.map(|last| (self.packet(last), self.rows[last]));
        let (seq, ack) = match numbers {
            Some((known, row)) => (
                row.seq + far(packet.seq, known.seq),
                row.ack.map(|ack| ack + far(packet.ack, known.ack)),
            ),
            None => (
                self.first[side].map_or(0, |first| far(packet.seq, first)),
                self.first[1 - side].map(|first| far(packet.ack, first)),
            ),
        };
        let scale = if packet.has(tcp_flag::SYN) {
            Some(0)
        } else {
            self.scales[side]
        };
        Row {
            seq,
            ack: ack.filter(|_| packet.has(tcp_flag::ACK)),
            window: scale.map(|scale| u64::from(packet.window) << scale),
        }
    }

    /// Places of its packets in a range.
    fn part(&self, span: Span) -> std::ops::Range<usize> {
        span.part(self.all, |packet| self.packets.get(*packet).time)
    }

    fn packet(&self, place: usize) -> &'a Packet {
        self.packets.get(self.all[place])
    }

    /// Edges of SACK blocks, relative as ACKs are.
    fn sack(&self, shown: &Shown) -> Option<String> {
        let sack = self.packets.sack(shown.place?)?;
        let ack = shown.row.ack?;
        let near = |edge: u32| ack + i64::from(edge.wrapping_sub(shown.packet.ack) as i32);
        let blocks: Vec<_> = sack
            .sack()
            .map(|(left, right)| format!("{}-{}", near(left), near(right)))
            .collect();
        Some(blocks.join(" "))
    }
}

/// A packet of this tap by its place in the trace, or one that only another tap has.
#[derive(Clone, Copy, Debug)]
enum Item {
    Here(usize),
    There(usize),
}

/// A packet in a table.
#[derive(Clone, Copy, Debug)]
struct Shown {
    packet: Packet,
    /// None: only another tap has it.
    place: Option<u32>,
    /// Whose frame it is, as a place in the path, that of the tap nearest to the client first.
    tap: usize,
    row: Row,
    /// When the tap nearest to the server had it, ns, and where it was lost; none: that is not known.
    far: Option<u64>,
    passage: Option<Passage>,
}

impl Shown {
    /// Of a packet of this tap.
    fn here(data: &Dataset, trace: &Trace<'_>, place: usize) -> Self {
        let packet = *trace.packet(place);
        let near = &data.path.sightings.near;
        let sighting = near.binary_search_by_key(&packet.number, |sighting| sighting.number);
        let sighting = sighting.ok().map(|place| near[place]);
        Self {
            packet,
            place: Some(trace.all[place]),
            tap: 0,
            row: trace.rows[place],
            far: sighting
                .filter(|sighting| sighting.passage == Passage::Both)
                .map(|sighting| data.since_tai(sighting.time)),
            passage: sighting.map(|sighting| sighting.passage),
        }
    }

    /// When a tap between the outer two had it, ns; `tap`: its place in the path.
    fn at(&self, data: &Dataset, tap: usize, between: &Between) -> Option<u64> {
        if self.tap == tap {
            return Some(self.packet.time);
        }
        let passes = &between[self.tap];
        let found = passes.binary_search_by_key(&self.packet.number, |pass| pass.number);
        found.ok().map(|place| data.since_tai(passes[place].time))
    }

    /// Those of a connection that only other taps have.
    fn elsewhere<'a>(data: &'a Dataset, trace: &'a Trace<'_>, id: u64) -> impl Iterator<Item = Self> + 'a {
        let Sightings { far, between, .. } = &data.path.sightings;
        let first = far.partition_point(|packet| packet.connection < id);
        let mine = far[first..].iter().take_while(move |packet| packet.connection == id);
        mine.map(|sighting| {
            let time = data.since_tai(sighting.time);
            let packet = Packet::elsewhere(sighting, time);
            Self {
                packet,
                place: None,
                tap: sighting.tap,
                row: trace.elsewhere(&packet),
                far: (sighting.tap > between.len()).then_some(time),
                passage: Some(sighting.passage),
            }
        })
    }
}

const fn passage_name(passage: Passage) -> &'static str {
    match passage {
        Passage::Both => "BOTH",
        Passage::Lost => "LOST",
        Passage::Missed => "MISSED",
        Passage::Copied => "COPIED",
        Passage::Undecided => "UNDECIDED",
        Passage::Outside => "OUTSIDE",
    }
}

/// `/connections/{id}/packets`.
pub fn packets(data: &Dataset, id: &str, mut params: Params) -> Result<Reply, Refused> {
    let packets = data.packets()?;
    let row = row(data, id)?;
    let span = params.span(data.since_start())?;
    let offset = params.number("offset", 0usize, 0, u32::MAX as usize)?;
    let limit = params.number("limit", 2000usize, 1, PACKETS)?;
    let kinds = params.list("kinds").map(|kinds| kind_numbers(&kinds)).transpose()?;
    let with_taps = params.word("taps", &[("false", false), ("true", true)])?;
    params.end()?;
    let trace = Trace::new(data, packets, row);
    let there: Vec<Shown> = match with_taps {
        true => Shown::elsewhere(data, &trace, data.connections[row as usize].id).collect(),
        false => Vec::new(),
    };
    let packet = |item: Item| match item {
        Item::Here(place) => trace.packet(place),
        Item::There(place) => &there[place].packet,
    };
    let mut items: Vec<Item> = (0..trace.all.len()).map(Item::Here).collect();
    if !there.is_empty() {
        items.extend((0..there.len()).map(Item::There));
        items.sort_by_key(|item| packet(*item).time);
    }
    let wanted = |place: &usize| {
        let kind = packet(items[*place]).kind as usize;
        kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    };
    let all: Vec<usize> = span.part(&items, |item| packet(*item).time).filter(wanted).collect();
    let end = all.len().min(offset.saturating_add(limit));
    let part = all.get(offset..end).unwrap_or_default();
    let delta = |place: &usize| match place.checked_sub(1) {
        Some(before) => seconds(packet(items[*place]).time - packet(items[before]).time),
        None => 0.0,
    };
    let deltas = part.iter().map(delta).collect();
    let shown = |place: &usize| match items[*place] {
        Item::Here(place) => Shown::here(data, &trace, place),
        Item::There(place) => there[place],
    };
    let part: Vec<Shown> = part.iter().map(shown).collect();
    let each = || part.iter().map(|shown| &shown.packet);
    let rows = || part.iter().map(|shown| shown.row);
    let of = |shown: &Shown| shown.place;
    let verdicts: Vec<_> = part
        .iter()
        .map(|shown| Some(&data.verdicts[packets.verdict(of(shown)?)? as usize]))
        .collect();
    let verdict = |name: fn(&weir_analysis::Verdict) -> &'static str| verdicts.iter().map(move |v| v.map(name));
    let columns = batch::Columns::default()
        .u32_or_null("packet", part.iter().map(of).collect())
        .f64("number", each().map(|p| f64::from(p.number)).collect())
        .f64("time", each().map(|p| seconds(p.time)).collect())
        .f64("delta", deltas)
        .bool("server", each().map(|p| p.server).collect())
        .u8("kind", each().map(|p| p.kind as u8).collect())
        .u32("wire_bytes", each().map(|p| u32::from(p.wire)).collect())
        .u32("length", each().map(|p| p.length).collect())
        .u8("ttl", each().map(|p| p.ttl).collect())
        .u8("flags", each().map(|p| p.flags).collect())
        .u16("ip_id", each().map(|p| p.ip_id).collect())
        .u16("window", each().map(|p| p.window).collect())
        .f64_or_null("window_bytes", rows().map(|row| row.window.map(|w| w as f64)).collect())
        .u32("seq", each().map(|p| p.seq).collect())
        .u32("ack", each().map(|p| p.ack).collect())
        .f64("seq_relative", rows().map(|row| row.seq as f64).collect())
        .f64_or_null("ack_relative", rows().map(|row| row.ack.map(|a| a as f64)).collect())
        .text("sack", part.iter().map(|shown| trace.sack(shown)).collect())
        .u32_or_null(
            "block_bytes",
            part.iter().map(|shown| packets.block(of(shown)?)).collect(),
        )
        .u32_or_null(
            "original",
            part.iter().map(|shown| packets.original(of(shown)?)).collect(),
        )
        .words("class", verdict(|v| v.class.name()))
        .words("cause", verdict(|v| v.cause.name()))
        .words("place", verdict(|v| v.place.name()))
        .f64_or_null(
            "confidence",
            verdicts.iter().map(|v| v.map(|v| v.message().confidence)).collect(),
        )
        .text("note", part.iter().map(|shown| packets.note(of(shown)?)).collect())
        .says("total", all.len())
        .says("offset", offset)
        .says("client_isn", trace.first[0].map_or_else(String::new, |n| n.to_string()))
        .says("server_isn", trace.first[1].map_or_else(String::new, |n| n.to_string()))
        .says("kinds", json!(KINDS));
    if !with_taps {
        return Reply::columns(columns);
    }
    let times = |of: &dyn Fn(&Shown) -> Option<u64>| part.iter().map(|shown| of(shown).map(seconds)).collect();
    let columns = columns
        .u8("tap", part.iter().map(|shown| shown.tap as u8).collect())
        .f64_or_null("far", times(&|shown| shown.far))
        .words("passage", part.iter().map(|shown| shown.passage.map(passage_name)));
    let between = data.path.sightings.between.iter().zip(1..);
    Reply::columns(between.fold(columns, |columns, (between, tap)| {
        columns.f64_or_null(&format!("between_{tap}"), times(&|shown| shown.at(data, tap, between)))
    }))
}

fn kind_numbers(kinds: &[String]) -> Result<Vec<usize>, Refused> {
    let number = |kind: &String| {
        let place = KINDS.iter().position(|name| name == kind);
        place.ok_or_else(|| Refused::invalid(format_args!("kinds: {} is none of {}", shown(kind), KINDS.join(", "))))
    };
    kinds.iter().map(number).collect()
}

/// Smallest and largest.
#[derive(Clone, Copy, Debug, Default)]
struct Extent(Option<(i64, i64)>);

impl Extent {
    fn add(&mut self, low: i64, high: i64) {
        self.0 = Some(match self.0 {
            None => (low, high),
            Some((before_low, before_high)) => (before_low.min(low), before_high.max(high)),
        });
    }

    fn low(self) -> Option<f64> {
        self.0.map(|(low, _)| low as f64)
    }

    fn high(self) -> Option<f64> {
        self.0.map(|(_, high)| high as f64)
    }
}

/// A pixel column of the time-sequence graph.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    time: u64,
    last: u64,
    seq: Extent,
    ack: Extent,
    edge: Extent,
    in_flight: Extent,
    window: Extent,
    packets: u32,
    all: u32,
    retransmitted: u32,
    sacks: u32,
    bytes: u64,
}

/// `/connections/{id}/sequence`.
pub fn sequence(data: &Dataset, id: &str, mut params: Params) -> Result<Reply, Refused> {
    let packets = data.packets()?;
    let row = row(data, id)?;
    let connection = &data.connections[row as usize];
    let span = params.span(data.since_start())?;
    let width = params.number("width", USUAL, 1, WIDTH)?;
    let asked = params.word("side", &[("", None), ("client", Some(0)), ("server", Some(1))])?;
    params.end()?;
    let directions = [&connection.client_to_server, &connection.server_to_client].map(Option::as_ref);
    let sent = directions.map(|direction| direction.map_or(0, |direction| direction.payload_bytes));
    let side = asked.unwrap_or_else(|| usize::from(sent[1] > sent[0]));
    let trace = Trace::new(data, packets, row);
    let columns = span.columns(width);
    let mut out: Vec<Column> = Vec::new();
    let mut at = usize::MAX;
    let mut flight = Flight::default();
    let part = trace.part(span);
    // What was sent before the range is in flight in it.
    for place in 0..part.end {
        let (packet, numbers) = (trace.packet(place), trace.rows[place]);
        let from_sender = packet.side() == side;
        flight.add(packet, numbers, from_sender);
        if place < part.start {
            continue;
        }
        let here = columns.of(packet.time);
        if here != at {
            at = here;
            out.push(Column {
                time: packet.time,
                ..Column::default()
            });
        }
        let Some(column) = out.last_mut() else { continue };
        column.last = packet.time;
        column.all += 1;
        if from_sender {
            if packet.room() > 0 && !packet.has(tcp_flag::RST) {
                column.seq.add(numbers.seq, numbers.seq + i64::from(packet.room()));
                column.packets += u32::from(packet.length > 0);
                column.bytes += u64::from(packet.length);
                column.retransmitted += u32::from(packet.kind == Kind::Retransmission);
            }
        } else if let Some(ack) = numbers.ack.filter(|_| !packet.has(tcp_flag::RST)) {
            column.ack.add(ack, ack);
            column.sacks += u32::from(packets.sack(trace.all[place]).is_some());
            if let Some(window) = numbers.window {
                let edge = ack + window as i64;
                column.edge.add(edge, edge);
                column.window.add(window as i64, window as i64);
            }
        }
        if let Some(bytes) = flight.bytes() {
            column.in_flight.add(bytes, bytes);
        }
    }
    let ideal = directions[side].and_then(|direction| direction.ceilings.as_ref()?.ideal_window_bytes);
    let each = |of: fn(&Column) -> Option<f64>| out.iter().map(of).collect::<Vec<_>>();
    let answer = batch::Columns::default()
        .f64("time", out.iter().map(|c| seconds(c.time)).collect())
        .f64("time_last", out.iter().map(|c| seconds(c.last)).collect())
        .f64_or_null("seq_low", each(|c| c.seq.low()))
        .f64_or_null("seq_high", each(|c| c.seq.high()))
        .f64_or_null("ack_low", each(|c| c.ack.low()))
        .f64_or_null("ack_high", each(|c| c.ack.high()))
        .f64_or_null("edge_low", each(|c| c.edge.low()))
        .f64_or_null("edge_high", each(|c| c.edge.high()))
        .u32("packets", out.iter().map(|c| c.packets).collect())
        .u32("retransmitted", out.iter().map(|c| c.retransmitted).collect())
        .u32("sacks", out.iter().map(|c| c.sacks).collect())
        .f64("bytes", out.iter().map(|c| c.bytes as f64).collect())
        .f64_or_null("in_flight_min", each(|c| c.in_flight.low()))
        .f64_or_null("in_flight_max", each(|c| c.in_flight.high()))
        .f64_or_null("window_min", each(|c| c.window.low()))
        .f64_or_null("window_max", each(|c| c.window.high()))
        .says("side", ["client", "server"][side])
        .says("packets", part.len())
        .says("exact", out.iter().all(|column| column.all == 1))
        .says("isn", trace.first[side].map_or_else(String::new, |n| n.to_string()));
    Reply::columns(match ideal {
        Some(bytes) => answer.says("ideal_window_bytes", bytes),
        None => answer,
    })
}

/// Sent and not acknowledged, by the highest numbers of both; SACK does not take from it.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    sent: Option<i64>,
    acknowledged: Option<i64>,
}

impl Flight {
    fn add(&mut self, packet: &Packet, numbers: Row, from_sender: bool) {
        if packet.has(tcp_flag::RST) {
            return;
        }
        let (slot, value) = match from_sender {
            true => (&mut self.sent, Some(numbers.seq + i64::from(packet.room()))),
            false => (&mut self.acknowledged, numbers.ack),
        };
        *slot = (*slot).max(value);
    }

    /// None until both sides were heard.
    fn bytes(&self) -> Option<i64> {
        Some((self.sent? - self.acknowledged?).max(0))
    }
}
