//! Packet timing of many connections at a time that shows most of the findings, as long as the rhythm of the capture:
//! rows that hold one connection after the other, the client's packets in the lower half of each, the server's in the
//! upper.
//!
//! Memory: the marks of one chart, each once for a step of time, and 64 bytes for each of its connections.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use maud::html;
use weir_analysis::several;
use weir_messages::Timestamp;
use weir_messages::v1::Finding;
use weir_record::time::tai_from_utc;
use weir_record::{Kind, Packet, Record};

use crate::chart::{Plane, drawing, n};
use crate::collect::{Life, Service};
use crate::document::Figure;
use crate::figures::service_name;
use crate::format::{count, seconds};
use crate::observations::{number, rank};

/// Fewer connections have charts of their own.
const LEAST: usize = 8;
/// Connections that begin in the time shown, about, and as many in each part of it: not while a load comes or goes.
const CONNECTIONS: usize = 300;
const PARTS: u64 = 4;
/// Findings name no more connections than so many, the first ones.
const NAMED: usize = 1000;
/// Rows.
const LANES: usize = 64;
/// Steps of time in which marks of one kind are one: not much finer than they are drawn.
const STEPS: u64 = 1000;
/// Periods of what comes again and again.
const PERIODS: f64 = 2.5;
/// Times that are tried, one every half of their length.
const TRIED: u64 = 1000;
/// A time without new data is shaded if it is as long as the applications' sleeps, within these factors.
const SLEEPS: (f64, f64) = (0.9, 1.3);
/// Height of the chart, px, and that of a row at most.
const HEIGHT: f64 = 520.0;
const TALLEST: f64 = 16.0;

/// Colour and name of each kind of packet; what is drawn later lies on top.
const KINDS: [(&str, &str); 6] = [
    ("k5", "ACK"),
    ("kf", "data"),
    ("k6", "FIN"),
    ("k2", "SYN"),
    ("k1", "sent again, or overtaken"),
    ("kb", "RST"),
];
const ACK: u8 = 0;
const DATA: u8 = 1;
const FIN: u8 = 2;
const SYN: u8 = 3;
const AGAIN: u8 = 4;
const RST: u8 = 5;

const FLAG_FIN: u8 = 1;
const FLAG_SYN: u8 = 2;
const FLAG_RST: u8 = 4;

fn tai(time: &Timestamp) -> u64 {
    tai_from_utc(time.unix_nanos().max(0) as u64)
}

/// The connections of a chart, and their packets once [`Timing::record`] has seen them.
#[derive(Debug)]
pub struct Timing {
    /// TAI ns.
    span: (u64, u64),
    /// Why this time: what comes again and again in it, and of how many findings there is something to see in it.
    rhythm: Option<String>,
    seen: (usize, usize),
    /// Length of an application's sleep, steps of time.
    sleep: Option<f64>,
    /// Service of each row.
    lanes: Vec<Service>,
    connections: HashMap<u64, Followed>,
    /// Connections that found no row.
    left_out: usize,
    /// Kind, row, from the server, step of time.
    marks: BTreeSet<(u8, usize, bool, u64)>,
}

#[derive(Debug)]
struct Followed {
    lane: usize,
    /// Where new data of client and server begins.
    next: [Option<u32>; 2],
}

/// Times shown of these kinds are as long as a few periods.
const RHYTHMS: [(&str, &str); 2] = [("APPLICATION_SLEEP", "sleep"), ("PERIODIC_LOSS", "loss")];

/// When there is something of a finding to see.
struct Shown<'a> {
    /// Beginnings of the connections that it names.
    begins: Vec<u64>,
    /// Where it names none, or not all.
    range: (u64, u64),
    ids: &'a [u64],
    rank: u8,
}

impl<'a> Shown<'a> {
    /// `begins`: of connections, by id.
    fn new(finding: &'a Finding, begins: &HashMap<u64, u64>) -> Self {
        let ids = &finding.connection_ids;
        let ids = if ids.len() < NAMED { &ids[..] } else { &[] };
        let mut begins: Vec<u64> = ids.iter().filter_map(|id| begins.get(id).copied()).collect();
        begins.sort_unstable();
        let time = |time: &Option<_>, otherwise| time.as_ref().map_or(otherwise, tai);
        Self {
            begins,
            range: (time(&finding.start, 0), time(&finding.end, u64::MAX)),
            ids,
            rank: rank(&finding.severity),
        }
    }

    fn within(&self, from: u64, to: u64) -> bool {
        if self.begins.is_empty() {
            return self.range.0 < to && from < self.range.1;
        }
        let next = self.begins.partition_point(|begin| *begin < from);
        self.begins.get(next).is_some_and(|begin| *begin < to)
    }
}

impl Timing {
    /// Choose the time and its connections.
    pub(crate) fn new(lives: &[Life], findings: &[Finding]) -> Option<Self> {
        if lives.len() < LEAST {
            return None;
        }
        let mut lives: Vec<&Life> = lives.iter().collect();
        lives.sort_by_key(|life| (life.first, life.id));
        let start = lives[0].first;
        let end = lives.iter().map(|life| life.last).max()?;
        let rhythm = RHYTHMS.iter().find_map(|(kind, name)| {
            let finding = findings.iter().find(|finding| finding.kind == *kind)?;
            Some((*name, number(finding, "periodSeconds")?))
        });
        let asleep = findings.iter().find(|finding| finding.kind == "APPLICATION_SLEEP");
        let sleep = asleep.and_then(|finding| number(finding, "gapSeconds"));
        let whole = end - start;
        let length = match rhythm {
            Some((_, period)) => (PERIODS * period * 1e9) as u64,
            None if lives.len() <= CONNECTIONS => whole,
            None => (whole as f64 * CONNECTIONS as f64 / lives.len() as f64) as u64,
        };
        let length = length.min(whole).max(1);
        let step = (length / 2).max(whole / TRIED).max(1);
        let before = |time: u64| lives.partition_point(|life| life.first < time);
        let off = |from: u64| -> usize {
            let edge = |part: u64| before(from + length * part / PARTS);
            (0..PARTS)
                .map(|part| (edge(part + 1) - edge(part)).abs_diff(CONNECTIONS / PARTS as usize))
                .sum()
        };
        let begins: HashMap<u64, u64> = lives.iter().map(|life| (life.id, life.first)).collect();
        let shown: Vec<Shown<'_>> = findings.iter().map(|finding| Shown::new(finding, &begins)).collect();
        let shown_from = |from: u64| shown.iter().filter(move |shown| shown.within(from, from + length));
        let worth = |from: u64| shown_from(from).map(|shown| u32::from(shown.rank)).sum::<u32>();
        let from = (start..=end - length)
            .step_by(step as usize)
            .min_by_key(|from| (Reverse(worth(*from)), off(*from)))?;
        let serious = |shown: &&Shown<'_>| shown.rank > 0;
        let named: HashSet<u64> = shown
            .iter()
            .filter(serious)
            .flat_map(|shown| shown.ids)
            .copied()
            .collect();
        let mut timing = Self {
            span: (from, from + length),
            rhythm: rhythm.map(|(name, period)| format!("{name} every {}", seconds(period))),
            seen: (
                shown_from(from).filter(serious).count(),
                shown.iter().filter(serious).count(),
            ),
            sleep: sleep.map(|gap| gap * 1e9 * STEPS as f64 / length as f64),
            lanes: Vec::new(),
            connections: HashMap::new(),
            left_out: 0,
            marks: BTreeSet::new(),
        };
        lives.retain(|life| life.first <= from + length && life.last >= from);
        // Those that findings name have the first choice.
        let (first, then): (Vec<_>, Vec<_>) = lives.into_iter().partition(|life| named.contains(&life.id));
        timing.fill(first.into_iter().chain(then));
        Some(timing)
    }

    /// Give each connection the first row of its service that is free.
    fn fill<'a>(&mut self, lives: impl Iterator<Item = &'a Life>) {
        let mut rows: Vec<(Service, Vec<&Life>)> = Vec::new();
        let mut placed = Vec::new();
        for life in lives {
            let free = rows.iter().position(|(service, there)| {
                *service == life.service
                    && there
                        .iter()
                        .all(|other| other.last < life.first || life.last < other.first)
            });
            let row = match free {
                Some(row) => row,
                None if rows.len() < LANES => {
                    rows.push((life.service, Vec::new()));
                    rows.len() - 1
                }
                None => {
                    self.left_out += 1;
                    continue;
                }
            };
            rows[row].1.push(life);
            placed.push((life.id, row));
        }
        // Rows of a service stand together.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|row| (rows[*row].0, *row));
        self.lanes = order.iter().map(|row| rows[*row].0).collect();
        for (id, row) in placed {
            if let Some(lane) = order.iter().position(|other| *other == row) {
                self.connections.insert(id, Followed { lane, next: [None; 2] });
            }
        }
    }

    /// A record of the capture, with digests of the packets.
    pub fn record(&mut self, record: &Record) {
        if record.kind() != Some(Kind::Packet) || record.is_continuation() {
            return;
        }
        let Some(followed) = self.connections.get_mut(&record.flow().0) else {
            return;
        };
        let packet = Packet::decode(record);
        let from_server = record.server_to_client();
        let has = |flag: u8| packet.tcp_flags & flag != 0;
        let takes = packet.length + u32::from(has(FLAG_SYN)) + u32::from(has(FLAG_FIN));
        let end = packet.seq.wrapping_add(takes);
        let next = &mut followed.next[usize::from(from_server)];
        let is_old = takes > 0 && next.is_some_and(|next| packet.seq.wrapping_sub(next) > u32::MAX / 2);
        if takes > 0 && !is_old {
            *next = Some(end);
        }
        let kind = match () {
            () if has(FLAG_RST) => RST,
            () if is_old => AGAIN,
            () if has(FLAG_SYN) => SYN,
            () if has(FLAG_FIN) => FIN,
            () if packet.length > 0 => DATA,
            () => ACK,
        };
        let (from, to) = self.span;
        if (from..to).contains(&record.time()) {
            // In 128 bits: captures may be years long.
            let step = u128::from(record.time() - from) * u128::from(STEPS) / u128::from(to - from);
            self.marks.insert((kind, followed.lane, from_server, step as u64));
        }
    }

    /// Steps of time around the sleeps: those with new data, where as long as they last there is none in between.
    fn sleeps(&self) -> Vec<(u64, u64)> {
        let Some(sleep) = self.sleep else { return Vec::new() };
        let data: BTreeSet<u64> = self
            .marks
            .iter()
            .filter(|mark| mark.0 == DATA)
            .map(|mark| mark.3)
            .collect();
        let steps = data.iter().zip(data.iter().skip(1));
        let is_sleep = |from: u64, to: u64| (SLEEPS.0 * sleep..SLEEPS.1 * sleep).contains(&((to - from) as f64));
        steps
            .map(|(from, to)| (*from, *to))
            .filter(|(from, to)| is_sleep(*from, *to))
            .collect()
    }

    /// The chart.
    pub(crate) fn figure(&self) -> Option<Figure> {
        if self.marks.is_empty() {
            return None;
        }
        let (from, to) = self.span;
        let row = (HEIGHT / self.lanes.len() as f64).min(TALLEST);
        let plane = Plane::new(self.span, 0.0, row * self.lanes.len() as f64);
        let step = (plane.right - plane.left) / STEPS as f64;
        let half = row * 0.42;
        let mut paths = [const { String::new() }; KINDS.len()];
        for &(kind, lane, from_server, at) in &self.marks {
            let middle = plane.top + row * (lane as f64 + 0.5);
            let top = if from_server { middle - half } else { middle };
            let x = plane.left + (at as f64 + 0.5) * step;
            let _ = write!(paths[usize::from(kind)], "M{x:.1} {top:.1}v{half:.1}");
        }
        let sleeps = self.sleeps();
        let mut stripes = String::new();
        for (from, to) in &sleeps {
            let x = |at: u64| plane.left + (at as f64 + 0.5) * step;
            let bottom = plane.top + row * self.lanes.len() as f64;
            let _ = write!(
                stripes,
                "M{:.1} {:.1}H{:.1}V{bottom:.1}H{:.1}z",
                x(*from),
                plane.top,
                x(*to),
                x(*from)
            );
        }
        let mut groups: Vec<(usize, Service)> = self.lanes.iter().copied().enumerate().collect();
        groups.dedup_by_key(|(_, service)| *service);
        let body = html! {
            (plane.time_axis())
            @if !stripes.is_empty() { path.band d=(stripes) {} }
            @for (path, (colour, _)) in paths.iter().zip(KINDS) {
                @if !path.is_empty() { g class=(colour) { path.dots d=(path) stroke-width="1.2" {} } }
            }
            @for (lane, service) in &groups {
                @let y = plane.top + row * *lane as f64;
                line.mark x1=(n(plane.left)) x2=(n(plane.right)) y1=(n(y)) y2=(n(y)) {}
                text.name x=(n(plane.left + 6.0)) y=(n(y + 13.0)) { (service_name(*service)) }
            }
        };
        let legend = paths
            .iter()
            .zip(KINDS)
            .filter(|(path, _)| !path.is_empty())
            .map(|(_, (colour, name))| (colour.to_owned(), false, name.to_owned()))
            .collect();
        let rhythm = self.rhythm.as_ref().map_or_else(String::new, |rhythm| {
            format!(", as long as {PERIODS} periods ({rhythm})")
        });
        let seen = match self.seen {
            (_, 0) => String::new(),
            (seen, all) => {
                let all = several(all as u64, "finding", "findings");
                format!(" Of {all} that packets can show it shows {seen}; no other time shows more.")
            }
        };
        let shaded = match sleeps.len() {
            0 => "",
            _ => " Shaded: no new data in any row for as long as an application sleeps.",
        };
        let left_out = match self.left_out {
            0 => String::new(),
            more => format!(" {} more found no row.", count(more as u64)),
        };
        Some(Figure {
            id: ID.into(),
            caption: format!(
                "Packets of {} connections in {}{rhythm}: each row holds one connection after the other, the server's packets in its \
                 upper half, the client's in its lower one. Where an application stops, a stripe of ACKs and repeats alone, or of \
                 nothing, goes through all rows.{shaded}{seen}{left_out}",
                count(self.connections.len() as u64),
                seconds((to - from) as f64 / 1e9)
            )
            .into(),
            drawing: drawing(plane.whole_height(), "Packets of many connections", body, legend),
        })
    }
}

/// Id of the chart.
pub(crate) const ID: &str = "fig-timing";

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: Service = ([0; 16], 443);

    fn life(id: u64, first: u64, last: u64) -> Life {
        Life {
            id,
            service: SERVICE,
            first,
            last,
        }
    }

    #[test]
    fn rows_hold_one_connection_after_the_other() {
        // Ten at a time, each 9 ms long.
        let lives: Vec<Life> = (0..100)
            .map(|i| life(i, 1_000_000 * i, 1_000_000 * i + 9_000_000))
            .collect();
        let timing = Timing::new(&lives, &[]).expect("enough connections");
        assert_eq!(timing.lanes.len(), 10);
        assert_eq!((timing.connections.len(), timing.left_out), (100, 0));
        assert_eq!(timing.span, (0, 108_000_000));
        for (id, followed) in &timing.connections {
            assert_eq!(followed.lane as u64, id % 10);
        }
        assert!(Timing::new(&lives[..LEAST - 1], &[]).is_none());
    }

    #[test]
    fn the_time_is_as_long_as_the_periods_and_neither_empty_nor_crowded() {
        // 10 a second, then 100 a second, then 1000 a second; 100 s of each.
        let lives = [(0u64, 10u64), (100, 100), (200, 1000)]
            .into_iter()
            .flat_map(|(from, rate)| {
                (0..100 * rate).map(move |i| {
                    let first = from * 1_000_000_000 + i * 1_000_000_000 / rate;
                    life(rate << 32 | i, first, first + 1000)
                })
            });
        let lives: Vec<Life> = lives.collect();
        let mut finding = Finding {
            kind: "PERIODIC_LOSS".to_owned(),
            ..Finding::default()
        };
        finding.values.insert("periodSeconds".to_owned(), 0.8.into());
        let timing = Timing::new(&lives, &[finding]).expect("enough connections");
        let (from, to) = timing.span;
        assert_eq!(to - from, 2_000_000_000);
        assert!((100_000_000_000..200_000_000_000).contains(&from), "{from}");
    }

    #[test]
    fn times_as_long_as_a_sleep_without_data_are_shaded() {
        let lives: Vec<Life> = (0..10).map(|i| life(i, 0, 10_000_000_000)).collect();
        let mut finding = Finding {
            kind: "APPLICATION_SLEEP".to_owned(),
            ..Finding::default()
        };
        finding.values.insert("gapSeconds".to_owned(), 0.3.into());
        let mut timing = Timing::new(&lives, &[finding]).expect("enough connections");
        assert_eq!(timing.sleep, Some(30.0));
        // Data but for a sleep, a shorter pause and a longer one; ACKs all the time.
        for step in 0..STEPS {
            timing.marks.insert((ACK, 0, false, step));
            if !(100..130).contains(&step) && !(300..312).contains(&step) && !(500..600).contains(&step) {
                timing.marks.insert((DATA, step as usize % 10, true, step));
            }
        }
        assert_eq!(timing.sleeps(), [(99, 130)]);
        let figure = timing.figure().expect("marks");
        assert!(figure.drawing.body.contains("class=\"band\""));
    }
}
