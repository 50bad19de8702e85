//! Transactions from data blocks, without payload (`docs/src/transactions.md`): client blocks,
//! then server blocks until the client's next.

use std::cmp::Ordering;

use weir_record::{Block, BlockEnd};

use crate::limits::{SoFar, Tail};
use crate::queues::Wait;
use crate::resets::Ttl;
use crate::seq::{Range, before};
use crate::shares::TimeShares;
use crate::signature::{BlockList, Signature, StateNote, is_inside};

/// Losses whose times are kept until it is known to which transaction they belong.
const LOSS_TIMES: usize = 8;
/// Block boundaries that were found before their block ended.
const SPLITS: usize = 4;
/// Bytes in flight from which on they are a transfer that goes on: two segments, which ask for an ACK at once (RFC 1122 4.2.3.2).
const TRANSFER: u32 = 2 * 1460;
/// An ack further than this behind the data is no ack of it.
const ACK_RANGE: u32 = 1 << 30;

/// Blocks of one side of a transaction.
#[derive(Clone, Debug, Default)]
struct Side {
    blocks: BlockList,
    first: u64,
    last: u64,
    /// Sequence number after the last block.
    end: u32,
    last_block: Last,
    /// Its sender had not acknowledged all that its peer had sent, or the other way round.
    overlapped: bool,
    /// It began while a transfer of its peer was under way.
    amid: bool,
    /// Of its blocks.
    ttl: Ttl,
}

/// What the last block of a side was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Whole,
    /// It goes on in the next one that starts where it ends.
    Open,
    /// No segment with PSH ended it.
    Turned,
}

impl Side {
    fn add(&mut self, b: &Block, cause: Option<BlockEnd>, goes_on: bool, splits: Option<Splits>) {
        if self.blocks.is_empty() {
            self.first = b.first;
        }
        self.last = self.last.max(b.last);
        let continues = self.last_block == Last::Open && self.end == b.seq;
        let mut seq = b.seq;
        let end = b.seq.wrapping_add(b.bytes);
        let mut first_piece = true;
        let mut piece = |to: u32, blocks: &mut BlockList| {
            let bytes = u64::from(to.wrapping_sub(seq));
            if first_piece && continues {
                blocks.extend(bytes);
            } else {
                blocks.push(seq, bytes);
            }
            first_piece = false;
            seq = to;
        };
        if let Some(splits) = splits {
            for at in splits.within(b) {
                piece(at, &mut self.blocks);
            }
        }
        piece(end, &mut self.blocks);
        self.end = end;
        self.last_block = match cause {
            _ if goes_on => Last::Open,
            Some(BlockEnd::Idle | BlockEnd::Limit) => Last::Open,
            Some(BlockEnd::Turn) => Last::Turned,
            _ => Last::Whole,
        };
        self.ttl.add(b.ttl);
    }

    /// So many bytes behind the last block were sent before its peer went on, and not seen.
    fn unseen(&mut self, bytes: u32) {
        if self.last_block != Last::Whole {
            self.blocks.extend(bytes.into());
        } else {
            self.blocks.push(self.end, bytes.into());
        }
        self.end = self.end.wrapping_add(bytes);
    }
}

/// Of the server.
#[derive(Clone, Debug, Default)]
struct Response {
    side: Side,
    /// The round trip behind the tap, when a queue stood.
    wait: Option<Wait>,
    /// What had been received of the request when it began.
    heard: Option<u32>,
}

/// Responses that are over, for reuse: the memory of one that was just read is near.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // the boxes are what is kept
pub(crate) struct Responses(Vec<Box<Response>>);

/// Boxes kept at most.
const POOLED: usize = 64;

impl Responses {
    fn take(&mut self) -> Box<Response> {
        self.0.pop().unwrap_or_default()
    }

    /// Returns the blocks.
    fn give(&mut self, mut response: Box<Response>) -> BlockList {
        let blocks = std::mem::take(&mut *response).side.blocks;
        if self.0.len() < POOLED {
            self.0.push(response);
        }
        blocks
    }
}

/// Sequence numbers at which a PSH is known that the engine's block did not show.
#[derive(Clone, Copy, Debug, Default)]
struct Splits {
    at: [u32; SPLITS],
    len: u8,
}

impl Splits {
    fn push(&mut self, at: u32) {
        let n = usize::from(self.len);
        if n == SPLITS {
            self.at.rotate_left(1);
            self.at[SPLITS - 1] = at;
        } else {
            self.at[n] = at;
            self.len += 1;
        }
    }

    /// Those inside the block, ascending.
    fn within(&self, b: &Block) -> impl Iterator<Item = u32> {
        let mut found = [0u32; SPLITS];
        let mut n = 0;
        for &at in &self.at[..usize::from(self.len)] {
            let offset = at.wrapping_sub(b.seq);
            if is_inside(b.seq, b.bytes, at) && !found[..n].contains(&offset) {
                found[n] = offset;
                n += 1;
            }
        }
        found[..n].sort_unstable();
        let seq = b.seq;
        found.into_iter().take(n).map(move |offset| seq.wrapping_add(offset))
    }
}

/// Kinds of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The handshake.
    Setup,
    /// Request and response.
    Data,
    /// The client closed in it.
    Close,
}

impl Kind {
    /// Name in the messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "SETUP",
            Self::Data => "DATA",
            Self::Close => "CLOSE",
        }
    }
}

/// A finished transaction; times are TAI ns, durations ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Position in the connection: 0 is the setup.
    pub index: u32,
    /// What it is.
    pub kind: Kind,
    /// First packet of the request, or of the response where none of it was seen.
    pub request_time: u64,
    /// Payload of the request.
    pub request_bytes: u64,
    /// Payload of the response.
    pub response_bytes: u64,
    /// From the end of the previous transaction to the request.
    pub client: Option<u64>,
    /// First to last request packet.
    pub request: u64,
    /// Last request packet to first response packet.
    pub server: Option<u64>,
    /// The round trip in it, when a queue stood between the tap and the server.
    pub(crate) wait: Option<Wait>,
    /// First to last response packet.
    pub response: Option<u64>,
    /// First response packet; 0 = none.
    pub response_time: u64,
    /// Last request packet to last response packet; of a setup, first SYN to its end.
    pub end: Option<u64>,
    /// An answer was due and never came: from the last request packet until one side gave up, or the input ended.
    pub unanswered: Option<u64>,
    /// Of the last one: when one side gave up, or the input ended, TAI ns; 0: another came.
    pub(crate) gave_up: u64,
    /// Losses of either direction within it.
    pub losses: u32,
    /// Of a setup: payload of a full segment, where both sides told their MSS.
    pub segment: Option<u32>,
    /// Request and response data crossed.
    pub overlapped: bool,
    /// The capture missed the request, which came in so many ns: from the end of the previous transaction, if there was one, to the response.
    pub(crate) missed: Option<u64>,
    /// The round trip in the client's time before it, when a queue stood between the tap and the client.
    pub(crate) client_wait: Option<Wait>,
    /// How far the client's time before it may be from the truth, ns.
    pub(crate) client_uncertain: Option<u64>,
    /// Longest time within its request in which the client had nothing to send, µs; 0 where something crossed.
    pub paused_us: u32,
    /// Time of a receiver's window whose scale was inferred from what filled it, ns: another limit of that size looks the same.
    pub(crate) inferred: u64,
    /// Sequence numbers behind the request and the response.
    pub(crate) ends: [u32; 2],
    /// The request began while the response before it was on its way, and the response while the request was: neither waited for
    /// the other.
    pub(crate) amid: [bool; 2],
}

impl Finished {
    /// Its packets went on behind its blocks, ns: what filled a gap had been lost or late before the tap. `before`: those of the transaction
    /// before it; `end`: the response's, or of a request without one, its own.
    pub(crate) fn go_on(&mut self, before: u64, request: u64, end: u64) {
        self.client = self.client.map(|gap| gap.saturating_sub(before));
        match self.response {
            Some(response) => {
                self.request = self.request.saturating_add(request);
                self.server = self.server.map(|gap| gap.saturating_sub(request));
                self.response = Some(response.saturating_add(end));
                self.end = self.end.map(|whole| whole.saturating_add(end).saturating_sub(request));
            }
            None => self.request = self.request.saturating_add(end),
        }
    }

    /// Last packet of its response, TAI ns.
    pub(crate) fn response_end(&self) -> Option<u64> {
        Some(self.response_time.saturating_add(self.response?))
    }

    /// Its request was seen.
    pub(crate) const fn was_asked(&self) -> bool {
        self.request_bytes > 0 && self.missed.is_none()
    }

    /// Sequence number of its first byte, if its request was seen.
    pub fn request_start(&self) -> Option<u32> {
        self.was_asked()
            .then(|| self.ends[0].wrapping_sub(self.request_bytes as u32))
    }

    /// Sequence number of the first byte of its response, if it has one.
    pub(crate) const fn response_start(&self) -> u32 {
        self.ends[1].wrapping_sub(self.response_bytes as u32)
    }

    /// How far the server's time may be from the truth, ns; `u64::MAX`: all of it may be something else's.
    pub(crate) fn server_uncertain(&self) -> Option<u64> {
        // Whether it had to answer is not known.
        let uncertain = |wait: Wait| match wait.uncertain {
            u32::MAX => u64::MAX,
            ns => ns.into(),
        };
        self.unanswered.or_else(|| self.wait.map(uncertain))
    }
}

#[cfg(test)]
impl Finished {
    /// A request of one packet at `at` and its answer of one packet `whole` ns later.
    pub(crate) fn answered(at: u64, whole: u64) -> Self {
        Self {
            index: 1,
            kind: Kind::Data,
            request_time: at,
            request_bytes: 1,
            response_bytes: 1,
            client: None,
            request: 0,
            server: Some(whole),
            wait: None,
            response: Some(0),
            response_time: at + whole,
            end: Some(whole),
            unanswered: None,
            gave_up: 0,
            losses: 0,
            segment: None,
            overlapped: false,
            missed: None,
            client_wait: None,
            client_uncertain: None,
            paused_us: 0,
            inferred: 0,
            ends: [0; 2],
            amid: [false; 2],
        }
    }
}

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
    stamp: Option<(u32, u64)>,
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
        self.past.get_or_insert_default().stamp = Some((tsval, time));
    }

    /// See [`Self::set_stamp`].
    pub fn stamp(&self) -> Option<(u32, u64)> {
        self.past.as_ref()?.stamp
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_take_the_memory_that_the_book_states() {
        assert!(size_of::<Turn>() <= 64, "{}", size_of::<Turn>());
        assert!(size_of::<Past>() <= 320, "{}", size_of::<Past>());
    }

    const PUSH: u8 = BlockEnd::Push as u8;
    const IDLE: u8 = BlockEnd::Idle as u8;

    /// A flow whose peers acknowledge everything at once.
    struct Talk {
        turn: Turn,
        next: [u32; 2],
        now: u64,
    }

    impl Talk {
        fn new() -> Self {
            Self {
                turn: Turn::default(),
                next: [0xffff_ff00, 7000],
                now: 1000,
            }
        }

        fn block(&mut self, side: usize, bytes: u32, code: u8) -> Option<(Finished, Signature)> {
            self.block_of(side, bytes, code, 1)
        }

        fn close(&mut self) -> Option<(Finished, Signature)> {
            let spare = &mut Responses::default();
            self.turn.close(ClientFin::default(), None, None, spare)
        }

        fn block_of(&mut self, side: usize, bytes: u32, code: u8, packets: u16) -> Option<(Finished, Signature)> {
            let b = Block {
                first: self.now,
                last: self.now + 10,
                seq: self.next[side],
                bytes,
                ack: self.next[1 - side],
                flight: bytes,
                packets,
                max_segment: 1,
                window: 1,
                ttl: 1,
                known: 3,
            };
            self.now += 100;
            self.next[side] = self.next[side].wrapping_add(bytes);
            self.turn
                .block(side, code, &b, ClientFin::default, &mut Responses::default())
        }
    }

    fn text(signature: &Signature) -> String {
        let mut out = String::new();
        signature.write(&mut out);
        out
    }

    #[test]
    fn request_and_response_alternate() {
        let mut t = Talk::new();
        assert!(t.block(0, 178, PUSH).is_none());
        assert!(t.block(0, 1284, PUSH).is_none());
        assert!(t.block(1, 245, PUSH).is_none());
        let (done, signature) = t.block(0, 29, PUSH).expect("the next request ends it");
        assert_eq!(text(&signature), "Request: blk[178]; blk[1284]-blk[2xx]");
        assert_eq!((done.request_bytes, done.response_bytes), (1462, 245));
        assert_eq!(
            (done.request, done.server, done.response, done.end),
            (110, Some(90), Some(10), Some(100))
        );
        assert_eq!((done.index, done.client, done.overlapped), (1, None, false));
        let (last, signature) = t.close().expect("in progress");
        assert_eq!(
            (text(&signature).as_str(), last.client, last.server),
            ("Request: blk[29]", Some(90), None)
        );
        assert_eq!(t.turn.shares().answered, 1);
    }

    #[test]
    fn an_idle_block_goes_on() {
        let mut t = Talk::new();
        t.block(0, 100, PUSH);
        t.block(1, 1000, IDLE);
        t.block(1, 500, PUSH);
        t.block(1, 500, PUSH);
        let (_, signature) = t.close().expect("in progress");
        assert_eq!(text(&signature), "Request: blk[100]-blk[1xxx]; blk[5xx]");
    }

    #[test]
    fn a_greeting_has_an_empty_request() {
        let mut t = Talk::new();
        t.block(1, 89, PUSH);
        let (done, signature) = t.block(0, 10, PUSH).expect("ended by the client");
        assert_eq!(
            (text(&signature).as_str(), done.request_bytes, done.server),
            ("Request: -blk[8x]", 0, None)
        );
        assert_eq!(t.turn.shares().answered, 0);
    }

    #[test]
    fn crossing_data_is_marked() {
        let mut t = Talk::new();
        t.block(0, 100, PUSH);
        t.next[0] = t.next[0].wrapping_sub(40); // the server has only 60 of the 100
        t.block(1, 10, PUSH);
        let (done, _) = t.close().expect("in progress");
        assert!(done.overlapped);
    }

    #[test]
    fn a_late_push_splits_its_block() {
        let mut t = Talk::new();
        let start = t.next[1];
        t.block(0, 1, PUSH);
        t.turn.push_at(1, start + 30); // before the block's record
        t.block(1, 100, PUSH);
        t.turn.push_at(1, start + 50); // after it
        let (_, signature) = t.close().expect("in progress");
        assert_eq!(text(&signature), "Request: blk[1]-blk[3x]; blk[2x]; blk[5x]");
    }

    #[test]
    fn losses_belong_to_the_transaction_of_their_time() {
        let mut t = Talk::new();
        t.block(0, 1, PUSH); // 1000
        t.turn.loss(1050);
        t.block(1, 1, PUSH); // 1100
        for i in 0..20 {
            t.turn.loss(1150 + i);
        }
        t.turn.loss(1205); // in the request that begins at 1200 and has not ended
        let (done, _) = t.block(0, 1, PUSH).expect("ended");
        assert_eq!(done.losses, 21);
        assert_eq!(t.close().expect("in progress").0.losses, 1);
    }

    /// What the server had acknowledged when it answered is the request's, and not the next one's.
    #[test]
    fn the_end_of_a_request_that_was_not_seen_is_its_own() {
        let sizes = |code: u8, packets: u16, told: Option<(u64, u32)>, next: u32| {
            let mut t = Talk::new();
            t.block(0, 500, code); // 1000
            if let Some((time, behind)) = told {
                t.turn.acked_unseen(Unseen {
                    time,
                    from: None,
                    to: t.next[0].wrapping_add(behind),
                });
            }
            let seen = t.next[0];
            t.next[0] = seen.wrapping_add(300);
            t.block_of(1, 700, PUSH, packets); // 1100
            t.next[0] = seen;
            let done = t.block(0, next, PUSH);
            let done = done.into_iter().chain(t.close());
            done.map(|(_, signature)| text(&signature)).collect::<Vec<_>>()
        };
        let one = ["Request: blk[500]; blk[300]-blk[7xx]", "Request: blk[900]"];
        assert_eq!(sizes(PUSH, 1, None, 1200), one);
        let joined = ["Request: blk[800]-blk[7xx]", "Request: blk[900]"];
        assert_eq!(
            sizes(BlockEnd::Turn as u8, 1, None, 1200),
            joined,
            "its PSH was not seen"
        );
        assert_eq!(sizes(PUSH, 1, None, 300), one[..1], "nothing new came");
        // The ACK of a longer response is that of its end: what it takes in may be the next request.
        let next = ["Request: blk[500]-blk[7xx]", "Request: blk[1200]"];
        assert_eq!(sizes(PUSH, 2, None, 1200), next);
        assert_eq!(sizes(PUSH, 2, Some((1050, 300)), 1200), one, "an ACK ahead of it told");
        assert_eq!(sizes(PUSH, 2, Some((1101, 300)), 1200), next, "it had begun");
        assert_eq!(sizes(PUSH, 2, Some((999, 300)), 1200), next, "of an earlier one");
    }

    /// The server answers what was not seen; `later` bytes of it come after all, and with them perhaps the next request.
    #[test]
    fn a_request_that_was_not_seen_is_one_all_the_same() {
        let talk = |before: bool, asked: u32, at: u64, later: u32| {
            let mut t = Talk::new();
            if before {
                t.block(0, 500, PUSH); // 1000
                t.block(1, 700, PUSH); // 1100
            }
            let from = t.next[0];
            t.turn.acked_unseen(Unseen {
                time: at,
                from: Some(from),
                to: from.wrapping_add(asked),
            });
            let first = t.block(1, 88, PUSH); // 1000 or 1200
            let next = (later > 0).then(|| t.block(0, later, PUSH)).flatten();
            let last = t.close();
            let all = first.into_iter().chain(next).chain(last);
            all.map(|(done, signature)| (text(&signature), done.client, done.server, done.missed))
                .collect::<Vec<_>>()
        };
        let unseen = |missed| ("Request: blk[15]-blk[8x]".to_owned(), None, None, Some(missed));
        assert_eq!(talk(false, 15, 1000, 0), [unseen(0)]);
        assert_eq!(
            talk(false, 15, 900, 15),
            [unseen(0)],
            "the capture has them in another order"
        );
        let [first, next] = &talk(false, 15, 900, 40)[..] else {
            panic!()
        };
        assert_eq!((first, next.0.as_str()), (&unseen(0), "Request: blk[25]"));
        let known = ("Request: blk[500]-blk[7xx]".to_owned(), None, Some(90), None);
        assert_eq!(talk(true, 15, 1150, 0), [known, unseen(90)]);
        let one = |asked, at| talk(true, asked, at, 0).len() == 1;
        assert!(one(1, 1150), "it may be a FIN");
        assert!(one(15, 1105), "it came while the response did");
        assert!(one(15, 1201), "the response had begun");
    }

    /// The client's FIN tells where its data ends.
    #[test]
    fn the_end_of_the_last_request_that_was_not_seen_is_its_own() {
        let bytes = |acked: u32, end: Option<u32>, fin: u64| {
            let mut t = Talk::new();
            t.block(0, 500, PUSH);
            let seen = t.next[0];
            t.next[0] = seen.wrapping_add(acked);
            t.block(1, 700, PUSH); // 1100
            let end = end.map(|end| seen.wrapping_add(end));
            let fin = ClientFin {
                time: fin,
                ..ClientFin::default()
            };
            let last = t.turn.close(fin, end, None, &mut Responses::default());
            last.expect("in progress").0.request_bytes
        };
        assert_eq!(bytes(300, Some(300), 1200), 800);
        assert_eq!(bytes(301, Some(300), 1200), 800, "with its FIN");
        assert_eq!(bytes(300, Some(400), 1200), 800, "the rest came later");
        assert_eq!(bytes(0, Some(300), 1200), 500);
        assert_eq!(bytes(0, Some(300), 1050), 800, "the FIN was ahead of the response");
        assert_eq!(bytes(301, None, 0), 500, "one of them may be a FIN");
    }

    #[test]
    fn fin_in_the_request_is_noted() {
        let note = |time, repeat| {
            let mut t = Talk::new();
            t.block(0, 29, PUSH); // 1000
            t.block(1, 29, PUSH); // 1100
            let fin = ClientFin {
                time,
                ack: 7000,
                repeat,
            };
            text(
                &t.turn
                    .close(fin, None, None, &mut Responses::default())
                    .expect("in progress")
                    .1,
            )
        };
        assert_eq!(note(1000, 0), "Request: blk[29]; conn half closed--blk[2x]");
        assert_eq!(note(1100, 0), "Request: blk[29]; conn half closed--blk[2x]");
        assert_eq!(note(1200, 0), "Request: blk[29]-blk[2x]");
        assert_eq!(
            note(1050, 1060),
            "Request: blk[29]; conn half closed; conn already half closed by client--blk[2x]"
        );
    }
}
