//! What one direction of one leg does to a segment: a function of the segments, their times and the seed.

use crate::config::{Link as Config, SynBatches, draw_ms};
use crate::packet::{Segment, flag};
use crate::truth::Cause;
use crate::{Time, from_ms, from_s};
use std::collections::{HashMap, VecDeque};
use weir_lab::rng::Rng;

/// One direction of one leg.
#[derive(Debug)]
pub struct Link {
    config: Config,
    rng: Rng,
    bad: bool,
    /// When the transmitter is free again.
    free_at: Time,
    last_arrival: Time,
}

/// What becomes of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// It is at the other end at this time, with its time to live lower by so many hops.
    Arrives(Time, u8),
    /// It is lost.
    Lost(Cause),
}

impl Link {
    /// With random numbers of its own.
    pub fn new(config: Config, rng: Rng) -> Link {
        Link {
            config,
            rng,
            bad: false,
            free_at: 0,
            last_arrival: 0,
        }
    }

    /// Takes a segment in; may change its options.
    pub fn pass(&mut self, now: Time, segment: &mut Segment) -> Fate {
        let is_syn = segment.has(flag::SYN);
        let len = segment.frame_len();
        if let Some(cause) = self.loss(now, is_syn, len) {
            return Fate::Lost(cause);
        }
        let mut at = now;
        if self.config.rate_mbit > 0.0 {
            let bits = |bytes: f64| bytes * 8e3 / self.config.rate_mbit;
            let waiting = self.free_at.saturating_sub(now) as f64;
            if waiting + bits(f64::from(len)) > bits(self.config.queue_bytes as f64) {
                return Fate::Lost(Cause::QueueFull);
            }
            self.free_at = self.free_at.max(now) + bits(f64::from(len)) as Time;
            at = self.free_at;
        }
        let moved = self.config.reroute.filter(|reroute| now >= from_s(reroute.at_s));
        let (delay_ms, hops) = moved.map_or((self.config.delay_ms, self.config.hops), |to| (to.delay_ms, to.hops));
        at += from_ms(delay_ms) + from_ms(self.config.jitter_ms * self.rng.unit());
        if segment.has(flag::SYN) && self.config.strip_window_scale {
            segment.syn.scale = None;
        }
        // Whoever holds SYNs back lets others pass them.
        if let Some(periodic) = self.config.periodic.filter(|_| is_syn)
            && self.is_lossy(now)
        {
            let held = draw_ms(&mut self.rng, periodic.setup_delay_ms);
            if held > 0 {
                return Fate::Arrives(at.max(self.last_arrival) + held, hops);
            }
        }
        if let Some(detour) = self.config.detour
            && self.rng.unit() < detour.probability
        {
            return Fate::Arrives(at + draw_ms(&mut self.rng, detour.later_ms), hops);
        }
        if let Some(stall) = self.config.stall {
            let into = (now as f64 / 1e9 - stall.phase_s).rem_euclid(stall.period_s);
            if into < stall.length_s {
                at += from_s(stall.length_s - into);
            }
        }
        self.last_arrival = self.last_arrival.max(at);
        Fate::Arrives(self.last_arrival, hops)
    }

    fn loss(&mut self, now: Time, is_syn: bool, len: u32) -> Option<Cause> {
        // The same numbers are drawn for each segment whatever is switched on.
        let [random, periodic, burst, turn, syn] = std::array::from_fn(|_| self.rng.unit());
        let config = &self.config;
        if config.black_hole_above > 0 && len > config.black_hole_above {
            return Some(Cause::BlackHole);
        }
        if is_syn && syn < config.syn_loss {
            return Some(Cause::SynLoss);
        }
        if random < config.loss {
            return Some(Cause::RandomLoss);
        }
        if config.periodic.is_some_and(|p| periodic < p.probability) && self.is_lossy(now) {
            return Some(Cause::PeriodicLoss);
        }
        if let Some(model) = config.burst {
            self.bad = if self.bad {
                turn >= model.leave
            } else {
                turn < model.enter
            };
            if self.bad && burst < model.probability {
                return Some(Cause::BurstLoss);
            }
        }
        None
    }

    /// Now is in the lossy part of a period.
    fn is_lossy(&self, now: Time) -> bool {
        self.config.periodic.is_some_and(|p| {
            let since = now as f64 / 1e9 - p.phase_s;
            since.rem_euclid(p.period_s) < p.lossy_s
        })
    }
}

/// Losses that one connection's setup has before it.
#[derive(Debug, Clone, Copy)]
struct Toll {
    syns: u32,
    syn_acks: u32,
}

/// The batches of a leg.
#[derive(Debug, Default)]
pub struct Batches {
    /// Connections still to be chosen: not before this time, and what they lose.
    due: VecDeque<(Time, Toll)>,
    chosen: HashMap<u32, Toll>,
}

impl Batches {
    /// Lays out all batches of a leg.
    pub fn new(configs: &[SynBatches]) -> Batches {
        let mut due = Vec::new();
        for config in configs {
            let times = batch_times(config);
            let toll = Toll {
                syns: config.lose_syns,
                syn_acks: config.lose_syn_acks,
            };
            for number in 0..config.connections as usize {
                let batch = number * times.len() / config.connections as usize;
                due.push((times[batch], toll));
            }
        }
        // Stable: at the same time in the order of the description.
        due.sort_by_key(|&(at, _)| at);
        Batches {
            due: due.into(),
            chosen: HashMap::new(),
        }
    }

    /// A segment with SYN of this connection passes; is it lost? `first` says that it is its first SYN.
    pub fn lose(&mut self, now: Time, connection: u32, first: bool, segment: &Segment) -> bool {
        if self.due.is_empty() && self.chosen.is_empty() {
            return false;
        }
        let is_answer = segment.has(flag::ACK);
        if first && !is_answer && self.due.front().is_some_and(|&(at, _)| at <= now) {
            let (_, toll) = self.due.pop_front().unwrap_or((0, Toll { syns: 0, syn_acks: 0 }));
            self.chosen.insert(connection, toll);
        }
        let Some(toll) = self.chosen.get_mut(&connection) else {
            return false;
        };
        let left = if is_answer { &mut toll.syn_acks } else { &mut toll.syns };
        let lost = *left > 0;
        *left = left.saturating_sub(1);
        if toll.syns == 0 && toll.syn_acks == 0 {
            self.chosen.remove(&connection);
        }
        lost
    }
}

/// The times of the batches: intervals are a geometric series from the first to the last moment.
fn batch_times(config: &SynBatches) -> Vec<Time> {
    let count = config.batches.max(1) as usize;
    let intervals: Vec<f64> = (0..count.saturating_sub(1))
        .map(|n| config.interval_factor.powi(n as i32))
        .collect();
    let whole: f64 = intervals.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut at = config.from_s;
    let mut times = vec![from_s(at)];
    for interval in intervals {
        at += interval / whole * (config.to_s - config.from_s);
        times.push(from_s(at));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(len: u32) -> Segment {
        Segment {
            len,
            flags: flag::ACK,
            ..Segment::default()
        }
    }

    #[test]
    fn a_rate_spaces_frames_and_a_full_queue_drops() {
        let config = Config {
            delay_ms: 1.0,
            rate_mbit: 8.0,
            queue_bytes: 3000,
            ..Config::default()
        };
        let mut link = Link::new(config, Rng::new(1, 1));
        // 1000 bytes at 8 Mbit/s take 1 ms.
        let fates: Vec<Fate> = (0..4).map(|_| link.pass(0, &mut segment(946))).collect();
        assert_eq!(fates[0], Fate::Arrives(2_000_000, 0));
        assert_eq!(fates[2], Fate::Arrives(4_000_000, 0));
        assert_eq!(fates[3], Fate::Lost(Cause::QueueFull));
        assert_eq!(link.pass(3_000_000, &mut segment(946)), Fate::Arrives(5_000_000, 0));
    }

    #[test]
    fn periodic_loss_keeps_to_its_part_of_the_period() {
        let config = Config {
            periodic: Some(crate::config::Periodic {
                period_s: 5.0,
                lossy_s: 2.5,
                phase_s: 1.0,
                probability: 0.5,
                setup_delay_ms: weir_lab::config::Span::Fixed(0.0),
            }),
            ..Config::default()
        };
        let mut link = Link::new(config, Rng::new(1, 1));
        let mut lost = [0; 10];
        for ms in 0..20_000 {
            let fate = link.pass(ms * 1_000_000, &mut segment(0));
            lost[(ms / 500 % 10) as usize] += u32::from(fate == Fate::Lost(Cause::PeriodicLoss));
        }
        for (half_second, &count) in lost.iter().enumerate() {
            let lossy = (2..7).contains(&half_second);
            assert!(
                if lossy {
                    (900..1100).contains(&count)
                } else {
                    count == 0
                },
                "{half_second}: {count}"
            );
        }
    }

    #[test]
    fn batches_come_faster_and_take_their_toll() {
        let config = SynBatches {
            from_s: 10.0,
            to_s: 17.0,
            batches: 4,
            interval_factor: 0.5,
            connections: 8,
            lose_syns: 2,
            lose_syn_acks: 0,
        };
        assert_eq!(batch_times(&config), [10.0, 14.0, 16.0, 17.0].map(from_s));
        let mut batches = Batches::new(&[config]);
        let syn = Segment {
            flags: flag::SYN,
            ..Segment::default()
        };
        assert!(!batches.lose(from_s(9.9), 1, true, &syn));
        assert!(batches.lose(from_s(10.0), 2, true, &syn));
        assert!(batches.lose(from_s(13.0), 2, false, &syn));
        assert!(!batches.lose(from_s(19.0), 2, false, &syn));
        assert!(batches.lose(from_s(10.0), 3, true, &syn));
        assert!(!batches.lose(from_s(13.9), 4, true, &syn), "two a batch");
        assert!(batches.lose(from_s(14.0), 5, true, &syn));
    }
}
