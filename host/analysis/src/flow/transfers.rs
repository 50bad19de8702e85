//! What limits the transfers of a flow: its samples, blocks and EVENTs as the limits take them.

use weir_record::{Block, Event, Rtt, SINCE_DATA_NS, tcp_flag, what};

use super::{Flow, Pool};
use crate::ceilings::filled_window;
use crate::given::Given;
use crate::limits::{self, Charged, Flown, SoFar, Tail};
use crate::queues::SharedLink;
use crate::seq::before;
use crate::setup::Outcome;
use crate::shares::{self, Measure};
use crate::turns::Finished;

/// Segments in flight, or round trips of a direction, from which on a transfer is watched.
const FLIGHT: u32 = 4;
const TRIPS: u32 = 6;

/// Largest MSS that a network carries (jumbo frames); that of a loopback interface is seven times as large.
const JUMBO: u32 = 9_216;

impl Flow {
    /// Largest window that a side advertised in bytes, in its SYN or later; 0: not known.
    pub(super) fn largest_window(&self, side: usize) -> u32 {
        let Some(shift) = self.setup.scale(side) else { return 0 };
        let later = self.windows[side].bytes(shift).map_or(0, |(_, most)| most);
        u32::try_from(later)
            .unwrap_or(u32::MAX)
            .max(self.setup.first_window(side))
    }

    /// What the path tells of transfers of `side`.
    pub fn limit_path(&self, side: usize, given: Given) -> limits::Path {
        let window = self.largest_window(1 - (side & 1));
        // Half the largest window that was offered is as good as a segment (RFC 1122 4.2.3.4), and Linux sends no larger ones: on a
        // loopback interface a window has hardly room for one.
        let most = if window > 0 { window / 2 } else { u32::MAX };
        let [base, other] = [side, 1 - (side & 1)].map(|side| self.smallest_trip(side));
        let full = self.setup.payload();
        let payload = self
            .extras
            .limits()
            .map_or(full, |limits| limits.sides[side & 1].cut(full));
        limits::Path {
            segment: (self.setup.segment() - (full - payload)).min(most),
            payload: payload.min(most),
            mss: if self.setup.segment() <= JUMBO {
                self.setup.segment()
            } else {
                0
            },
            base: base.or_else(|| given.rest(other)),
            other: other.or_else(|| given.rest(base)).unwrap_or(0),
            exact: self.setup.outcome == Outcome::Ok,
            window,
            inferred: filled_window(self, 1 - (side & 1)),
            link: given.link,
            from_server: side & 1 == 1,
            told: self.setup.agreed_mss().is_some(),
        }
    }

    /// Smallest round trip between the tap and the receiver of a side's data, or more, ns. To a server behind a slow link all that this
    /// connection has seen may have waited in its queue; then it is that of others.
    fn smallest_trip(&self, side: usize) -> Option<u64> {
        let likely = || self.extras.trouble()?.handshake.likely(side & 1, &self.setup);
        let own = self.at_most(side).or_else(likely)?;
        let others = self.extras.limits().and_then(|limits| limits.to_server);
        let waited = |others: &u64| side & 1 == 0 && own > others.saturating_add(limits::SLACK);
        Some(others.filter(waited).unwrap_or(own))
    }

    /// What is acknowledged at once came late: a slow link, or a queue, may be behind the tap.
    pub(super) fn waited(&self, side: usize, rtt: &Rtt) -> bool {
        let least = self.at_most(side);
        let is_late = least.is_some_and(|least| rtt.rtt > least.saturating_add(limits::SLACK));
        is_late && limits::is_prompt(rtt.rtt, rtt.flight, rtt.ack == rtt.seq_end, self.setup.payload(), least)
    }

    /// A round trip of `side`'s data that is part of a transfer; `goes_on`: of a long one, of which no block tells yet.
    pub fn limit_sample(&mut self, side: usize, time: u64, rtt: &Rtt, goes_on: bool, given: Given, pool: &mut Pool) {
        let s = side & 1;
        let segment = self.setup.segment();
        // Most transfers are one flight, and come over no slow link.
        let is_short = || rtt.flight < FLIGHT * segment && self.rtt.samples(s) < TRIPS;
        if self.extras.limits().is_none() && !goes_on && is_short() && !self.waited(s, rtt) {
            return;
        }
        let path = self.limit_path(s, given);
        let scale = self.setup.scale(1 - s);
        let window = scale.map(|shift| u32::from(rtt.window) << shift);
        let is_marked = rtt.tcp_flags & tcp_flag::ECE != 0 && self.setup.has_ecn();
        let transfer = &mut self.extras.make_limits(pool).sides[s];
        transfer.sample(time, rtt, window, &path);
        if is_marked {
            transfer.marked(&path);
        }
    }

    /// The first of `side`'s data that echoes an ACK, if a transfer is under way of which more is known.
    pub fn limit_echo(&mut self, side: usize, time: u64, rtt: &Rtt, given: Given) {
        if self.extras.limits().is_some() {
            let path = self.limit_path(side, given);
            if let Some(limits) = self.extras.limits_mut() {
                limits.sides[side & 1].echoed(time, rtt, &path);
            }
        }
    }

    /// What passed of `side`'s data between the last two segments that were timed, and whether it was as fast as before.
    pub fn piece(&self, side: usize) -> Option<(Block, bool)> {
        self.extras.limits()?.sides[side & 1].piece(self.setup.payload())
    }

    /// The last window that the receiver had advertised at the end of a block of `side`, bytes, if it is known.
    pub fn window(&self, side: usize, b: &Block) -> Option<u32> {
        let scale = self.setup.scale(1 - (side & 1)).unwrap_or(0);
        (b.known & 2 != 0).then(|| u32::from(b.window) << scale)
    }

    /// A block of `side`; `before`: what there is before it in the same transfer, and what is known of a slow link that it came over.
    pub fn limit_block(
        &mut self,
        side: usize,
        code: u8,
        b: &Block,
        (tail, shared): (Option<SoFar>, Option<SharedLink>),
        given: Given,
        pool: &mut Pool,
    ) {
        let s = side & 1;
        let slow = b.last.saturating_sub(b.first) > limits::SLACK
            || tail.is_some_and(|tail| b.first.saturating_sub(tail.last) > limits::SHORTEST_PAUSE);
        let is_first = self.extras.limits().is_none();
        if is_first && !slow {
            return;
        }
        // Nothing was noted of it when it came: of most transfers it is the end.
        let heard = if is_first { self.rtt.last_whole(s) } else { None };
        if let Some(shared) = shared {
            self.extras.make_limits(pool).to_server = Some(shared.least);
        }
        let scale = self.setup.scale(1 - s);
        if let Some(window) = self.window(s, b) {
            let payload = self.setup.payload();
            self.extras.make_limits(pool).sides[s].learn_cut(b, tail, window, payload);
        }
        let path = self.limit_path(s, given);
        // A block as long as the unscaled window was cut by it.
        let fills = u32::from(b.window) == b.bytes && b.bytes < path.payload;
        let transfer = &mut self.extras.make_limits(pool).sides[s];
        let unscaled = transfer.fills_field(b, tail.map(|tail| tail.last), fills, scale, &path);
        let scale = if unscaled { Some(0) } else { scale }.filter(|_| b.known & 2 != 0);
        let window = scale.map(|shift| u32::from(b.window) << shift);
        transfer.waited_since(b, shared.and_then(|shared| shared.busy_since), tail);
        if let Some(ack) = heard {
            transfer.heard_before(ack, b, tail, window, &path);
        }
        transfer.block(code, b, tail, window, &path);
    }

    /// An EVENT: windows and losses. `lost`: a segment of `side` was sent again.
    pub fn limit_event(&mut self, side: usize, e: &Event, lost: bool, time: u64, given: Given, pool: &mut Pool) {
        let s = side & 1;
        let window = what::ZERO_WINDOW | what::SMALL_WINDOW | what::WINDOW_OPEN;
        let heard = what::DUP_ACK | what::SACK;
        let of_interest = window | heard | what::WINDOW_FULL | what::GAP;
        if self.setup.is_done() && (lost || e.what & of_interest != 0) && e.what & what::WILD == 0 {
            let (own, other) = (self.limit_path(s, given), self.limit_path(1 - s, given));
            let limits = self.extras.make_limits(pool);
            let [first, second] = &mut limits.sides;
            let (sent, received) = if s == 0 { (first, second) } else { (second, first) };
            let window = self.setup.scale(s).map(|shift| u32::from(e.window) << shift);
            // Small by its MSS, a window may hold nobody back all the same.
            let is_zero = e.what & what::ZERO_WINDOW != 0;
            let is_small = e.what & what::SMALL_WINDOW != 0 && window.is_none_or(|window| window < other.segment);
            if is_zero || is_small {
                received.close(time, is_zero, &other);
            } else if e.what & (what::SMALL_WINDOW | what::WINDOW_OPEN) != 0 {
                received.open(time, &other);
            }
            if e.what & heard != 0 && e.what & what::DSACK == 0 {
                received.saw(time, e.ack, window);
                received.heard_of_gap(time, &other);
            }
            if e.what & what::WINDOW_FULL != 0 {
                let flight = e.seq.wrapping_add(e.length).wrapping_sub(e.acked);
                sent.full(time, flight, e.seq.wrapping_add(e.length));
            }
            if lost {
                if before(e.seq, e.acked) {
                    sent.again_unheard(time, e.seq, e.expected, &own);
                }
                sent.again(time, e.expected, e.expected.wrapping_sub(e.acked), &own);
                let silent = (e.what & what::IDLE_BEFORE == 0).then(|| u64::from(e.since_data) * SINCE_DATA_NS);
                sent.loss(silent, time, &own);
            } else if e.what & what::GAP != 0 {
                sent.gap(time, &own);
            }
        }
    }

    /// The flow ended while data of side `s` waited for a window that never opened, since `from`.
    pub(super) fn stall(&mut self, s: usize, from: u64, pool: &mut Pool) -> Option<Charged> {
        self.extras.trouble().filter(|trouble| trouble.closed[1 - s].unopened)?;
        let wait = self.last.saturating_sub(from).min(shares::LONGEST);
        let stall = Charged::one(limits::Cause::ZeroWindow, wait);
        self.extras.make_limits(pool).sides[s].total.join(&stall);
        if let Some(turn) = &mut self.turn {
            turn.stalled(s, wait);
        }
        Some(stall)
    }

    /// `None` of a transfer that took no time.
    pub(super) fn transfer(
        &mut self,
        s: usize,
        (from, to): (u64, u64),
        next: u64,
        given: Given,
        pool: &mut Pool,
    ) -> Option<Charged> {
        let to = to.min(from.saturating_add(shares::LONGEST));
        if self.extras.limits().is_none() && to == from {
            return None;
        }
        let path = self.limit_path(s, given);
        if self.extras.limits().is_none() && path.is_one_flight(to - from) {
            return Some(Charged::one(path.one_flight(), to - from));
        }
        let limits = self.extras.make_limits(pool);
        Some(limits.sides[s].settle(from, to, next, &path))
    }

    /// How late the end of a transfer came, which its receiver answered at `until`.
    pub(super) fn tail(
        &self,
        s: usize,
        (first, last): (u64, u64),
        done: &Finished,
        until: u64,
        m: &Measure,
        given: Given,
    ) -> Tail {
        let trip = [m.to_server, m.to_client][s & 1];
        let transfer = self.extras.limits().map(|limits| &limits.sides[s & 1]);
        let (Some(trip), false) = (trip, transfer.is_none() && given.link.is_none()) else {
            return Tail::default();
        };
        let flown = Flown {
            first,
            last,
            bytes: [done.request_bytes, done.response_bytes][s & 1],
            end: done.ends[s & 1],
            until,
        };
        Tail::new(transfer, &flown, trip, &self.limit_path(s, given))
    }

    /// See [`Finished::inferred`]: without the handshake no other window is known than the one that is filled.
    pub(super) fn inferred(&self, side: usize, charged: Option<&Charged>) -> u64 {
        match charged {
            Some(charged) if self.setup.scale(1 - (side & 1)).is_none() => charged
                .window()
                .saturating_add(charged.by.of(limits::Cause::SmallWindow)),
            _ => 0,
        }
    }
}
