//! Facts as they are found. Most are only counted; who wants one whole asks for its message.

use weir_messages::v1;
use weir_record::{CloseCause, FlowId};

use crate::closing::{Kind as CloseKind, closing};
use crate::flow::Flow;
use crate::given::Given;
use crate::message::{self, CloseCounts};
use crate::setup::Outcome;
use crate::shares::TimeShares;
use crate::signature::Text;
use crate::turns::Finished;
use crate::verdict::Verdict;

/// Where facts go.
pub trait Sink {
    /// A connection is over.
    fn connection(&mut self, connection: &Connection<'_>);
    /// A transaction is over.
    fn transaction(&mut self, transaction: &Transaction<'_>);
    /// Something worth pointing out.
    fn finding(&mut self, finding: v1::Finding);
    /// What became of a segment that came twice, late or never. It is told when nothing can change
    /// it any more, so not in order of time.
    fn segment(&mut self, _: &Verdict, _: &Ends) {}
    /// A connection was opened: its first packet passed.
    fn opened(&mut self, _: &Opened) {}
    /// The TTL of the first packet of a connection, and of the server's first data.
    fn hops(&mut self, _: &Hops) {}
    /// A block of data passed.
    fn block(&mut self, _: &DataBlock) {}
    /// An ACK of data passed.
    fn acknowledged(&mut self, _: &Acknowledged) {}
    /// A SYN of a connection came again, or a SYN-ACK (`from_server`); told at once.
    fn again(&mut self, _: FlowId, _from_server: bool) {}
}

/// Addresses (IPv4 as `::ffff:a.b.c.d`) and ports of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ends {
    /// The client's address.
    pub client: [u8; 16],
    /// The server's address.
    pub server: [u8; 16],
    /// The client's port.
    pub client_port: u16,
    /// The server's port.
    pub server_port: u16,
}

/// A connection's first packet.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// Its connection.
    pub id: FlowId,
    /// TAI ns.
    pub time: u64,
    /// Who talks.
    pub ends: Ends,
    /// That packet is a SYN; false, too, where it is not known.
    pub is_syn: bool,
}

/// How far packets may still go; what it was when they were sent is not known.
#[derive(Clone, Copy, Debug)]
pub struct Hops {
    /// Their connection.
    pub id: FlowId,
    /// TAI ns.
    pub time: u64,
    /// Who talks.
    pub ends: Ends,
    /// The server sends them.
    pub by_server: bool,
    /// TTL or hop limit at the tap.
    pub ttl: u8,
}

/// Data of one side up to a PSH or until it paused (`docs/src/flow-engine.md`, BLOCK).
#[derive(Clone, Copy, Debug)]
pub struct DataBlock {
    /// Its connection.
    pub id: FlowId,
    /// Who talks.
    pub ends: Ends,
    /// The server sent it.
    pub from_server: bool,
    /// First packet, TAI ns.
    pub first: u64,
    /// Last packet, TAI ns.
    pub last: u64,
    /// Payload.
    pub bytes: u32,
    /// Segments.
    pub packets: u16,
    /// Bytes of its sender in flight behind the tap at its end.
    pub flight: u32,
}

/// An ACK that covered data, and how long after it it passed the tap.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Its connection.
    pub id: FlowId,
    /// Who talks.
    pub ends: Ends,
    /// The server sent the ACK.
    pub by_server: bool,
    /// TAI ns.
    pub time: u64,
    /// Round trip from the tap, ns.
    pub rtt: u64,
    /// Karn's rule holds, and it is not the handshake's.
    pub is_data: bool,
    /// Its sender cannot have held it back, for a timer or until it had data to send.
    pub is_prompt: bool,
    /// It left less than two full segments in flight, and not nothing: their receiver may hold back the ACK of those (RFC 1122 4.2.3.2).
    pub is_one_left: bool,
}

/// Keeps connections, transactions and findings, not segments: most who want the others want none of these.
impl Sink for v1::Analysis {
    fn connection(&mut self, connection: &Connection<'_>) {
        self.connections.push(connection.message());
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.transactions.push(transaction.message());
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.findings.push(finding);
    }
}

/// A connection that is over.
#[derive(Debug)]
pub struct Connection<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) cause: Option<CloseCause>,
    pub(crate) counts: [CloseCounts; 2],
    pub(crate) given: Given,
    /// When it was told of that it is over, TAI ns.
    pub(crate) told: u64,
}

/// What one side of a connection sent, in figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Payload, repeats included.
    pub payload: u64,
    /// Segments that brought new bytes.
    pub data_segments: u32,
    /// Data packets, repeats included; what the capture alone made is left out.
    pub data_packets: u32,
    /// Smallest round trip of the path from the tap to its receiver and back, ns; unknown while responses alone have ended it.
    pub rtt_min: Option<u64>,
    /// The same of all that acknowledged it, responses too: `Rtt.min_seconds`.
    pub acked_min: Option<u64>,
    /// Keep-alives.
    pub keep_alives: u32,
    /// Copies that the capture made: all but those that a D-SACK says the receiver got, too.
    pub mirror_copies: u32,
    /// Delivered, but not in the capture.
    pub missed: u32,
    /// Data packets that are retransmissions.
    pub retransmitted: u64,
    /// A FIN, and a RST.
    pub fin: bool,
    /// See `fin`.
    pub rst: bool,
}

/// A connection that is over, in figures.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its number.
    pub id: FlowId,
    /// Who talked.
    pub ends: Ends,
    /// First and last packet, TAI ns.
    pub span: (u64, u64),
    /// Until when it was open, TAI ns: its last packet, or the end of the input where it is not known to have ended.
    pub until: u64,
    /// How the handshake went, if there is one to tell of.
    pub setup: Option<Outcome>,
    /// See [`Connection::failed`].
    pub failed: bool,
    /// SYNs and SYN-ACKs seen.
    pub syns: (u8, u8),
    /// First SYN to the end of the setup, ns.
    pub setup_ns: Option<u64>,
    /// Last SYN before the answer to the answer, ns.
    pub answer_ns: Option<u64>,
    /// The server's timer sent the SYN-ACK: one before it was lost.
    pub is_answer_late: bool,
    /// How far the client's clock of timestamps is before the time, where a record tells, ms modulo 2^32, if it ticks once a ms.
    pub client_clock: Option<u32>,
    /// Nothing of the other side was heard after data of client and server, before which nothing had passed for so long, ms; 0: not so.
    pub rested: [u32; 2],
    /// How it was closed.
    pub closing: CloseKind,
    /// What client and server sent.
    pub sent: [Sent; 2],
    /// Transactions with an answer.
    pub answered: u32,
    /// Something happened to its segments or windows.
    pub has_trouble: bool,
}

/// A count in four bytes: figures of connections are kept by the hundred.
fn saturated(count: u64) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

impl Connection<'_> {
    /// Its figures, to keep.
    pub fn ended(&self) -> Ended {
        let closing = closing(self.flow, self.cause).0;
        Ended {
            id: self.id(),
            ends: self.ends(),
            span: self.span(),
            until: match closing {
                CloseKind::Open => self.told.max(self.flow.last),
                _ => self.flow.last,
            },
            setup: self.setup(),
            failed: self.failed(),
            syns: (self.flow.setup.syn_count, self.flow.setup.syn_ack_count),
            setup_ns: self.flow.setup.end_ns(),
            answer_ns: self.flow.setup.response_ns(),
            is_answer_late: self.flow.is_answer_late(),
            client_clock: self.flow.client_clock(),
            rested: [0, 1].map(|side| {
                self.flow
                    .rest_before_silence(side)
                    .map_or(0, |ns| saturated(ns / 1_000_000))
            }),
            closing,
            sent: [self.sent(0), self.sent(1)],
            answered: self.flow.turn.as_ref().map_or(0, |turn| turn.shares().answered),
            has_trouble: self.flow.extras.trouble().is_some(),
        }
    }

    /// Its number.
    pub const fn id(&self) -> FlowId {
        self.flow.id
    }

    /// Who talked.
    pub fn ends(&self) -> Ends {
        self.flow.ends()
    }

    /// First and last packet, TAI ns.
    pub const fn span(&self) -> (u64, u64) {
        (self.flow.first, self.flow.last)
    }

    /// How the handshake went, if there is one to tell of.
    pub fn setup(&self) -> Option<Outcome> {
        message::has_setup(self.flow).then_some(self.flow.setup.outcome)
    }

    /// First SYN to the end of the setup, ns.
    pub fn setup_ns(&self) -> Option<u64> {
        self.flow.setup.end_ns()
    }

    /// What a side (0: the client) sent.
    pub fn sent(&self, side: usize) -> Sent {
        let side = side & 1;
        let d = &self.flow.directions[side];
        let counts = self.flow.counts(side);
        Sent {
            packets: d.packets,
            payload: d.payload,
            data_segments: d.data_segments,
            data_packets: saturated(self.flow.data_packets(side)),
            rtt_min: self.flow.trip(side),
            acked_min: self.flow.at_most(side),
            keep_alives: saturated(counts.keep_alives),
            mirror_copies: saturated(
                message::copies(&counts, self.counts[side]) - (counts.duplicates - counts.mirror_copies),
            ),
            missed: saturated(counts.missed),
            retransmitted: counts.retransmitted_data,
            fin: self.flow.sent_fin(side),
            rst: self.flow.sent_rst(side),
        }
    }

    /// All of it.
    pub fn message(&self) -> v1::Connection {
        message::connection(self.flow, self.cause, self.counts, self.given)
    }

    /// `Setup.outcome`, if there is a setup to tell of.
    pub fn outcome(&self) -> Option<&'static str> {
        message::has_setup(self.flow).then(|| self.flow.setup.outcome.name())
    }

    /// `Close.kind`.
    pub fn close_kind(&self) -> &'static str {
        closing(self.flow, self.cause).0.name()
    }

    /// The setup failed, as the findings have it: a client that resets it at once does not want it any more.
    pub fn failed(&self) -> bool {
        message::failed(closing(self.flow, self.cause).0, self.flow).is_some()
    }

    /// Something happened to its segments or windows.
    pub fn has_trouble(&self) -> bool {
        self.flow.extras.trouble().is_some()
    }

    /// Packets that went wrong: sent again, out of order, lost, or with a closed window.
    pub fn trouble(&self) -> u64 {
        message::trouble(self.flow, 0, self.counts[0]) + message::trouble(self.flow, 1, self.counts[1])
    }
}

/// A transaction that is over.
#[derive(Debug)]
pub struct Transaction<'a> {
    pub(crate) id: FlowId,
    pub(crate) ends: Ends,
    pub(crate) signature: &'a Text<'a>,
    pub(crate) done: &'a Finished,
    pub(crate) time: &'a TimeShares,
}

impl Transaction<'_> {
    /// Its connection.
    pub const fn id(&self) -> FlowId {
        self.id
    }

    /// Who talked.
    pub const fn ends(&self) -> Ends {
        self.ends
    }

    /// Its sizes with their small digits masked.
    pub fn signature(&self) -> &str {
        self.signature.get()
    }

    /// Bytes of its request's only block, where its signature says nothing else of the request.
    pub fn single_request(&self) -> Option<u64> {
        self.signature.single_request()
    }

    /// Appends what its signature says of the request.
    pub fn write_request(&self, out: &mut String) {
        self.signature.write_request(out);
    }

    /// Whose time it was.
    pub fn shares(&self) -> v1::TimeShares {
        self.time.message()
    }

    /// Its times and sizes.
    pub const fn facts(&self) -> &Finished {
        self.done
    }

    /// All of it.
    pub fn message(&self) -> v1::Transaction {
        message::transaction(self.id, self.signature(), self.done, self.time)
    }
}
