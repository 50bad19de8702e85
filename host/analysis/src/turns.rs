//! Transactions from data blocks, without payload (`docs/src/transactions.md`): client blocks,
//! then server blocks until the client's next.

mod finished;
mod side;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::num::NonZeroU64;

use weir_record::{Block, BlockEnd};

use crate::limits::{SoFar, Tail};
use crate::queues::Wait;
use crate::resets::Ttl;
use crate::seq::{Range, before};
use crate::shares::TimeShares;
use crate::signature::{BlockList, Signature, StateNote};
pub use finished::{Finished, Kind};
pub(crate) use side::Responses;
use side::{Last, Response, Side, Splits};

/// Losses whose times are kept until it is known to which transaction they belong.
const LOSS_TIMES: usize = 8;
/// Bytes in flight from which on they are a transfer that goes on: two segments, which ask for an ACK at once (RFC 1122 4.2.3.2).
const TRANSFER: u32 = 2 * 1460;
/// An ack further than this behind the data is no ack of it.
const ACK_RANGE: u32 = 1 << 30;

/// What is known of the client's FIN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientFin {
    /// Time of the first; 0 = none.
    pub time: u64,
    /// Its acknowledgment number.
    pub ack: u32,
    /// Time of the first repeat; 0 = none.
    pub repeat: u64,
}

/// Seconds of finished transactions, summed up in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    pub request: u64,
    pub response: u64,
    pub answered: u32,
    /// Those of them whose data crossed.
    pub crossed: u32,
    /// The longest that a response was waited for, ms.
    pub longest_ms: u32,
}

/// What only connections with losses or probes have.
#[derive(Clone, Debug, Default)]
struct Trouble {
    loss_times: [u64; LOSS_TIMES],
    loss_len: u8,
    /// Losses of the transaction in progress whose times were given up.
    losses: u32,
    splits: [Splits; 2],
    /// Sequence number of a window probe's byte.
    probes: [Option<u32>; 2],
    /// The last time that the server acknowledged what had not been seen.
    unseen: Option<Unseen>,
    /// The request in progress was not seen.
    missed: bool,
}

/// The server acknowledged more of the client than was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseen {
    pub time: u64,
    /// The next byte of the client that was to be seen, if the record tells.
    pub from: Option<u32>,
    /// Its ACK.
    pub to: u32,
}

/// What the end of a transaction takes of the time until the next one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    /// From its last packet to its last repeat, ns.
    pub recovered: u64,
    /// From its last block to its last packet, which filled a gap, ns.
    pub filled: u64,
    /// How late its response came.
    pub tail: Tail,
}

/// A block before which nothing had passed for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    pub side: usize,
    /// Its first packet, TAI ns, and for how long nothing had passed, ns.
    pub at: u64,
    pub ns: u64,
    /// Round trips of the side's data that were known then.
    pub samples: u32,
}

/// What a flow has from the end of its first transaction, or its first trouble, on.
#[derive(Clone, Debug, Default)]
#[repr(C)] // what each block and what each transaction needs comes first
struct Past {
    trouble: Option<Box<Trouble>>,
    /// Last packet of the previous transaction's response; 0 = none.
    previous: u64,
    /// See [`Turn::leave`].
    left: Left,
    shares: Shares,
    finished: u32,
    /// Payload of the last request that was answered.
    asked: u32,
    /// See [`Finished::client_wait`] of the transaction in progress.
    client_wait: Option<Wait>,
    time: TimeShares,
    rest: Option<Rest>,
    /// TSval of the client's FIN, and when it passed, TAI ns.
    stamp: Option<(u32, NonZeroU64)>,
    /// Of each side's blocks, but those of the transaction in progress.
    ttls: [Ttl; 2],
}

/// The transaction in progress of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    request: Side,
    /// From the first response block on.
    response: Option<Box<Response>>,
    past: Option<Box<Past>>,
}

impl Turn {
    fn trouble(&self) -> Option<&Trouble> {
        self.past.as_deref()?.trouble.as_deref()
    }

    fn trouble_mut(&mut self) -> Option<&mut Trouble> {
        self.past.as_deref_mut()?.trouble.as_deref_mut()
    }

    fn make_trouble(&mut self) -> &mut Trouble {
        self.past.get_or_insert_default().trouble.get_or_insert_default()
    }

    /// Of a side's data.
    pub fn ttl(&self, side: usize) -> Ttl {
        let mut ttl = self.past.as_ref().map_or_else(Ttl::default, |past| past.ttls[side & 1]);
        match (side & 1, &self.response) {
            (0, _) => ttl.join(self.request.ttl),
            (_, Some(response)) => ttl.join(response.side.ttl),
            (_, None) => {}
        }
        ttl
    }

    /// The client's FIN had this TSval.
    pub fn set_stamp(&mut self, tsval: u32, time: u64) {
        self.past.get_or_insert_default().stamp = Some(tsval).zip(NonZeroU64::new(time));
    }

    /// See [`Self::set_stamp`].
    pub fn stamp(&self) -> Option<(u32, u64)> {
        let (tsval, time) = self.past.as_ref()?.stamp?;
        Some((tsval, time.get()))
    }

    /// Last packet of the previous transaction's response.
    pub fn previous(&self) -> Option<u64> {
        let previous = self.past.as_ref()?.previous;
        (previous != 0).then_some(previous)
    }

    /// Brings the transaction in progress into the cache.
    pub const fn warm(&self) -> u64 {
        self.request.first
    }

    /// Whether what begins at `seq` goes on behind a segment without PSH, which passed at `passed` (0: more than a second ago): the sender had
    /// more queued then (RFC 9293 3.9.1.2: its last queued segment has PSH).
    pub fn goes_on(&self, side: usize, seq: u32, passed: u64) -> bool {
        let own = self.in_progress(side).filter(|own| !own.blocks.is_empty());
        let peer = match side {
            0 => self.response.as_ref().map_or(0, |response| response.side.last),
            _ => self.request.last,
        };
        match own {
            Some(own) if own.end == seq => own.last_block == Last::Open,
            Some(own) => before(own.end, seq),
            None => passed > peer,
        }
    }

    /// What a new block of a side would be part of.
    fn in_progress(&self, side: usize) -> Option<&Side> {
        match (side, &self.response) {
            (0, None) => Some(&self.request),
            (0, Some(_)) => None,
            (_, response) => response.as_ref().map(|response| &response.side),
        }
    }

    /// Sums over the transactions that are over.
    pub fn shares(&self) -> Shares {
        self.past.as_ref().map_or_else(Shares::default, |past| past.shares)
    }

    /// Whose time the transactions took that are over.
    pub fn time(&self) -> TimeShares {
        self.past.as_ref().map_or_else(TimeShares::default, |past| past.time)
    }

    /// Replace what the end of the transaction that is over takes of the time behind it; returns that of the one before.
    pub fn leave(&mut self, left: Left) -> Left {
        let past = self.past.as_deref_mut();
        past.map_or_else(Left::default, |past| std::mem::replace(&mut past.left, left))
    }

    /// The transfer that was over for want of more packets went on for so long, ns.
    pub fn stalled(&mut self, side: usize, ns: u64) {
        let shares = &mut self.past.get_or_insert_default().shares;
        let transfers = if side == 0 {
            &mut shares.request
        } else {
            &mut shares.response
        };
        *transfers = transfers.saturating_add(ns);
    }

    /// Enter whose time a finished transaction took.
    pub fn account(&mut self, time: &TimeShares) {
        self.past.get_or_insert_default().time.add(time);
    }

    /// A request of `bytes` against the last that was answered, or equal where none was. An answer was due to one of equal length: others may
    /// be a notice, as TLS and HTTP/2 have them.
    pub fn against_answered(&self, bytes: u64) -> Ordering {
        let past = self.past.as_ref().filter(|past| past.shares.answered > 0);
        past.map_or(Ordering::Equal, |past| bytes.cmp(&u64::from(past.asked)))
    }

    /// What a new block of a side would follow in the same transfer.
    pub fn tail(&self, side: usize) -> Option<SoFar> {
        let own = self.in_progress(side).filter(|own| !own.blocks.is_empty());
        own.map(|own| SoFar {
            first: own.first,
            last: own.last,
            bytes: own.blocks.bytes(),
        })
    }

    /// A block ended. Returns the transaction that it ended, if it is the client's next request.
    pub fn block(
        &mut self,
        side: usize,
        code: u8,
        b: &Block,
        fin: impl FnOnce() -> ClientFin,
        spare: &mut Responses,
    ) -> Option<(Finished, Signature)> {
        if b.bytes == 0 {
            return None;
        }
        let cause = BlockEnd::from_u8(code);
        let (mut goes_on, mut splits) = (false, None);
        if let Some(trouble) = self.trouble_mut() {
            // The byte of a probe is data, but the sender's block did not end with it.
            let probe = trouble.probes[side & 1].take();
            goes_on = b.bytes == 1 && probe == Some(b.seq);
            splits = Some(trouble.splits[side & 1]);
        }
        if side == 1 {
            let done = self.missed_request(b, fin, spare);
            let on_way = if self.request.blocks.is_empty() {
                0
            } else {
                unacknowledged(b, self.request.end)
            };
            self.request.overlapped |= on_way > 0;
            let heard = self.heard(b);
            let response = self.response.get_or_insert_with(|| spare.take());
            if response.side.blocks.is_empty() {
                response.heard = heard;
            }
            response.side.amid |= response.side.blocks.is_empty() && on_way >= TRANSFER;
            response.side.add(b, cause, goes_on, splits);
            return done;
        }
        let mut done = None;
        let late;
        let b = match self.end_unseen(b) {
            0 => b,
            bytes if bytes >= b.bytes => return None,
            bytes => {
                late = Block {
                    seq: b.seq.wrapping_add(bytes),
                    bytes: b.bytes - bytes,
                    ..*b
                };
                &late
            }
        };
        if let Some(response) = &self.response {
            // The client sent this before the response had reached it.
            let on_way = unacknowledged(b, response.side.end);
            self.request.overlapped |= on_way > 0;
            done = Some(self.finish(fin(), Some(b.first), spare));
            self.request.overlapped = on_way > 0;
            self.request.amid = on_way >= TRANSFER;
        }
        self.request.add(b, cause, goes_on, splits);
        done
    }

    /// How far the server had received the request when it began the response whose first block is `b`; None where that tells nothing new. A block
    /// of several packets has the ACK of the last.
    fn heard(&self, b: &Block) -> Option<u32> {
        let told = self.trouble().and_then(|trouble| trouble.unseen);
        let told = told.filter(|told| (self.request.first..=b.first).contains(&told.time));
        let own = (b.packets == 1 && b.known & 1 != 0).then_some(b.ack);
        own.or(told.map(|told| told.to))
            .filter(|ack| !self.request.blocks.is_empty() && behind(*ack, self.request.end) > 0)
    }

    /// The server acknowledged more than was seen.
    pub fn acked_unseen(&mut self, unseen: Unseen) {
        self.make_trouble().unseen = Some(unseen);
    }

    /// Behind all of the response so far, or before any request, the server had acknowledged what the capture missed, and now it answers with `b`: that
    /// was a request. When it came is not known. (One byte may have been a FIN.)
    fn missed_request(
        &mut self,
        b: &Block,
        fin: impl FnOnce() -> ClientFin,
        spare: &mut Responses,
    ) -> Option<(Finished, Signature)> {
        let unseen = self.trouble_mut()?.unseen.filter(|unseen| unseen.time <= b.first)?;
        let from = unseen.from?;
        let bytes = behind(unseen.to, from);
        let is_next = match &self.response {
            Some(response) => {
                unseen.time > response.side.last && (self.request.blocks.is_empty() || self.request.end == from)
            }
            None => self.request.blocks.is_empty(),
        };
        if bytes <= 1 || !is_next {
            return None;
        }
        let done = self
            .response
            .is_some()
            .then(|| self.finish(fin(), Some(unseen.time), spare));
        self.request = Side {
            first: unseen.time,
            last: unseen.time,
            end: from,
            ..Side::default()
        };
        self.request.unseen(bytes);
        let trouble = self.make_trouble();
        trouble.unseen = None;
        trouble.missed = true;
        done
    }

    fn is_missed(&self) -> bool {
        self.trouble().is_some_and(|trouble| trouble.missed)
    }

    /// So many bytes at the begin of the client's block `b` are the end of the request that was answered before: the capture missed them, or has
    /// them in another order. They are part of that request from now on.
    fn end_unseen(&mut self, b: &Block) -> u32 {
        if self.is_missed() && before(b.seq, self.request.end) {
            return behind(self.request.end, b.seq).min(b.bytes);
        }
        let heard = self.response.as_ref().and_then(|response| response.heard);
        match heard.filter(|_| b.seq == self.request.end) {
            Some(heard) => self.extend_request(behind(heard, b.seq).min(b.bytes)),
            None => 0,
        }
    }

    fn extend_request(&mut self, bytes: u32) -> u32 {
        if bytes > 0 {
            self.request.unseen(bytes);
        }
        bytes
    }

    /// Where the request in progress ends, if it was seen.
    pub fn request_end(&self) -> Option<u32> {
        (!self.request.blocks.is_empty()).then_some(self.request.end)
    }

    /// Last packet of a request that has no response yet.
    pub fn unanswered(&self) -> Option<u64> {
        self.waits().then_some(self.request.last)
    }

    /// Payload of the request in progress, as far as it was told.
    pub fn request_bytes(&self) -> u64 {
        self.request.blocks.bytes()
    }

    /// First packet of the response in progress.
    pub fn response_begin(&self) -> Option<u64> {
        self.response.as_ref().map(|response| response.side.first)
    }

    /// First packet of it.
    pub fn waits_since(&self) -> Option<u64> {
        self.waits().then_some(self.request.first)
    }

    /// The connection had rested before a block.
    pub fn set_rest(&mut self, rest: Rest) {
        self.past.get_or_insert_default().rest = Some(rest);
    }

    /// See [`Self::set_rest`]; the last one.
    pub fn rest(&self) -> Option<Rest> {
        self.past.as_ref()?.rest
    }

    /// Whether data of a side has begun to pass since then.
    pub fn has_sent_since(&self, side: usize, time: u64) -> bool {
        let last = match (side, &self.response) {
            (0, _) => self.request.last,
            (_, Some(response)) => response.side.last,
            (_, None) => self.past.as_ref().map_or(0, |past| past.previous),
        };
        last > time
    }

    /// There is a request that has no response yet.
    fn waits(&self) -> bool {
        let is_asked = self.response.is_none() && !self.request.blocks.is_empty();
        is_asked && !self.is_missed()
    }

    /// The server has the first request not from the SYN on which it came, but from a repeat at `time`.
    pub fn asked_anew(&mut self, time: u64) {
        let is_first = self.past.as_ref().is_none_or(|past| past.finished == 0);
        if is_first && self.response.is_none() {
            self.request.first = time;
            self.request.last = self.request.last.max(time);
        }
    }

    /// Of the response in progress: the last packet of its request, its own first, and what is known of a queue before it.
    pub fn responding(&self) -> Option<(u64, u64, Option<Wait>)> {
        let response = self.response.as_ref()?;
        Some((self.request.last, response.side.first, response.wait))
    }

    /// A queue stood behind the tap when the response began.
    pub fn waited(&mut self, wait: Wait) {
        if let Some(response) = &mut self.response {
            response.wait = Some(wait);
        }
    }

    /// A queue stood between the tap and the client before the request that has begun.
    pub fn client_waited(&mut self, wait: Wait) {
        self.past.get_or_insert_default().client_wait = Some(wait);
    }

    /// A segment with PSH that ends at `at` filled a gap: its block ended there.
    pub fn push_at(&mut self, side: usize, at: u32) {
        let own = if side == 0 {
            Some(&mut self.request)
        } else {
            self.response.as_mut().map(|response| &mut response.side)
        };
        if !own.is_some_and(|own| own.blocks.split(at)) {
            self.make_trouble().splits[side & 1].push(at);
        }
    }

    /// A one-byte probe into a closed window.
    pub fn probe(&mut self, side: usize, seq: u32) {
        self.make_trouble().probes[side & 1] = Some(seq);
    }

    /// A loss of either direction.
    pub fn loss(&mut self, time: u64) {
        let trouble = self.make_trouble();
        let n = usize::from(trouble.loss_len);
        if n == LOSS_TIMES {
            // The oldest is given to the transaction in progress.
            trouble.losses = trouble.losses.saturating_add(1);
            trouble.loss_times.rotate_left(1);
            trouble.loss_times[LOSS_TIMES - 1] = time;
        } else {
            trouble.loss_times[n] = time;
            trouble.loss_len += 1;
        }
    }

    /// The flow closed: the transaction in progress, if there is one. `end`: where the client's data ends, if its FIN tells and was acknowledged;
    /// `missed`: the last bytes of the server, if the client has them and the capture missed them.
    pub fn close(
        &mut self,
        fin: ClientFin,
        end: Option<u32>,
        missed: Option<Range>,
        spare: &mut Responses,
    ) -> Option<(Finished, Signature)> {
        let at = self.request.end;
        let asked = !self.request.blocks.is_empty();
        let response = self.response.as_ref().filter(|_| asked);
        if let Some((response, end)) = response.zip(end) {
            let sent = fin.time != 0 && fin.time <= response.side.first;
            let heard = if sent { Some(end) } else { response.heard };
            let bytes = heard.map_or(0, |heard| behind(heard, at)).min(behind(end, at));
            self.extend_request(bytes);
        }
        match (&mut self.response, missed) {
            (Some(response), Some(missed)) if response.side.end == missed.from => response.side.unseen(missed.len()),
            (response @ None, Some(missed)) if asked => {
                let side = &mut response.insert(spare.take()).side;
                side.end = missed.from;
                side.unseen(missed.len());
            }
            _ => {}
        }
        if self.request.blocks.is_empty() && self.response.is_none() {
            return None;
        }
        Some(self.finish(fin, None, spare))
    }

    /// End the transaction; `next` is the first packet of the next one.
    #[inline]
    fn finish(&mut self, fin: ClientFin, next: Option<u64>, spare: &mut Responses) -> (Finished, Signature) {
        let losses = self.settle_losses(next);
        let was_seen = !self
            .trouble_mut()
            .is_some_and(|trouble| std::mem::take(&mut trouble.missed));
        let request = &self.request;
        let none;
        let (response, wait) = match self.response.as_deref() {
            Some(response) => (&response.side, response.wait),
            None => {
                none = Side::default();
                (&none, None)
            }
        };
        let past = self.past.get_or_insert_default();
        past.finished = past.finished.saturating_add(1);
        past.ttls[0].join(request.ttl);
        past.ttls[1].join(response.ttl);
        let asked = !request.blocks.is_empty();
        // When one came that the capture missed is not known.
        let answered = !response.blocks.is_empty() && response.first != 0;
        let note = if asked {
            state_note(request, response, fin)
        } else {
            StateNote::None
        };
        let (request_time, request_last) = if asked && was_seen {
            (request.first, request.last)
        } else {
            (response.first, response.first)
        };
        let since = |time: u64| (past.previous != 0).then(|| time.saturating_sub(past.previous));
        let client = since(request.first).filter(|_| asked && was_seen);
        let missed = (!was_seen).then(|| since(response.first).unwrap_or(0));
        let done = Finished {
            index: past.finished,
            kind: if note == StateNote::None {
                Kind::Data
            } else {
                Kind::Close
            },
            request_time,
            request_bytes: request.blocks.bytes(),
            response_bytes: response.blocks.bytes(),
            client,
            request: request_last.saturating_sub(request_time),
            server: (asked && answered && was_seen).then(|| response.first.saturating_sub(request_last)),
            wait,
            response: answered.then(|| response.last.saturating_sub(response.first)),
            response_time: response.first,
            end: answered.then(|| response.last.saturating_sub(request_last)),
            unanswered: None,
            gave_up: 0,
            losses,
            segment: None,
            overlapped: request.overlapped,
            missed,
            client_wait: past.client_wait.take(),
            client_uncertain: None,
            paused_us: 0,
            inferred: 0,
            ends: [request.end, response.end],
            amid: [request.amid, response.amid],
        };
        let shares = &mut past.shares;
        shares.request = shares.request.saturating_add(done.request);
        shares.response = shares.response.saturating_add(done.response.unwrap_or(0));
        shares.answered = shares.answered.saturating_add(u32::from(asked && answered));
        shares.crossed = shares
            .crossed
            .saturating_add(u32::from(asked && answered && request.overlapped));
        let waited = u32::try_from(done.server.unwrap_or(0) / 1_000_000).unwrap_or(u32::MAX);
        shares.longest_ms = shares.longest_ms.max(waited);
        past.previous = if answered { response.last } else { 0 };
        if asked && answered {
            past.asked = done.request_bytes as u32;
        }
        let signature = Signature {
            request: std::mem::take(&mut self.request).blocks,
            note,
            response: self
                .response
                .take()
                .map_or_else(BlockList::default, |response| spare.give(response)),
        };
        (done, signature)
    }

    /// Losses up to the next request.
    fn settle_losses(&mut self, next: Option<u64>) -> u32 {
        let Some(trouble) = self.trouble_mut() else {
            return 0;
        };
        let n = usize::from(trouble.loss_len);
        let mine = trouble.loss_times[..n]
            .iter()
            .take_while(|t| next.is_none_or(|next| **t < next))
            .count();
        trouble.loss_times[..n].rotate_left(mine);
        trouble.loss_len = (n - mine) as u8;
        std::mem::take(&mut trouble.losses).saturating_add(mine as u32)
    }
}

/// How far a sequence number is behind another; 0: it is not.
fn behind(ack: u32, at: u32) -> u32 {
    let bytes = ack.wrapping_sub(at);
    if before(at, ack) && bytes < ACK_RANGE { bytes } else { 0 }
}

/// Bytes of its peer's data up to `end` that the sender of the block had not acknowledged.
fn unacknowledged(b: &Block, end: u32) -> u32 {
    let bytes = end.wrapping_sub(b.ack);
    if b.known & 1 != 0 && before(b.ack, end) && bytes < ACK_RANGE {
        bytes
    } else {
        0
    }
}

/// Whether the client's FIN, and its repeat, fell between the request and the response.
fn state_note(request: &Side, response: &Side, fin: ClientFin) -> StateNote {
    let answered = !response.blocks.is_empty();
    let precedes_response = |time: u64| {
        // With equal stamps the acknowledgment tells whether the client had seen the response.
        !answered || time < response.first || time == response.first && !before(response.blocks.start(), fin.ack)
    };
    if fin.time == 0 || fin.time < request.first || !precedes_response(fin.time) {
        StateNote::None
    } else if fin.repeat != 0 && precedes_response(fin.repeat) {
        StateNote::AlreadyHalfClosed
    } else {
        StateNote::HalfClosed
    }
}
