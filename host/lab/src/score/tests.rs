use super::Answers;
use super::counts::Score;
use super::judge::judge;
use super::kinds::{Answer, Rule, Truth};
use super::streams::Stream;
use crate::config::PassConfig;
use crate::frame::TcpSummary;
use crate::truth::{Direction, Journey, Passage};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use weir_analysis::{Cause, Class, Evidence, Place, Verdict};
use weir_record::FlowId;

const STREAM: Stream = (40_000, 9000, Direction::S2c);
const MS: u64 = 1_000_000;

/// Segment `n` of 100 bytes, sent at `ms`; 5 ms to the tap and 5 on.
fn sent(frame: u64, n: u32, ms: u64, passes: bool, arrives: bool) -> Journey {
    let time_ns = ms * MS;
    let passage = Passage {
        time_ns: time_ns + 5 * MS,
        captured: true,
        mirrored: false,
        marked: false,
    };
    Journey {
        frame,
        time_ns,
        direction: Direction::S2c,
        tap: if passes { vec![passage] } else { Vec::new() },
        arrived_ns: if arrives { vec![time_ns + 10 * MS] } else { Vec::new() },
        tcp: Some(TcpSummary {
            src: IpAddr::V4(Ipv4Addr::LOCALHOST),
            src_port: 9000,
            dst: IpAddr::V4(Ipv4Addr::LOCALHOST),
            dst_port: 40_000,
            // Around the wrap.
            seq: (n * 100).wrapping_sub(150),
            ack: 1,
            len: 100,
            flags: 0x10,
            ip_id: 0,
            sack_permitted: true,
            tsval: None,
        }),
    }
}

fn said(journey: &Journey, class: Class, place: Place) -> ((u64, u32), Verdict) {
    let seq = journey.tcp.as_ref().map_or(0, |tcp| tcp.seq);
    let time = journey.tap[0].time_ns;
    let verdict = Verdict {
        connection: FlowId(1),
        from_server: true,
        time,
        lost_at: time,
        seq,
        length: 100,
        class,
        cause: Cause::Unknown,
        place,
        evidence: Evidence::NONE,
        episode: 1,
        begins: true,
        handshake: false,
        smaller_arrived: 0,
        arrived: false,
        counted: 0,
    };
    ((time, seq), verdict)
}

fn judged(journeys: &[Journey], verdicts: &[((u64, u32), Verdict)]) -> Score {
    let answers = Answers {
        segments: verdicts.iter().copied().collect(),
        ranges: Vec::new(),
    };
    judge(journeys, &HashMap::from([(STREAM, answers)]))
}

/// Segment 1 is lost where `passes` says, then sent again.
fn one_loss(passes: bool) -> Vec<Journey> {
    vec![
        sent(1, 0, 0, true, true),
        sent(2, 1, 1, passes, false),
        sent(3, 2, 2, true, true),
        sent(4, 1, 30, true, true),
    ]
}

#[test]
fn a_loss_is_judged_by_its_side_of_the_tap() {
    for (passes, truth, place) in [
        (false, Truth::LostBefore, Place::BeforeTap),
        (true, Truth::LostBehind, Place::BehindTap),
    ] {
        let journeys = one_loss(passes);
        let right = judged(&journeys, &[said(&journeys[3], Class::Retransmission, place)]);
        assert_eq!(right.count_losses(|t, a| t == truth && t.is(a)), 1);
        assert_eq!(right.row(truth, |a| truth.is(a)), 1);
        assert!(right.misses.is_empty(), "{:?}", right.misses);
        let wrong = [Place::BeforeTap, Place::BehindTap, Place::Nowhere, Place::Unknown];
        for other in wrong.into_iter().filter(|p| *p != place) {
            let wrong = judged(&journeys, &[said(&journeys[3], Class::Retransmission, other)]);
            assert_eq!((wrong.judged(), wrong.misses.len()), (1, 2), "{other:?}");
            let pass = PassConfig {
                at_least: 1,
                ..PassConfig::default()
            };
            assert_eq!(wrong.failures(&pass), Vec::<String>::new(), "one may differ");
            let mut twice = wrong.clone();
            twice.add(&wrong);
            assert_eq!(twice.failures(&pass).len(), 1, "{other:?}");
        }
        assert_eq!(judged(&journeys, &[]).misses.len(), 2, "silence is no answer");
    }
}

#[test]
fn what_no_tap_can_know_is_excluded_by_a_rule() {
    // The last of its burst.
    let tail = [
        sent(1, 0, 0, true, true),
        sent(2, 1, 1, false, false),
        sent(3, 1, 300, true, true),
    ];
    assert_eq!(judged(&tail, &[]).excluded, BTreeMap::from([(Rule::TailBeforeTap, 1)]));
    // With the ids of a counter it is judged, unless its repeat acknowledges more.
    let mut counted = tail.clone();
    let segments = counted.iter_mut().filter_map(|journey| journey.tcp.as_mut());
    segments.zip([7, 8, 9]).for_each(|(tcp, id)| tcp.ip_id = id);
    let answers = [said(&counted[2], Class::Retransmission, Place::BeforeTap)];
    let score = judged(&counted, &answers);
    assert_eq!((score.excluded.len(), score.judged(), score.misses.len()), (0, 1, 0));
    assert_eq!(judged(&counted, &[]).misses.len(), 1);
    let mut holes = counted.to_vec();
    holes.push(sent(4, 2, 310, true, true));
    holes[3].tap[0].captured = false;
    assert_eq!(judged(&holes, &answers).excluded.len(), 1);
    counted[2].tcp.iter_mut().for_each(|tcp| tcp.ack = 2);
    assert_eq!(
        judged(&counted, &answers).excluded,
        BTreeMap::from([(Rule::TailBeforeTap, 1)])
    );
    // Never again.
    let gone = &one_loss(false)[..3];
    assert_eq!(judged(gone, &[]).excluded, BTreeMap::from([(Rule::NeverAgain, 1)]));
    // The repeat is lost before the tap, the first copy behind it.
    let mut twice = one_loss(true);
    twice[3] = sent(4, 1, 30, false, false);
    twice.push(sent(5, 1, 300, true, true));
    let score = judged(&twice, &[said(&twice[4], Class::Retransmission, Place::BehindTap)]);
    assert_eq!(score.excluded, BTreeMap::from([(Rule::SeenBefore, 1)]));
    assert_eq!((score.judged(), score.misses.len()), (1, 0));
    // The first copy came late, its repeat is lost behind the tap.
    let mut needless = one_loss(true);
    needless[1].arrived_ns = vec![29 * MS];
    needless[3] = sent(4, 1, 30, true, false);
    needless.push(sent(5, 1, 300, true, true));
    assert_eq!(judged(&needless, &[]).excluded, BTreeMap::from([(Rule::Arrived, 1)]));
    // Not captured.
    let mut missed = one_loss(true);
    missed[1].tap[0].captured = false;
    assert_eq!(judged(&missed, &[]).excluded, BTreeMap::from([(Rule::NotCaptured, 1)]));
}

/// A SYN or SYN-ACK sent at `ms`.
fn handshake(frame: u64, direction: Direction, ms: u64, passes: bool, arrives: bool) -> Journey {
    let mut syn = sent(frame, 0, ms, passes, arrives);
    syn.direction = direction;
    if let Some(tcp) = &mut syn.tcp {
        (tcp.len, tcp.flags) = (0, 0x12);
        if direction == Direction::C2s {
            (tcp.src_port, tcp.dst_port, tcp.flags) = (40_000, 9000, 0x02);
        }
    }
    syn
}

fn about_syns(journeys: &[Journey], again: &Journey, place: Place) -> Score {
    let (key, verdict) = said(again, Class::Retransmission, place);
    let answers = Answers {
        segments: HashMap::from([(key, verdict)]),
        ranges: Vec::new(),
    };
    judge(journeys, &HashMap::from([((40_000, 9000, again.direction), answers)]))
}

/// Lost behind the tap, or its SYN-ACK before the tap: the same to see. Neither may be taken for the other.
#[test]
fn a_syn_without_an_answer_may_stay_without_a_place() {
    use Direction::{C2s, S2c};
    let lost = vec![
        handshake(1, C2s, 0, true, false),
        handshake(2, C2s, 1000, true, true),
        handshake(3, S2c, 1010, true, true),
    ];
    let mut arrived = lost.clone();
    arrived[0].arrived_ns = vec![10 * MS];
    arrived.insert(1, handshake(4, S2c, 20, false, false));
    for (journeys, again, right) in [(&lost, 1, Place::BehindTap), (&arrived, 2, Place::AckBeforeTap)] {
        for place in [Place::BehindTap, Place::AckBeforeTap, Place::Unknown] {
            let score = about_syns(journeys, &journeys[again], place);
            let misses = usize::from(![right, Place::Unknown].contains(&place));
            assert_eq!(
                (score.judged(), score.misses.len()),
                (0, misses),
                "{right:?} called {place:?}"
            );
        }
    }
    let mut echoed = lost.clone();
    echoed
        .iter_mut()
        .flat_map(|j| &mut j.tcp)
        .for_each(|tcp| tcp.tsval = Some(1));
    for (place, answer) in [
        (Place::BehindTap, Answer::LostBehind),
        (Place::Unknown, Answer::Unknown),
    ] {
        let score = about_syns(&echoed, &echoed[1], place);
        assert_eq!(score.row(Truth::EchoedSyn, |a| a == answer), 1);
        assert_eq!(score.misses.is_empty(), place == Place::BehindTap);
    }
    let excluded = |journeys: &Vec<Journey>| judged(journeys, &[]).excluded;
    assert_eq!(excluded(&lost), BTreeMap::from([(Rule::UnansweredSyn, 1)]));
    // The server has the first SYN; its SYN-ACKs and the second SYN are lost behind the tap.
    let mut needless = vec![
        handshake(1, C2s, 0, true, true),
        handshake(2, S2c, 10, true, false),
        handshake(3, C2s, 1000, true, false),
        handshake(4, S2c, 1010, true, false),
        handshake(5, C2s, 3000, true, true),
        handshake(6, S2c, 3010, true, true),
    ];
    assert_eq!(excluded(&needless), BTreeMap::from([(Rule::NeedlessSyn, 1)]));
    // Both are judged: a timer sent the next one. Of two at once it did not.
    assert_eq!(judged(&needless, &[]).judged(), 2);
    needless.insert(4, handshake(7, S2c, 1015, true, false));
    assert_eq!(excluded(&needless).get(&Rule::SynAckAgain), Some(&1));
}

#[test]
fn reordered_spurious_and_copied_segments_are_told_apart() {
    let mut late = one_loss(true);
    late.truncate(3);
    late[1].arrived_ns = vec![20 * MS];
    late[1].tap[0].time_ns = 12 * MS;
    let score = judged(&late, &[said(&late[1], Class::Reordered, Place::Nowhere)]);
    assert_eq!(score.row(Truth::Reordered, |a| a == Answer::Reordered), 1);

    let mut needless = one_loss(true);
    needless[1].arrived_ns = vec![11 * MS];
    let answer = said(&needless[3], Class::Retransmission, Place::Nowhere);
    // No SYN of this stream permits SACK on both sides.
    assert_eq!(
        judged(&needless, &[answer]).row(Truth::SpuriousBlind, |a| a == Answer::Spurious),
        1
    );

    let mut copied = one_loss(true);
    copied.truncate(1);
    let first = copied[0].tap[0];
    for mirrored in [true, false] {
        let time_ns = first.time_ns + 3;
        copied[0].tap = vec![
            first,
            Passage {
                time_ns,
                mirrored,
                ..first
            },
        ];
        let truth = if mirrored { Truth::Mirrored } else { Truth::Copied };
        assert_eq!(judged(&copied, &[]).row(truth, |a| a == Answer::Nothing), 1);
    }
}

/// The original comes after a repeat of its predecessor, and its host throws it away.
#[test]
fn a_segment_that_paws_throws_away_is_lost_behind_the_tap() {
    let with_stamps = |stamps: [Option<u32>; 5]| {
        let mut all = vec![
            sent(1, 0, 0, true, false),
            sent(2, 1, 1, true, true),
            sent(3, 2, 2, true, true),
            sent(4, 0, 30, true, true),
            sent(5, 1, 90, true, true),
        ];
        all[1].arrived_ns = vec![60 * MS];
        for (journey, tsval) in all.iter_mut().zip(stamps) {
            if let Some(tcp) = &mut journey.tcp {
                tcp.tsval = tsval;
            }
        }
        // What the receiver has acknowledged all the while.
        let mut ack = handshake(6, Direction::C2s, 0, true, true);
        if let (Some(tcp), Some(first)) = (&mut ack.tcp, &all[0].tcp) {
            (tcp.flags, tcp.ack) = (0x10, first.seq);
        }
        all.push(ack);
        all
    };
    let wrapped = u32::MAX - 10;
    for (first, repeat, lost) in [(Some(wrapped), 30, 2), (Some(wrapped), 2, 1), (None, 30, 1)] {
        let stamp = |ms| first.map(|first: u32| first.wrapping_add(ms));
        let all = with_stamps([0, 1, 2, repeat, 90].map(stamp));
        assert_eq!(judged(&all, &[]).row(Truth::LostBehind, |_| true), lost);
        assert_eq!(judged(&all, &[]).judged(), lost);
        let mut copied = all.clone();
        copied[1].arrived_ns.insert(0, 11 * MS);
        assert_eq!(judged(&copied, &[]).judged(), 1, "a copy was in time");
        // Its own repeat was faster, and is acknowledged.
        let mut overtaken = all;
        overtaken[1].arrived_ns = vec![110 * MS];
        let mut ack = overtaken[5].clone();
        ack.time_ns = 105 * MS;
        if let (Some(tcp), Some(repeat)) = (&mut ack.tcp, &overtaken[4].tcp) {
            tcp.ack = repeat.seq.wrapping_add(repeat.len);
        }
        overtaken.push(ack);
        assert_eq!(judged(&overtaken, &[]).judged(), 1, "overtaken");
        overtaken.pop();
        assert_eq!(
            judged(&overtaken, &[]).judged(),
            1,
            "overtaken, and not yet acknowledged"
        );
    }
}

#[test]
fn a_host_that_has_closed_tells_nothing() {
    for (back_ms, truth) in [(20, Truth::SpuriousFin), (50, Truth::Spurious)] {
        let mut all = vec![
            sent(1, 0, 0, true, true),
            sent(2, 0, 10, true, true),
            sent(3, 0, 30, true, true),
        ];
        let mut back = handshake(4, Direction::C2s, back_ms, true, true);
        for (journey, flags) in [(&mut all[1], 0x11), (&mut back, 0x11)] {
            if let Some(tcp) = &mut journey.tcp {
                tcp.flags = flags;
            }
        }
        all.push(back);
        assert_eq!(judged(&all, &[]).row(truth, |_| true), 1, "{truth:?}");
    }
}

/// A frame that only the capture missed must not be called lost.
#[test]
fn a_capture_drop_that_is_blamed_on_the_network_fails() {
    let mut journeys = one_loss(true);
    journeys[1].arrived_ns = vec![11 * MS];
    journeys[1].tap[0].captured = false;
    let blamed = said(&journeys[3], Class::Retransmission, Place::BeforeTap);
    let pass = PassConfig {
        at_least: 0,
        ..PassConfig::default()
    };
    assert_eq!(judged(&journeys, &[]).failures(&pass), Vec::<String>::new());
    assert_eq!(judged(&journeys, &[blamed]).failures(&pass).len(), 1);
}
