//! The charts. Each is there only if the capture has something for it.

use std::collections::HashMap;

use maud::{Markup, html};
use weir_analysis::{address, several};
use weir_messages::v1;
use weir_patterns::bins::Bins;
use weir_patterns::{Dialogue, Dialogues, Pair, Timeline};

use crate::chart::{LARGE_MARK, MARK, Plane, WIDTH, ahead, drawing, n, used_rows};
use crate::collect::{Collector, OUTCOMES, Requests, Service, Slice};
use crate::document::{Figure, Text};
use crate::format::{bytes, count, seconds};
use crate::scale::{Column, PER_DECADE};

/// Services with lines of their own in a chart.
const LINES: usize = 4;
/// Kinds of requests with a colour of their own.
const KINDS: usize = 7;
/// Colour of all other ones, and of what has no figure.
const OTHERS: &str = "k7";
/// Pairs in the graph of dialogues.
const PAIRS: usize = 14;
/// Lines are drawn in fewer steps than there are pixels.
const STEPS: u64 = 400;
/// Lossy times are finer.
const FINE_STEPS: u64 = 1000;
/// Height of a chart, px.
const TALL: f64 = 300.0;
const LOW: f64 = 110.0;
/// Least step of an axis of things that are counted, and of another one.
const WHOLE: f64 = 1.0;
const ANY: f64 = 0.0;

/// Classes of colour of the outcomes, in the order of `OUTCOMES`.
const OUTCOME_COLOURS: [&str; OUTCOMES.len()] = ["k0", "k4", "k3", "kb", "k1"];

/// Size of their marks: failures are few.
const OUTCOME_MARKS: [f64; OUTCOMES.len()] = [MARK, MARK, LARGE_MARK, LARGE_MARK, LARGE_MARK];

/// `address:port`.
pub fn service_name((host, port): Service) -> String {
    let host = address(host);
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Clients left, servers right; thickness is volume, colour the retransmission rate.
pub fn dialogues(dialogues: &Dialogues) -> Option<Figure> {
    let all = dialogues.by_volume();
    let pairs = &all[..all.len().min(PAIRS)];
    if pairs.is_empty() {
        return None;
    }
    let mut clients: Vec<[u8; 16]> = Vec::new();
    let mut servers: Vec<Service> = Vec::new();
    for (pair, _) in pairs {
        if !clients.contains(&pair.client) {
            clients.push(pair.client);
        }
        if !servers.contains(&(pair.server, pair.port)) {
            servers.push((pair.server, pair.port));
        }
    }
    let rows = clients.len().max(servers.len());
    let height = 46.0 * rows as f64 + 16.0;
    let place = |index: usize, of: usize| (index as f64 + 0.5) * height / of as f64;
    let client_y: HashMap<_, _> = (0..)
        .zip(&clients)
        .map(|(i, c)| (*c, place(i, clients.len())))
        .collect();
    let server_y: HashMap<_, _> = (0..)
        .zip(&servers)
        .map(|(i, s)| (*s, place(i, servers.len())))
        .collect();
    let most = pairs.iter().flat_map(|(_, d)| d.bytes).max().unwrap_or(1).max(2) as f64;
    let thick = |volume: u64| 1.0 + 9.0 * (1.0 + volume as f64).ln() / most.ln();
    let (left, right) = (270.0, WIDTH - 270.0);
    let line = |pair: &Pair, d: &Dialogue, side: usize| -> Markup {
        let shift = if side == 0 { -7.0 } else { 7.0 };
        let (y1, y2) = (
            client_y[&pair.client] + shift,
            server_y[&(pair.server, pair.port)] + shift,
        );
        let title = format!(
            "{} {} {}: {}, {}, {} retransmitted, {} missed by the capture",
            address(pair.client),
            if side == 0 { "to" } else { "from" },
            service_name((pair.server, pair.port)),
            several(d.packets[side], "packet", "packets"),
            bytes(d.bytes[side]),
            d.rate(side)
                .map_or_else(|| "no data".into(), |rate| format!("{:.3} %", 100.0 * rate)),
            several(d.missed[side], "segment", "segments")
        );
        html! {
            g class=(rate_colour(d.rate(side))) {
                path.line d={ "M" (n(left)) " " (n(y1)) "C" (n(left + 150.0)) " " (n(y1)) " " (n(right - 150.0)) " " (n(y2)) " " (n(right)) " " (n(y2)) }
                    style={ "stroke-width:" (n(thick(d.bytes[side]))) } opacity="0.8" { title { (title) } }
            }
        }
    };
    let body = html! {
        @for (pair, d) in pairs { (line(pair, d, 0)) (line(pair, d, 1)) }
        @for client in &clients {
            text.name.e x=(n(left - 12.0)) y=(n(client_y[client] + 4.0)) { (address(*client)) }
        }
        @for server in &servers {
            text.name x=(n(right + 12.0)) y=(n(server_y[server] + 4.0)) { (service_name(*server)) }
        }
    };
    let entries: Vec<_> = RATES
        .into_iter()
        .map(|(_, colour, name)| (colour, name))
        .chain([(WORST_RATE, "more retransmitted"), (OTHERS, "no data")])
        .map(|(colour, name)| (colour.to_owned(), false, name.to_owned()))
        .collect();
    let left_out = all.len() - pairs.len();
    let more = if left_out > 0 {
        format!(
            " The {} pairs with most data of {}.",
            pairs.len(),
            count(all.len() as u64)
        )
    } else {
        String::new()
    };
    Some(Figure {
        id: "fig-dialogues".into(),
        caption: format!(
            "Who talks to whom: clients on the left, servers on the right; the upper line of a pair is what the client \
             sent, the lower one what the server sent. Thickness: volume (logarithmic); colour: share of the data packets \
             that came again.{more}"
        )
        .into(),
        drawing: drawing(height, "Dialogues", body, entries),
    })
}

/// Colours of retransmission rates up to these, as on the page (web/src/views/dialogues.tsx).
const RATES: [(f64, &str, &str); 3] = [
    (0.005, "k2", "up to 0.5 %"),
    (0.01, "k0", "up to 1 %"),
    (0.05, "k4", "up to 5 %"),
];
/// Colour of what is above them all.
const WORST_RATE: &str = "kb";

fn rate_colour(rate: Option<f64>) -> &'static str {
    rate.map_or(OTHERS, |rate| {
        let found = RATES.iter().find(|(up_to, ..)| rate <= *up_to);
        found.map_or(WORST_RATE, |(_, colour, _)| colour)
    })
}

/// What every chart over time has: its range, the lossy times and the phases.
pub struct Scene<'a> {
    facts: &'a Collector,
    timeline: &'a Timeline,
    summary: &'a v1::Summary,
    span: (u64, u64),
}

impl<'a> Scene<'a> {
    /// The whole capture.
    pub fn new(facts: &'a Collector, timeline: &'a Timeline, summary: &'a v1::Summary) -> Self {
        let (first, last) = timeline.span();
        Self {
            facts,
            timeline,
            summary,
            // Bins begin before the first packet.
            span: (summary.start.map_or(first, |start| tai(&start, last)), last),
        }
    }

    fn width_of(&self, steps: u64) -> u64 {
        ((self.span.1 - self.span.0) / steps).max(1)
    }

    /// Lossy times and phases, behind the marks.
    fn ground(&self, plane: &Plane, height: f64) -> Markup {
        let bins = self.timeline.bins().coarser(self.width_of(FINE_STEPS));
        let (lost, sent) = bins
            .iter()
            .map(losses)
            .fold((0, 0), |(l, s), (lost, sent)| (l + lost, s + sent));
        let usual = lost as f64 / sent.max(1) as f64;
        let bands = plane.bands(&bins, |bin| {
            let (lost, sent) = losses(bin);
            lost > 0 && lost as f64 > usual * sent as f64
        });
        let phases = self
            .summary
            .phases
            .iter()
            .filter_map(|phase| Some((tai(&phase.start?, plane.start), phase.concurrent_connections)));
        html! {
            path.band d=(bands) {}
            (plane.time_axis())
            @for (start, connections) in phases {
                @let x = plane.x(start);
                line.mark x1=(n(x)) x2=(n(x)) y1=(n(plane.top)) y2=(n(height)) {}
                text x=(n(x + 3.0)) y=(n(plane.bottom - 6.0)) { (format!("{connections:.0}")) }
            }
        }
    }

    fn has_losses(&self) -> bool {
        self.timeline.bins().iter().any(|bin| losses(bin).0 > 0)
    }

    fn ground_words(&self) -> String {
        let mut words = String::new();
        if self.has_losses() {
            words += " Shaded: times in which a larger share of the data segments was lost than over all.";
        }
        if !self.summary.phases.is_empty() {
            words += " Dashed uprights: load phases with their connections.";
        }
        words
    }

    /// Services with most connections.
    fn services(&self) -> Vec<(Service, &Bins<Slice>)> {
        let mut all: Vec<_> = self
            .facts
            .services
            .iter()
            .map(|(service, bins)| (*service, bins))
            .collect();
        let opened = |bins: &Bins<Slice>| {
            bins.iter()
                .map(|s| u64::from(s.opened) + u64::from(s.requests))
                .sum::<u64>()
        };
        all.sort_by_key(|(service, bins)| (std::cmp::Reverse(opened(bins)), *service));
        all.truncate(LINES);
        all
    }

    /// Running difference of two counts of the services, and the largest value.
    fn running(&self, up_down: impl Fn(&Slice) -> (u32, u32)) -> (Vec<(Service, Bins<Level>)>, f64) {
        let width = self.width_of(STEPS);
        let mut most = 1.0f64;
        let mut out = Vec::new();
        for (service, bins) in self.services() {
            let mut now = 0i64;
            let slices = bins.coarser(width);
            let mut levels = Bins::bounded(slices.width(), slices.len() + 1);
            for (number, slice) in (0u64..).zip(slices.iter()) {
                let (up, down) = up_down(slice);
                now += i64::from(up) - i64::from(down);
                *levels.at(slices.start() + number * slices.width()) = Level(now.max(0) as f64);
                most = most.max(now as f64);
            }
            out.push((service, levels));
        }
        (out, most)
    }

    /// Each setup a mark, over time, with the connections that are open at once.
    pub fn setups(&self) -> Option<Figure> {
        let (low, high) = used_rows(self.facts.setups.iter().map(|setups| &setups.marks))?;
        let plane = Plane::new(self.span, 0.0, TALL);
        let (lines, most) = self.running(|slice| (slice.opened, slice.closed));
        let most = most * 1.05;
        let decade = PER_DECADE as f64;
        let mut entries = Vec::new();
        for ((setups, (_, name, words)), colour) in self.facts.setups.iter().zip(OUTCOMES).zip(OUTCOME_COLOURS) {
            if setups.times.count() > 0 {
                entries.push((
                    colour.to_owned(),
                    false,
                    format!("{} {name}: {words}", count(setups.times.count())),
                ));
            }
        }
        let body = html! {
            (self.ground(&plane, plane.bottom))
            (plane.log_axis(low as f64 / decade, high as f64 / decade))
            (plane.linear_axis(most, true, WHOLE))
            (plane.name("time of the setup", false))
            (plane.name("open connections", true))
            @for ((setups, colour), mark) in self.facts.setups.iter().zip(OUTCOME_COLOURS).zip(OUTCOME_MARKS) {
                g class=(colour) { (plane.dots(&common(&setups.marks, self.width_of(1024)), (low, high), mark)) }
            }
            @for ((_, line), colour) in lines.iter().zip(LINE_COLOURS) {
                g class=(colour) { path.line.right d=(plane.steps(line, |level| level.0 / most)) {} }
            }
        };
        for ((service, _), colour) in lines.iter().zip(LINE_COLOURS) {
            entries.push((
                colour.to_owned(),
                true,
                format!("open connections to {}", service_name(*service)),
            ));
        }
        Some(Figure {
            id: "fig-setups".into(),
            caption: format!(
                "Connection setups: each stands where its first SYN passed, as high as it took (left, logarithmic); \
                 the dashed lines are the connections open at once (right).{}",
                self.ground_words()
            )
            .into(),
            drawing: drawing(plane.whole_height(), "Connection setups over time", body, entries),
        })
    }

    /// Each connection a mark, as high as it lasted.
    pub fn durations(&self) -> Option<Figure> {
        let mut closes: Vec<_> = self.facts.durations.iter().collect();
        let (low, high) = used_rows(closes.iter().map(|(_, times)| &times.marks))?;
        closes.sort_by_key(|(name, times)| (std::cmp::Reverse(times.times.count()), **name));
        let plane = Plane::new(self.span, 0.0, TALL);
        let decade = PER_DECADE as f64;
        let width = self.width_of(1024);
        let colours = || KIND_COLOURS.into_iter().chain(std::iter::repeat(OTHERS));
        let body = html! {
            (self.ground(&plane, plane.bottom))
            (plane.log_axis(low as f64 / decade, high as f64 / decade))
            (plane.name("duration", false))
            // The rare ones last: they would be hidden.
            @for ((_, times), colour) in closes.iter().zip(colours()) {
                g class=(colour) { (plane.dots(&common(&times.marks, width), (low, high), MARK)) }
            }
        };
        let legend = closes
            .iter()
            .zip(colours())
            .map(|((name, times), colour)| {
                (
                    colour.to_owned(),
                    false,
                    format!("{} {name}", count(times.times.count())),
                )
            })
            .collect();
        Some(Figure {
            id: "fig-durations".into(),
            caption: format!(
                "How long connections lasted: each stands where its first packet passed, as high as the time to its last \
                 one (logarithmic), coloured by how it was closed.{}",
                self.ground_words()
            )
            .into(),
            drawing: drawing(plane.whole_height(), "Durations of connections over time", body, legend),
        })
    }

    /// Kinds of requests that were answered, those with most transactions first.
    fn kinds(&self) -> Vec<&'a Requests> {
        let all = self.facts.requests.iter();
        let mut kinds: Vec<_> = all.filter(|kind| kind.times.count() > 0).collect();
        kinds.sort_by(|a, b| b.times.count().cmp(&a.times.count()).then_with(|| a.name.cmp(&b.name)));
        kinds
    }

    /// Each transaction a mark, over time, and a histogram beside it.
    pub fn transactions(&self) -> Option<Figure> {
        let kinds = self.kinds();
        let (low, high) = used_rows(kinds.iter().map(|kind| &kind.marks))?;
        let mut plane = Plane::new(self.span, 0.0, TALL);
        plane.right -= HISTOGRAM + 12.0;
        let decade = PER_DECADE as f64;
        let colour = |place: usize| if place < KINDS { KIND_COLOURS[place] } else { OTHERS };
        let mut entries: Vec<_> = kinds
            .iter()
            .take(KINDS)
            .enumerate()
            .map(|(place, kind)| {
                let name = format!("{} × {}", count(kind.times.count()), kind.name);
                (colour(place).to_owned(), false, name)
            })
            .collect();
        let others: u64 = kinds.iter().skip(KINDS).map(|kind| kind.times.count()).sum();
        if others > 0 {
            entries.push((OTHERS.to_owned(), false, format!("{} others", count(others))));
        }
        let width = self.width_of(1024);
        let lossy = self.facts.with_losses.iter().flat_map(|c| c.0).any(|n| n > 0);
        if lossy {
            entries.push(("kb".to_owned(), false, "with losses".to_owned()));
        }
        let body = html! {
            (self.ground(&plane, plane.bottom))
            (plane.log_axis(low as f64 / decade, high as f64 / decade))
            (plane.name("response time", false))
            // The rare ones last: they would be hidden.
            @for (place, kind) in kinds.iter().enumerate() {
                g class=(colour(place)) { (plane.dots(&common(&kind.marks, width), (low, high), MARK)) }
            }
            // What lies below shows through.
            g.kb opacity="0.6" { (plane.dots(&common(&self.facts.with_losses, width), (low, high), MARK)) }
            (histogram(&plane, &kinds, (low, high), colour))
        };
        Some(Figure {
            id: "fig-transactions".into(),
            caption: format!(
                "Transactions: each stands where its request began, as high as it took from the end of the request to the \
                 end of the response (logarithmic), coloured by port and request size; on the right, how many took how \
                 long (square root of the count).{}",
                self.ground_words()
            )
            .into(),
            drawing: drawing(plane.whole_height(), "Transactions over time", body, entries),
        })
    }

    /// Lost segments over time, by side of the tap, and repeated SYNs.
    pub fn losses(&self) -> Option<Figure> {
        let bins = self.timeline.bins().coarser(self.width_of(STEPS));
        // Steps are short: as a rate, one loss would look like a hundred a second.
        let step = seconds(bins.width() as f64 / 1e9);
        let sum = |one: u32, other: u32| f64::from(one) + f64::from(other);
        let server = |bin: &weir_patterns::Bin| sum(bin.lost_behind[0], bin.lost_before[1]);
        let client = |bin: &weir_patterns::Bin| sum(bin.lost_before[0], bin.lost_behind[1]);
        let unknown = |bin: &weir_patterns::Bin| sum(bin.lost_unknown[0], bin.lost_unknown[1]);
        let syns = |bin: &weir_patterns::Bin| sum(bin.syn_repeats[0], bin.syn_repeats[1]);
        let largest = |value: &dyn Fn(&weir_patterns::Bin) -> f64| bins.iter().map(value).fold(0.0, f64::max);
        let most = largest(&|bin| server(bin) + client(bin) + unknown(bin));
        let most_syns = largest(&syns);
        if most + most_syns <= 0.0 {
            return None;
        }
        let mut above = 0.0;
        let mut parts = Vec::new();
        let mut entries = Vec::new();
        if most > 0.0 {
            let plane = Plane::new(self.span, above, LOW);
            let top = most * 1.05;
            type Of<'b> = &'b dyn Fn(&weir_patterns::Bin) -> f64;
            let stack: [(&str, &str, Of<'_>); 3] = [
                ("k1", "lost on the server's side of the tap", &server),
                ("k0", "lost on the client's side", &client),
                ("k7", "lost, not known where", &unknown),
            ];
            parts.push(html! {
                (plane.time_axis())
                (plane.linear_axis(top, false, WHOLE))
                (plane.name(&format!("data segments lost in {step}"), false))
                @for (place, (colour, _, _)) in stack.iter().enumerate() {
                    g class=(colour) {
                        path.fill d=(plane.bars(&bins, |bin| {
                            let below: f64 = stack[..place].iter().map(|(_, _, value)| value(bin)).sum();
                            (below / top, (below + stack[place].2(bin)) / top)
                        })) {}
                    }
                }
            });
            above = plane.whole_height();
            let all = |value: Of<'_>| bins.iter().map(value).sum::<f64>();
            for (colour, name, value) in stack {
                if all(value) > 0.0 {
                    entries.push((
                        colour.to_owned(),
                        false,
                        format!("{} {name}", count(all(value).round() as u64)),
                    ));
                }
            }
        }
        if most_syns > 0.0 {
            let plane = Plane::new(self.span, above, LOW);
            let top = most_syns * 1.05;
            parts.push(html! {
                (plane.time_axis())
                (plane.linear_axis(top, false, WHOLE))
                (plane.name(&format!("SYNs and SYN-ACKs that came again in {step}"), false))
                g.k3 { path.fill d=(plane.bars(&bins, |bin| (0.0, syns(bin) / top))) {} }
            });
            above = plane.whole_height();
            let all: u64 = bins
                .iter()
                .map(|b| u64::from(b.syn_repeats[0]) + u64::from(b.syn_repeats[1]))
                .sum();
            entries.push((
                "k3".to_owned(),
                false,
                format!("{} SYNs and SYN-ACKs again", count(all)),
            ));
        }
        Some(Figure {
            id: "fig-losses".into(),
            caption: format!(
                "Losses over time, in steps of {step}. A loss stands where its repeat passed the tap, or where the gap was seen."
            )
            .into(),
            drawing: drawing(above, "Losses over time", html! { @for part in &parts { (part) } }, entries),
        })
    }

    /// Connections and transactions a second, transactions in progress, throughput.
    pub fn load(&self) -> Option<Figure> {
        let width = self.width_of(STEPS);
        if self.services().is_empty() {
            return None;
        }
        let (progress, most_progress) = self.running(|slice| (slice.requests, slice.responses));
        let mut parts = Vec::new();
        let mut above = 0.0;
        let mut panel = |name: &str, (most, least): (f64, f64), paths: Vec<(&str, String)>| {
            let plane = Plane::new(self.span, above, LOW);
            parts.push(html! {
                (self.ground(&plane, plane.bottom))
                (plane.linear_axis(most, false, least))
                (plane.name(name, false))
                @for (colour, path) in &paths { g class=(colour) { path.line d=(path) {} } }
            });
            above = plane.whole_height();
        };
        let at = |above: f64| Plane::new(self.span, above, LOW);
        let room = at(0.0).whole_height();
        let services = self.services();
        let per_second = |value: fn(&Slice) -> u32, above: f64| {
            let rates: Vec<_> = services.iter().map(|(_, bins)| rates(bins, self.span, value)).collect();
            let most = rates.iter().flatten().copied().fold(0.0, f64::max) * 1.05;
            let paths: Vec<_> = rates
                .iter()
                .zip(LINE_COLOURS)
                .map(|(rates, colour)| (colour, at(above).stairs(rates.iter().map(|rate| rate / most))))
                .collect();
            (most, paths)
        };
        let mut next = 0.0;
        for (name, value) in [
            ("new connections a second", (|s: &Slice| s.opened) as fn(&Slice) -> u32),
            ("responses a second", |s: &Slice| s.responses),
        ] {
            let (most, paths) = per_second(value, next);
            if most > 0.0 {
                panel(name, (most, ANY), paths);
                next += room;
            }
        }
        if most_progress > 1.0 {
            let most = most_progress * 1.05;
            let paths = progress
                .iter()
                .zip(LINE_COLOURS)
                .map(|((_, line), colour)| (colour, at(next).steps(line, |level| level.0 / most)))
                .collect();
            panel("transactions in progress", (most, WHOLE), paths);
            next += room;
        }
        let bins = self.timeline.bins().coarser(width);
        let bits = |side: usize| move |bin: &weir_patterns::Bin| bin.bytes[side] as f64 * 8.0;
        let most = (0..2).flat_map(|side| bins.iter().map(bits(side))).fold(0.0, f64::max) * 1.05;
        if most > 0.0 {
            let seconds = bins.width() as f64 / 1e9;
            let paths = PAYLOAD_COLOURS
                .into_iter()
                .enumerate()
                .map(|(side, colour)| (colour, at(next).steps(&bins, |bin| bits(side)(bin) / most)))
                .collect();
            panel("payload, bits a second", (most / seconds, ANY), paths);
        }
        let mut entries: Vec<_> = services
            .iter()
            .zip(LINE_COLOURS)
            .map(|((service, _), colour)| (colour.to_owned(), true, service_name(*service)))
            .collect();
        for (colour, side) in PAYLOAD_COLOURS.into_iter().zip(["clients", "servers"]) {
            entries.push((colour.to_owned(), true, format!("payload from {side}")));
        }
        Some(Figure {
            id: "fig-load".into(),
            caption: format!(
                "Load over time. Connections and responses a second are counted over at least one second.{}",
                self.ground_words()
            )
            .into(),
            drawing: drawing(
                above,
                "Load over time",
                html! { @for part in &parts { (part) } },
                entries,
            ),
        })
    }
}

/// Events a second in equal steps of `span` (TAI ns), each of a second or more: one event in a step of milliseconds would
/// look like hundreds a second.
fn rates(bins: &Bins<Slice>, (start, end): (u64, u64), value: fn(&Slice) -> u32) -> Vec<f64> {
    const SECOND: u64 = 1_000_000_000;
    let width = end.saturating_sub(start).max(1);
    let steps = (width / SECOND).clamp(1, STEPS);
    let mut events = vec![0u64; steps as usize];
    for (number, slice) in (0u64..).zip(bins.iter()) {
        let at = (bins.start() + number * bins.width()).saturating_sub(start);
        let step = u128::from(at) * u128::from(steps) / u128::from(width);
        events[(step as usize).min(steps as usize - 1)] += u64::from(value(slice));
    }
    let seconds = (width / steps).max(SECOND) as f64 / 1e9;
    events.into_iter().map(|n| n as f64 / seconds).collect()
}

/// Data segments lost and sent.
fn losses(bin: &weir_patterns::Bin) -> (u64, u64) {
    let sent = bin.segments.map(u64::from);
    (bin.lost(0) + bin.lost(1), sent[0] + sent[1])
}

/// TAI ns of a time near `near` (TAI ns).
fn tai(time: &weir_messages::Timestamp, near: u64) -> u64 {
    (time.unix_nanos().max(0) as u64).saturating_add(ahead(near))
}

/// Room of the histogram, px.
const HISTOGRAM: f64 = 130.0;
/// Lines of services.
const LINE_COLOURS: [&str; LINES] = ["kf", "k1", "k2", "k6"];
/// Lines of clients and servers, in the same legend.
const PAYLOAD_COLOURS: [&str; 2] = ["k0", "k7"];
/// Kinds of requests.
const KIND_COLOURS: [&str; KINDS] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6"];

/// A value, not a sum.
#[derive(Clone, Copy, Debug, Default)]
struct Level(f64);

impl std::ops::AddAssign for Level {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.max(other.0);
    }
}

/// The same marks in columns as wide as those of the others.
fn common(marks: &Bins<Column>, width: u64) -> Bins<Column> {
    // Widths are powers of two times the first one: the next below is common to all.
    marks.coarser(width)
}

fn histogram(
    plane: &Plane,
    kinds: &[&Requests],
    (low, high): (usize, usize),
    colour: impl Fn(usize) -> &'static str,
) -> Markup {
    let sums: Vec<Vec<u64>> = kinds
        .iter()
        .map(|kind| {
            let mut sum = vec![0; high - low];
            for column in kind.marks.iter() {
                for (all, n) in sum.iter_mut().zip(&column.0[low..high]) {
                    *all += u64::from(*n);
                }
            }
            sum
        })
        .collect();
    let row_sum = |row: usize| sums.iter().map(|sum| sum[row]).sum::<u64>();
    let most = (0..high - low).map(row_sum).max().unwrap_or(1).max(1) as f64;
    let x = plane.right + 12.0;
    let row_height = (plane.bottom - plane.top) / (high - low) as f64;
    let mut paths = vec![String::new(); kinds.len()];
    for row in 0..high - low {
        let all = row_sum(row) as f64;
        let length = (all / most).sqrt() * HISTOGRAM;
        let y = plane.bottom - (row + 1) as f64 * row_height;
        let mut from = x;
        for (place, sum) in sums.iter().enumerate() {
            if sum[row] > 0 {
                let part = length * sum[row] as f64 / all;
                let h = (row_height - 0.3).max(0.6);
                paths[place] += &format!("M{from:.1} {y:.1}h{part:.2}v{h:.1}h-{part:.2}z");
                from += part;
            }
        }
    }
    html! {
        line.axis x1=(n(x)) x2=(n(x)) y1=(n(plane.top)) y2=(n(plane.bottom)) {}
        @for (place, path) in paths.iter().enumerate() {
            @if !path.is_empty() { g class=(colour(place)) { path.fill d=(path) {} } }
        }
    }
}

/// A link to a chart in words.
pub fn see(text: Text, id: &str) -> Text {
    let name = match id {
        "fig-dialogues" => "dialogues",
        "fig-setups" => "connection setups",
        "fig-transactions" => "transactions",
        "fig-losses" => "losses over time",
        "fig-load" => "load over time",
        "fig-durations" => "durations of connections",
        "fig-timing" => "packets of many connections",
        _ => "figure",
    };
    text.link(id, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_a_second_is_counted_over_a_second_or_more() {
        let second = 1_000_000_000;
        let start = 7 * second + 5;
        let mut bins: Bins<Slice> = Bins::new(10_000_000);
        for at in [start, start + 1, start + 5 * second / 2] {
            bins.at(at).opened += 1;
        }
        let opened = |slice: &Slice| slice.opened;
        assert_eq!(rates(&bins, (start, start + 3 * second), opened), [2.0, 0.0, 1.0]);
        // All of a capture that is shorter is one step, of a second.
        assert_eq!(rates(&bins, (start, start), opened), [3.0]);
    }

    #[test]
    fn rates_have_the_colours_of_the_page() {
        let colours = [Some(0.005), Some(0.0051), Some(0.05), Some(0.2), None].map(rate_colour);
        assert_eq!(colours, ["k2", "k0", "k4", "kb", OTHERS]);
    }
}
