//! `/waits`: what each host waits for between its messages, and which call to the tier behind was made for which request.
//!
//! Between a response and the next request of its connection the client works or pauses; between a request and its
//! response the server works, or waits for the calls that it made for this request (as far as times decide which those
//! are: [`decide`]); while a message of several packets is under way, its sender waits for the network, unless the
//! analysis charges most of that time to the sender itself.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;
use weir_messages::v1::{Connection, Endpoint};
use weir_patterns::calls::{Decided, Piece, Whose, decide, is_connection_a_call};

use crate::batch;
use crate::dataset::{Dataset, Exchange, length};
use crate::error::Refused;
use crate::packets::NONE;
use crate::params::Params;
use crate::reply::Reply;
use crate::span::{Span, seconds};
use crate::timeline::{USUAL, WIDTH};

/// Most waits of an answer.
const MOST: usize = 20_000;

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Why {
    /// The client works or pauses before its next request.
    Client,
    /// The network takes the request.
    Request,
    /// The server works.
    Server,
    /// The server waits for a call to the tier behind.
    Call,
    /// One of both: calls fit this request and others.
    Undecided,
    /// The network takes the response.
    Response,
}

/// Names by number.
const WHYS: [&str; 6] = ["CLIENT", "REQUEST", "SERVER", "CALL", "UNDECIDED", "RESPONSE"];

/// A host waits.
#[derive(Clone, Copy, Debug)]
struct Wait {
    from: u64,
    to: u64,
    /// Transaction.
    row: u32,
    /// Place of the call that is waited for.
    call: u32,
    why: Why,
}

/// A call that was made for one request.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// Transaction in front.
    request: u32,
    begin: u64,
    end: u64,
    /// Its connection's row.
    connection: u32,
}

/// All waits of a capture.
#[derive(Debug, Default)]
pub struct Waits {
    /// By beginning.
    all: Vec<Wait>,
    /// By request, then by beginning.
    calls: Vec<Call>,
    /// Place of the call that each transaction is (part of), or none.
    call_of: Vec<u32>,
    /// Calls that fit several requests, and those of somebody else.
    ambiguous: u64,
    alone: u64,
}

/// Calls that fit several requests, by their beginning, each with the earliest end from it on.
#[derive(Debug, Default)]
struct Ambiguous(Vec<(u64, u64)>);

impl Ambiguous {
    fn of(mut calls: Vec<(u64, u64)>) -> Self {
        calls.sort_unstable();
        let mut earliest = u64::MAX;
        for (_, end) in calls.iter_mut().rev() {
            earliest = earliest.min(*end);
            *end = earliest;
        }
        Self(calls)
    }

    /// One of them lies in this time.
    fn fits(&self, begin: u64, end: u64) -> bool {
        let next = self.0.partition_point(|(start, _)| *start < begin);
        self.0.get(next).is_some_and(|(_, earliest)| *earliest <= end)
    }
}

fn address(end: Option<&Endpoint>) -> &str {
    end.map_or("", |end| end.address.as_str())
}

fn name(end: Option<&Endpoint>) -> String {
    end.map_or_else(String::new, |end| format!("{}:{}", end.address, end.port))
}

impl Waits {
    /// Of a capture.
    pub fn of(data: &Dataset) -> Self {
        let mut out = Self::default();
        let mut ambiguous: HashMap<(&str, u32), Ambiguous> = HashMap::new();
        // First transactions of calls until all are there: sorting moves calls.
        let mut made: Vec<(Call, Vec<u32>)> = Vec::new();
        for tier in &data.summary.tiers {
            let (Some(front), Some(back)) = (&tier.front, &tier.back) else {
                continue;
            };
            let (decided, rows) = tier_calls(data, front, back);
            let mut unclear = Vec::new();
            for (call, whose) in &decided.calls {
                match whose {
                    Whose::One(request) => {
                        let rows = rows.get(&call.id).cloned().unwrap_or_else(|| vec![call.id]);
                        let call = Call {
                            request: decided.requests[*request].id,
                            begin: call.start,
                            end: call.end,
                            connection: data.exchanges[call.id as usize].connection.unwrap_or(NONE),
                        };
                        made.push((call, rows));
                    }
                    Whose::Several(_) => unclear.push((call.start, call.end)),
                    Whose::Nobodys => out.alone += 1,
                }
            }
            out.ambiguous += unclear.len() as u64;
            let known = ambiguous.entry((front.address.as_str(), front.port)).or_default();
            unclear.append(&mut known.0);
            *known = Ambiguous::of(unclear);
        }
        made.sort_by_key(|(call, _)| (call.request, call.begin));
        out.call_of = vec![NONE; data.transactions.len()];
        for (place, (call, rows)) in (0u32..).zip(made) {
            out.calls.push(call);
            rows.into_iter().for_each(|row| out.call_of[row as usize] = place);
        }
        let mut ended: Vec<Option<u64>> = vec![None; data.connections.len()];
        for (row, exchange) in (0u32..).zip(&data.exchanges) {
            let Some(connection) = exchange.connection else {
                continue;
            };
            let ended = &mut ended[connection as usize];
            if !exchange.is_setup {
                let connection = &data.connections[connection as usize];
                out.transaction(data, row, exchange, *ended, |begin, end| {
                    let server = connection.server.as_ref();
                    let key = (address(server), server.map_or(0, |server| server.port));
                    ambiguous.get(&key).is_some_and(|unclear| unclear.fits(begin, end))
                });
            }
            *ended = exchange.end.max(*ended);
        }
        out.all.sort_by_key(|wait| wait.from);
        out
    }

    /// Waits of one; `before`: when the one before it in its connection ended.
    fn transaction(
        &mut self,
        data: &Dataset,
        row: u32,
        exchange: &Exchange,
        before: Option<u64>,
        is_unclear: impl Fn(u64, u64) -> bool,
    ) {
        let transaction = &data.transactions[row as usize];
        let shares = transaction.shares.unwrap_or_default();
        let all = &mut self.all;
        let mut add = |from: u64, to: u64, why: Why, call: u32| {
            if from < to {
                all.push(Wait {
                    from,
                    to,
                    row,
                    call,
                    why,
                });
            }
        };
        // The sender's own time is charged to it from before the first packet on.
        let takes = |from: u64, to: u64, own: f64, waited: f64, network: Why, sender: Why| match (own - waited) * 2.0
            > seconds(to.saturating_sub(from))
        {
            true => sender,
            false => network,
        };
        let begin = exchange.begin;
        let before = before.filter(|before| *before < begin);
        if let Some(before) = before {
            add(before, begin, Why::Client, NONE);
        }
        let asked = begin + length(transaction.request_seconds);
        let own = shares.user_think_seconds + shares.client_processing_seconds;
        let waited = before.map_or(0.0, |before| seconds(begin - before));
        add(
            begin,
            asked,
            takes(begin, asked, own, waited, Why::Request, Why::Client),
            NONE,
        );
        let Some(server) = transaction.server_seconds else {
            return;
        };
        let answered = asked + length(server);
        let own_calls = calls_of(&self.calls, row);
        let rest = match exchange.end.is_some_and(|end| is_unclear(begin, end)) {
            true => Why::Undecided,
            false => Why::Server,
        };
        let mut free = asked;
        for (place, call) in own_calls {
            add(free, call.begin.min(answered), rest, NONE);
            add(call.begin.max(asked), call.end.min(answered), Why::Call, place);
            free = free.max(call.end);
        }
        add(free, answered, rest, NONE);
        let Some(response) = transaction.response_seconds else {
            return;
        };
        let end = answered + length(response);
        let own = shares.server_processing_seconds;
        add(
            answered,
            end,
            takes(answered, end, own, server, Why::Response, Why::Server),
            NONE,
        );
    }
}

/// Calls of a request with their places.
fn calls_of(calls: &[Call], request: u32) -> impl Iterator<Item = (u32, &Call)> {
    let first = calls.partition_point(|call| call.request < request);
    (first as u32..)
        .zip(&calls[first..])
        .take_while(move |(_, call)| call.request == request)
}

/// Whose the calls of a tier to the one behind are, and the transactions of calls that are whole connections.
fn tier_calls(data: &Dataset, front: &Endpoint, back: &Endpoint) -> (Decided<u32>, HashMap<u32, Vec<u32>>) {
    let is_of = |connection: &Connection, service: &Endpoint| {
        let server = connection.server.as_ref();
        server.is_some_and(|server| server.port == service.port && server.address == service.address)
    };
    // 1: to the tier in front, 2: from there to the one behind.
    let of: Vec<u8> = data
        .connections
        .iter()
        .map(|connection| match is_of(connection, back) {
            true if address(connection.client.as_ref()) == front.address => 2,
            _ => u8::from(is_of(connection, front)),
        })
        .collect();
    let pieces = |tier: u8, setups: bool| {
        let all = (0u32..).zip(&data.exchanges);
        all.filter_map(|(row, exchange)| {
            let connection = exchange.connection?;
            let wanted = of[connection as usize] == tier && (setups || !exchange.is_setup);
            let piece = |end| Piece {
                start: exchange.begin,
                end,
                id: row,
            };
            wanted
                .then(|| exchange.end.map(piece))
                .flatten()
                .map(|piece| (connection, piece))
        })
        .collect::<Vec<_>>()
    };
    let plain = |pieces: Vec<(u32, Piece<u32>)>| pieces.into_iter().map(|(_, piece)| piece).collect();
    let connections = data.connections.iter().zip(&of);
    let answered = connections
        .filter(|(_, tier)| **tier == 2)
        .map(|(connection, _)| connection.turns);
    if !is_connection_a_call(answered) {
        return (decide(plain(pieces(1, false)), plain(pieces(2, false))), HashMap::new());
    }
    let mut visits: BTreeMap<u32, (Piece<u32>, Vec<u32>)> = BTreeMap::new();
    for (connection, piece) in pieces(2, true) {
        let (visit, rows) = visits.entry(connection).or_insert((piece, Vec::new()));
        visit.end = visit.end.max(piece.end);
        rows.push(piece.id);
    }
    let calls = visits.values().map(|(visit, _)| *visit).collect();
    let rows = visits.into_values().map(|(visit, rows)| (visit.id, rows)).collect();
    (decide(plain(pieces(1, false)), calls), rows)
}

/// Connections that a filter chose, and the calls that were made for their requests, and for those calls' requests.
#[derive(Debug)]
pub struct Chosen {
    connections: Vec<bool>,
    calls: Vec<bool>,
    /// Times of the calls by connection.
    windows: HashMap<u32, Vec<(u64, u64)>>,
}

impl Chosen {
    /// None where everything is chosen.
    pub fn new(data: &Dataset, filter: &str, with_calls: bool) -> Result<Option<Self>, Refused> {
        if filter.is_empty() {
            return Ok(None);
        }
        let mut connections = vec![false; data.connections.len()];
        for row in data.select_connections(filter)?.iter() {
            connections[*row as usize] = true;
        }
        let mut chosen = Self {
            connections,
            calls: Vec::new(),
            windows: HashMap::new(),
        };
        if with_calls {
            chosen.add_calls(data);
        }
        Ok(Some(chosen))
    }

    /// Calls of calls are found in the next round.
    fn add_calls(&mut self, data: &Dataset) {
        let calls = &data.waits().calls;
        self.calls = vec![false; calls.len()];
        let mut found = true;
        while found {
            found = false;
            for (place, call) in calls.iter().enumerate() {
                if !self.calls[place] && self.transaction(data, call.request) {
                    self.calls[place] = true;
                    self.windows
                        .entry(call.connection)
                        .or_default()
                        .push((call.begin, call.end));
                    found = true;
                }
            }
        }
    }

    fn transaction(&self, data: &Dataset, row: u32) -> bool {
        let connection = data.exchanges[row as usize].connection;
        let call = data.waits().call_of[row as usize];
        connection.is_some_and(|row| self.connections[row as usize]) || call != NONE && self.calls[call as usize]
    }

    /// What happens in a connection at a time.
    pub fn message(&self, connection: Option<u32>, time: u64) -> bool {
        let Some(row) = connection else { return false };
        let calls = || self.windows.get(&row).into_iter().flatten();
        self.connections[row as usize] || calls().any(|(begin, end)| *begin <= time && time <= *end)
    }
}

/// Waits of one kind of a host in a pixel column; what is only of one is of the first.
#[derive(Clone, Copy, Debug)]
struct Bar {
    wait: Wait,
    spent: u64,
    count: u32,
}

impl Bar {
    fn add(&mut self, other: &Wait) {
        self.wait.to = self.wait.to.max(other.to);
        self.spent += other.to - other.from;
        self.count += 1;
    }
}

/// The route.
pub fn get(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let span = params.span(data.whole())?;
    let filter = params.text("filter").unwrap_or_default();
    let limit = params.number("limit", 5000usize, 1, MOST)?;
    let mut width = params.number("width", USUAL, 1, WIDTH)?;
    params.end()?;
    let waits = data.waits();
    let chosen = Chosen::new(data, &filter, true)?;
    let begun = waits.all.partition_point(|wait| wait.from < span.to);
    let passes =
        |wait: &&Wait| wait.to > span.from && chosen.as_ref().is_none_or(|chosen| chosen.transaction(data, wait.row));
    let part: Vec<&Wait> = waits.all[..begun].iter().filter(passes).collect();
    let mut sums = [(0u64, 0u64); WHYS.len()];
    for wait in &part {
        let (count, spent) = &mut sums[wait.why as usize];
        *count += 1;
        *spent += wait.to.min(span.to) - wait.from.max(span.from);
    }
    let exact = part.len() <= limit;
    let bar = |wait: &&Wait| Bar {
        wait: **wait,
        spent: wait.to - wait.from,
        count: 1,
    };
    let bars: Vec<Bar> = match exact {
        true => part.iter().map(bar).collect(),
        false => join(data, &part, span, &mut width),
    };
    let kinds: Vec<_> = WHYS
        .iter()
        .zip(sums)
        .map(|(name, (count, spent))| json!({ "name": name, "count": count, "seconds": seconds(spent) }))
        .collect();
    let connection = |row: u32| {
        let row = data.exchanges[row as usize].connection;
        row.map(|row| data.connections[row as usize].as_ref())
    };
    let end = |server: bool, row: u32| {
        let connection = connection(row);
        name(connection.and_then(|c| if server { c.server.as_ref() } else { c.client.as_ref() }))
    };
    let call = |bar: &Bar| waits.calls.get(bar.wait.call as usize);
    let made_for = |bar: &Bar| waits.calls.get(waits.call_of[bar.wait.row as usize] as usize);
    let id = |row: u32| data.transactions[row as usize].connection_id.to_string();
    let texts = |of: &dyn Fn(&Bar) -> Option<String>| bars.iter().map(of).collect::<Vec<_>>();
    let number = |bar: &Bar| bar.wait.call - waits.calls.partition_point(|call| call.request < bar.wait.row) as u32 + 1;
    let hosts: Vec<&str> = bars.iter().map(|bar| host(data, &bar.wait)).collect();
    let texts_of = [
        texts(&|bar| Some(end(false, bar.wait.row))),
        texts(&|bar| Some(end(true, bar.wait.row))),
        texts(&|bar| call(bar).map(|call| name(data.connections[call.connection as usize].server.as_ref()))),
        texts(&|bar| Some(id(bar.wait.row))),
        texts(&|bar| call(bar).map(|call| data.connections[call.connection as usize].id.to_string())),
        texts(&|bar| made_for(bar).map(|call| id(call.request))),
    ];
    let words = |place: usize| texts_of[place].iter().map(|text| text.as_deref());
    let columns = batch::Columns::default()
        .f64("time", bars.iter().map(|bar| seconds(bar.wait.from)).collect())
        .f64("time_last", bars.iter().map(|bar| seconds(bar.wait.to)).collect())
        .words("host", hosts.iter().map(|host| Some(*host)))
        .u8("why", bars.iter().map(|bar| bar.wait.why as u8).collect())
        .f64("seconds", bars.iter().map(|bar| seconds(bar.spent)).collect())
        .u32("count", bars.iter().map(|bar| bar.count).collect())
        .words("client", words(0))
        .words("server", words(1))
        .words("behind", words(2))
        .words("connection", words(3))
        .words("call_connection", words(4))
        .words("for_connection", words(5))
        .u32_or_null("call", bars.iter().map(|bar| call(bar).map(|_| number(bar))).collect())
        .u32(
            "calls",
            bars.iter()
                .map(|bar| calls_of(&waits.calls, bar.wait.row).count() as u32)
                .collect(),
        )
        .f64_or_null(
            "for_time",
            bars.iter()
                .map(|bar| made_for(bar).map(|call| seconds(data.exchanges[call.request as usize].begin)))
                .collect(),
        )
        .says("rows", part.len())
        .says("exact", exact)
        .says("width", width)
        .says("kinds", json!(kinds))
        .says("decided", waits.calls.len())
        .says("ambiguous", waits.ambiguous)
        .says("alone", waits.alone);
    Reply::columns(columns)
}

/// Who waits.
fn host<'a>(data: &'a Dataset, wait: &Wait) -> &'a str {
    let connection = data.exchanges[wait.row as usize].connection;
    let connection = connection.map(|row| &data.connections[row as usize]);
    address(match wait.why {
        Why::Client | Why::Request => connection.and_then(|c| c.client.as_ref()),
        _ => connection.and_then(|c| c.server.as_ref()),
    })
}

/// One for each host, kind and pixel column, which get wider until they are few enough.
fn join(data: &Dataset, part: &[&Wait], span: Span, width: &mut usize) -> Vec<Bar> {
    loop {
        let columns = span.columns(*width);
        let mut cells: BTreeMap<(usize, &str, Why), Bar> = BTreeMap::new();
        for wait in part {
            let at = (columns.of(wait.from.max(span.from)), host(data, wait), wait.why);
            let first = Bar {
                wait: **wait,
                spent: 0,
                count: 0,
            };
            cells.entry(at).or_insert(first).add(wait);
        }
        if cells.len() <= MOST || *width == 1 {
            return cells.into_values().collect();
        }
        *width = width.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_fits_several_requests_is_in_each_of_their_times() {
        let unclear = Ambiguous::of(vec![(50, 60), (10, 90), (20, 30)]);
        assert!(unclear.fits(5, 35));
        assert!(unclear.fits(50, 60));
        assert!(!unclear.fits(25, 55));
        assert!(!unclear.fits(51, 100));
        // The one that began first ends last.
        assert!(!unclear.fits(10, 29));
        assert!(!Ambiguous::default().fits(0, 100));
    }
}
