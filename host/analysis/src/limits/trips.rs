//! Trips: a transfer in pieces of a round trip or more, and what limited each of them.

use super::charges::{Cause, Charges};
use super::distant::{self, Echo};
use super::path::{DELAYED_ACK, Path, ROOM, SLACK, is_delayed};
use super::sample::{Passage, SPACED, Sample, Tally, passages};
use super::spans::{Span, Spans, Sure};
use super::{CONTEXT, Transfer};
use crate::seq::before;

/// Growth from one round trip to the next that only a congestion window shows.
const GROWTH: f64 = 1.2;
/// Round trips from which on it can be told that none is there.
const FLAT_TRIPS: usize = 3;
/// Differences up to this are none.
pub(super) const FLAT: f64 = 1.15;
/// Round trips above the smallest by this factor are queueing.
pub(super) const QUEUE: f64 = 1.25;
/// Round trips that are not longer than the smallest by this factor had no queue.
const EMPTY: f64 = 1.06;
/// Round trips longer than the smallest by this factor are queueing for the most part.
const MOSTLY: u64 = 3;
/// Share of the best rate that a transfer has of a link with a queue when another one is there.
const SHARED: f64 = 0.4;
/// Share of the link's rate at which it is busy.
const BUSY: f64 = 0.9;
/// A link's rate, with what others send on it, differs by so much from one round trip to the next.
pub(super) const STEADY: f64 = 1.5;
/// Share of the bytes in flight that a burst has behind the tap at once.
const MOST: f64 = 0.6;

/// An Ethernet frame without its check sum, bytes.
const SHORTEST_PACKET: f64 = 60.0;

/// A piece of a transfer, a round trip or more long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip {
    pub to: u64,
    /// Mean round trip behind the tap, ns.
    pub rtt: u64,
    /// Bytes/s acknowledged.
    pub rate: f64,
    /// Bytes in flight over the whole path, on average while the application had some.
    flight: f64,
    /// The same with its pauses.
    gross: f64,
    /// Bytes in flight behind the tap, at most.
    flight_max: u32,
    /// The smallest of its round trips behind the tap that the receiver's delay of an ACK is no part of, ns, if there were any.
    prompt: Option<u64>,
    /// Its last ACK left nothing in flight, and less than two full segments had been: a receiver keeps that back (RFC 1122 4.2.3.2).
    alone: bool,
    /// Share of it between a full segment with PSH and the next segment.
    silent: f64,
    /// The send buffer is known to have paused in it: between such pauses data goes as fast as the sender's congestion
    /// control lets it.
    buffered: bool,
    /// The application paused in it.
    paused: bool,
    /// Receiver's window in bytes, if known.
    pub window: Option<u32>,
    /// That, or the one under which the last timed segment was sent, if larger. (The ACK may come before the receiver has read
    /// what it acknowledges.)
    pub held_by: Option<u32>,
    /// Most timed segments went to the edge of the window.
    pub at_edge: bool,
    /// Time in which the sender surely stood there, pauses with spans of their own apart, ns.
    pub edge_ns: u64,
    /// Time in which the window surely had room and the sender sent nothing, ns.
    pub room_ns: u64,
    /// That was most of it.
    paced: bool,
    /// Most of it came from a slow link before the tap, segment behind segment.
    spaced: bool,
    /// What passed that link one behind the other.
    passed: Passage,
    /// Time in which that link was busy with this and with what others sent, ns.
    busy_ns: u64,
    /// Its ACKs came as much later than the fastest as what they acknowledge behind their timed segments takes at its rate: segment came
    /// behind segment, evenly.
    even: bool,
    /// All of it, ns.
    pub ns: u64,
    /// Most of it went in pieces behind which the application had written no more.
    partial: bool,
    /// Bytes from timed segment to timed segment, where known.
    pub bytes: u32,
    /// What is in flight is that of a flight.
    exact: bool,
    /// Round trip from the tap to the sender and back, ns: the smallest, unless its data told another.
    other: u64,
    /// The end of the transfer: too short to tell of itself.
    short: bool,
}

impl Trip {
    /// Not the short end of what was charged.
    pub const fn is_whole(&self) -> bool {
        !self.short
    }

    /// Time of it that packets waited in queues, ns. `by`: what it was charged to; `silent`: that in which none were on their way.
    pub fn queueing(&self, by: &Charges, silent: u64, path: &Path) -> u64 {
        let Some(base) = path.base else { return 0 };
        // Three segments and more with one late ACK waited for their receiver: the first two would have had their own. And what is less than
        // two has none before a timer runs out.
        let is_held = self.alone || self.flight_max >= ROOM * path.payload;
        if self.prompt.is_none() && is_held && is_delayed(self.rtt, 0, path) {
            return 0;
        }
        // So did what is acknowledged all at once and fills a window, or was waited for by Nagle's algorithm. An application that pauses
        // waits in no queue, either, nor who has a closed window before it: nothing is in flight then that could.
        // Nor is a late ACK of everything a sign of a queue while a timer of the sender runs.
        let receiver = by
            .of(Cause::ReceiverWindow)
            .saturating_add(by.of(Cause::Nagle))
            .saturating_add(by.of(Cause::Recovery));
        let elsewhere = by
            .of(Cause::Application)
            .saturating_add(by.closed())
            .saturating_add(silent)
            .saturating_add(if self.prompt.is_some() { 0 } else { receiver });
        let waited = self.rtt.saturating_sub(base).saturating_add(self.before_tap(path));
        let above = waited as f64 / self.rtt.saturating_add(self.other).max(1) as f64;
        (above * by.sum().saturating_sub(elsewhere) as f64) as u64
    }

    /// What its round trips to the sender waited, ns.
    const fn before_tap(&self, path: &Path) -> u64 {
        self.other.saturating_sub(path.other)
    }

    /// Whether most of its round trips was a queue: neither jitter nor a delayed ACK is as long.
    fn is_mostly_queue(&self, path: &Path) -> bool {
        let (whole, least) = (self.rtt.saturating_add(self.other), path.round_trip());
        let far = least.saturating_mul(MOSTLY).max(least.saturating_add(DELAYED_ACK));
        (self.prompt.is_some() || self.before_tap(path) > DELAYED_ACK) && path.base.is_some() && whole > far
    }
}

/// Samples on their way to a trip.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    since: u64,
    /// End of the segment that was timed at its beginning.
    timed: Option<u32>,
    /// Round trips that no receiver made longer: their sum, ns, how many, the smallest, and what they acknowledged behind their timed
    /// segments, bytes.
    sum: u64,
    count: u64,
    prompt: Option<u64>,
    behind: u64,
    flight_max: u32,
    /// Of its timed segments: those at the edge of the window less those that were not.
    edge: i32,
    tally: Tally,
    /// What passed between its timed segments.
    between: Passage,
}

impl Piece {
    fn new(since: u64, timed: Option<u32>) -> Self {
        Self {
            since,
            timed,
            ..Self::default()
        }
    }

    /// One more; `passed`: between the timed segment before it and its own.
    fn add(&mut self, s: &Sample, passed: Option<Passage>, path: &Path) {
        self.between.join(passed.unwrap_or_default());
        self.flight_max = self.flight_max.max(s.flight_max);
        self.edge += match s.at_edge {
            Some(true) => 1,
            Some(false) => -1,
            None => 0,
        };
        self.tally.join(&s.tally);
        if s.is_prompt(path) {
            self.sum = self.sum.saturating_add(s.rtt);
            self.count += 1;
            self.behind = self.behind.saturating_add(u64::from(s.ack.wrapping_sub(s.end)));
            self.prompt = Some(self.prompt.map_or(s.rtt, |least| least.min(s.rtt)));
        }
    }

    /// The trip that ends with `s`, behind another one; `echo`: what its data told of its sender.
    fn end(&self, s: &Sample, before_it: Option<&Trip>, echo: Option<&Echo>, spans: &Spans, path: &Path) -> Trip {
        let since = self.since;
        let in_spans = |causes: &[Cause]| spans.within(causes, since, s.time);
        let whole = s.time.saturating_sub(since);
        let paused = in_spans(&[Cause::Application]);
        let ns = whole
            .saturating_sub(in_spans(&[Cause::Application, Cause::ZeroWindow]))
            .max(1);
        let bytes = self.bytes(s);
        let rtt = self.sum.checked_div(self.count).unwrap_or(s.rtt);
        let trip = rtt.saturating_add(path.other);
        // The end of it: too short to tell.
        let previous = before_it.filter(|_| ns < path.round_trip() / 2);
        let rate = match (previous, bytes) {
            (Some(previous), _) => previous.rate,
            (None, Some(bytes)) => f64::from(bytes) / ns as f64 * 1e9,
            (None, None) => f64::from(self.flight_max) / trip.max(1) as f64 * 1e9,
        };
        // What is in flight over the whole path: rate × round trip (Little).
        let flight = rate * path.round_trip().max(trip) as f64 / 1e9;
        let gross = bytes.map_or(flight, |bytes| {
            f64::from(bytes) / whole.max(path.round_trip()).max(1) as f64 * path.round_trip().max(trip) as f64
        });
        // Acknowledgments come in bursts as well, and a trip can hold those of two: the flight is known better.
        let of_span = spans
            .iter()
            .find(|span| span.flight > 0 && 2 * span.within(since, s.time) > whole)
            .map(|span| span.flight);
        // Behind the ACK that data echoes its sender had less to send, or this much on its way: the smallest round trip is none of a queue.
        let echo = echo.filter(|echo| f64::from(echo.flight) > flight);
        let flown = of_span.max(echo.map(|echo| echo.flight));
        let (flight, gross) = flown.map_or((flight, gross), |bytes| (f64::from(bytes), f64::from(bytes)));
        let is_buffer = |span: &Span| {
            span.cause == Cause::SendBuffer && span.sure >= Sure::Yes && span.from < s.time && span.to > since
        };
        // A pause of the application, too, leaves room.
        let room = self.tally.room_ns.saturating_sub(paused);
        let partial = self.tally.partial > 0;
        let (spaced, passed) = self.passed(bytes);
        // No packet has passed a link to the sender and back sooner than the link takes for it. (One that lets bursts pass has, but pieces
        // that are shorter than a segment show who makes the pauses.)
        let no_link = partial && path.other > 0 && SHORTEST_PACKET / rate.max(1.0) * 1e9 > path.other as f64;
        Trip {
            to: s.time,
            rtt,
            rate,
            flight,
            gross,
            flight_max: self.flight_max,
            prompt: self.prompt.filter(|_| !self.is_held(rtt, rate, path)),
            alone: s.flight == 0 && s.flight_max < 2 * path.payload,
            silent: in_spans(&[Cause::SendBuffer]) as f64 / whole.max(1) as f64,
            buffered: spans.iter().any(is_buffer),
            paused: paused > 0,
            window: s.window,
            held_by: s.window.max(s.window_before.filter(|_| s.window.is_some())),
            at_edge: self.edge > 0,
            edge_ns: self.tally.edge_ns.saturating_sub(in_spans(&[Cause::ReceiverWindow])),
            room_ns: room,
            paced: 2 * room > ns,
            spaced: spaced && !no_link,
            passed,
            busy_ns: self.tally.busy_ns,
            even: self.is_even(rtt, rate, path),
            ns: whole,
            partial,
            bytes: bytes.unwrap_or(0),
            exact: flown.is_some(),
            other: echo.and_then(|echo| echo.round_trip(path)).unwrap_or(path.other),
            short: previous.is_some(),
        }
    }

    /// Bytes from timed segment to timed segment, where known.
    fn bytes(&self, last: &Sample) -> Option<u32> {
        let timed = self.timed.filter(|at| !before(last.end, *at))?;
        Some(last.end.wrapping_sub(timed))
    }

    /// What its round trips acknowledged behind their timed segments, on average, bytes.
    fn mean_behind(&self) -> u64 {
        self.behind.checked_div(self.count).unwrap_or(0)
    }

    /// Whether its ACKs, a mean `rtt` after their timed segments, came as much later than the fastest as what they acknowledge behind them
    /// takes at `rate`.
    fn is_even(&self, rtt: u64, rate: f64, path: &Path) -> bool {
        path.base.zip(self.prompt).is_some_and(|(base, least)| {
            let is_even = |rtt: u64| is_even(rtt.saturating_sub(base), self.mean_behind(), rate);
            is_even(least) && is_even(rtt)
        })
    }

    /// Whether its ACKs waited for their receiver. What waits in a queue arrives one by one, and each second segment is acknowledged: one ACK for
    /// what takes so long to arrive was held back.
    fn is_held(&self, rtt: u64, rate: f64, path: &Path) -> bool {
        let behind = self.mean_behind();
        rtt.saturating_sub(path.base.unwrap_or(rtt)) >= DELAYED_ACK
            && behind > 2 * u64::from(path.payload)
            && behind as f64 / rate.max(1.0) * 1e9 >= DELAYED_ACK as f64
    }

    /// Whether most of it was spaced by a slow link before the tap, and what passed that. Blocks that are too long (nothing in them has PSH)
    /// tell only that it passed.
    fn passed(&self, bytes: Option<u32>) -> (bool, Passage) {
        let bytes = u64::from(bytes.unwrap_or(0));
        match 2 * self.tally.within >= bytes {
            true => (self.tally.spaced > 0, self.tally.passed),
            false => (2 * self.between.bytes() > bytes, self.between),
        }
    }
}

impl Transfer {
    /// The samples in pieces of a round trip or more, behind those that have been charged.
    pub(super) fn trips(&mut self, samples: &[Sample], spans: &Spans, path: &Path) -> Vec<Trip> {
        let mut trips = self.history.clone();
        let Some(first) = samples.first() else { return trips };
        let start = first.time.saturating_sub(first.rtt.saturating_add(path.other));
        // What came before the transfer may have been acknowledged without a sample.
        let begun = self.writes.begun_at();
        let measured = self
            .measured
            .map(|end| begun.filter(|at| before(end, *at)).unwrap_or(end));
        let (since, timed) = self.cut_at.unwrap_or((start, measured));
        let mut piece = Piece::new(since, timed);
        let mut sure = [0.0; 3];
        let passages = passages(samples, path);
        let charged = samples.partition_point(|s| self.cut_at.is_some_and(|(at, _)| s.time <= at));
        for (i, s) in samples.iter().enumerate().skip(charged) {
            piece.add(s, passages[i], path);
            let is_last = i + 1 == samples.len();
            if s.time.saturating_sub(piece.since) < path.round_trip().max(SLACK) && !is_last {
                continue;
            }
            let echo = distant::echo(&self.echoes, piece.since, s.time);
            let trip = piece.end(s, trips.last(), echo, spans, path);
            // What a repeat lets be acknowledged came before.
            let is_sure = piece.bytes(s).is_some() && spans.within(&[Cause::Recovery], piece.since, s.time) == 0;
            sure.rotate_left(1);
            sure[2] = if is_sure { trip.rate } else { 0.0 };
            self.rate_best = self.rate_best.max(median(sure));
            trips.push(trip);
            piece = Piece::new(s.time, Some(s.end));
        }
        for t in &trips {
            self.peak = self.peak.max(t.flight as u32).max(t.flight_max);
        }
        // One piece can hold a burst; the middle one of three does not.
        for three in trips.windows(3) {
            self.rate_max = self.rate_max.max(median([three[0].rate, three[1].rate, three[2].rate]));
        }
        trips
    }

    /// What limited trip `i`, spans apart; and whether it was as all trips around it, so that pauses after full
    /// segments are those of a full send buffer.
    pub(super) fn classify(&mut self, trips: &[Trip], i: usize, path: &Path) -> (Cause, bool) {
        let t = &trips[i];
        // No more can be in flight than the window allows: where it seems so, the round trip is not the smallest one.
        if let Some(window) = t.held_by
            && let most = f64::from(window) * FLAT
            && let gross = smoothed(trips, i, most)
            && (t.at_edge || gross + f64::from(path.room(window, t.exact)) >= f64::from(window) && gross <= most)
        {
            return (Cause::ReceiverWindow, false);
        }
        if let Some(window) = path.inferred.filter(|_| t.window.is_none())
            && (t.flight_max > window.saturating_sub(path.segment)
                || t.gross + f64::from(path.room(window, t.exact)) >= f64::from(window)
                    && t.gross <= f64::from(window) * FLAT)
        {
            self.receiver_bytes = window;
            return (Cause::ReceiverWindow, false);
        }
        if t.short && i > 0 {
            let before = self.classify(trips, i - 1, path);
            if before.0 != Cause::ReceiverWindow {
                return before;
            }
        }
        let base = path.base.unwrap_or(t.rtt) as f64;
        let is_above = |trip: &Trip| {
            let stands = |least: u64| least as f64 > base * EMPTY + SLACK as f64;
            trip.rtt as f64 > base * QUEUE + SLACK as f64 && trip.prompt.is_some_and(stands)
        };
        // No queue comes and goes from one round trip to the next: a segment waited for the next flight, whose ACK was its own.
        let around = &trips[i.saturating_sub(1)..(i + 2).min(trips.len())];
        let above = around.iter().filter(|trip| is_above(trip)).count();
        let queued = is_above(t) && (above > 1 || around.len() == 1);
        if queued && self.rate_max > 0.0 && t.rate >= SHARED * self.rate_max {
            self.link_rate = self.link_rate.max(self.rate_max);
            return (Cause::Bandwidth, false);
        }
        // What is in a queue before the tap waits for its turn there, however little of it came.
        if path.link.is_some_and(|link| t.rate >= BUSY * link) || t.before_tap(path) > 0 {
            return (Cause::Bandwidth, false);
        }
        let growing = if self.loss_flight == 0 {
            Cause::SlowStart
        } else {
            Cause::CongestionWindow
        };
        if f64::from(self.loss_flight) > t.flight {
            return (growing, false);
        }
        // Never as much in flight before: only a growing congestion window shows that.
        let before = trips[..i].iter().map(|t| t.flight).fold(0.0, f64::max);
        let after = trips.get(i + 1).map_or(0.0, |t| t.flight);
        let whole = trips.iter().filter(|t| !t.short).count();
        if i == 0 || whole < FLAT_TRIPS || t.flight.max(after) >= before * GROWTH {
            return (growing, false);
        }
        let far = |j: usize| trips.get(j).map_or(t.flight, |t| t.flight);
        if far(i + CONTEXT) > far(i.saturating_sub(CONTEXT)) * FLAT {
            return (Cause::CongestionWindow, false);
        }
        if t.buffered {
            return (Cause::CongestionWindow, false);
        }
        let around = &trips[i.saturating_sub(2)..(i + 3).min(trips.len())];
        let most = around.iter().map(|t| t.flight).fold(0.0, f64::max);
        let least = around.iter().map(|t| t.flight).fold(f64::INFINITY, f64::min);
        if most > least * FLAT * FLAT {
            // Segments that stand apart alike left a link that had no pause; how many of others went between them varies.
            let cause = match (is_spaced(trips, i), t.paced) {
                (true, _) => Cause::Bandwidth,
                (false, true) => Cause::CongestionWindow,
                (false, false) => Cause::Unknown,
            };
            return (cause, false);
        }
        // Flat. With pauses: those are the send buffer's (after full segments) or the application's, and between them data
        // goes as fast as the sender's congestion control lets it. In bursts: most of the bytes behind the tap at once. Even arrival: the
        // bytes behind the tap are those of their share of the round trip.
        if t.silent > 0.0 || t.paused {
            return (Cause::CongestionWindow, true);
        }
        let even = t.rate * t.rtt as f64 / 1e9;
        let flight_max = f64::from(t.flight_max);
        let at_once = flight_max > even * QUEUE && flight_max > t.flight * MOST;
        if at_once {
            self.sender_bytes = self.sender_bytes.max(most as u32).max(t.flight_max);
            (Cause::SendBuffer, true)
        } else if t.partial && !is_spaced(trips, i) {
            (Cause::Application, false)
        } else if t.flight < f64::from(ROOM * path.payload) && !is_spaced(trips, i) {
            // Whoever waits for a link has more on its way.
            (Cause::Unknown, false)
        } else if is_spaced(trips, i) || t.even {
            self.link_rate = self.link_rate.max(t.rate);
            (Cause::Bandwidth, true)
        } else {
            // Nothing shows a link that took as long.
            (Cause::Unknown, true)
        }
    }
}

/// Bytes in flight in trip `i`; or, if it or a neighbour under the same window seems to have had more than `most`, which the window does
/// not allow, in it and half of each neighbour: some of what was acknowledged in one was sent in another.
fn smoothed(trips: &[Trip], i: usize, most: f64) -> f64 {
    let around = i.saturating_sub(1)..(i + 2).min(trips.len());
    let alike = || around.clone().filter(|j| trips[*j].held_by == trips[i].held_by);
    if alike().all(|j| trips[j].gross <= most) {
        return trips[i].gross;
    }
    let (mut sum, mut weight) = (0.0, 0.0);
    for j in alike() {
        let ns = trips[j].ns as f64 * if j == i { 1.0 } else { 0.5 };
        sum += trips[j].gross * ns;
        weight += ns;
    }
    sum / f64::max(weight, 1.0)
}

/// Whether a queue at the link never ran empty in trip `i`: what was full besides did not leave the link a pause.
pub(super) fn is_link_busy(trips: &[Trip], i: usize, path: &Path) -> bool {
    let is_given = path.link.is_some_and(|link| trips[i].rate >= BUSY * link);
    is_given || trips[i].is_mostly_queue(path) || has_standing_queue(trips, i, path)
}

/// Whether none of the round trips of trip `i` and its neighbours came near the smallest: jitter lets some of them, and what the
/// segments of a burst wait for each other ends with each burst. A receiver that reads slowly keeps its ACKs back, but not the same window.
fn has_standing_queue(trips: &[Trip], i: usize, path: &Path) -> bool {
    let Some(base) = path.base else { return false };
    let around = &trips[i.saturating_sub(2)..(i + 3).min(trips.len())];
    let stands = |trip: &Trip| {
        // A link passes at least what was acknowledged, and a receiver acknowledges every second segment.
        let two = f64::from(2 * path.payload) / trip.rate.max(1.0) * 1e9;
        let least = path.round_trip() as f64 * (QUEUE - 1.0) + SLACK as f64;
        let behind_tap = trip.prompt.unwrap_or(base).saturating_sub(base);
        let waited = behind_tap.saturating_add(trip.before_tap(path));
        trip.window == trips[i].window && waited as f64 > least.max(two)
    };
    around.len() >= FLAT_TRIPS && around.iter().all(stands)
}

fn median([a, b, c]: [f64; 3]) -> f64 {
    a.max(b).min(a.min(b).max(c))
}

/// Whether so many bytes come in `late` ns at a rate, and segments that do not come at once.
fn is_even(late: u64, bytes: u64, rate: f64) -> bool {
    let bytes = bytes as f64;
    bytes > 0.0 && late >= SPACED && (late as f64 / 1e9 * rate - bytes).abs() <= bytes * (QUEUE - 1.0)
}

/// Whether most of trip `i` came from a slow link before the tap, for as long as it took: what passed there in it and its neighbours (a
/// block may end in another than it began) does not leave out half of it.
fn is_spaced(trips: &[Trip], i: usize) -> bool {
    let around = &trips[i.saturating_sub(1)..(i + 2).min(trips.len())];
    let passed = around
        .iter()
        .fold(0, |sum: u64, trip| sum.saturating_add(trip.passed.ns));
    trips[i].spaced && passed >= trips[i].ns / 2
}

/// Whether a slow link before the tap was busy with this and others' in trip `i` and its neighbours (a block may end in another than it began).
pub(super) fn shares_busy_link(trips: &[Trip], i: usize) -> bool {
    let around = &trips[i.saturating_sub(1)..(i + 2).min(trips.len())];
    let sum = |ns: fn(&Trip) -> u64| around.iter().map(ns).fold(0, u64::saturating_add);
    sum(|trip| trip.busy_ns) as f64 >= BUSY * sum(|trip| trip.ns) as f64
}

/// The rate in bytes/s of a slow link before the tap, if it had no pause in trip `i` and its neighbours (a block may end in
/// another than it began), and was as fast in all of them: a sender that paces in slow start gets faster.
pub(super) fn busy_link(trips: &[Trip], i: usize, path: &Path) -> Option<f64> {
    let around = &trips[i.saturating_sub(1)..(i + 2).min(trips.len())];
    let mut passed = Passage::default();
    around.iter().for_each(|trip| passed.join(trip.passed));
    let ns: u64 = around.iter().map(|trip| trip.ns).fold(0, u64::saturating_add);
    let rates = || around.iter().filter(|trip| !trip.short).map(|trip| trip.passed.rate());
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let whole = trips.iter().filter(|trip| !trip.short).count();
    let has_more = whole >= FLAT_TRIPS && trips[i].flight >= f64::from(ROOM * path.payload);
    (trips[i].spaced && has_more && most <= STEADY * least && passed.ns as f64 >= BUSY * ns as f64)
        .then(|| passed.rate())
}

#[cfg(test)]
mod tests {
    use weir_record::{Block, BlockEnd, Rtt};

    use super::*;
    use crate::limits::SoFar;
    use crate::limits::charges::Charges;
    use crate::limits::tests::{MS, TAP_AT_RECEIVER, TAP_BETWEEN, block, rtt};

    /// Two segments in each round trip, of windows of so many: three of four and more would have been free.
    #[test]
    fn two_segments_use_up_a_small_window() {
        let window = |segments: u32| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            // The ACKs that tell of the edge are not the last that the sender has heard.
            let trip = path.round_trip() + 20 * MS;
            t.measured = Some(0);
            for n in 1..10u32 {
                let acked = rtt(60 * MS, 2_000 * n, 1_000);
                t.sample(u64::from(n) * trip, &acked, Some(1_000 * segments), &path);
            }
            let by = t.settle(0, 9 * trip, 9 * trip + MS, &path).by;
            by.receiver() > 5 * trip
        };
        assert_eq!([3, 4, 8, 20].map(window), [true, true, false, false]);
    }

    /// Flights of so many segments beside the receiver, a round trip apart, and the last ACK a millisecond later.
    fn beside_receiver(flights: &[u32]) -> Charges {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        let trip = path.round_trip() + MS;
        let (mut time, mut begin) = (1000 * MS, 0);
        t.measured = Some(1_000u32.wrapping_sub(1_000 * flights[0]));
        for flight in flights {
            let timed = rtt(100_000, begin + 1_000, 1_000 * (flight - 1));
            t.sample(time, &timed, Some(400_000), &path);
            time += trip;
            begin += 1_000 * flight;
        }
        let end = time - trip + MS;
        t.sample(end, &rtt(100_000, begin, 0), Some(400_000), &path);
        t.settle(1000 * MS, end, time, &path).by
    }

    /// So many bytes in each of nine round trips. The ACK of every second segment comes as much later than the fastest.
    fn flat(bytes: u32, late: impl Fn(u32) -> u64) -> (Charges, Option<f64>) {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.measured = Some(0);
        for n in 1..10u32 {
            let second = Rtt {
                ack: bytes * n + 1_000,
                ..rtt(60 * MS + late(n), bytes * n, if bytes < 3_000 { 0 } else { 3_000 })
            };
            t.sample(u64::from(n) * 101 * MS, &second, Some(400_000), &path);
        }
        (t.settle(0, 900 * MS, 910 * MS, &path).by, t.link())
    }

    /// 10,000 bytes in 101 ms are a segment each 10 ms.
    #[test]
    fn segments_that_come_evenly_are_those_of_a_busy_link() {
        // A receiver takes one segment, in each round trip.
        for (bytes, late, is_known) in [(200, 10, false), (10_000, 10, true), (10_000, 0, false)] {
            let (by, link) = flat(bytes, |_| late * MS);
            let [busy, unknown] = [Cause::Bandwidth, Cause::Unknown].map(|cause| by.of(cause) > 300 * MS);
            assert_eq!((busy, unknown), (is_known, !is_known), "{bytes} {late}");
            assert_eq!(link.is_some(), is_known);
        }
    }

    /// What nothing tells of is a busy link's if that passed this and others' segments all the time.
    #[test]
    fn a_link_is_busy_with_what_others_send() {
        for (busy, cause) in [(95, Cause::Bandwidth), (80, Cause::Unknown)] {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.measured = Some(0);
            for n in 1..10u32 {
                let time = u64::from(n) * 100 * MS;
                let b = block(time - busy * MS, time, 200 * (n - 1), 200);
                t.waited_since(&b, Some(b.first), None);
                t.sample(time, &rtt(60 * MS, 200 * n, 0), Some(400_000), &path);
            }
            let by = t.settle(0, 900 * MS, 910 * MS, &path).by;
            assert!(by.of(cause) > 500 * MS, "{busy}: {by:?}");
        }
    }

    /// An odd segment waits for the next flight, in every second round trip.
    #[test]
    fn a_late_ack_among_others_is_no_queue() {
        let busy = |late: fn(u32) -> u64| flat(10_000, |n| late(n) * MS).0.of(Cause::Bandwidth);
        assert_eq!(busy(|n| 40 * u64::from(n % 2)), 0);
        assert!(busy(|_| 40) > 500 * MS);
    }

    /// A queue stood in the first transfer, and the next was twice as fast without one.
    #[test]
    fn a_link_lets_pass_what_passed_at_another_time() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        let (mut time, mut seq) = (0, 0);
        let links = [(10_000, 100 * MS), (20_000, 60 * MS)].map(|(bytes, trip)| {
            let (from, begin) = (time, seq);
            t.measured = Some(begin);
            while seq < begin + 10 * bytes {
                (time, seq) = (time + 101 * MS, seq + bytes);
                t.sample(time, &rtt(trip, seq, 8_000), Some(400_000), &path);
            }
            t.settle(from, time, time, &path);
            t.link().map(|link| (link / 1e4).round() as u32)
        });
        assert_eq!(links, [Some(10), Some(20)]);
    }

    /// One segment at a time, each acknowledged whole: no sample tells of it, but for that of the last.
    #[test]
    fn what_no_round_trip_tells_of_is_unknown() {
        let charged = |trips: u64| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            let end = trips * 100 * MS;
            t.sample(end, &rtt(60 * MS, 1_000, 1_000), Some(400_000), &path);
            t.settle(0, end, end, &path).by.of(Cause::Unknown) / MS
        };
        assert_eq!([5, 50].map(charged), [0, 4_900]);
    }

    #[test]
    fn two_round_trips_alike_show_no_buffer() {
        assert_eq!(beside_receiver(&[10; 2]).of(Cause::SendBuffer), 0);
        assert!(beside_receiver(&[10; 8]).of(Cause::SendBuffer) > 0);
    }

    #[test]
    fn what_is_too_short_to_tell_is_as_what_was_before() {
        let by = beside_receiver(&[10, 20, 40, 80]);
        assert_eq!(by.of(Cause::SlowStart), by.sum());
    }

    /// A window of 6 segments is used up in each round trip, beside the receiver. The segments that are timed are the first and the last of
    /// their flights in turns: 11 segments from one to the next in a round trip, then 7 in two.
    #[test]
    fn a_window_is_full_although_more_seems_to_be_in_flight_and_then_less() {
        let (mut t, path) = (Transfer::default(), TAP_AT_RECEIVER);
        let trip = path.round_trip();
        t.measured = Some(0);
        for twice in 0..6u32 {
            let (flight, end) = (u64::from(twice) * 3 * trip, 18_000 * twice);
            for (time, end) in [(flight, end + 1_000), (flight + trip + 3 * MS, end + 12_000)] {
                t.sample(time + 100_000, &rtt(100_000, end, 1_000), Some(6_000), &path);
            }
        }
        let to = 16 * trip;
        let by = t.settle(0, to, to, &path).by;
        assert!(by.of(Cause::ReceiverWindow) > to - 2 * trip, "{by:?}");
    }

    /// Trips of 10 and 20 segments in turns, which nothing explains; but segments that a slow link before the tap spaced show that it was
    /// busy, and a window with room that the sender held back itself.
    #[test]
    fn what_goes_up_and_down_is_unknown_but_for_a_slow_link_and_a_paced_sender() {
        let charged = |apart: u64, window: Option<u32>| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.measured = Some(0);
            let (mut so_far, mut seq) = (None, 0);
            for trip in 0..12 {
                let begin = trip * 100 * MS;
                let pieces = [5, 10][trip as usize % 2];
                for piece in 0..pieces {
                    let time = begin + piece * 90 * MS / pieces;
                    let b = Block {
                        flight: 4_000,
                        packets: 2,
                        ..block(time, time + apart, seq, 2_000)
                    };
                    t.block(BlockEnd::Limit as u8, &b, so_far, None, &path);
                    seq += b.bytes;
                    so_far = Some(SoFar {
                        first: 0,
                        last: time + apart,
                        bytes: u64::from(seq),
                    });
                }
                t.sample(begin + 95 * MS, &rtt(60 * MS, seq, 4_000), window, &path);
            }
            let by = t.settle(0, 1_195 * MS, 1_200 * MS, &path).by;
            [Cause::Unknown, Cause::Bandwidth, Cause::CongestionWindow].map(|cause| by.of(cause) > 300 * MS)
        };
        assert_eq!(charged(10_000, None), [true, false, false]);
        assert_eq!(charged(MS, None), [false, true, false]);
        assert_eq!(charged(10_000, Some(400_000)), [false, false, true]);
    }

    /// Pieces of 10 segments from a link before the tap, in round trips of 100 ms after a loss: without a pause, with pauses half of
    /// the time, and twice as fast each time, as a sender does that paces in slow start.
    #[test]
    fn a_slow_link_without_a_pause_is_busy_whatever_the_congestion_window_does() {
        let busy = |spacing: fn(u32) -> u64, share: u64| {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            (t.measured, t.loss_flight) = (Some(0), 1_000_000);
            let (mut so_far, mut seq) = (None, 0);
            for trip in 0..5u32 {
                let (begin, apart) = (u64::from(trip) * 100 * MS, spacing(trip));
                let pieces = 10 * MS / apart;
                for piece in 0..pieces {
                    let first = begin + piece * 10 * apart;
                    let last = first + 9 * apart * share / 2;
                    let b = Block {
                        flight: 10_000,
                        ..block(first, last, seq, 10_000)
                    };
                    t.block(BlockEnd::Limit as u8, &b, so_far, None, &path);
                    seq += b.bytes;
                    so_far = Some(SoFar {
                        first: 0,
                        last,
                        bytes: u64::from(seq),
                    });
                }
                t.sample(begin + 100 * MS - 1, &rtt(60 * MS, seq, 10_000), None, &path);
            }
            let by = t.settle(0, 499 * MS, 500 * MS, &path).by;
            (by.of(Cause::Bandwidth) / MS, by.of(Cause::CongestionWindow) / MS)
        };
        assert_eq!(busy(|_| MS, 2), (499, 0));
        assert_eq!(busy(|_| MS, 1), (0, 499));
        assert_eq!(busy(|trip| (4 * MS) >> trip, 2), (0, 499));
    }

    /// The ACK of a whole flight came before its receiver had read it.
    #[test]
    fn a_flight_was_held_by_the_window_it_was_sent_under() {
        for (before, held) in [(80_000, false), (42_000, true)] {
            let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
            t.measured = Some(0);
            t.sample(160 * MS, &rtt(60 * MS, 10_000, 0), Some(before), &path);
            t.sample(260 * MS, &rtt(60 * MS, 50_000, 0), Some(42_000), &path);
            let by = t.settle(160 * MS, 260 * MS, 260 * MS, &path).by;
            assert_eq!(by.of(Cause::ReceiverWindow) > 0, held, "{before}");
        }
    }

    /// 20,000 bytes in flight, and then the 15,000 that were left: the last ACK tells of both, but the segment that was timed is the first
    /// of those 15,000.
    #[test]
    fn a_trip_holds_no_more_than_what_was_sent_in_it() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.measured = Some(0);
        let window = Some(35_000);
        t.sample(160 * MS, &rtt(60 * MS, 1_000, 9_000), window, &path);
        t.sample(260 * MS, &rtt(60 * MS, 11_000, 19_000), window, &path);
        let last = Rtt {
            ack: 45_000,
            ..rtt(60 * MS, 31_000, 0)
        };
        t.sample(360 * MS, &last, window, &path);
        let by = t.settle(100 * MS, 301 * MS, 361 * MS, &path).by;
        assert_eq!(by.of(Cause::ReceiverWindow), 0);
        assert_eq!(t.peak, 20_000);
    }

    /// The end of the transfer before was sent again, so that no sample tells of its ACK.
    #[test]
    fn a_transfer_was_not_acknowledged_before_it_began() {
        let (mut t, path) = (Transfer::default(), TAP_BETWEEN);
        t.measured = Some(0);
        t.block(
            BlockEnd::Push as u8,
            &block(100 * MS, 101 * MS, 300_000, 10_000),
            None,
            None,
            &path,
        );
        t.sample(160 * MS, &rtt(60 * MS, 310_000, 0), None, &path);
        t.settle(100 * MS, 160 * MS, 160 * MS, &path);
        assert_eq!(t.peak, 10_000);
    }
}
