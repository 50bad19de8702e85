//! Which silences of a host are its sleeps: more than chance makes, of one kind, with its TCP awake.

use std::f64::consts::SQRT_2;

use super::naps::{Nap, are_alike, is_regular};
use super::track::{SHORTEST, Silence, TWO_WAITING, Track, chance};
use crate::names::Address;

/// Share of the silences told that may be chance (false discovery rate, Benjamini and Hochberg 1995).
pub(super) const BY_CHANCE: f64 = 0.02;
/// Sleeps from which on it is a pattern, if they are regular, and if they are not.
pub(super) const LEAST: usize = 5;
const LEAST_IRREGULAR: usize = 10;
/// Silences whose lengths are within this factor are of one kind, and so many shorter ones there may be for each.
const KIND: f64 = 1.35;
const FEW: f64 = 0.33;
/// A host is so busy that chance makes so many silences of the length, or fewer: the first of these with which a kind
/// shows. Traffic that comes in bursts has more silences than chance makes, most of them where the host is less busy.
const BUSY: [f64; 4] = [1.0, 1e-4, 1e-8, 1e-12];
/// Lengths that are tried as the shortest of a kind.
const TRIED: usize = 200;
/// A host that is silent for a larger share of its time works so.
const MOST_SILENT: f64 = 0.6;
/// Share of the sleeps in which the host's TCP was heard or nothing was lost; and in which it was heard, from which on it is
/// known that the way did not stand still.
pub(super) const AWAKE: f64 = 0.5;

/// One of the hosts that are watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host<'a> {
    pub number: usize,
    pub address: Address,
    pub track: &'a Track,
}

impl Host<'_> {
    /// Whether it is a client of another.
    pub(super) const fn asks(self, other: Host<'_>) -> bool {
        self.track.servers >> other.number & 1 != 0
    }
}

/// The sleeps of a host.
#[derive(Clone, Debug)]
pub(super) struct Sleeper<'a> {
    pub host: Host<'a>,
    pub naps: Vec<Nap>,
    /// Naps in which its TCP was heard, and those in which that or that nothing was lost shows that only the
    /// application stopped.
    pub heard: usize,
    pub awake: usize,
    /// Naps that end with data of several connections at once, and those in which it opened connections.
    pub at_once: usize,
    pub opening: usize,
}

/// Whether there are sleeps of a host, and which.
pub(super) fn sleeper(host: Host<'_>) -> Option<Sleeper<'_>> {
    let track = host.track;
    let mut silences = track.silences(TWO_WAITING);
    drop_echoes(&mut silences);
    silences.sort_by(|a, b| a.chance.total_cmp(&b.chance));
    // Where none shows among those that end as sleeps do, all are looked at: a quick host may wake to little work.
    let share = track.at_once();
    let ending = silences.iter().copied().filter(|silence| track.ends_at_once(silence));
    let ending = ending.map(|silence| Silence {
        chance: silence.chance * share,
        ..silence
    });
    let ending: Vec<Silence> = ending.collect();
    of_a_kind(host, ending, share, false)
        .or_else(|| of_a_kind(host, silences.clone(), 1.0, false))
        .or_else(|| of_a_kind(host, silences, 1.0, true))
}

/// The sleeps among silences, sorted by chance; they are such a share of those that chance makes.
fn of_a_kind(host: Host<'_>, mut silences: Vec<Silence>, share: f64, unseen: bool) -> Option<Sleeper<'_>> {
    let track = host.track;
    let told = silences
        .iter()
        .enumerate()
        .rposition(|(n, silence)| silence.chance <= BY_CHANCE * (n + 1) as f64)?;
    let slots = track.moments.slots();
    let least = SHORTEST / track.moments.width();
    let (busy, shortest) = BUSY
        .map(|busy| busy / share)
        .into_iter()
        .find_map(|busy| Some((busy, kind(&silences, told + 1, slots, least, busy)?)))?;
    silences.truncate(told + 1);
    silences.retain(|silence| {
        (shortest..2 * shortest).contains(&silence.empty()) && is_busy(silence, slots, shortest, busy)
    });
    drop_strange(&mut silences);
    silences.sort_by_key(|silence| silence.from);
    let count = |is: &dyn Fn(&Silence) -> bool| silences.iter().filter(|silence| is(silence)).count();
    let heard = count(&|silence| track.is_heard(silence));
    let awake = count(&|silence| track.is_heard(silence) || !track.is_lossy(silence));
    let at_once = count(&|silence| track.ends_at_once(silence));
    let opening = count(&|silence| track.is_opening(silence));
    let naps: Vec<Nap> = silences.iter().map(|silence| track.nap(silence)).collect();
    let whole = naps.last()?.to.saturating_sub(naps.first()?.from);
    let silent: u64 = naps.iter().map(|nap| nap.to - nap.from).sum();
    let least = if is_regular(&naps, unseen) {
        LEAST
    } else {
        LEAST_IRREGULAR
    };
    let is_pattern =
        naps.len() >= least && silent as f64 <= MOST_SILENT * whole as f64 && awake as f64 >= AWAKE * naps.len() as f64;
    is_pattern.then_some(Sleeper {
        host,
        naps,
        heard,
        awake,
        at_once,
        opening,
    })
}

/// What waited for the host is answered at once when it wakes, and nothing for a while after it: a silence right behind
/// one that was longer is its echo, or a piece of it. In the order of time.
fn drop_echoes(silences: &mut Vec<Silence>) {
    let mut before: Option<Silence> = None;
    silences.retain(|silence| {
        let is_echo = before.is_some_and(|before| {
            before.chance <= BY_CHANCE
                && silence.empty() < before.empty()
                && 2 * silence.from.saturating_sub(before.to) < silence.empty()
        });
        before = Some(*silence);
        !is_echo
    });
}

/// Where one cause makes them all as long, a silence nearer to twice or half of it has another: a load that begins, say.
fn drop_strange(silences: &mut Vec<Silence>) {
    let mut lengths: Vec<f64> = silences.iter().map(|silence| silence.empty() as f64).collect();
    lengths.sort_by(f64::total_cmp);
    if !lengths.is_empty() && are_alike(&lengths) {
        let usual = lengths[lengths.len() / 2];
        silences.retain(|silence| (usual / SQRT_2..=usual * SQRT_2).contains(&(silence.empty() as f64)));
    }
}

/// The host is so busy around it that chance makes `most` silences, even of those shorter by [`KIND`].
fn is_busy(silence: &Silence, slots: usize, length: usize, most: f64) -> bool {
    chance(slots, silence.busy, (length as f64 / KIND) as usize, 0) <= most
}

/// The length, in slots, from which on silences are a kind of their own: many within [`KIND`] above the shortest of them, few
/// within [`KIND`] below it. The tail of an ordinary distribution falls, whatever its form. Looked at where the host is
/// so busy that chance makes no silence of either length.
fn kind(silences: &[Silence], told: usize, slots: usize, least: u64, most: f64) -> Option<usize> {
    let score = |length: usize| {
        let below = (length as f64 / KIND) as usize;
        let above = (length as f64 * KIND) as usize;
        let busy = silences.iter().filter(|silence| is_busy(silence, slots, length, most));
        let (mut many, mut few) = (0usize, 0usize);
        for silence in busy {
            many += usize::from((length..above).contains(&silence.empty()));
            few += usize::from((below..length).contains(&silence.empty()));
        }
        let is_kind = many >= LEAST && few as f64 <= FEW * many as f64;
        is_kind.then(|| (many as f64 - few as f64) / ((many + few) as f64).sqrt())
    };
    let mut lengths: Vec<usize> = silences[..told].iter().map(Silence::empty).collect();
    lengths.retain(|length| *length as u64 >= least);
    lengths.sort_unstable();
    lengths.dedup();
    let step = lengths.len().div_ceil(TRIED);
    let scores = lengths
        .into_iter()
        .step_by(step.max(1))
        .filter_map(|length| Some((score(length)?, length)));
    scores.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, shortest)| shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence(from: usize, empty: usize) -> Silence {
        Silence {
            from,
            to: from + empty + 1,
            strays: 0,
            busy: 0.4,
            chance: 0.0,
        }
    }

    #[test]
    fn a_shorter_silence_right_behind_a_longer_is_its_echo() {
        for (from, empty, is_echo) in [
            (1_520, 330, true),
            (1_660, 330, true),
            (1_700, 330, false),
            (1_520, 600, false),
        ] {
            let mut silences = vec![silence(1_000, 500), silence(from, empty)];
            drop_echoes(&mut silences);
            assert_eq!(silences.len(), if is_echo { 1 } else { 2 }, "{empty} at {from}");
        }
    }

    #[test]
    fn a_silence_of_another_length_is_none_of_them() {
        let kept = |lengths: &[usize]| {
            let mut silences: Vec<Silence> = lengths.iter().map(|empty| silence(0, *empty)).collect();
            drop_strange(&mut silences);
            silences.iter().map(Silence::empty).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[270, 268, 400, 272, 266, 275, 190]), [270, 268, 272, 266, 275]);
        // Where they differ, all may be.
        let all = [270, 310, 400, 350, 290, 450];
        assert_eq!(kept(&all), all);
    }

    /// A dozen sleeps of a busy host, and the silences of a time in which it did less, in bursts.
    #[test]
    fn a_kind_shows_where_the_host_is_busiest() {
        let slots = 400_000;
        let silence = |empty: usize, busy: f64| Silence {
            from: 0,
            to: empty + 1,
            strays: 0,
            busy,
            chance: chance(slots, busy, empty, 0),
        };
        let sleeps = (0..12).map(|i| silence(200 + i, 0.4));
        let bursts = (0..40).map(|i| silence(120 + 5 * i, 0.1));
        let all: Vec<Silence> = sleeps.chain(bursts.clone()).collect();
        assert_eq!(kind(&all, all.len(), slots, 48, BUSY[0]), None);
        assert_eq!(kind(&all, all.len(), slots, 48, BUSY[1]), Some(200));
        let bursts: Vec<Silence> = bursts.collect();
        assert!(
            BUSY.iter()
                .all(|most| kind(&bursts, bursts.len(), slots, 48, *most).is_none())
        );
    }
}
