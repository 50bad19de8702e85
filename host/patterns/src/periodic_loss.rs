//! `PERIODIC_LOSS`: losses that come and go regularly.

use weir_analysis::{RETRANSMISSION_LINE, finding as make, seconds, several, timestamp};
use weir_messages::v1::Finding;

use crate::losses::{HIDDEN, Loss, Losses, Periodic, Sums};
use crate::names::{chance, count, percent};

/// Traffic inside and outside that differs by less is the same.
const SAME_LOAD: f64 = 1.25;
/// Confidence with a chance of nothing: the law that the chance comes from is fitted.
const CONFIDENCE: f64 = 0.99;
/// With a chance that is not small enough.
const UNSURE: f64 = 0.6;

/// The finding about a period that was found.
pub(crate) fn finding(all: &Losses, found: &Periodic) -> Finding {
    let period = &found.period;
    let of_them = || all.losses.iter().filter(|loss| found.has_loss(loss));
    let is_inside = |loss: &&Loss| period.is_inside(loss.at);
    let inside = Sums::of(of_them().filter(is_inside));
    let whole = Sums::of(of_them());
    let (client, server) = all.names(found);
    let between = match found.pairs.len() {
        0 | 1 => format!("between {client} and {server}"),
        n => format!(
            "between {client} and {server} and {} of hosts",
            several(n as u64 - 1, "more pair", "more pairs")
        ),
    };
    let (length, part) = (period.period / 1e9, period.part / 1e9);
    let start = all.span().map_or(period.begin, |(start, _)| start);
    let phase = period.begin.saturating_sub(start);

    let mut evidence = vec![format!(
        "{} of {} lost data segments ({}) fall into {part:.2} s of every {length:.2} s; {} of {} such parts have losses; the first begins {:.2} s after the start",
        count(inside.all_segments()),
        count(whole.all_segments()),
        percent(inside.all_segments() as f64 / whole.all_segments().max(1) as f64),
        period.struck,
        period.cycles,
        seconds(phase)
    )];
    let (mut rates, mut load) = ([0.0; 2], [0.0; 2]);
    let shown = all.shown(|pair| found.has(pair as u16), &whole.ways);
    if let Some(exposure) = all.exposure(|pair| found.has(pair as u16), shown) {
        let sent = exposure.parts(period);
        let lost = [inside.total(), whole.total() - inside.total()];
        let share = part / length;
        for (i, time) in [share, 1.0 - share].into_iter().enumerate() {
            rates[i] = lost[i] as f64 / (sent[i] + lost[i] as f64).max(1.0);
            load[i] = sent[i] / time;
        }
        evidence.push(format!(
            "{} of {} data segments are lost inside, {} of {} outside",
            percent(rates[0]),
            count(sent[0] as u64),
            percent(rates[1]),
            count(sent[1] as u64)
        ));
    }
    if shown != [1.0; 2] {
        evidence.push(HIDDEN.to_owned());
    }
    evidence.push(whole.place(&client, &server));
    let more = load[0] / load[1].max(f64::MIN_POSITIVE);
    let queue = whole.queue();
    let is_queue = queue.is_some();
    evidence.push(if let Some(queue) = queue {
        queue
    } else if (1.0 / SAME_LOAD..SAME_LOAD).contains(&more) {
        "as much is sent inside as outside: the losses do not come from load".to_owned()
    } else {
        format!("inside, {more:.2} times as much is sent as outside: load may have a part in it")
    });
    evidence.push(whole.waited());
    evidence.extend(whole.steps());
    let (missed_inside, missed) = all.missed(found);
    evidence.push(if missed == 0 {
        "the capture itself missed nothing: the losses are the network's".to_owned()
    } else {
        format!(
            "the capture itself missed {}, {} of them inside: not among the losses",
            several(missed, "segment", "segments"),
            count(missed_inside)
        )
    });
    evidence.push(format!(
        "chance that losses without a period look so regular: {} (permutations)",
        chance(period.chance)
    ));
    if !period.is_sure() {
        evidence.push(
            "it may also be no rhythm: bursts that come at random look so regular now and then; a longer capture would tell"
                .to_owned(),
        );
    }
    evidence.push(
        if is_queue {
            "it may also be the rhythm of what is sent: transfers that begin (slow start), or bursts, fill the queue each time"
        } else {
            "it may also be a job or a device on that side that is busy every time: a backup, a scan, a path that changes, a shaper that fills and empties"
        }
        .to_owned(),
    );
    evidence.push(format!(
        "next: capture on the far side of each device {} in turn; compare the error and drop counters of its ports with this rhythm",
        whole.way(&client, &server)
    ));
    let mut values = vec![
        ("periodSeconds", length),
        ("lossySeconds", part),
        ("phaseSeconds", seconds(phase)),
        ("lost", whole.all_segments() as f64),
        ("lostInside", inside.all_segments() as f64),
        ("rateInside", rates[0]),
        ("rateOutside", rates[1]),
    ];
    values.extend(whole.cost().map(|cost| ("costSeconds", cost)));
    let mut finding = make(
        "PERIODIC_LOSS",
        if rates[0] > RETRANSMISSION_LINE && !is_queue {
            "CRITICAL"
        } else {
            "WARNING"
        },
        if period.is_sure() {
            (1.0 - period.chance).min(CONFIDENCE)
        } else {
            UNSURE
        },
        format!("Packets are lost in {part:.2} s of every {length:.2} s {between}"),
        evidence,
        &whole.group,
        &values,
    );
    finding.start = Some(timestamp(period.begin));
    finding.who = format!("{client} > {server}");
    finding
}
