//! Reports of simulated captures: what the data supports stands in them, and nothing else.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashSet;

use support::{Html, Read, scenario};
use weir_messages::Timestamp;
use weir_messages::v1::PacketRow;
use weir_report::{Block, Document, Item, Trace, charts, html, markdown};

/// Well formed, every link leads somewhere, every id is one, nothing from outside, nothing that runs.
#[track_caller]
fn check(text: &str) -> Html {
    let parsed = Html::parse(text);
    assert!(
        parsed.errors.is_empty(),
        "{:?}",
        &parsed.errors[..parsed.errors.len().min(5)]
    );
    let mut ids = HashSet::new();
    for id in parsed.attributes("id") {
        assert!(ids.insert(id), "id {id} twice");
    }
    for to in parsed.attributes("href") {
        let id = to.strip_prefix('#').unwrap_or_else(|| panic!("{to} leads outside"));
        assert!(ids.contains(id), "{to} leads nowhere");
    }
    for name in ["src", "onclick", "onload", "xlink:href", "srcset"] {
        assert_eq!(parsed.attributes(name).count(), 0, "{name}");
    }
    for (name, _) in &parsed.elements {
        assert!(
            !matches!(name.as_str(), "script" | "link" | "img" | "iframe" | "object"),
            "{name}"
        );
    }
    assert!(!text.contains("url(") && !text.contains("@import"));
    parsed
}

fn items<'a>(document: &'a Document, section: &str) -> Vec<&'a Item> {
    let blocks = document
        .sections
        .iter()
        .filter(|s| s.id == section)
        .flat_map(|s| &s.blocks);
    let items = blocks.filter_map(|block| match block {
        Block::Items(items) => Some(items),
        _ => None,
    });
    items.flatten().collect()
}

fn has(document: &Document, id: &str) -> bool {
    let mut blocks = document.sections.iter().flat_map(|s| &s.blocks);
    blocks.any(|block| match block {
        Block::Table(table) => table.id == id && !table.rows.is_empty(),
        Block::Figure(figure) => figure.id == id && figure.drawing.body.contains("<path"),
        _ => false,
    })
}

/// The checklist: a small run of the published case.
#[test]
fn megalodon_is_reported_whole() {
    let read = scenario("megalodon", 0.1, 2015, 1);
    let document = read.report();
    let text = html(&document);
    let parsed = check(&text);
    for id in [
        "fig-dialogues",
        "tab-dialogues",
        "fig-setups",
        "tab-setups",
        "fig-transactions",
        "tab-percentiles",
        "tab-signatures",
        "fig-waterfall-1",
        "fig-waterfall-2",
        "fig-load",
        "fig-losses",
        "tab-phases",
        "tab-tiers",
        "fig-durations",
        "tab-durations",
        "fig-timing",
        "tab-connections",
        "tab-delays",
        "tab-diagnosis",
        "tab-statistics",
    ] {
        assert!(has(&document, id), "{id} is missing");
    }
    let observations = items(&document, "observations");
    let kinds: Vec<_> = observations.iter().map(|item| format!("{:?}", item.notes)).collect();
    let findings = read.facts.inner.findings();
    assert_eq!(observations.len(), findings.len());
    for finding in findings {
        let title = finding.title.chars().skip(1).collect::<String>();
        let kind = format!("Code({:?})", finding.kind);
        let same = observations
            .iter()
            .filter(|item| format!("{:?}", item.notes).contains(&kind) && format!("{:?}", item.title).contains(&title));
        assert_eq!(same.count(), 1, "{title}");
        // All evidence is quoted, and what comes next is a recommendation.
        for line in finding
            .evidence
            .iter()
            .filter(|line| !line.ends_with("connections are named"))
        {
            let line = line
                .strip_prefix("next: ")
                .unwrap_or(line)
                .chars()
                .skip(1)
                .collect::<String>();
            assert!(parsed.text.contains(&line), "{line}");
        }
    }
    for kind in [
        "FAILED_CONNECTIONS",
        "PERIODIC_LOSS",
        "APPLICATION_SLEEP",
        "ABORTIVE_CLOSE",
    ] {
        assert_eq!(
            kinds.iter().filter(|notes| notes.contains(kind)).count(),
            1,
            "{kind} in {kinds:?}"
        );
    }
    let recommendations = items(&document, "recommendations");
    assert!(!recommendations.is_empty());
    let text_of = format!("{recommendations:?}");
    assert!(text_of.contains("where SYN and SYN-ACK get lost"), "{text_of}");
    // The published case: its ports, sizes and hosts.
    for wanted in [
        "10.0.0.10:5433",
        "192.168.1.1:443",
        "5433: blk[127]",
        "Request: blk[127]-blk[3xxx]",
        "Open Conn: Syn WScale: 8 SelAck MSS:1460-Syn-Ack MSS:1460 SelAck WScale: 8 - Ack",
        "IGNORED",
        "between the tap and the servers",
    ] {
        assert!(parsed.text.contains(wanted), "{wanted} is missing");
    }
    let connections = format!("{} connections", weir_report::format::count(read.summary.connections));
    assert!(document.subtitle.contains(&connections), "{}", document.subtitle);
    assert!(text.len() < 2_000_000, "{} bytes", text.len());

    let markdown = markdown(&document, Some("charts"));
    for item in observations.iter().chain(&recommendations) {
        assert!(markdown.contains(&format!("<a id=\"{}\"></a>", item.id)), "{}", item.id);
    }
    for id in links(&markdown) {
        assert!(
            markdown.contains(&format!("<a id=\"{id}\"></a>")),
            "#{id} leads nowhere"
        );
    }
    // Each chart is a file, and each file is shown.
    let charts = charts(&document);
    assert!(charts.len() > 6, "{}", charts.len());
    for (name, chart) in &charts {
        assert!(markdown.contains(&format!("](<charts/{name}>)")), "{name}");
        assert!(chart.starts_with("<svg xmlns=") && chart.contains("--c0:"), "{name}");
    }
    assert_eq!(markdown.matches("](<charts/").count(), charts.len());
}

fn links(markdown: &str) -> Vec<&str> {
    let parts = markdown.split("](#").skip(1);
    parts.map(|part| part.split(')').next().unwrap()).collect()
}

#[test]
fn a_healthy_capture_has_nothing_to_mend() {
    let read = scenario("healthy", 0.3, 5, 0);
    let document = read.report();
    check(&html(&document));
    let answer = format!("{:?}", document.sections[0]);
    // It is what the time went into, with whom, and what would help.
    for part in [
        "No fault was found; the time went into client processing: ",
        "What would help: a faster client",
        " transactions with 10.1.1.10:443",
        " in the median, ",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    assert!(
        items(&document, "observations")
            .iter()
            .all(|item| item.severity.as_deref() == Some("INFO"))
    );
    assert!(!has(&document, "fig-losses"));
}

/// A packet alone makes no chart, and no link to one.
#[test]
fn links_lead_to_charts_that_are_there() {
    let read = scenario("megalodon", 0.1, 7, 1);
    let row = |seconds: i64| PacketRow {
        time: Some(Timestamp::from_unix_nanos(seconds * 1_000_000_000)),
        ..PacketRow::default()
    };
    let shown = read.facts.inner.worth_a_look(8);
    let trace = |id, rows| Trace {
        id,
        ends: [String::new(), String::new()],
        rows,
        left_out: 0,
    };
    let traces = [trace(shown[0], vec![row(1)]), trace(shown[1], vec![row(1), row(2)])];
    let text = html(&read.report_with(&traces));
    check(&text);
    assert!(text.contains(&format!("href=\"#fig-packets-{}\"", shown[1])));
}

/// Of one instant no length is told, and one packet is no packets.
#[test]
fn a_capture_of_one_packet_has_no_length() {
    let mut read = Read::empty();
    read.summary.packets = 1;
    let document = read.report();
    assert_eq!(document.subtitle, "1 packet; 0 connections; 0 transactions");
    let parsed = check(&html(&document));
    assert!(
        parsed.text.contains("The capture holds 1 packet and no TCP"),
        "{}",
        parsed.text
    );
    assert!(parsed.text.contains("1 packet (0 TCP)."), "{}", parsed.text);
}

#[test]
fn an_empty_capture_has_a_report() {
    let document = Read::empty().report();
    assert_eq!(document.subtitle, "0 packets; 0 connections; 0 transactions");
    let parsed = check(&html(&document));
    assert!(parsed.text.contains("holds no packets"), "{}", parsed.text);
    for section in &document.sections {
        assert!(!section.blocks.is_empty(), "{} is empty", section.id);
        assert!(!section.id.starts_with("evidence"));
    }
    assert!(markdown(&document, None).contains("holds no packets"));
}

#[test]
fn names_are_text_and_nothing_else() {
    const HOSTILE: &str = "</title><script>alert(1)</script>\"'&<b>|`*_[x](javascript:1)\n# no";
    let mut read = scenario("refused", 1.0, 1, 0);
    // The report tells the name without folders.
    read.files = vec![HOSTILE.replace('/', "")];
    let signature = &mut read.summary.signatures[0];
    signature.signature = format!("Open Conn {HOSTILE}");
    read.summary.untracked.insert(HOSTILE.to_owned(), 3);
    let document = read.report();
    let parsed = check(&html(&document));
    assert!(parsed.text.matches("alert(1)").count() >= 4, "{}", parsed.text);
    let markdown = markdown(&document, None);
    // What stands between backticks is no markup.
    let outside: String = markdown.replace("\\`", "").split('`').step_by(2).collect();
    assert!(markdown.contains("alert(1)") && !outside.contains("<script") && !outside.contains("<b>"));
    // Every row of a table has as many cells as its head.
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with('|') && lines.peek().is_some_and(|next| next.starts_with('|')) {
            assert_eq!(bars(line), bars(lines.peek().unwrap()), "{line}");
        }
    }
    assert!(!markdown.contains("\n# no"));
}
