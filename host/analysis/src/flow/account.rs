//! Whose time a transaction took.

use super::{Flow, Pool};
use crate::given::Given;
use crate::limits::{Charged, Tail};
use crate::losses::Again;
use crate::queues::Wait;
use crate::shares::{Measure, Recovery, Tails, TimeShares};
use crate::turns::{Finished, Left};

impl Flow {
    /// A transaction is over: charge its transfers and say whose time it was. `next`: the first packet of the next one.
    pub fn account(&mut self, done: &mut Finished, next: u64, given: Given, pool: &mut Pool) -> TimeShares {
        // Without a link, segments are not asked for, which are further away.
        let m = if given.link.is_none() {
            self.trips(given)
        } else {
            self.measure(given)
        };
        if let Some(gap) = done.server.filter(|_| self.is_unsure(0, &m)) {
            // The way to the server and back is in it, as long as the shortest sample at most.
            let most = self.at_most(0).map_or(gap, |most| most.min(gap));
            done.wait = Some(Wait::or(done.wait, 0, most));
        }
        let [asked, answered] = when(done, next);
        let [request_tail, mut tail] = self.tails(done, [asked, answered], next, &m, given);
        let mut request = self.transfer(0, asked, next, given, pool);
        let mut response = self.transfer(1, answered, next, given, pool);
        if done.missed.is_some() {
            // All that it took may have been the client's.
            done.wait = Some(Wait::or(done.wait, 0, u64::MAX));
        }
        let since_previous = done.client.or(done.missed.filter(|gap| *gap > 0));
        let before = since_previous.or_else(|| self.since_setup(done));
        let (recovered, filled, doubtful) = self.recovery(done, (asked.1, answered.1), next, &m);
        // Who asks next had to wait for what came again, or for nothing.
        tail.uncertain = tail.uncertain.max(doubtful);
        if next == u64::MAX {
            let (s, from, charged) = match done.response {
                Some(_) => (1, answered.1, &mut response),
                None => (0, asked.1, &mut request),
            };
            if let Some(stall) = self.stall(s, from.saturating_add(recovered[1]), pool) {
                charged.get_or_insert_default().join(&stall);
            }
        }
        done.note_pauses(request.as_ref(), recovered[1]);
        let inferred = [self.inferred(0, request.as_ref()), self.inferred(1, response.as_ref())];
        let under_way = |charged: &Option<Charged>| charged.as_ref().map_or(0, Charged::under_way);
        let late = tail.late;
        let tail = tail.behind(under_way(&response));
        let left = Left {
            recovered: recovered[1],
            filled: filled[1],
            tail,
        };
        let left = self.turn.as_mut().map_or(left, |turn| turn.leave(left));
        let again = match before.and(done.request_start()) {
            Some(at) if self.was_late(0, at, done.request_time) => Again::Maybe,
            Some(at) => self.came_again(0, at, done.request_time),
            None => Again::No,
        };
        let was_late = |_: &u64| self.was_late(1, done.response_start(), done.response_time);
        if let Some(gap) = done.server.filter(was_late) {
            done.wait = Some(Wait::or(done.wait, m.to_server.unwrap_or(0), gap));
        }
        let recovery = Recovery {
            asked_again: again == Again::Yes,
            answer: self.behind_fin(done),
            request: recovered[0],
            end: recovered[1],
            before: left.recovered,
        };
        let mut tails = Tails {
            request: request_tail.behind(under_way(&request)),
            // Who asked before all of it had come did not wait for it.
            before: if done.overlapped { Tail::default() } else { left.tail },
        };
        if tails.request.uncertain > 0 {
            done.wait = Some(Wait::or(done.wait, m.to_server.unwrap_or(0), tails.request.uncertain));
        }
        if let (Some(own), Some(wait)) = (m.to_server, done.wait) {
            tails.request = tails.request.queued(wait, own);
        }
        // Who did not wait for the response waited in no queue with it. Where the bandwidth is given, the bytes tell when its end came.
        let by_bytes = given.link.is_some() && tails.before.late > 0;
        let client_wait = done.client_wait.filter(|_| !done.overlapped && !by_bytes);
        if let (Some(own), Some(wait)) = (m.to_client, client_wait) {
            tails.before = tails.before.queued(wait, own);
        }
        if let Some(limits) = self.extras.limits_mut() {
            let [sent, received] = &mut limits.sides;
            let trip = m.round_trip().unwrap_or(0);
            // The request was there when it was answered.
            let most = done.server.unwrap_or(0).saturating_sub(m.to_server.unwrap_or(0));
            sent.carried(done.request_bytes, trip.saturating_add(tails.request.late.min(most)));
            received.carried(done.response_bytes, trip.saturating_add(late));
        }
        if let Some(gap) = before.filter(|_| done.was_asked()) {
            let gap = gap.saturating_sub(left.recovered);
            // The way to the client and back is in it, where it is not known.
            let most = self.at_most(1).map_or(gap, |most| most.min(gap));
            let unknown = if self.is_unsure(1, &m) { most } else { 0 };
            let again = if again <= Again::IfCounted { 0 } else { gap };
            let queue = client_wait.map_or(0, |wait| wait.uncertain.into());
            let uncertain = tails.before.uncertain.max(unknown).max(again).max(queue);
            done.client_uncertain = Some(uncertain).filter(|ns| *ns > 0);
        }
        done.doubt_pauses(request.as_ref(), response.as_ref(), m.to_server);
        let time = if next == u64::MAX && self.is_one_sided() {
            // What was seen of one side alone is no gap between anything.
            (done.wait, done.client_uncertain) = (None, None);
            TimeShares::unknown()
        } else {
            TimeShares::transaction(done, before, request.as_ref(), response.as_ref(), &recovery, &tails, &m)
        };
        done.inferred = time.receiver.min(inferred[0].saturating_add(inferred[1]));
        done.go_on(left.filled, filled[0], filled[1]);
        if let Some(turn) = &mut self.turn {
            turn.account(&time);
        }
        time
    }

    /// What of a request and of its response had not arrived when they had passed the tap.
    fn tails(
        &self,
        done: &Finished,
        [asked, answered]: [(u64, u64); 2],
        next: u64,
        m: &Measure,
        given: Given,
    ) -> [Tail; 2] {
        if done.response.is_none() {
            return Default::default();
        }
        let until = next.min(self.last);
        [
            self.tail(0, asked, done, done.response_time, m, given),
            self.tail(1, answered, done, until, m, given),
        ]
    }

    /// What transactions are measured with.
    pub fn measure(&self, given: Given) -> Measure {
        Measure {
            segment: self.setup.segment(),
            ..self.trips(given)
        }
    }

    /// Where nothing of its own tells the round trip to the server (a handshake with repeats, and responses that ended all others), what
    /// others had, ns.
    fn others_trip(&self) -> Option<u64> {
        let others = self.extras.trouble()?.to_server?;
        Some(self.at_most(0).map_or(others, |most| most.min(others)))
    }

    pub(super) fn trips(&self, given: Given) -> Measure {
        let [to_server, to_client] = [self.trip(0).or_else(|| self.others_trip()), self.trip(1)];
        // No sample is shorter than the path, whoever ended it.
        let rest = |side: usize, seen| {
            let rest = given.rest(seen)?;
            Some(self.at_most(side).map_or(rest, |most| most.min(rest)))
        };
        Measure {
            to_client: to_client.or_else(|| rest(1, to_server)),
            to_server: to_server.or_else(|| rest(0, to_client)),
            given,
            ..Measure::default()
        }
    }

    /// Whether the round trip to the receiver of `side`'s data is not known: of what was given neither, where a sample was shorter.
    fn is_unsure(&self, side: usize, m: &Measure) -> bool {
        let trip = [m.to_server, m.to_client][side & 1];
        let is_sample = || self.trip(side).is_none() && self.at_most(side) == trip;
        trip.is_none() || m.given.trip.is_some() && is_sample()
    }

    /// The waits for what was sent again, or late, behind the last blocks of a request and a response, which ended at `asked` and `answered`;
    /// and until what filled a gap there; and behind the response's, what may have been such a wait. Behind the request's that makes the server's time uncertain.
    fn recovery(
        &self,
        done: &mut Finished,
        (asked, answered): (u64, u64),
        next: u64,
        m: &Measure,
    ) -> ([u64; 2], [u64; 2], u64) {
        let Some(trouble) = self.extras.trouble() else {
            return Default::default();
        };
        let since = |from: u64, time: Option<u64>| time.map_or(0, |time| time - from);
        let ends = done.ends;
        // How late an ACK came, beside the way there and back.
        let beyond = |from: u64, acked: Option<u64>, trip: Option<u64>| {
            let wait = acked
                .zip(trip)
                .map(|(acked, trip)| acked.saturating_sub(trip.saturating_add(from)));
            wait.unwrap_or(0)
        };
        let late = |s: usize, from: u64, until: u64, trip: Option<u64>| {
            let whole = trouble.losses[s].whole_at(ends[s]).filter(|acked| *acked < until);
            beyond(from, whole, trip)
        };
        let [mut request, mut filled] = [0; 2];
        let (from, tail) = if done.response.is_some() {
            let repeats = trouble.losses[0].repeats(asked, done.response_time);
            (request, filled) = (since(asked, repeats.needed), since(asked, repeats.filled));
            // What waited in a queue was not late.
            if done.wait.is_none_or(|wait| !wait.is_queue) {
                request = request.max(late(0, asked, done.response_time, m.to_server));
            }
            // On which way it was late is not known.
            let held = beyond(asked, repeats.late_ack, m.to_server);
            request = request.max(held);
            let doubt = since(asked, repeats.doubtful).max(held);
            if doubt > 0 {
                done.wait = Some(Wait::or(done.wait, self.server_rtt().unwrap_or(0), doubt));
            }
            (answered, trouble.losses[1].repeats(answered, next))
        } else {
            (asked, trouble.losses[0].repeats(asked, next))
        };
        // At the end nothing else came, whether it was needed or not.
        let waited = tail.needed.max(tail.doubtful.filter(|_| next == u64::MAX));
        let response = done.response.map_or(0, |_| late(1, answered, next, m.to_client));
        // At the end nobody goes on.
        let heard = tail.late_ack.filter(|_| done.response.is_some() && next != u64::MAX);
        let held = beyond(answered, heard, m.to_client);
        let doubtful = since(from, tail.doubtful).max(held);
        // What never came was waited for until one side gave up.
        let s = usize::from(done.response.is_some());
        let lacked = if trouble.losses[s].never_came() {
            done.gave_up.saturating_sub(from)
        } else {
            0
        };
        (
            [request, since(from, waited).max(response).max(lacked).max(held)],
            [filled, since(from, tail.filled)],
            doubtful,
        )
    }

    /// How long the response had been sent already when the first of it passed, ns: the server's FIN had passed before.
    fn behind_fin(&self, done: &Finished) -> u64 {
        let behind = self.extras.trouble().and_then(|trouble| trouble.losses[1].behind_fin);
        let fin = behind.filter(|(at, _)| *at == done.response_start() && done.response.is_some());
        fin.map_or(0, |(_, fin)| done.response_time.saturating_sub(fin))
    }
}

/// When the first and the last packet of a request and of its response passed the tap. What crosses is charged to the response, and a response
/// ends where the next request begins.
fn when(done: &Finished, next: u64) -> [(u64, u64); 2] {
    let request_end = done.request_time.saturating_add(done.request);
    let request_end = match done.response {
        Some(_) => request_end.min(done.response_time.max(done.request_time)),
        None => request_end,
    };
    let response_end = done.response_time.saturating_add(done.response.unwrap_or(0));
    let response_end = response_end.min(next).max(done.response_time);
    [(done.request_time, request_end), (done.response_time, response_end)]
}

impl Finished {
    /// The longest pause in the request, and whether its end waits for an answer; `recovered`: how long its end took to come again, ns.
    fn note_pauses(&mut self, request: Option<&Charged>, recovered: u64) {
        let paused = request
            .filter(|_| !self.overlapped)
            .map_or(0, |charged| charged.longest);
        self.paused_us = u32::try_from(paused / 1_000).unwrap_or(u32::MAX);
        // Where its end came again, whether it arrived is not known; and who has gone on after pauses like it does not wait for an answer.
        let is_wait = |wait: &u64| recovered == 0 && *wait > paused.saturating_mul(2);
        self.unanswered = self.unanswered.filter(is_wait);
    }

    /// Something else may have made the pauses in it that are charged to applications.
    fn doubt_pauses(&mut self, request: Option<&Charged>, response: Option<&Charged>, to_server: Option<u64>) {
        let [request, response] = [request, response].map(|charged| charged.map_or(0, |charged| charged.doubtful));
        if response > 0 {
            self.wait = Some(Wait::and(self.wait, to_server.unwrap_or(0), response));
        }
        if request > 0 {
            let other = self.client_uncertain.unwrap_or(0);
            self.client_uncertain = Some(other.saturating_add(request));
        }
    }
}
