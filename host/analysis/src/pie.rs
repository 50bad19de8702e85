//! The client / network / server pie from two captures, by the article's own arithmetic.
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
    fn empty_traces_have_no_pie() {
        assert_eq!(article(&Trace::default(), &trace(&SERVER_SIDE)), None);
    }
}
