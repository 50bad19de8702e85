//! Which hosts sleep of themselves, and which are silent because another is.

use super::naps::{Nap, Rhythm, common};
use super::sleeper::{BY_CHANCE, Host, LEAST, Sleeper, sleeper};
use super::track::{QUIET, WAITING};

/// Share of a client's sleeps in which its server slept, from which on the client may only have waited for it.
const WITH_SERVER: f64 = 0.7;
/// Share of the sleeps of one host in which another is silent though somebody waits for it, from which on that sleeps,
/// too. Most sleeps of a quick server find it without work.
const PARTNER: f64 = 0.25;
/// Share of the common sleeps after which a client began before its server's data can have reached it, from which on
/// it did not only wait for that server.
const OF_ITSELF: f64 = 0.2;
/// And how many at least: after losses a repeat can look like that.
const LEAST_OF_ITSELF: usize = 3;
/// Share of the server's sleep before its end from which on that is just before.
const SOON: f64 = 0.1;
/// What a host begins in another's sleeps, over what it begins around them, up to which it sleeps with it. A server
/// whose client sleeps falls silent, too, but only after it has answered what it was asked.
const ASLEEP: f64 = 0.2;
/// What such a client begins in its server's sleeps, over what it begins around them, from which on it is awake.
const AWAKE_CLIENT: f64 = 0.05;
/// A silence follows a sleep that began up to so many lengths of it before, and less than half of the time between
/// sleeps: what was asked at once on awakening is answered at once, and nothing for a while after it.
const ECHO: f64 = 4.0;
/// It is no longer than the sleep that it follows, and a piece of it is shorter.
const ECHO_LONGEST: f64 = 1.1;
const PIECE: f64 = 0.8;
/// Share of a host's silences that follow another's sleeps, from which on they have no other cause, and how many times
/// what chance makes that is.
const FOLLOWS: f64 = 0.5;
const MORE_THAN_CHANCE: f64 = 1.5;

/// Hosts that sleep by themselves or together with others.
pub(super) fn sleepers<'a>(hosts: &[Host<'a>]) -> Vec<Sleeper<'a>> {
    let mut sleepers: Vec<Sleeper> = hosts.iter().copied().filter_map(sleeper).collect();
    drop_explained(&mut sleepers, |own, other| {
        runs_dry(own, other) || follows(own, other) || falls_later(own, other)
    });
    if let Some(most) = sleepers.iter().max_by_key(|sleeper| sleeper.naps.len()).cloned() {
        let is_known = |host: &Host| sleepers.iter().any(|sleeper| sleeper.host.number == host.number);
        let strangers = hosts.iter().copied().filter(|host| !is_known(host));
        let partners = strangers.filter_map(|host| partner(host, &most.naps, ASLEEP));
        let partners: Vec<Sleeper> = partners.filter(|partner| !falls_later(partner, &most)).collect();
        sleepers.extend(partners);
    }
    drop_explained(&mut sleepers, only_waits);
    // One that was seen to sleep by itself comes before those known by it.
    sleepers.sort_by_key(|sleeper| std::cmp::Reverse((sleeper.awake > 0, sleeper.naps.len(), sleeper.host.address)));
    sleepers
}

/// Drop those whose silences another's explain.
fn drop_explained(sleepers: &mut Vec<Sleeper>, explains: impl Fn(&Sleeper, &Sleeper) -> bool) {
    let is_explained = |own: &&Sleeper| {
        let mut others = sleepers.iter().filter(|other| other.host.number != own.host.number);
        others.any(|other| explains(own, other))
    };
    let explained = sleepers.iter().filter(is_explained);
    let explained: Vec<usize> = explained.map(|own| own.host.number).collect();
    sleepers.retain(|sleeper| !explained.contains(&sleeper.host.number));
}

/// Whether a host is silent because a server that it asks is: it never begins before that server's data can have
/// reached it.
fn only_waits(client: &Sleeper, server: &Sleeper) -> bool {
    let track = client.host.track;
    // Those that ended with little work, too: it is there first then.
    let all = partner(client.host, &server.naps, f64::INFINITY);
    let naps = all.as_ref().map_or(&client.naps, |all| &all.naps);
    let mut common = common(naps, &server.naps);
    // The server's silence must be what the client's rests on, not a part of it.
    common.retain(|(own, theirs)| 2 * own.shared(theirs) >= own.to - own.from);
    if !client.host.asks(server.host) || (common.len() as f64) < WITH_SERVER * client.naps.len() as f64 {
        return false;
    }
    if track.begun_in(&server.naps) > AWAKE_CLIENT {
        return true;
    }
    // Who slept with it wakes with it; data long before is a repeat that looks new.
    let first = common
        .iter()
        .filter(|(own, theirs)| {
            let soon = (QUIET * own.before as f64).min(SOON * (theirs.to - theirs.from) as f64);
            let act = track.first_act(own);
            act < theirs.to + track.trip && act as f64 + soon >= theirs.to as f64
        })
        .count();
    first < LEAST_OF_ITSELF || (first as f64) < OF_ITSELF * common.len() as f64
}

/// Clients of a host that sleeps which fall silent with it: they wait for it, or sleep, too.
pub(super) fn silent_clients<'a>(hosts: &[Host<'a>], first: &Sleeper, with: &[Sleeper]) -> Vec<Sleeper<'a>> {
    let is_named = |host: &Host| with.iter().any(|other| other.host.number == host.number);
    let clients = hosts
        .iter()
        .copied()
        .filter(|host| host.asks(first.host) && !is_named(host));
    clients
        .filter_map(|host| partner(host, &first.naps, AWAKE_CLIENT))
        .collect()
}

/// Whether a host is silent because nobody asks it any more while another sleeps: it goes on at first.
fn runs_dry(own: &Sleeper, other: &Sleeper) -> bool {
    let common = common(&own.naps, &other.naps).len();
    common as f64 >= WITH_SERVER * own.naps.len() as f64 && own.host.track.begun_in(&other.naps) > ASLEEP
}

/// Whether a host goes on when another falls asleep, however soon it then has nothing more to do: who sleeps with
/// it falls silent with it.
fn falls_later(own: &Sleeper, other: &Sleeper) -> bool {
    let trip = own.host.track.trip;
    let common = common(&own.naps, &other.naps);
    let later = common
        .iter()
        .filter(|(own, theirs)| own.from as f64 > (theirs.from + trip) as f64 + QUIET * own.before as f64)
        .count();
    common.len() as f64 >= WITH_SERVER * own.naps.len() as f64 && 2 * later > common.len()
}

/// A host of which less is asked: it is silent when another sleeps, although somebody waits for it. It begins the share
/// `most` then of what it begins around them.
fn partner<'a>(host: Host<'a>, naps: &[Nap], most: f64) -> Option<Sleeper<'a>> {
    let track = host.track;
    let mut silences = track.silences(WAITING);
    silences.retain(|silence| silence.chance <= BY_CHANCE);
    let pieces: Vec<Nap> = silences.iter().map(|silence| track.nap(silence)).collect();
    // Of one sleep there may be several, with data between that TCP had ready.
    let mut own: Vec<(Nap, u64)> = Vec::new();
    for (piece, theirs) in common(&pieces, naps) {
        match own.last_mut() {
            Some((nap, from)) if *from == theirs.from => nap.to = piece.to,
            _ => own.push((*piece, theirs.from)),
        }
    }
    let own: Vec<Nap> = own.into_iter().map(|(nap, _)| nap).collect();
    let often = own.len() >= LEAST && own.len() as f64 >= PARTNER * naps.len() as f64;
    (often && track.begun_in(naps) <= most).then_some(Sleeper {
        host,
        naps: own,
        heard: 0,
        awake: 0,
        at_once: 0,
        opening: 0,
    })
}

/// Whether the silences of one are pieces or echoes of another's sleeps.
fn follows(own: &Sleeper, other: &Sleeper) -> bool {
    let usual = |sleeper: &Sleeper| {
        let mut all: Vec<u64> = sleeper.naps.iter().map(|nap| nap.to - nap.from).collect();
        all.sort_unstable();
        all[all.len() / 2] as f64
    };
    let length = usual(other);
    let between = Rhythm::of(&other.naps).mean * 1e9;
    let reach = (ECHO * length).min(between / 2.0);
    let is_caused = |nap: &&Nap| {
        let before = other.naps.partition_point(|theirs| theirs.from <= nap.to);
        other.naps[..before].last().is_some_and(|theirs| {
            let lag = nap.from as f64 - theirs.from as f64;
            if lag < length / 2.0 {
                ((nap.to - nap.from) as f64) < PIECE * length
            } else {
                lag <= reach
            }
        })
    };
    let caused = own.naps.iter().filter(is_caused).count() as f64;
    let least = FOLLOWS.max(MORE_THAN_CHANCE * reach / between);
    usual(own) <= ECHO_LONGEST * length && caused >= least * own.naps.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::sleep::fixtures::sleeper;
    use crate::sleep::track::Track;
    use weir_record::FlowId;

    #[test]
    fn echoes_and_pieces_follow_a_sleep() {
        let track = Track::default();
        let sleep = sleeper(&track, 0, 0, 700);
        for (after, length, follows_it) in [
            (900, 250, true),
            (400, 700, true),
            (50, 300, true),
            // Asleep together, and by itself.
            (0, 690, false),
            (3_500, 500, false),
        ] {
            let other = sleeper(&track, 1, after, length);
            assert_eq!(follows(&other, &sleep), follows_it, "{length} ms after {after} ms");
            assert!(length == 700 || !follows(&sleep, &other));
        }
    }

    /// Data that TCP had ready passes in another's sleep, three times: that cuts it, and does not make it two.
    #[test]
    fn a_sleep_that_is_cut_counts_once() {
        const MS: u64 = 1_000_000;
        let mut track = Track::default();
        let mut random = Random::new(5);
        let mut naps = Vec::new();
        for ms in 1_000..61_000u64 {
            track.moments.fill(WAITING, ms * MS, (ms + 60) * MS);
            let phase = ms % 5_000;
            let is_ready = (400..412).contains(&phase) && phase % 4 == 0;
            if phase >= 780 && random.below(5) < 2 || is_ready {
                track.began(FlowId(ms), ms * MS);
            }
            if ms >= 5_000 && phase == 0 {
                naps.push(Nap {
                    from: ms * MS,
                    to: (ms + 780) * MS,
                    before: MS,
                    strays: 0,
                });
            }
        }
        let host = Host {
            number: 0,
            address: [1; 16],
            track: &track,
        };
        let found = partner(host, &naps, ASLEEP).unwrap_or_else(|| panic!("awake"));
        assert_eq!(found.naps.len(), naps.len());
        assert!(
            found.naps.iter().all(|nap| (0.75..0.8).contains(&nap.length())),
            "{:?}",
            found.naps
        );
    }
}
