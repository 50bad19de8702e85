//! Transactions of one connection, one bar below the other: request, wait for the server, response.
//!
//! Of each service one connection at a time is followed from its beginning, and the one with the most transactions is
//! kept: at most [`SERVICES`] of them with [`BARS`] bars, 0.5 MB.

use std::collections::HashMap;

use maud::html;
use weir_analysis::{Connection, Transaction, TransactionKind, address};

use crate::chart::{Plane, WIDTH, drawing, n};
use crate::collect::Service;
use crate::document::{Figure, Text};
use crate::figures::service_name;
use crate::format::{count, seconds};

/// Services that are followed, in the order of their first transaction.
const SERVICES: usize = 16;
/// Charts, of the services with most transactions.
const CHARTS: usize = 4;
/// Bars that are kept.
const BARS: usize = 40;
/// Transactions that make a chart.
const LEAST: usize = 2;
/// Height of a bar and its room, px; room for names.
const BAR: f64 = 9.0;
const ROW: f64 = 15.0;
const NAMES: f64 = 250.0;
/// Px behind the longest bar for its time, and that it had losses.
const ROOM: f64 = 115.0;
/// Letters of a name.
const LETTERS: usize = 42;

/// A setup or a request and its response, ns.
#[derive(Clone, Debug)]
struct Bar {
    name: String,
    is_setup: bool,
    /// TAI ns.
    start: u64,
    /// First to last packet of the request (SYN) and from there to the first of the response.
    request: u64,
    server: Option<u64>,
    /// To its last packet, if it came.
    response: Option<u64>,
    has_losses: bool,
}

/// A connection that is followed.
#[derive(Clone, Debug)]
struct Followed {
    id: u64,
    client: ([u8; 16], u16),
    bars: Vec<Bar>,
    more: u64,
}

impl Followed {
    fn transactions(&self) -> u64 {
        self.bars.len() as u64 + self.more
    }
}

#[derive(Debug, Default)]
struct OfService {
    now: Option<Followed>,
    most: Option<Followed>,
    transactions: u64,
}

impl OfService {
    fn most(&self) -> Option<&Followed> {
        let both = self.most.iter().chain(&self.now);
        // Of equals the first.
        both.fold(None, |most: Option<&Followed>, next| match most {
            Some(most) if most.transactions() >= next.transactions() => Some(most),
            _ => Some(next),
        })
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Waterfalls {
    services: HashMap<Service, OfService>,
}

impl Waterfalls {
    pub fn transaction(&mut self, transaction: &Transaction<'_>) {
        let (ends, facts) = (transaction.ends(), transaction.facts());
        let key = (ends.server, ends.server_port);
        if self.services.len() >= SERVICES && !self.services.contains_key(&key) {
            return;
        }
        let service = self.services.entry(key).or_default();
        service.transactions += 1;
        let is_setup = facts.kind == TransactionKind::Setup;
        if service.now.is_none() && is_setup {
            service.now = Some(Followed {
                id: transaction.id().0,
                client: (ends.client, ends.client_port),
                bars: Vec::new(),
                more: 0,
            });
        }
        let Some(now) = service.now.as_mut().filter(|now| now.id == transaction.id().0) else {
            return;
        };
        if now.bars.len() >= BARS {
            now.more += 1;
            return;
        }
        let name = if is_setup {
            "setup".to_owned()
        } else {
            let text = transaction.signature();
            text.strip_prefix("Request: ").unwrap_or(text).to_owned()
        };
        now.bars.push(Bar {
            name,
            is_setup,
            start: facts.request_time,
            request: facts.request,
            server: facts.server,
            response: facts.response,
            has_losses: facts.losses > 0,
        });
    }

    pub fn connection(&mut self, connection: &Connection<'_>) {
        let ends = connection.ends();
        let Some(service) = self.services.get_mut(&(ends.server, ends.server_port)) else {
            return;
        };
        if let Some(over) = service.now.take_if(|now| now.id == connection.id().0)
            && service
                .most
                .as_ref()
                .is_none_or(|most| over.transactions() > most.transactions())
        {
            service.most = Some(over);
        }
    }

    /// The charts.
    pub fn figures(&self) -> Vec<Figure> {
        let mut services: Vec<_> = self.services.iter().collect();
        services.sort_by_key(|(key, service)| (std::cmp::Reverse(service.transactions), **key));
        services
            .into_iter()
            .filter_map(|(key, service)| Some((key, service.most().filter(|most| most.bars.len() > LEAST)?)))
            .take(CHARTS)
            .enumerate()
            .map(|(place, (key, followed))| figure(place, *key, followed))
            .collect()
    }
}

const COLOURS: [(&str, &str); 4] = [
    ("k5", "request, first to last packet"),
    ("k4", "wait for the server"),
    ("k0", "response, first to last packet"),
    ("k2", "setup"),
];

fn figure(place: usize, service: Service, followed: &Followed) -> Figure {
    let start = followed.bars.first().map_or(0, |bar| bar.start);
    let ends = |bar: &Bar| {
        let wait = bar.start - start.min(bar.start) + bar.request;
        (
            wait,
            wait + bar.server.unwrap_or(0),
            wait + bar.server.unwrap_or(0) + bar.response.unwrap_or(0),
        )
    };
    let last = followed.bars.iter().map(|bar| ends(bar).2).max().unwrap_or(0);
    let mut plane = Plane::new((0, last.max(1)), 0.0, ROW * followed.bars.len() as f64 + 4.0);
    plane.left = NAMES;
    plane.right = WIDTH - ROOM;
    let mut parts = [0u64; 3];
    for bar in followed.bars.iter().filter(|bar| !bar.is_setup) {
        parts[0] += bar.request;
        parts[1] += bar.server.unwrap_or(0);
        parts[2] += bar.response.unwrap_or(0);
    }
    let row = |number: usize, bar: &Bar| {
        let y = plane.top + 2.0 + ROW * number as f64 + (ROW - BAR) / 2.0;
        let (asked, answer, end) = ends(bar);
        let begun = bar.start - start.min(bar.start);
        let pieces = if bar.is_setup {
            vec![("k2", begun, end)]
        } else {
            vec![("k5", begun, asked), ("k4", asked, answer), ("k0", answer, end)]
        };
        let name: String = bar.name.chars().take(LETTERS).collect();
        let shown = if bar.name.chars().count() > LETTERS {
            format!("{name}…")
        } else {
            name
        };
        let title = format!(
            "{}: begins at {}, request {}, server {}, response {}",
            bar.name,
            seconds(begun as f64 / 1e9),
            seconds(bar.request as f64 / 1e9),
            bar.server.map_or_else(|| "–".to_owned(), |ns| seconds(ns as f64 / 1e9)),
            bar.response
                .map_or_else(|| "–".to_owned(), |ns| seconds(ns as f64 / 1e9)),
        );
        let took = seconds((end - begun) as f64 / 1e9);
        html! {
            text.e.name x=(n(plane.left - 6.0)) y=(n(y + 8.0)) { (shown) }
            @for (colour, from, to) in pieces {
                @if to > from || colour == "k4" || colour == "k2" {
                    g class=(colour) {
                        path.fill d=(format!("M{:.1} {y:.1}h{:.1}v{BAR:.1}h-{:.1}z", plane.x(from), width(&plane, from, to), width(&plane, from, to))) { title { (title) } }
                    }
                }
            }
            text x=(n(plane.x(end) + 5.0)) y=(n(y + 8.0)) { (took) @if bar.has_losses { " · losses" } }
        }
    };
    let body = html! {
        (plane.elapsed_axis())
        @for (number, bar) in followed.bars.iter().enumerate() { (row(number, bar)) }
    };
    let whole: u64 = parts.iter().sum();
    let share = |part: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let (host, port) = followed.client;
    let more = match followed.more {
        0 => String::new(),
        more => format!(" {} more are not shown.", count(more)),
    };
    Figure {
        id: format!("fig-waterfall-{}", place + 1),
        caption: Text::default()
            .strong(format!("Connection {}", followed.id))
            .plain(format!(
                ": its {} transactions between {}:{port} and {}, in their order. Of the connections to this service that were followed from \
                 beginning to end, one at a time, it is the one with most. Of the time of its requests, {:.1} % is wait for the server, {:.1} % the response, {:.1} % the request.{more}",
                count(followed.bars.iter().filter(|bar| !bar.is_setup).count() as u64),
                address(host),
                service_name(service),
                share(parts[1]),
                share(parts[2]),
                share(parts[0]),
            )),
        drawing: drawing(
            plane.whole_height(),
            format!("Transactions of connection {}", followed.id),
            body,
            COLOURS.map(|(colour, name)| (colour.to_owned(), false, name.to_owned())).to_vec(),
        ),
    }
}

/// Px between two times, never nothing.
fn width(plane: &Plane, from: u64, to: u64) -> f64 {
    (plane.x(to) - plane.x(from)).max(0.8)
}
