//! What was found, as messages.

use std::collections::BTreeMap;

use weir_analysis::pie::article;
use weir_analysis::{lasting, seconds, several, timestamp};
use weir_messages::v1;
use weir_record::NO_SCALE;
use weir_record::time::utc_from_tai;

use crate::clock::Stretch;
use crate::tap::{Map, Tap, most};
use crate::{Aligner, Alignment, Findings, NothingInCommon, Shares, Sightings};

/// Taps between which a packet and its answer need less are at one place, s.
const ONE_PLACE: f64 = 100e-6;

pub(crate) fn report(aligner: &Aligner, sightings: Sightings) -> Result<Alignment, NothingInCommon> {
    let order: Vec<usize> = aligner
        .order
        .clone()
        .unwrap_or_else(|| (0..aligner.taps.len()).collect());
    let mut missed = vec![0; aligner.taps.len()];
    let mut legs = Vec::new();
    let is_connected = is_connected(aligner);
    for two in order.windows(2) {
        let k = aligner.pair_of(two[0], two[1]);
        let (from, to) = (&aligner.taps[two[0]], &aligner.taps[two[1]]);
        let found = &aligner.found[k];
        // Taps on parallel ways have others in common.
        if found.tally.matched == 0 && !is_connected {
            return Err(NothingInCommon {
                one: from.name.clone(),
                one_connections: from.connections,
                other: to.name.clone(),
                other_connections: to.connections,
                apart: alone(aligner),
            });
        }
        let pair = &aligner.pairs[k];
        // By the pair's order, 0 is its tap `a`.
        let near = usize::from(pair.a != two[0]);
        missed[pair.a] += found.tally.missed[0];
        missed[pair.b] += found.tally.missed[1];
        let stretches = aligner.fits[k].stretches();
        legs.push(leg(from, to, found, near, &stretches));
    }
    let taps = order
        .iter()
        .map(|&at| {
            let tap = &aligner.taps[at];
            let place = most(&tap.places_seen).unwrap_or_default();
            let ttl = |side: usize| Some(u32::from(place.ttls[side])).filter(|&ttl| ttl != 0);
            v1::Tap {
                file: tap.name.clone(),
                packets: tap.packets,
                missed_by_capture: missed[at],
                ttl_client_side: ttl(0),
                ttl_server_side: ttl(1),
                mac_client_side: mac(place.macs[0]),
                mac_server_side: mac(place.macs[1]),
                connections: tap.connections,
                connections_only_here: aligner.only_here[at],
                given_up: tap.given_up,
            }
        })
        .collect();
    let left_out = aligner.shares.left_out;
    if let Some(leg) = legs.first_mut().filter(|_| left_out > 0) {
        let which = match left_out {
            1 => "1 connection is",
            _ => &format!("{left_out} connections are"),
        };
        leg.placement.push(format!(
            "{which} not in the pies: a capture has one direction alone, or another part of its time than the other (cut short, or its clock was set)"
        ));
    }
    let mut pies = Vec::new();
    // A relay between the taps: no connection goes the whole way, and none has a pie. Nor have taps of which it is not known
    // where they stand.
    let is_ordered = aligner.whole_path().is_some_and(|k| !aligner.fits[k].is_empty());
    if aligner.shares.total > 0 && is_ordered {
        pies.push(measured(&aligner.shares));
        pies.extend(article(&aligner.traces[0], &aligner.traces[1]));
        pies.push(one_tap(&aligner.shares));
    }
    Ok(Alignment {
        lost_setups: lost_between_ends(aligner, &legs),
        taps,
        legs,
        pies,
        nearest_client: order[0],
        sightings,
    })
}

/// Each capture has packets in common with another one, and all of them hang together.
fn is_connected(aligner: &Aligner) -> bool {
    let mut reached = vec![0];
    let mut at = 0;
    while let Some(&tap) = reached.get(at) {
        for pair in aligner.pairs.iter().filter(|pair| pair.has_common) {
            let others = [(pair.a, pair.b), (pair.b, pair.a)];
            let other = others
                .into_iter()
                .find_map(|(one, other)| (one == tap).then_some(other));
            reached.extend(other.filter(|other| !reached.contains(other)));
        }
        at += 1;
    }
    reached.len() == aligner.taps.len()
}

/// The one capture that has nothing in common with any other, while others have.
fn alone(aligner: &Aligner) -> Option<String> {
    let shares = |tap: usize| {
        let mut pairs = aligner.pairs.iter().filter(|pair| pair.a == tap || pair.b == tap);
        pairs.any(|pair| pair.has_common)
    };
    let apart: Vec<usize> = (0..aligner.taps.len()).filter(|&tap| !shares(tap)).collect();
    match apart[..] {
        [one] => Some(aligner.taps[one].name.clone()),
        _ => None,
    }
}

/// `near` is the pair's number of the tap nearer to the client.
fn leg(from: &Tap, to: &Tap, found: &Findings, near: usize, stretches: &[Stretch]) -> v1::Leg {
    let far = 1 - near;
    let tally = found.tally.settled();
    // The fit is of `b` against `a`, by `a`'s clock.
    let turned: Vec<Stretch> = stretches
        .iter()
        .map(|s| {
            if near == 0 {
                return *s;
            }
            let there = |time: u64, offset: f64| time.wrapping_add_signed((offset * 1e9).round() as i64);
            let span = s.end.saturating_sub(s.start) as f64 / 1e9;
            Stretch {
                start: there(s.start, s.offset),
                end: there(s.end, s.offset + span * s.skew_ppm / 1e6),
                offset: -s.offset,
                skew_ppm: -s.skew_ppm,
                ..*s
            }
        })
        .collect();
    let apart = |s: &Stretch| s.offset + leap_seconds(s.start, s.offset);
    let first = turned.first();
    let round_trip = turned.iter().map(|s| s.round_trip).reduce(f64::min);
    let wander = turned.iter().map(|s| s.wander).fold(0.0, f64::max);
    // On a line that the clocks left, each delay is as wrong as they are off it.
    let delay = |which: usize| found.delays[which].message().filter(|_| wander == 0.0);
    v1::Leg {
        from: from.name.clone(),
        to: to.name.clone(),
        offset_seconds: first.map(apart),
        offset_width_seconds: first.map(|s| s.width),
        skew_ppm: first.map(|s| s.skew_ppm),
        skew_width_ppm: first.map(|s| s.skew_width_ppm),
        matched: tally.matched,
        only_from: tally.only[near],
        only_to: tally.only[far],
        arrived_forward: tally.arrived[near],
        arrived_backward: tally.arrived[far],
        lost_forward: tally.lost[near],
        lost_backward: tally.lost[far],
        delay_forward: delay(near),
        delay_backward: delay(far),
        duplicated_forward: tally.duplicated[near],
        duplicated_backward: tally.duplicated[far],
        undecided: tally.undecided,
        outside: tally.outside,
        clock: turned
            .iter()
            .map(|s| v1::ClockPiece {
                start: Some(timestamp(s.start)),
                end: Some(timestamp(s.end)),
                offset_seconds: apart(s),
                offset_width_seconds: s.width,
                skew_ppm: s.skew_ppm,
            })
            .collect(),
        round_trip_seconds: round_trip,
        lost_setups: lost_setups(found),
        placement: placement(
            from,
            to,
            found,
            near,
            turned.iter().map(|s| s.local).reduce(f64::min),
            wander,
        ),
    }
}

/// What an offset of TAI lacks to one of UTC, s: clocks that are years apart have leap seconds between them.
fn leap_seconds(start: u64, offset: f64) -> f64 {
    let there = start.wrapping_add_signed((offset * 1e9).round() as i64);
    let leap = |tai: u64| tai.saturating_sub(utc_from_tai(tai));
    seconds(leap(start)) - seconds(leap(there))
}

/// What the legs tell together, or the outermost taps by themselves, if that is more.
fn lost_between_ends(aligner: &Aligner, legs: &[v1::Leg]) -> Vec<v1::LostSetup> {
    let mut lost: BTreeMap<u64, [u32; 2]> = BTreeMap::new();
    for leg in legs.iter().flat_map(|leg| &leg.lost_setups) {
        let [syns, syn_acks] = lost.entry(leg.connection_id).or_default();
        *syns += leg.syns;
        *syn_acks += leg.syn_acks;
    }
    let whole = aligner.whole_path().map(|k| lost_setups(&aligner.found[k]));
    for whole in whole.into_iter().flatten() {
        let [syns, syn_acks] = lost.entry(whole.connection_id).or_default();
        *syns = whole.syns.max(*syns);
        *syn_acks = whole.syn_acks.max(*syn_acks);
    }
    let message = |(connection_id, [syns, syn_acks]): (u64, [u32; 2])| v1::LostSetup {
        connection_id,
        syns,
        syn_acks,
    };
    lost.into_iter().map(message).collect()
}

/// Connections that lost SYNs or SYN-ACKs, by their ids.
fn lost_setups(found: &Findings) -> Vec<v1::LostSetup> {
    let lost = found.lost_setups.iter().map(|(&connection_id, lost)| v1::LostSetup {
        connection_id,
        syns: lost.syns,
        syn_acks: lost.syn_acks,
    });
    let mut lost: Vec<v1::LostSetup> = lost.collect();
    lost.sort_unstable_by_key(|lost| lost.connection_id);
    lost
}

/// What TTL, MAC addresses and delays say about the places of two taps.
fn placement(from: &Tap, to: &Tap, found: &Findings, near: usize, round_trip: Option<f64>, wander: f64) -> Vec<String> {
    let mut out = Vec::new();
    let places = most(&found.places).unwrap_or_default();
    let (here, there) = (places[near], places[1 - near]);
    let same_macs = here.macs == there.macs;
    let known_macs = here.macs != [[0; 6]; 2] && there.macs != [[0; 6]; 2];
    let same_ttl = here.ttls == there.ttls;
    let forward = (here.ttls[0], there.ttls[0]);
    let backward = (there.ttls[1], here.ttls[1]);
    // What stamps in larger steps cannot show is not said.
    let is_seen = seconds(from.coarse() + to.coarse()) < ONE_PLACE;
    if same_ttl && same_macs && known_macs && is_seen && round_trip.is_some_and(|rtt| rtt < ONE_PLACE) {
        out.push(
            "both taps are on the same segment: equal TTLs and MAC addresses, hardly a delay between them".to_owned(),
        );
    } else if found.tally.matched == 0 {
        out.push(format!(
            "no packet is in both: what passes {} does not pass {}, as on parallel ways; compare the others with each of them alone",
            from.name, to.name
        ));
    } else if round_trip.is_none() {
        let has_both = ![forward.0, forward.1, backward.0, backward.1].contains(&0);
        out.push(match has_both {
            false => "packets of one direction only are in both: the clocks cannot be compared".to_owned(),
            true => "no order of the taps fits the times of both directions: the clocks cannot be compared (the same capture twice, taps that are nearer to each other than the steps of their stamps or than these are late, or something between the taps that answers by itself, as a proxy does), nothing is known of what only one has".to_owned(),
        });
    }
    if wander > 0.0 {
        out.push(format!(
            "the clocks wander against each other, by {} in all beside an even drift: the delays of each direction are not known; the smallest round trip needs no clock",
            lasting(wander)
        ));
    }
    for (name, ttl) in [("forward", forward), ("backward", backward)] {
        let (before, after) = ttl;
        if before != 0 && after != 0 {
            match before.cmp(&after) {
                std::cmp::Ordering::Greater => {
                    let hops = before - after;
                    let routers = if hops == 1 { "router" } else { "routers" };
                    out.push(format!("{hops} {routers} {name}: TTL {before} becomes {after}"));
                }
                std::cmp::Ordering::Less => out.push(format!(
                    "TTL {before} becomes {after} {name}: something between the taps sends packets of its own"
                )),
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    if same_ttl && !same_macs && known_macs {
        out.push(
            "MAC addresses differ and TTLs do not: a device between the taps passes packets on as they are".to_owned(),
        );
    }
    let connections = |n: u64| {
        if n == 1 {
            "1 connection".to_owned()
        } else {
            format!("{n} connections")
        }
    };
    if found.translated > 0 {
        out.push(format!("addresses are translated: {}", connections(found.translated)));
    }
    if found.rewritten > 0 {
        out.push(format!(
            "sequence numbers are rewritten: {}",
            connections(found.rewritten)
        ));
    }
    for (side, name) in ["SYNs", "SYN-ACKs"].into_iter().enumerate() {
        if let Some((from, to, count)) = changed(&found.scales[side], NO_SCALE) {
            // What a SYN loses, the server does not answer with: both know.
            let so = match side {
                0 if to == "none" => "",
                _ => "; client and server take each other's windows for other sizes than they are",
            };
            out.push(format!(
                "the window scale of {name} is changed on the way, {from} becomes {to}: {}{so}",
                connections(count)
            ));
        }
        if let Some((from, to, count)) = changed(&found.segments[side], 0) {
            out.push(format!(
                "the MSS of {name} is changed on the way, {from} becomes {to}: {}",
                connections(count)
            ));
        }
    }
    if found.pieces > 0 {
        out.push(format!(
            "segments are cut or joined on the way (segmentation offload): {}",
            several(found.pieces, "packet", "packets")
        ));
    }
    for tap in [from, to] {
        if tap.mirrored > 0 {
            out.push(format!(
                "{}: a mirror port has packets twice; {} left out",
                tap.name,
                several(tap.mirrored, "copy is", "copies are")
            ));
        }
        if tap.clamped > 0 {
            out.push(format!(
                "{}: its clock was set back, or it stamps packets in batches; {} no time of {} own and {} in no delay",
                tap.name,
                several(tap.clamped, "packet has", "packets have"),
                if tap.clamped == 1 { "its" } else { "their" },
                if tap.clamped == 1 { "is" } else { "are" }
            ));
        }
    }
    out
}

/// The most frequent change of an option, and how many connections have any; `none` is its value where it is absent.
fn changed<T: Copy + Ord + std::hash::Hash + std::fmt::Display>(
    counts: &Map<[T; 2], u64>,
    none: T,
) -> Option<(String, String, u64)> {
    let [from, to] = most(counts)?.map(|value| {
        if value == none {
            "none".to_owned()
        } else {
            value.to_string()
        }
    });
    Some((from, to, counts.values().sum()))
}

fn mac(mac: [u8; 6]) -> String {
    if mac == [0; 6] {
        return String::new();
    }
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn pie(method: &str, total: u64, ends: [u64; 2], unsure: u64) -> v1::Pie {
    // Both ends may be busy at once when requests overlap, or stamps in large steps make them seem so: then nothing is left, and
    // whose that time was is not known.
    let busy: u64 = ends.iter().sum();
    let over = busy.saturating_sub(total);
    let [client, server] = ends.map(|end| end as f64 * (1.0 - over as f64 / busy.max(1) as f64));
    v1::Pie {
        client_seconds: client / 1e9,
        network_seconds: seconds(total.saturating_sub(busy)),
        server_seconds: server / 1e9,
        method: method.to_owned(),
        uncertainty_seconds: Some(seconds(unsure + over)),
        total_seconds: seconds(total),
    }
}

fn measured(shares: &Shares) -> v1::Pie {
    pie("MEASURED", shares.total, shares.measured, shares.unsure)
}

fn one_tap(shares: &Shares) -> v1::Pie {
    pie("ONE_TAP", shares.total, shares.one_tap, shares.uncertain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_years_apart_are_apart_by_their_stamps() {
        // Between 1970 and 2026 there were 27.
        let now = 1_790_000_037_000_000_000;
        assert_eq!(leap_seconds(now, -1_790_000_000.0), 27.0);
        assert_eq!(leap_seconds(now, 3600.0), 0.0);
    }

    #[test]
    fn no_pie_is_more_than_the_whole() {
        let pie = pie("MEASURED", 4_000_000_000, [2_000_000_000, 6_000_000_000], 500_000_000);
        assert_eq!(
            (pie.client_seconds, pie.network_seconds, pie.server_seconds),
            (1.0, 0.0, 3.0)
        );
        assert_eq!(pie.uncertainty_seconds, Some(4.5));
    }
}
