//! `/setups` and `/marks`: a mark for each row, or for the rows of each cell of the plane.

use serde_json::json;
use weir_messages::v1::Transaction;

use crate::batch;
use crate::dataset::{Dataset, Exchange, RESET_BY_CLIENT, outcome};
use crate::error::Refused;
use crate::groups::{By, CHART_WORDS};
use crate::params::Params;
use crate::reply::Reply;
use crate::span::seconds;
use crate::timeline::{USUAL, WIDTH};

/// Most marks of an answer: about 25 bytes each.
pub const MARKS: usize = 20_000;
/// Cells above each other.
const HEIGHT: usize = 1024;
/// Shortest time of a logarithmic scale, s.
pub const SHORTEST: f64 = 1e-9;

/// Outcomes of setups, in the order of their numbers.
pub const OUTCOMES: [&str; 6] = [
    "OK",
    "RETRANSMITTED",
    "REFUSED",
    "IGNORED",
    "RESET_LATE",
    RESET_BY_CLIENT,
];

/// Which time of a transaction: its place in [`VALUES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    End,
    Request,
    Server,
    Response,
}

/// Words of the parameter `value`.
pub const VALUES: [(&str, What); 4] = [
    ("end", What::End),
    ("request", What::Request),
    ("server", What::Server),
    ("response", What::Response),
];

impl Exchange {
    /// That time of it.
    pub fn value(&self, what: What) -> Option<f64> {
        let time = self.times[what as usize];
        (!time.is_nan()).then_some(time)
    }
}

/// That time of a transaction.
pub fn value(transaction: &Transaction, what: What) -> Option<f64> {
    match what {
        What::End => transaction.end_seconds,
        What::Request => Some(transaction.request_seconds),
        What::Server => transaction.server_seconds,
        What::Response => transaction.response_seconds,
    }
}

/// A row in a chart.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// ns.
    pub time: u64,
    pub value: f64,
    pub kind: u8,
    pub has_loss: bool,
    pub row: u32,
}

/// Rows of a chart.
#[derive(Debug, Default)]
pub struct Points {
    /// By time.
    pub points: Vec<Point>,
    pub without_value: u64,
    pub names: Vec<String>,
}

impl Points {
    /// Rows in the range.
    pub fn rows(&self) -> u64 {
        self.points.len() as u64 + self.without_value
    }

    /// Names with the rows in the range.
    pub fn kinds(&self) -> String {
        let mut counts = vec![0u64; self.names.len()];
        for point in &self.points {
            counts[usize::from(point.kind)] += 1;
        }
        let kinds = self.names.iter().zip(counts);
        let kinds: Vec<_> = kinds
            .map(|(name, count)| json!({ "name": name, "count": count }))
            .collect();
        json!(kinds).to_string()
    }
}

/// Setups of the connections that a request asks for.
pub fn setups(data: &Dataset, params: &mut Params) -> Result<(Points, crate::span::Span), Refused> {
    let span = params.span(data.whole())?;
    let filter = params.text("filter").unwrap_or_default();
    let rows = data.select_connections(&filter)?;
    let mut out = Points {
        names: OUTCOMES.map(str::to_owned).into(),
        ..Points::default()
    };
    for row in &rows[span.part(&rows, |row| data.lives[*row as usize].first)] {
        let connection = &data.connections[*row as usize];
        let Some(setup) = &connection.setup else { continue };
        let outcome = outcome(connection);
        let Some(kind) = OUTCOMES.iter().position(|name| Some(*name) == outcome) else {
            continue;
        };
        match setup.end_seconds {
            None => out.without_value += 1,
            Some(value) => out.points.push(Point {
                time: data.lives[*row as usize].first,
                value,
                kind: kind as u8,
                has_loss: setup.syn_count > 1 || setup.syn_ack_count > 1,
                row: *row,
            }),
        }
    }
    Ok((out, span))
}

/// Transactions that a request asks for.
pub fn transactions(data: &Dataset, params: &mut Params) -> Result<(Points, crate::span::Span), Refused> {
    let span = params.span(data.whole())?;
    let filter = params.text("filter").unwrap_or_default();
    let what = params.word("value", &VALUES)?;
    let by: By = params.word("by", CHART_WORDS)?;
    let rows = data.select_transactions(&filter)?;
    let with_setups = names_kind(&filter);
    let grouping = data.groups.by(data, by);
    let mut out = Points {
        names: grouping.kinds(),
        ..Points::default()
    };
    for row in &rows[span.part(&rows, |row| data.exchanges[*row as usize].begin)] {
        let place = *row as usize;
        let exchange = &data.exchanges[place];
        if exchange.is_setup && !with_setups {
            continue;
        }
        match exchange.value(what) {
            None => out.without_value += 1,
            Some(value) => out.points.push(Point {
                time: exchange.begin,
                value,
                kind: grouping.kind(place),
                has_loss: exchange.losses > 0,
                row: *row,
            }),
        }
    }
    Ok((out, span))
}

/// Whether a filter says which kinds of transactions it wants.
fn names_kind(filter: &str) -> bool {
    filter
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
        .any(|word| word == "kind")
}

/// `/setups`.
pub fn get_setups(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let (points, span) = setups(data, &mut params)?;
    answer(points, span, params)
}

/// `/marks`.
pub fn get_transactions(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let (points, span) = transactions(data, &mut params)?;
    answer(points, span, params)
}

/// Rows of a cell.
#[derive(Clone, Copy, Debug)]
struct Mark {
    shown: Point,
    min: f64,
    count: u32,
    losses: u32,
}

impl Mark {
    fn of(point: &Point) -> Self {
        Self {
            shown: *point,
            min: point.value,
            count: 1,
            losses: u32::from(point.has_loss),
        }
    }

    fn add(&mut self, other: &Self) {
        let (mine, others) = (&self.shown, &other.shown);
        // Of equals the first, in whatever order they come.
        if others.value > mine.value || others.value >= mine.value && others.row < mine.row {
            self.shown = other.shown;
        }
        self.min = self.min.min(other.min);
        self.count += other.count;
        self.losses += other.losses;
    }
}

/// The vertical axis.
#[derive(Clone, Copy, Debug)]
struct Axis {
    /// Its ends, on its scale.
    ends: (f64, f64),
    log: bool,
    height: usize,
}

impl Axis {
    fn new(low: f64, high: f64, log: bool, height: usize) -> Self {
        let ends = (Self::on(low, log), Self::on(high, log));
        Self { ends, log, height }
    }

    fn on(value: f64, log: bool) -> f64 {
        if log { value.max(SHORTEST).ln() } else { value }
    }

    fn of(&self, value: f64) -> usize {
        let (low, high) = self.ends;
        if high <= low {
            return 0;
        }
        let place = (Self::on(value, self.log) - low) / (high - low) * self.height as f64;
        // Below the axis and above it: the cells at its ends.
        (place.max(0.0) as usize).min(self.height - 1)
    }
}

fn answer(points: Points, span: crate::span::Span, mut params: Params) -> Result<Reply, Refused> {
    let mut width = params.number("width", USUAL, 1, WIDTH)?;
    let height = params.number("height", 256, 1, HEIGHT)?;
    let log = params.word("scale", &[("log", true), ("linear", false)])?;
    let values = || points.points.iter().map(|point| point.value);
    let low = params.optional("low", 0.0, 1e9)?;
    let high = params.optional("high", 0.0, 1e9)?;
    params.end()?;
    let low = low.unwrap_or_else(|| values().reduce(f64::min).unwrap_or(0.0));
    let high = high.unwrap_or_else(|| values().reduce(f64::max).unwrap_or(1.0));
    if low > high {
        return Err(Refused::invalid(format_args!("low, high: {low} is above {high}")));
    }
    let mut axis = Axis::new(low, high, log, height);
    let marks = reduce(&points.points, span, &mut width, &mut axis, MARKS);
    let exact = marks.iter().all(|mark| mark.count == 1);
    let columns = batch::Columns::default()
        .f64("time", marks.iter().map(|mark| seconds(mark.shown.time)).collect())
        .f32("value", marks.iter().map(|mark| mark.shown.value as f32).collect())
        .f32("min", marks.iter().map(|mark| mark.min as f32).collect())
        .u8("kind", marks.iter().map(|mark| mark.shown.kind).collect())
        .u32("count", marks.iter().map(|mark| mark.count).collect())
        .u32("losses", marks.iter().map(|mark| mark.losses).collect())
        .u32("row", marks.iter().map(|mark| mark.shown.row).collect())
        .says("kinds", points.kinds())
        .says("rows", points.rows())
        .says("without_value", points.without_value)
        .says("width", width)
        .says("height", axis.height)
        .says("low", low)
        .says("high", high)
        .says("scale", if log { "log" } else { "linear" })
        .says("exact", exact);
    Reply::columns(columns)
}

/// At most `most` marks: one for each row, or one for each cell and kind of the plane, which gets coarser until it fits.
fn reduce(points: &[Point], span: crate::span::Span, width: &mut usize, axis: &mut Axis, most: usize) -> Vec<Mark> {
    if points.len() <= most {
        return points.iter().map(Mark::of).collect();
    }
    let columns = span.columns(*width);
    let cells = points.iter().map(|point| Cell {
        column: columns.of(point.time) as u32,
        height: axis.of(point.value),
        mark: Mark::of(point),
    });
    let kinds = points
        .iter()
        .map(|point| usize::from(point.kind) + 1)
        .max()
        .unwrap_or(0);
    let mut cells = merged(cells, axis.height, kinds);
    while cells.len() > most {
        *width = width.div_ceil(2);
        axis.height = axis.height.div_ceil(2);
        let wider = cells.into_iter().map(|cell| Cell {
            column: cell.column / 2,
            height: cell.height / 2,
            ..cell
        });
        cells = merged(wider, axis.height, kinds);
    }
    let mut marks: Vec<Mark> = cells.into_iter().map(|cell| cell.mark).collect();
    marks.sort_unstable_by_key(|mark| (mark.shown.time, mark.shown.row));
    marks
}

/// Rows of one kind in a cell of the plane.
#[derive(Clone, Copy, Debug)]
struct Cell {
    column: u32,
    height: usize,
    mark: Mark,
}

/// Those of the same place and kind as one. They come column by column, so that one column is looked up at a time.
fn merged(cells: impl Iterator<Item = Cell>, height: usize, kinds: usize) -> Vec<Cell> {
    let slot = |cell: &Cell| cell.height * kinds + usize::from(cell.mark.shown.kind);
    let mut places: Vec<Option<usize>> = vec![None; height * kinds];
    let mut out: Vec<Cell> = Vec::new();
    let mut first = 0;
    for cell in cells {
        if out.last().is_some_and(|last| last.column != cell.column) {
            for done in &out[first..] {
                places[slot(done)] = None;
            }
            first = out.len();
        }
        match places[slot(&cell)] {
            Some(place) => out[place].mark.add(&cell.mark),
            None => {
                places[slot(&cell)] = Some(out.len());
                out.push(cell);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    /// Numbers without order, the same each time.
    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        }
    }

    #[test]
    fn no_row_is_lost_and_no_extreme() {
        let mut next = numbers();
        let span = Span { from: 17, to: 99_999 };
        let mut times: Vec<u64> = (0..20_000).map(|_| span.from + next(span.to - span.from)).collect();
        times.sort_unstable();
        let points: Vec<Point> = (0..)
            .zip(times)
            .map(|(row, time)| Point {
                time,
                value: next(1_000_000) as f64 / 1e6,
                kind: next(3) as u8,
                has_loss: next(10) == 0,
                row,
            })
            .collect();
        for most in [1, 10, 300, 5000, 19_999, 20_000] {
            let (mut width, log) = (333, true);
            let mut axis = Axis::new(0.0, 1.0, log, 77);
            // Three kinds in one cell are three marks.
            let most = most.max(3);
            let marks = reduce(&points, span, &mut width, &mut axis, most);
            assert!(marks.len() <= most, "{most}: {}", marks.len());
            let rows: u32 = marks.iter().map(|mark| mark.count).sum();
            let losses: u32 = marks.iter().map(|mark| mark.losses).sum();
            assert_eq!(
                (rows, losses as usize),
                (20_000, points.iter().filter(|p| p.has_loss).count())
            );
            for kind in 0..3 {
                let all = || points.iter().filter(|p| p.kind == kind).map(|p| p.value);
                let mine = || marks.iter().filter(|mark| mark.shown.kind == kind);
                assert_eq!(mine().map(|mark| mark.min).reduce(f64::min), all().reduce(f64::min));
                assert_eq!(
                    mine().map(|mark| mark.shown.value).reduce(f64::max),
                    all().reduce(f64::max)
                );
            }
            for mark in &marks {
                let point = points[mark.shown.row as usize];
                assert_eq!((point.time, point.value), (mark.shown.time, mark.shown.value));
            }
        }
    }
}
