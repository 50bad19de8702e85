//! Data that waits for a delayed ACK: Nagle's algorithm (RFC 9293 3.7.4), a congestion window or a buffer on one side, delayed ACKs on the
//! other.

use weir_analysis::{Group, count, decimal, finding, seconds};
use weir_messages::v1::Finding;

use crate::names::about;
use crate::responses::{LATER, Row, Service};

/// Waits from which on there is a pattern, and the share of the responses that have some.
const LEAST: u64 = 20;
const SHARE: f64 = 0.01;
/// Fewer are one if they are so many and [`OFTEN`], all of one timer, and all came as soon as their senders can have heard: what comes by
/// chance comes later as well.
const FEW: u64 = 5;
/// Share of the waits that must be those of one timer: a queue makes ACKs late as well, but each by another time.
const TIMER: f64 = 0.5;
/// How far those are from it, as a share; and three quarters of the waits where a system looks at its timers each 4 or 10 ms only.
const NEAR: f64 = 0.04;
const COARSE_TIMER: f64 = 0.75;
const COARSE: f64 = 0.15;
/// Share of the like responses that wait, from which on what they have in common makes them wait.
const OFTEN: f64 = 0.2;
/// Data that comes right behind a late ACK by chance comes as often a little later. What is more waited for the ACK: it must
/// be so large a share, and so many standard deviations.
const WAITED: f64 = 0.5;
const SURE: f64 = 3.0;
/// Findings at most: the services that lose most.
const FINDINGS: usize = 8;

/// One finding for each service.
pub(crate) fn findings(services: &[Service], requests: &[Row], out: &mut Vec<Finding>) {
    let mut services: Vec<&Service> = services.iter().collect();
    services.sort_by_key(|service| std::cmp::Reverse(service.row.delayed_ns));
    let told = services.into_iter().filter_map(|service| told(service, requests));
    out.extend(told.take(FINDINGS));
}

/// The timer that data of the service waits for, s, if it does.
pub(crate) fn delay(service: &Service) -> Option<f64> {
    timer(service).map(|timer| timer.seconds)
}

/// A timer: the delay that it makes, and how many are as long.
struct Timer {
    seconds: f64,
    count: u64,
    /// How far they are from it at most, as a share.
    near: f64,
}

fn timer(service: &Service) -> Option<Timer> {
    let row = &service.row;
    let waits = service.ack_delays.count();
    let is_few = waits < LEAST;
    let least = if is_few { FEW } else { LEAST };
    let share = if is_few { OFTEN } else { SHARE };
    let is_chance = if is_few {
        service.later > 0 || service.sure < waits
    } else {
        is_chance(service)
    };
    if waits < least || (row.delayed as f64) < share * row.answered as f64 || is_chance {
        return None;
    }
    let delays = &service.ack_delays;
    let share = |count: u64| count as f64 / delays.count() as f64;
    let peak = delays.peaks(1).into_iter().max_by_key(|peak| peak.count);
    if let Some(peak) = peak.filter(|peak| share(peak.count) >= TIMER) {
        return Some(Timer {
            seconds: peak.seconds,
            count: peak.count,
            near: NEAR,
        });
    }
    // Whole segments go with each ACK, and where a queue is always full, all ACKs are about as late.
    let seconds = delays.quantile(0.5).filter(|_| is_small(service))?;
    let count = delays.between(seconds * (1.0 - COARSE), seconds * (1.0 + COARSE));
    let least = if is_few { 1.0 } else { COARSE_TIMER };
    (share(count) >= least).then_some(Timer {
        seconds,
        count,
        near: COARSE,
    })
}

/// Whether data comes right behind late ACKs about as often as at other times near them.
fn is_chance(service: &Service) -> bool {
    let (right, later) = (service.ack_delays.count() as f64, service.later as f64);
    // Both are counts, of which chance makes the second so many times as large.
    let times = (LATER - 1) as f64;
    let waited = right - later / times;
    waited < WAITED * right || waited < SURE * (right + later / (times * times)).sqrt()
}

/// Most of what waited was less than a segment.
const fn is_small(service: &Service) -> bool {
    service.small * 2 >= service.ack_delays.count()
}

/// Most of what waited were whole segments of senders that had sent something again: after a timeout there is room for one.
const fn is_lossy(service: &Service) -> bool {
    service.lossy * 2 >= service.ack_delays.count() && !is_small(service)
}

/// Whether most waits are of requests that wait often, and so many times: Nagle's algorithm holds back each message that is written so.
fn is_usual(service: &Row, requests: &[Row], least: u64) -> bool {
    let is_often = |row: &Row| row.delayed as f64 >= OFTEN * row.answered as f64;
    let own = requests.iter().filter(|row| row.is_of(service));
    let usual = own.filter(|row| is_often(row) && row.delayed >= least);
    2 * usual.map(|row| row.delayed).sum::<u64>() >= service.delayed
}

fn told(service: &Service, requests: &[Row]) -> Option<Finding> {
    let row = &service.row;
    let delays = &service.ack_delays;
    let timer = timer(service)?;
    let share = row.delayed as f64 / row.answered as f64;
    let who = row.service();
    // Whose data waits, and who delays.
    let is_request = service.by_client * 2 < delays.count();
    let (what, receiver, sender) = if is_request {
        ("requests", "the server", "the clients")
    } else {
        ("responses", "the clients", "the server")
    };
    let is_small = is_small(service);
    // Timeouts make whole segments wait, too, of any request, and are told with what was lost.
    if !is_small && share < OFTEN && !is_usual(row, requests, FEW) {
        return None;
    }
    let is_nagle = is_small && is_usual(row, requests, 0);
    let is_first = !is_small && service.first * 2 >= delays.count();
    let is_lossy = is_lossy(service);
    let at_least = if service.least * 2 >= delays.count() {
        "at least "
    } else {
        ""
    };
    let cost = seconds(row.delayed_ns);
    let mut evidence = vec![
        format!(
            "in {} of {} {what} ({:.1} %) data came right behind an ACK that {receiver} had delayed by {at_least}{:.0} ms ({} of {} such ACKs are within {:.0} % of it)",
            count(row.delayed),
            count(row.answered),
            share * 100.0,
            timer.seconds * 1e3,
            count(timer.count),
            count(delays.count()),
            timer.near * 100.0
        ),
        format!(
            "they waited {at_least}{} s in all, {:.3} s each",
            decimal(cost, 3),
            cost / delays.count() as f64
        ),
    ];
    if !at_least.is_empty() {
        evidence.push(format!(
            "no ACK of {receiver} shows how long the path takes, neither of a handshake nor one that came at once: what the quickest one took is taken off, and may be more"
        ));
    }
    let waited = format!(
        "{} of {} pieces that waited",
        count(service.small),
        count(delays.count())
    );
    evidence.push(if is_nagle {
        format!("{waited} were less than a segment: Nagle's algorithm of {sender} holds the rest of a message until what went before is acknowledged")
    } else if is_small {
        format!("{waited} were less than a segment, but few messages of their kinds wait: Nagle's algorithm of {sender} would hold back each that is written so. After a timeout the congestion window has room for one segment, and the rest waits as well")
    } else if is_first {
        format!(
            "what waited were whole segments, {} of {} times behind the first data of {sender} on the connection, so not Nagle's algorithm: the congestion window of {sender} begins with what is acknowledged so late (one segment is, every second one would be acknowledged at once)",
            count(service.first),
            count(delays.count())
        )
    } else if is_lossy {
        format!(
            "what waited were whole segments, {} of {} times on connections on which data of {sender} had come again, so not Nagle's algorithm: after a timeout the congestion window has room for one segment",
            count(service.lossy),
            count(delays.count())
        )
    } else {
        format!("what waited were whole segments, so not Nagle's algorithm: a window or a buffer of {sender} had room for one write only (the congestion window has for one segment after a timeout)")
    });
    evidence.push(format!(
        "it may also be: the application of {sender} waits itself for what each of its small writes brings back"
    ));
    let remedy = if is_nagle {
        format!("each message of {sender} in one write, or Nagle's algorithm off (TCP_NODELAY)")
    } else if is_first {
        format!("a larger initial congestion window of {sender} (RFC 6928), or connections that stay open")
    } else if is_small || is_lossy {
        format!("find what is lost of the data of {sender}")
    } else {
        format!("a larger send buffer of {sender}, or each message in one write")
    };
    evidence.push(format!(
        "next: {remedy}; shorter delays of the ACKs of {receiver} only hide it"
    ));
    let of = if is_request { "to" } else { "of" };
    let delayed = if is_request {
        "its delayed ACKs"
    } else {
        "delayed ACKs of its clients"
    };
    let mut title = format!(
        "{what} {of} {who} wait {at_least}{:.0} ms for {delayed}",
        timer.seconds * 1e3
    );
    title[..1].make_ascii_uppercase();
    let confidence = if delays.count() < LEAST { 0.8 } else { 0.9 };
    let finding = finding(
        "DELAYED_ACK",
        "WARNING",
        confidence,
        title,
        evidence,
        &Group::range(row.span.0, row.span.1),
        &[("seconds", timer.seconds), ("share", share), ("costSeconds", cost)],
    );
    Some(about(who, finding))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux with a clock of 250 Hz delays by 40, 44 or 48 ms. That is one timer where less than a segment waits; what differs more is none.
    #[test]
    fn a_timer_may_be_coarse() {
        let told = |delays: &[u64], small: u64| {
            let mut service = Service::new([1; 16], 80);
            (service.row.answered, service.row.delayed) = (30, 24);
            service.small = small;
            let delays = delays.iter().cycle().take(24);
            delays.for_each(|ms| service.ack_delays.add(ms * 1_000_000));
            delay(&service).map(|seconds| (seconds * 1e3).round())
        };
        assert_eq!(told(&[40], 0), Some(40.0));
        assert_eq!(told(&[40, 44, 48], 24), Some(44.0));
        assert_eq!(told(&[40, 44, 48], 0), None);
        assert_eq!(told(&[30, 40, 60, 90], 24), None);
    }

    /// The application writes again after 150 to 300 ms, the ACK is late by 200 ms: some come right behind it by chance.
    #[test]
    fn data_that_comes_behind_an_ack_by_chance_did_not_wait_for_it() {
        for (right, later, expected) in [
            (120, 360, None),
            (120, 36, Some(0.2)),
            (20, 0, Some(0.2)),
            (20, 30, None),
        ] {
            let mut service = Service::new([1; 16], 80);
            (service.row.answered, service.row.delayed) = (1_000, right);
            service.later = later;
            (0..right).for_each(|_| service.ack_delays.add(200_000_000));
            let told = delay(&service).map(|seconds| (seconds * 100.0).round() / 100.0);
            assert_eq!(told, expected, "{right} {later}");
        }
    }

    /// Five of six wait; one of six wrote again later; two waited by other times.
    #[test]
    fn a_few_waits_are_a_pattern_if_all_are_alike() {
        let told = |delays: &[u64], answered: u64, later: u64| {
            let mut service = Service::new([1; 16], 80);
            (service.row.answered, service.row.delayed) = (answered, delays.len() as u64);
            let count = delays.len() as u64;
            (service.small, service.sure, service.later) = (count, count, later);
            delays.iter().for_each(|ms| service.ack_delays.add(ms * 1_000_000));
            delay(&service).is_some()
        };
        assert!(told(&[200; 5], 6, 0));
        assert!(!told(&[200; 4], 6, 0));
        assert!(!told(&[200; 5], 6, 1));
        assert!(!told(&[200; 5], 26, 0));
        assert!(!told(&[200, 200, 200, 200, 150, 150], 6, 0));
    }

    /// Whole segments that wait in 30 of 1,000 responses, or of 100. A buffer makes each wait; a timeout leaves room for one segment to some.
    #[test]
    fn whole_segments_that_wait_seldom_are_not_told() {
        let text = |answered: u64, lossy: u64| {
            let mut service = Service::new([1; 16], 80);
            (service.row.answered, service.row.delayed, service.lossy) = (answered, 30, lossy);
            service.row.span = (0, 1);
            (0..30).for_each(|_| service.ack_delays.add(40_000_000));
            let finding = told(&service, std::slice::from_ref(&service.row));
            finding.map(|finding| finding.evidence.join(" "))
        };
        assert_eq!(text(1_000, 0), None);
        assert!(text(100, 10).is_some_and(|text| text.contains("buffer")));
        assert!(text(100, 20).is_some_and(|text| !text.contains("buffer") && text.contains("timeout")));
    }

    /// Of 1,000 responses each, so many waited.
    #[test]
    fn few_waits_of_their_kind_are_not_nagles() {
        let row = |request: &str, delayed: u64| {
            let mut row = Row::new([1; 16], 80, request);
            (row.answered, row.delayed) = (1_000, delayed);
            row
        };
        for (delayed, expected) in [([30, 20, 20], false), ([900, 20, 0], true), ([300, 0, 0], true)] {
            let requests = delayed.map(|delayed| row("blk[1xx]", delayed));
            let service = row("", delayed.iter().sum());
            assert_eq!(is_usual(&service, &requests, 0), expected, "{delayed:?}");
        }
    }
}
