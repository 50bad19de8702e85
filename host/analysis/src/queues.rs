//! Queues between the tap and servers, as the round trips of all connections to a server show them (`docs/src/limits.md`):
//! how long a request and its response took to the server and back when the smallest round trip is not the answer.

mod clients;

use crate::busy::Link;
use crate::limits::{DELAYED_ACK, apart, is_spaced};
use crate::route::{Host, PLACES, Placed};
use crate::turns::Finished;
use weir_record::Block;

pub(crate) use clients::ClientQueues;

/// Round trips of a server: the last of each 2²⁴ ns in the last second. About a kilobyte for a server.
const SLOTS: usize = 64;
const SLOT_BITS: u32 = 24;
/// A queue that was seen may stand again for so long, in two pieces, ns.
const PIECE: u64 = 5_000_000_000;
/// A path is the same for so long at least, in two pieces, ns.
const MINUTE: u64 = 60_000_000_000;
/// Round trips above the smallest by less than this, ns, are no queue; and so much is told of the slow link of others.
const SLACK: u64 = 1_000_000;
/// What passed longer before or after a request tells nothing of its round trip, ns.
const NEAR: u64 = 100_000_000;

/// Segments that a receiver may leave without an ACK, and one more.
const SOME: u32 = 3;

/// Round trips of which the smallest is that of the path.
pub(crate) const ENOUGH_SAMPLES: u32 = 4;

/// The round trip from the tap to the server and back for a request and its response, where a queue stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The best guess, ns.
    pub round_trip: u32,
    /// The truth is at most so far from it, ns.
    pub uncertain: u32,
    /// Of the round trip, what the response's first segment took on a slow link, ns.
    pub on_wire: u32,
    /// Round trips of others showed a queue.
    pub is_queue: bool,
    /// The response came again, and its first copy was lost before the tap.
    pub is_repeat: bool,
}

impl Wait {
    /// The smallest round trip, where no queue stood.
    fn none(own: u64) -> Self {
        Self {
            round_trip: short(own),
            uncertain: 0,
            on_wire: 0,
            is_queue: false,
            is_repeat: false,
        }
    }

    /// Part of it was not seen, which may have been so long.
    pub fn or(wait: Option<Self>, own: u64, unseen: u64) -> Self {
        let wait = wait.unwrap_or(Self::none(own));
        Self {
            uncertain: wait.uncertain.max(short(unseen)),
            ..wait
        }
    }

    /// So much more of it is uncertain.
    pub fn and(wait: Option<Self>, own: u64, doubtful: u64) -> Self {
        let wait = wait.unwrap_or(Self::none(own));
        Self {
            uncertain: wait.uncertain.saturating_add(short(doubtful)),
            ..wait
        }
    }

    /// The way of a request whose ACK came by itself after `way` ns: so long, if a queue stood. The response may have waited as long in it,
    /// or not at all.
    fn measured(wait: Option<Self>, own: u64, way: u64) -> Option<Self> {
        let excess = way.saturating_sub(own);
        if wait.is_none() && excess <= SLACK {
            return None;
        }
        let wait = wait.unwrap_or(Self {
            is_queue: true,
            ..Self::none(own)
        });
        let moved = u64::from(wait.round_trip).abs_diff(way);
        Some(Self {
            round_trip: short(way),
            uncertain: wait.uncertain.saturating_add(short(moved)).max(short(excess)),
            ..wait
        })
    }

    /// The response, which came `gap` ns after the request, was one sent again: when it was sent first is not known.
    pub fn again(wait: Option<Self>, own: u64, gap: u64) -> Self {
        Self {
            is_repeat: true,
            ..Self::or(wait, own, gap)
        }
    }

    /// And then the response's first segment had to pass a slow link (unless its sender paces, which looks the same).
    fn then(self, on_wire: u32) -> Self {
        Self {
            round_trip: self.round_trip.saturating_add(on_wire),
            uncertain: self.uncertain.saturating_add(on_wire),
            on_wire,
            ..self
        }
    }
}

/// ns in four bytes: 4.3 s at most.
fn short(ns: u64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

/// What keeps segments together on the whole path of a connection: what passes within one round trip was sent without waiting for an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The smallest round trip, ns.
    pub round_trip: u64,
    /// The last window that the client advertised, bytes, if it is known.
    pub window: Option<u32>,
}

impl Flight {
    /// Whether no pause for an ACK was in a block whose segments stand so far apart, ns: it passed within a round trip; or each segment came later
    /// than an ACK of the one before would have let it go, though the window was open for more.
    fn is_whole(self, block: &Block, apart: u64) -> bool {
        let some = SOME * u32::from(block.max_segment);
        // Behind a link after the tap there would be more in flight; and who reads slowly opens the window by a few segments each time.
        let has_room = |window: u32| block.flight <= some && block.flight.saturating_add(some) <= window;
        block.last.saturating_sub(block.first) < self.round_trip
            || u32::from(block.packets) > SOME
                && apart >= self.round_trip + self.round_trip / 2
                && self.window.is_some_and(has_room)
    }
}

/// What the first segment of a response took on a slow link before the tap, ns: as long as those behind it in its first block stand
/// apart. The ACKs that tell the round trip take hardly any time there.
fn on_slow_link(block: &Block, flight: Flight) -> Option<u32> {
    let between = u64::from(block.packets.saturating_sub(1));
    let bytes = u64::from(block.bytes);
    // Of more bytes, some were not seen.
    let full =
        (1..=u64::from(block.max_segment)).contains(&bytes.saturating_sub(between * u64::from(block.max_segment)));
    let apart = apart(block).filter(|apart| full && is_spaced(block) && flight.is_whole(block, *apart))?;
    u32::try_from(apart).ok()
}

/// A segment that passed the tap at `sent`, and its acknowledgment, which no application held back.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    sent: u64,
    round_trip: u64,
}

impl Sample {
    const fn heard(&self) -> u64 {
        self.sent + self.round_trip
    }

    /// Into its slot, unless a later one is there.
    fn enter(self, slots: &mut [Self; SLOTS]) {
        let number = self.sent >> SLOT_BITS;
        let slot = &mut slots[number as usize % SLOTS];
        if number >= slot.sent >> SLOT_BITS {
            *slot = self;
        }
    }

    const fn is_near(self, other: Self) -> bool {
        self.sent.abs_diff(other.sent) <= NEAR
    }

    /// As a sign of a queue, which makes all wait: what passed just before or just after waited as well. A lost ACK and an application
    /// that is slow to read make one wait.
    fn extremes(self, before: Option<Self>, after: Option<Self>) -> Extremes {
        let others = [before, after]
            .into_iter()
            .flatten()
            .filter(|other| self.is_near(*other));
        let shared = others.map(|other| other.round_trip.min(self.round_trip)).max();
        Extremes {
            smallest: self.round_trip,
            largest: self.round_trip,
            lone: if shared.is_none() { self.round_trip } else { 0 },
            shared: shared.unwrap_or(0),
        }
    }
}

/// Round trips of a piece of time.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    smallest: u64,
    largest: u64,
    /// The largest of those with no other one near.
    lone: u64,
    /// The largest that two had or exceeded. One long round trip is no queue: a first SYN waits for ARP, for a firewall or for the
    /// host itself.
    shared: u64,
}

impl Extremes {
    const NONE: Self = Self {
        smallest: u64::MAX,
        largest: 0,
        lone: 0,
        shared: 0,
    };

    fn join(self, other: Self) -> Self {
        Self {
            smallest: self.smallest.min(other.smallest),
            largest: self.largest.max(other.largest),
            lone: self.lone.max(other.lone),
            shared: self.lone.min(other.lone).max(self.shared).max(other.shared),
        }
    }
}

/// What is kept of the period in progress, and of the one before.
#[derive(Debug)]
struct Periods<T> {
    of: [T; 2],
    number: u64,
}

impl<T: Copy> Periods<T> {
    const fn new(none: T) -> Self {
        Self {
            of: [none; 2],
            number: 0,
        }
    }

    /// Of the period in progress, which is this one, if it is not over.
    fn current(&mut self, number: u64, none: T) -> &mut T {
        if number > self.number {
            let before = if number == self.number + 1 { self.of[0] } else { none };
            self.of = [none, before];
            self.number = number;
        }
        &mut self.of[0]
    }
}

/// A slow link between a server and the tap, which all connections to it share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedLink {
    /// Smallest round trip from the tap to the server and back in the last one to two minutes, of any connection, ns.
    pub least: u64,
    /// Since when it had been busy when a block came behind another.
    pub busy_since: Option<u64>,
}

#[derive(Debug)]
#[repr(C)]
struct History {
    whom: Host,
    /// The smallest round trip, by minutes.
    least: Periods<u64>,
    samples: u32,
    /// The smallest and the largest round trip of all that follows.
    smallest: u64,
    largest: u64,
    extremes: Periods<Extremes>,
    /// The newest, which is not in `extremes` yet, and the one before.
    newest: [Option<Sample>; 2],
    /// From the second sample on: one alone is no queue.
    slots: Option<Box<[Sample; SLOTS]>>,
    /// The link that keeps segments of its responses apart, if one does.
    link: Option<Box<Link>>,
}

impl History {
    const fn new(whom: Host) -> Self {
        Self {
            whom,
            least: Periods::new(u64::MAX),
            samples: 0,
            smallest: u64::MAX,
            largest: 0,
            extremes: Periods::new(Extremes::NONE),
            newest: [None; 2],
            slots: None,
            link: None,
        }
    }

    /// `trip`: that of the path, or more.
    fn add(&mut self, sample: Sample, trip: u64) {
        let least = self.least.current(sample.heard() / MINUTE, u64::MAX);
        *least = (*least).min(trip);
        self.samples = self.samples.saturating_add(1);
        let [newest, before] = self.newest;
        if let Some(newest) = newest {
            let [now, _] = &mut self.extremes.of;
            *now = now.join(newest.extremes(before, Some(sample)));
        }
        self.newest = [Some(sample), newest];
        self.extremes.current(sample.heard() / PIECE, Extremes::NONE);
        let [now, before] = self.extremes.of;
        self.smallest = now.smallest.min(before.smallest).min(sample.round_trip);
        self.largest = now.largest.max(before.largest).max(sample.round_trip);
        if let Some(newest) = newest {
            let slots = self.slots.get_or_insert_with(|| {
                let mut slots = Box::new([Sample::default(); SLOTS]);
                newest.enter(&mut slots);
                slots
            });
            sample.enter(slots);
        }
    }

    /// Of the five to ten seconds around a time.
    fn around(&self, time: u64) -> Extremes {
        let piece = time / PIECE;
        let [newest, before] = self.newest;
        let newest = newest.map_or(Extremes::NONE, |newest| newest.extremes(before, None));
        let current = self.extremes.of[0].join(newest);
        match piece.checked_sub(self.extremes.number) {
            None if piece + 1 < self.extremes.number => Extremes::NONE,
            None | Some(0) => current.join(self.extremes.of[1]),
            Some(1) => current,
            Some(_) => Extremes::NONE,
        }
    }

    /// Of a request whose last packet passed the tap at `asked` and whose response came at `answered`: as long as that of what
    /// passed just before and just after the request. That is exact in a queue of requests, which keeps their order, and
    /// not in one of responses, which may be another when the response comes. Nothing tells the two apart, so the truth is said to be anywhere
    /// between the smallest round trip of the last seconds and the largest, which may have grown since.
    fn wait(&self, own: u64, asked: u64, answered: u64) -> Option<Wait> {
        if self.largest <= self.smallest.min(own) + SLACK {
            return None;
        }
        let Extremes {
            smallest,
            largest,
            shared,
            ..
        } = self.around(answered);
        let smallest = smallest.min(own);
        if shared <= smallest + SLACK {
            return None;
        }
        let gap = answered.saturating_sub(asked);
        let slots = self.slots.as_deref().map_or(&[][..], |slots| slots);
        let within = |ns: u64| move |sample: &&Sample| sample.sent.abs_diff(asked) <= ns;
        let samples = || slots.iter().filter(within((SLOTS as u64) << SLOT_BITS));
        let near = || slots.iter().filter(within(NEAR));
        let before = near().filter(|s| s.sent <= asked).max_by_key(|s| s.sent);
        let after = near().filter(|s| s.sent > asked).min_by_key(|s| s.sent);
        // A queue may have grown since: as fast as time passes, if twice as much comes as goes, and to twice what was seen.
        let nearest = samples().map(|s| s.sent.abs_diff(asked)).min();
        let since = samples()
            .filter_map(|s| answered.checked_sub(s.heard()))
            .min()
            .unwrap_or(0);
        let grown = nearest
            .map_or(gap, |ns| ns.saturating_add(since))
            .min(largest - smallest);
        let most = largest.saturating_add(grown).min(gap);
        let least = smallest.min(most);
        let guess = match (before, after) {
            (Some(a), Some(b)) => between(*a, *b, asked),
            (Some(one), None) | (None, Some(one)) => one.round_trip,
            (None, None) => own,
        };
        let guess = guess.clamp(least, most);
        Some(Wait {
            round_trip: short(guess),
            uncertain: short((most - guess).max(guess - least)),
            on_wire: 0,
            is_queue: true,
            is_repeat: false,
        })
    }

    /// The smallest round trip of any connection in the last one to two minutes, ns.
    fn least(&self) -> u64 {
        let [now, before] = self.least.of;
        now.min(before)
    }

    /// What a connection's smallest round trip is above that of others, ns: all of its own may have waited in a queue.
    fn excess(&self, own: u64) -> Option<u64> {
        own.checked_sub(self.least()).filter(|ns| *ns > SLACK)
    }

    /// How long a response that came at `answered` may have waited behind others of the server on a slow link before the tap, ns. An
    /// answer that came soon meanwhile shows that nothing waited then.
    fn behind_others(&self, own: u64, asked: u64, answered: u64) -> Option<u64> {
        let busy = self.link.as_deref()?.busy_since(answered)?;
        let soon = self.smallest.min(own).saturating_add(SLACK);
        let samples = self.slots.as_deref().map_or(&[][..], |slots| slots).iter();
        let empty = samples.filter(|s| s.round_trip <= soon).map(Sample::heard);
        let since = empty.filter(|heard| *heard <= answered).fold(busy, u64::max);
        let most = answered.saturating_sub(asked).saturating_sub(own);
        Some(answered.saturating_sub(since).min(most))
    }
}

/// Round trip at a time between two samples, on the line between them.
fn between(a: Sample, b: Sample, at: u64) -> u64 {
    let share = (at - a.sent) as f64 / (b.sent - a.sent).max(1) as f64;
    (a.round_trip as f64 + (b.round_trip as f64 - a.round_trip as f64) * share) as u64
}

/// The hosts that are watched, at most a megabyte and a half; another one takes the place of one with the same hash.
#[derive(Debug)]
struct Hosts(Box<[Option<Box<History>>]>);

impl Default for Hosts {
    fn default() -> Self {
        Self((0..PLACES).map(|_| None).collect())
    }
}

impl Hosts {
    /// What is kept of a host, from now on if another had its place.
    fn at(&mut self, host: Placed<Host>) -> &mut History {
        let Placed { place, whom } = host;
        let history = self.0[place].get_or_insert_with(|| Box::new(History::new(whom)));
        if history.whom != whom {
            **history = History::new(whom);
        }
        history
    }

    /// The same, if it is known.
    fn known(&self, host: Placed<Host>) -> Option<&History> {
        self.0[host.place].as_deref().filter(|h| h.whom == host.whom)
    }

    fn known_mut(&mut self, host: Placed<Host>) -> Option<&mut History> {
        self.0[host.place].as_deref_mut().filter(|h| h.whom == host.whom)
    }
}

/// Of servers.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    servers: Hosts,
    /// Of any server.
    has_slow_link: bool,
}

impl Queues {
    /// An acknowledgment of the server at `time` that no application held back, and its round trip.
    pub fn sample(&mut self, server: Placed<Host>, time: u64, round_trip: u64) {
        let sample = Sample {
            sent: time.saturating_sub(round_trip),
            round_trip,
        };
        self.servers.at(server).add(sample, round_trip);
    }

    /// A block of the server has passed.
    pub fn passed(&mut self, server: Placed<Host>, block: &Block, flight: Flight) {
        if on_slow_link(block, flight).is_some() {
            self.has_slow_link = true;
            let link = &mut self.servers.at(server).link;
            let link = link.get_or_insert_with(Box::default);
            link.spaced(block);
            link.passed(block);
        } else if let Some(link) = self.slow_link(server) {
            link.passed(block);
        }
    }

    /// A piece of a block that goes on: what passed behind a segment that came at its begin. `is_even`: no pause was in it; `whole`: the
    /// smallest round trip of the whole path.
    pub fn went_on(&mut self, server: Placed<Host>, piece: &Block, is_even: bool, whole: u64) {
        let with_first = Block {
            bytes: piece.bytes.saturating_add(piece.max_segment.into()),
            packets: piece.packets.saturating_add(1),
            ..*piece
        };
        // What takes longer may be two flights.
        let half = Flight {
            round_trip: whole / 2,
            window: None,
        };
        if is_even && on_slow_link(&with_first, half).is_some() {
            self.has_slow_link = true;
            let link = &mut self.servers.at(server).link;
            link.get_or_insert_with(Box::default).spaced(&with_first);
        }
        if let Some(link) = self.slow_link(server) {
            link.passed(piece);
        }
    }

    /// A segment of the server came again.
    pub fn repeated(&mut self, server: Placed<Host>, time: u64, bytes: u32) {
        if let Some(link) = self.slow_link(server) {
            link.repeated(time, bytes);
        }
    }

    fn slow_link(&mut self, server: Placed<Host>) -> Option<&mut Link> {
        if !self.has_slow_link {
            return None;
        }
        self.servers.known_mut(server)?.link.as_deref_mut()
    }

    /// How long the way was for a request whose last packet passed at `asked` and a response that began with `block`, where a queue or a
    /// slow link made it longer than the smallest round trip of the connection to the server (`own`).
    /// `acked`: when an ACK of the whole request passed by itself.
    pub fn way(
        &mut self,
        server: Placed<Host>,
        (own, flight): (u64, Flight),
        (asked, acked): (u64, Option<u64>),
        block: &Block,
    ) -> Option<Wait> {
        let wait = self.wait(server, Some(own), asked, block.first);
        // No timer of an ACK is as short: the server had the request then.
        let way = acked.map(|acked| acked.saturating_sub(asked));
        let wait = match way.filter(|way| *way < own.saturating_add(DELAYED_ACK)) {
            Some(way) => {
                self.sample(server, asked.saturating_add(way), way);
                Wait::measured(wait, own, way)
            }
            None => wait,
        };
        let wait = match self
            .on_shared_link(server, block)
            .or_else(|| on_slow_link(block, flight))
        {
            Some(on_wire) => Some(wait.unwrap_or(Wait::none(own)).then(on_wire)),
            None => wait,
        };
        self.or_behind(wait, server, own, asked, block.first)
    }

    /// What others of the server tell of the link: the response's own segments may be too few, or too short.
    fn on_shared_link(&self, server: Placed<Host>, block: &Block) -> Option<u32> {
        let link = self.known(server).filter(|_| self.has_slow_link)?.link.as_deref()?;
        link.on_wire(block).filter(|ns| *ns >= SLACK).map(short)
    }

    /// Or longer by what others had on a slow link before the response, or shorter by what the smallest round trip is not the path's.
    fn or_behind(&self, wait: Option<Wait>, server: Placed<Host>, own: u64, asked: u64, answered: u64) -> Option<Wait> {
        let Some(history) = self.known(server) else { return wait };
        let behind = history.behind_others(own, asked, answered);
        match behind.max(history.excess(own)) {
            Some(unseen) => Some(Wait::or(wait, own, unseen)),
            None => wait,
        }
    }

    /// How long the way was when a queue stood; `own`: the connection's smallest round trip. `None`: no sign of a queue.
    fn wait(&self, server: Placed<Host>, own: Option<u64>, asked: u64, answered: u64) -> Option<Wait> {
        self.known(server)?.wait(own?, asked, answered)
    }

    /// The smallest round trip to a server of any connection, ns. `None`: few are known.
    pub fn least(&self, server: Placed<Host>) -> Option<u64> {
        let history = self.known(server)?;
        (history.samples >= ENOUGH_SAMPLES).then(|| history.least())
    }

    /// What others tell of the slow link between a server and the tap, when one of its blocks has passed. `None`: none is known.
    pub fn shared(&self, server: Placed<Host>, block: &Block) -> Option<SharedLink> {
        if !self.has_slow_link {
            return None;
        }
        let history = self.known(server)?;
        let link = history.link.as_deref()?;
        Some(SharedLink {
            least: history.least(),
            busy_since: link.busy_since(block.first),
        })
    }

    fn known(&self, server: Placed<Host>) -> Option<&History> {
        self.servers.known(server)
    }

    /// What others had on a slow link before the response that came at `answered`: their blocks are told when they end, and soon forgotten.
    pub fn behind(
        &self,
        wait: Option<Wait>,
        server: Placed<Host>,
        own: u64,
        (asked, answered): (u64, u64),
    ) -> Option<Wait> {
        if !self.has_slow_link {
            return wait;
        }
        self.or_behind(wait, server, own, asked, answered)
    }

    /// The same when a transaction is over: the first sign of a queue may have come after the response, and what others had
    /// before it on a slow link, too.
    pub fn again(&self, server: Placed<Host>, own: Option<u64>, done: &mut Finished) {
        let on_wire = done.wait.map_or(0, |wait| wait.on_wire);
        let no_queue = done.wait.is_none_or(|wait| !wait.is_queue);
        let asked = done.request_time.saturating_add(done.request);
        if no_queue && done.server.is_some() {
            let before = done.wait.map_or(0, |wait| wait.uncertain.into());
            let wait = self.wait(server, own, asked, done.response_time);
            let now = wait.map(|wait| Wait {
                is_repeat: done.wait.is_some_and(|wait| wait.is_repeat),
                ..Wait::or(Some(wait.then(on_wire)), 0, before)
            });
            done.wait = now.or(done.wait);
        }
        if let Some(own) = own.filter(|_| done.server.is_some()) {
            done.wait = self.or_behind(done.wait, server, own, asked, done.response_time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Route;
    use weir_record::Record;

    const MS: u64 = 1_000_000;
    /// A time that is no slot's edge.
    const T: u64 = 1_700_000_000_123_456_789;

    /// So many ms over the whole path.
    fn flight(round_trip: u64) -> Flight {
        Flight {
            round_trip: round_trip * MS,
            window: None,
        }
    }

    /// Times in ms after T, round trips in ms, as the analysis hears them.
    fn queues(samples: &[(u64, u64)]) -> Queues {
        let mut queues = Queues::default();
        for (sent, trip) in samples {
            queues.sample(Host::default().into(), T + (sent + trip) * MS, trip * MS);
        }
        queues
    }

    fn wait(samples: &[(u64, u64)], asked: u64, answered: u64) -> Option<(u64, u64)> {
        let wait = queues(samples).wait(Host::default().into(), Some(20 * MS), T + asked * MS, T + answered * MS)?;
        Some((u64::from(wait.round_trip) / MS, u64::from(wait.uncertain) / MS))
    }

    #[test]
    fn round_trips_that_stay_are_no_queue() {
        assert_eq!(wait(&[(0, 20), (100, 21), (200, 22)], 210, 500), None);
        assert_eq!(wait(&[], 210, 500), None);
        // Nor is one that is long, nor several if what passed before and after was not.
        assert_eq!(wait(&[(0, 20), (100, 90), (200, 20)], 210, 500), None);
        assert_eq!(
            wait(
                &[(0, 20), (50, 90), (60, 20), (110, 20), (120, 70), (130, 20)],
                210,
                500
            ),
            None
        );
        let elsewhere = Route {
            vlans: 7,
            ..Route::default()
        };
        let elsewhere = elsewhere.host(1).into();
        assert_eq!(
            queues(&[(0, 20), (100, 80), (200, 80)]).wait(elsewhere, Some(20 * MS), T, T + MS),
            None
        );
    }

    /// 120 ms and up to 5 ms of jitter: a server's 5 ms may be anything up to that much more or less.
    #[test]
    fn jitter_makes_a_server_time_uncertain() {
        let seen = [(0, 121), (50, 124), (100, 123), (150, 125), (200, 122)];
        let queues = queues(&seen);
        let wait = queues.wait(Host::default().into(), Some(121 * MS), T + 150 * MS, T + 280 * MS);
        let wait = wait.expect("jitter");
        assert_eq!(u64::from(wait.round_trip) / MS, 125);
        assert!(u64::from(wait.uncertain) >= 4 * MS, "{wait:?}");
    }

    #[test]
    fn a_request_between_two_others_waited_as_they_did() {
        // The queue had 60 ms before and 68 ms after it, and the server needed 5 ms.
        let (trip, uncertain) = wait(&[(0, 20), (1000, 60), (1016, 68)], 1008, 1077).expect("a queue");
        // Without any queue the server needed 49 ms.
        assert_eq!((trip, uncertain), (64, 64 - 20));
    }

    /// Another connection had 20 ms, and this one never less than 130.
    #[test]
    fn all_of_a_connections_round_trips_may_have_waited() {
        let wait = |samples: &[(u64, u64)], own: u64| {
            let wait = queues(samples).or_behind(None, Host::default().into(), own * MS, T, T + 500 * MS);
            wait.map(|wait| (u64::from(wait.round_trip) / MS, u64::from(wait.uncertain) / MS))
        };
        assert_eq!([130, 21].map(|own| wait(&[(0, 20)], own)), [Some((130, 110)), None]);
        // Minutes later, the path may be another.
        assert_eq!(wait(&[(0, 20), (59_000, 130)], 130), Some((130, 110)));
        assert_eq!(wait(&[(0, 20), (61_000, 130), (122_000, 130)], 130), None);
    }

    /// A response's first block, at `answered` ms: segments of 1,000 bytes, so many µs apart; and the way it tells of.
    fn way(samples: &[(u64, u64)], answered: u64, packets: u16, bytes: u32, apart: u64) -> Option<Wait> {
        let first = T + answered * MS;
        let block = Block {
            first,
            last: first + u64::from(packets - 1) * apart * 1000,
            seq: 0,
            bytes,
            ack: 0,
            flight: 0,
            packets,
            max_segment: 1000,
            window: 0,
            ttl: 64,
            known: 3,
        };
        queues(samples).way(
            Host::default().into(),
            (20 * MS, flight(30)),
            (T + 10 * MS, None),
            &block,
        )
    }

    #[test]
    fn the_first_segment_passed_the_slow_link_as_the_others() {
        let wait = |round_trip: u32, uncertain: u32, on_wire: u32| {
            let us = |us: u32| us * 1000;
            Some(Wait {
                round_trip: us(round_trip),
                uncertain: us(uncertain),
                on_wire: us(on_wire),
                is_queue: false,
                is_repeat: false,
            })
        };
        assert_eq!(way(&[], 100, 2, 2000, 2400), wait(22_400, 2400, 2400));
        assert_eq!(
            way(&[], 100, 3, 2100, 2400),
            wait(22_400, 2400, 2400),
            "the last one is short"
        );
        assert_eq!(way(&[], 100, 2, 2000, 99), None, "a quick link");
        assert_eq!(way(&[], 100, 1, 1000, 2400), None, "nothing to compare with");
        assert_eq!(way(&[], 100, 3, 1900, 2400), None, "written in pieces");
        assert_eq!(way(&[], 100, 3, 3001, 2400), None, "some were not seen");
        assert_eq!(way(&[], 100, 14, 14_000, 2400), None, "more than a flight");
        // And a queue before that.
        let queue = [(0, 20), (5, 60), (8, 60), (12, 60)];
        let without = way(&queue, 100, 1, 1000, 0).expect("a queue");
        assert_eq!(way(&queue, 100, 2, 2000, 2400), Some(without.then(2_400_000)));
        // Its first sign may come after the response.
        let mut done = Finished {
            wait: way(&[], 100, 2, 2000, 2400),
            ..Finished::answered(T, 100 * MS)
        };
        done.request_time = T + 10 * MS;
        done.response_time = T + 100 * MS;
        queues(&queue).again(Host::default().into(), Some(20 * MS), &mut done);
        assert_eq!(done.wait, Some(without.then(2_400_000)));
    }

    /// Full segments of 1,000 bytes, as long apart as one and a half round trips.
    #[test]
    fn a_segment_may_take_longer_than_a_round_trip() {
        let is_slow = |packets: u16, in_flight: u32, window: Option<u32>, trip: u64| {
            let block = Block {
                first: T,
                last: T + u64::from(packets - 1) * 3 * MS,
                bytes: 1000 * u32::from(packets),
                packets,
                max_segment: 1000,
                flight: in_flight,
                ..Block::decode(&Record([0; 64]))
            };
            let flight = Flight { window, ..flight(trip) };
            on_slow_link(&block, flight).is_some()
        };
        assert!(is_slow(4, 2000, Some(6000), 2));
        assert!(!is_slow(3, 2000, Some(6000), 2), "each may have waited for an ACK");
        assert!(!is_slow(4, 2000, Some(6000), 3), "as long as a round trip");
        assert!(!is_slow(4, 2000, Some(4000), 2), "the window had no room for more");
        assert!(!is_slow(4, 4000, Some(9000), 2), "what waits does so behind the tap");
        assert!(!is_slow(4, 2000, None, 2));
    }

    /// Four others came over 2.4 ms a segment; a response of one segment and of half of one.
    #[test]
    fn a_response_of_one_segment_passed_the_slow_link_too() {
        let block = |at: u64, packets: u16, bytes: u32| Block {
            first: T + at * MS,
            last: T + at * MS + u64::from(packets - 1) * 2_400_000,
            bytes,
            packets,
            max_segment: 934,
            ..Block::decode(&Record([0; 64]))
        };
        let whom = Host::default().into();
        let mut queues = queues(&[(0, 20)]);
        let way = |queues: &mut Queues, bytes: u32| {
            let wait = queues.way(whom, (20 * MS, flight(30)), (T + 600 * MS, None), &block(700, 1, bytes))?;
            Some((wait.round_trip, wait.uncertain, wait.on_wire))
        };
        for n in 0..4 {
            assert_eq!(way(&mut queues, 934), None);
            queues.passed(whom, &block(100 * n, 2, 2 * 934), flight(30));
        }
        assert_eq!(way(&mut queues, 934), Some((22_400_000, 2_400_000, 2_400_000)));
        assert_eq!(way(&mut queues, 434), Some((21_200_000, 1_200_000, 1_200_000)));
        assert_eq!(way(&mut queues, 334), None, "less than a millisecond");
        // Of two segments the second is short, and came as much sooner behind the first.
        let two = Block {
            last: T + 700 * MS + 480_000,
            bytes: 934 + 134,
            ..block(700, 2, 0)
        };
        let wait = queues.way(whom, (20 * MS, flight(30)), (T + 600 * MS, None), &two);
        assert_eq!(wait.map(|wait| wait.on_wire), Some(2_400_000));
    }

    /// Others of the server had the link for 50 ms before a response, which took 80 ms; the round trip is 20 ms.
    #[test]
    fn a_response_may_have_waited_behind_others_on_a_slow_link() {
        let segments = |at: u64, packets: u16| Block {
            first: T + at * MS,
            last: T + at * MS + u64::from(packets - 1) * 2_400_000,
            bytes: 1000 * u32::from(packets),
            packets,
            ..Block::decode(&Record([0; 64]))
        };
        let behind = |others: &[Block], heard: Option<u64>, from_server: bool| {
            let mut queues = queues(&[(0, 20)]);
            let whom = Host::default().into();
            for block in others {
                let block = Block {
                    max_segment: 1000,
                    ..*block
                };
                queues.passed(whom, &block, flight(60));
            }
            if let Some(at) = heard {
                queues.sample(whom, T + at * MS, 20 * MS);
            }
            let mut done = Finished::answered(T, 100 * MS);
            (done.request_time, done.response_time) = (T + 10 * MS, T + 90 * MS);
            done.server = done.server.filter(|_| from_server);
            queues.again(whom, Some(20 * MS), &mut done);
            done.wait
                .map(|wait| (u64::from(wait.round_trip) / MS, u64::from(wait.uncertain) / MS))
        };
        let busy = [segments(42, 10), segments(66, 11)];
        assert_eq!(behind(&busy, None, true), Some((20, 50)));
        assert_eq!(behind(&busy[1..], None, true), Some((20, 26)));
        assert_eq!(behind(&busy[..1], None, true), None, "a pause");
        // Single segments of others fill it.
        let single: Vec<_> = (0..10).map(|n| segments(66 + 2 * n + n / 2, 1)).collect();
        assert_eq!(behind(&[&busy[..1], &single[..]].concat(), None, true), Some((20, 50)));
        // It is no more than the server's time, and nothing waited when an answer came soon.
        assert_eq!(
            behind(&[segments(24, 18), segments(66, 11)], None, true),
            Some((20, 60))
        );
        assert_eq!(behind(&busy, Some(70), true), Some((20, 20)));
        assert_eq!(behind(&busy, None, false), None);
    }

    #[test]
    fn a_round_trip_is_no_longer_than_the_transaction() {
        assert_eq!(
            wait(&[(0, 20), (980, 60), (1000, 60)], 1001, 1031).map(|w| w.0),
            Some(30)
        );
    }

    #[test]
    fn queues_do_not_grow_without_bound() {
        // Work of 100 ms: no queue of the last seconds was longer than 40 ms, and the last answer came 8 ms before the response.
        let seen = [(0, 20), (400, 60), (500, 60), (990, 22), (1070, 22)];
        let (trip, uncertain) = wait(&seen, 1000, 1100).expect("a queue");
        assert_eq!((trip, trip + uncertain), (22, 60 + 10 + 8));
        // Work of a second, and nothing since: twice the 40 ms.
        let (trip, uncertain) = wait(&seen[..4], 1000, 2000).expect("a queue");
        assert_eq!((trip, trip + uncertain), (22, 60 + 40));
    }

    #[test]
    fn a_queue_is_remembered_for_five_seconds_and_forgotten_after_ten() {
        let old = [(0, 20), (900, 80), (1000, 80)];
        assert!(wait(&old, 3000, 3050).is_some_and(|(trip, uncertain)| trip == 20 && uncertain == 30));
        assert_eq!(wait(&old, 12_000, 12_050), None);
        // What is heard an hour later tells nothing.
        assert_eq!(wait(&[(0, 20), (3_600_000, 80), (3_600_100, 80)], 3000, 3050), None);
    }

    #[test]
    fn hostile_times_do_not_panic() {
        for (asked, answered) in [(0, 0), (u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX)] {
            for time in [0, 1, T, u64::MAX] {
                let mut queues = Queues::default();
                queues.sample(Host::default().into(), time, 30 * MS);
                queues.sample(Host::default().into(), time, 90 * MS);
                queues.wait(Host::default().into(), Some(1), asked, answered);
            }
        }
    }
}
