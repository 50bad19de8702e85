//! Responses that dribble: one write after the other goes out as a segment of its own.

use weir_analysis::{Group, finding};
use weir_messages::v1::Finding;

use crate::names::{about, count};
use crate::responses::{Row, Service, TINY};

/// Tiny segments from which on they are worth a word, their share of the responses' segments, and the share of segments
/// that the same data would not need.
const LEAST: u64 = 50;
const SHARE: f64 = 0.1;
const EXTRA: f64 = 0.1;
/// Sizes and requests that the evidence names, and the share of the needless segments that a request has.
const NAMED: usize = 5;
const WORTH: f64 = 0.03;
/// Findings at most: the services with the most.
const FINDINGS: usize = 8;

/// One finding for each service.
pub(crate) fn findings(services: &[Service], requests: &[Row], out: &mut Vec<Finding>) {
    let is_dribbling = |service: &&Service| {
        let segments = service.row.segments;
        let share = |part: u64| part as f64 / segments.all.max(1) as f64;
        segments.tiny >= LEAST && share(segments.tiny) >= SHARE && share(segments.extra) >= EXTRA
    };
    let mut services: Vec<&Service> = services.iter().filter(is_dribbling).collect();
    services.sort_by_key(|service| std::cmp::Reverse(service.row.segments.extra));
    out.extend(
        services
            .into_iter()
            .take(FINDINGS)
            .map(|service| told(service, requests)),
    );
}

fn told(service: &Service, requests: &[Row]) -> Finding {
    let row = &service.row;
    let segments = row.segments;
    let mut sizes: Vec<(u32, usize)> = service
        .sizes
        .iter()
        .copied()
        .zip(0..)
        .filter(|(count, _)| *count > 0)
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let bytes = sizes.first().map_or(0, |(_, bytes)| *bytes);
    let share = segments.tiny as f64 / segments.all as f64;
    let named: Vec<String> = sizes
        .iter()
        .take(NAMED)
        .map(|(segments, bytes)| format!("{} of {bytes} bytes", count(u64::from(*segments))))
        .collect();
    let mut evidence = vec![
        format!(
            "{} of {} segments of its responses ({:.0} %) have fewer than {TINY} bytes and stand next to others of the same response: {}",
            count(segments.tiny),
            count(segments.all),
            share * 100.0,
            named.join(", ")
        ),
        format!(
            "the same data needs {} segments: {} ({:.0} %) and their ACKs could be saved",
            count(segments.all - segments.extra),
            count(segments.extra),
            segments.extra as f64 / segments.all as f64 * 100.0
        ),
    ];
    let mut requests: Vec<_> = requests
        .iter()
        .filter(|other| other.is_of(row) && other.segments.extra as f64 >= WORTH * segments.extra as f64)
        .collect();
    requests.sort_by_key(|other| std::cmp::Reverse(other.segments.extra));
    evidence.extend(requests.iter().take(NAMED).map(|other| {
        format!(
            "request {}: {} responses in {:.1} segments each where {:.1} would do",
            other.request,
            count(other.counted),
            other.segments.all as f64 / other.counted as f64,
            (other.segments.all - other.segments.extra) as f64 / other.counted as f64
        )
    }));
    evidence.push(
        "it may also be: an encryption layer that makes a record of each write, or a device in the path that splits segments"
            .to_owned(),
    );
    evidence.push(
        "next: look at the output buffering of the server (one write for each response, or cork it while it is made)"
            .to_owned(),
    );
    let who = row.service();
    let finding = finding(
        "TINY_SEGMENTS",
        "WARNING",
        0.95,
        format!("{who} sends its responses in tiny pieces, most often of {bytes} bytes"),
        evidence,
        &Group::range(row.span.0, row.span.1),
        &[
            ("bytes", bytes as f64),
            ("share", share),
            ("segments", segments.tiny as f64),
            ("extraSegments", segments.extra as f64),
        ],
    );
    about(who, finding)
}
