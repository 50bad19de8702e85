//! The path between the two hosts: four links and a heap of timed events. No clock and no I/O: frames and times go in,
//! what passes the tap, what arrives and what was done come out, in time order.

use crate::config::{Scenario, TapConfig};
use crate::ecn;
use crate::frame::TcpSummary;
use crate::link::{Decision, Link};
use crate::rng::Rng;
use crate::truth::{Cause, Direction, WireTruth};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// Most frames on the way at once: about 400 MB of full-sized ones.
const MAX_FRAMES_HELD: usize = 1 << 18;

/// What the wire has to say.
#[derive(Debug)]
pub enum Output {
    /// A frame passes the middle tap.
    Tap {
        /// UTC nanoseconds; never goes backwards.
        time_ns: u64,
        /// Number of the frame.
        number: u64,
        /// The capture has it.
        captured: bool,
        /// It is there only in the capture.
        mirrored: bool,
        /// A queue on its way marked it (ECN).
        marked: bool,
        /// Which way it goes.
        direction: Direction,
        /// The whole frame.
        frame: Rc<[u8]>,
    },
    /// A frame reaches the host at its end.
    Deliver {
        /// Due time, UTC nanoseconds.
        time_ns: u64,
        /// Number of the frame.
        number: u64,
        /// Which way it went.
        direction: Direction,
        /// The whole frame.
        frame: Rc<[u8]>,
    },
    /// Something was done to a frame.
    Truth(WireTruth),
}

#[derive(Debug, Clone)]
struct Travelling {
    number: u64,
    direction: Direction,
    /// A queue has marked it (ECN).
    marked: bool,
    frame: Rc<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Tap,
    /// A copy that only the capture sees.
    Mirror,
    End,
}

#[derive(Debug)]
struct Event {
    time_ns: u64,
    /// Order of insertion: equal times come out as they went in.
    order: u64,
    place: Place,
    travelling: Travelling,
}

impl Event {
    fn key(&self) -> (u64, u64) {
        (self.time_ns, self.order)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The four links and the frames on their way.
#[derive(Debug)]
pub struct Wire {
    /// By leg (0, 1), then by direction (client to server, server to client).
    links: [[Link; 2]; 2],
    tap: TapConfig,
    tap_rng: Rng,
    events: BinaryHeap<Reverse<Event>>,
    outputs: VecDeque<Output>,
    frames_taken: u64,
    events_made: u64,
}

impl Wire {
    /// The path of a scenario; `start_ns` is where its periods count from.
    pub fn new(scenario: &Scenario, start_ns: u64) -> Wire {
        let seed = scenario.seed;
        let link = |config: &crate::config::LinkConfig, purpose| Link::new(config.clone(), seed, purpose, start_ns);
        Wire {
            links: [
                [link(&scenario.leg1.c2s, 1), link(&scenario.leg1.s2c, 2)],
                [link(&scenario.leg2.c2s, 3), link(&scenario.leg2.s2c, 4)],
            ],
            tap: scenario.tap.clone(),
            tap_rng: Rng::new(seed, 5),
            events: BinaryHeap::new(),
            outputs: VecDeque::new(),
            frames_taken: 0,
            events_made: 0,
        }
    }

    /// Takes a frame in from the host at the start of `direction`. Times must not go backwards, and [`Wire::advance`]
    /// must not have been given a later one. Returns the frame's number.
    pub fn take(&mut self, now_ns: u64, direction: Direction, frame: &[u8]) -> u64 {
        self.frames_taken += 1;
        let travelling = Travelling {
            number: self.frames_taken,
            direction,
            marked: false,
            frame: Rc::from(frame),
        };
        self.cross(now_ns, Place::Tap, travelling);
        self.frames_taken
    }

    /// Time of the next event.
    pub fn next_event_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(event)| event.time_ns)
    }

    /// Lets everything happen that is due by `now_ns`; then fetch it with [`Wire::next_output`].
    pub fn advance(&mut self, now_ns: u64) {
        while self.next_event_ns().is_some_and(|time_ns| time_ns <= now_ns) {
            let Some(Reverse(event)) = self.events.pop() else {
                return;
            };
            let Event {
                time_ns,
                place,
                travelling,
                ..
            } = event;
            let frame = Rc::clone(&travelling.frame);
            let direction = travelling.direction;
            let number = travelling.number;
            let marked = travelling.marked;
            match place {
                Place::Tap => {
                    let captured = self.capture(time_ns, &travelling);
                    self.outputs.push_back(Output::Tap {
                        time_ns,
                        number,
                        captured,
                        mirrored: false,
                        marked,
                        direction,
                        frame,
                    });
                    self.cross(time_ns, Place::End, travelling);
                }
                Place::Mirror => self.outputs.push_back(Output::Tap {
                    time_ns,
                    number,
                    captured: true,
                    mirrored: true,
                    marked,
                    direction,
                    frame,
                }),
                Place::End => {
                    self.outputs.push_back(Output::Deliver {
                        time_ns,
                        number,
                        direction,
                        frame,
                    });
                }
            }
        }
    }

    /// The next thing that happened.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether the capture has the frame; if it has it twice, the second copy is scheduled.
    fn capture(&mut self, now_ns: u64, travelling: &Travelling) -> bool {
        // Both are drawn always, as for the links.
        let (drop, copy) = (self.tap_rng.unit(), self.tap_rng.unit());
        let copy_ns = (self.tap.copy_us * 1e3).round() as u64;
        let (cause, extra_ns) = if drop < self.tap.drop {
            (Cause::CaptureDrop, None)
        } else if copy < self.tap.copy {
            (Cause::CaptureCopy, Some(copy_ns))
        } else {
            return true;
        };
        self.outputs.push_back(Output::Truth(WireTruth {
            time_ns: now_ns,
            leg: 0,
            direction: travelling.direction,
            cause,
            extra_ns,
            frame: travelling.number,
            frame_len: travelling.frame.len() as u32,
            passed_tap: true,
            tap_time_ns: Some(now_ns),
            tcp: TcpSummary::parse(&travelling.frame),
        }));
        if cause == Cause::CaptureCopy {
            self.schedule(now_ns + copy_ns, Place::Mirror, travelling.clone());
        }
        cause != Cause::CaptureDrop
    }

    /// Sends a frame over one leg towards `to`.
    fn cross(&mut self, now_ns: u64, to: Place, mut travelling: Travelling) {
        let direction = travelling.direction;
        // Client to server meets leg 1 first, server to client leg 2.
        let leg = match (direction, to) {
            (Direction::C2s, Place::Tap) | (Direction::S2c, Place::End) => 0,
            _ => 1,
        };
        let tcp = TcpSummary::parse(&travelling.frame);
        let frame_len = travelling.frame.len();
        let link = &mut self.links[leg][direction as usize];
        let decision = if self.events.len() < MAX_FRAMES_HELD {
            link.decide(now_ns, &travelling.frame, tcp.as_ref())
        } else {
            Decision::Drop(Cause::WireFull)
        };
        let window_scale = link.window_scale();

        // `exit_ns`: when the frame (or copy) in question leaves the leg, unless it was dropped.
        let number = travelling.number;
        let truth = |cause: Cause, extra_ns: Option<u64>, exit_ns: Option<u64>| {
            let tap_time_ns = match to {
                Place::Tap => exit_ns,
                Place::Mirror | Place::End => Some(now_ns),
            };
            Output::Truth(WireTruth {
                time_ns: now_ns,
                leg: leg as u8 + 1,
                direction,
                cause,
                extra_ns,
                frame: number,
                frame_len: frame_len as u32,
                passed_tap: tap_time_ns.is_some(),
                tap_time_ns,
                tcp: tcp.clone(),
            })
        };
        let passage = match decision {
            Decision::Drop(cause) => {
                self.outputs.push_back(truth(cause, None, None));
                return;
            }
            Decision::Pass(passage) => passage,
        };
        for (cause, extra_ns) in [
            (Cause::QueueDelay, passage.queue_wait_ns),
            (Cause::Jitter, passage.jitter_ns),
            (Cause::Reorder, passage.held_back_ns),
        ] {
            if extra_ns > 0 {
                self.outputs
                    .push_back(truth(cause, Some(extra_ns), Some(passage.exit_ns)));
            }
        }
        if passage.is_marked {
            ecn::mark(Rc::make_mut(&mut travelling.frame));
            travelling.marked = true;
            self.outputs
                .push_back(truth(Cause::EcnMark, None, Some(passage.exit_ns)));
        }
        if let Some(window_scale) = window_scale
            && tcp.as_ref().is_some_and(TcpSummary::is_syn)
            && window_scale.rewrite(Rc::make_mut(&mut travelling.frame))
        {
            self.outputs
                .push_back(truth(Cause::WindowScale, None, Some(passage.exit_ns)));
        }
        let copy = passage.copy_exit_ns.map(|copy_exit_ns| {
            let gap_ns = copy_exit_ns - passage.exit_ns;
            self.outputs
                .push_back(truth(Cause::Duplicate, Some(gap_ns), Some(copy_exit_ns)));
            (copy_exit_ns, travelling.clone())
        });
        self.schedule(passage.exit_ns, to, travelling);
        if let Some((copy_exit_ns, copy)) = copy {
            self.schedule(copy_exit_ns, to, copy);
        }
    }

    fn schedule(&mut self, time_ns: u64, place: Place, travelling: Travelling) {
        self.events_made += 1;
        self.events.push(Reverse(Event {
            time_ns,
            order: self.events_made,
            place,
            travelling,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::tests::checked_frame;
    use crate::frame::tests::tcp_frame;

    const MS: u64 = 1_000_000;

    fn scenario(text: &str) -> Scenario {
        match Scenario::parse(text, "test") {
            Ok(scenario) => scenario,
            Err(error) => panic!("{error}"),
        }
    }

    fn drain(wire: &mut Wire) -> Vec<Output> {
        wire.advance(u64::MAX);
        std::iter::from_fn(|| wire.next_output()).collect()
    }

    #[test]
    fn each_direction_meets_its_legs_in_path_order() {
        let mut wire = Wire::new(
            &scenario(
                "[leg1.c2s]\ndelay_ms = 1\n[leg2.c2s]\ndelay_ms = 2\n[leg1.s2c]\ndelay_ms = 4\n[leg2.s2c]\ndelay_ms = 8",
            ),
            0,
        );
        wire.take(0, Direction::C2s, &tcp_frame(80, 0x10, 1, 0));
        wire.take(0, Direction::S2c, &tcp_frame(80, 0x10, 1, 0));
        let times: Vec<_> = drain(&mut wire)
            .iter()
            .map(|output| match output {
                Output::Tap { time_ns, .. } => ("tap", *time_ns / MS),
                Output::Deliver {
                    time_ns,
                    direction: Direction::C2s,
                    ..
                } => ("server", *time_ns / MS),
                Output::Deliver {
                    time_ns,
                    direction: Direction::S2c,
                    ..
                } => ("client", *time_ns / MS),
                Output::Truth(truth) => panic!("{truth:?}"),
            })
            .collect();
        assert_eq!(times, [("tap", 1), ("server", 3), ("tap", 8), ("client", 12)]);
    }

    #[test]
    fn a_drop_says_whether_the_tap_saw_the_frame() {
        for (key, direction, leg, passed) in [
            ("leg1.c2s", Direction::C2s, 1, false),
            ("leg2.c2s", Direction::C2s, 2, true),
            ("leg2.s2c", Direction::S2c, 2, false),
            ("leg1.s2c", Direction::S2c, 1, true),
        ] {
            let mut wire = Wire::new(&scenario(&format!("[{key}]\nloss = 1")), 0);
            wire.take(5, direction, &tcp_frame(80, 0x18, 42, 10));
            let outputs = drain(&mut wire);
            let truths: Vec<_> = outputs
                .iter()
                .filter_map(|output| {
                    if let Output::Truth(truth) = output {
                        Some(truth)
                    } else {
                        None
                    }
                })
                .collect();
            assert_eq!(truths.len(), 1);
            assert_eq!((truths[0].leg, truths[0].passed_tap), (leg, passed));
            assert_eq!(truths[0].tap_time_ns, passed.then_some(5));
            assert_eq!(truths[0].tcp.as_ref().map(|tcp| (tcp.seq, tcp.len)), Some((42, 10)));
            assert_eq!(
                outputs.iter().filter(|o| matches!(o, Output::Tap { .. })).count(),
                usize::from(passed)
            );
            assert!(!outputs.iter().any(|o| matches!(o, Output::Deliver { .. })));
        }
    }

    /// What a box changes, those behind it see: in the tap's capture if it is before the tap.
    #[test]
    fn marks_and_scales_are_in_the_frames_behind_the_leg() {
        let boxes = "rate_mbit = 8\necn_mark_bytes = 1000\nwindow_scale = { set = 2 }";
        for (leg, at_tap) in [(1, true), (2, false)] {
            let mut wire = Wire::new(&scenario(&format!("[leg{leg}.c2s]\n{boxes}")), 0);
            let mut rng = Rng::new(1, 0);
            let syn = checked_frame(&mut rng, 2, &[1, 3, 3, 7]);
            wire.take(0, Direction::C2s, &syn);
            let mut data = tcp_frame(80, 0x18, 1, 1000);
            data[15] = 2;
            wire.take(0, Direction::C2s, &data);
            let (mut deeds, mut at_tap_is, mut at_end_is) = (Vec::new(), Vec::new(), Vec::new());
            let facts = |frame: &[u8]| (frame[15], if frame.len() > 500 { 0 } else { frame[57] });
            for output in drain(&mut wire) {
                match output {
                    Output::Truth(truth) if truth.cause != Cause::QueueDelay => {
                        deeds.push((truth.leg, truth.cause, truth.frame));
                    }
                    Output::Tap { frame, marked, .. } => at_tap_is.push((facts(&frame), marked)),
                    Output::Deliver { frame, .. } => at_end_is.push(facts(&frame)),
                    Output::Truth(_) => {}
                }
            }
            let changed = [(0, 2), (3, 0)];
            assert_eq!(at_end_is, changed);
            assert_eq!(deeds, [(leg, Cause::WindowScale, 1), (leg, Cause::EcnMark, 2)]);
            let [syn, data] = if at_tap { changed } else { [(0, 7), (2, 0)] };
            assert_eq!(at_tap_is, [(syn, false), (data, at_tap)]);
        }
    }

    /// What the capture does to itself, the frames do not feel.
    #[test]
    fn the_capture_misses_and_copies_frames_that_travel_on() {
        let mut wire = Wire::new(&scenario("[tap]\ndrop = 0.2\ncopy = 0.3\ncopy_us = 7"), 0);
        let mut outputs = Vec::new();
        for i in 0..1000u64 {
            wire.advance(i * MS);
            wire.take(i * MS, Direction::C2s, &tcp_frame(80, 0x18, i as u32, 10));
            outputs.extend(std::iter::from_fn(|| wire.next_output()));
        }
        outputs.extend(drain(&mut wire));
        let (mut delivered, mut captured, mut copies, mut deeds) = (0, 0, 0, [0, 0]);
        for output in &outputs {
            match output {
                Output::Deliver { .. } => delivered += 1,
                Output::Tap {
                    time_ns,
                    mirrored: true,
                    ..
                } => {
                    copies += 1;
                    assert_eq!(time_ns % MS, 7000);
                }
                Output::Tap { captured: true, .. } => captured += 1,
                Output::Tap { .. } => {}
                Output::Truth(truth) => {
                    assert_eq!((truth.leg, truth.passed_tap), (0, true));
                    deeds[usize::from(truth.cause == Cause::CaptureCopy)] += 1;
                }
            }
        }
        assert_eq!((delivered, captured + deeds[0], copies), (1000, 1000, deeds[1]));
        assert!(
            (150..250).contains(&deeds[0]) && (190..290).contains(&deeds[1]),
            "{deeds:?}"
        );
    }

    #[test]
    fn frames_are_conserved_and_the_tap_is_in_time_order() {
        let text = "[leg1.c2s]\nloss = 0.1\nduplicate = 0.1\nreorder = 0.1\njitter_ms = 1\n\
                    [leg2.c2s]\nloss = 0.1\nduplicate = 0.1\nrate_mbit = 20\nqueue_bytes = 5000";
        let mut wire = Wire::new(&scenario(text), 0);
        let taken = 3000u64;
        let mut outputs = Vec::new();
        for i in 0..taken {
            let now = i * 100_000;
            wire.advance(now);
            wire.take(now, Direction::C2s, &tcp_frame(80, 0x10, i as u32, 200));
            outputs.extend(std::iter::from_fn(|| wire.next_output()));
        }
        outputs.extend(drain(&mut wire));
        let (mut tap, mut delivered, mut last_tap_ns) = (0, 0, 0);
        let mut balance = [taken as i64, 0];
        for output in &outputs {
            match output {
                Output::Tap { time_ns, .. } => {
                    assert!(*time_ns >= last_tap_ns);
                    last_tap_ns = *time_ns;
                    tap += 1;
                }
                Output::Deliver { .. } => delivered += 1,
                Output::Truth(truth) => {
                    let change = match truth.cause {
                        Cause::Duplicate => 1,
                        cause if cause.is_drop() => -1,
                        _ => 0,
                    };
                    balance[usize::from(truth.leg - 1)] += change;
                }
            }
        }
        assert_eq!(tap, balance[0]);
        assert_eq!(delivered, balance[0] + balance[1]);
        assert!(delivered < tap && tap > 2500);
    }
}
