//! What the time line adds to the summary.

use weir_analysis::{seconds, timestamp};
use weir_messages::{Timestamp, v1};
use weir_record::time::tai_from_utc;

use crate::phases::{Work, phases};
use crate::steps::{Level, levels};
use crate::tiers::{Pair, pairs};
use crate::timeline::Timeline;

impl Timeline {
    /// Adds phases, and the time line itself if it was asked for.
    pub fn complete(&self, summary: &mut v1::Summary) {
        summary.phases = self.phases();
        summary.tiers = self.tiers();
        if self.answers().is_some() {
            let tai = |time: Option<Timestamp>| Some(tai_from_utc(time?.unix_nanos().try_into().ok()?));
            summary.timeline = self.slices(tai(summary.start), tai(summary.end));
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

    /// Slices of the width that was asked for, or of the next that there is room for; of the first and the last what lies
    /// between the first packet of all and the last (TAI ns).
    fn slices(&self, first: Option<u64>, last: Option<u64>) -> Vec<v1::TimeSlice> {
        let Some(answers) = self.answers() else {
            return Vec::new();
        };
        let bins = self.bins().coarser(answers.width());
        // Either can have been made coarser on its way.
        let answers = answers.coarser(bins.width());
        let bins = bins.coarser(answers.width());
        let (width, first) = (bins.width(), first.unwrap_or(0).max(self.begins()));
        let times = |start: u64| {
            let at = start.checked_sub(answers.start())? / width;
            answers.iter().nth(at as usize)
        };
        let connections = levels(&bins, |bin| bin.connections);
        let progress = levels(&bins, |bin| bin.progress);
        let (_, end) = self.span();
        let end = last.unwrap_or(end).max(end);
        let slices = bins.iter().zip(connections).zip(progress);
        slices
            .map(|((bin, connections), progress)| {
                let times = times(connections.start);
                let start = connections.start.max(first);
                let inside = (connections.start + width).min(end).saturating_sub(start);
                // What is open at the end was there until then, and not for the rest of the slice.
                let behind = (connections.start + width).saturating_sub(end).min(width);
                let mean = |level: Level| {
                    let there = level.mean * width as f64 - level.last as f64 * behind as f64;
                    if inside > 0 { there / inside as f64 } else { 0.0 }
                };
                v1::TimeSlice {
                    start: Some(timestamp(start)),
                    seconds: seconds(inside),
                    concurrent_connections: mean(connections),
                    transactions_in_progress: mean(progress),
                    connections_opened: bin.opened.into(),
                    connections_closed: bin.closed.into(),
                    requests: bin.requests.into(),
                    responses: bin.responses.into(),
                    client_bytes: bin.bytes[0],
                    server_bytes: bin.bytes[1],
                    client_segments: bin.segments[0].into(),
                    server_segments: bin.segments[1].into(),
                    client_lost: bin.lost(0),
                    server_lost: bin.lost(1),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::routes::Route;
    use weir_analysis::{CloseKind, Ended, Ends, Opened};
    use weir_record::FlowId;

    const S: u64 = 1_000_000_000;
    /// No multiple of the width of a slice.
    const START: u64 = 1_800_000_007 * S;

    /// A connection opened at `first`, ns.
    fn opened(id: FlowId, first: u64) -> Opened {
        Opened {
            id,
            time: first,
            ends: Ends::default(),
            is_syn: true,
        }
    }

    /// One that was there until `until`, ns.
    fn ended(id: FlowId, span: (u64, u64), until: u64, closing: CloseKind) -> Ended {
        Ended {
            until,
            setup_ns: Some(0),
            answer_ns: Some(0),
            closing,
            ..fixtures::ended(id.0, span)
        }
    }

    /// Connections with first and last packet (s since the start), in a capture of 25 s; those without an end are open.
    fn slices(connections: &[(u64, u64, Option<u64>)]) -> Vec<v1::TimeSlice> {
        let mut timeline = Timeline::resolved(10 * S);
        let mut route = Route::new(&Ends::default(), 0);
        for (id, &(first, last, end)) in (0..).zip(connections) {
            let (id, first, last) = (FlowId(id), START + first * S, START + last * S);
            timeline.opened(&opened(id, first), &mut route);
            let (until, closing) = match end {
                Some(end) => (START + end * S, CloseKind::ClientFin),
                None => (START + 25 * S, CloseKind::Open),
            };
            timeline.connection(&ended(id, (first, last), until, closing), &mut route);
        }
        timeline.slices(Some(START), Some(START + 25 * S))
    }

    #[test]
    fn a_live_time_line_begins_with_what_is_open() {
        let mut route = Route::new(&Ends::default(), 0);
        let mut older = Timeline::live(0, 0);
        let first = |id: u64| START + id * S;
        for id in 0..3 {
            older.opened(&opened(FlowId(id), first(id)), &mut route);
        }
        let end = |id: u64, until: u64| ended(FlowId(id), (first(id), until), until, CloseKind::ClientFin);
        older.connection(&end(0, START + 5 * S), &mut route);
        // Two are open at 10.25 s. The opening of a fourth before that is told later, and so is the end of the second.
        let begin = START + 10 * S + S / 4;
        let mut younger = Timeline::live(begin, older.open());
        for timeline in [&mut older, &mut younger] {
            timeline.opened(&opened(FlowId(3), START + 10 * S), &mut route);
            timeline.connection(&end(1, START + 10 * S + S / 8), &mut route);
            timeline.connection(&end(2, START + 12 * S), &mut route);
            timeline.opened(&opened(FlowId(4), START + 13 * S), &mut route);
        }
        let of = |timeline: &Timeline| -> Vec<(f64, f64)> {
            let slices = timeline.slices(Some(START), Some(START + 14 * S));
            let of = |slice: &v1::TimeSlice| (slice.seconds, slice.concurrent_connections);
            slices.iter().map(of).collect()
        };
        assert_eq!(of(&younger), [(0.75, 2.0), (1.0, 2.0), (1.0, 1.0), (1.0, 2.0)]);
        assert_eq!(of(&older)[11..], of(&younger)[1..]);
        assert_eq!((older.open(), younger.open()), (2, 2));

        // In the middle of a slice what is open is open until there.
        for timeline in [&older, &younger] {
            let slices = timeline.slices(Some(START), Some(START + 13 * S + S / 4));
            let last = slices.last().map(|slice| (slice.seconds, slice.concurrent_connections));
            assert_eq!(last, Some((0.25, 2.0)));
        }
    }

    #[test]
    fn what_is_open_at_the_end_is_open_until_then_and_slices_are_what_the_capture_has_of_them() {
        // Three that say nothing after 1 s, and one that ends after 14 s.
        let slices = slices(&[(0, 1, None), (0, 1, None), (0, 1, None), (4, 14, Some(14))]);
        let times: Vec<f64> = slices.iter().map(|slice| slice.seconds).collect();
        assert_eq!(times, [3.0, 10.0, 10.0, 2.0]);
        let start = slices[0].start.unwrap_or_default();
        assert_eq!(start, timestamp(START));
        let open: Vec<f64> = slices.iter().map(|slice| slice.concurrent_connections).collect();
        for (open, expected) in open.iter().zip([3.0, 3.9, 3.1, 3.0]) {
            assert!((open - expected).abs() < 1e-9, "{open} {expected}");
        }
        let closed: Vec<u64> = slices.iter().map(|slice| slice.connections_closed).collect();
        assert_eq!(closed, [0, 0, 1, 0]);
    }
}
