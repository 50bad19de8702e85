//! `SLOW_SETUP_IN_LOSS`: handshakes that lost nothing are slower while packets are lost: one cause of both.

use weir_analysis::{Group, finding as make};
use weir_messages::v1::Finding;

use crate::losses::{CleanSetup, Losses, Periodic};
use crate::names::{chance, count};
use crate::rank::{compare, median};

/// Handshakes inside and outside from which on they are compared.
const LEAST: usize = 20;
/// Largest chance of such a difference without one.
const CHANCE: f64 = 1e-6;
/// Smallest effect: chance that one inside is slower than one outside.
const EFFECT: f64 = 0.6;

/// The finding about the setups of the pairs whose losses have a period.
pub(crate) fn finding(all: &Losses, found: &Periodic) -> Option<Finding> {
    let of_them = || all.setups.iter().filter(|setup| found.has(setup.pair));
    let is_inside = |setup: &&CleanSetup| found.period.is_inside(setup.at);
    let seconds = |setup: &CleanSetup| f64::from(setup.micros) / 1e6;
    let inside: Vec<f64> = of_them().filter(is_inside).map(seconds).collect();
    let outside: Vec<f64> = of_them().filter(|setup| !is_inside(setup)).map(seconds).collect();
    if inside.len() < LEAST || outside.len() < LEAST {
        return None;
    }
    let c = compare(&inside, &outside)?;
    if c.chance > CHANCE || c.larger < EFFECT {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means = (mean(&inside), mean(&outside));
    let medians = (median(&inside)?, median(&outside)?);
    let ratio = medians.0 / medians.1.max(1e-6);
    let (first, last) = of_them().fold((u64::MAX, 0), |(first, last), setup| {
        (first.min(setup.at), last.max(setup.at))
    });
    let cost = (means.0 - means.1) * inside.len() as f64;
    let evidence = vec![
        format!(
            "handshakes in which nothing was lost: {} inside the lossy part take {:.2} ms (median), {} outside {:.2} ms",
            count(inside.len() as u64),
            medians.0 * 1e3,
            count(outside.len() as u64),
            medians.1 * 1e3
        ),
        format!(
            "one inside is slower than one outside in {:.0} % of all cases (50 % would be no difference); chance of that by accident: {}",
            c.larger * 100.0,
            chance(c.chance)
        ),
        format!("they cost {cost:.2} s more in all"),
        "the same device may be responsible for both: whatever loses packets also slows setups down".to_owned(),
        "it may also be that setups that are slow for another reason (a full queue of the server) cause the losses"
            .to_owned(),
        "next: look for a queue or a table of connections in that device that is full in this part of the period"
            .to_owned(),
    ];
    let mut finding = make(
        "SLOW_SETUP_IN_LOSS",
        "WARNING",
        (1.0 - found.period.chance).min(0.99),
        format!("Connection setups take {ratio:.1} times as long while packets are lost"),
        evidence,
        &Group::range(first, last),
        &[
            ("ratio", ratio),
            ("insideSeconds", medians.0),
            ("outsideSeconds", medians.1),
            ("slower", c.larger),
            ("costSeconds", cost),
        ],
    );
    let (client, server) = all.names(found);
    finding.who = format!("{client} > {server}");
    Some(finding)
}
