//! Packet timing of one connection: the client's packets below, the server's above, the shape tells the kind.

use std::collections::HashMap;

use maud::{Markup, html};
use weir_messages::v1::{Connection, PacketRow};

use crate::chart::{Plane, drawing, n};
use crate::document::{Figure, Text};
use crate::format::{count, seconds};

/// Height of the chart, px.
const HEIGHT: f64 = 120.0;
/// Payload that is drawn full height.
const SEGMENT: f64 = 1460.0;
/// Height of such a packet, px.
const TALL: f64 = 34.0;

/// The first packets of a connection.
#[derive(Debug)]
pub struct Trace {
    /// The connection.
    pub id: u64,
    /// Its client and its server, address and port.
    pub ends: [String; 2],
    /// Its packets.
    pub rows: Vec<PacketRow>,
    /// Later ones that are not in `rows`.
    pub left_out: u64,
}

/// Id of the chart of a connection.
pub fn anchor(id: u64) -> String {
    format!("fig-packets-{id}")
}

/// What a packet is drawn as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Syn,
    Data,
    Again,
    Ack,
    Fin,
    Rst,
}

const SHAPES: [(Shape, &str, &str); 6] = [
    (Shape::Syn, "k2", "SYN"),
    (Shape::Data, "kf", "data, as tall as it is long"),
    (Shape::Again, "k1", "sent again, joined to the first"),
    (Shape::Ack, "k5", "ACK"),
    (Shape::Fin, "k6", "FIN"),
    (Shape::Rst, "kb", "RST"),
];

/// The chart; `connection` if it is known.
pub fn figure(trace: &Trace, connection: Option<&Connection>) -> Option<Figure> {
    let (first, last) = (trace.rows.first()?.time?, trace.rows.last()?.time?);
    let since = |row: &PacketRow| {
        row.time.map_or(0, |time| {
            time.unix_nanos().saturating_sub(first.unix_nanos()).max(0) as u64
        })
    };
    // One packet has no timing.
    let span = u64::try_from(last.unix_nanos().saturating_sub(first.unix_nanos()))
        .ok()
        .filter(|span| *span > 0)?;
    let mut plane = Plane::new((0, span), 0.0, HEIGHT);
    plane.left += 8.0;
    plane.right += 30.0;
    let (server, client) = (plane.top + 48.0, plane.bottom - 10.0);
    // Where a sequence number was sent first, by direction.
    let mut sent: HashMap<(bool, u32), f64> = HashMap::new();
    let mut used = [false; SHAPES.len()];
    let mut marks: Vec<Markup> = Vec::new();
    for row in &trace.rows {
        let x = plane.x(since(row));
        let y = if row.from_server { server } else { client };
        let has = |flag| row.flags.contains(flag);
        let takes_room = row.length > 0 || has('S') || has('F');
        let before = takes_room
            .then(|| sent.get(&(row.from_server, row.seq)).copied())
            .flatten();
        if takes_room && before.is_none() {
            sent.insert((row.from_server, row.seq), x);
        }
        let shape = match () {
            () if has('R') => Shape::Rst,
            () if before.is_some() => Shape::Again,
            () if has('S') => Shape::Syn,
            () if has('F') => Shape::Fin,
            () if row.length > 0 => Shape::Data,
            () => Shape::Ack,
        };
        if let Some(place) = SHAPES.iter().position(|(known, _, _)| *known == shape) {
            used[place] = true;
            marks.push(mark(
                shape,
                SHAPES[place].1,
                x,
                y,
                row,
                before,
                seconds(since(row) as f64 / 1e9),
            ));
        }
    }
    let body = html! {
        (plane.elapsed_axis())
        text.e x=(n(plane.left - 6.0)) y=(n(server + 4.0)) { "server" }
        text.e x=(n(plane.left - 6.0)) y=(n(client + 4.0)) { "client" }
        line.axis x1=(n(plane.left)) x2=(n(plane.right)) y1=(n(server)) y2=(n(server)) {}
        line.axis x1=(n(plane.left)) x2=(n(plane.right)) y1=(n(client)) y2=(n(client)) {}
        @for mark in &marks { (mark) }
    };
    let entries: Vec<_> = SHAPES
        .iter()
        .zip(used)
        .filter(|(_, used)| *used)
        .map(|((_, colour, name), _)| ((*colour).to_owned(), false, (*name).to_owned()))
        .collect();
    Some(Figure {
        id: anchor(trace.id),
        caption: caption(trace, connection),
        drawing: drawing(
            plane.whole_height(),
            format!("Packets of connection {}", trace.id),
            body,
            entries,
        ),
    })
}

fn mark(shape: Shape, colour: &str, x: f64, y: f64, row: &PacketRow, before: Option<f64>, at: String) -> Markup {
    let tall = 5.0 + TALL * (f64::from(row.length) / SEGMENT).min(1.0);
    let path = match shape {
        Shape::Data | Shape::Again => format!("M{:.1} {y:.1}h3v-{tall:.1}h-3z", x - 1.5),
        Shape::Syn => format!("M{:.1} {:.1}l4 -9l4 9z", x - 4.0, y + 3.0),
        Shape::Ack => format!("M{x:.1} {:.1}l3 3l-3 3l-3 -3z", y - 3.0),
        Shape::Fin => format!("M{:.1} {:.1}h6v6h-6z", x - 3.0, y - 3.0),
        Shape::Rst => format!(
            "M{:.1} {:.1}l2 -2l3 3l3 -3l2 2l-3 3l3 3l-2 2l-3 -3l-3 3l-2 -2l3 -3z",
            x - 5.0,
            y - 3.0
        ),
    };
    let title = format!(
        "{at}: {} {} bytes seq {} ack {}",
        row.flags, row.length, row.seq, row.ack
    );
    html! {
        g class=(colour) {
            @if let Some(first) = before {
                path.line d={ "M" (n(first)) " " (n(y - tall)) "Q" (n(f64::midpoint(first, x))) " " (n(y - tall - 22.0)) " " (n(x)) " " (n(y - tall)) } {}
            }
            path.fill d=(path) { title { (title) } }
        }
    }
}

fn caption(trace: &Trace, connection: Option<&Connection>) -> Text {
    let mut text = Text::default().strong(format!("Connection {}", trace.id)).plain(": ");
    let [client, server] = &trace.ends;
    text = text.plain(format!("{client} to {server}. "));
    if let Some(c) = connection {
        if let Some(setup) = &c.setup {
            text = text
                .plain(format!("Setup {}: ", setup.outcome))
                .code(&setup.description)
                .plain(". ");
            if !setup.explanation.is_empty() {
                text = text.plain(format!("{}. ", setup.explanation.trim_end_matches('.')));
            }
        }
        if let Some(close) = &c.close {
            text = text.plain(format!("Closed: {}. ", close.kind));
        }
    }
    let shown = count(trace.rows.len() as u64);
    text = match trace.left_out {
        0 => text.plain(format!("All of its {shown} packets. ")),
        more => text.plain(format!(
            "Its first {shown} packets of {}. ",
            count(trace.rows.len() as u64 + more)
        )),
    };
    text.plain("As a table: ")
        .code(format!("weir packets FILE --connection {}", trace.id))
}
