//! Response times that cluster at fixed values beside a bulk: a timer somewhere.

use weir_analysis::{Group, count, decimal, finding};
use weir_messages::v1::Finding;

use crate::delayed_ack;
use crate::durations::Peak;
use crate::names::about;
use crate::responses::{Row, Service};

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
/// Bands that are told, the largest; findings at most.
const BANDS: usize = 6;
const FINDINGS: usize = 8;

/// One finding for each service: about the request that shows it most, or all together.
pub(crate) fn findings(services: &[Service], requests: &[Row], out: &mut Vec<Finding>) {
    let mut found = Vec::new();
    for service in services {
        let acks = waits_for_acks(service);
        let bands = |row: &Row, least: f64| {
            let mut bands = bands(row, least);
            bands.retain(|band| !acks.as_ref().is_some_and(|acks| acks.contains(&band.seconds)));
            bands
        };
        let own = requests.iter().filter(|row| row.is_of(&service.row));
        let longest = ROUND_TRIPS * service.trips.quantile(0.9).unwrap_or(0.0);
        let most = own
            .map(|row| (row, bands(row, longest)))
            .max_by_key(|(_, bands)| bands.iter().map(|band| band.count).sum::<u64>())
            .filter(|(_, bands)| !bands.is_empty());
        let (row, bands) = most.unwrap_or_else(|| (&service.row, bands(&service.row, longest)));
        if !bands.is_empty() {
            found.push((row, bands));
        }
    }
    found.sort_by_key(|(_, bands)| std::cmp::Reverse(bands.iter().map(|band| band.count).sum::<u64>()));
    out.extend(found.into_iter().take(FINDINGS).map(|(row, bands)| told(row, &bands)));
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
    let inside: u64 = bands.iter().map(|band| band.count).sum();
    if inside as f64 > MOST * row.times.count() as f64 {
        return Vec::new();
    }
    bands.sort_by_key(|band| std::cmp::Reverse(band.count));
    bands.truncate(BANDS);
    bands.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    bands
}

/// Responses that came while that was what they took.
fn usual(row: &Row, seconds: f64) -> u64 {
    let slices = row.course.iter().filter(|slice| slice.count >= RESPONSES);
    let like = slices.filter(|slice| (slice.sum / f64::from(slice.count) / seconds - 1.0).abs() <= LIKE);
    like.map(|slice| u64::from(slice.count)).sum()
}

fn told(row: &Row, bands: &[Peak]) -> Finding {
    let inside: u64 = bands.iter().map(|band| band.count).sum();
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
    evidence.push("it may also be: another kind of request of the same size; or, if segments are lost before the tap, a retransmission timer".to_owned());
    evidence.push("next: fixed times are timers: look for polling, retries and time limits of the server and of what it asks (locks, name service, sessions)".to_owned());
    let who = row.service();
    let list: Vec<String> = bands.iter().map(|band| decimal(band.seconds * 1e3, 0)).collect();
    let mut finding = finding(
        "RESPONSE_BANDS",
        "WARNING",
        0.9,
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
    use crate::responses::Slice;

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
                row.times.add(ns);
                *row.course.at(i * 100_000_000) += Slice {
                    count: 1,
                    sum: ns as f64 / 1e9,
                };
            }
            assert_eq!(bands(&row, 0.0).len(), expected, "a line: {is_line}");
        }
    }
}
