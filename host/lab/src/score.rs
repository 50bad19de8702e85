//! What Weir says about a run's capture, held against what became of each frame (`docs/src/lab.md`).
//!
//! The truth comes from the journeys of the frames alone. So do the rules that exclude a loss: they say what no tap in
//! the middle can know, without a look at Weir's answer.

use crate::analysis;
use crate::app::read_lines;
use crate::config::PassConfig;
use crate::error::LabError;
use crate::frame::TcpSummary;
use crate::run::LabReport;
use crate::truth::{Direction, Journey, Passage};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;
use weir_analysis::{Class, Connection, Ends, Place, Sink, Transaction, Verdict};
use weir_record::SINCE_DATA_NS;
use weir_record::time::utc_from_tai;

/// What a segment at the tap truly was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Truth {
    /// Sent for the first time and in order.
    New,
    /// Sent for the first time and overtaken.
    Reordered,
    /// Copied by the network before the tap.
    Copied,
    /// Copied by the capture.
    Mirrored,
    /// Sent again although nothing was lost.
    Spurious,
    /// The same without SACK, so that no D-SACK can tell.
    SpuriousBlind,
    /// The same of a FIN without data, or to a host that had sent and got a FIN: hosts that have closed do not tell of what
    /// came twice.
    SpuriousFin,
    /// Sent again; lost between its sender and the tap.
    LostBefore,
    /// Sent again; lost between the tap and its receiver, or thrown away by that for its old timestamp.
    LostBehind,
    /// A SYN sent again; all before it were lost between the tap and the server. It looks like [`Self::SpuriousSyn`].
    LostSyn,
    /// The same where the SYN-ACK tells by the timestamp that it echoes.
    EchoedSyn,
    /// A SYN sent again although the server had one; no SYN-ACK had passed the tap.
    SpuriousSyn,
    /// Missed by the capture alone.
    NotCaptured,
}

/// What Weir said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// Nothing.
    Nothing,
    /// Reordered, by the network or in the capture.
    Reordered,
    /// A copy.
    Copy,
    /// A spurious retransmission.
    Spurious,
    /// A retransmission; lost before the tap.
    LostBefore,
    /// A retransmission; lost behind the tap.
    LostBehind,
    /// A retransmission or a loss without a place.
    Unknown,
    /// Missed by the capture.
    Missed,
    /// A window probe or keep-alive.
    Probe,
}

/// Why a loss is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Its bytes never passed the tap again.
    NeverAgain,
    /// Lost before the tap, and nothing behind it passed the tap before its bytes did: there is no gap. Nor is its IP id the
    /// only sign, before what came instead.
    TailBeforeTap,
    /// Lost before the tap, when its bytes had passed the tap before: there is no trace of it.
    SeenBefore,
    /// Lost behind the tap, when its receiver had its bytes: nothing shows it.
    Arrived,
    /// The capture missed the segment itself or what was sent in its place.
    NotCaptured,
    /// A SYN that nothing answered, lost behind the tap: its SYN-ACK may have been lost before it. What is said of the next SYN
    /// is judged as [`Truth::LostSyn`].
    UnansweredSyn,
    /// A SYN lost behind the tap, of which the server had one before: its timer sends the SYN-ACK when the SYN's would.
    NeedlessSyn,
    /// A SYN-ACK lost behind the tap shortly before the server sent another one for a reason of its own.
    SynAckAgain,
}

impl Rule {
    const fn text(self) -> &'static str {
        match self {
            Self::NeverAgain => "never sent again",
            Self::TailBeforeTap => "last of its burst, before the tap",
            Self::SeenBefore => "a repeat before the tap of what the tap had seen",
            Self::Arrived => "a repeat behind the tap of what had arrived",
            Self::NotCaptured => "missed by the capture as well",
            Self::UnansweredSyn => "a SYN without an answer, behind the tap",
            Self::NeedlessSyn => "a SYN behind the tap of which the server had one",
            Self::SynAckAgain => "a SYN-ACK behind the tap, sent again before its timer",
        }
    }
}

/// Counts of one run, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    /// Segments at the tap.
    pub matrix: BTreeMap<(Truth, Answer), u64>,
    /// Losses, by where they happened and where Weir says they did.
    pub losses: BTreeMap<(Truth, Answer), u64>,
    /// Losses that are not judged.
    pub excluded: BTreeMap<Rule, u64>,
    /// Judgements that differ, one line each.
    pub misses: Vec<String>,
}

/// A SYN-ACK that follows another one sooner is none of a timer's (RFC 6298 2.1: 1 s), ns.
const SYN_ACK_TIMER_LEAST: u64 = 500_000_000;

/// Before what is sent again by a timer, ns; and the most ids that are taken for those of packets lost before it.
const SHORTEST_TIMER: u64 = 1 << 20;
const MOST_SKIPPED: u16 = 17;

/// Linux takes timestamps that are older by so much.
const PAWS_WINDOW: i32 = 1;

/// Connection, by the ports of client and server, and direction.
type Stream = (u16, u16, Direction);

/// One transmission of a segment. Offsets count from the stream's first sequence number.
struct Sent<'a> {
    journey: &'a Journey,
    seq: u32,
    from: i64,
    to: i64,
    /// It arrived and was thrown away.
    discarded: bool,
}

impl Sent<'_> {
    /// How it passed the tap, copies aside.
    fn passage(&self) -> Option<Passage> {
        self.journey.tap.first().copied()
    }

    fn is_lost(&self) -> bool {
        self.journey.arrived_ns.is_empty() || self.discarded
    }

    /// A SYN or SYN-ACK.
    fn is_syn(&self) -> bool {
        self.journey.tcp.as_ref().is_some_and(TcpSummary::is_syn)
    }
}

/// Weir's answers about one stream.
#[derive(Default)]
struct Answers {
    /// By time at the tap and sequence number.
    segments: HashMap<(u64, u32), Verdict>,
    /// Bytes never seen.
    ranges: Vec<Verdict>,
}

/// Collects verdicts and the ports of their connections.
#[derive(Default)]
struct Collector {
    verdicts: Vec<Verdict>,
    ports: HashMap<u64, (u16, u16)>,
}

impl Sink for Collector {
    fn connection(&mut self, connection: &Connection<'_>) {
        let message = connection.message();
        let port = |end: Option<weir_messages::v1::Endpoint>| end.map_or(0, |end| end.port as u16);
        self.ports
            .insert(message.id, (port(message.client), port(message.server)));
    }

    fn transaction(&mut self, _: &Transaction<'_>) {}

    fn finding(&mut self, _: weir_messages::v1::Finding) {}

    fn segment(&mut self, verdict: &Verdict, _: &Ends) {
        self.verdicts.push(*verdict);
    }
}

/// Judges what Weir makes of a run's capture.
pub fn score(report: &LabReport) -> Result<Score, LabError> {
    let journeys: Vec<Journey> = read_lines(&report.journeys)?;
    let answers = analyze(&report.tap)?;
    Ok(judge(&journeys, &answers))
}

/// The capture through the whole analysis.
fn analyze(capture: &Path) -> Result<HashMap<Stream, Answers>, LabError> {
    let mut collector = Collector::default();
    analysis::analyze(capture, &mut collector)?;
    let mut answers: HashMap<Stream, Answers> = HashMap::new();
    for verdict in collector.verdicts {
        let Some(&(client, server)) = collector.ports.get(&verdict.connection.0) else {
            continue;
        };
        let direction = if verdict.from_server {
            Direction::S2c
        } else {
            Direction::C2s
        };
        let stream = answers.entry((client, server, direction)).or_default();
        if matches!(verdict.class, Class::Missed | Class::Lost) {
            stream.ranges.push(verdict);
        } else {
            let time_ns = utc_from_tai(verdict.time);
            stream.segments.insert((time_ns, verdict.seq), verdict);
        }
    }
    Ok(answers)
}

/// Ports of client and server.
fn ports(journey: &Journey, tcp: &TcpSummary) -> (u16, u16) {
    match journey.direction {
        Direction::C2s => (tcp.src_port, tcp.dst_port),
        Direction::S2c => (tcp.dst_port, tcp.src_port),
    }
}

/// Frames that their host threw away: their timestamp was older than that of the last one that filled a gap (PAWS, RFC 7323
/// 5.3 and 4.3). A segment that was held back while its predecessor was sent again meets this.
fn discarded(journeys: &[Journey]) -> HashSet<u64> {
    /// What a host knows of its peer.
    #[derive(Default)]
    struct Host {
        recent: Option<u32>,
        acknowledged: u32,
        /// What came beyond that, starts and ends.
        ahead: Vec<(u32, u32)>,
    }
    impl Host {
        /// How far `seq` lies beyond what is acknowledged.
        fn beyond(&self, seq: u32) -> i32 {
            seq.wrapping_sub(self.acknowledged) as i32
        }

        fn acknowledge(&mut self, ack: u32) {
            self.acknowledged = ack;
            self.ahead.retain(|&(_, end)| end.wrapping_sub(ack) as i32 > 0);
        }

        /// Whether all from `start` to `end` has come, in order or not.
        fn has(&self, start: u32, end: u32) -> bool {
            let ahead = self
                .ahead
                .iter()
                .map(|&(s, e)| (self.beyond(s).into(), self.beyond(e).into()));
            are_covered(
                (self.beyond(start).max(0).into(), self.beyond(end).into()),
                ahead.collect(),
            )
        }
    }
    let mut events: Vec<(u64, bool, &Journey)> = Vec::new();
    for journey in journeys {
        events.push((journey.time_ns, false, journey));
        events.extend(journey.arrived_ns.iter().map(|&at| (at, true, journey)));
    }
    events.sort_by_key(|event| event.0);
    let mut hosts: HashMap<Stream, Host> = HashMap::new();
    let (mut taken, mut out) = (HashSet::new(), HashSet::new());
    for (_, arrives, journey) in events {
        let Some(tcp) = &journey.tcp else { continue };
        let (client, server) = ports(journey, tcp);
        if !arrives {
            // Its sender is the receiver of the other direction.
            let host = hosts.entry((client, server, journey.direction.other())).or_default();
            host.acknowledge(tcp.ack);
            continue;
        }
        let Some(tsval) = tcp.tsval else { continue };
        let host = hosts.entry((client, server, journey.direction)).or_default();
        let is_old = |recent: u32| recent.wrapping_sub(tsval) as i32 > PAWS_WINDOW;
        let end = tcp.seq.wrapping_add(tcp.sequence_len());
        // What has come by then is no loss: an original that its own repeat has overtaken.
        if !tcp.is_syn() && host.recent.is_some_and(is_old) {
            if !host.has(tcp.seq, end) {
                out.insert(journey.frame);
            }
            continue;
        }
        taken.insert(journey.frame);
        host.ahead.push((tcp.seq, end));
        // One that is old from beginning to end is none that counts.
        if tcp.is_syn() || host.beyond(tcp.seq) <= 0 && host.beyond(end) >= 0 {
            host.recent = Some(tsval);
        }
    }
    // A copy may have come in time.
    out.retain(|frame| !taken.contains(frame));
    out
}

/// A SYN-ACK in the capture.
#[derive(Clone, Copy)]
struct SynAck {
    time_ns: u64,
    /// It has timestamps, so it echoes that of a SYN: Linux that of the first that arrived.
    echoes: bool,
}

/// A packet in the capture.
struct Captured {
    time_ns: u64,
    ip_id: u16,
    ack: u32,
    has_data: bool,
}

/// Holds answers against journeys.
fn judge(journeys: &[Journey], answers: &HashMap<Stream, Answers>) -> Score {
    let discarded = discarded(journeys);
    let mut streams: BTreeMap<Stream, Vec<Sent<'_>>> = BTreeMap::new();
    let mut permits: HashMap<(u16, u16), [bool; 2]> = HashMap::new();
    let mut missing: HashSet<(u16, u16)> = HashSet::new();
    let mut syn_acks: HashMap<(u16, u16), SynAck> = HashMap::new();
    for journey in journeys {
        let Some(tcp) = journey.tcp.as_ref().filter(|tcp| tcp.sequence_len() > 0) else {
            continue;
        };
        let (client, server) = ports(journey, tcp);
        let stream = streams.entry((client, server, journey.direction)).or_default();
        permits.entry((client, server)).or_default()[journey.direction as usize] |= tcp.sack_permitted;
        if journey.tap.iter().any(|passage| !passage.captured) {
            missing.insert((client, server));
        }
        if let Some(passage) = journey.tap.iter().find(|passage| passage.captured)
            && journey.direction == Direction::S2c
            && tcp.is_syn()
        {
            let answer = SynAck {
                time_ns: passage.time_ns,
                echoes: tcp.tsval.is_some(),
            };
            let first = syn_acks.entry((client, server)).or_insert(answer);
            if answer.time_ns < first.time_ns {
                *first = answer;
            }
        }
        let first = stream.first().map_or(tcp.seq, |sent| sent.seq);
        // Runs are far below 2 GB a stream.
        let from = i64::from(tcp.seq.wrapping_sub(first) as i32);
        stream.push(Sent {
            journey,
            seq: tcp.seq,
            from,
            to: from + i64::from(tcp.sequence_len()),
            discarded: discarded.contains(&journey.frame),
        });
    }
    let mut closed: HashMap<Stream, u64> = HashMap::new();
    for (&(client, server, direction), sent) in &streams {
        let fin = |s: &&Sent<'_>| s.journey.tcp.as_ref().is_some_and(TcpSummary::is_fin);
        let of_receiver = streams.get(&(client, server, direction.other()));
        let sent_ns = of_receiver.and_then(|all| Some(all.iter().find(fin)?.journey.time_ns));
        let came_ns = sent.iter().filter(fin).flat_map(|s| &s.journey.arrived_ns).min();
        if let (Some(sent_ns), Some(came_ns)) = (sent_ns, came_ns) {
            closed.insert((client, server, direction), sent_ns.max(*came_ns));
        }
    }
    let mut packets: HashMap<Stream, Vec<Captured>> = HashMap::new();
    for journey in journeys {
        let Some(tcp) = &journey.tcp else { continue };
        let (client, server) = ports(journey, tcp);
        let captured = journey.tap.iter().filter(|p| p.captured).map(|p| Captured {
            time_ns: p.time_ns,
            ip_id: tcp.ip_id,
            ack: tcp.ack,
            has_data: tcp.len > 0,
        });
        packets
            .entry((client, server, journey.direction))
            .or_default()
            .extend(captured);
    }
    packets.values_mut().for_each(|all| all.sort_by_key(|p| p.time_ns));
    let mut score = Score::default();
    let none = Answers::default();
    for (stream, sent) in &streams {
        let (client, server, _) = *stream;
        let judge = Judge {
            stream: *stream,
            closed_ns: closed.get(stream).copied(),
            first_syn_ack: syn_acks.get(&(client, server)).copied(),
            sack: permits.get(&(client, server)) == Some(&[true; 2]),
            is_whole: !missing.contains(&(client, server)),
            seen: seen(sent),
            by_start: by_start(sent),
            packets: packets.get(stream).map_or(&[], Vec::as_slice),
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

/// Whether ranges have, together, all from the one end to the other.
fn are_covered((from, to): (i64, i64), mut ranges: Vec<(i64, i64)>) -> bool {
    ranges.sort_unstable();
    let reach = ranges.iter().fold(
        from,
        |reach, &(from, to)| if from <= reach { reach.max(to) } else { reach },
    );
    reach >= to
}

/// Longest segment, with SYN and FIN.
const LONGEST: i64 = 66_000;

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
        (verdict.map_or(Answer::Nothing, answer), verdict)
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
        let said = self.answers.ranges.iter().filter(|v| overlaps(v)).map(answer).min();
        let later = self.answers.segments.iter();
        let blamed = later
            .filter(|((time, _), v)| *time > time_ns && overlaps(v))
            .map(|(_, v)| answer(v))
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
                *score.excluded.entry(rule).or_default() += 1;
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

fn answer(verdict: &Verdict) -> Answer {
    match (verdict.class, verdict.place) {
        (Class::Reordered | Class::CaptureOrder, _) => Answer::Reordered,
        (Class::Copy, _) => Answer::Copy,
        (Class::WindowProbe | Class::KeepAlive, _) => Answer::Probe,
        (Class::Missed, _) => Answer::Missed,
        (Class::Lost, _) | (Class::Retransmission, Place::Unknown) => Answer::Unknown,
        (Class::Retransmission, Place::BeforeTap) => Answer::LostBefore,
        (Class::Retransmission, Place::BehindTap) => Answer::LostBehind,
        (Class::Retransmission, _) => Answer::Spurious,
    }
}

impl Truth {
    const ALL: [Self; 13] = [
        Self::New,
        Self::Reordered,
        Self::Copied,
        Self::Mirrored,
        Self::Spurious,
        Self::SpuriousBlind,
        Self::SpuriousFin,
        Self::LostBefore,
        Self::LostBehind,
        Self::LostSyn,
        Self::EchoedSyn,
        Self::SpuriousSyn,
        Self::NotCaptured,
    ];

    const fn is(self, answer: Answer) -> bool {
        matches!(
            (self, answer),
            (Self::New, Answer::Nothing | Answer::Probe)
                | (Self::Reordered, Answer::Reordered)
                | (Self::Copied | Self::Mirrored, Answer::Copy)
                | (Self::Spurious, Answer::Spurious)
                | (
                    Self::SpuriousBlind | Self::SpuriousFin | Self::SpuriousSyn,
                    Answer::Spurious | Answer::Unknown
                )
                | (Self::LostSyn, Answer::LostBehind | Answer::Unknown)
                | (Self::LostBefore, Answer::LostBefore)
                | (Self::LostBehind | Self::EchoedSyn, Answer::LostBehind)
                | (Self::NotCaptured, Answer::Missed | Answer::Nothing)
        )
    }
}

impl Answer {
    const ALL: [Self; 9] = [
        Self::Nothing,
        Self::Reordered,
        Self::Copy,
        Self::Spurious,
        Self::LostBefore,
        Self::LostBehind,
        Self::Unknown,
        Self::Missed,
        Self::Probe,
    ];
}

/// Part of a whole, and its limit.
pub(crate) struct Share {
    name: &'static str,
    part: u64,
    pub(crate) whole: u64,
    limit: f64,
    /// The limit is the least, not the most.
    at_least: bool,
}

impl Share {
    pub(crate) const fn at_least(name: &'static str, part: u64, whole: u64, limit: f64) -> Self {
        Self {
            name,
            part,
            whole,
            limit,
            at_least: true,
        }
    }

    pub(crate) const fn at_most(name: &'static str, part: u64, whole: u64, limit: f64) -> Self {
        Self {
            at_least: false,
            ..Self::at_least(name, part, whole, limit)
        }
    }

    /// What is wrong, if the limit is not kept.
    pub(crate) fn failure(&self) -> Option<String> {
        let side = if self.at_least { "at least" } else { "at most" };
        let limit = self.limit * 100.0;
        let text = || {
            format!(
                "{}: {} of {}, {side} {limit:.2} % wanted",
                self.name, self.part, self.whole
            )
        };
        (!self.is_kept()).then(text)
    }

    fn value(&self) -> f64 {
        self.part as f64 / self.whole.max(1) as f64
    }

    /// One case may differ where a limit leaves room for any: runs are small.
    fn is_kept(&self) -> bool {
        let (differ, room) = if self.at_least {
            (self.whole - self.part, 1.0 - self.limit)
        } else {
            (self.part, self.limit)
        };
        differ as f64 <= room * self.whole as f64 || differ == 1 && room > 0.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.at_least { "≥" } else { "≤" };
        let (value, limit) = (self.value() * 100.0, self.limit * 100.0);
        write!(
            f,
            "  {:36} {value:7.2} %  ({} of {}; {sign} {limit:.0} %)",
            self.name, self.part, self.whole
        )
    }
}

impl Score {
    fn segment(&mut self, truth: Truth, answer: Answer, describe: impl Fn() -> String) {
        *self.matrix.entry((truth, answer)).or_default() += 1;
        if !truth.is(answer) {
            self.misses
                .push(format!("segment {truth:?} called {answer:?}: {}", describe()));
        }
    }

    fn loss(&mut self, truth: Truth, answer: Answer, describe: impl Fn() -> String) {
        *self.losses.entry((truth, answer)).or_default() += 1;
        if !truth.is(answer) {
            self.misses
                .push(format!("loss {truth:?} called {answer:?}: {}", describe()));
        }
    }

    /// Adds another run's counts.
    pub fn add(&mut self, other: &Self) {
        for (key, n) in &other.matrix {
            *self.matrix.entry(*key).or_default() += n;
        }
        for (key, n) in &other.losses {
            *self.losses.entry(*key).or_default() += n;
        }
        for (key, n) in &other.excluded {
            *self.excluded.entry(*key).or_default() += n;
        }
        self.misses.extend_from_slice(&other.misses);
    }

    fn row(&self, truth: Truth, which: impl Fn(Answer) -> bool) -> u64 {
        let cells = self.matrix.iter().filter(|((t, a), _)| *t == truth && which(*a));
        cells.map(|(_, n)| n).sum()
    }

    fn count_losses(&self, which: impl Fn(Truth, Answer) -> bool) -> u64 {
        self.losses
            .iter()
            .filter(|((t, a), _)| which(*t, *a))
            .map(|(_, n)| n)
            .sum()
    }

    /// Losses that were judged.
    pub fn judged(&self) -> u64 {
        self.count_losses(|_, _| true)
    }

    /// What is held against the limits.
    fn shares(&self, pass: &PassConfig) -> [Share; 8] {
        let (judged, excluded) = (self.judged(), self.excluded.values().sum::<u64>());
        let open = |a| matches!(a, Answer::Unknown | Answer::Nothing);
        let unknown = self.count_losses(|_, a| open(a));
        let right = self.count_losses(|t, a| t.is(a));
        let all = |truth| self.row(truth, |_| true);
        let lost = |a| matches!(a, Answer::LostBefore | Answer::LostBehind);
        let copies = all(Truth::Copied) + all(Truth::Mirrored);
        let copies_found =
            self.row(Truth::Copied, |a| a == Answer::Copy) + self.row(Truth::Mirrored, |a| a == Answer::Copy);
        let reordered = all(Truth::Reordered);
        let spurious = all(Truth::Spurious);
        let missed = all(Truth::NotCaptured);
        let blamed = self.row(Truth::NotCaptured, lost);
        let named = self.row(Truth::Spurious, |a| a == Answer::Spurious);
        let unanswered = |which: fn(Truth, Answer) -> bool| {
            let syns = [Truth::LostSyn, Truth::EchoedSyn, Truth::SpuriousSyn];
            syns.iter().map(|&t| self.row(t, |a| which(t, a))).sum()
        };
        [
            Share::at_least("losses placed right", right, judged - unknown, pass.location),
            Share::at_least(
                "SYNs without an answer placed right or not",
                unanswered(Truth::is),
                unanswered(|_, _| true),
                pass.location,
            ),
            Share::at_most("losses without a place", unknown, judged, pass.unknown),
            Share::at_most("losses excluded", excluded, judged + excluded, pass.excluded),
            Share::at_most(
                "reordered called lost",
                self.row(Truth::Reordered, lost),
                reordered,
                pass.reordered_as_loss,
            ),
            Share::at_least("spurious called so", named, spurious, pass.spurious),
            Share::at_most(
                "capture drops blamed on the network",
                blamed,
                missed,
                pass.capture_blamed,
            ),
            Share::at_least("copies called so", copies_found, copies, pass.copies),
        ]
    }

    /// What the limits say: a line each; empty when all are kept.
    pub fn failures(&self, pass: &PassConfig) -> Vec<String> {
        let mut out = Vec::new();
        let cases = self.judged()
            + Truth::ALL
                .iter()
                .filter(|t| {
                    !matches!(
                        t,
                        Truth::New | Truth::SpuriousFin | Truth::LostBefore | Truth::LostBehind
                    )
                })
                .map(|t| self.row(*t, |_| true))
                .sum::<u64>();
        if cases < pass.at_least {
            out.push(format!(
                "{cases} cases are too few to judge: {} are needed (at_least of [pass]), more connections make more",
                pass.at_least
            ));
        }
        out.extend(self.shares(pass).iter().filter_map(Share::failure));
        out
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        table(f, "segments at the tap", &self.matrix)?;
        table(f, "losses", &self.losses)?;
        for (rule, n) in &self.excluded {
            writeln!(f, "  excluded: {n} {}", rule.text())?;
        }
        for s in self.shares(&PassConfig::default()).iter().filter(|s| s.whole > 0) {
            writeln!(f, "{s}")?;
        }
        Ok(())
    }
}

/// A confusion matrix: a row for each truth that occurred.
fn table(f: &mut fmt::Formatter<'_>, title: &str, cells: &BTreeMap<(Truth, Answer), u64>) -> fmt::Result {
    if cells.is_empty() {
        return Ok(());
    }
    write!(f, "  {title:22}")?;
    for answer in Answer::ALL {
        write!(f, "{:>12}", format!("{answer:?}"))?;
    }
    writeln!(f)?;
    for truth in Truth::ALL {
        if !cells.keys().any(|(t, _)| *t == truth) {
            continue;
        }
        write!(f, "    {:20}", format!("{truth:?}"))?;
        for answer in Answer::ALL {
            match cells.get(&(truth, answer)) {
                Some(n) => write!(f, "{n:>12}")?,
                None => write!(f, "{:>12}", "·")?,
            }
        }
        writeln!(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use weir_analysis::{Cause, Evidence};
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
}
