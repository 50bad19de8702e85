//! Holds Weir's answers against what became of each frame.

use std::collections::{BTreeMap, HashMap};

use weir_analysis::Verdict;
use weir_record::SINCE_DATA_NS;

use super::Answers;
use super::counts::Score;
use super::kinds::{Answer, Rule, Truth};
use super::streams::{Captured, Sent, Stream, Streams, SynAck, are_covered};
use crate::truth::{Direction, Journey, Passage};

/// A SYN-ACK that follows another one sooner is none of a timer's (RFC 6298 2.1: 1 s), ns.
const SYN_ACK_TIMER_LEAST: u64 = 500_000_000;

/// Before what is sent again by a timer, ns; and the most ids that are taken for those of packets lost before it.
const SHORTEST_TIMER: u64 = 1 << 20;
const MOST_SKIPPED: u16 = 17;

/// Longest segment, with SYN and FIN.
const LONGEST: i64 = 66_000;

/// Holds answers against journeys.
pub(super) fn judge(journeys: &[Journey], answers: &HashMap<Stream, Answers>) -> Score {
    let streams = Streams::new(journeys);
    let mut score = Score::default();
    let none = Answers::default();
    for (stream, sent) in &streams.sent {
        let connection = streams.connection_of(*stream);
        let judge = Judge {
            stream: *stream,
            closed_ns: streams.closed_ns(*stream),
            first_syn_ack: connection.syn_ack,
            sack: connection.has_sack(),
            is_whole: connection.is_whole(),
            seen: seen(sent),
            by_start: by_start(sent),
            packets: streams.packets(*stream),
            sent,
            answers: answers.get(stream).unwrap_or(&none),
        };
        judge.segments(&mut score);
        judge.losses(&mut score);
    }
    score
}

/// Passages that the capture has, in order of time, each with the highest start and end so far.
fn seen(sent: &[Sent<'_>]) -> Vec<(u64, i64, i64)> {
    let mut seen: Vec<(u64, i64, i64)> = sent
        .iter()
        .flat_map(|s| {
            let captured = s.journey.tap.iter().filter(|p| p.captured);
            captured.map(|p| (p.time_ns, s.from, s.to))
        })
        .collect();
    seen.sort_unstable();
    let (mut from, mut to) = (i64::MIN, i64::MIN);
    for (_, start, end) in &mut seen {
        from = from.max(*start);
        to = to.max(*end);
        (*start, *end) = (from, to);
    }
    seen
}

fn by_start(sent: &[Sent<'_>]) -> BTreeMap<i64, Vec<usize>> {
    let mut by_start: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (i, s) in sent.iter().enumerate() {
        by_start.entry(s.from).or_default().push(i);
    }
    by_start
}

/// One stream under judgement.
struct Judge<'a> {
    stream: Stream,
    /// Both sides permit SACK.
    sack: bool,
    /// The capture missed no segment of the connection.
    is_whole: bool,
    sent: &'a [Sent<'a>],
    /// When the receiver had sent its FIN and had that of the sender.
    closed_ns: Option<u64>,
    /// The connection's first SYN-ACK that the capture has.
    first_syn_ack: Option<SynAck>,
    seen: Vec<(u64, i64, i64)>,
    by_start: BTreeMap<i64, Vec<usize>>,
    /// All packets that the capture has, in order of time.
    packets: &'a [Captured],
    answers: &'a Answers,
}

impl Judge<'_> {
    /// Transmissions that share bytes with number `i`, itself not among them.
    fn overlapping(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let (from, to) = (self.sent[i].from, self.sent[i].to);
        self.by_start
            .range(from - LONGEST..to)
            .flat_map(|(_, all)| all.iter().copied())
            .filter(move |&other| other != i && self.sent[other].to > from)
    }

    /// Whether transmissions before number `i` that `which` chooses have all its bytes.
    fn covered_before(&self, i: usize, which: impl Fn(&Sent<'_>) -> bool) -> bool {
        let others = self
            .overlapping(i)
            .filter(|&other| other < i && which(&self.sent[other]));
        let ranges = others.map(|other| (self.sent[other].from, self.sent[other].to));
        are_covered((self.sent[i].from, self.sent[i].to), ranges.collect())
    }

    /// Highest start and end that the capture has from before `time_ns`.
    fn seen_before(&self, time_ns: u64) -> (i64, i64) {
        match self.seen.partition_point(|(time, ..)| *time < time_ns) {
            0 => (i64::MIN, i64::MIN),
            n => (self.seen[n - 1].1, self.seen[n - 1].2),
        }
    }

    /// What a SYN was that came before any SYN-ACK; none if it is the first that passed the tap.
    fn unanswered_syn(&self, i: usize) -> Option<Truth> {
        let is_again = self.covered_before(i, |s| s.passage().is_some());
        let had_one = self.covered_before(i, |s| !s.is_lost());
        let truth = match self.first_syn_ack {
            _ if had_one => Truth::SpuriousSyn,
            Some(SynAck { echoes: true, .. }) => Truth::EchoedSyn,
            _ => Truth::LostSyn,
        };
        is_again.then_some(truth)
    }

    /// Whether a SYN-ACK had passed the tap.
    fn is_answered(&self, time_ns: u64) -> bool {
        self.first_syn_ack.is_some_and(|first| first.time_ns < time_ns)
    }

    /// Whether a SYN-ACK was sent sooner after another one than its timer would have sent it.
    fn follows_soon(&self, i: usize) -> bool {
        let before = self.overlapping(i).filter(|&other| other < i).max();
        let sent_ns = |i: usize| self.sent[i].journey.time_ns;
        before.is_some_and(|before| sent_ns(i) - sent_ns(before) < SYN_ACK_TIMER_LEAST)
    }

    fn answer(&self, seq: u32, time_ns: u64) -> (Answer, Option<&Verdict>) {
        // Of a segment that a later one explains, the time is known to a unit of `EVENT.since_data`.
        let verdict = (time_ns..time_ns + SINCE_DATA_NS).find_map(|time| self.answers.segments.get(&(time, seq)));
        (verdict.map_or(Answer::Nothing, Answer::from), verdict)
    }

    /// Each segment that the tap saw, or should have seen.
    fn segments(&self, score: &mut Score) {
        let mut sent_to = i64::MIN;
        for (i, sent) in self.sent.iter().enumerate() {
            let is_again = sent.to <= sent_to;
            sent_to = sent_to.max(sent.to);
            for (n, passage) in sent.journey.tap.iter().enumerate() {
                let truth = if passage.mirrored {
                    Truth::Mirrored
                } else if n > 0 {
                    Truth::Copied
                } else if !passage.captured {
                    Truth::NotCaptured
                } else if is_again {
                    match self.sent_again(i, *passage) {
                        Some(truth) => truth,
                        None => continue,
                    }
                } else if self.seen_before(passage.time_ns).1 > sent.from {
                    Truth::Reordered
                } else {
                    Truth::New
                };
                let (answer, verdict) = match truth {
                    Truth::NotCaptured => match self.about_missing(i, passage.time_ns) {
                        Some(answer) => (answer, None),
                        None => continue,
                    },
                    _ => self.answer(sent.seq, passage.time_ns),
                };
                score.segment(truth, answer, || self.describe(sent, passage.time_ns, verdict));
            }
        }
    }

    /// What a retransmission was; none if that is beyond a tap.
    fn sent_again(&self, i: usize, passage: Passage) -> Option<Truth> {
        let earlier = || self.overlapping(i).filter(|&other| other < i);
        let is_captured = |s: &Sent<'_>| s.passage().is_none_or(|p| p.captured);
        if !earlier().all(|other| is_captured(&self.sent[other])) {
            return None;
        }
        if self.sent[i].is_syn() {
            match self.stream.2 {
                Direction::C2s if !self.is_answered(passage.time_ns) => return self.unanswered_syn(i),
                Direction::S2c if self.follows_soon(i) => return None,
                _ => {}
            }
        }
        if self.covered_before(i, |s| !s.is_lost()) {
            // Only the receiver can know, and it did not hear of it.
            let journey = self.sent[i].journey;
            let fin = journey.tcp.as_ref().is_some_and(|tcp| tcp.len == 0 && !tcp.is_syn());
            let came_ns = journey.arrived_ns.iter().min();
            let is_late = self.closed_ns.zip(came_ns).is_some_and(|(closed, came)| closed < *came);
            let truth = match (fin || is_late, self.sack) {
                (true, _) => Truth::SpuriousFin,
                (false, true) => Truth::Spurious,
                (false, false) => Truth::SpuriousBlind,
            };
            return (!self.sent[i].is_lost()).then_some(truth);
        }
        if self.covered_before(i, |s| s.passage().is_some()) {
            return Some(Truth::LostBehind);
        }
        let is_below = self.seen_before(passage.time_ns).1 > self.sent[i].from;
        is_below.then_some(Truth::LostBefore)
    }

    /// What Weir says of a segment that the capture missed; none if it was lost as well.
    fn about_missing(&self, i: usize, time_ns: u64) -> Option<Answer> {
        let sent = &self.sent[i];
        let was_lost = sent.is_lost() || self.overlapping(i).any(|other| self.sent[other].is_lost());
        if was_lost {
            return None;
        }
        let overlaps = |v: &Verdict| {
            let from = sent.from + i64::from(v.seq.wrapping_sub(sent.seq) as i32);
            from < sent.to && from + i64::from(v.length.max(1)) > sent.from
        };
        let said = self
            .answers
            .ranges
            .iter()
            .filter(|v| overlaps(v))
            .map(Answer::from)
            .min();
        let later = self.answers.segments.iter();
        let blamed = later
            .filter(|((time, _), v)| *time > time_ns && overlaps(v))
            .map(|(_, v)| Answer::from(v))
            .find(|a| matches!(a, Answer::LostBefore | Answer::LostBehind));
        Some(blamed.or(said).unwrap_or(Answer::Nothing))
    }

    /// Each segment that the wire lost.
    fn losses(&self, score: &mut Score) {
        for (i, sent) in self.sent.iter().enumerate() {
            if !sent.is_lost() {
                continue;
            }
            let next = self
                .overlapping(i)
                .filter(|&other| other > i)
                .filter_map(|other| Some((self.sent[other].passage()?.time_ns, other)))
                .min();
            let rule = self.exclusion(i, next);
            if let Some(rule) = rule {
                score.exclude(rule);
                continue;
            }
            let Some((time_ns, next)) = next else { continue };
            let truth = if sent.passage().is_some() {
                Truth::LostBehind
            } else {
                Truth::LostBefore
            };
            let (answer, verdict) = self.answer(self.sent[next].seq, time_ns);
            score.loss(truth, answer, || self.describe(&self.sent[next], time_ns, verdict));
        }
    }

    fn exclusion(&self, i: usize, next: Option<(u64, usize)>) -> Option<Rule> {
        let sent = &self.sent[i];
        let Some((time_ns, next)) = next else {
            return Some(Rule::NeverAgain);
        };
        let missed = |s: &Sent<'_>| s.passage().is_some_and(|p| !p.captured);
        if missed(sent) || missed(&self.sent[next]) {
            return Some(Rule::NotCaptured);
        }
        if sent.passage().is_some() {
            return if sent.is_syn() {
                self.handshake_exclusion(i, next)
            } else {
                self.covered_before(i, |s| !s.is_lost()).then_some(Rule::Arrived)
            };
        }
        if self.covered_before(i, |s| s.passage().is_some_and(|p| p.captured)) {
            return Some(Rule::SeenBefore);
        }
        let gap_showed = self.seen_before(time_ns).0 >= sent.to;
        (!gap_showed && !self.ids_show(next, time_ns)).then_some(Rule::TailBeforeTap)
    }

    /// Whether ids before number `next` are missing in the capture, which can only be those of what it repeats: it
    /// acknowledges nothing new, and comes in sequence after a pause; and no segment that passed the tap is missing.
    fn ids_show(&self, next: usize, time_ns: u64) -> bool {
        if !self.is_whole {
            return false;
        }
        let at = self.packets.partition_point(|p| p.time_ns < time_ns);
        let (before, [this, ..]) = self.packets.split_at(at) else {
            return false;
        };
        let overtaken = |newest: u16, id: u16| newest != 0 && id != 0 && (1..=256).contains(&newest.wrapping_sub(id));
        let newest = before
            .iter()
            .fold(0, |newest, p| if overtaken(newest, p.ip_id) { newest } else { p.ip_id });
        let step = this.ip_id.wrapping_sub(newest);
        let acked = before
            .iter()
            .filter(|p| p.ack != 0)
            .all(|p| this.ack.wrapping_sub(p.ack) as i32 > 0);
        let pause = before
            .iter()
            .rev()
            .find(|p| p.has_data)
            .is_none_or(|p| time_ns - p.time_ns >= SHORTEST_TIMER);
        let in_sequence = self.seen_before(time_ns).1 == self.sent[next].from;
        newest != 0 && this.ip_id != 0 && (2..=MOST_SKIPPED).contains(&step) && !acked && pause && in_sequence
    }

    /// For a SYN or SYN-ACK lost behind the tap and sent again as number `next`.
    fn handshake_exclusion(&self, i: usize, next: usize) -> Option<Rule> {
        match self.stream.2 {
            Direction::C2s if self.covered_before(i, |s| !s.is_lost()) => Some(Rule::NeedlessSyn),
            Direction::C2s => Some(Rule::UnansweredSyn),
            Direction::S2c => self.follows_soon(next).then_some(Rule::SynAckAgain),
        }
    }

    fn describe(&self, sent: &Sent<'_>, time_ns: u64, verdict: Option<&Verdict>) -> String {
        let (client, server, direction) = self.stream;
        let said = verdict.map_or_else(String::new, |v| {
            let signs: Vec<_> = v.evidence.signs().map(|s| s.name).collect();
            format!("{} {} {}", v.cause.name(), v.place.name(), signs.join(" "))
        });
        format!(
            "frame {} {client}-{server} {direction:?} seq {} offset {}..{} at {time_ns}: {said}",
            sent.journey.frame, sent.seq, sent.from, sent.to
        )
    }
}
