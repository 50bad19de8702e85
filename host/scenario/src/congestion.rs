//! Congestion control: Reno (RFC 5681) and CUBIC (RFC 9438). Bytes and nanoseconds; no pacing, no HyStart.

use crate::Time;
use serde::{Deserialize, Serialize};

/// Which algorithm a stack runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
}

/// RFC 9438 4.1.2, 4.6.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;

/// What CUBIC remembers between two losses.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Time,
    /// Segments.
    w_max: f64,
    /// Seconds until the window is `w_max` again.
    k: f64,
    /// What Reno would have, segments.
    w_est: f64,
}

/// The congestion window of one sender.
#[derive(Debug, Clone)]
pub struct Congestion {
    algorithm: Algorithm,
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    /// Window before the last reduction, segments (CUBIC).
    w_max: f64,
    epoch: Option<Epoch>,
}

impl Congestion {
    /// With an initial window of so many segments.
    pub fn new(algorithm: Algorithm, mss: u32, initial_segments: u32) -> Self {
        Congestion {
            algorithm,
            mss: f64::from(mss),
            cwnd: f64::from(mss) * f64::from(initial_segments),
            ssthresh: f64::INFINITY,
            w_max: 0.0,
            epoch: None,
        }
    }

    /// The window in bytes.
    pub fn window(&self) -> u64 {
        self.cwnd as u64
    }

    /// The window is below the slow start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// So many bytes were newly acknowledged while the window was in full use.
    pub fn on_ack(&mut self, now: Time, acked: u64, srtt: Time) {
        let acked = acked as f64;
        if self.in_slow_start() {
            // As Linux does: all that was acknowledged, not at most two segments (RFC 3465 with L unbounded).
            self.cwnd += acked;
            return;
        }
        match self.algorithm {
            Algorithm::Reno => self.cwnd += self.mss * acked / self.cwnd,
            Algorithm::Cubic => self.cubic(now, acked, srtt),
        }
    }

    /// RFC 9438 4.2 to 4.4.
    fn cubic(&mut self, now: Time, acked: f64, srtt: Time) {
        let cwnd = self.cwnd / self.mss;
        let epoch = self.epoch.get_or_insert_with(|| {
            let w_max = self.w_max.max(cwnd);
            Epoch {
                start: now,
                w_max,
                k: ((w_max - cwnd) / CUBIC_C).cbrt(),
                w_est: cwnd,
            }
        });
        let w_cubic = |t: f64| CUBIC_C * (t - epoch.k).powi(3) + epoch.w_max;
        let t = (now - epoch.start) as f64 / 1e9;
        let alpha = if epoch.w_est < self.w_max {
            3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA)
        } else {
            1.0
        };
        let target = w_cubic(t + srtt as f64 / 1e9).clamp(cwnd, 1.5 * cwnd);
        let friendly = w_cubic(t);
        epoch.w_est += alpha * (acked / self.mss) / cwnd;
        if friendly < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est * self.mss);
        } else {
            self.cwnd += (target - cwnd) / cwnd * acked;
        }
    }

    /// A loss was found while so many bytes were in flight: the reduction of fast recovery.
    pub fn on_loss(&mut self, flight: u64) {
        self.reduce(flight);
        self.cwnd = self.ssthresh;
    }

    /// The retransmission timer ran out: one segment (RFC 5681 3.1).
    pub fn on_timeout(&mut self, flight: u64) {
        self.reduce(flight);
        self.cwnd = self.mss;
    }

    fn reduce(&mut self, flight: u64) {
        let floor = 2.0 * self.mss;
        match self.algorithm {
            Algorithm::Reno => self.ssthresh = (flight as f64 / 2.0).max(floor),
            Algorithm::Cubic => {
                let cwnd = self.cwnd / self.mss;
                // Fast convergence, RFC 9438 4.7.
                self.w_max = if cwnd < self.w_max {
                    cwnd * (1.0 + CUBIC_BETA) / 2.0
                } else {
                    cwnd
                };
                self.ssthresh = (self.cwnd * CUBIC_BETA).max(floor);
            }
        }
        self.epoch = None;
    }

    /// The connection was idle for longer than its timer: begin with the initial window again (RFC 5681 4.1).
    pub fn on_idle(&mut self, initial_segments: u32) {
        self.cwnd = self.cwnd.min(self.mss * f64::from(initial_segments));
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;
    const RTT: Time = 100_000_000;

    /// Windows at the end of each round trip, in segments, when each window is acknowledged whole.
    fn grow(c: &mut Congestion, rounds: u64) -> Vec<f64> {
        (1..=rounds)
            .map(|round| {
                let window = c.window();
                for _ in 0..window / u64::from(MSS) {
                    c.on_ack(round * RTT, u64::from(MSS), RTT);
                }
                c.window() as f64 / f64::from(MSS)
            })
            .collect()
    }

    /// RFC 5681 3.1: "slow start ... cwnd is increased by at most SMSS bytes for each ACK": doubling per round trip.
    #[test]
    fn slow_start_doubles() {
        let mut c = Congestion::new(Algorithm::Reno, MSS, 10);
        assert_eq!(grow(&mut c, 3), [20.0, 40.0, 80.0]);
    }

    /// RFC 5681 3.1: ssthresh = max(FlightSize / 2, 2*SMSS); then one segment per round trip.
    #[test]
    fn reno_halves_and_adds_one_a_round_trip() {
        let mut c = Congestion::new(Algorithm::Reno, MSS, 40);
        c.on_loss(40_000);
        assert_eq!(c.window(), 20_000);
        for (round, window) in grow(&mut c, 5).into_iter().enumerate() {
            assert!((window - (21.0 + round as f64)).abs() < 0.4, "round {round}: {window}");
        }
        c.on_timeout(3_000);
        assert_eq!(c.window(), 1_000);
        assert_eq!(grow(&mut c, 1), [2.0], "slow start up to ssthresh of two segments");
    }

    /// RFC 9438 4.2: the window is `W_max` again K = cbrt(W_max * 0.3 / 0.4) seconds after the loss.
    #[test]
    fn cubic_returns_to_its_maximum_after_k() {
        let mut c = Congestion::new(Algorithm::Cubic, MSS, 1000);
        c.on_loss(1_000_000);
        assert_eq!(c.window(), 700_000);
        let k = (1000.0f64 * 0.3 / 0.4).cbrt();
        let windows = grow(&mut c, 200);
        let back = windows.iter().position(|&w| w >= 999.0).unwrap_or(usize::MAX) as f64 * 0.1;
        // The last segment before the maximum: C (t - K)^3 = -1.
        let almost = k - (1.0f64 / 0.4).cbrt();
        assert!(
            (back - almost).abs() < 0.3,
            "999 segments after {almost:.2} s, was {back:.2} s"
        );
        let at = |seconds: f64| windows[(seconds * 10.0) as usize];
        assert!(at(k / 2.0) > 900.0 && at(k + 3.0) < 1020.0, "a plateau around W_max");
        assert!(at(k + 8.0) > 1100.0, "convex growth after it");
    }
}
