//! Applications that stop while their TCP goes on.
//!
//! The application of a host shows itself when data of the host begins. A silence is a time without; what opens
//! connections may go on in it. It is a sleep when it cannot be chance at the rate at which the host sends otherwise, when
//! at least two connections waited for the host all the time, and when the host's TCP was heard in it: ACKs, SYN-ACKs,
//! repeats. A link or a capture that stops takes these away, too; so where TCP was seldom heard and nothing was lost, a link
//! that holds packets back is as likely. Who wakes has work for several connections at once; a
//! silence between two pieces of work ends with one.
//!
//! Memory: 32 hosts, 600 kB each at most (550 s; longer times in wider slots).

use std::f64::consts::SQRT_2;
use std::ops::Range;

use weir_analysis::{
    Acknowledged, Class, DataBlock, Ends, Group, Opened, TransactionKind, Verdict, address, clock, decimal, finding,
    seconds,
};
use weir_messages::v1::{Finding, FindingValue};
use weir_record::FlowId;

use crate::backlog::Transaction;
use crate::detector::Detector;
use crate::hosts::Hosts;
use crate::moments::Moments;
use crate::routes::Route;
use crate::services::Service;
use crate::steps::levels;
use crate::timeline::Timeline;

/// Shorter silences are not told from work, ns.
const SHORTEST: u64 = 50_000_000;
/// Share of the silences told that may be chance (false discovery rate, Benjamini and Hochberg 1995).
const BY_CHANCE: f64 = 0.02;
/// Data that began before the application stopped may pass later: the retransmission of a segment that was lost before
/// the tap, a request that waited for the SYN-ACK. So often, and for so many slots, it does not end a silence.
const STRAYS: u32 = 2;
const STRAY: usize = 2;
/// Either part of such a silence is so many times as long as the host usually is silent: it would be chance once in
/// 22,000 times.
const QUIET: f64 = 10.0;
/// The rate is that of the two seconds before and behind a silence, ns.
const AROUND: u64 = 2_000_000_000;
/// Share of a silence in which two connections must wait for the host.
const WAITED: f64 = 0.75;
/// Sleeps from which on it is a pattern, if they are regular, and if they are not.
const LEAST: usize = 5;
const LEAST_IRREGULAR: usize = 10;
/// Silences whose lengths are within this factor are of one kind, and so many shorter ones there may be for each.
const KIND: f64 = 1.35;
const FEW: f64 = 0.33;
/// A host is so busy that chance makes so many silences of the length, or fewer: the first of these with which a kind
/// shows. Traffic that comes in bursts has more silences than chance makes, most of them where the host is less busy.
const BUSY: [f64; 4] = [1.0, 1e-4, 1e-8, 1e-12];
/// Slots within which data begins at once.
const AT_ONCE: usize = 2;
/// Lengths that are tried as the shortest of a kind.
const TRIED: usize = 200;
/// A host that is silent for a larger share of its time works so.
const MOST_SILENT: f64 = 0.6;
/// Share of the sleeps in which the host's TCP was heard or nothing was lost; and in which it was heard, from which on it is
/// known that the way did not stand still. What holds packets back loses nothing either: an application that stops is
/// then one of two causes.
const AWAKE: f64 = 0.5;
const HELD_BACK: f64 = 0.5;
/// Bytes that a capture missed are noticed with the next that it has, at most so many slots later.
const NOTICED: usize = 8;
/// Share of the sleeps of one host in which another slept, from which on they sleep together: by chance it is about
/// the share of time that they sleep.
const TOGETHER: f64 = 0.3;
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
/// Share of the intervals within 0.6 and 1.6 of their median from which on they are regular: by chance it is 0.33,
/// and uniform from half to one and a half of the mean 0.9.
const REGULAR: f64 = 0.6;
/// Or within so much of the median of one, two or three times it, where sleeps were not seen: by chance it is 0.33, too.
const NEAR_MULTIPLE: f64 = 0.25;
const MOST_UNSEEN: f64 = 3.0;
/// The mean is of the intervals within this factor of the median.
const NEAREST: f64 = 1.25;
/// Standard deviation of those intervals, against their mean, up to which they are a period: 0.26 by chance.
const SPREAD: f64 = 0.12;
/// The middle half of the lengths lies within so much of the median: one cause makes them all. Silences without a
/// period and of all lengths may be of work that comes in steps.
const ALIKE: f64 = 0.15;
/// Where they differ by more than this share of the median, and no more than [`QUIET`] usual pauses, the pauses before
/// them may be what differs.
const DIFFERENT: f64 = 0.2;
/// Share of the silences that come right behind another, from which on they may be pieces of longer ones.
const PIECES: f64 = 0.25;
/// Share of the silences that end with data of several connections at once, below which they are less sure.
const LEAST_AT_ONCE: f64 = 0.25;
/// Confidence with a period or one length, and with neither, where they may be pieces, or where few end at once.
const SURE: f64 = 0.95;
const UNSURE: f64 = 0.6;
/// Awakenings whose exact time is kept.
const AWAKENINGS: usize = 4096;
/// Sleeps whose times the evidence names.
const NAMED: usize = 5;

/// Layers of [`Moments`]. Data began, on connections of even and of odd number: both are two connections.
const BEGAN: [usize; 2] = [0, 1];
/// A connection waited for the host; two or more did so in the next layer.
const WAITING: usize = 2;
const TWO_WAITING: usize = 3;
const TCP: usize = 4;
/// A segment of the host or to it was lost, by the network or by the capture.
const LOST: usize = 5;
/// It opened a connection.
const OPENED: usize = 6;
/// A connection waited for its next request; two or more did so in the next layer.
const THINKING: usize = 7;
/// A host that is asked so many times, for each of its own requests, asks because it is asked: a connection of it that
/// rests waits for nobody.
const ASKED: f64 = 0.05;

/// What a host did when.
#[derive(Clone, Debug, Default)]
struct Track {
    moments: Moments,
    /// Newest begin of data, and the newest before the last awakening, TAI ns.
    newest: u64,
    before: u64,
    /// First data after each silence, exact.
    awakenings: Vec<u64>,
    /// Newest connection that it opened, and each that came after such a time without one, TAI ns.
    newest_opened: u64,
    openings: Vec<u64>,
    /// Smallest round trip between the tap and the host, ns; 0: not known.
    trip: u64,
    /// Places of the hosts whose client it is.
    servers: u32,
    /// Requests to it and its own.
    asked: u32,
    asks: u32,
}

impl Track {
    fn began(&mut self, id: FlowId, time: u64) {
        self.moments.set(BEGAN[(id.0 & 1) as usize], time);
        if time > self.newest {
            if time - self.newest >= SHORTEST && self.newest > 0 && self.awakenings.len() < AWAKENINGS {
                self.before = self.newest;
                self.awakenings.push(time);
            }
            self.newest = time;
        } else if time > self.before
            && let Some(last) = self.awakenings.last_mut()
        {
            // Blocks are told when they end.
            *last = time.min(*last);
        }
    }

    fn opened(&mut self, time: u64) {
        self.moments.set(OPENED, time);
        if time.saturating_sub(self.newest_opened) >= SHORTEST && self.openings.len() < AWAKENINGS {
            self.openings.push(time);
        }
        self.newest_opened = time.max(self.newest_opened);
    }

    /// What it did first when a silence ended: the data, or the last connection before that which it opened after a time
    /// without one, TAI ns.
    fn first_act(&self, nap: &Nap) -> u64 {
        let before = self.openings.partition_point(|time| *time <= nap.to);
        let opening = self.openings[..before].last().filter(|time| **time > nap.from);
        opening.map_or(nap.to, |time| *time)
    }

    fn has_begun(&self, slot: usize) -> bool {
        BEGAN.into_iter().any(|layer| self.moments.is_set(layer, slot))
    }

    /// When the silence ended whose last slot comes before `slot`, TAI ns.
    fn awakening(&self, slot: usize) -> u64 {
        let (from, to) = (self.moments.time(slot), self.moments.time(slot + 1));
        let exact = self.awakenings.partition_point(|time| *time < from);
        self.awakenings
            .get(exact)
            .filter(|time| **time < to)
            .map_or(from, |time| *time)
    }

    /// Times in which nothing began although somebody waited (a layer), with what chance says of them.
    fn silences(&self, waiting: usize) -> Vec<Silence> {
        let waiting = if f64::from(self.asked) >= ASKED * f64::from(self.asks) {
            waiting
        } else {
            waiting - WAITING + THINKING
        };
        let [even, odd] = BEGAN.map(|layer| self.moments.layer(layer));
        let words: Vec<u64> = even.zip(odd).map(|(even, odd)| even | odd).collect();
        let mut sums = Vec::with_capacity(words.len() + 1);
        sums.push(0u32);
        for word in &words {
            sums.push(sums[sums.len() - 1] + word.count_ones());
        }
        let width = self.moments.width();
        let around = (AROUND / width).div_ceil(64) as usize;
        let measure = |from: usize, to: usize, strays: u32| {
            // The words around, the silence left out.
            let (before, behind) = (from / 64, to / 64);
            let (low, high) = ((before + 1).saturating_sub(around), (behind + around).min(words.len()));
            let begun = sums[before + 1] - sums[low] + sums[high] - sums[behind];
            let looked = (before + 1 - low + high - behind) * 64;
            let busy = f64::from(begun) / looked as f64;
            Silence {
                from,
                to,
                strays,
                busy,
                chance: chance(words.len() * 64, busy, to - from - 1, strays),
            }
        };
        let mut found: Vec<Silence> = Vec::new();
        let mut last = None;
        for (number, word) in words.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let to = number * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let Some(from) = last.replace(to) else { continue };
                if ((to - from - 1) as u64) * width < SHORTEST / 2 {
                    continue;
                }
                let mut silence = measure(from, to, 0);
                if let Some(before) = found.last()
                    && from - before.to <= STRAY
                    && before.strays < STRAYS
                    && !self.has_several(before.to..from + 1)
                {
                    let joined = measure(before.from, to, before.strays + 1);
                    if joined.chance < silence.chance.min(before.chance)
                        && joined.busy * silence.empty().min(before.empty()) as f64 >= QUIET
                    {
                        silence = joined;
                        found.pop();
                    }
                }
                found.push(silence);
            }
        }
        found.retain(|silence| {
            let slots = silence.from + 1..silence.to;
            let waited = slots.clone().filter(|slot| self.moments.is_set(waiting, *slot)).count();
            waited as f64 >= WAITED * slots.len() as f64
        });
        found
    }

    fn nap(&self, silence: &Silence) -> Nap {
        Nap {
            from: self.moments.time(silence.from),
            to: self.awakening(silence.to),
            before: (self.moments.width() as f64 / silence.busy) as u64,
            strays: silence.strays,
        }
    }

    /// What began in sleeps of another host, over what began around them: 0 if it slept, too, 1 if nothing changed.
    fn begun_in(&self, naps: &[Nap]) -> f64 {
        let around = (AROUND / self.moments.width()) as usize;
        let begun = |slots: Range<usize>| slots.filter(|slot| self.has_begun(*slot)).count() as f64;
        let (mut inside, mut expected) = (0.0, 0.0);
        for nap in naps {
            let (Some(from), Some(to)) = (self.moments.slot(nap.from), self.moments.slot(nap.to)) else {
                continue;
            };
            // Data from just before may pass the tap later.
            let asleep = from + 1 + STRAY..to;
            let (before, behind) = (from.saturating_sub(around)..from, to..to + around);
            let looked = (before.len() + behind.len()) as f64;
            expected += (begun(before) + begun(behind)) / looked * asleep.len() as f64;
            inside += begun(asleep);
        }
        inside / f64::max(expected, f64::MIN_POSITIVE)
    }

    /// Data of several connections began in these slots.
    fn has_several(&self, slots: Range<usize>) -> bool {
        let mut layers = BEGAN.into_iter();
        layers.all(|layer| slots.clone().any(|slot| self.moments.is_set(layer, slot)))
    }

    /// Data of several connections began at once when it ended.
    fn ends_at_once(&self, silence: &Silence) -> bool {
        self.has_several(silence.to..silence.to + AT_ONCE)
    }

    /// Share of the moments at which data began when data of several connections did.
    fn at_once(&self) -> f64 {
        let (mut begun, mut at_once) = (0u32, 0u32);
        let [even, odd] = BEGAN.map(|layer| self.moments.layer(layer));
        for (even, odd) in even.zip(odd) {
            begun += (even | odd).count_ones();
            // As for a silence: within the slot or the next.
            at_once += ((even | odd) & (even | even >> 1) & (odd | odd >> 1)).count_ones();
        }
        f64::from(at_once) / f64::from(begun.max(1))
    }

    /// Connections were opened in it.
    fn is_opening(&self, silence: &Silence) -> bool {
        (silence.from + 1..silence.to).any(|slot| self.moments.is_set(OPENED, slot))
    }

    /// Segments were lost in a silence: a link or a capture that stops loses what is sent meanwhile.
    fn is_lossy(&self, silence: &Silence) -> bool {
        (silence.from..silence.to + NOTICED).any(|slot| self.moments.is_set(LOST, slot))
    }

    /// The host's TCP was heard in a silence, later than the last data before it explains.
    fn is_heard(&self, silence: &Silence) -> bool {
        let quiet = silence.from + (3.0 / silence.busy).ceil() as usize;
        (quiet.max(silence.from + 2)..silence.to).any(|slot| self.moments.is_set(TCP, slot))
    }
}

/// Silences of so many empty slots or more that chance makes in `slots` slots, if something begins in the share `busy`
/// of the slots; with so many interruptions.
fn chance(slots: usize, busy: f64, empty: usize, strays: u32) -> f64 {
    let interrupted: f64 = (0..strays)
        .map(|i| (empty as f64 - f64::from(i)) / f64::from(i + 1) * busy)
        .product();
    slots as f64 * busy * interrupted * (1.0 - busy).powf(empty as f64 - f64::from(strays))
}

/// A time in which nothing began, between two slots in which something did.
#[derive(Clone, Copy, Debug)]
struct Silence {
    from: usize,
    to: usize,
    /// Data in it that TCP had ready before, or sent again.
    strays: u32,
    /// Share of the slots around in which something began.
    busy: f64,
    /// Silences like it that chance makes in the whole time.
    chance: f64,
}

impl Silence {
    /// Slots.
    const fn empty(&self) -> usize {
        self.to - self.from - 1
    }
}

/// A sleep of a host, TAI ns.
#[derive(Clone, Copy, Debug)]
struct Nap {
    from: u64,
    to: u64,
    /// Usual time from one begin to the next around it, ns.
    before: u64,
    strays: u32,
}

impl Nap {
    /// s; the last begin before it was not its own begin, but some time earlier.
    fn length(&self) -> f64 {
        seconds((self.to - self.from).saturating_sub(self.before))
    }

    /// Time of both, ns.
    fn shared(&self, other: &Self) -> u64 {
        self.to.min(other.to).saturating_sub(self.from.max(other.from))
    }
}

/// The sleeps of a host.
#[derive(Clone, Debug)]
struct Sleeper {
    number: usize,
    address: [u8; 16],
    naps: Vec<Nap>,
    /// Naps in which its TCP was heard, and those in which that or that nothing was lost shows that only the
    /// application stopped.
    heard: usize,
    awake: usize,
    /// Naps that end with data of several connections at once, and those in which it opened connections.
    at_once: usize,
    opening: usize,
}

/// Sleeps of all hosts.
#[derive(Debug, Default)]
pub(crate) struct ApplicationSleep {
    hosts: Hosts<Track>,
}

impl ApplicationSleep {
    /// A connection waited for a host of its route, in a layer.
    fn waited(&mut self, waiting: usize, route: &mut Route, side: usize, from: u64, ns: u64) {
        let Some(track) = self.hosts.at(route, side) else {
            return;
        };
        let count = if waiting == WAITING {
            &mut track.asked
        } else {
            &mut track.asks
        };
        *count += 1;
        if ns >= SHORTEST {
            track.moments.fill(waiting, from, from.saturating_add(ns));
        }
    }

    fn heard(&mut self, route: &mut Route, side: usize, time: u64) {
        if let Some(track) = self.hosts.at(route, side) {
            track.moments.set(TCP, time);
        }
    }

    /// Times (TAI ns) in which this host, or one that it asks, began nothing although somebody waited, not by chance:
    /// what was under way then is answered late.
    pub fn stops(&self, host: [u8; 16]) -> Vec<Range<u64>> {
        let own = self.hosts.iter().find(|(address, _)| *address == host);
        let servers = own.map_or(0, |(_, track)| track.servers);
        let hosts = self.hosts.iter().enumerate();
        let involved = hosts.filter(|(number, (address, _))| servers >> number & 1 != 0 || *address == host);
        let silences = involved.flat_map(|(_, (_, track))| {
            let mut silences = track.silences(TWO_WAITING);
            silences.retain(|silence| silence.chance <= BY_CHANCE);
            silences.into_iter().map(|silence| track.nap(&silence))
        });
        silences.map(|nap| nap.from..nap.to).collect()
    }

    /// Hosts that sleep by themselves or together with others.
    fn sleepers(&self) -> Vec<Sleeper> {
        let mut sleepers: Vec<Sleeper> = self
            .hosts
            .iter()
            .enumerate()
            .filter_map(|(number, (address, track))| sleeper(number, address, track))
            .collect();
        let caused = self.those(&sleepers, |hosts, own, other| {
            hosts.runs_dry(own, other) || follows(own, other) || hosts.falls_later(own, other)
        });
        sleepers.retain(|sleeper| !caused.contains(&sleeper.number));
        if let Some(most) = sleepers.iter().max_by_key(|sleeper| sleeper.naps.len()).cloned() {
            let partners = self.hosts.iter().enumerate().filter_map(|(number, (address, track))| {
                let is_known = sleepers.iter().any(|sleeper| sleeper.number == number);
                (!is_known).then(|| partner(number, address, track, &most.naps, ASLEEP))?
            });
            let partners = partners.filter(|partner| !self.falls_later(partner, &most));
            let partners: Vec<Sleeper> = partners.collect();
            sleepers.extend(partners);
        }
        let waiting = self.those(&sleepers, Self::only_waits);
        sleepers.retain(|sleeper| !waiting.contains(&sleeper.number));
        // One that was seen to sleep by itself comes before those known by it.
        sleepers.sort_by_key(|sleeper| std::cmp::Reverse((sleeper.awake > 0, sleeper.naps.len(), sleeper.address)));
        sleepers
    }

    /// Numbers of those whose silences another's explain.
    fn those(&self, all: &[Sleeper], explains: impl Fn(&Self, &Sleeper, &Sleeper) -> bool) -> Vec<usize> {
        let explained = |own: &&Sleeper| {
            all.iter()
                .any(|other| other.number != own.number && explains(self, own, other))
        };
        all.iter().filter(explained).map(|own| own.number).collect()
    }

    /// Whether a host is silent because a server that it asks is: it never begins before that server's data can have
    /// reached it.
    fn only_waits(&self, client: &Sleeper, server: &Sleeper) -> bool {
        let Some((_, track)) = self.hosts.iter().nth(client.number) else {
            return false;
        };
        // Those that ended with little work, too: it is there first then.
        let all = partner(client.number, client.address, track, &server.naps, f64::INFINITY);
        let naps = all.as_ref().map_or(&client.naps, |all| &all.naps);
        let mut common = common(naps, &server.naps);
        // The server's silence must be what the client's rests on, not a part of it.
        common.retain(|(own, theirs)| 2 * own.shared(theirs) >= own.to - own.from);
        if track.servers >> server.number & 1 == 0 || (common.len() as f64) < WITH_SERVER * client.naps.len() as f64 {
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
    fn silent_clients(&self, first: &Sleeper, with: &[Sleeper]) -> Vec<Sleeper> {
        let is_named = |number: usize| with.iter().any(|other| other.number == number);
        let silent = self.hosts.iter().enumerate().filter_map(|(number, (address, track))| {
            let asks = track.servers >> first.number & 1 != 0 && !is_named(number);
            asks.then(|| partner(number, address, track, &first.naps, AWAKE_CLIENT))?
        });
        silent.collect()
    }

    /// Whether a host is silent because nobody asks it any more while another sleeps: it goes on at first.
    fn runs_dry(&self, own: &Sleeper, other: &Sleeper) -> bool {
        let Some((_, track)) = self.hosts.iter().nth(own.number) else {
            return false;
        };
        let common = common(&own.naps, &other.naps).len();
        common as f64 >= WITH_SERVER * own.naps.len() as f64 && track.begun_in(&other.naps) > ASLEEP
    }

    /// Whether a host goes on when another falls asleep, however soon it then has nothing more to do: who sleeps with
    /// it falls silent with it.
    fn falls_later(&self, own: &Sleeper, other: &Sleeper) -> bool {
        let Some((_, track)) = self.hosts.iter().nth(own.number) else {
            return false;
        };
        let common = common(&own.naps, &other.naps);
        let later = common
            .iter()
            .filter(|(own, theirs)| own.from as f64 > (theirs.from + track.trip) as f64 + QUIET * own.before as f64)
            .count();
        common.len() as f64 >= WITH_SERVER * own.naps.len() as f64 && 2 * later > common.len()
    }
}

/// Whether there are sleeps of a host, and which.
fn sleeper(number: usize, address: [u8; 16], track: &Track) -> Option<Sleeper> {
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
    of_a_kind(number, address, track, ending, share, false)
        .or_else(|| of_a_kind(number, address, track, silences.clone(), 1.0, false))
        .or_else(|| of_a_kind(number, address, track, silences, 1.0, true))
}

/// The sleeps among silences, sorted by chance; they are such a share of those that chance makes.
fn of_a_kind(
    number: usize,
    address: [u8; 16],
    track: &Track,
    mut silences: Vec<Silence>,
    share: f64,
    unseen: bool,
) -> Option<Sleeper> {
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
        number,
        address,
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

/// A host of which less is asked: it is silent when another sleeps, although somebody waits for it. It begins the share
/// `most` then of what it begins around them.
fn partner(number: usize, address: [u8; 16], track: &Track, naps: &[Nap], most: f64) -> Option<Sleeper> {
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
        number,
        address,
        naps: own,
        heard: 0,
        awake: 0,
        at_once: 0,
        opening: 0,
    })
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

/// Whether the silences of one are pieces or echoes of another's sleeps.
fn follows(own: &Sleeper, other: &Sleeper) -> bool {
    let usual = |sleeper: &Sleeper| {
        let mut all: Vec<u64> = sleeper.naps.iter().map(|nap| nap.to - nap.from).collect();
        all.sort_unstable();
        all[all.len() / 2] as f64
    };
    let length = usual(other);
    let (between, ..) = intervals(&other.naps);
    let between = between * 1e9;
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

/// Sleeps of both that share half of the shorter.
fn common<'a>(a: &'a [Nap], b: &'a [Nap]) -> Vec<(&'a Nap, &'a Nap)> {
    let mut pairs = Vec::new();
    let mut j = 0;
    for own in a {
        while j < b.len() && b[j].to <= own.from {
            j += 1;
        }
        if let Some(theirs) = b.get(j) {
            let shorter = (own.to - own.from).min(theirs.to - theirs.from);
            if own.shared(theirs) * 2 >= shorter {
                pairs.push((own, theirs));
            }
        }
    }
    pairs
}

/// They come in a rhythm; with `unseen`, one or two between two may be missing.
fn is_regular(naps: &[Nap], unseen: bool) -> bool {
    let (between, _, near) = intervals(naps);
    let is_multiple = |pair: &&[Nap]| {
        let interval = seconds(pair[1].from - pair[0].from) / between;
        (1.0..=MOST_UNSEEN).contains(&interval.round()) && (interval - interval.round()).abs() <= NEAR_MULTIPLE
    };
    let multiples = naps.windows(2).filter(is_multiple).count();
    near >= REGULAR || unseen && multiples as f64 >= REGULAR * (naps.len() - 1) as f64
}

/// When they come: mean and standard deviation of the time from one to the next, s, and the share of the intervals near
/// the median: a sleep that was not seen makes two one, and one that is none makes one two. The mean is of those nearest.
fn intervals(naps: &[Nap]) -> (f64, f64, f64) {
    let mut all: Vec<f64> = naps
        .windows(2)
        .map(|pair| seconds(pair[1].from - pair[0].from))
        .collect();
    all.sort_by(f64::total_cmp);
    let median = all.get(all.len() / 2).copied().unwrap_or(0.0);
    let whole = all.len().max(1) as f64;
    all.retain(|interval| (0.6 * median..1.6 * median).contains(interval));
    let n = all.len().max(1) as f64;
    let mean = all.iter().sum::<f64>() / n;
    let variance = all.iter().map(|interval| (interval - mean).powi(2)).sum::<f64>() / n;
    all.retain(|interval| (NEAREST.recip() * median..NEAREST * median).contains(interval));
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    (mean, variance.sqrt(), n / whole)
}

impl Detector for ApplicationSleep {
    fn opened(&mut self, opened: &Opened, route: &mut Route) {
        if let Some(track) = self.hosts.at(route, 0) {
            track.opened(opened.time);
        }
    }

    #[inline]
    fn block(&mut self, block: &DataBlock, route: &mut Route) {
        if let Some(track) = self.hosts.at(route, usize::from(block.from_server)) {
            track.began(block.id, block.first);
        }
    }

    #[inline]
    fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
        let facts = transaction.facts;
        let asked = facts.request_time.saturating_add(facts.request);
        if facts.kind == TransactionKind::Setup {
            if let (Some(client), Some(server)) = (self.hosts.number(route, 0), self.hosts.number(route, 1)) {
                self.hosts.facts(client).servers |= 1 << server;
            }
            if let Some(answer) = facts.server {
                self.heard(route, 1, asked.saturating_add(answer));
            }
            return;
        }
        if let Some(ns) = facts.client {
            self.waited(THINKING, route, 0, facts.request_time.saturating_sub(ns), ns);
        }
        if let Some(ns) = facts.server {
            self.waited(WAITING, route, 1, asked, ns);
        }
    }

    #[inline]
    fn acknowledged(&mut self, ack: &Acknowledged, route: &mut Route) {
        if let Some(track) = self.hosts.at(route, usize::from(ack.by_server)) {
            track.moments.set(TCP, ack.time);
            track.trip = if track.trip == 0 {
                ack.rtt
            } else {
                track.trip.min(ack.rtt)
            };
        }
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends, route: &mut Route) {
        if verdict.class == Class::Retransmission {
            self.heard(route, usize::from(verdict.from_server), verdict.time);
        }
        if matches!(verdict.class, Class::Retransmission | Class::Lost | Class::Missed) {
            for side in 0..2 {
                if let Some(track) = self.hosts.at(route, side) {
                    track.moments.set(LOST, verdict.lost_at);
                }
            }
        }
    }

    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
        let mut rest = self.sleepers();
        while !rest.is_empty() {
            let first = rest.remove(0);
            let (with, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|other| {
                let shared = common(&first.naps, &other.naps).len();
                shared >= LEAST && shared as f64 >= TOGETHER * other.naps.len() as f64
            });
            rest = others;
            let waiting = self.silent_clients(&first, &with);
            out.push(told(&first, &with, &waiting, timeline));
        }
    }
}

/// Time that requests lost which were in progress at services of these hosts in the middle of each sleep, s; what one
/// of the hosts asks of another is a part of that. None without such services.
fn cost(naps: &[Nap], hosts: &[[u8; 16]], timeline: &Timeline) -> Option<f64> {
    let mut total = None;
    let asked =
        |service: &&Service| hosts.contains(&service.key.0) && !hosts.iter().any(|host| service.is_behind(host));
    for service in timeline.services().iter().filter(asked) {
        let (start, width) = (service.load.start(), service.load.width());
        let at_once: Vec<f64> = levels(&service.load, |load| load.progress)
            .map(|level| level.mean)
            .collect();
        let lost = naps.iter().filter_map(|nap| {
            let slice = nap.from.midpoint(nap.to).checked_sub(start)? / width;
            Some(at_once.get(slice as usize)? * nap.length())
        });
        *total.get_or_insert(0.0) += lost.sum::<f64>();
    }
    total
}

/// Of sorted lengths.
fn are_alike(lengths: &[f64]) -> bool {
    let at = |quarter: usize| lengths[(lengths.len() * quarter / 4).min(lengths.len() - 1)];
    at(3) - at(1) <= ALIKE * at(2)
}

/// Silences that begin behind another sooner than half of their own length.
fn right_behind(naps: &[Nap]) -> usize {
    let is_near = |pair: &&[Nap]| 2 * pair[1].from.saturating_sub(pair[0].to) < pair[1].to - pair[1].from;
    naps.windows(2).filter(is_near).count()
}

/// Of sorted lengths.
fn confidence(lengths: &[f64], is_regular: bool) -> f64 {
    if is_regular || are_alike(lengths) { SURE } else { UNSURE }
}

/// The finding about hosts that sleep together, and clients of the first that fall silent with it.
fn told(first: &Sleeper, with: &[Sleeper], waiting: &[Sleeper], timeline: &Timeline) -> Finding {
    let naps = &first.naps;
    let n = naps.len();
    let mut lengths: Vec<f64> = naps.iter().map(Nap::length).collect();
    lengths.sort_by(f64::total_cmp);
    let (shortest, median, longest) = (lengths[0], lengths[n / 2], lengths[n - 1]);
    let mut usual: Vec<u64> = naps.iter().map(|nap| nap.before).collect();
    usual.sort_unstable();
    let usual = seconds(usual[n / 2]);
    let differ = longest - shortest;
    let by_pauses = differ > DIFFERENT * median && differ <= QUIET * usual;
    let least = naps.iter().map(|nap| nap.to - nap.from).min().unwrap_or(0);
    let gap = if by_pauses { seconds(least) } else { median };
    let (period, spread, _) = intervals(naps);
    let is_regular = is_regular(naps, true) && spread <= SPREAD * period;
    let sleepers: Vec<[u8; 16]> = std::iter::once(first).chain(with).map(|s| s.address).collect();
    let cost = cost(naps, &sleepers, timeline);
    let mut hosts: Vec<String> = sleepers.into_iter().map(address).collect();
    hosts.sort();
    let hosts = hosts.join(", ");
    let several = !with.is_empty();
    let silent: f64 = lengths.iter().sum();
    let (start, end) = timeline.span();
    let share = silent / seconds(end.saturating_sub(start)).max(1e-9);
    let (who, its) = if several {
        ("applications", "their")
    } else {
        ("application", "its")
    };
    let is_proven = first.heard as f64 >= AWAKE * n as f64;
    let strays = naps.iter().filter(|nap| nap.strays > 0).count();
    let mut evidence = vec![
        format!(
            "{n} times no data of {hosts} began for {gap:.3} s ({shortest:.3} to {longest:.3} s), though two connections or more waited for it; otherwise something begins every {:.1} ms",
            usual * 1e3
        ),
        if is_proven {
            format!(
                "neither link nor capture stood still: {its} TCP sent ACKs or repeats in {} of the {n} times",
                first.heard
            )
        } else {
            format!(
                "whether the {who} or the way stood still is not known: {its} TCP sent ACKs or repeats in {} of the {n} times only, and a link, a switch or a virtual machines' host that holds packets back loses nothing either",
                first.heard
            )
        },
        format!(
            "{} with data of several connections at once, as when an application wakes{}",
            weir_analysis::several(first.at_once as u64, "of them ends", "of them end"),
            if is_proven {
                ""
            } else {
                " or what was held back is let go"
            }
        ),
    ];
    if by_pauses {
        evidence.push(format!(
            "they differ by no more than the pauses before them can, so the shortest is told; half are {median:.3} s or longer"
        ));
    }
    if first.opening > 0 {
        evidence.push(format!(
            "in {} of them connections were opened: what opens them goes on",
            first.opening
        ));
    }
    if strays > 0 {
        evidence.push(format!(
            "in {strays} of them one or two pieces of data passed that TCP had ready or sent again; they do not end a silence here"
        ));
    }
    evidence.push(if is_regular {
        format!("regularly: every {period:.2} s (standard deviation {spread:.2} s)")
    } else {
        let whole = seconds(naps[n - 1].from - naps[0].from);
        format!(
            "no period shows: {:.2} s on average from one that was seen to the next",
            whole / (n - 1).max(1) as f64
        )
    });
    let times: Vec<String> = naps.iter().take(NAMED).map(|nap| clock(nap.from)).collect();
    evidence.push(format!("the first began at {}", times.join(", ")));
    for other in with {
        let pairs = common(naps, &other.naps);
        let mut apart: Vec<u64> = pairs.iter().map(|(a, b)| a.to.abs_diff(b.to)).collect();
        apart.sort_unstable();
        evidence.push(format!(
            "{} and {} sleep at the same times: {} of {} sleeps are common, and they wake within {:.1} ms of each other (median)",
            address(first.address),
            address(other.address),
            pairs.len(),
            other.naps.len(),
            seconds(apart.get(apart.len() / 2).copied().unwrap_or(0)) * 1e3
        ));
    }
    for client in waiting {
        evidence.push(format!(
            "{} is silent in {} of the {n}, too: it asks {}, so waiting for its answers explains that; whether it sleeps with it is not known",
            address(client.address),
            common(naps, &client.naps).len(),
            address(first.address)
        ));
    }
    evidence.push(format!(
        "it costs {gap:.3} s of every transaction in progress then: {silent:.1} s in all ({:.1} % of the time) nothing gets on",
        share * 100.0
    ));
    if let Some(cost) = cost {
        evidence.push(format!(
            "requests from outside that were in progress lost {} s in all",
            decimal(cost, 0)
        ));
    }
    let pieces = right_behind(naps);
    let are_pieces = pieces as f64 >= PIECES * n as f64;
    if are_pieces {
        evidence.push(format!(
            "{pieces} of the {n} begin right behind another: they may be pieces of longer sleeps, in which something else of the host went on"
        ));
    }
    let mut confidence = if are_pieces || (first.at_once as f64) < LEAST_AT_ONCE * n as f64 {
        UNSURE
    } else {
        confidence(&lengths, is_regular)
    };
    if confidence < SURE {
        evidence.push(
            "it may also be no sleep: silences without a period, of such different lengths or after which little begins also come where work begins and ends in steps, after the sleep of another host or behind a limit of workers"
                .to_owned(),
        );
    }
    evidence.push(
        if several {
            "it may also be: within one host we might call it garbage collection; it is both, so look for what they share: the virtual machines' host, storage, a snapshot, a lock or a service that both call"
        } else {
            "it may also be: garbage collection, a lock that all threads need, a virtual machine that is not scheduled (its kernel would then be silent too), or a service behind this host that stops"
        }
        .to_owned(),
    );
    evidence.push(format!(
        "next: compare the times with the logs of the {who} (garbage collector, checkpoints) and with the scheduler of the hypervisor"
    ));
    if !is_proven {
        confidence = confidence.min(HELD_BACK);
        evidence.push(
            "next: look at the TCP timestamps behind a silence: what was held back was stamped in it; or capture at the hosts themselves"
                .to_owned(),
        );
    }
    let mut values = vec![("gapSeconds", gap), ("count", n as f64), ("share", share)];
    if is_regular {
        values.push(("periodSeconds", period));
    }
    values.extend(cost.map(|cost| ("costSeconds", cost)));
    let mut finding = finding(
        "APPLICATION_SLEEP",
        "WARNING",
        confidence,
        format!(
            "The {who} of {hosts}{} stop{} {} for {gap:.2} s{}",
            match (is_proven, several) {
                (true, _) => "",
                (false, true) => ", or the way to them,",
                (false, false) => ", or the way to it,",
            },
            if several { "" } else { "s" },
            if several { "together" } else { "again and again" },
            if is_regular {
                format!(" every {period:.1} s")
            } else {
                String::new()
            }
        ),
        evidence,
        &Group::range(naps[0].from, naps[n - 1].to),
        &values,
    );
    finding
        .values
        .insert("hosts".to_owned(), FindingValue::from(hosts.as_str()));
    finding.who = hosts;
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use weir_analysis::Ends;

    /// A route on which a host is the client.
    fn of(client: [u8; 16]) -> Route {
        let ends = Ends {
            client,
            ..Ends::default()
        };
        Route::new(&ends, 0)
    }

    /// Silences of so many ms each, so long after each beginning of a period of 5 s.
    fn sleeper(number: usize, after: u64, length: u64) -> Sleeper {
        let nap = |i: u64| Nap {
            from: (5_000 * i + after) * 1_000_000,
            to: (5_000 * i + after + length) * 1_000_000,
            before: 1_000_000,
            strays: 0,
        };
        Sleeper {
            number,
            address: [number as u8; 16],
            naps: (1..20).map(nap).collect(),
            heard: 19,
            awake: 19,
            at_once: 19,
            opening: 0,
        }
    }

    #[test]
    fn echoes_and_pieces_follow_a_sleep() {
        let sleep = sleeper(0, 0, 700);
        for (after, length, follows_it) in [
            (900, 250, true),
            (400, 700, true),
            (50, 300, true),
            // Asleep together, and by itself.
            (0, 690, false),
            (3_500, 500, false),
        ] {
            let other = sleeper(1, after, length);
            assert_eq!(follows(&other, &sleep), follows_it, "{length} ms after {after} ms");
            assert!(length == 700 || !follows(&sleep, &other));
        }
    }

    /// A server sleeps 0.5 s every 5 s. Its client begins nothing in those times and wakes behind it, or goes on a while.
    #[test]
    fn a_client_that_falls_silent_with_its_server_is_left_open() {
        const MS: u64 = 1_000_000;
        let (client, server) = ([1; 16], [2; 16]);
        for goes_on in [false, true] {
            let mut sleep = ApplicationSleep::default();
            let mut random = Random::new(7);
            let place =
                |hosts: &mut Hosts<Track>, host| hosts.number(&mut of(host), 0).unwrap_or_else(|| panic!("no place"));
            let (server_at, client_at) = (place(&mut sleep.hosts, server), place(&mut sleep.hosts, client));
            sleep.hosts.facts(client_at).servers = 1 << server_at;
            for ms in 1_000..61_000u64 {
                for (host, at) in [(client, client_at), (server, server_at)] {
                    sleep.waited(WAITING, &mut of(host), 0, ms * MS, 60 * MS);
                    let track = sleep.hosts.facts(at);
                    track.moments.fill(TWO_WAITING, ms * MS, (ms + 60) * MS);
                    track.trip = MS;
                    let wakes = if host == client { 510 } else { 500 };
                    let is_awake = ms % 5_000 >= wakes || host == client && goes_on && ms % 5_000 < 60;
                    if is_awake && random.below(5) < 2 {
                        track.began(FlowId(ms), ms * MS);
                    }
                }
            }
            let mut found = Vec::new();
            sleep.findings(&Timeline::default(), &mut found);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].who, address(server));
            let is_open = |line: &String| line.starts_with(&address(client)) && line.ends_with("is not known");
            assert_eq!(found[0].evidence.iter().any(is_open), !goes_on, "{found:?}");
        }
    }

    /// A client sleeps 0.9 s every 5 s. Its server answers for 0.1 s what it was asked before, then some wait for what the
    /// client holds; or it sleeps as well.
    #[test]
    fn a_server_that_goes_on_for_a_while_does_not_sleep_with_its_client() {
        const MS: u64 = 1_000_000;
        let (client, server) = ([1; 16], [2; 16]);
        for (goes_on, who) in [
            (100, address(client)),
            (0, format!("{}, {}", address(client), address(server))),
        ] {
            let mut sleep = ApplicationSleep::default();
            let mut random = Random::new(11);
            for ms in 1_000..61_000u64 {
                for (host, from, to) in [(client, 0, 900), (server, goes_on, 912)] {
                    let at = sleep
                        .hosts
                        .number(&mut of(host), 0)
                        .unwrap_or_else(|| panic!("no place"));
                    let track = sleep.hosts.facts(at);
                    track.moments.fill(WAITING, ms * MS, (ms + 60) * MS);
                    track.moments.fill(TWO_WAITING, ms * MS, (ms + 60) * MS);
                    track.trip = MS;
                    if !(from..to).contains(&(ms % 5_000)) && random.below(5) < 2 {
                        track.began(FlowId(ms), ms * MS);
                    }
                }
            }
            let mut found = Vec::new();
            sleep.findings(&Timeline::default(), &mut found);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].who, who, "it goes on for {goes_on} ms");
        }
    }

    /// What is found of one host that wakes to work for several connections, given what it begins else.
    fn found_of(mut begins: impl FnMut(&mut Random, u64) -> bool, length: u64, opens_every: u64) -> Vec<Finding> {
        const MS: u64 = 1_000_000;
        let host = [1; 16];
        let ends = Ends {
            client: host,
            server: [2; 16],
            client_port: 1,
            server_port: 2,
        };
        let mut sleep = ApplicationSleep::default();
        let mut random = Random::new(3);
        for ms in 1_000..101_000u64 {
            let Some(track) = sleep.hosts.at(&mut of(host), 0) else {
                panic!("no place")
            };
            for layer in [WAITING, TWO_WAITING] {
                track.moments.set(layer, ms * MS);
            }
            let phase = ms % 5_000;
            if phase == length {
                track.began(FlowId(0), ms * MS);
                track.began(FlowId(1), ms * MS);
            } else if phase > length && begins(&mut random, ms) {
                track.began(FlowId(random.next()), ms * MS);
            }
            if ms % opens_every == 0 {
                let opened = Opened {
                    id: FlowId(ms),
                    time: ms * MS,
                    ends,
                    is_syn: true,
                };
                sleep.opened(&opened, &mut Route::new(&ends, 0));
            }
        }
        let mut found = Vec::new();
        sleep.findings(&Timeline::default(), &mut found);
        found
    }

    #[test]
    fn connections_opened_do_not_end_a_sleep() {
        let found = found_of(|random, _| random.below(5) < 2, 900, 150);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].title.contains("for 0.90 s every 5.0 s"), "{found:?}");
        assert!(
            found[0]
                .evidence
                .iter()
                .any(|line| line.starts_with("in 20 of them connections were opened"))
        );
    }

    /// A host that is not busy: silences as long would come by chance, but not such as end with work for several.
    #[test]
    fn short_sleeps_show_by_how_they_end() {
        let found = found_of(|random, _| random.below(100) < 9, 120, 1_000_000);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].title.ends_with("for 0.12 s every 5.0 s"), "{found:?}");
        // How long a host that begins something every 11 ms had been silent before is not known.
        let is_shortest = |line: &String| line.contains("so the shortest is told");
        assert!(found[0].evidence.iter().any(is_shortest), "{found:?}");
    }

    /// Eight sleeps of eleven in a rhythm of 14 s, and eight without one.
    #[test]
    fn sleeps_that_were_not_seen_leave_a_rhythm() {
        let regular = |at: &[u64]| {
            let nap = |at: &u64| Nap {
                from: at * 1_000_000_000,
                to: at * 1_000_000_000 + 500_000_000,
                before: 1_000_000,
                strays: 0,
            };
            let naps: Vec<Nap> = at.iter().map(nap).collect();
            [false, true].map(|unseen| is_regular(&naps, unseen))
        };
        assert_eq!(regular(&[0, 14, 42, 56, 84, 98, 126, 140]), [false, true]);
        assert_eq!(regular(&[0, 3, 26, 30, 48, 56, 77, 140]), [false, false]);
    }

    /// Between its sleeps a host works in steps, with silences of all lengths; each ends with one piece of work.
    #[test]
    fn work_in_steps_hides_no_sleep() {
        let mut ends = 0;
        let steps = |random: &mut Random, ms: u64| {
            if ms >= ends + 150 && (1_100..4_000).contains(&(ms % 5_000)) {
                ends = ms + 100 + random.below(750) as u64;
            }
            ms == ends || ms > ends + 5 && random.below(5) == 0
        };
        let found = found_of(steps, 830, 1_000_000);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].title.contains("for 0.82 s every 5.0 s"), "{found:?}");
    }

    /// A client sleeps with its server. Where it has one thing to do it begins before its server can have asked for more;
    /// else both wake to much work.
    #[test]
    fn a_client_that_wakes_to_little_work_sleeps_with_its_server() {
        const MS: u64 = 1_000_000;
        let (client, server) = ([1; 16], [2; 16]);
        let mut sleep = ApplicationSleep::default();
        let mut random = Random::new(7);
        let place =
            |hosts: &mut Hosts<Track>, host| hosts.number(&mut of(host), 0).unwrap_or_else(|| panic!("no place"));
        let (server_at, client_at) = (place(&mut sleep.hosts, server), place(&mut sleep.hosts, client));
        sleep.hosts.facts(client_at).servers = 1 << server_at;
        for ms in 1_000..131_000u64 {
            let phase = ms % 5_000;
            let has_little = ms / 5_000 % 5 < 3;
            for (host, at) in [(client, client_at), (server, server_at)] {
                let track = sleep.hosts.facts(at);
                track.trip = MS;
                for layer in [WAITING, TWO_WAITING] {
                    track.moments.set(layer, ms * MS);
                }
                let wakes = match (host == client, has_little) {
                    (true, true) => 698,
                    (true, false) => 702,
                    (false, _) => 700,
                };
                if phase == wakes {
                    track.began(FlowId(0), ms * MS);
                    if host == server || !has_little {
                        track.began(FlowId(1), ms * MS);
                    }
                } else if phase > wakes + 5 && random.below(5) < 2 {
                    track.began(FlowId(random.next()), ms * MS);
                }
            }
        }
        let mut found = Vec::new();
        sleep.findings(&Timeline::default(), &mut found);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].who, format!("{}, {}", address(client), address(server)));
    }

    #[test]
    fn silences_after_which_little_begins_are_less_sure() {
        for (at_once, expected) in [(19, SURE), (2, UNSURE)] {
            let sleeper = Sleeper {
                at_once,
                ..sleeper(0, 0, 500)
            };
            assert_eq!(told(&sleeper, &[], &[], &Timeline::default()).confidence, expected);
        }
    }

    #[test]
    fn where_tcp_was_seldom_heard_the_way_is_as_likely() {
        for (heard, proven) in [(19, true), (10, true), (2, false), (0, false)] {
            let sleeper = Sleeper {
                heard,
                ..sleeper(0, 0, 500)
            };
            let found = told(&sleeper, &[], &[], &Timeline::default());
            assert_eq!(found.confidence, if proven { SURE } else { HELD_BACK });
            assert_eq!(found.title.contains(", or the way to it, stops"), !proven, "{found:?}");
            let claims = |line: &String| line.starts_with("neither link nor capture stood still");
            assert_eq!(found.evidence.iter().any(claims), proven, "{found:?}");
        }
    }

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
        let found = partner(0, [1; 16], &track, &naps, ASLEEP).unwrap_or_else(|| panic!("awake"));
        assert_eq!(found.naps.len(), naps.len());
        assert!(
            found.naps.iter().all(|nap| (0.75..0.8).contains(&nap.length())),
            "{:?}",
            found.naps
        );
    }

    /// Twenty sleeps of 1 s, of which each is seen whole or in two pieces.
    #[test]
    fn pieces_are_less_sure() {
        for (cut, expected) in [(0, SURE), (2, SURE), (8, UNSURE)] {
            let nap = |from: u64, length: u64| Nap {
                from: from * 1_000_000,
                to: (from + length) * 1_000_000,
                before: 1_000_000,
                strays: 0,
            };
            let naps: Vec<Nap> = (0..20u64)
                .flat_map(|i| {
                    let from = 7_000 * i + 900 * (i % 3);
                    let second = (i < cut).then(|| nap(from + 440, 430));
                    std::iter::once(nap(from, 430)).chain(second)
                })
                .collect();
            let sleeper = Sleeper {
                naps,
                ..sleeper(0, 0, 430)
            };
            let found = told(&sleeper, &[], &[], &Timeline::default());
            assert_eq!(found.confidence, expected, "{found:?}");
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

    #[test]
    fn silences_of_all_lengths_without_a_period_are_less_sure() {
        let lengths: Vec<f64> = (0..20).map(|i| 0.3 + 0.015 * f64::from(i)).collect();
        assert_eq!(confidence(&lengths, false), UNSURE);
        assert_eq!(confidence(&lengths, true), SURE);
        // A few pieces and neighbours beside one length.
        let mut most = [0.45; 20];
        (most[0], most[1], most[19]) = (0.3, 0.35, 0.58);
        assert_eq!(confidence(&most, false), SURE);
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
