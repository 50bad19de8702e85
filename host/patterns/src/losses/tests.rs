use super::*;
use crate::fixtures;
use crate::random::Random;
use weir_analysis::Evidence;

const START: u64 = 1_700_000_000_000_000_000;

/// Of a segment of the server that was lost at `lost_at`.
fn verdict(connection: u64, lost_at: u64, class: Class, place: Place) -> Verdict {
    Verdict {
        from_server: true,
        length: 1000,
        class,
        place,
        episode: 1,
        begins: true,
        counted: u32::from(place == Place::BeforeTap || place == Place::BehindTap || class == Class::Missed),
        ..fixtures::verdict(connection, lost_at, lost_at + 200_000_000)
    }
}

/// A hundred clients of one server for two minutes; each third second, one of 49 segments becomes `what`.
fn watch(what: &[(Class, Place)]) -> Vec<Finding> {
    watch_when(what, |ms| ms / 1000 % 3 == 0 && ms % 49 == 7)
}

/// `what` becomes of the segments of these ms.
fn watch_when(what: &[(Class, Place)], when: impl Fn(u64) -> bool) -> Vec<Finding> {
    let mut losses = Losses::default();
    for i in 0..120_000u64 {
        let time = START + i * 1_000_000;
        let ends = Ends {
            client: u128::from(i % 100 + 1).to_be_bytes(),
            server: 7u128.to_be_bytes(),
            ..Ends::default()
        };
        let block = DataBlock {
            id: FlowId(i % 100),
            ends,
            from_server: true,
            first: time,
            last: time,
            bytes: 1000,
            packets: 1,
            flight: 1000,
        };
        losses.block(&block, &mut Route::new(&ends, 0));
        if !when(i) {
            continue;
        }
        for (class, place) in what {
            let verdict = verdict(i % 100, time, *class, *place);
            losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
        }
    }
    let mut out = Vec::new();
    losses.findings(&Timeline::default(), &mut out);
    out
}

#[test]
fn a_few_losses_of_each_of_many_clients_show_a_period_together() {
    let found = watch(&[(Class::Retransmission, Place::BeforeTap)]);
    let [finding] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(finding.kind, "PERIODIC_LOSS");
    assert_eq!(finding.who, "many clients > ::7");
    assert!(finding.title.contains("1.00 s of every 3.00 s"), "{}", finding.title);
    let place = |line: &String| line.starts_with("all ") && line.contains("losses occurred between the tap and ::7");
    assert!(finding.evidence.iter().any(place), "{finding:#?}");
}

/// Too few to show it by themselves, too regular for chance: not losses "at random" beside the rhythm of the others.
#[test]
fn pairs_that_keep_to_the_period_of_another_have_it() {
    let lost = [(Class::Retransmission, Place::BeforeTap)];
    // One client loses a segment each 0.2 s of the lossy second, two others one in each third of them, and a fourth in the second behind.
    let found = watch_when(&lost, |ms| match ms % 100 {
        7 => ms / 1000 % 3 == 0 && ms / 100 % 2 == 0,
        8 | 9 => ms / 1000 % 9 == 0 && ms / 100 % 10 == ms / 9000 * 7 % 9,
        10 => ms / 1000 % 9 == 1 && ms / 100 % 10 == ms / 9000 * 7 % 9,
        _ => false,
    });
    let told: Vec<_> = found.iter().map(|finding| (&*finding.kind, &*finding.title)).collect();
    let [("PERIODIC_LOSS", title), ("LOSS", other)] = told[..] else {
        panic!("{told:?}")
    };
    assert!(
        title.ends_with("between ::8 and ::7 and 2 more pairs of hosts"),
        "{title}"
    );
    assert!(other.contains("between ::b and ::7"), "{other}");
}

/// Two losses in 3.5 s of each of eleven periods: a rhythm that is likely, and losses that are sure.
#[test]
fn a_likely_rhythm_is_told_beside_the_losses() {
    let lost = [(Class::Retransmission, Place::BeforeTap)];
    let mut random = Random::new(3);
    let times: Vec<u64> = (0..22).map(|i| i / 2 * 11_000 + random.below(3_500) as u64).collect();
    let found = watch_when(&lost, |ms| times.contains(&ms));
    let of = |kind: &str| found.iter().filter(|finding| finding.kind == kind).collect::<Vec<_>>();
    let [period] = of("PERIODIC_LOSS")[..] else {
        panic!("{found:#?}")
    };
    assert_eq!(period.confidence, 0.6, "{period:#?}");
    assert!(period.title.contains("of every 11.02 s"), "{}", period.title);
    assert!(!of("LOSS").is_empty(), "{found:#?}");
}

/// Half a second, twice as long each time, and 0.1 s of two segments that came again at once.
#[test]
fn what_is_lost_again_is_waited_for_until_its_last_repeat() {
    let mut losses = Losses::default();
    let ends = Ends::default();
    let ms = |ms: u64| START + ms * 1_000_000;
    let repeats = [
        (0, 500, 1, 7),
        (500, 1500, 1, 7),
        // That it waited is not known of a repeat after so long.
        (3500, 3500, 1, 7),
        (9000, 9100, 2, 8),
        (9000, 9100, 2, 9),
    ];
    for (lost_at, time, episode, seq) in repeats {
        let verdict = Verdict {
            time: ms(time),
            episode,
            seq,
            ..verdict(0, ms(lost_at), Class::Retransmission, Place::BehindTap)
        };
        losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
    }
    let sums = Sums::of(losses.losses.iter());
    assert_eq!(sums.cost(), Some(3.6));
    assert_eq!(
        sums.waited(),
        "from a loss to the last repeat of its recovery it took 1.80 s on average: 3.60 s of waiting in 1 connection"
    );
}

/// After 2³¹ bytes the numbers tell the recovery of before.
#[test]
fn time_between_recoveries_is_no_waiting() {
    let mut losses = Losses::default();
    let ends = Ends::default();
    for n in 0..3 {
        let at = START + u64::from(n) * 40_000_000_000;
        let verdict = Verdict {
            seq: n * 1000,
            ..verdict(0, at, Class::Retransmission, Place::BehindTap)
        };
        losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
    }
    // Each came 0.2 s before its repeat.
    assert_eq!(Sums::of(losses.losses.iter()).cost(), Some(0.6));
}

#[test]
fn a_wait_that_is_not_known_is_no_wait_of_zero() {
    let mut losses = Losses::default();
    let ends = Ends::default();
    let verdict = Verdict {
        time: START,
        ..verdict(0, START, Class::Retransmission, Place::BehindTap)
    };
    losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
    let mut out = Vec::new();
    losses.findings(&Timeline::default(), &mut out);
    let [finding] = &out[..] else { panic!("{out:#?}") };
    assert!(!finding.values.contains_key("costSeconds"), "{finding:#?}");
    assert!(
        finding.evidence.iter().any(|line| line.contains("is not known")),
        "{finding:#?}"
    );
    assert!(
        !finding.evidence.iter().any(|line| line.contains("0.00")),
        "{finding:#?}"
    );
}

/// Blocks count what is in sequence. 25 of 1,000 are lost, 400 come late.
#[test]
fn late_segments_were_sent_as_well() {
    let (mut losses, mut timeline) = (Losses::default(), Timeline::default());
    let ends = Ends::default();
    let mut route = Route::new(&ends, 0);
    let block = DataBlock {
        id: FlowId(0),
        ends,
        from_server: true,
        first: START,
        last: START,
        bytes: 1_000_000,
        packets: 575,
        flight: 0,
    };
    losses.block(&block, &mut route);
    timeline.block(&block);
    for i in 0..425 {
        let (class, place) = match i {
            0..25 => (Class::Retransmission, Place::BehindTap),
            25..325 => (Class::Reordered, Place::Nowhere),
            _ => (Class::CaptureOrder, Place::Nowhere),
        };
        let verdict = verdict(0, START + i * 1_000_000, class, place);
        losses.segment(&verdict, &ends, &mut route);
        timeline.segment(&verdict, &mut route);
    }
    let mut out = Vec::new();
    losses.findings(&timeline, &mut out);
    let loss = out.iter().find(|finding| finding.kind == "LOSS");
    let told = loss.is_some_and(|loss| loss.evidence[0].starts_with("25 of 1,000 data segments were lost (2.5 %)"));
    assert!(told, "{out:#?}");
    let reordering = out.iter().find(|finding| finding.kind == "REORDERING");
    let told = reordering.is_some_and(|found| found.evidence[0].starts_with("300 data segments were overtaken"));
    assert!(told, "{out:#?}");
    assert_eq!(timeline.bins().iter().map(|bin| bin.segments[1]).sum::<u32>(), 975);
    // Where the stamps say so, the file alone has them late.
    for (clamped, is_told) in [(299, true), (300, false)] {
        timeline.set_clamped(clamped);
        out.clear();
        losses.findings(&timeline, &mut out);
        assert_eq!(out.iter().any(|finding| finding.kind == "REORDERING"), is_told);
    }
}

/// A packet of a capture that joined segments is several; what never came was lost nobody knows where; a repeat may be a copy.
#[test]
fn findings_count_segments() {
    let (mut losses, ends) = (Losses::default(), Ends::default());
    let told = [
        (3, Class::Retransmission, Place::BehindTap),
        (1, Class::Retransmission, Place::BeforeTap),
        (2000, Class::Lost, Place::Unknown),
        (0, Class::Retransmission, Place::Unknown),
    ];
    for (n, (counted, class, place)) in (0..).zip(told) {
        let verdict = Verdict {
            counted,
            ..verdict(0, START + n * 1_000_000, class, place)
        };
        losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
    }
    let mut out = Vec::new();
    losses.findings(&Timeline::default(), &mut out);
    let [finding] = &out[..] else { panic!("{out:#?}") };
    let evidence = [
        "4 data segments were lost: 0 of the client, 4 of the server; they came again in 2 of 2 data packets (100 %): client to server 0 of 0, server to client 2 of 2",
        "2,000 more never came again, nor did an ACK of them",
        "1 more segments were sent again, and nothing tells",
    ];
    for (line, begin) in [(0, evidence[0]), (3, evidence[1]), (4, evidence[2])] {
        assert!(finding.evidence[line].starts_with(begin), "{finding:#?}");
    }
    assert_eq!(number(finding, "lost"), 4.0);
    assert_eq!(
        [number(finding, "lostClientSide"), number(finding, "lostServerSide")],
        [3.0, 1.0]
    );
}

fn number(finding: &Finding, key: &str) -> f64 {
    match finding.values[key].value {
        Some(weir_messages::v1::finding_value::Value::Number(number)) => number,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn last_segments_count_where_ip_ids_tell_of_them() {
    let mut losses = Losses::default();
    let ends = Ends::default();
    let pair = losses.pair(&mut Route::new(&ends, 0)).1;
    (pair.segments, pair.messages) = ([0, 100], [25, 25]);
    let shown = |losses: &Losses| losses.shown(|_| true, &[[0, 0], [1, 3]]);
    assert_eq!(shown(&losses), [1.0, 0.75]);
    let verdict = Verdict {
        evidence: Evidence::NONE.with(sign::IDS_SKIPPED),
        ..verdict(0, START, Class::Retransmission, Place::BeforeTap)
    };
    losses.segment(&verdict, &ends, &mut Route::new(&ends, 0));
    assert_eq!(shown(&losses), [1.0, 1.0]);
}

#[test]
fn what_the_capture_misses_is_no_loss_and_casts_doubt_on_losses() {
    let missed = (Class::Missed, Place::Capture);
    assert!(watch(&[missed]).is_empty());
    let found = watch(&[missed, missed, (Class::Retransmission, Place::BeforeTap)]);
    assert!(found.iter().all(|finding| finding.kind == "LOSS"), "{found:#?}");
}
