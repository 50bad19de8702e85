//! Traffic made to find the corners of the flow engine, for the comparison of hardware and software: few keys and many,
//! sequence numbers that wrap, overlap, leave gaps and go wild, connections begun anew in every state, odd options and
//! headers, times at the edge of each interval and timeout, and times that run backwards.
//!
//! The traffic comes in eras, each with its own number of conversations, kind of packets and way that time passes.

mod capture;
mod conversation;
mod frame;

use std::path::Path;

use weir_record::tcp_flag::{ACK, FIN, PSH, RST};
use weir_record::time::tai_from_utc;

use crate::error::Error;
use crate::rng::Rng;
use capture::Capture;
use conversation::{Conversation, Phase, Segment, length, window};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// log2 ns between two scan visits, and of a scan period.
const VISIT_SHIFT: u64 = 10;
const PERIOD_SHIFT: u64 = 28;
/// Times at which a flow that saw no packet changes: timeouts of the appliance, the block idle time, how long a server
/// waits for its SYN-ACK to be answered, how long an index rests, the time limit.
const WAITS: [u64; 8] = [
    4 * SECOND,
    60 * SECOND,
    90 * SECOND,
    900 * SECOND,
    SECOND,
    1 << 32,
    1 << 29,
    1 << 38,
];
/// Conversations that are kept from era to era.
const POOL: usize = 2_000;

/// How time passes between two packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// 0 to a few ns, now and then a µs.
    Burst,
    /// Mean 0.03 ms: a leap of a millisecond costs the card's logic tens of clocks, and time in simulation.
    Mixed,
    /// To the next 10 ms, 100 ms, second or visit, or one ns beside it.
    Grid,
    /// To the moment at which a flow of the era changes by itself, or one ns beside it.
    Edges,
    /// Below the block idle time, so that blocks and round trips grow old.
    Slow,
}

/// What the packets are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Any,
    Setup,
    Data,
    Close,
}

/// Write a hostile capture; returns frames and their bytes.
pub fn write(path: &Path, seed: u64, packets: u64) -> Result<(u64, u64), Error> {
    let mut rng = Rng::new(seed);
    // Some seeds begin just before the engine's 48-bit times wrap.
    let start = match seed % 4 {
        0 => (rng.between(3_500, 6_500) << 48) - rng.below(100 * SECOND) - 37 * SECOND,
        _ => rng.between(1_000_000_000, 1_900_000_000) * SECOND + rng.below(SECOND),
    };
    let mut traffic = Traffic {
        pool: (0..POOL).map(|i| Conversation::new(&mut rng, i % 4 == 0)).collect(),
        rng,
        now: start,
        out: Capture::create(path)?,
        left: packets,
        bytes: Vec::new(),
        mood: Mood::Any,
    };
    traffic.run()?;
    traffic.out.finish()
}

/// Which flows the frames of [`write_mix`] belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// So many flows by turns.
    Cycle(u64),
    /// Any of so many flows.
    Random(u64),
    /// A new flow with each frame.
    Fresh,
}

impl std::str::FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once(':').unwrap_or((text, "1"));
        match (name, number.parse::<u64>()) {
            ("one", _) => Ok(Self::Cycle(1)),
            ("fresh", _) => Ok(Self::Fresh),
            ("cycle", Ok(n @ 1..)) => Ok(Self::Cycle(n)),
            ("random", Ok(n @ 1..)) => Ok(Self::Random(n)),
            _ => Err("one, cycle:N, random:N or fresh".to_owned()),
        }
    }
}

/// Write frames of one beat, 3 ns apart: data and ACKs in order, most of which make no record, so that packets alone
/// bound the rate.
pub fn write_mix(path: &Path, mix: Mix, packets: u64) -> Result<(u64, u64), Error> {
    let mut rng = Rng::new(1);
    let mut out = Capture::create(path)?;
    let mut flows: Vec<Conversation> = Vec::new();
    let mut bytes = Vec::new();
    for number in 0..packets {
        let place = match mix {
            Mix::Cycle(n) => number % n,
            Mix::Random(n) => rng.below(n),
            Mix::Fresh => number,
        };
        let place = (place as usize).min(flows.len());
        if place == flows.len() {
            flows.push(Conversation::plain(&mut rng, number as u32));
        }
        let flow = &mut flows[place];
        let from = rng.below(2) as usize;
        let mut segment = flow.pure_ack(from, flow.sides[1 - from].next);
        if from == 0 {
            segment.len = 4;
        }
        flow.note(&segment);
        let wire = flow.encode(&mut rng, &segment, 0.0, &mut bytes);
        bytes.resize(wire as usize, 0);
        out.write(1_700_000_000 * SECOND + 3 * number, 0, &bytes, wire)?;
    }
    out.finish()
}

struct Traffic {
    rng: Rng,
    /// UTC ns.
    now: u64,
    pool: Vec<Conversation>,
    out: Capture,
    left: u64,
    bytes: Vec<u8>,
    mood: Mood,
}

impl Traffic {
    fn run(&mut self) -> Result<(), Error> {
        // Flows that are open at the end.
        let last = (self.left / 300).max(10);
        while self.left > 2 * last {
            match self.rng.below(21) {
                0..=4 => self.era(1, 9, 3_000, Pace::Burst)?,
                5..=7 => self.era(100, 1_500, 5_000, Pace::Burst)?,
                8..=9 => self.era(10, 300, 4_000, Pace::Mixed)?,
                10..=11 => self.era(1, 20, 1_500, Pace::Grid)?,
                12..=13 => self.era(2, 30, 600, Pace::Edges)?,
                14 => self.long_blocks()?,
                15 => self.long_setups()?,
                16 => self.flood()?,
                17 => self.closings()?,
                18 => self.dying()?,
                19 => self.pauses()?,
                _ => self.leaps()?,
            }
            if self.rng.chance(0.3) {
                let wait = self.rng.pick(&WAITS).copied().unwrap_or(SECOND);
                self.now += wait + self.rng.below(SECOND);
            }
        }
        while self.left > last {
            self.fresh_syn()?;
        }
        while self.left > 0 {
            let mut c = Conversation::new(&mut self.rng, false);
            let segment = c.in_order(&mut self.rng, 0);
            self.send(&mut c, &segment)?;
        }
        Ok(())
    }

    fn era(&mut self, fewest: u64, most: u64, packets: u64, pace: Pace) -> Result<(), Error> {
        let few = most < 100;
        self.mood = *self
            .rng
            .pick(&[Mood::Any, Mood::Setup, Mood::Data, Mood::Data, Mood::Close])
            .unwrap_or(&Mood::Any);
        let count = self.rng.between(fewest, most);
        let mut flows: Vec<Conversation> = (0..count)
            .map(|_| {
                let place = self.rng.below(POOL as u64) as usize;
                if self.rng.chance(0.5) {
                    self.pool[place] = Conversation::new(&mut self.rng, few);
                }
                self.pool[place].clone()
            })
            .collect();
        for _ in 0..self.rng.between(packets / 2, packets) {
            if self.left == 0 {
                break;
            }
            let place = self.rng.below(count) as usize;
            self.pass_time(pace, &flows[place]);
            self.act(&mut flows[place])?;
        }
        for flow in flows {
            let place = self.rng.below(POOL as u64) as usize;
            self.pool[place] = flow;
        }
        Ok(())
    }

    fn pass_time(&mut self, pace: Pace, flow: &Conversation) {
        let beside = self.rng.below(3);
        let rng = &mut self.rng;
        self.now = match pace {
            Pace::Burst => match rng.below(64) {
                0 => self.now + rng.below(20_000),
                1..=24 => self.now,
                _ => self.now + rng.below(8),
            },
            Pace::Mixed => self.now + rng.exponential(30_000.0),
            Pace::Grid => {
                let tai = tai_from_utc(self.now);
                let grid = match rng.below(6) {
                    0 => 10 * MILLISECOND,
                    1 => 100 * MILLISECOND,
                    2 => SECOND,
                    3 => 1 << VISIT_SHIFT,
                    4 => {
                        // A visit to a low index, which the few flows of a quiet table have.
                        let visit = rng.below(32) << VISIT_SHIFT;
                        let next = ((tai >> PERIOD_SHIFT) + 1) << PERIOD_SHIFT | visit;
                        self.now += next - tai + beside - 1;
                        return;
                    }
                    _ => {
                        self.now += rng.below(3 * MILLISECOND);
                        return;
                    }
                };
                (self.now + 1).max(self.now + (grid - tai % grid) + beside - 1)
            }
            Pace::Edges => {
                let wait = match rng.below(16) {
                    n @ 0..=7 => WAITS[n as usize],
                    8 => rng.below(2 * SECOND),
                    _ => rng.below(1_000_000),
                };
                // Time goes on: the wait is counted from the flow's last packet if that is still ahead.
                let at = flow.seen + wait + beside;
                if flow.seen > 0 && at > self.now + 1 {
                    at - 1
                } else {
                    self.now + rng.below(1000)
                }
            }
            Pace::Slow => self.now + rng.between(SECOND / 4, SECOND * 19 / 20),
        };
    }

    /// Encode and write one segment, and take note of it for copies.
    fn send(&mut self, flow: &mut Conversation, segment: &Segment) -> Result<(), Error> {
        let odd = if self.mood == Mood::Setup { 0.1 } else { 0.03 };
        let wire = flow.encode(&mut self.rng, segment, odd, &mut self.bytes);
        let mut bytes = std::mem::take(&mut self.bytes);
        self.capture_some(&mut bytes, wire);
        let result = self.put(&bytes, wire);
        flow.last[segment.from] = (bytes.clone(), wire);
        self.bytes = bytes;
        flow.seen = self.now;
        result
    }

    /// How much of a frame was captured: mostly the headers and a little more, seldom all, seldom less.
    fn capture_some(&mut self, bytes: &mut Vec<u8>, wire: u32) {
        let headers = bytes.len();
        let captured = match self.rng.below(100) {
            0 => self.rng.between(1, headers as u64) as usize,
            1..=4 => wire as usize,
            5..=40 => headers,
            _ => headers + self.rng.below(20) as usize,
        };
        let captured = captured.min(wire as usize);
        bytes.resize(captured, 0x55);
    }

    fn put(&mut self, bytes: &[u8], wire: u32) -> Result<(), Error> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        // Now and then a frame is late.
        let time = match self.rng.below(200) {
            0 => self.now.saturating_sub(self.rng.below(2 * SECOND)),
            1 => self.now - 1,
            _ => self.now,
        };
        // Each conversation mostly has a port for each direction, as on a line.
        let interface = match self.rng.below(16) {
            0 => self.rng.below(2) as u32,
            _ => u32::from(bytes.get(11).copied().unwrap_or(0) & 1),
        };
        self.out.write(time, interface, bytes, wire)
    }

    /// One packet of a conversation, right or wrong.
    fn act(&mut self, flow: &mut Conversation) -> Result<(), Error> {
        if self.rng.below(40) == 0 {
            let wire = frame::junk(&mut self.rng, flow.ends[0], flow.ends[1], &mut self.bytes);
            let bytes = std::mem::take(&mut self.bytes);
            let result = self.put(&bytes, wire);
            self.bytes = bytes;
            return result;
        }
        if !flow.is_tcp() {
            let segment = Segment {
                from: self.rng.below(2) as usize,
                len: self.rng.below(1400) as u32,
                ..Segment::default()
            };
            return self.send(flow, &segment);
        }
        let setup = flow.phase != Phase::Up;
        let proceed = match (self.mood, setup) {
            (Mood::Setup, true) => 0.4,
            (_, true) => 0.75,
            _ => 0.35,
        };
        if self.rng.chance(proceed) {
            return self.proceed(flow);
        }
        let wrong = match self.mood {
            Mood::Any => self.rng.below(5),
            Mood::Setup => *self.rng.pick(&[0, 0, 0, 1, 2, 3, 4]).unwrap_or(&0),
            Mood::Data => *self.rng.pick(&[1, 1, 2, 2, 2, 4]).unwrap_or(&1),
            Mood::Close => *self.rng.pick(&[0, 1, 2, 3, 3, 3, 4]).unwrap_or(&3),
        };
        match wrong {
            0 => self.wrong_setup(flow),
            1 => self.wrong_data(flow),
            2 => self.wrong_ack(flow),
            3 => self.wrong_close(flow),
            _ => self.beside(flow),
        }
    }

    /// What sane hosts would do next.
    fn proceed(&mut self, flow: &mut Conversation) -> Result<(), Error> {
        let rng = &mut self.rng;
        let segment = match flow.phase {
            Phase::New => {
                flow.phase = match rng.below(8) {
                    // The capture begins later.
                    0 => Phase::Syn,
                    1 => Phase::Up,
                    _ => Phase::Syn,
                };
                if flow.phase == Phase::Up {
                    flow.in_order(rng, 0)
                } else {
                    flow.syn(rng, 0, false)
                }
            }
            Phase::Syn => {
                flow.phase = Phase::SynAck;
                flow.syn(rng, 1, true)
            }
            Phase::SynAck => {
                flow.phase = Phase::Up;
                for side in 0..2 {
                    flow.sides[side].acked = flow.sides[1 - side].next;
                }
                if rng.chance(0.1) {
                    // The client's ACK was not seen: the server goes on.
                    flow.in_order(rng, 1)
                } else if rng.chance(0.2) {
                    flow.in_order(rng, 0)
                } else {
                    flow.pure_ack(0, flow.sides[1].next)
                }
            }
            Phase::Up => {
                let from = rng.below(2) as usize;
                let (own, peer) = (flow.sides[from], flow.sides[1 - from]);
                let chance = if self.mood == Mood::Close { 0.2 } else { 0.01 };
                if peer.next != own.acked && rng.chance(0.5) {
                    flow.pure_ack(from, peer.next)
                } else if (peer.fin || rng.chance(chance)) && !own.fin {
                    let mut last = flow.in_order(rng, from);
                    last.flags |= FIN;
                    last.len *= u32::from(rng.chance(0.3));
                    last
                } else if own.fin && peer.fin && rng.chance(0.5) {
                    flow.begin_again(rng, from);
                    flow.syn(rng, from, false)
                } else {
                    flow.in_order(rng, from)
                }
            }
        };
        flow.note(&segment);
        if rng.chance(0.05) {
            flow.sides[segment.from].window = window(rng);
        }
        self.send(flow, &segment)
    }

    /// SYNs out of place.
    fn wrong_setup(&mut self, flow: &mut Conversation) -> Result<(), Error> {
        let rng = &mut self.rng;
        let from = rng.below(2) as usize;
        let segment = match rng.below(12) {
            0..=2 => flow.syn(rng, 0, false),
            3 => flow.syn(rng, 1, false),
            4 | 5 => flow.syn(rng, 1, true),
            6 => flow.syn(rng, 0, true),
            7 => {
                flow.begin_again(rng, from);
                let again = flow.syn(rng, from, false);
                flow.note(&again);
                flow.phase = Phase::Syn;
                again
            }
            8 => {
                let mut odd = flow.syn(rng, from, true);
                odd.ack = Conversation::near(rng, odd.ack);
                odd
            }
            9 => {
                let answer = rng.chance(0.5);
                let mut odd = flow.syn(rng, from, answer);
                odd.seq = Conversation::near(rng, flow.sides[from].next);
                odd
            }
            10 => {
                // A challenge ACK, or one that nothing was sent for.
                let ack = Conversation::near(rng, flow.sides[0].next);
                flow.pure_ack(1, ack)
            }
            _ => {
                let mut odd = flow.syn(rng, from, false);
                odd.flags |= rng.bits() as u8;
                odd.len = *rng.pick(&[0, 0, 1, 100]).unwrap_or(&0);
                odd
            }
        };
        self.send(flow, &segment)
    }

    /// Data out of place.
    fn wrong_data(&mut self, flow: &mut Conversation) -> Result<(), Error> {
        let rng = &mut self.rng;
        let from = rng.below(2) as usize;
        let mut segment = flow.in_order(rng, from);
        match rng.below(16) {
            // Again, whole or in part, or with more behind it.
            0..=2 => {
                segment.seq = segment.seq.wrapping_sub(segment.len);
            }
            3 | 4 => {
                segment.seq = segment
                    .seq
                    .wrapping_sub(1 + rng.below(u64::from(segment.len) + 100) as u32);
                let end = segment.seq.wrapping_add(segment.len);
                if end.wrapping_sub(flow.sides[from].next) < 1 << 31 {
                    flow.sides[from].next = end;
                }
            }
            // A gap.
            5..=7 => {
                segment.seq = segment.seq.wrapping_add(1 + length(rng));
                flow.note(&segment);
            }
            // Wild, once or twice.
            8 => segment.seq = Conversation::near(rng, segment.seq),
            9 => {
                segment.seq = segment
                    .seq
                    .wrapping_add(1 << 30)
                    .wrapping_add(rng.below(1 << 30) as u32);
                self.send(flow, &segment)?;
                if self.rng.chance(0.7) {
                    segment.seq = segment.seq.wrapping_add(segment.len);
                    flow.note(&segment);
                }
            }
            // Keep-alives and probes.
            10 | 11 => {
                segment.seq = segment.seq.wrapping_sub(rng.below(2) as u32);
                segment.len = rng.below(2) as u32;
                segment.flags = ACK;
            }
            12 => {
                // More than the window takes.
                flow.sides[1 - from].window = 1 + rng.below(3) as u16;
                segment.len = 1460;
                flow.note(&segment);
            }
            13 => {
                segment.flags = if rng.chance(0.5) { 0 } else { PSH };
                flow.note(&segment);
            }
            14 => {
                segment.len = 0;
                segment.seq = Conversation::near(rng, segment.seq);
            }
            _ => segment.flags = rng.bits() as u8,
        }
        self.send(flow, &segment)
    }

    /// Acknowledgments and windows out of place.
    fn wrong_ack(&mut self, flow: &mut Conversation) -> Result<(), Error> {
        let rng = &mut self.rng;
        let from = rng.below(2) as usize;
        let (own, peer) = (flow.sides[from], flow.sides[1 - from]);
        let choice = rng.below(12);
        let mut segment = flow.pure_ack(from, own.acked);
        match choice {
            0..=3 => {
                // Duplicates: something must be under way for them to count.
                if peer.next == own.acked {
                    let data = flow.in_order(rng, 1 - from);
                    flow.note(&data);
                    self.send(flow, &data)?;
                }
                let times = 1 + self.rng.below(5);
                let with_sack = self.rng.chance(0.5);
                for _ in 0..times {
                    if with_sack {
                        flow.choose_sack(&mut self.rng, from);
                    }
                    self.send(flow, &segment)?;
                }
                return Ok(());
            }
            4 => {
                flow.choose_sack(rng, from);
                if rng.chance(0.5) {
                    segment.ack = peer.next;
                    flow.sides[from].acked = peer.next;
                }
            }
            5 => segment.ack = Conversation::near(rng, own.acked),
            6 => {
                segment.ack = peer.next.wrapping_add(1 + rng.below(3000) as u32);
                flow.sides[from].acked = segment.ack;
            }
            7 => {
                segment.ack = own.acked.wrapping_add(1 << 30).wrapping_add(rng.below(1 << 31) as u32);
                self.send(flow, &segment)?;
                if self.rng.chance(0.7) {
                    segment.ack = segment.ack.wrapping_add(1);
                }
            }
            8 | 9 => flow.sides[from].window = 0,
            10 => {
                flow.sides[from].window = window(rng);
                segment.ack = peer.next;
                flow.sides[from].acked = peer.next;
            }
            _ => {
                // Both directions at the same moment.
                let both = [flow.in_order(rng, 0), flow.in_order(rng, 1)];
                for data in both {
                    flow.note(&data);
                    self.send(flow, &data)?;
                }
                return Ok(());
            }
        }
        self.send(flow, &segment)
    }

    /// FIN and RST out of place.
    fn wrong_close(&mut self, flow: &mut Conversation) -> Result<(), Error> {
        let rng = &mut self.rng;
        let from = rng.below(2) as usize;
        let mut segment = flow.in_order(rng, from);
        match rng.below(10) {
            0 | 1 => {
                segment.flags |= FIN;
                segment.len *= u32::from(rng.chance(0.5));
                flow.note(&segment);
            }
            2 => {
                // The FIN again.
                segment.flags = FIN | ACK;
                segment.seq = segment.seq.wrapping_sub(u32::from(flow.sides[from].fin));
                segment.len = 0;
            }
            3 => {
                segment.flags |= FIN;
                segment.seq = Conversation::near(rng, segment.seq);
            }
            4 => {
                segment.flags |= FIN;
                segment.seq = segment.seq.wrapping_sub(segment.len / 2 + 1);
            }
            5 => {
                segment.flags = RST | ACK;
                segment.len = 0;
            }
            6 => {
                segment.flags = RST;
                segment.seq = Conversation::near(rng, segment.seq);
            }
            7 => segment.flags = RST | rng.bits() as u8,
            8 => {
                flow.begin_again(rng, from);
                segment = flow.syn(rng, from, false);
                flow.note(&segment);
                flow.phase = Phase::Syn;
            }
            _ => {
                // A closed connection is answered.
                segment = flow.syn(rng, from, true);
                segment.seq = Conversation::near(rng, segment.seq);
            }
        }
        self.send(flow, &segment)
    }

    /// Copies, ICMP errors, what comes by another way.
    fn beside(&mut self, flow: &mut Conversation) -> Result<(), Error> {
        let from = self.rng.below(2) as usize;
        match self.rng.below(4) {
            0 | 1 => {
                let (bytes, wire) = flow.last[from].clone();
                if bytes.is_empty() {
                    return self.proceed(flow);
                }
                flow.seen = self.now;
                self.put(&bytes, wire)
            }
            2 => {
                let segment = flow.in_order(&mut self.rng, from);
                // Now and then about a flow that nobody knows.
                let stranger = self.rng.chance(0.1).then(|| Conversation::new(&mut self.rng, false));
                let about = stranger.as_ref().unwrap_or(flow);
                let wire = about.icmp_error(&mut self.rng, &segment, &mut self.bytes);
                let bytes = std::mem::take(&mut self.bytes);
                let result = self.put(&bytes, wire);
                self.bytes = bytes;
                result
            }
            _ => {
                // An empty or early segment with an old IP id.
                let side = &mut flow.sides[from];
                side.id = side.id.wrapping_sub(side.id_step);
                let segment = flow.pure_ack(from, flow.sides[from].acked);
                self.send(flow, &segment)
            }
        }
    }

    fn fresh_syn(&mut self) -> Result<(), Error> {
        let mut flow = Conversation::new(&mut self.rng, false);
        flow.protocol = frame::TCP;
        let segment = flow.syn(&mut self.rng, 0, false);
        self.now += self.rng.below(8);
        self.send(&mut flow, &segment)
    }

    /// A new flow with each packet.
    fn flood(&mut self) -> Result<(), Error> {
        for _ in 0..self.rng.between(500, 4_000) {
            if self.rng.chance(0.8) {
                self.fresh_syn()?;
            } else {
                let mut flow = Conversation::new(&mut self.rng, false);
                self.act(&mut flow)?;
            }
        }
        Ok(())
    }

    /// Blocks, round trips and setups that grow older than the time limit.
    fn long_blocks(&mut self) -> Result<(), Error> {
        let mut flow = Conversation::new(&mut self.rng, false);
        flow.protocol = frame::TCP;
        for _ in 0..3 {
            self.proceed(&mut flow)?;
        }
        for _ in 0..900 {
            self.pass_time(Pace::Slow, &flow);
            let mut segment = flow.in_order(&mut self.rng, 0);
            segment.flags = ACK;
            segment.len = 1 + self.rng.below(3) as u32;
            flow.note(&segment);
            self.send(&mut flow, &segment)?;
            if self.rng.chance(0.002) {
                let answer = flow.pure_ack(1, flow.sides[0].next);
                self.send(&mut flow, &answer)?;
            }
        }
        Ok(())
    }

    /// Setups kept pending by repeated SYNs or SYN-ACKs until they are given up.
    fn long_setups(&mut self) -> Result<(), Error> {
        let mut flows: Vec<Conversation> = (0..self.rng.between(20, 150))
            .map(|_| Conversation::new(&mut self.rng, false))
            .collect();
        for round in 0..self.rng.between(3, 6) {
            for flow in &mut flows {
                flow.protocol = frame::TCP;
                let server = round > 0 && self.rng.chance(0.3);
                let segment = flow.syn(&mut self.rng, usize::from(server), server);
                self.now += self.rng.below(100_000);
                self.send(flow, &segment)?;
            }
            self.now += self.rng.between(60, 89) * SECOND + self.rng.below(SECOND);
        }
        for flow in &mut flows {
            flow.phase = Phase::SynAck;
            self.now += self.rng.below(10_000_000);
            self.act(flow)?;
        }
        Ok(())
    }

    /// Connections closed in order or reset, and what comes within the linger time and just after it.
    fn closings(&mut self) -> Result<(), Error> {
        let mut flows: Vec<Conversation> = (0..self.rng.between(50, 300))
            .map(|_| Conversation::new(&mut self.rng, false))
            .collect();
        for flow in &mut flows {
            flow.protocol = frame::TCP;
            for _ in 0..3 {
                self.proceed(flow)?;
            }
            let first = self.rng.below(2) as usize;
            if self.rng.chance(0.3) {
                let mut segment = flow.in_order(&mut self.rng, first);
                segment.flags = RST | ACK;
                segment.len = 0;
                self.send(flow, &segment)?;
                continue;
            }
            for from in [first, 1 - first] {
                let mut segment = flow.in_order(&mut self.rng, from);
                segment.flags |= FIN;
                segment.ack = flow.sides[1 - from].next;
                flow.note(&segment);
                self.send(flow, &segment)?;
            }
            let segment = flow.pure_ack(first, flow.sides[1 - first].next);
            flow.note(&segment);
            self.send(flow, &segment)?;
            self.now += self.rng.below(1000);
        }
        self.now += 4 * SECOND - self.rng.below(3) * MILLISECOND;
        for flow in &mut flows {
            self.pass_time(Pace::Edges, &flow.clone());
            if self.rng.chance(0.3) {
                self.act(flow)?;
            }
        }
        self.now += 5 * SECOND;
        Ok(())
    }

    /// Flows left alone in every state until they time out.
    fn dying(&mut self) -> Result<(), Error> {
        let steps = self.rng.below(3);
        for _ in 0..self.rng.between(50, 250) {
            let mut flow = Conversation::new(&mut self.rng, false);
            for _ in 0..=self.rng.below(steps + 1) {
                self.proceed(&mut flow)?;
            }
            self.now += self.rng.below(50_000);
        }
        self.now += *self.rng.pick(&[59, 89, 91, 901]).unwrap_or(&901) * SECOND;
        Ok(())
    }

    /// Data in order behind pauses that are about as long as those after which skipped IP ids tell.
    fn pauses(&mut self) -> Result<(), Error> {
        let number = self.rng.bits() as u32;
        let mut flow = Conversation::plain(&mut self.rng, number);
        for side in &mut flow.sides {
            (side.id_step, side.id_skips) = (1, 0.9);
        }
        // The setup may be pending.
        for _ in 0..self.rng.below(4) {
            self.proceed(&mut flow)?;
        }
        let from = self.rng.below(2) as usize;
        let mut data = self.now;
        for _ in 0..self.rng.between(700, 3_200) {
            if self.rng.chance(0.03) {
                self.act(&mut flow)?;
            }
            let mut segment = flow.in_order(&mut self.rng, from);
            match self.rng.below(10) {
                0..=2 => segment.flags |= FIN,
                3 | 4 => (segment.flags, segment.len) = (FIN | ACK, 0),
                5 => segment.len = 0,
                6 => segment.flags = PSH,
                7 => segment.seq = segment.seq.wrapping_add(1),
                _ => {}
            }
            flow.note(&segment);
            self.send(&mut flow, &segment)?;
            if segment.len > 0 {
                data = self.now;
            }
            let pause = match self.rng.below(8) {
                0 => SECOND * 3 / 2,
                1 => self.rng.below(3 * MILLISECOND),
                _ => (1 << 20) - 1 + self.rng.below(2),
            };
            self.now = self.now.max(data + pause);
        }
        Ok(())
    }

    /// Blocks that grow by gaps until half of the sequence space is in them.
    fn leaps(&mut self) -> Result<(), Error> {
        for _ in 0..self.rng.between(30, 70) {
            let mut flow = Conversation::new(&mut self.rng, false);
            flow.protocol = frame::TCP;
            for _ in 0..3 {
                self.proceed(&mut flow)?;
            }
            let from = self.rng.below(2) as usize;
            for _ in 0..self.rng.between(2, 8) {
                let mut segment = flow.in_order(&mut self.rng, from);
                segment.flags = ACK;
                segment.len = 100;
                segment.seq = segment.seq.wrapping_add((1 << 30) - 1 - self.rng.below(1 << 20) as u32);
                flow.note(&segment);
                self.send(&mut flow, &segment)?;
            }
            self.now += self.rng.below(1_000_000);
        }
        Ok(())
    }
}
