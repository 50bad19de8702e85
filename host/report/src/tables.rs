//! The tables. Each is there only if the capture has something for it.

use std::collections::{HashMap, HashSet};

use weir_analysis::{address, decimal};
use weir_messages::v1;
use weir_patterns::{Dialogue, Dialogues};

use crate::collect::Collector;
use crate::document::{Block, Row, Table, Text};
use crate::figures::service_name;
use crate::format::{Clock, bytes, count, endpoint, seconds};
use crate::scale::Histogram;

/// Pairs shown.
const PAIRS: usize = 20;
/// Signatures shown.
const SIGNATURES: usize = 40;
/// Columns of the transactions that setups do not have.
const SIZES: [usize; 3] = [1, 2, 6];
/// Bottlenecks shown.
const BOTTLENECKS: usize = 8;

/// A row of texts.
fn row<T: Into<Text>>(cells: impl IntoIterator<Item = T>) -> Row {
    Row {
        id: None,
        cells: cells.into_iter().map(Into::into).collect(),
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), seconds)
}

/// A count, nothing for 0: what is there shows.
fn some(n: u64) -> String {
    if n == 0 { "·".into() } else { count(n) }
}

/// A share with two digits.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn shown_of(shown: usize, all: usize) -> String {
    if shown < all {
        format!(" {} of {}.", count(shown as u64), count(all as u64))
    } else {
        String::new()
    }
}

/// Each pair of hosts with both directions.
pub fn dialogues(dialogues: &Dialogues) -> Option<Table> {
    let all = dialogues.by_volume();
    if all.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for (pair, d) in all.iter().take(PAIRS) {
        let service = service_name((pair.server, pair.port));
        for side in 0..2 {
            rows.push(dialogue_row(&address(pair.client), &service, d, side));
        }
    }
    if let Some(others) = dialogues.others() {
        for side in 0..2 {
            rows.push(dialogue_row("all others", "", others, side));
        }
    }
    Some(Table {
        id: "tab-dialogues",
        caption: format!(
            "Dialogues, each direction.{} Lost: data segments, between their sender and the tap, between the tap and their \
             receiver, or not known where; gaps: delivered, but not in the capture; round trip: smallest, from the tap to the \
             receiver and back.",
            shown_of(all.len().min(PAIRS), all.len())
        )
        .into(),
        headers: vec![
            ("client", false),
            ("", false),
            ("server", false),
            ("connections", true),
            ("failed", true),
            ("packets", true),
            ("bytes", true),
            ("retransmitted", true),
            ("lost before tap", true),
            ("behind tap", true),
            ("not known", true),
            ("SYNs again", true),
            ("gaps", true),
            ("round trip", true),
        ],
        rows,
    })
}

fn dialogue_row(client: &str, service: &str, d: &Dialogue, side: usize) -> Row {
    let once = |n: u64| if side == 0 { some(n) } else { String::new() };
    row([
        client.to_owned(),
        if side == 0 { "→" } else { "←" }.to_owned(),
        service.to_owned(),
        once(d.connections),
        once(d.failed),
        count(d.packets[side]),
        bytes(d.bytes[side]),
        d.rate(side).map_or_else(|| "–".into(), percent),
        some(d.lost_before[side]),
        some(d.lost_behind[side]),
        some(d.lost_unknown[side]),
        some(d.syn_repeats[side]),
        some(d.missed[side]),
        optional(d.rtt[side].map(|ns| ns as f64 / 1e9)),
    ])
}

/// Setups and transactions by their description.
pub fn signatures(summary: &v1::Summary, setups: bool) -> Option<Table> {
    let all: Vec<_> = summary
        .signatures
        .iter()
        .filter(|s| s.signature.starts_with("Open Conn") == setups)
        .collect();
    if all.is_empty() {
        return None;
    }
    // A setup has no sizes, and nothing before it.
    let kept = |column: usize| !setups || !SIZES.contains(&column);
    let rows = all
        .iter()
        .take(SIGNATURES)
        .map(|s| {
            let figures = [
                count(s.count),
                optional(s.client_average_seconds),
                decimal(s.request_bytes_average, 0),
                optional(s.server_seconds_min),
                optional(s.server_seconds_average),
                optional(s.server_seconds_max),
                decimal(s.response_bytes_average, 0),
                optional(s.end_seconds_average),
                optional(s.end_seconds_max),
                some(s.losses),
            ];
            let figures = figures.into_iter().enumerate().filter(|(column, _)| kept(*column));
            Row {
                id: None,
                cells: figures
                    .map(|(_, figure)| Text::from(figure))
                    .chain([Text::default().code(&s.signature)])
                    .collect(),
            }
        })
        .collect();
    let headers = [
        ("count", true),
        ("client", true),
        ("request bytes", true),
        ("server min", true),
        ("average", true),
        ("max", true),
        ("response bytes", true),
        ("end average", true),
        ("max", true),
        ("losses", true),
        ("description", false),
    ];
    let (id, what, meaning) = if setups {
        (
            "tab-setups",
            "Connection setups",
            "Server: last SYN to its answer; end: first SYN to the end of the setup.",
        )
    } else {
        (
            "tab-signatures",
            "Transactions",
            "Client: mean time of the client before it; server: last packet of the request to first of the response; end: to the \
             last of the response.",
        )
    };
    Some(Table {
        id,
        caption: format!(
            "{what} by description, most frequent first.{} {meaning}",
            shown_of(all.len().min(SIGNATURES), all.len())
        )
        .into(),
        headers: headers
            .into_iter()
            .enumerate()
            .filter(|(column, _)| kept(*column))
            .map(|(_, header)| header)
            .collect(),
        rows,
    })
}

/// Columns of [`spread`].
const SPREAD: [&str; 6] = ["50 %", "90 %", "95 %", "99 %", "mean", "max"];

fn spread(times: &Histogram) -> [String; SPREAD.len()] {
    let quantile = |share| times.quantile(share);
    let figures = [
        quantile(0.5),
        quantile(0.9),
        quantile(0.95),
        quantile(0.99),
        times.mean(),
        times.max(),
    ];
    figures.map(|figure| optional((times.count() > 0).then_some(figure)))
}

/// Percentiles of setups and kinds of requests.
pub fn percentiles(facts: &Collector) -> Option<Table> {
    let setups = facts
        .setups
        .iter()
        .zip(crate::collect::OUTCOMES)
        .filter(|(setups, _)| setups.times.count() > 0)
        .map(|(setups, (_, name, _))| (format!("setup {name}"), &setups.times, 0, 0));
    let mut kinds: Vec<_> = facts.requests.iter().collect();
    kinds.sort_by(|a, b| b.times.count().cmp(&a.times.count()).then_with(|| a.name.cmp(&b.name)));
    let kinds = kinds
        .into_iter()
        .map(|kind| (kind.name.clone(), &kind.times, kind.unanswered, kind.with_losses));
    let rows: Vec<_> = setups
        .chain(kinds)
        .map(|(name, times, unanswered, with_losses)| Row {
            id: None,
            cells: [Text::default().code(name)]
                .into_iter()
                .chain(
                    [count(times.count()), some(unanswered), some(with_losses)]
                        .into_iter()
                        .chain(spread(times))
                        .map(Text::from),
                )
                .collect(),
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        id: "tab-percentiles",
        caption: "Times of setups, and of transactions by port and request size (end of the request to end of the response). \
                  Half, 90 %, 95 % and 99 % took no longer than this (right to 1 %)."
            .into(),
        headers: [("what", false), ("count", true), ("no answer", true), ("with losses", true)]
            .into_iter()
            .chain(SPREAD.map(|name| (name, true)))
            .collect(),
        rows,
    })
}

/// How long connections lasted, by how they were closed.
pub fn durations(facts: &Collector) -> Option<Table> {
    let mut closes: Vec<_> = facts.durations.iter().collect();
    closes.sort_by_key(|(name, times)| (std::cmp::Reverse(times.times.count()), **name));
    let rows: Vec<_> = closes
        .into_iter()
        .map(|(name, times)| Row {
            id: None,
            cells: [Text::default().code(*name), count(times.times.count()).into()]
                .into_iter()
                .chain(spread(&times.times).map(Text::from))
                .collect(),
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        id: "tab-durations",
        caption: "Durations of connections, first packet to last, by how they were closed. Half, 90 %, 95 % and 99 % lasted no longer \
                  than this (right to 1 %)."
            .into(),
        headers: [("closed", false), ("count", true)]
            .into_iter()
            .chain(SPREAD.map(|name| (name, true)))
            .collect(),
        rows,
    })
}

/// Id of a connection's row.
pub fn connection_anchor(id: u64) -> String {
    format!("c-{id}")
}

/// Connections as examples; those with a packet chart lead to it.
pub fn connections(shown: &[&v1::Connection], charted: &HashSet<u64>, summary: &v1::Summary) -> Option<Table> {
    if shown.is_empty() {
        return None;
    }
    let clock = Clock::of(summary);
    let rows = shown
        .iter()
        .map(|c| {
            let ends = |e: &Option<v1::Endpoint>| e.as_ref().map_or_else(String::new, endpoint);
            let id = c.id.to_string();
            let name = if charted.contains(&c.id) {
                Text::default().link(format!("fig-packets-{id}"), id)
            } else {
                id.into()
            };
            let (to_server, to_client) = (
                c.client_to_server.unwrap_or_default(),
                c.server_to_client.unwrap_or_default(),
            );
            let mut cells = vec![name];
            let both =
                |value: fn(&v1::Direction) -> u64| format!("{} / {}", some(value(&to_server)), some(value(&to_client)));
            cells.extend(
                [
                    clock.known(c.first_packet_time.as_ref()),
                    ends(&c.client),
                    ends(&c.server),
                    c.setup.as_ref().map_or_else(String::new, |s| s.outcome.clone()),
                    c.setup.as_ref().map_or_else(String::new, |s| optional(s.end_seconds)),
                    c.close.as_ref().map_or_else(String::new, |s| s.kind.clone()),
                    seconds(c.duration_seconds),
                    count(u64::from(c.turns)),
                    both(|d| d.packets),
                    both(|d| d.retransmitted_packets),
                    both(|d| d.zero_windows + d.small_windows),
                ]
                .map(Text::from),
            );
            Row {
                id: Some(connection_anchor(c.id)),
                cells,
            }
        })
        .collect();
    Some(Table {
        id: "tab-connections",
        caption: "Connections to look at: examples of each way to be set up and closed, and those with most trouble. Numbers of \
                  both directions: client / server."
            .into(),
        headers: vec![
            ("connection", true),
            ("start", false),
            ("client", false),
            ("server", false),
            ("setup", false),
            ("took", true),
            ("closed", false),
            ("duration", true),
            ("turns", true),
            ("packets", true),
            ("again", true),
            ("small or closed windows", true),
        ],
        rows,
    })
}

/// Load phases, the services of each.
pub fn phases(summary: &v1::Summary) -> Option<Table> {
    let clock = Clock::of(summary);
    let time = |t: Option<weir_messages::Timestamp>| {
        let whole = clock.known(t.as_ref());
        // Tenths of a second are enough.
        whole[..whole.len().saturating_sub(5)].to_owned()
    };
    let percentile = |all: &Option<v1::TimePercentiles>, of: fn(&v1::TimePercentiles) -> f64| {
        all.as_ref()
            .filter(|all| all.count > 0)
            .map_or_else(|| "–".to_owned(), |all| seconds(of(all)))
    };
    let mut rows = Vec::new();
    for (number, phase) in (1..).zip(&summary.phases) {
        for (place, service) in phase.services.iter().enumerate() {
            let once = |text: String| if place == 0 { text } else { String::new() };
            rows.push(row([
                once(format!("{number}")),
                once(time(phase.start)),
                once(time(phase.end)),
                once(format!("{:.0}", phase.concurrent_connections)),
                service.server.as_ref().map_or_else(String::new, endpoint),
                format!("{:.1}", service.concurrent_connections),
                format!("{:.1}", service.transactions_in_progress),
                count(service.connections),
                count(service.transactions),
                format!("{:.1}", service.transactions_per_second),
                percentile(&service.response, |p| p.p50_seconds),
                percentile(&service.response, |p| p.p90_seconds),
                percentile(&service.setup, |p| p.p50_seconds),
                some(service.lost_segments),
                some(service.repeated_setup_packets),
            ]));
        }
    }
    (!rows.is_empty()).then(|| Table {
        id: "tab-phases",
        caption: "Load phases: times in which about as many connections were open, and each service in them.".into(),
        headers: vec![
            ("phase", true),
            ("start", false),
            ("end", false),
            ("load", true),
            ("service", false),
            ("open", true),
            ("in progress", true),
            ("connections", true),
            ("transactions", true),
            ("a second", true),
            ("response 50 %", true),
            ("90 %", true),
            ("setup 50 %", true),
            ("lost", true),
            ("SYNs again", true),
        ],
        rows,
    })
}

/// Services whose hosts ask other services.
pub fn tiers(summary: &v1::Summary) -> Option<Table> {
    let name = |e: &Option<v1::Endpoint>| e.as_ref().map_or_else(String::new, endpoint);
    let rows: Vec<_> = summary
        .tiers
        .iter()
        .map(|tier| {
            row([
                name(&tier.front),
                name(&tier.back),
                count(tier.requests),
                count(tier.calls),
                format!("{:.1}", tier.calls_per_request),
                seconds(tier.request_seconds),
                percent(tier.explained_share),
                some(tier.calls_alone),
                some(tier.calls_decided),
                some(tier.calls_ambiguous),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        id: "tab-tiers",
        caption: "Tiers: what a service asks another one for, from timing alone. Explained: share of the time of the requests in \
                  front with a call under way behind. Decided: calls that one \
                  request alone can have made; ambiguous: several can."
            .into(),
        headers: vec![
            ("front", false),
            ("back", false),
            ("requests", true),
            ("calls", true),
            ("per request", true),
            ("time in front", true),
            ("explained", true),
            ("calls alone", true),
            ("decided", true),
            ("ambiguous", true),
        ],
        rows,
    })
}

/// Where several captures were taken, what lies between them, and whose time it was by them.
pub fn taps(taps: &[v1::Tap], legs: &[v1::Leg], pies: &[v1::Pie]) -> Vec<Block> {
    let mut out = Vec::new();
    if taps.is_empty() {
        return out;
    }
    let files: Vec<String> = taps.iter().map(|tap| tap.file.clone()).collect();
    let short: HashMap<&String, &str> = files.iter().zip(crate::file_names(&files)).collect();
    let name = |file: &String| short.get(file).map_or_else(|| file.clone(), |name| (*name).to_owned());
    let ttl = |ttl: Option<u32>| ttl.map_or_else(|| "–".to_owned(), |ttl| ttl.to_string());
    out.push(Block::Table(Table {
        id: "tab-taps",
        caption: "Captures of the path, the client's side first; the rest of this report is about the first.".into(),
        headers: vec![
            ("capture", false),
            ("TCP packets", true),
            ("missed by it", true),
            ("connections", true),
            ("only here", true),
            ("TTL from clients", true),
            ("from servers", true),
        ],
        rows: taps
            .iter()
            .map(|tap| {
                row([
                    name(&tap.file),
                    count(tap.packets),
                    some(tap.missed_by_capture),
                    count(tap.connections),
                    some(tap.connections_only_here),
                    ttl(tap.ttl_client_side),
                    ttl(tap.ttl_server_side),
                ])
            })
            .collect(),
    }));
    let delay = |delay: &Option<v1::Delay>| {
        delay.as_ref().filter(|delay| delay.samples > 0).map_or_else(
            || "–".to_owned(),
            |delay| format!("{} / {}", seconds(delay.median_seconds), seconds(delay.p95_seconds)),
        )
    };
    out.push(Block::Table(Table {
        id: "tab-legs",
        caption: "Legs between neighbouring captures; → to the server, ← to the client. Offset: clock of the second minus clock of the \
                  first, and how well it is known; delay: median / 95 %, as if the fastest packets took as long in both directions."
            .into(),
        headers: vec![
            ("from", false),
            ("to", false),
            ("matched", true),
            ("lost →", true),
            ("lost ←", true),
            ("not known", true),
            ("offset", true),
            ("± ", true),
            ("skew ppm", true),
            ("delay →", true),
            ("delay ←", true),
        ],
        rows: legs
            .iter()
            .map(|leg| {
                row([
                    name(&leg.from),
                    name(&leg.to),
                    count(leg.matched),
                    some(leg.lost_forward),
                    some(leg.lost_backward),
                    some(leg.undecided),
                    optional(leg.offset_seconds),
                    optional(leg.offset_width_seconds.map(|width| width / 2.0)),
                    leg.skew_ppm.map_or_else(|| "–".to_owned(), |ppm| format!("{ppm:.2}")),
                    delay(&leg.delay_forward),
                    delay(&leg.delay_backward),
                ])
            })
            .collect(),
    }));
    let placement: Vec<Text> = legs.iter().flat_map(|leg| &leg.placement).map(Text::from).collect();
    if !placement.is_empty() {
        out.push(Block::List(placement));
    }
    if !pies.is_empty() {
        out.push(Block::Table(Table {
            id: "tab-pies",
            caption: "Client, network and server time. Measured: of each transaction, between the taps. Article: the time of the capture, by the \
                      gaps between frames, which mean little where connections are open at once. One tap: of each transaction, as estimated from the first tap \
                      alone. ±: of each part, where it is known."
                .into(),
            headers: vec![
                ("method", false),
                ("client", true),
                ("network", true),
                ("server", true),
                ("total", true),
                ("±", true),
            ],
            rows: pies
                .iter()
                .map(|pie| {
                    row([
                        words(&pie.method),
                        seconds(pie.client_seconds),
                        seconds(pie.network_seconds),
                        seconds(pie.server_seconds),
                        seconds(pie.total_seconds),
                        optional(pie.uncertainty_seconds),
                    ])
                })
                .collect(),
        }));
    }
    out
}

/// Whose time it was, what cost it, the diagnosis and the statistics.
pub fn diagnosis(summary: &v1::Summary) -> Vec<Block> {
    let mut out = Vec::new();
    let total = summary.delays.map_or(0.0, |delays| delays.total_seconds);
    if let Some(delays) = summary.delays.filter(|_| total > 0.0) {
        let rows = parts_of(&delays)
            .into_iter()
            .filter(|(_, s)| *s > 0.0)
            .map(|(name, s)| row([name.to_owned(), seconds(s), percent(s / total)]))
            .collect();
        out.push(Block::Table(Table {
            id: "tab-delays",
            caption: format!(
                "Whose time it was: {} of all setups and transactions; what runs side by side counts each.",
                seconds(total)
            )
            .into(),
            headers: vec![("part", false), ("time", true), ("share", true)],
            rows,
        }));
    }
    if !summary.bottlenecks.is_empty() {
        out.push(Block::Table(Table {
            id: "tab-bottlenecks",
            caption: "What cost time, most first; no more than this can be saved, as the next limit holds then.".into(),
            headers: vec![
                ("what", false),
                ("time", true),
                ("share", true),
                ("what would save it", false),
            ],
            rows: summary
                .bottlenecks
                .iter()
                .take(BOTTLENECKS)
                .map(|b| row([words(&b.name), seconds(b.seconds), percent(b.share), b.remedy.clone()]))
                .collect(),
        }));
    }
    if !summary.diagnosis.is_empty() {
        out.push(Block::Table(Table {
            id: "tab-diagnosis",
            caption: "Diagnosis: each category against its two thresholds.".into(),
            headers: vec![
                ("category", false),
                ("verdict", false),
                ("value", true),
                ("potential from", true),
                ("bottleneck from", true),
                ("of", false),
            ],
            rows: summary
                .diagnosis
                .iter()
                .map(|d| {
                    row([
                        words(&d.category),
                        words(&d.verdict),
                        percent(d.value),
                        percent(d.potential),
                        percent(d.bottleneck),
                        d.of.clone(),
                    ])
                })
                .collect(),
        }));
    }
    if !summary.statistics.is_empty() {
        let figure = |value: Option<f64>| value.map_or_else(String::new, plain);
        out.push(Block::Table(Table {
            id: "tab-statistics",
            caption: "Statistics.".into(),
            headers: vec![
                ("figure", false),
                ("unit", false),
                ("total", true),
                ("client", true),
                ("server", true),
            ],
            rows: summary
                .statistics
                .iter()
                .map(|s| {
                    row([
                        s.name.clone(),
                        s.unit.clone(),
                        figure(s.total),
                        figure(s.client),
                        figure(s.server),
                    ])
                })
                .collect(),
        }));
    }
    out
}

/// Parts of a time with their names.
pub fn parts_of(delays: &v1::TimeShares) -> [(&'static str, f64); 7] {
    [
        ("server processing", delays.server_processing_seconds),
        ("client processing", delays.client_processing_seconds),
        (
            "user thinking (client silent for more than 1 s)",
            delays.user_think_seconds,
        ),
        ("latency", delays.latency_seconds.unwrap_or(0.0)),
        ("bandwidth", delays.bandwidth_seconds),
        ("congestion", delays.congestion_seconds),
        (
            "protocol (windows, recovery, slow start, delayed ACKs)",
            delays.protocol_seconds,
        ),
    ]
}

/// `SERVER_PROCESSING` as people write it.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ").to_lowercase()
}

fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        let whole = count(value.abs() as u64);
        if value < 0.0 { format!("−{whole}") } else { whole }
    } else {
        let text = match value.abs() {
            100.0.. => decimal(value, 1),
            1.0.. => format!("{value:.3}"),
            _ => format!("{value:.6}"),
        };
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_named_as_in_the_title() {
        let tap = |file: &str| v1::Tap {
            file: file.to_owned(),
            ..v1::Tap::default()
        };
        let leg = v1::Leg {
            from: "/a/web.pcap".to_owned(),
            to: "/a/db.pcap".to_owned(),
            ..v1::Leg::default()
        };
        let blocks = taps(&[tap("/a/web.pcap"), tap("/a/db.pcap")], &[leg], &[]);
        let said = format!("{blocks:?}");
        assert!(
            said.contains("web.pcap") && said.contains("db.pcap") && !said.contains("/a/"),
            "{said}"
        );
    }

    #[test]
    fn no_times_have_no_figures() {
        let mut times = Histogram::default();
        assert_eq!(spread(&times), ["–"; SPREAD.len()]);
        times.add(2_000_000_000);
        assert_eq!(spread(&times)[5], "2.00 s");
    }
}
