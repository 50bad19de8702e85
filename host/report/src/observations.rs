//! The words: answer, observations and recommendations, composed from the findings.

use std::cmp::Reverse;
use std::collections::HashSet;

use weir_analysis::{connections, several};
use weir_messages::v1;
use weir_messages::v1::finding_value::Value;
use weir_patterns::{Dialogues, Timeline};

use crate::document::{Block, Item, Span, Text};
use crate::figures::{see, service_name};
use crate::format::{Clock, count, seconds};
use crate::shown_in;
use crate::spent::{PARTS, Spent};
use crate::tables::{connection_anchor, parts_of, percent, words};
use crate::{Input, file_names};

/// Connections named in an observation.
const NAMED: usize = 5;
/// Findings named in the answer.
const IN_ANSWER: usize = 4;
/// What a finding is taken to cost that does not say it, s: more than a moment, less than what is known to be much.
const UNKNOWN_COST: f64 = 1.0;
/// Share of the time from which on silent clients are the answer where nothing else is.
const MOST_OF_THE_TIME: f64 = 0.5;
/// Share of the time from which on a part of it is told.
const TOLD: f64 = 0.01;
/// How the last lines of a finding's evidence begin that are no evidence: other explanations, and what to do next.
const OTHERWISE: &str = "it may also be";
const NEXT: &str = "next:";

/// How a line ends that tells how many connections the message names: here a few are named.
const NOT_HERE: &str = "connections are named";

/// Most serious first, then what cost most.
pub fn ranked(findings: &[v1::Finding]) -> Vec<&v1::Finding> {
    let mut all: Vec<_> = findings.iter().collect();
    let milliseconds = |finding: &v1::Finding| (1e3 * cost(finding).unwrap_or(UNKNOWN_COST)) as u64;
    all.sort_by_key(|finding| (Reverse(rank(&finding.severity)), Reverse(milliseconds(finding))));
    for (kind, failed) in [("SYN_FLOOD", "syns"), ("PORT_SCAN", "connections")] {
        before_its_failures(&mut all, kind, failed);
    }
    all
}

/// A flood or scan stands before the failed connections that most of its SYNs are: what those ask for would be sought in vain.
fn before_its_failures(all: &mut [&v1::Finding], kind: &str, failures: &str) {
    let place = |kind: &str| all.iter().position(|finding| finding.kind == kind);
    let (Some(failed), Some(cause)) = (place("FAILED_CONNECTIONS"), place(kind)) else {
        return;
    };
    let many = number(all[failed], "connections").unwrap_or(0.0);
    if failed < cause && number(all[cause], failures).is_some_and(|own| 2.0 * own >= many) {
        all[failed..=cause].rotate_right(1);
    }
}

pub fn rank(severity: &str) -> u8 {
    match severity {
        "CRITICAL" => 2,
        "WARNING" => 1,
        _ => 0,
    }
}

/// A number among the values of a finding.
pub fn number(finding: &v1::Finding, key: &str) -> Option<f64> {
    match finding.values.get(key)?.value.as_ref()? {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// Seconds that it cost, where the finding says so.
fn cost(finding: &v1::Finding) -> Option<f64> {
    number(finding, "costSeconds")
}

/// What is wrong, in a paragraph or three.
pub fn answer(input: &Input<'_>) -> Vec<Block> {
    let Input {
        summary,
        timeline,
        dialogues,
        facts,
        ..
    } = *input;
    let findings = &facts.findings;
    let ranked = ranked(findings);
    let mut out = Vec::new();
    let serious: Vec<_> = ranked.iter().filter(|finding| rank(&finding.severity) > 0).collect();
    if summary.packets == 0 {
        return vec![Block::Paragraph(
            "The capture holds no packets: there is nothing to say.".into(),
        )];
    }
    if summary.connections == 0 {
        return vec![Block::Paragraph(
            format!(
                "The capture holds {} and no TCP connection: there is nothing to say of setups, losses and transactions.",
                several(summary.packets, "packet", "packets")
            )
            .into(),
        )];
    }
    let mut text = Text::default();
    if serious.is_empty() {
        let unanswered = facts.outcomes.get("IGNORED").copied().unwrap_or(0);
        text = without_faults(summary, &facts.spent, unanswered);
        if !ranked.is_empty() {
            text = text.plain(" What is worth knowing stands below.");
        }
    }
    for (place, finding) in serious.iter().take(IN_ANSWER).enumerate() {
        text = text.strong(sentence(&finding.title)).plain(" ");
        // The first line of the evidence says what it means.
        if let Some(line) = finding
            .evidence
            .iter()
            .find(|line| !is_aside(line))
            .filter(|_| place < 2)
        {
            text = text.plain(sentence(line)).plain(" ");
        }
        text = text.plain("(").link(anchor(&ranked, finding), "why").plain(") ");
    }
    if serious.len() > IN_ANSWER {
        text = text
            .plain(format!("And {} more: see the ", serious.len() - IN_ANSWER))
            .link("observations", "observations")
            .plain(".");
    }
    out.push(Block::Paragraph(text));
    out.extend(measured(input).map(Block::Paragraph));
    let alone = match file_names(input.files)[..] {
        [first, _, ..] => format!("By {first} alone: "),
        _ => String::new(),
    };
    let rest = [
        where_lost(timeline, dialogues),
        if is_one_sided(findings) {
            Some("Whose time it was is not known: one direction of most connections is not in the capture.".into())
        } else {
            whose_time(summary, !serious.is_empty())
        },
    ];
    out.extend(rest.into_iter().flatten().map(|Text(mut said)| {
        if let Some(Span::Plain(begin)) = said.first_mut().filter(|_| !alone.is_empty()) {
            if let Some(letter) = begin.get_mut(..1) {
                letter.make_ascii_lowercase();
            }
            begin.insert_str(0, &alone);
        }
        Block::Paragraph(Text(said))
    }));
    out
}

/// What several captures of one path tell that one of them can only infer: losses between them, and whose time it was.
fn measured(input: &Input<'_>) -> Option<Text> {
    let files: Vec<String> = input.taps.iter().map(|tap| tap.file.clone()).collect();
    let short = file_names(&files);
    let name = |file: &String| {
        let at = files.iter().position(|f| f == file);
        at.map_or_else(|| file.clone(), |at| short[at].to_owned())
    };
    let of = |lost: u64, arrived: u64| {
        let share = percent(lost as f64 / (lost + arrived) as f64);
        format!("{} of {} packets ({share})", count(lost), count(lost + arrived))
    };
    let legs = input.legs.iter().filter(|leg| leg.matched > 0);
    let lost: Vec<_> = legs
        .map(|leg| {
            let ways = [
                (leg.lost_forward, leg.arrived_forward, "to the server"),
                (leg.lost_backward, leg.arrived_backward, "to the client"),
            ];
            let mut ways: Vec<_> = ways
                .into_iter()
                .filter(|(lost, ..)| *lost > 0)
                .map(|(lost, arrived, way)| format!("{} {way}", of(lost, arrived)))
                .collect();
            if ways.is_empty() {
                ways.push("nothing".to_owned());
            }
            if leg.undecided > 0 {
                ways.push(format!("of {} it is not known", count(leg.undecided)));
            }
            format!(
                "lost between {} and {}: {}",
                name(&leg.from),
                name(&leg.to),
                ways.join(", ")
            )
        })
        .collect();
    let pie = input
        .pies
        .iter()
        .find(|pie| pie.method == "MEASURED" && pie.total_seconds > 0.0);
    if lost.is_empty() && pie.is_none() {
        return None;
    }
    let mut text = Text::default().strong("Measured by the captures together:");
    if !lost.is_empty() {
        text = text.plain(format!(" {}. See ", lost.join("; ")));
        text = text.link("tab-legs", "legs").plain(".");
    }
    if let Some(pie) = pie {
        let share = |seconds: f64| format!("{:.0} %", 100.0 * seconds / pie.total_seconds);
        let parts = [
            (pie.client_seconds, "client"),
            (pie.network_seconds, "network"),
            (pie.server_seconds, "server"),
        ];
        let parts = parts.map(|(seconds, whose)| format!("{} {whose}", share(seconds)));
        let uncertain = pie.uncertainty_seconds.filter(|s| *s >= TOLD * pie.total_seconds);
        let uncertain = uncertain.map_or_else(String::new, |s| format!(" (± {})", share(s)));
        text = text.plain(format!(" Time: {}{uncertain}. See ", parts.join(", ")));
        text = text.link("tab-pies", "client, network and server time").plain(".");
    }
    Some(text)
}

/// Of half of the connections with data, or more, one direction is missing: what was waited for does not show.
fn is_one_sided(findings: &[v1::Finding]) -> bool {
    let one_sided = findings.iter().find(|finding| finding.kind == "ONE_SIDED");
    one_sided
        .and_then(|finding| number(finding, "share"))
        .is_some_and(|share| share >= 0.5)
}

/// Where nothing is broken, the answer is what the time went into. `unanswered` setups are no finding: the capture ended
/// before anybody had to answer.
fn without_faults(summary: &v1::Summary, spent: &Spent, unanswered: u64) -> Text {
    let beyond = |d: &&v1::Diagnosis| d.verdict == "BOTTLENECK";
    let is_part = |category: &str| PARTS.iter().any(|(part, _)| *part == category);
    let (mut parts, others): (Vec<_>, Vec<_>) = summary
        .diagnosis
        .iter()
        .filter(beyond)
        .partition(|d| is_part(&d.category));
    parts.sort_by(|a, b| b.value.total_cmp(&a.value));
    let still = (unanswered > 0).then(|| {
        format!(
            "{} had not been set up yet when the capture ended: a longer one tells whether {}.",
            connections(unanswered),
            if unanswered == 1 { "it was" } else { "they were" }
        )
    });
    let total = summary.delays.map_or(0.0, |delays| delays.total_seconds);
    if parts.is_empty() && others.is_empty() {
        let silent = summary.delays.map_or(0.0, |delays| delays.user_think_seconds);
        return Text::default().strong(match still {
            Some(still) => still,
            None if silent >= MOST_OF_THE_TIME * total && silent > 0.0 => format!(
                "No fault was found; clients were silent, for more than a second at a time, {} of {} ({:.0} %): users, timers or slow \
                 programs.",
                seconds(silent),
                seconds(total),
                100.0 * silent / total
            ),
            None => "Nothing was found that needs mending.".to_owned(),
        });
    }
    let mut text = Text::default();
    if parts.is_empty() {
        text = text.strong("No fault was found.");
    }
    for (place, part) in parts.into_iter().enumerate() {
        let name = words(&part.category);
        let took = format!(
            "{} of {} ({:.0} %)",
            seconds(part.value * total),
            seconds(total),
            100.0 * part.value
        );
        text = match place {
            0 => text.strong(format!("No fault was found; the time went into {name}: {took}.")),
            _ => text.plain(" ").strong(sentence(&format!("{name} took {took}"))),
        };
        // The protocol's are ranked by what it waited for.
        let costs =
            |b: &&v1::Bottleneck| b.name == part.category || part.category == "PROTOCOL" && is_protocol(&b.name);
        if let Some(cost) = summary.bottlenecks.iter().find(costs) {
            text = text.plain(match cost.name == part.category {
                true => format!(" What would help: {}.", cost.remedy),
                false => format!(
                    " Most of it is {}, {}. What would help: {}.",
                    words(&cost.name),
                    seconds(cost.seconds),
                    cost.remedy
                ),
            });
        }
        if let Some(Text(most)) = spent.most(&part.category) {
            text = text.plain(" ");
            text.0.extend(most);
            text = text.plain(".");
        }
    }
    if !others.is_empty() {
        let list: Vec<_> = others
            .iter()
            .map(|d| {
                format!(
                    "{} ({:.1} % {})",
                    words(&d.category),
                    100.0 * d.value,
                    d.of.trim_start_matches("share ")
                )
            })
            .collect();
        text = text.plain(format!(" Beyond their thresholds: {}.", list.join(", ")));
    }
    if let Some(still) = still {
        text = text.plain(format!(" {still}"));
    }
    text.plain(" See ").link("tab-diagnosis", "diagnosis").plain(".")
}

/// A bottleneck that the diagnosis has under `PROTOCOL`.
fn is_protocol(name: &str) -> bool {
    name != "USER_THINK" && !PARTS.iter().any(|(part, _)| *part == name)
}

fn anchor(ranked: &[&v1::Finding], finding: &v1::Finding) -> String {
    let place = ranked
        .iter()
        .position(|other| std::ptr::eq(*other, finding))
        .unwrap_or(0);
    format!("o{}", place + 1)
}

/// On which side of the tap data was lost, and with whom.
fn where_lost(timeline: &Timeline, dialogues: &Dialogues) -> Option<Text> {
    let (mut server, mut client, mut unknown) = (0u64, 0u64, 0u64);
    for bin in timeline.bins().iter() {
        server += u64::from(bin.lost_behind[0]) + u64::from(bin.lost_before[1]);
        client += u64::from(bin.lost_before[0]) + u64::from(bin.lost_behind[1]);
        unknown += u64::from(bin.lost_unknown[0]) + u64::from(bin.lost_unknown[1]);
    }
    if server + client + unknown == 0 {
        return None;
    }
    let most = dialogues.most_lost().map(|(pair, lost)| {
        let client = weir_analysis::address(pair.client);
        (format!("{client} and {}", service_name((pair.server, pair.port))), lost)
    });
    let text = lost_in_words([server, client, unknown], most);
    Some(see(Text::from(text + " See "), "fig-losses").plain("."))
}

/// So many on the servers' side, on the clients', and not known where; `most`: of several pairs the one that lost most.
fn lost_in_words(lost: [u64; 3], most: Option<(String, u64)>) -> String {
    let all = lost.iter().sum();
    let mut text = several(all, "data segment was lost", "data segments were lost");
    let places = [
        "between the tap and the servers",
        "between the tap and the clients",
        "at an unknown place",
    ];
    let places: Vec<_> = lost.into_iter().zip(places).filter(|(n, _)| *n > 0).collect();
    text += &match places[..] {
        [(1, place)] => format!(", {place}."),
        [(_, place)] => format!(", all {place}."),
        _ => {
            let each: Vec<_> = places
                .iter()
                .map(|(n, place)| format!("{} {place}", count(*n)))
                .collect();
            format!(": {}.", each.join(", "))
        }
    };
    if let Some((pair, n)) = most {
        text += &match 2 * n > all {
            _ if all == 1 => format!(" It was between {pair}."),
            _ if n >= all => format!(" They were between {pair}."),
            true => format!(" Most of them between {pair}: {}.", count(n)),
            false => format!(" No pair lost more than {pair}: {}.", count(n)),
        };
    }
    text
}

/// Client, network or server. Without faults the answer says already what the protocol waited for.
fn whose_time(summary: &v1::Summary, has_faults: bool) -> Option<Text> {
    let delays = summary.delays.filter(|delays| delays.total_seconds > 0.0)?;
    let mut parts: Vec<_> = parts_of(&delays)
        .into_iter()
        .filter(|(_, s)| *s / delays.total_seconds >= TOLD)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let list: Vec<_> = parts
        .iter()
        .map(|(name, s)| format!("{:.0} % {name}", 100.0 * s / delays.total_seconds))
        .collect();
    let mut text = Text::from(format!(
        "Of the time of all setups and transactions: {}. ",
        list.join(", ")
    ));
    if let Some(most) = protocols_most(summary, &delays).filter(|_| has_faults) {
        text = text.plain(most);
    }
    let processing = delays.client_processing_seconds + delays.server_processing_seconds;
    if delays.latency_seconds.is_none() && processing >= TOLD * delays.total_seconds {
        text = text.plain("The round trip is not known: its share is within the processing. ");
    }
    Some(text.plain("See ").link("tab-delays", "whose time it was").plain("."))
}

/// Where the protocol took most, what it waited for, as far as that is known and a quarter of it.
fn protocols_most(summary: &v1::Summary, delays: &v1::TimeShares) -> Option<String> {
    let total = delays.protocol_seconds;
    if parts_of(delays).iter().any(|(_, other)| *other > total) {
        return None;
    }
    let most: Vec<_> = summary
        .bottlenecks
        .iter()
        .filter(|b| is_protocol(&b.name) && b.name != "PROTOCOL_OTHER" && b.seconds >= total / 4.0)
        .map(|b| {
            format!(
                "{}, {} (what would help: {})",
                words(&b.name),
                seconds(b.seconds),
                b.remedy
            )
        })
        .collect();
    (!most.is_empty()).then(|| format!("Most of the protocol's is {}. ", most.join(", and ")))
}

/// With a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let rest = chars.as_str();
    let end = if rest.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{rest}{end}")
}

fn is_aside(line: &str) -> bool {
    line.starts_with(OTHERWISE) || line.starts_with(NEXT)
}

/// The findings, numbered. `shown` are the connections with a row of their own, `there` the anchors of the document.
pub fn observations(
    findings: &[v1::Finding],
    summary: &v1::Summary,
    shown: &HashSet<u64>,
    there: &HashSet<String>,
) -> Vec<Item> {
    let ranked = ranked(findings);
    ranked
        .iter()
        .enumerate()
        .map(|(place, finding)| Item {
            id: format!("o{}", place + 1),
            severity: Some(finding.severity.clone()),
            title: sentence(&finding.title).into(),
            points: finding
                .evidence
                .iter()
                .filter(|line| !line.starts_with(NEXT) && !line.ends_with(NOT_HERE))
                .map(|line| sentence(line).into())
                .collect(),
            notes: notes(finding, summary, shown, there),
        })
        .collect()
}

fn notes(finding: &v1::Finding, summary: &v1::Summary, shown: &HashSet<u64>, there: &HashSet<String>) -> Vec<Text> {
    let mut text = Text::default();
    if let (Some(start), Some(end)) = (&finding.start, &finding.end) {
        let clock = Clock::of(summary);
        text = text.plain(format!("From {} to {}. ", clock.time(start), clock.time(end)));
    }
    if let Some(cost) = cost(finding) {
        text = text.plain(format!("Cost: {}. ", seconds(cost)));
    }
    text = text.plain(format!("Confidence {:.0} %. ", 100.0 * finding.confidence));
    if let Some(anchor) = shown_in::of(&finding.kind, there) {
        text = text.plain("Shown in: ");
        text = match anchor {
            "tab-connections" => text.link("tab-connections", "connections"),
            "tab-signatures" => text.link("tab-signatures", "transactions by description"),
            "tab-diagnosis" => text.link("tab-diagnosis", "diagnosis"),
            "quality" => text.link("quality", "quality of the capture"),
            figure => see(text, figure),
        };
        text = text.plain(". ");
    }
    if !finding.connection_ids.is_empty() {
        // Those that can be looked at here come first.
        let mut ids: Vec<_> = finding.connection_ids.iter().collect();
        ids.sort_by_key(|id| !shown.contains(id));
        text = text.plain(if ids.len() == 1 { "Connection " } else { "Connections " });
        for (place, id) in ids.iter().take(NAMED).enumerate() {
            if place > 0 {
                text = text.plain(", ");
            }
            text = if shown.contains(id) {
                text.link(connection_anchor(**id), id.to_string())
            } else {
                text.plain(id.to_string())
            };
        }
        if ids.len() > NAMED {
            text = text.plain(" and others");
        }
        text = text.plain(". ");
    }
    vec![text.code(&finding.kind)]
}

/// What a finding says that is to be done.
pub fn next_steps(finding: &v1::Finding) -> impl Iterator<Item = &str> {
    let lines = finding.evidence.iter();
    lines.filter_map(|line| line.strip_prefix(NEXT).map(str::trim))
}

/// What to do, in the order of the observations, each thing once.
pub fn recommendations(findings: &[v1::Finding]) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for (place, finding) in ranked(findings).iter().enumerate() {
        for line in next_steps(finding) {
            let title = Text::from(sentence(line));
            let because = |text: Text| text.link(format!("o{}", place + 1), format!("Observation {}", place + 1));
            match out.iter_mut().find(|item| item.title == title) {
                Some(item) => {
                    for note in &mut item.notes {
                        *note = because(std::mem::take(note).plain(", "));
                    }
                }
                None => out.push(Item {
                    id: format!("r{}", out.len() + 1),
                    severity: None,
                    title,
                    points: Vec::new(),
                    notes: vec![because(Text::default())],
                }),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collector;

    fn critical(kind: &str, values: &[(&str, f64)]) -> v1::Finding {
        let value = |(key, number): &(&str, f64)| {
            let value = Some(Value::Number(*number));
            ((*key).to_owned(), v1::FindingValue { value })
        };
        v1::Finding {
            kind: kind.to_owned(),
            severity: "CRITICAL".to_owned(),
            values: values.iter().map(value).collect(),
            ..v1::Finding::default()
        }
    }

    #[test]
    fn a_flood_stands_before_the_failed_connections_that_it_is() {
        for (syns, first) in [(100.0, "SYN_FLOOD"), (10.0, "FAILED_CONNECTIONS")] {
            let findings = [
                critical("FAILED_CONNECTIONS", &[("connections", 120.0), ("costSeconds", 9.0)]),
                critical("LOSS", &[("costSeconds", 5.0)]),
                critical("SYN_FLOOD", &[("syns", syns), ("costSeconds", 0.0)]),
            ];
            let kinds: Vec<_> = ranked(&findings).iter().map(|finding| finding.kind.as_str()).collect();
            assert_eq!(kinds[0], first, "{kinds:?}");
            assert_eq!(kinds.iter().filter(|kind| **kind == "LOSS").count(), 1);
        }
    }

    #[test]
    fn a_scan_stands_before_the_failed_connections_that_it_is() {
        let findings = [
            critical("FAILED_CONNECTIONS", &[("connections", 120.0), ("costSeconds", 9.0)]),
            critical("PORT_SCAN", &[("connections", 110.0), ("costSeconds", 0.0)]),
        ];
        assert_eq!(ranked(&findings)[0].kind, "PORT_SCAN");
    }

    #[test]
    fn losses_are_told_by_place_and_pair() {
        let pair = |n| Some(("a and b:80".to_owned(), n));
        let told = [
            lost_in_words([1, 0, 0], pair(1)),
            lost_in_words([0, 0, 4], None),
            lost_in_words([0, 7, 0], pair(7)),
            lost_in_words([28, 1035, 3], pair(534)),
            lost_in_words([28, 35, 0], pair(23)),
        ];
        assert_eq!(
            told,
            [
                "1 data segment was lost, between the tap and the servers. It was between a and b:80.",
                "4 data segments were lost, all at an unknown place.",
                "7 data segments were lost, all between the tap and the clients. They were between a and b:80.",
                "1,066 data segments were lost: 28 between the tap and the servers, 1,035 between the tap and the clients, \
                 3 at an unknown place. Most of them between a and b:80: 534.",
                "63 data segments were lost: 28 between the tap and the servers, 35 between the tap and the clients. \
                 No pair lost more than a and b:80: 23.",
            ]
        );
    }

    fn plain(Text(spans): Text) -> String {
        let plain = |span: Span| match span {
            Span::Plain(text) | Span::Strong(text) | Span::Code(text) | Span::Link { text, .. } => text,
        };
        spans.into_iter().map(plain).collect()
    }

    #[test]
    fn what_several_captures_measured_goes_before_what_one_infers() {
        let files = ["/in/client.pcap", "/in/server.pcap"].map(str::to_owned);
        let taps = files.clone().map(|file| v1::Tap {
            file,
            ..v1::Tap::default()
        });
        let mut leg = v1::Leg {
            from: files[0].clone(),
            to: files[1].clone(),
            matched: 2764,
            lost_forward: 17,
            arrived_forward: 1383,
            ..v1::Leg::default()
        };
        let pie = v1::Pie {
            method: "MEASURED".to_owned(),
            client_seconds: 2.0,
            network_seconds: 7.0,
            server_seconds: 1.0,
            total_seconds: 10.0,
            uncertainty_seconds: Some(0.5),
        };
        let summary = v1::Summary {
            packets: 9,
            connections: 1,
            delays: Some(v1::TimeShares {
                protocol_seconds: 1.0,
                total_seconds: 1.0,
                ..v1::TimeShares::default()
            }),
            ..v1::Summary::default()
        };
        let said = |legs: &[v1::Leg], pies: &[v1::Pie]| {
            let told = answer(&Input {
                files: &files,
                question: None,
                summary: &summary,
                timeline: &Timeline::default(),
                dialogues: &Dialogues::default(),
                facts: &Collector::default(),
                traces: &[],
                timing: None,
                taps: &taps,
                legs,
                pies,
                comparison: None,
            });
            let paragraph = |block: Block| match block {
                Block::Paragraph(text) => plain(text),
                block => format!("{block:?}"),
            };
            told.into_iter().map(paragraph).collect::<Vec<_>>()
        };
        let told = said(std::slice::from_ref(&leg), &[pie]);
        assert_eq!(
            told[1],
            "Measured by the captures together: lost between client.pcap and server.pcap: 17 of 1,400 packets (1.21 %) to the server. \
             See legs. Time: 20 % client, 70 % network, 10 % server (± 5 %). See client, network and server time."
        );
        assert!(told[2].starts_with("By client.pcap alone: of the time "), "{told:?}");
        leg.lost_forward = 0;
        leg.undecided = 3;
        let told = said(&[leg], &[]);
        assert_eq!(
            told[1],
            "Measured by the captures together: lost between client.pcap and server.pcap: nothing, of 3 it is not known. See legs."
        );
    }

    #[test]
    fn a_round_trip_is_missed_where_there_is_processing() {
        let mut summary = v1::Summary {
            delays: Some(v1::TimeShares {
                protocol_seconds: 3.0,
                total_seconds: 3.0,
                ..v1::TimeShares::default()
            }),
            ..v1::Summary::default()
        };
        let said = |summary: &v1::Summary| plain(whose_time(summary, false).unwrap_or_default());
        assert!(!said(&summary).contains("round trip"), "{}", said(&summary));
        if let Some(delays) = &mut summary.delays {
            delays.server_processing_seconds = 1.0;
            delays.total_seconds = 4.0;
        }
        assert!(
            said(&summary).contains("The round trip is not known"),
            "{}",
            said(&summary)
        );
    }

    #[test]
    fn whose_time_it_was_is_not_known_of_one_direction() {
        let summary = v1::Summary {
            packets: 9,
            connections: 1,
            delays: Some(v1::TimeShares {
                server_processing_seconds: 1.0,
                total_seconds: 1.0,
                ..v1::TimeShares::default()
            }),
            ..v1::Summary::default()
        };
        for (share, is_known) in [(0.1, true), (0.5, false)] {
            let mut facts = Collector::default();
            facts.findings.push(critical("ONE_SIDED", &[("share", share)]));
            let answer = answer(&Input {
                files: &[],
                question: None,
                summary: &summary,
                timeline: &Timeline::default(),
                dialogues: &Dialogues::default(),
                facts: &facts,
                traces: &[],
                timing: None,
                taps: &[],
                legs: &[],
                pies: &[],
                comparison: None,
            });
            let text = format!("{answer:?}");
            assert_eq!(text.contains("server processing"), is_known, "{text}");
            assert_eq!(text.contains("Whose time it was is not known"), !is_known, "{text}");
        }
    }

    #[test]
    fn a_bottleneck_is_the_answer_where_nothing_is_broken() {
        let row = |category: &str, value: f64, verdict: &str| v1::Diagnosis {
            category: category.to_owned(),
            verdict: verdict.to_owned(),
            value,
            of: "share of the time".to_owned(),
            ..v1::Diagnosis::default()
        };
        let cost = |name: &str, seconds: f64, remedy: &str| v1::Bottleneck {
            name: name.to_owned(),
            seconds,
            remedy: remedy.to_owned(),
            ..v1::Bottleneck::default()
        };
        let mut summary = v1::Summary {
            delays: Some(v1::TimeShares {
                total_seconds: 200.0,
                ..v1::TimeShares::default()
            }),
            diagnosis: vec![
                row("SERVER_PROCESSING", 0.4, "POTENTIAL_BOTTLENECK"),
                row("PROTOCOL", 0.55, "BOTTLENECK"),
                row("FROZEN_WINDOW", 0.5, "BOTTLENECK"),
            ],
            bottlenecks: vec![
                cost("USER_THINK", 300.0, "nothing"),
                cost("RECEIVER_WINDOW", 100.0, "a larger window"),
                cost("SERVER_PROCESSING", 80.0, "a faster server"),
                cost("SENDER", 10.0, "a larger send buffer"),
            ],
            ..v1::Summary::default()
        };
        let said = |summary: &v1::Summary, unanswered| plain(without_faults(summary, &Spent::default(), unanswered));
        assert_eq!(
            said(&summary, 0),
            "No fault was found; the time went into protocol: 110 s of 200 s (55 %). Most of it is receiver window, 100 s. \
             What would help: a larger window. Beyond their thresholds: frozen window (50.0 % of the time). See diagnosis."
        );
        summary.diagnosis.truncate(1);
        assert_eq!(said(&summary, 0), "Nothing was found that needs mending.");
        assert_eq!(
            said(&summary, 2),
            "2 connections had not been set up yet when the capture ended: a longer one tells whether they were."
        );
        assert!(said(&summary, 1).ends_with("a longer one tells whether it was."));
        if let Some(delays) = &mut summary.delays {
            delays.user_think_seconds = 184.0;
        }
        assert_eq!(
            said(&summary, 0),
            "No fault was found; clients were silent, for more than a second at a time, 184 s of 200 s (92 %): users, timers or slow \
             programs."
        );
    }

    #[test]
    fn with_faults_it_is_said_what_the_protocol_waited_for() {
        let delays = |protocol_seconds, server_processing_seconds| v1::TimeShares {
            total_seconds: protocol_seconds + server_processing_seconds,
            protocol_seconds,
            server_processing_seconds,
            ..v1::TimeShares::default()
        };
        let cost = |name: &str, seconds: f64| v1::Bottleneck {
            name: name.to_owned(),
            seconds,
            remedy: "less loss".to_owned(),
            ..v1::Bottleneck::default()
        };
        let summary = v1::Summary {
            bottlenecks: vec![
                cost("CONGESTION_WINDOW", 12.0),
                cost("SERVER_PROCESSING", 8.0),
                cost("RECEIVER_WINDOW", 1.0),
            ],
            ..v1::Summary::default()
        };
        assert_eq!(
            protocols_most(&summary, &delays(20.0, 8.0)).as_deref(),
            Some("Most of the protocol's is congestion window, 12.00 s (what would help: less loss). ")
        );
        assert_eq!(protocols_most(&summary, &delays(20.0, 30.0)), None);
    }
}
