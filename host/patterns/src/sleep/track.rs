//! When a host began data, and the silences between, with what chance says of them.

use std::ops::Range;

use weir_record::FlowId;

use super::naps::Nap;
use crate::moments::Moments;

/// Shorter silences are not told from work, ns.
pub(super) const SHORTEST: u64 = 50_000_000;
/// Data that began before the application stopped may pass later: the retransmission of a segment that was lost before
/// the tap, a request that waited for the SYN-ACK. So often, and for so many slots, it does not end a silence.
const STRAYS: u32 = 2;
const STRAY: usize = 2;
/// Either part of such a silence is so many times as long as the host usually is silent: it would be chance once in
/// 22,000 times.
pub(super) const QUIET: f64 = 10.0;
/// The rate is that of the two seconds before and behind a silence, ns.
const AROUND: u64 = 2_000_000_000;
/// Share of a silence in which two connections must wait for the host.
const WAITED: f64 = 0.75;
/// Slots within which data begins at once.
const AT_ONCE: usize = 2;
/// Bytes that a capture missed are noticed with the next that it has, at most so many slots later.
const NOTICED: usize = 8;
/// Awakenings whose exact time is kept.
const AWAKENINGS: usize = 4096;

/// Layers of [`Moments`]. Data began, on connections of even and of odd number: both are two connections.
const BEGAN: [usize; 2] = [0, 1];
/// A connection waited for the host; two or more did so in the next layer.
pub(super) const WAITING: usize = 2;
pub(super) const TWO_WAITING: usize = 3;
pub(super) const TCP: usize = 4;
/// A segment of the host or to it was lost, by the network or by the capture.
pub(super) const LOST: usize = 5;
/// It opened a connection.
const OPENED: usize = 6;
/// A connection waited for its next request; two or more did so in the next layer.
pub(super) const THINKING: usize = 7;
/// A host that is asked so many times, for each of its own requests, asks because it is asked: a connection of it that
/// rests waits for nobody.
const ASKED: f64 = 0.05;

/// What a host did when.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    pub moments: Moments,
    /// Newest begin of data, and the newest before the last awakening, TAI ns.
    newest: u64,
    before: u64,
    /// First data after each silence, exact.
    awakenings: Vec<u64>,
    /// Newest connection that it opened, and each that came after such a time without one, TAI ns.
    newest_opened: u64,
    openings: Vec<u64>,
    /// Smallest round trip between the tap and the host, ns; 0: not known.
    pub trip: u64,
    /// Places of the hosts whose client it is.
    pub servers: u32,
    /// Requests to it and its own.
    pub asked: u32,
    pub asks: u32,
}

impl Track {
    pub(super) fn began(&mut self, id: FlowId, time: u64) {
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

    pub(super) fn opened(&mut self, time: u64) {
        self.moments.set(OPENED, time);
        if time.saturating_sub(self.newest_opened) >= SHORTEST && self.openings.len() < AWAKENINGS {
            self.openings.push(time);
        }
        self.newest_opened = time.max(self.newest_opened);
    }

    /// What it did first when a silence ended: the data, or the last connection before that which it opened after a time
    /// without one, TAI ns.
    pub(super) fn first_act(&self, nap: &Nap) -> u64 {
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
    pub(super) fn silences(&self, waiting: usize) -> Vec<Silence> {
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

    pub(super) fn nap(&self, silence: &Silence) -> Nap {
        Nap {
            from: self.moments.time(silence.from),
            to: self.awakening(silence.to),
            before: (self.moments.width() as f64 / silence.busy) as u64,
            strays: silence.strays,
        }
    }

    /// What began in sleeps of another host, over what began around them: 0 if it slept, too, 1 if nothing changed.
    pub(super) fn begun_in(&self, naps: &[Nap]) -> f64 {
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
    pub(super) fn ends_at_once(&self, silence: &Silence) -> bool {
        self.has_several(silence.to..silence.to + AT_ONCE)
    }

    /// Share of the moments at which data began when data of several connections did.
    pub(super) fn at_once(&self) -> f64 {
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
    pub(super) fn is_opening(&self, silence: &Silence) -> bool {
        (silence.from + 1..silence.to).any(|slot| self.moments.is_set(OPENED, slot))
    }

    /// Segments were lost in a silence: a link or a capture that stops loses what is sent meanwhile.
    pub(super) fn is_lossy(&self, silence: &Silence) -> bool {
        (silence.from..silence.to + NOTICED).any(|slot| self.moments.is_set(LOST, slot))
    }

    /// The host's TCP was heard in a silence, later than the last data before it explains.
    pub(super) fn is_heard(&self, silence: &Silence) -> bool {
        let quiet = silence.from + (3.0 / silence.busy).ceil() as usize;
        (quiet.max(silence.from + 2)..silence.to).any(|slot| self.moments.is_set(TCP, slot))
    }
}

/// Silences of so many empty slots or more that chance makes in `slots` slots, if something begins in the share `busy`
/// of the slots; with so many interruptions.
pub(super) fn chance(slots: usize, busy: f64, empty: usize, strays: u32) -> f64 {
    let interrupted: f64 = (0..strays)
        .map(|i| (empty as f64 - f64::from(i)) / f64::from(i + 1) * busy)
        .product();
    slots as f64 * busy * interrupted * (1.0 - busy).powf(empty as f64 - f64::from(strays))
}

/// A time in which nothing began, between two slots in which something did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub from: usize,
    pub to: usize,
    /// Data in it that TCP had ready before, or sent again.
    pub strays: u32,
    /// Share of the slots around in which something began.
    pub busy: f64,
    /// Silences like it that chance makes in the whole time.
    pub chance: f64,
}

impl Silence {
    /// Slots.
    pub(super) const fn empty(&self) -> usize {
        self.to - self.from - 1
    }
}
