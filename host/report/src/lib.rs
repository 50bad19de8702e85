//! The written report: question and answer, observations, recommendations, and the evidence with its charts.
//!
//! No I/O: facts in ([`Collector`], a sink of the analysis), a [`Document`] out, which [`html()`] writes as one file that
//! needs neither network nor script, and [`markdown()`] as text. What a report holds: `docs/src/report.md`.
#![forbid(unsafe_code)]

mod chart;
mod collect;
pub mod compare;
mod document;
mod figures;
pub mod format;
mod html;
mod markdown;
mod observations;
mod packets;
mod quality;
mod sample;
mod scale;
mod shown_in;
mod significance;
mod spent;
mod svg;
mod tables;
mod timing;
mod waterfall;

use std::collections::HashSet;

use weir_analysis::{connections, several};
use weir_messages::v1;
use weir_patterns::{Dialogues, Timeline};

pub use collect::Collector;
pub use document::{Block, Document, Drawing, Figure, Item, Row, Section, Span, Table, Text};
pub use html::html;
pub use markdown::markdown;
pub use packets::Trace;
pub use sample::Sampler;
pub use svg::charts;
pub use timing::Timing;

/// What a report is about.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Names of the captures.
    pub files: &'a [String],
    /// What the reader wants to know; not set: the usual question.
    pub question: Option<&'a str>,
    /// The whole in figures.
    pub summary: &'a v1::Summary,
    /// What happened when.
    pub timeline: &'a Timeline,
    /// Who talked to whom.
    pub dialogues: &'a Dialogues,
    /// What was collected, findings included.
    pub facts: &'a Collector,
    /// Packets of connections to show.
    pub traces: &'a [Trace],
    /// Packets of many connections.
    pub timing: Option<&'a Timing>,
    /// Where several captures of one path were taken, what lies between them, and the time by them.
    pub taps: &'a [v1::Tap],
    /// See `taps`.
    pub legs: &'a [v1::Leg],
    /// See `taps`.
    pub pies: &'a [v1::Pie],
    /// With another capture, if that was asked for.
    pub comparison: Option<&'a v1::Comparison>,
}

/// What people want to know who have said nothing else.
const QUESTION: &str = "Was it the client, the network or the server; where were packets lost; why is it slow?";

/// Findings in the order of the report: most serious first, then what cost most.
pub use observations::ranked;

/// What to do next about a finding, as it says itself.
pub fn next_step(finding: &v1::Finding) -> Option<&str> {
    observations::next_steps(finding).next()
}

/// Write the report.
pub fn report(input: &Input<'_>) -> Document {
    let Input { summary, facts, .. } = *input;
    let evidence = evidence(input);
    let shown: HashSet<u64> = facts.shown().iter().map(|c| c.id).collect();
    let there = anchors(&evidence);

    let mut answer = vec![Block::Paragraph(
        Text::default()
            .strong("Question:")
            .plain(" ")
            .plain(input.question.unwrap_or(QUESTION)),
    )];
    answer.extend(observations::answer(input));
    let mut sections = vec![Section {
        id: "answer",
        title: "Question and answer".into(),
        blocks: answer,
    }];
    let mut add = |id: &'static str, title: &str, blocks: Vec<Block>| {
        if !blocks.is_empty() {
            sections.push(Section {
                id,
                title: title.into(),
                blocks,
            });
        }
    };
    let items = |items: Vec<Item>| {
        if items.is_empty() {
            Vec::new()
        } else {
            vec![Block::Items(items)]
        }
    };
    add(
        "observations",
        "Observations",
        items(observations::observations(&facts.findings, summary, &shown, &there)),
    );
    add(
        "recommendations",
        "Recommendations",
        items(observations::recommendations(&facts.findings)),
    );
    sections.extend(input.comparison.map(compare::sections).unwrap_or_default());
    sections.extend(evidence);
    Document {
        title: format!("Report on {}", file_names(input.files).join(", ")),
        subtitle: subtitle(summary, facts),
        sections,
    }
}

/// Captures without their folders, where that leaves them different.
pub fn file_names<'a>(files: &'a [String]) -> Vec<&'a str> {
    let name = |file: &'a String| {
        let path = Some(file).filter(|file| !file.contains("://"))?;
        std::path::Path::new(path).file_name()?.to_str()
    };
    let short: Vec<&str> = files.iter().map(|file| name(file).unwrap_or(file)).collect();
    let different: HashSet<&str> = short.iter().copied().collect();
    if different.len() == files.len() {
        short
    } else {
        files.iter().map(String::as_str).collect()
    }
}

fn subtitle(summary: &v1::Summary, facts: &Collector) -> String {
    let list = |map: &std::collections::BTreeMap<&str, u64>| {
        let all: Vec<_> = map
            .iter()
            .map(|(name, n)| format!("{} {}", format::count(*n), tables::words(name)))
            .collect();
        all.join(", ")
    };
    let outcomes = match facts.outcomes.is_empty() {
        true => String::new(),
        false => format!(" (setups: {})", list(&facts.outcomes)),
    };
    format!(
        "{}{}{}; {}{outcomes}; {}",
        several(summary.packets, "packet", "packets"),
        format::length(summary),
        summary.start.map_or_else(String::new, |t| format!(" from {t}")),
        connections(summary.connections),
        several(summary.transactions, "transaction", "transactions"),
    )
}

/// Charts, tables, quality and method.
fn evidence(input: &Input<'_>) -> Vec<Section> {
    let Input {
        summary,
        timeline,
        dialogues,
        facts,
        ..
    } = *input;
    let scene = figures::Scene::new(facts, timeline, summary);
    let shown = facts.shown();
    let mut sections = Vec::new();
    let mut add = |id: &'static str, title: &str, blocks: Vec<Block>| {
        if !blocks.is_empty() {
            sections.push(Section {
                id,
                title: title.into(),
                blocks,
            });
        }
    };
    let figure = |figure: Option<Figure>| figure.map(Block::Figure);
    let table = |table: Option<Table>| table.map(Block::Table);
    if summary.connections > 0 {
        add(
            "evidence",
            "Evidence: who talks to whom",
            [
                figure(figures::dialogues(dialogues)),
                table(tables::dialogues(dialogues)),
            ]
            .into_iter()
            .flatten()
            .collect(),
        );
        add(
            "setups",
            "Evidence: connection setups",
            [figure(scene.setups()), table(tables::signatures(summary, true))]
                .into_iter()
                .flatten()
                .collect(),
        );
        add(
            "transactions",
            "Evidence: transactions",
            [
                figure(scene.transactions()),
                table(tables::percentiles(facts)),
                table(tables::signatures(summary, false)),
            ]
            .into_iter()
            .flatten()
            .chain(facts.waterfalls.figures().into_iter().map(Block::Figure))
            .collect(),
        );
        add(
            "over-time",
            "Evidence: over time",
            [
                figure(scene.load()),
                figure(scene.losses()),
                table(tables::phases(summary)),
                table(tables::tiers(summary)),
            ]
            .into_iter()
            .flatten()
            .collect(),
        );
        add(
            "taps",
            "Evidence: several taps",
            tables::taps(input.taps, input.legs, input.pies),
        );
        let known = |trace: &Trace| shown.iter().copied().find(|c| c.id == trace.id);
        // One packet is no chart: nothing leads to it.
        let (charted, packets): (HashSet<u64>, Vec<Figure>) = input
            .traces
            .iter()
            .filter_map(|trace| Some((trace.id, packets::figure(trace, known(trace))?)))
            .unzip();
        add(
            "connections",
            "Evidence: connections",
            [
                figure(scene.durations()),
                table(tables::durations(facts)),
                figure(input.timing.and_then(Timing::figure)),
                table(tables::connections(&shown, &charted, summary)),
            ]
            .into_iter()
            .flatten()
            .chain(packets.into_iter().map(Block::Figure))
            .collect(),
        );
        add("diagnosis", "Diagnosis and statistics", tables::diagnosis(summary));
    }
    add(
        "quality",
        "Quality of the capture",
        vec![Block::List(quality::quality(summary))],
    );
    add(
        "method",
        "Method and limits",
        vec![Block::List(quality::method(input.files.len()))],
    );
    sections
}

/// Everything that links can lead to.
fn anchors(sections: &[Section]) -> HashSet<String> {
    let mut out = HashSet::new();
    for section in sections {
        out.insert(section.id.to_owned());
        for block in &section.blocks {
            match block {
                Block::Table(table) => {
                    out.insert(table.id.to_owned());
                }
                Block::Figure(figure) => {
                    out.insert(figure.id.clone());
                }
                _ => {}
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::file_names;

    #[test]
    fn folders_are_told_where_names_are_the_same() {
        let names = |files: [&str; 2]| file_names(&files.map(str::to_owned)).join(" ");
        assert_eq!(names(["/a/web.pcap", "b/db.pcap"]), "web.pcap db.pcap");
        assert_eq!(names(["a/tap.pcap", "b/tap.pcap"]), "a/tap.pcap b/tap.pcap");
        assert_eq!(names(["-", "http://127.0.0.1:50051"]), "- http://127.0.0.1:50051");
    }
}
