//! What differs between two captures: before and after, good and bad. Rules: `docs/src/compare.md`.

use std::collections::{BTreeMap, BTreeSet};

use weir_messages::v1;

use crate::document::{Block, Document, Row, Section, Table, Text};
use crate::file_names;
use crate::format::{bytes, count, seconds};
use crate::sample::{Key, Measure, Sampler};
use crate::significance::{Tested, Trials, holm, rates, sum, values};

/// Chance below which a difference is significant, after the correction.
const SIGNIFICANT: f64 = 0.01;
/// Cliff's delta below which a difference does not matter (Romano et al. 2006).
const LEAST_DELTA: f64 = 0.147;
/// Change of a rate, or of the median and the 95 % of values, below which a difference does not matter.
const LEAST_CHANGE: f64 = 0.1;
/// Sizes that are called large: Cliff's delta (Romano et al. 2006), Cohen's h (Cohen 1988), and twice as many.
const LARGE: [f64; 3] = [0.474, 0.8, std::f64::consts::LN_2];
/// A cost below is none, s.
const LEAST_COST: f64 = 1e-6;
/// Rows of a table, and more if there are more significant differences.
const ROWS: usize = 12;

/// Compare them.
pub fn compare(names: [&str; 2], samplers: [&Sampler; 2]) -> v1::Comparison {
    let [first, second] = samplers;
    let mut all: Vec<(Measure, v1::Difference)> = Vec::new();
    for (key, draw) in &first.values {
        if let Some(other) = second.values.get(key) {
            let scale = if unit(key.0) == "SECONDS" { 1e9 } else { 1.0 };
            let sides = [first.sliced(draw), second.sliced(other)];
            let tested = values(&sides[0], &sides[1]);
            let [a, b] = sides.map(|side| quantiles(side, scale));
            let mut difference = difference(key, tested, (draw.count as f64, a), (other.count as f64, b));
            let means = [draw, other].map(|draw| draw.mean() / scale);
            for (side, mean) in [&mut difference.first, &mut difference.second].into_iter().zip(means) {
                if let Some(side) = side {
                    side.mean = Some(mean);
                }
            }
            difference.cost_seconds = (difference.unit == "SECONDS").then(|| {
                let whole = second.values.get(&(Measure::ResponseTime, key.1, "".into()));
                (means[1] - means[0]) * for_each(key.0, other.count, whole.map_or(0, |whole| whole.count))
            });
            all.push((key.0, difference));
        }
    }
    let ratios: [BTreeMap<Key, _>; 2] = samplers.map(Sampler::ratios);
    for (key, ratio) in &ratios[0] {
        if let Some(other) = ratios[1].get(key) {
            let tested = rates(ratio, other, key.0.trials());
            let [a, b] = [ratio, other].map(|ratio| {
                let (hits, trials) = sum(ratio);
                (trials, (if trials > 0.0 { hits / trials } else { 0.0 }, None))
            });
            // What never happens in either says nothing.
            if a.1.0 > 0.0 || b.1.0 > 0.0 {
                all.push((key.0, difference(key, tested, a, b)));
            }
        }
    }
    let p: Vec<f64> = all.iter().filter_map(|(_, d)| d.p).collect();
    let mut corrected = holm(&p).into_iter();
    for (measure, d) in &mut all {
        if d.p.is_some() {
            d.p_corrected = corrected.next();
            d.significant = d.p_corrected.is_some_and(|p| p < SIGNIFICANT) && matters(*measure, d);
        }
    }
    // Times before the others. Of each significant ones first, as chance may cost more; then times by what they cost, load
    // behind the rest, the largest first.
    let cost = |d: &v1::Difference| d.cost_seconds.map_or(0.0, f64::abs);
    let kind = |measure: Measure, d: &v1::Difference| (d.cost_seconds.is_none(), !d.significant, measure.is_load());
    all.sort_by(|(a, x), (b, y)| {
        kind(*a, x)
            .cmp(&kind(*b, y))
            .then_with(|| cost(y).total_cmp(&cost(x)))
            .then_with(|| size(y).total_cmp(&size(x)))
    });
    let only = |mine: usize, other: usize| {
        let findings = samplers[mine].findings.iter();
        let has = |f: &v1::Finding| samplers[other].findings.iter().any(|g| alike(f, g));
        findings.filter(|f| !has(f)).cloned().collect()
    };
    let in_both = samplers[0]
        .findings
        .iter()
        .filter(|f| samplers[1].findings.iter().any(|g| alike(f, g)));
    let in_both: BTreeSet<String> = in_both.map(told).collect();
    v1::Comparison {
        first: names[0].to_owned(),
        second: names[1].to_owned(),
        differences: all.into_iter().map(|(_, d)| d).collect(),
        only_first: only(0, 1),
        only_second: only(1, 0),
        in_both: in_both.into_iter().collect(),
        tests: p.len() as u32,
    }
}

/// How many of the values of a time there are for each of so many transactions.
fn for_each(measure: Measure, values: u64, transactions: u64) -> f64 {
    match measure {
        // Each waits for one at least, however many connections there are.
        Measure::RoundTripServer | Measure::RoundTripClient => 1.0,
        _ => values as f64 / transactions.max(1) as f64,
    }
}

/// The same trouble with the same hosts.
fn alike(f: &v1::Finding, g: &v1::Finding) -> bool {
    f.kind == g.kind && f.who == g.who
}

/// Its kind, and whom it is about where there may be several.
fn told(f: &v1::Finding) -> String {
    if f.who.is_empty() {
        f.kind.clone()
    } else {
        format!("{} ({})", f.kind, f.who)
    }
}

type Side = (f64, (f64, Option<f64>));

fn difference((measure, port, request): &Key, tested: Option<Tested>, first: Side, second: Side) -> v1::Difference {
    let measured = |(count, (value, p95)): Side| v1::Measured {
        count,
        value,
        p95,
        mean: None,
    };
    let port = match port {
        0 => "other ports".to_owned(),
        port => format!("port {port}"),
    };
    v1::Difference {
        measure: measure.name().to_owned(),
        of: if request.is_empty() {
            port
        } else {
            format!("{port}: {request}")
        },
        unit: unit(*measure).to_owned(),
        first: Some(measured(first)),
        second: Some(measured(second)),
        effect: tested.map(|t| t.effect),
        effect_kind: match (is_value(*measure), measure.trials()) {
            (true, _) => "CLIFFS_DELTA",
            (false, Trials::Time) => "LOG_RATIO",
            (false, _) => "COHENS_H",
        }
        .to_owned(),
        p: tested.map(|t| t.p),
        p_corrected: None,
        significant: false,
        cost_seconds: None,
    }
}

const fn is_value(measure: Measure) -> bool {
    matches!(
        measure,
        Measure::ResponseTime
            | Measure::ClientTime
            | Measure::NetworkTime
            | Measure::ServerTime
            | Measure::SetupTime
            | Measure::RoundTripServer
            | Measure::RoundTripClient
            | Measure::WindowClient
            | Measure::WindowServer
    )
}

const fn unit(measure: Measure) -> &'static str {
    match measure {
        Measure::WindowClient | Measure::WindowServer => "BYTES",
        _ if is_value(measure) => "SECONDS",
        _ if measure.is_load() => "PER_SECOND",
        _ => "SHARE",
    }
}

/// Median and the 95 % that are not above.
fn quantiles(mut values: Vec<(usize, f64)>, scale: f64) -> (f64, Option<f64>) {
    values.sort_by(|a, b| a.1.total_cmp(&b.1));
    let at = |share: f64| {
        let rank = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len().max(1));
        values.get(rank - 1).map_or(0.0, |(_, value)| value / scale)
    };
    (at(0.5), Some(at(0.95)))
}

/// Large enough to be told, however sure it is.
fn matters(measure: Measure, d: &v1::Difference) -> bool {
    is_moved(d) && (!is_value(measure) || d.effect.unwrap_or(0.0).abs() >= LEAST_DELTA)
}

/// Its middle, or what 95 % are not above, is a tenth away or more.
fn is_moved(d: &v1::Difference) -> bool {
    let (a, b) = sides(d);
    let changes = |a: f64, b: f64| a != b && (b - a).abs() >= LEAST_CHANGE * a.min(b);
    changes(a.value, b.value) || a.p95.zip(b.p95).is_some_and(|(a, b)| changes(a, b))
}

fn sides(d: &v1::Difference) -> (v1::Measured, v1::Measured) {
    (d.first.unwrap_or_default(), d.second.unwrap_or_default())
}

/// Size against what is called large.
fn size(d: &v1::Difference) -> f64 {
    let large = match d.effect_kind.as_str() {
        "CLIFFS_DELTA" => LARGE[0],
        "COHENS_H" => LARGE[1],
        _ => LARGE[2],
    };
    d.effect.map_or(0.0, |effect| effect.abs() / large)
}

/// A quantity as people write it.
fn figure(value: f64, unit: &str) -> String {
    match unit {
        "SECONDS" => seconds(value),
        "BYTES" => bytes(value as u64),
        "SHARE" => format!("{:.3} %", 100.0 * value),
        _ => format!("{value:.2}/s"),
    }
}

/// What is compared, in words.
pub fn name(d: &v1::Difference) -> String {
    format!("{} of {}", d.measure.replace('_', " ").to_lowercase(), d.of)
}

/// The difference in a sentence.
pub fn sentence(d: &v1::Difference) -> String {
    let (a, b) = sides(d);
    let [x, y] = [a, b].map(|side| {
        let middle = figure(side.value, &d.unit);
        match side.p95 {
            Some(p95) => format!("{middle} (95 %: {})", figure(p95, &d.unit)),
            None => middle,
        }
    });
    let ratio = b.value / a.value;
    // Of less there are no two digits.
    let times = match ratio.is_finite() && ratio >= 0.01 {
        true => format!(", {ratio:.2} times"),
        false => String::new(),
    };
    let mut out = name(d);
    if let Some(first) = out.get(..1).map(str::to_uppercase) {
        out.replace_range(..1, &first);
    }
    format!("{out}: {x} → {y}{times}")
}

/// Whether chance explains it, in a word or two.
pub fn mark(d: &v1::Difference) -> &'static str {
    match (d.significant, d.p) {
        (true, _) => "significant",
        (false, Some(_)) => "",
        (false, None) => "too few to tell from chance",
    }
}

/// What a table of differences is headed by; the first column is text, as is the last.
pub const COLUMNS: [&str; 11] = [
    "what",
    "first: count",
    "median or rate",
    "95 %",
    "second: count",
    "median or rate",
    "95 %",
    "costs",
    "effect",
    "p",
    "chance",
];

/// Its row, without the first column.
pub fn cells(d: &v1::Difference) -> [String; COLUMNS.len() - 1] {
    let (a, b) = sides(d);
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| figure(value, &d.unit));
    let cost = d.cost_seconds.map_or_else(String::new, |cost| match cost {
        _ if cost.abs() < LEAST_COST => "0".to_owned(),
        ..0.0 => format!("−{}", seconds(-cost)),
        _ => format!("+{}", seconds(cost)),
    });
    // Numbers a second and shares of the time are counted over time.
    let over_time = d.unit == "PER_SECOND" || d.measure.contains("_LIMITED_BY_");
    let trials = |side: v1::Measured| match over_time {
        true => seconds(side.count),
        false => count(side.count.round() as u64),
    };
    [
        trials(a),
        figure(a.value, &d.unit),
        optional(a.p95),
        trials(b),
        figure(b.value, &d.unit),
        optional(b.p95),
        cost,
        d.effect
            .map_or_else(|| "–".to_owned(), |effect| format!("{effect:+.2}")),
        chance(d.p_corrected),
        mark(d).to_owned(),
    ]
}

/// The differences to show: times, and the others. All that are significant are among them.
pub fn shown(comparison: &v1::Comparison) -> [Vec<&v1::Difference>; 2] {
    [true, false].map(|is_time| {
        let all = comparison.differences.iter();
        let of_kind = all.filter(|d| d.cost_seconds.is_some() == is_time).enumerate();
        let shown = of_kind.filter(|(at, d)| *at < ROWS || d.significant);
        shown.map(|(_, d)| d).collect()
    })
}

/// How many differ, in a sentence.
pub fn verdict(comparison: &v1::Comparison) -> String {
    let (all, tested) = (comparison.differences.len(), comparison.tests as usize);
    if all == 0 {
        return "Nothing was compared: nothing is measured in both (services are told apart by their port, and the two have none in \
                common)"
            .to_owned();
    }
    let significant = comparison.differences.iter().filter(|d| d.significant).count();
    let mut out = match significant {
        0 => "No significant difference".to_owned(),
        _ => format!("{significant} of {all} quantities differ significantly"),
    };
    out.push_str(" (p below 1 % after correction, and enough to matter)");
    if tested < all {
        out.push_str(&format!(
            "; {} of {all} have too few values to tell from chance",
            all - tested
        ));
    }
    out
}

/// The comparison in sections of a report.
pub fn sections(comparison: &v1::Comparison) -> Vec<Section> {
    let [times, others] = shown(comparison);
    let mut answer = Text::default();
    let told = format!("{}.", verdict(comparison));
    // What chance may explain is no answer; the largest of what is too little to test is told as that.
    if let Some(first) = times.iter().chain(&others).find(|d| d.significant) {
        answer = answer.strong(format!("{}.", sentence(first))).plain(format!(" {told}"));
    } else {
        answer = answer.plain(told);
        if let Some(most) = times.first().filter(|d| d.p.is_none() && is_moved(d)) {
            answer = answer.plain(format!(" Of these most: {}.", sentence(most)));
        }
    }
    let [first, second] = names(comparison);
    let mut blocks = vec![
        Block::Paragraph(
            Text::default()
                .plain("First: ")
                .code(first)
                .plain("; second: ")
                .code(second)
                .plain("."),
        ),
        Block::Paragraph(answer),
    ];
    let list = |findings: &[v1::Finding], which: &str| -> Option<Block> {
        (!findings.is_empty()).then(|| {
            let text = findings.iter().map(|f| {
                Text::default()
                    .plain(format!("Only in the {which}: "))
                    .strong(&f.title)
                    .plain(format!(" ({}) ", f.severity.to_lowercase()))
                    .code(&f.kind)
            });
            Block::List(text.collect())
        })
    };
    blocks.extend(list(&comparison.only_second, "second"));
    blocks.extend(list(&comparison.only_first, "first"));
    if !comparison.in_both.is_empty() {
        blocks.push(Block::Paragraph(
            format!("Findings in both: {}.", comparison.in_both.join(", ")).into(),
        ));
    }
    for (id, caption, differences) in [("tab-times", TIMES, times), ("tab-others", OTHERS, others)] {
        if !differences.is_empty() {
            blocks.push(Block::Table(table(id, caption, &differences)));
        }
    }
    blocks.push(Block::Paragraph(METHOD.into()));
    vec![Section {
        id: "comparison",
        title: "Comparison".into(),
        blocks,
    }]
}

/// What the two tables are of.
pub const TIMES: &str = "Times, significant ones first, by what they cost each transaction of the second.";
/// See [`TIMES`].
pub const OTHERS: &str = "Other quantities, significant ones first, then the largest difference.";

const METHOD: &str = "Times, round trips and windows: Mann and Whitney's test; effect: Cliff's delta (0: alike, ±1: all of one above all of \
                      the other). Shares: difference of proportions; effect: Cohen's h. Numbers a second: effect: ln of the ratio. \
                      Variances come from leaving out one of 20 slices of time after the other, as what happens a moment apart is not \
                      independent; p is corrected for all tests (Holm). Significant: below 1 %, and large enough to matter (delta 0.147; \
                      a tenth more or less).";

/// A p-value as people write it.
fn chance(p: Option<f64>) -> String {
    match p {
        None => "–".to_owned(),
        Some(p) if p < 1e-6 => "< 0.000001".to_owned(),
        Some(p) => format!("{p:.6}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

fn table(id: &'static str, caption: &str, differences: &[&v1::Difference]) -> Table {
    let rows = differences.iter().map(|d| {
        let what = Text::from(d.measure.replace('_', " ").to_lowercase());
        let what = what.plain(" of ").code(&d.of);
        Row {
            id: None,
            cells: std::iter::once(what).chain(cells(d).map(Text::from)).collect(),
        }
    });
    let last = COLUMNS.len() - 1;
    let headers = COLUMNS.iter().enumerate();
    Table {
        id,
        caption: caption.into(),
        headers: headers.map(|(at, name)| (*name, at > 0 && at < last)).collect(),
        rows: rows.collect(),
    }
}

/// The two captures, as short as tells them apart.
fn names(comparison: &v1::Comparison) -> [String; 2] {
    let files = [&comparison.first, &comparison.second].map(Clone::clone);
    let short = file_names(&files);
    [short[0], short[1]].map(str::to_owned)
}

/// A comparison as a document of its own.
pub fn document(comparison: &v1::Comparison) -> Document {
    Document {
        title: format!("{} compared", names(comparison).join(" and ")),
        subtitle: format!("{} quantities tested", comparison.tests),
        sections: sections(comparison),
    }
}
