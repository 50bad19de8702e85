//! The client / network / server pie: of one capture, and from two by an article's arithmetic.
//!
//! "Tasting Client/Network/Server Pie" (S. Kendrick): in the trace taken near the client, the
//! times before frames that the client sent are client time; in the trace taken near the server,
//! the times before frames that the server sent are server time; the network has the rest of the
//! client-side trace's duration. It is rough where both sides send at once; it is kept exactly as
//! the article has it.

use weir_messages::v1;
use weir_record::{Kind, Record};

use crate::message::seconds;

/// Deltas of one trace, from its PACKET records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    first: Option<u64>,
    previous: u64,
    /// ns before frames of the client.
    client: u64,
    /// ns before frames of the server.
    server: u64,
    frames: u64,
}

impl Trace {
    /// Take in records; all but PACKET records are passed over.
    pub fn push(&mut self, records: &[Record]) {
        for r in records {
            if r.kind() == Some(Kind::Packet) && !r.is_continuation() {
                self.frame(r.time(), r.server_to_client());
            }
        }
    }

    /// One frame of the trace, TAI ns.
    pub fn frame(&mut self, time: u64, from_server: bool) {
        let first = *self.first.get_or_insert(time);
        let time = time.max(self.previous.max(first));
        let previous = if self.frames == 0 { first } else { self.previous };
        let delta = time - previous;
        *(if from_server {
            &mut self.server
        } else {
            &mut self.client
        }) += delta;
        self.previous = time;
        self.frames += 1;
    }

    /// Frames so far.
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    fn duration(&self) -> u64 {
        self.previous.saturating_sub(self.first.unwrap_or(self.previous))
    }
}

/// The article's pie. `None` when one of the traces has no frames.
pub fn article(near_client: &Trace, near_server: &Trace) -> Option<v1::Pie> {
    if near_client.frames == 0 || near_server.frames == 0 {
        return None;
    }
    let total = near_client.duration();
    let (client, server) = (near_client.client, near_server.server);
    // Two clocks: the sum may exceed the client's duration.
    let network = total as f64 - client as f64 - server as f64;
    Some(v1::Pie {
        client_seconds: seconds(client),
        network_seconds: network / 1e9,
        server_seconds: seconds(server),
        method: "ARTICLE".to_owned(),
        uncertainty_seconds: None,
        total_seconds: seconds(total),
    })
}

/// Whether nothing tells whose time most transactions were; `delays` has the setups' then, and little else.
pub const fn is_unknown(summary: &v1::Summary) -> bool {
    summary.untimed_transactions > 0 && summary.bottlenecks.is_empty()
}

/// What one tap alone says, of all setups and transactions. `None`: nothing.
pub fn one_tap(summary: &v1::Summary) -> Option<v1::Pie> {
    let time = summary.delays.filter(|_| !is_unknown(summary))?;
    let client = time.user_think_seconds + time.client_processing_seconds;
    let server = time.server_processing_seconds;
    Some(v1::Pie {
        client_seconds: client,
        network_seconds: (time.total_seconds - client - server).max(0.0),
        server_seconds: server,
        method: "ONE_TAP".to_owned(),
        uncertainty_seconds: Some(summary.delays_uncertain_seconds),
        total_seconds: time.total_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (µs since the first frame, sent by the server): the article's six frames.
    const CLIENT_SIDE: [(u64, bool); 6] = [
        (0, false),
        (253_718, true),
        (254_104, false),
        (254_111, false),
        (506_815, true),
        (763_442, true),
    ];
    const SERVER_SIDE: [(u64, bool); 6] = [
        (0, false),
        (59, true),
        (254_091, false),
        (254_363, false),
        (254_773, true),
        (512_241, true),
    ];

    fn trace(frames: &[(u64, bool)]) -> Trace {
        let mut t = Trace::default();
        for (us, server) in frames {
            t.frame(1_000_000_000 + us * 1000, *server);
        }
        t
    }

    #[test]
    fn the_articles_six_frames() {
        let pie = article(&trace(&CLIENT_SIDE), &trace(&SERVER_SIDE)).expect("both have frames");
        assert!((pie.client_seconds - 0.000_393).abs() < 1e-9);
        assert!((pie.server_seconds - 0.257_937).abs() < 1e-9);
        assert!((pie.network_seconds - 0.505_112).abs() < 1e-9);
        assert!((pie.total_seconds - 0.763_442).abs() < 1e-9);
    }

    #[test]
    fn one_tap_has_whose_time_in_three_parts() {
        let summary = v1::Summary {
            delays: Some(v1::TimeShares {
                user_think_seconds: 2.0,
                client_processing_seconds: 1.0,
                server_processing_seconds: 4.0,
                latency_seconds: Some(0.5),
                protocol_seconds: 0.25,
                total_seconds: 7.75,
                ..v1::TimeShares::default()
            }),
            delays_uncertain_seconds: 0.125,
            ..v1::Summary::default()
        };
        let pie = one_tap(&summary).expect("whose time it was is known");
        let parts = [
            pie.client_seconds,
            pie.network_seconds,
            pie.server_seconds,
            pie.total_seconds,
        ];
        assert!(
            parts
                .into_iter()
                .zip([3.0, 0.75, 4.0, 7.75])
                .all(|(a, b): (f64, f64)| (a - b).abs() < 1e-9),
            "{pie:?}"
        );
        assert_eq!((pie.method.as_str(), pie.uncertainty_seconds), ("ONE_TAP", Some(0.125)));
        assert_eq!(one_tap(&v1::Summary::default()), None);
    }

    #[test]
    fn empty_traces_have_no_pie() {
        assert_eq!(article(&Trace::default(), &trace(&SERVER_SIDE)), None);
    }
}
