//! `LOSS`: losses without a period, with their place: always pointed out.

use std::collections::HashSet;

use weir_analysis::{finding as make, loss_severity};
use weir_messages::v1::Finding;

use crate::accept_queue::FirstData;
use crate::losses::{HIDDEN, Loss, Losses, Periodic, Side, Sums};
use crate::names::{count, percent, several};

/// Findings at most, those with most losses first.
const MOST: usize = 8;
/// Losses from which on chance and bursts are told apart.
const LEAST: u64 = 20;
/// Of repeats that nobody needed, so many may look like losses: where ACKs are late, up to 1 in 280 did in healthy runs.
const MISTAKEN: f64 = 0.01;
/// Pairs of losses in a slot, over those that chance makes by what was sent in it: bursts, if that is surely above 1 by
/// so many standard deviations.
const CLUSTERED: f64 = 3.0;
const SURE: f64 = 5.0;
/// Bursts are so many times as dense as slots of so many together.
const BURSTY: f64 = 1.5;
const WIDER: usize = 16;
/// Uneven, if not in bursts: so many times as many.
const UNEVEN: f64 = 1.2;
/// Of losses that are not at random.
const UNPROVEN: &str = "no rhythm is proven, for which more of its periods may be needed";
/// Losses of a segment from which on it is stuck.
const STUCK: usize = 3;
/// Slots are put together by pairs, again and again, down to so many.
const FEWEST: usize = 16;

/// One for each pair with losses and without a period.
pub(crate) fn findings(
    all: &Losses,
    periodic: &[Periodic],
    likely: &[Periodic],
    first: &FirstData,
    out: &mut Vec<Finding>,
) {
    let mut by_pair: Vec<Vec<&Loss>> = vec![Vec::new(); all.by_pair.len()];
    let mut unknown = vec![Unknown::default(); all.by_pair.len()];
    for loss in all.losses.iter() {
        let pair = usize::from(loss.pair);
        if periodic.iter().any(|found| found.has_loss(loss)) || first.is_dropped(loss) {
            continue;
        }
        if loss.side == Side::Unknown {
            let unknown = &mut unknown[pair];
            unknown.lost += u64::from(loss.segments);
            unknown.repeats += u64::from(loss.segments == 0);
            unknown.all += 1;
        } else {
            by_pair[pair].push(loss);
        }
    }
    let mut most: Vec<usize> = (0..by_pair.len()).filter(|pair| !by_pair[*pair].is_empty()).collect();
    let segments = |pair: &usize| by_pair[*pair].iter().map(|loss| u64::from(loss.segments)).sum::<u64>();
    most.sort_by_key(|pair| std::cmp::Reverse(segments(pair)));
    for pair in most.into_iter().take(MOST) {
        let rhythm = likely.iter().find(|found| found.has(pair as u16));
        out.push(finding(all, pair, &by_pair[pair], unknown[pair], rhythm, first));
    }
}

/// What is not known to be lost on either side.
#[derive(Clone, Copy, Debug, Default)]
struct Unknown {
    /// Data segments that never came, nor did an ACK of them.
    lost: u64,
    /// Packets that came again: they may be copies, or their ACKs were lost or late.
    repeats: u64,
    /// Both, as packets or ranges of bytes.
    all: u64,
}

impl Unknown {
    fn tell(&self, out: &mut Vec<String>) {
        if self.lost > 0 {
            out.push(format!(
                "{} more never came again, nor did an ACK of them: lost, on which side of the tap is not known",
                count(self.lost)
            ));
        }
        if self.repeats > 0 {
            out.push(format!(
                "{} more segments were sent again, and nothing tells whether they or their ACKs were lost or late, or the capture has them twice: not counted",
                count(self.repeats)
            ));
        }
    }
}

/// How many were lost, of how many that were sent. Of a capture whose packets are longer than the wire's, a packet that came again is
/// several segments.
fn how_many(sums: &Sums, sent: [u64; 2], share: f64) -> String {
    let directions = |few: [u64; 2]| {
        format!(
            "client to server {} of {}, server to client {} of {}",
            count(few[0]),
            count(sent[0]),
            count(few[1]),
            count(sent[1])
        )
    };
    let (packets, segments) = (sums.total(), sums.all_segments());
    let (all, share) = (count(sent[0] + sent[1]), percent(share));
    if sums.segments == sums.by_sender {
        let directions = directions(sums.segments);
        return format!(
            "{} of {all} data segments were lost ({share}): {directions}",
            count(segments)
        );
    }
    format!(
        "{} data segments were lost: {} of the client, {} of the server; they came again in {} of {all} data packets ({share}): {}",
        count(segments),
        count(sums.segments[0]),
        count(sums.segments[1]),
        count(packets),
        directions(sums.by_sender)
    )
}

fn finding(
    all: &Losses,
    pair: usize,
    losses: &[&Loss],
    unknown: Unknown,
    rhythm: Option<&Periodic>,
    first: &FirstData,
) -> Finding {
    let sums = Sums::of(losses.iter().copied());
    let shown = all.shown(|other| other == pair, &sums.ways);
    // What was sent is what brought new bytes, and what had to be sent again.
    let sent = [0, 1].map(|side| {
        let segments = all.by_pair[pair].segments[side] as f64 * shown[side];
        segments as u64 + sums.by_sender[side]
    });
    let (client, server) = all.pairs.names(pair);
    let rate = |lost: u64, sent: u64| lost as f64 / sent.max(1) as f64;
    let share = rate(sums.total(), sent[0] + sent[1]);
    let [to_server, to_client] = [0, 1].map(|side| rate(sums.by_sender[side], sent[side]));
    let bursts = Bursts::of(all, pair, losses);
    let mut evidence = vec![how_many(&sums, sent, share), sums.place(&client, &server)];
    if shown != [1.0; 2] {
        evidence.push(HIDDEN.to_owned());
    }
    let stuck = stuck(losses);
    evidence.push(stand(&sums, stuck, &bursts, rhythm));
    unknown.tell(&mut evidence);
    let needless = all
        .needless
        .iter()
        .filter(|needless| usize::from(needless.pair) == pair);
    let mistaken = MISTAKEN * needless.count() as f64;
    if mistaken > sums.total() as f64 {
        evidence.push("it may also be that nothing was lost: so many repeats were not needed that a few of them may look like losses".to_owned());
    }
    let acks = all.by_pair[pair].acks;
    if acks != [0; 2] {
        evidence.push(format!(
            "ACKs were lost or late, too, as needless repeats show: {} between the tap and {client}, {} between the tap and {server}",
            acks[0], acks[1]
        ));
    }
    evidence.push(sums.waited());
    let (queue, steps) = (sums.queue(), sums.steps());
    let is_queue = queue.is_some();
    evidence.extend(queue);
    let is_by_steps = steps.is_some();
    evidence.extend(steps);
    evidence.push(may_also_be(losses, stuck.is_some(), is_queue, &bursts));
    let may_be_dropped = losses.iter().filter(|loss| first.may_be_dropped(loss)).count() as u64;
    if 2 * may_be_dropped > sums.total() {
        evidence.push(format!(
            "{} of them are the first data behind handshakes: it may also be a server whose queue of accepted connections is full, which drops that \
             data until there is room (too few to tell)",
            count(may_be_dropped)
        ));
    }
    evidence.push(next(
        &sums.way(&client, &server),
        stuck.is_some(),
        is_queue,
        is_by_steps,
    ));
    let mut values = vec![
        ("share", share),
        ("lost", sums.all_segments() as f64),
        ("clientToServer", to_server),
        ("serverToClient", to_client),
        ("lostClientSide", sums.sides[0] as f64),
        ("lostServerSide", sums.sides[1] as f64),
        ("clustered", bursts.clustered),
    ];
    values.extend(sums.cost().map(|cost| ("costSeconds", cost)));
    let mut finding = make(
        "LOSS",
        loss_severity(sums.total(), sent[0] + sent[1]),
        // By how much more is known than not.
        0.5 + 0.49 * sums.total() as f64 / (sums.total() as f64 + unknown.all as f64 + mistaken),
        format!(
            "{} of the data segments between {client} and {server} are lost",
            percent(share)
        ),
        evidence,
        &sums.group,
        &values,
    );
    finding.who = all.pairs.who(pair);
    finding
}

/// How they stand together.
fn stand(sums: &Sums, stuck: Option<u64>, bursts: &Bursts, rhythm: Option<&Periodic>) -> String {
    if let Some(segments) = stuck {
        return format!(
            "the same segments again and again: they are {}, lost {:.1} times each",
            several(segments, "segment", "segments"),
            sums.total() as f64 / segments as f64
        );
    }
    if sums.total() < LEAST {
        return "too few to tell chance from a pattern".to_owned();
    }
    let (how, no_rhythm) = if bursts.is_clear {
        let how = format!(
            "in bursts: up to {} within {:.0} ms, {:.1} times as many together as chance makes by what is sent",
            count(bursts.largest),
            bursts.slot * 1e3,
            bursts.clustered
        );
        (how, UNPROVEN)
    } else if let Some((times, width)) = bursts.uneven {
        let how = format!(
            "more densely at some times than at others: {times:.1} times as many together within {width:.1} s as chance makes by what is sent"
        );
        (how, UNPROVEN)
    } else {
        let how = "at random: no more of them stand together than chance makes by what is sent";
        (how.to_owned(), "no rhythm shows")
    };
    rhythm.map_or_else(
        || format!("they come {how}; {no_rhythm}"),
        |found| {
            let period = found.period.period / 1e9;
            format!("they come {how}; a rhythm of {period:.2} s shows and is not sure: a finding of its own")
        },
    )
}

/// What else may lose so.
fn may_also_be(losses: &[&Loss], is_stuck: bool, is_queue: bool, bursts: &Bursts) -> String {
    // What arrived of the same data while these did not.
    let smaller = losses.iter().map(|loss| loss.smaller).max().filter(|bytes| *bytes > 0);
    if let (true, Some(bytes)) = (is_stuck, smaller) {
        format!(
            "it may also be a path that does not carry segments of that size (MTU): {} bytes behind them arrived meanwhile, as SACK blocks tell",
            count(bytes.into())
        )
    } else if is_stuck {
        "it may also be an outage, or a path that does not carry segments of that size (MTU): see whether anything passed meanwhile, and how large"
            .to_owned()
    } else if is_queue {
        "it may also be something that loses at random while the link is busy: see whether as many are lost when it is not"
            .to_owned()
    } else if bursts.is_clear || bursts.uneven.is_some() {
        "it may also be a queue that overflows in bursts of traffic, or a policer that drops what exceeds its rate: see whether throughput is highest then"
            .to_owned()
    } else {
        "it may also be a worn cable, a duplex mismatch or a busy radio link: they lose at random".to_owned()
    }
}

/// What to do next, on this part of the way.
fn next(way: &str, is_stuck: bool, is_queue: bool, is_by_steps: bool) -> String {
    format!(
        "next: {}{}read the error and drop counters of the ports {}, device by device{}",
        if is_by_steps {
            "let both sides use SACK (RFC 2018): it repairs several losses in a round trip; "
        } else {
            ""
        },
        if is_stuck {
            "find by pings with DF how large a packet may be on this path; if those of full size pass, "
        } else {
            ""
        },
        way,
        if is_queue {
            ": where packets wait, the queue drops them; a faster link, less traffic at a time, or active queue management (RFC 7567) make it drop less"
        } else {
            ""
        }
    )
}

/// So many segments, if each was lost again and again.
fn stuck(losses: &[&Loss]) -> Option<u64> {
    let segments: HashSet<_> = losses
        .iter()
        .map(|loss| (loss.id, loss.from_server, loss.seq))
        .collect();
    (losses.len() >= STUCK * segments.len()).then_some(segments.len() as u64)
}

/// How losses stand together.
#[derive(Default)]
struct Bursts {
    /// Pairs of losses in the same slot, over the number by chance.
    clustered: f64,
    is_clear: bool,
    /// More than by chance in some width of slots, s: how many times as many.
    uneven: Option<(f64, f64)>,
    /// Most in a slot, and its width, s.
    largest: u64,
    slot: f64,
}

impl Bursts {
    fn of(all: &Losses, pair: usize, losses: &[&Loss]) -> Self {
        let Some(exposure) = all.exposure(|other| other == pair, [1.0; 2]) else {
            return Self::default();
        };
        let counts = exposure.counts(losses.iter().map(|loss| loss.at));
        let sums = exposure.sums();
        let (clustered, sigmas) = together(&counts, sums);
        Self {
            clustered,
            is_clear: clustered >= CLUSTERED && sigmas > SURE && is_bursty(&counts, sums),
            uneven: uneven(&counts, sums, exposure.slot_seconds()),
            largest: counts.iter().fold(0.0, |most: f64, n| most.max(*n)) as u64,
            slot: exposure.slot_seconds(),
        }
    }
}

/// Whether losses are denser within a slot than in some around: a time of many losses is no burst.
fn is_bursty(counts: &[f64], sums: &[f64]) -> bool {
    let wider = |of: &[f64]| -> Vec<f64> { of.chunks(WIDER).map(|slots| slots.iter().sum()).collect() };
    together(counts, sums).0 >= BURSTY * together(&wider(counts), &wider(sums)).0
}

/// The width of slots in which losses stand together most surely, and how many times as many as chance makes.
fn uneven(counts: &[f64], sums: &[f64], slot: f64) -> Option<(f64, f64)> {
    let (mut counts, mut sums, mut width) = (counts.to_vec(), sums.to_vec(), slot);
    let (mut most, mut found) = (SURE, None);
    while counts.len() >= FEWEST {
        let (times, sigmas) = together(&counts, &sums);
        if sigmas > most && times >= UNEVEN {
            (most, found) = (sigmas, Some((times, width)));
        }
        let wider = |of: &[f64]| of.chunks(2).map(|pair| pair.iter().sum()).collect();
        (counts, sums, width) = (wider(&counts), wider(&sums), 2.0 * width);
    }
    found
}

/// Pairs in the same slot over those that chance makes by what was sent (`sums`), and the standard deviations by which
/// they are more.
fn together(counts: &[f64], sums: &[f64]) -> (f64, f64) {
    let rate = counts.iter().sum::<f64>() / sums.iter().sum::<f64>().max(1.0);
    let pairs: f64 = counts.iter().map(|n| n * (n - 1.0)).sum();
    // Of Poisson's law with mean m, n (n − 1) has the mean m², the variance 4 m³ + 2 m² and the covariance 2 m² with n,
    // the sum of which is given.
    let power = |power: i32| sums.iter().map(|sent| (rate * sent).powi(power)).sum::<f64>();
    let expected = power(2);
    let total = power(1).max(f64::MIN_POSITIVE);
    let variance = 4.0 * (power(3) - expected * expected / total).max(0.0) + 2.0 * expected;
    let clustered = pairs / expected.max(f64::MIN_POSITIVE);
    // A pair or two is chance, however few are expected.
    (clustered, (pairs - expected) / (variance + 1.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Losses by chance; four times as many in each other 8 s: no burst, but not even.
    #[test]
    fn what_is_denser_for_seconds_is_not_at_random() {
        let mut random = Random::new(11);
        for (least, is_uneven) in [(200, false), (50, true)] {
            let mut draw = |slot: u64| {
                let in_1000 = if (slot / 160).is_multiple_of(2) { 200 } else { least };
                f64::from(u8::from(random.below(1_000) < in_1000))
            };
            let counts: Vec<f64> = (0..1920).map(&mut draw).collect();
            let uneven = uneven(&counts, &[1.0; 1920], 0.05);
            assert_eq!(uneven.is_some(), is_uneven, "{uneven:?}");
        }
    }

    /// As many losses, all within 3 s of each 19 s, or in bursts of 50 ms.
    #[test]
    fn a_time_of_many_losses_is_no_burst() {
        let mut random = Random::new(12);
        let mut draw = |inside: &dyn Fn(usize) -> bool, mean: usize| -> Vec<f64> {
            (0..3_600)
                .map(|slot| {
                    if inside(slot) {
                        random.below(2 * mean + 1) as f64
                    } else {
                        0.0
                    }
                })
                .collect()
        };
        let dense = draw(&|slot| slot % 380 < 60, 1);
        let bursts = draw(&|slot| slot % 60 == 7, 9);
        let sent = [1.0; 3_600];
        for (counts, expected) in [(dense, false), (bursts, true)] {
            let (clustered, sigmas) = together(&counts, &sent);
            assert!(clustered >= CLUSTERED && sigmas > SURE);
            assert_eq!(is_bursty(&counts, &sent), expected);
        }
    }
}
