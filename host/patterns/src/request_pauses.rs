//! Clients that stop in the middle of their requests, each time as long: a timer.

use weir_analysis::{Group, count, decimal, finding};
use weir_messages::v1::Finding;

use crate::names::about;
use crate::responses::Service;

/// Pauses of one length from which on it is a timer, and their share of all long pauses.
const LEAST: u64 = 6;
const SHARE: f64 = 0.5;
/// Share of the requests that pause from which on it is worth a word.
const OFTEN: f64 = 0.01;
/// Findings at most: the services that lose most.
const FINDINGS: usize = 8;

/// One finding for each service.
pub(crate) fn findings(services: &[Service], out: &mut Vec<Finding>) {
    let mut all: Vec<(f64, Finding)> = services.iter().filter_map(told).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    out.extend(all.into_iter().take(FINDINGS).map(|(_, finding)| finding));
}

/// What it costs, s, and the finding.
fn told(service: &Service) -> Option<(f64, Finding)> {
    let row = &service.row;
    let pauses = service.pauses.as_ref()?;
    let peak = pauses.peaks(LEAST).into_iter().max_by_key(|peak| peak.count)?;
    let share = peak.count as f64 / row.answered as f64;
    if (peak.count as f64) < SHARE * pauses.count() as f64 || share < OFTEN {
        return None;
    }
    let cost = peak.count as f64 * peak.seconds;
    let who = row.service();
    // No finer than the buckets are.
    let length = decimal(peak.seconds, if peak.seconds < 1.0 { 2 } else { 1 });
    let evidence = vec![
        format!(
            "in {} of {} requests ({:.1} %) the client stops for {length} s between its first and its last byte, while all that it sent is acknowledged and nothing comes from the server: {} s in all ({} of {} such pauses are within 5 % of it)",
            count(peak.count),
            count(row.answered),
            share * 100.0,
            decimal(cost, 1),
            count(peak.count),
            count(pauses.count())
        ),
        "it may also be: work or a wait for another service that takes the client as long each time".to_owned(),
        "next: see what the client waits for: one that asks by 'Expect: 100-continue' and hears no '100 Continue' sends the rest after a timer of its own (curl 1 s, .NET 350 ms); let the server answer it, or the client not ask".to_owned(),
    ];
    let finding = finding(
        "REQUEST_PAUSES",
        "WARNING",
        0.8,
        format!("Clients of {who} stop for {length} s within their requests"),
        evidence,
        &Group::range(row.span.0, row.span.1),
        &[("seconds", peak.seconds), ("share", share), ("costSeconds", cost)],
    );
    Some((cost, about(who, finding)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ms of the pauses in a hundred requests.
    fn seconds(pauses: &[u64]) -> Option<f64> {
        let mut service = Service::new([1; 16], 80);
        service.row.answered = 100;
        let durations = service.pauses.get_or_insert_default();
        pauses.iter().for_each(|ms| durations.add(ms * 1_000_000));
        told(&service).map(|(cost, _)| cost)
    }

    #[test]
    fn pauses_of_one_length_are_a_timer() {
        let cost = seconds(&[1000, 1001, 1000, 1002, 1001, 1000]).expect("a timer");
        assert!((cost / 6.0 - 1.0).abs() < 0.02, "{cost}");
        assert_eq!(seconds(&[1000, 1001, 1000, 1002, 1001]), None, "five are none");
        // Whoever types stops as it comes.
        assert_eq!(seconds(&[1000, 1300, 400, 2100, 700, 160, 3000]), None);
        let mut some = vec![350; 6];
        some.extend([120, 700, 1500, 2300, 5100, 260, 900]);
        assert_eq!(seconds(&some), None, "less than half");
    }
}
