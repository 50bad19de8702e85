//! What each connection does, drawn from the scenario's seed: client and server compute the same plan.

use crate::config::{CloseMode, Scenario, Span};
use crate::rng::Rng;
use std::time::Duration;

/// Keeps these random numbers apart from those of the wire.
const PURPOSE_BASE: u64 = 1 << 32;

/// One connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConnectionPlan {
    /// Pause before it is opened.
    pub(super) gap: Duration,
    /// Its requests in order.
    pub(super) requests: Vec<RequestPlan>,
    /// How it ends.
    pub(super) close: CloseMode,
}

/// One request and its response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RequestPlan {
    /// Pause of the client before the request; none before the first.
    pub(super) think: Duration,
    /// Request size in bytes, number of writes, pause between them.
    pub(super) request: MessagePlan,
    /// Work of the server.
    pub(super) server: Duration,
    /// The response.
    pub(super) response: MessagePlan,
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MessagePlan {
    /// Size.
    pub(super) bytes: u64,
    /// Writes.
    pub(super) chunks: u64,
    /// Pause between writes.
    pub(super) pause: Duration,
}

impl ConnectionPlan {
    /// The plan of connection number `id`.
    pub(super) fn new(scenario: &Scenario, id: u32) -> ConnectionPlan {
        let app = &scenario.app;
        let mut rng = Rng::new(scenario.seed, PURPOSE_BASE + u64::from(id));
        let gap = duration(&mut rng, app.connection_gap_ms);
        let requests = whole(&mut rng, app.requests);
        let requests = (0..requests)
            .map(|index| {
                let think = duration(&mut rng, app.think_ms);
                RequestPlan {
                    think: if index == 0 { Duration::ZERO } else { think },
                    request: MessagePlan {
                        bytes: whole(&mut rng, app.request_bytes),
                        chunks: whole(&mut rng, app.request_chunks),
                        pause: duration(&mut rng, app.request_pause_ms),
                    },
                    server: duration(&mut rng, app.server_ms),
                    response: MessagePlan {
                        bytes: whole(&mut rng, app.response_bytes),
                        chunks: whole(&mut rng, app.response_chunks),
                        pause: duration(&mut rng, app.response_pause_ms),
                    },
                }
            })
            .collect();
        let close = app.close.get(id as usize % app.close.len().max(1)).copied();
        ConnectionPlan {
            gap,
            requests,
            close: close.unwrap_or(CloseMode::ClientFin),
        }
    }
}

fn whole(rng: &mut Rng, span: Span) -> u64 {
    let (low, high) = span.ends();
    rng.between(low.round() as u64, high.round() as u64)
}

fn duration(rng: &mut Rng, span_ms: Span) -> Duration {
    let (low, high) = span_ms.ends();
    Duration::from_secs_f64((low + (high - low) * rng.unit()) / 1e3)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn plans_repeat_and_keep_within_the_scenario() {
        let scenario = Scenario::built_in("demo").unwrap();
        for id in 0..200 {
            let plan = ConnectionPlan::new(&scenario, id);
            assert_eq!(plan, ConnectionPlan::new(&scenario, id));
            assert!((2..=4).contains(&plan.requests.len()));
            assert_eq!(plan.requests[0].think, Duration::ZERO);
            for request in &plan.requests {
                assert!((90..=900).contains(&request.request.bytes));
                assert!((300..=18_000).contains(&request.response.bytes));
                assert!((5..=180).contains(&request.server.as_millis()));
            }
        }
        assert_ne!(
            ConnectionPlan::new(&scenario, 0).requests,
            ConnectionPlan::new(&scenario, 1).requests
        );
    }
}
