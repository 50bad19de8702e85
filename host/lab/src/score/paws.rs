//! Frames that arrived and that their host threw away.

use std::collections::{HashMap, HashSet};

use super::streams::{Stream, are_covered, stream};
use crate::truth::Journey;

/// Linux takes timestamps that are older by so much.
const PAWS_WINDOW: i32 = 1;

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

/// Frames that their host threw away: their timestamp was older than that of the last one that filled a gap (PAWS, RFC 7323
/// 5.3 and 4.3). A segment that was held back while its predecessor was sent again meets this.
pub(super) fn discarded(journeys: &[Journey]) -> HashSet<u64> {
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
        let (client, server, direction) = stream(journey, tcp);
        if !arrives {
            // Its sender is the receiver of the other direction.
            let host = hosts.entry((client, server, direction.other())).or_default();
            host.acknowledge(tcp.ack);
            continue;
        }
        let Some(tsval) = tcp.tsval else { continue };
        let host = hosts.entry((client, server, direction)).or_default();
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
