//! One direction of one leg: decides what happens to each frame. No clock, no I/O: the same frames at the same times
//! with the same seed meet the same fate.

use crate::black_hole;
use crate::config::{LinkConfig, PeriodicLoss};
use crate::ecn;
use crate::frame::TcpSummary;
use crate::rng::Rng;
use crate::truth::Cause;
use crate::window_scale::WindowScale;
use std::collections::VecDeque;

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// The fate of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is gone.
    Drop(Cause),
    /// It leaves the leg.
    Pass(Passage),
}

/// When a frame leaves the leg, and what made it late. All times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Leaves at this time.
    pub exit_ns: u64,
    /// Waited this long for frames ahead of it in the queue.
    pub queue_wait_ns: u64,
    /// The queue marks it (ECN).
    pub is_marked: bool,
    /// Was late this much by jitter.
    pub jitter_ns: u64,
    /// Was held back this long for others to overtake.
    pub held_back_ns: u64,
    /// A second copy leaves at this time.
    pub copy_exit_ns: Option<u64>,
}

/// State of one direction of one leg.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    rng: Rng,
    start_ns: u64,
    /// Frames waiting or in transmission: end of transmission and length.
    queue: VecDeque<(u64, u64)>,
    queued_bytes: u64,
    last_exit_ns: u64,
    /// SYN frames that matched each rule, and how many of them the rule lost.
    syn_counts: Vec<(u64, u64)>,
    in_burst: bool,
}

/// The random numbers for one frame. All are drawn for every frame, so that switching one impairment on or off does
/// not change what the others decide.
struct Draws {
    loss: f64,
    periodic: f64,
    syn: f64,
    jitter: f64,
    reorder: f64,
    duplicate: f64,
    ack: f64,
    burst_turn: f64,
    burst: f64,
}

impl Link {
    /// A link whose periods count from `start_ns`; `purpose` separates its random numbers from those of other links.
    pub fn new(config: LinkConfig, seed: u64, purpose: u64, start_ns: u64) -> Link {
        Link {
            rng: Rng::new(seed, purpose),
            start_ns,
            queue: VecDeque::new(),
            queued_bytes: 0,
            last_exit_ns: 0,
            syn_counts: vec![(0, 0); config.syn_loss.len()],
            in_burst: false,
            config,
        }
    }

    /// Decides about a frame that enters at `now_ns`; times must not go backwards.
    pub fn decide(&mut self, now_ns: u64, frame: &[u8], tcp: Option<&TcpSummary>) -> Decision {
        let draws = Draws {
            loss: self.rng.unit(),
            periodic: self.rng.unit(),
            syn: self.rng.unit(),
            jitter: self.rng.unit(),
            reorder: self.rng.unit(),
            duplicate: self.rng.unit(),
            ack: self.rng.unit(),
            burst_turn: self.rng.unit(),
            burst: self.rng.unit(),
        };
        let limit = self.config.black_hole_above;
        if limit > 0 && black_hole::swallows(frame, limit) {
            return Decision::Drop(Cause::BlackHole);
        }
        if self.loses_syn(tcp, draws.syn) {
            return Decision::Drop(Cause::SynLoss);
        }
        if let Some(periodic) = self.config.periodic
            && is_lossy_time(&periodic, now_ns.saturating_sub(self.start_ns))
            && draws.periodic < periodic.probability
        {
            return Decision::Drop(Cause::PeriodicLoss);
        }
        if self.is_lost_in_burst(&draws) {
            return Decision::Drop(Cause::BurstLoss);
        }
        if draws.ack < self.config.ack_loss && tcp.is_some_and(TcpSummary::is_pure_ack) {
            return Decision::Drop(Cause::AckLoss);
        }
        if draws.loss < self.config.loss {
            return Decision::Drop(Cause::RandomLoss);
        }
        let Some((queue_wait_ns, sent_ns)) = self.transmit(now_ns, frame.len() as u64) else {
            return Decision::Drop(Cause::QueueFull);
        };
        // The frame itself is in the queue by now.
        let mark_above = self.config.ecn_mark_bytes;
        let is_marked = mark_above > 0 && self.queued_bytes > mark_above && ecn::is_capable(frame);

        let undisturbed_ns = sent_ns + ns(self.config.delay_ms, NS_PER_MS);
        let own_jitter_ns = (ns(self.config.jitter_ms, NS_PER_MS) as f64 * draws.jitter) as u64;
        let in_order_ns = (undisturbed_ns + own_jitter_ns).max(self.last_exit_ns);
        let held_back_ns = if draws.reorder < self.config.reorder {
            ns(self.config.reorder_ms, NS_PER_MS)
        } else {
            // A frame held back does not hold back those behind it: that is what makes it late in order.
            self.last_exit_ns = in_order_ns;
            0
        };
        let exit_ns = in_order_ns + held_back_ns;
        let is_copied = draws.duplicate < self.config.duplicate;
        Decision::Pass(Passage {
            exit_ns,
            queue_wait_ns,
            is_marked,
            jitter_ns: in_order_ns - undisturbed_ns,
            held_back_ns,
            copy_exit_ns: is_copied.then(|| exit_ns + ns(self.config.duplicate_ms, NS_PER_MS)),
        })
    }

    /// What the box on this link does to SYNs.
    pub fn window_scale(&self) -> Option<WindowScale> {
        self.config.window_scale
    }

    fn is_lost_in_burst(&mut self, draws: &Draws) -> bool {
        let Some(burst) = self.config.burst else { return false };
        let turns = draws.burst_turn < if self.in_burst { burst.end } else { burst.begin };
        self.in_burst ^= turns;
        self.in_burst && draws.burst < burst.probability
    }

    /// Applies the first SYN rule that matches the frame.
    fn loses_syn(&mut self, tcp: Option<&TcpSummary>, draw: f64) -> bool {
        let Some(tcp) = tcp.filter(|tcp| tcp.is_syn()) else {
            return false;
        };
        for (rule, (matched, lost)) in self.config.syn_loss.iter().zip(&mut self.syn_counts) {
            if rule
                .port
                .is_some_and(|port| port != tcp.src_port && port != tcp.dst_port)
            {
                continue;
            }
            *matched += 1;
            let is_due = *matched > rule.skip && rule.limit.is_none_or(|limit| *lost < limit);
            if is_due && draw < rule.probability {
                *lost += 1;
                return true;
            }
        }
        false
    }

    /// Puts the frame into the queue: its wait and the end of its transmission, or `None` when it does not fit.
    fn transmit(&mut self, now_ns: u64, frame_len: u64) -> Option<(u64, u64)> {
        if self.config.rate_mbit == 0.0 {
            return Some((0, now_ns));
        }
        while let Some(&(sent_ns, len)) = self.queue.front()
            && sent_ns <= now_ns
        {
            self.queue.pop_front();
            self.queued_bytes -= len;
        }
        if self.queued_bytes + frame_len > self.config.queue_bytes {
            return None;
        }
        let line_free_ns = self.queue.back().map_or(now_ns, |&(sent_ns, _)| sent_ns);
        let transmission_ns = (frame_len as f64 * 8.0 * 1e3 / self.config.rate_mbit).round() as u64;
        let sent_ns = line_free_ns + transmission_ns;
        self.queue.push_back((sent_ns, frame_len));
        self.queued_bytes += frame_len;
        Some((line_free_ns - now_ns, sent_ns))
    }
}

/// Whether this many nanoseconds after the start lie in the lossy part of a period.
fn is_lossy_time(periodic: &PeriodicLoss, since_start_ns: u64) -> bool {
    let period_ns = ns(periodic.period_s, NS_PER_S).max(1);
    let phase_ns = ns(periodic.phase_s, NS_PER_S);
    since_start_ns >= phase_ns && (since_start_ns - phase_ns) % period_ns < ns(periodic.lossy_s, NS_PER_S)
}

fn ns(value: f64, unit: f64) -> u64 {
    (value * unit).round() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{BurstLoss, SynLoss};
    use crate::frame::tests::tcp_frame;

    const MS: u64 = 1_000_000;

    fn link(config: LinkConfig) -> Link {
        Link::new(config, 1, 1, 0)
    }

    fn passage(decision: Decision) -> Passage {
        match decision {
            Decision::Pass(passage) => passage,
            Decision::Drop(cause) => panic!("dropped: {cause:?}"),
        }
    }

    #[test]
    fn same_seed_same_fate_and_another_seed_another() {
        let config = LinkConfig {
            loss: 0.3,
            jitter_ms: 1.0,
            reorder: 0.2,
            duplicate: 0.2,
            ..LinkConfig::default()
        };
        let run = |seed, purpose| {
            let mut link = Link::new(config.clone(), seed, purpose, 0);
            (0..200)
                .map(|i| link.decide(i * MS, &[0; 1000], None))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(5, 1), run(5, 1));
        assert_ne!(run(5, 1), run(6, 1));
        assert_ne!(run(5, 1), run(5, 2));
    }

    #[test]
    fn switching_one_impairment_on_leaves_the_others_decisions() {
        let lost = |duplicate| {
            let mut link = link(LinkConfig {
                loss: 0.2,
                duplicate,
                ..LinkConfig::default()
            });
            (0..500)
                .map(|i| matches!(link.decide(i, &[0; 100], None), Decision::Drop(_)))
                .collect::<Vec<_>>()
        };
        assert_eq!(lost(0.0), lost(0.5));
    }

    #[test]
    fn loss_ratio_is_as_configured() {
        let mut link = link(LinkConfig {
            loss: 0.02,
            ..LinkConfig::default()
        });
        let n = 100_000;
        let lost = (0..n)
            .filter(|&i| matches!(link.decide(i, &[0; 100], None), Decision::Drop(Cause::RandomLoss)))
            .count();
        // Binomial: mean 2000, standard deviation 44; five deviations.
        assert!((1780..=2220).contains(&lost), "{lost}");
    }

    #[test]
    fn duplicates_and_reorders_come_as_often_as_configured() {
        let mut link = link(LinkConfig {
            duplicate: 0.1,
            reorder: 0.05,
            ..LinkConfig::default()
        });
        let passages: Vec<_> = (0..20_000)
            .map(|i| passage(link.decide(i * MS, &[0; 100], None)))
            .collect();
        let copies = passages.iter().filter(|p| p.copy_exit_ns.is_some()).count();
        let held = passages.iter().filter(|p| p.held_back_ns > 0).count();
        assert!((1788..=2212).contains(&copies), "{copies}");
        assert!((846..=1154).contains(&held), "{held}");
    }

    #[test]
    fn rate_spaces_frames_and_the_queue_has_its_limit() {
        // 8 Mbit/s: 1 microsecond a byte; room for three frames of 1000 bytes.
        let mut link = link(LinkConfig {
            rate_mbit: 8.0,
            queue_bytes: 3000,
            delay_ms: 1.0,
            ..LinkConfig::default()
        });
        let exits: Vec<_> = (0..3).map(|_| passage(link.decide(0, &[0; 1000], None))).collect();
        assert_eq!(
            exits.iter().map(|p| p.exit_ns).collect::<Vec<_>>(),
            [2 * MS, 3 * MS, 4 * MS]
        );
        assert_eq!(
            exits.iter().map(|p| p.queue_wait_ns).collect::<Vec<_>>(),
            [0, MS, 2 * MS]
        );
        assert_eq!(link.decide(MS - 1, &[0; 1000], None), Decision::Drop(Cause::QueueFull));
        // The first has left: there is room again, and its transmission follows the third's.
        let fourth = passage(link.decide(MS, &[0; 1000], None));
        assert_eq!((fourth.exit_ns, fourth.queue_wait_ns), (5 * MS, 2 * MS));
        // Long idle: no wait.
        let later = passage(link.decide(100 * MS, &[0; 1000], None));
        assert_eq!((later.exit_ns, later.queue_wait_ns), (102 * MS, 0));
    }

    #[test]
    fn a_long_queue_marks_what_is_capable_and_drops_what_does_not_fit() {
        let mut link = link(LinkConfig {
            rate_mbit: 8.0,
            queue_bytes: 5000,
            ecn_mark_bytes: 2000,
            ..LinkConfig::default()
        });
        let frame = |tos: u8| {
            let mut frame = tcp_frame(80, 0x10, 1, 946);
            frame[15] = tos;
            frame
        };
        let mut is_marked = |now, tos| passage(link.decide(now, &frame(tos), None)).is_marked;
        assert!(!is_marked(0, 2) && !is_marked(0, 2), "up to the threshold");
        assert!(is_marked(0, 2) && !is_marked(0, 0) && is_marked(0, 1));
        assert_eq!(link.decide(0, &frame(2), None), Decision::Drop(Cause::QueueFull));
        assert!(!passage(link.decide(4 * MS, &frame(2), None)).is_marked, "drained");
    }

    #[test]
    fn a_black_hole_swallows_large_frames_only() {
        let mut link = link(LinkConfig {
            black_hole_above: 1000,
            ..LinkConfig::default()
        });
        let mut is_lost = |payload| {
            let mut frame = tcp_frame(80, 0x10, 1, payload);
            frame[20] = 0x40;
            link.decide(0, &frame, None) == Decision::Drop(Cause::BlackHole)
        };
        assert!(is_lost(961) && !is_lost(960));
    }

    #[test]
    fn jitter_keeps_order_and_stays_in_bounds() {
        let mut link = link(LinkConfig {
            delay_ms: 5.0,
            jitter_ms: 2.0,
            ..LinkConfig::default()
        });
        let mut last = 0;
        for i in 0..2000 {
            let now = i * 100_000;
            let p = passage(link.decide(now, &[0; 100], None));
            assert!(p.exit_ns >= last);
            assert!((5 * MS..=7 * MS).contains(&(p.exit_ns - now)));
            assert_eq!(p.exit_ns, now + 5 * MS + p.jitter_ns);
            last = p.exit_ns;
        }
    }

    #[test]
    fn a_frame_held_back_is_overtaken() {
        let mut link = link(LinkConfig {
            delay_ms: 1.0,
            reorder: 0.3,
            reorder_ms: 3.0,
            ..LinkConfig::default()
        });
        let exits: Vec<_> = (0..200)
            .map(|i| passage(link.decide(i * MS, &[0; 100], None)))
            .collect();
        for (i, p) in exits.iter().enumerate() {
            let held = if p.held_back_ns > 0 { 3 * MS } else { 0 };
            assert_eq!(p.exit_ns, i as u64 * MS + MS + held);
        }
        assert!(exits.windows(2).any(|pair| pair[1].exit_ns < pair[0].exit_ns));
    }

    #[test]
    fn periodic_loss_follows_the_clock() {
        let mut link = Link::new(
            LinkConfig {
                periodic: Some(PeriodicLoss {
                    period_s: 1.0,
                    lossy_s: 0.25,
                    phase_s: 0.5,
                    probability: 1.0,
                }),
                ..LinkConfig::default()
            },
            1,
            1,
            1000 * MS,
        );
        let mut lost_at =
            |ms: u64| link.decide((1000 + ms) * MS, &[0; 100], None) == Decision::Drop(Cause::PeriodicLoss);
        assert!(!lost_at(0) && !lost_at(499));
        assert!(lost_at(500) && lost_at(749));
        assert!(!lost_at(750) && !lost_at(1499));
        assert!(lost_at(1500) && !lost_at(1750));
    }

    /// Gilbert's model: bursts of 1 / `end` frames, the share `begin` / (`begin` + `end`) of all frames.
    #[test]
    fn bursts_are_as_long_and_as_often_as_configured() {
        let mut link = link(LinkConfig {
            burst: Some(BurstLoss {
                begin: 0.01,
                end: 0.25,
                probability: 1.0,
            }),
            ..LinkConfig::default()
        });
        let n = 100_000;
        let lost: Vec<_> = (0..n)
            .map(|i| link.decide(i, &[0; 100], None) == Decision::Drop(Cause::BurstLoss))
            .collect();
        let frames = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((3500.0..=4200.0).contains(&frames), "{frames}");
        assert!((3.6..=4.4).contains(&(frames / bursts)), "{frames} in {bursts}");
    }

    #[test]
    fn ack_loss_spares_data_syn_fin_and_rst() {
        let mut link = link(LinkConfig {
            ack_loss: 1.0,
            ..LinkConfig::default()
        });
        let mut is_lost = |flags, payload| {
            let tcp = TcpSummary::parse(&tcp_frame(80, flags, 1, payload)).unwrap();
            link.decide(0, &[0; 60], Some(&tcp)) == Decision::Drop(Cause::AckLoss)
        };
        assert!(is_lost(0x10, 0));
        assert!(!is_lost(0x18, 5) && !is_lost(0x12, 0) && !is_lost(0x11, 0) && !is_lost(0x14, 0));
    }

    #[test]
    fn syn_rules_count_only_their_port_and_keep_their_limit() {
        let rule = SynLoss {
            probability: 1.0,
            port: Some(80),
            skip: 1,
            limit: Some(1),
        };
        let mut link = link(LinkConfig {
            syn_loss: vec![rule],
            ..LinkConfig::default()
        });
        let mut is_lost = |port, flags| {
            let tcp = TcpSummary::parse(&tcp_frame(port, flags, 1, 0)).unwrap();
            link.decide(0, &[0; 60], Some(&tcp)) == Decision::Drop(Cause::SynLoss)
        };
        assert!(!is_lost(80, 0x02), "the first is let through");
        assert!(!is_lost(81, 0x02), "another port");
        assert!(!is_lost(80, 0x10), "no SYN");
        assert!(is_lost(80, 0x02), "the second is lost");
        assert!(!is_lost(80, 0x02), "one at most");
    }
}
