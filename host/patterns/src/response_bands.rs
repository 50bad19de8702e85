//! Response times that cluster at fixed values beside a bulk: a timer somewhere.

use std::cell::LazyCell;
use std::ops::Range;

use weir_analysis::{Group, count, decimal, finding};
use weir_messages::v1::Finding;

use crate::bins::Bins;
use crate::delayed_ack;
use crate::durations::Peak;
use crate::names::{Address, about};
use crate::responses::{Row, Service, Slice, Wait, Waits};
use crate::sleep::ApplicationSleep;

/// Responses in a band, and their share of all.
const LEAST: u64 = 15;
const SHARE: f64 = 0.003;
/// A band lies above this, s: below are the delayed ACKs of 40 ms and the probes of a tail's loss.
const SHORTEST: f64 = 0.1;
/// It lies above the median by this factor: queues make multiples of an ordinary time.
const ABOVE_MEDIAN: f64 = 3.0;
/// And above the longest tenth of the round trips: flights of a transfer make multiples of these.
const ROUND_TRIPS: f64 = 5.0;
/// Share of the responses in bands: if most are there, that is how long they take.
const MOST: f64 = 0.5;
/// So for a while, too: slices of time with so many responses, whose mean is within this share of the band. A line that
/// is always as long makes all wait as long; a timer stops a few.
const RESPONSES: u32 = 5;
const LIKE: f64 = 0.1;
/// Slices are so wide that they have so many responses on average.
const USUALLY: u64 = 10;
/// Bands that are told, the largest; findings at most.
const BANDS: usize = 6;
const FINDINGS: usize = 8;

/// Share of a band's responses that something else explains, from which on it is the likelier reason.
const EXPLAINED: f64 = 0.5;
/// A stop is such a share of the response's time, and a call whose packets were lost such a one: what is left is less
/// than the median.
const STOPPED: f64 = 0.5;
const CALL: f64 = 1.0 / 3.0;
/// Share of a response's time that a call takes which is all that it waits for.
const ALL: f64 = 0.8;
/// A retransmission timer of about a band's time, and the share of the repeats that wait for it where there is one.
const TIMER: f64 = 0.2;
const BY_TIMER: f64 = 0.1;
/// Responses within this share of the middle of a band are in it.
const INSIDE: f64 = 0.025;
/// Confidence, and where a retransmission timer explains the bands as well.
const SURE: f64 = 0.9;
const UNSURE: f64 = 0.6;

/// One finding for each service: about the request that shows it most, or all together.
pub(crate) fn findings(
    services: &[Service],
    requests: &[Row],
    waits: &Waits,
    sleep: &ApplicationSleep,
    out: &mut Vec<Finding>,
) {
    let delayed = delayed(waits, services);
    // Seldom needed.
    let ordinary = LazyCell::new(|| ordinary(waits, services, requests));
    let mut found = Vec::new();
    for (number, service) in services.iter().enumerate() {
        let acks = waits_for_acks(service);
        let longest = ROUND_TRIPS * service.trips.quantile(0.9).unwrap_or(0.0);
        let bands = |row: &Row| {
            let mut bands = bands(row, longest);
            bands.retain(|band| !acks.as_ref().is_some_and(|acks| acks.contains(&band.seconds)));
            bands
        };
        let rows = requests.iter().enumerate().filter(|(_, row)| row.is_of(&service.row));
        let most = rows
            .map(|(request, row)| (Some(request), row, bands(row)))
            .max_by_key(|(.., bands)| inside(bands))
            .filter(|(.., bands)| !bands.is_empty());
        let (request, row, mut bands) = most.unwrap_or_else(|| (None, &service.row, bands(&service.row)));
        if bands.is_empty() {
            continue;
        }
        let of_row = |wait: &&Wait| {
            !wait.is_lossy
                && wait.service == Some(number as u16)
                && request.is_none_or(|request| wait.request == Some(request as u16))
        };
        let causes = Causes {
            own: waits.iter().filter(of_row).collect(),
            delayed: &delayed,
            ordinary: &ordinary,
            service,
            row,
            stops: sleep.stops(service.row.server),
        };
        bands.retain(|band| !causes.is_stop(band) && !causes.is_line(band));
        let timers: Vec<Peak> = bands.extract_if(.., |band| causes.is_timer(band)).collect();
        match bands.is_empty() {
            false => found.push((row, bands, SURE)),
            true if !timers.is_empty() => found.push((row, timers, UNSURE)),
            true => {}
        }
    }
    found.sort_by_key(|(_, bands, _)| std::cmp::Reverse(inside(bands)));
    let told = |(row, bands, confidence): (&Row, Vec<Peak>, f64)| told(row, &bands, confidence);
    out.extend(found.into_iter().take(FINDINGS).map(told));
}

/// Responses in bands.
fn inside(bands: &[Peak]) -> u64 {
    bands.iter().map(|band| band.count).sum()
}

/// Waits in which something was lost, and those that waited for such a one of a tier behind; by client and beginning.
fn delayed<'a>(waits: &'a Waits, services: &[Service]) -> Vec<&'a Wait> {
    let (mut delayed, mut rest): (Vec<&Wait>, Vec<&Wait>) = waits.iter().partition(|wait| wait.is_lossy);
    loop {
        delayed.sort_unstable_by_key(|wait| (wait.client, wait.from));
        let waits_for = |wait: &&Wait| {
            let service = wait.service.and_then(|number| services.get(usize::from(number)));
            service.is_some_and(|service| has_call(&delayed, wait, service.row.server, CALL))
        };
        let (more, others): (Vec<&Wait>, Vec<&Wait>) = rest.into_iter().partition(waits_for);
        if more.is_empty() {
            return delayed;
        }
        delayed.extend(more);
        rest = others;
    }
}

/// Waits as long as others of their request at that time, by client and beginning.
fn ordinary<'a>(waits: &'a Waits, services: &[Service], requests: &[Row]) -> Vec<&'a Wait> {
    let of_services: Vec<Bins<Slice>> = services.iter().map(|service| course(&service.row)).collect();
    let of_requests: Vec<Bins<Slice>> = requests.iter().map(course).collect();
    let is_ordinary = |wait: &&Wait| {
        let course = match (wait.request, wait.service) {
            (Some(request), _) => of_requests.get(usize::from(request)),
            (None, Some(service)) => of_services.get(usize::from(service)),
            (None, None) => None,
        };
        course.is_some_and(|course| {
            let number = wait.from.saturating_sub(course.start()) / course.width();
            let slice = course.iter().nth(number as usize);
            slice.is_some_and(|slice| slice.is_like((wait.to - wait.from) as f64 / 1e9))
        })
    };
    let mut ordinary: Vec<&Wait> = waits.iter().filter(is_ordinary).collect();
    ordinary.sort_unstable_by_key(|wait| (wait.client, wait.from));
    ordinary
}

/// Whether one of the calls (by client and beginning) is of this host, within a wait and such a share of it.
fn has_call(calls: &[&Wait], wait: &Wait, host: Address, share: f64) -> bool {
    let first = calls.partition_point(|call| (call.client, call.from) < (host, wait.from));
    let inside = calls[first..]
        .iter()
        .take_while(|call| call.client == host && call.from < wait.to);
    let is_long = |call: &&&Wait| (call.to - call.from) as f64 >= share * (wait.to - wait.from) as f64;
    inside.filter(is_long).any(|call| call.to <= wait.to)
}

/// What may make responses long beside a timer of the service.
struct Causes<'a> {
    /// The row's own responses in which nothing was lost.
    own: Vec<&'a Wait>,
    /// Calls that something lost delayed, and those that took as long as others.
    delayed: &'a [&'a Wait],
    ordinary: &'a [&'a Wait],
    service: &'a Service,
    row: &'a Row,
    /// Times in which the host, or one that it asks, stood still.
    stops: Vec<Range<u64>>,
}

impl Causes<'_> {
    /// Enough of a band's responses are such.
    fn explains(&self, band: &Peak, is: impl Fn(&Wait) -> bool) -> bool {
        let near = band.seconds * 1e9 * (1.0 - INSIDE)..=band.seconds * 1e9 * (1.0 + INSIDE);
        let (mut all, mut explained) = (0, 0);
        for wait in &self.own {
            if near.contains(&((wait.to - wait.from) as f64)) {
                all += 1;
                explained += u32::from(is(wait));
            }
        }
        all > 0 && f64::from(explained) >= EXPLAINED * f64::from(all)
    }

    /// They waited for an application that stood still.
    fn is_stop(&self, band: &Peak) -> bool {
        self.explains(band, |wait| {
            let least = STOPPED * (wait.to - wait.from) as f64;
            let shared = |stop: &Range<u64>| wait.to.min(stop.end).saturating_sub(wait.from.max(stop.start)) as f64;
            self.stops.iter().any(|stop| shared(stop) >= least)
        })
    }

    /// They take as long as a call of theirs, and that as long as any at that time: a line behind is as long.
    fn is_line(&self, band: &Peak) -> bool {
        let host = self.service.row.server;
        self.explains(band, |wait| has_call(self.ordinary, wait, host, ALL))
    }

    /// A call that something lost delayed fits into them, or as many last segments may have been lost.
    fn is_timer(&self, band: &Peak) -> bool {
        let host = self.service.row.server;
        self.explains(band, |wait| has_call(self.delayed, wait, host, CALL))
            || self.hidden(band) >= EXPLAINED * band.count as f64
    }

    /// Responses in a band whose last segment was lost before the tap, which leaves no gap: as many as the loss rate of
    /// the other segments makes, if these came again after such a time.
    fn hidden(&self, band: &Peak) -> f64 {
        let timer = band.seconds - self.row.times.quantile(0.5).unwrap_or(0.0);
        let repeats = &self.service.repeats;
        let near = repeats.between(timer * (1.0 - TIMER), timer * (1.0 + TIMER)) as f64;
        if near < BY_TIMER * repeats.count() as f64 {
            return 0.0;
        }
        self.service.loss_before() * self.row.times.count() as f64
    }
}

/// Response times of those that waited for a delayed ACK and a round trip, if there are such; not each is known as one.
fn waits_for_acks(service: &Service) -> Option<std::ops::RangeInclusive<f64>> {
    let delay = delayed_ack::delay(service)?;
    let trip = service.trips.quantile(0.9).unwrap_or(0.0);
    Some(delay * 0.95..=delay * 1.05 + 2.0 * trip)
}

/// The bands of a row above `least` (s), in the order of time.
fn bands(row: &Row, least: f64) -> Vec<Peak> {
    let Some(median) = row.times.quantile(0.5) else {
        return Vec::new();
    };
    let mut bands = row.times.peaks(LEAST.max((SHARE * row.times.count() as f64) as u64));
    let least = least.max(SHORTEST).max(ABOVE_MEDIAN * median);
    bands.retain(|band| band.seconds >= least && (usual(row, band.seconds) as f64) < MOST * band.count as f64);
    if inside(&bands) as f64 > MOST * row.times.count() as f64 {
        return Vec::new();
    }
    bands.sort_by_key(|band| std::cmp::Reverse(band.count));
    bands.truncate(BANDS);
    bands.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    bands
}

/// Responses that came while that was what they took.
fn usual(row: &Row, seconds: f64) -> u64 {
    let course = course(row);
    let like = course.iter().filter(|slice| slice.is_like(seconds));
    like.map(|slice| u64::from(slice.count)).sum()
}

/// The course of a row in slices with enough responses.
fn course(row: &Row) -> Bins<Slice> {
    let width = row.course.width() * (USUALLY * row.course.len() as u64).div_ceil(row.answered.max(1));
    row.course.coarser(width)
}

impl Slice {
    /// Responses take about so many seconds, as far as that is known.
    fn is_like(&self, seconds: f64) -> bool {
        self.count >= RESPONSES && (self.sum / f64::from(self.count) / seconds - 1.0).abs() <= LIKE
    }
}

fn told(row: &Row, bands: &[Peak], confidence: f64) -> Finding {
    let inside = inside(bands);
    let median = row.times.quantile(0.5).unwrap_or(0.0);
    let cost: f64 = bands
        .iter()
        .map(|band| band.count as f64 * (band.seconds - median))
        .sum();
    let request = if row.request.is_empty() {
        "all requests".to_owned()
    } else {
        format!("request {}", row.request)
    };
    let mut evidence = vec![format!(
        "{request}: {} responses without losses, half of them within {:.1} ms; {} ({:.1} %) lie in bands",
        count(row.times.count()),
        median * 1e3,
        count(inside),
        inside as f64 / row.times.count() as f64 * 100.0
    )];
    evidence.extend(bands.iter().map(|band| {
        format!(
            "{} at {} ms (within 2 %), where {} would lie without the band",
            count(band.count),
            decimal(band.seconds * 1e3, 0),
            decimal(band.around, 1)
        )
    }));
    evidence.push(format!(
        "they cost {} s more than the median response",
        decimal(cost, 1)
    ));
    if confidence < SURE {
        evidence.push("as many may have waited for the retransmission of a last segment, or of a call in which something was lost: it may be a retransmission timer alone".to_owned());
    }
    evidence.push("it may also be: another kind of request of the same size; or, if segments are lost before the tap, a retransmission timer".to_owned());
    evidence.push("next: fixed times are timers: look for polling, retries and time limits of the server and of what it asks (locks, name service, sessions)".to_owned());
    let who = row.service();
    let list: Vec<String> = bands.iter().map(|band| decimal(band.seconds * 1e3, 0)).collect();
    let mut finding = finding(
        "RESPONSE_BANDS",
        "WARNING",
        confidence,
        format!("Response times of {who} cluster at {} ms", list.join(", ")),
        evidence,
        &Group::range(row.span.0, row.span.1),
        &[
            ("share", inside as f64 / row.times.count() as f64),
            ("costSeconds", cost),
        ],
    );
    let values: Vec<f64> = bands.iter().map(|band| band.seconds).collect();
    finding.values.insert("seconds".to_owned(), values.into());
    about(who, finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Address;

    fn answer(row: &mut Row, at: u64, ns: u64) {
        row.answered += 1;
        row.times.add(ns);
        *row.course.at(at) += Slice {
            count: 1,
            sum: ns as f64 / 1e9,
        };
    }

    /// 10 ms or so, ten times a second, and 900 ms a hundred times: one in ten all the time, or all of the last 10 s,
    /// when a line was as long.
    #[test]
    fn a_line_that_is_always_as_long_is_no_timer() {
        for (is_line, expected) in [(false, 1), (true, 0)] {
            let mut row = Row::new([1; 16], 80, "");
            for i in 0..1_000u64 {
                let is_long = if is_line { i >= 900 } else { i.is_multiple_of(10) };
                let ns = if is_long {
                    900_000_000
                } else {
                    5_000_000 + i * 7_919 % 10_000 * 1_000
                };
                answer(&mut row, i * 100_000_000, ns);
            }
            assert_eq!(bands(&row, 0.0).len(), expected, "a line: {is_line}");
        }
    }

    /// A request that comes every two seconds, of a service whose line is as long for the last quarter of the time.
    #[test]
    fn a_line_shows_in_a_request_that_comes_seldom() {
        for (is_line, expected) in [(false, 1), (true, 0)] {
            let mut row = Row::new([1; 16], 80, "blk[1xx]");
            for i in 0..120u64 {
                let is_long = if is_line { i >= 90 } else { i.is_multiple_of(4) };
                let ns = if is_long {
                    3_700_000_000 + i * 1_000_000 % 50_000_000
                } else {
                    300_000_000 + i * 7_919 % 1_000 * 1_000_000
                };
                answer(&mut row, i * 2_000_000_000, ns);
            }
            assert_eq!(bands(&row, 0.0).len(), expected, "a line: {is_line}");
        }
    }

    /// One request in fifty goes to a database, where the line takes 3.7 s; or it takes 3.7 s by itself.
    #[test]
    fn a_line_behind_is_no_timer_in_front() {
        const WEB: [u8; 16] = [1; 16];
        for (calls, expected) in [(true, 0), (false, 1)] {
            let mut services = [Service::new(WEB, 443), Service::new([2; 16], 5432)];
            let mut waits = Waits::default();
            let mut add = |service: usize, client: Address, from: u64, ns: u64| {
                answer(&mut services[service].row, from, ns);
                if ns >= 100_000_000 {
                    waits.push(Wait {
                        client,
                        service: Some(service as u16),
                        request: None,
                        from,
                        to: from + ns,
                        is_lossy: false,
                    });
                }
            };
            for i in 0..5_000u64 {
                let from = i * 20_000_000;
                if !i.is_multiple_of(50) {
                    add(0, [9; 16], from, 5_000_000 + i * 7_919 % 10_000 * 1_000);
                    continue;
                }
                add(0, [9; 16], from, 3_710_000_000);
                if calls {
                    add(1, WEB, from + 2_000_000, 3_700_000_000);
                }
            }
            let mut out = Vec::new();
            findings(&services, &[], &waits, &ApplicationSleep::default(), &mut out);
            assert_eq!(out.len(), expected, "{out:?}");
        }
    }

    /// In front 10 ms or so, and twenty times 3.8 s. Behind, a SYN came again after 3 s in each of these, or in others.
    #[test]
    fn a_band_of_responses_with_a_lost_syn_behind_is_not_sure() {
        const WEB: [u8; 16] = [1; 16];
        for (later, expected) in [(0, UNSURE), (4_000_000_000, SURE)] {
            let mut service = Service::new(WEB, 443);
            let mut waits = Waits::default();
            for i in 0..1_000u64 {
                let is_long = i.is_multiple_of(50);
                let ns = if is_long {
                    3_800_000_000
                } else {
                    5_000_000 + i * 7_919 % 10_000 * 1_000
                };
                service.row.times.add(ns);
                if is_long {
                    let from = i * 1_000_000_000;
                    let setup = from + later + 100_000_000;
                    let wait = |client: Address, service: Option<u16>, from: u64, ns: u64| Wait {
                        client,
                        service,
                        request: None,
                        from,
                        to: from + ns,
                        is_lossy: service.is_none(),
                    };
                    waits.push(wait(WEB, None, setup, 3_000_000_000));
                    waits.push(wait([9; 16], Some(0), from, ns));
                }
            }
            let mut out = Vec::new();
            findings(&[service], &[], &waits, &ApplicationSleep::default(), &mut out);
            let confidence: Vec<f64> = out.iter().map(|finding| finding.confidence).collect();
            assert_eq!(confidence, [expected], "{later} ns later");
        }
    }
}
