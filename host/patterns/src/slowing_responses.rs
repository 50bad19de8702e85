//! Response times that grow with load or over time.

use weir_analysis::{Group, clock, count, decimal, finding, lasting};
use weir_messages::v1::Finding;

use crate::bins::Bins;
use crate::names::about;
use crate::phases::{Phase, phases};
use crate::responses::{Row, Service, Slice};
use crate::services::{self, Services};
use crate::steps::{Steps, levels};
use crate::timeline::Timeline;

/// Responses of a slice of time that count, and slices that do.
const RESPONSES: u32 = 5;
const SLICES: usize = 12;
/// Slow against fast third of the slices, and by how much, s.
const RATIO: f64 = 2.5;
const SLOWER: f64 = 0.02;
/// Rank correlation (Spearman 1904) from which on response time follows load, or time. By chance it is above 0.7 once in
/// 180 times for 12 slices, and never for more than 30.
const FOLLOWS: f64 = 0.7;
/// Connections open at once, on average in the busiest third, from which on load can be the reason: below, requests do not meet, and more are open
/// because responses are slow.
const SHARED: f64 = 2.0;
/// Findings at most: the services with the longest waits.
const FINDINGS: usize = 8;

/// What a row does over time.
struct Slowing<'a> {
    row: &'a Row,
    /// Mean response times in the third with the least load (or the earliest), and with the most (or the latest), s.
    fast: f64,
    slow: f64,
    correlation: f64,
    with_load: bool,
    /// What the responses took more than in the fast third, s.
    cost: f64,
}

/// One finding for each service: about the request that it costs most.
pub(crate) fn findings(services: &[Service], requests: &[Row], timeline: &Timeline, out: &mut Vec<Finding>) {
    let mut found: Vec<Slowing<'_>> = Vec::new();
    for service in services {
        let load = load(&service.row, timeline.services());
        let own = requests.iter().filter(|row| row.is_of(&service.row));
        let rows = own.chain(std::iter::once(&service.row));
        found.extend(rows.filter_map(|row| slowing(row, &load)).reduce(|most, other| {
            // All requests together only where no single one shows it.
            let is_more = other.cost > most.cost && !other.row.request.is_empty();
            if is_more { other } else { most }
        }));
    }
    found.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    let phases = phases(timeline.services());
    out.extend(found.iter().take(FINDINGS).map(|slowing| told(slowing, &phases)));
}

/// Connections of the service and of those in front of it and behind it: others tell nothing of it.
fn load(row: &Row, services: &Services) -> Bins<Steps> {
    let Some(own) = services.iter().find(|service| service.key == (row.server, row.port)) else {
        return Bins::new(row.course.width());
    };
    let front = services.iter().filter(|front| own.is_behind(&front.key.0));
    let connections = |service: &services::Service| service.load.map(|load| load.connections);
    let mut sum = connections(own);
    for other in front.chain(services.behind(own)).filter(|other| other.key != own.key) {
        sum.merge(&connections(other));
    }
    sum
}

/// Whether the response times of a row follow the load, or else time.
fn slowing<'a>(row: &'a Row, load: &Bins<Steps>) -> Option<Slowing<'a>> {
    let course = &row.course;
    let slices: Vec<(u64, Slice)> = times(course).filter(|(_, slice)| slice.count >= RESPONSES).collect();
    if slices.len() < SLICES {
        return None;
    }
    let load = load.coarser(course.width());
    let open: Vec<f64> = levels(&load, |steps| *steps).map(|level| level.mean).collect();
    let at = |time: u64| {
        let number = time.saturating_sub(load.start()) / load.width();
        open.get(number as usize).copied().unwrap_or(0.0)
    };
    let loads: Vec<f64> = slices.iter().map(|(time, _)| at(*time + course.width() / 2)).collect();
    let order: Vec<f64> = (0..slices.len()).map(|i| i as f64).collect();
    let means: Vec<f64> = slices
        .iter()
        .map(|(_, slice)| slice.sum / f64::from(slice.count))
        .collect();
    [(loads, true), (order, false)].into_iter().find_map(|(by, with_load)| {
        let correlation = correlation(&ranks(&by), &ranks(&means));
        let mut sorted: Vec<usize> = (0..by.len()).collect();
        sorted.sort_by(|a, b| by[*a].total_cmp(&by[*b]));
        let third = sorted.len() / 3;
        let mean = |part: &[usize]| {
            let (sum, count) = part.iter().fold((0.0, 0u64), |(sum, count), i| {
                (sum + slices[*i].1.sum, count + u64::from(slices[*i].1.count))
            });
            sum / count as f64
        };
        let (fast, slow) = (mean(&sorted[..third]), mean(&sorted[sorted.len() - third..]));
        let cost = slices
            .iter()
            .map(|(_, slice)| (slice.sum - fast * f64::from(slice.count)).max(0.0))
            .sum();
        let busy = &sorted[sorted.len() - third..];
        if with_load && busy.iter().map(|i| by[*i]).sum::<f64>() < SHARED * busy.len() as f64 {
            return None;
        }
        let is_slowing = correlation >= FOLLOWS && slow >= RATIO * fast && slow - fast >= SLOWER;
        is_slowing.then_some(Slowing {
            row,
            fast,
            slow,
            correlation,
            with_load,
            cost,
        })
    })
}

/// The slices of a course with their begin, TAI ns.
fn times(course: &Bins<Slice>) -> impl Iterator<Item = (u64, Slice)> {
    let (start, width) = (course.start(), course.width());
    course
        .iter()
        .enumerate()
        .map(move |(i, slice)| (start + i as u64 * width, *slice))
}

/// Ranks; equal values share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let first = order.iter().position(|i| *i == equal[0]).unwrap_or(0);
        for i in equal {
            ranks[*i] = first as f64 + (equal.len() - 1) as f64 / 2.0;
        }
    }
    ranks
}

/// Pearson's, of ranks: Spearman's; 0 when one does not vary.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        ab += (x - mean_a) * (y - mean_b);
        aa += (x - mean_a).powi(2);
        bb += (y - mean_b).powi(2);
    }
    if aa * bb > 0.0 { ab / (aa * bb).sqrt() } else { 0.0 }
}

fn told(slowing: &Slowing<'_>, parts: &[Phase]) -> Finding {
    let row = slowing.row;
    let request = if row.request.is_empty() {
        "all requests".to_owned()
    } else {
        format!("request {}", row.request)
    };
    let (follows, few, many) = if slowing.with_load {
        (
            "load (connections open at once of it and of those in front of it or behind it)",
            "with the least load",
            "with the most",
        )
    } else {
        ("time", "at first", "at last")
    };
    let ratio = slowing.slow / slowing.fast;
    let mut evidence = vec![
        format!(
            "{request}: {} on average in the third of the time {few}, {} in the third {many}: {ratio:.1} times as long",
            lasting(slowing.fast),
            lasting(slowing.slow)
        ),
        format!(
            "rank correlation of response time and {follows}: {:.2}",
            slowing.correlation
        ),
    ];
    let parts: Vec<String> = parts
        .iter()
        .map(|part| {
            let mut sum = Slice::default();
            times(&row.course)
                .filter(|(time, _)| (part.start..part.end).contains(&(time + row.course.width() / 2)))
                .for_each(|(_, slice)| sum += slice);
            format!(
                "{} of {} from {} on, {} connections open",
                count(sum.count.into()),
                lasting(sum.sum / f64::from(sum.count.max(1))),
                clock(part.start),
                decimal(part.connections, 0)
            )
        })
        .collect();
    if !parts.is_empty() {
        evidence.push(format!(
            "responses and their mean by phase of load: {}",
            parts.join("; ")
        ));
    }
    evidence.push(format!(
        "it costs {} s in all against the fast third",
        decimal(slowing.cost, 1)
    ));
    evidence.push("it may also be: more connections are open because responses are slow, not the other way round; or requests of this size ask for more each time".to_owned());
    evidence.push("next: look for a limit of this service that requests queue at (threads, processors, locks), and for what grows while it runs".to_owned());
    let who = row.service();
    let finding = finding(
        "SLOWING_RESPONSES",
        "WARNING",
        0.9,
        format!(
            "Responses of {who} get {ratio:.1} times slower {}",
            if slowing.with_load { "with load" } else { "over time" }
        ),
        evidence,
        &Group::range(row.span.0, row.span.1),
        &[
            ("ratio", ratio),
            ("fastSeconds", slowing.fast),
            ("slowSeconds", slowing.slow),
            ("correlation", slowing.correlation),
            ("costSeconds", slowing.cost),
        ],
    );
    about(who, finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Route;
    use weir_analysis::{Ends, Opened};
    use weir_record::FlowId;

    #[test]
    fn load_is_that_of_the_tiers_a_service_belongs_to() {
        const MS: u64 = 1_000_000;
        let mut services = Services::default();
        // Client, server, connections: a front, its service behind, what that asks, and another service.
        for (client, server, count) in [(1, 2, 3), (2, 3, 40), (3, 4, 500), (7, 8, 6_000)] {
            for i in 0..count {
                let ends = Ends {
                    client: [client; 16],
                    server: [server; 16],
                    client_port: i,
                    server_port: 80,
                };
                let opened = Opened {
                    id: FlowId(i.into()),
                    time: 1_000 * MS,
                    ends,
                    is_syn: true,
                };
                services.opened(&opened, &mut Route::new(&ends, 0), 0);
            }
        }
        for (server, expected) in [(2, 43), (3, 543), (4, 540), (8, 6_000), (9, 0)] {
            let load = load(&Row::new([server; 16], 80, ""), &services);
            let open = levels(&load, |steps| *steps).last();
            assert_eq!(open.map_or(0, |level| level.last), expected, "{server}");
        }
    }

    /// One response in twenty takes 0.4 s, whoever else is there.
    #[test]
    fn connections_that_are_open_because_responses_are_slow_are_no_load() {
        let mut row = Row::new([1; 16], 80, "");
        let mut load: Bins<Steps> = Bins::new(row.course.width());
        let mut random = crate::random::Random::new(1);
        let start = row.course.width() * 1_000;
        for n in 0..3_000u64 {
            let at = start + n * 25_000_000;
            let seconds = if random.below(20) == 0 { 0.4 } else { 0.005 };
            *row.course.at(at) += Slice { count: 1, sum: seconds };
            let until = at + (seconds * 1e9) as u64;
            load.at(at).begin(at);
            load.at(until).end(until);
        }
        assert!(slowing(&row, &load).is_none());
    }

    #[test]
    fn ranks_share_what_is_equal_and_order_is_all_that_counts() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        let up: Vec<f64> = (0..20).map(f64::from).collect();
        let steep: Vec<f64> = up.iter().map(|x| x.exp()).collect();
        let down: Vec<f64> = up.iter().map(|x| -x).collect();
        assert!((correlation(&ranks(&up), &ranks(&steep)) - 1.0).abs() < 1e-9);
        assert!((correlation(&ranks(&up), &ranks(&down)) + 1.0).abs() < 1e-9);
        assert_eq!(correlation(&ranks(&up), &ranks(&[1.0; 20])), 0.0);
    }
}
