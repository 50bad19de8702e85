//! What the time line adds to the summary.

use weir_analysis::{seconds, timestamp};
use weir_messages::v1;

use crate::phases::{Work, phases};
use crate::steps::levels;
use crate::tiers::{Pair, pairs};
use crate::timeline::Timeline;

impl Timeline {
    /// Adds phases, and the time line itself if it was asked for.
    pub fn complete(&self, summary: &mut v1::Summary) {
        summary.phases = self.phases();
        summary.tiers = self.tiers();
        if self.answers().is_some() {
            summary.timeline = self.slices();
        }
    }

    fn tiers(&self) -> Vec<v1::Tier> {
        let tier = |pair: &Pair<'_>| {
            let explained = pair.explained();
            v1::Tier {
                front: Some(pair.front.endpoint()),
                back: Some(pair.back.endpoint()),
                requests: explained.requests,
                calls: explained.calls,
                calls_per_request: explained.calls as f64 / explained.requests.max(1) as f64,
                request_seconds: explained.front_ns / 1e9,
                explained_seconds: explained.explained_ns / 1e9,
                explained_share: explained.explained_ns / explained.front_ns.max(1.0),
                calls_alone: explained.alone,
                ..v1::Tier::default()
            }
        };
        pairs(self.services()).iter().map(tier).collect()
    }

    fn phases(&self) -> Vec<v1::Phase> {
        let services = self.services();
        let phase = |phase: &crate::phases::Phase| {
            let (start, end) = (phase.start, phase.end);
            let mut whole = Work::default();
            let mut parts = Vec::new();
            for service in services.iter() {
                let work = Work::of(service, start, end);
                if work.load.opened == 0 && work.load.progress.up == 0 {
                    continue;
                }
                parts.push(v1::PhaseService {
                    server: Some(service.endpoint()),
                    ..load(&work, end - start)
                });
                whole.load += work.load;
                whole.connections += work.connections;
                whole.progress += work.progress;
                whole.answers += work.answers;
            }
            v1::Phase {
                start: Some(timestamp(start)),
                end: Some(timestamp(end)),
                concurrent_connections: phase.connections,
                whole: Some(load(&whole, end - start)),
                services: parts,
            }
        };
        phases(services).iter().map(phase).collect()
    }

    /// Slices of the width that was asked for, or of the next that there is room for.
    fn slices(&self) -> Vec<v1::TimeSlice> {
        let Some(answers) = self.answers() else {
            return Vec::new();
        };
        let bins = self.bins().coarser(answers.width());
        // Either can have been made coarser on its way.
        let answers = answers.coarser(bins.width());
        let bins = bins.coarser(answers.width());
        let width = bins.width();
        let times = |start: u64| {
            let at = start.checked_sub(answers.start())? / width;
            answers.iter().nth(at as usize)
        };
        let connections = levels(&bins, |bin| bin.connections);
        let progress = levels(&bins, |bin| bin.progress);
        let slices = bins.iter().zip(connections).zip(progress);
        slices
            .map(|((bin, connections), progress)| {
                let lost = |side: usize| {
                    u64::from(bin.lost_before[side])
                        + u64::from(bin.lost_behind[side])
                        + u64::from(bin.lost_unknown[side])
                };
                let times = times(connections.start);
                v1::TimeSlice {
                    start: Some(timestamp(connections.start)),
                    seconds: seconds(width),
                    concurrent_connections: connections.mean,
                    transactions_in_progress: progress.mean,
                    connections_opened: bin.opened.into(),
                    connections_closed: bin.closed.into(),
                    requests: bin.requests.into(),
                    responses: bin.responses.into(),
                    client_bytes: bin.bytes[0],
                    server_bytes: bin.bytes[1],
                    client_segments: bin.segments[0].into(),
                    server_segments: bin.segments[1].into(),
                    client_lost: lost(0),
                    server_lost: lost(1),
                    repeated_syns: bin.syn_repeats[0].into(),
                    repeated_syn_acks: bin.syn_repeats[1].into(),
                    missed_by_capture: bin.missed.into(),
                    setup: times.and_then(|times| times.setup.message()),
                    response: times.and_then(|times| times.response.message()),
                }
            })
            .collect()
    }
}

fn load(work: &Work, ns: u64) -> v1::PhaseService {
    let rate = |count: u32| f64::from(count) / seconds(ns).max(1e-9);
    v1::PhaseService {
        server: None,
        concurrent_connections: work.connections,
        transactions_in_progress: work.progress,
        connections: work.load.opened.into(),
        transactions: work.load.progress.down.into(),
        connections_per_second: rate(work.load.opened),
        transactions_per_second: rate(work.load.progress.down),
        lost_segments: work.load.lost.into(),
        repeated_setup_packets: work.load.syn_repeats.into(),
        setup: work.answers.setup.message(),
        response: work.answers.response.message(),
    }
}
