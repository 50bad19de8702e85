#![allow(clippy::unwrap_used)]
//! Record frames as a card sends them, and what a link can do to them.

use proptest::prelude::*;
use weir_capture::Intake;
use weir_record::frame::Refusal;
use weir_record::{FlowId, FrameHeader, Gap, Header, Kind, Port, PortMore, Record};

const EPOCH: u16 = 7;

/// A card's lane: makes the frames that a card would send.
struct Card {
    lane: u8,
    epoch: u16,
    sequence: u64,
    total: u64,
    time: u64,
}

impl Card {
    fn new(lane: u8, epoch: u16) -> Self {
        Self {
            lane,
            epoch,
            sequence: 0,
            total: 0,
            time: 1_000_000,
        }
    }

    fn frame(&mut self, records: u16) -> Vec<u8> {
        let header = FrameHeader {
            destination: [2, 0, 0, 0, 0, 1],
            source: [2, 0, 0, 0, 0, 2],
            ethertype: FrameHeader::ETHERTYPE.to_be_bytes(),
            version: FrameHeader::VERSION,
            lane: self.lane,
            epoch: self.epoch,
            records,
            first_sequence: self.total as u32,
            sequence: self.sequence,
            time: self.time,
            total: self.total,
        };
        let mut data = header.encode().0.to_vec();
        for i in 0..u64::from(records) {
            let header = Header {
                lane: self.lane,
                sequence: (self.total + i) as u32,
                flow: FlowId::new(self.epoch, 1, i as u32),
                time: self.time,
                ..Header::default()
            };
            data.extend_from_slice(&header.start(Kind::Block, false).0);
        }
        self.sequence += 1;
        self.total += u64::from(records);
        self.time += 1000;
        data
    }

    fn frames<const N: usize>(&mut self, records: [u16; N]) -> [Vec<u8>; N] {
        records.map(|n| self.frame(n))
    }
}

/// Give frames; what came out, as sequence numbers and gaps.
#[derive(Debug, PartialEq, Eq)]
enum Out {
    Record(u32),
    Gap(u32, u32),
}

fn run(intake: &mut Intake, frames: &[&[u8]]) -> Vec<Out> {
    let mut records = Vec::new();
    for frame in frames {
        intake.frame(frame, &mut records);
    }
    records.iter().map(out).collect()
}

fn out(record: &Record) -> Out {
    match record.kind() {
        Some(Kind::Gap) => {
            let gap = Gap::decode(record);
            assert_eq!((gap.reason, record.sequence()), (1, gap.from_sequence));
            Out::Gap(gap.from_sequence, gap.to_sequence)
        }
        _ => Out::Record(record.sequence()),
    }
}

fn numbers(range: std::ops::Range<u32>) -> Vec<Out> {
    range.map(Out::Record).collect()
}

#[test]
fn frames_in_order_give_their_records() {
    let mut intake = Intake::default();
    let [a, b, c] = Card::new(3, EPOCH).frames([1, 139, 5]);
    assert_eq!(run(&mut intake, &[&a, &b, &c]), numbers(0..145));
    let counters = intake.counters();
    assert_eq!((counters.frames, counters.records), (3, 145));
    assert_eq!(counters.damaged() + counters.lost_frames + counters.restarts, 0);
}

#[test]
fn a_lost_frame_is_a_gap_in_its_place() {
    let mut intake = Intake::default();
    let [a, _, _, d] = Card::new(0, EPOCH).frames([2, 10, 3, 2]);
    let got = run(&mut intake, &[&a, &d]);
    let mut want = numbers(0..2);
    want.push(Out::Gap(2, 14));
    want.extend(numbers(15..17));
    assert_eq!(got, want);
    assert_eq!((intake.counters().lost_frames, intake.counters().lost_records), (2, 13));
}

#[test]
fn a_repeated_frame_counts_once() {
    let mut intake = Intake::default();
    let [a, b] = Card::new(0, EPOCH).frames([2, 2]);
    assert_eq!(run(&mut intake, &[&a, &a, &b, &a, &b]), numbers(0..4));
    assert_eq!(intake.counters().refused(Refusal::Repeated), 3);
}

#[test]
fn a_frame_out_of_order_is_in_a_gap_already() {
    let mut intake = Intake::default();
    let [a, b, c, d] = Card::new(0, EPOCH).frames([1, 2, 1, 1]);
    let got = run(&mut intake, &[&a, &c, &b, &b, &d]);
    assert_eq!(got, [Out::Record(0), Out::Gap(1, 2), Out::Record(3), Out::Record(4)]);
    assert_eq!(intake.counters().refused(Refusal::Late), 2);
    assert_eq!(intake.counters().lost_frames, 1);
}

#[test]
fn what_is_damaged_is_counted_by_reason_and_changes_nothing() {
    let good = Card::new(0, EPOCH).frame(3);
    let change = |at: usize, value: u8| {
        let mut data = good.clone();
        data[at] = value;
        data
    };
    let cases: [(Refusal, Vec<u8>); 19] = [
        (Refusal::Foreign, Vec::new()),
        (Refusal::Foreign, good[..13].to_vec()),
        (Refusal::Foreign, change(12, 8)),
        (Refusal::Short, good[..63].to_vec()),
        (Refusal::Version, change(14, 2)),
        (Refusal::Header, change(15, 16)),
        (Refusal::Header, change(63, 1)),
        (Refusal::Count, change(18, 0)),
        (Refusal::Count, change(18, 140)),
        (Refusal::Count, change(20, 1)),
        (Refusal::Length, good[..good.len() - 1].to_vec()),
        (Refusal::Length, good[..good.len() - 64].to_vec()),
        (Refusal::Length, [&good[..], &[0; 4]].concat()),
        (Refusal::Length, good[..64].to_vec()),
        (Refusal::Record, change(64, Kind::Gap as u8)),
        (Refusal::Record, change(64 + 2, 0x20)),
        (Refusal::Record, change(64 + 2, 0x11)),
        (Refusal::Record, change(128 + 4, 9)),
        (Refusal::Record, change(64 + 14, 8)),
    ];
    for (reason, data) in cases {
        let mut intake = Intake::default();
        assert_eq!(run(&mut intake, &[&data]), [], "{reason:?}");
        assert_eq!(
            intake.counters().refused(reason),
            1,
            "{reason:?}: {:?}",
            intake.counters()
        );
        assert_eq!(run(&mut intake, &[&good]), numbers(0..3), "{reason:?}");
        assert_eq!(intake.counters().refused.iter().sum::<u64>(), 1);
    }
}

#[test]
fn totals_that_contradict_the_frames_are_refused() {
    let mut card = Card::new(0, EPOCH);
    let good = card.frame(2);
    for (sequence, total) in [(1, 1), (1, 3), (2, 2), (2, 142), (u64::MAX, u64::MAX - 3)] {
        let mut intake = Intake::default();
        run(&mut intake, &[&good]);
        let mut odd = Card {
            sequence,
            total,
            ..Card::new(0, EPOCH)
        };
        odd.time = 5_000_000;
        let data = odd_frame(&odd);
        assert_eq!(run(&mut intake, &[&data]), [], "{sequence} {total}");
        assert_eq!(intake.counters().refused(Refusal::Count), 1, "{sequence} {total}");
    }
}

/// One record; without the arithmetic of `Card::frame`, which would overflow.
fn odd_frame(card: &Card) -> Vec<u8> {
    let mut data = Card {
        total: u64::from(card.total as u32),
        ..Card::new(card.lane, card.epoch)
    }
    .frame(1);
    data[24..32].copy_from_slice(&card.sequence.to_le_bytes());
    data[32..40].copy_from_slice(&card.time.to_le_bytes());
    data[40..48].copy_from_slice(&card.total.to_le_bytes());
    data
}

#[test]
fn attaching_to_a_running_card_is_no_loss() {
    let mut intake = Intake::default();
    let mut card = Card::new(0, EPOCH);
    card.frames([5, 5, 5]);
    let late = card.frame(2);
    assert_eq!(run(&mut intake, &[&late]), numbers(15..17));
    assert_eq!(intake.counters().lost_records, 0);
}

#[test]
fn numbers_of_records_wrap() {
    let mut intake = Intake::default();
    let mut card = Card::new(0, EPOCH);
    (card.sequence, card.total) = (1 << 40, (1 << 33) - 1);
    let [a, _, c] = card.frames([2, 3, 1]);
    assert_eq!(
        run(&mut intake, &[&a, &c]),
        [Out::Record(u32::MAX), Out::Record(0), Out::Gap(1, 3), Out::Record(4)]
    );
}

#[test]
fn a_card_that_begins_anew_is_followed() {
    let mut intake = Intake::default();
    let mut old = Card::new(0, EPOCH);
    let [a, b, stale] = old.frames([2, 2, 2]);
    // Another epoch, its clock not set yet: its first frame is lost.
    let mut new = Card::new(0, EPOCH + 1);
    new.time = 5;
    let [_, c, d] = new.frames([4, 1, 1]);
    let got = run(&mut intake, &[&a, &b, &c, &stale, &d]);
    let mut want = numbers(0..4);
    want.push(Out::Gap(0, 3));
    want.extend(numbers(4..6));
    assert_eq!(got, want);
    assert_eq!((intake.counters().restarts, intake.counters().lost_records), (1, 4));
    assert_eq!(intake.counters().refused(Refusal::Late), 1);
    // The measuring side was reset within the epoch.
    let mut again = Card::new(0, EPOCH + 1);
    again.time = 1_000_000_000;
    let e = again.frame(1);
    assert_eq!(run(&mut intake, &[&e]), [Out::Record(0)]);
    assert_eq!(intake.counters().restarts, 2);
}

#[test]
fn lanes_do_not_meet() {
    let mut intake = Intake::default();
    let [a0, _, a2] = Card::new(0, EPOCH).frames([1, 1, 1]);
    let [b0, b1, b2] = Card::new(15, EPOCH).frames([2, 2, 2]);
    let got = run(&mut intake, &[&a0, &b0, &b1, &a2, &b2]);
    assert_eq!(got.iter().filter(|o| matches!(o, Out::Gap(..))).count(), 1);
    assert_eq!((intake.counters().records, intake.counters().lost_records), (8, 1));
}

#[test]
fn ports_and_flows_are_what_the_card_says() {
    let mut intake = Intake::default();
    let port = Port {
        frames: 1000,
        bytes: 64_000,
        tracked: 990,
        clamped: 1,
        cut: 2,
        dropped: 3,
        options_skipped: 4,
    };
    let more = PortMore {
        untracked: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    };
    let mut header = Header {
        lane: 0,
        arg: 1,
        ..Header::default()
    };
    let mut data = Card::new(0, EPOCH).frame(5);
    for (i, kind) in [None, None, Some(Kind::Open), Some(Kind::Open), Some(Kind::Close)]
        .iter()
        .enumerate()
    {
        header.sequence = i as u32;
        let record = match (i, kind) {
            (0, _) => port.encode(header),
            (1, _) => more.encode(header),
            (_, kind) => header.start(kind.unwrap(), false),
        };
        data[64 + 64 * i..128 + 64 * i].copy_from_slice(&record.0);
    }
    run(&mut intake, &[&data]);
    assert_eq!((intake.port(1).port, intake.port(1).more), (port, more));
    assert_eq!(intake.port(0).port.frames, 0);
    assert_eq!(intake.flows(), 1);
}

/// What a link does to the next frame.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Lose,
    Repeat,
    Swap,
    Cut(u16),
    Flip(u16, u8),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        6 => Just(Fault::None),
        2 => Just(Fault::Lose),
        1 => Just(Fault::Repeat),
        1 => Just(Fault::Swap),
        1 => any::<u16>().prop_map(Fault::Cut),
        1 => (any::<u16>(), 1..=255u8).prop_map(|(at, bits)| Fault::Flip(at, bits)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Records come out in order, none twice; what is missing is a gap; each frame is counted once.
    #[test]
    fn whatever_the_link_does(plan in prop::collection::vec((1..20u16, fault()), 1..60)) {
        let mut card = Card::new(2, EPOCH);
        let mut sent: Vec<Vec<u8>> = Vec::new();
        let mut swap: Option<Vec<u8>> = None;
        let mut flipped = false;
        for (records, fault) in plan {
            let mut data = card.frame(records);
            let held = swap.take();
            match fault {
                Fault::None => sent.push(data),
                Fault::Lose => {}
                Fault::Repeat => sent.extend([data.clone(), data]),
                Fault::Swap => swap = Some(data),
                Fault::Cut(to) => {
                    data.truncate(usize::from(to) % data.len());
                    sent.push(data);
                }
                Fault::Flip(at, bits) => {
                    let at = usize::from(at) % data.len();
                    data[at] ^= bits;
                    flipped = true;
                    sent.push(data);
                }
            }
            sent.extend(held);
        }
        let frames: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
        let mut intake = Intake::default();
        let out = run(&mut intake, &frames);
        let counters = *intake.counters();
        prop_assert_eq!(counters.frames + counters.refused.iter().sum::<u64>(), frames.len() as u64);
        // A flipped bit in epoch or time of a header is no error that this layer can see (the FCS does).
        if !flipped {
            let mut next = None;
            for item in &out {
                let (from, to) = match *item {
                    Out::Record(n) => (n, n),
                    Out::Gap(from, to) => (from, to),
                };
                prop_assert!(from <= to);
                prop_assert!(next.is_none_or(|next| next == from), "{out:?}");
                next = Some(to + 1);
            }
            let gaps: u64 = out.iter().map(|o| match *o {
                Out::Gap(from, to) => u64::from(to - from) + 1,
                Out::Record(_) => 0,
            }).sum();
            prop_assert_eq!(gaps, counters.lost_records);
            prop_assert_eq!(counters.restarts, 0);
        }
    }

    /// Any bytes at all.
    #[test]
    fn any_bytes_are_counted(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
                             marked in any::<bool>()) {
        let mut intake = Intake::default();
        let mut records = Vec::new();
        for frame in &frames {
            let mut frame = frame.clone();
            if marked && frame.len() > 16 {
                frame[12..15].copy_from_slice(&[0x88, 0xb5, 1]);
                frame[15] &= 15;
            }
            intake.frame(&frame, &mut records);
        }
        let counters = intake.counters();
        prop_assert_eq!(counters.frames + counters.refused.iter().sum::<u64>(), frames.len() as u64);
    }
}
