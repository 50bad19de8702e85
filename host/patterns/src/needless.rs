//! `REORDERING`: segments overtake each other. `NEEDLESS_REPEATS`: segments are sent again that were not lost.

use std::collections::HashSet;

use weir_analysis::{Group, RETRANSMISSION_LINE, finding as make};
use weir_messages::v1::Finding;

use crate::losses::{Losses, Needless};
use crate::names::{chance, count, percent};
use crate::period;

/// Segments from which on there is a pattern.
const LEAST: u64 = 20;
/// Share of the data segments that are overtaken: where each connection has one way, none is.
const OVERTAKEN: f64 = 0.001;
/// Share of the repeats: with fewer, losses say more.
const MOST: f64 = 0.5;
/// Those that come together are one event, ns.
const TOGETHER: u64 = 20_000_000;
/// Findings of a kind at most, those with most segments first.
const TOLD: usize = 8;

/// For each pair of hosts. Of so many frames the times ran backwards: each was written behind one that passed later.
pub(crate) fn findings(all: &Losses, clamped: u64, out: &mut Vec<Finding>) {
    let mut by_pair: Vec<Vec<&Needless>> = vec![Vec::new(); all.by_pair.len()];
    for needless in all.needless.iter() {
        by_pair[usize::from(needless.pair)].push(needless);
    }
    let mut pairs: Vec<usize> = (0..by_pair.len()).collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(all.by_pair[*pair].overtaken.iter().sum::<u64>()));
    // The capture's quality tells of it.
    let by_file = clamped >= all.by_pair.iter().flat_map(|pair| pair.overtaken).sum();
    let reordering = pairs
        .iter()
        .filter_map(|pair| Some((*pair, reordering(all, *pair, &by_pair[*pair], by_file)?)));
    let (overtaken, told): (Vec<usize>, Vec<Finding>) = reordering.take(TOLD).unzip();
    out.extend(told);
    pairs.sort_by_key(|pair| std::cmp::Reverse(by_pair[*pair].len()));
    pairs.retain(|pair| !overtaken.contains(pair) || 2 * fast(&by_pair[*pair]) < by_pair[*pair].len() as u64);
    let repeats = pairs.into_iter().filter_map(|pair| repeats(all, pair, &by_pair[pair]));
    out.extend(repeats.take(TOLD));
}

/// Those that no timer sent.
fn fast(of: &[&Needless]) -> u64 {
    of.iter().filter(|needless| !needless.by_timer).count() as u64
}

/// `by_file`: the order of the capture alone can be what is wrong, unless senders were misled.
fn reordering(all: &Losses, number: usize, needless: &[&Needless], by_file: bool) -> Option<Finding> {
    let pair = &all.by_pair[number];
    let overtaken = pair.overtaken.iter().sum::<u64>();
    let share = overtaken as f64 / pair.segments.iter().sum::<u64>().max(1) as f64;
    if overtaken < LEAST || share < OVERTAKEN {
        return None;
    }
    let fast = fast(needless);
    if by_file && fast < LEAST {
        return None;
    }
    let (client, server) = all.pairs.names(number);
    let rates = [0, 1].map(|side: usize| pair.overtaken[side] as f64 / pair.segments[side].max(1) as f64);
    let mut evidence = vec![format!(
        "{} data segments were overtaken by later ones before the tap: {} of {} from {client}, {} of {} from {server}",
        count(overtaken),
        count(pair.overtaken[0]),
        count(pair.segments[0]),
        count(pair.overtaken[1]),
        count(pair.segments[1])
    )];
    if fast > 0 {
        evidence.push(format!(
            "senders took {} segments for lost that were only late, sent them again, and sent less for a while",
            count(fast)
        ));
    }
    evidence.extend([
        "it may also be the capture: queues of a card that are written one after the other".to_owned(),
        "next: look for two ways that the packets of one connection take: load balancing by packet, a bond, a path that changes".to_owned(),
    ]);
    let mut finding = make(
        "REORDERING",
        if fast >= LEAST { "WARNING" } else { "INFO" },
        0.9,
        format!(
            "{} of the data segments between {client} and {server} are overtaken on their way",
            percent(share)
        ),
        evidence,
        &group(needless),
        &[
            ("share", share),
            ("overtaken", overtaken as f64),
            ("clientToServer", rates[0]),
            ("serverToClient", rates[1]),
            ("needless", fast as f64),
        ],
    );
    finding.who = all.pairs.who(number);
    Some(finding)
}

fn repeats(all: &Losses, number: usize, needless: &[&Needless]) -> Option<Finding> {
    let pair = &all.by_pair[number];
    let n = needless.len() as u64;
    let segments = pair.segments.iter().sum::<u64>() + pair.repeats;
    let share = n as f64 / segments.max(1) as f64;
    if n < LEAST || (n as f64) < MOST * pair.repeats as f64 || share < RETRANSMISSION_LINE {
        return None;
    }
    let (client, server) = all.pairs.names(number);
    let by_server = needless.iter().filter(|needless| needless.from_server).count() as u64;
    let by_timer = n - fast(needless);
    let mut evidence = vec![format!(
        "{} of {} repeats were of segments that had arrived, or came later: {} from {client}, {} from {server}; that is {} of the data",
        count(n),
        count(pair.repeats),
        count(n - by_server),
        count(by_server),
        percent(share)
    )];
    evidence.push(if 2 * by_timer >= n {
        format!(
            "{} of them by timers: data or ACKs took longer than the senders wait; what follows is sent again one by one, and slowly",
            count(by_timer)
        )
    } else {
        format!(
            "{} of them because later segments were acknowledged first: they overtook these behind the tap",
            count(n - by_timer)
        )
    });
    let acks = pair.acks;
    if acks != [0; 2] {
        evidence.push(format!(
            "ACKs were lost or late: {} between the tap and {client}, {} between the tap and {server}",
            count(acks[0]),
            count(acks[1])
        ));
    }
    let mut times: Vec<u64> = needless
        .iter()
        .map(|needless| needless.at / TOGETHER * TOGETHER)
        .collect();
    times.dedup();
    let period = (times.len() >= period::LEAST)
        .then(|| period::find(&times, &all.exposure(|other| other == number, [1.0; 2])?))
        .flatten()
        .filter(period::Period::is_sure);
    let mut values = vec![
        ("needless", n as f64),
        ("repeats", pair.repeats as f64),
        ("share", share),
    ];
    if let Some(period) = &period {
        values.push(("periodSeconds", period.period / 1e9));
        evidence.push(format!(
            "they come every {:.2} s ({} of {} times): something holds packets up with that rhythm; chance that it is none: {}",
            period.period / 1e9,
            period.struck,
            period.cycles,
            chance(period.chance)
        ));
    }
    evidence.push(
        "it may also be ACKs that were lost, many in a row: one that comes through makes up for those before it"
            .to_owned(),
    );
    evidence.push(
        "next: look for what holds packets up and lets them go later: a link by radio, a host or a virtual machine that does not run, a long queue"
            .to_owned(),
    );
    let mut finding = make(
        "NEEDLESS_REPEATS",
        "WARNING",
        0.9,
        format!(
            "{} of {} repeats between {client} and {server} were not needed",
            count(n),
            count(pair.repeats)
        ),
        evidence,
        &group(needless),
        &values,
    );
    finding.who = all.pairs.who(number);
    Some(finding)
}

fn group(needless: &[&Needless]) -> Group {
    let (mut group, mut ids) = (Group::default(), HashSet::new());
    for needless in needless {
        if ids.insert(needless.id) {
            group.include(needless.id, needless.at, needless.at);
        } else {
            group.extend(needless.at, needless.at);
        }
    }
    group
}
